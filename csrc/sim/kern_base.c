/* kern_base.c - VALU kernels and matrix loops built for one host level (base); chosen at run time. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#define SIM_LEVEL_BASE 1
#define KERN_TABLE     kern_table_base
#include "sim/core.h"
#include "sim/fast.h"
#include "sim/kern.inc"
#include "sim/body.inc"
#include "sim/mma.inc"

const SimHostOps sim_host_base = {KERN_TABLE, kern_flush, body_table, body_blend, mma_f32,      mma_i32,
                                  smma_f32,   smma_i32,   half_rows,  lut_rows,   sim_fast_base};
