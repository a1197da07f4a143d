/* isa_opnd.c - operands by their codes: registers, special sources, constants, literals, and their modifiers.
 */
#include "isa/isa_dec.h"

/* ---- constants ------------------------------------------------------------ */

static const uint32_t inline_f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                       0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
static const uint16_t inline_f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                       0xc000, 0x4400, 0xc400, 0x3118};
static const uint16_t inline_bf16[9] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000,
                                        0xc000, 0x4080, 0xc080, 0x3e22};
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
read_literal(IsaDec *d)
{
    if (d->have_lit)
        return true;
    if (d->avail < d->size + 4u)
        return isa_fail(d, "the literal runs past the end of the code");
    d->lit = isa_rd32(d->code + d->size);
    d->size += 4;
    d->have_lit = true;
    return true;
}

static void
set_literal(const IsaDec *d, IsaOpnd *o)
{
    o->flags |= ISA_LITERAL;
    o->bits = d->lit;
    o->bits64 = o->type == ISA_T_F64   ? (uint64_t)d->lit << 32
                : o->type == ISA_T_I64 ? (uint64_t)(int64_t)(int32_t)d->lit
                                       : d->lit;
}

/* ---- operand codes ------------------------------------------------------------ */

static void
set_reg(IsaOpnd *o, IsaOpndKind kind, uint32_t reg)
{
    o->kind = (uint8_t)kind;
    o->reg = (uint16_t)reg;
}

/* A vector register tuple must be inside the file. */
bool
isa_vector_reg(IsaDec *d, IsaOpnd *o, bool agpr, uint32_t reg)
{
    if (reg + o->nregs > 256)
        return isa_fail(d, "a vector register tuple runs past register 255");
    if (o->nregs > 1 && (reg & 1) && d->gen == ISA_GEN9)
        return isa_fail(d, "a vector register tuple is not aligned");
    set_reg(o, agpr ? ISA_OPND_AGPR : ISA_OPND_VGPR, reg);
    return true;
}

/* A scalar register by its 7-bit code, as a source or destination of nregs registers. */
bool
isa_scalar_reg(IsaDec *d, IsaOpnd *o, uint32_t code)
{
    uint32_t n = o->nregs;
    uint32_t align = n >= 3 ? 4 : n == 2 ? 2 : 1;
    uint32_t nsgprs = d->gen == ISA_GEN9 ? 102 : 106;
    bool sgpr = code < nsgprs, ttmp = code >= 108 && code < 124;
    if (sgpr || ttmp) {
        uint32_t first = ttmp ? code - 108 : code, count = ttmp ? 16 : nsgprs;
        if (first % align)
            return isa_fail(d, "a scalar register tuple is not aligned");
        if (first + n > count)
            return isa_fail(d, "a scalar register tuple runs past the last register");
    } else if (!isa_special_name(d->arch, code, n)) {
        return isa_fail(d, "reserved scalar register code");
    }
    set_reg(o, ISA_OPND_SGPR, code);
    return true;
}

/* A 9-bit (or, without vector registers, 8-bit) source code. */
bool
isa_source(IsaDec *d, IsaOpnd *o, uint32_t code, bool agpr)
{
    if (code >= 256)
        return isa_vector_reg(d, o, agpr, code - 256);
    if (code < 128)
        return isa_scalar_reg(d, o, code);
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
            return isa_fail(d, "reserved source operand code");
        set_reg(o, ISA_OPND_SRC, code);
        return true;
    }
    o->nregs = 0;
    return true;
}

/* ---- operands of each field ------------------------------------------------------------ */

/* Registers of A (i 0) and B (i 1) of the f8f6f4 instructions: by element type. */
static uint8_t
f8f6f4_regs(const IsaInst *in, uint32_t i)
{
    uint32_t type = i == 0 ? in->cbsz : in->blgp;
    return type == 4 ? 4 : type == 2 || type == 3 ? 6 : 8;
}

/* A vector register of which a 16-bit operand names half: the upper bit of the short encodings' number, an
 * op_sel bit of the long ones. */
static bool
half_reg(IsaDec *d, IsaOpnd *o, uint32_t reg, uint32_t op_sel_bit)
{
    if (isa_is_vop3(d)) {
        o->half = (uint8_t)(1 + isa_bits(d->w, 11 + op_sel_bit, 1));
    } else {
        o->half = (uint8_t)(1 + (reg >> 7));
        reg &= 127;
    }
    return isa_vector_reg(d, o, false, reg);
}

