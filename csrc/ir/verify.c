/* verify.c - structure: lists and links, arity, attributes, levels, definitions before uses, terminators.
 * What a single row demands of its operands is in verify_ops.c. All faults are collected; each becomes a
 * diagnostic, and a last note shows the kernel with the faults beside the operations. */
#include "ir/ir_internal.h"

#include <stdio.h>

enum { MAX_FAULTS = 64, MAX_DEPTH = 100 };

bool
tl_fault(TlVerifier *v, TlOp o, const char *fmt, ...)
{
    TlText t;
    va_list ap;
    uint64_t last;
    if (v->faults.len >= MAX_FAULTS)
        return false;
    tl_text_init(&t, v->ir->arena);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    TlFault f = {.op = o, .text = t.data};
    if (t.failed || !tl_vec_push(v->ir->arena, &v->faults, f)) {
        v->oom = true;
        return false;
    }
    if (tl_map_get(&v->last, o, &last))
        v->faults.data[last - 1].next = v->faults.len;
    else if (!tl_map_put(&v->first, o, v->faults.len))
        v->oom = true;
    if (!tl_map_put(&v->last, o, v->faults.len))
        v->oom = true;
    return false;
}

const char *
tl_type_text(TlIr *ir, TlType t)
{
    TlText x;
    tl_text_init(&x, ir->arena);
    tl_type_print(ir, t, &x);
    return x.failed ? "?" : x.data;
}

/* ---- attributes ---- */

static const char *const kind_words[] = {[TL_ATTR_INT] = "an integer",
                                         [TL_ATTR_FLOAT] = "a float",
                                         [TL_ATTR_STR] = "a string",
                                         [TL_ATTR_INTS] = "a list of integers"};

/* One "key:k" or "key?:k" of a row's attribute column; false at the end. */
static bool
next_spec(const char **s, const char **key, size_t *n, bool *optional, TlAttrKind *kind)
{
    const char *p = *s;
    while (*p == ' ')
        p++;
    if (!*p)
        return false;
    *key = p;
    while (*p && *p != ':' && *p != '?')
        p++;
    *n = (size_t)(p - *key);
    *optional = *p == '?';
    p += *optional;
    p += *p == ':';
    *kind = *p == 'i' ? TL_ATTR_INT : *p == 'f' ? TL_ATTR_FLOAT : *p == 's' ? TL_ATTR_STR : TL_ATTR_INTS;
    *s = *p ? p + 1 : p;
    return true;
}

static void
check_attrs(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = tl_opn(v->ir, o);
    const char *spec = tl_op_row(n->code)->attrs, *key;
    size_t len;
    bool optional;
    TlAttrKind kind;
    uint32_t known = 0;
    if (!*spec && !n->nattr)
        return;
    while (next_spec(&spec, &key, &len, &optional, &kind)) {
        const TlAttr *a = NULL;
        for (uint32_t i = 0; i < n->nattr && !a; i++) {
            const char *have = tl_str(&v->ir->strs, n->attr[i].key);
            if (strncmp(have, key, len) == 0 && !have[len])
                a = &n->attr[i];
        }
        known += a != NULL;
        if (!a && !optional)
            tl_fault(v, o, "attribute %.*s is missing", (int)len, key);
        else if (a && a->kind != kind)
            tl_fault(v, o, "attribute %.*s must be %s", (int)len, key, kind_words[kind]);
    }
    if (known == n->nattr)
        return;
    for (uint32_t i = 0; i < n->nattr; i++) { /* something is unknown: find out what */
        const char *have = tl_str(&v->ir->strs, n->attr[i].key);
        bool found = false;
        for (spec = tl_op_row(n->code)->attrs; next_spec(&spec, &key, &len, &optional, &kind);)
            found |= strncmp(have, key, len) == 0 && !have[len];
        if (!found)
            tl_fault(v, o, "no attribute %s here", have);
    }
}

/* ---- types by level ---- */

static bool
type_at_level(TlLevel level, TlTypeKind k)
{
    switch (k) {
    case TL_TY_SCALAR:
        return true;
    case TL_TY_INDEX:
    case TL_TY_TILE:
    case TL_TY_BUF:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
        return level == TL_LEVEL_TILE;
    case TL_TY_VEC:
    case TL_TY_PTR:
    case TL_TY_RSRC:
    case TL_TY_LDS:
        return level == TL_LEVEL_THREAD;
    case TL_TY_VOID:
        break;
    }
    return false;
}

