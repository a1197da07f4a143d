/* check_poison.c - undefined values (check "init"): a lane mask a vector register, a bit mask a scalar
 * register. They spread with the value; a report comes when one reaches a branch, an address, EXEC or a store
 * to global memory.
 */
#include "sim/check.h"
#include "sim/valu.h"

/* ---- sinks
 * -------------------------------------------------------------------------------------------------------- */

/* i: the register for sim_chk_origin_text */
static bool
sink(SimWave *w, const SimRec *r, uint64_t lanes, uint32_t i, const char *what)
{
    char name[16], from[SIM_ORIGIN];
    uint64_t pc;
    const char *reg = i == ORG_SCC ? "scc" : i < ROWS ? sim_row_name(i, name) : sim_sreg_name(i - ROWS, name);
    sim_chk_origin_text(w, i, from, sizeof from, &pc);
    if (i < ROWS)
        set_vp(w->chk, i, 0);
    return sim_fault(w, r, SIM_CHECK_INIT, false, lanes, 0, UINT32_MAX, pc,
                     "undefined value of %s reaches %s%s", reg, what, from);
}

/* A lane mask is one scalar in waves of 32. */
static uint8_t
mask_regs(const SimWave *w)
{
    return w->lane_mask == ~UINT64_C(0) ? 2 : 1;
}

static void
set_mask_sp(SimWave *w, uint32_t s, uint64_t p)
{
    set_sp(w->chk, s, (uint32_t)p);
    if (mask_regs(w) == 2)
        set_sp(w->chk, s + 1, (uint32_t)(p >> 32));
}

static uint32_t
scalar_poison(const SimChk *c, const SimRange *g)
{
    uint32_t p = 0;
    for (uint32_t k = 0; k < g->n; k++)
        p |= c->sp[g->start + k];
    return p;
}

static bool
sink_scalar(SimWave *w, const SimRec *r, const SimRange *g, const char *what)
{
    SimChk *c = w->chk;
    if (!scalar_poison(c, g))
        return true;
    uint32_t first = g->start;
    while (!c->sp[first])
        first++;
    uint64_t bits =
        g->n == 2 ? c->sp[g->start] | (uint64_t)c->sp[g->start + 1] << 32 : 0; /* of a lane mask */
    bool go_on = sink(w, r, bits, ROWS + first, what);
    for (uint32_t k = 0; k < g->n; k++)
        set_sp(c, g->start + k, 0);
    return go_on;
}

/* Rows that form an address, and the scalars of a memory instruction. */
static bool
sink_address(SimWave *w, const SimRec *r, const SimExt *x)
{
    const SimChk *c = w->chk;
    uint64_t exec = EXEC(w) & x->addr_lanes;
    for (uint32_t i = 0; i < x->nvread; i++) {
        const SimRange *g = &x->vread[i];
        if (g->cls != x->addr_cls)
            continue;
        for (uint32_t row = g->start; row < g->start + (uint32_t)g->n; row++) {
            uint64_t p = c->vp[row] & exec;
            if (p && !sink(w, r, p, row, "an address"))
                return false;
        }
    }
    for (uint32_t i = 0; i < x->nsread; i++)
        if (x->sread[i].start != S_FLAT_SCRATCH && !(x->sread[i].start == S_M0 && (x->use & CU_DMA)) &&
            !sink_scalar(w, r, &x->sread[i], "an address"))
            return false;
    if (x->use & CU_DMA) {
        SimRange m0 = {S_M0, 1, 7, 0};
        return sink_scalar(w, r, &m0, "an LDS address");
    }
    return true;
}

