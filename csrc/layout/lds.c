/* lds.c - LDS: maps from tile coordinates to bytes, bank conflicts, address splits.
 *
 * Conflicts of arbitrary addresses are counted lane by lane. For linear maps every phase of an instruction is
 * a coset of one subspace and so has the same conflicts: with F the rank of its dword addresses and B the
 * rank of their bank bits, each bank that is hit is hit by 2^(F - B) different dwords.
 */
#include "layout/lds_internal.h"

/* ---- phases --------------------------------------------------------------------------------- */

static const TlLdsPhase phase_table[] = {
#define TL_LDS_PHASE(tgt, o, w, bk, src, n, ...)                                                             \
    {.target = TL_TARGET_##tgt,                                                                              \
     .op = TL_LDS_##o,                                                                                       \
     .width = w,                                                                                             \
     .banks = bk,                                                                                            \
     .source = TL_PHASE_##src,                                                                               \
     .nbits = n,                                                                                             \
     .gen = {__VA_ARGS__}},
#include "layout/lds_phases.def"
#undef TL_LDS_PHASE
};

const TlLdsPhase *
tl_lds_phase_row(const TlTarget *t, TlLdsOp op, uint32_t width)
{
    uint32_t w = width == 1 || width == 2 ? 4 : width;
    for (size_t i = 0; i < TL_COUNT(phase_table); i++)
        if (phase_table[i].target == t->id && phase_table[i].op == op && phase_table[i].width == w)
            return &phase_table[i];
    return NULL;
}

uint32_t
tl_lds_phases(const TlTarget *t, TlLdsOp op, uint32_t width)
{
    const TlLdsPhase *p = tl_lds_phase_row(t, op, width);
    return p && p->source != TL_PHASE_GUESS ? (uint32_t)t->wave >> p->nbits : 0;
}

/* ---- conflicts of any addresses ------------------------------------------------------------- */

/* Most different dwords on one bank. dwords is sorted out in place. */
static uint32_t
worst_bank(uint32_t *dwords, uint32_t n, uint32_t banks)
{
    uint8_t count[64] = {0};
    uint32_t kept = 0, worst = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = 0;
        while (j < kept && dwords[j] != dwords[i])
            j++;
        if (j < kept)
            continue;
        dwords[kept++] = dwords[i];
        uint32_t c = ++count[dwords[i] % banks];
        worst = TL_MAX(worst, c);
    }
    return worst;
}

static uint32_t
count_conflicts(const TlTarget *t, uint32_t nbits, const uint8_t *gen, uint32_t banks, uint32_t width,
                const uint32_t *addr, uint64_t active)
{
    uint64_t todo = t->wave >= 64 ? UINT64_MAX : ((uint64_t)1 << t->wave) - 1;
    uint32_t dwords[64 * 5], extra = 0;
    while (todo) {
        uint32_t first = (uint32_t)__builtin_ctzll(todo), n = 0;
        for (uint32_t c = 0; c < 1u << nbits; c++) {
            uint32_t lane = first;
            for (uint32_t b = 0; b < nbits; b++)
                if (c >> b & 1)
                    lane ^= gen[b];
            todo &= ~((uint64_t)1 << lane);
            if (active >> lane & 1)
                for (uint64_t d = addr[lane] / 4; d <= ((uint64_t)addr[lane] + width - 1) / 4; d++)
                    dwords[n++] = (uint32_t)d;
        }
        uint32_t worst = worst_bank(dwords, n, banks);
        extra += worst ? worst - 1 : 0;
    }
    return extra;
}

uint32_t
tl_lds_conflicts(const TlTarget *t, TlLdsOp op, uint32_t width, const uint32_t *addr, uint64_t active)
{
    const TlLdsPhase *p = tl_lds_phase_row(t, op, width);
    if (!p || p->source == TL_PHASE_GUESS)
        return UINT32_MAX;
    return count_conflicts(t, p->nbits, p->gen, p->banks, width, addr, active);
}

uint32_t
tl_lds_conflicts2(const TlTarget *t, TlLdsOp op, uint32_t width, const uint32_t *addr0, const uint32_t *addr1,
                  uint64_t active)
{
    static const uint8_t run16[4] = {1, 2, 4, 8}; /* two accesses in turn; 8-byte ones in runs of 16 lanes */
    if (width == 8)
        return count_conflicts(t, 4, run16, t->lds_banks, 8, addr0, active) +
               count_conflicts(t, 4, run16, t->lds_banks, 8, addr1, active);
    if (width != 4)
        return UINT32_MAX;
    return tl_lds_conflicts(t, op, 4, addr0, active) + tl_lds_conflicts(t, op, 4, addr1, active);
}

