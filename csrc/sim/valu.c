/* valu.c - wrappers of the VALU kernels: operands to rows, EXEC, carries and masks; the usual cases without
 * modifiers. Everything else (modifiers, DPP, SDWA, packed selections, odd modes) goes through valu_gen.c.
 */
#include "sim/fast.h"

/* Writes n rows of d by the mask of EXEC. */
void
sim_blend(SimWave *w, uint64_t exec, uint32_t *d, const uint32_t *v, uint32_t n)
{
    w->code->host->blend(w, exec, d, v, n);
}

bool
sim_type_is64(uint8_t t)
{
    return t == KT_B64 || t == KT_U64 || t == KT_I64 || t == KT_F64 || t == KT_PF32;
}
bool
sim_type_is16(uint8_t t)
{
    return t == KT_U16 || t == KT_I16 || t == KT_F16 || t == KT_B16;
}

bool
sim_type_is_float(uint8_t t)
{
    return t == KT_F32 || t == KT_PF32 || t == KT_F16 || t == KT_F64 || t == KT_PF16;
}
/* Operations on bits and integers are the same in every rounding and denormal mode. */
bool
sim_mode_matters(const SimOpDesc *d)
{
    return sim_type_is_float(d->dt) || sim_type_is_float(d->t[0]);
}

/* Are signs of sources all that a body with signs knows: floats of one width, no mask, no carry? */
static bool
signs_are_simple(const SimOpDesc *d)
{
    uint8_t t = d->t[0];
    bool ok = (t == KT_F32 || t == KT_F16 || t == KT_F64) && d->nsrc >= 1 && d->nsrc <= 3 &&
              !(d->flags & ~(uint32_t)(OPF_TRANS | OPF_FMAC | OPF_QUIET | OPF_KEEPHI));
    for (uint32_t i = 1; i < d->nsrc; i++)
        ok = ok && d->t[i] == t;
    return ok;
}

/* Does the flushing kernel, and nothing more, do what MODE_FLUSH asks of the operation? */
static bool
flush_is_simple(const SimBuild *b, const SimOpDesc *d)
{
    bool ok = !(d->flags & (OPF_MIX | OPF_DOT)) && d->dt != KT_MIX;
    for (uint32_t i = 0; i < 3; i++)
        ok = ok && d->t[i] != KT_MIX;
    return ok && !(b->r->fl & RF_CHIP);
}

/* Does any modifier ask for the general wrapper? */
static bool
needs_general(const SimBuild *b, const SimOpDesc *d)
{
    const IsaInst *in = b->in;
    if (in->form == ISA_DPP || in->form == ISA_DPP8 || in->form == ISA_SDWA || in->clamp || in->omod)
        return true;
    for (uint32_t i = 0; i < in->nopnds; i++)
        if ((in->opnd[i].flags & ISA_SEXT) ||
            ((in->opnd[i].flags & (ISA_NEG | ISA_ABS)) && !signs_are_simple(d)))
            return true;
    if (d->flags & OPF_MIX)
        return true;
    bool low = in->ndst && in->opnd[0].half == 1; /* a body that keeps the other half */
    if (low && (d->flags & (OPF_CIN | OPF_COUT | OPF_DOT)))
        return true;
    for (uint32_t i = 0; i < in->nopnds; i++)
        if (in->opnd[i].half == 2)
            return true;
    if (d->flags & OPF_PACKED) {
        uint32_t all = (1u << d->nsrc) - 1;
        if (d->dt == KT_B32 || d->dt == KT_F32) /* dot2: two packed sources */
            all = 3;
        if (in->op_sel || (in->op_sel_hi & all) != all || in->neg_lo || in->neg_hi)
            return true;
    }
    if ((d->flags & (OPF_OPSELB | OPF_KEEPHI | OPF_DSTHALF)) && in->op_sel)
        return true;
    if ((d->flags & OPF_KEEPHI) && in->enc == ISA_VOP3 && !low)
        return true;
    if (in->op_sel || ((d->flags & OPF_DOT) && (in->neg_lo || in->neg_hi)))
        return true;
    if (d->flags & (OPF_OPSELB | OPF_OLD | OPF_BITOP3))
        return true;
    /* a literal or register of 16 bits may carry more bits than the type; kernels mask those themselves */
    return sim_mode_matters(d) && ((b->cls & MODE_ODD) || ((b->cls & MODE_FLUSH) && !flush_is_simple(b, d)));
}

