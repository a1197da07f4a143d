/* layout.h - layouts as linear maps over GF(2): register, lane, wave -> tile coordinates -> LDS bytes.
 *
 * A TlLayout maps named input dimensions of power-of-two sizes to named output dimensions of power-of-two
 * sizes. It is linear over XOR: each bit of an input contributes a fixed vector (its basis) of output bits.
 * All of an input (output) is packed into one 64-bit word, the first dimension in the lowest bits, so
 * applying a layout is an XOR of bases. Layouts are plain values: no allocation, no failure but bad arguments
 * (reported as false), no state, thread-safe.
 *
 *   layout.c     the algebra, text form
 *   fragment.c   matrix fragments, whole tiles of fragments, blocked layouts for global memory
 *   lds.c        LDS maps, bank conflicts, the swizzle solver, address splits
 */
#ifndef TL_LAYOUT_H
#define TL_LAYOUT_H

#include "target/target.h"

/* ---- linear layouts ------------------------------------------------------------------------- */

typedef enum TlDim {
    TL_DIM_REG,   /* element index inside a lane (elements, not dwords) */
    TL_DIM_LANE,  /* lane of the wave */
    TL_DIM_WAVE,  /* wave of the workgroup */
    TL_DIM_BLOCK, /* block of a multi-block matrix instruction, or workgroup */
    TL_DIM_0,     /* tile coordinates; TL_DIM_0 + d is dimension d of the tile */
    TL_DIM_1,
    TL_DIM_2,
    TL_DIM_3,
    TL_DIM_OFF, /* linear offset in elements (LDS) */
    TL_DIM__COUNT
} TlDim;

enum { TL_LAYOUT_MAX_DIMS = 6, TL_LAYOUT_MAX_BITS = 40 };

typedef struct TlLayout {
    uint8_t nin, nout;
    uint8_t in_dim[TL_LAYOUT_MAX_DIMS], in_bits[TL_LAYOUT_MAX_DIMS];   /* TlDim, log2 of the size */
    uint8_t out_dim[TL_LAYOUT_MAX_DIMS], out_bits[TL_LAYOUT_MAX_DIMS]; /* TlDim, log2 of the size */
    uint64_t basis[TL_LAYOUT_MAX_BITS]; /* of packed input bit b: packed output */
} TlLayout;

/* Building: start from the empty layout, add dimensions (order is the packing order), then set bases.
 * false: a dimension twice, too many dimensions or bits. */
void tl_layout_init(TlLayout *l);
bool tl_layout_add_in(TlLayout *l, TlDim d, uint32_t bits);
bool tl_layout_add_out(TlLayout *l, TlDim d, uint32_t bits);
/* XORs `value` (a coordinate of `out`) into the basis of bit `bit` of `in`. false: no such dimension, bit or
 * value too large. */
bool tl_layout_set(TlLayout *l, TlDim in, uint32_t bit, TlDim out, uint32_t value);
/* Coordinate of `out` that bit `bit` of `in` contributes; 0 if there is no such dimension. */
uint32_t tl_layout_get(const TlLayout *l, TlDim in, uint32_t bit, TlDim out);

uint32_t tl_layout_total_in(const TlLayout *l);         /* bits of the packed input */
uint32_t tl_layout_total_out(const TlLayout *l);        /* bits of the packed output */
uint32_t tl_layout_in_bits(const TlLayout *l, TlDim d); /* log2 of the size; 0 if absent */
uint32_t tl_layout_out_bits(const TlLayout *l, TlDim d);
bool tl_layout_has_in(const TlLayout *l, TlDim d);
bool tl_layout_has_out(const TlLayout *l, TlDim d);
uint32_t tl_layout_in_shift(const TlLayout *l, TlDim d); /* position of d in the packed word */
uint32_t tl_layout_out_shift(const TlLayout *l, TlDim d);

uint64_t tl_layout_apply(const TlLayout *l, uint64_t packed_in);
/* The coordinate of dimension d in a packed output. */
uint32_t tl_layout_out(const TlLayout *l, uint64_t packed_out, TlDim d);
/* One coordinate of the common form (register, lane, wave) -> tile. */
uint32_t tl_layout_at(const TlLayout *l, uint32_t reg, uint32_t lane, uint32_t wave, TlDim out);

uint32_t tl_layout_rank(const TlLayout *l);
bool tl_layout_is_surjective(const TlLayout *l);
bool tl_layout_is_injective(const TlLayout *l);
/* Input bits (packed) that only repeat what lower input bits already reach: replicas. The others are enough
 * to reach all. */
