/* isa_int.h - the shape of the generated tables; private to isa/. */
#ifndef TL_ISA_INT_H
#define TL_ISA_INT_H

#include "isa/isa.h"

/* Where an operand's number comes from. */
typedef enum IsaField {
    ISA_F_VDST,
    ISA_F_SDST,
    ISA_F_SRC0,
    ISA_F_SRC1,
    ISA_F_SRC2,
    ISA_F_VSRC1,
    ISA_F_SIMM16,
    ISA_F_LIT,
    ISA_F_SRC0IMM,
    ISA_F_SRC1IMM,
    ISA_F_SDATAIMM,
    ISA_F_SDATA,
    ISA_F_SBASE,
    ISA_F_SOFFSET,
    ISA_F_ADDR,
    ISA_F_DATA0,
    ISA_F_DATA1,
    ISA_F_VADDR,
    ISA_F_VDATA,
    ISA_F_SADDR,
    ISA_F_SRSRC,
    ISA_F_VCC,
    ISA_F_EXEC,
    ISA_F_SCC,
    ISA_F_M0,
    ISA_F_FLATSCR,
    ISA_F_SCALE0,
    ISA_F_SCALE1
} IsaField;

/* Flags of an operand spec. */
enum {
    ISA_S_R = 1,
    ISA_S_W = 2,
    ISA_S_AGPR = 4,   /* always an accumulation register */
    ISA_S_ACC = 8,    /* one when the encoding's acc bit says so */
    ISA_S_SGPR = 16,  /* a scalar destination in a vector encoding */
    ISA_S_VONLY = 32, /* a 9-bit source that must be a vector register */
    ISA_S_SONLY = 64, /* a 9-bit source that must not be a vector register */
    ISA_S_MOD = 128,  /* takes neg and abs */
    ISA_S_IMPL = 256,
    ISA_S_REG = 512,     /* a scalar source that may not be a constant */
    ISA_S_NOEXEC = 1024, /* may not be exec */
    ISA_S_T16 = 2048,    /* names half a vector register */
    ISA_S_MASK = 4096    /* a lane mask: one register in wave32, two in wave64 */
};

typedef struct IsaSpec {
    uint8_t field, nregs, type;
    uint16_t flags;
} IsaSpec;

typedef struct IsaPattern {
    uint8_t n;
    IsaSpec spec[ISA_MAX_OPNDS];
} IsaPattern;

/* Flags of a row: which modifiers the encoding takes. */
enum {
    ISA_R_CLAMP = 1 << 0,
    ISA_R_OMOD = 1 << 1,
    ISA_R_OPSEL = 1 << 2,
    ISA_R_OPSELHI = 1 << 3,
    ISA_R_MIX = 1 << 4,
    ISA_R_VOP3B = 1 << 5,
    ISA_R_DPP = 1 << 6,
    ISA_R_DPP64 = 1 << 7, /* only row_newbcast */
    ISA_R_SDWA = 1 << 8,
    ISA_R_LIT = 1 << 9, /* always followed by a literal */
    ISA_R_CBSZ = 1 << 10,
    ISA_R_BLGP = 1 << 11,
    ISA_R_NEGF64 = 1 << 12, /* blgp negates */
    ISA_R_GDS = 1 << 13,
    ISA_R_GDSONLY = 1 << 14,
    ISA_R_OFF2 = 1 << 15, /* two 8-bit offsets */
    ISA_R_NOOFF = 1 << 16,
    ISA_R_RTN = 1 << 17, /* the glc/sc0 bit asks for the old value */
    ISA_R_LDS = 1 << 18,
    ISA_R_LDSONLY = 1 << 19,
    ISA_R_GLC = 1 << 20,       /* SMEM: the glc bit means something */
    ISA_R_HALF64 = 1 << 21,    /* waves of 64 lanes: tuples have half as many registers */
    ISA_R_SDWANODST = 1 << 22, /* SDWA writes the whole register */
    ISA_R_F8F6F4 = 1 << 23,    /* cbsz and blgp choose the element types and so the sizes of A and B */
    ISA_R_BITOP3 = 1 << 24,    /* the modifier bits are a truth table */
    ISA_R_HI1 = 1 << 27,       /* the op_sel_hi bits must all be set */
    ISA_R_BYTESEL = 1 << 26,   /* op_sel picks a byte of the source, or of the destination */
    ISA_R_INDEXKEY = 1 << 25,  /* the op_sel bits pick an index set */
};

/* How many bits VOP3's op_sel shows. */
#define ISA_R_SELS(n) ((uint32_t)(n) << 28)

