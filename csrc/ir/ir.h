/* ir.h - the tile IR: types, operations, values, blocks, kernels; builder, printer, parser, verifier.
 *
 * One IR serves two levels. At level "tile" values are scalars and tiles (immutable, distributed over the
 * workgroup by a layout that a pass chooses), and memory is buffers. At level "thread" the same operations
 * work on the scalars and short vectors of one thread, and memory operations name hardware accesses; codegen
 * translates that level one to one. Everything is an index into arrays of one TlIr; index 0 is "none". The
 * printed form is the parsed form.
 *
 * Text form (uniform for all operations):
 *   kernel @name level tile {num_warps = 4} (%A : buf<f16 [64, ?:8] strides [?, 1] align 16>, %n : i32) {
 *     %0 = program_id {axis = 0} : index
 *     %1, %2 = for %lb, %ub, %step, %a, %b {num_stages = 2} (%k : index, %x : tile<8x8xf32>, %y : f32) {
 *       ...
 *       yield %p, %q
 *     } : tile<8x8xf32>, f32 loc("f.py":12:5)
 *     store %A, %v, %i, %j {dims = "ss"}
 *   }
 * Operands stand on the operation's line; a region is (arguments) {operations}, the arguments' list also when
 * empty; every region ends in yield (region 0 of while in condition), a kernel's body in nothing.
 */
#ifndef TL_IR_IR_H
#define TL_IR_IR_H

#include "base/base.h"
#include "target/target.h"

typedef uint32_t TlVal, TlOp, TlBlock, TlType, TlKernelId;
enum { TL_MAX_RANK = 6, TL_MAX_REGIONS = 3 };

/* ---- types -------------------------------------------------------------------------------------- */

typedef enum TlTypeKind {
    TL_TY_VOID,
    TL_TY_INDEX,  /* exact integer: program ids, dims, range variables; weak against typed values */
    TL_TY_SCALAR, /* elem */
    TL_TY_TILE,   /* elem, shape: a value of the workgroup. Rank >= 1; any positive sizes (capacities) */
    TL_TY_BUF,    /* elem, rank; dims[], strides[] (elements; TL_DYN when known at run time only), their
                     divisors, alignment of the pointer in bytes */
    TL_TY_SHARED, /* elem, shape: LDS buffer */
    TL_TY_LOCAL,  /* elem, shape: mutable register tile */
    TL_TY_VEC,    /* elem, shape[0] = n: thread level, n elements in registers */
    TL_TY_PTR,    /* thread level: 64-bit global address */
    TL_TY_RSRC,   /* thread level: 128-bit buffer descriptor */
    TL_TY_LDS     /* thread level: 32-bit LDS byte address */
} TlTypeKind;

#define TL_DYN INT64_MIN

typedef struct TlTypeInfo {
    TlTypeKind kind;
    TlElem elem;
    uint32_t rank;
    int64_t shape[TL_MAX_RANK];    /* TILE, SHARED, LOCAL, VEC: sizes; BUF: dims or TL_DYN */
    int64_t strides[TL_MAX_RANK];  /* BUF */
    uint32_t dim_div[TL_MAX_RANK]; /* BUF: a run-time dim is a multiple of this (1 = unknown) */
    uint32_t stride_div[TL_MAX_RANK];
    uint32_t align; /* BUF: bytes */
    uint32_t flags; /* BUF: TL_BUF_* */
} TlTypeInfo;
enum {
    /* tested at launch: overlaps no other argument that is written, nor is itself written while others read
       it */
    TL_BUF_NOALIAS = 1,
    TL_BUF_DENSE = 2, /* row-major contiguous: strides follow from the dims; dynamic strides are not passed */
    TL_BUF_BIG = 4    /* its byte extent may pass 2^31: 64-bit addressing */
};

/* ---- operations --------------------------------------------------------------------------------- */

typedef enum TlOpcode {
    TL_OP_NONE,
#define TL_OP(name, ...) TL_OP_##name,
#include "ir/ops.def"
#undef TL_OP
    TL_OP__COUNT
} TlOpcode;

typedef enum TlAttrKind { TL_ATTR_INT, TL_ATTR_FLOAT, TL_ATTR_STR, TL_ATTR_INTS } TlAttrKind;
typedef struct TlAttr {
    TlStr key;
    TlAttrKind kind;
    union {
        int64_t i;
        double f;
        TlStr s;
        struct {
            int64_t *v;
            uint32_t n;
        } ints;
    } u;
} TlAttr;

