/* dispatch.c - spreads the workgroups of a launch over host threads.
 *
 * Workgroups start in order of their linear number. Each thread runs a set of resident workgroups: a fresh
 * one gets a long first slice, in which most end; one that does not end is rotated with the others in short
 * slices, and each round may bring in one more as long as the chip has room. So a workgroup that spins on
 * another's flag cannot keep it from running, and memory stays small where nobody waits. With one thread the
 * order is always the same. After a fault a few more workgroups run, since they may show its other side, then
 * the launch ends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device.h"

enum { FIRST_SLICE = 1 << 20, SLICE = 1 << 12, AFTER_FAULT = 1 << 20, GRACE = 16 };

typedef struct Dispatch {
    SimDevice *dev;
    const SimLaunchInfo *info;
    uint64_t total, residents;
    bool foreign;
    atomic_uint_fast64_t next, live;
    atomic_bool stop, no_memory, cancelled;
    atomic_uint grace; /* workgroups started since the first fault */
    uint64_t code_words;
} Dispatch;

/* Counters of one thread are not on a cache line of another's (lines come in pairs). */
enum { APART = 128 };

typedef struct Worker {
    _Alignas(APART) Dispatch *d;
    pthread_t thread;
    bool started;
    SimStats stats;
    SimMemPort port;
    SimGroup **set; /* resident here, in turn */
    uint32_t n, cap;
    SimGroup **idle; /* ended, to be used again */
    uint32_t nidle, idle_cap;
} Worker;

static bool
push(SimGroup ***v, uint32_t *n, uint32_t *cap, SimGroup *g)
{
    if (*n == *cap) {
        uint32_t c = *cap ? *cap * 2 : 8;
        SimGroup **p = realloc(*v, c * sizeof *p);
        if (!p)
            return false;
        *v = p;
        *cap = c;
    }
    (*v)[(*n)++] = g;
    return true;
}

/* Claims the next workgroup if the chip has room; false: none to start now. */
static bool
claim(Dispatch *d, uint64_t *linear)
{
    uint64_t live = atomic_load(&d->live);
    do {
        if (live >= d->residents)
            return false;
    } while (!atomic_compare_exchange_weak(&d->live, &live, live + 1));
    *linear = atomic_fetch_add(&d->next, 1);
    if (*linear < d->total)
        return true;
    atomic_store(&d->next, d->total);
    atomic_fetch_sub(&d->live, 1);
    return false;
}

static SimGroup *
start(Worker *w, uint64_t linear)
{
    const SimLaunchInfo *in = w->d->info;
    SimGroup *g = w->nidle ? w->idle[--w->nidle] : sim_group_new(&tl_alloc_libc, in);
    if (!g)
        return NULL;
    sim_group_reset(g, (uint32_t)(linear % in->grid[0]), (uint32_t)(linear / in->grid[0] % in->grid[1]),
                    (uint32_t)(linear / in->grid[0] / in->grid[1]), linear);
    return g;
}

/* Runs one slice; false: the group is finished (and kept for reuse). */
static bool
slice(Worker *w, SimGroup *g, uint64_t budget)
{
    Dispatch *d = w->d;
    SimRun end = sim_group_run(g, budget, &w->port, &w->stats);
    if (d->info->message) /* of waves that wait without having sent the interrupt */
        d->info->message(d->info->message_self);
    switch (end) {
    case SIM_RUN_YIELD:
        return true;
    case SIM_RUN_DONE:
        break;
    case SIM_RUN_BLOCKED:
    case SIM_RUN_FAULT:
        atomic_store(&d->stop, true);
        break;
    }
    atomic_fetch_sub(&d->live, 1);
    atomic_fetch_add(&d->dev->groups_done, 1);
    if (!push(&w->idle, &w->nidle, &w->idle_cap, g))
        sim_group_free(g);
    return false;
}

static void
run_set(Worker *w)
{
    Dispatch *d = w->d;
    uint64_t linear;
    for (;;) {
        if (atomic_load(&d->dev->cancel)) {
            atomic_store(&d->cancelled, true);
            return;
        }
        if (sim_reporter_any(d->info->sink_self) && atomic_fetch_add(&d->grace, 1) >= GRACE)
            atomic_store(&d->stop, true);
        if (!atomic_load(&d->stop) && claim(d, &linear)) {
            SimGroup *g = start(w, linear);
            if (!g) {
                atomic_store(&d->no_memory, true);
                atomic_store(&d->stop, true);
                return;
            }
            if (slice(w, g, FIRST_SLICE) && !push(&w->set, &w->n, &w->cap, g)) {
                sim_group_free(g);
                atomic_store(&d->no_memory, true);
                return;
            }
        } else if (!w->n) {
            return;
        }
        if (atomic_load(
                &d->stop)) { /* a fault elsewhere: let the rest run a while, for its reports, then end */
            for (uint32_t i = 0; i < w->n; i++)
                if (!slice(w, w->set[i], AFTER_FAULT))
                    w->set[i--] = w->set[--w->n];
            return;
        }
        uint32_t kept = 0; /* one round over the set, in order */
        for (uint32_t i = 0; i < w->n; i++)
            if (slice(w, w->set[i], SLICE))
                w->set[kept++] = w->set[i];
        w->n = kept;
    }
}

