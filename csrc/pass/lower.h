/* lower.h - internal to csrc/pass: the lowering of one tile-level kernel to thread level.
 *
 *   lower.c         driver: parameters, scalars, the order of things
 *   lower_flow.c    regions, loops, branches; carried tiles and their extents
 *   lower_emit.c    building thread-level scalars: folding, value numbering in the entry block
 *   lower_affine.c  index expressions as sums, what can be proven of them
 *   lower_plan.c    layouts: what each tile value is asked for, dot plans, LDS maps
 *   lower_plan_dot.c  which way memory runs, dot plans
 *   lower_mem.c     global memory: addresses, masks, vector widths
 *   lower_lds.c     LDS: addresses, register transposition, tile copies
 *   lower_tile.c    element-wise and structural tile operations
 *   lower_dot.c     fragments, matrix instructions, the pipelined loop
 */
#ifndef TL_PASS_LOWER_H
#define TL_PASS_LOWER_H

#include "ir/ir.h"
#include "layout/layout.h"
#include "pass/pass.h"

enum { LW_MAX_RANK = 4, LW_MAX_TERMS = 8, LW_MAX_LAYOUTS = 4 };

/* A sum: c + sum coef * sym, sym a source value that is no sum itself. */
typedef struct LwAff {
    bool ok;
    uint32_t n;
    TlVal sym[LW_MAX_TERMS];
    int64_t coef[LW_MAX_TERMS];
    int64_t c;
} LwAff;

/* Where a tile's elements are valid: per dim lo <= i < hi, thread-level i32 scalars; 0 = no bound on that
 * side. when: an i1, the same in all lanes; where it is false (a plain index lies outside) nothing is valid;
 * 0 = always true. */
typedef struct LwExt {
    TlVal lo[LW_MAX_RANK], hi[LW_MAX_RANK];
    TlVal when;
} LwExt;

/* A tile as one thread holds it: 2^(register bits) elements in `nchunk` vecs of `chunk` elements. */
typedef struct LwTile {
    TlLayout lay;
    TlElem elem;
    uint32_t chunk, nchunk;
    TlVal *v;
    TlBlock block; /* where it was made: of use there and in the regions inside; 0: everywhere */
} LwTile;

/* A tile value of the source and what it was asked for. */
typedef struct LwVal {
    TlVal src;
    uint32_t nlay;
    TlLayout lay[LW_MAX_LAYOUTS];
    LwTile *tile[LW_MAX_LAYOUTS]; /* once emitted */
    LwExt ext;
    bool ext_known;
    bool anchored;
    TlLayout anchor;
    bool reduce_set; /* the layout that a reduction over it wants */
    TlLayout reduce_lay;
} LwVal;

typedef struct LwLdsAcc {
    TlOp op;
    uint32_t operand; /* of a dot: 0 = A, 1 = B; 0 otherwise */
    TlLayout lay;     /* in access order of registers */
    TlAddrSplit split;
} LwLdsAcc;

typedef struct LwShared { /* one LDS buffer */
    TlVal src;
    uint32_t rank;
    uint32_t shape[LW_MAX_RANK]; /* padded to powers of two */
    TlElem elem;
    bool boolean;    /* holds i1 as bytes */
    uint32_t offset; /* in the workgroup's LDS */
    uint32_t minor;
    bool solved;
    TlLdsMap map;
    TL_VEC(LwLdsAcc) acc;
    LwExt ext;    /* of the last whole store; part of the value that a read gives */
    uint32_t bit; /* in LwSync */
} LwShared;

typedef struct LwDotPlan {
    TlOp op;
    TlDot d;
    TlLayout frag[2]; /* A, B over the whole tile, registers in access order (dims d0, d1 of the operand) */
    uint8_t perm[2][16]; /* access order -> dot order of register bits */
    TlLayout c;
} LwDotPlan;

/* Accesses of this program that no barrier has followed yet. LDS: a bit a shared buffer, LW_SCRATCH_BIT for
 * the scratch; global memory: a bit a parameter (the last bit for all from there on), which only a barrier of
 * scope "all" clears. */
