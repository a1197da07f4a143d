/* image.c - loads a code object: header, segments, symbols, relocations, kernel descriptors (contract in
 * image.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/image_priv.h"

/* Bytes of address space that a code object may ask for, and those between code that are not in the file (the
 * tables and listings of code are as long as it). */
static const uint64_t max_span = UINT64_C(1) << 32, max_code_gap = 8 << 10;
enum { MAX_SEGMENTS = 256, MAX_NAMES = 64 /* bytes of names a byte of the file */ };

bool
load_fail(Loader *ld, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ld->why, ld->why_size, fmt, ap);
    va_end(ap);
    return false;
}

bool
load_get(const Loader *ld, uint64_t off, void *to, uint64_t n)
{
    if (off > ld->size || ld->size - off < n)
        return false;
    memcpy(to, ld->file + off, n);
    return true;
}

bool
load_phdr(Loader *ld, uint32_t i, Phdr *ph)
{
    uint64_t off = ld->eh.phoff + (uint64_t)i * sizeof *ph;
    return (off >= ld->eh.phoff && load_get(ld, off, ph, sizeof *ph)) ||
           load_fail(ld, "program header %u lies outside the file", i);
}

bool
load_shdr(Loader *ld, uint32_t i, Shdr *sh)
{
    uint64_t off = ld->eh.shoff + (uint64_t)i * sizeof *sh;
    return (off >= ld->eh.shoff && load_get(ld, off, sh, sizeof *sh)) ||
           load_fail(ld, "section header %u lies outside the file", i);
}

const char *
load_str(const Loader *ld, uint64_t off, uint64_t limit)
{
    limit = TL_MIN(limit, ld->size);
    if (off >= limit || !memchr(ld->file + off, 0, limit - off))
        return NULL;
    return (const char *)ld->file + off;
}

/* ---- header ---- */

static const struct {
    uint8_t mach;
    const char *name;
    uint32_t archs;
} machines[] = {
#define M(number, name, chips) {number, name, chips},
#include "sim/machs.def"
#undef M
};

bool
sim_target_suits(const char *name, IsaArch arch)
{
    for (uint32_t i = 0; i < TL_COUNT(machines); i++)
        if (!strcmp(machines[i].name, name))
            return machines[i].archs >> arch & 1;
    return false;
}

const char *
sim_target_name(uint32_t mach)
{
    for (uint32_t i = 0; i < TL_COUNT(machines); i++)
        if (machines[i].mach == mach)
            return machines[i].name;
    return NULL;
}

static const char *
machine_name(uint32_t machine)
{
    switch (machine) {
    case 62:
        return "x86-64";
    case 183:
        return "AArch64";
    case 190:
        return "CUDA";
    case EM_AMDGPU:
        return "AMDGPU";
    default:
        return "something else";
    }
}

