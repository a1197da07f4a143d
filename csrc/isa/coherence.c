/* coherence.c - scopes of memory accesses and of cache operations (contract in coherence.h). */
#include "isa/coherence.h"

typedef struct CoherenceRow {
    bool store_tells; /* the scope of a store shows in its encoding */
    bool near_tells;  /* that of a workgroup too, where its waves share a cache */
    uint8_t rmw;      /* scope of a read-modify-write whose encoding has no scope */
    uint8_t wb_from;
    const char *wb, *inv, *inv_group;
} CoherenceRow;

static const CoherenceRow rows[ISA_ARCH_COUNT] = {
    [ISA_GFX90A] = {false, false, ISA_SCOPE_DEVICE, ISA_SCOPE_SYSTEM, "buffer_wbl2", "buffer_wbinvl1_vol",
                    "buffer_wbinvl1_vol"},
    [ISA_GFX942] = {true, true, ISA_SCOPE_DEVICE, ISA_SCOPE_DEVICE, "buffer_wbl2 sc1", "buffer_inv sc1",
                    "buffer_inv sc0"},
    [ISA_GFX950] = {true, true, ISA_SCOPE_DEVICE, ISA_SCOPE_DEVICE, "buffer_wbl2 sc1", "buffer_inv sc1",
                    "buffer_inv sc0"},
    [ISA_GFX1100] = {false, false, ISA_SCOPE_DEVICE, ISA_SCOPE_SYSTEM + 1, "",
                     "buffer_gl1_inv and buffer_gl0_inv", "buffer_gl0_inv"},
    [ISA_GFX1201] = {true, false, ISA_SCOPE_WAVE, ISA_SCOPE_SYSTEM, "global_wb scope:SCOPE_SYS",
                     "global_inv scope:SCOPE_DEV", "global_inv scope:SCOPE_SE"},
};

static uint8_t
scope_bits(IsaArch arch, const IsaInst *in)
{
    switch (arch) {
    case ISA_GFX90A: /* sc1 is its scc */
        return in->sc1 ? ISA_SCOPE_SYSTEM : in->glc || in->sc0 ? ISA_SCOPE_DEVICE : ISA_SCOPE_WAVE;
    case ISA_GFX942:
    case ISA_GFX950:
        return in->sc1 ? (in->sc0 ? ISA_SCOPE_SYSTEM : ISA_SCOPE_DEVICE)
                       : (in->sc0 ? ISA_SCOPE_GROUP : ISA_SCOPE_WAVE);
    case ISA_GFX1100:
        return in->glc || in->sc0 ? ISA_SCOPE_DEVICE : ISA_SCOPE_WAVE;
    case ISA_GFX1201:
        return in->scope; /* CU, SE, DEV, SYS */
    case ISA_ARCH_COUNT:
        break;
    }
    return ISA_SCOPE_WAVE;
}

static bool
cache_op(IsaArch arch, const IsaInst *in, IsaCoherence *c)
{
    uint8_t scope = scope_bits(arch, in);
    switch ((int)in->op) {
    case ISA_OP_buffer_inv: /* without a scope: the wave's own, nothing to do */
        c->inv = scope;
        return true;
    case ISA_OP_buffer_wbl2:
        c->wb = arch == ISA_GFX90A ? ISA_SCOPE_SYSTEM : scope;
        return true;
    case ISA_OP_buffer_wbinvl1:
    case ISA_OP_buffer_wbinvl1_vol:
        c->inv = ISA_SCOPE_DEVICE;
        return true;
    case ISA_OP_buffer_invl2: /* the caches of the CUs stay as they are */
        return true;
    case ISA_OP_buffer_gl1_inv:
        c->inv_outer = true;
        return true;
    case ISA_OP_buffer_gl0_inv:
        c->inv_inner = true;
        c->inv = ISA_SCOPE_GROUP;
        return true;
    case ISA_OP_global_inv:
        c->inv = scope;
        return true;
    case ISA_OP_global_wb:
        c->wb = scope;
        return true;
    case ISA_OP_global_wbinv:
        c->inv = c->wb = scope;
        return true;
    default:
        return false;
    }
}

IsaCoherence
isa_coherence(IsaArch arch, const IsaInst *in)
{
    IsaCoherence c = {0};
    const CoherenceRow *row = &rows[arch];
    uint32_t cl = isa_op_info(in->op)->classes;
    if (!(cl & ISA_C_VMEM) || cache_op(arch, in, &c))
        return c;
    if (cl & ISA_C_ATOMIC) { /* sc0 and glc say there that the old value comes back */
        uint8_t asked = arch == ISA_GFX1201 ? in->scope : in->sc1 ? ISA_SCOPE_SYSTEM : 0;
        c.scope = TL_MAX(asked, row->rmw);
    } else if (cl & ISA_C_STORE) {
        c.maybe = !row->store_tells;
        c.scope = c.maybe ? ISA_SCOPE_DEVICE : scope_bits(arch, in);
    } else {
        c.scope = scope_bits(arch, in);
    }
    return c;
}

bool
isa_store_hides_scope(IsaArch arch)
{
    return !rows[arch].store_tells;
}

bool
isa_store_hides_group(IsaArch arch)
{
    return !rows[arch].near_tells;
}

IsaScope
isa_writeback_from(IsaArch arch)
{
    return (IsaScope)rows[arch].wb_from;
}

const char *
isa_writeback_name(IsaArch arch)
{
    return rows[arch].wb;
}

const char *
isa_invalidate_name(IsaArch arch)
{
    return rows[arch].inv;
}

const char *
isa_invalidate_group_name(IsaArch arch)
{
    return rows[arch].inv_group;
}
