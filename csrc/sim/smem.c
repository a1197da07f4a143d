/* smem.c - scalar memory: loads, buffer loads, clocks; cache operations and prefetches, which have no effect.
 */
#include "sim/core.h"
#include "sim/trace.h"

#define BODY(name) static const SimRec *f_##name(SimWave *w, const SimRec *r)

/* Definedness of n bytes at addr, to the scalars from r->dst on. */
static void
note_undef(SimWave *w, const SimRec *r, const SimExtent *x, uint64_t addr, uint32_t n)
{
    for (uint32_t k = 0; k < (n + 3) / 4; k++) {
        uint32_t u = sim_undef_mask(x, addr + 4 * k, TL_MIN(n - 4 * k, 4u)), bits = 0, d = r->dst + k;
        for (int q = 0; q < 4; q++)
            bits |= (u >> q & 1) ? 255u << (8 * q) : 0;
        if (bits)
            sim_chk_origin_found(w->chk, ORG_GLOBAL, addr + 4 * k + (uint32_t)__builtin_ctz(u));
        if (bits && n < 4 && r->fl) /* the extension to 32 bits spreads it */
            bits = ~0u;
        w->chk->sp[d] = bits;
        w->chk->sflag[d] = (uint8_t)((w->chk->sflag[d] & ~VF_POISON) | (bits ? VF_POISON : 0));
    }
}

/* Reads n bytes (a multiple of 4, or 1 or 2) to out. */
bool
sim_smem_read(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n, void *out)
{
    const SimExtent *x = w->port ? sim_mem_find(w->port, addr, n) : NULL;
    bool bounds = checking(w, SIM_CHECK_BOUNDS);
    if (!x && w->port && !w->chk && !bounds && sim_mem_in_tail(w->port, addr, n)) {
        sim_dm_read(out, addr, n);
        return true;
    }
    if (UNLIKELY(!x || (bounds && !sim_extent_holds(x, addr, n)))) {
        char text[SIM_WHERE];
        sim_describe(w, addr, n, text, sizeof text);
        if (!sim_fault(w, r, x || bounds ? SIM_CHECK_BOUNDS : SIM_FAULT_MEMORY, !x && !bounds, 0,
                       sim_at(addr), UINT32_MAX, 0, "scalar load of %u bytes %s", n, text))
            return false;
        if (!x) {
            memset(out, 0, n);
            return true;
        }
    }
    sim_dm_read(out, addr, n);
    if (w->chk && checking(w, SIM_CHECK_INIT))
        note_undef(w, r, x, addr, n);
    if (w->g->info && w->g->info->race && checking(w, SIM_CHECK_RACE) && !sim_chk_scalar_load(w, r, addr, n))
        return false;
    if (UNLIKELY(w->trace != NULL))
        sim_trace_scalar(w, addr, n);
    if (w->stats)
        w->stats->scalar_read += n;
    return w->stop == ST_RUN;
}
/* Base (in whole dwords), register offset and number. */
static uint64_t
smem_addr(SimWave *w, const SimRec *r)
{
    uint64_t addr = (s64(w, r->src[0]) & ~UINT64_C(3)) + (uint64_t)(int64_t)r->imm;
    return r->src[1].kind ? addr + s32(w, r->src[1]) : addr;
}
BODY(s_load)
{
    uint64_t addr = smem_addr(w, r);
    uint32_t t[16];
    if (!sim_smem_read(w, r, addr & ~UINT64_C(3), 4u * r->ndst, t))
        return NULL;
    memcpy(w->s + r->dst, t, (size_t)4 * r->ndst);
    return NEXT(r);
}
/* Loads of 1 and 2 bytes (gfx12); r->aux: bytes, r->fl: signed. */
static uint32_t
narrow(const SimRec *r, const uint8_t *t)
{
    uint32_t v = t[0] | (r->aux == 2 ? (uint32_t)t[1] << 8 : 0), sh = 32 - 8u * r->aux;
    return r->fl ? (uint32_t)((int32_t)(v << sh) >> sh) : v;
}
BODY(s_load_narrow)
{
    uint64_t addr = smem_addr(w, r) & ~(uint64_t)(r->aux - 1u);
    uint8_t t[2] = {0};
    if (!sim_smem_read(w, r, addr, r->aux, t))
        return NULL;
    w->s[r->dst] = narrow(r, t);
    return NEXT(r);
}

