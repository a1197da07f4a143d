/* cg_mem.c - memory accesses, matrix instructions, vectors, barrier: what names hardware. */
#include "codegen/cg.h"

/* ---- how an access looks to LLVM ---- */

/* The LLVM type by which `bytes` bytes travel: an integer up to 4 bytes, else a vector of i32. NULL: no such
 * access. */
static LLVMTypeRef
wire_type(Cg *g, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        return g->i8;
    case 2:
        return g->i16;
    case 4:
        return g->i32;
    case 8:
    case 12:
    case 16:
        return LLVMVectorType(g->i32, bytes / 4);
    default:
        return NULL;
    }
}

/* Bytes in memory of a scalar or vec (i1: a byte each); 0 after cg_fail. */
static uint32_t
value_bytes(Cg *g, const TlTypeInfo *t)
{
    TlElem e;
    uint32_t n;
    if (t->kind == TL_TY_PTR)
        return 8;
    if (!cg_shape(t, &e, &n) || n > 16 || !wire_type(g, n * tl_elem_bytes(e))) {
        cg_fail(g, TL_E_UNSUPPORTED, "one access moves 1, 2, 4, 8, 12 or 16 bytes");
        return 0;
    }
    return n * tl_elem_bytes(e);
}

static LLVMValueRef
from_wire(Cg *g, LLVMValueRef x, TlType type)
{
    LLVMTypeRef want = cg_type(g, type);
    const TlTypeInfo *t = tl_tinfo(g->ir, type);
    if (!x || !want)
        return NULL;
    if (t->kind == TL_TY_PTR)
        return LLVMBuildIntToPtr(g->b, LLVMBuildBitCast(g->b, x, g->i64, ""), want, "");
    TlElem e;
    uint32_t n;
    if (cg_shape(t, &e, &n) && e == TL_ELEM_I1) {
        x = LLVMBuildBitCast(g->b, x, cg_vec(g->i8, n), "");
        return LLVMBuildICmp(g->b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
    }
    return LLVMBuildBitCast(g->b, x, want, "");
}

static LLVMValueRef
to_wire(Cg *g, LLVMValueRef x, const TlTypeInfo *t, LLVMTypeRef wire)
{
    TlElem e;
    uint32_t n;
    if (t->kind == TL_TY_PTR)
        return LLVMBuildBitCast(g->b, LLVMBuildPtrToInt(g->b, x, g->i64, ""), wire, "");
    if (cg_shape(t, &e, &n) && e == TL_ELEM_I1)
        x = LLVMBuildZExt(g->b, x, cg_vec(g->i8, n), "");
    return LLVMBuildBitCast(g->b, x, wire, "");
}

/* ---- buffers ---- */

typedef enum Cache { CACHE_NORMAL, CACHE_STREAM, CACHE_BAD } Cache;

static Cache
cache_of(Cg *g, TlOp o)
{
    const char *s = tl_attr_str(g->ir, o, "cache", "");
    if (!s[0] || strcmp(s, "normal") == 0)
        return CACHE_NORMAL;
    if (strcmp(s, "stream") == 0)
        return CACHE_STREAM;
    cg_fail(g, TL_E_VALUE, "cache is \"stream\" or absent, not \"%s\"", s);
    return CACHE_BAD;
}

/* The auxiliary operand of the buffer intrinsics: what LLVM sets for a non-temporal access on each chip. */
static int64_t
cache_aux(const TlTarget *t, Cache c)
{
    if (c != CACHE_STREAM)
        return 0;
    switch (t->id) {
    case TL_TARGET_GFX90A:
        return 1 | 2; /* glc slc */
    case TL_TARGET_GFX942:
    case TL_TARGET_GFX950:
        return 2; /* nt */
    case TL_TARGET_GFX1100:
        return 2 | 4; /* slc dlc */
    case TL_TARGET_GFX1201:
        return 1; /* th: non-temporal */
    case TL_TARGET__COUNT:
        break;
    }
    return 0;
}

LLVMValueRef
cg_make_rsrc(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    LLVMValueRef p = cg_val(g, in[0]), n = cg_val(g, in[1]);
    if (!p || !n)
        return NULL;
    /* 32-bit words, identity swizzle; RDNA: raw range rule (OOB_SELECT 3) and the resource level bit */
    uint32_t flags = 7u << 12 | 4u << 15;
    if (g->target->oob == TL_OOB_RDNA)
        flags |= 1u << 24 | 3u << 28;
    LLVMTypeRef over[] = {LLVMPointerTypeInContext(g->ctx, CG_AS_RSRC), LLVMTypeOf(p)};
    LLVMValueRef args[] = {p, cg_int(g->i16, 0), LLVMBuildIntCast2(g->b, n, g->i64, false, ""),
                           cg_int(g->i32, flags)};
    return cg_intrinsic(g, "llvm.amdgcn.make.buffer.rsrc", over, 2, args, 4);
}

/* voffset + imm: instruction selection folds the constant into the instruction. */
static LLVMValueRef
buf_offset(Cg *g, TlOp o, TlVal voffset)
{
    int64_t imm = tl_attr_int(g->ir, o, "imm", 0);
    LLVMValueRef v = cg_val(g, voffset);
    if (imm < 0 || imm > 4095) {
        cg_fail(g, TL_E_VALUE, "imm is 0 to 4095, not %lld", (long long)imm);
        return NULL;
    }
    return v && imm ? LLVMBuildAdd(g->b, v, cg_int(g->i32, imm), "") : v;
}

LLVMValueRef
cg_buf_load(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    TlVal res = tl_result(g->ir, o, 0);
    uint32_t bytes = value_bytes(g, tl_vtype(g->ir, res));
    Cache c = cache_of(g, o);
    if (!bytes || c == CACHE_BAD)
        return NULL;
    LLVMValueRef args[] = {cg_val(g, in[0]), buf_offset(g, o, in[1]), cg_val(g, in[2]),
                           cg_int(g->i32, cache_aux(g->target, c))};
    LLVMTypeRef wire = wire_type(g, bytes);
    LLVMValueRef x = cg_intrinsic(g, "llvm.amdgcn.raw.ptr.buffer.load", &wire, 1, args, 4);
    return from_wire(g, x, tl_valn(g->ir, res)->type);
}

bool
cg_buf_store(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    const TlTypeInfo *t = tl_vtype(g->ir, in[1]);
    uint32_t bytes = value_bytes(g, t);
    Cache c = cache_of(g, o);
    LLVMValueRef x = cg_val(g, in[1]), soffset = cg_val(g, in[3]);
    if (!bytes || c == CACHE_BAD || !x || !soffset)
        return false;
    /* A wide store with soffset in an SGPR needs a wait state that LLVM 22 does not insert. */
    if (!LLVMIsConstant(soffset))
        return cg_fail(g, TL_E_UNSUPPORTED, "soffset of a store is a constant");
    LLVMTypeRef wire = wire_type(g, bytes);
    LLVMValueRef args[] = {to_wire(g, x, t, wire), cg_val(g, in[0]), buf_offset(g, o, in[2]), soffset,
                           cg_int(g->i32, cache_aux(g->target, c))};
    return cg_intrinsic(g, "llvm.amdgcn.raw.ptr.buffer.store", &wire, 1, args, 5) != NULL;
}

/* ---- LDS and global memory ---- */

/* Pointer of a glb_ or lds_ access. LDS offsets are absolute: LDS of the workgroup starts at 0. */
static LLVMValueRef
address(Cg *g, TlOp o, TlVal at, uint32_t bytes)
{
    int64_t imm = tl_attr_int(g->ir, o, "imm", 0);
    LLVMValueRef p = cg_val(g, at);
    if (!p)
        return NULL;
    if (tl_vtype(g->ir, at)->kind == TL_TY_PTR) {
        LLVMValueRef i = cg_int(g->i64, imm);
        return imm ? LLVMBuildGEP2(g->b, g->i8, p, &i, 1, "") : p;
    }
    if (imm < 0 || imm + bytes > g->lds_bytes) {
        cg_fail(g, TL_E_VALUE, "imm %lld leaves the kernel's %u bytes of LDS", (long long)imm, g->lds_bytes);
        return NULL;
    }
    if (imm)
        p = LLVMBuildAdd(g->b, p, cg_int(g->i32, imm), "");
    return LLVMBuildIntToPtr(g->b, p, LLVMPointerTypeInContext(g->ctx, CG_AS_LDS), "");
}

static bool
finish_access(Cg *g, TlOp o, LLVMValueRef access, bool global)
{
    int64_t align = tl_attr_int(g->ir, o, "align", 1);
    if (align < 1 || (align & (align - 1)) || align > 4096)
        return cg_fail(g, TL_E_VALUE, "align is a power of two of bytes");
    LLVMSetAlignment(access, (unsigned)align);
    if (!global)
        return true;
    Cache c = cache_of(g, o);
    if (c == CACHE_STREAM) {
        LLVMMetadataRef one = LLVMValueAsMetadata(cg_int(g->i32, 1));
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(g->ctx, "nontemporal", 11),
                        LLVMMetadataAsValue(g->ctx, LLVMMDNodeInContext2(g->ctx, &one, 1)));
    }
    return c != CACHE_BAD;
}

