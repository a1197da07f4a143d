/* hip_state.c - process state of the HIP API: devices from the environment, the current device and last error
 * of each thread, live handles. The one place with global state: HIP's interface has it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"
#include "sim/tlsim.h"

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    HipDevice dev[SIM_MAX_DEVICES];
    int ndev;
    char why[512];          /* there is none */
    const Handle **handles; /* open addressing */
    uint32_t nhandles, cap;
    pthread_rwlock_t modules; /* held by who launches a function; to unload a module */
    pthread_mutex_t tracked_lock;
    SimDevice **tracked;
    uint32_t ntracked, tracked_cap;
} state = {.once = PTHREAD_ONCE_INIT,
           .lock = PTHREAD_MUTEX_INITIALIZER,
           .modules = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
           .tracked_lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int current_device;
static _Thread_local hipError_t last_error;

/* ---- fork: the child finds every lock free, because the parent's thread that forks holds them all ---- */

static void
fork_locks(bool before)
{
    if (before) {
        pthread_rwlock_wrlock(&state.modules);
        sim_hip_fat_fork(true);
        sim_hip_capture_fork(true);
        sim_hip_virtual_fork(true);
        pthread_mutex_lock(&state.tracked_lock);
        for (int i = 0; i < state.ndev; i++)
            pthread_mutex_lock(&state.dev[i].lock);
    }
    /* a launch takes the tables of other devices too: all launches first, then the tables */
    for (int i = 0; before && i < state.ndev; i++)
        sim_device_fork(state.dev[i].sim, true);
    for (uint32_t i = 0; before && i < state.ntracked; i++)
        sim_device_fork(state.tracked[i], true);
    for (int i = 0; i < state.ndev; i++)
        sim_mem_fork(state.dev[i].sim->mem, before);
    for (uint32_t i = 0; i < state.ntracked; i++)
        sim_mem_fork(state.tracked[i]->mem, before);
    if (before) {
        pthread_mutex_lock(&state.lock);
        sim_hip_range_fork(true);
        sim_hip_pool_fork(true);
        return;
    }
    sim_hip_pool_fork(false);
    sim_hip_range_fork(false);
    pthread_mutex_unlock(&state.lock);
    for (uint32_t i = 0; i < state.ntracked; i++)
        sim_device_fork(state.tracked[i], false);
    for (int i = 0; i < state.ndev; i++) {
        sim_device_fork(state.dev[i].sim, false);
        pthread_mutex_unlock(&state.dev[i].lock);
    }
    pthread_mutex_unlock(&state.tracked_lock);
    sim_hip_virtual_fork(false);
    sim_hip_capture_fork(false);
    sim_hip_fat_fork(false);
    pthread_rwlock_unlock(&state.modules);
}

void
sim_hip_modules_hold(bool unload)
{
    if (unload)
        pthread_rwlock_wrlock(&state.modules);
    else
        pthread_rwlock_rdlock(&state.modules);
}

void
sim_hip_modules_drop(void)
{
    pthread_rwlock_unlock(&state.modules);
}

static void
before_fork(void)
{
    fork_locks(true);
}

static void
after_fork(void)
{
    fork_locks(false);
}

static void
after_fork_in_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    fork_locks(false);
    state.modules = fresh; /* who waited for it is not here */
}

/* From the start: a fork that has begun calls no handler that is registered meanwhile. */
__attribute__((constructor)) static void
watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool
sim_hip_track(SimDevice *d)
{
    pthread_mutex_lock(&state.tracked_lock);
    if (state.ntracked == state.tracked_cap) {
        uint32_t cap = state.tracked_cap ? state.tracked_cap * 2 : 8;
        SimDevice **p = realloc(state.tracked, cap * sizeof(SimDevice *));
        if (!p) {
            pthread_mutex_unlock(&state.tracked_lock);
            return false;
        }
        state.tracked = p;
        state.tracked_cap = cap;
    }
    state.tracked[state.ntracked++] = d;
    pthread_mutex_unlock(&state.tracked_lock);
    return true;
}