/* Signs of the sources into the record; of constants into the constant. */
static void
place_signs(SimBuild *b, const SimOpDesc *d)
{
    SimRec *r = b->r;
    uint8_t t = d->t[0];
    r->fl2 = 0;
    r->aux = t == KT_F16 ? RS_F16 : t == KT_F64 ? RS_F64 : RS_F32;
    uint64_t bit = t == KT_F16 ? 0x8000 : t == KT_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    for (uint32_t i = 0; i < d->nsrc; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o || !(o->flags & (ISA_NEG | ISA_ABS)))
            continue;
        if (r->src[i].kind == SRC_C) {
            const uint32_t *c = b->code->consts[r->src[i].idx];
            uint64_t v = c[0] | (uint64_t)c[LANES] << 32;
            v = o->flags & ISA_ABS ? v & ~bit : v;
            r->src[i] = sim_build_const(b, o->flags & ISA_NEG ? v ^ bit : v);
            continue;
        }
        r->fl2 |= (uint8_t)((o->flags & ISA_NEG ? RS_NEG << i : 0) | (o->flags & ISA_ABS ? RS_ABS << i : 0));
    }
}

/* An inline float of a mixed-precision source: a half (in the low half) or a float, as the source is read. */
static uint32_t
mix_const(uint32_t bits, bool half)
{
    static const uint32_t map[9][2] = {{0x3800, 0x3f000000}, {0xb800, 0xbf000000}, {0x3c00, 0x3f800000},
                                       {0xbc00, 0xbf800000}, {0x4000, 0x40000000}, {0xc000, 0xc0000000},
                                       {0x4400, 0x40800000}, {0xc400, 0xc0800000}, {0x3118, 0x3e22f983}};
    for (uint32_t i = 0; i < 9; i++)
        if (map[i][half] == bits)
            return map[i][!half];
    return bits;
}

/* An inline constant whose value hangs on more than its operand's type. */
static bool
odd_const(const SimBuild *b, const SimOpDesc *d, uint32_t i, uint32_t *bits)
{
    if (d->flags & OPF_MIX) {
        *bits = mix_const(*bits, (b->in->op_sel_hi >> i) & 1);
        return true;
    }
    if (b->in->op == ISA_OP_v_pk_fmac_f16 && b->code->arch >= ISA_GFX1100) { /* in both halves (gfx11, 12) */
        *bits = (*bits & 0xffff) * 0x10001u;
        return true;
    }
    return false;
}

/* Operands of a VALU instruction into the record: dst, dst2, src[0..2], src[3] = carry in. */
static bool
place_operands(SimBuild *b, const SimOpDesc *d)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    uint32_t nv = 0, ns = 0;
    for (uint32_t i = 0; i < in->nopnds; i++) {
        const IsaOpnd *o = &in->opnd[i];
        if ((o->flags & ISA_WRITE) && (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR) && nv++ == 0)
            r->dst = (uint16_t)(o->reg + (o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
        else if ((o->flags & ISA_WRITE) && o->kind == ISA_OPND_SGPR && !(o->flags & ISA_IMPLICIT) &&
                 ns++ == 0)
            r->dst2 = sim_build_sreg(b, o);
    }
    r->ndst = sim_type_is64(d->dt) ? 2 : 1;
    if (nv > 1 || (d->dt == KT_MASK ? nv != 0 : nv != 1))
        return false;
    if ((d->flags & OPF_CMPX) && !ns) /* writes EXEC alone */
        r->dst2 = S_EXEC;
    uint32_t want = d->nsrc - ((d->flags & (OPF_FMAC | OPF_OLD)) ? 1u : 0u);
    for (uint32_t i = 0; i < want; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o)
            return false;
        r->src[i] = sim_build_src(b, o);
        uint32_t bits = o->bits;
        if (o->kind == ISA_OPND_CONST && !(o->flags & ISA_LITERAL) && odd_const(b, d, i, &bits))
            r->src[i] = sim_build_const(b, bits);
    }
    if (d->flags & OPF_FMAC) {
        r->src[2].kind = SRC_V;
        r->src[2].n = r->ndst;
        r->src[2].idx = r->dst;
    }
    if (d->flags & OPF_OLD) { /* destination's old value is the source after the last */
        r->src[2].kind = SRC_V;
        r->src[2].n = 1;
        r->src[2].idx = r->dst;
    }
    if (d->flags & OPF_CIN) {
        const IsaOpnd *o = sim_build_read(b, want);
        if (o) {
            r->src[3] = sim_build_src(b, o);
        } else {
            r->src[3].kind = SRC_S64;
            r->src[3].idx = S_VCC;
        }
        r->fl |= RF_CIN;
    }
    if (d->flags & OPF_COUT)
        r->fl |= RF_COUT;
    if (d->flags & OPF_CMPX)
        r->fl |= RF_CMPX;
    return true;
}

