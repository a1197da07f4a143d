/* mfma.c - matrix instructions: shapes from the mnemonic, layouts from formulas, operands decoded to rows.
 *
 * Layout (facts section 5): element e of lane l of A is row i = l % M of group q = l / M; one block: k = e +
 * E * q, several blocks: block q, k = e. B likewise with columns. Row (block, i) of D lies in one register, N
 * lanes wide.
 */
#include "sim/core.h"
#include "sim/mfma_hw.h"

#include <float.h>
#include <math.h>

/* Small float formats: exponent bits, mantissa bits. */
static const struct {
    uint8_t bits, e, m;
} formats[FMT_COUNT] = {{8, 4, 3}, {8, 5, 2}, {6, 2, 3}, {6, 3, 2}, {4, 2, 1}};

/* Value of one element; fnuz: the 8-bit formats of gfx942 (no infinity, no -0, one more bias). */
float
sim_small_float(uint32_t v, uint32_t fmt, bool fnuz)
{
    uint32_t eb = formats[fmt].e, mb = formats[fmt].m, n = formats[fmt].bits, u;
    uint32_t bias = (1u << (eb - 1)) - 1 + (fnuz && fmt <= FMT_BF8);
    uint32_t e = (v >> mb) & ((1u << eb) - 1), m = v & ((1u << mb) - 1), sign = (v >> (n - 1)) & 1;
    float f;
    if (fmt <= FMT_BF8 && (fnuz ? v == 0x80 : fmt == FMT_FP8 ? (v & 127) == 127 : e == 31 && m))
        u = 0x7fc00000;
    else if (fmt == FMT_BF8 && !fnuz && e == 31)
        u = sign << 31 | 0x7f800000;
    else if (e)
        u = sign << 31 | (e + 127 - bias) << 23 | m << (23 - mb);
    else {
        f = (float)m;
        for (uint32_t k = 0; k < bias + mb - 1; k++)
            f *= 0.5f;
        memcpy(&u, &f, 4);
        u |= sign << 31;
    }
    memcpy(&f, &u, 4);
    return f;
}

typedef struct MfmaExt {
    SimMma m;
    float lut[2][256]; /* elements of A and of B, when they are 8 bits or smaller */
    SimSrc scale[2];
    uint8_t byte[2]; /* which byte of the scale register */
    uint8_t neg;     /* f64: signs of A, B and C */
    SimHwDot hw;     /* mfma="hw", and f32 in modes that flush */
} MfmaExt;

/* Permutes lanes of one element row by cbsz, abid (A: block broadcast) or blgp (B: lane patterns). */
static void
broadcast_a(const SimMma *m, uint32_t cbsz, uint32_t abid, uint32_t *t, uint32_t rows)
{
    uint32_t mm = m->m, size = TL_MIN(1u << cbsz, 64u / mm);
    for (uint32_t e = 0; e < rows; e++) {
        uint32_t old[64];
        memcpy(old, t + e * 64, 256);
        for (uint32_t l = 0; l < 64; l++) {
            uint32_t blk = l / mm, from = (blk / size) * size + (abid & (size - 1));
            t[e * 64 + l] = old[from * mm + l % mm];
        }
    }
}
static void
pattern_b(uint32_t blgp, uint32_t *t, uint32_t rows)
{
    for (uint32_t e = 0; e < rows; e++) {
        uint32_t old[64];
        memcpy(old, t + e * 64, 256);
        for (uint32_t l = 0; l < 64; l++) {
            uint32_t from = blgp == 1   ? l & 31
                            : blgp == 2 ? (l & 31) + 32
                            : blgp == 3 ? (l + 16) & 63
                                        : (l & 15) + 16 * (blgp - 4);
            t[e * 64 + l] = old[from];
        }
    }
}

/* Element e of a lane whose elements are packed without gaps (6 bits: across dwords). */
static void
packed_rows(float *out, const uint32_t *row, uint32_t e, uint32_t bits, const float *lut)
{
    uint32_t at = e * bits, word = at / 32, sh = at % 32, mask = (1u << bits) - 1;
    bool cross = sh + bits > 32;
    for (uint32_t l = 0; l < 64; l++) {
        uint32_t v = row[word * 64 + l] >> sh;
        if (cross)
            v |= row[(word + 1) * 64 + l] << (32 - sh);
        out[l] = lut[v & mask];
    }
}

