/* build.c - making kernels, blocks, values, operations and attributes. A request that cannot be met for lack
 * of memory sets diag->oom and gives 0 or false. */
#include "ir/ir_internal.h"

static bool
oom(TlIr *ir)
{
    ir->diag->oom = true;
    return false;
}

/* ---- attributes ---- */

static const TlAttr *
find_attr(const TlIr *ir, const TlAttr *a, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(tl_str(&ir->strs, a[i].key), key) == 0)
            return &a[i];
    return NULL;
}

const TlAttr *
tl_attr(const TlIr *ir, TlOp o, const char *key)
{
    const TlOpNode *n = tl_opn(ir, o);
    return find_attr(ir, n->attr, n->nattr, key);
}

int64_t
tl_attr_int(const TlIr *ir, TlOp o, const char *key, int64_t absent)
{
    const TlAttr *a = tl_attr(ir, o, key);
    return a && a->kind == TL_ATTR_INT ? a->u.i : absent;
}

const char *
tl_attr_str(const TlIr *ir, TlOp o, const char *key, const char *absent)
{
    const TlAttr *a = tl_attr(ir, o, key);
    return a && a->kind == TL_ATTR_STR ? tl_str(&ir->strs, a->u.s) : absent;
}

const TlAttr *
tl_kattr(const TlIr *ir, TlKernelId k, const char *key)
{
    const TlKernel *kn = tl_kerneln(ir, k);
    return find_attr(ir, kn->attrs.data, kn->attrs.len, key);
}

int64_t
tl_kattr_int(const TlIr *ir, TlKernelId k, const char *key, int64_t absent)
{
    const TlAttr *a = tl_kattr(ir, k, key);
    return a && a->kind == TL_ATTR_INT ? a->u.i : absent;
}

const char *
tl_kattr_str(const TlIr *ir, TlKernelId k, const char *key, const char *absent)
{
    const TlAttr *a = tl_kattr(ir, k, key);
    return a && a->kind == TL_ATTR_STR ? tl_str(&ir->strs, a->u.s) : absent;
}

static bool
attr_put(TlIr *ir, TlOp o, TlAttr a)
{
    TlOpNode *n = tl_opn(ir, o);
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].key == a.key) {
            n->attr[i] = a;
            return true;
        }
    if (!(n->nattr &
          (n->nattr - 1))) { /* full at 0, 1, 2, 4, ...: after a removal this copies once too often */
        TlAttr *p = TL_NEW_N(ir->arena, TlAttr, n->nattr ? n->nattr * 2 : 1);
        if (!p)
            return oom(ir);
        if (n->nattr)
            memcpy(p, n->attr, n->nattr * sizeof *p);
        n->attr = p;
    }
    n->attr[n->nattr++] = a;
    return true;
}

static bool
kattr_put(TlIr *ir, TlKernelId k, TlAttr a)
{
    TlKernel *kn = tl_kerneln(ir, k);
    for (uint32_t i = 0; i < kn->attrs.len; i++)
        if (kn->attrs.data[i].key == a.key) {
            kn->attrs.data[i] = a;
            return true;
        }
    return tl_vec_push(ir->arena, &kn->attrs, a) || oom(ir);
}

static bool
make_key(TlIr *ir, const char *key, TlAttrKind kind, TlAttr *a)
{
    *a = (TlAttr){.kind = kind};
    a->key = tl_intern(&ir->strs, key, strlen(key));
    return a->key != UINT32_MAX || oom(ir);
}

static bool
make_str(TlIr *ir, const char *key, const char *v, TlAttr *a)
{
    if (!make_key(ir, key, TL_ATTR_STR, a))
        return false;
    a->u.s = tl_intern(&ir->strs, v, strlen(v));
    return a->u.s != UINT32_MAX || oom(ir);
}

