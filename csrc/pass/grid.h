/* grid.h - internal to csrc/pass: grid loops become tile programs.
 *
 *   grid_loops.c    the pass: what to do with the kernel's loops
 *   grid_affine.c   index expressions as sums of loop axes; what can be proven of them
 *   grid_deps.c     statements, their parallel axes, dependences, the axes that programs divide
 *   grid_dot.c      contractions: recognition and their loop
 *   grid_emit.c     values, loads and stores over a space of tiles
 *   grid_size.c     what is a contraction, tile sizes, program ids, the launch grid
 *   grid_plan.c     the statements one after the other
 *   grid_local.c    locals that an inner loop reduces into
 *   grid_serial.c   everything else: one program, element after element, in Python's order
 *
 * A statement is a set_element or acc_element with the loops around it. Its parallel axes are those that
 * index what it writes, the others are reduced over. All statements of the kernel share the group's axes:
 * each program computes one block of them, statement after statement. What a statement writes is handed on to
 * the next as a tile.
 */
#ifndef TL_PASS_GRID_H
#define TL_PASS_GRID_H

#include "ir/ir.h"
#include "pass/pass.h"

enum {
    GR_MAX_AXES = 24, /* loops of a kernel, all together */
    GR_MAX_TERMS = 4,
    GR_MAX_GROUP = 6, /* axes that programs divide */
    GR_MAX_TILE = 4,  /* dims of a tile */
    GR_MAX_FACTORS = 8,
    GR_MAX_GUARDS = 6,
    GR_MAX_LOCALS = 8
};

/* Masks of axes; the bits above them say what else a value depends on. */
enum {
    GR_CHOICE = 1 << 28, /* a branch */
    GR_READS = 1 << 29,  /* an element of a tensor */
    GR_OPAQUE = 1 << 30, /* something that has no tile form (a value carried by a loop, ...) */
    GR_AXES = (1 << GR_MAX_AXES) - 1
};

typedef struct GrAxis {
    TlVal arg, extent;
} GrAxis;

/* c + sum coef * axis + sum icoef * inv; inv: index values that no loop changes. */
typedef struct GrAff {
    bool ok;
    uint32_t n, ninv;
    uint32_t axis[GR_MAX_TERMS];
    int64_t coef[GR_MAX_TERMS];
    TlVal inv[GR_MAX_TERMS];
    int64_t icoef[GR_MAX_TERMS];
    int64_t c;
} GrAff;

typedef struct GrAccess {
    TlOp op;
    TlVal buf;
    uint32_t rank, first; /* operand number of the first index */
    GrAff idx[TL_MAX_RANK];
} GrAccess;

typedef struct GrDot { /* sum over k of side A [M, K] times side B [K, N] */
    bool found, negate;
    uint32_t m, n, k; /* the statement's axes */
    int64_t cap[2], kcap;
    TlElem elem; /* of the operands; f32 when something is computed before the product */
    uint32_t nf[2];
    TlVal factor[2][GR_MAX_FACTORS];
    bool plain[2]; /* the one factor is an element itself (under casts) */
} GrDot;

typedef struct GrStmt {
    TlOp op, nest; /* nest: the outermost grid operation */
    bool acc;
    TlVal value;
    uint32_t nguard; /* conditions of the branches around it */
    TlVal guard[GR_MAX_GUARDS];
    bool negated[GR_MAX_GUARDS];
    uint32_t
        nlocal; /* reduced locals that its values come from, in the order in which they need each other */
    TlVal local[GR_MAX_LOCALS];
    uint32_t axes, par, red;              /* masks */
    uint32_t common;                      /* of par: what programs may divide */
    uint32_t npar, par_list[TL_MAX_RANK]; /* in the order of the written dims */
    GrAccess w;
    TL_VEC(GrAccess) reads;
    bool mapped;
    uint32_t map[GR_MAX_GROUP]; /* group axis -> this statement's axis */
    uint32_t inner;             /* parallel axes beyond the group's: looped over inside the program */
    int64_t cap[TL_MAX_RANK];   /* of par_list: tile sizes of the inner ones, 0 = single indices */
    bool row;                   /* a reduced axis is tiled: partial results a position, joined at the end */
    uint32_t row_axis;
    int64_t row_cap;
    GrDot dot;
} GrStmt;

