/* hip_device.c - HIP: devices, their properties, primary contexts (one a device; a context handle is the
 * device). */
#include <inttypes.h>
#include <stdio.h>

#include "sim/hip.h"

static HipDevice *
get(int device, hipError_t *e)
{
    HipDevice *d = sim_hip_device(device);
    *e = d ? hipSuccess : sim_hip_device_count() ? hipErrorInvalidDevice : hipErrorNoDevice;
    return d;
}

hipError_t
hipGetDeviceCount(int *count)
{
    if (!count)
        ANSWER(hipErrorInvalidValue);
    *count = sim_hip_device_count();
    ANSWER(*count ? hipSuccess : hipErrorNoDevice);
}

hipError_t
hipGetDevice(int *device)
{
    if (!device)
        ANSWER(hipErrorInvalidValue);
    if (!sim_hip_device_count())
        ANSWER(hipErrorNoDevice);
    *device = sim_hip_current();
    ANSWER(hipSuccess);
}

hipError_t
hipSetDevice(int device)
{
    hipError_t e;
    if (get(device, &e))
        sim_hip_set_current(device);
    ANSWER(e);
}

hipError_t
hipSetDeviceFlags(unsigned flags)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (!d)
        ANSWER(hipErrorNoDevice);
    /* one way to wait (1, 2 or 4; 0: any), mapped host memory (8), local memory stays (16) */
    if (flags & ~31u || (flags & 7 & ((flags & 7) - 1)))
        ANSWER(hipErrorInvalidValue);
    d->flags = flags;
    ANSWER(hipSuccess);
}

hipError_t
hipGetDeviceFlags(unsigned *flags)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (!flags)
        ANSWER(hipErrorInvalidValue);
    *flags = d ? d->flags : 0;
    ANSWER(d ? hipSuccess : hipErrorNoDevice);
}

hipError_t
hipSetValidDevices(int *devices, int n)
{
    hipError_t e = hipSuccess;
    for (int i = 0; i < n && e == hipSuccess && devices; i++)
        get(devices[i], &e);
    ANSWER(e);
}

hipError_t
hipDeviceGet(int *device, int ordinal)
{
    hipError_t e;
    if (!device)
        ANSWER(hipErrorInvalidValue);
    if (get(ordinal, &e))
        *device = ordinal;
    ANSWER(e);
}

hipError_t
hipDeviceGetName(char *name, int n, int device)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (!name || n <= 0)
        ANSWER(hipErrorInvalidValue);
    if (d)
        snprintf(name, (size_t)n, "%s", d->sim->chip->name);
    ANSWER(e);
}

static void
uuid_of(int device, uint8_t out[16])
{
    memcpy(out, "tilelang-sim-000", 16);
    out[14] = (uint8_t)('0' + device / 10 % 10);
    out[15] = (uint8_t)('0' + device % 10);
}

hipError_t
hipDeviceGetUuid(void *uuid, int device)
{
    hipError_t e;
    if (!uuid)
        ANSWER(hipErrorInvalidValue);
    if (get(device, &e))
        uuid_of(device, uuid);
    ANSWER(e);
}

hipError_t
hipDeviceGetPCIBusId(char *id, int n, int device)
{
    hipError_t e;
    if (!id || n < 13)
        ANSWER(hipErrorInvalidValue);
    if (get(device, &e))
        snprintf(id, (size_t)n, "0000:%02x:00.0", 0x10 + device);
    ANSWER(e);
}

hipError_t
hipDeviceGetByPCIBusId(int *device, const char *id)
{
    unsigned domain, bus;
    if (!device || !id || sscanf(id, "%x:%x:", &domain, &bus) != 2)
        ANSWER(hipErrorInvalidValue);
    if (domain || bus < 0x10 || !sim_hip_device((int)bus - 0x10))
        ANSWER(hipErrorInvalidValue);
    *device = (int)bus - 0x10;
    ANSWER(hipSuccess);
}

hipError_t
hipDeviceTotalMem(size_t *bytes, int device)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (!bytes)
        ANSWER(hipErrorInvalidValue);
    if (d)
        *bytes = d->sim->chip->dram_gib << 30;
    ANSWER(e);
}

