/* promote.c - pass "promote": every operand of a dot becomes a shared tile, or a value made of shared tiles
 * alone.
 *
 * requires: tile level, grid loops gone.   keeps: meaning.   breaks: nothing.
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

bool
tl_pass_promote(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Promote p = {.ir = ir, .k = *kernel, .ok = true};
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD)
        return true;
    tl_map_init(&p.done, ir->arena);
    if (!tl_walk(ir, ir->kernels.data[*kernel].body, promote_dot, &p) || !p.ok)
        return ir->diag->nerrors ? false : tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
    return true;
}
