/* lower_tile.c - tile operations that have no effects: emitted when their value is first needed, in the
 * layout that is asked for; and the extents of tile values.
 */
#include "pass/lower.h"

static bool
is_tile(const Lw *lw, TlVal v)
{
    return tl_vtype(lw->ir, v)->kind == TL_TY_TILE;
}

/* What was made inside a region is not there after it. */
static bool
is_here(const Lw *lw, const LwTile *t)
{
    TlBlock b = lw->b.block;
    while (t->block && b != t->block) {
        TlOp p = tl_blockn(lw->ir, b)->parent;
        b = p ? tl_opn(lw->ir, p)->block : 0;
        if (!b)
            return false;
    }
    return true;
}

static LwTile *
have_tile(Lw *lw, TlVal src, const TlLayout *l)
{
    LwVal *v = lw_val(lw, src);
    for (uint32_t i = 0; v && i < v->nlay; i++)
        if (v->tile[i] && tl_layout_equal(&v->lay[i], l) && is_here(lw, v->tile[i]))
            return v->tile[i];
    return NULL;
}

bool
lw_set_tile(Lw *lw, TlVal src, LwTile *t)
{
    LwVal *v = lw_val(lw, src);
    if (!v || !t)
        return false;
    t->block = lw->b.block;
    for (uint32_t i = 0; i < v->nlay; i++)
        if (tl_layout_equal(&v->lay[i], &t->lay)) {
            v->tile[i] = t;
            return true;
        }
    if (v->nlay == LW_MAX_LAYOUTS)
        return lw_fail(lw, tl_valn(lw->ir, src)->def, TL_E_INTERNAL, "too many layouts of one value");
    v->lay[v->nlay] = t->lay;
    v->tile[v->nlay++] = t;
    return true;
}

/* ---- extents ---- */

static bool
ext_through(Lw *lw, TlOp o, const LwExt *in, LwExt *out)
{
    const TlTypeInfo *dst = tl_vtype(lw->ir, tl_opn(lw->ir, o)->res[0]);
    uint32_t rank = tl_vtype(lw->ir, tl_opn(lw->ir, o)->in[0])->rank;
    int from[LW_MAX_RANK];
    *out = (LwExt){.when = in->when};
    if (!lw_dim_map(lw, o, from))
        return lw_fail(lw, o, TL_E_UNSUPPORTED, "this reshape is not lowered yet");
    for (uint32_t d = 0; d < rank; d++) {
        if (from[d] >= 0) {
            out->lo[from[d]] = in->lo[d];
            out->hi[from[d]] = in->hi[d];
        } else if ((in->hi[d] || in->lo[d]) && d < dst->rank && dst->shape[d] > 1) {
            /* the single position is valid, or nothing is */
            TlVal some = 0;
            if (in->hi[d])
                some = lw_bin(lw, TL_OP_gt, in->hi[d], lw_int(lw, TL_ELEM_I32, 0));
            if (in->lo[d]) {
                TlVal s = lw_bin(lw, TL_OP_le, in->lo[d], lw_int(lw, TL_ELEM_I32, 0));
                some = some ? lw_bin(lw, TL_OP_and, some, s) : s;
            }
            out->hi[d] = lw_sel(lw, some, lw_int(lw, TL_ELEM_I32, dst->shape[d]), lw_int(lw, TL_ELEM_I32, 0));
        }
    }
    return true;
}

void
lw_ext_meet(Lw *lw, LwExt *a, const LwExt *b)
{
    for (uint32_t d = 0; d < LW_MAX_RANK; d++) {
        a->lo[d] = !a->lo[d] ? b->lo[d] : !b->lo[d] ? a->lo[d] : lw_bin(lw, TL_OP_max, a->lo[d], b->lo[d]);
        a->hi[d] = !a->hi[d] ? b->hi[d] : !b->hi[d] ? a->hi[d] : lw_bin(lw, TL_OP_min, a->hi[d], b->hi[d]);
    }
    a->when = lw_both(lw, a->when, b->when);
}

