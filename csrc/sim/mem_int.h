/* mem_int.h - what the files of the allocation table share: the table and its snapshots (contract in mem.h).
 */
#ifndef TL_SIM_MEM_INT_H
#define TL_SIM_MEM_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "sim/mem.h"

enum { SIM_MEM_PAGE = 4096 };

typedef struct SimMemRange {
    uint64_t lo, hi;
} SimMemRange;

struct SimMemSnapshot {
    atomic_int refs;
    uint32_t n, nranges;
    SimExtent *ext;      /* sorted by base, disjoint */
    SimMemRange *ranges; /* mappings the table owns, sorted: never foreign */
    SimView *views;
    char (*names)[40];
};

struct SimMem {
    pthread_mutex_t lock;
    struct Owned **owned;
    uint32_t nowned, owned_cap;
    struct Reg *regs;
    uint32_t nregs, reg_cap;
    uint64_t next_id, bytes;
    bool init_shadow;
    SimMemSnapshot *snap; /* NULL: out of date */
    SimMem *peers[SIM_MEM_PEERS];
    bool reach[SIM_MEM_PEERS];
    uint32_t npeers;
};

/* A reference to the current snapshot; NULL when out of memory. */
SimMemSnapshot *sim_snap_get(SimMem *m);
void sim_snap_unref(SimMemSnapshot *s);
/* Index of the last extent with base <= addr, or -1. */
static inline int64_t
sim_snap_below(const SimMemSnapshot *s, uint64_t addr)
{
    int64_t lo = 0, hi = s->n;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (s->ext[mid].base <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo - 1;
}

#endif
