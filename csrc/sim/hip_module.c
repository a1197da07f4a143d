/* hip_module.c - HIP: code objects, functions, symbols, attributes, occupancy. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sim/elf.h"
#include "sim/hip.h"

static bool
features_suit(const SimImage *im, const HipDevice *d)
{
    bool sramecc = strstr(d->gcn_arch, "sramecc+") != NULL, xnack = strstr(d->gcn_arch, "xnack+") != NULL;
    return (im->sramecc < 2 || (im->sramecc == 3) == sramecc) && (im->xnack < 2 || (im->xnack == 3) == xnack);
}

/* ---- modules ---- */

static hipError_t
load_bytes(HipDevice *d, const uint8_t *p, uint64_t size, const SimManaged *known, void **module)
{
    char why[512];
    Ehdr eh;
    IsaArch mach = d->sim->chip->arch;
    if (size < sizeof eh)
        return hipErrorInvalidImage;
    HipModule *m = calloc(1, sizeof *m);
    if (!m)
        return hipErrorOutOfMemory;
    m->h = (Handle){HANDLE_MODULE, sim_hip_current()};
    tl_arena_init(&m->arena, NULL);
    m->image = sim_device_load_shared(d->sim, p, size, known, why, sizeof why);
    hipError_t e = hipSuccess;
    if (!m->image)
        e = strstr(why, "no memory for") ? hipErrorOutOfMemory
            : strstr(why, "the device is") || strstr(why, "is not simulated") ||
                    strstr(why, "unknown processor")
                ? hipErrorNoBinaryForGpu
                : hipErrorInvalidImage;
    else if (!features_suit(m->image, d) || m->image->arch != mach)
        e = hipErrorNoBinaryForGpu;
    else if (!sim_hip_handle_add(&m->h))
        e = hipErrorOutOfMemory;
    if (e == hipSuccess) {
        *module = m;
        return e;
    }
    if (!m->image && sim_env_word(SIM_ENV_VERBOSE) == 1)
        fprintf(stderr, "tilelang simulator: cannot load a code object: %s\n", why);
    if (m->image)
        sim_device_unload(d->sim, m->image);
    free(m);
    return e;
}

hipError_t
sim_hip_load(void **module, const void *image, const SimManaged *known)
{
    HipDevice *d;
    hipError_t e = sim_hip_check(&d);
    uint8_t *data;
    uint64_t size;
    if (!module || !image)
        return hipErrorInvalidValue;
    *module = NULL;
    if (e != hipSuccess)
        return e;
    e = sim_hip_image(image, d, &data, &size);
    if (e != hipSuccess)
        return e;
    e = load_bytes(d, data, size, known, module);
    free(data);
    return e;
}

hipError_t
hipModuleLoadData(void **module, const void *image)
{
    RETURN(sim_hip_load(module, image, NULL));
}

hipError_t
hipModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
    (void)n;
    (void)options;
    (void)values;
    RETURN(sim_hip_load(module, image, NULL));
}

/* The image is what a __CudaFatBinaryWrapper of a program points to, or such a wrapper. */
hipError_t
hipModuleLoadFatBinary(void **module, const void *image)
{
    struct {
        uint32_t magic, version;
        const void *data;
    } w;
    if (!image)
        RETURN(hipErrorInvalidValue);
    memcpy(&w, image, sizeof w.magic);
    if (w.magic == 0x48495046) {
        memcpy(&w, image, sizeof w);
        image = w.data;
    }
    RETURN(sim_hip_load(module, image, NULL));
}

static hipError_t
load_file(void **module, FILE *f)
{
    HipDevice *d;
    uint8_t *data;
    hipError_t e = sim_hip_check(&d);
    if (e != hipSuccess)
        return e;
    struct stat st;
    if (fstat(fileno(f), &st) || S_ISDIR(st.st_mode) || fseek(f, 0, SEEK_END))
        return hipErrorFileNotFound;
    long n = ftell(f);
    rewind(f);
    if (n <= 0 || !(data = malloc((size_t)n + 64)))
        return n <= 0 ? hipErrorInvalidImage : hipErrorOutOfMemory;
    memset(data + n, 0, 64);
    if (fread(data, 1, (size_t)n, f) != (size_t)n)
        e = hipErrorFileNotFound;
    else if (n > 32 && (!memcmp(data, "__CLANG_OFFLOAD_BUNDLE__", 24) || !memcmp(data, "CCOB", 4)))
        e = sim_hip_load(module, data, NULL);
    else
        e = load_bytes(d, data, (uint64_t)n, NULL, module);
    free(data);
    return e;
}

hipError_t
hipModuleLoad(void **module, const char *path)
{
    if (!module || !path)
        RETURN(hipErrorInvalidValue);
    *module = NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        RETURN(hipErrorFileNotFound);
    hipError_t e = load_file(module, f);
    fclose(f);
    RETURN(e);
}

