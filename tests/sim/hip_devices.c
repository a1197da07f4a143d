/* hip_devices.c - two devices and asynchronous errors from a C program on the real HIP headers. Built and run
 * by test_sim_hip_c.py; argument: a code object whose kernel k(in, out, c) adds c to dwords, 64 threads a
 * workgroup. */
#include "hip_check.h"

enum { N = 256 };
static int host[N];

static void
launch(hipFunction_t f, int *in, int *out, int c, int groups)
{
    void *params[] = {&in, &out, &c};
    OK(hipModuleLaunchKernel(f, groups, 1, 1, 64, 1, 1, 0, 0, params, NULL));
}

static void
expect(const int *dev, int plus)
{
    OK(hipMemcpy(host, dev, sizeof host, hipMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == i + plus);
}

static void
occupancy(hipFunction_t f)
{
    int n = 0, grid = 0, block = 0;
    hipDeviceProp_t p;
    OK(hipGetDeviceProperties(&p, 0));
    CHECK(p.multiProcessorCount == 8);
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 1024, 0));
    CHECK(n == 2);
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 64, 40000));
    CHECK(n == 1);
    OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0));
    CHECK(block == 1024 && grid == 2 * 8);
    int chosen = -1;
    OK(hipChooseDevice(&chosen, &p));
    CHECK(chosen == 0);
}

/* Copies between devices in one, two and three dimensions. */
static void
peers(hipFunction_t f, int *near, int *out)
{
    int *far, can = 0;
    OK(hipDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    OK(hipSetDevice(1));
    OK(hipMalloc((void **)&far, N * 4));
    OK(hipSetDevice(0));
    OK(hipMemcpyPeer(far, 1, near, 0, N * 4));
    OK(hipMemset(out, 0, N * 4));
    OK(hipMemcpyPeerAsync(out, 0, far, 1, N * 4, 0));
    expect(out, 0);
    OK(hipMemset(out, 0, N * 4));
    OK(hipMemcpy2D(out, 64, far, 64, 64, N / 16, hipMemcpyDefault));
    expect(out, 0);
    hipMemcpy3DParms p;
    memset(&p, 0, sizeof p);
    p.srcPtr = (hipPitchedPtr){far, 64, 64, 4};
    p.dstPtr = (hipPitchedPtr){out, 64, 64, 4};
    p.extent = (hipExtent){64, 4, 4};
    p.kind = hipMemcpyDefault;
    OK(hipMemset(out, 0, N * 4));
    OK(hipMemcpy3D(&p));
    expect(out, 0);
    IS(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(1));
    OK(hipDeviceEnablePeerAccess(1, 0));
    IS(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0));
    launch(f, far, out, 6, N / 64);
    expect(out, 6);
    OK(hipFree(far));
    (void)hipGetLastError();
}

/* The launch succeeds; its fault is what all later calls answer, on this device alone, until it is reset. */
static void
errors(hipFunction_t f, int *in, int *out)
{
    hipStream_t s;
    hipEvent_t e;
    hipModule_t m;
    OK(hipStreamCreate(&s));
    OK(hipEventCreate(&e));
    launch(f, in, out, 0, N / 64 + 1);
    IS(hipErrorIllegalAddress, hipStreamSynchronize(s));
    IS(hipErrorIllegalAddress, hipDeviceSynchronize());
    IS(hipErrorIllegalAddress, hipEventRecord(e, s));
    IS(hipErrorIllegalAddress, hipEventSynchronize(e));
    IS(hipErrorIllegalAddress, hipMemcpy(host, out, 4, hipMemcpyDeviceToHost));
    IS(hipErrorIllegalAddress, hipGetLastError());
    IS(hipErrorIllegalAddress, hipGetLastError());
    OK(hipSetDevice(1));
    OK(hipDeviceSynchronize());
    OK(hipSetDevice(0));
    OK(hipDeviceReset());
    OK(hipDeviceSynchronize());
    launch(f, in, out, 9, N / 64);
    expect(out, 9);
    IS(hipErrorFileNotFound, hipModuleLoad(&m, "/nonexistent"));
    IS(hipErrorFileNotFound, hipGetLastError());
    OK(hipGetLastError());
    OK(hipEventDestroy(e));
    OK(hipStreamDestroy(s));
}

int
main(int argc, char **argv)
{
    hipModule_t m;
    hipFunction_t f;
    int *in, *out, n = 0;
    CHECK(argc == 2);
    OK(hipGetDeviceCount(&n));
    CHECK(n == 2);
    OK(hipModuleLoad(&m, argv[1]));
    OK(hipModuleGetFunction(&f, m, "k"));
    OK(hipMalloc((void **)&in, N * 4));
    OK(hipMalloc((void **)&out, N * 4));
    for (int i = 0; i < N; i++)
        host[i] = i;
    OK(hipMemcpy(in, host, N * 4, hipMemcpyHostToDevice));
    occupancy(f);
    peers(f, in, out);
    errors(f, in, out);
    OK(hipModuleUnload(m));
    unsigned long long launches = 0, instructions = 0;
    extern void tlsim_counters(void *, unsigned long long *, unsigned long long *);
    tlsim_counters(NULL, &launches, &instructions);
    printf("%llu launches, %llu instructions\n", launches, instructions);
    return 0;
}
