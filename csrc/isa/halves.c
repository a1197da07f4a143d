/* halves.c - what the checks ask of an instruction's operands: halves of registers, data of stores and
 * atomics, M0, where branches lead (contract in isa.h). */
#include "isa/isa.h"

static bool
has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* Data of one byte or half of a memory instruction: where loads put it, from where stores take it. */
static uint8_t
memory_halves(const IsaInst *in, uint32_t k, const char *name, uint32_t classes)
{
    bool load = (classes & ISA_C_LOAD) && !(classes & ISA_C_ATOMIC), store = classes & ISA_C_STORE;
    bool buffer = in->enc == ISA_MUBUF || in->enc == ISA_MTBUF;
    uint32_t data = load || buffer ? 0 : 1; /* behind the address */
    bool half = has(name, "d16") && (!has(name, "format") || has(name, "_x")) && !has(name, "_xy");
    bool small = store && (has(name, "_b8") || has(name, "_b16"));
    if (k != data || !(load || store) || !(half || small))
        return 3;
    return has(name, "d16_hi") ? 2 : 1;
}

/* v_fma_mix*: sources are halves where op_sel_hi says so; the result of mixlo and mixhi is one. */
static uint8_t
mix_halves(const IsaInst *in, uint32_t k, const char *name)
{
    if (k == 0)
        return has(name, "mixlo") ? 1 : has(name, "mixhi") ? 2 : 3;
    if (k > 3 || !(in->op_sel_hi >> (k - 1) & 1))
        return 3;
    return in->op_sel >> (k - 1) & 1 ? 2 : 1;
}

uint8_t
isa_opnd_halves(IsaArch arch, const IsaInst *in, uint32_t k)
{
    const IsaOpInfo *info = isa_op_info(in->op);
    const IsaOpnd *o = &in->opnd[k];
    if (arch <= ISA_GFX950 || o->kind != ISA_OPND_VGPR || o->nregs != 1 || in->form == ISA_VOPD)
        return 3;
    if (o->half)
        return o->half;
    if (info->classes & (ISA_C_VMEM | ISA_C_DS))
        return memory_halves(in, k, info->name, info->classes);
    return strncmp(info->name, "v_fma_mix", 9) ? 3 : mix_halves(in, k, info->name);
}

bool
isa_opnd_keeps(IsaArch arch, const IsaInst *in, uint32_t k)
{
    const IsaOpnd *o = &in->opnd[k];
    return k < in->ndst && (o->flags & ISA_WRITE) && !o->half && isa_opnd_halves(arch, in, k) != 3;
}

bool
isa_branch_to(const IsaInst *in, int64_t at, int64_t *to)
{
    if (in->enc != ISA_SOPP || !(isa_op_info(in->op)->classes & ISA_C_BRANCH))
        return false;
    *to = at + 4 + 4 * (int64_t)(int16_t)in->opnd[0].bits;
    return true;
}

bool
isa_needs_m0(const IsaInst *in)
{
    const char *n = isa_op_info(in->op)->name;
    return !strncmp(n, "s_sendmsg", 9) || !strncmp(n, "s_movrel", 8) || !strncmp(n, "ds_gws_", 7) ||
           has(n, "addtid");
}

uint32_t
isa_data_opnd(const IsaInst *in)
{
    bool buffer = in->enc == ISA_MUBUF || in->enc == ISA_MTBUF;
    bool returns = (isa_op_info(in->op)->classes & ISA_C_ATOMIC) && in->ndst;
    return buffer ? 0 : returns ? 2 : 1;
}

bool
isa_wide_atomic(const IsaInst *in)
{
    uint32_t cl = isa_op_info(in->op)->classes, k = isa_data_opnd(in);
    return (cl & ISA_C_VMEM) && (cl & ISA_C_ATOMIC) && k < in->nopnds && in->opnd[k].nregs > 2;
}
