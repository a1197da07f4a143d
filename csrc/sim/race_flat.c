/* race_flat.c - races on global memory: bytes of one dword, on a page touched densely, that belong to
 * different waves (contract in race_int.h).
 *
 * A block with such a dword has a number for each of its bytes: that of the record of the byte's pair of last
 * write and last read, in three bytes, or four once the page has one that needs them. It stays here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { SMALL = 3, WIDE = 4, STEP = 8 };

static uint8_t *
place(const Page *p, uint32_t byte)
{
    return (uint8_t *)p->flat->number +
           ((p->flat->of[byte / BLOCK_BYTES] - 1u) * BLOCK_BYTES + byte % BLOCK_BYTES) * p->flat->size;
}

static uint32_t
get(const Page *p, uint32_t byte)
{
    const uint8_t *at = place(p, byte);
    return at[0] | at[1] << 8 | at[2] << 16 | (p->flat->size == WIDE ? (uint32_t)at[3] << 24 : 0);
}

static void
set(Page *p, uint32_t byte, uint32_t number)
{
    uint8_t *at = place(p, byte);
    for (uint32_t i = 0; i < p->flat->size; i++)
        at[i] = (uint8_t)(number >> 8 * i);
}

static Flat *
with_room(Flat *old, uint32_t cap, uint32_t size)
{
    Flat *f = realloc(old, sizeof *f + cap * BLOCK_BYTES * size);
    if (f && !old)
        memset(f, 0, sizeof *f);
    if (f)
        f->cap = (uint8_t)cap;
    return f;
}

/* Room for the numbers of a byte's block. */
static bool
room(Page *p, uint32_t byte)
{
    Flat *f = p->flat;
    uint32_t b = byte / BLOCK_BYTES;
    if (f && f->of[b])
        return true;
    if (!f || f->n == f->cap) {
        uint32_t size = f ? f->size : SMALL, cap = f ? TL_MIN(f->cap + STEP, PAGE_BLOCKS) : 1;
        if (!(f = with_room(f, cap, size)))
            return false;
        f->size = (uint8_t)size;
        p->flat = f;
    }
    memset(f->number + f->n * BLOCK_BYTES * f->size, 0, BLOCK_BYTES * f->size);
    f->of[b] = ++f->n;
    return true;
}

/* Numbers of four bytes. */
static bool
widen(Page *p)
{
    Flat *f = with_room(p->flat, p->flat->cap, WIDE);
    if (!f)
        return false;
    for (uint32_t i = f->n * BLOCK_BYTES; i--;) {
        memmove(f->number + WIDE * i, f->number + SMALL * i, SMALL);
        f->number[WIDE * i + SMALL] = 0;
    }
    f->size = WIDE;
    p->flat = f;
    return true;
}

static bool
put(SimRace *r, Page *p, uint32_t byte, const Pair *pair)
{
    bool none = !pair->wr && !pair->rd;
    uint32_t number = none ? 0 : sim_pair_of_(r, pair, true);
    if ((!none && !number) || (number >> 8 * SMALL && p->flat->size == SMALL && !widen(p)))
        return false;
    set(p, byte, number);
    return true;
}

bool
sim_flat_put_(SimRace *r, Page *p, uint32_t byte, uint32_t pair)
{
    Pair q = pair_at(r, pair);
    return room(p, byte) && put(r, p, byte, &q);
}

bool
sim_flat_seed_(SimRace *r, Page *p, uint32_t dword, const Cell *c)
{
    bool ok = room(p, 4 * dword);
    const Pair all = pair_from(c);
    bool whole = c->wr.mask == 15 && c->rd.mask == 15; /* most */
    for (uint32_t i = 0; i < 4 && ok; i++) {
        if (i && whole) {
            set(p, 4 * dword + i, get(p, 4 * dword));
            continue;
        }
        Pair q = {0};
        if (c->wr.mask >> i & 1) {
            q.wr = all.wr;
            q.wr_pc = all.wr_pc;
        }
        if (c->rd.mask >> i & 1) {
            q.rd = all.rd;
            q.rd_pc = all.rd_pc;
        }
        ok = put(r, p, 4 * dword + i, &q);
    }
    return ok;
}

Cell
sim_flat_get_(const SimRace *r, const Page *p, uint32_t byte)
{
    return cell_of(r, get(p, byte), 1);
}

void
sim_flat_touch_(Access *a, Page *p, uint32_t byte, uint64_t addr, uint32_t lane, bool judged)
{
    uint32_t from = get(p, byte);
    Step *s = &a->byte_step;
    if (!s->valid || s->from != from) {
        Cell c = cell_of(a->r, from, 1);
        bool again = is_read(a->kind) && !c.wr.epoch && c.rd.epoch == a->epoch;
        *s = (Step){.from = from, .to = from};
        if (!again || c.rd.atomic != is_atomic(a->kind)) {
            s->verdict = sim_race_judge_(a, &c, 1);
            sim_race_enter_(a, &c, 1);
            Pair to = pair_from(&c);
            s->to = sim_pair_of_(a->r, &to, true);
        }
        s->valid = s->to != 0;
    }
    if (!judged && s->verdict.races)
        sim_race_found_(a, &s->verdict, addr, lane);
    if (!s->to || (s->to >> 8 * SMALL && p->flat->size == SMALL && !widen(p)))
        atomic_store(&a->r->oom, true);
    else
        set(p, byte, s->to);
}
