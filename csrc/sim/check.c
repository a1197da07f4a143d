/* check.c - the checked variant: what each instruction reads and writes, results that are still on their way
 * (check "wait"), and the order of the other parts. Poison: check_poison.c; wait states: check_hazard.c; LDS
 * and memory: check_lds.c, check_mem.c.
 */
#include "isa/coherence.h"
#include "sim/check.h"
#include "sim/valu.h"

uint32_t
sim_checks_available(void)
{
    return (1u << SIM_CHECK_COUNT) - 1;
}

const char *
sim_row_name(uint32_t row, char buf[16])
{
    snprintf(buf, 16, "%c%u", row < ROW_AGPR ? 'v' : 'a', row & 255);
    return buf;
}
const char *
sim_sreg_name(uint32_t s, char buf[16])
{
    switch (s) {
    case S_VCC:
    case S_VCC + 1:
        snprintf(buf, 16, "vcc");
        break;
    case S_EXEC:
    case S_EXEC + 1:
        snprintf(buf, 16, "exec");
        break;
    case S_M0:
        snprintf(buf, 16, "m0");
        break;
    default:
        snprintf(buf, 16, "s%u", s);
    }
    return buf;
}

/* ---- decode time
 * ----------------------------------------------------------------------------------------------------- */

static void
add_range(SimRange *list, uint8_t *n, uint32_t cap, uint32_t start, uint32_t count, uint32_t cls,
          uint8_t half)
{
    if (*n < cap && count)
        list[(*n)++] = (SimRange){(uint16_t)start, (uint8_t)count, (uint8_t)cls, half};
}

static uint8_t
kind_of(const SimBuild *b)
{
    switch ((IsaEnc)b->in->enc) {
    case ISA_SOP1:
    case ISA_SOP2:
    case ISA_SOPK:
    case ISA_SOPC:
        return CK_SALU;
    case ISA_SOPP:
        return !strcmp(b->name, "s_nop")                                           ? CK_NOP
               : !strncmp(b->name, "s_cbranch", 9) || !strcmp(b->name, "s_branch") ? CK_BRANCH
                                                                                   : CK_OTHER;
    case ISA_SMEM:
        return CK_SMEM;
    case ISA_FLAT:
        return CK_FLAT;
    case ISA_GLOBAL:
    case ISA_SCRATCH:
    case ISA_MUBUF:
    case ISA_MTBUF:
        return CK_VMEM;
    case ISA_DS:
        return CK_DS;
    case ISA_VOP1:
    case ISA_VOP2:
    case ISA_VOPC:
    case ISA_VOP3:
    case ISA_VOP3P:
    case ISA_MAI:
    case ISA_DPP:
    case ISA_DPP8:
    case ISA_SDWA:
    case ISA_VOPD:
        return b->x->mfma && (!strncmp(b->name, "v_mfma", 6) || !strncmp(b->name, "v_smfmac", 8)) ? CK_MFMA
                                                                                                  : CK_VALU;
    case ISA_OTHER: /* one LDS value to all lanes */
        return CK_DS;
    case ISA_ENC_NONE:
        break;
    }
    return CK_OTHER;
}

static uint8_t
use_of(const SimBuild *b)
{
    const char *n = b->name;
    uint8_t u = 0;
    uint32_t cl = isa_op_info(b->in->op)->classes;
    if (b->x->kind == CK_VMEM || b->x->kind == CK_FLAT || b->x->kind == CK_DS) {
        bool st = strstr(n, "_store_") || !strncmp(n, "ds_write", 8);
        bool ld = (cl & ISA_C_LOAD) || strstr(n, "_load_") || !strncmp(n, "ds_read", 7);
        bool at = (cl & ISA_C_ATOMIC) || (b->x->kind == CK_DS && !st && !ld && !strstr(n, "permute") &&
                                          !strstr(n, "swizzle") && strcmp(n, "ds_nop"));
        u = (uint8_t)((st ? CU_STORE : 0) | (ld ? CU_LOAD : 0) | (at ? CU_ATOMIC : 0));
        if (b->in->lds || strstr(n, "_load_lds_"))
            u |= CU_DMA;
    }
    if (!strcmp(n, "s_setpc_b64") || !strcmp(n, "s_swappc_b64"))
        u |= CU_JUMP;
    if (!strncmp(n, "s_cbranch_scc", 13))
        u |= CU_SCC;
    if (!strncmp(n, "s_cbranch_vcc", 13))
        u |= CU_VCC;
    return u;
}

