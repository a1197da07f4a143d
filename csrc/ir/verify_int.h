/* verify_int.h - what the checks of single operations share: short names for operand and result types. */
#ifndef TL_IR_VERIFY_INT_H
#define TL_IR_VERIFY_INT_H

#include "ir/ir_internal.h"

typedef const TlTypeInfo Info;

static inline const TlOpNode *
node(const TlVerifier *v, TlOp o)
{
    return tl_opn(v->ir, o);
}

static inline TlType
in_t(const TlVerifier *v, TlOp o, uint32_t i)
{
    return tl_valn(v->ir, node(v, o)->in[i])->type;
}

static inline Info *
in_i(const TlVerifier *v, TlOp o, uint32_t i)
{
    return tl_tinfo(v->ir, in_t(v, o, i));
}

static inline TlType
res_t(const TlVerifier *v, TlOp o)
{
    return tl_valn(v->ir, node(v, o)->res[0])->type;
}

static inline Info *
res_i(const TlVerifier *v, TlOp o)
{
    return tl_tinfo(v->ir, res_t(v, o));
}

static inline const char *
text(TlVerifier *v, TlType t)
{
    return tl_type_text(v->ir, t);
}

static inline bool
is_scalar(Info *i, TlElem e)
{
    return i->kind == TL_TY_SCALAR && i->elem == e;
}

static inline bool
is_integer(Info *i) /* index or int scalar: what may count and index */
{
    return i->kind == TL_TY_INDEX || (i->kind == TL_TY_SCALAR && tl_elem_is_int(i->elem));
}

static inline bool
is_i32(Info *i)
{
    return is_scalar(i, TL_ELEM_I32) || is_scalar(i, TL_ELEM_U32);
}

static inline bool
is_mem(Info *i)
{
    return i->kind == TL_TY_BUF || i->kind == TL_TY_SHARED || i->kind == TL_TY_LOCAL;
}

static inline bool
arithmetic(Info *i)
{
    return tl_type_elem(i) != TL_ELEM_NONE;
}

static inline bool
same_shape(Info *a, Info *b)
{
    bool sa = a->kind == TL_TY_SCALAR || a->kind == TL_TY_INDEX,
         sb = b->kind == TL_TY_SCALAR || b->kind == TL_TY_INDEX;
    if (sa || sb)
        return sa && sb;
    return a->kind == b->kind && a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

static inline bool
shape_is(Info *a, uint32_t rank, const int64_t *shape)
{
    return a->rank == rank && memcmp(a->shape, shape, rank * sizeof *shape) == 0;
}

static inline bool
result_is(TlVerifier *v, TlOp o, TlType want)
{
    return res_t(v, o) == want ||
           tl_fault(v, o, "the result must be %s, not %s", text(v, want), text(v, res_t(v, o)));
}

static inline bool
power_of_two(int64_t x)
{
    return x > 0 && !(x & (x - 1));
}

static inline bool
one_of(const char *s, const char *words) /* words separated by spaces */
{
    size_t n = strlen(s);
    for (const char *p = words; *p;) {
        size_t w = strcspn(p, " ");
        if (w == n && memcmp(p, s, n) == 0)
            return true;
        p += w + (p[w] == ' ');
    }
    return false;
}

static inline int64_t
total_bits(Info *i)
{
    return (i->kind == TL_TY_SCALAR || i->kind == TL_TY_VEC) && i->elem != TL_ELEM_I1
               ? tl_numel(i) * tl_elem_bits(i->elem)
               : 0;
}

typedef void (*TlCheckFn)(TlVerifier *v, TlOp o);
/* Checks of the thread-level operations, by opcode; NULL where there is none. */
extern const TlCheckFn tl_thread_checks[TL_OP__COUNT];

#endif
