/* layout.c - algebra of linear layouts: building, applying, composing, inverting, registers, conversion,
 * reduction.
 *
 * Everything works on packed words: one 64-bit word for all inputs, one for all outputs, so that a layout is
 * a bit matrix whose columns are `basis`. Elimination keeps, with every reduced column, which inputs it is
 * made of.
 */
#include "layout/layout.h"

/* ---- building and reading ------------------------------------------------------------------- */

void
tl_layout_init(TlLayout *l)
{
    memset(l, 0, sizeof *l);
}

static uint64_t
low_mask(uint32_t bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static int
find_in(const TlLayout *l, TlDim d)
{
    for (int i = 0; i < l->nin; i++)
        if (l->in_dim[i] == d)
            return i;
    return -1;
}

static int
find_out(const TlLayout *l, TlDim d)
{
    for (int i = 0; i < l->nout; i++)
        if (l->out_dim[i] == d)
            return i;
    return -1;
}

uint32_t
tl_layout_total_in(const TlLayout *l)
{
    uint32_t n = 0;
    for (int i = 0; i < l->nin; i++)
        n += l->in_bits[i];
    return n;
}

uint32_t
tl_layout_total_out(const TlLayout *l)
{
    uint32_t n = 0;
    for (int i = 0; i < l->nout; i++)
        n += l->out_bits[i];
    return n;
}

bool
tl_layout_add_in(TlLayout *l, TlDim d, uint32_t bits)
{
    if ((unsigned)d >= TL_DIM__COUNT || l->nin >= TL_LAYOUT_MAX_DIMS || find_in(l, d) >= 0 || bits > 31 ||
        tl_layout_total_in(l) + bits > TL_LAYOUT_MAX_BITS)
        return false;
    l->in_dim[l->nin] = (uint8_t)d;
    l->in_bits[l->nin++] = (uint8_t)bits;
    return true;
}

bool
tl_layout_add_out(TlLayout *l, TlDim d, uint32_t bits)
{
    if ((unsigned)d >= TL_DIM__COUNT || l->nout >= TL_LAYOUT_MAX_DIMS || find_out(l, d) >= 0 || bits > 31 ||
        tl_layout_total_out(l) + bits > 64)
        return false;
    l->out_dim[l->nout] = (uint8_t)d;
    l->out_bits[l->nout++] = (uint8_t)bits;
    return true;
}

uint32_t
tl_layout_in_bits(const TlLayout *l, TlDim d)
{
    int i = find_in(l, d);
    return i < 0 ? 0 : l->in_bits[i];
}

uint32_t
tl_layout_out_bits(const TlLayout *l, TlDim d)
{
    int i = find_out(l, d);
    return i < 0 ? 0 : l->out_bits[i];
}

bool
tl_layout_has_in(const TlLayout *l, TlDim d)
{
    return find_in(l, d) >= 0;
}

bool
tl_layout_has_out(const TlLayout *l, TlDim d)
{
    return find_out(l, d) >= 0;
}

uint32_t
tl_layout_in_shift(const TlLayout *l, TlDim d)
{
    uint32_t s = 0;
    for (int i = 0; i < l->nin && l->in_dim[i] != d; i++)
        s += l->in_bits[i];
    return s;
}

uint32_t
tl_layout_out_shift(const TlLayout *l, TlDim d)
{
    uint32_t s = 0;
    for (int i = 0; i < l->nout && l->out_dim[i] != d; i++)
        s += l->out_bits[i];
    return s;
}

bool
tl_layout_set(TlLayout *l, TlDim in, uint32_t bit, TlDim out, uint32_t value)
{
    int i = find_in(l, in), o = find_out(l, out);
    if (i < 0 || o < 0 || bit >= l->in_bits[i] || value > low_mask(l->out_bits[o]))
        return false;
    l->basis[tl_layout_in_shift(l, in) + bit] ^= (uint64_t)value << tl_layout_out_shift(l, out);
    return true;
}

uint32_t
tl_layout_get(const TlLayout *l, TlDim in, uint32_t bit, TlDim out)
{
    int i = find_in(l, in);
    if (i < 0 || bit >= l->in_bits[i])
        return 0;
    return tl_layout_out(l, l->basis[tl_layout_in_shift(l, in) + bit], out);
}

uint64_t
tl_layout_apply(const TlLayout *l, uint64_t packed_in)
{
    uint64_t y = 0, x = packed_in & low_mask(tl_layout_total_in(l));
    for (; x; x &= x - 1)
        y ^= l->basis[__builtin_ctzll(x)];
    return y;
}

uint32_t
tl_layout_out(const TlLayout *l, uint64_t packed_out, TlDim d)
{
    int o = find_out(l, d);
    if (o < 0 || !l->out_bits[o]) /* a shift by 64 must not happen for a dimension of size 1 at the top */
        return 0;
    return (uint32_t)(packed_out >> tl_layout_out_shift(l, d) & low_mask(l->out_bits[o]));
}

/* v as the value of input dimension d; bits beyond its size are dropped. */
static uint64_t
place_in(const TlLayout *l, TlDim d, uint64_t v)
{
    uint32_t bits = tl_layout_in_bits(l, d);
    return bits ? (v & low_mask(bits)) << tl_layout_in_shift(l, d) : 0;
}

static uint64_t
mask_in(const TlLayout *l, TlDim d)
{
    return place_in(l, d, UINT64_MAX);
}

static uint64_t
mask_out(const TlLayout *l, TlDim d)
{
    uint32_t bits = tl_layout_out_bits(l, d);
    return bits ? low_mask(bits) << tl_layout_out_shift(l, d) : 0;
}

uint32_t
tl_layout_at(const TlLayout *l, uint32_t reg, uint32_t lane, uint32_t wave, TlDim out)
{
    uint64_t x =
        place_in(l, TL_DIM_REG, reg) | place_in(l, TL_DIM_LANE, lane) | place_in(l, TL_DIM_WAVE, wave);
    return tl_layout_out(l, tl_layout_apply(l, x), out);
}

/* ---- elimination ---------------------------------------------------------------------------- */

typedef struct Elim { /* reduced columns; vec[i] has pivot bit piv[i], which no other column has */
    uint64_t vec[TL_LAYOUT_MAX_BITS], combo[TL_LAYOUT_MAX_BITS];
    uint8_t piv[TL_LAYOUT_MAX_BITS];
    uint32_t n;
} Elim;

/* Takes from v what the columns span; *combo collects the inputs used. */
static uint64_t
elim_reduce(const Elim *e, uint64_t v, uint64_t *combo)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (v >> e->piv[i] & 1) {
            v ^= e->vec[i];
            *combo ^= e->combo[i];
        }
    return v;
}

