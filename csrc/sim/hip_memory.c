/* hip_memory.c - HIP: allocation, copies, fills, what a pointer is. A copy or fill that starts in an
 * allocation and runs past its end is refused; a host pointer nobody told us about is used as it is. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"

enum { H2H, H2D, D2H, D2D, DEFAULT_KIND, D2D_NOCU = 1024 };
enum { TYPE_UNREGISTERED, TYPE_HOST, TYPE_DEVICE, TYPE_MANAGED };

/* ---- allocation ---- */

static hipError_t
allocate(void **p, size_t n, SimExtentKind kind)
{
    HipDevice *d;
    hipError_t e = sim_hip_check(&d);
    if (!p)
        return hipErrorInvalidValue;
    *p = NULL;
    if (e != hipSuccess || !n)
        return e;
    uint64_t limit = d->sim->chip->dram_gib << 30;
    if (kind == SIM_EXT_MALLOC && (n > limit || sim_mem_bytes(d->sim->mem) > limit - n))
        return hipErrorOutOfMemory;
    *p = sim_mem_alloc(d->sim->mem, n, kind, kind == SIM_EXT_PINNED, NULL);
    return *p ? hipSuccess : hipErrorOutOfMemory;
}

static hipError_t
release(void *p, SimExtentKind kind)
{
    if (!p)
        return hipSuccess;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    for (int i = 0; i < sim_hip_device_count(); i++)
        if (sim_device_release(sim_hip_device(i)->sim, (uint64_t)p, kind))
            return hipSuccess;
    return hipErrorInvalidValue;
}

hipError_t
hipMalloc(void **p, size_t n)
{
    RETURN(allocate(p, n, SIM_EXT_MALLOC));
}

hipError_t
hipExtMallocWithFlags(void **p, size_t n, unsigned flags)
{
    (void)flags;
    RETURN(allocate(p, n, SIM_EXT_MALLOC));
}

hipError_t
hipMallocManaged(void **p, size_t n, unsigned flags)
{
    if (flags != 1 && flags != 2)
        RETURN(hipErrorInvalidValue);
    RETURN(allocate(p, n, SIM_EXT_PINNED));
}

hipError_t
hipMallocAsync(void **p, size_t n, void *stream)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorInvalidHandle);
    RETURN(allocate(p, n, SIM_EXT_MALLOC));
}

hipError_t
hipMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    if (!pitch)
        RETURN(hipErrorInvalidValue);
    *pitch = (width + 255) & ~(size_t)255;
    if (*pitch && height > SIZE_MAX / *pitch)
        RETURN(hipErrorOutOfMemory);
    RETURN(allocate(p, *pitch * height, SIM_EXT_MALLOC));
}

hipError_t
hipFree(void *p)
{
    hipError_t e = release(p, SIM_EXT_MALLOC);
    RETURN(e == hipErrorInvalidValue ? release(p, SIM_EXT_PINNED) : e);
}

hipError_t
hipFreeAsync(void *p, void *stream)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorInvalidHandle);
    if (!p)
        RETURN(hipErrorInvalidValue);
    return hipFree(p);
}

hipError_t
hipHostMalloc(void **p, size_t n, unsigned flags)
{
    (void)flags;
    RETURN(allocate(p, n, SIM_EXT_PINNED));
}

hipError_t
hipHostAlloc(void **p, size_t n, unsigned flags)
{
    return hipHostMalloc(p, n, flags);
}

hipError_t
hipMallocHost(void **p, size_t n)
{
    return hipHostMalloc(p, n, 0);
}

hipError_t
hipHostFree(void *p)
{
    RETURN(release(p, SIM_EXT_PINNED));
}

hipError_t
hipFreeHost(void *p)
{
    return hipHostFree(p);
}

