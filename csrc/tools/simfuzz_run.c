/* simfuzz_run - random code on the simulator (driver: fuzz_main.inc).
 *
 * exec: first byte chip, wave size and state, then code, which runs on one wave with random registers and
 * without memory. launch: two bytes of chip and configuration (one to four waves, one or two workgroups,
 * which checks, late delivery, the order of waves), then the body of a kernel. Before the body pointers to a
 * buffer are loaded: s[8:9] its address, s[12:15] a descriptor, v[2:3] addresses of dwords by lane, v1 the
 * same as offsets. SIMFUZZ_CHIP=gfx942 holds to one chip.
 */
#include "sim/device.h"
#include "sim/elf.h"
#include "tools/fuzz.h"

/* Registers of every run: scalars and vectors of random bits, some of them small numbers and usual floats. */
static void
random_state(SimWaveState *s, uint32_t x)
{
    static const uint32_t usual[8] = {0,          1,          UINT32_MAX, 0x3f800000,
                                      0x7f800000, 0x7fc00000, 0x80000001, 0x3c00bc00};
    for (uint32_t i = 0; i < TL_COUNT(s->s); i++) {
        x = x * 1664525u + 1013904223u;
        s->s[i] = x >> 29 ? x : usual[x >> 8 & 7];
    }
    for (uint32_t i = 0; i < 512 * 64; i++) {
        x = x * 1664525u + 1013904223u;
        s->v[i / 64][i % 64] = x >> 30 ? x : x >> 24 & 8 ? x >> 4 & 255 : usual[x >> 8 & 7];
    }
}

static bool
target_exec(const uint8_t *data, size_t size)
{
    static SimWaveState *first, *s; /* one thread; kept, since filling them costs more than a run */
    IsaArch arch;
    bool wave64;
    SimFault fault;
    if (!start(data, size, &arch, &wave64))
        return false;
    if (!first && (first = calloc(2, sizeof *first))) {
        s = first + 1;
        random_state(first, 0x9e3779b9u);
    }
    uint8_t *code = malloc(size);
    uint8_t *lds = calloc(1, 256);
    bool ok = false;
    if (first && code && lds) {
        uint32_t x = 0x9e3779b9u * (data[0] + 1u);
        size_t n = (size - 1) & ~(size_t)3;
        memcpy(code, data + 1, size - 1);
        *s = *first;
        s->exec = data[0] & 0x40 ? UINT64_C(0x0ff0ffff7ffffffe) : ~UINT64_C(0);
        s->mode = data[0] & 0x20 ? 0x3ff & x : SIM_MODE_DEFAULT;
        s->m0 = data[0] & 0x10 ? x : 0;
        s->lds = lds;
        s->lds_bytes = 256;
        ok = sim_exec_bytes(arch, wave64, code, n, 256, NULL, s, &fault);
        if (!ok && !fault.message[0] && fault.check != SIM_FAULT_OOM)
            abort();
    }
    free(code);
    free(lds);
    return ok;
}

/* ---- launch ---- */

enum { CODE_AT = 0x400, CODE_BYTES = 0x400, FILE_BYTES = CODE_AT + CODE_BYTES, BUFFER = 4096, MOST = 400 };

