/* hip_launch.c - HIP: kernel launches.
 *
 * Faults become error codes by fault_code(). While host arrays are registered (tlsim_register: our own
 * runtime) a launch is synchronous: it answers the code itself and the device stays usable. Otherwise it is
 * asynchronous as HIP's: the launch succeeds, the code is kept, and every later call on the device answers it
 * until hipDeviceReset. */
#include <stdlib.h>

#include "sim/hip_graph.h"

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
            if (!extra[i + 1])
                return false;
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

static hipError_t
run(HipFunction *f, const KernelParams *p, const uint32_t *partial, bool cooperative)
{
    SimLaunch l = {.dynamic_lds = p->lds, .cooperative = cooperative};
    void **params = p->params, **extra = p->extra;
    const void *buf;
    size_t size;
    if (!sim_hip_handle_valid(f, HANDLE_FUNCTION))
        return hipErrorInvalidDeviceFunction;
    HipDevice *d = sim_hip_device(f->h.device);
    const SimKernel *k = f->kernel;
    if (d->sticky != hipSuccess)
        return d->sticky;
    memcpy(l.grid, (uint32_t[3]){p->grid.x, p->grid.y, p->grid.z}, sizeof l.grid);
    memcpy(l.block, (uint32_t[3]){p->block.x, p->block.y, p->block.z}, sizeof l.block);
    if (partial)
        memcpy(l.partial, partial, sizeof l.partial);
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
sim_hip_run(HipFunction *f, const KernelParams *p, const uint32_t *partial, bool cooperative)
{
    sim_hip_modules_hold(false);
    hipError_t e = run(f, p, partial, cooperative);
    sim_hip_modules_drop();
    return e;
}

hipError_t
sim_hip_pack(HipFunction *f, void **params, void **extra, uint8_t **buf, size_t *size)
{
    const void *packed = NULL;
    const SimKernel *k = f->kernel;
    size_t given = 0;
    *size = TL_MAX(k->kernarg_size, k->meta_kernarg_size);
    if (extra && (params || !read_extra(extra, &packed, &given)))
        return hipErrorInvalidValue;
    if (!(*buf = calloc(1, *size ? *size : 1)))
        return hipErrorOutOfMemory;
    if (packed)
        memcpy(*buf, packed, TL_MIN(given, *size));
    else if (!extra && (!k->has_metadata ? *size != 0 : !pack_params(k, params, *buf, *size))) {
        free(*buf);
        *buf = NULL;
        return hipErrorInvalidValue;
    }
    return hipSuccess;
}

hipError_t
sim_hip_launch(const KernelParams *p, const uint32_t *partial, bool cooperative, void *stream)
{
    static atomic_bool said;
    HipStream *capturing;
    void *f;
    Node n;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess)
        e = sim_hip_function(p->function, &f);
    if (e != hipSuccess)
        return e;
    if (!capturing)
        return sim_hip_run(f, p, partial, cooperative);
    if (partial && (partial[0] || partial[1] || partial[2]))
        return sim_hip_refuse("a captured launch whose grid is no multiple of its block", &said);
    e = sim_graph_kernel_node(p, &n);
    n.cooperative = cooperative;
    return e == hipSuccess ? sim_hip_capture(capturing, &n) : e;
}

hipError_t
hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned lds, void *stream, void **params, void **extra)
{
    ANSWER(sim_hip_launch(&(KernelParams){{bx, by, bz}, extra, function, {gx, gy, gz}, params, lds}, NULL,
                          false, stream));
}

hipError_t
hipModuleLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds, void *stream, void **params)
{
    ANSWER(sim_hip_launch(&(KernelParams){{bx, by, bz}, NULL, function, {gx, gy, gz}, params, lds}, NULL,
                          true, stream));
}

