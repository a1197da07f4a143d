/* wmma.c - matrix instructions of gfx11 and gfx12: WMMA and its sparse form SWMMAC, 16x16 tiles.
 *
 * Layout (element e of the registers of a lane, in order of bits; E elements a lane; h = lane / 16):
 *   gfx11: A row i = lane % 16, k = e, the same in each 16 lanes (the lowest are read). D: register r, row 2
 * * r + h, column lane % 16; waves of 64 lanes: 4 * r + h. A 16-bit D is one half of its register, picked by
 * op_sel[2]; the other half is kept. gfx12: A row i = lane % 16, k = 2 * R * (e / R) + R * h + e % R with R =
 * E / 2 for 16-bit elements, else E. D: row 8 * h + r, 16-bit: 8 * h + 2 * r + half. Waves of 64 lanes:
 * lanes 32..63 hold the upper half of the registers that lanes 0..31 of a wave of 32 have (rows of D so in
 * Mesa's compiler; k is a choice that the sum over k does not show). A tuple of one register is not divided:
 * lanes 0..31 hold it (LLVM gives its index sets 16 bits, as for a whole register). B as A with columns.
 * Stored elements of a sparse A have k / 2 places; the index register of a lane has two bits for each of its
 * own stored elements. EXEC is ignored.
 *
 * Sums: one fused multiply-add a step, k ascending, rounded to the type of D; mfma="hw": mfma_hw.h.
 */
#include <math.h>

#include "sim/bits.h"
#include "sim/core.h"
#include "sim/mfma_hw.h"

typedef enum WmmaOut { OUT_F32, OUT_F16, OUT_BF16, OUT_I32 } WmmaOut;

typedef struct WmmaOperand { /* A or B */
    uint8_t bits, regs, elems, groups,
        run;        /* elements and registers of a lane; groups of 16 lanes that are read */
    bool halves;    /* lanes 32..63: the upper elements */
    bool sign;      /* integers: signed */
    uint8_t neg[2]; /* floats: negate even, odd elements */
} WmmaOperand;

typedef struct WmmaExt {
    SimMma m;
    WmmaOperand a, b;
    WmmaOut out;
    bool clamp, neg_c, abs_c, high;
    uint32_t c_const; /* C is a constant: bits of the type of D */
    uint8_t key;      /* index set of a sparse A */
    float lut[2][256];
    SimHwDot hw;
} WmmaExt;

enum { DIM = 16, TROWS = MMA_MAXE };

/* ---- elements ---- */

/* k of element e of a lane of group h. */
static uint32_t
k_of(const WmmaOperand *o, uint32_t e, uint32_t h)
{
    if (o->groups == 1)
        return e;
    if (o->halves) {
        e += h / 2 * o->elems;
        h %= 2;
    }
    return 2 * o->run * (e / o->run) + o->run * h + e % o->run;
}

/* Bits of element e of all lanes. */
static void
raw_row(const WmmaOperand *o, const uint32_t *row, uint32_t e, uint32_t *out)
{
    uint32_t at = e * o->bits, sh = at % 32, mask = (1u << o->bits) - 1;
    for (uint32_t l = 0; l < 64; l++)
        out[l] = row[at / 32 * 64 + l] >> sh & mask;
}

/* One element of all lanes as a float or an integer, modifiers applied. */
static void
value_row(const SimHostOps *h, const WmmaExt *x, const WmmaOperand *o, const uint32_t *row, uint32_t e,
          uint32_t *out)
{
    float *f = (float *)(void *)out;
    switch (x->m.type) {
    case MT_F16:
    case MT_BF16:
        h->half_rows(f, row + e / 2 * 64, e & 1, x->m.type == MT_BF16);
        if (o->neg[e & 1])
            for (uint32_t l = 0; l < 64; l++)
                out[l] ^= 0x80000000u;
        break;
    case MT_FP8:
        h->lut_rows(f, row + e / 4 * 64, e & 3, x->lut[o == &x->b]);
        break;
    default:
        raw_row(o, row, e, out);
        for (uint32_t l = 0; o->sign && l < 64; l++)
            out[l] = (uint32_t)((int32_t)(out[l] << (32 - o->bits)) >> (32 - o->bits));
        break;
    }
}

