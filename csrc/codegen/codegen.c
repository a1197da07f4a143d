/* codegen.c - see codegen.h: text -> IR -> LLVM IR -> object -> code object.
 *
 * One LLVM context a call, one target machine a call (0.1 ms), nothing cached but LLVM's own initialisation.
 * The middle end is early-cse only: with the attributes of cg_kernel.c set it gives the same loops as
 * default<O3> in a thirtieth of the time. LLVM reports some failures to the diagnostic handler only, with
 * emission "successful": an error there is a failure. What LLVM would abort on (cannot select) is kept out by
 * the checks of cg_*.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* a lock that prefers writers */
#endif
#include "codegen/codegen.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "codegen/cg.h"
#include "codegen/link_lld.h"

static const char TRIPLE[] = "amdgcn-amd-amdhsa";
static pthread_once_t llvm_once = PTHREAD_ONCE_INIT;

/* Idle target machines. One holds tables that LLVM computes at first use (aliases of registers: 3 ms of a
 * compilation), so they are kept; which one is taken makes no difference to the output. A lock that is held
 * is never waited for (after a fork its holder may be gone): then a new machine is made. */
enum { POOL_SIZE = 4 };
static struct {
    pthread_mutex_t lock;
    LLVMTargetMachineRef idle[TL_TARGET__COUNT][POOL_SIZE];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static LLVMTargetMachineRef
pool_take(TlTargetId id)
{
    LLVMTargetMachineRef tm = NULL;
    if (pthread_mutex_trylock(&pool.lock) != 0)
        return NULL;
    for (int i = 0; i < POOL_SIZE && !tm; i++) {
        tm = pool.idle[id][i];
        pool.idle[id][i] = NULL;
    }
    pthread_mutex_unlock(&pool.lock);
    return tm;
}

static void
pool_give(TlTargetId id, LLVMTargetMachineRef tm)
{
    if (pthread_mutex_trylock(&pool.lock) == 0) {
        for (int i = 0; i < POOL_SIZE && tm; i++)
            if (!pool.idle[id][i]) {
                pool.idle[id][i] = tm;
                tm = NULL;
            }
        pthread_mutex_unlock(&pool.lock);
    }
    if (tm)
        LLVMDisposeTargetMachine(tm);
}

static void
init_llvm(void)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser(); /* of inline assembly: cg_arith.c */
}

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

const char *
tl_codegen_llvm_version(void)
{
    return LLVM_VERSION_STRING;
}

/* ---- what belongs to one attempt ---- */

typedef struct Job {
    TlArena *arena;
    TlDiag *diag;
    const TlCodegenOptions *opts;
    TlIr ir;
    TlKernelId kernel;
    const TlTarget *target;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMTargetMachineRef tm;
    uint32_t llvm_errors;
    bool use_agprs;
} Job;

