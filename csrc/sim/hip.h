/* hip.h - what the files of the HIP API share: types as HIP's headers lay them out, process state, handles.
 *
 * All work is done when a call returns: streams keep order by nature, events record host time. A kernel's
 * fault is kept as the device's sticky error and answered by later calls, as HIP does for asynchronous
 * faults; a launch on registered host arrays answers it at once and leaves the device usable (hip_launch.c).
 */
#ifndef TL_SIM_HIP_H
#define TL_SIM_HIP_H

#include "sim/device.h"
#include "sim/env.h"

typedef enum hipError_t {
#define SIM_ERR(name, code, text) name = code,
#include "sim/hip_errors.def"
#undef SIM_ERR
} hipError_t;

enum {
    SIM_HIP_VERSION = 71460850 /* 7.14: major * 10^7 + minor * 10^5 + patch */,
    SIM_MAX_DEVICES = SIM_ENV_CHIPS
};

typedef struct SimDim3 { /* dim3 */
    uint32_t x, y, z;
} SimDim3;

typedef struct SimPitched { /* hipPitchedPtr */
    void *ptr;
    size_t pitch, xsize, ysize;
} SimPitched;

typedef struct SimExtent3 { /* hipExtent */
    size_t width, height, depth;
} SimExtent3;

typedef struct SimChannelDesc { /* hipChannelFormatDesc */
    int x, y, z, w, kind;
} SimChannelDesc;

typedef struct SimLocation { /* hipMemLocation */
    int type, id;
} SimLocation;

typedef struct SimIpcHandle { /* hipIpcMemHandle_t */
    char reserved[64];
} SimIpcHandle;

typedef struct KernelParams { /* hipKernelNodeParams */
    SimDim3 block;
    void **extra;
    void *function; /* a function or a kernel's host stub */
    SimDim3 grid;
    void **params;
    unsigned lds;
} KernelParams;

typedef enum HandleKind {
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_POOL,
    HANDLE_MEMORY,
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
    uint64_t id;
    /* while it captures (hip_capture.c) */
    struct Capture *capture;
    struct HipStream *next_in_capture;
    void **deps;
    size_t ndeps;
} HipStream;

typedef struct HipEvent {
    Handle h;
    uint32_t flags;
    bool recorded;
    uint64_t ns;
    uint64_t capture; /* id of the capture that it was recorded in, 0 = none */
    void **deps;
    size_t ndeps;
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
    _Atomic(HipFunction *) functions; /* those asked for, from any thread */
    TlArena arena;
} HipModule;

