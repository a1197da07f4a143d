/* link_lld.h - one relocatable AMDGPU object in memory -> one code object (shared ELF) in memory, by lld in
 * process. */
#ifndef TL_CODEGEN_LINK_LLD_H
#define TL_CODEGEN_LINK_LLD_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* On success *out (malloc, the caller frees) and *out_n; on failure false and a reason in err (cut to err_n -
 * 1 bytes). */
bool tl_lld_link(const void *obj, size_t obj_n, void **out, size_t *out_n, char *err, size_t err_n);

#ifdef __cplusplus
}
#endif

#endif
