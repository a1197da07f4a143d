/* race_sync.c - releases and acquires of global memory: what is known to who acquires through an address
 * (contract in mem.h).
 *
 * What a release hands on is an object that all addresses of an instruction share, as atomics of a whole
 * array are releases too when their wave has nothing under way. That of a wave that has acquired nothing is a
 * number and no more. Which address has which is kept in lists as
 * those of race_sparse.c: `pair` of an entry is the object's number, its bytes are the lowest one of the
 * address alone. What is released within a workgroup is kept apart, until the workgroup ends. Why the last
 * store or atomic of a workgroup at an address was no release is kept for reports only, in a table of fixed
 * size: new ones may put old ones out. All of it is guarded by the lock of SimRace.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { FAILS = 1 << 15, SYNC_BUCKETS = 1 << 12, GROUP_BUCKETS = 1 << 4 };

struct SimRaceGroup { /* addresses that a workgroup's waves release to each other through */
    struct SimRaceGroup *next;
    uint32_t workgroup;
    Region *at[GROUP_BUCKETS];
};

typedef struct Syncs { /* a hash of regions */
    Region **at;
    uint32_t buckets; /* a power of two; 0: there is nothing */
} Syncs;

struct SimRaceFail {
    uint64_t addr;
    SimRaceSync is;
};

/* ---- objects ---- */

/* What a wave hands on that has acquired nothing has no record: | releases << 27 | barriers passed << 23 |
 * number of the wave. */
#define SIMPLE (UINT32_C(1) << 31)
enum { WAVE_BITS = 23, WAITED_BITS = 4, RELEASE_BITS = 4 };

/* 0: needs a record. */
static uint32_t
simple_of(const SimRace *r, const SimRaceWave *w)
{
    uint64_t wave = (uint64_t)w->workgroup * r->waves + w->wave;
    if (w->wave >= r->waves || wave >> WAVE_BITS || w->releases >> RELEASE_BITS || w->waited >> WAITED_BITS ||
        (w->known && w->known->n))
        return 0;
    return SIMPLE | w->releases << (WAVE_BITS + WAITED_BITS) | w->waited << WAVE_BITS | (uint32_t)wave;
}

/* Does b hand on all that a does? Of simple ones. */
static bool
covers(uint32_t b, uint32_t a)
{
    const uint32_t wave = (1u << WAVE_BITS) - 1, waited = ((1u << WAITED_BITS) - 1) << WAVE_BITS;
    return a & b & SIMPLE && (a & wave) == (b & wave) && (a & waited) <= (b & waited) &&
           (a | waited | wave) <= (b | waited | wave);
}

/* What an object hands on; room: for that of a simple one. */
static SimKnown
known_of(const SimRace *r, uint32_t id, KnownEntry room[2])
{
    if (!(id & SIMPLE))
        return r->object[id].known;
    uint32_t wave = id & ((1u << WAVE_BITS) - 1), group = wave / r->waves;
    uint32_t releases = (id & ~SIMPLE) >> (WAVE_BITS + WAITED_BITS);
    room[0] = (KnownEntry){group, wave % r->waves, releases};
    room[1] = (KnownEntry){group, ALL_WAVES, id >> WAVE_BITS & ((1u << WAITED_BITS) - 1)};
    return (SimKnown){.n = 2, .e = room};
}

/* 0: out of memory. */
static uint32_t
object_new(SimRace *r)
{
    uint32_t id = r->free_object;
    if (id) {
        r->free_object = r->object[id].next;
    } else {
        if (r->nobjects == r->object_cap) {
            uint32_t cap = r->object_cap ? r->object_cap / 2 * 3 : 64;
            Release *more = realloc(r->object, cap * sizeof *more);
            if (!more)
                return 0;
            r->object = more;
            r->object_cap = cap;
        }
        r->nobjects += r->nobjects == 0; /* 0 is none */
        id = r->nobjects++;
    }
    r->object[id] = (Release){.refs = 0};
    return id;
}

