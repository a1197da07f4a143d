/* hazard_rdna.c - rows and kinds of what gfx11 and gfx12 do not interlock (contract in hazard_rdna.h). */
#include "isa/hazard_rdna.h"

static const IsaRdnaRowInfo rows[ISA_RH_COUNT] = {
#define RDNA_ROW(id, rule, ...) [ISA_RH_##id] = {ISA_HR_##rule, __VA_ARGS__},
#include "isa/hazard_rdna.def"
#undef RDNA_ROW
};

const IsaRdnaRowInfo *
isa_rdna_row(IsaRdnaRow row)
{
    return &rows[row];
}

uint32_t
isa_rdna_rows(IsaArch arch, bool wave64)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < ISA_RH_COUNT; k++) {
        bool chip = arch == ISA_GFX1100 ? rows[k].gfx11 : arch == ISA_GFX1201 && rows[k].gfx12;
        if (chip && (wave64 ? rows[k].wave64 : rows[k].wave32))
            bits |= 1u << k;
    }
    return bits;
}

/* The lane mask among the operands: the last scalar a select or an add with carry reads, VCC of v_div_fmas.
 */
static int8_t
mask_operand(const IsaInst *in, const char *name)
{
    bool select = strstr(name, "cndmask") != NULL, carry = strstr(name, "_co_ci_") != NULL;
    bool fmas = !strncmp(name, "v_div_fmas", 10);
    int8_t at = -1;
    for (uint32_t i = in->ndst; (select || carry || fmas) && i < in->nopnds; i++)
        if (in->opnd[i].kind == ISA_OPND_SGPR && (in->opnd[i].flags & ISA_READ))
            at = (int8_t)i; /* it comes last */
    return at;
}

IsaRdnaKind
isa_rdna_kind(IsaArch arch, const IsaInst *in)
{
    const IsaOpInfo *info = isa_op_info(in->op);
    uint32_t cl = info->classes;
    IsaRdnaKind k = {.mask = -1};
    if (arch <= ISA_GFX950)
        return k;
    k.wmma = cl & ISA_C_MFMA;
    k.valu = k.wmma || (cl & ISA_C_VALU);
    k.nop = in->op == ISA_OP_v_nop;
    k.trans = cl & ISA_C_TRANS;
    k.cmpx = k.valu && (cl & ISA_C_CMPX);
    k.permlane = !strncmp(info->name, "v_permlane", 10);
    k.mem = cl & (ISA_C_VMEM | ISA_C_DS);
    k.smem = cl & ISA_C_SMEM;
    k.salu = (cl & ISA_C_SALU) || in->enc == ISA_SOP1 || in->enc == ISA_SOP2 || in->enc == ISA_SOPC ||
             in->enc == ISA_SOPK || (in->enc == ISA_SOPP && (cl & ISA_C_BRANCH));
    if (k.valu && arch == ISA_GFX1100)
        k.mask = mask_operand(in, info->name);
    if (in->op == ISA_OP_s_waitcnt_depctr || in->op == ISA_OP_s_wait_alu) {
        uint32_t v = in->opnd[0].bits;
        k.waits = true;
        k.salu = false;
        k.va_vdst = v >> 12 & 15;
        k.va_sdst = v >> 9 & 7;
        k.va_vcc = v >> 1 & 1;
        k.sa_sdst = v & 1;
    }
    return k;
}

bool
isa_rdna_scalar(uint32_t code)
{
    return code < 124; /* 124 null, 125 m0, 126 exec */
}
