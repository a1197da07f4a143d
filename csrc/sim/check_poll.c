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
#include "isa/coherence.h"
#include "sim/check.h"

enum { AHEAD = 256, LOOP = 320, MOST = 1 << 14 /* instructions that are looked at */ };

typedef struct Taint { /* registers that hang on the load's value: a bit each */
    uint64_t bit[11];
} Taint;
enum { T_SGPR = ROWS, T_VCC = T_SGPR + 106, T_EXEC = T_SGPR + 126, T_SCC = T_SGPR + 128 };

typedef struct Loop {
    uint64_t lo, hi; /* bytes of the code: first instruction, behind the last */
} Loop;

static bool
starts(const IsaInst *in, const char *with)
{
    return !strncmp(isa_op_info(in->op)->name, with, strlen(with));
}

/* The innermost loop around the instruction. */
static bool
loop_of(const SimCode *c, uint64_t me, Loop *l)
{
    uint64_t at = me;
    for (uint32_t k = 0; k < AHEAD; k++) {
        IsaInst in;
        int64_t to;
        if (!sim_code_at(c, at, &in) || (isa_op_info(in.op)->classes & ISA_C_END) || starts(&in, "s_setpc"))
            return false;
        if (isa_branch_to(&in, (int64_t)at, &to) && (uint64_t)to <= me) {
            *l = (Loop){(uint64_t)to, at + in.size};
            return true;
        }
        at += in.size;
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

/* The first register of an operand, n of them; n = 0: none that is followed. */
static uint32_t
taint_of(const IsaOpnd *o, uint32_t *n)
{
    bool scc = o->kind == ISA_OPND_SRC && o->reg == 253;
    bool vector = o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR;
    *n = scc ? 1 : vector || o->kind == ISA_OPND_SGPR ? o->nregs : 0;
    return scc       ? T_SCC
           : !vector ? T_SGPR + (o->reg & 127)
                     : o->reg + (o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0);
}

static bool
has(const Taint *t, uint32_t i)
{
    return t->bit[i / 64] >> i % 64 & 1;
}

static bool
tainted(const Taint *t, const IsaOpnd *o)
{
    uint32_t n, first = taint_of(o, &n);
    bool any = false;
    for (uint32_t i = first; i < first + n; i++)
        any |= has(t, i);
    return any;
}

static void
taint(Taint *t, const IsaOpnd *o, bool on)
{
    uint32_t n, first = taint_of(o, &n);
    for (uint32_t i = first; i < first + n; i++)
        t->bit[i / 64] = (t->bit[i / 64] & ~(UINT64_C(1) << i % 64)) | (uint64_t)on << i % 64;
}

/* Does it read such a register? */
static bool
follows(const IsaInst *in, const Taint *t)
{
    bool any = false;
    for (uint32_t i = 0; i < in->nopnds; i++)
        any |= (in->opnd[i].flags & ISA_READ) && tainted(t, &in->opnd[i]);
    return any;
}

static bool
decides(const IsaInst *in, const Taint *t)
{
    return starts(in, "s_cbranch_scc")    ? has(t, T_SCC)
           : starts(in, "s_cbranch_vcc")  ? has(t, T_VCC) || has(t, T_VCC + 1)
           : starts(in, "s_cbranch_exec") ? has(t, T_EXEC) || has(t, T_EXEC + 1)
                                          : false;
}

/* One pass through the loop: does the value of `me` decide a branch, does anything write what it reads? */
static bool
pass(const SimCode *c, const Loop *l, uint64_t me, Taint *t, const Taint *address, bool *moves)
{
    bool found = false;
    IsaInst in;
    for (uint64_t at = l->lo; at < l->hi && sim_code_at(c, at, &in); at += in.size) {
        bool from = at == me || follows(&in, t);
        found |= decides(&in, t);
        for (uint32_t i = 0; i < in.nopnds; i++) {
            if (!(in.opnd[i].flags & ISA_WRITE))
                continue;
            *moves |= tainted(address, &in.opnd[i]);
            if (from)
                taint(t, &in.opnd[i], true);
        }
    }
    return found;
}

/* Does the load or atomic at a byte of the code wait? */
static bool
waits_at(const SimCode *c, uint64_t me, const IsaInst *in)
{
    uint32_t regs = in->ndst ? in->opnd[0].nregs : 0;
    bool atomic = isa_op_info(in->op)->classes & ISA_C_ATOMIC, spills = false, moves = false;
    Loop l;
    if ((regs != 1 && regs != 2) || in->lds || in->enc == ISA_SCRATCH || !loop_of(c, me, &l))
        return false;
    uint32_t n = 0;
    for (uint64_t at = l.lo; at < l.hi;) {
        IsaInst x;
        if (n++ > LOOP || !sim_code_at(c, at, &x) || (at != me && has_effect(&x, &spills)))
            return false;
        at += x.size;
    }
    if (spills)
        return true;
    Taint t = {{0}}, address = t;
    for (uint32_t i = in->ndst; i < in->nopnds; i++)
        if ((in->opnd[i].flags & (ISA_READ | ISA_IMPLICIT)) == ISA_READ)
            taint(&address, &in->opnd[i], true);
    bool decided = pass(c, &l, me, &t, &address, &moves);
    decided |= pass(c, &l, me, &t, &address, &moves);
    return decided || (!moves && !atomic);
}

/* Does the value of the load or atomic at a byte of the code decide a branch before the next barrier?
 * Straight on; a value that is spilled may. */
static bool
steers_at(const SimCode *c, uint64_t me)
{
    Taint t = {{0}};
    uint64_t at = me;
    IsaInst in;
    for (uint32_t k = 0; k < AHEAD && sim_code_at(c, at, &in); k++, at += in.size) {
        uint32_t cl = isa_op_info(in.op)->classes;
        bool from = at == me || follows(&in, &t);
        if (at != me && ((cl & (ISA_C_BARRIER | ISA_C_END)) || starts(&in, "s_setpc")))
            return false;
        if (decides(&in, &t))
            return true;
        if (from && at != me && (cl & ISA_C_STORE) && (cl & ISA_C_VMEM) && is_private(&in))
            return true;
        for (uint32_t i = 0; i < in.nopnds; i++)
            if (in.opnd[i].flags & ISA_WRITE)
                taint(&t, &in.opnd[i], from);
    }
    return false;
}

static bool
waits(const SimCode *c, const SimRec *r)
{
    return waits_at(c, (uint64_t)r->at * 4, &r->ext->in);
}

static bool
steers(const SimCode *c, const SimRec *r)
{
    return steers_at(c, (uint64_t)r->at * 4);
}

typedef bool Takes(const SimCode *c, uint64_t at, const IsaInst *in);

/* Any access that does. Where there is more code than is looked at, one may. */
static bool
any_takes(const SimCode *c, Takes *takes)
{
    uint64_t at = 0;
    uint32_t n = 0;
    for (IsaInst in; at < c->size; n++) {
        if (n == MOST)
            return true;
        if (!sim_code_at(c, at, &in)) { /* padding, data */
            at += 4;
            continue;
        }
        if (in.ndst && takes(c, at, &in))
            return true;
        at += in.size;
    }
    return false;
}

static bool
takes_lds(const SimCode *c, uint64_t at, const IsaInst *in)
{
    uint32_t cl = isa_op_info(in->op)->classes;
    return ((cl & ISA_C_DS) || in->enc == ISA_FLAT) &&
           (waits_at(c, at, in) || ((cl & ISA_C_ATOMIC) && steers_at(c, at)));
}

static bool
takes_dev(const SimCode *c, uint64_t at, const IsaInst *in)
{
    uint32_t cl = isa_op_info(in->op)->classes;
    return (cl & ISA_C_VMEM) && !in->lds && isa_coherence(c->arch, in).scope >= ISA_SCOPE_DEVICE &&
           steers_at(c, at);
}

static bool
lds_taken(const SimCode *c, const SimRec *r)
{
    (void)r;
    return any_takes(c, takes_lds);
}

static bool
dev_taken(const SimCode *c, const SimRec *r)
{
    (void)r;
    return any_takes(c, takes_dev);
}

bool
sim_chk_steers(const SimWave *w, const SimRec *r)
{
    return sim_chk_ask(&r->ext->steers, steers, w->code, r);
}

bool
sim_chk_lds_taken(const SimWave *w, const SimRec *r)
{
    return sim_chk_ask(&w->code->lds_taken, lds_taken, w->code, r);
}

bool
sim_chk_dev_taken(const SimWave *w, const SimRec *r)
{
    return sim_chk_ask(&w->code->dev_taken, dev_taken, w->code, r);
}

bool
sim_chk_polls(SimWave *w, const SimRec *r, uint64_t addr)
{
    SimChk *c = w->chk;
    if (!sim_chk_ask(&r->ext->polls, waits, w->code, r))
        return false;
    struct SimPoll *p = &c->poll[r->at % TL_COUNT(c->poll)];
    bool elsewhere = p->at == r->at && p->effects == c->effects && p->addr != addr;
    *p = (struct SimPoll){r->at, c->effects, addr};
    w->g->polls = true;
    return !elsewhere;
}

bool
sim_chk_polled(const SimWave *w, uint64_t addr)
{
    const SimGroup *g = w->g;
    for (uint32_t i = 0; g->polls && i < g->nwaves; i++)
        for (uint32_t k = 0; i != w->index && k < TL_COUNT(g->waves[i].chk->poll); k++)
            if (g->waves[i].chk->poll[k].addr == addr)
                return true;
    return false;
}
