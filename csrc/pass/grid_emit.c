/* grid_emit.c - tiles of a statement's values: constants, loop variables, elements, arithmetic; stores;
 * loops.
 *
 * A space lists tile dims (one axis and its first index each); every other axis stands for one index.
 * Validity follows the tiles: an element outside its tensor is invalid, so what is computed from it is, and
 * is not stored. Where a single index may lie outside, the load is given an empty extent instead.
 */
#include "pass/grid.h"

#include <math.h>

/* ---- index arithmetic ---- */

TlVal
gr_ix(Gr *g, int64_t v)
{
    return tl_const_int(&g->b, tl_type_index(g->ir), v);
}

TlVal
gr_ix_bin(Gr *g, TlOpcode c, TlVal a, TlVal b)
{
    int64_t x, y;
    bool ca = a && gr_const(g, a, &x), cb = b && gr_const(g, b, &y);
    if (!a || !b)
        return 0;
    if (ca && cb) {
        TlNum in[2] = {{.i = x}, {.i = y}}, out;
        if (tl_fold(c, TL_ELEM_I64, in, &out))
            return gr_ix(g, out.i);
    }
    if ((c == TL_OP_add || c == TL_OP_sub) && cb && y == 0)
        return a;
    if (c == TL_OP_add && ca && x == 0)
        return b;
    if ((c == TL_OP_mul || c == TL_OP_floordiv) && cb && y == 1)
        return a;
    return tl_build1t(&g->b, c, tl_type_index(g->ir), 2, a, b);
}

static TlVal
clone1(Gr *g, TlOp o, const TlVal *in)
{
    TlMap map;
    tl_map_init(&map, g->arena);
    TlLoc save = g->b.loc;
    for (uint32_t i = 0; i < tl_opn(g->ir, o)->nin; i++)
        if (!in[i] || !tl_map_put(&map, tl_opn(g->ir, o)->in[i], in[i]))
            return 0;
    TlOp c = tl_op_clone(&g->b, o, &map);
    g->b.loc = save;
    return tl_result(g->ir, c, 0);
}

TlVal
gr_index(Gr *g, const GrSpace *sp, TlVal v)
{
    uint64_t axis;
    TlVal in[3];
    if (tl_map_get(&g->axis_of, v, &axis))
        return sp->sub[axis];
    if (gr_outside(g, v))
        return v;
    TlOp o = tl_valn(g->ir, v)->def;
    if (!o || tl_opn(g->ir, o)->nin > TL_COUNT(in))
        return 0;
    const TlOpNode n = *tl_opn(g->ir, o);
    for (uint32_t i = 0; i < n.nin; i++)
        if (!(in[i] = gr_index(g, sp, n.in[i])))
            return 0;
    if (n.nin == 2 && tl_vtype(g->ir, v)->kind == TL_TY_INDEX &&
        tl_vtype(g->ir, n.in[0])->kind == TL_TY_INDEX)
        return gr_ix_bin(g, n.code, in[0], in[1]);
    return clone1(g, o, in);
}

/* ---- element-wise ---- */

static bool
is_tile(const Gr *g, TlVal v)
{
    return tl_vtype(g->ir, v)->kind == TL_TY_TILE;
}

static TlType
tile_type(Gr *g, const GrSpace *sp, TlElem e)
{
    return tl_type_tile(g->ir, e, sp->n, sp->cap);
}

TlVal
gr_as_tile(Gr *g, const GrSpace *sp, TlVal v)
{
    if (!v || is_tile(g, v))
        return v;
    TlType t = tile_type(g, sp, tl_type_elem(tl_vtype(g->ir, v)));
    TlOp o = tl_valn(g->ir, v)->def;
    if (o && tl_opn(g->ir, o)->code == TL_OP_const) {
        const TlAttr *f = tl_attr(g->ir, o, "fvalue");
        return f ? tl_const_float(&g->b, t, f->u.f)
                 : tl_const_int(&g->b, t, tl_attr_int(g->ir, o, "value", 0));
    }
    return tl_build1t(&g->b, TL_OP_splat, t, 1, v);
}

