/* mfma_hw.h - dot products of matrix and dot instructions as the chips themselves sum them (mfma="hw").
 *
 * One element of D: sim_hw_rule finds the arithmetic of (chip, element types, kind of instruction),
 * sim_hw_num decodes elements of A and B once, sim_hw_dot sums k products in k order and C. The caller knows
 * the lanes: it hands over a[k], b[k] of one row and one column. Integer types are exact and have no rule
 * here. Everything is integer arithmetic or single host operations in round-to-nearest; no state.
 *
 * Rules: S one fused multiply-add a step; P products and sums rounded to f32 one by one, subnormals flushed;
 * T up to 8 products cut to a common exponent, C floored, one rounding; U the same with even and odd k apart;
 * R3 pairs of products in the sign frame of C; R4 pairs floored, then four and C.
 */
#ifndef TL_SIM_MFMA_HW_H
#define TL_SIM_MFMA_HW_H

#include "base/base.h"
#include "isa/isa.h"

typedef enum SimHwFmt { /* elements of A and B; Z: the FNUZ formats */
                        SIM_HW_F32,
                        SIM_HW_XF32,
                        SIM_HW_F16,
                        SIM_HW_BF16,
                        SIM_HW_E4M3,
                        SIM_HW_E5M2,
                        SIM_HW_E4M3Z,
                        SIM_HW_E5M2Z,
                        SIM_HW_E2M3,
                        SIM_HW_E3M2,
                        SIM_HW_E2M1,
                        SIM_HW_FMT_COUNT
} SimHwFmt;
typedef enum SimHwOut { SIM_HW_D_F32, SIM_HW_D_F16, SIM_HW_D_BF16 } SimHwOut; /* type of C and D */
typedef enum SimHwUse {
    SIM_HW_MATRIX,
    SIM_HW_MATRIX_OLD, /* v_mfma_*_bf16 without _1k */
    SIM_HW_SPARSE,     /* smfmac, swmmac: the selected products in k order */
    SIM_HW_DOT         /* v_dot2*, v_dot4* */
} SimHwUse;
typedef enum SimHwRule {
    SIM_HW_NONE,
    SIM_HW_S,
    SIM_HW_P,
    SIM_HW_T,
    SIM_HW_U,
    SIM_HW_R3,
    SIM_HW_R4
} SimHwRule;

typedef struct SimHwDot {
    uint8_t rule, group; /* products of one step */
    uint8_t pair;        /* R4: products that share an exponent before they meet the others */
    uint8_t fa, fb, out; /* SimHwFmt, SimHwFmt, SimHwOut */
    uint8_t frac;        /* fraction bits of a product */
    uint8_t mode_c;      /* S: C and D follow MODE's denormal bits too */
    bool verified;       /* false: no hardware results are known; a neighbour's rule is used */
} SimHwDot;

typedef struct SimHwNum { /* value = (-1)^neg * sig * 2^(e - fraction bits); rules S and P: sig = bits of an
                             f32 */
    uint32_t sig;
    int16_t e;
    uint8_t neg, cls;
} SimHwNum;
enum { SIM_HW_FINITE, SIM_HW_INF, SIM_HW_NAN };

/* False: no rule is known for this combination. */
bool sim_hw_rule(IsaArch arch, SimHwFmt fa, SimHwFmt fb, SimHwOut out, SimHwUse use, SimHwDot *h);
/* What is known of an instruction by its mnemonic (v_mfma_*, v_smfmac_*, v_wmma_*, v_swmmac_*, v_dot*). *h is
 * filled for HARDWARE and ASSUMED; f8f6f4, whose formats are in the encoding, counts as fp8. */
typedef enum SimHwKnown {
    SIM_HW_NOT_MATRIX, /* not such an instruction */
    SIM_HW_UNKNOWN,    /* nothing is known: refused */
    SIM_HW_ASSUMED,    /* by the rule of a neighbour */
    SIM_HW_HARDWARE,   /* measured on hardware */
    SIM_HW_EXACT       /* integers and doubles: the default is right */
} SimHwKnown;
SimHwKnown sim_hw_by_name(IsaArch arch, const char *mnemonic, SimHwDot *h);
SimHwNum sim_hw_num(const SimHwDot *h, SimHwFmt fmt, uint32_t bits);
/* Multiplies by the block scale 2^(s - 127); 255 makes a NaN. */
void sim_hw_scale(SimHwNum *x, uint32_t s);
/* c and the result: bits of the type h->out. mode: the MODE register (denormals of S, bit 23 FP16_OVFL). */
uint32_t sim_hw_dot(const SimHwDot *h, const SimHwNum *a, const SimHwNum *b, uint32_t k, uint32_t c,
                    uint32_t mode);
/* The same from element bits, at most 128 of them. */
uint32_t sim_hw_dot_bits(const SimHwDot *h, const uint32_t *a, const uint32_t *b, uint32_t k, uint32_t c,
                         uint32_t mode);

#endif
