/* core.h - inside of the execution core: records, waves, groups, and the tables that bodies come from.
 *
 * Register file: row r of a wave is v[r * 64 .. + 63], lanes contiguous; rows 0..255 are VGPRs, 256..511
 * AGPRs. A 64-bit operand is two rows that follow each other. A wave of 32 lanes uses the lower half of each
 * row; the lanes above are never in EXEC. Scalars are addressed by operand code; exec is s[126], vcc s[106],
 * m0 s[124] on every architecture (the decoder's codes are mapped when a record is made). What is written to
 * null lands in s[128] and above, where nothing reads it: a source null is the constant 0.
 * VALU operations are "kernels" that compute all 64 lanes from whole rows; wrappers ("bodies") resolve
 * operands, apply modifiers and blend by EXEC. Kernels exist once a host level, wrappers once.
 */
#ifndef TL_SIM_CORE_H
#define TL_SIM_CORE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "isa/counters.h"
#include "isa/hazard_rdna.h"
#include "sim/exec.h"

enum { LANES = 64, ROW_AGPR = 256, ROWS = 512 };
/* In dword 3 of a buffer descriptor: gfx9's data format, ADD_TID_ENABLE. */
enum { DATA_FORMAT = 15 << 15, ADD_TID = 1 << 23 };
#define SCRATCH_RSRC_HI 0x80000000u /* dword 1 of the scratch descriptor: base 0, swizzled */
enum {
    S_FLAT_SCRATCH = 102,
    S_XNACK = 104,
    S_VCC = 106,
    S_M0 = 124,
    S_EXEC = 126,
    S_NULL = 128,
    SREGS = S_NULL + 16 /* the widest scalar destination */
};

typedef struct SimWave SimWave;
typedef struct SimRec SimRec;
typedef const SimRec *(*SimBody)(SimWave *w,
                                 const SimRec *r); /* next record, NULL = stop (w->stop says why) */

/* Context of a kernel: what is not a row. */
typedef struct SimK {
    const uint32_t *cin;          /* carry in, select mask, vcc of div_fmas, as a row of 0 / ~0 */
    uint64_t mask_out;            /* carry out, comparison result */
    _Alignas(64) uint32_t co[64]; /* the same as a row of 0 / ~0 */
    uint32_t imm;
    uint32_t mode;
} SimK;
typedef void (*SimKern)(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c, SimK *x);

typedef enum SrcKind { SRC_NONE, SRC_V, SRC_S, SRC_S64, SRC_C, SRC_X } SrcKind;
typedef struct SimSrc {
    uint8_t kind, n; /* n: dwords */
    uint16_t idx;    /* row, scalar code, or index into the constants */
} SimSrc;

typedef struct SimRange { /* registers of one file that an instruction touches */
    uint16_t start;
    uint8_t n, cls; /* cls: source position 0..2, or 7 for anything else */
    uint8_t half;   /* 1, 2: the low, the high half of a register alone (gfx11, gfx12) */
} SimRange;

typedef enum PoisonRule {             /* how undefinedness goes through a VALU instruction */
                          POI_LANE,   /* lane by lane: destination = or of sources */
                          POI_NONE,   /* the body does it itself, or there is none */
                          POI_SELECT, /* v_cndmask */
                          POI_MASK,   /* VOPC: to the bits of a lane mask */
                          POI_READLANE,
                          POI_WRITELANE,
                          POI_READFIRST,
                          POI_SWAP,
                          POI_PERMSWAP,
                          POI_CARRY,
                          POI_SALU, /* any poisoned bit poisons all of the destination */
                          POI_SALU_AND,
                          POI_SALU_OR,
                          POI_SALU_XOR,
                          POI_SALU_MOV,
                          POI_SALU_SEL,
                          POI_SALU_ANDN2,
                          POI_SALU_ORN2,
                          POI_SALU_SHL, /* shifts and moves of bits: each bit goes where its value goes */
                          POI_SALU_SHR,
                          POI_SALU_SAR,
                          POI_SALU_BFE,
                          POI_SALU_BFEI,
                          POI_SALU_SEXT8,
                          POI_SALU_SEXT16,
                          POI_SALU_PACKLL,
                          POI_SALU_PACKLH,
                          POI_SALU_PACKHL,
                          POI_SALU_PACKHH,
                          POI_SALU_SUM, /* sums and products: nothing below the lowest undefined bit */
                          POI_MFMA,
                          POI_TUPLE, /* lane by lane, over tuples of registers */
                          POI_DUAL,  /* VOPD: both halves */
                          POI_PERM,  /* permlane: the lane that is read */
                          POI_MOVREL,
                          POI_SWAPREL,
                          POI_WIDE,   /* v_mqsad_u32_u8: four rows, each with its own of the third source */
                          POI_DEFINED /* result is always defined */
} PoisonRule;

typedef enum HazClass { /* producer and consumer classes of the wait-state table */
                        HZ_NONE,
                        HZ_VALU,
                        HZ_TRANS,
                        HZ_PARTIAL,
                        HZ_DOT,
                        HZ_XDL,
                        HZ_SGEMM,
                        HZ_DGEMM4,
                        HZ_DGEMM16,
                        HZ_VMEM,
                        HZ_DS,
                        HZ_SALU
} HazClass;

