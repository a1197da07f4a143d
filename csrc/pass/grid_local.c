/* grid_local.c - locals that an inner loop reduces into (`top = max(top, X[i, j])`): a loop that joins one
 * value a turn into each of its carried ones and does nothing else. Where the values lie along memory,
 * partial results are kept for each position of a tile and joined behind the loop; else the loop walks single
 * indices in order.
 *
 * An element outside its tensor leaves the local alone.
 */
#include "pass/grid.h"

enum { ROW = 256 };

static TlOp
loop_of(const Gr *g, TlVal v)
{
    return tl_valn(g->ir, v)->def;
}

/* The operation that makes the next carried value. */
static TlOp
join_of(const Gr *g, TlOp loop, uint32_t i)
{
    TlOp y = tl_block_terminator(g->ir, tl_opn(g->ir, loop)->region[0]);
    return tl_valn(g->ir, tl_opn(g->ir, y)->in[i])->def;
}

static TlVal
carried(const Gr *g, TlOp loop, uint32_t i)
{
    return tl_blockn(g->ir, tl_opn(g->ir, loop)->region[0])->args.data[1 + i];
}

TlVal
gr_local_init(const Gr *g, TlVal v)
{
    return tl_opn(g->ir, loop_of(g, v))->in[3 + tl_valn(g->ir, v)->index];
}

TlVal
gr_local_value(const Gr *g, TlVal v)
{
    TlOp j = join_of(g, loop_of(g, v), tl_valn(g->ir, v)->index);
    const TlOpNode *n = tl_opn(g->ir, j);
    return n->in[0] == carried(g, loop_of(g, v), tl_valn(g->ir, v)->index) ? n->in[1] : n->in[0];
}

uint32_t
gr_local_axis(const Gr *g, TlVal v)
{
    uint64_t axis = 0;
    tl_map_get(&g->axis_of, tl_blockn(g->ir, tl_opn(g->ir, loop_of(g, v))->region[0])->args.data[0], &axis);
    return (uint32_t)axis;
}

static const char *
kind_of(const Gr *g, TlVal v)
{
    switch (tl_opn(g->ir, join_of(g, loop_of(g, v), tl_valn(g->ir, v)->index))->code) {
    case TL_OP_max:
        return "max";
    case TL_OP_min:
        return "min";
    case TL_OP_mul:
        return "prod";
    default:
        return "sum";
    }
}

/* Uses of v in the loop's own operations. */
static uint32_t
uses_in(const Gr *g, TlOp loop, TlVal v)
{
    uint32_t n = 0;
    for (TlOp o = tl_blockn(g->ir, tl_opn(g->ir, loop)->region[0])->first; o; o = tl_opn(g->ir, o)->next)
        for (uint32_t i = 0; i < tl_opn(g->ir, o)->nin; i++)
            n += tl_opn(g->ir, o)->in[i] == v;
    return n;
}

bool
gr_local_fits(Gr *g, TlOp loop)
{
    const TlOpNode n = *tl_opn(g->ir, loop);
    TlVal iv = tl_blockn(g->ir, n.region[0])->args.data[0];
    int64_t lb, step;
    if (!tl_is_const_int(g->ir, n.in[0], &lb) || lb || !tl_is_const_int(g->ir, n.in[2], &step) || step != 1 ||
        !n.nres || tl_vtype(g->ir, iv)->kind != TL_TY_INDEX || gr_mask(g, n.in[1]))
        return false;
    for (TlOp o = tl_blockn(g->ir, n.region[0])->first; o; o = tl_opn(g->ir, o)->next)
        if (tl_opn(g->ir, o)->nregion || (tl_op_row(tl_opn(g->ir, o)->code)->traits & TL_T_WRITES))
            return false;
    TlOp y = tl_block_terminator(g->ir, n.region[0]);
    for (uint32_t i = 0; i < n.nres; i++) {
        TlVal c = carried(g, loop, i);
        TlOp j = join_of(g, loop, i);
        const TlTypeInfo *t = tl_vtype(g->ir, c);
        if (!j || t->kind != TL_TY_SCALAR || uses_in(g, loop, c) != 1 ||
            uses_in(g, loop, tl_opn(g->ir, y)->in[i]) != 1)
            return false;
        TlOpcode op = tl_opn(g->ir, j)->code;
        if ((op != TL_OP_add && op != TL_OP_mul && op != TL_OP_max && op != TL_OP_min) ||
            (tl_opn(g->ir, j)->in[0] != c && tl_opn(g->ir, j)->in[1] != c))
            return false;
    }
    return true;
}

/* An element on the way to v is indexed by the axis: where the axis ends, v is invalid. */
static bool
read_along(Gr *g, TlVal v, uint32_t axis)
{
    TlOp o = tl_valn(g->ir, v)->def;
    if (!o || !(gr_mask(g, v) & GR_READS))
        return false;
    const TlOpNode n = *tl_opn(g->ir, o);
    for (uint32_t i = 1; n.code == TL_OP_element && i < n.nin; i++) {
        GrAff a = gr_aff(g, n.in[i]);
        if (gr_aff_coef(&a, axis))
            return true;
    }
    for (uint32_t i = 0; n.code != TL_OP_element && n.code != TL_OP_for && n.code != TL_OP_if && i < n.nin;
         i++)
        if (read_along(g, n.in[i], axis))
            return true;
    return false;
}

