/* check_poll.c - loads that wait for another wave, where encodings do not tell atomic loads from plain ones:
 * LDS on all chips, global memory where the waves of a workgroup share a vector cache and the scope is
 * theirs.
 *
 * A load waits when it stands in a loop that does nothing but look: no store, atomic or barrier (stores to
 * private memory do not count). Repeating it makes sense only when somebody else writes: its address stays
 * the same in the loop (a compiler would have moved a plain load out of it), or its value decides a branch.
 * Of code without optimization, which keeps its variables in memory, neither can be told. Whatever the loop,
 * the load must come back to the address of the time before when nothing was stored in between; so a search
 * through an array is none after its first step. An atomic that waits in this way (a lock) is the same.
 *
 * An atomic whose old value decides a branch (who comes last goes on) takes over what was released there,
 * too. One whose value is data alone (a histogram, a place in a list) orders nothing: its program would go on
 * as well had the atomic come first.
 */
#include "sim/check.h"

enum { AHEAD = 256, LOOP = 320 /* instructions that are looked at */ };

typedef struct Taint { /* registers that hang on the load's value */
    uint64_t v[8], s[2];
    bool scc;
} Taint;

typedef struct Loop {
    uint64_t lo, hi; /* bytes of the code: first instruction, behind the last */
} Loop;

static bool
decode(const SimCode *c, uint64_t at, IsaInst *in)
{
    const char *why;
    return at < c->size &&
           isa_decode(c->arch, c->wave64, sim_dm_host(c->base + at), c->size - at, in, &why) && in->size;
}

static bool
starts(const IsaInst *in, const char *with)
{
    return !strncmp(isa_op_info(in->op)->name, with, strlen(with));
}

/* Where a direct branch leads; false: not one. */
static bool
branch_to(const IsaInst *in, uint64_t at, uint64_t *to)
{
    if (in->enc != ISA_SOPP || !(starts(in, "s_branch") || starts(in, "s_cbranch")) || !in->nopnds)
        return false;
    *to = at + 4 + (uint64_t)((int64_t)(int16_t)in->opnd[0].bits * 4);
    return true;
}

/* The innermost loop around the instruction. */
static bool
loop_of(const SimCode *c, uint64_t me, Loop *l)
{
    uint64_t at = me, to;
    for (uint32_t k = 0; k < AHEAD; k++) {
        IsaInst in;
        if (!decode(c, at, &in) || (isa_op_info(in.op)->classes & ISA_C_END) || starts(&in, "s_setpc"))
            return false;
        at += in.size;
        if (branch_to(&in, at - in.size, &to) && to <= me) {
            *l = (Loop){to, at};
            return true;
        }
    }
    return false;
}

/* Spills of gfx90a: buffer instructions without an address of their own. */
static bool
is_private(const IsaInst *in)
{
    bool buffer = in->enc == ISA_MUBUF && !in->offen && !in->idxen && !in->addr64;
    return in->enc == ISA_SCRATCH || in->enc == ISA_FLAT || buffer;
}

/* Does it do more than to look? *spills: it stores to what may be private memory. */
static bool
has_effect(const IsaInst *in, bool *spills)
{
    uint32_t cl = isa_op_info(in->op)->classes;
    if (cl & (ISA_C_BARRIER | ISA_C_END | ISA_C_MFMA) || starts(in, "s_swappc") || starts(in, "s_setpc") ||
        starts(in, "s_call") || in->lds)
        return true;
    if (cl & ISA_C_SMEM)
        return starts(in, "s_store") || starts(in, "s_buffer_store") || starts(in, "s_atomic") ||
               starts(in, "s_buffer_atomic");
    if (!(cl & (ISA_C_VMEM | ISA_C_DS)) || !(cl & (ISA_C_STORE | ISA_C_ATOMIC)))
        return false;
    if ((cl & ISA_C_ATOMIC) || !(cl & ISA_C_VMEM) || !is_private(in))
        return true;
    *spills = true;
    return false;
}

static bool
tainted(const Taint *t, const IsaOpnd *o)
{
    bool any = o->kind == ISA_OPND_SRC && o->reg == 253 && t->scc;
    for (uint32_t k = 0; k < o->nregs; k++) {
        uint32_t r = o->reg + k, row = (r + (o->kind == ISA_OPND_AGPR ? 256 : 0)) & 511;
        if (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR)
            any |= t->v[row / 64] >> row % 64 & 1;
        else if (o->kind == ISA_OPND_SGPR)
            any |= t->s[r / 64 & 1] >> r % 64 & 1;
    }
    return any;
}

static void
taint(Taint *t, const IsaOpnd *o)
{
    t->scc |= o->kind == ISA_OPND_SRC && o->reg == 253;
    for (uint32_t k = 0; k < o->nregs; k++) {
        uint32_t r = o->reg + k, row = (r + (o->kind == ISA_OPND_AGPR ? 256 : 0)) & 511;
        if (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR)
            t->v[row / 64] |= UINT64_C(1) << row % 64;
        else if (o->kind == ISA_OPND_SGPR)
            t->s[r / 64 & 1] |= UINT64_C(1) << r % 64;
    }
}

