/* mfma_hw.c - the chips' own summation (contract in mfma_hw.h). */
#include <string.h>

#include "sim/bits.h"
#include "sim/mfma_hw.h"

enum { EMPTY = -100000, QNAN = 0x7fc00000, MODE_FP16_OVFL = 23 };
enum { R_FACTOR_NAN = 0xffc00a3du, R_PRODUCT_NAN = 0xffc00000u, R_QUIET = 0x00400000 }; /* RDNA's NaNs */

/* ---- rules by chip ---- */

enum { ANY_USE = 255 };
static const struct {
    uint8_t arch, fmt, use, rule, group, pair, mode_c, verified;
} rules[] = {
    {ISA_GFX90A, SIM_HW_F32, ANY_USE, SIM_HW_S, 1, 0, 1, 1},
    {ISA_GFX90A, SIM_HW_F16, SIM_HW_MATRIX, SIM_HW_P, 4, 0, 0, 1},
    {ISA_GFX90A, SIM_HW_BF16, SIM_HW_MATRIX, SIM_HW_P, 4, 0, 0, 1},
    {ISA_GFX90A, SIM_HW_BF16, SIM_HW_MATRIX_OLD, SIM_HW_P, 2, 0, 0, 1},
    {ISA_GFX942, SIM_HW_F32, ANY_USE, SIM_HW_S, 1, 0, 0, 1},
    {ISA_GFX942, SIM_HW_F16, SIM_HW_MATRIX, SIM_HW_T, 8, 0, 0, 1},
    {ISA_GFX942, SIM_HW_F16, SIM_HW_SPARSE, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX942, SIM_HW_BF16, SIM_HW_MATRIX, SIM_HW_T, 8, 0, 0, 1},
    {ISA_GFX942, SIM_HW_BF16, SIM_HW_SPARSE, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX942, SIM_HW_XF32, SIM_HW_MATRIX, SIM_HW_T, 4, 0, 0, 1},
    {ISA_GFX942, SIM_HW_E4M3Z, SIM_HW_MATRIX, SIM_HW_U, 16, 0, 0, 1},
    {ISA_GFX942, SIM_HW_E4M3Z, SIM_HW_SPARSE, SIM_HW_U, 16, 0, 0, 0},
    {ISA_GFX950, SIM_HW_F32, ANY_USE, SIM_HW_S, 1, 0, 0, 0},
    {ISA_GFX950, SIM_HW_F16, SIM_HW_MATRIX, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX950, SIM_HW_F16, SIM_HW_SPARSE, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX950, SIM_HW_BF16, SIM_HW_MATRIX, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX950, SIM_HW_BF16, SIM_HW_SPARSE, SIM_HW_T, 8, 0, 0, 0},
    {ISA_GFX950, SIM_HW_E4M3, SIM_HW_MATRIX, SIM_HW_U, 16, 0, 0, 0},
    {ISA_GFX950, SIM_HW_E4M3, SIM_HW_SPARSE, SIM_HW_U, 16, 0, 0, 0},
    {ISA_GFX1100, SIM_HW_F16, SIM_HW_MATRIX, SIM_HW_R3, 2, 0, 0, 1},
    {ISA_GFX1100, SIM_HW_F16, SIM_HW_DOT, SIM_HW_R3, 2, 0, 0, 1},
    {ISA_GFX1100, SIM_HW_BF16, SIM_HW_MATRIX, SIM_HW_R3, 2, 0, 0, 1},
    {ISA_GFX1100, SIM_HW_BF16, SIM_HW_DOT, SIM_HW_R3, 2, 0, 0, 1},
    {ISA_GFX1201, SIM_HW_F16, SIM_HW_MATRIX, SIM_HW_R4, 4, 2, 0, 1},
    {ISA_GFX1201, SIM_HW_F16, SIM_HW_SPARSE, SIM_HW_R4, 4, 2, 0, 0},
    {ISA_GFX1201, SIM_HW_F16, SIM_HW_DOT, SIM_HW_R4, 2, 2, 0, 1},
    {ISA_GFX1201, SIM_HW_BF16, SIM_HW_MATRIX, SIM_HW_R4, 4, 2, 0, 1},
    {ISA_GFX1201, SIM_HW_BF16, SIM_HW_SPARSE, SIM_HW_R4, 4, 2, 0, 0},
    {ISA_GFX1201, SIM_HW_BF16, SIM_HW_DOT, SIM_HW_R4, 2, 2, 0, 1},
    {ISA_GFX1201, SIM_HW_E4M3, SIM_HW_MATRIX, SIM_HW_R4, 4, 2, 0, 0},
    {ISA_GFX1201, SIM_HW_E4M3, SIM_HW_SPARSE, SIM_HW_R4, 4, 2, 0, 0},
    {ISA_GFX1201, SIM_HW_E4M3, SIM_HW_DOT, SIM_HW_R4, 4, 4, 0, 0},
};

