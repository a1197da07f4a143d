/* hip_memory.c - HIP: allocation and copies. A copy or fill that starts in an
 * allocation and runs past its end is refused; a host pointer nobody told us about is used as it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/hip_graph.h"

enum { H2H, H2D, D2H, D2D, DEFAULT_KIND, D2D_NOCU = 1024 };
enum { TYPE_HOST = 1 };

/* ---- allocation ---- */

static hipError_t
allocate_on(HipDevice *d, void **p, size_t n, SimExtentKind kind, uint64_t tag)
{
    hipError_t e = sim_hip_check(NULL);
    if (!p)
        return hipErrorInvalidValue;
    *p = NULL;
    if (e == hipSuccess)
        e = sim_hip_unsafe();
    if (e != hipSuccess || !n)
        return e;
    uint64_t limit = d->sim->chip->dram_gib << 30;
    if (kind == SIM_EXT_MALLOC && (n > limit || sim_mem_bytes(d->sim->mem) > limit - n))
        return hipErrorOutOfMemory;
    *p = sim_mem_alloc(d->sim->mem, n, kind, kind == SIM_EXT_PINNED, NULL);
    if (*p && tag) {
        sim_mem_tag(d->sim->mem, (uint64_t)*p, tag);
        sim_hip_pool_change(tag, n, true);
    }
    return *p ? hipSuccess : hipErrorOutOfMemory;
}

static hipError_t
allocate(void **p, size_t n, SimExtentKind kind, uint64_t tag)
{
    return allocate_on(sim_hip_device(sim_hip_current()), p, n, kind, tag);
}

static hipError_t
release(void *p, SimExtentKind kind)
{
    if (!p)
        return hipSuccess;
    if (!sim_hip_device_count())
        return hipErrorNoDevice;
    hipError_t e = sim_hip_unsafe();
    if (e != hipSuccess)
        return e;
    SimExtent x;
    HipDevice *d = sim_hip_owner(p, &x);
    if (!d || x.tag & (SIM_TAG_VIRTUAL | SIM_TAG_IPC) || !sim_device_release(d->sim, (uint64_t)p, kind))
        return hipErrorInvalidValue;
    sim_hip_forget_hints(x.base, x.size);
    sim_hip_pool_change(x.tag, x.size, false);
    return hipSuccess;
}

hipError_t
hipMalloc(void **p, size_t n)
{
    RETURN(allocate(p, n, SIM_EXT_MALLOC, 0));
}

hipError_t
hipExtMallocWithFlags(void **p, size_t n, unsigned flags)
{
    /* fine-grained, signals (a dword or two), uncached, contiguous */
    if (flags > 4 || (flags == 2 && n != 8))
        RETURN(hipErrorInvalidValue);
    RETURN(allocate(p, n, SIM_EXT_MALLOC, flags));
}

hipError_t
hipMallocManaged(void **p, size_t n, unsigned flags)
{
    if ((flags != 1 && flags != 2) || !n)
        RETURN(hipErrorInvalidValue);
    RETURN(allocate(p, n, SIM_EXT_PINNED, SIM_TAG_MANAGED));
}

hipError_t
sim_hip_malloc_async(void **p, size_t n, void *stream, int device, uint64_t tag)
{
    HipStream *capturing;
    Node node;
    if (!sim_hip_stream_ok(stream))
        return hipErrorInvalidHandle;
    if (!p)
        return hipErrorInvalidValue;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e != hipSuccess || !capturing)
        return e == hipSuccess ? allocate_on(sim_hip_device(device), p, n, SIM_EXT_MALLOC, tag) : e;
    if ((e = sim_graph_alloc_node(n, &node)) == hipSuccess) {
        void *memory = node.mem->p;
        e = sim_hip_capture(capturing, &node);
        *p = e == hipSuccess ? memory : NULL;
    }
    return e;
}

hipError_t
hipMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    if (!pitch)
        RETURN(hipErrorInvalidValue);
    *pitch = (width + 255) & ~(size_t)255;
    if (*pitch && height > SIZE_MAX / *pitch)
        RETURN(hipErrorOutOfMemory);
    RETURN(allocate(p, *pitch * height, SIM_EXT_MALLOC, 0));
}

hipError_t
hipMemAllocPitch(void **p, size_t *pitch, size_t width, size_t height, unsigned element)
{
    if (element != 4 && element != 8 && element != 16)
        RETURN(hipErrorInvalidValue);
    return hipMallocPitch(p, pitch, width, height);
}

