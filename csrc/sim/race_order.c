/* race_order.c - what happens before what: epochs, what a wave knows of others, barriers
 * (contract in mem.h). race.c asks it for every access.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

void
sim_known_free_(SimKnown *k)
{
    if (k)
        free(k->e);
    free(k);
}

/* ---- epochs and what a wave knows ---- */

uint32_t
sim_epoch_now_(SimRace *r, SimRaceWave *w)
{
    if (w->epoch) {
        Epoch e = epoch_of(r, w->epoch);
        if (e.interval == w->interval && e.releases == w->releases && e.waited == w->waited)
            return w->epoch;
    }
    uint64_t first = (uint64_t)w->workgroup * r->waves + w->wave + 1;
    if (w->wave < r->waves && first < FIRST_EPOCH && !(w->interval | w->releases | w->waited))
        return w->epoch = (uint32_t)first;
    pthread_mutex_lock(&r->lock);
    uint32_t id = r->nepochs, c = id >> CHUNK_BITS;
    if (c < MAX_CHUNKS && !r->chunk[c])
        r->chunk[c] = malloc(sizeof(Epoch) << CHUNK_BITS);
    if (c >= MAX_CHUNKS || !r->chunk[c] || id >= EP_SPLIT) {
        atomic_store(&r->oom, true);
        id = 0;
    } else {
        r->chunk[c][id & ((1u << CHUNK_BITS) - 1)] =
            (Epoch){w->workgroup, w->wave, w->interval, w->releases, w->waited, w->released, NULL};
        r->nepochs++;
    }
    pthread_mutex_unlock(&r->lock);
    w->epoch = id;
    return id;
}