/* bits, exponent bits, fraction bits, bias */
static const struct {
    uint8_t bits, exp, frac, bias;
} formats[SIM_HW_FMT_COUNT] = {
    {32, 8, 23, 127}, {19, 8, 10, 127} /* xf32: the upper bits */,
    {16, 5, 10, 15},  {16, 8, 7, 127},
    {8, 4, 3, 7},     {8, 5, 2, 15},
    {8, 4, 3, 8},     {8, 5, 2, 16},
    {6, 2, 3, 1},     {6, 3, 2, 3},
    {4, 2, 1, 1},
};

/* All formats of 8 bits and less share a row of the table. */
static SimHwFmt
row_of(SimHwFmt f)
{
    switch (f) {
    case SIM_HW_E5M2:
    case SIM_HW_E2M3:
    case SIM_HW_E3M2:
    case SIM_HW_E2M1:
        return SIM_HW_E4M3;
    case SIM_HW_E5M2Z:
        return SIM_HW_E4M3Z;
    case SIM_HW_F32:
    case SIM_HW_XF32:
    case SIM_HW_F16:
    case SIM_HW_BF16:
    case SIM_HW_E4M3:
    case SIM_HW_E4M3Z:
    case SIM_HW_FMT_COUNT:
        break;
    }
    return f;
}

bool
sim_hw_rule(IsaArch arch, SimHwFmt fa, SimHwFmt fb, SimHwOut out, SimHwUse use, SimHwDot *h)
{
    memset(h, 0, sizeof *h);
    if (fa >= SIM_HW_FMT_COUNT || fb >= SIM_HW_FMT_COUNT || row_of(fa) != row_of(fb))
        return false;
    for (uint32_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].arch != (uint8_t)arch || rules[i].fmt != (uint8_t)row_of(fa) ||
            (rules[i].use != ANY_USE && rules[i].use != (uint8_t)use))
            continue;
        if (out != SIM_HW_D_F32 && rules[i].rule != SIM_HW_R3 && rules[i].rule != SIM_HW_R4)
            return false;
        h->rule = rules[i].rule;
        h->group = rules[i].group;
        h->pair = rules[i].pair;
        h->mode_c = rules[i].mode_c;
        h->verified = rules[i].verified;
        h->fa = (uint8_t)fa;
        h->fb = (uint8_t)fb;
        h->out = (uint8_t)out;
        h->frac = formats[fa].frac + formats[fb].frac;
        return true;
    }
    return false;
}

/* Takes one element type off the front of *s (gfx90a writes it straight behind the shape). */
static bool
take_type(const char **s, bool fnuz, int *fmt)
{
    enum { INTEGER = -1, DOUBLE = -2 };
    static const struct {
        const char *name;
        int8_t fmt, z;
    } types[] = {
        {"xf32", SIM_HW_XF32, SIM_HW_XF32},
        {"f32", SIM_HW_F32, SIM_HW_F32},
        {"bf16", SIM_HW_BF16, SIM_HW_BF16},
        {"f16", SIM_HW_F16, SIM_HW_F16},
        {"f64", DOUBLE, DOUBLE},
        {"f8f6f4", SIM_HW_E4M3, SIM_HW_E4M3Z},
        {"fp8", SIM_HW_E4M3, SIM_HW_E4M3Z},
        {"bf8", SIM_HW_E5M2, SIM_HW_E5M2Z},
        {"iu8", INTEGER, INTEGER},
        {"iu4", INTEGER, INTEGER},
        {"i8", INTEGER, INTEGER},
        {"i32", INTEGER, INTEGER},
        {"u32", INTEGER, INTEGER},
        {"i16", INTEGER, INTEGER},
        {"u16", INTEGER, INTEGER},
        {"i4", INTEGER, INTEGER},
        {"u8", INTEGER, INTEGER},
        {"u4", INTEGER, INTEGER},
    };
    for (uint32_t i = 0; i < TL_COUNT(types); i++) {
        size_t n = strlen(types[i].name);
        if (strncmp(*s, types[i].name, n))
            continue;
        *fmt = fnuz ? types[i].z : types[i].fmt;
        *s += n;
        *s += **s == '_';
        return true;
    }
    return false;
}

