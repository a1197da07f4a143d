/* typed.c - element formats of typed buffers (contract in typed.h): widths from a table, number formats by
 * rule. */
#include <math.h>

#include "sim/bits.h"
#include "sim/typed.h"

enum { N_UNORM, N_SNORM, N_USCALED, N_SSCALED, N_UINT, N_SINT, N_FLOAT = 7 };

static const uint8_t widths[16][4] = {[1] = {8},
                                      [2] = {16},
                                      [3] = {8, 8},
                                      [4] = {32},
                                      [5] = {16, 16},
                                      [6] = {11, 11, 10}, /* 10_11_11: x in the low bits */
                                      [7] = {10, 11, 11},
                                      [8] = {2, 10, 10, 10},
                                      [9] = {10, 10, 10, 2},
                                      [10] = {8, 8, 8, 8},
                                      [11] = {32, 32},
                                      [12] = {16, 16, 16, 16},
                                      [13] = {32, 32, 32},
                                      [14] = {32, 32, 32, 32}};

uint32_t
sim_format_bytes(uint32_t dfmt)
{
    const uint8_t *w = widths[dfmt & 15];
    return (uint32_t)(w[0] + w[1] + w[2] + w[3]) / 8;
}

bool
sim_format_unified(uint32_t format, uint32_t *dfmt, uint32_t *nfmt)
{
    /* runs of numbers: data format, its number formats in order as digits */
    static const struct {
        uint8_t first, dfmt;
        const char *nfmts;
    } runs[] = {{1, 1, "012345"},   {7, 2, "0123457"},  {14, 3, "012345"}, {20, 4, "457"},
                {23, 5, "0123457"}, {30, 6, "7"},       {31, 7, "7"},      {32, 8, "0145"},
                {36, 9, "012345"},  {42, 10, "012345"}, {48, 11, "457"},   {51, 12, "0123457"},
                {58, 13, "457"},    {61, 14, "457"}};
    for (uint32_t i = 0; i < TL_COUNT(runs); i++) {
        uint32_t at = format - runs[i].first;
        if (format >= runs[i].first && at < strlen(runs[i].nfmts)) {
            *dfmt = runs[i].dfmt;
            *nfmt = (uint32_t)(runs[i].nfmts[at] - '0');
            return true;
        }
    }
    return false;
}

/* A small float with 5 bits of exponent: 16 bits with a sign, 11 and 10 bits without. The bits of a NaN stay.
 */
static uint32_t
small_to_float(uint32_t x, uint32_t mant, bool sign)
{
    uint32_t s = sign && x >> (mant + 5) ? 0x80000000u : 0, e = x >> mant & 31, m = x & ((1u << mant) - 1);
    if (e == 31)
        return s | 0x7f800000u | m << (23 - mant);
    if (e)
        return s | (e + 112) << 23 | m << (23 - mant);
    return s | sim_f32_bits(ldexpf((float)m, -14 - (int)mant));
}

/* To such a float: to nearest even, or what is too small cut off. Any NaN becomes the quiet one. */
static uint32_t
to_small(double f, uint32_t mant, bool sign, bool cut)
{
    bool minus = signbit(f);
    uint32_t s = sign && minus ? 1u << (mant + 5) : 0, inf = 31u << mant;
    if (f != f)
        return s | inf | 1u << (mant - 1);
    f = fabs(f);
    if (f == 0 || (!sign && minus))
        return s;
    int e;
    frexp(f, &e);
    if (e > 16)
        return s | (cut && !isinf(f) ? inf - 1 : inf);
    int ulp = (e < -13 ? -13 : e) - 1 - (int)mant; /* of the result */
    double scaled = ldexp(f, -ulp), whole = cut ? trunc(scaled) : rint(scaled);
    uint32_t n = (uint32_t)whole; /* carries go into the exponent by themselves */
    uint32_t r = e < -13 ? n : ((uint32_t)(e + 14) << mant) + n - (1u << mant);
    return s | (r > inf ? inf : r);
}

