/* check_hazard.c - missing wait states (check "hazard"): the rows of gfx90a, gfx942 and gfx950. One executed
 * instruction is one wait state, s_nop N is N + 1. Producers leave a time and a class at the registers they
 * write; a consumer asks how many states lie between.
 */
#include "sim/check.h"

/* Passes of a matrix instruction. */
static uint32_t
passes_of(IsaArch arch, const SimMma *m)
{
    if (m->type == MT_F64)
        return m->n == 4 ? 4 : arch == ISA_GFX950 ? 16 : 8;
    if (m->sparse)
        return m->m == 32 ? 8 : 4;
    if (m->blocks > 1)
        return m->m == 32 ? 16 : m->m == 16 ? 8 : 2;
    if (m->type == MT_F32 || arch == ISA_GFX90A)
        return m->m == 32 ? 16 : 8;
    uint32_t p = m->m == 32 ? 8 : 4;
    if (m->type == MT_F8F6F4 && (m->fa <= FMT_BF8 || m->fb <= FMT_BF8))
        p *= 2;
    return p;
}

static bool
partial_write(const SimBuild *b)
{
    const IsaInst *in = b->in;
    if (in->form == ISA_SDWA && in->enc != ISA_VOPC)
        return in->dst_sel != 6;
    if (in->enc == ISA_VOP3 || in->form == ISA_VOP3)
        return (in->op_sel & 8) || !strncmp(b->name, "v_cvt_sr_fp8", 12) ||
               !strncmp(b->name, "v_cvt_sr_bf8", 12);
    return false;
}

void
sim_chk_hazard_prepare(SimBuild *b)
{
    SimExt *x = b->x;
    const char *n = b->name;
    x->haz = HZ_NONE;
    switch (x->kind) {
    case CK_MFMA: {
        const SimMma *m = x->mfma;
        x->passes = (uint8_t)passes_of(b->code->arch, m);
        x->haz = m->type == MT_F64   ? (m->n == 4 ? HZ_DGEMM4 : HZ_DGEMM16)
                 : m->type == MT_F32 ? HZ_SGEMM
                                     : HZ_XDL;
        break;
    }
    case CK_VALU:
        x->haz = HZ_VALU;
        if (isa_op_info(b->in->op)->classes & ISA_C_TRANS)
            x->haz = HZ_TRANS;
        else if (x->desc && (x->desc->flags & OPF_DOT))
            x->haz = HZ_DOT;
        else if (partial_write(b))
            x->haz = HZ_PARTIAL;
        x->is_dpp = b->in->form == ISA_DPP || b->in->form == ISA_DPP8;
        break;
    case CK_VMEM:
    case CK_FLAT:
        x->haz = HZ_VMEM;
        /* data wider than 64 bits: 2 states, 1 for a buffer store with a scalar register offset */
        if ((x->use & CU_STORE) ? x->mem_bytes > 8 : isa_wide_atomic(b->in))
            x->wide_store =
                b->code->arch == ISA_GFX90A || (b->in->enc == ISA_MUBUF && b->r->src[2].kind == SRC_S) ? 1
                                                                                                       : 2;
        break;
    case CK_DS:
        x->haz = HZ_DS;
        break;
    case CK_SALU:
    case CK_SMEM:
        x->haz = HZ_SALU;
        break;
    default:
        break;
    }
    x->needs_m0 = (x->use & CU_DMA) || isa_needs_m0(b->in);
    x->rw_lane = !strcmp(n, "v_readlane_b32") || !strcmp(n, "v_readfirstlane_b32") ? 1
                 : !strcmp(n, "v_writelane_b32")                                   ? 2
                                                                                   : 0;
    x->permswap = !strncmp(n, "v_permlane", 10);
    x->div_fmas = !strncmp(n, "v_div_fmas", 10);
    x->hwreg = !strncmp(n, "s_getreg", 8) ? 1 : !strncmp(n, "s_setreg", 8) ? 2 : 0;
    bool plain = x->kind != CK_MFMA && !x->needs_m0 && x->hwreg != 1;
    if (x->kind == CK_VALU)
        plain = plain && !x->is_dpp && !x->permswap && !x->rw_lane && !x->lanesel && !x->div_fmas;
    x->haz_plain = plain && b->code->arch <= ISA_GFX950;
}

