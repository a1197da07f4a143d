/* cg_arith.c - element-wise operations on scalars and vecs, with the language's exact meaning.
 *
 * No fast-math flag is ever set and nothing is contracted. f16 and bf16 go through f32 where that rounds the
 * same
 * (+ - * / sqrt: f32 has more than 2p + 2 bits) or better (exp, log). Accuracy: + - * / sqrt fma and
 * conversions are correctly rounded; exp, exp2, log, log2 of f32 as LLVM expands them (see
 * docs/codegen-notes.md); rsqrt is 1 / sqrt(x), two roundings.
 */
#include "codegen/cg.h"

static LLVMTypeRef
type_as(Cg *g, LLVMValueRef shape, TlElem e)
{
    return cg_like(g, shape, g->elem[e]);
}

static bool
is_signed(TlElem e)
{
    return tl_elem_kind(e) == TL_KIND_SINT;
}

/* ---- conversions ---- */

/* 64-bit integers to f64 may round; so that a later rounding to bf16 is right, the low bits of large values
 * are replaced by one sticky bit: then the conversion to f64 is exact. */
static LLVMValueRef
sticky64(Cg *g, LLVMValueRef x, bool sign)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef low = LLVMBuildAnd(g->b, x, cg_int(t, 0xfff), "");
    LLVMValueRef any = LLVMBuildICmp(g->b, LLVMIntNE, low, cg_int(t, 0), "");
    LLVMValueRef high = LLVMBuildAnd(g->b, x, cg_int(t, ~(int64_t)0xfff), "");
    LLVMValueRef y =
        LLVMBuildOr(g->b, high, LLVMBuildSelect(g->b, any, cg_int(t, 0x800), cg_int(t, 0), ""), "");
    LLVMValueRef m = x; /* small: |x| < 2^52 */
    if (sign)
        m = LLVMBuildAdd(g->b, x, cg_int(t, (int64_t)1 << 52), "");
    LLVMValueRef small = LLVMBuildICmp(g->b, LLVMIntULT, m, cg_int(t, (int64_t)1 << (sign ? 53 : 52)), "");
    return LLVMBuildSelect(g->b, small, x, y, "");
}

static LLVMValueRef
int_to_float(Cg *g, LLVMValueRef x, TlElem from, TlElem to)
{
    bool sign = is_signed(from);
    if (to == TL_ELEM_BF16 &&
        tl_elem_bits(from) > 16) { /* through f64, which is exact, not f32, which rounds */
        if (tl_elem_bits(from) == 64)
            x = sticky64(g, x, sign);
        LLVMTypeRef d = type_as(g, x, TL_ELEM_F64);
        x = sign ? LLVMBuildSIToFP(g->b, x, d, "") : LLVMBuildUIToFP(g->b, x, d, "");
        return cg_cast(g, x, TL_ELEM_F64, to);
    }
    TlElem via = to == TL_ELEM_BF16 ? TL_ELEM_F32 : to;
    LLVMTypeRef t = type_as(g, x, via);
    x = sign ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, "");
    return cg_cast(g, x, via, to);
}

static LLVMValueRef
float_to_int(Cg *g, LLVMValueRef x, TlElem from, TlElem to)
{
    if (tl_elem_bits(from) < 32) {
        x = cg_cast(g, x, from, TL_ELEM_F32);
        from = TL_ELEM_F32;
    }
    if (!x)
        return NULL;
    LLVMTypeRef over[] = {type_as(g, x, to), LLVMTypeOf(x)};
    return cg_intrinsic(g, is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", over, 2, &x, 1);
}

static LLVMValueRef
float_to_float(Cg *g, LLVMValueRef x, TlElem from, TlElem to)
{
    LLVMTypeRef t = type_as(g, x, to);
    if (tl_elem_bits(from) == 16 && tl_elem_bits(to) == 16) { /* f16 <-> bf16 */
        x = LLVMBuildFPExt(g->b, x, type_as(g, x, TL_ELEM_F32), "");
        return LLVMBuildFPTrunc(g->b, x, t, "");
    }
    return tl_elem_bits(from) < tl_elem_bits(to) ? LLVMBuildFPExt(g->b, x, t, "")
                                                 : LLVMBuildFPTrunc(g->b, x, t, "");
}

LLVMValueRef
cg_cast(Cg *g, LLVMValueRef x, TlElem from, TlElem to)
{
    if (!x || from == to)
        return x;
    bool ff = tl_elem_is_float(from), ft = tl_elem_is_float(to);
    if ((ff && tl_elem_bits(from) == 8) || (ft && tl_elem_bits(to) == 8))
        return cg_cast_fp8(g, x, from, to);
    LLVMTypeRef t = type_as(g, x, to);
    if (to == TL_ELEM_I1) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
        return ff ? LLVMBuildFCmp(g->b, LLVMRealUNE, x, zero, "")
                  : LLVMBuildICmp(g->b, LLVMIntNE, x, zero, "");
    }
    if (ff && ft)
        return float_to_float(g, x, from, to);
    if (ff)
        return float_to_int(g, x, from, to);
    if (ft)
        return int_to_float(g, x, from, to);
    return LLVMBuildIntCast2(g->b, x, t, is_signed(from), "");
}

