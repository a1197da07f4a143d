/* simfuzz - hostile input for the decoder, the loader and the execution core.
 *
 *   simfuzz decode|verify|load|exec RUNS SEED FILE...   runs each FILE, then RUNS inputs made from them by
 * mutation; prints how many were accepted. A crash is the finding: SIMFUZZ_KEEP=path keeps the input that is
 * about to run.
 *
 * decode: first byte chip and wave size, then code. verify: as decode, through the static checks. load: a
 * code object, taken through the loader, its line table, the decoder and the static checks. exec: as decode;
 * the code runs on one wave with random registers and without memory. SIMFUZZ_CHIP=gfx942 holds to one chip
 * (load: its machine number is put into the file).
 *
 * With -DTL_LIBFUZZER and clang's -fsanitize=fuzzer the same targets are LLVMFuzzerTestOneInput;
 * SIMFUZZ_TARGET names one (tools/fuzz.sh).
 */
#include <stdio.h>
#include <stdlib.h>

#include "isa/check.h"
#include "sim/image.h"

char *tlsim_verify(const void *data, uint64_t size, int64_t lds, char *why, size_t n);
void tlsim_text_free(char *text);

typedef bool Target(const uint8_t *data, size_t size);

/* The chip that SIMFUZZ_CHIP names, or ISA_ARCH_COUNT. */
static IsaArch
one_chip(void)
{
    const char *name = getenv("SIMFUZZ_CHIP");
    uint32_t k = 0;
    while (k < ISA_ARCH_COUNT && !(name && !strcmp(name, isa_arch_name((IsaArch)k))))
        k++;
    return (IsaArch)k;
}

static bool
start(const uint8_t *data, size_t size, IsaArch *arch, bool *wave64)
{
    if (!size)
        return false;
    IsaArch only = one_chip();
    *arch = only < ISA_ARCH_COUNT ? only : (IsaArch)(data[0] % ISA_ARCH_COUNT);
    *wave64 = *arch <= ISA_GFX950 || (data[0] & 0x80);
    return true;
}

/* The static checks on the code up to its first unknown instruction. */
static bool
check_static(TlArena *a, IsaArch arch, bool wave64, const uint8_t *code, size_t size)
{
    IsaCode c;
    IsaFaults faults = {0};
    IsaLoops loops = {0};
    IsaMix mix;
    IsaUse use;
    const char *why = NULL;
    uint32_t bad = 0;
    if (!isa_code_decode(&c, a, arch, wave64, code, size, &why, &bad)) {
        if (!why || bad > size)
            abort();
        if (!bad || !isa_code_decode(&c, a, arch, wave64, code, bad, &why, &bad))
            return false;
    }
    isa_mix(&c, &mix);
    isa_use(&c, &use);
    isa_loops(&c, &loops);
    isa_check(&c, ISA_CHECK_ALL | ISA_CHECK_EXEC, &faults);
    for (uint32_t i = 0; i < faults.len; i++)
        if (faults.data[i].at >= c.n || (faults.data[i].from >= c.n && faults.data[i].from != UINT32_MAX))
            abort();
    return c.n > 0;
}

static bool
target_decode(const uint8_t *data, size_t size)
{
    IsaArch arch;
    bool wave64, any = false;
    TlArena a;
    TlText t;
    if (!start(data, size, &arch, &wave64))
        return false;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    for (size_t at = 1; at < size;) {
        IsaInst in;
        const char *why = NULL;
        if (isa_decode(arch, wave64, data + at, size - at, &in, &why)) {
            if (in.size < 4 || in.size > size - at || in.nopnds > ISA_MAX_OPNDS)
                abort();
            t.len = 0;
            isa_print(arch, wave64, &in, &t);
            any = true;
        } else if (!why) {
            abort();
        }
        at += in.size < 4 ? 4 : in.size;
    }
    tl_arena_free(&a);
    return any;
}

static bool
target_verify(const uint8_t *data, size_t size)
{
    IsaArch arch;
    bool wave64;
    TlArena a;
    if (!start(data, size, &arch, &wave64))
        return false;
    tl_arena_init(&a, NULL);
    bool any = check_static(&a, arch, wave64, data + 1, size - 1);
    tl_arena_free(&a);
    return any;
}

static bool
target_load(const uint8_t *data, size_t size)
{
    char why[256];
    static const uint8_t machine[ISA_ARCH_COUNT] = {[ISA_GFX90A] = 0x3f,
                                                    [ISA_GFX942] = 0x4c,
                                                    [ISA_GFX950] = 0x4f,
                                                    [ISA_GFX1100] = 0x41,
                                                    [ISA_GFX1201] = 0x4e};
    IsaArch only = one_chip();
    if (only < ISA_ARCH_COUNT && size > 48) {
        uint8_t *own = malloc(size);
        if (!own)
            return false;
        memcpy(own, data, size);
        own[48] = machine[only];
        char *text = tlsim_verify(own, size, -1, why, sizeof why);
        if (!text && !why[0])
            abort();
        bool ok = text != NULL;
        tlsim_text_free(text);
        free(own);
        return ok;
    }
    char *text = tlsim_verify(data, size, -1, why, sizeof why);
    if (!text && !why[0])
        abort();
    bool ok = text != NULL;
    tlsim_text_free(text);
    return ok;
}

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

static Target *
target_named(const char *name)
{
    if (name && !strcmp(name, "decode"))
        return target_decode;
    if (name && !strcmp(name, "verify"))
        return target_verify;
    if (name && !strcmp(name, "load"))
        return target_load;
    return name && !strcmp(name, "exec") ? target_exec : NULL;
}

