/* race_sparse.c - the shadow of global memory of which little is touched, or in patterns (contract in mem.h,
 * race_int.h).
 *
 * A region covers 256 KiB. Its list has an entry (8 bytes) for all dwords of a block of 64 bytes whose last
 * write and last read are the same: one for a column of a matrix, one for a lone dword; dwords of which
 * single bytes were touched have entries by bytes, exact to the byte. Pairs of last write and last read are
 * numbered (race_pair.c): what a wave's instruction leaves behind is one pair, wherever its lanes went. A
 * long list is cut into sixteen. Elements at equal distances are in race_comb.c, lone ones, where there are
 * many, in race_point.c.
 *
 * Parts of one block that lanes touch one after the other are gathered and entered at once; what an access
 * makes of a pair is worked out once an instruction. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { CUT_AT = 1024 };

/* ---- regions and lists ---- */

static Region *
region_in(Region *g, uint64_t key)
{
    while (g && g->key != key)
        g = g->next;
    return g;
}

Region *
sim_region_of_(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    uint64_t key = addr >> REGION_BITS;
    uint32_t slot = key % SIM_RACE_REGIONS;
    if (w->region[slot] && w->region_key[slot] == key)
        return w->region[slot];
    _Atomic(Region *) *head = &r->regions[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (REGION_BUCKETS - 1)];
    Region *g = region_in(atomic_load_explicit(head, memory_order_acquire), key);
    if (!g) {
        pthread_mutex_lock(&r->lock);
        Region *first = atomic_load_explicit(head, memory_order_relaxed);
        g = region_in(first, key);
        if (!g && (g = calloc(1, sizeof *g))) {
            atomic_flag_clear(&g->lock);
            g->key = key;
            g->next = first;
            atomic_store_explicit(head, g, memory_order_release);
        }
        pthread_mutex_unlock(&r->lock);
    }
    if (g) {
        w->region[slot] = g;
        w->region_key[slot] = key;
    }
    return g;
}

void
sim_region_free_(Region *g)
{
    for (uint32_t k = 0; g->sub && k < REGION_LISTS; k++)
        free(g->sub[k].e);
    free(g->sub);
    free(g->one.e);
    free(g->points);
    sim_combs_free_(g);
    free(g);
}

void
sim_regions_free_(SimRace *r)
{
    for (uint32_t i = 0; i < REGION_BUCKETS; i++)
        for (Region *g = atomic_load_explicit(&r->regions[i], memory_order_relaxed), *next; g; g = next) {
            next = g->next;
            sim_region_free_(g);
        }
}

