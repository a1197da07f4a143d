/* isa_print.c - decoded instruction -> the assembler's own text. */
#include "isa/isa_int.h"

typedef struct Pr {
    IsaArch arch;
    const IsaInst *in;
    const IsaRow *row;
    TlText *out;
} Pr;

/* ---- registers
 * ------------------------------------------------------------------------------------------------- */

const char *
isa_special_name(IsaArch arch, uint32_t code, uint32_t nregs)
{
    static const char *const lo[] = {"flat_scratch_lo", "flat_scratch_hi", "xnack_mask_lo",
                                     "xnack_mask_hi",   "vcc_lo",          "vcc_hi"};
    static const char *const pair[] = {"flat_scratch", NULL, "xnack_mask", NULL, "vcc", NULL};
    static const char *const src[] = {"src_shared_base", "src_shared_limit", "src_private_base",
                                      "src_private_limit", "src_pops_exiting_wave_id"};
    if (nregs > 2)
        return code == 125 ? "null" : NULL;
    if (code >= 102 && code <= 107)
        return nregs == 2 ? pair[code - 102] : lo[code - 102];
    if (arch != ISA_GFX90A && (code == 230 || code == 231))
        return code == 230 ? "src_flat_scratch_base_lo" : nregs == 2 ? NULL : "src_flat_scratch_base_hi";
    switch (code) {
    case 124:
        return nregs == 2 ? NULL : "m0";
    case 125:
        return "null";
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
print_tuple(const Pr *p, const char *file, uint32_t reg, uint32_t n)
{
    if (n <= 1)
        tl_text_printf(p->out, "%s%u", file, reg);
    else
        tl_text_printf(p->out, "%s[%u:%u]", file, reg, reg + n - 1);
}

static void
print_scalar(const Pr *p, uint32_t code, uint32_t n)
{
    const char *name = isa_special_name(p->arch, code, n);
    if (name)
        tl_text_puts(p->out, name);
    else if (code >= 108 && code < 124)
        print_tuple(p, "ttmp", code - 108, n);
    else
        print_tuple(p, "s", code, n);
}

/* ---- constants
 * ------------------------------------------------------------------------------------------------- */

static const char *const float_names[9] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                           "-2.0", "4.0",  "-4.0", "0.15915494"};

static bool
is_inline_int(int64_t v)
{
    return v >= -16 && v <= 64;
}

/* Index of an inline float of this bit pattern, or -1; bits wide: 16 (half), 32, 64. */
static int
inline_float_index(uint64_t v, uint32_t width)
{
    static const uint64_t f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
    static const uint64_t bf16[9] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e23};
    static const uint64_t f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                    0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    static const uint64_t f64[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                    0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                    0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
    const uint64_t *t = width == 15 ? bf16 : width == 16 ? f16 : width == 32 ? f32 : f64;
    for (int i = 0; i < 9; i++)
        if (t[i] == v)
            return i;
    return -1;
}

static void
print_float_name(const Pr *p, int i, bool wide)
{
    tl_text_puts(p->out, i == 8 && wide ? "0.15915494309189532" : float_names[i]);
}

/* How a constant of a type is looked at: 16 (half), 15 (bfloat), 17 (16-bit integer), 32, 64. */
static uint32_t
const_width(IsaType t)
{
    switch (t) {
    case ISA_T_F16:
    case ISA_T_V2F16:
        return 16;
    case ISA_T_BF16:
    case ISA_T_V2BF16:
        return 15;
    case ISA_T_B16:
    case ISA_T_U16:
    case ISA_T_I16:
        return 17;
    case ISA_T_F64:
    case ISA_T_B64:
    case ISA_T_U64:
    case ISA_T_I64:
        return 64;
    case ISA_T_B32:
    case ISA_T_U32:
    case ISA_T_I32:
    case ISA_T_F32:
    case ISA_T_V2I16:
    case ISA_T_V2F32:
    case ISA_T_V2B32:
    case ISA_T_ANY:
        break;
    }
    return 32;
}

static void
print_inline(const Pr *p, const IsaOpnd *o)
{
    uint32_t w = const_width((IsaType)o->type);
    if (is_inline_int((int32_t)o->bits) &&
        !(w == 64 && o->bits64 >> 32 != 0 && o->bits64 >> 32 != 0xffffffff)) {
        tl_text_printf(p->out, "%d", (int32_t)o->bits);
        return;
    }
    if (w == 17) { /* 16-bit integer operands show the half's bits */
        tl_text_printf(p->out, "0x%x", o->bits);
        return;
    }
    int i = inline_float_index(w == 64 ? o->bits64 : o->bits, w);
    if (i >= 0)
        print_float_name(p, i, w == 64);
}

/* A literal that an inline constant could have held is marked lit(). */
static void
print_literal(const Pr *p, const IsaOpnd *o)
{
    uint32_t w = const_width((IsaType)o->type), v = o->bits;
    bool lit = false;
    if (o->type == ISA_T_F64) {
        int i = inline_float_index(o->bits64, 64);
        if (v == 0) {
            tl_text_puts(p->out, "0");
            return;
        }
        if (i >= 0) {
            print_float_name(p, i, true);
            return;
        }
    } else if (w == 64) {
        lit = v <= 64;
    } else if (o->type == ISA_T_V2F16 || o->type == ISA_T_V2BF16) {
        lit = is_inline_int((int32_t)v) || inline_float_index(v, w) >= 0;
        w = 32;
    } else if (w == 16 || w == 15) {
        lit = is_inline_int((int16_t)v) || inline_float_index(v & 0xffff, w) >= 0;
    } else {
        lit = is_inline_int((int32_t)v) || inline_float_index(v, 32) >= 0;
    }
    if (w == 15)
        w = 32; /* bfloat literals show all bits */
    if (lit)
        tl_text_printf(p->out, "lit(0x%x)", v);
    else
        tl_text_printf(p->out, "0x%x", w <= 17 ? v & 0xffff : v);
}

/* s_setreg_imm32's value prints as an inline constant where it can. */
static void
print_imm32(const Pr *p, uint32_t v)
{
    int i = inline_float_index(v, 32);
    if (is_inline_int((int32_t)v))
        tl_text_printf(p->out, "%d", (int32_t)v);
    else if (i >= 0)
        print_float_name(p, i, false);
    else
        tl_text_printf(p->out, "0x%x", v);
}

/* ---- immediates with a form of their own
 * ------------------------------------------------------------------------ */

static void
print_waitcnt(const Pr *p, uint32_t v)
{
    uint32_t vm = (v & 15) | (v >> 14 & 3) << 4, exp = v >> 4 & 7, lgkm = v >> 8 & 15;
    bool all = vm == 63 && exp == 7 && lgkm == 15;
    const char *sep = "";
    if (vm != 63 || all) {
        tl_text_printf(p->out, "vmcnt(%u)", vm);
        sep = " ";
    }
    if (exp != 7 || all) {
        tl_text_printf(p->out, "%sexpcnt(%u)", sep, exp);
        sep = " ";
    }
    if (lgkm != 15 || all)
        tl_text_printf(p->out, "%slgkmcnt(%u)", sep, lgkm);
}

static const char *const hwregs_gfx9[] = {
    NULL,
    "HW_REG_MODE",
    "HW_REG_STATUS",
    "HW_REG_TRAPSTS",
    "HW_REG_HW_ID",
    "HW_REG_GPR_ALLOC",
    "HW_REG_LDS_ALLOC",
    "HW_REG_IB_STS",
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    "HW_REG_SH_MEM_BASES",
    "HW_REG_TBA_LO",
    "HW_REG_TBA_HI",
    "HW_REG_TMA_LO",
    "HW_REG_TMA_HI",
    "HW_REG_XCC_ID",
    "HW_REG_SQ_PERF_SNAPSHOT_DATA",
    "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
    "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
    "HW_REG_SQ_PERF_SNAPSHOT_PC_HI",
};

static void
print_hwreg(const Pr *p, uint32_t v)
{
    uint32_t id = v & 63, off = v >> 6 & 31, width = (v >> 11 & 31) + 1;
    const char *name = id < TL_COUNT(hwregs_gfx9) ? hwregs_gfx9[id] : NULL;
    if (p->arch == ISA_GFX90A && id >= 20)
        name = NULL;
    if (name)
        tl_text_printf(p->out, "hwreg(%s", name);
    else
        tl_text_printf(p->out, "hwreg(%u", id);
    if (off != 0 || width != 32)
        tl_text_printf(p->out, ", %u, %u", off, width);
    tl_text_puts(p->out, ")");
}

static const char *const msgs_gfx9[16] = {
    NULL,
    "MSG_INTERRUPT",
    "MSG_GS",
    "MSG_GS_DONE",
    "MSG_SAVEWAVE",
    "MSG_STALL_WAVE_GEN",
    "MSG_HALT_WAVES",
    "MSG_ORDERED_PS_DONE",
    "MSG_EARLY_PRIM_DEALLOC",
    "MSG_GS_ALLOC_REQ",
    "MSG_GET_DOORBELL",
    NULL,
    NULL,
    NULL,
    NULL,
    "MSG_SYSMSG",
};

/* Message, operation, stream; anything odd prints as three numbers, with stray bits as one. */
static void
print_sendmsg(const Pr *p, uint32_t v)
{
    static const char *const gs_ops[4] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
    static const char *const sys_ops[5] = {NULL, "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", NULL,
                                           "SYSMSG_OP_TTRACE_PC"};
    uint32_t id = v & 15, op = v >> 4 & 7, stream = v >> 8 & 3;
    const char *name = msgs_gfx9[id];
    if ((id == 2 || id == 3) && op < 4) {
        bool nop = op == 0;
        if (nop ? id == 3 && stream == 0 : true) {
            tl_text_printf(p->out, "sendmsg(%s, %s", name, gs_ops[op]);
            if (!nop)
                tl_text_printf(p->out, ", %u", stream);
            tl_text_puts(p->out, ")");
            return;
        }
    } else if (id == 15 && op >= 1 && op <= 4 && op != 3 && stream == 0) {
        tl_text_printf(p->out, "sendmsg(%s, %s)", name, sys_ops[op]);
        return;
    } else if (name && id != 2 && id != 3 && id != 15 && op == 0 && stream == 0) {
        tl_text_printf(p->out, "sendmsg(%s)", name);
        return;
    }
    if (v & ~0x37fu)
        tl_text_printf(p->out, "%u", v);
    else
        tl_text_printf(p->out, "sendmsg(%u, %u, %u)", id, op, stream);
}

static void
print_gpr_idx(const Pr *p, uint32_t v)
{
    static const char *const names[4] = {"SRC0", "SRC1", "SRC2", "DST"};
    const char *sep = "";
    if (v > 15) {
        tl_text_printf(p->out, "0x%x", v);
        return;
    }
    tl_text_puts(p->out, "gpr_idx(");
    for (uint32_t i = 0; i < 4; i++)
        if (v >> i & 1) {
            tl_text_printf(p->out, "%s%s", sep, names[i]);
            sep = ",";
        }
    tl_text_puts(p->out, ")");
}

static void
print_imm(const Pr *p, const IsaOpnd *o)
{
    uint32_t v = o->bits;
    switch ((IsaImm)p->row->imm) {
    case ISA_IMM_NONE:
        tl_text_printf(p->out, v <= 64 ? "%u" : "0x%x", v);
        return;
    case ISA_IMM_HEX:
        tl_text_printf(p->out, "0x%x", v);
        return;
    case ISA_IMM_DEC:
        if (p->in->op == ISA_OP_s_endpgm) {
            tl_text_printf(p->out, "%u", v);
            return;
        }
        tl_text_printf(p->out, v <= 64 ? "%u" : "0x%x", v);
        return;
    case ISA_IMM_BRANCH:
        tl_text_printf(p->out, "%u", v);
        return;
    case ISA_IMM_WAITCNT:
        print_waitcnt(p, v);
        return;
    case ISA_IMM_HWREG:
        print_hwreg(p, v);
        return;
    case ISA_IMM_SENDMSG:
        print_sendmsg(p, v);
        return;
    case ISA_IMM_GPRIDX:
        print_gpr_idx(p, v);
        return;
    }
}

/* ---- operands
 * -------------------------------------------------------------------------------------------------- */

static void
print_const(const Pr *p, const IsaOpnd *o)
{
    if (!(o->flags & ISA_LITERAL)) {
        print_inline(p, o);
    } else if ((p->row->flags & ISA_R_LIT) &&
               isa_pattern(p->row->pattern)->spec[o - p->in->opnd].field == ISA_F_LIT) {
        if (p->row->fam == ISA_FAM_SOPK)
            print_imm32(p, o->bits);
        else
            tl_text_printf(p->out, "0x%x", o->bits);
    } else {
        print_literal(p, o);
    }
}

static void
print_operand(const Pr *p, const IsaOpnd *o)
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
        break;
    case ISA_OPND_AGPR:
        print_tuple(p, "a", o->reg, o->nregs);
        break;
    case ISA_OPND_SGPR:
    case ISA_OPND_SRC:
        print_scalar(p, o->reg, o->nregs);
        break;
    case ISA_OPND_CONST:
        print_const(p, o);
        break;
    case ISA_OPND_IMM:
        print_imm(p, o);
        break;
    }
    if (o->flags & ISA_SEXT)
        tl_text_puts(p->out, ")");
    if (o->flags & ISA_ABS)
        tl_text_puts(p->out, "|");
    if (num && !(o->flags & ISA_ABS))
        tl_text_puts(p->out, ")");
}

