/* counters.c - counters of memory operations (contract in counters.h). */
#include "isa/counters.h"

typedef struct CounterRow {
    uint16_t most[3];    /* gfx9, gfx11, gfx12; 0: the chip has none */
    const char *name[3]; /* as its waits are called */
    bool in_order;
} CounterRow;

static const CounterRow rows[ISA_CNT_COUNT] = {
    [ISA_CNT_VM] = {{63, 63, 63}, {"vmcnt", "vmcnt", "loadcnt"}, true},
    [ISA_CNT_VS] = {{0, 63, 63}, {NULL, "vscnt", "storecnt"}, true},
    [ISA_CNT_DS] = {{15, 63, 63}, {"lgkmcnt", "lgkmcnt", "dscnt"}, true},
    [ISA_CNT_KM] = {{15, 63, 31}, {"lgkmcnt", "lgkmcnt", "kmcnt"}, false},
    [ISA_CNT_SAMPLE] = {{0, 0, 63}, {NULL, NULL, "samplecnt"}, true},
    [ISA_CNT_BVH] = {{0, 0, 7}, {NULL, NULL, "bvhcnt"}, true},
    [ISA_CNT_EXP] = {{7, 7, 7}, {"expcnt", "expcnt", "expcnt"}, true},
};

static uint32_t
family(IsaArch arch)
{
    return arch <= ISA_GFX950 ? 0 : arch == ISA_GFX1100 ? 1 : 2;
}

const char *
isa_counter_name(IsaArch arch, IsaCounter c)
{
    const char *n = c < ISA_CNT_COUNT ? rows[c].name[family(arch)] : NULL;
    return n ? n : "?";
}

bool
isa_counter_in_order(IsaCounter c)
{
    return rows[c].in_order;
}

uint32_t
isa_counter_most(IsaArch arch, IsaCounter c)
{
    return rows[c].most[family(arch)];
}

uint32_t
isa_counters_joined(IsaArch arch, IsaCounter c)
{
    uint32_t lgkm = 1u << ISA_CNT_DS | 1u << ISA_CNT_KM;
    return family(arch) < 2 && (lgkm >> c & 1) ? lgkm : 1u << c;
}

/* Cache operations that count. */
static uint32_t
cache_counter(IsaArch arch, const IsaInst *in)
{
    switch ((int)in->op) {
    case ISA_OP_buffer_wbl2:
        return 1u << ISA_CNT_VM;
    case ISA_OP_global_inv:
        return 1u << ISA_CNT_VM;
    case ISA_OP_global_wb:
    case ISA_OP_global_wbinv:
        return 1u << (arch <= ISA_GFX950 ? ISA_CNT_VM : ISA_CNT_VS);
    default:
        return 0;
    }
}

uint32_t
isa_counters_of(IsaArch arch, const IsaInst *in)
{
    uint32_t cl = isa_op_info(in->op)->classes;
    if (cl & ISA_C_SMEM) /* prefetches are not counted */
        return strncmp(isa_op_info(in->op)->name, "s_prefetch", 10) ? 1u << ISA_CNT_KM : 0;
    if (in->op == ISA_OP_s_sendmsg || in->op == ISA_OP_s_sendmsghalt || in->op == ISA_OP_s_sendmsg_rtn_b32 ||
        in->op == ISA_OP_s_sendmsg_rtn_b64 || in->op == ISA_OP_s_get_barrier_state ||
        in->op == ISA_OP_s_barrier_signal_isfirst || in->op == ISA_OP_s_barrier_leave)
        return 1u << ISA_CNT_KM;
    if (in->op == ISA_OP_lds_direct_load || in->op == ISA_OP_ds_direct_load)
        return 1u << ISA_CNT_EXP;
    if (cl & ISA_C_DS)
        return 1u << ISA_CNT_DS;
    if (!(cl & ISA_C_VMEM))
        return 0;
    if (!(cl & (ISA_C_LOAD | ISA_C_STORE | ISA_C_ATOMIC)))
        return cache_counter(arch, in);
    uint32_t c = 1u << ISA_CNT_VM;
    if (arch > ISA_GFX950 && !(cl & ISA_C_LOAD)) { /* stores, and atomics that return nothing */
        bool returns = (cl & ISA_C_ATOMIC) && (in->glc || in->sc0 || (arch == ISA_GFX1201 && (in->th & 1)));
        if (!returns)
            c = 1u << ISA_CNT_VS;
    }
    return cl & ISA_C_FLAT ? c | 1u << ISA_CNT_DS : c;
}

static void
ask(uint16_t *limit, IsaCounter c, uint32_t n, uint32_t most)
{
    if (most && n < most)
        limit[c] = (uint16_t)n;
}

#define ASK(c, x) ask(limit, ISA_CNT_##c, x, isa_counter_most(arch, ISA_CNT_##c))
static void
waitcnt(IsaArch arch, uint32_t v, uint16_t limit[ISA_CNT_COUNT])
{
    bool rdna = arch > ISA_GFX950;
    uint32_t lgkm = rdna ? v >> 4 & 63 : v >> 8 & 15;
    ASK(VM, rdna ? v >> 10 & 63 : (v & 15) | (v >> 14 & 3) << 4);
    ASK(DS, lgkm);
    ASK(KM, lgkm);
    ASK(EXP, rdna ? v & 7 : v >> 4 & 7);
}

bool
isa_wait_limits(IsaArch arch, const IsaInst *in, uint16_t limit[ISA_CNT_COUNT])
{
    uint32_t v = in->nopnds ? in->opnd[0].bits : 0, n = in->nopnds > 1 ? in->opnd[1].bits : v;
    for (uint32_t c = 0; c < ISA_CNT_COUNT; c++)
        limit[c] = ISA_CNT_ANY;
    switch ((int)in->op) {
    case ISA_OP_s_waitcnt:
        waitcnt(arch, v, limit);
        return true;
    case ISA_OP_s_waitcnt_vmcnt: /* a register (null), a number */
        ASK(VM, n & 63);
        return true;
    case ISA_OP_s_waitcnt_vscnt:
        ASK(VS, n & 63);
        return true;
    case ISA_OP_s_waitcnt_lgkmcnt:
        ASK(DS, n & 63);
        ASK(KM, n & 63);
        return true;
    case ISA_OP_s_waitcnt_expcnt:
        ASK(EXP, n & 7);
        return true;
    case ISA_OP_s_wait_loadcnt:
        ASK(VM, v & 63);
        return true;
    case ISA_OP_s_wait_storecnt:
        ASK(VS, v & 63);
        return true;
    case ISA_OP_s_wait_dscnt:
        ASK(DS, v & 63);
        return true;
    case ISA_OP_s_wait_kmcnt:
        ASK(KM, v & 31);
        return true;
    case ISA_OP_s_wait_samplecnt:
        ASK(SAMPLE, v & 63);
        return true;
    case ISA_OP_s_wait_bvhcnt:
        ASK(BVH, v & 7);
        return true;
    case ISA_OP_s_wait_expcnt:
        ASK(EXP, v & 7);
        return true;
    case ISA_OP_s_wait_loadcnt_dscnt:
        ASK(VM, v >> 8 & 63);
        ASK(DS, v & 63);
        return true;
    case ISA_OP_s_wait_storecnt_dscnt:
        ASK(VS, v >> 8 & 63);
        ASK(DS, v & 63);
        return true;
    case ISA_OP_s_wait_idle:
        for (uint32_t c = 0; c < ISA_CNT_COUNT; c++)
            limit[c] = 0;
        return true;
    default:
        return false;
    }
}
#undef ASK
