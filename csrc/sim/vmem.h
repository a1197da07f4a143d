/* vmem.h - one vector memory instruction in flight: what bodies and checks share. */
#ifndef TL_SIM_VMEM_H
#define TL_SIM_VMEM_H

#include "sim/access.h"

typedef struct VmOp { /* decoded once, in the record as p */
    SimAcc acc;
    uint8_t seg, comps; /* comps: of typed accesses */
    bool offen, idxen, to_lds, typed;
} VmOp;

typedef struct VmLanes {
    uint64_t exec, ok;    /* active lanes; those that access memory (not out of range) */
    uint64_t lds, priv;   /* lanes in the flat apertures or scratch */
    uint64_t lo, hi;      /* hull of the global lanes */
    const SimExtent *one; /* the extent of all global lanes, NULL = several */
    bool partial;         /* room[] counts: some lane is cut by the range rule */
    uint8_t room[64];
    uint64_t va[64], ptr[64];
    uint32_t la[64]; /* LDS or scratch byte of such lanes */
    uint64_t undef[4];
} VmLanes;

/* Checked variant: init, race, wait bookkeeping of memory. false = stop. */
bool sim_vm_check_load(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);
bool sim_vm_check_store(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);
bool sim_vm_check_atomic(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);

void sim_vm_check_cache(SimWave *w, const SimRec *r); /* buffer_inv, buffer_wbl2 */

#endif
