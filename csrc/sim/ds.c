/* ds.c - LDS instructions: loads and stores of all widths, two-offset forms, atomics, permutes, swizzle. */
#include "sim/access.h"
#include "sim/check.h"
#include "sim/trace.h"
#include "sim/valu.h"

typedef struct DsOp { /* in the record as p */
    SimAcc acc;
    uint32_t off[2];
    uint8_t naddr;      /* 1, or 2 for two-offset forms */
    bool store, addtid; /* addtid: address = M0 + 4 * lane */
    bool new_first;     /* compare-and-swap: the new value is data0, the comparand data1 (gfx11 and later) */
} DsOp;

/* Lanes of `out` whose address is Tensile's "nowhere" (rocBLAS, hipBLASLt): byte 0xf00000, which no chip has,
 * to read zeros and to drop stores. That is meant. */
static uint64_t
nowhere(const uint32_t *va, uint32_t off, uint64_t out)
{
    uint64_t meant = 0;
    for (uint64_t m = out; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        meant |= (uint64_t)(va[l] + off - 0xf00000u < 0x10000u) << l;
    }
    return meant;
}

/* Byte addresses of all lanes for offset k; returns the lanes that lie inside, after reports. */
static uint64_t
ds_addresses(SimWave *w, const SimRec *r, const DsOp *op, uint32_t k, uint64_t exec, uint32_t *addr, bool *go)
{
    uint32_t tid[64];
    const uint32_t *va = op->addtid ? tid : ROW(w, r->src[0].idx);
    if (op->addtid)
        for (uint32_t l = 0; l < LANES; l++)
            tid[l] = sim_m0_lds(w) + 4 * l;
    uint32_t off = op->off[k], n = op->acc.bytes, size = w->g->lds_bytes, sign = 0, low = 0;
    const uint32_t *m = exec_mask(w, exec);
    uint32_t last = size - n; /* highest address that fits, when any does */
    bool strict = op->naddr == 2 || op->acc.atom;
    *go = true;
    /* The sum wraps: compilers fold offsets into negative bases. sign: some lane's address is above `last`.
     */
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t a = va[l] + off;
        addr[l] = a;
        sign |= ((last - a) | a) & m[l];
        low |= a & m[l];
    }
    if (LIKELY(size >= n && !(sign >> 31) && !(strict && (low & (n - 1)))))
        return exec;
    uint64_t odd = 0, limit = size >= n ? (uint64_t)last + 1 : 0;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t a = va[l] + off;
        addr[l] = a < limit ? (uint32_t)a : UINT32_MAX;
        odd |= (uint64_t)(strict && (a & (n - 1)) != 0) << l;
    }
    odd &= exec;
    uint64_t out = 0;
    for (uint32_t l = 0; l < LANES; l++)
        out |= (uint64_t)(addr[l] == UINT32_MAX) << l;
    out &= exec;
    uint64_t bad = out & ~nowhere(va, off, out);
    if (checking(w, SIM_CHECK_BOUNDS) && (bad | odd)) {
        uint32_t l = (uint32_t)__builtin_ctzll(bad ? bad : odd);
        if (bad)
            *go = sim_fault(
                w, r, SIM_CHECK_BOUNDS, false, bad, sim_at(va[l] + off), UINT32_MAX, 0,
                "LDS access of %u bytes at byte %u is outside the %u bytes of the workgroup (lane %u)", n,
                va[l] + off, size, l);
        else
            *go = sim_fault(
                w, r, SIM_CHECK_BOUNDS, false, odd, addr[l], UINT32_MAX, 0,
                "LDS access at byte %u is not aligned to %u bytes, which this instruction needs (lane %u)",
                addr[l], n, l);
    }
    return exec & ~out;
}

static void
pointers(const SimWave *w, const uint32_t *addr, uint64_t ok, uint64_t *ptr)
{
    uint64_t base = sim_dm_at(w->g->lds), zero = sim_dm_at(sim_zeros);
    if (ok == ~UINT64_C(0))
        for (uint32_t l = 0; l < LANES; l++)
            ptr[l] = base + addr[l];
    else
        for (uint32_t l = 0; l < LANES; l++)
            ptr[l] = (ok >> l) & 1 ? base + addr[l] : zero;
}

