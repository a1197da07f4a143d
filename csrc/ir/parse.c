/* parse.c - text to IR (the syntax is on top of ir.h). One pass over the text, no token list; stops at the
 * first fault.
 *
 * Names are visible from their definition to the end of the region that they stand in; the same name may
 * stand in two regions that do not enclose each other. */
#include "ir/ir_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEPTH = 64 };
#define NUMERIC ((uint64_t)1 << 40) /* key of %7 is NUMERIC + 7; of %x its string id */

typedef struct Parser {
    TlIr *ir;
    const char *p, *end, *line_start;
    uint32_t line, file;
    const char *loc_file; /* newest file name of a loc, as written: most are like the one before */
    size_t loc_file_len;
    uint32_t loc_file_id;
    bool locs; /* operations without loc(...) get the place in this text */
    uint32_t depth;
    TlKernelId kernel, first_kernel;
    TlMap names;              /* key -> value; 0 = out of scope */
    TL_VEC(uint64_t) visible; /* keys in order of definition */
    TL_VEC(uint64_t) results; /* keys of results whose operation is not finished */
    TL_VEC(uint32_t) scratch; /* operands, types */
    TL_VEC(int64_t) ints;
} Parser;

/* ---- characters ---- */

static bool
fail(Parser *p, const char *what)
{
    TlLoc l = {p->file, p->line, (uint32_t)(p->p - p->line_start) + 1, 0};
    char near[24];
    size_t n = 0;
    while (n < sizeof near - 1 && p->p + n < p->end && (unsigned char)p->p[n] >= 32 &&
           (unsigned char)p->p[n] < 127) {
        near[n] = p->p[n];
        n++;
    }
    near[n] = 0;
    if (p->ir->arena->failed) {
        p->ir->diag->oom = true;
        return false;
    }
    return tl_error(p->ir->diag, l, TL_E_PARSE,
                    n ? tl_arena_printf(p->ir->arena, "%s, at \"%s\"", what, near) : what);
}

static bool
oom(Parser *p)
{
    p->ir->diag->oom = true;
    return false;
}

