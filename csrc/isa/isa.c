/* isa.c - the decoder. A word selects family and opcode, the row gives the operand pattern, each spec of the
 * pattern is read from its field (isa_opnd.c, isa_mem.c). No search, no state; every path bounds its reads by
 * `avail`.
 */
#include "isa/isa_dec.h"

/* ---- the extra word of vector instructions: DPP, SDWA
 * ------------------------------------------------------------ */

static bool
valid_dpp_ctrl(const IsaDec *d, uint32_t c)
{
    if (c <= 0xff)
        return true;
    if (c > 0x100 && c < 0x130)
        return (c & 15) != 0;
    if (c == 0x140 || c == 0x141 || (c >= 0x150 && c <= 0x15f))
        return true;
    if (d->gen != ISA_GEN9)
        return c >= 0x160 && c <= 0x16f;
    return c == 0x130 || c == 0x134 || c == 0x138 || c == 0x13c || c == 0x142 || c == 0x143;
}

static bool
dpp_word(IsaDec *d)
{
    IsaInst *in = d->in;
    uint32_t w = d->dpp;
    in->form = ISA_DPP;
    in->dpp_ctrl = (uint16_t)isa_bits(w, 8, 9);
    in->bound_ctrl = (uint8_t)isa_bits(w, 19, 1);
    in->bank_mask = (uint8_t)isa_bits(w, 24, 4);
    in->row_mask = (uint8_t)isa_bits(w, 28, 4);
    in->fi = d->gen != ISA_GEN9 && isa_bits(w, 18, 1);
    bool compare = d->gen != ISA_GEN9 && d->row->fam == ISA_FAM_VOPC;
    if ((isa_bits(w, 17, 1) && !compare) || (d->gen == ISA_GEN9 && isa_bits(w, 18, 1)))
        return isa_fail(d, "a reserved bit of the DPP word is set");
    if (isa_is_vop3(d) ? isa_bits(w, 20, 4) : d->row->fam == ISA_FAM_VOP1 && isa_bits(w, 22, 2))
        return isa_fail(d, "a reserved bit of the DPP word is set");
    if ((d->row->flags & ISA_R_DPP64) && in->dpp_ctrl < 0x150)
        return isa_fail(d, "64-bit operations have row_newbcast only");
    return valid_dpp_ctrl(d, in->dpp_ctrl) ? true : isa_fail(d, "reserved dpp_ctrl");
}

static bool
sdwa_word(IsaDec *d)
{
    IsaInst *in = d->in;
    uint32_t w = d->dpp, fl = d->row->flags;
    if (!(fl & ISA_R_SDWA))
        return isa_fail(d, "the opcode has no SDWA form");
    in->form = ISA_SDWA;
    in->src0_sel = (uint8_t)isa_bits(w, 16, 3);
    in->src1_sel = (uint8_t)isa_bits(w, 24, 3);
    if (d->row->fam != ISA_FAM_VOPC) {
        in->dst_sel = (uint8_t)isa_bits(w, 8, 3);
        in->dst_unused = (uint8_t)isa_bits(w, 11, 2);
        in->clamp = (uint8_t)isa_bits(w, 13, 1);
        in->omod = (uint8_t)isa_bits(w, 14, 2);
        if ((fl & ISA_R_SDWANODST) && in->dst_sel != 6)
            return isa_fail(d, "the opcode writes the whole register");
        if (fl & ISA_R_SDWANODST)
            in->dst_unused = 0;
        if (in->dst_unused == 3)
            return isa_fail(d, "reserved dst_unused");
        if ((in->clamp && !(fl & ISA_R_CLAMP)) || (in->omod && !(fl & ISA_R_OMOD)))
            return isa_fail(d, "an output modifier that the opcode does not take");
    }
    if (d->row->fam == ISA_FAM_VOP1 && isa_bits(w, 24, 8))
        return isa_fail(d, "a reserved bit is set");
    if (in->src0_sel == 7 || in->src1_sel == 7 || in->dst_sel == 7)
        return isa_fail(d, "reserved SDWA select");
    return true;
}

