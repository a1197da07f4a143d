/* hip_client.c - a C host program on the real HIP headers: layouts, launches by every entry point,
 * attributes. Built and run by test_sim_hip_c.py; argument: a code object whose kernel k(in, out, c) adds c
 * to dwords, 64 threads a workgroup. */
#include "hip_check.h"

enum { N = 256 };

static void
expect(const int *dev, int plus)
{
    int host[N];
    OK(hipMemcpyDtoH(host, (hipDeviceptr_t)dev, sizeof host));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == i + plus);
}

static void
properties(void)
{
    hipDeviceProp_t p;
    int v;
    memset(&p, 0xff, sizeof p);
    OK(hipGetDeviceProperties(&p, 0));
    CHECK(!strncmp(p.gcnArchName, "gfx942", 6) && strstr(p.name, "MI300X"));
    CHECK(p.warpSize == 64 && p.multiProcessorCount == 304 && p.maxThreadsPerBlock == 1024);
    CHECK(p.maxThreadsDim[0] == 1024 && p.maxGridSize[0] == 2147483647 && p.sharedMemPerBlock == 65536);
    CHECK(p.major == 9 && p.minor == 4 && p.totalGlobalMem == (size_t)192 << 30 && p.l2CacheSize == 4 << 20);
    CHECK(p.maxThreadsPerMultiProcessor == 2048 && p.cooperativeLaunch == 1 &&
          p.maxSharedMemoryPerMultiProcessor == 65536);
    CHECK(p.memoryBusWidth == 8192 && p.clockRate == 2100000 && p.regsPerBlock == 65536 &&
          p.unifiedAddressing == 1);
    CHECK(p.arch.hasDoubles == 1 && p.arch.hasWarpBallot == 1 && p.arch.hasDynamicParallelism == 0);
    OK(hipDeviceGetAttribute(&v, hipDeviceAttributeWarpSize, 0));
    CHECK(v == p.warpSize);
    OK(hipDeviceGetAttribute(&v, hipDeviceAttributeMultiprocessorCount, 0));
    CHECK(v == p.multiProcessorCount);
    OK(hipDeviceGetAttribute(&v, hipDeviceAttributeMaxSharedMemoryPerBlock, 0));
    CHECK((size_t)v == p.sharedMemPerBlock);
}

static void
pointers(int *dev, int *host)
{
    hipPointerAttribute_t a;
    void *p;
    size_t n;
    int own = 0;
    OK(hipPointerGetAttributes(&a, dev + 3));
    CHECK(a.type == hipMemoryTypeDevice && a.device == 0 && a.devicePointer == dev + 3);
    OK(hipPointerGetAttributes(&a, host));
    CHECK(a.type == hipMemoryTypeHost);
    OK(hipPointerGetAttributes(&a, &own));
    CHECK(a.type == hipMemoryTypeUnregistered);
    OK(hipPointerGetAttribute(&p, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, dev + 7));
    CHECK(p == dev);
    OK(hipMemGetAddressRange(&p, &n, (hipDeviceptr_t)(dev + 7)));
    CHECK(p == dev && n == N * sizeof(int));
}

static void
launches(hipFunction_t f, int *in, int *out)
{
    int c = 1;
    void *params[] = {&in, &out, &c};
    OK(hipModuleLaunchKernel(f, N / 64, 1, 1, 64, 1, 1, 0, 0, params, NULL));
    expect(out, 1);
    struct {
        int *in, *out;
        int c;
    } packed = {in, out, 2};
    size_t size = sizeof packed;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    OK(hipModuleLaunchKernel(f, N / 64, 1, 1, 64, 1, 1, 0, 0, NULL, extra));
    expect(out, 2);
    c = 3;
    OK(hipModuleLaunchCooperativeKernel(f, N / 64, 1, 1, 64, 1, 1, 0, 0, params));
    expect(out, 3);
    hipStream_t s;
    OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    hipLaunchAttribute attr;
    memset(&attr, 0, sizeof attr);
    attr.id = hipLaunchAttributeCooperative;
    attr.val.cooperative = 1;
    HIP_LAUNCH_CONFIG config = {.gridDimX = N / 64,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = 64,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .sharedMemBytes = 0,
                                .hStream = s,
                                .attrs = &attr,
                                .numAttrs = 1};
    c = 4;
    OK(hipDrvLaunchKernelEx(&config, f, params, NULL));
    OK(hipStreamSynchronize(s));
    expect(out, 4);
    config.gridDimX = 1u << 20;
    CHECK(hipDrvLaunchKernelEx(&config, f, params, NULL) == hipErrorCooperativeLaunchTooLarge);
    CHECK(hipGetLastError() == hipErrorCooperativeLaunchTooLarge && hipGetLastError() == hipSuccess);
    OK(hipStreamDestroy(s));
}

