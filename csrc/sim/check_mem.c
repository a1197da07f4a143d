/* check_mem.c - global memory and scratch in the checked variant: undefined bytes, undefined data to global
 * memory, races through the launch's shadow, flat accesses to LDS.
 */
#include <inttypes.h>

#include "isa/coherence.h"
#include "sim/check.h"
#include "sim/vmem.h"

/* Notes where the first undefined byte of a lane is. */
static void
found(SimWave *w, const VmLanes *v, uint32_t l, uint32_t at)
{
    bool priv = v->priv >> l & 1, lds = v->lds >> l & 1;
    sim_chk_origin_found(w->chk,
                         priv  ? ORG_SCRATCH
                         : lds ? ORG_LDS
                               : ORG_GLOBAL,
                         (priv || lds ? v->la[l] : v->va[l]) + at);
}

/* The map of a lane's bytes in scratch or LDS (NULL: there is none). */
static uint8_t *
local_map(SimWave *w, const VmLanes *v, uint32_t l, uint8_t **computed)
{
    SimGroup *g = w->g;
    bool lds = v->lds >> l & 1;
    uint8_t *p = lds ? g->lds_init : w->scratch_init;
    if (!p)
        return NULL;
    p += v->la[l] + (lds ? 0 : g->scratch_wave / LANES * l);
    *computed = p + (lds ? sim_lds_map(g) : sim_scratch_map(g));
    return p;
}

/* What one lane finds undefined in n bytes, into v->undef. */
static void
lane_undef(SimWave *w, VmLanes *v, uint32_t l, uint32_t n)
{
    uint64_t bit = UINT64_C(1) << l;
    uint64_t home = 0;
    uint8_t defined[16], *computed = NULL;
    const uint8_t *p = NULL;
    if ((v->priv | v->lds) & bit) {
        p = local_map(w, v, l, &computed);
        home = sim_chk_home(v->lds & bit, l, v->la[l]);
    } else {
        const SimExtent *x = v->one ? v->one : sim_mem_find(w->port, v->va[l], n);
        uint32_t m = x ? sim_undef_mask(x, v->va[l], n) : 0;
        for (uint32_t k = 0; m && k < TL_MIN(n, 16u); k++)
            defined[k] = m >> k & 1 ? 0 : 0xff;
        p = m ? defined : NULL;
    }
    for (uint32_t k = 0; p && k < TL_MIN(n, 16u); k++)
        if (p[k] != 0xff) {
            found(w, v, l, k);
            sim_chk_undef_lane(v->undef, l, p, computed, TL_MIN(n, 16u), home);
            return;
        }
}

/* All lanes read defined bytes of one extent (false: look closer). */
static bool
all_defined(const VmLanes *v, uint32_t n)
{
    const SimExtent *x = v->one;
    uint32_t bad = 0;
    if (!x->init)
        return true;
    if (v->partial)
        return false;
    if (v->hi - v->lo < 64 * SIM_WHOLE && sim_is_whole(x, v->lo, v->hi - v->lo))
        return true;
    for (uint64_t m = v->ok; m; m &= m - 1)
        bad |= sim_undef_mask(x, v->va[__builtin_ctzll(m)], n);
    return !bad;
}

static void
set_defined(SimWave *w, const VmLanes *v, uint32_t l, uint32_t n, uint32_t src, bool upper)
{
    uint64_t bit = UINT64_C(1) << l;
    if (!((v->priv | v->lds) & bit)) {
        const SimExtent *x = v->one ? v->one : sim_mem_find(w->port, v->va[l], n);
        if (x && x->init)
            sim_mark_defined(x, v->va[l], n);
        return;
    }
    uint8_t *computed, *p = local_map(w, v, l, &computed);
    if (v->lds & bit)
        w->g->lds_all_init = false;
    for (uint32_t d = 0; p && 4 * d < n; d++) {
        SimBitStore s = {src + d, TL_MIN(n - 4 * d, 4u), upper, false};
        s.in_place =
            sim_chk_goes_home(w->chk, &s, v->lds & bit, v->la, v->ok & (v->lds & bit ? v->lds : v->priv), d);
        sim_chk_put_lane(w->chk, &s, l, p + 4 * d, computed + 4 * d);
    }
}