void
lw_ext_join(Lw *lw, LwExt *a, const LwExt *b)
{
    for (uint32_t d = 0; d < LW_MAX_RANK; d++) {
        a->lo[d] = a->lo[d] && b->lo[d] ? lw_bin(lw, TL_OP_min, a->lo[d], b->lo[d]) : 0;
        a->hi[d] = a->hi[d] && b->hi[d] ? lw_bin(lw, TL_OP_max, a->hi[d], b->hi[d]) : 0;
    }
    a->when = a->when && b->when ? lw_bin(lw, TL_OP_or, a->when, b->when) : 0;
}

LwSum
lw_sum_of(Lw *lw, TlVal v, int depth)
{
    TlIr *ir = lw->ir;
    TlOp o = tl_valn(ir, v)->def, loop = o ? o : tl_blockn(ir, tl_valn(ir, v)->block)->parent;
    uint32_t i = tl_valn(ir, v)->index;
    if (!loop || depth > 20)
        return LW_SUM_OTHER;
    const TlOpNode n = *tl_opn(ir, loop);
    if (o && (n.code == TL_OP_const || n.code == TL_OP_splat))
        return LW_SUM_NONE;
    if (o && n.code == TL_OP_dot)
        return lw_sum_of(lw, n.in[2], depth + 1) == LW_SUM_OTHER ? LW_SUM_OTHER : LW_SUM_DOTS;
    if (o && n.code == TL_OP_if) {
        LwSum s = LW_SUM_NONE;
        for (uint32_t r = 0; r < 2; r++) {
            LwSum b = lw_sum_of(lw, tl_opn(ir, tl_blockn(ir, n.region[r])->last)->in[i], depth + 1);
            s = TL_MAX(s, b);
        }
        return s;
    }
    if (n.code != TL_OP_for && n.code != TL_OP_while)
        return LW_SUM_OTHER;
    /* as it starts, where the body only adds dots */
    if (n.code == TL_OP_for)
        i += o ? 3 : 2;
    LwSum start = lw_sum_of(lw, n.in[i], depth + 1);
    return o && start == LW_SUM_NONE ? LW_SUM_DOTS : start;
}

static bool
operand_ext(Lw *lw, TlVal v, LwExt *out)
{
    if (tl_vtype(lw->ir, v)->kind == TL_TY_SHARED) {
        LwShared *s = lw_shared(lw, v);
        if (s)
            *out = s->ext;
        return s != NULL;
    }
    return lw_ext(lw, v, out);
}

static bool
ext_of(Lw *lw, TlVal src, TlOp o, LwExt *out)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    LwExt e;
    *out = (LwExt){0};
    if (n.code == TL_OP_const || n.code == TL_OP_splat || n.code == TL_OP_arange || n.code == TL_OP_fill ||
        n.code == TL_OP_valid)
        return true;
    if (n.code == TL_OP_load) {
        if (tl_vtype(lw->ir, n.in[0])->kind == TL_TY_BUF)
            return lw_access_ext(lw, o, 0, out);
        return operand_ext(lw, n.in[0], out);
    }
    if (n.code == TL_OP_dot) {
        LwExt a, b;
        if (!operand_ext(lw, n.in[0], &a) || !operand_ext(lw, n.in[1], &b))
            return false;
        /* an operand with nothing in it adds nothing: that leaves the accumulator's extent alone */
        out->lo[0] = a.lo[0], out->hi[0] = a.hi[0];
        out->lo[1] = b.lo[1], out->hi[1] = b.hi[1];
        LwSum sum = lw_sum_of(lw, n.in[2], 0);
        if (!lw_ext(lw, n.in[2], &e))
            return false;
        if (sum == LW_SUM_DOTS)
            lw_ext_join(lw, out, &e);
        else
            lw_ext_meet(lw, out, &e);
        return true;
    }
    if (tl_op_row(n.code)->traits & TL_T_ELEMENTWISE) {
        for (uint32_t i = 0; i < n.nin; i++)
            if (is_tile(lw, n.in[i])) {
                if (!lw_ext(lw, n.in[i], &e))
                    return false;
                lw_ext_meet(lw, out, &e);
            }
        return true;
    }
    if (n.code == TL_OP_for || n.code == TL_OP_if || n.code == TL_OP_while) /* set when they were emitted */
        return lw_fail(lw, o, TL_E_INTERNAL, "extent of a loop result asked for too early");
    (void)src;
    return lw_ext(lw, n.in[0], &e) && ext_through(lw, o, &e, out);
}

