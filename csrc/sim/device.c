/* device.c - life of a device, loading, launch checks, kernel arguments, occupancy (contract in device.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/device.h"
#include "sim/env.h"
#include "sim/service.h"

static const SimChip chips[] = {
#define CHIP(arch, gfx, name, features, major, minor, stepping, cus, simds, waves, vgprs, vgran, lds, pool,  \
             lgran, share, gib, bus, clock, mclock, l2, pci)                                                 \
    [arch] = {arch,  #gfx, name, features, major, minor, stepping, cus,   simds,  waves, vgprs,              \
              vgran, lds,  pool, lgran,    share, gib,   bus,      clock, mclock, l2,    pci},
#include "sim/chips.def"
#undef CHIP
};

const SimChip *
sim_chip(IsaArch arch)
{
    return (uint32_t)arch < TL_COUNT(chips) ? &chips[arch] : NULL;
}

/* The parts of amd_queue_t that kernels read: the apertures (high halves) at 64 and 68. */
static void
fill_queue(uint64_t q)
{
    sim_dm_fill8(q, 0, 256);
    sim_dm_put32(q + 64, SIM_SHARED_APERTURE >> 32);
    sim_dm_put32(q + 68, SIM_PRIVATE_APERTURE >> 32);
}

void
sim_unknown_arch(const char *name, char *why, size_t n)
{
    int head = snprintf(why, n, "unknown architecture '%s'; there are:", name);
    size_t at = (size_t)TL_MAX(head, 0);
    for (int a = 0; a < ISA_ARCH_COUNT && at < n; a++)
        at += (size_t)TL_MAX(snprintf(why + at, n - at, "%s %s", a ? "," : "", isa_arch_name((IsaArch)a)), 0);
}

SimDevice *
sim_device_new(const SimDeviceOptions *o, char *why, size_t why_size)
{
    SimDevice *d = NULL;
    if (!sim_chip(o->arch) || !sim_arch_available(o->arch)) {
        snprintf(why, why_size, "no instructions are implemented for %s yet", isa_arch_name(o->arch));
        return NULL;
    }
    if (!sim_env_check(why, why_size))
        return NULL;
    uint32_t missing = o->checks & ~SIM_CHECK_STRICT & ~sim_checks_available();
    if (missing) {
        snprintf(why, why_size, "the check '%s' is not implemented yet",
                 sim_check_name((SimCheck)__builtin_ctz(missing)));
        return NULL;
    }
    if (o->cus > sim_chip(o->arch)->cus) {
        snprintf(why, why_size, "TILELANG_SIM_CUS must be a number from 1 to %u (what %s has), not '%u'",
                 sim_chip(o->arch)->cus, isa_arch_name(o->arch), o->cus);
        return NULL;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = cores > 0 && cores < 1024 ? (uint64_t)cores : 1;
    snprintf(why, why_size, "out of memory");
    if (!(d = calloc(1, sizeof *d)))
        return NULL;
    if (pthread_mutex_init(&d->launch_lock, NULL)) {
        free(d);
        return NULL;
    }
    tl_arena_init(&d->arena, NULL);
    d->chip = sim_chip(o->arch);
    d->cus = o->cus ? o->cus : d->chip->cus;
    d->strict = (o->checks & SIM_CHECK_STRICT) != 0;
    d->checks = (o->checks & ~SIM_CHECK_STRICT) | (d->strict ? 1u << SIM_CHECK_BARRIER : 0);
    d->threads = o->threads ? o->threads : (uint32_t)sim_env_number(SIM_ENV_THREADS, threads);
    d->mfma_hw = sim_env_word(SIM_ENV_MFMA) == 1;
    d->ignore = sim_env_rules();
    d->seed = sim_env_number(SIM_ENV_SEED, 0);
    d->late = sim_env_word(SIM_ENV_DELIVERY) == 1;
    d->max_instructions = sim_env_number(SIM_ENV_MAX_INSTRUCTIONS, 2000000000);
    d->allow_foreign = o->allow_foreign;
    d->heap_bytes = SIM_HEAP_BYTES;
    d->mem = sim_mem_new(o->checks >> SIM_CHECK_INIT & 1);
    d->reports = calloc(SIM_MAX_REPORTS, sizeof *d->reports);
    d->gws = sim_gws_new();
    if (d->mem && d->reports && d->gws) {
        d->queue = sim_dm_at(sim_mem_alloc(d->mem, 256, SIM_EXT_SYSTEM, true, "queue"));
        d->packet = sim_dm_at(sim_mem_alloc(d->mem, 64, SIM_EXT_SYSTEM, true, "dispatch packet"));
    }
    if (!d->queue || !d->packet) {
        sim_device_free(d);
        return NULL;
    }
    fill_queue(d->queue);
    *why = 0;
    return d;
}

void
sim_device_free(SimDevice *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->images.len; i++)
        sim_image_free(d->images.data[i]);
    sim_mem_free(d->mem);
    sim_services_free(d->services);
    sim_gws_free(d->gws);
    free(d->reports);
    tl_arena_free(&d->arena);
    pthread_mutex_destroy(&d->launch_lock);
    free(d);
}

