/* lower_plan.c - decides layouts before anything is emitted.
 *
 * 1. A plan for each dot (lower_plan_dot.c): matrix instruction, wave grid, pairing, fragments.
 * 2. Anchors, forward: a value computed from a dot's result stays in the layout of the matrix instruction.
 * 3. Demands, backward: each store asks for its value in the anchor's layout or in one made for its memory;
 * each operation passes on to its operands what it was asked for. Loads are then made directly in the layouts
 * asked for.
 */
#include "pass/lower.h"

uint32_t
lw_pow2_bits(int64_t n)
{
    uint32_t b = 0;
    while (((int64_t)1 << b) < n)
        b++;
    return b;
}

LwVal *
lw_val(Lw *lw, TlVal src)
{
    uint64_t i;
    if (tl_map_get(&lw->vals, src, &i))
        return &lw->tiles.data[i];
    LwVal v = {.src = src};
    if (!tl_vec_push(lw->arena, &lw->tiles, v) || !tl_map_put(&lw->vals, src, lw->tiles.len - 1)) {
        tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
        return NULL;
    }
    return &lw->tiles.data[lw->tiles.len - 1];
}

LwShared *
lw_shared(Lw *lw, TlVal src)
{
    uint64_t i;
    if (tl_map_get(&lw->shareds, src, &i))
        return &lw->shared.data[i];
    const TlTypeInfo *t = tl_vtype(lw->ir, src);
    LwShared s = {.src = src, .rank = t->rank, .elem = lw_mem_elem(t->elem), .minor = t->rank - 1};
    if (t->elem == TL_ELEM_I1) /* a byte each in memory */
        s.elem = TL_ELEM_U8;
    s.boolean = t->elem == TL_ELEM_I1;
    s.bit = TL_MIN(lw->shared.len, LW_SCRATCH_BIT - 1u);
    for (uint32_t d = 0; d < t->rank && d < LW_MAX_RANK; d++)
        s.shape[d] = 1u << lw_pow2_bits(t->shape[d]);
    if (!tl_vec_push(lw->arena, &lw->shared, s) || !tl_map_put(&lw->shareds, src, lw->shared.len - 1)) {
        tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
        return NULL;
    }
    return &lw->shared.data[lw->shared.len - 1];
}

LwDotPlan *
lw_dot_plan(Lw *lw, TlOp op)
{
    for (uint32_t i = 0; i < lw->dots.len; i++)
        if (lw->dots.data[i].op == op)
            return &lw->dots.data[i];
    return NULL;
}

LwLdsAcc *
lw_lds_acc(Lw *lw, LwShared *s, TlOp op, uint32_t operand)
{
    (void)lw;
    for (uint32_t i = 0; i < s->acc.len; i++)
        if (s->acc.data[i].op == op && s->acc.data[i].operand == operand)
            return &s->acc.data[i];
    return NULL;
}

/* ---- anchors ---- */

static bool
set_anchor(Lw *lw, TlVal v, const TlLayout *l)
{
    LwVal *x = lw_val(lw, v);
    if (!x)
        return false;
    if (!x->anchored) {
        x->anchored = true;
        x->anchor = *l;
        lw->anchors++;
    }
    return true;
}

/* A transposed tile stays in the operand's registers: only the names of the coordinates change. */
static bool
anchor_trans(Lw *lw, TlOp o)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    LwVal *f = lw_val(lw, n.in[0]);
    const TlAttr *p = tl_attr(lw->ir, o, "perm");
    TlDim ins[3] = {TL_DIM_REG, TL_DIM_LANE, TL_DIM_WAVE};
    TlLayout l;
    if (!f || !p)
        return false;
    if (!f->anchored || tl_vtype(lw->ir, n.res[0])->kind != TL_TY_TILE)
        return true;
    tl_layout_init(&l);
    for (uint32_t i = 0; i < 3; i++)
        if (!tl_layout_add_in(&l, ins[i], tl_layout_in_bits(&f->anchor, ins[i])))
            return false;
    for (uint32_t d = 0; d < p->u.ints.n; d++)
        if (!tl_layout_add_out(&l, (TlDim)(TL_DIM_0 + d),
                               tl_layout_out_bits(&f->anchor, (TlDim)(TL_DIM_0 + p->u.ints.v[d]))))
            return false;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t b = 0; b < tl_layout_in_bits(&l, ins[i]); b++)
            for (uint32_t d = 0; d < p->u.ints.n; d++)
                if (!tl_layout_set(&l, ins[i], b, (TlDim)(TL_DIM_0 + d),
                                   tl_layout_get(&f->anchor, ins[i], b, (TlDim)(TL_DIM_0 + p->u.ints.v[d]))))
                    return false;
    return set_anchor(lw, n.res[0], &l);
}

