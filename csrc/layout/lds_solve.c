/* lds_solve.c - finds an LDS map without bank conflicts for a set of accesses.
 *
 * Offset bits are laid out as [vector][bank bits][row bits]. The vector is what all accesses move as one run
 * of registers; the other coordinates follow in memory order. A swizzle XORs row bits (sources) into bank
 * bits above the vector (destinations), so it is a small matrix M: one column of destination bits a source.
 * An instruction is free of conflicts if no combination of lanes of one phase lands on another dword of the
 * same bank. As everything is linear, that is one condition a non-zero combination v of the phase's
 * generators: bank(v) + M rows(v) != 0. The few conditions that do not hold by themselves are solved by
 * depth-first search over the columns, fewest XORs first; among equals the map with fewest base addresses
 * wins. What cannot be made free (too few bank bits above the vector) is reduced greedily, and narrower
 * vectors and the other memory order are tried; the cheapest in cycles is taken.
 */
#include "layout/lds_internal.h"

enum { MAX_ACC = 8, MAX_COND = 256, MAX_SRC = 28, MAX_SOLUTIONS = 32, NODE_BUDGET = 2000 };

typedef struct Cond {
    uint32_t v;     /* byte offset */
    uint32_t banks; /* mask of bank bits */
} Cond;

typedef struct Solver {
    const TlTarget *t;
    const TlLdsAccess *acc;
    TlLdsBytes bytes[MAX_ACC];
    const TlLdsPhase *phase[MAX_ACC];
    uint32_t n;
    uint32_t first_dst, top_dst; /* destinations: byte offset bits [first_dst, top_dst) */
    Cond cond[MAX_COND];
    uint32_t ncond;
    uint8_t src[MAX_SRC]; /* sources that occur in conditions, ascending */
    uint32_t nsrc, nodes;
    uint32_t col[32]; /* of each source bit: destination bits it is XORed into */
    uint32_t best[32], best_score, nsolutions;
} Solver;

static uint32_t
weight_of(const TlLdsAccess *a)
{
    return a->weight ? a->weight : 1;
}

static uint32_t
swizzle(const uint32_t *col, uint32_t v)
{
    uint32_t r = v;
    for (uint32_t high = v; high; high &= high - 1)
        r ^= col[__builtin_ctz(high)];
    return r;
}

/* Base addresses all accesses need under col. */
static uint32_t
count_groups(const Solver *s, const uint32_t *col)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        TlLdsBytes b = s->bytes[i];
        for (uint32_t j = 0; j < b.nregs; j++)
            b.reg[j] = swizzle(col, b.reg[j]);
        for (uint32_t j = 0; j < b.nlanes; j++)
            b.lane[j] = swizzle(col, b.lane[j]);
        for (uint32_t j = 0; j < b.nwaves; j++)
            b.wave[j] = swizzle(col, b.wave[j]);
        groups += 1u << tl_rank32(b.reg, b.nregs, tl_lds_xor_bits(&b, UINT32_MAX));
    }
    return groups;
}

/* Cost of all instructions of a thread: each takes its input or output port (one of two that share the banks)
 * or, if longer, the banks; one cycle more to be issued. *extra: conflict cycles alone. */
static uint32_t
count_cycles(const Solver *s, const uint32_t *col, uint32_t *extra)
{
    uint32_t total = 0;
    *extra = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const TlLdsBytes *b = &s->bytes[i];
        uint32_t lane[6];
        for (uint32_t j = 0; j < b->nlanes; j++)
            lane[j] = swizzle(col, b->lane[j]);
        uint32_t c = tl_lds_linear_conflicts(s->t, s->phase[i], b->width, lane);
        uint32_t port = TL_MAX(b->width, 4) + (s->acc[i].op == TL_LDS_WRITE ? 4 : 0);
        uint32_t banks = 2 * (c + ((uint32_t)s->t->wave >> s->phase[i]->nbits));
        uint32_t times = weight_of(&s->acc[i]) << b->nregs;
        *extra += times * c;
        total += times * (1 + c + TL_MAX(port, banks));
    }
    return total;
}

/* ---- conditions and search ------------------------------------------------------------------ */

