/* vmem_more.c - vector memory of gfx11 and gfx12 that is more than one value a lane: accesses numbered by
 * lane, blocks of registers picked by M0, loads that transpose a 16x16 matrix on its way.
 */
#include "sim/valu.h"
#include "sim/vmem.h"

/* ---- blocks: register i of 32 holds the dword at address + 4 * i, where bit i of M0 is set ---- */

static const SimRec *
body_block_load(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint64_t exec = EXEC(w);
    for (uint32_t m = exec ? w->s[S_M0] : 0; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m), row[64];
        SimRec one = *r;
        VmLanes v;
        one.imm += (int32_t)(4 * i);
        if (!sim_vm_lanes(w, &one, op, &v, false, exec))
            return NULL;
        if (w->chk && !sim_vm_check_load(w, &one, op, &v))
            return NULL;
        sim_load_dwords(row, v.ptr, 1);
        sim_write_back(w, &op->acc, v.exec, r->dst + i, row);
        if (w->chk)
            sim_write_poison(w, &op->acc, v.exec, r->dst + i, v.undef);
        if (w->stats)
            w->stats->global_read[SIM_WIDTH_4] += 4 * (uint64_t)__builtin_popcountll(v.ok & ~v.priv);
    }
    return NEXT(r);
}

static const SimRec *
body_block_store(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint64_t exec = EXEC(w);
    for (uint32_t m = exec ? w->s[S_M0] : 0; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        SimRec one = *r;
        VmLanes v;
        one.imm += (int32_t)(4 * i);
        one.src[1].idx = (uint16_t)(one.src[1].idx + i);
        if (!sim_vm_lanes(w, &one, op, &v, true, exec))
            return NULL;
        if (w->chk && !sim_vm_check_store(w, &one, op, &v))
            return NULL;
        sim_store_dwords(ROW(w, one.src[1].idx), v.ptr, v.ok, 1);
        if (w->stats)
            w->stats->global_write[SIM_WIDTH_4] += 4 * (uint64_t)__builtin_popcountll(v.ok & ~v.priv);
    }
    return NEXT(r);
}

/* ---- lane-numbered accesses ---- */

static const SimRec *
body_addtid_load(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint64_t exec = EXEC(w);
    uint32_t row[64];
    VmLanes v;
    if (!exec)
        return NEXT(r);
    if (!sim_vm_lanes(w, r, op, &v, false, exec))
        return NULL;
    if (w->chk && !sim_vm_check_load(w, r, op, &v))
        return NULL;
    sim_load_dwords(row, v.ptr, 1);
    sim_write_back(w, &op->acc, v.exec, r->dst, row);
    if (w->chk)
        sim_write_poison(w, &op->acc, v.exec, r->dst, v.undef);
    if (w->stats)
        w->stats->global_read[SIM_WIDTH_4] += 4 * (uint64_t)__builtin_popcountll(v.ok);
    return NEXT(r);
}

static const SimRec *
body_addtid_store(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint64_t exec = EXEC(w);
    VmLanes v;
    if (!exec)
        return NEXT(r);
    if (!sim_vm_lanes(w, r, op, &v, true, exec))
        return NULL;
    if (w->chk && !sim_vm_check_store(w, r, op, &v))
        return NULL;
    sim_store_dwords(ROW(w, r->src[1].idx), v.ptr, v.ok, 1);
    if (w->stats)
        w->stats->global_write[SIM_WIDTH_4] += 4 * (uint64_t)__builtin_popcountll(v.ok);
    return NEXT(r);
}

/* ---- transposing loads
 *
 * 32 lanes name a run of 8 elements each (16 bytes of 16-bit ones, 8 bytes of 8-bit ones). Element j of lane
 * l is element l % 8 of the run of another lane. Waves of 64 lanes: only lanes 0..31 give addresses;
 * lanes 32..63 get the upper half of the elements of the lane 32 below. Addressed as compilers do it (16
 * bits: row 8 * (l / 16) + l % 8, column 8 * (l / 8 % 2); 8 bits: row 4 * (l / 8) + l % 4, column 8 * (l / 4
 * % 2)), lane l holds rows 8 * (l / 16) .. + 7 of column l % 16. Measured on the chip by two projects; the
 * wave of 64 lanes as Mesa's compiler has it.
 */

static uint32_t
run_of(uint32_t bytes, uint32_t lane, uint32_t j)
{
    if (bytes == 2)
        return 8 * (lane / 8) + j;
    return 4 * (lane >> 3 & 1) + 16 * (lane >> 4 & 1) + (j & 3) + 8 * (j >> 2);
}

static const SimRec *
body_load_tr(SimWave *w, const SimRec *r)
{
    const VmOp *op = r->p;
    uint64_t exec = EXEC(w);
    SimUndef undef[4] = {0};
    uint32_t nd = op->acc.dwords, size = op->acc.bytes / 8; /* of an element */
    uint32_t runs[4 * 64], rows[4 * 64] = {0};
    bool wide = w->lane_mask == ~UINT64_C(0);
    VmLanes v;
    if (!exec)
        return NEXT(r);
    memset(v.undef, 0, sizeof v.undef);
    if (!sim_vm_lanes(w, r, op, &v, false, exec & UINT32_MAX))
        return NULL;
    if (w->chk && !sim_vm_check_load(w, r, op, &v))
        return NULL;
    sim_load_dwords(runs, v.ptr, nd);
    for (uint32_t l = 0; l < (wide ? 64u : 32u); l++)
        for (uint32_t e = 0; e < (wide ? 4u : 8u); e++) {
            uint32_t from = run_of(size, l & 31, e + 4 * (l / 32)), at = l % 8 * size, to = e * size;
            uint32_t x = runs[at / 4 * 64 + from] >> at % 4 * 8 & (size == 2 ? 0xffff : 0xff);
            rows[to / 4 * 64 + l] |= x << to % 4 * 8;
            undef[to / 4].any |= (v.undef[at / 4].any >> from & 1) << l;
        }
    SimAcc a = op->acc;
    a.dwords = (uint8_t)(wide ? nd / 2 : nd);
    sim_write_back(w, &a, exec, r->dst, rows);
    if (w->chk)
        sim_write_poison(w, &a, exec, r->dst, undef);
    if (w->stats)
        w->stats->global_read[op->acc.width] += (uint64_t)__builtin_popcountll(v.ok) * op->acc.bytes;
    return NEXT(r);
}

bool
sim_vm_parse_more(const char *s, VmOp *op, SimBody *body)
{
    static const struct {
        const char *name, *acc;
        SimBody body;
        bool addtid, stores;
    } rows[] = {
        {"load_addtid_b32", "b32", body_addtid_load, true, false},
        {"store_addtid_b32", "b32", body_addtid_store, true, true},
        {"load_block", "b32", body_block_load, false, false},
        {"store_block", "b32", body_block_store, false, true},
        {"load_tr_b64", "b64", body_load_tr, false, false},
        {"load_tr_b128", "b128", body_load_tr, false, false},
    };
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (!strcmp(rows[i].name, s)) {
            *body = rows[i].body;
            op->addtid = rows[i].addtid;
            op->stores = rows[i].stores;
            return sim_acc_parse(rows[i].acc, &op->acc);
        }
    return false;
}
