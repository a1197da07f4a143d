/* target.c - look-ups over elem.def, targets.def and mma.def, and the occupancy rule. Pure functions over
 * constants. */
#include "target/target.h"

/* ---- element types -------------------------------------------------------------------------- */

static const TlElemInfo elem_table[TL_ELEM__COUNT] = {
    [TL_ELEM_NONE] = {.name = "none", .numpy = "none"},
#define TL_ELEM(id, nm, nbits, knd, dlc, dlb, np, e, m, bs, cls)                                             \
    [TL_ELEM_##id] = {.name = nm,                                                                            \
                      .numpy = np,                                                                           \
                      .bits = nbits,                                                                         \
                      .bytes = ((nbits) + 7) / 8,                                                            \
                      .kind = TL_KIND_##knd,                                                                 \
                      .dl_code = dlc,                                                                        \
                      .dl_bits = dlb,                                                                        \
                      .exp_bits = e,                                                                         \
                      .man_bits = m,                                                                         \
                      .fclass = TL_FCLASS_##cls,                                                             \
                      .bias = bs},
#include "target/elem.def"
#undef TL_ELEM
};

const TlElemInfo *
tl_elem_info(TlElem e)
{
    return &elem_table[(unsigned)e < TL_ELEM__COUNT ? e : TL_ELEM_NONE];
}

static bool
same(const char *name, const char *s, size_t n)
{
    return strlen(name) == n && memcmp(name, s, n) == 0;
}

TlElem
tl_elem_by_name(const char *s, size_t n)
{
    for (int i = 1; i < TL_ELEM__COUNT; i++)
        if (same(elem_table[i].name, s, n))
            return (TlElem)i;
    return TL_ELEM_NONE;
}

TlElem
tl_elem_by_numpy(const char *s, size_t n)
{
    for (int i = 1; i < TL_ELEM__COUNT; i++)
        if (same(elem_table[i].numpy, s, n))
            return (TlElem)i;
    return TL_ELEM_NONE;
}

TlElem
tl_elem_by_dlpack(uint8_t code, uint8_t bits)
{
    for (int i = 1; i < TL_ELEM__COUNT; i++)
        if (elem_table[i].dl_code == code && elem_table[i].dl_bits == bits)
            return (TlElem)i;
    return TL_ELEM_NONE;
}

/* ---- chips ---------------------------------------------------------------------------------- */

#define F(name) (uint32_t)TL_FEAT_##name
static const TlTarget target_table[TL_TARGET__COUNT] = {
#define TL_TARGET(ID, nm, prod, ar, wv, fp, oo, sd, mw, bs, un, xc, mv, ma, vf, vg, ms, wg, lm, lp, lg, lb,  \
                  ld, cl, mc, mhz, gbs, ft)                                                                  \
    [TL_TARGET_##ID] = {.id = TL_TARGET_##ID,                                                                \
                        .name = nm,                                                                          \
                        .products = prod,                                                                    \
                        .arch = TL_ARCH_##ar,                                                                \
                        .wave = wv,                                                                          \
                        .fp8 = TL_FP8_##fp,                                                                  \
                        .oob = TL_OOB_##oo,                                                                  \
                        .simds = sd,                                                                         \
                        .max_waves_simd = mw,                                                                \
                        .barrier_slots = bs,                                                                 \
                        .units = un,                                                                         \
                        .xcds = xc,                                                                          \
                        .max_vgprs = mv,                                                                     \
                        .max_agprs = ma,                                                                     \
                        .vgpr_file = vf,                                                                     \
                        .vgpr_granule = vg,                                                                  \
                        .max_sgprs = ms,                                                                     \
                        .max_workgroup = wg,                                                                 \
                        .lds_max = lm,                                                                       \
                        .lds_pool = lp,                                                                      \
                        .lds_granule = lg,                                                                   \
                        .lds_banks = lb,                                                                     \
                        .lds_dma_bytes = ld,                                                                 \
                        .cache_line = cl,                                                                    \
                        .mma_per_unit = mc,                                                                  \
                        .clock_mhz = mhz,                                                                    \
                        .dram_gbs = gbs,                                                                     \
                        .features = ft},