static bool
flat_lds(SimWave *w, const SimRec *r, const VmLanes *v, uint32_t n, bool write, bool atomic)
{
    uint64_t m = v->lds & v->ok;
    if (!m)
        return true;
    if (write && !atomic)
        return sim_chk_lds_write(w, r, v->la, m, n, n >= 4 ? ROW(w, r->src[1].idx) : NULL, false);
    return atomic ? sim_chk_lds_atomic(w, r, v->la, m, n) : sim_chk_lds(w, r, v->la, m, n, false);
}

/* ---- ordering with other workgroups ---- */

/* What was released through what one of them has seen. */
static void
take(SimWave *w, const struct SimCoherent *q, SimHand what)
{
    SimRace *race = w->g->info->race;
    bool group = sim_hand_near(what);
    for (uint32_t i = 0; i < q->n; i++) {
        const uint32_t saw[] = {q->store[i], q->before[i]};
        if (q->nseen)
            sim_race_acquire_seen(race, &w->race, q->seen[group][i], what);
        else
            sim_race_acquire(race, &w->race, q->addr[i], what);
        for (uint32_t k = 0; k < TL_COUNT(saw); k++)
            if (saw[k] && (!group || sim_race_epoch_is(race, saw[k], w->race.workgroup)))
                sim_race_acquire_store(race, &w->race, saw[k], what);
    }
    if (what == SIM_HAND_GROUP && q->from &&
        !sim_race_learn_until(&w->race, &w->g->waves[q->from - 1].race, q->bound))
        sim_race_lost(race);
}

/* Only the last ones are remembered singly. Who looks at many flags in turn, or waits for some of them while
 * the others are up, has seen the older ones all the same. */
static void
put_off(SimWave *w, const struct SimCoherent *q, SimHand what)
{
    SimChk *c = w->chk;
    struct SimLater *l = &c->later[what - SIM_HAND_LATER];
    take(w, q, what);
    l->outer = q->outer && (l->outer || !l->any);
    if (!cnt_done(&c->n, q->counter, q->seq)) {
        l->counters |= (uint8_t)(1 << q->counter);
        l->seq[q->counter] = q->seq; /* the last one is the latest */
    }
    l->any = true;
}

static bool
later_done(const SimChk *c, const struct SimLater *l)
{
    bool done = l->any;
    for (uint32_t m = l->counters; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m);
        done &= cnt_done(&c->n, k, l->seq[k]);
    }
    return done;
}

/* They are complete, and behind them the caches were emptied. */
static void
take_later(SimWave *w, SimHand what)
{
    sim_race_take_later(w->g->info->race, &w->race, what);
    w->chk->later[what - SIM_HAND_LATER] = (struct SimLater){0};
}

static void
forget(SimWave *w, struct SimCoherent *q)
{
    for (uint32_t i = 0; i < q->nseen; i++) {
        sim_race_forget(w->g->info->race, q->seen[0][i]);
        sim_race_forget(w->g->info->race, q->seen[1][i]);
    }
    q->nseen = 0;
}

void
sim_chk_wave_end(SimWave *w)
{
    for (uint32_t k = 0; k < TL_COUNT(w->chk->coherent); k++)
        forget(w, &w->chk->coherent[k]);
}

struct SimCoherent *
sim_chk_new_coherent(SimWave *w, const SimRec *r, uint32_t counter, uint8_t scope)
{
    SimChk *c = w->chk;
    struct SimCoherent *q = &c->coherent[c->ncoherent % TL_COUNT(c->coherent)];
    if (c->ncoherent++ >= TL_COUNT(c->coherent)) {
        if (!q->acquired && q->scope >= ISA_SCOPE_DEVICE)
            put_off(w, q, SIM_HAND_LATER);
        if (!q->group && w->g->nwaves > 1)
            put_off(w, q, SIM_HAND_LATER_GROUP);
    }
    forget(w, q);
    q->counter = (uint8_t)counter;
    q->seq = c->n.issued[q->counter] + 1;
    q->n = q->from = 0;
    q->scope = scope;
    q->outer = q->acquired = q->group = q->steers = q->all = false;
    c->group_open = w->g->nwaves > 1;
    c->device_open |= scope >= ISA_SCOPE_DEVICE;
    q->pc = r->at;
    return q;
}

