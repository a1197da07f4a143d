/* isa_tables.c - the generated tables as data: ops, operand patterns, one row table a chip. */
#include "isa/isa_int.h"

static const IsaOpInfo op_infos[ISA_OP__COUNT] = {
#define ISA_OP(name, classes) {#name, classes},
#include "isa/isa_ops.def"
#undef ISA_OP
};

static const IsaPattern patterns[] = {
#define ISA_PATTERN(n, count, ...) [n] = {count, {__VA_ARGS__}},
#define ISA_MASK(n, bits)
#include "isa/isa_patterns.def"
#undef ISA_PATTERN
#undef ISA_MASK
};

static const uint64_t masks[] = {
#define ISA_PATTERN(n, count, ...)
#define ISA_MASK(n, bits) [n] = bits,
#include "isa/isa_patterns.def"
#undef ISA_PATTERN
#undef ISA_MASK
};

#define ISA_ROW(fam, opcode, base, name, pattern, suffix, imm, flags, mask)                                  \
    [ISA_ROW0_##fam + opcode] = {ISA_OP_##name + 1, pattern,       flags,         ISA_##base,                \
                                 ISA_SUF_##suffix,  ISA_IMM_##imm, ISA_FAM_##fam, mask},
static const IsaRow rows_gfx90a[ISA_ROW0__END] = {
#include "isa/isa_gfx90a.def"
};
static const IsaRow rows_gfx942[ISA_ROW0__END] = {
#include "isa/isa_gfx942.def"
};
static const IsaRow rows_gfx950[ISA_ROW0__END] = {
#include "isa/isa_gfx950.def"
};
#undef ISA_ROW

const IsaRow *
isa_rows(IsaArch arch)
{
    switch (arch) {
    case ISA_GFX90A:
        return rows_gfx90a;
    case ISA_GFX942:
        return rows_gfx942;
    case ISA_GFX950:
        return rows_gfx950;
    case ISA_GFX1100:
    case ISA_GFX1201:
    case ISA_ARCH_COUNT:
        break;
    }
    return NULL;
}

const IsaPattern *
isa_pattern(uint16_t n)
{
    return &patterns[n];
}

uint64_t
isa_mask(uint16_t n)
{
    return masks[n];
}

uint32_t
isa_op_count(void)
{
    return ISA_OP__COUNT;
}

const IsaOpInfo *
isa_op_info(uint32_t op)
{
    return op < ISA_OP__COUNT ? &op_infos[op] : NULL;
}

uint32_t
isa_op_by_name(const char *name)
{
    uint32_t lo = 0, hi = ISA_OP__COUNT;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, op_infos[mid].name);
        if (c == 0)
            return mid;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return UINT32_MAX;
}

static const char *const arch_names[ISA_ARCH_COUNT] = {
    [ISA_GFX90A] = "gfx90a",   [ISA_GFX942] = "gfx942",   [ISA_GFX950] = "gfx950",
    [ISA_GFX1100] = "gfx1100", [ISA_GFX1201] = "gfx1201",
};

bool
isa_arch_by_name(const char *name, IsaArch *out)
{
    const char *p = strstr(name, "gfx");
    if (!p)
        return false;
    size_t n = strcspn(p, ":");
    for (uint32_t a = 0; a < ISA_ARCH_COUNT; a++)
        if (strlen(arch_names[a]) == n && memcmp(arch_names[a], p, n) == 0) {
            *out = (IsaArch)a;
            return true;
        }
    return false;
}

const char *
isa_arch_name(IsaArch a)
{
    return (uint32_t)a < ISA_ARCH_COUNT ? arch_names[a] : "?";
}
