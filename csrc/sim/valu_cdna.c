/* valu_cdna.c - vector instructions of CDNA whose operands are wider than the kernels' rows.
 */
#include "sim/core.h"

/* Four masked sums of absolute differences: of bytes i..i+3 of the first source with the second, bytes that
 * are zero in the second left out; each added to its dword of the third. r->fl: saturate. */
static const SimRec *
body_mqsad(SimWave *w, const SimRec *r)
{
    uint32_t t0[128], t1[128], t2[128], out[4 * LANES];
    const uint32_t *a = src_row(w, r->src[0], t0), *b = src_row(w, r->src[1], t1),
                   *c = src_row(w, r->src[2], t2);
    uint32_t *d = ROW(w, r->dst);
    for (uint32_t l = 0; l < LANES; l++) {
        uint64_t x = a[l] | (uint64_t)a[l + LANES] << 32;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t sum = c[i * LANES + l];
            for (uint32_t k = 0; k < 4; k++) {
                int32_t p = (int32_t)(x >> 8 * (i + k) & 255), q = (int32_t)(b[l] >> 8 * k & 255);
                sum += q ? (uint32_t)(p > q ? p - q : q - p) : 0;
            }
            out[i * LANES + l] = r->fl && sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
        }
    }
    const uint32_t *m = exec_mask(w, EXEC(w));
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t l = 0; l < LANES; l++)
            d[k * LANES + l] = (out[k * LANES + l] & m[l]) | (d[k * LANES + l] & ~m[l]);
    return NEXT(r);
}

/* Scales are for the matrix instruction right behind, with which this decodes as one: alone it does nothing.
 */
static const SimRec *
body_ld_scale(SimWave *w, const SimRec *r)
{
    (void)w;
    return NEXT(r);
}

bool
sim_build_valu_cdna(SimBuild *b)
{
    SimRec *r = b->r;
    const IsaInst *in = b->in;
    if (!strcmp(b->name, "v_mfma_ld_scale_b32")) {
        r->body = body_ld_scale;
        b->x->poison = POI_NONE;
        return true;
    }
    if (strcmp(b->name, "v_mqsad_u32_u8"))
        return sim_build_cvt_scale(b);
    const IsaOpnd *d = &in->opnd[0];
    for (uint32_t i = 0; i < 3; i++) {
        const IsaOpnd *o = sim_build_read(b, i);
        if (!o)
            return false;
        r->src[i] = sim_build_src(b, o);
    }
    if (r->src[2].kind != SRC_V)
        return false;
    r->dst = (uint16_t)(d->reg + (d->kind == ISA_OPND_AGPR ? ROW_AGPR : 0));
    r->ndst = 4;
    r->fl = in->clamp;
    r->body = body_mqsad;
    b->x->poison = POI_TUPLE;
    return true;
}
