/* isa_print.c - decoded instruction -> the assembler's own text. */
#include "isa/isa_print.h"

/* ---- registers ---------------------------------------------------------------------- */

const char *
isa_special_name(IsaArch arch, uint32_t code, uint32_t nregs)
{
    static const char *const lo[] = {"flat_scratch_lo", "flat_scratch_hi", "xnack_mask_lo",
                                     "xnack_mask_hi",   "vcc_lo",          "vcc_hi"};
    static const char *const pair[] = {"flat_scratch", NULL, "xnack_mask", NULL, "vcc", NULL};
    static const char *const src[] = {"src_shared_base", "src_shared_limit", "src_private_base",
                                      "src_private_limit", "src_pops_exiting_wave_id"};
    bool gfx9 = arch <= ISA_GFX950;
    uint32_t null = gfx9 ? 125 : 124, m0 = gfx9 ? 124 : 125;
    if (code == null)
        return "null";
    if (nregs > 2)
        return NULL;
    if (code == m0)
        return nregs == 2 ? NULL : "m0";
    if (code >= (gfx9 ? 102u : 106u) && code <= 107)
        return nregs == 2 ? pair[code - 102] : lo[code - 102];
    if (arch != ISA_GFX90A && (code == 230 || code == 231))
        return code == 230 ? "src_flat_scratch_base_lo" : nregs == 2 ? NULL : "src_flat_scratch_base_hi";
    switch (code) {
    case 126:
        return nregs == 2 ? "exec" : "exec_lo";
    case 127:
        return nregs == 2 ? NULL : "exec_hi";
    case 251:
        return "src_vccz";
    case 252:
        return "src_execz";
    case 253:
        return "src_scc";
    default:
        return code >= 235 && code <= 239 ? src[code - 235] : NULL;
    }
}

static void
print_tuple(const IsaPrinter *p, const char *file, uint32_t reg, uint32_t n)
{
    if (n <= 1)
        tl_text_printf(p->out, "%s%u", file, reg);
    else
        tl_text_printf(p->out, "%s[%u:%u]", file, reg, reg + n - 1);
}

static void
print_scalar(const IsaPrinter *p, uint32_t code, uint32_t n)
{
    const char *name = isa_special_name(p->arch, code, n);
    if (name)
        tl_text_puts(p->out, name);
    else if (code >= 108 && code < 124)
        print_tuple(p, "ttmp", code - 108, n);
    else
        print_tuple(p, "s", code, n);
}

/* ---- operands ---------------------------------------------------------------------- */

/* gfx1100 names the half of every 16-bit register; elsewhere only what op_sel does not show. */
static const char *
half_suffix(const IsaPrinter *p, const IsaOpnd *o)
{
    if (p->arch == ISA_GFX1100)
        return o->half == 2 ? ".h" : ".l";
    return o->half == 2 && p->row->fam != ISA_FAM_VOP3 ? ".h" : "";
}

static void
print_operand(const IsaPrinter *p, const IsaOpnd *o)
{
    bool num = o->kind == ISA_OPND_CONST && (o->flags & ISA_NEG);
    if (o->flags & ISA_NEG)
        tl_text_puts(p->out, num && !(o->flags & ISA_ABS) ? "neg(" : "-");
    if (o->flags & ISA_ABS)
        tl_text_puts(p->out, "|");
    if (o->flags & ISA_SEXT)
        tl_text_puts(p->out, "sext(");
    switch ((IsaOpndKind)o->kind) {
    case ISA_OPND_NONE:
        tl_text_puts(p->out, "off");
        break;
    case ISA_OPND_VGPR:
        print_tuple(p, "v", o->reg, o->nregs);
        if (o->half)
            tl_text_puts(p->out, half_suffix(p, o));
        break;
    case ISA_OPND_AGPR:
        print_tuple(p, "a", o->reg, o->nregs);
        break;
    case ISA_OPND_SGPR:
    case ISA_OPND_SRC:
        print_scalar(p, o->reg, o->nregs);
        break;
    case ISA_OPND_CONST:
        isa_print_const(p, o);
        break;
    case ISA_OPND_IMM:
        isa_print_imm(p, o);
        break;
    }
    if (o->flags & ISA_SEXT)
        tl_text_puts(p->out, ")");
    if (o->flags & ISA_ABS)
        tl_text_puts(p->out, "|");
    if (num && !(o->flags & ISA_ABS))
        tl_text_puts(p->out, ")");
}

