/* isa.c - the decoder. A word selects family and opcode, the row gives the operand pattern, each spec of the
 * pattern is read from its field. No search, no state; every path bounds its reads by `avail`.
 */
#include "isa/isa_int.h"

typedef struct Dec {
    IsaArch arch;
    IsaInst *in;
    const IsaRow *row;
    const char *why;
    uint64_t w;      /* the encoding's first 64 bits (the upper half is only there for 64-bit encodings) */
    uint64_t prefix; /* scaled MFMA: the first part, with the scales */
    const uint8_t *code;
    size_t avail;
    uint32_t size; /* bytes read so far */
    uint32_t lit;
    bool have_lit;
    bool acc; /* DS/FLAT/MUBUF: data registers are AGPRs */
} Dec;

static uint32_t
rd32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t
bits(uint64_t w, uint32_t lo, uint32_t n)
{
    return (uint32_t)(w >> lo) & ((1u << n) - 1);
}

static bool
fail(Dec *d, const char *why)
{
    d->why = why;
    return false;
}

/* ---- constants
 * ----------------------------------------------------------------------------------------------- */

static const uint32_t inline_f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                       0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
static const uint16_t inline_f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                       0xc000, 0x4400, 0xc400, 0x3118};
static const uint16_t inline_bf16[9] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000,
                                        0xc000, 0x4080, 0xc080, 0x3e23};