static bool
sinks(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    SimRange vcc = {S_VCC, mask_regs(w), 7, 0};
    switch (x->kind) {
    case CK_BRANCH:
        if ((x->use & CU_SCC) && c->scc_p) {
            c->scc_p = false;
            return sink(w, r, 0, ORG_SCC, "a branch");
        }
        if (x->use & CU_VCC)
            return sink_scalar(w, r, &vcc, "a branch");
        return true;
    case CK_SMEM:
        for (uint32_t i = 0; i < x->nsread; i++) {
            bool data = x->smem_data && x->sread[i].start == r->dst && x->sread[i].n == r->ndst;
            if (!data && !sink_scalar(w, r, &x->sread[i], "an address"))
                return false;
        }
        return true;
    case CK_VMEM:
    case CK_FLAT:
    case CK_DS:
        return sink_address(w, r, x);
    default:
        break;
    }
    if (x->use & CU_JUMP)
        return x->nsread ? sink_scalar(w, r, &x->sread[0], "a jump") : true;
    if (x->relidx) {
        SimRange m0 = {S_M0, 1, 7, 0};
        return sink_scalar(w, r, &m0, "a register index");
    }
    if (x->lanesel && x->nsread)
        return sink_scalar(w, r, &x->sread[x->nsread - 1], "a lane select");
    return true;
}

/* ---- spreading through the vector ALU
 * -------------------------------------------------------------------------------- */

/* Poisoned lanes of source i. */
static uint64_t
source_poison(const SimWave *w, SimSrc s, uint32_t n)
{
    const SimChk *c = w->chk;
    uint64_t p = 0;
    if (s.kind == SRC_V)
        for (uint32_t k = 0; k < n; k++)
            p |= c->vp[s.idx + k];
    else if (s.kind == SRC_S)
        p = c->sp[s.idx] ? ~UINT64_C(0) : 0;
    else if (s.kind == SRC_S64)
        p = c->sp[s.idx] | c->sp[s.idx + 1] ? ~UINT64_C(0) : 0;
    return p;
}

static uint64_t
mask_poison(const SimWave *w, SimSrc s)
{
    if (s.kind != SRC_S64 && s.kind != SRC_S)
        return 0;
    return w->chk->sp[s.idx] | (uint64_t)w->chk->sp[s.idx + 1] << 32;
}

static uint64_t
dpp_poison(const SimWave *w, const SimExt *x, uint64_t p, uint64_t *written)
{
    uint8_t lane[64];
    uint64_t write, exec = EXEC(w), out = 0, ok = 0;
    sim_dpp_lanes(&x->in, lane, &write);
    for (uint32_t i = 0; i < 64; i++) {
        bool valid = sim_dpp_valid(&x->in, lane[i], exec);
        if (valid)
            out |= ((p >> lane[i]) & 1) << i;
        if (valid || sim_dpp_zero(&x->in))
            ok |= UINT64_C(1) << i;
    }
    *written &= write & ok;
    return out;
}

/* v_pk_mov_b32: the low half is the half of the first source that op_sel[0] names, the high half the one of
 * the second source that op_sel[1] names. */
static uint64_t
half_poison(const SimWave *w, SimSrc s, uint32_t half)
{
    if (s.kind == SRC_V)
        return w->chk->vp[s.idx + half];
    if (s.kind == SRC_S64)
        return w->chk->sp[s.idx + half] ? ~UINT64_C(0) : 0;
    return source_poison(w, s, 1);
}

/* 64-bit results whose low half does not depend on the high half of a source (sums, products, left shifts),
 * or whose halves are independent (moves, packed f32): compilers leave high halves undefined.
 */
