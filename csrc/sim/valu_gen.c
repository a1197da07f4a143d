/* valu_gen.c - the general VALU wrapper: source and result modifiers, half selection, packed selections, DPP,
 * SDWA, rounding and denormal modes other than the default. Sources are copied to rows of their own, changed
 * there, and the kernel runs on the copies.
 */
#include "sim/bits.h"
#include "sim/valu.h"
#include <fenv.h>

#define EACH(i) for (int i = 0; i < LANES; i++)

/* ---- DPP
 * ------------------------------------------------------------------------------------------------------- */

void
sim_dpp_lanes(const IsaInst *in, uint8_t lane[64], uint64_t *write)
{
    uint32_t c = in->dpp_ctrl;
    *write = 0;
    if (in->form == ISA_DPP8) {
        for (uint32_t i = 0; i < 64; i++)
            lane[i] = (uint8_t)((i & ~7u) + ((in->dpp8 >> (3 * (i & 7))) & 7));
        *write = UINT64_MAX;
        return;
    }
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t row = i & ~15u, col = i & 15, s = 255, n = c & 15;
        if (c <= 0xff)
            s = (i & ~3u) + ((c >> (2 * (i & 3))) & 3);
        else if (c >= 0x101 && c <= 0x10f)
            s = col + n < 16 ? i + n : 255;
        else if (c >= 0x111 && c <= 0x11f)
            s = col >= n ? i - n : 255;
        else if (c >= 0x121 && c <= 0x12f)
            s = row + ((col - n) & 15);
        else if (c == 0x130)
            s = i < 63 ? i + 1 : 255;
        else if (c == 0x134)
            s = (i + 1) & 63;
        else if (c == 0x138)
            s = i ? i - 1 : 255;
        else if (c == 0x13c)
            s = (i - 1) & 63;
        else if (c == 0x140)
            s = row + 15 - col;
        else if (c == 0x141)
            s = (i & ~7u) + 7 - (i & 7);
        else if (c == 0x142)
            s = row ? row - 1 : 255;
        else if (c == 0x143)
            s = i >= 32 ? 31 : 255;
        else if (c >= 0x150 && c <= 0x15f)
            s = row + n;
        else if (c >= 0x160 && c <= 0x16f)
            s = row + (col ^ n);
        lane[i] = (uint8_t)s;
        if (((in->row_mask >> (i >> 4)) & 1) && ((in->bank_mask >> ((i & 15) >> 2)) & 1))
            *write |= UINT64_C(1) << i;
    }
}

bool
sim_build_dpp(SimBuild *b)
{
    SimDpp *d = tl_arena_alloc(&b->code->arena, sizeof *d, 64);
    if (!d)
        return !(b->failed = true);
    sim_dpp_lanes(b->in, d->lane, &d->write);
    d->none = 0;
    for (uint32_t i = 0; i < LANES; i++)
        if (d->lane[i] == 255) {
            d->lane[i] = 0;
            d->none |= UINT64_C(1) << i;
        }
    b->x->dpp = d;
    return true;
}

/* Moves src0 (n rows) by DPP; returns the lanes that may be written. */
uint64_t
sim_apply_dpp(SimWave *w, const SimExt *x, const uint32_t *src, uint32_t *out, uint32_t n)
{
    const SimDpp *d = x->dpp;
    uint64_t exec = EXEC(w), ok = ~d->none;
    if (!x->in.fi && exec != w->lane_mask) {
        uint64_t on = 0;
        for (uint32_t i = 0; i < LANES; i++)
            on |= ((exec >> d->lane[i]) & 1) << i;
        ok &= on;
    }
    for (uint32_t k = 0; k < n; k++)
        EACH(i)
    out[k * LANES + i] = src[k * LANES + d->lane[i]];
    if (ok != UINT64_MAX) { /* what has no source reads 0 */
        uint32_t mask[LANES];
        sim_mask_expand(ok, mask);
        for (uint32_t k = 0; k < n; k++)
            EACH(i)
        out[k * LANES + i] &= mask[i];
    }
    return sim_dpp_zero(&x->in) ? d->write : d->write & ok;
}

/* ---- SDWA
 * ------------------------------------------------------------------------------------------------------ */

