/* lower_plan_dot.c - which way memory runs behind a tile, and the plan of each dot: matrix instruction, wave
 * grid, pairing, fragments (step 1 of lower_plan.c). */
#include "pass/lower.h"

bool
lw_is_tile(const TlIr *ir, TlVal v)
{
    return tl_vtype(ir, v)->kind == TL_TY_TILE;
}

/* ---- memory order ---- */

uint32_t
lw_mem_minor(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    const TlOpNode *n = tl_opn(ir, op);
    const TlTypeInfo *bt = tl_vtype(ir, n->in[0]);
    const TlTypeInfo *tt = tl_vtype(ir, n->code == TL_OP_store ? n->in[1] : n->res[0]);
    if (bt->kind != TL_TY_BUF)
        return tt->rank - 1;
    for (uint32_t t = tt->rank; t-- > 0;) {
        uint32_t bd, at;
        char kind;
        if (lw_access_dim(ir, op, t, &bd, &at, &kind) && bt->strides[bd] == 1 && tt->shape[t] > 1)
            return t;
    }
    return tt->rank - 1;
}

static uint32_t
value_minor(Lw *lw, TlVal v, int depth)
{
    TlIr *ir = lw->ir;
    const TlTypeInfo *t = tl_vtype(ir, v);
    TlOp o = tl_valn(ir, v)->def;
    uint32_t last = t->rank ? t->rank - 1 : 0;
    uint64_t in;
    if (depth > 30)
        return last;
    if (t->kind == TL_TY_SHARED) /* as what is stored into it */
        return tl_map_get(&lw->stored, v, &in) ? value_minor(lw, (TlVal)in, depth + 1) : last;
    if (!o)
        return last;
    const TlOpNode *n = tl_opn(ir, o);
    if (n->code == TL_OP_load)
        return tl_vtype(ir, n->in[0])->kind == TL_TY_BUF ? lw_mem_minor(lw, o)
                                                         : value_minor(lw, n->in[0], depth + 1);
    if (n->code == TL_OP_trans) {
        uint32_t m = value_minor(lw, n->in[0], depth + 1);
        const TlAttr *p = tl_attr(ir, o, "perm");
        for (uint32_t d = 0; p && d < p->u.ints.n; d++)
            if (p->u.ints.v[d] == (int64_t)m)
                return d;
        return last;
    }
    if (tl_op_row(n->code)->traits & TL_T_ELEMENTWISE)
        for (uint32_t i = 0; i < n->nin; i++) {
            TlOp d = tl_valn(ir, n->in[i])->def;
            if (lw_is_tile(ir, n->in[i]) && d && tl_opn(ir, d)->code != TL_OP_const &&
                tl_opn(ir, d)->code != TL_OP_splat && tl_opn(ir, d)->code != TL_OP_broadcast)
                return value_minor(lw, n->in[i], depth + 1);
        }
    return last;
}

uint32_t
lw_value_minor(Lw *lw, TlVal v)
{
    return value_minor(lw, v, 0);
}

/* What each shared tile is given first. */
static bool
find_stored(Lw *lw)
{
    const TlIr *ir = lw->ir;
    for (TlOp s = 1; s < ir->ops.len; s++) {
        const TlOpNode *n = &ir->ops.data[s];
        uint64_t was;
        if (n->code == TL_OP_store && n->block && tl_vtype(ir, n->in[0])->kind == TL_TY_SHARED &&
            !tl_map_get(&lw->stored, n->in[0], &was) && !tl_map_put(&lw->stored, n->in[0], n->in[1]))
            return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    }
    return true;
}

/* ---- dots ---- */

static bool
wave_grid(TlDot *d, uint32_t waves, uint32_t mm, uint32_t mn)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t wm = 1; wm <= waves; wm *= 2) {
        uint32_t wn = waves / wm;
        if (d->m / wm < mm || d->n / wn < mn || d->m % wm || d->n % wn)
            continue;
        uint32_t cost = d->m / wm + d->n / wn;
        if (cost < best || (cost == best && wm <= wn)) {
            best = cost;
            d->wave_m = wm;
            d->wave_n = wn;
        }
    }
    return best != UINT32_MAX;
}

