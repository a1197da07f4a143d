/* simplify.c - the pass "simplify", both levels.
 *
 * requires: nothing.   keeps: level, memory effects and their order.   breaks: names; values that nobody
 * uses.
 *
 * One walk in textual order folds, applies identities, merges equal pure operations (the earlier one
 * dominates: it stands in a block that is open) and moves loop-invariant pure ones before their loop; then
 * liveness is marked from the effects backward and the rest is dropped, carried values of loops among it.
 * What could go wrong when it is executed without need (division by 0) is not hoisted; nothing is moved out
 * of `if` or `grid`. */
#include "pass/simplify.h"

static const TlOpNode *
node(const TlSimplifier *s, TlOp o)
{
    return tl_opn(s->ir, o);
}

static uint32_t
traits(const TlSimplifier *s, TlOp o)
{
    return tl_op_row(node(s, o)->code)->traits;
}

static bool
oom(TlSimplifier *s)
{
    s->oom = true;
    return false;
}

static bool
replace(TlSimplifier *s, TlVal from, TlVal to)
{
    uint32_t had = s->repl.len;
    if (from >= had) {
        uint32_t n = TL_MAX(s->ir->vals.len, from + 1);
        if (!tl_vec_reserve(s->ir->arena, &s->repl, n))
            return oom(s);
        memset(s->repl.data + had, 0, (n - had) * sizeof(TlVal));
        s->repl.len = n;
    }
    if (from != to) {
        s->repl.data[from] = to;
        TlOp def =
            tl_valn(s->ir, to)->def; /* keep the reader's name, but not for a constant that many share */
        if (!tl_valn(s->ir, to)->name && !(def && node(s, def)->code == TL_OP_const))
            tl_valn(s->ir, to)->name = tl_valn(s->ir, from)->name;
    }
    return true;
}

/* ---- merging ---- */

static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 31);
}

static uint64_t
attr_bits(const TlAttr *a)
{
    uint64_t h = 0;
    switch (a->kind) {
    case TL_ATTR_INT:
        return (uint64_t)a->u.i;
    case TL_ATTR_FLOAT:
        memcpy(&h, &a->u.f, sizeof h);
        return h;
    case TL_ATTR_STR:
        return a->u.s;
    case TL_ATTR_INTS:
        for (uint32_t i = 0; i < a->u.ints.n; i++)
            h = mix(h, (uint64_t)a->u.ints.v[i]);
        break;
    }
    return h;
}

static bool
same_attrs(const TlOpNode *a, const TlOpNode *b)
{
    if (a->nattr != b->nattr)
        return false;
    for (uint32_t i = 0; i < a->nattr; i++) {
        const TlAttr *x = &a->attr[i], *y = &b->attr[i];
        if (x->key != y->key || x->kind != y->kind)
            return false;
        if (x->kind == TL_ATTR_INTS ? x->u.ints.n != y->u.ints.n ||
                                          memcmp(x->u.ints.v, y->u.ints.v, x->u.ints.n * sizeof(int64_t)) != 0
                                    : attr_bits(x) != attr_bits(y))
            return false;
    }
    return true;
}

static bool
same_op(const TlSimplifier *s, TlOp a, TlOp b)
{
    const TlOpNode *x = node(s, a), *y = node(s, b);
    if (x->code != y->code || x->nin != y->nin || x->nres != y->nres || !same_attrs(x, y))
        return false;
    for (uint32_t i = 0; i < x->nin; i++)
        if (x->in[i] != y->in[i])
            return false;
    for (uint32_t i = 0; i < x->nres; i++)
        if (tl_valn(s->ir, x->res[i])->type != tl_valn(s->ir, y->res[i])->type)
            return false;
    return true;
}

static uint64_t
hash_op(const TlSimplifier *s, TlOp o)
{
    const TlOpNode *n = node(s, o);
    uint64_t h = mix(n->code, n->nin);
    for (uint32_t i = 0; i < n->nin; i++)
        h = mix(h, n->in[i]);
    for (uint32_t i = 0; i < n->nres; i++)
        h = mix(h, tl_valn(s->ir, n->res[i])->type);
    for (uint32_t i = 0; i < n->nattr; i++)
        h = mix(mix(h, n->attr[i].key), attr_bits(&n->attr[i]));
    return h;
}

