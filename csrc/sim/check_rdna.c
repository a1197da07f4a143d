/* check_rdna.c - what gfx11 and gfx12 do not interlock (check "hazard"): the rows of isa/hazard_rdna.h as
 * they come up in a run. now counts vector instructions; a register keeps the number of its last write, a
 * scalar whether a vector instruction has read it and which writes since then no wait covers (SF_*).
 */
#include "sim/check.h"

enum { SF_READ_PAIR = 8, SF_READ = 32, SF_SALU = 64, SF_VALU = 128 }; /* of sflag, beside VF_* */
_Static_assert(RDNA_READS == (SF_READ | SF_READ_PAIR), "the short way lets these pass");

void
sim_chk_rdna_prepare(SimBuild *b)
{
    SimExt *x = b->x;
    x->rows = (uint16_t)isa_rdna_rows(b->code->arch, b->code->wave64);
    x->rk = isa_rdna_kind(b->code->arch, b->in);
    x->haz = x->rk.wmma ? HZ_XDL : x->rk.trans ? HZ_TRANS : x->rk.valu ? HZ_VALU : HZ_NONE;
    if (x->rk.mask >= 0)
        x->rk.mask = (int8_t)sim_build_sreg(b, &b->in->opnd[x->rk.mask]);
}

/* ---- consumers
 * ------------------------------------------------------------------------------------------------------ */

static bool
wanted(const SimChk *c, IsaRdnaRow row)
{
    return !(c->ignore >> isa_rdna_row(row)->rule & 1);
}

static bool
lacks(SimWave *w, const SimRec *r, IsaRdnaRow row, const char *reg, uint32_t pc)
{
    const IsaRdnaRowInfo *info = isa_rdna_row(row);
    w->chk->rule = info->rule;
    return sim_fault(w, r, SIM_CHECK_HAZARD, false, 0, 0, UINT32_MAX, w->code->base + (uint64_t)pc * 4,
                     "%s: %s; it needs %s", reg, info->what, info->fix);
}

/* May the result of the last vector instruction that wrote the row be under way? */
static bool
under_way(const SimChk *c, uint32_t row)
{
    return (int32_t)(c->vtime[row] - c->valu_done) > 0;
}

static bool
check_row(SimWave *w, const SimRec *r, const SimRange *g, uint32_t row)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    uint32_t between = c->now - c->vtime[row];
    IsaRdnaRow id;
    if (c->vprod[row] == HZ_TRANS) {
        const IsaRdnaRowInfo *t = isa_rdna_row(ISA_RH_TRANS);
        if (g->half && !(g->half & c->vpass[row])) /* compilers take the halves for registers of their own */
            return true;
        id = ISA_RH_TRANS;
        if (between >= t->valus || c->ntrans - c->ctime[row] >= t->trans || !under_way(c, row)) {
            c->vflag[row] &= (uint8_t)~VF_PROD;
            return true;
        }
    } else {
        id = ISA_RH_WMMA;
        if (between) {
            c->vflag[row] &= (uint8_t)~VF_PROD;
            return true;
        }
        bool sparse = x->in.opnd[0].flags & ISA_READ; /* its third operand is the index */
        if (!x->rk.wmma || g->cls == 7 || (g->cls == 2 && !sparse))
            return true;
    }
    char name[16];
    c->vflag[row] &= (uint8_t)~VF_PROD; /* once */
    if (!wanted(c, id))
        return true;
    sim_chk_hit(c, row, HIT_READ);
    return lacks(w, r, id, sim_row_name(row, name), c->wpc[row]);
}

/* When EXEC was written by a scalar instruction, the kth last time. */
static uint32_t *
exec_write(SimChk *c, uint32_t k)
{
    return &c->exec_salu[(c->nexec - k) % TL_COUNT(c->exec_salu)];
}

/* Vector instructions since the last write of a source that may be under way; UINT32_MAX: none. */
static uint32_t
since_written(const SimChk *c, const SimRange *g, uint32_t *row)
{
    uint32_t least = UINT32_MAX, halves = g->half ? g->half : 3;
    for (uint32_t r = g->start; r < g->start + (uint32_t)g->n; r++)
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t t = c->half_time[h][r];
            if ((halves >> h & 1) && (int32_t)(t - c->valu_done) > 0 && c->now - t < least) {
                least = c->now - t;
                *row = r;
            }
        }
    return least;
}

