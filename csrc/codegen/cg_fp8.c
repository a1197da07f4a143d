/* cg_fp8.c - conversions from and to the four 8-bit float formats by integer arithmetic: exact, rounding to
 * nearest even, overflow as the format says (infinity where it has one, else NaN), on every chip.
 */
#include "codegen/cg.h"

static LLVMValueRef
bits_of(Cg *g, LLVMValueRef x)
{
    return LLVMBuildBitCast(g->b, x, cg_like(g, x, g->i32), "");
}

static LLVMValueRef
float_of(Cg *g, LLVMValueRef x)
{
    return LLVMBuildBitCast(g->b, x, cg_like(g, x, g->f32), "");
}

static LLVMValueRef
is(Cg *g, LLVMIntPredicate p, LLVMValueRef a, int64_t k)
{
    return LLVMBuildICmp(g->b, p, a, cg_int(LLVMTypeOf(a), k), "");
}

static uint32_t
nan_code(const TlElemInfo *f)
{
    return f->fclass == TL_FCLASS_FNUZ ? 0x80 : 0x7f;
}

/* i8 codes -> f32 */
static LLVMValueRef
decode(Cg *g, LLVMValueRef x, const TlElemInfo *f)
{
    LLVMTypeRef t = cg_like(g, x, g->i32), ft = cg_like(g, x, g->f32);
    LLVMValueRef c = LLVMBuildZExt(g->b, x, t, "");
    LLVMValueRef a = LLVMBuildAnd(g->b, c, cg_int(t, 0x7f), "");
    LLVMValueRef sign = LLVMBuildShl(g->b, LLVMBuildAnd(g->b, c, cg_int(t, 0x80), ""), cg_int(t, 24), "");
    LLVMValueRef normal = LLVMBuildAdd(g->b, LLVMBuildShl(g->b, a, cg_int(t, 23 - f->man_bits), ""),
                                       cg_int(t, (int64_t)(127 - f->bias) << 23), "");
    /* subnormals: code * 2^(1 - bias - man), exact */
    LLVMValueRef small = LLVMBuildUIToFP(g->b, a, ft, "");
    small = LLVMBuildFMul(g->b, small,
                          float_of(g, cg_int(t, (int64_t)(127 + 1 - f->bias - f->man_bits) << 23)), "");
    LLVMValueRef m =
        LLVMBuildSelect(g->b, is(g, LLVMIntULT, a, 1 << f->man_bits), bits_of(g, small), normal, "");
    if (f->fclass == TL_FCLASS_FNUZ)
        return float_of(g, LLVMBuildSelect(g->b, is(g, LLVMIntEQ, c, 0x80), cg_int(t, 0x7fc00000),
                                           LLVMBuildOr(g->b, m, sign, ""), ""));
    if (f->fclass == TL_FCLASS_IEEE)
        m = LLVMBuildSelect(g->b, is(g, LLVMIntEQ, a, 0x7c), cg_int(t, 0x7f800000), m, "");
    LLVMIntPredicate p = f->fclass == TL_FCLASS_IEEE ? LLVMIntUGT : LLVMIntEQ;
    m = LLVMBuildSelect(g->b, is(g, p, a, f->fclass == TL_FCLASS_IEEE ? 0x7c : 0x7f), cg_int(t, 0x7fc00000),
                        m, "");
    return float_of(g, LLVMBuildOr(g->b, m, sign, ""));
}

