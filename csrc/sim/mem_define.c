/* mem_define.c - which bytes of an allocation are defined: one bit a byte, shared by all threads, and one
 * byte for stretches of 4 KiB that are defined as a whole, so that the bits of what the host has filled take
 * no memory (contract in mem.h). An extent without such bits counts as defined.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/mem.h"

bool
sim_defined_new(SimExtent *x)
{
    x->init = calloc(x->size / 64 + 2, sizeof *x->init);
    x->whole = calloc(1, (x->size >> SIM_WHOLE_SHIFT) + 2);
    if (x->init && x->whole)
        return true;
    free(x->init);
    free(x->whole);
    x->init = NULL;
    x->whole = NULL;
    return false;
}

/* Sets bits of a word; a locked operation only where something is missing. */
static void
bits_or(uint64_t *word, uint64_t bits)
{
    if (~__atomic_load_n(word, __ATOMIC_RELAXED) & bits)
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

static void
mark_bits(const SimExtent *x, uint64_t i, uint64_t n)
{
    uint64_t *w = x->init + (i >> 6);
    i &= 63;
    if (i + n <= 64) { /* within one word */
        bits_or(w, ~UINT64_C(0) >> (64 - n) << i);
        return;
    }
    bits_or(w++, ~UINT64_C(0) << i);
    for (n -= 64 - i; n >= 64; n -= 64)
        __atomic_store_n(w++, ~UINT64_C(0), __ATOMIC_RELAXED);
    if (n)
        bits_or(w, ~UINT64_C(0) >> (64 - n));
}

void
sim_mark_defined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    if (!x->init || !n)
        return;
    for (uint64_t i = addr - x->base, all = i + n, end; i < all; i = end) {
        uint64_t k = i >> SIM_WHOLE_SHIFT, last = TL_MIN((k + 1) << SIM_WHOLE_SHIFT, x->size);
        end = TL_MIN(last, all);
        if (__atomic_load_n(&x->whole[k], __ATOMIC_ACQUIRE))
            continue;
        if (end == last && i == k << SIM_WHOLE_SHIFT)
            __atomic_store_n(&x->whole[k], 1, __ATOMIC_RELEASE);
        else
            mark_bits(x, i, end - i);
    }
}

static void
mark_undefined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    for (uint64_t i = addr - x->base, e = i + n; i < e; i++) {
        uint64_t k = i >> SIM_WHOLE_SHIFT, first = k << SIM_WHOLE_SHIFT;
        if (__atomic_load_n(&x->whole[k], __ATOMIC_ACQUIRE)) { /* the bits speak again */
            mark_bits(x, first, TL_MIN(x->size - first, (uint64_t)SIM_WHOLE));
            __atomic_store_n(&x->whole[k], 0, __ATOMIC_RELEASE);
        }
        __atomic_fetch_and(x->init + (i >> 6), ~(UINT64_C(1) << (i & 63)), __ATOMIC_RELAXED);
    }
}

void
sim_mem_define(SimMem *m, uint64_t addr, uint64_t n)
{
    SimExtent x;
    if (sim_mem_shadowed(m) && sim_mem_lookup(m, addr, n, &x))
        sim_mark_defined(&x, addr, n);
}

void
sim_mem_copy_defined(SimMem *m, uint64_t dst, uint64_t src, uint64_t n)
{
    SimExtent d, s;
    if (!sim_mem_shadowed(m) || !n || !sim_mem_lookup(m, dst, n, &d) || !d.init)
        return;
    if (!sim_mem_lookup(m, src, n, &s) || !s.init || sim_is_whole(&s, src, n)) {
        sim_mark_defined(&d, dst, n);
        return;
    }
    bool up = src < dst; /* overlapping copies: go from the end */
    for (uint64_t done = 0, c; done < n; done += c) {
        uint64_t at = up ? n - done : done; /* not across a stretch of the source, from either end */
        uint64_t in = (src - s.base + at) & (SIM_WHOLE - 1),
                 room = up ? (in ? in : SIM_WHOLE) : SIM_WHOLE - in;
        c = TL_MIN(room, n - done);
        at -= up ? c : 0;
        if (sim_is_whole(&s, src + at, c)) {
            sim_mark_defined(&d, dst + at, c);
            continue;
        }
        c = TL_MIN(c, 32);
        at = up ? n - done - c : done;
        uint32_t undef = sim_undef_mask(&s, src + at, (uint32_t)c);
        if (!undef) {
            sim_mark_defined(&d, dst + at, c);
            continue;
        }
        for (uint32_t i = 0; i < c; i++) {
            if (undef >> i & 1)
                mark_undefined(&d, dst + at + i, 1);
            else
                sim_mark_defined(&d, dst + at + i, 1);
        }
    }
}
