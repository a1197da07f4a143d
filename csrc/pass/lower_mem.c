/* lower_mem.c - global memory accesses of a tile: a buffer descriptor whose range is exactly the tensor (from
 * a 64-bit base that holds the uniform part of the address), a 32-bit offset a lane, masks by an offset that
 * is out of range for certain (loads give 0, stores are dropped), and the widest vector that cannot leave the
 * tensor.
 *
 * Range rule relied on (CDNA, raw buffers): each dword of an access is checked on its own against num_records
 * - soffset, a dword that straddles the end is out of range as a whole.
 */
#include "pass/lower.h"

#define OOB_OFFSET ((int64_t)INT32_MIN) /* as unsigned 2^31: beyond any descriptor made here */
enum { MAX_RECORDS = 0x7ffffffc };

LwParam *
lw_param(Lw *lw, TlVal buf)
{
    for (uint32_t i = 0; i < lw->params.len; i++)
        if (lw->params.data[i].src == buf)
            return &lw->params.data[i];
    return NULL;
}

static const char *
access_dims(const TlIr *ir, TlOp op)
{
    return tl_attr_str(ir, op, "dims", "");
}

/* Buffer dimension, first operand and kind ('s', 'e', 't') behind tile dimension t of a load or store. */
bool
lw_access_dim(const TlIr *ir, TlOp op, uint32_t t, uint32_t *bd, uint32_t *operand, char *kind)
{
    const char *d = access_dims(ir, op);
    uint32_t at = tl_opn(ir, op)->code == TL_OP_store ? 2 : 1, td = 0;
    for (uint32_t i = 0; d[i]; i++) {
        if (d[i] != 'i') {
            if (td == t) {
                *bd = i;
                *operand = at;
                *kind = d[i];
                return true;
            }
            td++;
        }
        at += d[i] == 'e' ? 2 : 1;
    }
    return false;
}

static int64_t
access_step(const TlIr *ir, TlOp op, uint32_t bd)
{
    const TlAttr *a = tl_attr(ir, op, "steps");
    return a && a->kind == TL_ATTR_INTS && bd < a->u.ints.n ? a->u.ints.v[bd] : 1;
}

static TlType
access_tile_type(const TlIr *ir, TlOp op)
{
    const TlOpNode *n = tl_opn(ir, op);
    return tl_valn(ir, n->code == TL_OP_store ? n->in[1] : n->res[0])->type;
}

