/* check_wait.c - are the waits there? A forward dataflow over the blocks: for each register the operation
 * that will write it and how many later ones of the same counter were issued at least (the smallest number
 * over all paths). A wait for N covers an operation with at least N later ones. What counts where, in what
 * order it comes back and what a wait asks is the table of counters.h. A flat load counts in two counters; it
 * is taken as done when the one of vector memory covers it, as compilers do when they know that it does not
 * reach LDS.
 */
#include "isa/check_int.h"
#include "isa/counters.h"

enum { MAX_AFTER = 63, MAX_DMA = 32, DMA_SEEN = 1, DMA_COVERED = 2 };
enum { VM = ISA_CNT_VM, DS = ISA_CNT_DS, KM = ISA_CNT_KM };

/* The operation that will write a register: 1 + the least number of later ones of its counter; 0 = none. */
typedef struct Pend {
    uint8_t after, counter, flat;
    uint32_t from;
} Pend;

typedef struct WaitState {
    Pend reg[ISA_NHALVES];
    IsaRegSet live;   /* registers with an operation */
    uint8_t dma_full; /* more loads to LDS than dma[] holds: nothing is said about them */
    uint8_t smem_out; /* a scalar load is outstanding: lgkmcnt(N > 0) tells nothing */
    uint8_t ds_write; /* an LDS write is outstanding: 1 + least number of later ones that count with it */
    uint32_t ds_from;
    struct Dma {       /* loads straight to LDS under way: the most later operations over all paths */
        uint32_t from; /* 1 + instruction; 0 = free */
        uint32_t after;
    } dma[MAX_DMA];
} WaitState;

/* What an instruction counts in, or the limits that a wait sets. */
typedef struct WaitFact {
    uint32_t bits;
    bool is_wait;
    uint16_t limit[ISA_CNT_COUNT];
} WaitFact;

static uint8_t
least(uint8_t a, uint8_t b)
{
    return !a ? b : !b ? a : TL_MIN(a, b);
}

/* Two paths may leave a register to operations of two counters: the one with fewer later ones stays, so that
 * the merge ends; both are faults when nothing covers them. */
static bool
join_pend(Pend *a, const Pend *b)
{
    Pend old = *a;
    if (!b->after || (a->after && b->after >= a->after)) {
        a->flat |= b->after && b->counter == a->counter ? b->flat : 0;
        return old.flat != a->flat;
    }
    *a = *b;
    if (old.after && old.counter == b->counter) {
        a->flat |= old.flat;
        a->from = old.from;
    }
    return true;
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
    ISA_EACH (r, &b->live) {
        changed |= join_pend(&a->reg[r], &b->reg[r]);
        isa_set_add(&a->live, r);
    }
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

/* Is an operation with so many later ones (less one) of this counter back after a wait for `limit`? */
static bool
covers(const IsaWalk *w, const WaitState *s, uint32_t counter, uint32_t after, const uint16_t *limit)
{
    if (limit[counter] == 0)
        return true;
    if (limit[counter] == ISA_CNT_ANY || !isa_counter_in_order((IsaCounter)counter) ||
        after <= limit[counter])
        return false;
    /* the counter may hold scalar loads too, which come back in any order */
    return !(isa_counters_joined(w->c->arch, (IsaCounter)counter) & 1u << KM & ~(1u << counter)) ||
           !s->smem_out;
}

/* The operation that writes the register is back. */
static void
done(WaitState *s, uint32_t r)
{
    s->reg[r] = (Pend){0};
    isa_set_remove(&s->live, r);
}

static void
carry_out(IsaWalk *w, WaitState *s, const uint16_t *limit)
{
    for (uint32_t i = 0; i < MAX_DMA; i++)
        if (s->dma[i].from && limit[VM] != ISA_CNT_ANY && s->dma[i].after >= limit[VM]) {
            w->covered[s->dma[i].from - 1] |= DMA_COVERED;
            s->dma[i].from = 0;
        }
    ISA_EACH (r, &s->live)
        if (covers(w, s, s->reg[r].counter, s->reg[r].after, limit))
            done(s, r);
    if (s->ds_write && covers(w, s, DS, s->ds_write, limit))
        s->ds_write = 0;
    if (limit[KM] == 0)
        s->smem_out = 0;
}

/* Operations that count in `bits` are issued. */
static void
issue(IsaArch arch, WaitState *s, uint32_t bits)
{
    uint32_t with = 0; /* counters that go up, with those that hardware counts together with them */
    for (uint32_t c = 0; c < ISA_CNT_COUNT; c++)
        if (bits >> c & 1)
            with |= isa_counters_joined(arch, (IsaCounter)c);
    ISA_EACH (r, &s->live) {
        Pend *p = &s->reg[r];
        if (!(with >> p->counter & 1))
            continue;
        p->after += p->after <= MAX_AFTER;
        /* the issue waits while a counter is at its most, so what is behind that many is complete */
        bool ordered = isa_counter_in_order((IsaCounter)p->counter) &&
                       !(s->smem_out && isa_counters_joined(arch, (IsaCounter)p->counter) & 1u << KM);
        if (ordered && p->after > isa_counter_most(arch, (IsaCounter)p->counter))
            done(s, r);
    }
    if ((with >> DS & 1) && s->ds_write && s->ds_write <= MAX_AFTER)
        s->ds_write++;
    for (uint32_t i = 0; (with >> VM & 1) && i < MAX_DMA; i++)
        s->dma[i].after += s->dma[i].from && s->dma[i].after <= MAX_AFTER;
}

/* A load may write over the destination of an earlier one that comes back before it by the counter's own
 * order (a flat one taken for one of vector memory). */
static bool
ordered_overwrite(const Pend *p, uint32_t bits)
{
    return bits == 1u << p->counter && isa_counter_in_order((IsaCounter)p->counter);
}

/* The operation was reported. */
static void
told(WaitState *s, uint32_t from)
{
    ISA_EACH (r, &s->live)
        if (s->reg[r].from == from)
            done(s, r);
}

/* The registers of operand k, halves of gfx11 and gfx12 each for itself: the nth, or UINT32_MAX where that is
 * none of the operand's. False: no more. */
static bool
nth_reg(IsaArch arch, const IsaInst *in, uint32_t k, uint32_t nth, uint32_t *reg)
{
    uint32_t first, n, half = nth & 1;
    if (!isa_opnd_regs(&in->opnd[k], &first, &n) || nth / 2 >= n)
        return false;
    *reg = first + nth / 2;
    if (in->opnd[k].kind != ISA_OPND_VGPR || arch <= ISA_GFX950) {
        if (half)
            *reg = UINT32_MAX;
    } else if (!(isa_opnd_halves(arch, in, k) >> half & 1)) {
        *reg = UINT32_MAX;
    } else if (half) {
        *reg += ISA_REG_HIGH;
    }
    return true;
}

/* A load of half a register keeps the other half when it arrives (gfx11, gfx12) or clears it: it reads
 * nothing before. */
static bool
merges(const IsaInst *in, uint32_t k)
{
    uint32_t cl = isa_op_info(in->op)->classes;
    return k < in->ndst && (cl & ISA_C_LOAD) && !(cl & ISA_C_ATOMIC);
}

/* What is reported counts as back from then on: one missing wait is told once a block. */
static bool
check_operands(IsaWalk *w, WaitState *s, uint32_t i, uint32_t bits)
{
    const IsaInst *in = &w->c->inst[i];
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        for (uint32_t nth = 0, r; nth_reg(w->c->arch, in, k, nth, &r); nth++) {
            const Pend *p = &s->reg[r == UINT32_MAX ? 0 : r];
            if (r == UINT32_MAX || !p->after)
                continue;
            if ((!(o->flags & ISA_READ) || merges(in, k)) && ordered_overwrite(p, bits))
                continue;
            if (!isa_fault(w, ISA_FAULT_WAIT, i, p->from, r,
                           o->flags & ISA_READ ? "is read" : "is overwritten", "before the wait for", 0))
                return false;
            told(s, p->from);
            break; /* one report an operand */
        }
    }
    return true;
}

