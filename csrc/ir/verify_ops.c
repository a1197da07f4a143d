/* verify_ops.c - what each row demands of its operands, results, attributes and regions, beyond arity and the
 * kinds of attributes (verify.c). Rows with a type rule need no function; rows with rule "given" have one in
 * `checks` or, of thread level, in verify_thread.c. Called only when the counts and attributes of the
 * operation are right. */
#include "ir/verify_int.h"

/* ---- constants, casts, shape operations ---- */

static void
check_const(TlVerifier *v, TlOp o)
{
    const TlAttr *i = tl_attr(v->ir, o, "value"), *f = tl_attr(v->ir, o, "fvalue");
    Info *r = res_i(v, o);
    TlElem e = tl_type_elem(r);
    if (!arithmetic(r))
        tl_fault(v, o, "no constants of type %s", text(v, res_t(v, o)));
    else if (!i == !f)
        tl_fault(v, o, "exactly one of value and fvalue");
    else if (tl_elem_is_float(e) != (f != NULL))
        tl_fault(v, o, "%s wanted for %s", f ? "value" : "fvalue", text(v, res_t(v, o)));
    else if (i && tl_int_wrap(e, i->u.i) != i->u.i)
        tl_fault(v, o, "%lld does not fit %s", (long long)i->u.i, tl_elem_name(e));
}

static void
check_cast(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    if (!arithmetic(a) || !arithmetic(r) || !same_shape(a, r))
        tl_fault(v, o, "no cast from %s to %s: same shape wanted", text(v, in_t(v, o, 0)),
                 text(v, res_t(v, o)));
}

static void
check_bitcast(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    bool tiles = a->kind == TL_TY_TILE && same_shape(a, r) && a->elem != TL_ELEM_I1 &&
                 r->elem != TL_ELEM_I1 && tl_elem_bits(a->elem) == tl_elem_bits(r->elem);
    if (!tiles && (total_bits(a) == 0 || total_bits(a) != total_bits(r)))
        tl_fault(v, o, "%s and %s have not the same bits", text(v, in_t(v, o, 0)), text(v, res_t(v, o)));
}

static void
check_splat(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    if ((a->kind != TL_TY_SCALAR && a->kind != TL_TY_INDEX) ||
        (r->kind != TL_TY_TILE && r->kind != TL_TY_VEC) || tl_type_elem(a) != r->elem)
        tl_fault(v, o, "no splat from %s to %s", text(v, in_t(v, o, 0)), text(v, res_t(v, o)));
}

static bool
check_tiles(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    if (a->kind != TL_TY_TILE)
        return tl_fault(v, o, "the operand must be a tile, not %s", text(v, in_t(v, o, 0)));
    if (r->kind != TL_TY_TILE || r->elem != a->elem)
        return tl_fault(v, o, "the result must be a tile of %s, not %s", tl_elem_name(a->elem),
                        text(v, res_t(v, o)));
    return true;
}

static void
check_broadcast(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    if (!check_tiles(v, o))
        return;
    bool ok = a->rank == r->rank;
    for (uint32_t d = 0; ok && d < a->rank; d++)
        ok = a->shape[d] == r->shape[d] || a->shape[d] == 1;
    if (!ok)
        tl_fault(v, o, "%s does not stretch to %s", text(v, in_t(v, o, 0)), text(v, res_t(v, o)));
}

static void
check_expand_dims(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0);
    int64_t axis = tl_attr_int(v->ir, o, "axis", -1), shape[TL_MAX_RANK];
    if (!check_tiles(v, o))
        return;
    if (axis < 0 || axis > (int64_t)a->rank || a->rank == TL_MAX_RANK) {
        tl_fault(v, o, "axis %lld of a tile of rank %u", (long long)axis, a->rank);
        return;
    }
    for (uint32_t d = 0, s = 0; d <= a->rank; d++)
        shape[d] = d == (uint32_t)axis ? 1 : a->shape[s++];
    if (!shape_is(res_i(v, o), a->rank + 1, shape))
        tl_fault(v, o, "%s is not %s with a dim of size 1 at axis %lld", text(v, res_t(v, o)),
                 text(v, in_t(v, o, 0)), (long long)axis);
}