uint64_t tl_layout_free_bits(const TlLayout *l);
/* Free bits of one input dimension (bit 0 = its lowest bit). */
uint32_t tl_layout_free_of(const TlLayout *l, TlDim in);
/* Same maps: dimensions of size 1 and the order of dimensions do not matter. */
bool tl_layout_equal(const TlLayout *a, const TlLayout *b);

/* out = b after a: x -> b(a(x)). Every output dimension of a must be an input of b and no wider than it. */
bool tl_layout_compose(TlLayout *out, const TlLayout *a, const TlLayout *b);
/* A right inverse: outputs of l -> inputs of l with l(inv(y)) = y; free inputs come out 0. false: l is not
 * surjective. */
bool tl_layout_invert(TlLayout *out, const TlLayout *l);
/* Side by side: bits of b come above those of a in every dimension they share. */
bool tl_layout_product(TlLayout *out, const TlLayout *a, const TlLayout *b);
/* The q with l = product(a, q), if there is one (a is l's low part). */
bool tl_layout_divide(TlLayout *out, const TlLayout *l, const TlLayout *a);
/* Only these input dimensions (bit mask 1 << TlDim); the others fixed at 0. */
bool tl_layout_restrict(TlLayout *out, const TlLayout *l, uint32_t in_mask);
/* Only these output dimensions. */
bool tl_layout_project(TlLayout *out, const TlLayout *l, uint32_t out_mask);
/* Identity of `bits` bits from in to out. */
bool tl_layout_identity(TlLayout *out, TlDim in, TlDim outd, uint32_t bits);
/* Renames output dimension `from` to `to` (transposition of tiles). */
bool tl_layout_rename_out(TlLayout *l, TlDim from, TlDim to);
/* Exchanges the names of two output dimensions. */
bool tl_layout_swap_out(TlLayout *l, TlDim a, TlDim b);

/* Longest run of registers 0..n-1 that hold n consecutive, n-aligned elements along `out`, the same for all
 * lanes, waves and further registers (n a power of two): the widest vector an access along `out` may use. */
uint32_t tl_layout_contiguity(const TlLayout *l, TlDim out);

/* Permutes register bits: new register bit i is old register bit perm[i]. perm has in_bits(REG) entries. */
bool tl_layout_permute_regs(TlLayout *out, const TlLayout *l, const uint8_t *perm);
/* The permutation that brings the register bits whose bases are along `out` (a single output bit of it),
 * lowest first, to the front, others after in their old order: best order for vectors along `out`. */
void tl_layout_regs_along(const TlLayout *l, TlDim out, uint8_t *perm);
/* The permutation that brings register bits with exactly the bases of the first n register bits of `like` to
 * the front (same output dimensions). Returns how many leading bits could be matched (<= n). */
uint32_t tl_layout_regs_like(const TlLayout *l, const TlLayout *like, uint32_t n, uint8_t *perm);
/* Old register index of new register index r under perm. */
uint32_t tl_layout_perm_index(const uint8_t *perm, uint32_t nbits, uint32_t r);

/* What it takes to turn values held as src into values held as dst (both: register, lane, wave -> the same
 * tile). */
typedef enum TlConvert {
    TL_CONVERT_NONE,  /* equal */
    TL_CONVERT_REGS,  /* each lane has what it needs: a renaming of registers, see conv */
    TL_CONVERT_LANES, /* within a wave */
    TL_CONVERT_LDS    /* between waves */
} TlConvert;
/* conv: (register, lane, wave) of dst -> (register, lane, wave) of src that holds the value (from the closest
 * replica: own lane and wave where possible). false when dst asks for an element src does not have, or shapes
 * differ. */
bool tl_layout_convert(TlConvert *kind, TlLayout *conv, const TlLayout *src, const TlLayout *dst);

/* Reduction along `dim`: which register, lane, wave bits walk along dim (mask bits of each). The three masks
 * count only non-free bits. false: some bit moves along dim and another dimension at once, so that a
 * butterfly over single bits is not possible. */
bool tl_layout_reduce_masks(const TlLayout *l, TlDim dim, uint32_t *regs, uint32_t *lanes, uint32_t *waves);
/* The layout of the reduced tile: dim dropped from the outputs (higher dimensions keep their names), register
 * bits in `regs` removed. Lane and wave bits along dim become free: every lane of a butterfly has the result.
 */
bool tl_layout_reduced(TlLayout *out, const TlLayout *l, TlDim dim);

/* Text: "layout(reg: [0,1] [0,2]; lane: [1,0]; wave: -> d0: 2, d1: 4)". One bracket a bit, lowest first, one
 * number an output dimension; sizes after the arrow. */
void tl_layout_print(const TlLayout *l, TlText *out);
/* Reads one layout at the start of s (leading blanks allowed); the number of characters read, 0 = fault, then
 * *why says what (static text) and *at where. */