static bool
vector_file(IsaDec *d, const IsaSpec *s, IsaOpnd *o, bool agpr, uint32_t reg, uint32_t op_sel_bit)
{
    return s->flags & ISA_S_T16 ? half_reg(d, o, reg, op_sel_bit) : isa_vector_reg(d, o, agpr, reg);
}

static bool
any_source(IsaDec *d, const IsaSpec *s, IsaOpnd *o, bool agpr, uint32_t code, uint32_t i)
{
    return code >= 256 ? vector_file(d, s, o, agpr, code - 256, i) : isa_source(d, o, code, agpr);
}

/* Source i of a DPP form: src0 is named by the DPP word; in the short encodings that word has the modifiers
 * too. */
static bool
dpp_source(IsaDec *d, const IsaSpec *s, IsaOpnd *o, uint32_t i)
{
    uint32_t mods = isa_bits(d->dpp, 20 + 2 * i, 2);
    if (d->in->form == ISA_DPP) {
        if (s->flags & ISA_S_MOD)
            o->flags |= (mods & 1 ? ISA_NEG : 0) | (mods & 2 ? ISA_ABS : 0);
        else if (mods)
            return isa_fail(d, "a modifier that the operand does not take");
    }
    bool agpr = (s->flags & ISA_S_AGPR) != 0;
    return vector_file(d, s, o, agpr, i == 0 ? isa_bits(d->dpp, 0, 8) : isa_bits(d->w, 9, 8), i);
}

static bool
sdwa_source(IsaDec *d, const IsaSpec *s, IsaOpnd *o, uint32_t i)
{
    uint32_t sel = isa_bits(d->dpp, 16 + 8 * i, 8);
    uint32_t code = (i == 0 ? isa_bits(d->dpp, 0, 8) : isa_bits(d->w, 9, 8)) | (sel & 0x80 ? 0 : 256);
    if ((sel & 0x40) || (sel & (s->flags & ISA_S_MOD ? 0x08 : 0x30)))
        return isa_fail(d, "a modifier that the operand does not take");
    if (s->flags & ISA_S_MOD)
        o->flags |= (sel & 0x10 ? ISA_NEG : 0) | (sel & 0x20 ? ISA_ABS : 0);
    else if (sel & 0x08)
        o->flags |= ISA_SEXT;
    return code == 255 ? isa_fail(d, "SDWA takes no literal") : isa_source(d, o, code, false);
}

static bool
source_allowed(IsaDec *d, const IsaSpec *s, uint32_t code)
{
    if ((s->flags & ISA_S_VONLY) && code < 256)
        return isa_fail(d, "the operand must be a vector register");
    if ((s->flags & ISA_S_SONLY) && code >= 256)
        return isa_fail(d, "the operand must be a scalar");
    if ((s->flags & ISA_S_REG) && code >= 128)
        return isa_fail(d, "the operand must be a scalar register");
    return true;
}

static bool
mai_source(IsaDec *d, const IsaSpec *s, IsaOpnd *o, uint32_t i, uint32_t code)
{
    bool agpr = (s->flags & ISA_S_AGPR) != 0;
    if ((d->row->flags & ISA_R_F8F6F4) && i < 2)
        o->nregs = f8f6f4_regs(d->in, i);
    if (s->flags & ISA_S_ACC)
        agpr = i == 2 ? isa_bits(d->w, 15, 1) : isa_bits(d->w, 59 + i, 1);
    if (i == 2 && (code < 128 || (code > 208 && code < 240) || (code > 248 && code < 256)))
        return isa_fail(d, "the accumulator must be a vector register or an inline constant");
    return code == 255 ? isa_fail(d, "this encoding takes no literal") : isa_source(d, o, code, agpr);
}

