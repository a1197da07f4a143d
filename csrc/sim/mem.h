/* mem.h - device memory of the simulator: which bytes exist, which are defined, who touched them last.
 *
 * A device address is a host address. SimMem is the allocation table of one device: sorted extents that never
 * overlap (host arrays whose hulls overlap share one extent with several views). Mutations take a lock; a
 * launch works on an immutable snapshot, so lookups need none. Each worker thread has its own SimMemPort:
 * snapshot, last-hit cache, foreign mappings. All functions are thread-safe on distinct ports.
 *
 * Typical use by an instruction body, lane by lane:
 *     const SimExtent *x = sim_mem_find(port, addr, n);      inline fast path: the last hit
 *     if (!x || !sim_extent_holds(x, addr, n)) -> bounds fault (sim_mem_describe gives the text)
 * Never dereference an address for which sim_mem_find returned NULL: it may be unmapped. An address that is
 * found is mapped over the whole access; sim_extent_holds adds the exact-element rule of strided host arrays.
 */
#ifndef TL_SIM_MEM_H
#define TL_SIM_MEM_H

#include "base/base.h"
#include "sim/devmem.h"

/* Flat apertures: above every user address of the host (x86-64 and aarch64 with 48 bits). */
#define SIM_SHARED_APERTURE  UINT64_C(0x0001000000000000) /* src_shared_base; 2^32 bytes */
#define SIM_PRIVATE_APERTURE UINT64_C(0x0002000000000000) /* src_private_base; 2^32 bytes */

typedef enum SimExtentKind {
    SIM_EXT_MALLOC,  /* hipMalloc and friends */
    SIM_EXT_PINNED,  /* hipHostMalloc, hipHostRegister: host memory with known size, counts as defined */
    SIM_EXT_ARRAY,   /* registered host array: exact elements */
    SIM_EXT_CODE,    /* loaded code object; not writable where its segment is not */
    SIM_EXT_KERNARG, /* kernel arguments: read-only, rounded to 64 bytes, the tail undefined */
    SIM_EXT_SYSTEM,  /* dispatch packet, queue and implicit buffers */
    SIM_EXT_SYNC,    /* where the workgroups of a cooperative launch meet */
    SIM_EXT_FOREIGN  /* host mapping nobody registered: limits are those of the mapping */
} SimExtentKind;

enum {
    SIM_EXT_DENSE = 1,     /* every byte of [base, base + size) belongs to it: no views to ask */
    SIM_EXT_READONLY = 2,  /* a store is a bounds fault */
    SIM_EXT_UNBOUNDED = 4, /* limits unknown: reports say so */
    SIM_EXT_HOSTOWNED = 8  /* memory is not ours to free */
};

enum { SIM_VIEW_DIMS = 8 };
typedef struct SimView { /* elements of one registered array; dims sorted by falling stride, contiguous ones
                            merged */
    uint64_t base;       /* lowest byte */
    uint64_t block;      /* contiguous bytes innermost (a multiple of the item size) */
    uint32_t ndim;       /* outer dims left; 0 = one block */
    uint64_t shape[SIM_VIEW_DIMS], stride[SIM_VIEW_DIMS]; /* strides in bytes, > 0 */
} SimView;

