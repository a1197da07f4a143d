/* target.h - what the compiler knows about chips: element types, chips, matrix instructions, occupancy.
 *
 * Everything is a constant table (elem.def, targets.def, mma.def); nothing here allocates or keeps state, so
 * all functions are pure and thread-safe. Lane maps are not here: layout/ and the simulator each compute
 * their own.
 */
#ifndef TL_TARGET_H
#define TL_TARGET_H

#include "base/base.h"

/* ---- element types -------------------------------------------------------------------------- */

typedef enum TlElem {
    TL_ELEM_NONE = 0,
#define TL_ELEM(id, name, bits, kind, dlcode, dlbits, np, exp, man, bias, cls) TL_ELEM_##id,
#include "target/elem.def"
#undef TL_ELEM
    TL_ELEM__COUNT
} TlElem;

typedef enum TlElemKind {
    TL_KIND_NONE = 0,
    TL_KIND_BOOL,
    TL_KIND_SINT,
    TL_KIND_UINT,
    TL_KIND_FLOAT
} TlElemKind;
typedef enum TlFloatClass { TL_FCLASS_NONE = 0, TL_FCLASS_IEEE, TL_FCLASS_FN, TL_FCLASS_FNUZ } TlFloatClass;

typedef struct TlElemInfo {
    const char *name;  /* "f16": the spelling in IR text */
    const char *numpy; /* "float16" */
    uint8_t bits;      /* of one value; i1 has 1 */
    uint8_t bytes;     /* in memory; i1 has 1 */
    uint8_t kind;      /* TlElemKind */
    uint8_t dl_code, dl_bits;
    uint8_t exp_bits, man_bits; /* floats only */
    uint8_t fclass;             /* TlFloatClass */
    int16_t bias;
} TlElemInfo;

/* TL_ELEM_NONE and anything out of range give an entry with name "none" and 0 bits; never NULL. */
const TlElemInfo *tl_elem_info(TlElem e);
TlElem tl_elem_by_name(const char *s, size_t n);  /* IR spelling; TL_ELEM_NONE if unknown */
TlElem tl_elem_by_numpy(const char *s, size_t n); /* NumPy-ish name */
TlElem tl_elem_by_dlpack(uint8_t code, uint8_t bits);
static inline const char *
tl_elem_name(TlElem e)
{
    return tl_elem_info(e)->name;
}
static inline uint32_t
tl_elem_bits(TlElem e)
{
    return tl_elem_info(e)->bits;
}
static inline uint32_t
tl_elem_bytes(TlElem e)
{
    return tl_elem_info(e)->bytes;
}
static inline TlElemKind
tl_elem_kind(TlElem e)
{
    return (TlElemKind)tl_elem_info(e)->kind;
}
static inline bool
tl_elem_is_float(TlElem e)
{
    return tl_elem_info(e)->kind == TL_KIND_FLOAT;
}
static inline bool
tl_elem_is_int(TlElem e) /* signed or unsigned, not bool */
{
    return tl_elem_info(e)->kind == TL_KIND_SINT || tl_elem_info(e)->kind == TL_KIND_UINT;
}

/* ---- chips ---------------------------------------------------------------------------------- */

/* Feature bits of targets.def. */
#define TL_FEATURES(X)                                                                                       \
    X(MFMA)           /* CDNA matrix instructions, accumulators in VGPR or AGPR */                           \
    X(WMMA)           /* RDNA matrix instructions */                                                         \
    X(SMFMAC)         /* 4:2 sparse MFMA */                                                                  \
    X(XF32)           /* reduced-precision f32 MFMA */                                                       \
    X(F8F6F4)         /* MFMA with scales and 4, 6, 8 bit floats */                                          \
    X(PK_F32)         /* v_pk_fma_f32 */                                                                     \
    X(LDS_DMA)        /* global and buffer loads straight to LDS */                                          \
    X(DS_READ_TR)     /* transposing LDS reads */                                                            \
    X(PERMLANE_SWAP)  /* v_permlane16_swap, v_permlane32_swap */                                             \
    X(PERMLANEX16)    /* RDNA v_permlanex16 */                                                               \
    X(DPP_ROW_BCAST)  /* gfx9 row_bcast15/31 */                                                              \
    X(FP8_CVT)        /* conversions between f32 and 8-bit floats (kind: fp8) */                             \
    X(BF16_CVT)       /* v_cvt_pk_bf16_f32 */                                                                \
    X(SPLIT_VSCNT)    /* stores have a wait counter of their own */                                          \
    X(SPLIT_COUNTERS) /* gfx12 wait counters */                                                              \
    X(WGID_TTMP)      /* workgroup ids arrive in ttmp registers */                                           \
    X(UNIFIED_AGPR)   /* VGPRs and AGPRs share one file */                                                   \
    X(MFMA_FLUSH)     /* f16/bf16 MFMA flush subnormals */