bool
lw_ext(Lw *lw, TlVal src, LwExt *out)
{
    LwVal *v = lw_val(lw, src);
    if (!v)
        return false;
    if (!v->ext_known) {
        TlOp o = tl_valn(lw->ir, src)->def;
        LwExt e = {0};
        if (o && !ext_of(lw, src, o, &e))
            return false;
        v = lw_val(lw, src);
        v->ext = e;
        v->ext_known = true;
    }
    *out = v->ext;
    return true;
}

TlVal
lw_inside(Lw *lw, const TlLayout *l, uint32_t reg, const LwExt *e)
{
    TlVal c = e->when;
    for (uint32_t d = 0; d < LW_MAX_RANK && tl_layout_has_out(l, (TlDim)(TL_DIM_0 + d)); d++) {
        if (!e->lo[d] && !e->hi[d])
            continue;
        TlVal pos = lw_bin(lw, TL_OP_add, lw_lane_coord(lw, l, (TlDim)(TL_DIM_0 + d)),
                           lw_int(lw, TL_ELEM_I32, tl_layout_at(l, reg, 0, 0, (TlDim)(TL_DIM_0 + d))));
        if (e->hi[d]) {
            TlVal x = lw_bin(lw, TL_OP_lt, pos, e->hi[d]);
            c = c ? lw_bin(lw, TL_OP_and, c, x) : x;
        }
        if (e->lo[d]) {
            TlVal x = lw_bin(lw, TL_OP_ge, pos, e->lo[d]);
            c = c ? lw_bin(lw, TL_OP_and, c, x) : x;
        }
    }
    return c;
}

/* One condition, or a vec of them, that tells which elements of chunk i are inside e. 0: all are. */
static TlVal
chunk_mask(Lw *lw, const LwTile *t, uint32_t i, const LwExt *e)
{
    TlVal *c = TL_NEW_N(lw->arena, TlVal, t->chunk);
    bool same = true;
    for (uint32_t j = 0; c && j < t->chunk; j++) {
        c[j] = lw_inside(lw, &t->lay, i * t->chunk + j, e);
        same = same && c[j] == c[0];
    }
    if (!c || !c[0])
        return 0;
    return same ? c[0] : lw_concat(lw, TL_ELEM_I1, c, t->chunk, t->chunk);
}

static TlVal
zero_vec(Lw *lw, TlElem e, uint32_t n, double f)
{
    TlBuilder b = {lw->ir, lw->entry, tl_blockn(lw->ir, lw->entry)->first, {0}};
    TlType t = tl_type_vec(lw->ir, e, n);
    return tl_elem_is_float(e) ? tl_const_float(&b, t, f) : tl_const_int(&b, t, (int64_t)f);
}

LwTile *
lw_masked_zero(Lw *lw, LwTile *t, const LwExt *e)
{
    LwTile *r = lw_tile_new(lw, &t->lay, t->elem, t->chunk);
    bool any = e->when;
    for (uint32_t d = 0; d < LW_MAX_RANK; d++)
        any = any || e->lo[d] || e->hi[d];
    if (!any)
        return t;
    TlVal z = zero_vec(lw, t->elem, t->chunk, 0.0);
    for (uint32_t i = 0; r && i < t->nchunk; i++) {
        TlVal m = chunk_mask(lw, t, i, e);
        r->v[i] =
            m ? lw_pure(lw, TL_OP_select, tl_valn(lw->ir, z)->type, (TlVal[]){m, t->v[i], z}, 3, NULL, 0)
              : t->v[i];
        if (!r->v[i])
            return NULL;
    }
    return r;
}

