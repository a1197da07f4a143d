/* fragment.c - register and lane maps of matrix instructions, whole tiles of them, and blocked layouts.
 *
 * The maps are written from the instruction's rule (which lane bit is a row, which register bit is a k), one
 * small function a family, so that every instruction of mma.def of that family follows without a table of
 * lanes.
 */
#include "layout/layout.h"

static uint32_t
log2u(uint32_t n) /* n a power of two */
{
    return (uint32_t)__builtin_ctz(n);
}

static bool
is_pow2(uint32_t n)
{
    return n && !(n & (n - 1));
}

/* Hands out input bits in order: each call gives the next unused bit of `in` a basis. */
typedef struct Fill {
    TlLayout *l;
    uint8_t next[TL_DIM__COUNT];
    bool ok;
} Fill;

/* The next `bits` bits of `in` walk along `out` starting at its bit `from`. */
static void
walk(Fill *f, TlDim in, uint32_t bits, TlDim out, uint32_t from)
{
    for (uint32_t i = 0; i < bits; i++)
        if (!tl_layout_set(f->l, in, f->next[in]++, out, 1u << (from + i)))
            f->ok = false;
}

static void
skip(Fill *f, TlDim in, uint32_t bits) /* the next bits only replicate */
{
    f->next[in] = (uint8_t)(f->next[in] + bits);
}

/* ---- one instruction ------------------------------------------------------------------------ */

static uint32_t
mma_lanes(const TlMma *m)
{
    return m->form == TL_MMAFORM_MFMA || m->form == TL_MMAFORM_XF32 || m->form == TL_MMAFORM_SCALE ? 64 : 32;
}

static bool
is_gfx11(const TlMma *m)
{
    return m->passes[TL_TARGET_GFX1100] != 0;
}

static bool
is_f64_4x4(const TlMma *m)
{
    return m->a == TL_ELEM_F64 && m->m == 4;
}

/* Elements of operand f in one lane (register index space). */
static uint32_t
mma_elems(const TlMma *m, TlFrag f)
{
    uint32_t regs = f == TL_FRAG_A ? m->a_regs : f == TL_FRAG_B ? m->b_regs : m->c_regs;
    uint32_t bits = tl_elem_bits((TlElem)(f == TL_FRAG_A ? m->a : f == TL_FRAG_B ? m->b : m->c));
    if (f == TL_FRAG_C && is_gfx11(m) && bits == 16)
        return regs; /* one result a dword */
    return regs * 32 / bits;
}

/* A and B: `line` is the dimension of rows (columns) of n values, kdim that of k. */
static void
frag_ab(Fill *f, const TlMma *m, uint32_t n, uint32_t elems, TlDim line, TlDim kdim)
{
    uint32_t lanes = mma_lanes(m), nb = log2u(n), eb = log2u(elems), hb = log2u(lanes) - nb;
    walk(f, TL_DIM_LANE, nb, line, 0);
    if (is_f64_4x4(m)) { /* lane = 16 k + 4 block + line */
        walk(f, TL_DIM_LANE, 2, TL_DIM_BLOCK, 0);
        walk(f, TL_DIM_LANE, 2, kdim, 0);
    } else if (m->blocks > 1) {
        walk(f, TL_DIM_LANE, hb, TL_DIM_BLOCK, 0);
        walk(f, TL_DIM_REG, eb, kdim, 0);
    } else if (m->form == TL_MMAFORM_SCALE) { /* two runs of 16, the second behind those of all lane groups */
        walk(f, TL_DIM_REG, 4, kdim, 0);
        walk(f, TL_DIM_REG, eb - 4, kdim, 4 + hb);
        walk(f, TL_DIM_LANE, hb, kdim, 4);
    } else if (lanes == 64) {
        walk(f, TL_DIM_REG, eb, kdim, 0);
        walk(f, TL_DIM_LANE, hb, kdim, eb);
    } else if (is_gfx11(m)) { /* lanes 16..31 repeat lanes 0..15 */
        walk(f, TL_DIM_REG, eb, kdim, 0);
        skip(f, TL_DIM_LANE, hb);
    } else if (tl_elem_bits((TlElem)m->a) == 16) { /* gfx12: runs of 4 k alternate between the lane halves */
        walk(f, TL_DIM_REG, 2, kdim, 0);
        walk(f, TL_DIM_REG, 1, kdim, 3);
        walk(f, TL_DIM_LANE, 1, kdim, 2);
    } else {
        walk(f, TL_DIM_REG, eb, kdim, 0);
        walk(f, TL_DIM_LANE, hb, kdim, eb);
    }
}

