/* verify_thread.c - what each row of level "thread" demands of its operands, results and attributes; see
 * verify_ops.c. */
#include "ir/verify_int.h"

static void
check_i32_result(TlVerifier *v, TlOp o)
{
    result_is(v, o, tl_type_scalar(v->ir, TL_ELEM_I32));
}

static void
check_uniform(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0);
    if (a->kind != TL_TY_SCALAR || tl_elem_bits(a->elem) != 32)
        tl_fault(v, o, "a 32-bit scalar wanted, not %s", text(v, in_t(v, o, 0)));
}

static void
check_make_rsrc(TlVerifier *v, TlOp o)
{
    if (in_i(v, o, 0)->kind != TL_TY_PTR || !is_i32(in_i(v, o, 1)))
        tl_fault(v, o, "ptr and i32 wanted, not %s and %s", text(v, in_t(v, o, 0)), text(v, in_t(v, o, 1)));
    result_is(v, o, tl_type_kind(v->ir, TL_TY_RSRC));
}

static void
check_ptr_add(TlVerifier *v, TlOp o)
{
    Info *x = in_i(v, o, 1);
    if (in_i(v, o, 0)->kind != TL_TY_PTR || !(is_scalar(x, TL_ELEM_I64) || is_scalar(x, TL_ELEM_U64)))
        tl_fault(v, o, "ptr and i64 wanted, not %s and %s", text(v, in_t(v, o, 0)), text(v, in_t(v, o, 1)));
    result_is(v, o, tl_type_kind(v->ir, TL_TY_PTR));
}

/* A value that one memory access moves, and the offset beside it. */
static void
check_access(TlVerifier *v, TlOp o, TlType t, int64_t imm_low, int64_t imm_high)
{
    Info *x = tl_tinfo(v->ir, t);
    int64_t bytes = total_bits(x) / 8, imm = tl_attr_int(v->ir, o, "imm", 0);
    if (x->kind == TL_TY_SCALAR && x->elem == TL_ELEM_I1)
        bytes = 1;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 12 && bytes != 16)
        tl_fault(v, o, "no access of %s: 1, 2, 4, 8, 12 or 16 bytes wanted", text(v, t));
    if (imm < imm_low || imm > imm_high)
        tl_fault(v, o, "imm %lld is outside %lld .. %lld", (long long)imm, (long long)imm_low,
                 (long long)imm_high);
    if (!power_of_two(tl_attr_int(v->ir, o, "align", 1)))
        tl_fault(v, o, "align must be a power of two");
}

static void
check_buf_access(TlVerifier *v, TlOp o)
{
    bool store = node(v, o)->code == TL_OP_buf_store;
    uint32_t off = store ? 2 : 1;
    int64_t c;
    if (in_i(v, o, 0)->kind != TL_TY_RSRC || !is_i32(in_i(v, o, off)) || !is_i32(in_i(v, o, off + 1)))
        tl_fault(v, o, "a descriptor and two i32 offsets wanted, not %s, %s, %s", text(v, in_t(v, o, 0)),
                 text(v, in_t(v, o, off)), text(v, in_t(v, o, off + 1)));
    if (store && !tl_is_const_int(v->ir, node(v, o)->in[3], &c))
        tl_fault(v, o, "soffset of a store must be a constant");
    check_access(v, o, store ? in_t(v, o, 1) : res_t(v, o), 0, 4095);
}

static void
check_glb_access(TlVerifier *v, TlOp o)
{
    bool store = node(v, o)->code == TL_OP_glb_store;
    if (in_i(v, o, 0)->kind != TL_TY_PTR)
        tl_fault(v, o, "the address must be ptr, not %s", text(v, in_t(v, o, 0)));
    check_access(v, o, store ? in_t(v, o, 1) : res_t(v, o), -4096, 4095);
}

static void
check_lds_access(TlVerifier *v, TlOp o)
{
    bool store = node(v, o)->code == TL_OP_lds_store;
    if (in_i(v, o, 0)->kind != TL_TY_LDS && !is_i32(in_i(v, o, 0)))
        tl_fault(v, o, "the address must be i32 or lds, not %s", text(v, in_t(v, o, 0)));
    check_access(v, o, store ? in_t(v, o, 1) : res_t(v, o), 0, 65535);
}

static const TlMma *
find_mma(TlVerifier *v, TlOp o)
{
    const TlAttr *a = tl_attr(v->ir, o, "intrinsic");
    if (a->u.s == v->mma_name)
        return v->mma;
    const char *name = tl_str(&v->ir->strs, a->u.s);
    v->mma_name = a->u.s;
    v->mma = tl_mma_by_name(name, strlen(name));
    for (uint32_t i = TL_MMA_NONE + 1; !v->mma && i < TL_MMA__COUNT; i++)
        if (strcmp(tl_mma_get((TlMmaId)i)->intrinsic, name) == 0)
            v->mma = tl_mma_get((TlMmaId)i);
    return v->mma;
}

