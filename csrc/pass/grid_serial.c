/* grid_serial.c - grid loops that cannot be divided: one program runs them in Python's order, element after
 * element.
 *
 * An element outside its tensor is invalid, and so is what is computed from it: the statement is skipped
 * then.
 */
#include "pass/grid.h"

typedef struct Serial {
    Gr *g;
    TlMap vals;  /* value of the loops -> value of the serial code */
    TlMap valid; /* value of the loops -> condition under which it is valid; absent: always */
} Serial;

static TlVal
now(const Serial *s, TlVal v)
{
    uint64_t to;
    return tl_map_get(&s->vals, v, &to) ? (TlVal)to : v;
}

static TlVal
both(Serial *s, TlVal a, TlVal b)
{
    TlType i1 = tl_type_scalar(s->g->ir, TL_ELEM_I1);
    return !a || a == b ? b : !b ? a : tl_build1t(&s->g->b, TL_OP_and, i1, 2, a, b);
}

static TlVal
valid_of(Serial *s, TlOp o, uint32_t first)
{
    const TlOpNode n = *tl_opn(s->g->ir, o);
    TlVal c = 0;
    for (uint32_t i = first; i < n.nin; i++) {
        uint64_t v;
        if (tl_map_get(&s->valid, n.in[i], &v))
            c = both(s, c, (TlVal)v);
    }
    return c;
}

/* Condition that the element lies in its tensor; 0: it does for certain. */
static TlVal
in_bounds(Serial *s, TlOp o, uint32_t first)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    TlType ix = tl_type_index(g->ir), i1 = tl_type_scalar(g->ir, TL_ELEM_I1);
    TlVal c = 0;
    for (uint32_t d = 0; d + first < n.nin; d++) {
        GrAff a = gr_aff(g, n.in[first + d]);
        if (gr_in_range(g, &a, n.in[0], d))
            continue;
        TlVal i = now(s, n.in[first + d]);
        if (tl_vtype(g->ir, i)->kind != TL_TY_INDEX)
            i = tl_build1t(&g->b, TL_OP_cast, ix, 1, i);
        TlVal size = tl_build1t(&g->b, TL_OP_dim, ix, 1, n.in[0]);
        if (!i || !size || !tl_attr_set_int(g->ir, tl_valn(g->ir, size)->def, "axis", d))
            return 0;
        c = both(s, c, tl_build1t(&g->b, TL_OP_ge, i1, 2, i, gr_ix(g, 0)));
        c = both(s, c, tl_build1t(&g->b, TL_OP_lt, i1, 2, i, size));
    }
    return c;
}

static TlOp
access_op(Serial *s, TlOpcode code, TlOp o, uint32_t first, TlVal value, TlType type)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    TlVal in[2 + TL_MAX_RANK];
    char dims[TL_MAX_RANK + 1] = {0};
    uint32_t k = 0;
    if (!value && !type)
        return 0; /* no memory for the type */
    in[k++] = n.in[0];
    if (value)
        in[k++] = value;
    for (uint32_t i = first; i < n.nin; i++) {
        in[k++] = now(s, n.in[i]);
        dims[i - first] = 'i';
    }
    TlOp r = tl_build(&g->b, code, in, k, &type, type ? 1 : 0);
    return r && tl_attr_set_str(g->ir, r, "dims", dims) ? r : 0;
}

static bool block(Serial *s, TlBlock from);

static bool
element(Serial *s, TlOp o)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    TlVal c = both(s, valid_of(s, o, 1), in_bounds(s, o, 1));
    TlVal v = tl_result(g->ir, access_op(s, TL_OP_load, o, 1, 0, tl_valn(g->ir, n.res[0])->type), 0);
    return v && tl_map_put(&s->vals, n.res[0], v) && (!c || tl_map_put(&s->valid, n.res[0], c));
}