const SimRec *
sim_body_ds_load(SimWave *w, const SimRec *r)
{
    const DsOp *op = r->p;
    uint64_t exec = EXEC(w);
    SimUndef undef[8] = {0};
    if (!exec)
        return NEXT(r);
    uint32_t addr[64], rows[8 * 64], nd = op->acc.dwords;
    uint64_t ptr[64];
    /* straight into the registers: all lanes, whole dwords, the address row not overwritten before its last
     * use */
    bool direct = exec == ~UINT64_C(0) && op->acc.kind == ACC_DWORDS &&
                  (op->naddr == 1 || (uint32_t)(r->src[0].idx - r->dst) >= nd);
    for (uint32_t k = 0; k < op->naddr; k++) {
        bool go;
        uint64_t ok = ds_addresses(w, r, op, k, exec, addr, &go);
        if (!go)
            return NULL;
        pointers(w, addr, ok, ptr);
        if (w->chk) {
            if (!sim_chk_lds(w, r, addr, ok, op->acc.bytes, false))
                return NULL;
            sim_chk_lds_undef(w, addr, ok, op->acc.bytes, undef + k * nd);
        }
        if (w->stats)
            sim_lds_stats(w, addr, ok, &op->acc, false);
        uint32_t *out = (direct ? ROW(w, r->dst) : rows) + (size_t)k * nd * LANES;
        if (op->acc.kind == ACC_DWORDS)
            sim_load_dwords(out, ptr, nd);
        else
            sim_load_narrow(out, ptr, (AccKind)op->acc.kind);
    }
    if (!direct) {
        SimAcc all = op->acc;
        all.dwords = (uint8_t)(nd * op->naddr);
        sim_write_back(w, &all, exec, r->dst, rows);
    }
    if (w->chk) {
        SimAcc a2 = op->acc;
        a2.dwords = (uint8_t)(nd * op->naddr);
        sim_write_poison(w, &a2, exec, r->dst, undef);
    }
    return NEXT(r);
}

static const SimRec *
body_ds_store(SimWave *w, const SimRec *r)
{
    const DsOp *op = r->p;
    uint64_t exec = EXEC(w), ptr[64];
    if (!exec)
        return NEXT(r);
    uint32_t addr[64];
    for (uint32_t k = 0; k < op->naddr; k++) {
        bool go;
        uint64_t ok = ds_addresses(w, r, op, k, exec, addr, &go);
        if (!go)
            return NULL;
        pointers(w, addr, ok, ptr);
        const uint32_t *data = ROW(w, r->src[1 + k].idx);
        if (w->chk) {
            if (!sim_chk_lds_write(w, r, addr, ok, op->acc.bytes, data, op->acc.d16 & 2))
                return NULL;
            sim_chk_lds_store(w, r->src[1 + k].idx, addr, ok, op->acc.bytes, op->acc.d16 & 2);
        }
        if (w->stats)
            sim_lds_stats(w, addr, ok, &op->acc, true);
        if (op->acc.kind == ACC_DWORDS)
            sim_store_dwords(data, ptr, ok, op->acc.dwords);
        else
            sim_store_narrow(data, ptr, ok, (AccKind)op->acc.kind, op->acc.d16 & 2);
    }
    return NEXT(r);
}