/* ---- consumers
 * ------------------------------------------------------------------------------------------------------ */

void
sim_chk_hit(SimChk *c, uint32_t reg, HitHow how)
{
    for (uint32_t i = 0; i < c->nhit; i++)
        if (c->hit[i].reg == reg) { /* the later kinds count for more */
            c->hit[i].how = (uint8_t)TL_MAX(c->hit[i].how, (uint8_t)how);
            return;
        }
    if (c->nhit < TL_COUNT(c->hit))
        c->hit[c->nhit++] = (struct SimHit){(uint16_t)reg, (uint8_t)how, 0};
}

static bool
short_by(SimWave *w, const SimRec *r, const char *reg, uint32_t have, const SimNeed *need, uint32_t pc)
{
    w->chk->rule = need->rule;
    return sim_fault(w, r, SIM_CHECK_HAZARD, false, 0, 0, UINT32_MAX, w->code->base + (uint64_t)pc * 4,
                     "%s: %s, %u wait states needed, %u given", reg, isa_hazard_what(need->rule),
                     need->states, have);
}

static uint32_t
states_since(const SimChk *c, uint32_t t)
{
    return c->now - t - 1;
}

static bool
is_matrix(uint32_t prod)
{
    return prod == HZ_XDL || prod == HZ_SGEMM || prod == HZ_DGEMM4 || prod == HZ_DGEMM16;
}

/* Wait states that a consumer of class `use` needs after a matrix instruction wrote (prod, p passes). */
enum { USE_VALU, USE_MEM, USE_AB, USE_C_SAME, USE_C_OVERLAP, USE_WAW };
static uint32_t
mfma_need(IsaArch arch, uint32_t prod, uint32_t p, uint32_t use)
{
    bool gfx90a = arch == ISA_GFX90A, gfx950 = arch == ISA_GFX950;
    switch (prod) {
    case HZ_XDL:
        if (use == USE_C_SAME)
            return p == 2 && !gfx90a ? 2 : 0;
        if (use == USE_C_OVERLAP)
            return p + (gfx90a ? 0 : gfx950 ? 2 : 1);
        return p + (gfx950 && p != 2 ? 4 : 3);
    case HZ_SGEMM:
        if (use == USE_C_SAME)
            return p == 2 && !gfx90a ? 2 : 0;
        return use == USE_C_OVERLAP ? p : p + (gfx90a ? 3 : 2);
    case HZ_DGEMM4:
        return use == USE_MEM ? 9 : use == USE_C_SAME ? 4 : 6;
    case HZ_DGEMM16:
        if (use == USE_C_SAME)
            return 0;
        if (use == USE_MEM)
            return 18;
        if (use == USE_C_OVERLAP)
            return gfx950 ? 17 : 9;
        return gfx950 && use != USE_WAW ? 19 : 11;
    default:
        return 0;
    }
}

/* The same for C of another tuple, by the consumer's kind. XDL instructions wait by themselves for what is no
 * XDL. */
static uint32_t
c_need(IsaArch arch, uint32_t prod, uint32_t p, uint32_t by)
{
    bool gfx90a = arch == ISA_GFX90A, by_f64 = by == HZ_DGEMM4 || by == HZ_DGEMM16;
    bool f64 = prod == HZ_DGEMM4 || prod == HZ_DGEMM16;
    if (gfx90a ? f64 && !by_f64 : prod != HZ_XDL && by == HZ_XDL)
        return 0;
    if (prod == HZ_DGEMM4)
        return 4;
    if (gfx90a ? by_f64 && !f64 : prod == HZ_XDL && p == 2 && by != HZ_XDL)
        return p + 1;
    return mfma_need(arch, prod, p, USE_C_OVERLAP);
}

