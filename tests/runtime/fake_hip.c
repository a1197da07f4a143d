/* fake_hip.c - a HIP library that keeps what it is given and runs nothing. For the runtime's tests.
 * -DNO_DEVICE: a ROCm runtime without a GPU. -DLACKS_LAUNCH: not all functions. -DGET_PROC: symbols through
 * hipGetProcAddress only. -DPRIVATE: the simulator's own rows too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GET_PROC
#define API static
#else
#define API __attribute__((visibility("default")))
#endif

struct {
    uint64_t kernarg[64];
    uint64_t kernarg_size;
    uint32_t grid[3], block[3], lds;
    uint64_t stream;
    uint32_t launches, loads, unloads, registered, alive, get_last_error, device, set_device;
    int32_t next_error;
    struct {
        uint64_t data;
        int64_t shape[8], strides[8];
        uint32_t ndim, itemsize;
        char name[32];
    } reg[8];
    char report[512];
} fake;

#ifdef NO_DEVICE
enum { INIT = 100, COUNT = 0 };
#else
enum { INIT = 0, COUNT = 2 };
#endif

API int
hipInit(unsigned flags)
{
    (void)flags;
    return INIT;
}
__attribute__((visibility("default"))) int
hipDriverGetVersion(int *v)
{
    *v = 70200000;
    return 0;
}
API int
hipGetDeviceCount(int *n)
{
    *n = COUNT;
    return INIT;
}
API int
hipGetDevice(int *d)
{
    *d = (int)fake.device;
    return 0;
}
API int
hipSetDevice(int d)
{
    fake.device = (uint32_t)d;
    fake.set_device++;
    return 0;
}
API int
hipGetDevicePropertiesR0600(void *p, int d)
{
    memset(p, 0, 1472);
    strcpy((char *)p + 1160, d == 0 ? "gfx942:sramecc+:xnack-" : "gfx1100");
    ((int32_t *)p)[388 / 4] = 304;
    return 0;
}
API const char *
hipGetErrorName(int e)
{
    return e == 100   ? "hipErrorNoDevice"
           : e == 700 ? "hipErrorIllegalAddress"
           : e == 209 ? "hipErrorNoBinaryForGpu"
                      : "hipSuccess";
}
API const char *
hipGetErrorString(int e)
{
    return e == 700 ? "an illegal memory access was encountered" : e ? "some text" : "no error";
}
API int
hipGetLastError(void)
{
    fake.get_last_error++;
    return 0;
}
API int
hipDeviceSynchronize(void)
{
    return 0;
}
API int
hipStreamSynchronize(void *s)
{
    (void)s;
    return 0;
}
API int
hipMalloc(void **p, size_t n)
{
    *p = malloc(n);
    return *p ? 0 : 2;
}
API int
hipFree(void *p)
{
    free(p);
    return 0;
}
API int
hipMemcpy(void *to, const void *from, size_t n, int kind)
{
    (void)kind;
    memcpy(to, from, n);
    return 0;
}
API int
hipMemset(void *to, int v, size_t n)
{
    memset(to, v, n);
    return 0;
}
API int
hipModuleLoadData(void **m, const void *image)
{
    if (memcmp(image, "BAD", 3) == 0)
        return 209;
    *m = (void *)(uintptr_t)(0x1000 + fake.loads++);
    return 0;
}
API int
hipModuleUnload(void *m)
{
    (void)m;
    fake.unloads++;
    return 0;
}
API int
hipModuleGetFunction(void **f, void *m, const char *name)
{
    (void)name;
    *f = m;
    return 0;
}
#ifndef LACKS_LAUNCH
API int
hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned lds, void *stream, void **params, void **extra)
{
    (void)f;
    (void)params;
    fake.launches++;
    fake.kernarg_size = *(size_t *)extra[3];
    memcpy(fake.kernarg, extra[1],
           fake.kernarg_size < sizeof fake.kernarg ? fake.kernarg_size : sizeof fake.kernarg);
    fake.grid[0] = gx;
    fake.grid[1] = gy;
    fake.grid[2] = gz;
    fake.block[0] = bx;
    fake.block[1] = by;
    fake.block[2] = bz;
    fake.lds = lds;
    fake.stream = (uint64_t)(uintptr_t)stream;
    int e = fake.next_error;
    fake.next_error = 0;
    return e;
}
#endif
#ifdef GET_PROC
__attribute__((visibility("default"))) int
hipGetProcAddress(const char *name, void **fn, int version, uint64_t flags, int *status)
{
    static const struct {
        const char *name;
        void *fn;
    } rows[] = {
#define R(x) {#x, (void *)x}
        R(hipInit),
        R(hipGetDeviceCount),
        R(hipGetDevice),
        R(hipSetDevice),
        R(hipGetDevicePropertiesR0600),
        R(hipGetErrorName),
        R(hipGetErrorString),
        R(hipGetLastError),
        R(hipDeviceSynchronize),
        R(hipStreamSynchronize),
        R(hipMalloc),
        R(hipFree),
        R(hipMemcpy),
        R(hipMemset),
        R(hipModuleLoadData),
        R(hipModuleUnload),
        R(hipModuleGetFunction),
        R(hipModuleLaunchKernel)};
    (void)flags;
    (void)status;
    *fn = NULL;
    if (version != 70200000)
        return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            *fn = rows[i].fn;
    return *fn ? 0 : 500;
}
#endif
#ifdef PRIVATE
uint64_t
tlsim_register(const void *data, uint32_t ndim, const int64_t *shape, const int64_t *strides,
               uint32_t itemsize, const char *name)
{
    uint32_t i = fake.registered++ % 8;
    fake.alive++;
    fake.reg[i].data = (uint64_t)(uintptr_t)data;
    fake.reg[i].ndim = ndim;
    fake.reg[i].itemsize = itemsize;
    snprintf(fake.reg[i].name, sizeof fake.reg[i].name, "%s", name);
    memcpy(fake.reg[i].shape, shape, ndim * sizeof *shape);
    memcpy(fake.reg[i].strides, strides, ndim * sizeof *strides);
    return fake.registered;
}
int
tlsim_unregister(uint64_t id)
{
    fake.alive--;
    return id != 0;
}
size_t
tlsim_last_report(char *buf, size_t cap)
{
    const char *text = fake.report[0] ? fake.report : "[]";
    if (cap)
        snprintf(buf, cap, "%s", text);
    return strlen(text);
}
#endif
