/* barrier.c - split barriers of gfx12: arriving (signal) and waiting are two instructions. Barrier -1 is the
 * workgroup's; 1..16 are named ones, which a wave joins before it may wait for one.
 *
 * A barrier completes between two slices of work (sim_barrier_update), when as many waves have signalled as
 * it has members; then each member may pass one wait. Waves that end leave the workgroup's count. A workgroup
 * of one wave has no barrier: the instructions do nothing there. Misuse is reported by the check "barrier"; a
 * group in which nothing can run any more is always reported.
 */
#include "sim/core.h"

#define BODY(name) static const SimRec *b_##name(SimWave *w, const SimRec *r)

enum { BAR_WORKGROUP = -1, BAR_TRAP = -2, M0_COUNT_SHIFT = 16, M0_COUNT_BITS = 127 };

static bool
alone(const SimWave *w)
{
    return w->g->nwaves == 1;
}

/* The barrier's number: M0[4:0] or the instruction's own constant. */
static int32_t
bar_id(SimWave *w, const SimRec *r)
{
    uint32_t v = s32(w, r->src[0]) & 31;
    return v >= 30 ? (int32_t)v - 32 : (int32_t)v;
}

/* Its state, NULL where there is none (0, the trap handler's, reserved numbers). */
static SimBarrier *
bar_of(SimGroup *g, int32_t id)
{
    return id == BAR_WORKGROUP ? &g->bar[0] : id >= 1 && id <= SIM_NAMED_BARRIERS ? &g->bar[id] : NULL;
}

/* ---- instructions ---- */

static bool
misuse(SimWave *w, const SimRec *r, const char *what)
{
    if (!checking(w, SIM_CHECK_BARRIER))
        return true;
    return sim_fault(w, r, SIM_CHECK_BARRIER, false, 0, 0, UINT32_MAX, 0, "%s", what);
}

/* r->imm: also tell in SCC whether this wave is the first one. */
BODY(signal)
{
    int32_t id = bar_id(w, r);
    SimBarrier *b = bar_of(w->g, id);
    if (r->imm)
        w->scc = !b || b->signalled == 0;
    if (!b || alone(w))
        return NEXT(r);
    if (id == BAR_WORKGROUP) {
        if ((w->bar_signalled || w->bar_done & 1) &&
            !misuse(w, r, "signals the workgroup's barrier a second time without a wait in between"))
            return NULL;
        w->bar_signalled = true;
        w->bar_pc = r->at;
    } else if (r->src[0].kind == SRC_S && (w->s[S_M0] >> M0_COUNT_SHIFT & M0_COUNT_BITS)) {
        b->members = w->s[S_M0] >> M0_COUNT_SHIFT & M0_COUNT_BITS;
        b->valid = true;
    }
    b->signalled++;
    if (w->chk)
        sim_chk_signal(w);
    return NEXT(r);
}

BODY(wait)
{
    bool named = (int16_t)r->imm > 0;
    if (alone(w) || (int16_t)r->imm == BAR_TRAP || (named && !w->bar_joined) || (int16_t)r->imm == 0)
        return NEXT(r);
    uint8_t bit = named ? 2 : 1;
    if (!named && !w->bar_signalled && !(w->bar_done & 1) &&
        !misuse(w, r, "waits at the workgroup's barrier without having signalled it"))
        return NULL;
    w->rec = NEXT(r);
    w->stop = ST_BARRIER;
    w->bar_wait = bit;
    return NULL;
}

BODY(init)
{
    SimBarrier *b = bar_of(w->g, bar_id(w, r));
    if (b && b != &w->g->bar[0])
        *b = (SimBarrier){.members = w->s[S_M0] >> M0_COUNT_SHIFT & M0_COUNT_BITS, .valid = true};
    return NEXT(r);
}

BODY(join)
{
    int32_t id = bar_id(w, r);
    if (id >= 0 && id <= SIM_NAMED_BARRIERS) {
        w->bar_joined = (uint8_t)id;
        w->bar_done &= 1;
    }
    return NEXT(r);
}

BODY(leave)
{
    w->scc = w->bar_joined != 0;
    if (w->bar_joined && w->g->bar[w->bar_joined].members)
        w->g->bar[w->bar_joined].members--;
    w->bar_joined = 0;
    w->bar_done &= 1;
    return NEXT(r);
}

/* valid [0], members [10:4], signals [22:16] */
BODY(state)
{
    const SimBarrier *b = bar_of(w->g, bar_id(w, r));
    w->s[r->dst] = !b ? 0 : (uint32_t)b->valid | (b->members & 127) << 4 | (b->signalled & 127) << 16;
    return NEXT(r);
}