/* src0 = 249 SDWA (gfx9), 250 DPP, 233 and 234 DPP8 (gfx11 and later; 234: fetch inactive lanes). */
static bool
extra_word(IsaDec *d)
{
    uint32_t src0 = isa_is_vop3(d) ? isa_bits(d->w, 32, 9) : isa_bits(d->w, 0, 9);
    bool rdna = d->gen != ISA_GEN9, dpp8 = rdna && (src0 == 233 || src0 == 234);
    bool sdwa = !rdna && src0 == 249;
    if ((src0 != 250 && !dpp8 && !sdwa) || !isa_pattern(d->row->pattern)->n)
        return true;
    if (!rdna && isa_is_vop3(d))
        return true; /* a reserved source code there */
    if (d->avail < d->size + 4)
        return isa_fail(d, "the instruction runs past the end of the code");
    d->dpp = isa_rd32(d->code + d->size);
    d->size += 4;
    if (sdwa)
        return sdwa_word(d);
    if (!(d->row->flags & ISA_R_DPP))
        return isa_fail(d, "the opcode has no DPP form");
    if (!dpp8)
        return dpp_word(d);
    d->in->form = ISA_DPP8;
    d->in->dpp8 = d->dpp >> 8;
    d->in->fi = src0 == 234;
    return true;
}

static void
vop3_modifiers(IsaDec *d)
{
    IsaInst *in = d->in;
    uint32_t fl = d->row->flags;
    if (d->row->base == ISA_MAI) {
        in->cbsz = (uint8_t)isa_bits(d->w, 8, 3);
        in->abid = (uint8_t)isa_bits(d->w, 11, 4);
        in->blgp = (uint8_t)isa_bits(d->w, 61, 3);
        if (d->row->fam == ISA_FAM_VOP3PX) {
            in->abid = 0; /* there it only marks the scaled form */
            in->op_sel = (uint8_t)isa_bits(d->prefix, 11, 3);
            in->op_sel_hi = (uint8_t)(isa_bits(d->prefix, 59, 2) | isa_bits(d->prefix, 14, 1) << 2);
        }
        return;
    }
    if (fl & ISA_R_BITOP3)
        in->bitop3 =
            (uint8_t)(isa_bits(d->w, 61, 3) | isa_bits(d->w, 8, 3) << 3 | isa_bits(d->w, 59, 2) << 6);
    if (fl & ISA_R_CLAMP)
        in->clamp = (uint8_t)isa_bits(d->w, 15, 1);
    if (d->row->fam == ISA_FAM_VOP3) {
        if (fl & ISA_R_OMOD)
            in->omod = (uint8_t)isa_bits(d->w, 59, 2);
        if ((fl & ISA_R_OPSEL) || (d->gen != ISA_GEN9 && !(fl & ISA_R_VOP3B)))
            in->op_sel = (uint8_t)isa_bits(d->w, 11, 4);
        return;
    }
    in->op_sel = (uint8_t)isa_bits(d->w, 11, 3);
    if (fl & ISA_R_INDEXKEY) {
        in->index_key = in->op_sel & 3;
        in->op_sel = 0;
    }
    in->op_sel_hi = (uint8_t)(isa_bits(d->w, 59, 2) | isa_bits(d->w, 14, 1) << 2);
    if (!(fl & ISA_R_MIX)) {
        in->neg_lo = (uint8_t)isa_bits(d->w, 61, 3);
        in->neg_hi = (uint8_t)isa_bits(d->w, 8, 3);
    }
}

/* Bits that must be zero. Waves of 64 lanes hold half as many stored elements in a lane, so one more bit
 * picks their index set (but for 4-bit elements of half a register). */
static uint64_t
reserved_bits(const IsaDec *d)
{
    uint64_t m = isa_mask(d->row->mask), key0 = UINT64_C(1) << 11, key1 = UINT64_C(1) << 12;
    const IsaPattern *p = isa_pattern(d->row->pattern);
    if (!d->wave64 || !(d->row->flags & ISA_R_INDEXKEY) || !(d->row->flags & ISA_R_HALF64))
        return m;
    if (m & key0)
        return m & ~key0;
    return p->n > 1 && p->spec[1].nregs > 1 ? m & ~key1 : m;
}