typedef struct SimExtent {
    uint64_t base, size; /* hull */
    uint64_t id;         /* unique over the life of the device */
    uint8_t kind, flags;
    uint32_t nviews; /* 0 when SIM_EXT_DENSE */
    const SimView *views;
    /* One bit a byte (bit (addr - base) & 63 of word (addr - base) >> 6): set = defined; whole: one byte for
     * each SIM_WHOLE of them, 1 = all are, whatever their bits say. NULL: all defined, or the device keeps no
     * init shadow. Threads share words: atomic accesses only. */
    uint64_t *init;
    uint8_t *whole;
    const char *name; /* as given at registration or NULL */
    uint64_t tag;     /* low half: flags of the HIP call that made it; SIM_TAG_*; at first 0 */
} SimExtent;
#define SIM_TAG_MANAGED    (UINT64_C(1) << 32) /* of SIM_EXT_PINNED: managed memory */
#define SIM_TAG_REGISTERED (UINT64_C(1) << 33) /* of SIM_EXT_PINNED: the program's own memory */
#define SIM_TAG_VIRTUAL   (UINT64_C(1) << 34) /* of SIM_EXT_MALLOC: mapped, of the device in SIM_TAG_DEVICE */
#define SIM_TAG_IPC       (UINT64_C(1) << 35) /* of SIM_EXT_MALLOC: another process's */
#define SIM_TAG_DEVICE(d) ((uint64_t)(d) << 40)
#define SIM_TAG_POOL(id)  ((uint64_t)(id) << 48) /* of SIM_EXT_MALLOC; 0: of none */
#define SIM_TAG_POOL_OF(tag) ((uint32_t)((tag) >> 48))
#define SIM_TAG_IS_OF(tag)   ((int)((tag) >> 40 & 255))

typedef struct SimMem SimMem;                 /* allocation table of one device */
typedef struct SimMemSnapshot SimMemSnapshot; /* immutable, reference counted */

/* ---- one port a worker thread ---- */

typedef struct SimMemPort {
    const SimExtent *last; /* never NULL after sim_port_open (an empty extent at first) */
    const SimMemSnapshot *snap;
    bool foreign; /* unregistered host mappings may be used (some pointer argument is not in the table) */
    struct SimForeign *fmaps;
    struct SimPeers *peers; /* other devices; NULL: there are none */
} SimMemPort;

bool sim_port_open(SimMemPort *p, SimMem *m, bool foreign); /* false: out of memory */
void sim_port_close(SimMemPort *p);
/* Do the n bytes at addr lie in the pages of one allocation of this device, some of them behind its end? The
 * chip checks addresses by pages: reading or writing there does no harm, and library code does it. Without
 * checks neither does ours; "bounds" knows the exact end. */
bool sim_mem_in_tail(const SimMemPort *p, uint64_t addr, uint32_t n);
const SimExtent *sim_mem_find_slow(SimMemPort *p, uint64_t addr, uint32_t n);

/* The extent whose hull holds all of [addr, addr + n), n >= 1, or NULL. */
static inline const SimExtent *
sim_mem_find(SimMemPort *p, uint64_t addr, uint32_t n)
{
    const SimExtent *x = p->last;
    uint64_t off = addr - x->base;
    if (__builtin_expect(off < x->size && x->size - off >= n, 1))
        return x;
    return sim_mem_find_slow(p, addr, n);
}

/* Bytes from addr on that belong to elements without a gap (counted up to 4096 or a little more); 0: addr
 * itself does not. addr within the hull. */
uint64_t sim_extent_run(const SimExtent *x, uint64_t addr);

/* After sim_mem_find: do all n bytes belong to elements? */
static inline bool
sim_extent_holds(const SimExtent *x, uint64_t addr, uint32_t n)
{
    return (x->flags & SIM_EXT_DENSE) || sim_extent_run(x, addr) >= n;
}

/* "4 bytes after the end of hipMalloc #3 (0x7f.., 4096 bytes)": where an address is relative to what there
 * is. */
void sim_mem_describe(SimMemPort *p, uint64_t addr, uint32_t n, TlText *out);

/* ---- definedness ---- */

enum { SIM_WHOLE_SHIFT = 12, SIM_WHOLE = 1 << SIM_WHOLE_SHIFT };

/* Is all of [addr, addr + n), n >= 1, in stretches that are defined as a whole? Then the map need not be
 * asked. */
