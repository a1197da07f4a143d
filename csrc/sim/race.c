/* race.c - happens-before races on global memory (contract in mem.h).
 *
 * Each access is stamped with an epoch: (workgroup, wave, barrier interval, releases so far), interned to 30
 * bits, and with its instruction, interned to 15 bits. A shadow page covers 4 KiB. It keeps the last write
 * and the last read of each block of 16 dwords; where an access covers only a part of a block, of each dword
 * (6 bytes), and of which bytes of it where it does not cover the dword. Where waves touch different bytes of
 * one dword the dword moves to an overflow table with records for each byte.
 *
 * Lanes that follow each other in memory are taken as one run, and a run whose records are all the same (one
 * instruction of one wave made them) is judged and entered at once. Pages are found by hash without a lock,
 * cached in the wave, and guarded by a lock each, under which the lock of the rest may be taken. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdlib.h>

#include "sim/race_int.h"

SimRace *
sim_race_new(void)
{
    SimRace *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->nepochs = 1;
    r->npcs = 1;
    r->pages = calloc(PAGE_BUCKETS, sizeof *r->pages);
    r->pc_slot = malloc(sizeof *r->pc_slot * PC_UNKNOWN);
    if (!r->pages || !r->pc_slot || pthread_mutex_init(&r->lock, NULL)) {
        free(r->pages);
        free(r->pc_slot);
        free(r);
        return NULL;
    }
    if (pthread_mutex_init(&r->bytes_lock, NULL)) {
        pthread_mutex_destroy(&r->lock);
        free(r->pages);
        free(r->pc_slot);
        free(r);
        return NULL;
    }
    return r;
}

void
sim_race_free(SimRace *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < PAGE_BUCKETS; i++) {
        for (Page *p = atomic_load_explicit(&r->pages[i], memory_order_relaxed), *next; p; p = next) {
            next = p->next;
            free(p->wr.dw);
            free(p->rd.dw);
            free(p->mask);
            free(p);
        }
    }
    for (uint32_t i = 1; i < r->nepochs; i++)
        sim_known_free_(epoch_of(r, i)->known);
    for (uint32_t i = 0; i < PC_LEAVES; i++)
        free(atomic_load_explicit(&r->pc_leaf[i], memory_order_relaxed));
    for (uint32_t i = 0; i < MAX_CHUNKS && r->chunk[i]; i++)
        free(r->chunk[i]);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (Sync *s = r->sync[i], *next; s; s = next) {
            next = s->next;
            free(s->known.e);
            free(s->fail);
            free(s);
        }
        for (Bytes *b = r->bytes[i], *next; b; b = next) {
            next = b->next;
            free(b);
        }
    }
    free(r->pages);
    free(r->pc_slot);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->bytes_lock);
    free(r);
}

bool
sim_race_out_of_memory(const SimRace *r)
{
    return atomic_load(&r->oom);
}

/* ---- one dword or byte ---- */

typedef struct Access {
    SimRace *r;
    SimRaceWave *w;
    uint32_t epoch, bytes;
    uint16_t pc;
    SimAccess kind;
    SimRaceHit *hit;
    bool found;
    uint32_t memo_epoch[2]; /* neighbouring dwords mostly have the same last party */
    bool memo_before[2];
} Access;

enum { OF_WRITE, OF_READ };

static inline bool
ordered(Access *a, uint32_t epoch, uint32_t of)
{
    if (epoch != a->memo_epoch[of]) {
        a->memo_epoch[of] = epoch;
        a->memo_before[of] = before(a->r, epoch, a->w, a->kind);
    }
    return a->memo_before[of];
}

static void
found(Access *a, const Rec *rec, SimAccess other, bool known_party, uint64_t addr, uint32_t lane)
{
    if (a->found)
        return;
    a->found = true;
    const Epoch *e = epoch_of(a->r, rec->epoch);
    *a->hit = (SimRaceHit){.addr = addr,
                           .lane = lane,
                           .workgroup = known_party ? e->group : UINT32_MAX,
                           .wave = known_party ? e->wave : UINT32_MAX,
                           .pc_slot = rec->pc < PC_UNKNOWN ? a->r->pc_slot[rec->pc] : UINT32_MAX,
                           .other = other,
                           .behind_barrier = e->group == a->w->workgroup && e->interval < a->w->waited};
}

static bool
is_read(SimAccess k)
{
    return k == SIM_ACC_READ || k == SIM_ACC_ATOMIC_READ;
}

