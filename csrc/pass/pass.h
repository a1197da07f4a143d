/* pass.h - the pass runner. passes.def lists the pipeline; every pass is
 *     bool tl_pass_NAME(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
 * which changes *kernel in place or puts a new kernel of the same name in its stead. false: the reason is in
 * ir->diag.
 *
 * The runner verifies before the first pass and after every one, prints and times on demand, leaves passes
 * out by name, and in round-trip mode prints the kernel after each pass, parses that text and goes on with
 * what was parsed.
 */
#ifndef TL_PASS_PASS_H
#define TL_PASS_PASS_H

#include "ir/ir.h"

enum { TL_MAX_PASS_RUNS = 64 };

typedef struct TlPassTime {
    const char *name; /* row of passes.def; "verify" sums up all verification, "round-trip" all printing and
                         parsing */
    double ms;
    uint32_t ops_after; /* operations in the kernel after it */
} TlPassTime;

typedef struct TlPassTimes {
    TlPassTime run[TL_MAX_PASS_RUNS];
    uint32_t n;
} TlPassTimes;

typedef struct TlPassOptions {
    const char
        *passes;      /* NULL: the whole pipeline; else names with commas between them, in the order to run */
    const char *skip; /* NULL, or names with commas between them */
    const char *print_after; /* NULL, "all", or names with commas between them */
    TlText *dump;            /* where print_after goes */
    bool round_trip;
    TlPassTimes *times; /* filled in when not NULL */
} TlPassOptions;

typedef bool (*TlPassFn)(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts);

typedef struct TlPassRow {
    const char *name;
    TlPassFn fn;
    const char *requires_, *keeps, *breaks;
} TlPassRow;

#define TL_PASS(name, fn, ...) bool tl_pass_##fn(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts);
#include "pass/passes.def"
#undef TL_PASS

/* Runs the passes; *kernel becomes the result. opts may be NULL. */
bool tl_passes_run(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts);
const TlPassRow *tl_pass_rows(uint32_t *n); /* the pipeline, in order */

/* ---- simplification as a library, for passes that want it in between
 * ----------------------------------------------- */

typedef struct TlSimplifyStats {
    uint32_t folded, replaced, merged, hoisted, dropped;
} TlSimplifyStats;
enum {
    TL_SIMPLIFY_FOLD = 1,  /* constants and identities */
    TL_SIMPLIFY_CSE = 2,   /* equal pure operations, the first of them dominating */
    TL_SIMPLIFY_HOIST = 4, /* loop-invariant pure operations out of for and while */
    TL_SIMPLIFY_DCE = 8,   /* pure operations and control flow without effects, unused carried values */
    TL_SIMPLIFY_ONCE = 16, /* loops that run once, though pass "stage" could cut them into more turns */
    TL_SIMPLIFY_ALL = 31
};
bool tl_simplify(TlIr *ir, TlKernelId k, uint32_t what, TlSimplifyStats *stats /* may be NULL */);

#endif