typedef struct LwSync {
    uint64_t read, written, gread, gwritten;
} LwSync;
enum { LW_SCRATCH_BIT = 63, LW_LAST_PARAM_BIT = 63 };
static inline LwSync
lw_sync_union(LwSync a, LwSync b)
{
    return (LwSync){a.read | b.read, a.written | b.written, a.gread | b.gread, a.gwritten | b.gwritten};
}

typedef struct LwParam {
    TlVal src;
    bool is_buf;
    TlVal ptr;
    TlVal dim[TL_MAX_RANK], stride[TL_MAX_RANK]; /* i64 */
    TlVal scalar;
    TlVal bytes; /* i64: extent from element [0,..,0] */
} LwParam;

typedef struct Lw {
    TlIr *ir;
    TlDiag *diag;
    TlArena *arena;
    const TlTarget *tgt;
    TlKernelId src, dst;
    uint32_t waves, wave_bits, lane_bits;
    TlBuilder b; /* where things are emitted */
    TlBlock entry;
    TlOp anchor; /* entry-block values go before this operation; 0: at the end */
    TlMap scal;  /* source scalar -> thread value */
    TlMap vals;  /* source tile value -> index into tiles */
    TL_VEC(LwVal) tiles;
    TlMap shareds; /* source shared value -> index into shared */
    TlMap stored;  /* source shared value -> the first value stored into it */
    TL_VEC(LwShared) shared;
    TL_VEC(LwDotPlan) dots;
    TL_VEC(LwParam) params;
    TlMap numbering;  /* hash -> value of entry block */
    TlMap depth;      /* thread value -> 1 when not of the entry block */
    TlMap ivs;        /* source induction variable -> the `for` operation */
    uint32_t anchors; /* how many values have one */
    uint32_t lds_bytes, scratch_bytes;
    TlVal lane, wave, tid;
    LwSync sync;
    TlVal positive; /* a size that is taken to be at least 1 while something is proven */
    bool grid_known;
    int64_t kgrid[3][3]; /* inferred grid: param, axis, C */
    uint32_t ngrid;
} Lw;

static inline TlLoc
lw_loc(const Lw *lw, TlOp o)
{
    return tl_opn(lw->ir, o)->loc;
}
bool lw_fail(Lw *lw, TlOp at, TlDiagCode code, const char *fmt, ...) TL_PRINTF(4, 5);

/* ---- lower_emit.c */
TlType lw_ty(Lw *lw, TlElem e);
TlVal lw_int(Lw *lw, TlElem e, int64_t v);
bool lw_is_const(const Lw *lw, TlVal v, int64_t *out);
/* Integer arithmetic of one type with folding; goes to the entry block when its operands are there. */
TlVal lw_bin(Lw *lw, TlOpcode c, TlVal a, TlVal b);
TlVal lw_sel(Lw *lw, TlVal cond, TlVal a, TlVal b);
TlVal lw_cast(Lw *lw, TlVal v, TlElem to);
/* A scalar that is the same in all lanes, said so: branches on it are scalar branches. */
TlVal lw_uniform(Lw *lw, TlVal v);
/* Any pure operation with one result (numbered and hoisted like the above). attr keys may be NULL. */
TlVal lw_pure(Lw *lw, TlOpcode c, TlType t, const TlVal *in, uint32_t n, const char *key, int64_t value);
/* An operation at the current place. */
TlOp lw_op(Lw *lw, TlOpcode c, const TlVal *in, uint32_t n, const TlType *types, uint32_t nt);
TlVal lw_op1(Lw *lw, TlOpcode c, TlType t, const TlVal *in, uint32_t n);
bool lw_is_entry(const Lw *lw, TlVal v);
void lw_mark_inner(Lw *lw, TlVal v);
/* Coordinate of `out` that lane and wave contribute: i32. */
TlVal lw_lane_coord(Lw *lw, const TlLayout *l, TlDim out);
TlVal lw_extract(Lw *lw, TlVal vec, uint32_t index, uint32_t n); /* n = 0: a scalar; else a vec of n */
TlVal lw_concat(Lw *lw, TlElem e, const TlVal *parts, uint32_t n, uint32_t total);
uint32_t lw_vec_len(const Lw *lw, TlVal v); /* 0: a scalar */