static inline bool
sim_is_whole(const SimExtent *x, uint64_t addr, uint64_t n)
{
    uint64_t i = (addr - x->base) >> SIM_WHOLE_SHIFT, end = (addr - x->base + n - 1) >> SIM_WHOLE_SHIFT;
    while (i < end && __atomic_load_n(&x->whole[i], __ATOMIC_ACQUIRE))
        i++;
    return i == end && __atomic_load_n(&x->whole[i], __ATOMIC_ACQUIRE);
}

/* Bit i set: byte addr + i is undefined. n <= 32; the access must lie in the hull. */
static inline uint32_t
sim_undef_mask(const SimExtent *x, uint64_t addr, uint32_t n)
{
    if (!n || !x->init || sim_is_whole(x, addr, n))
        return 0;
    uint64_t off = addr - x->base, w = __atomic_load_n(x->init + (off >> 6), __ATOMIC_RELAXED) >> (off & 63);
    if ((off & 63) + n > 64)
        w |= __atomic_load_n(x->init + (off >> 6) + 1, __ATOMIC_RELAXED) << (64 - (off & 63));
    uint64_t undef = ~w & ((UINT64_C(1) << n) - 1), left = SIM_WHOLE - (off & (SIM_WHOLE - 1));
    if (left < n) { /* two stretches */
        uint64_t first = (UINT64_C(1) << left) - 1;
        if (__atomic_load_n(&x->whole[off >> SIM_WHOLE_SHIFT], __ATOMIC_ACQUIRE))
            undef &= ~first;
        if (__atomic_load_n(&x->whole[(off >> SIM_WHOLE_SHIFT) + 1], __ATOMIC_ACQUIRE))
            undef &= first;
    }
    return (uint32_t)undef;
}

bool sim_defined_new(SimExtent *x); /* a map of x->size undefined bytes; false: out of memory */

/* Marks bytes defined; atomic where a map byte is shared with a neighbour. */
void sim_mark_defined(const SimExtent *x, uint64_t addr, uint64_t n);

/* ---- the table ---- */

SimMem *sim_mem_new(bool init_shadow);
bool sim_mem_shadowed(const SimMem *m); /* what sim_mem_new was told */
void sim_mem_free(SimMem *m);           /* frees all memory it owns */

/* Own memory, page-aligned with an unmapped page behind it; contents undefined (filled with 0xcd), exact
 * size. NULL: out of memory. */
void *sim_mem_alloc(SimMem *m, uint64_t size, SimExtentKind kind, bool defined, const char *name);
/* Memory of sim_mem_alloc from now on as a file (its descriptor, which stays the table's; -1: impossible), so
 * that another process can have it by sim_mem_attach, where it counts as defined; here it does so too. */
int sim_mem_share(SimMem *m, uint64_t base);
void *sim_mem_attach(SimMem *m, int fd, uint64_t size); /* NULL: the file is too short, or out of memory */
/* false: no extent begins at base. */
bool sim_mem_tag(SimMem *m, uint64_t base, uint64_t tag);
/* From now on a store to this memory of sim_mem_alloc is a bounds fault; false: no such extent. */
bool sim_mem_protect(SimMem *m, uint64_t base);
/* Releases memory of sim_mem_alloc or ends a registration by its lowest address; false: no such extent. */
bool sim_mem_release(SimMem *m, uint64_t base, SimExtentKind kind);
/* Registers n-dimensional host memory: shape in elements, strides in bytes (any sign, 0 = broadcast). Its
 * bytes count as defined. Returns an id for sim_mem_unregister, or 0 (out of memory, ndim > SIM_VIEW_DIMS,
 * sizes overflow). Memory that lies within an allocation of the table is governed by that one: the
 * registration changes nothing. */
uint64_t sim_mem_register(SimMem *m, const void *data, uint32_t ndim, const int64_t *shape,
                          const int64_t *strides, uint32_t itemsize, const char *name);
bool sim_mem_unregister(SimMem *m, uint64_t id);
/* Adds an extent over memory that the caller owns and outlives it (code segments inside one mapping, pinned
 * host memory); flags as in SimExtent (SIM_EXT_DENSE and SIM_EXT_HOSTOWNED are implied). */
