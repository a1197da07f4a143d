/* hip_range.c - HIP: what a pointer is, and hints about memory. Hints (advice, prefetches) change nothing
 * here; they are kept so that a program can ask for them. They are for managed memory and for memory of the
 * host that nobody registered. */
#include <stdlib.h>

#include "sim/hip.h"

enum { TYPE_UNREGISTERED, TYPE_HOST, TYPE_DEVICE, TYPE_MANAGED };
enum { CPU_DEVICE = -1, NO_DEVICE = -2 };

/* ---- what a pointer is ---- */

static int
memory_type(const SimExtent *x)
{
    if (x->tag & SIM_TAG_MANAGED)
        return TYPE_MANAGED;
    return x->kind == SIM_EXT_PINNED || x->kind == SIM_EXT_ARRAY ? TYPE_HOST : TYPE_DEVICE;
}

static int
ordinal(const HipDevice *d, const SimExtent *x)
{
    int i = 0;
    if (x->tag & SIM_TAG_VIRTUAL) /* several devices may know it */
        return SIM_TAG_IS_OF(x->tag);
    while (sim_hip_device(i) && sim_hip_device(i) != d)
        i++;
    return i;
}

/* Attributes of memory that is not known too. */
static bool
of_any_pointer(void *value, int attribute, void *p, const HipDevice *d, const SimExtent *x, hipError_t *e)
{
    const void *v = p;
    *e = hipSuccess;
    switch (attribute) {
    case 1: /* context */
        v = d ? d : sim_hip_device(sim_hip_current());
        break;
    case 3: /* device pointer: any host memory is visible to the simulated device */
        break;
    case 4: /* host pointer */
        if (d && memory_type(x) == TYPE_DEVICE) {
            v = NULL;
            *e = hipErrorInvalidValue;
        }
        break;
    default:
        return false;
    }
    memcpy(value, &v, sizeof v);
    return true;
}

static hipError_t
pointer_attribute(void *value, int attribute, void *p)
{
    SimExtent x = {0};
    hipError_t e;
    if (!value || !p)
        return hipErrorInvalidValue;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    HipDevice *d = sim_hip_owner(p, &x);
    if (of_any_pointer(value, attribute, p, d, &x, &e))
        return e;
    if (!d)
        return hipErrorInvalidValue;
    switch (attribute) {
    case 2: /* memory type */
        *(int *)value = memory_type(&x);
        break;
    case 6: /* sync memops */
        *(int *)value = 1;
        break;
    case 7: /* buffer id */
        memcpy(value, &x.id, 8);
        break;
    case 8: /* managed */
        *(bool *)value = memory_type(&x) == TYPE_MANAGED;
        break;
    case 9:
        *(int *)value = ordinal(d, &x);
        break;
    case 11:
        memcpy(value, &x.base, 8);
        break;
    case 12:
        memcpy(value, &x.size, 8);
        break;
    case 13: /* mapped */
        *(bool *)value = true;
        break;
    case 5:  /* P2P tokens */
    case 10: /* IPC */
    case 14: /* handle types, RDMA, access flags, pool */
    case 15:
    case 16:
    case 17:
        return hipErrorNotSupported;
    default:
        return hipErrorInvalidValue;
    }
    return hipSuccess;
}

hipError_t
hipPointerGetAttribute(void *value, int attribute, void *p)
{
    RETURN(pointer_attribute(value, attribute, p));
}

/* HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS: every copy here is done when it returns. */
hipError_t
hipPointerSetAttribute(const void *value, int attribute, void *p)
{
    SimExtent x;
    RETURN(value && attribute == 6 && sim_hip_owner(p, &x) ? hipSuccess : hipErrorInvalidValue);
}

typedef struct PointerAttributes { /* hipPointerAttribute_t */
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
} PointerAttributes;

hipError_t
hipPointerGetAttributes(void *attributes, const void *p)
{
    SimExtent x;
    if (!attributes || !p)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_device_count())
        RETURN(hipErrorNoDevice);
    HipDevice *d = sim_hip_owner(p, &x);
    PointerAttributes a = {.type = TYPE_UNREGISTERED, .device = d ? ordinal(d, &x) : NO_DEVICE};
    if (d) {
        a.type = memory_type(&x);
        a.device_pointer = (void *)p;
        a.host_pointer = a.type == TYPE_DEVICE ? NULL : (void *)p;
        a.managed = a.type == TYPE_MANAGED;
        a.flags = (unsigned)x.tag;
    }
    memcpy(attributes, &a, sizeof a);
    RETURN(hipSuccess);
}