static void
halves_poison(const SimWave *w, const SimRec *r, const SimOpDesc *d, uint64_t *lo, uint64_t *hi)
{
    uint64_t l = 0, h = 0;
    ptrdiff_t k = d - sim_kern_desc;
    const IsaInst *in = &r->ext->in; /* packed f32: each half of the result names its half of the source */
    if (k == K_v_pk_mov_b32) {
        *lo = half_poison(w, r->src[0], in->op_sel & 1);
        *hi = half_poison(w, r->src[1], in->op_sel >> 1 & 1);
        return;
    }
    bool pk = k == K_v_pk_add_f32 || k == K_v_pk_mul_f32 || k == K_v_pk_fma_f32;
    for (uint32_t i = 0; i < d->nsrc; i++) {
        SimSrc s = r->src[i];
        bool wide = sim_type_is64(d->t[i]);
        uint32_t from_lo = pk && (in->op_sel >> i & 1), from_hi = !pk || (in->op_sel_hi >> i & 1);
        if (wide && s.kind == SRC_V) {
            l |= w->chk->vp[s.idx + from_lo];
            h |= w->chk->vp[s.idx + from_hi];
        } else if ((pk || wide) && s.kind == SRC_S64) {
            l |= w->chk->sp[s.idx + from_lo] ? ~UINT64_C(0) : 0;
            h |= w->chk->sp[s.idx + from_hi] ? ~UINT64_C(0) : 0;
        } else {
            uint64_t p = source_poison(w, s, 1);
            l |= p;
            h |= p;
        }
    }
    switch (k) {
    case K_v_mad_u64_u32:
    case K_v_mad_co_u64_u32:
    case K_v_mad_co_i64_i32:
    case K_v_mad_i64_i32:
    case K_v_lshl_add_u64:
    case K_v_lshlrev_b64:
        *lo = l;
        break;
    case K_v_mov_b64:
    case K_v_pk_add_f32:
    case K_v_pk_mul_f32:
    case K_v_pk_fma_f32:
        *lo = l;
        *hi = h;
        break;
    default:
        break;
    }
}

/* Is source i the low half of its register: by its type, by what SDWA selects? */
static bool
operand_low(const SimExt *x, uint32_t i)
{
    const IsaInst *in = &x->in;
    uint8_t type = x->desc->t[i], sel = i ? in->src1_sel : in->src0_sel;
    if (in->form == ISA_SDWA && i < 2)
        return sel == 0 || sel == 1 || sel == 4; /* a byte of it, or it */
    if (x->desc->flags & OPF_MIX)
        return (in->op_sel_hi >> i & 1) && !(in->op_sel >> i & 1);
    return sim_type_is16(type) && !(in->op_sel >> i & 1);
}

/* Does source i matter in its low half alone: because the operand is that half, or another one masks it? */
static bool
low_half_only(const SimWave *w, const SimRec *r, const SimExt *x, uint32_t i)
{
    for (uint32_t k = 0; k < x->nvread; k++)
        if (x->vread[k].cls == i && x->vread[k].start == r->src[i].idx && x->vread[k].half)
            return x->vread[k].half == 1;
    if (!x->desc || operand_low(x, i))
        return x->desc != NULL;
    if (strcmp(x->desc->name, "v_and_b32"))
        return false;
    SimSrc mask = r->src[!i];
    return (mask.kind == SRC_C && w->code->consts[mask.idx][0] <= 0xffff) ||
           (mask.kind == SRC_S && !w->chk->sp[mask.idx] && w->s[mask.idx] <= 0xffff);
}

/* Lanes whose result is undefined in the upper half alone: that half was written, or the register copied. */
static uint64_t
result_high_only(const SimWave *w, const SimRec *r, const SimExt *x, uint64_t undef, uint64_t wr)
{
    const SimChk *c = w->chk;
    uint64_t old = high_only(c, r->dst);
    if (x->nvwrite && x->vwrite[0].half == 2)
        return (old & ~wr) | (undef & wr & (~c->vp[r->dst] | old));
    if (x->desc && !strcmp(x->desc->name, "v_mov_b32") && r->src[0].kind == SRC_V && !sim_is_dpp(&x->in))
        return (old & ~wr) | (high_only(c, r->src[0].idx) & wr);
    return 0;
}

