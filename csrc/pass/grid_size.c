/* grid_size.c - which statements are contractions, tile sizes, program ids and the launch grid. */
#include "pass/grid.h"

enum {
    DOT_LARGE = 128,
    DOT_SMALL = 64,
    DOT_SMALL_UP_TO = 512,
    DOT_K = 64,
    DOT_K_BYTES = 128, /* of one row of an operand's tile */
    DOT_MIN = 16,
    EW_ELEMS = 2048,    /* elements of a program's tiles */
    EW_RED_ELEMS = 512, /* of a tile that a loop over what is reduced works on */
    EW_ROW = 256,       /* along memory first */
    EW_SQUARE = 64,     /* when memory orders differ, or something loops inside */
    ROWS = 8,           /* of a tile whose other dim runs along a long row */
    ROW_MIN = 16
};

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

/* A power of two that holds the axis, at most `most`. */
int64_t
gr_cap_for(const Gr *g, TlVal extent, int64_t most)
{
    return TL_MIN(pow2_up(TL_MIN(extent_or(g, extent, most), most)), most);
}

/* The axis that an access moves along in memory; GR_MAX_AXES: none of its loops. */
static uint32_t
memory_axis(const Gr *g, const GrAccess *a)
{
    const TlTypeInfo *t = tl_vtype(g->ir, a->buf);
    for (uint32_t d = 0; d < a->rank; d++) {
        bool unit = t->strides[d] == 1 || ((t->flags & TL_BUF_DENSE) && d + 1 == t->rank);
        for (uint32_t i = 0; unit && i < a->idx[d].n; i++)
            if (a->idx[d].coef[i] == 1)
                return a->idx[d].axis[i];
    }
    return GR_MAX_AXES;
}

/* ---- contractions ---- */

static void
size_dot(Gr *g, GrDot *d, int64_t large)
{
    int64_t m = extent_or(g, g->axis[d->m].extent, INT64_MAX),
            n = extent_or(g, g->axis[d->n].extent, INT64_MAX);
    int64_t cap = TL_MIN(m, n) <= DOT_SMALL_UP_TO ? DOT_SMALL : large;
    int64_t k = TL_MIN(DOT_K, DOT_K_BYTES / (int64_t)tl_elem_bytes(d->elem));
    d->cap[0] = TL_MAX(gr_cap_for(g, g->axis[d->m].extent, cap), DOT_MIN);
    d->cap[1] = TL_MAX(gr_cap_for(g, g->axis[d->n].extent, cap), DOT_MIN);
    d->kcap = TL_MAX(gr_cap_for(g, g->axis[d->k].extent, k), DOT_MIN);
}

/* Contractions over two of the group's axes, the same two for all. */
static void
find_dots(Gr *g)
{
    for (uint32_t n = g->ngroup; n-- > 1 && !g->has_dot;)
        for (uint32_t m = n; m-- > 0 && !g->has_dot;)
            for (uint32_t i = 0; i < g->stmts.len; i++) {
                GrStmt *s = &g->stmts.data[i];
                if (!s->dot.found && !s->inner && gr_dot_match(g, s, s->map[m], s->map[n])) {
                    size_dot(g, &s->dot, DOT_LARGE);
                    g->has_dot = true;
                    g->m = m;
                    g->n = n;
                }
            }
    /* whoever else loops inside the program wants few of the group's elements */
    for (uint32_t i = 0; g->has_dot && i < g->stmts.len; i++)
        if (g->stmts.data[i].inner)
            g->has_dot = false;
    for (uint32_t i = 0; !g->has_dot && i < g->stmts.len; i++)
        g->stmts.data[i].dot.found = false;
}

static void
size_group_for_dots(Gr *g)
{
    for (uint32_t a = 0; a < g->ngroup; a++)
        g->group[a] = (GrGroupAxis){.extent = g->group[a].extent, .cap = 1, .tile = a == g->m || a == g->n};
    for (uint32_t i = 0; i < g->stmts.len; i++)
        if (g->stmts.data[i].dot.found) {
            g->group[g->m].cap = g->stmts.data[i].dot.cap[0];
            g->group[g->n].cap = g->stmts.data[i].dot.cap[1];
        }
}

/* In a single program: a contraction over two of its own axes. */
static void
find_inner_dot(Gr *g, GrStmt *s)
{
    if (!gr_all_in_range(g, s, s->par))
        return;
    for (uint32_t n = s->npar; n-- > 1 && !s->dot.found;)
        for (uint32_t m = n; m-- > 0 && !s->dot.found;)
            if (gr_dot_match(g, s, s->par_list[m], s->par_list[n]))
                size_dot(g, &s->dot, DOT_SMALL);
    for (uint32_t i = 0; s->dot.found && i < s->npar; i++)
        s->cap[i] = s->par_list[i] == s->dot.m   ? s->dot.cap[0]
                    : s->par_list[i] == s->dot.n ? s->dot.cap[1]
                                                 : 0;
}

/* ---- reductions along rows ---- */

/* The reduced axis is the only one in its dims, and something that is read runs along it in memory (or at
 * all, when nothing else divides the work). */
bool
gr_runs_along(Gr *g, const GrStmt *s, uint32_t axis)
{
    bool along = false;
    for (uint32_t i = 0; i < s->reads.len; i++) {
        const GrAccess *a = &s->reads.data[i];
        uint32_t dims = 0;
        for (uint32_t d = 0; d < a->rank; d++) {
            if (!gr_aff_coef(&a->idx[d], axis))
                continue;
            if (dims++ || gr_aff_coef(&a->idx[d], axis) != 1 || (gr_aff_axes(&a->idx[d]) & s->par))
                return false;
        }
        along = along || memory_axis(g, a) == axis || (dims && !s->npar);
    }
    return along;
}