hipError_t
hipDrvPointerGetAttributes(unsigned n, int *attributes, void **values, void *p)
{
    if (!n || !attributes || !values)
        RETURN(hipErrorInvalidValue);
    for (unsigned i = 0; i < n; i++)
        if (values[i] && pointer_attribute(values[i], attributes[i], p) != hipSuccess)
            *(uint8_t *)values[i] = 0;
    RETURN(hipSuccess);
}

/* ---- hints: disjoint stretches, ascending, each with what was said of it ---- */

typedef struct Hint {
    uint64_t lo, hi;
    int preferred, prefetched;
    uint32_t accessed; /* bit 1 + device, bit 0: host */
    bool read_mostly, coarse;
} Hint;

typedef enum HintWhat {
    HINT_READ_MOSTLY = 1,
    HINT_NOT_READ_MOSTLY,
    HINT_PREFERRED,
    HINT_NOT_PREFERRED,
    HINT_ACCESSED,
    HINT_NOT_ACCESSED,
    HINT_COARSE = 100,
    HINT_NOT_COARSE,
    HINT_PREFETCHED /* not one of HIP's */
} HintWhat;

static struct {
    pthread_mutex_t lock;
    Hint *at;
    size_t n, cap;
} hints = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
sim_hip_range_fork(bool before)
{
    if (before)
        pthread_mutex_lock(&hints.lock);
    else
        pthread_mutex_unlock(&hints.lock);
}

static bool
insert(size_t i, Hint h)
{
    if (hints.n == hints.cap) {
        size_t cap = hints.cap ? hints.cap * 2 : 16;
        Hint *p = realloc(hints.at, cap * sizeof *p);
        if (!p)
            return false;
        hints.at = p;
        hints.cap = cap;
    }
    memmove(hints.at + i + 1, hints.at + i, (hints.n - i) * sizeof *hints.at);
    hints.at[i] = h;
    hints.n++;
    return true;
}

/* The first stretch that ends behind `at`; none goes across it afterwards. */
static bool
cut(uint64_t at, size_t *index)
{
    size_t i = 0;
    while (i < hints.n && hints.at[i].hi <= at)
        i++;
    if (i < hints.n && hints.at[i].lo < at) {
        Hint left = hints.at[i];
        left.hi = at;
        if (!insert(i, left))
            return false;
        hints.at[++i].lo = at;
    }
    *index = i;
    return true;
}

static void
apply(Hint *h, HintWhat what, int device)
{
    /* READ_MOSTLY takes any number for a device */
    uint32_t bit = device >= CPU_DEVICE && device < SIM_MAX_DEVICES ? 1u << (device + 1) : 0;
    switch (what) {
    case HINT_READ_MOSTLY:
    case HINT_NOT_READ_MOSTLY:
        h->read_mostly = what == HINT_READ_MOSTLY;
        break;
    case HINT_PREFERRED:
        h->preferred = device;
        break;
    case HINT_NOT_PREFERRED:
        h->preferred = NO_DEVICE;
        break;
    case HINT_ACCESSED:
        h->accessed |= bit;
        break;
    case HINT_NOT_ACCESSED:
        h->accessed &= ~bit;
        break;
    case HINT_COARSE:
    case HINT_NOT_COARSE:
        h->coarse = what == HINT_COARSE;
        break;
    case HINT_PREFETCHED:
        h->prefetched = device;
        break;
    }
}

static hipError_t
say(const void *p, size_t n, HintWhat what, int device)
{
    uint64_t lo = (uint64_t)p, hi = lo + n;
    const Hint fresh = {.preferred = NO_DEVICE, .prefetched = NO_DEVICE};
    size_t i, end;
    pthread_mutex_lock(&hints.lock);
    bool ok = cut(lo, &i) && cut(hi, &end);
    while (ok && lo < hi) {
        if (i == hints.n || hints.at[i].lo > lo) { /* nothing was said of what is here */
            Hint h = fresh;
            h.lo = lo;
            h.hi = i < hints.n && hints.at[i].lo < hi ? hints.at[i].lo : hi;
            if (!(ok = insert(i, h)))
                break;
        }
        apply(&hints.at[i], what, device);
        lo = hints.at[i++].hi;
    }
    pthread_mutex_unlock(&hints.lock);
    return ok ? hipSuccess : hipErrorOutOfMemory;
}