/* Once its addresses are known: what comes about there later it has not seen. */
void
sim_chk_look_now(SimWave *w, struct SimCoherent *q)
{
    SimRace *race = w->g->info->race;
    q->all = sim_chk_all_met(w, q);
    if (q->n > TL_COUNT(q->seen[0]))
        return;
    q->nseen = (uint8_t)q->n;
    for (uint32_t i = 0; i < q->n; i++) {
        q->seen[0][i] = q->scope >= ISA_SCOPE_DEVICE ? sim_race_seen(race, &w->race, q->addr[i], false) : 0;
        q->seen[1][i] = w->g->nwaves > 1 ? sim_race_seen(race, &w->race, q->addr[i], true) : 0;
    }
}

/* Addresses of a coherent load or atomic with return: an invalidation after its wait makes it an acquire. */
static void
note_coherent(SimWave *w, const SimRec *r, const VmLanes *v, uint64_t lanes)
{
    struct SimCoherent *q =
        sim_chk_new_coherent(w, r, (uint32_t)__builtin_ctz(r->ext->counters), r->ext->scope);
    /* what decides nothing orders nothing; an invalidation is enough of a sign that it does */
    q->steers = q->scope >= ISA_SCOPE_DEVICE && sim_chk_steers(w, r);
    w->chk->loads_open |= q->steers;
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        if (q->n && q->addr[q->n - 1] == v->va[l])
            continue;
        sim_chk_note_address(q, v->va[l]);
    }
    w->chk->look = true; /* after the access: what others release until then it may see */
}

/* On chips whose encodings hide atomic stores: the stores that a coherent access saw. Asked after it: one
 * that came in between counts as seen. An atomic has put its own record over the one it found (`before`). */
static void
stores_before(SimWave *w)
{
    struct SimCoherent *q = &w->chk->coherent[(w->chk->ncoherent - 1) % TL_COUNT(w->chk->coherent)];
    for (uint32_t k = 0; k < w->race.nreplaced; k++)
        for (uint32_t i = 0; i < q->n; i++)
            if (q->addr[i] - w->race.replaced[k].addr < 4 || q->addr[i] == w->race.replaced[k].addr)
                q->before[i] = w->race.replaced[k].epoch;
}

void
sim_chk_seen(SimWave *w)
{
    struct SimCoherent *q = &w->chk->coherent[(w->chk->ncoherent - 1) % TL_COUNT(w->chk->coherent)];
    w->chk->look = false;
    sim_chk_look_now(w, q);
    for (uint32_t i = 0; i < q->n && isa_store_hides_scope(w->code->arch); i++)
        q->store[i] = sim_race_last_store(w->g->info->race, &w->race, q->addr[i]);
}

/* Are the wave's earlier accesses complete and, where they went to a cache that is not shared by all, written
 * back? 0 or SIM_NO_*. */
uint32_t
sim_chk_lacks_release(const SimWave *w)
{
    const SimChkNumbers *n = &w->chk->n;
    uint32_t st = store_counter(w->code->arch);
    if (!sim_chk_complete(n))
        return SIM_NO_WAIT;
    if (n->dirty_seq && (int32_t)(n->dirty_seq - n->wb_seq) > 0)
        return SIM_NO_WRITEBACK;
    return n->dirty_seq && !cnt_done(n, st, n->wb_seq) ? SIM_NO_WAIT : 0;
}

/* Who stores over what others have loaded wants no more of them than that. */
static bool
loads_done(const SimWave *w, const SimRec *r)
{
    return cnt_done(&w->chk->n, ISA_CNT_VM, w->chk->n.loads) && sim_chk_dev_taken(w, r);
}

/* A store or atomic that others may wait for. */
static void
try_release(SimWave *w, const SimRec *r, const VmLanes *v, uint64_t lanes)
{
    uint32_t why = sim_chk_lacks_release(w);
    uint64_t last = 0;
    if (!why)
        sim_race_release_lanes(w->g->info->race, &w->race, v->va, lanes);
    else if (loads_done(w, r))
        sim_race_release_loads(w->g->info->race, &w->race, v->va, lanes);
    for (uint64_t m = why ? lanes : 0; m; m &= m - 1) {
        uint64_t a = v->va[__builtin_ctzll(m)];
        if (a != last)
            sim_race_no_release(w->g->info->race, &w->race, a, why, r->at);
        last = a;
    }
}

/* A store that may be an atomic one is a release when all that the wave did before is complete; of loads,
 * when there were some since the last one. */