static bool
is_atomic(SimAccess k)
{
    return k == SIM_ACC_ATOMIC || k == SIM_ACC_ATOMIC_READ || k == SIM_ACC_MAYBE;
}

/* Both atomic; two stores that may be atomic are taken for plain ones. */
static bool
both_atomic(SimAccess k, const Rec *wr)
{
    return is_atomic(k) && wr->atomic && !(k == SIM_ACC_MAYBE && wr->multi_wave);
}

/* Races of this access with the records of a cell, whose masks overlap `mask`. */
static void
judge(Access *a, const Cell *c, uint32_t mask, uint64_t addr, uint32_t lane)
{
    bool atomic = is_atomic(a->kind);
    if (c->wr.epoch && c->wr.mask & mask && !both_atomic(a->kind, &c->wr) &&
        !ordered(a, c->wr.epoch, OF_WRITE))
        found(a, &c->wr, c->wr.atomic && !c->wr.multi_wave ? SIM_ACC_ATOMIC : SIM_ACC_WRITE, true, addr,
              lane);
    if (is_read(a->kind) || !c->rd.epoch || !(c->rd.mask & mask) || (atomic && c->rd.atomic))
        return;
    SimAccess other = c->rd.atomic ? SIM_ACC_ATOMIC_READ : SIM_ACC_READ;
    if (!ordered(a, c->rd.epoch, OF_READ)) {
        found(a, &c->rd, other, true, addr, lane);
        return;
    }
    if (a->w->known) /* the other readers may be among what it acquired */
        return;
    const Epoch *e = epoch_of(a->r, c->rd.epoch);
    if (c->rd.multi_group || (c->rd.multi_wave && e->group == a->w->workgroup && e->interval >= a->w->waited))
        found(a, &c->rd, other, false, addr, lane);
}