/* false: v is dependent. */
static bool
elim_add(Elim *e, uint64_t v, uint64_t combo)
{
    v = elim_reduce(e, v, &combo);
    if (!v || e->n >= TL_LAYOUT_MAX_BITS)
        return false;
    uint8_t p = (uint8_t)__builtin_ctzll(v);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->vec[i] >> p & 1) {
            e->vec[i] ^= v;
            e->combo[i] ^= combo;
        }
    e->vec[e->n] = v;
    e->combo[e->n] = combo;
    e->piv[e->n++] = p;
    return true;
}

/* Adds the columns of l whose input bit is in `inputs`; returns those that were dependent. */
static uint64_t
elim_layout(Elim *e, const TlLayout *l, uint64_t inputs)
{
    uint64_t free_bits = 0;
    for (uint32_t b = 0, n = tl_layout_total_in(l); b < n; b++)
        if (inputs >> b & 1 && !elim_add(e, l->basis[b], (uint64_t)1 << b))
            free_bits |= (uint64_t)1 << b;
    return free_bits;
}

uint32_t
tl_layout_rank(const TlLayout *l)
{
    Elim e = {.n = 0};
    elim_layout(&e, l, UINT64_MAX);
    return e.n;
}

bool
tl_layout_is_surjective(const TlLayout *l)
{
    return tl_layout_rank(l) == tl_layout_total_out(l);
}

