/* vmem.c - global, flat, scratch and buffer instructions: addresses, range rules, extents, loads straight to
 * LDS.
 *
 * Every lane becomes a host pointer; lanes that are inactive or out of range point at zeros, so moving data
 * needs no tests. The hull of all lanes is looked up once; only when that fails lanes are looked up one by
 * one.
 */
#include "sim/vmem.h"
#include "sim/trace.h"
#include "sim/valu.h"

/* The usual ones first; INDEXED: buffers of gfx9 with idxen, RDNA: all buffers of gfx11 and later. */
enum { SEG_GLOBAL, SEG_FLAT, SEG_BUFFER, SEG_SCRATCH, SEG_ADDTID, SEG_INDEXED, SEG_RDNA };

/* ---- addresses
 * ----------------------------------------------------------------------------------------------------- */

/* Byte of a swizzled buffer: `lines` elements of `elem` bytes lie side by side, one for each of as many
 * indices. */
static uint64_t
swizzled(uint32_t index, uint32_t offset, uint32_t stride, uint32_t lines, uint32_t elem)
{
    uint64_t row = (uint64_t)(index / lines) * stride + offset / elem * elem;
    return row * lines + (uint64_t)(index % lines) * elem + offset % elem;
}

/* Bytes of an access that lie below a limit, in whole dwords; all or nothing for narrow and `whole` ones. */
static uint32_t
room_below(uint64_t at, uint64_t limit, uint32_t n, bool whole)
{
    if (at + n <= limit)
        return n;
    return at < limit && !whole && n >= 4 ? (uint32_t)(limit - at) & ~3u : 0;
}

/* gfx11 and later: OOB_SELECT of the descriptor picks the rule: 0 index and offset in the record, 1 index
 * only, 2 nothing (but a buffer without records), 3 raw: bytes, or as 0 when swizzled. A descriptor without a
 * format is no buffer. gfx12 scales the stride, and swizzles the scalar offset, too. */
static void
buffer_rdna(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    uint32_t so = r->src[2].kind ? s32(w, r->src[2]) : 0;
    const uint32_t *d = w->s + r->src[3].idx, *a = r->src[0].kind ? ROW(w, r->src[0].idx) : NULL;
    const uint32_t *index = op->idxen ? a : NULL, *off = op->offen ? (op->idxen ? a + 64 : a) : NULL;
    uint64_t base = d[0] | (uint64_t)(d[1] & 0xffff) << 32;
    uint32_t stride = d[1] >> 16 & 0x3fff, records = d[2], swizzle = d[1] >> 30, n = op->acc.bytes, inner = 0;
    uint32_t select = d[3] >> 28 & 3, tid = d[3] & ADD_TID ? 1 : 0;
    uint64_t room = records > so ? records - so : 0;
    bool whole = op->acc.atom || op->typed, gfx12 = w->code->arch >= ISA_GFX1201;
    if (gfx12) {
        static const uint8_t scale[4] = {1, 4, 8, 32};
        stride *= scale[d[3] >> 18 & 3];
    }
    if (gfx12 && swizzle)
        inner = so;
    else
        base += so;
    if (!(d[3] >> 12 & 63) && !tid) /* unbound */
        select = 2, records = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t i = (index ? index[l] : 0) + tid * l, o = (off ? off[l] : 0) + (uint32_t)r->imm, ok = n;
        uint64_t at = (uint64_t)i * stride + o;
        if (select == 0 || (select == 3 && swizzle && stride))
            ok = i < records ? room_below(o, stride, n, whole) : 0;
        else if (select == 1)
            ok = i < records ? n : 0;
        else if (select == 2)
            ok = records ? n : 0;
        else
            ok = room_below(at, room, n, whole);
        v->va[l] =
            base + (swizzle ? swizzled(i, o + inner, stride, 8u << (d[3] >> 21 & 3), 2u << swizzle) : at);
        v->room[l] = (uint8_t)ok;
        v->partial |= ok != n && (v->exec >> l & 1);
    }
}

