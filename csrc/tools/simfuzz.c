/* simfuzz - hostile input for the decoder, the printer, the loader and what else reads files (driver:
 * fuzz_main.inc).
 *
 * decode: first byte chip and wave size, then code. verify: as decode, through the static checks. load: a
 * code object, taken through the loader, its line table, what lists and disassembles it, and the static
 * checks; SIMFUZZ_CHIP=gfx942 holds to one chip (load: its machine number is put into the file). meta: what a
 * metadata note holds. lines: first byte the share of .debug_line, the rest are its strings. bundle: an image
 * as the HIP API gets it, without a length; behind it is no memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <sys/mman.h>

#include "isa/check.h"
#include "sim/elf.h"
#include "sim/hip.h"
#include "sim/tlsim.h"
#include "tools/fuzz.h"

void tlsim_text_free(char *text);

/* The static checks on the code up to its first unknown instruction. */
static bool
check_static(TlArena *a, IsaArch arch, bool wave64, const uint8_t *code, size_t size)
{
    IsaCode c;
    IsaFaults faults = {0};
    IsaLoops loops = {0};
    IsaMix mix;
    IsaUse use;
    const char *why = NULL;
    uint32_t bad = 0;
    if (!isa_code_decode(&c, a, arch, wave64, code, size, &why, &bad)) {
        if (!why || bad > size)
            abort();
        if (!bad || !isa_code_decode(&c, a, arch, wave64, code, bad, &why, &bad))
            return false;
    }
    isa_mix(&c, &mix);
    isa_use(&c, &use);
    isa_loops(&c, &loops);
    isa_check(&c, ISA_CHECK_ALL | ISA_CHECK_EXEC, &faults);
    for (uint32_t i = 0; i < faults.len; i++)
        if (faults.data[i].at >= c.n || (faults.data[i].from >= c.n && faults.data[i].from != UINT32_MAX))
            abort();
    return c.n > 0;
}

static bool
target_decode(const uint8_t *data, size_t size)
{
    IsaArch arch;
    bool wave64, any = false;
    TlArena a;
    TlText t;
    if (!start(data, size, &arch, &wave64))
        return false;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    for (size_t at = 1; at < size;) {
        IsaInst in;
        const char *why = NULL;
        if (isa_decode(arch, wave64, data + at, size - at, &in, &why)) {
            if (in.size < 4 || in.size > size - at || in.nopnds > ISA_MAX_OPNDS)
                abort();
            t.len = 0;
            isa_print(arch, wave64, &in, &t);
            any = true;
        } else if (!why) {
            abort();
        }
        at += in.size < 4 ? 4 : in.size;
    }
    tl_arena_free(&a);
    return any;
}

static bool
target_verify(const uint8_t *data, size_t size)
{
    IsaArch arch;
    bool wave64;
    TlArena a;
    if (!start(data, size, &arch, &wave64))
        return false;
    tl_arena_init(&a, NULL);
    bool any = check_static(&a, arch, wave64, data + 1, size - 1);
    tl_arena_free(&a);
    return any;
}

/* What --list and --disasm show, of the first kernels and instructions. */
static void
list_image(SimImage *im)
{
    char text[256], mnemonic[64], file[256];
    TlsimKernelInfo info;
    TlsimArg arg;
    for (uint32_t i = 0; i < TL_MIN(tlsim_kernel_count(im), 4u); i++) {
        SimKernel *k = tlsim_kernel_at(im, i);
        uint32_t line, n = 1;
        bool known;
        tlsim_kernel_info(k, &info);
        for (uint32_t j = 0; j < 16 && tlsim_kernel_arg(k, j, &arg); j++)
            if (!memchr(arg.name, 0, sizeof arg.name))
                abort();
        for (int64_t pc = 0; n && pc < 64; pc += n)
            n = tlsim_disassemble(k, pc, text, sizeof text, mnemonic, sizeof mnemonic, file, sizeof file,
                                  &line, &known);
    }
}

