/* isa_mem.c - fields of the memory encodings: where each generation keeps them, what they mean. */
#include "isa/isa_dec.h"

/* Bit positions; NO: the generation has no such field. */
enum { NO = 255 };

typedef struct MemLayout {
    uint8_t vaddr, vdata, vdst, saddr, offset, offset_bits, glc, slc, dlc, scc, th, acc;
    uint8_t srsrc, srsrc_shift, soffset, soffset_bits, offen, idxen, lds, tfe, format;
} MemLayout;

static const MemLayout flat_layout[] = {
    [ISA_GEN9] = {.vaddr = 32,
                  .vdata = 40,
                  .vdst = 56,
                  .saddr = 48,
                  .offset = 0,
                  .offset_bits = 13,
                  .glc = 16,
                  .slc = 17,
                  .dlc = NO,
                  .scc = 25,
                  .th = NO,
                  .acc = 55},
    [ISA_GEN11] = {.vaddr = 32,
                   .vdata = 40,
                   .vdst = 56,
                   .saddr = 48,
                   .offset = 0,
                   .offset_bits = 13,
                   .glc = 14,
                   .slc = 15,
                   .dlc = 13,
                   .scc = NO,
                   .th = NO,
                   .acc = NO},
    [ISA_GEN12] = {.vaddr = 64,
                   .vdata = 55,
                   .vdst = 32,
                   .saddr = 0,
                   .offset = 72,
                   .offset_bits = 24,
                   .glc = NO,
                   .slc = NO,
                   .dlc = NO,
                   .scc = NO,
                   .th = 50,
                   .acc = NO},
};

static const MemLayout buffer_layout[] = {
    [ISA_GEN9] = {.vaddr = 32,
                  .vdata = 40,
                  .offset = 0,
                  .offset_bits = 12,
                  .glc = 14,
                  .slc = 17,
                  .dlc = NO,
                  .scc = 15,
                  .th = NO,
                  .acc = 55,
                  .srsrc = 48,
                  .srsrc_shift = 2,
                  .soffset = 56,
                  .soffset_bits = 8,
                  .offen = 12,
                  .idxen = 13,
                  .lds = 16,
                  .tfe = NO,
                  .format = NO},
    [ISA_GEN11] = {.vaddr = 32,
                   .vdata = 40,
                   .offset = 0,
                   .offset_bits = 12,
                   .glc = 14,
                   .slc = 12,
                   .dlc = 13,
                   .scc = NO,
                   .th = NO,
                   .acc = NO,
                   .srsrc = 48,
                   .srsrc_shift = 2,
                   .soffset = 56,
                   .soffset_bits = 8,
                   .offen = 54,
                   .idxen = 55,
                   .lds = NO,
                   .tfe = 53,
                   .format = 19},
    [ISA_GEN12] = {.vaddr = 64,
                   .vdata = 32,
                   .offset = 72,
                   .offset_bits = 24,
                   .glc = NO,
                   .slc = NO,
                   .dlc = NO,
                   .scc = NO,
                   .th = 50,
                   .acc = NO,
                   .srsrc = 41,
                   .srsrc_shift = 0,
                   .soffset = 0,
                   .soffset_bits = 7,
                   .offen = 62,
                   .idxen = 63,
                   .lds = NO,
                   .tfe = 22,
                   .format = 55},
};

static uint8_t
bit_or_zero(const IsaDec *d, uint32_t at)
{
    return at == NO ? 0 : (uint8_t)isa_field(d, at, 1);
}

static bool
is_buffer(const IsaDec *d)
{
    return d->row->fam == ISA_FAM_MUBUF || d->row->fam == ISA_FAM_MTBUF;
}

/* The code that says "no scalar address": null, on gfx9 all ones. */
static uint32_t
no_saddr(const IsaDec *d)
{
    return d->gen == ISA_GEN9 ? 0x7f : 124;
}

/* ---- modifiers
 * ----------------------------------------------------------------------------------------------- */

/* The cache bits under the names this chip gives them. */
static void
cache_bits(IsaDec *d, uint8_t glc, uint8_t slc, uint8_t dlc, uint8_t scc)
{
    IsaInst *in = d->in;
    if (d->gen != ISA_GEN9 || d->arch == ISA_GFX90A) {
        in->glc = glc;
        in->slc = slc;
        in->dlc = dlc;
        in->sc1 = scc;
    } else {
        in->sc0 = glc;
        in->nt = slc;
        in->sc1 = scc;
    }
}