static bool
copy_anchor(Lw *lw, TlVal to, TlVal from)
{
    LwVal *f = lw_val(lw, from);
    if (!f)
        return false;
    if (!f->anchored || !lw_is_tile(lw->ir, to))
        return true;
    TlLayout l = f->anchor;
    return set_anchor(lw, to, &l);
}

static bool
anchor_op(TlIr *ir, TlOp o, void *self)
{
    Lw *lw = self;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_dot) {
        LwDotPlan *p = lw_dot_plan(lw, o);
        return p && set_anchor(lw, n.res[0], &p->c);
    }
    if (n.code == TL_OP_trans)
        return anchor_trans(lw, o);
    if (n.code == TL_OP_for || n.code == TL_OP_if || n.code == TL_OP_while) {
        for (uint32_t r = 0; r < n.nregion; r++) {
            TlOp y = tl_blockn(ir, n.region[r])->last;
            uint32_t skip = y && tl_opn(ir, y)->code == TL_OP_condition;
            for (uint32_t i = 0; y && i < n.nres; i++) {
                if (!copy_anchor(lw, n.res[i], tl_opn(ir, y)->in[i + skip]))
                    return false;
                if (n.code == TL_OP_while &&
                    (!copy_anchor(lw, n.res[i], n.in[i]) ||
                     !copy_anchor(lw, tl_blockn(ir, n.region[r])->args.data[i], n.res[i])))
                    return false;
                if (n.code == TL_OP_for &&
                    (!copy_anchor(lw, n.res[i], n.in[3 + i]) ||
                     !copy_anchor(lw, tl_blockn(ir, n.region[0])->args.data[1 + i], n.res[i])))
                    return false;
            }
        }
        return true;
    }
    if ((tl_op_row(n.code)->traits & TL_T_ELEMENTWISE) || n.code == TL_OP_fill)
        for (uint32_t i = 0; i < n.nin; i++)
            if (lw_is_tile(ir, n.in[i]) && lw_is_tile(ir, n.res[0]) && !copy_anchor(lw, n.res[0], n.in[i]))
                return false;
    return true;
}

/* ---- demands ---- */

static bool demand(Lw *lw, TlVal v, const TlLayout *l);

/* Of a structural op: operand dimension -> result dimension, -1 where the operand's single position stands
 * for all. */
bool
lw_dim_map(Lw *lw, TlOp op, int from[LW_MAX_RANK])
{
    TlIr *ir = lw->ir;
    const TlOpNode *n = tl_opn(ir, op);
    const TlTypeInfo *src = tl_vtype(ir, n->in[0]), *dst = tl_vtype(ir, n->res[0]);
    const TlAttr *p;
    if (src->rank > LW_MAX_RANK || dst->rank > LW_MAX_RANK)
        return false;
    for (uint32_t d = 0; d < src->rank; d++)
        from[d] = (int)d;
    if (n->code == TL_OP_expand_dims) {
        int64_t ax = tl_attr_int(ir, op, "axis", 0);
        for (uint32_t d = 0; d < src->rank; d++)
            from[d] = (int64_t)d < ax ? (int)d : (int)d + 1;
    } else if (n->code == TL_OP_broadcast) {
        for (uint32_t d = 0; d < src->rank; d++)
            if (src->shape[d] == 1 && dst->shape[d] != 1)
                from[d] = -1;
    } else if (n->code == TL_OP_trans) {
        p = tl_attr(ir, op, "perm");
        for (uint32_t d = 0; p && d < p->u.ints.n; d++)
            from[p->u.ints.v[d]] = (int)d;
    } else if (n->code == TL_OP_reshape) {
        /* only dims of size 1 come or go */
        uint32_t j = 0;
        for (uint32_t d = 0; d < src->rank; d++) {
            from[d] = -1;
            if (src->shape[d] == 1)
                continue;
            while (j < dst->rank && dst->shape[j] == 1)
                j++;
            if (j >= dst->rank || dst->shape[j] != src->shape[d])
                return false;
            from[d] = (int)j++;
        }
    } else {
        return false;
    }
    return true;
}