/* Which source of a memory instruction is the address: the first one, behind the data of buffer stores. */
static void
address_of(const SimBuild *b)
{
    const char *n = b->name;
    const IsaInst *in = b->in;
    bool buffer = in->enc == ISA_MUBUF || in->enc == ISA_MTBUF;
    b->x->addr_cls = buffer ? (in->ndst || in->lds ? 0 : 1) : 0;
    if (strstr(n, "swizzle") || strstr(n, "addtid"))
        b->x->addr_cls = 255;
    b->x->addr_lanes = strstr(n, "_load_tr_b") ? UINT32_MAX : ~UINT64_C(0); /* the lower 32 give addresses */
}

void
sim_chk_prepare(SimBuild *b)
{
    SimExt *x = b->x;
    const IsaInst *in = b->in;
    uint32_t pos = 0;
    x->kind = isa_wait_limits(b->code->arch, in, x->wait) ? CK_WAIT : kind_of(b);
    x->use = use_of(b);
    address_of(b);
    x->counters = (uint8_t)isa_counters_of(b->code->arch, in);
    IsaCoherence co = isa_coherence(b->code->arch, in);
    x->scope = co.scope;
    bool load = (x->use & (CU_LOAD | CU_ATOMIC)) == CU_LOAD || !strncmp(b->name, "s_load_", 7);
    x->maybe = co.maybe ? MAYBE_YES : load ? MAYBE_ASK : MAYBE_NO;
    x->polls = (x->use & (CU_LOAD | CU_ATOMIC)) && !(x->use & (CU_STORE | CU_DMA)) && in->ndst ? MAYBE_ASK
                                                                                               : MAYBE_NO;
    x->steers = x->polls;
    for (uint32_t i = 0; i < in->nopnds; i++) {
        const IsaOpnd *o = &in->opnd[i];
        bool dst = i < in->ndst, wr = o->flags & ISA_WRITE, rd = o->flags & ISA_READ;
        uint32_t cls = dst ? 7 : pos;
        uint8_t half = isa_opnd_halves(b->code->arch, in, i) % 3; /* 0: both */
        if (!dst && !(o->flags & ISA_IMPLICIT))
            pos++;
        if (x->relidx && o->kind == ISA_OPND_VGPR)
            continue; /* found when it runs */
        if (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR) {
            uint32_t row = o->reg + (o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0u);
            if (rd && !isa_opnd_keeps(b->code->arch, in, i))
                add_range(x->vread, &x->nvread, TL_COUNT(x->vread), row, o->nregs, cls, half);
            if (wr)
                add_range(x->vwrite, &x->nvwrite, TL_COUNT(x->vwrite), row, o->nregs, cls, half);
        } else if (o->kind == ISA_OPND_SGPR) {
            uint32_t s = sim_build_sreg(b, o);
            if (rd && s < S_NULL && !(o->flags & ISA_IMPLICIT && s == S_EXEC))
                add_range(x->sread, &x->nsread, TL_COUNT(x->sread), s, o->nregs, cls, 0);
            if (wr)
                add_range(x->swrite, &x->nswrite, TL_COUNT(x->swrite), s, o->nregs, cls, 0);
            if (wr && s == S_EXEC)
                x->writes_exec = 1;
            if (wr && s == S_M0)
                x->writes_m0 = 1;
        } else if (o->kind == ISA_OPND_SRC && o->reg == 253) {
            x->reads_scc |= rd;
            x->writes_scc |= wr;
        } else if (o->kind == ISA_OPND_SRC && o->reg == 251) {
            add_range(x->sread, &x->nsread, TL_COUNT(x->sread), S_VCC, b->code->wave64 ? 2 : 1, cls, 0);
        }
    }
    if (b->code->arch <= ISA_GFX950)
        sim_chk_hazard_prepare(b);
    else
        sim_chk_rdna_prepare(b);
    sim_chk_quick_prepare(b);
    x->ready = 1;
}