/* Scratch through a buffer descriptor: offsets are bytes of a lane, the scalar one bytes of the wave. */
static void
buffer_scratch(const SimRec *r, VmLanes *v, const uint32_t *off, uint32_t so)
{
    for (uint32_t l = 0; l < LANES; l++)
        v->va[l] = (uint32_t)((off ? off[l] : 0) + (uint32_t)r->imm + so / LANES);
    v->priv = v->exec;
}

/* gfx9 with an index, lane numbers (ADD_TID_ENABLE: in plain accesses the stride has four bits more, and
 * without an index nothing is checked) or swizzling; with an index the number of records is the limit where
 * they have a size, else their bytes. A descriptor without a data format is no buffer. */
static void
buffer_records(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    const uint32_t *d = w->s + r->src[3].idx, *a = r->src[0].kind ? ROW(w, r->src[0].idx) : NULL;
    const uint32_t *index = op->idxen ? a : NULL, *off = op->offen ? (op->idxen ? a + 64 : a) : NULL;
    uint32_t so = r->src[2].kind ? s32(w, r->src[2]) : 0, stride = d[1] >> 16 & 0x3fff, n = op->acc.bytes;
    uint64_t base = (d[0] | (uint64_t)(d[1] & 0xffff) << 32) + so, room = d[2] > so ? d[2] - so : 0;
    bool swizzle = d[1] >> 31, tid = d[3] & ADD_TID, whole = op->acc.atom || op->typed;
    if (tid && !d[0] && d[1] == SCRATCH_RSRC_HI) {
        buffer_scratch(r, v, off, so);
        return;
    }
    stride |= tid && !op->typed ? (d[3] >> 15 & 15) << 14 : 0;
    bool bound = tid || d[3] & DATA_FORMAT;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t i = (index ? index[l] : 0) + tid * l, o = (off ? off[l] : 0) + (uint32_t)r->imm;
        uint64_t at = swizzle ? swizzled(i, o, stride, 8u << (d[3] >> 21 & 3), 4) : (uint64_t)i * stride + o;
        uint32_t ok = room_below(at, room, n, whole);
        if (!bound)
            ok = 0;
        else if (tid && !index)
            ok = n;
        else if (index && stride)
            ok = i < d[2] ? n : 0;
        v->va[l] = base + at;
        v->room[l] = (uint8_t)ok;
        v->partial |= ok != n;
    }
}

/* gfx9, without an index: addresses and, for each lane, the bytes that the range rule lets through (dword by
 * dword). */
static void
buffer_addresses(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    const uint32_t *d = w->s + r->src[3].idx;
    uint32_t so = r->src[2].kind ? s32(w, r->src[2]) : 0, inst = (uint32_t)r->imm, n = op->acc.bytes;
    uint64_t base = (d[0] | (uint64_t)(d[1] & 0xffff) << 32) + so;
    uint64_t room = d[2] > so ? d[2] - so : 0; /* saturates at 0 */
    const uint32_t *off = op->offen ? ROW(w, r->src[0].idx) : NULL;
    bool whole = op->acc.atom || op->typed;
    if ((d[3] & (ADD_TID | DATA_FORMAT)) - 1 >= ADD_TID - 1 || d[1] >> 31) { /* lane numbers or no format */
        buffer_records(w, r, op, v);
        return;
    }
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t o = (off ? off[l] : 0) + inst;
        uint64_t ok = n;
        v->va[l] = base + o;
        if ((uint64_t)o + n > room)
            ok = o < room && !whole && n >= 4 ? (room - o) & ~UINT64_C(3) : 0;
        v->room[l] = (uint8_t)ok;
        v->partial |= ok != n;
    }
}

