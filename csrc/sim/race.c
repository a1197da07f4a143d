/* race.c - happens-before races on global memory (contract in mem.h).
 *
 * Each access is stamped with an epoch: (workgroup, wave, barrier interval, releases so far), interned to 30
 * bits, and with its instruction, interned to 15 bits. Memory of which little is touched is in race_sparse.c
 * and race_comb.c; once half of the blocks of a page of 4 KiB were covered as a whole, the page moves here.
 * It keeps the last write and the last read of each block of 16 dwords; where an access covers only a part of
 * a block, of each dword of it (6 bytes), and of which bytes of it where it does not cover the dword. Where
 * waves touch different bytes of one dword the bytes of its block get pairs of records of their own:
 * race_flat.c.
 *
 * Lanes that follow each other in memory are taken as one run, and a run whose records are all the same (one
 * instruction of one wave made them) is judged and entered at once. Pages are found by hash without a lock,
 * cached in the wave, and guarded by a lock each, under which the lock of the rest may be taken. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

SimRace *
sim_race_new(uint32_t waves)
{
    SimRace *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->waves = waves;
    r->nepochs = FIRST_EPOCH;
    r->npcs = 1;
    r->npairs = 1;
    atomic_flag_clear(&r->slab_lock);
    r->pages = calloc(PAGE_BUCKETS, sizeof *r->pages);
    r->pc_slot = malloc(sizeof *r->pc_slot * PC_UNKNOWN);
    pthread_mutex_t *lock[] = {&r->lock, &r->pair_lock};
    uint32_t n = 0;
    while (n < TL_COUNT(lock) && !pthread_mutex_init(lock[n], NULL))
        n++;
    if (sim_syncs_new_(r) && r->pages && r->pc_slot && n == TL_COUNT(lock))
        return r;
    sim_syncs_free_(r);
    while (n)
        pthread_mutex_destroy(lock[--n]);
    free(r->pages);
    free(r->pc_slot);
    free(r);
    return NULL;
}

static void
page_free(Page *p)
{
    free(p->wr.split);
    free(p->rd.split);
    free(p->mask);
    free(p->flat);
    free(p);
}

void
sim_race_free(SimRace *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < PAGE_BUCKETS; i++) {
        for (Page *p = atomic_load_explicit(&r->pages[i], memory_order_relaxed), *next; p; p = next) {
            next = p->next;
            page_free(p);
        }
    }
    for (uint32_t i = FIRST_EPOCH; i < r->nepochs; i++)
        sim_known_free_(epoch_of(r, i).known);
    for (uint32_t i = 0; i < PC_LEAVES; i++)
        free(atomic_load_explicit(&r->pc_leaf[i], memory_order_relaxed));
    for (uint32_t i = FIRST_EPOCH >> CHUNK_BITS; i < MAX_CHUNKS && r->chunk[i]; i++)
        free(r->chunk[i]);
    sim_regions_free_(r);
    sim_pairs_free_(r);
    sim_syncs_free_(r);
    sim_point_slabs_free_(r);
    free(r->pages);
    free(r->pc_slot);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->pair_lock);
    free(r);
}

bool
sim_race_out_of_memory(const SimRace *r)
{
    return atomic_load(&r->oom);
}

/* ---- one dword or byte ---- */

static uint32_t
lane_of(const Access *a, const Span *run, uint64_t addr)
{
    return run->lane + (uint32_t)((addr - run->lo) / a->bytes);
}

/* Bytes `mask` of the dword that addr lies in. */
static void
judge(Access *a, const Cell *c, uint32_t mask, uint64_t addr, const Span *run)
{
    Verdict v = sim_race_judge_(a, c, mask);
    if (!v.races)
        return;
    addr = (addr & ~UINT64_C(3)) + (uint32_t)__builtin_ctz(v.rec.mask & mask);
    sim_race_found_(a, &v, addr, lane_of(a, run, addr));
}

/* Can one record say it all? */
static bool
fits(const Access *a, const Rec *rec, uint32_t mask)
{
    if (!rec->epoch || rec->mask == mask)
        return true;
    bool multi = is_read(a->kind) ? rec->multi_wave || rec->multi_group
                                  : rec->multi_wave != (a->kind == SIM_ACC_MAYBE);
    bool flagged = multi || rec->atomic != is_atomic(a->kind);
    return rec->epoch == a->epoch && !flagged;
}

