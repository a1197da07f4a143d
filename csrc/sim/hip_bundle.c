/* hip_bundle.c - HIP: what an image pointer without a length holds: a code object, an offload bundle with one
 * for each of several targets, or a compressed bundle (CCOB, versions 2 and 3; libzstd is loaded when one is
 * met). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sim/elf.h"
#include "sim/hip.h"

/* Copies memory that may not be mapped as far as its headers say; false: it is not. */
static bool
peek(void *to, const uint8_t *from, uint64_t n)
{
    struct iovec local = {to, n}, remote = {(void *)from, n};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* not allowed here: trust the client */
        memcpy(to, from, n);
        return true;
    }
    return got == (ssize_t)n;
}

static const uint64_t image_limit = UINT64_C(1) << 32;

/* Is the last of n > 0 bytes mapped? Asked before memory is made for what a header claims. */
static bool
reaches(const uint8_t *p, uint64_t n)
{
    uint8_t last;
    return peek(&last, p + n - 1, 1);
}

typedef struct Source {
    const uint8_t *p;
    uint64_t size; /* of what was unpacked; UINT64_MAX: the client does not tell */
} Source;

/* Copies n bytes at an offset; false: they do not belong to the source or are not mapped. */
static bool
get(const Source *s, void *to, uint64_t off, uint64_t n)
{
    return off <= s->size && s->size - off >= n && peek(to, s->p + off, n);
}

/* Length of an ELF image by its own headers; 0: not ELF, or they point out of memory. */
static uint64_t
elf_length(const Source *src)
{
    Ehdr eh;
    Phdr ph;
    Shdr sh;
    if (!get(src, &eh, 0, sizeof eh) || memcmp(eh.ident, "\177ELF\2\1", 6))
        return 0;
    uint64_t end = sizeof eh;
    if (eh.phoff > image_limit || eh.shoff > image_limit)
        return 0;
    end = TL_MAX(end, eh.phoff + (uint64_t)eh.phnum * sizeof(Phdr));
    end = TL_MAX(end, eh.shoff + (uint64_t)eh.shnum * sizeof(Shdr));
    for (uint32_t i = 0; i < eh.phnum; i++) {
        if (!get(src, &ph, eh.phoff + i * sizeof ph, sizeof ph) || ph.offset > image_limit ||
            ph.filesz > image_limit)
            return 0;
        end = TL_MAX(end, ph.offset + ph.filesz);
    }
    for (uint32_t i = 0; i < eh.shnum; i++) {
        if (!get(src, &sh, eh.shoff + i * sizeof sh, sizeof sh) || sh.offset > image_limit ||
            sh.size > image_limit)
            return 0;
        if (sh.type != SHT_NOBITS)
            end = TL_MAX(end, sh.offset + sh.size);
    }
    return end <= image_limit ? end : 0;
}

static uint64_t
u64_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* Does the target id ("...gfx942:sramecc+:xnack-") of a bundle entry suit the device? The chip itself or,
 * when asked, one of its generic targets. */
static bool
target_suits(const char *id, size_t n, const HipDevice *d, bool generic)
{
    char buf[256], *gfx, *save, *tok;
    if (n >= sizeof buf)
        return false;
    memcpy(buf, id, n);
    buf[n] = 0;
    gfx = strstr(buf, "gfx");
    if (!gfx || strncmp(buf, "hip", 3))
        return false;
    tok = strtok_r(gfx, ":", &save);
    if (!tok || !strcmp(tok, d->sim->chip->gfx) == generic || !sim_target_suits(tok, d->sim->chip->arch))
        return false;
    while ((tok = strtok_r(NULL, ":", &save)))
        if (!strstr(d->gcn_arch, tok))
            return false;
    return true;
}

