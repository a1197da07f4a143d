/* smem_write.c - scalar stores, atomics and scratch (gfx90a, gfx942, gfx950 encode them).
 *
 * Addresses: base + offset [+ register], low two bits dropped; of s_scratch_* the register counts 64 bytes. A
 * buffer access beyond the descriptor's range is dropped, an atomic's old value is then 0. Stores are in
 * memory at once.
 */
#include "sim/access.h"
#include "sim/check.h"

enum { SM_BUFFER = 1, SM_SCRATCH = 2 };

static bool
smem_address(SimWave *w, const SimRec *r, uint32_t bytes, uint64_t *addr)
{
    uint64_t off = (uint64_t)(int64_t)r->imm;
    if (r->src[1].kind)
        off += (uint64_t)s32(w, r->src[1]) * (r->aux & SM_SCRATCH ? 64u : 1u);
    if (!(r->aux & SM_BUFFER)) {
        *addr = ((s64(w, r->src[0]) & ~UINT64_C(3)) + off) & ~UINT64_C(3);
        return true;
    }
    const uint32_t *d = w->s + r->src[0].idx;
    uint32_t stride = (d[1] >> 16) & 0x3fff;
    uint64_t size = (uint64_t)d[2] * (stride ? stride : 1);
    off &= ~UINT64_C(3);
    *addr = ((d[0] | (uint64_t)(d[1] & 0xffff) << 32) & ~UINT64_C(3)) + off;
    return off <= size && bytes <= size - off;
}

/* The extent of a write; NULL with *stop unset: dropped (reported). */
static const SimExtent *
smem_target(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n, bool *stop)
{
    const SimExtent *x = w->port ? sim_mem_find(w->port, addr, n) : NULL;
    bool bounds = checking(w, SIM_CHECK_BOUNDS), writable = x && !(x->flags & SIM_EXT_READONLY);
    *stop = false;
    if (UNLIKELY(!writable || (bounds && !sim_extent_holds(x, addr, n)))) {
        char text[SIM_WHERE];
        sim_describe(w, addr, n, text, sizeof text);
        *stop = !sim_fault(w, r, bounds ? SIM_CHECK_BOUNDS : SIM_FAULT_MEMORY, !bounds, 0, sim_at(addr),
                           UINT32_MAX, 0, "scalar write of %u bytes %s", n, text);
        return writable && !*stop ? x : NULL;
    }
    return x;
}

/* Undefined data, definedness of the bytes, races. */
static bool
smem_checks(SimWave *w, const SimRec *r, const SimExtent *x, uint64_t addr, uint32_t ndata, uint32_t n,
            SimAccess kind)
{
    if (w->chk && checking(w, SIM_CHECK_INIT)) {
        for (uint32_t k = 0; k < ndata; k++) {
            if (!w->chk->sp[r->dst + k])
                continue;
            w->chk->sp[r->dst + k] = 0;
            char from[SIM_ORIGIN];
            uint64_t pc;
            sim_chk_origin_text(w, ROWS + r->dst + k, from, sizeof from, &pc);
            if (!sim_fault(w, r, SIM_CHECK_INIT, false, 0, addr, UINT32_MAX, pc,
                           "undefined value of s%u is stored to global memory%s", r->dst + k, from))
                return false;
        }
        if (kind == SIM_ACC_WRITE && x->init)
            sim_mark_defined(x, addr, n);
    }
    if (w->g->info && w->g->info->race && checking(w, SIM_CHECK_RACE)) {
        uint64_t lanes[64];
        for (uint32_t k = 0; k < n / 4; k++)
            lanes[k] = addr + 4 * k;
        sim_global_race(w, r, lanes, (UINT64_C(1) << (n / 4)) - 1, 4, kind);
    }
    return w->stop == ST_RUN;
}

static const SimRec *
body_store(SimWave *w, const SimRec *r)
{
    uint32_t n = 4u * r->ndst, done = n;
    uint64_t addr;
    if (!smem_address(w, r, n, &addr)) { /* dword by dword at the end of the range */
        for (done = n; done && !smem_address(w, r, done, &addr);)
            done -= 4;
        if (!done)
            return NEXT(r);
    }
    bool stop;
    const SimExtent *x = smem_target(w, r, addr, done, &stop);
    if (stop || (x && !smem_checks(w, r, x, addr, done / 4, done, SIM_ACC_WRITE)))
        return NULL;
    if (x)
        sim_dm_write(addr, w->s + r->dst, done);
    return NEXT(r);
}