/* ---- values ---- */

static LwTile *
splat_tile(Lw *lw, TlOp o, const TlLayout *l, uint32_t chunk)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    const TlTypeInfo ti = *tl_vtype(lw->ir, n.res[0]);
    LwTile *t = lw_tile_new(lw, l, ti.elem, chunk);
    TlVal v;
    if (!t)
        return NULL;
    TlType vt = tl_type_vec(lw->ir, ti.elem, chunk);
    if (n.code == TL_OP_const) {
        TlBuilder b = {lw->ir, lw->entry, tl_blockn(lw->ir, lw->entry)->first, lw_loc(lw, o)};
        const TlAttr *f = tl_attr(lw->ir, o, "fvalue");
        v = f ? tl_const_float(&b, vt, f->u.f) : tl_const_int(&b, vt, tl_attr_int(lw->ir, o, "value", 0));
    } else {
        TlVal s = lw_scalar(lw, n.in[0]);
        v = s ? lw_pure(lw, TL_OP_splat, vt, &s, 1, NULL, 0) : 0;
    }
    for (uint32_t i = 0; i < t->nchunk; i++)
        t->v[i] = v;
    return v ? t : NULL;
}

static LwTile *
arange_tile(Lw *lw, TlOp o, const TlLayout *l)
{
    const TlTypeInfo ti = *tl_vtype(lw->ir, tl_opn(lw->ir, o)->res[0]);
    LwTile *t = lw_tile_new(lw, l, ti.elem, 1);
    int64_t start = tl_attr_int(lw->ir, o, "start", 0);
    for (uint32_t i = 0; t && i < t->nchunk; i++) {
        uint32_t rc = tl_layout_at(l, i, 0, 0, TL_DIM_0);
        TlVal p = lw_cast(lw, lw_lane_coord(lw, l, TL_DIM_0), ti.elem);
        p = lw_bin(lw, TL_OP_add, p, lw_int(lw, ti.elem, start + rc));
        t->v[i] = lw_concat(lw, ti.elem, &p, 1, 1);
        if (!t->v[i])
            return NULL;
    }
    return t;
}

static bool
is_splat(Lw *lw, TlVal v)
{
    TlOp o = tl_valn(lw->ir, v)->def;
    return o && (tl_opn(lw->ir, o)->code == TL_OP_const || tl_opn(lw->ir, o)->code == TL_OP_splat);
}

LwTile *
lw_tile_chunked(Lw *lw, TlVal src, const TlLayout *l, uint32_t chunk)
{
    if (is_splat(lw, src))
        return splat_tile(lw, tl_valn(lw->ir, src)->def, l, chunk);
    LwTile *t = lw_tile(lw, src, l);
    return t ? lw_tile_rechunk(lw, t, chunk) : NULL;
}

