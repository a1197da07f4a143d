/* eval.c - see eval.h: programs, control flow, scalars, element-wise operations. */
#include "ir/eval_internal.h"

#include <math.h>

bool
ev_fault(Ev *e, TlOp o, const char *fmt, ...)
{
    TlText t;
    va_list ap;
    tl_text_init(&t, e->ir->arena);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    const TlOpNode *n = tl_opn(e->ir, o);
    return tl_error(
        e->ir->diag, n->loc, TL_E_VALUE,
        tl_arena_printf(e->ir->arena, "%s: %s", tl_op_row(n->code)->name, t.failed ? "?" : t.data));
}

EvTile *
ev_tile_new(Ev *e, TlElem elem, uint32_t rank, const int64_t *shape, bool mask)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= shape[d];
    size_t bytes = sizeof(EvTile) + (size_t)n * (sizeof(TlNum) + mask);
    TlAlloc *a = &e->ir->arena->alloc;
    EvTile *t = a->realloc(a->self, NULL, 0, bytes);
    if (!t) {
        e->oom = true;
        return NULL;
    }
    memset(t, 0, bytes);
    t->refs = 1;
    t->elem = elem;
    t->rank = rank;
    t->n = n;
    t->bytes = bytes;
    t->v = (TlNum *)(t + 1);
    t->mask = mask ? (uint8_t *)(t->v + n) : NULL;
    for (uint32_t d = 0; d < rank; d++)
        t->hi[d] = t->shape[d] = shape[d];
    if (mask)
        memset(t->mask, 1, (size_t)n);
    return t;
}

void
ev_tile_release(Ev *e, EvTile *t)
{
    TlAlloc *a = &e->ir->arena->alloc;
    if (t && --t->refs == 0)
        a->realloc(a->self, t, t->bytes, 0);
}

void
ev_slot_clear(Ev *e, EvSlot *s)
{
    ev_tile_release(e, s->tile);
    ev_tile_release(e, s->mem.content);
    *s = (EvSlot){0};
}

static void
copy_slot(Ev *e, EvSlot *to, const EvSlot *from)
{
    EvSlot s = *from;
    if (s.tile)
        s.tile->refs++;
    if (s.mem.content)
        s.mem.content->refs++;
    ev_slot_clear(e, to);
    *to = s;
}

bool
ev_give(Ev *e, TlOp o, EvTile *t)
{
    EvSlot *s = &e->slots[tl_opn(e->ir, o)->res[0]];
    if (!t)
        return false;
    ev_slot_clear(e, s);
    s->tile = t;
    return true;
}

static bool
give_num(Ev *e, TlOp o, TlNum n)
{
    EvSlot *s = &e->slots[tl_opn(e->ir, o)->res[0]];
    ev_slot_clear(e, s);
    s->num = n;
    return true;
}

/* ---- element-wise ---- */

static TlNum
one_element(TlOpcode c, TlElem from, TlElem to, const TlNum *in)
{
    TlNum r = {0};
    if (c == TL_OP_cast)
        return tl_num_cast(from, to, in[0]);
    if (c == TL_OP_bitcast)
        return tl_num_decode(to, tl_num_encode(from, in[0]));
    if (!tl_fold(c, from, in, &r)) /* division by 0: the language leaves the value open */
        r.i = 0;
    return r;
}

static bool
elementwise(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    const TlTypeInfo *rt = ev_type(e, o);
    TlElem to = tl_type_elem(rt);
    TlElem from = tl_type_elem(tl_vtype(e->ir, n->in[n->code == TL_OP_select ? 1 : 0]));
    TlNum in[3] = {{0}};
    bool mask = false;
    if (rt->kind != TL_TY_TILE) {
        for (uint32_t i = 0; i < n->nin; i++)
            in[i] = ev_in(e, o, i)->num;
        return give_num(e, o, one_element(n->code, from, to, in));
    }
    for (uint32_t i = 0; i < n->nin; i++)
        mask |= ev_in(e, o, i)->tile && ev_in(e, o, i)->tile->mask;
    EvTile *t = ev_tile_new(e, to, rt->rank, rt->shape, mask);
    if (!t)
        return false;
    t->free = true;
    for (uint32_t i = 0; i < n->nin; i++) {
        const EvTile *x = ev_in(e, o, i)->tile; /* NULL: the scalar condition of a select */
        t->free &= !x || x->free;
        t->nothing |= x && x->nothing;
        for (uint32_t d = 0; x && d < t->rank; d++) {
            t->lo[d] = TL_MAX(t->lo[d], x->lo[d]);
            t->hi[d] = TL_MIN(t->hi[d], x->hi[d]);
        }
        for (int64_t k = 0; x && x->mask && k < t->n; k++)
            t->mask[k] &= x->mask[k];
    }
    for (int64_t k = 0; k < t->n; k++) {
        for (uint32_t i = 0; i < n->nin; i++)
            in[i] = ev_in(e, o, i)->tile ? ev_in(e, o, i)->tile->v[k] : ev_in(e, o, i)->num;
        t->v[k] = one_element(n->code, from, to, in);
    }
    return ev_give(e, o, t);
}

