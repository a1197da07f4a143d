/* lower_reduce.c - reductions along one dimension: in registers, then between lanes (butterflies by
 * ds_bpermute), then between waves through the LDS scratch. Elements outside the operand's extent count as
 * the identity. 16-bit floats are added and multiplied in f32 and rounded once at the end; every lane gets
 * the same bits (the tree is symmetric).
 */
#include "pass/lower.h"

typedef struct Reduce {
    const char *kind;
    TlElem elem; /* what is computed in */
    TlOpcode op;
    double ident; /* for floats */
    int64_t iident;
} Reduce;

static int64_t
int_limit(TlElem e, bool low)
{
    uint32_t bits = tl_elem_bits(e);
    if (tl_elem_kind(e) == TL_KIND_UINT)
        return low ? 0 : bits == 64 ? -1 : (int64_t)((1ull << bits) - 1);
    return low ? (int64_t)(~0ull << (bits - 1)) : (int64_t)((1ull << (bits - 1)) - 1);
}

static bool
describe(TlElem e, const char *kind, Reduce *r)
{
    *r = (Reduce){.kind = kind, .elem = e};
    bool f = tl_elem_is_float(e);
    if (!strcmp(kind, "sum") || !strcmp(kind, "prod")) {
        r->op = kind[0] == 's' ? TL_OP_add : TL_OP_mul;
        r->ident = r->op == TL_OP_mul;
        r->iident = r->op == TL_OP_mul;
        if (f && tl_elem_bits(e) < 32)
            r->elem = TL_ELEM_F32;
        else if (!f && tl_elem_bits(e) < 32)
            r->elem = tl_elem_kind(e) == TL_KIND_UINT ? TL_ELEM_U32 : TL_ELEM_I32;
    } else if (!strcmp(kind, "max") || !strcmp(kind, "min")) {
        bool mx = kind[1] == 'a';
        r->op = mx ? TL_OP_max : TL_OP_min;
        r->ident = mx ? -__builtin_inf() : __builtin_inf();
        if (f && tl_elem_bits(e) < 32)
            r->elem = TL_ELEM_F32;
        else if (!f && tl_elem_bits(e) < 32)
            r->elem = tl_elem_kind(e) == TL_KIND_UINT ? TL_ELEM_U32 : TL_ELEM_I32;
        r->iident = int_limit(r->elem, mx);
    } else if (!strcmp(kind, "any") || !strcmp(kind, "all") || !strcmp(kind, "xor")) {
        r->op = kind[0] == 'x' ? TL_OP_xor : kind[1] == 'n' ? TL_OP_or : TL_OP_and;
        r->iident = kind[1] == 'l' ? 1 : 0;
        if (tl_elem_bits(e) < 32)
            r->elem = tl_elem_kind(e) == TL_KIND_UINT ? TL_ELEM_U32 : TL_ELEM_I32;
    } else {
        return false;
    }
    return true;
}

static TlVal
combine(Lw *lw, const Reduce *r, TlVal a, TlVal b)
{
    return a && b ? lw_pure(lw, r->op, lw_ty(lw, r->elem), (TlVal[]){a, b}, 2, NULL, 0) : 0;
}

static TlVal
as_elem(Lw *lw, TlVal v, TlElem e)
{
    return v && tl_vtype(lw->ir, v)->elem != e ? lw_pure(lw, TL_OP_cast, lw_ty(lw, e), &v, 1, NULL, 0) : v;
}

/* The value of lane `lane ^ mask`. 64-bit values go in two halves. */
static TlVal
from_lane(Lw *lw, TlVal v, uint32_t mask)
{
    TlElem e = tl_vtype(lw->ir, v)->elem;
    TlVal addr = lw_bin(lw, TL_OP_shl, lw_bin(lw, TL_OP_xor, lw->lane, lw_int(lw, TL_ELEM_I32, mask)),
                        lw_int(lw, TL_ELEM_I32, 2));
    TlType i32 = lw_ty(lw, TL_ELEM_I32);
    if (tl_elem_bits(e) == 32) {
        TlVal w = lw_pure(lw, TL_OP_bitcast, i32, &v, 1, NULL, 0);
        w = w ? lw_op1(lw, TL_OP_ds_bpermute, i32, (TlVal[]){addr, w}, 2) : 0;
        lw_mark_inner(lw, w);
        return w ? lw_pure(lw, TL_OP_bitcast, lw_ty(lw, e), &w, 1, NULL, 0) : 0;
    }
    TlVal h[2], w = lw_pure(lw, TL_OP_bitcast, tl_type_vec(lw->ir, TL_ELEM_I32, 2), &v, 1, NULL, 0);
    for (uint32_t i = 0; i < 2; i++) {
        h[i] = lw_extract(lw, w, i, 0);
        h[i] = h[i] ? lw_op1(lw, TL_OP_ds_bpermute, i32, (TlVal[]){addr, h[i]}, 2) : 0;
        lw_mark_inner(lw, h[i]);
    }
    w = lw_concat(lw, TL_ELEM_I32, h, 2, 2);
    return w ? lw_pure(lw, TL_OP_bitcast, lw_ty(lw, e), &w, 1, NULL, 0) : 0;
}

