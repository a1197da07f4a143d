/* cg_ops.c - one operation of level thread: dispatch, types, values, intrinsic calls. */
#include "codegen/cg.h"

bool
cg_fail(Cg *g, TlDiagCode code, const char *fmt, ...)
{
    va_list ap;
    TlText t;
    tl_text_init(&t, g->arena);
    if (g->op)
        tl_text_printf(&t, "%s: ", tl_op_row(tl_opn(g->ir, g->op)->code)->name);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    TlLoc loc = g->op ? tl_opn(g->ir, g->op)->loc : g->ir->kernels.data[g->kernel].loc;
    return tl_error(g->diag, loc, t.failed ? TL_E_OOM : code, t.data);
}

/* ---- types and values ---- */

bool
cg_shape(const TlTypeInfo *t, TlElem *e, uint32_t *n)
{
    *n = 1;
    switch (t->kind) {
    case TL_TY_INDEX:
        *e = TL_ELEM_I64;
        return true;
    case TL_TY_LDS:
        *e = TL_ELEM_U32;
        return true;
    case TL_TY_SCALAR:
        *e = t->elem;
        return true;
    case TL_TY_VEC:
        *e = t->elem;
        *n = (uint32_t)t->shape[0];
        return true;
    case TL_TY_VOID:
    case TL_TY_TILE:
    case TL_TY_BUF:
    case TL_TY_SHARED:
    case TL_TY_LOCAL:
    case TL_TY_PTR:
    case TL_TY_RSRC:
        return false;
    }
    return false;
}

LLVMTypeRef
cg_vec(LLVMTypeRef elem, uint32_t n)
{
    return n == 1 ? elem : LLVMVectorType(elem, n);
}

LLVMTypeRef
cg_like(Cg *g, LLVMValueRef shape, LLVMTypeRef elem)
{
    (void)g;
    LLVMTypeRef t = LLVMTypeOf(shape);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(elem, LLVMGetVectorSize(t)) : elem;
}

LLVMTypeRef
cg_type(Cg *g, TlType t)
{
    const TlTypeInfo *i = tl_tinfo(g->ir, t);
    TlElem e;
    uint32_t n;
    if (i->kind == TL_TY_PTR)
        return LLVMPointerTypeInContext(g->ctx, CG_AS_GLOBAL);
    if (i->kind == TL_TY_RSRC)
        return LLVMPointerTypeInContext(g->ctx, CG_AS_RSRC);
    if (cg_shape(i, &e, &n) && g->elem[e])
        return cg_vec(g->elem[e], n);
    TlText text;
    tl_text_init(&text, g->arena);
    tl_type_print(g->ir, t, &text);
    cg_fail(g, TL_E_UNSUPPORTED, "no value of type %s at level thread", text.failed ? "?" : text.data);
    return NULL;
}

LLVMValueRef
cg_val(Cg *g, TlVal v)
{
    LLVMValueRef x = v < g->nvals ? g->vals[v] : NULL;
    if (!x)
        cg_fail(g, TL_E_INTERNAL, "operand %u has no value", v);
    return x;
}

bool
cg_set(Cg *g, TlVal v, LLVMValueRef x)
{
    if (x && v < g->nvals)
        g->vals[v] = x;
    return x != NULL;
}

static LLVMValueRef
splat_const(LLVMTypeRef t, LLVMValueRef x)
{
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return x;
    LLVMValueRef many[64];
    uint32_t n = LLVMGetVectorSize(t);
    if (n > TL_COUNT(many))
        return LLVMIsNull(x) ? LLVMConstNull(t) : NULL;
    for (uint32_t i = 0; i < n; i++)
        many[i] = x;
    return LLVMConstVector(many, n);
}

static LLVMTypeRef
scalar_of(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

LLVMValueRef
cg_int(LLVMTypeRef t, int64_t v)
{
    LLVMTypeRef s = scalar_of(t);
    unsigned bits = LLVMGetIntTypeWidth(s);
    uint64_t u = bits < 64 ? (uint64_t)v & ((1ull << bits) - 1) : (uint64_t)v;
    return splat_const(t, LLVMConstInt(s, u, false));
}

LLVMValueRef
cg_float(LLVMTypeRef t, double v)
{
    return splat_const(t, LLVMConstReal(scalar_of(t), v));
}

LLVMValueRef
cg_splat(Cg *g, LLVMValueRef x, LLVMTypeRef t)
{
    LLVMValueRef v = LLVMBuildInsertElement(g->b, LLVMGetPoison(t), x, cg_int(g->i32, 0), "");
    LLVMTypeRef mask = LLVMVectorType(g->i32, LLVMGetVectorSize(t));
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(t), LLVMConstNull(mask), "");
}

