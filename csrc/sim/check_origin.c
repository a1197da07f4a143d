/* check_origin.c - where an undefined value comes from (check "init"): for each undefined register the load
 * that read undefined bytes, with the address of the first, or the register that nothing has written. It goes
 * along with the value where that is followed (sim_chk_poison) and is for the reports alone: where it is not
 * known nothing is said.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/check.h"
#include "sim/valu.h"

/* What SimChk.org holds: a kind, and above it a register (ORG_START) or the dword of a load in the code. */
enum { KIND_BITS = 3, KIND_MASK = 7 };

void
sim_chk_origin_start(SimChk *c)
{
    for (uint32_t i = 0; i < ROWS + SREGS; i++)
        c->org[i] = (i < ROWS ? c->vp[i] != 0 : c->sp[i - ROWS] != 0) ? i << KIND_BITS | ORG_START : ORG_NONE;
    c->org[ORG_SCC] = ORG_SCC << KIND_BITS | ORG_START;
    c->org_new = ORG_NONE;
    c->org_off = false;
}

void
sim_chk_origin_load(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    uint32_t org = r->at << KIND_BITS | c->org_new;
    c->org_new = ORG_NONE;
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n; row++)
            if (c->vp[row] & EXEC(w)) {
                c->org[row] = org;
                c->org_at[row] = c->org_new_at;
            }
    for (uint32_t i = 0; i < x->nswrite; i++)
        for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n; s++)
            if (c->sp[s]) {
                c->org[ROWS + s] = org;
                c->org_at[ROWS + s] = c->org_new_at;
            }
}

SimOrigin
sim_chk_origin_of(const SimWave *w, const SimExt *x)
{
    const SimChk *c = w->chk;
    uint64_t lanes = x->kind == CK_MFMA ? ~UINT64_C(0) : EXEC(w);
    for (uint32_t i = 0; i < x->nvread; i++)
        for (uint32_t row = x->vread[i].start; row < x->vread[i].start + (uint32_t)x->vread[i].n; row++)
            if (c->vp[row] & lanes)
                return (SimOrigin){c->org[row], c->org_at[row]};
    for (uint32_t i = 0; i < x->nsread; i++)
        for (uint32_t s = x->sread[i].start; s < x->sread[i].start + (uint32_t)x->sread[i].n; s++)
            if (c->sp[s])
                return (SimOrigin){c->org[ROWS + s], c->org_at[ROWS + s]};
    bool scc = c->scc_p && (x->reads_scc || x->use & CU_SCC);
    return (SimOrigin){scc ? c->org[ORG_SCC] : ORG_NONE, c->org_at[ORG_SCC]};
}

/* Register i (a row, or ROWS + scalar) got a value of this origin; with what is not known, it may keep lanes
 * of the old one. */
static void
note(SimChk *c, uint32_t i, SimOrigin from, bool whole)
{
    if (!from.org && !whole)
        return;
    c->org[i] = from.org;
    c->org_at[i] = from.at;
}

void
sim_chk_origin_spread(SimWave *w, const SimExt *x, SimOrigin from)
{
    SimChk *c = w->chk;
    bool whole = x->kind == CK_MFMA || !(w->lane_mask & ~EXEC(w));
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n; row++)
            if (c->vp[row])
                note(c, row, from, whole);
    for (uint32_t i = 0; i < x->nswrite; i++)
        for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n; s++)
            if (c->sp[s])
                note(c, ROWS + s, from, true);
    if (x->writes_scc)
        note(c, ORG_SCC, from, true);
}

void
sim_chk_origin_lost(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    uint32_t src, dst;
    if (x->relidx && sim_rel_rows(w, r, &src, &dst))
        c->org[src] = c->org[dst] = ORG_NONE;
    for (uint32_t i = 0; i < x->nvwrite && !x->relidx; i++)
        for (uint32_t k = 0; k < x->vwrite[i].n; k++)
            c->org[x->vwrite[i].start + k] = ORG_NONE;
}

const char *
sim_chk_origin_text(SimWave *w, uint32_t i, char *text, size_t n, uint64_t *pc)
{
    const SimChk *c = w->chk;
    uint32_t org = c->org_off || w->late ? ORG_NONE : c->org[i], of = org >> KIND_BITS;
    char where[SIM_WHERE], name[16];
    *pc = 0;
    *text = 0;
    switch ((SimOriginKind)(org & KIND_MASK)) {
    case ORG_NONE:
        return text;
    case ORG_START:
        snprintf(text, n, "; nothing has written %s",
                 of == ORG_SCC ? "scc"
                 : of < ROWS   ? sim_row_name(of, name)
                               : sim_sreg_name(of - ROWS, name));
        return text;
    case ORG_GLOBAL:
        sim_describe(w, c->org_at[i], 1, where, sizeof where);
        snprintf(text, n, "; it comes from undefined memory %s", where);
        break;
    case ORG_LDS:
    case ORG_SCRATCH:
        snprintf(text, n, "; it comes from byte %" PRIu64 " of %s, which is undefined", c->org_at[i],
                 (org & KIND_MASK) == ORG_LDS ? "LDS" : "a lane's scratch");
        break;
    }
    *pc = w->code->base + (uint64_t)of * 4;
    return text;
}
