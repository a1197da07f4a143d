/* fast.h - whole VALU instructions in one piece (fast.inc). */
#ifndef TL_SIM_FAST_H
#define TL_SIM_FAST_H

#include "sim/valu.h"

/* Bodies of a kernel by where its scalar operand is: none, source 0, 1, 2. Its value is in SimRec.imm if it
 * is a constant. NULL: no such body. */
typedef struct SimFast {
    bool hot;
    SimBody plain[4], sign[4];       /* sign: RS_NEG, RS_ABS of SimRec.fl2 */
    SimBody flush[4], flush_sign[4]; /* subnormal f32 flushed; NULL: the same as plain */
} SimFast;
extern const SimFast sim_fast_base[K_COUNT], sim_fast_avx2[K_COUNT], sim_fast_avx512[K_COUNT];

#endif