static bool
pick_mma(Lw *lw, TlOp op, TlDot *d, TlElem ea, TlElem ec)
{
    TlIr *ir = lw->ir;
    const TlAttr *mma = tl_attr(ir, op, "mma"), *wv = tl_attr(ir, op, "waves");
    static const uint8_t sizes[] = {32, 16, 4};
    for (uint32_t i = 0; i < TL_COUNT(sizes); i++) {
        for (const TlMma *m = NULL; (m = tl_mma_next(lw->tgt, ea, ea, ec, m));) {
            if (m->m != sizes[i] || m->n != sizes[i] || m->k > d->k)
                continue;
            if (mma && !(mma->u.ints.n == 3 && mma->u.ints.v[0] == m->m && mma->u.ints.v[1] == m->n &&
                         mma->u.ints.v[2] == m->k))
                continue;
            if (wv && wv->u.ints.n == 2) {
                d->wave_m = (uint32_t)wv->u.ints.v[0];
                d->wave_n = (uint32_t)wv->u.ints.v[1];
                if (d->wave_m * d->wave_n != lw->waves || d->m / d->wave_m < m->m || d->n / d->wave_n < m->n)
                    continue;
            } else if (!wave_grid(d, lw->waves, m->m, m->n)) {
                continue;
            }
            d->mma = m;
            return true;
        }
    }
    if (!tl_mma_next(lw->tgt, ea, ea, ec, NULL))
        return lw_fail(lw, op, TL_E_UNSUPPORTED,
                       "%s has no matrix instruction for %s operands with a %s accumulator", lw->tgt->name,
                       tl_elem_name(ea), tl_elem_name(ec));
    uint32_t least = UINT32_MAX;
    for (const TlMma *m = NULL; (m = tl_mma_next(lw->tgt, ea, ea, ec, m));)
        least = TL_MIN(least, (uint32_t)m->k);
    if (d->k < least)
        return lw_fail(
            lw, op, TL_E_UNSUPPORTED,
            "a dot tile with %u elements along k is below the %u of the smallest matrix instruction; "
            "use a larger tile (edges are handled by the compiler)",
            d->k, least);
    lw_fail(lw, op, TL_E_UNSUPPORTED, "a %ux%ux%u dot cannot be divided over %u waves%s", d->m, d->n, d->k,
            lw->waves, mma ? " with the given mma" : "");
    return tl_hint(lw->diag, "use another num_warps (or leave it out)");
}

static bool
plan_dot_shape(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, op);
    const TlTypeInfo a = *tl_vtype(ir, n.in[0]), b = *tl_vtype(ir, n.in[1]), c = *tl_vtype(ir, n.in[2]);
    LwDotPlan p = {.op = op};
    if (a.rank != 2 || b.rank != 2)
        return lw_fail(lw, op, TL_E_UNSUPPORTED, "a batched dot (rank %u) is not lowered yet", a.rank);
    if (a.elem != b.elem)
        return lw_fail(lw, op, TL_E_TYPE, "the operands of a dot have one dtype: got %s and %s",
                       tl_elem_name(a.elem), tl_elem_name(b.elem));
    p.d.m = 1u << lw_pow2_bits(a.shape[0]);
    p.d.k = 1u << lw_pow2_bits(a.shape[1]);
    p.d.n = 1u << lw_pow2_bits(b.shape[1]);
    p.d.swapped = true;
    if (p.d.m < 16 || p.d.n < 16)
        return lw_fail(lw, op, TL_E_UNSUPPORTED,
                       "a dot tile of %lldx%lld is below 16x16; use a larger tile (edges are "
                       "handled by the compiler)",
                       (long long)a.shape[0], (long long)b.shape[1]);
    if (!pick_mma(lw, op, &p.d, a.elem, c.elem))
        return false;
    uint32_t es = tl_elem_bytes(a.elem), kpl = p.d.mma->k * p.d.mma->m / 64;
    bool kmaj_a = lw_value_minor(lw, n.in[0]) == 1, kmaj_b = lw_value_minor(lw, n.in[1]) == 0;
    p.d.kpack = es >= 4 || kmaj_a || kmaj_b ? TL_MAX(16 / (kpl * es), 1u) : 1;
    while (p.d.kpack > 1 && p.d.mma->k * p.d.kpack > p.d.k)
        p.d.kpack /= 2;
    bool two = kpl * es == 8;
    p.d.mpair = two && !kmaj_a && p.d.m / p.d.wave_m >= 2u * p.d.mma->m;
    p.d.npair = two && !kmaj_b && p.d.n / p.d.wave_n >= 2u * p.d.mma->n;
    return tl_vec_push(lw->arena, &lw->dots, p) || tl_error(lw->diag, lw_loc(lw, op), TL_E_OOM);
}