static void
apply_sel(uint32_t *row, uint8_t sel, bool sext)
{
    uint32_t sh = sel < 4 ? 8u * sel : sel == 5 ? 16 : 0, bits = sel < 4 ? 8 : sel < 6 ? 16 : 32;
    if (bits == 32)
        return;
    if (sext)
        EACH(i)
    row[i] = (uint32_t)((int32_t)(row[i] << (32 - sh - bits)) >> (32 - bits));
    else EACH(i) row[i] = (row[i] >> sh) & ((1u << bits) - 1);
}

static void
merge_sel(uint32_t *v, const uint32_t *old, uint8_t sel, uint8_t unused)
{
    uint32_t sh = sel < 4 ? 8u * sel : sel == 5 ? 16 : 0, bits = sel < 4 ? 8 : sel < 6 ? 16 : 32;
    if (bits == 32)
        return;
    uint32_t keep = ((1u << bits) - 1) << sh;
    EACH(i)
    {
        uint32_t x = (v[i] << sh) & keep;
        if (unused == 1) { /* sign-extend into the bits above, zero below */
            uint32_t top = (uint32_t)((int32_t)(v[i] << (32 - bits)) >> (32 - bits));
            x = sh + bits < 32 ? (x | (top >> (bits - 1) & 1 ? ~0u << (sh + bits) : 0)) : x;
        } else if (unused == 2) {
            x |= old[i] & ~keep;
        }
        v[i] = x;
    }
}

/* ---- sources
 * --------------------------------------------------------------------------------------------------- */

static const IsaOpnd *
gen_opnd(const SimExt *x, uint32_t nth)
{
    for (uint32_t i = x->in.ndst; i < x->in.nopnds; i++)
        if (!(x->in.opnd[i].flags & ISA_IMPLICIT) && nth-- == 0)
            return &x->in.opnd[i];
    return NULL;
}

static void
sign_ops(uint32_t *row, uint32_t bit, bool neg, bool abs_)
{
    if (abs_)
        EACH(i)
    row[i] &= ~bit;
    if (neg)
        EACH(i)
    row[i] ^= bit;
}

/* Is the upper half of the register the source? A vector register says so itself where 16-bit operands name
 * halves, a scalar by op_sel. */
static bool
takes_high(const IsaOpnd *o, uint8_t type, bool sel)
{
    if (o && o->half)
        return o->half == 2;
    return sel && (sim_type_is16(type) || (o && type == KT_U32 && o->type == ISA_T_F16));
}

/* Selections and signs of source i (rows in t, changed in place). */
static void
modify_source(const SimExt *x, uint32_t i, uint32_t *t)
{
    const IsaInst *in = &x->in;
    const SimOpDesc *d = x->desc;
    const IsaOpnd *o = gen_opnd(x, i);
    if (!o && (d->flags & OPF_FMAC) && i == 2) /* the destination's half is the addend */
        o = &in->opnd[0];
    uint8_t type = d->t[i];
    bool neg = o && (o->flags & ISA_NEG), abs_ = o && (o->flags & ISA_ABS), sel = (in->op_sel >> i) & 1,
         selhi = (in->op_sel_hi >> i) & 1;
    if (d->flags & OPF_MIX) {
        if (selhi)
            EACH(l)
        t[l] = sim_f32_bits(sim_f16(sel ? t[l] >> 16 : t[l]));
        sign_ops(t, 0x80000000u, neg || ((in->neg_lo >> i) & 1), abs_ || ((in->neg_hi >> i) & 1));
        return;
    }
    if (in->form == ISA_SDWA) {
        uint8_t s = i == 0 ? in->src0_sel : in->src1_sel;
        if (i < 2 && !(d->flags & OPF_OPSELB))
            apply_sel(t, s, o && (o->flags & ISA_SEXT));
    }
    if ((type == KT_P16 || type == KT_PF16) && (d->flags & OPF_PACKED)) {
        EACH(l)
        {
            uint32_t v = t[l];
            t[l] = (sel ? v >> 16 : v & 0xffff) | (selhi ? v & 0xffff0000u : v << 16);
        }
        sign_ops(t, 0x8000u, (in->neg_lo >> i) & 1, false);
        sign_ops(t, 0x80000000u, (in->neg_hi >> i) & 1, false);
        return;
    }
    if (type == KT_PF32 && (d->flags & OPF_PACKED)) {
        EACH(l)
        {
            uint32_t lo = t[l], hi = t[l + 64];
            t[l] = sel ? hi : lo;
            t[l + 64] = selhi ? hi : lo;
        }
        sign_ops(t, 0x80000000u, (in->neg_lo >> i) & 1, false);
        sign_ops(t + 64, 0x80000000u, (in->neg_hi >> i) & 1, false);
        return;
    }
    if (!(d->flags & OPF_OPSELB) && takes_high(o, type, sel))
        EACH(l)
    t[l] >>= 16;
    if ((type == KT_B32 && (d->flags & OPF_DOT)) || type == KT_PF16) /* two halves in one operand */
        sign_ops(t, 0x80008000u, neg, abs_);
    else if (type == KT_F64 || type == KT_B64)
        sign_ops(t + 64, 0x80000000u, neg, abs_);
    else if (sim_type_is16(type))
        sign_ops(t, 0x8000u, neg, abs_);
    else if (neg || abs_)
        sign_ops(t, 0x80000000u, neg, abs_);
    if (type == KT_F32 &&
        in->enc == ISA_VOP3P) /* dot products: the third; of 8-bit floats neg_hi is its abs */
        sign_ops(t, 0x80000000u, (in->neg_lo >> i) & 1, d->t[0] == KT_B32 && ((in->neg_hi >> i) & 1));
}

