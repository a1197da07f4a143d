/* fast_avx512.c - whole VALU instructions built for one host level (avx512); chosen at run time. */
#if defined(__x86_64__)
#pragma GCC target(                                                                                          \
    "avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,prefer-vector-width=512")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_AVX512 1
#define FAST_TABLE       sim_fast_avx512
#include "sim/core.h"
#include "sim/fast.inc"
#else
typedef int sim_no_such_host_level;
#endif