/* f8f6f4: element order in the lane to k = 32 * group + e. The 8-bit formats hold k in two chunks of 16. */
static void
canonical_rows(const MfmaExt *x, const uint32_t *row, uint32_t fmt, const float *lut, float *t)
{
    uint32_t mm = x->m.m, groups = 64 / mm;
    for (uint32_t e = 0; e < 32; e++) {
        float v[64];
        packed_rows(v, row, e, formats[fmt].bits, lut);
        if (fmt > FMT_BF8) {
            memcpy(t + e * 64, v, sizeof v);
            continue;
        }
        for (uint32_t g = 0; g < groups; g++) {
            uint32_t k = e / 16 * 16 * groups + 16 * g + e % 16;
            memcpy(t + k % 32 * 64 + k / 32 * mm, v + g * mm, 4 * mm);
        }
    }
}

/* Multiplies the 32 elements of each lane by its E8M0 scale (0xff: NaN). False: one became too large for a
 * float (none becomes too small: the least is 2^-16 * 2^-127). */
static bool
scale_rows(float *t, const uint32_t *row, uint32_t byte)
{
    float most = 0;
    for (uint32_t l = 0; l < 64; l++) {
        uint32_t s = (row[l] >> (8 * byte)) & 255, u = s == 255 ? 0x7fc00000 : s ? s << 23 : 0x00400000;
        float f, top = 0;
        memcpy(&f, &u, 4);
        for (uint32_t e = 0; e < 32; e++) {
            float m = __builtin_fabsf(t[e * 64 + l]);
            top = m > top ? m : top;
            t[e * 64 + l] *= f;
        }
        if (top * f > most && top <= FLT_MAX)
            most = top * f;
    }
    return most <= FLT_MAX;
}

/* Elements of one operand (0 = A, 1 = B) to T[e * 64 + lane]. */
static void
decode(const SimHostOps *h, const MfmaExt *x, const uint32_t *row, uint32_t which, uint32_t *t)
{
    float *f = (float *)(void *)t;
    uint32_t elems = which ? x->m.eb : x->m.ea, fmt = which ? x->m.fb : x->m.fa;
    if (x->m.type == MT_F8F6F4) {
        canonical_rows(x, row, fmt, x->lut[which], f);
        return;
    }
    for (uint32_t e = 0; e < elems; e++) {
        switch (x->m.type) {
        case MT_F32:
            memcpy(t + e * 64, row + e * 64, 256);
            break;
        case MT_XF32:
            for (uint32_t l = 0; l < 64; l++)
                t[e * 64 + l] = row[e * 64 + l] & 0xffffe000u;
            break;
        case MT_F16:
        case MT_BF16:
            h->half_rows(f + e * 64, row + e / 2 * 64, e & 1, x->m.type == MT_BF16);
            if (x->m.flush) /* below the smallest normal of the type, not 0 */
                for (uint32_t l = 0; l < 64; l++)
                    if ((t[e * 64 + l] & 0x7fffffff) - 1 < (x->m.type == MT_F16 ? 0x387fffffu : 0x007fffffu))
                        t[e * 64 + l] = 0;
            break;
        case MT_FP8:
            h->lut_rows(f + e * 64, row + e / 4 * 64, e & 3, x->lut[which]);
            break;
        case MT_I8:
            for (uint32_t l = 0; l < 64; l++)
                t[e * 64 + l] = (uint32_t)(int32_t)(int8_t)(row[e / 4 * 64 + l] >> (8 * (e & 3)));
            break;
        }
    }
}

/* Subnormals become zeros with the sign bits of `sign`; zeros stay. */
static void
flush_rows(uint32_t *d, uint32_t n, uint32_t sign)
{
    for (uint32_t i = 0; i < n * 64; i++)
        d[i] = (d[i] & 0x7fffffff) - 1 < 0x007fffffu ? d[i] & sign : d[i];
}