bool sim_mem_add(SimMem *m, void *base, uint64_t size, SimExtentKind kind, uint32_t flags, const char *name);
/* At once: what begins in [lo, hi), all of it made by this, is gone, and there are these stretches of memory
 * of the caller's (SIM_EXT_MALLOC). false: out of memory, nothing changed. */
typedef struct SimStretch {
    uint64_t base, size, tag;
    uint8_t flags;
} SimStretch;
bool sim_mem_stretches(SimMem *m, uint64_t lo, uint64_t hi, const SimStretch *s, uint32_t n);
/* Host-side writes (memcpy, memset) define bytes; copies carry definedness along. */
void sim_mem_define(SimMem *m, uint64_t addr, uint64_t n);
void sim_mem_copy_defined(SimMem *m, uint64_t dst, uint64_t src, uint64_t n);
/* Copy of the extent that holds addr (one past the end when n == 0 is no hit); false: none. */
bool sim_mem_lookup(SimMem *m, uint64_t addr, uint64_t n, SimExtent *out);
/* Several devices: makes peer's memory known to m (before anything runs), and says whether m's kernels may
 * access it (host memory of peers they always may); returns whether that changed. */
enum { SIM_MEM_PEERS = 15 };
void sim_mem_link(SimMem *m, SimMem *peer);
bool sim_mem_reach(SimMem *m, const SimMem *peer, bool on);
/* Does [addr, addr + n) touch what the table has mapped, the rest of last pages and the pages behind
 * included? */
bool sim_mem_touches(SimMem *m, uint64_t addr, uint64_t n);
/* Is addr in an extent, one past its end, or the address of a registered array without elements? */
bool sim_mem_known(SimMem *m, uint64_t addr);
void sim_mem_fork(SimMem *m, bool before); /* around fork(): takes and gives back the table's lock */
uint32_t sim_mem_arrays(SimMem *m);        /* host arrays registered now */
uint64_t sim_mem_bytes(SimMem *m);         /* bytes of SIM_EXT_MALLOC alive */

/* ---- races on global memory ----
 * Two accesses of one byte, at least one a write and not both atomic, race when no happens-before orders
 * them: program order of a wave, barriers of a workgroup, release -> acquire on a common address between any
 * two waves. Shadow: 8 bytes for the elements of an access at equal distances (in 256 KiB), 8 for dwords of a
 * block of 16 with the same records, 4 and a little for a lone byte, half or dword where there are many;
 * where half of a page was covered by blocks: 17 bytes a block, 6 bytes a
 * dword that was written and 6 a dword that was read where accesses cover a part of a block, 1 more where one
 * did not cover the dword, 3 a byte of blocks with dwords that waves share. Of
 * several unordered readers the last is kept with a mark that there were more; a write that only an earlier
 * one of them races with is found unless the writer has acquired something. */