static void
valu_poison(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    const SimOpDesc *d = x->desc;
    uint64_t exec = EXEC(w), wr = exec, src[3] = {0}, any = 0;
    uint32_t nsrc = d ? d->nsrc : 3;
    for (uint32_t i = 0; i < nsrc && i < 3; i++) {
        bool old = d && (d->flags & OPF_OLD) && i == 2 && r->src[2].kind == SRC_V && r->src[2].idx == r->dst;
        src[i] = old ? 0 : source_poison(w, r->src[i], d && sim_type_is64(d->t[i]) ? 2 : 1);
        if (src[i] && r->src[i].kind == SRC_V && high_only(c, r->src[i].idx) && low_half_only(w, r, x, i))
            src[i] &= ~high_only(c, r->src[i].idx);
        else if (src[i] && r->src[i].kind == SRC_S && !(c->sp[r->src[i].idx] & 0xffff) &&
                 low_half_only(w, r, x, i))
            src[i] = 0;
        if (i == 0 && sim_is_dpp(&x->in))
            src[0] = dpp_poison(w, x, src[0], &wr);
        any |= src[i];
    }
    uint64_t sel = mask_poison(w, r->src[3]);
    bool halves = r->ndst == 2 && d && !sim_is_dpp(&x->in);
    uint64_t lo = UINT64_MAX, hi = UINT64_MAX; /* before a carry-out overwrites a source */
    if (halves)
        halves_poison(w, r, d, &lo, &hi);
    SimUndef tried[2];
    bool bits = any & wr && (x->poison == POI_LANE || x->poison == POI_SELECT) && sim_chk_bits(w, r, tried);
    switch ((PoisonRule)x->poison) {
    case POI_SELECT: {
        uint64_t m = s64(w, r->src[3]);
        any = (src[0] & ~m) | (src[1] & m) | sel;
        break;
    }
    case POI_MASK: {
        uint64_t p = any & exec;
        set_mask_sp(w, r->dst2, p);
        return;
    }
    case POI_CARRY:
        any |= (r->fl & RF_CIN) ? sel : 0;
        if (r->fl & RF_COUT) {
            uint64_t p = any & exec;
            set_mask_sp(w, r->dst2, p);
        }
        break;
    default:
        break;
    }
    if (bits) {
        for (uint32_t k = 0; k < r->ndst; k++)
            write_vp(c, r->dst + k, tried[k], wr);
        return;
    }
    lo &= any; /* the halves know it no worse than the whole */
    hi &= any;
    uint64_t high = r->ndst == 1 && any ? result_high_only(w, r, x, lo, wr) & wr : 0;
    write_vp(c, r->dst, (SimUndef){.any = lo, .part = high, .known = 0xffff}, wr);
    if (r->ndst == 2)
        write_vp(c, r->dst + 1u, (SimUndef){.any = hi}, wr);
}

/* VOPD: both read before either writes. */
static void
dual_poison(SimWave *w, const SimRec *r)
{
    const SimDual *d = r->p;
    SimChk *c = w->chk;
    uint32_t row = d->half[0].dst;
    SimUndef old = row_undef(c, row);
    valu_poison(w, &d->half[0], d->half[0].ext);
    SimUndef first = row_undef(c, row);
    set_row_undef(c, row, old);
    valu_poison(w, &d->half[1], d->half[1].ext);
    set_row_undef(c, row, first);
}

/* ---- through the scalar ALU
 * -------------------------------------------------------------------------------------------- */

static uint64_t
scalar_bits(const SimWave *w, SimSrc s, bool wide)
{
    const SimChk *c = w->chk;
    if (s.kind == SRC_S64 || (s.kind == SRC_S && wide))
        return c->sp[s.idx] | (uint64_t)c->sp[s.idx + 1] << 32;
    if (s.kind == SRC_S)
        return c->sp[s.idx];
    return s.kind == SRC_X && s.idx == 253 && c->scc_p ? 1 : 0;
}

