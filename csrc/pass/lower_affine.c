/* lower_affine.c - index expressions as sums of symbols; bounds and divisors that can be proven of them;
 * scalars of the source as thread values (index becomes i64). */
#include "pass/lower.h"

static LwAff
aff_const(int64_t c)
{
    return (LwAff){.ok = true, .c = c};
}

static LwAff
aff_sym(TlVal v)
{
    LwAff a = {.ok = true, .n = 1};
    a.sym[0] = v;
    a.coef[0] = 1;
    return a;
}

static LwAff
aff_comb(const LwAff *a, const LwAff *b, int64_t kb)
{
    LwAff r = *a;
    if (!a->ok || !b->ok)
        return (LwAff){.ok = false};
    r.c += kb * b->c;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t j = 0;
        while (j < r.n && r.sym[j] != b->sym[i])
            j++;
        if (j == r.n) {
            if (r.n == LW_MAX_TERMS)
                return (LwAff){.ok = false};
            r.sym[r.n] = b->sym[i];
            r.coef[r.n++] = kb * b->coef[i];
        } else {
            r.coef[j] += kb * b->coef[i];
        }
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < r.n; i++)
        if (r.coef[i]) {
            r.sym[n] = r.sym[i];
            r.coef[n++] = r.coef[i];
        }
    r.n = n;
    return r;
}

LwAff
lw_aff_sub(const LwAff *a, const LwAff *b)
{
    return aff_comb(a, b, -1);
}

/* The constant that a dim or stride operation stands for, if the buffer's type knows it. */
static bool
dim_const(Lw *lw, TlOp o, int64_t *out)
{
    const TlOpNode *n = tl_opn(lw->ir, o);
    if (n->code != TL_OP_dim && n->code != TL_OP_stride)
        return false;
    const TlTypeInfo *t = tl_vtype(lw->ir, n->in[0]);
    int64_t axis = tl_attr_int(lw->ir, o, "axis", 0);
    *out = n->code == TL_OP_dim ? t->shape[axis] : t->strides[axis];
    return *out != TL_DYN;
}

LwAff
lw_aff(Lw *lw, TlVal src)
{
    int64_t c;
    if (tl_is_const_int(lw->ir, src, &c))
        return aff_const(c);
    TlOp o = tl_valn(lw->ir, src)->def;
    if (!o)
        return aff_sym(src);
    const TlOpNode *n = tl_opn(lw->ir, o);
    if (dim_const(lw, o, &c))
        return aff_const(c);
    if (n->code == TL_OP_add || n->code == TL_OP_sub) {
        LwAff a = lw_aff(lw, n->in[0]), b = lw_aff(lw, n->in[1]);
        LwAff r = aff_comb(&a, &b, n->code == TL_OP_add ? 1 : -1);
        return r.ok ? r : aff_sym(src);
    }
    if (n->code == TL_OP_mul) {
        LwAff a = lw_aff(lw, n->in[0]), b = lw_aff(lw, n->in[1]), z = aff_const(0);
        if (a.ok && b.ok && b.n == 0)
            return aff_comb(&z, &a, b.c);
        if (a.ok && b.ok && a.n == 0)
            return aff_comb(&z, &b, a.c);
    }
    return aff_sym(src);
}

int64_t
lw_aff_coef(const LwAff *a, TlVal sym)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->sym[i] == sym)
            return a->coef[i];
    return 0;
}

/* The size of a buffer's dimension when the type knows it. */
static int64_t
param_dim(Lw *lw, int64_t param, int64_t axis)
{
    if (param < 0)
        return axis;
    TlVal v = tl_blockn(lw->ir, lw->ir->kernels.data[lw->src].body)->args.data[param];
    return tl_vtype(lw->ir, v)->shape[axis];
}

