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

/* A small float with 5 bits of exponent: 16 bits with a sign, 11 and 10 bits without. */
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

static uint32_t
float_to_small(uint32_t u, uint32_t mant, bool sign)
{
    float f = sim_f32(u & 0x7fffffff);
    uint32_t s = sign ? u >> 31 << (mant + 5) : 0, inf = 31u << mant;
    if (f != f)
        return s | inf | 1u << (mant - 1);
    if (!sign && u >> 31)
        return 0;
    int e;
    frexpf(f, &e);
    int ulp = (e < -13 ? -13 : e) - 1 - (int)mant; /* of the result */
    double scaled = ldexp((double)f, -ulp), whole = rint(scaled);
    if (!(whole < ldexp(1, 40)) || e > 17)
        return s | inf;
    uint32_t n = (uint32_t)whole; /* carries go into the exponent by themselves */
    uint32_t r = e < -13 ? n : ((uint32_t)(e + 14) << mant) + n - (1u << mant);
    return s | (r > inf ? inf : r);
}

uint32_t
sim_half_of(uint32_t f32)
{
    return float_to_small(f32, 10, true);
}

static uint32_t
component_load(uint32_t x, uint32_t n, uint32_t nfmt)
{
    int32_t s = n < 32 && x >> (n - 1) & 1 ? (int32_t)(x | ~0u << n) : (int32_t)x;
    double top = ldexp(1, (int)n) - 1, stop = ldexp(1, (int)n - 1) - 1;
    switch (nfmt) {
    case N_UNORM:
        return sim_f32_bits((float)(x / top));
    case N_SNORM:
        return sim_f32_bits((float)(s / stop < -1 ? -1 : s / stop));
    case N_USCALED:
        return sim_f32_bits((float)x);
    case N_SSCALED:
        return sim_f32_bits((float)s);
    case N_SINT:
        return (uint32_t)s;
    case N_FLOAT:
        return n == 16   ? small_to_float(x, 10, true)
               : n == 32 ? x
               : n > 9   ? small_to_float(x, n - 5, false)
                         : x;
    default:
        return x;
    }
}

static uint32_t
component_store(uint32_t c, uint32_t n, uint32_t nfmt)
{
    double f = sim_f32(c), top = ldexp(1, (int)n) - 1, stop = ldexp(1, (int)n - 1) - 1, v;
    uint32_t mask = n < 32 ? (1u << n) - 1 : ~0u;
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
    case N_FLOAT:
        return n == 16   ? float_to_small(c, 10, true)
               : n == 32 ? c
               : n > 9   ? float_to_small(c, n - 5, false)
                         : c & mask;
    default:
        return c > mask ? mask : c;
    }
}

void
sim_format_load(uint32_t dfmt, uint32_t nfmt, uint64_t mem, uint32_t c[4])
{
    const uint8_t *w = widths[dfmt & 15];
    uint32_t words[4] = {0}, at = 0;
    sim_dm_read(words, mem, sim_format_bytes(dfmt));
    for (uint32_t i = 0; i < 4; at += w[i++]) {
        c[i] = i < 3 ? 0 : nfmt == N_UINT || nfmt == N_SINT ? 1 : 0x3f800000u;
        if (w[i]) /* no component crosses a dword */
            c[i] =
                component_load(words[at / 32] >> at % 32 & (w[i] < 32 ? (1u << w[i]) - 1 : ~0u), w[i], nfmt);
    }
}

void
sim_format_store(uint32_t dfmt, uint32_t nfmt, const uint32_t c[4], uint64_t mem)
{
    const uint8_t *w = widths[dfmt & 15];
    uint32_t words[4] = {0}, at = 0;
    for (uint32_t i = 0; i < 4; at += w[i++])
        if (w[i])
            words[at / 32] |= component_store(c[i], w[i], nfmt) << at % 32;
    sim_dm_write(mem, words, sim_format_bytes(dfmt));
}