static const SimRec *
body_ds_atomic(SimWave *w, const SimRec *r)
{
    const DsOp *op = r->p;
    uint64_t exec = EXEC(w), ptr[64];
    SimUndef undef[4] = {0};
    uint32_t addr[64], rows[4 * 64], n = op->acc.bytes, nd = op->acc.dwords;
    memset(rows, 0, sizeof rows);
    for (uint32_t k = 0; k < op->naddr && exec; k++) {
        bool go;
        uint64_t ok = ds_addresses(w, r, op, k, exec, addr, &go);
        if (!go)
            return NULL;
        pointers(w, addr, ok, ptr);
        uint32_t q = op->naddr == 2 ? 1 + k : 1;
        const uint32_t *d0 = ROW(w, r->src[q].idx),
                       *d1 = r->src[2].kind && op->naddr == 1 ? ROW(w, r->src[2].idx) : d0;
        if (w->chk) {
            if (!sim_chk_lds_atomic(w, r, addr, ok, n))
                return NULL;
            sim_chk_lds_undef(w, addr, ok, n, undef + k * nd);
        }
        if (w->chk)
            sim_chk_lds_atomic_data(w, r->src[q].idx, addr, ok, n, op->acc.atom == AT_SWAP);
        if (w->stats)
            sim_lds_stats(w, addr, ok, &op->acc, true);
        for (uint64_t m = ok; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            uint64_t old, a = d0[l], b = d1[l];
            if (n == 8) {
                a |= (uint64_t)d0[l + 64] << 32;
                b |= (uint64_t)d1[l + 64] << 32;
            }
            old = n == 8 ? sim_dm_get64(ptr[l]) : sim_dm_get32(ptr[l]);
            /* cmpst: data0 is the comparand, data1 the new value */
            uint64_t v = (op->acc.atom == AT_CMPSWAP || op->acc.atom == AT_FCMP) && !op->new_first
                             ? sim_atom_mode(w->mode, (AtomOp)op->acc.atom, n, old, b, a)
                             : sim_atom_mode(w->mode, (AtomOp)op->acc.atom, n, old, a, b);
            if (n == 8)
                sim_dm_put64(ptr[l], v);
            else
                sim_dm_put32(ptr[l], (uint32_t)v);
            rows[k * nd * 64 + l] = (uint32_t)old;
            if (n == 8)
                rows[(k * nd + 1) * 64 + l] = (uint32_t)(old >> 32);
        }
    }
    if (op->acc.rtn && exec) {
        SimAcc all = op->acc;
        all.dwords = (uint8_t)(nd * op->naddr);
        sim_write_back(w, &all, exec, r->dst, rows);
        if (w->chk)
            sim_write_poison(w, &all, exec, r->dst, undef);
    }
    return NEXT(r);
}

static void
finish_lanes(SimWave *w, const SimRec *r, uint64_t exec, const uint32_t *out, const SimUndef *undef)
{
    sim_blend(w, exec, ROW(w, r->dst), out, 1);
    if (w->chk) {
        SimAcc a = {ACC_DWORDS, 4, 1, 0, 0, 0, 0};
        sim_write_poison(w, &a, exec, r->dst, undef);
    }
}

enum { NO_LANE = LANES };

/* from: the lane that each one's value comes from; what is undefined in src moves with it. */
static void
finish_perm(SimWave *w, const SimRec *r, uint64_t exec, const uint32_t *out, const uint8_t *from,
            uint32_t src)
{
    SimUndef undef = {0};
    if (w->chk)
        undef = moved_undef(row_undef(w->chk, src), from);
    finish_lanes(w, r, exec, out, &undef);
}

/* The lane that byte address `at` names in the view of lane l. */
static inline uint32_t
perm_lane(const SimRec *r, uint32_t at, uint32_t l)
{
    return (at >> 2 & r->fl) | (l & r->fl2);
}

static const SimRec *
body_permute(SimWave *w, const SimRec *r)
{
    uint32_t out[64] = {0};
    uint8_t from[64];
    uint64_t exec = EXEC(w);
    memset(from, NO_LANE, sizeof from);
    const uint32_t *va = ROW(w, r->src[0].idx), *d = ROW(w, r->src[1].idx);
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), to = perm_lane(r, va[l] + (uint32_t)r->imm, l);
        out[to] = d[l];
        from[to] = (uint8_t)l;
    }
    finish_perm(w, r, exec, out, from, r->src[1].idx);
    return NEXT(r);
}

static const SimRec *
body_bpermute(SimWave *w, const SimRec *r)
{
    uint32_t out[64];
    uint8_t from[64];
    uint64_t exec = EXEC(w), seen = r->aux ? ~UINT64_C(0) : exec; /* aux: inactive lanes too */
    const uint32_t *va = ROW(w, r->src[0].idx), *d = ROW(w, r->src[1].idx);
    for (uint32_t l = 0; l < 64; l++) {
        uint32_t q = perm_lane(r, va[l] + (uint32_t)r->imm, l);
        bool any = (seen >> q) & 1;
        out[l] = any ? d[q] : 0;
        from[l] = any ? (uint8_t)q : NO_LANE;
    }
    finish_perm(w, r, exec, out, from, r->src[1].idx);
    return NEXT(r);
}