static void
cache_policy(IsaDec *d, const MemLayout *l)
{
    if (l->th != NO) {
        d->in->scope = (uint8_t)isa_field(d, l->th, 2);
        d->in->th = (uint8_t)isa_field(d, l->th + 2u, 3);
    }
    cache_bits(d, bit_or_zero(d, l->glc), bit_or_zero(d, l->slc), bit_or_zero(d, l->dlc),
               bit_or_zero(d, l->scc));
}

static bool
smem_modifiers(IsaDec *d)
{
    IsaInst *in = d->in;
    uint64_t w = d->w;
    bool policy = (d->row->flags & ISA_R_GLC) != 0;
    switch (d->gen) {
    case ISA_GEN9:
        in->glc = policy && isa_bits(w, 16, 1);
        if (isa_bits(w, 17, 1))
            in->offset = isa_sext(isa_bits(w, 32, 21), 21);
        in->saddr_present = (uint8_t)(isa_bits(w, 17, 1) & isa_bits(w, 14, 1)); /* a register and a number */
        return true;
    case ISA_GEN11:
        in->glc = policy && isa_bits(w, 14, 1);
        in->dlc = policy && isa_bits(w, 13, 1);
        in->offset = isa_sext(isa_bits(w, 32, 21), 21);
        in->saddr_present = in->offset != 0;
        return true;
    case ISA_GEN12:
        in->scope = policy ? (uint8_t)isa_bits(w, 21, 2) : 0;
        in->th = policy ? (uint8_t)isa_bits(w, 23, 2) : 0;
        in->offset = isa_sext(isa_bits(w, 32, 24), 24);
        in->saddr_present = 1;
        return true;
    }
    return true;
}

static bool
ds_modifiers(IsaDec *d)
{
    IsaInst *in = d->in;
    in->offset = (int32_t)isa_bits(d->w, 0, 16);
    in->offset0 = (uint8_t)isa_bits(d->w, 0, 8);
    in->offset1 = (uint8_t)isa_bits(d->w, 8, 8);
    in->gds = (uint8_t)isa_bits(d->w, d->gen == ISA_GEN9 ? 16 : 17, 1);
    d->acc = d->gen == ISA_GEN9 && isa_bits(d->w, 25, 1);
    if (in->gds && !(d->row->flags & (ISA_R_GDS | ISA_R_GDSONLY)))
        return isa_fail(d, "the opcode has no GDS form");
    return in->gds || !(d->row->flags & ISA_R_GDSONLY) ? true : isa_fail(d, "the opcode needs GDS");
}

static bool
has_field(const IsaRow *row, IsaField f)
{
    const IsaPattern *p = isa_pattern(row->pattern);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->spec[i].field == f)
            return true;
    return false;
}

static bool
flat_modifiers(IsaDec *d)
{
    const MemLayout *l = &flat_layout[d->gen];
    IsaInst *in = d->in;
    uint32_t off = isa_field(d, l->offset, l->offset_bits);
    bool is_signed = d->row->fam != ISA_FAM_FLAT || d->gen == ISA_GEN12;
    in->offset = is_signed ? isa_sext(off, l->offset_bits) : (int32_t)off;
    cache_policy(d, l);
    d->acc = bit_or_zero(d, l->acc);
    if (d->row->flags & ISA_R_LDS) {
        in->lds = (uint8_t)isa_bits(d->w, 13, 1);
        if (in->lds && d->acc)
            return isa_fail(d, "a reserved bit is set");
    }
    if (d->row->fam == ISA_FAM_FLAT && d->gen != ISA_GEN9 && isa_field(d, l->saddr, 7) != no_saddr(d))
        return isa_fail(d, "a reserved bit is set");
    if (d->w2 && !has_field(d->row, ISA_F_VADDR) && !has_field(d->row, ISA_F_SADDR))
        return isa_fail(d, "cache control takes no address");
    in->saddr_present = d->row->fam != ISA_FAM_FLAT && isa_field(d, l->saddr, 7) != no_saddr(d);
    return true;
}