/* Of operations that move bits, or whose carries go upwards: where undefined bits pa of a and pb of b go. */
static uint64_t
moved_bits(PoisonRule rule, uint64_t pa, uint64_t pb, uint64_t b, bool wide)
{
    uint32_t bits = wide ? 64 : 32, by = (uint32_t)b & (bits - 1);
    bool sums = rule == POI_SALU_SUM, packs = rule >= POI_SALU_PACKLL && rule <= POI_SALU_PACKHH;
    uint64_t lowest = (pa | pb) & -(pa | pb), ones = ~UINT64_C(0);
    int64_t top = (int64_t)(pa << (64 - bits)); /* the sign in front */
    if (sums)
        return -lowest;
    if (rule == POI_SALU_SEXT8 || rule == POI_SALU_SEXT16)
        return rule == POI_SALU_SEXT8 ? (uint64_t)(int8_t)pa : (uint64_t)(int16_t)pa;
    if (!packs && pb) /* how far, how many */
        return ones;
    switch (rule) {
    case POI_SALU_SHL:
        return pa << by;
    case POI_SALU_SHR:
        return pa >> by;
    case POI_SALU_SAR:
        return (uint64_t)(top >> (64 - bits) >> by);
    case POI_SALU_PACKLL:
    case POI_SALU_PACKLH:
    case POI_SALU_PACKHL:
    case POI_SALU_PACKHH: {
        bool high_a = rule == POI_SALU_PACKHL || rule == POI_SALU_PACKHH;
        bool high_b = rule == POI_SALU_PACKLH || rule == POI_SALU_PACKHH;
        return (pa >> (high_a ? 16 : 0) & 0xffff) | (pb >> (high_b ? 16 : 0) & 0xffff) << 16;
    }
    default:
        break;
    }
    uint32_t n = (uint32_t)(b >> 16) & 127; /* bit field */
    uint64_t x = (rule == POI_SALU_BFEI ? (uint64_t)(top >> (64 - bits)) : pa) >> by;
    if (n == 0)
        return 0;
    if (n >= bits)
        return x;
    return rule == POI_SALU_BFEI ? (uint64_t)((int64_t)(x << (64 - n)) >> (64 - n)) : x & ~(ones << n);
}

static void
salu_poison(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    bool wide = x->nswrite && x->swrite[0].n >= 2;
    uint64_t pa = scalar_bits(w, r->src[0], false), pb = scalar_bits(w, r->src[1], false), out, all = 0;
    uint64_t a = s64(w, r->src[0]), b = s64(w, r->src[1]);
    for (uint32_t i = 0; i < x->nsread; i++)
        all |= scalar_poison(c, &x->sread[i]);
    if (x->reads_scc && c->scc_p)
        all |= 1;
    all = all ? ~UINT64_C(0) : 0;
    switch ((PoisonRule)x->poison) {
    case POI_SALU_AND:
        out = (pa & (b | pb)) | (pb & (a | pa));
        break;
    case POI_SALU_OR:
        out = (pa & (~b | pb)) | (pb & (~a | pa));
        break;
    case POI_SALU_ANDN2:
        out = (pa & (~b | pb)) | (pb & (a | pa));
        break;
    case POI_SALU_ORN2:
        out = (pa & (b | pb)) | (pb & (~a | pa));
        break;
    case POI_SALU_XOR:
        out = pa | pb;
        break;
    case POI_SALU_MOV:
        out = pa;
        break;
    case POI_SALU_SEL: /* s_cselect, s_cmov: the operand that is taken */
        out = c->scc_p              ? ~UINT64_C(0)
              : x->nsread && w->scc ? pa
              : x->in.nopnds >= 3 && !(x->in.opnd[0].flags & ISA_READ)
                  ? pb
                  : c->sp[r->dst] | (wide ? (uint64_t)c->sp[r->dst + 1] << 32 : 0);
        break;
    case POI_SALU:
        out = all;
        break;
    default:
        out = all ? moved_bits((PoisonRule)x->poison, pa, pb, b, wide) : 0;
        break;
    }
    if (x->writes_exec) /* what was undefined and mattered has been reported; a saved EXEC is defined */
        out = 0;
    if (x->writes_scc && x->poison != POI_SALU_MOV && x->poison != POI_SALU_SEL)
        c->scc_p = out != 0 || (x->nswrite == 0 && all);
    for (uint32_t i = 0; i < x->nswrite; i++) {
        const SimRange *g = &x->swrite[i];
        if (g->start == S_EXEC)
            continue;
        set_sp(c, g->start, (uint32_t)out);
        if (g->n >= 2)
            set_sp(c, g->start + 1u, (uint32_t)(out >> 32));
    }
}

/* ---- matrix instructions
 * ------------------------------------------------------------------------------------------------- */