/* Upper bound (in tile positions) that the tensor and an `e` end set on dimension t: 0 = none needed. */
static bool
dim_bounds(Lw *lw, TlOp op, uint32_t t, TlVal *lo, TlVal *hi)
{
    TlIr *ir = lw->ir;
    uint32_t bd, at;
    char kind;
    *lo = *hi = 0;
    if (!lw_access_dim(ir, op, t, &bd, &at, &kind))
        return lw_fail(lw, op, TL_E_INTERNAL, "access without a dimension");
    if (kind == 't') {
        lw_fail(lw, op, TL_E_UNSUPPORTED, "an index tile in a subscript is not lowered yet");
        return tl_hint(lw->diag,
                       "a block is selected by a slice, X[p * C : (p + 1) * C], which needs no mask");
    }
    const TlOpNode *n = tl_opn(ir, op);
    TlVal buf = n->in[0], start = n->in[at], end = kind == 'e' ? n->in[at + 1] : 0;
    const TlTypeInfo *bt = tl_vtype(ir, buf);
    int64_t cap = tl_tinfo(ir, access_tile_type(ir, op))->shape[t], step = access_step(ir, op, bd), v;
    LwAff s = lw_aff(lw, start);
    LwParam *p = lw_param(lw, buf);
    if (!p || bt->kind != TL_TY_BUF)
        return lw_fail(lw, op, TL_E_INTERNAL, "access to something that is no buffer parameter");
    if (step != 1)
        return lw_fail(lw, op, TL_E_UNSUPPORTED, "a slice step other than 1 is not lowered yet");
    if (!lw_aff_min(lw, &s, &v) || v < 0) {
        TlVal neg = lw_bin(lw, TL_OP_sub, lw_int(lw, TL_ELEM_I64, 0), lw_aff_emit(lw, &s, 0));
        neg = lw_bin(lw, TL_OP_max, neg, lw_int(lw, TL_ELEM_I64, 0));
        *lo = lw_cast(lw, lw_bin(lw, TL_OP_min, neg, lw_int(lw, TL_ELEM_I64, cap)), TL_ELEM_I32);
    }
    TlVal room = 0; /* i64 */
    int64_t d = bt->shape[bd];
    bool in = false;
    if (d != TL_DYN && lw_aff_max(lw, &s, &v) && v + cap <= d)
        in = true;
    if (cap & (cap - 1))
        room = lw_int(lw, TL_ELEM_I64, cap); /* the layout is padded beyond the capacity */
    for (uint32_t i = 0; !in && d == TL_DYN && lw->grid_known && i < lw->ngrid; i++) {
        /* start = C * program_id of the axis whose grid is ceil(this dim / C), dim a multiple of C */
        TlVal gb = tl_blockn(ir, ir->kernels.data[lw->src].body)->args.data[TL_MAX(lw->kgrid[i][0], 0)];
        if (lw->kgrid[i][0] >= 0 && gb == buf && lw->kgrid[i][1] == (int64_t)bd && s.n == 1 && s.c == 0 &&
            s.coef[0] == lw->kgrid[i][2] && cap <= s.coef[0] && bt->dim_div[bd] % s.coef[0] == 0) {
            TlOp po = tl_valn(ir, s.sym[0])->def;
            in = po && tl_opn(ir, po)->code == TL_OP_program_id &&
                 tl_attr_int(ir, po, "axis", 0) == (int64_t)i;
        }
    }
    if (!in) {
        TlVal r1 = lw_bin(lw, TL_OP_sub, p->dim[bd], lw_aff_emit(lw, &s, 0));
        room = room ? lw_bin(lw, TL_OP_min, room, r1) : r1;
    }
    if (end) {
        LwAff e = lw_aff(lw, end), df = lw_aff_sub(&e, &s);
        if (!df.ok || df.n || df.c < cap) { /* not surely beyond the capacity */
            TlVal r2 = lw_bin(lw, TL_OP_sub, lw_aff_emit(lw, &e, 0), lw_aff_emit(lw, &s, 0));
            room = room ? lw_bin(lw, TL_OP_min, room, r2) : r2;
        }
    }
    if (room) {
        room = lw_bin(lw, TL_OP_max, lw_bin(lw, TL_OP_min, room, lw_int(lw, TL_ELEM_I64, cap)),
                      lw_int(lw, TL_ELEM_I64, 0));
        *hi = lw_cast(lw, room, TL_ELEM_I32);
    }
    return true;
}

TlVal
lw_both(Lw *lw, TlVal a, TlVal b)
{
    return !a ? b : !b || a == b ? a : lw_bin(lw, TL_OP_and, a, b);
}

TlVal
lw_access_when(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    const char *d = access_dims(ir, op);
    uint32_t at = tl_opn(ir, op)->code == TL_OP_store ? 2 : 1;
    LwParam *p = lw_param(lw, tl_opn(ir, op)->in[0]);
    TlVal ok = 0;
    for (uint32_t i = 0; p && d[i]; at += d[i] == 'e' ? 2 : 1, i++) {
        LwAff a = lw_aff(lw, tl_opn(ir, op)->in[at]);
        LwProof proof = d[i] == 'i' ? lw_aff_inside(lw, &a, p, i) : LW_SURE;
        TlVal zero = lw_int(lw, TL_ELEM_I64, 0), s = proof == LW_MAYBE ? lw_aff_emit(lw, &a, 0) : 0;
        if (proof == LW_IF_ANY)
            ok = lw_both(lw, ok, lw_bin(lw, TL_OP_gt, p->dim[i], zero));
        else if (proof == LW_MAYBE)
            ok = lw_both(
                lw, ok,
                lw_bin(lw, TL_OP_and, lw_bin(lw, TL_OP_ge, s, zero), lw_bin(lw, TL_OP_lt, s, p->dim[i])));
    }
    return ok;
}

/* The extent that slices and edges give: plain indices aside. */
static bool
slice_ext(Lw *lw, TlOp op, uint32_t skip, LwExt *ext)
{
    *ext = (LwExt){0};
    uint32_t rank = tl_tinfo(lw->ir, access_tile_type(lw->ir, op))->rank;
    for (uint32_t d = 0; d < rank && d < LW_MAX_RANK; d++)
        if (!((skip >> d) & 1) && !dim_bounds(lw, op, d, &ext->lo[d], &ext->hi[d]))
            return false;
    return true;
}

bool
lw_access_ext(Lw *lw, TlOp op, uint32_t skip, LwExt *ext)
{
    if (!slice_ext(lw, op, skip, ext))
        return false;
    ext->when = lw_access_when(lw, op);
    return true;
}