typedef struct TlOpNode {
    TlOpcode code;
    TlLoc loc;
    TlBlock block;   /* the block it stands in; 0 = detached */
    TlOp prev, next; /* in the block */
    uint32_t nin, nres, nattr, nregion;
    TlVal *in;
    TlVal *res;
    TlAttr *attr;
    TlBlock region[TL_MAX_REGIONS];
} TlOpNode;

typedef struct TlValNode {
    TlType type;
    TlOp def;       /* defining operation, or 0 for a block argument */
    TlBlock block;  /* of a block argument */
    uint32_t index; /* result or argument number */
    TlStr name;     /* hint for printing; "" = number */
} TlValNode;

typedef struct TlBlockNode {
    TlOp parent; /* operation whose region this is; 0 = a kernel's body */
    TlKernelId kernel;
    TlOp first, last;
    TL_VEC(TlVal) args;
} TlBlockNode;

typedef enum TlLevel { TL_LEVEL_TILE, TL_LEVEL_THREAD } TlLevel;

typedef struct TlKernel {
    TlStr name;
    TlLevel level;
    TlBlock body;         /* its args are the parameters */
    TL_VEC(TlAttr) attrs; /* num_warps, target, num_stages, lds_bytes, ... */
    TlLoc loc;
} TlKernel;

typedef struct TlIr {
    TlArena *arena;
    TlDiag *diag;
    TlStrTab strs;
    TL_VEC(TlTypeInfo) types;
    TlMap type_map;
    TlType scalar_types[TL_ELEM__COUNT]; /* 0: not made yet */
    TlType kind_types[16];               /* INDEX, PTR, RSRC, LDS */
    TL_VEC(TlOpNode) ops;
    TL_VEC(TlValNode) vals;
    TL_VEC(TlBlockNode) blocks;
    TL_VEC(TlKernel) kernels; /* [0] unused */
} TlIr;

bool tl_ir_init(TlIr *ir, TlArena *arena, TlDiag *diag);

/* types; 0 on failure */
TlType tl_type(TlIr *ir, const TlTypeInfo *info);
TlType tl_type_scalar(TlIr *ir, TlElem e);
TlType tl_type_index(TlIr *ir);
TlType tl_type_tile(TlIr *ir, TlElem e, uint32_t rank, const int64_t *shape);
TlType tl_type_vec(TlIr *ir, TlElem e, int64_t n); /* n == 1: still a vec */
TlType tl_type_kind(TlIr *ir, TlTypeKind k);       /* VOID, INDEX, PTR, RSRC, LDS */
/* TILE, SHARED, LOCAL, VEC */
TlType tl_type_shaped(TlIr *ir, TlTypeKind k, TlElem e, uint32_t rank, const int64_t *shape);
TlType tl_type_with_elem(TlIr *ir, TlType t, TlElem e); /* same kind and shape; INDEX becomes a scalar */
int64_t tl_numel(const TlTypeInfo *i);                  /* 1 for scalars; 0 for BUF and the opaque kinds */
/* Element kind of a type as arithmetic sees it: INDEX counts as TL_ELEM_I64. NONE for PTR, BUF, ... */
TlElem tl_type_elem(const TlTypeInfo *i);
static inline const TlTypeInfo *
tl_tinfo(const TlIr *ir, TlType t)
{
    return &ir->types.data[t];
}
void tl_type_print(const TlIr *ir, TlType t, TlText *out);

/* access */
static inline TlOpNode *
tl_opn(const TlIr *ir, TlOp o)
{
    return &ir->ops.data[o];
}
static inline TlValNode *
tl_valn(const TlIr *ir, TlVal v)
{
    return &ir->vals.data[v];
}
static inline TlBlockNode *
tl_blockn(const TlIr *ir, TlBlock b)
{
    return &ir->blocks.data[b];
}
static inline const TlTypeInfo *
tl_vtype(const TlIr *ir, TlVal v)
{
    return &ir->types.data[ir->vals.data[v].type];
}
/* ATTENTION: these pointers move when something is added; keep indices, not pointers, across builder calls.
 */

