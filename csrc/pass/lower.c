/* lower.c - pass "lower": one tile-level kernel becomes one thread-level kernel.
 *
 * requires: launch grid settled (pass launch_grid), dot operands shared or made of shared tiles (pass
 * promote). keeps:    meaning; order of memory effects of a program. breaks:   everything of tile level: the
 * source kernel is left behind, the result is a new kernel.
 *
 * Parameters become 8-byte slots (pointer, dynamic dims, dynamic strides; scalars). Scalars and index
 * arithmetic go to the entry block where they can; tiles become vectors of registers in planned layouts.
 */
#include "pass/lower.h"

/* ---- parameters ---- */

static TlVal
slot(Lw *lw, TlType t, const char *name)
{
    return tl_block_arg(lw->ir, lw->entry, t, name);
}

static bool
buffer_param(Lw *lw, TlVal src, LwParam *p)
{
    TlIr *ir = lw->ir;
    const TlTypeInfo bt = *tl_vtype(ir, src);
    const char *name = tl_str(&ir->strs, tl_valn(ir, src)->name);
    p->is_buf = true;
    p->ptr = slot(lw, tl_type_kind(ir, TL_TY_PTR), name);
    for (uint32_t d = 0; d < bt.rank; d++) {
        const char *s = tl_arena_printf(lw->arena, "%s_dim%u", name, d);
        p->dim[d] = bt.shape[d] != TL_DYN ? 0 : slot(lw, lw_ty(lw, TL_ELEM_I64), s ? s : "");
    }
    for (uint32_t d = 0; d < bt.rank && !(bt.flags & TL_BUF_DENSE); d++) {
        const char *s = tl_arena_printf(lw->arena, "%s_stride%u", name, d);
        p->stride[d] = bt.strides[d] != TL_DYN ? 0 : slot(lw, lw_ty(lw, TL_ELEM_I64), s ? s : "");
    }
    return p->ptr != 0;
}

/* What is known of dims and strides as values, once all slots are there. */
static void
buffer_values(Lw *lw, LwParam *p)
{
    const TlTypeInfo bt = *tl_vtype(lw->ir, p->src);
    TlVal one = lw_int(lw, TL_ELEM_I64, 1), run = one, span = 0;
    for (uint32_t d = bt.rank; d-- > 0;) {
        if (!p->dim[d])
            p->dim[d] = lw_int(lw, TL_ELEM_I64, bt.shape[d]);
        if (!p->stride[d])
            p->stride[d] = bt.strides[d] != TL_DYN ? lw_int(lw, TL_ELEM_I64, bt.strides[d]) : run;
        run = lw_bin(lw, TL_OP_mul, run, p->dim[d]);
        TlVal ext = lw_bin(lw, TL_OP_mul, lw_bin(lw, TL_OP_sub, p->dim[d], one), p->stride[d]);
        span = span ? lw_bin(lw, TL_OP_add, span, ext) : ext;
    }
    TlVal n = bt.flags & TL_BUF_DENSE ? run : span ? lw_bin(lw, TL_OP_add, span, one) : one;
    p->bytes = lw_bin(lw, TL_OP_mul, n, lw_int(lw, TL_ELEM_I64, tl_elem_bytes(bt.elem)));
}

/* Dims that the launch checks to be equal are one value. */
static void
same_dims(Lw *lw)
{
    const TlAttr *a = tl_kattr(lw->ir, lw->src, "same_dims");
    for (uint32_t i = 0; a && a->kind == TL_ATTR_INTS && i + 3 < a->u.ints.n; i += 4) {
        const int64_t *v = a->u.ints.v + i;
        if (v[0] < 0 || v[2] < 0 || v[0] >= lw->params.len || v[2] >= lw->params.len || v[1] < 0 ||
            v[3] < 0 || v[1] >= TL_MAX_RANK || v[3] >= TL_MAX_RANK)
            continue;
        TlVal *x = &lw->params.data[v[0]].dim[v[1]], *y = &lw->params.data[v[2]].dim[v[3]];
        if (*x && *y)
            *y = *x;
    }
}

