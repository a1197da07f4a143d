/* race_int.h - shared by race.c (the shadow of global memory, pages touched densely), race_sparse.c (the rest
 * of it), race_comb.c (elements at equal distances), race_point.c (lone ones), race_pair.c (numbers of pairs
 * of records), race_cell.c (the rules for one byte or dword), race_order.c (what happens before what) and
 * race_sync.c (releases). */
#ifndef TL_SIM_RACE_INT_H
#define TL_SIM_RACE_INT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "sim/mem.h"

enum { PAGE_BITS = 12, PAGE_DWORDS = 1 << (PAGE_BITS - 2), CHUNK_BITS = 14, MAX_CHUNKS = 1 << 16 };
enum { ALL_WAVES = 0xffff };
#define OF_LOADS (UINT32_C(1) << 31)
enum { BLOCK_DWORDS = 16, BLOCK_BYTES = 4 * BLOCK_DWORDS, PAGE_BLOCKS = PAGE_DWORDS / BLOCK_DWORDS };
enum { MANY_PARTS = 24 }; /* as many entries of a block cost more than pairs of all its bytes */
enum {                    /* epochs in the shadow: id and, for reads, marks */
       EP_ID = (1 << 30) - 1,
       EP_MOVED = EP_ID,     /* write side: the bytes of the dword have pairs of their own */
       EP_SPLIT = EP_ID - 1, /* the dwords of the block have records of their own */
       EP_WAVES = 1 << 30    /* other waves of the group read it too */
};
#define EP_GROUPS (UINT32_C(1) << 31) /* other groups read it too */
enum { /* epochs below the first have no record: what waves do before their first barrier and release */
       FIRST_EPOCH = 1 << 22,
       PAIR_EPOCHS = 1 << 23, /* epochs below need no record of a pair either: its number says it all */
       PAIR_SHAPES = 256
};
#define PAIR_SHAPE (UINT32_C(1) << 31) /* | shape * PAIR_EPOCHS | epoch */
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

typedef struct Split { /* records of the dwords of a block */
    uint32_t epoch[BLOCK_DWORDS];
    uint16_t pc[BLOCK_DWORDS];
} Split;

typedef struct Side { /* records of one kind of a page */
    struct {
        uint32_t epoch;
        uint16_t pc;
        uint16_t split; /* number of its Split, from 1; 0: never had one */
    } block[PAGE_BLOCKS];
    Split *split;
    uint32_t nsplit, cap;
} Side;

typedef struct Flat {        /* pairs (race_pair.c, by records) of each byte of some blocks */
    uint8_t of[PAGE_BLOCKS]; /* from 1; 0: not among them */
    uint8_t n, cap, size;    /* size: bytes of a number */
    uint8_t number[];
} Flat;

typedef struct Page {
    struct Page *next;
    uint64_t key;
    atomic_flag lock;
    uint8_t *mask; /* low half: bytes of the last write, high half: of the last read; NULL: all four */
    Side wr, rd;
    Flat *flat; /* NULL: no dword is EP_MOVED */
} Page;

/* Pages that no access covered for the most part: regions with lists of entries. An entry says of some bytes
 * of some dwords of one block that they have the same records; a byte is in one entry or, never touched, in
 * none. Pairs of records are numbered. */
enum {
    REGION_BITS = 18,
    REGION_PAGES = 1 << (REGION_BITS - PAGE_BITS),
    REGION_LISTS = 16,
    WHOLE_BLOCK = 0xffff
};

typedef struct Pair { /* as in a page: epochs with marks, instructions with PC_ATOMIC; epoch 0: none */
    uint32_t wr, rd;
    uint16_t wr_pc, rd_pc;
} Pair;

typedef struct Shapes { /* pairs without records: wr, rd of at[] are marks | (is there one) */
    Pair at[PAIR_SHAPES];
    uint32_t n;
    uint16_t hash[2 * PAIR_SHAPES]; /* numbers of shapes from 1, 0 = free */
} Shapes;

typedef struct Entry {
    uint16_t at;     /* block in the region << 4 | bytes of each dword */
    uint16_t dwords; /* of the block, not 0 */
    uint32_t pair;   /* not 0 */
} Entry;

