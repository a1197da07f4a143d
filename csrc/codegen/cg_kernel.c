/* cg_kernel.c - the kernel as an LLVM function: parameters, attributes, blocks, structured control flow.
 *
 * Attributes are computed from what the kernel uses, because no attributor pass runs: without "amdgpu-no-*"
 * hidden arguments and queue pointers are set up, without "amdgpu-agpr-alloc" MFMA accumulators land in
 * AGPRs.
 */
#include "codegen/cg.h"

#include <stdio.h>

static void
attr(Cg *g, const char *key, const char *value)
{
    LLVMAddAttributeAtIndex(
        g->fn, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(g->ctx, key, (unsigned)strlen(key), value, (unsigned)strlen(value)));
}

static void
enum_attr(Cg *g, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(g->fn, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(g->ctx, kind, 0));
}

static void
attributes(Cg *g)
{
    static const char *const never[] = {
        "amdgpu-no-cluster-id-x",      "amdgpu-no-cluster-id-y",      "amdgpu-no-cluster-id-z",
        "amdgpu-no-completion-action", "amdgpu-no-default-queue",     "amdgpu-no-dispatch-id",
        "amdgpu-no-dispatch-ptr",      "amdgpu-no-flat-scratch-init", "amdgpu-no-heap-ptr",
        "amdgpu-no-hostcall-ptr",      "amdgpu-no-lds-kernel-id",     "amdgpu-no-multigrid-sync-arg",
        "amdgpu-no-queue-ptr",         "amdgpu-no-workitem-id-y",     "amdgpu-no-workitem-id-z"};
    static const char *const group_ids[] = {"amdgpu-no-workgroup-id-x", "amdgpu-no-workgroup-id-y",
                                            "amdgpu-no-workgroup-id-z"};
    char text[64];
    enum_attr(g, "nounwind");
    attr(g, "target-cpu", g->target->name);
    snprintf(text, sizeof text, "%u,%u", g->block_size, g->block_size);
    attr(g, "amdgpu-flat-work-group-size", text);
    attr(g, "uniform-work-group-size", "true");
    if (g->waves_per_eu) {
        snprintf(text, sizeof text, "%u,%u", g->waves_per_eu, g->waves_per_eu);
        attr(g, "amdgpu-waves-per-eu", text);
    }
    if (g->lds_bytes) {
        snprintf(text, sizeof text, "%u", g->lds_bytes);
        attr(g, "amdgpu-lds-size", text);
    }
    if (tl_target_has(g->target, TL_FEAT_UNIFIED_AGPR) && !g->use_agprs)
        attr(g, "amdgpu-agpr-alloc", "0");
    for (uint32_t i = 0; i < TL_COUNT(never); i++)
        attr(g, never[i], "");
    for (uint32_t i = 0; i < 3; i++)
        if (!(g->axes >> i & 1))
            attr(g, group_ids[i], "");
    if (!g->uses_grid)
        attr(g, "amdgpu-no-implicitarg-ptr", "");
}

/* What the attributes depend on. */
static bool
scan(TlIr *ir, TlOp o, void *self)
{
    Cg *g = self;
    TlOpcode c = tl_opn(ir, o)->code;
    int64_t axis = tl_attr_int(ir, o, "axis", 0);
    if (c == TL_OP_program_id)
        g->axes |= 1u << (axis & 3);
    if (c == TL_OP_num_programs)
        g->uses_grid = true;
    return true;
}

/* Argument slots are 8 bytes; a scalar sits in the low bytes of its own. */
static bool
parameters(Cg *g, TlBlock body)
{
    uint32_t n = tl_blockn(g->ir, body)->args.len;
    for (uint32_t i = 0; i < n; i++) {
        TlVal v = tl_blockn(g->ir, body)->args.data[i];
        LLVMTypeRef t = cg_type(g, tl_valn(g->ir, v)->type);
        LLVMValueRef p = LLVMGetParam(g->fn, i);
        if (!t)
            return false;
        if (LLVMTypeOf(p) != t) {
            unsigned bits = (unsigned)LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(g->mod), t);
            p = LLVMBuildTrunc(g->b, p, LLVMIntTypeInContext(g->ctx, bits), "");
            p = LLVMBuildBitCast(g->b, p, t, "");
        }
        const char *name = tl_str(&g->ir->strs, tl_valn(g->ir, v)->name);
        LLVMSetValueName2(LLVMGetParam(g->fn, i), name, strlen(name));
        cg_set(g, v, p);
    }
    return true;
}

