/* tlsim.c - private entry points (contract in tlsim.h). */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"
#include "sim/mfma_hw.h"
#include "sim/tlsim.h"

static SimDevice *
pick(SimDevice *dev)
{
    return dev ? dev : sim_hip_current_device();
}

uint32_t
tlsim_checks_available(void)
{
    return sim_checks_available();
}

const char *
tlsim_check_name(uint32_t check)
{
    return check <= SIM_FAULT_OOM ? sim_check_name((SimCheck)check) : NULL;
}

bool
tlsim_arch_available(const char *arch)
{
    IsaArch a;
    return isa_arch_by_name(arch, &a) && sim_arch_available(a);
}

const char *
tlsim_target_name(uint32_t mach)
{
    return sim_target_name(mach);
}

bool
tlsim_target_suits(const char *target, const char *arch)
{
    IsaArch a;
    return isa_arch_by_name(arch, &a) && sim_target_suits(target, a);
}

SimDevice *
tlsim_device_create(const char *arch, uint32_t checks, uint32_t threads, char *why, size_t n)
{
    SimDeviceOptions o = {.checks = checks, .threads = threads};
    if (!isa_arch_by_name(arch, &o.arch)) {
        sim_unknown_arch(arch, why, n);
        return NULL;
    }
    SimDevice *d = sim_device_new(&o, why, n);
    if (d && !sim_hip_track(d)) {
        snprintf(why, n, "out of memory");
        sim_device_free(d);
        d = NULL;
    }
    return d;
}

void
tlsim_device_destroy(SimDevice *dev)
{
    if (dev)
        sim_hip_untrack(dev);
    sim_device_free(dev);
}

bool
tlsim_device_option(SimDevice *dev, const char *name, uint64_t value)
{
    SimDevice *d = pick(dev);
    bool known = true;
    if (!d)
        return false;
    pthread_mutex_lock(&d->launch_lock);
    if (!strcmp(name, "max_instructions"))
        d->max_instructions = value;
    else if (!strcmp(name, "seed"))
        d->seed = value;
    else if (!strcmp(name, "mfma_hw") && value <= 1)
        d->mfma_hw = value != 0;
    else if (!strcmp(name, "ignore"))
        d->ignore = (uint32_t)value;
    else if (!strcmp(name, "late") && value <= 1)
        d->late = value;
    else if (!strcmp(name, "threads") && value >= 1 && value <= 1024)
        d->threads = (uint32_t)value;
    else
        known = false;
    pthread_mutex_unlock(&d->launch_lock);
    return known;
}

bool
tlsim_hazard_rules(const char *list, uint32_t *set, char *why, size_t n)
{
    *set = sim_env_rules();
    if (!list || isa_hazard_rules(list, set))
        return true;
    isa_hazard_rules_list(why, n);
    return false;
}

const char *
tlsim_hazard_rule(uint32_t rule)
{
    return isa_hazard_rule((IsaHazardRule)rule);
}

int32_t
tlsim_mfma_known(const char *arch, const char *mnemonic)
{
    IsaArch a;
    SimHwDot h;
    if (!isa_arch_by_name(arch, &a))
        return -1;
    char name[64]; /* of a pair's half, v_dual_dot2acc_f32_f16: as the tables have it */
    bool dual = !strncmp(mnemonic, "v_dual_", 7);
    snprintf(name, sizeof name, "%s%s", dual ? "v_" : "", mnemonic + (dual ? 7 : 0));
    return isa_chip_has(a, name) ? (int32_t)sim_hw_by_name(a, name, &h) : SIM_HW_NOT_MATRIX;
}

uint64_t
tlsim_device_option_value(SimDevice *dev, const char *name)
{
    SimDevice *d = pick(dev);
    if (!d)
        return 0;
    pthread_mutex_lock(&d->launch_lock);
    uint64_t v = !strcmp(name, "seed") ? d->seed : !strcmp(name, "late") ? d->late : 0;
    pthread_mutex_unlock(&d->launch_lock);
    return v;
}

void
tlsim_cancel(SimDevice *dev)
{
    SimDevice *d = pick(dev);
    if (d)
        atomic_store(&d->cancel, true);
}

void
tlsim_counters(SimDevice *dev, uint64_t *launches, uint64_t *instructions)
{
    SimDevice *d = pick(dev);
    *launches = d ? atomic_load(&d->launches) : 0;
    *instructions = d ? atomic_load(&d->instructions) : 0;
}

void
tlsim_progress(SimDevice *dev, uint64_t *done, uint64_t *total)
{
    SimDevice *d = pick(dev);
    *done = d ? atomic_load(&d->groups_done) : 0;
    *total = d ? atomic_load(&d->groups_total) : 0;
}

/* ---- memory ---- */