SimHwKnown
sim_hw_by_name(IsaArch arch, const char *name, SimHwDot *h)
{
    static const struct {
        const char *start;
        SimHwUse use;
    } starts[] = {
        {"v_mfma_scale_", SIM_HW_MATRIX}, {"v_mfma_", SIM_HW_MATRIX}, {"v_smfmac_", SIM_HW_SPARSE},
        {"v_swmmac_", SIM_HW_SPARSE},     {"v_wmma_", SIM_HW_MATRIX}, {"v_dot2acc_", SIM_HW_DOT},
        {"v_dot2c_", SIM_HW_DOT},         {"v_dot4c_", SIM_HW_DOT},   {"v_dot8c_", SIM_HW_DOT},
        {"v_dot2_", SIM_HW_DOT},          {"v_dot4_", SIM_HW_DOT},    {"v_dot8_", SIM_HW_DOT},
    };
    bool fnuz = arch == ISA_GFX942;
    uint32_t i = 0;
    memset(h, 0, sizeof *h);
    while (i < TL_COUNT(starts) && strncmp(name, starts[i].start, strlen(starts[i].start)))
        i++;
    if (i == TL_COUNT(starts))
        return SIM_HW_NOT_MATRIX;
    const char *s = name + strlen(starts[i].start);
    SimHwUse use = starts[i].use;
    int d, a, b;
    if (!take_type(&s, fnuz, &d))
        return SIM_HW_NOT_MATRIX; /* v_mfma_ld_scale_b32 */
    if (use != SIM_HW_DOT) {      /* MxNxK, blocks: "_4b" */
        s += strspn(s, "0123456789x");
        s += *s == '_';
        size_t digits = strspn(s, "0123456789");
        if (digits && s[digits] == 'b' && s[digits + 1] == '_')
            s += digits + 2;
    }
    if (!take_type(&s, fnuz, &a))
        return SIM_HW_UNKNOWN;
    b = a;
    if (*s && strncmp(s, "1k", 2) && !take_type(&s, fnuz, &b))
        return SIM_HW_UNKNOWN;
    if (a < 0)
        return SIM_HW_EXACT;
    if (use == SIM_HW_MATRIX && a == SIM_HW_BF16 && arch == ISA_GFX90A && strncmp(s, "1k", 2))
        use = SIM_HW_MATRIX_OLD;
    SimHwOut out = d == SIM_HW_F16 ? SIM_HW_D_F16 : d == SIM_HW_BF16 ? SIM_HW_D_BF16 : SIM_HW_D_F32;
    if (!sim_hw_rule(arch, (SimHwFmt)a, (SimHwFmt)b, out, use, h))
        return SIM_HW_UNKNOWN;
    return h->verified ? SIM_HW_HARDWARE : SIM_HW_ASSUMED;
}

/* ---- elements ---- */

static SimHwNum
decode(SimHwFmt fmt, uint32_t v)
{
    uint32_t eb = formats[fmt].exp, fb = formats[fmt].frac, top = (1u << eb) - 1;
    if (fmt == SIM_HW_XF32)
        v >>= 13;
    uint32_t field = (v >> fb) & top, m = v & ((1u << fb) - 1);
    SimHwNum x = {m, 0, (uint8_t)((v >> (eb + fb)) & 1), SIM_HW_FINITE};
    bool ieee = fmt == SIM_HW_F32 || fmt == SIM_HW_XF32 || fmt == SIM_HW_F16 || fmt == SIM_HW_BF16 ||
                fmt == SIM_HW_E5M2;
    if (ieee && field == top)
        x.cls = m ? SIM_HW_NAN : SIM_HW_INF;
    else if (fmt == SIM_HW_E4M3 && (v & 127) == 127)
        x.cls = SIM_HW_NAN;
    else if ((fmt == SIM_HW_E4M3Z || fmt == SIM_HW_E5M2Z) && v == 128)
        x.cls = SIM_HW_NAN;
    if (field)
        x.sig |= 1u << fb;
    x.e = (int16_t)((int)(field ? field : 1) - formats[fmt].bias);
    return x;
}

