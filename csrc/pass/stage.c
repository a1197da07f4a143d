/* stage.c - pass "stage": a loop whose shared tiles are long in k walks them in parts, so that two workgroups
 * fit into the LDS of a compute unit (or the tiles fit at all).
 *
 * requires: promote.   keeps: meaning (sums over k may be associated otherwise).   breaks: shapes of shared
 * tiles.
 *
 * A loop qualifies when it copies [.., k : k + C] slices into whole shared tiles used only by its dots, its
 * step is C and its induction variable moves k one to one. Then C becomes C / parts everywhere and the step
 * with it; the end is rounded up to whole old steps unless it lies at or past the end of every tensor's k.
 */
#include "pass/pass.h"

enum { MAX_STAGED = 16 };

typedef struct Staged {
    TlVal shared, root;
    TlOp store;
    uint32_t kdim;
} Staged;

typedef struct Stage {
    TlIr *ir;
    TlKernelId k;
    TlOp loop;
    TlVal iv;
    int64_t cap;
    uint32_t n;
    Staged t[MAX_STAGED];
    bool end_covers;
    uint64_t bytes;
    uint64_t acc_elems;
    uint32_t minor_bytes; /* of one k element */
} Stage;

static bool
is_iv_plus(TlIr *ir, TlVal v, TlVal iv)
{
    if (v == iv)
        return true;
    TlOp o = tl_valn(ir, v)->def;
    if (!o || tl_opn(ir, o)->code != TL_OP_add)
        return false;
    TlVal a = tl_opn(ir, o)->in[0], b = tl_opn(ir, o)->in[1];
    TlBlock body = tl_valn(ir, iv)->block;
    TlOp da = tl_valn(ir, a)->def, db = tl_valn(ir, b)->def;
    if (a == iv)
        return b != iv && (!db || tl_opn(ir, db)->block != body || tl_opn(ir, db)->code == TL_OP_const);
    return b == iv && (!da || tl_opn(ir, da)->block != body || tl_opn(ir, da)->code == TL_OP_const);
}

/* Checks the tree of a stored value; kdim: dimension of v that is k. */
static bool
tree_fits(Stage *s, TlVal v, uint32_t kdim, int depth)
{
    TlIr *ir = s->ir;
    TlOp o = tl_valn(ir, v)->def;
    if (!o || depth > 20 || tl_vtype(ir, v)->rank != 2 || tl_vtype(ir, v)->shape[kdim] != s->cap)
        return false;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_const || n.code == TL_OP_splat)
        return true;
    if (n.block != tl_opn(ir, s->loop)->region[0])
        return false;
    if (n.code == TL_OP_load) {
        const TlTypeInfo bt = *tl_vtype(ir, n.in[0]);
        const char *d = tl_attr_str(ir, o, "dims", "");
        if (bt.kind != TL_TY_BUF || strcmp(d, "ss") || tl_attr(ir, o, "steps") ||
            !is_iv_plus(ir, n.in[1 + kdim], s->iv))
            return false;
        /* does the loop run to the end of this k? */
        int64_t ub;
        TlVal u = tl_opn(ir, s->loop)->in[1];
        TlOp ud = tl_valn(ir, u)->def;
        bool covers = tl_is_const_int(ir, u, &ub) && bt.shape[kdim] != TL_DYN && ub >= bt.shape[kdim];
        covers = covers || (ud && tl_opn(ir, ud)->code == TL_OP_dim && tl_opn(ir, ud)->in[0] == n.in[0] &&
                            tl_attr_int(ir, ud, "axis", -1) == (int64_t)kdim);
        s->end_covers = s->end_covers && covers && n.in[1 + kdim] == s->iv;
        return true;
    }
    if (n.code == TL_OP_trans)
        return tree_fits(s, n.in[0], 1 - kdim, depth + 1);
    if (!(tl_op_row(n.code)->traits & TL_T_ELEMENTWISE))
        return false;
    for (uint32_t i = 0; i < n.nin; i++)
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_TILE && !tree_fits(s, n.in[i], kdim, depth + 1))
            return false;
    return true;
}

static bool
uses_fit(Stage *s, TlVal sh)
{
    TlIr *ir = s->ir;
    uint32_t in_loop = 0;
    for (TlOp o = tl_blockn(ir, tl_opn(ir, s->loop)->region[0])->first; o; o = tl_opn(ir, o)->next) {
        const TlOpNode *n = tl_opn(ir, o);
        for (uint32_t i = 0; i < n->nin; i++)
            if (n->in[i] == sh) {
                if (!(n->code == TL_OP_dot && i < 2) && !(n->code == TL_OP_store && i == 0))
                    return false;
                in_loop++;
            }
    }
    return tl_count_uses(ir, s->k, sh) == in_loop;
}