LLVMValueRef
cg_load(Cg *g, TlOp o)
{
    TlVal res = tl_result(g->ir, o, 0), at = tl_opn(g->ir, o)->in[0];
    uint32_t bytes = value_bytes(g, tl_vtype(g->ir, res));
    LLVMValueRef p = bytes ? address(g, o, at, bytes) : NULL;
    if (!p)
        return NULL;
    LLVMValueRef x = LLVMBuildLoad2(g->b, wire_type(g, bytes), p, "");
    if (!finish_access(g, o, x, tl_vtype(g->ir, at)->kind == TL_TY_PTR))
        return NULL;
    return from_wire(g, x, tl_valn(g->ir, res)->type);
}

bool
cg_store(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    const TlTypeInfo *t = tl_vtype(g->ir, in[1]);
    uint32_t bytes = value_bytes(g, t);
    LLVMValueRef p = bytes ? address(g, o, in[0], bytes) : NULL, x = cg_val(g, in[1]);
    if (!p || !x)
        return false;
    x = LLVMBuildStore(g->b, to_wire(g, x, t, wire_type(g, bytes)), p);
    return finish_access(g, o, x, tl_vtype(g->ir, in[0])->kind == TL_TY_PTR);
}

/* ---- barrier ---- */

static void
fence(Cg *g, const char *scope, LLVMAtomicOrdering order, bool lds_only)
{
    LLVMValueRef f =
        LLVMBuildFenceSyncScope(g->b, order, LLVMGetSyncScopeID(g->ctx, scope, strlen(scope)), "");
    if (lds_only)
        LLVMSetMetadata(f, LLVMGetMDKindIDInContext(g->ctx, "mmra", 4),
                        LLVMMetadataAsValue(g->ctx, g->lds_only));
}

