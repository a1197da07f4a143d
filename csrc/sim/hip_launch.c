/* hip_launch.c - HIP: kernel launches.
 *
 * Faults become error codes by fault_code(). While host arrays are registered (tlsim_register: our own
 * runtime) a launch is synchronous: it answers the code itself and the device stays usable. Otherwise it is
 * asynchronous as HIP's: the launch succeeds, the code is kept, and every later call on the device answers it
 * until hipDeviceReset. */
#include <stdlib.h>

#include "sim/hip.h"

typedef struct LaunchAttribute { /* hipLaunchAttribute */
    int id;
    int pad;
    union {
        char bytes[64];
        int cooperative;
    } value;
} LaunchAttribute;

typedef struct LaunchConfig { /* HIP_LAUNCH_CONFIG */
    unsigned grid[3], block[3];
    unsigned lds;
    void *stream;
    const LaunchAttribute *attrs;
    unsigned nattrs;
} LaunchConfig;

enum { ATTR_COOPERATIVE = 2 };

static hipError_t
fault_code(const SimDevice *d)
{
    static const hipError_t codes[] = {
        [SIM_CHECK_BOUNDS] = hipErrorIllegalAddress, [SIM_CHECK_INIT] = hipErrorLaunchFailure,
        [SIM_CHECK_RACE] = hipErrorLaunchFailure,    [SIM_CHECK_WAIT] = hipErrorLaunchFailure,
        [SIM_CHECK_HAZARD] = hipErrorLaunchFailure,  [SIM_CHECK_BARRIER] = hipErrorLaunchTimeOut,
        [SIM_FAULT_ILLEGAL] = hipErrorLaunchFailure, [SIM_FAULT_MEMORY] = hipErrorIllegalAddress,
        [SIM_FAULT_TRAP] = hipErrorAssert,           [SIM_FAULT_HANG] = hipErrorLaunchTimeOut,
        [SIM_FAULT_OOM] = hipErrorOutOfMemory,
    };
    uint32_t c = d->nreports ? d->reports[0].check : SIM_FAULT_ILLEGAL;
    return c < TL_COUNT(codes) ? codes[c] : hipErrorLaunchFailure;
}

static hipError_t
status_code(const SimDevice *d, SimStatus st)
{
    switch (st) {
    case SIM_OK:
        return hipSuccess;
    case SIM_FAULTED:
        return fault_code(d);
    case SIM_BAD_CONFIG:
        return hipErrorInvalidConfiguration;
    case SIM_NO_RESIDENCY:
        return hipErrorCooperativeLaunchTooLarge;
    case SIM_NO_MEMORY:
        return hipErrorOutOfMemory;
    case SIM_UNSUPPORTED:
        return hipErrorNotSupported;
    case SIM_CANCELLED:
        return hipErrorLaunchTimeOut;
    }
    return hipErrorUnknown;
}

/* Gathers the explicit arguments into out[0..size). */
static bool
pack_params(const SimKernel *k, void **params, uint8_t *out, uint64_t size)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->nargs; i++) {
        const SimArg *a = &k->args[i];
        if (sim_arg_hidden(a))
            continue;
        if (!params || a->offset > size || size - a->offset < a->size || !params[n])
            return false;
        memcpy(out + a->offset, params[n++], a->size);
    }
    return true;
}

/* The packed buffer of `extra`; false: malformed. */
static bool
read_extra(void **extra, const void **buf, size_t *size)
{
    *buf = NULL;
    *size = 0;
    for (uint32_t i = 0; i < 16; i += 2) {
        switch ((uintptr_t)extra[i]) {
        case 1:
            *buf = extra[i + 1];
            break;
        case 2:
            *size = *(const size_t *)extra[i + 1];
            break;
        case 3:
            return *buf || !*size;
        default:
            return false;
        }
    }
    return false;
}

/* Statistics of the last launch, for tlsim_last_stats. */
static SimStats *
begin_stats(HipDevice *d, SimKernel *k)
{
    free(d->stats.pc_counts);
    d->stats = (SimStats){0};
    d->stats_kernel = k;
    d->stats_image = k->image;
    if (d->stats_on)
        d->stats.pc_counts = calloc(sim_image_count_words(k->image), sizeof(uint64_t));
    return &d->stats;
}