hipError_t
hipDeviceComputeCapability(int *major, int *minor, int device)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (!major || !minor)
        ANSWER(hipErrorInvalidValue);
    if (d) {
        *major = (int)d->sim->chip->major;
        *minor = (int)d->sim->chip->minor;
    }
    ANSWER(e);
}

/* ---- attributes and properties ---- */

static uint32_t
max_threads(const SimChip *c)
{
    uint32_t waves = c->waves_per_simd * c->simds_per_cu * c->cus_per_pool;
    return waves * (c->cus_per_pool > 1 ? 32 : 64);
}

static uint32_t
warp_size(const SimChip *c)
{
    return c->cus_per_pool > 1 ? 32 : 64;
}

static uint32_t
registers(const SimChip *c)
{
    return c->vgprs_per_simd * c->simds_per_cu * c->cus_per_pool * warp_size(c) /
           (c->cus_per_pool > 1 ? 1 : 2);
}

static uint32_t
multiprocessors(const HipDevice *d) /* HIP counts a WGP as one on RDNA */
{
    return sim_multiprocessors(d->sim);
}

static uint32_t
xccs(const SimChip *c)
{
    return c->arch == ISA_GFX942 || c->arch == ISA_GFX950 ? 8 : 1;
}

typedef struct Attr {
    int number, offset;
    uint32_t value;
} Attr;

enum {
    NATTRS = 0
#define SIM_ATTR(name, number, offset, value) +1
#include "sim/hip_attributes.def"
#undef SIM_ATTR
};

static void
attributes(const HipDevice *d, int i, Attr out[NATTRS])
{
    const SimChip *c = d->sim->chip;
    const Attr rows[] = {
#define SIM_ATTR(name, number, offset, value) {number, offset, (uint32_t)(value)},
#include "sim/hip_attributes.def"
#undef SIM_ATTR
    };
    memcpy(out, rows, sizeof rows);
}

hipError_t
hipDeviceGetAttribute(int *value, int attribute, int device)
{
    Attr rows[NATTRS];
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (!value)
        ANSWER(hipErrorInvalidValue);
    if (!d)
        ANSWER(e);
    attributes(d, device, rows);
    for (uint32_t k = 0; k < NATTRS; k++) {
        if (rows[k].number == attribute) {
            *value = (int)rows[k].value;
            ANSWER(hipSuccess);
        }
    }
    *value = 0;
    ANSWER(attribute >= 0 && attribute < 95 ? hipSuccess : hipErrorInvalidValue);
}

static void
put32(uint8_t *p, uint32_t offset, uint32_t v)
{
    memcpy(p + offset, &v, 4);
}

static void
put64(uint8_t *p, uint32_t offset, uint64_t v)
{
    memcpy(p + offset, &v, 8);
}

/* hipDeviceArch_t: all features but funnel shift, syncthreads_*, surfaces and dynamic parallelism */
enum { ARCH_BITS = 0x97ff };

hipError_t
hipGetDevicePropertiesR0600(void *prop, int device)
{
    Attr rows[NATTRS];
    hipError_t e;
    HipDevice *d = get(device, &e);
    uint8_t *p = prop;
    if (!prop)
        ANSWER(hipErrorInvalidValue);
    if (!d)
        ANSWER(e);
    const SimChip *c = d->sim->chip;
    memset(p, 0, 1472);
    snprintf((char *)p, 256, "%s", c->name);
    uuid_of(device, p + 256);
    put64(p, 288, c->dram_gib << 30);
    put64(p, 296, c->lds_per_group);
    put64(p, 312, 2147483647);
    put64(p, 352, 2147483647);
    put64(p, 368, 256);
    put64(p, 376, 256);
    put64(p, 640, c->lds_pool);
    put64(p, 696, c->lds_per_group);
    snprintf((char *)p + 1160, 256, "%s", d->gcn_arch);
    put64(p, 1416, c->lds_pool);
    put32(p, 1428, ARCH_BITS);
    attributes(d, device, rows);
    for (uint32_t k = 0; k < NATTRS; k++)
        if (rows[k].offset >= 0)
            put32(p, (uint32_t)rows[k].offset, rows[k].value);
    ANSWER(hipSuccess);
}

