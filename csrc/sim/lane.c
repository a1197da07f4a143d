/* lane.c - VALU instructions that cross lanes or files: readlane, writelane, swap, nop. */
#include "sim/core.h"

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
    w->s[r->dst] = src_row(w, r->src[0], t)[s32(w, r->src[1]) & 63];
    return NEXT(r);
}
BODY(writelane)
{
    ROW(w, r->dst)[s32(w, r->src[1]) & 63] = s32(w, r->src[0]);
    return NEXT(r);
}
BODY(swap)
{
    uint32_t *a = ROW(w, r->dst), *b = ROW(w, r->src[0].idx);
    const uint32_t *m = exec_mask(w, EXEC(w));
    for (int i = 0; i < LANES; i++) {
        uint32_t x = (a[i] ^ b[i]) & m[i];
        a[i] ^= x;
        b[i] ^= x;
    }
    return NEXT(r);
}
BODY(nop)
{
    (void)w;
    return NEXT(r);
}

bool
sim_build_lane(SimBuild *b)
{
    const char *n = b->name;
    SimRec *r = b->r;
    const IsaInst *in = b->in;
    if (n[0] != 'v')
        return false;
    if (!strcmp(n, "v_nop") || !strcmp(n, "v_clrexcp")) {
        r->body = l_nop;
        b->x->poison = POI_NONE;
        return true;
    }
    bool rf = !strcmp(n, "v_readfirstlane_b32"), rl = !strcmp(n, "v_readlane_b32"),
         wl = !strcmp(n, "v_writelane_b32"), sw = !strcmp(n, "v_swap_b32");
    if (!rf && !rl && !wl && !sw)
        return false;
    const IsaOpnd *d = &in->opnd[0];
    r->dst = d->kind == ISA_OPND_SGPR ? sim_build_sreg(b, d)
                                      : (uint16_t)(d->reg + (d->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
    if (sw) {
        if (in->nopnds < 2)
            return false;
        r->src[0] = sim_build_src(b, &in->opnd[1]);
        r->body = l_swap;
        b->x->poison = POI_SWAP;
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
    b->x->lanesel = rl || wl;
    return true;
}