const TlAttr *tl_attr(const TlIr *ir, TlOp o, const char *key); /* NULL when absent */
int64_t tl_attr_int(const TlIr *ir, TlOp o, const char *key, int64_t absent);
const char *tl_attr_str(const TlIr *ir, TlOp o, const char *key, const char *absent);
bool tl_attr_set_int(TlIr *ir, TlOp o, const char *key, int64_t v);
bool tl_attr_set_str(TlIr *ir, TlOp o, const char *key, const char *v);
bool tl_attr_set_ints(TlIr *ir, TlOp o, const char *key, const int64_t *v, uint32_t n);
bool tl_attr_set_float(TlIr *ir, TlOp o, const char *key, double v);
void tl_attr_remove(TlIr *ir, TlOp o, const char *key);
const TlAttr *tl_kattr(const TlIr *ir, TlKernelId k, const char *key); /* NULL when absent */
int64_t tl_kattr_int(const TlIr *ir, TlKernelId k, const char *key, int64_t absent);
const char *tl_kattr_str(const TlIr *ir, TlKernelId k, const char *key, const char *absent);
bool tl_kattr_set_int(TlIr *ir, TlKernelId k, const char *key, int64_t v);
bool tl_kattr_set_str(TlIr *ir, TlKernelId k, const char *key, const char *v);
bool tl_kattr_set_float(TlIr *ir, TlKernelId k, const char *key, double v);
bool tl_kattr_set_ints(TlIr *ir, TlKernelId k, const char *key, const int64_t *v, uint32_t n);
void tl_kattr_remove(TlIr *ir, TlKernelId k, const char *key);

/* ---- builder ------------------------------------------------------------------------------------ */

typedef struct TlBuilder { /* insertion point */
    TlIr *ir;
    TlBlock block;
    TlOp before; /* insert before this operation; 0 = at the end of block */
    TlLoc loc;
} TlBuilder;

static inline TlKernel *
tl_kerneln(const TlIr *ir, TlKernelId k)
{
    return &ir->kernels.data[k];
}
TlKernelId tl_kernel_new(TlIr *ir, const char *name, TlLevel level);
TlKernelId tl_kernel_by_name(const TlIr *ir, const char *name); /* 0 when there is none */
/* A new region of parent (0: not attached; the caller sets the kernel's body). 0 when parent is full. */
TlBlock tl_block_new(TlIr *ir, TlKernelId k, TlOp parent);
TlVal tl_block_arg(TlIr *ir, TlBlock b, TlType t, const char *name);
/* The general form. Result types are given (nres = ntypes); attributes and regions are added afterwards,
 * before anything relies on them. 0 on failure. */
TlOp tl_build(TlBuilder *b, TlOpcode code, const TlVal *in, uint32_t nin, const TlType *types,
              uint32_t ntypes);
/* One result, type by the row's type rule (diagnostic and 0 when the operands do not fit it). */
TlVal tl_build1(TlBuilder *b, TlOpcode code, uint32_t nin, ...); /* TlVal... */
TlVal tl_build1t(TlBuilder *b, TlOpcode code, TlType t, uint32_t nin, ...);
TlVal tl_const_int(TlBuilder *b, TlType t, int64_t v); /* index or int scalar; also splat over tile/vec */
TlVal tl_const_float(TlBuilder *b, TlType t, double v);
bool tl_is_const_int(const TlIr *ir, TlVal v, int64_t *out); /* also a splat constant of ints */
bool tl_is_const_float(const TlIr *ir, TlVal v, double *out);
static inline TlVal
tl_result(const TlIr *ir, TlOp o, uint32_t i)
{
    return o ? ir->ops.data[o].res[i] : 0;
}

/* editing */
void tl_op_unlink(TlIr *ir, TlOp o); /* take out of its block, keep */
void tl_op_move_before(TlIr *ir, TlOp o, TlBlock b, TlOp before);
void tl_replace_uses(TlIr *ir, TlKernelId k, TlVal from, TlVal to); /* in the whole kernel */
uint32_t tl_count_uses(const TlIr *ir, TlKernelId k, TlVal v);
bool tl_op_set_in(TlIr *ir, TlOp o, const TlVal *in, uint32_t nin);
/* With regions. val_map: old value -> new value (absent: itself); the results and inner values are added to
 * it. */
TlOp tl_op_clone(TlBuilder *b, TlOp o, TlMap *val_map);