/* Puts C into the destination registers; the loops accumulate in place. */
static void
copy_c(SimWave *w, const SimRec *r, const SimMma *m, uint32_t *d)
{
    SimSrc c = r->src[2];
    if (c.kind == SRC_V) {
        if (c.idx != r->dst)
            memmove(d, ROW(w, c.idx), (size_t)m->nd * 256);
        return;
    }
    uint32_t t[128];
    const uint32_t *row = src_row(w, c, t);
    uint32_t step = m->type == MT_F64 ? 2 : 1;
    for (uint32_t k = 0; k < m->nd; k += step)
        memcpy(d + (size_t)k * 64, row, 256 * step);
}

static void
mfma_f64(SimWave *w, const SimRec *r, const SimMma *m, const uint32_t *a, const uint32_t *b, uint32_t *d)
{
    uint32_t neg = ((const MfmaExt *)r->p)->neg;
    double A[64], B[64];
    for (uint32_t l = 0; l < 64; l++) {
        uint64_t x = a[l] | (uint64_t)a[l + 64] << 32, y = b[l] | (uint64_t)b[l + 64] << 32;
        x ^= (uint64_t)(neg & 1) << 63;
        y ^= (uint64_t)((neg >> 1) & 1) << 63;
        memcpy(&A[l], &x, 8);
        memcpy(&B[l], &y, 8);
    }
    (void)w;
    bool small = m->n == 4;
    for (uint32_t v = 0; v < m->nd / 2u; v++)
        for (uint32_t l = 0; l < 64; l++) {
            uint64_t c = d[2 * v * 64 + l] | (uint64_t)d[(2 * v + 1) * 64 + l] << 32;
            c ^= (uint64_t)((neg >> 2) & 1) << 63;
            double acc;
            memcpy(&acc, &c, 8);
            for (uint32_t k = 0; k < 4; k++) {
                uint32_t la, lb;
                if (small) { /* A lane = 4 * block + 16 * k + i; D lane = 16 * i + 4 * block + j */
                    uint32_t i = l / 16, blk = (l / 4) & 3, j = l & 3;
                    la = 4 * blk + 16 * k + i;
                    lb = 4 * blk + 16 * k + j;
                } else { /* D: j = l % 16, i = 4 * v + l / 16 */
                    la = 16 * k + 4 * v + l / 16;
                    lb = 16 * k + l % 16;
                }
                acc = __builtin_fma(A[la], B[lb], acc);
            }
            memcpy(&c, &acc, 8);
            if (acc != acc)
                c = UINT64_C(0x7ff8000000000000);
            d[2 * v * 64 + l] = (uint32_t)c;
            d[(2 * v + 1) * 64 + l] = (uint32_t)(c >> 32);
        }
}

/* Dense column of every stored element of A: idx[row * 64 + q]. */
static void
sparse_index(const SimRec *r, const SimMma *m, const uint32_t *row, uint8_t *idx)
{
    uint32_t per = m->ea; /* stored elements a lane; two index bits each */
    uint32_t sets = 32 / (2 * per), set = r->ext->in.cbsz ? 0 : (r->ext->in.abid & (sets - 1));
    for (uint32_t l = 0; l < 64; l++) {
        uint32_t bits = row[l] >> (2 * per * set), i = l % m->m, q0 = per * (l / m->m);
        for (uint32_t e = 0; e < per; e++) {
            uint32_t q = q0 + e;
            idx[i * 64 + q] = (uint8_t)(4 * (q / 2) + ((bits >> (2 * e)) & 3));
        }
    }
}