static void
check_reshape(TlVerifier *v, TlOp o)
{
    if (check_tiles(v, o) && tl_numel(in_i(v, o, 0)) != tl_numel(res_i(v, o)))
        tl_fault(v, o, "%s and %s have not the same number of elements", text(v, in_t(v, o, 0)),
                 text(v, res_t(v, o)));
}

static void
check_trans(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    const TlAttr *p = tl_attr(v->ir, o, "perm");
    int64_t shape[TL_MAX_RANK];
    uint32_t seen = 0;
    if (a->kind == TL_TY_SHARED ? r->kind != TL_TY_SHARED || r->elem != a->elem : !check_tiles(v, o)) {
        if (a->kind == TL_TY_SHARED)
            tl_fault(v, o, "the result must be a shared tile (a view) of %s", tl_elem_name(a->elem));
        return;
    }
    bool ok = p->u.ints.n == a->rank;
    for (uint32_t d = 0; ok && d < a->rank; d++) {
        int64_t s = p->u.ints.v[d];
        ok = s >= 0 && s < (int64_t)a->rank && !(seen & 1u << s);
        if (ok) {
            seen |= 1u << s;
            shape[d] = a->shape[s];
        }
    }
    if (!ok)
        tl_fault(v, o, "perm is no permutation of the %u dims", a->rank);
    else if (!shape_is(r, a->rank, shape))
        tl_fault(v, o, "%s is not %s permuted", text(v, res_t(v, o)), text(v, in_t(v, o, 0)));
}

static void
check_arange(TlVerifier *v, TlOp o)
{
    Info *r = res_i(v, o);
    if (r->kind != TL_TY_TILE || r->rank != 1 || !tl_elem_is_int(r->elem))
        tl_fault(v, o, "the result must be an integer tile of rank 1, not %s", text(v, res_t(v, o)));
}

static void
check_reduce(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    int64_t axis = tl_attr_int(v->ir, o, "axis", -1), shape[TL_MAX_RANK];
    const char *kind = tl_attr_str(v->ir, o, "kind", "");
    if (a->kind != TL_TY_TILE || axis < 0 || axis >= (int64_t)a->rank) {
        tl_fault(v, o, "axis %lld of %s", (long long)axis, text(v, in_t(v, o, 0)));
        return;
    }
    if (!one_of(kind, "sum max min prod any all xor")) {
        tl_fault(v, o, "no reduction \"%s\"", kind);
        return;
    }
    if (one_of(kind, "any all") ? a->elem != TL_ELEM_I1 : one_of(kind, "xor") && tl_elem_is_float(a->elem)) {
        tl_fault(v, o, "%s of %s", kind, text(v, in_t(v, o, 0)));
        return;
    }
    for (uint32_t d = 0, n = 0; d < a->rank; d++)
        if (d != (uint32_t)axis)
            shape[n++] = a->shape[d];
    bool elem =
        r->elem == a->elem || (one_of(kind, "sum prod") && tl_elem_kind(r->elem) == tl_elem_kind(a->elem) &&
                               tl_elem_bits(r->elem) > tl_elem_bits(a->elem));
    bool ok =
        a->rank == 1 ? r->kind == TL_TY_SCALAR : r->kind == TL_TY_TILE && shape_is(r, a->rank - 1, shape);
    if (!ok || !elem)
        tl_fault(v, o, "%s is no %s of %s over axis %lld", text(v, res_t(v, o)), kind, text(v, in_t(v, o, 0)),
                 (long long)axis);
}

static void
check_fill(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0);
    if (a->kind != TL_TY_TILE || !is_scalar(in_i(v, o, 1), a->elem))
        tl_fault(v, o, "a tile and a scalar of its element wanted, not %s and %s", text(v, in_t(v, o, 0)),
                 text(v, in_t(v, o, 1)));
    else
        result_is(v, o, in_t(v, o, 0));
}

