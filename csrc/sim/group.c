/* group.c - resident workgroups: creation, initial registers, the run loops, barriers, faults; and one wave
 * on given bytes for tests.
 */
#include "sim/core.h"
#include "sim/late.h"
#include "sim/trace.h"

static void *
galloc(const TlAlloc *a, size_t n)
{
    uint8_t *p = a->realloc(a->self, NULL, 0, n + 128);
    if (!p)
        return NULL;
    memset(p, 0, n + 128);
    uint8_t *q = (uint8_t *)(((uintptr_t)p + 127) & ~(uintptr_t)63); /* the byte before q tells the shift */
    q[-1] = (uint8_t)(q - p);
    return q;
}
static void
gfree(const TlAlloc *a, void *q, size_t n)
{
    if (q)
        a->realloc(a->self, (uint8_t *)q - ((uint8_t *)q)[-1], n + 128, 0);
}

static uint32_t
round_up(uint32_t x, uint32_t n)
{
    return (x + n - 1) / n * n;
}

static size_t
wave_reg_bytes(void)
{
    return (size_t)ROWS * LANES * 4;
}

static bool
alloc_waves(SimGroup *g, uint32_t n)
{
    g->nwaves = n;
    g->waves = galloc(&g->alloc, sizeof(SimWave) * n);
    g->regs = galloc(&g->alloc, wave_reg_bytes() * n);
    if (g->checks & SIM_STATE_CHECKS)
        g->chk = galloc(&g->alloc, sizeof(SimChk) * n);
    if (!g->waves || !g->regs || ((g->checks & SIM_STATE_CHECKS) && !g->chk))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        SimWave *w = &g->waves[i];
        w->g = g;
        w->index = i;
        w->v = g->regs + (size_t)i * ROWS * LANES;
        w->chk = g->chk ? &g->chk[i] : NULL;
        w->lane_mask = g->wave_size == 64 ? ~UINT64_C(0) : UINT32_MAX;
    }
    return true;
}

static bool
alloc_lds(SimGroup *g, uint32_t bytes)
{
    g->lds_bytes = bytes;
    g->lds = galloc(&g->alloc, bytes + 64u);
    if (!g->lds)
        return false;
    if (g->checks & (1u << SIM_CHECK_RACE)) {
        g->lds_wr = galloc(&g->alloc, bytes + 64u);
        g->lds_rd = galloc(&g->alloc, bytes + 64u);
        if (!g->lds_wr || !g->lds_rd)
            return false;
    }
    if (g->checks & (1u << SIM_CHECK_INIT)) {
        g->lds_init = galloc(&g->alloc, 2 * sim_lds_map(g));
        if (!g->lds_init)
            return false;
    }
    return true;
}

enum { STACK_DEFAULT = 1024 };

SimGroup *
sim_group_new(const TlAlloc *alloc, const SimLaunchInfo *info)
{
    const TlAlloc *a = alloc ? alloc : &tl_alloc_libc;
    SimGroup *g = galloc(a, sizeof *g);
    if (!g)
        return NULL;
    g->alloc = *a;
    g->info = info;
    g->wave_size = info->wave64 ? 64 : 32;
    g->checks = info->checks;
    g->ignore = info->ignore;
    uint32_t threads = info->block[0] * info->block[1] * info->block[2];
    uint32_t n = (threads + g->wave_size - 1) / g->wave_size;
    /* a stack of unknown depth gets the HIP runtime's default */
    bool dynamic = (info->properties >> 11) & 1;
    uint32_t lane_bytes =
        dynamic ? TL_MAX(info->scratch_bytes, (uint32_t)STACK_DEFAULT) : info->scratch_bytes;
    g->scratch_wave = (uint64_t)round_up(lane_bytes, 16) * LANES;
    bool ok = n && alloc_waves(g, n) && alloc_lds(g, info->lds_bytes) &&
              (!info->late || sim_late_open(g, info->seed));
    if (ok && g->scratch_wave) {
        g->scratch = galloc(&g->alloc, g->scratch_wave * n);
        ok = g->scratch != NULL;
        if (ok && (g->checks & (1u << SIM_CHECK_INIT))) {
            g->scratch_init = galloc(&g->alloc, 2 * sim_scratch_map(g));
            ok = g->scratch_init != NULL;
        }
    }
    if (!ok) {
        sim_group_free(g);
        return NULL;
    }
    return g;
}

