/* check.c - control flow, loops, instruction mix and resource use of finished code. */
#include "isa/check.h"

/* ---- decoding and blocks
 * ----------------------------------------------------------------------------------------- */

static bool
decode_all(IsaCode *c, bool wave64, const uint8_t *code, size_t size, const char **why, uint32_t *bad)
{
    uint32_t at = 0;
    c->inst = TL_NEW_N(c->arena, IsaInst, size / 4 + 1);
    c->offset = TL_NEW_N(c->arena, uint32_t, size / 4 + 2);
    if (!c->inst || !c->offset)
        return false;
    while (at < size) {
        const char *reason;
        if (!isa_decode(c->arch, wave64, code + at, size - at, &c->inst[c->n], &reason)) {
            if (why)
                *why = reason;
            if (bad)
                *bad = at;
            return false;
        }
        c->offset[c->n] = at;
        at += c->inst[c->n++].size;
    }
    c->offset[c->n] = at;
    return true;
}

static uint32_t
classes_of(const IsaInst *in)
{
    return isa_op_info(in->op)->classes;
}

/* The instruction that starts at a byte offset, or UINT32_MAX. */
static uint32_t
index_of_offset(const IsaCode *c, int64_t offset)
{
    uint32_t lo = 0, hi = c->n;
    if (offset < 0)
        return UINT32_MAX;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (c->offset[mid] < (uint64_t)offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->n && c->offset[lo] == (uint64_t)offset ? lo : UINT32_MAX;
}

static bool
is_direct_branch(const IsaInst *in)
{
    int64_t to;
    return isa_branch_to(in, 0, &to);
}

/* Control does not go on to the next instruction. */
static bool
ends_path(const IsaInst *in)
{
    return (classes_of(in) & ISA_C_END) || in->op == ISA_OP_s_branch || in->op == ISA_OP_s_setpc_b64 ||
           in->op == ISA_OP_s_rfe_b64;
}

static uint32_t
branch_target(const IsaCode *c, uint32_t i)
{
    int64_t to;
    return isa_branch_to(&c->inst[i], (int64_t)c->offset[i], &to) ? index_of_offset(c, to) : UINT32_MAX;
}

static bool
build_blocks(IsaCode *c)
{
    uint8_t *leader = TL_NEW_N(c->arena, uint8_t, c->n + 1);
    c->block_of = TL_NEW_N(c->arena, uint32_t, c->n + 1);
    if (!leader || !c->block_of)
        return false;
    leader[0] = 1;
    for (uint32_t i = 0; i < c->n; i++) {
        const IsaInst *in = &c->inst[i];
        if (is_direct_branch(in)) {
            uint32_t t = branch_target(c, i);
            if (t != UINT32_MAX)
                leader[t] = 1;
            leader[i + 1] = 1;
        } else if (ends_path(in)) {
            leader[i + 1] = 1;
        }
    }
    for (uint32_t i = 0; i < c->n; i++) {
        c->nblocks += leader[i];
        c->block_of[i] = c->nblocks - 1;
    }
    c->block = TL_NEW_N(c->arena, IsaBlock, c->nblocks + 1);
    if (!c->block)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        IsaBlock *b = &c->block[c->block_of[i]];
        if (leader[i])
            b->first = i;
        b->end = i + 1;
    }
    for (uint32_t k = 0; k < c->nblocks; k++) {
        IsaBlock *b = &c->block[k];
        const IsaInst *last = &c->inst[b->end - 1];
        b->succ[0] = ends_path(last) || b->end == c->n ? UINT32_MAX : k + 1;
        b->succ[1] = UINT32_MAX;
        if (is_direct_branch(last)) {
            uint32_t t = branch_target(c, b->end - 1);
            if (t != UINT32_MAX)
                b->succ[1] = c->block_of[t];
        }
    }
    return true;
}

bool
isa_code_decode(IsaCode *c, TlArena *a, IsaArch arch, bool wave64, const uint8_t *code, size_t size,
                const char **why, uint32_t *bad_offset)
{
    memset(c, 0, sizeof *c);
    c->arena = a;
    c->arch = arch;
    c->wave64 = wave64;
    if (why)
        *why = "out of memory";
    if (bad_offset)
        *bad_offset = 0;
    if (!decode_all(c, wave64, code, size, why, bad_offset) || !build_blocks(c))
        return false;
    if (why)
        *why = NULL;
    return true;
}

/* ---- instruction mix
 * --------------------------------------------------------------------------------------------- */

bool
isa_loads_to_lds(const IsaInst *in)
{
    return in->lds || strstr(isa_op_info(in->op)->name, "_load_lds_") != NULL;
}

static void
count_vmem(IsaMix *m, const IsaInst *in, uint32_t cl)
{
    if (in->enc == ISA_SCRATCH)
        m->scratch++;
    else if (isa_loads_to_lds(in))
        m->lds_dma++;
    else if (cl & ISA_C_LOAD)
        m->load++;
    else if (cl & ISA_C_STORE)
        m->store++;
    else if (cl & ISA_C_ATOMIC)
        m->atomic++;
    else
        m->other++;
}