/* A half as the bits of an f32 with the same value. */
static uint32_t
widen_f16(uint32_t v)
{
    uint32_t sign = (v & 0x8000) << 16, e = (v >> 10) & 31, m = v & 1023;
    if (e == 31)
        return sign | 0x7f800000 | m << 13;
    if (e)
        return sign | (e + 112) << 23 | m << 13;
    if (!m)
        return sign;
    uint32_t up = (uint32_t)__builtin_clz(m) - 21;
    return sign | (113 - up) << 23 | ((m << up) & 1023) << 13;
}

SimHwNum
sim_hw_num(const SimHwDot *h, SimHwFmt fmt, uint32_t bits)
{
    if (h->rule == SIM_HW_S || h->rule == SIM_HW_P) {
        uint32_t field = fmt == SIM_HW_F16 ? 0x7c00 : 0x7f80;
        if (h->rule == SIM_HW_P && !(bits & field) && (bits & 0x7fff)) /* a subnormal counts as +0 */
            bits = 0;
        SimHwNum x = {fmt == SIM_HW_F32 ? bits : fmt == SIM_HW_F16 ? widen_f16(bits) : bits << 16, 0, 0, 0};
        return x;
    }
    SimHwNum x = decode(fmt, bits);
    if (h->rule == SIM_HW_R3 && fmt == SIM_HW_BF16 && !(bits & 0x7f80))
        x.sig = 0;
    return x;
}

void
sim_hw_scale(SimHwNum *x, uint32_t s)
{
    if (s == 255)
        x->cls = SIM_HW_NAN;
    else
        x->e = (int16_t)(x->e + (int)s - 127);
}

/* ---- integers ---- */

static int
top_bit(uint64_t v)
{
    return 63 - __builtin_clzll(v);
}
static uint64_t
shift_trunc(uint64_t v, int left)
{
    return !v || left <= -64 ? 0 : left < 0 ? v >> -left : v << left;
}
static int64_t
shift_floor(int64_t v, int left)
{
    if (left >= 0)
        return v ? (int64_t)((uint64_t)v << left) : 0;
    return v >> (left < -63 ? 63 : -left);
}
/* v / 2^right to nearest, ties to even. */
static uint64_t
shift_near(uint64_t v, int right)
{
    if (right <= 0)
        return v << -right;
    if (right >= 64)
        return 0;
    uint64_t q = v >> right, tail = v & ((UINT64_C(1) << right) - 1), half = UINT64_C(1) << (right - 1);
    return q + (tail > half || (tail == half && (q & 1)));
}

/* units * 2^lsb as an IEEE number of frac fraction bits, nearest even, gradual underflow; zero is +0.
 * flush: what is below the normal range after rounding to full precision becomes +0. */
static uint32_t
pack(int64_t units, int lsb, uint32_t frac, int emin, bool frame_neg, bool flush)
{
    uint32_t exp_bits = frac == 23 ? 8 : 5, sign = (uint32_t)((units < 0) != frame_neg) << (exp_bits + frac);
    if (!units)
        return 0;
    uint64_t mag = units < 0 ? (uint64_t)-units : (uint64_t)units;
    int e = top_bit(mag) + lsb;
    if (e < emin && !flush) {
        uint64_t m = shift_near(mag, emin - (int)frac - lsb);
        return m ? sign | (uint32_t)m : 0;
    }
    uint64_t m = shift_near(mag, top_bit(mag) - (int)frac);
    if (m >> (frac + 1)) {
        m >>= 1;
        e++;
    }
    if (e < emin)
        return 0;
    if (e > 1 - emin)
        return sign | ((1u << exp_bits) - 1) << frac;
    return sign | (uint32_t)(e - emin + 1) << frac | ((uint32_t)m & ((1u << frac) - 1));
}
static uint32_t
pack_f32(int64_t units, int lsb)
{
    return pack(units, lsb, 23, -126, false, false);
}

