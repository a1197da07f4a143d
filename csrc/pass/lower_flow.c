/* lower_flow.c - part of pass "lower": regions, loops and branches. Tiles that are carried become flat lists
 * of registers; their extents (the valid part) are carried as i32 values where they differ from turn to turn.
 */
#include "pass/lower.h"

/* ---- regions ---- */

static uint32_t
flat(LwTile **tiles, uint32_t n, TlVal *out)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; tiles[i] && j < tiles[i]->nchunk; j++) {
            if (out)
                out[k] = tiles[i]->v[j];
            k++;
        }
    return k;
}

static void
unflat(LwTile **tiles, uint32_t n, const TlVal *in)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; tiles[i] && j < tiles[i]->nchunk; j++)
            tiles[i]->v[j] = in[k++];
}

static TlBlock
add_region(Lw *lw, TlOp o)
{
    return tl_block_new(lw->ir, lw->dst, o);
}

/* An `if` of r->n results (types ty); its second region yields r->old, emission goes on in the first one. */
static bool
open_if(Lw *lw, TlVal cond, const TlType *ty, LwRegion *r)
{
    r->op = lw_op(lw, TL_OP_if, &cond, 1, ty, r->n);
    TlBlock yes = r->op ? add_region(lw, r->op) : 0, no = yes ? add_region(lw, r->op) : 0;
    if (!no)
        return false;
    lw->b.before = 0;
    lw->b.block = no;
    if (!lw_op(lw, TL_OP_yield, r->old, r->n, NULL, 0))
        return false;
    lw->b.block = yes;
    if (!lw->anchor)
        lw->anchor = r->op;
    return true;
}

bool
lw_if_begin(Lw *lw, TlOp at, TlVal cond, LwTile **tiles, uint32_t n, LwRegion *r)
{
    *r = (LwRegion){.save = lw->b, .anchor = lw->anchor, .sync = lw->sync};
    if (!cond)
        return true;
    r->n = flat(tiles, n, NULL);
    r->old = TL_NEW_N(lw->arena, TlVal, r->n);
    TlType *ty = TL_NEW_N(lw->arena, TlType, r->n);
    if (!r->old || !ty)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    flat(tiles, n, r->old);
    for (uint32_t i = 0; i < r->n; i++)
        ty[i] = tl_valn(lw->ir, r->old[i])->type;
    lw->b.loc = lw_loc(lw, at);
    return open_if(lw, cond, ty, r);
}

bool
lw_when_begin(Lw *lw, TlVal cond, LwRegion *r)
{
    *r = (LwRegion){.save = lw->b, .anchor = lw->anchor};
    return open_if(lw, cond, NULL, r);
}

bool
lw_when_end(Lw *lw, LwRegion *r)
{
    bool ok = lw_op(lw, TL_OP_yield, NULL, 0, NULL, 0) != 0;
    lw->b = r->save;
    lw->anchor = r->anchor;
    return ok;
}

bool
lw_if_end(Lw *lw, LwRegion *r, LwTile **tiles, uint32_t n)
{
    if (!r->op)
        return true;
    TlVal *now = TL_NEW_N(lw->arena, TlVal, r->n);
    if (!now)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    flat(tiles, n, now);
    if (!lw_op(lw, TL_OP_yield, now, r->n, NULL, 0))
        return false;
    lw->b = r->save;
    lw->anchor = r->anchor;
    lw->sync = lw_sync_union(lw->sync, r->sync);
    for (uint32_t i = 0; i < r->n; i++)
        now[i] = tl_result(lw->ir, r->op, i);
    unflat(tiles, n, now);
    return true;
}

/* ---- loops ---- */

static bool
same_everywhere(const Lw *lw, const LwExt *e)
{
    for (uint32_t d = 0; d < LW_MAX_RANK; d++)
        if ((e->lo[d] && !lw_is_entry(lw, e->lo[d])) || (e->hi[d] && !lw_is_entry(lw, e->hi[d])))
            return false;
    return !e->when || lw_is_entry(lw, e->when);
}

