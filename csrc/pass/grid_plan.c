/* grid_plan.c - the tile program of a group of statements: tile sizes, program ids and the launch grid, then
 * the statements one after the other.
 *
 * What a statement writes over the group's tile dims is kept as a tile and stored at the end (or before
 * something has to read it back from memory): a statement behind it goes on with the tile, rounded to the
 * tensor's dtype as the store would round it.
 */
#include "pass/grid.h"

bool
gr_space(Gr *g, uint32_t stmt, GrSpace *sp)
{
    const GrStmt *s = &g->stmts.data[stmt];
    *sp = (GrSpace){.stmt = stmt};
    tl_map_init(&sp->memo, g->arena);
    for (uint32_t a = 0; a < g->ngroup; a++) {
        sp->sub[s->map[a]] = g->group[a].origin;
        if (!g->group[a].tile)
            continue;
        sp->axis[sp->n] = s->map[a];
        sp->cap[sp->n++] = g->group[a].cap;
    }
    return true;
}

/* ---- what is kept between statements ---- */

static bool
flush_one(Gr *g, GrForward *f)
{
    GrSpace sp;
    if (!f->pending)
        return true;
    f->pending = false;
    const GrStmt *s = &g->stmts.data[f->stmt];
    return gr_space(g, f->stmt, &sp) && gr_store(g, &sp, &s->w, f->tile, tl_opn(g->ir, s->op)->loc);
}

/* Stores what is pending on buf; its tiles are of no use afterwards when forget is set. */
static bool
flush(Gr *g, TlVal buf, bool forget)
{
    for (uint32_t i = 0; i < g->fwd.len; i++) {
        GrForward *f = &g->fwd.data[i];
        if (buf && f->buf != buf)
            continue;
        if (!flush_one(g, f))
            return false;
        if (forget)
            f->tile = 0;
    }
    return true;
}

static bool
same_target(Gr *g, const GrStmt *s, const GrAccess *a, const GrStmt *t, const GrAccess *b)
{
    bool same = a->buf == b->buf;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = gr_aff_equal(&a->idx[d], s, &b->idx[d], t, g->ngroup);
    return same;
}

/* Before statement t: what it reads and cannot take as a tile must be in memory. */
static bool
settle_reads(Gr *g, uint32_t stmt)
{
    GrStmt *t = &g->stmts.data[stmt];
    for (uint32_t i = 0; i < g->fwd.len; i++) {
        GrForward *f = &g->fwd.data[i];
        if (!f->pending)
            continue;
        const GrStmt *s = &g->stmts.data[f->stmt];
        bool keep = true;
        if (t->w.buf == f->buf)
            keep = f->full && !t->inner && same_target(g, s, &s->w, t, &t->w);
        for (uint32_t r = 0; keep && r < t->reads.len; r++)
            if (t->reads.data[r].buf == f->buf)
                keep = f->full && !t->dot.found && same_target(g, s, &s->w, t, &t->reads.data[r]);
        if (!keep && !flush_one(g, f))
            return false;
    }
    return true;
}

/* The tile is what statement stmt writes: kept, in place of an earlier one for the same elements. */
static bool
keep(Gr *g, uint32_t stmt, TlVal tile, bool full)
{
    const GrStmt *t = &g->stmts.data[stmt];
    for (uint32_t i = 0; i < g->fwd.len; i++) {
        GrForward *f = &g->fwd.data[i];
        if (f->buf != t->w.buf)
            continue;
        bool replaced = full && same_target(g, &g->stmts.data[f->stmt], &g->stmts.data[f->stmt].w, t, &t->w);
        if (!replaced && !flush_one(g, f))
            return false;
        f->pending = false;
        f->tile = 0;
    }
    GrForward f = {.buf = t->w.buf, .stmt = stmt, .tile = tile, .full = full, .pending = true};
    return tl_vec_push(g->arena, &g->fwd, f);
}

/* ---- statements ---- */

