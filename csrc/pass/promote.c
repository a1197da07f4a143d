/* promote.c - pass "promote": every operand of a dot becomes a shared tile, or a value made of shared tiles
 * alone.
 *
 * requires: tile level, grid loops gone.   keeps: meaning.   breaks: nothing.
 *
 * Accumulators that are not free (see below) are summed from 0 and added at the end.
 *
 * An operand that comes from global memory (also through element-wise operations) or from another dot is
 * stored into a new shared tile just before the dot, so that a dot of global slices is the same program as
 * one with shared tiles written by hand. An operand computed from shared tiles only is computed on fragments.
 */
#include "pass/pass.h"

typedef struct Promote {
    TlIr *ir;
    TlKernelId k;
    TlMap done; /* operand (0 = A, 1 = B) and value -> shared value */
    TlOp first; /* allocations go before the kernel's first operation */
    bool ok;
} Promote;

enum { FROM_SHARED = 1, FROM_GLOBAL = 2, FROM_DOT = 4 };

static uint32_t
sources(TlIr *ir, TlVal v, int depth)
{
    TlOp o = tl_valn(ir, v)->def;
    if (tl_vtype(ir, v)->kind == TL_TY_SHARED)
        return FROM_SHARED;
    if (!o || depth > 40)
        return FROM_DOT; /* a carried value */
    const TlOpNode *n = tl_opn(ir, o);
    if (n->code == TL_OP_load)
        return tl_vtype(ir, n->in[0])->kind == TL_TY_SHARED ? FROM_SHARED : FROM_GLOBAL;
    if (n->code == TL_OP_dot || n->code == TL_OP_for || n->code == TL_OP_if || n->code == TL_OP_while ||
        n->code == TL_OP_reduce)
        return FROM_DOT;
    uint32_t s = 0;
    for (uint32_t i = 0; i < n->nin; i++)
        if (tl_vtype(ir, n->in[i])->kind == TL_TY_TILE)
            s |= sources(ir, n->in[i], depth + 1);
    return s;
}

/* A load of a whole shared tile stands for the tile itself. */
static TlVal
whole_shared(TlIr *ir, TlVal v)
{
    TlOp o = tl_valn(ir, v)->def;
    if (!o || tl_opn(ir, o)->code != TL_OP_load || tl_vtype(ir, tl_opn(ir, o)->in[0])->kind != TL_TY_SHARED ||
        tl_attr_str(ir, o, "dims", "")[0])
        return 0;
    return tl_opn(ir, o)->in[0];
}

/* A transposed view of a shared tile as a value. */
static TlVal
view_value(TlBuilder *b, TlVal v)
{
    TlIr *ir = b->ir;
    TlOp o = tl_valn(ir, v)->def;
    if (!o || tl_opn(ir, o)->code != TL_OP_trans || tl_vtype(ir, v)->kind != TL_TY_SHARED)
        return v;
    TlVal base = tl_opn(ir, o)->in[0];
    const TlTypeInfo bt = *tl_vtype(ir, base), vt = *tl_vtype(ir, v);
    const TlAttr *p = tl_attr(ir, o, "perm");
    int64_t perm[TL_MAX_RANK];
    uint32_t n = p && p->kind == TL_ATTR_INTS ? p->u.ints.n : 0;
    if (n)
        memcpy(perm, p->u.ints.v, n * sizeof *perm);
    TlVal l = tl_build1t(b, TL_OP_load, tl_type_tile(ir, bt.elem, bt.rank, bt.shape), 1, base);
    if (!l || !tl_attr_set_str(ir, tl_valn(ir, l)->def, "dims", ""))
        return 0;
    TlVal t = tl_build1t(b, TL_OP_trans, tl_type_tile(ir, vt.elem, vt.rank, vt.shape), 1, l);
    return t && tl_attr_set_ints(ir, tl_valn(ir, t)->def, "perm", perm, n) ? t : 0;
}