/* ---- family and opcode
 * ------------------------------------------------------------------------------------------ */

typedef struct Slot {
    uint32_t row, size;
    uint8_t fam;
} Slot;

static const Slot no_slot = {0, 0, ISA_FAM_COUNT};

static Slot
slot(IsaFam fam, uint32_t row0, uint32_t op, uint32_t size)
{
    return (Slot){row0 + op, size, (uint8_t)fam};
}

/* The families whose place is the same everywhere: short vector and scalar instructions. */
static Slot
find_short(uint32_t w)
{
    if (!(w >> 31)) {
        uint32_t op = w >> 25;
        if (op == 0x3f)
            return slot(ISA_FAM_VOP1, ISA_ROW0_VOP1, isa_bits(w, 9, 8), 4);
        if (op == 0x3e)
            return slot(ISA_FAM_VOPC, ISA_ROW0_VOPC, isa_bits(w, 17, 8), 4);
        return slot(ISA_FAM_VOP2, ISA_ROW0_VOP2, op, 4);
    }
    uint32_t op = isa_bits(w, 23, 7);
    if (op == 0x7d)
        return slot(ISA_FAM_SOP1, ISA_ROW0_SOP1, isa_bits(w, 8, 8), 4);
    if (op == 0x7e)
        return slot(ISA_FAM_SOPC, ISA_ROW0_SOPC, isa_bits(w, 16, 7), 4);
    if (op == 0x7f)
        return slot(ISA_FAM_SOPP, ISA_ROW0_SOPP, isa_bits(w, 16, 7), 4);
    if (op >= 0x60)
        return slot(ISA_FAM_SOPK, ISA_ROW0_SOPK, op - 0x60, 4);
    return slot(ISA_FAM_SOP2, ISA_ROW0_SOP2, op, 4);
}

static Slot
flat_slot(uint32_t seg, uint32_t op, uint32_t size)
{
    static const uint32_t row0[3] = {ISA_ROW0_FLAT, ISA_ROW0_SCRATCH, ISA_ROW0_GLOBAL};
    static const IsaFam fam[3] = {ISA_FAM_FLAT, ISA_FAM_SCRATCH, ISA_FAM_GLOBAL};
    return seg < 3 ? slot(fam[seg], row0[seg], op, size) : no_slot;
}

/* gfx90a, gfx942, gfx950. */
static Slot
find_gfx9(uint32_t w)
{
    switch (w >> 26) {
    case 0x30:
        return slot(ISA_FAM_SMEM, ISA_ROW0_SMEM, isa_bits(w, 18, 8), 8);
    case 0x34:
        if (isa_bits(w, 23, 3) == 7)
            return slot(ISA_FAM_VOP3P, ISA_ROW0_VOP3P, isa_bits(w, 16, 7), 8);
        return slot(ISA_FAM_VOP3, ISA_ROW0_VOP3, isa_bits(w, 16, 10), 8);
    case 0x36:
        return slot(ISA_FAM_DS, ISA_ROW0_DS, isa_bits(w, 17, 8), 8);
    case 0x37:
        return flat_slot(isa_bits(w, 14, 2), isa_bits(w, 18, 7), 8);
    case 0x38:
        return slot(ISA_FAM_MUBUF, ISA_ROW0_MUBUF, isa_bits(w, 18, 7), 8);
    case 0x3a:
        return slot(ISA_FAM_MTBUF, ISA_ROW0_MTBUF, isa_bits(w, 15, 4), 8);
    default:
        return no_slot;
    }
}