/* Whether positions past the end of buffer dim bd always lie past the end of the whole tensor. */
static bool
is_outermost(const TlTypeInfo *bt, uint32_t bd)
{
    if (bt->flags & TL_BUF_DENSE)
        return bd == 0;
    int64_t inner = 0;
    if (bt->strides[bd] == TL_DYN || bt->strides[bd] < 0)
        return false;
    for (uint32_t i = 0; i < bt->rank; i++) {
        if (i == bd)
            continue;
        if (bt->shape[i] == TL_DYN || bt->strides[i] == TL_DYN || bt->strides[i] < 0)
            return false;
        inner += (TL_MAX(bt->shape[i], 1) - 1) * bt->strides[i];
    }
    return bt->strides[bd] > inner;
}

/* Whether every end of tile dim t but the tensor's own (a capacity that the layout pads, the end of an `e`)
 * lies between vectors of n elements. */
static bool
ends_between(Lw *lw, TlOp op, uint32_t t, uint32_t at, int64_t n)
{
    int64_t cap = tl_tinfo(lw->ir, access_tile_type(lw->ir, op))->shape[t];
    uint32_t bd, a;
    char kind;
    if (((cap & (cap - 1)) && cap % n) || !lw_access_dim(lw->ir, op, t, &bd, &a, &kind))
        return false;
    if (kind != 'e')
        return true;
    LwAff s = lw_aff(lw, tl_opn(lw->ir, op)->in[at]), e = lw_aff(lw, tl_opn(lw->ir, op)->in[at + 1]);
    LwAff len = lw_aff_sub(&e, &s);
    return len.ok && ((!len.n && len.c >= cap) || lw_aff_div(lw, &len) % n == 0);
}

/* Widest vector along tile dim t (unit stride in memory) that stays in the tensor. */
static uint32_t
vector_width(Lw *lw, TlOp op, uint32_t t, uint32_t bd, uint32_t at, uint32_t want, const LwMemOpts *o,
             bool masked, bool low, bool store)
{
    const TlTypeInfo *bt = tl_vtype(lw->ir, tl_opn(lw->ir, op)->in[0]);
    uint32_t es = tl_elem_bytes(bt->elem);
    LwAff s = lw_aff(lw, tl_opn(lw->ir, op)->in[at]);
    int64_t sdiv = lw_aff_div(lw, &s), d = bt->shape[bd] == TL_DYN ? bt->dim_div[bd] : bt->shape[bd];
    for (; want > 1; want /= 2) {
        if (want * es > 16 || (masked && !ends_between(lw, op, t, at, want)))
            continue;
        if (!masked || (d % want == 0 && sdiv % want == 0))
            break;
        uint32_t per = es < 4 ? 4 / es : 1; /* elements a dword: none may straddle the end of the tensor */
        bool dword_exact = (d % per == 0 && sdiv % per == 0) || o->even;
        if (!store && !low && o->loose && (bt->flags & TL_BUF_DENSE) && dword_exact &&
            !(bt->flags & TL_BUF_BIG))
            break;
        if (bt->rank == 1 && is_outermost(bt, bd) && es >= 4 && sdiv % want == 0 && !(bt->flags & TL_BUF_BIG))
            break; /* dropped dword by dword */
    }
    return want;
}

/* base pointer + uniform part (ptr), and the bytes that are left from there (i64) */
static TlVal
base_of(Lw *lw, TlOp op, LwParam *p, const LwMemOpts *o, TlElem elem, TlVal *left)
{
    TlIr *ir = lw->ir;
    const char *d = access_dims(ir, op);
    uint32_t at = tl_opn(ir, op)->code == TL_OP_store ? 2 : 1;
    int64_t es = tl_elem_bytes(elem), v;
    TlVal u = lw_int(lw, TL_ELEM_I64, 0);
    for (uint32_t i = 0; d[i]; i++) {
        LwAff a = lw_aff(lw, tl_opn(ir, op)->in[at]);
        TlVal s = lw_aff_emit(lw, &a, o->iv);
        u = lw_bin(lw, TL_OP_add, u, lw_bin(lw, TL_OP_mul, s, p->stride[i]));
        at += d[i] == 'e' ? 2 : 1;
    }
    u = lw_bin(lw, TL_OP_mul, u, lw_int(lw, TL_ELEM_I64, es));
    *left = lw_bin(lw, TL_OP_sub, p->bytes, u);
    if (lw_is_const(lw, u, &v) && !v)
        return p->ptr;
    return lw_pure(lw, TL_OP_ptr_add, tl_type_kind(ir, TL_TY_PTR), (TlVal[]){p->ptr, u}, 2, NULL, 0);
}

