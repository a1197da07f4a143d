/* verify_api.c - the static checks of isa/check.h on a whole code object, and its descriptors against what
 * the code uses, for each chip that runs it. Runs nothing. The result is JSON text: an array of findings
 * (keys kind, severity, kernel, arch, rule (of a hazard), pc, text, message, other_pc, other_text, line,
 * other_line; pc in bytes from the function's first instruction). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "isa/check.h"
#include "sim/device.h"
#include "sim/elf.h"

/* Findings of a code object. ignore: hazard rules that are left out. lds: bytes of LDS that launches give it,
 * static and dynamic, -1 when unknown. NULL: the file cannot be loaded or memory ran out, why[0..n) says so.
 * The text is freed by tlsim_text_free.
 */
TL_API char *tlsim_verify(const void *data, uint64_t size, int64_t lds, uint32_t ignore, char *why, size_t n);
TL_API void tlsim_text_free(char *text);

/* Functions that share code multiply a small file's work: the bytes to check are at most so many of the code,
 * and SMALL_WORK. */
enum { MAX_SHARING = 16, SMALL_WORK = 256 << 10 };

typedef struct Verify {
    TlArena arena;    /* of the text */
    TlArena function; /* of the function at hand */
    TlText out;
    uint64_t work; /* bytes of code checked */
    bool too_much;
    SimImage *im;
    int64_t lds;
    uint32_t ignore;
    /* the function at hand */
    const char *name;
    uint64_t entry;
    bool wave64;
    const IsaCode *code;
    uint32_t found;
} Verify;

/* "pc", "text" and "line" of an instruction, or nulls. */
static void
put_place(Verify *v, const char *prefix, uint32_t inst)
{
    if (inst == UINT32_MAX) {
        tl_text_printf(&v->out, ", \"%spc\": null, \"%stext\": \"\", \"%sline\": null", prefix, prefix,
                       prefix);
        return;
    }
    TlText t;
    const char *file;
    uint32_t line;
    tl_text_init(&t, &v->function);
    isa_print(v->im->arch, v->wave64, &v->code->inst[inst], &t);
    tl_text_printf(&v->out, ", \"%spc\": %u, \"%stext\": ", prefix, v->code->offset[inst], prefix);
    sim_put_json(&v->out, t.data && !t.failed ? t.data : "");
    tl_text_printf(&v->out, ", \"%sline\": ", prefix);
    if (sim_image_line(v->im, v->entry + v->code->offset[inst], &file, &line))
        sim_put_json(&v->out, tl_arena_printf(&v->function, "%s:%u", file, line));
    else
        tl_text_puts(&v->out, "null");
}

static void
finding(Verify *v, const char *kind, bool warning, IsaHazardRule rule, uint32_t at, uint32_t from,
        const char *message)
{
    tl_text_printf(&v->out,
                   "%s{\"kind\": \"%s\", \"severity\": \"%s\", \"kernel\": ", v->found++ ? ",\n " : "", kind,
                   warning ? "warning" : "error");
    sim_put_json(&v->out, v->name);
    tl_text_printf(&v->out, ", \"arch\": \"%s\"", isa_arch_name(v->im->arch));
    if (rule)
        tl_text_printf(&v->out, ", \"rule\": \"%s\"", isa_hazard_rule(rule));
    tl_text_puts(&v->out, ", \"message\": ");
    sim_put_json(&v->out, message ? message : "");
    put_place(v, "", at);
    put_place(v, "other_", from);
    tl_text_puts(&v->out, "}");
}

static void
finding_at(Verify *v, const char *kind, uint32_t at, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    finding(v, kind, false, ISA_HR_NONE, at, UINT32_MAX, text);
}

/* The first instruction that names a register of the file beyond the limit; UINT32_MAX: none. */
static uint32_t
first_beyond(const IsaCode *c, IsaOpndKind kind, uint32_t limit)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < c->inst[i].nopnds; k++) {
            const IsaOpnd *o = &c->inst[i].opnd[k];
            uint32_t end = o->reg + (uint32_t)o->nregs;
            if (o->kind == kind && end > limit && (kind != ISA_OPND_SGPR || end <= 102))
                return i;
        }
    return UINT32_MAX;
}

static void
check_registers(Verify *v, const SimKernel *k, const IsaUse *use)
{
    bool cdna = v->im->arch <= ISA_GFX950;
    uint32_t total = sim_kernel_vgprs(k);
    uint32_t arch = cdna ? TL_MIN(total, ((k->rsrc3 & 63) + 1) * 4) : total;
    if (!use->agprs) /* one file: what follows the offset is there for both names */
        arch = total;
    if (use->vgprs > arch)
        finding_at(v, "registers", first_beyond(v->code, ISA_OPND_VGPR, arch),
                   "v%u is used, the descriptor gives %u vector registers", use->vgprs - 1, arch);
    if (use->agprs > total - arch)
        finding_at(v, "registers", first_beyond(v->code, ISA_OPND_AGPR, total - arch),
                   "a%u is used, the descriptor gives %u accumulation registers", use->agprs - 1,
                   total - arch);
    uint32_t sgprs = ((k->rsrc1 >> 6 & 15) / 2 + 1) * 16;
    if (cdna && use->sgprs > sgprs)
        finding_at(v, "registers", first_beyond(v->code, ISA_OPND_SGPR, sgprs),
                   "s%u is used, the descriptor gives %u scalar registers", use->sgprs - 1, sgprs);
    if (k->has_metadata && k->vgpr_count > total)
        finding_at(v, "registers", UINT32_MAX,
                   "the metadata counts %u vector registers, the descriptor gives %u", k->vgpr_count, total);
}

