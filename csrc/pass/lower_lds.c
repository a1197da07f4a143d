/* lower_lds.c - tiles as registers of a thread (re-ordering them, 16-bit elements by byte permutes) and their
 * way to and from LDS through the solved map of a shared buffer.
 */
#include "pass/lower.h"

LwTile *
lw_tile_new(Lw *lw, const TlLayout *l, TlElem e, uint32_t chunk)
{
    LwTile *t = TL_NEW(lw->arena, LwTile);
    if (!t)
        return NULL;
    t->lay = *l;
    t->elem = e;
    t->chunk = chunk;
    t->nchunk = (1u << tl_layout_in_bits(l, TL_DIM_REG)) / chunk;
    t->v = TL_NEW_N(lw->arena, TlVal, t->nchunk);
    return t->v ? t : NULL;
}

/* Element `reg` as a scalar. */
TlVal
lw_tile_elem(Lw *lw, const LwTile *t, uint32_t reg)
{
    return lw_extract(lw, t->v[reg / t->chunk], reg % t->chunk, 0);
}

/* The dword that holds 16-bit element reg; its half is reg & 1. */
static TlVal
tile_dword(Lw *lw, const LwTile *t, uint32_t reg)
{
    TlVal v = t->v[reg / t->chunk];
    TlVal w = lw_pure(lw, TL_OP_bitcast, tl_type_vec(lw->ir, TL_ELEM_I32, t->chunk / 2), &v, 1, NULL, 0);
    return lw_extract(lw, w, reg % t->chunk / 2, 0);
}

/* n 16-bit elements src[0..n) (n even) as one vec: halves of two dwords are joined by one byte permute. */
static TlVal
gather16(Lw *lw, const LwTile *t, const uint32_t *src, uint32_t n)
{
    TlVal *w = TL_NEW_N(lw->arena, TlVal, n / 2);
    if (!w)
        return 0;
    for (uint32_t i = 0; i < n; i += 2) {
        uint32_t a = src[i], b = src[i + 1];
        TlVal lo = tile_dword(lw, t, a), hi = tile_dword(lw, t, b);
        if (lo == hi && (a & 1) == 0 && (b & 1) == 1) {
            w[i / 2] = lo;
            continue;
        }
        int64_t la = 2 * (a & 1), lb = 4 + 2 * (b & 1);
        int64_t sel = la | (la + 1) << 8 | lb << 16 | (lb + 1) << 24;
        w[i / 2] = lw_pure(lw, TL_OP_perm, lw_ty(lw, TL_ELEM_I32), (TlVal[]){hi, lo}, 2, "sel", sel);
    }
    TlVal v = lw_concat(lw, TL_ELEM_I32, w, n / 2, n / 2);
    return lw_pure(lw, TL_OP_bitcast, tl_type_vec(lw->ir, t->elem, n), &v, 1, NULL, 0);
}