static void
object_drop(SimRace *r, uint32_t id)
{
    if (!id || id & SIMPLE || --r->object[id].refs)
        return;
    free(r->object[id].known.e);
    r->object[id] = (Release){.next = r->free_object};
    r->free_object = id;
}

static void
object_hold(SimRace *r, uint32_t id)
{
    if (id && !(id & SIMPLE))
        r->object[id].refs++;
}

void
sim_object_use_(SimRace *r, uint32_t id, int32_t by)
{
    for (; by > 0; by--)
        object_hold(r, id);
    for (; by < 0; by++)
        object_drop(r, id);
}

/* ---- which address has which ---- */

static Syncs
syncs_of_all(SimRace *r)
{
    return (Syncs){r->syncs, SYNC_BUCKETS};
}

static struct SimRaceGroup **
group_slot(SimRace *r, uint32_t workgroup)
{
    struct SimRaceGroup **at = &r->groups[workgroup % SYNC_BUCKETS];
    while (*at && (*at)->workgroup != workgroup)
        at = &(*at)->next;
    return at;
}

static Syncs
syncs_of_group(SimRace *r, uint32_t workgroup, bool make)
{
    struct SimRaceGroup **g = group_slot(r, workgroup);
    if (!*g && make && (*g = calloc(1, sizeof **g)))
        (*g)->workgroup = workgroup;
    return *g ? (Syncs){(*g)->at, GROUP_BUCKETS} : (Syncs){0};
}

static Region *
sync_region(Syncs s, uint64_t addr, bool make)
{
    uint64_t key = addr >> REGION_BITS;
    if (!s.buckets)
        return NULL;
    Region **g = &s.at[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (s.buckets - 1)];
    while (*g && (*g)->key != key)
        g = &(*g)->next;
    if (!*g && make && (*g = calloc(1, sizeof **g))) {
        (*g)->key = key;
        (*g)->counts = true;
    }
    return *g;
}

static uint32_t
at_of(uint64_t addr)
{
    return (uint32_t)(addr & ((1u << REGION_BITS) - 1)) / (4 * BLOCK_DWORDS) << 4 | 1u << (addr & 3);
}

static uint32_t
dword_of(uint64_t addr)
{
    return 1u << (addr >> 2) % BLOCK_DWORDS;
}

static Entry *
sync_find(Region *g, uint64_t addr)
{
    uint32_t at = at_of(addr);
    List *l = g ? list_of(g, at) : NULL;
    for (uint32_t i = l ? sim_list_at_(l, at) : 0; l && i < l->n && l->e[i].at == at; i++)
        if (l->e[i].dwords & dword_of(addr))
            return &l->e[i];
    return NULL;
}

/* ... as a point, or in a comb */
static uint32_t
sync_elsewhere(const SimRace *r, const Region *g, uint64_t addr)
{
    uint32_t point = g ? sim_points_get_(r, g, addr, 1) : 0;
    return point ? point : g ? sim_combs_get_(g, addr) : 0;
}

static uint32_t
sync_at(const SimRace *r, Syncs s, uint64_t addr)
{
    Region *g = sync_region(s, addr, false);
    const Entry *e = sync_find(g, addr);
    return e ? e->pair : sync_elsewhere(r, g, addr);
}

/* Only simple ones are in points. */
static uint32_t
becomes(void *self, uint32_t pair)
{
    (void)pair;
    uint32_t id = *(uint32_t *)self;
    return id & SIMPLE ? id : 0;
}

