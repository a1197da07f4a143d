/* trace.h - the trace record: what chosen waves executed, with what only the run knows (contract in trace.c).
 */
#ifndef TL_SIM_TRACE_H
#define TL_SIM_TRACE_H

#include "sim/core.h"

typedef struct SimTrace SimTrace;
typedef struct SimTraceWave SimTraceWave;

typedef enum SimTraceKind {
    SIM_TRACE_OTHER,
    SIM_TRACE_GLOBAL,
    SIM_TRACE_LDS,
    SIM_TRACE_SCRATCH,
    SIM_TRACE_SCALAR
} SimTraceKind;

typedef struct SimTraceOptions {
    const uint64_t *groups; /* linear workgroup numbers; NULL = all */
    uint64_t ngroups;
    uint32_t wave;      /* only this wave of each; UINT32_MAX = all */
    uint32_t values;    /* also the registers that each instruction wrote */
    uint64_t max_bytes; /* waves that start when this much is held are not recorded */
} SimTraceOptions;

SimTrace *sim_trace_new(const SimTraceOptions *o); /* NULL: out of memory */
void sim_trace_free(SimTrace *t);
/* The file (docs/trace.md) as malloc'ed bytes; NULL: out of memory. */
uint8_t *sim_trace_save(const SimTrace *t, const char *arch, const char *kernel, uint32_t wave_size,
                        uint64_t entry, uint64_t *size);

/* For a wave that starts: where its record goes, NULL when it is not wanted. */
SimTraceWave *sim_trace_start(SimTrace *t, const SimWave *w);
void sim_trace_before(SimWave *w, const SimRec *r);
void sim_trace_after(SimWave *w, const SimRec *r);
/* What follows is noted at this row (none when it is not there yet); returns the one in use before. For
 * memory operations that happen after their issue. */
uint64_t sim_trace_go(SimWave *w, uint64_t row);
/* Memory bodies tell their addresses: lanes of `exec`, n bytes each. */
void sim_trace_global(SimWave *w, const uint64_t *addr, uint64_t exec, uint32_t n, bool scratch);
void sim_trace_lds(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t n);
void sim_trace_scalar(SimWave *w, uint64_t addr, uint32_t n);

#endif
