/* check_order.c - what flags order between the waves of a workgroup beside barriers: flags in LDS, and flags
 * in global memory whose encoding does not tell them from data.
 *
 * LDS has a clock of its own in each wave (SimWave.lds_race), as LDS does what it is asked in order while
 * global memory wants waits. A flag hands on both clocks, under two names (an address, or an offset in LDS,
 * and the same with LDS_CLOCK set). From the first flag of a workgroup on, stamps are kept of each byte of
 * LDS and wave: of its last store, atomic and load. They decide what check_lds.c would otherwise report.
 *
 * Flags:  LDS:    atomics; loads that wait (check_poll.c) take over from whoever stored there last
 *         global: coherent accesses (check_mem.c); loads that wait, where the waves share a cache
 * In a shared cache accesses are served in the order of issue, so a flag needs no wait for what came before;
 * where there are several, that must be complete, and who has seen the flag must invalidate.
 */
#include <stdlib.h>

#include "isa/coherence.h"
#include "sim/check.h"

enum { STORE, ATOMIC, LOAD, KINDS };
#define LDS_CLOCK (UINT64_C(1) << 63)

struct SimLdsOrder {
    uint32_t bytes, nwaves;
    uint32_t bound[MAX_GROUP_WAVES]; /* of who accesses: knows stamps up to this of each wave */
    uint8_t *flag;                   /* by byte: something has waited there, so stores to it are atomic */
    uint32_t *stamp[KINDS];          /* releases of the wave's LDS clock, + 1; wave * bytes + byte; 0: none */
};

static inline uint32_t *
stamp_at(const SimLdsOrder *o, uint32_t kind, uint32_t wave, uint32_t byte)
{
    return &o->stamp[kind][(size_t)wave * o->bytes + byte];
}

void
sim_order_end(SimGroup *g)
{
    SimLdsOrder *o = g->order;
    for (uint32_t k = 0; o && k < KINDS; k++)
        free(o->stamp[k]);
    if (o)
        free(o->flag);
    free(o);
    g->order = NULL;
}

/* Marks of this interval get the stamp of their wave. Of several readers the logs know. */
static void
take_over(SimGroup *g)
{
    SimLdsOrder *o = g->order;
    for (uint32_t b = g->sh_lo; b < g->sh_hi; b++) {
        uint32_t wr = g->lds_wr[b], rd = g->lds_rd[b];
        if (wr && wr <= g->nwaves)
            *stamp_at(o, STORE, wr - 1, b) = g->waves[wr - 1].lds_race.releases + 1;
        if (rd && rd <= g->nwaves)
            *stamp_at(o, LOAD, rd - 1, b) = g->waves[rd - 1].lds_race.releases + 1;
    }
    for (uint32_t i = 0; i < g->nwaves; i++) {
        const SimChk *c = g->waves[i].chk;
        for (uint32_t k = 0; k < TL_MIN(c->nlog, (uint32_t)LDSLOG); k++) {
            const SimLdsOp *p = &c->log[k];
            for (uint64_t m = p->write || p->epoch < g->waves[i].race.interval ? 0 : p->exec; m; m &= m - 1)
                for (uint32_t b = p->addr[__builtin_ctzll(m)], e = b + p->bytes; b < e; b++)
                    *stamp_at(o, LOAD, i, b) = g->waves[i].lds_race.releases + 1;
        }
    }
}

/* false: LDS is not followed (none, one wave), or out of memory. */
static bool
start(SimGroup *g)
{
    if (g->order)
        return true;
    if (!g->lds_wr || !g->lds_bytes || g->nwaves == 1 || g->nwaves > MAX_GROUP_WAVES)
        return false;
    SimLdsOrder *o = g->order = calloc(1, sizeof *o);
    if (!o)
        return false;
    *o = (SimLdsOrder){.bytes = g->lds_bytes + 64, .nwaves = g->nwaves};
    bool ok = (o->flag = calloc(o->bytes, 1)) != NULL;
    for (uint32_t k = 0; k < KINDS && ok; k++)
        ok = (o->stamp[k] = calloc((size_t)o->bytes * g->nwaves, sizeof *o->stamp[k])) != NULL;
    if (!ok) {
        sim_order_end(g);
        return false;
    }
    take_over(g);
    return true;
}