/* ---- modifiers
 * -------------------------------------------------------------------------------------------------- */

static void
print_bits(const Pr *p, const char *name, uint32_t v, uint32_t n)
{
    tl_text_printf(p->out, " %s:[", name);
    for (uint32_t i = 0; i < n; i++)
        tl_text_printf(p->out, i ? ",%u" : "%u", v >> i & 1);
    tl_text_puts(p->out, "]");
}

static uint32_t
count_sources(const Pr *p)
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
print_clamp_omod(const Pr *p)
{
    static const char *const omods[4] = {"", " mul:2", " mul:4", " div:2"};
    if (p->in->clamp)
        tl_text_puts(p->out, " clamp");
    tl_text_puts(p->out, omods[p->in->omod]);
}

static void
print_vop3p(const Pr *p)
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
    if (in->clamp)
        tl_text_puts(p->out, " clamp");
}

static void
print_mai(const Pr *p)
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
print_dpp(const Pr *p)
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
        tl_text_printf(p->out, " row_newbcast:%u", c & 15);
    tl_text_printf(p->out, " row_mask:0x%x bank_mask:0x%x", in->row_mask, in->bank_mask);
    if (in->bound_ctrl)
        tl_text_puts(p->out, " bound_ctrl:1");
}

static const char *const sdwa_sels[8] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                         "WORD_0", "WORD_1", "DWORD",  "?"};

