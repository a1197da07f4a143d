/* hip_virtual.c - HIP: virtual memory. Memory (a file without a name) is mapped into reserved addresses; each
 * device is told what it may do there. Stretches that follow each other without a gap are one for its kernels
 * and for copies. What is mapped counts as defined. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/hip.h"

enum { GRANULE = 4096, RECOMMENDED = 2 << 20, PINNED = 1, UNCACHED = 0x40000000, FILE_DESCRIPTOR = 1 };
enum { LOCATION_DEVICE = 1, ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 3 };

typedef struct Properties { /* hipMemAllocationProp */
    int type, handle_type;
    SimLocation location;
    void *win32;
    uint8_t compression, rdma;
    uint16_t usage;
} Properties;

typedef struct Access { /* hipMemAccessDesc */
    SimLocation location;
    int flags;
} Access;

typedef struct Memory {
    Handle h;
    int fd;
    uint64_t size;
    Properties properties;
    uint32_t holders, mappings;
} Memory;

typedef struct Mapping {
    uint64_t lo, hi;
    Memory *memory;
    uint8_t access[SIM_MAX_DEVICES];
    struct Mapping *next; /* ascending */
} Mapping;

typedef struct Range { /* of addresses */
    uint64_t lo, hi;
    struct Range *next;
} Range;

static struct {
    pthread_mutex_t lock;
    Range *reserved;
    Mapping *mapped;
} virtual = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
sim_hip_virtual_fork(bool before)
{
    if (before)
        pthread_mutex_lock(&virtual.lock);
    else
        pthread_mutex_unlock(&virtual.lock);
}

static hipError_t
finish(hipError_t e)
{
    pthread_mutex_unlock(&virtual.lock);
    return sim_hip_result(e);
}

/* Takes the lock, which finish() gives back. */
static hipError_t
begin(void)
{
    pthread_mutex_lock(&virtual.lock);
    return sim_hip_check(NULL);
}

static hipError_t
check_properties(const void *p, Properties *out)
{
    if (!p)
        return hipErrorInvalidValue;
    memcpy(out, p, sizeof *out);
    if ((out->type != PINNED && out->type != UNCACHED) || out->location.type != LOCATION_DEVICE)
        return hipErrorInvalidValue;
    if (!sim_hip_device(out->location.id))
        return hipErrorInvalidDevice;
    return out->handle_type & ~FILE_DESCRIPTOR ? hipErrorNotSupported : hipSuccess;
}

hipError_t
hipMemGetAllocationGranularity(size_t *n, const void *properties, int which)
{
    Properties p;
    hipError_t e = check_properties(properties, &p);
    if (!n || which < 0 || which > 1)
        e = hipErrorInvalidValue;
    if (e == hipSuccess)
        *n = which ? RECOMMENDED : GRANULE;
    RETURN(e);
}

/* ---- addresses ---- */

static bool
whole(uint64_t n)
{
    return n && n % GRANULE == 0;
}

hipError_t
hipMemAddressReserve(void **p, size_t n, size_t alignment, void *hint, unsigned long long flags)
{
    if (!p || !whole(n) || flags || alignment & (alignment - 1) || n > UINT64_C(1) << 46 ||
        alignment > UINT64_C(1) << 40)
        RETURN(hipErrorInvalidValue);
    hipError_t e = begin();
    Range *r = e == hipSuccess ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return finish(e == hipSuccess ? hipErrorOutOfMemory : e);
    uint64_t more = alignment > GRANULE ? alignment : 0;
    char *at = mmap(hint, n + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        free(r);
        return finish(hipErrorOutOfMemory);
    }
    if (more) { /* give back what is outside of the aligned part */
        char *from = at + (-(uintptr_t)at & (alignment - 1));
        if (from > at)
            munmap(at, (size_t)(from - at));
        if (from + n < at + n + more)
            munmap(from + n, (size_t)(at + more - from));
        at = from;
    }
    *r = (Range){(uint64_t)at, (uint64_t)at + n, virtual.reserved};
    virtual.reserved = r;
    *p = at;
    return finish(hipSuccess);
}