static bool
add_operand(Stage *s, TlVal sh, uint32_t kdim)
{
    TlIr *ir = s->ir;
    const TlTypeInfo t = *tl_vtype(ir, sh);
    if (t.kind != TL_TY_SHARED || t.rank != 2)
        return false;
    if (!s->cap)
        s->cap = t.shape[kdim];
    if (t.shape[kdim] != s->cap)
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->t[i].shared == sh)
            return s->t[i].kdim == kdim;
    if (s->n == MAX_STAGED)
        return false;
    Staged *e = &s->t[s->n++];
    *e = (Staged){.shared = sh, .kdim = kdim};
    for (TlOp o = tl_blockn(ir, tl_opn(ir, s->loop)->region[0])->first; o; o = tl_opn(ir, o)->next)
        if (tl_opn(ir, o)->code == TL_OP_store && tl_opn(ir, o)->in[0] == sh) {
            if (e->store || tl_attr_str(ir, o, "dims", "")[0])
                return false;
            e->store = o;
            e->root = tl_opn(ir, o)->in[1];
        }
    s->bytes += (uint64_t)t.shape[0] * (uint64_t)t.shape[1] * tl_elem_bytes(t.elem);
    s->minor_bytes = TL_MAX(s->minor_bytes, tl_elem_bytes(t.elem));
    return e->store && uses_fit(s, sh) && tree_fits(s, e->root, kdim, 0);
}

static bool
qualify(Stage *s)
{
    TlIr *ir = s->ir;
    const TlOpNode n = *tl_opn(ir, s->loop);
    int64_t step;
    uint32_t dots = 0;
    s->iv = tl_blockn(ir, n.region[0])->args.data[0];
    s->end_covers = true;
    for (TlOp o = tl_blockn(ir, n.region[0])->first; o; o = tl_opn(ir, o)->next) {
        TlOpNode d = *tl_opn(ir, o);
        if (d.nregion)
            return false;
        if (d.code == TL_OP_store && tl_vtype(ir, d.in[0])->kind != TL_TY_SHARED)
            return false;
        if (d.code != TL_OP_dot)
            continue;
        dots++;
        const TlTypeInfo c = *tl_vtype(ir, d.res[0]);
        s->acc_elems += (uint64_t)c.shape[0] * (uint64_t)c.shape[1];
        if (!add_operand(s, d.in[0], 1) || !add_operand(s, d.in[1], 0))
            return false;
    }
    /* carried values only pass through dots: anything else counts turns */
    TlOp y = tl_blockn(ir, n.region[0])->last;
    for (uint32_t i = 0; i < n.nres; i++) {
        TlOp o = tl_valn(ir, tl_opn(ir, y)->in[i])->def;
        if (!o || tl_opn(ir, o)->code != TL_OP_dot)
            return false;
    }
    return dots && tl_is_const_int(ir, n.in[2], &step) && step == s->cap && (s->cap & (s->cap - 1)) == 0;
}

static uint32_t
parts_for(Stage *s)
{
    const TlTarget *t = tl_target_by_name(tl_kattr_str(s->ir, s->k, "target", "gfx942"));
    int64_t waves = tl_kattr_int(s->ir, s->k, "num_warps", 0);
    if (!t)
        return 1;
    /* many accumulators leave room for one workgroup by registers anyway */
    uint64_t lanes = (uint64_t)(waves ? waves : s->acc_elems >= 32768 ? 8 : 4) * t->wave;
    uint64_t budget = s->acc_elems / lanes > 64 ? t->lds_max : t->lds_max / 2;
    uint32_t parts = 1;
    while (s->cap / parts > 16 &&
           (s->bytes / parts > budget || (uint64_t)s->cap / parts * s->minor_bytes > 256))
        parts *= 2;
    return parts;
}