TlVal
gr_ew(Gr *g, const GrSpace *sp, TlOpcode c, TlElem res, const TlVal *in, uint32_t n)
{
    TlVal x[3];
    bool tiles = false;
    for (uint32_t i = 0; i < n; i++) {
        if (!in[i])
            return 0;
        tiles = tiles || is_tile(g, in[i]);
        x[i] = in[i];
    }
    for (uint32_t i = 0; tiles && i < n; i++)
        if (!(c == TL_OP_select && i == 0))
            x[i] = gr_as_tile(g, sp, x[i]);
    TlType t = tiles ? tile_type(g, sp, res) : tl_type_scalar(g->ir, res);
    return tl_result(g->ir, tl_build(&g->b, c, x, n, &t, 1), 0);
}

TlVal
gr_cast(Gr *g, const GrSpace *sp, TlVal v, TlElem to)
{
    if (!v || (tl_type_elem(tl_vtype(g->ir, v)) == to && tl_vtype(g->ir, v)->kind != TL_TY_INDEX))
        return v;
    return gr_ew(g, sp, TL_OP_cast, to, &v, 1);
}

TlOpcode
gr_combiner(const char *kind)
{
    return strcmp(kind, "prod") == 0  ? TL_OP_mul
           : strcmp(kind, "max") == 0 ? TL_OP_max
           : strcmp(kind, "min") == 0 ? TL_OP_min
                                      : TL_OP_add;
}

TlVal
gr_identity(Gr *g, TlElem e, const char *kind)
{
    TlType t = tl_type_scalar(g->ir, e);
    TlOpcode c = gr_combiner(kind);
    if (tl_elem_is_float(e)) /* -0.0: x + -0.0 is x for every x */
        return tl_const_float(&g->b, t,
                              c == TL_OP_add   ? -0.0
                              : c == TL_OP_mul ? 1.0
                              : c == TL_OP_max ? -INFINITY
                                               : INFINITY);
    uint32_t bits = tl_elem_bits(e);
    bool u = tl_elem_kind(e) == TL_KIND_UINT;
    uint64_t all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    int64_t hi = (int64_t)(u ? all : all >> 1), lo = u ? 0 : -hi - 1;
    return tl_const_int(&g->b, t, c == TL_OP_add ? 0 : c == TL_OP_mul ? 1 : c == TL_OP_max ? lo : hi);
}

TlVal
gr_fill(Gr *g, TlVal v, TlVal with)
{
    if (!v || !with || !is_tile(g, v))
        return v && with ? v : 0;
    return tl_build1t(&g->b, TL_OP_fill, tl_valn(g->ir, v)->type, 2, v, with);
}

/* ---- placing a tile in the space ---- */

/* v has dims dim[0..n) of the space (any order): turned, with size-1 dims put in, stretched to the whole
 * space. */
TlVal
gr_place(Gr *g, const GrSpace *sp, TlVal v, const uint32_t *dim, uint32_t n)
{
    TlElem e = tl_vtype(g->ir, v)->elem;
    int64_t perm[GR_MAX_TILE], shape[GR_MAX_TILE];
    bool turned = false, missing = false;
    uint32_t k = 0;
    for (uint32_t d = 0; d < sp->n; d++)
        for (uint32_t i = 0; i < n; i++)
            if (dim[i] == d) {
                turned = turned || i != k;
                shape[k] = sp->cap[d];
                perm[k++] = i;
            }
    if (turned) {
        v = tl_build1t(&g->b, TL_OP_trans, tl_type_tile(g->ir, e, n, shape), 1, v);
        if (!v || !tl_attr_set_ints(g->ir, tl_valn(g->ir, v)->def, "perm", perm, n))
            return 0;
    }
    for (uint32_t d = 0; v && d < sp->n; d++) {
        bool has = false;
        for (uint32_t i = 0; i < n; i++)
            has = has || dim[i] == d;
        if (has)
            continue;
        memmove(shape + d + 1, shape + d, (k - d) * sizeof *shape);
        shape[d] = 1;
        v = tl_build1t(&g->b, TL_OP_expand_dims, tl_type_tile(g->ir, e, ++k, shape), 1, v);
        if (!v || !tl_attr_set_int(g->ir, tl_valn(g->ir, v)->def, "axis", d))
            return 0;
        missing = missing || sp->cap[d] > 1;
    }
    return missing ? tl_build1t(&g->b, TL_OP_broadcast, tile_type(g, sp, e), 1, v) : v;
}

