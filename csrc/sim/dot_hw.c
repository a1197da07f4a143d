/* dot_hw.c - v_dot2* and v_dot4_f32_* of RDNA as kernels that sum like the chip (mfma="hw", mfma_hw.h).
 *
 * The wrappers have applied every modifier: a and b are packed elements, c is of the type of the result.
 */
#include "sim/core.h"
#include "sim/mfma_hw.h"

static void
rows(IsaArch arch, const char *name, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
     const SimK *x)
{
    SimHwDot h;
    sim_hw_by_name(arch, name, &h); /* is there: sim_hw_kern asked */
    uint32_t n = h.fa == SIM_HW_F16 || h.fa == SIM_HW_BF16 ? 2 : 4, bits = 32 / n, mask = (1u << bits) - 1;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t p[4], q[4];
        for (uint32_t e = 0; e < n; e++) {
            p[e] = (a[l] >> (e * bits)) & mask;
            q[e] = (b[l] >> (e * bits)) & mask;
        }
        d[l] = sim_hw_dot_bits(&h, p, q, n, h.out == SIM_HW_D_F32 ? c[l] : c[l] & 0xffff, x->mode);
    }
}

#define DOT_OPS(ROW, arch)                                                                                   \
    ROW(arch, v_dot2_f32_f16)                                                                                \
    ROW(arch, v_dot2_f32_bf16)                                                                               \
    ROW(arch, v_dot2c_f32_f16)                                                                               \
    ROW(arch, v_dot2acc_f32_f16)                                                                             \
    ROW(arch, v_dot2acc_f32_bf16)                                                                            \
    ROW(arch, v_dot2_f16_f16)                                                                                \
    ROW(arch, v_dot2_bf16_bf16)                                                                              \
    ROW(arch, v_dot4_f32_fp8_fp8)                                                                            \
    ROW(arch, v_dot4_f32_fp8_bf8)                                                                            \
    ROW(arch, v_dot4_f32_bf8_fp8)                                                                            \
    ROW(arch, v_dot4_f32_bf8_bf8)

#define DEFINE(arch, name)                                                                                   \
    static void arch##_##name(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c, SimK *x) \
    {                                                                                                        \
        rows(ISA_##arch, #name, d, a, b, c, x);                                                              \
    }
DOT_OPS(DEFINE, GFX1100)
DOT_OPS(DEFINE, GFX1201)

SimKern
sim_hw_kern(IsaArch arch, const char *mnemonic)
{
#define LIST(arch, name) {ISA_##arch, #name, arch##_##name},
    static const struct {
        IsaArch arch;
        const char *name;
        SimKern fn;
    } list[] = {DOT_OPS(LIST, GFX1100) DOT_OPS(LIST, GFX1201)};
    SimHwDot h;
    SimHwKnown known = sim_hw_by_name(arch, mnemonic, &h);
    if (known != SIM_HW_HARDWARE && known != SIM_HW_ASSUMED)
        return NULL;
    for (uint32_t i = 0; i < TL_COUNT(list); i++)
        if (list[i].arch == arch && !strcmp(list[i].name, mnemonic))
            return list[i].fn;
    return NULL;
}
