/* lower_emit.c - building thread-level values: constants and arithmetic are folded, equal pure operations on
 * values of the entry block are made once, and are placed in the entry block even while a loop body is being
 * built (so that addresses never stand in a loop). */
#include "pass/lower.h"

bool
lw_fail(Lw *lw, TlOp at, TlDiagCode code, const char *fmt, ...)
{
    TlText t;
    va_list ap;
    TlLoc loc = {0};
    if (at)
        loc = lw_loc(lw, at);
    tl_text_init(&t, lw->arena);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    return tl_error(lw->diag, loc, code, t.failed ? "out of memory" : t.data);
}

TlType
lw_ty(Lw *lw, TlElem e)
{
    return tl_type_scalar(lw->ir, e);
}

bool
lw_is_entry(const Lw *lw, TlVal v)
{
    uint64_t d;
    return !tl_map_get(&lw->depth, v, &d);
}

void
lw_mark_inner(Lw *lw, TlVal v)
{
    if (v && !tl_map_put(&lw->depth, v, 1))
        tl_error(lw->diag, (TlLoc){0}, TL_E_OOM);
}

static TlBuilder
entry_builder(Lw *lw)
{
    TlBuilder b = lw->b;
    b.block = lw->entry;
    b.before = lw->anchor;
    return b;
}

TlVal
lw_int(Lw *lw, TlElem e, int64_t v)
{
    uint64_t key[3] = {0xc0457ull, e, (uint64_t)v}, have;
    uint64_t h = tl_hash_bytes(key, sizeof key, 1);
    int64_t got;
    if (tl_map_get(&lw->numbering, h, &have) && lw_is_const(lw, (TlVal)have, &got) && got == v &&
        tl_vtype(lw->ir, (TlVal)have)->elem == e)
        return (TlVal)have;
    TlBuilder b = entry_builder(lw);
    TlOp first = tl_blockn(lw->ir, lw->entry)->first;
    if (first)
        b.before = first;
    TlVal r = tl_const_int(&b, lw_ty(lw, e), v);
    if (r)
        tl_map_put(&lw->numbering, h, r);
    return r;
}

bool
lw_is_const(const Lw *lw, TlVal v, int64_t *out)
{
    return v && tl_is_const_int(lw->ir, v, out);
}

uint32_t
lw_vec_len(const Lw *lw, TlVal v)
{
    const TlTypeInfo *t = tl_vtype(lw->ir, v);
    return t->kind == TL_TY_VEC ? (uint32_t)t->shape[0] : 0;
}

static bool
same_op(const Lw *lw, TlVal v, TlOpcode c, TlType t, const TlVal *in, uint32_t n, const char *key,
        int64_t value)
{
    TlOp o = tl_valn(lw->ir, v)->def;
    if (!o)
        return false;
    const TlOpNode *p = tl_opn(lw->ir, o);
    if (p->code != c || p->nin != n || tl_valn(lw->ir, v)->type != t ||
        (n && memcmp(p->in, in, n * sizeof *in)))
        return false;
    return key ? tl_attr_int(lw->ir, o, key, INT64_MIN) == value : p->nattr == 0;
}

TlVal
lw_pure(Lw *lw, TlOpcode c, TlType t, const TlVal *in, uint32_t n, const char *key, int64_t value)
{
    bool entry = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!in[i])
            return 0;
        entry = entry && lw_is_entry(lw, in[i]);
    }
    uint64_t h = tl_hash_bytes(in, n * sizeof *in,
                               ((uint64_t)c << 32 | t) ^ (uint64_t)value * 0x9e3779b97f4a7c15u),
             have;
    if (entry && tl_map_get(&lw->numbering, h, &have) && same_op(lw, (TlVal)have, c, t, in, n, key, value))
        return (TlVal)have;
    TlBuilder b = entry ? entry_builder(lw) : lw->b;
    TlOp o = tl_build(&b, c, in, n, &t, 1);
    if (!o || (key && !tl_attr_set_int(lw->ir, o, key, value)))
        return 0;
    TlVal r = tl_result(lw->ir, o, 0);
    if (entry)
        tl_map_put(&lw->numbering, h, r);
    else
        lw_mark_inner(lw, r);
    return r;
}

TlOp
lw_op(Lw *lw, TlOpcode c, const TlVal *in, uint32_t n, const TlType *types, uint32_t nt)
{
    for (uint32_t i = 0; i < n; i++)
        if (!in[i])
            return 0;
    TlOp o = tl_build(&lw->b, c, in, n, types, nt);
    if (o && lw->b.block != lw->entry)
        for (uint32_t i = 0; i < nt; i++)
            lw_mark_inner(lw, tl_result(lw->ir, o, i));
    return o;
}