static bool
make_ints(TlIr *ir, const char *key, const int64_t *v, uint32_t n, TlAttr *a)
{
    if (!make_key(ir, key, TL_ATTR_INTS, a))
        return false;
    a->u.ints.v = TL_NEW_N(ir->arena, int64_t, n ? n : 1);
    a->u.ints.n = n;
    if (!a->u.ints.v)
        return oom(ir);
    if (n)
        memcpy(a->u.ints.v, v, n * sizeof *v);
    return true;
}

/* The attributes of operations and of kernels are set alike. */
#define SETTERS(name, Owner, put)                                                                            \
    bool name##_int(TlIr *ir, Owner owner, const char *key, int64_t v)                                       \
    {                                                                                                        \
        TlAttr a;                                                                                            \
        if (!make_key(ir, key, TL_ATTR_INT, &a))                                                             \
            return false;                                                                                    \
        a.u.i = v;                                                                                           \
        return put(ir, owner, a);                                                                            \
    }                                                                                                        \
                                                                                                             \
    bool name##_float(TlIr *ir, Owner owner, const char *key, double v)                                      \
    {                                                                                                        \
        TlAttr a;                                                                                            \
        if (!make_key(ir, key, TL_ATTR_FLOAT, &a))                                                           \
            return false;                                                                                    \
        a.u.f = v;                                                                                           \
        return put(ir, owner, a);                                                                            \
    }                                                                                                        \
                                                                                                             \
    bool name##_str(TlIr *ir, Owner owner, const char *key, const char *v)                                   \
    {                                                                                                        \
        TlAttr a;                                                                                            \
        return make_str(ir, key, v, &a) && put(ir, owner, a);                                                \
    }                                                                                                        \
                                                                                                             \
    bool name##_ints(TlIr *ir, Owner owner, const char *key, const int64_t *v, uint32_t n)                   \
    {                                                                                                        \
        TlAttr a;                                                                                            \
        return make_ints(ir, key, v, n, &a) && put(ir, owner, a);                                            \
    }
SETTERS(tl_attr_set, TlOp, attr_put)
SETTERS(tl_kattr_set, TlKernelId, kattr_put)
#undef SETTERS

static bool
removed(const TlIr *ir, TlAttr *attrs, uint32_t n, const char *key)
{
    const TlAttr *a = find_attr(ir, attrs, n, key);
    if (!a)
        return false;
    uint32_t i = (uint32_t)(a - attrs);
    memmove(&attrs[i], &attrs[i + 1], (n - i - 1) * sizeof *a);
    return true;
}

void
tl_attr_remove(TlIr *ir, TlOp o, const char *key)
{
    TlOpNode *n = tl_opn(ir, o);
    if (removed(ir, n->attr, n->nattr, key))
        n->nattr--;
}

void
tl_kattr_remove(TlIr *ir, TlKernelId k, const char *key)
{
    TlKernel *kn = tl_kerneln(ir, k);
    if (removed(ir, kn->attrs.data, kn->attrs.len, key))
        kn->attrs.len--;
}

/* ---- kernels, blocks, values ---- */

TlKernelId
tl_kernel_new(TlIr *ir, const char *name, TlLevel level)
{
    TlKernel k = {.level = level};
    k.name = tl_intern(&ir->strs, name, strlen(name));
    if (k.name == UINT32_MAX || !tl_vec_push(ir->arena, &ir->kernels, k))
        return oom(ir);
    TlKernelId id = ir->kernels.len - 1;
    TlBlock b = tl_block_new(ir, id, 0);
    if (!b)
        return 0;
    ir->kernels.data[id].body = b;
    return id;
}

TlKernelId
tl_kernel_by_name(const TlIr *ir, const char *name)
{
    for (uint32_t i = 1; i < ir->kernels.len; i++)
        if (strcmp(tl_str(&ir->strs, ir->kernels.data[i].name), name) == 0)
            return i;
    return 0;
}

