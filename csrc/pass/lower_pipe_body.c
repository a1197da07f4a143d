/* lower_pipe_body.c - the pipelined matrix loop: what stands before it and its body in final order. See
 * lower_pipe.c. */
#include "pass/lower_pipe.h"

/* ---- copies ---- */

bool
lw_pipe_prepare_copy(Pipe *p, Copy *c)
{
    Lw *lw = p->lw;
    TlIr *ir = lw->ir;
    c->s = lw_shared(lw, tl_opn(ir, c->store)->in[0]);
    c->w = lw_lds_acc(lw, c->s, c->store, 0);
    LwVal *rv = lw_val(lw, c->root);
    if (!c->w || !rv || !rv->nlay || !lw_lds_solve(lw, c->s))
        return lw_fail(lw, c->store, TL_E_INTERNAL, "copy without a plan");
    uint32_t nb = tl_layout_in_bits(&c->w->lay, TL_DIM_REG);
    c->root_lay = rv->lay[0];
    if (tl_layout_regs_like(&c->root_lay, &c->w->lay, nb, c->perm) != nb)
        return lw_fail(lw, c->store, TL_E_INTERNAL, "registers of a copy do not match");
    for (uint32_t i = 0; i < c->nloads; i++) {
        LwVal *lv = lw_val(lw, tl_opn(ir, c->load[i])->res[0]);
        LwMemOpts o = {.iv = p->iv, .loose = true, .even = true};
        if (!lv || lv->nlay != 1)
            return lw_fail(lw, c->load[i], TL_E_INTERNAL, "a copied load has %u layouts", lv ? lv->nlay : 0);
        c->lay[i] = lv->lay[0];
        for (uint32_t t = 0; t < 2; t++) {
            uint32_t bd, at;
            char kind;
            lw_access_dim(ir, c->load[i], t, &bd, &at, &kind);
            LwAff a = lw_aff(lw, tl_opn(ir, c->load[i])->in[at]);
            if (lw_aff_coef(&a, p->iv))
                o.inside |= 1u << t;
        }
        if (!lw_global(lw, c->load[i], &c->lay[i], &o, &c->g[i]))
            return false;
    }
    return true;
}

/* The loop offset counts bytes of the copy with the smallest constant step; others multiply. */
bool
lw_pipe_offset_scale(Pipe *p)
{
    Lw *lw = p->lw;
    p->scale = 0;
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            int64_t s = p->copy[c].g[i].iv_stride;
            if (s > 0 && (!p->scale || s < p->scale))
                p->scale = s;
        }
    if (!p->scale)
        p->scale = tl_elem_bytes(p->copy[0].g[0].elem);
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            LwGlobal *g = &p->copy[c].g[i];
            if (g->iv_stride >= 0 ? g->iv_stride % p->scale : tl_elem_bytes(g->elem) % p->scale)
                p->scale = 1;
        }
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            LwGlobal *g = &p->copy[c].g[i];
            p->copy[c].ratio[i] =
                lw_bin(lw, TL_OP_truncdiv, g->iv_stride_v, lw_int(lw, TL_ELEM_I32, p->scale));
            if (!p->copy[c].ratio[i])
                return false;
        }
    return true;
}

static bool
copy_loads(Pipe *p, Copy *c, TlVal off)
{
    for (uint32_t i = 0; i < c->nloads; i++) {
        TlVal so = lw_bin(p->lw, TL_OP_mul, off, c->ratio[i]);
        c->raw[i] = lw_global_load(p->lw, &c->g[i], so, c->load[i]);
        if (!c->raw[i])
            return false;
    }
    return true;
}

static void
forget(Lw *lw, TlVal v, int depth)
{
    LwVal *x = lw_val(lw, v);
    TlOp o = tl_valn(lw->ir, v)->def;
    if (!x || !o || depth > 20)
        return;
    for (uint32_t i = 0; i < x->nlay; i++)
        x->tile[i] = NULL;
    const TlOpNode n = *tl_opn(lw->ir, o);
    if (n.code == TL_OP_load)
        return;
    for (uint32_t i = 0; i < n.nin; i++)
        if (tl_vtype(lw->ir, n.in[i])->kind == TL_TY_TILE)
            forget(lw, n.in[i], depth + 1);
}