TlVal
lw_op1(Lw *lw, TlOpcode c, TlType t, const TlVal *in, uint32_t n)
{
    TlOp o = lw_op(lw, c, in, n, &t, 1);
    return o ? tl_result(lw->ir, o, 0) : 0;
}

static bool
fold_bin(TlOpcode c, int64_t a, int64_t b, int64_t *r)
{
    switch ((int)c) {
    case TL_OP_add:
        return !__builtin_add_overflow(a, b, r);
    case TL_OP_sub:
        return !__builtin_sub_overflow(a, b, r);
    case TL_OP_mul:
        return !__builtin_mul_overflow(a, b, r);
    case TL_OP_min:
        *r = TL_MIN(a, b);
        return true;
    case TL_OP_max:
        *r = TL_MAX(a, b);
        return true;
    case TL_OP_and:
        *r = a & b;
        return true;
    case TL_OP_or:
        *r = a | b;
        return true;
    case TL_OP_xor:
        *r = a ^ b;
        return true;
    case TL_OP_shl:
        *r = (int64_t)((uint64_t)a << (b & 63));
        return b >= 0 && b < 32;
    case TL_OP_truncdiv:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *r = a / b;
        return true;
    default:
        return false;
    }
}

static bool
fits(TlElem e, int64_t v)
{
    return tl_elem_bits(e) == 64 || (tl_elem_bits(e) == 32 && v >= INT32_MIN && v <= INT32_MAX);
}

TlVal
lw_bin(Lw *lw, TlOpcode c, TlVal a, TlVal b)
{
    int64_t x, y, r;
    if (!a || !b)
        return 0;
    TlElem e = tl_vtype(lw->ir, a)->elem;
    bool ca = lw_is_const(lw, a, &x), cb = lw_is_const(lw, b, &y);
    if (ca && cb && fold_bin(c, x, y, &r) && fits(e, r))
        return lw_int(lw, e, r);
    if (ca && (tl_op_row(c)->traits & TL_T_COMMUTES)) {
        TlVal t = a;
        a = b, b = t;
        y = x;
        cb = true;
        ca = false;
    }
    if (cb && y == 0 &&
        (c == TL_OP_add || c == TL_OP_sub || c == TL_OP_or || c == TL_OP_xor || c == TL_OP_shl))
        return a;
    if (cb && y == 0 && (c == TL_OP_mul || c == TL_OP_and))
        return b;
    if (cb && y == 1 && (c == TL_OP_mul || c == TL_OP_truncdiv))
        return a;
    if (a == b && (c == TL_OP_min || c == TL_OP_max))
        return a;
    bool cmp = c >= TL_OP_eq && c <= TL_OP_ge;
    return lw_pure(lw, c, cmp ? lw_ty(lw, TL_ELEM_I1) : tl_valn(lw->ir, a)->type, (TlVal[]){a, b}, 2, NULL,
                   0);
}

TlVal
lw_sel(Lw *lw, TlVal cond, TlVal a, TlVal b)
{
    if (!cond || !a || !b)
        return 0;
    if (a == b)
        return a;
    return lw_pure(lw, TL_OP_select, tl_valn(lw->ir, a)->type, (TlVal[]){cond, a, b}, 3, NULL, 0);
}

TlVal
lw_cast(Lw *lw, TlVal v, TlElem to)
{
    int64_t x;
    if (!v)
        return 0;
    const TlTypeInfo *t = tl_vtype(lw->ir, v);
    if (t->kind == TL_TY_SCALAR && t->elem == to)
        return v;
    if (lw_is_const(lw, v, &x) && (to == TL_ELEM_I32 || to == TL_ELEM_I64) && fits(to, x))
        return lw_int(lw, to, x);
    return lw_pure(lw, TL_OP_cast, lw_ty(lw, to), &v, 1, NULL, 0);
}

TlVal
lw_uniform(Lw *lw, TlVal v)
{
    if (!v)
        return 0;
    TlElem e = tl_vtype(lw->ir, v)->elem;
    uint32_t bits = tl_elem_bits(e);
    TlType i32 = lw_ty(lw, TL_ELEM_I32), own = lw_ty(lw, e);
    TlVal w = v, h[2];
    if (bits == 64) {
        w = lw_pure(lw, TL_OP_bitcast, tl_type_vec(lw->ir, TL_ELEM_I32, 2), &w, 1, NULL, 0);
        for (uint32_t i = 0; i < 2; i++) {
            h[i] = lw_extract(lw, w, i, 0);
            h[i] = h[i] ? lw_pure(lw, TL_OP_uniform, i32, &h[i], 1, NULL, 0) : 0;
        }
        w = h[0] && h[1] ? lw_concat(lw, TL_ELEM_I32, h, 2, 2) : 0;
        return w ? lw_pure(lw, TL_OP_bitcast, own, &w, 1, NULL, 0) : 0;
    }
    TlElem as = bits == 16 ? TL_ELEM_U16 : bits == 8 ? TL_ELEM_U8 : bits == 1 ? TL_ELEM_I1 : TL_ELEM_I32;
    if (e != as)
        w = lw_pure(lw, TL_OP_bitcast, lw_ty(lw, as), &w, 1, NULL, 0);
    w = lw_cast(lw, w, TL_ELEM_I32);
    w = w ? lw_pure(lw, TL_OP_uniform, i32, &w, 1, NULL, 0) : 0;
    w = lw_cast(lw, w, as);
    return w && e != as ? lw_pure(lw, TL_OP_bitcast, own, &w, 1, NULL, 0) : w;
}