static LwTile *
elementwise(Lw *lw, TlOp o, const TlLayout *l)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    const TlTypeInfo ti = *tl_vtype(lw->ir, n.res[0]);
    LwTile *in[4] = {0};
    uint32_t chunk = 0;
    for (uint32_t i = 0; i < n.nin; i++)
        if (is_tile(lw, n.in[i]) && !is_splat(lw, n.in[i])) {
            if (!(in[i] = lw_tile(lw, n.in[i], l)))
                return NULL;
            chunk = TL_MAX(chunk, in[i]->chunk);
        }
    if (!chunk)
        chunk = TL_MIN(1u << tl_layout_in_bits(l, TL_DIM_REG), 4u);
    LwTile *t = lw_tile_new(lw, l, ti.elem, chunk);
    if (!t)
        return NULL;
    for (uint32_t i = 0; i < n.nin; i++)
        if (is_tile(lw, n.in[i]) && !(in[i] = lw_tile_chunked(lw, n.in[i], l, chunk)))
            return NULL;
    lw->b.loc = lw_loc(lw, o);
    for (uint32_t c = 0; c < t->nchunk; c++) {
        TlVal v[4];
        for (uint32_t i = 0; i < n.nin; i++)
            v[i] = in[i] ? in[i]->v[c] : lw_scalar(lw, n.in[i]); /* a scalar condition of select */
        t->v[c] = lw_pure(lw, n.code, tl_type_vec(lw->ir, ti.elem, chunk), v, n.nin, NULL, 0);
        if (!t->v[c])
            return NULL;
    }
    return t;
}

static LwTile *
renamed(Lw *lw, TlOp o, const TlLayout *l)
{
    TlLayout in;
    if (!lw_layout_through(lw, o, l, &in)) {
        lw_fail(lw, o, TL_E_UNSUPPORTED, "this reshape is not lowered yet");
        return NULL;
    }
    LwTile *s = lw_tile(lw, tl_opn(lw->ir, o)->in[0], &in);
    LwTile *t = s ? lw_tile_new(lw, l, s->elem, s->chunk) : NULL;
    if (t)
        memcpy(t->v, s->v, t->nchunk * sizeof *t->v);
    return t;
}

static LwTile *
filled(Lw *lw, TlOp o, const TlLayout *l)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    LwExt e;
    LwTile *s = lw_tile(lw, n.in[0], l);
    TlVal f = lw_scalar(lw, n.in[1]);
    LwTile *t = s ? lw_tile_new(lw, l, s->elem, s->chunk) : NULL;
    if (!t || !f || !lw_ext(lw, n.in[0], &e))
        return NULL;
    TlType vt = tl_type_vec(lw->ir, s->elem, s->chunk);
    TlVal fv = lw_pure(lw, TL_OP_splat, vt, &f, 1, NULL, 0);
    for (uint32_t i = 0; i < t->nchunk; i++) {
        TlVal m = chunk_mask(lw, s, i, &e);
        t->v[i] = m ? lw_pure(lw, TL_OP_select, vt, (TlVal[]){m, s->v[i], fv}, 3, NULL, 0) : s->v[i];
    }
    return t;
}

static LwTile *
valid_tile(Lw *lw, TlOp o, const TlLayout *l)
{
    LwExt e;
    uint32_t chunk = TL_MIN(1u << tl_layout_in_bits(l, TL_DIM_REG), 4u);
    LwTile *t = lw_tile_new(lw, l, TL_ELEM_I1, chunk);
    if (!t || !lw_ext(lw, tl_opn(lw->ir, o)->in[0], &e))
        return NULL;
    for (uint32_t i = 0; i < t->nchunk; i++) {
        TlVal m = chunk_mask(lw, t, i, &e);
        if (!m)
            m = zero_vec(lw, TL_ELEM_I1, chunk, 1.0);
        t->v[i] = lw_vec_len(lw, m)
                      ? m
                      : lw_pure(lw, TL_OP_splat, tl_type_vec(lw->ir, TL_ELEM_I1, chunk), &m, 1, NULL, 0);
    }
    return t;
}

