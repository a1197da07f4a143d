/* check_wait.c - are the waits there? A forward dataflow over the blocks: for each register the load that
 * will write it and how many later operations of the same counter were issued at least (the smallest number
 * over all paths). A wait for N covers a load with at least N later ones. gfx9 has one vmcnt for loads and
 * stores, in order; RDNA counts stores apart. lgkmcnt is in order for LDS, out of order as soon as a scalar
 * load is outstanding; gfx12 counts scalar loads apart (kmcnt). A flat load counts in both; it is taken as
 * done when vmcnt covers it, as compilers do when they know that it does not reach LDS.
 */
#include "isa/check_int.h"

enum { MAX_AFTER = 63, MAX_LGKM_GFX9 = 15, MAX_DMA = 32, DMA_SEEN = 1, DMA_COVERED = 2 };

/* Outstanding writes of one register. vm, lgkm: 0 = none, else 1 + the least number of later operations. */
typedef struct Pend {
    uint8_t vm, lgkm, smem, flat;
    uint32_t from;
} Pend;

typedef struct WaitState {
    Pend reg[ISA_NREGS];
    uint8_t dma_full; /* more loads to LDS than dma[] holds: nothing is said about them */
    uint8_t smem_out; /* a scalar load is outstanding: lgkmcnt(N > 0) tells nothing */
    uint8_t ds_write; /* an LDS write is outstanding: 1 + least number of later lgkm operations */
    uint32_t ds_from;
    struct Dma {       /* loads straight to LDS under way: the most later operations over all paths */
        uint32_t from; /* 1 + instruction; 0 = free */
        uint32_t after;
    } dma[MAX_DMA];
} WaitState;

static uint8_t
least(uint8_t a, uint8_t b)
{
    return !a ? b : !b ? a : TL_MIN(a, b);
}

static bool
join_pend(Pend *a, const Pend *b)
{
    Pend old = *a;
    if (!(b->vm | b->lgkm))
        return false;
    if (!(a->vm | a->lgkm))
        a->from = b->from;
    a->vm = least(a->vm, b->vm);
    a->lgkm = least(a->lgkm, b->lgkm);
    a->smem |= b->smem;
    a->flat |= b->flat;
    return old.vm != a->vm || old.lgkm != a->lgkm || old.smem != a->smem || old.flat != a->flat;
}

/* Notes a load to LDS; says whether anything changed. */
static bool
dma_add(WaitState *s, uint32_t from, uint32_t after)
{
    struct Dma *slot = NULL;
    for (uint32_t i = 0; i < MAX_DMA; i++) {
        struct Dma *d = &s->dma[i];
        if (d->from == from) {
            bool more = after > d->after;
            d->after = TL_MAX(after, d->after);
            return more;
        }
        if (!d->from && !slot)
            slot = d;
    }
    if (slot)
        *slot = (struct Dma){from, after};
    else
        s->dma_full = 1;
    return slot != NULL;
}

static bool
join(void *into, const void *from)
{
    WaitState *a = into;
    const WaitState *b = from;
    bool changed = false;
    for (uint32_t r = 0; r < ISA_NREGS; r++)
        changed |= join_pend(&a->reg[r], &b->reg[r]);
    if (b->smem_out && !a->smem_out) {
        a->smem_out = 1;
        changed = true;
    }
    uint8_t w = least(a->ds_write, b->ds_write);
    if (w != a->ds_write) {
        if (!a->ds_write)
            a->ds_from = b->ds_from;
        a->ds_write = w;
        changed = true;
    }
    for (uint32_t i = 0; i < MAX_DMA; i++)
        if (b->dma[i].from)
            changed |= dma_add(a, b->dma[i].from, b->dma[i].after);
    return changed;
}

enum { ANY = 1 << 16 }; /* no wait on this counter */

/* Waits until at most vm vector loads, ds LDS operations and km scalar loads are outstanding. Before gfx12,
 * ds and km are one counter. */
