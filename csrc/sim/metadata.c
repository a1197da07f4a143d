/* metadata.c - the AMDGPU metadata note of a code object (MessagePack) and hidden kernel arguments (image.h).
 */
#include <stdio.h>

#include "sim/image_priv.h"
#include "sim/msgpack.h"

static const struct {
    const char *name;
    SimArgKind kind;
} arg_kinds[] = {
    {"by_value", SIM_ARG_BY_VALUE},
    {"global_buffer", SIM_ARG_GLOBAL_BUFFER},
    {"dynamic_shared_pointer", SIM_ARG_DYNAMIC_SHARED_POINTER},
#define HIDDEN(name, size, value) {#name, SIM_ARG_##name},
#include "sim/hidden_args.def"
#undef HIDDEN
};

static const char *
dup(Loader *ld, const MpValue *v)
{
    return v->type == MP_STR ? tl_arena_strdup(&ld->im->arena, v->str, v->u) : NULL;
}

static bool
read_arg(Loader *ld, MpCursor *c, SimArg *a)
{
    MpValue map, key, v;
    *a = (SimArg){.name = "", .kind_name = ""};
    if (!mp_read(c, &map) || map.type != MP_MAP)
        return load_fail(ld, "the metadata note is malformed (an argument is no map)");
    for (uint64_t i = 0; i < map.u; i++) {
        if (!mp_read(c, &key) || !mp_read(c, &v) || !mp_skip_rest(c, &v))
            return load_fail(ld, "the metadata note is malformed (argument)");
        if (mp_is(&key, ".offset"))
            a->offset = (uint32_t)TL_MIN(v.u, UINT32_MAX);
        else if (mp_is(&key, ".size"))
            a->size = (uint32_t)TL_MIN(v.u, UINT32_MAX);
        else if (mp_is(&key, ".name") && !(a->name = dup(ld, &v)))
            return load_fail(ld, "the metadata note is malformed (argument name)");
        else if (mp_is(&key, ".value_kind") && !(a->kind_name = dup(ld, &v)))
            return load_fail(ld, "the metadata note is malformed (value_kind)");
    }
    for (uint32_t i = 0; i < TL_COUNT(arg_kinds); i++)
        if (!strcmp(arg_kinds[i].name, a->kind_name))
            a->kind = arg_kinds[i].kind;
    return true;
}

static bool
read_args(Loader *ld, MpCursor *c, SimKernel *k, const MpValue *arr)
{
    if (arr->type != MP_ARRAY || arr->u > (uint64_t)(c->end - c->p))
        return load_fail(ld, "the metadata note is malformed (.args)");
    k->nargs = (uint32_t)arr->u;
    if (k->nargs && !(k->args = TL_NEW_N(&ld->im->arena, SimArg, k->nargs)))
        return load_fail(ld, "out of memory");
    for (uint32_t i = 0; i < k->nargs; i++)
        if (!read_arg(ld, c, &k->args[i]))
            return false;
    return true;
}

static bool
read_three(Loader *ld, MpCursor *c, const MpValue *arr, uint32_t out[3])
{
    MpValue v;
    if (arr->type != MP_ARRAY || arr->u != 3)
        return load_fail(ld, "the metadata note is malformed (three numbers expected)");
    for (uint32_t i = 0; i < 3; i++) {
        if (!mp_read(c, &v) || v.type != MP_UINT)
            return load_fail(ld, "the metadata note is malformed (three numbers expected)");
        out[i] = (uint32_t)v.u;
    }
    return true;
}

static bool
read_kernel(Loader *ld, MpCursor *c)
{
    MpValue map, key, v;
    SimKernel k = {.image = ld->im, .has_metadata = true};
    const char *symbol = NULL;
    const struct {
        const char *key;
        uint32_t *to;
    } numbers[] = {
        {".wavefront_size", &k.wavefront_size},
        {".sgpr_count", &k.sgpr_count},
        {".vgpr_count", &k.vgpr_count},
        {".agpr_count", &k.agpr_count},
        {".sgpr_spill_count", &k.sgpr_spill_count},
        {".vgpr_spill_count", &k.vgpr_spill_count},
        {".max_flat_workgroup_size", &k.max_flat_workgroup_size},
        {".kernarg_segment_align", &k.kernarg_align},
        {".kernarg_segment_size", &k.meta_kernarg_size},
        {".group_segment_fixed_size", &k.meta_group_size},
        {".private_segment_fixed_size", &k.meta_private_size},
    };
    if (!mp_read(c, &map) || map.type != MP_MAP)
        return load_fail(ld, "the metadata note is malformed (a kernel is no map)");
    for (uint64_t i = 0; i < map.u; i++) {
        if (!mp_read(c, &key) || !mp_read(c, &v))
            return load_fail(ld, "the metadata note is malformed (kernel)");
        if (mp_is(&key, ".args")) {
            if (!read_args(ld, c, &k, &v))
                return false;
            continue;
        }
        if (mp_is(&key, ".reqd_workgroup_size")) {
            if (!read_three(ld, c, &v, k.reqd_workgroup_size))
                return false;
            continue;
        }
        if (!mp_skip_rest(c, &v))
            return load_fail(ld, "the metadata note is malformed (kernel)");
        for (uint32_t n = 0; n < TL_COUNT(numbers); n++)
            if (v.type == MP_UINT && mp_is(&key, numbers[n].key))
                *numbers[n].to = (uint32_t)TL_MIN(v.u, UINT32_MAX);
        if (mp_is(&key, ".symbol"))
            symbol = dup(ld, &v);
        else if (mp_is(&key, ".uniform_work_group_size"))
            k.uniform_work_group = v.u != 0;
        else if (mp_is(&key, ".uses_dynamic_stack"))
            k.dynamic_stack = v.u != 0;
    }
    size_t n = symbol ? strlen(symbol) : 0;
    if (n < 4 || strcmp(symbol + n - 3, ".kd"))
        return load_fail(ld, "the metadata note is malformed (a kernel has no descriptor symbol)");
    k.name = tl_arena_strdup(&ld->im->arena, symbol, n - 3);
    if (!k.name)
        return load_fail(ld, "out of memory");
    if (sim_image_kernel(ld->im, k.name))
        return load_fail(ld, "the metadata names kernel %s twice", SIM_KERNEL_LABEL(&k));
    return load_add_kernel(ld, &k) || load_fail(ld, "out of memory");
}