/* Every register of the destination gets the undefinedness of all sources, lane by lane. */
static void
tuple_poison(SimWave *w, const SimExt *x)
{
    SimChk *c = w->chk;
    uint64_t exec = EXEC(w), any = 0;
    for (uint32_t i = 0; i < x->nvread; i++)
        for (uint32_t k = 0; k < x->vread[i].n; k++)
            any |= c->vp[x->vread[i].start + k];
    for (uint32_t i = 0; i < x->nsread; i++)
        if (scalar_poison(c, &x->sread[i]))
            any = ~UINT64_C(0);
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t k = 0; k < x->vwrite[i].n; k++) {
            uint32_t row = x->vwrite[i].start + k;
            write_vp(c, row, (SimUndef){.any = any}, exec);
        }
}

static void
mfma_poison(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    const SimMma *m = x->mfma;
    uint64_t pa = 0, pb = 0, pi = 0, pc[32] = {0};
    for (uint32_t k = 0; k < m->na; k++)
        pa |= c->vp[r->src[0].idx + k];
    for (uint32_t k = 0; k < m->nb; k++)
        pb |= c->vp[r->src[1].idx + k];
    if (m->sparse)
        pi = source_poison(w, r->src[2], 1);
    if (x->rk.wmma) { /* gfx11 reads the lowest 16 lanes of A and B */
        uint64_t read = w->code->arch == ISA_GFX1100 ? 0xffff : w->lane_mask;
        pa &= read;
        pb &= read;
        pi &= read;
    }
    for (uint32_t k = 0; k < m->nd && k < 32; k++) {
        SimSrc s = r->src[2];
        pc[k] = m->sparse ? c->vp[r->dst + k] : s.kind == SRC_V ? c->vp[s.idx + k] : source_poison(w, s, 1);
    }
    pa |= pi;
    if (m->type == MT_F64 || (m->type != MT_F8F6F4 && (x->in.cbsz || x->in.blgp))) {
        uint64_t any = pa | pb ? ~UINT64_C(0) : 0;
        for (uint32_t k = 0; k < m->nd; k++)
            set_vp(c, r->dst + k, any | pc[k]);
        return;
    }
    for (uint32_t k = 0; k < m->nd && k < 32; k++)
        set_vp(c, r->dst + k, pc[k]);
    if (!(pa | pb))
        return;
    uint32_t mm = m->m, blocks = m->blocks;
    for (uint32_t s = 0; s < m->nseg; s++) { /* row i of a block, n columns */
        uint32_t i = m->seg_a[s] % mm, blk = m->seg_a[s] / mm, reg = m->seg_d[s] / 64,
                 lane = m->seg_d[s] % 64;
        uint64_t cols = 0, full = m->n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << m->n) - 1;
        for (uint32_t q = 0; q < 64 / mm; q++) { /* lane groups: of k, or the block itself */
            if (blocks > 1 && q != blk)
                continue;
            if ((pa >> (q * mm + i)) & 1)
                cols = full;
            cols |= (pb >> (q * mm)) & full;
        }
        set_vp(c, r->dst + reg, c->vp[r->dst + reg] | cols << lane);
    }
}

/* ---- lane moves
 * --------------------------------------------------------------------------------------------------------------
 */

static void
writelane_poison(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    uint64_t bit = UINT64_C(1) << (s32(w, r->src[1]) & sim_lane_bits(w));
    /* spilled lane masks: bits of lanes that are off may be undefined, a register does not know of bits */
    SimSrc s = r->src[0];
    bool all = s.kind == SRC_S ? c->sp[s.idx] == ~0u : source_poison(w, s, 1) != 0;
    write_vp(c, r->dst, (SimUndef){.any = all ? bit : 0}, bit);
}

static void
perm_poison(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    uint8_t lane[64];
    uint64_t kept = 0, sel = source_poison(w, r->src[1], 1) | source_poison(w, r->src[2], 1);
    sim_perm_lanes(w, r, lane);
    for (uint32_t l = 0; l < LANES; l++)
        kept |= (uint64_t)(lane[l] == 255) << l;
    SimUndef out = moved_undef(row_undef(c, r->src[0].idx), lane);
    out.any |= sel;
    out.part &= ~sel;
    write_vp(c, r->dst, out, EXEC(w) & ~(kept & ~sel));
}

