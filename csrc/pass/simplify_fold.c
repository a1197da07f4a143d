/* simplify_fold.c - what one operation can be said in less: constants through the rows' fold expressions,
 * identities of integers (exact for index, modulo 2^n for typed ones), exact identities of floats, shapes and
 * vectors.
 *
 * A constant tile is valid everywhere, another tile perhaps not; so an identity may give one of the operands,
 * but it never turns a tile into a constant (x * 0 keeps its extent). */
#include "pass/simplify.h"

#include <math.h>

__extension__ typedef __int128 Wide;

typedef struct Cst {
    bool is;
    TlNum n;
} Cst;

typedef struct Cx { /* one operation under the folder */
    TlSimplifier *s;
    TlIr *ir;
    TlOp o;
    TlOpcode code;
    TlType type; /* of the result */
    TlElem elem; /* of operand 0 as arithmetic sees it */
    bool index;  /* exact integers: no wrap-around to rely on or to fear */
    bool tile;   /* the result has an extent */
    Cst c[3];
} Cx;

static TlVal
in(const Cx *x, uint32_t i)
{
    return tl_opn(x->ir, x->o)->in[i];
}

static TlVal /* by value: operations may move while the arguments of one call are made */
operand(const Cx *x, TlOp o, uint32_t i)
{
    return tl_opn(x->ir, o)->in[i];
}

static TlOp
def(const Cx *x, TlVal v)
{
    return tl_valn(x->ir, v)->def;
}

static TlOp /* definition of v if it is of this code, else 0 */
def_of(const Cx *x, TlVal v, TlOpcode c)
{
    TlOp d = def(x, v);
    return d && tl_opn(x->ir, d)->code == c ? d : 0;
}

static Cst
constant(const TlIr *ir, TlVal v)
{
    Cst c = {0};
    c.is = tl_is_const_int(ir, v, &c.n.i);
    if (!c.is)
        c.is = tl_is_const_float(ir, v, &c.n.f);
    return c;
}

/* Turns the operation into a constant of its result type. */
static bool
become_const(Cx *x, TlNum n)
{
    TlOpNode *o = tl_opn(x->ir, x->o);
    const TlTypeInfo *t = tl_tinfo(x->ir, x->type);
    bool flt = tl_elem_is_float(tl_type_elem(t));
    TlAttr *a = TL_NEW(x->ir->arena, TlAttr);
    if (!a) {
        x->s->oom = true;
        return false;
    }
    a->key = flt ? x->s->key_fvalue : x->s->key_value;
    a->kind = flt ? TL_ATTR_FLOAT : TL_ATTR_INT;
    if (flt)
        a->u.f = n.f;
    else
        a->u.i = n.i;
    o->code = TL_OP_const;
    o->nin = 0;
    o->attr = a;
    o->nattr = 1;
    x->s->stats.folded++;
    return true;
}

/* A new operation before this one. */
static TlVal
make(Cx *x, TlVal v)
{
    if (!v || !tl_vec_push(x->ir->arena, &x->s->made, def(x, v)))
        x->s->oom = true;
    return v;
}

static TlBuilder
before(Cx *x)
{
    return (TlBuilder){
        .ir = x->ir, .block = tl_opn(x->ir, x->o)->block, .before = x->o, .loc = tl_opn(x->ir, x->o)->loc};
}

static TlVal
new_const(Cx *x, TlType t, int64_t v)
{
    TlBuilder b = before(x);
    return make(x, tl_const_int(&b, t, v));
}

/* Puts other operands (and code) in place of the present ones; the operation is looked at again. */
static bool
rewrite2(Cx *x, TlOpcode c, TlVal a, TlVal b)
{
    TlVal v[2] = {a, b};
    if (!a || !b || !tl_op_set_in(x->ir, x->o, v, 2)) {
        x->s->oom = true;
        return false;
    }
    tl_opn(x->ir, x->o)->code = c;
    x->s->stats.folded++;
    return true;
}

/* ---- integers ---- */

static bool
fits(const Cx *x, Wide v)
{
    return x->index ? v >= INT64_MIN && v <= INT64_MAX : true;
}

/* (a op c1) op c2 -> a op (c1 op' c2) for add, mul, min, max, and, or, xor: the same expression folds both.
 */