static bool
ext_equal(const LwExt *a, const LwExt *b)
{
    return memcmp(a->lo, b->lo, sizeof a->lo) == 0 && memcmp(a->hi, b->hi, sizeof a->hi) == 0 &&
           a->when == b->when;
}

static bool
ext_is_full(const LwExt *e)
{
    static const LwExt full;
    return ext_equal(e, &full);
}

static bool
set_ext(Lw *lw, TlVal v, const LwExt *e)
{
    LwVal *x = lw_val(lw, v);
    if (x) {
        x->ext = *e;
        x->ext_known = true;
    }
    return x != NULL;
}

/* Makes the thread value v available before operation `at`: moves the pure operations that it needs out of
 * the regions of `at`. */
static bool
lift(Lw *lw, TlVal v, TlOp at, int depth)
{
    TlIr *ir = lw->ir;
    TlOp o = tl_valn(ir, v)->def;
    TlBlock home = o ? tl_opn(ir, o)->block : tl_valn(ir, v)->block;
    bool inside = false;
    for (TlBlock b = home; b && !inside;) {
        TlOp p = tl_blockn(ir, b)->parent;
        inside = p == at;
        b = p ? tl_opn(ir, p)->block : 0;
    }
    if (!inside)
        return true;
    if (!o || depth > 40 || tl_opn(ir, o)->nregion || !(tl_op_row(tl_opn(ir, o)->code)->traits & TL_T_PURE))
        return false;
    for (uint32_t i = 0; i < tl_opn(ir, o)->nin; i++)
        if (!lift(lw, tl_opn(ir, o)->in[i], at, depth + 1))
            return false;
    tl_op_move_before(ir, o, tl_opn(ir, at)->block, at);
    return true;
}

/* The same for a sum of dots: a bound that changes from turn to turn is given up; what was never added to is
 * 0. */
static void
lift_sum(Lw *lw, LwExt *e, TlOp at)
{
    for (uint32_t d = 0; d < LW_MAX_RANK; d++) {
        e->lo[d] = e->lo[d] && lift(lw, e->lo[d], at, 0) ? e->lo[d] : 0;
        e->hi[d] = e->hi[d] && lift(lw, e->hi[d], at, 0) ? e->hi[d] : 0;
    }
    e->when = e->when && lift(lw, e->when, at, 0) ? e->when : 0;
}

static bool
lift_ext(Lw *lw, const LwExt *e, TlOp at)
{
    for (uint32_t d = 0; d < LW_MAX_RANK; d++)
        if ((e->lo[d] && !lift(lw, e->lo[d], at, 0)) || (e->hi[d] && !lift(lw, e->hi[d], at, 0)))
            return false;
    return !e->when || lift(lw, e->when, at, 0);
}

/* Whether v is a sum of dots, perhaps made in regions: such a tile takes the union of what is accumulated. */
static bool
is_accumulator(Lw *lw, TlVal v, int depth)
{
    TlIr *ir = lw->ir;
    TlOp o = tl_valn(ir, v)->def;
    if (!o || depth > 12)
        return false;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_dot)
        return true;
    for (uint32_t r = 0; r < n.nregion; r++) {
        TlOp y = tl_blockn(ir, n.region[r])->last;
        uint32_t skip = y && tl_opn(ir, y)->code == TL_OP_condition, i = tl_valn(ir, v)->index;
        if (y && i + skip < tl_opn(ir, y)->nin && is_accumulator(lw, tl_opn(ir, y)->in[i + skip], depth + 1))
            return true;
    }
    for (uint32_t i = 0; i < n.nin && (tl_op_row(n.code)->traits & TL_T_ELEMENTWISE); i++)
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_TILE && is_accumulator(lw, n.in[i], depth + 1))
            return true;
    return false;
}

/* The tiles that a loop carries enter each turn with the extents that they start with. */
static bool
enter_exts(Lw *lw, TlOp loop, uint32_t region)
{
    const TlOpNode n = *tl_opn(lw->ir, loop);
    uint32_t init = n.code == TL_OP_for ? 3 : 0, arg = n.code == TL_OP_for ? 1 : 0;
    for (uint32_t i = 0; i < n.nres; i++) {
        LwExt e;
        TlVal a = tl_blockn(lw->ir, n.region[region])->args.data[arg + i];
        if (tl_vtype(lw->ir, a)->kind == TL_TY_TILE &&
            (!lw_ext(lw, n.in[init + i], &e) || !set_ext(lw, a, &e)))
            return false;
    }
    return true;
}

