/* flow.c - jumps, program flow (SOPP), hardware registers, messages; scalar loads. */
#include "sim/core.h"
#include "sim/trace.h"

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
BODY(trap)
{
    uint32_t id = (uint32_t)r->imm & 255;
    sim_fault(w, r, SIM_FAULT_TRAP, true, EXEC(w), 0, UINT32_MAX, 0, "s_trap %u%s", id,
              id == 2 ? " (llvm.trap: assertion or unreachable code)" : "");
    return NULL;
}

/* The record at a code address, or NULL after a fault. */
static const SimRec *
jump_to(SimWave *w, const SimRec *r, uint64_t pc)
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
    return jump_to(w, r, s64(w, r->src[0]));
}
BODY(swappc)
{
    uint64_t to = s64(w, r->src[0]);
    put64(w->s + r->dst, rec_pc(w, r) + 4);
    return jump_to(w, r, to);
}
BODY(call)
{
    put64(w->s + r->dst, rec_pc(w, r) + 4);
    return JUMP(r);
}

/* ---- hardware registers ---- */

static uint32_t
hwreg_read(SimWave *w, uint32_t id)
{
    switch (id) {
    case 1:
        return w->mode;
    case 2: /* STATUS: scc, execz, vccz */
        return w->scc | (uint32_t)(EXEC(w) == 0) << 9 | (uint32_t)(VCC(w) == 0) << 10;
    case 3:
        return w->trapsts;
    case 4: /* HW_ID: wave slot and SIMD; deterministic */
        return (w->index & 15) | ((w->index >> 2) & 3) << 4;
    case 5: {
        uint32_t blocks = (w->g->info ? w->g->info->rsrc1 : 0) & 63;
        return blocks << 8;
    }
    case 6:
        return ((w->g->lds_bytes + 511) / 512) << 12;
    case 15: /* SH_MEM_BASES: private base, shared base, high halves */
        return (uint32_t)(SIM_PRIVATE_APERTURE >> 48) | (uint32_t)(SIM_SHARED_APERTURE >> 48) << 16;
    case 20:
        return (uint32_t)(w->g->linear % 8);
    default:
        return 0;
    }
}