/* The stored value of this turn's registers, in the order of the write access. */
static LwTile *
copy_value(Pipe *p, Copy *c)
{
    Lw *lw = p->lw;
    forget(lw, c->root, 0);
    for (uint32_t i = 0; i < c->nloads; i++)
        if (!lw_set_tile(lw, tl_opn(lw->ir, c->load[i])->res[0], c->raw[i]))
            return NULL;
    LwTile *t = lw_tile(lw, c->root, &c->root_lay);
    t = t ? lw_tile_permute(lw, t, c->perm, c->w->split.vec) : NULL;
    forget(lw, c->root, 0);
    return t;
}

/* ---- fragments and matrix instructions ---- */

static LwLdsAcc *
frag_access(Pipe *p, uint32_t d, uint32_t f, LwShared **s)
{
    *s = lw_shared(p->lw, tl_opn(p->lw->ir, p->dot[d])->in[f]);
    return lw_lds_acc(p->lw, *s, p->dot[d], f);
}

/* Fragments that the registers of an operand come in; a tree's operands are made at their use. */
static uint32_t
frag_count(Pipe *p, uint32_t d, uint32_t f)
{
    LwShared *s;
    return p->tree[d][f] ? 0 : 1u << frag_access(p, d, f, &s)->split.reg_bits;
}

bool
lw_pipe_alloc_frags(Pipe *p)
{
    for (uint32_t d = 0; d < p->ndot; d++)
        for (uint32_t f = 0; f < 2; f++) {
            uint32_t n = frag_count(p, d, f);
            if (n && !(p->frag[d][f] = TL_NEW_N(p->lw->arena, Frag, n)))
                return tl_error(p->lw->diag, (TlLoc){0}, TL_E_OOM);
        }
    return true;
}

typedef bool (*StepFn)(Pipe *p, uint32_t d, uint32_t mt, uint32_t nt, uint32_t ks, void *self);

/* All matrix instructions of a turn in order: k outermost inside each dot. */
static bool
each_mma(Pipe *p, StepFn fn, void *self)
{
    for (uint32_t d = 0; d < p->ndot; d++) {
        TlDot *q = &lw_dot_plan(p->lw, p->dot[d])->d;
        for (uint32_t ks = 0; ks < tl_dot_steps_k(q); ks++)
            for (uint32_t mt = 0; mt < tl_dot_tiles_m(q); mt++)
                for (uint32_t nt = 0; nt < tl_dot_tiles_n(q); nt++)
                    if (!fn(p, d, mt, nt, ks, self))
                        return false;
    }
    return true;
}

/* The LDS reads that hold the operand of one instruction: reads first .. first + n - 1, from element `sub` of
 * the first. */
static uint32_t
frag_index(Pipe *p, uint32_t d, uint32_t f, uint32_t mt, uint32_t nt, uint32_t ks, uint32_t *sub, uint32_t *n)
{
    LwShared *s;
    uint32_t count;
    LwLdsAcc *a = frag_access(p, d, f, &s);
    uint32_t reg = lw_frag_reg(lw_dot_plan(p->lw, p->dot[d]), f, mt, nt, ks, &count);
    *sub = reg % a->split.vec;
    *n = count > a->split.vec ? count / a->split.vec : 1;
    return reg / a->split.vec;
}

