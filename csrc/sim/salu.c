/* salu.c - scalar ALU: one body an operation, written as expressions over both operands. */
#include "sim/core.h"

typedef struct SaluRow {
    const char *name;
    SimBody body;
    uint8_t poison;
} SaluRow;

#define A32        s32(w, r->src[0])
#define B32        s32(w, r->src[1])
#define A64        s64(w, r->src[0])
#define B64        s64(w, r->src[1])
#define BODY(name) static const SimRec *s_##name(SimWave *w, const SimRec *r)

/* d = expression of a and b (32 or 64 bits); scc = expression of a, b, d, or w->scc to keep it */
#define S32(name, expr, sccx)                                                                                \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint32_t a = A32, b = B32, d = (expr), c = (uint32_t)(sccx);                                         \
        (void)a, (void)b;                                                                                    \
        w->s[r->dst] = d;                                                                                    \
        w->scc = c;                                                                                          \
        return NEXT(r);                                                                                      \
    }
#define S64(name, expr, sccx)                                                                                \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint64_t a = A64, b = B64, d = (expr);                                                               \
        uint32_t c = (uint32_t)(sccx);                                                                       \
        (void)a, (void)b;                                                                                    \
        put64(w->s + r->dst, d);                                                                             \
        w->scc = c;                                                                                          \
        return NEXT(r);                                                                                      \
    }
#define S64_32(name, expr, sccx) /* 64-bit first source, 32-bit second */                                    \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint64_t a = A64, d;                                                                                 \
        uint32_t b = B32;                                                                                    \
        (void)b;                                                                                             \
        d = (expr);                                                                                          \
        put64(w->s + r->dst, d);                                                                             \
        w->scc = (uint32_t)(sccx);                                                                           \
        return NEXT(r);                                                                                      \
    }
#define S32_64(name, expr, sccx) /* 64-bit source, 32-bit result */                                          \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint64_t a = A64;                                                                                    \
        uint32_t d = (expr);                                                                                 \
        w->s[r->dst] = d;                                                                                    \
        w->scc = (uint32_t)(sccx);                                                                           \
        return NEXT(r);                                                                                      \
    }
#define SCMP(name, expr)                                                                                     \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint32_t a = A32, b = B32;                                                                           \
        w->scc = (uint32_t)(expr);                                                                           \
        return NEXT(r);                                                                                      \
    }
#define SCMP64(name, expr)                                                                                   \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint64_t a = A64, b = B64;                                                                           \
        w->scc = (uint32_t)(expr);                                                                           \
        return NEXT(r);                                                                                      \
    }
#define SAVEEXEC(name, expr)                                                                                 \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint64_t a = A64, e = get64(w->s + S_EXEC), d = (expr);                                              \
        put64(w->s + r->dst, e);                                                                             \
        put64(w->s + S_EXEC, d);                                                                             \
        w->scc = d != 0;                                                                                     \
        return NEXT(r);                                                                                      \
    }
#define I(x) ((int32_t)(x))
#define KEEP w->scc
#define NZ   d != 0

static uint64_t
quadmask(uint64_t a)
{
    uint64_t d = 0;
    for (uint32_t i = 0; i < 16; i++)
        d |= (uint64_t)(((a >> (4 * i)) & 15) != 0) << i;
    return d;
}
static uint64_t
wqm(uint64_t a)
{
    uint64_t d = 0;
    for (uint32_t i = 0; i < 16; i++)
        d |= ((a >> (4 * i)) & 15) ? UINT64_C(15) << (4 * i) : 0;
    return d;
}
static uint64_t
brev64(uint64_t a)
{
    uint64_t d = 0;
    for (int i = 0; i < 64; i++)
        d |= ((a >> i) & 1) << (63 - i);
    return d;
}
static uint32_t
flbit_i32(uint32_t a)
{
    uint32_t t = I(a) < 0 ? ~a : a;
    return t ? (uint32_t)__builtin_clz(t) : ~0u;
}
static uint32_t
flbit_i64(uint64_t a)
{
    uint64_t t = (int64_t)a < 0 ? ~a : a;
    return t ? (uint32_t)__builtin_clzll(t) : ~0u;
}
static uint64_t
bfe_u64(uint64_t a, uint32_t b)
{
    uint32_t off = b & 63, n = (b >> 16) & 127;
    uint64_t v = a >> off;
    return n >= 64 ? v : v & ((UINT64_C(1) << n) - 1);
}
static uint64_t
bfe_i64(uint64_t a, uint32_t b)
{
    uint32_t n = (b >> 16) & 127;
    uint64_t v = (uint64_t)((int64_t)a >> (b & 63)); /* a field that runs past bit 63 ends with the sign */
    v = n >= 64 ? v : v & ((UINT64_C(1) << n) - 1);
    if (n == 0)
        return 0;
    if (n < 64)
        v = (v ^ (UINT64_C(1) << (n - 1))) - (UINT64_C(1) << (n - 1));
    return v;
}
static uint64_t
bitreplicate(uint32_t a)
{
    uint64_t d = 0;
    for (int i = 0; i < 32; i++)
        d |= (uint64_t)((a >> i) & 1) * 3 << (2 * i);
    return d;
}