typedef enum TlFeatureBit {
#define X(name) TL_FEATBIT_##name,
    TL_FEATURES(X)
#undef X
        TL_FEATBIT__COUNT
} TlFeatureBit;
typedef enum TlFeature {
#define X(name) TL_FEAT_##name = 1 << TL_FEATBIT_##name,
    TL_FEATURES(X)
#undef X
} TlFeature;

typedef enum TlFp8Kind { TL_FP8_NONE = 0, TL_FP8_FNUZ, TL_FP8_OCP } TlFp8Kind;
/* How a raw buffer descriptor (stride 0) decides "out of range": CDNA counts offset against num_records -
 * soffset dword by dword; RDNA compares the whole access and has a select field that must be 3. */
typedef enum TlOobKind { TL_OOB_CDNA = 0, TL_OOB_RDNA } TlOobKind;
typedef enum TlArch { TL_ARCH_CDNA = 0, TL_ARCH_RDNA } TlArch;

typedef enum TlTargetId {
#define TL_TARGET(id, ...) TL_TARGET_##id,
#include "target/targets.def"
#undef TL_TARGET
    TL_TARGET__COUNT
} TlTargetId;

typedef struct TlTarget {
    TlTargetId id;
    const char *name;     /* "gfx942": also LLVM's cpu name */
    const char *products; /* for messages */
    uint8_t arch;         /* TlArch */
    uint8_t wave;         /* lanes */
    uint8_t fp8;          /* TlFp8Kind */
    uint8_t oob;          /* TlOobKind */
    /* The unit that holds one workgroup: a CU (CDNA) or a WGP (RDNA). */
    uint8_t simds;          /* SIMDs of the unit */
    uint8_t max_waves_simd; /* wave slots of a SIMD */
    uint8_t barrier_slots;  /* multi-wave workgroups in the unit */
    uint16_t units;         /* CUs or WGPs of the device (one GCD on gfx90a) */
    uint8_t xcds;           /* workgroup i runs on XCD i % xcds */
    uint16_t max_vgprs;     /* addressable by a wave */
    uint16_t max_agprs;     /* 0: none */
    uint16_t vgpr_file;     /* registers of one lane column of a SIMD, VGPR + AGPR where unified */
    uint8_t vgpr_granule;
    uint16_t max_sgprs;
    uint16_t max_workgroup; /* threads */
    uint32_t lds_max;       /* bytes one workgroup may have */
    uint32_t lds_pool;      /* bytes of the unit */
    uint16_t lds_granule;
    uint8_t lds_banks;     /* of 4 bytes; some instructions see fewer, see layout/lds_phases.def */
    uint8_t lds_dma_bytes; /* widest load to LDS a lane (0: none) */
    uint16_t cache_line;   /* of the first-level vector cache */
    uint8_t mma_per_unit;  /* matrix cores */
    uint16_t clock_mhz;    /* engine peak */
    uint16_t dram_gbs;     /* peak DRAM GB/s */
    uint32_t features;     /* TlFeature bits */
} TlTarget;

const TlTarget *tl_target_get(TlTargetId id); /* NULL out of range */
/* "gfx942", or a full target id such as "gfx942:sramecc+:xnack-" or "amdgcn-amd-amdhsa--gfx942:xnack-". NULL:
 * not known. */
const TlTarget *tl_target_by_name(const char *name);
const char *tl_target_names(void); /* "gfx90a, gfx942, ...": for messages */
static inline bool
tl_target_has(const TlTarget *t, TlFeature f)
{
    return (t->features & (uint32_t)f) != 0;
}

/* ---- matrix instructions -------------------------------------------------------------------- */