/* One step with block scales whose products do not fit a float on the way: a * b * 2^e + c, rounded once. */
static float
scaled_fma(float a, float b, int e, float c)
{
    double p = (double)a * b; /* exact, as is its scaling */
    if (!(p != 0) || p - p != 0)
        return __builtin_fmaf(a, b, c);
    p = __builtin_ldexp(p, e);
    double m = __builtin_fabs(p);
    float half = 1; /* p = (p / half) * half, both floats; what is far too small may be any such value */
    if (m >= 0x1p100) {
        half = 0x1p64f;
        p *= 0x1p-64;
    } else if (m < 0x1p-100) {
        half = 0x1p-64f;
        p = m < 0x1p-190 ? __builtin_copysign(0x1p-126, p) : p * 0x1p64;
    }
    p = p > FLT_MAX ? FLT_MAX : p < -FLT_MAX ? -FLT_MAX : p; /* still no infinity beside an infinite C */
    return __builtin_fmaf((float)p, half, c);
}

/* f8f6f4 with scales, product by product: when a scaled element is too large for a float, its product may not
 * be. */
static void
scaled_products(const MfmaExt *x, const float *a, const float *b, const uint32_t *sa, const uint32_t *sb,
                float *d)
{
    const SimMma *m = &x->m;
    for (uint32_t s = 0; s < m->nseg; s++)
        for (uint32_t j = 0; j < m->n; j++) {
            float *c = d + m->seg_d[s] + j;
            for (uint32_t k = 0; k < m->k; k++) {
                uint32_t ia = m->koff[k] + m->seg_a[s], ib = m->koff[k] + m->seg_b[s] + j;
                uint32_t ea = (sa[ia & 63] >> (8 * x->byte[0])) & 255,
                         eb = (sb[ib & 63] >> (8 * x->byte[1])) & 255;
                *c = ea == 255 || eb == 255 ? NAN : scaled_fma(a[ia], b[ib], (int)(ea + eb) - 254, *c);
            }
            if (*c != *c)
                memcpy(c, &(uint32_t){0x7fc00000}, 4);
        }
}

static void
mfma_f8f6f4(SimWave *w, const SimRec *r, float *ta, float *tb)
{
    const MfmaExt *x = r->p;
    const SimHostOps *h = w->code->host;
    uint32_t t0[128], t1[128], sa[64], sb[64];
    float *d = (float *)(void *)ROW(w, r->dst);
    bool fits = true;
    if (x->m.scaled) {
        memcpy(sa, src_row(w, x->scale[0], t0), sizeof sa); /* D may cover the scale registers */
        memcpy(sb, src_row(w, x->scale[1], t0), sizeof sb);
        fits = scale_rows(ta, sa, x->byte[0]) & scale_rows(tb, sb, x->byte[1]);
        if (UNLIKELY(!fits)) {
            decode(h, x, src_row(w, r->src[0], t0), 0, (uint32_t *)(void *)ta);
            decode(h, x, src_row(w, r->src[1], t1), 1, (uint32_t *)(void *)tb);
        }
    }
    copy_c(w, r, &x->m, (uint32_t *)(void *)d);
    if (fits)
        h->mma_f32(d, ta, tb, &x->m);
    else
        scaled_products(x, ta, tb, sa, sb, d);
}

/* Dense, from decoded A and B. */
static inline __attribute__((always_inline)) void
mfma_dense(SimWave *w, const SimRec *r, uint32_t *ta, uint32_t *tb)
{
    const SimMma *m = &((const MfmaExt *)r->p)->m;
    const IsaInst *in = &r->ext->in;
    const SimHostOps *h = w->code->host;
    uint32_t *d = ROW(w, r->dst);
    if (UNLIKELY(in->cbsz))
        broadcast_a(m, in->cbsz, in->abid, ta, m->ea);
    if (UNLIKELY(in->blgp))
        pattern_b(in->blgp, tb, m->eb);
    copy_c(w, r, m, d);
    if (m->type == MT_I8)
        h->mma_i32((int32_t *)d, (const int32_t *)ta, (const int32_t *)tb, m);
    else {
        if (UNLIKELY(m->flush)) /* gfx90a, halves */
            flush_rows(d, m->nd, 0);
        h->mma_f32((float *)(void *)d, (const float *)(void *)ta, (const float *)(void *)tb, m);
        if (UNLIKELY(m->flush))
            flush_rows(d, m->nd, 0x80000000u);
    }
}

