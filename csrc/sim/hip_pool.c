/* hip_pool.c - HIP: memory pools. A pool has attributes; its memory is allocated and freed one by one. */
#include <stdlib.h>

#include "sim/hip.h"

enum { POOL_ATTRS = 9, POOL_FIRST_64 = 4 }; /* attributes 1 to 3 are int, the others uint64_t */

typedef struct Pool {
    Handle h;
    uint64_t attr[POOL_ATTRS];
} Pool;

static hipError_t
pool_new(void **pool, int device)
{
    Pool *p = calloc(1, sizeof *p);
    if (!p)
        return hipErrorOutOfMemory;
    p->h = (Handle){HANDLE_POOL, device};
    if (!sim_hip_handle_add(&p->h)) {
        free(p);
        return hipErrorOutOfMemory;
    }
    *pool = p;
    return hipSuccess;
}

hipError_t
hipMemPoolCreate(void **pool, const void *properties)
{
    if (!pool || !properties)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_check(NULL);
    RETURN(e == hipSuccess ? pool_new(pool, sim_hip_current()) : e);
}

hipError_t
hipMemPoolDestroy(void *pool)
{
    for (int i = 0; i < sim_hip_device_count(); i++)
        if (pool && sim_hip_device(i)->pool == pool)
            RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_remove(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    free(pool);
    RETURN(hipSuccess);
}

hipError_t
hipDeviceGetDefaultMemPool(void **pool, int device)
{
    HipDevice *d = sim_hip_device(device);
    if (!pool)
        RETURN(hipErrorInvalidValue);
    if (!d)
        RETURN(hipErrorInvalidDevice);
    hipError_t e = hipSuccess;
    pthread_mutex_lock(&d->lock);
    if (!d->pool)
        e = pool_new(&d->pool, device);
    *pool = d->pool;
    pthread_mutex_unlock(&d->lock);
    RETURN(e);
}

hipError_t
hipDeviceGetMemPool(void **pool, int device)
{
    return hipDeviceGetDefaultMemPool(pool, device);
}

hipError_t
hipDeviceSetMemPool(int device, void *pool)
{
    if (!sim_hip_device(device))
        RETURN(hipErrorInvalidDevice);
    RETURN(sim_hip_handle_valid(pool, HANDLE_POOL) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t
hipMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    if (!value || attribute < 1 || attribute >= POOL_ATTRS || !sim_hip_handle_valid(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    memcpy(value, &((Pool *)pool)->attr[attribute], attribute < POOL_FIRST_64 ? 4 : 8);
    RETURN(hipSuccess);
}

hipError_t
hipMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    if (!value || attribute < 1 || attribute >= POOL_ATTRS || !sim_hip_handle_valid(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    memcpy(&((Pool *)pool)->attr[attribute], value, attribute < POOL_FIRST_64 ? 4 : 8);
    RETURN(hipSuccess);
}

hipError_t
hipMemPoolTrimTo(void *pool, size_t keep)
{
    (void)keep;
    RETURN(sim_hip_handle_valid(pool, HANDLE_POOL) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t
hipMallocFromPoolAsync(void **p, size_t n, void *pool, void *stream)
{
    if (!sim_hip_handle_valid(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    return hipMallocAsync(p, n, stream);
}

/* Every device reaches the memory of its own pools, and no other does. */
hipError_t
hipMemPoolSetAccess(void *pool, const void *descriptors, size_t n)
{
    RETURN(descriptors && n && sim_hip_handle_valid(pool, HANDLE_POOL) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t
hipMemPoolGetAccess(int *flags, void *pool, const SimLocation *location)
{
    if (!flags || !location || !sim_hip_handle_valid(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    *flags = location->id == ((Pool *)pool)->h.device ? 3 : 0; /* read and write, none */
    RETURN(hipSuccess);
}

/* Memory of graphs goes back when the graph does: nothing to trim. */
hipError_t
hipDeviceGraphMemTrim(int device)
{
    RETURN(sim_hip_device(device) ? hipSuccess : hipErrorInvalidDevice);
}