static bool
read_header(Loader *ld)
{
    SimImage *im = ld->im;
    static const uint8_t magic[7] = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */, 1 /* little */, 1 /* version */};
    if (!load_get(ld, 0, &ld->eh, sizeof ld->eh) || memcmp(ld->eh.ident, magic, sizeof magic))
        return load_fail(ld, "not a 64-bit little-endian ELF file (%" PRIu64 " bytes)", ld->size);
    if (ld->eh.machine != EM_AMDGPU || ld->eh.ident[7] != OSABI_AMDGPU_HSA)
        return load_fail(ld, "not an AMDGPU HSA code object (an ELF file for %s, machine %u, OS/ABI %u)",
                         machine_name(ld->eh.machine), ld->eh.machine, ld->eh.ident[7]);
    if (ld->eh.type != ET_DYN)
        return load_fail(ld, "not a linked code object (ELF type %u; expected a shared object)", ld->eh.type);
    if (ld->eh.ident[8] < 2 || ld->eh.ident[8] > 4)
        return load_fail(ld,
                         "code object ABI version %u is not supported (2, 3, 4 are: code object v4, v5, v6)",
                         ld->eh.ident[8]);
    im->abi_version = ld->eh.ident[8] + 2;
    for (uint32_t i = 0; i < TL_COUNT(machines); i++) {
        if (machines[i].mach != (ld->eh.flags & 0xff))
            continue;
        if (!machines[i].archs)
            return load_fail(ld, "it is for %s, which is not simulated", machines[i].name);
        im->archs = machines[i].archs;
        im->arch = (IsaArch)__builtin_ctz(im->archs);
    }
    if (!im->archs)
        return load_fail(ld, "unknown processor 0x%x in the ELF flags", ld->eh.flags & 0xff);
    im->xnack = ld->eh.flags >> 8 & 3;
    im->sramecc = ld->eh.flags >> 10 & 3;
    if (ld->eh.phnum && ld->eh.phentsize != sizeof(Phdr))
        return load_fail(ld, "program headers of %u bytes", ld->eh.phentsize);
    if (ld->eh.shnum && ld->eh.shentsize != sizeof(Shdr))
        return load_fail(ld, "section headers of %u bytes", ld->eh.shentsize);
    return true;
}

/* ---- segments ---- */

/* Checks the segments and finds their span [*lo, *hi). */
static bool
measure_segments(Loader *ld, uint64_t *lo, uint64_t *hi)
{
    uint64_t code_lo = UINT64_MAX, code_hi = 0;
    uint32_t n = 0;
    Phdr ph;
    for (uint32_t i = 0; i < ld->eh.phnum; i++) {
        if (!load_phdr(ld, i, &ph))
            return false;
        if (ph.type != PT_LOAD || !ph.memsz)
            continue;
        if (ph.filesz > ph.memsz || ph.offset > ld->size || ld->size - ph.offset < ph.filesz)
            return load_fail(ld, "segment %u lies outside the file", i);
        if (ph.vaddr + ph.memsz < ph.vaddr || ph.vaddr + ph.memsz > max_span)
            return load_fail(ld, "segment %u asks for addresses up to 0x%" PRIx64, i, ph.vaddr + ph.memsz);
        ld->segment_bytes += ph.filesz;
        if (++n > MAX_SEGMENTS || ld->segment_bytes / 2 > ld->size)
            return load_fail(ld, "the segments share bytes of the file, or there are more than %u",
                             MAX_SEGMENTS);
        *lo = TL_MIN(*lo, ph.vaddr);
        *hi = TL_MAX(*hi, ph.vaddr + ph.memsz);
        if (ph.flags & PF_X) {
            code_lo = TL_MIN(code_lo, ph.vaddr);
            code_hi = TL_MAX(code_hi, ph.vaddr + ph.memsz);
        }
    }
    if (*hi == 0)
        return load_fail(ld, "no loadable segment");
    if (code_hi && code_hi - code_lo > ld->size + max_code_gap)
        return load_fail(ld,
                         "the executable segments span 0x%" PRIx64 " bytes, the file has 0x%" PRIx64 " bytes",
                         code_hi - code_lo, ld->size);
    *lo &= ~UINT64_C(4095);
    return true;
}

/* Zeroed memory of whole pages. Fuzzing builds take small ones from the heap, where sanitizers see accesses
 * outside. */