/* ---- S and P: host operations ---- */

/* The bits of a result: any NaN is the chip's own. */
static uint32_t
result_bits(float f)
{
    return f == f ? sim_f32_bits(f) : QNAN;
}
static uint32_t
flush_signed(uint32_t u)
{
    return u & 0x7f800000 ? u : u & 0x80000000u;
}

static uint32_t
dot_s(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t k, uint32_t c, uint32_t mode)
{
    bool keep_in = (mode >> 4) & 1, keep_out = (mode >> 5) & 1;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t x = keep_in ? a[i].sig : flush_signed(a[i].sig),
                 y = keep_in ? b[i].sig : flush_signed(b[i].sig);
        if (h->mode_c && !keep_in)
            c = flush_signed(c);
        c = result_bits(__builtin_fmaf(sim_f32(x), sim_f32(y), sim_f32(c)));
        if (h->mode_c && !keep_out)
            c = flush_signed(c);
    }
    return c;
}

static uint32_t
add_flush(uint32_t x, uint32_t y)
{
    return flush_signed(result_bits(sim_f32(x) + sim_f32(y)));
}
static uint32_t
dot_p(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t k, uint32_t c)
{
    if (!(c & 0x7f800000) && (c & 0x7fffff))
        c = 0;
    for (uint32_t i = 0; i < k; i += h->group) {
        uint32_t p[4] = {0, 0, 0, 0};
        for (uint32_t j = 0; j < h->group && i + j < k; j++)
            p[j] = flush_signed(result_bits(sim_f32(a[i + j].sig) * sim_f32(b[i + j].sig)));
        uint32_t s = add_flush(p[0], p[1]);
        if (h->group == 4)
            s = add_flush(s, add_flush(p[2], p[3]));
        c = add_flush(c, s);
    }
    return c;
}

/* ---- products of the other rules ---- */

typedef struct Term {
    uint64_t sig;
    int e, lsb; /* value = sig * 2^lsb; e: sum of the factors' exponents, EMPTY when zero */
    bool neg;
} Term;

typedef struct Specials {
    bool nan, invalid, pos, neg;
} Specials;

/* Products of one step; elements past k are zero. */
static Specials
products(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t n, Term *p)
{
    Specials s = {0};
    for (uint32_t i = 0; i < h->group; i++) {
        if (i >= n) {
            p[i] = (Term){0, EMPTY, 0, false};
            continue;
        }
        bool neg = a[i].neg != b[i].neg, inf = a[i].cls == SIM_HW_INF || b[i].cls == SIM_HW_INF;
        uint64_t sig = (uint64_t)a[i].sig * b[i].sig;
        int e = a[i].e + b[i].e;
        s.nan |= a[i].cls == SIM_HW_NAN || b[i].cls == SIM_HW_NAN;
        s.invalid |= inf && ((a[i].cls != SIM_HW_INF && !a[i].sig) || (b[i].cls != SIM_HW_INF && !b[i].sig));
        p[i] = (Term){inf ? 0 : sig, sig && !inf ? e : EMPTY, e - h->frac, neg};
        /* CDNA: a product too large for f32 is an infinity */
        if (sig && !inf && (h->rule == SIM_HW_T || h->rule == SIM_HW_U) && top_bit(sig) + p[i].lsb >= 128)
            inf = true;
        s.pos |= inf && !neg;
        s.neg |= inf && neg;
    }
    return s;
}

static Term
term_of_f32(uint32_t c)
{
    uint32_t e = (c >> 23) & 255, m = c & 0x7fffff;
    int ec = (int)(e ? e : 1) - 127;
    return (Term){e ? m | 0x800000 : m, ec, ec - 23, c >> 31};
}

/* ---- T and U ---- */

/* Sum of the products of every step'th position from `from`, each cut toward zero at 2^(E - 24); *E = largest
 * e. */
static int64_t
cut_sum(const Term *p, uint32_t from, uint32_t step, uint32_t n, int *E)
{
    int64_t sum = 0;
    *E = EMPTY;
    for (uint32_t i = from; i < n; i += step)
        *E = p[i].e > *E ? p[i].e : *E;
    for (uint32_t i = from; i < n && *E != EMPTY; i += step) {
        int64_t m = (int64_t)shift_trunc(p[i].sig, p[i].lsb - (*E - 24));
        sum += p[i].neg ? -m : m;
    }
    return sum;
}