/* ---- pages ---- */

static inline uint32_t
epoch_at(const Side *s, uint32_t i)
{
    uint32_t e = s->block[i / BLOCK_DWORDS].epoch;
    return e == EP_SPLIT ? s->split[s->block[i / BLOCK_DWORDS].split - 1].epoch[i % BLOCK_DWORDS] : e;
}

static inline uint32_t
pc_at(const Side *s, uint32_t i)
{
    uint32_t b = i / BLOCK_DWORDS;
    return s->block[b].epoch == EP_SPLIT ? s->split[s->block[b].split - 1].pc[i % BLOCK_DWORDS]
                                         : s->block[b].pc;
}

static bool
split(Side *s, uint32_t b)
{
    if (s->block[b].epoch == EP_SPLIT)
        return true;
    if (!s->block[b].split) {
        if (s->nsplit == s->cap) {
            Split *more = realloc(s->split, (s->cap + 8) * sizeof *more);
            if (!more)
                return false;
            s->split = more;
            s->cap += 8;
        }
        s->block[b].split = (uint16_t)++s->nsplit;
    }
    Split *d = &s->split[s->block[b].split - 1];
    for (uint32_t i = 0; i < BLOCK_DWORDS; i++) {
        d->epoch[i] = s->block[b].epoch;
        d->pc[i] = s->block[b].pc;
    }
    s->block[b].epoch = EP_SPLIT;
    return true;
}

/* Records of dwords [i, i + n); false: out of memory. */
static bool
fill(Side *s, uint32_t i, uint32_t n, uint32_t epoch, uint16_t pc)
{
    for (uint32_t end = i + n, k; i < end; i = k) {
        uint32_t b = i / BLOCK_DWORDS;
        k = TL_MIN((b + 1) * BLOCK_DWORDS, end);
        if (s->block[b].epoch == epoch && s->block[b].pc == pc)
            continue;
        if (k - i == BLOCK_DWORDS) {
            s->block[b].epoch = epoch;
            s->block[b].pc = pc;
            continue;
        }
        if (!split(s, b))
            return false;
        Split *d = &s->split[s->block[b].split - 1];
        for (; i < k; i++) {
            d->epoch[i % BLOCK_DWORDS] = epoch;
            d->pc[i % BLOCK_DWORDS] = pc;
        }
    }
    return true;
}

static Cell
cell_get(const Page *p, uint32_t i)
{
    Cell c = {{0}, {0}};
    uint32_t m = p->mask ? p->mask[i] : 255, we = epoch_at(&p->wr, i), re = epoch_at(&p->rd, i);
    if (we == EP_MOVED) {
        c.wr.moved = 1;
        c.wr.mask = m & 15;
    } else if (we) {
        c.wr = sim_race_rec_(we, (uint16_t)pc_at(&p->wr, i), true);
        c.wr.mask = m & 15;
    }
    if (re) {
        c.rd = sim_race_rec_(re, (uint16_t)pc_at(&p->rd, i), false);
        c.rd.mask = m >> 4 & 15;
    }
    return c;
}

/* false: out of memory */
static bool
cell_put(Page *p, uint32_t i, const Cell *c)
{
    bool wr = c->wr.epoch || c->wr.moved, rd = c->rd.epoch;
    uint32_t m = (wr && !c->wr.moved ? c->wr.mask : 15u) | (rd ? c->rd.mask : 15u) << 4;
    if (m != 255 && !p->mask) {
        if (!(p->mask = malloc(PAGE_DWORDS)))
            return false;
        memset(p->mask, 255, PAGE_DWORDS);
    }
    if (p->mask)
        p->mask[i] = (uint8_t)m;
    uint32_t marks = c->wr.multi_wave ? EP_WAVES : 0u;
    if (wr && !fill(&p->wr, i, 1, c->wr.moved ? EP_MOVED : c->wr.epoch | marks, pc_bits(&c->wr)))
        return false;
    marks = (c->rd.multi_wave ? EP_WAVES : 0u) | (c->rd.multi_group ? EP_GROUPS : 0u);
    return !rd || fill(&p->rd, i, 1, c->rd.epoch | marks, pc_bits(&c->rd));
}