/* Least byte that an LDS instruction surely reaches up to from a base of 0: offset + width. */
static uint32_t
lds_reach(const IsaInst *in, const char *name)
{
    uint32_t width = strstr(name, "b128") ? 16 : strstr(name, "b96") ? 12 : strstr(name, "64") ? 8 : 4;
    if (strstr(name, "read2") || strstr(name, "write2") || strstr(name, "_2addr") ||
        strstr(name, "wrxchg2")) {
        uint32_t step = strstr(name, "_b64") ? 8 : 4;
        uint32_t unit = strstr(name, "st64") ? step * 64 : step;
        return TL_MAX(in->offset0, in->offset1) * unit + step;
    }
    if (strstr(name, "_b8") || strstr(name, "_u8") || strstr(name, "_i8"))
        width = 1;
    else if (strstr(name, "_b16") || strstr(name, "_u16") || strstr(name, "_i16"))
        width = 2;
    return (uint32_t)in->offset + width;
}

static void
check_lds(Verify *v, const SimKernel *k, const IsaUse *use)
{
    uint32_t most = v->im->arch == ISA_GFX950 ? 160 << 10 : 64 << 10;
    if (k->group_size > most)
        finding_at(v, "lds", UINT32_MAX, "the descriptor asks for %u bytes of LDS, there are %u",
                   k->group_size, most);
    if (k->meta_group_size && k->meta_group_size != k->group_size)
        finding_at(v, "lds", UINT32_MAX, "the metadata says %u bytes of LDS, the descriptor %u",
                   k->meta_group_size, k->group_size);
    if (v->lds < 0)
        return;
    if (k->group_size > (uint64_t)v->lds)
        finding_at(v, "lds", UINT32_MAX, "the descriptor asks for %u bytes of LDS, the compiler for %lld",
                   k->group_size, (long long)v->lds);
    for (uint32_t i = 0; use->lds_ops && i < v->code->n; i++) {
        const IsaInst *in = &v->code->inst[i];
        const IsaOpInfo *info = isa_op_info(in->op);
        if (in->enc != ISA_DS || in->gds || !(info->classes & (ISA_C_LOAD | ISA_C_STORE | ISA_C_ATOMIC)))
            continue;
        if (lds_reach(in, info->name) > (uint64_t)v->lds)
            finding_at(v, "lds", i, "the offset alone reaches beyond the %lld bytes of LDS",
                       (long long)v->lds);
    }
}

static void
check_kernel(Verify *v, const SimKernel *k)
{
    IsaUse use;
    isa_use(v->code, &use);
    check_registers(v, k, &use);
    check_lds(v, k, &use);
    if (use.scratch_ops && !k->private_size && !k->dynamic_stack) {
        uint32_t i = 0;
        while (i + 1 < v->code->n && v->code->inst[i].enc != ISA_SCRATCH)
            i++;
        finding_at(v, "scratch", i, "scratch is used, the descriptor gives none");
    }
    if (k->meta_private_size && k->meta_private_size != k->private_size)
        finding_at(v, "scratch", UINT32_MAX, "the metadata says %u bytes of scratch, the descriptor %u",
                   k->meta_private_size, k->private_size);
}

/* Bytes of a function without a symbol size: to the first s_endpgm that no branch jumps over, or what is
 * left. */
static uint64_t
measure(const SimImage *im, uint64_t entry, bool wave64)
{
    uint64_t at = entry, far = entry;
    while (at < im->code_hi) {
        IsaInst in;
        const char *why;
        if (!isa_decode(im->arch, wave64, sim_dm_host(at), im->code_hi - at, &in, &why))
            break;
        uint32_t cl = isa_op_info(in.op)->classes;
        if (in.enc == ISA_SOPP && (cl & ISA_C_BRANCH))
            far = TL_MAX(far, at + 4 + (uint64_t)(4 * (int64_t)(int16_t)in.opnd[0].bits));
        at += in.size;
        if ((cl & ISA_C_END) && at > far)
            break;
    }
    return at - entry;
}