void *
tlsim_malloc(SimDevice *dev, uint64_t size, const char *name)
{
    SimDevice *d = pick(dev);
    return d ? sim_mem_alloc(d->mem, size, SIM_EXT_MALLOC, false, name) : NULL;
}

bool
tlsim_free(SimDevice *dev, void *p)
{
    SimDevice *d = pick(dev);
    return d && sim_device_release(d, (uint64_t)p, SIM_EXT_MALLOC);
}

bool
tlsim_protect(SimDevice *dev, void *p)
{
    SimDevice *d = pick(dev);
    return d && sim_mem_protect(d->mem, (uint64_t)p);
}

void
tlsim_copy_in(SimDevice *dev, void *dst, const void *src, uint64_t n)
{
    SimDevice *d = pick(dev);
    sim_dm_move((uint64_t)dst, (uint64_t)src, n);
    if (d)
        sim_mem_define(d->mem, (uint64_t)dst, n);
}

void
tlsim_copy_out(SimDevice *dev, void *dst, const void *src, uint64_t n)
{
    (void)dev;
    sim_dm_move((uint64_t)dst, (uint64_t)src, n);
}

uint64_t
tlsim_register_array(SimDevice *dev, const void *data, uint32_t ndim, const int64_t *shape,
                     const int64_t *strides, uint32_t itemsize, const char *name)
{
    SimDevice *d = pick(dev);
    return d ? sim_mem_register(d->mem, data, ndim, shape, strides, itemsize, name) : 0;
}

bool
tlsim_unregister_array(SimDevice *dev, uint64_t id)
{
    SimDevice *d = pick(dev);
    return d && sim_mem_unregister(d->mem, id);
}

/* ---- modules ---- */

SimImage *
tlsim_module_load(SimDevice *dev, const void *data, uint64_t size, char *why, size_t n)
{
    SimDevice *d = pick(dev);
    if (d)
        return sim_device_load(d, data, size, why, n);
    snprintf(why, n, "no device");
    return NULL;
}

void
tlsim_module_unload(SimDevice *dev, SimImage *im)
{
    SimDevice *d = pick(dev);
    if (d)
        sim_device_unload(d, im);
}

uint32_t
tlsim_kernel_count(const SimImage *im)
{
    return im->kernels.len;
}

SimKernel *
tlsim_kernel_at(SimImage *im, uint32_t i)
{
    return i < im->kernels.len ? &im->kernels.data[i] : NULL;
}

const char *
tlsim_kernel_name(const SimKernel *k)
{
    return k->name;
}

void
tlsim_kernel_info(const SimKernel *k, TlsimKernelInfo *out)
{
    const SimImage *im = k->image;
    *out = (TlsimKernelInfo){
        .sgpr_count = k->sgpr_count,
        .vgpr_count = k->vgpr_count,
        .agpr_count = k->agpr_count,
        .sgpr_spill_count = k->sgpr_spill_count,
        .vgpr_spill_count = k->vgpr_spill_count,
        .group_size = k->group_size,
        .private_size = k->private_size,
        .kernarg_size = TL_MAX(k->kernarg_size, k->meta_kernarg_size),
        .kernarg_align = k->kernarg_align,
        .max_flat_workgroup_size = k->max_flat_workgroup_size,
        .wavefront_size = k->wave64 ? 64 : 32,
        .dynamic_stack = k->dynamic_stack,
        .uniform_work_group = k->uniform_work_group,
        .has_metadata = k->has_metadata,
        .nargs = k->nargs,
        .allocated_vgprs = sim_kernel_vgprs(k),
        .code_bytes = k->size,
        .count_words = sim_image_count_words(im),
        .count_base = (int64_t)(im->code_lo - k->entry),
    };
    memcpy(out->reqd_workgroup_size, k->reqd_workgroup_size, sizeof out->reqd_workgroup_size);
}

uint32_t
tlsim_occupancy(SimDevice *dev, const SimKernel *k, uint32_t threads, uint32_t dynamic_lds)
{
    return sim_occupancy(dev, k, threads, dynamic_lds);
}

bool
tlsim_kernel_arg(const SimKernel *k, uint32_t i, TlsimArg *out)
{
    if (i >= k->nargs)
        return false;
    const SimArg *a = &k->args[i];
    *out = (TlsimArg){.offset = a->offset, .size = a->size, .hidden = sim_arg_hidden(a)};
    snprintf(out->name, sizeof out->name, "%s", a->name);
    snprintf(out->kind, sizeof out->kind, "%s", a->kind_name);
    return true;
}