/* Layout of the operand of a structural op such that the op is a renaming of coordinates. */
bool
lw_layout_through(Lw *lw, TlOp op, const TlLayout *l, TlLayout *out)
{
    const TlTypeInfo *src = tl_vtype(lw->ir, tl_opn(lw->ir, op)->in[0]);
    int from[LW_MAX_RANK];
    if (!lw_dim_map(lw, op, from))
        return false;
    tl_layout_init(out);
    TlDim ins[3] = {TL_DIM_REG, TL_DIM_LANE, TL_DIM_WAVE};
    for (uint32_t i = 0; i < 3; i++)
        if (!tl_layout_add_in(out, ins[i], tl_layout_in_bits(l, ins[i])))
            return false;
    for (uint32_t d = 0; d < src->rank; d++) {
        uint32_t bits =
            from[d] < 0 ? lw_pow2_bits(src->shape[d]) : tl_layout_out_bits(l, (TlDim)(TL_DIM_0 + from[d]));
        if (!tl_layout_add_out(out, (TlDim)(TL_DIM_0 + d), bits))
            return false;
    }
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t b = 0; b < tl_layout_in_bits(l, ins[i]); b++)
            for (uint32_t d = 0; d < src->rank; d++)
                if (from[d] >= 0 && !tl_layout_set(out, ins[i], b, (TlDim)(TL_DIM_0 + d),
                                                   tl_layout_get(l, ins[i], b, (TlDim)(TL_DIM_0 + from[d]))))
                    return false;
    return true;
}

static bool
add_lds_acc(Lw *lw, TlVal sh, TlOp op, uint32_t operand, const TlLayout *l)
{
    LwShared *s = lw_shared(lw, sh);
    LwLdsAcc a = {.op = op, .operand = operand, .lay = *l};
    if (!s)
        return false;
    return lw_lds_acc(lw, s, op, operand) || tl_vec_push(lw->arena, &s->acc, a) ||
           tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
}

static bool
demand_operands(Lw *lw, TlOp o, const TlLayout *l, uint32_t which)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    TlLayout in;
    uint32_t traits = tl_op_row(n.code)->traits;
    if (n.code == TL_OP_const || n.code == TL_OP_splat || n.code == TL_OP_arange || n.code == TL_OP_dot ||
        n.code == TL_OP_reduce)
        return true;
    if (n.code == TL_OP_load)
        return tl_vtype(ir, n.in[0])->kind != TL_TY_SHARED || add_lds_acc(lw, n.in[0], o, which, l);
    if ((traits & TL_T_ELEMENTWISE) || n.code == TL_OP_fill || n.code == TL_OP_valid) {
        for (uint32_t i = 0; i < n.nin; i++)
            if (lw_is_tile(ir, n.in[i]) && !demand(lw, n.in[i], l))
                return false;
        return true;
    }
    if (n.code == TL_OP_broadcast || n.code == TL_OP_expand_dims || n.code == TL_OP_trans ||
        n.code == TL_OP_reshape) {
        if (!lw_layout_through(lw, o, l, &in))
            return lw_fail(lw, o, TL_E_UNSUPPORTED, "this reshape is not lowered yet");
        return demand(lw, n.in[0], &in);
    }
    if (n.code == TL_OP_for || n.code == TL_OP_if || n.code == TL_OP_while)
        return true; /* settled with the operation itself */
    return lw_fail(lw, o, TL_E_UNSUPPORTED, "operation '%s' on tiles is not lowered yet",
                   tl_op_row(n.code)->name);
}