typedef struct List { /* sorted by `at` */
    Entry *e;
    uint32_t n, cap;
} List;

/* Elements of an access at equal distances: race_comb.c. */
typedef struct Comb {
    uint32_t at;   /* (start % stride * across + start / stride) * 2^13 | number of teeth */
    uint32_t pair; /* not 0 */
} Comb;

typedef struct Combs {
    uint32_t stride, width; /* width: at most half of it */
    uint32_t across;        /* strides in a region */
    uint32_t n, cap;
    Comb *c; /* sorted by `at` */
} Combs;

/* Lone elements: race_point.c. */
enum { POINT_SLAB_BITS = 10, POINT_WORDS = 16 };
typedef struct PointChunk {
    uint32_t word[POINT_WORDS]; /* the next chunk, cells; 0: none, free */
} PointChunk;
typedef struct Points Points;

typedef struct Region {
    struct Region *next;
    uint64_t key;
    atomic_flag lock;
    uint8_t kinds;          /* of combs */
    bool counts;            /* pairs are objects of race_sync.c, which count what has them */
    _Atomic uint64_t dense; /* pages that are kept as a Page; set under the lock, never taken back */
    Combs *combs;
    Points *points;     /* NULL: no block has some */
    uint32_t points_at; /* so many entries of `one` and it is asked whether they should be points */
    List one, *sub;     /* sub, once there are many: REGION_LISTS of as many blocks each */
} Region;