/* T[k * 64 + i]: element k of row (A) or column (B) i; raw: bits, with the sign already changed. */
static void
gather(SimWave *w, const WmmaExt *x, const WmmaOperand *o, const uint32_t *row, bool raw, uint32_t *t)
{
    uint32_t one[64];
    for (uint32_t e = 0; e < o->elems; e++) {
        if (raw) {
            raw_row(o, row, e, one);
            for (uint32_t l = 0; o->neg[e & 1] && l < 64; l++)
                one[l] ^= 1u << (o->bits - 1);
        } else {
            value_row(w->code->host, x, o, row, e, one);
        }
        for (uint32_t h = 0; h < o->groups; h++)
            memcpy(t + k_of(o, e, h) * 64, one + h * DIM, DIM * 4);
    }
}

/* Dense k of every stored element of A: idx[row * 64 + q]. */
static void
sparse_index(const WmmaExt *x, const uint32_t *row, uint8_t *idx)
{
    const WmmaOperand *a = &x->a;
    for (uint32_t e = 0; e < a->elems; e++)
        for (uint32_t h = 0; h < a->groups; h++) {
            uint32_t q = k_of(a, e, h);
            for (uint32_t i = 0; i < DIM; i++)
                idx[i * 64 + q] =
                    (uint8_t)(4 * (q / 2) + (row[h * DIM + i] >> (2 * (x->key * a->elems + e)) & 3));
        }
}

/* ---- 16-bit results ---- */

static double
narrow_value(uint32_t bits, WmmaOut out)
{
    return out == OUT_BF16 ? sim_f32(bits << 16) : sim_f16(bits);
}

/* x + y to nearest even in a float format with `mant` bits of mantissa and normal exponents from `emin`; the
 * sum of the two doubles is first rounded to odd, so that nothing is rounded twice. */
static uint32_t
narrow_sum(double x, double y, WmmaOut out)
{
    int mant = out == OUT_F16 ? 10 : 7, emin = out == OUT_F16 ? -14 : -126, emax = out == OUT_F16 ? 15 : 127;
    double s = x + y, xx = s - y, err = (x - xx) + (y - (s - xx));
    uint64_t u;
    memcpy(&u, &s, 8);
    uint32_t sign = u >> 63 ? 0x8000 : 0, inf = (uint32_t)(emax + emax + 1) << mant;
    if (s != s)
        return inf | 1u << (mant - 1);
    if (isinf(s) || s == 0)
        return sign | (s == 0 ? 0 : inf);
    if (err != 0 && !(u & 1)) {
        u = (err > 0) == (s > 0) ? u + 1 : u - 1; /* away from, or towards 0 */
        memcpy(&s, &u, 8);
    }
    int e;
    frexp(s, &e);
    e = e - 1 < emin ? emin : e - 1;
    double n = rint(ldexp(fabs(s), mant - e)); /* of the last place */
    uint32_t r = ((uint32_t)(e - emin) << mant) + (uint32_t)n;
    return sign | (r > inf ? inf : r);
}

/* Place of D's row i: register and first lane; 16 bits: half of the register. */
static void
place_of(const WmmaExt *x, bool gfx12, bool wave64, uint32_t i, uint32_t *at, uint32_t *half)
{
    bool narrow = x->out == OUT_F16 || x->out == OUT_BF16;
    uint32_t per = wave64 ? 4 : 2, h, r;
    *half = x->high;
    if (!gfx12) {
        r = i / per;
        h = i % per;
    } else {
        h = i / 8;
        r = i % 8;
        if (narrow) {
            *half = r & 1;
            r /= 2;
        }
        uint32_t regs = narrow ? 2 : 4; /* of a wave of 64 lanes */
        if (wave64) {
            h += r / regs * 2;
            r %= regs;
        }
    }
    *at = r * 64 + h * DIM;
}

static uint32_t
modified_c(const WmmaExt *x, uint32_t c, uint32_t sign)
{
    if (x->abs_c)
        c &= ~sign;
    return x->neg_c ? c ^ sign : c;
}

