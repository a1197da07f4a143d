/* check_bits.c - undefined bits of vector registers (check "init"): instructions that mask, move or add bits
 * are tried out with several values in the place of what is undefined. What comes out the same in all of
 * them does not depend on it. (Compilers keep bit-fields in memory that was never written: they load,
 * mask, put the field in and store.)
 *
 * The padding between such fields may be copied, to global memory, too: bits that were undefined in LDS or
 * scratch when their dword was loaded from there and stored to the same place with something of its byte
 * defined. Each byte of a dword has its own flag in the second map, "computed": its undefined bits came in
 * another way. A register knows the bits that are padding, and where it was loaded.
 */
#include "sim/check.h"
#include "sim/valu.h"

typedef enum BitRule {
    BITS_NONE, /* undefined everywhere when anything is */
    BITS_EACH, /* bits that differ */
    BITS_UP,   /* and all above: sums, products */
    BITS_HALF  /* halves that come from one in which any is: packed operations (not tried out) */
} BitRule;

enum {
    COPIES = 1, /* puts copies of bits together, or chooses one: padding stays padding (what takes a field out
                   masks or shifts right) */
    STAYS = 2,  /* puts a field into a dword, or moves that one: its bits stay where they were */
    KEEPS = 4   /* undefined in all bits where a source is */
};

/* amounts: sources (a bit each) that say how far, how many or which; bits: those of them that count. */
typedef struct BitRow {
    uint8_t rule, flags, amounts;
    uint32_t bits;
} BitRow;

static const BitRow bit_rows[K_COUNT] = {
#define BITS(name, rule, flags, amounts, bits) [K_##name] = {BITS_##rule, flags, amounts, bits},
#include "sim/check_bits.def"
#undef BITS
};

static BitRow
bit_row(const SimRec *r)
{
    return bit_rows[r->ext->desc - sim_kern_desc];
}

static BitRule
bit_rule(const SimRec *r)
{
    BitRule rule = (BitRule)bit_row(r).rule;
    bool packed = (r->ext->desc->flags & (OPF_PACKED | OPF_DOT)) == OPF_PACKED;
    return rule == BITS_NONE && packed ? BITS_HALF : rule;
}

/* Whole registers and no other order of lanes: STAYS, KEEPS */
static bool
is_straight(const SimRec *r, uint32_t flag)
{
    const IsaInst *in = &r->ext->in;
    return in->form != ISA_SDWA && !sim_is_dpp(in) && (bit_row(r).flags & flag);
}

/* Undefined bits of the registers that are read, and what was in them. */
typedef struct Tried {
    uint32_t n;
    uint16_t row[4];
    uint32_t bits[4][LANES], old[4][LANES];
    uint16_t sreg[4];
    uint32_t ns, sbits[4], sold[4];
    bool whole;   /* no register is undefined in a part of its bits, or has a home */
    bool pad;     /* one of them has padding */
    bool counted; /* one of them has undefined bits that are none */
} Tried;

static bool
take_row(SimWave *w, Tried *t, uint32_t row)
{
    const SimChk *c = w->chk;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->row[k] == row)
            return true;
    if (!c->vp[row])
        return true;
    if (t->n == TL_COUNT(t->row))
        return false;
    t->row[t->n] = (uint16_t)row;
    memcpy(t->old[t->n], ROW(w, row), sizeof t->old[0]);
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t u = lane_bits(c, row, l), counted = counted_bits(c, row, l);
        t->bits[t->n][l] = u;
        t->pad |= u != counted;
        t->counted |= counted != 0;
    }
    t->whole = t->whole && !(c->vflag[row] & (VF_PART | VF_HOME));
    t->n++;
    return true;
}

static bool
take_scalar(SimWave *w, Tried *t, uint32_t s)
{
    if (!w->chk->sp[s])
        return true;
    if (t->ns == TL_COUNT(t->sreg) || s == S_EXEC || s == S_EXEC + 1)
        return false;
    t->sreg[t->ns] = (uint16_t)s;
    t->sold[t->ns] = w->s[s];
    t->sbits[t->ns++] = w->chk->sp[s];
    t->counted = true;
    t->whole = t->whole && w->chk->sp[s] == ~0u;
    return true;
}

