/* counters.h - the counters of memory operations under way: which one an instruction counts in, in what order
 * each comes back, what a wait asks of each. One table for the static checks, the wait check and late
 * delivery.
 *
 * A counter here is a queue of its own kind of operation. Where hardware counts two kinds together (lgkmcnt:
 * LDS and scalar memory, before gfx12) they are two counters that isa_counters_joined names: a wait for N
 * then leaves at most N of both together.
 */
#ifndef TL_ISA_COUNTERS_H
#define TL_ISA_COUNTERS_H

#include "isa/isa.h"

typedef enum IsaCounter {
    ISA_CNT_VM,     /* vmcnt, loadcnt: vector loads (gfx9: stores too) */
    ISA_CNT_VS,     /* vscnt, storecnt: vector stores */
    ISA_CNT_DS,     /* the LDS part of lgkmcnt, dscnt */
    ISA_CNT_KM,     /* the scalar part of lgkmcnt, kmcnt: scalar loads and messages, out of order */
    ISA_CNT_SAMPLE, /* samplecnt (gfx12) */
    ISA_CNT_BVH,    /* bvhcnt (gfx12) */
    ISA_CNT_EXP,    /* expcnt */
    ISA_CNT_COUNT
} IsaCounter;

enum { ISA_CNT_ANY = 0xffff }; /* no wait on this counter */

/* "vmcnt", "loadcnt", "lgkmcnt" ...: the name that a wait of this chip has. */
const char *isa_counter_name(IsaArch arch, IsaCounter c);
/* Counters (bits 1 << IsaCounter) that the instruction counts up; 0: none. A flat access counts in two. */
uint32_t isa_counters_of(IsaArch arch, const IsaInst *in);
/* Counters that one hardware counter holds together with c (bits, with c itself). */
uint32_t isa_counters_joined(IsaArch arch, IsaCounter c);
/* Do operations of this counter come back in the order of issue? */
bool isa_counter_in_order(IsaCounter c);
/* The most a counter holds: at that number the issue of one more waits. */
uint32_t isa_counter_most(IsaArch arch, IsaCounter c);
/* What a wait instruction asks: at most limit[c] left, ISA_CNT_ANY = not asked. false: it is no such wait. */
bool isa_wait_limits(IsaArch arch, const IsaInst *in, uint16_t limit[ISA_CNT_COUNT]);

#endif