static bool
constant(Ev *e, TlOp o)
{
    const TlTypeInfo *rt = ev_type(e, o);
    TlElem elem = tl_type_elem(rt);
    const TlAttr *a = tl_attr(e->ir, o, tl_elem_is_float(elem) ? "fvalue" : "value");
    TlNum v = {.i = a->u.i};
    if (tl_elem_is_float(elem))
        v.f = tl_float_round(elem, a->u.f);
    if (rt->kind != TL_TY_TILE)
        return give_num(e, o, v);
    EvTile *t = ev_tile_new(e, elem, rt->rank, rt->shape, false);
    for (int64_t k = 0; t && k < t->n; k++)
        t->v[k] = v;
    if (t)
        t->free = true;
    return ev_give(e, o, t);
}

/* ---- control flow ---- */

static bool run_block(Ev *e, TlBlock b);

/* values[i] <- operands of the terminator, at once (they may be each other's old values) */
static bool
move_values(Ev *e, const TlVal *to, const TlVal *from, uint32_t n)
{
    enum { SMALL = 16 };
    EvSlot small[SMALL], *tmp = small;
    if (n > SMALL && !(tmp = TL_NEW_N(e->ir->arena, EvSlot, n))) {
        e->oom = true;
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        tmp[i] = (EvSlot){0};
        copy_slot(e, &tmp[i], &e->slots[from[i]]);
    }
    for (uint32_t i = 0; i < n; i++) {
        ev_slot_clear(e, &e->slots[to[i]]);
        e->slots[to[i]] = tmp[i];
    }
    return true;
}

static bool
run_for(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    const TlBlockNode *b = tl_blockn(e->ir, n->region[0]);
    const TlOpNode *y = tl_opn(e->ir, tl_block_terminator(e->ir, n->region[0]));
    TlElem elem = tl_type_elem(tl_vtype(e->ir, n->in[0]));
    int64_t lo = ev_in(e, o, 0)->num.i, hi = ev_in(e, o, 1)->num.i, step = ev_in(e, o, 2)->num.i;
    bool uns = tl_elem_kind(elem) == TL_KIND_UINT;
    if (step == 0)
        return ev_fault(e, o, "the step is 0");
    if (!move_values(e, b->args.data + 1, n->in + 3, n->nin - 3))
        return false;
    for (int64_t i = lo; uns ? (uint64_t)i < (uint64_t)hi : step > 0 ? i < hi : i > hi;) {
        e->slots[b->args.data[0]].num.i = i;
        if (!run_block(e, n->region[0]) || !move_values(e, b->args.data + 1, y->in, y->nin))
            return false;
        if (__builtin_add_overflow(i, step, &i) || tl_int_wrap(elem, i) != i)
            break;
    }
    return move_values(e, n->res, b->args.data + 1, n->nres);
}

static bool
run_while(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    const TlOpNode *c = tl_opn(e->ir, tl_block_terminator(e->ir, n->region[0]));
    const TlOpNode *y = tl_opn(e->ir, tl_block_terminator(e->ir, n->region[1]));
    const TlVal *a0 = tl_blockn(e->ir, n->region[0])->args.data,
                *a1 = tl_blockn(e->ir, n->region[1])->args.data;
    if (!move_values(e, a0, n->in, n->nin))
        return false;
    for (int64_t turns = 0;; turns++) {
        if (turns == 1 << 24)
            return ev_fault(e, o, "does not end");
        if (!run_block(e, n->region[0]))
            return false;
        if (!e->slots[c->in[0]].num.i)
            return move_values(e, n->res, c->in + 1, n->nres);
        if (!move_values(e, a1, c->in + 1, n->nin) || !run_block(e, n->region[1]) ||
            !move_values(e, a0, y->in, n->nin))
            return false;
    }
}

static bool
run_if(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    TlBlock b = n->region[ev_in(e, o, 0)->num.i ? 0 : 1];
    return run_block(e, b) &&
           move_values(e, n->res, tl_opn(e->ir, tl_block_terminator(e->ir, b))->in, n->nres);
}

static bool
run_grid(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    const TlBlockNode *b = tl_blockn(e->ir, n->region[0]);
    enum { MAX_AXES = 16 };
    int64_t at[MAX_AXES] = {0}, extent[MAX_AXES];
    if (n->nin > MAX_AXES)
        return ev_fault(e, o, "more than %d axes", MAX_AXES);
    for (uint32_t i = 0; i < n->nin; i++)
        if ((extent[i] = ev_in(e, o, i)->num.i) <= 0)
            return true;
    do {
        for (uint32_t i = 0; i < n->nin; i++)
            e->slots[b->args.data[i]].num.i = at[i];
        if (!run_block(e, n->region[0]))
            return false;
    } while (ev_next(n->nin, extent, at));
    return true;
}

