/* hip_more.c - HIP: second names and refusals (hip_more.def), and the few exports that are no HIP calls. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"

hipError_t
sim_hip_refuse(const char *name, atomic_bool *said)
{
    if (!atomic_exchange(said, true))
        fprintf(stderr, "tilelang simulator: %s is not supported\n", name);
    return hipErrorNotSupported;
}

/* The arguments are the caller's business in every calling convention that we build for. */
#define SIM_ALIAS(name, function)
#define SIM_REFUSED(name)                                                                                    \
    TL_API hipError_t name(void);                                                                            \
    hipError_t name(void)                                                                                    \
    {                                                                                                        \
        static atomic_bool said;                                                                             \
        return sim_hip_result(sim_hip_refuse(#name, &said));                                                 \
    }
#include "sim/hip_more.def"
#undef SIM_ALIAS
#undef SIM_REFUSED

#if defined(__x86_64__)
#define JUMP(name) "endbr64\n\tjmp " name "@PLT\n"
#elif defined(__aarch64__)
#define JUMP(name) "b " name "\n"
#endif
#define SIM_REFUSED(name)
#define SIM_ALIAS(name, function)                                                                            \
    __asm__(".text\n\t.p2align 4\n\t.globl " #name "\n\t.type " #name ", %function\n" #name                  \
            ":\n\t" JUMP(#function) "\t.size " #name ", .-" #name "\n");
#include "sim/hip_more.def"
#undef SIM_ALIAS
#undef SIM_REFUSED

#define SIM_ALIAS(name, function) extern void name(void);
#define SIM_REFUSED(name)
#include "sim/hip_more.def"
#undef SIM_ALIAS
#undef SIM_REFUSED

static const struct {
    const char *name;
    void (*fn)(void);
} more[] = {
#define SIM_ALIAS(name, function) {#name, name},
#define SIM_REFUSED(name)         {#name, (void (*)(void))name},
#include "sim/hip_more.def"
#undef SIM_ALIAS
#undef SIM_REFUSED
};

void *
sim_hip_more(const char *name)
{
    void *p = NULL;
    for (size_t i = 0; i < TL_COUNT(more) && !p; i++)
        if (!strcmp(more[i].name, name))
            memcpy(&p, &more[i].fn, sizeof p);
    return p;
}

/* ---- no calls of HIP ---- */

SimChannelDesc
hipCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (SimChannelDesc){x, y, z, w, kind};
}

const char *
hipGetCmdName(unsigned id)
{
    return hipApiName(id);
}

/* Round to nearest even; NaN stays NaN. */
unsigned short
__gnu_f2h_ieee(float value)
{
    uint32_t u, sign, e, m;
    memcpy(&u, &value, 4);
    sign = u >> 16 & 0x8000;
    e = u >> 23 & 255;
    m = u & 0x7fffff;
    if (e == 255)
        return (unsigned short)(sign | 0x7c00 | (m ? 0x200 | m >> 13 : 0));
    int exp = (int)e - 112;
    if (exp >= 31)
        return (unsigned short)(sign | 0x7c00);
    if (exp <= 0) {
        if (exp < -10)
            return (unsigned short)sign;
        m |= 0x800000;
        uint32_t shift = (uint32_t)(14 - exp), half = 1u << (shift - 1), rest = m & ((1u << shift) - 1);
        m >>= shift;
        return (unsigned short)(sign | (m + (rest > half || (rest == half && (m & 1)))));
    }
    uint32_t h = (uint32_t)exp << 10 | m >> 13, rest = m & 0x1fff;
    return (unsigned short)(sign | (h + (rest > 0x1000 || (rest == 0x1000 && (h & 1)))));
}

float
__gnu_h2f_ieee(unsigned short bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, e = bits >> 10 & 31, m = bits & 0x3ff, u;
    float f;
    if (e == 31) {
        u = sign | 0x7f800000 | m << 13;
    } else if (e) {
        u = sign | (e + 112) << 23 | m << 13;
    } else {
        f = (float)m * 0x1p-24f;
        memcpy(&u, &f, 4);
        u |= sign;
    }
    memcpy(&f, &u, 4);
    return f;
}

void
__hipOnError(hipError_t e)
{
    sim_hip_result(e);
}

static void
refuse_registration(const char *what, const char *name)
{
    fprintf(stderr, "tilelang simulator: %s %s is not supported: its use by a kernel is a fault\n", what,
            name ? name : "");
}

void
__hipRegisterSurface(void **module, void *var, char *host, char *device, int type, int ext)
{
    (void)module, (void)var, (void)host, (void)type, (void)ext;
    refuse_registration("the surface", device);
}

void
__hipRegisterTexture(void **module, void *var, char *host, char *device, int type, int normalized, int ext)
{
    (void)module, (void)var, (void)host, (void)type, (void)normalized, (void)ext;
    refuse_registration("the texture", device);
}
