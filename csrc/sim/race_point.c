/* race_point.c - the shadow of lone elements of global memory: bytes, halves and dwords that were touched
 * with nothing beside them (contract in race_int.h).
 *
 * Once a region has many entries of one such element each, they become points: cells of four bytes, which say
 * where in a part of the region the element lies, how wide it is, and its pair. Most pairs of a region are of
 * a few instructions and of waves that run at about the same time: of a pair's number a cell has the low
 * bits, and which of a few high ones, kept once a region, go with them. A pair for whose high bits there is
 * no room is kept as an entry. The cells of a part are in chunks of 64 bytes in no order; as there come to be
 * more, the region is cut into more parts. A block has points or entries, not both: what touches more than an
 * element, or a part of one, makes entries of its block's points first.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum {
    CODE_BITS = REGION_BITS + 1, /* 2 * offset + width: no two elements have the same */
    FEWEST_PARTS = 2,            /* their logarithm */
    MOST_PARTS = 10,
    PART_CELLS = 96, /* on average, before there are more parts */
    HIGH_BITS = 3,
    BLOCK_POINTS = MANY_PARTS - 1,
    POINTS_AT = 32, /* entries */
    NEXT = 0,       /* words of a chunk */
    CELLS = 1,
    SLAB_CHUNKS = 1 << POINT_SLAB_BITS
};

struct Points {
    uint32_t high[1 << HIGH_BITS], used[1 << HIGH_BITS];
    uint32_t n, parts; /* parts: the logarithm */
    uint32_t head[];   /* chunks of each part, 0: none. Only the first one of a part has free cells, behind */
};

typedef struct Point {
    uint32_t *cell;
    uint32_t code, pair;
} Point;

static uint32_t
code_of(uint32_t at, uint32_t dwords)
{
    uint32_t lo =
        at / 16 * BLOCK_BYTES + 4 * (uint32_t)__builtin_ctz(dwords) + (uint32_t)__builtin_ctz(at & 15);
    uint32_t bytes = at & 15;
    return 2 * lo + (bytes == 15 ? 4 : bytes == 3 || bytes == 12 ? 2 : 1);
}

static uint32_t
width_of(uint32_t code)
{
    return code & -code;
}

static uint32_t
start_of(uint32_t code)
{
    return (code - width_of(code)) / 2;
}

static uint32_t
end_of(uint32_t code)
{
    return start_of(code) + width_of(code);
}

static Entry
entry_of(uint32_t code, uint32_t pair)
{
    uint32_t lo = start_of(code), bytes = bytes_of(lo, end_of(code));
    return (Entry){(uint16_t)(lo / BLOCK_BYTES << 4 | bytes), (uint16_t)(1u << lo / 4 % BLOCK_DWORDS), pair};
}

/* One element of a width that has a code? */
static bool
is_lone(uint32_t at, uint32_t dwords)
{
    uint32_t bytes = at & 15;
    return !(dwords & (dwords - 1)) && (!(bytes & (bytes - 1)) || bytes == 3 || bytes == 12 || bytes == 15);
}

/* ---- chunks ---- */

static inline PointChunk *
chunk_at(const SimRace *r, uint32_t id)
{
    return &r->slab[id >> POINT_SLAB_BITS][id & (SLAB_CHUNKS - 1)];
}

/* 0: out of memory. */
static uint32_t
chunk_new(SimRace *r)
{
    spin_lock(&r->slab_lock);
    uint32_t id = r->free_chunk;
    if (id) {
        r->free_chunk = chunk_at(r, id)->word[NEXT];
    } else if (r->nchunks >> POINT_SLAB_BITS < MAX_CHUNKS) {
        PointChunk **slab = &r->slab[r->nchunks >> POINT_SLAB_BITS];
        if (!*slab)
            *slab = aligned_alloc(sizeof **slab, SLAB_CHUNKS * sizeof **slab);
        r->nchunks += !r->nchunks; /* 0 is none */
        id = *slab ? r->nchunks++ : 0;
    }
    spin_unlock(&r->slab_lock);
    if (id)
        memset(chunk_at(r, id), 0, sizeof(PointChunk));
    return id;
}

