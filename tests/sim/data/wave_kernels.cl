// wave_kernels.cl - kernels for every chip and wave size; test_sim_compiled.py compiles them (-DWAVE=32 or 64) and knows the results.
#define TID __builtin_amdgcn_workitem_id_x()
#define WG __builtin_amdgcn_workgroup_id_x()
#define SIZE __builtin_amdgcn_workgroup_size_x()

static void sync(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// A loop that each lane leaves at its own time, with two ways through its body.
kernel void collatz(global const uint *a, global uint *o)
{
    uint i = WG * 256 + TID, x = a[i], n = 0;
    while (x > 1) {
        if (x & 1)
            x = 3 * x + 1;
        else
            x /= 2;
        if (++n > 150)
            break;
    }
    o[i] = n;
}

// Sum by a tree in LDS, then one atomic a workgroup.
kernel void reduce(global const int *a, global int *o)
{
    local int t[256];
    t[TID] = a[WG * 256 + TID];
    for (uint n = 128; n; n >>= 1) {
        sync();
        if (TID < n)
            t[TID] += t[TID + n];
    }
    if (TID == 0)
        __opencl_atomic_fetch_add((global atomic_int *)o, t[0], __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

// Inclusive scan of 256 numbers, two barriers a step.
kernel void scan(global const int *a, global int *o)
{
    local int t[256];
    int x = a[WG * 256 + TID];
    for (uint n = 1; n < 256; n <<= 1) {
        t[TID] = x;
        sync();
        if (TID >= n)
            x += t[TID - n];
        sync();
    }
    o[WG * 256 + TID] = x;
}

// Ranks of set bits in a wave: ballot and mbcnt; the mask's width is the wave's.
kernel void ranks(global const uint *a, global uint *o)
{
    uint i = WG * 256 + TID;
    bool p = a[i] & 1;
#if WAVE == 64
    ulong m = __builtin_amdgcn_ballot_w64(p);
    uint below = __builtin_amdgcn_mbcnt_hi((uint)(m >> 32), __builtin_amdgcn_mbcnt_lo((uint)m, 0));
#else
    uint m = __builtin_amdgcn_ballot_w32(p);
    uint below = __builtin_amdgcn_mbcnt_lo(m, 0);
#endif
    o[i] = (p ? below : 1000 + below) + __builtin_amdgcn_readfirstlane(a[i]) * 4096;
}

// A jump table in scalar code and a private array indexed at run time.
kernel void machine(global const uint *a, global int *o)
{
    int stack[16];
    for (int k = 0; k < 16; k++)
        stack[k] = k * 7;
    int x = TID, at = 0;
    for (int k = 0; k < 12; k++) {
        switch (a[k] % 6) {
        case 0: x += 3; break;
        case 1: x *= 5; break;
        case 2: stack[at = (at + 1) & 15] = x; break;
        case 3: x ^= stack[(x + at) & 15]; break;
        case 4: x -= stack[at]; at = (at + 15) & 15; break;
        default: x = (x << 3) | (int)((uint)x >> 29); break;
        }
    }
    o[WG * 256 + TID] = x;
}

// 64-bit integers: products, divisions, shifts.
kernel void wide(global const ulong *a, global ulong *o)
{
    uint i = WG * 256 + TID;
    ulong x = a[2 * i], y = a[2 * i + 1];
    o[i] = x * y + x / (y | 1) + (x % (y | 1)) + ((long)x >> (y & 63)) + (x << (y & 31));
}

// A real call: arguments and results in registers, the stack below.
__attribute__((noinline)) static int depth(int n, int x)
{
    int keep[4] = {x, x + 1, x + 2, x + 3};
    for (int k = 0; k < n; k++)
        keep[(x + k) & 3] += keep[k & 3];
    return keep[0] ^ keep[1] ^ keep[2] ^ keep[3];
}
kernel void calls(global const int *a, global int *o)
{
    uint i = WG * 256 + TID;
    o[i] = depth(a[i] & 15, a[i]) + depth(3, (int)i);
}

// Three dimensions and the sizes that hidden arguments and packets tell.
kernel void where(global const uint *a, global uint *o)
{
    uint x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
    uint gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
    uint nx = __builtin_amdgcn_workgroup_size_x(), ny = __builtin_amdgcn_workgroup_size_y(), nz = __builtin_amdgcn_workgroup_size_z();
    uint wx = __builtin_amdgcn_grid_size_x(), wy = __builtin_amdgcn_grid_size_y();
    uint i = ((gz * nz + z) * wy + gy * ny + y) * wx + gx * nx + x;
    o[i] = a[0] + (x | y << 4 | z << 8 | gx << 12 | gy << 16 | gz << 20);
}