void
sim_hip_forget_hints(uint64_t base, uint64_t size)
{
    size_t i, end;
    pthread_mutex_lock(&hints.lock);
    if (hints.n && cut(base, &i) && cut(base + size, &end) && end > i) {
        memmove(hints.at + i, hints.at + end, (hints.n - end) * sizeof *hints.at);
        hints.n -= end - i;
    }
    pthread_mutex_unlock(&hints.lock);
}

/* Is [p, p + n) memory with hints? *x.size is 0 for memory that nobody registered. */
static bool
hinted(const void *p, size_t n, SimExtent *x)
{
    *x = (SimExtent){0};
    if (!p || !n || (uint64_t)p + n < n)
        return false;
    if (!sim_hip_owner(p, x))
        return sim_hip_mapped(p, n);
    return x->size - ((uint64_t)p - x->base) >= n;
}

enum { LOCATION_DEVICE = 1, LOCATION_HOST, LOCATION_NUMA, LOCATION_NUMA_CURRENT };

static SimLocation
location_of(int device)
{
    return device == CPU_DEVICE ? (SimLocation){LOCATION_HOST, CPU_DEVICE}
                                : (SimLocation){LOCATION_DEVICE, device};
}

/* The device of a location, CPU_DEVICE for any of the host's. */
static hipError_t
locate(SimLocation l, int *device)
{
    *device = l.type == LOCATION_DEVICE ? l.id : CPU_DEVICE;
    if (l.type < LOCATION_DEVICE || l.type > LOCATION_NUMA_CURRENT)
        return hipErrorInvalidValue;
    return *device == CPU_DEVICE && l.type != LOCATION_DEVICE ? hipSuccess
           : sim_hip_device(*device)                          ? hipSuccess
                                                              : hipErrorInvalidDevice;
}

static hipError_t
prefetch(const void *p, size_t n, SimLocation location, void *stream)
{
    SimExtent x;
    int device;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    if (!hinted(p, n, &x))
        return hipErrorInvalidValue;
    hipError_t e = locate(location, &device);
    if (e != hipSuccess)
        return e;
    if (!sim_hip_stream_ok(stream))
        return hipErrorContextIsDestroyed;
    return x.size && memory_type(&x) != TYPE_MANAGED ? hipSuccess : say(p, n, HINT_PREFETCHED, device);
}

static hipError_t
advise(const void *p, size_t n, int advice, SimLocation location)
{
    SimExtent x;
    int device;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    if (!p || !n)
        return hipErrorInvalidValue;
    hipError_t e = locate(location, &device);
    if (e == hipErrorInvalidDevice && (advice == HINT_READ_MOSTLY || advice == HINT_NOT_READ_MOSTLY))
        e = hipSuccess; /* no matter where */
    if (e != hipSuccess)
        return e;
    bool known = (advice >= HINT_READ_MOSTLY && advice <= HINT_NOT_ACCESSED) || advice == HINT_COARSE ||
                 advice == HINT_NOT_COARSE;
    if (!known || !hinted(p, n, &x) || (x.size && memory_type(&x) != TYPE_MANAGED))
        return hipErrorInvalidValue;
    return say(p, n, (HintWhat)advice, device);
}

hipError_t
hipMemPrefetchAsync(const void *p, size_t n, int device, void *stream)
{
    RETURN(prefetch(p, n, location_of(device), stream));
}

hipError_t
hipMemPrefetchAsync_v2(const void *p, size_t n, SimLocation location, unsigned flags, void *stream)
{
    RETURN(flags ? hipErrorInvalidValue : prefetch(p, n, location, stream));
}

hipError_t
hipMemAdvise(const void *p, size_t n, int advice, int device)
{
    RETURN(advise(p, n, advice, location_of(device)));
}

hipError_t
hipMemAdvise_v2(const void *p, size_t n, int advice, SimLocation location)
{
    RETURN(advise(p, n, advice, location));
}

