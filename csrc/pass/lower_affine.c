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

typedef struct Range { /* proven bounds of a symbol, both inclusive */
    bool has_lo, has_hi;
    int64_t lo, hi;
} Range;

/* The thread value of a `dim`. */
static TlVal
dim_value(Lw *lw, TlOp o)
{
    const LwParam *p = lw_param(lw, tl_opn(lw->ir, o)->in[0]);
    return p ? p->dim[tl_attr_int(lw->ir, o, "axis", 0)] : 0;
}

static int64_t
floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static Range aff_range(Lw *lw, const LwAff *a, int depth);

static Range
range_of(Lw *lw, TlVal v, int depth)
{
    LwAff a = lw_aff(lw, v);
    return aff_range(lw, &a, depth + 1);
}

static Range
loop_range(Lw *lw, TlOp loop, int depth)
{
    const TlOpNode *n = tl_opn(lw->ir, loop);
    Range l = range_of(lw, n->in[0], depth), u = range_of(lw, n->in[1], depth), r = {0};
    int64_t step, first;
    if (!tl_is_const_int(lw->ir, n->in[2], &step) || step <= 0)
        return r;
    r.has_lo = l.has_lo;
    r.lo = l.lo;
    r.has_hi = u.has_hi;
    r.hi = u.hi - 1;
    if (tl_is_const_int(lw->ir, n->in[0], &first) && u.has_hi)
        r.hi = u.hi > first ? first + (u.hi - 1 - first) / step * step : first;
    return r;
}

static Range
minmax_range(Lw *lw, const TlOpNode *n, int depth)
{
    Range a = range_of(lw, n->in[0], depth), b = range_of(lw, n->in[1], depth), r = {0};
    bool min = n->code == TL_OP_min;
    r.has_lo = min ? a.has_lo && b.has_lo : a.has_lo || b.has_lo;
    r.has_hi = min ? a.has_hi || b.has_hi : a.has_hi && b.has_hi;
    r.lo = min || (a.has_lo && b.has_lo) ? (min ? TL_MIN(a.lo, b.lo) : TL_MAX(a.lo, b.lo))
           : a.has_lo                    ? a.lo
                                         : b.lo;
    r.hi = !min || (a.has_hi && b.has_hi) ? (min ? TL_MIN(a.hi, b.hi) : TL_MAX(a.hi, b.hi))
           : a.has_hi                     ? a.hi
                                          : b.hi;
    return r;
}

static Range
sym_range(Lw *lw, TlVal s, int depth)
{
    TlOp o = tl_valn(lw->ir, s)->def;
    uint64_t loop;
    Range r = {0};
    if (!o && tl_map_get(&lw->ivs, s, &loop))
        return loop_range(lw, (TlOp)loop, depth);
    if (!o)
        return r;
    const TlOpNode *n = tl_opn(lw->ir, o);
    int64_t axis = tl_attr_int(lw->ir, o, "axis", 0), m;
    if (n->code == TL_OP_program_id) {
        r.has_lo = true;
        if (lw->grid_known && axis < (int64_t)lw->ngrid) {
            int64_t d = param_dim(lw, lw->kgrid[axis][0], lw->kgrid[axis][1]);
            r.has_hi = d != TL_DYN;
            if (r.has_hi && d > 0)
                r.hi = (d + lw->kgrid[axis][2] - 1) / lw->kgrid[axis][2] - 1;
        }
    } else if (n->code == TL_OP_dim || n->code == TL_OP_num_programs) {
        r.has_lo = true;
        r.lo = n->code == TL_OP_num_programs || (lw->positive && dim_value(lw, o) == lw->positive);
    } else if (n->code == TL_OP_min || n->code == TL_OP_max) {
        r = minmax_range(lw, n, depth);
    } else if (n->code == TL_OP_mod) {
        Range d = range_of(lw, n->in[1], depth);
        r.has_lo = d.has_lo && d.lo > 0;
        r.has_hi = r.has_lo && d.has_hi;
        r.hi = d.hi - r.has_hi;
    } else if (n->code == TL_OP_floordiv && tl_is_const_int(lw->ir, n->in[1], &m) && m > 0) {
        r = range_of(lw, n->in[0], depth);
        r.lo = floor_div(r.lo, m);
        r.hi = floor_div(r.hi, m);
    }
    return r;
}

/* Proven bounds of a sum; deep expressions are not followed to their end. */
static Range
aff_range(Lw *lw, const LwAff *a, int depth)
{
    Range r = {a->ok && depth < 8, a->ok && depth < 8, a->c, a->c};
    for (uint32_t i = 0; i < a->n && (r.has_lo || r.has_hi); i++) {
        Range s = sym_range(lw, a->sym[i], depth);
        int64_t k = a->coef[i], x;
        r.has_lo = r.has_lo && (k > 0 ? s.has_lo : s.has_hi) &&
                   !__builtin_mul_overflow(k, k > 0 ? s.lo : s.hi, &x) &&
                   !__builtin_add_overflow(r.lo, x, &r.lo);
        r.has_hi = r.has_hi && (k > 0 ? s.has_hi : s.has_lo) &&
                   !__builtin_mul_overflow(k, k > 0 ? s.hi : s.lo, &x) &&
                   !__builtin_add_overflow(r.hi, x, &r.hi);
    }
    return r;
}

bool
lw_aff_min(Lw *lw, const LwAff *a, int64_t *out)
{
    Range r = aff_range(lw, a, 0);
    *out = r.lo;
    return r.has_lo;
}