static void
typed_format(IsaDec *d, const MemLayout *l)
{
    if (d->gen == ISA_GEN9) {
        d->in->format = (uint8_t)(isa_bits(d->w, 19, 4) | isa_bits(d->w, 23, 3) << 4);
        cache_bits(d, (uint8_t)isa_bits(d->w, 14, 1), (uint8_t)isa_bits(d->w, 54, 1), 0,
                   (uint8_t)isa_bits(d->w, 53, 1));
    } else {
        d->in->format = (uint8_t)isa_field(d, l->format, 7);
    }
}

static bool
buffer_modifiers(IsaDec *d)
{
    const MemLayout *l = &buffer_layout[d->gen];
    IsaInst *in = d->in;
    bool typed = d->row->base == ISA_MTBUF;
    cache_policy(d, l);
    if (d->row->flags & ISA_R_NOOFF) { /* cache control: only the scope bits mean something */
        in->nt = in->slc = 0;
        if (d->arch == ISA_GFX90A)
            in->glc = in->sc1 = 0; /* no scopes there */
        return true;
    }
    in->offset = (int32_t)isa_field(d, l->offset, l->offset_bits);
    if (d->gen == ISA_GEN12 && in->offset >> 23)
        return isa_fail(d, "a negative buffer offset");
    in->offen = bit_or_zero(d, l->offen);
    in->idxen = bit_or_zero(d, l->idxen);
    in->tfe = bit_or_zero(d, l->tfe);
    d->acc = bit_or_zero(d, l->acc);
    if (typed) {
        typed_format(d, l);
        return true;
    }
    in->lds = bit_or_zero(d, l->lds);
    if (in->lds && !(d->row->flags & (ISA_R_LDS | ISA_R_LDSONLY)))
        return isa_fail(d, "the opcode has no LDS form");
    if (in->lds && d->acc)
        return isa_fail(d, "a reserved bit is set");
    return in->lds || !(d->row->flags & ISA_R_LDSONLY) ? true : isa_fail(d, "the opcode needs the lds bit");
}

bool
isa_mem_modifiers(IsaDec *d)
{
    switch ((IsaFam)d->row->fam) {
    case ISA_FAM_SMEM:
        return smem_modifiers(d);
    case ISA_FAM_DS:
        return ds_modifiers(d);
    case ISA_FAM_FLAT:
    case ISA_FAM_GLOBAL:
    case ISA_FAM_SCRATCH:
        return flat_modifiers(d);
    case ISA_FAM_MUBUF:
    case ISA_FAM_MTBUF:
        return buffer_modifiers(d);
    case ISA_FAM_LDSDIR:
        d->in->wait_va = (uint8_t)isa_bits(d->w, 16, 4);
        d->in->wait_vm = d->gen == ISA_GEN12 ? (uint8_t)isa_bits(d->w, 23, 1) : 0;
        return true;
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
        break;
    }
    return true;
}

/* ---- operands
 * ------------------------------------------------------------------------------------------------ */

static void
address_width(IsaOpnd *o, uint32_t n)
{
    o->nregs = (uint8_t)n;
    o->type = n == 2 ? ISA_T_B64 : ISA_T_B32;
}

/* Whether a scratch access has a vector address. */
static bool
scratch_has_vaddr(const IsaDec *d, uint32_t saddr)
{
    switch (d->gen) {
    case ISA_GEN9:
        return d->arch == ISA_GFX90A ? saddr == 0x7f : isa_bits(d->w, 13, 1);
    case ISA_GEN11:
        return isa_bits(d->w, 55, 1);
    case ISA_GEN12:
        return isa_bits(d->w, 49, 1);
    }
    return true;
}

static bool
flat_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    const MemLayout *l = &flat_layout[d->gen];
    uint32_t fam = d->row->fam, saddr = isa_field(d, l->saddr, 7);
    if (s->field == ISA_F_VADDR) {
        if (fam == ISA_FAM_SCRATCH && !scratch_has_vaddr(d, saddr)) {
            isa_no_opnd(o);
            return true;
        }
        if (fam == ISA_FAM_GLOBAL && d->in->saddr_present)
            address_width(o, 1);
        else
            address_width(o, fam == ISA_FAM_SCRATCH ? 1 : 2);
        return isa_vector_reg(d, o, false, isa_field(d, l->vaddr, 8));
    }
    if (s->field == ISA_F_SADDR) {
        if (saddr == no_saddr(d)) {
            isa_no_opnd(o);
            return true;
        }
        if (fam == ISA_FAM_GLOBAL && (saddr == 126 || saddr == 127 || (d->gen == ISA_GEN9 && saddr == 125)))
            return isa_fail(d, "exec and null are no address");
        if (fam == ISA_FAM_SCRATCH && d->gen != ISA_GEN9 && saddr == 127)
            return isa_fail(d, "exec and null are no address");
        return isa_scalar_reg(d, o, saddr);
    }
    if (d->acc && !(s->flags & ISA_S_ACC) && s->field == ISA_F_VDST)
        return isa_fail(d, "the result may not go to an accumulation register");
    return isa_vector_reg(d, o, (s->flags & ISA_S_AGPR) || ((s->flags & ISA_S_ACC) && d->acc),
                          isa_field(d, s->field == ISA_F_VDST ? l->vdst : l->vdata, 8));
}