static void
print_sdwa(const Pr *p)
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

static void
print_cache_bits(const Pr *p)
{
    const IsaInst *in = p->in;
    if (in->glc)
        tl_text_puts(p->out, " glc");
    if (in->slc)
        tl_text_puts(p->out, " slc");
    if (in->sc0)
        tl_text_puts(p->out, " sc0");
    if (in->nt)
        tl_text_puts(p->out, " nt");
    if (in->sc1)
        tl_text_puts(p->out, p->arch == ISA_GFX90A ? " scc" : " sc1");
}

static void
print_swizzle(const Pr *p, uint32_t v)
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
print_mtbuf_format(const Pr *p)
{
    static const char *const dfmt[16] = {"INVALID",     "8",          "16",          "8_8",
                                         "32",          "16_16",      "10_11_11",    "11_11_10",
                                         "10_10_10_2",  "2_10_10_10", "8_8_8_8",     "32_32",
                                         "16_16_16_16", "32_32_32",   "32_32_32_32", "RESERVED_15"};
    static const char *const nfmt[8] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                        "UINT",  "SINT",  "RESERVED_6", "FLOAT"};
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
print_memory(const Pr *p)
{
    const IsaInst *in = p->in;
    switch ((IsaFam)p->row->fam) {
    case ISA_FAM_DS:
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
        if (p->row->fam == ISA_FAM_MTBUF)
            print_mtbuf_format(p);
        if (in->idxen)
            tl_text_puts(p->out, " idxen");
        if (in->offen)
            tl_text_puts(p->out, " offen");
        if (in->offset)
            tl_text_printf(p->out, " offset:%d", in->offset);
        print_cache_bits(p);
        if (in->lds)
            tl_text_puts(p->out, " lds");
        return;
    case ISA_FAM_SMEM:
        if (in->glc)
            tl_text_puts(p->out, " glc");
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
    case ISA_FAM_COUNT:
        return;
    }
}