static TlVal
frag_operand(Pipe *p, uint32_t d, uint32_t f, uint32_t mt, uint32_t nt, uint32_t ks)
{
    uint32_t sub, n, count;
    uint32_t i = frag_index(p, d, f, mt, nt, ks, &sub, &n);
    lw_frag_reg(lw_dot_plan(p->lw, p->dot[d]), f, mt, nt, ks, &count);
    if (n == 1)
        return lw_extract(p->lw, p->frag[d][f][i].v, sub, count == 1 ? 0 : count);
    TlVal part[16];
    for (uint32_t j = 0; j < n && j < 16; j++)
        part[j] = p->frag[d][f][i + j].v;
    return lw_concat(p->lw, tl_vtype(p->lw->ir, part[0])->elem, part, n, count);
}

static bool
mark_carried(Pipe *p, uint32_t d, uint32_t mt, uint32_t nt, uint32_t ks, void *self)
{
    uint32_t sub, n;
    (void)self;
    if (d == 0 && ks < lw_dot_plan(p->lw, p->dot[0])->d.kpack)
        for (uint32_t f = 0; f < 2; f++) {
            if (p->tree[d][f])
                continue;
            uint32_t i = frag_index(p, d, f, mt, nt, ks, &sub, &n);
            for (uint32_t j = 0; j < n; j++)
                p->frag[d][f][i + j].carried = true;
        }
    return true;
}

static TlOp
next_id(const Pipe *p)
{
    return p->lw->ir->ops.len;
}

static bool
end_item(Pipe *p, TlOp first)
{
    Item it = {first, next_id(p), 0, UINT32_MAX};
    return tl_vec_push(p->lw->arena, &p->items, it) || tl_error(p->lw->diag, (TlLoc){0}, TL_E_OOM);
}

typedef struct ReadPass {
    bool carried; /* which fragments to read now */
    uint32_t at;  /* number of the matrix instruction looked at */
} ReadPass;

static bool
read_frags(Pipe *p, uint32_t d, uint32_t mt, uint32_t nt, uint32_t ks, void *self)
{
    ReadPass *r = self;
    uint32_t at = r->at++;
    for (uint32_t f = 0; f < 2; f++) {
        uint32_t sub, n;
        LwShared *s;
        if (p->tree[d][f])
            continue;
        uint32_t i = frag_index(p, d, f, mt, nt, ks, &sub, &n);
        for (uint32_t end = i + n; i < end; i++) {
            Frag *g = &p->frag[d][f][i];
            TlVal *to = r->carried ? &g->next : &g->v;
            if (g->carried != r->carried || *to)
                continue;
            LwLdsAcc *a = frag_access(p, d, f, &s);
            TlOp first = next_id(p);
            p->lw->b.loc = lw_loc(p->lw, p->dot[d]);
            *to = lw_lds_read_one(p->lw, s, a, i);
            if (!*to || (p->body && !end_item(p, first)))
                return false;
            if (p->body && !r->carried)
                p->items.data[p->items.len - 1].use = at;
        }
    }
    return true;
}

static bool
emit_mma(Pipe *p, uint32_t d, uint32_t mt, uint32_t nt, uint32_t ks, void *self)
{
    Lw *lw = p->lw;
    LwTile **acc = self;
    LwDotPlan *pl = lw_dot_plan(lw, p->dot[d]);
    TlVal v[2];
    TlOp first = next_id(p);
    for (uint32_t f = 0; f < 2; f++) {
        uint32_t count;
        if (p->tree[d][f]) {
            uint32_t reg = lw_frag_reg(pl, f, mt, nt, ks, &count);
            v[f] = lw_frag_value(lw, p->tree_tile[d][f], reg, count);
        } else {
            v[f] = frag_operand(p, d, f, mt, nt, ks);
        }
    }
    uint32_t cn = acc[d]->chunk, ci = tl_dot_slice(&pl->d, TL_FRAG_C, mt, nt, 0).reg / cn;
    lw->b.loc = lw_loc(lw, p->dot[d]);
    acc[d]->v[ci] = lw_mma(lw, pl, v[0], v[1], acc[d]->v[ci]);
    return acc[d]->v[ci] &&
           (tl_vec_push(lw->arena, &p->mmas, first) || tl_error(lw->diag, (TlLoc){0}, TL_E_OOM));
}