#include "target/targets.def"
#undef TL_TARGET
};
#undef F

const TlTarget *
tl_target_get(TlTargetId id)
{
    return (unsigned)id < TL_TARGET__COUNT ? &target_table[id] : NULL;
}

const TlTarget *
tl_target_by_name(const char *name)
{
    if (!name)
        return NULL;
    const char *s =
        name; /* behind the last '-' that comes before the first ':' (a triple may stand in front) */
    for (const char *p = name; *p && *p != ':'; p++)
        if (*p == '-')
            s = p + 1;
    size_t n = strcspn(s, ":");
    for (int i = 0; i < TL_TARGET__COUNT; i++)
        if (same(target_table[i].name, s, n))
            return &target_table[i];
    return NULL;
}

const char *
tl_target_names(void)
{
    static const char names[] =
#define TL_TARGET(id, name, ...) ", " name
#include "target/targets.def"
#undef TL_TARGET
        ;
    return &names[2];
}

/* ---- matrix instructions -------------------------------------------------------------------- */

static const TlMma mma_table[TL_MMA__COUNT] = {
#define TL_MMA(ID, M, N, K, BL, A, B, C, ra, rb, rc, p90a, p942, p950, p1100, p1201, fm, intr, ab, ct)       \
    [TL_MMA_##ID] = {.id = TL_MMA_##ID,                                                                      \
                     .name = #ID,                                                                            \
                     .m = M,                                                                                 \
                     .n = N,                                                                                 \
                     .k = K,                                                                                 \
                     .blocks = BL,                                                                           \
                     .a = TL_ELEM_##A,                                                                       \
                     .b = TL_ELEM_##B,                                                                       \
                     .c = TL_ELEM_##C,                                                                       \
                     .a_regs = ra,                                                                           \
                     .b_regs = rb,                                                                           \
                     .c_regs = rc,                                                                           \
                     .form = TL_MMAFORM_##fm,                                                                \
                     .passes = {[TL_TARGET_GFX90A] = p90a,                                                   \
                                [TL_TARGET_GFX942] = p942,                                                   \
                                [TL_TARGET_GFX950] = p950,                                                   \
                                [TL_TARGET_GFX1100] = p1100,                                                 \
                                [TL_TARGET_GFX1201] = p1201},                                                \
                     .intrinsic = intr,                                                                      \
                     .ab_type = ab,                                                                          \
                     .c_type = ct},
#include "target/mma.def"
#undef TL_MMA
};

const TlMma *
tl_mma_get(TlMmaId id)
{
    return id > TL_MMA_NONE && id < TL_MMA__COUNT ? &mma_table[id] : NULL;
}

const TlMma *
tl_mma_by_name(const char *s, size_t n)
{
    for (int i = 1; i < TL_MMA__COUNT; i++)
        if (same(mma_table[i].name, s, n))
            return &mma_table[i];
    return NULL;
}

uint32_t
tl_mma_macs_per_cycle(const TlMma *m, const TlTarget *t)
{
    uint32_t p = m->passes[t->id];
    return p ? (uint32_t)m->blocks * m->m * m->n * m->k / (4 * p) : 0;
}

/* Rank of the order in which tl_mma_next walks: larger first, unique. */
static uint64_t
mma_rank(const TlMma *m, const TlTarget *t)
{
    return (uint64_t)tl_mma_macs_per_cycle(m, t) << 40 | (uint64_t)(m->m * m->n) << 20 |
           (uint64_t)(TL_MMA__COUNT - m->id);
}