static TlVal
reduce_over(Gr *g, const GrSpace *at, TlVal v, bool row)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    const char *kind = kind_of(g, v);
    TlElem e = tl_vtype(g->ir, v)->elem;
    uint32_t axis = gr_local_axis(g, v), known = g->hoisted.len;
    GrSpace sp = *at;
    TlLoc loc = tl_opn(g->ir, loop_of(g, v))->loc;
    int64_t cap = row ? gr_cap_for(g, g->axis[axis].extent, ROW) : 1;
    GrFor f;
    tl_map_init(&sp.memo, g->arena);
    if (row) {
        sp.axis[sp.n] = axis;
        sp.bounded[sp.n] = true;
        sp.cap[sp.n++] = cap;
    }
    g->b.loc = loc;
    TlVal id = gr_identity(g, e, kind), acc = sp.n ? gr_as_tile(g, &sp, id) : id;
    TlVal zero = gr_ix(g, 0), step = gr_ix(g, cap);
    if (!acc || !zero || !step || !gr_for_begin(g, zero, g->axis[axis].extent, step, &acc, 1, &f))
        return 0;
    sp.sub[axis] = f.iv;
    TlVal x = gr_value(g, &sp, gr_local_value(g, v));
    if (s->inner || row || !gr_all_in_range(g, s, GR_AXES))
        x = gr_fill(g, x, id);
    g->b.loc = loc;
    acc = x ? gr_ew(g, &sp, gr_combiner(kind), e, (TlVal[]){acc, x}, 2) : 0;
    if (!acc || !gr_for_end(g, &f, &acc, 1))
        return 0;
    g->hoisted.len = known;
    if (!row)
        return acc;
    TlType t = at->n ? tl_type_tile(g->ir, e, at->n, at->cap) : tl_type_scalar(g->ir, e);
    TlVal r = tl_build1t(&g->b, TL_OP_reduce, t, 1, acc);
    TlOp o = r ? tl_valn(g->ir, r)->def : 0;
    return o && tl_attr_set_int(g->ir, o, "axis", at->n) && tl_attr_set_str(g->ir, o, "kind", kind) ? r : 0;
}

/* Over the dims that the local depends on alone. */
static bool
compute(Gr *g, const GrSpace *sp, TlVal v, GrHoisted *h)
{
    const GrStmt *s = &g->stmts.data[sp->stmt];
    uint32_t mask = gr_mask(g, v), axis = gr_local_axis(g, v);
    const char *kind = kind_of(g, v);
    GrSpace sub = *sp;
    tl_map_init(&sub.memo, g->arena);
    *h = (GrHoisted){.local = v};
    sub.n = 0;
    for (uint32_t d = 0; d < sp->n; d++)
        if (mask >> sp->axis[d] & 1) {
            h->axis[h->n++] = sp->axis[d];
            sub.axis[sub.n] = sp->axis[d];
            sub.bounded[sub.n] = sp->bounded[d];
            sub.cap[sub.n++] = sp->cap[d];
        }
    bool row = strcmp(kind, "prod") && sub.n < GR_MAX_TILE && gr_runs_along(g, s, axis) &&
               read_along(g, gr_local_value(g, v), axis);
    TlVal init = gr_value(g, &sub, gr_local_init(g, v)), r = init ? reduce_over(g, &sub, v, row) : 0;
    TlElem e = tl_vtype(g->ir, v)->elem;
    h->tile = r ? gr_ew(g, &sub, gr_combiner(kind), e, (TlVal[]){init, r}, 2) : 0;
    return h->tile && tl_vec_push(g->arena, &g->hoisted, *h);
}

TlVal
gr_local(Gr *g, GrSpace *sp, TlVal v)
{
    GrHoisted h = {0};
    uint32_t dim[GR_MAX_TILE];
    for (uint32_t i = 0; i < g->hoisted.len; i++)
        if (g->hoisted.data[i].local == v)
            h = g->hoisted.data[i];
    if (!h.local && !compute(g, sp, v, &h))
        return 0;
    if (!h.n)
        return h.tile;
    for (uint32_t i = 0; i < h.n; i++)
        dim[i] = gr_dim_of(sp, h.axis[i]);
    return gr_place(g, sp, h.tile, dim, h.n);
}

bool
gr_locals_ahead(Gr *g, GrSpace *sp)
{
    for (uint32_t i = 0; i < g->stmts.data[sp->stmt].nlocal; i++) {
        TlVal v = g->stmts.data[sp->stmt].local[i];
        uint32_t mask = gr_mask(g, v) & GR_AXES;
        bool open = false;
        for (uint32_t a = 0; a < g->naxes; a++)
            open = open || ((mask >> a & 1) && !sp->sub[a]);
        if (!open && !gr_local(g, sp, v))
            return false;
    }
    return true;
}
