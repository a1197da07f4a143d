/* hip_fat.c - HIP: programs whose kernels are part of the executable (compiled with -x hip). Their start-up
 * code registers offload bundles, kernels by host stub, and device variables; a bundle is loaded on a device
 * at its first use there. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"

typedef struct FatWrapper {
    uint32_t magic, version;
    const void *data;
    void *unused;
} FatWrapper;

typedef struct FatSymbol {
    const void *host; /* kernel stub or variable */
    char *name;
    bool variable;
    struct FatSymbol *next;
} FatSymbol;

typedef struct FatManaged { /* a variable that host and devices share */
    SimManaged v;
    const void *host; /* the pointer to it */
    HipDevice *owner;
    char name[];
} FatManaged;

typedef struct FatBinary {
    const void *data;
    void *module[SIM_MAX_DEVICES]; /* made on demand */
    bool told[SIM_MAX_DEVICES];    /* that there is no code for the device */
    FatSymbol *symbols;
    const SimManaged *managed; /* each the head of a FatManaged */
    struct FatBinary *next;
} FatBinary;

enum { FAT_MAGIC = 0x48495046, CONFIG_DEPTH = 16 };

static struct {
    pthread_mutex_t lock;
    FatBinary *list;
} fat = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
sim_hip_fat_fork(bool before)
{
    if (before)
        pthread_mutex_lock(&fat.lock);
    else
        pthread_mutex_unlock(&fat.lock);
}

typedef struct CallConfig {
    SimDim3 grid, block;
    size_t lds;
    void *stream;
} CallConfig;
static _Thread_local CallConfig configs[CONFIG_DEPTH];
static _Thread_local uint32_t nconfigs;

/* ---- registration ---- */

void **
__hipRegisterFatBinary(const void *data)
{
    FatWrapper w;
    memcpy(&w, data, sizeof w);
    FatBinary *f = w.magic == FAT_MAGIC ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return NULL;
    f->data = w.data;
    pthread_mutex_lock(&fat.lock);
    f->next = fat.list;
    fat.list = f;
    pthread_mutex_unlock(&fat.lock);
    return (void **)f;
}

static void
add_symbol(void **handle, const void *host, const char *name, bool variable)
{
    FatBinary *f = (FatBinary *)handle;
    FatSymbol *s = f && name ? calloc(1, sizeof *s) : NULL;
    size_t n = name ? strlen(name) + 1 : 0;
    if (!s || !(s->name = malloc(n))) {
        free(s);
        return;
    }
    memcpy(s->name, name, n);
    s->host = host;
    s->variable = variable;
    pthread_mutex_lock(&fat.lock);
    s->next = f->symbols;
    f->symbols = s;
    pthread_mutex_unlock(&fat.lock);
}

void
__hipRegisterFunction(void **handle, const void *host, char *device, const char *name, unsigned limit,
                      void *tid, void *bid, void *block, void *grid, int *size)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    add_symbol(handle, host, name, false);
}

void
__hipRegisterVar(void **handle, void *var, char *host_name, char *name, int ext, size_t size, int constant,
                 int global)
{
    (void)host_name, (void)ext, (void)size, (void)constant, (void)global;
    add_symbol(handle, var, name, true);
}

/* The program's own code reaches the variable through *pointer from now on; devices do from when the bundle
 * is loaded there. Without a device the host has its initial value alone. */
void
__hipRegisterManagedVar(void **handle, void **pointer, void *init, const char *name, size_t size,
                        unsigned align)
{
    FatBinary *f = (FatBinary *)handle;
    HipDevice *d = sim_hip_device(sim_hip_current());
    (void)align; /* the memory begins with a page */
    if (!pointer || !init || !name)
        return;
    *pointer = init;
    size_t n = strlen(name) + 1;
    FatManaged *m = f && d && size ? calloc(1, sizeof *m + n) : NULL;
    if (!m)
        return;
    m->v = (SimManaged){.name = memcpy(m->name, name, n), .size = size};
    m->v.address = sim_managed_new(d->sim->mem, name, size, sim_dm_at(init));
    m->host = pointer;
    m->owner = d;
    if (!m->v.address) {
        fprintf(stderr, "tilelang simulator: no memory for the managed variable %s\n", name);
        free(m);
        return;
    }
    *pointer = (void *)m->v.address;
    pthread_mutex_lock(&fat.lock);
    m->v.next = f->managed;
    f->managed = &m->v;
    pthread_mutex_unlock(&fat.lock);
}