/* ---- integers ---- */

/* log2 of a constant positive power of two; false for anything else. */
static bool
power_of_two(LLVMValueRef x, int64_t *shift)
{
    if (!LLVMIsAConstantInt(x) || LLVMGetIntTypeWidth(LLVMTypeOf(x)) > 64)
        return false;
    int64_t v = LLVMConstIntGetSExtValue(x);
    *shift = 0;
    if (v <= 0 || (v & (v - 1)))
        return false;
    while (v >> *shift != 1)
        ++*shift;
    return true;
}

/* A divisor of which LLVM knows no upper bits. Where it knows operands to have 24 bits it divides by a float
 * reciprocal whose error may reach the next whole number (14882573 / 3122), and corrects downwards only. */
static LLVMValueRef
opaque_divisor(Cg *g, LLVMValueRef d)
{
    LLVMTypeRef t = LLVMTypeOf(d), e = LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
    if (LLVMGetIntTypeWidth(e) < 32)
        return d; /* at most 16 bits are exact that way */
    if (!g->unknown_zero) {
        static const char text[] = "s_mov_b32 $0, 0", how[] = "=s";
        LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b), entry = LLVMGetEntryBasicBlock(g->fn);
        LLVMTypeRef fn = LLVMFunctionType(g->i32, NULL, 0, false);
        LLVMValueRef first = LLVMGetFirstInstruction(entry);
        LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(g->b);
        LLVMValueRef code = LLVMGetInlineAsm(fn, text, sizeof text - 1, how, sizeof how - 1, false, false,
                                             LLVMInlineAsmDialectATT, false);
        if (first)
            LLVMPositionBuilderBefore(g->b, first);
        g->unknown_zero = LLVMBuildCall2(g->b, fn, code, NULL, 0, "");
        LLVMPositionBuilderAtEnd(g->b, here);
        LLVMSetCurrentDebugLocation2(g->b, place);
    }
    LLVMValueRef z = LLVMBuildZExt(g->b, g->unknown_zero, e, "");
    return LLVMBuildOr(g->b, d, e == t ? z : cg_splat(g, z, t), "");
}

/* floor_ says floor division or modulo, else truncating. Division by 0 gives 0 (as NumPy's arrays do); the
 * least value divided by -1 wraps. Both are undefined in LLVM, so the divisor is replaced first. */
static LLVMValueRef
int_divide(Cg *g, LLVMValueRef a, LLVMValueRef b, TlElem e, bool want_rem, bool floor_)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    LLVMValueRef zero = cg_int(t, 0), one = cg_int(t, 1);
    int64_t k;
    if ((floor_ || !is_signed(e)) && power_of_two(b, &k)) {
        if (want_rem)
            return LLVMBuildAnd(g->b, a, LLVMBuildSub(g->b, b, one, ""), "");
        return is_signed(e) ? LLVMBuildAShr(g->b, a, cg_int(t, k), "")
                            : LLVMBuildLShr(g->b, a, cg_int(t, k), "");
    }
    if (!is_signed(e)) {
        LLVMValueRef bad = LLVMBuildICmp(g->b, LLVMIntEQ, b, zero, "");
        LLVMValueRef d = LLVMBuildSelect(g->b, bad, one, b, "");
        if (!LLVMIsConstant(b))
            d = opaque_divisor(g, d);
        LLVMValueRef r = want_rem ? LLVMBuildURem(g->b, a, d, "") : LLVMBuildUDiv(g->b, a, d, "");
        return LLVMBuildSelect(g->b, bad, zero, r, "");
    }
    LLVMValueRef bad = LLVMBuildICmp(g->b, LLVMIntEQ, b, zero, "");
    LLVMValueRef minus = LLVMBuildICmp(g->b, LLVMIntEQ, b, cg_int(t, -1), "");
    LLVMValueRef d = LLVMBuildSelect(g->b, LLVMBuildOr(g->b, bad, minus, ""), one, b, "");
    if (!LLVMIsConstant(b))
        d = opaque_divisor(g, d);
    LLVMValueRef q = LLVMBuildSDiv(g->b, a, d, ""); /* of b = -1: a, exact and with remainder 0 */
    LLVMValueRef r = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, d, ""), "");
    q = LLVMBuildSelect(g->b, minus, LLVMBuildNeg(g->b, q, ""), q, "");
    if (floor_) { /* a remainder whose sign is not b's: one down */
        LLVMValueRef differ = LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildXor(g->b, r, b, ""), zero, "");
        LLVMValueRef adjust = LLVMBuildAnd(g->b, differ, LLVMBuildICmp(g->b, LLVMIntNE, r, zero, ""), "");
        q = LLVMBuildSub(g->b, q, LLVMBuildZExt(g->b, adjust, t, ""), "");
        r = LLVMBuildAdd(g->b, r, LLVMBuildSelect(g->b, adjust, b, zero, ""), "");
    }
    return LLVMBuildSelect(g->b, bad, zero, want_rem ? r : q, "");
}