/* ---- start of a wave
 * -------------------------------------------------------------------------------------------------- */

void
sim_chk_reset(SimWave *w)
{
    SimChk *c = w->chk;
    memset(c, 0, offsetof(SimChk, log));
    c->nlog = 0;
    c->dma_out = 0;
    c->ncoherent = 0;
    for (uint32_t k = 0; k < TL_COUNT(c->coherent); k++)
        c->coherent[k].nseen = 0;
    c->look = c->group_open = c->device_open = c->loads_open = false;
    c->handed = 0;
    memset(c->later, 0, sizeof c->later);
    c->effects = c->nflag_at = 0;
    memset(c->poll, 0, sizeof c->poll);
    c->now = 1000;
    c->ignore = w->g->ignore;
    if (!checking(w, SIM_CHECK_INIT))
        return;
    for (uint32_t r = 0; r < ROWS; r++)
        set_vp(c, r, r ? w->lane_mask : 0);
    for (uint32_t s = 0; s < SREGS; s++)
        set_sp(c, s, s >= 108 && s < 124 ? 0 : ~0u); /* trap registers count as set */
    set_sp(c, S_EXEC, 0);
    set_sp(c, S_EXEC + 1, 0);
    c->scc_p = true;
    sim_chk_origin_start(c);
}

void
sim_chk_given(SimWave *w, const SimWaveState *state)
{
    SimChk *c = w->chk;
    if (!checking(w, SIM_CHECK_INIT))
        return;
    for (uint32_t s = 0; s < 128; s++)
        if (state->s_given[s / 64] >> (s % 64) & 1)
            set_sp(c, s, 0);
    for (uint32_t r = 0; r < TL_MIN((uint32_t)ROWS, (uint32_t)TL_COUNT(state->v_given)); r++)
        set_vp(c, r, w->lane_mask & ~state->v_given[r]);
    c->scc_p = !state->scc_given;
    memset(w->g->lds_init, 0xff, w->g->lds_bytes);
    w->g->lds_all_init = true;
}

/* ---- counters
 * -----------------------------------------------------------------------------------------------------------
 */

void
sim_chk_wait(SimWave *w, const uint16_t limit[ISA_CNT_COUNT])
{
    SimChkNumbers *n = &w->chk->n;
    for (uint32_t k = 0; k < ISA_CNT_COUNT; k++) {
        uint32_t most = limit[k];
        /* an unordered counter tells something only when it is empty; of two kinds that are counted together
         * at most that many of each are left */
        if (most == 0 || (isa_counter_in_order((IsaCounter)k) && n->issued[k] - n->done[k] > most))
            n->done[k] = n->issued[k] - most;
    }
}

void
sim_chk_numbers_merge(SimChkNumbers *now, const SimChkNumbers *before, const SimChkNumbers *after)
{
    if (after->dirty_seq != before->dirty_seq)
        now->dirty_seq = after->dirty_seq;
    if (after->wb_seq != before->wb_seq)
        now->wb_seq = after->wb_seq;
}

/* A result that comes with two counters (flat) is there when both say so. */
static bool
result_pending(const SimChk *c, uint32_t bits, uint32_t seq, uint32_t seq2)
{
    if (!bits)
        return false;
    uint32_t first = (uint32_t)__builtin_ctz(bits);
    return !cnt_done(&c->n, first, seq) || ((bits & (bits - 1)) && !cnt_done(&c->n, ISA_CNT_DS, seq2));
}

/* Is the part of a row that is read or written (halves: 0 for both) still to come? *cnt, *pc: with which
 * counters, by what. A pending part that was asked for and is there is forgotten. */
static bool
row_pending(SimChk *c, uint32_t row, uint32_t halves, uint32_t *cnt, uint32_t *pc)
{
    uint32_t low = c->vhalf[row] & (halves == 2 ? PH_WHOLE : PH_LOW | PH_WHOLE);
    if (low) {
        *cnt = c->vcnt[row];
        *pc = c->vpc[row];
        if (result_pending(c, *cnt, c->vseq[row], c->vseq2[row]))
            return true;
        c->vhalf[row] &= (uint8_t)~low;
    }
    if (halves != 1 && (c->vhalf[row] & PH_HIGH)) {
        const struct SimPendHigh *h = &c->high[row];
        *cnt = h->cnt;
        *pc = h->pc;
        if (result_pending(c, h->cnt, h->seq, h->seq2))
            return true;
        c->vhalf[row] &= (uint8_t)~PH_HIGH;
    }
    return false;
}

