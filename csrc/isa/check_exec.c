/* check_exec.c - is EXEC whole where lanes read each other? A forward dataflow: whether EXEC surely holds all
 * the lanes it had at the function's entry, and which scalar pairs hold such a mask (saved by s_*_saveexec or
 * a move). DPP, permlane and the LDS permutes under a narrowed EXEC are told: what they read from lanes that
 * are off is not what those lanes hold.
 */
#include "isa/check_int.h"

typedef struct ExecState {
    uint8_t narrow;       /* EXEC may lack lanes */
    uint8_t partial[128]; /* the scalar is no mask of all lanes */
    uint32_t from;
} ExecState;

static bool
join(void *into, const void *from)
{
    ExecState *a = into;
    const ExecState *b = from;
    bool changed = false;
    if (b->narrow && !a->narrow) {
        a->narrow = 1;
        a->from = b->from;
        changed = true;
    }
    for (uint32_t i = 0; i < 128; i++)
        if (b->partial[i] && !a->partial[i])
            a->partial[i] = changed = true;
    return changed;
}

static bool
has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static bool
cross_lane(const IsaInst *in, const char *name)
{
    if (in->form == ISA_DPP) /* quad_perm:[0,1,2,3] moves nothing */
        return in->dpp_ctrl != 0xe4;
    return in->form == ISA_DPP8 || has(name, "v_permlane") || has(name, "ds_permute") ||
           has(name, "ds_bpermute") || has(name, "ds_swizzle");
}

static bool
is_exec(const IsaOpnd *o)
{
    return o->kind == ISA_OPND_SGPR && o->reg == 126;
}

/* Whether an operand is a mask of all lanes. */
static bool
whole(const ExecState *s, const IsaOpnd *o)
{
    if (is_exec(o))
        return !s->narrow;
    if (o->kind == ISA_OPND_CONST)
        return o->bits == UINT32_MAX;
    return o->kind == ISA_OPND_SGPR && o->reg < 126 && !s->partial[o->reg];
}

/* The value of a scalar mask operation: all lanes, for sure. */
static bool
result_whole(const ExecState *s, const IsaInst *in, const char *name)
{
    const IsaOpnd *src = &in->opnd[1];
    if (has(name, "s_mov_b"))
        return whole(s, src);
    if (has(name, "s_or_b"))
        return whole(s, src) || whole(s, src + 1);
    if (has(name, "s_and_b"))
        return whole(s, src) && whole(s, src + 1);
    return has(name, "s_or_saveexec") && (whole(s, src) || !s->narrow);
}

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    ExecState *s = state;
    const IsaInst *in = &w->c->inst[i];
    const char *name = isa_op_info(in->op)->name;
    if (i == 0)
        memset(s->partial, 1, sizeof s->partial);
    if (w->report && s->narrow && cross_lane(in, name) &&
        !isa_fault(w, ISA_FAULT_EXEC, i, s->from, UINT32_MAX, "lanes may be off since", "", 0))
        return false;
    bool saves = has(name, "_saveexec_"), all = result_whole(s, in, name), was = !s->narrow;
    for (uint32_t k = 0; k < in->nopnds; k++) {
        const IsaOpnd *o = &in->opnd[k];
        if (!(o->flags & ISA_WRITE) || o->kind != ISA_OPND_SGPR)
            continue;
        if (o->reg == 126 || o->reg == 127) {
            if (all && o->reg == 126) {
                s->narrow = 0;
            } else if (!s->narrow) {
                s->narrow = 1;
                s->from = i;
            }
            continue;
        }
        for (uint32_t r = o->reg; r < o->reg + (uint32_t)o->nregs && r < 126; r++)
            s->partial[r] = !(saves ? was : all);
    }
    return true;
}

bool
isa_check_exec(IsaWalk *w)
{
    return isa_walk(w, sizeof(ExecState), step, join);
}
