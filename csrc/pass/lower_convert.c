/* lower_convert.c - a tile from one layout to another: by renaming registers where each lane already has what
 * it needs, else through a scratch area of LDS (solved for both layouts); and the scratch area itself.
 *
 * The scratch is used by all waves together: a barrier before it is written (others may still read what was
 * there) and one after.
 */
#include "pass/lower.h"

/* Offset of a scratch area of n bytes; one area serves all users, one after the other. */
uint32_t
lw_scratch(Lw *lw, uint32_t n)
{
    uint32_t base = (lw->lds_bytes + 255) / 256 * 256;
    lw->scratch_bytes = TL_MAX(lw->scratch_bytes, n);
    return base;
}

/* Registers of dst from registers of the same lane of t; conv: (register, lane, wave) of dst -> of t. */
static LwTile *
rename_regs(Lw *lw, const LwTile *t, const TlLayout *dst, const TlLayout *conv)
{
    uint32_t n = 1u << tl_layout_in_bits(dst, TL_DIM_REG), chunk = TL_MIN(n, TL_MAX(t->chunk, 1u));
    LwTile *r = lw_tile_new(lw, dst, t->elem, chunk);
    TlVal *part = TL_NEW_N(lw->arena, TlVal, chunk);
    if (!r || !part)
        return NULL;
    for (uint32_t i = 0; i < r->nchunk; i++) {
        bool whole = t->chunk == chunk;
        uint32_t first = 0;
        for (uint32_t j = 0; j < chunk; j++) {
            uint32_t s = tl_layout_at(conv, i * chunk + j, 0, 0, TL_DIM_REG);
            if (!j)
                first = s;
            whole = whole && s == first + j && first % chunk == 0;
            part[j] = 0;
        }
        if (whole) {
            r->v[i] = t->v[first / chunk];
            continue;
        }
        for (uint32_t j = 0; j < chunk; j++)
            part[j] = lw_tile_elem(lw, t, tl_layout_at(conv, i * chunk + j, 0, 0, TL_DIM_REG));
        if (!(r->v[i] = lw_concat(lw, t->elem, part, chunk, chunk)))
            return NULL;
    }
    return r;
}

LwTile *
lw_tile_cast(Lw *lw, const LwTile *t, TlElem to)
{
    if (!t || t->elem == to)
        return (LwTile *)(uintptr_t)t;
    LwTile *r = lw_tile_new(lw, &t->lay, to, t->chunk);
    for (uint32_t i = 0; r && i < r->nchunk; i++)
        if (!(r->v[i] = lw_pure(lw, TL_OP_cast, tl_type_vec(lw->ir, to, t->chunk), &t->v[i], 1, NULL, 0)))
            return NULL;
    return r;
}

static LwTile *
through_lds(Lw *lw, const LwTile *t, const TlLayout *dst, TlOp at)
{
    LwShared s = {.elem = t->elem, .solved = true, .bit = LW_SCRATCH_BIT};
    TlLdsAccess acc[2] = {{.op = TL_LDS_WRITE, .layout = t->lay, .max_bytes = 16, .weight = 1},
                          {.op = TL_LDS_READ, .layout = *dst, .max_bytes = 16, .weight = 1}};
    TlAddrSplit split[2];
    uint32_t total;
    for (; s.rank < LW_MAX_RANK && tl_layout_has_out(dst, (TlDim)(TL_DIM_0 + s.rank)); s.rank++)
        s.shape[s.rank] = 1u << tl_layout_out_bits(dst, (TlDim)(TL_DIM_0 + s.rank));
    if (!s.rank || !tl_lds_solve(lw->tgt, s.rank, s.shape, tl_elem_bytes(t->elem), s.rank - 1, acc, 2, &s.map,
                                 split, &total)) {
        lw_fail(lw, at, TL_E_INTERNAL, "no LDS layout for a conversion");
        return NULL;
    }
    s.offset = lw_scratch(lw, s.map.bytes);
    LwLdsAcc w = {.lay = t->lay, .split = split[0]}, r = {.lay = *dst, .split = split[1]};
    if (!lw_lds_write(lw, &s, &w, t))
        return NULL;
    return lw_lds_read(lw, &s, &r);
}

/* The register to take is the same one in every lane and wave. */
static bool
same_register(const TlLayout *conv)
{
    static const TlDim in[] = {TL_DIM_LANE, TL_DIM_WAVE};
    for (uint32_t i = 0; i < TL_COUNT(in); i++)
        for (uint32_t b = 0; b < tl_layout_in_bits(conv, in[i]); b++)
            if (tl_layout_get(conv, in[i], b, TL_DIM_REG))
                return false;
    return true;
}

LwTile *
lw_convert(Lw *lw, const LwTile *t, const TlLayout *dst, TlOp at)
{
    TlConvert kind;
    TlLayout conv;
    if (!tl_layout_convert(&kind, &conv, &t->lay, dst)) {
        lw_fail(lw, at, TL_E_INTERNAL, "layouts of one tile have different shapes");
        return NULL;
    }
    if (kind == TL_CONVERT_NONE || (kind == TL_CONVERT_REGS && same_register(&conv)))
        return rename_regs(lw, t, dst, &conv);
    if (t->elem == TL_ELEM_I1) {
        LwTile *b = lw_tile_cast(lw, t, TL_ELEM_U8);
        return lw_tile_cast(lw, b ? through_lds(lw, b, dst, at) : NULL, TL_ELEM_I1);
    }
    return through_lds(lw, t, dst, at);
}