/* Every wave puts its n values a lane into the scratch; each reads those of the waves that differ in the
 * mask's bits. */
static bool
across_waves(Lw *lw, const Reduce *r, TlVal *v, uint32_t n, uint32_t mask)
{
    uint32_t es = tl_elem_bytes(r->elem), plane = lw->waves * lw->tgt->wave * es;
    uint32_t base = lw_scratch(lw, plane * n);
    TlVal lane = lw_bin(lw, TL_OP_mul, lw->lane, lw_int(lw, TL_ELEM_I32, es));
    TlType vt = tl_type_vec(lw->ir, r->elem, 1);
    for (uint32_t b = 0; b < lw->wave_bits; b++) {
        if (!(mask >> b & 1))
            continue;
        TlVal me = lw_bin(lw, TL_OP_mul, lw->wave, lw_int(lw, TL_ELEM_I32, (int64_t)lw->tgt->wave * es));
        TlVal peer = lw_bin(lw, TL_OP_xor, lw->wave, lw_int(lw, TL_ELEM_I32, 1 << b));
        peer = lw_bin(lw, TL_OP_mul, peer, lw_int(lw, TL_ELEM_I32, (int64_t)lw->tgt->wave * es));
        TlVal to = lw_bin(lw, TL_OP_add, lane, me), from = lw_bin(lw, TL_OP_add, lane, peer);
        if (!lw_sync_write(lw, 1ull << LW_SCRATCH_BIT))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            TlVal x = lw_concat(lw, r->elem, &v[i], 1, 1);
            TlVal at = to;
            uint32_t imm = lw_lds_imm(lw, &at, base + i * plane);
            TlOp o = lw_op(lw, TL_OP_lds_store, (TlVal[]){at, x}, 2, NULL, 0);
            if (!o || !tl_attr_set_int(lw->ir, o, "imm", imm) || !tl_attr_set_int(lw->ir, o, "align", es))
                return false;
        }
        if (!lw_sync_read(lw, 1ull << LW_SCRATCH_BIT))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            TlVal at = from;
            uint32_t imm = lw_lds_imm(lw, &at, base + i * plane);
            TlVal x = lw_op1(lw, TL_OP_lds_load, vt, &at, 1);
            TlOp o = x ? tl_valn(lw->ir, x)->def : 0;
            if (!o || !tl_attr_set_int(lw->ir, o, "imm", imm) || !tl_attr_set_int(lw->ir, o, "align", es))
                return false;
            lw_mark_inner(lw, x);
            v[i] = combine(lw, r, v[i], lw_extract(lw, x, 0, 0));
        }
    }
    return true;
}

/* In registers: result register j from the operand's registers that differ from it along the dimension only.
 */
static TlVal
in_registers(Lw *lw, const Reduce *r, const LwTile *t, const LwExt *ext, uint32_t base, uint32_t regs)
{
    TlVal sum = 0;
    for (uint32_t m = regs;; m = (m - 1) & regs) {
        uint32_t reg = base | (regs ^ m);
        TlVal x = as_elem(lw, lw_tile_elem(lw, t, reg), r->elem);
        TlVal in = lw_inside(lw, &t->lay, reg, ext);
        if (in) {
            TlBuilder top = {lw->ir, lw->entry, tl_blockn(lw->ir, lw->entry)->first, {0}};
            TlType ty = lw_ty(lw, r->elem);
            TlVal id = tl_elem_is_float(r->elem) ? tl_const_float(&top, ty, r->ident)
                                                 : tl_const_int(&top, ty, r->iident);
            x = x && id ? lw_pure(lw, TL_OP_select, ty, (TlVal[]){in, x, id}, 3, NULL, 0) : 0;
        }
        if (!x)
            return 0;
        sum = sum ? combine(lw, r, sum, x) : x;
        if (!m)
            break;
    }
    return sum;
}

