/* kern_avx2.c - VALU kernels and matrix loops built for one host level (avx2); chosen at run time. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_AVX2 1
#define KERN_TABLE     kern_table_avx2
#include "sim/core.h"
#include "sim/fast.h"
#include "sim/kern.inc"
#include "sim/body.inc"
#include "sim/mma.inc"

const SimHostOps sim_host_avx2 = {KERN_TABLE, kern_flush, body_table, body_blend, mma_f32,      mma_i32,
                                  smma_f32,   smma_i32,   half_rows,  lut_rows,   sim_fast_avx2};
#else
typedef int sim_no_such_host_level;
#endif