/* What comes before the body, for gfx9, gfx11 and gfx12. */
#define FIRST_WORDS 18
static const uint32_t first_words[3][FIRST_WORDS] = {
    {0xc0060200, 0x00000000, 0xc00a0300, 0x00000010, /* s_load_dwordx2 s[8:9]; s_load_dwordx4 s[12:15] */
     0x24020082, 0x7e080d00, 0x7e0a02ff, 0x3c00bc00, /* v1 = 4 * v0; v4 = float(v0); v5 = halves 1, -1 */
     0xbf8cc07f, 0x7e060209, 0x32040208, 0x38060680, /* s_waitcnt; v[2:3] = s[8:9] + v1 */
     0xbefc00ff, 0x00000400, 0xbf800000, 0xbf800000, 0xbf800000, 0xbf800000}, /* m0 = 0x400 */
    {0xf4040200, 0xf8000000, 0xf4080300, 0xf8000010, 0x360000ff, 0x000003ff, 0x30020082, 0x7e080d00,
     0x7e0a02ff, 0x3c00bc00, 0xbf89fc07, 0xd7006a02, 0x00020208, 0xd5206a03, 0x01a90009, 0xbefd00ff,
     0x00000400, 0xbf800000},
    {0xf4002200, 0xf8000000, 0xf4004300, 0xf8000010, 0x360000ff, 0x000003ff, 0x30020082, 0x7e080d00,
     0x7e0a02ff, 0x3c00bc00, 0xbfc70000, 0xd7006a02, 0x00020208, 0xd5206a03, 0x01a90009, 0xbefd00ff,
     0x00000400, 0xbf88fffe},
};

static uint32_t
family(IsaArch arch)
{
    return arch <= ISA_GFX950 ? 0 : arch == ISA_GFX1100 ? 1 : 2;
}

/* A code object with one kernel k of CODE_BYTES bytes: descriptor, symbols and code in one segment. */
static void
make_file(uint8_t *f, IsaArch arch, bool wave64)
{
    enum { KD = 0x100, SYM = 0x180, STR = 0x1e0, SECTIONS = 0x200 };
    static const uint32_t machine[ISA_ARCH_COUNT] = {0x3f, 0x4c, 0x4f, 0x41, 0x4e};
    Ehdr eh = {
        .ident = {0x7f, 'E', 'L', 'F', 2, 1, 1, OSABI_AMDGPU_HSA, 3}, .type = ET_DYN, .machine = EM_AMDGPU};
    Phdr ph = {.type = PT_LOAD, .flags = 4 | PF_X, .filesz = FILE_BYTES, .memsz = FILE_BYTES};
    Sym sym[3] = {{0}, {1, STT_FUNC, 0, 1, CODE_AT, CODE_BYTES}, {3, STT_OBJECT, 0, 1, KD, 64}};
    Shdr sh[3] = {{0},
                  {.type = SHT_DYNSYM, .offset = SYM, .size = sizeof sym, .link = 2},
                  {.type = SHT_STRTAB, .offset = STR, .size = 8}};
    uint32_t kd[16] = {1024, 512, 64}; /* LDS, scratch, arguments */
    uint64_t entry = CODE_AT - KD;
    memset(f, 0, FILE_BYTES);
    eh.flags = machine[arch];
    eh.phoff = sizeof eh;
    eh.phentsize = sizeof ph;
    eh.phnum = 1;
    eh.shoff = SECTIONS;
    eh.shentsize = sizeof sh[0];
    eh.shnum = 3;
    memcpy(f, &eh, sizeof eh);
    memcpy(f + sizeof eh, &ph, sizeof ph);
    memcpy(kd + 4, &entry, 8);
    kd[11] = 63;                                /* 256 vector registers, the rest accumulation registers */
    kd[12] = 63 | 15 << 6 | 3 << 18;            /* most registers; denormals on */
    kd[13] = 1 | 2 << 1 | 7 << 7;               /* scratch; two user scalars; workgroup ids */
    kd[14] = 1 << 3 | (wave64 ? 0u : 1u << 10); /* the arguments' address */
    memcpy(f + KD, kd, sizeof kd);
    memcpy(f + SYM, sym, sizeof sym);
    memcpy(f + STR, "\0k\0k.kd", 8);
    memcpy(f + SECTIONS, sh, sizeof sh);
}

typedef struct Rig { /* of a chip and wave size, kept: making one costs more than a run */
    SimDevice *dev;
    SimImage *image;
    uint8_t *buffer;
    uint64_t args[8];
} Rig;

