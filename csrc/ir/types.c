/* types.c - interned types: equal types have equal ids; 0 is "none" (void). */
#include "ir/ir.h"

bool
tl_ir_init(TlIr *ir, TlArena *arena, TlDiag *diag)
{
    TlTypeInfo none = {.kind = TL_TY_VOID};
    TlOpNode op = {.code = TL_OP_NONE};
    TlValNode val = {.type = 0};
    TlBlockNode block = {.parent = 0};
    TlKernel kernel = {.name = 0};
    *ir = (TlIr){.arena = arena, .diag = diag};
    tl_map_init(&ir->type_map, arena);
    if (!tl_strtab_init(&ir->strs, arena) || !tl_vec_push(arena, &ir->types, none) ||
        !tl_vec_push(arena, &ir->ops, op) || !tl_vec_push(arena, &ir->vals, val) ||
        !tl_vec_push(arena, &ir->blocks, block) || !tl_vec_push(arena, &ir->kernels, kernel))
        return false;
    /* names of operations come first in the string table: the id of such a name is its opcode */
    for (uint32_t i = 1; i < TL_OP__COUNT; i++) {
        const char *name = tl_op_row((TlOpcode)i)->name;
        if (tl_intern(&ir->strs, name, strlen(name)) != i)
            return false;
    }
    return true;
}

static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t
hash_info(const TlTypeInfo *i)
{
    uint64_t h = mix((uint64_t)i->kind << 32 | (uint64_t)i->elem, i->rank);
    for (uint32_t d = 0; d < i->rank; d++)
        h = mix(h, (uint64_t)i->shape[d]);
    if (i->kind == TL_TY_BUF) {
        for (uint32_t d = 0; d < i->rank; d++)
            h = mix(mix(h, (uint64_t)i->strides[d]), (uint64_t)i->dim_div[d] << 32 | i->stride_div[d]);
        h = mix(h, (uint64_t)i->align << 32 | i->flags);
    }
    return h;
}

static bool
same_info(const TlTypeInfo *a, const TlTypeInfo *b)
{
    if (a->kind != b->kind || a->elem != b->elem || a->rank != b->rank || a->align != b->align ||
        a->flags != b->flags)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d] || a->strides[d] != b->strides[d] || a->dim_div[d] != b->dim_div[d] ||
            a->stride_div[d] != b->stride_div[d])
            return false;
    return true;
}

/* What a type of its kind may say, everything else zero; false when it says something impossible. */
static bool
canonical(const TlTypeInfo *in, TlTypeInfo *out)
{
    *out = (TlTypeInfo){.kind = in->kind};
    switch (in->kind) {
    case TL_TY_VOID:
    case TL_TY_INDEX:
    case TL_TY_PTR:
    case TL_TY_RSRC:
    case TL_TY_LDS:
        return true;
    case TL_TY_SCALAR:
    case TL_TY_TILE:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
    case TL_TY_VEC:
    case TL_TY_BUF:
        break;
    default: /* a value outside the enum */
        return false;
    }
    if (in->elem <= TL_ELEM_NONE || in->elem >= TL_ELEM__COUNT)
        return false;
    out->elem = in->elem;
    if (in->kind == TL_TY_SCALAR)
        return true;
    if (in->rank > TL_MAX_RANK || (in->kind == TL_TY_VEC && in->rank != 1) ||
        (in->kind != TL_TY_BUF && in->rank == 0))
        return false;
    out->rank = in->rank;
    int64_t n = 1;
    for (uint32_t d = 0; d < in->rank; d++) {
        int64_t s = out->shape[d] = in->shape[d];
        if (in->kind != TL_TY_BUF) {
            if (s < 1 || s > INT32_MAX || (n *= s) > INT32_MAX)
                return false;
            continue;
        }
        if (s < 0 && s != TL_DYN)
            return false;
        out->strides[d] = in->strides[d];
        out->dim_div[d] = s == TL_DYN && in->dim_div[d] ? in->dim_div[d] : 1;
        out->stride_div[d] = in->strides[d] == TL_DYN && in->stride_div[d] ? in->stride_div[d] : 1;
    }
    if (in->kind == TL_TY_BUF) {
        out->align = in->align ? in->align : tl_elem_bytes(in->elem);
        out->flags = in->flags & (TL_BUF_NOALIAS | TL_BUF_DENSE | TL_BUF_BIG);
        if (out->align & (out->align - 1))
            return false;
    }
    return true;
}

TlType
tl_type(TlIr *ir, const TlTypeInfo *info)
{
    TlTypeInfo c;
    if (!canonical(info, &c)) {
        tl_error(ir->diag, (TlLoc){0}, TL_E_TYPE, "a type of impossible rank, size, alignment or element");
        return 0;
    }
    if (c.kind == TL_TY_VOID)
        return 0;
    uint64_t h = hash_info(&c), have;
    for (; tl_map_get(&ir->type_map, h, &have); h++)
        if (same_info(&ir->types.data[have], &c))
            return (TlType)have;
    if (!tl_vec_push(ir->arena, &ir->types, c) || !tl_map_put(&ir->type_map, h, ir->types.len - 1)) {
        ir->diag->oom = true;
        return 0;
    }
    return ir->types.len - 1;
}

TlType
tl_type_scalar(TlIr *ir, TlElem e)
{
    if (e <= TL_ELEM_NONE || e >= TL_ELEM__COUNT)
        return tl_type(ir, &(TlTypeInfo){.kind = TL_TY_SCALAR});
    if (!ir->scalar_types[e])
        ir->scalar_types[e] = tl_type(ir, &(TlTypeInfo){.kind = TL_TY_SCALAR, .elem = e});
    return ir->scalar_types[e];
}

