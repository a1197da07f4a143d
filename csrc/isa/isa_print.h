/* isa_print.h - what the files of the printer share; private to isa/. */
#ifndef TL_ISA_PRINT_H
#define TL_ISA_PRINT_H

#include "isa/isa_int.h"

typedef struct IsaPrinter {
    IsaArch arch;
    const IsaInst *in;
    const IsaRow *row;
    const IsaOpnd *first; /* operand of the row's first spec */
    TlText *out;
} IsaPrinter;

static inline bool
is_gfx9(const IsaPrinter *p)
{
    return p->arch <= ISA_GFX950;
}

/* An inline constant or literal operand; an immediate of the instruction. */
void isa_print_const(const IsaPrinter *p, const IsaOpnd *o);
void isa_print_imm(const IsaPrinter *p, const IsaOpnd *o);

#endif
