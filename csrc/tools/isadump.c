/* isadump - decodes AMDGPU machine code with the project's own decoder.
 *
 *   isadump FILE              code object: every function, "offset  text"
 *   isadump --check FILE      code object: for every function its instruction mix, register use, loops, and
 *                             what the static checks find ("wait: ...", "barrier: ...", "hazard: ...");
 *                             exit code 3 when they find something
 *
 * On code without a file around it (ARCH: gfx942 ..., gfx1100, gfx1100:wave64; RDNA is wave32 otherwise):
 *
 *   isadump ARCH              lines of hex bytes from stdin, one instruction each: "size<TAB>text" or
 *                             "INVALID<TAB>why"
 *   isadump ARCH --operands   the same with every operand
 *   isadump ARCH --raw FILE   raw code bytes: "offset  text"
 *   isadump ARCH --check FILE raw code bytes of one function, as above
 *   isadump ARCH --fuzz N S   decodes and prints N random encodings from seed S, prints how many were valid
 *   isadump ARCH --fail-alloc FILE   loops and checks with every allocation failing in turn
 */
#include <stdio.h>
#include <stdlib.h>
#include "isa/check.h"
#include "sim/elf.h"

typedef struct Dump {
    IsaArch arch;
    bool wave64;
    TlArena arena;
    TlText text;
} Dump;

typedef struct Bytes {
    const uint8_t *data;
    size_t n;
} Bytes;

static const char *
print_one(Dump *d, const IsaInst *in)
{
    d->text.len = 0;
    isa_print(d->arch, d->wave64, in, &d->text);
    return d->text.data ? d->text.data : "";
}

static bool
read_file(Dump *d, const char *path, Bytes *out)
{
    FILE *f = fopen(path, "rb");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    uint8_t *buf = n >= 0 ? tl_arena_alloc(&d->arena, (size_t)n + 1, 16) : NULL;
    bool ok = buf && fseek(f, 0, SEEK_SET) == 0 && fread(buf, 1, (size_t)n, f) == (size_t)n;
    if (f)
        fclose(f);
    if (!ok)
        fprintf(stderr, "isadump: cannot read %s\n", path);
    *out = (Bytes){buf, ok ? (size_t)n : 0};
    return ok;
}

/* ---- code
 * ---------------------------------------------------------------------------------------------------- */

static int
dump_code(Dump *d, Bytes b)
{
    for (size_t at = 0; at < b.n;) {
        IsaInst in;
        const char *why;
        if (isa_decode(d->arch, d->wave64, b.data + at, b.n - at, &in, &why))
            printf("%6zx  %s\n", at, print_one(d, &in));
        else
            printf("%6zx  <%s>\n", at, why);
        at += in.size;
    }
    return 0;
}

static void
print_loops(Dump *d, const IsaCode *c)
{
    IsaLoops loops;
    if (!isa_loops(c, &loops))
        return;
    for (uint32_t i = 0; i < loops.len; i++) {
        const IsaLoop *l = &loops.data[i];
        d->text.len = 0;
        isa_mix_print(&l->mix, &d->text);
        printf("loop 0x%x..0x%x depth %u%s: %s\n", l->first, l->last, l->depth,
               i == isa_main_loop(&loops) ? " main" : "", d->text.data);
    }
}

static int
check_code(Dump *d, Bytes b)
{
    static const char *const kinds[] = {"wait", "barrier", "hazard", "exec"};
    IsaCode c;
    const char *why;
    uint32_t bad;
    if (!isa_code_decode(&c, &d->arena, d->arch, d->wave64, b.data, b.n, &why, &bad)) {
        fprintf(stderr, "isadump: 0x%x: %s\n", bad, why);
        return 1;
    }
    IsaMix mix;
    IsaUse use;
    IsaFaults faults = {0};
    isa_mix(&c, &mix);
    isa_use(&c, &use);
    d->text.len = 0;
    isa_mix_print(&mix, &d->text);
    printf("all: %s\n", d->text.data ? d->text.data : "");
    printf("use: %u vgprs, %u agprs, %u sgprs, %u scratch, %u lds\n", use.vgprs, use.agprs, use.sgprs,
           use.scratch_ops, use.lds_ops);
    print_loops(d, &c);
    if (!isa_check(&c, ISA_CHECK_ALL, &faults)) {
        fprintf(stderr, "isadump: out of memory\n");
        return 1;
    }
    if (!(isa_checks_of(d->arch) & ISA_CHECK_ALL))
        printf("checks: none for %s\n", isa_arch_name(d->arch));
    for (uint32_t i = 0; i < faults.len; i++)
        printf("%s: %s\n", kinds[faults.data[i].kind], faults.data[i].text);
    return faults.len ? 3 : 0;
}

/* ---- code objects
 * ---------------------------------------------------------------------------------------------- */