static bool build_dual(SimBuild *b);

/* ---- VOPD: two instructions at once
 * ------------------------------------------------------------------------------------------------- */

void
sim_dual_compute(SimWave *w, const SimRec *h, uint32_t *res)
{
    uint32_t t0[128], t1[128], t2[128], cin[64];
    if (h->fl & RF_GEN) {
        uint64_t write;
        sim_valu_compute(w, h, res, &write);
        return;
    }
    const uint32_t *a = src_row(w, h->src[0], t0), *b = h->src[1].kind ? src_row(w, h->src[1], t1) : a,
                   *c = h->src[2].kind ? src_row(w, h->src[2], t2) : b;
    SimK x;
    x.imm = 0;
    x.mode = w->mode;
    if (h->fl & RF_CIN) {
        sim_mask_expand(s64(w, h->src[3]), cin);
        c = cin;
    }
    h->fn(res, a, b, c, &x);
}

static const SimRec *
body_dual(SimWave *w, const SimRec *r)
{
    const SimDual *d = r->p;
    uint32_t x[128], y[128];
    uint64_t exec = EXEC(w);
    sim_dual_compute(w, &d->half[0], x);
    sim_dual_compute(w, &d->half[1], y);
    sim_blend(w, exec, ROW(w, d->half[0].dst), x, 1);
    sim_blend(w, exec, ROW(w, d->half[1].dst), y, 1);
    return NEXT(r);
}

/* One half as an instruction of its own. */
static bool
dual_half(SimBuild *b, SimRec *h, bool second)
{
    SimExt *x = tl_arena_alloc(&b->code->arena, sizeof *x, 64);
    if (!x)
        return !(b->failed = true);
    uint32_t first = second ? b->in->opnd_y : 0, end = second ? b->in->nopnds : b->in->opnd_y;
    memset(x, 0, sizeof *x);
    x->in = *b->in;
    x->in.op = second ? b->in->op_y : b->in->op;
    x->in.form = ISA_VOP2;
    x->in.nopnds = (uint8_t)(end - first);
    x->in.ndst = 1;
    for (uint32_t i = first; i < end; i++)
        x->in.opnd[i - first] = b->in->opnd[i];
    *h = (SimRec){.ext = x, .op = x->in.op};
    SimBuild hb = {
        b->code, h, x, &x->in, isa_op_info(x->in.op)->name, b->cls, false, b->code->op_index[x->in.op],
        b->index};
    bool ok = sim_build_valu(&hb) && h->ndst == 1;
    b->failed |= hb.failed;
    return ok;
}

static bool
build_dual(SimBuild *b)
{
    if (b->code->wave64) /* only waves of 32 lanes have pairs */
        return false;
    SimDual *d = tl_arena_alloc(&b->code->arena, sizeof *d, 64);
    if (!d)
        return !(b->failed = true);
    if (!dual_half(b, &d->half[0], false) || !dual_half(b, &d->half[1], true))
        return false;
    b->r->p = d;
    b->r->dst = d->half[0].dst;
    b->r->ndst = 1;
    b->r->body = body_dual;
    b->x->poison = POI_DUAL;
    return true;
}

/* Sines and cosines take arguments of any size on RDNA, of at most 256 turns on CDNA. */
static uint32_t
full_range(IsaArch arch, uint32_t k)
{
    if (arch < ISA_GFX1100)
        return k;
    return k == K_v_sin_f32   ? K_v_sin_f32_full
           : k == K_v_cos_f32 ? K_v_cos_f32_full
           : k == K_v_sin_f16 ? K_v_sin_f16_full
           : k == K_v_cos_f16 ? K_v_cos_f16_full
                              : k;
}

