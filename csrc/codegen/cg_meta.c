/* cg_meta.c - a kernel's resources from the AMDGPU metadata note (msgpack) of a code object. Every read is
 * bounded. */
#include <elf.h>

#include "codegen/codegen.h"

typedef struct Reader {
    const uint8_t *p, *end;
    bool bad;
} Reader;

typedef enum Kind { K_NONE, K_INT, K_STR, K_ARRAY, K_MAP, K_OTHER } Kind;
typedef struct Item {
    Kind kind;
    uint64_t n; /* value, or length */
    const char *s;
} Item;

static uint64_t
big_endian(Reader *r, uint32_t bytes)
{
    uint64_t v = 0;
    if ((size_t)(r->end - r->p) < bytes) {
        r->bad = true;
        return 0;
    }
    for (uint32_t i = 0; i < bytes; i++)
        v = v << 8 | *r->p++;
    return v;
}

static Item
text_item(Reader *r, uint64_t n)
{
    Item it = {K_STR, n, (const char *)r->p};
    if ((uint64_t)(r->end - r->p) < n) {
        r->bad = true;
        return (Item){0};
    }
    r->p += n;
    return it;
}

/* The head of the next object; the elements of arrays and maps follow as items of their own. */
static Item
next(Reader *r)
{
    uint8_t c = (uint8_t)big_endian(r, 1);
    if (c < 0x80)
        return (Item){K_INT, c, NULL};
    if (c < 0x90)
        return (Item){K_MAP, c & 15u, NULL};
    if (c < 0xa0)
        return (Item){K_ARRAY, c & 15u, NULL};
    if (c < 0xc0)
        return text_item(r, c & 31u);
    if (c == 0xc0 || c == 0xc2 || c == 0xc3)
        return (Item){K_OTHER, c & 1u, NULL};
    if (c >= 0xcc && c <= 0xcf) /* unsigned of 1, 2, 4, 8 bytes */
        return (Item){K_INT, big_endian(r, 1u << (c - 0xcc)), NULL};
    if (c >= 0xd0 && c <= 0xd3) /* signed */
        return (Item){K_INT, big_endian(r, 1u << (c - 0xd0)), NULL};
    if (c >= 0xd9 && c <= 0xdb)
        return text_item(r, big_endian(r, 1u << (c - 0xd9)));
    if (c == 0xdc || c == 0xdd)
        return (Item){K_ARRAY, big_endian(r, c == 0xdc ? 2 : 4), NULL};
    if (c == 0xde || c == 0xdf)
        return (Item){K_MAP, big_endian(r, c == 0xde ? 2 : 4), NULL};
    if (c >= 0xe0)
        return (Item){K_INT, (uint64_t)(int64_t)(int8_t)c, NULL};
    r->bad = true;
    return (Item){0};
}

/* Skips what the item's head promised. Iterative: `left` counts the objects still to come. */
static void
skip(Reader *r, Item it)
{
    uint64_t left = it.kind == K_ARRAY ? it.n : it.kind == K_MAP ? 2 * it.n : 0;
    while (left && !r->bad) {
        Item x = next(r);
        left += (x.kind == K_ARRAY ? x.n : x.kind == K_MAP ? 2 * x.n : 0) - 1;
    }
}

static bool
is(Item it, const char *s)
{
    return it.kind == K_STR && it.n == strlen(s) && memcmp(it.s, s, it.n) == 0;
}

/* One kernel's map; true when it is the one of that name. */
static bool
kernel_map(Reader *r, uint64_t entries, const char *name, TlResources *out)
{
    struct {
        const char *key;
        uint32_t *to;
    } const keys[] = {{".vgpr_count", &out->vgprs},
                      {".agpr_count", &out->agprs},
                      {".sgpr_count", &out->sgprs},
                      {".group_segment_fixed_size", &out->lds_bytes},
                      {".private_segment_fixed_size", &out->scratch_bytes},
                      {".vgpr_spill_count", &out->vgpr_spills},
                      {".sgpr_spill_count", &out->sgpr_spills},
                      {".kernarg_segment_size", &out->kernarg_bytes},
                      {".wavefront_size", &out->wave_size},
                      {".max_flat_workgroup_size", &out->max_workgroup}};
    bool mine = false;
    *out = (TlResources){0};
    for (; entries && !r->bad; entries--) {
        Item key = next(r), val = next(r);
        for (uint32_t i = 0; i < TL_COUNT(keys); i++)
            if (is(key, keys[i].key) && val.kind == K_INT)
                *keys[i].to = (uint32_t)val.n;
        if (is(key, ".name"))
            mine = is(val, name);
        skip(r, val);
    }
    /* the metadata's vgpr_count is the whole of a unified file, AGPRs included */
    if (out->vgprs > out->agprs)
        out->vgprs -= out->agprs;
    return mine && !r->bad;
}

static bool
document(Reader *r, const char *name, TlResources *out)
{
    Item top = next(r);
    if (top.kind != K_MAP)
        return false;
    for (uint64_t i = 0; i < top.n && !r->bad; i++) {
        Item key = next(r), val = next(r);
        if (!is(key, "amdhsa.kernels") || val.kind != K_ARRAY) {
            skip(r, val);
            continue;
        }
        for (uint64_t k = 0; k < val.n && !r->bad; k++) {
            Item m = next(r);
            if (m.kind == K_MAP && kernel_map(r, m.n, name, out))
                return true;
            if (m.kind != K_MAP)
                skip(r, m);
        }
    }
    return false;
}

/* A note segment: (name size, description size, type, name, description), each padded to 4 bytes. */
static bool
notes(const uint8_t *p, uint64_t n, const char *name, TlResources *out)
{
    while (n >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr h;
        memcpy(&h, p, sizeof h);
        uint64_t nn = ((uint64_t)h.n_namesz + 3) & ~3ull, nd = ((uint64_t)h.n_descsz + 3) & ~3ull;
        if (nn + nd > n - sizeof h)
            return false;
        Reader r = {p + sizeof h + nn, p + sizeof h + nn + h.n_descsz, false};
        if (h.n_type == 32 && document(&r, name, out))
            return true;
        p += sizeof h + nn + nd;
        n -= sizeof h + nn + nd;
    }
    return false;
}

bool
tl_code_resources(TlDiag *diag, const uint8_t *elf, size_t n, const char *kernel, TlResources *out)
{
    Elf64_Ehdr h;
    *out = (TlResources){0};
    if (n >= sizeof h) {
        memcpy(&h, elf, sizeof h);
        for (uint32_t i = 0; i < h.e_phnum && h.e_phentsize == sizeof(Elf64_Phdr); i++) {
            Elf64_Phdr p;
            uint64_t at = h.e_phoff + (uint64_t)i * sizeof p;
            if (h.e_phoff > n || at > n - TL_MIN(n, sizeof p))
                break;
            memcpy(&p, elf + at, sizeof p);
            if (p.p_type == PT_NOTE && p.p_offset <= n && p.p_filesz <= n - p.p_offset &&
                notes(elf + p.p_offset, p.p_filesz, kernel, out))
                return true;
        }
    }
    return tl_error(diag, (TlLoc){0}, TL_E_LLD, "the code object has no metadata of the kernel");
}