/* The source operand number i (0..2) of a vector encoding, with its modifiers. */
static bool
vector_source(IsaDec *d, const IsaSpec *s, IsaOpnd *o, uint32_t i)
{
    bool dpp = d->in->form == ISA_DPP || d->in->form == ISA_DPP8;
    bool agpr = (s->flags & ISA_S_AGPR) != 0;
    if (d->in->form == ISA_SDWA)
        return sdwa_source(d, s, o, i);
    if (!isa_is_vop3(d)) {
        if (dpp)
            return dpp_source(d, s, o, i);
        uint32_t code = isa_bits(d->w, 0, 9);
        return source_allowed(d, s, code) && any_source(d, s, o, agpr, code, i);
    }
    uint32_t code = isa_bits(d->w, 32 + 9 * i, 9);
    if (dpp && i == 0)
        code = 256 + isa_bits(d->dpp, 0, 8);
    if (!source_allowed(d, s, code))
        return false;
    if (dpp && i == 1 && code < 256 && d->gen == ISA_GEN11)
        return isa_fail(d, "the operand must be a vector register");
    if (i == 2 && code < 128 && d->row->fam == ISA_FAM_VOP3P &&
        (isa_op_info(d->in->op)->classes & ISA_C_MFMA))
        return isa_fail(d, "the accumulator must be a vector register or an inline constant");
    if (d->row->base == ISA_MAI)
        return mai_source(d, s, o, i, code);
    if ((s->flags & ISA_S_MOD) && (d->row->fam == ISA_FAM_VOP3 || (d->row->flags & ISA_R_MIX))) {
        o->flags |= isa_bits(d->w, 61 + i, 1) ? ISA_NEG : 0;
        if (!(d->row->flags & ISA_R_VOP3B))
            o->flags |= isa_bits(d->w, 8 + i, 1) ? ISA_ABS : 0;
    }
    if (code == 255 && d->gen == ISA_GEN9)
        return isa_fail(d, "this encoding takes no literal");
    return any_source(d, s, o, agpr, code, i);
}

static bool
vector_dst(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    uint32_t reg = isa_is_vop3(d) ? isa_bits(d->w, 0, 8) : isa_bits(d->w, 17, 8);
    if ((s->flags & ISA_S_NOEXEC) && (reg == 126 || reg == 127))
        return isa_fail(d, "exec may not be the result");
    if (s->flags & ISA_S_SGPR)
        return reg > 127 ? isa_fail(d, "reserved scalar register code") : isa_scalar_reg(d, o, reg);
    bool agpr = (s->flags & ISA_S_AGPR) || ((s->flags & ISA_S_ACC) && isa_bits(d->w, 15, 1));
    return vector_file(d, s, o, agpr, reg, 3);
}

/* One half of a VOPD: two short vector instructions side by side. */
static bool
dual_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    bool x = d->dual == 'x';
    uint32_t vdstx = isa_bits(d->w, 56, 8);
    switch ((IsaField)s->field) {
    case ISA_F_VDST:
        return isa_vector_reg(d, o, false, x ? vdstx : isa_bits(d->w, 49, 7) << 1 | !(vdstx & 1));
    case ISA_F_SRC0:
        return isa_source(d, o, isa_bits(d->w, x ? 0 : 32, 9), false);
    default:
        return isa_vector_reg(d, o, false, isa_bits(d->w, x ? 9 : 41, 8));
    }
}

void
isa_no_opnd(IsaOpnd *o)
{
    o->kind = ISA_OPND_NONE;
    o->nregs = 0;
}

static bool
fixed_sgpr(IsaOpnd *o, IsaOpndKind kind, uint32_t code)
{
    set_reg(o, kind, code);
    return true;
}

static bool
scalar_alu_field(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    if (s->field == ISA_F_VDST)
        return isa_scalar_reg(d, o, isa_bits(d->w, 16, 7));
    uint32_t code = isa_bits(d->w, s->field == ISA_F_SRC0 ? 0 : 8, 8);
    if ((s->flags & ISA_S_REG) && code >= 128)
        return isa_fail(d, "the operand must be a scalar register");
    return isa_source(d, o, code, false);
}

/* A register that the encoding does not name. */
static bool
fixed_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    bool gfx9 = d->gen == ISA_GEN9;
    switch ((IsaField)s->field) {
    case ISA_F_VCC:
        /* an SDWA compare may name another destination */
        if (d->in->form == ISA_SDWA && d->row->fam == ISA_FAM_VOPC && isa_bits(d->dpp, 15, 1))
            return isa_scalar_reg(d, o, isa_bits(d->dpp, 8, 7));
        return fixed_sgpr(o, ISA_OPND_SGPR, 106);
    case ISA_F_EXEC:
        return fixed_sgpr(o, ISA_OPND_SGPR, 126);
    case ISA_F_M0:
        return fixed_sgpr(o, ISA_OPND_SGPR, gfx9 ? 124 : 125);
    case ISA_F_FLATSCR:
        if (!gfx9) { /* not among the registers there */
            isa_no_opnd(o);
            return true;
        }
        return fixed_sgpr(o, ISA_OPND_SGPR, 102);
    default:
        return fixed_sgpr(o, ISA_OPND_SRC, 253);
    }
}

