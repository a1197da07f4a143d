/* flow.c - jumps, program flow (SOPP), register indexing. */
#include "sim/core.h"

#define BODY(name) static const SimRec *f_##name(SimWave *w, const SimRec *r)
#define JUMP(r)    ((r) + (r)->imm)

BODY(nop)
{
    (void)w;
    return NEXT(r);
}
BODY(branch)
{
    (void)w;
    return JUMP(r);
}
BODY(scc0)
{
    return w->scc ? NEXT(r) : JUMP(r);
}
BODY(scc1)
{
    return w->scc ? JUMP(r) : NEXT(r);
}
BODY(vccz)
{
    return VCC(w) ? NEXT(r) : JUMP(r);
}
BODY(vccnz)
{
    return VCC(w) ? JUMP(r) : NEXT(r);
}
BODY(execz)
{
    return EXEC(w) ? NEXT(r) : JUMP(r);
}
BODY(execnz)
{
    return EXEC(w) ? JUMP(r) : NEXT(r);
}
BODY(endpgm)
{
    w->rec = r;
    w->stop = ST_END;
    return NULL;
}
BODY(barrier)
{
    if (w->g->nwaves == 1 || w->g->own_exec)
        return NEXT(r);
    if (w->chk)
        sim_chk_signal(w);
    w->rec = NEXT(r);
    w->stop = ST_BARRIER;
    return NULL;
}
BODY(sleep)
{
    w->rec = NEXT(r);
    w->stop = ST_SLEEP;
    return NULL;
}
BODY(sendmsg) /* of the messages only the interrupt (1) has a meaning here */
{
    const SimLaunchInfo *in = w->g->info;
    const char *why = (r->imm & 15) == 1 && in && in->message ? in->message(in->message_self) : NULL;
    if (why) {
        sim_fault(w, r, SIM_FAULT_ILLEGAL, true, EXEC(w), 0, UINT32_MAX, 0, "%s", why);
        return NULL;
    }
    return NEXT(r);
}
BODY(trap)
{
    uint32_t id = (uint32_t)r->imm & 255;
    if (id == 3) /* llvm.debugtrap: no debugger is there, the handler returns at once */
        return NEXT(r);
    sim_fault(w, r, SIM_FAULT_TRAP, true, EXEC(w), 0, UINT32_MAX, 0, "s_trap %u%s", id,
              id == 2 ? " (llvm.trap: assertion or unreachable code)" : "");
    return NULL;
}

const SimRec *
sim_jump(SimWave *w, const SimRec *r, uint64_t pc)
{
    uint64_t off = pc - w->code->base;
    if (off >= w->code->size || (pc & 3)) {
        sim_fault(w, r, SIM_FAULT_ILLEGAL, true, 0, pc, UINT32_MAX, 0, "jump to 0x%llx, outside the code",
                  (unsigned long long)pc);
        return NULL;
    }
    return w->recs + off / 4;
}
BODY(getpc)
{
    put64(w->s + r->dst, rec_pc(w, r) + 4);
    return NEXT(r);
}
BODY(setpc)
{
    return sim_jump(w, r, s64(w, r->src[0]));
}
BODY(swappc)
{
    uint64_t to = s64(w, r->src[0]);
    put64(w->s + r->dst, rec_pc(w, r) + 4);
    return sim_jump(w, r, to);
}
BODY(call)
{
    put64(w->s + r->dst, rec_pc(w, r) + 4);
    return JUMP(r);
}

