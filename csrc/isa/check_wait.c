/* check_wait.c - are the waits there? A forward dataflow over the blocks: for each register the load that
 * will write it and how many later operations of the same counter were issued at least (the smallest number
 * over all paths). s_waitcnt vmcnt(N) covers a load with at least N later ones. Rules of gfx9 (one vmcnt for
 * loads and stores, in order; lgkmcnt in order for LDS, out of order as soon as a scalar load is
 * outstanding). A flat load counts in both; it is taken as done when vmcnt covers it, as compilers do when
 * they know that it does not reach LDS.
 */
#include "isa/check_int.h"

enum { MAX_AFTER = 63 };

/* Outstanding writes of one register. vm, lgkm: 0 = none, else 1 + the least number of later operations. */
typedef struct Pend {
    uint8_t vm, lgkm, smem, flat;
    uint32_t from;
} Pend;

typedef struct WaitState {
    Pend reg[ISA_NREGS];
    uint8_t smem_out; /* a scalar load is outstanding: lgkmcnt(N > 0) tells nothing */
    uint8_t ds_write; /* an LDS write is outstanding: 1 + least number of later lgkm operations */
    uint32_t ds_from;
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
    return changed;
}

static void
wait_counts(WaitState *s, uint32_t vm, uint32_t lgkm)
{
    bool tells = lgkm == 0 || !s->smem_out;
    for (uint32_t r = 0; r < ISA_NREGS; r++) {
        Pend *p = &s->reg[r];
        if (p->vm && p->vm > vm)
            p->vm = 0;
        if (p->lgkm && (lgkm == 0 || (tells && !p->smem && p->lgkm > lgkm)))
            p->lgkm = 0;
        if (!(p->vm | p->lgkm))
            p->smem = p->flat = 0;
    }
    if (s->ds_write && tells && s->ds_write > lgkm)
        s->ds_write = 0;
    if (lgkm == 0)
        s->smem_out = 0;
}

static void
issue(WaitState *s, bool vm, bool lgkm)
{
    for (uint32_t r = 0; r < ISA_NREGS; r++) {
        Pend *p = &s->reg[r];
        if (vm && p->vm && p->vm <= MAX_AFTER)
            p->vm++;
        if (lgkm && p->lgkm && p->lgkm <= MAX_AFTER)
            p->lgkm++;
    }
    if (lgkm && s->ds_write && s->ds_write <= MAX_AFTER)
        s->ds_write++;
}

/* What an instruction does to the counters. */
typedef struct Event {
    bool vm, lgkm, smem, flat;
} Event;

static Event
event_of(const IsaInst *in, uint32_t cl)
{
    bool access = cl & (ISA_C_LOAD | ISA_C_STORE | ISA_C_ATOMIC);
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

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    WaitState *s = state;
    const IsaInst *in = &w->c->inst[i];
    uint32_t cl = isa_op_info(in->op)->classes;
    if (in->op == ISA_OP_s_waitcnt) {
        uint32_t v = in->opnd[0].bits;
        wait_counts(s, (v & 15) | (v >> 14 & 3) << 4, v >> 8 & 15);
        return true;
    }
    Event e = event_of(in, cl);
    if (w->report && (w->which & ISA_CHECK_WAIT) && !check_operands(w, s, i, e))
        return false;
    if (in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64) {
        wait_counts(s, 0, 0); /* a callee starts by waiting for everything */
        return true;
    }
    if ((cl & ISA_C_BARRIER) && w->report && (w->which & ISA_CHECK_BARRIER) && s->ds_write &&
        !isa_fault(w, ISA_FAULT_BARRIER, i, s->ds_from, UINT32_MAX,
                   "the LDS write may be under way at the barrier:", "", 0))
        return false;
    if (!e.vm && !e.lgkm)
        return true;
    issue(s, e.vm, e.lgkm);
    if (e.smem)
        s->smem_out = 1;
    if (in->enc == ISA_DS && (cl & (ISA_C_STORE | ISA_C_ATOMIC))) {
        s->ds_write = 1;
        s->ds_from = i;
    }
    mark_results(s, in, i, e);
    return true;
}

bool
isa_check_waits(IsaWalk *w)
{
    return isa_walk(w, sizeof(WaitState), step, join);
}
