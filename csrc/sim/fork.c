/* fork.c - gfx9's forks and joins of a divergent wave, and VSKIP.
 *
 * A fork runs the smaller half of a wave first and keeps the other on a stack in the scalars: entry n is
 * s[4n .. 4n+3] = lanes, PC; n is CSP, MODE[31:29]. VSKIP (MODE[28]) makes vector instructions no-ops: a
 * record table of its own, so that nothing is asked in the usual one.
 */
#include "sim/core.h"

#define BODY(name) static const SimRec *k_##name(SimWave *w, const SimRec *r)

enum { CSP_SHIFT = 29, VSKIP_BIT = 28 };

/* Lanes of `pass` go to `target`, the others on behind r. */
static const SimRec *
fork_wave(SimWave *w, const SimRec *r, uint64_t pass, uint64_t target)
{
    uint64_t exec = EXEC(w), mask_pass = pass & exec, mask_fail = ~pass & exec;
    if (mask_pass == exec)
        return sim_jump(w, r, target);
    if (mask_fail == exec)
        return NEXT(r);
    uint32_t csp = w->mode >> CSP_SHIFT, *top = w->s + 4 * csp;
    bool fail_first = __builtin_popcountll(mask_fail) < __builtin_popcountll(mask_pass);
    put64(top, fail_first ? mask_pass : mask_fail);
    put64(top + 2, fail_first ? target : rec_pc(w, r) + 4);
    w->mode = (w->mode & ~(7u << CSP_SHIFT)) | ((csp + 1) & 7) << CSP_SHIFT;
    SET_EXEC(w, fail_first ? mask_fail : mask_pass);
    return fail_first ? NEXT(r) : sim_jump(w, r, target);
}

BODY(i_fork)
{
    return fork_wave(w, r, s64(w, r->src[0]), rec_pc(w, r) + 4 + (uint64_t)((int64_t)(int16_t)r->imm * 4));
}
BODY(g_fork)
{
    return fork_wave(w, r, s64(w, r->src[0]), s64(w, r->src[1]));
}
BODY(join)
{
    uint32_t csp = w->mode >> CSP_SHIFT;
    if (csp == s32(w, r->src[0]))
        return NEXT(r);
    csp = (csp - 1) & 7;
    w->mode = (w->mode & ~(7u << CSP_SHIFT)) | csp << CSP_SHIFT;
    SET_EXEC(w, get64(w->s + 4 * csp));
    return sim_jump(w, r, get64(w->s + 4 * csp + 2));
}
BODY(setvskip)
{
    uint32_t on = s32(w, r->src[0]) >> (s32(w, r->src[1]) & 31) & 1;
    return sim_set_mode(w, r, (w->mode & ~(1u << VSKIP_BIT)) | on << VSKIP_BIT);
}

bool
sim_build_fork(SimBuild *b)
{
    static const struct {
        const char *name;
        SimBody body;
    } rows[] = {
        {"s_cbranch_i_fork", k_i_fork},
        {"s_cbranch_g_fork", k_g_fork},
        {"s_cbranch_join", k_join},
        {"s_setvskip", k_setvskip},
    };
    uint32_t i = 0, n = 0;
    while (i < TL_COUNT(rows) && strcmp(rows[i].name, b->name))
        i++;
    if (i == TL_COUNT(rows))
        return false;
    b->r->body = rows[i].body;
    b->x->poison = POI_NONE;
    for (uint32_t k = 0; k < b->in->nopnds && n < 2; k++) {
        const IsaOpnd *o = &b->in->opnd[k];
        if (o->kind == ISA_OPND_IMM)
            b->r->imm = (int32_t)o->bits;
        else if (!(o->flags & ISA_IMPLICIT))
            b->r->src[n++] = sim_build_src(b, o);
    }
    return true;
}

static const SimRec *
body_skipped(SimWave *w, const SimRec *r)
{
    (void)w;
    return NEXT(r);
}

/* In MODE_SKIP: is this a vector instruction? Then it has no effect and nothing of it is checked. */
bool
sim_build_skipped(SimBuild *b)
{
    const uint32_t vector = ISA_C_VALU | ISA_C_VMEM | ISA_C_DS | ISA_C_MFMA | ISA_C_FLAT;
    if (!(b->cls & MODE_SKIP) || !(isa_op_info(b->in->op)->classes & vector))
        return false;
    *b->x = (SimExt){.in = b->x->in};
    b->x->poison = POI_NONE;
    SimRec *r = b->r;
    *r = (SimRec){.body = body_skipped, .ext = b->x, .size = r->size, .op = r->op, .at = r->at};
    return true;
}