typedef struct SimRace SimRace; /* one a launch */
enum { SIM_RACE_CACHE = 16, SIM_RACE_REGIONS = 4 };
typedef struct SimRaceWave {   /* one a wave, kept by the wave; zero at its start but for the first two */
    uint32_t workgroup, wave;  /* linear workgroup number, wave in it (< 0xffff) */
    uint32_t interval, waited; /* barriers arrived at, barriers passed */
    uint32_t releases;         /* own */
    uint32_t released;         /* own: accesses with fewer releases were complete at the last release */
    uint32_t epoch;            /* id of (workgroup, wave, interval, waited, releases); own */
    struct SimKnown *known;    /* what was acquired from other workgroups; freed by sim_race_wave_end */
    uint64_t page_key[SIM_RACE_CACHE];
    void *page[SIM_RACE_CACHE];
    uint64_t region_key[SIM_RACE_REGIONS];
    void *region[SIM_RACE_REGIONS];
    /* Where waves of a workgroup do not share a cache a barrier orders only what was complete when its wave
     * arrived (bound: by parity of the barrier), for reads only after an invalidation. seen: nwaves bounds of
     * intervals for reads, then nwaves for writes; NULL: a barrier orders everything. */
    uint32_t *seen;
    uint32_t nwaves, bound[2];
    struct SimRaceWave *scalar; /* what it knew when it emptied the scalar cache; NULL: never did */
    uint32_t nreplaced; /* stores that may be atomic and that the last access, an atomic, has replaced */
    struct SimRaceReplaced {
        uint64_t addr;
        uint32_t epoch;
    } replaced[8];
    struct SimKnown *later[2]; /* of SIM_HAND_LATER, SIM_HAND_LATER_GROUP */
} SimRaceWave;
typedef enum SimAccess {
    SIM_ACC_READ,
    SIM_ACC_WRITE,
    SIM_ACC_ATOMIC,      /* read-modify-write, or a coherent (atomic) store */
    SIM_ACC_ATOMIC_READ, /* coherent (atomic) load */
    SIM_ACC_MAYBE        /* a store that may be atomic: races with plain accesses and with its own kind */
} SimAccess;
typedef struct SimRaceHit {
    uint64_t addr;
    uint32_t lane, workgroup, wave,
        pc_slot; /* the other party; pc_slot as it gave it; wave, pc_slot: UINT32_MAX = unknown */
    SimAccess other;
    bool behind_barrier; /* of the same workgroup, a barrier lies between, but does not order the two */
} SimRaceHit;
typedef struct SimRaceSync { /* a store or atomic that was no release */
    uint32_t why;            /* SIM_NO_*; 0: there was none */
    uint32_t workgroup, wave, pc_slot;
} SimRaceSync;
enum { SIM_NO_WAIT = 1, SIM_NO_WRITEBACK };

SimRace *sim_race_new(uint32_t waves); /* of a workgroup, 0: not known. NULL: out of memory */
void sim_race_free(SimRace *r);
/* One instruction of a wave: `bytes` at addr[lane] for each lane of exec. pc_slot identifies the instruction
 * in reports (24 bits: offset in the code / 4). Returns true when a race was found; *hit is the first. */
bool sim_race_access(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t exec, uint32_t bytes,
                     SimAccess kind, uint32_t pc_slot, SimRaceHit *hit);
/* An atomic or coherent store at addr by a wave whose earlier accesses are complete and visible to the
 * device. Call after sim_race_access for that store. */
void sim_race_release(SimRace *r, SimRaceWave *w, uint64_t addr);
void sim_race_release_lanes(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes);
/* The same by a wave of which only the loads are complete. */
void sim_race_release_loads(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes);
/* What is handed on: all, or that loads are done. That needs neither write-back nor invalidation, and is
 * enough for who stores over what was loaded. Or what only waves of its workgroup release to each other.
 * LATER: not before sim_race_take_later. */
typedef enum SimHand {
    SIM_HAND_ALL,
    SIM_HAND_LOADS,
    SIM_HAND_GROUP,
    SIM_HAND_LATER,
    SIM_HAND_LATER_GROUP
} SimHand;
static inline bool
sim_hand_near(SimHand what)
{
    return what == SIM_HAND_GROUP || what == SIM_HAND_LATER_GROUP;
}
/* An atomic or coherent load at addr has completed and (but for loads) caches were invalidated after it. */
void sim_race_acquire(SimRace *r, SimRaceWave *w, uint64_t addr, SimHand what);
/* The same through an address that only waves of its workgroup look at, until the workgroup ends. */
void sim_race_release_group(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes);
void sim_race_acquire_group(SimRace *r, SimRaceWave *w, uint64_t addr);
/* LATER or LATER_GROUP: what was put off is known from now on. */
void sim_race_take_later(SimRace *r, SimRaceWave *w, SimHand what);
/* What an address hands on now (group: to its workgroup), to be acquired later, and to be forgotten; 0:
 * nothing. */
