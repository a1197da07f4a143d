/* devmem.h - the memory of simulated devices: this file alone reads and writes it.
 *
 * Device memory is host memory at the same address: allocations, kernel arguments, host arrays, LDS and
 * scratch. A simulated program may race on it, and what it then reads is that program's affair, as on a
 * device; so these accesses are left out of ThreadSanitizer, each in a function of its own there, and nothing
 * else of the simulator is: there is no list of suppressions. The simulated atomics are host atomics; they
 * order nothing in ThreadSanitizer's eyes, so they hide no race of the simulator's own state either. In other
 * builds all of this is inline and costs what a plain access costs.
 *
 * Addresses must be mapped (sim_mem_find) and need no alignment but where it says so. */
#ifndef TL_SIM_DEVMEM_H
#define TL_SIM_DEVMEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_DM_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIM_DM_TSAN 1
#endif

#ifdef SIM_DM_TSAN
#define SIM_DM static __attribute__((noinline, unused, no_sanitize("thread")))
/* The other side of a copy is the simulator's own. */
void __tsan_read_range(void *p, unsigned long n);
void __tsan_write_range(void *p, unsigned long n);
#else
#define SIM_DM static inline
#endif

/* The bytes at a device address. Outside of this file only for what no wave writes: code. */
static inline void *
sim_dm_host(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

/* The address of memory of the host, as lanes name it. */
static inline uint64_t
sim_dm_at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* ---- single values ---- */

#define SIM_DM_VALUE(bits)                                                                                   \
    SIM_DM uint##bits##_t sim_dm_get##bits(uint64_t at)                                                      \
    {                                                                                                        \
        uint##bits##_t v;                                                                                    \
        memcpy(&v, sim_dm_host(at), sizeof v);                                                               \
        return v;                                                                                            \
    }                                                                                                        \
    SIM_DM void sim_dm_put##bits(uint64_t at, uint##bits##_t v)                                              \
    {                                                                                                        \
        memcpy(sim_dm_host(at), &v, sizeof v);                                                               \
    }
SIM_DM_VALUE(8)
SIM_DM_VALUE(16)
SIM_DM_VALUE(32)
SIM_DM_VALUE(64)
#undef SIM_DM_VALUE

#if defined(__SSE2__)
SIM_DM __m128
sim_dm_get128(uint64_t at)
{
    __m128 v;
    memcpy(&v, sim_dm_host(at), sizeof v);
    return v;
}

SIM_DM void
sim_dm_put128(uint64_t at, __m128 v)
{
    memcpy(sim_dm_host(at), &v, sizeof v);
}
#endif

/* ---- runs of bytes ---- */

#ifdef SIM_DM_TSAN

/* volatile: the compiler must not make a call of memcpy, which ThreadSanitizer watches. Whole words where
 * there are any, as memcpy does it: a pair of dwords is never seen half written. */
typedef struct __attribute__((packed, may_alias)) SimDmWord {
    uint64_t v;
} SimDmWord;
typedef struct __attribute__((packed, may_alias)) SimDmHalf {
    uint32_t v;
} SimDmHalf;

SIM_DM void
sim_dm_bytes(volatile uint8_t *to, const volatile uint8_t *from, size_t n)
{
    if ((uintptr_t)to - (uintptr_t)from < n) { /* overlaps upwards: from the end */
        while (n--)
            to[n] = from[n];
        return;
    }
    for (; n >= 8; n -= 8, to += 8, from += 8)
        ((volatile SimDmWord *)to)->v = ((const volatile SimDmWord *)from)->v;
    for (; n >= 4; n -= 4, to += 4, from += 4)
        ((volatile SimDmHalf *)to)->v = ((const volatile SimDmHalf *)from)->v;
    while (n--)
        *to++ = *from++;
}

static inline void
sim_dm_read(void *to, uint64_t from, size_t n)
{
    __tsan_write_range(to, n);
    sim_dm_bytes(to, sim_dm_host(from), n);
}

static inline void
sim_dm_write(uint64_t to, const void *from, size_t n)
{
    __tsan_read_range((void *)(uintptr_t)from, n);
    sim_dm_bytes(sim_dm_host(to), from, n);
}

static inline void
sim_dm_move(uint64_t to, uint64_t from, size_t n)
{
    sim_dm_bytes(sim_dm_host(to), sim_dm_host(from), n);
}

SIM_DM void
sim_dm_fill8(uint64_t at, uint8_t value, size_t n)
{
    volatile uint8_t *p = sim_dm_host(at);
    for (; n && (uintptr_t)p & 7; n--)
        *p++ = value;
    for (; n >= 8; n -= 8, p += 8)
        *(volatile uint64_t *)p = value * UINT64_C(0x0101010101010101);
    while (n--)
        *p++ = value;
}

#else

static inline void
sim_dm_read(void *to, uint64_t from, size_t n)
{
    memcpy(to, sim_dm_host(from), n);
}

static inline void
sim_dm_write(uint64_t to, const void *from, size_t n)
{
    memcpy(sim_dm_host(to), from, n);
}

static inline void
sim_dm_move(uint64_t to, uint64_t from, size_t n) /* may overlap */
{
    memmove(sim_dm_host(to), sim_dm_host(from), n);
}

static inline void
sim_dm_fill8(uint64_t at, uint8_t value, size_t n)
{
    memset(sim_dm_host(at), value, n);
}

#endif

/* Of values of 2 and 4 bytes; at aligned to them. */
SIM_DM void
sim_dm_fill16(uint64_t at, uint16_t value, size_t count)
{
    uint16_t *p = sim_dm_host(at);
    for (size_t i = 0; i < count; i++)
        p[i] = value;
}

SIM_DM void
sim_dm_fill32(uint64_t at, uint32_t value, size_t count)
{
    uint32_t *p = sim_dm_host(at);
    for (size_t i = 0; i < count; i++)
        p[i] = value;
}

/* ---- atomics; at aligned to the value ---- */

#define SIM_DM_ATOMICS(bits)                                                                                 \
    SIM_DM uint##bits##_t sim_dm_load##bits(uint64_t at)                                                     \
    {                                                                                                        \
        return __atomic_load_n((const uint##bits##_t *)sim_dm_host(at), __ATOMIC_SEQ_CST);                   \
    }                                                                                                        \
    SIM_DM bool sim_dm_cas##bits(uint64_t at, uint##bits##_t *old, uint##bits##_t v) /* weak */              \
    {                                                                                                        \
        return __atomic_compare_exchange_n((uint##bits##_t *)sim_dm_host(at), old, v, true,                  \
                                           __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);                              \
    }
SIM_DM_ATOMICS(32)
SIM_DM_ATOMICS(64)
#undef SIM_DM_ATOMICS

SIM_DM uint64_t
sim_dm_swap64(uint64_t at, uint64_t v)
{
    return __atomic_exchange_n((uint64_t *)sim_dm_host(at), v, __ATOMIC_SEQ_CST);
}

SIM_DM void
sim_dm_and32(uint64_t at, uint32_t v)
{
    __atomic_fetch_and((uint32_t *)sim_dm_host(at), v, __ATOMIC_SEQ_CST);
}

#endif