bool
sim_build_barrier(SimBuild *b)
{
    static const struct {
        const char *name;
        SimBody body;
    } rows[] = {
        {"s_barrier_signal", b_signal},   {"s_barrier_signal_isfirst", b_signal},
        {"s_barrier_wait", b_wait},       {"s_barrier_init", b_init},
        {"s_barrier_join", b_join},       {"s_barrier_leave", b_leave},
        {"s_get_barrier_state", b_state},
    };
    for (uint32_t i = 0; i < TL_COUNT(rows); i++) {
        if (strcmp(rows[i].name, b->name))
            continue;
        sim_build_flow_operands(b);
        b->r->body = rows[i].body;
        if (i < 2)
            b->r->imm = i == 1;
        return true;
    }
    return false;
}

/* ---- between slices ---- */

void
sim_barrier_reset(SimGroup *g)
{
    memset(g->bar, 0, sizeof g->bar);
    g->bar[0].valid = true;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        w->bar_done = w->bar_wait = w->bar_joined = 0;
        w->bar_signalled = false;
        g->bar[0].members += w->stop != ST_END;
    }
}

void
sim_barrier_wave_end(SimWave *w)
{
    SimGroup *g = w->g;
    if (g->bar[0].members)
        g->bar[0].members--;
    if (w->bar_signalled && g->bar[0].signalled) /* its signal goes with it */
        g->bar[0].signalled--;
    w->bar_signalled = false;
}

static bool
is_member(const SimWave *w, uint32_t id)
{
    return w->stop != ST_END && (id == 0 || w->bar_joined == id);
}

/* Until a wave waits, a complete barrier changes nothing: what its members do before their waits counts as
 * before the barrier for the checks. */
static bool
awaited(const SimGroup *g, uint32_t id)
{
    for (uint32_t i = 0; i < g->nwaves; i++) {
        const SimWave *w = &g->waves[i];
        if (w->stop == ST_BARRIER && (id ? w->bar_wait == 2 && w->bar_joined == id : w->bar_wait == 1))
            return true;
    }
    return false;
}

/* The strict rule: all waves that meet have arrived at one and the same instruction. */
static void
same_signal(SimGroup *g)
{
    SimWave *first = NULL;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (!is_member(w, 0) || !w->bar_signalled)
            continue;
        first = first ? first : w;
        if (w->bar_pc != first->bar_pc &&
            !sim_fault(w, w->recs + w->bar_pc, SIM_CHECK_BARRIER, false, 0, 0, first->index,
                       w->code->base + (uint64_t)first->bar_pc * 4,
                       "meets wave %u at another barrier instruction (rule: strict)", first->index))
            return; /* the group has ended */
    }
}

static void
complete(SimGroup *g, uint32_t id)
{
    if (!id && g->info->strict && (g->checks >> SIM_CHECK_BARRIER & 1))
        same_signal(g);
    if (g->chk)
        sim_chk_barrier(g);
    g->epoch++;
    g->bar[id].signalled = 0;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (!is_member(w, id))
            continue;
        w->bar_done |= id ? 2 : 1;
        if (!id)
            w->bar_signalled = false;
    }
}

void
sim_barrier_update(SimGroup *g)
{
    for (uint32_t id = 0; id <= SIM_NAMED_BARRIERS; id++)
        if (g->bar[id].signalled && g->bar[id].signalled >= g->bar[id].members && awaited(g, id))
            complete(g, id);
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (w->stop != ST_BARRIER || !(w->bar_done & w->bar_wait))
            continue;
        w->bar_done &= (uint8_t)~w->bar_wait;
        w->bar_wait = 0;
        w->stop = ST_RUN;
        if (w->chk)
            sim_chk_pass(w);
    }
}

void
sim_barrier_stuck(SimGroup *g)
{
    char text[200] = "";
    size_t at = 0;
    SimWave *first = NULL;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (w->stop != ST_BARRIER)
            continue;
        first = first ? first : w;
        if (at + 24 < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, " %u:0x%llx", i,
                                   (unsigned long long)(rec_pc(w, w->rec) - w->code->base) - 4);
    }
    if (!first)
        return;
    bool check = (g->checks >> SIM_CHECK_BARRIER) & 1;
    sim_fault(first, first->rec - 1, check ? SIM_CHECK_BARRIER : SIM_FAULT_HANG, true, 0, 0, UINT32_MAX, 0,
              "every wave waits and no barrier can complete (wave:offset%s)", text);
}