static void
frag_c(Fill *f, const TlMma *m, uint32_t elems)
{
    uint32_t eb = log2u(elems), nb = log2u(m->n), mb = log2u(m->m);
    if (is_f64_4x4(m)) { /* lane = 16 i + 4 block + j */
        walk(f, TL_DIM_LANE, 2, TL_DIM_1, 0);
        walk(f, TL_DIM_LANE, 2, TL_DIM_BLOCK, 0);
        walk(f, TL_DIM_LANE, 2, TL_DIM_0, 0);
        return;
    }
    walk(f, TL_DIM_LANE, nb, TL_DIM_1, 0);
    if (m->c == TL_ELEM_F64) {
        walk(f, TL_DIM_LANE, 2, TL_DIM_0, 0);
        walk(f, TL_DIM_REG, 2, TL_DIM_0, 2);
    } else if (mma_lanes(m) == 64 && m->m == 4) {
        walk(f, TL_DIM_REG, 2, TL_DIM_0, 0);
        walk(f, TL_DIM_LANE, 4, TL_DIM_BLOCK, 0);
    } else if (mma_lanes(m) == 64) { /* groups of 4 rows: registers, then lane groups, then registers again */
        walk(f, TL_DIM_REG, 2, TL_DIM_0, 0);
        walk(f, TL_DIM_LANE, 6 - nb, TL_DIM_0, 2);
        walk(f, TL_DIM_REG, mb - 2 - (6 - nb), TL_DIM_0, 2 + 6 - nb);
        walk(f, TL_DIM_REG, eb - (mb - (6 - nb)), TL_DIM_BLOCK, 0);
    } else if (is_gfx11(m)) {
        walk(f, TL_DIM_LANE, 1, TL_DIM_0, 0);
        walk(f, TL_DIM_REG, 3, TL_DIM_0, 1);
    } else {
        walk(f, TL_DIM_REG, 3, TL_DIM_0, 0);
        walk(f, TL_DIM_LANE, 1, TL_DIM_0, 3);
    }
}

bool
tl_frag_mma(const TlMma *m, TlFrag frag, TlLayout *out)
{
    uint32_t elems = mma_elems(m, frag), lanes = mma_lanes(m);
    TlLayout l;
    Fill f = {.l = &l, .ok = true};
    tl_layout_init(&l);
    if (!is_pow2(elems) || !tl_layout_add_in(&l, TL_DIM_REG, log2u(elems)) ||
        !tl_layout_add_in(&l, TL_DIM_LANE, log2u(lanes)) ||
        !tl_layout_add_out(&l, TL_DIM_0, log2u(frag == TL_FRAG_B ? m->k : m->m)) ||
        !tl_layout_add_out(&l, TL_DIM_1, log2u(frag == TL_FRAG_A ? m->k : m->n)))
        return false;
    if (m->blocks > 1 && !tl_layout_add_out(&l, TL_DIM_BLOCK, log2u(m->blocks)))
        return false;
    if (frag == TL_FRAG_A)
        frag_ab(&f, m, m->m, elems, TL_DIM_0, TL_DIM_1);
    else if (frag == TL_FRAG_B)
        frag_ab(&f, m, m->n, elems, TL_DIM_1, TL_DIM_0);
    else
        frag_c(&f, m, elems);
    *out = l;
    return f.ok;
}