typedef struct HipDevice {
    SimDevice *sim;
    _Atomic(hipError_t) sticky; /* read without the lock */
    char gcn_arch[64];          /* "gfx942:sramecc+:xnack-" */
    uint32_t flags;
    void *pool;           /* default memory pool, made on demand */
    void *current_pool;   /* another one that was set; NULL: the default */
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
hipError_t sim_hip_answer(hipError_t e);
/* The same; instead of success the sticky error of the current device, if there is one. */
hipError_t sim_hip_result(hipError_t e);
hipError_t sim_hip_last(bool clear);
/* The sticky error of the current device, hipSuccess if none; hipErrorNoDevice without one. */
hipError_t sim_hip_check(HipDevice **d);
bool sim_hip_handle_add(Handle *h); /* false: out of memory */
/* Between the two the functions of all modules stay what they are (unload: nobody launches). */
void sim_hip_modules_hold(bool unload);
void sim_hip_modules_drop(void);
bool sim_hip_handle_remove(const void *p, HandleKind kind);
bool sim_hip_handle_valid(const void *p, HandleKind kind);
/* A device that is none of HIP's (made by tlsim_device_create): it is looked after when the process forks. */
bool sim_hip_track(SimDevice *d); /* false: out of memory */
void sim_hip_untrack(const SimDevice *d);
void sim_hip_fat_fork(bool before);     /* hip_fat.c */
void sim_hip_capture_fork(bool before); /* hip_capture.c */
void sim_hip_virtual_fork(bool before); /* hip_virtual.c */
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

/* ---- hip_module.c ---- */

/* hipModuleLoadData; managed variables of these names exist already. */
hipError_t sim_hip_load(void **module, const void *image, const SimManaged *known);

/* ---- hip_more.c ---- */

/* A second name or a refused function; NULL: there is no such export. */
void *sim_hip_more(const char *name);
/* hipErrorNotSupported; the first time (*said: not) stderr is told what. */
hipError_t sim_hip_refuse(const char *what, atomic_bool *said);

/* ---- hip_launch.c ---- */

/* Runs a kernel now. partial: threads of the last workgroup in each dimension, or NULL. */
hipError_t sim_hip_run(HipFunction *f, const KernelParams *p, const uint32_t *partial, bool cooperative);
/* A launch on a stream: run, or kept as a node. p->function: a function or a host stub. */
hipError_t sim_hip_launch(const KernelParams *p, const uint32_t *partial, bool cooperative, void *stream);

/* The explicit arguments as one (malloc'ed) buffer, from either form. */
hipError_t sim_hip_pack(HipFunction *f, void **params, void **extra, uint8_t **buf, size_t *size);

/* ---- hip_pool.c, hip_memory.c ---- */

void sim_hip_pool_change(uint64_t tag, uint64_t size, bool more); /* memory with this tag came or went */
void sim_hip_pool_fork(bool before);
hipError_t sim_hip_malloc_async(void **p, size_t n, void *stream, int device, uint64_t tag);

/* ---- hip_virtual.c ---- */

/* Is some of [p, p + n) reserved? Then the host may touch only what devices may. */
bool sim_hip_virtual_touches(const void *p, size_t n);

/* ---- hip_range.c ---- */

void sim_hip_forget_hints(uint64_t base, uint64_t size); /* the memory is gone */
void sim_hip_range_fork(bool before);

/* ---- hip_memory.c, hip_stream.c: the work itself, whatever the stream ---- */

hipError_t sim_hip_copy(void *dst, const void *src, size_t n, int kind);
/* Does [p, p + n) stay in the allocation in which it starts? *d is its device, NULL: host memory. */
bool sim_hip_range_ok(const void *p, size_t n, HipDevice **d);
/* Do rows that start in an allocation end there, the last one too? Nothing is to be done otherwise. */
bool sim_hip_rows_ok(const void *p, size_t width, size_t height, size_t depth, size_t pitch, size_t slice);
/* Is something there, all over? Memory of the device that was freed is not. */
bool sim_hip_mapped(const void *p, size_t n);
hipError_t sim_hip_fill(void *dst, uint32_t value, uint32_t size,
                        size_t count); /* elements of 1, 2, 4 bytes */
hipError_t sim_hip_record(void *event);

/* ---- hip_capture.c ---- */

/* Before work on a stream: may it be done? *capturing: it is to become a node of that stream's graph. */
hipError_t sim_hip_enter(void *stream, HipStream **capturing);
hipError_t sim_hip_enter_sync(void); /* before work that waits, on the legacy stream */
hipError_t sim_hip_unsafe(void);     /* before calls that a capture may forbid (allocation) */
hipError_t sim_hip_wait_stream(void *stream);
hipError_t sim_hip_wait_event(HipEvent *ev);
hipError_t sim_hip_capture_record(HipStream *s, HipEvent *ev, unsigned flags);
/* *done: the wait belongs to a capture and nothing is left to do. */
hipError_t sim_hip_capture_wait(void *stream, HipEvent *ev, unsigned flags, bool *done);

/* ---- hip_fat.c ---- */

/* The function of a handle or of a kernel's host stub, on the current device. */
hipError_t sim_hip_function(const void *host, void **function);

/* ---- hip_report.c ---- */

/* After a faulted launch: the reports go to stderr (unless quiet), to the file that TILELANG_SIM_REPORT
 * names, and are kept as this thread's last report. NULL: the launch was clean, the thread has none. */
void sim_hip_tell(SimDevice *d, bool quiet);

/* What every function answers with. ANSWER: of the few that say what the host knows of itself and of devices,
 * and of launches, which do not wait for their kernel. */
#define RETURN(e) return sim_hip_result(e)
#define ANSWER(e) return sim_hip_answer(e)
/* Every function of the table in hip_sim.def has this prototype there. */
#define SIM_HIP(name, args)            TL_API hipError_t name args;
#define SIM_HIP_AS(result, name, args) TL_API result name args;
#include "sim/hip_sim.def"
#undef SIM_HIP
#undef SIM_HIP_AS

#endif
