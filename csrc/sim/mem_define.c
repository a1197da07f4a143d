/* mem_define.c - which bytes of an allocation are defined: one bit a byte, shared by all threads (contract in
 * mem.h). An extent without such bits counts as defined.
 */
#include <string.h>

#include "sim/mem.h"

static void
bits_or(uint8_t *map, uint64_t i, uint64_t n) /* n bits from bit i, within one byte */
{
    uint8_t bits = (uint8_t)(((1u << n) - 1) << (i & 7));
    __atomic_fetch_or(map + (i >> 3), bits, __ATOMIC_RELAXED);
}

void
sim_mark_defined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    uint64_t i = addr - x->base, head;
    if (!x->init || !n)
        return;
    head = TL_MIN(n, (8 - (i & 7)) & 7);
    if (head) {
        bits_or(x->init, i, head);
        i += head;
        n -= head;
    }
    if (n >> 3)
        memset(x->init + (i >> 3), 0xff, n >> 3);
    i += n & ~UINT64_C(7);
    if (n & 7)
        bits_or(x->init, i, n & 7);
}

static void
mark_undefined(const SimExtent *x, uint64_t addr, uint64_t n)
{
    for (uint64_t i = addr - x->base, e = i + n; i < e; i++)
        __atomic_fetch_and(x->init + (i >> 3), (uint8_t)~(1u << (i & 7)), __ATOMIC_RELAXED);
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