static void
events(void)
{
    hipEvent_t a, b;
    float ms = -1;
    OK(hipEventCreate(&a));
    OK(hipEventCreateWithFlags(&b, hipEventDefault));
    OK(hipEventRecord(a, 0));
    OK(hipEventRecord(b, 0));
    OK(hipEventSynchronize(b));
    OK(hipEventElapsedTime(&ms, a, b));
    CHECK(ms >= 0 && ms < 1000);
    OK(hipEventDestroy(a));
    OK(hipEventDestroy(b));
}

static void
copies(void)
{
    unsigned char *d, h[12 * 4], back[5 * 4];
    size_t pitch;
    OK(hipMallocPitch((void **)&d, &pitch, 12, 4));
    CHECK(pitch >= 12);
    for (int i = 0; i < 48; i++)
        h[i] = (unsigned char)i;
    OK(hipMemcpy2D(d, pitch, h, 12, 12, 4, hipMemcpyHostToDevice));
    OK(hipMemcpy2D(back, 5, d + 3, pitch, 5, 4, hipMemcpyDeviceToHost));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 5; x++)
            CHECK(back[5 * y + x] == 12 * y + x + 3);
    OK(hipMemset2D(d, pitch, 9, 4, 2));
    OK(hipMemsetD32((hipDeviceptr_t)(d + pitch * 2), 0x01020304, 2));
    OK(hipMemcpy(back, d + pitch * 2, 4, hipMemcpyDeviceToHost));
    CHECK(back[0] == 4 && back[3] == 1);
    OK(hipFree(d));
}

static void
host_fn(void *user)
{
    ++*(int *)user;
}

/* memset out -> kernel(in, out, 10) -> copy to host, and a host call; run twice, then with another constant.
 */