LwTile *
lw_tile(Lw *lw, TlVal src, const TlLayout *l)
{
    LwTile *t = have_tile(lw, src, l);
    TlOp o = tl_valn(lw->ir, src)->def;
    if (t)
        return t;
    TlOpcode c = o ? tl_opn(lw->ir, o)->code : TL_OP_NONE;
    if (c == TL_OP_NONE || c == TL_OP_for || c == TL_OP_if || c == TL_OP_while || c == TL_OP_dot ||
        c == TL_OP_reduce) {
        /* made in one layout: convert */
        LwVal *v = lw_val(lw, src);
        for (uint32_t i = 0; v && i < v->nlay && !t; i++)
            if (v->tile[i] && is_here(lw, v->tile[i]))
                t = lw_convert(lw, v->tile[i], l, o);
        return t && lw_set_tile(lw, src, t) ? t : NULL;
    }
    if (c == TL_OP_const || c == TL_OP_splat)
        return splat_tile(lw, o, l, TL_MIN(1u << tl_layout_in_bits(l, TL_DIM_REG), 4u));
    if (c == TL_OP_arange)
        t = arange_tile(lw, o, l);
    else if (c == TL_OP_fill)
        t = filled(lw, o, l);
    else if (c == TL_OP_valid)
        t = valid_tile(lw, o, l);
    else if (tl_op_row(c)->traits & TL_T_ELEMENTWISE)
        t = elementwise(lw, o, l);
    else if (c == TL_OP_broadcast || c == TL_OP_expand_dims || c == TL_OP_trans || c == TL_OP_reshape)
        t = renamed(lw, o, l);
    else
        lw_fail(lw, o, TL_E_INTERNAL, "value of '%s' is asked for in a layout it was not made in",
                tl_op_row(c)->name);
    return t && lw_set_tile(lw, src, t) ? t : NULL;
}

/* A load from global memory in layout l: registers along memory first, so that vectors are wide, then back.
 */
static LwTile *
global_load(Lw *lw, TlOp o, const TlLayout *l)
{
    uint8_t perm[TL_LAYOUT_MAX_BITS], inv[TL_LAYOUT_MAX_BITS];
    TlLayout pl;
    LwMemOpts opt = {0};
    LwGlobal g;
    uint32_t nb = tl_layout_in_bits(l, TL_DIM_REG);
    tl_layout_regs_along(l, (TlDim)(TL_DIM_0 + lw_mem_minor(lw, o)), perm);
    if (!tl_layout_permute_regs(&pl, l, perm) || !lw_global(lw, o, &pl, &opt, &g))
        return NULL;
    LwTile *t = lw_global_load(lw, &g, 0, o);
    bool id = true;
    for (uint32_t i = 0; i < nb; i++) {
        inv[perm[i]] = (uint8_t)i;
        id = id && perm[i] == i;
    }
    if (!t || id)
        return t;
    return lw_tile_permute(lw, t, inv, TL_MIN(1u << nb, 4u));
}

bool
lw_emit_loads(Lw *lw, TlOp o)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    LwVal *v = lw_val(lw, n.res[0]);
    LwExt e;
    if (!v)
        return false;
    if (tl_vtype(lw->ir, n.in[0])->kind == TL_TY_SHARED && tl_attr_str(lw->ir, o, "dims", "")[0])
        return lw_fail(lw, o, TL_E_UNSUPPORTED, "a part of a shared tile as a value is not lowered yet");
    if (tl_vtype(lw->ir, n.in[0])->kind == TL_TY_BUF && v->nlay && !lw_order_memory(lw, o))
        return false;
    for (uint32_t i = 0; i < v->nlay; i++) {
        TlLayout l = v->lay[i];
        LwTile *t;
        if (tl_vtype(lw->ir, n.in[0])->kind == TL_TY_BUF) {
            t = global_load(lw, o, &l);
        } else {
            LwShared *s = lw_shared(lw, n.in[0]);
            LwLdsAcc *a = s ? lw_lds_acc(lw, s, o, i) : NULL;
            t = a && lw_lds_solve(lw, s) ? lw_lds_read(lw, s, a) : NULL;
            t = lw_tile_cast(lw, t, tl_vtype(lw->ir, n.res[0])->elem);
        }
        if (!t || !lw_set_tile(lw, n.res[0], t))
            return false;
        v = lw_val(lw, n.res[0]);
    }
    return lw_ext(lw, n.res[0], &e);
}
