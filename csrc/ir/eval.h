/* eval.h - runs tile-level kernels on host memory in the plain semantics of the language: one program after
 * the other, every element-wise result rounded to its type, dot accumulated in f32 (f64, i32) with k
 * ascending. The reference that the compiler is tested against; simple, not fast.
 *
 * A tile's elements are valid inside a box [lo, hi) of its dims and, where an index tile or a mask made it,
 * where a mask says so. Reads outside a buffer are invalid, scalar reads there 0; writes there are dropped.
 */
#ifndef TL_IR_EVAL_H
#define TL_IR_EVAL_H

#include "ir/ir.h"

typedef struct TlEvalArg {                           /* a kernel parameter */
    void *data;                                      /* buffer: address of element [0, ..., 0] */
    int64_t dims[TL_MAX_RANK], strides[TL_MAX_RANK]; /* buffer: elements */
    TlNum scalar;
} TlEvalArg;

/* Runs grid[0] * grid[1] * grid[2] programs, axis 0 fastest. The dims of a buffer must agree with its type
 * where that is constant. false: not a tile-level kernel, a failed assert, an operation that has no meaning
 * here, no memory; the reason is in ir->diag. The kernel must have passed the verifier. */
bool tl_eval(TlIr *ir, TlKernelId k, const TlEvalArg *args, uint32_t nargs, const int64_t grid[3]);

#endif