static const SimRec *
body_mfma(SimWave *w, const SimRec *r)
{
    const MfmaExt *x = r->p;
    const SimMma *m = &x->m;
    const SimHostOps *h = w->code->host;
    _Alignas(64) uint32_t ta[MMA_MAXE * 64], tb[MMA_MAXE * 64], t0[128], t1[128], t2[128];
    const uint32_t *a = src_row(w, r->src[0], t0), *b = src_row(w, r->src[1], t1);
    uint32_t *d = ROW(w, r->dst);
    if (m->type == MT_F64) {
        uint32_t la[128], lb[128];
        memcpy(la, a, 512);
        memcpy(lb, b, 512);
        a = la;
        b = lb;
        copy_c(w, r, m, d);
        mfma_f64(w, r, m, a, b, d);
        return NEXT(r);
    }
    decode(h, x, a, 0, ta);
    decode(h, x, b, 1, tb);
    if (m->sparse) {
        uint8_t idx[32 * 64];
        sparse_index(r, m, src_row(w, r->src[2], t2), idx);
        if (m->type == MT_I8)
            h->smma_i32((int32_t *)d, (const int32_t *)ta, (const int32_t *)tb, m, idx);
        else
            h->smma_f32((float *)(void *)d, (const float *)(void *)ta, (const float *)(void *)tb, m, idx);
        return NEXT(r);
    }
    if (m->type == MT_F8F6F4) /* cbsz and blgp are the formats there */
        mfma_f8f6f4(w, r, (float *)(void *)ta, (float *)(void *)tb);
    else
        mfma_dense(w, r, ta, tb);
    return NEXT(r);
}

/* ---- the chip's own summation
 * ------------------------------------------------------------------------------------------------------ */

/* Element bits of one operand (0 = A, 1 = B) to t[e * 64 + lane], in the order of decode(). */
static void
raw_rows(const MfmaExt *x, const uint32_t *row, uint32_t which, uint32_t *t)
{
    uint32_t elems = which ? x->m.eb : x->m.ea;
    if (x->m.type == MT_F8F6F4) {
        float same[256]; /* the number v as bits: packed elements as they are */
        for (uint32_t v = 0; v < 256; v++)
            memcpy(&same[v], &v, 4);
        canonical_rows(x, row, which ? x->m.fb : x->m.fa, same, (float *)(void *)t);
        return;
    }
    uint32_t per = x->m.type == MT_FP8 ? 4 : x->m.type == MT_F16 || x->m.type == MT_BF16 ? 2 : 1;
    uint32_t bits = 32 / per, mask = per == 1 ? ~0u : (1u << bits) - 1;
    for (uint32_t e = 0; e < elems; e++)
        for (uint32_t l = 0; l < 64; l++)
            t[e * 64 + l] = (row[e / per * 64 + l] >> (e % per * bits)) & mask;
}

static void
hw_operand(SimWave *w, const SimRec *r, uint32_t which, SimHwNum *out)
{
    const MfmaExt *x = r->p;
    const SimMma *m = &x->m;
    const IsaInst *in = &r->ext->in;
    uint32_t t[MMA_MAXE * 64], t0[128], elems = which ? m->eb : m->ea;
    raw_rows(x, src_row(w, r->src[which], t0), which, t);
    if (m->type != MT_F8F6F4 && !m->sparse) {
        if (!which && in->cbsz)
            broadcast_a(m, in->cbsz, in->abid, t, elems);
        if (which && in->blgp)
            pattern_b(in->blgp, t, elems);
    }
    for (uint32_t i = 0; i < elems * 64; i++)
        out[i] = sim_hw_num(&x->hw, which ? x->hw.fb : x->hw.fa, t[i]);
    if (m->scaled) {
        const uint32_t *s = src_row(w, x->scale[which], t0);
        for (uint32_t i = 0; i < elems * 64; i++)
            sim_hw_scale(&out[i], (s[i & 63] >> (8 * x->byte[which])) & 255);
    }
}