static bool
write_it(Serial *s, TlOp o)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    TlElem e = tl_vtype(g->ir, n.in[0])->elem;
    TlVal v = now(s, n.in[1]);
    if (n.code == TL_OP_acc_element) {
        TlType wide = tl_valn(g->ir, n.in[1])->type;
        TlVal old = tl_result(g->ir, access_op(s, TL_OP_load, o, 2, 0, tl_type_scalar(g->ir, e)), 0);
        if (old && tl_valn(g->ir, old)->type != wide)
            old = tl_build1t(&g->b, TL_OP_cast, wide, 1, old);
        v = old ? tl_build1t(&g->b, gr_combiner(tl_attr_str(g->ir, o, "kind", "sum")), wide, 2, old, v) : 0;
        if (v && tl_vtype(g->ir, v)->elem != e)
            v = tl_build1t(&g->b, TL_OP_cast, tl_type_scalar(g->ir, e), 1, v);
    }
    return v && access_op(s, TL_OP_store, o, 2, v, 0);
}

static bool
statement(Serial *s, TlOp o)
{
    Gr *g = s->g;
    TlVal c = valid_of(s, o, 1);
    if (!c)
        return write_it(s, o);
    TlOp f = tl_build(&g->b, TL_OP_if, &c, 1, NULL, 0);
    TlBlock yes = f ? tl_block_new(g->ir, g->k, f) : 0, no = yes ? tl_block_new(g->ir, g->k, f) : 0;
    TlBuilder outer = g->b;
    if (!no)
        return false;
    g->b.before = 0;
    g->b.block = yes;
    bool ok = write_it(s, o) && tl_build(&g->b, TL_OP_yield, NULL, 0, NULL, 0);
    g->b.block = no;
    ok = ok && tl_build(&g->b, TL_OP_yield, NULL, 0, NULL, 0);
    g->b = outer;
    return ok;
}

/* Loop `level` of a grid operation and those inside it. */
static bool
grid(Serial *s, TlOp o, uint32_t level)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    GrFor f;
    if (level == n.nin)
        return block(s, n.region[0]);
    TlVal zero = gr_ix(g, 0), one = gr_ix(g, 1), end = now(s, n.in[level]);
    g->b.loc = n.loc;
    if (!zero || !one || !gr_for_begin(g, zero, end, one, NULL, 0, &f))
        return false;
    TlVal arg = tl_blockn(g->ir, n.region[0])->args.data[level];
    tl_val_set_name(g->ir, f.iv, tl_str(&g->ir->strs, tl_valn(g->ir, arg)->name));
    return tl_map_put(&s->vals, arg, f.iv) && grid(s, o, level + 1) && gr_for_end(g, &f, NULL, 0);
}

/* The yield of an `if`: its values, then for each whether it is valid. Of a loop: a value that is invalid
 * leaves the carried one alone. */
static bool
yield_of(Serial *s, TlOp y, TlOp parent)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, y);
    const TlOpNode p = *tl_opn(g->ir, parent);
    TlType i1 = tl_type_scalar(g->ir, TL_ELEM_I1);
    TlVal *in = TL_NEW_N(g->arena, TlVal, 2 * n.nin + 1);
    for (uint32_t i = 0; in && i < n.nin; i++) {
        uint64_t c = 0;
        bool known = tl_map_get(&s->valid, n.in[i], &c);
        in[i] = now(s, n.in[i]);
        if (p.code == TL_OP_if) {
            in[n.nin + i] = known ? (TlVal)c : tl_const_int(&g->b, i1, 1);
        } else if (known && p.code == TL_OP_for) {
            TlVal old = now(s, tl_blockn(g->ir, n.block)->args.data[1 + i]);
            in[i] = tl_build1t(&g->b, TL_OP_select, tl_valn(g->ir, old)->type, 3, (TlVal)c, in[i], old);
        }
    }
    return in && tl_build(&g->b, n.code, in, p.code == TL_OP_if ? 2 * n.nin : n.nin, NULL, 0);
}

/* Any other operation with regions: the same one around serial code. An `if` also gives the validity of its
 * results. */