hipError_t
hipStreamAttachMemAsync(void *stream, void *p, size_t n, unsigned flags)
{
    SimExtent x;
    if (!p || (flags != 1 && flags != 2 && flags != 4) || (flags == 4 && !stream))
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    if (!sim_hip_owner(p, &x))
        RETURN(n ? hipSuccess : hipErrorInvalidValue);
    RETURN(n && memory_type(&x) != TYPE_DEVICE && n != x.size ? hipErrorInvalidValue : hipSuccess);
}

/* ---- what was said ---- */

/* What is true of all of [lo, hi); where it differs: no device, not read-mostly; coherency then is *mixed. */
static Hint
gather(uint64_t lo, uint64_t hi, bool *mixed)
{
    Hint all = {.preferred = NO_DEVICE, .prefetched = NO_DEVICE};
    const Hint fresh = all;
    bool first = true;
    *mixed = false;
    for (size_t i = 0; lo < hi; first = false) {
        while (i < hints.n && hints.at[i].hi <= lo)
            i++;
        const Hint *h = i < hints.n && hints.at[i].lo <= lo ? &hints.at[i] : &fresh;
        lo = h != &fresh ? h->hi : i < hints.n ? hints.at[i].lo : hi;
        if (first) {
            all = *h;
            continue;
        }
        *mixed |= all.coarse != h->coarse;
        all.read_mostly &= h->read_mostly;
        all.accessed &= h->accessed;
        all.preferred = all.preferred == h->preferred ? all.preferred : NO_DEVICE;
        all.prefetched = all.prefetched == h->prefetched ? all.prefetched : NO_DEVICE;
    }
    return all;
}

static hipError_t
accessed_by(int *devices, size_t count, uint32_t bits)
{
    size_t n = 0;
    for (int i = CPU_DEVICE; i < SIM_MAX_DEVICES && n < count; i++)
        if (bits >> (i + 1) & 1)
            devices[n++] = i;
    while (n < count)
        devices[n++] = NO_DEVICE;
    return hipSuccess;
}

enum { RANGE_READ_MOSTLY = 1, RANGE_PREFERRED, RANGE_ACCESSED_BY, RANGE_PREFETCHED, RANGE_COHERENCY = 100 };
enum { FINE_GRAIN, COARSE_GRAIN, MIXED_GRAIN };

static hipError_t
range_attribute(void *data, size_t size, int attribute, const void *p, size_t n)
{
    SimExtent x;
    bool mixed;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    if (!data || !size || size % 4 || (size != 4 && attribute != RANGE_ACCESSED_BY) || !hinted(p, n, &x))
        return hipErrorInvalidValue;
    if (x.size && memory_type(&x) != TYPE_MANAGED) {
        if (attribute != RANGE_COHERENCY)
            return hipErrorInvalidValue;
        bool fine = memory_type(&x) == TYPE_DEVICE ? x.tag & 1 : !(x.tag & 0x80000000u);
        *(int *)data = fine ? FINE_GRAIN : COARSE_GRAIN;
        return hipSuccess;
    }
    pthread_mutex_lock(&hints.lock);
    Hint h = gather((uint64_t)p, (uint64_t)p + n, &mixed);
    pthread_mutex_unlock(&hints.lock);
    switch (attribute) {
    case RANGE_READ_MOSTLY:
        *(int *)data = h.read_mostly;
        return hipSuccess;
    case RANGE_PREFERRED:
        *(int *)data = h.preferred;
        return hipSuccess;
    case RANGE_ACCESSED_BY:
        return accessed_by(data, size / 4, h.accessed);
    case RANGE_PREFETCHED:
        *(int *)data = h.prefetched;
        return hipSuccess;
    case RANGE_COHERENCY:
        *(int *)data = mixed ? MIXED_GRAIN : h.coarse ? COARSE_GRAIN : FINE_GRAIN;
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t
hipMemRangeGetAttribute(void *data, size_t size, int attribute, const void *p, size_t n)
{
    RETURN(range_attribute(data, size, attribute, p, n));
}

hipError_t
hipMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count, const void *p, size_t n)
{
    hipError_t e = data && sizes && attributes && count ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; e == hipSuccess && i < count; i++)
        e = range_attribute(data[i], sizes[i], attributes[i], p, n);
    RETURN(e);
}
