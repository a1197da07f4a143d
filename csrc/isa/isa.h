/* isa.h - decoded AMDGPU instructions: our own decoder and printer, driven by tables (isa_*.def).
 *
 * A decoded instruction names every register it reads and writes as operands in assembler text order, so that
 * the simulator and the static verifier need no second table. Decoding never crashes: an unknown or reserved
 * encoding gives ISA_UNKNOWN with a message.
 */
#ifndef TL_ISA_ISA_H
#define TL_ISA_ISA_H

#include "base/base.h"

typedef enum IsaArch { ISA_GFX90A, ISA_GFX942, ISA_GFX950, ISA_GFX1100, ISA_GFX1201, ISA_ARCH_COUNT } IsaArch;

/* Encoding families; VOP1..VOPC come as 32-bit (E32), 64-bit VOP3 (E64), DPP and SDWA forms. */
typedef enum IsaEnc {
    ISA_ENC_NONE,
    ISA_SOP1,
    ISA_SOP2,
    ISA_SOPK,
    ISA_SOPC,
    ISA_SOPP,
    ISA_SMEM,
    ISA_VOP1,
    ISA_VOP2,
    ISA_VOPC,
    ISA_VOP3,
    ISA_VOP3P,
    ISA_MAI /* MFMA, SMFMAC, accvgpr moves */,
    ISA_DPP,
    ISA_DPP8,
    ISA_SDWA,
    ISA_VOPD,
    ISA_DS,
    ISA_FLAT,
    ISA_GLOBAL,
    ISA_SCRATCH,
    ISA_MUBUF,
    ISA_MTBUF,
    ISA_OTHER
} IsaEnc;

typedef enum IsaOpndKind {
    ISA_OPND_NONE,
    ISA_OPND_VGPR,  /* reg = 0..255 */
    ISA_OPND_AGPR,  /* reg = 0..255 */
    ISA_OPND_SGPR,  /* reg = scalar operand code 0..127: SGPRs and vcc, flat_scratch, xnack_mask, ttmp, m0,
                       null, exec  by the code this architecture gives them */
    ISA_OPND_CONST, /* inline constant or literal; `bits` holds the value as 32 bits of the operand's type
                       (for 64-bit operands: sign- or float-extended into bits64 by the decoder) */
    ISA_OPND_SRC,   /* special read-only source: reg = operand code (scc, vccz, execz, shared_base,
                       private_base, ...) */
    ISA_OPND_IMM    /* plain number in the text: simm16 branch, waitcnt, hwreg, swizzle ...; value in bits */
} IsaOpndKind;

/* How the bits are meant; drives the values of constants and the simulator's conversions. */
typedef enum IsaType {
    ISA_T_B32,
    ISA_T_B64,
    ISA_T_B16,
    ISA_T_U32,
    ISA_T_I32,
    ISA_T_U64,
    ISA_T_I64,
    ISA_T_U16,
    ISA_T_I16,
    ISA_T_F16,
    ISA_T_BF16,
    ISA_T_F32,
    ISA_T_F64,
    ISA_T_V2F16,
    ISA_T_V2BF16,
    ISA_T_V2I16,
    ISA_T_V2F32,
    ISA_T_ANY, /* a tuple of registers: matrix operands, buffer descriptors, wide loads */
    ISA_T_V2B32
} IsaType;

/* Notes on operands.
 *
 *  - The lane mask is no operand of vector and memory instructions; EXEC appears (ISA_IMPLICIT) only where it
 * is data: saveexec, v_cmpx, s_cbranch_execz. MODE never appears.
 *
 *  - An absent address ("off") or scalar offset keeps its place with kind ISA_OPND_NONE.
 *
 *  - A destination that is also read (fmac, d16 loads, returning buffer atomics, DPP and SDWA writes that
 * keep old bits) has both ISA_READ and ISA_WRITE. Returning buffer cmpswap writes only the first half of its
 * data operand.
 *
 *  - Loads straight to LDS have no data operand; M0 is an implicit read.
 *
 *  - Source modifiers are per operand (ISA_NEG, ISA_ABS, ISA_SEXT); for packed instructions (VOP3P) they are
 * in op_sel, op_sel_hi, neg_lo, neg_hi, except v_fma_mix*, which has ISA_NEG and ISA_ABS.
 *
 *  - Constants of packed types: V2F16 and V2BF16 hold the half in the low 16 bits (op_sel and op_sel_hi
 * pick), V2I16 the 32-bit value, V2F32 and V2B32 the value in the low register and 0 above.
 */
enum {
    ISA_READ = 1,
    ISA_WRITE = 2,
    ISA_NEG = 4,
    ISA_ABS = 8,
    ISA_SEXT = 16,
    ISA_LITERAL = 32,
    ISA_IMPLICIT = 64
};

typedef struct IsaOpnd {
    uint8_t kind;  /* IsaOpndKind */
    uint8_t flags; /* ISA_READ ... ISA_IMPLICIT: not in the text (scc, exec, m0 ...) */
    uint8_t nregs; /* 32-bit registers covered (0 for constants) */
    uint8_t type;  /* IsaType */
    uint16_t reg;
    uint8_t half; /* 16-bit operand of gfx11: 1 = low half (v0.l), 2 = high half (v0.h), 0 = whole register */
    uint8_t pad;
    uint32_t bits;
    uint64_t bits64;
} IsaOpnd;

enum { ISA_MAX_OPNDS = 8 };