bool
tl_layout_is_injective(const TlLayout *l)
{
    return tl_layout_rank(l) == tl_layout_total_in(l);
}

uint64_t
tl_layout_free_bits(const TlLayout *l)
{
    Elim e = {.n = 0};
    return elim_layout(&e, l, UINT64_MAX);
}

uint32_t
tl_layout_free_of(const TlLayout *l, TlDim in)
{
    uint32_t bits = tl_layout_in_bits(l, in);
    return bits ? (uint32_t)(tl_layout_free_bits(l) >> tl_layout_in_shift(l, in) & low_mask(bits)) : 0;
}

/* ---- combining ------------------------------------------------------------------------------ */

/* The packed output y of l as packed input of m (dimensions by name); bits m lacks are dropped. */
static uint64_t
out_to_in(const TlLayout *l, uint64_t y, const TlLayout *m)
{
    uint64_t x = 0;
    for (int o = 0; o < l->nout; o++)
        x |= place_in(m, (TlDim)l->out_dim[o], tl_layout_out(l, y, (TlDim)l->out_dim[o]));
    return x;
}

/* The packed output y of l as packed output of m, dimension by dimension shifted left by shift[dim] (NULL:
 * 0). */
static uint64_t
out_to_out(const TlLayout *l, uint64_t y, const TlLayout *m, const uint8_t *shift)
{
    uint64_t z = 0;
    for (int o = 0; o < l->nout; o++) {
        TlDim d = (TlDim)l->out_dim[o];
        uint64_t v = (uint64_t)tl_layout_out(l, y, d) << (shift ? shift[d] : 0);
        uint32_t bits = tl_layout_out_bits(m, d);
        if (bits)
            z |= (v & low_mask(bits)) << tl_layout_out_shift(m, d);
    }
    return z;
}

bool
tl_layout_equal(const TlLayout *a, const TlLayout *b)
{
    for (int d = 0; d < TL_DIM__COUNT; d++) {
        uint32_t nb = tl_layout_in_bits(a, (TlDim)d);
        if (nb != tl_layout_in_bits(b, (TlDim)d) ||
            tl_layout_out_bits(a, (TlDim)d) != tl_layout_out_bits(b, (TlDim)d))
            return false;
        uint32_t sa = tl_layout_in_shift(a, (TlDim)d), sb = tl_layout_in_shift(b, (TlDim)d);
        for (uint32_t i = 0; i < nb; i++)
            if (out_to_out(a, a->basis[sa + i], b, NULL) != b->basis[sb + i])
                return false;
    }
    return true;
}

bool
tl_layout_compose(TlLayout *out, const TlLayout *a, const TlLayout *b)
{
    TlLayout r;
    tl_layout_init(&r);
    for (int o = 0; o < a->nout; o++) {
        TlDim d = (TlDim)a->out_dim[o];
        if (a->out_bits[o] > tl_layout_in_bits(b, d))
            return false;
    }
    for (int i = 0; i < a->nin; i++)
        if (!tl_layout_add_in(&r, (TlDim)a->in_dim[i], a->in_bits[i]))
            return false;
    for (int o = 0; o < b->nout; o++)
        if (!tl_layout_add_out(&r, (TlDim)b->out_dim[o], b->out_bits[o]))
            return false;
    for (uint32_t i = 0, n = tl_layout_total_in(a); i < n; i++)
        r.basis[i] = tl_layout_apply(b, out_to_in(a, a->basis[i], b));
    *out = r;
    return true;
}

