/* check_mem.c - global memory and scratch in the checked variant: undefined bytes, undefined data to global
 * memory, races through the launch's shadow, flat accesses to LDS.
 */
#include "sim/check.h"
#include "sim/vmem.h"

/* Undefined byte mask (bit i = byte i) of one lane. */
static uint32_t
lane_undef(SimWave *w, const VmLanes *v, uint32_t l, uint32_t n)
{
    uint64_t bit = UINT64_C(1) << l;
    if (v->priv & bit) {
        uint64_t stride = w->g->scratch_wave / LANES;
        const uint8_t *p = w->scratch_init ? w->scratch_init + stride * l + v->la[l] : NULL;
        uint32_t m = 0;
        for (uint32_t k = 0; p && k < n; k++)
            m |= (uint32_t)!p[k] << k;
        return m;
    }
    if (v->lds & bit) {
        const uint8_t *p = w->g->lds_init ? w->g->lds_init + v->la[l] : NULL;
        uint32_t m = 0;
        for (uint32_t k = 0; p && k < n; k++)
            m |= (uint32_t)!p[k] << k;
        return m;
    }
    const SimExtent *x = v->one ? v->one : sim_mem_find(w->port, v->va[l], n);
    return x ? sim_undef_mask(x, v->va[l], n) : 0;
}

static void
set_defined(SimWave *w, const VmLanes *v, uint32_t l, uint32_t n, const uint64_t *poison)
{
    uint64_t bit = UINT64_C(1) << l;
    uint8_t *p = NULL;
    if (v->priv & bit)
        p = w->scratch_init ? w->scratch_init + w->g->scratch_wave / LANES * l + v->la[l] : NULL;
    else if (v->lds & bit)
        p = w->g->lds_init ? w->g->lds_init + v->la[l] : NULL;
    else {
        const SimExtent *x = v->one ? v->one : sim_mem_find(w->port, v->va[l], n);
        if (x && x->init)
            sim_mark_defined(x, v->va[l], n);
        return;
    }
    for (uint32_t k = 0; p && k < n; k++)
        p[k] = !((poison[k / 4] >> l) & 1);
}

static bool
flat_lds(SimWave *w, const SimRec *r, const VmLanes *v, uint32_t n, bool write, bool atomic)
{
    uint64_t m = v->lds & v->ok;
    if (!m)
        return true;
    return atomic ? sim_chk_lds_atomic(w, r, v->la, m, n) : sim_chk_lds(w, r, v->la, m, n, write);
}

/* Loads and stores with a scope beyond the wave are how atomic loads and stores are written. */
static bool
coherent(const SimRec *r)
{
    return r->ext->in.sc0 || r->ext->in.sc1 || r->ext->in.glc;
}

/* Addresses of a coherent load or atomic: an invalidation after its wait makes it an acquire. */
static void
note_coherent(SimWave *w, const VmLanes *v, uint64_t lanes)
{
    SimChk *c = w->chk;
    struct SimCoherent *q = &c->coherent[c->ncoherent++ % TL_COUNT(c->coherent)];
    q->seq = c->vm_issued + 1;
    q->n = 0;
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint64_t a = v->va[__builtin_ctzll(m)];
        if (!q->n || q->addr[q->n - 1] != a)
            q->addr[q->n++] = a;
    }
}

/* A store or atomic that others may wait for: a release when all earlier stores are complete (waited for)
 * and, where they went to the L2 of this die only, written back. */
static void
try_release(SimWave *w, const VmLanes *v, uint64_t lanes)
{
    SimChk *c = w->chk;
    if ((int32_t)(c->access_seq - c->vm_done) > 0)
        return;
    if (c->dirty_seq && ((int32_t)(c->dirty_seq - c->wb_seq) > 0 || (int32_t)(c->wb_seq - c->vm_done) > 0))
        return;
    uint64_t last = 0;
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint64_t a = v->va[__builtin_ctzll(m)];
        if (a != last)
            sim_race_release(w->g->info->race, &w->race, a);
        last = a;
    }
}

static bool
global_race(SimWave *w, const SimRec *r, const VmLanes *v, uint32_t n, SimAccess kind)
{
    uint64_t m = v->ok & ~v->lds & ~v->priv;
    if (!m || !checking(w, SIM_CHECK_RACE) || !w->g->info->race)
        return true;
    sim_global_race(w, r, v->va, m, n, kind);
    bool device = r->ext->in.sc1 || (r->ext->use & CU_ATOMIC); /* seen beyond the workgroup */
    if (kind == SIM_ACC_ATOMIC && device)
        try_release(w, v, m);
    if ((kind == SIM_ACC_ATOMIC_READ && device) || (r->ext->use & CU_ATOMIC))
        note_coherent(w, v, m);
    if ((r->ext->use & CU_STORE) && !r->ext->in.sc1)
        w->chk->dirty_seq = w->chk->vm_issued + 1;
    return w->stop == ST_RUN;
}