/* ---- conflicts of linear maps --------------------------------------------------------------- */

uint32_t
tl_rank32(const uint32_t *v, uint32_t n, uint32_t mask)
{
    uint32_t piv[32], rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = v[i] & mask;
        for (uint32_t j = 0; j < rank; j++)
            x = TL_MIN(x, x ^ piv[j]); /* clears the top bit of piv[j] if x has it */
        if (x)
            piv[rank++] = x;
    }
    return rank;
}

uint32_t
tl_lds_linear_conflicts(const TlTarget *t, const TlLdsPhase *p, uint32_t width, const uint32_t *lane_bytes)
{
    uint32_t v[8 + 4], n = 0;
    for (uint32_t w = 4; w < width; w *= 2)
        v[n++] = w;
    for (uint32_t g = 0; g < p->nbits; g++) {
        uint32_t x = 0;
        for (uint32_t lanes = p->gen[g]; lanes; lanes &= lanes - 1)
            x ^= lane_bytes[__builtin_ctz(lanes)];
        v[n++] = x;
    }
    uint32_t full = tl_rank32(v, n, ~3u), bank = tl_rank32(v, n, (p->banks - 1u) * 4);
    return ((1u << (full - bank)) - 1) * ((uint32_t)t->wave >> p->nbits);
}

/* ---- maps ----------------------------------------------------------------------------------- */

bool
tl_lds_row_major(TlLdsMap *m, uint32_t rank, const uint32_t *shape, uint32_t elem_bytes)
{
    uint32_t at = 0;
    memset(m, 0, sizeof *m);
    if (rank < 1 || rank > 4 || !elem_bytes || elem_bytes & (elem_bytes - 1))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (!shape[i] || shape[i] & (shape[i] - 1))
            return false;
        if (!tl_layout_add_in(&m->map, (TlDim)(TL_DIM_0 + i), (uint32_t)__builtin_ctz(shape[i])))
            return false;
    }
    uint32_t total = tl_layout_total_in(&m->map);
    if (total > 28 || !tl_layout_add_out(&m->map, TL_DIM_OFF, total))
        return false;
    for (uint32_t i = rank; i-- > 0;)
        for (uint32_t b = 0; b < m->map.in_bits[i]; b++)
            if (!tl_layout_set(&m->map, (TlDim)(TL_DIM_0 + i), b, TL_DIM_OFF, 1u << at++))
                return false;
    m->elem_bytes = elem_bytes;
    m->bytes = elem_bytes << total;
    return true;
}

bool
tl_lds_xor(TlLdsMap *m, uint32_t dst, uint32_t src)
{
    uint32_t n = tl_layout_total_out(&m->map);
    if (dst >= src || src >= n)
        return false;
    for (uint32_t b = 0, nin = tl_layout_total_in(&m->map); b < nin; b++)
        m->map.basis[b] ^= (m->map.basis[b] >> src & 1) << dst;
    return true;
}

uint32_t
tl_lds_byte(const TlLdsMap *m, const uint32_t *coords)
{
    uint64_t x = 0;
    uint32_t shift = 0;
    for (int i = 0; i < m->map.nin; i++) {
        x |= (uint64_t)(coords[i] & ((1u << m->map.in_bits[i]) - 1)) << shift;
        shift += m->map.in_bits[i];
    }
    return (uint32_t)tl_layout_apply(&m->map, x) * m->elem_bytes;
}

uint32_t
tl_lds_base(const TlLdsMap *m, const TlLayout *l, uint32_t lane, uint32_t wave)
{
    TlLayout c;
    if (!tl_layout_compose(&c, l, &m->map))
        return UINT32_MAX;
    return tl_layout_at(&c, 0, lane, wave, TL_DIM_OFF) * m->elem_bytes;
}

/* ---- address split -------------------------------------------------------------------------- */

/* Largest XOR of a subset of v. */
static uint32_t
max_xor(const uint32_t *v, uint32_t n, uint32_t mask)
{
    uint32_t top[32], rank = 0, best = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = v[i] & mask;
        for (uint32_t j = 0; j < rank; j++)
            x = TL_MIN(x, x ^ top[j]);
        if (!x)
            continue;
        uint32_t j = rank++;
        for (; j > 0 && top[j - 1] < x; j--)
            top[j] = top[j - 1];
        top[j] = x;
    }
    for (uint32_t i = 0; i < rank; i++)
        best = TL_MAX(best, best ^ top[i]);
    return best;
}