/* Fragment layouts with registers in access order: elements of one 16-byte unit first. */
static bool
plan_dot_layouts(Lw *lw, LwDotPlan *p)
{
    const char *why = tl_dot_check(&p->d, lw->tgt);
    if (why)
        return lw_fail(lw, p->op, TL_E_UNSUPPORTED, "dot %ux%ux%u: %s", p->d.m, p->d.n, p->d.k, why);
    uint32_t kpl = lw_pow2_bits(p->d.mma->k * p->d.mma->m / 64), nu = lw_pow2_bits(p->d.kpack);
    for (uint32_t f = 0; f < 2; f++) {
        TlLayout l;
        uint32_t np = f ? p->d.npair : p->d.mpair;
        bool kmaj = lw_value_minor(lw, tl_opn(lw->ir, p->op)->in[f]) == (f ? 0u : 1u);
        if (!tl_dot_layout(&p->d, f ? TL_FRAG_B : TL_FRAG_A, &l))
            return lw_fail(lw, p->op, TL_E_INTERNAL, "no fragment layout");
        uint32_t nb = tl_layout_in_bits(&l, TL_DIM_REG), at = kpl;
        for (uint32_t i = 0; i < nb; i++)
            p->perm[f][i] = (uint8_t)i;
        if (kmaj) {
            for (uint32_t i = 0; i < nu; i++)
                p->perm[f][at++] = (uint8_t)(kpl + np + i);
            for (uint32_t i = 0; i < np; i++)
                p->perm[f][at++] = (uint8_t)(kpl + i);
        }
        if (!tl_layout_permute_regs(&p->frag[f], &l, p->perm[f]))
            return lw_fail(lw, p->op, TL_E_INTERNAL, "fragment registers");
    }
    return tl_dot_layout(&p->d, TL_FRAG_C, &p->c) ||
           lw_fail(lw, p->op, TL_E_INTERNAL, "no accumulator layout");
}

typedef struct Walk {
    Lw *lw;
    bool ok;
    uint32_t rows_stored, cols_stored;
} Walk;

static bool
collect(TlIr *ir, TlOp o, void *self)
{
    Walk *w = self;
    const TlOpNode *n = tl_opn(ir, o);
    if (n->code == TL_OP_dot)
        return w->ok = plan_dot_shape(w->lw, o);
    if (n->code == TL_OP_store && tl_vtype(ir, n->in[0])->kind == TL_TY_BUF && lw_is_tile(ir, n->in[1]) &&
        tl_vtype(ir, n->in[1])->rank == 2) {
        if (lw_mem_minor(w->lw, o) == 0)
            w->cols_stored++;
        else
            w->rows_stored++;
    }
    if (n->code == TL_OP_for)
        return tl_map_put(&w->lw->ivs, tl_blockn(ir, n->region[0])->args.data[0], o);
    return true;
}

bool
lw_plan_dots(Lw *lw)
{
    Walk w = {.lw = lw, .ok = true};
    if (!find_stored(lw) || !tl_walk(lw->ir, lw->ir->kernels.data[lw->src].body, collect, &w) || !w.ok)
        return false;
    /* dots of one shape share their accumulators' layout: a chain never converts */
    for (uint32_t i = 0; i < lw->dots.len; i++)
        for (uint32_t j = 0; j < lw->dots.len; j++) {
            TlDot *a = &lw->dots.data[i].d, *b = &lw->dots.data[j].d;
            if (a->m == b->m && a->n == b->n) {
                a->mpair |= b->mpair;
                a->npair |= b->npair;
            }
        }
    for (uint32_t i = 0; i < lw->dots.len; i++) {
        lw->dots.data[i].d.swapped = !(w.cols_stored && !w.rows_stored);
        if (!plan_dot_layouts(lw, &lw->dots.data[i]))
            return false;
    }
    return true;
}
