/* tlc.c - the IR from the command line: text in, passes, text (or, with codegen linked in, LLVM IR, assembly,
 * a code object) out.
 *
 * Build: csrc/{base,target,layout,ir,pass}/ *.c and this file; -DTLC_WITH_CODEGEN adds codegen (csrc/codegen
 * and what it links with) and with it --emit llvm, asm, hsaco. Exit status: 0 ok, 1 faults in the input, 2
 * wrong use. */
#include "ir/ir.h"
#include "pass/pass.h"
#ifndef TLC_WITHOUT_CODEGEN
#include "codegen/codegen.h"
#endif

#include <stdio.h>
#include <stdlib.h>

typedef struct Args {
    const char *file, *emit, *target, *out, *kernel;
    TlPassOptions pass;
    bool run_passes, time, locs, list, list_ops;
} Args;

static const char usage[] =
    "usage: tlc [options] FILE.tir      (- reads standard input)\n"
    "  --passes LIST|all   passes to run, with commas between; all: the whole pipeline; without it: none\n"
    "  --skip LIST         passes to leave out\n"
    "  --print-after LIST|all   print the kernel after these passes (standard error)\n"
    "  --round-trip        after every pass print, parse and go on with what was parsed\n"
    "  --time              what each pass took (standard error)\n"
    "  --target GFX        sets the kernels' attribute target\n"
    "  --kernel NAME       only this kernel\n"
    "  --emit tir|none|llvm|asm|hsaco   what to write (default tir; the last three need a build with "
    "codegen)\n"
    "  --locs              write locations with tir\n"
    "  -o FILE             write there, not to standard output\n"
    "  --list-passes       the pipeline with each pass's contract\n"
    "  --list-ops          every operation, as a Markdown table\n";

static int
wrong_use(const char *what, const char *arg)
{
    fprintf(stderr, "tlc: %s%s\n%s", what, arg, usage);
    return 2;
}

static int
read_args(int argc, char **argv, Args *a)
{
    static const struct {
        const char *name;
        size_t offset;
    } strings[] = {{"--emit", offsetof(Args, emit)},
                   {"--target", offsetof(Args, target)},
                   {"-o", offsetof(Args, out)},
                   {"--kernel", offsetof(Args, kernel)},
                   {"--passes", offsetof(Args, pass.passes)},
                   {"--skip", offsetof(Args, pass.skip)},
                   {"--print-after", offsetof(Args, pass.print_after)}},
      flags[] = {{"--round-trip", offsetof(Args, pass.round_trip)},
                 {"--time", offsetof(Args, time)},
                 {"--locs", offsetof(Args, locs)},
                 {"--list-passes", offsetof(Args, list)},
                 {"--list-ops", offsetof(Args, list_ops)}};
    *a = (Args){.emit = "tir"};
    for (int i = 1; i < argc; i++) {
        bool done = false;
        for (size_t f = 0; f < TL_COUNT(flags) && !done; f++)
            if ((done = strcmp(argv[i], flags[f].name) == 0))
                *(bool *)((char *)a + flags[f].offset) = true;
        for (size_t s = 0; s < TL_COUNT(strings) && !done; s++)
            if ((done = strcmp(argv[i], strings[s].name) == 0)) {
                if (++i == argc)
                    return wrong_use("a value is missing after ", argv[i - 1]);
                *(const char **)((char *)a + strings[s].offset) = argv[i];
            }
        if (done)
            continue;
        if (argv[i][0] == '-' && argv[i][1])
            return wrong_use("unknown option ", argv[i]);
        if (a->file)
            return wrong_use("one file only, not also ", argv[i]);
        a->file = argv[i];
    }
    a->run_passes = a->pass.passes != NULL;
    if (a->run_passes && strcmp(a->pass.passes, "all") == 0)
        a->pass.passes = NULL;
    return a->file || a->list || a->list_ops ? 0 : wrong_use("no file", "");
}

static bool
read_file(TlText *t, const char *name)
{
    char buf[65536];
    FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    size_t n;
    if (!f)
        return false;
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        tl_text_put(t, buf, n);
    bool ok = !ferror(f) && !t->failed;
    if (f != stdin)
        fclose(f);
    return ok;
}

static bool
write_out(const Args *a, const void *data, size_t n)
{
    FILE *f = a->out ? fopen(a->out, "wb") : stdout;
    if (!f)
        return false;
    bool ok = (n == 0 || fwrite(data, 1, n, f) == n) && fflush(f) == 0;
    if (f != stdout)
        ok = fclose(f) == 0 && ok;
    return ok;
}

#ifndef TLC_WITHOUT_CODEGEN
static bool
generate(TlIr *ir, TlKernelId k, const Args *a, TlText *out)
{
    TlText tir;
    TlCodeObject co;
    TlCodegenOptions o = {.want_asm = strcmp(a->emit, "asm") == 0, .want_llir = strcmp(a->emit, "llvm") == 0};
    tl_text_init(&tir, ir->arena);
    tl_print_kernel(ir, k, &tir, true);
    if (tir.failed || !tl_codegen(ir->arena, ir->diag, tir.data, tir.len, &o, &co))
        return false;
    if (a->time)
        fprintf(stderr, "%10.3f ms  codegen (parse %.3f, build %.3f, opt %.3f, emit %.3f, link %.3f)\n",
                co.times.total, co.times.parse, co.times.build, co.times.opt, co.times.emit, co.times.link);
    if (o.want_asm)
        tl_text_put(out, co.asm_text, co.asm_len);
    else if (o.want_llir)
        tl_text_put(out, co.llir, co.llir_len);
    else
        tl_text_put(out, (const char *)co.hsaco, co.hsaco_len);
    return !out->failed;
}
#endif