/* All but global, flat and the plain buffers of gfx9. */
static void
rare_addresses(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    const uint32_t *a = r->src[0].kind ? ROW(w, r->src[0].idx) : NULL;
    uint64_t base = (uint64_t)(int64_t)r->imm;
    switch (op->seg) {
    case SEG_RDNA:
        buffer_rdna(w, r, op, v);
        return;
    case SEG_INDEXED:
        buffer_records(w, r, op, v);
        return;
    case SEG_ADDTID:
        base += r->src[2].kind ? s64(w, r->src[2]) : 0;
        for (uint32_t l = 0; l < LANES; l++)
            v->va[l] = base + 4 * l;
        return;
    default: /* scratch */
        if (r->src[2].kind)
            base += s32(w, r->src[2]);
        for (uint32_t l = 0; l < LANES; l++)
            v->va[l] = (uint32_t)(base + (a ? a[l] : 0));
        return;
    }
}

static void
flat_addresses(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v)
{
    if (op->seg > SEG_FLAT) {
        rare_addresses(w, r, op, v);
        return;
    }
    const uint32_t *a = ROW(w, r->src[0].idx);
    uint64_t base = (uint64_t)(int64_t)r->imm;
    if (r->src[2].kind) {
        base += s64(w, r->src[2]);
        for (uint32_t l = 0; l < LANES; l++)
            v->va[l] = base + a[l];
    } else {
        for (uint32_t l = 0; l < LANES; l++)
            v->va[l] = base + (a[l] | (uint64_t)a[l + 64] << 32);
    }
}

/* ---- extents
 * -----------------------------------------------------------------------------------------------------------
 */

static bool
lane_ok(const SimExtent *x, uint64_t addr, uint32_t n, bool write)
{
    return x && sim_extent_holds(x, addr, n) && !(write && (x->flags & SIM_EXT_READONLY));
}

static bool
report_lanes(SimWave *w, const SimRec *r, const VmLanes *v, uint64_t bad, uint32_t n, bool write,
             bool unmapped)
{
    uint32_t l = (uint32_t)__builtin_ctzll(bad);
    char text[SIM_WHERE];
    sim_describe(w, v->va[l], n, text, sizeof text);
    bool bounds = checking(w, SIM_CHECK_BOUNDS);
    if (!bounds && !unmapped)
        return true;
    return sim_fault(w, r, bounds ? SIM_CHECK_BOUNDS : SIM_FAULT_MEMORY, !bounds, bad, sim_at(v->va[l]),
                     UINT32_MAX, 0, "%s of %u bytes %s (lane %u)", write ? "write" : "read", n, text, l);
}

/* Checks the global lanes and sets their pointers; false = stop. */
static bool
global_lanes(SimWave *w, const SimRec *r, VmLanes *v, uint64_t lanes, uint32_t n, bool write)
{
    uint64_t lo = UINT64_MAX, hi = 0;
    v->one = NULL;
    if (lanes == ~UINT64_C(0)) {
        for (uint32_t l = 0; l < LANES; l++) {
            lo = v->va[l] < lo ? v->va[l] : lo;
            hi = v->va[l] > hi ? v->va[l] : hi;
        }
    } else {
        for (uint64_t m = lanes; m; m &= m - 1) {
            uint64_t a = v->va[__builtin_ctzll(m)];
            lo = a < lo ? a : lo;
            hi = a > hi ? a : hi;
        }
    }
    v->lo = lo;
    v->hi = hi + n;
    if (w->port && hi - lo < UINT32_MAX - 64) {
        const SimExtent *x = sim_mem_find(w->port, lo, (uint32_t)(hi - lo) + n);
        if (x && (x->flags & SIM_EXT_DENSE) && !(write && (x->flags & SIM_EXT_READONLY))) {
            v->one = x;
            if (lanes == ~UINT64_C(0))
                memcpy(v->ptr, v->va, sizeof v->ptr);
            else
                for (uint64_t m = lanes; m; m &= m - 1) {
                    uint32_t l = (uint32_t)__builtin_ctzll(m);
                    v->ptr[l] = v->va[l];
                }
            return true;
        }
    }
    uint64_t bad = 0, unmapped = 0;
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint32_t nl = v->partial ? v->room[l] : n;
        const SimExtent *x = w->port ? sim_mem_find(w->port, v->va[l], nl) : NULL;
        if (!x && w->port && !w->chk && !checking(w, SIM_CHECK_BOUNDS) &&
            sim_mem_in_tail(w->port, v->va[l], nl)) {
            v->ptr[l] = v->va[l];
            continue;
        }
        if (!x)
            unmapped |= UINT64_C(1) << l;
        if (!lane_ok(x, v->va[l], nl, write))
            bad |= UINT64_C(1) << l;
        if (x &&
            !(write && (x->flags & SIM_EXT_READONLY))) /* outside the elements but mapped: data is there */
            v->ptr[l] = v->va[l];
        else {
            v->ptr[l] = sim_dm_at(sim_zeros);
            v->ok &= ~(UINT64_C(1) << l);
        }
    }
    return !bad || report_lanes(w, r, v, bad, n, write, unmapped != 0);
}