/* ---- tiles of instructions ------------------------------------------------------------------ */

/* Rows of C one instruction covers: its i, or its j when the operands are swapped. */
static uint32_t
inst_m(const TlDot *d)
{
    return d->swapped ? d->mma->n : d->mma->m;
}

static uint32_t
inst_n(const TlDot *d)
{
    return d->swapped ? d->mma->m : d->mma->n;
}

uint32_t
tl_dot_tiles_m(const TlDot *d)
{
    return d->m / d->wave_m / inst_m(d);
}

uint32_t
tl_dot_tiles_n(const TlDot *d)
{
    return d->n / d->wave_n / inst_n(d);
}

uint32_t
tl_dot_steps_k(const TlDot *d)
{
    return d->k / d->mma->k;
}

const char *
tl_dot_check(const TlDot *d, const TlTarget *t)
{
    if (!d->mma || d->mma->blocks != 1)
        return "no one-block matrix instruction";
    if (t && !tl_mma_on(d->mma, t))
        return "the chip does not have this matrix instruction";
    if (!is_pow2(d->m) || !is_pow2(d->n) || !is_pow2(d->k) || !is_pow2(d->wave_m) || !is_pow2(d->wave_n) ||
        !is_pow2(d->kpack))
        return "sizes of a matrix tile must be powers of two";
    if (t && (uint64_t)d->wave_m * d->wave_n * t->wave > t->max_workgroup)
        return "too many waves";
    if (d->mpair > 8 || d->npair > 8 || d->m / d->wave_m < inst_m(d) << d->mpair)
        return "the tile has too few rows for this instruction and number of waves";
    if (d->n / d->wave_n < inst_n(d) << d->npair)
        return "the tile has too few columns for this instruction and number of waves";
    if (d->kpack > 64 || d->k < d->mma->k * d->kpack)
        return "the tile is too short in k for this instruction";
    return NULL;
}

/* A or B over the whole tile. `line`: the instruction's own rows or columns, `tiles` of them a wave, pair
 * bits interleaved lowest. */
static bool
dot_operand(const TlDot *d, TlFrag frag, TlLayout *out)
{
    bool is_a = frag == TL_FRAG_A;
    TlFrag hw = is_a == !d->swapped ? TL_FRAG_A : TL_FRAG_B;
    TlDim line = is_a ? TL_DIM_0 : TL_DIM_1, kdim = is_a ? TL_DIM_1 : TL_DIM_0;
    TlDim hw_line = hw == TL_FRAG_A ? TL_DIM_0 : TL_DIM_1, hw_k = hw == TL_FRAG_A ? TL_DIM_1 : TL_DIM_0;
    uint32_t pair = is_a ? d->mpair : d->npair, inst = log2u(is_a ? inst_m(d) : inst_n(d));
    uint32_t tiles = log2u(is_a ? tl_dot_tiles_m(d) : tl_dot_tiles_n(d)), size = log2u(is_a ? d->m : d->n);
    uint32_t wm = log2u(d->wave_m), wn = log2u(d->wave_n);
    TlLayout one, l;
    if (!tl_frag_mma(d->mma, hw, &one))
        return false;
    uint32_t eb = tl_layout_in_bits(&one, TL_DIM_REG), lb = tl_layout_in_bits(&one, TL_DIM_LANE);
    uint32_t ub = log2u(d->kpack), sb = log2u(tl_dot_steps_k(d)) - ub, hb = log2u(d->mma->k) - eb;
    Fill f = {.l = &l, .ok = true};
    tl_layout_init(&l);
    if (!tl_layout_add_in(&l, TL_DIM_REG, eb + tiles + ub + sb) || !tl_layout_add_in(&l, TL_DIM_LANE, lb) ||
        !tl_layout_add_in(&l, TL_DIM_WAVE, wm + wn) ||
        !tl_layout_add_out(&l, TL_DIM_0, is_a ? size : log2u(d->k)) ||
        !tl_layout_add_out(&l, TL_DIM_1, is_a ? log2u(d->k) : size))
        return false;
    walk(&f, TL_DIM_REG, eb, kdim, 0);
    walk(&f, TL_DIM_REG, pair, line, 0);
    walk(&f, TL_DIM_REG, ub, kdim, eb);
    walk(&f, TL_DIM_REG, sb, kdim, eb + ub + hb);
    walk(&f, TL_DIM_REG, tiles - pair, line, pair + inst);
    for (uint32_t b = 0, h = 0; b < lb;
         b++) { /* lane bits along the line, along k (renumbered in order), or replicas */
        uint32_t i = tl_layout_get(&one, TL_DIM_LANE, b, hw_line);
        if (i)
            f.ok &= tl_layout_set(&l, TL_DIM_LANE, b, line, i << pair);
        else if (tl_layout_get(&one, TL_DIM_LANE, b, hw_k))
            f.ok &= tl_layout_set(&l, TL_DIM_LANE, b, kdim, 1u << (eb + ub + h++));
    }
    if (is_a) {
        skip(&f, TL_DIM_WAVE, wn);
        walk(&f, TL_DIM_WAVE, wm, line, size - wm);
    } else {
        walk(&f, TL_DIM_WAVE, wn, line, size - wn);
    }
    *out = l;
    return f.ok;
}