static uint32_t
swizzle_lane(uint32_t off, uint32_t l)
{
    uint32_t i = l & 31, mask = off & 31;
    if (off >= 0xe000) { /* FFT order */
        uint32_t rev = 0;
        for (uint32_t k = 0; k < 5; k++)
            rev |= ((i >> k) & 1) << (4 - k);
        return (l & 32) | (rev >> __builtin_popcount(mask)) | (i & mask);
    }
    if (off >= 0xc000) { /* rotate */
        uint32_t n = (off >> 5) & 31;
        if (off & 0x400)
            n = 0u - n;
        return (l & 32) | (((i & mask) | ((i + n) & ~mask)) & 31);
    }
    if (off & 0x8000)
        return (l & ~3u) | ((off >> (2 * (l & 3))) & 3);
    return (l & 32) | (((i & mask) | ((off >> 5) & 31)) ^ ((off >> 10) & 31));
}

static const SimRec *
body_swizzle(SimWave *w, const SimRec *r)
{
    uint32_t out[64];
    uint8_t from[64];
    uint64_t exec = EXEC(w);
    const uint32_t *d = ROW(w, r->src[0].idx);
    for (uint32_t l = 0; l < 64; l++) {
        uint32_t q = swizzle_lane((uint32_t)r->imm & 0xffff, l);
        bool any = (exec >> q) & 1;
        out[l] = any ? d[q] : 0;
        from[l] = any ? (uint8_t)q : NO_LANE;
    }
    finish_perm(w, r, exec, out, from, r->src[0].idx);
    return NEXT(r);
}

static const SimRec *
body_ds_nop(SimWave *w, const SimRec *r)
{
    (void)w;
    return NEXT(r);
}

/* ds_append, ds_consume: one counter for the wave; all lanes get its old value. */
static const SimRec *
body_append(SimWave *w, const SimRec *r)
{
    uint64_t exec = EXEC(w);
    uint32_t addr[64], n = (uint32_t)__builtin_popcountll(exec), old = 0,
                       at = sim_m0_lds(w) + (uint32_t)r->imm;
    if (!exec)
        return NEXT(r);
    for (uint32_t l = 0; l < LANES; l++)
        addr[l] = at;
    if ((uint64_t)at + 4 > w->g->lds_bytes) {
        if (checking(w, SIM_CHECK_BOUNDS) &&
            !sim_fault(w, r, SIM_CHECK_BOUNDS, false, exec, sim_at(at), UINT32_MAX, 0,
                       "LDS counter at byte %u is outside the %u bytes of the workgroup", at,
                       w->g->lds_bytes))
            return NULL;
    } else {
        if (w->chk && !sim_chk_lds_atomic(w, r, addr, exec & -exec, 4))
            return NULL;
        memcpy(&old, w->g->lds + at, 4);
        uint32_t v = r->aux ? old - n : old + n;
        memcpy(w->g->lds + at, &v, 4);
    }
    uint32_t out[64];
    for (uint32_t l = 0; l < LANES; l++)
        out[l] = old;
    finish_lanes(w, r, exec, out, &(SimUndef){0});
    return NEXT(r);
}

/* lds_direct_load, ds_direct_load: one value to all lanes of each four of which one is active; M0 holds its
 * byte address and, from bit 16 on, its type: u8, u16, dword, -, i8, i16. */