/* LDS and scratch lanes (flat apertures, scratch instructions). */
static bool
local_lanes(SimWave *w, const SimRec *r, VmLanes *v, uint64_t lanes, uint32_t n, bool scratch, bool write)
{
    uint64_t stride = w->g->scratch_wave / LANES, size = scratch ? stride : w->g->lds_bytes, bad = 0;
    for (uint64_t m = lanes; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint32_t a = (uint32_t)v->va[l];
        if ((uint64_t)a + n > size) {
            bad |= UINT64_C(1) << l;
            v->ok &= ~(UINT64_C(1) << l);
        } else {
            v->ptr[l] = sim_dm_at(scratch ? w->scratch + stride * l : w->g->lds) + a;
            v->la[l] = a;
        }
    }
    if (!bad || !checking(w, SIM_CHECK_BOUNDS))
        return true;
    uint32_t l = (uint32_t)__builtin_ctzll(bad);
    return sim_fault(w, r, SIM_CHECK_BOUNDS, false, bad, sim_at((uint32_t)v->va[l]), UINT32_MAX, 0,
                     "%s %s of %u bytes at byte %u is outside the %llu bytes %s (lane %u)",
                     scratch ? "scratch" : "LDS", write ? "write" : "read", n, (uint32_t)v->va[l],
                     (unsigned long long)size, scratch ? "of a lane" : "of the workgroup", l);
}

static bool
vm_lanes_of(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v, bool write, uint64_t exec)
{
    uint32_t n = op->acc.bytes;
    v->exec = v->ok = exec;
    v->lds = v->priv = 0;
    v->partial = 0;
    v->one = NULL;
    if (op->seg == SEG_BUFFER)
        buffer_addresses(w, r, op, v);
    else
        flat_addresses(w, r, op, v);
    if (v->exec != ~UINT64_C(0) || v->partial || v->priv || op->seg == SEG_FLAT || op->seg == SEG_SCRATCH)
        for (uint32_t l = 0; l < LANES; l++)
            v->ptr[l] = sim_dm_at(sim_zeros);
    if (v->partial)
        for (uint32_t l = 0; l < LANES; l++)
            if (!v->room[l])
                v->ok &= ~(UINT64_C(1) << l);
    if (op->seg == SEG_SCRATCH)
        v->priv = v->exec;
    if (op->seg == SEG_FLAT)
        for (uint64_t m = v->exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            uint64_t top = (v->va[l] - (uint64_t)(int64_t)r->imm) >> 32; /* the offset does not count */
            v->lds |= (uint64_t)(top == SIM_SHARED_APERTURE >> 32) << l;
            v->priv |= (uint64_t)(top == SIM_PRIVATE_APERTURE >> 32) << l;
        }
    if (w->chk)
        w->chk->flat_lds = v->lds != 0;
    if (op->acc.atom && checking(w, SIM_CHECK_BOUNDS)) {
        uint64_t odd = 0;
        for (uint64_t m = v->ok; m; m &= m - 1)
            odd |= (uint64_t)((v->va[__builtin_ctzll(m)] & (n - 1)) != 0) << __builtin_ctzll(m);
        if (odd && !sim_fault(w, r, SIM_CHECK_BOUNDS, false, odd, v->va[__builtin_ctzll(odd)], UINT32_MAX, 0,
                              "atomic of %u bytes at an address that is not aligned", n))
            return false;
    }
    if (UNLIKELY(w->trace != NULL))
        sim_trace_global(w, v->va, v->ok, n, v->priv == v->exec && v->exec);
    if (v->lds && !local_lanes(w, r, v, v->lds, n, false, write))
        return false;
    if (v->priv && !local_lanes(w, r, v, v->priv, n, true, write))
        return false;
    uint64_t glob = v->ok & ~v->lds & ~v->priv;
    if (glob && !global_lanes(w, r, v, glob, n, write))
        return false;
    return true;
}

