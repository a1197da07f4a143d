/* lower_sync.c - barriers of the workgroup, made where an access to LDS needs one and nowhere else.
 *
 * The state is what this wave has read and written in LDS since the last barrier (every wave runs the same
 * program, so it is what any wave may have under way). A read needs a barrier after a write; a write after a
 * read or a write. A loop's body starts in the state that its own end may leave.
 */
#include "pass/lower.h"

bool
lw_barrier(Lw *lw)
{
    lw->sync = (LwSync){0, 0};
    return lw_op(lw, TL_OP_barrier, NULL, 0, NULL, 0) != 0;
}

bool
lw_sync_read(Lw *lw, uint64_t bits)
{
    if ((lw->sync.written & bits) && !lw_barrier(lw))
        return false;
    lw->sync.read |= bits;
    return true;
}

bool
lw_sync_write(Lw *lw, uint64_t bits)
{
    if (((lw->sync.written | lw->sync.read) & bits) && !lw_barrier(lw))
        return false;
    lw->sync.written |= bits;
    return true;
}

static bool
accesses(TlIr *ir, TlOp o, void *self)
{
    Lw *lw = self;
    const TlOpNode *n = tl_opn(ir, o);
    for (uint32_t i = 0; i < n->nin; i++) {
        if (tl_vtype(ir, n->in[i])->kind != TL_TY_SHARED)
            continue;
        LwShared *s = lw_shared(lw, n->in[i]);
        if (!s)
            return false;
        if (n->code == TL_OP_store && i == 0)
            lw->sync.written |= 1ull << s->bit;
        else
            lw->sync.read |= 1ull << s->bit;
        n = tl_opn(ir, o);
    }
    return true;
}

void
lw_sync_loop(Lw *lw, TlOp loop)
{
    for (uint32_t r = 0; r < tl_opn(lw->ir, loop)->nregion; r++)
        tl_walk(lw->ir, tl_opn(lw->ir, loop)->region[r], accesses, lw);
    lw->sync.read |= 1ull << LW_SCRATCH_BIT;
    lw->sync.written |= 1ull << LW_SCRATCH_BIT;
}
