/* lower_regs.c - refuses kernels whose tiles cannot be in registers together, before anything is emitted.
 *
 * What a loop carries and what a dot accumulates is live at once, so the registers of a lane that it needs at
 * the least (no copy, no padding) must be fewer than a wave of such a workgroup has. Spilling it would take
 * the code generator minutes and the kernel for ever.
 */
#include "pass/lower.h"

#include <stdio.h>

/* Registers of a lane for a tile that is spread over the whole workgroup. */
static uint64_t
least_registers(const Lw *lw, TlVal v)
{
    const TlTypeInfo *t = tl_vtype(lw->ir, v);
    uint64_t bytes = tl_elem_bytes(t->elem), lanes = (uint64_t)lw->waves * lw->tgt->wave;
    if (t->kind != TL_TY_TILE)
        return 0;
    for (uint32_t i = 0; i < t->rank; i++)
        bytes *= (uint64_t)t->shape[i]; /* a tile has fewer than 2^31 elements */
    return (bytes + 4 * lanes - 1) / (4 * lanes);
}

static uint64_t
registers_of_a_wave(const Lw *lw)
{
    uint32_t per_simd = (lw->waves + lw->tgt->simds - 1) / lw->tgt->simds;
    uint32_t most = (uint32_t)lw->tgt->max_vgprs + lw->tgt->max_agprs, share = lw->tgt->vgpr_file / per_simd;
    return TL_MIN(most, share);
}

static bool
op_fits(TlIr *ir, TlOp o, void *self)
{
    Lw *lw = self;
    const TlOpNode *n = tl_opn(ir, o);
    uint64_t need = 0, most = 0, have = registers_of_a_wave(lw);
    uint32_t at = 0;
    if (n->code != TL_OP_for && n->code != TL_OP_while && n->code != TL_OP_dot)
        return true;
    for (uint32_t i = 0; i < n->nres; i++) {
        uint64_t r = least_registers(lw, n->res[i]);
        need += r;
        if (r > most)
            most = r, at = i;
    }
    if (need < have)
        return true;
    const TlTypeInfo *t = tl_vtype(ir, n->res[at]);
    char shape[128];
    int len = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        len += snprintf(shape + len, sizeof shape - (size_t)len, "%lldx", (long long)t->shape[i]);
    lw_fail(
        lw, o, TL_E_REG_LIMIT,
        "%s %llu registers of each lane, %llu of them for a %s%s tile; %s has %llu for a wave of a workgroup "
        "of %u wave%s",
        n->code == TL_OP_dot ? "the result of dot needs" : "the values that the loop carries need",
        (unsigned long long)need, (unsigned long long)most, shape, tl_elem_name(t->elem), lw->tgt->name,
        (unsigned long long)have, lw->waves, lw->waves == 1 ? "" : "s");
    return tl_hint(lw->diag,
                   lw->waves < 4 ? "use smaller tiles or more warps (num_warps=)" : "use smaller tiles");
}

bool
lw_registers_fit(Lw *lw)
{
    return tl_walk(lw->ir, lw->ir->kernels.data[lw->src].body, op_fits, lw);
}