void
sim_hip_untrack(const SimDevice *d)
{
    pthread_mutex_lock(&state.tracked_lock);
    for (uint32_t i = 0; i < state.ntracked; i++)
        if (state.tracked[i] == d)
            state.tracked[i--] = state.tracked[--state.ntracked];
    if (!state.ntracked) {
        free(state.tracked);
        state.tracked = NULL;
        state.tracked_cap = 0;
    }
    pthread_mutex_unlock(&state.tracked_lock);
}

/* ---- devices ---- */

/* One more device; false: why says why not. */
static bool
add_device(SimDeviceOptions *o, char *why, size_t why_size)
{
    HipDevice *d = &state.dev[state.ndev];
    if (!(d->sim = sim_device_new(o, why, why_size)))
        return false;
    if (pthread_mutex_init(&d->lock, NULL)) {
        snprintf(why, why_size, "out of memory");
        sim_device_free(d->sim);
        return false;
    }
    d->stats_on = sim_env_word(SIM_ENV_STATS) == 1;
    snprintf(d->gcn_arch, sizeof d->gcn_arch, "%s%s", d->sim->chip->gfx, d->sim->chip->features);
    state.ndev++;
    return true;
}

/* All devices that are asked for, or none: then the reason goes to stderr and is kept. */
static void
start_devices(void)
{
    const char *list = sim_env(SIM_ENV_DEVICES);
    SimDeviceOptions o = {.allow_foreign = true,
                          .checks = sim_env_checks(1u << SIM_CHECK_BOUNDS),
                          .cus = (uint32_t)sim_env_number(SIM_ENV_CUS, 0)};
    state.ndev = 0; /* the child of a fork in the middle of this starts over */
    bool ok = sim_env_check(state.why, sizeof state.why);
    if (!list)
        list = sim_env(SIM_ENV_ARCH);
    if (!list)
        list = "gfx942";
    char name[32];
    for (size_t n; ok && (n = sim_env_token(&list)); list += n) {
        snprintf(name, sizeof name, "%.*s", (int)TL_MIN(n, sizeof name), list);
        ok = isa_arch_by_name(name, &o.arch) && state.ndev < SIM_MAX_DEVICES &&
             add_device(&o, state.why, sizeof state.why);
    }
    if (!ok)
        fprintf(stderr, "tilelang simulator: %s\n", state.why);
    while (!ok && state.ndev) {
        HipDevice *d = &state.dev[--state.ndev];
        pthread_mutex_destroy(&d->lock);
        sim_device_free(d->sim);
    }
    for (int i = 0; i < state.ndev; i++)
        for (int k = 0; k < state.ndev; k++)
            if (i != k)
                sim_mem_link(state.dev[i].sim->mem, state.dev[k].sim->mem);
}

/* At the end of the process: what each device has run, one JSON object a line, to TILELANG_SIM_COUNTERS. */
__attribute__((destructor)) static void
tell_counters(void)
{
    const char *path = sim_env(SIM_ENV_COUNTERS);
    FILE *f = path && state.ndev ? fopen(path, "a") : NULL;
    bool ok = f || !path || !state.ndev;
    for (int i = 0; f && i < state.ndev; i++)
        fprintf(f,
                "{\"chip\": \"%s\", \"device\": %d, \"launches\": %" PRIu64 ", \"instructions\": %" PRIu64
                "}\n",
                state.dev[i].sim->chip->gfx, i, state.dev[i].sim->launches, state.dev[i].sim->instructions);
    if ((f && fclose(f)) || !ok)
        sim_env_unwritable(SIM_ENV_COUNTERS);
}

TL_API size_t tlsim_no_device(char *buf, size_t cap); /* why there is no device; returns the whole length */
size_t
tlsim_no_device(char *buf, size_t cap)
{
    sim_hip_device_count();
    if (cap)
        snprintf(buf, cap, "%s", state.why);
    return strlen(state.why);
}