/* n records of `size` bytes at `offset` lie inside the file and are aligned. */
static const void *
part(Bytes b, uint64_t offset, uint64_t n, uint64_t size)
{
    if (offset > b.n || n > (b.n - offset) / size || offset % 8)
        return NULL;
    return b.data + offset;
}

static bool
arch_of_flags(uint32_t flags, IsaArch *out)
{
    static const struct {
        uint8_t machine;
        IsaArch arch;
    } machines[] = {
        {0x3f, ISA_GFX90A}, {0x4c, ISA_GFX942}, {0x4f, ISA_GFX950}, {0x41, ISA_GFX1100}, {0x4e, ISA_GFX1201}};
    for (size_t i = 0; i < TL_COUNT(machines); i++)
        if (machines[i].machine == (flags & 0xff)) {
            *out = machines[i].arch;
            return true;
        }
    return false;
}

typedef struct Object {
    Bytes file;
    const Shdr *sections;
    uint32_t nsections;
    const Sym *syms;
    uint64_t nsyms;
    const char *names;
    uint64_t names_size;
} Object;

static bool
open_object(Dump *d, Bytes b, Object *o)
{
    const Ehdr *e = part(b, 0, 1, sizeof(Ehdr));
    *o = (Object){.file = b};
    if (!e || memcmp(e->ident, "\177ELF", 4) != 0 || e->machine != EM_AMDGPU ||
        !arch_of_flags(e->flags, &d->arch))
        return false;
    o->sections = part(b, e->shoff, e->shnum, sizeof(Shdr));
    o->nsections = e->shnum;
    for (uint32_t i = 0; o->sections && i < o->nsections; i++) {
        const Shdr *s = &o->sections[i];
        if ((s->type != SHT_SYMTAB && s->type != SHT_DYNSYM) || s->link >= o->nsections)
            continue;
        const Shdr *str = &o->sections[s->link];
        if (o->syms && s->type == SHT_DYNSYM)
            continue;
        o->nsyms = s->size / sizeof(Sym);
        o->syms = part(b, s->offset, o->nsyms, sizeof(Sym));
        o->names_size = str->size;
        o->names =
            str->offset <= b.n && str->size <= b.n - str->offset ? (const char *)b.data + str->offset : NULL;
    }
    return o->syms && o->names;
}

/* Name of a symbol, "" when it is not inside the string table. */
static const char *
symbol_name(const Object *o, const Sym *s)
{
    if (s->name >= o->names_size || !memchr(o->names + s->name, 0, o->names_size - s->name))
        return "";
    return o->names + s->name;
}

static bool
symbol_bytes(const Object *o, const Sym *s, Bytes *out)
{
    if (s->shndx >= o->nsections)
        return false;
    const Shdr *sec = &o->sections[s->shndx];
    uint64_t at = s->value - sec->addr;
    if (sec->type == SHT_NOBITS || s->value < sec->addr || at > sec->size || s->size > sec->size - at ||
        sec->offset > o->file.n || sec->size > o->file.n - sec->offset)
        return false;
    *out = (Bytes){o->file.data + sec->offset + at, s->size};
    return true;
}

/* Whether a kernel runs in waves of 64: always on gfx9, else what its descriptor says (bit 10: wave32). */
static bool
kernel_wave64(const Dump *d, const Object *o, const char *name)
{
    size_t n = strlen(name);
    if (d->arch <= ISA_GFX950)
        return true;
    for (uint64_t i = 0; i < o->nsyms; i++) {
        const char *kd = symbol_name(o, &o->syms[i]);
        Bytes b;
        if (strncmp(kd, name, n) == 0 && strcmp(kd + n, ".kd") == 0 && symbol_bytes(o, &o->syms[i], &b) &&
            b.n >= 64)
            return !(b.data[57] & 4);
    }
    return false;
}

static int
dump_object(Dump *d, const char *path, bool check)
{
    Bytes b;
    Object o;
    int rc = 0;
    if (!read_file(d, path, &b))
        return 1;
    if (!open_object(d, b, &o)) {
        fprintf(stderr, "isadump: %s is no AMDGPU code object of a chip known here\n", path);
        return 1;
    }
    for (uint64_t i = 0; i < o.nsyms; i++) {
        const Sym *s = &o.syms[i];
        Bytes code;
        uint32_t type = s->info & 15;
        if ((type != STT_FUNC && type != STT_KERNEL) || !s->size || !symbol_bytes(&o, s, &code))
            continue;
        d->wave64 = kernel_wave64(d, &o, symbol_name(&o, s));
        printf("%s: # %s, wave%d\n", symbol_name(&o, s), isa_arch_name(d->arch), d->wave64 ? 64 : 32);
        int one = check ? check_code(d, code) : dump_code(d, code);
        rc = one == 1 || rc == 1 ? 1 : TL_MAX(one, rc);
    }
    return rc;
}

/* ---- for tests
 * ------------------------------------------------------------------------------------------------- */

