/* coherence.h - which accesses other waves may wait for, and what cache operations do: one row a chip. Shared
 * by the race check; a release is an access of wide enough scope after the waits (and the write-back) that
 * the chip asks for, an acquire is such a load, its wait, then the invalidation.
 */
#ifndef TL_ISA_COHERENCE_H
#define TL_ISA_COHERENCE_H

#include "isa/isa.h"

/* How far an access is coherent, how far a cache operation reaches. */
typedef enum IsaScope { ISA_SCOPE_WAVE, ISA_SCOPE_GROUP, ISA_SCOPE_DEVICE, ISA_SCOPE_SYSTEM } IsaScope;

typedef struct IsaCoherence {
    uint8_t scope;   /* IsaScope of an access */
    bool maybe;      /* a store that may be atomic: the encoding of this chip does not tell */
    uint8_t inv, wb; /* a cache operation invalidates, writes back up to this scope (WAVE: does not) */
    bool
        inv_outer; /* gfx11: the cache of the shader array (gl1), which must go before that of the CU (gl0) */
    bool inv_inner; /* gfx11: gl0 */
} IsaCoherence;

IsaCoherence isa_coherence(IsaArch arch, const IsaInst *in);
/* Do stores of this chip look the same whether atomic or not? */
bool isa_store_hides_scope(IsaArch arch);
/* ... of workgroup scope, where the waves of the workgroup share a cache? */
bool isa_store_hides_group(IsaArch arch);
/* The least scope of a release that needs a write-back before it. */
IsaScope isa_writeback_from(IsaArch arch);
/* "buffer_wbl2 sc1", "global_inv" ...: the instructions that a report may name. */
const char *isa_writeback_name(IsaArch arch);
const char *isa_invalidate_name(IsaArch arch);
/* The same where the waves of a workgroup do not share a cache. */
const char *isa_invalidate_group_name(IsaArch arch);

#endif