static void *
map_pages(SimImage *im)
{
#ifdef SIM_HEAP_IMAGES
    void *heap = NULL;
    if (im->map_size <= 64 << 10 && !posix_memalign(&heap, 4096, im->map_size)) {
        im->map_heap = true;
        return memset(heap, 0, im->map_size);
    }
#endif
    return mmap(NULL, im->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

static bool
map_segments(Loader *ld)
{
    SimImage *im = ld->im;
    uint64_t lo = UINT64_MAX, hi = 0;
    Phdr ph;
    if (!measure_segments(ld, &lo, &hi))
        return false;
    im->map_size = ((hi - lo + 4095) & ~UINT64_C(4095)) + 4096; /* decoding never reads past the mapping */
    void *p = map_pages(im);
    if (p == MAP_FAILED)
        return load_fail(ld, "out of memory");
    im->map = p;
    im->bias = (uint64_t)p - lo;
    im->code_lo = UINT64_MAX;
    for (uint32_t i = 0; i < ld->eh.phnum; i++) {
        if (!load_phdr(ld, i, &ph) || ph.type != PT_LOAD || !ph.memsz)
            continue;
        uint64_t base = ph.vaddr + im->bias;
        sim_dm_write(base, ld->file + ph.offset, ph.filesz);
        if (ph.flags & PF_X) {
            im->code_lo = TL_MIN(im->code_lo, base);
            im->code_hi = TL_MAX(im->code_hi, base + ph.memsz);
        }
        uint32_t flags = ph.flags & PF_W ? 0 : SIM_EXT_READONLY;
        const char *name = ph.flags & PF_X ? "code" : NULL;
        /* compilers read the dword that the last bytes are in: pages are whole */
        uint64_t dwords = ((base + ph.memsz + 3) & ~UINT64_C(3)) - base;
        if (!sim_mem_add(im->mem, sim_dm_host(base), dwords, SIM_EXT_CODE, flags, name) &&
            !sim_mem_add(im->mem, sim_dm_host(base), ph.memsz, SIM_EXT_CODE, flags, name))
            return load_fail(ld, "segment %u overlaps another (or out of memory)", i);
        if (!tl_vec_push(&im->arena, &im->extents, base))
            return load_fail(ld, "out of memory");
    }
    if (im->code_hi == 0)
        im->code_lo = 0;
    return true;
}

/* Where [vaddr, vaddr + n) is when it lies in one segment (memory of segments only), else 0. */
static uint64_t
at_vaddr(Loader *ld, uint64_t vaddr, uint64_t n)
{
    SimExtent x;
    uint64_t a = vaddr + ld->im->bias;
    if (a < (uint64_t)ld->im->map || a - (uint64_t)ld->im->map >= ld->im->map_size ||
        ld->im->map_size - (a - (uint64_t)ld->im->map) < n || !sim_mem_lookup(ld->im->mem, a, n, &x))
        return 0;
    return a;
}

/* ---- symbols ---- */

static uint64_t
name_key(const char *name, size_t n)
{
    return tl_hash_bytes(name, n, 1);
}

static bool
add_symbols(Loader *ld, const Shdr *sh)
{
    Shdr str;
    uint64_t n = sh->size / sizeof(Sym);
    if (sh->offset > ld->size || ld->size - sh->offset < sh->size || sh->link >= ld->eh.shnum ||
        !load_shdr(ld, sh->link, &str) || str.type != SHT_STRTAB)
        return load_fail(ld, "a symbol table lies outside the file or has no string table");
    ld->table_bytes += sh->size;
    if (ld->table_bytes / 2 > ld->size)
        return load_fail(ld, "the symbol tables share bytes of the file");
    for (uint64_t i = 1; i < n; i++) {
        Sym s;
        const char *name;
        if (!load_get(ld, sh->offset + i * sizeof s, &s, sizeof s))
            return load_fail(ld, "symbol %" PRIu64 " lies outside the file", i);
        uint8_t type = s.info & 15;
        if (s.shndx == 0 || s.shndx >= 0xff00 || (type > STT_FUNC && type != STT_KERNEL))
            continue;
        if (str.offset + s.name < str.offset ||
            !(name = load_str(ld, str.offset + s.name, str.offset + str.size)))
            return load_fail(ld, "the name of symbol %" PRIu64 " lies outside its string table", i);
        ld->name_bytes += strlen(name);
        if (ld->name_bytes / MAX_NAMES > ld->size)
            return load_fail(ld, "the names of the symbols share bytes of the file");
        if (!*name || sim_image_symbol(ld->im, name))
            continue;
        SimSymbol sym = {.name = name, .address = s.value + ld->im->bias, .size = s.size, .type = type};
        sym.exported = sh->type == SHT_DYNSYM;
        if (!tl_vec_push(&ld->im->arena, &ld->im->symbols, sym) ||
            !tl_map_put(&ld->im->symbol_map, name_key(name, strlen(name)), ld->im->symbols.len))
            return load_fail(ld, "out of memory");
    }
    return true;
}

static bool
read_symbols(Loader *ld)
{
    static const uint32_t order[2] = {SHT_DYNSYM, SHT_SYMTAB};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < ld->eh.shnum; i++) {
            Shdr sh;
            if (!load_shdr(ld, i, &sh))
                return false;
            if (sh.type == order[pass] && !add_symbols(ld, &sh))
                return false;
            if (sh.type == SHT_DYNSYM && !ld->dynsym.type)
                ld->dynsym = sh;
        }
    }
    return true;
}

