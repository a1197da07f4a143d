/* salu_float.c - scalar floats of gfx12: the VALU's kernels on one value spread over a row, comparisons of
 * their own; rounding and denormals as MODE says.
 */
#include "sim/core.h"
#include <fenv.h>

typedef enum FloatKind {
    FK_32,
    FK_16,
    FK_TO16 /* f32 to f16 */,
    FK_FROM16,
    FK_INT /* integer to f32 */
} FloatKind;

typedef struct FloatRow {
    const char *name;
    uint16_t kern;
    uint8_t nsrc, kind; /* FloatKind */
} FloatRow;

static const FloatRow float_rows[] = {
    {"s_ceil_f32", K_v_ceil_f32, 1, FK_32},
    {"s_floor_f32", K_v_floor_f32, 1, FK_32},
    {"s_trunc_f32", K_v_trunc_f32, 1, FK_32},
    {"s_rndne_f32", K_v_rndne_f32, 1, FK_32},
    {"s_cvt_f32_i32", K_v_cvt_f32_i32, 1, FK_INT},
    {"s_cvt_f32_u32", K_v_cvt_f32_u32, 1, FK_INT},
    {"s_cvt_i32_f32", K_v_cvt_i32_f32, 1, FK_32},
    {"s_cvt_u32_f32", K_v_cvt_u32_f32, 1, FK_32},
    {"s_cvt_f16_f32", K_v_cvt_f16_f32, 1, FK_TO16},
    {"s_cvt_f32_f16", K_v_cvt_f32_f16, 1, FK_FROM16},
    {"s_cvt_hi_f32_f16", K_v_cvt_f32_f16, 1, FK_FROM16},
    {"s_ceil_f16", K_v_ceil_f16, 1, FK_16},
    {"s_floor_f16", K_v_floor_f16, 1, FK_16},
    {"s_trunc_f16", K_v_trunc_f16, 1, FK_16},
    {"s_rndne_f16", K_v_rndne_f16, 1, FK_16},
    {"s_add_f32", K_v_add_f32, 2, FK_32},
    {"s_sub_f32", K_v_sub_f32, 2, FK_32},
    {"s_mul_f32", K_v_mul_f32, 2, FK_32},
    {"s_min_num_f32", K_v_min_num_f32, 2, FK_32},
    {"s_max_num_f32", K_v_max_num_f32, 2, FK_32},
    {"s_minimum_f32", K_v_minimum3_f32, 2, FK_32},
    {"s_maximum_f32", K_v_maximum3_f32, 2, FK_32},
    {"s_fmaak_f32", K_v_fma_f32, 3, FK_32},
    {"s_fmamk_f32", K_v_fma_f32, 3, FK_32},
    {"s_fmac_f32", K_v_fma_f32, 3, FK_32},
    {"s_cvt_pk_rtz_f16_f32", K_v_cvt_pkrtz_f16_f32, 2, FK_TO16},
    {"s_add_f16", K_v_add_f16, 2, FK_16},
    {"s_sub_f16", K_v_sub_f16, 2, FK_16},
    {"s_mul_f16", K_v_mul_f16, 2, FK_16},
    {"s_min_num_f16", K_v_min_num_f16, 2, FK_16},
    {"s_max_num_f16", K_v_max_num_f16, 2, FK_16},
    {"s_minimum_f16", K_v_pk_minimum3_f16, 2, FK_16},
    {"s_maximum_f16", K_v_pk_maximum3_f16, 2, FK_16},
    {"s_fmac_f16", K_v_fma_f16, 3, FK_16},
};

static uint32_t
flush32(uint32_t v)
{
    return (v & 0x7f800000) ? v : v & 0x80000000u;
}
static uint32_t
flush16(uint32_t v)
{
    return (v & 0x7c00) ? v : v & ~0x3ffu;
}

/* r->aux: FloatKind; r->imm: bits to shift the source down (s_cvt_hi_*). */
static const SimRec *
body_float(SimWave *w, const SimRec *r)
{
    static const int rounds[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint32_t row[3][128], d[128], v[3], mode = w->mode;
    bool in16 = r->aux == FK_16 || r->aux == FK_FROM16, out16 = r->aux == FK_16 || r->aux == FK_TO16;
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = s32(w, r->src[i]);
        if (in16)
            v[i] = (v[i] >> r->imm) & 0xffff;
        bool keep = r->aux == FK_INT || ((mode >> (in16 ? 6 : 4)) & 1);
        if (!keep)
            v[i] = in16 ? flush16(v[i]) : flush32(v[i]);
        for (uint32_t l = 0; l < LANES; l++)
            row[i][l] = v[i];
    }
    SimK x = {.mode = mode};
    int old = fegetround(), want = rounds[(in16 || r->aux == FK_TO16 ? mode >> 2 : mode) & 3];
    if (want != old)
        fesetround(want);
    r->fn(d, row[0], row[1], row[2], &x);
    if (want != old)
        fesetround(old);
    uint32_t o = d[0];
    if (r->aux == FK_16)
        o &= 0xffff;
    if (!((mode >> (out16 ? 7 : 5)) & 1) && r->fl) /* r->fl: the result is a float */
        o = !out16 ? flush32(o) : flush16(o & 0xffff) | (o >> 16 ? flush16(o >> 16) << 16 : 0);
    if (out16 && (mode >> 23 & 1) && r->fn != w->code->host->kern[K_v_cvt_pkrtz_f16_f32] &&
        (o & 0x7fff) == 0x7c00) {
        bool was = false; /* an infinity that was there before stays one */
        for (uint32_t i = 0; i < 3; i++)
            was |= in16 ? (v[i] & 0x7fff) == 0x7c00 : (v[i] & 0x7fffffff) == 0x7f800000;
        o -= !was;
    }
    w->s[r->dst] = o;
    return NEXT(r);
}