static TlVal
stage_value(Promote *p, TlBuilder *at, TlVal v, uint32_t f)
{
    TlIr *ir = p->ir;
    uint64_t have, key = (uint64_t)f << 32 | v; /* as A and as B it wants another layout */
    if (tl_map_get(&p->done, key, &have))
        return (TlVal)have;
    TlTypeInfo t = *tl_vtype(ir, v);
    t.kind = TL_TY_SHARED;
    TlType ty = tl_type(ir, &t);
    TlBuilder top = {ir, ir->kernels.data[p->k].body, tl_blockn(ir, ir->kernels.data[p->k].body)->first,
                     at->loc};
    TlVal sh = ty ? tl_build1t(&top, TL_OP_alloc_shared, ty, 0) : 0;
    TlOp s = sh ? tl_build(at, TL_OP_store, (TlVal[]){sh, v}, 2, NULL, 0) : 0;
    if (!s || !tl_attr_set_str(ir, s, "dims", "") || !tl_map_put(&p->done, key, sh))
        return 0;
    return sh;
}

static bool
promote_dot(TlIr *ir, TlOp o, void *self)
{
    Promote *p = self;
    if (tl_opn(ir, o)->code != TL_OP_dot)
        return true;
    TlVal in[3];
    memcpy(in, tl_opn(ir, o)->in, sizeof in);
    TlBuilder b = {ir, tl_opn(ir, o)->block, o, tl_opn(ir, o)->loc};
    for (uint32_t f = 0; f < 2; f++) {
        in[f] = view_value(&b, in[f]);
        if (!in[f])
            return p->ok = false;
        if (tl_vtype(ir, in[f])->kind == TL_TY_SHARED)
            continue;
        TlVal sh = whole_shared(ir, in[f]);
        if (sh) {
            in[f] = sh;
            continue;
        }
        if (sources(ir, in[f], 0) & (FROM_GLOBAL | FROM_DOT) || !sources(ir, in[f], 0))
            in[f] = stage_value(p, &b, in[f], f);
        if (!in[f])
            return p->ok = false;
    }
    return p->ok = tl_op_set_in(ir, o, in, 3);
}

/* ---- accumulators that are not free
 * --------------------------------------------------------------------------------
 *
 * acc += dot leaves acc alone where the product is not valid, and acc keeps its extent. An accumulator that
 * starts as a constant is free: it takes the product's extent. One that was loaded is not: the product is
 * summed from 0, filled with 0 where it is not valid, and added at the end.
 */

static bool
is_free(TlIr *ir, TlVal v, int depth)
{
    TlOp o = tl_valn(ir, v)->def;
    if (depth > 20)
        return true;
    if (!o) { /* carried by a loop: as it starts */
        TlOp loop = tl_blockn(ir, tl_valn(ir, v)->block)->parent;
        uint32_t i = tl_valn(ir, v)->index;
        if (!loop || tl_opn(ir, loop)->code != TL_OP_for || i == 0)
            return !loop ? false : tl_opn(ir, loop)->code != TL_OP_for;
        return is_free(ir, tl_opn(ir, loop)->in[3 + i - 1], depth + 1);
    }
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_load)
        return false;
    if (n.code == TL_OP_dot)
        return is_free(ir, n.in[2], depth + 1);
    if (n.code == TL_OP_for)
        return is_free(ir, n.in[3 + tl_valn(ir, v)->index], depth + 1);
    if (tl_op_row(n.code)->traits & TL_T_ELEMENTWISE)
        for (uint32_t i = 0; i < n.nin; i++)
            if (tl_vtype(ir, n.in[i])->kind == TL_TY_TILE && !is_free(ir, n.in[i], depth + 1))
                return false;
    return true;
}

static TlVal
zero_of(TlBuilder *b, TlType t)
{
    return tl_elem_is_float(tl_tinfo(b->ir, t)->elem) ? tl_const_float(b, t, 0.0) : tl_const_int(b, t, 0);
}

/* start + sum.fill(0), at the builder's place. */
static TlVal
add_filled(TlBuilder *b, TlVal start, TlVal sum)
{
    TlIr *ir = b->ir;
    TlType t = tl_valn(ir, sum)->type, st = tl_type_scalar(ir, tl_vtype(ir, sum)->elem);
    TlVal f = tl_build1t(b, TL_OP_fill, t, 2, sum, zero_of(b, st));
    return f ? tl_build1(b, TL_OP_add, 2, start, f) : 0;
}