static bool
llvm_error(Job *j, char *message)
{
    tl_error(j->diag, (TlLoc){0}, TL_E_LLVM, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return false;
}

static void
on_diagnostic(LLVMDiagnosticInfoRef info, void *self)
{
    Job *j = self;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    j->llvm_errors++;
    llvm_error(j, LLVMGetDiagInfoDescription(info));
}

static bool
job_open(Job *j)
{
    LLVMTargetRef t;
    char *message = NULL;
    pthread_once(&llvm_once, init_llvm);
    j->tm = pool_take(j->target->id);
    if (!j->tm) {
        if (LLVMGetTargetFromTriple(TRIPLE, &t, &message))
            return llvm_error(j, message);
        j->tm = LLVMCreateTargetMachine(t, TRIPLE, j->target->name, "", LLVMCodeGenLevelLess, LLVMRelocPIC,
                                        LLVMCodeModelDefault);
    }
    j->ctx = LLVMContextCreate();
    if (!j->tm || !j->ctx)
        return tl_error(j->diag, (TlLoc){0}, TL_E_LLVM, "no target machine");
    LLVMContextSetDiagnosticHandler(j->ctx, on_diagnostic, j);
    return true;
}

static void
job_close(Job *j)
{
    if (j->mod)
        LLVMDisposeModule(j->mod);
    if (j->ctx)
        LLVMContextDispose(j->ctx);
    if (j->tm)
        pool_give(j->target->id, j->tm);
    j->mod = NULL;
    j->ctx = NULL;
    j->tm = NULL;
}

/* ---- IR -> LLVM IR ---- */

static LLVMTypeRef
elem_type(LLVMContextRef c, TlElem e)
{
    if (tl_elem_is_float(e) && tl_elem_bits(e) > 8)
        return e == TL_ELEM_F16    ? LLVMHalfTypeInContext(c)
               : e == TL_ELEM_BF16 ? LLVMBFloatTypeInContext(c)
               : e == TL_ELEM_F32  ? LLVMFloatTypeInContext(c)
                                   : LLVMDoubleTypeInContext(c);
    return LLVMIntTypeInContext(c, tl_elem_bits(e));
}

static bool
setup(Job *j, Cg *g)
{
    TlIr *ir = &j->ir;
    int64_t block = tl_kattr_int(ir, j->kernel, "block", 0),
            lds = tl_kattr_int(ir, j->kernel, "lds_bytes", 0);
    int64_t waves = tl_kattr_int(ir, j->kernel, "waves_per_eu", 0);
    if (block == 0)
        block = tl_kattr_int(ir, j->kernel, "num_warps", 1) * j->target->wave;
    if (block < 1 || block > j->target->max_workgroup)
        return cg_fail(g, TL_E_REG_LIMIT, "a workgroup of %lld threads; %s takes 1 to %u", (long long)block,
                       j->target->name, j->target->max_workgroup);
    if (block % j->target->wave)
        return cg_fail(g, TL_E_VALUE, "a workgroup of %lld threads is no whole number of waves of %u",
                       (long long)block, j->target->wave);
    if (lds < 0 || lds > j->target->lds_max)
        return cg_fail(g, TL_E_LDS_LIMIT, "the kernel needs %lld bytes of LDS; a workgroup on %s has %u",
                       (long long)lds, j->target->name, j->target->lds_max);
    if (waves < 0 || waves > j->target->max_waves_simd)
        return cg_fail(g, TL_E_REG_LIMIT, "waves_per_eu is 1 to %u on %s, not %lld",
                       j->target->max_waves_simd, j->target->name, (long long)waves);
    g->block_size = (uint32_t)block;
    g->lds_bytes = (uint32_t)lds;
    g->waves_per_eu = (uint32_t)waves;
    return true;
}

static bool
build(Job *j)
{
    Cg *g = TL_NEW(j->arena, Cg);
    LLVMValueRef *vals = TL_NEW_N(j->arena, LLVMValueRef, j->ir.vals.len);
    if (!g || !vals)
        return tl_error(j->diag, (TlLoc){0}, TL_E_OOM);
    *g = (Cg){.arena = j->arena,
              .diag = j->diag,
              .ir = &j->ir,
              .kernel = j->kernel,
              .target = j->target,
              .opts = j->opts,
              .ctx = j->ctx,
              .vals = vals,
              .nvals = j->ir.vals.len,
              .use_agprs = j->use_agprs};
    if (!setup(j, g))
        return false;
    g->mod = j->mod = LLVMModuleCreateWithNameInContext("tilelang", j->ctx);
    LLVMSetTarget(g->mod, TRIPLE);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->tm);
    LLVMSetModuleDataLayout(g->mod, layout);
    LLVMDisposeTargetData(layout);
    for (uint32_t e = 1; e < TL_ELEM__COUNT; e++)
        g->elem[e] = elem_type(j->ctx, (TlElem)e);
    g->i1 = g->elem[TL_ELEM_I1];
    g->i8 = g->elem[TL_ELEM_I8];
    g->i16 = g->elem[TL_ELEM_I16];
    g->i32 = g->elem[TL_ELEM_I32];
    g->i64 = g->elem[TL_ELEM_I64];
    g->f32 = g->elem[TL_ELEM_F32];
    g->f64 = g->elem[TL_ELEM_F64];
    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorError, "amdhsa_code_object_version", 26,
                      LLVMValueAsMetadata(LLVMConstInt(g->i32, 500, false)));
    LLVMMetadataRef relax[] = {LLVMMDStringInContext2(j->ctx, "amdgpu-synchronize-as", 21),
                               LLVMMDStringInContext2(j->ctx, "local", 5)};
    g->lds_only = LLVMMDNodeInContext2(j->ctx, relax, 2);
    g->b = LLVMCreateBuilderInContext(j->ctx);
    bool ok = cg_kernel(g);
    if (g->di)
        LLVMDisposeDIBuilder(g->di);
    LLVMDisposeBuilder(g->b);
    return ok;
}

