/* tlsim.h - the simulator's private entry points: what tilelang.sim and our own runtime use beyond HIP.
 *
 * `dev` NULL means the calling thread's current HIP device. Texts are copied into the caller's buffers.
 * Status codes are SimStatus. Layouts are fixed: they are read through ctypes. */
#ifndef TL_SIM_TLSIM_H
#define TL_SIM_TLSIM_H

#include "sim/device.h"

typedef struct TlsimKernelInfo {
    uint32_t sgpr_count, vgpr_count, agpr_count, sgpr_spill_count, vgpr_spill_count;
    uint32_t group_size, private_size, kernarg_size, kernarg_align;
    uint32_t max_flat_workgroup_size, wavefront_size, reqd_workgroup_size[3];
    uint32_t dynamic_stack, uniform_work_group, has_metadata, nargs, allocated_vgprs;
    uint64_t code_bytes;  /* 0 = unknown */
    uint64_t count_words; /* length of pc_counts for tlsim_launch */
    int64_t count_base;   /* pc_counts[i] counts the instruction at count_base + 4 * i bytes from the entry */
} TlsimKernelInfo;

typedef struct TlsimArg {
    uint32_t offset, size, hidden, pad;
    char name[128], kind[64];
} TlsimArg;

TL_API uint32_t tlsim_checks_available(void);
TL_API const char *tlsim_check_name(uint32_t check); /* NULL past the last */
/* The target of EF_AMDGPU_MACH ("gfx1030", "gfx11-generic"); NULL: there is no such number. */
TL_API const char *tlsim_target_name(uint32_t mach);
/* Does a simulated chip run code for a target? */
TL_API bool tlsim_target_suits(const char *target, const char *arch);
TL_API bool tlsim_arch_available(const char *arch);

TL_API SimDevice *tlsim_device_create(const char *arch, uint32_t checks, uint32_t threads, char *why,
                                      size_t n);
TL_API void tlsim_device_destroy(SimDevice *dev);
TL_API uint64_t tlsim_device_option_value(SimDevice *dev, const char *name); /* of "seed", "late" */
/* "max_instructions" (a wave), "seed" (0 = in order), "threads", "mfma_hw", "late" (0, 1), "ignore" (a set of
 * hazard rules); false: no such option. */
TL_API bool tlsim_device_option(SimDevice *dev, const char *name, uint64_t value);
/* Names of hazard rules as a set; NULL: those of TILELANG_SIM_IGNORE. false: one does not exist, why lists
 * those that do. */
TL_API bool tlsim_hazard_rules(const char *list, uint32_t *set, char *why, size_t n);
TL_API const char *tlsim_hazard_rule(uint32_t rule); /* "": none */
/* What is known of the chip's summation in this instruction (SimHwKnown: 0 not such an instruction, 1
 * nothing, 2 assumed, 3 hardware, 4 exact); -1: no such chip. */
TL_API int32_t tlsim_mfma_known(const char *arch, const char *mnemonic);
TL_API void tlsim_cancel(SimDevice *dev);
TL_API void tlsim_counters(SimDevice *dev, uint64_t *launches, uint64_t *instructions);

/* Workgroups of the running (or last) launch: ended, and in all. From any thread. */
TL_API void tlsim_progress(SimDevice *dev, uint64_t *done, uint64_t *total);

TL_API void *tlsim_malloc(SimDevice *dev, uint64_t size, const char *name);
TL_API bool tlsim_free(SimDevice *dev, void *p);
TL_API bool tlsim_protect(SimDevice *dev, void *p); /* stores of kernels to it are bounds faults */
TL_API void tlsim_copy_in(SimDevice *dev, void *dst, const void *src, uint64_t n);
TL_API void tlsim_copy_out(SimDevice *dev, void *dst, const void *src, uint64_t n);
TL_API uint64_t tlsim_register_array(SimDevice *dev, const void *data, uint32_t ndim, const int64_t *shape,
                                     const int64_t *strides, uint32_t itemsize, const char *name);
TL_API bool tlsim_unregister_array(SimDevice *dev, uint64_t id);

TL_API SimImage *tlsim_module_load(SimDevice *dev, const void *data, uint64_t size, char *why, size_t n);
TL_API void tlsim_module_unload(SimDevice *dev, SimImage *im);
TL_API uint32_t tlsim_kernel_count(const SimImage *im);
TL_API SimKernel *tlsim_kernel_at(SimImage *im, uint32_t i);
TL_API const char *tlsim_kernel_name(const SimKernel *k);
TL_API void tlsim_kernel_info(const SimKernel *k, TlsimKernelInfo *out);
/* Workgroups of so many threads that fit one CU (CDNA) or WGP (RDNA). */
TL_API uint32_t tlsim_occupancy(SimDevice *dev, const SimKernel *k, uint32_t threads, uint32_t dynamic_lds);
TL_API bool tlsim_kernel_arg(const SimKernel *k, uint32_t i, TlsimArg *out);
/* One instruction of the kernel's code object, `pc` bytes from the entry: text, mnemonic, source line ("" and
 * 0: unknown). Returns its size in bytes, 0 when pc lies outside; *known is false for an encoding that is not
 * known. */
TL_API uint32_t tlsim_disassemble(SimKernel *k, int64_t pc, char *text, size_t text_n, char *mnemonic,
                                  size_t mn_n, char *file, size_t file_n, uint32_t *line, bool *known);

TL_API int32_t tlsim_launch(SimDevice *dev, SimKernel *k, const uint32_t grid[3], const uint32_t block[3],
                            uint32_t dynamic_lds, const void *kernarg, uint64_t kernarg_bytes,
                            SimStats *stats);
TL_API const char *tlsim_error(SimDevice *dev); /* of the last launch that was refused */
TL_API uint32_t tlsim_report_count(SimDevice *dev);
TL_API bool tlsim_report(SimDevice *dev, uint32_t i, SimReport *out);
TL_API uint64_t tlsim_report_size(void);
TL_API uint64_t tlsim_report_text(SimDevice *dev, uint32_t i, char *out,
                                  uint64_t n); /* returns the full length */

/* sim/env.h: whether the variables of the environment hold what they may */
TL_API bool tlsim_env_check(char *why, size_t n);
TL_API bool tlsim_exec_bytes(const char *arch, bool wave64, const uint8_t *code, uint64_t size,
                             uint64_t max_instructions, SimWaveState *state, SimFault *fault);
/* Text of the instruction at code[0..size); "" for an architecture that does not exist. */
TL_API void tlsim_inst_text(const char *arch, bool wave64, const uint8_t *code, uint64_t size, char *text,
                            size_t n);
TL_API uint64_t tlsim_wave_state_size(void);

/* hip_state.c: the calling thread's current HIP device; NULL: none */
SimDevice *sim_hip_current_device(void);

#endif