/* C and D with 16 bits; T are floats, or bits for the chip's own sum. */
static void
narrow_tile(SimWave *w, const SimRec *r, const WmmaExt *x, const uint32_t *ta, const uint32_t *tb,
            const uint8_t *idx)
{
    bool gfx12 = w->code->arch == ISA_GFX1201, wave64 = w->lane_mask == ~UINT64_C(0),
         hw = x->hw.rule != SIM_HW_NONE;
    const float *fa = (const float *)(const void *)ta, *fb = (const float *)(const void *)tb;
    uint32_t n = x->m.sparse ? x->m.k / 2u : x->m.k, ak[MMA_MAXK], bk[MMA_MAXK];
    const uint32_t *crow = x->m.sparse               ? ROW(w, r->dst)
                           : r->src[2].kind == SRC_V ? ROW(w, r->src[2].idx)
                                                     : NULL;
    uint32_t out[DIM][DIM];
    for (uint32_t i = 0; i < DIM; i++)
        for (uint32_t j = 0; j < DIM; j++) {
            uint32_t at, half;
            place_of(x, gfx12, wave64, i, &at, &half);
            uint32_t c = crow ? crow[at + j] >> 16 * half & 0xffff : x->c_const;
            c = modified_c(x, c, 0x8000);
            for (uint32_t q = 0; q < n; q++) {
                uint32_t k = idx ? idx[i * 64 + q] : q;
                ak[q] = ta[q * 64 + i];
                bk[q] = tb[k * 64 + j];
                if (!hw)
                    c = narrow_sum((double)fa[q * 64 + i] * fb[k * 64 + j], narrow_value(c, x->out), x->out);
            }
            out[i][j] = hw ? sim_hw_dot_bits(&x->hw, ak, bk, n, c, w->mode) : c;
        }
    for (uint32_t i = 0; i < DIM; i++) {
        uint32_t at, half;
        place_of(x, gfx12, wave64, i, &at, &half);
        uint32_t *d = ROW(w, r->dst) + at;
        for (uint32_t j = 0; j < DIM; j++)
            d[j] = half ? (d[j] & 0xffff) | out[i][j] << 16 : (d[j] & 0xffff0000u) | (out[i][j] & 0xffff);
    }
}

/* ---- 32-bit results ---- */

/* Puts C into D. */
static void
copy_c(SimWave *w, const SimRec *r, const WmmaExt *x)
{
    uint32_t *d = ROW(w, r->dst), n = x->m.nd * 64u;
    if (!x->m.sparse) {
        if (r->src[2].kind != SRC_V)
            for (uint32_t i = 0; i < n; i++)
                d[i] = x->c_const;
        else if (r->src[2].idx != r->dst)
            memmove(d, ROW(w, r->src[2].idx), (size_t)n * 4);
    }
    if (x->neg_c || x->abs_c)
        for (uint32_t i = 0; i < n; i++)
            d[i] = modified_c(x, d[i], 0x80000000u);
}