typedef struct GrGroupAxis {
    TlVal extent;
    int64_t cap;
    bool tile;    /* a tile dim; else one index a program */
    TlVal origin; /* first index of this program */
} GrGroupAxis;

typedef struct GrForward { /* what was last written to buf: a tile over the group's tile dims */
    TlVal buf;
    uint32_t stmt;
    TlVal tile;
    bool full;    /* valid wherever the statement's loops go */
    bool pending; /* not stored yet */
} GrForward;

typedef struct GrHoisted { /* a local once it is computed: a tile over these axes' dims (or a scalar) */
    TlVal local, tile;
    uint32_t n, axis[GR_MAX_TILE];
} GrHoisted;

typedef enum GrVerdict { GR_TILES, GR_SERIAL, GR_REFUSED } GrVerdict;

typedef struct Gr {
    TlIr *ir;
    TlDiag *diag;
    TlArena *arena;
    TlKernelId k;
    TlBuilder b;
    TlMap axis_of, masks;
    uint32_t naxes;
    GrAxis axis[GR_MAX_AXES];
    TL_VEC(GrStmt) stmts;
    uint32_t ngroup;
    GrGroupAxis group[GR_MAX_GROUP];
    bool has_dot;
    uint32_t m, n; /* group axes of dots */
    bool single;   /* one program for all: no axes are common */
    bool split;    /* several kernels would help */
    TlOp single_at;
    TL_VEC(GrForward) fwd;
    TL_VEC(GrHoisted) hoisted;
    TL_VEC(TlOp) scalar_loads; /* around the loops */
    bool serial;
    const char *why; /* serial: the reason and its place */
    TlLoc why_loc;
} Gr;

/* Tiles being computed: their dims, and what each axis stands for (a tile dim: its first index). */
typedef struct GrSpace {
    uint32_t stmt;
    uint32_t n;
    uint32_t axis[GR_MAX_TILE];
    int64_t cap[GR_MAX_TILE];
    bool
        bounded[GR_MAX_TILE]; /* loads end with the axis: nothing else keeps what lies behind from counting */
    TlVal sub[GR_MAX_AXES];
    TlMap memo;
} GrSpace;

bool gr_fail(Gr *g, TlLoc loc, TlDiagCode code, const char *fmt, ...) TL_PRINTF(4, 5);
bool gr_serial(Gr *g, TlOp at, const char *why); /* notes that the kernel must run serially; returns false */
const char *gr_name(const Gr *g, TlVal v);

/* ---- grid_affine.c */
uint32_t gr_mask(Gr *g, TlVal v);
TlVal gr_branch_value(const Gr *g, TlVal v, uint32_t r);
bool gr_outside(const Gr *g, TlVal v); /* defined before all loops */
GrAff gr_aff(Gr *g, TlVal v);
bool gr_aff_equal(const GrAff *a, const GrStmt *s, const GrAff *b, const GrStmt *t, uint32_t ngroup);
uint32_t gr_aff_axes(const GrAff *a);
int64_t gr_aff_coef(const GrAff *a, uint32_t axis);
bool gr_const(const Gr *g, TlVal v, int64_t *out); /* also a dim that the type knows */
bool gr_is_dim(Gr *g, TlVal v, TlVal buf, uint32_t d);
bool gr_same_index(Gr *g, TlVal a, TlVal b);
bool gr_in_range(Gr *g, const GrAff *a, TlVal buf, uint32_t d); /* for every turn of the loops */
bool gr_covers(Gr *g, uint32_t axis, const GrAff *a, TlVal buf,
               uint32_t d); /* the axis runs to the end of dim d */