static bool
dot_result(const TlDot *d, TlLayout *out)
{
    uint32_t wm = log2u(d->wave_m), wn = log2u(d->wave_n), mb = log2u(d->m), nb = log2u(d->n);
    uint32_t tm = log2u(tl_dot_tiles_m(d)), tn = log2u(tl_dot_tiles_n(d));
    TlDim hw_m = d->swapped ? TL_DIM_1 : TL_DIM_0, hw_n = d->swapped ? TL_DIM_0 : TL_DIM_1;
    TlLayout one, l;
    if (!tl_frag_mma(d->mma, TL_FRAG_C, &one))
        return false;
    uint32_t rb = tl_layout_in_bits(&one, TL_DIM_REG), lb = tl_layout_in_bits(&one, TL_DIM_LANE);
    Fill f = {.l = &l, .ok = true};
    tl_layout_init(&l);
    if (!tl_layout_add_in(&l, TL_DIM_REG, rb + tm + tn) || !tl_layout_add_in(&l, TL_DIM_LANE, lb) ||
        !tl_layout_add_in(&l, TL_DIM_WAVE, wm + wn) || !tl_layout_add_out(&l, TL_DIM_0, mb) ||
        !tl_layout_add_out(&l, TL_DIM_1, nb))
        return false;
    for (uint32_t b = 0; b < rb + lb; b++) {
        TlDim in = b < rb ? TL_DIM_REG : TL_DIM_LANE;
        uint32_t bit = b < rb ? b : b - rb;
        f.ok &= tl_layout_set(&l, in, bit, TL_DIM_0, tl_layout_get(&one, in, bit, hw_m) << d->mpair);
        f.ok &= tl_layout_set(&l, in, bit, TL_DIM_1, tl_layout_get(&one, in, bit, hw_n) << d->npair);
    }
    skip(&f, TL_DIM_REG, rb);
    walk(&f, TL_DIM_REG, d->npair, TL_DIM_1, 0);
    walk(&f, TL_DIM_REG, tn - d->npair, TL_DIM_1, d->npair + log2u(inst_n(d)));
    walk(&f, TL_DIM_REG, d->mpair, TL_DIM_0, 0);
    walk(&f, TL_DIM_REG, tm - d->mpair, TL_DIM_0, d->mpair + log2u(inst_m(d)));
    walk(&f, TL_DIM_WAVE, wn, TL_DIM_1, nb - wn);
    walk(&f, TL_DIM_WAVE, wm, TL_DIM_0, mb - wm);
    *out = l;
    return f.ok;
}

bool
tl_dot_layout(const TlDot *d, TlFrag f, TlLayout *out)
{
    if (tl_dot_check(d, NULL))
        return false;
    return f == TL_FRAG_C ? dot_result(d, out) : dot_operand(d, f, out);
}

