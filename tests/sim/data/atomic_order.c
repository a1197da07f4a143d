/* Does an atomic order what comes behind it? For test_atomic_order.py, compiled by clang for each chip with
 * 64 work-items a wave. Parties 0, 1, 2 are workgroups, or with WITHIN waves of one: 0 writes data and adds
 * to the flag, 1 (with RELAY) only adds to it, the last one adds too and then reads the data. SEES: it looks
 * at what its atomic returned. SPACE: 0 global, 1 flat, 2 buffer. */
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL                                                                                               \
    __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(WITHIN ? 192 : 64, WITHIN ? 192 : 64))) void
#if WITHIN
#define PARTY ((unsigned)__builtin_amdgcn_readfirstlane((int)__builtin_amdgcn_workitem_id_x() / 64))
#else
#define PARTY ((unsigned)__builtin_amdgcn_workgroup_id_x())
#endif
typedef unsigned u32;

static u32
add(GLOBAL u32 *flag)
{
#if SPACE == 2
    __amdgpu_buffer_rsrc_t rsrc = __builtin_amdgcn_make_buffer_rsrc((void *)flag, 0, 4, RSRC);
    return (u32)__builtin_amdgcn_raw_ptr_buffer_atomic_add_i32(1, rsrc, 0, 0, POLICY);
#elif SPACE == 1
    u32 *p = (u32 *)flag;
    __asm__("" : "+v"(p)); /* nobody knows where it leads */
    return __scoped_atomic_fetch_add(p, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
#else
    return __scoped_atomic_fetch_add(flag, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
#endif
}

KERNEL
order(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out)
{
    u32 i = (u32)__builtin_amdgcn_workitem_id_x() & 63, before = 0;
    if (PARTY == 0) {
        data[i] = i + 5;
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
        if (i == 0)
            add(flag);
    } else if (PARTY == 1) {
#if RELAY
        if (i == 0)
            add(flag);
#endif
    } else {
        for (u32 k = 0; k < 64; k++) /* the others come first, and nothing but time says so */
            __builtin_amdgcn_s_sleep(1);
        if (i == 0)
            before = add(flag);
#if SEES
        if (!__builtin_amdgcn_readfirstlane((int)before))
            return;
#endif
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
        out[i] = data[i];
    }
}