static bool
all_atomic(const Side *s, uint32_t i, uint32_t n)
{
    uint32_t all = PC_ATOMIC;
    for (uint32_t k = 0; k < n; k++)
        all &= pc_at(s, i + k);
    return all != 0;
}

static bool
whole_dwords(const Page *p, uint32_t i, uint32_t n)
{
    uint32_t all = 255;
    for (uint32_t k = 0; p->mask && k < n; k++)
        all &= p->mask[i + k];
    return all == 255;
}

/* End of the dwords from i on, at most `end`, whose write and read epochs are these. */
static uint32_t
same_until(const Page *p, uint32_t i, uint32_t end, uint32_t we, uint32_t re)
{
    while (i < end) {
        uint32_t b = i / BLOCK_DWORDS, next = TL_MIN((b + 1) * BLOCK_DWORDS, end);
        if (p->wr.block[b].epoch != EP_SPLIT && p->rd.block[b].epoch != EP_SPLIT) {
            if (p->wr.block[b].epoch != we || p->rd.block[b].epoch != re)
                break;
            i = next;
            continue;
        }
        while (i < next && epoch_at(&p->wr, i) == we && epoch_at(&p->rd, i) == re)
            i++;
        if (i < next)
            break;
    }
    return i;
}

/* The read record that follows `re` (0 = none). */
static uint32_t
next_read(Access *a, uint32_t re)
{
    uint32_t id = re & EP_ID;
    if (!id || id == a->epoch)
        return a->epoch | (re & ~(uint32_t)EP_ID);
    Epoch e = epoch_of(a->r, id);
    if (!ordered(a, id, OF_READ))
        return a->epoch | (re & EP_GROUPS) | (e.group != a->w->workgroup ? EP_GROUPS : EP_WAVES);
    return a->epoch | (re & EP_GROUPS) | (e.interval >= a->w->waited ? re & EP_WAVES : 0);
}

/* Whole dwords [i, i + n) with the same write epoch and the same read epoch; false: dword by dword (a race,
 * an exception). */
static bool
touch_same(Access *a, Page *p, uint32_t i, uint32_t n, uint32_t we, uint32_t re)
{
    bool read = is_read(a->kind), atomic = is_atomic(a->kind), maybe = a->kind == SIM_ACC_MAYBE;
    if (we == EP_MOVED || !whole_dwords(p, i, n) || (a->kind == SIM_ACC_ATOMIC && (we & EP_WAVES)))
        return false;
    if (we && !ordered(a, we & EP_ID, OF_WRITE) &&
        (!atomic || maybe || (we & EP_WAVES) || !all_atomic(&p->wr, i, n)))
        return false;
    if (atomic && (read ? re != 0 : (we & EP_ID) == a->epoch)) /* what was not atomic stays so */
        return false;
    if (!read && re && ((re & ~(uint32_t)EP_ID) || !ordered(a, re, OF_READ)) &&
        !(atomic && all_atomic(&p->rd, i, n)))
        return false;
    uint32_t now = read                       ? next_read(a, re)
                   : (we & EP_ID) == a->epoch ? we
                                              : a->epoch | (maybe ? EP_WAVES : 0u);
    if (!fill(read ? &p->rd : &p->wr, i, n, now, (uint16_t)(a->pc | (atomic ? PC_ATOMIC : 0))))
        atomic_store(&a->r->oom, true);
    return true;
}

/* Gives back the records of a block's dwords. */
static void
drop_split(Side *s, uint32_t b)
{
    uint32_t mine = s->block[b].split;
    s->block[b].split = 0;
    if (!mine)
        return;
    for (uint32_t i = 0; i < PAGE_BLOCKS && mine != s->nsplit; i++)
        if (s->block[i].split == s->nsplit) {
            s->split[mine - 1] = s->split[s->nsplit - 1];
            s->block[i].split = (uint16_t)mine;
            break;
        }
    s->nsplit--;
    Split *less = s->cap > s->nsplit + 16 ? realloc(s->split, (s->nsplit + 8) * sizeof *less) : NULL;
    if (less) {
        s->split = less;
        s->cap = s->nsplit + 8;
    }
}

