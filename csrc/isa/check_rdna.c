/* check_rdna.c - what gfx11 and gfx12 do not interlock, on finished code: the rows of hazard_rdna.h as a
 * forward dataflow. For each vector register how many instructions are still missing after a transcendental
 * write or a matrix result; for each scalar whether a vector instruction has read it and which writes since
 * then no wait covers. The row FORWARD is check_forward.c's.
 */
#include <stdio.h>
#include "isa/check_int.h"
#include "isa/hazard_rdna.h"

enum { NV = 256, NS = 128, READ = 1, READ_PAIR = 2, BY_SALU = 4, BY_VALU = 8, VCC = 106 };

typedef struct VState {
    uint8_t valus, trans; /* instructions that a transcendental result still lacks */
    uint8_t half;         /* which halves: 1 the low, 2 the high one */
    uint8_t wmma;         /* the same of a matrix result */
    uint32_t from;
} VState;

typedef struct RdnaState {
    VState v[NV];
    IsaRegSet live;         /* of v: those that lack something */
    uint8_t s[NS];          /* READ, READ_PAIR: a vector instruction has read it, it or its pair */
    uint8_t cmpx, vcc_valu; /* vcc_valu: on some path a vector instruction was the last to write VCC */
    uint32_t salu_from[NS], valu_from[NS], cmpx_from;
} RdnaState;

typedef struct RdnaFacts {
    IsaRdnaKind *kind; /* of each instruction */
    uint8_t *reached;  /* does control get there? */
    uint32_t rows;     /* of the chip and wave size */
} RdnaFacts;

static bool
raise(uint8_t *a, uint8_t b)
{
    if (b <= *a)
        return false;
    *a = b;
    return true;
}

static bool
join(void *into, const void *from)
{
    RdnaState *a = into;
    const RdnaState *b = from;
    bool changed = false;
    ISA_EACH (r, &b->live) {
        VState *x = &a->v[r];
        const VState *y = &b->v[r];
        bool had = x->valus | x->wmma;
        uint8_t own = x->valus ? x->half : 0, theirs = y->valus ? y->half : 0;
        bool more = (theirs & ~own) | raise(&x->valus, y->valus) | raise(&x->trans, y->trans) |
                    raise(&x->wmma, y->wmma);
        x->half = own | theirs;
        if (more && !had)
            x->from = y->from;
        changed |= more;
        isa_set_add(&a->live, r);
    }
    for (uint32_t s = 0; s < NS; s++) {
        uint8_t more = b->s[s] & (uint8_t)~a->s[s];
        if (more & BY_SALU)
            a->salu_from[s] = b->salu_from[s];
        if (more & BY_VALU)
            a->valu_from[s] = b->valu_from[s];
        a->s[s] |= more;
        changed |= more != 0;
    }
    changed |= raise(&a->vcc_valu, b->vcc_valu);
    if (b->cmpx && !a->cmpx) {
        a->cmpx = 1;
        a->cmpx_from = b->cmpx_from;
        changed = true;
    }
    return changed;
}

static bool
wanted(const IsaWalk *w, IsaRdnaRow row)
{
    return !isa_ignored(w, isa_rdna_row(row)->rule);
}

static bool
report(IsaWalk *w, uint32_t i, uint32_t from, uint32_t reg, IsaRdnaRow row)
{
    char what[256];
    const IsaRdnaRowInfo *info = isa_rdna_row(row);
    w->rule = info->rule;
    snprintf(what, sizeof what, "is %s; it needs %s; written by", info->what, info->fix);
    return isa_fault(w, ISA_FAULT_HAZARD, i, from, reg, what, "", 0);
}

/* ---- consumers
 * ----------------------------------------------------------------------------------------------------- */

