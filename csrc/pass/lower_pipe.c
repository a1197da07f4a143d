/* lower_pipe.c - the pipelined matrix loop.
 *
 * A loop qualifies when each turn copies global tiles (through element-wise operations) into whole shared
 * tiles, one store each, and its carried values are accumulators of dots over those. Its full turns become
 *
 *     global -> registers (block 0), registers -> LDS, global -> registers (block 1), barrier, first
 * fragments loop: fragments of this block | barrier | registers -> LDS (next block), global -> registers (the
 * one after) | barrier | first fragments of the next block | matrix instructions between all of these
 *
 * and the turns that touch the end of k are left to the plain loop. Global addresses move in one scalar
 * offset a copy; past the last block the offset stays on it, so nothing is read outside. The order is final:
 * nothing is scheduled across a matrix instruction.
 *
 * Requires: layouts planned. Edge rows and columns cost nothing here: their lanes' offsets are out of range
 * or read other elements of the same tensor, whose products are never stored.
 */
#include "pass/lower_pipe.h"

static bool
collect_loads(Lw *lw, TlVal v, Copy *c, int depth)
{
    TlIr *ir = lw->ir;
    TlOp o = tl_valn(ir, v)->def;
    if (!o || depth > 20)
        return false;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_const || n.code == TL_OP_splat)
        return true;
    if (n.code == TL_OP_load) {
        if (tl_vtype(ir, n.in[0])->kind != TL_TY_BUF)
            return false;
        for (uint32_t i = 0; i < c->nloads; i++)
            if (c->load[i] == o)
                return c->flipped[i] == c->flip;
        if (c->nloads == MAX_LOADS)
            return false;
        c->flipped[c->nloads] = c->flip;
        c->load[c->nloads++] = o;
        return true;
    }
    if (n.code == TL_OP_trans) {
        c->flip = !c->flip;
        bool ok = collect_loads(lw, n.in[0], c, depth + 1);
        c->flip = !c->flip;
        return ok;
    }
    if (!(tl_op_row(n.code)->traits & TL_T_ELEMENTWISE))
        return false;
    for (uint32_t i = 0; i < n.nin; i++)
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_TILE && !collect_loads(lw, n.in[i], c, depth + 1))
            return false;
    return true;
}

/* The operand of a dot is a shared tile of this loop, or element-wise over loads of such. */
static bool
operand_fits(Pipe *p, TlVal v, bool *tree, int depth)
{
    TlIr *ir = p->lw->ir;
    if (tl_vtype(ir, v)->kind == TL_TY_SHARED) {
        for (uint32_t i = 0; i < p->ncopy; i++)
            if (tl_opn(ir, p->copy[i].store)->in[0] == v)
                return true;
        return false;
    }
    TlOp o = tl_valn(ir, v)->def;
    *tree = true;
    if (!o || depth > 20)
        return false;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_const || n.code == TL_OP_splat)
        return true;
    if (n.code == TL_OP_load)
        return tl_vtype(ir, n.in[0])->kind == TL_TY_SHARED && !tl_attr_str(ir, o, "dims", "")[0] &&
               operand_fits(p, n.in[0], tree, depth + 1);
    if (!(tl_op_row(n.code)->traits & TL_T_ELEMENTWISE))
        return false;
    for (uint32_t i = 0; i < n.nin; i++)
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_TILE && !operand_fits(p, n.in[i], tree, depth + 1))
            return false;
    return true;
}

static bool
known_shared(const Pipe *p, TlVal sh)
{
    for (uint32_t i = 0; i < p->ncopy; i++)
        if (tl_opn(p->lw->ir, p->copy[i].store)->in[0] == sh)
            return true;
    return false;
}

