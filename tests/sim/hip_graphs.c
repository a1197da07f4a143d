/* hip_graphs.c - stream capture and graph nodes from a C program on the real HIP headers. Built and run by
 * test_sim_hip_c.py; argument: a code object whose kernel k(in, out, c) adds c to dwords, 64 threads a
 * workgroup. */
#include "hip_check.h"
#include <pthread.h>

enum { N = 256 };
static hipFunction_t f;
static int *in, *out, *third, host[N];

static void
launch(int *a, int *b, int c, hipStream_t s)
{
    void *params[] = {&a, &b, &c};
    OK(hipModuleLaunchKernel(f, N / 64, 1, 1, 64, 1, 1, 0, s, params, NULL));
}

static void
expect(const int *dev, int plus)
{
    OK(hipMemcpyDtoH(host, (hipDeviceptr_t)dev, sizeof host));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == i + plus);
}

static void
count(void *user)
{
    ++*(int *)user;
}

/* Fork from s to t by an event, join back; copies, fills and a host call in between. Nothing runs while
 * captured. */
static void
fork_join(void)
{
    hipStream_t s, t;
    hipEvent_t forked, joined;
    hipGraph_t g;
    hipGraphExec_t x;
    hipStreamCaptureStatus status;
    unsigned long long id = 0, id2 = 0;
    int calls = 0;
    size_t n = 0, edges = 0;
    OK(hipStreamCreate(&s));
    OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
    OK(hipEventCreate(&forked));
    OK(hipEventCreate(&joined));
    OK(hipMemset(out, 0, N * 4));
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    IS(hipErrorIllegalState, hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    OK(hipStreamIsCapturing(s, &status));
    CHECK(status == hipStreamCaptureStatusActive);
    launch(in, out, 1, s);
    OK(hipEventRecord(forked, s));
    OK(hipStreamWaitEvent(t, forked, 0));
    OK(hipStreamGetCaptureInfo(s, &status, &id));
    OK(hipStreamGetCaptureInfo(t, &status, &id2));
    CHECK(status == hipStreamCaptureStatusActive && id && id == id2);
    OK(hipMemsetAsync(third, 0, N * 4, t));
    launch(out, third, 10, t);
    OK(hipLaunchHostFunc(t, count, &calls));
    OK(hipEventRecord(joined, t));
    launch(out, out, 100, s); /* beside t: reads out too, but runs in the order of the graph */
    OK(hipStreamWaitEvent(s, joined, 0));
    OK(hipMemcpyAsync(host, third, sizeof host, hipMemcpyDeviceToHost, s));
    IS(hipErrorStreamCaptureUnmatched, hipStreamEndCapture(t, &g));
    OK(hipStreamEndCapture(s, &g));
    OK(hipStreamIsCapturing(s, &status));
    CHECK(status == hipStreamCaptureStatusNone);
    OK(hipStreamIsCapturing(t, &status));
    CHECK(status == hipStreamCaptureStatusNone && calls == 0);
    OK(hipGraphGetNodes(g, NULL, &n));
    OK(hipGraphGetEdges(g, NULL, NULL, &edges));
    CHECK(n == 6 && edges == 6);
    hipGraphNode_t roots[4];
    size_t nroots = 4;
    hipGraphNodeType type;
    OK(hipGraphGetRootNodes(g, roots, &nroots));
    CHECK(nroots == 1);
    OK(hipGraphNodeGetType(roots[0], &type));
    CHECK(type == hipGraphNodeTypeKernel);
    OK(hipGraphNodeGetDependentNodes(roots[0], NULL, &n));
    CHECK(n == 2);
    OK(hipGraphInstantiateWithFlags(&x, g, 0));
    OK(hipGraphDestroy(g));
    for (int turn = 1; turn <= 2; turn++) {
        memset(host, 0, sizeof host);
        OK(hipGraphLaunch(x, s));
        OK(hipStreamSynchronize(s));
        for (int i = 0; i < N; i++)
            CHECK(host[i] == i + 11);
        CHECK(calls == turn);
    }
    OK(hipGraphExecDestroy(x));
    OK(hipEventDestroy(forked));
    OK(hipEventDestroy(joined));
    OK(hipStreamDestroy(s));
    OK(hipStreamDestroy(t));
}

/* What a capture forbids. */
static void
refusals(void)
{
    hipStream_t s, t, u;
    hipEvent_t ev, outside;
    hipGraph_t g = (hipGraph_t)1;
    hipStreamCaptureStatus status;
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    void *p;
    OK(hipStreamCreate(&s));
    OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&u, hipStreamNonBlocking));
    OK(hipEventCreate(&ev));
    OK(hipEventCreate(&outside));
    OK(hipEventRecord(outside, t));
    IS(hipErrorStreamCaptureUnsupported, hipStreamBeginCapture(0, hipStreamCaptureModeGlobal));
    IS(hipErrorIllegalState, hipStreamEndCapture(s, &g));
    CHECK(g == NULL);
    /* allocation, unless the thread is relaxed */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeGlobal));
    IS(hipErrorStreamCaptureUnsupported, hipMalloc(&p, 64));
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == hipStreamCaptureModeGlobal);
    OK(hipMalloc(&p, 64));
    OK(hipFree(p));
    mode = hipStreamCaptureModeGlobal;
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == hipStreamCaptureModeRelaxed);
    OK(hipStreamEndCapture(t, &g));
    OK(hipGraphDestroy(g));
    /* waiting for a capturing stream makes the capture invalid */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    IS(hipErrorStreamCaptureUnsupported, hipStreamSynchronize(t));
    OK(hipStreamIsCapturing(t, &status));
    CHECK(status == hipStreamCaptureStatusInvalidated);
    IS(hipErrorStreamCaptureInvalidated, hipMemsetAsync(out, 0, 4, t));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(t, &g));
    CHECK(g == NULL);
    /* so does work on the legacy stream, when the capturing one is a blocking stream */
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    IS(hipErrorStreamCaptureImplicit, hipMemset(out, 0, 4));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(s, &g));
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    OK(hipMemset(out, 0, 4));
    /* an event of a capture cannot be waited for by the host */
    OK(hipEventRecord(ev, t));
    IS(hipErrorCapturedEvent, hipEventSynchronize(ev));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(t, &g));
    OK(hipEventRecord(ev, t));
    OK(hipEventSynchronize(ev));
    /* an event from outside */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    IS(hipErrorStreamCaptureIsolation, hipStreamWaitEvent(t, outside, 0));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(t, &g));
    /* two captures do not mix */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    OK(hipStreamBeginCapture(u, hipStreamCaptureModeRelaxed));
    OK(hipEventRecord(ev, t));
    IS(hipErrorStreamCaptureMerge, hipStreamWaitEvent(u, ev, 0));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(u, &g));
    IS(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(t, &g));
    /* a fork that is not joined */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    OK(hipEventRecord(ev, t));
    OK(hipStreamWaitEvent(u, ev, 0));
    OK(hipMemsetAsync(out, 0, 4, u));
    IS(hipErrorStreamCaptureUnjoined, hipStreamEndCapture(t, &g));
    OK(hipStreamIsCapturing(u, &status));
    CHECK(status == hipStreamCaptureStatusNone);
    /* a stream that goes away */
    OK(hipStreamBeginCapture(t, hipStreamCaptureModeRelaxed));
    launch(in, out, 3, t);
    OK(hipStreamDestroy(t));
    OK(hipMalloc(&p, 64));
    OK(hipFree(p));
    OK(hipEventDestroy(ev));
    OK(hipEventDestroy(outside));
    OK(hipStreamDestroy(s));
    OK(hipStreamDestroy(u));
    (void)hipGetLastError();
}