static bool
vm_lanes(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v, bool write)
{
    return vm_lanes_of(w, r, op, v, write, EXEC(w));
}

bool
sim_vm_lanes(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v, bool write, uint64_t exec)
{
    return vm_lanes_of(w, r, op, v, write, exec);
}

/* ---- loads
 * ----------------------------------------------------------------------------------------------------------------
 */

/* Partially in range: dword by dword. */
static void
load_partial(const VmLanes *v, uint32_t *rows, uint32_t nd)
{
    uint64_t p[64];
    for (uint32_t d = 0; d < nd; d++) {
        for (uint32_t l = 0; l < LANES; l++)
            p[l] = ((v->ok >> l) & 1) && v->room[l] >= 4 * d + 4 ? v->ptr[l] + 4 * d : sim_dm_at(sim_zeros);
        sim_load_dwords(rows + d * LANES, p, 1);
    }
}

static const SimRec *
body_load(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    VmLanes v;
    uint32_t rows[4 * 64], nd = op->acc.dwords;
    if (!EXEC(w))
        return NEXT(r);
    if (!vm_lanes(w, r, op, &v, false))
        return NULL;
    if (w->chk && !sim_vm_check_load(w, r, op, &v))
        return NULL;
    if (w->stats)
        w->stats->global_read[op->acc.width] +=
            (uint64_t)__builtin_popcountll(v.ok & ~v.lds & ~v.priv) * op->acc.bytes;
    bool direct = v.exec == ~UINT64_C(0) && !op->acc.d16 && !v.partial;
    uint32_t *out = direct ? ROW(w, r->dst) : rows;
    if (op->acc.kind != ACC_DWORDS)
        sim_load_narrow(out, v.ptr, (AccKind)op->acc.kind);
    else if (v.partial)
        load_partial(&v, out, nd);
    else
        sim_load_dwords(out, v.ptr, nd);
    if (!direct)
        sim_write_back(w, &op->acc, v.exec, r->dst, rows);
    if (w->chk)
        sim_write_poison(w, &op->acc, v.exec, r->dst, v.undef);
    return NEXT(r);
}

/* With the tfe bit a status word follows the data: 0, all pages are resident. */
static const SimRec *
body_load_tfe(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint32_t zero[64] = {0}, status = r->dst + op->acc.dwords;
    uint64_t exec = EXEC(w);
    SimUndef none = {0};
    const SimRec *next = op->typed ? sim_body_typed_load(w, r) : body_load(w, r);
    if (!next || !exec)
        return next;
    SimAcc a = {ACC_DWORDS, 4, 1, 0, 0, 0, 0};
    sim_blend(w, exec, ROW(w, status), zero, 1);
    if (w->chk)
        sim_write_poison(w, &a, exec, status, &none);
    return next;
}

