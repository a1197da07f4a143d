/* fold.c - numbers: integers of every width, floats of every format, and one element of every row that has a
 * fold expression. The folder (simplify), the evaluator and the tests use these functions and no others.
 *
 * Integer expressions are computed in 128 bits and wrapped; float expressions in double and rounded once to
 * the element
 * (+ - * / sqrt of f32, f16, bf16, f8 come out correctly rounded so, since 53 >= 2 * 24 + 2). */
#include "ir/ir.h"

#include <math.h>

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

/* ---- integers ---- */

int64_t
tl_int_wrap(TlElem e, int64_t v)
{
    uint32_t bits = tl_elem_bits(e);
    if (tl_elem_is_float(e) || bits == 0 || bits >= 64)
        return v;
    uint64_t mask = ((uint64_t)1 << bits) - 1, u = (uint64_t)v & mask;
    if (tl_elem_kind(e) == TL_KIND_SINT && (u >> (bits - 1)))
        u |= ~mask;
    return (int64_t)u;
}

/* ---- floats ---- */

/* To man_bits of mantissa in a format whose smallest normal exponent is emin; to nearest, ties to even. */
static double
round_mantissa(double v, int man_bits, int emin)
{
    int e;
    frexp(v, &e); /* |v| = m * 2^e, 0.5 <= m < 1 */
    int ulp = TL_MAX(e - 1, emin) - man_bits;
    return ldexp(nearbyint(ldexp(v, -ulp)), ulp);
}

double
tl_float_round(TlElem e, double v)
{
    if (e == TL_ELEM_F64 || v == 0 || isnan(v))
        return e == TL_ELEM_F8E4M3FNUZ || e == TL_ELEM_F8E5M2FNUZ ? (v == 0 ? 0.0 : v) : v;
    if (e == TL_ELEM_F32)
        return (float)v;
    const TlElemInfo *i = tl_elem_info(e);
    if (i->kind != TL_KIND_FLOAT)
        return v;
    /* FN spends only the all-ones code on NaN, FNUZ none of the positive ones, IEEE the whole top exponent */
    int top = (1 << i->exp_bits) - 1 - i->bias - (i->fclass == TL_FCLASS_IEEE);
    double ones = 2.0 - ldexp(i->fclass == TL_FCLASS_FN ? 2.0 : 1.0, -i->man_bits);
    double largest = ldexp(ones, top);
    double r = isinf(v) ? v : round_mantissa(v, i->man_bits, 1 - i->bias);
    if (fabs(r) > largest)
        return i->fclass == TL_FCLASS_IEEE ? copysign(INFINITY, v) : NAN;
    return r == 0 && i->fclass == TL_FCLASS_FNUZ ? 0.0 : r;
}

static uint64_t
float_encode(const TlElemInfo *i, double v)
{
    uint64_t sign = signbit(v) ? 1 : 0, man_mask = ((uint64_t)1 << i->man_bits) - 1;
    uint64_t ones = ((uint64_t)1 << i->exp_bits) - 1, exp = 0, man = 0;
    uint32_t sign_at = (uint32_t)i->exp_bits + i->man_bits;
    if (isnan(v)) {
        if (i->fclass == TL_FCLASS_FNUZ)
            return (uint64_t)1 << sign_at;
        return ones << i->man_bits |
               (i->fclass == TL_FCLASS_FN ? man_mask : (uint64_t)1 << (i->man_bits - 1));
    }
    if (isinf(v)) {
        exp = ones; /* only IEEE formats keep an infinity through rounding */
    } else if (v != 0) {
        int e;
        double m = fabs(frexp(v, &e));
        int biased = e - 1 + i->bias;
        if (biased >= 1) {
            exp = (uint64_t)biased;
            man = (uint64_t)ldexp(m, i->man_bits + 1) & man_mask;
        } else { /* subnormal */
            man = (uint64_t)ldexp(fabs(v), i->bias - 1 + i->man_bits);
        }
    }
    return sign << sign_at | exp << i->man_bits | man;
}