/* ---- comparisons: bits of r->imm say for which outcomes SCC is 1 ---- */

enum { CMP_LT = 1, CMP_EQ = 2, CMP_GT = 4, CMP_UN = 8 };
static const struct {
    const char *name;
    uint8_t when;
} cmp_rows[] = {
    {"lt", CMP_LT},
    {"eq", CMP_EQ},
    {"le", CMP_LT | CMP_EQ},
    {"gt", CMP_GT},
    {"lg", CMP_LT | CMP_GT},
    {"ge", CMP_GT | CMP_EQ},
    {"o", CMP_LT | CMP_EQ | CMP_GT},
    {"u", CMP_UN},
    {"nge", CMP_LT | CMP_UN},
    {"nlg", CMP_EQ | CMP_UN},
    {"ngt", CMP_LT | CMP_EQ | CMP_UN},
    {"nle", CMP_GT | CMP_UN},
    {"neq", CMP_LT | CMP_GT | CMP_UN},
    {"nlt", CMP_EQ | CMP_GT | CMP_UN},
};

/* A float as an integer of the same order; both zeros are 0. */
static int32_t
order_key(uint32_t v, uint32_t sign)
{
    int32_t m = (int32_t)(v & (sign - 1));
    return v & sign ? -m : m;
}

static const SimRec *
body_cmp(SimWave *w, const SimRec *r)
{
    bool half = r->aux == FK_16;
    uint32_t a = s32(w, r->src[0]), b = s32(w, r->src[1]), sign = half ? 0x8000u : 0x80000000u,
             inf = half ? 0x7c00u : 0x7f800000u;
    if (half)
        a &= 0xffff, b &= 0xffff;
    if (!((w->mode >> (half ? 6 : 4)) & 1)) {
        a = half ? flush16(a) : flush32(a);
        b = half ? flush16(b) : flush32(b);
    }
    int32_t x = order_key(a, sign), y = order_key(b, sign);
    bool unordered = (a & (sign - 1)) > inf || (b & (sign - 1)) > inf;
    uint32_t is = unordered ? CMP_UN : x < y ? CMP_LT : x > y ? CMP_GT : CMP_EQ;
    w->scc = ((uint32_t)r->imm & is) != 0;
    return NEXT(r);
}

/* ---- records ---- */

/* An inline float of an operand that the tables call 32 bits wide, for an operation on halves. */
static uint32_t
half_const(uint32_t bits)
{
    static const uint32_t map[9][2] = {{0x3f000000, 0x3800}, {0xbf000000, 0xb800}, {0x3f800000, 0x3c00},
                                       {0xbf800000, 0xbc00}, {0x40000000, 0x4000}, {0xc0000000, 0xc000},
                                       {0x40800000, 0x4400}, {0xc0800000, 0xc400}, {0x3e22f983, 0x3118}};
    for (uint32_t i = 0; i < TL_COUNT(map); i++)
        if (map[i][0] == bits)
            return map[i][1];
    return bits;
}

static bool
place_sources(SimBuild *b, uint32_t n, bool half)
{
    SimRec *r = b->r;
    for (uint32_t i = 0; i < n; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o)
            return false;
        r->src[i] = sim_build_src(b, o);
        if (half && o->kind == ISA_OPND_CONST && !(o->flags & ISA_LITERAL))
            r->src[i] = sim_build_const(b, half_const(o->bits));
    }
    return true;
}

static bool
build_cmp(SimBuild *b)
{
    size_t n = strlen(b->name);
    bool half = !strcmp(b->name + n - 4, "_f16");
    for (uint32_t i = 0; i < TL_COUNT(cmp_rows); i++) {
        size_t k = strlen(cmp_rows[i].name);
        if (k + 10 != n || memcmp(b->name + 6, cmp_rows[i].name, k))
            continue;
        b->r->body = body_cmp;
        b->r->imm = cmp_rows[i].when;
        b->r->aux = half ? FK_16 : FK_32;
        b->x->poison = POI_SALU;
        return place_sources(b, 2, half);
    }
    return false;
}

bool
sim_build_salu_float(SimBuild *b)
{
    SimRec *r = b->r;
    size_t n = strlen(b->name);
    if (b->in->enc == ISA_SOPC && n > 10 &&
        (!strcmp(b->name + n - 4, "_f32") || !strcmp(b->name + n - 4, "_f16")))
        return build_cmp(b);
    uint32_t i = 0;
    while (i < TL_COUNT(float_rows) && strcmp(float_rows[i].name, b->name))
        i++;
    if (i == TL_COUNT(float_rows))
        return false;
    const FloatRow *f = &float_rows[i];
    bool fmac = !strncmp(b->name, "s_fmac", 6), hi = !strncmp(b->name, "s_cvt_hi", 8);
    r->body = body_float;
    r->fn = b->code->host->kern[f->kern];
    r->aux = f->kind;
    r->imm = hi ? 16 : 0;
    r->fl = strncmp(b->name, "s_cvt_i32", 9) && strncmp(b->name, "s_cvt_u32", 9);
    r->dst = sim_build_sreg(b, &b->in->opnd[0]);
    b->x->poison = POI_SALU;
    if (!place_sources(b, fmac ? 2 : f->nsrc, (f->kind == FK_16 || f->kind == FK_FROM16) && !hi))
        return false;
    if (fmac)
        r->src[2] = (SimSrc){SRC_S, 1, r->dst};
    for (uint32_t k = fmac ? 3 : f->nsrc; k < 3; k++) /* min and max of three: the last one twice */
        r->src[k] = r->src[k - 1];
    return true;
}