bool
tl_lds_access_bytes(const TlLdsMap *m, const TlLdsAccess *a, TlLdsBytes *out)
{
    TlLayout c;
    uint32_t shift = (uint32_t)__builtin_ctz(m->elem_bytes);
    memset(out, 0, sizeof *out);
    if (!tl_layout_compose(&c, &a->layout, &m->map))
        return false;
    uint32_t max_vec = a->max_bytes > m->elem_bytes ? a->max_bytes / m->elem_bytes : 1;
    uint32_t run = tl_layout_contiguity(&c, TL_DIM_OFF);
    while (run > max_vec)
        run /= 2;
    out->vec_bits = (uint32_t)__builtin_ctz(run);
    out->nregs = tl_layout_in_bits(&c, TL_DIM_REG) - out->vec_bits;
    out->nlanes = tl_layout_in_bits(&c, TL_DIM_LANE);
    out->nwaves = tl_layout_in_bits(&c, TL_DIM_WAVE);
    if (out->nregs > TL_SPLIT_MAX_BITS || out->nlanes > 6 || out->nwaves > 5)
        return false;
    for (uint32_t i = 0; i < out->nregs; i++)
        out->reg[i] = tl_layout_get(&c, TL_DIM_REG, out->vec_bits + i, TL_DIM_OFF) << shift;
    for (uint32_t i = 0; i < out->nlanes; i++)
        out->lane[i] = tl_layout_get(&c, TL_DIM_LANE, i, TL_DIM_OFF) << shift;
    for (uint32_t i = 0; i < out->nwaves; i++)
        out->wave[i] = tl_layout_get(&c, TL_DIM_WAVE, i, TL_DIM_OFF) << shift;
    out->width = m->elem_bytes << out->vec_bits;
    return true;
}

uint32_t
tl_lds_xor_bits(const TlLdsBytes *b, uint32_t imm_limit)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < b->nlanes; i++)
        mask |= b->lane[i];
    for (uint32_t i = 0; i < b->nwaves; i++)
        mask |= b->wave[i];
    if (imm_limit < UINT32_MAX) /* bits too high for the immediate go into bases of their own */
        for (uint32_t bit = 31; bit > 0 && (2u << bit) - 1 > imm_limit; bit--)
            mask |= 1u << bit;
    return mask;
}

bool
tl_lds_split(const TlTarget *t, const TlLdsMap *m, const TlLdsAccess *a, uint32_t imm_limit, TlAddrSplit *out)
{
    TlLdsBytes b;
    memset(out, 0, sizeof *out);
    if (!tl_lds_access_bytes(m, a, &b))
        return false;
    out->vec = 1u << b.vec_bits;
    out->vec_bytes = b.width;
    out->reg_bits = b.nregs;
    out->xor_bits = tl_lds_xor_bits(&b, imm_limit);
    memcpy(out->reg_off, b.reg, sizeof out->reg_off);
    out->ngroups = 1u << tl_rank32(b.reg, b.nregs, out->xor_bits);
    out->max_imm = max_xor(b.reg, b.nregs, ~out->xor_bits);
    const TlLdsPhase *p = tl_lds_phase_row(t, a->op, b.width);
    out->conflicts =
        p && p->source != TL_PHASE_GUESS ? tl_lds_linear_conflicts(t, p, b.width, b.lane) : UINT32_MAX;
    out->replicated = tl_layout_free_bits(&a->layout) != 0;
    return true;
}

void
tl_split_of(const TlAddrSplit *s, uint32_t i, uint32_t *xor_const, uint32_t *imm)
{
    uint32_t off = 0;
    for (uint32_t b = 0; b < s->reg_bits; b++)
        if (i >> b & 1)
            off ^= s->reg_off[b];
    *xor_const = off & s->xor_bits;
    *imm = off & ~s->xor_bits;
}

uint32_t
tl_split_groups(const TlAddrSplit *s, uint32_t *out, uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 1u << s->reg_bits && n < room; i++) {
        uint32_t x, imm, j = 0;
        tl_split_of(s, i, &x, &imm);
        while (j < n && out[j] < x)
            j++;
        if (j < n && out[j] == x)
            continue;
        memmove(out + j + 1, out + j, (n - j) * sizeof *out);
        out[j] = x;
        n++;
    }
    return s->ngroups;
}