/* ---- accesses of LDS ---- */

void
sim_order_look(SimWave *w)
{
    SimLdsOrder *o = w->g->order;
    for (uint32_t i = 0; i < o->nwaves; i++)
        o->bound[i] = i == w->index ? UINT32_MAX : sim_race_bound(&w->lds_race, i);
}

bool
sim_order_has(const SimWave *w, uint32_t byte, bool write, bool atomic)
{
    const SimLdsOrder *o = w->g->order;
    for (uint32_t i = 0; i < o->nwaves; i++) {
        if (i == w->index)
            continue;
        if (*stamp_at(o, STORE, i, byte) > o->bound[i] ||
            (!atomic && *stamp_at(o, ATOMIC, i, byte) > o->bound[i]) ||
            ((write || atomic) && *stamp_at(o, LOAD, i, byte) > o->bound[i]))
            return false;
    }
    return true;
}

void
sim_order_note(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write, bool atomic)
{
    const SimLdsOrder *o = w->g->order;
    uint32_t kind = atomic ? ATOMIC : write ? STORE : LOAD, now = w->lds_race.releases + 1;
    for (uint64_t m = exec; m; m &= m - 1)
        for (uint32_t b = addr[__builtin_ctzll(m)], e = b + bytes; b < e; b++)
            *stamp_at(o, kind, w->index, b) = now;
}

bool
sim_order_flag(const SimGroup *g, uint32_t byte)
{
    return g->order->flag[byte];
}

void
sim_order_clear(SimGroup *g, uint32_t lo, uint32_t hi)
{
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t i = 0; i < g->nwaves; i++)
            memset(stamp_at(g->order, k, i, lo), 0, (hi - lo) * sizeof(uint32_t));
}

/* ---- flags ---- */

static SimRace *
race_of(const SimWave *w)
{
    return w->g->info ? w->g->info->race : NULL;
}

static bool
vector_complete(const SimWave *w)
{
    return sim_chk_lacks_release(w) != SIM_NO_WAIT;
}

static bool
lds_complete(const SimWave *w)
{
    return cnt_done(&w->chk->n, ISA_CNT_DS, w->chk->n.issued[ISA_CNT_DS]);
}

void
sim_order_store(SimWave *w, uint64_t addr)
{
    SimChk *c = w->chk;
    c->flag_at[c->nflag_at++ % TL_COUNT(c->flag_at)] = (struct SimFlag){addr, lds_complete(w)};
}

/* Does the wave's last store there say what it did in LDS? */
static bool
tells_of_lds(const SimWave *from, uint64_t addr)
{
    const SimChk *c = from->chk;
    uint32_t n = TL_MIN(c->nflag_at, (uint32_t)TL_COUNT(c->flag_at));
    for (uint32_t k = 1; k <= n; k++) {
        const struct SimFlag *f = &c->flag_at[(c->nflag_at - k) % TL_COUNT(c->flag_at)];
        if (f->addr == addr)
            return f->lds_done;
    }
    return true;
}

/* The wave knows what wave `from` of its workgroup has done so far, as it saw a store of it. */
static void
learn(SimWave *w, uint32_t from, bool lds, bool global)
{
    SimWave *f = &w->g->waves[from];
    bool ok = !lds || !start(w->g) || sim_race_learn(&w->lds_race, &f->lds_race);
    if (global)
        ok &= sim_race_learn(&w->race, &f->race);
    if (!ok)
        sim_race_lost(race_of(w));
}

void
sim_order_begin(SimGroup *g)
{
    if (g->info && g->info->race)
        start(g);
}