/* ---- the body ---- */

static bool
barrier_item(Pipe *p)
{
    TlOp first = next_id(p);
    return lw_op(p->lw, TL_OP_barrier, NULL, 0, NULL, 0) && end_item(p, first);
}

/* Writes of copy c, each followed by the loads whose registers are free then. */
static bool
write_and_load(Pipe *p, Copy *c, TlVal off)
{
    Lw *lw = p->lw;
    LwTile old = *c->raw[0];
    LwTile *val;
    uint32_t nb = tl_layout_in_bits(&c->w->lay, TL_DIM_REG), vec = c->w->split.vec, ninstr = (1u << nb) / vec;
    uint32_t *uses = TL_NEW_N(lw->arena, uint32_t, c->g[0].nacc);
    TlOp first = next_id(p);
    TlVal so = lw_bin(lw, TL_OP_mul, off, c->ratio[0]);
    if (!uses || !so)
        return false;
    if (!c->plain || lw_owner(lw, &c->w->lay)) {
        /* all writes, then all loads */
        val = copy_value(p, c);
        lw->b.loc = lw_loc(lw, c->store);
        return val && lw_lds_write(lw, c->s, c->w, val) && copy_loads(p, c, off) && end_item(p, first);
    }
    if (!end_item(p, first)) /* the scalar offset */
        return false;
    LwTile *nw = lw_tile_new(lw, &old.lay, old.elem, old.chunk);
    if (!nw)
        return false;
    for (uint32_t r = 0; r < 1u << nb; r++)
        uses[c->g[0].of[tl_layout_perm_index(c->perm, nb, r) / c->g[0].vec]]++;
    for (uint32_t i = 0; i < ninstr; i++) {
        first = next_id(p);
        lw->b.loc = lw_loc(lw, c->store);
        TlVal v = lw_tile_chunk_at(lw, &old, c->perm, i * vec, vec);
        if (!v || !lw_lds_write_one(lw, c->s, c->w, i, v) || !end_item(p, first))
            return false;
        for (uint32_t j = 0; j < vec; j++) {
            uint32_t a = c->g[0].of[tl_layout_perm_index(c->perm, nb, i * vec + j) / c->g[0].vec];
            if (--uses[a])
                continue;
            first = next_id(p);
            lw->b.loc = lw_loc(lw, c->load[0]);
            TlVal l = lw_global_load_one(lw, &c->g[0], so, a);
            if (!l || !end_item(p, first))
                return false;
            for (uint32_t k = 0; k < c->g[0].nvec; k++)
                if (c->g[0].of[k] == a)
                    nw->v[k] = l;
        }
    }
    c->raw[0] = nw;
    return true;
}

/* Carried registers may be copied at the very end of a turn (LLVM's phi copies), and a matrix instruction may
 * read them no sooner than two wait states later. The branch is one; LLVM does not look round the loop for
 * the other. Where no memory instruction stands before the first matrix instruction, a priority instruction
 * does. */
static bool
first_waits(Pipe *p)
{
    Lw *lw = p->lw;
    for (uint32_t i = 0; i < p->items.len && p->items.data[i].slot == 0; i++)
        for (TlOp o = p->items.data[i].first; o < p->items.data[i].last; o++) {
            const TlOpNode *n = tl_opn(lw->ir, o);
            if (n->block == p->body &&
                (n->code == TL_OP_lds_load || n->code == TL_OP_lds_store || n->code == TL_OP_buf_load))
                return true;
        }
    TlOp prio = lw_op(lw, TL_OP_set_prio, NULL, 0, NULL, 0);
    if (!prio || !tl_attr_set_int(lw->ir, prio, "prio", 0))
        return false;
    tl_op_move_before(lw->ir, prio, p->body, tl_blockn(lw->ir, p->body)->first);
    TlOp fence = lw_op(lw, TL_OP_sched_barrier, NULL, 0, NULL, 0);
    if (!fence)
        return false;
    /* reorder() takes everything else to the end of the block, so these two stay in front */
    tl_op_move_before(lw->ir, fence, p->body, tl_opn(lw->ir, prio)->next);
    return true;
}