/* "vmcnt", "loadcnt and dscnt" */
static const char *
counter_names(IsaArch arch, uint32_t bits, char buf[32])
{
    const char *a = isa_counter_name(arch, (IsaCounter)__builtin_ctz(bits));
    if (!(bits & (bits - 1)))
        return a;
    snprintf(buf, 32, "%s and %s", a, isa_counter_name(arch, ISA_CNT_DS));
    return buf;
}

/* Reads (or overwrites) rows [start, start + n): reports those whose load is not waited for. */
static bool
check_rows(SimWave *w, const SimRec *r, const SimRange *g, bool write, uint32_t own)
{
    SimChk *c = w->chk;
    for (uint32_t row = g->start; row < g->start + g->n; row++) {
        if (!(c->vflag[row] & VF_PEND))
            continue;
        uint32_t cnt, pc;
        if (row_pending(c, row, g->half, &cnt, &pc)) {
            if (write && own == cnt && !(own & (own - 1)))
                continue; /* results of one in-order counter arrive in order */
            char name[16], names[32];
            c->vflag[row] &= (uint8_t)~VF_PEND;
            c->vhalf[row] = 0;
            if (!sim_fault(w, r, SIM_CHECK_WAIT, false, 0, 0, UINT32_MAX, w->code->base + (uint64_t)pc * 4,
                           "%s %s while the load into it is not complete (no wait on %s covers it)",
                           sim_row_name(row, name), write ? "is overwritten" : "is read",
                           counter_names(w->code->arch, cnt, names)))
                return false;
        }
        if (!c->vhalf[row])
            c->vflag[row] &= (uint8_t)~VF_PEND;
    }
    return true;
}

static bool
check_scalars(SimWave *w, const SimRec *r, const SimRange *g, bool write)
{
    SimChk *c = w->chk;
    for (uint32_t s = g->start; s < g->start + g->n; s++) {
        if (!(c->sflag[s] & VF_PEND))
            continue;
        c->sflag[s] &= (uint8_t)~VF_PEND;
        if (cnt_done(&c->n, ISA_CNT_KM, c->sseq[s]))
            continue;
        char name[16];
        if (!sim_fault(w, r, SIM_CHECK_WAIT, false, 0, 0, UINT32_MAX, w->code->base + (uint64_t)c->spc[s] * 4,
                       "%s %s while the scalar load into it is not complete (only %s(0) covers it)",
                       sim_sreg_name(s, name), write ? "is overwritten" : "is read",
                       isa_counter_name(w->code->arch, ISA_CNT_KM)))
            return false;
    }
    return true;
}

/* A counter holds so many (63 vector operations, 15 of LDS on gfx9): at its most the hardware stalls the
 * issue of one more until the oldest is back, so what would have that many younger ones behind it is complete
 * without a wait. */
static void
make_room(SimChk *c, IsaArch arch, uint32_t counters)
{
    for (uint32_t m = counters & ~(uint32_t)CB_KM; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m), most = isa_counter_most(arch, (IsaCounter)k) - 1;
        if (c->n.issued[k] - c->n.done[k] > most)
            c->n.done[k] = c->n.issued[k] - most;
    }
}

