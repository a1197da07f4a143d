/* image.h - a loaded code object: ELF64 for AMDGPU, code object versions 4, 5 and 6.
 *
 * Every field of the file is checked against its length; a malformed file gives an error text, never a crash.
 * Segments are copied to fresh page-aligned memory and registered as code extents; relocations are applied
 * there. The file's bytes are kept for debug information. */
#ifndef TL_SIM_IMAGE_H
#define TL_SIM_IMAGE_H

#include "isa/isa.h"
#include "sim/exec.h"
#include "sim/mem.h"

typedef enum SimArgKind {
    SIM_ARG_UNKNOWN, /* a value_kind that the table does not have */
    SIM_ARG_BY_VALUE,
    SIM_ARG_GLOBAL_BUFFER,
    SIM_ARG_DYNAMIC_SHARED_POINTER,
#define HIDDEN(name, size, value) SIM_ARG_##name,
#include "sim/hidden_args.def"
#undef HIDDEN
    SIM_ARG_KIND_COUNT
} SimArgKind;

typedef struct SimArg {
    const char *name; /* "" when the metadata has none */
    const char *kind_name;
    SimArgKind kind;
    uint32_t offset, size;
} SimArg;

static inline bool
sim_arg_hidden(const SimArg *a)
{
    return a->kind > SIM_ARG_DYNAMIC_SHARED_POINTER || !strncmp(a->kind_name, "hidden_", 7);
}

typedef struct SimImage SimImage;

typedef struct SimKernel {
    SimImage *image;
    const char *name;                                /* without ".kd" */
    uint64_t descriptor;                             /* host address of the 64-byte descriptor */
    uint64_t entry;                                  /* host address of the first instruction */
    uint64_t size;                                   /* bytes of the function symbol, 0 = unknown */
    uint32_t group_size, private_size, kernarg_size; /* of the descriptor */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties, preload_length, preload_offset;
    bool wave64, empty; /* empty: the function symbol has 0 bytes, its body is unreachable */
    /* metadata; zero when there is none */
    bool has_metadata, uniform_work_group, dynamic_stack;
    uint32_t wavefront_size, sgpr_count, vgpr_count, agpr_count, sgpr_spill_count, vgpr_spill_count;
    uint32_t max_flat_workgroup_size, reqd_workgroup_size[3];
    uint32_t kernarg_align, meta_kernarg_size, meta_group_size, meta_private_size;
    SimArg *args;
    uint32_t nargs;
    /* kept between launches */
    uint64_t kernarg;
    uint64_t kernarg_bytes; /* rounded to 64 */
} SimKernel;

typedef struct SimSymbol {
    const char *name;
    uint64_t address, size;
    uint8_t type; /* STT_* */
    bool exported;
} SimSymbol;

typedef struct SimManaged { /* a __managed__ variable: memory that host and devices share */
    const char *name;
    uint64_t address, size;
    bool own; /* the image's, else its program's */
    const struct SimManaged *next;
} SimManaged;

struct SimImage {
    TlArena arena;
    SimMem *mem;
    IsaArch arch;            /* the device's, once it is loaded there */
    uint32_t archs;          /* chips that run it (bits 1 << IsaArch): several for a generic target */
    uint32_t abi_version;    /* code object version: 4, 5, 6 */
    uint32_t xnack, sramecc; /* 0 unsupported, 1 any, 2 off, 3 on (as e_flags) */
    uint8_t *file;
    uint64_t file_size;
    uint8_t *map; /* the segments */
    bool map_heap;
    uint64_t map_size;
    uint64_t bias;                /* host address = vaddr + bias */
    uint64_t code_lo, code_hi;    /* host range of the executable segments */
    SimCode *code[2];             /* [wave64]; made on demand */
    TlMap symbol_map, kernel_map; /* hash of the name -> index + 1; a collision is resolved by searching */
    TL_VEC(SimKernel) kernels;
    TL_VEC(SimSymbol) symbols;           /* functions and objects */
    TL_VEC(uint64_t) extents;            /* bases registered in mem */
    TL_VEC(SimManaged) managed;          /* managed.c */
    TL_VEC(const char *) printf_formats; /* amdhsa.printf */
    struct SimLines *lines;              /* made on demand */
    bool lines_tried;
};