static void
chunk_drop(SimRace *r, uint32_t id)
{
    spin_lock(&r->slab_lock);
    chunk_at(r, id)->word[NEXT] = r->free_chunk;
    r->free_chunk = id;
    spin_unlock(&r->slab_lock);
}

/* ---- cells ---- */

static inline uint32_t
code_shift(const Points *p)
{
    return 32 - CODE_BITS + p->parts;
}

static inline uint32_t
low_bits(const Points *p)
{
    return code_shift(p) - HIGH_BITS;
}

static inline uint32_t
part_of(const Points *p, uint32_t code)
{
    return code >> (CODE_BITS - p->parts);
}

/* Which of the high bits go with a cell. */
static inline uint32_t
high_of(const Points *p, uint32_t cell)
{
    return cell >> low_bits(p) & ((1u << HIGH_BITS) - 1);
}

static Point
point_of(const Points *p, uint32_t part, uint32_t *cell)
{
    uint32_t low = low_bits(p);
    return (Point){cell, part << (CODE_BITS - p->parts) | *cell >> code_shift(p),
                   p->high[high_of(p, *cell)] << low | (*cell & ((1u << low) - 1))};
}

/* The cell of an element with this pair, whose high bits count it; 0: there is no room for them. */
static uint32_t
cell_for(Points *p, uint32_t code, uint32_t pair)
{
    uint32_t low = low_bits(p), i = 0, none = UINT32_MAX;
    for (; i < TL_COUNT(p->high) && !(p->used[i] && p->high[i] == pair >> low); i++)
        if (!p->used[i])
            none = i;
    if (i == TL_COUNT(p->high)) {
        if ((i = none) == UINT32_MAX)
            return 0;
        p->high[i] = pair >> low;
    }
    p->used[i]++;
    return code << code_shift(p) | i << low | (pair & ((1u << low) - 1));
}

typedef uint32_t Four __attribute__((vector_size(16)));

/* Has a word these bits on top? Some without a cell may. */
static inline bool
may_have(const PointChunk *c, uint32_t bits, uint32_t top)
{
    Four w[POINT_WORDS / 4];
    memcpy(w, c, sizeof w);
    Four has = (Four)(((w[0] ^ bits) & top) == 0) | (Four)(((w[1] ^ bits) & top) == 0) |
               (Four)(((w[2] ^ bits) & top) == 0) | (Four)(((w[3] ^ bits) & top) == 0);
    uint64_t any[2];
    memcpy(any, &has, sizeof any);
    return any[0] | any[1];
}

/* The points of a block. */
static uint32_t
find(const SimRace *r, const Points *p, uint32_t block, Point found[BLOCK_POINTS])
{
    uint32_t part = part_of(p, block * BLOCK_BYTES * 2), shift = code_shift(p) + 7, n = 0;
    uint32_t mine = block & ((1u << (REGION_BITS - 6 - p->parts)) - 1);
    for (uint32_t id = p->head[part]; id;) {
        PointChunk *c = chunk_at(r, id);
        bool may = may_have(c, mine << shift, UINT32_MAX << shift); /* mostly not */
        for (uint32_t i = CELLS; may && i < POINT_WORDS && n < BLOCK_POINTS; i++)
            if (c->word[i] && c->word[i] >> shift == mine)
                found[n++] = point_of(p, part, &c->word[i]);
        id = c->word[NEXT];
    }
    return n;
}

/* A point more; false: no room for the high bits of its pair, or out of memory. */
static bool
put(SimRace *r, Points *p, uint32_t code, uint32_t pair)
{
    uint32_t cell = cell_for(p, code, pair), *head = &p->head[part_of(p, code)], i = CELLS;
    if (!cell)
        return false;
    if (!*head || chunk_at(r, *head)->word[POINT_WORDS - 1]) {
        uint32_t id = chunk_new(r);
        if (!id) {
            p->used[high_of(p, cell)]--;
            return false;
        }
        chunk_at(r, id)->word[NEXT] = *head;
        *head = id;
    }
    PointChunk *c = chunk_at(r, *head);
    while (c->word[i])
        i++;
    c->word[i] = cell;
    p->n++;
    return true;
}

