/* Workgroups that synchronise through global memory, for test_sim_sync_programs.py: compiled by clang for
 * each chip, one kernel at a time (-DPROGRAM=...), 64 work-items a workgroup. */
#define GLOBAL    __attribute__((address_space(1)))
#define KERNEL    __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64))) void
#define GROUP     ((unsigned)__builtin_amdgcn_workgroup_id_x())
#define ITEM      ((unsigned)__builtin_amdgcn_workitem_id_x())
#define RELEASE() __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent")
#define ACQUIRE() __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent")
typedef unsigned u32;

static u32
load(GLOBAL u32 *p)
{
    return __scoped_atomic_load_n(p, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
static void
store(GLOBAL u32 *p, u32 v)
{
    __scoped_atomic_store_n(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

#if PROGRAM == 1
/* Last block: partial results, a counter; who counts last adds them up. */
KERNEL
last_block(GLOBAL u32 *in, GLOBAL u32 *part, GLOBAL u32 *count, GLOBAL u32 *out, u32 groups)
{
    u32 g = GROUP, i = ITEM;
    part[g * 64 + i] = in[g * 64 + i] * 3;
    RELEASE();
    u32 ticket = 0;
    if (i == 0)
        ticket = __scoped_atomic_fetch_add(count, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    if (__builtin_amdgcn_readfirstlane(ticket) != groups - 1)
        return;
    ACQUIRE();
    u32 sum = 0;
    for (u32 k = 0; k < groups; k++)
        sum += part[k * 64 + i];
    out[i] = sum;
}
#elif PROGRAM == 2
/* Decoupled look-back: an inclusive scan over workgroups of each lane. state: 0 nothing, 1 aggregate, 2
 * prefix. The last part comes first in dispatch order, so that aggregates are met as well as prefixes. */
KERNEL
look_back(GLOBAL u32 *in, GLOBAL u32 *aggregate, GLOBAL u32 *prefix, GLOBAL u32 *state, GLOBAL u32 *out,
          u32 groups)
{
    u32 g = groups - 1 - GROUP, i = ITEM, own = in[g * 64 + i], sum = 0;
    aggregate[g * 64 + i] = own;
    RELEASE();
    if (i == 0)
        store(&state[g], 1);
    for (u32 k = g; k > 0;) {
        u32 s = load(&state[k - 1]);
        s = __builtin_amdgcn_readfirstlane(s);
        if (!s) {
            __builtin_amdgcn_s_sleep(1);
            continue;
        }
        ACQUIRE();
        k--;
        sum += s == 2 ? prefix[k * 64 + i] : aggregate[k * 64 + i];
        if (s == 2)
            break;
    }
    prefix[g * 64 + i] = sum + own;
    RELEASE();
    if (i == 0)
        store(&state[g], 2);
    out[g * 64 + i] = sum + own;
}
#elif PROGRAM == 3
/* Stream-K: C = A B in tiles of 8 x 8, one element a lane; `per` steps of K a workgroup, whatever tiles they
 * fall into. Who does a tile's last step waits for the others' partial sums. */
KERNEL
stream_k(GLOBAL float *a, GLOBAL float *b, GLOBAL float *c, GLOBAL float *work, GLOBAL u32 *flag, u32 n,
         u32 k, u32 per)
{
    u32 g = GROUP, i = ITEM, tiles = n / 8, at = g * per, end = at + per, total = tiles * tiles * k;
    end = end < total ? end : total;
    while (at < end) {
        u32 tile = at / k, first = at % k, left = k - first, last = end - at < left ? first + (end - at) : k;
        u32 row = tile / tiles * 8 + i / 8, col = tile % tiles * 8 + i % 8;
        float sum = 0;
        for (u32 q = first; q < last; q++)
            sum += a[row * k + q] * b[q * n + col];
        at += last - first;
        if (last < k) {
            work[g * 64 + i] = sum;
            RELEASE();
            if (i == 0)
                store(&flag[g], 1);
            continue;
        }
        u32 begin = tile * k / per; /* the first workgroup of this tile */
        for (u32 other = begin; other < g; other++) {
            while (!__builtin_amdgcn_readfirstlane(load(&flag[other])))
                __builtin_amdgcn_s_sleep(1);
            ACQUIRE();
            sum += work[other * 64 + i];
        }
        c[row * n + col] = sum;
    }
}
#elif PROGRAM == 4
/* A shift in place by two parts: a part is stored over once it has been loaded, which its flag says. Nothing
 * that was stored is loaded, so no cache is written back or emptied. A flag goes up behind the one of the
 * next part, whose own went up behind that of the part which is stored over: a chain of three. */
KERNEL
shift(GLOBAL u32 *x, GLOBAL u32 *flag, u32 groups)
{
    u32 g = GROUP, i = ITEM, own = x[g * 64 + i];
#ifndef EARLY
    __asm__ volatile("" ::"v"(own)); /* used, so waited for */
#endif
#ifdef DIRTY
    x[(groups + g) * 64 + i] = own; /* which nobody loads */
#endif
#ifndef NO_LOOK
    while (g + 1 < groups && !__builtin_amdgcn_readfirstlane(load(&flag[g + 1])))
        __builtin_amdgcn_s_sleep(1);
#endif
    if (i == 0)
        store(&flag[g], 1);
    if (g + 2 < groups)
        x[(g + 2) * 64 + i] = own;
}
#elif PROGRAM == 5
/* Each lane of the last workgroup waits for another flag. They come one after the other, so that most lanes
 * have seen theirs long before the loop ends. */
KERNEL
gather(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out, u32 groups)
{
    u32 g = GROUP, i = ITEM, sum = 0;
    if (g + 1 < groups) {
        for (u32 k = 0; k < 20 * (groups - g); k++)
            __builtin_amdgcn_s_sleep(8);
        data[g * 64 + i] = g + i;
        RELEASE();
        if (i == 0)
            store(&flag[g], 1);
        return;
    }
    if (i < g)
        while (!load(&flag[i]))
            __builtin_amdgcn_s_sleep(1);
    ACQUIRE();
    for (u32 k = 0; k < g; k++)
        sum += data[k * 64 + i];
    out[i] = sum;
}
#endif
