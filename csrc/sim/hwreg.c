/* hwreg.c - hardware registers (s_getreg, s_setreg), MODE, and the messages that return something.
 *
 * Values are those of a machine on which nothing else runs, the same in every run: slots are numbered by the
 * wave's place in its workgroup. What only a trap handler may write is left alone.
 */
#include "sim/core.h"

#define BODY(name) static const SimRec *h_##name(SimWave *w, const SimRec *r)

typedef enum HwReg {
    HW_NONE,
    HW_MODE,
    HW_STATUS,
    HW_TRAPSTS,
    HW_STATE_PRIV,
    HW_IB_STS2,
    HW_EXCP_PRIV,
    HW_EXCP_USER,
    HW_HW_ID,
    HW_HW_ID1,
    HW_HW_ID2,
    HW_GPR_ALLOC,
    HW_LDS_ALLOC,
    HW_SH_MEM_BASES,
    HW_XCC_ID,
    HW_SCRATCH_LO,
    HW_SCRATCH_HI,
    HW_CYCLES_LO,
    HW_CYCLES_HI
} HwReg;

/* Number of the register on gfx9, gfx11 and gfx12; what is not here reads 0. */
static const struct {
    uint8_t reg, id[3];
} hwregs[] = {
    {HW_MODE, {1, 1, 1}},         {HW_STATUS, {2, 2, 2}},       {HW_TRAPSTS, {3, 3, 0}},
    {HW_HW_ID, {4, 0, 0}},        {HW_IB_STS2, {0, 28, 0}},     {HW_STATE_PRIV, {0, 0, 4}},
    {HW_GPR_ALLOC, {5, 5, 5}},    {HW_LDS_ALLOC, {6, 6, 6}},    {HW_SH_MEM_BASES, {15, 15, 0}},
    {HW_EXCP_PRIV, {0, 0, 17}},   {HW_EXCP_USER, {0, 0, 18}},   {HW_XCC_ID, {20, 0, 0}},
    {HW_SCRATCH_LO, {0, 20, 20}}, {HW_SCRATCH_HI, {0, 21, 21}}, {HW_HW_ID1, {0, 23, 23}},
    {HW_HW_ID2, {0, 24, 24}},     {HW_CYCLES_LO, {0, 29, 29}},  {HW_CYCLES_HI, {0, 0, 30}},
};

static uint32_t
generation(const SimWave *w)
{
    IsaArch a = w->code->arch;
    return a < ISA_GFX1100 ? 0 : a == ISA_GFX1100 ? 1 : 2;
}

static HwReg
hwreg_of(const SimWave *w, uint32_t id)
{
    uint32_t gen = generation(w);
    if (gen == 0 && id == 20 && w->code->arch == ISA_GFX90A) /* XCC_ID came with gfx940 */
        return HW_NONE;
    for (uint32_t i = 0; id && i < TL_COUNT(hwregs); i++)
        if (hwregs[i].id[gen] == id)
            return (HwReg)hwregs[i].reg;
    return HW_NONE;
}

static uint32_t
status(SimWave *w)
{
    uint32_t v = (uint32_t)(EXEC(w) == 0) << 9 | (uint32_t)(VCC(w) == 0) << 10 |
                 (uint32_t)(w->g->nwaves > 1) << 11 | 1u << 16; /* in a workgroup of several; valid */
    if (generation(w) < 2)
        v |= w->scc;
    if (generation(w) == 2 && w->code->wave64)
        v |= 1u << 29;
    return v;
}

static uint32_t
lds_alloc(const SimWave *w)
{
    /* allocated in 512 bytes (gfx950: 1280), counted in 64 dwords before gfx12 */
    uint32_t granule = w->code->arch == ISA_GFX950 ? 1280 : 512;
    uint32_t unit = w->code->arch == ISA_GFX950 || generation(w) == 2 ? granule : 256;
    return (w->g->lds_bytes + granule - 1) / granule * (granule / unit) << 12;
}