/* ---- LLVM IR -> object ---- */

static bool
optimise(Job *j)
{
    if (j->opts->check_llvm_ir) {
        char *message = NULL;
        if (LLVMVerifyModule(j->mod, LLVMReturnStatusAction, &message))
            return llvm_error(j, message);
        LLVMDisposeMessage(message);
    }
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e = LLVMRunPasses(j->mod, "function(early-cse)", j->tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (!e)
        return true;
    char *m = LLVMGetErrorMessage(e);
    tl_error(j->diag, (TlLoc){0}, TL_E_LLVM, m);
    LLVMDisposeErrorMessage(m);
    return false;
}

static bool
keep_text(Job *j, const char *s, size_t n, const char **out, size_t *out_n)
{
    *out = tl_arena_strdup(j->arena, s, n);
    *out_n = n;
    return *out || tl_error(j->diag, (TlLoc){0}, TL_E_OOM);
}

/* NULL after an error. */
static LLVMMemoryBufferRef
emit(Job *j, LLVMModuleRef m, LLVMCodeGenFileType kind)
{
    LLVMMemoryBufferRef buf = NULL;
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(j->tm, m, kind, &message, &buf)) {
        llvm_error(j, message);
        return NULL;
    }
    if (!j->llvm_errors)
        return buf;
    LLVMDisposeMemoryBuffer(buf);
    return NULL;
}

static bool
emit_texts(Job *j, TlCodeObject *out)
{
    if (j->opts->want_llir) {
        char *s = LLVMPrintModuleToString(j->mod);
        bool ok = keep_text(j, s, strlen(s), &out->llir, &out->llir_len);
        LLVMDisposeMessage(s);
        if (!ok)
            return false;
    }
    if (!j->opts->want_asm)
        return true;
    LLVMModuleRef copy = LLVMCloneModule(j->mod); /* emission changes the module */
    LLVMMemoryBufferRef b = emit(j, copy, LLVMAssemblyFile);
    LLVMDisposeModule(copy);
    if (!b)
        return false;
    bool ok = keep_text(j, LLVMGetBufferStart(b), LLVMGetBufferSize(b), &out->asm_text, &out->asm_len);
    LLVMDisposeMemoryBuffer(b);
    return ok;
}

static bool
link_object(Job *j, LLVMMemoryBufferRef object, TlCodeObject *out)
{
    char err[512] = "";
    void *elf = NULL;
    size_t n = 0;
    if (!tl_lld_link(LLVMGetBufferStart(object), LLVMGetBufferSize(object), &elf, &n, err, sizeof err))
        return tl_error(j->diag, (TlLoc){0}, TL_E_LLD, err);
    uint8_t *p = tl_arena_alloc(j->arena, n, 16);
    if (p)
        memcpy(p, elf, n);
    free(elf);
    out->hsaco = p;
    out->hsaco_len = n;
    return p || tl_error(j->diag, (TlLoc){0}, TL_E_OOM);
}

static bool
attempt(Job *j, TlCodeObject *out)
{
    TlCodegenTimes *t = &out->times;
    double t0 = now_ms(), t1;
    if (!job_open(j))
        return false;
    t->init += (t1 = now_ms()) - t0;
    if (!build(j))
        return false;
    t->build += (t0 = now_ms()) - t1;
    if (!optimise(j))
        return false;
    t->opt += (t1 = now_ms()) - t0;
    if (!emit_texts(j, out))
        return false;
    t0 = now_ms();
    LLVMMemoryBufferRef object = emit(j, j->mod, LLVMObjectFile);
    t->emit += (t1 = now_ms()) - t0;
    if (!object)
        return false;
    bool ok = link_object(j, object, out);
    LLVMDisposeMemoryBuffer(object);
    t->link += (t0 = now_ms()) - t1;
    return ok && tl_code_resources(j->diag, out->hsaco, out->hsaco_len, out->kernel, &out->resources);
}