/* Extents of a loop's tile results. A tile keeps the extent that it starts with; a free one (it takes the
 * extent of what it meets) and an accumulator of dots may be cut, in each turn to the same. thread: the
 * emitted loop, 0 when there is none. */
bool
lw_loop_exts(Lw *lw, TlOp loop, TlOp thread)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, loop);
    uint32_t init = n.code == TL_OP_for ? 3 : 0;
    for (uint32_t r = 0; r < n.nregion; r++) {
        TlOp y = tl_blockn(ir, n.region[r])->last;
        uint32_t skip = tl_opn(ir, y)->code == TL_OP_condition;
        for (uint32_t i = 0; i < n.nres; i++) {
            LwExt first, e;
            TlVal v = tl_opn(ir, y)->in[i + skip];
            if (tl_vtype(ir, n.res[i])->kind != TL_TY_TILE)
                continue;
            if (!lw_ext(lw, n.in[init + i], &first) || !lw_ext(lw, v, &e))
                return false;
            LwSum sum = lw_sum_of(lw, v, 0);
            if (thread && sum != LW_SUM_OTHER)
                lift_sum(lw, &e, thread);
            bool keeps = ext_equal(&first, &e);
            bool sums = !keeps && (ext_is_full(&first) || is_accumulator(lw, v, 0)) &&
                        (!thread || lift_ext(lw, &e, thread));
            if (!keeps && !sums) {
                lw_fail(lw, loop, TL_E_VALUE,
                        "the extent of a tile that this loop carries changes from turn to turn");
                return tl_hint(lw->diag,
                               "make it fully valid with .fill(v), or write t op= x, which leaves t "
                               "alone where x is not valid");
            }
            if (!set_ext(lw, n.res[i], &e))
                return false;
        }
    }
    return true;
}

static uint32_t
carried_chunk(Lw *lw, const TlLayout *l)
{
    for (uint32_t i = 0; i < lw->dots.len; i++)
        if (tl_layout_equal(&lw->dots.data[i].c, l))
            return tl_dot_slice(&lw->dots.data[i].d, TL_FRAG_C, 0, 0, 0).count;
    return TL_MIN(1u << tl_layout_in_bits(l, TL_DIM_REG), 4u);
}

typedef struct Carried { /* the carried values of a loop or if: tiles by chunk, scalars by themselves */
    uint32_t n, flat_n;
    LwTile **tile; /* NULL entry: scalar */
    TlVal *scalar;
} Carried;

static bool
carried_new(Lw *lw, uint32_t n, Carried *c)
{
    *c = (Carried){.n = n};
    c->tile = TL_NEW_N(lw->arena, LwTile *, n);
    c->scalar = TL_NEW_N(lw->arena, TlVal, n);
    return (c->tile && c->scalar) || tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
}

/* The values `in` (source) as they are now; tiles in the layout of `res`. */
static bool
carried_get(Lw *lw, const TlVal *in, const TlVal *res, uint32_t n, LwTile **given, Carried *c)
{
    if (!carried_new(lw, n, c))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (tl_vtype(lw->ir, res[i])->kind == TL_TY_TILE) {
            LwVal *v = lw_val(lw, res[i]);
            if (!v || !v->nlay)
                return lw_fail(lw, tl_valn(lw->ir, res[i])->def, TL_E_INTERNAL,
                               "a carried tile without a layout");
            TlLayout l = v->lay[0];
            c->tile[i] = given && given[i] ? given[i] : lw_tile_chunked(lw, in[i], &l, carried_chunk(lw, &l));
            if (!c->tile[i])
                return false;
            c->flat_n += c->tile[i]->nchunk;
        } else {
            c->scalar[i] = lw_scalar(lw, in[i]);
            if (!c->scalar[i])
                return false;
            c->flat_n++;
        }
    }
    return true;
}

