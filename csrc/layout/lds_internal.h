/* lds_internal.h - shared by lds.c (counting) and lds_solve.c (finding a map). Not for other folders. */
#ifndef TL_LDS_INTERNAL_H
#define TL_LDS_INTERNAL_H

#include "layout/layout.h"

typedef enum TlPhaseSource { TL_PHASE_MEASURED, TL_PHASE_TAKEN, TL_PHASE_GUESS } TlPhaseSource;

typedef struct TlLdsPhase { /* a row of lds_phases.def */
    uint8_t target, op, width, banks, source;
    uint8_t nbits, gen[6]; /* 2^nbits lanes a phase; a coset of the span of gen */
} TlLdsPhase;

const TlLdsPhase *tl_lds_phase_row(const TlTarget *t, TlLdsOp op, uint32_t width); /* NULL: none */

/* An access through a map, as byte offsets. reg[i]: of bit i of the instruction index (registers above the
 * vector). */
typedef struct TlLdsBytes {
    uint32_t vec_bits, width;
    uint32_t nregs, nlanes, nwaves;
    uint32_t reg[TL_SPLIT_MAX_BITS], lane[6], wave[5];
} TlLdsBytes;
bool tl_lds_access_bytes(const TlLdsMap *m, const TlLdsAccess *a, TlLdsBytes *out);

/* Address bits that only XOR may change: those some lane or wave sets, and those beyond the immediate. */
uint32_t tl_lds_xor_bits(const TlLdsBytes *b, uint32_t imm_limit);
/* Rank of the vectors v & mask. */
uint32_t tl_rank32(const uint32_t *v, uint32_t n, uint32_t mask);
/* Extra cycles of one instruction whose lane bit i moves the address by lane_bytes[i] (XOR). */
uint32_t tl_lds_linear_conflicts(const TlTarget *t, const TlLdsPhase *p, uint32_t width,
                                 const uint32_t *lane_bytes);

#endif