const SimSymbol *
sim_image_symbol(const SimImage *im, const char *name)
{
    uint64_t at;
    if (!tl_map_get(&im->symbol_map, name_key(name, strlen(name)), &at))
        return NULL;
    if (!strcmp(im->symbols.data[at - 1].name, name))
        return &im->symbols.data[at - 1];
    for (uint32_t i = 0; i < im->symbols.len; i++)
        if (!strcmp(im->symbols.data[i].name, name))
            return &im->symbols.data[i];
    return NULL;
}

/* ---- relocations ---- */

/* Value of dynamic symbol i; false: outside the file or undefined. */
static bool
dynsym_value(Loader *ld, uint32_t index, uint64_t *value)
{
    const Shdr *sh = &ld->dynsym;
    Sym s;
    if (!sh->type)
        return load_fail(ld, "a relocation names a symbol but there is no dynamic symbol table");
    if (index >= sh->size / sizeof s || !load_get(ld, sh->offset + (uint64_t)index * sizeof s, &s, sizeof s))
        return load_fail(ld, "a relocation names symbol %u, which does not exist", index);
    if (s.shndx == 0 && s.info >> 4 != STB_WEAK)
        return load_fail(ld, "symbol %u is undefined", index);
    *value = s.shndx == 0 ? 0 : s.shndx == 0xfff1 ? s.value : s.value + ld->im->bias;
    return true;
}

static bool
relocate_one(Loader *ld, const Rela *r)
{
    uint64_t to = at_vaddr(ld, r->offset, 8), v = 0;
    if (!to)
        return load_fail(ld, "a relocation at 0x%" PRIx64 " lies outside the segments", r->offset);
    switch (r->info & 0xffffffff) {
    case 0:
        return true;
    case R_RELATIVE64:
        v = ld->im->bias + (uint64_t)r->addend;
        break;
    case R_ABS64:
        if (!dynsym_value(ld, (uint32_t)(r->info >> 32), &v))
            return false;
        v += (uint64_t)r->addend;
        break;
    default:
        return load_fail(ld, "relocation type %u is not supported", (uint32_t)r->info);
    }
    sim_dm_put64(to, v);
    return true;
}