bool
tl_layout_invert(TlLayout *out, const TlLayout *l)
{
    Elim e = {.n = 0};
    TlLayout r;
    tl_layout_init(&r);
    elim_layout(&e, l, UINT64_MAX);
    if (e.n != tl_layout_total_out(l))
        return false;
    for (int o = 0; o < l->nout; o++)
        if (!tl_layout_add_in(&r, (TlDim)l->out_dim[o], l->out_bits[o]))
            return false;
    for (int i = 0; i < l->nin; i++)
        if (!tl_layout_add_out(&r, (TlDim)l->in_dim[i], l->in_bits[i]))
            return false;
    for (uint32_t i = 0; i < e.n;
         i++) /* full rank and fully reduced: vec[i] is the unit vector of its pivot */
        r.basis[e.piv[i]] = e.combo[i];
    *out = r;
    return true;
}

bool
tl_layout_product(TlLayout *out, const TlLayout *a, const TlLayout *b)
{
    TlLayout r;
    uint8_t shift[TL_DIM__COUNT];
    tl_layout_init(&r);
    for (int d = 0; d < TL_DIM__COUNT; d++)
        shift[d] = (uint8_t)tl_layout_out_bits(a, (TlDim)d);
    for (int i = 0; i < a->nin + b->nin; i++) {
        TlDim d = (TlDim)(i < a->nin ? a->in_dim[i] : b->in_dim[i - a->nin]);
        if (find_in(&r, d) < 0 && !tl_layout_add_in(&r, d, tl_layout_in_bits(a, d) + tl_layout_in_bits(b, d)))
            return false;
    }
    for (int i = 0; i < a->nout + b->nout; i++) {
        TlDim d = (TlDim)(i < a->nout ? a->out_dim[i] : b->out_dim[i - a->nout]);
        if (find_out(&r, d) < 0 &&
            !tl_layout_add_out(&r, d, tl_layout_out_bits(a, d) + tl_layout_out_bits(b, d)))
            return false;
    }
    for (int i = 0; i < r.nin; i++) {
        TlDim d = (TlDim)r.in_dim[i];
        uint32_t na = tl_layout_in_bits(a, d), nb = tl_layout_in_bits(b, d), s = tl_layout_in_shift(&r, d);
        for (uint32_t j = 0; j < na; j++)
            r.basis[s + j] = out_to_out(a, a->basis[tl_layout_in_shift(a, d) + j], &r, NULL);
        for (uint32_t j = 0; j < nb; j++)
            r.basis[s + na + j] = out_to_out(b, b->basis[tl_layout_in_shift(b, d) + j], &r, shift);
    }
    *out = r;
    return true;
}

bool
tl_layout_divide(TlLayout *out, const TlLayout *l, const TlLayout *a)
{
    TlLayout q, back;
    tl_layout_init(&q);
    for (int i = 0; i < l->nin; i++) {
        uint32_t na = tl_layout_in_bits(a, (TlDim)l->in_dim[i]);
        if (na > l->in_bits[i] || !tl_layout_add_in(&q, (TlDim)l->in_dim[i], l->in_bits[i] - na))
            return false;
    }
    for (int o = 0; o < l->nout; o++) {
        uint32_t na = tl_layout_out_bits(a, (TlDim)l->out_dim[o]);
        if (na > l->out_bits[o] || !tl_layout_add_out(&q, (TlDim)l->out_dim[o], l->out_bits[o] - na))
            return false;
    }
    for (int i = 0; i < q.nin; i++) {
        TlDim d = (TlDim)q.in_dim[i];
        uint32_t na = tl_layout_in_bits(a, d);
        for (uint32_t j = 0; j < q.in_bits[i]; j++)
            for (int o = 0; o < q.nout; o++) {
                TlDim od = (TlDim)q.out_dim[o];
                uint32_t v = tl_layout_get(l, d, na + j, od) >> tl_layout_out_bits(a, od);
                if (q.out_bits[o])
                    q.basis[tl_layout_in_shift(&q, d) + j] |= (uint64_t)v << tl_layout_out_shift(&q, od);
            }
    }
    if (!tl_layout_product(&back, a, &q) || !tl_layout_equal(&back, l))
        return false;
    *out = q;
    return true;
}