/* A shift by the width or more (as an unsigned number) gives 0, or the sign for >> of signed. */
static LLVMValueRef
shift(Cg *g, LLVMValueRef a, LLVMValueRef b, TlElem e, bool left)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    int64_t w = tl_elem_bits(e);
    LLVMValueRef big = LLVMBuildICmp(g->b, LLVMIntUGE, b, cg_int(t, w), "");
    if (!left && is_signed(e))
        return LLVMBuildAShr(g->b, a, LLVMBuildSelect(g->b, big, cg_int(t, w - 1), b, ""), "");
    LLVMValueRef in = LLVMBuildSelect(g->b, big, cg_int(t, 0), b, "");
    LLVMValueRef r = left ? LLVMBuildShl(g->b, a, in, "") : LLVMBuildLShr(g->b, a, in, "");
    return LLVMBuildSelect(g->b, big, cg_int(t, 0), r, "");
}

static LLVMValueRef
compare_int(Cg *g, TlOpcode code, LLVMValueRef a, LLVMValueRef b, bool sign)
{
    LLVMIntPredicate p = code == TL_OP_eq   ? LLVMIntEQ
                         : code == TL_OP_ne ? LLVMIntNE
                         : code == TL_OP_lt ? (sign ? LLVMIntSLT : LLVMIntULT)
                         : code == TL_OP_le ? (sign ? LLVMIntSLE : LLVMIntULE)
                         : code == TL_OP_gt ? (sign ? LLVMIntSGT : LLVMIntUGT)
                                            : (sign ? LLVMIntSGE : LLVMIntUGE);
    return LLVMBuildICmp(g->b, p, a, b, "");
}

static LLVMValueRef
int_op(Cg *g, TlOpcode code, LLVMValueRef *x, TlElem e)
{
    bool sign = is_signed(e);
    LLVMTypeRef t = LLVMTypeOf(x[0]);
    if (code == TL_OP_add)
        return LLVMBuildAdd(g->b, x[0], x[1], "");
    if (code == TL_OP_sub)
        return LLVMBuildSub(g->b, x[0], x[1], "");
    if (code == TL_OP_mul) { /* a shift: else it becomes a 24-bit multiplication, which folds into nothing */
        int64_t k;
        for (int i = 0; i < 2; i++)
            if (power_of_two(x[i], &k))
                return LLVMBuildShl(g->b, x[1 - i], cg_int(t, k), "");
        return LLVMBuildMul(g->b, x[0], x[1], "");
    }
    if (code == TL_OP_and)
        return LLVMBuildAnd(g->b, x[0], x[1], "");
    if (code == TL_OP_or)
        return LLVMBuildOr(g->b, x[0], x[1], "");
    if (code == TL_OP_xor)
        return LLVMBuildXor(g->b, x[0], x[1], "");
    if (code == TL_OP_not)
        return LLVMBuildNot(g->b, x[0], "");
    if (code == TL_OP_neg)
        return LLVMBuildNeg(g->b, x[0], "");
    if (code == TL_OP_abs)
        return sign ? cg_intrinsic(g, "llvm.abs", &t, 1, (LLVMValueRef[]){x[0], cg_int(g->i1, 0)}, 2) : x[0];
    if (code == TL_OP_min)
        return cg_intrinsic2(g, sign ? "llvm.smin" : "llvm.umin", t, x[0], x[1]);
    if (code == TL_OP_max)
        return cg_intrinsic2(g, sign ? "llvm.smax" : "llvm.umax", t, x[0], x[1]);
    if (code == TL_OP_shl || code == TL_OP_shr)
        return shift(g, x[0], x[1], e, code == TL_OP_shl);
    if (code == TL_OP_floordiv || code == TL_OP_mod)
        return int_divide(g, x[0], x[1], e, code == TL_OP_mod, true);
    if (code == TL_OP_truncdiv || code == TL_OP_rem)
        return int_divide(g, x[0], x[1], e, code == TL_OP_rem, false);
    cg_fail(g, TL_E_UNSUPPORTED, "not defined for integers");
    return NULL;
}