static void
end_races(SimWave *w)
{
    sim_race_wave_end(&w->race);
    sim_race_wave_end(&w->lds_race);
}

void
sim_group_free(SimGroup *g)
{
    if (!g)
        return;
    TlAlloc a = g->alloc;
    sim_late_close(g);
    for (uint32_t i = 0; g->waves && i < g->nwaves; i++)
        end_races(&g->waves[i]);
    sim_order_end(g);
    gfree(&a, g->waves, sizeof(SimWave) * g->nwaves);
    gfree(&a, g->regs, wave_reg_bytes() * g->nwaves);
    gfree(&a, g->chk, sizeof(SimChk) * g->nwaves);
    gfree(&a, g->lds, g->lds_bytes + 64u);
    gfree(&a, g->lds_wr, g->lds_bytes + 64u);
    gfree(&a, g->lds_rd, g->lds_bytes + 64u);
    gfree(&a, g->lds_init, 2 * sim_lds_map(g));
    gfree(&a, g->scratch, g->scratch_wave * g->nwaves);
    gfree(&a, g->scratch_init, 2 * sim_scratch_map(g));
    gfree(&a, g, sizeof *g);
}

uint32_t
sim_group_wave_count(const SimGroup *g)
{
    return g->nwaves;
}

uint64_t
sim_group_wave_pc(const SimGroup *g, uint32_t wave, uint32_t *state)
{
    const SimWave *w = &g->waves[wave];
    switch (w->stop) {
    case ST_RUN:
    case ST_FAULT:
        *state = 0;
        break;
    case ST_BARRIER:
        *state = 1;
        break;
    case ST_END:
        *state = 2;
        break;
    case ST_SLEEP:
        *state = 3;
        break;
    }
    return w->rec ? rec_pc(w, w->rec) : 0;
}

/* ---- initial state
 * --------------------------------------------------------------------------------------------- */

static void
define_s(SimWave *w, uint32_t reg, uint32_t n)
{
    if (w->chk)
        for (uint32_t k = 0; k < n; k++) {
            w->chk->sp[reg + k] = 0;
            w->chk->sflag[reg + k] &= (uint8_t)~VF_POISON;
        }
}

static uint32_t
put_s64(SimWave *w, uint32_t reg, uint64_t v)
{
    put64(w->s + reg, v);
    define_s(w, reg, 2);
    return reg + 2;
}
static uint32_t
put_s32(SimWave *w, uint32_t reg, uint32_t v)
{
    w->s[reg] = v;
    define_s(w, reg, 1);
    return reg + 1;
}

/* gfx12 keeps the workgroup's place in trap registers: x in ttmp9, y and z in the halves of ttmp7, as far as
 * the descriptor asks for them; the wave's number in ttmp8[29:25]. */
enum { S_TTMP0 = 108 };
static void
init_ttmps(const SimGroup *g, SimWave *w)
{
    uint32_t rsrc2 = g->info->rsrc2;
    w->s[S_TTMP0 + 9] = g->wg[0];
    w->s[S_TTMP0 + 8] = (w->index & 31) << 25;
    w->s[S_TTMP0 + 7] = ((rsrc2 >> 8) & 1 ? g->wg[1] & 0xffff : 0) | ((rsrc2 >> 9) & 1 ? g->wg[2] << 16 : 0);
}

/* Vector registers a wave has, of each file. */
static void
reg_counts(const SimLaunchInfo *in, uint32_t *arch, uint32_t *acc)
{
    uint32_t granules = (in->rsrc1 & 63) + 1, first = ((in->rsrc3 & 63) + 1) * 4, total = granules * 8;
    *acc = 0;
    if (in->arch >= ISA_GFX1100) {
        *arch = TL_MIN(granules * (in->wave64 ? 4u : 8u), 256u);
        return;
    }
    *arch = TL_MIN(TL_MIN(first, total), 256u);
    if (total > first)
        *acc = TL_MIN(total - first, 256u);
}