static TlVal
gather(Lw *lw, const LwTile *t, const uint32_t *src, uint32_t n)
{
    bool run = src[0] / t->chunk == src[n - 1] / t->chunk;
    for (uint32_t i = 1; i < n && run; i++)
        run = src[i] == src[0] + i;
    if (run)
        return lw_extract(lw, t->v[src[0] / t->chunk], src[0] % t->chunk, n);
    if (tl_elem_bits(t->elem) == 16 && n % 2 == 0 && t->chunk % 2 == 0)
        return gather16(lw, t, src, n);
    TlVal *parts = TL_NEW_N(lw->arena, TlVal, n);
    if (!parts)
        return 0;
    /* whole chunks in a row are joined as they are */
    if (t->chunk < n && n % t->chunk == 0) {
        bool whole = true;
        for (uint32_t i = 0; i < n && whole; i++)
            whole = src[i] == src[i - i % t->chunk] + i % t->chunk && src[i - i % t->chunk] % t->chunk == 0;
        if (whole) {
            for (uint32_t i = 0; i < n; i += t->chunk)
                parts[i / t->chunk] = t->v[src[i] / t->chunk];
            return lw_concat(lw, t->elem, parts, n / t->chunk, n);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        parts[i] = lw_tile_elem(lw, t, src[i]);
    return lw_concat(lw, t->elem, parts, n, n);
}

TlVal
lw_tile_chunk_at(Lw *lw, const LwTile *t, const uint8_t *perm, uint32_t start, uint32_t n)
{
    uint32_t nb = tl_layout_in_bits(&t->lay, TL_DIM_REG), *src = TL_NEW_N(lw->arena, uint32_t, n);
    if (!src)
        return 0;
    for (uint32_t j = 0; j < n; j++)
        src[j] = perm ? tl_layout_perm_index(perm, nb, start + j) : start + j;
    return gather(lw, t, src, n);
}

LwTile *
lw_tile_permute(Lw *lw, const LwTile *t, const uint8_t *perm, uint32_t chunk)
{
    TlLayout l = t->lay;
    if (perm && !tl_layout_permute_regs(&l, &t->lay, perm))
        return NULL;
    LwTile *r = lw_tile_new(lw, &l, t->elem, chunk);
    for (uint32_t i = 0; r && i < r->nchunk; i++)
        if (!(r->v[i] = lw_tile_chunk_at(lw, t, perm, i * chunk, chunk)))
            return NULL;
    return r;
}

LwTile *
lw_tile_rechunk(Lw *lw, const LwTile *t, uint32_t chunk)
{
    return t->chunk == chunk ? (LwTile *)(uintptr_t)t : lw_tile_permute(lw, t, NULL, chunk);
}

/* ---- addresses ---- */

static TlVal
lds_base(Lw *lw, const LwShared *s, const LwLdsAcc *a)
{
    TlLayout full;
    if (!tl_layout_compose(&full, &a->lay, &s->map.map))
        return 0;
    TlVal off = lw_lane_coord(lw, &full, TL_DIM_OFF);
    return lw_bin(lw, TL_OP_mul, off, lw_int(lw, TL_ELEM_I32, tl_elem_bytes(s->elem)));
}

uint32_t
lw_lds_imm(Lw *lw, TlVal *addr, uint32_t offset)
{
    *addr = lw_bin(lw, TL_OP_add, *addr, lw_int(lw, TL_ELEM_I32, offset & ~UINT32_C(0xffff)));
    return offset & 0xffff;
}

static TlVal
lds_addr(Lw *lw, LwShared *s, const LwLdsAcc *a, uint32_t instr, uint32_t *imm)
{
    uint32_t x;
    tl_split_of(&a->split, instr, &x, imm);
    TlVal addr = lw_bin(lw, TL_OP_xor, lds_base(lw, s, a), lw_int(lw, TL_ELEM_I32, x));
    *imm = lw_lds_imm(lw, &addr, *imm + s->offset);
    return addr;
}

TlVal
lw_lds_read_one(Lw *lw, LwShared *s, const LwLdsAcc *a, uint32_t instr)
{
    uint32_t imm;
    TlVal addr = lds_addr(lw, s, a, instr, &imm);
    TlVal r = lw_op1(lw, TL_OP_lds_load, tl_type_vec(lw->ir, s->elem, a->split.vec), &addr, 1);
    if (!r)
        return 0;
    TlOp o = tl_valn(lw->ir, r)->def;
    lw_mark_inner(lw, r);
    return tl_attr_set_int(lw->ir, o, "imm", imm) && tl_attr_set_int(lw->ir, o, "align", a->split.vec_bytes)
               ? r
               : 0;
}

LwTile *
lw_lds_read(Lw *lw, LwShared *s, const LwLdsAcc *a)
{
    LwTile *t = lw_tile_new(lw, &a->lay, s->elem, a->split.vec);
    if (!t || !lw_sync_read(lw, 1ull << s->bit))
        return NULL;
    for (uint32_t i = 0; i < t->nchunk; i++)
        if (!(t->v[i] = lw_lds_read_one(lw, s, a, i)))
            return NULL;
    return s->boolean ? lw_tile_cast(lw, t, TL_ELEM_I1) : t;
}

bool
lw_lds_write_one(Lw *lw, LwShared *s, const LwLdsAcc *a, uint32_t instr, TlVal v)
{
    uint32_t imm;
    TlVal addr = lds_addr(lw, s, a, instr, &imm);
    TlOp o = lw_op(lw, TL_OP_lds_store, (TlVal[]){addr, v}, 2, NULL, 0);
    return o && tl_attr_set_int(lw->ir, o, "imm", imm) &&
           tl_attr_set_int(lw->ir, o, "align", a->split.vec_bytes);
}

/* t: registers in the access's order. Replicated lanes or waves: only the owner writes. */
bool
lw_lds_write(Lw *lw, LwShared *s, const LwLdsAcc *a, const LwTile *t)
{
    t = lw_tile_cast(lw, t, s->elem);
    LwTile *w = t ? lw_tile_rechunk(lw, t, a->split.vec) : NULL;
    TlVal owner = lw_owner(lw, &a->lay);
    LwRegion r;
    if (!w || !lw_sync_write(lw, 1ull << s->bit) || (owner && !lw_when_begin(lw, owner, &r)))
        return false;
    uint32_t free_regs = tl_layout_free_of(&a->lay, TL_DIM_REG);
    bool ok = true;
    for (uint32_t i = 0; i < w->nchunk && ok; i++)
        if (!((i * w->chunk) & free_regs))
            ok = lw_lds_write_one(lw, s, a, i, w->v[i]);
    return ok && (!owner || lw_when_end(lw, &r));
}

/* A store of a whole shared buffer outside of a pipelined loop. A barrier before (others may still read the
 * old contents) and one after. */
bool
lw_store_shared(Lw *lw, TlOp op)
{
    TlVal dst = tl_opn(lw->ir, op)->in[0], src = tl_opn(lw->ir, op)->in[1];
    LwShared *s = lw_shared(lw, dst);
    LwLdsAcc *a = s ? lw_lds_acc(lw, s, op, 0) : NULL;
    LwExt ext;
    uint8_t perm[TL_LAYOUT_MAX_BITS];
    if (tl_vtype(lw->ir, src)->kind != TL_TY_TILE)
        return lw_fail(lw, op, TL_E_UNSUPPORTED,
                       "a store of one element to a shared tile is not lowered yet");
    if (!a || !lw_lds_solve(lw, s) || !lw_ext(lw, src, &ext))
        return lw_fail(lw, op, TL_E_INTERNAL, "store to a shared tile without a plan");
    LwVal *v = lw_val(lw, src);
    TlLayout l = v->anchored ? v->anchor : a->lay;
    for (uint32_t i = 0; i < v->nlay && !v->anchored; i++) {
        TlLayout p;
        uint32_t n = tl_layout_regs_like(&v->lay[i], &a->lay, tl_layout_in_bits(&a->lay, TL_DIM_REG), perm);
        if (n == tl_layout_in_bits(&a->lay, TL_DIM_REG) && tl_layout_permute_regs(&p, &v->lay[i], perm) &&
            tl_layout_equal(&p, &a->lay))
            l = v->lay[i];
    }
    LwTile *t = lw_tile(lw, src, &l);
    if (!t)
        return false;
    uint32_t nb = tl_layout_in_bits(&a->lay, TL_DIM_REG);
    if (tl_layout_regs_like(&l, &a->lay, nb, perm) != nb)
        return lw_fail(lw, op, TL_E_INTERNAL, "registers of a stored tile do not match");
    lw->b.loc = lw_loc(lw, op);
    if (!tl_valn(lw->ir, src)->def || tl_opn(lw->ir, tl_valn(lw->ir, src)->def)->code != TL_OP_load)
        t = lw_masked_zero(lw, t, &ext); /* a load has zeros there already */
    t = t ? lw_tile_permute(lw, t, perm, a->split.vec) : NULL;
    if (!t)
        return false;
    s->ext = ext;
    return lw_lds_write(lw, s, a, t);
}