static bool
buffer_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    const MemLayout *l = &buffer_layout[d->gen];
    IsaInst *in = d->in;
    if (s->field == ISA_F_VADDR) {
        if (!(in->offen | in->idxen)) {
            isa_no_opnd(o);
            return true;
        }
        address_width(o, (uint32_t)(in->offen + in->idxen));
        return isa_vector_reg(d, o, false, isa_field(d, l->vaddr, 8));
    }
    if (s->field == ISA_F_SRSRC) {
        uint32_t code = isa_field(d, l->srsrc, l->srsrc_shift ? 5 : 9) << l->srsrc_shift;
        return code > 127 ? isa_fail(d, "reserved scalar register code") : isa_scalar_reg(d, o, code);
    }
    if (s->field == ISA_F_SOFFSET) {
        uint32_t code = isa_field(d, l->soffset, l->soffset_bits);
        return code == 255 ? isa_fail(d, "this encoding takes no literal") : isa_source(d, o, code, false);
    }
    if (in->tfe)
        o->nregs++; /* the status word follows the data */
    return isa_vector_reg(d, o, (s->flags & ISA_S_ACC) && d->acc, isa_field(d, l->vdata, 8));
}

static bool
smem_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    if (s->field == ISA_F_SDATAIMM) {
        o->kind = ISA_OPND_IMM;
        o->bits = isa_bits(d->w, 6, 7);
        o->bits64 = o->bits;
        return true;
    }
    if (s->field == ISA_F_SDATA) {
        uint32_t code = isa_bits(d->w, 6, 7), null = d->gen == ISA_GEN9 ? 125 : 124;
        if ((s->flags & ISA_S_NOEXEC) && code >= 124 && code != null)
            return isa_fail(d, "exec and m0 may not be loaded or stored");
        return isa_scalar_reg(d, o, code);
    }
    if (s->field == ISA_F_SBASE)
        return isa_scalar_reg(d, o, isa_bits(d->w, 0, 6) << 1);
    uint32_t code = isa_bits(d->w, 57, 7);
    if (d->gen == ISA_GEN9) {
        bool imm = isa_bits(d->w, 17, 1), so = isa_bits(d->w, 14, 1);
        if (imm && !so) {
            isa_no_opnd(o);
            return true;
        }
        return isa_scalar_reg(d, o, so ? code : isa_bits(d->w, 32, 7));
    }
    if (code == 124 && (d->in->offset || d->gen == ISA_GEN12)) {
        isa_no_opnd(o);
        return true;
    }
    return isa_scalar_reg(d, o, code);
}

static bool
ds_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    bool acc = (s->flags & ISA_S_ACC) && d->acc;
    switch ((IsaField)s->field) {
    case ISA_F_ADDR: /* the data of GWS operations is there too */
        return isa_vector_reg(d, o, acc, isa_bits(d->w, 32, 8));
    case ISA_F_DATA0:
        return isa_vector_reg(d, o, acc, isa_bits(d->w, 40, 8));
    case ISA_F_DATA1:
        return isa_vector_reg(d, o, acc, isa_bits(d->w, 48, 8));
    default:
        return isa_vector_reg(d, o, acc, isa_bits(d->w, 56, 8));
    }
}

bool
isa_mem_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o)
{
    if (d->row->fam == ISA_FAM_SMEM)
        return smem_operand(d, s, o);
    if (d->row->fam == ISA_FAM_DS)
        return ds_operand(d, s, o);
    if (d->row->fam == ISA_FAM_LDSDIR)
        return isa_vector_reg(d, o, false, isa_bits(d->w, 0, 8));
    return is_buffer(d) ? buffer_operand(d, s, o) : flat_operand(d, s, o);
}