static TlVal
make_rsrc(Lw *lw, TlOp op, LwParam *p, const LwMemOpts *o, TlElem elem)
{
    TlVal left, base = base_of(lw, op, p, o, elem, &left), ok = lw_access_when(lw, op);
    left = lw_bin(lw, TL_OP_min, left, lw_int(lw, TL_ELEM_I64, MAX_RECORDS));
    left = lw_bin(lw, TL_OP_max, left, lw_int(lw, TL_ELEM_I64, 0));
    if (ok)
        left = lw_sel(lw, ok, left, lw_int(lw, TL_ELEM_I64, 0));
    return lw_pure(lw, TL_OP_make_rsrc, tl_type_kind(lw->ir, TL_TY_RSRC),
                   (TlVal[]){base, lw_cast(lw, left, TL_ELEM_I32)}, 2, NULL, 0);
}

static TlVal
lane_mask(Lw *lw, const LwExt *m, uint32_t rank, const TlLayout *l, uint32_t reg, const TlVal *lane)
{
    TlVal c = m->when;
    for (uint32_t t = 0; t < rank; t++) {
        if (!m->lo[t] && !m->hi[t])
            continue;
        uint32_t rc = tl_layout_at(l, reg, 0, 0, (TlDim)(TL_DIM_0 + t));
        TlVal pos = lw_bin(lw, TL_OP_add, lane[t], lw_int(lw, TL_ELEM_I32, rc));
        TlVal one = 0;
        if (m->hi[t])
            one = lw_bin(lw, TL_OP_lt, pos, m->hi[t]);
        if (m->lo[t]) {
            TlVal g = lw_bin(lw, TL_OP_ge, pos, m->lo[t]);
            one = one ? lw_bin(lw, TL_OP_and, one, g) : g;
        }
        c = c ? lw_bin(lw, TL_OP_and, c, one) : one;
    }
    return c;
}

/* i32 bytes per step of tile dim t */
static TlVal
dim_bytes(Lw *lw, LwParam *p, uint32_t bd, uint32_t es)
{
    return lw_cast(lw, lw_bin(lw, TL_OP_mul, p->stride[bd], lw_int(lw, TL_ELEM_I64, es)), TL_ELEM_I32);
}

/* Of lanes and waves that hold the same elements one stores: the one whose free bits are 0. 0: no replicas.
 */
TlVal
lw_owner(Lw *lw, const TlLayout *l)
{
    TlVal c = 0, part[2] = {lw->lane, lw->wave};
    for (int i = 0; i < 2; i++) {
        uint32_t f = tl_layout_free_of(l, i ? TL_DIM_WAVE : TL_DIM_LANE);
        if (!f)
            continue;
        TlVal e = lw_bin(lw, TL_OP_eq, lw_bin(lw, TL_OP_and, part[i], lw_int(lw, TL_ELEM_I32, f)),
                         lw_int(lw, TL_ELEM_I32, 0));
        c = c ? lw_bin(lw, TL_OP_and, c, e) : e;
    }
    return c;
}