static int
hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void
print_operands(const IsaInst *in)
{
    static const char *const kinds[] = {"none", "v", "a", "s", "const", "src", "imm"};
    for (uint32_t i = 0; i < in->nopnds; i++) {
        const IsaOpnd *o = &in->opnd[i];
        printf("\t%s:%u:%u:type=%u:%s%s%s:0x%llx", kinds[o->kind], o->reg, o->nregs, o->type,
               o->flags & ISA_READ ? "r" : "", o->flags & ISA_WRITE ? "w" : "",
               o->flags & ISA_IMPLICIT ? "i" : "", (unsigned long long)o->bits64);
    }
}

static int
dump_stdin(Dump *d, bool operands)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        uint8_t code[64];
        size_t n = 0;
        IsaInst in;
        const char *why;
        for (const char *p = line; hex_digit(p[0]) >= 0 && hex_digit(p[1]) >= 0 && n < sizeof code; p += 2)
            code[n++] = (uint8_t)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
        if (!isa_decode(d->arch, d->wave64, code, n, &in, &why)) {
            printf("INVALID\t%s\n", why);
            continue;
        }
        printf("%u\t%s", in.size, print_one(d, &in));
        if (operands)
            print_operands(&in);
        printf("\n");
    }
    return 0;
}

/* Runs loops and checks once for each allocation that can fail; every failure must be reported, none may
 * crash. */
static int
fail_allocations(const Dump *d, Bytes b)
{
    for (uint64_t at = 1;; at++) {
        TlFailAlloc fa;
        TlArena a;
        IsaCode c;
        IsaLoops loops;
        IsaFaults faults = {0};
        tl_fail_alloc_init(&fa, at);
        tl_arena_init(&a, &fa.alloc);
        bool ok = isa_code_decode(&c, &a, d->arch, d->wave64, b.data, b.n, NULL, NULL) &&
                  isa_loops(&c, &loops) && isa_check(&c, ISA_CHECK_ALL, &faults);
        bool failed = fa.requests >= at;
        tl_arena_free(&a);
        if (fa.live_bytes || ok == failed) {
            fprintf(stderr, "isadump: allocation %llu: %s\n", (unsigned long long)at,
                    ok ? "not noticed" : "leak");
            return 1;
        }
        if (!failed) {
            printf("%llu allocations\n", (unsigned long long)at - 1);
            return 0;
        }
    }
}

static int
fuzz(Dump *d, unsigned long long count, unsigned long long seed)
{
    unsigned long long valid = 0, x = seed | 1;
    for (unsigned long long i = 0; i < count; i++) {
        uint8_t code[16];
        for (int k = 0; k < 16; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            code[k] = (uint8_t)(x >> 24);
        }
        IsaInst in;
        const char *why;
        size_t avail = i & 7 ? 16 : x % 17;
        bool ok = isa_decode(d->arch, d->wave64, code, avail, &in, &why);
        if (ok ? in.size > avail || in.size < 4 : !why || in.size < 4) {
            fprintf(stderr, "isadump: bad size at case %llu\n", i);
            return 1;
        }
        if (ok) {
            valid++;
            print_one(d, &in);
        }
    }
    printf("%llu of %llu valid\n", valid, count);
    return 0;
}

/* ---- command line
 * ---------------------------------------------------------------------------------------------- */

static int
run_arch(Dump *d, int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    Bytes b;
    if (argc == 2)
        return dump_stdin(d, false);
    if (strcmp(what, "--operands") == 0)
        return dump_stdin(d, true);
    if (argc == 5 && strcmp(what, "--fuzz") == 0)
        return fuzz(d, strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
    if (argc != 4 || what[0] != '-')
        return 2;
    if (!read_file(d, argv[3], &b))
        return 1;
    if (strcmp(what, "--raw") == 0)
        return dump_code(d, b);
    if (strcmp(what, "--check") == 0)
        return check_code(d, b);
    return strcmp(what, "--fail-alloc") == 0 ? fail_allocations(d, b) : 2;
}

int
main(int argc, char **argv)
{
    Dump d = {0};
    int rc = 2;
    tl_arena_init(&d.arena, NULL);
    tl_text_init(&d.text, &d.arena);
    if (argc >= 2 && isa_arch_by_name(argv[1], &d.arch) && argv[1][0] == 'g') {
        d.wave64 = d.arch <= ISA_GFX950 || strstr(argv[1], "wave64");
        rc = run_arch(&d, argc, argv);
    } else if (argc == 3 && strcmp(argv[1], "--check") == 0) {
        rc = dump_object(&d, argv[2], true);
    } else if (argc == 2 && argv[1][0] != '-') {
        rc = dump_object(&d, argv[1], false);
    }
    if (rc == 2)
        fprintf(stderr, "usage: isadump FILE | isadump --check FILE | isadump ARCH [--operands | --raw FILE "
                        "| --check FILE |"
                        " --fuzz COUNT SEED | --fail-alloc FILE]\n");
    tl_arena_free(&d.arena);
    return rc;
}