static void
block_moved(Page *p, uint32_t b)
{
    p->wr.block[b].epoch = EP_MOVED;
    p->rd.block[b].epoch = 0;
    p->wr.block[b].pc = p->rd.block[b].pc = 0;
    drop_split(&p->wr, b);
    drop_split(&p->rd, b);
}

/* The bytes of the block get pairs of their own. */
static bool
move_block(SimRace *r, Page *p, uint32_t b)
{
    for (uint32_t i = b * BLOCK_DWORDS; i < (b + 1) * BLOCK_DWORDS; i++) {
        Cell c = cell_get(p, i);
        if (!sim_flat_seed_(r, p, i, &c))
            return false;
        if (p->mask)
            p->mask[i] = 255;
    }
    block_moved(p, b);
    return true;
}

/* What an atomic puts an end to, it may have seen; so may others that look at the record after this: its
 * release is handed on before the page is let go. */
static void
put_end_to(Access *a, const Page *p, const Cell *c, uint32_t mask, uint64_t addr)
{
    uint32_t last = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t byte = (addr & ((1u << PAGE_BITS) - 4)) + (uint32_t)__builtin_ctz(m);
        Rec rec = c->wr.moved ? sim_flat_get_(a->r, p, byte).wr : c->wr;
        if (!rec.epoch || !rec.multi_wave || rec.epoch == last)
            continue;
        last = rec.epoch;
        sim_race_carry_(a->r, a->w, addr, rec.epoch);
        if (a->w->nreplaced < TL_COUNT(a->w->replaced))
            a->w->replaced[a->w->nreplaced++] = (struct SimRaceReplaced){addr, rec.epoch};
    }
}

static void
touch_dword(Access *a, Page *p, Cell *c, uint32_t mask, uint64_t addr, const Span *run)
{
    if (a->kind == SIM_ACC_ATOMIC)
        put_end_to(a, p, c, mask, addr);
    const Rec *rec = is_read(a->kind) ? &c->rd : &c->wr;
    if (rec->epoch == a->epoch && rec->mask == mask && rec->atomic == is_atomic(a->kind) && !c->wr.moved &&
        c->wr.epoch == 0) {
        return; /* read again, nobody wrote */
    }
    if (!c->wr.moved) {
        judge(a, c, mask, addr, run);
        if (fits(a, rec, mask) || (mask == 15 && !is_read(a->kind))) {
            sim_race_enter_(a, c, mask);
            return;
        }
    }
    uint32_t byte = addr & ((1u << PAGE_BITS) - 4);
    bool judged = !c->wr.moved;
    if (judged && !move_block(a->r, p, byte / 4 / BLOCK_DWORDS)) {
        atomic_store(&a->r->oom, true);
        return;
    }
    *c = (Cell){{.moved = 1}, {0}};
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        uint64_t at = (addr & ~UINT64_C(3)) + i;
        sim_flat_touch_(a, p, byte + i, at, lane_of(a, run, at), judged);
    }
}

static void
touch_one(Access *a, Page *p, uint32_t mask, uint64_t addr, const Span *run)
{
    uint32_t i = addr >> 2 & (PAGE_DWORDS - 1);
    Cell c = cell_get(p, i);
    touch_dword(a, p, &c, mask, addr, run);
    if (!cell_put(p, i, &c))
        atomic_store(&a->r->oom, true);
}

/* [lo, hi) of one page. */
static void
touch_run(Access *a, Page *p, uint64_t lo, uint64_t hi, const Span *run)
{
    if (lo & 3) {
        uint64_t end = TL_MIN((lo | 3) + 1, hi);
        touch_one(a, p, ((1u << (end - lo)) - 1) << (lo & 3), lo, run);
        lo = end;
    }
    uint32_t i = lo >> 2 & (PAGE_DWORDS - 1), n = (uint32_t)((hi - lo) >> 2);
    uint64_t base = lo - 4 * (uint64_t)i;
    for (uint32_t end = i + n, k; i < end; i = k) {
        uint32_t we = epoch_at(&p->wr, i), re = epoch_at(&p->rd, i);
        k = same_until(p, i, end, we, re);
        if (!touch_same(a, p, i, k - i, we, re))
            for (uint32_t j = i; j < k; j++)
                touch_one(a, p, 15, base + 4 * (uint64_t)j, run);
    }
    lo += 4 * (uint64_t)n;
    if (lo < hi)
        touch_one(a, p, (1u << (hi - lo)) - 1, lo, run);
}