/* The operand as it is held, with the extent along the dimension alone. */
static LwTile *
reduce_operand(Lw *lw, TlOp op, TlDim dim, LwExt *full, LwExt *along)
{
    TlVal v = tl_opn(lw->ir, op)->in[0];
    LwVal *src = lw_val(lw, v);
    if (!src || !src->nlay) {
        lw_fail(lw, op, TL_E_INTERNAL, "a reduced tile has no layout");
        return NULL;
    }
    TlLayout l = src->reduce_set ? src->reduce_lay : src->anchored ? src->anchor : src->lay[0];
    LwTile *t = lw_tile(lw, v, &l);
    if (!t || !lw_ext(lw, v, full))
        return NULL;
    uint32_t d = (uint32_t)dim - TL_DIM_0;
    int64_t cap = tl_vtype(lw->ir, v)->shape[d];
    *along = (LwExt){.when = full->when}; /* other dimensions may hold anything outside */
    along->lo[d] = full->lo[d];
    along->hi[d] = full->hi[d];
    if (!along->hi[d] && (cap & (cap - 1)))
        along->hi[d] = lw_int(lw, TL_ELEM_I32, cap);
    return t;
}

/* The reduced tile, its extent, and the layouts that it was asked for. */
static bool
set_reduced(Lw *lw, TlOp op, TlDim dim, const LwTile *t, const LwExt *full, const TlVal *v, uint32_t n)
{
    TlVal r = tl_opn(lw->ir, op)->res[0];
    uint32_t rank = tl_vtype(lw->ir, tl_opn(lw->ir, op)->in[0])->rank;
    TlLayout out;
    if (!tl_layout_reduced(&out, &t->lay, dim))
        return lw_fail(lw, op, TL_E_INTERNAL, "layout of a reduction");
    for (uint32_t d = (uint32_t)dim + 1; d < TL_DIM_0 + rank; d++) /* the dims behind it move up */
        if (!tl_layout_rename_out(&out, (TlDim)d, (TlDim)(d - 1)))
            return lw_fail(lw, op, TL_E_INTERNAL, "layout of a reduction");
    LwTile *res = lw_tile_new(lw, &out, t->elem, 1);
    for (uint32_t j = 0; res && j < n; j++)
        if (!(res->v[j] = lw_concat(lw, t->elem, &v[j], 1, 1)))
            return false;
    LwVal *rv = lw_val(lw, r);
    if (!res || !rv)
        return false;
    rv->ext = (LwExt){.when = full->when};
    for (uint32_t d = 0, k = 0; d < rank; d++)
        if (TL_DIM_0 + d != (uint32_t)dim) {
            rv->ext.lo[k] = full->lo[d];
            rv->ext.hi[k++] = full->hi[d];
        }
    rv->ext_known = true;
    if (!lw_set_tile(lw, r, res))
        return false;
    for (uint32_t i = 0; i < lw_val(lw, r)->nlay; i++) {
        TlLayout want = lw_val(lw, r)->lay[i];
        if (!lw_tile(lw, r, &want))
            return false;
    }
    return true;
}

/* Rank 1: the whole tile to one scalar; else a tile without the dimension, in the layout that falls out. */
bool
lw_reduce(Lw *lw, TlOp op)
{
    const TlOpNode n = *tl_opn(lw->ir, op);
    TlDim dim = (TlDim)(TL_DIM_0 + tl_attr_int(lw->ir, op, "axis", 0));
    LwExt full, along;
    Reduce r;
    uint32_t regs, lanes, waves;
    LwTile *t = reduce_operand(lw, op, dim, &full, &along);
    if (!t)
        return false;
    if (!describe(t->elem, tl_attr_str(lw->ir, op, "kind", "sum"), &r) ||
        !tl_layout_reduce_masks(&t->lay, dim, &regs, &lanes, &waves))
        return lw_fail(lw, op, TL_E_UNSUPPORTED, "this reduction is not lowered yet");
    lw->b.loc = n.loc;
    uint32_t nb = tl_layout_in_bits(&t->lay, TL_DIM_REG),
             nout = 1u << (nb - (uint32_t)__builtin_popcount(regs));
    TlVal *v = TL_NEW_N(lw->arena, TlVal, nout);
    if (!v)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t j = 0; j < nout; j++) {
        uint32_t base = 0, at = 0; /* spread the bits of j over the register bits that stay */
        for (uint32_t b = 0; b < nb; b++)
            if (!(regs >> b & 1))
                base |= (j >> at++ & 1) << b;
        v[j] = in_registers(lw, &r, t, &along, base, regs);
        for (uint32_t b = 0; b < lw->lane_bits && v[j]; b++)
            if (lanes >> b & 1)
                v[j] = combine(lw, &r, v[j], from_lane(lw, v[j], 1u << b));
        if (!v[j])
            return false;
    }
    if (waves && !across_waves(lw, &r, v, nout, waves))
        return false;
    bool tile = tl_vtype(lw->ir, n.res[0])->kind == TL_TY_TILE;
    for (uint32_t j = 0; j < nout; j++)
        v[j] = as_elem(lw, tile ? v[j] : lw_uniform(lw, v[j]), t->elem);
    if (tile)
        return set_reduced(lw, op, dim, t, &full, v, nout);
    lw_mark_inner(lw, v[0]);
    return v[0] && tl_map_put(&lw->scal, n.res[0], v[0]);
}