static void
rel_poison(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    uint32_t src, dst;
    if (!sim_rel_rows(w, r, &src, &dst))
        return;
    uint64_t exec = EXEC(w), wr = exec;
    SimUndef p = {.any = source_poison(w, r->src[0], 1)}, q = row_undef(c, dst);
    if (r->src[0].kind == SRC_V)
        p = row_undef(c, src);
    if (sim_is_dpp(&x->in))
        p = (SimUndef){.any = dpp_poison(w, x, p.any, &wr)};
    write_vp(c, dst, p, wr);
    if (x->poison == POI_SWAPREL)
        write_vp(c, src, q, exec);
}

static void
wide_poison(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    uint64_t exec = EXEC(w), p = source_poison(w, r->src[0], 2) | source_poison(w, r->src[1], 1), q[4];
    for (uint32_t k = 0; k < 4; k++)
        q[k] = (p | c->vp[r->src[2].idx + k]) & exec;
    for (uint32_t k = 0; k < 4; k++)
        write_vp(c, r->dst + k, (SimUndef){.any = q[k]}, exec);
}

/* v_swap, v_permlane{16,32}_swap (n lanes up) */
static void
swap_poison(SimWave *w, const SimRec *r, uint32_t n)
{
    SimChk *c = w->chk;
    uint32_t a = r->dst, b = r->src[0].idx;
    uint64_t even = n == 16   ? UINT64_C(0x0000ffff0000ffff)
                    : n == 32 ? UINT64_C(0xffffffff)
                              : ~UINT64_C(0),
             on = EXEC(w) & (EXEC(w) >> n) & even;
    SimUndef ua = row_undef(c, a), ub = row_undef(c, b), to_a = ub, to_b = ua;
    to_a.any <<= n, to_a.part <<= n;
    to_b.any >>= n, to_b.part >>= n;
    write_vp(c, a, to_a, on << n);
    write_vp(c, b, to_b, on);
}

static void
lane_poison(SimWave *w, const SimRec *r, const SimExt *x)
{
    uint64_t exec = EXEC(w);
    switch ((PoisonRule)x->poison) {
    case POI_READFIRST:
    case POI_READLANE: {
        uint32_t l = x->poison == POI_READLANE ? s32(w, r->src[1]) & sim_lane_bits(w)
                     : exec                    ? (uint32_t)__builtin_ctzll(exec)
                                               : 0;
        SimSrc s = r->src[0];
        bool undef = source_poison(w, s, 1) >> l & 1;
        set_sp(w->chk, r->dst, !undef ? 0 : s.kind == SRC_V ? lane_bits(w->chk, s.idx, l) : ~0u);
        break;
    }
    case POI_WRITELANE:
        writelane_poison(w, r);
        break;
    case POI_SWAP:
        swap_poison(w, r, 0);
        break;
    case POI_PERM:
        perm_poison(w, r);
        break;
    case POI_MOVREL:
    case POI_SWAPREL:
        rel_poison(w, r, x);
        break;
    case POI_WIDE:
        wide_poison(w, r);
        break;
    case POI_PERMSWAP:
        swap_poison(w, r, r->aux);
        break;
    default:
        break;
    }
}

/* The lanes at which an operand beside EXEC can change what goes into EXEC: an undefined bit of it is of no
 * account where EXEC decides alone. */
static uint64_t
exec_matters(const SimWave *w, const SimExt *x)
{
    const char *n = isa_op_info(x->in.op)->name + 2;
    bool implied = strstr(n, "saveexec") || strstr(n, "wrexec"), has = implied;
    for (uint32_t i = 0; i < x->nsread; i++)
        has = has || x->sread[i].start == S_EXEC;
    if (!has)
        return ~UINT64_C(0);
    bool first = !implied && x->sread[0].start == S_EXEC;
    bool negated = !first && (strstr(n, "n2") || strstr(n, "not1")); /* the operation takes ~EXEC */
    uint64_t e = EXEC(w);
    if (!strncmp(n, "and", 3) || !strncmp(n, "nand", 4))
        return negated ? ~e : e;
    if (!strncmp(n, "or", 2) || !strncmp(n, "nor", 3))
        return negated ? e : ~e;
    return ~UINT64_C(0);
}