typedef enum IsaFam {
    ISA_FAM_SOP1,
    ISA_FAM_SOP2,
    ISA_FAM_SOPK,
    ISA_FAM_SOPC,
    ISA_FAM_SOPP,
    ISA_FAM_SMEM,
    ISA_FAM_VOP1,
    ISA_FAM_VOP2,
    ISA_FAM_VOPC,
    ISA_FAM_VOP3,
    ISA_FAM_VOP3P,
    ISA_FAM_VOP3PX, /* scaled MFMA: two 64-bit parts */
    ISA_FAM_DS,
    ISA_FAM_LDSDIR, /* one LDS value to all lanes, address in M0 */
    ISA_FAM_FLAT,
    ISA_FAM_GLOBAL,
    ISA_FAM_SCRATCH,
    ISA_FAM_MUBUF,
    ISA_FAM_MTBUF,
    ISA_FAM_DUAL, /* halves of VOPD that are no short instruction of their own */
    ISA_FAM_COUNT
} IsaFam;

typedef enum IsaSuffix { ISA_SUF_NONE, ISA_SUF_E32, ISA_SUF_E64 } IsaSuffix;

typedef enum IsaImm { /* how a simm16 prints */
                      ISA_IMM_NONE,
                      ISA_IMM_HEX,
                      ISA_IMM_DEC,
                      ISA_IMM_BRANCH,
                      ISA_IMM_WAITCNT,
                      ISA_IMM_HWREG,
                      ISA_IMM_SENDMSG,
                      ISA_IMM_GPRIDX,
                      ISA_IMM_DELAY,
                      ISA_IMM_DEPCTR
} IsaImm;

typedef struct IsaRow { /* name_plus1 0: no such opcode */
    uint16_t name_plus1, pattern;
    uint32_t flags;
    uint8_t base, suffix, imm, fam;
    uint16_t mask; /* isa_mask(): bits that must be zero */
} IsaRow;

/* First row of a family; every family has room for all its opcodes. */
enum {
    ISA_ROW0_SOP1 = 0,
    ISA_ROW0_SOP2 = ISA_ROW0_SOP1 + 256,
    ISA_ROW0_SOPK = ISA_ROW0_SOP2 + 128,
    ISA_ROW0_SOPC = ISA_ROW0_SOPK + 32,
    ISA_ROW0_SOPP = ISA_ROW0_SOPC + 128,
    ISA_ROW0_SMEM = ISA_ROW0_SOPP + 128,
    ISA_ROW0_VOP1 = ISA_ROW0_SMEM + 256,
    ISA_ROW0_VOP2 = ISA_ROW0_VOP1 + 256,
    ISA_ROW0_VOPC = ISA_ROW0_VOP2 + 64,
    ISA_ROW0_VOP3 = ISA_ROW0_VOPC + 256,
    ISA_ROW0_VOP3P = ISA_ROW0_VOP3 + 1024,
    ISA_ROW0_DS = ISA_ROW0_VOP3P + 128,
    ISA_ROW0_FLAT = ISA_ROW0_DS + 256,
    ISA_ROW0_GLOBAL = ISA_ROW0_FLAT + 256,
    ISA_ROW0_SCRATCH = ISA_ROW0_GLOBAL + 256,
    ISA_ROW0_MUBUF = ISA_ROW0_SCRATCH + 256,
    ISA_ROW0_MTBUF = ISA_ROW0_MUBUF + 256,
    ISA_ROW0_VOP3PX = ISA_ROW0_MTBUF + 16,
    ISA_ROW0_DUAL = ISA_ROW0_VOP3PX + 128,
    ISA_ROW0_LDSDIR = ISA_ROW0_DUAL + 64,
    ISA_ROW0__END = ISA_ROW0_LDSDIR + 4
};

const IsaRow *isa_rows(IsaArch arch); /* NULL: no table for this chip */
const IsaPattern *isa_pattern(uint16_t n);
uint64_t isa_mask(uint16_t n);
uint32_t isa_dual_row(IsaArch arch, uint32_t half,
                      uint32_t opcode);                /* row of a VOPD half; UINT32_MAX: none */
const char *isa_hwreg_name(IsaArch arch, uint32_t id); /* NULL: by number */
const char *isa_message_name(IsaArch arch, uint32_t id);
const char *isa_format_name(IsaArch arch, uint32_t id); /* typed buffer formats of gfx11 and later */

/* Name of a scalar register or special source by its 7- or 8-bit code, NULL when the code is none: the names
 * of the first register and of a pair starting there. */
const char *isa_special_name(IsaArch arch, uint32_t code, uint32_t nregs);

#endif