static const SimRec *
body_direct(SimWave *w, const SimRec *r)
{
    static const struct {
        uint8_t bytes, sign;
    } types[8] = {{1, 0}, {2, 0}, {4, 0}, {0, 0}, {1, 1}, {2, 1}, {0, 0}, {0, 0}};
    uint64_t exec = EXEC(w);
    SimUndef undef[1] = {0};
    uint32_t at = w->s[S_M0] & 0xffff, type = w->s[S_M0] >> 16 & 7, n = types[type].bytes, x = 0, addr[64];
    if (!n)
        return sim_fault_illegal(w, r, "M0 names no data type for a load from LDS to all lanes");
    if (!exec)
        return NEXT(r);
    exec |= exec >> 1;
    exec = ((exec | exec >> 2) & UINT64_C(0x1111111111111111)) * 15;
    for (uint32_t l = 0; l < LANES; l++)
        addr[l] = at;
    if ((uint64_t)at + n > w->g->lds_bytes) {
        if (checking(w, SIM_CHECK_BOUNDS) &&
            !sim_fault(w, r, SIM_CHECK_BOUNDS, false, exec, sim_at(at), UINT32_MAX, 0,
                       "LDS access of %u bytes at byte %u is outside the %u bytes of the workgroup", n, at,
                       w->g->lds_bytes))
            return NULL;
    } else {
        if (w->chk && !sim_chk_lds(w, r, addr, exec & -exec, n, false))
            return NULL;
        if (w->chk)
            sim_chk_lds_undef(w, addr, exec & -exec, n, undef);
        memcpy(&x, w->g->lds + at, n);
        if (types[type].sign)
            x = (uint32_t)((int32_t)(x << (32 - 8 * n)) >> (32 - 8 * n));
    }
    uint32_t out[64];
    for (uint32_t l = 0; l < LANES; l++)
        out[l] = x;
    finish_lanes(w, r, exec, out, &(SimUndef){.any = undef[0].any ? ~UINT64_C(0) : 0});
    return NEXT(r);
}

/* ---- bank conflicts: facts section 2
 * ------------------------------------------------------------------------------- */

/* Lanes of phase p of an access; 0 = no more phases. */
static uint64_t
phase_lanes(IsaArch arch, uint32_t bytes, bool write, uint32_t p)
{
#define QUAD(a, b) (UINT64_C(0xf) << (a) | UINT64_C(0xf) << (b))
    static const uint64_t b128[4] = {QUAD(0, 20), QUAD(4, 16), QUAD(8, 28), QUAD(12, 24)};
    static const uint64_t wide[2] = {QUAD(0, 12) | UINT64_C(0xff) << 20, UINT64_C(0xff) << 4 | QUAD(16, 28)};
#undef QUAD
    bool gfx950 = arch == ISA_GFX950;
    if (arch >= ISA_GFX1100) { /* waves of 32 lanes */
        if (bytes <= 4)
            return p < 1 ? UINT64_C(0xffffffff) : 0;
        if (bytes == 8)
            return p < 2 ? UINT64_C(0xffff) << (16 * p) : 0;
        if (arch == ISA_GFX1201)
            return p < 4 ? UINT64_C(0xff) << (8 * p) : 0;
        return p < 4 ? b128[p] : 0;
    }
    if (bytes <= 4)
        return gfx950 ? (p < 1 ? ~UINT64_C(0) : 0) : p < 2 ? UINT64_C(0xffffffff) << (32 * p) : 0;
    if (bytes == 8 && gfx950 && !write)
        return p < 2 ? UINT64_C(0xffffffff) << (32 * p) : 0;
    if (bytes == 8)
        return p < 4 ? UINT64_C(0xffff) << (16 * p) : 0;
    if (write)
        return p < 8 ? UINT64_C(0xff) << (8 * p) : 0;
    if (gfx950 && bytes == 16)
        return p < 4 ? wide[p & 1] << (p < 2 ? 0 : 32) : 0;
    return p < 8 ? b128[p & 3] << (p < 4 ? 0 : 32) : 0;
}

static uint32_t
bank_count(IsaArch arch, uint32_t bytes, bool write)
{
    return arch == ISA_GFX950 && bytes != 12 && !(write && bytes >= 8) ? 64 : 32;
}

static uint64_t
count_conflicts(IsaArch arch, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write)
{
    uint32_t nd = TL_MAX(bytes / 4u, 1u);
    uint32_t mask = bank_count(arch, bytes, write) - 1;
    uint64_t cycles = 0;
    for (uint32_t p = 0;; p++) {
        uint64_t set = phase_lanes(arch, bytes, write, p);
        if (!set)
            return cycles;
        uint32_t seen[64][64], count[64] = {0}, worst = 0;
        for (uint64_t m = set & exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            for (uint32_t d = 0; d < nd; d++) {
                uint32_t word = addr[l] / 4 + d, bank = word & mask, k = 0;
                while (k < count[bank] && seen[bank][k] != word)
                    k++;
                if (k == count[bank] && k < 64)
                    seen[bank][count[bank]++] = word;
                worst = TL_MAX(worst, count[bank]);
            }
        }
        if (worst > 1)
            cycles += worst - 1;
    }
}