static void
print_modifiers(const Pr *p)
{
    if (p->in->form == ISA_DPP) {
        print_dpp(p);
        return;
    }
    if (p->in->form == ISA_SDWA) {
        print_sdwa(p);
        return;
    }
    if (p->row->base == ISA_MAI) {
        print_mai(p);
    } else if (p->row->fam == ISA_FAM_VOP3P) {
        print_vop3p(p);
    } else if (p->row->fam == ISA_FAM_VOP3) {
        uint32_t n = count_sources(p), sel = (p->in->op_sel & ((1u << n) - 1)) | (p->in->op_sel >> 3) << n;
        if (p->in->bitop3)
            tl_text_printf(p->out, p->in->bitop3 <= 10 ? " bitop3:%u" : " bitop3:0x%x", p->in->bitop3);
        if (p->row->flags & ISA_R_OPSEL4) {
            if (p->in->op_sel)
                print_bits(p, "op_sel", p->in->op_sel, 4);
        } else if (sel) {
            print_bits(p, "op_sel", sel, n + 1);
        }
        print_clamp_omod(p);
    } else {
        print_memory(p);
    }
}

/* ---- the whole instruction
 * -------------------------------------------------------------------------------------- */

static void
print_smem_offset(const Pr *p, const IsaOpnd *o)
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