S32(s_add_u32, a + b, d < a)
S32(s_sub_u32, a - b, a < b)
S32(s_add_i32, a + b, ((a ^ d) & (b ^ d)) >> 31)
S32(s_sub_i32, a - b, ((a ^ b) & (a ^ d)) >> 31)
S32(s_addc_u32, a + b + w->scc, ((uint64_t)a + b + w->scc) >> 32)
S32(s_subb_u32, a - b - w->scc, (uint64_t)b + w->scc > a)
S32(s_min_i32, I(a) < I(b) ? a : b, I(a) < I(b))
S32(s_min_u32, a < b ? a : b, a < b)
S32(s_max_i32, I(a) > I(b) ? a : b, I(a) >= I(b))
S32(s_max_u32, a > b ? a : b, a >= b)
S32(s_cselect_b32, w->scc ? a : b, KEEP)
S64(s_cselect_b64, w->scc ? a : b, KEEP)
S32(s_and_b32, a &b, NZ)
S64(s_and_b64, a &b, NZ)
S32(s_or_b32, a | b, NZ)
S64(s_or_b64, a | b, NZ)
S32(s_xor_b32, a ^ b, NZ)
S64(s_xor_b64, a ^ b, NZ)
S32(s_andn2_b32, a & ~b, NZ)
S64(s_andn2_b64, a & ~b, NZ)
S32(s_orn2_b32, a | ~b, NZ)
S64(s_orn2_b64, a | ~b, NZ)
S32(s_nand_b32, ~(a &b), NZ)
S64(s_nand_b64, ~(a &b), NZ)
S32(s_nor_b32, ~(a | b), NZ)
S64(s_nor_b64, ~(a | b), NZ)
S32(s_xnor_b32, ~(a ^ b), NZ)
S64(s_xnor_b64, ~(a ^ b), NZ)
S32(s_lshl_b32, a << (b & 31), NZ)
S64_32(s_lshl_b64, a << (b & 63), NZ)
S32(s_lshr_b32, a >> (b & 31), NZ)
S64_32(s_lshr_b64, a >> (b & 63), NZ)
S32(s_ashr_i32, (uint32_t)(I(a) >> (b & 31)), NZ)
S64_32(s_ashr_i64, (uint64_t)((int64_t)a >> (b & 63)), NZ)
S32(s_bfm_b32, ((1u << (a & 31)) - 1) << (b & 31), KEEP)
BODY(s_bfm_b64)
{
    put64(w->s + r->dst, ((UINT64_C(1) << (A32 & 63)) - 1) << (B32 & 63));
    return NEXT(r);
}
S32(s_mul_i32, a *b, KEEP)
S32(s_mul_hi_u32, (uint32_t)((uint64_t)a * b >> 32), KEEP)
S32(s_mul_hi_i32, (uint32_t)((uint64_t)((int64_t)I(a) * I(b)) >> 32), KEEP)
S32(s_bfe_u32, (uint32_t)bfe_u64(a >> (b & 31), b & 0x7f0000), NZ)
S32(s_bfe_i32, (uint32_t)bfe_i64((uint64_t)(int64_t)(I(a) >> (b & 31)), b & 0x7f0000), NZ)
S64_32(s_bfe_u64, bfe_u64(a, b), NZ)
S64_32(s_bfe_i64, bfe_i64(a, b), NZ)
S32(s_absdiff_i32, I(a - b) < 0 ? b - a : a - b, NZ)
S32(s_lshl1_add_u32, (a << 1) + b, (((uint64_t)a << 1) + b) >> 32 != 0)
S32(s_lshl2_add_u32, (a << 2) + b, (((uint64_t)a << 2) + b) >> 32 != 0)
S32(s_lshl3_add_u32, (a << 3) + b, (((uint64_t)a << 3) + b) >> 32 != 0)
S32(s_lshl4_add_u32, (a << 4) + b, (((uint64_t)a << 4) + b) >> 32 != 0)
S32(s_pack_ll_b32_b16, (a & 0xffff) | b << 16, KEEP)
S32(s_pack_lh_b32_b16, (a & 0xffff) | (b & 0xffff0000u), KEEP)
S32(s_pack_hh_b32_b16, a >> 16 | (b & 0xffff0000u), KEEP)
S32(s_pack_hl_b32_b16, a >> 16 | b << 16, KEEP)
S64(s_add_nc_u64, a + b, KEEP)
S64(s_sub_nc_u64, a - b, KEEP)
S64(s_mul_u64, a *b, KEEP)
S32(s_mov_b32, a, KEEP)
S64(s_mov_b64, a, KEEP)
S32(s_cmov_b32, w->scc ? a : w->s[r->dst], KEEP)
S64(s_cmov_b64, w->scc ? a : get64(w->s + r->dst), KEEP)
S32(s_not_b32, ~a, NZ)
S64(s_not_b64, ~a, NZ)
S32(s_wqm_b32, (uint32_t)wqm(a), NZ)
S64(s_wqm_b64, wqm(a), NZ)
S32(s_brev_b32, (uint32_t)(brev64(a) >> 32), KEEP)
S64(s_brev_b64, brev64(a), KEEP)
S32(s_bcnt0_i32_b32, 32 - (uint32_t)__builtin_popcount(a), NZ)
S32_64(s_bcnt0_i32_b64, 64 - (uint32_t)__builtin_popcountll(a), NZ)
S32(s_bcnt1_i32_b32, (uint32_t)__builtin_popcount(a), NZ)
S32_64(s_bcnt1_i32_b64, (uint32_t)__builtin_popcountll(a), NZ)
S32(s_ff0_i32_b32, ~a ? (uint32_t)__builtin_ctz(~a) : ~0u, KEEP)
S32_64(s_ff0_i32_b64, ~a ? (uint32_t)__builtin_ctzll(~a) : ~0u, KEEP)
S32(s_ff1_i32_b32, a ? (uint32_t)__builtin_ctz(a) : ~0u, KEEP)
S32_64(s_ff1_i32_b64, a ? (uint32_t)__builtin_ctzll(a) : ~0u, KEEP)
S32(s_flbit_i32_b32, a ? (uint32_t)__builtin_clz(a) : ~0u, KEEP)
S32_64(s_flbit_i32_b64, a ? (uint32_t)__builtin_clzll(a) : ~0u, KEEP)
S32(s_flbit_i32, flbit_i32(a), KEEP)
S32_64(s_flbit_i32_i64, flbit_i64(a), KEEP)
S32(s_sext_i32_i8, (uint32_t)(int32_t)(int8_t)a, KEEP)
S32(s_sext_i32_i16, (uint32_t)(int32_t)(int16_t)a, KEEP)
S32(s_bitset0_b32, w->s[r->dst] & ~(1u << (a & 31)), KEEP)
S32(s_bitset1_b32, w->s[r->dst] | 1u << (a & 31), KEEP)
BODY(s_bitset0_b64)
{
    put64(w->s + r->dst, get64(w->s + r->dst) & ~(UINT64_C(1) << (A32 & 63)));
    return NEXT(r);
}
BODY(s_bitset1_b64)
{
    put64(w->s + r->dst, get64(w->s + r->dst) | UINT64_C(1) << (A32 & 63));
    return NEXT(r);
}
S32(s_quadmask_b32, (uint32_t)quadmask(a), NZ)
S64(s_quadmask_b64, quadmask(a), NZ)
S32(s_abs_i32, I(a) < 0 ? 0u - a : a, NZ)
BODY(s_bitreplicate_b64_b32)
{
    put64(w->s + r->dst, bitreplicate(A32));
    return NEXT(r);
}
SAVEEXEC(s_and_saveexec_b64, a &e)
SAVEEXEC(s_or_saveexec_b64, a | e)
SAVEEXEC(s_xor_saveexec_b64, a ^ e)
SAVEEXEC(s_andn2_saveexec_b64, a & ~e)
SAVEEXEC(s_orn2_saveexec_b64, a | ~e)
SAVEEXEC(s_nand_saveexec_b64, ~(a &e))
SAVEEXEC(s_nor_saveexec_b64, ~(a | e))
SAVEEXEC(s_xnor_saveexec_b64, ~(a ^ e))
SAVEEXEC(s_andn1_saveexec_b64, ~a &e)
SAVEEXEC(s_orn1_saveexec_b64, ~a | e)
BODY(s_andn1_wrexec_b64)
{
    uint64_t d = ~A64 & get64(w->s + S_EXEC);
    put64(w->s + S_EXEC, d);
    put64(w->s + r->dst, d);
    w->scc = d != 0;
    return NEXT(r);
}
BODY(s_andn2_wrexec_b64)
{
    uint64_t d = A64 & ~get64(w->s + S_EXEC);
    put64(w->s + S_EXEC, d);
    put64(w->s + r->dst, d);
    w->scc = d != 0;
    return NEXT(r);
}
/* the same on the low half alone */
#define SAVEEXEC32(name, expr)                                                                               \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint32_t a = A32, e = w->s[S_EXEC], d = (expr);                                                      \
        w->s[r->dst] = e;                                                                                    \
        w->s[S_EXEC] = d;                                                                                    \
        w->scc = d != 0;                                                                                     \
        return NEXT(r);                                                                                      \
    }