SimImage *
sim_device_load(SimDevice *d, const void *data, uint64_t size, char *why, size_t why_size)
{
    return sim_device_load_shared(d, data, size, NULL, why, why_size);
}

SimImage *
sim_device_load_shared(SimDevice *d, const void *data, uint64_t size, const SimManaged *known, char *why,
                       size_t why_size)
{
    pthread_mutex_lock(&d->launch_lock);
    SimImage *im = sim_image_load(d->mem, data, size, why, why_size);
    if (im && im->archs >> d->chip->arch & 1)
        im->arch = d->chip->arch;
    if (im && im->arch != d->chip->arch) {
        snprintf(why, why_size, "the code object is for %s, the device is %s", isa_arch_name(im->arch),
                 d->chip->gfx);
        sim_image_free(im);
        im = NULL;
    }
    if (im && !sim_managed_bind(im, known, why, why_size)) {
        sim_image_free(im);
        im = NULL;
    }
    if (im && !tl_vec_push(&d->arena, &d->images, im)) {
        snprintf(why, why_size, "out of memory");
        sim_image_free(im);
        im = NULL;
    }
    pthread_mutex_unlock(&d->launch_lock);
    return im;
}

void
sim_device_unload(SimDevice *d, SimImage *im)
{
    pthread_mutex_lock(&d->launch_lock);
    for (uint32_t i = 0; i < d->images.len; i++) {
        if (d->images.data[i] != im)
            continue;
        d->images.data[i] = d->images.data[--d->images.len];
        sim_image_free(im);
        break;
    }
    pthread_mutex_unlock(&d->launch_lock);
}

void
sim_device_fork(SimDevice *d, bool before)
{
    if (before)
        pthread_mutex_lock(&d->launch_lock);
    else
        pthread_mutex_unlock(&d->launch_lock);
}

bool
sim_device_release(SimDevice *d, uint64_t base, SimExtentKind kind)
{
    pthread_mutex_lock(&d->launch_lock);
    bool ok = sim_mem_release(d->mem, base, kind);
    pthread_mutex_unlock(&d->launch_lock);
    return ok;
}

int
sim_device_share(SimDevice *d, uint64_t base)
{
    pthread_mutex_lock(&d->launch_lock);
    int fd = sim_mem_share(d->mem, base);
    pthread_mutex_unlock(&d->launch_lock);
    return fd;
}

bool
sim_device_stretches(SimDevice *d, uint64_t lo, uint64_t hi, const SimStretch *s, uint32_t n)
{
    pthread_mutex_lock(&d->launch_lock);
    bool ok = sim_mem_stretches(d->mem, lo, hi, s, n);
    pthread_mutex_unlock(&d->launch_lock);
    return ok;
}