uint32_t
gr_dim_of(const GrSpace *sp, uint32_t axis)
{
    uint32_t d = 0;
    while (d < sp->n && sp->axis[d] != axis)
        d++;
    return d;
}

/* ---- loads ---- */

/* The tile dim that an index moves along, or sp->n. */
static uint32_t
moving_dim(const GrSpace *sp, const GrAff *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (gr_dim_of(sp, a->axis[i]) < sp->n)
            return gr_dim_of(sp, a->axis[i]);
    return sp->n;
}

static TlVal
inside(Gr *g, const GrAccess *a, uint32_t d, TlVal index, TlVal before)
{
    TlType i1 = tl_type_scalar(g->ir, TL_ELEM_I1);
    TlVal size = tl_build1t(&g->b, TL_OP_dim, tl_type_index(g->ir), 1, a->buf);
    if (!size || !tl_attr_set_int(g->ir, tl_valn(g->ir, size)->def, "axis", d))
        return 0;
    TlVal lo = tl_build1t(&g->b, TL_OP_ge, i1, 2, index, gr_ix(g, 0));
    TlVal hi = tl_build1t(&g->b, TL_OP_lt, i1, 2, index, size);
    TlVal both = tl_build1t(&g->b, TL_OP_and, i1, 2, lo, hi);
    return before && both ? tl_build1t(&g->b, TL_OP_and, i1, 2, before, both) : both;
}

/* First index behind the axis of tile dim t, in terms of the index expression; 0: no end is needed. */
static TlVal
axis_end(Gr *g, const GrSpace *sp, const GrAccess *a, uint32_t d, uint32_t t)
{
    int64_t e;
    TlVal extent = g->axis[sp->axis[t]].extent;
    if (gr_covers(g, sp->axis[t], &a->idx[d], a->buf, d) || (gr_const(g, extent, &e) && e % sp->cap[t] == 0))
        return 0;
    GrSpace at = *sp;
    at.sub[sp->axis[t]] = extent;
    return gr_index(g, &at, tl_opn(g->ir, a->op)->in[a->first + d]);
}

typedef struct Slice {
    char dims[TL_MAX_RANK + 1];
    TlVal start[TL_MAX_RANK], end[TL_MAX_RANK];
    uint32_t n, dim[GR_MAX_TILE]; /* tile dims in the buffer's order */
} Slice;

static TlOp
build_access(Gr *g, TlOpcode code, TlVal buf, TlVal value, const Slice *s, TlType type)
{
    TlVal in[2 + 2 * TL_MAX_RANK];
    uint32_t n = 0;
    if (!value && !type)
        return 0; /* no memory for the type */
    in[n++] = buf;
    if (value)
        in[n++] = value;
    for (uint32_t d = 0; s->dims[d]; d++) {
        in[n++] = s->start[d];
        if (s->dims[d] == 'e')
            in[n++] = s->end[d];
    }
    TlOp o = tl_build(&g->b, code, in, n, &type, type ? 1 : 0);
    return o && tl_attr_set_str(g->ir, o, "dims", s->dims) ? o : 0;
}

