/* image_priv.h - shared by the files of the loader. */
#ifndef TL_SIM_IMAGE_PRIV_H
#define TL_SIM_IMAGE_PRIV_H

#include "sim/elf.h"
#include "sim/image.h"

typedef struct Loader {
    SimImage *im;
    const uint8_t *file;
    uint64_t size;
    Ehdr eh;
    /* what the file's headers have named so far: parts that share bytes multiply a small file's work */
    uint64_t segment_bytes, table_bytes, name_bytes, note_bytes;
    Shdr dynsym; /* type 0: none */
    char *why;
    size_t why_size;
} Loader;

bool load_fail(Loader *ld, const char *fmt, ...) TL_PRINTF(2, 3);
/* Copies n bytes at file offset off; false when out of range. */
bool load_get(const Loader *ld, uint64_t off, void *to, uint64_t n);
bool load_phdr(Loader *ld, uint32_t i, Phdr *ph);
bool load_shdr(Loader *ld, uint32_t i, Shdr *sh);
/* NUL-terminated string at off, all of it before limit; NULL when out of range. */
const char *load_str(const Loader *ld, uint64_t off, uint64_t limit);
/* Appends a kernel and makes it known by name; false: out of memory. */
bool load_add_kernel(Loader *ld, const SimKernel *k);
/* Fills im->kernels from the metadata note (symbol, arguments, resources; descriptors come later). */
bool load_metadata(Loader *ld);

#endif