static const SimRec *
body_store(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    VmLanes v;
    const uint32_t *data = ROW(w, r->src[1].idx);
    if (!EXEC(w))
        return NEXT(r);
    if (!vm_lanes(w, r, op, &v, true))
        return NULL;
    if (w->chk && !sim_vm_check_store(w, r, op, &v))
        return NULL;
    if (w->stats)
        w->stats->global_write[op->acc.width] +=
            (uint64_t)__builtin_popcountll(v.ok & ~v.lds & ~v.priv) * op->acc.bytes;
    if (op->acc.kind != ACC_DWORDS) {
        sim_store_narrow(data, v.ptr, v.ok, (AccKind)op->acc.kind, op->acc.d16 & 2);
    } else if (v.partial) {
        for (uint32_t d = 0; d < op->acc.dwords; d++) {
            uint64_t p[64], ok = 0;
            for (uint32_t l = 0; l < LANES; l++) {
                p[l] = v.ptr[l] + 4 * d;
                ok |= (uint64_t)(v.room[l] >= 4 * d + 4) << l;
            }
            sim_store_dwords(data + d * LANES, p, ok & v.ok, 1);
        }
    } else {
        sim_store_dwords(data, v.ptr, v.ok, op->acc.dwords);
    }
    return NEXT(r);
}

static const SimRec *
body_atomic(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    VmLanes v;
    uint32_t rows[2 * 64], n = op->acc.bytes, nd = op->acc.dwords;
    const uint32_t *d0 = ROW(w, r->src[1].idx),
                   *d1 = d0 + (size_t)nd * LANES; /* cmpswap: new value, comparand */
    if (!EXEC(w))
        return NEXT(r);
    if (!vm_lanes(w, r, op, &v, true))
        return NULL;
    if (w->chk && !sim_vm_check_atomic(w, r, op, &v))
        return NULL;
    memset(rows, 0, sizeof rows);
    for (uint64_t m = v.ok; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint64_t a = d0[l], b = 0, old;
        if (n == 8)
            a |= (uint64_t)d0[l + 64] << 32;
        if (op->acc.atom == AT_CMPSWAP || op->acc.atom == AT_FCMP)
            b = n == 8 ? d1[l] | (uint64_t)d1[l + 64] << 32 : d1[l];
        old = sim_atom_at(v.ptr[l], (AtomOp)op->acc.atom, n, a, b);
        rows[l] = (uint32_t)old;
        if (nd == 2)
            rows[l + 64] = (uint32_t)(old >> 32);
    }
    if (w->stats)
        w->stats->atomics += (uint64_t)__builtin_popcountll(v.ok);
    if (op->acc.rtn) {
        sim_write_back(w, &op->acc, v.exec, r->dst, rows);
        if (w->chk)
            sim_write_poison(w, &op->acc, v.exec, r->dst, v.undef);
    }
    return NEXT(r);
}

/* ---- loads straight to LDS
 * -------------------------------------------------------------------------------------------------- */

/* A lane's place is a dword, or four (of which 12 bytes fill three). */
static const SimRec *
body_load_lds(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    VmLanes v;
    uint32_t rows[4 * 64], nd = op->typed ? 1 : op->acc.dwords, slot = nd > 1 ? 16 : 4, bytes = 4 * nd,
                           addr[64];
    if (!EXEC(w))
        return NEXT(r);
    if (op->typed ? !sim_typed_column(w, r, &v, rows) : !vm_lanes(w, r, op, &v, false))
        return NULL;
    if (!op->typed && w->chk && !sim_vm_check_load(w, r, op, &v))
        return NULL;
    uint32_t base = (sim_m0_lds(w) & ~3u) + (uint32_t)r->imm;
    uint64_t ptr[64], out = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        addr[l] = base + l * slot;
        ptr[l] = sim_dm_at(w->g->lds) + addr[l];
        out |= (uint64_t)((uint64_t)addr[l] + bytes > w->g->lds_bytes) << l;
    }
    out &= v.exec;
    if (out && checking(w, SIM_CHECK_BOUNDS) &&
        !sim_fault(w, r, SIM_CHECK_BOUNDS, false, out, sim_at(addr[__builtin_ctzll(out)]), UINT32_MAX, 0,
                   "load to LDS writes byte %u, outside the %u bytes of the workgroup",
                   addr[__builtin_ctzll(out)], w->g->lds_bytes))
        return NULL;
    uint64_t exec = v.exec & ~out;
    if (w->chk && !sim_chk_lds_dma(w, r, addr, exec, bytes, v.undef))
        return NULL;
    if (w->stats) {
        uint64_t lanes = (uint64_t)__builtin_popcountll(exec);
        w->stats->lds_dma += lanes * op->acc.bytes;
        w->stats->global_read[op->acc.width] += lanes * op->acc.bytes;
    }
    if (op->typed)
        ; /* there they are */
    else if (op->acc.kind != ACC_DWORDS)
        sim_load_narrow(rows, v.ptr, (AccKind)op->acc.kind);
    else if (v.partial)
        load_partial(&v, rows, nd);
    else
        sim_load_dwords(rows, v.ptr, nd);
    sim_store_dwords(rows, ptr, exec, nd);
    return NEXT(r);
}

