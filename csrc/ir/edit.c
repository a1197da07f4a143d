/* edit.c - changing kernels that exist: moving, replacing, cloning, walking. Nothing is freed: what is
 * unlinked stays in the arena and is found by no walk. */
#include "ir/ir_internal.h"

void
tl_op_unlink(TlIr *ir, TlOp o)
{
    TlOpNode *n = tl_opn(ir, o);
    if (!n->block)
        return;
    TlBlockNode *b = tl_blockn(ir, n->block);
    if (n->prev)
        tl_opn(ir, n->prev)->next = n->next;
    else
        b->first = n->next;
    if (n->next)
        tl_opn(ir, n->next)->prev = n->prev;
    else
        b->last = n->prev;
    n->block = n->prev = n->next = 0;
}

void
tl_op_move_before(TlIr *ir, TlOp o, TlBlock b, TlOp before)
{
    if (o == before)
        return;
    tl_op_unlink(ir, o);
    tl_op_link_before_(ir, o, b, before);
}

bool
tl_walk(TlIr *ir, TlBlock b, TlWalkFn fn, void *self)
{
    for (TlOp o = tl_blockn(ir, b)->first, next; o; o = next) {
        next = tl_opn(ir, o)->next;
        if (!fn(ir, o, self))
            return false;
        if (!tl_opn(ir, o)->block)
            continue;
        for (uint32_t r = 0; r < tl_opn(ir, o)->nregion; r++)
            if (!tl_walk(ir, tl_opn(ir, o)->region[r], fn, self))
                return false;
        next = tl_opn(ir, o)->next; /* fn may have inserted behind it */
    }
    return true;
}

typedef struct Uses {
    TlVal from, to;
    uint32_t n;
} Uses;

static bool
replace_in_op(TlIr *ir, TlOp o, void *self)
{
    Uses *u = self;
    TlOpNode *n = tl_opn(ir, o);
    for (uint32_t i = 0; i < n->nin; i++)
        if (n->in[i] == u->from) {
            n->in[i] = u->to;
            u->n++;
        }
    return true;
}

void
tl_replace_uses(TlIr *ir, TlKernelId k, TlVal from, TlVal to)
{
    Uses u = {from, to, 0};
    tl_walk(ir, tl_kerneln(ir, k)->body, replace_in_op, &u);
}

uint32_t
tl_count_uses(const TlIr *ir, TlKernelId k, TlVal v)
{
    Uses u = {v, v, 0};
    /* replacing a value by itself changes nothing */
    tl_walk((TlIr *)ir, tl_kerneln(ir, k)->body, replace_in_op, &u);
    return u.n;
}

bool
tl_op_set_in(TlIr *ir, TlOp o, const TlVal *in, uint32_t nin)
{
    TlOpNode *n = tl_opn(ir, o);
    TlVal *p = n->in;
    if (nin > n->nin && !(p = TL_NEW_N(ir->arena, TlVal, nin))) {
        ir->diag->oom = true;
        return false;
    }
    if (nin)
        memmove(p, in, nin * sizeof *in);
    n->in = p;
    n->nin = nin;
    return true;
}

static TlVal
mapped(const TlMap *m, TlVal v)
{
    uint64_t to;
    return tl_map_get(m, v, &to) ? (TlVal)to : v;
}

static bool
clone_block(TlIr *ir, TlBlock from, TlOp parent, TlKernelId k, TlMap *map)
{
    TlBlock to = tl_block_new(ir, k, parent);
    if (!to)
        return false;
    for (uint32_t i = 0; i < tl_blockn(ir, from)->args.len; i++) {
        TlVal a = tl_blockn(ir, from)->args.data[i];
        TlVal b = tl_block_arg(ir, to, tl_valn(ir, a)->type, NULL);
        if (!b)
            return false;
        ir->vals.data[b].name = ir->vals.data[a].name;
        if (!tl_map_put(map, a, b))
            return false;
    }
    TlBuilder inner = {.ir = ir, .block = to};
    for (TlOp o = tl_blockn(ir, from)->first; o; o = tl_opn(ir, o)->next)
        if (!tl_op_clone(&inner, o, map))
            return false;
    return true;
}

TlOp
tl_op_clone(TlBuilder *b, TlOp o, TlMap *map)
{
    TlIr *ir = b->ir;
    enum { SMALL = 32 };
    TlVal small[SMALL];
    TlType tsmall[SMALL];
    uint32_t nin = tl_opn(ir, o)->nin, nres = tl_opn(ir, o)->nres;
    TlVal *in = nin <= SMALL ? small : TL_NEW_N(ir->arena, TlVal, nin);
    TlType *types = nres <= SMALL ? tsmall : TL_NEW_N(ir->arena, TlType, nres);
    if (!in || !types) {
        ir->diag->oom = true;
        return 0;
    }
    for (uint32_t i = 0; i < nin; i++)
        in[i] = mapped(map, tl_opn(ir, o)->in[i]);
    for (uint32_t i = 0; i < nres; i++)
        types[i] = tl_valn(ir, tl_opn(ir, o)->res[i])->type;
    TlLoc loc = b->loc;
    b->loc = tl_opn(ir, o)->loc;
    TlOp c = tl_build(b, tl_opn(ir, o)->code, in, nin, types, nres);
    b->loc = loc;
    if (!c)
        return 0;
    uint32_t nattr = tl_opn(ir, o)->nattr;
    if (nattr) {
        /* the copy's room must be a power of two (see attr_put); payloads are immutable and may be shared */
        uint32_t cap = 1;
        while (cap < nattr)
            cap *= 2;
        TlAttr *a = TL_NEW_N(ir->arena, TlAttr, cap);
        if (!a) {
            ir->diag->oom = true;
            return 0;
        }
        memcpy(a, tl_opn(ir, o)->attr, nattr * sizeof *a);
        tl_opn(ir, c)->attr = a;
        tl_opn(ir, c)->nattr = nattr;
    }
    for (uint32_t i = 0; i < nres; i++) {
        TlVal from = tl_opn(ir, o)->res[i], to = tl_opn(ir, c)->res[i];
        ir->vals.data[to].name = ir->vals.data[from].name;
        if (!tl_map_put(map, from, to)) {
            ir->diag->oom = true;
            return 0;
        }
    }
    TlKernelId k = b->block ? tl_blockn(ir, b->block)->kernel : tl_op_kernel(ir, o);
    for (uint32_t r = 0; r < tl_opn(ir, o)->nregion; r++)
        if (!clone_block(ir, tl_opn(ir, o)->region[r], c, k, map)) {
            ir->diag->oom |= ir->arena->failed;
            return 0;
        }
    return c;
}

TlOp
tl_block_terminator(const TlIr *ir, TlBlock b)
{
    TlOp o = tl_blockn(ir, b)->last;
    return o && (tl_op_row(tl_opn(ir, o)->code)->traits & TL_T_TERMINATOR) ? o : 0;
}

TlKernelId
tl_op_kernel(const TlIr *ir, TlOp o)
{
    TlBlock b = tl_opn(ir, o)->block;
    return b ? tl_blockn(ir, b)->kernel : 0;
}

bool
tl_op_inside(const TlIr *ir, TlOp o, TlOp parent)
{
    while (o && o != parent) {
        TlBlock b = tl_opn(ir, o)->block;
        o = b ? tl_blockn(ir, b)->parent : 0;
    }
    return o != 0;
}