/* ---- results
 * --------------------------------------------------------------------------------------------------- */

/* Output modifiers: a scale, but that subnormals and zeros of either sign become +0. Does MODE round an
 * overflow to the largest number instead of an infinity? */
static bool
stays_finite(uint32_t round, bool negative)
{
    return round == 3 || (round == 1 && negative) || (round == 2 && !negative);
}
static uint32_t
half_scale(uint32_t h, float f, uint32_t round)
{
    float v = sim_f16(h) * f;
    uint32_t u = sim_f32_bits(v), s = (u >> 16) & 0x8000, m = u & 0x7fffffff;
    if ((h & 0x7fff) >= 0x7c00)
        return h;
    if (m >= 0x47800000)
        return s | (stays_finite(round, s != 0) ? 0x7bff : 0x7c00);
    if (m < 0x38800000)
        return 0;
    return s | ((m + 0xc8000fffu + ((m >> 13) & 1)) >> 13);
}
static uint32_t
f32_scale(uint32_t a, float f, uint32_t round)
{
    uint32_t u = sim_f32_bits(sim_f32(a) * f);
    bool over = (u & 0x7fffffff) == 0x7f800000 && (a & 0x7fffffff) < 0x7f800000;
    return !(u & 0x7f800000) ? 0 : over && stays_finite(round, u >> 31) ? u - 1 : u;
}
static uint64_t
f64_scale(uint64_t a, float f, uint32_t round)
{
    const uint64_t inf = UINT64_C(0x7ff) << 52;
    double v;
    memcpy(&v, &a, 8);
    v *= (double)f;
    uint64_t u;
    memcpy(&u, &v, 8);
    bool over = (u & ~(UINT64_C(1) << 63)) == inf && (a & ~(UINT64_C(1) << 63)) < inf;
    return !(u & inf) ? 0 : over && stays_finite(round, u >> 63) ? u - 1 : u;
}

/* The CDNA chips and gfx11 ignore output modifiers where IEEE is on or subnormal results are kept; gfx12 has
 * neither condition. */
static void
scale_results(SimWave *w, const SimRec *r, uint8_t dt, uint32_t *d)
{
    static const float scale[4] = {1.0f, 2.0f, 4.0f, 0.5f};
    bool gfx12 = w->code->arch == ISA_GFX1201, ieee = (w->mode >> 9) & 1;
    bool keep32 = (w->mode >> 5) & 1, keep64 = (w->mode >> 7) & 1;
    uint32_t round32 = w->mode & 3, round64 = (w->mode >> 2) & 3;
    float f = scale[r->ext->in.omod & 3];
    if (!gfx12 && (ieee || (dt == KT_F32 ? keep32 : keep64)))
        return;
    if (dt == KT_F32)
        EACH(i)
    d[i] = f32_scale(d[i], f, round32);
    if (dt == KT_F16)
        EACH(i)
    d[i] = half_scale(d[i], f, round64);
    if (dt == KT_F64)
        EACH(i)
        {
            uint64_t u = f64_scale(d[i] | (uint64_t)d[i + 64] << 32, f, round64);
            d[i] = (uint32_t)u;
            d[i + 64] = (uint32_t)(u >> 32);
        }
}