#define WREXEC32(name, expr)                                                                                 \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint32_t a = A32, e = w->s[S_EXEC], d = (expr);                                                      \
        w->s[S_EXEC] = d;                                                                                    \
        w->s[r->dst] = d;                                                                                    \
        w->scc = d != 0;                                                                                     \
        return NEXT(r);                                                                                      \
    }
SAVEEXEC32(s_and_saveexec_b32, a &e)
SAVEEXEC32(s_or_saveexec_b32, a | e)
SAVEEXEC32(s_xor_saveexec_b32, a ^ e)
SAVEEXEC32(s_nand_saveexec_b32, ~(a &e))
SAVEEXEC32(s_nor_saveexec_b32, ~(a | e))
SAVEEXEC32(s_xnor_saveexec_b32, ~(a ^ e))
SAVEEXEC32(s_and_not0_saveexec_b32, ~a &e)
SAVEEXEC32(s_or_not0_saveexec_b32, ~a | e)
SAVEEXEC32(s_and_not1_saveexec_b32, a & ~e)
SAVEEXEC32(s_or_not1_saveexec_b32, a | ~e)
WREXEC32(s_and_not0_wrexec_b32, ~a &e)
WREXEC32(s_and_not1_wrexec_b32, a & ~e)

SCMP(s_cmp_eq_i32, a == b)
SCMP(s_cmp_lg_i32, a != b)
SCMP(s_cmp_gt_i32, I(a) > I(b))
SCMP(s_cmp_ge_i32, I(a) >= I(b))
SCMP(s_cmp_lt_i32, I(a) < I(b))
SCMP(s_cmp_le_i32, I(a) <= I(b))
SCMP(s_cmp_gt_u32, a > b)
SCMP(s_cmp_ge_u32, a >= b)
SCMP(s_cmp_lt_u32, a < b)
SCMP(s_cmp_le_u32, a <= b)
SCMP64(s_cmp_eq_u64, a == b)
SCMP64(s_cmp_lg_u64, a != b)
SCMP(s_bitcmp0_b32, !((a >> (b & 31)) & 1))
SCMP(s_bitcmp1_b32, (a >> (b & 31)) & 1)
BODY(s_bitcmp0_b64)
{
    w->scc = !((A64 >> (B32 & 63)) & 1);
    return NEXT(r);
}
BODY(s_bitcmp1_b64)
{
    w->scc = (uint32_t)(A64 >> (B32 & 63)) & 1;
    return NEXT(r);
}