/* ---- occupancy ---- */

uint32_t
sim_kernel_vgprs(const SimKernel *k)
{
    uint32_t blocks = (k->rsrc1 & 63) + 1;
    if (k->image->arch < ISA_GFX1100)
        return blocks * 8;
    return blocks * (k->wave64 ? 4 : 8); /* encoding granule; allocation rounds up to the chip's */
}

uint32_t
sim_multiprocessors(const SimDevice *d)
{
    return TL_MAX(1, d->cus / d->chip->cus_per_pool);
}

/* A workgroup lives on one CU or, on RDNA when the kernel asks for it, anywhere in a WGP (two CUs that share
 * their LDS); in CU mode each CU of the WGP has half of the LDS. */
uint32_t
sim_occupancy(const SimDevice *d, const SimKernel *k, uint32_t threads, uint32_t dynamic_lds)
{
    const SimChip *c = d->chip;
    uint32_t wave = k->wave64 ? 64 : 32, waves = (threads + wave - 1) / wave;
    bool rdna = c->cus_per_pool > 1, wgp = rdna && (k->rsrc1 >> 29 & 1);
    uint32_t regs = c->vgprs_per_simd, gran = c->vgpr_granule;
    if (rdna && k->wave64) {
        regs /= 2;
        gran /= 2;
    }
    uint32_t v = (sim_kernel_vgprs(k) + gran - 1) / gran * gran;
    uint32_t per_simd = TL_MIN(c->waves_per_simd, v ? regs / v : c->waves_per_simd);
    uint32_t cus = wgp ? c->cus_per_pool : 1, simds = c->simds_per_cu * cus;
    uint32_t groups = waves ? per_simd * simds / waves : 0;
    uint64_t lds = (uint64_t)k->group_size + dynamic_lds,
             pool = wgp ? c->lds_pool : c->lds_pool / c->cus_per_pool;
    lds = (lds + c->lds_granule - 1) / c->lds_granule * c->lds_granule;
    if (lds > c->lds_per_group)
        return 0;
    if (lds)
        groups = TL_MIN(groups, (uint32_t)(pool / lds));
    if (waves > 1)
        groups = TL_MIN(groups, 16 * cus);
    return groups * (c->cus_per_pool / cus);
}

/* ---- launch ---- */

static SimStatus TL_PRINTF(3, 4) refuse(SimDevice *d, SimStatus st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->error, sizeof d->error, fmt, ap);
    va_end(ap);
    return st;
}

/* Scratch that hardware can give a lane: waves have 8 MiB, on gfx12 64 MiB. */
static uint64_t
most_scratch(const SimKernel *k)
{
    uint64_t wave = k->image->arch == ISA_GFX1201 ? 64 << 20 : 8 << 20;
    return wave / (k->wave64 ? 64 : 32);
}