bool
lw_aff_max(Lw *lw, const LwAff *a, int64_t *out)
{
    Range r = aff_range(lw, a, 0);
    *out = r.hi;
    return r.has_hi;
}

/* Whether coef * s + c is below the size of dimension bd of p: s is that size itself, something modulo it, or
 * a program id of a grid that was inferred from it, times the block. */
static bool
tied_below(Lw *lw, TlVal s, int64_t coef, int64_t c, const LwParam *p, uint32_t bd)
{
    TlOp o = tl_valn(lw->ir, s)->def;
    if (!o || coef <= 0)
        return false;
    const TlOpNode *n = tl_opn(lw->ir, o);
    int64_t axis = tl_attr_int(lw->ir, o, "axis", 0);
    if (n->code == TL_OP_dim)
        return coef == 1 && c < 0 && dim_value(lw, o) == p->dim[bd];
    if (n->code == TL_OP_mod) {
        LwAff d = lw_aff(lw, n->in[1]);
        TlOp size = d.n == 1 && d.coef[0] == 1 && !d.c ? tl_valn(lw->ir, d.sym[0])->def : 0;
        return coef == 1 && c <= 0 && lw->positive == p->dim[bd] && size &&
               tl_opn(lw->ir, size)->code == TL_OP_dim && dim_value(lw, size) == p->dim[bd];
    }
    if (n->code != TL_OP_program_id || !lw->grid_known || axis >= (int64_t)lw->ngrid || c > 0)
        return false;
    const int64_t *g = lw->kgrid[axis];
    return g[0] >= 0 && g[0] < (int64_t)lw->params.len && g[2] == coef &&
           lw->params.data[g[0]].dim[g[1]] == p->dim[bd];
}

/* The last value of a loop's variable as a sum; .ok = false: v is none. */
static LwAff
loop_last(Lw *lw, TlVal v)
{
    uint64_t loop;
    int64_t step;
    if (tl_valn(lw->ir, v)->def || !tl_map_get(&lw->ivs, v, &loop) ||
        !tl_is_const_int(lw->ir, tl_opn(lw->ir, (TlOp)loop)->in[2], &step) || step <= 0)
        return (LwAff){.ok = false};
    LwAff u = lw_aff(lw, tl_opn(lw->ir, (TlOp)loop)->in[1]);
    u.c--;
    return u;
}

static LwAff
without(const LwAff *a, uint32_t i)
{
    LwAff r = *a;
    r.n--;
    r.sym[i] = a->sym[r.n];
    r.coef[i] = a->coef[r.n];
    return r;
}

/* a >= 0; loop variables with a minus stand at their last value. */
static bool
not_negative(Lw *lw, LwAff a, int depth)
{
    int64_t least;
    if (lw_aff_min(lw, &a, &least))
        return least >= 0;
    for (uint32_t i = 0; a.ok && depth < 6 && i < a.n; i++) {
        LwAff last = a.coef[i] < 0 ? loop_last(lw, a.sym[i]) : (LwAff){.ok = false}, less = without(&a, i);
        if (last.ok)
            return not_negative(lw, aff_comb(&less, &last, a.coef[i]), depth + 1);
    }
    return false;
}

/* a < the size of dimension bd of p; symbols by their bounds. */
static bool
below(Lw *lw, LwAff a, const LwParam *p, uint32_t bd, int depth)
{
    int64_t size, most;
    if (!a.ok || depth > 6)
        return false;
    if (lw_is_const(lw, p->dim[bd], &size) && lw_aff_max(lw, &a, &most) && most < size)
        return true;
    for (uint32_t i = 0; i < a.n; i++) {
        LwAff less = without(&a, i), u;
        if (lw_aff_max(lw, &less, &most) && tied_below(lw, a.sym[i], a.coef[i], most, p, bd))
            return true;
        TlOp o = tl_valn(lw->ir, a.sym[i])->def;
        if (a.coef[i] > 0 && (u = loop_last(lw, a.sym[i])).ok)
            return below(lw, aff_comb(&less, &u, a.coef[i]), p, bd, depth + 1);
        if (a.coef[i] > 0 && o && tl_opn(lw->ir, o)->code == TL_OP_min)
            for (uint32_t k = 0; k < 2; k++) {
                u = lw_aff(lw, tl_opn(lw->ir, o)->in[k]);
                if (below(lw, aff_comb(&less, &u, a.coef[i]), p, bd, depth + 1))
                    return true;
            }
    }
    return false;
}

/* Whether there is no program when dimension bd of p has size 0. */
static bool
has_program_axis(Lw *lw, const LwParam *p, uint32_t bd)
{
    for (uint32_t i = 0; lw->grid_known && i < lw->ngrid; i++) {
        int64_t q = lw->kgrid[i][0];
        if (q >= 0 && q < (int64_t)lw->params.len && lw->params.data[q].dim[lw->kgrid[i][1]] == p->dim[bd])
            return true;
    }
    return false;
}

LwProof
lw_aff_inside(Lw *lw, const LwAff *a, const LwParam *p, uint32_t bd)
{
    if (not_negative(lw, *a, 0) && below(lw, *a, p, bd, 0))
        return LW_SURE;
    lw->positive = p->dim[bd];
    bool in = not_negative(lw, *a, 0) && below(lw, *a, p, bd, 0);
    lw->positive = 0;
    return !in ? LW_MAYBE : has_program_axis(lw, p, bd) ? LW_SURE : LW_IF_ANY;
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