/* ---- floats ---- */

static LLVMValueRef
compare_float(Cg *g, TlOpcode code, LLVMValueRef a, LLVMValueRef b)
{
    LLVMRealPredicate p = code == TL_OP_eq   ? LLVMRealOEQ
                          : code == TL_OP_ne ? LLVMRealUNE
                          : code == TL_OP_lt ? LLVMRealOLT
                          : code == TL_OP_le ? LLVMRealOLE
                          : code == TL_OP_gt ? LLVMRealOGT
                                             : LLVMRealOGE;
    return LLVMBuildFCmp(g->b, p, a, b, "");
}

/* exp, exp2, log, log2 exist for f32; f16 and bf16 come here as f32. */
static LLVMValueRef
transcendental(Cg *g, const char *name, LLVMValueRef x, TlElem e)
{
    if (e == TL_ELEM_F64) {
        cg_fail(g, TL_E_UNSUPPORTED, "there is no f64 form yet; convert to f32 first");
        return NULL;
    }
    return cg_intrinsic1(g, name, LLVMTypeOf(x), x);
}

static LLVMValueRef
float_op(Cg *g, TlOpcode code, LLVMValueRef *x, TlElem e)
{
    LLVMTypeRef t = LLVMTypeOf(x[0]);
    if (code == TL_OP_add)
        return LLVMBuildFAdd(g->b, x[0], x[1], "");
    if (code == TL_OP_sub)
        return LLVMBuildFSub(g->b, x[0], x[1], "");
    if (code == TL_OP_mul)
        return LLVMBuildFMul(g->b, x[0], x[1], "");
    if (code == TL_OP_div)
        return LLVMBuildFDiv(g->b, x[0], x[1], "");
    if (code == TL_OP_neg)
        return LLVMBuildFNeg(g->b, x[0], "");
    if (code == TL_OP_abs)
        return cg_intrinsic1(g, "llvm.fabs", t, x[0]);
    if (code == TL_OP_min)
        return cg_intrinsic2(g, "llvm.minimum", t, x[0], x[1]);
    if (code == TL_OP_max)
        return cg_intrinsic2(g, "llvm.maximum", t, x[0], x[1]);
    if (code == TL_OP_fmin)
        return cg_intrinsic2(g, "llvm.minnum", t, x[0], x[1]);
    if (code == TL_OP_fmax)
        return cg_intrinsic2(g, "llvm.maxnum", t, x[0], x[1]);
    if (code == TL_OP_fma)
        return cg_intrinsic3(g, "llvm.fma", t, x[0], x[1], x[2]);
    if (code == TL_OP_sqrt)
        return cg_intrinsic1(g, "llvm.sqrt", t, x[0]);
    if (code == TL_OP_rsqrt) {
        LLVMValueRef s = cg_intrinsic1(g, "llvm.sqrt", t, x[0]);
        return s ? LLVMBuildFDiv(g->b, cg_float(t, 1), s, "") : NULL;
    }
    if (code == TL_OP_floor)
        return cg_intrinsic1(g, "llvm.floor", t, x[0]);
    if (code == TL_OP_ceil)
        return cg_intrinsic1(g, "llvm.ceil", t, x[0]);
    if (code == TL_OP_trunc)
        return cg_intrinsic1(g, "llvm.trunc", t, x[0]);
    if (code == TL_OP_round)
        return cg_intrinsic1(g, "llvm.rint", t, x[0]);
    if (code == TL_OP_exp)
        return transcendental(g, "llvm.exp", x[0], e);
    if (code == TL_OP_exp2)
        return transcendental(g, "llvm.exp2", x[0], e);
    if (code == TL_OP_log)
        return transcendental(g, "llvm.log", x[0], e);
    if (code == TL_OP_log2)
        return transcendental(g, "llvm.log2", x[0], e);
    cg_fail(g, TL_E_UNSUPPORTED, "not defined for floats");
    return NULL;
}