void
sim_order_release_lds(SimWave *w, const uint32_t *addr, uint64_t exec)
{
    uint64_t key[LANES], other[LANES];
    SimRace *race = race_of(w);
    if (!w->g->order) /* sim_order_begin came before */
        return;
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        key[l] = addr[l];
        other[l] = addr[l] | LDS_CLOCK;
    }
    sim_race_release_group(race, &w->lds_race, other, exec);
    if (!w->race.seen || vector_complete(w))
        sim_race_release_group(race, &w->race, key, exec);
}

/* An atomic that returns, or a load that waits; `poll`: who stored there last has raised a flag. */
void
sim_order_acquire_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                      bool poll)
{
    SimRace *race = race_of(w);
    SimGroup *g = w->g;
    struct SimCoherent *q = NULL;
    if (!race || !start(g))
        return;
    if (w->race.seen)
        q = sim_chk_new_coherent(w, r, ISA_CNT_DS, ISA_SCOPE_GROUP);
    uint32_t last = UINT32_MAX;
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t a = addr[__builtin_ctzll(m)], by = g->lds_wr[a];
        if (a == last)
            continue;
        last = a;
        if (poll)
            memset(g->order->flag + a, 1, bytes);
        sim_race_acquire_group(race, &w->lds_race, a | LDS_CLOCK);
        if (q)
            sim_chk_note_address(q, a);
        else
            sim_race_acquire_group(race, &w->race, a);
        if (!poll || !by || by > g->nwaves || by == w->index + 1)
            continue;
        const SimLdsOp *p = q ? sim_chk_lds_party(&g->waves[by - 1], a, true) : NULL;
        learn(w, by - 1, true, !q);
        if (!p || !p->complete)
            continue;
        q->from = (uint8_t)by;
        q->bound = p->releases + 1;
        SimRaceWave *f = &g->waves[by - 1].race;
        f->releases += f->releases == p->releases;
    }
    if (q)
        sim_chk_look_now(w, q);
}

/* A coherent access of global memory that is a flag of the workgroup: what it hands on of LDS. */
void
sim_order_release(SimWave *w, const uint64_t *addr, uint64_t lanes)
{
    uint64_t other[LANES];
    if (!lds_complete(w) || !start(w->g))
        return;
    for (uint64_t m = lanes; m; m &= m - 1)
        other[__builtin_ctzll(m)] = addr[__builtin_ctzll(m)] | LDS_CLOCK;
    sim_race_release_group(race_of(w), &w->lds_race, other, lanes);
}

/* store, before: stores that it may have seen, where encodings hide which are atomic; 0: none. */
void
sim_order_acquire(SimWave *w, uint64_t addr, uint32_t store, uint32_t before)
{
    SimRace *race = race_of(w);
    const uint32_t saw[] = {store, before};
    if (w->g->order)
        sim_race_acquire_group(race, &w->lds_race, addr | LDS_CLOCK);
    for (uint32_t k = 0; k < TL_COUNT(saw); k++) {
        uint32_t from = saw[k] ? sim_race_epoch_wave(race, saw[k], w->race.workgroup) : UINT32_MAX;
        if (from < w->g->nwaves && from != w->index)
            learn(w, from, tells_of_lds(&w->g->waves[from], addr), false);
    }
}

/* A load or atomic of global memory that waits for a flag whose encoding hides it. */
bool
sim_order_poll(SimWave *w, const uint64_t *addr, uint64_t lanes)
{
    uint64_t last = 0;
    bool mine = true; /* nobody else than this workgroup has stored there */
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint64_t a = addr[__builtin_ctzll(m)];
        if (a == last)
            continue;
        last = a;
        sim_race_acquire_group(race_of(w), &w->race, a);
        sim_order_acquire(w, a, 0, 0);
        uint32_t group, wave;
        if (!sim_race_last_party(race_of(w), &w->race, a, &group, &wave))
            continue;
        mine &= group == w->race.workgroup;
        if (group == w->race.workgroup && wave != w->index && wave < w->g->nwaves)
            learn(w, wave, tells_of_lds(&w->g->waves[wave], a), true);
    }
    return mine;
}