static void
try_open(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    bool all = !sim_chk_lacks_release(w);
    if (!all && (c->handed == c->n.loads || !loads_done(w, r)))
        return;
    sim_race_open_release(w->g->info->race, &w->race, all ? SIM_HAND_ALL : SIM_HAND_LOADS);
    c->handed = c->n.loads;
}

/* ---- ordering within the workgroup: flags in global memory, of its scope or a wider one ---- */

/* Nothing need be written back: the waves share their cache, or write through it. A shared one serves its
 * waves in the order of issue (compilers rely on it), so nothing need be waited for either. */
static void
release_group(SimWave *w, const VmLanes *v, uint64_t lanes)
{
    if (!w->race.seen || sim_chk_lacks_release(w) != SIM_NO_WAIT)
        sim_race_release_group(w->g->info->race, &w->race, v->va, lanes);
    sim_order_release(w, v->va, lanes);
}

/* What loads and atomics that are complete have seen; invalidated: the wave's cache was emptied, which is
 * needed where the waves do not share one. */
void
sim_chk_flags_seen(SimWave *w, bool invalidated)
{
    SimChk *c = w->chk;
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent));
    for (uint32_t k = 0; k < n && w->g->lds_wr; k++) /* LDS has no cache */
        for (uint32_t i = 0;
             i < c->coherent[k].n && cnt_done(&c->n, c->coherent[k].counter, c->coherent[k].seq); i++)
            if (!c->coherent[k].group)
                sim_order_acquire(w, c->coherent[k].addr[i], c->coherent[k].store[i],
                                  c->coherent[k].before[i]);
    if (w->race.seen && !invalidated)
        return;
    c->group_open = false;
    for (uint32_t k = 0; k < n; k++) {
        struct SimCoherent *q = &c->coherent[k];
        if (q->group)
            continue;
        if (!cnt_done(&c->n, q->counter, q->seq)) {
            c->group_open = true;
            continue;
        }
        q->group = true;
        take(w, q, SIM_HAND_GROUP);
    }
    if (later_done(c, &c->later[1]))
        take_later(w, SIM_HAND_LATER_GROUP);
    c->group_open |= c->later[1].any;
}

void
sim_chk_loads_seen(SimWave *w)
{
    SimChk *c = w->chk;
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent));
    c->loads_open = false;
    for (uint32_t k = 0; k < n; k++) {
        struct SimCoherent *q = &c->coherent[k];
        if (!q->steers || q->acquired)
            continue;
        if (!cnt_done(&c->n, q->counter, q->seq)) {
            c->loads_open = true;
            continue;
        }
        q->steers = false;
        take(w, q, SIM_HAND_LOADS);
    }
}

/* Has another workgroup stored there last? A load of workgroup scope is as a plain one then. */
static bool
from_afar(SimWave *w, const VmLanes *v, uint64_t lanes)
{
    uint32_t group, wave;
    for (uint64_t m = lanes; m; m &= m - 1)
        if (sim_race_last_party(w->g->info->race, &w->race, v->va[__builtin_ctzll(m)], &group, &wave) &&
            group != w->race.workgroup)
            return true;
    return false;
}