static hipError_t
launch(HipDevice *d, HipFunction *f, SimLaunch *l)
{
    pthread_mutex_lock(&d->lock);
    l->kernel = f->kernel;
    l->stats = begin_stats(d, f->kernel);
    SimStatus st = sim_device_launch(d->sim, l);
    hipError_t e = status_code(d->sim, st);
    if (st == SIM_FAULTED) {
        bool synchronous = sim_mem_arrays(d->sim->mem) != 0;
        sim_hip_tell(d->sim, synchronous);
        if (!synchronous) {
            d->sticky = e;
            e = hipSuccess;
        }
    } else {
        sim_hip_tell(NULL, true);
    }
    pthread_mutex_unlock(&d->lock);
    return e;
}

hipError_t
sim_hip_run(HipFunction *f, const uint32_t grid[3], const uint32_t block[3], uint32_t lds, void **params,
            void **extra, bool cooperative)
{
    SimLaunch l = {.dynamic_lds = lds, .cooperative = cooperative};
    const void *buf;
    size_t size;
    if (!sim_hip_handle_valid(f, HANDLE_FUNCTION))
        return hipErrorInvalidDeviceFunction;
    HipDevice *d = sim_hip_device(f->h.device);
    const SimKernel *k = f->kernel;
    if (d->sticky != hipSuccess)
        return d->sticky;
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.block, block, sizeof l.block);
    if (extra) {
        if (params || !read_extra(extra, &buf, &size))
            return hipErrorInvalidValue;
        l.kernarg = buf;
        l.kernarg_bytes = size;
        return launch(d, f, &l);
    }
    uint64_t need = TL_MAX(k->kernarg_size, k->meta_kernarg_size);
    uint8_t stack[1024], *packed = need <= sizeof stack ? stack : malloc(need);
    hipError_t e = packed ? hipSuccess : hipErrorOutOfMemory;
    if (packed)
        memset(packed, 0, need);
    if (packed && (!k->has_metadata ? need != 0 : !pack_params(k, params, packed, need)))
        e = hipErrorInvalidValue;
    l.kernarg = packed;
    l.kernarg_bytes = need;
    if (e == hipSuccess)
        e = launch(d, f, &l);
    if (packed != stack)
        free(packed);
    return e;
}

hipError_t
sim_hip_pack(HipFunction *f, void **params, void **extra, uint8_t **buf, size_t *size)
{
    const void *packed = NULL;
    const SimKernel *k = f->kernel;
    *size = TL_MAX(k->kernarg_size, k->meta_kernarg_size);
    if (extra && (params || !read_extra(extra, &packed, size)))
        return hipErrorInvalidValue;
    if (!(*buf = calloc(1, *size ? *size : 1)))
        return hipErrorOutOfMemory;
    if (packed)
        memcpy(*buf, packed, *size);
    else if (!extra && (!k->has_metadata ? *size != 0 : !pack_params(k, params, *buf, *size))) {
        free(*buf);
        *buf = NULL;
        return hipErrorInvalidValue;
    }
    return hipSuccess;
}

hipError_t
hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned lds, void *stream, void **params, void **extra)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    RETURN(sim_hip_run(function, (uint32_t[3]){gx, gy, gz}, (uint32_t[3]){bx, by, bz}, lds, params, extra,
                       false));
}

hipError_t
hipModuleLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds, void *stream, void **params)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    RETURN(
        sim_hip_run(function, (uint32_t[3]){gx, gy, gz}, (uint32_t[3]){bx, by, bz}, lds, params, NULL, true));
}

hipError_t
hipDrvLaunchKernelEx(const void *config, void *function, void **params, void **extra)
{
    LaunchConfig c;
    bool cooperative = false;
    if (!config)
        RETURN(hipErrorInvalidValue);
    memcpy(&c, config, sizeof c);
    if (!sim_hip_stream_ok(c.stream))
        RETURN(hipErrorContextIsDestroyed);
    for (unsigned i = 0; i < c.nattrs && c.attrs; i++)
        if (c.attrs[i].id == ATTR_COOPERATIVE)
            cooperative = c.attrs[i].value.cooperative != 0;
    RETURN(sim_hip_run(function, c.grid, c.block, c.lds, params, extra, cooperative));
}