static const SimRec *
body_cache(SimWave *w, const SimRec *r)
{
    if (w->chk)
        sim_vm_check_cache(w, r);
    return NEXT(r);
}

/* "format_xyz", "format_d16_x", "format_d16_hi_x"; gfx11 and later: "d16_format_x", "d16_hi_format_x" */
static bool
parse_typed(const char *s, VmOp *op)
{
    const char *x = strrchr(s, '_') + 1;
    op->typed = true;
    op->comps = (uint8_t)strlen(x);
    op->acc.d16 = strstr(s, "d16_hi") ? 2 : strstr(s, "d16") ? 1 : 0;
    op->acc.kind = ACC_DWORDS;
    op->acc.dwords = (uint8_t)(op->acc.d16 ? (op->comps + 1) / 2 : op->comps);
    op->acc.bytes = 4; /* known when it runs */
    return op->comps >= 1 && op->comps <= 4;
}

/* ---- builder
 * ------------------------------------------------------------------------------------------------------------------
 */

static bool
parse_vm(const char *n, VmOp *op, SimBody *body)
{
    char buf[40];
    const char *s = strchr(n, '_') + 1;
    if (sim_vm_parse_more(s, op, body))
        return true;
    if (!strncmp(s, "load_lds_", 9)) {
        op->to_lds = true;
        *body = body_load_lds;
        return sim_acc_parse(s + 9, &op->acc);
    }
    if (strstr(s, "format_") && (*s == 'l' || *s == 's')) {
        *body = *s == 'l' ? sim_body_typed_load : sim_body_typed_store;
        return parse_typed(s, op);
    }
    if (!strncmp(s, "load_", 5)) {
        *body = body_load;
        return sim_acc_parse(s + 5, &op->acc);
    }
    if (!strncmp(s, "store_", 6)) {
        *body = body_store;
        return sim_acc_parse(s + 6, &op->acc);
    }
    if (strncmp(s, "atomic_", 7))
        return false;
    snprintf(buf, sizeof buf, "%s", s + 7);
    *body = body_atomic;
    return sim_atom_parse(buf, false, &op->acc);
}

static void
flat_operands(SimBuild *b, const VmOp *op)
{
    SimRec *r = b->r;
    uint32_t i = 0;
    const IsaOpnd *o = op->addtid ? NULL : sim_build_read(b, i++);
    if (o && o->kind != ISA_OPND_NONE)
        r->src[0] = sim_build_src(b, o);
    if (r->body == body_store || r->body == body_atomic || op->stores) {
        o = sim_build_read(b, i++);
        if (o)
            r->src[1] = sim_build_src(b, o);
    }
    o = op->seg == SEG_FLAT ? NULL : sim_build_read(b, i++);
    if (o && o->kind == ISA_OPND_SGPR)
        r->src[2] = sim_build_src(b, o);
}

