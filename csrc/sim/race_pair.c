/* race_pair.c - races on global memory: the numbers of pairs of a last write and a last read (contract in
 * race_int.h).
 *
 * Most bytes were written and read in one epoch, or only one of the two. Such a pair is a shape (which of the
 * two there are, their marks and instructions) and an epoch, and its number says both: it has no record. Of
 * shapes there are a few for each instruction of a kernel; when the table is full, and for pairs of two
 * epochs, there are records (12 bytes and a place in a hash). A pair has one number, and one by its record
 * where small numbers are wanted.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#include "sim/race_int.h"

enum { PAIR_SLOTS = 1 << 10 };

static uint64_t
pair_hash(const Pair *p)
{
    uint64_t h = ((uint64_t)p->wr << 32 | p->rd) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ ((uint64_t)p->wr_pc << 16 | p->rd_pc)) * UINT64_C(0xbf58476d1ce4e5b9);
    return h >> 32;
}

/* ---- pairs without records ---- */

/* 0: needs a record */
static uint32_t
by_shape(Shapes *s, const Pair *p)
{
    uint32_t wr = p->wr & EP_ID, rd = p->rd & EP_ID, epoch = wr ? wr : rd;
    if ((wr && rd && wr != rd) || !epoch || epoch >= PAIR_EPOCHS)
        return 0;
    Pair q = *p;
    q.wr = (p->wr & ~(uint32_t)EP_ID) | (wr != 0);
    q.rd = (p->rd & ~(uint32_t)EP_ID) | (rd != 0);
    uint32_t i = pair_hash(&q) % TL_COUNT(s->hash);
    while (s->hash[i] && !same_pair(&s->at[s->hash[i] - 1], &q))
        i = (i + 1) % TL_COUNT(s->hash);
    if (!s->hash[i]) {
        if (s->n == PAIR_SHAPES)
            return 0;
        s->at[s->n++] = q;
        s->hash[i] = (uint16_t)s->n;
    }
    return PAIR_SHAPE | (s->hash[i] - 1u) * PAIR_EPOCHS | epoch;
}

/* ---- pairs with records ---- */

static uint32_t
pair_slot(const SimRace *r, const uint32_t *hash, uint32_t slots, const Pair *p)
{
    uint32_t i = (uint32_t)pair_hash(p) & (slots - 1);
    for (Pair q; hash[i] && (q = pair_at(r, hash[i]), !same_pair(&q, p));)
        i = (i + 1) & (slots - 1);
    return i;
}

/* Room in the hash for one more (at most three quarters full). */
static bool
pair_room(SimRace *r)
{
    if (r->npairs < r->pair_slots / 4 * 3)
        return true;
    uint32_t slots = r->pair_slots ? 2 * r->pair_slots : PAIR_SLOTS;
    uint32_t *hash = slots ? calloc(slots, sizeof *hash) : NULL;
    if (!hash)
        return false;
    for (uint32_t id = 1; id < r->npairs; id++) {
        Pair p = pair_at(r, id);
        hash[pair_slot(r, hash, slots, &p)] = id;
    }
    free(r->pair_hash);
    r->pair_hash = hash;
    r->pair_slots = slots;
    return true;
}

uint32_t
sim_pair_of_(SimRace *r, const Pair *p, bool record)
{
    pthread_mutex_lock(&r->pair_lock);
    uint32_t id = record ? 0 : by_shape(&r->shapes, p);
    if (!id && pair_room(r)) {
        uint32_t *slot = &r->pair_hash[pair_slot(r, r->pair_hash, r->pair_slots, p)];
        uint32_t c = r->npairs >> CHUNK_BITS;
        if (!*slot && c < MAX_CHUNKS) {
            if (!r->pair[c])
                r->pair[c] = malloc(sizeof(Pair) << CHUNK_BITS);
            if (r->pair[c]) {
                r->pair[c][r->npairs & ((1u << CHUNK_BITS) - 1)] = *p;
                *slot = r->npairs++;
            }
        }
        id = *slot;
    }
    pthread_mutex_unlock(&r->pair_lock);
    return id;
}

void
sim_pairs_free_(SimRace *r)
{
    for (uint32_t i = 0; i < MAX_CHUNKS && r->pair[i]; i++)
        free(r->pair[i]);
    free(r->pair_hash);
}