static bool
add_cond(Solver *s, uint32_t v, uint32_t banks)
{
    for (uint32_t i = 0; i < s->ncond; i++)
        if (s->cond[i].v == v && s->cond[i].banks == banks)
            return true;
    if (s->ncond == MAX_COND)
        return false;
    s->cond[s->ncond++] = (Cond){v, banks};
    return true;
}

/* Bits that may be sources: above the 128 bytes that 32 banks span. */
enum { SOURCE_BITS = ~127u & 0x0fffffff };

/* The offsets between lanes of one phase, as generators. */
static uint32_t
phase_vectors(const Solver *s, uint32_t i, uint32_t *v)
{
    const TlLdsPhase *p = s->phase[i];
    for (uint32_t g = 0; g < p->nbits; g++) {
        v[g] = 0;
        for (uint32_t lanes = p->gen[g]; lanes; lanes &= lanes - 1)
            v[g] ^= s->bytes[i].lane[__builtin_ctz(lanes)];
    }
    return p->nbits;
}

/* false: no swizzle can meet all conditions, or there are too many. *least: XORs it takes at any rate, as
 * each adds at most one to the rank of an access's bank bits. */
static bool
collect_conditions(Solver *s, uint32_t *least)
{
    uint32_t used = 0;
    bool possible = true;
    *least = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t gen[6], n = phase_vectors(s, i, gen);
        uint32_t banks = (s->phase[i]->banks - 1u) * 4, fixed = banks & ((1u << s->first_dst) - 1);
        *least = TL_MAX(*least, tl_rank32(gen, n, ~3u) - tl_rank32(gen, n, banks));
        /* more lanes on one place of the vector than there are vectors side by side in the banks */
        if (tl_rank32(gen, n, ~3u) - tl_rank32(gen, n, fixed) > (uint32_t)__builtin_popcount(banks & ~fixed))
            possible = false;
        for (uint32_t c = 1; c < 1u << n; c++) {
            uint32_t v = 0;
            for (uint32_t g = 0; g < n; g++)
                if (c >> g & 1)
                    v ^= gen[g];
            uint32_t rows = v & SOURCE_BITS;
            if (v < 4 || v & fixed || (!rows && v & banks))
                continue; /* same dword, or apart whatever the swizzle */
            if (!rows || !add_cond(s, v, banks))
                possible = false;
            used |= rows;
        }
    }
    for (uint32_t b = 0; b < 32; b++)
        if (used >> b & 1 && s->nsrc < MAX_SRC)
            s->src[s->nsrc++] = (uint8_t)b;
    return possible;
}

/* All conditions whose highest source is the one just set. */
static bool
holds_at(const Solver *s, uint32_t src)
{
    for (uint32_t i = 0; i < s->ncond; i++) {
        uint32_t rows = s->cond[i].v & SOURCE_BITS;
        if (31u - (uint32_t)__builtin_clz(rows) == src && !(swizzle(s->col, s->cond[i].v) & s->cond[i].banks))
            return false;
    }
    return true;
}

/* Destinations source bit `src` may go into. */
static uint32_t
allowed(const Solver *s, uint32_t src)
{
    uint32_t top = TL_MIN(s->top_dst, src);
    return top > s->first_dst ? ((1u << top) - 1) & ~((1u << s->first_dst) - 1) : 0;
}

static void
solution(Solver *s)
{
    uint32_t score = count_groups(s, s->col);
    if (!s->nsolutions++ || score < s->best_score) {
        s->best_score = score;
        memcpy(s->best, s->col, sizeof s->best);
    }
}

/* Sets columns of sources at.. with exactly `left` XORs in all. */
static void
search(Solver *s, uint32_t at, uint32_t left)
{
    if (at == s->nsrc) {
        if (!left)
            solution(s);
        return;
    }
    uint32_t src = s->src[at], can = allowed(s, src), nd = (uint32_t)__builtin_popcount(can);
    for (uint32_t want = 0; want <= left && want <= nd; want++)
        for (uint32_t k = 0; k < 1u << nd; k++) {
            if ((uint32_t)__builtin_popcount(k) != want)
                continue;
            if (s->nodes >= NODE_BUDGET || s->nsolutions >= MAX_SOLUTIONS)
                return;
            s->nodes++;
            uint32_t turn = nd ? at % nd : 0, all = (1u << nd) - 1; /* source i prefers destination i */
            s->col[src] = (((k << turn) | (k >> (nd - turn))) & all) << s->first_dst;
            if (holds_at(s, src))
                search(s, at + 1, left - want);
        }
    s->col[src] = 0;
}

