/* grid_plan.c - the tile program of a group of statements: tile sizes, program ids and the launch grid, then
 * the statements one after the other.
 *
 * What a statement writes over the group's tile dims is kept as a tile and stored at the end (or before
 * something has to read it back from memory): a statement behind it goes on with the tile, rounded to the
 * tensor's dtype as the store would round it.
 */
#include "pass/grid.h"

enum {
    DOT_LARGE = 128,
    DOT_SMALL = 64,
    DOT_SMALL_UP_TO = 512,
    EW_ELEMS = 2048,    /* elements of a program without reductions */
    EW_RED_ELEMS = 512, /* with: each turn of its loop works on a tile */
    EW_ROW = 256,       /* along memory first */
    EW_SQUARE = 64      /* when memory orders differ */
};

/* ---- sizes ---- */

static int64_t
pow2_up(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static int64_t
extent_or(const Gr *g, TlVal v, int64_t unknown)
{
    int64_t e;
    return gr_const(g, v, &e) ? TL_MAX(e, 1) : unknown;
}

static void
size_dots(Gr *g)
{
    int64_t m = extent_or(g, g->group[g->m].extent, INT64_MAX),
            n = extent_or(g, g->group[g->n].extent, INT64_MAX);
    int64_t cap = TL_MIN(m, n) <= DOT_SMALL_UP_TO ? DOT_SMALL : DOT_LARGE, k = 1;
    g->kcap = 64;
    for (uint32_t i = 0; i < g->stmts.len; i++)
        if (g->stmts.data[i].dot.found) {
            k = TL_MAX(k, extent_or(g, g->axis[g->stmts.data[i].dot.k].extent, 64));
            if (tl_elem_bytes(g->stmts.data[i].dot.elem) >= 4)
                g->kcap = 32;
        }
    g->kcap = TL_MIN(g->kcap, TL_MAX(pow2_up(TL_MIN(k, 64)), 16));
    for (uint32_t a = 0; a < g->ngroup; a++) {
        g->group[a].tile = a == g->m || a == g->n;
        g->group[a].cap = 1;
    }
    g->group[g->m].cap = TL_MIN(cap, TL_MAX(pow2_up(TL_MIN(m, cap)), 16));
    g->group[g->n].cap = TL_MIN(cap, TL_MAX(pow2_up(TL_MIN(n, cap)), 16));
}

/* The group's axis that an access moves along in memory; ngroup: none. */
static uint32_t
memory_axis(const Gr *g, const GrStmt *s, const GrAccess *a)
{
    const TlTypeInfo *t = tl_vtype(g->ir, a->buf);
    for (uint32_t d = 0; d < a->rank; d++) {
        bool unit = t->strides[d] == 1 || ((t->flags & TL_BUF_DENSE) && d + 1 == t->rank);
        for (uint32_t x = 0; unit && x < g->ngroup; x++)
            if (gr_aff_coef(&a->idx[d], s->map[x]))
                return x;
    }
    return g->ngroup;
}

static void
size_elementwise(Gr *g)
{
    const GrStmt *s0 = &g->stmts.data[0];
    uint32_t along = memory_axis(g, s0, &s0->w);
    bool square = false, red = false, inner = false;
    if (along == g->ngroup)
        along = g->ngroup - 1;
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        const GrStmt *s = &g->stmts.data[i];
        red = red || s->red;
        inner = inner || s->inner;
        for (uint32_t r = 0; r <= s->reads.len; r++) {
            uint32_t x = memory_axis(g, s, r ? &s->reads.data[r - 1] : &s->w);
            square = square || (x != along && x != g->ngroup && g->ngroup > 1);
        }
    }
    int64_t left = inner ? EW_SQUARE
                   : red ? EW_RED_ELEMS
                         : EW_ELEMS,
            row = square || inner ? EW_SQUARE
                  : g->ngroup > 1 ? EW_ROW
                                  : left;
    for (uint32_t a = 0; a < g->ngroup; a++)
        g->group[a] =
            (GrGroupAxis){.extent = g->group[a].extent, .cap = 1, .tile = a + GR_MAX_TILE >= g->ngroup};
    for (uint32_t turn = 0; turn < g->ngroup; turn++) {
        uint32_t a = turn == 0 ? along : g->ngroup - turn - (g->ngroup - turn <= along ? 1 : 0);
        if (!g->group[a].tile)
            continue;
        int64_t most = turn == 0 ? row : square ? TL_MIN(left, EW_SQUARE) : left;
        g->group[a].cap = TL_MIN(pow2_up(TL_MIN(extent_or(g, g->group[a].extent, most), most)), most);
        left = TL_MAX(left / g->group[a].cap, 1);
    }
}

