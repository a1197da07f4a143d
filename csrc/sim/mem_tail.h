/* mem_tail.h - the rest of an allocation's last page. The chip checks addresses by pages: reading or writing
 * there does no harm, and library code does it. Without checks neither does ours; "bounds" knows the exact
 * end. */
#ifndef TL_SIM_MEM_TAIL_H
#define TL_SIM_MEM_TAIL_H

#include "sim/mem.h"

/* Do the n bytes at addr lie in the pages of one allocation of this device, some of them behind its end?
 * (mem_port.c) */
bool sim_mem_in_tail(const SimMemPort *p, uint64_t addr, uint32_t n);

#endif