size_t tl_layout_parse(TlLayout *l, const char *s, size_t n, const char **why, size_t *at);
const char *tl_dim_name(TlDim d); /* reg lane wave block d0 d1 d2 d3 off */

/* ---- fragments of matrix instructions ------------------------------------------------------- */

typedef enum TlFrag { TL_FRAG_A, TL_FRAG_B, TL_FRAG_C } TlFrag; /* C also stands for D */

/* The hardware's own map of one instruction. reg counts elements in the lane's registers from bit 0 of the
 * first dword (16-bit results of gfx1100 in 32-bit registers count dwords). A: -> (d0 = i, d1 = k); B: -> (d0
 * = k, d1 = j); C: -> (d0 = i, d1 = j); multi-block shapes also -> block. false: no map is known for it. */
bool tl_frag_mma(const TlMma *m, TlFrag f, TlLayout *out);

/* A whole tile C[M,N] += A[M,K] B[K,N] done by wave_m x wave_n waves, each on its own contiguous rows and
 * columns; wave index = row of the grid * wave_n + column of the grid. All sizes are powers of two.
 *
 * k order: the k of (step s, matrix instruction u inside the step, lane group h, element e) is composed of
 * the bits [e][u][h][s], lowest first, with kpack = number of instructions u that one run of consecutive k of
 * a lane feeds (1: each alone). A and B use the same, so any kpack gives the same C. mpair/npair: log2 of how
 * many neighbouring rows (columns) go to as many different instructions: with npair = 1 even and odd columns
 * belong to two instructions (column = 2 * column inside the instruction + tile). swapped: the instruction's
 * first operand is B (C is held transposed: a lane holds runs of columns). */
typedef struct TlDot {
    const TlMma *mma;
    uint32_t m, n, k;
    uint32_t wave_m, wave_n;
    uint32_t kpack;        /* 1, 2, 4, ... */
    uint32_t mpair, npair; /* log2 */
    bool swapped;
} TlDot;

/* NULL: fine; else what is wrong (static text). */
const char *tl_dot_check(const TlDot *d, const TlTarget *t);
/* Layout of the tile's operand: (reg, lane, wave) -> (d0, d1) as in tl_frag_mma, over the whole tile.
 * Register bits, lowest first. A: [e][mpair][u][s][m tiles above]; B: [e][npair][u][s][n tiles above];
 * C: [registers of the instruction][n tiles, pair bits lowest][m tiles, pair bits lowest]. */
bool tl_dot_layout(const TlDot *d, TlFrag f, TlLayout *out);
/* Sizes of the instruction grid of one wave: tiles along m, n and k steps (k / mma k). */
uint32_t tl_dot_tiles_m(const TlDot *d);
uint32_t tl_dot_tiles_n(const TlDot *d);
uint32_t tl_dot_steps_k(const TlDot *d);
/* First register (element) index of the operand of instruction (mt, nt, ks): mt for A, nt for B, both for C;
 * the instruction's elements follow at reg + i * stride, i < count. */
typedef struct TlDotSlice {
    uint32_t reg, count, stride;
} TlDotSlice;
TlDotSlice tl_dot_slice(const TlDot *d, TlFrag f, uint32_t mt, uint32_t nt, uint32_t ks);

/* ---- blocked layouts (global memory, elementwise tiles) ------------------------------------- */

typedef struct TlBlocked {
    uint32_t rank;     /* 1..4 */
    uint32_t shape[4]; /* powers of two */
    uint32_t minor;    /* the dimension whose elements are consecutive in memory */
    uint32_t elem_bytes;
    uint32_t max_vec_bytes; /* 16 usually */
    uint32_t wave, waves;   /* lanes of a wave, waves */
    uint32_t rows; /* consecutive rows (along the next dimension, before minor) a thread takes before the next
                      thread: 1 usually */
} TlBlocked;
/* (reg, lane, wave) -> (d0, ...): a thread has a vector along minor (as wide as allowed while all threads
 * have work, but not below 4 bytes), consecutive threads are consecutive along minor, then along the other
 * dimensions from the last to the first; what is left repeats in registers. Register bits:
 * [vector][rows][repeats]. Too many threads: the top lane/wave bits are free. false: sizes not powers of two.
 */
bool tl_layout_blocked(const TlBlocked *b, TlLayout *out);

/* ---- LDS ------------------------------------------------------------------------------------ */

/* map: tile coordinates (d0, d1, ...) -> off in elements. Byte = elem_bytes * off. */
typedef struct TlLdsMap {
    TlLayout map;
    uint32_t elem_bytes;
    uint32_t bytes; /* of the whole tile */
} TlLdsMap;