static uint32_t
half_clamp(uint32_t h, bool nan0)
{
    uint32_t m = h & 0x7fff;
    if (m > 0x7c00)
        return nan0 ? 0 : h;
    return (h & 0x8000) ? 0 : m > 0x3c00 ? 0x3c00 : h;
}
static uint32_t
f32_clamp(uint32_t u, bool nan0)
{
    uint32_t m = u & 0x7fffffff;
    if (m > 0x7f800000)
        return nan0 ? 0 : u;
    return (u & 0x80000000u) ? 0 : m > 0x3f800000 ? 0x3f800000 : u;
}
static uint64_t
f64_clamp(uint64_t u, bool nan0)
{
    uint64_t m = u << 1 >> 1;
    if (m > (UINT64_C(0x7ff) << 52))
        return nan0 ? 0 : u;
    return (u >> 63) ? 0 : m > (UINT64_C(0x3ff) << 52) ? UINT64_C(0x3ff) << 52 : u;
}

static void
modify_result(SimWave *w, const SimRec *r, uint32_t *d)
{
    const IsaInst *in = &r->ext->in;
    uint8_t dt = r->ext->desc->dt;
    if (r->ext->desc->flags & OPF_OPSELB) /* 8-bit conversions take no result modifiers */
        return;
    if (r->ext->desc->t[0] == KT_B16 && dt == KT_U16)
        dt = KT_F16;
    if (in->omod && !(r->ext->desc->flags & OPF_COUT))
        scale_results(w, r, dt, d);
    bool nan0 = w->code->arch == ISA_GFX1201 || ((w->mode >> 8) & 1); /* gfx12 has no DX10_CLAMP */
    if (!in->clamp || (r->fl & RF_INTSAT))
        return;
    if (dt == KT_F32)
        EACH(i)
    d[i] = f32_clamp(d[i], nan0);
    if (dt == KT_F16)
        EACH(i)
    d[i] = half_clamp(d[i], nan0);
    if (dt == KT_PF16)
        EACH(i)
    d[i] = half_clamp(d[i] & 0xffff, nan0) | half_clamp(d[i] >> 16, nan0) << 16;
    if (dt == KT_PF32)
        for (int i = 0; i < 128; i++)
            d[i] = f32_clamp(d[i], nan0);
    if (dt == KT_F64)
        EACH(i)
        {
            uint64_t u = f64_clamp(d[i] | (uint64_t)d[i + 64] << 32, nan0);
            d[i] = (uint32_t)u;
            d[i + 64] = (uint32_t)(u >> 32);
        }
}

/* Which half a 16-bit result goes to and what becomes of the other. */
static void
place_half(const SimRec *r, uint32_t *d, const uint32_t *old)
{
    const IsaInst *in = &r->ext->in;
    const SimOpDesc *desc = r->ext->desc;
    uint8_t half = in->opnd[0].half;
    if (half && !(desc->flags & OPF_OLD)) {
        if (half == 2)
            EACH(i)
        d[i] = (old[i] & 0xffff) | d[i] << 16;
        else EACH(i) d[i] = (old[i] & 0xffff0000u) | (d[i] & 0xffff);
        return;
    }
    if (in->form == ISA_SDWA || !(desc->flags & OPF_KEEPHI))
        return;
    bool hi = (in->op_sel & 8) || r->op == r->aux; /* aux: v_fma_mixhi_f16 */
    if (hi)
        EACH(i)
    d[i] = (old[i] & 0xffff) | d[i] << 16;
    else if (in->enc == ISA_VOP3 || in->enc == ISA_VOP3P) EACH(i) d[i] =
        (old[i] & 0xffff0000u) | (d[i] & 0xffff);
}

/* ---- modes
 * ------------------------------------------------------------------------------------------------------ */

static bool
row_is_float(uint8_t t, bool f32)
{
    return f32 ? (t == KT_F32 || t == KT_PF32) : (t == KT_F16 || t == KT_F64 || t == KT_PF16);
}

/* Flushes subnormals of one source or result row by type. */
static void
flush_rows(uint8_t t, uint32_t *v)
{
    switch ((KType)t) {
    case KT_F32:
        EACH(i)
        v[i] = (v[i] & 0x7f800000) ? v[i] : v[i] & 0x80000000u;
        break;
    case KT_PF32:
        for (int i = 0; i < 128; i++)
            v[i] = (v[i] & 0x7f800000) ? v[i] : v[i] & 0x80000000u;
        break;
    case KT_F16:
        EACH(i)
        v[i] = (v[i] & 0x7c00) ? v[i] : v[i] & ~0x3ffu;
        break;
    case KT_PF16:
        EACH(i)
        {
            if (!(v[i] & 0x7c00))
                v[i] &= ~0x3ffu;
            if (!(v[i] & 0x7c000000))
                v[i] &= ~0x3ff0000u;
        }
        break;
    case KT_F64:
        EACH(i)
        if (!(v[i + 64] & 0x7ff00000)) {
            v[i] = 0;
            v[i + 64] &= 0x80000000u;
        }
        break;
    default:
        break;
    }
}