static double
float_decode(const TlElemInfo *i, uint64_t bits)
{
    uint64_t man_mask = ((uint64_t)1 << i->man_bits) - 1, ones = ((uint64_t)1 << i->exp_bits) - 1;
    uint64_t man = bits & man_mask, exp = bits >> i->man_bits & ones;
    bool neg = bits >> ((uint32_t)i->exp_bits + i->man_bits) & 1;
    double v;
    if (i->fclass == TL_FCLASS_FNUZ && neg && !exp && !man)
        return NAN;
    if (i->fclass == TL_FCLASS_FN && exp == ones && man == man_mask)
        return NAN;
    if (i->fclass == TL_FCLASS_IEEE && exp == ones)
        v = man ? (double)NAN : (double)INFINITY;
    else if (exp == 0)
        v = ldexp((double)man, 1 - i->bias - i->man_bits);
    else
        v = ldexp((double)(man | (man_mask + 1)), (int)exp - i->bias - i->man_bits);
    return neg ? -v : v;
}

uint64_t
tl_num_encode(TlElem e, TlNum n)
{
    if (e == TL_ELEM_F32) {
        float f = (float)n.f;
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        return u;
    }
    if (tl_elem_is_float(e) && e != TL_ELEM_F64)
        return float_encode(tl_elem_info(e), tl_float_round(e, n.f));
    if (e == TL_ELEM_F64) {
        uint64_t u;
        memcpy(&u, &n.f, sizeof u);
        return u;
    }
    uint32_t bits = tl_elem_bytes(e) * 8;
    return bits >= 64 ? (uint64_t)n.i : (uint64_t)n.i & (((uint64_t)1 << bits) - 1);
}

TlNum
tl_num_decode(TlElem e, uint64_t bits)
{
    TlNum n = {0};
    if (e == TL_ELEM_F32) {
        uint32_t u = (uint32_t)bits;
        float f;
        memcpy(&f, &u, sizeof f);
        n.f = f;
    } else if (e == TL_ELEM_F64) {
        memcpy(&n.f, &bits, sizeof n.f);
    } else if (tl_elem_is_float(e)) {
        n.f = float_decode(tl_elem_info(e), bits);
    } else if (e == TL_ELEM_I1) {
        n.i = (bits & 0xff) != 0;
    } else {
        n.i = tl_int_wrap(e, (int64_t)bits);
    }
    return n;
}

/* Truncates, saturates; NaN gives 0. */
static int64_t
float_to_int(TlElem to, double v)
{
    uint32_t bits = tl_elem_bits(to);
    bool sgn = tl_elem_kind(to) == TL_KIND_SINT;
    if (isnan(v))
        return 0;
    double high = ldexp(1.0, (int)bits - sgn); /* first value too large */
    double low = sgn ? -high : 0.0;
    v = trunc(v);
    if (v >= high)
        return sgn ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : tl_int_wrap(to, -1);
    if (v <= low)
        return sgn ? (int64_t)(~(uint64_t)0 << (bits - 1)) : 0;
    return sgn ? (int64_t)v : (int64_t)(uint64_t)v;
}

/* An integer rounded once to a float format: to double so that the last bit tells of what was cut off, then
 * on. */
static double
int_to_float(TlElem from, TlElem to, int64_t i)
{
    bool uns = tl_elem_kind(from) != TL_KIND_SINT, neg = !uns && i < 0;
    uint64_t u = neg ? 0 - (uint64_t)i : (uint64_t)i;
    if (to == TL_ELEM_F64)
        return uns ? (double)u : (double)i;
    if (u >> 53) { /* round to odd at 53 bits */
        uint32_t cut = 0;
        uint64_t top = u;
        while (top >> 53) {
            top >>= 1;
            cut++;
        }
        if (u & (((uint64_t)1 << cut) - 1))
            top |= 1;
        u = top << cut; /* exact in double: 53 bits */
    }
    return tl_float_round(to, neg ? -(double)u : (double)u);
}