/* The value at one turn of the reduced axes; where it is invalid it counts for nothing. */
static TlVal
reduced_value(Gr *g, GrSpace *sp)
{
    const GrStmt *s = &g->stmts.data[sp->stmt];
    TlElem wide = tl_vtype(g->ir, s->value)->elem;
    int64_t e;
    TlVal id = gr_identity(g, wide, tl_attr_str(g->ir, s->op, "kind", "sum"));
    TlVal x = gr_guarded(g, sp, gr_value(g, sp, s->value), id);
    bool whole = gr_all_in_range(g, s, GR_AXES);
    if (s->row)
        whole = whole && gr_const(g, g->axis[s->row_axis].extent, &e) && e % s->row_cap == 0;
    if (whole && !s->inner)
        return x;
    return gr_fill(g, x, id);
}

/* acc op= value over the reduced axes in Python's order; acc is carried. A tiled axis comes last. */
static bool
reduce_loops(Gr *g, const GrSpace *at, uint32_t red, TlVal *acc)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    TlElem wide = tl_vtype(g->ir, s->value)->elem;
    GrSpace sp = *at;
    tl_map_init(&sp.memo, g->arena);
    if (!red) {
        TlVal x = reduced_value(g, &sp);
        g->b.loc = tl_opn(g->ir, s->op)->loc;
        TlOpcode c = gr_combiner(tl_attr_str(g->ir, s->op, "kind", "sum"));
        *acc = x ? gr_ew(g, &sp, c, wide, (TlVal[]){*acc, x}, 2) : 0;
        return *acc != 0;
    }
    uint32_t one = s->row ? red & ~(1u << s->row_axis) : red;
    uint32_t axis = one ? (uint32_t)__builtin_ctz(one) : s->row_axis;
    GrFor f;
    TlVal zero = gr_ix(g, 0), step = gr_ix(g, one ? 1 : s->row_cap);
    if (!zero || !step || !gr_for_begin(g, zero, g->axis[axis].extent, step, acc, 1, &f))
        return false;
    sp.sub[axis] = f.iv;
    return reduce_loops(g, &sp, red & ~(1u << axis), acc) && gr_for_end(g, &f, acc, 1);
}

/* A reduction along a row: partial results a position of the row's tile, joined behind the loop. */
static TlVal
reduce_row(Gr *g, const GrSpace *at)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    const char *kind = tl_attr_str(g->ir, s->op, "kind", "sum");
    TlElem wide = tl_vtype(g->ir, s->value)->elem;
    GrSpace sp = *at;
    sp.axis[sp.n] = s->row_axis;
    sp.bounded[sp.n] = true;
    sp.cap[sp.n++] = s->row_cap;
    TlVal acc = gr_as_tile(g, &sp, gr_identity(g, wide, kind));
    if (!acc || !reduce_loops(g, &sp, s->red, &acc))
        return 0;
    g->b.loc = tl_opn(g->ir, s->op)->loc;
    TlType t = at->n ? tl_type_tile(g->ir, wide, at->n, at->cap) : tl_type_scalar(g->ir, wide);
    TlVal r = tl_build1t(&g->b, TL_OP_reduce, t, 1, acc);
    TlOp o = r ? tl_valn(g->ir, r)->def : 0;
    return o && tl_attr_set_int(g->ir, o, "axis", at->n) && tl_attr_set_str(g->ir, o, "kind", kind) ? r : 0;
}

