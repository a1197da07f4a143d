/* cg.h - what the files of codegen/ share: the state of one compilation and the helpers to build LLVM IR.
 *
 * How values look in LLVM: i1 as i1, every other integer by its width (signedness is the operation's), f16
 * half, bf16 bfloat, f32 float, f64 double, 8-bit floats i8; a vec of n > 1 elements is <n x T>, of one
 * element T; ptr is ptr addrspace(1), rsrc ptr addrspace(8), an LDS address i32. Kernel arguments are 8-byte
 * slots: ptr or i64.
 *
 * Failure: every function that builds returns NULL (or false) after cg_fail has written the reason; callers
 * pass it on.
 */
#ifndef TL_CODEGEN_CG_H
#define TL_CODEGEN_CG_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>

#include "base/base.h"
#include "codegen/codegen.h"
#include "ir/ir.h"

enum { CG_AS_GLOBAL = 1, CG_AS_LDS = 3, CG_AS_RSRC = 8 };

typedef struct Cg {
    TlArena *arena;
    TlDiag *diag;
    TlIr *ir;
    TlKernelId kernel;
    const TlTarget *target;
    const TlCodegenOptions *opts;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMValueRef fn;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64;
    LLVMTypeRef elem[TL_ELEM__COUNT];
    LLVMValueRef *vals; /* by TlVal */
    uint32_t nvals;
    uint32_t block_size; /* threads of a workgroup */
    uint32_t lds_bytes;
    uint32_t waves_per_eu;     /* 0: not given */
    uint32_t axes;             /* bits of program_id axes in use */
    bool uses_grid;            /* num_programs: needs the hidden arguments */
    bool use_agprs;            /* let LLVM allocate AGPRs: only when the VGPRs do not suffice */
    LLVMValueRef unknown_zero; /* i32 0 that LLVM knows nothing about, or NULL; the same in all lanes */
    TlOp op;                   /* being translated, for messages */
    LLVMMetadataRef lds_only;  /* memory model relaxation: only LDS is ordered */
    /* line tables */
    LLVMDIBuilderRef di;
    LLVMMetadataRef di_fn;
    LLVMMetadataRef *di_scopes; /* by index of TlDiag.files */
    uint32_t ndi_scopes, di_fn_file;
} Cg;

/* ---- cg_kernel.c: the kernel, its attributes, control flow ---- */

bool cg_kernel(Cg *g);
bool cg_block(Cg *g, TlBlock b); /* every operation but the terminator */
bool cg_control(Cg *g, TlOp o);  /* for, while, if */

/* ---- cg_ops.c: dispatch of one operation; values ---- */

bool cg_op(Cg *g, TlOp o);
bool cg_fail(Cg *g, TlDiagCode code, const char *fmt, ...) TL_PRINTF(3, 4); /* at the operation; false */
LLVMValueRef cg_val(Cg *g, TlVal v);
bool cg_set(Cg *g, TlVal v, LLVMValueRef x); /* false when x is NULL */
LLVMTypeRef cg_type(Cg *g, TlType t);        /* NULL after cg_fail when there is none */
/* Element and count of a scalar, vec or index (i64); false for what has no elements. */
bool cg_shape(const TlTypeInfo *t, TlElem *e, uint32_t *n);
LLVMTypeRef cg_vec(LLVMTypeRef elem, uint32_t n);
LLVMTypeRef cg_like(Cg *g, LLVMValueRef shape, LLVMTypeRef elem); /* elem in the vector shape of a value */
LLVMValueRef cg_int(LLVMTypeRef t, int64_t v);                    /* splat over vectors */
LLVMValueRef cg_float(LLVMTypeRef t, double v);
LLVMValueRef cg_splat(Cg *g, LLVMValueRef x, LLVMTypeRef t); /* a scalar in all elements of a vector type */
/* Calls an LLVM intrinsic; `over` are the overloaded types. */
LLVMValueRef cg_intrinsic(Cg *g, const char *name, LLVMTypeRef *over, uint32_t nover, LLVMValueRef *args,
                          uint32_t nargs);
LLVMValueRef cg_intrinsic1(Cg *g, const char *name, LLVMTypeRef over,
                           LLVMValueRef a); /* one overload, 1..3 operands */
LLVMValueRef cg_intrinsic2(Cg *g, const char *name, LLVMTypeRef over, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef cg_intrinsic3(Cg *g, const char *name, LLVMTypeRef over, LLVMValueRef a, LLVMValueRef b,
                           LLVMValueRef c);

/* ---- cg_arith.c: element-wise operations ---- */

LLVMValueRef cg_arith(Cg *g, TlOp o);
LLVMValueRef cg_cast(Cg *g, LLVMValueRef x, TlElem from, TlElem to);
LLVMValueRef cg_cast_fp8(Cg *g, LLVMValueRef x, TlElem from,
                         TlElem to); /* cg_fp8.c: one of them has 8 bits */

/* ---- cg_mem.c: memory, matrix and wave operations of level thread ---- */

LLVMValueRef cg_make_rsrc(Cg *g, TlOp o);
LLVMValueRef cg_buf_load(Cg *g, TlOp o);
bool cg_buf_store(Cg *g, TlOp o);
LLVMValueRef cg_load(Cg *g, TlOp o); /* glb_load, lds_load */
bool cg_store(Cg *g, TlOp o);        /* glb_store, lds_store */
LLVMValueRef cg_mma(Cg *g, TlOp o);
LLVMValueRef cg_extract(Cg *g, TlOp o);
LLVMValueRef cg_concat(Cg *g, TlOp o);
LLVMValueRef cg_bitcast(Cg *g, TlOp o);
LLVMValueRef cg_uniform(Cg *g, TlOp o);
bool cg_barrier(Cg *g, TlOp o);

/* ---- cg_debug.c: line tables ---- */

void cg_debug_begin(Cg *g);
void cg_debug_loc(Cg *g, TlLoc loc); /* of the instructions built from now on */
void cg_debug_end(Cg *g);

#endif
