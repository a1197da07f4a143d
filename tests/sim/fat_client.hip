// fat_client.hip - a program whose kernels are part of the executable: launch by <<<>>>, a device variable, dynamic LDS.
// Built by test_sim_hip_fat.py without HIP's headers; prints "error wrong" and returns non-zero when something is.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;
extern "C" {
hipError_t __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = 0);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
hipError_t hipMalloc(void **, unsigned long);
hipError_t hipFree(void *);
hipError_t hipMemcpy(void *, const void *, unsigned long, int);
hipError_t hipMemcpyToSymbol(const void *, const void *, unsigned long, unsigned long, int);
hipError_t hipMemcpyFromSymbol(void *, const void *, unsigned long, unsigned long, int);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, unsigned long);
hipError_t hipDeviceSynchronize();
int printf(const char *, ...);
}

__device__ int bias;
__device__ int counter = 5;

__global__ void
add(const int *a, int *o, int n)
{
    int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i < n)
        o[i] = a[i] + bias;
    if (i == 0)
        counter = counter + 1;
}

extern __shared__ int lds[];

__global__ void
reverse(int *o)
{
    int i = __builtin_amdgcn_workitem_id_x();
    lds[i] = o[i];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    o[i] = lds[127 - i];
}

int
main()
{
    enum { N = 200 };
    int h[N], r[N], *a, *o, b = 7, c = 0, occ = 0, bad = 0;
    for (int i = 0; i < N; i++)
        h[i] = i;
    int e = hipMalloc((void **)&a, sizeof h) | hipMalloc((void **)&o, sizeof h) | hipMemcpy(a, h, sizeof h, 1);
    e |= hipMemcpyToSymbol((const void *)&bias, &b, 4, 0, 1);
    add<<<dim3(4), dim3(64)>>>(a, o, N);
    e |= hipDeviceSynchronize() | hipMemcpy(r, o, sizeof r, 2);
    for (int i = 0; i < N; i++)
        bad += r[i] != i + 7;
    reverse<<<dim3(1), dim3(128), 512>>>(o);
    e |= hipDeviceSynchronize() | hipMemcpy(r, o, sizeof r, 2);
    for (int i = 0; i < 128; i++)
        bad += r[i] != 127 - i + 7;
    e |= hipMemcpyFromSymbol(&c, (const void *)&counter, 4, 0, 2);
    e |= hipOccupancyMaxActiveBlocksPerMultiprocessor(&occ, (const void *)reverse, 128, 32768);
    e |= hipFree(a) | hipFree(o);
    printf("%d %d %d %d\n", e, bad, c, occ);
    return bad || e || c != 6 || occ != 2;
}