static bool
global_race(SimWave *w, const SimRec *r, const VmLanes *v, uint32_t n)
{
    uint64_t m = v->ok & ~v->lds & ~v->priv;
    const SimExt *x = r->ext;
    if (!m) /* nobody else sees private memory, and LDS has a counter of its own */
        w->chk->aside = true;
    if (!m || !checking(w, SIM_CHECK_RACE) || !w->g->info->race)
        return true;
    IsaCoherence co = {.scope = x->scope, .maybe = sim_chk_maybe(w, r)};
    bool rmw = x->use & CU_ATOMIC;
    bool raised = rmw && !w->race.seen && co.scope < ISA_SCOPE_GROUP;
    if (raised) /* in a cache that they share no scope is asked for */
        co.scope = ISA_SCOPE_GROUP;
    bool st = x->use & CU_STORE, device = co.scope >= ISA_SCOPE_DEVICE;
    bool may = st && co.maybe && n <= 16, group = co.scope >= ISA_SCOPE_GROUP && w->g->nwaves > 1;
    if (w->chk->group_open)
        sim_chk_flags_seen(w, false);
    if (!st && !w->race.seen && w->g->nwaves > 1 && sim_chk_polls(w, r, v->va[__builtin_ctzll(m)]) &&
        (rmw || !co.scope) && sim_order_poll(w, v->va, m) && !rmw)
        return true;
    w->chk->effects += rmw || st;
    if (st && w->g->lds_wr)
        sim_order_store(w, v->va[__builtin_ctzll(m)]);
    if (w->chk->device_open)
        sim_chk_meet(w);
    if (w->chk->loads_open)
        sim_chk_loads_seen(w);
    if (may)
        try_open(w, r);
    bool narrow = !st && !rmw && co.scope == ISA_SCOPE_GROUP && !co.maybe && from_afar(w, v, m);
    SimAccess kind = rmw   ? SIM_ACC_ATOMIC
                     : !st ? (co.scope && !narrow) || co.maybe ? SIM_ACC_ATOMIC_READ : SIM_ACC_READ
                     : may ? SIM_ACC_MAYBE
                     : co.maybe || !co.scope ? SIM_ACC_WRITE
                                             : SIM_ACC_ATOMIC;
    if (kind == SIM_ACC_WRITE && !w->race.seen && isa_store_hides_group(w->code->arch) &&
        sim_chk_polled(w, v->va[__builtin_ctzll(m)]))
        kind = SIM_ACC_ATOMIC; /* a flag of the workgroup */
    sim_global_race(w, r, v->va, m, n, kind);
    if (kind == SIM_ACC_READ)
        sim_chk_loaded(w, v->va[__builtin_ctzll(m)]);
    if (device && (rmw || (st && !co.maybe)))
        try_release(w, r, v, m);
    if (group && (rmw || (st && !co.maybe)))
        release_group(w, v, m);
    bool sees = !rmw || (x->nvwrite && (!raised || sim_chk_steers(w, r)));
    if ((device || group) && !st && sees) { /* what its wave never sees orders nothing */
        note_coherent(w, r, v, m);
        if (isa_store_hides_scope(w->code->arch))
            stores_before(w);
    }
    if (st && isa_writeback_from(w->code->arch) <= ISA_SCOPE_DEVICE && !device)
        w->chk->n.dirty_seq = w->chk->n.issued[store_counter(w->code->arch)] + 1;
    return w->stop == ST_RUN;
}

static void
acquire(SimWave *w, uint32_t scope, bool outer)
{
    SimChk *c = w->chk;
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent));
    for (uint32_t k = 0; k < n; k++) {
        struct SimCoherent *q = &c->coherent[k];
        if (q->acquired || q->scope < ISA_SCOPE_DEVICE || !cnt_done(&c->n, q->counter, q->seq))
            continue;
        q->outer |= outer;
        if (scope < ISA_SCOPE_DEVICE && !(scope && q->outer))
            continue;
        q->acquired = true;
        take(w, q, SIM_HAND_ALL);
    }
    struct SimLater *l = &c->later[0];
    l->outer |= outer && later_done(c, l);
    if ((scope >= ISA_SCOPE_DEVICE || (scope && l->outer)) && later_done(c, l))
        take_later(w, SIM_HAND_LATER);
}

/* Invalidations and write-backs: the halves of acquire and release that caches do. */
void
sim_vm_check_cache(SimWave *w, const SimRec *r)
{
    SimChkNumbers *n = &w->chk->n;
    IsaCoherence co = isa_coherence(w->code->arch, &r->ext->in);
    if (!checking(w, SIM_CHECK_RACE) || !w->g->info->race)
        return;
    /* with nothing left to write back it does nothing */
    if (co.wb >= ISA_SCOPE_DEVICE && n->dirty_seq && (int32_t)(n->dirty_seq - n->wb_seq) > 0)
        n->wb_seq = n->issued[store_counter(w->code->arch)] + 1;
    if (co.inv || co.inv_outer)
        acquire(w, co.inv, co.inv_outer);
    if (co.inv >= ISA_SCOPE_GROUP && w->chk->group_open)
        sim_chk_flags_seen(w, true);
    if (co.inv)
        sim_race_invalidate(&w->race);
    sim_chk_emptied(w, &co);
}

/* An offset from the kernel's entry; functions that it calls may lie before it. */
static void
place(char *to, size_t size, uint64_t offset)
{
    bool before = offset >> 63;
    snprintf(to, size, "%c0x%" PRIx64, before ? '-' : '+', before ? -offset : offset);
}