const TlMma *
tl_mma_next(const TlTarget *t, TlElem a, TlElem b, TlElem c, const TlMma *after)
{
    uint64_t limit = after ? mma_rank(after, t) : UINT64_MAX, best_rank = 0;
    const TlMma *best = NULL;
    for (int i = 1; i < TL_MMA__COUNT; i++) {
        const TlMma *m = &mma_table[i];
        if (!tl_mma_on(m, t) || m->blocks != 1 || m->form == TL_MMAFORM_XF32)
            continue;
        if ((a && a != (TlElem)m->a) || (b && b != (TlElem)m->b) || (c && c != (TlElem)m->c))
            continue;
        uint64_t r = mma_rank(m, t);
        if (r < limit && r > best_rank) {
            best = m;
            best_rank = r;
        }
    }
    return best;
}

const TlMma *
tl_mma_find(const TlTarget *t, TlElem a, TlElem b, TlElem c, uint32_t m, uint32_t n, uint32_t k)
{
    for (const TlMma *x = tl_mma_next(t, a, b, c, NULL); x; x = tl_mma_next(t, a, b, c, x))
        if ((!m || m == x->m) && (!n || n == x->n) && (!k || k == x->k))
            return x;
    return NULL;
}

/* ---- occupancy ------------------------------------------------------------------------------ */

static uint32_t
align_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Registers a wave holds: AGPRs start at a multiple of 4 behind the VGPRs. */
static uint32_t
regs_allocated(const TlTarget *t, uint32_t vgprs, uint32_t agprs)
{
    uint32_t n = agprs ? align_up(vgprs, 4) + agprs : vgprs;
    return align_up(n ? n : 1, t->vgpr_granule);
}

TlOccupancy
tl_occupancy(const TlTarget *t, uint32_t vgprs, uint32_t agprs, uint32_t lds, uint32_t waves)
{
    TlOccupancy o = {.limit = TL_LIMIT_NONE_FITS};
    waves = waves ? waves : 1;
    o.vgprs_allocated = regs_allocated(t, vgprs, agprs);
    o.lds_allocated = lds < UINT32_MAX - t->lds_granule ? align_up(lds, t->lds_granule) : UINT32_MAX;
    if (vgprs > t->max_vgprs || agprs > t->max_agprs || lds > t->lds_max ||
        waves * t->wave > t->max_workgroup)
        return o;
    o.reg_waves = TL_MIN(t->max_waves_simd, t->vgpr_file / o.vgprs_allocated);
    uint32_t by_slots = t->max_waves_simd * t->simds / waves;
    uint32_t by_regs = o.reg_waves * t->simds / waves;
    uint32_t by_lds = o.lds_allocated ? t->lds_pool / o.lds_allocated : UINT32_MAX;
    uint32_t by_barriers = waves > 1 ? t->barrier_slots : UINT32_MAX;
    o.workgroups = TL_MIN(TL_MIN(by_slots, by_regs), TL_MIN(by_lds, by_barriers));
    if (!o.workgroups)
        return o;
    if (by_regs == o.workgroups && by_regs < by_slots)
        o.limit = TL_LIMIT_REGS;
    else if (by_lds == o.workgroups && by_lds < by_slots)
        o.limit = TL_LIMIT_LDS;
    else if (by_slots == o.workgroups)
        o.limit = TL_LIMIT_SLOTS;
    else
        o.limit = TL_LIMIT_BARRIERS;
    o.waves_per_simd = (o.workgroups * waves + t->simds - 1) / t->simds;
    return o;
}

const char *
tl_limit_name(TlLimit l)
{
    switch (l) {
    case TL_LIMIT_SLOTS:
        return "wave slots";
    case TL_LIMIT_REGS:
        return "registers";
    case TL_LIMIT_LDS:
        return "LDS";
    case TL_LIMIT_BARRIERS:
        return "barrier slots";
    case TL_LIMIT_NONE_FITS:
        return "does not fit";
    }
    return "?";
}

uint32_t
tl_target_reg_budget(const TlTarget *t, uint32_t waves_per_simd)
{
    if (!waves_per_simd || waves_per_simd > t->max_waves_simd)
        return 0;
    uint32_t n = t->vgpr_file / waves_per_simd / t->vgpr_granule * t->vgpr_granule;
    return TL_MIN(n, (uint32_t)t->max_vgprs + t->max_agprs);
}
