// grid_sync.hip - workgroups of a cooperative launch meet as AMD's device library lets them: every wave waits, writes
// back and empties its caches, then one thread of each workgroup counts in what the runtime hands it (gfx90a: in
// global wave sync). -DONE_FENCE: only that thread's wave does so, which is a race. Prints "error wrong races-ok".
// wide(): 16 bytes with a flag among them go from a workgroup to others by one store and atomic loads.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;
typedef unsigned Vec __attribute__((ext_vector_type(4)));
extern "C" {
hipError_t __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = 0);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
hipError_t hipLaunchCooperativeKernel(const void *, dim3, dim3, void **, unsigned, hipStream_t);
hipError_t hipMalloc(void **, unsigned long);
hipError_t hipMemset(void *, int, unsigned long);
hipError_t hipMemcpy(void *, const void *, unsigned long, int);
hipError_t hipDeviceSynchronize();
int printf(const char *, ...);
}
enum { GROUPS = 4, BLOCK = 128, N = GROUPS * BLOCK };

__device__ static unsigned
thread()
{
    return __builtin_amdgcn_workgroup_id_x() * BLOCK + __builtin_amdgcn_workitem_id_x();
}

__device__ static void
meet()
{
#ifndef ONE_FENCE
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
#endif
    __builtin_amdgcn_s_barrier();
    if (__builtin_amdgcn_workitem_id_x() == 0) {
#ifdef ONE_FENCE
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
#endif
#ifdef __gfx90a__
        __builtin_amdgcn_ds_gws_barrier(GROUPS - 1, 0);
#else
        typedef __attribute__((address_space(4))) char Const;
        char *sync = *(char *__attribute__((address_space(4))) *)((Const *)__builtin_amdgcn_implicitarg_ptr() + 88);
        unsigned *count = (unsigned *)(sync + 32), groups = *(unsigned *)(sync + 40);
        unsigned was = __hip_atomic_fetch_add(count, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        if ((was & 0xffff) == groups - 1)
            __hip_atomic_fetch_add(count, 0x10000 - groups, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        else
            while (((__hip_atomic_load(count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) ^ was) >> 16) == 0)
                __builtin_amdgcn_s_sleep(1);
#endif
    }
    __builtin_amdgcn_s_barrier();
}

__global__ void
rounds(int *a, int *o)
{
    int i = thread();
    a[i] = 3 * i;
    meet();
    for (int r = 0; r < 3; r++) {
        o[i] = a[N - 1 - i] + r;
        meet();
        a[i] = o[(i + 1) % N];
        meet();
    }
}

__global__ void
wide(Vec *slot, int *o)
{
    Vec v = {1, 20, 300, 7};
    bool first = !__builtin_amdgcn_workgroup_id_x();
#if defined __gfx942__ || defined __gfx950__
    if (!thread())
        asm volatile("global_store_dwordx4 %0, %1, off sc1\n\ts_waitcnt vmcnt(0)" ::"v"(slot), "v"(v));
    else if (!first)
        do
            asm volatile("global_load_dwordx4 %0, %1, off sc1\n\ts_waitcnt vmcnt(0)" : "=v"(v) : "v"(slot));
        while (v.w != 7);
#elif defined __gfx1201__
    if (!thread())
        asm volatile("global_store_b128 %0, %1, off scope:SCOPE_DEV\n\ts_wait_storecnt 0" ::"v"(slot), "v"(v));
    else if (!first)
        do
            asm volatile("global_load_b128 %0, %1, off scope:SCOPE_DEV\n\ts_wait_loadcnt 0" : "=v"(v) : "v"(slot));
        while (v.w != 7);
#else
    if (!thread())
        asm volatile("global_store_dwordx4 %0, %1, off\n\ts_waitcnt vmcnt(0)" ::"v"(slot), "v"(v));
    else if (!first)
        do
            asm volatile("global_load_dwordx4 %0, %1, off glc\n\ts_waitcnt vmcnt(0)" : "=v"(v) : "v"(slot));
        while (v.w != 7);
#endif
    o[thread()] = v.x + v.y + v.z;
}

int
main()
{
    static int x[N], y[N], got[N];
    int *a, *o, bad = 0;
    Vec *slot;
    void *args[] = {&a, &o};
    int e = hipMalloc((void **)&a, sizeof x) | hipMalloc((void **)&o, sizeof x) | hipMalloc((void **)&slot, 16);
    e |= hipMemset(slot, 0, 16);
#ifndef ONE_FENCE
    wide<<<dim3(GROUPS), dim3(BLOCK)>>>(slot, o);
    e |= hipDeviceSynchronize() | hipMemcpy(got, o, sizeof got, 2);
    for (int i = 0; i < N; i++)
        bad += got[i] != 321;
#endif
    for (int launch = 0; launch < 2; launch++) {
        e |= hipLaunchCooperativeKernel((const void *)rounds, dim3(GROUPS), dim3(BLOCK), args, 0, 0);
        e |= hipDeviceSynchronize() | hipMemcpy(got, a, sizeof got, 2);
        for (int i = 0; i < N; i++)
            x[i] = 3 * i;
        for (int r = 0; r < 3; r++) {
            for (int i = 0; i < N; i++)
                y[i] = x[N - 1 - i] + r;
            for (int i = 0; i < N; i++)
                x[i] = y[(i + 1) % N];
        }
        for (int i = 0; i < N; i++)
            bad += got[i] != x[i];
    }
    printf("%d %d\n", e, bad);
    return bad || e;
}