static uint32_t
hwreg_read(SimWave *w, uint32_t id)
{
    uint32_t blocks = (w->g->info ? w->g->info->rsrc1 : 0) & 63;
    switch (hwreg_of(w, id)) {
    case HW_MODE:
        return generation(w) < 2 ? w->mode : w->mode & ~0x300u;
    case HW_STATUS:
        return status(w);
    case HW_TRAPSTS:
    case HW_EXCP_USER:
        return w->trapsts;
    case HW_STATE_PRIV:
        return w->scc << 9 | (w->bar_done & 1u) << 2;
    case HW_IB_STS2: /* a wave of 64 lanes */
        return (uint32_t)w->code->wave64 << 11;
    case HW_HW_ID:
        return (w->index & 15) | ((w->index >> 2) & 3) << 4;
    case HW_HW_ID1: /* wave slot, SIMD of the WGP, WGP */
        return ((w->index >> 2) & 31) | (w->index & 3) << 8 | (uint32_t)(w->g->linear & 15) << 10;
    case HW_HW_ID2:
        return (uint32_t)(w->g->linear & 31) << 16;
    case HW_GPR_ALLOC:
        return generation(w) == 0 ? blocks << 8 : blocks << 12;
    case HW_LDS_ALLOC:
        return lds_alloc(w);
    case HW_SH_MEM_BASES: /* private base, shared base, high halves */
        return (uint32_t)(SIM_PRIVATE_APERTURE >> 48) | (uint32_t)(SIM_SHARED_APERTURE >> 48) << 16;
    case HW_XCC_ID:
        return (uint32_t)(w->g->linear % 8);
    case HW_SCRATCH_LO:
        return (uint32_t)SIM_PRIVATE_APERTURE;
    case HW_SCRATCH_HI:
        return (uint32_t)(SIM_PRIVATE_APERTURE >> 32);
    case HW_CYCLES_LO: /* 20 bits on gfx11 */
        return (uint32_t)sim_read_clock(w) & (generation(w) == 1 ? 0xfffff : UINT32_MAX);
    case HW_CYCLES_HI:
        return (uint32_t)(w->clock >> 32);
    case HW_EXCP_PRIV:
    case HW_NONE:
        return 0;
    }
    return 0;
}

/* ---- MODE ---- */

/* Goes on in the record table of this class. */
const SimRec *
sim_set_class(SimWave *w, const SimRec *r, uint32_t cls)
{
    const SimRec *old = w->recs;
    if (cls == w->mode_cls)
        return NEXT(r);
    const SimRec *t = sim_code_table(w->code, cls);
    if (!t) {
        sim_fault(w, r, SIM_FAULT_OOM, true, 0, 0, UINT32_MAX, 0, "out of memory");
        return NULL;
    }
    w->mode_cls = cls;
    w->recs = t;
    return t + (NEXT(r) - old);
}

const SimRec *
sim_set_mode(SimWave *w, const SimRec *r, uint32_t mode)
{
    w->mode = mode;
    uint32_t skip = w->code->arch < ISA_GFX1100 && (mode >> 28 & 1) ? MODE_SKIP : MODE_PLAIN;
    return sim_set_class(w, r,
                         (w->mode_cls & ~(uint32_t)(MODE_ODD | MODE_FLUSH | MODE_SKIP)) |
                             sim_mode_class(w->code->arch, mode) | skip);
}

uint32_t
sim_mode_class(IsaArch arch, uint32_t mode)
{
    uint32_t ieee = arch == ISA_GFX1201 ? 0 : 1u << 9; /* off is odd, so is fp16_ovfl */
    uint32_t m = (mode & (0x8000ffu | ieee)) ^ ieee;
    return m == 0xf0 ? MODE_PLAIN : m == 0xc0 ? MODE_FLUSH : MODE_ODD;
}

/* MODE at the start of a wave: round and denorm modes, fp16_ovfl; dx10_clamp and ieee, which gfx12 no longer
 * has: there NaN always clamps to 0 and nothing is quieted for IEEE's sake. */