static void
check_mma(TlVerifier *v, TlOp o)
{
    const TlMma *m = find_mma(v, o);
    if (!m) {
        tl_fault(v, o, "no matrix instruction \"%s\"", tl_attr_str(v->ir, o, "intrinsic", ""));
        return;
    }
    const char *chip = tl_kattr_str(v->ir, v->kernel, "target", NULL);
    const TlTarget *t = chip ? tl_target_by_name(chip) : NULL;
    if (t && !tl_mma_on(m, t))
        tl_fault(v, o, "%s has no %s", chip, m->name);
    const uint8_t regs[3] = {m->a_regs, m->b_regs, m->c_regs};
    for (uint32_t i = 0; i < 3; i++)
        if (total_bits(in_i(v, o, i)) != (int64_t)regs[i] * 32)
            tl_fault(v, o, "operand %u must have %u bits, not %s", i, regs[i] * 32u, text(v, in_t(v, o, i)));
    if (tl_type_elem(in_i(v, o, 2)) != (TlElem)m->c)
        tl_fault(v, o, "the accumulator must be of %s, not %s", tl_elem_name((TlElem)m->c),
                 text(v, in_t(v, o, 2)));
    result_is(v, o, in_t(v, o, 2));
}

static void
check_two_i32(TlVerifier *v, TlOp o)
{
    if (!is_i32(in_i(v, o, 0)) || !is_i32(in_i(v, o, 1)) || !is_i32(res_i(v, o)))
        tl_fault(v, o, "i32 operands and result wanted, not %s, %s, %s", text(v, in_t(v, o, 0)),
                 text(v, in_t(v, o, 1)), text(v, res_t(v, o)));
}

static void
check_extract(TlVerifier *v, TlOp o)
{
    Info *a = in_i(v, o, 0), *r = res_i(v, o);
    int64_t index = tl_attr_int(v->ir, o, "index", -1), n = tl_numel(r);
    if (a->kind != TL_TY_VEC || (r->kind != TL_TY_VEC && r->kind != TL_TY_SCALAR) || r->elem != a->elem)
        tl_fault(v, o, "no extract of %s from %s", text(v, res_t(v, o)), text(v, in_t(v, o, 0)));
    else if (index < 0 || index > a->shape[0] - n)
        tl_fault(v, o, "elements %lld .. %lld of %s", (long long)index, (long long)(index + n - 1),
                 text(v, in_t(v, o, 0)));
}

static void
check_concat(TlVerifier *v, TlOp o)
{
    Info *r = res_i(v, o);
    int64_t n = 0;
    for (uint32_t i = 0; i < node(v, o)->nin; i++) {
        Info *x = in_i(v, o, i);
        if ((x->kind != TL_TY_VEC && x->kind != TL_TY_SCALAR) || x->elem != r->elem) {
            tl_fault(v, o, "operand %u is %s, the result %s", i, text(v, in_t(v, o, i)),
                     text(v, res_t(v, o)));
            return;
        }
        n += tl_numel(x);
    }
    if (r->kind != TL_TY_VEC || r->shape[0] != n)
        tl_fault(v, o, "the operands have %lld elements, the result is %s", (long long)n,
                 text(v, res_t(v, o)));
}

static void
check_set_prio(TlVerifier *v, TlOp o)
{
    int64_t p = tl_attr_int(v->ir, o, "prio", 0);
    if (p < 0 || p > 3)
        tl_fault(v, o, "prio %lld: 0 .. 3 wanted", (long long)p);
}

static void
check_nothing(TlVerifier *v, TlOp o)
{
    (void)v;
    (void)o;
}

const TlCheckFn tl_thread_checks[TL_OP__COUNT] = {
    [TL_OP_thread_id] = check_i32_result,
    [TL_OP_wave_id] = check_i32_result,
    [TL_OP_lane_id] = check_i32_result,
    [TL_OP_uniform] = check_uniform,
    [TL_OP_make_rsrc] = check_make_rsrc,
    [TL_OP_ptr_add] = check_ptr_add,
    [TL_OP_buf_load] = check_buf_access,
    [TL_OP_buf_store] = check_buf_access,
    [TL_OP_glb_load] = check_glb_access,
    [TL_OP_glb_store] = check_glb_access,
    [TL_OP_lds_load] = check_lds_access,
    [TL_OP_lds_store] = check_lds_access,
    [TL_OP_mma] = check_mma,
    [TL_OP_perm] = check_two_i32,
    [TL_OP_extract] = check_extract,
    [TL_OP_concat] = check_concat,
    [TL_OP_ds_bpermute] = check_two_i32,
    [TL_OP_sched_barrier] = check_nothing,
    [TL_OP_set_prio] = check_set_prio,
    [TL_OP_trap] = check_nothing,
};