/* User and system SGPRs in the order of the kernel descriptor. */
static void
init_sgprs(SimGroup *g, SimWave *w)
{
    const SimLaunchInfo *in = g->info;
    uint32_t s = 0, p = in->properties, user = (in->rsrc2 >> 1) & 31;
    if (p & 1) { /* the scratch descriptor: lane numbers and base 0, by which vmem.c knows it */
        s = put_s64(w, s, (uint64_t)SCRATCH_RSRC_HI << 32);
        s = put_s64(w, s, UINT64_C(0xffffffff) | (uint64_t)ADD_TID << 32);
    }
    if (p & 2)
        s = put_s64(w, s, in->dispatch_ptr);
    if (p & 4)
        s = put_s64(w, s, in->queue_ptr);
    if (p & 8)
        s = put_s64(w, s, in->kernarg);
    if (p & 16)
        s = put_s64(w, s, in->dispatch_id);
    if (p & 32)
        s = put_s64(w, s, 0);
    if (p & 64)
        s = put_s32(w, s, in->scratch_bytes);
    for (uint32_t k = 0; k < in->preload_length && s < 16; k++) {
        uint32_t v = 0;
        if (in->kernarg)
            v = sim_dm_get32(in->kernarg + 4 * (in->preload_offset + k));
        s = put_s32(w, s, v);
    }
    s = user > s ? user : s;
    if (in->arch == ISA_GFX1201) {
        init_ttmps(g, w);
        return;
    }
    for (uint32_t d = 0; d < 3; d++)
        if ((in->rsrc2 >> (7 + d)) & 1)
            s = put_s32(w, s, g->wg[d]);
    if ((in->rsrc2 >> 10) & 1) /* workgroup info: first wave; waves in the workgroup */
        s = put_s32(w, s, (uint32_t)(w->index == 0) << 31 | (g->nwaves & 63));
    if (in->rsrc2 & 1 &&
        in->arch < ISA_GFX942) /* scratch offset of the wave; later chips know it by themselves */
        put_s32(w, s, 0);
    if (in->arch < ISA_GFX1100)
        put_s64(w, S_FLAT_SCRATCH, 0);
}

static void
init_wave(SimGroup *g, SimWave *w, const uint32_t dim[3])
{
    const SimLaunchInfo *in = g->info;
    uint32_t threads = dim[0] * dim[1] * dim[2], first = w->index * g->wave_size;
    memset(w->s, 0, sizeof w->s);
    uint32_t arch, acc;
    reg_counts(in, &arch, &acc);
    memset(w->v, 0, (size_t)arch * LANES * 4);
    memset(ROW(w, ROW_AGPR), 0, (size_t)acc * LANES * 4);
    w->code = in->code;
    w->trace = sim_trace_start(in->trace, w);
    w->mode = sim_mode_start(in->arch, in->rsrc1);
    w->mode_cls = sim_mode_class(w->code->arch, w->mode) | (in->mfma_hw ? MODE_HW : MODE_PLAIN);
    w->recs = sim_code_table(in->code, w->mode_cls);
    w->rec = w->recs ? w->recs + (in->entry - in->code->base) / 4 : NULL;
    w->scc = 0;
    w->trapsts = 0;
    w->gws_waits = false;
    w->icount = 0;
    w->clock = 0;
    w->stop = w->rec ? ST_RUN : ST_FAULT;
    w->scratch = g->scratch ? g->scratch + g->scratch_wave * w->index : NULL;
    w->scratch_init = g->scratch_init ? g->scratch_init + g->scratch_wave * w->index : NULL;
    uint32_t n = threads > first ? TL_MIN(threads - first, g->wave_size) : 0;
    w->live_exec = n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
    put64(w->s + S_EXEC, w->live_exec);
    sim_mask_rebuild(w, w->live_exec);
    if (!n)
        w->stop = ST_END;
    if (w->chk)
        sim_chk_reset(w);
    if (w->late)
        sim_late_reset(w);
    init_sgprs(g, w);
    uint32_t ids = (in->rsrc2 >> 11) & 3;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t t = first + l, x = t % dim[0], y = t / dim[0] % dim[1], z = t / (dim[0] * dim[1]);
        w->v[l] = x | (ids >= 1 ? y << 10 : 0) | (ids >= 2 ? z << 20 : 0);
    }
    end_races(w);
    memset(&w->race, 0, sizeof w->race);
    w->race.workgroup = (uint32_t)g->linear;
    w->race.wave = w->index;
    w->lds_race = w->race;
    if (in->race && !sim_one_cache(in) && g->nwaves > 1) /* out of memory: the lenient rule */
        (void)sim_race_strict(&w->race, g->nwaves);
}