int64_t gr_param(const Gr *g, TlVal v);

/* ---- grid_local.c */
/* A `for` from 0 by 1 that only joins values into its carried ones. */
bool gr_local_fits(Gr *g, TlOp loop);
TlVal gr_local_value(const Gr *g, TlVal v); /* what is joined in */
TlVal gr_local_init(const Gr *g, TlVal v);
uint32_t gr_local_axis(const Gr *g, TlVal v);
TlVal gr_local(Gr *g, GrSpace *sp, TlVal v);
/* Computes those of a statement that hang on no axis still open, so that loops inside need not. */
bool gr_locals_ahead(Gr *g, GrSpace *sp);

/* ---- grid_deps.c */
bool gr_collect(Gr *g);
GrVerdict gr_analyse(Gr *g);
GrAccess *gr_read_of(Gr *g, GrStmt *s, TlOp element);

/* ---- grid_dot.c */
bool gr_dot_match(Gr *g, GrStmt *s, uint32_t m, uint32_t n);
TlVal gr_dot_emit(Gr *g, const GrSpace *at);

/* ---- grid_emit.c */
TlVal gr_ix(Gr *g, int64_t v);
TlVal gr_ix_bin(Gr *g, TlOpcode c, TlVal a, TlVal b);
bool gr_space(Gr *g, uint32_t stmt, GrSpace *sp); /* the group's tile dims */
TlVal gr_index(Gr *g, const GrSpace *sp, TlVal v);
TlVal gr_value(Gr *g, GrSpace *sp, TlVal v); /* a tile of the whole space, or a scalar */
TlVal gr_guarded(Gr *g, GrSpace *sp, TlVal v, TlVal other);
TlVal gr_as_tile(Gr *g, const GrSpace *sp, TlVal v);
TlVal gr_ew(Gr *g, const GrSpace *sp, TlOpcode c, TlElem res, const TlVal *in, uint32_t n);
TlVal gr_cast(Gr *g, const GrSpace *sp, TlVal v, TlElem to);
TlVal gr_load(Gr *g, GrSpace *sp, const GrAccess *a);
bool gr_store(Gr *g, const GrSpace *sp, const GrAccess *w, TlVal tile, TlLoc loc);
TlVal gr_identity(Gr *g, TlElem e, const char *kind);
TlOpcode gr_combiner(const char *kind);
TlVal gr_place(Gr *g, const GrSpace *sp, TlVal v, const uint32_t *dim, uint32_t n); /* of the space's dims */
uint32_t gr_dim_of(const GrSpace *sp, uint32_t axis);                               /* sp->n: none */
TlVal gr_fill(Gr *g, TlVal v, TlVal with); /* where a tile is invalid; scalars stay */
TlVal gr_old(Gr *g, GrSpace *sp);          /* what the statement's target holds before it */
typedef struct GrFor {
    TlOp op;
    TlBuilder outer;
    TlVal iv;
} GrFor;
bool gr_for_begin(Gr *g, TlVal lb, TlVal ub, TlVal step, TlVal *carried, uint32_t n, GrFor *f);
bool gr_for_end(Gr *g, const GrFor *f, TlVal *carried, uint32_t n);
bool gr_all_in_range(Gr *g, const GrStmt *s, uint32_t axes); /* dims indexed by these axes */

/* ---- grid_size.c */
bool gr_size(Gr *g);
bool gr_runs_along(Gr *g, const GrStmt *s, uint32_t axis);
int64_t gr_cap_for(const Gr *g, TlVal extent, int64_t most);
bool gr_programs(Gr *g);

/* ---- grid_plan.c */
/* Emits everything at the builder's place. false with serial set: to be run serially after all. */
bool gr_emit(Gr *g);

/* ---- grid_serial.c */
bool gr_emit_serial(Gr *g);

#endif
