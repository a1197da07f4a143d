/* isa_dec.h - the decoder's working state and the pieces its files share; private to isa/. */
#ifndef TL_ISA_DEC_H
#define TL_ISA_DEC_H

#include "isa/isa_int.h"

typedef enum IsaGen { ISA_GEN9, ISA_GEN11, ISA_GEN12 } IsaGen;

typedef struct IsaDec {
    IsaArch arch;
    IsaGen gen;
    bool wave64;
    IsaInst *in;
    const IsaRow *row;
    const char *why;
    uint64_t w;  /* the first 64 bits of the encoding (the upper half is only there for 64-bit encodings) */
    uint32_t w2; /* its third word, where it has one */
    uint64_t prefix; /* scaled MFMA: the first part, with the scales */
    uint32_t dpp;    /* the DPP or SDWA word */
    const uint8_t *code;
    size_t avail;
    uint32_t size; /* bytes read so far */
    uint32_t lit;
    bool have_lit;
    bool acc;  /* DS/FLAT/MUBUF: data registers are AGPRs */
    char dual; /* VOPD: 'x' or 'y' */
} IsaDec;

static inline uint32_t
isa_bits(uint64_t w, uint32_t lo, uint32_t n)
{
    return (uint32_t)(w >> lo) & ((1u << n) - 1);
}

/* A field of the encoding, also of its third word (from bit 64). */
static inline uint32_t
isa_field(const IsaDec *d, uint32_t lo, uint32_t n)
{
    return lo < 64 ? isa_bits(d->w, lo, n) : isa_bits(d->w2, lo - 64, n);
}

static inline uint32_t
isa_rd32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline bool
isa_fail(IsaDec *d, const char *why)
{
    d->why = why;
    return false;
}

static inline bool
isa_is_vop3(const IsaDec *d)
{
    return d->row->fam == ISA_FAM_VOP3 || d->row->fam == ISA_FAM_VOP3P || d->row->fam == ISA_FAM_VOP3PX;
}

static inline int32_t
isa_sext(uint32_t v, uint32_t n)
{
    return (int32_t)(v << (32 - n)) >> (32 - n);
}

/* isa_opnd.c: registers and constants by code; each sets *o or fails with a reason. */
bool isa_vector_reg(IsaDec *d, IsaOpnd *o, bool agpr, uint32_t reg);
bool isa_scalar_reg(IsaDec *d, IsaOpnd *o, uint32_t code);
bool isa_source(IsaDec *d, IsaOpnd *o, uint32_t code, bool agpr);
void isa_no_opnd(IsaOpnd *o);
bool isa_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o);

/* isa_mem.c: SMEM, DS, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF. */
bool isa_mem_modifiers(IsaDec *d);
bool isa_mem_operand(IsaDec *d, const IsaSpec *s, IsaOpnd *o);

#endif