/* Lane offsets of all register vectors: fills voff, imm, of. */
static bool
lane_offsets(Lw *lw, TlOp op, LwParam *p, uint32_t rank, const LwExt *m, LwGlobal *g)
{
    bool store = tl_opn(lw->ir, op)->code == TL_OP_store;
    uint32_t es = tl_elem_bytes(g->elem), bd[LW_MAX_RANK], at;
    TlVal lane[LW_MAX_RANK], scale[LW_MAX_RANK], vb = lw_int(lw, TL_ELEM_I32, 0);
    char kind;
    for (uint32_t t = 0; t < rank; t++) {
        lw_access_dim(lw->ir, op, t, &bd[t], &at, &kind);
        lane[t] = lw_lane_coord(lw, &g->lay, (TlDim)(TL_DIM_0 + t));
        scale[t] = dim_bytes(lw, p, bd[t], es);
        vb = lw_bin(lw, TL_OP_add, vb, lw_bin(lw, TL_OP_mul, lane[t], scale[t]));
    }
    uint32_t free_regs = tl_layout_free_of(&g->lay, TL_DIM_REG);
    TlVal owner = store ? lw_owner(lw, &g->lay) : 0;
    g->voff = TL_NEW_N(lw->arena, TlVal, g->nvec);
    g->imm = TL_NEW_N(lw->arena, uint32_t, g->nvec);
    g->of = TL_NEW_N(lw->arena, uint32_t, g->nvec);
    if (!g->voff || !g->imm || !g->of)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    g->nacc = 0;
    for (uint32_t i = 0; i < g->nvec; i++) {
        uint32_t r = i * g->vec, canon = r & ~free_regs;
        if (canon != r && canon / g->vec < i) {
            g->of[i] = g->of[canon / g->vec];
            continue;
        }
        int64_t c = 0, sc;
        TlVal dyn = vb;
        for (uint32_t t = 0; t < rank; t++) {
            uint32_t rc = tl_layout_at(&g->lay, r, 0, 0, (TlDim)(TL_DIM_0 + t));
            if (!rc)
                continue;
            if (lw_is_const(lw, scale[t], &sc))
                c += sc * rc;
            else
                dyn =
                    lw_bin(lw, TL_OP_add, dyn, lw_bin(lw, TL_OP_mul, scale[t], lw_int(lw, TL_ELEM_I32, rc)));
        }
        uint32_t imm = c >= 0 ? (uint32_t)(c & 4095) : 0;
        TlVal cond = lane_mask(lw, m, rank, &g->lay, r, lane);
        if (owner)
            cond = cond ? lw_bin(lw, TL_OP_and, cond, owner) : owner;
        TlVal off = lw_bin(lw, TL_OP_add, dyn, lw_int(lw, TL_ELEM_I32, c - imm));
        if (cond)
            off = lw_sel(lw, cond, off, lw_int(lw, TL_ELEM_I32, OOB_OFFSET));
        g->of[i] = g->nacc;
        g->voff[g->nacc] = off;
        g->imm[g->nacc++] = imm;
        if (!off)
            return false;
    }
    return true;
}

/* The same with 64-bit addresses (tensors of 2^31 bytes or more, negative strides): an address an access, and
 * a condition instead of the range rule. */
static bool
wide_addresses(Lw *lw, TlOp op, LwParam *p, uint32_t rank, const LwExt *m, const LwMemOpts *o, LwGlobal *g)
{
    TlVal left, base = base_of(lw, op, p, o, g->elem, &left), lane[LW_MAX_RANK], scale[LW_MAX_RANK];
    TlVal ok = lw_access_when(lw, op);
    TlVal off = lw_int(lw, TL_ELEM_I64, 0);
    TlVal owner = tl_opn(lw->ir, op)->code == TL_OP_store ? lw_owner(lw, &g->lay) : 0;
    g->wide = true;
    g->addr = TL_NEW_N(lw->arena, TlVal, g->nvec);
    g->cond = TL_NEW_N(lw->arena, TlVal, g->nvec);
    g->of = TL_NEW_N(lw->arena, uint32_t, g->nvec);
    if (!g->addr || !g->cond || !g->of)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t t = 0; t < rank; t++) {
        uint32_t bd, at;
        char kind;
        lw_access_dim(lw->ir, op, t, &bd, &at, &kind);
        lane[t] = lw_lane_coord(lw, &g->lay, (TlDim)(TL_DIM_0 + t));
        scale[t] = lw_bin(lw, TL_OP_mul, p->stride[bd], lw_int(lw, TL_ELEM_I64, tl_elem_bytes(g->elem)));
        off = lw_bin(lw, TL_OP_add, off, lw_bin(lw, TL_OP_mul, lw_cast(lw, lane[t], TL_ELEM_I64), scale[t]));
    }
    for (uint32_t i = 0; i < g->nvec; i++) {
        TlVal a = off, c = lane_mask(lw, m, rank, &g->lay, i * g->vec, lane);
        for (uint32_t t = 0; t < rank; t++) {
            uint32_t rc = tl_layout_at(&g->lay, i * g->vec, 0, 0, (TlDim)(TL_DIM_0 + t));
            a = lw_bin(lw, TL_OP_add, a, lw_bin(lw, TL_OP_mul, scale[t], lw_int(lw, TL_ELEM_I64, rc)));
        }
        if (owner)
            c = c ? lw_bin(lw, TL_OP_and, c, owner) : owner;
        if (ok)
            c = c ? lw_bin(lw, TL_OP_and, c, ok) : ok;
        g->of[i] = i;
        g->cond[i] = c;
        g->addr[i] =
            lw_pure(lw, TL_OP_ptr_add, tl_type_kind(lw->ir, TL_TY_PTR), (TlVal[]){base, a}, 2, NULL, 0);
        if (!g->addr[i])
            return false;
    }
    g->nacc = g->nvec;
    return true;
}