static void
count_one(IsaMix *m, const IsaInst *in)
{
    uint32_t cl = classes_of(in);
    m->total++;
    if (cl & ISA_C_MFMA)
        m->mfma++;
    else if (cl & ISA_C_ACCMOVE)
        m->accmove++;
    else if (cl & ISA_C_NOP)
        m->nop++;
    else if (cl & ISA_C_VALU)
        m->valu++;
    else if (cl & ISA_C_SMEM)
        m->smem++;
    else if (cl & ISA_C_VMEM)
        count_vmem(m, in, cl);
    else if (cl & ISA_C_DS)
        *(cl & ISA_C_LOAD ? &m->ds_read : cl & ISA_C_STORE ? &m->ds_write : &m->ds_other) += 1;
    else if (cl & ISA_C_WAIT)
        m->wait++;
    else if (cl & ISA_C_BARRIER)
        m->barrier++;
    else if (cl & ISA_C_BRANCH)
        m->branch++;
    else if (cl & ISA_C_SALU)
        m->salu++;
    else
        m->other++;
}

void
isa_mix(const IsaCode *c, IsaMix *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < c->n; i++)
        count_one(out, &c->inst[i]);
}

void
isa_mix_print(const IsaMix *m, TlText *out)
{
    const struct {
        const char *name;
        uint32_t n;
    } parts[] = {
        {"mfma", m->mfma},       {"valu", m->valu},         {"accmove", m->accmove},
        {"salu", m->salu},       {"smem", m->smem},         {"load", m->load},
        {"store", m->store},     {"atomic", m->atomic},     {"lds_dma", m->lds_dma},
        {"ds_read", m->ds_read}, {"ds_write", m->ds_write}, {"ds_other", m->ds_other},
        {"scratch", m->scratch}, {"wait", m->wait},         {"barrier", m->barrier},
        {"branch", m->branch},   {"nop", m->nop},           {"other", m->other},
    };
    const char *sep = "";
    for (size_t i = 0; i < TL_COUNT(parts); i++)
        if (parts[i].n) {
            tl_text_printf(out, "%s%u %s", sep, parts[i].n, parts[i].name);
            sep = ", ";
        }
}

/* ---- natural loops
 * ----------------------------------------------------------------------------------------------- */

typedef struct LoopWork {
    const IsaCode *c;
    uint32_t *order;  /* blocks in postorder */
    uint32_t *number; /* block -> place in `order` + 1; 0: not reached */
    uint32_t *idom;   /* immediate dominator */
    uint8_t **body;   /* per loop: its blocks */
    uint32_t nreached;
} LoopWork;

/* Depth-first search from the entry; `stack` holds block * 2 + next successor. */
static void
number_blocks(LoopWork *w, uint32_t *stack, uint8_t *seen)
{
    uint32_t depth = 0;
    stack[depth++] = 0;
    seen[0] = 1;
    while (depth) {
        uint32_t k = stack[depth - 1] >> 2, next = stack[depth - 1] & 3;
        if (next == 2) {
            w->order[w->nreached++] = k;
            w->number[k] = w->nreached;
            depth--;
            continue;
        }
        stack[depth - 1]++;
        uint32_t to = w->c->block[k].succ[next];
        if (to != UINT32_MAX && !seen[to]) {
            seen[to] = 1;
            stack[depth++] = to << 2;
        }
    }
}

static uint32_t
common_dominator(const LoopWork *w, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (w->number[a] < w->number[b])
            a = w->idom[a];
        while (w->number[b] < w->number[a])
            b = w->idom[b];
    }
    return a;
}

/* Immediate dominators by sweeps in reverse postorder until nothing changes. */
static void
find_dominators(LoopWork *w)
{
    const IsaCode *c = w->c;
    for (uint32_t k = 0; k < c->nblocks; k++)
        w->idom[k] = UINT32_MAX;
    w->idom[0] = 0;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = w->nreached; i-- > 0;) {
            uint32_t k = w->order[i];
            for (uint32_t s = 0; s < 2; s++) { /* hand this block's dominator on to its successors */
                uint32_t to = c->block[k].succ[s];
                if (to == UINT32_MAX || to == 0)
                    continue;
                uint32_t d = w->idom[to] == UINT32_MAX ? k : common_dominator(w, w->idom[to], k);
                if (d != w->idom[to]) {
                    w->idom[to] = d;
                    more = true;
                }
            }
        }
    }
}

static bool
dominates(const LoopWork *w, uint32_t a, uint32_t b)
{
    while (w->number[b] < w->number[a])
        b = w->idom[b];
    return a == b;
}

static bool
is_back_edge(const LoopWork *w, uint32_t from, uint32_t to)
{
    const IsaBlock *b = &w->c->block[from];
    return w->number[from] && (b->succ[0] == to || b->succ[1] == to) && dominates(w, to, from);
}

