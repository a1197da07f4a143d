/* cvt_scale.c - v_cvt_scalef32_* of gfx950: conversions between f32, f16, bf16 and the 8-, 6- and 4-bit
 * floats with a scale 2^(e - 127), e the exponent field of an f32 source (255 gives NaN).
 *
 * To the small formats: value / scale, rounded once, to nearest even or (sr) stochastically: the seed's upper
 * bits are added below the last bit kept. 8-bit results beyond the range follow the plain conversions
 * (MODE.FP16_OVFL), 6- and 4-bit ones saturate, NaN becomes their largest value. From them: value * scale,
 * rounded to nearest even. Halves: which byte or half is read or written is op_sel; the rest of the
 * destination is kept. 2xpk16 interleaves its two sources. The same seed serves all elements.
 */
#include <math.h>

#include "sim/core.h"

typedef struct CvtType {
    const char *name;
    uint8_t bits, exp, frac; /* exp 0: f32 */
    int16_t bias;
} CvtType;
static const CvtType types[] = {
    {"f32", 32, 8, 23, 127}, {"f16", 16, 5, 10, 15}, {"bf16", 16, 8, 7, 127}, {"fp8", 8, 4, 3, 7},
    {"bf8", 8, 5, 2, 15},    {"fp6", 6, 2, 3, 1},    {"bf6", 6, 3, 2, 3},     {"fp4", 4, 2, 1, 1},
};
enum { T_F32, T_F16, T_BF16, T_FP8, T_BF8, T_FP6, T_BF6, T_FP4 };

typedef struct CvtOp {
    uint8_t to, from, n, sr, interleave;
    uint8_t nsrc, ndst; /* registers of the first source and of the destination */
    uint8_t sel;        /* op_sel */
    uint16_t data2;     /* the second row of data (pk_*_f32, 2xpk16), 0xffff: none */
    SimSrc src[3];      /* data, [second data or seed], scale */
    uint8_t neg[2], abs[2];
    SimSrc seed, scale;
} CvtOp;

/* A number as bits of the type to double: exact. */
static double
widen(uint32_t type, uint32_t v)
{
    const CvtType *t = &types[type];
    uint32_t e = (v >> t->frac) & ((1u << t->exp) - 1), m = v & ((1u << t->frac) - 1);
    double sign = v >> (t->bits - 1) & 1 ? -1.0 : 1.0;
    bool ieee = type <= T_BF16 || type == T_BF8;
    if (ieee && e == (1u << t->exp) - 1)
        return m ? NAN : sign * INFINITY;
    if (type == T_FP8 && (v & 127) == 127)
        return NAN;
    double x = ldexp((double)(e ? m | 1u << t->frac : m), (int)(e ? e : 1) - t->bias - t->frac);
    return sign * x;
}

/* x (sign and magnitude) rounded to the type; *over: beyond the largest finite number. */
static uint32_t
round_to(uint32_t type, double x, bool sr, uint32_t seed, bool *over)
{
    const CvtType *t = &types[type];
    int e;
    double mag = fabs(x), m = frexp(mag, &e); /* m in [0.5, 1) */
    int least = 1 - t->bias, top = (int)((1u << t->exp) - 1) - t->bias;
    e--;
    *over = false;
    if (mag == 0)
        return 0;
    int unit = (e > least ? e : least) - t->frac;
    /* 24 bits and more below the unit, as an integer */
    uint64_t frac = (uint64_t)ldexp(m, 53); /* mag = frac * 2^(e + 1 - 53) */
    int shift = unit - (e + 1 - 53);
    uint64_t q;
    if (shift > 63) {
        q = 0;
    } else if (sr) { /* the seed stands for the 32 bits below the unit */
        uint64_t add = shift >= 32 ? (uint64_t)seed << (shift - 32) : seed >> (32 - shift);
        q = shift > 62 ? 0 : (frac + add) >> shift;
    } else {
        uint64_t half = UINT64_C(1) << (shift - 1), tail = frac & (2 * half - 1);
        q = (frac >> shift) + (tail > half || (tail == half && (frac >> shift & 1)));
    }
    uint32_t code =
        ((uint32_t)((e > least ? e : least) + t->bias) << t->frac) + (uint32_t)q - (1u << t->frac);
    uint32_t last = ((1u << (t->bits - 1)) - 1);
    if (type == T_FP8)
        last = 0x7e;
    else if (type <= T_BF16 || type == T_BF8)
        last = (((1u << t->exp) - 1) << t->frac) - 1;
    *over = e > top || code > last;
    return code;
}