/* ---- the whole ---- */

static bool
read_kernel(Job *j, const char *text, size_t n)
{
    if (!tl_ir_init(&j->ir, j->arena, j->diag))
        return tl_error(j->diag, (TlLoc){0}, TL_E_OOM);
    if (!tl_parse(&j->ir, text, n, "tir"))
        return false;
    if (j->ir.kernels.len != 2)
        return tl_error(j->diag, (TlLoc){0}, TL_E_PARSE, "the text holds no kernel, or more than one");
    j->kernel = 1;
    if (j->ir.kernels.data[1].level != TL_LEVEL_THREAD)
        return tl_error(j->diag, j->ir.kernels.data[1].loc, TL_E_VERIFY, "the kernel is not at level thread");
    if (!tl_verify(&j->ir, j->kernel, NULL))
        return false;
    const char *name = tl_kattr_str(&j->ir, j->kernel, "target", "");
    j->target = tl_target_by_name(name);
    if (!j->target)
        return tl_error(
            j->diag, j->ir.kernels.data[1].loc, TL_E_TARGET,
            tl_arena_printf(j->arena, "no target is called \"%s\"; known: %s", name, tl_target_names()));
    return true;
}

/* LLVM and lld have locks of their own. A compilation passes this gate as a reader; a fork waits until all
 * are done and holds it, so that the child finds every lock free. Forks are watched from the start: one that
 * has begun calls no handler that is registered meanwhile. */
static struct {
    pthread_rwlock_t lock;
} gate = {PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};

static void
before_fork(void)
{
    pthread_rwlock_wrlock(&gate.lock);
}

static void
in_parent(void)
{
    pthread_rwlock_unlock(&gate.lock);
}

static void
in_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    gate.lock = fresh; /* readers of the parent that waited for it are not here */
}

__attribute__((constructor)) static void
watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static bool
generate(TlArena *arena, TlDiag *diag, const char *tir_text, size_t n, const TlCodegenOptions *options,
         TlCodeObject *out)
{
    static const TlCodegenOptions none = {0};
    double start = now_ms();
    Job *j = TL_NEW(arena, Job);
    *out = (TlCodeObject){0};
    if (!j)
        return tl_error(diag, (TlLoc){0}, TL_E_OOM);
    *j = (Job){.arena = arena, .diag = diag, .opts = options ? options : &none};
    bool ok = read_kernel(j, tir_text, n);
    out->times.parse = now_ms() - start;
    if (ok) {
        out->kernel = tl_str(&j->ir.strs, j->ir.kernels.data[j->kernel].name);
        ok = attempt(j, out);
    }
    job_close(j);
    /* Spills although half of the unified file lies idle: let LLVM have the AGPRs. */
    if (ok && out->resources.vgpr_spills && tl_target_has(j->target, TL_FEAT_UNIFIED_AGPR)) {
        TlCodeObject first = *out;
        j->use_agprs = true;
        ok = attempt(j, out);
        job_close(j);
        if (ok && out->resources.vgpr_spills >= first.resources.vgpr_spills) {
            first.times = out->times;
            *out = first;
        }
    }
    out->times.total = now_ms() - start;
    return arena->failed ? tl_error(diag, (TlLoc){0}, TL_E_OOM) : ok;
}

bool
tl_codegen(TlArena *arena, TlDiag *diag, const char *tir_text, size_t n, const TlCodegenOptions *options,
           TlCodeObject *out)
{
    pthread_rwlock_rdlock(&gate.lock);
    bool ok = generate(arena, diag, tir_text, n, options, out);
    pthread_rwlock_unlock(&gate.lock);
    return ok;
}