/* A component of n bits in memory as a number in a register; half: of 16 bits, cut: f32 is cut off then. */
static uint32_t
component_load(uint32_t x, uint32_t n, uint32_t nfmt, bool half, bool cut)
{
    int32_t s = n < 32 && x >> (n - 1) & 1 ? (int32_t)(x | ~0u << n) : (int32_t)x;
    double top = ldexp(1, (int)n) - 1, stop = ldexp(1, (int)n - 1) - 1, v;
    switch (nfmt) {
    case N_UNORM:
        v = x / top;
        break;
    case N_SNORM:
        v = s / stop < -1 ? -1 : s / stop;
        break;
    case N_USCALED:
        v = x;
        break;
    case N_SSCALED:
        v = s;
        break;
    case N_FLOAT:
        if (n < 10 || (!half && n == 32))
            return x;
        if (!half)
            return small_to_float(x, n == 16 ? 10 : n - 5, n == 16);
        if (n < 32) /* the same exponents */
            return n == 16 ? x : x << (15 - n);
        v = sim_f32(x);
        cut = cut && v == v;
        return to_small(v, 10, true, cut);
    case N_SINT:
        return half ? (uint32_t)s & 0xffff : (uint32_t)s;
    default:
        return half ? x & 0xffff : x;
    }
    return half ? to_small(v, 10, true, false) : sim_f32_bits((float)v);
}

static uint32_t
component_store(uint32_t c, uint32_t n, uint32_t nfmt, bool half)
{
    bool integer = nfmt == N_UINT || nfmt == N_SINT;
    if (half && nfmt == N_FLOAT && n == 16)
        return c & 0xffff;
    if (half)
        c = nfmt == N_SINT ? (uint32_t)(int16_t)c
            : integer      ? c & 0xffff
                           : small_to_float(c & 0xffff, 10, true);
    double f = sim_f32(c), top = ldexp(1, (int)n) - 1, stop = ldexp(1, (int)n - 1) - 1, v;
    uint32_t mask = n < 32 ? (1u << n) - 1 : ~0u;
    if (nfmt == N_FLOAT)
        return n == 32 ? c : n > 9 ? to_small(f, n == 16 ? 10 : n - 5, n == 16, false) : c & mask;
    f = f != f ? 0 : f;
    switch (nfmt) {
    case N_UNORM:
    case N_USCALED:
        v = nfmt == N_UNORM ? rint((f < 0 ? 0 : f > 1 ? 1 : f) * top) : trunc(f < 0 ? 0 : f > top ? top : f);
        return (uint32_t)v;
    case N_SNORM:
    case N_SSCALED:
        v = nfmt == N_SNORM ? rint((f < -1  ? -1
                                    : f > 1 ? 1
                                            : f) *
                                   stop)
                            : trunc(f < -stop - 1 ? -stop - 1
                                    : f > stop    ? stop
                                                  : f);
        return (uint32_t)(int32_t)v & mask;
    case N_SINT:
        v = (int32_t)c < -stop - 1 ? -stop - 1 : (int32_t)c > stop ? stop : (int32_t)c;
        return (uint32_t)(int32_t)v & mask;
    default:
        return c > mask ? mask : c;
    }
}

uint32_t
sim_format_one(uint32_t nfmt, bool half)
{
    return nfmt == N_UINT || nfmt == N_SINT ? 1 : half ? 0x3c00 : 0x3f800000;
}

void
sim_format_load(uint32_t dfmt, uint32_t nfmt, uint64_t mem, uint32_t c[4], bool half, bool cut)
{
    const uint8_t *w = widths[dfmt & 15];
    uint32_t words[4] = {0}, at = 0;
    sim_dm_read(words, mem, sim_format_bytes(dfmt));
    for (uint32_t i = 0; i < 4; at += w[i++]) {
        c[i] = i < 3 ? 0 : sim_format_one(nfmt, half);
        if (w[i]) /* no component crosses a dword */
            c[i] = component_load(words[at / 32] >> at % 32 & (w[i] < 32 ? (1u << w[i]) - 1 : ~0u), w[i],
                                  nfmt, half, cut);
    }
}

void
sim_format_store(uint32_t dfmt, uint32_t nfmt, const uint32_t c[4], uint64_t mem, bool half)
{
    const uint8_t *w = widths[dfmt & 15];
    uint32_t words[4] = {0}, at = 0;
    for (uint32_t i = 0; i < 4; at += w[i++])
        if (w[i])
            words[at / 32] |= component_store(c[i], w[i], nfmt, half) << at % 32;
    sim_dm_write(mem, words, sim_format_bytes(dfmt));
}