static void
check_value(TlVerifier *v, TlVal val, TlOp o, bool param)
{
    TlIr *ir = v->ir;
    TlTypeKind k = tl_vtype(ir, val)->kind;
    if (!type_at_level(v->level, k))
        tl_fault(v, o, "type %s does not exist at level %s", tl_type_text(ir, tl_valn(ir, val)->type),
                 v->level == TL_LEVEL_TILE ? "tile" : "thread");
    else if (param ? k != TL_TY_SCALAR && k != TL_TY_BUF && k != TL_TY_PTR : k == TL_TY_BUF)
        tl_fault(v, o, "%s of type %s", param ? "a kernel parameter cannot be" : "only parameters are",
                 tl_type_text(ir, tl_valn(ir, val)->type));
    if (v->visible[val])
        tl_fault(v, o, "a value is defined twice");
    v->visible[val] = 1;
}

/* ---- structure ---- */

static void check_block(TlVerifier *v, TlBlock b, TlOp parent);

static void
check_counts(TlVerifier *v, TlOp o)
{
    const TlOpNode *n = tl_opn(v->ir, o);
    const TlOpRow *row = tl_op_row(n->code);
    if ((int)n->nin < row->nin_min || (row->nin_max >= 0 && (int)n->nin > row->nin_max)) {
        if (row->nin_min == row->nin_max)
            tl_fault(v, o, "%d operands wanted, %u given", row->nin_min, n->nin);
        else
            tl_fault(v, o, "at least %d operands wanted, %u given", row->nin_min, n->nin);
    }
    if (row->nres >= 0 && (int)n->nres != row->nres)
        tl_fault(v, o, "%d results wanted, %u given", row->nres, n->nres);
    if ((int)n->nregion != row->nregion)
        tl_fault(v, o, "%d regions wanted, %u given", row->nregion, n->nregion);
    if ((row->traits & TL_T_TILE_ONLY) && v->level != TL_LEVEL_TILE)
        tl_fault(v, o, "%s does not exist at level thread", row->name);
    if ((row->traits & TL_T_THREAD_ONLY) && v->level != TL_LEVEL_THREAD)
        tl_fault(v, o, "%s does not exist at level tile", row->name);
}

static void
check_op(TlVerifier *v, TlOp o)
{
    TlIr *ir = v->ir;
    const TlOpNode *n = tl_opn(ir, o);
    uint32_t before = v->faults.len;
    if (n->code <= TL_OP_NONE || n->code >= TL_OP__COUNT) {
        tl_fault(v, o, "no such operation");
        return;
    }
    check_counts(v, o);
    bool ok = v->faults.len == before;
    for (uint32_t i = 0; i < n->nin; i++)
        if (n->in[i] == 0 || n->in[i] >= ir->vals.len)
            ok = tl_fault(v, o, "operand %u is no value", i);
        else if (!v->visible[n->in[i]])
            ok = tl_fault(v, o,
                          "operand %u is not defined before this operation, in this region or around it", i);
    before = v->faults.len;
    check_attrs(v, o);
    ok &= v->faults.len == before;
    for (uint32_t r = 0; r < n->nregion; r++)
        if (tl_blockn(ir, n->region[r])->parent != o)
            ok = tl_fault(v, o, "region %u belongs to another operation", r);
        else
            check_block(v, n->region[r], o);
    for (uint32_t i = 0; i < n->nres; i++) {
        const TlValNode *val = tl_valn(ir, n->res[i]);
        if (val->def != o || val->index != i)
            ok = tl_fault(v, o, "result %u belongs to another operation", i);
        check_value(v, n->res[i], o, false);
    }
    if (ok)
        tl_verify_op(v, o);
}

static void
hide_block(TlVerifier *v, TlBlock b)
{
    const TlBlockNode *bn = tl_blockn(v->ir, b);
    for (uint32_t i = 0; i < bn->args.len; i++)
        v->visible[bn->args.data[i]] = 0;
    for (TlOp o = bn->first; o; o = tl_opn(v->ir, o)->next) {
        const TlOpNode *n = tl_opn(v->ir, o);
        for (uint32_t i = 0; i < n->nres; i++)
            v->visible[n->res[i]] = 0;
        if (o == bn->last)
            break;
    }
}