/* GPR indexing: M0[7:0] is the index, M0[15:12] says which operands move (sources 0..2, destination). */
BODY(idx_on)
{
    w->s[S_M0] = (w->s[S_M0] & 0xffff0f00u) | (s32(w, r->src[0]) & 255) | ((uint32_t)r->imm & 15) << 12;
    return sim_set_class(w, r, w->mode_cls | MODE_IDX);
}
BODY(idx_off)
{
    return sim_set_class(w, r, w->mode_cls & ~(uint32_t)MODE_IDX);
}
BODY(idx_idx)
{
    w->s[S_M0] = (w->s[S_M0] & ~255u) | (s32(w, r->src[0]) & 255);
    return NEXT(r);
}
BODY(idx_mode)
{
    w->s[S_M0] = (w->s[S_M0] & 0xffff0fffu) | ((uint32_t)r->imm & 15) << 12;
    return NEXT(r);
}
static const SimRec *
body_indexed(SimWave *w, const SimRec *r)
{
    SimRec t = *r;
    const SimOpDesc *d = r->ext->desc;
    uint32_t idx = w->s[S_M0] & 255, mode = (w->s[S_M0] >> 12) & 15;
    if (d && (d->flags & (OPF_FMAC | OPF_OLD))) /* the destination read as the third source goes with it */
        mode = (mode & ~4u) | (mode & 8) >> 1;
    for (uint32_t i = 0; i < 3; i++)
        if (((mode >> i) & 1) && t.src[i].kind == SRC_V)
            t.src[i].idx = (uint16_t)((t.src[i].idx & ROW_AGPR) | ((t.src[i].idx + idx) & 255));
    if ((mode & 8) && (t.ndst || r->ext->in.op == ISA_OP_v_writelane_b32))
        t.dst = (uint16_t)((t.dst & ROW_AGPR) | ((t.dst + idx) & 255));
    const SimRec *n = r->ext->plain_body(w, &t);
    return n ? r + (n - &t) : NULL;
}
void
sim_build_indexed(SimBuild *b)
{
    bool lane = b->in->op == ISA_OP_v_readlane_b32 || b->in->op == ISA_OP_v_readfirstlane_b32 ||
                b->in->op == ISA_OP_v_writelane_b32;
    if (b->in->enc < ISA_VOP1 || b->in->enc > ISA_VOP3P || !(b->kern || lane))
        return;
    b->x->plain_body = b->r->body;
    b->r->body = body_indexed;
}
BODY(movrels32)
{
    w->s[r->dst] = w->s[(r->src[0].idx + w->s[S_M0]) & 127];
    return NEXT(r);
}
BODY(movrels64)
{
    put64(w->s + r->dst, get64(w->s + ((r->src[0].idx + w->s[S_M0]) & 126)));
    return NEXT(r);
}
/* n scalars v to a place that the instruction does not name, as defined as those from `from` on (S_NULL:
 * quite). */
static void
move_to(SimWave *w, uint32_t dst, uint32_t n, uint64_t v, uint32_t from)
{
    for (uint32_t k = 0; k < n; k++) {
        w->s[dst + k] = (uint32_t)(v >> (32 * k));
        if (!w->chk)
            continue;
        uint32_t undef = from == S_NULL ? 0 : w->chk->sp[from + k];
        w->chk->sp[dst + k] = undef;
        w->chk->org[ROWS + dst + k] = undef ? w->chk->org[ROWS + from + k] : ORG_NONE;
        w->chk->org_at[ROWS + dst + k] = w->chk->org_at[ROWS + from + k];
        w->chk->sflag[dst + k] = (uint8_t)((w->chk->sflag[dst + k] & ~VF_POISON) | (undef ? VF_POISON : 0));
    }
}
static const SimRec *
move_source(SimWave *w, const SimRec *r, uint32_t dst, uint32_t n)
{
    bool reg = r->src[0].kind == SRC_S || r->src[0].kind == SRC_S64;
    move_to(w, dst, n, s64(w, r->src[0]), reg ? r->src[0].idx : S_NULL);
    return NEXT(r);
}
BODY(movreld32)
{
    return move_source(w, r, (r->dst + w->s[S_M0]) & 127, 1);
}
BODY(movreld64)
{
    return move_source(w, r, (r->dst + w->s[S_M0]) & 126, 2);
}
/* RDNA: what M0 moves past the last register is s0 as a source and goes nowhere as a destination. */
static uint32_t
moved(uint32_t reg, uint32_t by, uint32_t none)
{
    uint32_t i = reg + by;
    return i < S_VCC ? i : none;
}
BODY(rdna_movrels32)
{
    w->s[r->dst] = w->s[moved(r->src[0].idx, w->s[S_M0], 0)];
    return NEXT(r);
}
BODY(rdna_movrels64)
{
    put64(w->s + r->dst, get64(w->s + (moved(r->src[0].idx, w->s[S_M0], 0) & ~1u)));
    return NEXT(r);
}
BODY(rdna_movreld32)
{
    return move_source(w, r, moved(r->dst, w->s[S_M0], S_NULL), 1);
}
BODY(rdna_movreld64)
{
    return move_source(w, r, moved(r->dst, w->s[S_M0], S_NULL) & ~1u, 2);
}
BODY(rdna_movrelsd)
{
    uint32_t m = w->s[S_M0];
    uint32_t dst = moved(r->dst, (m >> 16) & 0x3ff, S_NULL);
    if (r->src[0].kind != SRC_S)
        return move_source(w, r, dst, 1);
    uint32_t from = moved(r->src[0].idx, m & 0x3ff, 0);
    move_to(w, dst, 1, w->s[from], from);
    return NEXT(r);
}