static IsaHazardRule
use_rule(uint32_t use)
{
    static const IsaHazardRule t[] = {ISA_HR_MFMA_VALU, ISA_HR_MFMA_MEM,     ISA_HR_MFMA_AB,
                                      ISA_HR_MFMA_C,    ISA_HR_MFMA_C_OTHER, ISA_HR_MFMA_OVER};
    return t[use];
}

/* What a read of a row needs behind a vector instruction that is no matrix one. */
static void
need_of_vector(const SimWave *w, const SimRec *r, const SimExt *x, uint32_t row, uint32_t cls, SimNeed *n)
{
    const SimChk *c = w->chk;
    uint32_t prod = c->vprod[row];
    bool later = w->code->arch != ISA_GFX90A, valu = x->kind == CK_VALU, mfma = x->kind == CK_MFMA;
    bool memory = x->haz == HZ_VMEM || x->haz == HZ_DS;
    if (prod == HZ_TRANS && later && valu && x->haz != HZ_TRANS)
        sim_need(c, n, 1, ISA_HR_TRANS);
    if (prod == HZ_PARTIAL && later && (valu || mfma))
        sim_need(c, n, 1, ISA_HR_PARTIAL);
    if (prod == HZ_DOT && (valu || memory) && !(x->haz == HZ_DOT && c->vop[row] == r->op && cls >= 2))
        sim_need(c, n, 3, ISA_HR_DOT);
    if (mfma)
        sim_need(c, n, 2, ISA_HR_VALU_MFMA);
    if (x->is_dpp && cls == 0)
        sim_need(c, n, 2, ISA_HR_VALU_DPP);
    if (x->permswap)
        sim_need(c, n, 2, ISA_HR_VALU_SWAP);
    if (later && x->rw_lane == 1)
        sim_need(c, n, 1, ISA_HR_VALU_LANE);
}

/* One row that is read. use: how. */
static bool
check_read(SimWave *w, const SimRec *r, const SimExt *x, uint32_t row, uint32_t use, uint32_t cls)
{
    SimChk *c = w->chk;
    IsaArch arch = w->code->arch;
    uint32_t since = states_since(c, c->vtime[row]), prod = c->vprod[row], p = c->vpass[row];
    SimNeed need = {0};
    if (since >= 24 || prod == HZ_NONE)
        return true;
    if (is_matrix(prod))
        sim_need(c, &need,
                 use == USE_C_OVERLAP ? c_need(arch, prod, p, x->haz) : mfma_need(arch, prod, p, use),
                 use_rule(use));
    else
        need_of_vector(w, r, x, row, cls, &need);
    if (since >= need.states)
        return true;
    char name[16];
    uint32_t pc = c->wpc[row];
    c->vprod[row] = HZ_NONE; /* once */
    sim_chk_hit(c, row, HIT_READ);
    return short_by(w, r, sim_row_name(row, name), since, &need, pc);
}

static bool
check_write(SimWave *w, const SimRec *r, const SimExt *x, uint32_t row)
{
    SimChk *c = w->chk;
    char name[16];
    uint32_t since = states_since(c, c->vtime[row]), prod = c->vprod[row];
    bool valu = x->kind == CK_VALU, load = x->haz == HZ_VMEM || x->haz == HZ_DS;
    SimNeed late = {0}, read = {0}, data = {0};
    if ((valu || load) && since < 24) {
        sim_need(c, &late, mfma_need(w->code->arch, prod, c->vpass[row], USE_WAW),
                 load ? ISA_HR_MFMA_LOAD : ISA_HR_MFMA_OVER);
        if (prod == HZ_DOT && c->vop[row] != r->op)
            sim_need(c, &late, 3, ISA_HR_DOT_OVER);
        if (since < late.states) {
            c->vprod[row] = HZ_NONE;
            sim_chk_hit(c, row, HIT_LOST);
            return short_by(w, r, sim_row_name(row, name), since, &late, c->wpc[row]);
        }
    }
    if ((valu || load) && (c->vflag[row] & VF_CREAD)) {
        since = states_since(c, c->ctime[row]);
        sim_need(c, &read, c->cpass[row], load ? ISA_HR_MFMA_C_LOAD : ISA_HR_MFMA_C_OVER);
        c->vflag[row] &= (uint8_t)~VF_CREAD;
        if (since < read.states)
            return short_by(w, r, sim_row_name(row, name), since, &read, c->cpc[row]);
    }
    if ((valu || x->kind == CK_MFMA) && (c->vflag[row] & VF_SDATA)) {
        since = states_since(c, c->sdtime[row]);
        sim_need(c, &data, c->sdneed[row], ISA_HR_STORE_DATA);
        c->vflag[row] &= (uint8_t)~VF_SDATA;
        if (since < data.states && (int32_t)(c->stores_done - c->sdtime[row]) <= 0)
            return short_by(w, r, sim_row_name(row, name), since, &data, c->cpc[row]);
    }
    return true;
}