static const uint64_t inline_f64[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                       0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                       0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

static void
set_inline_float(IsaOpnd *o, uint32_t i)
{
    switch ((IsaType)o->type) {
    case ISA_T_F16:
    case ISA_T_V2F16:
    case ISA_T_B16:
    case ISA_T_U16:
    case ISA_T_I16:
        o->bits = inline_f16[i];
        o->bits64 = o->bits;
        return;
    case ISA_T_BF16:
    case ISA_T_V2BF16:
        o->bits = inline_bf16[i];
        o->bits64 = o->bits;
        return;
    case ISA_T_F64:
    case ISA_T_B64:
    case ISA_T_U64:
    case ISA_T_I64:
        o->bits64 = inline_f64[i];
        o->bits = (uint32_t)o->bits64;
        return;
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
    o->bits = inline_f32[i];
    o->bits64 = o->bits;
}

static bool
read_literal(Dec *d)
{
    if (d->have_lit)
        return true;
    if (d->avail < d->size + 4u)
        return fail(d, "the literal runs past the end of the code");
    d->lit = rd32(d->code + d->size);
    d->size += 4;
    d->have_lit = true;
    return true;
}

static void
set_literal(const Dec *d, IsaOpnd *o)
{
    o->flags |= ISA_LITERAL;
    o->bits = d->lit;
    o->bits64 = o->type == ISA_T_F64   ? (uint64_t)d->lit << 32
                : o->type == ISA_T_I64 ? (uint64_t)(int64_t)(int32_t)d->lit
                                       : d->lit;
}

/* ---- operand codes
 * ------------------------------------------------------------------------------------------- */

static void
set_reg(IsaOpnd *o, IsaOpndKind kind, uint32_t reg)
{
    o->kind = (uint8_t)kind;
    o->reg = (uint16_t)reg;
}

/* A vector register tuple must be inside the file. */
static bool
vector_reg(Dec *d, IsaOpnd *o, bool agpr, uint32_t reg)
{
    if (reg + o->nregs > 256)
        return fail(d, "a vector register tuple runs past register 255");
    if (o->nregs > 1 && (reg & 1) && d->arch <= ISA_GFX950)
        return fail(d, "a vector register tuple is not aligned");
    set_reg(o, agpr ? ISA_OPND_AGPR : ISA_OPND_VGPR, reg);
    return true;
}

/* A scalar register by its 7-bit code, as a source or destination of nregs registers. */
static bool
scalar_reg(Dec *d, IsaOpnd *o, uint32_t code)
{
    uint32_t n = o->nregs;
    uint32_t align = n >= 4 ? 4 : n == 2 ? 2 : 1;
    bool sgpr = code < 102, ttmp = code >= 108 && code < 124;
    if (sgpr || ttmp) {
        uint32_t first = ttmp ? code - 108 : code, count = ttmp ? 16 : 102;
        if (first % align)
            return fail(d, "a scalar register tuple is not aligned");
        if (first + n > count)
            return fail(d, "a scalar register tuple runs past the last register");
    } else if (!isa_special_name(d->arch, code, n)) {
        return fail(d, "reserved scalar register code");
    }
    set_reg(o, ISA_OPND_SGPR, code);
    return true;
}

/* A 9-bit (or, without vector registers, 8-bit) source code. */
static bool
source(Dec *d, IsaOpnd *o, uint32_t code, bool agpr)
{
    if (code >= 256)
        return vector_reg(d, o, agpr, code - 256);
    if (code < 128)
        return scalar_reg(d, o, code);
    o->kind = ISA_OPND_CONST;
    if (code <= 208) {
        int32_t v = code <= 192 ? (int32_t)code - 128 : 192 - (int32_t)code;
        o->bits = (uint32_t)v;
        o->bits64 = (uint64_t)(int64_t)v;
    } else if (code >= 240 && code <= 248) {
        set_inline_float(o, code - 240);
    } else if (code == 255) {
        if (!read_literal(d))
            return false;
        set_literal(d, o);
    } else {
        if (!isa_special_name(d->arch, code, o->nregs))
            return fail(d, "reserved source operand code");
        set_reg(o, ISA_OPND_SRC, code);
        return true;
    }
    o->nregs = 0;
    return true;
}

/* ---- operands of each field
 * ------------------------------------------------------------------------------------ */

static bool
is_vop3(const Dec *d)
{
    return d->row->fam == ISA_FAM_VOP3 || d->row->fam == ISA_FAM_VOP3P || d->row->fam == ISA_FAM_VOP3PX;
}

/* Registers of A (i 0) and B (i 1) of the f8f6f4 instructions: by element type. */
static uint8_t
f8f6f4_regs(const IsaInst *in, uint32_t i)
{
    uint32_t type = i == 0 ? in->cbsz : in->blgp;
    return type == 4 ? 4 : type == 2 || type == 3 ? 6 : 8;
}

/* The source operand number i (0..2) of a vector encoding, with its modifiers. */
static bool
vector_source(Dec *d, const IsaSpec *s, IsaOpnd *o, uint32_t i)
{
    IsaInst *in = d->in;
    bool agpr = (s->flags & ISA_S_AGPR) != 0;
    if (in->form == ISA_DPP) {
        if (s->flags & ISA_S_MOD)
            o->flags |= (bits(d->w, 52 + 2 * i, 1) ? ISA_NEG : 0) | (bits(d->w, 53 + 2 * i, 1) ? ISA_ABS : 0);
        else if (bits(d->w, 52 + 2 * i, 2))
            return fail(d, "a modifier that the operand does not take");
        return vector_reg(d, o, agpr, i == 0 ? bits(d->w, 32, 8) : bits(d->w, 9, 8));
    }
    if (in->form == ISA_SDWA) {
        uint32_t sel = bits(d->w, 48 + 8 * i, 8);
        uint32_t code = (i == 0 ? bits(d->w, 32, 8) : bits(d->w, 9, 8)) | (sel & 0x80 ? 0 : 256);
        if ((sel & 0x40) || (sel & (s->flags & ISA_S_MOD ? 0x08 : 0x30)))
            return fail(d, "a modifier that the operand does not take");
        if (s->flags & ISA_S_MOD)
            o->flags |= (sel & 0x10 ? ISA_NEG : 0) | (sel & 0x20 ? ISA_ABS : 0);
        else if (sel & 0x08)
            o->flags |= ISA_SEXT;
        return code == 255 ? fail(d, "SDWA takes no literal") : source(d, o, code, agpr);
    }
    uint32_t code = is_vop3(d) ? bits(d->w, 32 + 9 * i, 9) : bits(d->w, 0, 9);
    if ((s->flags & ISA_S_VONLY) && code < 256)
        return fail(d, "the operand must be a vector register");
    if ((s->flags & ISA_S_SONLY) && code >= 256)
        return fail(d, "the operand must be a scalar");
    if ((s->flags & ISA_S_REG) && code >= 128)
        return fail(d, "the operand must be a scalar register");
    if (!is_vop3(d))
        return source(d, o, code, agpr);
    if (d->row->base == ISA_MAI) {
        if ((d->row->flags & ISA_R_F8F6F4) && i < 2)
            o->nregs = f8f6f4_regs(in, i);
        if (s->flags & ISA_S_ACC)
            agpr = i == 2 ? bits(d->w, 15, 1) : bits(d->w, 59 + i, 1);
        if (i == 2 && (code < 128 || (code > 208 && code < 240) || (code > 248 && code < 256)))
            return fail(d, "the accumulator must be a vector register or an inline constant");
    } else if (s->flags & ISA_S_MOD) {
        if (d->row->fam == ISA_FAM_VOP3 || (d->row->flags & ISA_R_MIX)) {
            o->flags |= bits(d->w, 61 + i, 1) ? ISA_NEG : 0;
            if (!(d->row->flags & ISA_R_VOP3B))
                o->flags |= bits(d->w, 8 + i, 1) ? ISA_ABS : 0;
        }
    }
    if (code == 255)
        return fail(d, "this encoding takes no literal");
    return source(d, o, code, agpr);
}

static bool
vector_dst(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    uint32_t reg = is_vop3(d) ? bits(d->w, 0, 8) : bits(d->w, 17, 8);
    if (s->flags & ISA_S_SGPR)
        return reg > 127 ? fail(d, "reserved scalar register code") : scalar_reg(d, o, reg);
    bool agpr = (s->flags & ISA_S_AGPR) || ((s->flags & ISA_S_ACC) && bits(d->w, 15, 1));
    return vector_reg(d, o, agpr, reg);
}

static void
set_none(IsaOpnd *o)
{
    o->kind = ISA_OPND_NONE;
    o->nregs = 0;
}

/* Addresses and data of FLAT, GLOBAL, SCRATCH. */
static bool
flat_field(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    uint32_t seg = d->row->fam, saddr = bits(d->w, 48, 7);
    bool gfx90a = d->arch == ISA_GFX90A;
    bool sve = seg == ISA_FAM_SCRATCH && (gfx90a ? saddr == 0x7f : bits(d->w, 13, 1));
    switch ((IsaField)s->field) {
    case ISA_F_VADDR:
        if (seg == ISA_FAM_SCRATCH && !sve) {
            set_none(o);
            return true;
        }
        if (seg == ISA_FAM_GLOBAL)
            o->nregs = saddr == 0x7f ? 2 : 1;
        if (o->nregs == 2)
            o->type = ISA_T_B64;
        return vector_reg(d, o, false, bits(d->w, 32, 8));
    case ISA_F_SADDR:
        if (saddr == 0x7f) {
            set_none(o);
            return true;
        }
        if (seg == ISA_FAM_GLOBAL && saddr >= 125)
            return fail(d, "exec and null are no address");
        return scalar_reg(d, o, saddr);
    default:
        if (d->acc && !(s->flags & ISA_S_ACC) && s->field == ISA_F_VDST)
            return fail(d, "the result may not go to an accumulation register");
        return vector_reg(d, o, (s->flags & ISA_S_AGPR) || ((s->flags & ISA_S_ACC) && d->acc),
                          s->field == ISA_F_VDST ? bits(d->w, 56, 8) : bits(d->w, 40, 8));
    }
}

static bool
mubuf_field(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    IsaInst *in = d->in;
    switch ((IsaField)s->field) {
    case ISA_F_VADDR:
        o->nregs = (uint8_t)(in->offen + in->idxen);
        if (!o->nregs) {
            set_none(o);
            return true;
        }
        if (o->nregs == 2)
            o->type = ISA_T_B64;
        return vector_reg(d, o, false, bits(d->w, 32, 8));
    case ISA_F_SRSRC:
        return scalar_reg(d, o, bits(d->w, 48, 5) << 2);
    case ISA_F_SOFFSET: {
        uint32_t code = bits(d->w, 56, 8);
        return code == 255 ? fail(d, "this encoding takes no literal") : source(d, o, code, false);
    }
    default:
        return vector_reg(d, o, (s->flags & ISA_S_ACC) && d->acc, bits(d->w, 40, 8));
    }
}

static bool
smem_field(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    bool imm = bits(d->w, 17, 1), so = bits(d->w, 14, 1);
    switch ((IsaField)s->field) {
    case ISA_F_SDATA:
        if ((s->flags & ISA_S_NOEXEC) && bits(d->w, 6, 7) >= 124 && bits(d->w, 6, 7) != 125)
            return fail(d, "exec and m0 may not be loaded or stored");
        return scalar_reg(d, o, bits(d->w, 6, 7));
    case ISA_F_SBASE:
        return scalar_reg(d, o, bits(d->w, 0, 6) << 1);
    default:
        if (imm && !so) {
            set_none(o);
            return true;
        }
        return scalar_reg(d, o, so ? bits(d->w, 57, 7) : bits(d->w, 32, 7));
    }
}

static bool
fixed_sgpr(IsaOpnd *o, IsaOpndKind kind, uint32_t code)
{
    set_reg(o, kind, code);
    return true;
}

static bool
scalar_alu_field(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    if (s->field == ISA_F_VDST)
        return scalar_reg(d, o, bits(d->w, 16, 7));
    uint32_t code = bits(d->w, s->field == ISA_F_SRC0 ? 0 : 8, 8);
    if ((s->flags & ISA_S_REG) && code >= 128)
        return fail(d, "the operand must be a scalar register");
    return source(d, o, code, false);
}

static bool
operand(Dec *d, const IsaSpec *s, IsaOpnd *o)
{
    uint32_t fam = d->row->fam;
    o->nregs = s->nregs;
    o->type = s->type;
    o->flags = (uint8_t)((s->flags & ISA_S_R ? ISA_READ : 0) | (s->flags & ISA_S_W ? ISA_WRITE : 0) |
                         (s->flags & ISA_S_IMPL ? ISA_IMPLICIT : 0));
    switch ((IsaField)s->field) {
    case ISA_F_VCC:
        /* an SDWA compare may name another destination */
        if (d->in->form == ISA_SDWA && fam == ISA_FAM_VOPC && bits(d->w, 47, 1))
            return scalar_reg(d, o, bits(d->w, 40, 7));
        return fixed_sgpr(o, ISA_OPND_SGPR, 106);
    case ISA_F_EXEC:
        return fixed_sgpr(o, ISA_OPND_SGPR, 126);
    case ISA_F_M0:
        return fixed_sgpr(o, ISA_OPND_SGPR, 124);
    case ISA_F_FLATSCR:
        return fixed_sgpr(o, ISA_OPND_SGPR, 102);
    case ISA_F_SCC:
        return fixed_sgpr(o, ISA_OPND_SRC, 253);
    case ISA_F_SIMM16:
        o->kind = ISA_OPND_IMM;
        o->bits = bits(d->w, 0, 16);
        o->bits64 = o->bits;
        return true;
    case ISA_F_SRC1IMM:
        o->kind = ISA_OPND_IMM;
        o->bits = bits(d->w, 8, 8);
        o->bits64 = o->bits;
        return true;
    case ISA_F_LIT:
        if (!read_literal(d))
            return false;
        o->kind = ISA_OPND_CONST;
        set_literal(d, o);
        return true;
    case ISA_F_SDATAIMM:
        o->kind = ISA_OPND_IMM;
        o->bits = bits(d->w, 6, 7);
        o->bits64 = o->bits;
        return true;
    case ISA_F_SDATA:
    case ISA_F_SBASE:
        return smem_field(d, s, o);
    case ISA_F_SRSRC:
        return mubuf_field(d, s, o);
    case ISA_F_SOFFSET:
        return fam == ISA_FAM_SMEM ? smem_field(d, s, o) : mubuf_field(d, s, o);
    case ISA_F_VADDR:
    case ISA_F_VDATA:
    case ISA_F_SADDR:
        return fam >= ISA_FAM_MUBUF ? mubuf_field(d, s, o) : flat_field(d, s, o);
    case ISA_F_ADDR:
        return vector_reg(d, o, false, bits(d->w, 32, 8));
    case ISA_F_DATA0:
        return vector_reg(d, o, (s->flags & ISA_S_ACC) && d->acc, bits(d->w, 40, 8));
    case ISA_F_DATA1:
        return vector_reg(d, o, (s->flags & ISA_S_ACC) && d->acc, bits(d->w, 48, 8));
    case ISA_F_SCALE0:
        return source(d, o, bits(d->prefix, 32, 9), false);
    case ISA_F_SCALE1:
        return source(d, o, bits(d->prefix, 41, 9), false);
    case ISA_F_SDST:
        return scalar_reg(d, o, bits(d->w, 8, 7));
    case ISA_F_VSRC1:
        if (d->in->form == ISA_DPP || d->in->form == ISA_SDWA)
            return vector_source(d, s, o, 1);
        return vector_reg(d, o, false, bits(d->w, 9, 8));
    case ISA_F_VDST:
        if (fam <= ISA_FAM_SOPP)
            return scalar_alu_field(d, s, o);
        if (fam == ISA_FAM_DS)
            return vector_reg(d, o, (s->flags & ISA_S_ACC) && d->acc, bits(d->w, 56, 8));
        if (fam >= ISA_FAM_FLAT)
            return flat_field(d, s, o);
        return vector_dst(d, s, o);
    case ISA_F_SRC0:
    case ISA_F_SRC1:
    case ISA_F_SRC2:
        if (fam <= ISA_FAM_SOPP)
            return scalar_alu_field(d, s, o);
        return vector_source(d, s, o, s->field - ISA_F_SRC0);
    }
    return fail(d, "operand field without a decoder");
}

/* ---- what a family has besides operands
 * ------------------------------------------------------------------------ */

static bool
valid_dpp_ctrl(uint32_t c)
{
    if (c <= 0xff || (c >= 0x150 && c <= 0x15f))
        return true;
    if (c > 0x100 && c < 0x130)
        return (c & 15) != 0;
    return c == 0x130 || c == 0x134 || c == 0x138 || c == 0x13c || (c >= 0x140 && c <= 0x143);
}

/* The extra word of VOP1, VOP2, VOPC: src0 = 249 SDWA, 250 DPP. */
static bool
extra_word(Dec *d)
{
    IsaInst *in = d->in;
    uint32_t src0 = bits(d->w, 0, 9);
    if ((src0 != 249 && src0 != 250) || !isa_pattern(d->row->pattern)->n)
        return true;
    if (d->avail < 8)
        return fail(d, "the instruction runs past the end of the code");
    d->w = (d->w & 0xffffffff) | (uint64_t)rd32(d->code + 4) << 32;
    d->size = 8;
    if (src0 == 250) {
        if (!(d->row->flags & ISA_R_DPP))
            return fail(d, "the opcode has no DPP form");
        in->form = ISA_DPP;
        in->dpp_ctrl = (uint16_t)bits(d->w, 40, 9);
        in->bound_ctrl = (uint8_t)bits(d->w, 51, 1);
        in->bank_mask = (uint8_t)bits(d->w, 56, 4);
        in->row_mask = (uint8_t)bits(d->w, 60, 4);
        if (bits(d->w, 49, 2) || (d->row->fam == ISA_FAM_VOP1 && bits(d->w, 54, 2)))
            return fail(d, "a reserved bit is set");
        if ((d->row->flags & ISA_R_DPP64) && in->dpp_ctrl < 0x150)
            return fail(d, "64-bit operations have row_newbcast only");
        return valid_dpp_ctrl(in->dpp_ctrl) ? true : fail(d, "reserved dpp_ctrl");
    }
    if (!(d->row->flags & ISA_R_SDWA))
        return fail(d, "the opcode has no SDWA form");
    in->form = ISA_SDWA;
    in->src0_sel = (uint8_t)bits(d->w, 48, 3);
    in->src1_sel = (uint8_t)bits(d->w, 56, 3);
    if (d->row->fam != ISA_FAM_VOPC) {
        in->dst_sel = (uint8_t)bits(d->w, 40, 3);
        in->dst_unused = (uint8_t)bits(d->w, 43, 2);
        in->clamp = (uint8_t)bits(d->w, 45, 1);
        in->omod = (uint8_t)bits(d->w, 46, 2);
        if ((d->row->flags & ISA_R_SDWANODST) && in->dst_sel != 6)
            return fail(d, "the opcode writes the whole register");
        if (d->row->flags & ISA_R_SDWANODST)
            in->dst_unused = 0;
        if (in->dst_unused == 3)
            return fail(d, "reserved dst_unused");
        if ((in->clamp && !(d->row->flags & ISA_R_CLAMP)) || (in->omod && !(d->row->flags & ISA_R_OMOD)))
            return fail(d, "an output modifier that the opcode does not take");
    }
    if (d->row->fam == ISA_FAM_VOP1 && bits(d->w, 56, 8))
        return fail(d, "a reserved bit is set");
    if (in->src0_sel == 7 || in->src1_sel == 7 || in->dst_sel == 7)
        return fail(d, "reserved SDWA select");
    return true;
}

static void
vop3_modifiers(Dec *d)
{
    IsaInst *in = d->in;
    uint32_t fl = d->row->flags;
    if (d->row->base == ISA_MAI) {
        in->cbsz = (uint8_t)bits(d->w, 8, 3);
        in->abid = (uint8_t)bits(d->w, 11, 4);
        in->blgp = (uint8_t)bits(d->w, 61, 3);
        if (d->row->fam == ISA_FAM_VOP3PX) {
            in->abid = 0; /* there it only marks the scaled form */
            in->op_sel = (uint8_t)bits(d->prefix, 11, 3);
            in->op_sel_hi = (uint8_t)(bits(d->prefix, 59, 2) | bits(d->prefix, 14, 1) << 2);
        }
        return;
    }
    if (fl & ISA_R_BITOP3)
        in->bitop3 = (uint8_t)(bits(d->w, 61, 3) | bits(d->w, 8, 3) << 3 | bits(d->w, 59, 2) << 6);
    if (fl & ISA_R_CLAMP)
        in->clamp = (uint8_t)bits(d->w, 15, 1);
    if (d->row->fam == ISA_FAM_VOP3) {
        if (fl & ISA_R_OMOD)
            in->omod = (uint8_t)bits(d->w, 59, 2);
        if (fl & ISA_R_OPSEL)
            in->op_sel = (uint8_t)bits(d->w, 11, 4);
        return;
    }
    in->op_sel = (uint8_t)bits(d->w, 11, 3);
    in->op_sel_hi = (uint8_t)(bits(d->w, 59, 2) | bits(d->w, 14, 1) << 2);
    if (!(fl & ISA_R_MIX)) {
        in->neg_lo = (uint8_t)bits(d->w, 61, 3);
        in->neg_hi = (uint8_t)bits(d->w, 8, 3);
    }
}

/* The cache bits under the names this chip gives them. */
static void
cache_bits(Dec *d, uint32_t glc, uint32_t slc, uint32_t scc)
{
    IsaInst *in = d->in;
    if (d->arch == ISA_GFX90A) {
        in->glc = (uint8_t)glc;
        in->slc = (uint8_t)slc;
        in->sc1 = (uint8_t)scc;
    } else {
        in->sc0 = (uint8_t)glc;
        in->nt = (uint8_t)slc;
        in->sc1 = (uint8_t)scc;
    }
}

static bool
memory_modifiers(Dec *d)
{
    IsaInst *in = d->in;
    uint64_t w = d->w;
    switch ((IsaFam)d->row->fam) {
    case ISA_FAM_SMEM:
        in->glc = (d->row->flags & ISA_R_GLC) && bits(w, 16, 1);
        if (bits(w, 17, 1))
            in->offset = (int32_t)(bits(w, 32, 21) << 11) >> 11;
        in->saddr_present = (uint8_t)(bits(w, 17, 1) & bits(w, 14, 1)); /* a register and a number */
        return true;
    case ISA_FAM_DS:
        in->offset = (int32_t)bits(w, 0, 16);
        in->offset0 = (uint8_t)bits(w, 0, 8);
        in->offset1 = (uint8_t)bits(w, 8, 8);
        in->gds = (uint8_t)bits(w, 16, 1);
        d->acc = bits(w, 25, 1);
        if (in->gds && !(d->row->flags & (ISA_R_GDS | ISA_R_GDSONLY)))
            return fail(d, "the opcode has no GDS form");
        return in->gds || !(d->row->flags & ISA_R_GDSONLY) ? true : fail(d, "the opcode needs GDS");
    case ISA_FAM_FLAT:
    case ISA_FAM_GLOBAL:
    case ISA_FAM_SCRATCH:
        if (d->row->fam == ISA_FAM_FLAT)
            in->offset = (int32_t)bits(w, 0, 13);
        else
            in->offset = (int32_t)(bits(w, 0, 13) << 19) >> 19;
        cache_bits(d, bits(w, 16, 1), bits(w, 17, 1), bits(w, 25, 1));
        d->acc = bits(w, 55, 1);
        if (d->row->flags & ISA_R_LDS)
            in->lds = (uint8_t)bits(w, 13, 1);
        if (in->lds && d->acc)
            return fail(d, "a reserved bit is set");
        in->saddr_present = d->row->fam != ISA_FAM_FLAT && bits(w, 48, 7) != 0x7f;
        return true;
    case ISA_FAM_MUBUF:
    case ISA_FAM_MTBUF:
        in->offset = (int32_t)bits(w, 0, 12);
        in->offen = (uint8_t)bits(w, 12, 1);
        in->idxen = (uint8_t)bits(w, 13, 1);
        d->acc = bits(w, 55, 1);
        if (d->row->fam == ISA_FAM_MTBUF) {
            in->format = (uint8_t)(bits(w, 19, 4) | bits(w, 23, 3) << 4);
            cache_bits(d, bits(w, 14, 1), bits(w, 54, 1), bits(w, 53, 1));
            return true;
        }
        cache_bits(d, bits(w, 14, 1), bits(w, 17, 1), bits(w, 15, 1));
        if (d->row->flags & ISA_R_NOOFF) { /* cache control: only the scope bits mean something */
            in->offset = 0;
            in->offen = in->idxen = in->nt = in->slc = 0;
            if (d->arch == ISA_GFX90A)
                in->glc = in->sc1 = 0; /* no scopes there */
            return true;
        }
        in->lds = (uint8_t)bits(w, 16, 1);
        if (in->lds && !(d->row->flags & (ISA_R_LDS | ISA_R_LDSONLY)))
            return fail(d, "the opcode has no LDS form");
        if (in->lds && d->acc)
            return fail(d, "a reserved bit is set");
        return in->lds || !(d->row->flags & ISA_R_LDSONLY) ? true : fail(d, "the opcode needs the lds bit");
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
        break;
    }
    return true;
}

/* ---- family and opcode
 * ----------------------------------------------------------------------------------------- */

typedef struct Slot {
    uint32_t row, size;
    uint8_t fam;
} Slot;

static Slot
slot(IsaFam fam, uint32_t row0, uint32_t op, uint32_t size)
{
    return (Slot){row0 + op, size, (uint8_t)fam};
}

/* gfx9 (gfx90a, gfx942, gfx950). size 0: no family of ours. */
static Slot
find_gfx9(uint32_t w)
{
    static const Slot none = {0, 0, ISA_FAM_COUNT};
    if (!(w >> 31)) {
        uint32_t op = w >> 25;
        if (op == 0x3f)
            return slot(ISA_FAM_VOP1, ISA_ROW0_VOP1, bits(w, 9, 8), 4);
        if (op == 0x3e)
            return slot(ISA_FAM_VOPC, ISA_ROW0_VOPC, bits(w, 17, 8), 4);
        return slot(ISA_FAM_VOP2, ISA_ROW0_VOP2, op, 4);
    }
    if (w >> 30 == 2) {
        uint32_t op = bits(w, 23, 7);
        if (op == 0x7d)
            return slot(ISA_FAM_SOP1, ISA_ROW0_SOP1, bits(w, 8, 8), 4);
        if (op == 0x7e)
            return slot(ISA_FAM_SOPC, ISA_ROW0_SOPC, bits(w, 16, 7), 4);
        if (op == 0x7f)
            return slot(ISA_FAM_SOPP, ISA_ROW0_SOPP, bits(w, 16, 7), 4);
        if (op >= 0x60)
            return slot(ISA_FAM_SOPK, ISA_ROW0_SOPK, op - 0x60, 4);
        return slot(ISA_FAM_SOP2, ISA_ROW0_SOP2, op, 4);
    }
    switch (w >> 26) {
    case 0x30:
        return slot(ISA_FAM_SMEM, ISA_ROW0_SMEM, bits(w, 18, 8), 8);
    case 0x34:
        if (bits(w, 23, 3) == 7)
            return slot(ISA_FAM_VOP3P, ISA_ROW0_VOP3P, bits(w, 16, 7), 8);
        return slot(ISA_FAM_VOP3, ISA_ROW0_VOP3, bits(w, 16, 10), 8);
    case 0x36:
        return slot(ISA_FAM_DS, ISA_ROW0_DS, bits(w, 17, 8), 8);
    case 0x37:
        switch (bits(w, 14, 2)) {
        case 0:
            return slot(ISA_FAM_FLAT, ISA_ROW0_FLAT, bits(w, 18, 7), 8);
        case 1:
            return slot(ISA_FAM_SCRATCH, ISA_ROW0_SCRATCH, bits(w, 18, 7), 8);
        case 2:
            return slot(ISA_FAM_GLOBAL, ISA_ROW0_GLOBAL, bits(w, 18, 7), 8);
        default:
            return none;
        }
    case 0x38:
        return slot(ISA_FAM_MUBUF, ISA_ROW0_MUBUF, bits(w, 18, 7), 8);
    case 0x3a:
        return slot(ISA_FAM_MTBUF, ISA_ROW0_MTBUF, bits(w, 15, 4), 8);
    default:
        return none;
    }
}

static const uint8_t fam_enc[ISA_FAM_COUNT] = {
    [ISA_FAM_SOP1] = ISA_SOP1,   [ISA_FAM_SOP2] = ISA_SOP2,     [ISA_FAM_SOPK] = ISA_SOPK,
    [ISA_FAM_SOPC] = ISA_SOPC,   [ISA_FAM_SOPP] = ISA_SOPP,     [ISA_FAM_SMEM] = ISA_SMEM,
    [ISA_FAM_VOP1] = ISA_VOP1,   [ISA_FAM_VOP2] = ISA_VOP2,     [ISA_FAM_VOPC] = ISA_VOPC,
    [ISA_FAM_VOP3] = ISA_VOP3,   [ISA_FAM_VOP3P] = ISA_VOP3P,   [ISA_FAM_DS] = ISA_DS,
    [ISA_FAM_FLAT] = ISA_FLAT,   [ISA_FAM_GLOBAL] = ISA_GLOBAL, [ISA_FAM_SCRATCH] = ISA_SCRATCH,
    [ISA_FAM_MUBUF] = ISA_MUBUF, [ISA_FAM_MTBUF] = ISA_MTBUF,   [ISA_FAM_VOP3PX] = ISA_VOP3P,
};

/* A destination keeps old bits: SDWA with UNUSED_PRESERVE, DPP where some lane may not be written. */
static bool
keeps_old_bits(const IsaInst *in)
{
    if (in->form == ISA_SDWA)
        return in->dst_unused == 2 && in->dst_sel != 6;
    return in->form == ISA_DPP && !(in->bound_ctrl && in->row_mask == 15 && in->bank_mask == 15);
}

static bool
fill_operands(Dec *d)
{
    IsaInst *in = d->in;
    const IsaPattern *p = isa_pattern(d->row->pattern);
    uint32_t ret = in->sc0 | in->glc;
    for (uint32_t i = 0; i < p->n; i++) {
        const IsaSpec *s = &p->spec[i];
        if (in->lds && (s->field == ISA_F_VDATA || s->field == ISA_F_VDST))
            continue;
        if ((d->row->flags & ISA_R_RTN) && !ret && s->field == ISA_F_VDST)
            continue; /* no old value asked for */
        IsaOpnd *o = &in->opnd[in->nopnds];
        if (!operand(d, s, o))
            return false;
        if ((d->row->flags & ISA_R_RTN) && ret && (s->field == ISA_F_VDATA || s->field == ISA_F_SDATA) &&
            d->row->fam != ISA_FAM_FLAT && d->row->fam != ISA_FAM_GLOBAL)
            o->flags |= ISA_WRITE;
        if (s->field == ISA_F_VDST && keeps_old_bits(in))
            o->flags |= ISA_READ;
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

static bool
decode(Dec *d)
{
    IsaInst *in = d->in;
    const IsaRow *rows = isa_rows(d->arch);
    if (!rows)
        return fail(d, "no instruction table for this chip");
    if (d->avail < 4)
        return fail(d, "the instruction runs past the end of the code");
    uint32_t w0 = rd32(d->code);
    Slot s = find_gfx9(w0);
    if (!s.size)
        return fail(d, "graphics or reserved encoding family");
    in->size = (uint8_t)s.size;
    d->row = &rows[s.row];
    uint32_t head = 0; /* bytes before the part that the rows describe */
    if (s.fam == ISA_FAM_VOP3P && d->arch == ISA_GFX950 && bits(w0, 16, 7) == 0x2c && d->avail >= 16) {
        uint32_t w2 = rd32(d->code + 8);
        const IsaRow *scaled = &rows[ISA_ROW0_VOP3PX + bits(w2, 16, 7)];
        if (w2 >> 23 == 0x1a7 && scaled->name_plus1) {
            d->prefix = (uint64_t)rd32(d->code + 4) << 32 | w0;
            d->row = scaled;
            s = (Slot){ISA_ROW0_VOP3PX + bits(w2, 16, 7), 16, ISA_FAM_VOP3PX};
            w0 = w2;
            head = 8;
        }
    }
    if (!d->row->name_plus1)
        return fail(d, "unknown opcode");
    if (d->avail < s.size)
        return fail(d, "the instruction runs past the end of the code");
    d->size = s.size;
    d->w = s.size >= 8 ? (uint64_t)rd32(d->code + head + 4) << 32 | w0 : w0;
    if (d->w & isa_mask(d->row->mask))
        return fail(d, "a reserved bit is set");
    in->op = (uint16_t)(d->row->name_plus1 - 1);
    in->row = (uint16_t)s.row;
    in->enc = d->row->base;
    in->form = fam_enc[s.fam];
    bool ok = true;
    if (s.fam == ISA_FAM_VOP1 || s.fam == ISA_FAM_VOP2 || s.fam == ISA_FAM_VOPC)
        ok = extra_word(d);
    else if (is_vop3(d))
        vop3_modifiers(d);
    else
        ok = memory_modifiers(d);
    return ok && fill_operands(d);
}

bool
isa_decode(IsaArch arch, bool wave64, const uint8_t *code, size_t avail, IsaInst *inst, const char **why)
{
    (void)wave64;
    memset(inst, 0, sizeof *inst);
    Dec d = {.arch = arch, .in = inst, .code = code, .avail = avail};
    inst->size = 4;
    bool ok = decode(&d);
    if (ok)
        inst->size = (uint8_t)d.size;
    if (why)
        *why = ok ? NULL : d.why;
    return ok;
}