bool
sim_hip_virtual_touches(const void *p, size_t n)
{
    bool touches = false;
    pthread_mutex_lock(&virtual.lock);
    for (const Range *r = virtual.reserved; r && !touches; r = r->next)
        touches = (uint64_t)p < r->hi && r->lo < (uint64_t)p + n;
    pthread_mutex_unlock(&virtual.lock);
    return touches;
}

static Range **
reservation(uint64_t lo, uint64_t hi)
{
    Range **r = &virtual.reserved;
    while (*r && !((*r)->lo <= lo && hi <= (*r)->hi))
        r = &(*r)->next;
    return r;
}

/* The first mapping that ends behind lo. */
static Mapping **
from_mapping(uint64_t lo)
{
    Mapping **m = &virtual.mapped;
    while (*m && (*m)->hi <= lo)
        m = &(*m)->next;
    return m;
}

hipError_t
hipMemAddressFree(void *p, size_t n)
{
    uint64_t lo = (uint64_t)p;
    if (!p || !n)
        RETURN(hipErrorInvalidValue);
    hipError_t e = begin();
    Range **at = reservation(lo, lo + n), *r = *at;
    if (e != hipSuccess)
        return finish(e);
    const Mapping *m = *from_mapping(lo);
    if (!r || r->lo != lo || r->hi != lo + n || (m && m->lo < r->hi))
        return finish(hipErrorInvalidValue);
    *at = r->next;
    free(r);
    munmap(p, n);
    return finish(hipSuccess);
}

/* ---- memory ---- */

static hipError_t
memory_new(int fd, uint64_t size, const Properties *p, void **memory)
{
    Memory *m = fd < 0 ? NULL : calloc(1, sizeof *m);
    if (!m) {
        if (fd >= 0)
            close(fd);
        return hipErrorOutOfMemory;
    }
    *m = (Memory){
        .h = {HANDLE_MEMORY, p->location.id}, .fd = fd, .size = size, .properties = *p, .holders = 1};
    if (!sim_hip_handle_add(&m->h)) {
        close(fd);
        free(m);
        return hipErrorOutOfMemory;
    }
    *memory = m;
    return hipSuccess;
}

static void
drop(Memory *m)
{
    if (m->holders || m->mappings)
        return;
    close(m->fd);
    free(m);
}

hipError_t
hipMemCreate(void **memory, size_t n, const void *properties, unsigned long long flags)
{
    Properties p;
    hipError_t e = check_properties(properties, &p);
    if (!memory || !whole(n) || flags)
        e = hipErrorInvalidValue;
    if (e != hipSuccess)
        RETURN(e);
    if ((e = begin()) != hipSuccess)
        return finish(e);
    const SimDevice *d = sim_hip_device(p.location.id)->sim;
    if (n > d->chip->dram_gib << 30)
        return finish(hipErrorOutOfMemory);
    int fd = memfd_create("tilelang simulator", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)n)) {
        close(fd);
        fd = -1;
    }
    return finish(memory_new(fd, n, &p, memory));
}

hipError_t
hipMemRelease(void *memory)
{
    Memory *m = memory;
    pthread_mutex_lock(&virtual.lock);
    if (!sim_hip_handle_valid(memory, HANDLE_MEMORY))
        return finish(hipErrorInvalidValue);
    if (!--m->holders) {
        sim_hip_handle_remove(m, HANDLE_MEMORY);
        drop(m);
    }
    return finish(hipSuccess);
}

hipError_t
hipMemRetainAllocationHandle(void **memory, void *p)
{
    if (!memory || !p)
        RETURN(hipErrorInvalidValue);
    hipError_t e = begin();
    const Mapping *m = *from_mapping((uint64_t)p);
    if (e != hipSuccess || !m || m->lo > (uint64_t)p)
        return finish(e != hipSuccess ? e : hipErrorInvalidValue);
    if (!m->memory->holders && !sim_hip_handle_add(&m->memory->h))
        return finish(hipErrorOutOfMemory);
    m->memory->holders++;
    *memory = m->memory;
    return finish(hipSuccess);
}

