/* kern_avx512.c - VALU kernels and matrix loops built for one host level (avx512); chosen at run time. */
#if defined(__x86_64__)
#pragma GCC target(                                                                                          \
    "avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,prefer-vector-width=512")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_AVX512 1
#define KERN_TABLE       kern_table_avx512
#include "sim/core.h"
#include "sim/fast.h"
#include "sim/kern.inc"
#include "sim/body.inc"
#include "sim/mma.inc"

const SimHostOps sim_host_avx512 = {KERN_TABLE, kern_flush, body_table, body_blend, mma_f32,        mma_i32,
                                    smma_f32,   smma_i32,   half_rows,  lut_rows,   sim_fast_avx512};
#else
typedef int sim_no_such_host_level;
#endif