/* SOPK: the immediate is in imm, sign-extended; src[0] is the destination register where it is read */
#define K16 ((uint32_t)r->imm)
#define U16 ((uint32_t)r->imm & 0xffff)
BODY(s_movk_i32)
{
    w->s[r->dst] = K16;
    return NEXT(r);
}
BODY(s_cmovk_i32)
{
    if (w->scc)
        w->s[r->dst] = K16;
    return NEXT(r);
}
BODY(s_addk_i32)
{
    uint32_t a = w->s[r->dst], d = a + K16;
    w->s[r->dst] = d;
    w->scc = ((a ^ d) & (K16 ^ d)) >> 31;
    return NEXT(r);
}
BODY(s_mulk_i32)
{
    w->s[r->dst] *= K16;
    return NEXT(r);
}
#define SCMPK(name, expr)                                                                                    \
    BODY(name)                                                                                               \
    {                                                                                                        \
        uint32_t a = A32;                                                                                    \
        w->scc = (uint32_t)(expr);                                                                           \
        return NEXT(r);                                                                                      \
    }
SCMPK(s_cmpk_eq_i32, a == K16)
SCMPK(s_cmpk_lg_i32, a != K16)
SCMPK(s_cmpk_gt_i32, I(a) > I(K16))
SCMPK(s_cmpk_ge_i32, I(a) >= I(K16))
SCMPK(s_cmpk_lt_i32, I(a) < I(K16))
SCMPK(s_cmpk_le_i32, I(a) <= I(K16))
SCMPK(s_cmpk_eq_u32, a == U16)
SCMPK(s_cmpk_lg_u32, a != U16)
SCMPK(s_cmpk_gt_u32, a > U16)
SCMPK(s_cmpk_ge_u32, a >= U16)
SCMPK(s_cmpk_lt_u32, a < U16)
SCMPK(s_cmpk_le_u32, a <= U16)