static TlVal *
carried_flat(Lw *lw, const Carried *c, uint32_t room_before)
{
    TlVal *v = TL_NEW_N(lw->arena, TlVal, c->flat_n + room_before);
    uint32_t k = room_before;
    for (uint32_t i = 0; v && i < c->n; i++) {
        if (!c->tile[i])
            v[k++] = c->scalar[i];
        for (uint32_t j = 0; c->tile[i] && j < c->tile[i]->nchunk; j++)
            v[k++] = c->tile[i]->v[j];
    }
    return v;
}

/* Binds source values to new thread values: block arguments or results. */
static bool
carried_bind(Lw *lw, const Carried *like, const TlVal *src, const TlVal *vals)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < like->n; i++) {
        if (!like->tile[i]) {
            if (!tl_map_put(&lw->scal, src[i], vals[k++]))
                return false;
            continue;
        }
        LwTile *t = lw_tile_new(lw, &like->tile[i]->lay, like->tile[i]->elem, like->tile[i]->chunk);
        if (!t)
            return false;
        for (uint32_t j = 0; j < t->nchunk; j++)
            t->v[j] = vals[k++];
        if (!lw_set_tile(lw, src[i], t))
            return false;
    }
    return true;
}

static bool
yield_carried(Lw *lw, TlBlock src, const TlVal *res, uint32_t n)
{
    Carried c;
    TlOp y = tl_blockn(lw->ir, src)->last;
    if (!carried_get(lw, tl_opn(lw->ir, y)->in, res, n, NULL, &c))
        return false;
    TlVal *v = carried_flat(lw, &c, 0);
    return v && lw_op(lw, TL_OP_yield, v, c.flat_n, NULL, 0);
}

/* Tiles made inside a block of the source are of no use outside or in another copy of it. */
static bool
forget_tile(TlIr *ir, TlOp o, void *self)
{
    Lw *lw = self;
    for (uint32_t i = 0; i < tl_opn(ir, o)->nres; i++) {
        uint64_t at;
        TlVal v = tl_opn(ir, o)->res[i];
        if (tl_map_get(&lw->vals, v, &at)) {
            LwVal *x = &lw->tiles.data[at];
            memset(x->tile, 0, sizeof x->tile);
            if (!same_everywhere(lw, &x->ext))
                x->ext_known = false;
        }
    }
    return true;
}

bool
lw_loop_begin(Lw *lw, TlOp loop, const TlVal *in, uint32_t n, const char *iv, LwLoop *l)
{
    TlIr *ir = lw->ir;
    TlType *ty = TL_NEW_N(lw->arena, TlType, n);
    *l = (LwLoop){.args = TL_NEW_N(lw->arena, TlVal, n)};
    if (!ty || !l->args)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t i = 0; i < n; i++)
        ty[i] = tl_valn(ir, in[3 + i])->type;
    lw->b.loc = lw_loc(lw, loop);
    l->op = lw_op(lw, TL_OP_for, in, n + 3, ty, n);
    TlBlock body = l->op ? add_region(lw, l->op) : 0;
    if (!body)
        return false;
    l->iv = tl_block_arg(ir, body, tl_valn(ir, in[0])->type, iv);
    lw_mark_inner(lw, l->iv);
    for (uint32_t i = 0; i < n; i++) {
        l->args[i] = tl_block_arg(ir, body, ty[i], "");
        lw_mark_inner(lw, l->args[i]);
    }
    l->save = lw->b;
    l->anchor = lw->anchor;
    lw->b.block = body;
    lw->b.before = 0;
    if (!lw->anchor)
        lw->anchor = l->op;
    return true;
}

void
lw_loop_end(Lw *lw, const LwLoop *l)
{
    lw->b = l->save;
    lw->anchor = l->anchor;
}