/* scope "lds" (default): only LDS accesses are ordered, global loads stay in flight; "all": global memory
 * too.
 *
 * The waits that LLVM makes of a fence are soft: where nothing is in flight on a loop's first turn they are
 * dropped, though a later turn may come with accesses in flight. On CDNA, where one lgkmcnt(0) is all that a
 * workgroup needs (its waves share one L1 that keeps the order of accesses), the wait is explicit and the
 * fences only keep the compiler from moving accesses. */
bool
cg_barrier(Cg *g, TlOp o)
{
    const char *scope = tl_attr_str(g->ir, o, "scope", "lds");
    bool lds_only = strcmp(scope, "lds") == 0, cdna = g->target->arch == TL_ARCH_CDNA;
    if (!lds_only && strcmp(scope, "all") != 0)
        return cg_fail(g, TL_E_VALUE, "scope is \"lds\" or \"all\", not \"%s\"", scope);
    const char *sync = cdna ? "singlethread" : "workgroup";
    fence(g, sync, LLVMAtomicOrderingRelease, lds_only);
    if (g->block_size > g->target->wave) {
        LLVMValueRef wait = cg_int(g->i32, 0xc07f); /* lgkmcnt(0) */
        if (cdna && !cg_intrinsic(g, "llvm.amdgcn.s.waitcnt", NULL, 0, &wait, 1))
            return false;
        if (!cg_intrinsic(g, "llvm.amdgcn.s.barrier", NULL, 0, NULL, 0))
            return false;
    }
    fence(g, sync, LLVMAtomicOrderingAcquire, lds_only);
    return true;
}

/* ---- matrix instructions ---- */

/* "f32", "v4f16" ... of mma.def */
static LLVMTypeRef
mma_type(Cg *g, const char *s)
{
    uint32_t n = 1;
    if (*s == 'v')
        for (n = 0, s++; *s >= '0' && *s <= '9'; s++)
            n = n * 10 + (uint32_t)(*s - '0');
    TlElem e = tl_elem_by_name(s, strlen(s));
    return e != TL_ELEM_NONE && n >= 1 && n <= 64 ? cg_vec(g->elem[e], n) : NULL;
}

static LLVMValueRef
as_type(Cg *g, LLVMValueRef x, LLVMTypeRef t, const char *what)
{
    LLVMTypeRef have = x ? LLVMTypeOf(x) : NULL;
    if (!x || !t || have == t)
        return t ? x : NULL;
    LLVMTypeKind k = LLVMGetTypeKind(have);
    LLVMTargetDataRef dl = LLVMGetModuleDataLayout(g->mod);
    if (k == LLVMPointerTypeKind || LLVMSizeOfTypeInBits(dl, have) != LLVMSizeOfTypeInBits(dl, t)) {
        cg_fail(g, TL_E_TYPE, "%s has the wrong size", what);
        return NULL;
    }
    return LLVMBuildBitCast(g->b, x, t, "");
}