typedef enum SimMaybe {
    MAYBE_NO,
    MAYBE_YES,
    MAYBE_ASK /* not looked at yet: sim_chk_ask */
} SimMaybe;

/* A VALU instruction that nothing but the flags of its registers can keep from running unchecked (gfx9). */
enum { QUICK_FLAGS = 6, QUICK_SCALAR = ROWS + 64 };
typedef struct SimQuick {
    uint16_t flag[QUICK_FLAGS]; /* of SimChk.flag: all registers that it touches; the rest names one that
                                   stays 0 */
    uint8_t n;                  /* 0: not such an instruction */
} SimQuick;

typedef struct SimExt { /* cold part of a record: the decoded instruction and what checks want to know */
    /* the first 128 bytes are all that checks ask of most instructions */
    uint8_t ready; /* what follows is filled in */
    uint8_t nvread, nvwrite, nsread, nswrite;
    uint8_t kind, use, haz, poison;
    uint8_t haz_plain; /* gfx9: owed wait states only by rows and scalars with VF_PROD and the like */
    uint8_t relidx;    /* its registers depend on M0 */
    uint8_t counters;  /* IsaCounter bits it counts in */
    uint16_t rows;     /* IsaRdnaRow bits; 0: gfx9, which counts wait states */
    uint8_t passes, is_dpp, writes_exec, writes_m0, wide_store, hwreg;
    SimRange vread[6], vwrite[3], sread[6], swrite[4];
    uint8_t permswap, needs_m0, rw_lane, div_fmas;
    uint8_t reads_scc, writes_scc, lanesel;
    uint8_t addr_cls;             /* class of the vread entry that is an address, 255: none */
    uint8_t mem_bytes, smem_data; /* smem_data: the destination is data of a scalar store */
    uint8_t scope;                /* isa/coherence.h */
    uint8_t maybe;  /* SimMaybe: a store that may be atomic, a load that stands for an atomic one */
    uint8_t steers; /* SimMaybe: an atomic whose old value decides a branch: check_poll.c */
    uint8_t polls;  /* SimMaybe: a load or atomic that waits for another wave: check_poll.c */
    uint16_t wait[ISA_CNT_COUNT]; /* of a wait: what it asks */
    IsaRdnaKind rk;               /* mask: the scalar itself */
    SimQuick quick;
    const struct SimOpDesc *desc;
    const void *mfma;
    uint64_t addr_lanes;      /* lanes whose addresses count */
    const struct SimDpp *dpp; /* DPP: where each lane reads */
    SimBody plain_body;       /* MODE_IDX: the body that runs on shifted operands */
    IsaInst in;
} SimExt;

struct SimRec { /* 64 bytes */
    SimBody body;
    union {
        SimKern fn;
        const void *p;
    };
    SimExt *ext;
    SimSrc src[4];
    uint16_t dst, dst2;
    int32_t imm;
    uint8_t size; /* dwords to the next instruction */
    uint8_t ndst; /* dwords of the destination */
    uint8_t fl, fl2;
    uint16_t op;
    uint16_t aux;
    uint32_t at; /* dword of the code (a mode change leaves w->recs for another table) */
};

/* ---- VALU operations
 * ------------------------------------------------------------------------------------------- */

typedef enum KType {
    KT_NONE,
    KT_B32,
    KT_U32,
    KT_I32,
    KT_F32,
    KT_B64,
    KT_U64,
    KT_I64,
    KT_F64,
    KT_U16,
    KT_I16,
    KT_F16,
    KT_P16 /* packed i16 */,
    KT_PF16,
    KT_PF32,
    KT_MASK,
    KT_B16,
    KT_MIX
} KType;

enum { /* SimOpDesc.flags */
       OPF_FMAC = 1,
       OPF_TRANS = 2,
       OPF_DOT = 4,
       OPF_CIN = 8,
       OPF_COUT = 16,
       OPF_CMPX = 32,
       OPF_KEEPHI = 64 /* VOP3 16-bit result
keeps the other half */
       ,
       OPF_PACKED = 128,
       OPF_IMMK = 256 /* fmamk/fmaak */,
       OPF_MIX = 512,
       OPF_DSTHALF = 1024,
       OPF_INTSAT = 2048,
       OPF_OPSELB = 4096 /* op_sel picks bytes or words by the kernel itself */,
       OPF_OLD = 8192 /* kernel reads old destination as c */,
       OPF_BITOP3 = 16384 /* the truth table goes to the kernel */,
       OPF_NEGIMM = 32768 /* so do the bits of neg_lo: which sources are signed */,
       OPF_QUIET = 65536 /* minima and maxima: mind signalling NaNs by the IEEE bit */
};

typedef struct SimOpDesc {
    const char *name;
    uint8_t nsrc, dt, t[3];
    uint32_t flags;
} SimOpDesc;

/* Enumerators K_v_add_f32 ... of all kernels. */
typedef enum SimKernId {
#define KERN(name, nsrc, dt, ta, tb, tc, flags, ...) K_##name,
#include "sim/kernels.def"
#undef KERN
    K_COUNT
} SimKernId;
extern const SimOpDesc sim_kern_desc[K_COUNT];