/* true: an equal operation stands above and took over. */
static bool
merge(TlSimplifier *s, TlOp o)
{
    TlOpNode *n = tl_opn(s->ir, o);
    if ((traits(s, o) & TL_T_COMMUTES) && n->nin == 2 && n->in[0] > n->in[1]) {
        int64_t c;
        double d; /* constants stay on the right */
        if (!tl_is_const_int(s->ir, n->in[1], &c) && !tl_is_const_float(s->ir, n->in[1], &d)) {
            TlVal t = n->in[0];
            n->in[0] = n->in[1];
            n->in[1] = t;
        }
    }
    uint64_t h = hash_op(s, o);
    uint32_t *head = &s->heads[h & (s->nheads - 1)];
    for (uint32_t i = *head; i; i = s->entries.data[i - 1].next) {
        TlOp e = s->entries.data[i - 1].op;
        TlBlock b = node(s, e)->block;
        if (s->entries.data[i - 1].hash != h || e == o || !b || !s->block_open[b] || !same_op(s, e, o))
            continue;
        for (uint32_t r = 0; r < node(s, o)->nres; r++)
            replace(s, node(s, o)->res[r], node(s, e)->res[r]);
        tl_op_unlink(s->ir, o);
        s->stats.merged++;
        return true;
    }
    struct TlCseEntry e = {h, o, *head};
    if (!tl_vec_push(s->ir->arena, &s->entries, e))
        return oom(s);
    *head = s->entries.len;
    return false;
}

/* ---- hoisting ---- */

static TlBlock
home(const TlSimplifier *s, TlVal v)
{
    const TlValNode *n = tl_valn(s->ir, v);
    return n->def ? node(s, n->def)->block : n->block;
}

/* Harmless when executed although the program would not have. */
static bool
speculatable(const TlSimplifier *s, TlOp o)
{
    const TlOpNode *n = node(s, o);
    int64_t c;
    switch ((int)n->code) {
    case TL_OP_floordiv:
    case TL_OP_mod:
    case TL_OP_truncdiv:
    case TL_OP_rem:
        return tl_is_const_int(s->ir, n->in[1], &c) && c != 0 && c != -1;
    case TL_OP_ds_bpermute: /* depend on which lanes are active */
    case TL_OP_uniform:
        return false;
    }
    return true;
}

static void
hoist(TlSimplifier *s, TlOp o)
{
    if (!speculatable(s, o))
        return;
    for (;;) {
        TlBlock b = node(s, o)->block;
        TlOp p = tl_blockn(s->ir, b)->parent;
        if (!p)
            return;
        TlOpcode c = node(s, p)->code;
        bool constant = node(s, o)->code == TL_OP_const && c == TL_OP_if;
        if (c != TL_OP_for && c != TL_OP_while && !constant)
            return;
        for (uint32_t i = 0; i < node(s, o)->nin; i++)
            if (home(s, node(s, o)->in[i]) == b)
                return;
        tl_op_move_before(s->ir, o, node(s, p)->block, p);
        s->stats.hoisted++;
    }
}

/* ---- the walk ---- */

static void
map_operands(TlSimplifier *s, TlOp o)
{
    const TlOpNode *n = node(s, o);
    for (uint32_t i = 0; i < n->nin; i++)
        n->in[i] = tl_simplify_resolve(s, n->in[i]);
}

static void
finish_pure(TlSimplifier *s, TlOp o)
{
    if (!tl_op_is_pure(s->ir, o))
        return;
    if (s->what & TL_SIMPLIFY_HOIST)
        hoist(s, o);
    if (s->what & TL_SIMPLIFY_CSE)
        merge(s, o);
}

/* -1: not known while compiling, or more than one. */
static int
trip_count(const TlSimplifier *s, TlOp o)
{
    const TlOpNode *n = node(s, o);
    int64_t lo, hi, step;
    if (!tl_is_const_int(s->ir, n->in[0], &lo) || !tl_is_const_int(s->ir, n->in[1], &hi) ||
        !tl_is_const_int(s->ir, n->in[2], &step) || step == 0)
        return -1;
    TlElem e = tl_type_elem(tl_vtype(s->ir, n->in[0]));
    if (tl_elem_kind(e) == TL_KIND_UINT)
        return -1;
    if (step > 0 ? lo >= hi : lo <= hi)
        return 0;
    uint64_t span = step > 0 ? (uint64_t)hi - (uint64_t)lo : (uint64_t)lo - (uint64_t)hi;
    uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return span <= by ? 1 : -1;
}