/* What the statement writes, as a tile of the space in the tensor's dtype. */
static TlVal
result(Gr *g, GrSpace *sp, bool *full)
{
    const GrStmt s = g->stmts.data[sp->stmt];
    TlElem e = tl_vtype(g->ir, s.w.buf)->elem;
    TlLoc loc = tl_opn(g->ir, s.op)->loc;
    TlVal v;
    *full = gr_all_in_range(g, &s, s.par);
    for (uint32_t d = 0; d < s.w.rank; d++)
        *full = *full && gr_in_range(g, &s.w.idx[d], s.w.buf, d);
    if (!s.acc) {
        v = gr_value(g, sp, s.value);
        if (s.nguard)
            v = gr_guarded(g, sp, v, gr_old(g, sp));
        return gr_as_tile(g, sp, v);
    }
    const char *kind = tl_attr_str(g->ir, s.op, "kind", "sum");
    TlElem wide = tl_vtype(g->ir, s.value)->elem;
    TlVal sum = 0;
    g->b.loc = loc;
    if (s.dot.found && !(sum = gr_dot_emit(g, sp)))
        return 0;
    if (s.row && !(sum = reduce_row(g, sp)))
        return 0;
    if (!s.red && !(sum = gr_guarded(g, sp, gr_value(g, sp, s.value), gr_identity(g, wide, kind))))
        return 0;
    g->b.loc = loc;
    TlVal old = gr_cast(g, sp, gr_old(g, sp), wide);
    if (sp->n)
        old = gr_as_tile(g, sp, old);
    if (!old)
        return 0;
    if (s.inner && !sum) /* a carried tile keeps its extent: all of it */
        old = gr_fill(g, old, gr_identity(g, wide, kind));
    if (sum)
        old = gr_ew(g, sp, gr_combiner(kind), wide, (TlVal[]){old, sum}, 2);
    else if (!reduce_loops(g, sp, s.red, &old))
        return 0;
    g->b.loc = loc;
    return gr_cast(g, sp, old, e);
}

/* Axes of a statement beyond the group's: loops over tiles inside the program, stored at once. */
static bool
inner_loops(Gr *g, const GrSpace *at, uint32_t i)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    GrSpace sp = *at;
    tl_map_init(&sp.memo, g->arena);
    while (i < s->npar && !(s->inner >> s->par_list[i] & 1))
        i++;
    if (!gr_locals_ahead(g, &sp))
        return false;
    if (i == s->npar) {
        bool full;
        TlVal v = result(g, &sp, &full);
        return v && gr_store(g, &sp, &s->w, v, tl_opn(g->ir, s->op)->loc);
    }
    uint32_t axis = s->par_list[i];
    GrFor f;
    TlVal zero = gr_ix(g, 0), step = gr_ix(g, TL_MAX(s->cap[i], 1));
    if (!zero || !step || !gr_for_begin(g, zero, g->axis[axis].extent, step, NULL, 0, &f))
        return false;
    sp.sub[axis] = f.iv;
    if (s->cap[i]) {
        sp.axis[sp.n] = axis;
        sp.cap[sp.n++] = s->cap[i];
    }
    uint32_t known = g->hoisted.len;
    bool ok = inner_loops(g, &sp, i + 1) && gr_for_end(g, &f, NULL, 0);
    g->hoisted.len = known; /* what was computed in the loop ends with it */
    return ok;
}

static bool
statement(Gr *g, uint32_t stmt)
{
    GrSpace sp;
    bool full;
    if (!settle_reads(g, stmt) || !gr_space(g, stmt, &sp) || !gr_locals_ahead(g, &sp))
        return false;
    if (g->stmts.data[stmt].inner) {
        TlVal buf = g->stmts.data[stmt].w.buf;
        return flush(g, buf, true) && inner_loops(g, &sp, 0);
    }
    TlVal v = result(g, &sp, &full);
    return v && keep(g, stmt, v, full);
}

/* Emits everything at the builder's place. false with g->serial set: nothing was changed that matters, run
 * serially. */
bool
gr_emit(Gr *g)
{
    GrSpace none = {0};
    for (uint32_t a = 0; a < g->naxes; a++) /* an extent may have been computed inside another loop */
        if (!(g->axis[a].extent = gr_index(g, &none, g->axis[a].extent)))
            return false;
    for (uint32_t a = 0; a < g->ngroup; a++)
        g->group[a] = (GrGroupAxis){.extent = g->axis[g->stmts.data[0].map[a]].extent};
    if (!gr_size(g) || !gr_programs(g))
        return false;
    for (uint32_t i = 0; i < g->stmts.len; i++)
        if (!statement(g, i))
            return false;
    return flush(g, 0, false);
}
