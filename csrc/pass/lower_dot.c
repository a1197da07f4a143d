/* lower_dot.c - matrix multiplication: fragments from LDS or from registers, matrix instructions in k order.
 */
#include "pass/lower.h"

/* Access-order register of dot-order register r of operand f. */
static uint32_t
access_reg(const LwDotPlan *p, uint32_t f, uint32_t r)
{
    uint32_t nb = tl_layout_in_bits(&p->frag[f], TL_DIM_REG), a = 0;
    for (uint32_t i = 0; i < nb; i++)
        if ((r >> p->perm[f][i]) & 1)
            a |= 1u << i;
    return a;
}

/* First access-order register of the operand of instruction (mt, nt, ks), and how many elements. */
uint32_t
lw_frag_reg(const LwDotPlan *p, uint32_t f, uint32_t mt, uint32_t nt, uint32_t ks, uint32_t *count)
{
    TlDotSlice s = tl_dot_slice(&p->d, f ? TL_FRAG_B : TL_FRAG_A, mt, nt, ks);
    *count = s.count;
    return access_reg(p, f, s.reg);
}

/* One matrix instruction. a, b: operand values as the instruction takes them. */
TlVal
lw_mma(Lw *lw, const LwDotPlan *p, TlVal a, TlVal b, TlVal c)
{
    TlVal in[3] = {p->d.swapped ? b : a, p->d.swapped ? a : b, c};
    TlVal r = lw_op1(lw, TL_OP_mma, c ? tl_valn(lw->ir, c)->type : 0, in, 3);
    if (!r || !tl_attr_set_str(lw->ir, tl_valn(lw->ir, r)->def, "intrinsic", p->d.mma->name))
        return 0;
    lw_mark_inner(lw, r);
    return r;
}

TlVal
lw_frag_value(Lw *lw, const LwTile *t, uint32_t reg, uint32_t count)
{
    if (count > t->chunk) /* narrower reads than the instruction takes */
        return lw_tile_chunk_at(lw, t, NULL, reg, count);
    return lw_extract(lw, t->v[reg / t->chunk], reg % t->chunk, count == 1 ? 0 : count);
}

/* What is computed on fragments: f(0) in the gap of the k axis must be no summand. */
static LwTile *
computed_operand(Lw *lw, TlVal v, const LwDotPlan *p, uint32_t f)
{
    TlOp o = tl_valn(lw->ir, v)->def;
    LwTile *t = lw_tile(lw, v, &p->frag[f]);
    LwExt e, k = {0};
    if (!t || !lw_ext(lw, v, &e))
        return NULL;
    if (o && tl_opn(lw->ir, o)->code == TL_OP_load)
        return t; /* zeros already */
    uint32_t d = tl_vtype(lw->ir, v)->rank - (f ? 2 : 1);
    k.lo[d] = e.lo[d];
    k.hi[d] = e.hi[d];
    k.when = e.when;
    return lw_masked_zero(lw, t, &k);
}

static LwTile *
operand_tile(Lw *lw, TlOp op, const LwDotPlan *p, uint32_t f)
{
    TlVal v = tl_opn(lw->ir, op)->in[f];
    if (tl_vtype(lw->ir, v)->kind != TL_TY_SHARED)
        return computed_operand(lw, v, p, f);
    LwShared *s = lw_shared(lw, v);
    LwLdsAcc *a = s ? lw_lds_acc(lw, s, op, f) : NULL;
    return a && lw_lds_solve(lw, s) ? lw_lds_read(lw, s, a) : NULL;
}

/* A dot at its place, everything in order. */
LwTile *
lw_dot(Lw *lw, TlOp op)
{
    LwDotPlan *p = lw_dot_plan(lw, op);
    uint32_t cn = tl_dot_slice(&p->d, TL_FRAG_C, 0, 0, 0).count, count;
    lw->b.loc = lw_loc(lw, op);
    LwTile *a = operand_tile(lw, op, p, 0), *b = a ? operand_tile(lw, op, p, 1) : NULL;
    LwTile *c = b ? lw_tile_chunked(lw, tl_opn(lw->ir, op)->in[2], &p->c, cn) : NULL;
    LwTile *r = c ? lw_tile_new(lw, &p->c, c->elem, cn) : NULL;
    if (!r)
        return NULL;
    memcpy(r->v, c->v, c->nchunk * sizeof *c->v);
    for (uint32_t ks = 0; ks < tl_dot_steps_k(&p->d); ks++)
        for (uint32_t mt = 0; mt < tl_dot_tiles_m(&p->d); mt++)
            for (uint32_t nt = 0; nt < tl_dot_tiles_n(&p->d); nt++) {
                uint32_t ci = tl_dot_slice(&p->d, TL_FRAG_C, mt, nt, 0).reg / cn;
                uint32_t ra = lw_frag_reg(p, 0, mt, nt, ks, &count);
                TlVal av = lw_frag_value(lw, a, ra, count);
                uint32_t rb = lw_frag_reg(p, 1, mt, nt, ks, &count);
                r->v[ci] = lw_mma(lw, p, av, lw_frag_value(lw, b, rb, count), r->v[ci]);
                if (!r->v[ci])
                    return NULL;
            }
    return r;
}