static bool
sync_set(SimRace *r, Syncs s, uint64_t addr, uint32_t id)
{
    Region *g = sync_region(s, addr, true);
    uint32_t at = at_of(addr), bit = dword_of(addr);
    if (!g)
        return false;
    sim_combs_clear_(r, g, addr, addr + 1);
    if (g->points && sim_point_enter_(r, g, at, bit, becomes, &id))
        return true;
    List *l = list_of(g, at);
    uint32_t lo = sim_list_at_(l, at), mine = UINT32_MAX;
    for (uint32_t i = lo; i < l->n && l->e[i].at == at; i++) {
        if (l->e[i].pair == id)
            mine = i;
        else
            l->e[i].dwords &= (uint16_t)~bit;
    }
    if (mine != UINT32_MAX) {
        l->e[mine].dwords |= (uint16_t)bit;
    } else {
        Entry e = {(uint16_t)at, (uint16_t)bit, id};
        if (!sim_list_replace_(l, lo, lo, &e, 1))
            return false;
        object_hold(r, id);
    }
    for (uint32_t i = lo; i < l->n && l->e[i].at == at;) {
        uint32_t old = l->e[i].pair;
        if (l->e[i].dwords) {
            i++;
            continue;
        }
        sim_list_replace_(l, i, i + 1, NULL, 0);
        object_drop(r, old);
    }
    sim_region_cut_(r, g);
    return true;
}

static void
drop_list(SimRace *r, const List *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        object_drop(r, l->e[i].pair);
}

/* Lets go of a region's objects too. */
static void
region_drop(SimRace *r, Region *g)
{
    drop_list(r, &g->one);
    for (uint32_t k = 0; g->sub && k < REGION_LISTS; k++)
        drop_list(r, &g->sub[k]);
    for (uint32_t k = 0; k < g->kinds; k++)
        for (uint32_t i = 0; i < g->combs[k].n; i++)
            object_drop(r, g->combs[k].c[i].pair);
    sim_points_free_(r, g);
    sim_region_free_(g);
}

static void
syncs_drop(SimRace *r, Syncs s)
{
    for (uint32_t i = 0; i < s.buckets; i++)
        for (Region *g = s.at[i], *next; g; g = next) {
            next = g->next;
            region_drop(r, g);
        }
}

static void
group_drop(SimRace *r, struct SimRaceGroup **slot)
{
    struct SimRaceGroup *g = *slot;
    *slot = g->next;
    syncs_drop(r, (Syncs){g->at, GROUP_BUCKETS});
    free(g);
}

void
sim_race_group_end(SimRace *r, uint32_t workgroup)
{
    pthread_mutex_lock(&r->lock);
    struct SimRaceGroup **slot = group_slot(r, workgroup);
    if (*slot)
        group_drop(r, slot);
    pthread_mutex_unlock(&r->lock);
}

bool
sim_syncs_new_(SimRace *r)
{
    r->syncs = calloc(SYNC_BUCKETS, sizeof *r->syncs);
    r->groups = calloc(SYNC_BUCKETS, sizeof *r->groups);
    return r->syncs && r->groups;
}

void
sim_syncs_free_(SimRace *r)
{
    for (uint32_t i = 0; r->groups && i < SYNC_BUCKETS; i++)
        while (r->groups[i])
            group_drop(r, &r->groups[i]);
    if (r->syncs)
        syncs_drop(r, syncs_of_all(r));
    free(r->groups);
    free(r->syncs);
    for (uint32_t i = 1; i < r->nobjects; i++)
        free(r->object[i].known.e);
    free(r->object);
    free(r->fails);
}

/* ---- release and acquire ---- */

typedef struct Memo { /* addresses that had the same have the same afterwards; both are held */
    bool valid;
    uint32_t from, to;
} Memo;

static void
forget(SimRace *r, Memo *m)
{
    if (m->valid) {
        object_drop(r, m->from);
        object_drop(r, m->to);
    }
    m->valid = false;
}

typedef struct Handed { /* who acquires knows `more` from now on */
    SimRace *r;
    Syncs to;
    SimKnown more;
    uint32_t simple; /* the same as a simple object; 0: is none */
    bool oom;
    Memo memo;
} Handed;