TlVal
gr_load(Gr *g, GrSpace *sp, const GrAccess *a)
{
    Slice s = {0};
    TlVal cond = 0;
    int64_t shape[GR_MAX_TILE];
    int hang = -1, last = -1;
    bool tile = false;
    for (uint32_t d = 0; d < a->rank; d++) {
        uint32_t t = moving_dim(sp, &a->idx[d]);
        s.start[d] = gr_index(g, sp, tl_opn(g->ir, a->op)->in[a->first + d]);
        if (!s.start[d])
            return 0;
        if (t == sp->n) {
            s.dims[d] = 'i';
            if (sp->n && !gr_in_range(g, &a->idx[d], a->buf, d)) {
                last = (int)d;
                if (!(cond = inside(g, a, d, s.start[d], cond)))
                    return 0;
            }
            continue;
        }
        s.dims[d] = 's';
        if (sp->bounded[t] && (s.end[d] = axis_end(g, sp, a, d, t)))
            s.dims[d] = 'e';
        shape[s.n] = sp->cap[t];
        s.dim[s.n++] = t;
        tile = true;
        hang = (int)d;
    }
    if (cond) { /* an index may lie outside: then nothing is valid */
        if (hang < 0)
            hang = last;
        TlVal end = s.end[hang];
        if (!end)
            end = gr_ix_bin(g, TL_OP_add, s.start[hang], gr_ix(g, tile ? shape[s.n - 1] : 1));
        s.dims[hang] = 'e';
        s.end[hang] = tl_build1t(&g->b, TL_OP_select, tl_type_index(g->ir), 3, cond, end, s.start[hang]);
        if (!tile)
            shape[0] = 1;
    }
    TlElem e = tl_vtype(g->ir, a->buf)->elem;
    TlType ty = tile   ? tl_type_tile(g->ir, e, s.n, shape)
                : cond ? tl_type_tile(g->ir, e, 1, shape)
                       : tl_type_scalar(g->ir, e);
    TlVal v = tl_result(g->ir, build_access(g, TL_OP_load, a->buf, 0, &s, ty), 0);
    if (!v || (!tile && !cond))
        return v;
    if (tile)
        return gr_place(g, sp, v, s.dim, s.n);
    /* one element as a tile: stands for all */
    for (uint32_t d = 1; v && d < sp->n; d++) {
        int64_t ones[GR_MAX_TILE] = {1, 1, 1, 1};
        v = tl_build1t(&g->b, TL_OP_expand_dims, tl_type_tile(g->ir, e, d + 1, ones), 1, v);
        if (!v || !tl_attr_set_int(g->ir, tl_valn(g->ir, v)->def, "axis", 0))
            return 0;
    }
    return v ? tl_build1t(&g->b, TL_OP_broadcast, tile_type(g, sp, e), 1, v) : 0;
}

/* ---- what was written before ---- */

static GrForward *
forward_of(Gr *g, const GrSpace *sp, const GrAccess *a)
{
    GrStmt *t = &g->stmts.data[sp->stmt];
    for (uint32_t i = g->fwd.len; i-- > 0;) {
        GrForward *f = &g->fwd.data[i];
        if (f->buf != a->buf || !f->tile)
            continue;
        GrStmt *s = &g->stmts.data[f->stmt];
        bool ok = f->full;
        for (uint32_t d = 0; ok && d < a->rank; d++)
            ok = gr_aff_equal(&s->w.idx[d], s, &a->idx[d], t, g->ngroup);
        for (uint32_t x = 0; ok && x < g->ngroup; x++)
            ok = !g->group[x].tile || gr_dim_of(sp, t->map[x]) < sp->n;
        return ok ? f : NULL;
    }
    return NULL;
}

static TlVal
element(Gr *g, GrSpace *sp, const GrAccess *a)
{
    GrForward *f = forward_of(g, sp, a);
    uint32_t dim[GR_MAX_TILE], n = 0;
    if (!f)
        return gr_load(g, sp, a);
    if (!is_tile(g, f->tile)) /* of a group without axes */
        return f->tile;
    for (uint32_t x = 0; x < g->ngroup; x++)
        if (g->group[x].tile)
            dim[n++] = gr_dim_of(sp, g->stmts.data[sp->stmt].map[x]);
    return gr_place(g, sp, f->tile, dim, n);
}