static bool
function(Cg *g, TlBlock body)
{
    uint32_t n = tl_blockn(g->ir, body)->args.len;
    LLVMTypeRef *types = TL_NEW_N(g->arena, LLVMTypeRef, n);
    if (!types)
        return tl_error(g->diag, (TlLoc){0}, TL_E_OOM);
    for (uint32_t i = 0; i < n; i++) {
        const TlTypeInfo *t = tl_vtype(g->ir, tl_blockn(g->ir, body)->args.data[i]);
        if (t->kind != TL_TY_PTR && t->kind != TL_TY_SCALAR && t->kind != TL_TY_INDEX)
            return cg_fail(g, TL_E_UNSUPPORTED, "parameter %u is neither a pointer nor a scalar", i);
        types[i] = t->kind == TL_TY_PTR ? LLVMPointerTypeInContext(g->ctx, CG_AS_GLOBAL) : g->i64;
    }
    LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), types, n, false);
    g->fn = LLVMAddFunction(g->mod, tl_str(&g->ir->strs, g->ir->kernels.data[g->kernel].name), ft);
    LLVMSetFunctionCallConv(g->fn, 91); /* amdgpu_kernel */
    LLVMSetVisibility(g->fn, LLVMProtectedVisibility);
    return true;
}

bool
cg_kernel(Cg *g)
{
    TlBlock body = g->ir->kernels.data[g->kernel].body;
    if (!tl_walk(g->ir, body, scan, g) || !function(g, body))
        return false;
    attributes(g);
    cg_debug_begin(g);
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->ctx, g->fn, "entry"));
    cg_debug_loc(g, g->ir->kernels.data[g->kernel].loc);
    bool ok = parameters(g, body) && cg_block(g, body);
    if (ok)
        LLVMBuildRetVoid(g->b);
    cg_debug_end(g);
    return ok;
}

bool
cg_block(Cg *g, TlBlock b)
{
    for (TlOp o = tl_blockn(g->ir, b)->first; o; o = tl_opn(g->ir, o)->next) {
        if (tl_op_row(tl_opn(g->ir, o)->code)->traits & TL_T_TERMINATOR)
            break;
        cg_debug_loc(g, tl_opn(g->ir, o)->loc);
        if (!cg_op(g, o))
            return false;
    }
    return true;
}

/* ---- control flow ---- */

static LLVMBasicBlockRef
new_block(Cg *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->ctx, g->fn, name);
}

static LLVMBasicBlockRef
here(Cg *g)
{
    return LLVMGetInsertBlock(g->b);
}

/* The terminator of a region; its operands from `skip` on, translated, into out[n]. */
static bool
region_end(Cg *g, TlBlock b, TlOpcode want, uint32_t skip, LLVMValueRef *out, uint32_t n)
{
    TlOp t = tl_blockn(g->ir, b)->last;
    if (!t || tl_opn(g->ir, t)->code != want || tl_opn(g->ir, t)->nin != n + skip)
        return cg_fail(g, TL_E_INTERNAL, "a region ends wrongly");
    for (uint32_t i = 0; i < n; i++)
        if (!(out[i] = cg_val(g, tl_opn(g->ir, t)->in[i + skip])))
            return false;
    return true;
}

/* One phi for each of vals[first..first+n), in the current block; bound to the values. */
static bool
phis(Cg *g, const TlVal *vals, uint32_t n, LLVMValueRef *out)
{
    for (uint32_t i = 0; i < n; i++) {
        LLVMTypeRef t = cg_type(g, tl_valn(g->ir, vals[i])->type);
        if (!t)
            return false;
        out[i] = LLVMBuildPhi(g->b, t, "");
        if (!cg_set(g, vals[i], out[i]))
            return false;
    }
    return true;
}

static void
incoming(LLVMValueRef *phi, LLVMValueRef *vals, uint32_t n, LLVMBasicBlockRef from)
{
    for (uint32_t i = 0; i < n; i++)
        LLVMAddIncoming(phi[i], &vals[i], &from, 1);
}