static const SimRec *
body_atomic(SimWave *w, const SimRec *r)
{
    const SimAcc *a = r->p;
    uint32_t n = a->bytes, *data = w->s + r->dst;
    uint64_t addr, old = 0, d = n == 8 ? get64(data) : *data, cmp = 0;
    if (a->atom == AT_CMPSWAP)
        cmp = n == 8 ? get64(data + 2) : data[1];
    bool in = smem_address(w, r, n, &addr), stop = false;
    addr &= ~(uint64_t)(n - 1);
    const SimExtent *x = in ? smem_target(w, r, addr, n, &stop) : NULL;
    if (stop || (x && !smem_checks(w, r, x, addr, r->ndst, n, SIM_ACC_ATOMIC)))
        return NULL;
    if (x)
        old = sim_atom_at(addr, (AtomOp)a->atom, n, d, cmp);
    if (w->stats)
        w->stats->atomics++;
    if (a->rtn) {
        data[0] = (uint32_t)old;
        if (n == 8)
            data[1] = (uint32_t)(old >> 32);
        if (w->chk)
            for (uint32_t k = 0; k < n / 4; k++)
                w->chk->sp[r->dst + k] = 0;
    }
    return NEXT(r);
}

static const SimRec *
body_scratch_load(SimWave *w, const SimRec *r)
{
    uint64_t addr;
    uint32_t t[4];
    smem_address(w, r, 4u * r->ndst, &addr);
    if (!sim_smem_read(w, r, addr, 4u * r->ndst, t))
        return NULL;
    memcpy(w->s + r->dst, t, (size_t)4 * r->ndst);
    return NEXT(r);
}

/* Operands: data (of a returning atomic the destination too), base, register or offset. */
bool
sim_build_smem_write(SimBuild *b)
{
    static const struct {
        const char *start;
        SimBody body;
        uint16_t flags;
    } rows[] = {
        {"s_store_dword", body_store, 0},
        {"s_buffer_store_dword", body_store, SM_BUFFER},
        {"s_scratch_store_dword", body_store, SM_SCRATCH},
        {"s_scratch_load_dword", body_scratch_load, SM_SCRATCH},
        {"s_atomic_", body_atomic, 0},
        {"s_buffer_atomic_", body_atomic, SM_BUFFER},
    };
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    uint32_t i = 0;
    while (i < TL_COUNT(rows) && strncmp(b->name, rows[i].start, strlen(rows[i].start)))
        i++;
    if (i == TL_COUNT(rows))
        return false;
    r->body = rows[i].body;
    r->aux = rows[i].flags;
    b->x->poison = POI_NONE;
    b->x->smem_data = rows[i].body != body_scratch_load;
    if (in->nopnds < 2 || in->opnd[0].kind != ISA_OPND_SGPR || in->opnd[1].kind != ISA_OPND_SGPR)
        return false;
    r->dst = sim_build_sreg(b, &in->opnd[0]);
    r->ndst = in->opnd[0].nregs;
    r->src[0] = sim_build_src(b, &in->opnd[1]);
    const IsaOpnd *so = in->nopnds > 2 ? &in->opnd[2] : NULL;
    if (so && !(so->flags & ISA_IMPLICIT) && so->kind != ISA_OPND_NONE && so->kind != ISA_OPND_IMM)
        r->src[1] = sim_build_src(b, so);
    r->imm = in->offset;
    if (r->body == body_atomic) {
        SimAcc *a = tl_arena_alloc(&b->code->arena, sizeof *a, 8);
        if (!a) {
            b->failed = true;
            return false;
        }
        const char *op = b->name + strlen(rows[i].start);
        if (!sim_atom_parse(op, false, a))
            return false;
        a->rtn = in->glc || in->sc0;
        r->p = a;
    }
    return true;
}