static uint32_t
step_t(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t n, uint32_t c)
{
    Term p[16];
    Specials s = products(h, a, b, n, p);
    if (s.nan || s.invalid || (c & 0x7fffffff) > 0x7f800000)
        return QNAN;
    s.pos |= c == 0x7f800000;
    s.neg |= c == 0xff800000;
    if (s.pos || s.neg)
        return s.pos && s.neg ? QNAN : s.neg ? 0xff800000 : 0x7f800000;
    Term tc = term_of_f32(c);
    int E1;
    int64_t dot;
    if (h->rule == SIM_HW_U) {
        int E0, Eo;
        int64_t even = cut_sum(p, 0, 2, h->group, &E0), odd = cut_sum(p, 1, 2, h->group, &Eo);
        E1 = E0 > Eo ? E0 : Eo;
        dot = (E0 == EMPTY ? 0 : shift_floor(even, E0 - E1)) + (Eo == EMPTY ? 0 : shift_floor(odd, Eo - E1));
    } else {
        dot = cut_sum(p, 0, 1, h->group, &E1);
    }
    int E = E1 > tc.e ? E1 : tc.e;
    int64_t D = E1 == EMPTY ? 0 : shift_floor(dot, E1 - E + 8);
    int64_t sc = tc.neg ? -(int64_t)tc.sig : (int64_t)tc.sig;
    if (h->rule == SIM_HW_U && tc.e < E - 25)
        sc = 0;
    int64_t t = D + 256 * shift_floor(sc, tc.lsb - (E - 24));
    if (!t)
        return 0;
    int et = top_bit(t < 0 ? (uint64_t)-t : (uint64_t)t) + E - 32;
    int drop = (et > -126 ? et : -126) - 31 - (E - 32);
    if (drop > 0)
        t = shift_floor(shift_floor(t, -drop), drop);
    return pack_f32(t, E - 32);
}

/* ---- R3 and R4 ---- */

static uint32_t
narrow_special(const SimHwDot *h, uint32_t u)
{
    if (h->out == SIM_HW_D_F32)
        return u;
    if (u == R_FACTOR_NAN)
        return h->out == SIM_HW_D_F16 ? 0xfe3d : 0xfffd;
    if (h->out == SIM_HW_D_BF16)
        return u >> 16;
    return (u >> 16 & 0x8000) | 0x7c00 | (u >> 13 & 1023);
}

/* NaNs and infinities in the order of the hardware; false: all finite. c: bits of an f32. */
static bool
rdna_special(const SimHwDot *h, Specials s, uint32_t c, uint32_t *out)
{
    uint32_t u;
    if (s.nan)
        u = R_FACTOR_NAN;
    else if (s.invalid || (s.pos && s.neg))
        u = h->pair == 4 ? R_FACTOR_NAN : R_PRODUCT_NAN;
    else if ((c & 0x7fffffff) > 0x7f800000)
        u = c | R_QUIET;
    else {
        s.pos |= c == 0x7f800000;
        s.neg |= c == 0xff800000;
        if (!s.pos && !s.neg)
            return false;
        u = s.pos && s.neg ? R_PRODUCT_NAN : s.neg ? 0xff800000 : 0x7f800000;
    }
    *out = narrow_special(h, u);
    return true;
}

static uint32_t
finish_rdna(const SimHwDot *h, int64_t total, int lsb, bool frame_neg, uint32_t mode)
{
    bool flush = h->rule == SIM_HW_R3;
    if (h->out == SIM_HW_D_F16) {
        uint32_t u = pack(total, lsb, 10, -14, frame_neg, false);
        return (u & 0x7fff) == 0x7c00 && (mode >> MODE_FP16_OVFL & 1) ? (u & 0x8000) | 0x7bff : u;
    }
    uint32_t u = pack(total, lsb, 23, -126, frame_neg, flush);
    return h->out == SIM_HW_D_BF16 ? u >> 16 : u;
}