/* ---- intrinsics ---- */

LLVMValueRef
cg_intrinsic(Cg *g, const char *name, LLVMTypeRef *over, uint32_t nover, LLVMValueRef *args, uint32_t nargs)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id || LLVMIntrinsicIsOverloaded(id) != (nover != 0)) {
        cg_fail(g, TL_E_INTERNAL, "this LLVM has no intrinsic %s", name);
        return NULL;
    }
    for (uint32_t i = 0; i < nargs; i++)
        if (!args[i])
            return NULL;
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(g->mod, id, over, nover);
    LLVMTypeRef ft = LLVMGlobalGetValueType(f), params[16];
    if (LLVMCountParamTypes(ft) != nargs || nargs > TL_COUNT(params)) {
        cg_fail(g, TL_E_INTERNAL, "%s takes %u operands in this LLVM, not %u", name, LLVMCountParamTypes(ft),
                nargs);
        return NULL;
    }
    LLVMGetParamTypes(ft, params);
    for (uint32_t i = 0; i < nargs; i++)
        if (LLVMTypeOf(args[i]) != params[i]) {
            cg_fail(g, TL_E_INTERNAL, "operand %u of %s has another type", i, name);
            return NULL;
        }
    return LLVMBuildCall2(g->b, ft, f, args, nargs, "");
}

LLVMValueRef
cg_intrinsic1(Cg *g, const char *name, LLVMTypeRef over, LLVMValueRef a)
{
    return cg_intrinsic(g, name, &over, 1, &a, 1);
}

LLVMValueRef
cg_intrinsic2(Cg *g, const char *name, LLVMTypeRef over, LLVMValueRef a, LLVMValueRef b)
{
    return cg_intrinsic(g, name, &over, 1, (LLVMValueRef[]){a, b}, 2);
}

