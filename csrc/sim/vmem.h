/* vmem.h - one vector memory instruction in flight: what bodies and checks share. */
#ifndef TL_SIM_VMEM_H
#define TL_SIM_VMEM_H

#include "sim/access.h"

typedef struct VmOp { /* decoded once, in the record as p */
    SimAcc acc;
    uint8_t seg, comps; /* comps: of typed accesses */
    bool offen, idxen, to_lds, typed;
    bool addtid; /* address = scalar base + 4 * lane */
    bool stores; /* of the bodies in vmem_more.c */
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
    SimUndef undef[4];
} VmLanes;

/* Fills v for the lanes of exec: addresses, segments, pointers. false = stop. */
bool sim_vm_lanes(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v, bool write, uint64_t exec);
bool sim_vm_is_cache(const char *name);

/* vmem_typed.c: elements of typed buffers; vmem_more.c: transposing, block and lane-numbered accesses. */
const SimRec *sim_body_typed_load(SimWave *w, const SimRec *r);
bool sim_typed_column(SimWave *w, const SimRec *r, VmLanes *v, uint32_t *row);
const SimRec *sim_body_typed_store(SimWave *w, const SimRec *r);
/* name: what follows the family, "load_tr_b64"; false = none of these. */
bool sim_vm_parse_more(const char *name, VmOp *op, SimBody *body);

/* Checked variant: init, race, wait bookkeeping of memory. false = stop. */
bool sim_vm_check_load(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);
bool sim_vm_check_store(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);
bool sim_vm_check_atomic(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v);

void sim_vm_check_cache(SimWave *w, const SimRec *r); /* cache control */

#endif
