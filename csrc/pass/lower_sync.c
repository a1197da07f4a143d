/* lower_sync.c - barriers of the workgroup, made where an access to LDS or global memory needs one and
 * nowhere else.
 *
 * The state is what this wave has read and written since the last barrier (every wave runs the same program,
 * so it is what any wave may have under way). A read needs a barrier after a write; a write after a read or a
 * write. A loop's body starts in the state that its own end may leave; after a branch the state is what
 * either side may have left.
 */
#include "pass/lower.h"

bool
lw_barrier(Lw *lw)
{
    lw->sync.read = lw->sync.written = 0;
    return lw_op(lw, TL_OP_barrier, NULL, 0, NULL, 0) != 0;
}

bool
lw_barrier_all(Lw *lw)
{
    TlOp o = lw_op(lw, TL_OP_barrier, NULL, 0, NULL, 0);
    lw->sync = (LwSync){0};
    return o && tl_attr_set_str(lw->ir, o, "scope", "all");
}

uint64_t
lw_param_bit(Lw *lw, TlVal buf)
{
    LwParam *p = lw_param(lw, buf);
    return p ? 1ull << TL_MIN((uint64_t)(p - lw->params.data), (uint64_t)LW_LAST_PARAM_BIT) : 0;
}

/* Other waves of the program may have touched what op touches: meet first. */
bool
lw_order_memory(Lw *lw, TlOp op)
{
    bool store = tl_opn(lw->ir, op)->code == TL_OP_store;
    TlVal buf = tl_opn(lw->ir, op)->in[0];
    uint64_t own = lw_param_bit(lw, buf), alias = own;
    for (uint32_t i = 0; i < lw->params.len; i++) {
        TlVal q = lw->params.data[i].src;
        /* the flag says that a buffer meets no other: two that meet both lack it */
        if (lw->params.data[i].is_buf && !(tl_vtype(lw->ir, q)->flags & TL_BUF_NOALIAS) &&
            !(tl_vtype(lw->ir, buf)->flags & TL_BUF_NOALIAS))
            alias |= lw_param_bit(lw, q);
    }
    uint64_t under_way = lw->sync.gwritten | (store ? lw->sync.gread : 0);
    if ((under_way & alias) && !lw_barrier_all(lw))
        return false;
    if (store)
        lw->sync.gwritten |= own;
    else
        lw->sync.gread |= own;
    return own != 0;
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
        if (tl_vtype(ir, n->in[i])->kind == TL_TY_BUF && i == 0) {
            if (n->code == TL_OP_store)
                lw->sync.gwritten |= lw_param_bit(lw, n->in[i]);
            else if (n->code == TL_OP_load)
                lw->sync.gread |= lw_param_bit(lw, n->in[i]);
        }
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
