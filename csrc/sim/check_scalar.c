/* check_scalar.c - scalar loads in the checked variant: races, and what their cache may keep.
 *
 * No store, whoever makes it, reaches the scalar cache, nor does what empties the vector caches empty it. So
 * a scalar load of bytes that another wave has written in this launch may give what was there before, however
 * the two are ordered, unless the wave emptied the scalar cache (s_dcache_inv) behind what orders them.
 * Compilers load that way only what does not change in a launch. A load that asks for coherence (glc; on
 * gfx12 a scope of the device) goes past the cache: it is atomic, and may see a flag.
 */
#include "isa/coherence.h"
#include "sim/check.h"

static bool
coherent(IsaArch arch, const IsaInst *in)
{
    return arch == ISA_GFX1201 ? in->scope >= ISA_SCOPE_DEVICE : in->glc;
}

/* Memory of the program's own that a launch may write? */
static bool
may_change(const SimExtent *x)
{
    return x && !(x->flags & SIM_EXT_READONLY) && x->kind != SIM_EXT_KERNARG && x->kind != SIM_EXT_SYSTEM &&
           x->kind != SIM_EXT_SYNC;
}

static bool
stale(SimWave *w, const SimRec *r, uint64_t addr)
{
    SimRaceHit hit;
    char where[SIM_WHERE];
    if (!sim_race_scalar_stale(w->g->info->race, &w->race, addr, &hit))
        return true;
    sim_describe(w, hit.addr, 1, where, sizeof where);
    return sim_fault(
        w, r, SIM_CHECK_RACE, false, 0, hit.addr, hit.wave,
        hit.pc_slot == UINT32_MAX ? 0 : w->code->base + (uint64_t)hit.pc_slot * 4,
        "scalar load of global memory that wave %u of workgroup %u has written in this launch: the "
        "scalar cache may hold what was there before; no s_dcache_inv lies behind what orders the "
        "two (%s)",
        hit.wave, hit.workgroup, where);
}

/* n bytes at addr, a multiple of 4, or 1 or 2; false: stop. */
bool
sim_chk_scalar_load(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n)
{
    const IsaInst *in = &r->ext->in;
    bool wide = coherent(w->code->arch, in), guess = !wide && sim_chk_maybe(w, r);
    uint32_t each = TL_MIN(n, 4u), count = n / each;
    uint64_t lanes[LANES];
    for (uint32_t k = 0; k < count; k++)
        lanes[k] = addr + each * k;
    sim_global_race(w, r, lanes, (UINT64_C(1) << count) - 1, each,
                    wide || guess ? SIM_ACC_ATOMIC_READ : SIM_ACC_READ);
    if (wide) {
        struct SimCoherent *q = sim_chk_new_coherent(w, r, ISA_CNT_KM, ISA_SCOPE_DEVICE);
        for (uint32_t k = 0; k < count; k++)
            sim_chk_note_address(q, lanes[k]);
        w->chk->look = true;
    }
    bool look = !wide && !guess && may_change(w->port->last);
    for (uint32_t k = 0; k < n && look && w->stop == ST_RUN; k++)
        if (!stale(w, r, addr + k))
            return false;
    return w->stop == ST_RUN;
}

/* s_dcache_inv */
void
sim_chk_scalar_inv(SimWave *w)
{
    if (w->g->info && w->g->info->race && checking(w, SIM_CHECK_RACE) && !sim_race_scalar_inv(&w->race))
        sim_race_lost(w->g->info->race);
}