hipError_t
hipMalloc3D(SimPitched *p, SimExtent3 extent)
{
    size_t pitch;
    void *m = NULL;
    if (!p || (extent.height && extent.depth > SIZE_MAX / extent.height))
        RETURN(hipErrorInvalidValue);
    hipError_t e = hipMallocPitch(&m, &pitch, extent.width, extent.height * extent.depth);
    if (e == hipSuccess)
        *p = (SimPitched){m, pitch, extent.width, extent.height};
    RETURN(e);
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
    HipStream *capturing;
    if (!p)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess && capturing)
        RETURN(sim_hip_capture(capturing, &(Node){.kind = NODE_FREE, .freed = p}));
    return e == hipSuccess ? hipFree(p) : sim_hip_result(e);
}

hipError_t
hipHostMalloc(void **p, size_t n, unsigned flags)
{
    const unsigned both = 0xc0000000u; /* coherent and not */
    if (flags & ~(both | 0x30000007u) || (flags & both) == both)
        RETURN(hipErrorInvalidValue);
    RETURN(allocate(p, n, SIM_EXT_PINNED, flags));
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
hipMemAllocHost(void **p, size_t n)
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
    HipDevice *d;
    hipError_t e = sim_hip_check(&d);
    if (!p || !n || flags & ~0x8000000fu)
        RETURN(hipErrorInvalidValue);
    if (e != hipSuccess)
        RETURN(e);
    if (!sim_hip_mapped(p, n)) /* a kernel would find nothing there */
        RETURN(hipErrorInvalidValue);
    if (!sim_mem_add(d->sim->mem, p, n, SIM_EXT_PINNED, 0, NULL))
        RETURN(hipErrorHostMemoryAlreadyRegistered);
    sim_mem_tag(d->sim->mem, (uint64_t)p, SIM_TAG_REGISTERED | flags);
    RETURN(hipSuccess);
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
    SimExtent x;
    if (!dev || !host || flags || !sim_hip_owner(host, &x))
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
    *flags = (unsigned)x.tag;
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

/* Is something there? Memory of the device that was freed is not, nor are addresses beyond 64 bits. */
bool
sim_hip_mapped(const void *p, size_t n)
{
    uintptr_t first = (uintptr_t)p & ~(uintptr_t)4095;
    size_t bytes = n + ((uintptr_t)p - first);
    if (bytes < n || first > UINTPTR_MAX - bytes)
        return false;
    return !msync((void *)first, bytes, MS_ASYNC) || errno != ENOMEM;
}

/* May the host use memory that is in no allocation? What lies behind the end of one is none of the host's. */
static bool
host_range_ok(const void *p, size_t n)
{
    for (int i = 0; i < sim_hip_device_count(); i++)
        if (sim_mem_touches(sim_hip_device(i)->sim->mem, (uint64_t)p, n))
            return false;
    return sim_hip_mapped(p, n) && !sim_hip_virtual_touches(p, n);
}

bool
sim_hip_range_ok(const void *p, size_t n, HipDevice **d)
{
    SimExtent x;
    *d = sim_hip_owner(p, &x);
    if (!*d)
        return host_range_ok(p, n);
    return !(x.flags & SIM_EXT_DENSE) || x.size - ((uint64_t)p - x.base) >= n;
}

bool
sim_hip_rows_ok(const void *p, size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    SimExtent x;
    size_t rows, slices, end;
    if (!width || !height || !depth || !sim_hip_owner(p, &x) || !(x.flags & SIM_EXT_DENSE))
        return true; /* each row is looked at */
    return !__builtin_mul_overflow(height - 1, pitch, &rows) &&
           !__builtin_mul_overflow(depth - 1, slice, &slices) &&
           !__builtin_add_overflow(rows, slices, &end) && !__builtin_add_overflow(end, width, &end) &&
           end <= x.size - ((uint64_t)p - x.base);
}

hipError_t
sim_hip_copy(void *dst, const void *src, size_t n, int kind)
{
    HipDevice *to, *from;
    hipError_t e = sim_hip_check(NULL);
    if (e != hipSuccess || !n)
        return e;
    if (!dst || !src)
        return hipErrorInvalidValue;
    if ((kind < H2H || kind > DEFAULT_KIND) && kind != D2D_NOCU)
        return hipErrorInvalidMemcpyDirection;
    if (!sim_hip_range_ok(dst, n, &to) || !sim_hip_range_ok(src, n, &from))
        return hipErrorInvalidValue;
    sim_dm_move((uint64_t)dst, (uint64_t)src, n);
    if (to && to == from)
        sim_mem_copy_defined(to->sim->mem, (uint64_t)dst, (uint64_t)src, n);
    else if (to)
        sim_mem_define(to->sim->mem, (uint64_t)dst, n);
    return hipSuccess;
}

static hipError_t
copy(void *dst, const void *src, size_t n, int kind)
{
    hipError_t e = sim_hip_enter_sync();
    return e == hipSuccess ? sim_hip_copy(dst, src, n, kind) : e;
}

/* Rows on a stream: run, or kept as a node. */
static hipError_t
copy_rows(const HipCopy *c, void *stream)
{
    HipStream *capturing;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e != hipSuccess)
        return e;
    return capturing ? sim_hip_capture(capturing, &(Node){.kind = NODE_COPY, .copy = *c})
                     : sim_hip_run_copy(c);
}