typedef enum TlMmaId {
    TL_MMA_NONE = 0,
#define TL_MMA(id, ...) TL_MMA_##id,
#include "target/mma.def"
#undef TL_MMA
    TL_MMA__COUNT
} TlMmaId;

/* How the LLVM intrinsic is called. */
typedef enum TlMmaForm {
    TL_MMAFORM_MFMA,  /* (a, b, c, cbsz, abid, blgp) */
    TL_MMAFORM_XF32,  /* the same; f32 inputs are rounded to 10 mantissa bits: never found by type, only by id
                       */
    TL_MMAFORM_SCALE, /* (a, b, c, cbsz = A format, blgp = B format, opselA, scaleA, opselB, scaleB),
                         overloaded on a, b */
    TL_MMAFORM_WMMA,  /* (a, b, c), overloaded on d and a */
    TL_MMAFORM_WMMA_OPSEL, /* (a, b, c, i1 high), overloaded on d and a; gfx1100: 16-bit results in the low
                              halves */
    TL_MMAFORM_WMMA_IU     /* (i1 a signed, a, i1 b signed, b, c, i1 clamp), overloaded on d and a */
} TlMmaForm;

typedef struct TlMma {
    TlMmaId id;
    const char *name; /* "mfma_32x32x8_f16": name in IR text */
    uint16_t m, n, k, blocks;
    uint8_t a, b, c;                  /* TlElem; C and D are alike */
    uint8_t a_regs, b_regs, c_regs;   /* dwords a lane */
    uint8_t form;                     /* TlMmaForm */
    uint8_t passes[TL_TARGET__COUNT]; /* of 4 cycles: D takes passes x 4 cycles of a matrix core; 0: chip does
                                         not have it */
    const char *intrinsic;            /* LLVM name without overload suffix */
    const char *ab_type, *c_type;     /* LLVM operand types, "v4f16" (vector of 4 half), "i64", "f32" */
} TlMma;

const TlMma *tl_mma_get(TlMmaId id); /* NULL for NONE and out of range */
const TlMma *tl_mma_by_name(const char *s, size_t n);
static inline bool
tl_mma_on(const TlMma *m, const TlTarget *t)
{
    return m->passes[t->id] != 0;
}
/* Next one-block matrix instruction of the chip with these types (TL_ELEM_NONE: any) after `after` (NULL: the
 * first), most work per cycle first, then the larger shape. NULL: no more. Reduced-precision forms (XF32) are
 * left out. */
const TlMma *tl_mma_next(const TlTarget *t, TlElem a, TlElem b, TlElem c, const TlMma *after);
/* The exact shape; m, n or k = 0: any (then the first that tl_mma_next gives). blocks = 1. */
const TlMma *tl_mma_find(const TlTarget *t, TlElem a, TlElem b, TlElem c, uint32_t m, uint32_t n, uint32_t k);
/* Multiply-adds a matrix core does in one cycle: blocks*m*n*k / (4*passes). */
uint32_t tl_mma_macs_per_cycle(const TlMma *m, const TlTarget *t);

/* ---- occupancy ------------------------------------------------------------------------------ */

typedef enum TlLimit {
    TL_LIMIT_SLOTS,
    TL_LIMIT_REGS,
    TL_LIMIT_LDS,
    TL_LIMIT_BARRIERS,
    TL_LIMIT_NONE_FITS
} TlLimit;

typedef struct TlOccupancy {
    uint32_t workgroups;     /* resident on one unit (CU or WGP); 0: the kernel cannot run */
    uint32_t waves_per_simd; /* workgroups * waves / simds, rounded up */
    uint32_t reg_waves;      /* waves a SIMD may hold by registers alone (and by slots) */
    TlLimit limit;           /* what sets `workgroups`; registers before LDS before slots when equal */
    uint32_t vgprs_allocated, lds_allocated;
} TlOccupancy;

/* vgprs, agprs: counts the kernel declares; lds: bytes of a workgroup; waves: waves of a workgroup (at least
 * 1). */
TlOccupancy tl_occupancy(const TlTarget *t, uint32_t vgprs, uint32_t agprs, uint32_t lds, uint32_t waves);
const char *tl_limit_name(TlLimit l);
/* Most registers (VGPR + AGPR where unified) a wave may have so that a SIMD holds `waves` waves. 0: never. */
uint32_t tl_target_reg_budget(const TlTarget *t, uint32_t waves_per_simd);

#endif