/* Waves of 64 on gfx11: one source written before a scalar write of EXEC, another one behind it, both lately
 * (the way that was taken, as isa/check_forward.c looks at all). */
static bool
check_forward(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    uint32_t row[8] = {0}, since[8], behind = UINT32_MAX, exec = UINT32_MAX, pre = UINT32_MAX;
    uint32_t n = TL_MIN((uint32_t)x->nvread, (uint32_t)TL_COUNT(since));
    for (uint32_t i = 0; i < n; i++)
        behind = TL_MIN(behind, since[i] = since_written(c, &x->vread[i], &row[i]));
    if (behind > ISA_FORWARD_BEHIND)
        return true;
    for (uint32_t k = 1; k <= TL_COUNT(c->exec_salu) && k <= c->nexec; k++) {
        uint32_t ago = c->now - *exec_write(c, k);
        if (ago > behind) { /* the last one before the youngest source */
            exec = ago;
            break;
        }
    }
    if (exec == UINT32_MAX || exec - behind - 1 > ISA_FORWARD_BETWEEN)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (since[i] != UINT32_MAX && since[i] >= exec && (pre == UINT32_MAX || since[i] < since[pre]))
            pre = i;
    if (pre == UINT32_MAX || since[pre] - behind - 1 > ISA_FORWARD_BETWEEN)
        return true;
    char name[16];
    sim_chk_hit(c, row[pre], HIT_READ);
    return lacks(w, r, ISA_RH_FORWARD, sim_row_name(row[pre], name), c->wpc[row[pre]]);
}

static bool
check_scalar(SimWave *w, const SimRec *r, uint32_t s)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    bool masks = x->rows >> ISA_RH_MASK_SALU & 1,
         salu = (c->sflag[s] & SF_SALU) && wanted(c, masks ? ISA_RH_MASK_SALU : ISA_RH_SGPR_SALU);
    char name[16];
    IsaRdnaRow id =
        salu ? (masks ? ISA_RH_MASK_SALU : ISA_RH_SGPR_SALU) : (masks ? ISA_RH_MASK_VALU : ISA_RH_SGPR_VALU);
    if (!salu && (!(c->sflag[s] & SF_VALU) || !x->rk.valu))
        return true;
    /* Where a vector instruction wrote VCC on another way here, compilers take a scalar read for a wait. The
     * verifier looks at all ways; here it is enough that there are some. */
    if (salu && !masks && !x->rk.valu && (s == S_VCC || s == S_VCC + 1) &&
        sim_code_joined(w->code, c->swpc[s], r->at))
        return true;
    c->sflag[s] &= (uint8_t)~(SF_SALU | SF_VALU);
    if (!wanted(c, id))
        return true;
    sim_chk_hit(c, HIT_SCALAR | s, HIT_READ);
    return lacks(w, r, id, sim_sreg_name(s, name), c->swpc[s]);
}

bool
sim_chk_rdna(SimWave *w, const SimRec *r, uint32_t flags)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    const IsaRdnaKind *k = &x->rk;
    if (k->valu && (flags & VF_PROD))
        for (uint32_t i = 0; i < x->nvread; i++)
            for (uint32_t row = x->vread[i].start; row < x->vread[i].start + (uint32_t)x->vread[i].n; row++)
                if ((c->vflag[row] & VF_PROD) && !check_row(w, r, &x->vread[i], row))
                    return false;
    if ((k->valu || k->salu) && (flags & (SF_SALU | SF_VALU)))
        for (uint32_t i = 0; i < x->nsread; i++)
            for (uint32_t s = x->sread[i].start; s < x->sread[i].start + (uint32_t)x->sread[i].n; s++)
                if ((c->sflag[s] & (SF_SALU | SF_VALU)) && !check_scalar(w, r, s))
                    return false;
    if (k->permlane && c->cmpx && wanted(c, ISA_RH_PERMLANE)) {
        c->cmpx = false;
        sim_chk_hit(c, r->dst, HIT_RESULT);
        if (!lacks(w, r, ISA_RH_PERMLANE, "exec", c->exec_pc))
            return false;
    }
    return !k->valu || !(x->rows >> ISA_RH_FORWARD & 1) || !wanted(c, ISA_RH_FORWARD) || check_forward(w, r);
}