static void
check_valid(TlVerifier *v, TlOp o)
{
    if (in_i(v, o, 0)->kind != TL_TY_TILE)
        tl_fault(v, o, "the operand must be a tile, not %s", text(v, in_t(v, o, 0)));
    else
        result_is(v, o, tl_type_with_elem(v->ir, in_t(v, o, 0), TL_ELEM_I1));
}

static void
check_dot(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *b = in_i(v, o, 1), *c = in_i(v, o, 2);
    uint32_t n = a->rank;
    const TlAttr *mma = tl_attr(v->ir, o, "mma"), *waves = tl_attr(v->ir, o, "waves");
    for (uint32_t i = 0; i < 2; i++)
        if (in_i(v, o, i)->kind != TL_TY_TILE && in_i(v, o, i)->kind != TL_TY_SHARED) {
            tl_fault(v, o, "operand %u must be a tile or a shared tile, not %s", i, text(v, in_t(v, o, i)));
            return;
        }
    bool ok = c->kind == TL_TY_TILE && n >= 2 && b->rank == n && c->rank == n;
    for (uint32_t d = 0; ok && d + 2 < n; d++)
        ok = a->shape[d] == b->shape[d] && a->shape[d] == c->shape[d];
    ok = ok && a->shape[n - 1] == b->shape[n - 2] && a->shape[n - 2] == c->shape[n - 2] &&
         b->shape[n - 1] == c->shape[n - 1];
    if (!ok) {
        tl_fault(v, o, "[M, K], [K, N], [M, N] wanted, not %s, %s, %s", text(v, in_t(v, o, 0)),
                 text(v, in_t(v, o, 1)), text(v, in_t(v, o, 2)));
        return;
    }
    bool f8 = tl_elem_is_float(a->elem) && tl_elem_is_float(b->elem) && tl_elem_bits(a->elem) == 8 &&
              tl_elem_bits(b->elem) == 8;
    if (a->elem != b->elem && !f8) {
        tl_fault(v, o, "operands of one element type wanted, not %s and %s", tl_elem_name(a->elem),
                 tl_elem_name(b->elem));
        return;
    }
    TlElem want = a->elem == TL_ELEM_F64      ? TL_ELEM_F64
                  : tl_elem_is_float(a->elem) ? TL_ELEM_F32
                                              : TL_ELEM_I32;
    if (c->elem != want || a->elem == TL_ELEM_I1)
        tl_fault(v, o, "%s operands accumulate in %s, not %s", tl_elem_name(a->elem), tl_elem_name(want),
                 tl_elem_name(c->elem));
    if (mma && mma->u.ints.n != 3)
        tl_fault(v, o, "mma must be three numbers");
    if (waves && (waves->u.ints.n != 2 || waves->u.ints.v[0] < 1 || waves->u.ints.v[1] < 1))
        tl_fault(v, o, "waves must be two numbers from 1 up");
    result_is(v, o, in_t(v, o, 2));
}

/* ---- programs and buffers ---- */

static void
check_program_id(TlVerifier *v, TlOp o)
{
    int64_t axis = tl_attr_int(v->ir, o, "axis", -1);
    if (axis < 0 || axis > 2)
        tl_fault(v, o, "axis %lld: 0, 1 or 2 wanted", (long long)axis);
    result_is(v, o, v->level == TL_LEVEL_TILE ? tl_type_index(v->ir) : tl_type_scalar(v->ir, TL_ELEM_I32));
}

static void
check_dim(TlVerifier *v, TlOp o)
{
    int64_t axis = tl_attr_int(v->ir, o, "axis", -1);
    if (in_i(v, o, 0)->kind != TL_TY_BUF || axis < 0 || axis >= (int64_t)in_i(v, o, 0)->rank)
        tl_fault(v, o, "axis %lld of %s", (long long)axis, text(v, in_t(v, o, 0)));
    result_is(v, o, tl_type_index(v->ir));
}