static bool
sym_range(Lw *lw, TlVal s, int64_t *lo, bool *has_hi, int64_t *hi)
{
    TlOp o = tl_valn(lw->ir, s)->def;
    uint64_t loop;
    *has_hi = false;
    if (!o && tl_map_get(&lw->ivs, s, &loop)) {
        const TlOpNode *n = tl_opn(lw->ir, (TlOp)loop);
        LwAff l = lw_aff(lw, n->in[0]), u = lw_aff(lw, n->in[1]);
        int64_t step, a, b;
        if (!tl_is_const_int(lw->ir, n->in[2], &step) || step <= 0 || !lw_aff_min(lw, &l, &a))
            return false;
        *lo = a;
        if (l.n == 0 && lw_aff_max(lw, &u, &b)) {
            *has_hi = true;
            *hi = b > a ? a + (b - 1 - a) / step * step : a;
        }
        return true;
    }
    if (!o)
        return false;
    const TlOpNode *n = tl_opn(lw->ir, o);
    int64_t axis = tl_attr_int(lw->ir, o, "axis", 0);
    if (n->code == TL_OP_program_id) {
        *lo = 0;
        if (lw->grid_known && axis < (int64_t)lw->ngrid) {
            int64_t d = param_dim(lw, lw->kgrid[axis][0], lw->kgrid[axis][1]);
            if (d != TL_DYN) {
                *has_hi = true;
                *hi = d > 0 ? (d + lw->kgrid[axis][2] - 1) / lw->kgrid[axis][2] - 1 : 0;
            }
        }
        return true;
    }
    if (n->code == TL_OP_dim || n->code == TL_OP_num_programs) {
        *lo = 0;
        return true;
    }
    if (n->code == TL_OP_min || n->code == TL_OP_max) {
        LwAff a = lw_aff(lw, n->in[0]), b = lw_aff(lw, n->in[1]);
        int64_t la, lb, ha, hb;
        if (!lw_aff_min(lw, &a, &la) || !lw_aff_min(lw, &b, &lb))
            return false;
        bool xa = lw_aff_max(lw, &a, &ha), xb = lw_aff_max(lw, &b, &hb);
        if (n->code == TL_OP_min) {
            *lo = TL_MIN(la, lb);
            *has_hi = xa || xb;
            *hi = xa && xb ? TL_MIN(ha, hb) : xa ? ha : hb;
        } else {
            *lo = TL_MAX(la, lb);
            *has_hi = xa && xb;
            *hi = *has_hi ? TL_MAX(ha, hb) : 0;
        }
        return true;
    }
    return false;
}

bool
lw_aff_min(Lw *lw, const LwAff *a, int64_t *out)
{
    int64_t s = a->c, lo, hi;
    bool has;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!sym_range(lw, a->sym[i], &lo, &has, &hi) || (a->coef[i] < 0 && !has))
            return false;
        s += a->coef[i] * (a->coef[i] > 0 ? lo : hi);
    }
    *out = s;
    return a->ok;
}

bool
lw_aff_max(Lw *lw, const LwAff *a, int64_t *out)
{
    int64_t s = a->c, lo, hi;
    bool has;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!sym_range(lw, a->sym[i], &lo, &has, &hi) || (a->coef[i] > 0 && !has))
            return false;
        s += a->coef[i] * (a->coef[i] > 0 ? hi : lo);
    }
    *out = s;
    return a->ok;
}

static int64_t
gcd64(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

int64_t
lw_aff_div(Lw *lw, const LwAff *a)
{
    int64_t g = a->c;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t d = 1;
        uint64_t loop;
        TlOp o = tl_valn(lw->ir, a->sym[i])->def;
        if (o && tl_opn(lw->ir, o)->code == TL_OP_dim)
            d = tl_vtype(lw->ir, tl_opn(lw->ir, o)->in[0])->dim_div[tl_attr_int(lw->ir, o, "axis", 0)];
        if (!o && tl_map_get(&lw->ivs, a->sym[i], &loop)) {
            const TlOpNode *n = tl_opn(lw->ir, (TlOp)loop);
            LwAff l = lw_aff(lw, n->in[0]);
            int64_t step;
            d = tl_is_const_int(lw->ir, n->in[2], &step) ? gcd64(step, lw_aff_div(lw, &l)) : 1;
        }
        g = gcd64(g, a->coef[i] * TL_MAX(d, 1));
    }
    return g ? g : (int64_t)1 << 30;
}