/* Is no phase table known for this access? */
static bool
phase_gap(const SimWave *w, uint32_t bytes, bool write)
{
    if (w->code->arch < ISA_GFX1100)
        return bytes == 12 && write;
    return w->lane_mask != UINT32_MAX || bytes == 12 || (write && bytes > 4);
}

/* Adding a multiple of 4 to all addresses turns the banks round and changes no count, so one pattern of
 * distances is counted once: a loop's accesses hit this table. */
void
sim_lds_stats(SimWave *w, const uint32_t *addr, uint64_t exec, const SimAcc *a, bool write)
{
    SimStats *st = w->stats;
    SimGroup *g = w->g;
    (write ? st->lds_write : st->lds_read)[a->width] += (uint64_t)__builtin_popcountll(exec) * a->bytes;
    if (UNLIKELY(w->trace != NULL))
        sim_trace_lds(w, addr, exec, a->bytes);
    bool gap = phase_gap(w, a->bytes, write);
    st->lds_gap_accesses += gap;
    if (!exec || (gap && w->code->arch >= ISA_GFX1100))
        return;
    uint32_t base = addr[__builtin_ctzll(exec)] & ~3u, dist[64], hash = a->bytes * 2u + write;
    const uint32_t *m = exec_mask(w, exec);
    for (uint32_t l = 0; l < LANES; l++)
        dist[l] = (addr[l] - base) & m[l];
    for (uint32_t l = 0; l < LANES; l += 7)
        hash = (hash ^ (hash >> 15)) * 0x85ebca6bu + dist[l];
    hash *= 0x9e3779b1u; /* distances are multiples of 16: the low bits say little */
    SimBankEntry *e = &g->banks[hash >> 26];
    if (e->exec != exec || e->bytes != a->bytes || e->write != write ||
        memcmp(e->dist, dist, sizeof dist) != 0) {
        e->exec = exec;
        e->bytes = a->bytes;
        e->write = write;
        memcpy(e->dist, dist, sizeof dist);
        e->cycles = count_conflicts(w->code->arch, dist, exec, a->bytes, write);
    }
    st->lds_conflict_cycles += e->cycles;
}

/* ---- builder
 * ------------------------------------------------------------------------------------------------------------
 */

/* The names of gfx11 and later in terms of the older ones. */
static void
older_name(const char *n, char *out, size_t cap)
{
    static const char *const pairs[][2] = {
        {"_load_", "_read_"},      {"_store_", "_write_"},       {"_storexchg_", "_wrxchg_"},
        {"_cmpstore_", "_cmpst_"}, {"_2addr_stride64", "2st64"}, {"_2addr", "2"},
    };
    snprintf(out, cap, "%s", n);
    for (uint32_t i = 0; i < TL_COUNT(pairs); i++) {
        char *at = strstr(out, pairs[i][0]);
        if (!at)
            continue;
        char rest[48];
        snprintf(rest, sizeof rest, "%s", at + strlen(pairs[i][0]));
        snprintf(at, cap - (size_t)(at - out), "%s%s", pairs[i][1], rest);
    }
}