static bool
target_load(const uint8_t *data, size_t size)
{
    char why[256];
    static const uint8_t machine[ISA_ARCH_COUNT] = {[ISA_GFX90A] = 0x3f,
                                                    [ISA_GFX942] = 0x4c,
                                                    [ISA_GFX950] = 0x4f,
                                                    [ISA_GFX1100] = 0x41,
                                                    [ISA_GFX1201] = 0x4e};
    IsaArch only = one_chip();
    bool patch = only < ISA_ARCH_COUNT && size > 48;
    uint8_t *own = patch ? malloc(size) : NULL;
    if (own) {
        memcpy(own, data, size);
        own[48] = machine[only];
    }
    SimMem *mem = sim_mem_new(false);
    SimImage *im = mem ? sim_image_load(mem, own ? own : data, size, why, sizeof why) : NULL;
    free(own);
    char *text = NULL;
    if (im) {
        list_image(im);
        text = sim_verify_image(im, data[size - 1] & 1 ? -1 : 1024, 0, why, sizeof why);
    }
    if (mem && !text && !why[0])
        abort();
    bool ok = text != NULL;
    tlsim_text_free(text);
    sim_image_free(im);
    sim_mem_free(mem);
    return ok;
}

/* ---- parts of a code object, in one that is well-formed otherwise ---- */

enum { SYM = 0x180, STR = 0x1d0, SECTIONS = 0x210, PART_AT = 0x400, MOST_PART = 8192 };

/* The file up to its part of n bytes at PART_AT, which is a note's text too; it has a kernel `k`. */
static void
make_file(uint8_t *f, IsaArch arch, size_t n, Shdr *sh, uint32_t nsections)
{
    static const char names[] = "\0k\0k.kd\0.debug_line\0.debug_line_str\0.debug_str";
    static const uint32_t machine[ISA_ARCH_COUNT] = {0x3f, 0x4c, 0x4f, 0x41, 0x4e};
    uint32_t note[5] = {7, (uint32_t)n, NT_AMDGPU_METADATA};
    uint32_t end = arch <= ISA_GFX950 ? 0xbf810000 : 0xbfb00000; /* s_endpgm */
    Ehdr eh = {.ident = {0x7f, 'E', 'L', 'F', 2, 1, 1, OSABI_AMDGPU_HSA, 3},
               .type = ET_DYN,
               .machine = EM_AMDGPU,
               .flags = machine[arch],
               .phoff = sizeof eh,
               .phentsize = sizeof(Phdr),
               .phnum = 2,
               .shoff = SECTIONS,
               .shentsize = sizeof *sh,
               .shnum = (uint16_t)nsections,
               .shstrndx = 2};
    Phdr ph[2] = {{.type = PT_LOAD, .flags = 4 | PF_X, .filesz = PART_AT, .memsz = PART_AT},
                  {.type = PT_NOTE, .offset = PART_AT - sizeof note, .filesz = n + sizeof note}};
    Sym sym[2] = {{0}, {3, STT_OBJECT, 0, 1, 0x100, 64}};
    int64_t entry = 0x3a0 - 0x100;
    memset(f, 0, PART_AT);
    memcpy(note + 3, "AMDGPU\0", 8);
    sh[1] = (Shdr){.type = SHT_DYNSYM, .offset = SYM, .size = sizeof sym, .link = 2};
    sh[2] = (Shdr){.type = SHT_STRTAB, .offset = STR, .size = sizeof names};
    memcpy(f, &eh, sizeof eh);
    memcpy(f + sizeof eh, ph, sizeof ph);
    memcpy(f + 0x110, &entry, 8);
    memcpy(f + SYM, sym, sizeof sym);
    memcpy(f + STR, names, sizeof names);
    memcpy(f + SECTIONS, sh, nsections * sizeof *sh);
    memcpy(f + 0x3a0, &end, 4);
    memcpy(f + PART_AT - sizeof note, note, sizeof note);
}