static void
free_managed(const SimManaged *v)
{
    for (FatManaged *m = (FatManaged *)v, *next; m; m = next) {
        next = (FatManaged *)m->v.next;
        sim_device_release(m->owner->sim, m->v.address, SIM_EXT_PINNED);
        free(m);
    }
}

/* The managed variable that a program names: by its pointer, or, as compiled code does, by its address. */
static const SimManaged *
find_managed(const void *symbol)
{
    const SimManaged *found = NULL;
    pthread_mutex_lock(&fat.lock);
    for (const FatBinary *f = fat.list; f && !found; f = f->next)
        for (const SimManaged *v = f->managed; v && !found; v = v->next)
            if (((const FatManaged *)v)->host == symbol || v->address == (uint64_t)symbol)
                found = v;
    pthread_mutex_unlock(&fat.lock);
    return found;
}

void
__hipUnregisterFatBinary(void **handle)
{
    FatBinary *f = (FatBinary *)handle;
    pthread_mutex_lock(&fat.lock);
    for (FatBinary **p = &fat.list; *p; p = &(*p)->next) {
        if (*p != f)
            continue;
        *p = f->next;
        for (FatSymbol *s = f->symbols, *next; s; s = next) {
            next = s->next;
            free(s->name);
            free(s);
        }
        for (int i = 0; i < SIM_MAX_DEVICES; i++)
            if (f->module[i])
                hipModuleUnload(f->module[i]);
        free_managed(f->managed);
        free(f);
        break;
    }
    pthread_mutex_unlock(&fat.lock);
}

/* ---- look-up on the current device ---- */

/* The module and device name of a registered host address. */
static hipError_t
find(const void *host, bool variable, void **module, const char **name)
{
    int dev = sim_hip_current();
    hipError_t e = variable ? hipErrorInvalidSymbol : hipErrorInvalidDeviceFunction;
    if (!sim_hip_device(dev))
        return hipErrorNoDevice;
    pthread_mutex_lock(&fat.lock);
    for (FatBinary *f = fat.list; f; f = f->next) {
        for (FatSymbol *s = f->symbols; s; s = s->next) {
            if (s->host != host || s->variable != variable)
                continue;
            e = f->module[dev] ? hipSuccess : sim_hip_load(&f->module[dev], f->data, f->managed);
            if (e == hipErrorNoBinaryForGpu && !f->told[dev]) { /* many programs do not ask for the error */
                f->told[dev] = true;
                fprintf(stderr, "tilelang simulator: the program has no code for %s (%s)\n",
                        sim_hip_device(dev)->sim->chip->gfx, s->name);
            }
            *module = f->module[dev];
            *name = s->name;
            goto out;
        }
    }
out:
    pthread_mutex_unlock(&fat.lock);
    return e;
}

hipError_t
sim_hip_function(const void *host, void **function)
{
    void *module;
    const char *name;
    *function = NULL;
    if (sim_hip_handle_valid(host, HANDLE_FUNCTION)) {
        *function = (void *)host;
        return hipSuccess;
    }
    hipError_t e = find(host, false, &module, &name);
    return e == hipSuccess ? hipModuleGetFunction(function, module, name) : e;
}

hipError_t
hipGetFuncBySymbol(void **function, const void *symbol)
{
    if (!function)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_hip_function(symbol, function));
}

/* ---- launches ---- */

hipError_t
__hipPushCallConfiguration(SimDim3 grid, SimDim3 block, size_t lds, void *stream)
{
    if (nconfigs == CONFIG_DEPTH)
        RETURN(hipErrorInvalidConfiguration);
    configs[nconfigs++] = (CallConfig){grid, block, lds, stream};
    return hipSuccess;
}

hipError_t
__hipPopCallConfiguration(SimDim3 *grid, SimDim3 *block, size_t *lds, void **stream)
{
    if (!nconfigs)
        RETURN(hipErrorMissingConfiguration);
    const CallConfig *c = &configs[--nconfigs];
    *grid = c->grid;
    *block = c->block;
    *lds = c->lds;
    *stream = c->stream;
    return hipSuccess;
}

static hipError_t
launch(const void *function, SimDim3 grid, SimDim3 block, void **args, size_t lds, void *stream,
       bool cooperative)
{
    if (lds > UINT32_MAX)
        return hipErrorInvalidConfiguration;
    KernelParams p = {.function = (void *)function, .grid = grid, .block = block, .params = args};
    p.lds = (unsigned)lds;
    return sim_hip_launch(&p, NULL, cooperative, stream);
}