/* XOR of the bases of the bits of `src` (lane or wave number): runs of bits whose bases are successive shifts
 * become one masked shift. */
static TlVal
linear_bits(Lw *lw, TlVal src, const uint32_t *basis, uint32_t nbits)
{
    TlVal sum = lw_int(lw, TL_ELEM_I32, 0);
    uint32_t seen = 0; /* bits already set by earlier terms: disjoint terms are joined by or */
    for (uint32_t i = 0; i < nbits;) {
        if (!basis[i]) {
            i++;
            continue;
        }
        uint32_t j = i + 1, bits = basis[i];
        while (j < nbits && basis[j] == basis[j - 1] << 1 && basis[j])
            bits |= basis[j], j++;
        TlVal t;
        uint32_t mask = (uint32_t)((1u << (j - i)) - 1);
        if (basis[i] & (basis[i] - 1)) { /* several bits: no plain shift; multiply the field (no carries) */
            if (j > i + 1)
                j = i + 1, mask = 1, bits = basis[i];
            t = lw_bin(lw, TL_OP_shr, src, lw_int(lw, TL_ELEM_I32, i));
            t = lw_bin(lw, TL_OP_and, t, lw_int(lw, TL_ELEM_I32, mask));
            t = lw_bin(lw, TL_OP_mul, t, lw_int(lw, TL_ELEM_I32, basis[i]));
        } else {
            uint32_t pos = (uint32_t)__builtin_ctz(basis[i]);
            t = lw_bin(lw, TL_OP_and, src, lw_int(lw, TL_ELEM_I32, (int64_t)mask << i));
            if (pos > i)
                t = lw_bin(lw, TL_OP_shl, t, lw_int(lw, TL_ELEM_I32, pos - i));
            else if (pos < i)
                t = lw_bin(lw, TL_OP_shr, t, lw_int(lw, TL_ELEM_I32, i - pos));
        }
        sum = lw_bin(lw, (seen & bits) ? TL_OP_xor : TL_OP_or, sum, t);
        seen |= bits;
        i = j;
    }
    return sum;
}

TlVal
lw_lane_coord(Lw *lw, const TlLayout *l, TlDim out)
{
    uint32_t lane[8] = {0}, wave[8] = {0};
    uint32_t nl = tl_layout_in_bits(l, TL_DIM_LANE), nw = tl_layout_in_bits(l, TL_DIM_WAVE);
    for (uint32_t i = 0; i < nl && i < 8; i++)
        lane[i] = tl_layout_get(l, TL_DIM_LANE, i, out);
    for (uint32_t i = 0; i < nw && i < 8; i++)
        wave[i] = tl_layout_get(l, TL_DIM_WAVE, i, out);
    TlVal a = linear_bits(lw, lw->lane, lane, nl), b = linear_bits(lw, lw->wave, wave, nw);
    return lw_bin(lw, TL_OP_xor, a, b);
}

TlVal
lw_extract(Lw *lw, TlVal vec, uint32_t index, uint32_t n)
{
    if (!vec)
        return 0;
    uint32_t len = lw_vec_len(lw, vec);
    TlElem e = tl_vtype(lw->ir, vec)->elem;
    if (len == 0 && index == 0 && n == 0)
        return vec;
    if (n == len && index == 0)
        return vec;
    TlType t = n ? tl_type_vec(lw->ir, e, n) : lw_ty(lw, e);
    return lw_pure(lw, TL_OP_extract, t, &vec, 1, "index", index);
}

TlVal
lw_concat(Lw *lw, TlElem e, const TlVal *parts, uint32_t n, uint32_t total)
{
    if (n == 1 && parts[0] && lw_vec_len(lw, parts[0]) == total)
        return parts[0];
    return lw_pure(lw, TL_OP_concat, tl_type_vec(lw->ir, e, total), parts, n, NULL, 0);
}