/* The type in which an operation on e is computed: bf16 always f32; f16 where its own instruction is less
 * exact. */
static TlElem
computed_in(TlOpcode code, TlElem e)
{
    if (e == TL_ELEM_BF16 && code != TL_OP_neg && code != TL_OP_abs)
        return code == TL_OP_fma ? TL_ELEM_F64 : TL_ELEM_F32;
    if (e == TL_ELEM_F16 && (code == TL_OP_exp || code == TL_OP_exp2 || code == TL_OP_log ||
                             code == TL_OP_log2 || code == TL_OP_sqrt || code == TL_OP_rsqrt))
        return TL_ELEM_F32;
    return e;
}

/* fmin, fmax of bf16 by the bits: LLVM widens bf16 by a shift but takes the result for quiet, and then leaves
 * out the step that quiets a signalling NaN before v_min and v_max. The result is one of the operands, so the
 * way back is a shift too. */
static LLVMValueRef
choose_bf16(Cg *g, TlOpcode code, LLVMValueRef *x)
{
    LLVMTypeRef t = LLVMTypeOf(x[0]), u16 = cg_like(g, x[0], g->i16), u32 = cg_like(g, x[0], g->i32);
    LLVMValueRef w[2], sixteen = cg_int(u32, 16);
    for (uint32_t i = 0; i < 2; i++) {
        w[i] = LLVMBuildZExt(g->b, LLVMBuildBitCast(g->b, x[i], u16, ""), u32, "");
        w[i] = LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, w[i], sixteen, ""), cg_like(g, x[0], g->f32), "");
    }
    LLVMValueRef r = float_op(g, code, w, TL_ELEM_F32);
    if (!r)
        return NULL;
    r = LLVMBuildLShr(g->b, LLVMBuildBitCast(g->b, r, u32, ""), sixteen, "");
    return LLVMBuildBitCast(g->b, LLVMBuildTrunc(g->b, r, u16, ""), t, "");
}

static bool
is_compare(TlOpcode c)
{
    return c == TL_OP_eq || c == TL_OP_ne || c == TL_OP_lt || c == TL_OP_le || c == TL_OP_gt || c == TL_OP_ge;
}

LLVMValueRef
cg_arith(Cg *g, TlOp o)
{
    const TlOpNode *node = tl_opn(g->ir, o);
    TlOpcode code = node->code;
    TlVal res = tl_result(g->ir, o, 0);
    LLVMValueRef x[3] = {0};
    TlElem e, re;
    uint32_t n, rn;
    if (!cg_shape(tl_vtype(g->ir, node->in[0]), &e, &n) || !cg_shape(tl_vtype(g->ir, res), &re, &rn) ||
        n > 64) {
        cg_fail(g, TL_E_UNSUPPORTED, "scalars and vecs of up to 64 elements only");
        return NULL;
    }
    for (uint32_t i = 0; i < node->nin && i < 3; i++)
        if (!(x[i] = cg_val(g, node->in[i])))
            return NULL;
    if (code == TL_OP_select)
        return LLVMBuildSelect(g->b, x[0], x[1], x[2], "");
    if (code == TL_OP_cast)
        return cg_cast(g, x[0], e, re);
    if (!tl_elem_is_float(e))
        return is_compare(code) ? compare_int(g, code, x[0], x[1], is_signed(e)) : int_op(g, code, x, e);
    TlElem in = is_compare(code) ? (e == TL_ELEM_BF16 ? TL_ELEM_F32 : e) : computed_in(code, e);
    if (tl_elem_bits(e) == 8) {
        cg_fail(g, TL_E_UNSUPPORTED, "%s has no arithmetic; convert first", tl_elem_name(e));
        return NULL;
    }
    if (e == TL_ELEM_BF16 && (code == TL_OP_fmin || code == TL_OP_fmax))
        return choose_bf16(g, code, x);
    for (uint32_t i = 0; i < node->nin && i < 3; i++)
        x[i] = cg_cast(g, x[i], e, in);
    if (is_compare(code))
        return compare_float(g, code, x[0], x[1]);
    return cg_cast(g, float_op(g, code, x, in), in, e);
}