/* By the row's name or by LLVM's; rows of one intrinsic (8-bit floats) are never on one chip. */
static const TlMma *
mma_row(Cg *g, TlOp o)
{
    const char *name = tl_attr_str(g->ir, o, "intrinsic", "");
    const TlMma *m = tl_mma_by_name(name, strlen(name));
    for (uint32_t i = 1; !m && i < TL_MMA__COUNT; i++) {
        const TlMma *row = tl_mma_get((TlMmaId)i);
        if (strcmp(row->intrinsic, name) == 0 && tl_mma_on(row, g->target))
            m = row;
    }
    if (!m) {
        cg_fail(g, TL_E_UNSUPPORTED, "no matrix instruction is called \"%s\"", name);
        return NULL;
    }
    if (!tl_mma_on(m, g->target)) {
        cg_fail(g, TL_E_TARGET, "%s has no %s", g->target->name, m->name);
        return NULL;
    }
    return m;
}

/* i8 operands of the integer WMMA are signed unless their element type says otherwise. */
static LLVMValueRef
is_signed(Cg *g, TlVal v)
{
    TlElem e;
    uint32_t n;
    return cg_int(g->i1, !(cg_shape(tl_vtype(g->ir, v), &e, &n) && tl_elem_kind(e) == TL_KIND_UINT));
}

LLVMValueRef
cg_mma(Cg *g, TlOp o)
{
    const TlVal *in = tl_opn(g->ir, o)->in;
    const TlMma *m = mma_row(g, o);
    if (!m)
        return NULL;
    LLVMTypeRef ab = mma_type(g, m->ab_type), ct = mma_type(g, m->c_type);
    LLVMValueRef a = as_type(g, cg_val(g, in[0]), ab, "a"), b = as_type(g, cg_val(g, in[1]), ab, "b");
    LLVMValueRef c = as_type(g, cg_val(g, in[2]), ct, "c"), d = NULL;
    LLVMTypeRef res = cg_type(g, tl_valn(g->ir, tl_result(g->ir, o, 0))->type);
    if (!a || !b || !c || !res)
        return NULL;
    LLVMValueRef z = cg_int(g->i32, 0), f = cg_int(g->i1, 0);
    LLVMTypeRef over[] = {ct, ab};
    switch ((TlMmaForm)m->form) {
    case TL_MMAFORM_MFMA:
    case TL_MMAFORM_XF32:
        d = cg_intrinsic(g, m->intrinsic, NULL, 0, (LLVMValueRef[]){a, b, c, z, z, z}, 6);
        break;
    case TL_MMAFORM_WMMA:
        d = cg_intrinsic(g, m->intrinsic, over, 2, (LLVMValueRef[]){a, b, c}, 3);
        break;
    case TL_MMAFORM_WMMA_OPSEL:
        d = cg_intrinsic(g, m->intrinsic, over, 2, (LLVMValueRef[]){a, b, c, f}, 4);
        break;
    case TL_MMAFORM_WMMA_IU:
        d = cg_intrinsic(g, m->intrinsic, over, 2,
                         (LLVMValueRef[]){is_signed(g, in[0]), a, is_signed(g, in[1]), b, c, f}, 6);
        break;
    case TL_MMAFORM_SCALE:
        cg_fail(g, TL_E_UNSUPPORTED, "matrix instructions with scales are not supported yet");
        return NULL;
    }
    return as_type(g, d, res, "the result");
}

/* ---- vectors ---- */

LLVMValueRef
cg_extract(Cg *g, TlOp o)
{
    TlVal in = tl_opn(g->ir, o)->in[0], res = tl_result(g->ir, o, 0);
    LLVMValueRef x = cg_val(g, in);
    int64_t at = tl_attr_int(g->ir, o, "index", 0);
    TlElem e, re;
    uint32_t n, rn;
    if (!x)
        return NULL;
    if (!cg_shape(tl_vtype(g->ir, in), &e, &n) || !cg_shape(tl_vtype(g->ir, res), &re, &rn) || e != re ||
        at < 0 || at + rn > n || rn > 64) {
        cg_fail(g, TL_E_TYPE, "elements %lld to %lld are not in the operand", (long long)at,
                (long long)at + rn - 1);
        return NULL;
    }
    if (n == rn)
        return x;
    if (rn == 1)
        return LLVMBuildExtractElement(g->b, x, cg_int(g->i32, at), "");
    LLVMValueRef mask[64];
    for (uint32_t i = 0; i < rn; i++)
        mask[i] = cg_int(g->i32, at + i);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(mask, rn), "");
}