/* What the chain between the two parties of a race lacks, when the wave has looked at something of that
 * workgroup's. */
static void
explain_chain(SimWave *w, const SimRaceHit *hit, char *text, size_t cap)
{
    const SimChk *c = w->chk;
    IsaArch arch = w->code->arch;
    SimRace *race = w->g->info->race;
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent));
    const char *load = isa_counter_name(arch, ISA_CNT_VM),
               *store = isa_counter_name(arch, (IsaCounter)store_counter(arch));
    for (uint32_t k = 1; k <= n; k++) {
        const struct SimCoherent *q = &c->coherent[(c->ncoherent - k) % TL_COUNT(c->coherent)];
        for (uint32_t i = 0; i < q->n && q->scope >= ISA_SCOPE_DEVICE; i++) {
            SimRaceSync why;
            bool any = sim_race_sync(race, q->addr[i], hit->workgroup, &why);
            bool hidden = sim_race_epoch_is(race, q->store[i], hit->workgroup) ||
                          sim_race_epoch_is(race, q->before[i], hit->workgroup);
            if (!any && !hidden && !why.why)
                continue;
            uint64_t to_entry = w->code->base - w->g->info->entry; /* pcs as reports give them */
            char at[24], wr[24];
            place(at, sizeof at, to_entry + (uint64_t)q->pc * 4);
            place(wr, sizeof wr, to_entry + (uint64_t)why.pc_slot * 4);
            if (why.why == SIM_NO_WRITEBACK)
                snprintf(text, cap, "; the store or atomic at %s is no release: no write-back (%s) before it",
                         wr, isa_writeback_name(arch));
            else if (why.why)
                snprintf(text, cap,
                         "; the store or atomic at %s is no release: no wait on %s covers what came "
                         "before it",
                         wr, hit->other == SIM_ACC_READ ? load : store);
            else if (!q->acquired)
                snprintf(text, cap, "; the load or atomic at %s is no acquire: no %s after its wait", at,
                         isa_invalidate_name(arch));
            else
                snprintf(text, cap,
                         "; the store that the load at %s saw is no release: no wait on %s covers what "
                         "came before it",
                         at, hit->other == SIM_ACC_READ ? load : store);
            return;
        }
    }
}

void
sim_global_race(SimWave *w, const SimRec *r, const uint64_t *addr, uint64_t exec, uint32_t bytes,
                SimAccess kind)
{
    SimRaceHit hit;
    IsaArch arch = w->code->arch;
    const SimExtent *x = exec ? w->port->last : NULL;
    /* memory that host and device pass to and fro by a protocol of their own, which is not known here */
    if (x && x->kind == SIM_EXT_SYSTEM && addr[__builtin_ctzll(exec)] - x->base < x->size)
        return;
    if (!sim_race_access(w->g->info->race, &w->race, addr, exec, bytes, kind, r->at, &hit))
        return;
    char by[48] = "others", why[200] = "", where[SIM_WHERE]; /* several, or one that is not remembered */
    if (hit.wave != UINT32_MAX)
        snprintf(by, sizeof by, "wave %u of workgroup %u", hit.wave, hit.workgroup);
    if (hit.behind_barrier)
        snprintf(
            why, sizeof why,
            "; the barrier between them does not order them: it needs a wait on %s before it%s%s",
            isa_counter_name(arch, hit.other == SIM_ACC_READ ? ISA_CNT_VM : (IsaCounter)store_counter(arch)),
            kind == SIM_ACC_READ ? " and an invalidation behind it, " : "",
            kind == SIM_ACC_READ ? isa_invalidate_group_name(arch) : "");
    else if (hit.wave != UINT32_MAX)
        explain_chain(w, &hit, why, sizeof why);
    sim_describe(w, hit.addr, 1, where, sizeof where);
    sim_fault(w, r, SIM_CHECK_RACE, false, UINT64_C(1) << (hit.lane & 63), hit.addr, hit.wave,
              hit.pc_slot == UINT32_MAX ? 0 : w->code->base + (uint64_t)hit.pc_slot * 4,
              "%s of global memory races with a %s by %s%s (%s)",
              kind == SIM_ACC_READ || kind == SIM_ACC_ATOMIC_READ ? "read" : "write",
              hit.other == SIM_ACC_READ || hit.other == SIM_ACC_ATOMIC_READ ? "read"
              : hit.other == SIM_ACC_WRITE                                  ? "write"
                                                                            : "atomic",
              by, why, where);
}

