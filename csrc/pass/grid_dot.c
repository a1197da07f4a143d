/* grid_dot.c - contractions: a sum over k of products whose factors divide into side A (with m, without n)
 * and side B (with n, without m). They become the tile program of a matrix product: a loop over k that
 * carries the accumulator and feeds `dot` with tiles of the two sides.
 *
 * An operand that is an element as it stands keeps its dtype (its products are exact in the accumulator);
 * anything computed before the product is computed and multiplied in f32, as the statement says. Factors
 * without m and n go to side A. Axes reduced beyond k become loops of single indices around.
 */
#include "pass/grid.h"

static TlVal
strip_casts(const Gr *g, TlVal v)
{
    for (;;) {
        TlOp o = tl_valn(g->ir, v)->def;
        if (!o || tl_opn(g->ir, o)->code != TL_OP_cast)
            return v;
        v = tl_opn(g->ir, o)->in[0];
    }
}

static bool
factors(Gr *g, TlVal v, TlVal *out, uint32_t *n, bool *negate)
{
    TlOp o = tl_valn(g->ir, v)->def;
    const TlTypeInfo *t = tl_vtype(g->ir, v);
    if (t->kind != TL_TY_SCALAR || t->elem != TL_ELEM_F32)
        return false;
    if (o && !gr_outside(g, v) && tl_opn(g->ir, o)->code == TL_OP_mul)
        return factors(g, tl_opn(g->ir, o)->in[0], out, n, negate) &&
               factors(g, tl_opn(g->ir, o)->in[1], out, n, negate);
    if (o && !gr_outside(g, v) && tl_opn(g->ir, o)->code == TL_OP_neg) {
        *negate = !*negate;
        return factors(g, tl_opn(g->ir, o)->in[0], out, n, negate);
    }
    if (*n == GR_MAX_FACTORS)
        return false;
    out[(*n)++] = v;
    return true;
}

/* Each dim of the reads of v is indexed by one of the tile axes at most, plainly. */
static bool
tiles_well(Gr *g, GrStmt *s, TlVal v, uint32_t tile_axes)
{
    TlOp o = tl_valn(g->ir, v)->def;
    if (!o || gr_outside(g, v))
        return true;
    const TlOpNode n = *tl_opn(g->ir, o);
    if (n.code != TL_OP_element) {
        for (uint32_t i = 0; i < n.nin; i++)
            if (!tiles_well(g, s, n.in[i], tile_axes))
                return false;
        return true;
    }
    const GrAccess *a = gr_read_of(g, s, o);
    uint32_t seen = 0;
    for (uint32_t d = 0; a && d < a->rank; d++) {
        uint32_t m = gr_aff_axes(&a->idx[d]) & tile_axes;
        if ((m & (m - 1)) || (m & seen) || (m && gr_aff_coef(&a->idx[d], (uint32_t)__builtin_ctz(m)) != 1))
            return false;
        seen |= m;
    }
    return a != NULL;
}

static TlElem
plain_elem(const Gr *g, TlVal v)
{
    TlVal e = strip_casts(g, v);
    TlOp o = tl_valn(g->ir, e)->def;
    const TlTypeInfo *t = tl_vtype(g->ir, e);
    if (!o || gr_outside(g, e) || tl_opn(g->ir, o)->code != TL_OP_element)
        return TL_ELEM_NONE;
    return t->elem == TL_ELEM_F16 || t->elem == TL_ELEM_BF16 || t->elem == TL_ELEM_F32 ? t->elem
                                                                                       : TL_ELEM_NONE;
}

static bool
pick_elem(Gr *g, GrDot *d)
{
    const TlTarget *t = tl_target_by_name(tl_kattr_str(g->ir, g->k, "target", "gfx942"));
    TlElem e[2];
    for (uint32_t f = 0; f < 2; f++)
        e[f] = d->nf[f] == 1 ? plain_elem(g, d->factor[f][0]) : TL_ELEM_NONE;
    d->elem = e[0] == e[1] && e[0] != TL_ELEM_NONE ? e[0] : TL_ELEM_F32;
    for (uint32_t f = 0; f < 2; f++)
        d->plain[f] = e[f] == d->elem;
    return t && tl_mma_next(t, d->elem, d->elem, TL_ELEM_F32, NULL);
}

static bool
match_k(Gr *g, GrStmt *s, uint32_t m, uint32_t n, uint32_t k, const TlVal *f, uint32_t nf, GrDot *d)
{
    uint32_t bit[2] = {1u << m, 1u << n}, with_k = 0;
    d->k = k;
    d->nf[0] = d->nf[1] = 0;
    for (uint32_t i = 0; i < nf; i++) {
        uint32_t mask = gr_mask(g, f[i]);
        if ((mask & bit[0]) && (mask & bit[1]))
            return false;
        uint32_t side = mask & bit[1] ? 1 : 0;
        with_k |= mask & (1u << k) ? 1u << side : 0;
        if (!tiles_well(g, s, f[i], bit[side] | 1u << k))
            return false;
        d->factor[side][d->nf[side]++] = f[i];
    }
    bool has_m = false;
    for (uint32_t i = 0; i < d->nf[0]; i++)
        has_m = has_m || (gr_mask(g, d->factor[0][i]) & bit[0]);
    return has_m && d->nf[1] && with_k == 3 && pick_elem(g, d);
}

