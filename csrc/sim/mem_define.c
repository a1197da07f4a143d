/* mem_define.c - which bytes of an allocation are defined: one bit a byte, shared by all threads (contract in
 * mem.h). An extent without such bits counts as defined.
 */
#include <string.h>

#include "sim/mem.h"

/* Sets bits of a word; a locked operation only where something is missing. */
static void
bits_or(uint64_t *word, uint64_t bits)
{
    if (~__atomic_load_n(word, __ATOMIC_RELAXED) & bits)
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

void
sim_mark_defined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    uint64_t i = addr - x->base, *w;
    if (!x->init || !n)
        return;
    w = x->init + (i >> 6);
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

static void
mark_undefined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    for (uint64_t i = addr - x->base, e = i + n; i < e; i++)
        __atomic_fetch_and(x->init + (i >> 6), ~(UINT64_C(1) << (i & 63)), __ATOMIC_RELAXED);
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
    if (!sim_mem_lookup(m, src, n, &s) || !s.init) {
        sim_mark_defined(&d, dst, n);
        return;
    }
    bool up = src < dst; /* overlapping copies: go from the end */
    for (uint64_t done = 0; done < n;) {
        uint32_t c = (uint32_t)TL_MIN(n - done, 32);
        uint64_t at = up ? n - done - c : done;
        uint32_t undef = sim_undef_mask(&s, src + at, c);
        if (!undef) {
            sim_mark_defined(&d, dst + at, c);
        } else {
            for (uint32_t i = 0; i < c; i++) {
                if (undef >> i & 1)
                    mark_undefined(&d, dst + at + i, 1);
                else
                    sim_mark_defined(&d, dst + at + i, 1);
            }
        }
        done += c;
    }
}
