/* print.c - IR to text. The text is what parse.c reads; printing what was parsed gives the same text again.
 *
 * A value prints as %hint, made unique in its kernel by a suffix, or as %number in order of definition. */
#include "ir/ir_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Printer {
    const TlIr *ir;
    TlText *out;
    const char **names; /* by value; NULL: not defined yet */
    const char **types; /* by type; NULL: not printed yet */
    TlMap used;         /* hashes of the names given */
    uint32_t next;      /* number of the next nameless value */
    bool with_locs;
    const TlFaults *faults;
    const TlMap *first_fault;
} Printer;

static void
put_uint(TlText *out, uint64_t v)
{
    char buf[24], *p = buf + sizeof buf;
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    tl_text_put(out, p, (size_t)(buf + sizeof buf - p));
}

static void
put_int(TlText *out, int64_t v)
{
    if (v < 0)
        tl_text_put(out, "-", 1);
    put_uint(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void
put_float(TlText *out, double v)
{
    char buf[48];
    if (isnan(v)) {
        tl_text_puts(out, "nan");
        return;
    }
    if (isinf(v)) {
        tl_text_puts(out, v < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        if (strtod(buf, NULL) == v)
            break;
    }
    bool plain = true;
    for (char *p = buf; *p; p++) {
        if (*p == 'e')
            plain = false;
        else if (*p != '-' && *p != '+' && (*p < '0' || *p > '9')) {
            *p = '.'; /* whatever the locale writes there */
            plain = false;
        }
    }
    tl_text_puts(out, buf);
    if (plain)
        tl_text_puts(out, ".0");
}

static void
put_quoted(TlText *out, const char *s)
{
    const char *run = s;
    tl_text_put(out, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c != '"' && c != '\\' && c >= 32 && c != 127)
            continue;
        tl_text_put(out, run, (size_t)(s - run));
        if (c == '"' || c == '\\')
            tl_text_printf(out, "\\%c", c);
        else if (c == '\n')
            tl_text_puts(out, "\\n");
        else
            tl_text_printf(out, "\\x%02x", c);
        run = s + 1;
    }
    tl_text_put(out, run, (size_t)(s - run));
    tl_text_put(out, "\"", 1);
}

static void
put_attrs(Printer *p, const TlAttr *a, uint32_t n)
{
    if (!n)
        return;
    tl_text_put(p->out, " {", 2);
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            tl_text_put(p->out, ", ", 2);
        tl_text_puts(p->out, tl_str(&p->ir->strs, a[i].key));
        tl_text_put(p->out, " = ", 3);
        switch (a[i].kind) {
        case TL_ATTR_INT:
            put_int(p->out, a[i].u.i);
            break;
        case TL_ATTR_FLOAT:
            put_float(p->out, a[i].u.f);
            break;
        case TL_ATTR_STR:
            put_quoted(p->out, tl_str(&p->ir->strs, a[i].u.s));
            break;
        case TL_ATTR_INTS:
            tl_text_put(p->out, "[", 1);
            for (uint32_t j = 0; j < a[i].u.ints.n; j++) {
                if (j)
                    tl_text_put(p->out, ", ", 2);
                put_int(p->out, a[i].u.ints.v[j]);
            }
            tl_text_put(p->out, "]", 1);
            break;
        }
    }
    tl_text_put(p->out, "}", 1);
}

static void
put_type(Printer *p, TlType t)
{
    if (!p->types[t]) {
        TlText x;
        tl_text_init(&x, p->out->arena);
        tl_type_print(p->ir, t, &x);
        if (x.failed) {
            p->out->failed = true;
            return;
        }
        p->types[t] = x.data;
    }
    tl_text_puts(p->out, p->types[t]);
}

static void
put_loc(Printer *p, TlLoc l)
{
    if (!p->with_locs || !l.line)
        return;
    tl_text_puts(p->out, " loc(");
    put_quoted(p->out, l.file < p->ir->diag->files.len ? p->ir->diag->files.data[l.file] : "");
    tl_text_put(p->out, ":", 1);
    put_uint(p->out, l.line);
    tl_text_put(p->out, ":", 1);
    put_uint(p->out, l.col);
    if (l.end_col) {
        tl_text_put(p->out, "-", 1);
        put_uint(p->out, l.end_col);
    }
    tl_text_put(p->out, ")", 1);
}

/* Takes the name if no value before has it. A hash that two names share counts as taken: still unique, still
 * stable. */
static bool
take_name(Printer *p, const char *s, size_t n)
{
    uint64_t h = tl_hash_bytes(s, n, 0), had;
    if (tl_map_get(&p->used, h, &had))
        return false;
    if (!tl_map_put(&p->used, h, 1))
        p->out->failed = true;
    return true;
}

static void
define(Printer *p, TlVal v)
{
    char buf[96];
    const char *hint = tl_str(&p->ir->strs, tl_valn(p->ir, v)->name);
    size_t n = strlen(hint);
    if (n && n < 80) {
        memcpy(buf, hint, n + 1);
        for (uint32_t i = 1; !take_name(p, buf, n) && !p->out->failed; i++)
            n = (size_t)snprintf(buf, sizeof buf, "%s.%u", hint, i);
    } else {
        char *q = buf + sizeof buf;
        uint32_t x = p->next++;
        do
            *--q = (char)('0' + x % 10);
        while (x /= 10);
        n = (size_t)(buf + sizeof buf - q);
        memmove(buf, q, n);
    }
    p->names[v] = tl_arena_strdup(p->out->arena, buf, n);
    if (!p->names[v])
        p->out->failed = true;
}

static void
put_val(Printer *p, TlVal v)
{
    tl_text_put(p->out, "%", 1);
    if (p->names[v])
        tl_text_puts(p->out, p->names[v]);
    else /* used before its definition, or not in this kernel: only in text about faults */
        tl_text_printf(p->out, "!%u", v);
}

static void
put_indent(Printer *p, uint32_t depth)
{
    static const char spaces[] = "                                                                ";
    tl_text_put(p->out, spaces, TL_MIN(depth * 2, sizeof spaces - 1));
}

static void
put_args(Printer *p, TlBlock b)
{
    const TlBlockNode *n = tl_blockn(p->ir, b);
    tl_text_put(p->out, " (", 2);
    for (uint32_t i = 0; i < n->args.len; i++) {
        if (i)
            tl_text_put(p->out, ", ", 2);
        define(p, n->args.data[i]);
        put_val(p, n->args.data[i]);
        tl_text_put(p->out, " : ", 3);
        put_type(p, tl_valn(p->ir, n->args.data[i])->type);
    }
    tl_text_put(p->out, ")", 1);
}

static void
put_faults(Printer *p, TlOp o, uint32_t depth)
{
    uint64_t i;
    if (!p->first_fault || !tl_map_get(p->first_fault, o, &i))
        return;
    for (; i; i = p->faults->data[i - 1].next) {
        put_indent(p, depth);
        tl_text_puts(p->out, "// ^ error: ");
        tl_text_puts(p->out, p->faults->data[i - 1].text);
        tl_text_put(p->out, "\n", 1);
    }
}

static void put_block(Printer *p, TlBlock b, uint32_t depth);

static void
put_op(Printer *p, TlOp o, uint32_t depth)
{
    const TlOpNode *n = tl_opn(p->ir, o);
    put_indent(p, depth);
    /* results are named before the regions, so that numbers ascend in reading order */
    for (uint32_t i = 0; i < n->nres; i++) {
        define(p, n->res[i]);
        if (i)
            tl_text_put(p->out, ", ", 2);
        put_val(p, n->res[i]);
    }
    if (n->nres)
        tl_text_put(p->out, " = ", 3);
    tl_text_puts(p->out, tl_op_row(n->code)->name);
    for (uint32_t i = 0; i < n->nin; i++) {
        tl_text_put(p->out, i ? ", " : " ", i ? 2 : 1);
        put_val(p, n->in[i]);
    }
    put_attrs(p, n->attr, n->nattr);
    for (uint32_t r = 0; r < n->nregion; r++) {
        put_args(p, n->region[r]);
        tl_text_put(p->out, " {\n", 3);
        put_block(p, n->region[r], depth + 1);
        put_indent(p, depth);
        tl_text_put(p->out, "}", 1);
    }
    for (uint32_t i = 0; i < n->nres; i++) {
        tl_text_put(p->out, i ? ", " : " : ", i ? 2 : 3);
        put_type(p, tl_valn(p->ir, n->res[i])->type);
    }
    put_loc(p, n->loc);
    tl_text_put(p->out, "\n", 1);
    put_faults(p, o, depth);
}

static void
put_block(Printer *p, TlBlock b, uint32_t depth)
{
    for (TlOp o = tl_blockn(p->ir, b)->first; o && !p->out->failed; o = tl_opn(p->ir, o)->next)
        put_op(p, o, depth);
}

static void
put_kernel(Printer *p, TlKernelId k)
{
    const TlKernel *kn = tl_kerneln(p->ir, k);
    p->names = TL_NEW_N(p->out->arena, const char *, p->ir->vals.len);
    p->types = TL_NEW_N(p->out->arena, const char *, p->ir->types.len);
    p->next = 0;
    tl_map_init(&p->used, p->out->arena);
    if (!p->names || !p->types) {
        p->out->failed = true;
        return;
    }
    tl_text_puts(p->out, "kernel @");
    tl_text_puts(p->out, tl_str(&p->ir->strs, kn->name));
    tl_text_puts(p->out, kn->level == TL_LEVEL_TILE ? " level tile" : " level thread");
    put_attrs(p, kn->attrs.data, kn->attrs.len);
    put_args(p, kn->body);
    tl_text_put(p->out, " {\n", 3);
    put_faults(p, 0, 1);
    put_block(p, kn->body, 1);
    tl_text_put(p->out, "}", 1);
    put_loc(p, kn->loc);
    tl_text_put(p->out, "\n", 1);
}

void
tl_print_kernel(const TlIr *ir, TlKernelId k, TlText *out, bool with_locs)
{
    Printer p = {.ir = ir, .out = out, .with_locs = with_locs};
    put_kernel(&p, k);
}

void
tl_print(const TlIr *ir, TlText *out, bool with_locs)
{
    for (TlKernelId k = 1; k < ir->kernels.len; k++) {
        if (k > 1)
            tl_text_put(out, "\n", 1);
        tl_print_kernel(ir, k, out, with_locs);
    }
}

void
tl_print_faults(const TlIr *ir, TlKernelId k, TlText *out, const TlFaults *faults, const TlMap *first)
{
    Printer p = {.ir = ir, .out = out, .faults = faults, .first_fault = first};
    put_kernel(&p, k);
}
