// check_kernels.hip - correct programs for which no check may say anything: LDS, global memory and atomics
// between waves and workgroups, lane moves, divergence, stack, calls, WMMA. Compiled by test_sim_clean.py for
// several chips and options.
#define GLOBAL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define TID    __builtin_amdgcn_workitem_id_x()
#define WG     __builtin_amdgcn_workgroup_id_x()
DEVICE static inline void
sync()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define N 256
GLOBAL
transpose(const int *a, int *o)
{
    SHARED static int t[16][17];
    int i = TID / 16, j = TID % 16;
    t[i][j] = a[WG * N + TID];
    sync();
    o[WG * N + TID] = t[j][i];
}
GLOBAL
global_exchange(int *a, int *o)
{
    a[WG * N + TID] = TID * 3;
    sync();
    int x = a[WG * N + (TID ^ 77)];
    sync();
    a[WG * N + TID] = x;
    sync();
    o[WG * N + TID] = a[WG * N + 255 - TID];
}
GLOBAL
last_block(const int *a, int *part, int *count, int *o)
{
    SHARED static int s[N];
    SHARED static int last;
    s[TID] = a[WG * N + TID];
    sync();
    for (int k = N / 2; k; k >>= 1) {
        if (TID < k)
            s[TID] += s[TID + k];
        sync();
    }
    if (TID == 0) {
        part[WG] = s[0];
        last = __hip_atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) == 7;
    }
    sync();
    if (!last)
        return;
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    if (TID < 8) {
        int v = part[TID];
        s[TID] = v;
    }
    sync();
    if (TID == 0) {
        int t = 0;
        for (int i = 0; i < 8; i++)
            t += s[i];
        o[0] = t;
    }
}
GLOBAL
lookback(const int *a, int *val, int *flag, int *o)
{
    SHARED static int s[N];
    SHARED static int pre;
    s[TID] = a[WG * N + TID];
    sync();
    if (TID == 0) {
        int t = 0;
        for (int i = 0; i < N; i++)
            t += s[i];
        int p = 0;
        if (WG) {
            while (!__hip_atomic_load(&flag[WG - 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT))
                __builtin_amdgcn_s_sleep(1);
            p = val[WG - 1];
        }
        val[WG] = p + t;
        __hip_atomic_store(&flag[WG], 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
        pre = p;
    }
    sync();
    o[WG * N + TID] = pre + s[TID];
}
GLOBAL
locked(int *lock, int *sum)
{
    if (TID == 0) {
        int z = 0;
        while (!__hip_atomic_compare_exchange_strong(lock, &z, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                                     __HIP_MEMORY_SCOPE_AGENT))
            z = 0;
        sum[0] += WG + 1;
        sum[1] ^= WG;
        __hip_atomic_store(lock, 0, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    }
}
GLOBAL
histogram(const unsigned *a, unsigned *h)
{
    SHARED static unsigned t[64];
    if (TID < 64)
        t[TID] = 0;
    sync();
    __hip_atomic_fetch_add(&t[a[WG * N + TID] & 63], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    sync();
    if (TID < 64)
        __hip_atomic_fetch_add(&h[TID], t[TID], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
GLOBAL
math(const float *a, float *o)
{
    float x = a[WG * N + TID];
    float y = __builtin_sqrtf(x * x + 1) / (x * x + 2);
    y += __builtin_amdgcn_rcpf(y + 3) * __builtin_amdgcn_exp2f(y);
    double d = (double)x / (1.0 + (double)y * y);
    o[WG * N + TID] = y + (float)d;
}
GLOBAL
shuffles(const int *a, int *o)
{
    int v = a[WG * N + TID];
    v += __builtin_amdgcn_ds_bpermute((TID ^ 5) * 4, v);
    v += __builtin_amdgcn_update_dpp(0, v, 0xb1, 0xf, 0xf, true);
    v ^= __builtin_amdgcn_readfirstlane(v);
    v += __builtin_amdgcn_mov_dpp(v, 0x141, 0xf, 0xf, false);
    o[WG * N + TID] = v;
}
GLOBAL
divergent(const int *a, int *o)
{
    int v = a[WG * N + TID], n = 0;
    while (v != 1 && n < 50) {
        if (v & 1)
            v = 3 * v + 1;
        else
            v >>= 1;
        if (n == 20 && (v & 6))
            break;
        n++;
    }
    o[WG * N + TID] = n;
}
GLOBAL
stack(const int *a, int *o)
{
    int t[33];
    for (int i = 0; i < 33; i++)
        t[i] = a[(WG * N + TID + i) & 2047];
    int k = t[0] & 15;
    for (int i = 0; i < 5; i++) {
        t[k] += i;
        k = (k + t[i]) & 31;
    }
    o[WG * N + TID] = t[k] + t[32];
}
DEVICE __attribute__((noinline)) int
helper(int x, int y)
{
    return y ? x * 3 + y : x;
}
GLOBAL
calls(const int *a, int *o)
{
    int v = a[WG * N + TID];
    if (v & 1)
        v = helper(v, 2);
    o[WG * N + TID] = helper(v, WG);
}
typedef _Float16 h16 __attribute__((ext_vector_type(16)));
typedef _Float16 h8 __attribute__((ext_vector_type(8)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef float f4 __attribute__((ext_vector_type(4)));
GLOBAL
wmma(const _Float16 *a, const _Float16 *b, float *c, int k)
{
#ifndef W64
#ifdef __gfx1100__
    SHARED static h16 x[32], y[32];
    f8 d = {};
    int l = TID & 31;
    for (int i = 0; i < k; i++) {
        x[l] = *(const h16 *)(a + i * 256 + (l % 16) * 16);
        y[l] = *(const h16 *)(b + i * 256 + (l % 16) * 16);
        sync();
        d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x[l], y[l], d);
        f8 e = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(y[l], x[31 - l], d);
        d += e;
        sync();
    }
#elif defined(__gfx1201__)
    SHARED static h8 x[32], y[32];
    f8 d = {};
    int l = TID & 31;
    for (int i = 0; i < k; i++) {
        x[l] = *(const h8 *)(a + i * 256 + l * 8);
        y[l] = *(const h8 *)(b + i * 256 + l * 8);
        sync();
        d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x[l], y[l], d);
        f8 e = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(y[l], x[31 - l], d);
        d += e;
        sync();
    }
#endif
#if defined(__gfx1100__) || defined(__gfx1201__)
    for (int i = 0; i < 8; i++)
        c[i * 32 + (TID & 31)] = d[i];
#endif
#endif
}