TlVal
gr_old(Gr *g, GrSpace *sp)
{
    GrAccess w = g->stmts.data[sp->stmt].w;
    return element(g, sp, &w);
}

/* ---- values ---- */

static TlVal
axis_tile(Gr *g, const GrSpace *sp, uint32_t axis)
{
    uint32_t d = gr_dim_of(sp, axis);
    if (d == sp->n)
        return sp->sub[axis];
    TlType one = tl_type_tile(g->ir, TL_ELEM_I64, 1, &sp->cap[d]);
    TlVal r = tl_build1t(&g->b, TL_OP_arange, one, 0);
    if (!r || !tl_attr_set_int(g->ir, tl_valn(g->ir, r)->def, "start", 0))
        return 0;
    TlVal o = tl_build1t(&g->b, TL_OP_splat, one, 1, sp->sub[axis]);
    TlVal v = o ? tl_build1t(&g->b, TL_OP_add, one, 2, r, o) : 0;
    return v ? gr_place(g, sp, v, &d, 1) : 0;
}

static TlVal
value(Gr *g, GrSpace *sp, TlVal v)
{
    uint64_t axis;
    TlVal in[4];
    if (tl_map_get(&g->axis_of, v, &axis))
        return axis_tile(g, sp, (uint32_t)axis);
    if (gr_outside(g, v))
        return v;
    TlOp o = tl_valn(g->ir, v)->def;
    const TlOpNode n = *tl_opn(g->ir, o);
    g->b.loc = n.loc;
    if (n.code == TL_OP_element) {
        GrAccess *a = gr_read_of(g, &g->stmts.data[sp->stmt], o);
        return a ? element(g, sp, a) : 0;
    }
    if (n.code == TL_OP_for)
        return gr_local(g, sp, v);
    if (n.code == TL_OP_if) {
        in[0] = gr_value(g, sp, n.in[0]);
        in[1] = gr_value(g, sp, gr_branch_value(g, v, 0));
        in[2] = gr_value(g, sp, gr_branch_value(g, v, 1));
        if (!in[0] || !in[1] || !in[2])
            return 0;
        if (!is_tile(g, in[0]) && !is_tile(g, in[1]) && !is_tile(g, in[2]))
            return tl_build1t(&g->b, TL_OP_select, tl_valn(g->ir, v)->type, 3, in[0], in[1], in[2]);
        return gr_ew(g, sp, TL_OP_select, tl_type_elem(tl_vtype(g->ir, v)), in, 3);
    }
    bool tiles = false;
    for (uint32_t i = 0; i < n.nin && i < TL_COUNT(in); i++) {
        if (!(in[i] = tl_vtype(g->ir, n.in[i])->kind == TL_TY_BUF ? n.in[i] : gr_value(g, sp, n.in[i])))
            return 0;
        tiles = tiles || is_tile(g, in[i]);
    }
    g->b.loc = n.loc;
    if (!tiles)
        return clone1(g, o, in);
    return gr_ew(g, sp, n.code, tl_type_elem(tl_vtype(g->ir, v)), in, n.nin);
}

TlVal
gr_value(Gr *g, GrSpace *sp, TlVal v)
{
    uint64_t have;
    if (tl_map_get(&sp->memo, v, &have))
        return (TlVal)have;
    TlVal r = value(g, sp, v);
    return r && tl_map_put(&sp->memo, v, r) ? r : 0;
}