/* Marks the blocks from which `latch` is reached without passing `header`: repeated sweeps over the edges. */
static void
mark_body(const LoopWork *w, uint8_t *in, uint32_t header, uint32_t latch)
{
    in[header] = in[latch] = 1;
    for (bool more = latch != header; more;) {
        more = false;
        for (uint32_t i = 0; i < w->nreached; i++) {
            uint32_t k = w->order[i];
            if (in[k])
                continue;
            for (uint32_t s = 0; s < 2; s++) {
                uint32_t to = w->c->block[k].succ[s];
                if (to != UINT32_MAX && to != header && in[to]) {
                    in[k] = 1;
                    more = true;
                }
            }
        }
    }
}

static bool
add_loop(LoopWork *w, IsaLoops *out, uint32_t header)
{
    const IsaCode *c = w->c;
    uint8_t *in = TL_NEW_N(c->arena, uint8_t, c->nblocks);
    IsaLoop l = {.header = c->block[header].first, .innermost = true, .depth = 1};
    if (!in)
        return false;
    for (uint32_t k = 0; k < c->nblocks; k++) /* all branches back to one header are one loop */
        if (is_back_edge(w, k, header)) {
            mark_body(w, in, header, k);
            l.latch = c->block[k].end - 1;
        }
    for (uint32_t k = 0; k < c->nblocks; k++)
        if (in[k])
            for (uint32_t i = c->block[k].first; i < c->block[k].end; i++)
                count_one(&l.mix, &c->inst[i]);
    l.first = UINT32_MAX;
    for (uint32_t k = 0; k < c->nblocks; k++)
        if (in[k]) {
            l.first = TL_MIN(l.first, c->offset[c->block[k].first]);
            l.last = TL_MAX(l.last, c->offset[c->block[k].end]);
        }
    w->body[out->len] = in;
    return tl_vec_push(c->arena, out, l);
}

static bool
loop_memory(LoopWork *w, uint32_t **stack, uint8_t **seen)
{
    const IsaCode *c = w->c;
    w->order = TL_NEW_N(c->arena, uint32_t, c->nblocks + 1);
    w->number = TL_NEW_N(c->arena, uint32_t, c->nblocks + 1);
    w->idom = TL_NEW_N(c->arena, uint32_t, c->nblocks + 1);
    w->body = TL_NEW_N(c->arena, uint8_t *, c->nblocks + 1);
    *stack = TL_NEW_N(c->arena, uint32_t, c->nblocks + 1);
    *seen = TL_NEW_N(c->arena, uint8_t, c->nblocks + 1);
    return w->order && w->number && w->idom && w->body && *stack && *seen;
}

bool
isa_loops(const IsaCode *c, IsaLoops *out)
{
    LoopWork w = {.c = c};
    uint32_t *stack;
    uint8_t *seen;
    memset(out, 0, sizeof *out);
    if (!c->nblocks)
        return true;
    if (!loop_memory(&w, &stack, &seen))
        return false;
    number_blocks(&w, stack, seen);
    find_dominators(&w);
    for (uint32_t h = 0; h < c->nblocks; h++) {
        bool is_header = false;
        for (uint32_t k = 0; k < c->nblocks && !is_header; k++)
            is_header = is_back_edge(&w, k, h);
        if (is_header && !add_loop(&w, out, h))
            return false;
    }
    for (uint32_t a = 0; a < out->len; a++)
        for (uint32_t b = 0; b < out->len; b++)
            if (a != b && w.body[a][c->block_of[out->data[b].header]]) {
                out->data[a].innermost = false;
                out->data[b].depth++;
            }
    return true;
}

uint32_t
isa_main_loop(const IsaLoops *l)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < l->len; i++)
        if (l->data[i].innermost && l->data[i].mix.mfma &&
            (best == UINT32_MAX || l->data[i].mix.mfma > l->data[best].mix.mfma))
            best = i;
    return best;
}

/* ---- resource use
 * ------------------------------------------------------------------------------------------------ */

void
isa_use(const IsaCode *c, IsaUse *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < c->n; i++) {
        const IsaInst *in = &c->inst[i];
        for (uint32_t k = 0; k < in->nopnds; k++) {
            const IsaOpnd *o = &in->opnd[k];
            uint32_t end = o->reg + (uint32_t)o->nregs;
            if (o->kind == ISA_OPND_VGPR)
                out->vgprs = TL_MAX(out->vgprs, end);
            else if (o->kind == ISA_OPND_AGPR)
                out->agprs = TL_MAX(out->agprs, end);
            else if (o->kind == ISA_OPND_SGPR && end <= 102)
                out->sgprs = TL_MAX(out->sgprs, end);
        }
        out->scratch_ops += in->enc == ISA_SCRATCH;
        out->flat |= in->enc == ISA_FLAT;
        out->lds_ops += in->enc == ISA_DS || isa_loads_to_lds(in);
        out->calls += in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64;
        out->traps += in->op == ISA_OP_s_trap;
    }
}