static _Atomic(Page *) *
page_slot(SimRace *r, uint64_t key)
{
    return &r->pages[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (PAGE_BUCKETS - 1)];
}

static Page *
page_of(SimRace *r, uint64_t key)
{
    Page *p = atomic_load_explicit(page_slot(r, key), memory_order_acquire);
    while (p && p->key != key)
        p = p->next;
    return p;
}

/* ---- from a region to a page ---- */

/* A block of which bytes of a dword are in entries of their own. */
static bool
put_bytes(SimRace *r, Page *p, uint32_t b, const Entry *e, uint32_t n)
{
    bool ok = true;
    for (const Entry *end = e + n; e < end; e++)
        for (uint32_t d = e->dwords; d && ok; d &= d - 1)
            for (uint32_t m = e->at & 15; m && ok; m &= m - 1) {
                uint32_t i = b * BLOCK_DWORDS + (uint32_t)__builtin_ctz(d);
                ok = sim_flat_put_(r, p, 4 * i + (uint32_t)__builtin_ctz(m), e->pair);
            }
    if (ok)
        block_moved(p, b);
    return ok;
}

static bool
put_block(SimRace *r, Page *p, uint32_t b, const Entry *e, uint32_t n)
{
    if (n == 1 && e->dwords == WHOLE_BLOCK && (e->at & 15) == 15) {
        Pair q = pair_at(r, e->pair);
        p->wr.block[b].epoch = q.wr;
        p->wr.block[b].pc = q.wr_pc;
        p->rd.block[b].epoch = q.rd;
        p->rd.block[b].pc = q.rd_pc;
        return true;
    }
    uint32_t seen = 0, twice = 0; /* dwords of more than one entry, or parts of some */
    for (uint32_t k = 0; k < n; k++) {
        twice |= (e[k].at & 15) == 15 ? seen & e[k].dwords : e[k].dwords;
        seen |= e[k].dwords;
    }
    if (twice)
        return put_bytes(r, p, b, e, n);
    bool ok = true;
    for (; n && ok; e++, n--)
        for (uint32_t d = e->dwords; d && ok; d &= d - 1) {
            Cell c = cell_of(r, e->pair, e->at);
            ok = cell_put(p, b * BLOCK_DWORDS + (uint32_t)__builtin_ctz(d), &c);
        }
    return ok;
}

/* The region's page becomes a Page when half of its blocks are covered as a whole: then the other half may be
 * touched as it likes, the page stays below 4 bytes a byte; or, as most pages will be covered then, when a
 * quarter are and no other block is touched; or when its entries take more than pairs of all its bytes. */