/* Puts the items at their slots between the matrix instructions. */
static bool
reorder(Pipe *p)
{
    Lw *lw = p->lw;
    TlIr *ir = lw->ir;
    uint32_t it = 0, n = p->mmas.len;
    if (!first_waits(p))
        return false;
    for (uint32_t m = 0; m <= n; m++) {
        for (; it < p->items.len && (m == n || p->items.data[it].slot <= m); it++)
            for (TlOp o = p->items.data[it].first; o < p->items.data[it].last; o++)
                if (tl_opn(ir, o)->block == p->body)
                    tl_op_move_before(ir, o, p->body, 0);
        if (m == n)
            break;
        TlOp end = m + 1 < n ? p->mmas.data[m + 1] : p->mmas.data[n - 1];
        for (TlOp o = p->mmas.data[m]; o < ir->ops.len && (m + 1 < n ? o < end : true); o++) {
            if (tl_opn(ir, o)->block != p->body)
                continue;
            tl_op_move_before(ir, o, p->body, 0);
            if (tl_opn(ir, o)->code == TL_OP_mma)
                break;
        }
        if (!lw_op(lw, TL_OP_sched_barrier, NULL, 0, NULL, 0))
            return false;
    }
    return true;
}

/* items [from, to) get slots spread over [lo, hi) permille of the matrix instructions */
static void
spread(Pipe *p, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi)
{
    uint32_t n = p->mmas.len;
    for (uint32_t i = from; i < to; i++) {
        Item *it = &p->items.data[i];
        it->slot = (uint32_t)((lo * n + (uint64_t)(hi - lo) * n * (i - from) / TL_MAX(to - from, 1u)) / 1000);
        if (it->use != UINT32_MAX) /* a read stands a little before its first use */
            it->slot = TL_MIN(it->slot, it->use > READ_LEAD ? it->use - READ_LEAD : 0);
    }
}

typedef struct Carry { /* flat list of the loop's carried values */
    TL_VEC(TlVal) v;
} Carry;

static bool
carry_push(Pipe *p, Carry *c, TlVal v)
{
    return v && (tl_vec_push(p->lw->arena, &c->v, v) || tl_error(p->lw->diag, (TlLoc){0}, TL_E_OOM));
}

/* Walks all carried values: accumulators, registers of the next block, first fragments. get: reads them into
 * c (NULL c: sets them from args). */
static bool
carried_values(Pipe *p, LwTile **acc, Carry *c, const TlVal *args, bool next)
{
    uint32_t k = 0;
    for (uint32_t d = 0; d < p->ndot; d++) {
        bool first = true;
        for (uint32_t e = 0; e < d; e++)
            first = first && acc[e] != acc[d];
        for (uint32_t i = 0; first && i < acc[d]->nchunk; i++) {
            if (args)
                acc[d]->v[i] = args[k++];
            else if (!carry_push(p, c, acc[d]->v[i]))
                return false;
        }
    }
    for (uint32_t q = 0; q < p->ncopy; q++)
        for (uint32_t l = 0; l < p->copy[q].nloads; l++) {
            LwGlobal *g = &p->copy[q].g[l];
            for (uint32_t a = 0; a < g->nacc; a++) {
                for (uint32_t i = 0; i < g->nvec; i++)
                    if (g->of[i] == a) {
                        if (args)
                            p->copy[q].raw[l]->v[i] = args[k];
                        else if (!carry_push(p, c, p->copy[q].raw[l]->v[i]))
                            return false;
                        if (!args)
                            break;
                    }
                k += args ? 1 : 0;
            }
        }
    for (uint32_t d = 0; d < p->ndot; d++)
        for (uint32_t f = 0; f < 2; f++) {
            uint32_t n = frag_count(p, d, f);
            for (uint32_t i = 0; i < n; i++) {
                Frag *g = &p->frag[d][f][i];
                if (!g->carried)
                    continue;
                if (args)
                    g->v = args[k++];
                else if (!carry_push(p, c, next ? g->next : g->v))
                    return false;
            }
        }
    return true;
}