static hipStream_t shared;

static void *
other_thread(void *arg)
{
    hipGraph_t g;
    hipStreamCaptureMode mode = hipStreamCaptureModeThreadLocal;
    void *p;
    IS(hipErrorStreamCaptureWrongThread, hipStreamEndCapture(shared, &g));
    IS(hipErrorStreamCaptureUnsupported, hipMalloc(&p, 64)); /* a global capture forbids it everywhere */
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    OK(hipMalloc(&p, 64));
    OK(hipFree(p));
    /* the per-thread stream captures too */
    OK(hipStreamBeginCapture(hipStreamPerThread, hipStreamCaptureModeRelaxed));
    launch(in, third, 7, hipStreamPerThread);
    OK(hipStreamEndCapture(hipStreamPerThread, &g));
    OK(hipGraphDestroy(g));
    OK(hipStreamBeginCapture(hipStreamPerThread, hipStreamCaptureModeRelaxed)); /* left open */
    return arg;
}

static void
threads(void)
{
    pthread_t t;
    hipGraph_t g;
    OK(hipStreamCreateWithFlags(&shared, hipStreamNonBlocking));
    OK(hipStreamBeginCapture(shared, hipStreamCaptureModeGlobal));
    CHECK(!pthread_create(&t, NULL, other_thread, NULL));
    CHECK(!pthread_join(t, NULL));
    OK(hipStreamEndCapture(shared, &g));
    OK(hipGraphDestroy(g));
    OK(hipStreamDestroy(shared));
    (void)hipGetLastError();
}