/* One matrix instruction, as rows. Operands A and B are decoded to T[e * 64 + lane] (e = element in the
 * lane); element (k, i) of A is A[koff[k] + i], of B likewise. A segment is a row of n accumulators in the
 * register file. */
enum { MMA_MAXK = 128, MMA_MAXE = 64, MMA_MAXSEG = 64 };
typedef struct SimMma {
    uint16_t n, k, nseg, ea, eb;             /* columns, depth, segments, elements a lane of A and B */
    uint16_t na, nb, nd;                     /* registers of A, B, C and D */
    uint8_t type, sparse, blocks, m, fa, fb; /* MT_*; fa, fb: FMT_* of 8-bit and smaller floats */
    uint8_t flush, scaled;                   /* subnormal halves count as zero; block scales */
    uint16_t koff[MMA_MAXK];                 /* for B (and A when dense) */
    uint16_t kaoff[MMA_MAXK];                /* sparse: stored elements of A */
    uint16_t seg_d[MMA_MAXSEG], seg_a[MMA_MAXSEG], seg_b[MMA_MAXSEG];
} SimMma;
enum { FMT_FP8, FMT_BF8, FMT_FP6, FMT_BF6, FMT_FP4, FMT_COUNT };
/* Value of a small float; fnuz: the 8-bit formats of gfx942. */
float sim_small_float(uint32_t v, uint32_t fmt, bool fnuz);
enum { MT_F32, MT_XF32, MT_F16, MT_BF16, MT_FP8, MT_I8, MT_F64, MT_F8F6F4 };

/* Wrappers of the usual VALU instructions (body.inc): first those that have a form with signs. */
typedef enum SimBodyId {
    BODY_V1,
    BODY_V2,
    BODY_V3,
    BODY_VCMP,
    BODY_V1_SIGNED,
    BODY_V2_SIGNED,
    BODY_V3_SIGNED,
    BODY_VCMP_SIGNED,
    BODY_V1_LOW, /* the result is the low half of a register; with signs */
    BODY_V2_LOW,
    BODY_V3_LOW,
    BODY_VCARRY,
    BODY_CNDMASK,
    BODY_COUNT
} SimBodyId;

typedef struct SimHostOps { /* everything that is built once a host level */
    const SimKern *kern;    /* [K_COUNT] */
    const SimKern *flush;   /* the same, subnormal f32 sources and results flushed */
    const SimBody *body;    /* [BODY_COUNT] */
    void (*blend)(SimWave *w, uint64_t exec, uint32_t *d, const uint32_t *v, uint32_t n);
    void (*mma_f32)(float *d, const float *a, const float *b, const SimMma *m);
    void (*mma_i32)(int32_t *d, const int32_t *a, const int32_t *b, const SimMma *m);
    /* idx[i * 64 + q]: dense k of stored element q of row i */
    void (*smma_f32)(float *d, const float *a, const float *b, const SimMma *m, const uint8_t *idx);
    void (*smma_i32)(int32_t *d, const int32_t *a, const int32_t *b, const SimMma *m, const uint8_t *idx);
    void (*half_rows)(float *out, const uint32_t *row, uint32_t hi, uint32_t bf16); /* 64 halves to floats */
    void (*lut_rows)(float *out, const uint32_t *row, uint32_t byte, const float *lut);
    const struct SimFast *fast; /* [K_COUNT] */
} SimHostOps;
extern const SimHostOps sim_host_base, sim_host_avx2, sim_host_avx512;
const SimHostOps *sim_host_ops(void);

/* ---- code
 * ---------------------------------------------------------------------------------------------------------
 */

enum {
    MODE_PLAIN,
    MODE_ODD = 1 /* rounding, denormals */,
    MODE_IDX = 2 /* GPR indexing on */,
    MODE_HW = 4 /* mfma="hw": the chip's own summation */,
    MODE_SKIP = 8 /* VSKIP: no vector instruction has an effect */,
    MODE_FLUSH = 16 /* f32 subnormals flushed, nothing else odd: what assemblers take by default */,
    MODE_CLASSES = 32
};
struct SimCode {
    TlAlloc alloc;
    TlArena arena;
    IsaArch arch;
    bool wave64;
    uint64_t base, size;
    uint32_t nrec;
    SimRec *recs[MODE_CLASSES]; /* but for MODE_PLAIN: made on demand */
    uint32_t **consts;          /* rows of 128: 64 x low dword, 64 x high dword */
    uint32_t nconst;
    const uint16_t *op_index; /* isa op -> 1 + index of the body table */
    int lock;
    int cover; /* file of TILELANG_SIM_COVERAGE, -1 = none */
    const SimHostOps *host;
    TlMap const_map;
    uint8_t *joins;    /* a bit a dword: a direct branch leads there; made on demand */
    uint8_t lds_taken; /* SimMaybe: something takes over what atomics released in LDS: check_poll.c */
    uint8_t dev_taken; /* ... what was released for the device */
};
/* Makes the record at r (of table `cls`); never fails: an unknown instruction gets a body that faults. */
void sim_code_decode(SimCode *c, uint32_t cls, SimRec *r);
SimRec *sim_code_table(SimCode *c, uint32_t cls); /* NULL: out of memory */
/* The instruction at a byte of the code; false: there is none, or it is not known. */
bool sim_code_at(const SimCode *c, uint64_t at, IsaInst *in);
/* Do ways come together between two dwords (behind the first, up to the second)? False too when memory ran
 * out. */