static void
find_row(Gr *g, GrStmt *s)
{
    const char *kind = tl_attr_str(g->ir, s->op, "kind", "sum");
    if (!s->acc || s->dot.found || strcmp(kind, "prod") == 0 || g->has_dot || s->npar >= GR_MAX_TILE)
        return;
    for (uint32_t axis = GR_MAX_AXES; axis-- > 0 && !s->row;) {
        if (!(s->red >> axis & 1) || !gr_runs_along(g, s, axis))
            continue;
        s->row = !s->npar || extent_or(g, g->axis[axis].extent, ROW_MIN) >= ROW_MIN;
        s->row_axis = axis;
    }
}

/* ---- element-wise tiles ---- */

/* The group's axis along memory, or ngroup. */
static uint32_t
group_axis(const Gr *g, const GrStmt *s, const GrAccess *a)
{
    uint32_t x = 0, axis = memory_axis(g, a);
    while (x < g->ngroup && s->map[x] != axis)
        x++;
    return x;
}

static void
size_group(Gr *g)
{
    const GrStmt *s0 = &g->stmts.data[0];
    bool square = false, red = false, inner = false, rows = false;
    if (!g->ngroup)
        return;
    uint32_t along = TL_MIN(group_axis(g, s0, &s0->w), g->ngroup - 1);
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        const GrStmt *s = &g->stmts.data[i];
        red = red || s->red;
        inner = inner || s->inner;
        for (uint32_t l = 0; l < s->nlocal; l++)
            rows = rows || gr_runs_along(g, s, gr_local_axis(g, s->local[l]));
        rows = rows || s->row || (s->inner >> memory_axis(g, &s->w) & 1);
        for (uint32_t r = 0; r <= s->reads.len; r++) {
            uint32_t x = group_axis(g, s, r ? &s->reads.data[r - 1] : &s->w);
            square = square || (x != along && x != g->ngroup && g->ngroup > 1);
        }
    }
    int64_t left = rows ? ROWS : inner ? EW_SQUARE : red ? EW_RED_ELEMS : EW_ELEMS;
    int64_t row = TL_MIN(left, square || inner ? EW_SQUARE : g->ngroup > 1 ? EW_ROW : left);
    for (uint32_t a = 0; a < g->ngroup; a++)
        g->group[a] =
            (GrGroupAxis){.extent = g->group[a].extent, .cap = 1, .tile = a + GR_MAX_TILE >= g->ngroup};
    for (uint32_t turn = 0; turn < g->ngroup; turn++) {
        uint32_t a = turn == 0 ? along : g->ngroup - turn - (g->ngroup - turn <= along ? 1 : 0);
        if (!g->group[a].tile)
            continue;
        g->group[a].cap = gr_cap_for(g, g->group[a].extent,
                                     turn == 0 ? row
                                     : square  ? TL_MIN(left, EW_SQUARE)
                                               : left);
        left = TL_MAX(left / g->group[a].cap, 1);
    }
}

/* Tile sizes of the axes that a statement has for itself: along memory first. */
static void
size_inner(Gr *g, GrStmt *s)
{
    int64_t left = EW_ELEMS;
    uint32_t dims = s->row, along = memory_axis(g, &s->w);
    for (uint32_t a = 0; a < g->ngroup; a++) {
        left /= g->group[a].tile ? g->group[a].cap : 1;
        dims += g->group[a].tile;
    }
    if (s->row) {
        s->row_cap = gr_cap_for(g, g->axis[s->row_axis].extent, s->inner ? EW_ROW : TL_MIN(left, 4 * EW_ROW));
        left /= s->row_cap;
    }
    for (uint32_t turn = 0; turn < 2 && !s->dot.found; turn++)
        for (uint32_t i = s->npar; i-- > 0;) {
            if (!(s->inner >> s->par_list[i] & 1) || (s->par_list[i] == along) != (turn == 0) ||
                dims == GR_MAX_TILE)
                continue;
            s->cap[i] = gr_cap_for(g, g->axis[s->par_list[i]].extent,
                                   TL_MAX(TL_MIN(left, turn ? EW_SQUARE : EW_ROW), 1));
            left /= s->cap[i];
            dims++;
        }
}

bool
gr_size(Gr *g)
{
    find_dots(g);
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        if (g->single)
            find_inner_dot(g, &g->stmts.data[i]);
        find_row(g, &g->stmts.data[i]);
    }
    if (g->has_dot)
        size_group_for_dots(g);
    else
        size_group(g);
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        const GrStmt *s = &g->stmts.data[i];
        size_inner(g, &g->stmts.data[i]);
        if (!s->npar && !s->row && !gr_all_in_range(g, s, GR_AXES))
            return gr_serial(g, s->op, "a statement writes one single element");
    }
    return true;
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
bool
gr_programs(Gr *g)
{
    static const char *const names[] = {"grid0", "grid1", "grid2"};
    int64_t triple[3 * GR_MAX_GROUP];
    uint32_t order[GR_MAX_GROUP], n = 0, used = 0;
    if (!g->ngroup)
        return tl_kattr_set_ints(g->ir, g->k, names[0], (int64_t[]){-1, 1, 1}, 3);
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