static void
promote(SimRace *r, Region *g, uint32_t page)
{
    uint32_t per = 65536 / REGION_PAGES, first = page * per, whole = 0;
    List *l = list_of(g, first);
    uint32_t lo = sim_list_at_(l, first), hi = lo + PAGE_BLOCKS / 4;
    if (hi > l->n || l->e[hi - 1].at >= first + per)
        return;
    for (hi = lo; hi < l->n && l->e[hi].at < first + per; hi++)
        whole += l->e[hi].dwords == WHOLE_BLOCK && (l->e[hi].at & 15) == 15;
    if (hi - lo < MANY_PARTS * PAGE_BLOCKS &&
        (whole < PAGE_BLOCKS / 4 || (whole < PAGE_BLOCKS / 2 && whole < hi - lo)))
        return;
    if (g->kinds || g->points) {
        uint64_t at = (g->key << REGION_BITS) + ((uint64_t)page << PAGE_BITS);
        sim_combs_clear_(r, g, at, at + (1u << PAGE_BITS));
        for (uint32_t b = 0; g->points && b < PAGE_BLOCKS; b++) /* teeth may have become some, too */
            sim_points_pull_(r, g, page * PAGE_BLOCKS + b);
        l = list_of(g, first);
        lo = sim_list_at_(l, first);
        hi = sim_list_at_(l, first + per);
    }
    Page *p = calloc(1, sizeof *p);
    bool ok = p != NULL;
    if (p) {
        atomic_flag_clear(&p->lock);
        p->key = g->key << (REGION_BITS - PAGE_BITS) | page;
    }
    for (uint32_t i = lo, end; i < hi && ok; i = end) {
        for (end = i; end < hi && l->e[end].at >> 4 == l->e[i].at >> 4;)
            end++;
        ok = put_block(r, p, (l->e[i].at >> 4) % PAGE_BLOCKS, l->e + i, end - i);
    }
    if (!ok) {
        if (p)
            page_free(p);
        atomic_store(&r->oom, true);
        return;
    }
    pthread_mutex_lock(&r->lock);
    _Atomic(Page *) *head = page_slot(r, p->key);
    p->next = atomic_load_explicit(head, memory_order_relaxed);
    atomic_store_explicit(head, p, memory_order_release);
    pthread_mutex_unlock(&r->lock);
    memmove(l->e + lo, l->e + hi, (l->n - hi) * sizeof *l->e);
    l->n -= hi - lo;
    sim_list_fit_(l);
    atomic_fetch_or_explicit(&g->dense, UINT64_C(1) << page, memory_order_release);
}

/* ---- an access ---- */

/* What was put off for the page of the region in use. */
static void
settle(Access *a)
{
    sim_region_flush_(a);
    if (a->ripe)
        promote(a->r, a->region, a->region_page);
    a->ripe = false;
}

static void
let_go(Access *a)
{
    if (a->page)
        spin_unlock(&a->page->lock);
    if (a->region) {
        settle(a);
        spin_unlock(&a->region->lock);
    }
    a->page = NULL;
    a->region = NULL;
}

static bool
is_dense(const Region *g, uint32_t page)
{
    return atomic_load_explicit(&g->dense, memory_order_acquire) >> page & 1;
}

static void
hold_page(Access *a, Page *p)
{
    spin_lock(&p->lock);
    a->page = p;
}

/* Locks the page, or the region, that keeps addr; false: out of memory. */
static bool
hold(Access *a, uint64_t addr)
{
    uint64_t key = addr >> PAGE_BITS;
    uint32_t slot = key & (SIM_RACE_CACHE - 1), page = key % REGION_PAGES;
    if (a->page && a->page->key == key)
        return true;
    if (a->region && a->region->key == addr >> REGION_BITS) {
        if (page == a->region_page && !a->ripe)
            return true;
        settle(a);
        a->region_page = page;
        if (!is_dense(a->region, page))
            return true;
    }
    let_go(a);
    if (a->w->page[slot] && a->w->page_key[slot] == key) {
        hold_page(a, a->w->page[slot]);
        return true;
    }
    Region *g = sim_region_of_(a->r, a->w, addr);
    if (!g)
        return false;
    if (!is_dense(g, page)) {
        spin_lock(&g->lock);
        a->region = g;
        a->region_page = page;
        if (!is_dense(g, page))
            return true;
        let_go(a);
    }
    Page *p = page_of(a->r, key);
    if (!p)
        return false;
    a->w->page[slot] = p;
    a->w->page_key[slot] = key;
    hold_page(a, p);
    return true;
}

uint32_t
sim_race_spans_(const uint64_t *addr, uint64_t exec, uint32_t bytes, Span *span)
{
    uint32_t n = 0;
    while (exec) {
        uint32_t l = (uint32_t)__builtin_ctzll(exec);
        Span *s = &span[n++];
        *s = (Span){addr[l], addr[l] + bytes, l};
        for (exec &= exec - 1, l++; exec & (UINT64_C(1) << (l & 63)) && l < 64 && addr[l] == s->hi; l++) {
            exec &= exec - 1;
            s->hi += bytes;
        }
        if (s->hi - s->lo == bytes)
            while (exec && addr[__builtin_ctzll(exec)] == s->lo)
                exec &= exec - 1;
    }
    return n;
}

