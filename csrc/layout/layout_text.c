/* layout_text.c - the text form of layouts: printer and parser.
 *
 * layout(reg: [0,1] [0,2]; lane: [1,0]; wave: -> d0: 2, d1: 4)
 * One bracket an input bit, lowest first; one number in it an output dimension, in the order after the arrow.
 */
#include "layout/layout.h"

/* ---- text ----------------------------------------------------------------------------------- */

static const char *const dim_names[TL_DIM__COUNT] = {"reg", "lane", "wave", "block", "d0",
                                                     "d1",  "d2",   "d3",   "off"};

const char *
tl_dim_name(TlDim d)
{
    return (unsigned)d < TL_DIM__COUNT ? dim_names[d] : "?";
}

void
tl_layout_print(const TlLayout *l, TlText *out)
{
    uint32_t b = 0;
    tl_text_puts(out, "layout(");
    for (int i = 0; i < l->nin; i++) {
        tl_text_printf(out, "%s%s:", i ? "; " : "", tl_dim_name((TlDim)l->in_dim[i]));
        for (uint32_t j = 0; j < l->in_bits[i]; j++, b++) {
            tl_text_puts(out, " [");
            for (int o = 0; o < l->nout; o++)
                tl_text_printf(out, "%s%u", o ? "," : "",
                               tl_layout_out(l, l->basis[b], (TlDim)l->out_dim[o]));
            tl_text_puts(out, "]");
        }
    }
    tl_text_puts(out, l->nin ? " ->" : "->");
    for (int o = 0; o < l->nout; o++)
        tl_text_printf(out, "%s%s: %u", o ? ", " : " ", tl_dim_name((TlDim)l->out_dim[o]),
                       1u << l->out_bits[o]);
    tl_text_puts(out, ")");
}

typedef struct Reader {
    const char *s, *end, *at;
    const char *why;
} Reader;

static bool
fail(Reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    return false;
}

static void
blanks(Reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool
accept(Reader *r, const char *word)
{
    size_t n = strlen(word);
    blanks(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool
read_number(Reader *r, uint64_t *v)
{
    blanks(r);
    const char *start = r->at;
    for (*v = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        *v = *v * 10 + (uint64_t)(*r->at - '0');
        if (*v > UINT32_MAX)
            return fail(r, "number too large");
    }
    return r->at > start || fail(r, "expected a number");
}

static bool
read_dim(Reader *r, TlDim *d)
{
    blanks(r);
    size_t n = 0;
    while (r->at + n < r->end &&
           ((r->at[n] >= 'a' && r->at[n] <= 'z') || (r->at[n] >= '0' && r->at[n] <= '9')))
        n++;
    for (int i = 0; i < TL_DIM__COUNT; i++)
        if (strlen(dim_names[i]) == n && memcmp(r->at, dim_names[i], n) == 0) {
            r->at += n;
            *d = (TlDim)i;
            return accept(r, ":") || fail(r, "expected ':'");
        }
    return fail(r, "expected a dimension: reg, lane, wave, block, d0 to d3 or off");
}

/* "[1,2]": numbers into row, at most TL_LAYOUT_MAX_DIMS. */
static bool
read_basis(Reader *r, uint32_t *row, uint32_t *n)
{
    *n = 0;
    if (accept(r, "]"))
        return true;
    do {
        uint64_t v;
        if (*n == TL_LAYOUT_MAX_DIMS)
            return fail(r, "too many coordinates");
        if (!read_number(r, &v))
            return false;
        row[(*n)++] = (uint32_t)v;
    } while (accept(r, ","));
    return accept(r, "]") || fail(r, "expected ',' or ']'");
}

static bool
read_layout(Reader *r, TlLayout *l)
{
    uint32_t rows[TL_LAYOUT_MAX_BITS][TL_LAYOUT_MAX_DIMS], len[TL_LAYOUT_MAX_BITS], nrows = 0;
    TlDim d;
    if (!accept(r, "layout") || !accept(r, "("))
        return fail(r, "expected 'layout('");
    for (bool first = true; !accept(r, "->"); first = false) {
        if (!first && !accept(r, ";"))
            return fail(r, "expected '[', ';' or '->'");
        if (!read_dim(r, &d))
            return false;
        uint32_t bits = 0;
        for (; accept(r, "["); bits++, nrows++) {
            if (nrows == TL_LAYOUT_MAX_BITS)
                return fail(r, "too many bits");
            if (!read_basis(r, rows[nrows], &len[nrows]))
                return false;
        }
        if (!tl_layout_add_in(l, d, bits))
            return fail(r, "input dimension twice or too many");
    }
    for (bool first = true; !accept(r, ")"); first = false) {
        uint64_t size;
        if (!first && !accept(r, ","))
            return fail(r, "expected ',' or ')'");
        if (!read_dim(r, &d) || !read_number(r, &size))
            return false;
        if (!size || size & (size - 1))
            return fail(r, "the size is not a power of two");
        if (!tl_layout_add_out(l, d, (uint32_t)__builtin_ctzll(size)))
            return fail(r, "output dimension twice or too large");
    }
    for (uint32_t b = 0; b < nrows; b++) {
        if (len[b] != l->nout)
            return fail(r, "a basis needs one number an output dimension");
        for (uint32_t o = 0; o < l->nout; o++) {
            if (rows[b][o] >> l->out_bits[o])
                return fail(r, "a basis goes beyond the size of its dimension");
            if (rows[b][o])
                l->basis[b] |= (uint64_t)rows[b][o] << tl_layout_out_shift(l, (TlDim)l->out_dim[o]);
        }
    }
    return true;
}

size_t
tl_layout_parse(TlLayout *l, const char *s, size_t n, const char **why, size_t *at)
{
    Reader r = {.s = s, .end = s + n, .at = s};
    tl_layout_init(l);
    bool ok = read_layout(&r, l);
    if (why)
        *why = ok ? NULL : r.why;
    if (at)
        *at = (size_t)(r.at - s);
    return ok ? (size_t)(r.at - s) : 0;
}