static uint32_t
next_wave(SimGroup *g)
{
    if (!g->rng)
        return g->cur + 1 < g->nwaves ? g->cur + 1 : 0;
    g->rng ^= g->rng << 13;
    g->rng ^= g->rng >> 7;
    g->rng ^= g->rng << 17;
    return (uint32_t)((g->rng >> 33) % g->nwaves);
}

void
sim_group_reset(SimGroup *g, uint32_t x, uint32_t y, uint32_t z, uint64_t linear)
{
    const SimLaunchInfo *in = g->info;
    uint32_t id[3] = {x, y, z}, dim[3];
    for (uint32_t d = 0; d < 3; d++) {
        g->wg[d] = id[d];
        dim[d] = in->partial[d] && id[d] + 1 == in->grid[d] ? in->partial[d] : in->block[d];
    }
    g->linear = linear;
    g->epoch = 0;
    g->lds_all_init = g->polls = false;
    g->ended = false;
    g->rng = in->seed ? (in->seed + linear) * UINT64_C(0x9e3779b97f4a7c15) | 1 : 0;
    g->cur = g->rng ? next_wave(g) : 0;
    memset(g->lds, 0, g->lds_bytes);
    sim_order_end(g);
    if (g->lds_wr) {
        memset(g->lds_wr, 0, g->lds_bytes);
        memset(g->lds_rd, 0, g->lds_bytes);
    }
    if (g->lds_init)
        memset(g->lds_init, 0, sim_lds_map(g) + g->lds_bytes);
    if (g->scratch_init)
        memset(g->scratch_init, 0, 2 * sim_scratch_map(g));
    g->sh_lo = UINT32_MAX;
    g->sh_hi = 0;
    for (uint32_t i = 0; i < g->nwaves; i++)
        init_wave(g, &g->waves[i], dim);
    sim_barrier_reset(g);
}

/* ---- run loops
 * -------------------------------------------------------------------------------------------------- */

static uint64_t
run_plain(SimWave *w, uint64_t budget)
{
    SIM_RUN_LOOP(next = r->body(w, r); left--);
}

static uint64_t
run_counting(SimWave *w, uint64_t budget)
{
    uint64_t *counts = w->stats->pc_counts;
    SIM_RUN_LOOP({
        next = r->body(w, r);
        left--;
        if (counts)
            counts[r->at]++;
    });
}

static uint64_t
run_traced(SimWave *w, uint64_t budget)
{
    uint64_t *counts = w->stats ? w->stats->pc_counts : NULL;
    SIM_RUN_LOOP({
        sim_trace_before(w, r);
        if (UNLIKELY(w->chk && !sim_chk_before(w, r)))
            break;
        next = r->body(w, r);
        left--;
        if (w->chk)
            sim_chk_after(w, r);
        sim_trace_after(w, r);
        if (counts)
            counts[r->at]++;
    });
}

/* icount advances by whole slices. */
static uint64_t
run_wave(SimWave *w, uint64_t budget)
{
    uint64_t n = w->late    ? sim_late_run(w, budget)
                 : w->trace ? run_traced(w, budget)
                 : w->chk   ? sim_run_checked(w, budget)
                 : w->stats ? run_counting(w, budget)
                            : run_plain(w, budget);
    w->icount += n;
    if (w->stats)
        w->stats->instructions += n;
    return n;
}