static bool
relocate(Loader *ld)
{
    uint64_t rela = 0, size = 0, ent = sizeof(Rela);
    Phdr ph;
    for (uint32_t i = 0; i < ld->eh.phnum; i++) {
        if (!load_phdr(ld, i, &ph))
            return false;
        if (ph.type != PT_DYNAMIC)
            continue;
        for (uint64_t k = 0; k < ph.filesz / sizeof(Dyn); k++) {
            Dyn d;
            if (!load_get(ld, ph.offset + k * sizeof d, &d, sizeof d) || !d.tag)
                break;
            if (d.tag == DT_RELA)
                rela = d.val;
            else if (d.tag == DT_RELASZ)
                size = d.val;
            else if (d.tag == DT_RELAENT)
                ent = d.val;
        }
        break; /* there is one */
    }
    if (!rela || !size)
        return true;
    if (ent != sizeof(Rela))
        return load_fail(ld, "relocations of %" PRIu64 " bytes", ent);
    if (size > ld->size)
        return load_fail(ld, "the relocation table is larger than the file");
    uint64_t table = at_vaddr(ld, rela, size);
    if (!table)
        return load_fail(ld, "the relocation table lies outside the segments");
    for (uint64_t k = 0; k < size / sizeof(Rela); k++) {
        Rela r;
        sim_dm_read(&r, table + k * sizeof r, sizeof r);
        if (!relocate_one(ld, &r))
            return false;
    }
    return true;
}

/* ---- kernels ---- */

static bool
read_descriptor(Loader *ld, SimKernel *k)
{
    SimImage *im = ld->im;
    uint64_t p = at_vaddr(ld, k->descriptor - im->bias, 64);
    if (!p)
        return load_fail(ld, "the descriptor of kernel %s lies outside the segments", SIM_KERNEL_LABEL(k));
    k->group_size = sim_dm_get32(p);
    k->private_size = sim_dm_get32(p + 4);
    k->kernarg_size = sim_dm_get32(p + 8);
    k->rsrc3 = sim_dm_get32(p + 44);
    k->rsrc1 = sim_dm_get32(p + 48);
    k->rsrc2 = sim_dm_get32(p + 52);
    k->properties = sim_dm_get16(p + 56);
    uint16_t preload = sim_dm_get16(p + 58);
    k->preload_length = preload & 0x7f;
    k->preload_offset = preload >> 7;
    k->wave64 = im->arch < ISA_GFX1100 || !(k->properties >> 10 & 1);
    k->entry = k->descriptor + sim_dm_get64(p + 16);
    const SimSymbol *fn = sim_image_symbol(im, k->name);
    k->empty = fn && fn->type == STT_FUNC && !fn->size && fn->address == k->entry;
    if ((!sim_kernel_has_code(k) && !k->empty) || k->entry & 3)
        return load_fail(ld, "the entry of kernel %s lies outside the code", SIM_KERNEL_LABEL(k));
    uint32_t arguments = TL_MAX(k->kernarg_size, k->meta_kernarg_size);
    if (arguments > 1 << 20 || k->group_size > 1 << 20)
        return load_fail(ld, "kernel %s asks for %u bytes of arguments and %u bytes of LDS",
                         SIM_KERNEL_LABEL(k), arguments, k->group_size);
    if (fn && fn->address == k->entry && sim_kernel_has_code(k) && fn->size <= im->code_hi - k->entry)
        k->size = fn->size;
    for (uint32_t i = 0; i < k->nargs; i++)
        if (k->args[i].offset > 1 << 20 || k->args[i].size > 1 << 20)
            return load_fail(ld, "argument %u of kernel %s lies at offset %u", i, SIM_KERNEL_LABEL(k),
                             k->args[i].offset);
    return true;
}

static bool
read_kernels(Loader *ld)
{
    SimImage *im = ld->im;
    if (!load_metadata(ld))
        return false;
    for (uint32_t i = 0; i < im->symbols.len; i++) { /* descriptors that the metadata does not name */
        const SimSymbol *s = &im->symbols.data[i];
        size_t n = strlen(s->name);
        if (n < 4 || strcmp(s->name + n - 3, ".kd") || s->type != STT_OBJECT || sim_image_kernel(im, s->name))
            continue;
        SimKernel k = {.image = im};
        if (!(k.name = tl_arena_strdup(&im->arena, s->name, n - 3)) || !load_add_kernel(ld, &k))
            return load_fail(ld, "out of memory");
    }
    for (uint32_t i = 0; i < im->kernels.len; i++) {
        SimKernel *k = &im->kernels.data[i];
        const char *kd = tl_arena_printf(&im->arena, "%s.kd", k->name);
        const SimSymbol *s = kd ? sim_image_symbol(im, kd) : NULL;
        if (!s)
            return load_fail(ld, "kernel %s has no descriptor", SIM_KERNEL_LABEL(k));
        k->descriptor = s->address;
        if (!read_descriptor(ld, k))
            return false;
    }
    return true;
}

