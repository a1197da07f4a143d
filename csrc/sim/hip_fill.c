/* hip_fill.c - HIP: fills, at once or on a stream. */
#include "sim/hip_graph.h"

hipError_t
sim_hip_fill(void *dst, uint32_t value, uint32_t size, size_t count)
{
    HipDevice *d;
    hipError_t e = sim_hip_check(NULL);
    if (e != hipSuccess || !count)
        return e;
    if (!dst || (uintptr_t)dst % size || count > SIZE_MAX / size || !sim_hip_range_ok(dst, count * size, &d))
        return hipErrorInvalidValue;
    if (size == 1)
        sim_dm_fill8((uint64_t)dst, (uint8_t)value, count);
    else if (size == 2)
        sim_dm_fill16((uint64_t)dst, (uint16_t)value, count);
    else
        sim_dm_fill32((uint64_t)dst, value, count);
    if (d)
        sim_mem_define(d->sim->mem, (uint64_t)dst, count * size);
    return hipSuccess;
}

static HipMemset
row(void *dst, uint32_t value, uint32_t size, size_t count)
{
    return (HipMemset){.dst = dst, .element = size, .height = 1, .value = value, .width = count};
}

/* Fills when the call returns. */
static hipError_t
fill(const HipMemset *f)
{
    hipError_t e = sim_hip_enter_sync();
    return e == hipSuccess ? sim_hip_run_fill(f) : e;
}

static hipError_t
fill_on(const HipMemset *f, void *stream)
{
    HipStream *capturing;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e != hipSuccess)
        return e;
    return capturing ? sim_hip_capture(capturing, &(Node){.kind = NODE_MEMSET, .fill = *f})
                     : sim_hip_run_fill(f);
}

hipError_t
hipMemset(void *dst, int value, size_t n)
{
    HipMemset f = row(dst, (uint32_t)value & 255, 1, n);
    RETURN(fill(&f));
}

hipError_t
hipMemsetAsync(void *dst, int value, size_t n, void *stream)
{
    HipMemset f = row(dst, (uint32_t)value & 255, 1, n);
    RETURN(fill_on(&f, stream));
}

hipError_t
hipMemsetD8(void *dst, unsigned char value, size_t n)
{
    HipMemset f = row(dst, value, 1, n);
    RETURN(fill(&f));
}

hipError_t
hipMemsetD16(void *dst, unsigned short value, size_t n)
{
    HipMemset f = row(dst, value, 2, n);
    RETURN(fill(&f));
}

hipError_t
hipMemsetD32(void *dst, int value, size_t n)
{
    HipMemset f = row(dst, (uint32_t)value, 4, n);
    RETURN(fill(&f));
}

hipError_t
hipMemsetD8Async(void *dst, unsigned char value, size_t n, void *stream)
{
    HipMemset f = row(dst, value, 1, n);
    RETURN(fill_on(&f, stream));
}

hipError_t
hipMemsetD16Async(void *dst, unsigned short value, size_t n, void *stream)
{
    HipMemset f = row(dst, value, 2, n);
    RETURN(fill_on(&f, stream));
}

hipError_t
hipMemsetD32Async(void *dst, int value, size_t n, void *stream)
{
    HipMemset f = row(dst, (uint32_t)value, 4, n);
    RETURN(fill_on(&f, stream));
}

/* ---- rows ---- */

static hipError_t
rows(void *dst, size_t pitch, uint32_t value, uint32_t size, size_t width, size_t height, HipMemset *out)
{
    *out = (HipMemset){
        .dst = dst, .element = size, .height = height, .pitch = pitch, .value = value, .width = width};
    return width > pitch / size && height > 1 ? hipErrorInvalidPitchValue : hipSuccess;
}

#define ROWS(name, type, size, mask)                                                                         \
    hipError_t name(void *dst, size_t pitch, type value, size_t width, size_t height)                        \
    {                                                                                                        \
        HipMemset f;                                                                                         \
        hipError_t e = rows(dst, pitch, (uint32_t)value & mask, size, width, height, &f);                    \
        RETURN(e == hipSuccess ? fill(&f) : e);                                                              \
    }                                                                                                        \
    hipError_t name##Async(void *dst, size_t pitch, type value, size_t width, size_t height, void *stream)   \
    {                                                                                                        \
        HipMemset f;                                                                                         \
        hipError_t e = rows(dst, pitch, (uint32_t)value & mask, size, width, height, &f);                    \
        RETURN(e == hipSuccess ? fill_on(&f, stream) : e);                                                   \
    }
ROWS(hipMemset2D, int, 1, 255u)
ROWS(hipMemsetD2D8, unsigned char, 1, 255u)
ROWS(hipMemsetD2D16, unsigned short, 2, 0xffffu)
ROWS(hipMemsetD2D32, unsigned, 4, 0xffffffffu)

/* Slices of a hipPitchedPtr. */
static hipError_t
slices(SimPitched p, int value, SimExtent3 extent, bool sync, void *stream)
{
    hipError_t e = hipSuccess;
    if (extent.width > p.pitch)
        return hipErrorInvalidValue;
    size_t depth = extent.width && extent.height ? extent.depth : TL_MIN(extent.depth, 1), slice;
    if (__builtin_mul_overflow(p.pitch, p.ysize, &slice) ||
        !sim_hip_rows_ok(p.ptr, extent.width, extent.height, depth, p.pitch, slice))
        return hipErrorInvalidValue;
    for (size_t z = 0; z < depth && e == hipSuccess; z++) {
        HipMemset f;
        rows((char *)p.ptr + z * p.pitch * p.ysize, p.pitch, (uint32_t)value & 255, 1, extent.width,
             extent.height, &f);
        e = sync ? fill(&f) : fill_on(&f, stream);
    }
    return e;
}

hipError_t
hipMemset3D(SimPitched p, int value, SimExtent3 extent)
{
    RETURN(slices(p, value, extent, true, NULL));
}

hipError_t
hipMemset3DAsync(SimPitched p, int value, SimExtent3 extent, void *stream)
{
    RETURN(slices(p, value, extent, false, stream));
}