/* How a vector operand is used. */
static uint32_t
use_of(const SimChk *c, const SimRec *r, const SimExt *x, const SimRange *g)
{
    if (x->kind != CK_MFMA)
        return x->kind == CK_VALU ? USE_VALU : USE_MEM;
    const SimMma *m = x->mfma;
    bool is_c = m->sparse ? g->cls == 7 : g->cls == 2;
    if (!is_c)
        return USE_AB;
    /* the tuple that the producer wrote must be this one */
    uint32_t row = m->sparse ? r->dst : g->start;
    return c->dstart[row] == row && c->dlen[row] == g->n ? USE_C_SAME : USE_C_OVERLAP;
}

static bool
check_scalars(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    char name[16];
    for (uint32_t i = 0; i < x->nsread; i++) {
        const SimRange *g = &x->sread[i];
        for (uint32_t s = g->start; s < g->start + (uint32_t)g->n; s++) {
            uint32_t since = states_since(c, c->stime[s]);
            SimNeed need = {0};
            if (since >= 5) {
                c->sflag[s] &= (uint8_t)~VF_PROD;
                continue;
            }
            if (x->haz == HZ_VMEM) {
                sim_need(c, &need, 5, ISA_HR_VALU_SGPR_MEM);
            } else if (x->kind == CK_VALU) {
                sim_need(c, &need, w->code->arch == ISA_GFX90A ? 0 : 2, ISA_HR_VALU_SGPR);
                if (x->lanesel && i + 1u == x->nsread)
                    sim_need(c, &need, 4, ISA_HR_VALU_SGPR_LANE);
                else if (x->div_fmas && s >= S_VCC && s <= S_VCC + 1)
                    sim_need(c, &need, 4, ISA_HR_VALU_VCC_FMAS);
            }
            if (since < need.states) {
                c->stime[s] = c->now - 100;
                sim_chk_hit(c, HIT_SCALAR + s, HIT_READ);
                return short_by(w, r, sim_sreg_name(s, name), since, &need, c->swpc[s]);
            }
        }
    }
    return true;
}

/* Reads of a range. What one instruction wrote at one time is checked by its first row. */
static bool
check_reads(SimWave *w, const SimRec *r, const SimExt *x, const SimRange *g)
{
    SimChk *c = w->chk;
    uint32_t use = use_of(c, r, x, g), d = 0;
    const uint32_t *t = c->vtime + g->start;
    for (uint32_t i = 0; i < g->n; i++)
        d |= t[i] ^ t[0];
    uint32_t n = d ? g->n : TL_MIN(g->n, 1u);
    if (!d && g->n && states_since(c, t[0]) >= 24) {
        for (uint32_t i = 0; i < g->n; i++)
            c->vflag[g->start + i] &= (uint8_t)~VF_PROD;
        return true;
    }
    for (uint32_t row = g->start; row < g->start + n; row++)
        if (states_since(c, c->vtime[row]) < 24 && !check_read(w, r, x, row, use, g->cls))
            return false;
    return true;
}

static bool
check_exec(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    bool lane = x->rw_lane && w->code->arch != ISA_GFX90A;
    uint32_t since = states_since(c, c->exec_valu_time);
    SimNeed need = {0};
    sim_need(c, &need, x->kind == CK_MFMA || lane ? 4 : x->is_dpp ? 5 : 0, ISA_HR_EXEC);
    if (since >= need.states)
        return true;
    sim_chk_hit(c, HIT_SCALAR + S_EXEC, HIT_RESULT);
    sim_chk_hit(c, HIT_SCALAR + S_EXEC + 1, HIT_RESULT);
    return short_by(w, r, "exec", since, &need, c->exec_pc);
}