bool sim_code_joined(SimCode *c, uint32_t from, uint32_t to);

/* ---- waves
 * ---------------------------------------------------------------------------------------------------------
 */

typedef enum WaveStop { ST_RUN, ST_BARRIER, ST_END, ST_SLEEP, ST_FAULT } WaveStop;

enum {
    SIM_STATE_CHECKS = 1 << SIM_CHECK_INIT | 1 << SIM_CHECK_RACE | 1 << SIM_CHECK_WAIT |
                       1 << SIM_CHECK_HAZARD | 1 << SIM_CHECK_BARRIER
};
enum { LDSLOG = 64, MAX_GROUP_WAVES = 32 };
typedef struct SimLdsOp { /* one LDS access that may still be in flight */
    uint32_t seq;         /* number in its counter */
    uint8_t counter;      /* IsaCounter; ISA_CNT_COUNT: none, complete */
    uint8_t write, bytes;
    bool flying;   /* was under way when its wave arrived at a barrier */
    bool complete; /* the wave's accesses of global memory were, when it was issued */
    uint32_t pc, epoch;
    uint32_t releases; /* of the wave */
    uint64_t exec;
    uint32_t lo, hi;
    uint32_t addr[64];
} SimLdsOp;

/* Numbers of the operations under way: the nth of a counter is complete for sure when done >= n. */
typedef struct SimChkNumbers {
    uint32_t issued[ISA_CNT_COUNT], done[ISA_CNT_COUNT];
    uint32_t access[ISA_CNT_COUNT]; /* last access of memory that counts there */
    uint32_t
        dirty_seq;   /* last store (of the counter of stores) that another workgroup may not see; 0 = none */
    uint32_t wb_seq; /* last write-back of a cache */
    uint32_t loads;  /* last load (ISA_CNT_VM) */
} SimChkNumbers;

/* Lanes in which a dword is undefined, and those of them in which bits are defined: `known` are (in all of
 * these lanes). pad: bits that are the padding between bit-fields where they are undefined in such a lane.
 * home: where in LDS or scratch the dword was loaded (sim_chk_home; 0: not known, or it was none). */
typedef struct SimUndef {
    uint64_t any, part;
    uint32_t known, pad;
    uint64_t home;
} SimUndef;