typedef struct IsaInst {
    uint16_t op;  /* IsaOp: index into isa_op_info(); one per mnemonic, shared by all chips and encodings */
    uint16_t row; /* private: the table row, for the printer */
    uint8_t enc;  /* IsaEnc: the base family (VOP1, VOP2, VOPC ... also when the form below is E64) */
    uint8_t form; /* IsaEnc of the actual form: e.g. ISA_VOP3 (e64), ISA_DPP, ISA_SDWA, or equal to enc */
    uint8_t size; /* bytes: 4, 8, 12, 16 (scaled MFMA) */
    uint8_t nopnds, ndst;
    uint8_t clamp, omod;
    uint8_t op_sel, op_sel_hi, neg_lo, neg_hi; /* bit per source, op_sel bit 3 = destination */
    /* memory */
    int32_t
        offset; /* DS: the 16-bit field (two-offset forms: see below); others: bytes, signed where it is */
    uint8_t offset0, offset1;
    uint8_t sc0, sc1, nt, glc, slc, dlc, lds, offen, idxen, addr64, gds, scope, th, saddr_present, tfe;
    uint8_t cbsz, abid, blgp; /* MFMA; cbsz also where DPP row_mask etc. do not apply */
    /* DPP / SDWA */
    uint16_t dpp_ctrl;
    uint8_t row_mask, bank_mask, bound_ctrl, fi;
    uint32_t dpp8;
    uint8_t dst_sel, dst_unused, src0_sel, src1_sel;
    uint8_t index_key, wait_va, wait_vm /* LDS to all lanes: its waits */, scale_sel,
        format /* MTBUF: dfmt | nfmt << 4 */, bitop3;
    IsaOpnd opnd[ISA_MAX_OPNDS];
    /* VOPD (form ISA_VOPD): op and opnd[0 .. opnd_y) are the first instruction, op_y and opnd[opnd_y ..
     * nopnds) the second one; both read their sources before either writes */
    uint16_t op_y, row_y;
    uint8_t opnd_y;
} IsaInst;

/* Classes of op that readers ask for (bit set). */
enum {
    ISA_C_SALU = 1 << 0,
    ISA_C_VALU = 1 << 1,
    ISA_C_SMEM = 1 << 2,
    ISA_C_VMEM = 1 << 3 /* mubuf, global, flat, scratch */,
    ISA_C_DS = 1 << 4,
    ISA_C_MFMA = 1 << 5,
    ISA_C_BRANCH = 1 << 6,
    ISA_C_END = 1 << 7,
    ISA_C_BARRIER = 1 << 8,
    ISA_C_WAIT = 1 << 9,
    ISA_C_LOAD = 1 << 10,
    ISA_C_STORE = 1 << 11,
    ISA_C_ATOMIC = 1 << 12,
    ISA_C_TRANS = 1 << 13,
    ISA_C_NOP = 1 << 14,
    ISA_C_PRIO = 1 << 15,
    ISA_C_CMPX = 1 << 16,
    ISA_C_ACCMOVE = 1 << 17,
    ISA_C_FLAT = 1 << 18
};

/* Every mnemonic of every chip, sorted by name: ISA_OP_v_add_f32, ISA_OP_s_waitcnt ... */
typedef enum IsaOp {
#define ISA_OP(name, classes) ISA_OP_##name,
#include "isa/isa_ops.def"
#undef ISA_OP
    ISA_OP__COUNT
} IsaOp;

typedef struct IsaOpInfo {
    const char *name; /* mnemonic without encoding suffix */
    uint32_t classes;
} IsaOpInfo;

uint32_t isa_op_count(void);
const IsaOpInfo *isa_op_info(uint32_t op);
uint32_t isa_op_by_name(const char *name);         /* UINT32_MAX when unknown */
bool isa_chip_has(IsaArch arch, const char *name); /* in any encoding, pairs (VOPD) included */

bool isa_arch_by_name(const char *name,
                      IsaArch *out); /* "gfx942" or "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" */
const char *isa_arch_name(IsaArch a);

/* Decodes one instruction from code[0..avail). wave64 matters on RDNA only. Returns false for an unknown or
 * reserved encoding or one that runs past `avail`; then *why (static text) says so and inst->size is 4 or 8.
 */
bool isa_decode(IsaArch arch, bool wave64, const uint8_t *code, size_t avail, IsaInst *inst,
                const char **why);

/* Where a direct branch at byte `at` of the code leads; false: it is none. */
bool isa_branch_to(const IsaInst *inst, int64_t at, int64_t *to);

/* What gfx9 does not interlock behind a scalar write of M0, loads to LDS aside. */
bool isa_needs_m0(const IsaInst *inst);
/* An atomic of which the data (operand isa_data_opnd) has more than 64 bits: a compare-and-swap of 8 bytes.
 */
bool isa_wide_atomic(const IsaInst *inst);
/* Operand that holds what a store or atomic of vector memory writes. */
uint32_t isa_data_opnd(const IsaInst *inst);

/* Which halves of a vector register operand k reads or writes: 1 the low, 2 the high one, 3 both. Registers
 * of gfx11 and gfx12 can be written by halves; those of CDNA have ECC and are always taken as a whole. */
uint8_t isa_opnd_halves(IsaArch arch, const IsaInst *inst, uint32_t k);
/* Is operand k a result that counts as read only because it keeps the half that is not written? */
bool isa_opnd_keeps(IsaArch arch, const IsaInst *inst, uint32_t k);

/* Prints in the assembler's own syntax (what llvm-mc --disassemble prints), without a leading tab. Branch
 * targets print as the raw immediate. */
void isa_print(IsaArch arch, bool wave64, const IsaInst *inst, TlText *out);
/* What stands for an encoding that isa_decode refused: ".long 0x12345678 (why)". */
void isa_print_unknown(const uint8_t *code, uint64_t avail, const char *why, TlText *out);

#endif