static const SaluRow rows[] = {
#define SALU(name, body, poison) {#name, s_##body, POI_##poison},
#include "sim/salu.def"
#undef SALU
};

bool
sim_build_salu(SimBuild *b)
{
    const IsaInst *in = b->in;
    if (in->enc == ISA_SOPP || (in->enc == ISA_SOPK && !strncmp(b->name, "s_setreg", 8)) ||
        !strncmp(b->name, "s_getreg", 8))
        return sim_build_flow(b);
    if (in->enc != ISA_SOP1 && in->enc != ISA_SOP2 && in->enc != ISA_SOPC && in->enc != ISA_SOPK)
        return false;
    for (uint32_t i = 0; i < TL_COUNT(rows); i++) {
        if (strcmp(rows[i].name, b->name))
            continue;
        SimRec *r = b->r;
        r->body = rows[i].body;
        b->x->poison = rows[i].poison;
        for (uint32_t k = 0; k < in->nopnds; k++) {
            const IsaOpnd *o = &in->opnd[k];
            if (o->kind == ISA_OPND_IMM)
                r->imm = (int16_t)o->bits;
            if ((o->flags & ISA_WRITE) && o->kind == ISA_OPND_SGPR && !(o->flags & ISA_IMPLICIT))
                r->dst = sim_build_sreg(b, o);
        }
        const IsaOpnd *p = sim_build_read(b, 0), *q = sim_build_read(b, 1);
        if (p)
            r->src[0] = sim_build_src(b, p);
        if (q)
            r->src[1] = sim_build_src(b, q);
        if (!p)
            r->src[0] = r->src[1] = (SimSrc){SRC_S, 1, r->dst};
        else if (!q)
            r->src[1] = r->src[0];
        return true;
    }
    return sim_build_salu_float(b) || sim_build_flow(b);
}