/* A hint; characters that names cannot have are dropped. */
void tl_val_set_name(TlIr *ir, TlVal v, const char *name);
TlOp tl_block_terminator(const TlIr *ir, TlBlock b); /* last operation if it is a terminator, else 0 */
TlKernelId tl_op_kernel(const TlIr *ir, TlOp o);
bool tl_op_inside(const TlIr *ir, TlOp o, TlOp parent); /* o is parent or stands somewhere in its regions */

/* walking: calls fn for every operation of the kernel in textual order, parents before children. fn may
 * unlink its operation or insert before it; it may not unlink the next one. false from fn stops the walk. */
typedef bool (*TlWalkFn)(TlIr *ir, TlOp o, void *self);
bool tl_walk(TlIr *ir, TlBlock b, TlWalkFn fn, void *self);

/* ---- op facts ----------------------------------------------------------------------------------- */

/* traits of a row */
enum {
    TL_T_PURE = 1,        /* no memory effect: may be CSEd, moved, dropped */
    TL_T_ELEMENTWISE = 2, /* works element by element on scalars, tiles and vecs of one shape */
    TL_T_COMMUTES = 4,
    TL_T_TERMINATOR = 8,
    TL_T_READS = 16, /* reads memory */
    TL_T_WRITES = 32,
    TL_T_TILE_ONLY = 64, /* allowed at level tile only / thread only */
    TL_T_THREAD_ONLY = 128,
    TL_T_CONTROL = 256, /* has regions or ends control flow */
    TL_T_BARRIER = 512
};
typedef enum TlRule {
    TL_RULE_same,
    TL_RULE_cmp,
    TL_RULE_float,
    TL_RULE_int,
    TL_RULE_sel,
    TL_RULE_cast,
    TL_RULE_given
} TlRule;
typedef struct TlOpRow {
    const char *name;
    int8_t nin_min, nin_max; /* max -1: any */
    int8_t nres;             /* -1: any */
    int8_t nregion;
    const char *rule; /* type rule, see ops.def */
    TlRule rule_id;
    uint32_t traits;
    const char *attrs; /* "key:kind key?:kind": kind i s f I(nts); ? = optional */
    const char *llvm;  /* 1:1 LLVM builder, read by codegen; "" = its own function */
    const char *doc;
} TlOpRow;
const TlOpRow *tl_op_row(TlOpcode c);
TlOpcode tl_op_by_name(const char *name, size_t n); /* TL_OP_NONE when unknown */
/* Result type by the row's rule; a located TYPE diagnostic and 0 when the operands do not fit. 0 without one
 * for rule "given" and "cast". */
TlType tl_infer(TlIr *ir, TlOpcode c, const TlVal *in, uint32_t nin, TlLoc loc);
/* May be dropped, moved and merged: pure by its row, no regions, no operand is memory that it reads (dot of
 * shared). */
bool tl_op_is_pure(const TlIr *ir, TlOp o);

/* ---- numbers: one meaning for the folder, the evaluator and the tests --------------------------- */

/* By element: floats in f, everything else in i (sign- or zero-extended; u64 as its bits). */
typedef union TlNum {
    int64_t i;
    double f;
} TlNum;
int64_t tl_int_wrap(TlElem e, int64_t v);  /* to the width of e, extended by e's sign; i1: v & 1 */
double tl_float_round(TlElem e, double v); /* to nearest even in e, overflow as the format says */
uint64_t tl_num_encode(TlElem e, TlNum n); /* bits in memory */
TlNum tl_num_decode(TlElem e, uint64_t bits);
TlNum tl_num_cast(TlElem from, TlElem to, TlNum n);
/* One element of a row with a fold expression; elem = the operands' element (for select: of the values),
 * INDEX = I64. false: not foldable (no expression, division by 0). */
bool tl_fold(TlOpcode c, TlElem elem, const TlNum *in, TlNum *out);

/* ---- text, verification, evaluation ------------------------------------------------------------- */

void tl_print(const TlIr *ir, TlText *out, bool with_locs); /* all kernels */
void tl_print_kernel(const TlIr *ir, TlKernelId k, TlText *out, bool with_locs);
/* Adds the kernels of the text. filename (may be NULL): names the text in diagnostics and becomes the
 * location of operations that carry no loc(...). */
bool tl_parse(TlIr *ir, const char *text, size_t n, const char *filename);
bool tl_verify(TlIr *ir, TlKernelId k, const char *after_pass); /* reports all faults; false if any */

#endif