uint32_t
sim_list_at_(const List *l, uint32_t at)
{
    uint32_t a = 0, b = l->n;
    if (b && l->e[b - 1].at < at) /* mostly from low to high */
        return b;
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        if (l->e[mid].at < at)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

/* Room for n entries, with an eighth to spare. */
static bool
list_room(List *l, uint32_t n)
{
    if (n <= l->cap)
        return true;
    uint32_t cap = TL_MAX(n, l->cap + TL_MAX(l->cap / 8, 4u));
    Entry *e = realloc(l->e, cap * sizeof *e);
    if (!e)
        return false;
    l->e = e;
    l->cap = cap;
    return true;
}

void
sim_list_fit_(List *l)
{
    Entry *e = l->cap > 2 * l->n + 64 ? realloc(l->e, TL_MAX(l->n, 1) * sizeof *e) : NULL;
    if (e) {
        l->e = e;
        l->cap = TL_MAX(l->n, 1);
    }
}

void
sim_region_cut_(SimRace *r, Region *g)
{
    sim_points_look_(r, g);
    if (g->sub || g->one.n <= CUT_AT)
        return;
    List *sub = calloc(REGION_LISTS, sizeof *sub);
    bool ok = sub != NULL;
    for (uint32_t k = 0, i = 0; k < REGION_LISTS && ok; k++) {
        uint32_t end = sim_list_at_(&g->one, (k + 1) * (65536 / REGION_LISTS));
        ok = list_room(&sub[k], end - i);
        if (ok && end > i)
            memcpy(sub[k].e, g->one.e + i, (end - i) * sizeof *sub[k].e);
        sub[k].n = ok ? end - i : 0;
        i = end;
    }
    if (!ok) { /* as good, but slower */
        for (uint32_t k = 0; sub && k < REGION_LISTS; k++)
            free(sub[k].e);
        free(sub);
        return;
    }
    free(g->one.e);
    g->one = (List){0};
    g->sub = sub;
}

bool
sim_list_replace_(List *l, uint32_t lo, uint32_t hi, const Entry *e, uint32_t n)
{
    uint32_t all = l->n - (hi - lo) + n;
    if (!list_room(l, all))
        return false;
    if (lo + n != hi)
        memmove(l->e + lo + n, l->e + hi, (l->n - hi) * sizeof *l->e);
    if (n)
        memcpy(l->e + lo, e, n * sizeof *e);
    l->n = all;
    return true;
}

/* ---- one access ---- */

const Step *
sim_race_step_(Access *a, uint32_t pair)
{
    Step *s = &a->step[(pair ^ pair / PAIR_EPOCHS) % TL_COUNT(a->step)];
    if (s->valid && s->from == pair)
        return s;
    *s = (Step){true, pair, pair, 0, {0}};
    Cell c = cell_of(a->r, pair, 15);
    Pair from = pair_at(a->r, pair), to = from;
    bool read = is_read(a->kind);
    const Rec *rec = read ? &c.rd : &c.wr;
    if (a->kind == SIM_ACC_ATOMIC && c.wr.multi_wave) /* what an atomic puts an end to, it may have seen */
        s->replaces = c.wr.epoch;
    if (!to.wr && rec->epoch == a->epoch && rec->atomic == is_atomic(a->kind))
        return s; /* read again, nobody wrote */
    s->verdict = sim_race_judge_(a, &c, 15);
    sim_race_enter_(a, &c, 15);
    to = pair_from(&c);
    if (!same_pair(&to, &from))
        s->to = sim_pair_of_(a->r, &to, false);
    if (!s->to)
        atomic_store(&a->r->oom, true);
    return s;
}

uint32_t
sim_race_after_(void *access, uint32_t pair)
{
    const Step *s = sim_race_step_(access, pair);
    return s->verdict.races || s->replaces ? 0 : s->to;
}

typedef struct Part { /* a block under an access */
    Access *a;
    uint64_t base; /* its address */
    Entry e[BLOCK_BYTES];
    uint32_t n;
    uint32_t lane; /* the first one that races, 64: none */
    uint64_t addr;
    Verdict verdict;
} Part;

static void
add(Part *p, uint32_t at, uint32_t dwords, uint32_t pair)
{
    if (!(at & 15) || !dwords || !pair)
        return;
    uint32_t i = p->n;
    while (i && p->e[i - 1].at >= at) {
        Entry *e = &p->e[--i];
        if (e->at == at && e->pair == pair) {
            e->dwords |= (uint16_t)dwords;
            return;
        }
    }
    if (p->n == TL_COUNT(p->e)) /* cannot be: entries share no byte */
        return;
    memmove(p->e + i + 1, p->e + i, (p->n - i) * sizeof *p->e);
    p->e[i] = (Entry){(uint16_t)at, (uint16_t)dwords, pair};
    p->n++;
}

/* The access does to these bytes what the step says; remembers the first lane that races. */
static void
take(Part *p, const Step *s, uint32_t dwords, uint32_t bytes)
{
    Access *a = p->a;
    SimRaceWave *w = a->w;
    for (uint32_t m = s->replaces ? dwords : 0; m; m &= m - 1) {
        uint64_t addr = p->base + 4u * (uint32_t)__builtin_ctz(m);
        sim_race_carry_(a->r, a->w, addr, s->replaces); /* as in race.c */
        if (w->nreplaced < TL_COUNT(w->replaced))
            w->replaced[w->nreplaced++] = (struct SimRaceReplaced){addr, s->replaces};
    }
    if (!s->verdict.races || a->found)
        return;
    for (uint32_t m = dwords; m; m &= m - 1)
        for (uint32_t b = bytes; b; b &= b - 1) {
            uint64_t addr = p->base + 4u * (uint32_t)__builtin_ctz(m) + (uint32_t)__builtin_ctz(b);
            uint32_t l = 0;
            while (l < 64 && !(a->exec >> l & 1 && addr - a->addr[l] < a->bytes))
                l++;
            if (l < p->lane || (l == p->lane && addr < p->addr)) {
                p->lane = l;
                p->addr = addr;
                p->verdict = s->verdict;
            }
        }
}

static bool
is_whole(const Entry *e)
{
    return e->dwords == WHOLE_BLOCK && (e->at & 15) == 15;
}

/* Entries [lo, hi) of one block, of which an access touches some bytes of some dwords. */
static void
touch_part(Access *a, List *l, uint32_t lo, uint32_t hi)
{
    uint32_t block = a->at >> 4, bytes = a->at & 15, dwords = a->dwords;
    uint16_t need[16] = {0}; /* dwords by those of their bytes that are in no entry */
    Part p;
    p.a = a;
    p.base = (a->region->key << REGION_BITS) + block * BLOCK_BYTES;
    p.n = 0;
    p.lane = 64;
    need[bytes] = (uint16_t)dwords;
    for (uint32_t i = lo; i < hi; i++) {
        Entry e = l->e[i];
        uint32_t over = e.dwords & dwords, both = e.at & bytes, sel = e.at & 15u;
        if (!over || !both) {
            add(&p, e.at, e.dwords, e.pair);
            continue;
        }
        const Step *s = sim_race_step_(a, e.pair);
        take(&p, s, over, both);
        add(&p, e.at, e.dwords & ~over, e.pair);
        add(&p, block << 4 | (sel & ~both), over, e.pair);
        add(&p, block << 4 | both, over, s->to);
        for (uint32_t t = 1; t < 16; t++) {
            uint16_t x = need[t] & (uint16_t)over;
            need[t] &= (uint16_t)~x;
            need[t & ~both] |= x;
        }
    }
    for (uint32_t t = 1; t < 16; t++)
        if (need[t]) {
            const Step *s = sim_race_step_(a, 0);
            add(&p, block << 4 | t, need[t], s->to);
        }
    if (p.lane < 64)
        sim_race_found_(a, &p.verdict, p.addr, p.lane);
    if (!sim_list_replace_(l, lo, hi, p.e, p.n))
        atomic_store(&a->r->oom, true);
    a->ripe |= (p.n == 1 && is_whole(p.e)) || p.n >= MANY_PARTS;
}

/* The usual cases: the bytes are in no entry, or just those of one entry; false: others. */
static bool
touch_simply(Access *a, List *l, uint32_t lo, uint32_t hi)
{
    if (hi - lo > 1 || (hi > lo && (l->e[lo].at != a->at || l->e[lo].dwords != a->dwords)))
        return false;
    Entry e = {(uint16_t)a->at, (uint16_t)a->dwords, hi > lo ? l->e[lo].pair : 0};
    const Step *s = sim_race_step_(a, e.pair);
    if (s->verdict.races || s->replaces || !s->to)
        return false;
    e.pair = s->to;
    if (hi > lo) {
        l->e[lo] = e;
        return true;
    }
    a->ripe |= is_whole(&e);
    return sim_list_replace_(l, lo, hi, &e, 1);
}

void
sim_region_flush_(Access *a)
{
    if (!a->dwords)
        return;
    Region *g = a->region;
    if (g->points && sim_point_enter_(a->r, g, a->at, a->dwords, sim_race_after_, a)) {
        a->dwords = 0;
        return;
    }
    List *l = list_of(g, a->at);
    uint32_t block = a->at >> 4, lo = a->next;
    /* mostly the block behind the last one */
    if (lo >= l->n || !lo || l->e[lo].at < block << 4 || l->e[lo - 1].at >> 4 >= block)
        lo = sim_list_at_(l, block << 4);
    uint32_t hi = lo;
    while (hi < l->n && l->e[hi].at >> 4 == block)
        hi++;
    if (!touch_simply(a, l, lo, hi))
        touch_part(a, l, lo, hi);
    a->next = lo + 1;
    a->dwords = 0;
    sim_region_cut_(a->r, g);
}

static void
put_off(Access *a, uint32_t at, uint32_t dwords)
{
    if (at != a->at)
        sim_region_flush_(a);
    a->at = at;
    a->dwords |= dwords;
}

void
sim_region_touch_(Access *a, uint64_t lo, uint64_t hi)
{
    const uint32_t in_region = (1u << REGION_BITS) - 1;
    if (a->region->kinds)
        sim_combs_clear_(a->r, a->region, lo, hi);
    while (lo < hi) {
        uint32_t at = (uint32_t)(lo & in_region) / BLOCK_BYTES << 4, i = lo % BLOCK_BYTES / 4;
        uint64_t end = TL_MIN((lo | 3) + 1, hi);
        if (end - lo < 4) {
            put_off(a, at | bytes_of(lo, end), 1u << i);
        } else {
            uint32_t n = (uint32_t)TL_MIN((hi - lo) / 4, BLOCK_DWORDS - i);
            put_off(a, at | 15, ((1u << n) - 1) << i);
            end = lo + 4 * (uint64_t)n;
        }
        lo = end;
    }
}

Cell
sim_region_get_(const SimRace *r, Region *g, uint64_t addr)
{
    uint32_t block = (uint32_t)(addr & ((1u << REGION_BITS) - 1)) / BLOCK_BYTES;
    const List *l = list_of(g, block << 4);
    for (uint32_t i = sim_list_at_(l, block << 4); i < l->n && l->e[i].at >> 4 == block; i++)
        if (l->e[i].dwords >> (addr % BLOCK_BYTES / 4) & 1 && l->e[i].at >> (addr & 3) & 1)
            return cell_of(r, l->e[i].pair, 15);
    uint32_t pair = sim_points_get_(r, g, addr, 1);
    return cell_of(r, pair ? pair : sim_combs_get_(g, addr), 15);
}
