/* irtest.c - what the tests of base, ir and the pass runner call by ctypes: whole runs from text, so that the
 * sanitizers and the failing allocator see everything between parsing and printing. */
#include "ir/eval.h"
#include "pass/pass.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Run {
    TlArena arena;
    TlDiag diag;
    TlIr ir;
} Run;

enum { OK, PARSE_FAILED, FAILED };

static bool
start(Run *r, const TlAlloc *alloc)
{
    tl_arena_init(&r->arena, alloc);
    tl_diag_init(&r->diag, &r->arena);
    return tl_ir_init(&r->ir, &r->arena, &r->diag);
}

static void
put(const TlText *t, char *out, size_t cap)
{
    size_t n = t->data ? TL_MIN(t->len, cap - 1) : 0;
    if (!cap)
        return;
    if (n)
        memcpy(out, t->data, n);
    out[n] = 0;
}

static void
put_diag(Run *r, char *out, size_t cap)
{
    TlText t;
    tl_text_init(&t, &r->arena);
    tl_diag_print(&r->diag, &t);
    put(&t, out, cap);
}

/* All kernels of the text through these passes (NULL: the pipeline, "": none); the result printed. */
static int
work(Run *r, const char *text, size_t n, const char *passes, bool round_trip, TlText *result)
{
    TlPassOptions o = {.passes = passes, .round_trip = round_trip};
    tl_text_init(result, &r->arena);
    if (!tl_parse(&r->ir, text, n, "test.tir"))
        return PARSE_FAILED;
    uint32_t kernels = r->ir.kernels.len;
    for (TlKernelId k = 1; k < kernels; k++) {
        TlKernelId to = k;
        if (!tl_passes_run(&r->ir, &to, &o))
            return FAILED;
        tl_print_kernel(&r->ir, to, result, false);
    }
    return result->failed ? FAILED : OK;
}

TL_API int tl_test_run(const char *text, size_t n, const char *passes, int round_trip, char *out, size_t cap);
TL_API int64_t tl_test_alloc_sweep(const char *text, size_t n, const char *passes, int expect);
TL_API int64_t tl_test_fuzz(const char *text, size_t n, uint64_t seed, int64_t rounds, char *out, size_t cap);
TL_API void tl_test_cast(int from, int to, const uint64_t *in, uint64_t *out, size_t n);
TL_API void tl_test_fold(const char *op, int elem, const uint64_t *const in[3], uint64_t *out, uint8_t *ok,
                         size_t n);
TL_API int tl_test_eval(const char *text, size_t n, const char *passes, const TlEvalArg *args, uint32_t nargs,
                        const int64_t *grid, char *out, size_t cap);
TL_API int tl_test_op_row(int i, const char **name, const char **rule);

int
tl_test_run(const char *text, size_t n, const char *passes, int round_trip, char *out, size_t cap)
{
    Run r;
    TlText t;
    int status = start(&r, NULL) ? work(&r, text, n, passes, round_trip != 0, &t) : FAILED;
    if (status == OK)
        put(&t, out, cap);
    else
        put_diag(&r, out, cap);
    tl_arena_free(&r.arena);
    return status;
}

/* Lets each memory request fail once. Every such run must end with diag.oom or a failure and with nothing
 * left allocated; the run in which none fails must end as `expect` says. Gives the number of requests, or
 * minus the number of the request whose failure was handled wrongly. */
int64_t
tl_test_alloc_sweep(const char *text, size_t n, const char *passes, int expect)
{
    for (uint64_t at = 1;; at++) {
        TlFailAlloc fa;
        Run r;
        TlText t;
        tl_fail_alloc_init(&fa, at);
        int status = start(&r, &fa.alloc) ? work(&r, text, n, passes, false, &t) : FAILED;
        bool hit = fa.requests >= at, said = r.diag.oom || r.arena.failed;
        tl_arena_free(&r.arena);
        if (fa.live_bytes != 0)
            return -(int64_t)at;
        if (!hit)
            return status == expect ? (int64_t)fa.requests : -(int64_t)at;
        if (status == OK ? !said : !said && expect == OK)
            return -(int64_t)at;
    }
}

/* ---- fuzzing ---- */

