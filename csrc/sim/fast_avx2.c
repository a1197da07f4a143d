/* fast_avx2.c - whole VALU instructions built for one host level (avx2); chosen at run time. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_AVX2 1
#define FAST_TABLE     sim_fast_avx2
#include "sim/core.h"
#include "sim/fast.inc"
#else
typedef int sim_no_such_host_level;
#endif
