/* elements.c - pass "elements": scalar accesses become loads and stores whose dims are all indices.
 *
 * requires: tile level, grid loops gone.   keeps: meaning.   breaks: nothing.
 */
#include "pass/pass.h"

typedef struct Elements {
    TlIr *ir;
    bool ok;
} Elements;

static bool
set_dims(TlIr *ir, TlOp o, uint32_t rank)
{
    char dims[TL_MAX_RANK + 1] = {0};
    memset(dims, 'i', TL_MIN(rank, TL_MAX_RANK));
    return tl_attr_set_str(ir, o, "dims", dims);
}

/* buf[...] op= value: a load, the combination, and the store that the operation becomes. */
static bool
accumulate(TlIr *ir, TlOp o)
{
    static const struct {
        const char *kind;
        TlOpcode code;
    } rows[] = {{"sum", TL_OP_add}, {"prod", TL_OP_mul}, {"max", TL_OP_max}, {"min", TL_OP_min}};
    const char *kind = tl_attr_str(ir, o, "kind", "");
    const TlOpNode n = *tl_opn(ir, o);
    TlBuilder b = {ir, n.block, o, n.loc};
    TlVal in[TL_MAX_RANK + 1] = {n.in[0]};
    TlType t = tl_type_scalar(ir, tl_vtype(ir, n.in[0])->elem);
    memcpy(in + 1, n.in + 2, (n.nin - 2) * sizeof *in);
    TlOp l = t ? tl_build(&b, TL_OP_load, in, n.nin - 1, &t, 1) : 0;
    if (!l || !set_dims(ir, l, n.nin - 2))
        return false;
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (strcmp(rows[i].kind, kind) == 0) {
            TlVal v = tl_build1(&b, rows[i].code, 2, tl_result(ir, l, 0), n.in[1]);
            if (!v)
                return false;
            tl_opn(ir, o)->in[1] = v;
        }
    tl_attr_remove(ir, o, "kind");
    return true;
}

static bool
one(TlIr *ir, TlOp o, void *self)
{
    Elements *e = self;
    TlOpcode c = tl_opn(ir, o)->code;
    if (c != TL_OP_element && c != TL_OP_set_element && c != TL_OP_acc_element)
        return true;
    if (c == TL_OP_acc_element && !accumulate(ir, o))
        return e->ok = false;
    tl_opn(ir, o)->code = c == TL_OP_element ? TL_OP_load : TL_OP_store;
    return e->ok = set_dims(ir, o, tl_vtype(ir, tl_opn(ir, o)->in[0])->rank);
}

bool
tl_pass_elements(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Elements e = {ir, true};
    (void)opts;
    if (tl_kerneln(ir, *kernel)->level == TL_LEVEL_THREAD)
        return true;
    tl_walk(ir, tl_kerneln(ir, *kernel)->body, one, &e);
    if (!e.ok && !ir->diag->nerrors)
        ir->diag->oom = true;
    return e.ok;
}