static bool
buffer_operands(SimBuild *b, VmOp *op)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    uint32_t k = 0;
    while (k < in->nopnds && !(in->opnd[k].kind == ISA_OPND_SGPR && in->opnd[k].nregs == 4))
        k++;
    if (k == in->nopnds || k < 1)
        return false;
    r->src[3] = sim_build_src(b, &in->opnd[k]);
    if (in->opnd[k - 1].kind == ISA_OPND_VGPR && (in->offen || in->idxen))
        r->src[0] = sim_build_src(b, &in->opnd[k - 1]);
    if (k >= 2) {
        r->src[1] = sim_build_src(b, &in->opnd[k - 2]);
        r->dst = r->src[1].idx;
    }
    if (k + 1 < in->nopnds && in->opnd[k + 1].kind != ISA_OPND_NONE)
        r->src[2] = sim_build_src(b, &in->opnd[k + 1]);
    op->offen = in->offen;
    op->idxen = in->idxen;
    if (in->lds) {
        op->to_lds = true;
        r->body = body_load_lds;
    }
    return true;
}

/* Cache control: no address, no data. */
bool
sim_vm_is_cache(const char *n)
{
    static const char *const names[] = {
        "buffer_inv",     "buffer_wbl2",    "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2",
        "buffer_gl0_inv", "buffer_gl1_inv", "global_inv",     "global_wb",          "global_wbinv"};
    for (uint32_t i = 0; i < TL_COUNT(names); i++)
        if (!strcmp(n, names[i]))
            return true;
    return false;
}

bool
sim_build_vmem(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    const char *n = b->name;
    if (in->enc != ISA_FLAT && in->enc != ISA_GLOBAL && in->enc != ISA_SCRATCH && in->enc != ISA_MUBUF &&
        in->enc != ISA_MTBUF)
        return false;
    b->x->poison = POI_NONE;
    if (sim_vm_is_cache(n)) {
        r->body = body_cache;
        return true;
    }
    VmOp *op = tl_arena_alloc(&b->code->arena, sizeof *op, 8);
    if (!op) {
        b->failed = true;
        return false;
    }
    memset(op, 0, sizeof *op);
    bool buffer = in->enc == ISA_MUBUF || in->enc == ISA_MTBUF;
    op->seg = buffer                   ? (b->code->arch >= ISA_GFX1100 ? SEG_RDNA
                                          : in->idxen                  ? SEG_INDEXED
                                                                       : SEG_BUFFER)
              : in->enc == ISA_FLAT    ? SEG_FLAT
              : in->enc == ISA_SCRATCH ? SEG_SCRATCH
                                       : SEG_GLOBAL;
    if (!parse_vm(n, op, &r->body))
        return false;
    sim_acc_ecc(&op->acc, b->code->arch);
    if (b->code->arch == ISA_GFX90A && op->acc.atom == AT_FADD && op->acc.bytes == 4)
        op->acc.atom = AT_FADD_FLUSH;
    if (in->ndst) {
        const IsaOpnd *o = &in->opnd[0];
        r->dst = (uint16_t)(o->reg + (o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
        r->ndst = o->nregs;
    }
    op->acc.rtn = op->acc.atom && (in->sc0 || in->glc || (b->code->arch == ISA_GFX1201 && (in->th & 1)));
    r->imm = in->offset;
    if (op->addtid)
        op->seg = SEG_ADDTID;
    if (buffer) {
        if (!buffer_operands(b, op))
            return false;
    } else {
        flat_operands(b, op);
        if (in->lds) { /* gfx90a: a bit of the plain load */
            op->to_lds = true;
            r->body = body_load_lds;
        }
        if (op->seg != SEG_SCRATCH && !r->src[0].kind && !op->addtid)
            return false;
    }
    if (in->tfe && (r->body == body_load || r->body == sim_body_typed_load))
        r->body = body_load_tfe;
    r->p = op;
    b->x->mem_bytes = op->acc.bytes;
    return true;
}
