/* race_comb.c - the shadow of global memory that lanes touch at equal distances (contract in race_int.h).
 *
 * A column of a matrix, a field of an array of structures, every hundredth byte: the elements of an access
 * that lie in one region, each apart from the last by as much, are the teeth of a comb (8 bytes, however
 * many) if no bytes of them have records yet or those of combs with the same distance and width. A region has
 * a few kinds (distance and width); its combs are sorted by the remainder of their start by the distance,
 * then by the start: a tooth's place is found by halving. Combs that follow each other become one, an access
 * to some teeth cuts a comb. Whatever else touches a tooth makes entries (race_sparse.c) of it first, so a
 * byte is in one comb, in one entry, or in none.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { KINDS = 4, MAX_COMBS = 1 << 13, TEETH_BITS = 13, MAX_TEETH = (1 << TEETH_BITS) - 1, NONE = -1 };
enum { IN_REGION = (1 << REGION_BITS) - 1 };
enum { FEWEST = 3, WIDEST = 16, FAR_APART = 24 };

static inline uint32_t
rest_of(const Combs *k, uint32_t i)
{
    return (k->c[i].at >> TEETH_BITS) / k->across;
}

static inline int32_t
turn_of(const Combs *k, uint32_t i)
{
    return (int32_t)((k->c[i].at >> TEETH_BITS) % k->across);
}

static inline int32_t
teeth(const Comb *c)
{
    return (int32_t)(c->at & MAX_TEETH);
}

static inline Comb
comb(const Combs *k, uint32_t rest, int32_t turn, int32_t n, uint32_t pair)
{
    return (Comb){(rest * k->across + (uint32_t)turn) << TEETH_BITS | (uint32_t)n, pair};
}

/* How many combs begin at (rest, turn) or before. */
static uint32_t
until(const Combs *k, uint32_t rest, int32_t turn)
{
    int64_t place = (int64_t)rest * k->across + TL_MIN(turn, (int32_t)k->across - 1);
    uint32_t a = 0, b = k->n;
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        if ((int64_t)(k->c[mid].at >> TEETH_BITS) <= place)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

/* ---- what lies over some bytes ---- */

typedef struct Range { /* starts of teeth: turn * stride + rest, from first to last */
    int32_t turn[2];
    uint32_t rest[2];
} Range;

/* Where a tooth begins that has a byte of [lo, hi). */
static Range
range(const Combs *k, uint32_t lo, uint32_t hi)
{
    uint32_t first = lo + k->stride - (k->width - 1), last = hi - 1; /* a turn more: not negative */
    return (Range){{(int32_t)(first / k->stride) - 1, (int32_t)(last / k->stride)},
                   {first % k->stride, last % k->stride}};
}

/* A comb with a remainder from a to b and a tooth in the range or one of its n - 1 next turns; NONE: there is
 * none. */
static int32_t
over_rests(const Combs *k, const Range *g, uint32_t a, uint32_t b, int32_t n)
{
    for (uint32_t r = b;;) {
        int32_t from = g->turn[0] + (r < g->rest[0]), to = g->turn[1] - (r > g->rest[1]) + n - 1;
        uint32_t i = until(k, r, to);
        if (!i || rest_of(k, i - 1) < a)
            return NONE;
        if (rest_of(k, i - 1) != r) {
            r = rest_of(k, i - 1);
            continue;
        }
        if (from <= to && turn_of(k, i - 1) + teeth(&k->c[i - 1]) > from)
            return (int32_t)i - 1;
        if (r == a)
            return NONE;
        r--;
    }
}

/* A comb with a tooth over [lo, hi) or over the same a stride further, n times in all. */
static int32_t
over(const Combs *k, uint32_t lo, uint32_t hi, int32_t n)
{
    if (!k->n)
        return NONE;
    Range g = range(k, lo, hi);
    if (g.turn[0] == g.turn[1])
        return over_rests(k, &g, g.rest[0], g.rest[1], n);
    if (g.turn[1] - g.turn[0] > 1 || g.rest[1] + 1 >= g.rest[0])
        return over_rests(k, &g, 0, k->stride - 1, n);
    int32_t i = over_rests(k, &g, g.rest[0], k->stride - 1, n);
    return i != NONE ? i : over_rests(k, &g, 0, g.rest[1], n);
}

/* Has no byte of [lo, hi) an entry or a point? */
static bool
no_entry(const SimRace *r, Region *g, uint32_t lo, uint32_t hi)
{
    if (g->points && sim_points_get_(r, g, lo, hi - lo))
        return false;
    for (uint32_t end; lo < hi; lo = end) {
        uint32_t block = lo / BLOCK_BYTES, dword = lo / 4 % BLOCK_DWORDS;
        end = TL_MIN((lo | 3) + 1, hi);
        uint32_t bytes = bytes_of(lo, end);
        const List *l = list_of(g, block << 4);
        for (uint32_t i = l->n ? sim_list_at_(l, block << 4) : 0; i < l->n && l->e[i].at >> 4 == block; i++)
            if (l->e[i].dwords >> dword & 1 && l->e[i].at & bytes)
                return false;
    }
    return true;
}

static bool
vacant(const SimRace *r, Region *g, const Combs *mine, uint32_t lo, int32_t n)
{
    for (uint32_t k = 0; k < g->kinds; k++) {
        const Combs *c = &g->combs[k];
        bool same = c->stride == mine->stride;
        for (int32_t i = 0; i < (same ? 1 : n); i++) {
            uint32_t at = lo + (uint32_t)i * mine->stride;
            if (over(c, at, at + mine->width, same ? n : 1) != NONE)
                return false;
        }
    }
    for (int32_t i = 0; i < n && (g->sub || g->one.n || g->points); i++) {
        uint32_t at = lo + (uint32_t)i * mine->stride;
        if (!no_entry(r, g, at, at + mine->width))
            return false;
    }
    return true;
}

/* ---- changes ---- */

/* Combs [lo, hi) become these; false: out of memory. */
static bool
replace(Combs *k, uint32_t lo, uint32_t hi, const Comb *c, uint32_t n)
{
    uint32_t all = k->n - (hi - lo) + n;
    if (all > k->cap) {
        uint32_t cap = TL_MAX(all, k->cap + k->cap / 8);
        Comb *more = realloc(k->c, cap * sizeof *more);
        if (!more)
            return false;
        k->c = more;
        k->cap = cap;
    }
    if (lo + n != hi)
        memmove(k->c + lo + n, k->c + hi, (k->n - hi) * sizeof *c);
    if (n)
        memcpy(k->c + lo, c, n * sizeof *c);
    k->n = all;
    return true;
}

/* The combs of this stride and width, if need be and there is room for one more kind; NULL: no. */
static Combs *
kind(Region *g, uint32_t stride, uint32_t width)
{
    Combs *unused = NULL;
    for (uint32_t k = 0; k < g->kinds; k++) {
        if (g->combs[k].stride == stride && g->combs[k].width == width)
            return &g->combs[k];
        if (!g->combs[k].n)
            unused = &g->combs[k];
    }
    if (!unused) {
        Combs *more = g->kinds < KINDS ? realloc(g->combs, (g->kinds + 1u) * sizeof *more) : NULL;
        if (!more)
            return NULL;
        g->combs = more;
        unused = &more[g->kinds++];
        *unused = (Combs){0};
    }
    unused->stride = stride;
    unused->width = width;
    unused->across = (IN_REGION + stride) / stride;
    return unused;
}

typedef struct Pieces { /* what comes in place of some combs of one remainder */
    SimRace *r;
    bool counts;
    const Combs *k;
    Comb c[2 * 64 + 4];
    uint32_t n, rest;
    int32_t end; /* of the last one */
    CombNext *next;
    void *self;
    uint32_t made[2 * 64 + 4], nmade; /* where pairs are objects: those that came about, held */
} Pieces;

static void
piece(Pieces *p, int32_t turn, int32_t n, uint32_t pair)
{
    if (n <= 0)
        return;
    Comb *last = p->n ? &p->c[p->n - 1] : NULL;
    if (last && last->pair == pair && p->end == turn && teeth(last) + n <= MAX_TEETH)
        last->at += (uint32_t)n;
    else
        p->c[p->n++] = comb(p->k, p->rest, turn, n, pair);
    p->end = turn + n;
}

/* The same, with what becomes of the pair; false: to be done for each element. */
static bool
stepped(Pieces *p, int32_t turn, int32_t n, uint32_t pair)
{
    uint32_t to = p->next(p->self, pair);
    if (!to)
        return false;
    piece(p, turn, n, to);
    if (p->counts) {
        sim_object_use_(p->r, to, 1);
        p->made[p->nmade++] = to;
    }
    return true;
}

/* The pieces in place of combs [lo, hi). */
static bool
enter(SimRace *r, const Region *g, Combs *k, uint32_t lo, uint32_t hi, const Pieces *p)
{
    Comb old[TL_COUNT(p->c)];
    uint32_t n = g->counts ? hi - lo : 0;
    if (k->n + p->n > MAX_COMBS + (hi - lo))
        return false;
    if (n)
        memcpy(old, k->c + lo, n * sizeof *old);
    if (!replace(k, lo, hi, p->c, p->n))
        return false;
    for (uint32_t i = 0; g->counts && i < p->n; i++)
        sim_object_use_(r, p->c[i].pair, 1);
    for (uint32_t i = 0; i < n; i++)
        sim_object_use_(r, old[i].pair, -1);
    return true;
}

/* Teeth of one remainder, turns [from, to), of which none has an entry; false, nothing done: element by
 * element. */
static bool
touch_teeth(SimRace *r, Region *g, Pieces *p, Combs *k, int32_t from, int32_t to)
{
    uint32_t rest = p->rest;
    p->k = k;
    p->n = 0;
    uint32_t lo = until(k, rest, from), hi;
    int32_t at = from;
    if (lo && rest_of(k, lo - 1) == rest && turn_of(k, lo - 1) + teeth(&k->c[lo - 1]) >= from)
        lo--;
    for (hi = lo; hi < k->n && rest_of(k, hi) == rest && turn_of(k, hi) <= to; hi++) {
        int32_t begin = turn_of(k, hi), end = begin + teeth(&k->c[hi]);
        uint32_t pair = k->c[hi].pair;
        if (begin > at) {
            if (!vacant(r, g, k, (uint32_t)at * k->stride + rest, begin - at) ||
                !stepped(p, at, begin - at, 0))
                return false;
            at = begin;
        }
        piece(p, begin, TL_MIN(end, from) - begin, pair);
        int32_t stop = TL_MIN(end, to);
        if (stop > at && !stepped(p, at, stop - at, pair))
            return false;
        at = TL_MAX(at, stop);
        piece(p, TL_MAX(begin, to), end - TL_MAX(begin, to), pair);
    }
    if (at < to &&
        (!vacant(r, g, k, (uint32_t)at * k->stride + rest, to - at) || !stepped(p, at, to - at, 0)))
        return false;
    return enter(r, g, k, lo, hi, p);
}

uint32_t
sim_comb_of_(const Span *s, uint32_t n)
{
    uint64_t width = s->hi - s->lo, step = s[1].lo - s->lo, apart = TL_MIN(step, -step);
    if (width > WIDEST || apart < 2 * width || apart > IN_REGION / 2 || (apart < FAR_APART && apart % 4 == 0))
        return 0;
    uint32_t i = 1;
    while (i < n && s[i].lo - s[i - 1].lo == step && s[i].hi - s[i].lo == width &&
           s[i].lo >> REGION_BITS == s->lo >> REGION_BITS)
        i++;
    while (i && (s[i - 1].hi - 1) >> REGION_BITS != s->lo >> REGION_BITS) /* the last byte of the last one */
        i--;
    return i < FEWEST || (s->hi - 1) >> REGION_BITS != s->lo >> REGION_BITS ? 0 : i;
}

bool
sim_comb_enter_(SimRace *r, Region *g, const Span *s, uint32_t n, CombNext *next, void *self)
{
    bool up = s[1].lo > s->lo;
    uint32_t width = (uint32_t)(s->hi - s->lo), stride = (uint32_t)(up ? s[1].lo - s->lo : s->lo - s[1].lo);
    uint32_t lo = (uint32_t)(up ? s->lo : s[n - 1].lo) & IN_REGION;
    uint64_t dense = atomic_load_explicit(&g->dense, memory_order_relaxed);
    for (uint32_t i = 0; dense && i < n; i++)
        if (dense >> (s[i].lo & IN_REGION) / (1 << PAGE_BITS) & 1 ||
            dense >> ((s[i].hi - 1) & IN_REGION) / (1 << PAGE_BITS) & 1)
            return false;
    Combs *k = kind(g, stride, width);
    int32_t turn = (int32_t)(lo / stride);
    Pieces p;
    p.r = r;
    p.counts = g->counts;
    p.nmade = 0;
    p.rest = lo % stride;
    p.next = next;
    p.self = self;
    bool ok = k && touch_teeth(r, g, &p, k, turn, turn + (int32_t)n);
    while (p.nmade)
        sim_object_use_(r, p.made[--p.nmade], -1);
    return ok;
}

bool
sim_comb_touch_(Access *a, const Span *s, uint32_t n)
{
    sim_region_flush_(a);
    return sim_comb_enter_(a->r, a->region, s, n, sim_race_after_, a);
}

/* ---- teeth that become entries ---- */

static uint32_t
as_it_is(void *self, uint32_t pair)
{
    return pair ? 0 : *(uint32_t *)self;
}

static bool
put_entry(SimRace *r, Region *g, uint32_t at, uint32_t dword, uint32_t pair)
{
    if (g->points) {
        uint32_t to = g->counts && !(pair >> 31) ? 0 : pair;
        if (sim_point_enter_(r, g, at, 1u << dword, as_it_is, &to))
            return true;
    }
    List *l = list_of(g, at);
    uint32_t i = sim_list_at_(l, at);
    for (uint32_t k = i; k < l->n && l->e[k].at == at; k++)
        if (l->e[k].pair == pair) {
            l->e[k].dwords |= (uint16_t)(1u << dword);
            return true;
        }
    Entry e = {(uint16_t)at, (uint16_t)(1u << dword), pair};
    bool ok = sim_list_replace_(l, i, i, &e, 1);
    if (ok && g->counts)
        sim_object_use_(r, pair, 1);
    sim_region_cut_(r, g);
    return ok;
}

static bool
put_tooth(SimRace *r, Region *g, uint32_t lo, uint32_t hi, uint32_t pair)
{
    bool ok = true;
    for (uint32_t end; lo < hi && ok; lo = end) {
        end = TL_MIN((lo | 3) + 1, hi);
        uint32_t bytes = bytes_of(lo, end);
        ok = put_entry(r, g, lo / BLOCK_BYTES << 4 | bytes, lo / 4 % BLOCK_DWORDS, pair);
    }
    return ok;
}

/* The teeth of a comb that are in the range become entries. */
static bool
pull(SimRace *r, Region *g, Combs *k, uint32_t i, const Range *range)
{
    const Comb c = k->c[i];
    uint32_t rest = rest_of(k, i), left = 0;
    int32_t begin = turn_of(k, i), end = begin + teeth(&c);
    int32_t from = TL_MAX(begin, range->turn[0] + (rest < range->rest[0]));
    int32_t to = TL_MIN(end, range->turn[1] - (rest > range->rest[1]) + 1);
    Comb kept[2];
    if (from > begin)
        kept[left++] = comb(k, rest, begin, from - begin, c.pair);
    if (to < end)
        kept[left++] = comb(k, rest, to, end - to, c.pair);
    bool ok = true;
    for (int32_t t = from; t < to && ok; t++) {
        uint32_t at = (uint32_t)t * k->stride + rest;
        ok = put_tooth(r, g, at, at + k->width, c.pair);
    }
    if (!replace(k, i, i + 1, kept, left)) {
        replace(k, i, i + 1, kept, left = 1); /* the rest of it is forgotten: out of memory */
        ok = false;
    }
    if (g->counts && left != 1)
        sim_object_use_(r, c.pair, (int32_t)left - 1);
    return ok;
}

void
sim_combs_clear_(SimRace *r, Region *g, uint64_t lo, uint64_t hi)
{
    uint32_t from = (uint32_t)lo & IN_REGION, to = from + (uint32_t)(hi - lo);
    for (uint32_t k = 0; k < g->kinds; k++) {
        Combs *c = &g->combs[k];
        for (int32_t i; (i = over(c, from, to, 1)) != NONE;) {
            Range span = range(c, from, to);
            if (!pull(r, g, c, (uint32_t)i, &span))
                atomic_store(&r->oom, true);
        }
    }
}

uint32_t
sim_combs_get_(const Region *g, uint64_t addr)
{
    uint32_t at = (uint32_t)addr & IN_REGION;
    for (uint32_t k = 0; k < g->kinds; k++) {
        int32_t i = over(&g->combs[k], at, at + 1, 1);
        if (i != NONE)
            return g->combs[k].c[i].pair;
    }
    return 0;
}

void
sim_combs_free_(Region *g)
{
    for (uint32_t k = 0; k < g->kinds; k++)
        free(g->combs[k].c);
    free(g->combs);
}