static bool
params(Lw *lw)
{
    TlIr *ir = lw->ir;
    TlBlock body = ir->kernels.data[lw->src].body;
    uint32_t n = tl_blockn(ir, body)->args.len;
    for (uint32_t i = 0; i < n; i++) {
        TlVal src = tl_blockn(ir, body)->args.data[i];
        const TlTypeInfo t = *tl_vtype(ir, src);
        LwParam p = {.src = src};
        if (t.kind == TL_TY_BUF) {
            if (!buffer_param(lw, src, &p))
                return false;
        } else {
            p.scalar = slot(lw, t.kind == TL_TY_INDEX ? lw_ty(lw, TL_ELEM_I64) : lw_ty(lw, t.elem),
                            tl_str(&ir->strs, tl_valn(ir, src)->name));
            if (!p.scalar || !tl_map_put(&lw->scal, src, p.scalar))
                return false;
        }
        if (!tl_vec_push(lw->arena, &lw->params, p))
            return tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
    }
    lw->tid = lw_pure(lw, TL_OP_thread_id, lw_ty(lw, TL_ELEM_I32), NULL, 0, NULL, 0);
    lw->lane = lw->waves > 1 ? lw_pure(lw, TL_OP_lane_id, lw_ty(lw, TL_ELEM_I32), NULL, 0, NULL, 0) : lw->tid;
    lw->wave = lw->waves > 1 ? lw_pure(lw, TL_OP_wave_id, lw_ty(lw, TL_ELEM_I32), NULL, 0, NULL, 0)
                             : lw_int(lw, TL_ELEM_I32, 0);
    same_dims(lw);
    for (uint32_t i = 0; i < lw->params.len; i++)
        if (lw->params.data[i].is_buf)
            buffer_values(lw, &lw->params.data[i]);
    return lw->tid && lw->lane && lw->wave;
}

/* ---- blocks ---- */

static bool
lower_tile_op(Lw *lw, TlOp o)
{
    TlVal r = tl_opn(lw->ir, o)->res[0];
    for (uint32_t i = 0;; i++) {
        LwVal *v = lw_val(lw, r);
        if (!v)
            return false;
        if (i >= v->nlay)
            return true;
        TlLayout l = v->lay[i];
        if (!lw_tile(lw, r, &l))
            return false;
    }
}

static bool
lower_op(Lw *lw, TlOp o)
{
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    lw->b.loc = n.loc;
    if (n.code == TL_OP_for)
        return lw_lower_for(lw, o);
    if (n.code == TL_OP_if)
        return lw_lower_if(lw, o);
    if (n.code == TL_OP_while)
        return lw_lower_while(lw, o);
    if (n.code == TL_OP_store)
        return tl_vtype(ir, n.in[0])->kind == TL_TY_SHARED ? lw_store_shared(lw, o) : lw_store_global(lw, o);
    if (n.code == TL_OP_dot) {
        LwTile *t = lw_dot(lw, o);
        return t && lw_set_tile(lw, n.res[0], t);
    }
    if (n.code ==
        TL_OP_barrier) { /* accesses to LDS bring their own; what others stored to global memory needs it */
        return !lw->sync.gwritten || lw_barrier_all(lw);
    }
    if (n.code == TL_OP_load)
        return tl_vtype(ir, n.res[0])->kind == TL_TY_TILE ? lw_emit_loads(lw, o) : lw_scalar_load(lw, o);
    if (n.code == TL_OP_reduce)
        return lw_reduce(lw, o);
    if (n.code == TL_OP_alloc_shared)
        return true;
    if (n.code == TL_OP_assert) {
        TlVal c = lw_scalar(lw, n.in[0]);
        c = c ? lw_bin(lw, TL_OP_xor, c, lw_int(lw, TL_ELEM_I1, 1)) : 0;
        LwRegion r;
        return c && lw_when_begin(lw, c, &r) && lw_op(lw, TL_OP_trap, NULL, 0, NULL, 0) &&
               lw_when_end(lw, &r);
    }
    if (n.nres == 1 && tl_vtype(ir, n.res[0])->kind == TL_TY_TILE && (tl_op_row(n.code)->traits & TL_T_PURE))
        return lower_tile_op(lw, o);
    if (n.nres == 1 && (tl_op_row(n.code)->traits & TL_T_PURE))
        return true; /* scalars are made when they are needed */
    return lw_fail(lw, o, TL_E_UNSUPPORTED, "operation '%s' is not lowered yet", tl_op_row(n.code)->name);
}