static hipError_t
copy_on(void *dst, const void *src, size_t n, int kind, void *stream)
{
    return copy_rows(&(HipCopy){.dst = dst, .src = src, .width = n, .height = 1, .depth = 1, .kind = kind},
                     stream);
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
    if (!sim_hip_device(dst_device) || !sim_hip_device(src_device))
        RETURN(hipErrorInvalidDevice);
    RETURN(copy_on(dst, src, n, D2D, stream));
}

static hipError_t
rows_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind,
        HipCopy *out)
{
    *out = (HipCopy){.dst = dst,
                     .src = src,
                     .width = width,
                     .height = height,
                     .depth = 1,
                     .dst_pitch = dpitch,
                     .src_pitch = spitch,
                     .kind = kind};
    return width > dpitch || width > spitch ? hipErrorInvalidPitchValue : hipSuccess;
}

/* Rows, when the call returns. */
static hipError_t
copy_sync(const HipCopy *c)
{
    hipError_t e = sim_hip_enter_sync();
    return e == hipSuccess ? sim_hip_run_copy(c) : e;
}

hipError_t
hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind)
{
    HipCopy c;
    hipError_t e = rows_2d(dst, dpitch, src, spitch, width, height, kind, &c);
    RETURN(e == hipSuccess ? copy_sync(&c) : e);
}

hipError_t
hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                 int kind, void *stream)
{
    HipCopy c;
    hipError_t e = rows_2d(dst, dpitch, src, spitch, width, height, kind, &c);
    RETURN(e == hipSuccess ? copy_rows(&c, stream) : e);
}

hipError_t
hipMemcpy3D(const void *params)
{
    HipCopy c;
    hipError_t e = params ? sim_graph_copy_3d(params, &c) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? copy_sync(&c) : e);
}

hipError_t
hipMemcpy3DAsync(const void *params, void *stream)
{
    HipCopy c;
    hipError_t e = params ? sim_graph_copy_3d(params, &c) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? copy_rows(&c, stream) : e);
}

hipError_t
hipDrvMemcpy3D(const void *params)
{
    HipCopy c;
    hipError_t e = params ? sim_graph_copy_drv(params, &c) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? copy_sync(&c) : e);
}

hipError_t
hipDrvMemcpy3DAsync(const void *params, void *stream)
{
    HipCopy c;
    hipError_t e = params ? sim_graph_copy_drv(params, &c) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? copy_rows(&c, stream) : e);
}

typedef struct Side2D { /* half of hip_Memcpy2D */
    size_t x, y;
    int type;
    char *host, *device;
    void *array;
    size_t pitch;
} Side2D;

typedef struct Param2D { /* hip_Memcpy2D */
    Side2D src, dst;
    size_t width, height;
} Param2D;

static char *
start_2d(const Side2D *s)
{
    char *p = s->type == TYPE_HOST ? s->host : s->device;
    return p ? p + s->x + s->y * s->pitch : NULL;
}

static hipError_t
read_2d(const void *params, HipCopy *out)
{
    static atomic_bool said;
    Param2D p;
    if (!params)
        return hipErrorInvalidValue;
    memcpy(&p, params, sizeof p);
    if (p.src.array || p.dst.array)
        return sim_hip_refuse("a copy from or to an array (hipMemcpyParam2D)", &said);
    return rows_2d(start_2d(&p.dst), p.dst.pitch ? p.dst.pitch : p.width, start_2d(&p.src),
                   p.src.pitch ? p.src.pitch : p.width, p.width, p.height, DEFAULT_KIND, out);
}

hipError_t
hipMemcpyParam2D(const void *params)
{
    HipCopy c;
    hipError_t e = read_2d(params, &c);
    RETURN(e == hipSuccess ? copy_sync(&c) : e);
}

hipError_t
hipMemcpyParam2DAsync(const void *params, void *stream)
{
    HipCopy c;
    hipError_t e = read_2d(params, &c);
    RETURN(e == hipSuccess ? copy_rows(&c, stream) : e);
}

hipError_t
hipDrvMemcpy2DUnaligned(const void *params)
{
    return hipMemcpyParam2D(params);
}