/* The object that comes after one; 0: out of memory. */
static uint32_t
joined(void *self, uint32_t old)
{
    Handed *h = self;
    Memo *m = &h->memo;
    SimRace *r = h->r;
    if (m->valid && (m->from == old || m->to == old))
        return m->to;
    bool simple = h->simple && (!old || covers(h->simple, old));
    uint32_t id = simple ? h->simple : object_new(r);
    if (!id) {
        h->oom = true;
        return 0;
    }
    object_hold(r, id); /* the memo's */
    object_hold(r, old);
    forget(r, m);
    *m = (Memo){true, old, id};
    if (simple)
        return id;
    KnownEntry room[2];
    const SimKnown had = old ? known_of(r, old, room) : (SimKnown){0};
    SimKnown *to = &r->object[id].known;
    h->oom |= !sim_known_merge_(to, &had, 0) || !sim_known_merge_(to, &h->more, 0);
    return id;
}

static bool
hand_on(Handed *h, uint64_t addr)
{
    SimRace *r = h->r;
    Region *g = sync_region(h->to, addr, false);
    const Entry *e = sync_find(g, addr);
    uint32_t old = e ? e->pair : sync_elsewhere(r, g, addr);
    if (e && !(old & SIMPLE) && r->object[old].refs == 1 && !(e->dwords & (e->dwords - 1u)))
        return sim_known_merge_(&r->object[old].known, &h->more, 0);
    uint32_t id = joined(h, old);
    return id && (id == old || sync_set(r, h->to, addr, id)) && !h->oom;
}

/* The lock is held; s.buckets 0: out of memory. */
static void
release(SimRace *r, SimRaceWave *w, Syncs s, const uint64_t *addr, uint64_t lanes, uint32_t mark)
{
    Span span[64];
    Handed h = {.r = r, .to = s};
    w->releases++;
    if (!mark)
        w->released = w->releases;
    h.simple = mark ? 0 : simple_of(r, w);
    bool ok = s.buckets && sim_known_of_(&h.more, w, w->releases, mark);
    uint32_t n = sim_race_spans_(addr, lanes, 1, span);
    for (uint32_t i = 0, one_by_one = 0, comb; i < n && ok; i += comb) {
        comb = i >= one_by_one && n - i > 1 ? sim_comb_of_(span + i, n - i) : 0;
        Region *g = comb ? sync_region(s, span[i].lo, true) : NULL;
        if (g && span[i].hi - span[i].lo == 1 && sim_comb_enter_(r, g, span + i, comb, joined, &h))
            continue;
        one_by_one = TL_MAX(one_by_one, i + comb);
        comb = 1;
        for (uint64_t at = span[i].lo; at < span[i].hi && ok; at++)
            ok = hand_on(&h, at);
    }
    forget(r, &h.memo);
    free(h.more.e);
    if (!ok || h.oom)
        atomic_store(&r->oom, true);
}

