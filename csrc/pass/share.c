/* share.c - pass "share": shared tiles whose lives do not overlap become one, where all of them together do
 * not fit into a workgroup's LDS.
 *
 * requires: promote.   keeps: meaning.   breaks: nothing.
 *
 * A tile lives from its first access, a store of all of it, to its last one, all in one block. Where the
 * tiles fit as they are nothing is changed: a tile of its own needs fewer barriers, and its loop can be
 * pipelined.
 */
#include "pass/lower.h"

typedef struct Life {
    TlVal v;
    TlBlock block; /* of all accesses */
    uint32_t first, last;
    bool simple; /* as above */
    bool gone;   /* stands for another one now */
} Life;

typedef struct Share {
    TlIr *ir;
    TlMap of; /* shared value -> index into life */
    TL_VEC(Life) life;
    uint32_t at;
    uint64_t bytes;
    bool oom;
} Share;

static uint64_t
tile_bytes(const TlTypeInfo *t)
{
    uint64_t n = TL_MAX(tl_elem_bytes(t->elem), 1u);
    for (uint32_t d = 0; d < t->rank; d++)
        n <<= lw_pow2_bits(t->shape[d]);
    return n;
}

static void
access_of(Share *s, TlOp o, TlVal v, uint32_t operand)
{
    uint64_t i;
    if (!tl_map_get(&s->of, v, &i))
        return;
    Life *l = &s->life.data[i];
    const TlOpNode *n = tl_opn(s->ir, o);
    bool stored = n->code == TL_OP_store && operand == 0;
    if (!l->block) {
        l->block = n->block;
        l->first = s->at;
        l->simple =
            stored && !tl_attr_str(s->ir, o, "dims", "")[0] && tl_vtype(s->ir, n->in[1])->kind == TL_TY_TILE;
    }
    l->last = s->at;
    bool reads = n->code == TL_OP_load || (n->code == TL_OP_dot && operand < 2);
    l->simple = l->simple && l->block == n->block && (stored || reads);
}

static bool
look_at(TlIr *ir, TlOp o, void *self)
{
    Share *s = self;
    const TlOpNode n = *tl_opn(ir, o);
    s->at++;
    if (n.code == TL_OP_alloc_shared) {
        Life l = {.v = n.res[0]};
        s->bytes += tile_bytes(tl_vtype(ir, n.res[0]));
        if (!tl_vec_push(ir->arena, &s->life, l) || !tl_map_put(&s->of, n.res[0], s->life.len - 1))
            s->oom = true;
    }
    for (uint32_t i = 0; i < n.nin; i++)
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_SHARED)
            access_of(s, o, n.in[i], i);
    return !s->oom;
}

/* Each execution of a block that accesses a simple tile fills it first, so nothing but the range of its
 * accesses in the text counts: ranges that are apart there do not interleave, in whatever loops they stand.
 */
static bool
may_join(const Share *s, const Life *a, const Life *b)
{
    return a->simple && b->simple && !a->gone && !b->gone && a->last < b->first &&
           tl_valn(s->ir, a->v)->type == tl_valn(s->ir, b->v)->type;
}

bool
tl_pass_share(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Share s = {.ir = ir};
    const TlTarget *t = tl_target_by_name(tl_kattr_str(ir, *kernel, "target", "gfx942"));
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD || !t)
        return true;
    tl_map_init(&s.of, ir->arena);
    if (!tl_walk(ir, ir->kernels.data[*kernel].body, look_at, &s))
        return tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
    if (s.bytes <= t->lds_max)
        return true;
    for (uint32_t i = 0; i < s.life.len; i++) {
        Life *a = &s.life.data[i];
        for (bool more = true; more;) { /* the next one that begins behind a's end */
            Life *next = NULL;
            for (uint32_t j = 0; j < s.life.len; j++) {
                Life *b = &s.life.data[j];
                if (j != i && may_join(&s, a, b) && (!next || b->first < next->first))
                    next = b;
            }
            more = next != NULL;
            if (next) {
                tl_replace_uses(ir, *kernel, next->v, a->v);
                a->last = next->last;
                next->gone = true;
            }
        }
    }
    return true;
}
