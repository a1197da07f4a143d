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
#define ISA_DUAL(half, opcode, fam, fam_opcode)
static const IsaRow rows_gfx90a[ISA_ROW0__END] = {
#include "isa/isa_gfx90a.def"
};
static const IsaRow rows_gfx942[ISA_ROW0__END] = {
#include "isa/isa_gfx942.def"
};
static const IsaRow rows_gfx950[ISA_ROW0__END] = {
#include "isa/isa_gfx950.def"
};
static const IsaRow rows_gfx1100[ISA_ROW0__END] = {
#include "isa/isa_gfx1100.def"
};
static const IsaRow rows_gfx1201[ISA_ROW0__END] = {
#include "isa/isa_gfx1201.def"
};
#undef ISA_ROW
#undef ISA_DUAL

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
        return rows_gfx1100;
    case ISA_GFX1201:
        return rows_gfx1201;
    case ISA_ARCH_COUNT:
        break;
    }
    return NULL;
}

bool
isa_chip_has(IsaArch arch, const char *name)
{
    uint32_t op = isa_op_by_name(name);
    const IsaRow *rows = isa_rows(arch);
    for (uint32_t i = 0; rows && op != UINT32_MAX && i < ISA_ROW0__END; i++)
        if (rows[i].name_plus1 == op + 1)
            return true;
    return false;
}

/* Rows of the VOPD halves, plus one; 0: no such opcode. */
#define ISA_ROW(fam, opcode, base, name, pattern, suffix, imm, flags, mask)
#define ISA_DUAL(half, opcode, fam, fam_opcode) [half * 32 + opcode] = ISA_ROW0_##fam + fam_opcode + 1,
static const uint16_t dual_gfx1100[64] = {
#include "isa/isa_gfx1100.def"
};
static const uint16_t dual_gfx1201[64] = {
#include "isa/isa_gfx1201.def"
};
#undef ISA_ROW
#undef ISA_DUAL

uint32_t
isa_dual_row(IsaArch arch, uint32_t half, uint32_t opcode)
{
    const uint16_t *t = arch == ISA_GFX1100 ? dual_gfx1100 : arch == ISA_GFX1201 ? dual_gfx1201 : NULL;
    return t && t[half * 32 + opcode] ? t[half * 32 + opcode] - 1u : UINT32_MAX;
}

static const char *const hwreg_names[ISA_ARCH_COUNT][64] = {
#define ISA_HWREG(arch, id, name) [ISA_##arch][id] = name,
#define ISA_MESSAGE(arch, id, name)
#define ISA_FORMAT(arch, id, name)
#include "isa/isa_names.def"
#undef ISA_HWREG
#undef ISA_MESSAGE
#undef ISA_FORMAT
};

static const char *const message_names[ISA_ARCH_COUNT][256] = {
#define ISA_HWREG(arch, id, name)
#define ISA_MESSAGE(arch, id, name) [ISA_##arch][id] = name,
#define ISA_FORMAT(arch, id, name)
#include "isa/isa_names.def"
#undef ISA_HWREG
#undef ISA_MESSAGE
#undef ISA_FORMAT
};

static const char *const format_names[ISA_ARCH_COUNT][128] = {
#define ISA_HWREG(arch, id, name)
#define ISA_MESSAGE(arch, id, name)
#define ISA_FORMAT(arch, id, name) [ISA_##arch][id] = name,
#include "isa/isa_names.def"
#undef ISA_HWREG
#undef ISA_MESSAGE
#undef ISA_FORMAT
};

const char *
isa_hwreg_name(IsaArch arch, uint32_t id)
{
    return id < 64 ? hwreg_names[arch][id] : NULL;
}

const char *
isa_message_name(IsaArch arch, uint32_t id)
{
    return id < 256 ? message_names[arch][id] : NULL;
}

const IsaPattern *
isa_pattern(uint16_t n)
{
    return &patterns[n];
}

const char *
isa_format_name(IsaArch arch, uint32_t id)
{
    return id < 128 ? format_names[arch][id] : NULL;
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