/* v where the branches around the statement are taken, else `other`. */
TlVal
gr_guarded(Gr *g, GrSpace *sp, TlVal v, TlVal other)
{
    const GrStmt s = g->stmts.data[sp->stmt];
    for (uint32_t i = s.nguard; v && i-- > 0;) {
        TlVal c = gr_value(g, sp, s.guard[i]);
        if (c && s.negated[i])
            c = gr_ew(g, sp, TL_OP_not, TL_ELEM_I1, &c, 1);
        v = gr_ew(g, sp, TL_OP_select, tl_type_elem(tl_vtype(g->ir, v)), (TlVal[]){c, v, other}, 3);
    }
    return v;
}

/* ---- stores ---- */

bool
gr_store(Gr *g, const GrSpace *sp, const GrAccess *w, TlVal v, TlLoc loc)
{
    Slice s = {0};
    int64_t perm[GR_MAX_TILE], shape[GR_MAX_TILE];
    bool turned = false;
    TlElem e = tl_vtype(g->ir, w->buf)->elem;
    g->b.loc = loc;
    if (sp->n)
        v = gr_as_tile(g, sp, v);
    for (uint32_t d = 0; d < w->rank; d++) {
        uint32_t t = moving_dim(sp, &w->idx[d]);
        s.start[d] = gr_index(g, sp, tl_opn(g->ir, w->op)->in[w->first + d]);
        s.dims[d] = t == sp->n ? 'i' : 's';
        if (!s.start[d])
            return false;
        if (t == sp->n)
            continue;
        if ((s.end[d] = axis_end(g, sp, w, d, t)))
            s.dims[d] = 'e';
        turned = turned || t != s.n;
        shape[s.n] = sp->cap[t];
        perm[s.n] = t;
        s.dim[s.n++] = t;
    }
    if (turned && v) {
        v = tl_build1t(&g->b, TL_OP_trans, tl_type_tile(g->ir, e, s.n, shape), 1, v);
        if (!v || !tl_attr_set_ints(g->ir, tl_valn(g->ir, v)->def, "perm", perm, s.n))
            return false;
    }
    return v && build_access(g, TL_OP_store, w->buf, v, &s, 0);
}

/* ---- loops ---- */

bool
gr_for_begin(Gr *g, TlVal lb, TlVal ub, TlVal step, TlVal *carried, uint32_t n, GrFor *f)
{
    TlVal in[3 + GR_MAX_GROUP] = {lb, ub, step};
    TlType ty[GR_MAX_GROUP];
    *f = (GrFor){.outer = g->b};
    for (uint32_t i = 0; i < n; i++) {
        if (!carried[i])
            return false;
        in[3 + i] = carried[i];
        ty[i] = tl_valn(g->ir, carried[i])->type;
    }
    f->op = tl_build(&g->b, TL_OP_for, in, 3 + n, ty, n);
    TlBlock body = f->op ? tl_block_new(g->ir, g->k, f->op) : 0;
    if (!body)
        return false;
    f->iv = tl_block_arg(g->ir, body, tl_type_index(g->ir), "");
    for (uint32_t i = 0; i < n; i++)
        carried[i] = tl_block_arg(g->ir, body, ty[i], "");
    g->b.block = body;
    g->b.before = 0;
    return f->iv != 0;
}

bool
gr_for_end(Gr *g, const GrFor *f, TlVal *carried, uint32_t n)
{
    TlOp y = tl_build(&g->b, TL_OP_yield, carried, n, NULL, 0);
    TlLoc loc = g->b.loc;
    g->b = f->outer;
    g->b.loc = loc;
    for (uint32_t i = 0; i < n; i++)
        carried[i] = tl_result(g->ir, f->op, i);
    return y != 0;
}

bool
gr_all_in_range(Gr *g, const GrStmt *s, uint32_t axes)
{
    for (uint32_t i = 0; i < s->reads.len; i++)
        for (uint32_t d = 0; d < s->reads.data[i].rank; d++) {
            const GrAff *a = &s->reads.data[i].idx[d];
            if ((!a->n || (gr_aff_axes(a) & axes)) && !gr_in_range(g, a, s->reads.data[i].buf, d))
                return false;
        }
    return true;
}
