/* check_forward.c - gfx11's forwarding around a scalar write of EXEC (row FORWARD of hazard_rdna.def, waves
 * of 64 lanes). Two sources of a vector instruction are at fault when one was written shortly before, the
 * other shortly behind one write of EXEC: a property of one way through the code, so that each way back from
 * an instruction is followed by itself, and left where two branches on EXEC exclude each other.
 */
#include <stdio.h>
#include "isa/check_int.h"
#include "isa/hazard_rdna.h"

enum { MAX_SRC = 8, MAX_WAYS = 4096, NEVER = -1, ANY_EXEC = 0, NO_LANE = 1, SOME_LANE = 2 };

/* On the way back: vector instructions passed, and at how many each source and EXEC were written last. */
typedef struct Way {
    int8_t def[MAX_SRC], exec, valus;
    uint8_t lanes; /* what EXEC is known to hold here */
    uint8_t found; /* 1 + the source from before, once there is a fault: it remains to see that one can get
                      here */
} Way;

typedef struct Visit {
    uint32_t block, end; /* go back over the block's instructions before `end` */
    Way way;
    uint32_t from[MAX_SRC];
} Visit;

typedef struct Visits {
    Visit *data;
    uint32_t len, cap;
} Visits;

typedef struct Source {
    uint16_t reg, n;
    uint8_t half; /* bits: 1 the low, 2 the high one */
} Source;

typedef struct Search {
    IsaWalk *w;
    const IsaRdnaKind *kind;
    uint32_t *pred_at,
        *pred; /* block b: pred[pred_at[b]] .. pred[pred_at[b + 1]) are 2 * block + successor */
    Source src[MAX_SRC];
    uint32_t nsrc;
    Visits todo; /* those below `done` are behind us */
    uint32_t done;
} Search;

static bool
find_preds(Search *s)
{
    const IsaCode *c = s->w->c;
    s->pred_at = TL_NEW_N(c->arena, uint32_t, c->nblocks + 2);
    s->pred = TL_NEW_N(c->arena, uint32_t, 2 * c->nblocks + 1);
    if (!s->pred_at || !s->pred)
        return false;
    for (uint32_t k = 0; k < 2 * c->nblocks; k++)
        if (c->block[k / 2].succ[k & 1] != UINT32_MAX)
            s->pred_at[c->block[k / 2].succ[k & 1] + 2]++;
    for (uint32_t b = 2; b <= c->nblocks + 1; b++)
        s->pred_at[b] += s->pred_at[b - 1];
    for (uint32_t k = 0; k < 2 * c->nblocks; k++)
        if (c->block[k / 2].succ[k & 1] != UINT32_MAX)
            s->pred[s->pred_at[c->block[k / 2].succ[k & 1] + 1]++] = k;
    return true;
}

/* The different vector registers that an instruction reads; a tuple is one. */
static void
find_sources(Search *s, const IsaInst *in)
{
    IsaArch arch = s->w->c->arch;
    s->nsrc = 0;
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        uint8_t half = isa_opnd_halves(arch, in, q);
        bool kept = isa_opnd_keeps(arch, in, q);
        bool known = o->kind != ISA_OPND_VGPR || !(o->flags & ISA_READ) || kept;
        for (uint32_t i = 0; i < s->nsrc; i++)
            known |= s->src[i].reg == o->reg && s->src[i].n == o->nregs && s->src[i].half == half;
        if (!known && s->nsrc < MAX_SRC)
            s->src[s->nsrc++] = (Source){o->reg, o->nregs, half};
    }
}

static bool
writes(IsaArch arch, const IsaInst *in, const Source *x)
{
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        if (o->kind == ISA_OPND_VGPR && (o->flags & ISA_WRITE) && o->reg < x->reg + x->n &&
            x->reg < o->reg + o->nregs && (isa_opnd_halves(arch, in, q) & x->half))
            return true;
    }
    return false;
}

static bool
writes_exec(const IsaInst *in)
{
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        if (o->kind == ISA_OPND_SGPR && (o->flags & ISA_WRITE) && (o->reg == 126 || o->reg == 127))
            return true;
    }
    return false;
}

/* How the sources lie around the write of EXEC: 1 a fault, 0 none yet, -1 none on this way. *pre: the one
 * from before it. */
static int
judge(const Search *s, const Way *y, uint32_t *pre)
{
    int behind = INT8_MAX, before = INT8_MAX;
    if (y->exec == NEVER)
        return 0;
    for (uint32_t i = 0; i < s->nsrc; i++)
        if (y->def[i] != NEVER && y->def[i] < y->exec)
            behind = TL_MIN(behind, y->def[i]);
        else if (y->def[i] != NEVER && y->def[i] < before) {
            before = y->def[i];
            *pre = i;
        }
    if (behind == INT8_MAX)
        return 0;
    if (behind > ISA_FORWARD_BEHIND || y->exec - behind - 1 > ISA_FORWARD_BETWEEN)
        return -1;
    if (before == INT8_MAX)
        return 0;
    return before - behind - 1 <= ISA_FORWARD_BETWEEN ? 1 : -1;
}