/* The strict rule: all waves that meet wait at one and the same instruction. */
static bool
same_barrier(SimGroup *g)
{
    const SimWave *first = NULL;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (w->stop != ST_BARRIER)
            continue;
        if (!first)
            first = w;
        if (w->rec == first->rec ||
            (w->recs != first->recs && rec_pc(w, w->rec) == rec_pc(first, first->rec)))
            continue;
        const SimRec *here = w->rec;
        if (!sim_fault(w, here - 1, SIM_CHECK_BARRIER, false, 0, 0, first->index,
                       rec_pc(first, first->rec - 1),
                       "meets wave %u at another barrier instruction (rule: strict)", first->index))
            return false;
        w->rec = here;
    }
    return true;
}

/* false: the strict rule ended the group. */
static bool
release_barrier(SimGroup *g)
{
    if (g->info->strict && (g->checks >> SIM_CHECK_BARRIER & 1) && !same_barrier(g))
        return false;
    if (g->chk)
        sim_chk_barrier(g);
    g->epoch++;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (w->stop != ST_BARRIER)
            continue;
        w->stop = ST_RUN;
        if (w->chk)
            sim_chk_pass(w);
    }
    return true;
}

/* All live waves at the barrier? Reports waves that ended while others wait, when asked. */
static bool
barrier_met(const SimGroup *g)
{
    uint32_t at = 0, live = 0;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        live += g->waves[i].stop != ST_END;
        at += g->waves[i].stop == ST_BARRIER && !g->waves[i].bar_wait;
    }
    return live && at == live;
}

/* Waves at a barrier that the wave `spin` does not come to. */
static void
report_waiters(SimGroup *g, SimWave *spin)
{
    if (!(g->checks & (1u << SIM_CHECK_BARRIER)))
        return;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        if (w->stop != ST_BARRIER)
            continue;
        if (!sim_fault(
                w, w->rec - 1, SIM_CHECK_BARRIER, false, 0, 0, spin->index, rec_pc(spin, spin->rec),
                "waits at a barrier to which wave %u does not come (it has executed %llu instructions)",
                spin->index, (unsigned long long)spin->icount))
            return;
        w->stop = ST_BARRIER;
        return;
    }
}

enum { WAVE_SLICE = 4096 };

static uint32_t
count_waves(const SimGroup *g, WaveStop stop)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nwaves; i++)
        n += g->waves[i].stop == stop;
    return n;
}

/* No wave can run. */
static SimRun
stuck(SimGroup *g)
{
    if (count_waves(g, ST_SLEEP)) /* the others wait for these */
        return SIM_RUN_YIELD;
    sim_barrier_stuck(g);
    return SIM_RUN_BLOCKED;
}

