/* exec.h - the execution core: decoded code, resident workgroups, one time slice of work, faults, statistics.
 *
 * A SimCode holds decode-once records for one loaded code range; it may be shared by all host threads
 * (records are made on first execution, under a lock). A SimGroup is one resident workgroup: its waves,
 * registers, LDS and scratch. Only one thread works on a group at a time; distinct groups are independent,
 * but for memory. Nothing here knows HIP, ELF or reports: faults go to the sink of the launch.
 */
#ifndef TL_SIM_EXEC_H
#define TL_SIM_EXEC_H

#include "base/base.h"
#include "isa/hazard_rules.h"
#include "isa/isa.h"
#include "sim/mem.h"

/* ---- checks
 * --------------------------------------------------------------------------------------------------- */

typedef enum SimCheck { /* bit numbers of SimLaunchInfo.checks; those after SIM_CHECK_COUNT are always on */
                        SIM_CHECK_BOUNDS,
                        SIM_CHECK_INIT,
                        SIM_CHECK_RACE,
                        SIM_CHECK_WAIT,
                        SIM_CHECK_HAZARD,
                        SIM_CHECK_BARRIER,
                        SIM_CHECK_COUNT,
                        SIM_FAULT_ILLEGAL =
                            SIM_CHECK_COUNT, /* unknown or unsupported instruction, PC outside the code */
                        SIM_FAULT_MEMORY,    /* address not mapped at all (found even when bounds is off) */
                        SIM_FAULT_TRAP,      /* s_trap */
                        SIM_FAULT_HANG,      /* instruction limit reached */
                        SIM_FAULT_OOM        /* the simulator could not allocate */
} SimCheck;
/* Not a check but a rule of "barrier", in the mask of a device: all waves that meet must be at one PC. */
#define SIM_CHECK_STRICT (1u << 31)
uint32_t sim_checks_available(void);    /* bit mask of the checks that are implemented */
const char *sim_check_name(SimCheck c); /* "bounds", ... */

#define SIM_AT_ZERO UINT64_MAX
/* Room for the longest texts: where an address is (sim_describe; names in it have at most 39 bytes), where an
 * undefined value comes from (an address and some words), what a fault says (an address and a race's
 * reasons). */
enum { SIM_WHERE = 288, SIM_ORIGIN = SIM_WHERE + 64, SIM_MESSAGE = SIM_WHERE + 352 };
typedef struct SimFault {
    SimCheck check;
    char message[SIM_MESSAGE];
    uint32_t wg[3];
    uint32_t wave;       /* index in the workgroup */
    uint64_t lanes;      /* lanes at fault; 0 = the whole wave */
    uint64_t pc;         /* host address of the instruction */
    uint64_t address;    /* global address or LDS/scratch byte offset; 0 = none, SIM_AT_ZERO = 0 */
    uint64_t other_pc;   /* the other party's instruction, 0 = unknown or none */
    uint32_t other_wave; /* UINT32_MAX = none */
    uint32_t rule;       /* of a hazard: IsaHazardRule */
    bool fatal;          /* the group cannot go on */
} SimFault;
/* Called by worker threads, possibly at once. Returns true to go on (a fatal fault ends the group anyway). */
typedef bool (*SimFaultSink)(void *self, const SimFault *f);

/* ---- code
 * ------------------------------------------------------------------------------------------------------ */

typedef struct SimCode SimCode; /* records of one code range, all variants (plain, checked, mode classes) */
/* [base, base + size) must stay mapped and unchanged while the SimCode lives. NULL: out of memory or an
 * architecture without bodies (then *why says so). */
SimCode *sim_code_new(const TlAlloc *alloc, IsaArch arch, bool wave64, uint64_t base, uint64_t size,
                      const char **why);
void sim_code_free(SimCode *c);
bool sim_arch_available(IsaArch arch);

/* ---- statistics: one block per worker thread, added up by the caller
 * ------------------------------------------- */

enum { SIM_WIDTH_1, SIM_WIDTH_2, SIM_WIDTH_4, SIM_WIDTH_8, SIM_WIDTH_12, SIM_WIDTH_16, SIM_WIDTH_COUNT };
typedef struct SimStats {
    uint64_t *pc_counts; /* executed waves-instructions, index (pc - code base) / 4; NULL = do not count */
    uint64_t instructions;
    uint64_t lds_conflict_cycles; /* sum over phases of (largest per-bank count - 1) */
    uint64_t lds_gap_accesses;    /* accesses for which no phase table is known */
    /* bytes moved by active lanes, by bytes a lane moves in one instruction */
    uint64_t global_read[SIM_WIDTH_COUNT], global_write[SIM_WIDTH_COUNT];
    uint64_t lds_read[SIM_WIDTH_COUNT], lds_write[SIM_WIDTH_COUNT];
    uint64_t scalar_read; /* bytes of scalar loads */
    uint64_t lds_dma;     /* bytes of loads straight to LDS */
    uint64_t atomics;     /* lanes of global atomics */
} SimStats;

/* ---- launch
 * ------------------------------------------------------------------------------------------------------ */

/* Counters of the global wave sync, one set a launch. */
typedef struct SimGws SimGws;
SimGws *sim_gws_new(void); /* NULL: out of memory */
/* groups: of a cooperative launch, which meet at the first counter; else 0. */
void sim_gws_reset(SimGws *g, uint32_t groups);
void sim_gws_free(SimGws *g);

