/* check_guess.c - plain loads that stand for atomic ones. Where a chip lacks a read-modify-write, compilers
 * make a loop around a compare-and-swap; it begins with a plain load of the place, whose value is a guess
 * that the swap proves or replaces. Such a load races with plain accesses, but not with atomic ones.
 */
#include "sim/check.h"

enum { AHEAD = 128 /* instructions that are looked at behind the load */ };

/* Operands that make the address (at most 3): what is read, without the data of an atomic. */
static uint32_t
address_operands(const IsaInst *in, bool atomic, const IsaOpnd *list[4])
{
    bool buffer = in->enc == ISA_MUBUF, ds = in->enc == ISA_DS;
    uint32_t n = 0, nth = 0;
    for (uint32_t i = buffer ? 1 : in->ndst; i < in->nopnds && n < 4; i++) {
        if (in->opnd[i].flags & ISA_IMPLICIT)
            continue;
        bool data = atomic && !buffer && (ds ? nth > 0 : nth == 1);
        nth++;
        if (!data)
            list[n++] = &in->opnd[i];
    }
    return n;
}

static bool
same_address(const IsaInst *load, const IsaInst *swap)
{
    const IsaOpnd *a[4], *b[4];
    uint32_t n = address_operands(load, false, a);
    if (n != address_operands(swap, true, b) || load->offset != swap->offset)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (a[i]->kind != b[i]->kind || a[i]->reg != b[i]->reg || a[i]->nregs != b[i]->nregs)
            return false;
    return true;
}

static bool
is_swap(const IsaInst *in, uint32_t regs)
{
    const char *name = isa_op_info(in->op)->name;
    bool ds = in->enc == ISA_DS;
    if (!strstr(name, "cmpswap") && !strstr(name, "cmpst_") && !strstr(name, "cmpstore"))
        return false;
    for (uint32_t i = 0; i < in->nopnds; i++) /* the data: new and expected, together but in LDS */
        if (in->opnd[i].kind == ISA_OPND_VGPR && (in->opnd[i].flags & ISA_READ) &&
            (ds ? i > in->ndst : true) && in->opnd[i].nregs == (ds ? regs : 2 * regs))
            return true;
    return false;
}

/* The same for a scalar load, which is what becomes of the guess where the address is uniform. */
static bool
same_base(const IsaInst *load, const IsaInst *swap)
{
    const IsaOpnd *base = &load->opnd[load->ndst];
    for (uint32_t i = swap->ndst; i < swap->nopnds; i++)
        if (swap->opnd[i].kind == ISA_OPND_SGPR && swap->opnd[i].nregs == 2 && swap->opnd[i].reg == base->reg)
            return swap->enc == ISA_GLOBAL && load->offset == swap->offset;
    return false;
}

/* Is the load the guess of a loop that follows? Code without optimization has the address in other registers
 * there; then nothing of the kind may come in between. */
static bool
is_guess(const SimCode *c, const SimRec *r)
{
    const IsaInst *in = &r->ext->in;
    uint32_t regs = in->ndst ? in->opnd[0].nregs : 0;
    uint64_t at = (uint64_t)r->at * 4 + in->size;
    bool others = false, scalar = in->enc == ISA_SMEM;
    if ((regs != 1 && regs != 2) || in->lds || !strncmp(isa_op_info(in->op)->name, "scratch_", 8))
        return false;
    for (uint32_t k = 0; k < AHEAD; k++) {
        IsaInst next;
        if (!sim_code_at(c, at, &next))
            return false;
        at += next.size;
        uint32_t cl = isa_op_info(next.op)->classes;
        if ((cl & ISA_C_END) || !strncmp(isa_op_info(next.op)->name, "s_setpc", 7))
            return false;
        if (scalar && is_swap(&next, regs) && same_base(in, &next))
            return true;
        if (next.enc != in->enc || scalar || !(cl & (ISA_C_VMEM | ISA_C_DS)) ||
            !(cl & (ISA_C_LOAD | ISA_C_STORE | ISA_C_ATOMIC)) ||
            !strncmp(isa_op_info(next.op)->name, "scratch_", 8))
            continue;
        if (is_swap(&next, regs) && (!others || same_address(in, &next)))
            return true;
        others = true;
    }
    return false;
}

bool
sim_chk_maybe(const SimWave *w, const SimRec *r)
{
    return sim_chk_ask(&r->ext->maybe, is_guess, w->code, r);
}