uint32_t
sim_mode_start(IsaArch arch, uint32_t rsrc1)
{
    uint32_t m = ((rsrc1 >> 12) & 0xff) | ((rsrc1 >> 26) & 1) << 23;
    if (arch == ISA_GFX1201)
        return m | 1u << 8;
    return m | ((rsrc1 >> 21) & 1) << 8 | ((rsrc1 >> 23) & 1) << 9;
}

BODY(round_mode)
{
    return sim_set_mode(w, r, (w->mode & ~15u) | ((uint32_t)r->imm & 15));
}
BODY(denorm_mode)
{
    return sim_set_mode(w, r, (w->mode & ~0xf0u) | ((uint32_t)r->imm & 15) << 4);
}

/* ---- s_getreg, s_setreg: imm = number, first bit, bits - 1 ---- */

BODY(getreg)
{
    uint32_t k = (uint32_t)r->imm, off = (k >> 6) & 31, n = ((k >> 11) & 31) + 1;
    uint32_t v = hwreg_read(w, k & 63) >> off;
    w->s[r->dst] = n >= 32 ? v : v & ((1u << n) - 1);
    return NEXT(r);
}

BODY(setreg)
{
    uint32_t k = (uint32_t)r->imm, off = (k >> 6) & 31, n = ((k >> 11) & 31) + 1;
    uint32_t mask = (n >= 32 ? ~0u : (1u << n) - 1) << off, v = (s32(w, r->src[0]) << off) & mask;
    switch (hwreg_of(w, k & 63)) {
    case HW_MODE:
        if (generation(w) == 2) {
            mask &= ~0x300u;
            v &= mask;
        }
        return sim_set_mode(w, r, (w->mode & ~mask) | v);
    case HW_TRAPSTS:
    case HW_EXCP_USER:
        w->trapsts = (w->trapsts & ~mask) | v;
        break;
    case HW_NONE:
    case HW_STATUS:
    case HW_STATE_PRIV:
    case HW_IB_STS2:
    case HW_EXCP_PRIV:
    case HW_HW_ID:
    case HW_HW_ID1:
    case HW_HW_ID2:
    case HW_GPR_ALLOC:
    case HW_LDS_ALLOC:
    case HW_SH_MEM_BASES:
    case HW_XCC_ID:
    case HW_SCRATCH_LO:
    case HW_SCRATCH_HI:
    case HW_CYCLES_LO:
    case HW_CYCLES_HI:
        break; /* not for a program to write */
    }
    return NEXT(r);
}

/* ---- messages that return something ---- */

enum { MSG_RTN_FIRST = 128, MSG_RTN_REALTIME = 131, MSG_RTN_LAST = 135 };

/* The doorbell, dispatch, trap handler's addresses ... of a machine that has none are 0. */
BODY(sendmsg_rtn)
{
    uint64_t v = r->imm == MSG_RTN_REALTIME ? sim_read_clock(w) / 20 : 0;
    if (r->imm < MSG_RTN_FIRST || r->imm > MSG_RTN_LAST)
        return sim_fault_illegal(w, r, "this message returns nothing");
    w->s[r->dst] = (uint32_t)v;
    if (r->ndst == 2)
        w->s[r->dst + 1] = (uint32_t)(v >> 32);
    return NEXT(r);
}

bool
sim_build_hwreg(SimBuild *b)
{
    static const struct {
        const char *name;
        SimBody body;
    } rows[] = {
        {"s_getreg_b32", h_getreg},           {"s_setreg_b32", h_setreg},
        {"s_setreg_imm32_b32", h_setreg},     {"s_round_mode", h_round_mode},
        {"s_denorm_mode", h_denorm_mode},     {"s_sendmsg_rtn_b32", h_sendmsg_rtn},
        {"s_sendmsg_rtn_b64", h_sendmsg_rtn},
    };
    for (uint32_t i = 0; i < TL_COUNT(rows); i++) {
        if (strcmp(rows[i].name, b->name))
            continue;
        b->r->body = rows[i].body;
        sim_build_flow_operands(b);
        return true;
    }
    return false;
}