uint16_t
sim_pc_number_(SimRace *r, uint32_t slot)
{
    _Atomic(_Atomic(uint16_t) *) *at = &r->pc_leaf[slot >> PC_SHIFT & (PC_LEAVES - 1)];
    _Atomic(uint16_t) *leaf = atomic_load_explicit(at, memory_order_acquire);
    uint32_t i = slot & ((1u << PC_SHIFT) - 1);
    uint16_t n = leaf ? atomic_load_explicit(&leaf[i], memory_order_acquire) : 0;
    if (n)
        return n;
    pthread_mutex_lock(&r->lock);
    leaf = atomic_load_explicit(at, memory_order_relaxed);
    if (!leaf && (leaf = calloc(1u << PC_SHIFT, sizeof *leaf)))
        atomic_store_explicit(at, leaf, memory_order_release);
    n = leaf ? atomic_load_explicit(&leaf[i], memory_order_relaxed) : PC_UNKNOWN;
    if (!n) {
        n = r->npcs < PC_UNKNOWN ? (uint16_t)r->npcs++ : PC_UNKNOWN;
        if (n != PC_UNKNOWN)
            r->pc_slot[n] = slot;
        atomic_store_explicit(&leaf[i], n, memory_order_release);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

bool
sim_known_raise_(SimKnown *k, KnownEntry x, uint32_t mark)
{
    /* nothing to say when more than that is known */
    if (mark && !(x.wave & OF_LOADS) && known_bound(k, x.group, x.wave) >= x.bound)
        return true;
    x.wave |= mark;
    uint32_t i = known_at(k, x.group, x.wave);
    if (i < k->n && k->e[i].group == x.group && k->e[i].wave == x.wave) {
        k->e[i].bound = TL_MAX(k->e[i].bound, x.bound);
        return true;
    }
    if (k->n == k->cap) {
        uint32_t cap = k->cap ? k->cap * 2 : 2;
        KnownEntry *e = realloc(k->e, cap * sizeof *e);
        if (!e)
            return false;
        k->e = e;
        k->cap = cap;
    }
    memmove(k->e + i + 1, k->e + i, (k->n - i) * sizeof *k->e);
    k->e[i] = x;
    k->n++;
    return true;
}

bool
sim_known_merge_(SimKnown *to, const SimKnown *from, uint32_t mark)
{
    bool ok = true;
    for (uint32_t i = 0; i < from->n; i++)
        ok &= sim_known_raise_(to, from->e[i], mark);
    return ok;
}

bool
sim_known_of_(SimKnown *to, const SimRaceWave *w, uint32_t bound, uint32_t mark)
{
    bool ok = !w->known || sim_known_merge_(to, w->known, mark);
    ok &= sim_known_raise_(to, (KnownEntry){w->workgroup, ALL_WAVES, w->waited}, mark);
    return ok & sim_known_raise_(to, (KnownEntry){w->workgroup, w->wave, bound}, mark);
}

bool
sim_wave_known_(SimRaceWave *w)
{
    return sim_wave_learns_(w, SIM_HAND_ALL) != NULL;
}

SimKnown *
sim_wave_learns_(SimRaceWave *w, SimHand what)
{
    SimKnown **k = what < SIM_HAND_LATER ? &w->known : &w->later[what - SIM_HAND_LATER];
    return *k ? *k : (*k = calloc(1, sizeof **k));
}

void
sim_race_take_later(SimRace *r, SimRaceWave *w, SimHand what)
{
    SimKnown *from = w->later[what - SIM_HAND_LATER];
    if (from && (!sim_wave_known_(w) || !sim_known_merge_(w->known, from, 0)))
        atomic_store(&r->oom, true);
    sim_known_free_(from);
    w->later[what - SIM_HAND_LATER] = NULL;
}

/* ---- stores that may be releases: chips whose encodings do not tell atomic stores from plain ones ---- */

void
sim_race_open_release(SimRace *r, SimRaceWave *w, SimHand what)
{
    bool all = what == SIM_HAND_ALL;
    w->releases++;
    if (all)
        w->released = w->releases;
    uint32_t id = sim_epoch_now_(r, w);
    if (!id)
        return;
    bool needs = w->known || !all; /* the epoch says the rest */
    SimKnown *k = needs ? calloc(1, sizeof *k) : NULL;
    bool ok = k || !needs;
    if (k)
        ok = all ? sim_known_merge_(k, w->known, 0) : sim_known_of_(k, w, w->releases, OF_LOADS);
    if (!ok) {
        sim_known_free_(k);
        atomic_store(&r->oom, true);
        return;
    }
    pthread_mutex_lock(&r->lock);
    Epoch *e = &r->chunk[id >> CHUNK_BITS][id & ((1u << CHUNK_BITS) - 1)];
    e->known = k;
    if (all)
        e->released = e->releases + 1; /* with the store itself */
    pthread_mutex_unlock(&r->lock);
}

bool
sim_epoch_merge_(SimRace *r, SimKnown *to, uint32_t id, uint32_t mark)
{
    Epoch e = epoch_of(r, id);
    bool ok = sim_known_raise_(to, (KnownEntry){e.group, e.wave, e.released}, mark);
    ok &= sim_known_raise_(to, (KnownEntry){e.group, ALL_WAVES, e.waited}, mark);
    if (e.known)
        ok &= sim_known_merge_(to, e.known, mark);
    return ok;
}

void
sim_race_acquire_store(SimRace *r, SimRaceWave *w, uint32_t epoch, SimHand what)
{
    pthread_mutex_lock(&r->lock);
    SimKnown *to = sim_wave_learns_(w, what);
    if (!to || !sim_epoch_merge_(r, to, epoch, mark_of(what)))
        atomic_store(&r->oom, true);
    pthread_mutex_unlock(&r->lock);
}

uint32_t
sim_race_epoch_wave(const SimRace *r, uint32_t epoch, uint32_t workgroup)
{
    return sim_race_epoch_is(r, epoch, workgroup) ? epoch_of(r, epoch).wave : UINT32_MAX;
}

bool
sim_race_epoch_is(const SimRace *r, uint32_t epoch, uint32_t workgroup)
{
    return epoch && epoch_of(r, epoch).group == workgroup;
}

/* ---- waves of one workgroup ---- */

bool
sim_race_learn_until(SimRaceWave *w, const SimRaceWave *from, uint32_t bound)
{
    return sim_wave_known_(w) && sim_known_of_(w->known, from, bound, 0);
}

bool
sim_race_learn(SimRaceWave *w, SimRaceWave *from)
{
    return sim_race_learn_until(w, from, ++from->releases); /* what it does next is not among it */
}

uint32_t
sim_race_bound(const SimRaceWave *w, uint32_t wave)
{
    return w->known ? known_bound(w->known, w->workgroup, wave) : 0;
}

void
sim_race_lost(SimRace *r)
{
    atomic_store(&r->oom, true);
}

/* ---- barriers ---- */

void
sim_race_signal(SimRaceWave *w, bool complete)
{
    w->interval++;
    w->bound[w->interval & 1] = complete ? w->interval : w->bound[(w->interval - 1) & 1];
}

void
sim_race_wait(SimRaceWave *w, SimRaceWave *const *all, uint32_t n)
{
    w->waited++;
    for (uint32_t i = 0; w->seen && i < n && i < w->nwaves; i++) { /* an ended wave holds nobody up */
        uint32_t b = all[i] ? all[i]->bound[w->waited & 1] : w->waited;
        w->seen[w->nwaves + i] = TL_MAX(w->seen[w->nwaves + i], b);
    }
}

void
sim_race_invalidate(SimRaceWave *w)
{
    for (uint32_t i = 0; w->seen && i < w->nwaves; i++)
        w->seen[i] = w->seen[w->nwaves + i];
}

bool
sim_race_scalar_inv(SimRaceWave *w)
{
    SimRaceWave *v = w->scalar ? w->scalar : calloc(1, sizeof *v);
    w->scalar = v;
    if (!v)
        return false;
    v->workgroup = w->workgroup;
    v->wave = w->wave;
    v->interval = w->interval;
    v->waited = w->waited;
    bool ok = !w->known || (sim_wave_known_(v) && sim_known_merge_(v->known, w->known, 0));
    if (w->seen && !v->seen)
        ok &= sim_race_strict(v, w->nwaves);
    if (v->seen)
        memcpy(v->seen, w->seen, 2 * sizeof *w->seen * w->nwaves);
    return ok;
}

bool
sim_race_strict(SimRaceWave *w, uint32_t nwaves)
{
    w->nwaves = nwaves;
    w->seen = calloc(nwaves, 2 * sizeof *w->seen);
    return w->seen != NULL;
}

void
sim_race_barrier(SimRaceWave *const *waves, uint32_t n)
{
    SimRaceWave *first = NULL;
    for (uint32_t i = 0; i < n && !first; i++)
        if (waves[i]->known)
            first = waves[i];
    if (!first)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (waves[i] != first && waves[i]->known)
            sim_known_merge_(first->known, waves[i]->known, 0);
    for (uint32_t i = 0; i < n; i++)
        if (waves[i] != first && sim_wave_known_(waves[i]))
            sim_known_merge_(waves[i]->known, first->known, 0);
}

void
sim_race_wave_end(SimRaceWave *w)
{
    if (w->scalar)
        sim_race_wave_end(w->scalar);
    free(w->scalar);
    w->scalar = NULL;
    sim_known_free_(w->known);
    for (uint32_t i = 0; i < TL_COUNT(w->later); i++) {
        sim_known_free_(w->later[i]);
        w->later[i] = NULL;
    }
    free(w->seen);
    w->known = NULL;
    w->seen = NULL;
    w->epoch = 0;
    memset(w->page, 0, sizeof w->page);
    memset(w->region, 0, sizeof w->region);
}