/* Goes on in the record table of this class. */
static const SimRec *
set_class(SimWave *w, const SimRec *r, uint32_t cls)
{
    const SimRec *old = w->recs;
    if (cls == w->mode_cls)
        return NEXT(r);
    const SimRec *t = sim_code_table(w->code, cls);
    if (!t) {
        sim_fault(w, r, SIM_FAULT_OOM, true, 0, 0, UINT32_MAX, 0, "out of memory");
        return NULL;
    }
    w->mode_cls = cls;
    w->recs = t;
    return t + (NEXT(r) - old);
}
static const SimRec *
set_mode(SimWave *w, const SimRec *r, uint32_t mode)
{
    w->mode = mode;
    return set_class(w, r,
                     (w->mode_cls & ~(uint32_t)MODE_ODD) | ((mode & 0xff) == 0xf0 ? MODE_PLAIN : MODE_ODD));
}
/* GPR indexing: M0[7:0] is the index, M0[15:12] says which operands move (sources 0..2, destination). */
BODY(idx_on)
{
    w->s[S_M0] = (w->s[S_M0] & 0xffff0f00u) | (s32(w, r->src[0]) & 255) | ((uint32_t)r->imm & 15) << 12;
    return set_class(w, r, w->mode_cls | MODE_IDX);
}
BODY(idx_off)
{
    return set_class(w, r, w->mode_cls & ~(uint32_t)MODE_IDX);
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
    uint32_t idx = w->s[S_M0] & 255, mode = (w->s[S_M0] >> 12) & 15;
    for (uint32_t i = 0; i < 3; i++)
        if (((mode >> i) & 1) && t.src[i].kind == SRC_V)
            t.src[i].idx = (uint16_t)((t.src[i].idx & ROW_AGPR) | ((t.src[i].idx + idx) & 255));
    if ((mode & 8) && t.ndst)
        t.dst = (uint16_t)((t.dst & ROW_AGPR) | ((t.dst + idx) & 255));
    const SimRec *n = r->ext->plain_body(w, &t);
    return n ? r + (n - &t) : NULL;
}
void
sim_build_indexed(SimBuild *b)
{
    if (b->in->enc < ISA_VOP1 || b->in->enc > ISA_VOP3P || !b->kern)
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
BODY(movreld32)
{
    w->s[(r->dst + w->s[S_M0]) & 127] = s32(w, r->src[0]);
    return NEXT(r);
}
BODY(movreld64)
{
    put64(w->s + ((r->dst + w->s[S_M0]) & 126), s64(w, r->src[0]));
    return NEXT(r);
}
BODY(getreg)
{
    uint32_t k = (uint32_t)r->imm, off = (k >> 6) & 31, n = ((k >> 11) & 31) + 1;
    uint32_t v = hwreg_read(w, k & 63) >> off;
    w->s[r->dst] = n >= 32 ? v : v & ((1u << n) - 1);
    return NEXT(r);
}
BODY(setreg)
{
    uint32_t k = (uint32_t)r->imm, id = k & 63, off = (k >> 6) & 31, n = ((k >> 11) & 31) + 1;
    uint32_t mask = (n >= 32 ? ~0u : (1u << n) - 1) << off, v = (s32(w, r->src[0]) << off) & mask;
    if (id == 1)
        return set_mode(w, r, (w->mode & ~mask) | v);
    if (id == 3)
        w->trapsts = (w->trapsts & ~mask) | v;
    return NEXT(r);
}

/* ---- scalar memory ---- */

static bool
smem_read(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n, uint32_t *out)
{
    const SimExtent *x = w->port ? sim_mem_find(w->port, addr, n * 4) : NULL;
    bool bounds = checking(w, SIM_CHECK_BOUNDS);
    if (UNLIKELY(!x || (bounds && !sim_extent_holds(x, addr, n * 4)))) {
        char text[160];
        sim_describe(w, addr, n * 4, text, sizeof text);
        if (!sim_fault(w, r, x || bounds ? SIM_CHECK_BOUNDS : SIM_FAULT_MEMORY, !x && !bounds, 0, addr,
                       UINT32_MAX, 0, "scalar load of %u bytes %s", n * 4, text))
            return false;
        if (!x) {
            memset(out, 0, 4 * n);
            return true;
        }
    }
    memcpy(out, (const void *)(uintptr_t)addr, (size_t)4 * n);
    if (w->chk && checking(w, SIM_CHECK_INIT)) {
        uint32_t *p = w->chk->sp + r->dst;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t u = sim_undef_mask(x, addr + 4 * k, 4), bits = 0;
            for (int q = 0; q < 4; q++)
                bits |= (u >> q & 1) ? 255u << (8 * q) : 0;
            p[k] = bits;
            w->chk->sflag[r->dst + k] =
                (uint8_t)((w->chk->sflag[r->dst + k] & ~VF_POISON) | (bits ? VF_POISON : 0));
        }
    }
    if (w->g->info && w->g->info->race && checking(w, SIM_CHECK_RACE)) {
        uint64_t lanes[64];
        for (uint32_t k = 0; k < n; k++)
            lanes[k] = addr + 4 * k;
        sim_global_race(w, r, lanes, (UINT64_C(1) << n) - 1, 4, SIM_ACC_READ);
    }
    if (UNLIKELY(w->trace != NULL))
        sim_trace_scalar(w, addr, 4 * n);
    if (w->stats)
        w->stats->scalar_read += 4 * n;
    return w->stop == ST_RUN;
}
BODY(s_load)
{
    uint64_t addr = s64(w, r->src[0]) + (int64_t)r->imm;
    if (r->src[1].kind)
        addr += s32(w, r->src[1]);
    uint32_t t[16];
    if (!smem_read(w, r, addr & ~UINT64_C(3), r->ndst, t))
        return NULL;
    memcpy(w->s + r->dst, t, (size_t)4 * r->ndst);
    return NEXT(r);
}
BODY(s_buffer_load)
{
    const uint32_t *d = w->s + r->src[0].idx;
    uint64_t base = (d[0] | (uint64_t)(d[1] & 0xffff) << 32) & ~UINT64_C(3);
    uint32_t stride = (d[1] >> 16) & 0x3fff;
    uint64_t size = (uint64_t)d[2] * (stride ? stride : 1);
    uint64_t off = (uint64_t)(int64_t)r->imm;
    if (r->src[1].kind)
        off += s32(w, r->src[1]);
    off &= ~UINT64_C(3);
    uint32_t t[16], n = r->ndst;
    memset(t, 0, sizeof t);
    uint64_t have = off < size ? (size - off) / 4 : 0;
    uint32_t get = have < n ? (uint32_t)have : n;
    if (get && !smem_read(w, r, base + off, get, t))
        return NULL;
    memcpy(w->s + r->dst, t, (size_t)4 * n);
    return NEXT(r);
}
/* Clocks are deterministic: four cycles an instruction, counted at the start of a slice of work; within one
 * each reading is later than the one before. */