static SimStatus
check_config(SimDevice *d, const SimLaunch *l)
{
    const SimKernel *k = l->kernel;
    uint64_t threads = 1, items;
    if (!sim_kernel_has_code(k))
        return refuse(d, SIM_BAD_CONFIG, "kernel %s has no instructions", SIM_KERNEL_LABEL(k));
    for (uint32_t i = 0; i < 3; i++) {
        if (!l->grid[i] || !l->block[i])
            return refuse(d, SIM_BAD_CONFIG, "grid and block must be positive");
        if (l->block[i] > 1024)
            return refuse(d, SIM_BAD_CONFIG, "block dimension %u is %u; the limit is 1024", i, l->block[i]);
        threads *= l->block[i];
        items = (uint64_t)l->grid[i] * l->block[i];
        if (items > UINT32_MAX)
            return refuse(d, SIM_BAD_CONFIG, "dimension %u has %" PRIu64 " threads; the limit is 2^32 - 1", i,
                          items);
        if (i && d->chip->arch == ISA_GFX1201 && l->grid[i] > 65536) /* ids of 16 bits */
            return refuse(d, SIM_BAD_CONFIG, "dimension %u has %u workgroups; the limit is 65536", i,
                          l->grid[i]);
        if (k->reqd_workgroup_size[i] && k->reqd_workgroup_size[i] != l->block[i])
            return refuse(d, SIM_BAD_CONFIG,
                          "kernel %s must be launched with block dimension %u = %u, not %u",
                          SIM_KERNEL_LABEL(k), i, k->reqd_workgroup_size[i], l->block[i]);
    }
    uint32_t limit = k->max_flat_workgroup_size ? TL_MIN(k->max_flat_workgroup_size, 1024) : 1024;
    if (threads > limit)
        return refuse(d, SIM_BAD_CONFIG, "block of %" PRIu64 " threads; kernel %s allows %u", threads,
                      SIM_KERNEL_LABEL(k), limit);
    uint64_t lds = (uint64_t)k->group_size + l->dynamic_lds;
    if (lds > d->chip->lds_per_group)
        return refuse(d, SIM_BAD_CONFIG, "kernel %s needs %" PRIu64 " bytes of LDS; a workgroup on %s has %u",
                      SIM_KERNEL_LABEL(k), lds, d->chip->gfx, d->chip->lds_per_group);
    if (k->private_size > most_scratch(k))
        return refuse(d, SIM_BAD_CONFIG, "kernel %s needs %u bytes of scratch; a lane on %s has %" PRIu64,
                      SIM_KERNEL_LABEL(k), k->private_size, d->chip->gfx, most_scratch(k));
    uint32_t occ = sim_occupancy(d, k, (uint32_t)threads, l->dynamic_lds);
    uint64_t groups = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (l->cooperative && groups > (uint64_t)occ * sim_multiprocessors(d))
        return refuse(d, SIM_NO_RESIDENCY, "%" PRIu64 " workgroups launched cooperatively; %u fit", groups,
                      occ * sim_multiprocessors(d));
    return SIM_OK;
}

/* What the kernel's hidden arguments ask of the host. */
static bool
begin_services(SimDevice *d, const SimKernel *k, SimLaunchDims *dims)
{
    if (!sim_services_wanted(k))
        return true;
    const SimChip *c = d->chip;
    if (!d->services && !(d->services = sim_services_new(d->mem, d->cus * c->simds_per_cu * c->waves_per_simd,
                                                         d->heap_bytes)))
        return false;
    return sim_services_begin(d->services, k, dims);
}

/* What the workgroups of a cooperative launch meet at, as the device library has it: a pointer and four words
 * for launches over several devices (not used: nulls), the counter and how often it came round, the number of
 * workgroups. */
static bool
begin_grid_sync(SimDevice *d, const SimLaunch *l, SimLaunchDims *dims)
{
    enum { SYNC_BYTES = 48, SYNC_GROUPS = 40 };
    bool wanted = false;
    for (uint32_t i = 0; i < l->kernel->nargs; i++)
        wanted |= l->kernel->args[i].kind == SIM_ARG_hidden_multigrid_sync_arg;
    if (!wanted || !l->cooperative)
        return true;
    if (!d->grid_sync)
        d->grid_sync = sim_dm_at(sim_mem_alloc(d->mem, SYNC_BYTES, SIM_EXT_SYNC, true, NULL));
    if (!d->grid_sync)
        return false;
    uint32_t groups = l->grid[0] * l->grid[1] * l->grid[2];
    sim_dm_fill8(d->grid_sync, 0, SYNC_BYTES);
    sim_dm_write(d->grid_sync + SYNC_GROUPS, &groups, sizeof groups);
    dims->grid_sync = d->grid_sync;
    return true;
}