/* Narrows the k dimension of a value's tree. */
static bool
narrow(Stage *s, TlVal v, uint32_t kdim, int64_t cap, TlVal *out)
{
    TlIr *ir = s->ir;
    TlOp o = tl_valn(ir, v)->def;
    TlTypeInfo t = *tl_vtype(ir, v);
    *out = v;
    if (t.shape[kdim] == cap)
        return true; /* reached by another path already */
    t.shape[kdim] = cap;
    TlType ty = tl_type(ir, &t);
    TlOpNode n = *tl_opn(ir, o);
    if (!ty)
        return false;
    if (n.code == TL_OP_const || n.code == TL_OP_splat) { /* others may use it too */
        TlBuilder b = {ir, n.block, o, n.loc};
        TlMap map;
        tl_map_init(&map, ir->arena);
        TlOp c = tl_op_clone(&b, o, &map);
        if (!c)
            return false;
        *out = tl_result(ir, c, 0);
        tl_valn(ir, *out)->type = ty;
        return true;
    }
    tl_valn(ir, v)->type = ty;
    if (n.code == TL_OP_load)
        return true;
    for (uint32_t i = 0; i < n.nin; i++) {
        TlVal in;
        if (tl_vtype(ir, n.in[i])->kind != TL_TY_TILE)
            continue;
        if (!narrow(s, n.in[i], n.code == TL_OP_trans ? 1 - kdim : kdim, cap, &in))
            return false;
        tl_opn(ir, o)->in[i] = in;
    }
    return true;
}

static bool
apply(Stage *s, uint32_t parts)
{
    TlIr *ir = s->ir;
    int64_t cap = s->cap / parts;
    for (uint32_t i = 0; i < s->n; i++) {
        TlTypeInfo t = *tl_vtype(ir, s->t[i].shared);
        TlVal root;
        t.shape[s->t[i].kdim] = cap;
        TlType ty = tl_type(ir, &t);
        if (!ty || !narrow(s, s->t[i].root, s->t[i].kdim, cap, &root))
            return false;
        tl_valn(ir, s->t[i].shared)->type = ty;
        tl_opn(ir, s->t[i].store)->in[1] = root;
    }
    TlBuilder b = {ir, tl_opn(ir, s->loop)->block, s->loop, tl_opn(ir, s->loop)->loc};
    TlType ix = tl_type_index(ir);
    TlVal step = tl_const_int(&b, ix, cap), ub = tl_opn(ir, s->loop)->in[1], lb = tl_opn(ir, s->loop)->in[0];
    if (!s->end_covers) {
        TlVal c = tl_const_int(&b, ix, s->cap), c1 = tl_const_int(&b, ix, s->cap - 1);
        TlVal span = tl_build1(&b, TL_OP_sub, 2, ub, lb);
        span = span ? tl_build1(&b, TL_OP_max, 2, span, tl_const_int(&b, ix, 0)) : 0;
        span = span ? tl_build1(&b, TL_OP_floordiv, 2, tl_build1(&b, TL_OP_add, 2, span, c1), c) : 0;
        ub = span ? tl_build1(&b, TL_OP_add, 2, lb, tl_build1(&b, TL_OP_mul, 2, span, c)) : 0;
    }
    if (!step || !ub)
        return false;
    tl_opn(ir, s->loop)->in[1] = ub;
    tl_opn(ir, s->loop)->in[2] = step;
    return true;
}

typedef struct Loops {
    TL_VEC(TlOp) v;
} Loops;

static bool
find_loops(TlIr *ir, TlOp o, void *self)
{
    Loops *l = self;
    return tl_opn(ir, o)->code != TL_OP_for || tl_vec_push(ir->arena, &l->v, o);
}

static bool
runs_once(TlIr *ir, TlOp loop)
{
    const TlOpNode *n = tl_opn(ir, loop);
    int64_t lo, hi, step;
    return tl_is_const_int(ir, n->in[0], &lo) && tl_is_const_int(ir, n->in[1], &hi) &&
           tl_is_const_int(ir, n->in[2], &step) && lo < hi && step > 0 &&
           (uint64_t)hi - (uint64_t)lo <= (uint64_t)step;
}

bool
tl_pass_stage(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Loops l = {0};
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD)
        return true;
    if (!tl_walk(ir, ir->kernels.data[*kernel].body, find_loops, &l))
        return tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
    bool once = false;
    for (uint32_t i = 0; i < l.v.len; i++) {
        Stage s = {.ir = ir, .k = *kernel, .loop = l.v.data[i]};
        uint32_t parts = qualify(&s) ? parts_for(&s) : 1;
        if (parts > 1 && !apply(&s, parts))
            return ir->diag->nerrors ? false : tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
        once = once || runs_once(ir, s.loop);
    }
    /* simplify left them for this pass */
    return !once || tl_simplify(ir, *kernel, TL_SIMPLIFY_ALL, NULL);
}
