/* ds_tr.c - LDS loads of gfx950 that transpose within 16 lanes: lane i gets element i of the 16 that its row
 * holds for each j. With E elements a lane read, out[lane i][j] is element (16 j + i) of the 16 E elements
 * that the lanes read one after the other.
 */
#include "sim/access.h"
#include "sim/check.h"

typedef struct DsTr {
    const void *load; /* what the plain load of that width has in its record */
    uint8_t bits, elems, dwords;
} DsTr;

static uint32_t
get_bits(const uint32_t *rows, uint32_t l, uint32_t at, uint32_t bits)
{
    uint32_t word = at / 32, sh = at % 32, v = rows[word * LANES + l] >> sh;
    if (sh + bits > 32)
        v |= rows[(word + 1) * LANES + l] << (32 - sh);
    return v & ((1u << bits) - 1);
}

static void
transpose_poison(SimWave *w, const SimRec *r, const DsTr *t, uint64_t exec)
{
    uint64_t out[4] = {0}, *vp = w->chk->vp + r->dst;
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t j = 0; j < t->elems; j++) {
            uint32_t n = 16 * j + l % 16, from = (l & ~15u) + n / t->elems,
                     word = n % t->elems * t->bits / 32;
            out[j * t->bits / 32] |= (vp[word] >> from & 1) << l;
        }
    for (uint32_t k = 0; k < t->dwords; k++)
        set_vp(w->chk, r->dst + k, (vp[k] & ~exec) | (out[k] & exec));
}

static const SimRec *
body_ds_tr(SimWave *w, const SimRec *r)
{
    const DsTr *t = r->p;
    SimRec plain = *r;
    uint32_t in[3 * LANES], out[3 * LANES], *d = ROW(w, r->dst);
    uint64_t exec = EXEC(w);
    plain.p = t->load;
    if (!sim_body_ds_load(w, &plain))
        return NULL;
    memcpy(in, d, (size_t)t->dwords * LANES * 4);
    memset(out, 0, sizeof out);
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t j = 0; j < t->elems; j++) {
            uint32_t n = 16 * j + l % 16, from = (l & ~15u) + n / t->elems, at = j * t->bits;
            uint64_t v = (uint64_t)get_bits(in, from, n % t->elems * t->bits, t->bits) << at % 32;
            out[at / 32 * LANES + l] |= (uint32_t)v;
            if (v >> 32)
                out[(at / 32 + 1) * LANES + l] |= (uint32_t)(v >> 32);
        }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t k = 0; k < t->dwords && (exec >> l & 1); k++)
            d[k * LANES + l] = out[k * LANES + l];
    if (w->chk)
        transpose_poison(w, r, t, exec);
    return NEXT(r);
}

/* Behind the build of the plain load: is this a transposing one? false: out of memory. */
bool
sim_build_ds_tr(SimBuild *b, uint32_t bits)
{
    DsTr *t = tl_arena_alloc(&b->code->arena, sizeof *t, 8);
    if (!t) {
        b->failed = true;
        return false;
    }
    t->load = b->r->p;
    t->bits = (uint8_t)bits;
    t->dwords = bits == 6 ? 3 : 2;
    t->elems = (uint8_t)(bits == 6 ? 16 : 64 / bits);
    b->r->p = t;
    b->r->body = body_ds_tr;
    return true;
}