static bool
demand(Lw *lw, TlVal v, const TlLayout *l)
{
    LwVal *x = lw_val(lw, v);
    if (!x)
        return false;
    for (uint32_t i = 0; i < x->nlay; i++)
        if (tl_layout_equal(&x->lay[i], l))
            return true;
    TlOp o = tl_valn(lw->ir, v)->def;
    if (x->nlay == LW_MAX_LAYOUTS) {
        return lw_fail(lw, o, TL_E_UNSUPPORTED, "a tile value is needed in more than %u layouts", x->nlay);
    }
    uint32_t which = x->nlay;
    x->lay[x->nlay++] = *l;
    return o ? demand_operands(lw, o, l, which) : true;
}

bool
lw_blocked_for(Lw *lw, TlType tile, uint32_t minor, uint32_t elem_bytes, uint32_t rows, TlLayout *out)
{
    const TlTypeInfo *t = tl_tinfo(lw->ir, tile);
    TlBlocked b = {.rank = t->rank,
                   .minor = minor,
                   .elem_bytes = elem_bytes,
                   .max_vec_bytes = 16,
                   .wave = lw->tgt->wave,
                   .waves = lw->waves,
                   .rows = rows};
    if (t->rank > LW_MAX_RANK)
        return false;
    for (uint32_t d = 0; d < t->rank; d++)
        b.shape[d] = 1u << lw_pow2_bits(t->shape[d]);
    return tl_layout_blocked(&b, out);
}

static bool
demand_store(Lw *lw, TlOp o)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    TlVal v = n.in[1];
    if (!lw_is_tile(ir, v))
        return true;
    LwVal *x = lw_val(lw, v);
    const TlTypeInfo bt = *tl_vtype(ir, n.in[0]);
    TlLayout l;
    if (!x)
        return false;
    if (bt.kind == TL_TY_LOCAL) {
        lw_fail(lw, o, TL_E_UNSUPPORTED, "alloc_local is not lowered yet");
        return tl_hint(lw->diag, "rebind a name instead (x = x * 2); tl.where changes a part");
    }
    if (x->anchored) {
        l = x->anchor;
    } else {
        uint32_t rows = 1, es = tl_elem_bytes(bt.elem);
        uint32_t minor = bt.kind == TL_TY_BUF ? lw_mem_minor(lw, o) : lw_value_minor(lw, v);
        LwShared *s = bt.kind == TL_TY_SHARED ? lw_shared(lw, n.in[0]) : NULL;
        if (s && s->acc.len && tl_opn(ir, s->acc.data[0].op)->code == TL_OP_dot) {
            LwDotPlan *p = lw_dot_plan(lw, s->acc.data[0].op);
            uint32_t f = s->acc.data[0].operand, kpl = p->d.mma->k * p->d.mma->m / 64;
            if (minor != (f ? 0u : 1u)) /* k runs across the rows: a thread takes as many as a unit holds */
                rows = es >= 4 ? p->d.kpack * kpl : kpl;
            s->minor = f ? 0 : 1;
        }
        if (!lw_blocked_for(lw, tl_valn(ir, v)->type, minor, es, rows, &l))
            return lw_fail(lw, o, TL_E_INTERNAL, "no blocked layout for a stored tile");
    }
    if (!demand(lw, v, &l))
        return false;
    if (bt.kind == TL_TY_SHARED) {
        LwShared *s = lw_shared(lw, n.in[0]);
        TlLayout w = l;
        uint8_t perm[TL_LAYOUT_MAX_BITS];
        if (s->acc.len) {
            uint32_t es = tl_elem_bytes(bt.elem);
            tl_layout_regs_like(&l, &s->acc.data[0].lay, lw_pow2_bits(TL_MAX(16 / es, 1u)), perm);
            if (!tl_layout_permute_regs(&w, &l, perm))
                return lw_fail(lw, o, TL_E_INTERNAL, "register order of a shared store");
        }
        return add_lds_acc(lw, n.in[0], o, 0, &w);
    }
    return true;
}