static bool
global_common(Lw *lw, TlOp op, const TlLayout *l, const LwMemOpts *o, const LwExt *val_ext, LwGlobal *g)
{
    TlIr *ir = lw->ir;
    bool store = tl_opn(ir, op)->code == TL_OP_store;
    TlVal buf = tl_opn(ir, op)->in[0];
    const TlTypeInfo bt = *tl_vtype(ir, buf);
    uint32_t rank = tl_tinfo(ir, access_tile_type(ir, op))->rank;
    LwParam *p = lw_param(lw, buf);
    LwExt ext;
    LwExt m = {0};
    if (!p || !slice_ext(lw, op, o->inside, &ext))
        return false;
    if (val_ext && val_ext->when &&
        val_ext->when != lw_access_when(lw, op)) /* else the descriptor is empty */
        m.when = val_ext->when;
    *g = (LwGlobal){.elem = lw_mem_elem(bt.elem), .lay = *l, .vec = 1, .iv_stride = 0};
    for (uint32_t t = 0; t < rank; t++) {
        uint32_t bd, at;
        char kind;
        lw_access_dim(ir, op, t, &bd, &at, &kind);
        bool inside = (o->inside >> t) & 1;
        int64_t cap = tl_tinfo(ir, access_tile_type(ir, op))->shape[t];
        bool drops = kind == 's' && !(cap & (cap - 1)) && is_outermost(&bt, bd) && !(bt.flags & TL_BUF_BIG);
        if (!inside) {
            m.lo[t] = ext.lo[t];
            m.hi[t] = drops ? 0 : ext.hi[t];
        }
        if (val_ext && val_ext->hi[t] && val_ext->hi[t] != ext.hi[t])
            m.hi[t] = m.hi[t] ? lw_bin(lw, TL_OP_min, m.hi[t], val_ext->hi[t]) : val_ext->hi[t];
        if (val_ext && val_ext->lo[t])
            m.lo[t] = m.lo[t] ? lw_bin(lw, TL_OP_max, m.lo[t], val_ext->lo[t]) : val_ext->lo[t];
        if (bt.strides[bd] == 1 && kind != 't') {
            uint32_t c = tl_layout_contiguity(l, (TlDim)(TL_DIM_0 + t));
            bool masked = !inside && (ext.hi[t] || ext.lo[t]);
            if (val_ext && ((val_ext->hi[t] && val_ext->hi[t] != ext.hi[t]) || val_ext->lo[t]))
                c = 1;
            c = TL_MIN(c, 16 / TL_MIN(tl_elem_bytes(bt.elem), 16u));
            if (c > 1)
                g->vec = TL_MAX(g->vec,
                                vector_width(lw, op, t, bd, at, c, o, masked, !inside && ext.lo[t], store));
        }
        if (o->iv) {
            LwAff a = lw_aff(lw, tl_opn(ir, op)->in[at]);
            int64_t co = lw_aff_coef(&a, o->iv), sc;
            if (co) {
                TlVal b = lw_bin(lw, TL_OP_mul, dim_bytes(lw, p, bd, tl_elem_bytes(bt.elem)),
                                 lw_int(lw, TL_ELEM_I32, co));
                g->iv_stride_v = b;
                g->iv_stride = lw_is_const(lw, b, &sc) ? sc : -1;
            }
        }
    }
    g->nvec = (1u << tl_layout_in_bits(l, TL_DIM_REG)) / g->vec;
    if (bt.flags & TL_BUF_BIG)
        return wide_addresses(lw, op, p, rank, &m, o, g);
    g->rsrc = make_rsrc(lw, op, p, o, bt.elem);
    return g->rsrc && lane_offsets(lw, op, p, rank, &m, g);
}

bool
lw_global(Lw *lw, TlOp op, const TlLayout *l, const LwMemOpts *o, LwGlobal *g)
{
    return global_common(lw, op, l, o, NULL, g);
}