/* Half of a pair (VOPD) has no lists of registers, only its sources. */
static bool
is_half(const SimRec *r)
{
    return !r->ext->nvwrite;
}

static bool
collect(SimWave *w, const SimRec *r, Tried *t)
{
    const SimExt *x = r->ext;
    bool ok = true;
    t->n = t->ns = 0;
    t->pad = t->counted = false;
    t->whole = true;
    for (uint32_t i = 0; is_half(r) && i < 3; i++)
        ok = ok && (r->src[i].kind == SRC_V   ? take_row(w, t, r->src[i].idx)
                    : r->src[i].kind == SRC_S ? take_scalar(w, t, r->src[i].idx)
                                              : true);
    for (uint32_t i = 0; i < x->nvread; i++)
        for (uint32_t k = 0; k < x->vread[i].n; k++)
            ok = ok && take_row(w, t, x->vread[i].start + k);
    for (uint32_t i = 0; i < x->nsread; i++)
        for (uint32_t k = 0; k < x->sread[i].n; k++)
            ok = ok && take_scalar(w, t, x->sread[i].start + k);
    return ok && t->n + t->ns;
}

/* Values of trial j in the place of what is undefined of source i. First none and all of each, in all
 * combinations (of four sources; for what works bit by bit that is all there is), then some of no pattern. */
enum { PATTERNS = 4, COMBINED = 4 };
static uint32_t
trial_value(uint32_t i, uint32_t j, uint32_t ncombined)
{
    if (j < ncombined)
        return j >> i % COMBINED & 1 ? ~0u : 0;
    uint32_t h = (j - ncombined + 1) * 0x9e3779b9u ^ (i + 1) * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

static uint32_t
combined(const Tried *t)
{
    return 1u << TL_MIN(t->n + t->ns, (uint32_t)COMBINED);
}

/* Puts the values of trial j in the place of all undefined bits. */
static void
fill(SimWave *w, const Tried *t, uint32_t j)
{
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t *v = ROW(w, t->row[i]), x = trial_value(i, j, combined(t));
        for (uint32_t l = 0; l < LANES; l++)
            v[l] = (t->old[i][l] & ~t->bits[i][l]) | (x & t->bits[i][l]);
    }
    for (uint32_t i = 0; i < t->ns; i++)
        w->s[t->sreg[i]] =
            (t->sold[i] & ~t->sbits[i]) | (trial_value(t->n + i, j, combined(t)) & t->sbits[i]);
}

static void
restore(SimWave *w, const Tried *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        memcpy(ROW(w, t->row[i]), t->old[i], sizeof t->old[i]);
    for (uint32_t i = 0; i < t->ns; i++)
        w->s[t->sreg[i]] = t->sold[i];
}

/* Trying a few values out is not enough then. */
static bool
unknown_amount(SimWave *w, const SimRec *r)
{
    uint32_t which = bit_row(r).amounts, bits = r->ext->in.form == ISA_SDWA ? ~0u : bit_row(r).bits;
    for (uint32_t i = 0; which; i++, which >>= 1) {
        SimSrc s = r->src[i];
        if (!(which & 1))
            continue;
        if (s.kind == SRC_S && w->chk->sp[s.idx] & bits)
            return true;
        for (uint64_t m = s.kind == SRC_V ? w->chk->vp[s.idx] : 0; m; m &= m - 1)
            if (lane_bits(w->chk, s.idx, (uint32_t)__builtin_ctzll(m)) & bits)
                return true;
    }
    return false;
}

/* The result (n rows) with what is in the registers now, which are left as they are. */
static void
run_once(SimWave *w, const SimRec *r, uint32_t res[2][LANES])
{
    uint32_t before[2][LANES], n = r->ndst;
    if (is_half(r)) {
        uint32_t row[2 * LANES];
        sim_dual_compute(w, r, row);
        memcpy(res[0], row, sizeof res[0]);
        return;
    }
    for (uint32_t k = 0; k < n; k++)
        memcpy(before[k], ROW(w, r->dst + k), sizeof before[0]);
    r->body(w, r);
    for (uint32_t k = 0; k < n; k++) {
        memcpy(res[k], ROW(w, r->dst + k), sizeof res[0]);
        memcpy(ROW(w, r->dst + k), before[k], sizeof before[0]);
    }
}

