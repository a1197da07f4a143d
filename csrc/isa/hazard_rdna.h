/* hazard_rdna.h - what gfx11 and gfx12 do not interlock: one table of rows, and what an instruction is to
 * them. Shared by the static checks and the simulator. Unlike gfx9's these are not counted in wait states: a
 * row is satisfied by a wait (s_waitcnt_depctr, s_wait_alu) or by enough vector instructions in between.
 *
 * Rows as LLVM 22 fills them in (post-RA-hazard-rec, amdgpu-wait-sgpr-hazards). What LLVM puts in for speed
 * alone (s_delay_alu) is no row.
 */
#ifndef TL_ISA_HAZARD_RDNA_H
#define TL_ISA_HAZARD_RDNA_H

#include "isa/hazard_rules.h"
#include "isa/isa.h"

typedef enum IsaRdnaRow {
#define RDNA_ROW(id, ...) ISA_RH_##id,
#include "isa/hazard_rdna.def"
#undef RDNA_ROW
    ISA_RH_COUNT
} IsaRdnaRow;

typedef struct IsaRdnaRowInfo {
    IsaHazardRule rule;
    bool gfx11, gfx12, wave32, wave64;
    uint8_t valus, trans; /* so many vector instructions (or so many transcendental ones) in between do */
    const char *what, *fix;
} IsaRdnaRowInfo;

const IsaRdnaRowInfo *isa_rdna_row(IsaRdnaRow row);
/* Rows (bits) of a chip in waves of this size; 0 on CDNA. */
uint32_t isa_rdna_rows(IsaArch arch, bool wave64);

/* VALU instructions between two writes, and behind the second, within which gfx11 forwards a stale half. */
enum { ISA_FORWARD_BETWEEN = 2, ISA_FORWARD_BEHIND = 4 };

/* What an instruction is to the rows. */
typedef struct IsaRdnaKind {
    bool valu, salu, smem, mem; /* mem: vector memory and LDS */
    bool nop, trans, wmma, cmpx, permlane;
    int8_t mask; /* operand that is a lane mask a VALU reads, -1: none */
    bool waits;  /* s_waitcnt_depctr, s_wait_alu: at most so many are left of ... */
    uint8_t va_vdst, va_sdst, va_vcc, sa_sdst;
} IsaRdnaKind;

IsaRdnaKind isa_rdna_kind(IsaArch arch, const IsaInst *in);
/* Does a scalar register (operand code of the chip) take part in the rows of scalars? Not m0, null and exec.
 */
bool isa_rdna_scalar(uint32_t code);

#endif