static bool
qualify_op(Pipe *p, TlOp o)
{
    TlIr *ir = p->lw->ir;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_store) {
        Copy *c = &p->copy[p->ncopy];
        if (p->ncopy == MAX_COPIES || tl_vtype(ir, n.in[0])->kind != TL_TY_SHARED ||
            known_shared(p, n.in[0]) || tl_attr_str(ir, o, "dims", "")[0])
            return false;
        *c = (Copy){.store = o, .root = n.in[1]};
        if (!collect_loads(p->lw, n.in[1], c, 0) || !c->nloads)
            return false;
        TlOp root = tl_valn(ir, n.in[1])->def;
        while (root && tl_opn(ir, root)->code == TL_OP_trans) /* a renaming: the same registers */
            root = tl_valn(ir, tl_opn(ir, root)->in[0])->def;
        c->plain = root == c->load[0];
        p->ncopy++;
        return true;
    }
    if (n.code == TL_OP_dot) {
        if (p->ndot == MAX_COPIES)
            return false;
        for (uint32_t f = 0; f < 2; f++) {
            p->tree[p->ndot][f] = false;
            if (!operand_fits(p, n.in[f], &p->tree[p->ndot][f], 0))
                return false;
        }
        p->dot[p->ndot++] = o;
        return true;
    }
    if (n.code == TL_OP_load && tl_vtype(ir, n.in[0])->kind == TL_TY_SHARED)
        return known_shared(p, n.in[0]);
    return n.code == TL_OP_barrier || n.code == TL_OP_yield || n.code == TL_OP_load ||
           ((tl_op_row(n.code)->traits & TL_T_PURE) && !(tl_op_row(n.code)->traits & TL_T_CONTROL));
}

/* Carried values are chains of dots only: arg -> dot -> dot -> yield. */
static bool
carried_are_dots(Pipe *p)
{
    TlIr *ir = p->lw->ir;
    TlBlock b = tl_opn(ir, p->loop)->region[0];
    TlOp y = tl_blockn(ir, b)->last;
    uint32_t n = tl_opn(ir, p->loop)->nres, seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        TlVal v = tl_opn(ir, y)->in[i], arg = tl_blockn(ir, b)->args.data[1 + i];
        while (v != arg) {
            TlOp o = tl_valn(ir, v)->def;
            if (!o || tl_opn(ir, o)->code != TL_OP_dot || tl_opn(ir, o)->block != b)
                return false;
            v = tl_opn(ir, o)->in[2];
            seen++;
        }
    }
    return seen == p->ndot && p->ndot > 0;
}

/* Every load moves with the induction variable along k alone, by a constant. */
static bool
loads_move_in_k(Pipe *p)
{
    Lw *lw = p->lw;
    TlIr *ir = lw->ir;
    for (uint32_t c = 0; c < p->ncopy; c++) {
        TlVal sh = tl_opn(ir, p->copy[c].store)->in[0];
        uint32_t kdims = 0;
        for (uint32_t d = 0; d < p->ndot; d++)
            for (uint32_t f = 0; f < 2; f++) {
                TlVal v = tl_opn(ir, p->dot[d])->in[f];
                if (v == sh || p->tree[d][f])
                    kdims |= 1u << (f ? 0 : 1);
            }
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            TlOp o = p->copy[c].load[i];
            const TlTypeInfo *bt = tl_vtype(ir, tl_opn(ir, o)->in[0]);
            uint32_t rank = tl_vtype(ir, tl_opn(ir, o)->res[0])->rank, bd, at, moving = 0;
            char kind;
            if (rank != 2 || (bt->flags & TL_BUF_BIG) || bt->elem == TL_ELEM_I1)
                return false;
            const int64_t *cap = tl_vtype(ir, tl_opn(ir, o)->res[0])->shape;
            for (uint32_t t = 0; t < rank; t++) {
                if (!lw_access_dim(ir, o, t, &bd, &at, &kind) || kind != 's')
                    return false;
                LwAff a = lw_aff(lw, tl_opn(ir, o)->in[at]);
                int64_t co = lw_aff_coef(&a, p->iv), low;
                if (!a.ok)
                    return false;
                if (co) {
                    if (co < 0 || (cap[t] & (cap[t] - 1)) /* padded */ || !lw_aff_min(lw, &a, &low) ||
                        low < 0 || kdims != 1u << (p->copy[c].flipped[i] ? 1 - t : t) ||
                        lw_aff_div(lw, &a) % 2)
                        return false;
                    moving++;
                }
            }
            const char *d = tl_attr_str(ir, o, "dims", "");
            for (uint32_t k = 0, op = 1; d[k]; op += d[k] == 'e' ? 2 : 1, k++) {
                LwAff a = lw_aff(lw, tl_opn(ir, o)->in[op]);
                if (d[k] == 'i' && lw_aff_coef(&a, p->iv))
                    return false;
                for (uint32_t s = 0; s < a.n; s++) /* other symbols must be known before the loop */
                    if (a.sym[s] != p->iv) {
                        TlOp def = tl_valn(ir, a.sym[s])->def;
                        if (def && tl_opn(ir, def)->block == tl_opn(ir, p->loop)->region[0] &&
                            tl_opn(ir, def)->code != TL_OP_program_id && tl_opn(ir, def)->code != TL_OP_dim)
                            return false;
                    }
            }
            if (moving != 1)
                return false;
        }
    }
    return true;
}