/* The kernel's argument segment: made at the first launch, then refilled. */
static bool
fill_kernarg(SimDevice *d, const SimLaunch *l)
{
    SimKernel *k = l->kernel;
    uint64_t size = TL_MAX(k->kernarg_size, k->meta_kernarg_size);
    if (!k->kernarg) {
        k->kernarg_bytes = TL_MAX(64, (size + 63) & ~UINT64_C(63));
        k->kernarg = sim_dm_at(sim_mem_alloc(d->mem, k->kernarg_bytes, SIM_EXT_KERNARG, false, k->name));
        if (!k->kernarg)
            return false;
        sim_mem_define(d->mem, k->kernarg, size);
    }
    sim_dm_fill8(k->kernarg, 0, size);
    if (l->kernarg_bytes)
        sim_dm_write(k->kernarg, l->kernarg, TL_MIN(l->kernarg_bytes, size));
    SimLaunchDims dims = {.dynamic_lds = l->dynamic_lds, .queue_ptr = d->queue};
    memcpy(dims.grid, l->grid, sizeof dims.grid);
    memcpy(dims.block, l->block, sizeof dims.block);
    memcpy(dims.partial, l->partial, sizeof dims.partial);
    if (!begin_services(d, k, &dims) || !begin_grid_sync(d, l, &dims))
        return false;
    sim_fill_hidden(k, &dims, k->kernarg, size);
    return true;
}

static void
put16(uint8_t *p, uint32_t v)
{
    uint16_t h = (uint16_t)v;
    memcpy(p, &h, 2);
}

/* hsa_kernel_dispatch_packet_t */
static void
fill_packet(SimDevice *d, const SimLaunch *l)
{
    uint8_t p[64] = {0};
    put16(p, 2 | 1 << 8 | 2 << 9 | 2 << 11); /* kernel dispatch, barrier, system fences */
    put16(p + 2, l->grid[2] > 1 || l->block[2] > 1 ? 3 : l->grid[1] > 1 || l->block[1] > 1 ? 2 : 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t full = l->grid[i] - (l->partial[i] != 0);
        uint32_t items = full * l->block[i] + l->partial[i];
        put16(p + 4 + 2 * i, l->block[i]);
        memcpy(p + 12 + 4 * i, &items, 4);
    }
    uint32_t lds = l->kernel->group_size + l->dynamic_lds;
    memcpy(p + 24, &l->kernel->private_size, 4);
    memcpy(p + 28, &lds, 4);
    memcpy(p + 32, &l->kernel->descriptor, 8);
    memcpy(p + 40, &l->kernel->kernarg, 8);
    sim_dm_write(d->packet, p, sizeof p);
}

/* Does some pointer argument point to memory that the table does not know? Without metadata, or with structs,
 * one cannot tell, and host pointers are allowed. */
static bool
needs_foreign(SimDevice *d, const SimLaunch *l)
{
    const SimKernel *k = l->kernel;
    if (!d->allow_foreign)
        return false;
    if (!k->has_metadata)
        return true;
    for (uint32_t i = 0; i < k->nargs; i++) {
        const SimArg *a = &k->args[i];
        uint64_t p;
        if (a->kind == SIM_ARG_BY_VALUE && a->size > 8)
            return true;
        if (a->kind != SIM_ARG_GLOBAL_BUFFER || a->size != 8 || a->offset + 8 > k->kernarg_bytes)
            continue;
        p = sim_dm_get64(k->kernarg + a->offset);
        if (p && !sim_mem_known(d->mem, p))
            return true;
    }
    return false;
}

/* With preloaded arguments the machine starts behind the 256 bytes that load them on older firmware. */
static uint64_t
entry_of(const SimKernel *k)
{
    enum { PRELOAD_PROLOGUE = 256 };
    return k->preload_length && k->entry + PRELOAD_PROLOGUE < k->image->code_hi ? k->entry + PRELOAD_PROLOGUE
                                                                                : k->entry;
}

/* Chips give whole granules, and code may read on to the end of one; the check of bounds wants what was asked
 * for.
 */