#ifdef TL_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Target *t = target_named(getenv("SIMFUZZ_TARGET"));
    if (t)
        t(data, size);
    return 0;
}
#else

typedef struct Input {
    uint8_t *data;
    size_t size;
} Input;

typedef struct Random {
    uint64_t x;
} Random;

static uint64_t
draw(Random *r, uint64_t below)
{
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (r->x >> 11) % (below ? below : 1);
}

static bool
read_input(const char *path, Input *out)
{
    FILE *f = fopen(path, "rb");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    out->data = n >= 0 ? malloc((size_t)n + 1) : NULL;
    out->size = n >= 0 ? (size_t)n : 0;
    bool ok = out->data && fseek(f, 0, SEEK_SET) == 0 && fread(out->data, 1, out->size, f) == out->size;
    if (f)
        fclose(f);
    return ok;
}

static void
put_number(Random *r, uint8_t *p, size_t room)
{
    static const uint64_t odd[] = {
        0,      1,      UINT64_MAX, UINT32_MAX, 0x7fffffff, 0x80000000, INT64_MAX, UINT64_MAX - 7,
        0xffff, 0x1000, 64,         56,         24};
    uint64_t v = draw(r, 4) ? odd[draw(r, TL_COUNT(odd))] : draw(r, UINT64_MAX);
    size_t n = (size_t)1 << draw(r, 4);
    memcpy(p, &v, n < room ? n : room);
}

/* A few random changes of data[0 .. *size); other: where pieces come from. */
static void
mutate(Random *r, uint8_t *data, size_t *size, const Input *other)
{
    for (uint64_t k = 1 + draw(r, 6); k && *size; k--) {
        size_t at = draw(r, *size), n = draw(r, 16) + 1;
        switch (draw(r, 7)) {
        case 0:
            data[at] ^= (uint8_t)(1u << draw(r, 8));
            break;
        case 1:
            data[at] = (uint8_t)draw(r, 256);
            break;
        case 2:
        case 3:
            put_number(r, data + at, *size - at);
            break;
        case 4:
            if (draw(r, 4) == 0)
                *size = at;
            break;
        case 5:
            if (other->size) {
                size_t from = draw(r, other->size);
                n = TL_MIN(n, TL_MIN(*size - at, other->size - from));
                memcpy(data + at, other->data + from, n);
            }
            break;
        default:
            for (n = TL_MIN(n, *size - at); n; n--)
                data[at + n - 1] = (uint8_t)draw(r, 256);
        }
    }
}

static void
keep(const uint8_t *data, size_t size)
{
    const char *path = getenv("SIMFUZZ_KEEP");
    FILE *f = path ? fopen(path, "wb") : NULL;
    if (!f)
        return;
    fwrite(data, 1, size, f);
    fclose(f);
}

static int
run(Target *t, uint64_t runs, uint64_t seed, const Input *in, uint32_t n)
{
    Random r = {seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
    uint64_t accepted = 0;
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        keep(in[i].data, in[i].size);
        accepted += t(in[i].data, in[i].size);
        most = TL_MAX(most, in[i].size);
    }
    for (uint64_t k = 0; k < runs; k++) {
        const Input *from = &in[draw(&r, n)];
        size_t size = from->size;
        uint8_t *data = malloc(size + 1); /* exact size: a read past the end is seen by sanitizers */
        if (!data)
            return 1;
        memcpy(data, from->data, size);
        mutate(&r, data, &size, &in[draw(&r, n)]);
        uint8_t *exact = realloc(data, size ? size : 1);
        data = exact ? exact : data;
        keep(data, size);
        accepted += t(data, size);
        free(data);
    }
    printf("%llu of %llu accepted\n", (unsigned long long)accepted, (unsigned long long)(runs + n));
    return 0;
}

/* A pack ("FUZZPACK", then inputs with 16-bit lengths) becomes its inputs. false: out of memory. */
static bool
add_input(Input **list, uint32_t *n, Input in)
{
    bool pack = in.size >= 8 && !memcmp(in.data, "FUZZPACK", 8);
    for (size_t at = pack ? 8 : 0, size; at < in.size || !pack; at += size) {
        Input one = in;
        size = in.size;
        if (pack) {
            if (in.size - at < 2)
                break;
            size = in.data[at] | (size_t)in.data[at + 1] << 8;
            at += 2;
            size = TL_MIN(size, in.size - at);
            one = (Input){malloc(size + 1), size};
            if (!one.data)
                return false;
            memcpy(one.data, in.data + at, size);
        }
        Input *more = realloc(*list, (*n + 1) * sizeof *more);
        if (!more)
            return false;
        *list = more;
        more[(*n)++] = one;
        if (!pack)
            return true;
    }
    free(in.data);
    return true;
}

int
main(int argc, char **argv)
{
    Target *t = argc > 4 ? target_named(argv[1]) : NULL;
    if (!t) {
        fprintf(stderr, "usage: simfuzz decode|verify|load|exec RUNS SEED FILE...\n");
        return 2;
    }
    uint32_t n = 0;
    Input *in = NULL;
    int rc = 0;
    for (int i = 4; i < argc && !rc; i++) {
        Input file;
        if (!read_input(argv[i], &file) || !add_input(&in, &n, file)) {
            fprintf(stderr, "simfuzz: cannot read %s\n", argv[i]);
            rc = 1;
        }
    }
    if (!rc)
        rc = run(t, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), in, n);
    for (uint32_t i = 0; in && i < n; i++)
        free(in[i].data);
    free(in);
    return rc;
}
#endif