static hipError_t
launch_config(const void *config, const void *function, void **params, void **extra)
{
    LaunchConfig c;
    bool cooperative = false;
    if (!config)
        return hipErrorInvalidValue;
    memcpy(&c, config, sizeof c);
    for (unsigned i = 0; i < c.nattrs && c.attrs; i++)
        if (c.attrs[i].id == ATTR_COOPERATIVE)
            cooperative = c.attrs[i].value.cooperative != 0;
    KernelParams p = {.function = (void *)function, .params = params, .extra = extra, .lds = c.lds};
    memcpy(&p.grid, c.grid, sizeof p.grid);
    memcpy(&p.block, c.block, sizeof p.block);
    return sim_hip_launch(&p, NULL, cooperative, c.stream);
}

hipError_t
hipDrvLaunchKernelEx(const void *config, void *function, void **params, void **extra)
{
    ANSWER(launch_config(config, function, params, extra));
}

/* hipLaunchConfig_t: the dynamic LDS is a size_t there. */
hipError_t
hipLaunchKernelExC(const void *config, const void *function, void **args)
{
    struct {
        SimDim3 grid, block;
        size_t lds;
        void *stream;
        const LaunchAttribute *attrs;
        unsigned nattrs;
    } c;
    if (!config)
        ANSWER(hipErrorInvalidValue);
    memcpy(&c, config, sizeof c);
    if (c.lds > UINT32_MAX)
        ANSWER(hipErrorInvalidConfiguration);
    LaunchConfig d = {.lds = (unsigned)c.lds, .stream = c.stream, .attrs = c.attrs, .nattrs = c.nattrs};
    memcpy(d.grid, &c.grid, sizeof d.grid);
    memcpy(d.block, &c.block, sizeof d.block);
    ANSWER(launch_config(&d, function, args, NULL));
}

/* The grid is given in threads; the last workgroups may be partial. The events are recorded around the
 * kernel. */
hipError_t
hipExtModuleLaunchKernel(void *function, unsigned tx, unsigned ty, unsigned tz, unsigned bx, unsigned by,
                         unsigned bz, size_t lds, void *stream, void **params, void **extra, void *start,
                         void *stop, unsigned flags)
{
    (void)flags;
    if (!bx || !by || !bz || lds > UINT32_MAX)
        ANSWER(hipErrorInvalidValue);
    uint32_t rest[3] = {tx % bx, ty % by, tz % bz};
    KernelParams p = {.function = function, .block = {bx, by, bz}, .params = params, .extra = extra};
    p.lds = (unsigned)lds;
    p.grid = (SimDim3){tx / bx + (rest[0] != 0), ty / by + (rest[1] != 0), tz / bz + (rest[2] != 0)};
    hipError_t e = start ? hipEventRecord(start, stream) : hipSuccess;
    if (e == hipSuccess)
        e = sim_hip_launch(&p, rest, false, stream);
    if (e == hipSuccess && stop && sim_hip_check(NULL) == hipSuccess)
        e = hipEventRecord(stop, stream);
    ANSWER(e);
}

hipError_t
hipHccModuleLaunchKernel(void *function, unsigned tx, unsigned ty, unsigned tz, unsigned bx, unsigned by,
                         unsigned bz, size_t lds, void *stream, void **params, void **extra, void *start,
                         void *stop)
{
    return hipExtModuleLaunchKernel(function, tx, ty, tz, bx, by, bz, lds, stream, params, extra, start, stop,
                                    0);
}

hipError_t
hipExtLaunchKernel(const void *function, SimDim3 grid, SimDim3 block, void **args, size_t lds, void *stream,
                   void *start, void *stop, int flags)
{
    (void)flags;
    hipError_t e = start ? hipEventRecord(start, stream) : hipSuccess;
    if (e == hipSuccess)
        e = hipLaunchKernel(function, grid, block, args, lds, stream);
    if (e == hipSuccess && stop && sim_hip_check(NULL) == hipSuccess)
        e = hipEventRecord(stop, stream);
    ANSWER(e);
}
