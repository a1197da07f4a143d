/* check_run.c - the checked variant's loop, and its short way: a plain VALU instruction whose registers carry
 * no flag (undefined, on its way, owed a wait state) needs none of what sim_chk_before and sim_chk_after ask.
 * What it leaves behind is the same.
 */
#include "sim/check.h"

/* Takes the registers of a range into the list of flags; false: it is full. */
static bool
quick_add(SimQuick *q, const SimRange *g, uint32_t n, uint32_t base)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < g[i].n; k++) {
            if (q->n == QUICK_FLAGS)
                return false;
            q->flag[q->n++] = (uint16_t)(base + g[i].start + k);
        }
    return true;
}

void
sim_chk_quick_prepare(SimBuild *b)
{
    SimExt *x = b->x;
    SimQuick q = {.n = 0};
    x->quick = q;
    if (x->kind != CK_VALU || !(x->haz_plain || sim_chk_rdna_plain(x)) || x->counters || x->use ||
        x->relidx || x->reads_scc || x->writes_scc || x->writes_exec || x->writes_m0 || (b->cls & MODE_IDX))
        return;
    if (!quick_add(&q, x->vread, x->nvread, 0) || !quick_add(&q, x->vwrite, x->nvwrite, 0) ||
        !quick_add(&q, x->sread, x->nsread, QUICK_SCALAR) ||
        !quick_add(&q, x->swrite, x->nswrite, QUICK_SCALAR) || !q.n)
        return;
    for (uint32_t i = q.n; i < QUICK_FLAGS; i++)
        q.flag[i] = QUICK_SCALAR - 1;
    x->quick = q;
}

/* Wait states that a plain VALU instruction owes to what wrote its registers: are they there? (As in
 * check_hazard.c; false: ask there.) */
static bool
quick_owed(SimChk *c, const SimQuick *q)
{
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t k = q->flag[i];
        if (!(c->flag[k] & VF_PROD))
            continue;
        if (k >= QUICK_SCALAR) {
            uint32_t since = c->now - c->stime[k - QUICK_SCALAR] - 1;
            if (since < 2)
                return false;
            if (since >= 5)
                c->flag[k] &= (uint8_t)~VF_PROD;
            continue;
        }
        uint32_t since = c->now - c->vtime[k] - 1, prod = c->vprod[k];
        if (prod != HZ_TRANS && prod != HZ_PARTIAL && prod != HZ_DOT)
            return false;
        if (since < (prod == HZ_DOT ? 3 : 1))
            return false;
        c->flag[k] &= (uint8_t)~VF_PROD;
    }
    return true;
}

static inline uint32_t
quick_flags(const SimChk *c, const SimQuick *q)
{
    uint32_t f = 0;
    for (uint32_t i = 0; i < QUICK_FLAGS; i++)
        f |= c->flag[q->flag[i]];
    return f;
}

static inline bool
quick_before(SimChk *c, const SimQuick *q)
{
    uint32_t f = quick_flags(c, q);
    return LIKELY(!f) || (f == VF_PROD && quick_owed(c, q));
}

static inline bool
quick_before_rdna(const SimChk *c, const SimQuick *q)
{
    return LIKELY(!(quick_flags(c, q) & ~(uint32_t)RDNA_READS));
}

/* before: may an instruction go the short way? after: what the check of hazards notes of it then. */
#define RUN_CHECKED(before, after)                                                                           \
    uint64_t *counts = w->stats ? w->stats->pc_counts : NULL;                                                \
    SimChk *c = w->chk;                                                                                      \
    bool hazards = checking(w, SIM_CHECK_HAZARD);                                                            \
    SIM_RUN_LOOP({                                                                                           \
        const SimExt *x = r->ext;                                                                            \
        if (LIKELY(x && x->quick.n) && before) {                                                             \
            next = r->body(w, r);                                                                            \
            if (hazards)                                                                                     \
                after;                                                                                       \
        } else {                                                                                             \
            if (UNLIKELY(!sim_chk_before(w, r)))                                                             \
                break;                                                                                       \
            next = r->body(w, r);                                                                            \
            sim_chk_after(w, r);                                                                             \
        }                                                                                                    \
        left--;                                                                                              \
        if (counts)                                                                                          \
            counts[r->at]++;                                                                                 \
    })

/* gfx11, gfx12 */
static uint64_t
run_checked_rdna(SimWave *w, uint64_t budget)
{
    RUN_CHECKED(quick_before_rdna(c, &x->quick), sim_chk_rdna_quick(w, r));
}

uint64_t
sim_run_checked(SimWave *w, uint64_t budget)
{
    if (w->code->arch > ISA_GFX950)
        return run_checked_rdna(w, budget);
    RUN_CHECKED(quick_before(c, &x->quick), note_vector_writes(c, r, x, c->now++));
}