static bool
set(Points *p, const Point *at, uint32_t pair)
{
    uint32_t old = *at->cell, cell;
    p->used[high_of(p, old)]--;
    if ((cell = cell_for(p, at->code, pair))) {
        *at->cell = cell;
        return true;
    }
    p->used[high_of(p, old)]++;
    return false;
}

/* The last cell of its part takes the place of one. */
static void
drop(SimRace *r, Points *p, const Point *at)
{
    uint32_t *head = &p->head[part_of(p, at->code)], i = POINT_WORDS - 1;
    PointChunk *c = chunk_at(r, *head);
    while (!c->word[i])
        i--;
    p->used[high_of(p, *at->cell)]--;
    *at->cell = c->word[i];
    c->word[i] = 0;
    p->n--;
    if (i == CELLS) {
        uint32_t id = *head;
        *head = c->word[NEXT];
        chunk_drop(r, id);
    }
}

/* ---- points of a region ---- */

static bool
block_has_entries(Region *g, uint32_t block)
{
    const List *l = list_of(g, block << 4);
    uint32_t i = l->n ? sim_list_at_(l, block << 4) : 0;
    return i < l->n && l->e[i].at >> 4 == block;
}

void
sim_points_pull_(SimRace *r, Region *g, uint32_t block)
{
    Point at[BLOCK_POINTS];
    Entry e[BLOCK_POINTS];
    uint32_t n = find(r, g->points, block, at), m = 0;
    List *l = list_of(g, block << 4);
    for (uint32_t i = 0; i < n; i++) {
        Entry x = entry_of(at[i].code, at[i].pair);
        uint32_t k = m;
        while (k && (e[k - 1].at > x.at || (e[k - 1].at == x.at && e[k - 1].pair > x.pair)))
            k--;
        if (k && e[k - 1].at == x.at && e[k - 1].pair == x.pair) {
            e[k - 1].dwords |= x.dwords;
            continue;
        }
        memmove(e + k + 1, e + k, (m - k) * sizeof *e);
        e[k] = x;
        m++;
    }
    uint32_t lo = sim_list_at_(l, block << 4);
    if (m && !sim_list_replace_(l, lo, lo, e, m))
        atomic_store(&r->oom, true);
    while (find(r, g->points, block, at))
        drop(r, g->points, &at[0]);
}

static bool
may_be_point(const Region *g, const Entry *e)
{
    return is_lone(e->at, e->dwords) && (!g->counts || e->pair >> 31);
}

/* The block's entries [lo, hi); false: they stay. */
static bool
take_block(SimRace *r, Region *g, const Entry *e, uint32_t n)
{
    Point at[BLOCK_POINTS];
    bool ok = n <= BLOCK_POINTS;
    for (uint32_t i = 0; i < n && ok; i++)
        ok = may_be_point(g, &e[i]);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = put(r, g->points, code_of(e[i].at, e[i].dwords), e[i].pair);
    while (!ok && find(r, g->points, e->at >> 4, at))
        drop(r, g->points, &at[0]);
    return ok;
}

/* Blocks of a list with lone elements alone become points, where there is room for the pairs' high bits. */
static void
gather(SimRace *r, Region *g, List *l)
{
    uint32_t kept = 0;
    for (uint32_t i = 0, end; i < l->n; i = end) {
        for (end = i; end < l->n && l->e[end].at >> 4 == l->e[i].at >> 4;)
            end++;
        if (take_block(r, g, l->e + i, end - i))
            continue;
        memmove(l->e + kept, l->e + i, (end - i) * sizeof *l->e);
        kept += end - i;
    }
    l->n = kept;
    if (kept) {
        sim_list_fit_(l);
        return;
    }
    free(l->e);
    *l = (List){0};
}