/* The hidden arguments of every kernel, as a launch writes them. */
static void
fill_arguments(const SimImage *im)
{
    SimLaunchDims d = {.grid = {2, 1, 1}, .block = {64, 1, 1}};
    for (uint32_t i = 0; i < im->kernels.len; i++) {
        const SimKernel *k = &im->kernels.data[i];
        uint64_t n = TL_MIN(TL_MAX(k->kernarg_size, k->meta_kernarg_size), 256);
        uint8_t *arg = malloc(n ? n : 1);
        if (arg)
            sim_fill_hidden(k, &d, (uint64_t)arg, n);
        free(arg);
    }
}

static bool
target_meta(const uint8_t *data, size_t size)
{
    Shdr sh[3] = {{0}};
    char why[256] = "";
    IsaArch only = one_chip();
    uint8_t *f = size <= MOST_PART ? malloc(PART_AT + size) : NULL;
    SimMem *mem = f ? sim_mem_new(false) : NULL;
    SimImage *im = NULL;
    if (mem) {
        make_file(f, only < ISA_ARCH_COUNT ? only : ISA_GFX942, size, sh, 3);
        memcpy(f + PART_AT, data, size);
        im = sim_image_load(mem, f, PART_AT + size, why, sizeof why);
        if (!im && !why[0])
            abort();
    }
    bool ok = im != NULL;
    if (ok) {
        list_image(im);
        fill_arguments(im);
    }
    sim_image_free(im);
    sim_mem_free(mem);
    free(f);
    return ok;
}

static bool
target_lines(const uint8_t *data, size_t size)
{
    Shdr sh[6] = {{0}};
    uint8_t *f = size > 1 && size <= MOST_PART ? malloc(PART_AT + size - 1) : NULL;
    if (!f)
        return false;
    uint64_t line = (size - 1) * data[0] / 255;
    sh[3] = (Shdr){.name = 8, .type = 1, .offset = PART_AT, .size = line};
    sh[4] = (Shdr){.name = 20, .type = 1, .offset = PART_AT + line, .size = size - 1 - line};
    sh[5] = (Shdr){.name = 36, .type = 1, .offset = PART_AT + line, .size = size - 1 - line};
    make_file(f, ISA_GFX942, 0, sh, 6);
    memcpy(f + PART_AT, data + 1, size - 1);
    SimLines *l = sim_lines_read(f, PART_AT + size - 1);
    bool ok = l != NULL;
    for (uint64_t at = 0; l && at < 0x4000; at += 0x3c) {
        const char *name;
        uint32_t number;
        if (sim_lines_find(l, at, &name, &number) && (!number || strlen(name) > 2 * size))
            abort();
    }
    sim_lines_free(l);
    free(f);
    return ok;
}

static bool
target_bundle(const uint8_t *data, size_t size)
{
    enum { ROOM = 1 << 16 };
    static uint8_t *room;
    static SimDevice sim;
    static HipDevice dev;
    if (!room) {
        uint8_t *p = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p + ROOM, 4096, PROT_NONE))
            return false;
        room = p;
        dlopen("libzstd.so.1", RTLD_NOW); /* stays, so that no run loads it */
        IsaArch only = one_chip();
        sim.chip = sim_chip(only < ISA_ARCH_COUNT ? only : ISA_GFX942);
        dev.sim = &sim;
        snprintf(dev.gcn_arch, sizeof dev.gcn_arch, "%s:sramecc+:xnack-", sim.chip->gfx);
    }
    if (size > ROOM)
        return false;
    memcpy(room + ROOM - size, data, size);
    uint8_t *code = NULL;
    uint64_t n = 0;
    hipError_t e = sim_hip_image(room + ROOM - size, &dev, &code, &n);
    if (e == hipSuccess && (!code || !n))
        abort();
    free(code);
    return e == hipSuccess;
}

static const char usage_targets[] = "decode|verify|load|meta|lines|bundle";

static Target *
target_named(const char *name)
{
    static const struct {
        const char *name;
        Target *run;
    } targets[] = {{"decode", target_decode}, {"verify", target_verify}, {"load", target_load},
                   {"meta", target_meta},     {"lines", target_lines},   {"bundle", target_bundle}};
    for (uint32_t i = 0; name && i < TL_COUNT(targets); i++)
        if (!strcmp(name, targets[i].name))
            return targets[i].run;
    return NULL;
}

#include "tools/fuzz_main.inc"