int
sim_hip_device_count(void)
{
    pthread_once(&state.once, start_devices);
    return state.ndev;
}

HipDevice *
sim_hip_device(int index)
{
    return index >= 0 && index < sim_hip_device_count() ? &state.dev[index] : NULL;
}

int
sim_hip_current(void)
{
    return current_device;
}

void
sim_hip_set_current(int device)
{
    current_device = device;
}

SimDevice *
sim_hip_current_device(void)
{
    HipDevice *d = sim_hip_device(current_device);
    return d ? d->sim : NULL;
}

HipDevice *
sim_hip_owner(const void *p, SimExtent *x)
{
    for (int i = 0; i < sim_hip_device_count(); i++)
        if (sim_mem_lookup(state.dev[i].sim->mem, (uint64_t)p, 1, x))
            return &state.dev[i];
    return NULL;
}

/* ---- errors ---- */

hipError_t
sim_hip_answer(hipError_t e)
{
    if (e != hipSuccess && e != hipErrorNotReady)
        last_error = e;
    return e;
}

hipError_t
sim_hip_result(hipError_t e)
{
    return sim_hip_answer(e == hipSuccess ? sim_hip_check(NULL) : e);
}

hipError_t
sim_hip_last(bool clear)
{
    hipError_t e = last_error;
    if (clear)
        last_error = hipSuccess;
    return e;
}

hipError_t
sim_hip_check(HipDevice **d)
{
    HipDevice *dev = sim_hip_device(current_device);
    if (d)
        *d = dev;
    return dev ? dev->sticky : hipErrorNoDevice;
}

/* ---- handles ---- */

static uint32_t
slot_of(const void *p)
{
    return (uint32_t)(((uint64_t)p * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (state.cap - 1);
}

static uint32_t
find_handle(const void *p) /* its slot, or the free one where it would go; cap > 0 */
{
    uint32_t i = slot_of(p);
    while (state.handles[i] && state.handles[i] != p)
        i = (i + 1) & (state.cap - 1);
    return i;
}

static bool
grow(void)
{
    uint32_t old = state.cap, cap = old ? old * 2 : 256;
    const Handle **was = state.handles, **now = calloc(cap, sizeof *now);
    if (!now)
        return false;
    state.handles = now;
    state.cap = cap;
    for (uint32_t i = 0; i < old; i++)
        if (was[i])
            now[find_handle(was[i])] = was[i];
    free(was);
    return true;
}

bool
sim_hip_handle_add(Handle *h)
{
    pthread_mutex_lock(&state.lock);
    bool ok = (state.nhandles + 1) * 2 <= state.cap || grow();
    if (ok) {
        state.handles[find_handle(h)] = h;
        state.nhandles++;
    }
    pthread_mutex_unlock(&state.lock);
    return ok;
}

bool
sim_hip_handle_valid(const void *p, HandleKind kind)
{
    pthread_mutex_lock(&state.lock);
    bool ok = p && state.cap && state.handles[find_handle(p)] && ((const Handle *)p)->kind == kind;
    pthread_mutex_unlock(&state.lock);
    return ok;
}

bool
sim_hip_handle_remove(const void *p, HandleKind kind)
{
    bool ok = false;
    pthread_mutex_lock(&state.lock);
    uint32_t i = state.cap && p ? find_handle(p) : 0;
    if (state.cap && p && state.handles[i] && ((const Handle *)p)->kind == kind) {
        state.handles[i] = NULL;
        state.nhandles--;
        for (uint32_t j = (i + 1) & (state.cap - 1); state.handles[j]; j = (j + 1) & (state.cap - 1)) {
            const Handle *h = state.handles[j]; /* close the gap */
            state.handles[j] = NULL;
            state.handles[find_handle(h)] = h;
        }
        ok = true;
    }
    pthread_mutex_unlock(&state.lock);
    return ok;
}
