/* hip_threads.c - one device used by several host threads at once: streams, copies, fills, allocation,
 * modules, events, captures, graphs, and launches that fault. Built and run by test_sim_hip_c.py, and with
 * ThreadSanitizer by `make tsan-test`; argument: a code object whose kernel k(in, out, c) adds c to dwords,
 * 64 threads a workgroup. */
#include "hip_check.h"
#include <pthread.h>

enum { N = 256, THREADS = 4, ROUNDS = 3 };
static const char *path;
static hipFunction_t shared;
static int *common; /* all threads write it: theirs to sort out */

static void
launch(hipFunction_t f, int *a, int *b, int c, hipStream_t s)
{
    void *params[] = {&a, &b, &c};
    OK(hipModuleLaunchKernel(f, N / 64, 1, 1, 64, 1, 1, 0, s, params, NULL));
}

static void
count(void *user)
{
    ++*(int *)user;
}

static void
graph(hipFunction_t f, int *in, int *out, hipStream_t s)
{
    hipGraph_t g;
    hipGraphExec_t x;
    int host[N], calls = 0;
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal));
    OK(hipMemsetD32Async((hipDeviceptr_t)out, 5, N, s));
    launch(f, in, out, 1, s);
    launch(f, out, out, 10, s);
    OK(hipLaunchHostFunc(s, count, &calls));
    OK(hipStreamEndCapture(s, &g));
    OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
    for (int i = 0; i < 2; i++)
        OK(hipGraphLaunch(x, s));
    OK(hipStreamSynchronize(s));
    OK(hipMemcpyDtoH(host, (hipDeviceptr_t)out, sizeof host));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == i + 11 && calls == 2);
    OK(hipGraphExecDestroy(x));
    OK(hipGraphDestroy(g));
}

static void *
client(void *arg)
{
    int me = (int)(size_t)arg, host[N];
    hipStream_t s;
    hipEvent_t a, b;
    hipModule_t m;
    hipFunction_t own;
    hipPointerAttribute_t at;
    float ms;
    OK(hipSetDevice(0));
    OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    OK(hipEventCreate(&a));
    OK(hipEventCreate(&b));
    OK(hipModuleLoad(&m, path));
    OK(hipModuleGetFunction(&own, m, "k"));
    for (int round = 0; round < ROUNDS; round++) {
        int *in, *out;
        for (int i = 0; i < N; i++)
            host[i] = i;
        OK(hipMalloc((void **)&in, sizeof host));
        OK(hipMalloc((void **)&out, sizeof host));
        OK(hipEventRecord(a, s));
        OK(hipMemcpyHtoDAsync((hipDeviceptr_t)in, host, sizeof host, s));
        launch(round & 1 ? own : shared, in, out, me, s);
        launch(shared, in, common, me, s); /* the others write it too */
        OK(hipMemsetAsync(common, me, 64, s));
        OK(hipMemcpyDtoHAsync(host, (hipDeviceptr_t)out, sizeof host, s));
        OK(hipEventRecord(b, s));
        OK(hipStreamWaitEvent(s, b, 0));
        OK(hipEventSynchronize(b));
        OK(hipEventElapsedTime(&ms, a, b));
        OK(hipStreamSynchronize(s));
        for (int i = 0; i < N; i++)
            CHECK(host[i] == i + me);
        OK(hipMemcpyDtoH(host, (hipDeviceptr_t)common, sizeof host));
        OK(hipPointerGetAttributes(&at, out));
        CHECK(at.devicePointer == out);
        graph(shared, in, out, s);
        OK(hipFree(in));
        OK(hipFree(out));
    }
    OK(hipModuleUnload(m));
    OK(hipEventDestroy(a));
    OK(hipEventDestroy(b));
    OK(hipStreamDestroy(s));
    return NULL;
}

/* Launches that read outside of their buffer: whoever asks next is told, and again and again. */
static void *
faulty(void *arg)
{
    int *p = arg;
    void *params[] = {&p, &p, &(int){1}};
    OK(hipSetDevice(0));
    hipError_t e = hipModuleLaunchKernel(shared, 4096, 1, 1, 64, 1, 1, 0, 0, params, NULL);
    CHECK(e == hipSuccess || e == hipErrorIllegalAddress);
    IS(hipErrorIllegalAddress, hipDeviceSynchronize());
    return NULL;
}

static void
all(void *(*fn)(void *), void *arg)
{
    pthread_t t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&t[i], NULL, fn, arg ? arg : (void *)(i + 1)));
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

int
main(int argc, char **argv)
{
    hipModule_t m;
    path = argv[argc - 1];
    OK(hipModuleLoad(&m, path));
    OK(hipModuleGetFunction(&shared, m, "k"));
    OK(hipMalloc((void **)&common, N * 4));
    OK(hipMemset(common, 0, N * 4));
    all(client, NULL);
    unsigned long long launches, instructions;
    extern void tlsim_counters(void *, unsigned long long *, unsigned long long *);
    tlsim_counters(NULL, &launches, &instructions);
    printf("%llu launches, %llu instructions\n", launches, instructions);
    all(faulty, common);
    return 0;
}