static void
find_dots(Gr *g)
{
    for (uint32_t n = g->ngroup; n-- > 1 && !g->has_dot;)
        for (uint32_t m = n; m-- > 0 && !g->has_dot;)
            for (uint32_t i = 0; i < g->stmts.len; i++) {
                GrStmt *s = &g->stmts.data[i];
                if (!s->dot.found && gr_dot_match(g, s, s->map[m], s->map[n])) {
                    g->has_dot = true;
                    g->m = m;
                    g->n = n;
                }
            }
    /* whoever else loops inside the program keeps to single elements of its tiles */
    for (uint32_t i = 0; g->has_dot && i < g->stmts.len; i++)
        if (g->stmts.data[i].inner)
            g->has_dot = false;
    for (uint32_t i = 0; !g->has_dot && i < g->stmts.len; i++)
        g->stmts.data[i].dot.found = false;
}

/* ---- programs ---- */

/* How the launch grid learns the number of blocks: triple param, axis, C. */
static bool
grid_triple(Gr *g, uint32_t a, int64_t out[3])
{
    int64_t e, cap = g->group[a].cap;
    out[2] = cap;
    if (gr_const(g, g->group[a].extent, &e)) {
        out[0] = -1;
        out[1] = TL_MAX(e, 0);
        return true;
    }
    for (uint32_t i = 0; i < g->stmts.len;
         i++) /* the stored dim itself: what is proven of it holds for the tiles */
        for (uint32_t d = 0; d < g->stmts.data[i].w.rank; d++) {
            const GrStmt *s = &g->stmts.data[i];
            if (gr_aff_coef(&s->w.idx[d], s->map[a]) == 1 && gr_is_dim(g, g->group[a].extent, s->w.buf, d)) {
                out[0] = gr_param(g, s->w.buf);
                out[1] = d;
                return true;
            }
        }
    TlOp o = tl_valn(g->ir, g->group[a].extent)->def;
    if (o && tl_opn(g->ir, o)->code == TL_OP_dim) {
        out[0] = gr_param(g, tl_opn(g->ir, o)->in[0]);
        out[1] = tl_attr_int(g->ir, o, "axis", 0);
        return true;
    }
    /* any other size: no more blocks than the stored dim has do anything */
    const GrStmt *s = &g->stmts.data[0];
    for (uint32_t i = 1; i < g->stmts.len; i++)
        if (g->stmts.data[i].w.buf != s->w.buf)
            return gr_serial(g, s->op,
                             "an extent is neither a number nor a dim, and several tensors are written");
    for (uint32_t d = 0; d < s->w.rank; d++)
        if (gr_aff_coef(&s->w.idx[d], s->map[a]) == 1 && s->w.idx[d].c >= 0 && !s->w.idx[d].ninv) {
            out[0] = gr_param(g, s->w.buf);
            out[1] = d;
            return true;
        }
    return gr_serial(g, s->op,
                     "an extent is neither a number nor a dim, and the written index has an offset");
}

static TlVal
program_id(Gr *g, uint32_t axis)
{
    TlVal v = tl_build1t(&g->b, TL_OP_program_id, tl_type_index(g->ir), 0);
    return v && tl_attr_set_int(g->ir, tl_valn(g->ir, v)->def, "axis", axis) ? v : 0;
}

static TlVal
block_count(Gr *g, const int64_t t[3])
{
    if (t[0] < 0)
        return gr_ix(g, (t[1] + t[2] - 1) / t[2]);
    TlVal buf = tl_blockn(g->ir, g->ir->kernels.data[g->k].body)->args.data[t[0]];
    TlVal d = tl_build1t(&g->b, TL_OP_dim, tl_type_index(g->ir), 1, buf);
    if (!d || !tl_attr_set_int(g->ir, tl_valn(g->ir, d)->def, "axis", t[1]))
        return 0;
    return gr_ix_bin(g, TL_OP_floordiv, gr_ix_bin(g, TL_OP_add, d, gr_ix(g, t[2] - 1)), gr_ix(g, t[2]));
}

/* Grid axes 0 and 1 for a dot's m and n, else for the group's first axes; the last grid axis takes all that
 * are left. */
static bool
place_programs(Gr *g)
{
    static const char *const names[] = {"grid0", "grid1", "grid2"};
    int64_t triple[3 * GR_MAX_GROUP];
    uint32_t order[GR_MAX_GROUP], n = 0, used = 0;
    if (g->has_dot) {
        order[n++] = g->m;
        order[n++] = g->n;
        used = 1u << g->m | 1u << g->n;
    }
    for (uint32_t a = 0; a < g->ngroup; a++)
        if (!(used >> a & 1))
            order[n++] = a;
    for (uint32_t p = 0; p < TL_MIN(n, 3u); p++) {
        uint32_t last = p == 2 ? n : p + 1;
        TlVal id = program_id(g, p);
        for (uint32_t i = p; i < last; i++) {
            GrGroupAxis *x = &g->group[order[i]];
            if (!grid_triple(g, order[i], triple + 3 * (i - p)))
                return false;
            TlVal own = id;
            if (i + 1 < last) {
                TlVal count = block_count(g, triple + 3 * (i - p));
                own = gr_ix_bin(g, TL_OP_mod, id, count);
                id = gr_ix_bin(g, TL_OP_floordiv, id, count);
            }
            x->origin = gr_ix_bin(g, TL_OP_mul, own, gr_ix(g, x->cap));
            if (!x->origin)
                return false;
        }
        if (!tl_kattr_set_ints(g->ir, g->k, names[p], triple, 3 * (last - p)))
            return false;
    }
    return true;
}

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

