// clang_kernels.hip - kernels whose waits and barriers are taken away in turn. Compiled without HIP's headers:
// clang-22 -x hip --cuda-device-only --offload-arch=CHIP -nogpuinc -nogpulib --no-gpu-bundle-output -O3 clang_kernels.hip -o clang.CHIP.hsaco
#define GLOBAL extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256))) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define TID __builtin_amdgcn_workitem_id_x()
#define WG __builtin_amdgcn_workgroup_id_x()
#if defined(__gfx1100__) || defined(__gfx1201__)
#define RDNA 1 // waves of 32 lanes
#else
#define RDNA 0
#endif

DEVICE static inline void
sync()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

GLOBAL reverse(const int *a, int *o)
{
    SHARED static int t[256];
    t[TID] = a[WG * 256 + TID];
    sync();
    o[WG * 256 + TID] = t[255 - TID];
}

// The sum of 256 numbers, a tree in LDS.
GLOBAL reduce(const float *a, float *o)
{
    SHARED static float t[256];
    t[TID] = a[WG * 256 + TID] + a[WG * 256 + TID + 512];
    for (unsigned n = 128; n; n >>= 1) {
        sync();
        if (TID < n)
            t[TID] += t[TID + n];
    }
    if (TID == 0)
        o[WG] = t[0];
}

// 16 x 16 tiles, operands through LDS.
GLOBAL matmul(const float *a, const float *b, float *c, int n)
{
    SHARED static float x[16][17], y[16][17];
    int i = TID / 16, j = TID % 16, col = WG * 16 + j;
    float s = 0;
    for (int k = 0; k < n; k += 16) {
        x[i][j] = a[i * n + k + j];
        y[i][j] = b[(k + i) * 32 + col];
        sync();
        for (int q = 0; q < 16; q++)
            s += x[i][q] * y[q][j];
        sync();
    }
    c[i * 32 + col] = s;
}

GLOBAL histogram(const unsigned char *a, int *o)
{
    SHARED static int t[64];
    if (TID < 64)
        t[TID] = 0;
    sync();
    for (int k = 0; k < 4; k++)
        __hip_atomic_fetch_add(&t[a[k * 256 + TID] & 63], 1, __ATOMIC_RELAXED, 3);
    sync();
    if (TID < 64)
        __hip_atomic_fetch_add(o + TID, t[TID], __ATOMIC_RELAXED, 4);
}

#if !RDNA
// A matrix instruction fed from LDS: 32 x 32 x 16 halves, one wave works, four fill.
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16)));
GLOBAL mfma(const _Float16 *a, const _Float16 *b, float *o)
{
    SHARED static _Float16 x[32 * 16], y[32 * 16];
    x[TID] = a[TID];
    x[TID + 256] = a[TID + 256];
    y[TID] = b[TID];
    y[TID + 256] = b[TID + 256];
    sync();
    int l = TID & 63;
    f16v s = {};
    for (int k = 0; k < 2; k++) {
        h4 p = *(const h4 *)&x[(l & 31) * 16 + k * 8 + (l >> 5) * 4], q = *(const h4 *)&y[(l & 31) * 16 + k * 8 + (l >> 5) * 4];
        s = __builtin_amdgcn_mfma_f32_32x32x8f16(p, q, s, 0, 0, 0);
    }
    for (int r = 0; r < 16; r++)
        o[TID * 16 + r] = s[r] * 2;
}
#endif

// Neighbours by permute, then a scan of 256 numbers over waves through LDS.
GLOBAL scan(const int *a, int *o)
{
    enum { WAVE = RDNA ? 32 : 64 };
    SHARED static int last[256 / WAVE];
    int v = a[TID], l = TID % WAVE, w = TID / WAVE;
    for (int d = 1; d < WAVE; d <<= 1) {
        int u = __builtin_amdgcn_ds_bpermute((l - d) << 2, v);
        if (l >= d)
            v += u;
    }
    if (l == WAVE - 1)
        last[w] = v;
    sync();
    for (int k = 0; k < w; k++)
        v += last[k];
    o[TID] = v;
}