hipError_t
hipModuleUnload(void *module)
{
    HipModule *m = module;
    sim_hip_modules_hold(true); /* when no launch is under way */
    if (!sim_hip_handle_remove(module, HANDLE_MODULE)) {
        sim_hip_modules_drop();
        RETURN(hipErrorInvalidHandle);
    }
    HipDevice *d = sim_hip_device(m->h.device);
    pthread_mutex_lock(&d->lock);
    if (d->stats_image == m->image)
        d->stats_image = NULL;
    pthread_mutex_unlock(&d->lock);
    for (HipFunction *f = atomic_load(&m->functions), *next; f; f = next) {
        next = f->next;
        sim_hip_handle_remove(f, HANDLE_FUNCTION);
        free(f);
    }
    sim_device_unload(d->sim, m->image);
    tl_arena_free(&m->arena);
    free(m);
    sim_hip_modules_drop();
    RETURN(hipSuccess);
}

static hipError_t
get_function(void **function, HipModule *m, const char *name)
{
    SimKernel *k = sim_image_kernel(m->image, name);
    if (!k)
        return hipErrorNotFound;
    for (HipFunction *f = atomic_load(&m->functions); f; f = f->next) {
        if (f->kernel == k) {
            *function = f;
            return hipSuccess;
        }
    }
    HipFunction *f = calloc(1, sizeof *f);
    if (!f)
        return hipErrorOutOfMemory;
    f->h = (Handle){HANDLE_FUNCTION, m->h.device};
    f->kernel = k;
    if (!sim_hip_handle_add(&f->h)) {
        free(f);
        return hipErrorOutOfMemory;
    }
    f->next = atomic_load(&m->functions);
    while (!atomic_compare_exchange_weak(&m->functions, &f->next, f))
        ;
    *function = f;
    return hipSuccess;
}

hipError_t
hipModuleGetFunction(void **function, void *module, const char *name)
{
    if (!function || !name)
        RETURN(hipErrorInvalidValue);
    *function = NULL;
    if (!sim_hip_handle_valid(module, HANDLE_MODULE))
        RETURN(hipErrorInvalidHandle);
    RETURN(get_function(function, module, name));
}

hipError_t
hipModuleGetFunctionCount(unsigned *count, void *module)
{
    if (!count)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(module, HANDLE_MODULE))
        RETURN(hipErrorInvalidHandle);
    *count = ((HipModule *)module)->image->kernels.len;
    RETURN(hipSuccess);
}

hipError_t
hipModuleGetGlobal(void **p, size_t *n, void *module, const char *name)
{
    if ((!p && !n) || !name)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(module, HANDLE_MODULE))
        RETURN(hipErrorInvalidHandle);
    const SimImage *im = ((HipModule *)module)->image;
    const SimManaged *v = sim_managed_find(im, name);
    const SimSymbol *s = sim_image_symbol(im, name);
    if (!s || s->type != STT_OBJECT)
        RETURN(hipErrorNotFound);
    if (p)
        *p = (void *)(v ? v->address : s->address);
    if (n)
        *n = v ? v->size : s->size;
    RETURN(hipSuccess);
}

/* ---- attributes ---- */

hipError_t
hipFuncGetAttribute(int *value, int attribute, void *function)
{
    if (!value)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(function, HANDLE_FUNCTION))
        RETURN(hipErrorInvalidDeviceFunction);
    const HipFunction *f = function;
    const SimKernel *k = f->kernel;
    const SimChip *c = sim_hip_device(f->h.device)->sim->chip;
    uint32_t room = c->lds_per_group - TL_MIN(k->group_size, c->lds_per_group);
    switch (attribute) {
    case 0: /* MAX_THREADS_PER_BLOCK */
        *value = (int)(k->max_flat_workgroup_size ? k->max_flat_workgroup_size : 1024);
        break;
    case 1: /* SHARED_SIZE_BYTES */
        *value = (int)k->group_size;
        break;
    case 3: /* LOCAL_SIZE_BYTES */
        *value = (int)k->private_size;
        break;
    case 4: /* NUM_REGS */
        *value = (int)(k->vgpr_count ? k->vgpr_count : sim_kernel_vgprs(k));
        break;
    case 5: /* PTX_VERSION */
    case 6: /* BINARY_VERSION */
        *value = (int)(c->major * 10 + c->minor);
        break;
    case 8: /* MAX_DYNAMIC_SHARED_SIZE_BYTES */
        *value = (int)room;
        break;
    case 2: /* CONST_SIZE_BYTES */
    case 7: /* CACHE_MODE_CA */
    case 9: /* PREFERRED_SHARED_MEMORY_CARVEOUT */
        *value = 0;
        break;
    default:
        RETURN(hipErrorInvalidValue);
    }
    RETURN(hipSuccess);
}