/* Twice as many parts, if there is memory for them. */
static void
spread(SimRace *r, Region *g)
{
    Points *old = g->points, *p = calloc(1, sizeof *p + (sizeof *p->head << (old->parts + 1)));
    if (!p)
        return;
    p->parts = old->parts + 1;
    for (uint32_t part = 0; part < 1u << old->parts; part++)
        for (uint32_t id = old->head[part], next; id; id = next) {
            PointChunk c = *chunk_at(r, id);
            next = c.word[NEXT];
            chunk_drop(r, id);
            for (uint32_t i = CELLS; i < POINT_WORDS && c.word[i]; i++) {
                Point x = point_of(old, part, &c.word[i]);
                if (!put(r, p, x.code, x.pair))
                    atomic_store(&r->oom, true); /* of high bits there are fewer than before */
            }
        }
    free(old);
    g->points = p;
    for (uint32_t i = 0; i < (g->sub ? REGION_LISTS : 1u); i++) /* for more pairs there is room */
        gather(r, g, g->sub ? &g->sub[i] : &g->one);
}

static bool
share_bytes(uint32_t code, uint32_t other)
{
    return start_of(code) < start_of(other) + width_of(other) &&
           start_of(other) < start_of(code) + width_of(code);
}

bool
sim_point_enter_(SimRace *r, Region *g, uint32_t at, uint32_t dwords, CombNext *next, void *self)
{
    Point found[BLOCK_POINTS];
    Points *p = g->points;
    uint32_t code = is_lone(at, dwords) ? code_of(at, dwords) : 0, i = 0, to;
    uint32_t block = at >> 4, n = find(r, p, block, found);
    if (!n && (!code || block_has_entries(g, block)))
        return false;
    while (i < n && code && !share_bytes(code, found[i].code))
        i++;
    bool ok = false;
    if (code && i == n)
        ok = n < BLOCK_POINTS && (to = next(self, 0)) && put(r, p, code, to);
    else if (code && found[i].code == code)
        ok = (to = next(self, found[i].pair)) && (to == found[i].pair || set(p, &found[i], to));
    if (!ok && n)
        sim_points_pull_(r, g, block);
    if (p->n >> p->parts > PART_CELLS && p->parts < MOST_PARTS)
        spread(r, g);
    return ok;
}

uint32_t
sim_points_get_(const SimRace *r, const Region *g, uint64_t addr, uint32_t bytes)
{
    Point found[BLOCK_POINTS];
    uint32_t lo = (uint32_t)addr & ((1u << REGION_BITS) - 1), hi = lo + bytes;
    for (uint32_t b = lo / BLOCK_BYTES; g->points && b <= (hi - 1) / BLOCK_BYTES; b++)
        for (uint32_t n = find(r, g->points, b, found); n--;)
            if (lo < end_of(found[n].code) && start_of(found[n].code) < hi)
                return found[n].pair;
    return 0;
}

/* ---- the region ---- */

void
sim_points_free_(SimRace *r, Region *g)
{
    Points *p = g->points;
    for (uint32_t part = 0; p && part < 1u << p->parts; part++)
        for (uint32_t id = p->head[part], next; id; id = next) {
            next = chunk_at(r, id)->word[NEXT];
            chunk_drop(r, id);
        }
    free(p);
    g->points = NULL;
}

void
sim_points_look_(SimRace *r, Region *g)
{
    List *l = &g->one;
    if (g->points || g->sub || l->n <= g->points_at || l->n <= POINTS_AT)
        return;
    uint32_t lone = 0;
    for (uint32_t i = 0; i < l->n; i++)
        lone += may_be_point(g, &l->e[i]);
    g->points_at = l->n + l->n / 2;
    if (lone <= l->n / 2 ||
        !(g->points = calloc(1, sizeof *g->points + (sizeof *g->points->head << FEWEST_PARTS))))
        return;
    g->points->parts = FEWEST_PARTS;
    gather(r, g, l);
}

void
sim_point_slabs_free_(SimRace *r)
{
    for (uint32_t i = 0; i < MAX_CHUNKS && r->slab[i]; i++)
        free(r->slab[i]);
}