/* acc holds `have` valid elements of n; part has pn. */
static LLVMValueRef
append(Cg *g, LLVMValueRef acc, uint32_t have, uint32_t n, LLVMValueRef part, uint32_t pn)
{
    if (pn == 1)
        return LLVMBuildInsertElement(g->b, acc, part, cg_int(g->i32, have), "");
    LLVMValueRef mask[64], undef = LLVMGetPoison(g->i32);
    if (pn != n) { /* widen the part, in place */
        for (uint32_t i = 0; i < n; i++)
            mask[i] = i >= have && i < have + pn ? cg_int(g->i32, i - have) : undef;
        part =
            LLVMBuildShuffleVector(g->b, part, LLVMGetPoison(LLVMTypeOf(part)), LLVMConstVector(mask, n), "");
    }
    if (have == 0)
        return part;
    for (uint32_t i = 0; i < n; i++)
        mask[i] = i < have ? cg_int(g->i32, i) : i < have + pn ? cg_int(g->i32, n + i) : undef;
    return LLVMBuildShuffleVector(g->b, acc, part, LLVMConstVector(mask, n), "");
}

LLVMValueRef
cg_concat(Cg *g, TlOp o)
{
    const TlOpNode *node = tl_opn(g->ir, o);
    TlVal res = tl_result(g->ir, o, 0);
    LLVMTypeRef t = cg_type(g, tl_valn(g->ir, res)->type);
    TlElem e, pe;
    uint32_t n, pn, have = 0;
    if (!t || !cg_shape(tl_vtype(g->ir, res), &e, &n))
        return NULL;
    if (n > 64) {
        cg_fail(g, TL_E_UNSUPPORTED, "at most 64 elements");
        return NULL;
    }
    LLVMValueRef acc = LLVMGetPoison(t);
    for (uint32_t i = 0; i < node->nin; i++) {
        LLVMValueRef x = cg_val(g, node->in[i]);
        if (!x)
            return NULL;
        if (!cg_shape(tl_vtype(g->ir, node->in[i]), &pe, &pn) || pe != e || have + pn > n) {
            cg_fail(g, TL_E_TYPE, "the operands do not make up the result");
            return NULL;
        }
        acc = n == 1 ? x : append(g, acc, have, n, x, pn);
        have += pn;
    }
    if (have == n)
        return acc;
    cg_fail(g, TL_E_TYPE, "the operands do not make up the result");
    return NULL;
}

LLVMValueRef
cg_bitcast(Cg *g, TlOp o)
{
    TlVal in = tl_opn(g->ir, o)->in[0], res = tl_result(g->ir, o, 0);
    LLVMTypeRef t = cg_type(g, tl_valn(g->ir, res)->type);
    LLVMValueRef x = cg_val(g, in);
    TlTypeKind from = tl_vtype(g->ir, in)->kind, to = tl_vtype(g->ir, res)->kind;
    if (!t || !x)
        return NULL;
    if (from == TL_TY_PTR && to != TL_TY_PTR)
        return as_type(g, LLVMBuildPtrToInt(g->b, x, g->i64, ""), t, "the result");
    if (to == TL_TY_PTR && from != TL_TY_PTR) {
        x = as_type(g, x, g->i64, "the operand");
        return x ? LLVMBuildIntToPtr(g->b, x, t, "") : NULL;
    }
    return as_type(g, x, t, "the result");
}

/* ---- wave ---- */

LLVMValueRef
cg_uniform(Cg *g, TlOp o)
{
    LLVMValueRef x = cg_val(g, tl_opn(g->ir, o)->in[0]);
    LLVMTypeRef t = x ? LLVMTypeOf(x) : NULL;
    if (!x)
        return NULL;
    LLVMTypeKind k = LLVMGetTypeKind(t);
    if (k == LLVMVectorTypeKind) {
        cg_fail(g, TL_E_UNSUPPORTED, "vectors are not made uniform");
        return NULL;
    }
    if (k == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) < 32) {
        x = cg_intrinsic1(g, "llvm.amdgcn.readfirstlane", g->i32, LLVMBuildZExt(g->b, x, g->i32, ""));
        return x ? LLVMBuildTrunc(g->b, x, t, "") : NULL;
    }
    return cg_intrinsic1(g, "llvm.amdgcn.readfirstlane", t, x);
}