static const SimRec *
body_mfma_hw(SimWave *w, const SimRec *r)
{
    const MfmaExt *x = r->p;
    const SimMma *m = &x->m;
    static const uint8_t none[1] = {0};
    SimHwNum a[MMA_MAXE * 64], b[MMA_MAXE * 64], ak[MMA_MAXK], bk[MMA_MAXK];
    uint32_t t2[128], *d = ROW(w, r->dst), k = m->sparse ? m->k / 2u : m->k;
    uint8_t idx[32 * 64];
    hw_operand(w, r, 0, a);
    hw_operand(w, r, 1, b);
    const uint8_t *pos = none;
    if (m->sparse) {
        sparse_index(r, m, src_row(w, r->src[2], t2), idx);
        pos = idx;
    } else {
        copy_c(w, r, m, d);
    }
    for (uint32_t s = 0; s < m->nseg; s++) {
        const uint8_t *at = m->sparse ? pos + m->seg_a[s] * 64 : NULL;
        for (uint32_t q = 0; q < k; q++)
            ak[q] = a[(m->sparse ? m->kaoff[q] : m->koff[q]) + m->seg_a[s]];
        for (uint32_t j = 0; j < m->n; j++) {
            for (uint32_t q = 0; q < k; q++)
                bk[q] = b[m->koff[at ? at[q] : q] + m->seg_b[s] + j];
            uint32_t *c = d + m->seg_d[s] + j;
            *c = sim_hw_dot(&x->hw, ak, bk, k, *c, w->mode);
        }
    }
    return NEXT(r);
}

/* ---- f32 in modes that flush
 * ------------------------------------------------------------------------------------------------------ */

/* Smallest exponent field of what is not zero, 255 when all is. */
static int
least_exponent(const uint32_t *t, uint32_t rows)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < rows * 64; i++) {
        uint32_t m = (t[i] & 0x7fffffff) - 1; /* zero: the largest */
        least = m < least ? m : least;
    }
    return least > 0x7fffffff ? 255 : (int)((least + 1) >> 23);
}

/* MODE's f32 denormal bits: A and B obey them on every chip, C and D on gfx90a, where each step counts.
 * There, sums that are multiples of the smallest normal cannot be subnormal; the others go step by step. */
static const SimRec *
body_mfma_flush(SimWave *w, const SimRec *r)
{
    const MfmaExt *x = r->p;
    const SimMma *m = &x->m;
    bool keep_in = (w->mode >> 4) & 1, keep_out = (w->mode >> 5) & 1;
    if (keep_in && (keep_out || !x->hw.mode_c))
        return body_mfma(w, r);
    _Alignas(64) uint32_t ta[MMA_MAXE * 64], tb[MMA_MAXE * 64], t[128];
    decode(w->code->host, x, src_row(w, r->src[0], t), 0, ta);
    decode(w->code->host, x, src_row(w, r->src[1], t), 1, tb);
    if (x->hw.mode_c) {
        bool one = r->src[2].kind != SRC_V;
        int a = least_exponent(ta, m->ea), b = least_exponent(tb, m->eb);
        int c = least_exponent(src_row(w, r->src[2], t), one ? 1 : m->nd);
        if (a + b - 254 - 46 < -126 || c - 127 - 23 < -126)
            return body_mfma_hw(w, r);
    } else {
        flush_rows(ta, m->ea, 0x80000000u);
        flush_rows(tb, m->eb, 0x80000000u);
    }
    mfma_dense(w, r, ta, tb);
    return NEXT(r);
}

/* The rule of a matrix instruction; false: integers and doubles, whose default body is exact. */
static bool
hw_rule(const SimBuild *b, const SimMma *m, SimHwDot *h)
{
    static const uint8_t small[FMT_COUNT] = {SIM_HW_E4M3, SIM_HW_E5M2, SIM_HW_E2M3, SIM_HW_E3M2, SIM_HW_E2M1};
    SimHwKnown known = sim_hw_by_name(b->code->arch, b->name, h);
    if (m->type == MT_F8F6F4)
        return sim_hw_rule(b->code->arch, small[m->fa], small[m->fb], SIM_HW_D_F32, SIM_HW_MATRIX, h);
    return known == SIM_HW_HARDWARE || known == SIM_HW_ASSUMED;
}

