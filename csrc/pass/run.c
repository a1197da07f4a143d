/* run.c - the one pass runner (pass.h). */
#define _POSIX_C_SOURCE 200809L
#include "pass/pass.h"

#include <time.h>

static const TlPassRow rows[] = {
#define TL_PASS(name, fn, requires_, keeps, breaks) {#name, tl_pass_##fn, requires_, keeps, breaks},
#include "pass/passes.def"
#undef TL_PASS
};

const TlPassRow *
tl_pass_rows(uint32_t *n)
{
    *n = TL_COUNT(rows);
    return rows;
}

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Next name of a list with commas; length 0 at the end. */
static size_t
next_name(const char **list, const char **name)
{
    const char *p = *list;
    while (*p == ',' || *p == ' ')
        p++;
    size_t n = strcspn(p, ", ");
    *name = p;
    *list = p + n;
    return n;
}

static bool
is_name(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

static bool
listed(const char *list, const char *name)
{
    const char *s;
    size_t n;
    while (list && (n = next_name(&list, &s)) > 0)
        if (is_name(s, n, name))
            return true;
    return false;
}

static bool
known(const char *s, size_t n)
{
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (is_name(s, n, rows[i].name))
            return true;
    return false;
}

static bool
all_known(TlIr *ir, const char *list, bool all_allowed)
{
    const char *s;
    size_t n;
    while (list && (n = next_name(&list, &s)) > 0)
        if (!known(s, n) && !(all_allowed && is_name(s, n, "all")))
            return tl_error(ir->diag, (TlLoc){0}, TL_E_VALUE,
                            tl_arena_printf(ir->arena, "there is no pass \"%.*s\"", (int)n, s));
    return true;
}

static bool
count_op(TlIr *ir, TlOp o, void *self)
{
    (void)ir;
    (void)o;
    ++*(uint32_t *)self;
    return true;
}

static void
note_time(TlIr *ir, TlKernelId k, TlPassTimes *t, const char *name, double ms)
{
    uint32_t ops = 0;
    if (!t)
        return;
    tl_walk(ir, tl_kerneln(ir, k)->body, count_op, &ops);
    if (t->n < TL_MAX_PASS_RUNS)
        t->run[t->n++] = (TlPassTime){name, ms, ops};
}

/* Print, parse, print again: the texts must be equal; goes on with the parsed kernel. */
static bool
round_trip(TlIr *ir, TlKernelId *k, const char *after)
{
    TlText a, b;
    uint32_t before = ir->kernels.len;
    tl_text_init(&a, ir->arena);
    tl_print_kernel(ir, *k, &a, true);
    if (a.failed) {
        ir->diag->oom = true;
        return false;
    }
    if (!tl_parse(ir, a.data, a.len, NULL))
        return false;
    if (ir->kernels.len != before + 1)
        return tl_error(ir->diag, (TlLoc){0}, TL_E_INTERNAL,
                        tl_arena_printf(ir->arena, "after pass %s the text is not one kernel", after));
    *k = before;
    tl_text_init(&b, ir->arena);
    tl_print_kernel(ir, *k, &b, true);
    if (b.failed) {
        ir->diag->oom = true;
        return false;
    }
    if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
        return tl_error(
            ir->diag, (TlLoc){0}, TL_E_INTERNAL,
            tl_arena_printf(ir->arena, "after pass %s the kernel changes by printing and parsing", after));
    return true;
}

static bool
run_row(TlIr *ir, TlKernelId *k, const TlPassRow *row, const TlPassOptions *o, double *verify_ms,
        double *trip_ms)
{
    double t0 = now_ms();
    bool ok = row->fn(ir, k, o), failed = ir->arena->failed || ir->diag->oom;
    double t1 = now_ms();
    note_time(ir, *k, o->times, row->name, t1 - t0);
    if (ok && !failed && ir->diag->nerrors)
        return false; /* said so and went on: still a failure */
    if (!ok || failed) {
        ir->diag->oom |= failed;
        if (!failed && !ir->diag->nerrors)
            tl_error(ir->diag, tl_kerneln(ir, *k)->loc, TL_E_INTERNAL,
                     tl_arena_printf(ir->arena, "pass %s failed and did not say why", row->name));
        return false;
    }
    if (o->dump && (listed(o->print_after, row->name) || listed(o->print_after, "all"))) {
        tl_text_printf(o->dump, "// after %s\n", row->name);
        tl_print_kernel(ir, *k, o->dump, false);
    }
    t1 = now_ms();
    ok = tl_verify(ir, *k, row->name);
    *verify_ms += now_ms() - t1;
    if (!ok || !o->round_trip)
        return ok;
    t1 = now_ms();
    ok = round_trip(ir, k, row->name);
    *trip_ms += now_ms() - t1;
    return ok;
}

static const TlPassRow *
find_row(const char *s, size_t n)
{
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (is_name(s, n, rows[i].name))
            return &rows[i];
    return NULL;
}

bool
tl_passes_run(TlIr *ir, TlKernelId *k, const TlPassOptions *opts)
{
    static const TlPassOptions none;
    const TlPassOptions *o = opts ? opts : &none;
    double trip_ms = 0;
    if (!all_known(ir, o->passes, false) || !all_known(ir, o->skip, false) ||
        !all_known(ir, o->print_after, true))
        return false;
    double t0 = now_ms();
    bool ok = tl_verify(ir, *k, NULL);
    double verify_ms = now_ms() - t0;
    if (ok && o->round_trip)
        ok = round_trip(ir, k, "(none)");
    if (o->passes) {
        const char *list = o->passes, *s;
        for (size_t n; ok && (n = next_name(&list, &s)) > 0;) {
            const TlPassRow *row = find_row(s, n);
            if (!listed(o->skip, row->name))
                ok = run_row(ir, k, row, o, &verify_ms, &trip_ms);
        }
    } else {
        for (uint32_t i = 0; ok && i < TL_COUNT(rows); i++)
            if (!listed(o->skip, rows[i].name))
                ok = run_row(ir, k, &rows[i], o, &verify_ms, &trip_ms);
    }
    note_time(ir, *k, o->times, "verify", verify_ms);
    if (o->round_trip)
        note_time(ir, *k, o->times, "round-trip", trip_ms);
    return ok;
}