static void
check_alloc(TlVerifier *v, TlOp o)
{
    bool shared = node(v, o)->code == TL_OP_alloc_shared;
    int64_t align = tl_attr_int(v->ir, o, "align", 1);
    if (res_i(v, o)->kind != (shared ? TL_TY_SHARED : TL_TY_LOCAL))
        tl_fault(v, o, "the result must be a %s tile, not %s", shared ? "shared" : "local",
                 text(v, res_t(v, o)));
    if (!power_of_two(align))
        tl_fault(v, o, "align must be a power of two");
    if (tl_attr_int(v->ir, o, "pad", 0) < 0 || tl_attr_int(v->ir, o, "swizzle", 0) < 0)
        tl_fault(v, o, "pad and swizzle cannot be negative");
}

/* The part of a buffer that operands from `at` on and dims name: its kept dims. false after a fault. */
static bool
slice_rank(TlVerifier *v, TlOp o, uint32_t at, uint32_t *kept)
{
    const TlOpNode *n = node(v, o);
    Info *b = in_i(v, o, 0);
    const char *dims = tl_attr_str(v->ir, o, "dims", "");
    const TlAttr *steps = tl_attr(v->ir, o, "steps");
    uint32_t tile_rank = 0, slices = 0;
    bool tiles = false;
    if (!is_mem(b))
        return tl_fault(v, o, "operand 0 must be a buffer, shared or local tile, not %s",
                        text(v, in_t(v, o, 0)));
    if (!*dims && (b->kind != TL_TY_BUF || b->rank == 0)) {
        *kept = b->rank;
        return n->nin == at || tl_fault(v, o, "dims = \"\" takes no indices");
    }
    if (strlen(dims) != b->rank)
        return tl_fault(v, o, "dims \"%s\" for %u dims", dims, b->rank);
    if (steps && steps->u.ints.n != b->rank)
        return tl_fault(v, o, "steps must have %u numbers", b->rank);
    for (uint32_t d = 0; steps && d < b->rank; d++)
        if (steps->u.ints.v[d] < 1)
            return tl_fault(v, o, "a step must be positive");
    for (const char *c = dims; *c; c++) {
        uint32_t takes = *c == 'e' ? 2 : 1;
        if (!strchr("seit", *c))
            return tl_fault(v, o, "dims has a character other than s, e, i, t");
        for (; takes; takes--, at++) {
            if (at >= n->nin)
                return tl_fault(v, o, "dims \"%s\" takes more operands", dims);
            Info *x = in_i(v, o, at);
            if (*c == 't' ? x->kind != TL_TY_TILE || !tl_elem_is_int(x->elem) : !is_integer(x))
                return tl_fault(v, o, "operand %u must be an %s, not %s", at,
                                *c == 't' ? "index tile" : "index", text(v, in_t(v, o, at)));
            if (*c == 't')
                tile_rank = TL_MAX(tile_rank, x->rank);
        }
        slices += *c == 's' || *c == 'e';
        tiles |= *c == 't';
    }
    if (at != n->nin)
        return tl_fault(v, o, "dims \"%s\" takes fewer operands", dims);
    *kept = slices + (tiles ? tile_rank : 0);
    return true;
}

static bool
moved_type(TlVerifier *v, TlOp o, TlType t, uint32_t kept, const char *what)
{
    Info *b = in_i(v, o, 0), *x = tl_tinfo(v->ir, t);
    const char *dims = tl_attr_str(v->ir, o, "dims", "");
    bool ok = kept ? x->kind == TL_TY_TILE && x->rank == kept : x->kind == TL_TY_SCALAR;
    if (!ok || x->elem != b->elem)
        return tl_fault(v, o, "the %s must be %s of %s with %u dims, not %s", what,
                        kept ? "a tile" : "a scalar", tl_elem_name(b->elem), kept, text(v, t));
    if (!*dims && kept && !shape_is(x, b->rank, b->shape))
        return tl_fault(v, o, "the whole tile is %s, the %s is %s", text(v, in_t(v, o, 0)), what, text(v, t));
    return true;
}