/* Before the body: carried values that never change, and the induction variable of a loop that runs once. */
static void
enter_for(TlSimplifier *s, TlOp o, int trips)
{
    const TlOpNode *n = node(s, o);
    const TlBlockNode *b = tl_blockn(s->ir, n->region[0]);
    TlOp y = tl_block_terminator(s->ir, n->region[0]);
    if (!y || b->args.len != n->nin - 2)
        return;
    if (trips == 1)
        replace(s, b->args.data[0], n->in[0]);
    for (uint32_t i = 0; i + 3 < n->nin; i++) {
        bool unchanged = node(s, y)->in[i] == b->args.data[i + 1];
        if (trips == 1 || unchanged)
            replace(s, b->args.data[i + 1], n->in[i + 3]);
        if (unchanged)
            replace(s, n->res[i], n->in[i + 3]);
    }
}

/* Whether pass "stage" might cut the loop: it multiplies shared tiles. */
static bool
may_be_cut(const TlSimplifier *s, TlOp loop)
{
    for (TlOp o = tl_blockn(s->ir, node(s, loop)->region[0])->first; o; o = node(s, o)->next)
        if (node(s, o)->code == TL_OP_dot && tl_vtype(s->ir, node(s, o)->in[0])->kind == TL_TY_SHARED &&
            tl_vtype(s->ir, node(s, o)->in[1])->kind == TL_TY_SHARED)
            return true;
    return false;
}

/* Puts the operations of a region before its operation; the results become what the region yields. */
static void
dissolve(TlSimplifier *s, TlOp o, TlBlock region)
{
    TlOp y = tl_block_terminator(s->ir, region);
    TlBlock to = node(s, o)->block;
    for (TlOp i = tl_blockn(s->ir, region)->first, next; i && i != y; i = next) {
        next = node(s, i)->next;
        tl_op_move_before(s->ir, i, to, o);
    }
    for (uint32_t i = 0; y && i < node(s, o)->nres; i++)
        replace(s, node(s, o)->res[i], tl_simplify_resolve(s, node(s, y)->in[i]));
    tl_op_unlink(s->ir, o);
    s->stats.replaced++;
}

static void simplify_block(TlSimplifier *s, TlBlock b);

static void
simplify_control(TlSimplifier *s, TlOp o)
{
    TlOpcode c = node(s, o)->code;
    bool fold = s->what & TL_SIMPLIFY_FOLD;
    int64_t cond = 0;
    int trips = c == TL_OP_for && fold ? trip_count(s, o) : -1;
    if (trips == 1 && !(s->what & TL_SIMPLIFY_ONCE) && may_be_cut(s, o))
        trips = -1;
    if (trips == 0) {
        for (uint32_t i = 0; i < node(s, o)->nres; i++)
            replace(s, node(s, o)->res[i], node(s, o)->in[i + 3]);
        tl_op_unlink(s->ir, o);
        s->stats.replaced++;
        return;
    }
    if (c == TL_OP_if && fold && tl_is_const_int(s->ir, node(s, o)->in[0], &cond)) {
        TlBlock taken = node(s, o)->region[cond ? 0 : 1];
        simplify_block(s, taken);
        dissolve(s, o, taken);
        return;
    }
    if (c == TL_OP_for && fold)
        enter_for(s, o, trips);
    for (uint32_t r = 0; r < node(s, o)->nregion; r++)
        simplify_block(s, node(s, o)->region[r]);
    if (trips == 1)
        dissolve(s, o, node(s, o)->region[0]);
}

static void
simplify_op(TlSimplifier *s, TlOp o)
{
    int64_t c;
    map_operands(s, o);
    if (node(s, o)->nregion) {
        simplify_control(s, o);
        return;
    }
    if (node(s, o)->code == TL_OP_assert && (s->what & TL_SIMPLIFY_FOLD) &&
        tl_is_const_int(s->ir, node(s, o)->in[0], &c) && c) {
        tl_op_unlink(s->ir, o);
        s->stats.dropped++;
        return;
    }
    if (!(traits(s, o) & TL_T_PURE))
        return;
    if (s->what & TL_SIMPLIFY_FOLD) {
        s->made.len = 0;
        TlVal v = tl_simplify_fold(s, o);
        for (uint32_t i = 0; i < s->made.len; i++)
            finish_pure(s, s->made.data[i]);
        if (v) {
            replace(s, node(s, o)->res[0], tl_simplify_resolve(s, v));
            tl_op_unlink(s->ir, o);
            s->stats.replaced++;
            return;
        }
        if (s->made.len)
            map_operands(s, o);
    }
    finish_pure(s, o);
}