TlNum
tl_num_cast(TlElem from, TlElem to, TlNum n)
{
    TlNum r = {0};
    bool ff = tl_elem_is_float(from), tf = tl_elem_is_float(to);
    if (ff && tf)
        r.f = tl_float_round(to, n.f);
    else if (ff && to == TL_ELEM_I1)
        r.i = n.f != 0;
    else if (ff)
        r.i = float_to_int(to, n.f);
    else if (tf)
        r.f = int_to_float(from, to, n.i);
    else if (to == TL_ELEM_I1)
        r.i = n.i != 0;
    else
        r.i = tl_int_wrap(to, n.i);
    return r;
}

/* ---- what fold expressions call ---- */

typedef struct Ctx {
    uint32_t width;
    bool sgn;
    bool bad; /* no value: leave the operation alone */
} Ctx;

static Wide
int_floordiv(Ctx *x, Wide a, Wide b)
{
    if (!b) {
        x->bad = true;
        return 0;
    }
    Wide q = a / b;
    return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}

static Wide
int_truncdiv(Ctx *x, Wide a, Wide b)
{
    x->bad |= !b;
    return b ? a / b : 0;
}

static Wide
int_shift_left(Ctx *x, Wide a, Wide b)
{
    return b < 0 || b >= (Wide)x->width ? 0 : (Wide)((UWide)a << (uint32_t)b);
}

static Wide
int_shift_right(Ctx *x, Wide a, Wide b)
{
    if (b < 0 || b >= (Wide)x->width)
        return a < 0 ? -1 : 0;
    return a >> (uint32_t)b;
}