static void
skip(Parser *p)
{
    for (; p->p < p->end; p->p++) {
        char c = *p->p;
        if (c == '\n') {
            p->line++;
            p->line_start = p->p + 1;
        } else if (c == '/' && p->p + 1 < p->end && p->p[1] == '/') {
            while (p->p + 1 < p->end && p->p[1] != '\n')
                p->p++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
}

static char
peek(Parser *p)
{
    skip(p);
    return p->p < p->end ? *p->p : 0;
}

static bool
accept(Parser *p, char c)
{
    if (peek(p) != c || p->p >= p->end)
        return false;
    p->p++;
    return true;
}

static bool
expect(Parser *p, char c)
{
    char what[] = "expected 'x'";
    what[10] = c;
    return accept(p, c) || fail(p, what);
}

static bool
word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* A word of word_char; length 0 when there is none. */
static size_t
word(Parser *p, const char **s)
{
    skip(p);
    const char *q = *s = p->p;
    while (q < p->end && word_char(*q))
        q++;
    p->p = q;
    return (size_t)(q - *s);
}

static bool
is(const char *s, size_t n, const char *w)
{
    return strlen(w) == n && memcmp(s, w, n) == 0;
}

static bool
accept_word(Parser *p, const char *w)
{
    const char *s, *at;
    skip(p);
    at = p->p;
    size_t n = word(p, &s);
    if (is(s, n, w))
        return true;
    p->p = at;
    return false;
}

/* Decimal or 0x integer with an optional minus. */
static bool
integer(Parser *p, int64_t *out)
{
    skip(p);
    bool minus = p->p < p->end && *p->p == '-';
    const char *q = p->p + minus, *first = q;
    uint64_t v = 0, limit = (uint64_t)INT64_MAX + minus;
    if (p->end - q > 2 && q[0] == '0' && q[1] == 'x') {
        for (first = q += 2; q < p->end; q++) {
            int d = *q >= '0' && *q <= '9' ? *q - '0' : *q >= 'a' && *q <= 'f' ? *q - 'a' + 10 : -1;
            if (d < 0)
                break;
            if (v > (limit - (uint64_t)d) / 16)
                return fail(p, "integer too large");
            v = v * 16 + (uint64_t)d;
        }
    } else {
        for (; q < p->end && *q >= '0' && *q <= '9'; q++) {
            uint64_t d = (uint64_t)(*q - '0');
            if (v > (limit - d) / 10)
                return fail(p, "integer too large");
            v = v * 10 + d;
        }
    }
    if (q == first)
        return fail(p, "expected an integer");
    p->p = q;
    *out = (int64_t)(minus ? 0 - v : v);
    return true;
}

static bool
integer_u32(Parser *p, uint32_t *out)
{
    int64_t v;
    if (!integer(p, &v))
        return false;
    if (v < 0 || v > UINT32_MAX)
        return fail(p, "number out of range");
    *out = (uint32_t)v;
    return true;
}

/* After the opening quote was seen. */
static bool
quoted(Parser *p, TlStr *out)
{
    TlText t;
    tl_text_init(&t, p->ir->arena);
    if (!expect(p, '"'))
        return false;
    const char *run = p->p;
    for (; p->p < p->end && *p->p != '"'; p->p++) {
        char c = *p->p;
        if (c == '\n' || c == 0)
            return fail(p, "a string must end on its line");
        if (c != '\\')
            continue;
        tl_text_put(&t, run, (size_t)(p->p - run));
        if (p->end - p->p < 2)
            return fail(p, "a string must end on its line");
        c = *++p->p;
        if (c == 'n') {
            c = '\n';
        } else if (c == 'x' && p->end - p->p > 2) {
            char hex[3] = {p->p[1], p->p[2], 0}, *stop;
            c = (char)strtol(hex, &stop, 16);
            if (stop != hex + 2 || c == 0)
                return fail(p, "bad \\x escape");
            p->p += 2;
        } else if (c != '"' && c != '\\') {
            return fail(p, "bad escape");
        }
        tl_text_put(&t, &c, 1);
        run = p->p + 1;
    }
    if (p->p >= p->end)
        return fail(p, "a string must end on its line");
    size_t rest = (size_t)(p->p - run);
    if (t.data) {
        tl_text_put(&t, run, rest);
        *out = tl_intern(&p->ir->strs, t.data, t.len);
    } else {
        *out = tl_intern(&p->ir->strs, run, rest);
    }
    p->p++;
    return (*out != UINT32_MAX && !t.failed) || oom(p);
}

/* ---- types ---- */

static bool
elem(Parser *p, TlElem *e)
{
    const char *s;
    size_t n = word(p, &s);
    *e = tl_elem_by_name(s, n);
    if (*e != TL_ELEM_NONE)
        return true;
    p->p = s;
    return fail(p, "expected an element type");
}

/* "64x32xf16" */
static bool
sizes(Parser *p, TlTypeInfo *i)
{
    skip(p);
    while (p->p < p->end && *p->p >= '0' && *p->p <= '9') {
        int64_t v = 0;
        if (i->rank == TL_MAX_RANK)
            return fail(p, "too many dimensions");
        for (; p->p < p->end && *p->p >= '0' && *p->p <= '9'; p->p++)
            if ((v = v * 10 + (*p->p - '0')) > INT32_MAX)
                return fail(p, "size too large");
        if (p->p >= p->end || *p->p != 'x')
            return fail(p, "expected 'x'");
        p->p++;
        i->shape[i->rank++] = v;
    }
    return elem(p, &i->elem);
}

/* "[1024, ?:8]" */
static bool
dims(Parser *p, uint32_t *rank, int64_t *v, uint32_t *div)
{
    *rank = 0;
    if (!expect(p, '['))
        return false;
    if (accept(p, ']'))
        return true;
    do {
        if (*rank == TL_MAX_RANK)
            return fail(p, "too many dimensions");
        div[*rank] = 1;
        if (accept(p, '?')) {
            v[*rank] = TL_DYN;
            if (accept(p, ':') && !integer_u32(p, &div[*rank]))
                return false;
        } else if (!integer(p, &v[*rank])) {
            return false;
        }
        ++*rank;
    } while (accept(p, ','));
    return expect(p, ']');
}

static bool
buffer(Parser *p, TlTypeInfo *i)
{
    uint32_t rank;
    if (!elem(p, &i->elem) || !dims(p, &i->rank, i->shape, i->dim_div))
        return false;
    if (!accept_word(p, "strides"))
        return fail(p, "expected strides");
    if (!dims(p, &rank, i->strides, i->stride_div))
        return false;
    if (rank != i->rank)
        return fail(p, "as many strides as dimensions");
    if (accept_word(p, "align") && !integer_u32(p, &i->align))
        return false;
    for (;;) {
        if (accept_word(p, "noalias"))
            i->flags |= TL_BUF_NOALIAS;
        else if (accept_word(p, "dense"))
            i->flags |= TL_BUF_DENSE;
        else if (accept_word(p, "big"))
            i->flags |= TL_BUF_BIG;
        else
            return true;
    }
}

static bool
type(Parser *p, TlType *out)
{
    static const struct {
        const char *word;
        TlTypeKind kind;
        bool open;
    } words[] = {{"index", TL_TY_INDEX, false},  {"tile", TL_TY_TILE, true},   {"buf", TL_TY_BUF, true},
                 {"shared", TL_TY_SHARED, true}, {"local", TL_TY_LOCAL, true}, {"vec", TL_TY_VEC, true},
                 {"ptr", TL_TY_PTR, false},      {"rsrc", TL_TY_RSRC, false},  {"lds", TL_TY_LDS, false}};
    const char *s;
    size_t n = word(p, &s);
    TlElem e = n ? tl_elem_by_name(s, n) : TL_ELEM_NONE;
    if (e != TL_ELEM_NONE) {
        *out = tl_type_scalar(p->ir, e);
        return *out || oom(p);
    }
    for (uint32_t w = 0; w < TL_COUNT(words); w++) {
        if (!is(s, n, words[w].word))
            continue;
        if (!words[w].open) {
            *out = tl_type_kind(p->ir, words[w].kind);
            return *out || oom(p);
        }
        TlTypeInfo i = {.kind = words[w].kind};
        if (!expect(p, '<') || !(i.kind == TL_TY_BUF ? buffer(p, &i) : sizes(p, &i)) || !expect(p, '>'))
            return false;
        uint32_t before = p->ir->diag->entries.len;
        *out = tl_type(p->ir, &i);
        if (*out)
            return true;
        if (p->ir->diag->oom || p->ir->diag->entries.len == before)
            return oom(p);
        p->ir->diag->entries.len = before; /* say it once, with the place */
        p->ir->diag->nerrors--;
        p->p = s;
        return fail(p, "a type of impossible rank, size, alignment or element");
    }
    p->p = s;
    return fail(p, "expected a type");
}

/* ---- attributes ---- */

/* The text of a number is copied, with the decimal point that this process's locale wants. */
static bool
floating(Parser *p, const char *s, size_t n, double *out)
{
    char point[16], buf[80], *q = buf, *stop;
    snprintf(point, sizeof point, "%.1f", 0.5);
    point[strlen(point) - 1] = 0;
    if (n > 60)
        return fail(p, "number too long");
    for (size_t i = 0; i < n; i++)
        if (s[i] == '.' && q + sizeof point < buf + sizeof buf)
            q += strlen(strcpy(q, point + 1));
        else
            *q++ = s[i];
    *q = 0;
    *out = strtod(buf, &stop);
    return *stop == 0 || fail(p, "bad number");
}

static bool
number(Parser *p, TlAttr *a)
{
    const char *s = p->p, *q = s;
    bool real = false;
    if (q < p->end && *q == '-')
        q++;
    bool hex = p->end - q > 1 && q[0] == '0' && q[1] == 'x';
    if (q < p->end && (*q == 'i' || *q == 'n')) {
        bool minus = q != s;
        p->p = q;
        if (accept_word(p, "inf"))
            a->u.f = minus ? -INFINITY : INFINITY;
        else if (accept_word(p, "nan"))
            a->u.f = NAN;
        else
            return fail(p, "expected a value");
        a->kind = TL_ATTR_FLOAT;
        return true;
    }
    for (; q < p->end && !hex; q++) {
        bool sign = (*q == '-' || *q == '+') && q > s && q[-1] == 'e';
        if (*q == '.' || *q == 'e')
            real = true;
        else if (!sign && (*q < '0' || *q > '9'))
            break;
    }
    if (!real) {
        a->kind = TL_ATTR_INT;
        return integer(p, &a->u.i);
    }
    a->kind = TL_ATTR_FLOAT;
    if (!floating(p, s, (size_t)(q - s), &a->u.f))
        return false;
    p->p = q;
    return true;
}

static bool
value(Parser *p, TlAttr *a)
{
    char c = peek(p);
    if (c == '"') {
        a->kind = TL_ATTR_STR;
        return quoted(p, &a->u.s);
    }
    if (c != '[')
        return number(p, a);
    a->kind = TL_ATTR_INTS;
    p->p++;
    p->ints.len = 0;
    if (!accept(p, ']')) {
        do {
            int64_t v;
            if (!integer(p, &v))
                return false;
            if (!tl_vec_push(p->ir->arena, &p->ints, v))
                return oom(p);
        } while (accept(p, ','));
        if (!expect(p, ']'))
            return false;
    }
    a->u.ints.n = p->ints.len;
    a->u.ints.v = TL_NEW_N(p->ir->arena, int64_t, p->ints.len ? p->ints.len : 1);
    if (!a->u.ints.v)
        return oom(p);
    if (p->ints.len)
        memcpy(a->u.ints.v, p->ints.data, p->ints.len * sizeof(int64_t));
    return true;
}

/* "{key = value, ...}"; op 0: of the kernel. */
static bool
attributes(Parser *p, TlOp o)
{
    if (!accept(p, '{'))
        return true;
    if (accept(p, '}'))
        return true;
    do {
        const char *s;
        TlAttr a = {0};
        size_t n = word(p, &s);
        if (!n)
            return fail(p, "expected an attribute");
        a.key = tl_intern(&p->ir->strs, s, n);
        if (a.key == UINT32_MAX)
            return oom(p);
        const char *key = tl_str(&p->ir->strs, a.key);
        if (o ? tl_attr(p->ir, o, key) != NULL : tl_kattr(p->ir, p->kernel, key) != NULL)
            return fail(p, "an attribute given twice");
        if (!expect(p, '=') || !value(p, &a))
            return false;
        if (!tl_attr_put_(p->ir, o, p->kernel, &a))
            return false;
    } while (accept(p, ','));
    return expect(p, '}');
}

/* "name" of a loc. */
static bool
loc_file(Parser *p, uint32_t *id)
{
    TlStr file;
    const char *s = p->p;
    if (p->loc_file && (size_t)(p->end - s) > p->loc_file_len &&
        memcmp(s, p->loc_file, p->loc_file_len) == 0) {
        p->p += p->loc_file_len;
        *id = p->loc_file_id;
        return true;
    }
    if (!quoted(p, &file))
        return false;
    const char *name = tl_str(&p->ir->strs, file);
    *id = *name ? tl_diag_file(p->ir->diag, name) : 0;
    p->loc_file = s;
    p->loc_file_len = (size_t)(p->p - s);
    p->loc_file_id = *id;
    return true;
}

static bool
location(Parser *p, TlLoc *l)
{
    if (!accept_word(p, "loc"))
        return true;
    if (!expect(p, '(') || peek(p) != '"')
        return fail(p, "expected a file name");
    if (!loc_file(p, &l->file) || !expect(p, ':') || !integer_u32(p, &l->line) || !expect(p, ':') ||
        !integer_u32(p, &l->col))
        return false;
    l->end_col = 0;
    if (accept(p, '-') && !integer_u32(p, &l->end_col))
        return false;
    return expect(p, ')');
}

/* ---- names ---- */

static bool
name_key(Parser *p, uint64_t *key)
{
    const char *s;
    if (!expect(p, '%'))
        return false;
    const char *at = p->p;
    size_t n = word(p, &s);
    if (!n || s != at)
        return fail(p, "expected a name");
    uint64_t v = 0;
    size_t i = 0;
    for (; i < n && i < 10 && s[i] >= '0' && s[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(s[i] - '0');
    if (i == n) {
        *key = NUMERIC + v;
        return true;
    }
    if (n >= 80)
        return fail(p, "name too long");
    TlStr id = tl_intern(&p->ir->strs, s, n);
    *key = id;
    return id != UINT32_MAX || oom(p);
}

static bool
define(Parser *p, uint64_t key, TlVal v)
{
    uint64_t had;
    if (tl_map_get(&p->names, key, &had) && had)
        return fail(p, "a name defined twice");
    if (!tl_map_put(&p->names, key, v) || !tl_vec_push(p->ir->arena, &p->visible, key))
        return oom(p);
    if (key < NUMERIC)
        p->ir->vals.data[v].name = (TlStr)key;
    return true;
}

static void
leave_scope(Parser *p, uint32_t mark)
{
    while (p->visible.len > mark)
        tl_map_put(&p->names, p->visible.data[--p->visible.len],
                   0); /* present already: cannot fail for memory */
}

/* Pushes operands on p->scratch. They start on the operation's line: a name on the next one is the next
 * result. */
static bool
operands(Parser *p)
{
    uint32_t line = p->line;
    if (peek(p) != '%' || p->line != line)
        return true;
    do {
        uint64_t key, v;
        if (!name_key(p, &key))
            return false;
        if (!tl_map_get(&p->names, key, &v) || !v)
            return fail(p, "a value that is not defined here, before this");
        if (!tl_vec_push(p->ir->arena, &p->scratch, (uint32_t)v))
            return oom(p);
    } while (accept(p, ','));
    return true;
}

/* ---- structure ---- */

static bool operation(Parser *p, TlBlock b);

static bool
arguments(Parser *p, TlBlock b)
{
    if (!expect(p, '('))
        return false;
    if (accept(p, ')'))
        return true;
    do {
        uint64_t key;
        TlType t;
        if (!name_key(p, &key) || !expect(p, ':') || !type(p, &t))
            return false;
        TlVal v = tl_block_arg(p->ir, b, t, NULL);
        if (!v || !define(p, key, v))
            return false;
    } while (accept(p, ','));
    return expect(p, ')');
}

static bool
body(Parser *p, TlBlock b)
{
    if (!expect(p, '{'))
        return false;
    while (!accept(p, '}')) {
        if (p->p >= p->end)
            return fail(p, "expected '}'");
        if (!operation(p, b))
            return false;
    }
    return true;
}

static bool
regions(Parser *p, TlOp o)
{
    while (peek(p) == '(') {
        uint32_t mark = p->visible.len;
        if (tl_opn(p->ir, o)->nregion == TL_MAX_REGIONS)
            return fail(p, "too many regions");
        TlBlock b = tl_block_new(p->ir, p->kernel, o);
        if (!b)
            return false;
        if (++p->depth > MAX_DEPTH)
            return fail(p, "regions nested too deep");
        if (!arguments(p, b) || !body(p, b))
            return false;
        p->depth--;
        leave_scope(p, mark);
    }
    return true;
}

static bool
result_types(Parser *p, TlOp o, uint32_t names)
{
    uint32_t base = p->scratch.len, nres = p->results.len - names;
    if (nres) {
        if (!expect(p, ':'))
            return false;
        do {
            TlType t;
            if (!type(p, &t))
                return false;
            if (!tl_vec_push(p->ir->arena, &p->scratch, t))
                return oom(p);
        } while (accept(p, ','));
    }
    if (p->scratch.len - base != nres)
        return fail(p, "as many types as results");
    if (nres && !tl_op_set_results(p->ir, o, p->scratch.data + base, nres))
        return false;
    p->scratch.len = base;
    for (uint32_t i = 0; i < nres; i++)
        if (!define(p, p->results.data[names + i], tl_opn(p->ir, o)->res[i]))
            return false;
    p->results.len = names;
    return true;
}

static bool
operation(Parser *p, TlBlock b)
{
    uint32_t names = p->results.len, base = p->scratch.len;
    const char *s;
    if (peek(p) == '%') {
        do {
            uint64_t key;
            if (!name_key(p, &key))
                return false;
            if (!tl_vec_push(p->ir->arena, &p->results, key))
                return oom(p);
        } while (accept(p, ','));
        if (!expect(p, '='))
            return false;
    }
    size_t n = word(p, &s);
    TlStr id = n ? tl_intern(&p->ir->strs, s, n) : 0;
    if (id == UINT32_MAX)
        return oom(p);
    if (!id || id >= TL_OP__COUNT) { /* the string table starts with the operations' names */
        p->p = s;
        return fail(p, n ? "no such operation" : "expected an operation");
    }
    TlBuilder bd = {.ir = p->ir, .block = b};
    if (p->locs)
        bd.loc = (TlLoc){p->file, p->line, (uint32_t)(s - p->line_start) + 1, 0};
    if (!operands(p))
        return false;
    TlOp o = tl_build(&bd, (TlOpcode)id, p->scratch.data + base, p->scratch.len - base, NULL, 0);
    p->scratch.len = base;
    if (!o || !attributes(p, o) || !regions(p, o) || !result_types(p, o, names))
        return false;
    TlLoc l = tl_opn(p->ir, o)->loc;
    if (!location(p, &l))
        return false;
    tl_opn(p->ir, o)->loc = l;
    return true;
}

static bool
kernel(Parser *p)
{
    const char *s;
    if (!accept_word(p, "kernel"))
        return fail(p, "expected \"kernel\"");
    TlLoc l = {0};
    if (p->locs)
        l = (TlLoc){p->file, p->line, (uint32_t)(p->p - p->line_start) - 5, 0};
    if (!expect(p, '@'))
        return false;
    size_t n = word(p, &s);
    if (!n)
        return fail(p, "expected a kernel name");
    char *name = tl_arena_strdup(p->ir->arena, s, n);
    if (!name)
        return oom(p);
    for (uint32_t i = p->first_kernel; i < p->ir->kernels.len; i++)
        if (strcmp(tl_str(&p->ir->strs, tl_kerneln(p->ir, i)->name), name) == 0)
            return fail(p, "two kernels of one name");
    TlLevel level = TL_LEVEL_TILE;
    if (!accept_word(p, "level"))
        return fail(p, "expected \"level\"");
    if (accept_word(p, "thread"))
        level = TL_LEVEL_THREAD;
    else if (!accept_word(p, "tile"))
        return fail(p, "expected \"tile\" or \"thread\"");
    p->kernel = tl_kernel_new(p->ir, name, level);
    if (!p->kernel)
        return false;
    tl_map_init(&p->names, p->ir->arena);
    p->visible.len = p->results.len = p->scratch.len = 0;
    TlBlock b = tl_kerneln(p->ir, p->kernel)->body;
    if (!attributes(p, 0) || !arguments(p, b) || !body(p, b) || !location(p, &l))
        return false;
    tl_kerneln(p->ir, p->kernel)->loc = l;
    return true;
}

bool
tl_parse(TlIr *ir, const char *text, size_t n, const char *filename)
{
    Parser p = {
        .ir = ir, .p = text, .end = text + n, .line_start = text, .line = 1, .locs = filename != NULL};
    uint32_t kernels = ir->kernels.len;
    p.first_kernel = kernels;
    p.file = filename ? tl_diag_file(ir->diag, filename) : 0;
    while (peek(&p), p.p < p.end)
        if (!kernel(&p)) {
            ir->kernels.len = kernels;
            return false;
        }
    return true;
}