static void
wait_counts(IsaWalk *w, WaitState *s, uint32_t vm, uint32_t ds, uint32_t km)
{
    bool one = w->c->arch != ISA_GFX1201, tells = ds == 0 || !one || !s->smem_out;
    for (uint32_t i = 0; i < MAX_DMA; i++)
        if (s->dma[i].from && s->dma[i].after >= vm) {
            w->covered[s->dma[i].from - 1] |= DMA_COVERED;
            s->dma[i].from = 0;
        }
    for (uint32_t r = 0; r < ISA_NREGS; r++) {
        Pend *p = &s->reg[r];
        if (p->vm && p->vm > vm)
            p->vm = 0;
        if (p->lgkm && (p->smem ? km == 0 : ds == 0 || (tells && p->lgkm > ds)))
            p->lgkm = 0;
        if (!(p->vm | p->lgkm))
            p->smem = p->flat = 0;
    }
    if (s->ds_write && tells && s->ds_write > ds)
        s->ds_write = 0;
    if (km == 0)
        s->smem_out = 0;
}

/* smem: the operation is a scalar load, which on gfx12 has a counter of its own. */
static void
issue(IsaArch arch, WaitState *s, bool vm, bool lgkm, bool smem)
{
    uint32_t most = arch <= ISA_GFX950 ? MAX_LGKM_GFX9 : MAX_AFTER;
    bool apart = arch == ISA_GFX1201;
    for (uint32_t r = 0; r < ISA_NREGS; r++) {
        Pend *p = &s->reg[r];
        /* the issue waits while a counter is at its most, so what is behind that many is complete */
        if (vm && p->vm && ++p->vm > MAX_AFTER)
            p->vm = 0;
        if (lgkm && p->lgkm && p->lgkm <= MAX_AFTER && (!apart || p->smem == smem))
            p->lgkm++;
        if (p->lgkm > most && !p->smem && (apart || !s->smem_out))
            p->lgkm = 0;
    }
    if (lgkm && s->ds_write && s->ds_write <= MAX_AFTER && !(apart && smem))
        s->ds_write++;
    for (uint32_t i = 0; vm && i < MAX_DMA; i++)
        s->dma[i].after += s->dma[i].from && s->dma[i].after <= MAX_AFTER;
}

/* What an instruction does to the counters. */
typedef struct Event {
    bool vm, lgkm, smem, flat;
} Event;

static Event
event_of(IsaArch arch, const IsaInst *in, uint32_t cl)
{
    bool access = cl & (ISA_C_LOAD | ISA_C_STORE | ISA_C_ATOMIC);
    if (arch > ISA_GFX950 && (cl & ISA_C_VMEM) && !(cl & ISA_C_LOAD)) /* RDNA counts stores apart */
        access = (cl & ISA_C_ATOMIC) && (in->glc || in->sc0 || (arch == ISA_GFX1201 && (in->th & 1)));
    bool smem = (cl & ISA_C_SMEM) || in->op == ISA_OP_s_sendmsg || in->op == ISA_OP_s_sendmsghalt;
    bool flat = cl & ISA_C_FLAT;
    return (Event){.vm = (cl & ISA_C_VMEM) && access,
                   .lgkm = smem || (cl & ISA_C_DS) || flat,
                   .smem = smem,
                   .flat = flat};
}

/* A load may write over the destination of an earlier one that comes back before it by the counter's own
 * order. */
static bool
ordered_overwrite(const Pend *p, Event e)
{
    if (e.flat || p->flat || p->smem || e.smem)
        return false;
    return (!p->vm || e.vm) && (!p->lgkm || e.lgkm);
}

static bool
check_operands(IsaWalk *w, const WaitState *s, uint32_t i, Event e)
{
    const IsaInst *in = &w->c->inst[i];
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        uint32_t first, n;
        if (!isa_opnd_regs(o, &first, &n))
            continue;
        for (uint32_t r = first; r < first + n; r++) {
            const Pend *p = &s->reg[r];
            if (!(p->vm | p->lgkm))
                continue;
            if (!(o->flags & ISA_READ) && ordered_overwrite(p, e))
                continue;
            if (!isa_fault(w, ISA_FAULT_WAIT, i, p->from, r,
                           o->flags & ISA_READ ? "is read" : "is overwritten", "before the wait for", 0))
                return false;
            break; /* one report an operand */
        }
    }
    return true;
}

static void
mark_results(WaitState *s, const IsaInst *in, uint32_t i, Event e)
{
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        uint32_t first, n;
        if (!(o->flags & ISA_WRITE) || (o->flags & ISA_IMPLICIT) || !isa_opnd_regs(o, &first, &n))
            continue;
        for (uint32_t r = first; r < first + n; r++)
            s->reg[r] =
                (Pend){.vm = e.vm, .lgkm = e.lgkm && !e.vm, .smem = e.smem, .flat = e.flat, .from = i};
    }
}