static uint64_t
next(uint64_t *s)
{
    *s += 0x9e3779b97f4a7c15u;
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* One change in place; gives the new length. buf has room for cap bytes. */
static size_t
mutate(char *buf, size_t n, size_t cap, uint64_t *s)
{
    static const char *const bits[] = {"%0",
                                       "%",
                                       "{",
                                       "}",
                                       "(",
                                       ")",
                                       ": index",
                                       "tile<4x4xf32>",
                                       "-1",
                                       "\"",
                                       "loc(",
                                       "0x",
                                       "1e9",
                                       "yield",
                                       "vec<0xf32>",
                                       "[",
                                       "]",
                                       ",",
                                       "?:8",
                                       "for",
                                       "nan",
                                       "-inf",
                                       "99999999999999999999"};
    uint64_t what = next(s) % 6, at = n ? next(s) % n : 0;
    size_t len = 1 + next(s) % 24;
    const char *piece = bits[next(s) % TL_COUNT(bits)];
    size_t plen = strlen(piece), from = n ? next(s) % n : 0;
    len = TL_MIN(len, n - at);
    switch (what) {
    case 0:
        buf[at] = (char)next(s);
        return n;
    case 1: /* cut out */
        memmove(buf + at, buf + at + len, n - at - len);
        return n - len;
    case 2: /* double */
        if (n + len > cap)
            return n;
        memmove(buf + at + len, buf + at, n - at);
        return n + len;
    case 3: /* put in */
        if (n + plen > cap)
            return n;
        memmove(buf + at + plen, buf + at, n - at);
        memcpy(buf + at, piece, plen);
        return n + plen;
    case 4: /* a digit for a digit */
        for (size_t i = at; i < n; i++)
            if (buf[i] >= '0' && buf[i] <= '9') {
                buf[i] = (char)('0' + next(s) % 10);
                break;
            }
        return n;
    default: /* a piece from elsewhere over this one */
        len = TL_MIN(len, n - from);
        memmove(buf + at, buf + from, TL_MIN(len, n - at));
        return n;
    }
}

/* Mutated texts through parser, verifier, simplify (with a round trip) and printer. What the verifier accepts
 * must stay accepted; gives the number of accepted texts, or -1 with the offending text in out. */
int64_t
tl_test_fuzz(const char *text, size_t n, uint64_t seed, int64_t rounds, char *out, size_t cap)
{
    size_t room = n * 2 + 64;
    char *buf = malloc(room);
    int64_t accepted = 0;
    for (int64_t i = 0; buf && i < rounds; i++) {
        size_t len = n;
        memcpy(buf, text, n);
        for (uint64_t m = 1 + next(&seed) % 4; m && len; m--)
            len = mutate(buf, len, room, &seed);
        Run r;
        TlText t;
        bool ok = start(&r, NULL) && work(&r, buf, len, "", false, &t) == OK;
        tl_arena_free(&r.arena);
        if (!ok)
            continue;
        accepted++;
        ok = start(&r, NULL) && work(&r, buf, len, "simplify", true, &t) == OK;
        if (!ok) {
            snprintf(out, cap, "%.*s\n", (int)len, buf);
            size_t used = strlen(out);
            put_diag(&r, out + used, cap - used);
        }
        tl_arena_free(&r.arena);
        if (!ok) {
            free(buf);
            return -1;
        }
    }
    free(buf);
    return accepted;
}

/* ---- numbers, evaluation ---- */

void
tl_test_cast(int from, int to, const uint64_t *in, uint64_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = tl_num_encode((TlElem)to,
                               tl_num_cast((TlElem)from, (TlElem)to, tl_num_decode((TlElem)from, in[i])));
}

void
tl_test_fold(const char *op, int elem, const uint64_t *const in[3], uint64_t *out, uint8_t *ok, size_t n)
{
    TlOpcode c = tl_op_by_name(op, strlen(op));
    TlElem e = (TlElem)elem, to = tl_op_row(c)->rule_id == TL_RULE_cmp ? TL_ELEM_I1 : e;
    for (size_t i = 0; i < n; i++) {
        TlNum v[3] = {{0}, {0}, {0}}, r = {0};
        for (int k = 0; k < 3; k++)
            if (in[k])
                v[k] = tl_num_decode(e, in[k][i]);
        ok[i] = tl_fold(c, e, v, &r);
        out[i] = tl_num_encode(to, r);
    }
}

int
tl_test_eval(const char *text, size_t n, const char *passes, const TlEvalArg *args, uint32_t nargs,
             const int64_t *grid, char *out, size_t cap)
{
    Run r;
    TlKernelId k = 1;
    TlPassOptions o = {.passes = passes};
    int status = FAILED;
    if (start(&r, NULL)) {
        if (!tl_parse(&r.ir, text, n, "test.tir"))
            status = PARSE_FAILED;
        else if (tl_passes_run(&r.ir, &k, &o) && tl_eval(&r.ir, k, args, nargs, grid))
            status = OK;
    }
    put_diag(&r, out, cap);
    tl_arena_free(&r.arena);
    return status;
}

int
tl_test_op_row(int i, const char **name, const char **rule)
{
    if (i <= 0 || i >= TL_OP__COUNT)
        return 0;
    *name = tl_op_row((TlOpcode)i)->name;
    *rule = tl_op_row((TlOpcode)i)->rule;
    return 1;
}