static void
check_block(TlVerifier *v, TlBlock b, TlOp parent)
{
    TlIr *ir = v->ir;
    const TlBlockNode *bn = tl_blockn(ir, b);
    TlOp prev = 0;
    if (++v->depth > MAX_DEPTH) {
        v->depth--;
        tl_fault(v, parent, "regions nested too deep");
        return;
    }
    if (bn->kernel != v->kernel)
        tl_fault(v, parent, "a region of another kernel");
    for (uint32_t i = 0; i < bn->args.len; i++)
        check_value(v, bn->args.data[i], parent, parent == 0);
    for (TlOp o = bn->first; o; prev = o, o = tl_opn(ir, o)->next) {
        if (v->seen_op[o]) {
            tl_fault(v, o, "an operation stands in two places");
            break;
        }
        v->seen_op[o] = 1;
        if (tl_opn(ir, o)->block != b || tl_opn(ir, o)->prev != prev)
            tl_fault(v, o, "broken links to its neighbours");
        check_op(v, o);
        if ((tl_op_row(tl_opn(ir, o)->code)->traits & TL_T_TERMINATOR)) {
            if (!parent)
                tl_fault(v, o, "%s stands in no region", tl_op_row(tl_opn(ir, o)->code)->name);
            else if (tl_opn(ir, o)->next)
                tl_fault(v, o, "%s must be the last of its region", tl_op_row(tl_opn(ir, o)->code)->name);
        }
    }
    if (prev != bn->last)
        tl_fault(v, parent, "broken link to the last operation");
    else if (parent)
        hide_block(v, b);
    v->depth--;
}

static void
check_kernel(TlVerifier *v)
{
    TlIr *ir = v->ir;
    const TlKernel *k = tl_kerneln(ir, v->kernel);
    static const char *const ints[] = {"num_warps", "num_stages", "waves_per_eu", "lds_bytes", "block"};
    for (uint32_t i = 0; i < TL_COUNT(ints); i++) {
        const TlAttr *a = tl_kattr(ir, v->kernel, ints[i]);
        if (a && (a->kind != TL_ATTR_INT || a->u.i < 0))
            tl_fault(v, 0, "kernel attribute %s must be a number from 0 up", ints[i]);
    }
    const TlAttr *t = tl_kattr(ir, v->kernel, "target");
    if (t && (t->kind != TL_ATTR_STR || !tl_target_by_name(tl_str(&ir->strs, t->u.s))))
        tl_fault(v, 0, "kernel attribute target names no known chip");
    static const char *const grids[] = {"grid0", "grid1", "grid2"};
    for (uint32_t i = 0; i < TL_COUNT(grids); i++) {
        const TlAttr *a = tl_kattr(ir, v->kernel, grids[i]);
        if (a && (a->kind != TL_ATTR_INTS || a->u.ints.n % 3))
            tl_fault(v, 0, "kernel attribute %s must be a list of triples", grids[i]);
    }
    check_block(v, k->body, 0);
}

static void
report(TlVerifier *v, const char *after_pass)
{
    TlIr *ir = v->ir;
    const char *name = tl_str(&ir->strs, tl_kerneln(ir, v->kernel)->name);
    for (uint32_t i = 0; i < v->faults.len; i++) {
        const TlFault *f = &v->faults.data[i];
        TlLoc loc = f->op ? tl_opn(ir, f->op)->loc : tl_kerneln(ir, v->kernel)->loc;
        const char *what = f->op ? tl_op_row(tl_opn(ir, f->op)->code)->name : name;
        tl_error(ir->diag, loc, TL_E_VERIFY,
                 tl_arena_printf(ir->arena, "%s%s%s%s: %s", after_pass ? "after pass " : "",
                                 after_pass ? after_pass : "", after_pass ? ": " : "", what, f->text));
    }
    TlText t;
    tl_text_init(&t, ir->arena);
    tl_print_faults(ir, v->kernel, &t, &v->faults, &v->first);
    if (!t.failed)
        tl_error(ir->diag, tl_kerneln(ir, v->kernel)->loc, TL_E_NOTE,
                 tl_arena_printf(ir->arena, "kernel with faults:\n%s", t.data));
}

bool
tl_verify(TlIr *ir, TlKernelId k, const char *after_pass)
{
    TlVerifier v = {.ir = ir, .kernel = k, .level = tl_kerneln(ir, k)->level, .mma_name = UINT32_MAX};
    tl_map_init(&v.first, ir->arena);
    tl_map_init(&v.last, ir->arena);
    v.seen_op = TL_NEW_N(ir->arena, uint8_t, ir->ops.len);
    v.visible = TL_NEW_N(ir->arena, uint8_t, ir->vals.len);
    if (v.seen_op && v.visible)
        check_kernel(&v);
    if (v.oom || ir->arena->failed || !v.seen_op || !v.visible) {
        ir->diag->oom = true;
        return false;
    }
    if (!v.faults.len)
        return true;
    report(&v, after_pass);
    return false;
}