static int
lead(const Term *t)
{
    return t->sig ? top_bit(t->sig) + t->lsb : EMPTY;
}
static int
max_int(int a, int b)
{
    return a > b ? a : b;
}

static uint32_t
step_r3(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t n, uint32_t c, uint32_t mode)
{
    Term t[3];
    uint32_t u;
    Specials s = products(h, a, b, n, t + 1);
    if (rdna_special(h, s, c, &u))
        return u;
    t[0] = term_of_f32(c);
    if (!(c & 0x7f800000))
        t[0].sig = 0;
    if (!(t[0].sig | t[1].sig | t[2].sig))
        return 0;
    int lc = lead(&t[0]);
    if (h->out == SIM_HW_D_F16)
        lc = max_int(lc, -14);
    int G = max_int(max_int(t[1].e, t[2].e) - 24, max_int(max_int(lc, lead(&t[1])), lead(&t[2])) - 26);
    int64_t total = 0;
    for (uint32_t i = 0; i < 3; i++) {
        int64_t m = (int64_t)shift_trunc(t[i].sig, t[i].lsb - G);
        total += t[i].neg != t[0].neg ? -m - 1 : m;
    }
    return finish_rdna(h, total, G, t[0].neg, mode);
}

static int64_t
signed_floor(const Term *t, int G)
{
    int64_t v = t->neg ? -(int64_t)t->sig : (int64_t)t->sig;
    return shift_floor(v, t->lsb - G);
}

static uint32_t
step_r4(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t n, uint32_t c, uint32_t mode)
{
    Term p[4], tc = term_of_f32(c);
    uint32_t u;
    Specials s = products(h, a, b, n, p);
    if (rdna_special(h, s, c, &u))
        return u;
    int top = EMPTY, least = h->out == SIM_HW_D_F16 ? -14 : -126;
    for (uint32_t i = 0; i < h->group; i++)
        top = max_int(top, p[i].e);
    int G = max_int(top - 24, max_int(least, lead(&tc)) - 26);
    int64_t total = signed_floor(&tc, G);
    if (total == -1 && G > least && lead(&tc) < G) /* less than a unit, negative */
        total = 0;
    for (uint32_t i = 0; i < h->group; i += h->pair) {
        int e = EMPTY;
        for (uint32_t j = i; j < i + h->pair; j++)
            e = max_int(e, p[j].e);
        int64_t pair = 0;
        for (uint32_t j = i; j < i + h->pair; j++)
            pair += p[j].sig ? signed_floor(&p[j], e - 24) : 0;
        total += pair ? shift_floor(pair, e - 24 - G) : 0;
    }
    return finish_rdna(h, total, G, false, mode);
}

/* ---- */

uint32_t
sim_hw_dot(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t k, uint32_t c, uint32_t mode)
{
    switch ((SimHwRule)h->rule) {
    case SIM_HW_S:
        return dot_s(h, a, b, k, c, mode);
    case SIM_HW_P:
        return dot_p(h, a, b, k, c);
    case SIM_HW_T:
    case SIM_HW_U:
        for (uint32_t i = 0; i < k; i += h->group)
            c = step_t(h, a + i, b + i, k - i, c);
        return c;
    case SIM_HW_R3:
    case SIM_HW_R4:
        for (uint32_t i = 0; i < k; i += h->group) {
            uint32_t wide = h->out == SIM_HW_D_F16 ? widen_f16(c) : h->out == SIM_HW_D_BF16 ? c << 16 : c;
            c = h->rule == SIM_HW_R3 ? step_r3(h, a + i, b + i, k - i, wide, mode)
                                     : step_r4(h, a + i, b + i, k - i, wide, mode);
        }
        return c;
    case SIM_HW_NONE:
        break;
    }
    return c;
}

uint32_t
sim_hw_dot_bits(const SimHwDot *h, const uint32_t *a, const uint32_t *b, uint32_t k, uint32_t c,
                uint32_t mode)
{
    SimHwNum x[128], y[128];
    k = k < 128 ? k : 128;
    for (uint32_t i = 0; i < k; i++) {
        x[i] = sim_hw_num(h, (SimHwFmt)h->fa, a[i]);
        y[i] = sim_hw_num(h, (SimHwFmt)h->fb, b[i]);
    }
    return sim_hw_dot(h, x, y, k, c, mode);
}