static void
graphs(hipFunction_t f, int *in, int *out, int *host)
{
    hipGraph_t g;
    hipGraphExec_t x;
    hipGraphNode_t set, run, copy, call, empty, nodes[8];
    hipGraphExecUpdateResult result;
    int c = 10, calls = 0;
    size_t n = 8;
    void *params[] = {&in, &out, &c};
    hipMemsetParams mp = {.dst = out, .elementSize = 4, .height = 1, .pitch = 0, .value = 3, .width = N};
    hipKernelNodeParams kp;
    memset(&kp, 0, sizeof kp);
    kp.func = f;
    kp.gridDim.x = N / 64, kp.gridDim.y = 1, kp.gridDim.z = 1;
    kp.blockDim.x = 64, kp.blockDim.y = 1, kp.blockDim.z = 1;
    kp.kernelParams = params;
    hipHostNodeParams hp = {host_fn, &calls};
    HIP_MEMCPY3D cp;
    memset(&cp, 0, sizeof cp);
    cp.srcMemoryType = hipMemoryTypeDevice, cp.srcDevice = (hipDeviceptr_t)out, cp.srcPitch = N * 4,
    cp.srcHeight = 1;
    cp.dstMemoryType = hipMemoryTypeHost, cp.dstHost = host, cp.dstPitch = N * 4, cp.dstHeight = 1;
    cp.WidthInBytes = N * 4, cp.Height = 1, cp.Depth = 1;
    OK(hipGraphCreate(&g, 0));
    OK(hipDrvGraphAddMemcpyNode(&copy, g, NULL, 0, &cp, NULL)); /* added first, runs last */
    OK(hipGraphAddMemsetNode(&set, g, NULL, 0, &mp));
    OK(hipGraphAddKernelNode(&run, g, &set, 1, &kp));
    OK(hipGraphAddHostNode(&call, g, &run, 1, &hp));
    OK(hipGraphAddEmptyNode(&empty, g, &call, 1));
    OK(hipGraphAddDependencies(g, &empty, &copy, 1));
    OK(hipGraphGetNodes(g, nodes, &n));
    CHECK(n == 5 && nodes[0] == copy);
    OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
    c = 99; /* the node has its own copy */
    for (int turn = 0; turn < 2; turn++) {
        memset(host, 0, N * 4);
        OK(hipGraphLaunch(x, 0));
        OK(hipDeviceSynchronize());
        for (int i = 0; i < N; i++)
            CHECK(host[i] == i + 10);
    }
    CHECK(calls == 2);
    hipGraph_t g2;
    OK(hipGraphCreate(&g2, 0));
    OK(hipGraphAddEmptyNode(&empty, g2, NULL, 0));
    CHECK(hipGraphExecUpdate(x, g2, &empty, &result) == hipErrorGraphExecUpdateFailure);
    OK(hipGraphAddDependencies(g, &copy, &set, 1)); /* a cycle */
    CHECK(hipGraphInstantiate(&x, g, NULL, NULL, 0) == hipErrorInvalidValue);
    OK(hipGraphLaunch(x, 0));
    OK(hipGraphExecDestroy(x));
    OK(hipGraphDestroy(g));
    OK(hipGraphDestroy(g2));
    CHECK(hipGraphLaunch(x, 0) == hipErrorInvalidValue);
    (void)hipGetLastError();
}

static void
pools(void)
{
    hipMemPool_t p;
    void *m;
    uint64_t v = 12345, w = 0;
    OK(hipDeviceGetDefaultMemPool(&p, 0));
    OK(hipMemPoolSetAttribute(p, hipMemPoolAttrReleaseThreshold, &v));
    OK(hipMemPoolGetAttribute(p, hipMemPoolAttrReleaseThreshold, &w));
    CHECK(w == v);
    OK(hipMallocFromPoolAsync(&m, 1000, p, 0));
    OK(hipMemsetAsync(m, 1, 1000, 0));
    OK(hipFreeAsync(m, 0));
    OK(hipMemPoolTrimTo(p, 0));
}

int
main(int argc, char **argv)
{
    hipModule_t m;
    hipFunction_t f;
    int *in, *out, *host, v;
    CHECK(argc == 2);
    OK(hipInit(0));
    properties();
    OK(hipModuleLoad(&m, argv[1]));
    OK(hipModuleGetFunction(&f, m, "k"));
    OK(hipFuncGetAttribute(&v, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    CHECK(v == 1024);
    OK(hipMalloc((void **)&in, N * sizeof(int)));
    OK(hipMalloc((void **)&out, N * sizeof(int)));
    OK(hipHostMalloc((void **)&host, N * sizeof(int), hipHostMallocDefault));
    for (int i = 0; i < N; i++)
        host[i] = i;
    OK(hipMemcpy(in, host, N * sizeof(int), hipMemcpyHostToDevice));
    pointers(out, host);
    launches(f, in, out);
    events();
    copies();
    graphs(f, in, out, host);
    pools();
    OK(hipHostFree(host));
    OK(hipFree(in));
    OK(hipFree(out));
    OK(hipModuleUnload(m));
    unsigned long long launched = 0, instructions = 0;
    extern void tlsim_counters(void *, unsigned long long *, unsigned long long *);
    tlsim_counters(NULL, &launched, &instructions);
    printf("%llu launches, %llu instructions\n", launched, instructions);
    return 0;
}