static bool
one_kernel(TlIr *ir, TlKernelId k, const Args *a, TlText *dump, TlText *out)
{
    TlPassOptions o = a->pass;
    TlPassTimes times = {.n = 0};
    o.dump = dump;
    o.times = &times;
    if (a->target && !tl_kattr_set_str(ir, k, "target", a->target))
        return false;
    if (!a->run_passes)
        o.passes = "";
    bool ok = tl_passes_run(ir, &k, &o);
    if (a->time)
        for (uint32_t i = 0; i < times.n; i++)
            fprintf(stderr, "%10.3f ms  %s (%u operations)\n", times.run[i].ms, times.run[i].name,
                    times.run[i].ops_after);
    if (!ok)
        return false;
    if (strcmp(a->emit, "none") == 0)
        return true;
    if (strcmp(a->emit, "tir") == 0) {
        tl_print_kernel(ir, k, out, a->locs);
        return !out->failed;
    }
#ifndef TLC_WITHOUT_CODEGEN
    return generate(ir, k, a, out);
#else
    return false;
#endif
}

static int
run(TlArena *arena, const Args *a)
{
    TlDiag diag;
    TlIr ir;
    TlText text, dump, out, messages;
    tl_diag_init(&diag, arena);
    tl_text_init(&text, arena);
    tl_text_init(&dump, arena);
    tl_text_init(&out, arena);
    tl_text_init(&messages, arena);
    if (!read_file(&text, a->file)) {
        fprintf(stderr, "tlc: cannot read %s\n", a->file);
        return 2;
    }
    bool ok = tl_ir_init(&ir, arena, &diag) && tl_parse(&ir, text.data ? text.data : "", text.len,
                                                        strcmp(a->file, "-") == 0 ? "<stdin>" : a->file);
    uint32_t kernels = ok ? ir.kernels.len : 0, done = 0;
    for (TlKernelId k = 1; ok && k < kernels; k++)
        if (!a->kernel || strcmp(tl_str(&ir.strs, tl_kerneln(&ir, k)->name), a->kernel) == 0) {
            if (done++ && strcmp(a->emit, "tir") == 0)
                tl_text_puts(&out, "\n");
            ok = one_kernel(&ir, k, a, &dump, &out);
        }
    if (dump.len)
        fwrite(dump.data, 1, dump.len, stderr);
    tl_diag_print(&diag, &messages);
    if (messages.len)
        fwrite(messages.data, 1, messages.len, stderr);
    if (ok && a->kernel && !done) {
        fprintf(stderr, "tlc: no kernel @%s in %s\n", a->kernel, a->file);
        return 1;
    }
    if (!ok)
        return 1;
    if (!write_out(a, out.data, out.len)) {
        fprintf(stderr, "tlc: cannot write the output\n");
        return 2;
    }
    return 0;
}

static void
list_passes(void)
{
    uint32_t n;
    const TlPassRow *rows = tl_pass_rows(&n);
    for (uint32_t i = 0; i < n; i++)
        printf("%s\n  requires: %s\n  keeps: %s\n  breaks: %s\n", rows[i].name, rows[i].requires_,
               rows[i].keeps, rows[i].breaks);
}

static void
print_count(int least, int most)
{
    if (most < 0)
        printf("%d.. |", least);
    else
        printf("%d |", most);
}

static void
list_ops(void)
{
    printf("| operation | operands | results | level | attributes | |\n|---|---|---|---|---|---|\n");
    for (int i = TL_OP_NONE + 1; i < TL_OP__COUNT; i++) {
        const TlOpRow *r = tl_op_row((TlOpcode)i);
        printf("| `%s` | ", r->name);
        print_count(r->nin_min, r->nin_max);
        printf(" ");
        print_count(0, r->nres);
        printf(" %s | %s | ",
               r->traits & TL_T_TILE_ONLY     ? "tile"
               : r->traits & TL_T_THREAD_ONLY ? "thread"
                                              : "both",
               r->attrs);
        for (const char *c = r->doc; *c; c++)
            printf(*c == '|' ? "\\|" : "%c", *c);
        printf(" |\n");
    }
}

int
main(int argc, char **argv)
{
    Args a;
    TlArena arena;
    int status = read_args(argc, argv, &a);
    if (status)
        return status;
    if (a.list || a.list_ops) {
        a.list ? list_passes() : list_ops();
        return 0;
    }
    bool emit = strcmp(a.emit, "tir") == 0 || strcmp(a.emit, "none") == 0;
#ifndef TLC_WITHOUT_CODEGEN
    emit |= strcmp(a.emit, "llvm") == 0 || strcmp(a.emit, "asm") == 0 || strcmp(a.emit, "hsaco") == 0;
#endif
    if (!emit)
        return wrong_use("this build cannot emit ", a.emit);
    tl_arena_init(&arena, NULL);
    status = run(&arena, &a);
    tl_arena_free(&arena);
    return status;
}