uint32_t sim_race_seen(SimRace *r, const SimRaceWave *w, uint64_t addr, bool group);
void sim_race_acquire_seen(SimRace *r, SimRaceWave *w, uint32_t seen, SimHand what);
void sim_race_forget(SimRace *r, uint32_t seen);
void sim_race_group_end(SimRace *r, uint32_t workgroup);
/* For chips whose encodings do not tell: before sim_race_access of a store (SIM_ACC_MAYBE) by a wave whose
 * accesses are all complete and visible, or its loads; then, by a coherent load of it, the store that it saw
 * (0: none), which an acquire names. An atomic that replaces that store hands its release on. */
void sim_race_open_release(SimRace *r, SimRaceWave *w, SimHand what);
uint32_t sim_race_last_store(SimRace *r, SimRaceWave *w, uint64_t addr);
void sim_race_acquire_store(SimRace *r, SimRaceWave *w, uint32_t epoch, SimHand what);
/* For reports: notes a store or atomic at addr that is no release and why (SIM_NO_*; the last some 30,000 are
 * kept); asks whether the
 * workgroup has released through addr (result) and how it last failed to (*out, why 0: it did not); whether
 * an epoch is of that workgroup. */
void sim_race_no_release(SimRace *r, const SimRaceWave *w, uint64_t addr, uint32_t why, uint32_t pc_slot);
bool sim_race_sync(SimRace *r, uint64_t addr, uint32_t workgroup, SimRaceSync *out);
/* The wave of an epoch of that workgroup; else UINT32_MAX. */
uint32_t sim_race_epoch_wave(const SimRace *r, uint32_t epoch, uint32_t workgroup);
/* Of how many workgroups addr hands on what they released. */
uint32_t sim_race_released(SimRace *r, uint64_t addr);
bool sim_race_epoch_is(const SimRace *r, uint32_t epoch, uint32_t workgroup);
/* Who wrote a byte last (false: nobody, or not known). `w` knows what `from`, of its workgroup, has done so
 * far (false: out of memory). The bound of what it knows of a wave: accesses with fewer releases. lost:
 * memory ran out. */
bool sim_race_last_party(SimRace *r, SimRaceWave *w, uint64_t addr, uint32_t *group, uint32_t *wave);
bool sim_race_learn(SimRaceWave *w, SimRaceWave *from);
/* The scalar cache. inv: the wave has emptied it (false: out of memory). stale: may it hold a byte from
 * before a write of another wave, which comes before what w does now? Then who wrote it is in *hit. */
bool sim_race_scalar_inv(SimRaceWave *w);
bool sim_race_scalar_stale(SimRace *r, SimRaceWave *w, uint64_t addr, SimRaceHit *hit);
/* until: its accesses with fewer releases than that */
bool sim_race_learn_until(SimRaceWave *w, const SimRaceWave *from, uint32_t bound);
uint32_t sim_race_bound(const SimRaceWave *w, uint32_t wave);
void sim_race_lost(SimRace *r);
/* Barriers. signal: the wave arrives; complete: none of its accesses is under way. barrier: all have arrived,
 * shares what each has acquired. wait: the wave passes (all: of the workgroup, NULL where one has ended).
 * invalidate: its caches were emptied after the barrier. strict: see `seen`; false: out of memory. */
bool sim_race_strict(SimRaceWave *w, uint32_t nwaves);
void sim_race_signal(SimRaceWave *w, bool complete);
void sim_race_barrier(SimRaceWave *const *waves, uint32_t n);
void sim_race_wait(SimRaceWave *w, SimRaceWave *const *all, uint32_t n);
void sim_race_invalidate(SimRaceWave *w);
void sim_race_wave_end(SimRaceWave *w);
bool sim_race_out_of_memory(const SimRace *r); /* shadow could not be allocated: races may be missed */

#endif