/* ---- lower_affine.c */
LwAff lw_aff(Lw *lw, TlVal src);
LwAff lw_aff_sub(const LwAff *a, const LwAff *b);
bool lw_aff_min(Lw *lw, const LwAff *a, int64_t *out); /* a proven lower bound */
bool lw_aff_max(Lw *lw, const LwAff *a, int64_t *out);
/* What is proven of 0 <= a < the size of dimension bd: nothing, that it holds if the size is not 0, that it
 * holds. */
typedef enum LwProof { LW_MAYBE, LW_IF_ANY, LW_SURE } LwProof;
LwProof lw_aff_inside(Lw *lw, const LwAff *a, const LwParam *p, uint32_t bd);
int64_t lw_aff_div(Lw *lw, const LwAff *a); /* the value is a multiple of this (>= 1) */
int64_t lw_aff_coef(const LwAff *a, TlVal sym);
TlVal lw_aff_emit(Lw *lw, const LwAff *a, TlVal skip); /* i64 */
TlVal lw_scalar(Lw *lw, TlVal src);                    /* thread value of a source scalar; 0 on failure */

/* ---- lower_plan.c */
bool lw_plan(Lw *lw);
bool lw_registers_fit(Lw *lw); /* lower_regs.c: false with an error when tiles need too many */
LwVal *lw_val(Lw *lw, TlVal src);
LwShared *lw_shared(Lw *lw, TlVal src);
LwDotPlan *lw_dot_plan(Lw *lw, TlOp op);
LwLdsAcc *lw_lds_acc(Lw *lw, LwShared *s, TlOp op, uint32_t operand);
bool lw_lds_solve(Lw *lw, LwShared *s);
uint32_t lw_pow2_bits(int64_t n); /* bits of the next power of two */
/* layout of the operand of a structural op (broadcast, expand_dims, trans, reshape) that gives `l` */
bool lw_dim_map(Lw *lw, TlOp op, int from[LW_MAX_RANK]);
bool lw_layout_through(Lw *lw, TlOp op, const TlLayout *l, TlLayout *out);
bool lw_blocked_for(Lw *lw, TlType tile, uint32_t minor, uint32_t elem_bytes, uint32_t rows, TlLayout *out);

/* ---- lower_plan_dot.c */
bool lw_plan_dots(Lw *lw);
bool lw_is_tile(const TlIr *ir, TlVal v);
uint32_t lw_mem_minor(Lw *lw, TlOp access); /* tile dim with unit stride in memory */
/* The dimension of a tile value along which its memory (global or, behind it, shared) runs. */
uint32_t lw_value_minor(Lw *lw, TlVal v);