/* False for a kernel whose body is unreachable where no code follows: it loads and may not be launched. */
static inline bool
sim_kernel_has_code(const SimKernel *k)
{
    return k->entry >= k->image->code_lo && k->entry < k->image->code_hi;
}

/* Counters of SimStats.pc_counts: one a dword of code and one for running off its end. */
static inline uint64_t
sim_image_count_words(const SimImage *im)
{
    return (im->code_hi - im->code_lo + 3) / 4 + 1;
}

/* The kernel's name for a text. */
#define SIM_KERNEL_LABEL(k) tl_shorten((char[160]){0}, 160, (k)->name)

/* Loads size bytes. NULL: error text in why[0..why_size). */
SimImage *sim_image_load(SimMem *mem, const void *data, uint64_t size, char *why, size_t why_size);
void sim_image_free(SimImage *im);
SimKernel *sim_image_kernel(SimImage *im, const char *name); /* with or without ".kd"; NULL: none */
const SimSymbol *sim_image_symbol(const SimImage *im, const char *name);
/* The decoded code; NULL: *why says so. Call under the device's launch lock. */
/* Does code for this target ("gfx942", "gfx11-generic") run on the chip? */
bool sim_target_suits(const char *name, IsaArch arch);
const char *sim_target_name(uint32_t mach); /* of EF_AMDGPU_MACH; NULL: there is no such number */
SimCode *sim_image_code(SimImage *im, bool wave64, const char **why);

/* The static checks' findings as JSON text (verify_api.c), freed by tlsim_text_free. NULL: why[0..n). */
char *sim_verify_image(SimImage *im, int64_t lds, uint32_t ignore, char *why, size_t n);

/* ---- variables that host and devices share (managed.c) ---- */

/* Memory for one, with the initial value; 0: out of memory. Freed as SIM_EXT_PINNED. */
uint64_t sim_managed_new(SimMem *m, const char *name, uint64_t size, uint64_t init);
/* Gives each managed variable of a loaded image its memory: that of `known` of the same name, or its own. */
bool sim_managed_bind(SimImage *im, const SimManaged *known, char *why, size_t why_size);
void sim_managed_drop(SimImage *im);
const SimManaged *sim_managed_find(const SimImage *im, const char *name);

/* ---- kernel arguments ---- */

typedef struct SimLaunchDims {
    uint32_t grid[3], block[3]; /* workgroups, threads */
    uint32_t partial[3];        /* threads of the last workgroup, 0 = full */
    uint32_t dynamic_lds;
    uint64_t queue_ptr, grid_sync;          /* grid_sync: of a cooperative launch */
    uint64_t printf_buffer, hostcall, heap; /* service.h */
} SimLaunchDims;
/* Writes the hidden arguments into kernarg[0..size) by their value_kind. */
void sim_fill_hidden(const SimKernel *k, const SimLaunchDims *d, uint64_t kernarg, uint64_t size);

/* ---- source lines (.debug_line versions 4 and 5) ---- */

typedef struct SimLines SimLines;
SimLines *sim_lines_read(const uint8_t *file, uint64_t size); /* NULL: none, malformed or out of memory */
void sim_lines_free(SimLines *l);
/* File and line of a vaddr; false: unknown. *file stays valid as long as l. */
bool sim_lines_find(const SimLines *l, uint64_t vaddr, const char **file, uint32_t *line);
/* The same for a host address of the image; reads the table on the first call (under the device's lock). */
bool sim_image_line(SimImage *im, uint64_t pc, const char **file, uint32_t *line);

#endif
