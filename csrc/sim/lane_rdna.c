/* lane_rdna.c - VALU instructions of gfx11 and gfx12 that cross lanes or files: permlane16, permlanex16
 * (selects in scalars or in a register), permlane64, moves and swaps relative to M0, the swap of halves, and
 * the transcendentals that work on scalars.
 */
#include "sim/valu.h"

#define BODY(name) static const SimRec *l_##name(SimWave *w, const SimRec *r)

enum { PERM_CROSS = 1, PERM_VAR = 2, PERM_FETCH = 4, PERM_ZERO = 8, PERM_64 = 16 };

/* For each lane the lane it reads (255: none, keeps its value). */
void
sim_perm_lanes(SimWave *w, const SimRec *r, uint8_t lane[64])
{
    if (r->aux & PERM_64) {
        for (uint32_t l = 0; l < LANES; l++)
            lane[l] = (uint8_t)(l ^ 32);
        return;
    }
    uint64_t exec = EXEC(w), sel = 0;
    uint32_t t[128];
    const uint32_t *var = NULL;
    if (r->aux & PERM_VAR)
        var = src_row(w, r->src[1], t);
    else
        sel = s32(w, r->src[1]) | (uint64_t)s32(w, r->src[2]) << 32;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t row = (l & ~15u) ^ (r->aux & PERM_CROSS ? 16 : 0);
        uint32_t from = row + (uint32_t)(var ? var[l] & 15 : (sel >> (4 * (l & 15))) & 15);
        bool valid = (r->aux & PERM_FETCH) || ((exec >> from) & 1);
        lane[l] = (uint8_t)(valid ? from : r->aux & PERM_ZERO ? 254 : 255);
    }
}

BODY(perm)
{
    uint8_t lane[64];
    uint32_t t[128], res[64], *d = ROW(w, r->dst);
    const uint32_t *s = src_row(w, r->src[0], t);
    sim_perm_lanes(w, r, lane);
    for (uint32_t l = 0; l < LANES; l++)
        res[l] = lane[l] < 64 ? s[lane[l]] : lane[l] == 254 ? 0 : d[l];
    sim_blend(w, EXEC(w), d, res, 1);
    return NEXT(r);
}

/* ---- relative to M0 ---- */

enum { REL_SRC = 1, REL_DST = 2, REL_APART = 4 /* two offsets in M0 */ };

/* Rows of the source and destination; false: the destination is no register and nothing is written. */
bool
sim_rel_rows(const SimWave *w, const SimRec *r, uint32_t *src, uint32_t *dst)
{
    uint32_t m0 = w->s[S_M0], so = r->aux & REL_APART ? m0 & 1023 : m0,
             dof = r->aux & REL_APART ? (m0 >> 16) & 1023 : m0;
    uint64_t s = r->src[0].idx + (r->aux & REL_SRC ? (uint64_t)so : 0),
             d = r->dst + (r->aux & REL_DST ? (uint64_t)dof : 0);
    *src = s < ROW_AGPR ? (uint32_t)s : 0; /* out of range: v0 */
    *dst = d < ROW_AGPR ? (uint32_t)d : 0;
    return d < ROW_AGPR;
}

BODY(movrel)
{
    uint32_t t[128], res[128], src, dst;
    uint64_t write = EXEC(w);
    if (!sim_rel_rows(w, r, &src, &dst))
        return NEXT(r);
    const uint32_t *s = r->src[0].kind == SRC_V ? ROW(w, src) : src_row(w, r->src[0], t);
    if (sim_is_dpp(&r->ext->in)) {
        write &= sim_apply_dpp(w, r->ext, s, res, 1);
        s = res;
    }
    sim_blend(w, write, ROW(w, dst), s, 1);
    return NEXT(r);
}

BODY(swaprel)
{
    uint32_t src, dst;
    if (!sim_rel_rows(w, r, &src, &dst))
        return NEXT(r);
    sim_swap_rows(w, ROW(w, dst), ROW(w, src));
    return NEXT(r);
}

BODY(swap16)
{
    uint32_t *a = ROW(w, r->dst), *b = ROW(w, r->src[0].idx), sa = r->aux & 1 ? 16 : 0,
             sb = r->aux & 2 ? 16 : 0;
    const uint32_t *m = exec_mask(w, EXEC(w));
    for (int i = 0; i < LANES; i++) {
        uint32_t x = ((a[i] >> sa) ^ (b[i] >> sb)) & 0xffff & m[i];
        a[i] ^= x << sa;
        b[i] ^= x << sb;
    }
    return NEXT(r);
}