static void
simplify_block(TlSimplifier *s, TlBlock b)
{
    s->block_open[b] = 1;
    for (TlOp o = tl_blockn(s->ir, b)->first, next; o && !s->oom; o = next) {
        next = node(s, o)->next; /* o may leave; nothing comes in behind it */
        simplify_op(s, o);
    }
    s->block_open[b] = 0;
}

/* ---- liveness ---- */

static void
want(TlSimplifier *s, TlVal v)
{
    if (s->live_val[v])
        return;
    s->live_val[v] = 1;
    if (!tl_vec_push(s->ir->arena, &s->work, v))
        s->oom = true;
}

static void
want_op(TlSimplifier *s, TlOp o)
{
    while (o && !s->live_op[o]) {
        const TlOpNode *n = node(s, o);
        s->live_op[o] = 1;
        uint32_t operands = n->nin;
        if (n->code == TL_OP_for)
            operands = 3;
        else if (n->code == TL_OP_while || n->code == TL_OP_yield)
            operands = 0;
        else if (n->code == TL_OP_condition)
            operands = 1;
        for (uint32_t i = 0; i < operands && i < n->nin; i++)
            want(s, n->in[i]);
        for (uint32_t r = 0; r < n->nregion; r++) {
            TlOp t = tl_block_terminator(s->ir, n->region[r]);
            if (t && !s->live_op[t]) {
                s->live_op[t] = 1;
                if (node(s, t)->code == TL_OP_condition)
                    want(s, node(s, t)->in[0]);
            }
        }
        o = n->block ? tl_blockn(s->ir, n->block)->parent : 0; /* and what it stands in */
    }
}

/* Number i of what a loop carries, or of what an `if` gives. */
static void
want_carried(TlSimplifier *s, TlOp o, uint32_t i)
{
    const TlOpNode *n = node(s, o);
    uint32_t first_in = n->code == TL_OP_for ? 3 : 0, first_arg = n->code == TL_OP_for ? 1 : 0;
    if (n->code != TL_OP_if)
        want(s, n->in[first_in + i]);
    for (uint32_t r = 0; r < n->nregion; r++) {
        TlOp t = tl_block_terminator(s->ir, n->region[r]);
        if (t)
            want(s, node(s, t)->in[i + (node(s, t)->code == TL_OP_condition)]);
        if (n->code != TL_OP_if) /* lives as long as any of its faces */
            want(s, tl_blockn(s->ir, n->region[r])->args.data[first_arg + i]);
    }
    want(s, n->res[i]);
}

static void
spread(TlSimplifier *s)
{
    while (s->work.len && !s->oom) {
        const TlValNode *v = tl_valn(s->ir, s->work.data[--s->work.len]);
        TlOp o = v->def ? v->def : tl_blockn(s->ir, v->block)->parent;
        if (!o)
            continue; /* a parameter */
        want_op(s, o);
        TlOpcode c = node(s, o)->code;
        if (v->def ? node(s, o)->nregion != 0 : c == TL_OP_while)
            want_carried(s, o, v->index);
        else if (!v->def && c == TL_OP_for && v->index > 0)
            want_carried(s, o, v->index - 1);
    }
}

static bool
root(TlIr *ir, TlOp o, void *self)
{
    TlSimplifier *s = self;
    (void)ir;
    if (traits(s, o) & (TL_T_WRITES | TL_T_BARRIER))
        want_op(s, o);
    return !s->oom;
}

static uint32_t
keep_live(TlSimplifier *s, const TlVal *faces, TlVal *v, uint32_t first, uint32_t n)
{
    uint32_t to = first;
    for (uint32_t i = 0; first + i < n; i++)
        if (s->live_val[faces[i]])
            v[to++] = v[first + i];
    return to;
}

