// fat_managed.hip - variables that host and devices share (__managed__): in the program itself, on every device, and in a
// module that it loads (argv[1]: this file compiled for the device alone). Built by test_sim_managed.py without HIP's
// headers; with -DPART=1 and -DPART=2 the two halves of a program of relocatable device code.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __managed__ __attribute__((managed))
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;
struct Attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
};
extern "C" {
hipError_t __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = 0);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
hipError_t hipGetDeviceCount(int *);
hipError_t hipSetDevice(int);
hipError_t hipDeviceSynchronize();
hipError_t hipGetSymbolAddress(void **, const void *);
hipError_t hipGetSymbolSize(unsigned long *, const void *);
hipError_t hipMemcpyToSymbol(const void *, const void *, unsigned long, unsigned long, int);
hipError_t hipMemcpyFromSymbol(void *, const void *, unsigned long, unsigned long, int);
hipError_t hipPointerGetAttributes(Attributes *, const void *);
hipError_t hipModuleLoad(void **, const char *);
hipError_t hipModuleUnload(void *);
hipError_t hipModuleGetFunction(void **, void *, const char *);
hipError_t hipModuleGetGlobal(void **, unsigned long *, void *, const char *);
hipError_t hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hipStream_t,
                                 void **, void **);
int printf(const char *, ...);
}

#if PART == 1
extern __managed__ int count;
__device__ int scaled(int);
__global__ void bump(int by) { count += scaled(by); }
int
main()
{
    count += 10;
    bump<<<dim3(1), dim3(1)>>>(4);
    int e = hipDeviceSynchronize();
    printf("%d %d\n", e, count);
    return e;
}
#elif PART == 2
__managed__ int count = 3;
__device__ int scaled(int a) { return a * 100 + count; }
#else
__managed__ int count = 7;
__managed__ double table[100];
static __managed__ long hidden = 3;
struct Pair {
    char tag;
    float *to;
};
__managed__ Pair pair = {'p', 0};

extern "C" __global__ void
step(int by)
{
    int i = __builtin_amdgcn_workitem_id_x();
    if (i < 100)
        table[i] += count * i;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (i == 0) {
        count += by;
        hidden *= 2;
        if (pair.to)
            *pair.to = pair.tag;
    }
}

extern "C" __global__ void
look(long *o)
{
    o[0] = count + hidden;
    count = 1;
}

extern "C" __global__ void
past(int i)
{
    table[i] = 1;
}

static int bad;
static void
expect(int ok, int line)
{
    if (!ok && ++bad < 9)
        printf("line %d\n", line);
}
#define EXPECT(x) expect(x, __LINE__)

int
main(int argc, char **argv)
{
    static float target[1];
    int n = 0, want = 7, got;
    if (hipGetDeviceCount(&n)) {
        printf("no device, %d\n", count + (int)hidden);
        return 1;
    }
    EXPECT(count == 7 && hidden == 3 && pair.tag == 'p' && table[99] == 0); // before anything was loaded
    count = want = 20;
    double sum = 0;
    for (int d = 0; d < n; d++) { // a device's code is loaded at its first launch
        EXPECT(!hipSetDevice(d));
        step<<<dim3(1), dim3(128)>>>(d + 1);
        EXPECT(!hipDeviceSynchronize());
        sum += want;
        want += d + 1;
        EXPECT(count == want && table[0] == 0 && table[99] == 99 * sum && hidden == 3l << (d + 1));
        count += 1; // the host's turn
        want += 1;
    }
    void *p = 0;
    unsigned long size = 0;
    EXPECT(!hipGetSymbolAddress(&p, &count) && p == &count && !hipGetSymbolSize(&size, &count) && size == 4);
    EXPECT(!hipGetSymbolAddress(&p, table) && p == table && !hipGetSymbolSize(&size, table) && size == 800);
    int five = 5;
    EXPECT(!hipMemcpyToSymbol(&count, &five, 4, 0, 1) && count == 5);
    EXPECT(!hipMemcpyFromSymbol(&got, &count, 4, 0, 2) && got == 5 && hipMemcpyFromSymbol(&got, &count, 4, 4, 2) == 1);
    Attributes a;
    EXPECT(!hipPointerGetAttributes(&a, table + 3) && a.type == 3 && a.managed == 1 && a.device_pointer == table + 3 &&
           a.host_pointer == table + 3 && a.device == 0);
    // a module has variables of its own
    void *m, *f, *g;
    EXPECT(!hipSetDevice(0) && !hipModuleLoad(&m, argv[1]) && !hipModuleGetFunction(&f, m, "step"));
    EXPECT(!hipModuleGetGlobal(&g, &size, m, "count") && size == 4 && g != &count && *(int *)g == 7);
    int by = 1000;
    void *args[] = {&by};
    EXPECT(!hipModuleLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, 0, args, 0) && !hipDeviceSynchronize());
    EXPECT(*(int *)g == 1007 && count == 5);
    EXPECT(!hipModuleGetGlobal(&g, &size, m, "table") && size == 800 && ((double *)g)[2] == 14);
    EXPECT(!hipModuleUnload(m) && hipPointerGetAttributes(&a, g) == 0 && a.type == 0);
    if (argc > 2) {
        past<<<dim3(1), dim3(1)>>>(100);
        EXPECT(hipDeviceSynchronize() == 700);
    }
    printf("%d wrong on %d\n", bad, n);
    return bad;
}
#endif