static void
untaint(Taint *t, const IsaOpnd *o)
{
    t->scc &= !(o->kind == ISA_OPND_SRC && o->reg == 253);
    for (uint32_t k = 0; k < o->nregs; k++) {
        uint32_t r = o->reg + k, row = (r + (o->kind == ISA_OPND_AGPR ? 256 : 0)) & 511;
        if (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR)
            t->v[row / 64] &= ~(UINT64_C(1) << row % 64);
        else if (o->kind == ISA_OPND_SGPR)
            t->s[r / 64 & 1] &= ~(UINT64_C(1) << r % 64);
    }
}

static bool
decides(const IsaInst *in, const Taint *t)
{
    return starts(in, "s_cbranch_scc")    ? t->scc
           : starts(in, "s_cbranch_vcc")  ? t->s[1] >> (106 - 64) & 3
           : starts(in, "s_cbranch_exec") ? t->s[1] >> (126 - 64) & 3
                                          : false;
}

/* One pass through the loop: does the value of `me` decide a branch, does anything write what it reads? */
static bool
pass(const SimCode *c, const Loop *l, uint64_t me, Taint *t, const Taint *address, bool *moves)
{
    bool found = false;
    for (uint64_t at = l->lo; at < l->hi;) {
        IsaInst in;
        if (!decode(c, at, &in))
            break;
        bool from = at == me;
        found |= decides(&in, t);
        for (uint32_t i = 0; i < in.nopnds; i++)
            from |= (in.opnd[i].flags & ISA_READ) && tainted(t, &in.opnd[i]);
        for (uint32_t i = 0; i < in.nopnds; i++) {
            if (!(in.opnd[i].flags & ISA_WRITE))
                continue;
            *moves |= tainted(address, &in.opnd[i]);
            if (from)
                taint(t, &in.opnd[i]);
        }
        at += in.size;
    }
    return found;
}

static bool
waits(const SimCode *c, const SimRec *r)
{
    uint64_t me = (uint64_t)r->at * 4;
    const IsaInst *in = &r->ext->in;
    uint32_t regs = in->ndst ? in->opnd[0].nregs : 0;
    bool atomic = isa_op_info(in->op)->classes & ISA_C_ATOMIC, spills = false, moves = false;
    Loop l;
    if ((regs != 1 && regs != 2) || in->lds || in->enc == ISA_SCRATCH || !loop_of(c, me, &l))
        return false;
    uint32_t n = 0;
    for (uint64_t at = l.lo; at < l.hi;) {
        IsaInst x;
        if (n++ > LOOP || !decode(c, at, &x) || (at != me && has_effect(&x, &spills)))
            return false;
        at += x.size;
    }
    if (spills)
        return true;
    Taint t = {{0}, {0}, false}, address = t;
    for (uint32_t i = in->ndst; i < in->nopnds; i++)
        if ((in->opnd[i].flags & (ISA_READ | ISA_IMPLICIT)) == ISA_READ)
            taint(&address, &in->opnd[i]);
    bool decided = pass(c, &l, me, &t, &address, &moves);
    decided |= pass(c, &l, me, &t, &address, &moves);
    return decided || (!moves && !atomic);
}

/* Does its value decide a branch before the next barrier? Straight on; a value that is spilled may. */
static bool
steers(const SimCode *c, const SimRec *r)
{
    Taint t = {{0}, {0}, false};
    uint64_t me = (uint64_t)r->at * 4, at = me;
    for (uint32_t k = 0; k < AHEAD; k++) {
        IsaInst in;
        if (!decode(c, at, &in))
            return false;
        uint32_t cl = isa_op_info(in.op)->classes;
        bool from = at == me;
        if (!from && ((cl & (ISA_C_BARRIER | ISA_C_END)) || starts(&in, "s_setpc")))
            return false;
        if (decides(&in, &t))
            return true;
        for (uint32_t i = 0; i < in.nopnds; i++)
            from |= (in.opnd[i].flags & ISA_READ) && tainted(&t, &in.opnd[i]);
        if (from && at != me && (cl & ISA_C_STORE) && (cl & ISA_C_VMEM) && is_private(&in))
            return true;
        for (uint32_t i = 0; i < in.nopnds; i++)
            if (in.opnd[i].flags & ISA_WRITE)
                (from ? taint : untaint)(&t, &in.opnd[i]);
        at += in.size;
    }
    return false;
}

bool
sim_chk_steers(SimWave *w, const SimRec *r)
{
    uint8_t m = __atomic_load_n(&r->ext->steers, __ATOMIC_RELAXED);
    if (m == MAYBE_ASK) {
        m = steers(w->code, r) ? MAYBE_YES : MAYBE_NO;
        __atomic_store_n(&r->ext->steers, m, __ATOMIC_RELAXED);
    }
    return m == MAYBE_YES;
}

/* Threads that ask at once find the same. */
bool
sim_chk_polls(SimWave *w, const SimRec *r, uint64_t addr)
{
    SimChk *c = w->chk;
    uint8_t m = __atomic_load_n(&r->ext->polls, __ATOMIC_RELAXED);
    if (m == MAYBE_ASK) {
        m = waits(w->code, r) ? MAYBE_YES : MAYBE_NO;
        __atomic_store_n(&r->ext->polls, m, __ATOMIC_RELAXED);
    }
    if (m != MAYBE_YES)
        return false;
    struct SimPoll *p = &c->poll[r->at % TL_COUNT(c->poll)];
    bool elsewhere = p->at == r->at && p->effects == c->effects && p->addr != addr;
    *p = (struct SimPoll){r->at, c->effects, addr};
    return !elsewhere;
}
