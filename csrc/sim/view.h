/* view.h - shapes of registered host arrays in normal form; shared by mem.c and view.c. */
#ifndef TL_SIM_VIEW_H
#define TL_SIM_VIEW_H

#include "sim/mem.h"

/* Brings an array's shape into normal form; false when it overflows. *n is the size of its hull, 0 for an
 * empty array. */
bool sim_view_make(SimView *v, uint64_t base, uint32_t ndim, const int64_t *shape, const int64_t *strides,
                   uint32_t item, uint64_t *n);

#endif