typedef struct SimChk {   /* state of the checked variant, one a wave */
    uint64_t vp[ROWS];    /* poisoned lanes of a row */
    uint64_t vpart[ROWS]; /* with VF_PART: SimUndef.part */
    uint32_t sp[SREGS];   /* poisoned bits of a scalar */
    bool scc_p;
    union {
        struct {
            uint8_t vflag[ROWS + 64], sflag[SREGS + 64]; /* VF_*; what is behind the registers stays 0 */
        };
        uint8_t flag[ROWS + SREGS + 128]; /* both */
    };
    /* pending results */
    uint32_t vseq[ROWS], vseq2[ROWS], sseq[SREGS]; /* vseq2: of the LDS part of a flat load */
    uint8_t vcnt[ROWS];                            /* counters (bits) that the result comes with */
    uint32_t vpc[ROWS], spc[SREGS], scc_seq;
    uint8_t vhalf[ROWS]; /* PH_*: which parts of a row are pending */
    SimChkNumbers n;
    /* wait states */
    uint32_t ignore;                              /* hazard rules that are left out */
    IsaHazardRule rule;                           /* of the fault that is reported */
    uint32_t now;                                 /* wait states so far */
    uint32_t vtime[ROWS];                         /* last VALU or matrix write of a row */
    uint8_t vprod[ROWS], vpass[ROWS];             /* HazClass and passes (RDNA: halves) of that write */
    uint16_t vop[ROWS], dstart[ROWS], dlen[ROWS]; /* its opcode and destination tuple */
    uint32_t wpc[ROWS], cpc[ROWS];
    uint32_t stime[SREGS], swpc[SREGS]; /* last VALU write of a scalar */
    uint32_t ctime[ROWS];               /* last matrix instruction that reads the row as C */
    uint8_t cpass[ROWS];
    uint32_t sdtime[ROWS]; /* last wide store that reads the row */
    uint8_t sdneed[ROWS];
    uint32_t stores_done; /* last wait for all vector memory operations: they have read their data */
    /* gfx11, waves of 64: last vector write of each half; the last scalar writes of EXEC, nexec of them */
    uint32_t half_time[2][ROWS], exec_salu[8], nexec;
    /* registers that the current instruction has too few wait states for, with their poison put by */
    struct SimHit {
        uint16_t reg; /* row, or HIT_SCALAR + code */
        uint8_t how;
        uint64_t poison;
    } hit[64];
    uint32_t nhit;
    /* gfx11, gfx12 (now: vector instructions so far): transcendental ones so far, how far the vector ones are
     * complete */
    uint32_t ntrans, valu_done;
    bool cmpx;    /* v_cmpx came last */
    uint8_t owed; /* kinds of scalar writes that no wait covers */
    uint32_t m0_time, m0_pc, setreg_time, setreg_pc, last_setreg, exec_valu_time, exec_pc;
    /* check_origin.c: of undefined registers (rows, scalars, scc), and of the load at hand */
    uint32_t org[ROWS + SREGS + 1], org_new;
    bool org_off; /* a missing wait state spoilt something: origins are no longer followed */
    SimLdsOp log[LDSLOG];
    uint32_t nlog;
    const uint32_t *lds_data, *lds_addr; /* of the LDS store that is being checked, else NULL */
    bool lds_hi;
    bool flat_lds; /* the last flat instruction had lanes in LDS */
    /* ordering with other workgroups */
    struct SimCoherent {
        uint32_t seq, n, pc;
        uint8_t counter, scope; /* scope: IsaScope */
        bool outer, acquired;   /* outer: the first of two invalidations came (gfx11) */
        bool group;             /* what its workgroup released is acquired */
        bool all;               /* all workgroups had released through its address */
        uint8_t nseen;       /* n, if there is room for what its addresses handed on; 0: what they do later */
        uint32_t seen[2][4]; /* [1]: within the workgroup */
        bool steers;         /* decides a branch, and what was released for the device is not acquired */
        uint8_t from;        /* number + 1 of a wave of the workgroup whose flag in LDS it saw */
        uint32_t bound;      /* that wave's accesses of global memory with fewer releases are known */
        uint32_t store[64], before[64]; /* the stores that it may have seen, where encodings do not tell */
        uint64_t addr[64];
    } coherent[4]; /* the last coherent loads and atomics */
    uint32_t ncoherent;
    bool group_open;  /* one of them is not acquired within the workgroup */
    uint32_t effects; /* stores, atomics and barriers so far */
    struct SimPoll {  /* loads that wait: where they looked last, after how many effects */
        uint32_t at, effects;
        uint64_t addr;
    } poll[8];
    struct SimFlag { /* stores to global memory: the address of the first lane, was LDS done with what came
                        before */
        uint64_t addr;
        bool lds_done;
    } flag_at[4];
    uint32_t nflag_at;
    bool device_open; /* one of them may count as acquired: check_meet.c */
    struct SimLater { /* what older ones have seen: for the device, for the workgroup */
        bool any, outer;
        uint8_t counters; /* bits: ones that were not complete, up to seq */
        uint32_t seq[ISA_CNT_COUNT];
    } later[2];
    uint32_t handed; /* n.loads at the last release of loads by a store that may be atomic */
    bool loads_open; /* ... hands on what was loaded: sim_chk_loads_seen */
    uint8_t fresh;   /* nothing was loaded since the caches were emptied: check_meet.c */
    bool aside; /* the access under way is none of memory that others see, or a grid barrier's own load */
    bool look;  /* the last one's stores are to be looked up */
    uint32_t dma_out; /* loads to LDS not waited for */
    /* of upper halves that are pending by themselves (gfx11, gfx12), as above */
    struct SimPendHigh {
        uint32_t seq, seq2, pc;
        uint8_t cnt;
    } high[ROWS];
    uint64_t org_at[ROWS + SREGS + 1], org_new_at; /* address or offset of the first undefined byte */
    /* with VF_PART, VF_HOME: the rest of SimUndef */
    uint64_t vhome[ROWS];
    uint32_t vknown[ROWS], vpad[ROWS];
} SimChk;
enum { ORG_SCC = ROWS + SREGS };
typedef enum SimOriginKind { ORG_NONE, ORG_START, ORG_GLOBAL, ORG_LDS, ORG_SCRATCH } SimOriginKind;
/* A load found an undefined byte: its rows are not known here, sim_chk_origin_load notes them. */
static inline void
sim_chk_origin_found(SimChk *c, SimOriginKind kind, uint64_t at)
{
    if (c->org_new)
        return;
    c->org_new = kind;
    c->org_new_at = at;
}
enum { PH_LOW = 1, PH_HIGH = 2, PH_WHOLE = 4 };
enum { HIT_SCALAR = 0x8000 };
typedef enum HitHow {
    HIT_READ,   /* reads what was there before the last write */
    HIT_RESULT, /* cannot tell in its operands: the result is wrong */
    HIT_LOST    /* its write is lost: the one before lands after it */
} HitHow;
enum {
    VF_POISON = 1,
    VF_PEND = 2,
    VF_PROD = 4 /* special producer */,
    VF_CREAD = 8,
    VF_SDATA = 16,
    VF_PART = 32, /* poisoned, but not in all bits */
    VF_HOME = 64  /* poisoned, and loaded from the place in vhome */
};

typedef struct SimScratchRows {
    uint32_t t[4][128], d[128];
} SimScratchRows;