TlVal
lw_aff_emit(Lw *lw, const LwAff *a, TlVal skip)
{
    TlVal s = lw_int(lw, TL_ELEM_I64, a->c);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->sym[i] != skip)
            s = lw_bin(lw, TL_OP_add, s,
                       lw_bin(lw, TL_OP_mul, lw_scalar(lw, a->sym[i]), lw_int(lw, TL_ELEM_I64, a->coef[i])));
    return s;
}

/* ---- scalars ---- */

static TlVal
scalar_dim(Lw *lw, TlOp o)
{
    const TlOpNode *n = tl_opn(lw->ir, o);
    LwParam *p = lw_param(lw, n->in[0]);
    int64_t axis = tl_attr_int(lw->ir, o, "axis", 0);
    if (!p)
        return 0;
    return n->code == TL_OP_dim ? p->dim[axis] : p->stride[axis];
}

static TlVal
scalar_op(Lw *lw, TlVal src, TlOp o)
{
    TlOpNode n = *tl_opn(lw->ir, o);
    const TlTypeInfo ti = *tl_vtype(lw->ir, src);
    TlType ty = ti.kind == TL_TY_INDEX ? lw_ty(lw, TL_ELEM_I64) : lw_ty(lw, ti.elem);
    int64_t c;
    if (n.code == TL_OP_dim || n.code == TL_OP_stride)
        return scalar_dim(lw, o);
    if (n.code == TL_OP_program_id || n.code == TL_OP_num_programs) {
        TlVal v =
            lw_pure(lw, n.code, lw_ty(lw, TL_ELEM_I32), NULL, 0, "axis", tl_attr_int(lw->ir, o, "axis", 0));
        return ti.kind == TL_TY_INDEX ? lw_cast(lw, v, TL_ELEM_I64) : lw_cast(lw, v, ti.elem);
    }
    if (n.code == TL_OP_const) {
        if (tl_is_const_int(lw->ir, src, &c) && (ti.kind == TL_TY_INDEX || tl_elem_bits(ti.elem) >= 32))
            return lw_int(lw, ti.kind == TL_TY_INDEX ? TL_ELEM_I64 : ti.elem, c);
        TlBuilder b = {lw->ir, lw->entry, tl_blockn(lw->ir, lw->entry)->first, lw_loc(lw, o)};
        const TlAttr *f = tl_attr(lw->ir, o, "fvalue");
        return f ? tl_const_float(&b, ty, f->u.f) : tl_const_int(&b, ty, tl_attr_int(lw->ir, o, "value", 0));
    }
    if (!(tl_op_row(n.code)->traits & TL_T_ELEMENTWISE) && n.code != TL_OP_bitcast)
        return 0;
    TlVal in[4];
    for (uint32_t i = 0; i < n.nin; i++)
        if (!(in[i] = lw_scalar(lw, n.in[i])))
            return 0;
    if (n.code == TL_OP_cast)
        return lw_cast(lw, in[0], ti.kind == TL_TY_INDEX ? TL_ELEM_I64 : ti.elem);
    if (n.nin == 2 && (tl_elem_is_int(tl_vtype(lw->ir, in[0])->elem)))
        return lw_bin(lw, n.code, in[0], in[1]);
    return lw_pure(lw, n.code, ty, in, n.nin, NULL, 0);
}

TlVal
lw_scalar(Lw *lw, TlVal src)
{
    uint64_t have;
    if (tl_map_get(&lw->scal, src, &have))
        return (TlVal)have;
    TlOp o = tl_valn(lw->ir, src)->def;
    TlVal r = o ? scalar_op(lw, src, o) : 0;
    if (!r) {
        lw_fail(lw, o, TL_E_UNSUPPORTED, "operation '%s' has no lowering to a scalar yet",
                o ? tl_op_row(tl_opn(lw->ir, o)->code)->name : "block argument");
        return 0;
    }
    /* a value made inside a loop may not be reused outside of it: only remember those of the entry block */
    if (lw_is_entry(lw, r))
        tl_map_put(&lw->scal, src, r);
    return r;
}