bool
lw_block(Lw *lw, TlBlock src)
{
    for (TlOp o = tl_blockn(lw->ir, src)->first; o; o = tl_opn(lw->ir, o)->next) {
        if (tl_opn(lw->ir, o)->code == TL_OP_yield || tl_opn(lw->ir, o)->code == TL_OP_condition)
            continue;
        if (!lower_op(lw, o))
            return false;
    }
    return true;
}

/* ---- the pass ---- */

static bool
biggest(TlIr *ir, TlOp o, void *self)
{
    int64_t *m = self; /* [0] dot area, [1] most elements of a stored tile */
    const TlOpNode *n = tl_opn(ir, o);
    if (n->code == TL_OP_dot) {
        const TlTypeInfo *t = tl_vtype(ir, n->res[0]);
        int64_t a = (int64_t)1 << (lw_pow2_bits(t->shape[0]) + (t->rank > 1 ? lw_pow2_bits(t->shape[1]) : 0));
        m[0] = TL_MAX(m[0], a);
        m[2] = m[2] ? TL_MIN(m[2], a) : a;
    } else if (n->code == TL_OP_store && tl_vtype(ir, n->in[1])->kind == TL_TY_TILE) {
        const TlTypeInfo *t = tl_vtype(ir, n->in[1]);
        int64_t c = 1;
        for (uint32_t d = 0; d < t->rank; d++)
            c <<= lw_pow2_bits(t->shape[d]);
        m[1] = TL_MAX(m[1], c);
    }
    return true;
}

/* Waves when the user leaves them open: matrix tiles by their accumulators, others by their elements. */
static uint32_t
choose_waves(TlIr *ir, TlKernelId k, uint32_t wave)
{
    int64_t m[3] = {0};
    tl_walk(ir, ir->kernels.data[k].body, biggest, m);
    uint32_t w = 1;
    if (m[0]) {
        uint32_t want = m[0] >= 32768 ? 8 : 4;
        while (w < want && (int64_t)w * 2 * 1024 <= m[0] && (int64_t)w * 2 * 256 <= m[2])
            w *= 2;
        return w;
    }
    while (w < 4 && (int64_t)w * 2 * wave * 4 <= m[1])
        w *= 2;
    return w;
}

static bool
finish(Lw *lw)
{
    TlIr *ir = lw->ir;
    if (lw->scratch_bytes)
        lw->lds_bytes = lw_scratch(lw, 0) + lw->scratch_bytes;
    if (lw->lds_bytes > lw->tgt->lds_max) {
        tl_error(
            lw->diag, ir->kernels.data[lw->src].loc, TL_E_LDS_LIMIT,
            tl_arena_printf(
                lw->arena,
                "the kernel needs %u bytes of LDS (%u of them to exchange tiles between waves), %s has %u",
                lw->lds_bytes, lw->scratch_bytes, lw->tgt->name, lw->tgt->lds_max));
        return tl_hint(lw->diag, "use smaller tiles");
    }
    static const char *const copied[] = {"grid0", "grid1", "grid2"};
    tl_kattr_set_str(ir, lw->dst, "target", lw->tgt->name);
    tl_kattr_set_int(ir, lw->dst, "num_warps", lw->waves);
    tl_kattr_set_int(ir, lw->dst, "block", (int64_t)lw->waves * lw->tgt->wave);
    tl_kattr_set_int(ir, lw->dst, "lds_bytes", lw->lds_bytes);
    int64_t wpe = tl_kattr_int(ir, lw->src, "waves_per_eu", 0);
    if (wpe)
        tl_kattr_set_int(ir, lw->dst, "waves_per_eu", wpe);
    for (uint32_t i = 0; i < TL_COUNT(copied); i++) {
        const TlAttr *a = tl_kattr(ir, lw->src, copied[i]);
        if (a && a->kind == TL_ATTR_INTS) {
            int64_t *v = a->u.ints.v;
            uint32_t n = a->u.ints.n;
            if (!tl_kattr_set_ints(ir, lw->dst, copied[i], v, n))
                return false;
        }
    }
    return true;
}