static bool
operands(Cg *g, TlOp o, uint32_t skip, uint32_t n, LLVMValueRef *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(out[i] = cg_val(g, tl_opn(g->ir, o)->in[i + skip])))
            return false;
    return true;
}

/* Whether the loop goes on with induction value x: x < upper for a positive step, x > upper for a negative
 * one. */
static LLVMValueRef
goes_on(Cg *g, LLVMValueRef x, LLVMValueRef upper, LLVMValueRef step, bool sign)
{
    LLVMValueRef up = LLVMBuildICmp(g->b, sign ? LLVMIntSLT : LLVMIntULT, x, upper, "");
    if (!sign)
        return up;
    if (LLVMIsConstant(step))
        return LLVMConstIntGetSExtValue(step) > 0 ? up : LLVMBuildICmp(g->b, LLVMIntSGT, x, upper, "");
    LLVMValueRef down = LLVMBuildICmp(g->b, LLVMIntSGT, x, upper, "");
    LLVMValueRef rising = LLVMBuildICmp(g->b, LLVMIntSGT, step, cg_int(LLVMTypeOf(step), 0), "");
    return LLVMBuildSelect(g->b, rising, up, down, "");
}

/* There is no scalar "less" of 64 bits, but "not equal": for a step that is a power of two the value at which
 * the loop ends is known beforehand. NULL: test as usual. */
static LLVMValueRef
exact_end(Cg *g, LLVMValueRef lower, LLVMValueRef upper, LLVMValueRef step)
{
    LLVMTypeRef t = LLVMTypeOf(step);
    if (LLVMGetIntTypeWidth(t) != 64 || !LLVMIsConstant(step))
        return NULL;
    int64_t s = LLVMConstIntGetSExtValue(step);
    if (s <= 0 || (s & (s - 1)))
        return NULL;
    LLVMValueRef n = LLVMBuildAdd(g->b, LLVMBuildSub(g->b, upper, lower, ""), cg_int(t, s - 1), "");
    return LLVMBuildAdd(g->b, lower, LLVMBuildAnd(g->b, n, cg_int(t, -s), ""), "");
}

/* A branch that is decided now leaves no dead edge behind (nothing after us would clean it up cheaply). */
static bool
known(LLVMValueRef cond, bool *value)
{
    if (!LLVMIsAConstantInt(cond))
        return false;
    *value = LLVMConstIntGetZExtValue(cond) != 0;
    return true;
}

/* Guard, then a loop whose test stands at the bottom; one block body as long as it holds no control flow. */
static bool
for_loop(Cg *g, TlOp o)
{
    uint32_t n = tl_opn(g->ir, o)->nin - 3;
    TlBlock body = tl_opn(g->ir, o)->region[0];
    const TlVal *args = tl_blockn(g->ir, body)->args.data;
    LLVMValueRef *v = TL_NEW_N(g->arena, LLVMValueRef, 3 + 3 * (n + 1)), *phi = v + 3 + n,
                 *next = phi + n + 1;
    TlElem e;
    uint32_t one;
    bool taken = true;
    if (!v)
        return tl_error(g->diag, (TlLoc){0}, TL_E_OOM);
    if (!operands(g, o, 0, n + 3, v) || !cg_shape(tl_vtype(g->ir, args[0]), &e, &one))
        return false;
    bool sign = tl_elem_kind(e) == TL_KIND_SINT;
    if (LLVMIsConstant(v[2]) && LLVMIsNull(v[2]))
        return cg_fail(g, TL_E_VALUE, "a step of 0");
    LLVMBasicBlockRef loop = new_block(g, ""), done = new_block(g, ""), from = here(g);
    LLVMValueRef enter = goes_on(g, v[0], v[1], v[2], sign);
    LLVMValueRef end = exact_end(g, v[0], v[1], v[2]);
    bool decided = known(enter, &taken);
    if (decided)
        LLVMBuildBr(g->b, taken ? loop : done);
    else
        LLVMBuildCondBr(g->b, enter, loop, done);
    LLVMPositionBuilderAtEnd(g->b, loop);
    if (!phis(g, args, n + 1, phi) || !cg_block(g, body) || !region_end(g, body, TL_OP_yield, 0, next + 1, n))
        return false;
    g->op = o;
    cg_debug_loc(g, tl_opn(g->ir, o)->loc);
    LLVMBasicBlockRef latch = here(g);
    next[0] = LLVMBuildAdd(g->b, phi[0], v[2], "");
    LLVMValueRef again =
        end ? LLVMBuildICmp(g->b, LLVMIntNE, next[0], end, "") : goes_on(g, next[0], v[1], v[2], sign);
    LLVMBuildCondBr(g->b, again, loop, done);
    if (taken) {
        incoming(phi, v, 1, from);
        incoming(phi + 1, v + 3, n, from);
    }
    incoming(phi, next, n + 1, latch);
    LLVMPositionBuilderAtEnd(g->b, done);
    if (!phis(g, tl_opn(g->ir, o)->res, n, phi))
        return false;
    if (!decided || !taken)
        incoming(phi, v + 3, n, from);
    incoming(phi, next + 1, n, latch);
    return true;
}