static bool
reassociate(Cx *x)
{
    TlOp d = def_of(x, in(x, 0), x->code);
    if (!d || !x->c[1].is)
        return false;
    Cst c1 = constant(x->ir, operand(x, d, 1));
    TlNum both[2] = {c1.n, x->c[1].n}, r;
    if (!c1.is)
        return false;
    Wide exact = x->code == TL_OP_add   ? (Wide)both[0].i + both[1].i
                 : x->code == TL_OP_mul ? (Wide)both[0].i * both[1].i
                                        : 0;
    if (!fits(x, exact) || !tl_fold(x->code, x->elem, both, &r))
        return false;
    return rewrite2(x, x->code, operand(x, d, 0), new_const(x, tl_valn(x->ir, in(x, 1))->type, r.i));
}

/* (a / c1) / c2 -> a / (c1 * c2) for positive constants, floor and trunc alike. */
static bool
divide_twice(Cx *x)
{
    TlOp d = def_of(x, in(x, 0), x->code);
    if (!d || !x->c[1].is || x->c[1].n.i <= 0)
        return false;
    Cst c1 = constant(x->ir, operand(x, d, 1));
    Wide p = (Wide)c1.n.i * x->c[1].n.i;
    if (!c1.is || c1.n.i <= 0 || p > INT64_MAX || tl_int_wrap(x->elem, (int64_t)p) != (int64_t)p)
        return false;
    return rewrite2(x, x->code, operand(x, d, 0), new_const(x, tl_valn(x->ir, in(x, 1))->type, (int64_t)p));
}

/* (a * c) / c -> a, (a * c) % c -> 0; only where a * c cannot wrap. */
static TlVal
divide_product(Cx *x)
{
    TlOp d = def_of(x, in(x, 0), TL_OP_mul);
    if (!d || !x->index || !x->c[1].is || x->c[1].n.i == 0)
        return 0;
    Cst m = constant(x->ir, operand(x, d, 1));
    if (!m.is || m.n.i % x->c[1].n.i)
        return 0;
    if (x->code == TL_OP_mod || x->code == TL_OP_rem) {
        become_const(x, (TlNum){0});
        return 0;
    }
    if (m.n.i == x->c[1].n.i)
        return operand(x, d, 0);
    rewrite2(x, TL_OP_mul, operand(x, d, 0),
             new_const(x, tl_valn(x->ir, in(x, 1))->type, m.n.i / x->c[1].n.i));
    return 0;
}

static int
log2_of(int64_t v)
{
    int n = 0;
    if (v <= 0 || (v & (v - 1)))
        return -1;
    while (v >>= 1)
        n++;
    return n;
}

static TlVal
fold_division(Cx *x)
{
    bool rest = x->code == TL_OP_mod || x->code == TL_OP_rem;
    int64_t c = x->c[1].n.i;
    if (!x->c[1].is)
        return 0;
    if (c == 1 && !rest)
        return in(x, 0);
    if (c == 1 && rest && !x->tile) {
        become_const(x, (TlNum){0});
        return 0;
    }
    TlVal v = divide_product(x);
    if (v || tl_opn(x->ir, x->o)->code != x->code || (!rest && divide_twice(x)))
        return v;
    int shift = log2_of(c);
    bool floors = x->code == TL_OP_floordiv || x->code == TL_OP_mod || tl_elem_kind(x->elem) == TL_KIND_UINT;
    if (x->s->level != TL_LEVEL_THREAD || x->index || shift < 0 || !floors)
        return 0;
    /* one instruction in place of a division; at level tile the division says more to the passes */
    TlType t = tl_valn(x->ir, in(x, 1))->type;
    if (rest)
        rewrite2(x, TL_OP_and, in(x, 0), new_const(x, t, c - 1));
    else
        rewrite2(x, TL_OP_shr, in(x, 0), new_const(x, t, shift));
    return 0;
}

/* An associative operation that keeps its first operand, gives zero, or may be ordered anew. */
static TlVal
absorb(Cx *x, bool keeps, bool zero)
{
    if (keeps)
        return in(x, 0);
    if (zero && !x->tile)
        become_const(x, (TlNum){0});
    else
        reassociate(x);
    return 0;
}