/* f32 -> i8 codes */
static LLVMValueRef
encode(Cg *g, LLVMValueRef x, const TlElemInfo *f)
{
    /* freeze: LLVM 22 loses an fneg between a select of integers and the arithmetic on its bits */
    LLVMValueRef u = bits_of(g, LLVMBuildFreeze(g->b, x, ""));
    LLVMTypeRef t = LLVMTypeOf(u);
    int shift = 23 - f->man_bits;
    LLVMValueRef a = LLVMBuildAnd(g->b, u, cg_int(t, 0x7fffffff), "");
    /* normal: add half an ulp (less one when even), cut, move the exponent */
    LLVMValueRef odd = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, a, cg_int(t, shift), ""), cg_int(t, 1), "");
    LLVMValueRef r =
        LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, a, odd, ""), cg_int(t, (1 << (shift - 1)) - 1), "");
    r = LLVMBuildSub(g->b, LLVMBuildLShr(g->b, r, cg_int(t, shift), ""),
                     cg_int(t, (int64_t)(127 - f->bias) << f->man_bits), "");
    /* subnormal: adding a number whose ulp is the format's least step rounds in the adder */
    LLVMValueRef magic = cg_int(t, (int64_t)(127 + 23 + 1 - f->bias - f->man_bits) << 23);
    LLVMValueRef s = LLVMBuildFAdd(g->b, float_of(g, a), float_of(g, magic), "");
    s = LLVMBuildSub(g->b, bits_of(g, s), magic, "");
    LLVMValueRef c =
        LLVMBuildSelect(g->b, is(g, LLVMIntULT, a, (int64_t)(127 + 1 - f->bias) << 23), s, r, "");
    /* beyond the largest code: infinity or NaN */
    uint32_t max = f->fclass == TL_FCLASS_FNUZ ? 0x7f : f->fclass == TL_FCLASS_IEEE ? 0x7b : 0x7e;
    uint32_t over = f->fclass == TL_FCLASS_IEEE ? 0x7c : nan_code(f);
    LLVMValueRef too_big = is(g, LLVMIntUGT, c, max), is_nan = is(g, LLVMIntUGT, a, 0x7f800000);
    LLVMValueRef sign = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, u, cg_int(t, 24), ""), cg_int(t, 0x80), "");
    if (f->fclass == TL_FCLASS_FNUZ) /* one zero, one NaN, no sign on either */
        sign = LLVMBuildSelect(g->b, is(g, LLVMIntEQ, c, 0), cg_int(t, 0), sign, "");
    c = LLVMBuildSelect(g->b, too_big, cg_int(t, over), c, "");
    c = LLVMBuildSelect(g->b, is_nan, cg_int(t, nan_code(f)), c, "");
    c = LLVMBuildOr(g->b, c, sign, "");
    return LLVMBuildTrunc(g->b, c, cg_like(g, x, g->i8), "");
}

/* f64 -> f32 cut toward zero with the last bit made sticky, so that a later rounding is right. */
static LLVMValueRef
round_to_odd(Cg *g, LLVMValueRef x)
{
    LLVMTypeRef t = cg_like(g, x, g->i64);
    LLVMValueRef u = LLVMBuildBitCast(g->b, x, t, "");
    LLVMValueRef low = LLVMBuildAnd(g->b, u, cg_int(t, 0x1fffffff), "");
    LLVMValueRef any = LLVMBuildICmp(g->b, LLVMIntNE, low, cg_int(t, 0), "");
    u = LLVMBuildAnd(g->b, u, cg_int(t, ~(int64_t)0x1fffffff), "");
    u = LLVMBuildOr(g->b, u, LLVMBuildSelect(g->b, any, cg_int(t, 0x20000000), cg_int(t, 0), ""), "");
    LLVMValueRef y =
        LLVMBuildFPTrunc(g->b, LLVMBuildBitCast(g->b, u, LLVMTypeOf(x), ""), cg_like(g, x, g->f32), "");
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""); /* its payload may have been cut */
    return LLVMBuildSelect(g->b, nan, float_of(g, cg_int(cg_like(g, x, g->i32), 0x7fc00000)), y, "");
}

LLVMValueRef
cg_cast_fp8(Cg *g, LLVMValueRef x, TlElem from, TlElem to)
{
    if (tl_elem_is_float(from) && tl_elem_bits(from) == 8) {
        x = decode(g, x, tl_elem_info(from));
        from = TL_ELEM_F32;
    }
    if (!tl_elem_is_float(to) || tl_elem_bits(to) != 8)
        return cg_cast(g, x, from, to);
    /* Integers: what f32 rounds is far beyond the largest code. */
    x = from == TL_ELEM_F64 ? round_to_odd(g, x) : cg_cast(g, x, from, TL_ELEM_F32);
    return x ? encode(g, x, tl_elem_info(to)) : NULL;
}