/* ---- loops over halves of a wave (gfx11): EXEC's other half waits in a scalar ---- */

BODY(subvector_begin)
{
    uint32_t lo = w->s[S_EXEC], hi = w->s[S_EXEC + 1];
    if (!lo && !hi)
        return JUMP(r);
    if (!lo) {
        w->s[r->dst] = lo;
        return NEXT(r);
    }
    w->s[r->dst] = hi;
    w->s[S_EXEC + 1] = 0;
    return NEXT(r);
}
BODY(subvector_end)
{
    uint32_t kept = w->s[r->dst];
    if (w->s[S_EXEC + 1]) {
        w->s[S_EXEC] = kept;
        return NEXT(r);
    }
    if (!kept)
        return NEXT(r);
    w->s[r->dst] = w->s[S_EXEC];
    w->s[S_EXEC + 1] = kept;
    w->s[S_EXEC] = 0;
    return JUMP(r);
}

static const SimBody jumps[] = {
    f_branch, f_scc0, f_scc1, f_vccz, f_vccnz, f_execz, f_execnz, f_call, f_subvector_begin, f_subvector_end};

static bool
is_jump(SimBody b)
{
    for (uint32_t i = 0; i < TL_COUNT(jumps); i++)
        if (jumps[i] == b)
            return true;
    return false;
}

/* A jump (number aux in the table) whose target is no code: only taking it is a fault. */
BODY(wild)
{
    const SimRec *next = jumps[r->aux](w, r); /* imm is 0 here: r is the target */
    return next == r ? sim_fault_illegal(w, r, "the target is outside the code") : next;
}

/* ---- ends and halts ---- */

BODY(setkill)
{
    return r->imm & 1 ? f_endpgm(w, r) : NEXT(r);
}
/* Nobody is there who could let the wave go on. */
BODY(sethalt)
{
    if (!(r->imm & 1))
        return NEXT(r);
    sim_fault(w, r, SIM_FAULT_TRAP, true, 0, 0, UINT32_MAX, 0, "s_sethalt: the wave halts itself");
    return NULL;
}
BODY(sendmsghalt)
{
    sim_fault(w, r, SIM_FAULT_TRAP, true, 0, 0, UINT32_MAX, 0, "s_sendmsghalt: the wave halts itself");
    return NULL;
}
BODY(privileged)
{
    return sim_fault_illegal(w, r, "only a trap handler may do this");
}
BODY(code_end)
{
    return sim_fault_illegal(w, r, "execution ran into the padding behind the code");
}
/* Registers cannot be had at run time: no launch asks for that mode. */
BODY(alloc_vgpr)
{
    w->scc = 0;
    return NEXT(r);
}

/* Number, destination, source. A scalar that is only read where others are written (s_waitcnt_vscnt,
 * s_subvector_loop) counts as the destination. */
void
sim_build_flow_operands(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    b->x->poison = POI_NONE;
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        if (o->kind == ISA_OPND_IMM) {
            r->imm = (int32_t)o->bits;
        } else if ((o->flags & ISA_WRITE) && o->kind == ISA_OPND_SGPR && !(o->flags & ISA_IMPLICIT)) {
            r->dst = sim_build_sreg(b, o);
            r->ndst = o->nregs;
        } else if ((o->flags & ISA_READ) && !(o->flags & ISA_IMPLICIT) && o->kind != ISA_OPND_NONE) {
            r->src[0] = sim_build_src(b, o);
            if (o->kind == ISA_OPND_SGPR && in->enc == ISA_SOPK)
                r->dst = sim_build_sreg(b, o);
        }
    }
}