static bool
check_vector(IsaWalk *w, const RdnaState *s, uint32_t rows, uint32_t i, const IsaRdnaKind *k)
{
    const IsaInst *in = &w->c->inst[i];
    bool sparse = !strncmp(isa_op_info(in->op)->name, "v_swmmac", 8);
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        uint8_t half = isa_opnd_halves(w->c->arch, in, q);
        if (o->kind != ISA_OPND_VGPR || !(o->flags & ISA_READ) || isa_opnd_keeps(w->c->arch, in, q))
            continue;
        for (uint32_t r = o->reg; r < TL_MIN(o->reg + (uint32_t)o->nregs, (uint32_t)NV); r++) {
            const VState *v = &s->v[r];
            if ((rows >> ISA_RH_TRANS & 1) && v->valus && v->trans && (half & v->half) &&
                wanted(w, ISA_RH_TRANS))
                return report(w, i, v->from, r, ISA_RH_TRANS);
            if (k->wmma && v->wmma && (q == 1 || q == 2 || (q == 3 && sparse)) && wanted(w, ISA_RH_WMMA))
                return report(w, i, v->from, r, ISA_RH_WMMA);
        }
    }
    return true;
}

static bool
check_scalars(IsaWalk *w, const RdnaState *s, uint32_t rows, uint32_t i, const IsaRdnaKind *k)
{
    const IsaInst *in = &w->c->inst[i];
    bool gfx11 = rows >> ISA_RH_MASK_SALU & 1;
    IsaRdnaRow salu = gfx11 ? ISA_RH_MASK_SALU : ISA_RH_SGPR_SALU,
               valu = gfx11 ? ISA_RH_MASK_VALU : ISA_RH_SGPR_VALU;
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        if (o->kind != ISA_OPND_SGPR || !(o->flags & ISA_READ))
            continue;
        for (uint32_t r = o->reg; r < o->reg + (uint32_t)o->nregs && isa_rdna_scalar(r); r++) {
            bool vcc = (r == VCC || r == VCC + 1) && !k->valu && s->vcc_valu; /* as below */
            if ((s->s[r] & BY_SALU) && !vcc && wanted(w, salu))
                return report(w, i, s->salu_from[r], ISA_REG_S + r, salu);
            if ((s->s[r] & BY_VALU) && k->valu && wanted(w, valu))
                return report(w, i, s->valu_from[r], ISA_REG_S + r, valu);
        }
    }
    return true;
}

/* ---- producers
 * ----------------------------------------------------------------------------------------------------- */

/* The register leaves the set when nothing is known of it. */
static void
forget(RdnaState *s, uint32_t r)
{
    const VState *v = &s->v[r];
    if (!(v->valus | v->trans | v->wmma))
        isa_set_remove(&s->live, r);
}

static void
carry_out_wait(RdnaState *s, uint32_t rows, const IsaRdnaKind *k)
{
    bool masks = rows >> ISA_RH_MASK_SALU & 1; /* there a wait ends the reads before it too */
    s->vcc_valu &= k->va_vcc;
    for (uint32_t r = 0; r < NS; r++) {
        bool vcc = r == VCC || r == VCC + 1;
        if (!k->sa_sdst)
            s->s[r] &= (uint8_t)~BY_SALU;
        if (vcc ? !k->va_vcc : !k->va_sdst)
            s->s[r] &= (uint8_t)~BY_VALU;
        if (masks && !(k->sa_sdst && k->va_sdst && k->va_vcc))
            s->s[r] &= BY_SALU | BY_VALU;
    }
    ISA_EACH (r, &s->live) { /* at most va_vdst of the last vector instructions are left */
        VState *v = &s->v[r];
        if (v->valus && 6 - v->valus >= k->va_vdst)
            v->valus = v->trans = 0;
        forget(s, r);
    }
}

static void
count_valu(RdnaState *s, const IsaRdnaKind *k)
{
    ISA_EACH (r, &s->live) {
        VState *v = &s->v[r];
        v->wmma = 0;
        v->valus -= v->valus != 0;
        if (k->trans)
            v->trans -= v->trans != 0;
        if (!v->valus || !v->trans)
            v->valus = v->trans = 0;
        forget(s, r);
    }
    if (!k->nop)
        s->cmpx = 0;
}

