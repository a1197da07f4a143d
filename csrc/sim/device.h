/* device.h - one simulated device: chip, memory, loaded code, launches, reports.
 *
 * Launches of one device run one after the other (launch_lock), each spread over the device's host threads.
 * What the HIP API and the private entry points do goes through here; nothing below knows HIP. */
#ifndef TL_SIM_DEVICE_H
#define TL_SIM_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "sim/image.h"

typedef struct SimChip {
    IsaArch arch;
    const char *gfx, *name, *features;
    uint32_t major, minor, stepping;
    uint32_t cus, simds_per_cu, waves_per_simd, vgprs_per_simd, vgpr_granule;
    uint32_t lds_per_group, lds_pool, lds_granule, cus_per_pool;
    uint64_t dram_gib;
    uint32_t bus_bits, clock_khz, mem_clock_khz, l2_kib, pci_device;
} SimChip;

const SimChip *sim_chip(IsaArch arch);

/* Names in reports, and in the texts for people; longer ones lose their middle. */
enum { SIM_NAME = 8192, SIM_LABEL = 160 };

typedef struct SimReport { /* flat: read through the private entry points too */
    uint32_t check;        /* SimCheck */
    uint32_t wg[3], wave;
    uint32_t other_wave;       /* UINT32_MAX = none */
    uint32_t line, other_line; /* 0 = unknown */
    uint64_t lanes, count;     /* lane mask (0: the whole wave); how often it occurred */
    int64_t pc, other_pc;      /* bytes from the kernel's entry; other_pc INT64_MIN = none */
    uint64_t address;          /* global address, or offset in LDS or scratch */
    uint32_t has_address;
    uint32_t rule; /* of a hazard: IsaHazardRule */
    char message[SIM_MESSAGE], text[160], other_text[160];
    char buffer[SIM_WHERE]; /* where a global address is; "" = none */
    /* function: that the kernel called and in which pc lies; "" = the kernel */
    char kernel[SIM_NAME], function[SIM_NAME], other_function[SIM_NAME], file[1024], other_file[1024];
} SimReport;

enum { SIM_MAX_REPORTS = 64, SIM_HEAP_BYTES = 1 << 30 /* at first; taken from the host only when used */ };

typedef struct SimDevice {
    const SimChip *chip;
    uint32_t cus; /* may be fewer than the chip's */
    uint32_t checks, threads;
    uint32_t ignore; /* hazard rules that are left out; at first TILELANG_SIM_IGNORE */
    uint64_t max_instructions, seed;
    bool mfma_hw;       /* SimLaunchInfo.mfma_hw; at first TILELANG_SIM_MFMA=hw */
    bool late, strict;  /* delivery="late"; barriers by PC */
    bool allow_foreign; /* unregistered host pointers may be kernel arguments */
    SimMem *mem;
    pthread_mutex_t launch_lock;
    atomic_uint_fast64_t groups_done, groups_total; /* of the running launch */
    atomic_bool cancel;                             /* set from another thread: the running launch stops */
    uint64_t queue, packet, grid_sync;              /* system extents; grid_sync is made on demand */
    uint64_t dispatch_id;
    struct SimServices *services; /* made on demand */
    uint64_t heap_bytes;          /* for device malloc */
    SimGws *gws;
    TL_VEC(SimImage *) images;
    TlArena arena;
    /* of the last launch */
    SimReport *reports;
    uint32_t nreports;
    bool gave_up; /* there were so many faults that the launch was stopped: there may be more */
    char error[512];
    /* since creation */
    atomic_uint_fast64_t launches, instructions;
} SimDevice;

typedef struct SimDeviceOptions {
    IsaArch arch;
    uint32_t checks;  /* bits 1 << SimCheck, SIM_CHECK_STRICT */
    uint32_t threads; /* 0: TILELANG_SIM_THREADS or the number of cores */
    uint32_t cus;     /* 0: all of the chip */
    bool allow_foreign;
} SimDeviceOptions;

/* "unknown architecture 'x'; there are: gfx90a, ..." */
void sim_unknown_arch(const char *name, char *why, size_t n);

SimDevice *sim_device_new(const SimDeviceOptions *o, char *why, size_t why_size);
void sim_device_free(SimDevice *d); /* no launch may be running */

SimImage *sim_device_load(SimDevice *d, const void *data, uint64_t size, char *why, size_t why_size);
/* The same; the managed variables that `known` names are where it says. */
SimImage *sim_device_load_shared(SimDevice *d, const void *data, uint64_t size, const SimManaged *known,
                                 char *why, size_t why_size);
void sim_device_unload(SimDevice *d, SimImage *im);

/* Around fork(): waits until nothing runs on the device and keeps it so; gives it back on both sides. */
void sim_device_fork(SimDevice *d, bool before);

/* sim_mem_share, when no launch is running any more. */
int sim_device_share(SimDevice *d, uint64_t base);

/* sim_mem_stretches, when no launch is running any more. */
bool sim_device_stretches(SimDevice *d, uint64_t lo, uint64_t hi, const SimStretch *s, uint32_t n);

/* Frees memory of sim_mem_alloc, or ends what sim_mem_add began, when no launch is running any more. */
bool sim_device_release(SimDevice *d, uint64_t base, SimExtentKind kind);

typedef enum SimStatus {
    SIM_OK,
    SIM_FAULTED,      /* d->reports */
    SIM_BAD_CONFIG,   /* grid, block, LDS beyond the limits: d->error */
    SIM_NO_RESIDENCY, /* a cooperative launch that does not fit */
    SIM_NO_MEMORY,
    SIM_UNSUPPORTED, /* d->error */
    SIM_CANCELLED
} SimStatus;

typedef struct SimLaunch {
    SimKernel *kernel;
    uint32_t grid[3], block[3], partial[3];
    uint32_t dynamic_lds;
    const void *kernarg; /* explicit arguments at their offsets */
    uint64_t kernarg_bytes;
    bool cooperative;
    struct SimTrace *trace; /* NULL: none */
    SimStats *stats;        /* NULL: not wanted; pc_counts NULL or sim_image_count_words() zeroed counters */
} SimLaunch;

SimStatus sim_device_launch(SimDevice *d, const SimLaunch *l);

/* What HIP counts as a multiprocessor: CUs (CDNA) or WGPs (RDNA). */
uint32_t sim_multiprocessors(const SimDevice *d);
/* Workgroups of this size that fit one multiprocessor; 0: not even one. */
uint32_t sim_occupancy(const SimDevice *d, const SimKernel *k, uint32_t threads, uint32_t dynamic_lds);
uint32_t sim_kernel_vgprs(const SimKernel *k); /* as allocated (arch + acc) */

/* dispatch.c: runs the workgroups. Faults go to info->sink. */
SimStatus sim_dispatch(SimDevice *d, SimLaunchInfo *info, bool foreign, uint64_t residents, SimStats *stats);

/* report.c */
typedef struct SimReporter SimReporter;
SimReporter *sim_reporter_new(SimDevice *d, const SimKernel *k);
bool sim_reporter_sink(void *self, const SimFault *f);
bool sim_reporter_any(const SimReporter *r);
/* Moves the reports into the device (text and source lines added) and frees the reporter. */
void sim_reporter_finish(SimReporter *r);
/* A string as JSON has it, in quotes; bytes that are no UTF-8 become U+FFFD. */
void sim_put_json(TlText *out, const char *s);
/* Appends the reports of the last launch, a JSON object a line, to the file that TILELANG_SIM_REPORT names.
 */
void sim_report_append(const SimDevice *d);
/* One report as text, several lines. */
void sim_report_print(const SimReport *r, TlText *out);

#endif