TlDotSlice
tl_dot_slice(const TlDot *d, TlFrag f, uint32_t mt, uint32_t nt, uint32_t ks)
{
    TlFrag hw = f == TL_FRAG_C ? f : (f == TL_FRAG_A) == !d->swapped ? TL_FRAG_A : TL_FRAG_B;
    TlDotSlice s = {.count = mma_elems(d->mma, hw), .stride = 1};
    if (f == TL_FRAG_C) {
        s.reg = s.count * (nt + tl_dot_tiles_n(d) * mt);
    } else {
        uint32_t tile = f == TL_FRAG_A ? mt : nt, pair = f == TL_FRAG_A ? d->mpair : d->npair;
        uint32_t low = tile & ((1u << pair) - 1), high = tile >> pair;
        s.reg = s.count * (low + ((ks + tl_dot_steps_k(d) * high) << pair));
    }
    return s;
}

/* ---- blocked layouts ------------------------------------------------------------------------ */

bool
tl_layout_blocked(const TlBlocked *b, TlLayout *out)
{
    uint32_t order[4], used[4] = {0}, n = 0, total = 0;
    if (b->rank < 1 || b->rank > 4 || b->minor >= b->rank || !is_pow2(b->wave) || !is_pow2(b->waves) ||
        !is_pow2(b->elem_bytes) || !is_pow2(b->max_vec_bytes))
        return false;
    order[n++] = b->minor;
    for (uint32_t i = b->rank; i-- > 0;)
        if (i != b->minor)
            order[n++] = i;
    for (uint32_t i = 0; i < b->rank; i++) {
        if (!is_pow2(b->shape[i]))
            return false;
        total += log2u(b->shape[i]);
    }
    uint32_t rows = b->rank > 1 ? (b->rows ? b->rows : 1) : 1;
    if (!is_pow2(rows) || (b->rank > 1 && rows > b->shape[order[1]]))
        return false;
    uint32_t threads = log2u(b->wave) + log2u(b->waves), rowb = log2u(rows);
    uint32_t vec = TL_MIN(b->max_vec_bytes > b->elem_bytes ? log2u(b->max_vec_bytes / b->elem_bytes) : 0,
                          log2u(b->shape[b->minor]));
    while (vec && (b->elem_bytes << vec) > 4 && total < vec + rowb + threads)
        vec--;
    uint32_t rest = total - vec - rowb, repeats = rest > threads ? rest - threads : 0;
    TlLayout l;
    Fill f = {.l = &l, .ok = true};
    tl_layout_init(&l);
    if (!tl_layout_add_in(&l, TL_DIM_REG, vec + rowb + repeats) ||
        !tl_layout_add_in(&l, TL_DIM_LANE, log2u(b->wave)) ||
        !tl_layout_add_in(&l, TL_DIM_WAVE, log2u(b->waves)))
        return false;
    for (uint32_t i = 0; i < b->rank; i++)
        if (!tl_layout_add_out(&l, (TlDim)(TL_DIM_0 + i), log2u(b->shape[i])))
            return false;
    walk(&f, TL_DIM_REG, vec, (TlDim)(TL_DIM_0 + b->minor), 0);
    used[b->minor] = vec;
    if (rowb) {
        walk(&f, TL_DIM_REG, rowb, (TlDim)(TL_DIM_0 + order[1]), 0);
        used[order[1]] = rowb;
    }
    uint32_t thread = 0;
    for (uint32_t i = 0; i < b->rank; i++)
        for (uint32_t d = order[i], bit = used[d]; bit < log2u(b->shape[d]); bit++, thread++)
            walk(&f,
                 thread < log2u(b->wave) ? TL_DIM_LANE
                 : thread < threads      ? TL_DIM_WAVE
                                         : TL_DIM_REG,
                 1, (TlDim)(TL_DIM_0 + d), bit);
    *out = l;
    return f.ok;
}