static bool
rig_open(Rig *r, IsaArch arch, bool wave64)
{
    char why[256];
    uint8_t file[FILE_BYTES];
    SimDeviceOptions o = {.arch = arch, .checks = sim_checks_available(), .threads = 1, .cus = 4};
    if (r->dev)
        return true;
    make_file(file, arch, wave64);
    SimDevice *d = sim_device_new(&o, why, sizeof why);
    if (!d)
        return false;
    r->image = sim_device_load(d, file, sizeof file, why, sizeof why);
    r->buffer = sim_mem_alloc(d->mem, BUFFER, SIM_EXT_MALLOC, true, "buffer");
    if (!r->image || !r->buffer) {
        fprintf(stderr, "simfuzz_run: %s\n", why);
        abort();
    }
    d->max_instructions = MOST;
    r->args[0] = r->args[2] = (uint64_t)r->buffer;
    r->args[3] = BUFFER | UINT64_C(0x00027000) << 32;
    r->dev = d;
    return true;
}

/* Checks, delivery and order by the second byte. */
static void
configure(SimDevice *d, uint8_t how)
{
    uint32_t all = sim_checks_available();
    const uint32_t checks[4] = {0, 1u << SIM_CHECK_BOUNDS, all & ~(1u << SIM_CHECK_RACE), all};
    d->checks = checks[how & 3];
    d->strict = (how & 3) == 3;
    d->late = how >> 2 & 1;
    d->seed = how >> 6 & 1 ? 1 + how : 0;
    d->mfma_hw = how >> 7;
}

static bool
target_launch(const uint8_t *data, size_t size)
{
    static Rig rigs[ISA_ARCH_COUNT][2];
    static const uint32_t blocks[4] = {64, 100, 128, 256};
    IsaArch arch;
    bool wave64;
    if (size < 2 || !start(data, size, &arch, &wave64))
        return false;
    Rig *r = &rigs[arch][wave64];
    if (!rig_open(r, arch, wave64))
        return false;
    uint8_t *code = (uint8_t *)(r->image->bias + CODE_AT), how = data[1];
    uint32_t end = family(arch) ? 0xbfb00000 : 0xbf810000; /* s_endpgm */
    size_t body = TL_MIN((size - 2) & ~(size_t)3, (size_t)CODE_BYTES - sizeof first_words[0] - 64);
    memcpy(code, first_words[family(arch)], sizeof first_words[0]);
    memcpy(code + sizeof first_words[0], data + 2, body);
    for (size_t at = sizeof first_words[0] + body; at < CODE_BYTES; at += 4)
        memcpy(code + at, &end, 4);
    for (uint32_t i = 0; i < BUFFER / 4; i++)
        memcpy(r->buffer + 4 * i, &(uint32_t){i * 0x10001u}, 4);
    configure(r->dev, how);
    SimLaunch l = {.kernel = sim_image_kernel(r->image, "k"),
                   .grid = {1 + (how >> 5 & 1), 1, 1},
                   .block = {blocks[how >> 3 & 3], 1, 1},
                   .kernarg = r->args,
                   .kernarg_bytes = sizeof r->args};
    SimStatus st = sim_device_launch(r->dev, &l);
    if (st == SIM_FAULTED) {
        TlArena a;
        TlText t;
        tl_arena_init(&a, NULL);
        tl_text_init(&t, &a);
        sim_report_print(&r->dev->reports[0], &t);
        if (!r->dev->nreports || !t.len)
            abort();
        tl_arena_free(&a);
    } else if (st != SIM_OK && !r->dev->error[0]) {
        abort();
    }
    sim_code_free(r->image->code[wave64]); /* the next body is another one */
    r->image->code[wave64] = NULL;
    return st == SIM_OK;
}

static const char usage_targets[] = "exec|launch";

static Target *
target_named(const char *name)
{
    if (name && !strcmp(name, "exec"))
        return target_exec;
    return name && !strcmp(name, "launch") ? target_launch : NULL;
}

#include "tools/fuzz_main.inc"