static TlVal
fold_integer(Cx *x)
{
    bool cr = x->c[1].is;
    int64_t c = x->c[1].n.i, ones = tl_int_wrap(x->elem, -1);
    TlVal a = in(x, 0), b = tl_opn(x->ir, x->o)->nin > 1 ? in(x, 1) : 0;
    bool equal = a == b;
    TlOp d;
    switch ((int)x->code) {
    case TL_OP_sub:
        if (equal && !x->tile)
            become_const(x, (TlNum){0});
        else if (cr && c != INT64_MIN && x->elem != TL_ELEM_I1) /* a - c -> a + -c */
            rewrite2(x, TL_OP_add, a, c ? new_const(x, tl_valn(x->ir, b)->type, -c) : b);
        return 0;
    case TL_OP_add:
    case TL_OP_or:
    case TL_OP_xor:
        return absorb(x, (cr && c == 0) || (equal && x->code == TL_OP_or), equal && x->code == TL_OP_xor);
    case TL_OP_mul:
        return absorb(x, cr && c == 1, cr && c == 0);
    case TL_OP_and:
        return absorb(x, equal || (cr && c == ones), cr && c == 0);
    case TL_OP_min:
    case TL_OP_max:
        return absorb(x, equal, false);
    case TL_OP_shl:
    case TL_OP_shr:
        return cr && c == 0 ? a : 0;
    case TL_OP_floordiv:
    case TL_OP_mod:
    case TL_OP_truncdiv:
    case TL_OP_rem:
        return fold_division(x);
    case TL_OP_not:
    case TL_OP_neg:
        d = def_of(x, a, x->code);
        return d ? operand(x, d, 0) : 0;
    case TL_OP_eq:
    case TL_OP_le:
    case TL_OP_ge:
        if (equal && !x->tile)
            become_const(x, (TlNum){.i = 1});
        return 0;
    case TL_OP_ne:
    case TL_OP_lt:
    case TL_OP_gt:
        if (equal && !x->tile)
            become_const(x, (TlNum){.i = 0});
        return 0;
    }
    return 0;
}

/* ---- floats: only what is exact for every value, signed zeros included ---- */

static TlVal
fold_float(Cx *x)
{
    bool cr = x->c[1].is;
    double c = x->c[1].n.f;
    TlVal a = in(x, 0);
    TlOp d;
    switch ((int)x->code) {
    case TL_OP_add: /* a + -0 */
        return cr && c == 0 && signbit(c) ? a : 0;
    case TL_OP_sub: /* a - +0 */
        return cr && c == 0 && !signbit(c) ? a : 0;
    case TL_OP_mul:
    case TL_OP_div:
        return cr && c == 1 ? a : 0;
    case TL_OP_neg:
        d = def_of(x, a, TL_OP_neg);
        return d ? operand(x, d, 0) : 0;
    case TL_OP_min:
    case TL_OP_max:
    case TL_OP_fmin:
    case TL_OP_fmax:
        return a == in(x, 1) ? a : 0;
    }
    return 0;
}

/* ---- conversions, shapes, vectors ---- */

/* Every value of `from` is a value of `to`. */
static bool
holds_all(TlElem from, TlElem to)
{
    uint32_t fb = tl_elem_bits(from), tb = tl_elem_bits(to);
    const TlElemInfo *f = tl_elem_info(from), *t = tl_elem_info(to);
    if (from == to)
        return true;
    if (f->kind == TL_KIND_FLOAT || t->kind == TL_KIND_FLOAT)
        return f->kind == t->kind && (to == TL_ELEM_F32 || to == TL_ELEM_F64) && tb > fb;
    if (to == TL_ELEM_I1)
        return false;
    return tb > fb ? f->kind != TL_KIND_SINT || t->kind == TL_KIND_SINT : tb == fb && f->kind == t->kind;
}

static TlVal
fold_cast(Cx *x)
{
    TlElem to = tl_type_elem(tl_tinfo(x->ir, x->type));
    if (tl_valn(x->ir, in(x, 0))->type == x->type)
        return in(x, 0);
    if (x->c[0].is) {
        become_const(x, tl_num_cast(x->elem, to, x->c[0].n));
        return 0;
    }
    TlOp d = def_of(x, in(x, 0), TL_OP_cast);
    TlVal from = d ? operand(x, d, 0) : 0;
    if (!d || !holds_all(tl_type_elem(tl_vtype(x->ir, from)), x->elem))
        return 0;
    if (tl_valn(x->ir, from)->type == x->type)
        return from;
    if (tl_op_set_in(x->ir, x->o, &from, 1)) /* the wider stop between changes nothing */
        x->s->stats.folded++;
    return 0;
}

static TlVal
fold_bitcast(Cx *x)
{
    const TlTypeInfo *t = tl_tinfo(x->ir, x->type);
    if (tl_valn(x->ir, in(x, 0))->type == x->type)
        return in(x, 0);
    TlElem to = tl_type_elem(t);
    if (x->c[0].is && tl_elem_bits(to) == tl_elem_bits(x->elem)) {
        bool nan = tl_elem_is_float(x->elem) && isnan(x->c[0].n.f);
        TlNum n = tl_num_decode(to, tl_num_encode(x->elem, x->c[0].n));
        if (!nan && !(tl_elem_is_float(to) && isnan(n.f))) /* the payload of a NaN would be lost */
            become_const(x, n);
        return 0;
    }
    TlOp d = def_of(x, in(x, 0), TL_OP_bitcast);
    if (!d)
        return 0;
    TlVal from = operand(x, d, 0);
    if (tl_valn(x->ir, from)->type == x->type)
        return from;
    if (tl_op_set_in(x->ir, x->o, &from, 1))
        x->s->stats.folded++;
    return 0;
}