hipError_t
hipHostRegister(void *p, size_t n, unsigned flags)
{
    (void)flags;
    HipDevice *d;
    hipError_t e = sim_hip_check(&d);
    if (!p || !n)
        RETURN(hipErrorInvalidValue);
    if (e != hipSuccess)
        RETURN(e);
    RETURN(sim_mem_add(d->sim->mem, p, n, SIM_EXT_PINNED, 0, NULL) ? hipSuccess
                                                                   : hipErrorHostMemoryAlreadyRegistered);
}

hipError_t
hipHostUnregister(void *p)
{
    hipError_t e = p ? release(p, SIM_EXT_PINNED) : hipErrorInvalidValue;
    RETURN(e == hipErrorInvalidValue && p ? hipErrorHostMemoryNotRegistered : e);
}

hipError_t
hipHostGetDevicePointer(void **dev, void *host, unsigned flags)
{
    if (!dev || !host || flags)
        RETURN(hipErrorInvalidValue);
    *dev = host;
    RETURN(hipSuccess);
}

hipError_t
hipHostGetFlags(unsigned *flags, void *host)
{
    SimExtent x;
    if (!flags || !sim_hip_owner(host, &x) || x.kind != SIM_EXT_PINNED)
        RETURN(hipErrorInvalidValue);
    *flags = 0;
    RETURN(hipSuccess);
}

hipError_t
hipMemGetInfo(size_t *available, size_t *total)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (!available || !total)
        RETURN(hipErrorInvalidValue);
    if (!d)
        RETURN(hipErrorNoDevice);
    *total = d->sim->chip->dram_gib << 30;
    *available = *total - sim_mem_bytes(d->sim->mem);
    RETURN(hipSuccess);
}

hipError_t
hipMemPtrGetInfo(void *p, size_t *n)
{
    SimExtent x;
    if (!n || !sim_hip_owner(p, &x))
        RETURN(hipErrorInvalidValue);
    *n = x.size;
    RETURN(hipSuccess);
}

hipError_t
hipMemGetAddressRange(void **base, size_t *n, void *p)
{
    SimExtent x;
    if (!sim_hip_owner(p, &x))
        RETURN(hipErrorNotFound);
    if (base)
        *base = (void *)x.base;
    if (n)
        *n = x.size;
    RETURN(hipSuccess);
}

/* ---- copies ---- */

/* Does [p, p + n) stay in the allocation in which it starts? *d is its device, NULL: host memory. */
static bool
range_ok(const void *p, size_t n, HipDevice **d)
{
    SimExtent x;
    *d = sim_hip_owner(p, &x);
    return !*d || !(x.flags & SIM_EXT_DENSE) || x.size - ((uint64_t)p - x.base) >= n;
}

static hipError_t
copy(void *dst, const void *src, size_t n, int kind)
{
    HipDevice *to, *from;
    hipError_t e = sim_hip_check(NULL);
    if (e != hipSuccess || !n)
        return e;
    if (!dst || !src)
        return hipErrorInvalidValue;
    if ((kind < H2H || kind > DEFAULT_KIND) && kind != D2D_NOCU)
        return hipErrorInvalidMemcpyDirection;
    if (!range_ok(dst, n, &to) || !range_ok(src, n, &from))
        return hipErrorInvalidValue;
    memmove(dst, src, n);
    if (to && to == from)
        sim_mem_copy_defined(to->sim->mem, (uint64_t)dst, (uint64_t)src, n);
    else if (to)
        sim_mem_define(to->sim->mem, (uint64_t)dst, n);
    return hipSuccess;
}

static hipError_t
copy_on(void *dst, const void *src, size_t n, int kind, void *stream)
{
    return sim_hip_stream_ok(stream) ? copy(dst, src, n, kind) : hipErrorContextIsDestroyed;
}

hipError_t
hipMemcpy(void *dst, const void *src, size_t n, int kind)
{
    RETURN(copy(dst, src, n, kind));
}

hipError_t
hipMemcpyAsync(void *dst, const void *src, size_t n, int kind, void *stream)
{
    RETURN(copy_on(dst, src, n, kind, stream));
}

