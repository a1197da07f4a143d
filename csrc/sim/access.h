/* access.h - what LDS, global, buffer and scratch bodies share: moving lanes between memory and rows,
 * atomics. */
#ifndef TL_SIM_ACCESS_H
#define TL_SIM_ACCESS_H

#include "sim/core.h"

/* Narrow loads and stores. */
typedef enum AccKind { ACC_DWORDS, ACC_U8, ACC_I8, ACC_U16, ACC_I16 } AccKind;

/* How one memory instruction moves data; parsed from its mnemonic. */
typedef struct SimAcc SimAcc;
struct SimAcc {
    uint8_t kind;   /* AccKind */
    uint8_t bytes;  /* a lane moves */
    uint8_t dwords; /* registers */
    uint8_t d16;    /* 0 none, 1 low half, 2 high half; + D16_CLEAR: loads set the other half to 0 */
    uint8_t atom;   /* AtomOp */
    uint8_t rtn;
    uint8_t width; /* SIM_WIDTH_* */
};

/* The CDNA chips run with ECC on registers: a load of half a register writes all of it. */
enum { D16_CLEAR = 4 };

static inline void
sim_acc_ecc(SimAcc *a, IsaArch arch)
{
    if (a->d16 && arch < ISA_GFX1100)
        a->d16 |= D16_CLEAR;
}

typedef enum AtomOp {
    AT_NONE,
    AT_ADD,
    AT_SUB,
    AT_RSUB,
    AT_INC,
    AT_DEC,
    AT_SMIN,
    AT_SMAX,
    AT_UMIN,
    AT_UMAX,
    AT_AND,
    AT_OR,
    AT_XOR,
    AT_SWAP,
    AT_CMPSWAP,
    AT_MSKOR,
    AT_FADD,
    AT_FADD_FLUSH, /* f32, no subnormals in nor out */
    AT_FMIN,
    AT_FMAX,
    AT_FMINNUM, /* a signalling NaN is no more than a quiet one */
    AT_FMAXNUM,
    AT_PKF16,
    AT_PKBF16,
    AT_FCMP,     /* compare-and-swap by float equality */
    AT_CONDXCHG, /* each dword: exchange when bit 31 of the data is set */
    AT_WRAP,
    AT_CONDSUB,  /* subtracts only what is there: the old value stays where it is the smaller one */
    AT_SUBCLAMP, /* stops at 0 */
    AT_ORDERED   /* low dword: a ticket that must match and then counts on; high dword: a sum */
} AtomOp;

/* "_dwordx2", "_u8_d16_hi", "_sbyte" ...: fills a; false = not a plain load or store suffix. */
bool sim_acc_parse(const char *suffix, SimAcc *a);
/* "add_f32", "cmpswap_x2", "smin" ... to op and bytes. ds: LDS spelling. */
bool sim_atom_parse(const char *name, bool ds, SimAcc *a);
/* New value. bytes 4 or 8; cmp is the comparand of a compare-and-swap. */
uint64_t sim_atom(AtomOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t cmp);
/* The same, but floats treat subnormals as MODE says (LDS). */
uint64_t sim_atom_mode(uint32_t mode, AtomOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t cmp);
/* The same in memory, as one atomic operation when at is aligned; returns what was there. */
uint64_t sim_atom_at(uint64_t at, AtomOp op, uint32_t bytes, uint64_t data, uint64_t cmp);

/* ptr[lane] is readable for all 64 lanes (inactive ones point at zeros). Rows get nd dwords a lane. */
void sim_load_dwords(uint32_t *rows, const uint64_t *ptr, uint32_t nd);
void sim_load_narrow(uint32_t *row, const uint64_t *ptr, AccKind kind);
/* Stores of active lanes in lane order. */
void sim_store_dwords(const uint32_t *rows, const uint64_t *ptr, uint64_t exec, uint32_t nd);
void sim_store_narrow(const uint32_t *row, const uint64_t *ptr, uint64_t exec, AccKind kind, bool hi);

/* The LDS address in M0: 16 bits, but on gfx950, whose LDS is larger than that, 18. */
static inline uint32_t
sim_m0_lds(const SimWave *w)
{
    return w->s[S_M0] & (w->code->arch == ISA_GFX950 ? 0x3ffffu : 0xffffu);
}

/* Writes loaded rows to registers: d16 merging, EXEC. */
void sim_write_back(SimWave *w, const SimAcc *a, uint64_t exec, uint32_t dst, uint32_t *rows);
/* The same for undefinedness (checked variant): undef[k] of loaded register k. */
void sim_write_poison(SimWave *w, const SimAcc *a, uint64_t exec, uint32_t dst, const SimUndef *undef);

extern const uint32_t sim_zeros[16];

#endif