/* The best matrix into s->best; whether it is free of conflicts. */
static bool
solve_columns(Solver *s)
{
    memset(s->col, 0, sizeof s->col);
    memset(s->best, 0, sizeof s->best);
    s->nsolutions = s->nodes = s->nsrc = s->ncond = 0;
    uint32_t least;
    if (collect_conditions(s, &least)) {
        for (uint32_t w = least; w <= 16 && !s->nsolutions && s->nodes < NODE_BUDGET; w++)
            search(s, 0, w);
        if (s->nsolutions)
            return true;
    }
    uint32_t extra,
        cost =
            count_cycles(s, s->best, &extra); /* not possible: as few conflicts as columns one by one give */
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < s->nsrc; i++) {
            uint32_t keep = s->best[s->src[i]], can = allowed(s, s->src[i]);
            for (uint32_t m = can; m; m = (m - 1) & can) {
                s->best[s->src[i]] = m;
                uint32_t c = count_cycles(s, s->best, &extra);
                if (c < cost || (c == cost && __builtin_popcount(m) < __builtin_popcount(keep))) {
                    cost = c;
                    keep = m;
                }
            }
            s->best[s->src[i]] = keep;
        }
    count_cycles(s, s->best, &extra);
    return extra == 0;
}

/* ---- the plain map -------------------------------------------------------------------------- */

/* The coordinates that bit `bit` of the registers moves, packed as inputs of `plain`. */
static uint64_t
packed_coords(const TlLayout *plain, const TlLayout *l, uint32_t bit)
{
    uint64_t x = 0;
    for (int i = 0; i < plain->nin; i++)
        x |= (uint64_t)tl_layout_get(l, TL_DIM_REG, bit, (TlDim)plain->in_dim[i])
             << tl_layout_in_shift(plain, (TlDim)plain->in_dim[i]);
    return x;
}

/* The run of registers to keep together: bases in order, as long as the heaviest accesses agree. */
static uint32_t
common_vector(const TlLayout *plain, const TlLdsAccess *acc, uint32_t n, uint32_t elem_bytes, uint32_t cap,
              uint64_t *run)
{
    uint32_t alive = (1u << n) - 1, len = 0;
    for (; elem_bytes << (len + 1) <= cap; len++) {
        uint32_t pick = n;
        uint64_t here[MAX_ACC] = {0};
        for (uint32_t i = 0; i < n; i++) {
            if (alive >> i & 1 && tl_layout_in_bits(&acc[i].layout, TL_DIM_REG) > len &&
                elem_bytes << (len + 1) <= acc[i].max_bytes)
                here[i] = packed_coords(plain, &acc[i].layout, len);
            for (uint32_t j = 0; j < len; j++)
                if (here[i] == run[j])
                    here[i] = 0;
            if (!here[i])
                continue;
            bool read = acc[i].op == TL_LDS_READ;
            if (pick == n || weight_of(&acc[i]) > weight_of(&acc[pick]) ||
                (weight_of(&acc[i]) == weight_of(&acc[pick]) && read && acc[pick].op == TL_LDS_WRITE))
                pick = i;
        }
        if (pick == n || __builtin_popcountll(here[pick]) != 1)
            break;
        run[len] = here[pick];
        for (uint32_t i = 0; i < n; i++)
            if (here[i] != run[len])
                alive &= ~(1u << i);
    }
    return len;
}