hipError_t
hipMemcpyWithStream(void *dst, const void *src, size_t n, int kind, void *stream)
{
    RETURN(copy_on(dst, src, n, kind, stream));
}

hipError_t
hipMemcpyHtoD(void *dst, const void *src, size_t n)
{
    RETURN(copy(dst, src, n, H2D));
}

hipError_t
hipMemcpyDtoH(void *dst, const void *src, size_t n)
{
    RETURN(copy(dst, src, n, D2H));
}

hipError_t
hipMemcpyDtoD(void *dst, const void *src, size_t n)
{
    RETURN(copy(dst, src, n, D2D));
}

hipError_t
hipMemcpyHtoDAsync(void *dst, const void *src, size_t n, void *stream)
{
    RETURN(copy_on(dst, src, n, H2D, stream));
}

hipError_t
hipMemcpyDtoHAsync(void *dst, const void *src, size_t n, void *stream)
{
    RETURN(copy_on(dst, src, n, D2H, stream));
}

hipError_t
hipMemcpyDtoDAsync(void *dst, const void *src, size_t n, void *stream)
{
    RETURN(copy_on(dst, src, n, D2D, stream));
}

hipError_t
hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t n)
{
    if (!sim_hip_device(dst_device) || !sim_hip_device(src_device))
        RETURN(hipErrorInvalidDevice);
    RETURN(copy(dst, src, n, D2D));
}

hipError_t
hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t n, void *stream)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    return hipMemcpyPeer(dst, dst_device, src, src_device, n);
}

hipError_t
hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind)
{
    hipError_t e = hipSuccess;
    if (width > dpitch || width > spitch)
        RETURN(hipErrorInvalidPitchValue);
    for (size_t y = 0; y < height && e == hipSuccess; y++)
        e = copy((char *)dst + y * dpitch, (const char *)src + y * spitch, width, kind);
    RETURN(e);
}

hipError_t
hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                 int kind, void *stream)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    return hipMemcpy2D(dst, dpitch, src, spitch, width, height, kind);
}

/* ---- fills ---- */

/* count elements of `size` bytes (1, 2, 4) */
static hipError_t
fill(void *dst, uint32_t value, uint32_t size, size_t count)
{
    HipDevice *d;
    hipError_t e = sim_hip_check(NULL);
    if (e != hipSuccess || !count)
        return e;
    if (!dst || (uintptr_t)dst % size || count > SIZE_MAX / size || !range_ok(dst, count * size, &d))
        return hipErrorInvalidValue;
    if (size == 1)
        memset(dst, (int)value, count);
    for (size_t i = 0; i < count && size == 2; i++)
        ((uint16_t *)dst)[i] = (uint16_t)value;
    for (size_t i = 0; i < count && size == 4; i++)
        ((uint32_t *)dst)[i] = value;
    if (d)
        sim_mem_define(d->sim->mem, (uint64_t)dst, count * size);
    return hipSuccess;
}

static hipError_t
fill_on(void *dst, uint32_t value, uint32_t size, size_t count, void *stream)
{
    return sim_hip_stream_ok(stream) ? fill(dst, value, size, count) : hipErrorContextIsDestroyed;
}

hipError_t
hipMemset(void *dst, int value, size_t n)
{
    RETURN(fill(dst, (uint32_t)value & 255, 1, n));
}

hipError_t
hipMemsetAsync(void *dst, int value, size_t n, void *stream)
{
    RETURN(fill_on(dst, (uint32_t)value & 255, 1, n, stream));
}

hipError_t
hipMemsetD8(void *dst, unsigned char value, size_t n)
{
    RETURN(fill(dst, value, 1, n));
}

hipError_t
hipMemsetD16(void *dst, unsigned short value, size_t n)
{
    RETURN(fill(dst, value, 2, n));
}