TlBlock
tl_block_new(TlIr *ir, TlKernelId k, TlOp parent)
{
    TlBlockNode b = {.parent = parent, .kernel = k};
    if (parent && tl_opn(ir, parent)->nregion >= TL_MAX_REGIONS)
        return tl_error(ir->diag, tl_opn(ir, parent)->loc, TL_E_INTERNAL,
                        "an operation has too many regions");
    if (!tl_vec_push(ir->arena, &ir->blocks, b))
        return oom(ir);
    TlBlock id = ir->blocks.len - 1;
    if (parent) {
        TlOpNode *p = tl_opn(ir, parent);
        p->region[p->nregion++] = id;
    }
    return id;
}

TlVal
tl_block_arg(TlIr *ir, TlBlock b, TlType t, const char *name)
{
    TlValNode v = {.type = t, .block = b, .index = tl_blockn(ir, b)->args.len};
    if (!t)
        return 0; /* the type was refused and said so */
    if (!tl_vec_push(ir->arena, &ir->vals, v))
        return oom(ir);
    TlVal id = ir->vals.len - 1;
    if (!tl_vec_push(ir->arena, &ir->blocks.data[b].args, id))
        return oom(ir);
    if (name && *name)
        tl_val_set_name(ir, id, name);
    return id;
}

static bool
name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

void
tl_val_set_name(TlIr *ir, TlVal v, const char *name)
{
    char buf[64];
    size_t n = 0;
    bool digits = true;
    for (; *name && n < sizeof buf; name++)
        if (name_char(*name)) {
            digits &= *name >= '0' && *name <= '9';
            buf[n++] = *name;
        }
    TlStr s = n && !digits ? tl_intern(&ir->strs, buf, n) : 0;
    ir->vals.data[v].name = s == UINT32_MAX ? 0 : s; /* a name is only a hint */
}

/* ---- operations ---- */

void
tl_op_link_before_(TlIr *ir, TlOp o, TlBlock b, TlOp before)
{
    TlOpNode *n = tl_opn(ir, o);
    TlBlockNode *bn = tl_blockn(ir, b);
    n->block = b;
    n->next = before;
    n->prev = before ? tl_opn(ir, before)->prev : bn->last;
    if (n->prev)
        tl_opn(ir, n->prev)->next = o;
    else
        bn->first = o;
    if (before)
        tl_opn(ir, before)->prev = o;
    else
        bn->last = o;
}

TlOp
tl_build(TlBuilder *b, TlOpcode code, const TlVal *in, uint32_t nin, const TlType *types, uint32_t ntypes)
{
    TlIr *ir = b->ir;
    TlOpNode n = {.code = code, .loc = b->loc, .nin = nin, .nres = ntypes};
    for (uint32_t i = 0; i < nin; i++)
        if (!in[i])
            return 0; /* an earlier step failed and said so */
    for (uint32_t i = 0; i < ntypes; i++)
        if (!types[i])
            return 0;
    if (nin + ntypes) {
        uint32_t *p = TL_NEW_N(ir->arena, uint32_t, nin + ntypes);
        if (!p)
            return oom(ir);
        n.in = p;
        n.res = p + nin;
        if (nin)
            memcpy(p, in, nin * sizeof *in);
    }
    if (!tl_vec_push(ir->arena, &ir->ops, n))
        return oom(ir);
    TlOp o = ir->ops.len - 1;
    for (uint32_t i = 0; i < ntypes; i++) {
        TlValNode v = {.type = types[i], .def = o, .index = i};
        if (!tl_vec_push(ir->arena, &ir->vals, v))
            return oom(ir);
        n.res[i] = ir->vals.len - 1;
    }
    if (b->block)
        tl_op_link_before_(ir, o, b->block, b->before);
    return o;
}

enum { MAX_VARIADIC = 32 };

static bool
collect(TlIr *ir, uint32_t nin, va_list ap, TlVal *in)
{
    if (nin > MAX_VARIADIC)
        return tl_error(ir->diag, (TlLoc){0}, TL_E_INTERNAL, "too many operands for tl_build1");
    for (uint32_t i = 0; i < nin; i++)
        if (!(in[i] = va_arg(ap, TlVal)))
            return false;
    return true;
}

