/* check_int.h - the dataflow driver that the checks share; private to isa/. */
#ifndef TL_ISA_CHECK_INT_H
#define TL_ISA_CHECK_INT_H

#include "isa/check.h"

/* One number space for all registers: v 0..255, a 256..511, scalar codes 512..639, scc 640. */
enum { ISA_REG_A = 256, ISA_REG_S = 512, ISA_REG_SCC = 640, ISA_NREGS = 641 };

typedef struct IsaWalk {
    const IsaCode *c;
    uint32_t which;
    bool report;      /* the final pass */
    uint8_t *covered; /* of check_wait.c: a byte an instruction, and one */
    IsaFaults *out;
} IsaWalk;

/* Registers of an operand as numbers above; false when it names none. */
bool isa_opnd_regs(const IsaOpnd *o, uint32_t *first, uint32_t *n);

/* Adds a fault: "v5 <what> <how> <producer text>"; reg UINT32_MAX: no register in the text. */
bool isa_fault(IsaWalk *w, IsaFaultKind kind, uint32_t at, uint32_t from, uint32_t reg, const char *what,
               const char *how, int missing);

/* Runs `step` over all blocks until the states at block starts are stable, then once more with w->report set.
 * A state is `size` zeroed bytes at function entry; join(a, b) merges b into a and says whether a changed. */
typedef bool IsaStep(IsaWalk *w, void *state, uint32_t i);
typedef bool IsaJoin(void *a, const void *b);
bool isa_walk(IsaWalk *w, size_t size, IsaStep *step, IsaJoin *join);

bool isa_loads_to_lds(const IsaInst *in);

bool isa_check_waits(IsaWalk *w);
bool isa_check_hazards(IsaWalk *w); /* CDNA */
bool isa_check_rdna(IsaWalk *w);
bool isa_check_exec(IsaWalk *w);

#endif