/* A load that only some lanes do; the others get 0. */
static TlVal
wide_load(Lw *lw, const LwGlobal *g, uint32_t access)
{
    TlType t = tl_type_vec(lw->ir, g->elem, g->vec);
    TlOp branch = 0;
    TlBuilder save = lw->b;
    TlOp anchor = lw->anchor;
    if (g->cond[access]) {
        TlBuilder top = {lw->ir, lw->entry, tl_blockn(lw->ir, lw->entry)->first, {0}};
        TlVal zero = tl_elem_is_float(g->elem) ? tl_const_float(&top, t, 0.0) : tl_const_int(&top, t, 0);
        branch = lw_op(lw, TL_OP_if, &g->cond[access], 1, &t, 1);
        TlBlock yes = branch ? tl_block_new(lw->ir, lw->dst, branch) : 0;
        TlBlock no = yes ? tl_block_new(lw->ir, lw->dst, branch) : 0;
        if (!no)
            return 0;
        lw->b.before = 0;
        lw->b.block = no;
        if (!lw_op(lw, TL_OP_yield, &zero, 1, NULL, 0))
            return 0;
        lw->b.block = yes;
        if (!lw->anchor)
            lw->anchor = branch;
    }
    TlVal v = lw_op1(lw, TL_OP_glb_load, t, &g->addr[access], 1);
    if (!v || !tl_attr_set_int(lw->ir, tl_valn(lw->ir, v)->def, "align", tl_elem_bytes(g->elem)))
        return 0;
    if (branch) {
        if (!lw_op(lw, TL_OP_yield, &v, 1, NULL, 0))
            return 0;
        lw->b = save;
        lw->anchor = anchor;
        v = tl_result(lw->ir, branch, 0);
    }
    lw_mark_inner(lw, v);
    return v;
}

bool
lw_global_store_one(Lw *lw, const LwGlobal *g, uint32_t access, TlVal v)
{
    LwRegion r;
    if (!g->wide) {
        TlOp s = lw_op(lw, TL_OP_buf_store,
                       (TlVal[]){g->rsrc, v, g->voff[access], lw_int(lw, TL_ELEM_I32, 0)}, 4, NULL, 0);
        return s && (!g->imm[access] || tl_attr_set_int(lw->ir, s, "imm", g->imm[access]));
    }
    if (g->cond[access] && !lw_when_begin(lw, g->cond[access], &r))
        return false;
    TlOp s = lw_op(lw, TL_OP_glb_store, (TlVal[]){g->addr[access], v}, 2, NULL, 0);
    return s && tl_attr_set_int(lw->ir, s, "align", tl_elem_bytes(g->elem)) &&
           (!g->cond[access] || lw_when_end(lw, &r));
}

TlVal
lw_global_load_one(Lw *lw, const LwGlobal *g, TlVal soff, uint32_t access)
{
    if (g->wide)
        return wide_load(lw, g, access);
    TlOp o = lw_op(lw, TL_OP_buf_load, (TlVal[]){g->rsrc, g->voff[access], soff}, 3,
                   &(TlType){tl_type_vec(lw->ir, g->elem, g->vec)}, 1);
    if (!o || (g->imm[access] && !tl_attr_set_int(lw->ir, o, "imm", g->imm[access])))
        return 0;
    TlVal v = tl_result(lw->ir, o, 0);
    lw_mark_inner(lw, v); /* a load stays where it stands, and so does what is computed from it */
    return v;
}

LwTile *
lw_global_load(Lw *lw, const LwGlobal *g, TlVal soff, TlOp op)
{
    LwTile *t = lw_tile_new(lw, &g->lay, g->elem, g->vec);
    TlVal *v = TL_NEW_N(lw->arena, TlVal, g->nacc);
    if (!t || !v)
        return NULL;
    lw->b.loc = lw_loc(lw, op);
    if (!soff)
        soff = lw_int(lw, TL_ELEM_I32, 0);
    for (uint32_t i = 0; i < g->nacc; i++)
        if (!(v[i] = lw_global_load_one(lw, g, soff, i)))
            return NULL;
    for (uint32_t i = 0; i < g->nvec; i++)
        t->v[i] = v[g->of[i]];
    return lw_tile_cast(lw, t, tl_vtype(lw->ir, tl_opn(lw->ir, op)->in[0])->elem);
}