static double
flt_min(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static double
flt_max(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

/* Not fmin of libc, which takes a signalling NaN for a reason to give NaN. */
static double
flt_fmin(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : flt_min(a, b);
}

static double
flt_fmax(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : flt_max(a, b);
}

/* a * b + c with one rounding, for elements narrower than double: exact product, sum rounded to odd, so that
 * the rounding that follows is the only one that shows. */
static double
fma_to_odd(double a, double b, double c)
{
    double p = a * b, s = p + c;
    if (!isfinite(s))
        return s;
    double t = s - p, err = (p - (s - t)) + (c - t); /* TwoSum: s + err == p + c */
    if (err == 0)
        return s;
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (!(bits & 1))
        bits += (err > 0) == (s > 0) ? 1 : (uint64_t)-1;
    memcpy(&s, &bits, sizeof s);
    return s;
}

/* Integer domain, then float domain. A row's rule says in which its expression is compiled. */
#define DOMAIN_INT_same(...) __VA_ARGS__
#define DOMAIN_INT_cmp(...)  __VA_ARGS__
#define DOMAIN_INT_int(...)  __VA_ARGS__
#define DOMAIN_INT_sel(...)
#define DOMAIN_INT_float(...)
#define DOMAIN_INT_cast(...)
#define DOMAIN_INT_given(...)
#define DOMAIN_FLT_same(...)  __VA_ARGS__
#define DOMAIN_FLT_float(...) __VA_ARGS__
#define DOMAIN_FLT_int(...)
#define DOMAIN_FLT_sel(...)
#define DOMAIN_FLT_cast(...)
#define DOMAIN_FLT_given(...)
#define DOMAIN_FLT_cmp(...)
#define DOMAIN_CMP_cmp(...) __VA_ARGS__
#define DOMAIN_CMP_same(...)
#define DOMAIN_CMP_float(...)
#define DOMAIN_CMP_int(...)
#define DOMAIN_CMP_sel(...)
#define DOMAIN_CMP_cast(...)
#define DOMAIN_CMP_given(...)

#undef NOFOLD
#define NOFOLD (x->bad = true, 0)

static Wide
fold_int(TlOpcode c, Ctx *x, Wide A, Wide B, Wide C)
{
#define tl_mul(a, b)      (Wide)((UWide)(a) * (UWide)(b))
#define tl_floordiv(a, b) int_floordiv(x, a, b)
#define tl_floormod(a, b) (x->bad |= !(b), (b) ? (a) - (b) * int_floordiv(x, a, b) : 0)
#define tl_truncdiv(a, b) int_truncdiv(x, a, b)
#define tl_truncrem(a, b) (x->bad |= !(b), (b) ? (a) % (b) : 0)
#define tl_min(a, b)      TL_MIN(a, b)
#define tl_max(a, b)      TL_MAX(a, b)
#define tl_abs(a)         ((a) < 0 ? -(a) : (a))
#define tl_shl(a, b)      int_shift_left(x, a, b)
#define tl_shr(a, b)      int_shift_right(x, a, b)
    (void)C;
    switch ((int)c) {
#define TL_OP(name, nmin, nmax, nres, nreg, rule, traits, attrs, fold, llvm, doc)                            \
    DOMAIN_INT_##rule(case TL_OP_##name : return fold;)
#include "ir/ops.def"
#undef TL_OP
#undef tl_mul
#undef tl_min
#undef tl_max
#undef tl_abs
    }
    x->bad = true;
    return 0;
}

static double
fold_flt(TlOpcode c, Ctx *x, bool is_f64, double A, double B, double C)
{
#define tl_mul(a, b)    (a) * (b)
#define tl_min(a, b)    flt_min(a, b)
#define tl_max(a, b)    flt_max(a, b)
#define tl_fmin(a, b)   flt_fmin(a, b)
#define tl_fmax(a, b)   flt_fmax(a, b)
#define tl_abs(a)       fabs(a)
#define tl_fma(a, b, c) (is_f64 ? fma(a, b, c) : fma_to_odd(a, b, c))
    switch ((int)c) {
#define TL_OP(name, nmin, nmax, nres, nreg, rule, traits, attrs, fold, llvm, doc)                            \
    DOMAIN_FLT_##rule(case TL_OP_##name : return fold;)
#undef NOFOLD
#define NOFOLD (x->bad = true, 0)
#include "ir/ops.def"
#undef TL_OP
    }
    x->bad = true;
    return 0;
}

static bool
fold_cmp(TlOpcode c, Ctx *x, double A, double B)
{
    switch ((int)c) {
#define TL_OP(name, nmin, nmax, nres, nreg, rule, traits, attrs, fold, llvm, doc)                            \
    DOMAIN_CMP_##rule(case TL_OP_##name : return fold;)
#include "ir/ops.def"
#undef TL_OP
    }
    x->bad = true;
    return false;
}

static Wide
widen(TlElem e, int64_t v)
{
    return tl_elem_kind(e) == TL_KIND_SINT ? (Wide)v : (Wide)(uint64_t)v;
}

bool
tl_fold(TlOpcode c, TlElem e, const TlNum *in, TlNum *out)
{
    const TlOpRow *row = tl_op_row(c);
    TlNum a = in[0], b = row->nin_max > 1 ? in[1] : a, d = row->nin_max > 2 ? in[2] : a;
    Ctx x = {tl_elem_bits(e), tl_elem_kind(e) == TL_KIND_SINT, false};
    if (row->rule_id == TL_RULE_sel) {
        *out = a.i ? b : d;
        return true;
    }
    if (tl_elem_is_float(e)) {
        if (row->rule_id == TL_RULE_cmp)
            out->i = fold_cmp(c, &x, a.f, b.f);
        else
            out->f = tl_float_round(e, fold_flt(c, &x, e == TL_ELEM_F64, a.f, b.f, d.f));
        return !x.bad;
    }
    Wide w = fold_int(c, &x, widen(e, a.i), widen(e, b.i), widen(e, d.i));
    out->i = row->rule_id == TL_RULE_cmp ? (int64_t)w : tl_int_wrap(e, (int64_t)(uint64_t)w);
    return !x.bad;
}
