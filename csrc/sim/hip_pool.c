/* hip_pool.c - HIP: memory pools. A pool has attributes and knows how much of it is used; its memory is
 * allocated and freed one by one, so that nothing is kept in reserve. */
#include <stdlib.h>

#include "sim/hip.h"

enum { POOL_ATTRS = 9, POOL_FIRST_64 = 4 }; /* attributes 1 to 3 are int, the others uint64_t */

enum { REUSE_LAST = 3, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

typedef struct Pool {
    Handle h;
    uint64_t attr[POOL_ATTRS];
    uint32_t id; /* in the tags of its memory */
    struct Pool *next;
} Pool;

static struct {
    pthread_mutex_t lock;
    Pool *list;
    uint32_t last_id;
} pools = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
sim_hip_pool_fork(bool before)
{
    if (before)
        pthread_mutex_lock(&pools.lock);
    else
        pthread_mutex_unlock(&pools.lock);
}

void
sim_hip_pool_change(uint64_t tag, uint64_t size, bool more)
{
    uint32_t id = SIM_TAG_POOL_OF(tag);
    if (!id)
        return;
    pthread_mutex_lock(&pools.lock);
    for (Pool *p = pools.list; p; p = p->next) {
        if (p->id != id)
            continue;
        p->attr[USED] = more ? p->attr[USED] + size : p->attr[USED] - size;
        p->attr[RESERVED] = p->attr[USED];
        p->attr[USED_HIGH] = TL_MAX(p->attr[USED_HIGH], p->attr[USED]);
        p->attr[RESERVED_HIGH] = TL_MAX(p->attr[RESERVED_HIGH], p->attr[RESERVED]);
    }
    pthread_mutex_unlock(&pools.lock);
}

static hipError_t
pool_new(void **pool, int device)
{
    Pool *p = calloc(1, sizeof *p);
    if (!p)
        return hipErrorOutOfMemory;
    p->h = (Handle){HANDLE_POOL, device};
    for (uint32_t i = 1; i <= REUSE_LAST; i++)
        p->attr[i] = 1;
    if (!sim_hip_handle_add(&p->h)) {
        free(p);
        return hipErrorOutOfMemory;
    }
    pthread_mutex_lock(&pools.lock);
    p->id = ++pools.last_id & 0xffff;
    p->next = pools.list;
    pools.list = p;
    pthread_mutex_unlock(&pools.lock);
    *pool = p;
    return hipSuccess;
}

typedef struct PoolProperties { /* hipMemPoolProps, its head */
    int type, handles;
    SimLocation location;
} PoolProperties;

hipError_t
hipMemPoolCreate(void **pool, const void *properties)
{
    if (!pool || !properties)
        RETURN(hipErrorInvalidValue);
    PoolProperties p;
    memcpy(&p, properties, sizeof p);
    if (p.type != 1 || p.location.type != 1 || !sim_hip_device(p.location.id))
        RETURN(hipErrorInvalidValue);
    static atomic_bool said;
    if (p.handles & 1) /* a file descriptor */
        RETURN(sim_hip_refuse("a pool that is shared with other processes (hipMemPoolCreate)", &said));
    if (p.handles)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_check(NULL);
    RETURN(e == hipSuccess ? pool_new(pool, p.location.id) : e);
}

hipError_t
hipMemPoolDestroy(void *pool)
{
    for (int i = 0; i < sim_hip_device_count(); i++)
        if (pool && sim_hip_device(i)->pool == pool)
            RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_remove(pool, HANDLE_POOL))
        RETURN(hipErrorInvalidValue);
    for (int i = 0; i < sim_hip_device_count(); i++) { /* the default one again */
        HipDevice *d = sim_hip_device(i);
        pthread_mutex_lock(&d->lock);
        if (d->current_pool == pool)
            d->current_pool = NULL;
        pthread_mutex_unlock(&d->lock);
    }
    pthread_mutex_lock(&pools.lock);
    Pool **at = &pools.list;
    while (*at != pool)
        at = &(*at)->next;
    *at = (*at)->next;
    pthread_mutex_unlock(&pools.lock);
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
    HipDevice *d = sim_hip_device(device);
    hipError_t e = hipDeviceGetDefaultMemPool(pool, device);
    if (e == hipSuccess) {
        pthread_mutex_lock(&d->lock);
        if (d->current_pool)
            *pool = d->current_pool;
        pthread_mutex_unlock(&d->lock);
    }
    return e;
}

hipError_t
hipDeviceSetMemPool(int device, void *pool)
{
    if (!sim_hip_device(device))
        RETURN(hipErrorInvalidDevice);
    if (!sim_hip_handle_valid(pool, HANDLE_POOL) || ((Pool *)pool)->h.device != device)
        RETURN(hipErrorInvalidValue);
    HipDevice *d = sim_hip_device(device);
    pthread_mutex_lock(&d->lock);
    d->current_pool = pool;
    pthread_mutex_unlock(&d->lock);
    RETURN(hipSuccess);
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
    uint64_t v = 0;
    memcpy(&v, value, attribute < POOL_FIRST_64 ? 4 : 8);
    bool high = attribute == RESERVED_HIGH || attribute == USED_HIGH;
    if (attribute == RESERVED || attribute == USED || (high && v))
        RETURN(hipErrorInvalidValue); /* they can be asked for, a high mark can be set back */
    pthread_mutex_lock(&pools.lock);
    ((Pool *)pool)->attr[attribute] = high ? ((Pool *)pool)->attr[attribute - 1] : v;
    pthread_mutex_unlock(&pools.lock);
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
    const Pool *from = pool;
    RETURN(sim_hip_malloc_async(p, n, stream, from->h.device, SIM_TAG_POOL(from->id)));
}

hipError_t
hipMallocAsync(void **p, size_t n, void *stream)
{
    void *pool = NULL;
    int device = sim_hip_current();
    hipError_t e = hipDeviceGetMemPool(&pool, device);
    if (e != hipSuccess || !pool)
        return e;
    RETURN(sim_hip_malloc_async(p, n, stream, device, SIM_TAG_POOL(((Pool *)pool)->id)));
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
