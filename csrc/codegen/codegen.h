/* codegen.h - from the printed text of one thread-level kernel to an AMDGPU code object. A pure function: no
 * state is shared between calls, nothing is written to disk, no process is started, any number of threads may
 * compile at once (the linking step alone, about 1.5 ms, is serialised by lld itself).
 *
 * Build: csrc/codegen/{codegen,cg_*}.c, link_lld.cc (g++ -std=c++17 -fno-exceptions -fno-rtti),
 * csrc/py/llvm_module.c and csrc/{base,target,ir}/ *.c, compiled with -fvisibility=hidden; `llvm-config
 * --cflags` for the include path; linked with -lLLVM-22 -llldELF -llldCommon -lz -lzstd -lstdc++ (in that
 * order), -Wl,--exclude-libs,ALL.
 *
 * Errors: false is returned and the reason stands in `diag`, with the location of the operation where there
 * is one.
 */
#ifndef TL_CODEGEN_CODEGEN_H
#define TL_CODEGEN_CODEGEN_H

#include "base/base.h"

typedef struct TlCodegenOptions {
    bool want_asm;       /* also give the assembly text (a second emission: about doubles the time) */
    bool want_llir;      /* also give the LLVM IR as built */
    bool no_line_tables; /* leave out the line tables (they cost little; simulator reports name Python lines
                            by them) */
    bool check_llvm_ir;  /* run LLVM's IR verifier (tests do; our own verifier has seen the text already) */
} TlCodegenOptions;

/* What the kernel uses, from the code object's own metadata. */
typedef struct TlResources {
    uint32_t vgprs; /* total of the unified file, AGPRs included where the chip has one file */
    uint32_t agprs;
    uint32_t sgprs;
    uint32_t lds_bytes;
    uint32_t scratch_bytes; /* per lane */
    uint32_t vgpr_spills, sgpr_spills;
    uint32_t kernarg_bytes; /* with the hidden arguments, if any */
    uint32_t wave_size;
    uint32_t max_workgroup; /* threads */
} TlResources;

typedef struct TlCodegenTimes { /* milliseconds of this call */
    double init;                /* target machine */
    double parse;               /* text -> IR, verification */
    double build;               /* IR -> LLVM IR */
    double opt;                 /* LLVM's middle end */
    double emit;                /* LLVM's back end: object file */
    double link;                /* lld */
    double total;
} TlCodegenTimes;

typedef struct TlCodeObject { /* memory of the arena */
    const uint8_t *hsaco;
    size_t hsaco_len;
    const char *asm_text; /* NULL unless asked for */
    size_t asm_len;
    const char *llir; /* NULL unless asked for */
    size_t llir_len;
    const char *kernel; /* symbol */
    TlResources resources;
    TlCodegenTimes times;
} TlCodeObject;

/* `tir_text` holds exactly one kernel at level thread; the target is its attribute `target`. */
bool tl_codegen(TlArena *arena, TlDiag *diag, const char *tir_text, size_t n, const TlCodegenOptions *options,
                TlCodeObject *out);

/* Reads the AMDGPU metadata note of a linked code object. */
bool tl_code_resources(TlDiag *diag, const uint8_t *elf, size_t n, const char *kernel, TlResources *out);

/* Version of the LLVM library that is loaded, e.g. "22.1.8". Static storage. */
const char *tl_codegen_llvm_version(void);

#endif