/* ---- shapes
 * ------------------------------------------------------------------------------------------------------ */

/* v_mfma_<type of D>_MxNxK[_<n>b]_<type of A>[_<type of B>]; gfx90a: MxNxK<type> without blocks, which the
 * registers of D tell. */
static bool
parse_mfma(const SimBuild *b, SimMma *m, bool *f64)
{
    static const struct {
        const char *name;
        uint8_t type, bits, fa, fb;
    } types[] = {
        {"f32", MT_F32, 32, 0, 0},          {"xf32", MT_XF32, 32, 0, 0},
        {"f16", MT_F16, 16, 0, 0},          {"bf16", MT_BF16, 16, 0, 0},
        {"bf16_1k", MT_BF16, 16, 0, 0},     {"i8", MT_I8, 8, 0, 0},
        {"fp8_fp8", MT_FP8, 8, 0, 0},       {"fp8_bf8", MT_FP8, 8, 0, FMT_BF8},
        {"bf8_fp8", MT_FP8, 8, FMT_BF8, 0}, {"bf8_bf8", MT_FP8, 8, FMT_BF8, FMT_BF8},
        {"f64", MT_F64, 64, 0, 0},          {"f8f6f4", MT_F8F6F4, 8, 0, 0},
    };
    const IsaInst *in = b->in;
    memset(m, 0, sizeof *m);
    m->sparse = !strncmp(b->name, "v_smfmac_", 9);
    m->scaled = !strncmp(b->name, "v_mfma_scale_", 13);
    const char *s = strchr(b->name + (m->scaled ? 13 : m->sparse ? 9 : 7), '_'); /* after the type of D */
    unsigned mm, nn, kk, blocks = 1;
    int used = 0;
    if (!s || sscanf(s, "_%ux%ux%u%n", &mm, &nn, &kk, &used) != 3)
        return false;
    s += used;
    int used2 = 0;
    if (sscanf(s, "_%ub_%n", &blocks, &used2) == 1 && used2)
        s += used2;
    else
        s += *s == '_';
    uint32_t t = 0;
    while (t < TL_COUNT(types) && strcmp(types[t].name, s))
        t++;
    if (t == TL_COUNT(types) || mm != nn || (mm != 32 && mm != 16 && mm != 4) || kk > MMA_MAXK)
        return false;
    *f64 = types[t].type == MT_F64;
    blocks = in->opnd[0].nregs * 64u / (mm * nn) / (*f64 ? 2 : 1);
    m->type = types[t].type;
    m->fa = types[t].fa;
    m->fb = types[t].fb;
    if (m->type == MT_F8F6F4) {
        m->fa = in->cbsz;
        m->fb = in->blgp;
        if (m->fa >= FMT_COUNT || m->fb >= FMT_COUNT)
            return false;
    }
    m->flush = b->code->arch == ISA_GFX90A && (m->type == MT_F16 || m->type == MT_BF16);
    m->m = (uint8_t)mm;
    m->n = (uint16_t)nn;
    m->k = (uint16_t)kk;
    m->blocks = (uint8_t)blocks;
    uint32_t groups = 64 / mm; /* lanes / M: blocks, or groups of k */
    if (!blocks || (blocks > 1 && blocks != groups && !*f64))
        return false;
    m->eb = (uint16_t)(blocks > 1 ? kk : kk / groups);
    m->ea = (uint16_t)(m->sparse ? m->eb / 2 : m->eb);
    if (m->eb > MMA_MAXE)
        return false;
    uint32_t ba = m->type == MT_F8F6F4 ? formats[m->fa].bits : TL_MIN(types[t].bits, 32u);
    uint32_t bb = m->type == MT_F8F6F4 ? formats[m->fb].bits : TL_MIN(types[t].bits, 32u);
    m->na = (uint16_t)(*f64 ? 2 : (m->ea * ba + 31) / 32);
    m->nb = (uint16_t)(*f64 ? 2 : (m->eb * bb + 31) / 32);
    m->nd = (uint16_t)(mm * nn * blocks / 64 * (*f64 ? 2 : 1));
    return true;
}