/* The layout of HIP before version 6: 792 bytes. */
hipError_t
hipGetDevicePropertiesR0000(void *prop, int device)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    uint8_t *p = prop;
    if (!prop)
        ANSWER(hipErrorInvalidValue);
    if (!d)
        ANSWER(e);
    const SimChip *c = d->sim->chip;
    memset(p, 0, 792);
    snprintf((char *)p, 256, "%s", c->name);
    put64(p, 256, c->dram_gib << 30);
    put64(p, 264, c->lds_per_group);
    put32(p, 272, registers(c));
    put32(p, 276, warp_size(c));
    put32(p, 280, 1024);
    for (uint32_t k = 0; k < 3; k++) {
        put32(p, 284 + 4 * k, 1024);
        put32(p, 296 + 4 * k, k ? 65536 : 2147483647);
    }
    put32(p, 308, c->clock_khz);
    put32(p, 312, c->mem_clock_khz);
    put32(p, 316, c->bus_bits);
    put64(p, 320, 2147483647);
    put32(p, 328, c->major);
    put32(p, 332, c->minor);
    put32(p, 336, multiprocessors(d));
    put32(p, 340, c->l2_kib * 1024);
    put32(p, 344, max_threads(c));
    put32(p, 352, 100000);
    put32(p, 356, ARCH_BITS);
    put32(p, 360, 1);
    put32(p, 368, 0x10 + (uint32_t)device);
    put64(p, 376, c->lds_pool);
    put32(p, 388, 1);
    put32(p, 392, c->major * 100 + c->minor * 10 + c->stepping);
    snprintf((char *)p + 396, 256, "%s", d->gcn_arch);
    put32(p, 656, 1);
    ANSWER(hipSuccess);
}

hipError_t
hipGetDeviceProperties(void *prop, int device)
{
    return hipGetDevicePropertiesR0000(prop, device);
}

/* The device that has most of what *prop asks for: memory, version, processors (0: any). */
static hipError_t
choose(int *device, const void *prop, uint32_t memory_at, uint32_t major_at, uint32_t cus_at)
{
    uint64_t memory;
    uint32_t major, cus;
    int best = -1;
    if (!device || !prop)
        return hipErrorInvalidValue;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    memcpy(&memory, (const char *)prop + memory_at, 8);
    memcpy(&major, (const char *)prop + major_at, 4);
    memcpy(&cus, (const char *)prop + cus_at, 4);
    for (int i = 0; i < sim_hip_device_count(); i++) {
        const HipDevice *d = sim_hip_device(i);
        const SimChip *c = d->sim->chip;
        int score = (c->dram_gib << 30 >= memory) + (c->major >= major) + (multiprocessors(d) >= cus);
        if (score > best) {
            best = score;
            *device = i;
        }
    }
    return hipSuccess;
}

hipError_t
hipChooseDeviceR0600(int *device, const void *prop)
{
    ANSWER(choose(device, prop, 288, 360, 388));
}

hipError_t
hipChooseDeviceR0000(int *device, const void *prop)
{
    ANSWER(choose(device, prop, 256, 328, 336));
}

hipError_t
hipChooseDevice(int *device, const void *prop)
{
    return hipChooseDeviceR0000(device, prop);
}

/* ---- the current device ---- */

hipError_t
hipDeviceSynchronize(void)
{
    hipError_t e = sim_hip_check(NULL);
    RETURN(e == hipSuccess ? sim_hip_enter_sync() : e);
}

hipError_t
hipDeviceReset(void)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (d)
        d->sticky = hipSuccess;
    ANSWER(d ? hipSuccess : hipErrorNoDevice);
}

enum { LIMIT_STACK, LIMIT_PRINTF, LIMIT_HEAP };