LLVMValueRef
cg_intrinsic3(Cg *g, const char *name, LLVMTypeRef over, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    return cg_intrinsic(g, name, &over, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* ---- small operations ---- */

/* A call whose result is known to lie in [0, limit). */
static LLVMValueRef
ranged(Cg *g, LLVMValueRef call, uint64_t limit)
{
    if (!call)
        return NULL;
    unsigned kind = LLVMGetEnumAttributeKindForName("range", 5);
    uint64_t lo = 0;
    LLVMAddCallSiteAttribute(call, LLVMAttributeReturnIndex,
                             LLVMCreateConstantRangeAttribute(g->ctx, kind, 32, &lo, &limit));
    return call;
}

static LLVMValueRef
thread_id(Cg *g, TlOp o)
{
    (void)o;
    return ranged(g, cg_intrinsic(g, "llvm.amdgcn.workitem.id.x", NULL, 0, NULL, 0), g->block_size);
}

static LLVMValueRef
wave_id(Cg *g, TlOp o)
{
    uint32_t wave = g->target->wave;
    if (g->block_size <= wave)
        return cg_int(g->i32, 0);
    LLVMValueRef t = thread_id(g, o);
    if (!t)
        return NULL;
    t = LLVMBuildLShr(g->b, t, cg_int(g->i32, wave == 64 ? 6 : 5), "");
    t = cg_intrinsic1(g, "llvm.amdgcn.readfirstlane", g->i32, t);
    return ranged(g, t, g->block_size / wave);
}

static LLVMValueRef
lane_id(Cg *g, TlOp o)
{
    LLVMValueRef t = thread_id(g, o);
    return t && g->block_size > g->target->wave
               ? LLVMBuildAnd(g->b, t, cg_int(g->i32, g->target->wave - 1), "")
               : t;
}

/* i32 result in [0, 2^31) to the result's integer type. */
static LLVMValueRef
widen(Cg *g, TlOp o, LLVMValueRef x)
{
    LLVMTypeRef t = cg_type(g, tl_valn(g->ir, tl_result(g->ir, o, 0))->type);
    if (!x || !t)
        return NULL;
    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind) {
        cg_fail(g, TL_E_UNSUPPORTED, "the result is an integer");
        return NULL;
    }
    return LLVMBuildIntCast2(g->b, x, t, false, "");
}

static LLVMValueRef
program_id(Cg *g, TlOp o)
{
    static const char *const names[] = {"llvm.amdgcn.workgroup.id.x", "llvm.amdgcn.workgroup.id.y",
                                        "llvm.amdgcn.workgroup.id.z"};
    int64_t axis = tl_attr_int(g->ir, o, "axis", -1);
    if (axis < 0 || axis > 2) {
        cg_fail(g, TL_E_VALUE, "axis is 0, 1 or 2");
        return NULL;
    }
    return widen(g, o, ranged(g, cg_intrinsic(g, names[axis], NULL, 0, NULL, 0), INT32_MAX));
}

/* Hidden arguments block_count_x, y, z: u32 at 0, 4, 8. */
static LLVMValueRef
num_programs(Cg *g, TlOp o)
{
    int64_t axis = tl_attr_int(g->ir, o, "axis", -1);
    if (axis < 0 || axis > 2) {
        cg_fail(g, TL_E_VALUE, "axis is 0, 1 or 2");
        return NULL;
    }
    LLVMValueRef p = cg_intrinsic(g, "llvm.amdgcn.implicitarg.ptr", NULL, 0, NULL, 0);
    if (!p)
        return NULL;
    LLVMValueRef at = cg_int(g->i64, 4 * axis);
    p = LLVMBuildInBoundsGEP2(g->b, g->i8, p, &at, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, g->i32, p, "");
    LLVMSetAlignment(x, 4);
    LLVMSetMetadata(x, LLVMGetMDKindIDInContext(g->ctx, "invariant.load", 14),
                    LLVMMetadataAsValue(g->ctx, LLVMMDNodeInContext2(g->ctx, NULL, 0)));
    return widen(g, o, x);
}

static LLVMValueRef
constant(Cg *g, TlOp o)
{
    TlVal res = tl_result(g->ir, o, 0);
    LLVMTypeRef t = cg_type(g, tl_valn(g->ir, res)->type);
    const TlAttr *i = tl_attr(g->ir, o, "value"), *f = tl_attr(g->ir, o, "fvalue");
    TlElem e;
    uint32_t n;
    if (!t || !cg_shape(tl_vtype(g->ir, res), &e, &n))
        return NULL;
    LLVMValueRef x = NULL;
    if (tl_elem_is_float(e)) {
        double v = f ? f->u.f : i ? (double)i->u.i : 0;
        if (tl_elem_bits(e) == 8)
            x = cg_int(t, (int64_t)tl_num_encode(e, (TlNum){.f = v}));
        else
            x = cg_float(t, v);
    } else if (i) {
        x = cg_int(t, i->u.i);
    }
    if (!x)
        cg_fail(g, TL_E_UNSUPPORTED, "no such constant");
    return x;
}

static LLVMValueRef
splat(Cg *g, TlOp o)
{
    LLVMTypeRef t = cg_type(g, tl_valn(g->ir, tl_result(g->ir, o, 0))->type);
    LLVMValueRef x = cg_val(g, tl_opn(g->ir, o)->in[0]);
    if (!t || !x || LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return t ? x : NULL;
    return cg_splat(g, x, t);
}

static LLVMValueRef
ptr_add(Cg *g, TlOp o)
{
    LLVMValueRef p = cg_val(g, tl_opn(g->ir, o)->in[0]), i = cg_val(g, tl_opn(g->ir, o)->in[1]);
    return p && i ? LLVMBuildGEP2(g->b, g->i8, p, &i, 1, "") : NULL;
}

static LLVMValueRef
perm(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    LLVMValueRef a[] = {cg_val(g, in[0]), cg_val(g, in[1]), cg_int(g->i32, tl_attr_int(g->ir, o, "sel", 0))};
    return cg_intrinsic(g, "llvm.amdgcn.perm", NULL, 0, a, 3);
}

static LLVMValueRef
bpermute(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    LLVMValueRef a[] = {cg_val(g, in[0]), cg_val(g, in[1])};
    return cg_intrinsic(g, "llvm.amdgcn.ds.bpermute", NULL, 0, a, 2);
}

static bool
sched_barrier(Cg *g, TlOp o)
{
    LLVMValueRef a = cg_int(g->i32, tl_attr_int(g->ir, o, "mask", 0));
    return cg_intrinsic(g, "llvm.amdgcn.sched.barrier", NULL, 0, &a, 1) != NULL;
}

static bool
set_prio(Cg *g, TlOp o)
{
    int64_t p = tl_attr_int(g->ir, o, "prio", 0);
    if (p < 0 || p > 3)
        return cg_fail(g, TL_E_VALUE, "prio is 0 to 3");
    LLVMValueRef a = cg_int(g->i16, p);
    return cg_intrinsic(g, "llvm.amdgcn.s.setprio", NULL, 0, &a, 1) != NULL;
}

static bool
trap(Cg *g, TlOp o)
{
    (void)o;
    return cg_intrinsic(g, "llvm.trap", NULL, 0, NULL, 0) != NULL;
}

/* if (!condition) trap */
static bool
assertion(Cg *g, TlOp o)
{
    LLVMValueRef c = cg_val(g, tl_opn(g->ir, o)->in[0]);
    if (!c)
        return false;
    LLVMBasicBlockRef bad = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBasicBlockRef good = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBuildCondBr(g->b, c, good, bad);
    LLVMPositionBuilderAtEnd(g->b, bad);
    if (!trap(g, o))
        return false;
    LLVMBuildBr(g->b, good);
    LLVMPositionBuilderAtEnd(g->b, good);
    return true;
}

typedef LLVMValueRef (*CgValue)(Cg *g, TlOp o);
typedef bool (*CgEffect)(Cg *g, TlOp o);

/* What makes the result of an operation of level thread, what has an effect instead. */
static const CgValue values[TL_OP__COUNT] = {
    [TL_OP_const] = constant,
    [TL_OP_splat] = splat,
    [TL_OP_bitcast] = cg_bitcast,
    [TL_OP_add] = cg_arith,
    [TL_OP_sub] = cg_arith,
    [TL_OP_mul] = cg_arith,
    [TL_OP_div] = cg_arith,
    [TL_OP_floordiv] = cg_arith,
    [TL_OP_mod] = cg_arith,
    [TL_OP_truncdiv] = cg_arith,
    [TL_OP_rem] = cg_arith,
    [TL_OP_min] = cg_arith,
    [TL_OP_max] = cg_arith,
    [TL_OP_fmin] = cg_arith,
    [TL_OP_fmax] = cg_arith,
    [TL_OP_neg] = cg_arith,
    [TL_OP_abs] = cg_arith,
    [TL_OP_and] = cg_arith,
    [TL_OP_or] = cg_arith,
    [TL_OP_xor] = cg_arith,
    [TL_OP_not] = cg_arith,
    [TL_OP_shl] = cg_arith,
    [TL_OP_shr] = cg_arith,
    [TL_OP_eq] = cg_arith,
    [TL_OP_ne] = cg_arith,
    [TL_OP_lt] = cg_arith,
    [TL_OP_le] = cg_arith,
    [TL_OP_gt] = cg_arith,
    [TL_OP_ge] = cg_arith,
    [TL_OP_select] = cg_arith,
    [TL_OP_cast] = cg_arith,
    [TL_OP_fma] = cg_arith,
    [TL_OP_exp] = cg_arith,
    [TL_OP_exp2] = cg_arith,
    [TL_OP_log] = cg_arith,
    [TL_OP_log2] = cg_arith,
    [TL_OP_sqrt] = cg_arith,
    [TL_OP_rsqrt] = cg_arith,
    [TL_OP_floor] = cg_arith,
    [TL_OP_ceil] = cg_arith,
    [TL_OP_trunc] = cg_arith,
    [TL_OP_round] = cg_arith,
    [TL_OP_program_id] = program_id,
    [TL_OP_num_programs] = num_programs,
    [TL_OP_thread_id] = thread_id,
    [TL_OP_wave_id] = wave_id,
    [TL_OP_lane_id] = lane_id,
    [TL_OP_uniform] = cg_uniform,
    [TL_OP_make_rsrc] = cg_make_rsrc,
    [TL_OP_ptr_add] = ptr_add,
    [TL_OP_buf_load] = cg_buf_load,
    [TL_OP_glb_load] = cg_load,
    [TL_OP_lds_load] = cg_load,
    [TL_OP_mma] = cg_mma,
    [TL_OP_perm] = perm,
    [TL_OP_extract] = cg_extract,
    [TL_OP_concat] = cg_concat,
    [TL_OP_ds_bpermute] = bpermute,
};

static const CgEffect effects[TL_OP__COUNT] = {
    [TL_OP_buf_store] = cg_buf_store,
    [TL_OP_glb_store] = cg_store,
    [TL_OP_lds_store] = cg_store,
    [TL_OP_barrier] = cg_barrier,
    [TL_OP_sched_barrier] = sched_barrier,
    [TL_OP_set_prio] = set_prio,
    [TL_OP_assert] = assertion,
    [TL_OP_trap] = trap,
    [TL_OP_for] = cg_control,
    [TL_OP_while] = cg_control,
    [TL_OP_if] = cg_control,
};

bool
cg_op(Cg *g, TlOp o)
{
    TlOpcode code = tl_opn(g->ir, o)->code;
    g->op = o;
    if (values[code])
        return cg_set(g, tl_result(g->ir, o, 0), values[code](g, o));
    if (effects[code])
        return effects[code](g, o);
    return cg_fail(g, TL_E_INTERNAL, "this operation does not belong to level thread");
}