static void
check_load(TlVerifier *v, TlOp o)
{
    uint32_t kept;
    if (slice_rank(v, o, 1, &kept))
        moved_type(v, o, res_t(v, o), kept, "result");
}

static void
check_store(TlVerifier *v, TlOp o)
{
    uint32_t kept;
    if (slice_rank(v, o, 2, &kept))
        moved_type(v, o, in_t(v, o, 1), kept, "value");
}

static bool
indices(TlVerifier *v, TlOp o, uint32_t at)
{
    const TlOpNode *n = node(v, o);
    Info *b = in_i(v, o, 0);
    if (!is_mem(b))
        return tl_fault(v, o, "operand 0 must be a buffer, not %s", text(v, in_t(v, o, 0)));
    if (n->nin - at != b->rank)
        return tl_fault(v, o, "%u indices for %u dims", n->nin - at, b->rank);
    for (; at < n->nin; at++)
        if (!is_integer(in_i(v, o, at)))
            return tl_fault(v, o, "operand %u must be an index, not %s", at, text(v, in_t(v, o, at)));
    return true;
}

static void
check_element(TlVerifier *v, TlOp o)
{
    if (indices(v, o, 1))
        result_is(v, o, tl_type_scalar(v->ir, in_i(v, o, 0)->elem));
}

static void
check_set_element(TlVerifier *v, TlOp o)
{
    if (indices(v, o, 2) && !is_scalar(in_i(v, o, 1), in_i(v, o, 0)->elem))
        tl_fault(v, o, "the value must be %s, not %s", tl_elem_name(in_i(v, o, 0)->elem),
                 text(v, in_t(v, o, 1)));
}

/* The value may be of a wider type than the buffer's: the accumulator's, in which the sum is kept. */
static void
check_acc_element(TlVerifier *v, TlOp o)
{
    if (indices(v, o, 2)) {
        TlElem have = in_i(v, o, 1)->elem, want = in_i(v, o, 0)->elem;
        bool wider =
            tl_elem_bits(have) >= tl_elem_bits(want) && (tl_elem_is_float(have) == tl_elem_is_float(want));
        if (!is_scalar(in_i(v, o, 1), have) || !wider)
            tl_fault(v, o, "the value must be %s or a wider type of its kind, not %s", tl_elem_name(want),
                     text(v, in_t(v, o, 1)));
    }
    const char *kind = tl_attr_str(v->ir, o, "kind", "sum");
    if (!one_of(kind, "sum prod max min"))
        tl_fault(v, o, "no accumulation \"%s\"", kind);
}

static void
check_barrier(TlVerifier *v, TlOp o)
{
    const char *scope = tl_attr_str(v->ir, o, "scope", "lds");
    if (!one_of(scope, "lds all"))
        tl_fault(v, o, "no scope \"%s\"", scope);
}

static void
check_assert(TlVerifier *v, TlOp o)
{
    if (!is_scalar(in_i(v, o, 0), TL_ELEM_I1))
        tl_fault(v, o, "the condition must be i1, not %s", text(v, in_t(v, o, 0)));
}

/* ---- control flow ---- */

static TlOp
terminator(TlVerifier *v, TlOp o, uint32_t r, TlOpcode code)
{
    TlOp t = tl_block_terminator(v->ir, node(v, o)->region[r]);
    if (t && node(v, t)->code == code)
        return t;
    tl_fault(v, o, "region %u must end in %s", r, tl_op_row(code)->name);
    return 0;
}

/* Types of the values `have` (all of one kind: operands of an operation, arguments, results) against `want`.
 */
static bool
match(TlVerifier *v, TlOp at, const char *what, const TlVal *have, uint32_t nhave, const TlVal *want,
      uint32_t nwant)
{
    if (nhave != nwant)
        return tl_fault(v, at, "%u %s wanted, %u given", nwant, what, nhave);
    for (uint32_t i = 0; i < nhave; i++) {
        TlType a = tl_valn(v->ir, have[i])->type, b = tl_valn(v->ir, want[i])->type;
        if (a != b)
            return tl_fault(v, at, "%s: number %u must be %s, not %s", what, i, text(v, b), text(v, a));
    }
    return true;
}