hipError_t
hipDeviceGetLimit(size_t *value, int limit)
{
    const HipDevice *d = sim_hip_device(sim_hip_current());
    if (!value)
        RETURN(hipErrorInvalidValue);
    if (!d)
        RETURN(hipErrorNoDevice);
    switch (limit) {
    case LIMIT_STACK:
        *value = 16384;
        break;
    case LIMIT_PRINTF:
        *value = 1 << 20;
        break;
    case LIMIT_HEAP:
        *value = d->sim->heap_bytes;
        break;
    default:
        RETURN(hipErrorUnsupportedLimit);
    }
    RETURN(hipSuccess);
}

/* The heap of device malloc can be sized until the first kernel that may use it. */
hipError_t
hipDeviceSetLimit(int limit, size_t value)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (limit < LIMIT_STACK || limit > LIMIT_HEAP)
        RETURN(hipErrorUnsupportedLimit);
    if (!d)
        RETURN(hipErrorNoDevice);
    if (limit != LIMIT_HEAP)
        RETURN(hipSuccess);
    if (value > d->sim->chip->dram_gib << 30)
        RETURN(hipErrorInvalidValue);
    hipError_t e = hipSuccess;
    pthread_mutex_lock(&d->sim->launch_lock);
    if (d->sim->services)
        e = hipErrorInvalidValue;
    else
        d->sim->heap_bytes = value;
    pthread_mutex_unlock(&d->sim->launch_lock);
    RETURN(e);
}

static hipError_t
give_zero(int *out)
{
    if (!out)
        return hipErrorInvalidValue;
    *out = 0;
    return hipSuccess;
}

hipError_t
hipDeviceGetCacheConfig(int *config)
{
    RETURN(give_zero(config));
}

hipError_t
hipDeviceSetCacheConfig(int config)
{
    (void)config;
    RETURN(hipSuccess);
}

hipError_t
hipDeviceGetSharedMemConfig(int *config)
{
    RETURN(give_zero(config));
}

hipError_t
hipDeviceSetSharedMemConfig(int config)
{
    (void)config;
    RETURN(hipSuccess);
}

hipError_t
hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 1;
    if (greatest)
        *greatest = -1;
    ANSWER(hipSuccess);
}

/* Every device can access every other one's memory once it is enabled; copies need no permission. */
hipError_t
hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    hipError_t e;
    if (!can)
        ANSWER(hipErrorInvalidValue);
    *can = 0;
    if (!get(device, &e) || !get(peer, &e))
        ANSWER(e);
    *can = device != peer;
    ANSWER(hipSuccess);
}

static hipError_t
peer_access(int peer, bool on)
{
    hipError_t e;
    HipDevice *p = get(peer, &e), *d = sim_hip_device(sim_hip_current());
    if (!p || !d)
        return e;
    if (p == d)
        return hipErrorInvalidDevice;
    if (sim_mem_reach(d->sim->mem, p->sim->mem, on))
        return hipSuccess;
    return on ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled;
}

hipError_t
hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    RETURN(flags ? hipErrorInvalidValue : peer_access(peer, true));
}

hipError_t
hipDeviceDisablePeerAccess(int peer)
{
    RETURN(peer_access(peer, false));
}

enum { P2P_RANK, P2P_ACCESS, P2P_ATOMICS, P2P_ARRAYS };

hipError_t
hipDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    int can;
    hipError_t e = hipDeviceCanAccessPeer(&can, device, peer);
    if (!value || attribute < P2P_RANK || attribute > P2P_ARRAYS || device == peer)
        ANSWER(hipErrorInvalidValue);
    *value = attribute == P2P_ACCESS || attribute == P2P_ATOMICS;
    ANSWER(e);
}

/* ---- contexts ---- */

static hipError_t
ctx_device(const void *ctx, int *device)
{
    for (int i = 0; i < sim_hip_device_count(); i++) {
        if (ctx == sim_hip_device(i)) {
            *device = i;
            return hipSuccess;
        }
    }
    return hipErrorInvalidContext;
}

hipError_t
hipDevicePrimaryCtxRetain(void **ctx, int device)
{
    hipError_t e;
    if (!ctx)
        RETURN(hipErrorInvalidValue);
    *ctx = get(device, &e);
    RETURN(e);
}

