/* hip.h - what the files of the HIP API share: types as HIP's headers lay them out, process state, handles.
 *
 * All work is done when a call returns: streams keep order by nature, events record host time. A kernel's
 * fault is kept as the device's sticky error and answered by later calls, as HIP does for asynchronous
 * faults; a launch on registered host arrays answers it at once and leaves the device usable (hip_launch.c).
 */
#ifndef TL_SIM_HIP_H
#define TL_SIM_HIP_H

#include "sim/device.h"

typedef enum hipError_t {
#define SIM_ERR(name, code, text) name = code,
#include "sim/hip_errors.def"
#undef SIM_ERR
} hipError_t;

enum { SIM_HIP_VERSION = 70260850 /* 7.2: major * 10^7 + minor * 10^5 + patch */, SIM_MAX_DEVICES = 16 };

typedef enum HandleKind {
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_POOL,
    HANDLE_KINDS
} HandleKind;

typedef struct Handle { /* head of every object a client holds a pointer to */
    HandleKind kind;
    int device;
} Handle;

typedef struct HipStream {
    Handle h;
    uint32_t flags;
    int priority;
} HipStream;

typedef struct HipEvent {
    Handle h;
    uint32_t flags;
    bool recorded;
    uint64_t ns;
} HipEvent;

typedef struct HipFunction {
    Handle h;
    SimKernel *kernel;
    uint32_t max_dynamic_lds;
    struct HipFunction *next;
} HipFunction;

typedef struct HipModule {
    Handle h;
    SimImage *image;
    HipFunction *functions;
    TlArena arena;
} HipModule;

typedef struct HipDevice {
    SimDevice *sim;
    hipError_t sticky;
    char gcn_arch[64]; /* "gfx942:sramecc+:xnack-" */
    uint32_t flags;
    void *pool;           /* default memory pool, made on demand */
    pthread_mutex_t lock; /* around a launch and what is read of it afterwards */
    /* statistics of the last launch (tlsim_last_stats) */
    SimStats stats;
    bool stats_on;
    SimKernel *stats_kernel;
    SimImage *stats_image;
} HipDevice;

/* ---- hip_state.c ---- */

int sim_hip_device_count(void);       /* 0: the configuration is faulty (a message went to stderr) */
HipDevice *sim_hip_device(int index); /* NULL: no such device */
int sim_hip_current(void);
void sim_hip_set_current(int device);
/* Remembers an error for hipGetLastError and returns it. */
hipError_t sim_hip_result(hipError_t e);
hipError_t sim_hip_last(bool clear);
/* The sticky error of the current device, hipSuccess if none; hipErrorNoDevice without one. */
hipError_t sim_hip_check(HipDevice **d);
bool sim_hip_handle_add(Handle *h); /* false: out of memory */
bool sim_hip_handle_remove(const void *p, HandleKind kind);
bool sim_hip_handle_valid(const void *p, HandleKind kind);
/* The device whose memory holds addr; NULL: none. */
HipDevice *sim_hip_owner(const void *p, SimExtent *x);

/* NULL, 1 (legacy) and 2 (per thread) are the default streams. */
static inline bool
sim_hip_stream_ok(const void *s)
{
    return (uintptr_t)s <= 2 || sim_hip_handle_valid(s, HANDLE_STREAM);
}

/* ---- hip_bundle.c ---- */

/* A copy (to be freed) of the code object for this device that an image holds, and its length. */
hipError_t sim_hip_image(const void *image, const HipDevice *d, uint8_t **data, uint64_t *size);

/* ---- hip_launch.c ---- */

hipError_t sim_hip_run(HipFunction *f, const uint32_t grid[3], const uint32_t block[3], uint32_t lds,
                       void **params, void **extra, bool cooperative);

/* The explicit arguments as one (malloc'ed) buffer, from either form. */
hipError_t sim_hip_pack(HipFunction *f, void **params, void **extra, uint8_t **buf, size_t *size);

/* ---- hip_fat.c ---- */

/* The function of a handle or of a kernel's host stub, on the current device. */
hipError_t sim_hip_function(const void *host, void **function);

/* ---- hip_report.c ---- */

/* After a faulted launch: the reports go to stderr (unless quiet), to the file that TILELANG_SIM_REPORT
 * names, and are kept as this thread's last report. NULL: the launch was clean, the thread has none. */
void sim_hip_tell(SimDevice *d, bool quiet);

typedef struct SimDim3 { /* dim3 */
    uint32_t x, y, z;
} SimDim3;

#define RETURN(e) return sim_hip_result(e)
/* Every function of the table in hip_sim.def has this prototype there. */
#define SIM_HIP(name, args)            TL_API hipError_t name args;
#define SIM_HIP_AS(result, name, args) TL_API result name args;
#include "sim/hip_sim.def"
#undef SIM_HIP
#undef SIM_HIP_AS

#endif