/* gfx1100 and gfx1201. */
static Slot
find_rdna(IsaGen gen, uint32_t w)
{
    bool gfx12 = gen == ISA_GEN12;
    switch (w >> 26) {
    case 0x3d:
        return slot(ISA_FAM_SMEM, ISA_ROW0_SMEM, gfx12 ? isa_bits(w, 13, 6) : isa_bits(w, 18, 8), 8);
    case 0x35:
        return slot(ISA_FAM_VOP3, ISA_ROW0_VOP3, isa_bits(w, 16, 10), 8);
    case 0x33:
        if (isa_bits(w, 24, 2) == 2)
            return slot(ISA_FAM_LDSDIR, ISA_ROW0_LDSDIR, isa_bits(w, 20, 2), 4);
        if (isa_bits(w, 23, 3)) /* interpolation */
            return no_slot;
        return slot(ISA_FAM_VOP3P, ISA_ROW0_VOP3P, isa_bits(w, 16, 7), 8);
    case 0x36:
        return slot(ISA_FAM_DS, ISA_ROW0_DS, isa_bits(w, 18, 8), 8);
    case 0x37:
        return gfx12 ? no_slot : flat_slot(isa_bits(w, 16, 2), isa_bits(w, 18, 7), 8);
    case 0x3b:
        return gfx12 ? flat_slot(isa_bits(w, 24, 2), isa_bits(w, 14, 8), 12) : no_slot;
    case 0x38:
        return gfx12 ? no_slot : slot(ISA_FAM_MUBUF, ISA_ROW0_MUBUF, isa_bits(w, 18, 8), 8);
    case 0x3a:
        return gfx12 ? no_slot : slot(ISA_FAM_MTBUF, ISA_ROW0_MTBUF, isa_bits(w, 15, 4), 8);
    case 0x31:
        return gfx12 ? slot(ISA_FAM_MUBUF, ISA_ROW0_MUBUF, isa_bits(w, 14, 8), 12) : no_slot;
    default:
        return no_slot;
    }
}

/* What is refused: instructions of graphics by name. */
static const char *
graphics_name(IsaGen gen, uint32_t w)
{
    uint32_t head = w >> 26;
    bool image = gen == ISA_GEN12 ? head == 0x34 || head == 0x39 : head == 0x3c;
    if (image)
        return "image_* instructions (images, ray tracing) are not for compute";
    if (gen != ISA_GEN9 && head == 0x3e)
        return "exp and export instructions are not for compute";
    if (gen != ISA_GEN9 && w >> 24 == 0xcd)
        return "v_interp_* instructions are not for compute";
    return "reserved encoding family";
}

static IsaGen
generation(IsaArch a)
{
    switch (a) {
    case ISA_GFX1100:
        return ISA_GEN11;
    case ISA_GFX1201:
        return ISA_GEN12;
    case ISA_GFX90A:
    case ISA_GFX942:
    case ISA_GFX950:
    case ISA_ARCH_COUNT:
        break;
    }
    return ISA_GEN9;
}

static const uint8_t fam_enc[ISA_FAM_COUNT] = {
    [ISA_FAM_SOP1] = ISA_SOP1,   [ISA_FAM_SOP2] = ISA_SOP2,     [ISA_FAM_SOPK] = ISA_SOPK,
    [ISA_FAM_SOPC] = ISA_SOPC,   [ISA_FAM_SOPP] = ISA_SOPP,     [ISA_FAM_SMEM] = ISA_SMEM,
    [ISA_FAM_VOP1] = ISA_VOP1,   [ISA_FAM_VOP2] = ISA_VOP2,     [ISA_FAM_VOPC] = ISA_VOPC,
    [ISA_FAM_VOP3] = ISA_VOP3,   [ISA_FAM_VOP3P] = ISA_VOP3P,   [ISA_FAM_DS] = ISA_DS,
    [ISA_FAM_FLAT] = ISA_FLAT,   [ISA_FAM_GLOBAL] = ISA_GLOBAL, [ISA_FAM_SCRATCH] = ISA_SCRATCH,
    [ISA_FAM_MUBUF] = ISA_MUBUF, [ISA_FAM_MTBUF] = ISA_MTBUF,   [ISA_FAM_VOP3PX] = ISA_VOP3P,
    [ISA_FAM_DUAL] = ISA_VOPD,   [ISA_FAM_LDSDIR] = ISA_OTHER,
};

/* ---- operands
 * ----------------------------------------------------------------------------------------------------- */

/* A destination keeps old bits: SDWA with UNUSED_PRESERVE, DPP where some lane may not be written, blocks of
 * registers of which M0 picks some. */