/* ---- lower_mem.c */
typedef struct LwRegion { /* an `if` being built around tiles; op 0: no condition, nothing to do */
    TlOp op, anchor;
    TlBuilder save;
    LwSync sync; /* before */
    TlVal *old;  /* chunk values before */
    uint32_t n;
} LwRegion;
typedef struct LwGlobal { /* a global access made ready */
    TlVal rsrc;
    uint32_t vec;  /* elements an access */
    uint32_t nacc; /* distinct accesses */
    TlVal *voff;
    uint32_t *imm;
    uint32_t *of; /* register vector -> access (free register bits share one) */
    uint32_t nvec;
    bool boolean;       /* i1 as bytes: elem is u8 */
    bool wide;          /* 64-bit addresses: addr and cond instead of rsrc, voff and imm */
    TlVal *addr, *cond; /* ptr of each access; i1 or 0 = always */
    TlElem elem;
    TlLayout lay;
    int64_t iv_stride; /* bytes the address moves per unit of the induction variable; -1: not constant */
    TlVal iv_stride_v; /* i32 */
} LwGlobal;
typedef struct LwMemOpts {
    TlVal iv;        /* source induction variable that goes to soffset; 0 = none */
    uint32_t inside; /* bit t: tile dim t is known to lie inside */
    bool loose;      /* elements outside may hold anything (of the same tensor) */
    bool even;       /* no access can reach the last elements of the tensor by a part of a dword */
} LwMemOpts;
bool lw_global(Lw *lw, TlOp op, const TlLayout *l, const LwMemOpts *o, LwGlobal *g);
LwTile *lw_global_load(Lw *lw, const LwGlobal *g, TlVal soff, TlOp op);
TlVal lw_global_load_one(Lw *lw, const LwGlobal *g, TlVal soff, uint32_t access);
bool lw_global_store_one(Lw *lw, const LwGlobal *g, uint32_t access, TlVal v);
/* Begins an `if` without results at the current place: what follows goes into it. */
bool lw_when_begin(Lw *lw, TlVal cond, LwRegion *r);
bool lw_when_end(Lw *lw, LwRegion *r);
bool lw_store_global(Lw *lw, TlOp op);
bool lw_scalar_load(Lw *lw, TlOp op);
/* Extent of what a load gives; dims in the mask `skip` are taken to be inside. */
bool lw_access_ext(Lw *lw, TlOp op, uint32_t skip, LwExt *ext);
TlVal lw_access_when(Lw *lw, TlOp op);   /* i1: the plain indices of an access lie inside; 0: they do */
TlVal lw_both(Lw *lw, TlVal a, TlVal b); /* a and b of conditions that may be 0 = true */
bool lw_order_memory(Lw *lw, TlOp op);
bool lw_access_dim(const TlIr *ir, TlOp op, uint32_t t, uint32_t *bd, uint32_t *operand, char *kind);
LwParam *lw_param(Lw *lw, TlVal buf);
TlVal lw_owner(Lw *lw, const TlLayout *l);

/* ---- lower_lds.c */
LwTile *lw_tile_new(Lw *lw, const TlLayout *l, TlElem e, uint32_t chunk);
/* The same registers in another register order: new bit i = old bit perm[i]; vectors of `chunk`. */
LwTile *lw_tile_permute(Lw *lw, const LwTile *t, const uint8_t *perm, uint32_t chunk);
/* n registers of t from new register `start` under perm, as one vec. */
TlVal lw_tile_chunk_at(Lw *lw, const LwTile *t, const uint8_t *perm, uint32_t start, uint32_t n);
LwTile *lw_tile_rechunk(Lw *lw, const LwTile *t, uint32_t chunk);
TlVal lw_tile_elem(Lw *lw, const LwTile *t, uint32_t reg);
/* What of an offset in LDS an instruction takes (16 bits); the rest goes to the address. */
uint32_t lw_lds_imm(Lw *lw, TlVal *addr, uint32_t offset);
bool lw_lds_write(Lw *lw, LwShared *s, const LwLdsAcc *a,
                  const LwTile *t); /* t in the access's register order */
TlVal lw_lds_read_one(Lw *lw, LwShared *s, const LwLdsAcc *a, uint32_t instr);
LwTile *lw_lds_read(Lw *lw, LwShared *s, const LwLdsAcc *a);
bool lw_lds_write_one(Lw *lw, LwShared *s, const LwLdsAcc *a, uint32_t instr, TlVal v);
bool lw_store_shared(Lw *lw, TlOp op);

/* ---- lower_tile.c */
LwTile *lw_tile(Lw *lw, TlVal src, const TlLayout *l); /* emits on demand; NULL on failure */
LwTile *lw_tile_chunked(Lw *lw, TlVal src, const TlLayout *l, uint32_t chunk);
bool lw_ext(Lw *lw, TlVal src, LwExt *out);
void lw_ext_meet(Lw *lw, LwExt *a, const LwExt *b); /* the intersection, into a */
void lw_ext_join(Lw *lw, LwExt *a, const LwExt *b); /* the smallest box around both, into a */
/* A tile that dots add to: nothing added yet (a constant, perhaps carried by a loop), a sum of dots that
 * started so, anything else. */