/* The body that has it all in one piece, where there is one for these operands: at most one scalar. */
static void
take_fast(SimBuild *b, uint32_t k, const SimOpDesc *d)
{
    const SimFast *f = &b->code->host->fast[k];
    SimRec *r = b->r;
    uint32_t scalar = 0;
    if (!f->hot || (r->fl & RF_CHIP))
        return;
    for (uint32_t i = 0; i < d->nsrc; i++) {
        if (r->src[i].kind == SRC_V)
            continue;
        if (scalar || (r->src[i].kind != SRC_S && r->src[i].kind != SRC_C))
            return;
        scalar = i + 1;
        if (r->src[i].kind == SRC_C)
            r->imm = (int32_t)b->code->consts[r->src[i].idx][0];
    }
    bool flush = (b->cls & MODE_FLUSH) && f->flush[0];
    r->body = flush ? (r->fl2 ? f->flush_sign : f->flush)[scalar] : (r->fl2 ? f->sign : f->plain)[scalar];
}

bool
sim_build_valu(SimBuild *b)
{
    if (!b->kern)
        return false;
    if (b->in->form == ISA_VOPD)
        return build_dual(b);
    uint32_t k = full_range(b->code->arch, b->kern - 1);
    const SimOpDesc *d = &sim_kern_desc[k];
    SimRec *r = b->r;
    bool int_clamp = b->in->clamp && d->dt != KT_F32 && d->dt != KT_F16 && d->dt != KT_F64 &&
                     d->dt != KT_PF16 && d->dt != KT_PF32 && d->t[0] != KT_B16;
    if (int_clamp) { /* the saturating sibling follows its operation in name */
        char name[40];
        size_t n = strlen(d->name);
        if (n + 5 > sizeof name)
            return false;
        memcpy(name, d->name, n);
        memcpy(name + n, "_sat", 5);
        uint32_t j = 0;
        while (j < K_COUNT && strcmp(sim_kern_desc[j].name, name))
            j++;
        if (j <
            K_COUNT) /* else nothing can overflow: comparisons, minima, conversions that saturate anyway */
            k = j;
        d = &sim_kern_desc[k];
    }
    b->x->desc = d;
    if (!place_operands(b, d))
        return false;
    r->fn = b->code->host->kern[k];
    SimKern chip = (b->cls & MODE_HW) ? sim_hw_kern(b->code->arch, b->name) : NULL;
    if (chip) {
        r->fn = chip;
        r->fl |= RF_CHIP;
    }
    if (b->code->arch < ISA_GFX1100 && (k == K_v_dot2_f32_f16 || k == K_v_dot2c_f32_f16)) {
        r->fl |= RF_CHIP; /* CDNA: MODE's denormal bits have no say */
        if (b->code->arch == ISA_GFX90A)
            r->fn = b->code->host->kern[K_v_dot2_f32_f16_ftz];
    }
    IsaInst plain = *b->in;
    plain.clamp = 0;
    SimBuild b2 = *b;
    if (int_clamp)
        b2.in = &plain;
    if (needs_general(&b2, d)) {
        b->x->poison = k == K_v_cndmask_b32 || k == K_v_cndmask_b16 ? POI_SELECT
                       : d->dt == KT_MASK                           ? POI_MASK
                       : (d->flags & (OPF_CIN | OPF_COUT))          ? POI_CARRY
                                                                    : POI_LANE;
        return sim_build_valu_gen(b, int_clamp);
    }
    const SimHostOps *host = b->code->host;
    uint32_t body;
    b->x->poison = POI_LANE;
    if (b->cls & MODE_FLUSH)
        r->fn = host->flush[k];
    if (k == K_v_cndmask_b32) {
        r->fn = host->kern[K_v_cndmask_fast];
        body = BODY_CNDMASK;
        b->x->poison = POI_SELECT;
    } else if (d->dt == KT_MASK) {
        body = BODY_VCMP;
        b->x->poison = POI_MASK;
    } else if (d->flags & (OPF_CIN | OPF_COUT)) {
        body = BODY_VCARRY;
        b->x->poison = POI_CARRY;
    } else {
        body = d->nsrc == 1 ? BODY_V1 : d->nsrc == 2 ? BODY_V2 : BODY_V3;
    }
    if (signs_are_simple(d))
        place_signs(b, d);
    bool low = b->in->ndst && b->in->opnd[0].half; /* the upper half stays */
    r->body = host->body[low ? body + BODY_V1_LOW : r->fl2 ? body + BODY_V1_SIGNED : body];
    if (!low)
        take_fast(b, k, d);
    return true;
}