hipError_t
hipLaunchKernel(const void *function, SimDim3 grid, SimDim3 block, void **args, size_t lds, void *stream)
{
    ANSWER(launch(function, grid, block, args, lds, stream, false));
}

hipError_t
hipLaunchCooperativeKernel(const void *function, SimDim3 grid, SimDim3 block, void **args, unsigned lds,
                           void *stream)
{
    ANSWER(launch(function, grid, block, args, lds, stream, true));
}

/* ---- attributes and variables ---- */

typedef struct FuncAttributes { /* hipFuncAttributes */
    int binary_version, cache_mode;
    size_t const_size, local_size;
    int max_dynamic_shared, max_threads, regs, carveout, ptx_version;
    size_t shared_size;
} FuncAttributes;

hipError_t
hipFuncGetAttributes(void *attributes, const void *function)
{
    void *f;
    FuncAttributes a = {0};
    int shared = 0, local = 0;
    if (!attributes)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_function(function, &f);
    if (e != hipSuccess)
        RETURN(e);
    hipFuncGetAttribute(&a.max_threads, 0, f);
    hipFuncGetAttribute(&shared, 1, f);
    hipFuncGetAttribute(&local, 3, f);
    hipFuncGetAttribute(&a.regs, 4, f);
    hipFuncGetAttribute(&a.ptx_version, 5, f);
    hipFuncGetAttribute(&a.max_dynamic_shared, 8, f);
    a.binary_version = a.ptx_version;
    a.shared_size = (size_t)shared;
    a.local_size = (size_t)local;
    memcpy(attributes, &a, sizeof a);
    RETURN(hipSuccess);
}

hipError_t
hipOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *function, int block, size_t lds)
{
    void *f;
    hipError_t e = sim_hip_function(function, &f);
    RETURN(e == hipSuccess ? hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(n, f, block, lds) : e);
}

hipError_t
hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *function, int block, size_t lds,
                                                      unsigned flags)
{
    if (flags > 1)
        RETURN(hipErrorInvalidValue);
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(n, function, block, lds);
}

hipError_t
hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *function, size_t lds, int limit)
{
    void *f;
    hipError_t e = sim_hip_function(function, &f);
    RETURN(e == hipSuccess ? hipModuleOccupancyMaxPotentialBlockSize(grid, block, f, lds, limit) : e);
}

static hipError_t
variable(const void *symbol, void **p, size_t *n)
{
    void *module;
    const char *name;
    const SimManaged *v = find_managed(symbol);
    if (v) {
        if (p)
            *p = (void *)v->address;
        if (n)
            *n = v->size;
        return hipSuccess;
    }
    hipError_t e = find(symbol, true, &module, &name);
    return e == hipSuccess ? hipModuleGetGlobal(p, n, module, name) : e;
}

hipError_t
hipGetSymbolAddress(void **p, const void *symbol)
{
    if (!p)
        RETURN(hipErrorInvalidValue);
    RETURN(variable(symbol, p, NULL));
}

hipError_t
hipGetSymbolSize(size_t *n, const void *symbol)
{
    if (!n)
        RETURN(hipErrorInvalidValue);
    RETURN(variable(symbol, NULL, n));
}

/* Where [offset, offset + n) of a device variable is. */
static hipError_t
in_symbol(const void *symbol, size_t n, size_t offset, char **at)
{
    void *p;
    size_t size;
    hipError_t e = variable(symbol, &p, &size);
    if (e != hipSuccess)
        return e;
    if (offset > size || size - offset < n)
        return hipErrorInvalidValue;
    *at = (char *)p + offset;
    return hipSuccess;
}

hipError_t
hipMemcpyToSymbol(const void *symbol, const void *src, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipMemcpy(p, src, n, kind) : e);
}

hipError_t
hipMemcpyFromSymbol(void *dst, const void *symbol, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipMemcpy(dst, p, n, kind) : e);
}

hipError_t
hipMemcpyToSymbolAsync(const void *symbol, const void *src, size_t n, size_t offset, int kind, void *stream)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipMemcpyAsync(p, src, n, kind, stream) : e);
}

hipError_t
hipMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t n, size_t offset, int kind, void *stream)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipMemcpyAsync(dst, p, n, kind, stream) : e);
}