static bool
read_trees(Pipe *p)
{
    Lw *lw = p->lw;
    for (uint32_t d = 0; d < p->ndot; d++)
        for (uint32_t f = 0; f < 2; f++) {
            if (!p->tree[d][f])
                continue;
            TlVal v = tl_opn(lw->ir, p->dot[d])->in[f];
            LwDotPlan *pl = lw_dot_plan(lw, p->dot[d]);
            TlBlock b = tl_opn(lw->ir, p->loop)->region[0];
            forget(lw, v, 0);
            for (TlOp o = tl_blockn(lw->ir, b)->first; o; o = tl_opn(lw->ir, o)->next)
                if (tl_opn(lw->ir, o)->code == TL_OP_load &&
                    tl_vtype(lw->ir, tl_opn(lw->ir, o)->in[0])->kind == TL_TY_SHARED && !lw_emit_loads(lw, o))
                    return false;
            p->tree_tile[d][f] = lw_tile(lw, v, &pl->frag[f]);
            forget(lw, v, 0);
            if (!p->tree_tile[d][f])
                return false;
        }
    return true;
}

static bool
build_body(Pipe *p, LwTile **acc, TlVal iv, TlVal last)
{
    Lw *lw = p->lw;
    ReadPass now = {.carried = false}, next = {.carried = true};
    TlOp first = next_id(p);
    TlVal off = lw_bin(lw, TL_OP_min, iv, last);
    if (!end_item(p, first))
        return false;
    uint32_t i0 = p->items.len;
    if (!each_mma(p, read_frags, &now))
        return false;
    first = next_id(p);
    if (!read_trees(p) || !end_item(p, first))
        return false;
    uint32_t i1 = p->items.len;
    if (!barrier_item(p))
        return false;
    for (uint32_t c = 0; c < p->ncopy; c++)
        if (!write_and_load(p, &p->copy[c], off))
            return false;
    uint32_t i2 = p->items.len;
    if (!barrier_item(p) || !each_mma(p, read_frags, &next))
        return false;
    uint32_t i3 = p->items.len;
    if (!each_mma(p, emit_mma, acc))
        return false;
    bool any_tree = false;
    for (uint32_t d = 0; d < p->ndot; d++)
        any_tree = any_tree || p->tree[d][0] || p->tree[d][1];
    p->items.data[0].slot = 0;
    if (any_tree) {
        spread(p, i0, i3, 0, 0);
        return reorder(p);
    }
    uint32_t r = p->late ? 620 : 390, w = p->late ? 940 : 780;
    spread(p, i0, i1, 0, r);
    p->items.data[i1].slot = (r + 20) * p->mmas.len / 1000;
    spread(p, i1 + 1, i2, r + 20, w);
    p->items.data[i2].slot = w * p->mmas.len / 1000;
    spread(p, i2 + 1, i3, w + 20, 1000);
    return reorder(p);
}

/* Before the loop: block 0 into LDS, block 1 into registers, the first fragments. *bits: the shared tiles
 * written. */
static bool
emit_prologue(Pipe *p, TlVal S, TlVal last, uint64_t *bits)
{
    Lw *lw = p->lw;
    ReadPass next = {.carried = true};
    for (uint32_t c = 0; c < p->ncopy; c++)
        if (!copy_loads(p, &p->copy[c], lw_int(lw, TL_ELEM_I32, 0)))
            return false;
    for (uint32_t c = 0; c < p->ncopy; c++) {
        LwTile *v = copy_value(p, &p->copy[c]);
        if (!v || !lw_lds_write(lw, p->copy[c].s, p->copy[c].w, v))
            return false;
        *bits |= 1ull << p->copy[c].s->bit;
    }
    for (uint32_t c = 0; c < p->ncopy; c++)
        if (!copy_loads(p, &p->copy[c], lw_bin(lw, TL_OP_min, S, last)))
            return false;
    if (!lw_barrier(lw))
        return false;
    if (!p->late)
        each_mma(p, mark_carried, NULL);
    return each_mma(p, read_frags, &next);
}