/* Memory of a graph, a graph within a graph, external events. */
static void
memory_and_children(void)
{
    hipStream_t s;
    hipGraph_t g, h, child;
    hipGraphExec_t x, y;
    hipGraphNode_t nodes[8];
    hipEvent_t a, b;
    int *m;
    size_t n = 8;
    float ms = -1;
    hipGraphNodeType type;
    OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    OK(hipEventCreate(&a));
    OK(hipEventCreate(&b));
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    OK(hipMallocAsync((void **)&m, N * 4, s));
    launch(in, m, 1, s);
    launch(m, out, 1, s);
    OK(hipFreeAsync(m, s));
    OK(hipStreamEndCapture(s, &g));
    OK(hipGraphGetNodes(g, nodes, &n));
    CHECK(n == 4);
    OK(hipGraphNodeGetType(nodes[0], &type));
    CHECK(type == hipGraphNodeTypeMemAlloc);
    OK(hipGraphNodeGetType(nodes[3], &type));
    CHECK(type == hipGraphNodeTypeMemFree);
    OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
    OK(hipGraphDestroy(g)); /* the executable graph keeps the memory */
    OK(hipGraphLaunch(x, s));
    expect(out, 2);
    /* launched within a capture it becomes a child */
    OK(hipMemset(out, 0, N * 4));
    OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    OK(hipEventRecordWithFlags(a, s, hipEventRecordExternal));
    OK(hipGraphLaunch(x, s));
    launch(out, third, 5, s);
    OK(hipEventRecordWithFlags(b, s, hipEventRecordExternal));
    OK(hipStreamEndCapture(s, &h));
    OK(hipGraphExecDestroy(x));
    n = 8;
    OK(hipGraphGetNodes(h, nodes, &n));
    CHECK(n == 4);
    OK(hipGraphNodeGetType(nodes[1], &type));
    CHECK(type == hipGraphNodeTypeGraph);
    OK(hipGraphChildGraphNodeGetGraph(nodes[1], &child));
    OK(hipGraphGetNodes(child, NULL, &n));
    CHECK(n == 4);
    IS(hipErrorInvalidValue, hipGraphDestroy(child)); /* it is its parent's */
    OK(hipGraphInstantiate(&y, h, NULL, NULL, 0));
    OK(hipGraphUpload(y, s));
    OK(hipGraphLaunch(y, s));
    expect(third, 7);
    OK(hipEventElapsedTime(&ms, a, b));
    CHECK(ms > 0);
    OK(hipGraphDestroy(h));
    OK(hipGraphExecDestroy(y));
    OK(hipEventDestroy(a));
    OK(hipEventDestroy(b));
    OK(hipStreamDestroy(s));
}