/* x op= value over single indices of the reduced axes, in Python's order; the tile is carried. */
static bool
reduce_loops(Gr *g, const GrSpace *at, uint32_t red, TlVal *acc)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    const char *kind = tl_attr_str(g->ir, s->op, "kind", "sum");
    GrSpace sp = *at;
    tl_map_init(&sp.memo, g->arena);
    if (!red) {
        TlElem wide = tl_vtype(g->ir, s->value)->elem;
        TlVal x = gr_value(g, &sp, s->value);
        if (x && tl_vtype(g->ir, x)->kind == TL_TY_TILE && !gr_all_in_range(g, s, GR_AXES)) {
            TlVal id = gr_identity(g, wide, kind);
            x = id ? tl_build1t(&g->b, TL_OP_fill, tl_valn(g->ir, x)->type, 2, x, id) : 0;
        }
        g->b.loc = tl_opn(g->ir, s->op)->loc;
        *acc = x ? gr_ew(g, &sp, gr_combiner(kind), wide, (TlVal[]){*acc, x}, 2) : 0;
        return *acc != 0;
    }
    uint32_t axis = (uint32_t)__builtin_ctz(red);
    GrFor f;
    TlVal zero = gr_ix(g, 0), one = gr_ix(g, 1);
    if (!zero || !one || !gr_for_begin(g, zero, g->axis[axis].extent, one, acc, 1, &f))
        return false;
    sp.sub[axis] = f.iv;
    return reduce_loops(g, &sp, red & ~(1u << axis), acc) && gr_for_end(g, &f, acc, 1);
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
        return gr_as_tile(g, sp, v);
    }
    const char *kind = tl_attr_str(g->ir, s.op, "kind", "sum");
    TlElem wide = tl_vtype(g->ir, s.value)->elem;
    TlVal sum = 0;
    g->b.loc = loc;
    if (s.dot.found && !(sum = gr_dot_emit(g, sp->stmt)))
        return 0;
    if (!s.dot.found && !s.red && !(sum = gr_value(g, sp, s.value)))
        return 0;
    g->b.loc = loc;
    TlVal old = gr_as_tile(g, sp, gr_cast(g, sp, gr_old(g, sp), wide));
    if (!old)
        return 0;
    if (sum)
        old = gr_ew(g, sp, gr_combiner(kind), wide, (TlVal[]){old, sum}, 2);
    else if (!reduce_loops(g, sp, s.red, &old))
        return 0;
    g->b.loc = loc;
    return gr_cast(g, sp, old, e);
}

static int64_t
inner_cap(const Gr *g, uint32_t axis, uint32_t count)
{
    int64_t most = count > 1 ? 8 : 32;
    return TL_MIN(pow2_up(TL_MIN(extent_or(g, g->axis[axis].extent, most), most)), most);
}

/* Axes of a statement beyond the group's: loops over tiles inside the program, stored at once. */
static bool
inner_loops(Gr *g, const GrSpace *at, uint32_t left)
{
    const GrStmt *s = &g->stmts.data[at->stmt];
    GrSpace sp = *at;
    tl_map_init(&sp.memo, g->arena);
    if (!left) {
        bool full;
        TlVal v = result(g, &sp, &full);
        return v && gr_store(g, &sp, &s->w, v, tl_opn(g->ir, s->op)->loc);
    }
    uint32_t axis = (uint32_t)__builtin_ctz(left);
    bool tile = sp.n < GR_MAX_TILE;
    int64_t cap = tile ? inner_cap(g, axis, (uint32_t)__builtin_popcount(s->inner)) : 1;
    GrFor f;
    TlVal zero = gr_ix(g, 0), step = gr_ix(g, cap);
    if (!zero || !step || !gr_for_begin(g, zero, g->axis[axis].extent, step, NULL, 0, &f))
        return false;
    sp.sub[axis] = f.iv;
    if (tile) {
        sp.axis[sp.n] = axis;
        sp.cap[sp.n++] = cap;
    }
    return inner_loops(g, &sp, left & ~(1u << axis)) && gr_for_end(g, &f, NULL, 0);
}

static bool
statement(Gr *g, uint32_t stmt)
{
    GrSpace sp;
    bool full;
    if (!settle_reads(g, stmt) || !gr_space(g, stmt, &sp))
        return false;
    if (g->stmts.data[stmt].inner) {
        TlVal buf = g->stmts.data[stmt].w.buf;
        return flush(g, buf, true) && inner_loops(g, &sp, g->stmts.data[stmt].inner);
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
    find_dots(g);
    if (g->has_dot)
        size_dots(g);
    else
        size_elementwise(g);
    if (!place_programs(g))
        return false;
    for (uint32_t i = 0; i < g->stmts.len; i++)
        if (!statement(g, i))
            return false;
    return flush(g, 0, false);
}