/* Row-major (last dimension fastest) of this shape. */
bool tl_lds_row_major(TlLdsMap *m, uint32_t rank, const uint32_t *shape, uint32_t elem_bytes);
/* XORs bit `src` of the element offset into bit `dst` (dst < src keeps it one-to-one). */
bool tl_lds_xor(TlLdsMap *m, uint32_t dst, uint32_t src);
uint32_t tl_lds_byte(const TlLdsMap *m,
                     const uint32_t *coords); /* coords: one a tile dimension, in order of d0.. */

typedef enum TlLdsOp { TL_LDS_READ, TL_LDS_WRITE } TlLdsOp;

/* Extra cycles (beyond the conflict-free cost) of one LDS instruction: sum over its phases of (most distinct
 * dword addresses on one bank - 1). addr: byte address of each lane, width: bytes a lane (1, 2, 4, 8, 12,
 * 16), active: lane mask. UINT32_MAX: the chip's phases for such an access are not known. */
uint32_t tl_lds_conflicts(const TlTarget *t, TlLdsOp op, uint32_t width, const uint32_t *addr,
                          uint64_t active);
/* read2/write2 of two elements of `width` (4 or 8) bytes. */
uint32_t tl_lds_conflicts2(const TlTarget *t, TlLdsOp op, uint32_t width, const uint32_t *addr0,
                           const uint32_t *addr1, uint64_t active);
/* Cycles without conflict: phases of the instruction. 0: not known. */
uint32_t tl_lds_phases(const TlTarget *t, TlLdsOp op, uint32_t width);

/* Accesses of one thread layout through a map. */
typedef struct TlLdsAccess {
    TlLdsOp op;
    TlLayout layout;    /* (reg, lane, wave) -> tile coordinates */
    uint32_t max_bytes; /* widest instruction to use, 16 usually */
    uint32_t weight;    /* how often it happens relative to others; 0 = 1 */
} TlLdsAccess;

/* Address split of one access: address of register r (first element of a vector), lane, wave
 *   = (base(lane, wave) ^ xor_const[group(r)]) + imm(r),
 * base = the map at register 0. An allocation that does not start at byte 0 is added after the XOR. Registers
 * of one group share one address register; imm is an instruction offset. */
enum { TL_SPLIT_MAX_BITS = 10 };
typedef struct TlAddrSplit {
    uint32_t vec; /* elements an instruction moves (consecutive registers) */
    uint32_t vec_bytes;
    uint32_t reg_bits;                   /* log2 of the number of instructions of a thread */
    uint32_t ngroups;                    /* distinct base addresses */
    uint32_t xor_bits;                   /* bytes: address bits that registers may only change by XOR */
    uint32_t reg_off[TL_SPLIT_MAX_BITS]; /* byte offset basis of each instruction index bit */
    uint32_t max_imm;                    /* largest immediate needed */
    uint32_t conflicts;                  /* extra cycles per instruction (UINT32_MAX: not known) */
    bool replicated; /* some lanes or waves access the same element (a store stores it twice) */
} TlAddrSplit;
/* imm_limit: largest immediate offset (65535 for DS). Beyond it a register needs a base of its own. false:
 * layout and map do not fit. */
bool tl_lds_split(const TlTarget *t, const TlLdsMap *m, const TlLdsAccess *a, uint32_t imm_limit,
                  TlAddrSplit *out);
/* Of instruction i (0 .. 2^reg_bits - 1; it moves registers i * vec ..): the XOR constant that picks its
 * base, and its immediate. */
void tl_split_of(const TlAddrSplit *s, uint32_t i, uint32_t *xor_const, uint32_t *imm);
/* Distinct XOR constants, ascending; out has room for ngroups. Returns ngroups. */
uint32_t tl_split_groups(const TlAddrSplit *s, uint32_t *out, uint32_t room);
/* base(lane, wave) in bytes: XOR over lane and wave bits; basis words for code generation. */
uint32_t tl_lds_base(const TlLdsMap *m, const TlLayout *l, uint32_t lane, uint32_t wave);

/* Finds an LDS map for a tile so that all accesses are free of bank conflicts, as simple as possible (no XOR,
 * then few XORs, few base addresses). The lowest offset bits are the registers that all accesses have in
 * common as a vector; `minor` orders the rest. acc: n >= 1 accesses (writes and reads); shape: the tile's.
 * out_split: n entries or NULL. Always gives a valid one-to-one map when it returns true; left conflicts are
 * in out_split and *total (weighted, extra cycles per thread group and use). false: layouts do not cover the
 * shape or sizes are not powers of two. */
bool tl_lds_solve(const TlTarget *t, uint32_t rank, const uint32_t *shape, uint32_t elem_bytes,
                  uint32_t minor, const TlLdsAccess *acc, uint32_t n, TlLdsMap *out, TlAddrSplit *out_split,
                  uint32_t *total);

#endif