/* A reduction takes its operand as it is held anyway, else in the order of its memory. */
static bool
demand_reduce(Lw *lw, TlOp o)
{
    const TlOpNode n = *tl_opn(lw->ir, o);
    LwVal *x = lw_val(lw, n.in[0]);
    TlLayout l;
    if (!x)
        return false;
    if (x->anchored)
        l = x->anchor;
    else if (x->nlay)
        l = x->lay[0];
    else if (!lw_blocked_for(lw, tl_valn(lw->ir, n.in[0])->type, lw_value_minor(lw, n.in[0]),
                             tl_elem_bytes(tl_vtype(lw->ir, n.in[0])->elem), 1, &l))
        return lw_fail(lw, o, TL_E_INTERNAL, "no layout for a reduced tile");
    x->reduce_set = true;
    x->reduce_lay = l;
    return demand(lw, n.in[0], &l);
}

static bool demand_block(Lw *lw, TlBlock b);

static bool
demand_region_op(Lw *lw, TlOp o)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    for (uint32_t i = 0; i < n.nres; i++) {
        if (!lw_is_tile(ir, n.res[i]))
            continue;
        LwVal *x = lw_val(lw, n.res[i]);
        TlLayout l;
        if (!x)
            return false;
        if (x->anchored)
            l = x->anchor;
        else if (x->nlay)
            l = x->lay[0];
        else if (!lw_blocked_for(lw, tl_valn(ir, n.res[i])->type, tl_vtype(ir, n.res[i])->rank - 1,
                                 tl_elem_bytes(tl_vtype(ir, n.res[i])->elem), 1, &l))
            return lw_fail(lw, o, TL_E_INTERNAL, "no layout for a carried tile");
        if (!demand(lw, n.res[i], &l))
            return false;
        for (uint32_t r = 0; r < n.nregion; r++) {
            TlOp y = tl_blockn(ir, n.region[r])->last;
            uint32_t at = i + (y && tl_opn(ir, y)->code == TL_OP_condition ? 1 : 0);
            if (y && !demand(lw, tl_opn(ir, y)->in[at], &l))
                return false;
            if (n.code == TL_OP_while && !demand(lw, tl_blockn(ir, n.region[r])->args.data[i], &l))
                return false;
        }
        if (n.code == TL_OP_while && !demand(lw, n.in[i], &l))
            return false;
        if (n.code == TL_OP_for &&
            (!demand(lw, n.in[3 + i], &l) || !demand(lw, tl_blockn(ir, n.region[0])->args.data[1 + i], &l)))
            return false;
    }
    for (uint32_t r = 0; r < n.nregion; r++)
        if (!demand_block(lw, n.region[r]))
            return false;
    return true;
}

static bool
demand_dot(Lw *lw, TlOp o)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    LwDotPlan *p = lw_dot_plan(lw, o);
    for (uint32_t f = 0; f < 2; f++) {
        if (tl_vtype(ir, n.in[f])->kind == TL_TY_SHARED) {
            if (!add_lds_acc(lw, n.in[f], o, f, &p->frag[f]))
                return false;
        } else if (!demand(lw, n.in[f], &p->frag[f])) {
            return false;
        }
    }
    return demand(lw, n.res[0], &p->c) && demand(lw, n.in[2], &p->c);
}