/* M0 and the hardware registers */
static bool
check_specials(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    SimNeed m0 = {0}, setreg = {0};
    sim_need(c, &m0, x->needs_m0, ISA_HR_M0);
    if (states_since(c, c->m0_time) < m0.states) {
        sim_chk_hit(c, HIT_SCALAR + S_M0, HIT_READ);
        if (!short_by(w, r, "m0", 0, &m0, c->m0_pc))
            return false;
    }
    sim_need(c, &setreg, x->hwreg == 1 && c->last_setreg == ((uint32_t)r->imm & 63) ? 2 : 0, ISA_HR_SETREG);
    uint32_t since = states_since(c, c->setreg_time);
    return since >= setreg.states || short_by(w, r, "hardware register", since, &setreg, c->setreg_pc);
}

bool
sim_chk_hazard(SimWave *w, const SimRec *r, uint32_t written)
{
    const SimExt *x = r->ext;
    if (x->kind == CK_VALU || x->kind == CK_MFMA || x->haz == HZ_VMEM || x->haz == HZ_DS) {
        for (uint32_t i = 0; i < x->nvread; i++)
            if (!check_reads(w, r, x, &x->vread[i]))
                return false;
        bool writes = written & (x->kind == CK_MFMA ? VF_SDATA : VF_PROD | VF_CREAD | VF_SDATA);
        for (uint32_t i = 0; writes && i < x->nvwrite; i++)
            for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n;
                 row++)
                if (!check_write(w, r, x, row))
                    return false;
        if (x->nsread && !check_scalars(w, r, x))
            return false;
        if (!check_exec(w, r, x))
            return false;
    }
    return check_specials(w, r, x);
}

/* ---- what a missing wait state spoils
 * ------------------------------------------------------------------------------------- */

void
sim_chk_hits(SimWave *w)
{
    SimChk *c = w->chk;
    for (uint32_t i = 0; i < c->nhit; i++) {
        struct SimHit *h = &c->hit[i];
        uint32_t s = h->reg & ~(uint32_t)HIT_SCALAR;
        bool scalar = h->reg & HIT_SCALAR;
        h->poison = scalar ? c->sp[s] : c->vp[h->reg];
        if (h->how != HIT_READ)
            continue;
        if (scalar)
            set_sp(c, s, ~0u);
        else
            set_vp(c, h->reg, ~UINT64_C(0));
    }
}

static bool
in_list(const SimRange *g, uint32_t n, uint32_t reg)
{
    for (uint32_t i = 0; i < n; i++)
        if (reg - g[i].start < g[i].n)
            return true;
    return false;
}

static void
spoil_results(SimChk *c, const SimExt *x)
{
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t k = 0; k < x->vwrite[i].n; k++)
            set_vp(c, x->vwrite[i].start + k, ~UINT64_C(0));
    for (uint32_t i = 0; i < x->nswrite; i++)
        for (uint32_t k = 0; k < x->swrite[i].n; k++)
            if (x->swrite[i].start != S_EXEC)
                set_sp(c, x->swrite[i].start + k, ~0u);
}

void
sim_chk_hits_after(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    uint64_t exec = x->kind == CK_MFMA ? ~UINT64_C(0) : EXEC(w);
    uint32_t n = c->nhit;
    c->nhit = 0;
    if (!checking(w, SIM_CHECK_INIT))
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct SimHit *h = &c->hit[i];
        uint32_t s = h->reg & ~(uint32_t)HIT_SCALAR;
        switch ((HitHow)h->how) {
        case HIT_READ: /* the register itself comes right; a result in it keeps what it got */
            if (h->reg & HIT_SCALAR) {
                if (!in_list(x->swrite, x->nswrite, s))
                    set_sp(c, s, (uint32_t)h->poison);
            } else if (in_list(x->vwrite, x->nvwrite, h->reg)) {
                set_vp(c, h->reg, (c->vp[h->reg] & exec) | (h->poison & ~exec));
            } else {
                set_vp(c, h->reg, h->poison);
            }
            break;
        case HIT_LOST:
            set_vp(c, h->reg, c->vp[h->reg] | exec);
            break;
        case HIT_RESULT:
            spoil_results(c, x);
            break;
        }
    }
}