/* New results on their way; after the body ran. */
static void
mark_pending(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    uint32_t bits = x->counters, pc = r->at;
    if (!bits)
        return;
    for (uint32_t m = bits; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m);
        c->n.issued[k]++;
        if (x->use && k != ISA_CNT_DS && x->in.enc != ISA_SCRATCH && !c->aside)
            c->n.access[k] = c->n.issued[k];
        if (k == ISA_CNT_VM && (x->use & (CU_LOAD | CU_STORE)) == CU_LOAD)
            c->n.loads = c->n.issued[k];
    }
    c->aside = false;
    if (bits == CB_KM) {
        if (x->writes_scc)
            c->scc_seq = c->n.issued[ISA_CNT_KM];
        for (uint32_t i = 0; i < x->nswrite; i++)
            for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n; s++) {
                c->sflag[s] |= VF_PEND;
                c->sseq[s] = c->n.issued[ISA_CNT_KM];
                c->spc[s] = pc;
            }
        return;
    }
    if (x->kind == CK_FLAT && !c->flat_lds)
        bits &= ~(uint32_t)CB_DS; /* no lane went to LDS: the data comes with the vector counter */
    uint32_t first = (uint32_t)__builtin_ctz(bits);
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n; row++) {
            uint8_t old = c->vflag[row] & VF_PEND ? c->vhalf[row] : 0, half = x->vwrite[i].half;
            c->vflag[row] |= VF_PEND;
            if (half == 2) {
                c->vhalf[row] = PH_HIGH | (old & PH_WHOLE ? PH_LOW : old & PH_LOW);
                c->high[row] =
                    (struct SimPendHigh){c->n.issued[first], c->n.issued[ISA_CNT_DS], pc, (uint8_t)bits};
                continue;
            }
            if (half == 1 && (old & PH_WHOLE))
                c->high[row] = (struct SimPendHigh){c->vseq[row], c->vseq2[row], c->vpc[row], c->vcnt[row]};
            c->vhalf[row] = half ? PH_LOW | (old & PH_WHOLE ? PH_HIGH : old & PH_HIGH) : PH_WHOLE;
            c->vcnt[row] = (uint8_t)bits;
            c->vseq[row] = c->n.issued[first];
            c->vseq2[row] = c->n.issued[ISA_CNT_DS];
            c->vpc[row] = pc;
        }
}

/* ---- around every instruction
 * --------------------------------------------------------------------------------------------- */

static inline uint32_t
flags_of(const uint8_t *f, const SimRange *g, uint32_t n)
{
    uint64_t all = 0, v;
    for (uint32_t i = 0; i < n; i++) { /* both arrays have room behind them */
        const uint8_t *p = f + g[i].start;
        uint32_t k = g[i].n;
        if (LIKELY(k == 1)) { /* a wide load behind a store of one byte would wait for it */
            all |= *p;
            continue;
        }
        for (; k > 8; k -= 8, p += 8) {
            memcpy(&v, p, 8);
            all |= v;
        }
        memcpy(&v, p, 8);
        all |= v << (64 - 8 * k);
    }
    all |= all >> 32;
    all |= all >> 16;
    return (uint32_t)(all | all >> 8) & 255;
}

static bool
check_wait(SimWave *w, const SimRec *r, const SimExt *x)
{
    uint32_t own = x->counters;
    bool ok = true;
    /* a load of half a register keeps the other half when it arrives, or clears it: it reads nothing before
     */
    bool merges = (x->use & CU_LOAD) && !(x->use & CU_ATOMIC);
    for (uint32_t i = 0; ok && i < x->nvread; i++)
        ok = check_rows(w, r, &x->vread[i], merges && x->vread[i].cls == 7, own);
    for (uint32_t i = 0; ok && i < x->nvwrite; i++)
        ok = check_rows(w, r, &x->vwrite[i], true, own);
    for (uint32_t i = 0; ok && i < x->nsread; i++)
        ok = check_scalars(w, r, &x->sread[i], false);
    for (uint32_t i = 0; ok && i < x->nswrite; i++)
        ok = check_scalars(w, r, &x->swrite[i], true);
    return ok;
}

/* gfx12: scc of s_barrier_signal_isfirst comes with a counter. */
static bool
check_scc(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    if (!x->reads_scc && !(x->use & CU_SCC) && !x->writes_scc)
        return true;
    bool late = !cnt_done(&c->n, ISA_CNT_KM, c->scc_seq);
    c->scc_seq = 0;
    return !late || sim_fault(w, r, SIM_CHECK_WAIT, false, 0, 0, UINT32_MAX, 0,
                              "scc %s before it has come (only %s(0) covers it)",
                              x->writes_scc && !x->reads_scc ? "is overwritten" : "is read",
                              isa_counter_name(w->code->arch, ISA_CNT_KM));
}