/* Base of the descriptor, its bytes, and the offset: the scalar rule knows no selection. */
typedef struct SmemRange {
    uint64_t base, size, off;
} SmemRange;
static SmemRange
smem_range(SimWave *w, const SimRec *r)
{
    const uint32_t *d = w->s + r->src[0].idx;
    uint32_t stride = (d[1] >> 16) & 0x3fff;
    SmemRange g = {(d[0] | (uint64_t)(d[1] & 0xffff) << 32) & ~UINT64_C(3),
                   (uint64_t)d[2] * (stride ? stride : 1), (uint64_t)(int64_t)r->imm};
    if (r->src[1].kind)
        g.off += s32(w, r->src[1]);
    return g;
}
BODY(s_buffer_load)
{
    SmemRange g = smem_range(w, r);
    uint64_t off = g.off & ~UINT64_C(3);
    uint32_t t[16], n = r->ndst;
    memset(t, 0, sizeof t);
    uint64_t have = off < g.size ? (g.size - off) / 4 : 0;
    uint32_t get = have < n ? (uint32_t)have : n;
    if (get && !sim_smem_read(w, r, g.base + off, 4 * get, t))
        return NULL;
    memcpy(w->s + r->dst, t, (size_t)4 * n);
    return NEXT(r);
}
BODY(s_buffer_load_narrow)
{
    SmemRange g = smem_range(w, r);
    uint64_t off = g.off & ~(uint64_t)(r->aux - 1u);
    uint8_t t[2] = {0};
    if (off + r->aux <= g.size && off <= g.size && !sim_smem_read(w, r, g.base + off, r->aux, t))
        return NULL;
    w->s[r->dst] = narrow(r, t);
    return NEXT(r);
}
BODY(dcache_inv)
{
    if (w->chk)
        sim_chk_scalar_inv(w);
    return NEXT(r);
}
BODY(no_effect)
{
    (void)w;
    return NEXT(r);
}
/* Clocks are deterministic: four cycles an instruction, counted at the start of a slice of work; within one
 * each reading is later than the one before. */
uint64_t
sim_read_clock(SimWave *w)
{
    uint64_t t = w->icount * 4;
    w->clock = w->clock + 16 > t ? w->clock + 16 : t;
    return w->clock;
}
BODY(s_memtime)
{
    put64(w->s + r->dst, sim_read_clock(w));
    return NEXT(r);
}
BODY(s_memrealtime)
{
    put64(w->s + r->dst, sim_read_clock(w) / 20);
    return NEXT(r);
}

bool
sim_build_smem(SimBuild *b)
{
    const IsaInst *in = b->in;
    SimRec *r = b->r;
    if (in->enc != ISA_SMEM)
        return false;
    const char *n = b->name;
    b->x->poison = POI_NONE;
    if (!strcmp(n, "s_dcache_inv")) {
        r->body = f_dcache_inv;
        return true;
    }
    if (!strncmp(n, "s_dcache", 8) || !strcmp(n, "s_gl1_inv") || strstr(n, "prefetch") ||
        !strncmp(n, "s_atc_probe", 11)) {
        r->body = f_no_effect;
        return true;
    }
    if (in->ndst == 1) {
        r->dst = sim_build_sreg(b, &in->opnd[0]);
        r->ndst = in->opnd[0].nregs;
    }
    if (!strcmp(n, "s_memtime") || !strcmp(n, "s_memrealtime")) {
        r->body = n[5] == 't' ? f_s_memtime : f_s_memrealtime;
        return true;
    }
    bool buf = !strncmp(n, "s_buffer_load", 13);
    if (!buf && strncmp(n, "s_load", 6))
        return sim_build_smem_write(b);
    const IsaOpnd *base = sim_build_read(b, 0), *so = sim_build_read(b, 1);
    if (!base)
        return false;
    r->src[0] = sim_build_src(b, base);
    if (buf && r->src[0].kind != SRC_S && r->src[0].kind != SRC_S64) /* null is no descriptor */
        return false;
    if (so && so->kind != ISA_OPND_NONE && so->kind != ISA_OPND_IMM)
        r->src[1] = sim_build_src(b, so);
    r->imm = in->offset;
    const char *what = n + (buf ? 14 : 7);
    bool small = !strcmp(what, "u8") || !strcmp(what, "i8") || !strcmp(what, "u16") || !strcmp(what, "i16");
    if (small) {
        r->aux = what[1] == '8' ? 1 : 2;
        r->fl = what[0] == 'i';
        r->body = buf ? f_s_buffer_load_narrow : f_s_load_narrow;
    } else {
        r->body = buf ? f_s_buffer_load : f_s_load;
    }
    return true;
}