static void
mark_results(WaitState *s, IsaArch arch, const IsaInst *in, uint32_t i, uint32_t bits)
{
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        bool scc = o->kind == ISA_OPND_SRC; /* written late by s_barrier_signal_isfirst and s_barrier_leave */
        if (!(o->flags & ISA_WRITE) || ((o->flags & ISA_IMPLICIT) && !scc))
            continue;
        for (uint32_t nth = 0, r; nth_reg(arch, in, k, nth, &r); nth++) {
            if (r == UINT32_MAX)
                continue;
            s->reg[r] = (Pend){.after = 1,
                               .counter = (uint8_t)__builtin_ctz(bits),
                               .flat = (bits & (bits - 1)) != 0,
                               .from = i};
            isa_set_add(&s->live, r);
        }
    }
}

static const uint16_t all_done[ISA_CNT_COUNT]; /* zeros: a wait for everything */

/* Does the instruction arrive at a barrier? */
static bool
arrives(const IsaInst *in)
{
    return in->op == ISA_OP_s_barrier || in->op == ISA_OP_s_barrier_signal ||
           in->op == ISA_OP_s_barrier_signal_isfirst;
}

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    WaitState *s = state;
    const IsaInst *in = &w->c->inst[i];
    IsaArch arch = w->c->arch;
    const WaitFact *f = &((const WaitFact *)w->facts)[i];
    uint32_t cl = isa_op_info(in->op)->classes, bits = f->bits;
    if (f->is_wait) {
        carry_out(w, s, f->limit);
        return true;
    }
    if (w->report && (w->which & ISA_CHECK_WAIT) && !check_operands(w, s, i, bits))
        return false;
    if (in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64) {
        carry_out(w, s, all_done); /* a callee starts by waiting for everything */
        return true;
    }
    if (arrives(in) && w->report && (w->which & ISA_CHECK_BARRIER) && s->ds_write &&
        !isa_fault(w, ISA_FAULT_BARRIER, i, s->ds_from, UINT32_MAX,
                   "the LDS write may be under way at the barrier:", "", 0))
        return false;
    if (!bits)
        return true;
    issue(arch, s, bits);
    if (bits >> KM & 1)
        s->smem_out = 1;
    if (in->enc == ISA_DS && (cl & (ISA_C_STORE | ISA_C_ATOMIC))) {
        s->ds_write = 1;
        s->ds_from = i;
    }
    if ((bits >> VM & 1) && isa_loads_to_lds(in)) {
        w->covered[i] |= DMA_SEEN;
        dma_add(s, i + 1, 0);
    }
    w->covered[w->c->n] |= s->dma_full;
    mark_results(s, arch, in, i, bits);
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
    const IsaCode *c = w->c;
    WaitFact *facts = TL_NEW_N(c->arena, WaitFact, c->n);
    if (!facts)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        facts[i].bits = isa_counters_of(c->arch, &c->inst[i]);
        facts[i].is_wait = isa_wait_limits(c->arch, &c->inst[i], facts[i].limit);
    }
    w->facts = facts;
    if (!(w->covered = TL_NEW_N(c->arena, uint8_t, c->n + 1)) || !isa_walk(w, sizeof(WaitState), step, join))
        return false;
    return !(w->which & ISA_CHECK_BARRIER) || report_dma(w);
}