hipError_t
hipMemsetD32(void *dst, int value, size_t n)
{
    RETURN(fill(dst, (uint32_t)value, 4, n));
}

hipError_t
hipMemsetD8Async(void *dst, unsigned char value, size_t n, void *stream)
{
    RETURN(fill_on(dst, value, 1, n, stream));
}

hipError_t
hipMemsetD16Async(void *dst, unsigned short value, size_t n, void *stream)
{
    RETURN(fill_on(dst, value, 2, n, stream));
}

hipError_t
hipMemsetD32Async(void *dst, int value, size_t n, void *stream)
{
    RETURN(fill_on(dst, (uint32_t)value, 4, n, stream));
}

hipError_t
hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
    hipError_t e = hipSuccess;
    if (width > pitch)
        RETURN(hipErrorInvalidPitchValue);
    for (size_t y = 0; y < height && e == hipSuccess; y++)
        e = fill((char *)dst + y * pitch, (uint32_t)value & 255, 1, width);
    RETURN(e);
}

hipError_t
hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, void *stream)
{
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    return hipMemset2D(dst, pitch, value, width, height);
}

hipError_t
hipMemPrefetchAsync(const void *p, size_t n, int device, void *stream)
{
    (void)device;
    if (!p || !n)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_hip_stream_ok(stream) ? hipSuccess : hipErrorContextIsDestroyed);
}

hipError_t
hipMemAdvise(const void *p, size_t n, int advice, int device)
{
    (void)advice;
    (void)device;
    RETURN(p && n ? hipSuccess : hipErrorInvalidValue);
}

/* ---- pointers ---- */

static int
memory_type(const SimExtent *x)
{
    return x->kind == SIM_EXT_PINNED || x->kind == SIM_EXT_ARRAY ? TYPE_HOST : TYPE_DEVICE;
}

static int
ordinal(const HipDevice *d)
{
    int i = 0;
    while (sim_hip_device(i) && sim_hip_device(i) != d)
        i++;
    return i;
}

hipError_t
hipPointerGetAttribute(void *value, int attribute, void *p)
{
    SimExtent x = {0};
    if (!value || !p)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_device_count())
        RETURN(hipErrorNoDevice);
    HipDevice *d = sim_hip_owner(p, &x);
    switch (attribute) {
    case 3: /* device pointer: any host memory is visible to the simulated device */
    case 4: /* host pointer */
        memcpy(value, &p, sizeof p);
        RETURN(hipSuccess);
    case 1: { /* context */
        void *ctx = d ? d : sim_hip_device(sim_hip_current());
        memcpy(value, &ctx, sizeof ctx);
        RETURN(hipSuccess);
    }
    default:
        break;
    }
    if (!d)
        RETURN(hipErrorInvalidValue);
    switch (attribute) {
    case 2: /* memory type */
        *(int *)value = memory_type(&x);
        break;
    case 6: /* sync memops */
    case 8: /* managed */
        *(int *)value = attribute == 6;
        break;
    case 7: /* buffer id */
        memcpy(value, &x.id, 8);
        break;
    case 9:
        *(int *)value = ordinal(d);
        break;
    case 11:
        memcpy(value, &x.base, 8);
        break;
    case 12:
        memcpy(value, &x.size, 8);
        break;
    case 13: /* mapped */
        *(int *)value = 1;
        break;
    default:
        RETURN(hipErrorInvalidValue);
    }
    RETURN(hipSuccess);
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
    PointerAttributes a = {.type = TYPE_UNREGISTERED, .device = d ? ordinal(d) : -2};
    if (d) {
        a.type = memory_type(&x);
        a.device_pointer = (void *)p;
        a.host_pointer = a.type == TYPE_HOST ? (void *)p : NULL;
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
        if (hipPointerGetAttribute(values[i], attributes[i], p) != hipSuccess && values[i])
            *(int *)values[i] = 0;
    (void)sim_hip_last(true);
    RETURN(hipSuccess);
}