hipError_t
hipMemGetAllocationPropertiesFromHandle(void *properties, void *memory)
{
    if (!properties || !sim_hip_handle_valid(memory, HANDLE_MEMORY))
        RETURN(hipErrorInvalidValue);
    memcpy(properties, &((const Memory *)memory)->properties, sizeof(Properties));
    RETURN(hipSuccess);
}

/* A file descriptor of its own, through which another process can have the memory too. */
hipError_t
hipMemExportToShareableHandle(void *shared, void *memory, int type, unsigned long long flags)
{
    if (!shared || flags || !sim_hip_handle_valid(memory, HANDLE_MEMORY))
        RETURN(hipErrorInvalidValue);
    const Memory *m = memory;
    if (type != FILE_DESCRIPTOR || m->properties.handle_type != type)
        RETURN(hipErrorInvalidValue);
    int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        RETURN(hipErrorOutOfMemory);
    memcpy(shared, &fd, sizeof fd);
    RETURN(hipSuccess);
}

/* The descriptor itself is passed as the pointer. */
hipError_t
hipMemImportFromShareableHandle(void **memory, void *shared, int type)
{
    struct stat st;
    if (!memory || type != FILE_DESCRIPTOR || (uintptr_t)shared > INT32_MAX)
        RETURN(hipErrorInvalidValue);
    int fd = (int)(uintptr_t)shared;
    hipError_t e = begin();
    if (e != hipSuccess)
        return finish(e);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || !whole((uint64_t)st.st_size) ||
        fcntl(fd, F_GET_SEALS) < 0)
        return finish(hipErrorInvalidValue);
    Properties p = {.type = PINNED, .handle_type = type, .location = {LOCATION_DEVICE, sim_hip_current()}};
    return finish(memory_new(fcntl(fd, F_DUPFD_CLOEXEC, 0), (uint64_t)st.st_size, &p, memory));
}

/* ---- mappings ---- */

/* What one device may use of [lo, hi): n stretches. */
static uint32_t
stretches(uint64_t lo, uint64_t hi, int device, SimStretch *out)
{
    uint32_t n = 0;
    for (const Mapping *m = *from_mapping(lo); m && m->lo < hi; m = m->next) {
        SimStretch s = {.base = m->lo, .size = m->hi - m->lo};
        s.tag = SIM_TAG_VIRTUAL | SIM_TAG_DEVICE(m->memory->h.device);
        s.flags = m->access[device] == ACCESS_WRITE ? 0 : SIM_EXT_READONLY;
        if (m->access[device] == ACCESS_NONE)
            continue;
        if (n && out[n - 1].base + out[n - 1].size == s.base && out[n - 1].tag == s.tag &&
            out[n - 1].flags == s.flags)
            out[n - 1].size += s.size;
        else
            out[n++] = s;
    }
    return n;
}