void
isa_print(IsaArch arch, bool wave64, const IsaInst *in, TlText *out)
{
    (void)wave64;
    const IsaRow *rows = isa_rows(arch);
    if (!rows || in->row >= ISA_ROW0__END || !rows[in->row].name_plus1) {
        tl_text_puts(out, "<not decoded>");
        return;
    }
    Pr p = {arch, in, &rows[in->row], out};
    tl_text_puts(out, isa_op_info(in->op)->name);
    if (in->form == ISA_DPP)
        tl_text_puts(out, "_dpp");
    else if (in->form == ISA_SDWA)
        tl_text_puts(out, "_sdwa");
    else
        tl_text_puts(out, p.row->suffix == ISA_SUF_E32 ? "_e32" : p.row->suffix == ISA_SUF_E64 ? "_e64" : "");
    const char *sep = " ";
    for (uint32_t i = 0; i < in->nopnds; i++) {
        const IsaOpnd *o = &in->opnd[i];
        if (o->flags & ISA_IMPLICIT)
            continue;
        if (in->op == ISA_OP_s_endpgm && o->bits == 0)
            continue;
        tl_text_puts(out, sep);
        sep = ", ";
        if (p.row->fam == ISA_FAM_SMEM && isa_pattern(p.row->pattern)->spec[i].field == ISA_F_SOFFSET)
            print_smem_offset(&p, o);
        else
            print_operand(&p, o);
    }
    print_modifiers(&p);
}