/* One value; EXEC does not matter. */
BODY(scalar)
{
    uint32_t res[128];
    uint64_t write;
    sim_valu_compute(w, r, res, &write);
    w->s[r->dst] = res[0];
    return NEXT(r);
}

/* ---- building ---- */

static bool
build_perm(SimBuild *b, const char *n)
{
    SimRec *r = b->r;
    const IsaOpnd *p = sim_build_read(b, 0), *q = sim_build_read(b, 1), *q2 = sim_build_read(b, 2);
    r->dst = b->in->opnd[0].reg;
    r->ndst = 1;
    b->x->poison = POI_PERM;
    if (!p)
        return false;
    r->src[0] = sim_build_src(b, p);
    r->body = l_perm;
    if (!strcmp(n, "v_permlane64_b32")) {
        r->aux = PERM_64;
        if (!b->code->wave64) { /* nothing to exchange */
            r->body = sim_body_nop;
            b->x->poison = POI_NONE;
        }
        return true;
    }
    bool var = strstr(n, "_var_");
    if (!q || (!var && !q2))
        return false;
    r->src[1] = sim_build_src(b, q);
    if (!var)
        r->src[2] = sim_build_src(b, q2);
    r->aux = (uint16_t)((n[10] == 'x' ? PERM_CROSS : 0) | (var ? PERM_VAR : 0) |
                        (b->in->op_sel & 1 ? PERM_FETCH : 0) | (b->in->op_sel & 2 ? PERM_ZERO : 0));
    return true;
}

static bool
build_rel(SimBuild *b, const char *n)
{
    static const struct {
        const char *name;
        uint16_t aux;
    } rel[] = {{"v_movreld_b32", REL_DST},
               {"v_movrels_b32", REL_SRC},
               {"v_movrelsd_b32", REL_SRC | REL_DST},
               {"v_movrelsd_2_b32", REL_SRC | REL_DST | REL_APART},
               {"v_swaprel_b32", REL_SRC | REL_DST | REL_APART}};
    SimRec *r = b->r;
    for (uint32_t k = 0; k < TL_COUNT(rel); k++) {
        if (strcmp(n, rel[k].name) || b->in->nopnds < 2)
            continue;
        r->dst = b->in->opnd[0].reg;
        r->ndst = 1;
        r->src[0] = sim_build_src(b, &b->in->opnd[1]);
        r->aux = rel[k].aux;
        r->body = n[2] == 's' ? l_swaprel : l_movrel;
        b->x->poison = n[2] == 's' ? POI_SWAPREL : POI_MOVREL;
        b->x->relidx = 1;
        return !sim_is_dpp(b->in) || sim_build_dpp(b);
    }
    return false;
}

bool
sim_build_lane_rdna(SimBuild *b)
{
    const char *n = b->name;
    SimRec *r = b->r;
    const IsaInst *in = b->in;
    if (!strncmp(n, "v_permlane", 10) && !strstr(n, "swap"))
        return build_perm(b, n);
    if (!strncmp(n, "v_movrel", 8) || !strncmp(n, "v_swaprel", 9))
        return build_rel(b, n);
    if (!strcmp(n, "v_swap_b16") && in->nopnds >= 2) {
        r->dst = in->opnd[0].reg;
        r->src[0] = sim_build_src(b, &in->opnd[1]);
        r->aux = (uint16_t)((in->opnd[0].half == 2 ? 1 : 0) | (in->opnd[1].half == 2 ? 2 : 0));
        r->body = l_swap16;
        b->x->poison = POI_SWAP;
        return r->src[0].kind == SRC_V;
    }
    if (!strncmp(n, "v_s_", 4) && b->kern) {
        const IsaOpnd *p = sim_build_read(b, 0);
        if (!p || in->opnd[0].kind != ISA_OPND_SGPR)
            return false;
        b->x->desc = &sim_kern_desc[b->kern - 1];
        r->fn = b->code->host->kern[b->kern - 1];
        r->dst = sim_build_sreg(b, &in->opnd[0]);
        r->ndst = 1;
        r->src[0] = sim_build_src(b, p);
        if (!sim_build_valu_gen(b, false))
            return false;
        r->body = l_scalar;
        b->x->poison = POI_SALU;
        return true;
    }
    return false;
}