/* One instruction further back: as judge(). */
static int
pass(const Search *s, Visit *v, uint32_t i, uint32_t *pre)
{
    const IsaInst *in = &s->w->c->inst[i];
    const IsaRdnaKind *k = &s->kind[i];
    Way *y = &v->way;
    bool exec = writes_exec(in), call = in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64,
         changed = false;
    if (exec || call)
        y->lanes = ANY_EXEC;
    if (y->found)
        return 0;
    if (k->mem || (k->waits && !k->va_vdst) || call)
        return -1;
    if (k->valu) {
        for (uint32_t q = 0; q < s->nsrc; q++)
            if (y->def[q] == NEVER && writes(s->w->c->arch, in, &s->src[q])) {
                y->def[q] = y->valus;
                v->from[q] = i;
                changed = true;
            }
        y->valus++;
    } else if (k->salu && exec && y->exec == NEVER) {
        for (uint32_t q = 0; q < s->nsrc; q++)
            changed |= y->def[q] != NEVER;
        if (changed)
            y->exec = y->valus;
    }
    int verdict = changed ? judge(s, y, pre) : 0;
    if (verdict)
        return verdict;
    bool none = true;
    for (uint32_t q = 0; q < s->nsrc; q++)
        none &= y->def[q] == NEVER;
    return y->valus > (none ? ISA_FORWARD_BEHIND : ISA_FORWARD_BEHIND + ISA_FORWARD_BETWEEN + 1) ? -1 : 0;
}

/* What EXEC holds on an edge, by the branch that it belongs to. */
static uint8_t
lanes_of_edge(const IsaCode *c, uint32_t edge)
{
    const IsaBlock *b = &c->block[edge / 2];
    const IsaInst *last = &c->inst[b->end - 1];
    bool zero = last->op == ISA_OP_s_cbranch_execz;
    if ((!zero && last->op != ISA_OP_s_cbranch_execnz) || b->succ[0] == b->succ[1])
        return ANY_EXEC;
    return zero == (edge & 1) ? NO_LANE : SOME_LANE;
}

/* Goes on with the blocks before. */
static bool
enter_preds(Search *s, const Visit *v)
{
    const IsaCode *c = s->w->c;
    for (uint32_t p = s->pred_at[v->block]; p < s->pred_at[v->block + 1]; p++) {
        uint32_t edge = s->pred[p];
        uint8_t lanes = lanes_of_edge(c, edge);
        Visit to = *v;
        if (lanes && v->way.lanes && lanes != v->way.lanes)
            continue;
        to.block = edge / 2;
        to.end = c->block[to.block].end;
        to.way.lanes = lanes ? lanes : v->way.lanes;
        bool known = s->todo.len >= MAX_WAYS;
        for (uint32_t i = 0; i < s->todo.len && !known; i++)
            known = s->todo.data[i].block == to.block && s->todo.data[i].end == to.end &&
                    !memcmp(&s->todo.data[i].way, &to.way, sizeof to.way);
        if (!known && !tl_vec_push(c->arena, &s->todo, to))
            return false;
    }
    return true;
}

static bool
check_one(Search *s, uint32_t at)
{
    const IsaCode *c = s->w->c;
    char what[256];
    find_sources(s, &c->inst[at]);
    if (s->nsrc < 2)
        return true;
    Visit v = {.block = c->block_of[at], .end = at, .way = {.exec = NEVER}};
    memset(v.way.def, NEVER, sizeof v.way.def);
    s->todo.len = s->done = 0;
    if (!tl_vec_push(c->arena, &s->todo, v))
        return false;
    while (s->done < s->todo.len) {
        v = s->todo.data[s->done++];
        int verdict = 0;
        uint32_t pre = 0, first = c->block[v.block].first;
        while (verdict >= 0 && v.end > first && !(v.way.found && !v.way.lanes)) {
            verdict = pass(s, &v, --v.end, &pre);
            if (verdict > 0)
                v.way.found = (uint8_t)(1 + pre);
        }
        if (v.way.found && (!v.way.lanes || v.block == 0)) {
            pre = v.way.found - 1u;
            const IsaRdnaRowInfo *info = isa_rdna_row(ISA_RH_FORWARD);
            s->w->rule = info->rule;
            snprintf(what, sizeof what, "is %s; it needs %s; written by", info->what, info->fix);
            return isa_fault(s->w, ISA_FAULT_HAZARD, at, v.from[pre], s->src[pre].reg, what, "", 0);
        }
        if (verdict >= 0 && !enter_preds(s, &v))
            return false;
    }
    return true;
}

bool
isa_check_forward(IsaWalk *w, const IsaRdnaKind *kind, const uint8_t *reached)
{
    Search s = {.w = w, .kind = kind};
    if (!find_preds(&s))
        return false;
    for (uint32_t i = 0; i < w->c->n; i++)
        if (kind[i].valu && reached[i] && !check_one(&s, i))
            return false;
    return true;
}