/* Tells all devices what they may use around [lo, hi). */
static hipError_t
tell(uint64_t lo, uint64_t hi)
{
    const Range *r = *reservation(lo, hi);
    uint32_t n = 0;
    for (const Mapping *m = *from_mapping(r->lo); m && m->lo < r->hi; m = m->next)
        n++;
    SimStretch *s = malloc((n + 1) * sizeof *s);
    bool ok = s != NULL;
    for (int d = 0; ok && d < sim_hip_device_count(); d++)
        ok = sim_device_stretches(sim_hip_device(d)->sim, r->lo, r->hi, s, stretches(r->lo, r->hi, d, s));
    free(s);
    return ok ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t
hipMemMap(void *p, size_t n, size_t offset, void *memory, unsigned long long flags)
{
    uint64_t lo = (uint64_t)p, hi = lo + n;
    if (!p || !whole(n) || lo % GRANULE || offset % GRANULE || flags || hi < lo)
        RETURN(hipErrorInvalidValue);
    hipError_t e = begin();
    if (e != hipSuccess)
        return finish(e);
    Memory *m = memory;
    Mapping **at = from_mapping(lo);
    if (!sim_hip_handle_valid(memory, HANDLE_MEMORY) || offset > m->size || m->size - offset < n ||
        !*reservation(lo, hi) || (*at && (*at)->lo < hi))
        return finish(hipErrorInvalidValue);
    Mapping *new = calloc(1, sizeof *new);
    if (!new || mmap(p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, (off_t)offset) == MAP_FAILED) {
        free(new);
        return finish(hipErrorOutOfMemory);
    }
    *new = (Mapping){.lo = lo, .hi = hi, .memory = m, .next = *at};
    *at = new;
    m->mappings++;
    return finish(hipSuccess);
}

/* Do whole mappings, without a gap, make up [lo, hi)? */
static bool
covered(uint64_t lo, uint64_t hi)
{
    const Mapping *m = *from_mapping(lo);
    for (; m && m->lo == lo && m->hi <= hi && lo < hi; m = m->next)
        lo = m->hi;
    return lo == hi;
}

hipError_t
hipMemUnmap(void *p, size_t n)
{
    uint64_t lo = (uint64_t)p, hi = lo + n;
    if (!p || !n || hi < lo)
        RETURN(hipErrorInvalidValue);
    pthread_mutex_lock(&virtual.lock);
    if (!covered(lo, hi))
        return finish(hipErrorInvalidValue);
    for (Mapping *m = *from_mapping(lo); m && m->lo < hi; m = m->next)
        memset(m->access, ACCESS_NONE, sizeof m->access);
    hipError_t e = tell(lo, hi); /* no kernel uses it any more */
    if (e != hipSuccess)
        return finish(e);
    if (mmap(p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return finish(hipErrorOutOfMemory);
    for (Mapping **at = from_mapping(lo), *m; (m = *at) && m->lo < hi;) {
        *at = m->next;
        m->memory->mappings--;
        drop(m->memory);
        free(m);
    }
    return finish(hipSuccess);
}

hipError_t
hipMemSetAccess(void *p, size_t n, const void *descriptors, size_t count)
{
    uint64_t lo = (uint64_t)p, hi = lo + n;
    if (!p || !n || hi < lo || !descriptors || !count || count > SIM_MAX_DEVICES)
        RETURN(hipErrorInvalidValue);
    Access a[SIM_MAX_DEVICES];
    memcpy(a, descriptors, count * sizeof *a);
    for (size_t i = 0; i < count; i++) {
        bool known = a[i].flags == ACCESS_NONE || a[i].flags == ACCESS_READ || a[i].flags == ACCESS_WRITE;
        if (a[i].location.type != LOCATION_DEVICE || !known)
            RETURN(hipErrorInvalidValue);
        if (!sim_hip_device(a[i].location.id))
            RETURN(hipErrorInvalidDevice);
    }
    hipError_t e = begin();
    if (e != hipSuccess || !covered(lo, hi))
        return finish(e != hipSuccess ? e : hipErrorInvalidValue);
    if (mprotect(p, n, PROT_READ | PROT_WRITE))
        return finish(hipErrorOutOfMemory);
    for (Mapping *m = *from_mapping(lo); m && m->lo < hi; m = m->next)
        for (size_t i = 0; i < count; i++)
            m->access[a[i].location.id] = (uint8_t)a[i].flags;
    return finish(tell(lo, hi));
}

hipError_t
hipMemGetAccess(unsigned long long *flags, const SimLocation *location, void *p)
{
    if (!flags || !location || !p || location->type != LOCATION_DEVICE)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_device(location->id))
        RETURN(hipErrorInvalidDevice);
    hipError_t e = begin();
    const Mapping *m = *from_mapping((uint64_t)p);
    if (e != hipSuccess || !m || m->lo > (uint64_t)p)
        return finish(e != hipSuccess ? e : hipErrorInvalidValue);
    *flags = m->access[location->id];
    return finish(hipSuccess);
}
