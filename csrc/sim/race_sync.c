/* race_sync.c - releases and acquires of global memory: what is known to who acquires through an address
 * (contract in mem.h).
 *
 * What a release hands on is an object that all addresses of an instruction share, as atomics of a whole
 * array are releases too when their wave has nothing under way. Which address has which is kept in lists as
 * those of race_sparse.c: `pair` of an entry is the object's number, its bytes are the lowest one of the
 * address alone. Why the last store or atomic of a workgroup at an address was no release is kept for reports
 * only, in a table of fixed size: new ones may put old ones out. All of it is guarded by the lock of SimRace.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { FAILS = 1 << 15 };

struct SimRaceFail {
    uint64_t addr;
    SimRaceSync is;
};

/* ---- objects ---- */

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
    if (!id || --r->object[id].refs)
        return;
    free(r->object[id].known.e);
    r->object[id] = (Release){.next = r->free_object};
    r->free_object = id;
}

/* ---- which address has which ---- */

static Region *
sync_region(SimRace *r, uint64_t addr, bool make)
{
    uint64_t key = addr >> REGION_BITS;
    Region **g = &r->syncs[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (BUCKETS - 1)];
    while (*g && (*g)->key != key)
        g = &(*g)->next;
    if (!*g && make && (*g = calloc(1, sizeof **g)))
        (*g)->key = key;
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
sync_find(SimRace *r, uint64_t addr)
{
    Region *g = sync_region(r, addr, false);
    uint32_t at = at_of(addr);
    List *l = g ? list_of(g, at) : NULL;
    for (uint32_t i = l ? sim_list_at_(l, at) : 0; l && i < l->n && l->e[i].at == at; i++)
        if (l->e[i].dwords & dword_of(addr))
            return &l->e[i];
    return NULL;
}

static const SimKnown *
sync_known(SimRace *r, uint64_t addr)
{
    const Entry *e = sync_find(r, addr);
    return e ? &r->object[e->pair].known : NULL;
}

static bool
sync_set(SimRace *r, uint64_t addr, uint32_t id)
{
    Region *g = sync_region(r, addr, true);
    uint32_t at = at_of(addr), bit = dword_of(addr);
    if (!g)
        return false;
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
        r->object[id].refs++;
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
    sim_region_cut_(g);
    return true;
}

void
sim_syncs_free_(SimRace *r)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (Region *g = r->syncs[i], *next; g; g = next) {
            next = g->next;
            sim_region_free_(g);
        }
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

/* Who acquires through addr knows `more` from now on. */
static bool
hand_on(SimRace *r, uint64_t addr, const SimKnown *more, Memo *m)
{
    Entry *e = sync_find(r, addr);
    uint32_t old = e ? e->pair : 0;
    if (m->valid && m->from == old)
        return sync_set(r, addr, m->to);
    if (m->valid && m->to == old)
        return true;
    if (old && r->object[old].refs == 1 && !(e->dwords & (e->dwords - 1u)))
        return sim_known_merge_(&r->object[old].known, more);
    uint32_t id = object_new(r);
    if (!id)
        return false;
    r->object[id].refs = 1; /* the memo's */
    if (old)
        r->object[old].refs++;
    forget(r, m);
    *m = (Memo){true, old, id};
    SimKnown *to = &r->object[id].known;
    return (!old || sim_known_merge_(to, &r->object[old].known)) && sim_known_merge_(to, more) &&
           sync_set(r, addr, id);
}

void
sim_race_release_lanes(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t lanes)
{
    SimKnown mine = {0};
    Memo m = {0};
    pthread_mutex_lock(&r->lock);
    w->released = ++w->releases;
    bool ok = sim_known_raise_(&mine, (KnownEntry){w->workgroup, w->wave, w->releases}) &&
              sim_known_raise_(&mine, (KnownEntry){w->workgroup, ALL_WAVES, w->waited}) &&
              (!w->known || sim_known_merge_(&mine, w->known));
    for (; lanes; lanes &= lanes - 1)
        ok = ok && hand_on(r, addr[__builtin_ctzll(lanes)], &mine, &m);
    forget(r, &m);
    free(mine.e);
    if (!ok)
        atomic_store(&r->oom, true);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_release(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    sim_race_release_lanes(r, w, &addr, 1);
}

void
sim_race_acquire(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    pthread_mutex_lock(&r->lock);
    const SimKnown *k = sync_known(r, addr);
    if (k && (!sim_wave_known_(w) || !sim_known_merge_(w->known, k)))
        atomic_store(&r->oom, true);
    pthread_mutex_unlock(&r->lock);
}

void
sim_race_carry_(SimRace *r, uint64_t addr, uint32_t epoch)
{
    SimKnown more = {0};
    Memo m = {0};
    pthread_mutex_lock(&r->lock);
    if (!sim_epoch_merge_(r, &more, epoch) || !hand_on(r, addr, &more, &m))
        atomic_store(&r->oom, true);
    forget(r, &m);
    free(more.e);
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
    const SimKnown *k = sync_known(r, addr);
    uint32_t i = k ? known_at(k, workgroup, 0) : 0;
    bool any = k && i < k->n && k->e[i].group == workgroup;
    *out = (SimRaceSync){0};
    const struct SimRaceFail *f = r->fails ? fail_at(r, addr, workgroup) : NULL;
    if (f && f->addr == addr && f->is.workgroup == workgroup)
        *out = f->is;
    pthread_mutex_unlock(&r->lock);
    return any;
}