static bool
keeps_old_bits(const IsaInst *in)
{
    if (in->op == ISA_OP_global_load_block || in->op == ISA_OP_scratch_load_block)
        return true;
    if (in->form == ISA_SDWA)
        return in->dst_unused == 2 && in->dst_sel != 6;
    return in->form == ISA_DPP && !(in->bound_ctrl && in->row_mask == 15 && in->bank_mask == 15);
}

/* An atomic is asked for the old value. */
static bool
returns_old(const IsaDec *d)
{
    return d->in->sc0 || d->in->glc || (d->gen == ISA_GEN12 && (d->in->th & 1));
}

static bool
fill_operands(IsaDec *d)
{
    IsaInst *in = d->in;
    const IsaPattern *p = isa_pattern(d->row->pattern);
    bool rtn = (d->row->flags & ISA_R_RTN) != 0, ret = rtn && returns_old(d);
    for (uint32_t i = 0; i < p->n; i++) {
        const IsaSpec *s = &p->spec[i];
        if (in->lds && (s->field == ISA_F_VDATA || s->field == ISA_F_VDST))
            continue;
        if (rtn && !ret && s->field == ISA_F_VDST)
            continue; /* no old value asked for */
        if (in->nopnds == ISA_MAX_OPNDS)
            return isa_fail(d, "too many operands");
        IsaOpnd *o = &in->opnd[in->nopnds];
        if (!isa_operand(d, s, o))
            return false;
        if (ret && (s->field == ISA_F_VDATA || s->field == ISA_F_SDATA) && d->row->fam != ISA_FAM_FLAT &&
            d->row->fam != ISA_FAM_GLOBAL)
            o->flags |= ISA_WRITE;
        if (s->field == ISA_F_VDST && keeps_old_bits(in))
            o->flags |= ISA_READ;
        if (d->dual && s->field == ISA_F_VCC)
            o->flags |= ISA_IMPLICIT;
        if ((o->flags & ISA_IMPLICIT) && o->kind == ISA_OPND_NONE)
            continue;
        in->nopnds++;
    }
    if (in->lds && in->nopnds < ISA_MAX_OPNDS) {
        IsaOpnd *o = &in->opnd[in->nopnds++];
        *o =
            (IsaOpnd){.kind = ISA_OPND_SGPR, .flags = ISA_READ | ISA_IMPLICIT, .nregs = 1, .type = ISA_T_B32};
        o->reg = 124;
    }
    while (in->ndst < in->nopnds && (in->opnd[in->ndst].flags & ISA_WRITE) &&
           !(in->opnd[in->ndst].flags & ISA_IMPLICIT))
        in->ndst++;
    return true;
}

/* ---- instructions
 * ------------------------------------------------------------------------------------------------- */

static void
set_row(IsaDec *d, uint32_t row)
{
    IsaInst *in = d->in;
    d->row = &isa_rows(d->arch)[row];
    in->op = (uint16_t)(d->row->name_plus1 - 1);
    in->row = (uint16_t)row;
    in->enc = d->row->base;
}

static bool
has_src1(const IsaRow *row)
{
    const IsaPattern *p = isa_pattern(row->pattern);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->spec[i].field == ISA_F_VSRC1)
            return true;
    return false;
}

/* VOPD: two short instructions, X and Y, that share a literal. */
static bool
decode_dual(IsaDec *d, uint32_t w0)
{
    IsaInst *in = d->in;
    in->size = 8;
    if (d->avail < 8)
        return isa_fail(d, "the instruction runs past the end of the code");
    d->size = 8;
    d->w = (uint64_t)isa_rd32(d->code + 4) << 32 | w0;
    uint32_t x = isa_dual_row(d->arch, 0, isa_bits(w0, 22, 4)),
             y = isa_dual_row(d->arch, 1, isa_bits(w0, 17, 5));
    if (x == UINT32_MAX || y == UINT32_MAX)
        return isa_fail(d, "unknown VOPD opcode");
    in->form = ISA_VOPD;
    d->dual = 'y'; /* first only for its opcode */
    set_row(d, y);
    in->op_y = in->op;
    in->row_y = in->row;
    const IsaRow *row_y = d->row;
    d->dual = 'x';
    set_row(d, x);
    if ((!has_src1(d->row) && isa_bits(d->w, 9, 8)) || (!has_src1(row_y) && isa_bits(d->w, 41, 8)))
        return isa_fail(d, "a reserved bit is set");
    if (!fill_operands(d))
        return false;
    in->opnd_y = in->nopnds;
    d->dual = 'y';
    d->row = row_y;
    return fill_operands(d);
}