/* m, n: this statement's axes. */
bool
gr_dot_match(Gr *g, GrStmt *s, uint32_t m, uint32_t n)
{
    TlVal f[GR_MAX_FACTORS];
    uint32_t nf = 0;
    GrDot d = {.found = true, .m = m, .n = n};
    if (!s->acc || s->nguard || strcmp(tl_attr_str(g->ir, s->op, "kind", ""), "sum") ||
        !factors(g, s->value, f, &nf, &d.negate))
        return false;
    for (uint32_t k = GR_MAX_AXES; k-- > 0;)
        if ((s->red >> k & 1) && match_k(g, s, m, n, k, f, nf, &d)) {
            s->dot = d;
            return true;
        }
    return false;
}

/* ---- emission ---- */

static bool
side_space(Gr *g, uint32_t stmt, uint32_t side, const GrSpace *at, TlVal k, GrSpace *sp)
{
    const GrStmt *s = &g->stmts.data[stmt];
    uint32_t kd = side ? 0 : 1;
    *sp = *at;
    tl_map_init(&sp->memo, g->arena);
    sp->n = 2;
    sp->axis[1 - kd] = side ? s->dot.n : s->dot.m;
    sp->cap[1 - kd] = s->dot.cap[side];
    sp->bounded[1 - kd] = false;
    sp->axis[kd] = s->dot.k;
    sp->cap[kd] = s->dot.kcap;
    sp->bounded[kd] = true;
    sp->sub[s->dot.k] = k;
    return true;
}

static TlVal
side_value(Gr *g, const GrDot *d, uint32_t side, GrSpace *sp)
{
    TlVal v = 0;
    if (d->plain[side])
        return gr_as_tile(g, sp, gr_value(g, sp, strip_casts(g, d->factor[side][0])));
    for (uint32_t i = 0; i < d->nf[side]; i++) {
        TlVal x = gr_value(g, sp, d->factor[side][i]);
        v = !v ? x : x ? gr_ew(g, sp, TL_OP_mul, TL_ELEM_F32, (TlVal[]){v, x}, 2) : 0;
        if (!v)
            return 0;
    }
    return gr_as_tile(g, sp, v);
}

/* Where the loop over k may end: behind it every product has an invalid factor. */
static TlVal
k_end(Gr *g, const GrStmt *s)
{
    TlVal ext = g->axis[s->dot.k].extent;
    int64_t e;
    if (!gr_const(g, ext, &e))
        return ext;
    for (uint32_t i = 0; i < s->reads.len; i++)
        for (uint32_t d = 0; d < s->reads.data[i].rank; d++) {
            const GrAff *a = &s->reads.data[i].idx[d];
            int64_t size = tl_vtype(g->ir, s->reads.data[i].buf)->shape[d];
            if (a->n == 1 && a->axis[0] == s->dot.k && a->coef[0] == 1 && !a->ninv && size != TL_DYN)
                e = TL_MIN(e, size - a->c);
        }
    return gr_ix(g, TL_MAX(e, 0));
}

static bool
turn(Gr *g, uint32_t stmt, const GrSpace *at, TlVal k, TlVal *acc)
{
    const GrDot d = g->stmts.data[stmt].dot;
    TlVal v[2];
    for (uint32_t side = 0; side < 2; side++) {
        GrSpace sp;
        if (!side_space(g, stmt, side, at, k, &sp))
            return false;
        v[side] = side_value(g, &d, side, &sp);
    }
    g->b.loc = tl_opn(g->ir, g->stmts.data[stmt].op)->loc;
    for (uint32_t side = 0; side < 2 && g->stmts.data[stmt].inner;
         side++) /* the accumulator keeps its extent: all of it */
        v[side] = gr_fill(g, v[side], tl_const_float(&g->b, tl_type_scalar(g->ir, d.elem), 0.0));
    if (!v[0] || !v[1])
        return false;
    *acc = tl_build1t(&g->b, TL_OP_dot, tl_valn(g->ir, *acc)->type, 3, v[0], v[1], *acc);
    return *acc != 0;
}

/* The loops over the reduced axes, k innermost. */
static bool
loops(Gr *g, uint32_t stmt, const GrSpace *at, uint32_t red, TlVal *acc)
{
    const GrStmt *s = &g->stmts.data[stmt];
    GrFor f;
    uint32_t outer = red & ~(1u << s->dot.k);
    uint32_t axis = outer ? (uint32_t)__builtin_ctz(outer) : s->dot.k;
    TlVal end = outer ? g->axis[axis].extent : k_end(g, s), zero = gr_ix(g, 0),
          step = gr_ix(g, outer ? 1 : s->dot.kcap);
    if (!end || !zero || !step || !gr_for_begin(g, zero, end, step, acc, 1, &f))
        return false;
    GrSpace sp = *at;
    sp.sub[axis] = f.iv;
    bool ok = outer ? loops(g, stmt, &sp, red & ~(1u << axis), acc) : turn(g, stmt, &sp, f.iv, acc);
    return ok && gr_for_end(g, &f, acc, 1);
}

/* The sum of the products alone, in f32 (a tile of the space, which is [M, N]). */
TlVal
gr_dot_emit(Gr *g, const GrSpace *at)
{
    const GrStmt s = g->stmts.data[at->stmt];
    TlVal acc = tl_const_float(&g->b, tl_type_tile(g->ir, TL_ELEM_F32, 2, at->cap), 0.0);
    if (!acc || !loops(g, at->stmt, at, s.red, &acc))
        return 0;
    return s.dot.negate ? gr_ew(g, at, TL_OP_neg, TL_ELEM_F32, &acc, 1) : acc;
}
