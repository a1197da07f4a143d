// fat_services.hip - what compiled HIP code asks of the host: printf (both ways), assert, device malloc.
// Built by test_sim_hip_fat.py with the device library that Triton carries; argument: what to do.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
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
hipError_t hipMemcpy(void *, const void *, unsigned long, int);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceSetLimit(int, unsigned long);
int strcmp(const char *, const char *);
__host__ __device__ int printf(const char *, ...);
__device__ unsigned long __ockl_fprintf_stderr_begin();
__device__ unsigned long __ockl_fprintf_append_string_n(unsigned long, const char *, unsigned long, unsigned);
__device__ unsigned long __ockl_fprintf_append_args(unsigned long, unsigned, unsigned long, unsigned long, unsigned long,
                                                    unsigned long, unsigned long, unsigned long, unsigned long, unsigned);
__device__ unsigned long __ockl_dm_alloc(unsigned long);
__device__ void __ockl_dm_dealloc(unsigned long);
struct two {
    unsigned long a, b;
};
__device__ unsigned long __ockl_devmem_request(unsigned long, unsigned long);
// what the device library asks about its target
extern __device__ const __constant__ int __oclc_ABI_version = 600;
extern __device__ const __constant__ int __oclc_ISA_version = 9402;
extern __device__ const __constant__ unsigned char __oclc_wavefrontsize64 = 1;
extern __device__ const __constant__ unsigned char __oclc_daz_opt = 0;
extern __device__ const __constant__ unsigned char __oclc_finite_only_opt = 0;
extern __device__ const __constant__ unsigned char __oclc_unsafe_math_opt = 0;
extern __device__ const __constant__ unsigned char __oclc_correctly_rounded_sqrt32 = 1;
}
#define tid __builtin_amdgcn_workitem_id_x()
#define bid __builtin_amdgcn_workgroup_id_x()

__global__ void
hello(int n, const char *name)
{
    if (tid % 32 == 5)
        printf("block %d, thread %u: %s|%-6s|%5.2f %x %lld %c %d%% %hhd\n", bid, tid, name, "ab", 1.5 + tid, 255u,
               -1ll << 40, 'x', n, 300);
}

__global__ void
long_text(int n)
{
    printf("%s %*d %.3s|\n", "a string of more than fifty-six bytes, so that it takes several packets of the protocol", 6,
           n + (int)tid, "abcdef");
}

__device__ void
failed(const char *what, unsigned long n)
{
    unsigned long m = __ockl_fprintf_stderr_begin();
    m = __ockl_fprintf_append_string_n(m, "assertion %s failed: %lu\n", 26, 0);
    m = __ockl_fprintf_append_string_n(m, what, n, 0);
    __ockl_fprintf_append_args(m, 1, 42, 0, 0, 0, 0, 0, 0, 1);
    __builtin_trap();
}

__global__ void
asserts(const int *p)
{
    if (p[tid] == 3)
        failed("p[tid] != 3", 12);
}

// Every thread builds a list of `links` elements, sums it, frees it.
__global__ void
lists(unsigned long *out, int links)
{
    struct Link {
        Link *next;
        unsigned long value;
    } *head = 0;
    int missing = 0;
    for (int i = 0; i < links; i++) {
        Link *l = (Link *)__ockl_dm_alloc(i % 3 ? sizeof(Link) : 40 * (i + 1));
        if (!l) {
            missing++;
            continue;
        }
        l->next = head;
        l->value = bid * 1000 + tid + i;
        head = l;
    }
    unsigned long sum = 0;
    while (head) {
        Link *next = head->next;
        sum += head->value;
        __ockl_dm_dealloc((unsigned long)head);
        head = next;
    }
    out[bid * 64 + tid] = missing ? missing : sum;
}

__global__ void
big(unsigned long *out, unsigned long bytes)
{
    unsigned long *p = (unsigned long *)__ockl_dm_alloc(bytes);
    out[0] = p != 0;
    if (p) {
        p[bytes / 8 - 1] = 77;
        out[1] = p[bytes / 8 - 1];
        __ockl_dm_dealloc((unsigned long)p);
    }
}

__global__ void
bad_free()
{
    __ockl_devmem_request(0x1000, 0);
}

int
main(int argc, char **argv)
{
    enum { N = 256 };
    const char *what = argv[1];
    char *name;
    int h[64], *d;
    unsigned long r[N] = {0}, *out;
    int e = hipMalloc((void **)&name, 8) | hipMemcpy(name, "device", 7, 1) | hipMalloc((void **)&d, sizeof h) |
            hipMalloc((void **)&out, sizeof r);
    for (int i = 0; i < 64; i++)
        h[i] = i & 7;
    e |= hipMemcpy(d, h, sizeof h, 1);
    if (!strcmp(what, "printf")) {
        hello<<<dim3(2), dim3(64)>>>(7, name);
        e |= hipDeviceSynchronize();
        long_text<<<dim3(1), dim3(2)>>>(100);
        e |= hipDeviceSynchronize();
    } else if (!strcmp(what, "assert")) {
        asserts<<<dim3(1), dim3(64)>>>(d);
        e |= hipDeviceSynchronize();
    } else if (!strcmp(what, "malloc")) {
        lists<<<dim3(4), dim3(64)>>>(out, 9);
        e |= hipMemcpy(r, out, sizeof r, 2);
        for (int i = 0; i < N; i++)
            if (r[i] != 9ul * (i / 64 * 1000 + i % 64) + 36)
                e |= 1 << 20;
        big<<<dim3(1), dim3(1)>>>(out, 3ul << 20);
        e |= hipMemcpy(r, out, 16, 2);
        e |= (r[0] != 1 || r[1] != 77) << 21;
    } else if (!strcmp(what, "full")) {
        e |= hipDeviceSetLimit(2, 4ul << 20);
        big<<<dim3(1), dim3(1)>>>(out, 8ul << 20);
        e |= hipMemcpy(r, out, 16, 2);
        e |= r[0] << 22;
    } else {
        bad_free<<<dim3(1), dim3(1)>>>();
        e |= hipDeviceSynchronize();
    }
    printf("%d\n", e);
    return 0;
}
