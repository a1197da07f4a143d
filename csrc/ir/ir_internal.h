/* ir_internal.h - shared by the files of csrc/ir only. */
#ifndef TL_IR_INTERNAL_H
#define TL_IR_INTERNAL_H

#include "ir/ir.h"

/* Gives an operation that was built without results its results. */
bool tl_op_set_results(TlIr *ir, TlOp o, const TlType *types, uint32_t n);

/* Puts a detached operation into a block before another (0: at the end). */
void tl_op_link_before_(TlIr *ir, TlOp o, TlBlock b, TlOp before);

/* Adds an attribute to an operation, or to the kernel when o is 0. */
bool tl_attr_put_(TlIr *ir, TlOp o, TlKernelId k, const TlAttr *a);

typedef struct TlFault { /* op 0: of the kernel as a whole */
    TlOp op;
    const char *text;
    uint32_t next; /* index + 1 of the next fault of the same operation */
} TlFault;
typedef TL_VEC(TlFault) TlFaults;

typedef struct TlVerifier {
    TlIr *ir;
    TlKernelId kernel;
    TlLevel level;
    TlFaults faults;
    TlMap first, last; /* op -> index + 1 of its first, last fault */
    uint8_t *seen_op, *visible;
    uint32_t depth;
    const TlMma *mma; /* newest matrix instruction looked up, by its attribute's string */
    TlStr mma_name;
    bool oom;
} TlVerifier;

/* Adds a fault; always returns false. */
bool tl_fault(TlVerifier *v, TlOp o, const char *fmt, ...) TL_PRINTF(3, 4);
const char *tl_type_text(TlIr *ir, TlType t);
/* The checks of one operation's own row beyond arity and attributes; verify_ops.c. */
void tl_verify_op(TlVerifier *v, TlOp o);

/* The kernel with its faults as comment lines under the operations; first: op -> index + 1 of its first
 * fault. */
void tl_print_faults(const TlIr *ir, TlKernelId k, TlText *out, const TlFaults *faults, const TlMap *first);

#endif