/* gfx12 has one state for both halves of VCC, or so compilers (LLVM 20 to 22) take it: a write of either
 * makes what the other owes its own. */
static void
write_vcc(RdnaState *s, bool valu, uint32_t i)
{
    uint8_t from = valu ? BY_SALU : BY_VALU, to = valu ? BY_VALU : BY_SALU;
    for (uint32_t r = VCC; r <= VCC + 1; r++)
        if (s->s[r] & from) {
            s->s[r] = (uint8_t)((s->s[r] & ~from) | to);
            *(valu ? &s->valu_from[r] : &s->salu_from[r]) = i;
        }
}

static void
mark_writes(RdnaState *s, IsaArch arch, const IsaInst *in, uint32_t rows, uint32_t i, const IsaRdnaKind *k)
{
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        uint32_t end = o->reg + (uint32_t)o->nregs;
        if (!(o->flags & ISA_WRITE))
            continue;
        if (o->kind == ISA_OPND_VGPR)
            for (uint32_t r = o->reg; r < TL_MIN(end, (uint32_t)NV); r++) {
                const IsaRdnaRowInfo *t = isa_rdna_row(ISA_RH_TRANS);
                bool trans = k->trans && (rows >> ISA_RH_TRANS & 1);
                VState old = s->v[r];
                uint8_t half = isa_opnd_halves(arch, in, q),
                        other = old.valus ? old.half & (uint8_t)~half : 0;
                if (other && !trans) { /* what the other half owes stays */
                    s->v[r].half = other;
                    continue;
                }
                s->v[r] = (VState){.valus = trans ? t->valus : 0,
                                   .trans = trans ? t->trans : 0,
                                   .half = half | other,
                                   .wmma = k->wmma,
                                   .from = i};
                isa_set_add(&s->live, r);
                forget(s, r);
            }
        if (o->kind != ISA_OPND_SGPR)
            continue;
        if ((o->reg == VCC || o->reg == VCC + 1) && (k->valu || k->salu)) {
            s->vcc_valu = k->valu && (s->s[o->reg] & READ_PAIR);
            if (rows >> ISA_RH_SGPR_SALU & 1)
                write_vcc(s, k->valu, i);
        }
        for (uint32_t r = o->reg; r < end && isa_rdna_scalar(r); r++) {
            if (k->valu && (s->s[r] & READ)) {
                s->s[r] |= BY_VALU;
                s->valu_from[r] = i;
            } else if (k->salu && (s->s[r] & READ_PAIR)) {
                s->s[r] = (uint8_t)((s->s[r] & ~BY_VALU) | BY_SALU); /* it comes after a vector one's */
                s->salu_from[r] = i;
            } else if (!k->valu && !k->salu) {
                s->s[r] &= READ | READ_PAIR;
            }
            if (rows >> ISA_RH_MASK_SALU & 1) /* the next write has no read as a mask before it */
                s->s[r] &= (uint8_t)~(READ | READ_PAIR);
        }
    }
}

/* On gfx12 a scalar instruction that reads a scalar waits for those that vector instructions write; scalar
 * memory, and vector memory that reads a scalar, wait for everything. (Newer compilers than LLVM 22 count on
 * it; LLVM 22 puts more waits in.) VCC for itself: where a vector instruction may have written it last on
 * some path, a scalar read of it ends the scalar writes of the other paths too, or so compilers (LLVM 20 to
 * 22) take it. */
