/* check.c - the checked variant. Only bounds is there so far: sim_checks_available() says so. */
#include "sim/core.h"


void sim_chk_prepare(SimBuild *b){(void)b;}
void sim_chk_reset(SimWave *w){(void)w;}
bool sim_chk_before(SimWave *w, const SimRec *r){(void)w;(void)r;return true;}
void sim_chk_after(SimWave *w, const SimRec *r){(void)w;(void)r;}
void sim_chk_barrier(SimGroup *g){(void)g;}
void sim_chk_wave_end(SimWave *w){(void)w;}
#include "sim/vmem.h"
bool sim_vm_check_load(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v){(void)w;(void)r;(void)op;(void)v;return true;}
bool sim_vm_check_store(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v){(void)w;(void)r;(void)op;(void)v;return true;}
bool sim_vm_check_atomic(SimWave *w, const SimRec *r, const VmOp *op, VmLanes *v){(void)w;(void)r;(void)op;(void)v;return true;}
bool sim_chk_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write){(void)w;(void)r;(void)addr;(void)exec;(void)bytes;(void)write;return true;}
bool sim_chk_lds_atomic(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes){(void)w;(void)r;(void)addr;(void)exec;(void)bytes;return true;}
uint64_t sim_chk_lds_undef(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t n, uint32_t part){(void)w;(void)part;(void)addr;(void)exec;(void)n;return 0;}
void sim_chk_lds_store(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes){(void)w;(void)src;(void)addr;(void)exec;(void)bytes;}
bool sim_chk_lds_dma(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, const uint64_t *undef){(void)w;(void)r;(void)addr;(void)exec;(void)bytes;(void)undef;return true;}
uint32_t sim_checks_available(void){return 1;}