static bool
demand_block(Lw *lw, TlBlock b)
{
    TlIr *ir = lw->ir;
    for (TlOp o = tl_blockn(ir, b)->last; o; o = tl_opn(ir, o)->prev) {
        TlOpcode c = tl_opn(ir, o)->code;
        bool ok = true;
        if (c == TL_OP_store)
            ok = demand_store(lw, o);
        else if (c == TL_OP_for || c == TL_OP_if || c == TL_OP_while)
            ok = demand_region_op(lw, o);
        else if (c == TL_OP_dot)
            ok = demand_dot(lw, o);
        else if (c == TL_OP_reduce)
            ok = demand_reduce(lw, o);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- LDS ---- */

/* Number of the first access of s like access i: the same kind and layout. */
static uint32_t
first_like(const TlLdsAccess *acc, uint32_t i)
{
    uint32_t j = 0;
    while (acc[j].op != acc[i].op || !tl_layout_equal(&acc[j].layout, &acc[i].layout))
        j++;
    return j;
}

/* The map is solved for the first different accesses (as many as the solver takes); others live with it. */
bool
lw_lds_solve(Lw *lw, LwShared *s)
{
    enum { MAX_SOLVED = 8 };
    uint32_t n = s->acc.len, kinds = 0, total = 0, of[MAX_SOLVED];
    TlLdsAccess *acc = TL_NEW_N(lw->arena, TlLdsAccess, n), solved[MAX_SOLVED];
    TlAddrSplit split[MAX_SOLVED];
    if (s->solved)
        return true;
    if (!acc)
        return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t i = 0; i < n; i++) {
        TlOp o = s->acc.data[i].op;
        acc[i] = (TlLdsAccess){.op = tl_opn(lw->ir, o)->code == TL_OP_store ? TL_LDS_WRITE : TL_LDS_READ,
                               .layout = s->acc.data[i].lay,
                               .max_bytes = 16,
                               .weight = 1};
        if (first_like(acc, i) == i && kinds < MAX_SOLVED) {
            of[kinds] = i;
            solved[kinds++] = acc[i];
        }
    }
    if (!n || !tl_lds_solve(lw->tgt, s->rank, s->shape, tl_elem_bytes(s->elem), s->minor, solved, kinds,
                            &s->map, split, &total))
        return lw_fail(lw, tl_valn(lw->ir, s->src)->def, TL_E_INTERNAL, "no LDS layout found");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0, like = first_like(acc, i);
        while (k < kinds && of[k] != like)
            k++;
        if (k < kinds)
            s->acc.data[i].split = split[k];
        else if (!tl_lds_split(lw->tgt, &s->map, &acc[i], UINT16_MAX, &s->acc.data[i].split))
            return lw_fail(lw, s->acc.data[i].op, TL_E_INTERNAL, "access does not fit the LDS layout");
    }
    uint32_t align = 256;
    s->offset = (lw->lds_bytes + align - 1) / align * align;
    lw->lds_bytes = s->offset + s->map.bytes;
    s->solved = true;
    return true;
}

static bool
solve_all(Lw *lw)
{
    for (uint32_t i = 0; i < lw->shared.len; i++) {
        LwShared *s = &lw->shared.data[i];
        TlOp o = tl_valn(lw->ir, s->src)->def;
        if (s->acc.len && !lw_lds_solve(lw, s))
            return false;
        if (lw->lds_bytes > lw->tgt->lds_max) {
            const TlTypeInfo *t = tl_vtype(lw->ir, s->src);
            lw_fail(lw, o, TL_E_LDS_LIMIT,
                    "shared tiles need %u bytes of LDS, %s has %u for a workgroup; '%s' (%lldx%lld %s) "
                    "alone takes %u",
                    lw->lds_bytes, lw->tgt->name, lw->tgt->lds_max, tl_attr_str(lw->ir, o, "name", "shared"),
                    (long long)t->shape[0], (long long)(t->rank > 1 ? t->shape[1] : 1), tl_elem_name(t->elem),
                    s->map.bytes);
            return tl_hint(lw->diag, "use smaller tiles or a narrower dtype");
        }
    }
    return true;
}

bool
lw_plan(Lw *lw)
{
    TlBlock body = lw->ir->kernels.data[lw->src].body;
    if (!lw_plan_dots(lw))
        return false;
    for (uint32_t before = UINT32_MAX; before != lw->anchors;) { /* round loops, until nothing is added */
        before = lw->anchors;
        if (!tl_walk(lw->ir, body, anchor_op, lw))
            return false;
    }
    return demand_block(lw, body) && solve_all(lw);
}