bool
tl_layout_restrict(TlLayout *out, const TlLayout *l, uint32_t in_mask)
{
    TlLayout r = *l;
    uint32_t from = 0, to = 0;
    r.nin = 0;
    memset(r.basis, 0, sizeof r.basis);
    for (int i = 0; i < l->nin; i++) {
        if (in_mask >> l->in_dim[i] & 1) {
            r.in_dim[r.nin] = l->in_dim[i];
            r.in_bits[r.nin++] = l->in_bits[i];
            for (uint32_t j = 0; j < l->in_bits[i]; j++)
                r.basis[to++] = l->basis[from + j];
        }
        from += l->in_bits[i];
    }
    *out = r;
    return true;
}

bool
tl_layout_project(TlLayout *out, const TlLayout *l, uint32_t out_mask)
{
    TlLayout r;
    tl_layout_init(&r);
    for (int i = 0; i < l->nin; i++)
        if (!tl_layout_add_in(&r, (TlDim)l->in_dim[i], l->in_bits[i]))
            return false;
    for (int o = 0; o < l->nout; o++)
        if (out_mask >> l->out_dim[o] & 1 && !tl_layout_add_out(&r, (TlDim)l->out_dim[o], l->out_bits[o]))
            return false;
    for (uint32_t i = 0, n = tl_layout_total_in(l); i < n; i++)
        r.basis[i] = out_to_out(l, l->basis[i], &r, NULL);
    *out = r;
    return true;
}

bool
tl_layout_identity(TlLayout *out, TlDim in, TlDim outd, uint32_t bits)
{
    tl_layout_init(out);
    if (!tl_layout_add_in(out, in, bits) || !tl_layout_add_out(out, outd, bits))
        return false;
    for (uint32_t i = 0; i < bits; i++)
        out->basis[i] = (uint64_t)1 << i;
    return true;
}

bool
tl_layout_rename_out(TlLayout *l, TlDim from, TlDim to)
{
    int i = find_out(l, from);
    if (i < 0 || (from != to && find_out(l, to) >= 0) || (unsigned)to >= TL_DIM__COUNT)
        return false;
    l->out_dim[i] = (uint8_t)to;
    return true;
}

bool
tl_layout_swap_out(TlLayout *l, TlDim a, TlDim b)
{
    int i = find_out(l, a), j = find_out(l, b);
    if (i < 0 || j < 0)
        return false;
    l->out_dim[i] = (uint8_t)b;
    l->out_dim[j] = (uint8_t)a;
    return true;
}

/* ---- registers ------------------------------------------------------------------------------ */

uint32_t
tl_layout_contiguity(const TlLayout *l, TlDim out)
{
    uint32_t n = tl_layout_in_bits(l, TL_DIM_REG), s = tl_layout_in_shift(l, TL_DIM_REG);
    uint32_t os = tl_layout_out_shift(l, out), v = 0, ob = tl_layout_out_bits(l, out);
    while (v < n && v < ob && l->basis[s + v] == (uint64_t)1 << (os + v))
        v++;
    for (uint32_t b = 0, all = tl_layout_total_in(l); b < all; b++) {
        if (b >= s && b < s + v)
            continue;
        uint64_t low = v ? l->basis[b] >> os & low_mask(v) : 0;
        if (low) { /* this bit shifts the run: only shorter runs stay aligned */
            v = (uint32_t)__builtin_ctzll(low);
            b = (uint32_t)-1; /* registers that dropped out of the run have to be looked at again */
        }
    }
    return 1u << v;
}

bool
tl_layout_permute_regs(TlLayout *out, const TlLayout *l, const uint8_t *perm)
{
    uint32_t n = tl_layout_in_bits(l, TL_DIM_REG), s = tl_layout_in_shift(l, TL_DIM_REG);
    uint64_t seen = 0;
    TlLayout r = *l;
    for (uint32_t i = 0; i < n; i++) {
        if (perm[i] >= n || seen >> perm[i] & 1)
            return false;
        seen |= (uint64_t)1 << perm[i];
        r.basis[s + i] = l->basis[s + perm[i]];
    }
    *out = r;
    return true;
}