/* Scaled MFMA (gfx950): a prefix of 8 bytes, then the matrix instruction. */
static bool
find_scaled(IsaDec *d, uint32_t *w0, Slot *s)
{
    if (s->fam != ISA_FAM_VOP3P || d->arch != ISA_GFX950 || isa_bits(*w0, 16, 7) != 0x2c || d->avail < 16)
        return false;
    uint32_t w2 = isa_rd32(d->code + 8), row = ISA_ROW0_VOP3PX + isa_bits(w2, 16, 7);
    if (w2 >> 23 != 0x1a7 || !isa_rows(d->arch)[row].name_plus1)
        return false;
    d->prefix = (uint64_t)isa_rd32(d->code + 4) << 32 | *w0;
    *w0 = w2;
    *s = (Slot){row, 16, ISA_FAM_VOP3PX};
    return true;
}

static bool
decode(IsaDec *d)
{
    IsaInst *in = d->in;
    if (!isa_rows(d->arch))
        return isa_fail(d, "no instruction table for this chip");
    if (d->avail < 4)
        return isa_fail(d, "the instruction runs past the end of the code");
    uint32_t w0 = isa_rd32(d->code);
    if (d->gen != ISA_GEN9 && w0 >> 26 == 0x32)
        return decode_dual(d, w0);
    Slot s = w0 >> 30 != 3 ? find_short(w0) : d->gen == ISA_GEN9 ? find_gfx9(w0) : find_rdna(d->gen, w0);
    if (!s.size)
        return isa_fail(d, graphics_name(d->gen, w0));
    uint32_t head = find_scaled(d, &w0, &s) ? 8 : 0; /* bytes before the part that the rows describe */
    in->size = (uint8_t)s.size;
    if (!isa_rows(d->arch)[s.row].name_plus1)
        return isa_fail(d, s.row == ISA_ROW0_LDSDIR
                               ? "interpolation parameters (param_load) are not for compute"
                               : "unknown opcode");
    if (d->avail < s.size)
        return isa_fail(d, "the instruction runs past the end of the code");
    set_row(d, s.row);
    d->size = s.size;
    d->w = s.size >= 8 ? (uint64_t)isa_rd32(d->code + head + 4) << 32 | w0 : w0;
    d->w2 = s.size == 12 ? isa_rd32(d->code + 8) : 0;
    if (d->w & reserved_bits(d))
        return isa_fail(d, "a reserved bit is set");
    in->form = fam_enc[s.fam];
    const uint64_t hi1 = (uint64_t)3 << 59 | 1 << 14;
    if ((d->row->flags & ISA_R_HI1) && (d->w & hi1) != hi1)
        return isa_fail(d, "a reserved bit is clear");
    if (isa_is_vop3(d))
        vop3_modifiers(d);
    if (d->gen != ISA_GEN9 && s.fam == ISA_FAM_VOP3 && in->enc == ISA_VOPC &&
        isa_pattern(d->row->pattern)->spec[0].field != ISA_F_VDST && isa_bits(d->w, 0, 8) != 126)
        return isa_fail(d, "a reserved bit is set"); /* v_cmpx names exec as its destination */
    bool vector = s.fam >= ISA_FAM_VOP1 && s.fam <= ISA_FAM_VOP3PX;
    return (vector ? extra_word(d) : isa_mem_modifiers(d)) && fill_operands(d);
}

bool
isa_decode(IsaArch arch, bool wave64, const uint8_t *code, size_t avail, IsaInst *inst, const char **why)
{
    memset(inst, 0, sizeof *inst);
    IsaDec d = {
        .arch = arch, .gen = generation(arch), .wave64 = wave64, .in = inst, .code = code, .avail = avail};
    inst->size = 4;
    bool ok = decode(&d);
    if (ok)
        inst->size = (uint8_t)d.size;
    if (why)
        *why = ok ? NULL : d.why;
    return ok;
}
