/* fast_base.c - whole VALU instructions built for one host level (base); chosen at run time. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_BASE 1
#define FAST_TABLE     sim_fast_base
#include "sim/core.h"
#include "sim/fast.inc"