static void
wait_by_reading(RdnaState *s, const IsaInst *in, const IsaRdnaKind *k)
{
    uint8_t keep = k->smem || k->mem ? READ | READ_PAIR : (uint8_t)~BY_VALU;
    bool reads = k->smem, vcc = false;
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        bool scalar = o->kind == ISA_OPND_SGPR && (o->flags & ISA_READ) && isa_rdna_scalar(o->reg);
        reads |= scalar;
        vcc |= scalar && (o->reg == VCC || o->reg == VCC + 1);
    }
    if (vcc && s->vcc_valu)
        s->s[VCC] &= READ | READ_PAIR, s->s[VCC + 1] &= READ | READ_PAIR;
    if (vcc || ((k->smem || k->mem) && reads))
        s->vcc_valu = 0;
    for (uint32_t r = 0; reads && r < NS; r++)
        s->s[r] &= keep;
}

static void
mark_reads(RdnaState *s, const IsaInst *in, uint32_t rows, const IsaRdnaKind *k)
{
    bool masks = rows >> ISA_RH_MASK_SALU & 1, all = rows >> ISA_RH_SGPR_SALU & 1;
    for (uint32_t q = 0; k->valu && (masks || all) && q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        if (o->kind != ISA_OPND_SGPR || !(o->flags & ISA_READ) || (masks && (int32_t)q != k->mask))
            continue;
        for (uint32_t r = o->reg; r < o->reg + (uint32_t)o->nregs && isa_rdna_scalar(r); r++)
            s->s[r] |= READ;
        for (uint32_t r = o->reg & ~1u; r < o->reg + (uint32_t)o->nregs && isa_rdna_scalar(r); r += 2) {
            s->s[r] |= READ_PAIR;
            s->s[r + 1] |= READ_PAIR;
        }
    }
}

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    RdnaState *s = state;
    const IsaInst *in = &w->c->inst[i];
    const RdnaFacts *f = w->facts;
    const IsaRdnaKind *k = &f->kind[i];
    uint32_t rows = f->rows;
    f->reached[i] = 1;
    if (k->waits) {
        carry_out_wait(s, rows, k);
        return true;
    }
    if (w->report && k->valu && !check_vector(w, s, rows, i, k))
        return false;
    if (w->report && (k->valu || k->salu) && !check_scalars(w, s, rows, i, k))
        return false;
    if (w->report && k->permlane && s->cmpx && wanted(w, ISA_RH_PERMLANE) &&
        !report(w, i, s->cmpx_from, ISA_REG_S + 126, ISA_RH_PERMLANE))
        return false;
    if (in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64) { /* compilers look at one function */
        memset(s, 0, sizeof *s);
        return true;
    }
    if (k->mem) /* it waits for the vector instructions before it */
        ISA_EACH (r, &s->live) {
            s->v[r].valus = s->v[r].trans = 0;
            forget(s, r);
        }
    if (k->valu)
        count_valu(s, k);
    if (!k->valu && (rows >> ISA_RH_SGPR_VALU & 1))
        wait_by_reading(s, in, k);
    bool masks = rows >> ISA_RH_MASK_SALU & 1; /* there a read counts for the writes of later instructions */
    if (masks)
        mark_writes(s, w->c->arch, in, rows, i, k);
    mark_reads(s, in, rows, k);
    if (!masks)
        mark_writes(s, w->c->arch, in, rows, i, k);
    if (k->cmpx) {
        s->cmpx = 1;
        s->cmpx_from = i;
    }
    return true;
}

bool
isa_check_rdna(IsaWalk *w)
{
    const IsaCode *c = w->c;
    RdnaFacts f = {TL_NEW_N(c->arena, IsaRdnaKind, c->n), TL_NEW_N(c->arena, uint8_t, c->n),
                   isa_rdna_rows(c->arch, c->wave64)};
    if (!f.kind || !f.reached)
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        f.kind[i] = isa_rdna_kind(c->arch, &c->inst[i]);
    w->facts = &f;
    return isa_walk(w, sizeof(RdnaState), step, join) &&
           (!(f.rows >> ISA_RH_FORWARD & 1) || !wanted(w, ISA_RH_FORWARD) ||
            isa_check_forward(w, f.kind, f.reached));
}