/* The entry's bytes; false: none suits. */
static bool
find_entry(const Source *src, const HipDevice *d, bool generic, Source *out)
{
    uint8_t head[32], entry[24 + 256];
    uint64_t at = 32;
    if (!get(src, head, 0, sizeof head))
        return false;
    for (uint64_t i = 0, n = u64_at(head + 24); i < n && i < 4096; i++) {
        if (!get(src, entry, at, 24))
            return false;
        uint64_t off = u64_at(entry), len = u64_at(entry + 8), id = u64_at(entry + 16);
        if (id >= 256 || off > image_limit || len > image_limit || !get(src, entry + 24, at + 24, id))
            return false;
        if (len && target_suits((const char *)entry + 24, id, d, generic)) {
            if (off > src->size || src->size - off < len)
                return false;
            *out = (Source){src->p + off, len};
            return true;
        }
        at += 24 + id;
    }
    return false;
}

/* The entry of an uncompressed offload bundle that suits the device best; false: none. */
static bool
from_bundle(const Source *src, const HipDevice *d, Source *out)
{
    return find_entry(src, d, false, out) || find_entry(src, d, true, out);
}

/* ---- compressed bundles ---- */

enum { MAX_RATIO = 1 << 15 }; /* zstd's: a block of 128 KiB in four bytes */

/* The bundle in a CCOB: fresh memory of *n bytes; NULL: malformed, another method, no libzstd, out of memory.
 */
static uint8_t *
decompress(const uint8_t *p, uint64_t *n)
{
    uint8_t head[32];
    uint16_t version, method;
    uint64_t total = 0, raw = 0, body;
    if (!peek(head, p, sizeof head))
        return NULL;
    memcpy(&version, head + 4, 2);
    memcpy(&method, head + 6, 2);
    if ((version != 2 && version != 3) || method != 1 /* zstd */)
        return NULL;
    memcpy(&total, head + 8, version == 2 ? 4 : 8);
    memcpy(&raw, head + (version == 2 ? 12 : 16), version == 2 ? 4 : 8);
    body = version == 2 ? 24 : 32;
    if (total <= body || total > image_limit || !raw || raw > image_limit || raw / MAX_RATIO > total ||
        !reaches(p, total))
        return NULL;
    void *lib = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    size_t (*unpack)(void *, size_t, const void *, size_t) = NULL;
    if (lib)
        *(void **)&unpack = dlsym(lib, "ZSTD_decompress");
    uint8_t *in = unpack ? malloc(total) : NULL, *out = in ? malloc(raw) : NULL;
    bool ok = out && peek(in, p, total) && unpack(out, raw, in + body, total - body) == raw;
    free(in);
    if (lib)
        dlclose(lib);
    if (ok) {
        *n = raw;
        return out;
    }
    free(out);
    return NULL;
}

static hipError_t
copy_image(const uint8_t *p, uint64_t size, uint8_t **data)
{
    if (!size || !reaches(p, size))
        return hipErrorInvalidImage;
    if (!(*data = malloc(size)))
        return hipErrorOutOfMemory;
    if (peek(*data, p, size))
        return hipSuccess;
    free(*data);
    *data = NULL;
    return hipErrorInvalidImage;
}

hipError_t
sim_hip_image(const void *image, const HipDevice *d, uint8_t **data, uint64_t *size)
{
    Source src = {image, UINT64_MAX}, code;
    uint8_t magic[24], *unpacked = NULL;
    hipError_t e;
    *data = NULL;
    *size = 0;
    if (!get(&src, magic, 0, 4))
        return hipErrorInvalidImage;
    if (!memcmp(magic, "CCOB", 4)) {
        if (!(unpacked = decompress(src.p, &src.size)))
            return hipErrorInvalidImage;
        src.p = unpacked;
    }
    if (get(&src, magic, 0, sizeof magic) && !memcmp(magic, "__CLANG_OFFLOAD_BUNDLE__", 24)) {
        if (from_bundle(&src, d, &code)) {
            *size = code.size;
            e = copy_image(code.p, code.size, data);
        } else {
            e = hipErrorNoBinaryForGpu;
        }
    } else {
        *size = elf_length(&src);
        e = *size <= src.size ? copy_image(src.p, *size, data) : hipErrorInvalidImage;
    }
    free(unpacked);
    return e;
}