static LwGlobal
scalar_access(Lw *lw, TlOp op, LwParam *p, TlElem e, TlVal lanes)
{
    LwMemOpts o = {0};
    LwGlobal g = {.elem = e == TL_ELEM_I1 ? TL_ELEM_U8 : e, .vec = 1, .nacc = 1, .boolean = e == TL_ELEM_I1};
    g.voff = TL_NEW_N(lw->arena, TlVal, 3);
    g.imm = TL_NEW_N(lw->arena, uint32_t, 1);
    if (!g.voff || !g.imm)
        return g;
    if (tl_vtype(lw->ir, p->src)->flags & TL_BUF_BIG) {
        TlVal left;
        g.wide = true;
        g.addr = g.voff + 1;
        g.cond = g.voff + 2;
        g.rsrc = g.addr[0] = base_of(lw, op, p, &o, e, &left);
        g.cond[0] = lw_both(lw, lw_access_when(lw, op), lanes);
        return g;
    }
    g.voff[0] = lw_int(lw, TL_ELEM_I32, 0);
    if (lanes)
        g.voff[0] = lw_sel(lw, lanes, g.voff[0], lw_int(lw, TL_ELEM_I32, OOB_OFFSET));
    g.rsrc = make_rsrc(lw, op, p, &o, e);
    return g;
}

/* One element for the whole program; outside the tensor it reads 0. */
bool
lw_scalar_load(Lw *lw, TlOp op)
{
    const TlOpNode n = *tl_opn(lw->ir, op);
    const TlTypeInfo bt = *tl_vtype(lw->ir, n.in[0]);
    if (bt.kind == TL_TY_SHARED)
        return lw_fail(lw, op, TL_E_UNSUPPORTED, "a load of one element of a shared tile is not lowered yet");
    LwParam *p = lw_param(lw, n.in[0]);
    if (!p || !lw_order_memory(lw, op))
        return false;
    lw->b.loc = lw_loc(lw, op);
    LwGlobal g = scalar_access(lw, op, p, lw_mem_elem(bt.elem), 0);
    TlVal v = g.rsrc ? lw_global_load_one(lw, &g, lw_int(lw, TL_ELEM_I32, 0), 0) : 0;
    v = lw_cast(lw, lw_uniform(lw, lw_extract(lw, v, 0, 0)), bt.elem);
    return v && tl_map_put(&lw->scal, n.res[0], v);
}

static bool
scalar_store(Lw *lw, TlOp op)
{
    const TlOpNode n = *tl_opn(lw->ir, op);
    const TlTypeInfo bt = *tl_vtype(lw->ir, n.in[0]);
    LwParam *p = lw_param(lw, n.in[0]);
    TlVal v = lw_scalar(lw, n.in[1]);
    if (!p || !v || !lw_order_memory(lw, op))
        return false;
    TlVal first = lw_bin(lw, TL_OP_eq, lw->tid, lw_int(lw, TL_ELEM_I32, 0));
    TlElem e = lw_mem_elem(bt.elem);
    LwGlobal g = scalar_access(lw, op, p, e, first);
    v = lw_cast(lw, v, e);
    v = lw_concat(lw, e, &v, 1, 1);
    return g.rsrc && lw_global_store_one(lw, &g, 0, v);
}

/* A store of a tile: registers are put in memory order, then written with the widest safe vector. */
bool
lw_store_global(Lw *lw, TlOp op)
{
    TlIr *ir = lw->ir;
    TlVal src = tl_opn(ir, op)->in[1];
    if (tl_vtype(ir, src)->kind != TL_TY_TILE)
        return scalar_store(lw, op);
    LwVal *v = lw_val(lw, src);
    LwExt ext;
    if (!v || v->nlay == 0)
        return lw_fail(lw, op, TL_E_INTERNAL, "a stored tile has no layout");
    TlLayout l = v->lay[0], pl;
    LwMemOpts o = {0};
    LwGlobal g;
    uint8_t perm[TL_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < v->nlay; i++)
        if (v->anchored && tl_layout_equal(&v->lay[i], &v->anchor))
            l = v->lay[i];
    LwTile *t = lw_tile(lw, src, &l);
    if (!t || !lw_ext(lw, src, &ext))
        return false;
    tl_layout_regs_along(&l, (TlDim)(TL_DIM_0 + lw_mem_minor(lw, op)), perm);
    if (!tl_layout_permute_regs(&pl, &l, perm) || !global_common(lw, op, &pl, &o, &ext, &g))
        return false;
    LwTile *w = lw_tile_cast(lw, lw_tile_permute(lw, t, perm, g.vec), g.elem);
    if (!w)
        return false;
    lw->b.loc = lw_loc(lw, op);
    if (!lw_order_memory(lw, op))
        return false;
    uint32_t done = UINT32_MAX;
    for (uint32_t i = 0; i < g.nvec; i++) {
        uint32_t a = g.of[i];
        if (done != UINT32_MAX && a <= done)
            continue; /* a replica */
        done = a;
        if (!lw_global_store_one(lw, &g, a, w->v[i]))
            return false;
    }
    return true;
}