/* Offset bits: the run, then the coordinates from `minor` outwards (other_order: the outermost first). */
static bool
plain_map(TlLdsMap *m, uint32_t minor, bool other_order, const uint64_t *run, uint32_t len)
{
    TlLayout *l = &m->map;
    uint64_t used = 0;
    uint32_t at = 0, order[4], rank = l->nin, k = 0;
    memset(l->basis, 0, sizeof l->basis);
    for (uint32_t i = 0; i < len; i++, at++) {
        used |= run[i];
        l->basis[__builtin_ctzll(run[i])] = (uint64_t)1 << at;
    }
    order[k++] = minor;
    for (uint32_t i = rank; i-- > 0;)
        if (i != minor)
            order[k++] = i;
    for (uint32_t i = 0; i < rank; i++) {
        TlDim d = (TlDim)(TL_DIM_0 + order[other_order ? rank - 1 - i : i]);
        for (uint32_t b = 0, s = tl_layout_in_shift(l, d); b < tl_layout_in_bits(l, d); b++)
            if (!(used >> (s + b) & 1))
                l->basis[s + b] = (uint64_t)1 << at++;
    }
    return at == tl_layout_total_out(l);
}

/* Fills s for the map m with instructions of at most `cap` bytes. */
static bool
prepare(Solver *s, const TlLdsMap *m, const TlLdsAccess *acc, uint32_t cap)
{
    uint32_t widest = 4, banks = 32, total = (uint32_t)__builtin_ctz(m->bytes);
    for (uint32_t i = 0; i < s->n; i++) {
        TlLdsAccess a = acc[i];
        a.max_bytes = TL_MIN(a.max_bytes, cap);
        if (!tl_lds_access_bytes(m, &a, &s->bytes[i]))
            return false;
        s->phase[i] = tl_lds_phase_row(s->t, a.op, s->bytes[i].width);
        if (!s->phase[i] || (1u << s->bytes[i].nlanes) != s->t->wave)
            return false;
        widest = TL_MAX(widest, s->bytes[i].width);
        banks = TL_MAX(banks, s->phase[i]->banks);
    }
    s->first_dst = (uint32_t)__builtin_ctz(widest);
    s->top_dst = TL_MIN((uint32_t)__builtin_ctz(banks * 4), total);
    return true;
}

static void
swizzled_map(TlLdsMap *out, const TlLdsMap *m, const uint32_t *col)
{
    uint32_t shift = (uint32_t)__builtin_ctz(m->elem_bytes);
    *out = *m;
    for (uint32_t b = 0, n = tl_layout_total_in(&m->map); b < n; b++)
        out->map.basis[b] = swizzle(col, (uint32_t)m->map.basis[b] << shift) >> shift;
}

bool
tl_lds_solve(const TlTarget *t, uint32_t rank, const uint32_t *shape, uint32_t elem_bytes, uint32_t minor,
             const TlLdsAccess *acc, uint32_t n, TlLdsMap *out, TlAddrSplit *out_split, uint32_t *total)
{
    TlLdsMap plain, m;
    Solver s = {.t = t, .acc = acc, .n = n};
    uint32_t best = UINT32_MAX, best_cap = 16;
    if (n < 1 || n > MAX_ACC || minor >= rank || !tl_lds_row_major(&plain, rank, shape, elem_bytes))
        return false;
    for (uint32_t cap = 16; cap >= TL_MAX(4, elem_bytes) && best; cap /= 2)
        for (int other = 0; other < (rank > 1 ? 2 : 1); other++) {
            uint64_t run[8];
            uint32_t extra, len = common_vector(&plain.map, acc, n, elem_bytes, cap, run);
            m = plain;
            if (!plain_map(&m, minor, other, run, len) || !prepare(&s, &m, acc, cap))
                return false;
            bool clean = solve_columns(&s);
            uint32_t cost = count_cycles(&s, s.best, &extra);
            if (cost < best) {
                best = cost;
                best_cap = cap;
                *total = extra;
                swizzled_map(out, &m, s.best);
            }
            if (clean && cap == 16) {
                cap = 0; /* widest and clean: nothing can be better */
                break;
            }
        }
    for (uint32_t i = 0; i < n && out_split; i++) {
        TlLdsAccess a = acc[i];
        a.max_bytes = TL_MIN(a.max_bytes, best_cap);
        if (!tl_lds_split(t, out, &a, 65535, &out_split[i]))
            return false;
    }
    return best != UINT32_MAX;
}