/* ---- modifiers ---------------------------------------------------------------------- */

static void
print_bits(const IsaPrinter *p, const char *name, uint32_t v, uint32_t n)
{
    tl_text_printf(p->out, " %s:[", name);
    for (uint32_t i = 0; i < n; i++)
        tl_text_printf(p->out, i ? ",%u" : "%u", v >> i & 1);
    tl_text_puts(p->out, "]");
}

static uint32_t
count_sources(const IsaPrinter *p)
{
    const IsaPattern *pat = isa_pattern(p->row->pattern);
    uint32_t n = 0;
    for (uint32_t i = 0; i < pat->n; i++) {
        uint32_t f = pat->spec[i].field;
        n += f == ISA_F_SRC0 || f == ISA_F_SRC1 || f == ISA_F_SRC2 || f == ISA_F_VSRC1;
    }
    return n;
}

static void
print_clamp_omod(const IsaPrinter *p)
{
    static const char *const omods[4] = {"", " mul:2", " mul:4", " div:2"};
    if (p->in->clamp)
        tl_text_puts(p->out, " clamp");
    tl_text_puts(p->out, omods[p->in->omod]);
}

static void
print_vop3p(const IsaPrinter *p)
{
    const IsaInst *in = p->in;
    uint32_t n = count_sources(p), all = (1u << n) - 1, fl = p->row->flags;
    if ((fl & ISA_R_OPSEL) && (in->op_sel & all))
        print_bits(p, "op_sel", in->op_sel, n);
    if (fl & ISA_R_MIX) {
        if (in->op_sel_hi & all)
            print_bits(p, "op_sel_hi", in->op_sel_hi, n);
    } else {
        if ((fl & ISA_R_OPSELHI) && (in->op_sel_hi & all) != all)
            print_bits(p, "op_sel_hi", in->op_sel_hi, n);
        if (in->neg_lo & all)
            print_bits(p, "neg_lo", in->neg_lo, n);
        if (in->neg_hi & all)
            print_bits(p, "neg_hi", in->neg_hi, n);
    }
    if (fl & ISA_R_INDEXKEY && in->index_key)
        tl_text_printf(p->out, " index_key:%u", in->index_key);
    if (in->clamp)
        tl_text_puts(p->out, " clamp");
}

static void
print_mai(const IsaPrinter *p)
{
    const IsaInst *in = p->in;
    if (p->row->fam == ISA_FAM_VOP3PX) {
        if (in->op_sel)
            print_bits(p, "op_sel", in->op_sel, 3);
        if (in->op_sel_hi != 7)
            print_bits(p, "op_sel_hi", in->op_sel_hi, 3);
    }
    if (p->row->flags & ISA_R_CBSZ) {
        if (in->cbsz)
            tl_text_printf(p->out, " cbsz:%u", in->cbsz);
        if (in->abid)
            tl_text_printf(p->out, " abid:%u", in->abid);
    }
    if ((p->row->flags & ISA_R_NEGF64) && in->blgp)
        print_bits(p, "neg", in->blgp, 3);
    else if ((p->row->flags & ISA_R_BLGP) && in->blgp)
        tl_text_printf(p->out, " blgp:%u", in->blgp);
}

static void
print_dpp(const IsaPrinter *p)
{
    static const char *const rows[3] = {"row_shl", "row_shr", "row_ror"};
    const IsaInst *in = p->in;
    uint32_t c = in->dpp_ctrl;
    if (c <= 0xff)
        tl_text_printf(p->out, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6 & 3);
    else if (c < 0x130)
        tl_text_printf(p->out, " %s:%u", rows[(c >> 4) - 16], c & 15);
    else if (c < 0x140)
        tl_text_printf(p->out, " %s:1",
                       c == 0x130   ? "wave_shl"
                       : c == 0x134 ? "wave_rol"
                       : c == 0x138 ? "wave_shr"
                                    : "wave_ror");
    else if (c < 0x150)
        tl_text_puts(p->out, c == 0x140   ? " row_mirror"
                             : c == 0x141 ? " row_half_mirror"
                             : c == 0x142 ? " row_bcast:15"
                                          : " row_bcast:31");
    else
        tl_text_printf(p->out, " %s:%u",
                       is_gfx9(p)  ? "row_newbcast"
                       : c < 0x160 ? "row_share"
                                   : "row_xmask",
                       c & 15);
    tl_text_printf(p->out, " row_mask:0x%x bank_mask:0x%x", in->row_mask, in->bank_mask);
    if (in->bound_ctrl)
        tl_text_puts(p->out, " bound_ctrl:1");
    if (in->fi)
        tl_text_puts(p->out, " fi:1");
}