SimRun
sim_group_run(SimGroup *g, uint64_t budget, SimMemPort *port, SimStats *stats)
{
    uint64_t used = 0, limit = g->info->max_instructions;
    bool split = g->info->arch == ISA_GFX1201;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        g->waves[i].port = port;
        g->waves[i].stats = stats;
        if (g->waves[i].stop == ST_SLEEP)
            g->waves[i].stop = ST_RUN;
    }
    if (g->ended)
        return SIM_RUN_FAULT;
    while (used < budget) {
        if (!count_waves(g, ST_RUN)) {
            if (count_waves(g, ST_END) == g->nwaves)
                break;
            if (!barrier_met(g))
                return stuck(g);
            if (!release_barrier(g))
                return SIM_RUN_FAULT;
            continue;
        }
        SimWave *w = &g->waves[g->cur];
        if (w->stop != ST_RUN) {
            g->cur = next_wave(g);
            continue;
        }
        uint64_t slice = TL_MIN(budget - used, (uint64_t)WAVE_SLICE), ran;
        if (g->late)
            slice = sim_late_slice(g, slice);
        ran = run_wave(w, slice) + 1;
        used += ran;
        if (w->stop == ST_END && w->chk)
            sim_chk_wave_end(w);
        if (split) {
            if (w->stop == ST_END)
                sim_barrier_wave_end(w);
            sim_barrier_update(g);
        }
        if (g->ended || w->stop == ST_FAULT || (g->late && !sim_late_between(g, ran)))
            return SIM_RUN_FAULT;
        if (limit && w->icount > limit && (w->stop == ST_RUN || w->stop == ST_SLEEP)) {
            report_waiters(g, w);
            sim_fault(w, w->rec, SIM_FAULT_HANG, true, 0, 0, UINT32_MAX, 0,
                      "wave executed %llu instructions without an end", (unsigned long long)w->icount);
            return SIM_RUN_FAULT;
        }
        if (w->stop != ST_RUN || g->nwaves > 1)
            g->cur = next_wave(g);
    }
    for (uint32_t i = 0; i < g->nwaves; i++)
        if (g->waves[i].stop != ST_END)
            return SIM_RUN_YIELD;
    if (g->late && !sim_late_drain(g))
        return SIM_RUN_FAULT;
    if (g->info->race)
        sim_race_group_end(g->info->race, (uint32_t)g->linear);
    return SIM_RUN_DONE;
}

/* ---- faults
 * -------------------------------------------------------------------------------------------------------- */

static const char *const check_names[] = {"bounds",  "init",   "race", "wait", "hazard",       "barrier",
                                          "illegal", "memory", "trap", "hang", "out-of-memory"};

const char *
sim_check_name(SimCheck c)
{
    return (uint32_t)c < TL_COUNT(check_names) ? check_names[c] : "?";
}

bool
sim_fault(SimWave *w, const SimRec *r, SimCheck check, bool fatal, uint64_t lanes, uint64_t addr,
          uint32_t other_wave, uint64_t other_pc, const char *fmt, ...)
{
    SimGroup *g = w->g;
    SimFault f;
    memset(&f, 0, sizeof f);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f.message, sizeof f.message, fmt, ap);
    va_end(ap);
    f.check = check;
    f.rule = check == SIM_CHECK_HAZARD && w->chk ? w->chk->rule : ISA_HR_NONE;
    memcpy(f.wg, g->wg, sizeof f.wg);
    f.wave = w->index;
    f.lanes = lanes;
    f.pc = r ? rec_pc(w, r) : 0;
    f.address = addr;
    f.other_wave = other_wave;
    f.other_pc = other_pc;
    f.fatal = fatal;
    bool go_on = false;
    if (g->capture)
        *g->capture = f;
    else if (g->info && g->info->sink)
        go_on = g->info->sink(g->info->sink_self, &f);
    if (fatal || !go_on) {
        w->stop = ST_FAULT;
        w->rec = r;
        g->ended = true;
        return false;
    }
    return true;
}

void
sim_describe(SimWave *w, uint64_t addr, uint32_t n, char *text, size_t cap)
{
    TlArena a;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    if (w->port)
        sim_mem_describe(w->port, addr, n, &t);
    snprintf(text, cap, "at 0x%llx: %s", (unsigned long long)addr, t.data ? t.data : "no memory");
    tl_arena_free(&a);
}

/* ---- one wave on given bytes
 * ----------------------------------------------------------------------------------------- */

uint64_t
sim_wave_state_size(void)
{
    return sizeof(SimWaveState);
}

/* Runs on after each sleep. */
static void
run_on(SimWave *w, uint64_t budget, uint64_t (*run)(SimWave *w, uint64_t budget))
{
    while (budget && w->stop == ST_RUN) {
        uint64_t n = run(w, budget);
        budget -= TL_MIN(n, budget);
        if (w->stop == ST_SLEEP)
            w->stop = ST_RUN;
    }
}

