/* race_int.h - shared by race.c (the shadow of global memory) and race_order.c (what happens before what). */
#ifndef TL_SIM_RACE_INT_H
#define TL_SIM_RACE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "sim/mem.h"

enum { PAGE_BITS = 12, PAGE_DWORDS = 1 << (PAGE_BITS - 2), CHUNK_BITS = 14, MAX_CHUNKS = 1 << 16 };
enum { ALL_WAVES = 0xffff };
enum { BLOCK_DWORDS = 16, PAGE_BLOCKS = PAGE_DWORDS / BLOCK_DWORDS };
enum { /* epochs in the shadow: id and, for reads, marks */
       EP_ID = (1 << 30) - 1,
       EP_MOVED = EP_ID,     /* write side: the dword is in the overflow table */
       EP_SPLIT = EP_ID - 1, /* the dwords of the block have records of their own */
       EP_WAVES = 1 << 30    /* other waves of the group read it too */
};
#define EP_GROUPS (UINT32_C(1) << 31) /* other groups read it too */
enum {
    PC_ATOMIC = 0x8000,
    PC_UNKNOWN = 0x7fff,
    PC_SHIFT = 8,
    PC_LEAVES = 1 << 16
}; /* numbers of instructions */

typedef struct Rec { /* one record; epoch 0 = none. A write has no multi_*: there multi_wave says "maybe" */
    uint32_t epoch;
    uint16_t pc; /* number of the instruction */
    uint8_t mask;
    uint8_t atomic : 1, multi_wave : 1, multi_group : 1, moved : 1;
} Rec;

typedef struct Cell {
    Rec wr, rd;
} Cell;

typedef struct Dwords {
    uint32_t epoch[PAGE_DWORDS];
    uint16_t pc[PAGE_DWORDS];
} Dwords;

typedef struct Side { /* records of one kind of a page */
    struct {
        uint32_t epoch;
        uint16_t pc;
    } block[PAGE_BLOCKS];
    Dwords *dw; /* NULL: no block is split */
} Side;

typedef struct Page {
    struct Page *next;
    uint64_t key;
    atomic_flag lock;
    uint8_t *mask; /* low half: bytes of the last write, high half: of the last read; NULL: all four */
    Side wr, rd;
} Page;

typedef struct KnownEntry { /* accesses of (group, wave) with releases <= bound, or of all waves with interval
                               < bound */
    uint32_t group, wave, bound;
} KnownEntry;

typedef struct SimKnown {
    uint32_t n, cap;
    KnownEntry *e; /* sorted by group, wave */
} SimKnown;

typedef struct Epoch {
    uint32_t group, wave, interval, releases, waited;
    uint32_t released; /* who sees a store of this epoch knows the wave's accesses with fewer releases; more
                          than releases: the epoch is that of one store that may be a release */
    SimKnown *known;   /* what the wave had acquired when this epoch began with a release; NULL: nothing */
} Epoch;

typedef struct Sync {
    uint64_t addr;
    SimKnown known;
    SimRaceSync *fail; /* of each workgroup the last store or atomic that was no release */
    uint32_t nfail, fail_cap;
    struct Sync *next;
} Sync;

typedef struct Bytes { /* a dword with records for each byte */
    uint64_t dword;
    Cell b[4];
    struct Bytes *next;
} Bytes;

enum { BUCKETS = 1 << 12, PAGE_BUCKETS = 1 << 16 };

struct SimRace {
    pthread_mutex_t lock; /* page table, epochs, instructions, sync */
    _Atomic(Page *) *pages;
    Epoch *chunk[MAX_CHUNKS];
    _Atomic(_Atomic(uint16_t) *) pc_leaf[PC_LEAVES]; /* by slot: number of the instruction, 0 = none yet */
    uint32_t *pc_slot;                               /* by number */
    uint32_t npcs;
    uint32_t nepochs;
    Sync *sync[BUCKETS];
    pthread_mutex_t bytes_lock;
    Bytes *bytes[BUCKETS];
    atomic_bool oom;
};

static inline const Epoch *
epoch_of(const SimRace *r, uint32_t id)
{
    return &r->chunk[id >> CHUNK_BITS][id & ((1u << CHUNK_BITS) - 1)];
}

/* Index of the first entry not before (group, wave). */
static inline uint32_t
known_at(const SimKnown *k, uint32_t group, uint32_t wave)
{
    uint32_t a = 0, b = k->n;
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        const KnownEntry *e = &k->e[mid];
        if (e->group < group || (e->group == group && e->wave < wave))
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

static inline bool
known_has(const SimKnown *k, const Epoch *e)
{
    uint32_t i = known_at(k, e->group, e->wave);
    if (i < k->n && k->e[i].group == e->group && k->e[i].wave == e->wave && e->releases < k->e[i].bound)
        return true;
    i = known_at(k, e->group, ALL_WAVES);
    return i < k->n && k->e[i].group == e->group && k->e[i].wave == ALL_WAVES && e->interval < k->e[i].bound;
}

/* Does a barrier order epoch e of the same workgroup before what w does now? */
static inline bool
by_barrier(const Epoch *e, const SimRaceWave *w, SimAccess kind)
{
    if (!w->seen || e->wave >= w->nwaves)
        return e->interval < w->waited;
    return e->interval < w->seen[kind == SIM_ACC_READ ? e->wave : w->nwaves + e->wave];
}

/* Does epoch `id` happen before what w does now? */
static inline bool
before(const SimRace *r, uint32_t id, const SimRaceWave *w, SimAccess kind)
{
    if (id == w->epoch)
        return true;
    const Epoch *e = epoch_of(r, id);
    if (e->group == w->workgroup && (e->wave == w->wave || by_barrier(e, w, kind)))
        return true;
    return w->known && known_has(w->known, e);
}

/* The id of the wave's present epoch; 0 when out of memory. */
uint32_t sim_epoch_now_(SimRace *r, SimRaceWave *w);
/* Number of the instruction at this slot; PC_UNKNOWN when there are too many. */
uint16_t sim_pc_number_(SimRace *r, uint32_t slot);
void sim_known_free_(SimKnown *k);
/* An atomic puts its record at addr over a store that may be atomic: the release of that store is handed on.
 */
void sim_race_carry_(SimRace *r, uint64_t addr, uint32_t epoch);

#endif