static void
print_dpp8(const IsaPrinter *p)
{
    tl_text_puts(p->out, " dpp8:[");
    for (uint32_t i = 0; i < 8; i++)
        tl_text_printf(p->out, i ? ",%u" : "%u", p->in->dpp8 >> 3 * i & 7);
    tl_text_puts(p->out, p->in->fi ? "] fi:1" : "]");
}

static const char *const sdwa_sels[8] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                         "WORD_0", "WORD_1", "DWORD",  "?"};

static void
print_sdwa(const IsaPrinter *p)
{
    static const char *const unused[4] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"};
    const IsaInst *in = p->in;
    uint32_t n = count_sources(p);
    print_clamp_omod(p);
    if (n == 0)
        return;
    if (p->row->fam != ISA_FAM_VOPC && !(p->row->flags & ISA_R_SDWANODST))
        tl_text_printf(p->out, " dst_sel:%s dst_unused:%s", sdwa_sels[in->dst_sel], unused[in->dst_unused]);
    tl_text_printf(p->out, " src0_sel:%s", sdwa_sels[in->src0_sel]);
    if (n > 1)
        tl_text_printf(p->out, " src1_sel:%s", sdwa_sels[in->src1_sel]);
}

/* Temporal hint of gfx12: its name depends on what the instruction does. */
static void
print_hint(const IsaPrinter *p)
{
    static const char *const load[7] = {"", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"};
    static const char *const store[8] = {"", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"};
    static const char *const atomic[4] = {"", "RETURN", "NT", "NT_RETURN"};
    uint32_t th = p->in->th, cl = isa_op_info(p->in->op)->classes;
    bool sys = p->in->scope == 3;
    if (!th)
        return;
    if (cl & ISA_C_ATOMIC) {
        if (th < 4)
            tl_text_printf(p->out, " th:TH_ATOMIC_%s", atomic[th]);
        else if (p->in->scope >= 2)
            tl_text_printf(p->out, " th:TH_ATOMIC_CASCADE_%s", th & 2 ? "NT" : "RT");
        else
            tl_text_printf(p->out, " th:TH_ATOMIC_0x%x", th);
    } else if (cl & ISA_C_STORE) {
        tl_text_printf(p->out, " th:TH_STORE_%s", th == 3 && sys ? "BYPASS" : store[th]);
    } else if (th == 7) {
        tl_text_puts(p->out, " th:0x7");
    } else {
        tl_text_printf(p->out, " th:TH_LOAD_%s", th == 3 && sys ? "BYPASS" : load[th]);
    }
}

static void
print_cache_bits(const IsaPrinter *p)
{
    static const char *const scopes[4] = {"", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"};
    const IsaInst *in = p->in;
    print_hint(p);
    tl_text_puts(p->out, scopes[in->scope & 3]);
    if (in->glc)
        tl_text_puts(p->out, " glc");
    if (in->slc)
        tl_text_puts(p->out, " slc");
    if (in->dlc)
        tl_text_puts(p->out, " dlc");
    if (in->sc0)
        tl_text_puts(p->out, " sc0");
    if (in->nt)
        tl_text_puts(p->out, " nt");
    if (in->sc1)
        tl_text_puts(p->out, p->arch == ISA_GFX90A ? " scc" : " sc1");
}

static void
print_swizzle(const IsaPrinter *p, uint32_t v)
{
    if (!v)
        return;
    if (v >= 0xe000) {
        tl_text_printf(p->out, " offset:swizzle(FFT,%u)", v & 31);
        return;
    }
    if (v >= 0xc000) {
        tl_text_printf(p->out, " offset:swizzle(ROTATE,%u,%u)", v >> 10 & 1, v >> 5 & 31);
        return;
    }
    if (v & 0x8000) {
        if (v & 0x7f00)
            tl_text_printf(p->out, " offset:%u", v);
        else
            tl_text_printf(p->out, " offset:swizzle(QUAD_PERM,%u,%u,%u,%u)", v & 3, v >> 2 & 3, v >> 4 & 3,
                           v >> 6 & 3);
        return;
    }
    uint32_t and = v & 31, or = v >> 5 & 31, xor = v >> 10 & 31;
    if (and == 31 && or == 0 && xor != 0 && (xor & (xor - 1)) == 0) {
        tl_text_printf(p->out, " offset:swizzle(SWAP,%u)", xor);
        return;
    }
    if (and == 31 && or == 0 && xor != 0 && ((xor + 1) & xor) == 0) {
        tl_text_printf(p->out, " offset:swizzle(REVERSE,%u)", xor + 1);
        return;
    }
    uint32_t group = 32 - and;
    if (group > 1 && (group & (group - 1)) == 0 && or < group && xor == 0) {
        tl_text_printf(p->out, " offset:swizzle(BROADCAST,%u,%u)", group, or);
        return;
    }
    tl_text_puts(p->out, " offset:swizzle(BITMASK_PERM,\"");
    for (int i = 4; i >= 0; i--) { /* the bit's fate when it is 0 and when it is 1 */
        uint32_t zero = ((0 & and >> i) | (or >> i & 1)) ^ (xor >> i & 1);
        uint32_t one = ((and >> i & 1) | (or >> i & 1)) ^ (xor >> i & 1);
        tl_text_puts(p->out, zero == one ? (zero ? "1" : "0") : zero ? "i" : "p");
    }
    tl_text_puts(p->out, "\")");
}

static void
print_mtbuf_format(const IsaPrinter *p)
{
    static const char *const dfmt[16] = {"INVALID",     "8",          "16",          "8_8",
                                         "32",          "16_16",      "10_11_11",    "11_11_10",
                                         "10_10_10_2",  "2_10_10_10", "8_8_8_8",     "32_32",
                                         "16_16_16_16", "32_32_32",   "32_32_32_32", "RESERVED_15"};
    static const char *const nfmt[8] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                        "UINT",  "SINT",  "RESERVED_6", "FLOAT"};
    if (!is_gfx9(p)) {
        const char *name = isa_format_name(p->arch, p->in->format);
        if (p->in->format == 1)
            return;
        if (name)
            tl_text_printf(p->out, " format:[%s]", name);
        else
            tl_text_printf(p->out, " format:%u", p->in->format);
        return;
    }
    uint32_t d = p->in->format & 15, n = p->in->format >> 4;
    if (d == 1 && n == 0)
        return;
    tl_text_puts(p->out, " format:[");
    if (d != 1)
        tl_text_printf(p->out, "BUF_DATA_FORMAT_%s", dfmt[d]);
    if (n != 0)
        tl_text_printf(p->out, "%sBUF_NUM_FORMAT_%s", d != 1 ? "," : "", nfmt[n]);
    tl_text_puts(p->out, "]");
}

static void
print_ds(const IsaPrinter *p)
{
    const IsaInst *in = p->in;
    if (p->row->flags & ISA_R_NOOFF)
        ;
    else if (in->op == ISA_OP_ds_swizzle_b32)
        print_swizzle(p, (uint32_t)in->offset);
    else if (p->row->flags & ISA_R_OFF2) {
        if (in->offset0)
            tl_text_printf(p->out, " offset0:%u", in->offset0);
        if (in->offset1)
            tl_text_printf(p->out, " offset1:%u", in->offset1);
    } else if (in->offset) {
        tl_text_printf(p->out, " offset:%d", in->offset);
    }
    if (in->gds)
        tl_text_puts(p->out, " gds");
}

static void
print_buffer(const IsaPrinter *p)
{
    const IsaInst *in = p->in;
    if (p->row->base == ISA_MTBUF)
        print_mtbuf_format(p);
    if (in->idxen)
        tl_text_puts(p->out, " idxen");
    if (in->offen)
        tl_text_puts(p->out, " offen");
    if (in->offset)
        tl_text_printf(p->out, " offset:%d", in->offset);
    print_cache_bits(p);
    if (in->tfe)
        tl_text_puts(p->out, " tfe");
    if (in->lds)
        tl_text_puts(p->out, " lds");
}

static void
print_memory(const IsaPrinter *p)
{
    const IsaInst *in = p->in;
    switch ((IsaFam)p->row->fam) {
    case ISA_FAM_DS:
        print_ds(p);
        return;
    case ISA_FAM_FLAT:
    case ISA_FAM_GLOBAL:
    case ISA_FAM_SCRATCH:
        if (in->offset)
            tl_text_printf(p->out, " offset:%d", in->offset);
        print_cache_bits(p);
        if (in->lds)
            tl_text_puts(p->out, " lds");
        return;
    case ISA_FAM_MTBUF:
    case ISA_FAM_MUBUF:
        print_buffer(p);
        return;
    case ISA_FAM_SMEM:
        print_cache_bits(p);
        return;
    case ISA_FAM_LDSDIR:
        if (p->arch == ISA_GFX1201)
            tl_text_printf(p->out, " wait_va_vdst:%u wait_vm_vsrc:%u", in->wait_va, in->wait_vm);
        else
            tl_text_printf(p->out, " wait_vdst:%u", in->wait_va);
        return;
    case ISA_FAM_SOP1:
    case ISA_FAM_SOP2:
    case ISA_FAM_SOPK:
    case ISA_FAM_SOPC:
    case ISA_FAM_SOPP:
    case ISA_FAM_VOP1:
    case ISA_FAM_VOP2:
    case ISA_FAM_VOPC:
    case ISA_FAM_VOP3:
    case ISA_FAM_VOP3P:
    case ISA_FAM_VOP3PX:
    case ISA_FAM_DUAL:
    case ISA_FAM_COUNT:
        return;
    }
}

/* One bit a source and, where it can be chosen, one for the destination. */
static void
print_op_sel(const IsaPrinter *p)
{
    uint32_t shown = p->row->flags >> 28, n = count_sources(p), sel = p->in->op_sel;
    if (p->row->flags & ISA_R_BYTESEL) {
        sel = n == 1 ? (sel & 1) << 1 | (sel >> 1 & 1) : sel >> 2;
        if (sel)
            tl_text_printf(p->out, " byte_sel:%u", sel);
        return;
    }
    if (p->row->base == ISA_VOPC && p->in->form != ISA_VOP3)
        shown = n; /* DPP forms of compares show none for the destination */
    if (shown == n + 1)
        sel = (sel & ((1u << n) - 1)) | sel >> 3 << n;
    sel &= (1u << shown) - 1;
    if (sel)
        print_bits(p, "op_sel", sel, shown);
}

static void
print_modifiers(const IsaPrinter *p)
{
    if (p->in->form == ISA_SDWA) {
        print_sdwa(p);
        return;
    }
    if (p->row->base == ISA_MAI) {
        print_mai(p);
    } else if (p->row->fam == ISA_FAM_VOP3P) {
        print_vop3p(p);
    } else if (p->row->fam == ISA_FAM_VOP3) {
        if (p->in->bitop3)
            tl_text_printf(p->out, p->in->bitop3 <= 10 ? " bitop3:%u" : " bitop3:0x%x", p->in->bitop3);
        print_op_sel(p);
        print_clamp_omod(p);
    } else {
        print_memory(p);
    }
    if (p->in->form == ISA_DPP)
        print_dpp(p);
    else if (p->in->form == ISA_DPP8)
        print_dpp8(p);
}

/* ---- the whole instruction ---------------------------------------------------------------------- */

static void
print_smem_offset(const IsaPrinter *p, const IsaOpnd *o)
{
    int32_t off = p->in->offset;
    const char *sign = off < 0 ? "-" : "";
    uint32_t mag = off < 0 ? (uint32_t)-off : (uint32_t)off;
    if (o->kind == ISA_OPND_NONE) {
        tl_text_printf(p->out, "%s0x%x", sign, mag);
        return;
    }
    print_operand(p, o);
    if (p->in->saddr_present) /* both a register and a number */
        tl_text_printf(p->out, " offset:%s0x%x", sign, mag);
}

static const char *
form_suffix(const IsaPrinter *p)
{
    bool dpp = p->in->form == ISA_DPP || p->in->form == ISA_DPP8;
    if (p->in->form == ISA_SDWA)
        return "_sdwa";
    if (dpp && (p->row->fam == ISA_FAM_VOP3 || p->row->fam == ISA_FAM_VOP3P))
        return "_e64_dpp";
    if (dpp)
        return p->row->fam == ISA_FAM_VOPC ? "" : "_dpp";
    return p->row->suffix == ISA_SUF_E32 ? "_e32" : p->row->suffix == ISA_SUF_E64 ? "_e64" : "";
}

/* s_prefetch_*: base, offset, register, length. */
static void
print_prefetch(const IsaPrinter *p)
{
    const IsaPattern *pat = isa_pattern(p->row->pattern);
    const IsaOpnd *part[3] = {NULL};
    int32_t off = p->in->offset;
    for (uint32_t i = 0; i < p->in->nopnds; i++) {
        uint32_t f = pat->spec[i].field;
        part[f == ISA_F_SBASE ? 0 : f == ISA_F_SOFFSET ? 1 : 2] = &p->in->opnd[i];
    }
    tl_text_puts(p->out, " ");
    if (part[0]) {
        print_operand(p, part[0]);
        tl_text_puts(p->out, ", ");
    }
    tl_text_printf(p->out, "%s0x%x, ", off < 0 ? "-" : "", off < 0 ? (uint32_t)-off : (uint32_t)off);
    if (part[1] && part[1]->kind != ISA_OPND_NONE)
        print_operand(p, part[1]);
    else
        tl_text_puts(p->out, "null");
    if (part[2])
        tl_text_printf(p->out, part[2]->bits <= 64 ? ", %u" : ", 0x%x", part[2]->bits);
}

/* Operands [first, end) in the text. */
static void
print_operands(const IsaPrinter *p, uint32_t first, uint32_t end)
{
    const char *sep = " ";
    if (p->row->fam == ISA_FAM_SMEM && strstr(isa_op_info(p->in->op)->name, "prefetch")) {
        print_prefetch(p);
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        const IsaOpnd *o = &p->in->opnd[i];
        if (o->flags & ISA_IMPLICIT)
            continue;
        if (p->in->op == ISA_OP_s_endpgm && o->bits == 0)
            continue;
        tl_text_puts(p->out, sep);
        sep = ", ";
        if (p->row->fam == ISA_FAM_SMEM && isa_pattern(p->row->pattern)->spec[i].field == ISA_F_SOFFSET)
            print_smem_offset(p, o);
        else
            print_operand(p, o);
    }
}

static void
print_dual(IsaPrinter *p)
{
    const IsaInst *in = p->in;
    tl_text_printf(p->out, "v_dual_%s", isa_op_info(in->op)->name + 2);
    print_operands(p, 0, in->opnd_y);
    tl_text_printf(p->out, " :: v_dual_%s", isa_op_info(in->op_y)->name + 2);
    p->row = &isa_rows(p->arch)[in->row_y];
    p->first = &in->opnd[in->opnd_y];
    print_operands(p, in->opnd_y, in->nopnds);
}

void
isa_print(IsaArch arch, bool wave64, const IsaInst *in, TlText *out)
{
    (void)wave64; /* the width of lane masks is in the operands */
    const IsaRow *rows = isa_rows(arch);
    if (!rows || in->row >= ISA_ROW0__END || !rows[in->row].name_plus1) {
        tl_text_puts(out, "<not decoded>");
        return;
    }
    IsaPrinter p = {arch, in, &rows[in->row], in->opnd, out};
    if (in->form == ISA_VOPD) {
        print_dual(&p);
        return;
    }
    tl_text_puts(out, isa_op_info(in->op)->name);
    tl_text_puts(out, form_suffix(&p));
    print_operands(&p, 0, in->nopnds);
    print_modifiers(&p);
}

void
isa_print_unknown(const uint8_t *code, uint64_t avail, const char *why, TlText *out)
{
    if (avail >= 4)
        tl_text_printf(out, ".long 0x%02x%02x%02x%02x ", code[3], code[2], code[1], code[0]);
    tl_text_printf(out, "(%s)", why);
}
