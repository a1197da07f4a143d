/* lane.c - VALU instructions that cross lanes or files: readlane, writelane, swap, nop. */
#include "sim/valu.h"

#define BODY(name) static const SimRec *l_##name(SimWave *w, const SimRec *r)

static uint32_t
first_lane(uint64_t exec)
{
    return exec ? (uint32_t)__builtin_ctzll(exec) : 0;
}
BODY(readfirst)
{
    uint32_t t[128];
    w->s[r->dst] = src_row(w, r->src[0], t)[first_lane(EXEC(w))];
    return NEXT(r);
}
BODY(readlane)
{
    uint32_t t[128];
    w->s[r->dst] = src_row(w, r->src[0], t)[s32(w, r->src[1]) & sim_lane_bits(w)];
    return NEXT(r);
}
BODY(writelane)
{
    ROW(w, r->dst)[s32(w, r->src[1]) & sim_lane_bits(w)] = s32(w, r->src[0]);
    return NEXT(r);
}
BODY(swap)
{
    sim_swap_rows(w, ROW(w, r->dst), ROW(w, r->src[0].idx));
    return NEXT(r);
}
/* Exchanges odd rows (of 16 or 32 lanes) of the first with even rows of the second register. */
BODY(permswap)
{
    uint32_t *a = ROW(w, r->dst), *b = ROW(w, r->src[0].idx), n = r->aux;
    uint64_t exec = EXEC(w);
    for (uint32_t l = 0; l < LANES; l++) {
        if (l & n || !((exec >> l) & 1) || !((exec >> (l + n)) & 1))
            continue;
        uint32_t t = a[l + n];
        a[l + n] = b[l];
        b[l] = t;
    }
    return NEXT(r);
}
const SimRec *
sim_body_nop(SimWave *w, const SimRec *r)
{
    (void)w;
    return NEXT(r);
}

/* v_mqsad_u32_u8: four sums of differences of sliding bytes, where a byte of the second source is not 0. */
BODY(mqsad)
{
    uint32_t t0[128], t1[128], res[4 * LANES];
    const uint32_t *a = src_row(w, r->src[0], t0), *s = src_row(w, r->src[1], t1), *c = ROW(w, r->src[2].idx);
    for (uint32_t l = 0; l < LANES; l++) {
        uint64_t bytes = a[l] | (uint64_t)a[l + LANES] << 32;
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t sum = c[k * LANES + l];
            for (uint32_t j = 0; j < 4; j++) {
                int32_t p = (bytes >> (8 * (k + j))) & 255, q = (s[l] >> (8 * j)) & 255;
                sum += q ? (uint32_t)abs(p - q) : 0;
            }
            res[k * LANES + l] = r->aux && sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
        }
    }
    sim_blend(w, EXEC(w), ROW(w, r->dst), res, 4);
    return NEXT(r);
}

static bool
build_mqsad(SimBuild *b)
{
    SimRec *r = b->r;
    for (uint32_t i = 0; i < 3; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o)
            return false;
        r->src[i] = sim_build_src(b, o);
    }
    r->dst = b->in->opnd[0].reg;
    r->ndst = 4;
    r->aux = b->in->clamp;
    r->body = l_mqsad;
    b->x->poison = POI_WIDE;
    return r->src[2].kind == SRC_V;
}

bool
sim_build_lane(SimBuild *b)
{
    const char *n = b->name;
    SimRec *r = b->r;
    const IsaInst *in = b->in;
    if (n[0] != 'v')
        return false;
    if (!strcmp(n, "v_nop") || !strcmp(n, "v_clrexcp") || !strcmp(n, "v_pipeflush")) {
        r->body = sim_body_nop;
        b->x->poison = POI_NONE;
        return true;
    }
    if (!strcmp(n, "v_mqsad_u32_u8"))
        return build_mqsad(b);
    bool rf = !strcmp(n, "v_readfirstlane_b32"), rl = !strcmp(n, "v_readlane_b32"),
         wl = !strcmp(n, "v_writelane_b32"),
         ps = !strcmp(n, "v_permlane16_swap_b32") || !strcmp(n, "v_permlane32_swap_b32"),
         sw = ps || !strcmp(n, "v_swap_b32");
    if (!rf && !rl && !wl && !sw)
        return sim_build_lane_rdna(b);
    const IsaOpnd *d = &in->opnd[0];
    r->dst = d->kind == ISA_OPND_SGPR ? sim_build_sreg(b, d)
                                      : (uint16_t)(d->reg + (d->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
    if (sw) {
        if (in->nopnds < 2)
            return false;
        r->src[0] = sim_build_src(b, &in->opnd[1]);
        r->body = ps ? l_permswap : l_swap;
        r->aux = n[10] == '1' ? 16 : 32;
        b->x->poison = ps ? POI_PERMSWAP : POI_SWAP;
        return r->src[0].kind == SRC_V;
    }
    const IsaOpnd *p = sim_build_read(b, 0), *q = sim_build_read(b, 1);
    if (!p || (!rf && !q))
        return false;
    r->src[0] = sim_build_src(b, p);
    if (q)
        r->src[1] = sim_build_src(b, q);
    r->body = rf ? l_readfirst : rl ? l_readlane : l_writelane;
    b->x->poison = rf ? POI_READFIRST : rl ? POI_READLANE : POI_WRITELANE;
    b->x->lanesel = q && q->kind == ISA_OPND_SGPR; /* the last scalar read; a constant lane needs nothing */
    return true;
}