/* amdhsa.printf: formats of the printf buffer. */
static bool
read_formats(Loader *ld, MpCursor *c, const MpValue *arr)
{
    MpValue v;
    if (arr->type != MP_ARRAY)
        return load_fail(ld, "the metadata note is malformed (amdhsa.printf)");
    for (uint64_t i = 0; i < arr->u; i++) {
        if (!mp_read(c, &v) || v.type != MP_STR)
            return load_fail(ld, "the metadata note is malformed (amdhsa.printf)");
        const char *text = dup(ld, &v);
        if (!text || !tl_vec_push(&ld->im->arena, &ld->im->printf_formats, text))
            return load_fail(ld, "out of memory");
    }
    return true;
}

static bool
read_root(Loader *ld, MpCursor *c)
{
    MpValue map, key, v;
    if (!mp_read(c, &map) || map.type != MP_MAP)
        return load_fail(ld, "the metadata note is malformed (no map)");
    for (uint64_t i = 0; i < map.u; i++) {
        if (!mp_read(c, &key) || !mp_read(c, &v))
            return load_fail(ld, "the metadata note is malformed");
        if (mp_is(&key, "amdhsa.printf")) {
            if (!read_formats(ld, c, &v))
                return false;
            continue;
        }
        if (!mp_is(&key, "amdhsa.kernels")) {
            if (!mp_skip_rest(c, &v))
                return load_fail(ld, "the metadata note is malformed");
            continue;
        }
        if (v.type != MP_ARRAY)
            return load_fail(ld, "the metadata note is malformed (amdhsa.kernels)");
        for (uint64_t k = 0; k < v.u; k++)
            if (!read_kernel(ld, c))
                return false;
    }
    return true;
}

static bool
read_notes(Loader *ld, uint64_t off, uint64_t size)
{
    uint64_t end = off + size;
    if (end < off || end > ld->size)
        return load_fail(ld, "a note segment lies outside the file");
    ld->note_bytes += size;
    if (ld->note_bytes / 2 > ld->size)
        return load_fail(ld, "the note segments share bytes of the file");
    while (end - off >= 12) {
        uint32_t h[3]; /* name size, descriptor size, type */
        if (!load_get(ld, off, h, sizeof h))
            return load_fail(ld, "a note lies outside the file");
        uint64_t name = off + 12, desc = name + ((h[0] + UINT64_C(3)) & ~UINT64_C(3));
        if (desc > end || end - desc < h[1])
            return load_fail(ld, "a note is longer than its segment");
        if (h[2] == NT_AMDGPU_METADATA && h[0] == 7 && !memcmp(ld->file + name, "AMDGPU", 7)) {
            MpCursor c = {ld->file + desc, ld->file + desc + h[1], false};
            if (!read_root(ld, &c))
                return false;
        }
        off = TL_MIN(end, desc + ((h[1] + UINT64_C(3)) & ~UINT64_C(3)));
    }
    return true;
}

bool
load_metadata(Loader *ld)
{
    for (uint32_t i = 0; i < ld->eh.phnum; i++) {
        Phdr ph;
        if (!load_phdr(ld, i, &ph))
            return false;
        if (ph.type == PT_NOTE && !read_notes(ld, ph.offset, ph.filesz))
            return false;
    }
    return true;
}

/* ---- hidden arguments ---- */

static uint32_t
grid_dims(const SimLaunchDims *d)
{
    if (d->grid[2] > 1 || d->block[2] > 1)
        return 3;
    return d->grid[1] > 1 || d->block[1] > 1 ? 2 : 1;
}

static uint64_t
hidden_value(SimArgKind kind, const SimLaunchDims *d, uint32_t *size)
{
    switch (kind) {
#define HIDDEN(name, bytes, value)                                                                           \
    case SIM_ARG_##name:                                                                                     \
        *size = bytes;                                                                                       \
        return value;
#include "sim/hidden_args.def"
#undef HIDDEN
    case SIM_ARG_UNKNOWN:
    case SIM_ARG_BY_VALUE:
    case SIM_ARG_GLOBAL_BUFFER:
    case SIM_ARG_DYNAMIC_SHARED_POINTER:
    case SIM_ARG_KIND_COUNT:
        break;
    }
    *size = 0;
    return 0;
}

void
sim_fill_hidden(const SimKernel *k, const SimLaunchDims *d, uint64_t kernarg, uint64_t size)
{
    for (uint32_t i = 0; i < k->nargs; i++) {
        uint32_t n;
        uint64_t v = hidden_value(k->args[i].kind, d, &n);
        n = TL_MIN(n, k->args[i].size);
        if (n && k->args[i].offset <= size && size - k->args[i].offset >= n)
            sim_dm_write(kernarg + k->args[i].offset, &v, n);
    }
}