struct SimWave {
    _Alignas(64) uint32_t s[SREGS];
    _Alignas(64) uint32_t mask[64]; /* EXEC as 0 / ~0, valid when mask_exec == exec */
    uint64_t mask_exec;
    uint64_t lane_mask; /* the lanes that the wave size has */
    uint32_t *v;
    const SimRec *rec, *recs;
    SimCode *code;
    SimGroup *g;
    SimMemPort *port;
    SimStats *stats;
    SimChk *chk;          /* NULL in the plain variant */
    struct SimLate *late; /* NULL but for delivery="late" */
    uint32_t scc, mode, mode_cls;
    uint32_t index; /* in the workgroup */
    WaveStop stop;
    uint8_t *scratch, *scratch_init; /* lane l at l * (scratch_wave / 64) */
    uint64_t icount, clock;
    uint32_t trapsts;
    SimRaceWave race, lds_race; /* lds_race: its clock in LDS (check_order.c) */
    uint32_t barrier_epoch;
    /* split barriers; bits 1: the workgroup's, 2: the one joined */
    uint8_t bar_done, bar_wait; /* completed and not passed yet; waits for (0 with ST_BARRIER: s_barrier) */
    uint8_t bar_joined;         /* number of the named barrier */
    bool bar_signalled;         /* the workgroup's, not completed yet */
    uint32_t bar_pc;            /* where */
    uint64_t live_exec;         /* lanes that exist */
    struct SimTraceWave *trace; /* NULL: not recorded */
    bool gws_waits;             /* at a resource of the global wave sync */
    uint32_t gws_generation;
};

/* A barrier of gfx12: 0 = the workgroup's, 1.. = named. */
enum { SIM_NAMED_BARRIERS = 16 };
typedef struct SimBarrier {
    uint32_t members, signalled;
    bool valid;
} SimBarrier;

typedef struct SimBankEntry { /* conflict cycles of one pattern of addresses, by distance from the first lane
                               */
    uint64_t exec, cycles;
    uint32_t bytes, write, dist[64];
} SimBankEntry;

struct SimGroup {
    TlAlloc alloc;
    const SimLaunchInfo *info;
    uint32_t nwaves, wave_size;
    SimWave *waves;
    uint32_t *regs;
    uint8_t *lds;
    uint32_t lds_bytes;
    uint8_t *scratch;
    uint64_t scratch_wave;
    SimChk *chk;
    uint32_t checks, ignore; /* ignore: hazard rules that are left out */
    uint32_t wg[3];
    uint64_t linear;
    uint32_t cur;          /* next wave to run */
    uint64_t rng;          /* 0: waves in order */
    uint8_t *scratch_init; /* one byte a byte: its defined bits; behind it a second map (lds_init, too) */
    uint32_t epoch;        /* barriers passed */
    SimBarrier bar[1 + SIM_NAMED_BARRIERS];
    SimBankEntry banks[64];
    bool ended;    /* by a fault */
    bool own_exec; /* sim_exec_bytes */
    SimGws *gws;   /* its own, then */
    SimFault *capture;
    /* LDS shadow, one byte a byte of LDS: 0 = untouched in this interval, wave + 1, 255 = several readers */
    uint8_t *lds_wr, *lds_rd, *lds_init;
    struct SimLdsOrder *order; /* NULL: no flag orders accesses of LDS yet */
    bool lds_all_init;         /* every byte is defined (false: unknown) */
    bool polls;                /* a wave has waited at some address: SimChk.poll */
    uint32_t sh_lo, sh_hi;     /* touched part of the shadow */
    struct SimLate *late;      /* one a wave; NULL but for delivery="late" */
    uint64_t late_seed, late_clock;
};

static inline uint64_t
get64(const uint32_t *p)
{
    uint64_t r;
    memcpy(&r, p, 8);
    return r;
}
static inline void
put64(uint32_t *p, uint64_t v)
{
    memcpy(p, &v, 8);
}
#define EXEC(w)     (get64((w)->s + S_EXEC) & (w)->lane_mask)
#define ROW(w, r)   ((w)->v + (size_t)(r) * LANES)
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NEXT(r)     ((r) + (r)->size)

/* A lane mask to a scalar: one register in a wave of 32 lanes, two in a wave of 64. */
static inline void
put_mask(SimWave *w, uint32_t s, uint64_t m)
{
    if (LIKELY(w->lane_mask == ~UINT64_C(0)))
        put64(w->s + s, m);
    else
        w->s[s] = (uint32_t)m;
}
#define SET_EXEC(w, x) put_mask((w), S_EXEC, (x))
#define VCC(w)         (get64((w)->s + S_VCC) & (w)->lane_mask)

/* Bits as a row of 0 / ~0. */
void sim_mask_expand(uint64_t bits, uint32_t *row);
/* EXEC as such a row. */
void sim_mask_rebuild(SimWave *w, uint64_t exec);
static inline const uint32_t *
exec_mask(SimWave *w, uint64_t exec)
{
    if (w->mask_exec != exec)
        sim_mask_rebuild(w, exec);
    return w->mask;
}

static inline uint64_t
rec_pc(const SimWave *w, const SimRec *r)
{
    return w->code->base + (r->body ? r->at : (uint64_t)(r - w->recs)) * 4;
}