static uint32_t
narrow(uint32_t type, double x, bool sr, uint32_t seed, bool saturate)
{
    const CvtType *t = &types[type];
    uint32_t sign = signbit(x) ? 1u << (t->bits - 1) : 0, inf = ((1u << t->exp) - 1) << t->frac;
    uint32_t last = type == T_FP8 ? 0x7e : type == T_BF8 ? 0x7b : (1u << (t->bits - 1)) - 1;
    bool over = false, small = type >= T_FP6;
    if (x != x)
        return small ? last : type == T_FP8 || type == T_BF8 ? sign | 0x7f : inf | 1u << (t->frac - 1);
    if (isinf(x)) {
        if (small)
            return sign | last;
        return sign | (type == T_FP8 ? 0x7f : inf);
    }
    uint32_t code = round_to(type, x, sr, seed, &over);
    if (over) {
        if (small || ((type == T_FP8 || type == T_BF8 || type == T_F16) && saturate))
            code = type == T_F16 ? 0x7bff : last;
        else
            code = type == T_FP8 ? 0x7f : inf;
    }
    return sign | code;
}

/* Element i of a lane of the data, as bits of its type. */
static uint32_t
element(const CvtOp *op, const uint32_t *const row[2], uint32_t l, uint32_t i)
{
    uint32_t bits = types[op->from].bits;
    if (op->from == T_F32) {
        if (op->interleave)
            return row[i & 1][(i / 2) * LANES + l];
        return op->data2 != 0xffff && op->n == 2 ? row[i][l] : row[0][i * LANES + l];
    }
    uint32_t at = i * bits;
    if (op->n < 32) {
        if (op->from == T_FP8 || op->from == T_BF8) /* byte or half of the dword */
            at += op->n == 1 ? 8 * (op->sel & 3u) : 16 * (op->sel & 1u);
        else if (op->from == T_FP4)
            at += 8 * (op->sel & 3u);
        else if (op->n == 1) /* one half */
            at += 16 * (op->sel & 1u);
    }
    uint32_t word = at / 32, sh = at % 32, v = row[0][word * LANES + l] >> sh;
    if (sh + bits > 32)
        v |= row[0][(word + 1) * LANES + l] << (32 - sh);
    return bits == 32 ? v : v & ((1u << bits) - 1);
}

/* Puts the bits of the results of a lane together. */
static void
put_element(const CvtOp *op, uint32_t *d, uint32_t l, uint32_t i, uint32_t v)
{
    uint32_t bits = types[op->to].bits, at = i * bits;
    if (op->n < 32 && bits < 32) {
        if (op->to == T_FP4 || (op->n == 1 && bits == 8))
            at += 8 * (op->sel >> 2 & 3u);
        else if (bits == 8 || (bits == 16 && op->n == 1))
            at += 16 * (op->sel >> 3 & 1u);
    }
    uint32_t word = at / 32, sh = at % 32;
    uint64_t mask = ((UINT64_C(1) << bits) - 1) << sh, put = (uint64_t)v << sh;
    d[word * LANES + l] = (d[word * LANES + l] & ~(uint32_t)mask) | (uint32_t)put;
    if (mask >> 32)
        d[(word + 1) * LANES + l] =
            (d[(word + 1) * LANES + l] & ~(uint32_t)(mask >> 32)) | (uint32_t)(put >> 32);
}