bool
lw_plain_for(Lw *lw, TlOp loop, TlVal lb, TlVal ub, LwTile **init)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, loop);
    TlBlock sb = n.region[0];
    Carried c;
    if (!carried_get(lw, n.in + 3, n.res, n.nres, init, &c))
        return false;
    TlVal *in = carried_flat(lw, &c, 3), step = lw_scalar(lw, n.in[2]);
    LwLoop l;
    if (!in)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    in[0] = lb, in[1] = ub, in[2] = step;
    if (!lw_loop_begin(lw, loop, in, c.flat_n, "", &l))
        return false;
    const TlVal *sargs = tl_blockn(ir, sb)->args.data;
    LwSync before = lw->sync;
    lw_sync_loop(lw, loop);
    if (!tl_map_put(&lw->scal, sargs[0], l.iv) || !carried_bind(lw, &c, sargs + 1, l.args) ||
        !enter_exts(lw, loop, 0) || !tl_walk(ir, sb, forget_tile, lw) || !lw_block(lw, sb))
        return false;
    lw->b.loc = lw_loc(lw, loop);
    if (!yield_carried(lw, sb, n.res, n.nres) || !lw_loop_exts(lw, loop, l.op))
        return false;
    lw->sync = lw_sync_union(lw->sync, before);
    lw_loop_end(lw, &l);
    for (uint32_t i = 0; i < c.flat_n; i++)
        l.args[i] = tl_result(ir, l.op, i);
    return tl_walk(ir, sb, forget_tile, lw) && carried_bind(lw, &c, n.res, l.args);
}

bool
lw_lower_for(Lw *lw, TlOp op)
{
    int64_t step;
    const TlOpNode n = *tl_opn(lw->ir, op);
    if (tl_is_const_int(lw->ir, n.in[2], &step) && step <= 0)
        return lw_fail(lw, op, TL_E_UNSUPPORTED, "a loop with a step of %lld is not lowered yet",
                       (long long)step);
    if (lw_loop_pipelines(lw, op))
        return lw_pipelined_loop(lw, op);
    if (tl_attr_int(lw->ir, op, "num_stages", 0) > 1) {
        lw_fail(lw, op, TL_E_UNSUPPORTED, "num_stages on a loop that cannot be pipelined");
        return tl_hint(
            lw->diag,
            "a pipelined loop copies global tiles to shared tiles (or straight into dot) and carries "
            "only accumulators of dots");
    }
    TlVal lb = lw_scalar(lw, n.in[0]), ub = lw_scalar(lw, n.in[1]);
    return lb && ub && lw_plain_for(lw, op, lb, ub, NULL);
}

/* How many i32 values say the extents of an `if`'s tile results. */
static uint32_t
branch_ext_count(Lw *lw, const TlOpNode *n)
{
    uint32_t c = 0;
    for (uint32_t i = 0; i < n->nres; i++)
        if (tl_vtype(lw->ir, n->res[i])->kind == TL_TY_TILE)
            c += 2 * TL_MIN(tl_vtype(lw->ir, n->res[i])->rank, (uint32_t)LW_MAX_RANK) + 1;
    return c;
}

/* Ends branch r of an `if`: carried values, then lower and upper bounds of the extents; ext[i] gets those of
 * result i. */
static bool
end_branch(Lw *lw, const TlOpNode *n, uint32_t r, LwExt *ext)
{
    TlIr *ir = lw->ir;
    TlOp y = tl_blockn(ir, n->region[r])->last;
    Carried c;
    if (!carried_get(lw, tl_opn(ir, y)->in, n->res, n->nres, NULL, &c))
        return false;
    uint32_t extra = branch_ext_count(lw, n), k = c.flat_n;
    TlVal *flat_v = carried_flat(lw, &c, 0), *v = TL_NEW_N(lw->arena, TlVal, c.flat_n + extra);
    if (!flat_v || !v)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    memcpy(v, flat_v, c.flat_n * sizeof *v);
    for (uint32_t i = 0; i < n->nres; i++) {
        const TlTypeInfo t = *tl_vtype(ir, n->res[i]);
        if (t.kind != TL_TY_TILE)
            continue;
        if (!lw_ext(lw, tl_opn(ir, y)->in[i], &ext[i]))
            return false;
        for (uint32_t d = 0; d < t.rank && d < LW_MAX_RANK; d++) {
            v[k++] = ext[i].lo[d] ? ext[i].lo[d] : lw_int(lw, TL_ELEM_I32, 0);
            v[k++] = ext[i].hi[d] ? ext[i].hi[d] : lw_int(lw, TL_ELEM_I32, t.shape[d]);
        }
        TlVal one = lw_int(lw, TL_ELEM_I32, 1);
        v[k++] = ext[i].when ? lw_sel(lw, ext[i].when, one, lw_int(lw, TL_ELEM_I32, 0)) : one;
    }
    return lw_op(lw, TL_OP_yield, v, k, NULL, 0);
}