/* GPR indexing moves operands: only the registers really written are followed, as defined and complete. */
static bool
indexed(SimWave *w, const SimRec *r)
{
    uint32_t idx = w->s[S_M0] & 255, dst = r->dst;
    if (w->s[S_M0] >> 15 & 1)
        dst = (dst & ROW_AGPR) | ((dst + idx) & 255);
    uint32_t rows =
        r->ndst ? r->ndst : r->ext->nvwrite != 0; /* v_writelane_b32 has a row that is no result */
    for (uint32_t k = 0; k < rows; k++) {
        set_vp(w->chk, dst + k, 0);
        w->chk->vflag[dst + k] &= (uint8_t)~VF_PEND;
    }
    for (uint32_t i = 0; i < r->ext->nswrite; i++)
        for (uint32_t k = 0; k < r->ext->swrite[i].n; k++)
            set_sp(w->chk, r->ext->swrite[i].start + k, 0);
    return true;
}

/* A move or swap relative to M0: the registers that it touches this time. */
static bool
relative(SimWave *w, const SimRec *r, const SimExt *x)
{
    uint32_t src, dst;
    if (!sim_rel_rows(w, r, &src, &dst))
        return true;
    SimRange a = {(uint16_t)src, 1, 0, 0}, d = {(uint16_t)dst, 1, 7, 0};
    if (checking(w, SIM_CHECK_WAIT)) {
        if (r->src[0].kind == SRC_V && !check_rows(w, r, &a, false, 0))
            return false;
        if (!check_rows(w, r, &d, true, 0))
            return false;
        for (uint32_t i = 0; i < x->nsread; i++)
            if (!check_scalars(w, r, &x->sread[i], false))
                return false;
    }
    return sim_chk_poison(w, r);
}

bool
sim_chk_before(SimWave *w, const SimRec *r)
{
    const SimExt *x = r->ext;
    SimChk *c = w->chk;
    if (!x || !x->ready)
        return true;
    if (x->kind == CK_WAIT) {
        sim_chk_wait(w, x->wait);
        return true;
    }
    if (UNLIKELY(w->mode_cls & MODE_IDX) && x->kind == CK_VALU)
        return indexed(w, r);
    if (UNLIKELY(x->relidx))
        return relative(w, r, x);
    if (x->counters)
        make_room(c, w->code->arch, x->counters);
    uint32_t fr = flags_of(c->vflag, x->vread, x->nvread) | flags_of(c->sflag, x->sread, x->nsread);
    uint32_t fw = flags_of(c->vflag, x->vwrite, x->nvwrite) | flags_of(c->sflag, x->swrite, x->nswrite);
    if (UNLIKELY((fr | fw) & VF_PEND) && checking(w, SIM_CHECK_WAIT) && !check_wait(w, r, x))
        return false;
    if (UNLIKELY(c->scc_seq) && checking(w, SIM_CHECK_WAIT) && !check_scc(w, r, x))
        return false;
    bool owed = !x->haz_plain || ((fr | fw) & (VF_PROD | VF_CREAD | VF_SDATA));
    if (owed && checking(w, SIM_CHECK_HAZARD) &&
        !(x->rows ? sim_chk_rdna(w, r, fr) : sim_chk_hazard(w, r, fw)))
        return false;
    if (UNLIKELY(c->nhit) && checking(w, SIM_CHECK_INIT)) {
        c->org_off = true;
        sim_chk_hits(w);
    }
    if (UNLIKELY(((fr | fw) & VF_POISON) || c->scc_p || c->nhit) && !sim_chk_poison(w, r))
        return false;
    return true;
}

void
sim_chk_after(SimWave *w, const SimRec *r)
{
    const SimExt *x = r->ext;
    SimChk *c = w->chk;
    if (!x || !x->ready)
        return;
    mark_pending(w, r, x);
    if (UNLIKELY(c->org_new))
        sim_chk_origin_load(w, r);
    if (UNLIKELY(c->look))
        sim_chk_seen(w);
    if (UNLIKELY(c->nhit))
        sim_chk_hits_after(w, r);
    if (checking(w, SIM_CHECK_HAZARD)) {
        if (x->rows)
            sim_chk_rdna_after(w, r);
        else
            sim_chk_hazard_after(w, r);
    }
}
