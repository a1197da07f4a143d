/* check.h - what can be told from finished code without running it: control flow, loops and their instruction
 * mix, resource use, and a static verifier: waits, wait states and what else the chip does not interlock,
 * EXEC.
 *
 * All results live in the arena given; every function returns false only when memory ran out or
 * (isa_code_decode) when an instruction is unknown.
 */
#ifndef TL_ISA_CHECK_H
#define TL_ISA_CHECK_H

#include "isa/hazard_rules.h"
#include "isa/isa.h"

/* Straight-line code between a leader and the next one. Indices are into IsaCode.inst. */
typedef struct IsaBlock {
    uint32_t first, end; /* [first, end) */
    uint32_t succ[2];    /* block numbers; UINT32_MAX: none */
} IsaBlock;

typedef struct IsaCode {
    TlArena *arena;
    IsaArch arch;
    bool wave64;
    uint32_t n, nblocks;
    IsaInst *inst;
    uint32_t *offset; /* byte offset of each instruction; offset[n] = size */
    IsaBlock *block;
    uint32_t *block_of; /* per instruction */
} IsaCode;

/* Decodes one function (kernel entry .. its end) and builds its blocks. When an instruction is unknown, *why
 * and *bad_offset say which; why may be NULL. */
bool isa_code_decode(IsaCode *c, TlArena *a, IsaArch arch, bool wave64, const uint8_t *code, size_t size,
                     const char **why, uint32_t *bad_offset);

/* Counts of instructions. mfma + valu + salu + ... = total. */
typedef struct IsaMix {
    uint32_t total, mfma, valu, accmove /* v_accvgpr_* */, salu, smem, load, store,
        atomic /* vector memory */;
    uint32_t lds_dma /* loads straight to LDS */, ds_read, ds_write, ds_other, scratch, wait, barrier, branch,
        nop, other;
} IsaMix;

typedef struct IsaLoop {
    uint32_t header, latch; /* instruction indices: the first of the header block, the branch back */
    uint32_t first, last;   /* byte offsets: lowest and end of the body (cold parts may lie far away) */
    uint32_t depth;         /* 1 = outermost */
    bool innermost;
    IsaMix mix; /* body with inner loops */
} IsaLoop;

typedef struct IsaLoops {
    IsaLoop *data;
    uint32_t len, cap;
} IsaLoops;

void isa_mix(const IsaCode *c, IsaMix *out);     /* of the whole function */
bool isa_loops(const IsaCode *c, IsaLoops *out); /* natural loops, in order of their headers */
/* Index of the loop to look at in a matrix kernel: the innermost one with most MFMA; UINT32_MAX when there is
 * none. */
uint32_t isa_main_loop(const IsaLoops *l);
void isa_mix_print(const IsaMix *m, TlText *out); /* "64 mfma, 41 valu, ..." without zero counts */

typedef struct IsaUse { /* highest register + 1 named by any operand, and what the code touches */
    uint32_t vgprs, agprs, sgprs;
    uint32_t scratch_ops, lds_ops, calls, traps;
    bool flat; /* flat instructions: may reach scratch or LDS */
} IsaUse;

void isa_use(const IsaCode *c, IsaUse *out);

typedef enum IsaFaultKind {
    ISA_FAULT_WAIT,    /* a register of a load that no wait covers is read or overwritten */
    ISA_FAULT_BARRIER, /* an LDS write may still be under way at s_barrier */
    ISA_FAULT_HAZARD,  /* a wait state is missing */
    ISA_FAULT_EXEC     /* lanes that may be switched off take part in a cross-lane operation */
} IsaFaultKind;

/* ISA_CHECK_EXEC stands apart: what it finds is legal when the program knows which lanes are on. */
enum {
    ISA_CHECK_WAIT = 1,
    ISA_CHECK_BARRIER = 2,
    ISA_CHECK_HAZARD = 4,
    ISA_CHECK_ALL = 7,
    ISA_CHECK_EXEC = 8
};

typedef struct IsaFault {
    IsaFaultKind kind;
    uint32_t at, from;  /* instruction indices: the user and the producer */
    IsaHazardRule rule; /* of ISA_FAULT_HAZARD */
    const char *text;
} IsaFault;

typedef struct IsaFaults {
    IsaFault *data;
    uint32_t len, cap;
    uint32_t ignore; /* hazard rules that are left out, set by the caller */
} IsaFaults;

/* The checks that are there for a chip. */
uint32_t isa_checks_of(IsaArch arch);

/* Appends what is wrong by the checks of `which` that the chip has; conservative over all paths (a report
 * holds for some path through the blocks). What no path shows is not seen: flat LDS writes before a barrier,
 * loads straight to LDS that some wait covers but not the one before the barrier that matters, scalar values
 * that hardware sets up, code behind an indirect branch. */
bool isa_check(const IsaCode *c, uint32_t which, IsaFaults *out);

#endif