/* Extents behind an `if`: the common one; of sums of dots what either added to, other accumulators the
 * intersection; else what the branch that ran says. */
static bool
branch_exts(Lw *lw, const TlOpNode *n, TlOp thread, const LwExt *yes, const LwExt *no, uint32_t at)
{
    TlIr *ir = lw->ir;
    for (uint32_t i = 0; i < n->nres; i++) {
        const TlTypeInfo t = *tl_vtype(ir, n->res[i]);
        LwExt e = yes[i];
        if (t.kind != TL_TY_TILE)
            continue;
        uint32_t rank = TL_MIN(t.rank, (uint32_t)LW_MAX_RANK);
        TlVal y[2];
        for (uint32_t r = 0; r < 2; r++)
            y[r] = tl_opn(ir, tl_blockn(ir, n->region[r])->last)->in[i];
        if (is_accumulator(lw, n->res[i], 0) && lift_ext(lw, &yes[i], thread) &&
            lift_ext(lw, &no[i], thread)) {
            if (lw_sum_of(lw, y[0], 0) == LW_SUM_DOTS && lw_sum_of(lw, y[1], 0) == LW_SUM_DOTS)
                lw_ext_join(lw, &e, &no[i]);
            else
                lw_ext_meet(lw, &e, &no[i]);
        } else if (!ext_equal(&e, &no[i])) {
            for (uint32_t d = 0; d < rank; d++) {
                bool lo = yes[i].lo[d] != no[i].lo[d], hi = yes[i].hi[d] != no[i].hi[d];
                e.lo[d] = lo ? tl_result(ir, thread, at + 2 * d) : e.lo[d];
                e.hi[d] = hi ? tl_result(ir, thread, at + 2 * d + 1) : e.hi[d];
            }
            if (yes[i].when != no[i].when)
                e.when =
                    lw_bin(lw, TL_OP_ne, tl_result(ir, thread, at + 2 * rank), lw_int(lw, TL_ELEM_I32, 0));
        }
        at += 2 * rank + 1;
        if (!set_ext(lw, n->res[i], &e))
            return false;
    }
    return true;
}

bool
lw_lower_if(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, op);
    TlVal cond = lw_scalar(lw, n.in[0]);
    Carried like;
    /* result types: tiles by their layouts, scalars by their own type */
    if (!cond || !carried_new(lw, n.nres, &like))
        return false;
    for (uint32_t i = 0; i < n.nres; i++) {
        LwVal *v = lw_val(lw, n.res[i]);
        like.flat_n++;
        if (tl_vtype(ir, n.res[i])->kind != TL_TY_TILE)
            continue;
        if (!v || !v->nlay)
            return lw_fail(lw, op, TL_E_INTERNAL, "a merged tile without a layout");
        TlLayout l = v->lay[0];
        like.tile[i] = lw_tile_new(lw, &l, tl_vtype(ir, n.res[i])->elem, carried_chunk(lw, &l));
        if (!like.tile[i])
            return false;
        like.flat_n += like.tile[i]->nchunk - 1;
    }
    uint32_t extra = branch_ext_count(lw, &n);
    TlType *ty = TL_NEW_N(lw->arena, TlType, like.flat_n + extra);
    TlVal *out = TL_NEW_N(lw->arena, TlVal, like.flat_n);
    LwExt *ext[2] = {TL_NEW_N(lw->arena, LwExt, n.nres), TL_NEW_N(lw->arena, LwExt, n.nres)};
    if (!ty || !out || !ext[0] || !ext[1])
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t i = 0; i < extra; i++)
        ty[like.flat_n + i] = lw_ty(lw, TL_ELEM_I32);
    for (uint32_t i = 0, k = 0; i < n.nres; i++) {
        const TlTypeInfo t = *tl_vtype(ir, n.res[i]);
        if (!like.tile[i])
            ty[k++] = t.kind == TL_TY_INDEX ? lw_ty(lw, TL_ELEM_I64) : lw_ty(lw, t.elem);
        for (uint32_t j = 0; like.tile[i] && j < like.tile[i]->nchunk; j++)
            ty[k++] = tl_type_vec(ir, t.elem, like.tile[i]->chunk);
    }
    lw->b.loc = lw_loc(lw, op);
    TlOp f = lw_op(lw, TL_OP_if, &cond, 1, ty, like.flat_n + extra);
    TlBuilder save = lw->b;
    TlOp anchor = lw->anchor;
    LwSync before = lw->sync, after = {0};
    for (uint32_t r = 0; f && r < 2; r++) {
        TlBlock b = add_region(lw, f);
        if (!b)
            return false;
        lw->sync = before;
        lw->b.block = b;
        lw->b.before = 0;
        if (!lw->anchor)
            lw->anchor = f;
        if (!lw_block(lw, n.region[r]) || !end_branch(lw, &n, r, ext[r]) ||
            !tl_walk(ir, n.region[r], forget_tile, lw))
            return false;
        after = lw_sync_union(after, lw->sync);
        lw->b = save;
        lw->anchor = anchor;
    }
    lw->sync = after;
    for (uint32_t i = 0; f && i < like.flat_n; i++)
        out[i] = tl_result(ir, f, i);
    return f && branch_exts(lw, &n, f, ext[0], ext[1], like.flat_n) && carried_bind(lw, &like, n.res, out);
}

