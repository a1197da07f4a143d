/* check_int.h - the dataflow driver that the checks share; private to isa/. */
#ifndef TL_ISA_CHECK_INT_H
#define TL_ISA_CHECK_INT_H

#include "isa/check.h"
#include "isa/hazard_rdna.h"

/* One number space for all registers: v 0..255, a 256..511, scalar codes 512..639, scc 640; behind them the
 * upper halves of v, for those who take halves for themselves (v is the lower half then). */
enum {
    ISA_REG_A = 256,
    ISA_REG_S = 512,
    ISA_REG_SCC = 640,
    ISA_NREGS = 641,
    ISA_REG_HIGH = 641,
    ISA_NHALVES = 897
};

/* A set of registers: most hold nothing to check, and the walks go over those that do. */
enum { ISA_SET_WORDS = (ISA_NHALVES + 63) / 64 };
typedef struct IsaRegSet {
    uint64_t w[ISA_SET_WORDS];
} IsaRegSet;

static inline void
isa_set_add(IsaRegSet *s, uint32_t r)
{
    s->w[r >> 6] |= UINT64_C(1) << (r & 63);
}

static inline void
isa_set_remove(IsaRegSet *s, uint32_t r)
{
    s->w[r >> 6] &= ~(UINT64_C(1) << (r & 63));
}

/* The least member that is not below r; ISA_NHALVES: none. */
static inline uint32_t
isa_set_next(const IsaRegSet *s, uint32_t r)
{
    uint32_t k = r >> 6;
    if (r >= ISA_NHALVES)
        return ISA_NHALVES;
    uint64_t bits = s->w[k] & ~UINT64_C(0) << (r & 63);
    while (!bits && ++k < ISA_SET_WORDS)
        bits = s->w[k];
    return bits ? k * 64 + (uint32_t)__builtin_ctzll(bits) : ISA_NHALVES;
}

#define ISA_EACH(r, set)                                                                                     \
    for (uint32_t r = isa_set_next(set, 0); r < ISA_NHALVES; r = isa_set_next(set, r + 1))

typedef struct IsaWalk {
    const IsaCode *c;
    uint32_t which;
    bool report; /* the final pass */
    IsaHazardRule rule;
    void *facts;      /* of the check that runs: what it asks of each instruction, worked out once */
    uint8_t *covered; /* of check_wait.c: a byte an instruction, and one */
    IsaFaults *out;
} IsaWalk;

/* Registers of an operand as numbers above; false when it names none. */
bool isa_opnd_regs(const IsaOpnd *o, uint32_t *first, uint32_t *n);

/* Adds a fault: "v5 <what> <how> <producer text>"; reg UINT32_MAX: no register in the text. With
 * ISA_FAULT_HAZARD the caller sets the rule in w->rule before. */
bool isa_fault(IsaWalk *w, IsaFaultKind kind, uint32_t at, uint32_t from, uint32_t reg, const char *what,
               const char *how, int missing);

/* Runs `step` over all blocks until the states at block starts are stable, then once more with w->report set.
 * A state is `size` zeroed bytes at function entry; join(a, b) merges b into a and says whether a changed. */
typedef bool IsaStep(IsaWalk *w, void *state, uint32_t i);
typedef bool IsaJoin(void *a, const void *b);
bool isa_walk(IsaWalk *w, size_t size, IsaStep *step, IsaJoin *join);

/* Is the rule of a hazard left out? */
static inline bool
isa_ignored(const IsaWalk *w, IsaHazardRule rule)
{
    return w->out->ignore >> rule & 1;
}

bool isa_loads_to_lds(const IsaInst *in);

bool isa_check_waits(IsaWalk *w);
bool isa_check_hazards(IsaWalk *w); /* CDNA */
bool isa_check_rdna(IsaWalk *w);
/* Row FORWARD; what each instruction is, and whether control gets there. */
bool isa_check_forward(IsaWalk *w, const IsaRdnaKind *kind, const uint8_t *reached);
bool isa_check_exec(IsaWalk *w);

#endif