/* Makes signalling NaNs of a source quiet. */
static void
quiet_rows(uint8_t t, uint32_t *v)
{
    if (t == KT_F32)
        EACH(i)
    v[i] |= (v[i] & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0;
    if (t == KT_F64)
        EACH(i)
    v[i + 64] |= (v[i + 64] & 0x7fffffff) + (v[i] != 0) > 0x7ff00000 ? 0x80000 : 0;
    if (t == KT_F16 || t == KT_PF16)
        EACH(i)
        {
            v[i] |= (v[i] & 0x7fff) > 0x7c00 ? 0x200 : 0;
            v[i] |= (v[i] & 0x7fff0000) > 0x7c00ffff ? 0x2000000 : 0;
        }
}

static bool
is_inf(uint8_t t, uint32_t v, bool high)
{
    return t == KT_F32    ? (v & 0x7fffffff) == 0x7f800000
           : t == KT_F16  ? (v & 0x7fff) == 0x7c00
           : t == KT_PF16 ? ((high ? v >> 16 : v) & 0x7fff) == 0x7c00
                          : false;
}

/* MODE.FP16_OVFL: a half that overflowed is the largest number; infinities that were there before stay. */
static void
clamp_overflow(const SimOpDesc *desc, uint32_t *d, uint32_t t[3][128])
{
    bool pair = desc->dt == KT_PF16;
    EACH(i)
    for (uint32_t h = 0; h <= pair; h++) {
        if (((d[i] >> (16 * h)) & 0x7fff) != 0x7c00)
            continue;
        bool was = (desc->flags & OPF_TRANS) && !(t[0][i] & 0x7fff); /* 1 / 0 */
        for (uint32_t k = 0; k < desc->nsrc; k++)
            was |= is_inf(desc->t[k], t[k][i], h);
        if (!was)
            d[i] -= 1u << (16 * h);
    }
}

/* ---- the wrapper
 * -------------------------------------------------------------------------------------------------- */

static void
run_kernel(SimWave *w, const SimRec *r, uint32_t *d, uint32_t t[3][128], SimK *x)
{
    const SimOpDesc *desc = r->ext->desc;
    if (!(w->mode_cls & (MODE_ODD | MODE_FLUSH)) || (r->fl & RF_CHIP) || !sim_mode_matters(desc)) {
        r->fn(d, t[0], t[1], t[2], x);
        return;
    }
    uint32_t den32 = (w->mode >> 4) & 3, den64 = (w->mode >> 6) & 3;
    bool wide = row_is_float(desc->t[0], false) || row_is_float(desc->dt, false); /* f16 or f64 is in it */
    uint32_t round = wide ? (w->mode >> 2) & 3 : w->mode & 3;
    for (uint32_t i = 0; i < desc->nsrc;
         i++) /* bit 0: keep subnormal sources, bit 1: keep subnormal results */
        if (!((row_is_float(desc->t[i], true) ? den32 : den64) & 1))
            flush_rows(desc->t[i], t[i]);
    if ((desc->flags & OPF_QUIET) && !(w->mode & 512))
        for (uint32_t i = 0; i < desc->nsrc; i++)
            quiet_rows(desc->t[i], t[i]);
    static const int rounds[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int old = fegetround();
    if (round)
        fesetround(rounds[round]);
    r->fn(d, t[0], t[1], t[2], x);
    if (round)
        fesetround(old);
    uint32_t dden = row_is_float(desc->dt, true) ? den32 : den64;
    if (!(dden & 2))
        flush_rows(desc->dt, d);
    if ((w->mode >> 23 & 1) && (desc->dt == KT_F16 || desc->dt == KT_PF16))
        clamp_overflow(desc, d, t);
}

/* Sources, modifiers, kernel: the result before its own modifiers, carry and mask in k; lanes that may be
 * written. */
static uint64_t
gen_run(SimWave *w, const SimRec *r, uint32_t *res, SimK *k)
{
    const SimExt *x = r->ext;
    const IsaInst *in = &x->in;
    const SimOpDesc *desc = x->desc;
    uint64_t write = EXEC(w);
    uint32_t t[3][128], tmp[128], cin[64];
    for (uint32_t i = 0; i < 3; i++) {
        if (!r->src[i].kind) {
            memset(t[i], 0, sizeof t[i]);
            continue;
        }
        const uint32_t *row = src_row(w, r->src[i], tmp);
        bool is64 = i < desc->nsrc && sim_type_is64(desc->t[i]);
        if (i == 0 && sim_is_dpp(in))
            write &= sim_apply_dpp(w, x, row, t[0], is64 ? 2 : 1);
        else
            memcpy(t[i], row, is64 ? 512 : 256);
    }
    for (uint32_t i = 0; i < desc->nsrc; i++)
        modify_source(x, i, t[i]);
    memset(k, 0, sizeof *k);
    k->mode = w->mode;
    k->imm = (uint32_t)r->imm;
    if (r->fl & RF_CIN) {
        sim_mask_expand(s64(w, r->src[3]), cin);
        k->cin = cin;
    }
    run_kernel(w, r, res, t, k);
    return write;
}

static void
finish_result(SimWave *w, const SimRec *r, uint32_t *res)
{
    const IsaInst *in = &r->ext->in;
    const uint32_t *old = ROW(w, r->dst);
    modify_result(w, r, res);
    if (in->form == ISA_SDWA)
        merge_sel(res, old, in->dst_sel, in->dst_unused);
    else
        place_half(r, res, old);
}

void
sim_valu_compute(SimWave *w, const SimRec *r, uint32_t res[128], uint64_t *write)
{
    SimK k;
    *write = gen_run(w, r, res, &k);
    finish_result(w, r, res);
}

static const SimRec *
body_gen(SimWave *w, const SimRec *r)
{
    uint32_t res[128];
    SimK k;
    uint64_t write = gen_run(w, r, res, &k);
    if (r->ext->desc->dt == KT_MASK) { /* a lane that a lane move disables gets 0 */
        put_mask(w, r->dst2, k.mask_out & write);
        if (r->fl & RF_CMPX)
            SET_EXEC(w, k.mask_out & write);
        return NEXT(r);
    }
    finish_result(w, r, res);
    sim_blend(w, write, ROW(w, r->dst), res, r->ndst);
    if (r->fl & RF_COUT)
        put_mask(w, r->dst2, k.mask_out & write);
    return NEXT(r);
}

/* Which byte or word an 8-bit conversion reads or writes. */
static uint32_t
selector(const SimBuild *b, const SimOpDesc *d)
{
    const IsaInst *in = b->in;
    uint32_t sel = in->op_sel;
    bool pk = d->dt == KT_PF32;
    const IsaOpnd *src = gen_opnd(b->x, 0);
    if (in->form == ISA_SDWA) /* byte or word of the source */
        return pk ? in->src0_sel == 5 : in->src0_sel & 3;
    if (sim_is_dpp(in) && in->enc != ISA_VOP3 && in->size < 12)
        return 0;
    if (pk && src && src->half)
        return src->half == 2;
    if (!pk && d->dt == KT_F32) /* op_sel[0] is the high bit of the byte number */
        sel = (sel & 1) << 1 | ((sel >> 1) & 1);
    return sel;
}

bool
sim_build_valu_gen(SimBuild *b, bool int_clamp)
{
    SimRec *r = b->r;
    const SimOpDesc *d = b->x->desc;
    if (sim_is_dpp(b->in) && !sim_build_dpp(b))
        return false;
    r->body = body_gen;
    r->fl |= RF_GEN;
    if (int_clamp)
        r->fl |= RF_INTSAT;
    r->aux = (uint16_t)(strcmp(b->name, "v_fma_mixhi_f16") == 0 ? r->op : UINT16_MAX);
    if (d->flags & OPF_OPSELB)
        r->imm = (int32_t)selector(b, d);
    if (d->flags & OPF_NEGIMM)
        r->imm = b->in->neg_lo;
    if (d->flags & OPF_BITOP3)
        r->imm = b->in->bitop3;
    else if (b->code->arch == ISA_GFX950 || b->code->arch == ISA_GFX1201)
        r->imm |= INT32_MIN; /* OCP 8-bit floats */
    b->x->is_dpp = sim_is_dpp(b->in);
    return true;
}