static const struct {
    const char *name;
    SimBody body;
} rows[] = {
    {"s_nop", f_nop},
    {"s_waitcnt", f_nop},
    {"s_waitcnt_vscnt", f_nop},
    {"s_waitcnt_vmcnt", f_nop},
    {"s_waitcnt_expcnt", f_nop},
    {"s_waitcnt_lgkmcnt", f_nop},
    {"s_waitcnt_depctr", f_nop},
    {"s_wait_alu", f_nop},
    {"s_wait_idle", f_nop},
    {"s_wait_event", f_nop},
    {"s_wait_loadcnt", f_nop},
    {"s_wait_storecnt", f_nop},
    {"s_wait_samplecnt", f_nop},
    {"s_wait_bvhcnt", f_nop},
    {"s_wait_expcnt", f_nop},
    {"s_wait_dscnt", f_nop},
    {"s_wait_kmcnt", f_nop},
    {"s_wait_loadcnt_dscnt", f_nop},
    {"s_wait_storecnt_dscnt", f_nop},
    {"s_delay_alu", f_nop},
    {"s_clause", f_nop},
    {"s_set_inst_prefetch_distance", f_nop},
    {"s_version", f_nop},
    {"s_ttracedata_imm", f_nop},
    {"s_cbranch_cdbgsys", f_nop},
    {"s_cbranch_cdbguser", f_nop},
    {"s_cbranch_cdbgsys_or_user", f_nop},
    {"s_cbranch_cdbgsys_and_user", f_nop},
    {"s_setprio", f_nop},
    {"s_sendmsg", f_sendmsg},
    {"s_icache_inv", f_nop},
    {"s_incperflevel", f_nop},
    {"s_decperflevel", f_nop},
    {"s_ttracedata", f_nop},
    {"s_wakeup", f_nop},
    {"s_branch", f_branch},
    {"s_cbranch_scc0", f_scc0},
    {"s_cbranch_scc1", f_scc1},
    {"s_cbranch_vccz", f_vccz},
    {"s_cbranch_vccnz", f_vccnz},
    {"s_cbranch_execz", f_execz},
    {"s_cbranch_execnz", f_execnz},
    {"s_endpgm", f_endpgm},
    {"s_endpgm_saved", f_endpgm},
    {"s_barrier", f_barrier},
    {"s_sleep", f_sleep},
    {"s_trap", f_trap},
    {"s_getpc_b64", f_getpc},
    {"s_setpc_b64", f_setpc},
    {"s_swappc_b64", f_swappc},
    {"s_call_b64", f_call},
    {"s_movrelsd_2_b32", f_rdna_movrelsd},
    {"s_subvector_loop_begin", f_subvector_begin},
    {"s_subvector_loop_end", f_subvector_end},
    {"s_setkill", f_setkill},
    {"s_sethalt", f_sethalt},
    {"s_sendmsghalt", f_sendmsghalt},
    {"s_rfe_b64", f_privileged},
    {"s_rfe_restore_b64", f_privileged},
    {"s_code_end", f_code_end},
    {"s_alloc_vgpr", f_alloc_vgpr},
    {"s_sleep_var", f_sleep},
    {"s_set_gpr_idx_on", f_idx_on},
    {"s_set_gpr_idx_off", f_idx_off},
    {"s_set_gpr_idx_idx", f_idx_idx},
    {"s_set_gpr_idx_mode", f_idx_mode},
    {"s_movrels_b32", f_movrels32},
    {"s_movrels_b64", f_movrels64},
    {"s_movreld_b32", f_movreld32},
    {"s_movreld_b64", f_movreld64},
};

/* A branch whose target lies outside of the code faults when it is taken. */
static void
build_jump(SimBuild *b)
{
    SimRec *r = b->r;
    r->imm = 1 + (int16_t)r->imm;
    int64_t at = (b->index + (int64_t)r->imm);
    if (at >= 0 && at < (int64_t)b->code->nrec)
        return;
    while (jumps[r->aux] != r->body)
        r->aux++;
    r->imm = 0;
    r->body = f_wild;
}

bool
sim_build_flow(SimBuild *b)
{
    uint32_t i = 0;
    while (i < TL_COUNT(rows) && strcmp(rows[i].name, b->name))
        i++;
    if (i == TL_COUNT(rows))
        return sim_build_fork(b) || sim_build_hwreg(b) || sim_build_barrier(b);
    SimRec *r = b->r;
    r->body = rows[i].body;
    sim_build_flow_operands(b);
    SimBody j = r->body;
    if (b->code->arch >= ISA_GFX1100)
        r->body = j == f_movrels32   ? f_rdna_movrels32
                  : j == f_movrels64 ? f_rdna_movrels64
                  : j == f_movreld32 ? f_rdna_movreld32
                  : j == f_movreld64 ? f_rdna_movreld64
                                     : j;
    if (is_jump(j))
        build_jump(b);
    return true;
}