static bool
while_loop(Cg *g, TlOp o)
{
    uint32_t n = tl_opn(g->ir, o)->nin, nc = tl_opn(g->ir, o)->nres;
    TlBlock test = tl_opn(g->ir, o)->region[0], body = tl_opn(g->ir, o)->region[1];
    LLVMValueRef *v = TL_NEW_N(g->arena, LLVMValueRef, 3 * n + 1 + nc), *phi = v + n, *next = phi + n,
                 *out = next + n;
    if (!v)
        return tl_error(g->diag, (TlLoc){0}, TL_E_OOM);
    if (!operands(g, o, 0, n, v))
        return false;
    LLVMBasicBlockRef head = new_block(g, ""), inner = new_block(g, ""), done = new_block(g, ""),
                      from = here(g);
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    if (!phis(g, tl_blockn(g->ir, test)->args.data, n, phi) || !cg_block(g, test) ||
        !region_end(g, test, TL_OP_condition, 0, out, nc + 1))
        return false;
    LLVMBuildCondBr(g->b, out[0], inner, done);
    for (uint32_t i = 0; i < nc; i++) {
        cg_set(g, tl_blockn(g->ir, body)->args.data[i], out[i + 1]);
        cg_set(g, tl_opn(g->ir, o)->res[i], out[i + 1]);
    }
    LLVMPositionBuilderAtEnd(g->b, inner);
    if (!cg_block(g, body) || !region_end(g, body, TL_OP_yield, 0, next, n))
        return false;
    incoming(phi, v, n, from);
    incoming(phi, next, n, here(g));
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, done);
    return true;
}

static bool
if_else(Cg *g, TlOp o)
{
    uint32_t n = tl_opn(g->ir, o)->nres;
    LLVMValueRef *v = TL_NEW_N(g->arena, LLVMValueRef, 3 * (n + 1)), *phi = v + 2 * (n + 1);
    LLVMValueRef cond = cg_val(g, tl_opn(g->ir, o)->in[0]);
    if (!v)
        return tl_error(g->diag, (TlLoc){0}, TL_E_OOM);
    if (!cond)
        return false;
    LLVMBasicBlockRef side[2] = {new_block(g, ""), new_block(g, "")}, done = new_block(g, ""), end[2];
    LLVMBuildCondBr(g->b, cond, side[0], side[1]);
    for (int i = 0; i < 2; i++) {
        TlBlock r = tl_opn(g->ir, o)->region[i];
        LLVMPositionBuilderAtEnd(g->b, side[i]);
        if (!cg_block(g, r) || !region_end(g, r, TL_OP_yield, 0, v + (uint32_t)i * (n + 1), n))
            return false;
        end[i] = here(g);
        LLVMBuildBr(g->b, done);
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    if (!phis(g, tl_opn(g->ir, o)->res, n, phi))
        return false;
    incoming(phi, v, n, end[0]);
    incoming(phi, v + n + 1, n, end[1]);
    return true;
}

bool
cg_control(Cg *g, TlOp o)
{
    TlOpcode c = tl_opn(g->ir, o)->code;
    return c == TL_OP_for ? for_loop(g, o) : c == TL_OP_while ? while_loop(g, o) : if_else(g, o);
}