static bool
qualify(Pipe *p, Lw *lw, TlOp loop)
{
    TlIr *ir = lw->ir;
    TlBlock b = tl_opn(ir, loop)->region[0];
    *p = (Pipe){.lw = lw, .loop = loop, .iv = tl_blockn(ir, b)->args.data[0]};
    if (tl_attr_int(ir, loop, "num_stages", 2) <= 1 || tl_kattr_int(ir, lw->src, "num_stages", 2) <= 1)
        return false;
    if (!tl_is_const_int(ir, tl_opn(ir, loop)->in[2], &p->step) || p->step <= 0)
        return false;
    for (TlOp o = tl_blockn(ir, b)->first; o; o = tl_opn(ir, o)->next)
        if (!qualify_op(p, o))
            return false;
    return p->ncopy && carried_are_dots(p) && loads_move_in_k(p);
}

bool
lw_loop_pipelines(Lw *lw, TlOp loop)
{
    Pipe *p = TL_NEW(lw->arena, Pipe);
    return p && qualify(p, lw, loop);
}

/* ---- numbers of turns ---- */

static TlVal
i64c(Lw *lw, int64_t v)
{
    return lw_int(lw, TL_ELEM_I64, v);
}

/* Rows of k that must follow a turn for its loads of rows of odd length: a vector may run on into the next
 * row, and its dwords must not straddle the end of the tensor. */
static int64_t
slack(Pipe *p, TlOp load)
{
    Lw *lw = p->lw;
    const TlTypeInfo *bt = tl_vtype(lw->ir, tl_opn(lw->ir, load)->in[0]);
    uint32_t es = tl_elem_bytes(bt->elem), bd, at;
    char kind;
    if (es >= 4)
        return 0;
    for (uint32_t t = 0; t < 2; t++) {
        lw_access_dim(lw->ir, load, t, &bd, &at, &kind);
        LwAff a = lw_aff(lw, tl_opn(lw->ir, load)->in[at]);
        int64_t d = bt->shape[bd] == TL_DYN ? bt->dim_div[bd] : bt->shape[bd];
        if (bt->strides[bd] == 1 && !lw_aff_coef(&a, p->iv) &&
            (d % (4 / es) || lw_aff_div(lw, &a) % (4 / es)))
            return 4 / es - 1;
    }
    return 0;
}