/* diff: bits of the result that depend on what is undefined. */
static void
try_out(SimWave *w, const SimRec *r, const Tried *t, uint32_t diff[2][LANES])
{
    uint32_t n = r->ndst, first[2][LANES], now[2][LANES];
    memset(diff, 0, 2 * sizeof diff[0]);
    for (uint32_t i = 0; i < combined(t) + PATTERNS; i++) {
        fill(w, t, i);
        run_once(w, r, i ? now : first);
        restore(w, t);
        for (uint32_t k = 0; i && k < n; k++)
            for (uint32_t l = 0; l < LANES; l++)
                diff[k][l] |= now[k][l] ^ first[k][l];
    }
}

/* Undefined bits of a packed operation's result. */
static void
packed(const SimWave *w, const SimRec *r, uint32_t u[LANES])
{
    const IsaInst *in = &r->ext->in;
    memset(u, 0, LANES * sizeof *u);
    for (uint32_t i = 0; i < r->ext->desc->nsrc; i++) {
        SimSrc s = r->src[i];
        uint32_t lo = in->op_sel >> i & 1 ? 16 : 0, hi = in->op_sel_hi >> i & 1 ? 16 : 0;
        if (s.kind != SRC_V && s.kind != SRC_S)
            continue;
        for (uint32_t l = 0; l < LANES; l++) {
            uint32_t b = s.kind == SRC_V ? lane_bits(w->chk, s.idx, l) : w->chk->sp[s.idx];
            u[l] |= (b >> lo & 0xffff ? 0xffff : 0) | (b >> hi & 0xffff ? 0xffff0000u : 0);
        }
    }
}

/* Undefined bits u of the result's rows. */
static void
find(SimWave *w, const SimRec *r, const Tried *t, BitRule rule, uint32_t u[2][LANES])
{
    if (rule == BITS_HALF) {
        packed(w, r, u[0]);
        return;
    }
    try_out(w, r, t, u);
    for (uint32_t k = r->ndst; rule == BITS_UP && k-- > 0;)
        for (uint32_t l = 0; l < LANES; l++)
            u[k][l] = k && u[0][l] ? ~0u : -(u[k][l] & -u[k][l]);
}

/* Bits of row k of the result that are padding where they are undefined: those that do not depend on what is
 * undefined and none. */
static void
find_padding(SimWave *w, const SimRec *r, Tried *t, BitRule rule, SimUndef *out)
{
    uint32_t u[2][LANES];
    for (uint32_t k = 0; k < r->ndst; k++)
        out[k].pad = ~0u;
    if (!t->counted)
        return;
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t l = 0; l < LANES; l++)
            t->bits[i][l] = counted_bits(w->chk, t->row[i], l);
    find(w, r, t, rule, u);
    for (uint32_t k = 0; k < r->ndst; k++)
        for (uint32_t l = 0; l < LANES; l++)
            out[k].pad &= ~u[k][l];
}

/* The home of row k of the result: that of the only undefined register (of two, for a move of two). */
static uint64_t
result_home(const SimWave *w, const SimRec *r, const Tried *t, uint32_t k)
{
    const SimChk *c = w->chk;
    if (t->ns || t->n != r->ndst || !is_straight(r, STAYS) || (r->ndst == 2 && t->row[1] != t->row[0] + 1))
        return 0;
    const IsaInst *in = &r->ext->in;
    if (r->ext->desc - sim_kern_desc == K_v_pk_mov_b32 &&
        (in->op_sel & 3) != 2) /* its halves change places */
        return 0;
    uint32_t row = t->row[k];
    if (r->ext->desc - sim_kern_desc == K_v_lshl_or_b32 && r->src[0].kind == SRC_V && r->src[0].idx == row)
        return 0;
    return row_undef(c, row).home;
}

