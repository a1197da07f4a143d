/* bits.h - floats and their bits; halves to floats. */
#ifndef TL_SIM_BITS_H
#define TL_SIM_BITS_H

#include <stdint.h>
#include <string.h>

static inline float
sim_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t
sim_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline double
sim_f64(uint64_t u)
{
    double f;
    memcpy(&f, &u, 8);
    return f;
}
static inline uint64_t
sim_f64_bits(double f)
{
    uint64_t u;
    memcpy(&u, &f, 8);
    return u;
}

/* The value of a half (low 16 bits), exact; a NaN keeps its payload. */
static inline float
sim_f16(uint32_t h)
{
    uint32_t x = h & 0x7fff, o = x << 13, r;
    if (x < 0x400)
        r = sim_f32_bits(sim_f32(o + (113u << 23)) - sim_f32(113u << 23));
    else
        r = o + (x >= 0x7c00 ? 224u << 23 : 112u << 23);
    return sim_f32(r | (h & 0x8000) << 16);
}

#endif