/* buffer_inv, buffer_wbl2: the halves of acquire and release that caches do. */
void
sim_vm_check_cache(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    bool inv = strstr(isa_op_info(r->ext->in.op)->name, "inv") != NULL;
    if (!r->ext->in.sc1 || !checking(w, SIM_CHECK_RACE) || !w->g->info->race)
        return;
    if (!inv) { /* with nothing left to write back it does nothing */
        if (c->dirty_seq && (int32_t)(c->dirty_seq - c->wb_seq) > 0)
            c->wb_seq = c->vm_issued + 1;
        return;
    }
    uint32_t n = TL_MIN(c->ncoherent, (uint32_t)TL_COUNT(c->coherent)), left = 0;
    for (uint32_t k = 0; k < n; k++) {
        struct SimCoherent *q = &c->coherent[k];
        if ((int32_t)(q->seq - c->vm_done) > 0) {
            left++;
            continue;
        }
        for (uint32_t i = 0; i < q->n; i++)
            sim_race_acquire(w->g->info->race, &w->race, q->addr[i]);
        q->n = 0;
    }
    if (!left)
        c->ncoherent = 0;
}

bool
sim_vm_check_load(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes;
    memset(v->undef, 0, sizeof v->undef);
    if (!flat_lds(w, r, v, n, false, false) ||
        !global_race(w, r, v, n, coherent(r) ? SIM_ACC_ATOMIC_READ : SIM_ACC_READ))
        return false;
    if (!checking(w, SIM_CHECK_INIT) || (v->one && !v->one->init && !v->lds && !v->priv))
        return true;
    for (uint64_t m = v->ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), have = v->partial ? v->room[l] : n;
        uint32_t u = lane_undef(w, v, l, have);
        for (uint32_t d = 0; u; d++, u >>= 4)
            v->undef[d] |= (uint64_t)((u & 15) != 0) << l;
    }
    return true;
}

static bool
undefined_data(SimWave *w, const SimRec *r, const VmOp *op, const VmLanes *v, uint32_t rows)
{
    SimChk *c = w->chk;
    uint64_t glob = v->ok & ~v->lds & ~v->priv;
    for (uint32_t k = 0; k < rows; k++) {
        uint32_t row = r->src[1].idx + k;
        uint64_t p = c->vp[row] & glob;
        char name[16];
        if (v->partial)
            for (uint64_t m = p; m; m &= m - 1) {
                uint32_t l = (uint32_t)__builtin_ctzll(m);
                if (v->room[l] < TL_MIN(4 * k + 4, (uint32_t)op->acc.bytes))
                    p &= ~(UINT64_C(1) << l);
            }
        if (!p)
            continue;
        c->vp[row] &= ~p;
        if (!sim_fault(w, r, SIM_CHECK_INIT, false, p, v->va[__builtin_ctzll(p)], UINT32_MAX, 0,
                       "undefined value of %s is stored to global memory", sim_row_name(row, name)))
            return false;
    }
    return true;
}

bool
sim_vm_check_store(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes, nd = op->acc.dwords;
    if (!flat_lds(w, r, v, n, true, false) ||
        !global_race(w, r, v, n, coherent(r) ? SIM_ACC_ATOMIC : SIM_ACC_WRITE))
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
            set_defined(w, v, l, have, w->chk->vp + r->src[1].idx);
    }
    return true;
}

bool
sim_vm_check_atomic(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t n = op->acc.bytes;
    memset(v->undef, 0, sizeof v->undef);
    if (!flat_lds(w, r, v, n, true, true) || !global_race(w, r, v, n, SIM_ACC_ATOMIC))
        return false;
    if (!checking(w, SIM_CHECK_INIT))
        return true;
    if (!undefined_data(w, r, op, v, op->acc.dwords * (op->acc.atom == AT_CMPSWAP ? 2u : 1u)))
        return false;
    for (uint64_t m = v->ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint32_t u = lane_undef(w, v, l, n);
        for (uint32_t d = 0; u; d++, u >>= 4)
            v->undef[d] |= (uint64_t)((u & 15) != 0) << l;
        if (op->acc.atom == AT_SWAP)
            set_defined(w, v, l, n, w->chk->vp + r->src[1].idx);
    }
    return true;
}