static bool
regions(Serial *s, TlOp o)
{
    Gr *g = s->g;
    const TlOpNode n = *tl_opn(g->ir, o);
    uint32_t nres = n.code == TL_OP_if ? 2 * n.nres : n.nres;
    TlVal *in = TL_NEW_N(g->arena, TlVal, n.nin + 1);
    TlType *ty = TL_NEW_N(g->arena, TlType, nres + 1);
    if (!in || !ty)
        return false;
    for (uint32_t i = 0; i < n.nin; i++)
        in[i] = now(s, n.in[i]);
    for (uint32_t i = 0; i < nres; i++)
        ty[i] = i < n.nres ? tl_valn(g->ir, n.res[i])->type : tl_type_scalar(g->ir, TL_ELEM_I1);
    if (n.code == TL_OP_if && valid_of(s, o, 0))
        in[0] = both(s, valid_of(s, o, 0), in[0]); /* an invalid condition is False */
    TlOp r = tl_build(&g->b, n.code, in, n.nin, ty, nres);
    TlBuilder outer = g->b;
    for (uint32_t i = 0; r && i < n.nregion; i++) {
        TlBlock b = tl_block_new(g->ir, g->k, r);
        for (uint32_t a = 0; b && a < tl_blockn(g->ir, n.region[i])->args.len; a++) {
            TlVal arg = tl_blockn(g->ir, n.region[i])->args.data[a];
            TlVal to = tl_block_arg(g->ir, b, tl_valn(g->ir, arg)->type, NULL);
            if (!to || !tl_map_put(&s->vals, arg, to))
                return false;
        }
        g->b.block = b;
        g->b.before = 0;
        if (!b || !block(s, n.region[i]))
            return false;
    }
    g->b = outer;
    for (uint32_t i = 0; r && i < n.nres; i++)
        if (!tl_map_put(&s->vals, n.res[i], tl_result(g->ir, r, i)) ||
            (n.code == TL_OP_if && !tl_map_put(&s->valid, n.res[i], tl_result(g->ir, r, n.nres + i))))
            return false;
    return r != 0;
}

static bool
other(Serial *s, TlOp o)
{
    Gr *g = s->g;
    TlVal c = valid_of(s, o, 0);
    TlOp r = tl_op_clone(&g->b, o, &s->vals);
    for (uint32_t i = 0; r && c && i < tl_opn(g->ir, o)->nres; i++)
        if (!tl_map_put(&s->valid, tl_opn(g->ir, o)->res[i], c))
            return false;
    return r != 0;
}

static bool
block(Serial *s, TlBlock from)
{
    Gr *g = s->g;
    TlOp p = tl_blockn(g->ir, from)->parent;
    for (TlOp o = tl_blockn(g->ir, from)->first; o; o = tl_opn(g->ir, o)->next) {
        const TlOpNode n = *tl_opn(g->ir, o);
        bool ok = true;
        g->b.loc = n.loc;
        if (n.code == TL_OP_yield && p && tl_opn(g->ir, p)->code == TL_OP_grid)
            continue;
        if (n.code == TL_OP_yield && p)
            ok = yield_of(s, o, p);
        else if (n.code == TL_OP_element)
            ok = element(s, o);
        else if (n.code == TL_OP_set_element || n.code == TL_OP_acc_element)
            ok = statement(s, o);
        else if (n.code == TL_OP_grid)
            ok = grid(s, o, 0);
        else if (n.nregion)
            ok = regions(s, o);
        else
            ok = other(s, o);
        if (!ok)
            return false;
    }
    return true;
}

typedef struct Found {
    TL_VEC(TlOp) grids;
    TlArena *arena;
} Found;

static bool
outermost(TlIr *ir, TlOp o, void *self)
{
    Found *f = self;
    if (tl_opn(ir, o)->code != TL_OP_grid)
        return true;
    for (uint32_t i = 0; i < f->grids.len; i++)
        if (tl_op_inside(ir, o, f->grids.data[i]))
            return true;
    return tl_vec_push(f->arena, &f->grids, o);
}

/* All grid operations of the kernel, each in its place. */
bool
gr_emit_serial(Gr *g)
{
    static const int64_t one[3] = {-1, 1, 1};
    Serial s = {.g = g};
    Found f = {.arena = g->arena};
    tl_map_init(&s.vals, g->arena);
    tl_map_init(&s.valid, g->arena);
    if (!tl_walk(g->ir, g->ir->kernels.data[g->k].body, outermost, &f))
        return false;
    for (uint32_t i = 0; i < f.grids.len; i++) {
        TlOp o = f.grids.data[i];
        g->b = (TlBuilder){g->ir, tl_opn(g->ir, o)->block, o, tl_opn(g->ir, o)->loc};
        if (!grid(&s, o, 0))
            return false;
        tl_op_unlink(g->ir, o);
    }
    return tl_kattr_set_ints(g->ir, g->k, "grid0", one, 3);
}