/* Takes dead carried values and results off a live operation with regions. */
static bool
trim(TlSimplifier *s, TlOp o)
{
    TlOpNode *n = tl_opn(s->ir, o);
    uint32_t nres = n->nres, dead = 0;
    if (n->code != TL_OP_for && n->code != TL_OP_while && n->code != TL_OP_if)
        return true;
    for (uint32_t i = 0; i < nres; i++)
        dead += !s->live_val[n->res[i]];
    if (!dead)
        return true;
    TlVal *faces = TL_NEW_N(s->ir->arena, TlVal, nres);
    if (!faces)
        return oom(s);
    memcpy(faces, n->res, nres * sizeof *faces);
    uint32_t first = n->code == TL_OP_for ? 3 : 0;
    if (n->code != TL_OP_if)
        n->nin = keep_live(s, faces, n->in, first, n->nin);
    for (uint32_t r = 0; r < n->nregion; r++) {
        TlBlockNode *b = tl_blockn(s->ir, n->region[r]);
        TlOp t = tl_block_terminator(s->ir, n->region[r]);
        if (t) {
            TlOpNode *tn = tl_opn(s->ir, t);
            tn->nin = keep_live(s, faces, tn->in, tn->code == TL_OP_condition, tn->nin);
        }
        if (n->code == TL_OP_if)
            continue;
        b->args.len = keep_live(s, faces, b->args.data, n->code == TL_OP_for, b->args.len);
        for (uint32_t i = 0; i < b->args.len; i++)
            tl_valn(s->ir, b->args.data[i])->index = i;
    }
    n->nres = keep_live(s, faces, n->res, 0, nres);
    for (uint32_t i = 0; i < n->nres; i++)
        tl_valn(s->ir, n->res[i])->index = i;
    return true;
}

static bool
sweep(TlIr *ir, TlOp o, void *self)
{
    TlSimplifier *s = self;
    if (s->live_op[o])
        return trim(s, o);
    tl_op_unlink(ir, o);
    s->stats.dropped++;
    return true;
}

static void
drop_dead(TlSimplifier *s)
{
    TlIr *ir = s->ir;
    s->live_op = TL_NEW_N(ir->arena, uint8_t, ir->ops.len);
    s->live_val = TL_NEW_N(ir->arena, uint8_t, ir->vals.len);
    if (!s->live_op || !s->live_val) {
        s->oom = true;
        return;
    }
    TlBlock body = tl_kerneln(ir, s->kernel)->body;
    tl_walk(ir, body, root, s);
    spread(s);
    if (!s->oom)
        tl_walk(ir, body, sweep, s);
}

bool
tl_simplify(TlIr *ir, TlKernelId k, uint32_t what, TlSimplifyStats *stats)
{
    TlSimplifier s = {.ir = ir, .kernel = k, .level = tl_kerneln(ir, k)->level, .what = what};
    s.nheads = 256;
    while (s.nheads < ir->ops.len)
        s.nheads *= 2;
    s.key_value = tl_intern(&ir->strs, "value", 5);
    s.key_fvalue = tl_intern(&ir->strs, "fvalue", 6);
    s.block_open = TL_NEW_N(ir->arena, uint8_t, ir->blocks.len);
    s.heads = TL_NEW_N(ir->arena, uint32_t, s.nheads);
    s.oom = s.key_value == UINT32_MAX || s.key_fvalue == UINT32_MAX || !s.block_open || !s.heads ||
            !tl_vec_reserve(ir->arena, &s.repl, ir->vals.len);
    if (!s.oom) {
        memset(s.repl.data, 0, ir->vals.len * sizeof(TlVal));
        s.repl.len = ir->vals.len;
        if (what & (TL_SIMPLIFY_FOLD | TL_SIMPLIFY_CSE | TL_SIMPLIFY_HOIST))
            simplify_block(&s, tl_kerneln(ir, k)->body);
        if (!s.oom && (what & TL_SIMPLIFY_DCE))
            drop_dead(&s);
    }
    if (stats)
        *stats = s.stats;
    if (s.oom || ir->arena->failed)
        ir->diag->oom = true;
    return !ir->diag->oom;
}

bool
tl_pass_simplify(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    (void)opts;
    return tl_simplify(ir, *kernel, TL_SIMPLIFY_ALL & ~TL_SIMPLIFY_ONCE, NULL);
}