bool
sim_chk_bits(SimWave *w, const SimRec *r, SimUndef *out)
{
    const SimExt *x = r->ext;
    BitRule rule = x->desc ? bit_rule(r) : BITS_NONE;
    uint32_t n = r->ndst, found[2][LANES];
    Tried t;
    if (rule == BITS_NONE || n == 0 || n > (rule == BITS_HALF ? 1 : 2) ||
        (rule == BITS_HALF && sim_is_dpp(&x->in)) || x->nvwrite > 1 || x->nswrite || x->writes_scc ||
        unknown_amount(w, r) || !collect(w, r, &t) || (t.whole && is_straight(r, KEEPS)))
        return false;
    find(w, r, &t, rule, found);
    uint32_t half = x->nvwrite ? x->vwrite[0].half : 0;
    uint32_t part = half == 1 ? 0xffff : half == 2 ? 0xffff0000u : ~0u;
    for (uint32_t k = 0; k < n; k++) {
        out[k] = (SimUndef){.known = ~0u, .home = result_home(w, r, &t, k)};
        for (uint32_t l = 0; l < LANES; l++) {
            uint32_t u = found[k][l] & part;
            if (half == 2) /* (a write of the lower half makes the register as defined as that) */
                u |= lane_bits(w->chk, r->dst, l) & 0xffff;
            out[k].any |= (uint64_t)(u != 0) << l;
            out[k].part |= (uint64_t)(u != 0 && ~u) << l;
            out[k].known &= u && ~u ? ~u : ~0u;
        }
    }
    if (t.pad && (bit_row(r).flags & COPIES))
        find_padding(w, r, &t, rule, out);
    return true;
}

/* ---- in LDS and scratch
 * ------------------------------------------------------------------------------------------------- */

/* Bytes that are wholly undefined count when they fill half a register: compilers copy structures with the
 * padding in them. But one that was stored as a part of such a half counts by itself (a byte that was loaded
 * into a register and spilled). Of bytes that are partly defined (bit-fields) every undefined bit counts. */
void
sim_chk_undef_lane(SimUndef *undef, uint32_t l, const uint8_t *defined, const uint8_t *computed,
                   uint32_t bytes, uint64_t home)
{
    for (uint32_t d = 0; 4 * d < bytes; d++) {
        uint32_t n = TL_MIN(bytes - 4 * d, 4u), whole = 0, part = 0, pad = 0;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t u = defined[4 * d + k] ^ 0xffu;
            bool known = computed && computed[4 * d + k];
            *(u == 0xff && !known ? &whole : &part) |= u << 8 * k;
            pad |= u != 0xff && computed && !known ? u << 8 * k : 0;
        }
        uint32_t low = n < 2 ? 0xff : 0xffff, all = part;
        all |= (whole & low) == low ? low : 0;
        all |= whole >= 0xffff0000u ? 0xffff0000u : 0;
        if (!all)
            continue;
        if (!undef[d].any)
            undef[d].home = home ? home + 4 * d : 0;
        undef[d].any |= UINT64_C(1) << l;
        if (all == ~0u)
            continue;
        pad |= ~all;
        undef[d].known = undef[d].part ? undef[d].known & ~all : ~all;
        undef[d].pad = undef[d].part ? undef[d].pad & pad : pad;
        undef[d].part |= UINT64_C(1) << l;
    }
}

bool
sim_chk_goes_home(const SimChk *c, const SimBitStore *s, bool lds, const uint32_t *addr, uint64_t lanes,
                  uint32_t d)
{
    if (!(c->vflag[s->row] & VF_HOME))
        return false;
    uint64_t home = c->vhome[s->row];
    uint32_t l = home >> 32 & 63, at = addr[l] + 4 * d;
    return lanes >> l & 1 &&
           (home == sim_chk_home(lds, l, at) || (s->upper && home + 2 == sim_chk_home(lds, l, at)));
}

void
sim_chk_put_lane(const SimChk *c, const SimBitStore *s, uint32_t l, uint8_t *defined, uint8_t *computed)
{
    uint32_t sh = s->upper ? 16 : 0, u = lane_bits(c, s->row, l) >> sh,
             counted = counted_bits(c, s->row, l) >> sh;
    if (!u) {
        memset(defined, 0xff, s->n);
        return;
    }
    for (uint32_t k = 0; k < s->n; k++) {
        uint8_t b = (uint8_t)(u >> 8 * k), other = (uint8_t)(u >> 8 * (k ^ 1));
        bool more = b & defined[k]; /* bits are undefined that were not: no padding */
        bool alone = s->n > 1 && other != 0xff;
        if (!s->in_place || more)
            computed[k] = (uint8_t)(counted >> 8 * k) && (b != 0xff || alone);
        defined[k] = (uint8_t)~b;
    }
}