TlType
tl_type_kind(TlIr *ir, TlTypeKind k)
{
    if ((uint32_t)k >= TL_COUNT(ir->kind_types))
        return tl_type(ir, &(TlTypeInfo){.kind = k});
    if (!ir->kind_types[k])
        ir->kind_types[k] = tl_type(ir, &(TlTypeInfo){.kind = k});
    return ir->kind_types[k];
}

TlType
tl_type_index(TlIr *ir)
{
    return tl_type_kind(ir, TL_TY_INDEX);
}

TlType
tl_type_shaped(TlIr *ir, TlTypeKind k, TlElem e, uint32_t rank, const int64_t *shape)
{
    TlTypeInfo i = {.kind = k, .elem = e, .rank = rank};
    if (rank <= TL_MAX_RANK)
        memcpy(i.shape, shape, rank * sizeof *shape);
    return tl_type(ir, &i);
}

TlType
tl_type_tile(TlIr *ir, TlElem e, uint32_t rank, const int64_t *shape)
{
    return tl_type_shaped(ir, TL_TY_TILE, e, rank, shape);
}

TlType
tl_type_vec(TlIr *ir, TlElem e, int64_t n)
{
    return tl_type_shaped(ir, TL_TY_VEC, e, 1, &n);
}

TlType
tl_type_with_elem(TlIr *ir, TlType t, TlElem e)
{
    TlTypeInfo i = *tl_tinfo(ir, t);
    if (i.kind == TL_TY_INDEX || i.kind == TL_TY_SCALAR)
        return tl_type_scalar(ir, e);
    i.elem = e;
    return tl_type(ir, &i);
}

int64_t
tl_numel(const TlTypeInfo *i)
{
    int64_t n = 1;
    switch (i->kind) {
    case TL_TY_INDEX:
    case TL_TY_SCALAR:
        return 1;
    case TL_TY_TILE:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
    case TL_TY_VEC:
        for (uint32_t d = 0; d < i->rank; d++)
            n *= i->shape[d];
        return n;
    case TL_TY_VOID:
    case TL_TY_BUF:
    case TL_TY_PTR:
    case TL_TY_RSRC:
    case TL_TY_LDS:
        break;
    }
    return 0;
}

TlElem
tl_type_elem(const TlTypeInfo *i)
{
    switch (i->kind) {
    case TL_TY_INDEX:
        return TL_ELEM_I64;
    case TL_TY_SCALAR:
    case TL_TY_TILE:
    case TL_TY_VEC:
        return i->elem;
    case TL_TY_VOID:
    case TL_TY_BUF:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
    case TL_TY_PTR:
    case TL_TY_RSRC:
    case TL_TY_LDS:
        break;
    }
    return TL_ELEM_NONE;
}

static void
print_sizes(TlText *out, const TlTypeInfo *i)
{
    for (uint32_t d = 0; d < i->rank; d++)
        tl_text_printf(out, "%lldx", (long long)i->shape[d]);
    tl_text_puts(out, tl_elem_name(i->elem));
}

static void
print_dims(TlText *out, uint32_t rank, const int64_t *v, const uint32_t *div)
{
    tl_text_puts(out, "[");
    for (uint32_t d = 0; d < rank; d++) {
        if (d)
            tl_text_puts(out, ", ");
        if (v[d] != TL_DYN)
            tl_text_printf(out, "%lld", (long long)v[d]);
        else if (div[d] > 1)
            tl_text_printf(out, "?:%u", div[d]);
        else
            tl_text_puts(out, "?");
    }
    tl_text_puts(out, "]");
}

void
tl_type_print(const TlIr *ir, TlType t, TlText *out)
{
    static const char *const words[] = {
        [TL_TY_VOID] = "void", [TL_TY_INDEX] = "index",    [TL_TY_SCALAR] = "",      [TL_TY_TILE] = "tile<",
        [TL_TY_BUF] = "buf<",  [TL_TY_SHARED] = "shared<", [TL_TY_LOCAL] = "local<", [TL_TY_VEC] = "vec<",
        [TL_TY_PTR] = "ptr",   [TL_TY_RSRC] = "rsrc",      [TL_TY_LDS] = "lds"};
    const TlTypeInfo *i = tl_tinfo(ir, t);
    tl_text_puts(out, words[i->kind]);
    switch (i->kind) {
    case TL_TY_VOID:
    case TL_TY_INDEX:
    case TL_TY_PTR:
    case TL_TY_RSRC:
    case TL_TY_LDS:
        break;
    case TL_TY_SCALAR:
        tl_text_puts(out, tl_elem_name(i->elem));
        break;
    case TL_TY_TILE:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
    case TL_TY_VEC:
        print_sizes(out, i);
        tl_text_puts(out, ">");
        break;
    case TL_TY_BUF:
        tl_text_printf(out, "%s ", tl_elem_name(i->elem));
        print_dims(out, i->rank, i->shape, i->dim_div);
        tl_text_puts(out, " strides ");
        print_dims(out, i->rank, i->strides, i->stride_div);
        tl_text_printf(out, " align %u", i->align);
        if (i->flags & TL_BUF_NOALIAS)
            tl_text_puts(out, " noalias");
        if (i->flags & TL_BUF_DENSE)
            tl_text_puts(out, " dense");
        if (i->flags & TL_BUF_BIG)
            tl_text_puts(out, " big");
        tl_text_puts(out, ">");
        break;
    }
}