static void
read_grid(Lw *lw)
{
    static const char *const names[] = {"grid0", "grid1", "grid2"};
    for (uint32_t i = 0; i < 3; i++) {
        const TlAttr *a = tl_kattr(lw->ir, lw->src, names[i]);
        if (!a || a->kind != TL_ATTR_INTS || a->u.ints.n != 3)
            break;
        memcpy(lw->kgrid[i], a->u.ints.v, 3 * sizeof(int64_t));
        lw->ngrid = i + 1;
    }
    lw->grid_known = lw->ngrid > 0;
}

bool
tl_pass_lower(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Lw *lw = TL_NEW(ir->arena, Lw);
    (void)opts;
    if (!lw)
        return tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD)
        return true;
    *lw = (Lw){.ir = ir, .diag = ir->diag, .arena = ir->arena, .src = *kernel};
    const char *tname = tl_kattr_str(ir, *kernel, "target", "gfx942");
    lw->tgt = tl_target_by_name(tname);
    if (!lw->tgt || lw->tgt->arch != TL_ARCH_CDNA)
        return tl_error(
            ir->diag, ir->kernels.data[*kernel].loc, TL_E_TARGET,
            tl_arena_printf(ir->arena, "no lowering for target '%s' yet (gfx90a, gfx942 and gfx950 have one)",
                            tname));
    int64_t w = tl_kattr_int(ir, *kernel, "num_warps", 0);
    if (w < 0 || w > 16 || (w & (w - 1)))
        return tl_error(ir->diag, ir->kernels.data[*kernel].loc, TL_E_VALUE,
                        "num_warps must be 1, 2, 4, 8 or 16");
    lw->waves = w ? (uint32_t)w : choose_waves(ir, *kernel, lw->tgt->wave);
    lw->wave_bits = lw_pow2_bits(lw->waves);
    lw->lane_bits = lw_pow2_bits(lw->tgt->wave);
    tl_map_init(&lw->scal, lw->arena);
    tl_map_init(&lw->vals, lw->arena);
    tl_map_init(&lw->shareds, lw->arena);
    tl_map_init(&lw->stored, lw->arena);
    tl_map_init(&lw->numbering, lw->arena);
    tl_map_init(&lw->depth, lw->arena);
    tl_map_init(&lw->ivs, lw->arena);
    read_grid(lw);
    lw->dst = tl_kernel_new(ir, tl_str(&ir->strs, ir->kernels.data[*kernel].name), TL_LEVEL_THREAD);
    if (!lw->dst)
        return false;
    lw->entry = ir->kernels.data[lw->dst].body;
    lw->b = (TlBuilder){.ir = ir, .block = lw->entry};
    ir->kernels.data[lw->dst].loc = ir->kernels.data[lw->src].loc;
    if (!params(lw) || !lw_registers_fit(lw) || !lw_plan(lw) ||
        !lw_block(lw, ir->kernels.data[lw->src].body) || !finish(lw)) {
        if (!ir->diag->nerrors)
            tl_error(ir->diag, ir->kernels.data[*kernel].loc, ir->arena->failed ? TL_E_OOM : TL_E_INTERNAL,
                     "lowering failed");
        return false;
    }
    *kernel = lw->dst;
    return true;
}
