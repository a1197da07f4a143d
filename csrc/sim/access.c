/* access.c - lanes between memory and rows; atomics; mnemonic suffixes. */
#include "sim/access.h"
#include "sim/bits.h"
#include "sim/check.h"
#include "sim/valu.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#include <xmmintrin.h>
#endif

_Alignas(64) const uint32_t sim_zeros[16] = {0};

/* ---- suffixes
 * ---------------------------------------------------------------------------------------------------- */

bool
sim_acc_parse(const char *s, SimAcc *a)
{
    static const struct {
        const char *name;
        SimAcc acc;
    } rows[] = {
        {"dword", {ACC_DWORDS, 4, 1, 0, 0, 0, SIM_WIDTH_4}},
        {"dwordx2", {ACC_DWORDS, 8, 2, 0, 0, 0, SIM_WIDTH_8}},
        {"dwordx3", {ACC_DWORDS, 12, 3, 0, 0, 0, SIM_WIDTH_12}},
        {"dwordx4", {ACC_DWORDS, 16, 4, 0, 0, 0, SIM_WIDTH_16}},
        {"b32", {ACC_DWORDS, 4, 1, 0, 0, 0, SIM_WIDTH_4}},
        {"b64", {ACC_DWORDS, 8, 2, 0, 0, 0, SIM_WIDTH_8}},
        {"b96", {ACC_DWORDS, 12, 3, 0, 0, 0, SIM_WIDTH_12}},
        {"b128", {ACC_DWORDS, 16, 4, 0, 0, 0, SIM_WIDTH_16}},
        {"ubyte", {ACC_U8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"u8", {ACC_U8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"sbyte", {ACC_I8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"i8", {ACC_I8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"ushort", {ACC_U16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"u16", {ACC_U16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"sshort", {ACC_I16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"i16", {ACC_I16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"ubyte_d16", {ACC_U8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"u8_d16", {ACC_U8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"ubyte_d16_hi", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"u8_d16_hi", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"sbyte_d16", {ACC_I8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"i8_d16", {ACC_I8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"sbyte_d16_hi", {ACC_I8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"i8_d16_hi", {ACC_I8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"short_d16", {ACC_U16, 2, 1, 1, 0, 0, SIM_WIDTH_2}},
        {"u16_d16", {ACC_U16, 2, 1, 1, 0, 0, SIM_WIDTH_2}},
        {"short_d16_hi", {ACC_U16, 2, 1, 2, 0, 0, SIM_WIDTH_2}},
        {"u16_d16_hi", {ACC_U16, 2, 1, 2, 0, 0, SIM_WIDTH_2}},
        {"byte", {ACC_U8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"b8", {ACC_U8, 1, 1, 0, 0, 0, SIM_WIDTH_1}},
        {"byte_d16_hi", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"b8_d16_hi", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"short", {ACC_U16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"b16", {ACC_U16, 2, 1, 0, 0, 0, SIM_WIDTH_2}},
        {"b16_d16_hi", {ACC_U16, 2, 1, 2, 0, 0, SIM_WIDTH_2}},
        {"d16_u8", {ACC_U8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"d16_hi_u8", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"d16_i8", {ACC_I8, 1, 1, 1, 0, 0, SIM_WIDTH_1}},
        {"d16_hi_i8", {ACC_I8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
        {"d16_b16", {ACC_U16, 2, 1, 1, 0, 0, SIM_WIDTH_2}},
        {"d16_hi_b16", {ACC_U16, 2, 1, 2, 0, 0, SIM_WIDTH_2}},
        {"d16_hi_b8", {ACC_U8, 1, 1, 2, 0, 0, SIM_WIDTH_1}},
    };
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (!strcmp(rows[i].name, s)) {
            *a = rows[i].acc;
            return true;
        }
    return false;
}

typedef struct AtomName {
    const char *name;
    uint8_t op, bytes;
} AtomName;
static const AtomName atom_rows[] = {
    {"add_f32", AT_FADD, 4},         {"add_f64", AT_FADD, 8},
    {"min_f64", AT_FMIN, 8},         {"max_f64", AT_FMAX, 8},
    {"min_f32", AT_FMIN, 4},         {"max_f32", AT_FMAX, 4},
    {"pk_add_f16", AT_PKF16, 4},     {"pk_add_bf16", AT_PKBF16, 4},
    {"min_num_f64", AT_FMINNUM, 8},  {"max_num_f64", AT_FMAXNUM, 8},
    {"min_num_f32", AT_FMINNUM, 4},  {"max_num_f32", AT_FMAXNUM, 4},
    {"cond_sub_u32", AT_CONDSUB, 4}, {"sub_clamp_u32", AT_SUBCLAMP, 4},
    {"csub_u32", AT_SUBCLAMP, 4},    {"ordered_add_b64", AT_ORDERED, 8},
    {"cmpswap_f32", AT_FCMP, 4},
};
static const AtomName atom_vec[] = {
    /* _x2: 8 bytes */
    {"swap", AT_SWAP, 0}, {"cmpswap", AT_CMPSWAP, 0}, {"add", AT_ADD, 0},   {"sub", AT_SUB, 0},
    {"smin", AT_SMIN, 0}, {"umin", AT_UMIN, 0},       {"smax", AT_SMAX, 0}, {"umax", AT_UMAX, 0},
    {"and", AT_AND, 0},   {"or", AT_OR, 0},           {"xor", AT_XOR, 0},   {"inc", AT_INC, 0},
    {"dec", AT_DEC, 0},
};
static const AtomName atom_lds[] = {
    /* then 32 or 64, as in atom_rdna */
    {"add_u", AT_ADD, 0},     {"sub_u", AT_SUB, 0},     {"rsub_u", AT_RSUB, 0},
    {"inc_u", AT_INC, 0},     {"dec_u", AT_DEC, 0},     {"min_i", AT_SMIN, 0},
    {"max_i", AT_SMAX, 0},    {"min_u", AT_UMIN, 0},    {"max_u", AT_UMAX, 0},
    {"and_b", AT_AND, 0},     {"or_b", AT_OR, 0},       {"xor_b", AT_XOR, 0},
    {"mskor_b", AT_MSKOR, 0}, {"cmpst_f", AT_FCMP, 0},  {"condxchg32_b", AT_CONDXCHG, 0},
    {"wrap_b", AT_WRAP, 0},   {"wrxchg_b", AT_SWAP, 0}, {"cmpst_b", AT_CMPSWAP, 0},
};
static const AtomName atom_rdna[] = {
    {"swap_b", AT_SWAP, 0}, {"cmpswap_b", AT_CMPSWAP, 0}, {"add_u", AT_ADD, 0},  {"sub_u", AT_SUB, 0},
    {"min_i", AT_SMIN, 0},  {"min_u", AT_UMIN, 0},        {"max_i", AT_SMAX, 0}, {"max_u", AT_UMAX, 0},
    {"and_b", AT_AND, 0},   {"or_b", AT_OR, 0},           {"xor_b", AT_XOR, 0},  {"inc_u", AT_INC, 0},
    {"dec_u", AT_DEC, 0},
};

/* The name that s begins with and that `four` or `eight`, for so many bytes, ends. */
static void
atom_sized(const AtomName *names, uint32_t n, const char *s, const char *four, const char *eight, SimAcc *a)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(names[i].name);
        if (strncmp(names[i].name, s, len) || (strcmp(s + len, four) && strcmp(s + len, eight)))
            continue;
        a->atom = names[i].op;
        a->bytes = strcmp(s + len, four) ? 8 : 4;
    }
}

bool
sim_atom_parse(const char *s, bool ds, SimAcc *a)
{
    memset(a, 0, sizeof *a);
    for (uint32_t i = 0; i < TL_COUNT(atom_rows); i++)
        if (!strcmp(atom_rows[i].name, s)) {
            a->atom = atom_rows[i].op;
            a->bytes = atom_rows[i].bytes;
        }
    if (ds) {
        atom_sized(atom_lds, TL_COUNT(atom_lds), s, "32", "64", a);
    } else {
        atom_sized(atom_vec, TL_COUNT(atom_vec), s, "", "_x2", a);
        atom_sized(atom_rdna, TL_COUNT(atom_rdna), s, "32", "64", a);
    }
    a->dwords = a->bytes / 4;
    a->width = a->bytes == 8 ? SIM_WIDTH_8 : SIM_WIDTH_4;
    return a->atom != AT_NONE;
}

/* ---- atomics
 * ----------------------------------------------------------------------------------------------------- */

static uint32_t
f_half(float f)
{
    uint32_t u = sim_f32_bits(f), s = (u >> 16) & 0x8000, x = u & 0x7fffffff;
    if (x >= 0x47800000)
        return s | (x > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (x < 0x38800000)
        return s | (sim_f32_bits(sim_f32(x) + 0.5f) - 0x3f000000u);
    return s | ((x + 0xc8000fffu + ((x >> 13) & 1)) >> 13);
}
static uint32_t
f_bf16(float f)
{
    uint32_t u = sim_f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (u >> 16) | 0x40;
    return (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}

/* Is it a NaN of this exponent (all ones, in place)? */
static bool
is_nan(uint64_t x, uint64_t inf)
{
    uint64_t mant = inf & (~inf + 1);
    return (x & (inf | (mant - 1))) > inf;
}

/* The number wins over a quiet NaN, two NaNs make the new one quiet; -0 is below +0. A signalling NaN comes
 * out quiet, but with `num` it is as a quiet one. inf: the exponent's bits; sign: the sign's. */
static uint64_t
minmax(uint64_t a, uint64_t b, uint64_t inf, uint64_t sign, bool max, bool num)
{
    uint64_t quiet = (inf & (~inf + 1)) >> 1, na = is_nan(a, inf), nb = is_nan(b, inf);
    if (nb && (na || (!num && !(b & quiet))))
        return b | quiet;
    if (na && !num && !(a & quiet))
        return a | quiet;
    if (na || nb)
        return na ? b : a;
    bool less = a & sign ? !(b & sign) || a > b : !(b & sign) && a < b;
    return less == max ? b : a;
}

static uint64_t
fminmax(AtomOp op, uint32_t bytes, uint64_t a, uint64_t b)
{
    bool max = op == AT_FMAX || op == AT_FMAXNUM, num = op == AT_FMINNUM || op == AT_FMAXNUM;
    return bytes == 8 ? minmax(a, b, UINT64_C(0x7ff) << 52, UINT64_C(1) << 63, max, num)
                      : minmax((uint32_t)a, (uint32_t)b, 0x7f800000u, 0x80000000u, max, num);
}

/* A sum; a NaN of memory, else of the data, stays but becomes quiet. */
static uint64_t
fadd(uint32_t bytes, uint64_t a, uint64_t b)
{
    uint64_t inf = bytes == 8 ? UINT64_C(0x7ff) << 52 : 0x7f800000u, quiet = (inf & (~inf + 1)) >> 1;
    if (is_nan(a, inf))
        return a | quiet;
    if (is_nan(b, inf))
        return b | quiet;
    return bytes == 8 ? sim_f64_bits(sim_f64(a) + sim_f64(b))
                      : sim_f32_bits(sim_f32((uint32_t)a) + sim_f32((uint32_t)b));
}

/* Subnormal numbers of the formats in x as zeros: op tells halves from bf16 from the rest. */
static uint64_t
flush(AtomOp op, uint32_t bytes, uint64_t x)
{
    if (op == AT_PKF16 || op == AT_PKBF16) {
        uint32_t e = op == AT_PKF16 ? 0x7c00 : 0x7f80;
        x &= x & e ? ~UINT64_C(0) : ~UINT64_C(0x7fff);
        return x & ((x >> 16) & e ? ~UINT64_C(0) : ~UINT64_C(0x7fff0000));
    }
    if (bytes == 8)
        return x & UINT64_C(0x7ff) << 52 ? x : x & UINT64_C(1) << 63;
    return x & 0x7f800000u ? x : x & 0x80000000u;
}

static uint64_t
cond_swap(uint64_t old, uint64_t data)
{
    uint32_t lo = (uint32_t)data, hi = (uint32_t)(data >> 32);
    lo = lo >> 31 ? lo & 0x7fffffff : (uint32_t)old;
    hi = hi >> 31 ? hi & 0x7fffffff : (uint32_t)(old >> 32);
    return lo | (uint64_t)hi << 32;
}

static uint32_t
add_half(uint32_t a, uint32_t b)
{
    if (is_nan(a, 0x7c00))
        return a | 0x200;
    if (is_nan(b, 0x7c00))
        return b | 0x200;
    return f_half(sim_f16(a) + sim_f16(b)) & 0xffff;
}

static uint32_t
add_bhalf(uint32_t a, uint32_t b)
{
    return f_bf16(sim_f32((uint32_t)fadd(4, a << 16, b << 16))) & 0xffff;
}

uint64_t
sim_atom(AtomOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t cmp)
{
    bool w8 = bytes == 8;
    int64_t so = w8 ? (int64_t)old : (int32_t)old, sd = w8 ? (int64_t)data : (int32_t)data;
    switch (op) {
    case AT_NONE:
        break;
    case AT_ADD:
        return old + data;
    case AT_SUB:
        return old - data;
    case AT_RSUB:
        return data - old;
    case AT_INC:
        return old >= data ? 0 : old + 1;
    case AT_DEC:
        return old == 0 || old > data ? data : old - 1;
    case AT_SMIN:
        return so < sd ? old : data;
    case AT_SMAX:
        return so > sd ? old : data;
    case AT_UMIN:
        return old < data ? old : data;
    case AT_UMAX:
        return old > data ? old : data;
    case AT_AND:
        return old & data;
    case AT_OR:
        return old | data;
    case AT_XOR:
        return old ^ data;
    case AT_SWAP:
        return data;
    case AT_CMPSWAP:
        return old == cmp ? data : old;
    case AT_MSKOR:
        return (old & ~data) | cmp;
    case AT_FADD:
        return fadd(bytes, old, data);
    case AT_FADD_FLUSH:
        return flush(op, 4, fadd(4, flush(op, 4, old), flush(op, 4, data)));
    case AT_FMIN:
    case AT_FMAX:
    case AT_FMINNUM:
    case AT_FMAXNUM:
        return fminmax(op, bytes, old, data);
    case AT_FCMP:
        return (w8 ? sim_f64(old) == sim_f64(cmp) : sim_f32(old) == sim_f32(cmp)) ? data : old;
    case AT_CONDXCHG:
        return cond_swap(old, data);
    case AT_WRAP: /* a ring buffer's index: wraps by data, else grows by cmp */
        return (uint32_t)old >= (uint32_t)data ? old - data : old + cmp;
    case AT_CONDSUB:
        return (uint32_t)old >= (uint32_t)data ? (uint32_t)(old - data) : old;
    case AT_SUBCLAMP:
        return (uint32_t)old >= (uint32_t)data ? (uint32_t)(old - data) : 0;
    case AT_ORDERED:
        if ((uint32_t)old != (uint32_t)data)
            return old;
        return (uint32_t)(old + 1) | ((old >> 32) + (data >> 32)) << 32;
    case AT_PKF16:
        return add_half(old & 0xffff, data & 0xffff) | add_half(old >> 16 & 0xffff, data >> 16 & 0xffff)
                                                           << 16;
    case AT_PKBF16:
        return add_bhalf(old & 0xffff, data & 0xffff) | add_bhalf(old >> 16 & 0xffff, data >> 16 & 0xffff)
                                                            << 16;
    }
    return old;
}

/* MODE's fields: subnormals of f32, and of 16 and 64 bits; bit 0 keeps those that come in, bit 1 those that
 * go out. Sums obey both, but those of doubles neither. What is compared obeys the first: of minimum and
 * maximum the operand itself is the result (gfx12: as it was compared), what compare-and-store leaves is
 * flushed, too. */
uint64_t
sim_atom_mode(uint32_t mode, AtomOp op, uint32_t n, uint64_t old, uint64_t data, uint64_t cmp)
{
    bool halves = op == AT_PKF16 || op == AT_PKBF16, sum = halves || (op == AT_FADD && n == 4);
    bool num = op == AT_FMINNUM || op == AT_FMAXNUM, most = op == AT_FMIN || op == AT_FMAX;
    uint32_t keep = mode >> (n == 8 || halves ? 6 : 4) & 3;
    if (keep == 3 || !(sum || num || most || op == AT_FCMP))
        return sim_atom(op, n, old, data, cmp);
    bool in = keep & 1;
    uint64_t a = in ? old : flush(op, n, old), b = in ? data : flush(op, n, data);
    uint64_t v = sim_atom(op, n, a, b, in ? cmp : flush(op, n, cmp));
    if (sum)
        return keep & 2 ? v : flush(op, n, v);
    if (most)
        return v == a ? old : v == b ? data : v;
    return in ? v : flush(op, n, v);
}

uint64_t
sim_atom_at(uint64_t at, AtomOp op, uint32_t n, uint64_t data, uint64_t cmp)
{
    if (at & (n - 1)) { /* not atomic then */
        uint64_t old = 0, v;
        sim_dm_read(&old, at, n);
        v = sim_atom(op, n, old, data, cmp);
        sim_dm_write(at, &v, n);
        return old;
    }
    if (n == 8) {
        uint64_t old = sim_dm_load64(at);
        while (!sim_dm_cas64(at, &old, sim_atom(op, 8, old, data, cmp)))
            ;
        return old;
    }
    uint32_t old = sim_dm_load32(at);
    while (!sim_dm_cas32(at, &old, (uint32_t)sim_atom(op, 4, old, data, cmp)))
        ;
    return old;
}

/* ---- lanes and rows
 * ------------------------------------------------------------------------------------------------ */

static bool
contiguous(const uint64_t *ptr, uint32_t step)
{
    uint64_t bad = 0, base = ptr[0];
    for (uint64_t i = 0; i < LANES; i++)
        bad |= ptr[i] ^ (base + i * step);
    return !bad;
}

/* 2 to 4 dwords; pairs as one access: a program may count on an aligned pair that is never half written */
static inline void
get_dwords(uint32_t *t, uint64_t at, uint32_t nd)
{
    uint64_t lo = sim_dm_get64(at);
    memcpy(t, &lo, 8);
    if (nd == 3)
        t[2] = sim_dm_get32(at + 8);
    if (nd == 4) {
        uint64_t hi = sim_dm_get64(at + 8);
        memcpy(t + 2, &hi, 8);
    }
}
static inline void
put_dwords(uint64_t at, const uint32_t *t, uint32_t nd)
{
    uint64_t lo, hi;
    memcpy(&lo, t, 8);
    sim_dm_put64(at, lo);
    if (nd == 3)
        sim_dm_put32(at + 8, t[2]);
    if (nd == 4) {
        memcpy(&hi, t + 2, 8);
        sim_dm_put64(at + 8, hi);
    }
}

#if defined(__SSE2__)
static inline __m128i
low64(uint64_t at)
{
    return _mm_cvtsi64_si128((long long)sim_dm_get64(at));
}
#endif

void
sim_load_dwords(uint32_t *rows, const uint64_t *ptr, uint32_t nd)
{
    if (nd == 1) {
        if (contiguous(ptr, 4))
            sim_dm_read(rows, ptr[0], 256);
        else
            for (uint32_t l = 0; l < LANES; l++)
                rows[l] = sim_dm_get32(ptr[l]);
        return;
    }
#if defined(__SSE2__)
    if (nd == 4) {
        for (uint32_t l = 0; l < LANES; l += 4) {
            __m128 a = sim_dm_get128(ptr[l]), b = sim_dm_get128(ptr[l + 1]), c = sim_dm_get128(ptr[l + 2]),
                   d = sim_dm_get128(ptr[l + 3]);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps((float *)(rows + l), a);
            _mm_storeu_ps((float *)(rows + 64 + l), b);
            _mm_storeu_ps((float *)(rows + 128 + l), c);
            _mm_storeu_ps((float *)(rows + 192 + l), d);
        }
        return;
    }
    if (nd == 2) {
        for (uint32_t l = 0; l < LANES; l += 4) {
            __m128i a = low64(ptr[l]), b = low64(ptr[l + 1]), c = low64(ptr[l + 2]), d = low64(ptr[l + 3]);
            __m128i x = _mm_unpacklo_epi32(a, b), y = _mm_unpacklo_epi32(c, d);
            _mm_storeu_si128((__m128i *)(rows + l), _mm_unpacklo_epi64(x, y));
            _mm_storeu_si128((__m128i *)(rows + 64 + l), _mm_unpackhi_epi64(x, y));
        }
        return;
    }
#endif
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t t[4] = {0};
        get_dwords(t, ptr[l], nd);
        for (uint32_t k = 0; k < nd; k++)
            rows[k * LANES + l] = t[k];
    }
}

void
sim_load_narrow(uint32_t *row, const uint64_t *ptr, AccKind kind)
{
    switch (kind) {
    case ACC_DWORDS:
        break;
    case ACC_U8:
        for (uint32_t l = 0; l < LANES; l++)
            row[l] = sim_dm_get8(ptr[l]);
        break;
    case ACC_I8:
        for (uint32_t l = 0; l < LANES; l++)
            row[l] = (uint32_t)(int32_t)(int8_t)sim_dm_get8(ptr[l]);
        break;
    case ACC_U16:
    case ACC_I16:
        for (uint32_t l = 0; l < LANES; l++) {
            uint16_t v = sim_dm_get16(ptr[l]);
            row[l] = kind == ACC_I16 ? (uint32_t)(int32_t)(int16_t)v : v;
        }
        break;
    }
}

void
sim_store_dwords(const uint32_t *rows, const uint64_t *ptr, uint64_t exec, uint32_t nd)
{
    if (exec == ~UINT64_C(0) && nd == 1 && contiguous(ptr, 4)) {
        sim_dm_write(ptr[0], rows, 256);
        return;
    }
#if defined(__SSE2__)
    if (exec == ~UINT64_C(0) && nd == 4) {
        for (uint32_t l = 0; l < LANES; l += 4) {
            __m128 a = _mm_loadu_ps((const float *)(rows + l)),
                   b = _mm_loadu_ps((const float *)(rows + 64 + l)),
                   c = _mm_loadu_ps((const float *)(rows + 128 + l)),
                   d = _mm_loadu_ps((const float *)(rows + 192 + l));
            _MM_TRANSPOSE4_PS(a, b, c, d);
            sim_dm_put128(ptr[l], a);
            sim_dm_put128(ptr[l + 1], b);
            sim_dm_put128(ptr[l + 2], c);
            sim_dm_put128(ptr[l + 3], d);
        }
        return;
    }
#endif
    if (nd == 1) {
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            sim_dm_put32(ptr[l], rows[l]);
        }
        return;
    }
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), t[4] = {0};
        for (uint32_t k = 0; k < nd; k++)
            t[k] = rows[k * LANES + l];
        put_dwords(ptr[l], t, nd);
    }
}

void
sim_store_narrow(const uint32_t *row, const uint64_t *ptr, uint64_t exec, AccKind kind, bool hi)
{
    uint32_t sh = hi ? 16 : 0;
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), v = row[l] >> sh;
        if (kind == ACC_U8 || kind == ACC_I8)
            sim_dm_put8(ptr[l], (uint8_t)v);
        else
            sim_dm_put16(ptr[l], (uint16_t)v);
    }
}

void
sim_write_back(SimWave *w, const SimAcc *a, uint64_t exec, uint32_t dst, uint32_t *rows)
{
    uint32_t *d = ROW(w, dst);
    uint32_t keep = a->d16 & D16_CLEAR ? 0 : a->d16 & 1 ? 0xffff0000u : 0xffff, sh = a->d16 & 2 ? 16 : 0;
    if (a->d16)
        for (int i = 0; i < LANES; i++)
            rows[i] = (d[i] & keep) | (rows[i] & 0xffff) << sh;
    sim_blend(w, exec, d, rows, a->dwords);
}

void
sim_write_poison(SimWave *w, const SimAcc *a, uint64_t exec, uint32_t dst, const SimUndef *undef)
{
    SimChk *c = w->chk;
    for (uint32_t k = 0; k < a->dwords; k++) {
        SimUndef loaded = undef[k];
        if (a->kind == ACC_I8 || a->kind == ACC_I16) { /* the sign fills what is above */
            uint32_t n = 32 - 8 * a->bytes;
            loaded.known = (uint32_t)((int32_t)(loaded.known << n) >> n);
            loaded.pad = (uint32_t)((int32_t)(loaded.pad << n) >> n);
        }
        if (a->d16) /* the half not loaded does not count (the other load or a pack follows) */
            loaded.known = a->d16 & 2 ? loaded.known << 16 | 0xffff : loaded.known | 0xffff0000u;
        if (a->d16 & 2)
            loaded.pad <<= 16;
        set_row_undef(c, dst + k, blend_undef(loaded, row_undef(c, dst + k), exec));
    }
}