static void
check_for(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = node(v, o);
    const TlBlockNode *b = tl_blockn(v->ir, n->region[0]);
    int64_t step;
    if (!is_integer(in_i(v, o, 0)) || in_t(v, o, 1) != in_t(v, o, 0) || in_t(v, o, 2) != in_t(v, o, 0)) {
        tl_fault(v, o, "lower, upper, step must be integers of one type, not %s, %s, %s",
                 text(v, in_t(v, o, 0)), text(v, in_t(v, o, 1)), text(v, in_t(v, o, 2)));
        return;
    }
    if (tl_is_const_int(v->ir, n->in[2], &step) && step == 0)
        tl_fault(v, o, "the step is 0");
    if (tl_attr_int(v->ir, o, "num_stages", 1) < 1 || tl_attr_int(v->ir, o, "unroll", 1) < 1)
        tl_fault(v, o, "num_stages and unroll start at 1");
    if (!match(v, o, "results (as inits)", n->res, n->nres, n->in + 3, n->nin - 3))
        return;
    if (b->args.len != n->nin - 2 || tl_valn(v->ir, b->args.data[0])->type != in_t(v, o, 0)) {
        tl_fault(v, o, "the region takes the induction variable and %u carried values", n->nin - 3);
        return;
    }
    match(v, o, "carried arguments", b->args.data + 1, b->args.len - 1, n->in + 3, n->nin - 3);
    TlOp y = terminator(v, o, 0, TL_OP_yield);
    if (y)
        match(v, y, "yielded values", node(v, y)->in, node(v, y)->nin, n->in + 3, n->nin - 3);
}

static void
check_while(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = node(v, o);
    match(v, o, "results (as inits)", n->res, n->nres, n->in, n->nin);
    for (uint32_t r = 0; r < 2; r++) {
        const TlBlockNode *b = tl_blockn(v->ir, n->region[r]);
        match(v, o, "carried arguments", b->args.data, b->args.len, n->in, n->nin);
    }
    TlOp c = terminator(v, o, 0, TL_OP_condition), y = terminator(v, o, 1, TL_OP_yield);
    if (c && node(v, c)->nin)
        match(v, c, "carried values", node(v, c)->in + 1, node(v, c)->nin - 1, n->in, n->nin);
    if (y)
        match(v, y, "yielded values", node(v, y)->in, node(v, y)->nin, n->in, n->nin);
}

static void
check_if(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = node(v, o);
    check_assert(v, o);
    for (uint32_t r = 0; r < 2; r++) {
        if (tl_blockn(v->ir, n->region[r])->args.len)
            tl_fault(v, o, "region %u takes no arguments", r);
        TlOp y = terminator(v, o, r, TL_OP_yield);
        if (y)
            match(v, y, "yielded values", node(v, y)->in, node(v, y)->nin, n->res, n->nres);
    }
}

static void
check_grid(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = node(v, o);
    const TlBlockNode *b = tl_blockn(v->ir, n->region[0]);
    for (uint32_t i = 0; i < n->nin; i++)
        if (!is_integer(in_i(v, o, i)))
            tl_fault(v, o, "extent %u must be an index, not %s", i, text(v, in_t(v, o, i)));
    bool ok = b->args.len == n->nin;
    for (uint32_t i = 0; ok && i < n->nin; i++)
        ok = tl_vtype(v->ir, b->args.data[i])->kind == TL_TY_INDEX;
    if (!ok)
        tl_fault(v, o, "the region takes one index for each of the %u extents", n->nin);
    TlOp y = terminator(v, o, 0, TL_OP_yield);
    if (y && node(v, y)->nin)
        tl_fault(v, y, "the yield of grid takes nothing");
}