static bool
parse_ds(const char *name, DsOp *op, SimBody *body)
{
    char buf[48], n[48];
    older_name(name, n, sizeof n);
    op->naddr = 1;
    op->new_first = strstr(name, "_cmpstore_") != NULL;
    op->addtid = strstr(n, "_addtid_") != NULL;
    if (op->addtid) {
        op->store = n[3] == 'w';
        *body = op->store ? body_ds_store : sim_body_ds_load;
        return sim_acc_parse("b32", &op->acc);
    }
    bool rd = !strncmp(n, "ds_read", 7), wr = !strncmp(n, "ds_write", 8);
    if (rd || wr) {
        const char *s = n + (rd ? 7 : 8);
        if (*s == '2') {
            op->naddr = 2;
            s++;
            if (!strncmp(s, "st64", 4))
                s += 4;
        }
        op->store = wr;
        *body = rd ? sim_body_ds_load : body_ds_store;
        return *s == '_' && sim_acc_parse(s + 1, &op->acc);
    }
    snprintf(buf, sizeof buf, "%s", n + 3);
    char *rtn = strstr(buf, "_rtn");
    bool has_rtn = rtn != NULL;
    if (rtn)
        memmove(rtn, rtn + 4, strlen(rtn + 4) + 1);
    if (!strncmp(buf, "wrxchg2", 7)) {
        op->naddr = 2;
        char *p = buf + 6;
        size_t cut = !strncmp(p + 1, "st64", 4) ? 5 : 1;
        memmove(p, p + cut, strlen(p + cut) + 1);
    }
    if (!sim_atom_parse(buf, true, &op->acc))
        return false;
    op->acc.rtn = has_rtn;
    *body = body_ds_atomic;
    return true;
}

/* What moves no row between registers and memory. */
static bool
build_special(SimBuild *b, const char *n)
{
    SimRec *r = b->r;
    bool permute =
        !strcmp(n, "ds_permute_b32") || !strncmp(n, "ds_bpermute_", 12) || !strcmp(n, "ds_swizzle_b32");
    if (!strcmp(n, "ds_nop")) {
        r->body = body_ds_nop;
        return true;
    }
    if (permute) {
        bool halves = b->code->arch == ISA_GFX1100 && b->code->wave64; /* each by itself */
        r->fl = b->code->wave64 && !halves ? 63 : 31;
        r->fl2 = halves ? 32 : 0;
        r->aux = !strcmp(n, "ds_bpermute_fi_b32");
        r->body = n[3] == 'p' ? body_permute : n[3] == 'b' ? body_bpermute : body_swizzle;
    } else if (!strcmp(n, "ds_append") || !strcmp(n, "ds_consume")) {
        r->body = body_append;
        r->aux = n[3] == 'c';
    } else {
        return false;
    }
    r->imm = (int32_t)((uint32_t)b->in->offset & 0xffff);
    return true;
}

bool
sim_build_ds(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    const char *n = b->name;
    bool direct = in->op == ISA_OP_lds_direct_load || in->op == ISA_OP_ds_direct_load;
    if (in->enc != ISA_DS && !direct)
        return false;
    if (!strncmp(n, "ds_gws_", 7))
        return sim_build_gws(b);
    if (in->gds)
        return false;
    const char *tr = strstr(n, "_tr_b"); /* gfx950: ds_read_b64_tr_b16 */
    char plain[32];
    if (tr && !strncmp(n, "ds_read_", 8)) {
        snprintf(plain, sizeof plain, "%.*s", (int)(tr - n), n);
        n = plain;
    }
    b->x->poison = POI_NONE;
    if (in->ndst) {
        const IsaOpnd *o = &in->opnd[0];
        r->dst = (uint16_t)(o->reg + (o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
        r->ndst = o->nregs;
    }
    for (uint32_t i = 0; i < 3; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (o && o->kind != ISA_OPND_IMM && o->kind != ISA_OPND_NONE)
            r->src[i] = sim_build_src(b, o);
    }
    r->imm = in->offset;
    if (direct || build_special(b, n)) {
        r->body = direct ? body_direct : r->body;
        return true;
    }
    DsOp *op = tl_arena_alloc(&b->code->arena, sizeof *op, 8);
    if (!op) {
        b->failed = true;
        return false;
    }
    if (!parse_ds(n, op, &r->body))
        return false;
    sim_acc_ecc(&op->acc, b->code->arch);
    if (op->naddr == 2) {
        uint32_t scale = op->acc.bytes * (strstr(n, "st64") || strstr(n, "stride64") ? 64u : 1u);
        op->off[0] = in->offset0 * scale;
        op->off[1] = in->offset1 * scale;
    } else {
        op->off[0] = (uint32_t)in->offset & 0xffff;
    }
    if (op->addtid && op->store) /* its only vector operand is the data */
        r->src[1] = r->src[0];
    r->p = op;
    b->x->mem_bytes = op->acc.bytes;
    return !tr || n != plain || sim_build_ds_tr(b, (uint32_t)strtoul(tr + 5, NULL, 10));
}