void
tl_layout_regs_along(const TlLayout *l, TlDim out, uint8_t *perm)
{
    uint32_t n = tl_layout_in_bits(l, TL_DIM_REG), s = tl_layout_in_shift(l, TL_DIM_REG), at = 0;
    uint32_t os = tl_layout_out_shift(l, out), ob = tl_layout_out_bits(l, out);
    uint64_t used = 0;
    for (uint32_t o = 0; o < ob; o++)
        for (uint32_t i = 0; i < n; i++)
            if (!(used >> i & 1) && l->basis[s + i] == (uint64_t)1 << (os + o)) {
                used |= (uint64_t)1 << i;
                perm[at++] = (uint8_t)i;
                break;
            }
    for (uint32_t i = 0; i < n; i++)
        if (!(used >> i & 1))
            perm[at++] = (uint8_t)i;
}

uint32_t
tl_layout_regs_like(const TlLayout *l, const TlLayout *like, uint32_t want, uint8_t *perm)
{
    uint32_t n = tl_layout_in_bits(l, TL_DIM_REG), s = tl_layout_in_shift(l, TL_DIM_REG), at = 0;
    uint32_t m = tl_layout_in_bits(like, TL_DIM_REG), ls = tl_layout_in_shift(like, TL_DIM_REG);
    uint64_t used = 0;
    for (; at < want && at < m; at++) {
        uint64_t v = out_to_out(like, like->basis[ls + at], l, NULL);
        uint32_t i = 0;
        while (i < n && (used >> i & 1 || l->basis[s + i] != v || !v))
            i++;
        if (i == n)
            break;
        used |= (uint64_t)1 << i;
        perm[at] = (uint8_t)i;
    }
    uint32_t matched = at;
    for (uint32_t i = 0; i < n; i++)
        if (!(used >> i & 1))
            perm[at++] = (uint8_t)i;
    return matched;
}

uint32_t
tl_layout_perm_index(const uint8_t *perm, uint32_t nbits, uint32_t r)
{
    uint32_t old = 0;
    for (uint32_t i = 0; i < nbits; i++)
        old |= (r >> i & 1) << perm[i];
    return old;
}

/* ---- conversion and reduction --------------------------------------------------------------- */

/* x with src(x) = want, taken from the smallest of the nested input sets that can; *level: which. */
static bool
solve_nested(const Elim *e, uint32_t nlevels, uint64_t want, uint64_t *x, uint32_t *level)
{
    for (uint32_t i = 0; i < nlevels; i++) {
        uint64_t combo = 0;
        if (!elim_reduce(&e[i], want, &combo)) {
            *x = combo;
            *level = i;
            return true;
        }
    }
    return false;
}