static void
take_state(SimWave *w, SimCode *c, const SimWaveState *state)
{
    w->code = c;
    w->mode = state->mode;
    w->mode_cls = sim_mode_class(c->arch, w->mode) | (state->mfma_hw ? MODE_HW : MODE_PLAIN);
    w->recs = sim_code_table(c, w->mode_cls);
    w->rec = w->recs;
    memcpy(w->s, state->s, sizeof state->s);
    put_mask(w, S_VCC, state->vcc);
    w->s[S_M0] = state->m0;
    put64(w->s + S_EXEC, state->exec);
    sim_mask_rebuild(w, EXEC(w));
    w->scc = state->scc;
    memcpy(w->v, state->v, wave_reg_bytes());
    if (state->lds_bytes)
        memcpy(w->g->lds, state->lds, state->lds_bytes);
    if (w->chk) {
        sim_chk_reset(w);
        sim_chk_given(w, state);
    }
    w->stop = w->recs ? ST_RUN : ST_FAULT;
}

static void
give_state(const SimWave *w, SimWaveState *state)
{
    memcpy(state->s, w->s, sizeof state->s);
    memcpy(state->v, w->v, wave_reg_bytes());
    state->vcc = VCC(w);
    state->exec = get64(w->s + S_EXEC);
    state->m0 = w->s[S_M0];
    state->scc = w->scc;
    state->mode = w->mode;
    if (state->lds_bytes)
        memcpy(state->lds, w->g->lds, state->lds_bytes);
}

/* false: a fault, of which *g->capture tells. */
static bool
exec_state(SimWave *w, const SimWaveState *state, uint64_t most)
{
    SimGroup *g = w->g;
    bool late = state->late && w->recs;
    if (late && !sim_late_open(g, state->seed)) {
        g->capture->check = SIM_FAULT_OOM;
        return false;
    }
    if (late) {
        sim_late_reset(w);
        run_on(w, most, sim_late_run);
        if (w->stop != ST_FAULT)
            sim_late_drain(g);
    } else if (w->recs) {
        run_on(w, most, w->chk ? sim_run_checked : run_plain);
    }
    if (w->recs && w->stop == ST_RUN && !g->ended)
        sim_fault(w, w->rec, SIM_FAULT_HANG, true, 0, 0, UINT32_MAX, 0, "%llu instructions without an end",
                  (unsigned long long)most);
    return w->stop == ST_END || w->stop == ST_RUN || w->stop == ST_SLEEP;
}

bool
sim_exec_bytes(IsaArch arch, bool wave64, const uint8_t *code, size_t size, uint64_t max_instructions,
               SimMemPort *port, SimWaveState *state, SimFault *fault)
{
    const char *why = NULL;
    SimFault dummy;
    fault = fault ? fault : &dummy;
    memset(fault, 0, sizeof *fault);
    SimCode *c = sim_code_new(NULL, arch, wave64, (uint64_t)(uintptr_t)code, size, &why);
    if (!c) {
        fault->check = SIM_FAULT_ILLEGAL;
        snprintf(fault->message, sizeof fault->message, "%s", why);
        return false;
    }
    SimGroup g = {0};
    g.alloc = tl_alloc_libc;
    g.own_exec = true;
    g.capture = fault;
    g.checks = 1u << SIM_CHECK_BOUNDS | state->checks;
    g.ignore = (uint32_t)state->ignore;
    g.wave_size = wave64 ? 64 : 32;
    g.gws = sim_gws_new();
    bool ok = g.gws && alloc_waves(&g, 1) && alloc_lds(&g, state->lds_bytes);
    if (!ok) {
        fault->check = SIM_FAULT_OOM;
    } else {
        SimWave *w = &g.waves[0];
        w->port = port;
        take_state(w, c, state);
        ok = exec_state(w, state, max_instructions ? max_instructions : 1000000);
        give_state(w, state);
    }
    sim_late_close(&g);
    sim_gws_free(g.gws);
    gfree(&g.alloc, g.waves, sizeof(SimWave));
    gfree(&g.alloc, g.regs, wave_reg_bytes());
    gfree(&g.alloc, g.chk, sizeof(SimChk));
    gfree(&g.alloc, g.lds, g.lds_bytes + 64u);
    gfree(&g.alloc, g.lds_init, 2 * sim_lds_map(&g));
    sim_code_free(c);
    return ok;
}