/* Scalar operand values. */
uint32_t sim_src_special(SimWave *w, uint32_t code, uint32_t *hi);
static inline uint32_t
s32(SimWave *w, SimSrc s)
{
    if (LIKELY(s.kind == SRC_S || s.kind == SRC_S64))
        return w->s[s.idx];
    if (s.kind == SRC_C)
        return w->code->consts[s.idx][0];
    uint32_t hi;
    return sim_src_special(w, s.idx, &hi);
}
static inline uint64_t
s64(SimWave *w, SimSrc s)
{
    if (LIKELY(s.kind == SRC_S || s.kind == SRC_S64))
        return get64(w->s + s.idx);
    if (s.kind == SRC_C)
        return w->code->consts[s.idx][0] | (uint64_t)w->code->consts[s.idx][64] << 32;
    uint32_t hi, lo = sim_src_special(w, s.idx, &hi);
    return lo | (uint64_t)hi << 32;
}

/* The row of a VALU source; scalars are spread into tmp (128 dwords). */
const uint32_t *sim_row_slow(SimWave *w, SimSrc s, uint32_t *tmp);
static inline const uint32_t *
src_row(SimWave *w, SimSrc s, uint32_t *tmp)
{
    if (LIKELY(s.kind == SRC_V))
        return ROW(w, s.idx);
    if (s.kind == SRC_C)
        return w->code->consts[s.idx];
    return sim_row_slow(w, s, tmp);
}

/* ---- running
 * ---------------------------------------------------------------------------------------------------------
 */

/* Decodes on first execution, keeps the place where a body stopped. Returns the number of instructions. STEP
 * runs the one at `r` and sets `next`. */
#define SIM_RUN_LOOP(STEP)                                                                                   \
    const SimRec *r = w->rec, *next;                                                                         \
    uint64_t left = budget;                                                                                  \
    while (left) {                                                                                           \
        if (UNLIKELY(!__atomic_load_n(&r->body, __ATOMIC_ACQUIRE)))                                          \
            sim_code_decode(w->code, w->mode_cls, (SimRec *)(uintptr_t)r);                                   \
        STEP;                                                                                                \
        if (UNLIKELY(!next))                                                                                 \
            break;                                                                                           \
        r = next;                                                                                            \
    }                                                                                                        \
    if (w->stop == ST_RUN || w->stop == ST_FAULT)                                                            \
        w->rec = r;                                                                                          \
    return budget - left
uint64_t sim_run_checked(SimWave *w, uint64_t budget);

/* ---- faults
 * ---------------------------------------------------------------------------------------------------------
 */

/* Reports; returns true when the wave may go on. A false return has set w->stop. */
bool sim_fault(SimWave *w, const SimRec *r, SimCheck check, bool fatal, uint64_t lanes, uint64_t addr,
               uint32_t other_wave, uint64_t other_pc, const char *fmt, ...) TL_PRINTF(9, 10);
/* What to give as `addr` where 0 may be an address. */
static inline uint64_t
sim_at(uint64_t addr)
{
    return addr ? addr : SIM_AT_ZERO;
}
const SimRec *sim_fault_illegal(SimWave *w, const SimRec *r, const char *why);
/* "4 bytes after the end of ...": where an address is. */
void sim_describe(SimWave *w, uint64_t addr, uint32_t n, char *text, size_t cap);
/* Asks the race shadow of the launch; reports. */
void sim_global_race(SimWave *w, const SimRec *r, const uint64_t *addr, uint64_t exec, uint32_t bytes,
                     SimAccess kind);
static inline bool
checking(const SimWave *w, SimCheck c)
{
    return (w->g->checks >> c) & 1;
}

/* ---- body families (each sets up rec from ext->in; false = this file does not know the instruction)
 * ------------------ */

typedef struct SimBuild {
    SimCode *code;
    SimRec *r;
    SimExt *x;
    const IsaInst *in;
    const char *name;
    uint32_t cls;
    bool failed;   /* out of memory */
    uint32_t kern; /* 1 + SimKernId, 0 = none */
    int64_t index; /* dword of the code */
} SimBuild;
SimSrc sim_build_const(SimBuild *b, uint64_t v);
uint16_t sim_build_sreg(const SimBuild *b, const IsaOpnd *o);
SimSrc sim_build_src(SimBuild *b, const IsaOpnd *o);
/* nth operand that is read (ISA_READ) and not a destination, or NULL. */
const IsaOpnd *sim_build_read(const SimBuild *b, uint32_t nth);
bool sim_build_salu(SimBuild *b);
bool sim_build_salu_float(SimBuild *b); /* scalar floats of gfx12 */
bool sim_build_flow(SimBuild *b);       /* SOPP, jumps, hardware registers */
void sim_build_flow_operands(SimBuild *b);
bool sim_build_barrier(SimBuild *b); /* split barriers */
/* Split barriers between slices: at the start of a workgroup; when a wave ended; completes what is complete
 * and lets waves go on; reports a group in which nothing can run. */