bool
tl_layout_convert(TlConvert *kind, TlLayout *conv, const TlLayout *src, const TlLayout *dst)
{
    Elim e[3] = {{.n = 0}, {.n = 0}, {.n = 0}};
    uint64_t regs = mask_in(src, TL_DIM_REG), lanes = regs | mask_in(src, TL_DIM_LANE);
    uint32_t worst = 0;
    bool same = true;
    TlLayout r;
    tl_layout_init(&r);
    for (int d = 0; d < TL_DIM__COUNT; d++)
        if (tl_layout_out_bits(src, (TlDim)d) != tl_layout_out_bits(dst, (TlDim)d))
            return false;
    elim_layout(&e[0], src, regs);
    e[1] = e[0];
    elim_layout(&e[1], src, lanes & ~regs);
    e[2] = e[1];
    elim_layout(&e[2], src, ~lanes);
    for (int i = 0; i < dst->nin; i++)
        if (!tl_layout_add_in(&r, (TlDim)dst->in_dim[i], dst->in_bits[i]))
            return false;
    for (int i = 0; i < src->nin; i++)
        if (!tl_layout_add_out(&r, (TlDim)src->in_dim[i], src->in_bits[i]))
            return false;
    for (int i = 0; i < dst->nin; i++) {
        TlDim d = (TlDim)dst->in_dim[i];
        for (uint32_t j = 0; j < dst->in_bits[i]; j++) {
            uint32_t at = tl_layout_in_shift(dst, d) + j, level = 0;
            uint64_t own = place_in(src, d, (uint64_t)1 << j), x = 0;
            uint64_t want = out_to_out(dst, dst->basis[at], src, NULL);
            /* Keep the own lane (wave) and mend the rest with registers, or lanes, as far as they go. */
            if (!solve_nested(e, d == TL_DIM_REG ? 3 : 2, want ^ tl_layout_apply(src, own), &x, &level)) {
                own = 0;
                if (!solve_nested(e, 3, want, &x, &level))
                    return false;
            }
            if (!own && d != TL_DIM_REG) /* not from the own lane (wave), if src has it at all */
                level = TL_MAX(level, d == TL_DIM_LANE ? 1u : 2u);
            r.basis[at] = own ^ x;
            if (!r.basis[at] || r.basis[at] != place_in(src, d, (uint64_t)1 << j))
                same = false;
            worst = TL_MAX(worst, level);
        }
    }
    for (int d = 0; d < TL_DIM__COUNT; d++)
        if (tl_layout_in_bits(src, (TlDim)d) != tl_layout_in_bits(dst, (TlDim)d))
            same = false;
    *kind = same         ? TL_CONVERT_NONE
            : worst == 0 ? TL_CONVERT_REGS
            : worst == 1 ? TL_CONVERT_LANES
                         : TL_CONVERT_LDS;
    *conv = r;
    return true;
}

bool
tl_layout_reduce_masks(const TlLayout *l, TlDim dim, uint32_t *regs, uint32_t *lanes, uint32_t *waves)
{
    uint64_t free_bits = tl_layout_free_bits(l), along = mask_out(l, dim), walk = 0;
    for (uint32_t b = 0, n = tl_layout_total_in(l); b < n; b++) {
        if (free_bits >> b & 1 || !(l->basis[b] & along))
            continue;
        if (l->basis[b] & ~along)
            return false;
        walk |= (uint64_t)1 << b;
    }
    if ((uint32_t)__builtin_popcountll(walk) != tl_layout_out_bits(l, dim))
        return false; /* some element along dim is in no register at all */
    *regs = (uint32_t)((walk & mask_in(l, TL_DIM_REG)) >> tl_layout_in_shift(l, TL_DIM_REG));
    *lanes = (uint32_t)((walk & mask_in(l, TL_DIM_LANE)) >> tl_layout_in_shift(l, TL_DIM_LANE));
    *waves = (uint32_t)((walk & mask_in(l, TL_DIM_WAVE)) >> tl_layout_in_shift(l, TL_DIM_WAVE));
    return true;
}

bool
tl_layout_reduced(TlLayout *out, const TlLayout *l, TlDim dim)
{
    uint32_t regs, lanes, waves;
    TlLayout p, r;
    if (!tl_layout_reduce_masks(l, dim, &regs, &lanes, &waves) ||
        !tl_layout_project(&p, l, ~((uint32_t)1 << dim)))
        return false;
    r = p;
    memset(r.basis, 0, sizeof r.basis);
    uint32_t from = 0, to = 0;
    for (int i = 0; i < p.nin; i++)
        for (uint32_t j = 0, kept = p.in_bits[i]; j < kept; j++, from++) {
            if (p.in_dim[i] == TL_DIM_REG && regs >> j & 1)
                r.in_bits[i]--;
            else
                r.basis[to++] = p.basis[from];
        }
    *out = r;
    return true;
}