hipError_t
hipFuncSetAttribute(const void *function, int attribute, int value)
{
    void *h;
    hipError_t e = sim_hip_function(function, &h); /* a function, or (the runtime API) a kernel's host stub */
    if (e != hipSuccess)
        RETURN(e);
    const HipFunction *f = h;
    const SimChip *c = sim_hip_device(f->h.device)->sim->chip;
    if (attribute == 9)
        RETURN(hipSuccess);
    if (attribute != 8 || value < 0 || (uint64_t)value + f->kernel->group_size > c->lds_per_group)
        RETURN(hipErrorInvalidValue);
    RETURN(hipSuccess);
}

/* The name of a kernel; of a host stub on the current device. */
const char *
hipKernelNameRef(const void *function)
{
    return sim_hip_handle_valid(function, HANDLE_FUNCTION) ? ((const HipFunction *)function)->kernel->name
                                                           : NULL;
}

const char *
hipKernelNameRefByPtr(const void *host, void *stream)
{
    void *f;
    (void)stream;
    return sim_hip_function(host, &f) == hipSuccess ? hipKernelNameRef(f) : NULL;
}

hipError_t
hipFuncSetCacheConfig(const void *function, int config)
{
    (void)config;
    RETURN(function ? hipSuccess : hipErrorInvalidDeviceFunction);
}

hipError_t
hipFuncSetSharedMemConfig(const void *function, int config)
{
    return hipFuncSetCacheConfig(function, config);
}

static hipError_t
occupancy(int *n, void *function, int block, size_t lds)
{
    if (!n || block <= 0 || block > 1024)
        return hipErrorInvalidValue;
    if (!sim_hip_handle_valid(function, HANDLE_FUNCTION))
        return hipErrorInvalidDeviceFunction;
    const HipFunction *f = function;
    if (lds > UINT32_MAX)
        *n = 0;
    else
        *n = (int)sim_occupancy(sim_hip_device(f->h.device)->sim, f->kernel, (uint32_t)block, (uint32_t)lds);
    return hipSuccess;
}

hipError_t
hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *function, int block, size_t lds)
{
    RETURN(occupancy(n, function, block, lds));
}

hipError_t
hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, void *function, int block, size_t lds,
                                                            unsigned flags)
{
    if (flags > 1)
        RETURN(hipErrorInvalidValue);
    RETURN(occupancy(n, function, block, lds));
}

hipError_t
hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, void *function, size_t lds, int limit,
                                                 unsigned flags)
{
    if (flags > 1)
        RETURN(hipErrorInvalidValue);
    return hipModuleOccupancyMaxPotentialBlockSize(grid, block, function, lds, limit);
}

/* The most dynamic LDS with which `groups` workgroups fit. */
hipError_t
hipOccupancyAvailableDynamicSMemPerBlock(size_t *lds, const void *function, int groups, int block)
{
    void *f;
    int n = 0;
    if (!lds || groups <= 0)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_function(function, &f);
    if (e == hipSuccess)
        e = occupancy(&n, f, block, 0);
    if (e == hipSuccess && n < groups)
        e = hipErrorInvalidValue;
    if (e != hipSuccess)
        RETURN(e);
    const HipFunction *fn = f;
    const SimChip *c = sim_hip_device(fn->h.device)->sim->chip;
    uint32_t lo = 0, hi = c->lds_per_group - TL_MIN(fn->kernel->group_size, c->lds_per_group);
    while (lo < hi) { /* fits with lo, not known with hi */
        uint32_t mid = lo + (hi - lo + 1) / 2;
        if (occupancy(&n, f, block, mid) == hipSuccess && n >= groups)
            lo = mid;
        else
            hi = mid - 1;
    }
    *lds = lo;
    RETURN(hipSuccess);
}

hipError_t
hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t lds, int limit)
{
    int best = 0, waves = 0;
    if (!grid || !block || limit < 0)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(function, HANDLE_FUNCTION))
        RETURN(hipErrorInvalidDeviceFunction);
    const HipFunction *f = function;
    const SimDevice *sim = sim_hip_device(f->h.device)->sim;
    int max = (int)(f->kernel->max_flat_workgroup_size ? f->kernel->max_flat_workgroup_size : 1024);
    if (limit && limit < max)
        max = limit;
    for (int b = max; b >= 64; b -= 64) {
        int n = 0;
        if (occupancy(&n, function, b, lds) == hipSuccess && n * b > waves) {
            waves = n * b;
            best = b;
            *grid = n * (int)sim_multiprocessors(sim);
        }
    }
    *block = best;
    RETURN(best ? hipSuccess : hipErrorInvalidValue);
}