/* The final sum saturates. */
static void
clamp_tile(const SimMma *m, int32_t *d, const int32_t *ta, const int32_t *tb, const uint8_t *idx)
{
    uint32_t n = m->sparse ? m->k / 2u : m->k;
    for (uint32_t i = 0; i < DIM; i++)
        for (uint32_t j = 0; j < DIM; j++) {
            int64_t sum = d[m->seg_d[i] + j];
            for (uint32_t q = 0; q < n; q++)
                sum += (int64_t)ta[q * 64 + i] * tb[(idx ? idx[i * 64 + q] : q) * 64 + j];
            d[m->seg_d[i] + j] = (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
        }
}

static void
hw_tile(SimWave *w, const WmmaExt *x, uint32_t *d, const uint32_t *ta, const uint32_t *tb, const uint8_t *idx)
{
    const SimMma *m = &x->m;
    uint32_t n = m->sparse ? m->k / 2u : m->k, ak[MMA_MAXK], bk[MMA_MAXK];
    for (uint32_t i = 0; i < DIM; i++)
        for (uint32_t j = 0; j < DIM; j++) {
            for (uint32_t q = 0; q < n; q++) {
                ak[q] = ta[q * 64 + i];
                bk[q] = tb[(idx ? idx[i * 64 + q] : q) * 64 + j];
            }
            uint32_t *c = d + m->seg_d[i] + j;
            *c = sim_hw_dot_bits(&x->hw, ak, bk, n, *c, w->mode);
        }
}

static const SimRec *
body_wmma(SimWave *w, const SimRec *r)
{
    const WmmaExt *x = r->p;
    const SimMma *m = &x->m;
    const SimHostOps *h = w->code->host;
    _Alignas(64) uint32_t ta[TROWS * 64], tb[TROWS * 64];
    uint8_t table[DIM * 64], *idx = m->sparse ? table : NULL;
    bool hw = x->hw.rule != SIM_HW_NONE;
    uint32_t *d = ROW(w, r->dst);
    gather(w, x, &x->a, ROW(w, r->src[0].idx), hw, ta);
    gather(w, x, &x->b, ROW(w, r->src[1].idx), hw, tb);
    if (m->sparse)
        sparse_index(x, ROW(w, r->src[2].idx), table);
    if (x->out == OUT_F16 || x->out == OUT_BF16) {
        narrow_tile(w, r, x, ta, tb, idx);
        return NEXT(r);
    }
    copy_c(w, r, x);
    if (hw)
        hw_tile(w, x, d, ta, tb, idx);
    else if (x->out == OUT_I32 && x->clamp)
        clamp_tile(m, (int32_t *)d, (const int32_t *)ta, (const int32_t *)tb, idx);
    else if (x->out == OUT_I32 && m->sparse)
        h->smma_i32((int32_t *)d, (const int32_t *)ta, (const int32_t *)tb, m, idx);
    else if (x->out == OUT_I32)
        h->mma_i32((int32_t *)d, (const int32_t *)ta, (const int32_t *)tb, m);
    else if (m->sparse)
        h->smma_f32((float *)(void *)d, (const float *)(void *)ta, (const float *)(void *)tb, m, idx);
    else
        h->mma_f32((float *)(void *)d, (const float *)(void *)ta, (const float *)(void *)tb, m);
    return NEXT(r);
}

/* ---- shapes ---- */

/* v_wmma_<D>_16x16x<K>_<A>[_<B>] */
static bool
parse_wmma(const char *name, WmmaExt *x)
{
    static const struct {
        const char *name;
        uint8_t type, bits, fa, fb;
    } types[] = {
        {"f16", MT_F16, 16, 0, 0},
        {"bf16", MT_BF16, 16, 0, 0},
        {"iu8", MT_I8, 8, 0, 0},
        {"iu4", MT_I8, 4, 0, 0},
        {"fp8_fp8", MT_FP8, 8, FMT_FP8, FMT_FP8},
        {"fp8_bf8", MT_FP8, 8, FMT_FP8, FMT_BF8},
        {"bf8_fp8", MT_FP8, 8, FMT_BF8, FMT_FP8},
        {"bf8_bf8", MT_FP8, 8, FMT_BF8, FMT_BF8},
    };
    static const char *const outs[] = {"f32", "f16", "bf16", "i32"};
    char d[8], ab[16];
    unsigned k;
    x->m.sparse = !strncmp(name, "v_swmmac_", 9);
    if (sscanf(name + (x->m.sparse ? 9 : 7), "%7[a-z0-9]_16x16x%u_%15s", d, &k, ab) != 3 || k > TROWS)
        return false;
    uint32_t t = 0, o = 0;
    while (t < TL_COUNT(types) && strcmp(types[t].name, ab))
        t++;
    while (o < TL_COUNT(outs) && strcmp(outs[o], d))
        o++;
    if (t == TL_COUNT(types) || o == TL_COUNT(outs))
        return false;
    x->out = (WmmaOut)o;
    x->m.type = types[t].type;
    x->m.fa = types[t].fa;
    x->m.fb = types[t].fb;
    x->m.m = x->m.n = DIM;
    x->m.blocks = 1;
    x->m.k = (uint16_t)k;
    x->a.bits = x->b.bits = types[t].bits;
    return true;
}

/* Lanes and elements of an operand of k elements. False: the registers do not fit. */
static bool
shape_operand(WmmaOperand *o, uint32_t k, uint32_t regs, bool gfx12, bool wave64)
{
    uint32_t whole = k * o->bits * (gfx12 ? 1 : 2) / 64; /* registers in a wave of 32 lanes */
    o->halves = gfx12 && wave64 && whole > 1;
    o->groups = (uint8_t)(!gfx12 ? 1 : o->halves ? 4 : 2);
    o->elems = (uint8_t)(k / o->groups);
    o->regs = (uint8_t)regs;
    uint32_t all = k / 2; /* elements of a lane in a wave of 32 lanes */
    o->run = (uint8_t)(o->bits == 16 ? all / 2 : all);
    return regs == (o->halves ? whole / 2 : whole);
}

/* Bits of a constant C in the type of D; the decoder gives it as a float or an integer of 32 bits. */
static uint32_t
constant_c(const IsaOpnd *o, WmmaOut out)
{
    int32_t i = (int32_t)o->bits;
    if (out == OUT_F32 || out == OUT_I32 || (i >= -16 && i <= 64))
        return out == OUT_F32 || out == OUT_I32 ? o->bits : o->bits & 0xffff;
    float f;
    memcpy(&f, &o->bits, 4);
    return out == OUT_BF16 ? o->bits >> 16 : narrow_sum(f, 0, OUT_F16);
}

static void
layout(WmmaExt *x, bool gfx12, bool wave64)
{
    SimMma *m = &x->m;
    m->nseg = DIM;
    m->ea = x->a.elems;
    m->eb = x->b.elems;
    m->na = x->a.regs;
    m->nb = x->b.regs;
    for (uint32_t k = 0; k < m->k; k++)
        m->koff[k] = m->kaoff[k] = (uint16_t)(k * 64);
    for (uint32_t i = 0; i < DIM; i++) {
        uint32_t at, half;
        place_of(x, gfx12, wave64, i, &at, &half);
        m->seg_d[i] = (uint16_t)at;
        m->seg_a[i] = (uint16_t)i;
    }
}

static void
modifiers(const IsaInst *in, WmmaExt *x)
{
    bool ints = x->m.type == MT_I8;
    WmmaOperand *o[2] = {&x->a, &x->b};
    for (uint32_t i = 0; i < 2; i++) {
        o[i]->sign = ints && (in->neg_lo >> i & 1);
        o[i]->neg[0] = !ints && (in->neg_lo >> i & 1);
        o[i]->neg[1] = !ints && (in->neg_hi >> i & 1);
    }
    x->neg_c = !ints && (in->neg_lo >> 2 & 1);
    x->abs_c = !ints && (in->neg_hi >> 2 & 1);
    x->clamp = in->clamp;
}

static bool
hw_rule(const SimBuild *b, WmmaExt *x)
{
    SimHwKnown known = sim_hw_by_name(b->code->arch, b->name, &x->hw);
    if (known == SIM_HW_EXACT)
        x->hw.rule = SIM_HW_NONE;
    return known == SIM_HW_EXACT || known == SIM_HW_ASSUMED || known == SIM_HW_HARDWARE;
}

bool
sim_build_wmma(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    bool gfx12 = b->code->arch == ISA_GFX1201, wave64 = b->code->wave64;
    WmmaExt *x = tl_arena_alloc(&b->code->arena, sizeof *x, 64);
    if (!x) {
        b->failed = true;
        return false;
    }
    memset(x, 0, sizeof *x);
    if (!parse_wmma(b->name, x))
        return false;
    SimMma *m = &x->m;
    const IsaOpnd *d = &in->opnd[0], *s[3];
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = sim_build_read(b, i);
        if (!s[i])
            return false;
        r->src[i] = sim_build_src(b, s[i]);
        if ((i < 2 || m->sparse) && r->src[i].kind != SRC_V)
            return false;
    }
    if (!shape_operand(&x->a, m->sparse ? m->k / 2u : m->k, s[0]->nregs, gfx12, wave64) ||
        !shape_operand(&x->b, m->k, s[1]->nregs, gfx12, wave64))
        return false;
    modifiers(in, x);
    bool narrow = x->out == OUT_F16 || x->out == OUT_BF16;
    x->high = !gfx12 && narrow && (in->op_sel >> 2 & 1);
    x->key = in->index_key;
    if (!m->sparse && r->src[2].kind == SRC_C)
        x->c_const = constant_c(s[2], x->out);
    else if (!m->sparse && r->src[2].kind != SRC_V)
        return false; /* no scalar registers */
    m->nd = (uint16_t)((gfx12 && narrow ? 4 : 8) / (wave64 ? 2 : 1));
    if (d->nregs != m->nd || (!m->sparse && r->src[2].kind == SRC_V && s[2]->nregs != m->nd))
        return false;
    layout(x, gfx12, wave64);
    for (uint32_t v = 0; m->type == MT_FP8 && v < 256; v++) {
        x->lut[0][v] = sim_small_float(v, m->fa, false);
        x->lut[1][v] = sim_small_float(v, m->fb, false);
    }
    if ((b->cls & MODE_HW) && !hw_rule(b, x))
        return false;
    r->dst = d->reg;
    r->ndst = d->nregs;
    r->p = x;
    r->body = body_wmma;
    b->x->poison = POI_MFMA;
    b->x->mfma = m;
    return true;
}