/* Turns of the loop whose loads lie inside along k; *total gets all turns. i64. */
static TlVal
full_turns(Pipe *p, TlVal *total)
{
    Lw *lw = p->lw;
    TlIr *ir = lw->ir;
    const TlOpNode n = *tl_opn(ir, p->loop);
    TlVal lb = lw_scalar(lw, n.in[0]), ub = lw_scalar(lw, n.in[1]);
    TlVal span = lw_bin(lw, TL_OP_max, lw_bin(lw, TL_OP_sub, ub, lb), i64c(lw, 0));
    TlVal turns =
        lw_bin(lw, TL_OP_truncdiv, lw_bin(lw, TL_OP_add, span, i64c(lw, p->step - 1)), i64c(lw, p->step));
    TlVal full = turns;
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            TlOp o = p->copy[c].load[i];
            const TlTypeInfo tt = *tl_vtype(ir, tl_opn(ir, o)->res[0]);
            for (uint32_t t = 0; t < 2; t++) {
                uint32_t bd, at;
                char kind;
                lw_access_dim(ir, o, t, &bd, &at, &kind);
                LwAff a = lw_aff(lw, tl_opn(ir, o)->in[at]);
                int64_t co = lw_aff_coef(&a, p->iv);
                if (!co)
                    continue;
                LwParam *pa = lw_param(lw, tl_opn(ir, o)->in[0]);
                /* room = dim - cap - (start at the first turn); turns with room: floor(room / (co * step)) +
                 * 1 */
                TlVal first = lw_bin(lw, TL_OP_add, lw_aff_emit(lw, &a, p->iv),
                                     lw_bin(lw, TL_OP_mul, lb, i64c(lw, co)));
                TlVal room =
                    lw_bin(lw, TL_OP_sub,
                           lw_bin(lw, TL_OP_sub, pa->dim[bd], i64c(lw, tt.shape[t] + slack(p, o))), first);
                TlVal k = lw_bin(lw, TL_OP_truncdiv, lw_bin(lw, TL_OP_add, room, i64c(lw, co * p->step)),
                                 i64c(lw, co * p->step));
                k = lw_bin(lw, TL_OP_max, k, i64c(lw, 0));
                full = lw_bin(lw, TL_OP_min, full, k);
            }
        }
    /* Products of what lies outside by a plain index count as 0: zeros do, what is computed from them may
     * not. The plain loop knows that. */
    bool computed = false;
    for (uint32_t c = 0; c < p->ncopy; c++)
        computed = computed || !p->copy[c].plain;
    for (uint32_t d = 0; d < p->ndot; d++)
        computed = computed || p->tree[d][0] || p->tree[d][1];
    for (uint32_t c = 0; computed && c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            TlVal when = lw_access_when(lw, p->copy[c].load[i]);
            full = when ? lw_sel(lw, when, full, i64c(lw, 0)) : full;
        }
    *total = turns;
    return full;
}

/* Which loop result (carried value) a dot of the chain feeds. */
static uint32_t
carried_of(Pipe *p, TlOp dot)
{
    TlIr *ir = p->lw->ir;
    TlBlock b = tl_opn(ir, p->loop)->region[0];
    TlVal v = tl_opn(ir, dot)->in[2];
    for (;;) {
        TlOp o = tl_valn(ir, v)->def;
        if (!o || tl_opn(ir, o)->block != b)
            break;
        v = tl_opn(ir, o)->in[2];
    }
    return tl_valn(ir, v)->index - 1;
}

/* Extents of the shared tiles after full turns: rows and columns of what was copied. */
static bool
copy_exts(Pipe *p)
{
    for (uint32_t c = 0; c < p->ncopy; c++) {
        LwExt all = {0};
        for (uint32_t i = 0; i < p->copy[c].nloads; i++) {
            TlOp o = p->copy[c].load[i];
            uint32_t moving = 0, bd, at;
            char kind;
            LwExt e;
            for (uint32_t t = 0; t < 2; t++) {
                lw_access_dim(p->lw->ir, o, t, &bd, &at, &kind);
                LwAff a = lw_aff(p->lw, tl_opn(p->lw->ir, o)->in[at]);
                if (lw_aff_coef(&a, p->iv))
                    moving |= 1u << t;
            }
            if (!lw_access_ext(p->lw, o, moving, &e))
                return false;
            if (p->copy[c].flipped[i]) {
                TlVal lo = e.lo[0], hi = e.hi[0];
                e.lo[0] = e.lo[1], e.hi[0] = e.hi[1];
                e.lo[1] = lo, e.hi[1] = hi;
            }
            lw_ext_meet(p->lw, &all, &e);
        }
        p->copy[c].s->ext = all;
    }
    return true;
}