static bool
kernel_is(const SimKernel *k, const char *name, size_t n)
{
    return !strncmp(k->name, name, n) && !k->name[n];
}

SimKernel *
sim_image_kernel(SimImage *im, const char *name)
{
    size_t n = strlen(name);
    uint64_t at;
    if (n > 3 && !strcmp(name + n - 3, ".kd"))
        n -= 3;
    if (!tl_map_get(&im->kernel_map, name_key(name, n), &at))
        return NULL;
    if (kernel_is(&im->kernels.data[at - 1], name, n))
        return &im->kernels.data[at - 1];
    for (uint32_t i = 0; i < im->kernels.len; i++)
        if (kernel_is(&im->kernels.data[i], name, n))
            return &im->kernels.data[i];
    return NULL;
}

bool
load_add_kernel(Loader *ld, const SimKernel *k)
{
    SimImage *im = ld->im;
    return tl_vec_push(&im->arena, &im->kernels, *k) &&
           tl_map_put(&im->kernel_map, name_key(k->name, strlen(k->name)), im->kernels.len);
}

SimCode *
sim_image_code(SimImage *im, bool wave64, const char **why)
{
    if (!im->code[wave64])
        im->code[wave64] =
            sim_code_new(&tl_alloc_libc, im->arch, wave64, im->code_lo, im->code_hi - im->code_lo, why);
    return im->code[wave64];
}

bool
sim_image_line(SimImage *im, uint64_t pc, const char **file, uint32_t *line)
{
    if (!im->lines_tried) {
        im->lines = sim_lines_read(im->file, im->file_size);
        im->lines_tried = true;
    }
    return im->lines && sim_lines_find(im->lines, pc - im->bias, file, line);
}

SimImage *
sim_image_load(SimMem *mem, const void *data, uint64_t size, char *why, size_t why_size)
{
    SimImage *im = calloc(1, sizeof *im);
    Loader ld = {.im = im, .size = size, .why = why, .why_size = why_size};
    load_fail(&ld, "out of memory");
    if (!im)
        return NULL;
    tl_arena_init(&im->arena, NULL);
    tl_map_init(&im->symbol_map, &im->arena);
    tl_map_init(&im->kernel_map, &im->arena);
    im->mem = mem;
    im->file_size = size;
    if (!(im->file = malloc(size ? size : 1))) {
        sim_image_free(im);
        return NULL;
    }
    memcpy(im->file, data, size);
    ld.file = im->file;
    if (!read_header(&ld) || !map_segments(&ld) || !read_symbols(&ld) || !relocate(&ld) ||
        !read_kernels(&ld)) {
        sim_image_free(im);
        return NULL;
    }
    *why = 0;
    return im;
}

void
sim_image_free(SimImage *im)
{
    if (!im)
        return;
    for (uint32_t i = 0; i < im->kernels.len; i++)
        if (im->kernels.data[i].kernarg)
            sim_mem_release(im->mem, im->kernels.data[i].kernarg, SIM_EXT_KERNARG);
    sim_managed_drop(im);
    for (uint32_t i = 0; i < im->extents.len; i++)
        sim_mem_release(im->mem, im->extents.data[i], SIM_EXT_CODE);
    sim_code_free(im->code[0]);
    sim_code_free(im->code[1]);
    sim_lines_free(im->lines);
    if (im->map && im->map_heap)
        free(im->map);
    else if (im->map)
        munmap(im->map, im->map_size);
    free(im->file);
    tl_arena_free(&im->arena);
    free(im);
}