static uint32_t
given_lds(const SimDevice *d, uint32_t bytes)
{
    uint32_t granule = d->chip->lds_granule;
    return d->checks >> SIM_CHECK_BOUNDS & 1 ? bytes : (bytes + granule - 1) / granule * granule;
}

static void
make_info(SimDevice *d, const SimLaunch *l, SimLaunchInfo *info)
{
    const SimKernel *k = l->kernel;
    *info = (SimLaunchInfo){
        .arch = d->chip->arch,
        .wave64 = k->wave64,
        .entry = entry_of(k),
        .rsrc1 = k->rsrc1,
        .rsrc2 = k->rsrc2,
        .rsrc3 = k->rsrc3,
        .properties = k->properties,
        .preload_length = k->preload_length,
        .preload_offset = k->preload_offset,
        .kernarg = k->kernarg,
        .dispatch_ptr = d->packet,
        .queue_ptr = d->queue,
        .dispatch_id = d->dispatch_id++,
        .lds_bytes = given_lds(d, k->group_size + l->dynamic_lds),
        .scratch_bytes = k->private_size,
        .checks = d->checks,
        .ignore = d->ignore,
        .seed = d->seed,
        .late = d->late,
        .strict = d->strict,
        .max_instructions = d->max_instructions,
        .mfma_hw = d->mfma_hw,
        .gws = d->gws,
        .sink = sim_reporter_sink,
    };
    if (d->services && sim_services_wanted(k)) {
        info->message = sim_services_serve;
        info->message_self = d->services;
    }
    memcpy(info->grid, l->grid, sizeof info->grid);
    memcpy(info->block, l->block, sizeof info->block);
    memcpy(info->partial, l->partial, sizeof info->partial);
}

static SimStatus
launch_locked(SimDevice *d, const SimLaunch *l)
{
    SimKernel *k = l->kernel;
    const char *why = "out of memory";
    SimLaunchInfo info;
    SimStatus st = check_config(d, l);
    d->nreports = 0;
    if (st != SIM_OK)
        return st;
    if (!fill_kernarg(d, l))
        return refuse(d, SIM_NO_MEMORY, "out of memory");
    fill_packet(d, l);
    sim_gws_reset(d->gws, l->cooperative ? l->grid[0] * l->grid[1] * l->grid[2] : 0);
    make_info(d, l, &info);
    if (!(info.code = sim_image_code(k->image, k->wave64, &why)))
        return refuse(d, SIM_UNSUPPORTED, "%s", why);
    SimReporter *rep = sim_reporter_new(d, k);
    if (!rep)
        return refuse(d, SIM_NO_MEMORY, "out of memory");
    info.sink_self = rep;
    info.trace = l->trace;
    if (d->checks >> SIM_CHECK_RACE & 1) {
        uint32_t lanes = k->wave64 ? 64 : 32, block = l->block[0] * l->block[1] * l->block[2];
        info.race = sim_race_new((block + lanes - 1) / lanes);
        if (!info.race) {
            sim_reporter_finish(rep);
            return refuse(d, SIM_NO_MEMORY, "out of memory");
        }
    }
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint64_t residents = (uint64_t)sim_occupancy(d, k, threads, l->dynamic_lds) * sim_multiprocessors(d);
    st = sim_dispatch(d, &info, needs_foreign(d, l), TL_MAX(residents, 1), l->stats);
    if (info.message)
        sim_services_end(d->services, k);
    if (st == SIM_NO_MEMORY)
        refuse(d, st, "out of memory");
    if (st == SIM_OK && sim_reporter_any(rep))
        st = SIM_FAULTED;
    sim_reporter_finish(rep);
    sim_race_free(info.race);
    return st;
}

SimStatus
sim_device_launch(SimDevice *d, const SimLaunch *l)
{
    pthread_mutex_lock(&d->launch_lock);
    d->error[0] = 0;
    SimStatus st = launch_locked(d, l);
    pthread_mutex_unlock(&d->launch_lock);
    return st;
}