bool
lw_lower_while(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, op);
    Carried c;
    if (!carried_get(lw, n.in, n.res, n.nres, NULL, &c))
        return false;
    TlVal *in = carried_flat(lw, &c, 0), *args = TL_NEW_N(lw->arena, TlVal, c.flat_n);
    TlType *ty = TL_NEW_N(lw->arena, TlType, c.flat_n);
    if (!in || !args || !ty)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t i = 0; i < c.flat_n; i++)
        ty[i] = tl_valn(ir, in[i])->type;
    TlOp f = lw_op(lw, TL_OP_while, in, c.flat_n, ty, c.flat_n);
    TlBuilder save = lw->b;
    TlOp anchor = lw->anchor;
    LwSync before = lw->sync, at_exit = before;
    lw_sync_loop(lw, op);
    for (uint32_t r = 0; f && r < 2; r++) {
        TlBlock sb = n.region[r], b = add_region(lw, f);
        for (uint32_t i = 0; b && i < c.flat_n; i++) {
            args[i] = tl_block_arg(ir, b, ty[i], "");
            lw_mark_inner(lw, args[i]);
        }
        lw->b.block = b;
        lw->b.before = 0;
        if (!lw->anchor)
            lw->anchor = f;
        TlOp end = tl_blockn(ir, sb)->last;
        if (!b || !carried_bind(lw, &c, tl_blockn(ir, sb)->args.data, args) || !enter_exts(lw, op, r) ||
            !tl_walk(ir, sb, forget_tile, lw) || !lw_block(lw, sb))
            return false;
        if (r == 0) { /* condition c, carried... */
            Carried now;
            TlVal cond = lw_scalar(lw, tl_opn(ir, end)->in[0]);
            if (!cond || !carried_get(lw, tl_opn(ir, end)->in + 1, n.res, n.nres, NULL, &now))
                return false;
            TlVal *v = carried_flat(lw, &now, 1);
            if (!v)
                return false;
            v[0] = cond;
            if (!lw_op(lw, TL_OP_condition, v, now.flat_n + 1, NULL, 0))
                return false;
            at_exit = lw->sync; /* the loop is left from here */
        } else if (!yield_carried(lw, sb, n.res, n.nres)) {
            return false;
        }
        lw->b = save;
        lw->anchor = anchor;
    }
    lw->sync = at_exit;
    for (uint32_t i = 0; f && i < c.flat_n; i++)
        args[i] = tl_result(ir, f, i);
    return f && lw_loop_exts(lw, op, f) && carried_bind(lw, &c, n.res, args);
}