hipError_t
hipDevicePrimaryCtxRelease(int device)
{
    hipError_t e;
    get(device, &e);
    RETURN(e);
}

hipError_t
hipDevicePrimaryCtxReset(int device)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (d)
        d->sticky = hipSuccess;
    ANSWER(e);
}

hipError_t
hipDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
    (void)flags;
    return hipDevicePrimaryCtxRelease(device);
}

hipError_t
hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    hipError_t e;
    HipDevice *d = get(device, &e);
    if (flags)
        *flags = d ? d->flags : 0;
    if (active)
        *active = d != NULL;
    ANSWER(e);
}

hipError_t
hipCtxCreate(void **ctx, unsigned flags, int device)
{
    (void)flags;
    hipError_t e = hipDevicePrimaryCtxRetain(ctx, device);
    if (e == hipSuccess)
        sim_hip_set_current(device);
    RETURN(e);
}

hipError_t
hipCtxDestroy(void *ctx)
{
    int device;
    RETURN(ctx_device(ctx, &device));
}

hipError_t
hipCtxGetCurrent(void **ctx)
{
    if (!ctx)
        ANSWER(hipErrorInvalidValue);
    *ctx = sim_hip_device(sim_hip_current());
    ANSWER(*ctx ? hipSuccess : hipErrorNoDevice);
}

hipError_t
hipCtxSetCurrent(void *ctx)
{
    int device = 0;
    hipError_t e = ctx ? ctx_device(ctx, &device) : hipSuccess;
    if (e == hipSuccess && ctx)
        sim_hip_set_current(device);
    ANSWER(e);
}

enum { CTX_STACK = 32 };
static _Thread_local int ctx_stack[CTX_STACK], ctx_depth;

hipError_t
hipCtxPushCurrent(void *ctx)
{
    int device;
    hipError_t e = ctx_device(ctx, &device);
    if (e != hipSuccess)
        ANSWER(e);
    if (ctx_depth == CTX_STACK)
        ANSWER(hipErrorOutOfMemory);
    ctx_stack[ctx_depth++] = sim_hip_current();
    sim_hip_set_current(device);
    ANSWER(hipSuccess);
}

hipError_t
hipCtxPopCurrent(void **ctx)
{
    if (ctx)
        *ctx = sim_hip_device(sim_hip_current());
    if (!ctx_depth)
        ANSWER(hipErrorInvalidContext);
    sim_hip_set_current(ctx_stack[--ctx_depth]);
    ANSWER(hipSuccess);
}

hipError_t
hipCtxGetDevice(int *device)
{
    return hipGetDevice(device);
}

hipError_t
hipCtxGetApiVersion(void *ctx, unsigned *version)
{
    int device = 0;
    hipError_t e = ctx ? ctx_device(ctx, &device) : hipSuccess;
    if (!version)
        RETURN(hipErrorInvalidValue);
    *version = 4;
    RETURN(e);
}

hipError_t
hipCtxGetFlags(unsigned *flags)
{
    return hipGetDeviceFlags(flags);
}

hipError_t
hipCtxGetCacheConfig(int *config)
{
    RETURN(give_zero(config));
}

hipError_t
hipCtxSetCacheConfig(int config)
{
    return hipDeviceSetCacheConfig(config);
}

hipError_t
hipCtxGetSharedMemConfig(int *config)
{
    RETURN(give_zero(config));
}

hipError_t
hipCtxSetSharedMemConfig(int config)
{
    return hipDeviceSetSharedMemConfig(config);
}

hipError_t
hipCtxEnablePeerAccess(void *ctx, unsigned flags)
{
    int device;
    hipError_t e = ctx_device(ctx, &device);
    RETURN(e == hipSuccess ? hipDeviceEnablePeerAccess(device, flags) : e);
}

hipError_t
hipCtxDisablePeerAccess(void *ctx)
{
    int device;
    hipError_t e = ctx_device(ctx, &device);
    RETURN(e == hipSuccess ? hipDeviceDisablePeerAccess(device) : e);
}

hipError_t
hipCtxSynchronize(void)
{
    return hipDeviceSynchronize();
}