static TlVal
fold_extract(Cx *x)
{
    TlVal v = in(x, 0);
    TlOp d = def(x, v);
    int64_t at = tl_attr_int(x->ir, x->o, "index", 0), n = tl_numel(tl_tinfo(x->ir, x->type)), pos = 0;
    if (tl_valn(x->ir, v)->type == x->type)
        return v;
    if (!d)
        return 0;
    const TlOpNode *dn = tl_opn(x->ir, d);
    if (dn->code == TL_OP_splat && tl_valn(x->ir, dn->in[0])->type == x->type)
        return dn->in[0];
    if (dn->code == TL_OP_extract) {
        int64_t inner = tl_attr_int(x->ir, d, "index", 0);
        if (tl_op_set_in(x->ir, x->o, dn->in, 1) && tl_attr_set_int(x->ir, x->o, "index", inner + at))
            x->s->stats.folded++;
        return 0;
    }
    if (dn->code != TL_OP_concat)
        return 0;
    for (uint32_t i = 0; i < dn->nin && pos <= at; i++) {
        int64_t len = tl_numel(tl_vtype(x->ir, dn->in[i]));
        if (pos == at && tl_valn(x->ir, dn->in[i])->type == x->type)
            return dn->in[i];
        if (at >= pos && at + n <= pos + len) { /* inside one part */
            if (tl_vtype(x->ir, dn->in[i])->kind == TL_TY_VEC && tl_op_set_in(x->ir, x->o, &dn->in[i], 1) &&
                tl_attr_set_int(x->ir, x->o, "index", at - pos))
                x->s->stats.folded++;
            return 0;
        }
        pos += len;
    }
    return 0;
}

/* concat of the parts of one vec, in order and complete; of equal constants. */
static TlVal
fold_concat(Cx *x)
{
    const TlOpNode *n = tl_opn(x->ir, x->o);
    TlVal whole = 0;
    int64_t at = 0;
    if (n->nin == 1 && tl_valn(x->ir, n->in[0])->type == x->type)
        return n->in[0];
    Cst c = constant(x->ir, n->in[0]);
    bool flt = tl_elem_is_float(x->elem);
    for (uint32_t i = 0; c.is && i < n->nin; i++) {
        Cst k = constant(x->ir, n->in[i]);
        c.is = k.is && k.n.i == c.n.i; /* bits of either member */
    }
    if (c.is) {
        become_const(x, flt ? (TlNum){.f = c.n.f} : c.n);
        return 0;
    }
    for (uint32_t i = 0; i < n->nin; i++) {
        TlOp d = def_of(x, n->in[i], TL_OP_extract);
        if (!d || tl_attr_int(x->ir, d, "index", -1) != at || (whole && operand(x, d, 0) != whole))
            return 0;
        whole = operand(x, d, 0);
        at += tl_numel(tl_vtype(x->ir, n->in[i]));
    }
    return tl_valn(x->ir, whole)->type == x->type ? whole : 0;
}

static TlVal
fold_select(Cx *x)
{
    if (x->c[0].is && !x->tile)
        return x->c[0].n.i ? in(x, 1) : in(x, 2);
    return in(x, 1) == in(x, 2) && !x->tile ? in(x, 1) : 0;
}

static TlVal
fold_buffer_fact(Cx *x)
{
    const TlTypeInfo *b = tl_vtype(x->ir, in(x, 0));
    int64_t axis = tl_attr_int(x->ir, x->o, "axis", -1);
    if (b->kind != TL_TY_BUF || axis < 0 || axis >= (int64_t)b->rank)
        return 0;
    int64_t v = x->code == TL_OP_dim ? b->shape[axis] : b->strides[axis];
    if (v != TL_DYN)
        become_const(x, (TlNum){.i = v});
    return 0;
}

static TlVal
fold_ptr_add(Cx *x)
{
    if (!x->c[1].is)
        return 0;
    if (x->c[1].n.i == 0)
        return in(x, 0);
    TlOp d = def_of(x, in(x, 0), TL_OP_ptr_add);
    if (!d)
        return 0;
    Cst c = constant(x->ir, operand(x, d, 1));
    if (c.is)
        rewrite2(
            x, TL_OP_ptr_add, operand(x, d, 0),
            new_const(x, tl_valn(x->ir, in(x, 1))->type, (int64_t)((uint64_t)c.n.i + (uint64_t)x->c[1].n.i)));
    return 0;
}