static void
layout_mfma(SimMma *m)
{
    uint32_t mm = m->m, n = 0, groups = 64 / mm;
    for (uint32_t k = 0; k < m->k; k++) /* several blocks: k = e */
        m->koff[k] = (uint16_t)(m->blocks > 1 ? k * 64 : k % m->eb * 64 + k / m->eb * mm);
    for (uint32_t q = 0; m->sparse && q < m->k / 2u; q++)
        m->kaoff[q] = (uint16_t)(q % m->ea * 64 + q / m->ea * mm);
    for (uint32_t blk = 0; blk < m->blocks; blk++)
        for (uint32_t i = 0; i < mm; i++) {
            uint32_t reg, lane;
            if (mm == 32) { /* i = 8 * (r / 4) + 4 * (l / 32) + r % 4 */
                reg = blk * 16 + i / 8 * 4 + i % 4;
                lane = i / 4 % 2 * 32;
            } else if (mm == 16) { /* i = 4 * (l / 16) + r % 4 */
                reg = blk * 4 + i % 4;
                lane = i / 4 * 16;
            } else {
                reg = i;
                lane = blk * 4;
            }
            m->seg_d[n] = (uint16_t)(reg * 64 + lane);
            m->seg_a[n] = (uint16_t)(blk * mm + i);
            m->seg_b[n] = (uint16_t)(blk * mm);
            n++;
        }
    (void)groups;
    m->nseg = (uint16_t)n;
}

bool
sim_build_mfma(SimBuild *b)
{
    if (!strncmp(b->name, "v_wmma_", 7) || !strncmp(b->name, "v_swmmac_", 9))
        return sim_build_wmma(b);
    SimRec *r = b->r;
    const IsaInst *in = b->in;
    SimMma m;
    bool f64;
    if (strncmp(b->name, "v_mfma_", 7) && strncmp(b->name, "v_smfmac_", 9))
        return false;
    if (!parse_mfma(b, &m, &f64))
        return false;
    MfmaExt *x = tl_arena_alloc(&b->code->arena, sizeof *x, 64);
    if (!x) {
        b->failed = true;
        return false;
    }
    if (!f64)
        layout_mfma(&m);
    x->m = m;
    if (m.type == MT_FP8 || m.type == MT_F8F6F4)
        for (uint32_t v = 0; v < 256; v++) {
            bool fnuz = b->code->arch == ISA_GFX942;
            x->lut[0][v] = sim_small_float(v, m.fa, fnuz);
            x->lut[1][v] = sim_small_float(v, m.fb, fnuz);
        }
    const IsaOpnd *d = &in->opnd[0];
    if (d->nregs != m.nd)
        return false;
    r->dst = (uint16_t)(d->reg + (d->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
    r->ndst = d->nregs;
    for (uint32_t i = 0; i < 3; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o)
            return false;
        r->src[i] = sim_build_src(b, o);
        if (i < 2 && (r->src[i].kind != SRC_V || o->nregs != (i ? m.nb : m.na)))
            return false;
    }
    for (uint32_t i = 0; i < 2 && m.scaled; i++) {
        const IsaOpnd *o = sim_build_read(b, 3 + i);
        if (!o)
            return false;
        x->scale[i] = sim_build_src(b, o);
        x->byte[i] = ((in->op_sel >> i) & 1) | ((in->op_sel_hi >> i) & 1) << 1;
    }
    r->p = x;
    x->neg = b->code->arch == ISA_GFX90A ? 0 : in->blgp; /* gfx90a has no signs there */
    r->body = body_mfma;
    if ((b->cls & MODE_HW) && m.type != MT_I8 && !f64) {
        if (!hw_rule(b, &m, &x->hw))
            return false;
        r->body = body_mfma_hw;
    } else if (m.type == MT_F32 && (b->cls & (MODE_ODD | MODE_FLUSH))) {
        if (!hw_rule(b, &m, &x->hw))
            return false;
        r->body = body_mfma_flush;
    }
    b->x->poison = POI_MFMA;
    b->x->mfma = &x->m;
    return true;
}