typedef struct SimLaunchInfo {
    IsaArch arch;
    bool wave64;
    SimCode *code;
    uint64_t entry; /* host address of the first instruction */
    /* fields of the kernel descriptor */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties;                     /* kernel_code_properties */
    uint16_t preload_length, preload_offset; /* dwords */
    uint32_t grid[3];                        /* in workgroups */
    uint32_t block[3];                       /* threads of a full workgroup */
    uint32_t partial[3];                     /* threads of the last workgroup in each dimension; 0 = full */
    uint64_t kernarg, dispatch_ptr, queue_ptr, dispatch_id;
    uint32_t lds_bytes;        /* static + dynamic */
    uint32_t scratch_bytes;    /* per lane */
    uint32_t checks;           /* bits 1 << SimCheck */
    uint32_t ignore;           /* hazard rules that are left out, bits 1 << IsaHazardRule */
    uint64_t seed;             /* 0: waves in order; else permutes the order of waves, and what late does */
    uint64_t max_instructions; /* per wave, 0 = no limit; reaching it is SIM_FAULT_HANG */
    bool mfma_hw;              /* matrix and dot instructions sum as the chip does (mfma_hw.h) */
    bool late;                 /* results land as late as the waits allow (late.h); seed picks when */
    bool strict;               /* check "barrier": all waves at one barrier must be at one PC */
    SimFaultSink sink;
    void *sink_self;
    /* A wave sent an interrupt message (s_sendmsg 1). Not NULL: a fault, and its text. */
    const char *(*message)(void *self);
    void *message_self;
    SimGws *gws;            /* NULL: none */
    SimRace *race;          /* global-memory race shadow, NULL = none */
    struct SimTrace *trace; /* record of executed instructions, NULL = none */
} SimLaunchInfo;

/* Do the waves of a workgroup share a vector cache? Not when they may sit on several CUs: in WGP mode (gfx11,
 * gfx12) and with tg_split. */
static inline bool
sim_one_cache(const SimLaunchInfo *in)
{
    return !in || (in->arch <= ISA_GFX950 ? !(in->rsrc3 >> 16 & 1) : !(in->rsrc1 >> 29 & 1));
}

typedef enum SimRun {
    SIM_RUN_DONE,    /* all waves ended */
    SIM_RUN_YIELD,   /* budget used up, or a wave sleeps: run again */
    SIM_RUN_BLOCKED, /* every wave waits at a barrier that cannot be met (already reported) */
    SIM_RUN_FAULT    /* ended by a fatal fault or by the sink's wish */
} SimRun;

typedef struct SimGroup SimGroup;
/* A group for this launch; NULL: out of memory. The SimLaunchInfo must outlive it. */
SimGroup *sim_group_new(const TlAlloc *alloc, const SimLaunchInfo *info);
/* Puts the group at the start of workgroup (x, y, z). linear = dispatch order number. */
void sim_group_reset(SimGroup *g, uint32_t x, uint32_t y, uint32_t z, uint64_t linear);
/* Runs until done, blocked, fault, or about `budget` instructions of all its waves together. stats may be
 * NULL. */
SimRun sim_group_run(SimGroup *g, uint64_t budget, SimMemPort *port, SimStats *stats);
void sim_group_free(SimGroup *g);
uint32_t sim_group_wave_count(const SimGroup *g);
/* Where a wave stands: host PC; *state: 0 runs, 1 at a barrier, 2 ended, 3 asleep. */
uint64_t sim_group_wave_pc(const SimGroup *g, uint32_t wave, uint32_t *state);

/* ---- one wave on given bytes (tests, tilelang.sim.execute)
 * --------------------------------------------------------- */

typedef struct SimWaveState {
    uint64_t exec, vcc;
    uint32_t scc, m0;
    uint32_t mode;       /* MODE register: [3:0] round, [5:4] f32 denorm, [7:6] f16/f64 denorm, 8 dx10_clamp,
                            9 ieee; default SIM_MODE_DEFAULT */
    uint32_t s[128];     /* by scalar operand code; exec, vcc, m0 are taken from the fields above */
    uint32_t v[512][64]; /* VGPRs, then AGPRs from 256 */
    uint8_t *lds;        /* lds_bytes bytes, read and written in place; may be NULL when 0 */
    uint32_t lds_bytes;
    uint32_t mfma_hw; /* 1: as SimLaunchInfo.mfma_hw */
    uint32_t late;    /* 1: delivery="late" with this seed */
    uint64_t seed;
    /* checks beside bounds (bits 1 << SimCheck: init, wait, hazard), and for init what counts as defined:
     * scalars by operand code, lanes of rows, scc; all of LDS does */
    uint32_t checks, scc_given;
    uint64_t s_given[2], v_given[512];
    uint64_t ignore; /* hazard rules that are left out */
} SimWaveState;
enum { SIM_MODE_DEFAULT = 0x3f0 };

/* Runs `size` bytes of code from its start until it runs off the end or s_endpgm; after `max_instructions` it
 * is a hang. Memory accesses go through port (NULL: any access is a fault). Returns false with *fault filled
 * on a fault. */
bool sim_exec_bytes(IsaArch arch, bool wave64, const uint8_t *code, size_t size, uint64_t max_instructions,
                    SimMemPort *port, SimWaveState *state, SimFault *fault);
uint64_t sim_wave_state_size(void); /* sizeof(SimWaveState), for foreign callers */

#endif