TlVal
tl_build1(TlBuilder *b, TlOpcode code, uint32_t nin, ...)
{
    TlVal in[MAX_VARIADIC];
    va_list ap;
    va_start(ap, nin);
    bool ok = collect(b->ir, nin, ap, in);
    va_end(ap);
    TlType t = ok ? tl_infer(b->ir, code, in, nin, b->loc) : 0;
    return t ? tl_result(b->ir, tl_build(b, code, in, nin, &t, 1), 0) : 0;
}

TlVal
tl_build1t(TlBuilder *b, TlOpcode code, TlType t, uint32_t nin, ...)
{
    TlVal in[MAX_VARIADIC];
    va_list ap;
    va_start(ap, nin);
    bool ok = collect(b->ir, nin, ap, in);
    va_end(ap);
    return ok ? tl_result(b->ir, tl_build(b, code, in, nin, &t, 1), 0) : 0;
}

static TlVal
build_const(TlBuilder *b, TlType t, bool is_float, TlNum n)
{
    TlOp o = t ? tl_build(b, TL_OP_const, NULL, 0, &t, 1) : 0;
    if (!o)
        return 0;
    bool ok = is_float ? tl_attr_set_float(b->ir, o, "fvalue", n.f) : tl_attr_set_int(b->ir, o, "value", n.i);
    return ok ? tl_result(b->ir, o, 0) : 0;
}

TlVal
tl_const_int(TlBuilder *b, TlType t, int64_t v)
{
    TlElem e = tl_type_elem(tl_tinfo(b->ir, t));
    if (tl_elem_is_float(e))
        return build_const(b, t, true, (TlNum){.f = tl_float_round(e, (double)v)});
    return build_const(b, t, false, (TlNum){.i = tl_int_wrap(e, v)});
}

TlVal
tl_const_float(TlBuilder *b, TlType t, double v)
{
    TlElem e = tl_type_elem(tl_tinfo(b->ir, t));
    if (!tl_elem_is_float(e)) {
        tl_error(b->ir->diag, b->loc, TL_E_INTERNAL, "a float constant of a type that is no float");
        return 0;
    }
    return build_const(b, t, true, (TlNum){.f = tl_float_round(e, v)});
}

bool
tl_is_const_int(const TlIr *ir, TlVal v, int64_t *out)
{
    TlOp o = tl_valn(ir, v)->def;
    const TlAttr *a;
    if (!o || tl_opn(ir, o)->code != TL_OP_const || !(a = tl_attr(ir, o, "value")) || a->kind != TL_ATTR_INT)
        return false;
    *out = a->u.i;
    return true;
}

bool
tl_is_const_float(const TlIr *ir, TlVal v, double *out)
{
    TlOp o = tl_valn(ir, v)->def;
    const TlAttr *a;
    if (!o || tl_opn(ir, o)->code != TL_OP_const || !(a = tl_attr(ir, o, "fvalue")) ||
        a->kind != TL_ATTR_FLOAT)
        return false;
    *out = a->u.f;
    return true;
}

bool
tl_op_set_results(TlIr *ir, TlOp o, const TlType *types, uint32_t n)
{
    TlVal *res = TL_NEW_N(ir->arena, TlVal, n ? n : 1);
    if (!res)
        return oom(ir);
    for (uint32_t i = 0; i < n; i++) {
        TlValNode v = {.type = types[i], .def = o, .index = i};
        if (!types[i])
            return false;
        if (!tl_vec_push(ir->arena, &ir->vals, v))
            return oom(ir);
        res[i] = ir->vals.len - 1;
    }
    tl_opn(ir, o)->res = res;
    tl_opn(ir, o)->nres = n;
    return true;
}

bool
tl_attr_put_(TlIr *ir, TlOp o, TlKernelId k, const TlAttr *a)
{
    return o ? attr_put(ir, o, *a) : kattr_put(ir, k, *a);
}