static bool
check_one(Verify *v, const SimKernel *k, const char *name, uint64_t entry, uint64_t size, bool wave64)
{
    static const char *const kinds[] = {"wait", "barrier", "hazard", "exec"};
    IsaCode c;
    IsaFaults faults = {.ignore = v->ignore};
    const char *why;
    uint32_t bad;
    if (!size)
        size = measure(v->im, entry, wave64);
    v->name = name;
    v->entry = entry;
    v->wave64 = wave64;
    v->code = &c;
    v->work += size;
    v->too_much = v->work > SMALL_WORK && v->work / MAX_SHARING > v->im->code_hi - v->im->code_lo;
    if (v->too_much)
        return false;
    if (!isa_code_decode(&c, &v->function, v->im->arch, wave64, sim_dm_host(entry), size, &why, &bad)) {
        if (!strcmp(why, "out of memory"))
            return false;
        TlText t;
        tl_text_init(&t, &v->function);
        isa_print_unknown((const uint8_t *)sim_dm_host(entry) + bad, size - bad, why, &t);
        finding_at(v, "illegal", UINT32_MAX, "+0x%x: %s", bad, t.failed ? why : t.data);
        return true;
    }
    if (!isa_check(&c, ISA_CHECK_ALL | ISA_CHECK_EXEC, &faults))
        return false;
    for (uint32_t i = 0; i < faults.len; i++) {
        const IsaFault *f = &faults.data[i];
        finding(v, kinds[f->kind], f->kind == ISA_FAULT_EXEC, f->rule, f->at, f->from, f->text);
    }
    if (k)
        check_kernel(v, k);
    return true;
}

static bool
check_function(Verify *v, const SimKernel *k, const char *name, uint64_t entry, uint64_t size, bool wave64)
{
    tl_arena_init(&v->function, NULL);
    bool ok = check_one(v, k, name, entry, size, wave64);
    tl_arena_free(&v->function);
    return ok;
}

static bool
is_function(const SimImage *im, const SimSymbol *s)
{
    return s->type == STT_FUNC && s->size && s->address >= im->code_lo && s->address < im->code_hi &&
           s->size <= im->code_hi - s->address && s->address % 4 == 0;
}

/* A kernel without an instruction of its own (its body is unreachable): behind its entry is another function,
 * or nothing. Assembly without sizes is not meant. */
static bool
has_no_code(const SimKernel *k, const TlMap *starts)
{
    uint64_t size;
    return !sim_kernel_has_code(k) || (k->empty && tl_map_get(starts, k->entry, &size));
}

static bool
check_all(Verify *v)
{
    SimImage *im = v->im;
    uint64_t seen;
    TlMap starts, done; /* addresses of functions; in `done`: other names of one are not looked at again */
    tl_map_init(&starts, &v->arena);
    tl_map_init(&done, &v->arena);
    bool wave64 = im->arch <= ISA_GFX950 || (im->kernels.len && im->kernels.data[0].wave64);
    for (uint32_t i = 0; i < im->symbols.len; i++) {
        const SimSymbol *s = &im->symbols.data[i];
        if (is_function(im, s) && !tl_map_put(&starts, s->address, s->size))
            return false;
    }
    for (uint32_t i = 0; i < im->kernels.len; i++) {
        const SimKernel *k = &im->kernels.data[i];
        if (!has_no_code(k, &starts) && !check_function(v, k, k->name, k->entry, k->size, k->wave64))
            return false;
    }
    for (uint32_t i = 0; i < im->symbols.len; i++) {
        const SimSymbol *s = &im->symbols.data[i];
        if (!is_function(im, s) || sim_image_kernel(im, s->name) ||
            (tl_map_get(&done, s->address, &seen) && seen == s->size))
            continue;
        if (!tl_map_put(&done, s->address, s->size))
            return false;
        if (!check_function(v, NULL, s->name, s->address, s->size, wave64))
            return false;
    }
    return true;
}

char *
sim_verify_image(SimImage *im, int64_t lds, uint32_t ignore, char *why, size_t n)
{
    Verify v = {.im = im, .lds = lds, .ignore = ignore};
    char *out = NULL;
    tl_arena_init(&v.arena, NULL);
    tl_text_init(&v.out, &v.arena);
    tl_text_puts(&v.out, "[");
    bool ok = true;
    IsaArch first = im->arch;
    for (uint32_t a = 0; a < ISA_ARCH_COUNT && ok; a++) /* several for a generic target */
        if (im->archs >> a & 1) {
            im->arch = (IsaArch)a;
            v.work = 0;
            ok = check_all(&v);
        }
    im->arch = first;
    tl_text_puts(&v.out, "]");
    if (ok && !v.out.failed && (out = malloc(v.out.len + 1)))
        memcpy(out, v.out.data, v.out.len + 1);
    if (!out)
        snprintf(why, n, "%s",
                 v.too_much ? "its functions lie over each other: too much code to check" : "out of memory");
    tl_arena_free(&v.arena);
    return out;
}

char *
tlsim_verify(const void *data, uint64_t size, int64_t lds, uint32_t ignore, char *why, size_t n)
{
    SimMem *mem = sim_mem_new(false);
    snprintf(why, n, "out of memory");
    if (!mem)
        return NULL;
    SimImage *im = sim_image_load(mem, data, size, why, n);
    char *out = im ? sim_verify_image(im, lds, ignore, why, n) : NULL;
    sim_image_free(im);
    sim_mem_free(mem);
    return out;
}

void
tlsim_text_free(char *text)
{
    free(text);
}