static TlOpcode
parent_code(TlVerifier *v, TlOp o)
{
    TlOp p = tl_blockn(v->ir, node(v, o)->block)->parent;
    return p ? node(v, p)->code : TL_OP_NONE;
}

static void
check_yield(TlVerifier *v, TlOp o)
{
    TlOpcode p = parent_code(v, o);
    if (p == TL_OP_while &&
        node(v, tl_blockn(v->ir, node(v, o)->block)->parent)->region[0] == node(v, o)->block)
        tl_fault(v, o, "region 0 of while ends in condition");
}

static void
check_condition(TlVerifier *v, TlOp o)
{
    TlOpcode p = parent_code(v, o);
    if (p != TL_OP_while ||
        node(v, tl_blockn(v->ir, node(v, o)->block)->parent)->region[0] != node(v, o)->block)
        tl_fault(v, o, "condition ends region 0 of while only");
    check_assert(v, o);
}

/* ---- the table ---- */

static const TlCheckFn checks[TL_OP__COUNT] = {
    [TL_OP_const] = check_const,
    [TL_OP_cast] = check_cast,
    [TL_OP_bitcast] = check_bitcast,
    [TL_OP_program_id] = check_program_id,
    [TL_OP_num_programs] = check_program_id,
    [TL_OP_dim] = check_dim,
    [TL_OP_stride] = check_dim,
    [TL_OP_alloc_shared] = check_alloc,
    [TL_OP_alloc_local] = check_alloc,
    [TL_OP_load] = check_load,
    [TL_OP_store] = check_store,
    [TL_OP_arange] = check_arange,
    [TL_OP_splat] = check_splat,
    [TL_OP_broadcast] = check_broadcast,
    [TL_OP_expand_dims] = check_expand_dims,
    [TL_OP_reshape] = check_reshape,
    [TL_OP_trans] = check_trans,
    [TL_OP_reduce] = check_reduce,
    [TL_OP_fill] = check_fill,
    [TL_OP_valid] = check_valid,
    [TL_OP_dot] = check_dot,
    [TL_OP_barrier] = check_barrier,
    [TL_OP_assert] = check_assert,
    [TL_OP_grid] = check_grid,
    [TL_OP_element] = check_element,
    [TL_OP_set_element] = check_set_element,
    [TL_OP_acc_element] = check_acc_element,
    [TL_OP_for] = check_for,
    [TL_OP_while] = check_while,
    [TL_OP_if] = check_if,
    [TL_OP_yield] = check_yield,
    [TL_OP_condition] = check_condition,
};

/* Operands and result by the row's type rule; the types' ids are compared, so most operations cost a few
 * loads. */
static bool
check_rule(TlVerifier *v, TlOp o, TlRule rule)
{
    const TlOpNode *n = node(v, o);
    TlDiag *d = v->ir->diag;
    uint32_t entries = d->entries.len, errors = d->nerrors;
    if (rule == TL_RULE_given || rule == TL_RULE_cast)
        return true;
    TlType want = tl_infer(v->ir, n->code, n->in, n->nin, n->loc);
    if (want)
        return result_is(v, o, want);
    /* take the message back out of the diagnostics: it is reported with the other faults */
    const char *why = d->entries.len > entries ? d->entries.data[entries].message : "operands do not fit";
    size_t name = strlen(tl_op_row(n->code)->name);
    if (strncmp(why, tl_op_row(n->code)->name, name) == 0 && why[name] == ':')
        why += name + 2;
    d->entries.len = entries;
    d->nerrors = errors;
    return tl_fault(v, o, "%s", why);
}

void
tl_verify_op(TlVerifier *v, TlOp o)
{
    const TlOpRow *row = tl_op_row(node(v, o)->code);
    if (!check_rule(v, o, row->rule_id))
        return;
    TlOpcode code = node(v, o)->code;
    TlCheckFn check = checks[code] ? checks[code] : tl_thread_checks[code];
    if (check)
        check(v, o);
    else if (row->rule_id == TL_RULE_given)
        tl_fault(v, o, "the verifier has no check for this operation");
}
