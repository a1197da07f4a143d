/* check_meet.c - barriers of the whole launch (cooperative groups: the device library's grid sync): every
 * wave waits for its accesses, writes back and empties its caches before it arrives, and nothing empties them
 * behind. That is enough: what a cache could hold that is too old was loaded before some wave's arrival, and
 * that wave has emptied the cache since. So where a counter hands on what every workgroup of the launch has
 * released, who has read it has acquired it without an invalidation behind, if the waves of its workgroup
 * have loaded nothing since their last ones.
 */
#include "sim/check.h"

enum { FRESH_NO, FRESH_OUTER, FRESH_YES }; /* FRESH_OUTER: the first of gfx11's two invalidations came */

/* Memory that nobody writes but through atomics: the counter and the number of workgroups. */
static bool
of_barrier(const SimExtent *x, uint64_t addr)
{
    return x && x->kind == SIM_EXT_SYNC && addr - x->base < x->size;
}

void
sim_chk_loaded(SimWave *w, uint64_t addr)
{
    if (of_barrier(w->port->last, addr))
        w->chk->aside = true;
    else
        w->chk->fresh = FRESH_NO;
}

void
sim_chk_emptied(SimWave *w, const IsaCoherence *co)
{
    SimChk *c = w->chk;
    if (!cnt_done(&c->n, ISA_CNT_VM, c->n.access[ISA_CNT_VM]))
        return;
    if (co->inv_outer)
        c->fresh = FRESH_OUTER;
    else if (co->inv >= ISA_SCOPE_DEVICE || (co->inv_inner && c->fresh == FRESH_OUTER))
        c->fresh = FRESH_YES;
}

bool
sim_chk_fresh(const SimWave *w)
{
    const SimGroup *g = w->g;
    for (uint32_t i = 0; i < g->nwaves; i++)
        if (g->waves[i].stop != ST_END && g->waves[i].chk->fresh != FRESH_YES)
            return false;
    return true;
}

/* Asked when the access is made: who arrives before others has not seen them. */
bool
sim_chk_all_met(const SimWave *w, const struct SimCoherent *q)
{
    const SimLaunchInfo *info = w->g->info;
    uint64_t groups = (uint64_t)info->grid[0] * info->grid[1] * info->grid[2];
    return q->n == 1 && q->scope >= ISA_SCOPE_DEVICE && sim_race_released(info->race, q->addr[0]) == groups;
}

void
sim_chk_meet(SimWave *w)
{
    SimChk *c = w->chk;
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent));
    if (!sim_chk_fresh(w))
        return;
    c->device_open = false;
    for (uint32_t k = 0; k < n; k++) {
        struct SimCoherent *q = &c->coherent[k];
        if (q->acquired || q->scope < ISA_SCOPE_DEVICE || q->n != 1)
            continue;
        if (!cnt_done(&c->n, q->counter, q->seq))
            c->device_open = true;
        else if (q->all)
            sim_race_acquire(w->g->info->race, &w->race, q->addr[0], SIM_HAND_ALL);
    }
}
