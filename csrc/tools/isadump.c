/* isadump - decodes machine code given as hex and prints it, one instruction a line.
 *
 *   ARCH: gfx942 ..., gfx1100, gfx1100:wave64 (gfx11 and gfx12 are wave32 otherwise)
 *   isadump ARCH              reads lines of hex bytes from stdin; each line is one instruction:
 * "size<TAB>text", or "INVALID<TAB>why" isadump ARCH FILE         disassembles raw code bytes of FILE:
 * "offset  text" isadump ARCH --fuzz N S   decodes and prints N random encodings from seed S; prints how many
 * were valid isadump ARCH --operands   as the first form, and lists every operand
 */
#include <stdio.h>
#include <stdlib.h>
#include "isa/check.h"

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

static void
dump_line(IsaArch arch, bool wave64, const uint8_t *code, size_t n, TlText *t, bool operands)
{
    IsaInst in;
    const char *why;
    if (!isa_decode(arch, wave64, code, n, &in, &why)) {
        printf("INVALID\t%s\n", why);
        return;
    }
    t->len = 0;
    isa_print(arch, wave64, &in, t);
    printf("%u\t%s", in.size, t->data ? t->data : "");
    if (operands)
        print_operands(&in);
    printf("\n");
}

static int
dump_stdin(IsaArch arch, bool wave64, TlText *t, bool operands)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        uint8_t code[64];
        size_t n = 0;
        for (const char *p = line; hex_digit(p[0]) >= 0 && hex_digit(p[1]) >= 0 && n < sizeof code; p += 2)
            code[n++] = (uint8_t)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
        dump_line(arch, wave64, code, n, t, operands);
    }
    return 0;
}

static int
dump_file(IsaArch arch, bool wave64, const char *path, TlText *t)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "isadump: cannot open %s\n", path);
        return 1;
    }
    static uint8_t buf[1 << 20];
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    for (size_t at = 0; at < n;) {
        IsaInst in;
        const char *why;
        t->len = 0;
        if (isa_decode(arch, wave64, buf + at, n - at, &in, &why)) {
            isa_print(arch, wave64, &in, t);
            printf("%6zx  %s\n", at, t->data);
        } else {
            printf("%6zx  <%s>\n", at, why);
        }
        at += in.size;
    }
    return 0;
}

static void
print_loops(const IsaCode *c, TlText *t)
{
    IsaLoops loops;
    if (!isa_loops(c, &loops))
        return;
    for (uint32_t i = 0; i < loops.len; i++) {
        const IsaLoop *l = &loops.data[i];
        t->len = 0;
        isa_mix_print(&l->mix, t);
        printf("loop 0x%x..0x%x depth %u%s: %s\n", l->first, l->last, l->depth,
               i == isa_main_loop(&loops) ? " main" : "", t->data);
    }
}

static int
check_file(IsaArch arch, bool wave64, const char *path, TlText *t)
{
    static const char *const kinds[] = {"wait", "barrier", "hazard"};
    static uint8_t buf[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "isadump: cannot open %s\n", path);
        return 1;
    }
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    IsaCode c;
    const char *why;
    uint32_t bad;
    if (!isa_code_decode(&c, t->arena, arch, wave64, buf, n, &why, &bad)) {
        fprintf(stderr, "isadump: 0x%x: %s\n", bad, why);
        return 1;
    }
    IsaMix mix;
    IsaUse use;
    IsaFaults faults = {0};
    isa_mix(&c, &mix);
    isa_use(&c, &use);
    t->len = 0;
    isa_mix_print(&mix, t);
    printf("all: %s\nuse: %u vgprs, %u agprs, %u sgprs, %u scratch, %u lds\n", t->data, use.vgprs, use.agprs,
           use.sgprs, use.scratch_ops, use.lds_ops);
    print_loops(&c, t);
    if (!isa_check(&c, ISA_CHECK_ALL, &faults)) {
        fprintf(stderr, "isadump: out of memory\n");
        return 1;
    }
    for (uint32_t i = 0; i < faults.len; i++)
        printf("%s: %s\n", kinds[faults.data[i].kind], faults.data[i].text);
    return faults.len ? 3 : 0;
}

static int
fuzz(IsaArch arch, bool wave64, unsigned long long count, unsigned long long seed, TlText *t)
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
        bool ok = isa_decode(arch, wave64, code, avail, &in, &why);
        if (ok ? in.size > avail || in.size < 4 : !why || in.size < 4) {
            fprintf(stderr, "isadump: bad size at case %llu\n", i);
            return 1;
        }
        if (!ok)
            continue;
        valid++;
        t->len = 0;
        isa_print(arch, wave64, &in, t);
    }
    printf("%llu of %llu valid\n", valid, count);
    return 0;
}

int
main(int argc, char **argv)
{
    IsaArch arch;
    if (argc < 2 || !isa_arch_by_name(argv[1], &arch)) {
        fprintf(stderr, "usage: isadump ARCH [FILE | --operands | --check FILE | --fuzz COUNT SEED]\n");
        return 2;
    }
    bool wave64 = arch <= ISA_GFX950 || strstr(argv[1], "wave64");
    TlArena arena;
    TlText text;
    tl_arena_init(&arena, NULL);
    tl_text_init(&text, &arena);
    int rc;
    if (argc >= 5 && strcmp(argv[2], "--fuzz") == 0)
        rc = fuzz(arch, wave64, strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0), &text);
    else if (argc >= 4 && strcmp(argv[2], "--check") == 0)
        rc = check_file(arch, wave64, argv[3], &text);
    else if (argc >= 3 && strcmp(argv[2], "--operands") != 0)
        rc = dump_file(arch, wave64, argv[2], &text);
    else
        rc = dump_stdin(arch, wave64, &text, argc >= 3);
    tl_arena_free(&arena);
    return rc;
}