/* s_mov exec, saveexec: what goes into EXEC must be defined. */
static bool
exec_sinks(SimWave *w, const SimRec *r, const SimExt *x)
{
    const SimChk *c = w->chk;
    uint64_t matters = exec_matters(w, x);
    for (uint32_t i = 0; i < x->nsread; i++) {
        const SimRange *g = &x->sread[i];
        uint64_t bits = c->sp[g->start] | (g->n >= 2 ? (uint64_t)c->sp[g->start + 1u] << 32 : 0);
        if (g->start != S_EXEC && (bits & matters) && !sink_scalar(w, r, g, "EXEC"))
            return false;
    }
    return true;
}

/* Where it goes from an instruction that is no sink; false: it was one after all. */
static bool
spread(SimWave *w, const SimRec *r, const SimExt *x)
{
    SimChk *c = w->chk;
    switch ((PoisonRule)x->poison) {
    case POI_LANE:
    case POI_SELECT:
    case POI_MASK:
    case POI_CARRY:
        if (x->kind == CK_VALU)
            valu_poison(w, r, x);
        break;
    case POI_READLANE:
    case POI_READFIRST:
    case POI_WRITELANE:
    case POI_SWAP:
    case POI_PERMSWAP:
    case POI_PERM:
    case POI_MOVREL:
    case POI_SWAPREL:
    case POI_WIDE:
        lane_poison(w, r, x);
        break;
    case POI_DUAL:
        dual_poison(w, r);
        break;
    case POI_MFMA:
        mfma_poison(w, r, x);
        break;
    case POI_TUPLE:
        tuple_poison(w, x);
        break;
    case POI_SALU:
    case POI_SALU_AND:
    case POI_SALU_OR:
    case POI_SALU_XOR:
    case POI_SALU_MOV:
    case POI_SALU_SEL:
    case POI_SALU_ANDN2:
    case POI_SALU_ORN2:
    case POI_SALU_SHL:
    case POI_SALU_SHR:
    case POI_SALU_SAR:
    case POI_SALU_BFE:
    case POI_SALU_BFEI:
    case POI_SALU_SEXT8:
    case POI_SALU_SEXT16:
    case POI_SALU_PACKLL:
    case POI_SALU_PACKLH:
    case POI_SALU_PACKHL:
    case POI_SALU_PACKHH:
    case POI_SALU_SUM:
        if (x->writes_exec && !exec_sinks(w, r, x))
            return false;
        salu_poison(w, r, x);
        break;
    case POI_NONE:
    case POI_DEFINED:
        if (x->writes_scc)
            c->scc_p = false;
        for (uint32_t i = 0; i < x->nswrite; i++)
            for (uint32_t k = 0; k < x->swrite[i].n; k++)
                set_sp(c, x->swrite[i].start + k, 0);
        break;
    }
    if (x->kind == CK_VALU && (r->fl & RF_CMPX) && x->poison == POI_MASK) {
        SimRange d = {r->dst2, mask_regs(w), 7, 0};
        return sink_scalar(w, r, &d, "EXEC");
    }
    return true;
}

bool
sim_chk_poison(SimWave *w, const SimRec *r)
{
    const SimExt *x = r->ext;
    if (!checking(w, SIM_CHECK_INIT))
        return true;
    if (!sinks(w, r, x))
        return false;
    SimOrigin from = {ORG_NONE, 0}; /* of loads and lane moves through LDS: not of these registers */
    bool swaps = x->poison == POI_SWAP || x->poison == POI_PERMSWAP || x->relidx;
    if (!swaps && (x->kind == CK_VALU || x->kind == CK_MFMA || x->kind == CK_SALU))
        from = sim_chk_origin_of(w, x);
    if (!spread(w, r, x))
        return false;
    if (swaps)
        sim_chk_origin_lost(w, r);
    else
        sim_chk_origin_spread(w, x, from);
    return true;
}