/* The tiles that the loop carries, one a dot's accumulator, in the layouts of their dots. */
static bool
take_accumulators(Pipe *p, LwTile **carried, LwTile **acc)
{
    Lw *lw = p->lw;
    uint32_t acc_regs = 0;
    for (uint32_t d = 0; d < p->ndot; d++) {
        uint32_t i = carried_of(p, p->dot[d]);
        LwDotPlan *pl = lw_dot_plan(lw, p->dot[d]);
        if (!carried[i]) {
            uint32_t cn = tl_dot_slice(&pl->d, TL_FRAG_C, 0, 0, 0).count;
            LwTile *t = lw_tile_chunked(lw, tl_opn(lw->ir, p->loop)->in[3 + i], &pl->c, cn);
            carried[i] = t ? lw_tile_new(lw, &pl->c, t->elem, cn) : NULL;
            if (!carried[i])
                return false;
            memcpy(carried[i]->v, t->v, t->nchunk * sizeof *t->v);
            acc_regs += t->nchunk * cn;
        }
        acc[d] = carried[i];
    }
    p->late = acc_regs >= 128;
    return true;
}

bool
lw_pipelined_loop(Lw *lw, TlOp loop)
{
    TlIr *ir = lw->ir;
    Pipe *p = TL_NEW(lw->arena, Pipe);
    LwTile *acc[MAX_COPIES], *carried[MAX_COPIES] = {0};
    TlVal total;
    int64_t cf, ct;
    if (!p || !qualify(p, lw, loop))
        return lw_fail(lw, loop, TL_E_INTERNAL, "loop does not pipeline");
    uint32_t nres = tl_opn(ir, loop)->nres;
    if (nres > MAX_COPIES)
        return lw_fail(lw, loop, TL_E_UNSUPPORTED, "a loop with more than %d accumulators", MAX_COPIES);
    for (uint32_t c = 0; c < p->ncopy; c++)
        for (uint32_t i = 0; i < p->copy[c].nloads; i++)
            if (!lw_order_memory(lw, p->copy[c].load[i]))
                return false;
    TlVal full = full_turns(p, &total);
    if (!take_accumulators(p, carried, acc))
        return false;
    bool all_full = lw_is_const(lw, full, &cf) && lw_is_const(lw, total, &ct) && cf == ct;
    bool none = lw_is_const(lw, full, &cf) && cf == 0, surely = lw_is_const(lw, full, &cf) && cf > 0;
    if (!none) {
        for (uint32_t c = 0; c < p->ncopy; c++)
            if (!lw_pipe_prepare_copy(p, &p->copy[c]))
                return false;
        if (!lw_pipe_offset_scale(p) || !lw_pipe_alloc_frags(p))
            return false;
        LwRegion r;
        TlVal cond = surely ? 0 : lw_bin(lw, TL_OP_gt, full, i64c(lw, 0));
        if (!lw_if_begin(lw, loop, cond, carried, nres, &r) || !lw_pipe_emit(p, acc, full) ||
            !lw_if_end(lw, &r, carried, nres))
            return false;
    }
    for (uint32_t i = 0; i < nres; i++) {
        LwTile *t = lw_tile_new(lw, &carried[i]->lay, carried[i]->elem, carried[i]->chunk);
        if (!t)
            return false;
        memcpy(t->v, carried[i]->v, t->nchunk * sizeof *t->v);
        carried[i] = t;
    }
    if (all_full) {
        for (uint32_t i = 0; i < nres; i++)
            if (!lw_set_tile(lw, tl_opn(ir, loop)->res[i], carried[i]))
                return false;
        return copy_exts(p) && lw_loop_exts(lw, loop, 0);
    }
    /* the turns at the end of k */
    const TlOpNode n = *tl_opn(ir, loop);
    TlVal lb = lw_bin(lw, TL_OP_add, lw_scalar(lw, n.in[0]), lw_bin(lw, TL_OP_mul, full, i64c(lw, p->step)));
    return lw_plain_for(lw, loop, lb, lw_scalar(lw, n.in[1]), carried);
}