void sim_barrier_reset(SimGroup *g);
void sim_barrier_wave_end(SimWave *w);
void sim_barrier_update(SimGroup *g);
void sim_barrier_stuck(SimGroup *g);
bool sim_build_hwreg(SimBuild *b); /* s_getreg, s_setreg, MODE, messages that return something */
bool sim_build_smem(SimBuild *b);
uint32_t sim_mode_start(IsaArch arch, uint32_t rsrc1);
uint32_t sim_mode_class(IsaArch arch, uint32_t mode); /* MODE_PLAIN, MODE_FLUSH or MODE_ODD */
/* A new value of MODE; the record after r. */
const SimRec *sim_set_mode(SimWave *w, const SimRec *r, uint32_t mode);
/* The record at a code address, or NULL after a fault. */
const SimRec *sim_jump(SimWave *w, const SimRec *r, uint64_t pc);
bool sim_build_fork(SimBuild *b);
bool sim_build_skipped(SimBuild *b);    /* last, in MODE_SKIP */
bool sim_build_smem_write(SimBuild *b); /* scalar stores, atomics, scratch */
/* Scalar load of n bytes with all checks; false: stop. */
bool sim_smem_read(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n, void *out);
/* The record after r in the table of this class. */
const SimRec *sim_set_class(SimWave *w, const SimRec *r, uint32_t cls);
/* Deterministic clock: later at each reading. */
uint64_t sim_read_clock(SimWave *w);
bool sim_build_valu(SimBuild *b);
/* mfma="hw": the kernel of a dot instruction that sums like the chip; NULL: none is known. */
SimKern sim_hw_kern(IsaArch arch, const char *mnemonic);
void sim_build_indexed(SimBuild *b); /* after the others, in MODE_IDX */
bool sim_build_lane(SimBuild *b);    /* readlane, swap and other VALU with bodies of their own */
bool sim_build_mfma(SimBuild *b);
bool sim_build_wmma(SimBuild *b); /* called by sim_build_mfma */
bool sim_build_ds(SimBuild *b);
bool sim_build_ds_tr(SimBuild *b, uint32_t bits); /* after the plain load of its width */
const SimRec *sim_body_ds_load(SimWave *w, const SimRec *r);
bool sim_build_gws(SimBuild *b);
bool sim_build_valu_cdna(SimBuild *b);
bool sim_build_cvt_scale(SimBuild *b);
bool sim_build_vmem(SimBuild *b);

struct SimAcc;
void sim_lds_stats(SimWave *w, const uint32_t *addr, uint64_t exec, const struct SimAcc *a, bool write);

/* ---- checked variant
 * --------------------------------------------------------------------------------------------------- */

void sim_chk_prepare(SimBuild *b); /* ranges and classes of ext */
bool sim_chk_maybe(const SimWave *w,
                   const SimRec *r); /* SimExt.maybe, worked out when it is first asked for */
/* Scalar loads and s_dcache_inv (check_scalar.c); false: stop. */
bool sim_chk_scalar_load(SimWave *w, const SimRec *r, uint64_t addr, uint32_t n);
void sim_chk_scalar_inv(SimWave *w);
void sim_chk_reset(SimWave *w);
/* After sim_chk_reset: what the caller of sim_exec_bytes gave is defined. */
void sim_chk_given(SimWave *w, const SimWaveState *state);
bool sim_chk_before(SimWave *w, const SimRec *r); /* false: stop */
void sim_chk_after(SimWave *w, const SimRec *r);  /* after the body ran */
/* LDS accesses of the checked variant: race marks, pending LDS-DMA; false = stop. */
bool sim_chk_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                 bool write);
/* A store of rows from `data` on (NULL: not known), hi: of their upper halves. Two waves may write one value.
 */
bool sim_chk_lds_write(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                       const uint32_t *data, bool hi);
bool sim_chk_lds_atomic(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes);
/* How far behind the map of defined bits the one of SimBitStore's computed bytes is. */
static inline size_t
sim_lds_map(const SimGroup *g)
{
    return g->lds_bytes + 64u;
}
static inline size_t
sim_scratch_map(const SimGroup *g)
{
    return g->scratch_wave * g->nwaves;
}
/* Adds to undef[dword] what an access of `bytes` finds in lane l: the defined bits of each byte, and (NULL:
 * no) whether the others are something else than padding. home: of the first dword. */
void sim_chk_undef_lane(SimUndef *undef, uint32_t l, const uint8_t *defined, const uint8_t *computed,
                        uint32_t bytes, uint64_t home);
/* What an access of `bytes` finds undefined: undef[dword]. */
void sim_chk_lds_undef(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes, SimUndef *undef);
/* Definedness of LDS bytes after a store of rows from src on; upper: of the upper half of a register. */
void sim_chk_lds_store(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                       bool upper);
/* The same after an atomic: undefined data makes the bytes undefined; a swap also defines them. */
void sim_chk_lds_atomic_data(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                             bool swap);
/* A load straight to LDS: marks as written in flight. */
bool sim_chk_lds_dma(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                     const SimUndef *undef);
/* A wave arrives at a barrier; once for each barrier that all have arrived at, before the first is released;
 * a wave gets past it. */
void sim_chk_signal(SimWave *w);
void sim_chk_barrier(SimGroup *g);
void sim_chk_pass(SimWave *w);
void sim_chk_wait(SimWave *w, const uint16_t limit[ISA_CNT_COUNT]);
/* What a body that ran with the numbers `before` and left `after` has changed, in the numbers of now. */
void sim_chk_numbers_merge(SimChkNumbers *now, const SimChkNumbers *before, const SimChkNumbers *after);
void sim_chk_seen(SimWave *w);
void sim_chk_wave_end(SimWave *w);
void sim_order_end(SimGroup *g); /* forgets what flags of the workgroup ordered */

#endif