static uint64_t
read_clock(SimWave *w)
{
    uint64_t t = w->icount * 4;
    w->clock = w->clock + 16 > t ? w->clock + 16 : t;
    return w->clock;
}
BODY(s_memtime)
{
    put64(w->s + r->dst, read_clock(w));
    return NEXT(r);
}
BODY(s_memrealtime)
{
    put64(w->s + r->dst, read_clock(w) / 20);
    return NEXT(r);
}

bool
sim_build_smem(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    if (in->enc != ISA_SMEM)
        return false;
    const char *n = b->name;
    b->x->poison = POI_NONE;
    if (!strncmp(n, "s_dcache", 8)) {
        r->body = f_nop;
        return true;
    }
    if (in->ndst == 1) {
        r->dst = sim_build_sreg(b, &in->opnd[0]);
        r->ndst = in->opnd[0].nregs;
    }
    if (!strcmp(n, "s_memtime") || !strcmp(n, "s_memrealtime")) {
        r->body = n[5] == 't' ? f_s_memtime : f_s_memrealtime;
        return true;
    }
    bool buf = !strncmp(n, "s_buffer_load", 13);
    if (!buf && strncmp(n, "s_load", 6))
        return false;
    const IsaOpnd *base = sim_build_read(b, 0), *so = sim_build_read(b, 1);
    if (!base)
        return false;
    r->src[0] = sim_build_src(b, base);
    if (so && so->kind != ISA_OPND_NONE && so->kind != ISA_OPND_IMM)
        r->src[1] = sim_build_src(b, so);
    r->imm = in->offset;
    r->body = buf ? f_s_buffer_load : f_s_load;
    return true;
}

bool
sim_build_flow(SimBuild *b)
{
    static const struct {
        const char *name;
        SimBody body;
    } rows[] = {
        {"s_nop", f_nop},
        {"s_waitcnt", f_nop},
        {"s_setprio", f_nop},
        {"s_sendmsg", f_nop},
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
        {"s_getreg_b32", f_getreg},
        {"s_setreg_b32", f_setreg},
        {"s_setreg_imm32_b32", f_setreg},
        {"s_set_gpr_idx_on", f_idx_on},
        {"s_set_gpr_idx_off", f_idx_off},
        {"s_set_gpr_idx_idx", f_idx_idx},
        {"s_set_gpr_idx_mode", f_idx_mode},
        {"s_movrels_b32", f_movrels32},
        {"s_movrels_b64", f_movrels64},
        {"s_movreld_b32", f_movreld32},
        {"s_movreld_b64", f_movreld64},
    };
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    uint32_t i = 0;
    while (i < TL_COUNT(rows) && strcmp(rows[i].name, b->name))
        i++;
    if (i == TL_COUNT(rows))
        return false;
    r->body = rows[i].body;
    b->x->poison = POI_NONE;
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        if (o->kind == ISA_OPND_IMM)
            r->imm = (int32_t)o->bits;
        else if ((o->flags & ISA_WRITE) && o->kind == ISA_OPND_SGPR && !(o->flags & ISA_IMPLICIT))
            r->dst = sim_build_sreg(b, o);
        else if ((o->flags & ISA_READ) && !(o->flags & ISA_IMPLICIT) && o->kind != ISA_OPND_NONE)
            r->src[0] = sim_build_src(b, o);
    }
    SimBody j = r->body;
    if (j == f_branch || j == f_scc0 || j == f_scc1 || j == f_vccz || j == f_vccnz || j == f_execz ||
        j == f_execnz || j == f_call) {
        r->imm = 1 + (int16_t)r->imm;
        int64_t at = (b->index + (int64_t)r->imm);
        if (at < 0 || at >= (int64_t)b->code->nrec)
            return false;
    }
    return true;
}