/* The value arg, a carried value of loop, comes to at the end of the body through dots alone. */
static bool
chain_of_dots(TlIr *ir, TlVal arg, TlVal end)
{
    while (end != arg) {
        TlOp o = tl_valn(ir, end)->def;
        if (!o || tl_opn(ir, o)->code != TL_OP_dot)
            return false;
        end = tl_opn(ir, o)->in[2];
    }
    return true;
}

static bool
detach(Promote *p, TlOp loop, uint32_t i)
{
    TlIr *ir = p->ir;
    TlVal init = tl_opn(ir, loop)->in[3 + i], res = tl_opn(ir, loop)->res[i];
    TlOp next = tl_opn(ir, loop)->next;
    TlBuilder before = {ir, tl_opn(ir, loop)->block, loop, tl_opn(ir, loop)->loc};
    TlVal zero = zero_of(&before, tl_valn(ir, init)->type);
    if (!zero)
        return false;
    tl_opn(ir, loop)->in[3 + i] = zero;
    TlBuilder after = {ir, tl_opn(ir, loop)->block, next, tl_opn(ir, loop)->loc};
    /* uses first: the addition itself must keep the loop's result */
    TlOp f = tl_build(&after, TL_OP_fill,
                      (TlVal[]){res, zero_of(&after, tl_type_scalar(ir, tl_vtype(ir, res)->elem))}, 2,
                      &tl_valn(ir, res)->type, 1);
    TlVal sum = f ? tl_build1(&after, TL_OP_add, 2, init, tl_result(ir, f, 0)) : 0;
    if (!sum)
        return false;
    tl_replace_uses(ir, p->k, res, sum);
    tl_opn(ir, f)->in[0] = res;
    return true;
}

static bool
free_accumulator(TlIr *ir, TlOp o, void *self)
{
    Promote *p = self;
    if (tl_opn(ir, o)->code != TL_OP_dot)
        return true;
    TlVal acc = tl_opn(ir, o)->in[2];
    TlOp def = tl_valn(ir, acc)->def;
    if (is_free(ir, acc, 0) || (def && tl_opn(ir, def)->code == TL_OP_dot))
        return true; /* of a chain the first is looked at */
    if (!def) {
        TlOp loop = tl_blockn(ir, tl_valn(ir, acc)->block)->parent;
        uint32_t i = tl_valn(ir, acc)->index - 1;
        TlOp y = tl_blockn(ir, tl_valn(ir, acc)->block)->last;
        if (loop && tl_opn(ir, loop)->code == TL_OP_for && tl_count_uses(ir, p->k, acc) == 1 &&
            chain_of_dots(ir, acc, tl_opn(ir, y)->in[i]))
            return p->ok = detach(p, loop, i);
    }
    TlBuilder at = {ir, tl_opn(ir, o)->block, o, tl_opn(ir, o)->loc};
    TlVal zero = zero_of(&at, tl_valn(ir, acc)->type), res = tl_opn(ir, o)->res[0];
    if (!zero)
        return p->ok = false;
    tl_opn(ir, o)->in[2] = zero;
    at.before = tl_opn(ir, o)->next;
    TlVal sum = add_filled(&at, acc, res);
    if (!sum)
        return p->ok = false;
    TlOp fill = tl_valn(ir, tl_opn(ir, tl_valn(ir, sum)->def)->in[1])->def;
    tl_replace_uses(ir, p->k, res, sum);
    tl_opn(ir, fill)->in[0] = res;
    return true;
}

bool
tl_pass_promote(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Promote p = {.ir = ir, .k = *kernel, .ok = true};
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD)
        return true;
    tl_map_init(&p.done, ir->arena);
    if (!tl_walk(ir, ir->kernels.data[*kernel].body, free_accumulator, &p) || !p.ok ||
        !tl_walk(ir, ir->kernels.data[*kernel].body, promote_dot, &p) || !p.ok)
        return ir->diag->nerrors ? false : tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
    return true;
}