typedef enum LwSum { LW_SUM_NONE, LW_SUM_DOTS, LW_SUM_OTHER } LwSum;
LwSum lw_sum_of(Lw *lw, TlVal v, int depth);
bool lw_emit_loads(Lw *lw, TlOp op); /* a load at its place in the program */
LwTile *lw_masked_zero(Lw *lw, LwTile *t, const LwExt *e);
bool lw_set_tile(Lw *lw, TlVal src, LwTile *t);

/* i1: register reg of the layout is inside e for this lane; 0: always. */
TlVal lw_inside(Lw *lw, const TlLayout *l, uint32_t reg, const LwExt *e);

/* ---- lower_convert.c, lower_reduce.c */
uint32_t lw_scratch(Lw *lw, uint32_t n);
bool lw_barrier(Lw *lw);
bool lw_barrier_all(Lw *lw); /* of global memory too */
uint64_t lw_param_bit(Lw *lw, TlVal buf);
/* Before LDS of these bits is read or written: a barrier if an access of another wave may still be on its
 * way. */
bool lw_sync_read(Lw *lw, uint64_t bits);
bool lw_sync_write(Lw *lw, uint64_t bits);
/* At the start of a loop's body: what the turn before may have left. */
void lw_sync_loop(Lw *lw, TlOp loop);
LwTile *lw_tile_cast(Lw *lw, const LwTile *t, TlElem to);
LwTile *lw_convert(Lw *lw, const LwTile *t, const TlLayout *dst, TlOp at);
LwTile *lw_tile_cast(Lw *lw, const LwTile *t, TlElem to); /* NULL gives NULL */
/* 1-bit values take a byte each in memory (0 or 1; any other byte reads as true). */
static inline TlElem
lw_mem_elem(TlElem e)
{
    return e == TL_ELEM_I1 ? TL_ELEM_U8 : e;
}
bool lw_reduce(Lw *lw, TlOp op);

/* ---- lower_dot.c */
LwTile *lw_dot(Lw *lw, TlOp op);
bool lw_loop_pipelines(Lw *lw, TlOp loop);
bool lw_pipelined_loop(Lw *lw, TlOp loop);

uint32_t lw_frag_reg(const LwDotPlan *p, uint32_t f, uint32_t mt, uint32_t nt, uint32_t ks, uint32_t *count);
/* `count` elements of an operand from register reg on, as a matrix instruction takes them. */
TlVal lw_frag_value(Lw *lw, const LwTile *t, uint32_t reg, uint32_t count);
TlVal lw_mma(Lw *lw, const LwDotPlan *p, TlVal a, TlVal b, TlVal c);

/* ---- lower_flow.c */
bool lw_if_begin(Lw *lw, TlOp at, TlVal cond, LwTile **tiles, uint32_t n, LwRegion *r);
bool lw_if_end(Lw *lw, LwRegion *r, LwTile **tiles, uint32_t n);
bool lw_loop_exts(Lw *lw, TlOp loop, TlOp thread);
typedef struct LwLoop { /* a `for` whose body is being built */
    TlOp op, anchor;
    TlBuilder save;
    TlVal iv, *args; /* args: the carried values in the body */
} LwLoop;
/* Makes a `for` for source loop `loop` and goes into its body. in: 3 bounds, then n carried values. */
bool lw_loop_begin(Lw *lw, TlOp loop, const TlVal *in, uint32_t n, const char *iv, LwLoop *l);
void lw_loop_end(Lw *lw, const LwLoop *l); /* back to where the loop stands */
/* The loop as it stands, from lb to ub (i64); init: carried tiles to start from (NULL: the operation's own).
 */
bool lw_plain_for(Lw *lw, TlOp loop, TlVal lb, TlVal ub, LwTile **init);
bool lw_lower_for(Lw *lw, TlOp op);
bool lw_lower_if(Lw *lw, TlOp op);
bool lw_lower_while(Lw *lw, TlOp op);

/* ---- lower.c */
bool lw_block(Lw *lw, TlBlock src); /* all operations of a source block but its terminator */

#endif