void
sim_race_release_lanes(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes)
{
    pthread_mutex_lock(&r->lock);
    release(r, w, syncs_of_all(r), addr, lanes, 0);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_release_loads(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes)
{
    pthread_mutex_lock(&r->lock);
    release(r, w, syncs_of_all(r), addr, lanes, OF_LOADS);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_release_group(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes)
{
    pthread_mutex_lock(&r->lock);
    release(r, w, syncs_of_group(r, w->workgroup, true), addr, lanes, 0);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_release(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    sim_race_release_lanes(r, w, &addr, 1);
}

static uint32_t
object_at(SimRace *r, const SimRaceWave *w, uint64_t addr, bool group)
{
    return sync_at(r, group ? syncs_of_group(r, w->workgroup, false) : syncs_of_all(r), addr);
}

static void
acquire(SimRace *r, SimRaceWave *w, uint32_t id, SimHand what)
{
    KnownEntry room[2];
    const SimKnown k = id ? known_of(r, id, room) : (SimKnown){0};
    SimKnown *to = id ? sim_wave_learns_(w, what) : NULL;
    if (id && (!to || !sim_known_merge_(to, &k, mark_of(what))))
        atomic_store(&r->oom, true);
}

void
sim_race_acquire(SimRace *r, SimRaceWave *w, uint64_t addr, SimHand what)
{
    bool group = sim_hand_near(what);
    pthread_mutex_lock(&r->lock);
    acquire(r, w, object_at(r, w, addr, group), what);
    pthread_mutex_unlock(&r->lock);
}

uint32_t
sim_race_seen(SimRace *r, const SimRaceWave *w, uint64_t addr, bool group)
{
    pthread_mutex_lock(&r->lock);
    uint32_t id = object_at(r, w, addr, group);
    object_hold(r, id);
    pthread_mutex_unlock(&r->lock);
    return id;
}

void
sim_race_acquire_seen(SimRace *r, SimRaceWave *w, uint32_t seen, SimHand what)
{
    pthread_mutex_lock(&r->lock);
    acquire(r, w, seen, what);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_forget(SimRace *r, uint32_t seen)
{
    if (!seen || seen & SIMPLE)
        return;
    pthread_mutex_lock(&r->lock);
    object_drop(r, seen);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_acquire_group(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    sim_race_acquire(r, w, addr, SIM_HAND_GROUP);
}

uint32_t
sim_race_released(SimRace *r, uint64_t addr)
{
    uint32_t groups = 0;
    pthread_mutex_lock(&r->lock);
    KnownEntry room[2];
    uint32_t id = sync_at(r, syncs_of_all(r), addr);
    const SimKnown k = id ? known_of(r, id, room) : (SimKnown){0};
    for (uint32_t i = 0; i < k.n; i++) /* a group's marked entries come last */
        groups += !(k.e[i].wave & OF_LOADS) && (!i || k.e[i].group != k.e[i - 1].group);
    pthread_mutex_unlock(&r->lock);
    return groups;
}

static void
carry(SimRace *r, Syncs to, uint64_t addr, uint32_t epoch)
{
    Handed h = {.r = r, .to = to};
    if (!sim_epoch_merge_(r, &h.more, epoch, 0) || !hand_on(&h, addr))
        atomic_store(&r->oom, true);
    forget(r, &h.memo);
    free(h.more.e);
}

void
sim_race_carry_(SimRace *r, const SimRaceWave *w, uint64_t addr, uint32_t epoch)
{
    pthread_mutex_lock(&r->lock);
    carry(r, syncs_of_all(r), addr, epoch);
    if (r->waves > 1 && epoch_of(r, epoch).group == w->workgroup)
        carry(r, syncs_of_group(r, w->workgroup, true), addr, epoch);
    pthread_mutex_unlock(&r->lock);
}

/* ---- for reports ---- */

static struct SimRaceFail *
fail_at(SimRace *r, uint64_t addr, uint32_t workgroup)
{
    uint64_t h = (addr ^ (uint64_t)workgroup << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return &r->fails[h >> 32 & (FAILS - 1)];
}

void
sim_race_no_release(SimRace *r, const SimRaceWave *w, uint64_t addr, uint32_t why, uint32_t pc_slot)
{
    pthread_mutex_lock(&r->lock);
    if (!r->fails && !(r->fails = calloc(FAILS, sizeof *r->fails)))
        atomic_store(&r->oom, true);
    else
        *fail_at(r, addr, w->workgroup) = (struct SimRaceFail){
            addr, {.why = why, .workgroup = w->workgroup, .wave = w->wave, .pc_slot = pc_slot}};
    pthread_mutex_unlock(&r->lock);
}

bool
sim_race_sync(SimRace *r, uint64_t addr, uint32_t workgroup, SimRaceSync *out)
{
    pthread_mutex_lock(&r->lock);
    KnownEntry room[2];
    uint32_t id = sync_at(r, syncs_of_all(r), addr);
    const SimKnown k = id ? known_of(r, id, room) : (SimKnown){0};
    uint32_t i = known_at(&k, workgroup, 0);
    bool any = i < k.n && k.e[i].group == workgroup && !(k.e[i].wave & OF_LOADS);
    *out = (SimRaceSync){0};
    const struct SimRaceFail *f = r->fails ? fail_at(r, addr, workgroup) : NULL;
    if (f && f->addr == addr && f->is.workgroup == workgroup)
        *out = f->is;
    pthread_mutex_unlock(&r->lock);
    return any;
}