/* ---- producers
 * ---------------------------------------------------------------------------------------------------------
 */

static void
fill32(uint32_t *p, uint32_t n, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = v;
}
static void
fill16(uint16_t *p, uint32_t n, uint16_t v)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = v;
}

void
sim_chk_note_rows(SimChk *c, const SimRec *r, const SimExt *x, const SimRange *g, uint32_t now)
{
    uint32_t s = g->start, n = g->n;
    fill32(c->vtime + s, n, now);
    memset(c->vprod + s, x->haz, n);
    fill32(c->wpc + s, n, r->at);
    memset(c->vpass + s, x->passes, n);
    fill16(c->vop + s, n, r->op);
    fill16(c->dstart + s, n, g->start);
    fill16(c->dlen + s, n, g->n);
    for (uint32_t i = 0; i < n; i++)
        c->vflag[s + i] = (uint8_t)((c->vflag[s + i] & ~VF_PROD) | (x->haz == HZ_VALU ? 0 : VF_PROD));
}

void
sim_chk_hazard_after(SimWave *w, const SimRec *r)
{
    const SimExt *x = r->ext;
    SimChk *c = w->chk;
    uint32_t pc = r->at, now = c->now;
    if (x->kind == CK_VALU || x->kind == CK_MFMA) {
        note_vector_writes(c, r, x, now);
        if (x->writes_exec) {
            c->exec_valu_time = now;
            c->exec_pc = pc;
        }
        bool late_c = x->haz == HZ_XDL || (x->haz == HZ_SGEMM && w->code->arch == ISA_GFX90A);
        if (late_c && !((const SimMma *)x->mfma)->sparse) /* sparse: C is D, the index is read at once */
            for (uint32_t i = 0; i < x->nvread; i++)
                if (x->vread[i].cls == 2 || (x->vread[i].cls == 7)) {
                    uint32_t s = x->vread[i].start, n = x->vread[i].n;
                    for (uint32_t k = 0; k < n; k++)
                        c->vflag[s + k] |= VF_CREAD;
                    fill32(c->ctime + s, n, now);
                    memset(c->cpass + s, (uint8_t)(x->passes - 1), n);
                    fill32(c->cpc + s, n, pc);
                }
    } else {
        for (uint32_t i = 0; i < x->nvwrite; i++) /* a load: no state is owed to its reader */
            for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n;
                 row++) {
                c->vprod[row] = HZ_NONE;
                c->vflag[row] &= (uint8_t)~VF_PROD;
            }
        for (uint32_t i = 0; i < x->nswrite; i++)
            for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n; s++) {
                c->stime[s] = now - 100;
                c->sflag[s] &= (uint8_t)~VF_PROD;
            }
        if (x->writes_m0) {
            c->m0_time = now;
            c->m0_pc = pc;
        }
        if (x->hwreg == 2) {
            c->setreg_time = now;
            c->setreg_pc = pc;
            c->last_setreg = (uint32_t)r->imm & 63;
        }
        if (x->kind == CK_WAIT && x->wait[ISA_CNT_VM] == 0)
            c->stores_done = now;
        if (x->wide_store)
            for (uint32_t i = 0; i < x->nvread; i++)
                if (x->vread[i].n > 2)
                    for (uint32_t row = x->vread[i].start; row < x->vread[i].start + (uint32_t)x->vread[i].n;
                         row++) {
                        c->vflag[row] |= VF_SDATA;
                        c->sdtime[row] = now;
                        c->sdneed[row] = x->wide_store;
                        c->cpc[row] = pc;
                    }
    }
    c->now += x->kind == CK_NOP ? ((uint32_t)r->imm & 15) + 1 : 1;
}