/* Parameters asked for and changed, in a graph and in an executable one; updates; clones. */
static void
parameters(void)
{
    hipGraph_t g, g2, clone;
    hipGraphExec_t x;
    hipGraphNode_t set, run, copy, found, bad, empty;
    hipGraphExecUpdateResult result;
    int c = 10, *a = in, *b = out, got[N];
    unsigned on;
    void *params[] = {&a, &b, &c};
    hipKernelNodeParams kp = {.func = f,
                              .gridDim = {N / 64, 1, 1},
                              .blockDim = {64, 1, 1},
                              .kernelParams = params},
                        q;
    hipMemsetParams mp = {.dst = third,
                          .elementSize = 2,
                          .height = 2,
                          .pitch = 64,
                          .value = 0x1234,
                          .width = 8},
                    mq;
    OK(hipGraphCreate(&g, 0));
    OK(hipGraphAddKernelNode(&run, g, NULL, 0, &kp));
    OK(hipGraphAddMemcpyNode1D(&copy, g, &run, 1, got, out, sizeof got, hipMemcpyDeviceToHost));
    OK(hipGraphAddMemsetNode(&set, g, NULL, 0, &mp));
    OK(hipGraphKernelNodeGetParams(run, &q));
    CHECK(q.func == f && q.gridDim.x == N / 64 && *(int **)q.kernelParams[0] == in &&
          *(int *)q.kernelParams[2] == 10);
    OK(hipGraphMemsetNodeGetParams(set, &mq));
    CHECK(mq.dst == third && mq.value == 0x1234 && mq.width == 8 && mq.pitch == 64 && mq.elementSize == 2);
    hipMemcpy3DParms c3;
    OK(hipGraphMemcpyNodeGetParams(copy, &c3));
    CHECK(c3.dstPtr.ptr == got && c3.srcPtr.ptr == out && c3.extent.width == sizeof got);
    OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
    c = 20;
    OK(hipGraphKernelNodeSetParams(run, &kp)); /* the executable graph has its own */
    OK(hipGraphLaunch(x, 0));
    for (int i = 0; i < N; i++)
        CHECK(got[i] == i + 10);
    c = 30;
    OK(hipGraphExecKernelNodeSetParams(x, run, &kp));
    OK(hipGraphLaunch(x, 0));
    CHECK(got[0] == 30 && got[N - 1] == N - 1 + 30);
    OK(hipGraphExecUpdate(x, g, &bad, &result));
    CHECK(result == hipGraphExecUpdateSuccess);
    OK(hipGraphLaunch(x, 0));
    CHECK(got[0] == 20);
    OK(hipGraphNodeSetEnabled(x, run, 0)); /* after an update nodes are still named by the first graph's */
    OK(hipGraphNodeGetEnabled(x, run, &on));
    OK(hipMemset(out, 0, N * 4));
    OK(hipGraphLaunch(x, 0));
    CHECK(!on && got[5] == 0);
    unsigned short row[8];
    OK(hipMemcpy(row, (char *)third + 64, sizeof row, hipMemcpyDeviceToHost));
    CHECK(row[0] == 0x1234 && row[7] == 0x1234);
    /* other topology, other kind */
    OK(hipGraphClone(&clone, g));
    OK(hipGraphNodeFindInClone(&found, copy, clone));
    OK(hipGraphDestroyNode(found));
    IS(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(x, clone, &bad, &result));
    CHECK(result == hipGraphExecUpdateErrorTopologyChanged);
    OK(hipGraphAddEmptyNode(&empty, clone, NULL, 0));
    IS(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(x, clone, &bad, &result));
    CHECK(result != hipGraphExecUpdateSuccess);
    /* cycles */
    OK(hipGraphAddDependencies(g, &copy, &run, 1));
    IS(hipErrorInvalidValue, hipGraphInstantiate(&x, g, NULL, NULL, 0));
    OK(hipGraphRemoveDependencies(g, &copy, &run, 1));
    IS(hipErrorInvalidValue, hipGraphRemoveDependencies(g, &copy, &run, 1));
    /* one struct for all kinds */
    hipGraphNodeParams any;
    memset(&any, 0, sizeof any);
    any.type = hipGraphNodeTypeMemset;
    any.memset = mp;
    OK(hipGraphCreate(&g2, 0));
    OK(hipGraphAddNode(&set, g2, NULL, 0, &any));
    memset(&any, 0, sizeof any);
    any.type = hipGraphNodeTypeMemAlloc;
    any.alloc.bytesize = 1000;
    OK(hipGraphAddNode(&empty, g2, &set, 1, &any));
    CHECK(any.alloc.dptr != NULL);
    OK(hipGraphDestroy(g));
    OK(hipGraphDestroy(g2));
    OK(hipGraphDestroy(clone));
    OK(hipGraphExecDestroy(x));
    (void)hipGetLastError();
}

int
main(int argc, char **argv)
{
    hipModule_t m;
    CHECK(argc == 2);
    OK(hipModuleLoad(&m, argv[1]));
    OK(hipModuleGetFunction(&f, m, "k"));
    OK(hipMalloc((void **)&in, N * 4));
    OK(hipMalloc((void **)&out, N * 4));
    OK(hipMalloc((void **)&third, N * 4));
    for (int i = 0; i < N; i++)
        host[i] = i;
    OK(hipMemcpy(in, host, N * 4, hipMemcpyHostToDevice));
    fork_join();
    refusals();
    threads();
    memory_and_children();
    parameters();
    OK(hipFree(in));
    OK(hipFree(out));
    OK(hipFree(third));
    OK(hipModuleUnload(m));
    OK(hipDeviceSynchronize());
    unsigned long long launches = 0, instructions = 0;
    extern void tlsim_counters(void *, unsigned long long *, unsigned long long *);
    tlsim_counters(NULL, &launches, &instructions);
    printf("%llu launches, %llu instructions\n", launches, instructions);
    return 0;
}