/* ---- producers
 * ---------------------------------------------------------------------------------------------------------
 */

static void
clear_scalars(SimChk *c, uint8_t plain, uint8_t vcc)
{
    if (!(c->owed & (plain | vcc)))
        return;
    c->owed &= (uint8_t)~(plain & vcc);
    for (uint32_t s = 0; s < S_M0; s++)
        c->sflag[s] &= (uint8_t)~(s == S_VCC || s == S_VCC + 1 ? vcc : plain);
}

/* masks: rows of lane masks; there a wait ends the reads before it too. */
static void
carry_out_wait(SimChk *c, const IsaRdnaKind *k, bool masks)
{
    uint8_t salu = k->sa_sdst ? 0 : SF_SALU;
    bool any = !k->sa_sdst || !k->va_sdst || !k->va_vcc;
    if (any)
        clear_scalars(c, salu | (k->va_sdst ? 0 : SF_VALU), salu | (k->va_vcc ? 0 : SF_VALU));
    if (masks && any)
        for (uint32_t s = 0; s < S_M0; s++)
            c->sflag[s] &= (uint8_t)~(SF_READ | SF_READ_PAIR);
    if (k->va_vdst < 15 && (int32_t)(c->now - k->va_vdst - c->valu_done) > 0)
        c->valu_done = c->now - k->va_vdst;
}

static void
mark_scalar_reads(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    bool masks = x->rows >> ISA_RH_MASK_SALU & 1, all = x->rows >> ISA_RH_SGPR_SALU & 1, any = false;
    for (uint32_t i = 0; (masks || all) && i < x->nsread; i++)
        for (uint32_t s = x->sread[i].start; s < x->sread[i].start + (uint32_t)x->sread[i].n && s < S_M0;
             s++) {
            any = true;
            if (x->rk.valu && (all || (x->rk.mask >= 0 && s - (uint32_t)x->rk.mask < 2))) {
                c->sflag[s] |= SF_READ;
                c->sflag[s & ~1u] |= SF_READ_PAIR;
                c->sflag[s | 1u] |= SF_READ_PAIR;
            }
        }
    /* on gfx12 a scalar instruction that reads a scalar waits for those that vector instructions write;
     * scalar memory, and vector memory that reads a scalar, wait for everything */
    uint8_t what = SF_VALU | (x->rk.smem || x->rk.mem ? SF_SALU : 0);
    if (all && !x->rk.valu && (any || x->rk.smem))
        clear_scalars(c, what, what);
}

/* gfx12 has one state for both halves of VCC, or so compilers (LLVM 20 to 22) take it: a write of either
 * makes what the other owes its own. */
static void
write_vcc(SimChk *c, bool valu, uint32_t pc)
{
    uint8_t from = valu ? SF_SALU : SF_VALU, to = valu ? SF_VALU : SF_SALU;
    for (uint32_t s = S_VCC; s <= S_VCC + 1; s++)
        if (c->sflag[s] & from) {
            c->sflag[s] = (uint8_t)((c->sflag[s] & ~from) | to);
            c->owed |= to;
            c->swpc[s] = pc;
        }
}

static void
mark_scalar_writes(SimChk *c, const SimExt *x, uint32_t pc)
{
    bool late = x->counters; /* comes with a counter */
    for (uint32_t i = 0; i < x->nswrite; i++) {
        uint32_t first = x->swrite[i].start;
        bool vcc = first == S_VCC || first == S_VCC + 1;
        if (vcc && !late && (x->rk.valu || x->rk.salu) && (x->rows >> ISA_RH_SGPR_SALU & 1))
            write_vcc(c, x->rk.valu, pc);
        for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n && s < S_M0;
             s++) {
            if (late || !(x->rk.valu || x->rk.salu)) {
                c->sflag[s] &= (uint8_t)~(SF_SALU | SF_VALU);
            } else if (c->sflag[s] & (x->rk.valu ? SF_READ : SF_READ_PAIR)) {
                uint8_t by = x->rk.valu ? SF_VALU : SF_SALU;
                /* a scalar write comes after a vector one's */
                c->sflag[s] = (uint8_t)((c->sflag[s] & ~(x->rk.valu ? 0 : SF_VALU)) | by);
                c->owed |= by;
                c->swpc[s] = pc;
            }
            if (x->rows >> ISA_RH_MASK_SALU & 1) /* the next write has no read as a mask before it */
                c->sflag[s] &= (uint8_t)~(SF_READ | SF_READ_PAIR);
        }
    }
}

