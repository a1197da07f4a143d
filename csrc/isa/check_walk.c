/* check_walk.c - the dataflow driver of the static checks, and their reports. */
#include <stdio.h>
#include "isa/check_int.h"

bool
isa_opnd_regs(const IsaOpnd *o, uint32_t *first, uint32_t *n)
{
    *n = o->nregs;
    switch ((IsaOpndKind)o->kind) {
    case ISA_OPND_VGPR:
        *first = o->reg;
        return true;
    case ISA_OPND_AGPR:
        *first = ISA_REG_A + o->reg;
        return true;
    case ISA_OPND_SGPR:
        *first = ISA_REG_S + o->reg;
        return o->reg + (uint32_t)o->nregs <= 128;
    case ISA_OPND_SRC:
        *first = ISA_REG_SCC;
        *n = 1;
        return o->reg == 253;
    case ISA_OPND_NONE:
    case ISA_OPND_CONST:
    case ISA_OPND_IMM:
        break;
    }
    return false;
}

static void
reg_name(IsaArch arch, uint32_t r, char *buf, size_t n)
{
    r = r >= ISA_REG_HIGH ? r - ISA_REG_HIGH : r;
    const char *file = r < ISA_REG_A ? "v" : r < ISA_REG_S ? "a" : "s";
    uint32_t i = r < ISA_REG_A ? r : r < ISA_REG_S ? r - ISA_REG_A : r - ISA_REG_S;
    if (r == ISA_REG_SCC)
        snprintf(buf, n, "scc");
    else if (r >= ISA_REG_S && (i == 106 || i == 107))
        snprintf(buf, n, i == 106 ? "vcc_lo" : "vcc_hi");
    else if (r >= ISA_REG_S && (i == 126 || i == 127))
        snprintf(buf, n, i == 126 ? "exec_lo" : "exec_hi");
    else if (r >= ISA_REG_S && (i == 124 || i == 125))
        snprintf(buf, n, "%s", i == (arch <= ISA_GFX950 ? 124 : 125) ? "m0" : "null");
    else if (r >= ISA_REG_S && i >= 108 && i < 124)
        snprintf(buf, n, "ttmp%u", i - 108);
    else
        snprintf(buf, n, "%s%u", file, i);
}

bool
isa_fault(IsaWalk *w, IsaFaultKind kind, uint32_t at, uint32_t from, uint32_t reg, const char *what,
          const char *how, int missing)
{
    const IsaCode *c = w->c;
    TlText t;
    char name[16] = "";
    tl_text_init(&t, c->arena);
    if (reg != UINT32_MAX)
        reg_name(c->arch, reg, name, sizeof name);
    tl_text_printf(&t, "%s%s%s", name, *name ? " " : "", what);
    if (missing)
        tl_text_printf(&t, " %d wait state%s too early", missing, missing == 1 ? "" : "s");
    if (*how)
        tl_text_printf(&t, " %s", how);
    tl_text_printf(&t, " 0x%x: ", c->offset[from]);
    isa_print(c->arch, c->wave64, &c->inst[from], &t);
    tl_text_printf(&t, "; at 0x%x: ", c->offset[at]);
    isa_print(c->arch, c->wave64, &c->inst[at], &t);
    if (t.failed)
        return false;
    IsaFault f = {kind, at, from, kind == ISA_FAULT_HAZARD ? w->rule : ISA_HR_NONE, t.data};
    return tl_vec_push(c->arena, w->out, f);
}

static bool
run_block(IsaWalk *w, IsaStep *step, void *state, const IsaBlock *b)
{
    for (uint32_t i = b->first; i < b->end; i++)
        if (!step(w, state, i))
            return false;
    return true;
}

/* States of the blocks that control reaches, in memory that ends with the walk. */
typedef struct Blocks {
    TlArena arena;
    size_t size;
    char **state; /* at the block's start; NULL: not reached */
    uint8_t *dirty;
    char *cur;
} Blocks;

/* Control goes on to block `to` with the state in b->cur; false: out of memory. */
static bool
enter(Blocks *b, IsaJoin *join, uint32_t to, bool *changed)
{
    if (b->state[to] && !join(b->state[to], b->cur))
        return true;
    if (!b->state[to]) {
        if (!(b->state[to] = tl_arena_alloc(&b->arena, b->size, 16)))
            return false;
        memcpy(b->state[to], b->cur, b->size);
    }
    b->dirty[to] = 1;
    *changed = true;
    return true;
}

/* One sweep in block order; *changed says whether some state grew. */
static bool
sweep(IsaWalk *w, Blocks *b, IsaStep *step, IsaJoin *join, bool *changed)
{
    const IsaCode *c = w->c;
    for (uint32_t k = 0; k < c->nblocks; k++) {
        if (!b->state[k] || (!b->dirty[k] && !w->report))
            continue;
        b->dirty[k] = 0;
        memcpy(b->cur, b->state[k], b->size);
        if (!run_block(w, step, b->cur, &c->block[k]))
            return false;
        for (uint32_t s = 0; s < 2 && !w->report; s++)
            if (c->block[k].succ[s] != UINT32_MAX && !enter(b, join, c->block[k].succ[s], changed))
                return false;
    }
    return true;
}

static bool
walk(IsaWalk *w, Blocks *b, IsaStep *step, IsaJoin *join)
{
    uint32_t n = w->c->nblocks + 1;
    b->state = TL_NEW_N(&b->arena, char *, n);
    b->dirty = TL_NEW_N(&b->arena, uint8_t, n);
    b->cur = tl_arena_alloc(&b->arena, b->size, 16);
    if (!b->state || !b->dirty || !b->cur)
        return false;
    w->report = false;
    bool changed = false;
    if (!enter(b, join, 0, &changed))
        return false;
    while (changed) {
        changed = false;
        if (!sweep(w, b, step, join, &changed))
            return false;
    }
    w->report = true;
    return sweep(w, b, step, join, &changed);
}

bool
isa_walk(IsaWalk *w, size_t size, IsaStep *step, IsaJoin *join)
{
    Blocks b = {.size = (size + 15) & ~(size_t)15};
    tl_arena_init(&b.arena, &w->c->arena->alloc);
    bool ok = walk(w, &b, step, join);
    tl_arena_free(&b.arena);
    return ok;
}

uint32_t
isa_checks_of(IsaArch arch)
{
    (void)arch;
    return ISA_CHECK_ALL | ISA_CHECK_EXEC;
}

bool
isa_check(const IsaCode *c, uint32_t which, IsaFaults *out)
{
    IsaWalk w = {.c = c, .which = which, .out = out};
    which &= isa_checks_of(c->arch);
    w.which = which;
    if (!c->nblocks)
        return true;
    if ((which & (ISA_CHECK_WAIT | ISA_CHECK_BARRIER)) && !isa_check_waits(&w))
        return false;
    if ((which & ISA_CHECK_HAZARD) && !(c->arch <= ISA_GFX950 ? isa_check_hazards(&w) : isa_check_rdna(&w)))
        return false;
    return !(which & ISA_CHECK_EXEC) || isa_check_exec(&w);
}