static TlVal
fold_other(Cx *x)
{
    switch ((int)x->code) {
    case TL_OP_cast:
        return fold_cast(x);
    case TL_OP_bitcast:
        return fold_bitcast(x);
    case TL_OP_select:
        return fold_select(x);
    case TL_OP_splat:
    case TL_OP_broadcast:
    case TL_OP_reshape:
    case TL_OP_expand_dims:
    case TL_OP_trans:
        if (x->c[0].is)
            become_const(x, x->c[0].n);
        else if (x->code != TL_OP_trans && tl_valn(x->ir, in(x, 0))->type == x->type)
            return in(x, 0);
        return 0;
    case TL_OP_extract:
        if (!x->c[0].is)
            return fold_extract(x);
        become_const(x, x->c[0].n);
        return 0;
    case TL_OP_concat:
        return fold_concat(x);
    case TL_OP_dim:
    case TL_OP_stride:
        return fold_buffer_fact(x);
    case TL_OP_ptr_add:
        return fold_ptr_add(x);
    case TL_OP_uniform:
        if (x->c[0].is)
            return in(x, 0);
        return def_of(x, in(x, 0), TL_OP_uniform) || def_of(x, in(x, 0), TL_OP_wave_id) ? in(x, 0) : 0;
    }
    return 0;
}

/* ---- one step ---- */

static bool
all_constant(Cx *x, uint32_t n)
{
    const TlOpRow *row = tl_op_row(x->code);
    TlNum v[3], r;
    if (!(row->traits & TL_T_ELEMENTWISE) || row->rule_id == TL_RULE_cast || n > 3)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!x->c[i].is)
            return false;
        v[i] = x->c[i].n;
    }
    TlElem e = row->rule_id == TL_RULE_sel ? tl_type_elem(tl_tinfo(x->ir, x->type)) : x->elem;
    if (!tl_fold(x->code, e, v, &r))
        return false;
    if (x->index) { /* index is exact: what leaves 64 bits is not folded */
        Wide a = v[0].i, b = v[n > 1].i;
        if ((x->code == TL_OP_add && !fits(x, a + b)) || (x->code == TL_OP_sub && !fits(x, a - b)) ||
            (x->code == TL_OP_mul && !fits(x, a * b)))
            return false;
    }
    return become_const(x, r);
}

static void
constants_right(Cx *x, uint32_t n)
{
    if (n != 2 || !(tl_op_row(x->code)->traits & TL_T_COMMUTES) || !x->c[0].is || x->c[1].is)
        return;
    TlOpNode *o = tl_opn(x->ir, x->o);
    TlVal t = o->in[0];
    Cst c = x->c[0];
    o->in[0] = o->in[1];
    o->in[1] = t;
    x->c[0] = x->c[1];
    x->c[1] = c;
}

static TlVal
fold_once(TlSimplifier *s, TlOp o)
{
    const TlOpNode *n = tl_opn(s->ir, o);
    Cx x = {.s = s, .ir = s->ir, .o = o, .code = n->code, .type = tl_valn(s->ir, n->res[0])->type};
    if (n->code == TL_OP_const || n->nres != 1 || n->nin == 0)
        return 0;
    const TlTypeInfo *t0 = tl_vtype(s->ir, n->in[0]);
    x.elem = tl_type_elem(t0);
    x.index = t0->kind == TL_TY_INDEX;
    x.tile = tl_tinfo(s->ir, x.type)->kind == TL_TY_TILE;
    for (uint32_t i = 0; i < n->nin && i < 3; i++)
        x.c[i] = constant(s->ir, n->in[i]);
    if (x.c[0].is && all_constant(&x, n->nin))
        return 0;
    constants_right(&x, n->nin);
    if (!(tl_op_row(x.code)->traits & TL_T_ELEMENTWISE) || x.code == TL_OP_cast || x.code == TL_OP_select)
        return fold_other(&x);
    return tl_elem_is_float(x.elem) ? fold_float(&x) : fold_integer(&x);
}

TlVal
tl_simplify_fold(TlSimplifier *s, TlOp o)
{
    for (int rounds = 0; rounds < 8 && !s->oom; rounds++) {
        uint32_t folded = s->stats.folded;
        TlVal v = fold_once(s, o);
        if (v)
            return v;
        if (s->stats.folded == folded)
            break;
    }
    return 0;
}