static void
mark_scalars(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    bool masks =
        x->rows >> ISA_RH_MASK_SALU & 1; /* there a read counts for the writes of later instructions */
    if (masks && x->nswrite)
        mark_scalar_writes(c, x, r->at);
    if (x->nsread || x->rk.smem)
        mark_scalar_reads(w, r);
    if (!masks && x->nswrite)
        mark_scalar_writes(c, x, r->at);
}

static inline void
note_row(SimChk *c, const SimRec *r, uint32_t row, uint32_t time)
{
    c->vprod[row] = r->ext->haz;
    c->vtime[row] = time;
    c->ctime[row] = c->ntrans;
    c->wpc[row] = r->at;
}

bool
sim_chk_rdna_plain(const SimExt *x)
{
    const IsaRdnaKind *k = &x->rk;
    return x->rows && k->valu && !k->nop && !k->trans && !k->wmma && !k->cmpx && !k->permlane &&
           !(x->rows >> ISA_RH_FORWARD & 1);
}

void
sim_chk_rdna_quick(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    c->now++;
    c->cmpx = false;
    for (uint32_t i = 0; i < x->nvwrite; i++)
        for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n; row++) {
            c->vpass[row] = x->vwrite[i].half ? x->vwrite[i].half : 3;
            note_row(c, r, row, c->now);
        }
    if (x->nsread || x->nswrite)
        mark_scalars(w, r);
}

void
sim_chk_rdna_after(SimWave *w, const SimRec *r)
{
    SimChk *c = w->chk;
    const SimExt *x = r->ext;
    const IsaRdnaKind *k = &x->rk;
    if (k->waits) {
        carry_out_wait(c, k, x->rows >> ISA_RH_MASK_SALU & 1);
        return;
    }
    if (x->use & CU_JUMP) { /* to or from a function: compilers look at one at a time */
        c->owed = 0xff;
        clear_scalars(c, SF_SALU | SF_VALU | SF_READ | SF_READ_PAIR,
                      SF_SALU | SF_VALU | SF_READ | SF_READ_PAIR);
        c->valu_done = c->now;
    }
    if (k->mem)
        c->valu_done = c->now; /* it waits for the vector instructions before it */
    if (k->valu) {
        c->now++;
        c->ntrans += k->trans;
        if (!k->nop)
            c->cmpx = k->cmpx;
        if (k->cmpx)
            c->exec_pc = r->at;
    }
    bool owed = (k->trans && (x->rows >> ISA_RH_TRANS & 1)) || k->wmma,
         forward = x->rows >> ISA_RH_FORWARD & 1;
    uint32_t time = k->valu ? c->now : c->valu_done;
    for (uint32_t i = 0; i < x->nvwrite; i++) {
        uint8_t half = x->vwrite[i].half ? x->vwrite[i].half : 3;
        for (uint32_t row = x->vwrite[i].start; row < x->vwrite[i].start + (uint32_t)x->vwrite[i].n; row++) {
            uint8_t other = /* the half that an earlier instruction owes */
                (c->vflag[row] & VF_PROD) && c->vprod[row] == HZ_TRANS ? c->vpass[row] & (uint8_t)~half : 0;
            c->vpass[row] = owed ? half | other : other ? other : half;
            for (uint32_t h = 0; forward && h < 2; h++)
                if (half >> h & 1)
                    c->half_time[h][row] = time;
            if (other && !owed)
                continue;
            c->vflag[row] = (uint8_t)((c->vflag[row] & ~VF_PROD) | (owed ? VF_PROD : 0));
            note_row(c, r, row, time);
        }
    }
    mark_scalars(w, r);
    if (k->salu && x->writes_exec && (!c->nexec || *exec_write(c, 1) != c->now)) {
        c->nexec++;
        *exec_write(c, 1) = c->now;
    }
}