static bool
imm_operand(IsaDec *d, IsaOpnd *o, uint32_t lo, uint32_t n)
{
    o->kind = ISA_OPND_IMM;
    o->bits = isa_bits(d->w, lo, n);
    o->bits64 = o->bits;
    return true;
}

static bool
literal_operand(IsaDec *d, IsaOpnd *o)
{
    if (!read_literal(d))
        return false;
    o->kind = ISA_OPND_CONST;
    set_literal(d, o);
    return true;
}

/* Operands of the scalar and vector ALU encodings. */
static bool
alu_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    if (d->dual)
        return dual_operand(d, s, o);
    if (d->row->fam <= ISA_FAM_SOPP)
        return scalar_alu_field(d, s, o);
    switch ((IsaField)s->field) {
    case ISA_F_VDST:
        return vector_dst(d, s, o);
    case ISA_F_VSRC1:
        if (d->in->form == ISA_DPP || d->in->form == ISA_DPP8 || d->in->form == ISA_SDWA)
            return vector_source(d, s, o, 1);
        return vector_file(d, s, o, false, isa_bits(d->w, 9, 8), 1);
    default:
        return vector_source(d, s, o, s->field - ISA_F_SRC0);
    }
}

bool
isa_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    o->nregs = s->nregs;
    o->type = s->type;
    o->flags = (uint8_t)((s->flags & ISA_S_R ? ISA_READ : 0) | (s->flags & ISA_S_W ? ISA_WRITE : 0) |
                         (s->flags & ISA_S_IMPL ? ISA_IMPLICIT : 0));
    if (s->flags & ISA_S_MASK) {
        o->nregs = d->wave64 ? 2 : 1;
        o->type = d->wave64 ? ISA_T_B64 : ISA_T_B32;
    }
    if (d->wave64 && (d->row->flags & ISA_R_HALF64) && s->nregs > 1 &&
        (s->field == ISA_F_VDST || s->field == ISA_F_SRC2 ||
         (d->gen == ISA_GEN12 && (s->field == ISA_F_SRC0 || s->field == ISA_F_SRC1))))
        o->nregs = s->nregs / 2; /* gfx11: A and B are in each 16 lanes as a whole */
    switch ((IsaField)s->field) {
    case ISA_F_VCC:
    case ISA_F_EXEC:
    case ISA_F_M0:
    case ISA_F_FLATSCR:
    case ISA_F_SCC:
        return fixed_operand(d, s, o);
    case ISA_F_SIMM16:
        return imm_operand(d, o, 0, 16);
    case ISA_F_SRC0IMM:
        return imm_operand(d, o, 0, 8);
    case ISA_F_SRC1IMM:
        return imm_operand(d, o, 8, 8);
    case ISA_F_LIT:
        return literal_operand(d, o);
    case ISA_F_SDATAIMM:
    case ISA_F_SDATA:
    case ISA_F_SBASE:
    case ISA_F_SRSRC:
    case ISA_F_SOFFSET:
    case ISA_F_VADDR:
    case ISA_F_VDATA:
    case ISA_F_SADDR:
    case ISA_F_ADDR:
    case ISA_F_DATA0:
    case ISA_F_DATA1:
        return isa_mem_operand(d, s, o);
    case ISA_F_SCALE0:
        return isa_source(d, o, isa_bits(d->prefix, 32, 9), false);
    case ISA_F_SCALE1:
        return isa_source(d, o, isa_bits(d->prefix, 41, 9), false);
    case ISA_F_SDST:
        return isa_scalar_reg(d, o, isa_bits(d->w, 8, 7));
    case ISA_F_VDST:
        return d->row->fam >= ISA_FAM_DS && !d->dual ? isa_mem_operand(d, s, o) : alu_operand(d, s, o);
    case ISA_F_VSRC1:
    case ISA_F_SRC0:
    case ISA_F_SRC1:
    case ISA_F_SRC2:
        return alu_operand(d, s, o);
    }
    return isa_fail(d, "operand field without a decoder");
}