/* Puts the access into the cell as its newest record. */
static void
enter(Access *a, Cell *c, uint32_t mask)
{
    bool read = is_read(a->kind), atomic = is_atomic(a->kind);
    Rec *rec = read ? &c->rd : &c->wr;
    if (rec->epoch == a->epoch) {
        rec->mask |= mask & 15;
        rec->pc = a->pc;
        rec->atomic &= atomic;
        if (!read)
            rec->multi_wave |= a->kind == SIM_ACC_MAYBE;
        return;
    }
    Rec n = {.epoch = a->epoch, .pc = a->pc, .mask = mask & 15, .atomic = atomic};
    if (read && rec->epoch && !ordered(a, rec->epoch, OF_READ)) {
        const Epoch *e = epoch_of(a->r, rec->epoch);
        n.multi_group = rec->multi_group || e->group != a->w->workgroup;
        n.multi_wave = e->group == a->w->workgroup;
        n.atomic &= rec->atomic;
    } else if (read && rec->epoch) {
        /* the same wave again (other releases) or after a barrier: readers of other groups stay unordered */
        n.multi_group = rec->multi_group;
        const Epoch *e = epoch_of(a->r, rec->epoch);
        n.multi_wave = rec->multi_wave && e->interval >= a->w->waited;
    }
    n.moved = rec->moved;
    if (!read)
        n.multi_wave = a->kind == SIM_ACC_MAYBE;
    *rec = n;
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

static Bytes *
bytes_of(SimRace *r, uint64_t dword, const Cell *seed)
{
    uint32_t h = (uint32_t)((dword * UINT64_C(0x9e3779b97f4a7c15)) >> 52) & (BUCKETS - 1);
    pthread_mutex_lock(&r->bytes_lock);
    Bytes *b = r->bytes[h];
    while (b && b->dword != dword)
        b = b->next;
    if (!b && (b = calloc(1, sizeof *b))) {
        b->dword = dword;
        b->next = r->bytes[h];
        r->bytes[h] = b;
        for (uint32_t i = 0; i < 4; i++) {
            if (seed->wr.mask >> i & 1)
                b->b[i].wr = seed->wr;
            if (seed->rd.mask >> i & 1)
                b->b[i].rd = seed->rd;
            b->b[i].wr.mask = b->b[i].rd.mask = 1;
        }
    }
    pthread_mutex_unlock(&r->bytes_lock);
    return b;
}

/* The page of the cell is locked: the bytes of its dwords are too. */
static void
touch_dword(Access *a, Cell *c, uint32_t mask, uint64_t addr, uint32_t lane)
{
    if (a->kind == SIM_ACC_ATOMIC && c->wr.multi_wave && !c->wr.moved && c->wr.epoch) {
        /* What an atomic puts an end to, it may have seen; so may others that look at the record after this:
         * its release is handed on before the page is let go. */
        sim_race_carry_(a->r, addr, c->wr.epoch);
        if (a->w->nreplaced < TL_COUNT(a->w->replaced))
            a->w->replaced[a->w->nreplaced++] = (struct SimRaceReplaced){addr, c->wr.epoch};
    }
    const Rec *rec = is_read(a->kind) ? &c->rd : &c->wr;
    if (rec->epoch == a->epoch && rec->mask == mask && rec->atomic == is_atomic(a->kind) && !c->wr.moved &&
        c->wr.epoch == 0) {
        return; /* read again, nobody wrote */
    }
    if (!c->wr.moved) {
        judge(a, c, mask, addr, lane);
        if (fits(a, rec, mask) || (mask == 15 && !is_read(a->kind))) {
            enter(a, c, mask);
            return;
        }
    }
    Bytes *b = bytes_of(a->r, addr >> 2, c);
    if (!b) {
        atomic_store(&a->r->oom, true);
        return;
    }
    bool judged = !c->wr.moved;
    c->wr.moved = 1;
    for (uint32_t i = 0; i < 4; i++) {
        if (!(mask >> i & 1))
            continue;
        if (!judged)
            judge(a, &b->b[i], 1, (addr & ~UINT64_C(3)) + i, lane);
        enter(a, &b->b[i], 1);
    }
}

/* ---- pages ---- */

static inline uint32_t
epoch_at(const Side *s, uint32_t i)
{
    uint32_t e = s->block[i / BLOCK_DWORDS].epoch;
    return e == EP_SPLIT ? s->dw->epoch[i] : e;
}

static inline uint32_t
pc_at(const Side *s, uint32_t i)
{
    uint32_t b = i / BLOCK_DWORDS;
    return s->block[b].epoch == EP_SPLIT ? s->dw->pc[i] : s->block[b].pc;
}

static bool
split(Side *s, uint32_t b)
{
    uint32_t epoch = s->block[b].epoch;
    uint16_t pc = s->block[b].pc;
    if (epoch == EP_SPLIT)
        return true;
    if (!s->dw && !(s->dw = malloc(sizeof *s->dw)))
        return false;
    for (uint32_t i = b * BLOCK_DWORDS; i < (b + 1) * BLOCK_DWORDS; i++) {
        s->dw->epoch[i] = epoch;
        s->dw->pc[i] = pc;
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
        for (; i < k; i++) {
            s->dw->epoch[i] = epoch;
            s->dw->pc[i] = pc;
        }
    }
    return true;
}

static Cell
cell_get(const Page *p, uint32_t i)
{
    Cell c = {{0}, {0}};
    uint32_t m = p->mask ? p->mask[i] : 255, we = epoch_at(&p->wr, i), re = epoch_at(&p->rd, i);
    if (we) {
        c.wr.moved = we == EP_MOVED;
        c.wr.epoch = c.wr.moved ? 0 : we & EP_ID;
        c.wr.multi_wave = !c.wr.moved && (we & EP_WAVES);
        c.wr.pc = pc_at(&p->wr, i) & PC_UNKNOWN;
        c.wr.atomic = pc_at(&p->wr, i) >> 15;
        c.wr.mask = m & 15;
    }
    if (re) {
        c.rd.epoch = re & EP_ID;
        c.rd.multi_wave = (re & EP_WAVES) != 0;
        c.rd.multi_group = (re & EP_GROUPS) != 0;
        c.rd.pc = pc_at(&p->rd, i) & PC_UNKNOWN;
        c.rd.atomic = pc_at(&p->rd, i) >> 15;
        c.rd.mask = m >> 4 & 15;
    }
    return c;
}

static uint16_t
pc_bits(const Rec *r)
{
    return (uint16_t)(r->pc | (r->atomic ? PC_ATOMIC : 0));
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
    const Epoch *e = epoch_of(a->r, id);
    if (!ordered(a, id, OF_READ))
        return a->epoch | (re & EP_GROUPS) | (e->group != a->w->workgroup ? EP_GROUPS : EP_WAVES);
    return a->epoch | (re & EP_GROUPS) | (e->interval >= a->w->waited ? re & EP_WAVES : 0);
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

typedef struct Run { /* lanes that follow each other in memory */
    uint64_t lo, hi;
    uint32_t lane; /* of the byte at lo */
} Run;

static uint32_t
lane_of(const Access *a, const Run *run, uint64_t addr)
{
    return run->lane + (uint32_t)((addr - run->lo) / a->bytes);
}

static void
touch_one(Access *a, Page *p, uint32_t mask, uint64_t addr, const Run *run)
{
    uint32_t i = addr >> 2 & (PAGE_DWORDS - 1);
    Cell c = cell_get(p, i);
    touch_dword(a, &c, mask, addr, lane_of(a, run, addr));
    if (!cell_put(p, i, &c))
        atomic_store(&a->r->oom, true);
}

/* [lo, hi) of one page. */
static void
touch_run(Access *a, Page *p, uint64_t lo, uint64_t hi, const Run *run)
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

static Page *
page_in(Page *p, uint64_t key)
{
    while (p && p->key != key)
        p = p->next;
    return p;
}

static Page *
page_of(SimRace *r, SimRaceWave *w, uint64_t key)
{
    uint32_t slot = key & (SIM_RACE_CACHE - 1);
    if (w->page[slot] && w->page_key[slot] == key)
        return w->page[slot];
    _Atomic(Page *) *head = &r->pages[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (PAGE_BUCKETS - 1)];
    Page *p = page_in(atomic_load_explicit(head, memory_order_acquire), key);
    if (!p) {
        pthread_mutex_lock(&r->lock);
        Page *first = atomic_load_explicit(head, memory_order_relaxed);
        p = page_in(first, key);
        if (!p && (p = calloc(1, sizeof *p))) {
            atomic_flag_clear(&p->lock);
            p->key = key;
            p->next = first;
            atomic_store_explicit(head, p, memory_order_release);
        }
        pthread_mutex_unlock(&r->lock);
    }
    if (p) {
        w->page[slot] = p;
        w->page_key[slot] = key;
    }
    return p;
}

static void
page_lock(Page *p)
{
    for (uint32_t n = 0; atomic_flag_test_and_set_explicit(&p->lock, memory_order_acquire); n++)
        if (n > 64)
            sched_yield();
}

static void
page_unlock(Page *p)
{
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
}

bool
sim_race_access(SimRace *r, SimRaceWave *w, const uint64_t *addr, uint64_t exec, uint32_t bytes,
                SimAccess kind, uint32_t pc_slot, SimRaceHit *hit)
{
    w->nreplaced = 0;
    Access a = {.r = r, .w = w, .bytes = bytes, .kind = kind, .hit = hit};
    Page *page = NULL;
    if (!(a.epoch = sim_epoch_now_(r, w)))
        return false;
    a.pc = sim_pc_number_(r, pc_slot);
    while (exec) {
        uint32_t l = (uint32_t)__builtin_ctzll(exec);
        Run run = {addr[l], addr[l] + bytes, l};
        for (exec &= exec - 1, l++; exec & (UINT64_C(1) << (l & 63)) && l < 64 && addr[l] == run.hi; l++) {
            exec &= exec - 1;
            run.hi += bytes;
        }
        if (run.hi - run.lo == bytes) /* several lanes at one place */
            while (exec && addr[__builtin_ctzll(exec)] == run.lo)
                exec &= exec - 1;
        for (uint64_t lo = run.lo, end; lo < run.hi; lo = end) {
            end = TL_MIN(((lo >> PAGE_BITS) + 1) << PAGE_BITS, run.hi);
            if (!page || page->key != lo >> PAGE_BITS) {
                if (page)
                    page_unlock(page);
                if (!(page = page_of(r, w, lo >> PAGE_BITS))) {
                    atomic_store(&r->oom, true);
                    return a.found;
                }
                page_lock(page);
            }
            touch_run(&a, page, lo, end, &run);
        }
    }
    if (page)
        page_unlock(page);
    if (kind == SIM_ACC_MAYBE && epoch_of(r, a.epoch)->released > w->releases)
        w->releases++; /* what comes next is not released by this store */
    return a.found;
}

uint32_t
sim_race_last_store(SimRace *r, SimRaceWave *w, uint64_t addr)
{
    Page *p = page_of(r, w, addr >> PAGE_BITS);
    if (!p)
        return 0;
    page_lock(p);
    Cell c = cell_get(p, addr >> 2 & (PAGE_DWORDS - 1));
    Rec rec = c.wr;
    if (rec.moved) {
        Bytes *b = bytes_of(r, addr >> 2, &c);
        rec = b ? b->b[addr & 3].wr : (Rec){0};
    }
    page_unlock(p);
    return rec.epoch && rec.multi_wave && (rec.mask || rec.moved) ? rec.epoch : 0;
}