static const SimRec *
body_cvt(SimWave *w, const SimRec *r)
{
    const CvtOp *op = r->p;
    uint32_t ts[128], tk[128], t0[128], t1[128], out[32 * LANES];
    const uint32_t *scale = src_row(w, op->scale, ts), *seed = op->sr ? src_row(w, op->seed, tk) : NULL;
    const uint32_t *row[2] = {src_row(w, r->src[0], t0), NULL};
    if (op->data2 != 0xffff)
        row[1] = src_row(w, r->src[1], t1);
    uint32_t *d = ROW(w, r->dst);
    memcpy(out, d, (size_t)r->ndst * LANES * 4); /* sources may overlap the destination */
    uint32_t sign = types[op->from].bits - 1;
    bool saturate = w->mode >> 23 & 1;
    for (uint64_t m = EXEC(w); m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), e = scale[l] >> 23 & 255;
        for (uint32_t i = 0; i < op->n; i++) {
            uint32_t k = op->n == 2 && op->from == T_F32 && op->data2 != 0xffff ? i : 0;
            uint32_t v = element(op, row, l, i);
            if (op->abs[k])
                v &= ~(1u << sign);
            if (op->neg[k])
                v ^= 1u << sign;
            double x = widen(op->from, v);
            int by = (int)e - 127;
            x = e == 255 ? NAN : ldexp(x, op->from <= T_BF16 ? -by : by);
            put_element(op, out, l, i, narrow(op->to, x, op->sr, op->sr ? seed[l] : 0, saturate));
        }
    }
    memcpy(d, out, (size_t)r->ndst * LANES * 4);
    return NEXT(r);
}

static int
take(const char **s)
{
    for (uint32_t i = 0; i < TL_COUNT(types); i++) {
        size_t n = strlen(types[i].name);
        if (!strncmp(*s, types[i].name, n) && (!(*s)[n] || (*s)[n] == '_')) {
            *s += n + ((*s)[n] == '_');
            return (int)i;
        }
    }
    return -1;
}

static bool
parse(const char *s, CvtOp *op)
{
    op->n = 1;
    if (!strncmp(s, "sr_", 3)) {
        op->sr = 1;
        s += 3;
    }
    if (!strncmp(s, "pk32_", 5)) {
        op->n = 32;
        s += 5;
    } else if (!strncmp(s, "2xpk16_", 7)) {
        op->n = 32;
        op->interleave = 1;
        s += 7;
    } else if (!strncmp(s, "pk_", 3)) {
        op->n = 2;
        s += 3;
    }
    int to = take(&s), from = take(&s);
    op->to = (uint8_t)to;
    op->from = (uint8_t)from;
    return to >= 0 && from >= 0 && !*s;
}

bool
sim_build_cvt_scale(SimBuild *b)
{
    if (strncmp(b->name, "v_cvt_scalef32_", 15))
        return false;
    CvtOp *op = tl_arena_alloc(&b->code->arena, sizeof *op, 8);
    if (!op) {
        b->failed = true;
        return false;
    }
    memset(op, 0, sizeof *op);
    if (!parse(b->name + 15, op))
        return false;
    SimRec *r = b->r;
    const IsaOpnd *d = &b->in->opnd[0],
                  *o[3] = {sim_build_read(b, 0), sim_build_read(b, 1), sim_build_read(b, 2)};
    bool two = op->from == T_F32 && (op->interleave || (op->n == 2 && !op->sr));
    uint32_t n = 2u + (two || op->sr);
    if ((d->kind != ISA_OPND_VGPR && d->kind != ISA_OPND_AGPR) || !o[0] || !o[1] ||
        (n == 3) != (o[2] != NULL))
        return false;
    r->dst = (uint16_t)(d->reg + (d->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
    r->ndst = d->nregs;
    r->src[0] = sim_build_src(b, o[0]);
    r->src[1] = sim_build_src(b, o[1]);
    if (n == 3)
        r->src[2] = sim_build_src(b, o[2]);
    op->data2 = two ? 0 : 0xffff;
    op->seed = r->src[1];
    op->scale = r->src[n - 1];
    op->sel = b->in->op_sel;
    for (uint32_t i = 0; i < 2; i++) {
        op->neg[i] = o[i] && (o[i]->flags & ISA_NEG) != 0;
        op->abs[i] = o[i] && (o[i]->flags & ISA_ABS) != 0;
    }
    r->p = op;
    r->body = body_cvt;
    b->x->poison = POI_TUPLE;
    return true;
}