static void *
worker_main(void *arg)
{
    Worker *w = arg;
    run_set(w);
    return NULL;
}

static bool
worker_open(Worker *w, Dispatch *d, const SimStats *want)
{
    w->d = d;
    if (!sim_port_open(&w->port, d->dev->mem, d->foreign))
        return false;
    if (want && want->pc_counts && !(w->stats.pc_counts = calloc(d->code_words, sizeof(uint64_t))))
        return false;
    return true;
}

static void
stats_add(SimStats *to, const SimStats *s, uint64_t words)
{
    if (to->pc_counts)
        for (uint64_t i = 0; i < words; i++)
            to->pc_counts[i] += s->pc_counts[i];
    to->instructions += s->instructions;
    to->lds_conflict_cycles += s->lds_conflict_cycles;
    to->lds_gap_accesses += s->lds_gap_accesses;
    for (uint32_t i = 0; i < SIM_WIDTH_COUNT; i++) {
        to->global_read[i] += s->global_read[i];
        to->global_write[i] += s->global_write[i];
        to->lds_read[i] += s->lds_read[i];
        to->lds_write[i] += s->lds_write[i];
    }
    to->scalar_read += s->scalar_read;
    to->lds_dma += s->lds_dma;
    to->atomics += s->atomics;
}

static void
worker_close(Worker *w, SimStats *stats)
{
    SimStats total = {0};
    if (stats)
        stats_add(stats, &w->stats, w->d->code_words);
    stats_add(&total, &w->stats, 0);
    w->d->dev->instructions += total.instructions;
    for (uint32_t i = 0; i < w->n; i++)
        sim_group_free(w->set[i]);
    for (uint32_t i = 0; i < w->nidle; i++)
        sim_group_free(w->idle[i]);
    free(w->set);
    free(w->idle);
    free(w->stats.pc_counts);
    sim_port_close(&w->port);
}

SimStatus
sim_dispatch(SimDevice *dev, SimLaunchInfo *info, bool foreign, uint64_t residents, SimStats *stats)
{
    Dispatch d = {.dev = dev, .info = info, .residents = residents, .foreign = foreign};
    d.total = (uint64_t)info->grid[0] * info->grid[1] * info->grid[2];
    uint32_t n = (uint32_t)TL_MIN(dev->threads, d.total), opened = 0;
    Worker *ws = aligned_alloc(APART, n * sizeof *ws);
    if (!ws)
        return SIM_NO_MEMORY;
    memset(ws, 0, n * sizeof *ws);
    if (dev->images.len && stats && stats->pc_counts) {
        for (uint32_t i = 0; i < dev->images.len; i++) {
            const SimImage *im = dev->images.data[i];
            if (info->entry >= im->code_lo && info->entry < im->code_hi)
                d.code_words = sim_image_count_words(im);
        }
    }
    bool ok = true;
    for (; ok && opened < n; opened++)
        ok = worker_open(&ws[opened], &d, stats);
    if (ok) {
        atomic_store(&dev->cancel, false);
        atomic_store(&dev->groups_done, 0);
        atomic_store(&dev->groups_total, d.total);
        dev->launches++;
        for (uint32_t i = 1; i < n; i++) /* a thread that cannot start is no fault: the others do its work */
            ws[i].started = !pthread_create(&ws[i].thread, NULL, worker_main, &ws[i]);
        run_set(&ws[0]);
        for (uint32_t i = 1; i < n; i++)
            if (ws[i].started)
                pthread_join(ws[i].thread, NULL);
    }
    for (uint32_t i = 0; i < opened; i++)
        worker_close(&ws[i], ok ? stats : NULL);
    free(ws);
    if (!ok || atomic_load(&d.no_memory))
        return SIM_NO_MEMORY;
    if (atomic_load(&d.cancelled))
        return SIM_CANCELLED;
    return SIM_OK;
}