static bool
run_op(Ev *e, TlOp o)
{
    const TlOpNode *n = tl_opn(e->ir, o);
    int64_t axis = tl_attr_int(e->ir, o, "axis", 0);
    switch ((int)n->code) {
    case TL_OP_const:
        return constant(e, o);
    case TL_OP_program_id:
        return give_num(e, o, (TlNum){.i = e->pid[axis]});
    case TL_OP_num_programs:
        return give_num(e, o, (TlNum){.i = e->grid[axis]});
    case TL_OP_dim:
        return give_num(e, o, (TlNum){.i = ev_in(e, o, 0)->mem.dims[axis]});
    case TL_OP_stride:
        return give_num(e, o, (TlNum){.i = ev_in(e, o, 0)->mem.strides[axis]});
    case TL_OP_alloc_shared:
    case TL_OP_alloc_local:
        return ev_alloc(e, o);
    case TL_OP_barrier:
    case TL_OP_yield:
    case TL_OP_condition:
        return true;
    case TL_OP_assert:
        return ev_in(e, o, 0)->num.i ? true : ev_fault(e, o, "%s", tl_attr_str(e->ir, o, "msg", ""));
    case TL_OP_for:
        return run_for(e, o);
    case TL_OP_while:
        return run_while(e, o);
    case TL_OP_if:
        return run_if(e, o);
    case TL_OP_grid:
        return run_grid(e, o);
    case TL_OP_bitcast:
        return elementwise(e, o);
    }
    if (tl_op_row(n->code)->traits & TL_T_ELEMENTWISE)
        return elementwise(e, o);
    return ev_tile_op(e, o);
}

static bool
run_block(Ev *e, TlBlock b)
{
    for (TlOp o = tl_blockn(e->ir, b)->first; o; o = tl_opn(e->ir, o)->next)
        if (!run_op(e, o))
            return false;
    return true;
}

/* ---- programs ---- */

static bool
bind_args(Ev *e, const TlEvalArg *args, uint32_t nargs)
{
    const TlBlockNode *body = tl_blockn(e->ir, tl_kerneln(e->ir, e->kernel)->body);
    TlLoc loc = tl_kerneln(e->ir, e->kernel)->loc;
    if (tl_kerneln(e->ir, e->kernel)->level != TL_LEVEL_TILE)
        return tl_error(e->ir->diag, loc, TL_E_VALUE, "the evaluator runs kernels of level tile");
    if (body->args.len != nargs)
        return tl_error(
            e->ir->diag, loc, TL_E_VALUE,
            tl_arena_printf(e->ir->arena, "%u arguments wanted, %u given", body->args.len, nargs));
    for (uint32_t i = 0; i < nargs; i++) {
        TlVal v = body->args.data[i];
        const TlTypeInfo *t = tl_vtype(e->ir, v);
        e->slots[v].num = args[i].scalar;
        if (t->kind != TL_TY_BUF)
            continue;
        EvMem *m = &e->slots[v].mem;
        *m = (EvMem){.global = true, .elem = t->elem, .rank = t->rank, .data = args[i].data};
        for (uint32_t d = 0; d < t->rank; d++) {
            m->dims[d] = args[i].dims[d];
            m->strides[d] = args[i].strides[d];
            if ((t->shape[d] != TL_DYN && t->shape[d] != m->dims[d]) ||
                (t->strides[d] != TL_DYN && t->strides[d] != m->strides[d]))
                return tl_error(
                    e->ir->diag, loc, TL_E_VALUE,
                    tl_arena_printf(e->ir->arena, "argument %u: dim %u is not as its type says", i, d));
        }
    }
    return true;
}

bool
tl_eval(TlIr *ir, TlKernelId k, const TlEvalArg *args, uint32_t nargs, const int64_t grid[3])
{
    Ev e = {.ir = ir, .kernel = k, .slots = TL_NEW_N(ir->arena, EvSlot, ir->vals.len)};
    bool ok = e.slots != NULL;
    memcpy(e.grid, grid, sizeof e.grid);
    ok = ok && bind_args(&e, args, nargs);
    for (e.pid[2] = 0; ok && e.pid[2] < grid[2]; e.pid[2]++)
        for (e.pid[1] = 0; ok && e.pid[1] < grid[1]; e.pid[1]++)
            for (e.pid[0] = 0; ok && e.pid[0] < grid[0]; e.pid[0]++)
                ok = run_block(&e, tl_kerneln(ir, k)->body);
    for (uint32_t i = 0; e.slots && i < ir->vals.len; i++)
        ev_slot_clear(&e, &e.slots[i]);
    if (e.oom || ir->arena->failed)
        ir->diag->oom = true;
    return ok && !ir->diag->oom;
}