/* false: not as a comb */
static bool
enter_comb(Access *a, const Span *s, uint32_t n)
{
    return hold(a, s->lo) && a->region && sim_comb_touch_(a, s, n);
}

/* false: out of memory */
static bool
enter_span(Access *a, const Span *s)
{
    for (uint64_t lo = s->lo, end; lo < s->hi; lo = end) {
        end = TL_MIN(((lo >> PAGE_BITS) + 1) << PAGE_BITS, s->hi);
        if (!hold(a, lo))
            return false;
        if (a->page)
            touch_run(a, a->page, lo, end, s);
        else
            sim_region_touch_(a, lo, end);
    }
    return true;
}

bool
sim_race_access(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t exec, uint32_t bytes,
                SimAccess kind, uint32_t pc_slot, SimRaceHit *hit)
{
    w->nreplaced = 0;
    Access a = {.r = r, .w = w, .addr = addr, .exec = exec, .bytes = bytes, .kind = kind, .hit = hit};
    if (!(a.epoch = sim_epoch_now_(r, w)))
        return false;
    a.pc = sim_pc_number_(r, pc_slot);
    Span span[64];
    uint32_t n = sim_race_spans_(addr, exec, bytes, span);
    for (uint32_t i = 0, one_by_one = 0; i < n;) {
        uint32_t comb = i >= one_by_one && n - i > 1 ? sim_comb_of_(span + i, n - i) : 0;
        if (comb && enter_comb(&a, span + i, comb)) {
            i += comb;
            continue;
        }
        one_by_one = TL_MAX(one_by_one, i + comb);
        if (!enter_span(&a, &span[i++])) {
            atomic_store(&r->oom, true);
            return a.found;
        }
    }
    let_go(&a);
    if (kind == SIM_ACC_MAYBE && epoch_of(r, a.epoch).released > w->releases)
        w->releases++; /* what comes next is not released by this store */
    return a.found;
}

/* The last write of a byte. */
static Rec
last_write(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    Access a = {.r = r, .w = w};
    Rec rec = {0};
    if (!hold(&a, addr))
        return rec;
    if (a.region) {
        rec = sim_region_get_(r, a.region, addr).wr;
    } else {
        Cell c = cell_get(a.page, addr >> 2 & (PAGE_DWORDS - 1));
        rec = c.wr;
        if (rec.moved)
            rec = sim_flat_get_(r, a.page, addr & ((1u << PAGE_BITS) - 1)).wr;
    }
    let_go(&a);
    return rec;
}

uint32_t
sim_race_last_store(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    Rec rec = last_write(r, w, addr);
    return rec.epoch && rec.multi_wave && (rec.mask || rec.moved) ? rec.epoch : 0;
}

bool
sim_race_last_party(SimRace *r, SimRaceWave *w, uint64_t addr, uint32_t *group, uint32_t *wave)
{
    Rec rec = last_write(r, w, addr);
    if (!rec.epoch || !(rec.mask >> (addr & 3) & 1 || rec.moved))
        return false;
    Epoch e = epoch_of(r, rec.epoch);
    *group = e.group;
    *wave = e.wave;
    return true;
}

bool
sim_race_scalar_stale(SimRace *r, SimRaceWave *w, uint64_t addr, SimRaceHit *hit)
{
    Rec rec = last_write(r, w, addr);
    if (!rec.epoch || !(rec.mask >> (addr & 3) & 1 || rec.moved))
        return false;
    Epoch e = epoch_of(r, rec.epoch);
    if ((e.group == w->workgroup && e.wave == w->wave) || !before(r, rec.epoch, w, SIM_ACC_READ, false))
        return false;
    if (w->scalar && before(r, rec.epoch, w->scalar, SIM_ACC_READ, false))
        return false;
    *hit = (SimRaceHit){.addr = addr,
                        .workgroup = e.group,
                        .wave = e.wave,
                        .pc_slot = rec.pc < PC_UNKNOWN ? r->pc_slot[rec.pc] : UINT32_MAX,
                        .other = rec.atomic && !rec.multi_wave ? SIM_ACC_ATOMIC : SIM_ACC_WRITE};
    return true;
}