/* Carries a wait out; false: the instruction is none. */
static bool
wait_of(IsaWalk *w, WaitState *s, const IsaInst *in)
{
    uint32_t v = in->opnd[0].bits, n = in->nopnds > 1 ? in->opnd[1].bits : v, low = v & 63;
    switch ((int)in->op) {
    case ISA_OP_s_waitcnt: {
        bool rdna = w->c->arch > ISA_GFX950;
        uint32_t lgkm = rdna ? v >> 4 & 63 : v >> 8 & 15;
        wait_counts(w, s, rdna ? v >> 10 & 63 : (v & 15) | (v >> 14 & 3) << 4, lgkm, lgkm);
        return true;
    }
    case ISA_OP_s_waitcnt_vmcnt: /* register (null), number */
        wait_counts(w, s, n & 63, ANY, ANY);
        return true;
    case ISA_OP_s_wait_loadcnt:
        wait_counts(w, s, low, ANY, ANY);
        return true;
    case ISA_OP_s_wait_dscnt:
        wait_counts(w, s, ANY, low, ANY);
        return true;
    case ISA_OP_s_wait_kmcnt:
        wait_counts(w, s, ANY, ANY, low);
        return true;
    case ISA_OP_s_wait_loadcnt_dscnt:
        wait_counts(w, s, v >> 8 & 63, low, ANY);
        return true;
    case ISA_OP_s_wait_storecnt_dscnt:
        wait_counts(w, s, ANY, low, ANY);
        return true;
    default:
        return false;
    }
}

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    WaitState *s = state;
    const IsaInst *in = &w->c->inst[i];
    uint32_t cl = isa_op_info(in->op)->classes;
    if (wait_of(w, s, in))
        return true;
    Event e = event_of(w->c->arch, in, cl);
    if (w->report && (w->which & ISA_CHECK_WAIT) && !check_operands(w, s, i, e))
        return false;
    if (in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64) {
        wait_counts(w, s, 0, 0, 0); /* a callee starts by waiting for everything */
        return true;
    }
    if ((cl & ISA_C_BARRIER) && !(cl & ISA_C_WAIT) && w->report && (w->which & ISA_CHECK_BARRIER) &&
        s->ds_write &&
        !isa_fault(w, ISA_FAULT_BARRIER, i, s->ds_from, UINT32_MAX,
                   "the LDS write may be under way at the barrier:", "", 0))
        return false;
    if (!e.vm && !e.lgkm)
        return true;
    issue(w->c->arch, s, e.vm, e.lgkm, e.smem);
    if (e.smem)
        s->smem_out = 1;
    if (in->enc == ISA_DS && (cl & (ISA_C_STORE | ISA_C_ATOMIC))) {
        s->ds_write = 1;
        s->ds_from = i;
    }
    if (e.vm && isa_loads_to_lds(in)) {
        w->covered[i] |= DMA_SEEN;
        dma_add(s, i + 1, 0);
    }
    w->covered[w->c->n] |= s->dma_full;
    mark_results(s, in, i, e);
    return true;
}

/* Loads to LDS whose data nobody may ever read: no path has a wait for them. */
static bool
report_dma(IsaWalk *w)
{
    const IsaCode *c = w->c;
    uint32_t reader = UINT32_MAX;
    for (uint32_t i = 0; i < c->n && reader == UINT32_MAX; i++)
        if (c->inst[i].enc == ISA_DS && (isa_op_info(c->inst[i].op)->classes & ISA_C_LOAD))
            reader = i;
    for (uint32_t i = 0; i < c->n && reader != UINT32_MAX && !w->covered[c->n]; i++)
        if (w->covered[i] == DMA_SEEN &&
            !isa_fault(w, ISA_FAULT_BARRIER, reader, i, UINT32_MAX,
                       "LDS is read, but no wait covers the load to LDS", "at", 0))
            return false;
    return true;
}

bool
isa_check_waits(IsaWalk *w)
{
    if (!(w->covered = TL_NEW_N(w->c->arena, uint8_t, w->c->n + 1)) ||
        !isa_walk(w, sizeof(WaitState), step, join))
        return false;
    return !(w->which & ISA_CHECK_BARRIER) || report_dma(w);
}