/* The values of the loop's arguments become the current ones. */
static bool
enter_body(Pipe *p, LwTile **acc, const TlVal *args)
{
    Lw *lw = p->lw;
    for (uint32_t d = 0; d < p->ndot; d++)
        for (uint32_t q = 0; q < 2; q++) {
            uint32_t n = frag_count(p, d, q);
            for (uint32_t i = 0; i < n; i++)
                p->frag[d][q][i].v = p->frag[d][q][i].next = 0;
        }
    /* raw tiles of the body are fresh objects: the preheader's stay what they were */
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t l = 0; l < p->copy[c].nloads; l++) {
            const LwGlobal *g = &p->copy[c].g[l];
            if (!(p->copy[c].raw[l] = lw_tile_new(lw, &g->lay, g->elem, g->vec)))
                return false;
        }
    return carried_values(p, acc, NULL, args, false);
}

/* The loop with its body; in: 3 bounds and the carried values, also room for the results afterwards. */
static TlOp
emit_loop(Pipe *p, LwTile **acc, const TlVal *in, uint32_t nc, TlVal last)
{
    Lw *lw = p->lw;
    Carry out = {0};
    LwLoop l;
    if (!lw_loop_begin(lw, p->loop, in, nc, "off", &l))
        return 0;
    p->body = lw->b.block;
    if (!enter_body(p, acc, l.args) || !build_body(p, acc, l.iv, last) ||
        !carried_values(p, acc, &out, NULL, true))
        return 0;
    lw->b.loc = lw_loc(lw, p->loop);
    if (!lw_op(lw, TL_OP_yield, out.v.data, out.v.len, NULL, 0))
        return 0;
    lw_loop_end(lw, &l);
    return l.op;
}

/* Everything of the pipelined turns; acc are the accumulators, in and out. n: turns, i64, > 0. */
bool
lw_pipe_emit(Pipe *p, LwTile **acc, TlVal n)
{
    Lw *lw = p->lw;
    TlVal nn = lw_cast(lw, n, TL_ELEM_I32), S = lw_int(lw, TL_ELEM_I32, p->step * p->scale);
    TlVal last = lw_bin(lw, TL_OP_mul, lw_bin(lw, TL_OP_sub, nn, lw_int(lw, TL_ELEM_I32, 1)), S);
    TlVal two = lw_int(lw, TL_ELEM_I32, 2);
    uint64_t bits = 0;
    Carry init = {0};
    if (!emit_prologue(p, S, last, &bits) || !carried_values(p, acc, &init, NULL, true))
        return false;
    TlVal *in = TL_NEW_N(lw->arena, TlVal, init.v.len + 3);
    if (!in)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    in[0] = lw_bin(lw, TL_OP_mul, two, S);
    in[1] = lw_bin(lw, TL_OP_mul, lw_bin(lw, TL_OP_add, nn, two), S);
    in[2] = S;
    memcpy(in + 3, init.v.data, init.v.len * sizeof *in);
    TlOp f = emit_loop(p, acc, in, init.v.len, last);
    if (!f)
        return false;
    lw->sync.read = bits; /* the loop ends with reads; global accesses stay what they were */
    lw->sync.written = 0;
    uint32_t k = 0;
    for (uint32_t d = 0; d < p->ndot; d++) {
        bool first = true;
        for (uint32_t e = 0; e < d; e++)
            first = first && acc[e] != acc[d];
        for (uint32_t i = 0; first && i < acc[d]->nchunk; i++)
            acc[d]->v[i] = tl_result(lw->ir, f, k++);
    }
    return true;
}