bool
sim_vm_check_load(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes;
    memset(v->undef, 0, sizeof v->undef);
    if (!flat_lds(w, r, v, n, false, false) || !global_race(w, r, v, n))
        return false;
    if (!checking(w, SIM_CHECK_INIT) || (v->one && !v->lds && !v->priv && all_defined(v, n)))
        return true;
    for (uint64_t m = v->ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), have = v->partial ? v->room[l] : n;
        lane_undef(w, v, l, have);
    }
    return true;
}

/* Lanes whose store of n bytes of a row is of undefined data. The padding between bit-fields is none. */
static uint64_t
stored_undef(const SimChk *c, uint32_t row, uint32_t n, bool upper)
{
    uint64_t lanes = 0;
    if (!(c->vflag[row] & VF_PART))
        return c->vp[row];
    for (uint64_t m = c->vp[row]; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), u = counted_bits(c, row, l) >> (upper ? 16 : 0);
        lanes |= (uint64_t)(u << (32 - 8 * n) != 0) << l;
    }
    return lanes;
}

static bool
undefined_data(SimWave *w, const SimRec *r, const VmOp *op, const VmLanes *v, uint32_t rows)
{
    SimChk *c = w->chk;
    uint64_t glob = v->ok & ~v->lds & ~v->priv;
    for (uint32_t k = 0; k < rows; k++) {
        uint32_t row = r->src[1].idx + k;
        uint64_t p = c->vp[row] & glob;
        char name[16], from[SIM_ORIGIN];
        uint64_t pc;
        if (p)
            p &= stored_undef(c, row, TL_MIN(op->acc.bytes, 4u), op->acc.d16 & 2);
        if (v->partial)
            for (uint64_t m = p; m; m &= m - 1) {
                uint32_t l = (uint32_t)__builtin_ctzll(m);
                if (v->room[l] < TL_MIN(4 * k + 4, (uint32_t)op->acc.bytes))
                    p &= ~(UINT64_C(1) << l);
            }
        if (!p)
            continue;
        c->vp[row] &= ~p;
        sim_chk_origin_text(w, row, from, sizeof from, &pc);
        if (!sim_fault(w, r, SIM_CHECK_INIT, false, p, v->va[__builtin_ctzll(p)], UINT32_MAX, pc,
                       "undefined value of %s is stored to global memory%s", sim_row_name(row, name), from))
            return false;
    }
    return true;
}

bool
sim_vm_check_store(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes, nd = op->acc.dwords;
    if (!flat_lds(w, r, v, n, true, false) || !global_race(w, r, v, n))
        return false;
    if (!checking(w, SIM_CHECK_INIT))
        return true;
    if (!undefined_data(w, r, op, v, nd))
        return false;
    uint64_t glob = v->ok & ~v->lds & ~v->priv;
    if (glob == v->ok && v->one && !v->one->init)
        return true;
    if (glob == ~UINT64_C(0) && v->one && v->hi - v->lo == (uint64_t)n * LANES && !v->partial) {
        bool run = true; /* lanes in order, without a gap */
        for (uint32_t l = 0; l < LANES; l++)
            run &= v->va[l] == v->lo + (uint64_t)n * l;
        if (run) {
            sim_mark_defined(v->one, v->lo, (uint64_t)n * LANES);
            return true;
        }
    }
    for (uint64_t m = v->ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint32_t have = v->partial ? v->room[l] : n;
        if (have)
            set_defined(w, v, l, have, r->src[1].idx, op->acc.d16 & 2);
    }
    return true;
}

bool
sim_vm_check_atomic(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes;
    memset(v->undef, 0, sizeof v->undef);
    if (!flat_lds(w, r, v, n, true, true) || !global_race(w, r, v, n))
        return false;
    if (!checking(w, SIM_CHECK_INIT))
        return true;
    if (!undefined_data(w, r, op, v, op->acc.dwords * (op->acc.atom == AT_CMPSWAP ? 2u : 1u)))
        return false;
    for (uint64_t m = v->ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        lane_undef(w, v, l, n);
        if (op->acc.atom == AT_SWAP)
            set_defined(w, v, l, n, r->src[1].idx, false);
    }
    return true;
}