typedef struct KnownEntry { /* accesses of (group, wave) with releases < bound, or of all waves with interval
                               < bound; wave | OF_LOADS: loads only, and only for who stores over them */
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

typedef struct Release { /* what a release hands on */
    SimKnown known;
    uint32_t refs, next; /* next: of the free ones */
} Release;

enum { PAGE_BUCKETS = 1 << 16, REGION_BUCKETS = 1 << 12 };

struct SimRace {
    uint32_t waves;       /* of a workgroup; 0: not known */
    pthread_mutex_t lock; /* page table, epochs, instructions, sync */
    _Atomic(Page *) *pages;
    Epoch *chunk[MAX_CHUNKS];
    _Atomic(_Atomic(uint16_t) *) pc_leaf[PC_LEAVES]; /* by slot: number of the instruction, 0 = none yet */
    uint32_t *pc_slot;                               /* by number */
    uint32_t npcs;
    uint32_t nepochs;
    Region **syncs;               /* addresses that releases went through: race_sync.c */
    struct SimRaceGroup **groups; /* the same within workgroups that run */
    Release *object;
    uint32_t nobjects, object_cap, free_object;
    struct SimRaceFail *fails;
    _Atomic(Region *) regions[REGION_BUCKETS];
    pthread_mutex_t pair_lock;
    Pair *pair[MAX_CHUNKS];
    uint32_t npairs;
    uint32_t *pair_hash; /* numbers of pairs, 0 = free */
    uint32_t pair_slots; /* a power of two */
    Shapes shapes;
    atomic_flag slab_lock; /* chunks of points */
    PointChunk *slab[MAX_CHUNKS];
    uint32_t nchunks, free_chunk;
    atomic_bool oom;
};

static inline Epoch
epoch_of(const SimRace *r, uint32_t id)
{
    if (id < FIRST_EPOCH)
        return (Epoch){.group = (id - 1) / r->waves, .wave = (id - 1) % r->waves};
    return r->chunk[id >> CHUNK_BITS][id & ((1u << CHUNK_BITS) - 1)];
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

/* 0: nothing is known of it. */
static inline uint32_t
known_bound(const SimKnown *k, uint32_t group, uint32_t wave)
{
    uint32_t i = known_at(k, group, wave);
    return i < k->n && k->e[i].group == group && k->e[i].wave == wave ? k->e[i].bound : 0;
}

static inline bool
known_has(const SimKnown *k, const Epoch *e, uint32_t reads)
{
    return e->releases < known_bound(k, e->group, e->wave | reads) ||
           e->interval < known_bound(k, e->group, ALL_WAVES | reads);
}

/* Does a barrier order epoch e of the same workgroup before what w does now? */
static inline bool
by_barrier(const Epoch *e, const SimRaceWave *w, SimAccess kind)
{
    if (!w->seen || e->wave >= w->nwaves)
        return e->interval < w->waited;
    return e->interval < w->seen[kind == SIM_ACC_READ ? e->wave : w->nwaves + e->wave];
}

/* Does what epoch `id` did, its loads only, happen before what w does now? */
static inline bool
before(const SimRace *r, uint32_t id, const SimRaceWave *w, SimAccess kind, bool loads)
{
    if (id == w->epoch)
        return true;
    Epoch e = epoch_of(r, id);
    if (e.group == w->workgroup && (e.wave == w->wave || by_barrier(&e, w, kind)))
        return true;
    return w->known && (known_has(w->known, &e, 0) || (loads && known_has(w->known, &e, OF_LOADS)));
}

static inline uint32_t
mark_of(SimHand what)
{
    return what == SIM_HAND_LOADS ? OF_LOADS : 0;
}

/* ---- one access ---- */

typedef struct Verdict { /* races: with which record */
    bool races, known_party;
    Rec rec;
    SimAccess other;
} Verdict;

typedef struct Step { /* what an access makes of the two records of bytes */
    bool valid;
    uint32_t from, to, replaces; /* pairs; SimRaceReplaced.epoch or 0 */
    Verdict verdict;
} Step;

typedef struct Access {
    SimRace *r;
    SimRaceWave *w;
    const uint64_t *addr;
    uint64_t exec;
    uint32_t epoch, bytes;
    uint16_t pc;
    SimAccess kind;
    SimRaceHit *hit;
    bool found;
    uint32_t memo_epoch[2]; /* neighbouring dwords mostly have the same last party */
    bool memo_before[2];
    Page *page;              /* locked */
    Region *region;          /* locked; of the two at most one */
    uint32_t at, dwords;     /* in the region: the part of a block that is not entered yet; dwords 0: none */
    uint32_t next;           /* where in its list to look first */
    uint32_t region_page;    /* in use last */
    bool ripe;               /* whole blocks came about in it, or one of many parts */
    Step step[4], byte_step; /* byte_step: of pairs by records */
} Access;

typedef struct Span { /* lanes that follow each other in memory */
    uint64_t lo, hi;
    uint32_t lane; /* of the byte at lo */
} Span;

typedef uint32_t CombNext(void *self, uint32_t pair);

enum { OF_WRITE, OF_READ };

static inline bool
ordered(Access *a, uint32_t epoch, uint32_t of)
{
    if (epoch != a->memo_epoch[of]) {
        a->memo_epoch[of] = epoch;
        a->memo_before[of] = before(a->r, epoch, a->w, a->kind, of == OF_READ);
    }
    return a->memo_before[of];
}

static inline bool
is_read(SimAccess k)
{
    return k == SIM_ACC_READ || k == SIM_ACC_ATOMIC_READ;
}

static inline bool
is_atomic(SimAccess k)
{
    return k == SIM_ACC_ATOMIC || k == SIM_ACC_ATOMIC_READ || k == SIM_ACC_MAYBE;
}

static inline uint16_t
pc_bits(const Rec *r)
{
    return (uint16_t)(r->pc | (r->atomic ? PC_ATOMIC : 0));
}

/* Does this access race with the records of a cell whose masks overlap `mask`? */
Verdict sim_race_judge_(Access *a, const Cell *c, uint32_t mask);
/* Puts the access into the cell as its newest record. */
void sim_race_enter_(Access *a, Cell *c, uint32_t mask);
/* The race that the access reports, if it has found none before. */
void sim_race_found_(Access *a, const Verdict *v, uint64_t addr, uint32_t lane);

/* A record as pages and pairs have it; write: of the write side. */
Rec sim_race_rec_(uint32_t epoch, uint16_t pc, bool write);

/* ---- bytes of pages (locked by the caller): race_flat.c; false, 0: out of memory ---- */

/* Gives the bytes of a dword of a page pairs of their own: those of the cell. */
bool sim_flat_seed_(SimRace *r, Page *p, uint32_t dword, const Cell *c);
bool sim_flat_put_(SimRace *r, Page *p, uint32_t byte, uint32_t pair);
Cell sim_flat_get_(const SimRace *r, const Page *p, uint32_t byte);
/* Judges and enters an access to a byte. */
void sim_flat_touch_(Access *a, Page *p, uint32_t byte, uint64_t addr, uint32_t lane, bool judged);

/* ---- regions (locked by the caller where nothing else is said) ---- */

/* The region of addr, made if need be, by the wave's cache; no lock. NULL: out of memory. */
Region *sim_region_of_(SimRace *r, SimRaceWave *w, uint64_t addr);
/* Enters [lo, hi) of one page of the access' region. Some of it waits for sim_region_flush_. */
void sim_region_touch_(Access *a, uint64_t lo, uint64_t hi);
void sim_region_flush_(Access *a);
/* What the access makes of bytes with this pair of records. */
const Step *sim_race_step_(Access *a, uint32_t pair);
/* How many of the first of n > 1 elements could be the teeth of a comb; 0: too few. */
uint32_t sim_comb_of_(const Span *s, uint32_t n);
/* Enters them in the access' region as a comb; false, nothing done: to be entered one by one. */
bool sim_comb_touch_(Access *a, const Span *s, uint32_t n);
/* The same of a region: next says what becomes of a pair, 0: to be done one by one. */
bool sim_comb_enter_(SimRace *r, Region *g, const Span *s, uint32_t n, CombNext *next, void *self);
/* Lanes that follow each other in memory, or lie at one place. */
uint32_t sim_race_spans_(const uint64_t *addr, uint64_t exec, uint32_t bytes, Span *span);
/* One more or one less entry or comb has an object. */
void sim_object_use_(SimRace *r, uint32_t id, int32_t by);
/* Makes entries of what teeth have bytes of [lo, hi), which lies in the region. */
void sim_combs_clear_(SimRace *r, Region *g, uint64_t lo, uint64_t hi);
uint32_t sim_combs_get_(const Region *g, uint64_t addr); /* the pair of a byte; 0: in no comb */
void sim_combs_free_(Region *g);
/* Bytes [lo, end) of one dword, as a mask. */
static inline uint32_t
bytes_of(uint64_t lo, uint64_t end)
{
    return ((1u << (end - lo)) - 1) << (lo & 3);
}
/* Index of the first entry not below `at`. */
uint32_t sim_list_at_(const List *l, uint32_t at);
static inline List *
list_of(Region *g, uint32_t at)
{
    return g->sub ? &g->sub[at / (65536 / REGION_LISTS)] : &g->one;
}
/* The records of a byte. */
Cell sim_region_get_(const SimRace *r, Region *g, uint64_t addr);
void sim_regions_free_(SimRace *r);
void sim_region_free_(Region *g); /* chunks of its points are not given back */
/* Entries [lo, hi) become these; false: out of memory (never when they are not more). */
bool sim_list_replace_(List *l, uint32_t lo, uint32_t hi, const Entry *e, uint32_t n);
void sim_list_fit_(List *l);                 /* gives back what it does not need */
void sim_region_cut_(SimRace *r, Region *g); /* a long list into several, or into points */

/* ---- points of regions ---- */

/* Enters an element, or more, of one block: next says what becomes of its pair (0 at first), 0: to be done
 * otherwise. false: not done, and the block has no points (any more). */
bool sim_point_enter_(SimRace *r, Region *g, uint32_t at, uint32_t dwords, CombNext *next, void *self);
/* The block's points, of which there may be none, become entries. */
void sim_points_pull_(SimRace *r, Region *g, uint32_t block);
/* The pair of one that has some of these bytes of the region; 0: none has. */
uint32_t sim_points_get_(const SimRace *r, const Region *g, uint64_t addr, uint32_t bytes);
/* Should entries of the region be points? Then they are. */
void sim_points_look_(SimRace *r, Region *g);
void sim_points_free_(SimRace *r, Region *g);
void sim_point_slabs_free_(SimRace *r);
/* After an access: a CombNext of Access. */
uint32_t sim_race_after_(void *access, uint32_t pair);

static inline Pair
pair_at(const SimRace *r, uint32_t id)
{
    if (!(id & PAIR_SHAPE))
        return id ? r->pair[id >> CHUNK_BITS][id & ((1u << CHUNK_BITS) - 1)] : (Pair){0};
    Pair p = r->shapes.at[(id & ~PAIR_SHAPE) / PAIR_EPOCHS];
    p.wr = p.wr ? (p.wr & ~(uint32_t)EP_ID) | id % PAIR_EPOCHS : 0;
    p.rd = p.rd ? (p.rd & ~(uint32_t)EP_ID) | id % PAIR_EPOCHS : 0;
    return p;
}

static inline bool
same_pair(const Pair *p, const Pair *q)
{
    return p->wr == q->wr && p->rd == q->rd && p->wr_pc == q->wr_pc && p->rd_pc == q->rd_pc;
}

/* The number of a pair; 0: out of memory. No lock. record: the one of its record, as small as can be. */
uint32_t sim_pair_of_(SimRace *r, const Pair *p, bool record);
void sim_pairs_free_(SimRace *r);

/* The records of a pair, for these bytes. */
static inline Cell
cell_of(const SimRace *r, uint32_t id, uint32_t mask)
{
    Cell c = {{0}, {0}};
    Pair p = pair_at(r, id);
    if (p.wr)
        c.wr = sim_race_rec_(p.wr, p.wr_pc, true);
    if (p.rd)
        c.rd = sim_race_rec_(p.rd, p.rd_pc, false);
    c.wr.mask = c.rd.mask = mask & 15;
    return c;
}

static inline Pair
pair_from(const Cell *c)
{
    Pair p = {0};
    if (c->wr.epoch) {
        p.wr = c->wr.epoch | (c->wr.multi_wave ? EP_WAVES : 0u);
        p.wr_pc = pc_bits(&c->wr);
    }
    if (c->rd.epoch) {
        p.rd = c->rd.epoch | (c->rd.multi_wave ? EP_WAVES : 0u) | (c->rd.multi_group ? EP_GROUPS : 0u);
        p.rd_pc = pc_bits(&c->rd);
    }
    return p;
}

static inline void
spin_lock(atomic_flag *lock)
{
    for (uint32_t n = 0; atomic_flag_test_and_set_explicit(lock, memory_order_acquire); n++)
        if (n > 64)
            sched_yield();
}

static inline void
spin_unlock(atomic_flag *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

/* The id of the wave's present epoch; 0 when out of memory. */
uint32_t sim_epoch_now_(SimRace *r, SimRaceWave *w);
/* Number of the instruction at this slot; PC_UNKNOWN when there are too many. */
uint16_t sim_pc_number_(SimRace *r, uint32_t slot);
void sim_known_free_(SimKnown *k);
/* False, all of these: out of memory. mark: OF_LOADS, as loads only; 0 */
bool sim_known_raise_(SimKnown *k, KnownEntry x, uint32_t mark);
bool sim_known_merge_(SimKnown *to, const SimKnown *from, uint32_t mark);
/* What w has acquired and done: all before its last barrier, and with fewer releases than bound. */
bool sim_known_of_(SimKnown *to, const SimRaceWave *w, uint32_t bound, uint32_t mark);
bool sim_epoch_merge_(SimRace *r, SimKnown *to, uint32_t epoch, uint32_t mark);
bool sim_wave_known_(SimRaceWave *w); /* there is room for it */
/* What such an acquire adds to, made if need be; NULL: out of memory. */
SimKnown *sim_wave_learns_(SimRaceWave *w, SimHand what);
bool sim_syncs_new_(SimRace *r); /* false: out of memory, to be freed all the same */
void sim_syncs_free_(SimRace *r);
/* An atomic puts its record at addr over a store that may be atomic: the release of that store is handed on.
 */
void sim_race_carry_(SimRace *r, const SimRaceWave *w, uint64_t addr, uint32_t epoch);

#endif