uint32_t
tlsim_disassemble(SimKernel *k, int64_t pc, char *text, size_t text_n, char *mnemonic, size_t mn_n,
                  char *file, size_t file_n, uint32_t *line, bool *known)
{
    SimImage *im = k->image;
    uint64_t at = k->entry + (uint64_t)pc;
    const char *why = "", *name;
    TlArena a;
    TlText t;
    IsaInst inst;
    if (at < im->code_lo || at >= im->code_hi)
        return 0;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    *known = isa_decode(im->arch, k->wave64, sim_dm_host(at), im->code_hi - at, &inst, &why);
    if (*known)
        isa_print(im->arch, k->wave64, &inst, &t);
    else
        isa_print_unknown(sim_dm_host(at), im->code_hi - at, why, &t);
    snprintf(text, text_n, "%s", t.data && !t.failed ? t.data : "");
    const IsaOpInfo *info = *known ? isa_op_info(inst.op) : NULL;
    snprintf(mnemonic, mn_n, "%s", info ? info->name : "");
    file[0] = 0;
    *line = 0;
    if (sim_image_line(im, at, &name, line))
        snprintf(file, file_n, "%s", name);
    tl_arena_free(&a);
    return inst.size ? inst.size : 4;
}

/* ---- launches ---- */

int32_t
tlsim_launch(SimDevice *dev, SimKernel *k, const uint32_t grid[3], const uint32_t block[3],
             uint32_t dynamic_lds, const void *kernarg, uint64_t kernarg_bytes, SimStats *stats)
{
    SimDevice *d = pick(dev);
    SimLaunch l = {.kernel = k,
                   .dynamic_lds = dynamic_lds,
                   .kernarg = kernarg,
                   .kernarg_bytes = kernarg_bytes,
                   .stats = stats};
    if (!d)
        return SIM_UNSUPPORTED;
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.block, block, sizeof l.block);
    int32_t st = (int32_t)sim_device_launch(d, &l);
    if (st == SIM_FAULTED)
        sim_report_append(d);
    return st;
}

const char *
tlsim_error(SimDevice *dev)
{
    SimDevice *d = pick(dev);
    return d ? d->error : "no device";
}

uint32_t
tlsim_report_count(SimDevice *dev)
{
    SimDevice *d = pick(dev);
    if (!d)
        return 0;
    pthread_mutex_lock(&d->launch_lock);
    uint32_t n = d->nreports;
    pthread_mutex_unlock(&d->launch_lock);
    return n;
}

bool
tlsim_report(SimDevice *dev, uint32_t i, SimReport *out)
{
    SimDevice *d = pick(dev);
    if (!d)
        return false;
    pthread_mutex_lock(&d->launch_lock);
    bool there = i < d->nreports;
    if (there)
        *out = d->reports[i];
    pthread_mutex_unlock(&d->launch_lock);
    return there;
}

uint64_t
tlsim_report_size(void)
{
    return sizeof(SimReport);
}

uint64_t
tlsim_report_text(SimDevice *dev, uint32_t i, char *out, uint64_t n)
{
    SimReport r;
    TlArena a;
    TlText t;
    uint64_t len = 0;
    if (n)
        out[0] = 0;
    if (!tlsim_report(dev, i, &r))
        return 0;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    sim_report_print(&r, &t);
    if (t.data && !t.failed) {
        len = t.len;
        snprintf(out, n, "%s", t.data);
    }
    tl_arena_free(&a);
    return len;
}

bool
tlsim_env_check(char *why, size_t n)
{
    return sim_env_check(why, n);
}

bool
tlsim_exec_bytes(const char *arch, bool wave64, const uint8_t *code, uint64_t size, uint64_t max_instructions,
                 SimWaveState *state, SimFault *fault)
{
    IsaArch a;
    memset(fault, 0, sizeof *fault);
    if (!isa_arch_by_name(arch, &a)) {
        fault->check = SIM_FAULT_ILLEGAL;
        snprintf(fault->message, sizeof fault->message, "unknown architecture '%s'", arch);
        return false;
    }
    if (!sim_env_check(fault->message, sizeof fault->message)) {
        fault->check = SIM_FAULT_ILLEGAL;
        return false;
    }
    return sim_exec_bytes(a, wave64, code, size, max_instructions, NULL, state, fault);
}

void
tlsim_inst_text(const char *arch, bool wave64, const uint8_t *code, uint64_t size, char *text, size_t n)
{
    IsaArch a;
    IsaInst inst;
    TlArena arena;
    TlText t;
    const char *why = "";
    *text = 0;
    if (!isa_arch_by_name(arch, &a))
        return;
    tl_arena_init(&arena, NULL);
    tl_text_init(&t, &arena);
    if (isa_decode(a, wave64, code, size, &inst, &why))
        isa_print(a, wave64, &inst, &t);
    else
        isa_print_unknown(code, size, why, &t);
    if (!t.failed && t.data)
        snprintf(text, n, "%s", t.data);
    tl_arena_free(&arena);
}

uint64_t
tlsim_wave_state_size(void)
{
    return sizeof(SimWaveState);
}
