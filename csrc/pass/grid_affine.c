/* grid_affine.c - index expressions of grid loops as sums of the loops' axes, and what can be proven of them.
 */
#include "pass/grid.h"

/* ---- what a value depends on ---- */

bool
gr_outside(const Gr *g, TlVal v)
{
    TlOp o = tl_valn(g->ir, v)->def;
    TlBlock b = o ? tl_opn(g->ir, o)->block : tl_valn(g->ir, v)->block;
    return b == g->ir->kernels.data[g->k].body;
}

/* An element in a branch that gives values is read only if the branch is taken: it must lie inside for
 * certain. */
static bool
read_always(Gr *g, TlOp o)
{
    bool choice = false;
    for (TlOp p = o; p; p = tl_blockn(g->ir, tl_opn(g->ir, p)->block)->parent)
        choice = choice || (tl_opn(g->ir, p)->code == TL_OP_if && tl_opn(g->ir, p)->nres);
    for (uint32_t d = 0; choice && d + 1 < tl_opn(g->ir, o)->nin; d++) {
        GrAff a = gr_aff(g, tl_opn(g->ir, o)->in[1 + d]);
        if (!gr_in_range(g, &a, tl_opn(g->ir, o)->in[0], d))
            return false;
    }
    return true;
}

/* The value that region r of an `if` yields for its result v. */
TlVal
gr_branch_value(const Gr *g, TlVal v, uint32_t r)
{
    TlOp o = tl_valn(g->ir, v)->def;
    TlOp y = tl_block_terminator(g->ir, tl_opn(g->ir, o)->region[r]);
    return tl_opn(g->ir, y)->in[tl_valn(g->ir, v)->index];
}

uint32_t
gr_mask(Gr *g, TlVal v)
{
    uint64_t have;
    if (tl_map_get(&g->axis_of, v, &have))
        return 1u << have;
    if (gr_outside(g, v))
        return 0;
    if (tl_map_get(&g->masks, v, &have))
        return (uint32_t)have;
    TlOp o = tl_valn(g->ir, v)->def;
    uint32_t m = 0;
    if (!o) {
        m = GR_OPAQUE;
    } else {
        const TlOpNode n = *tl_opn(g->ir, o);
        uint32_t traits = tl_op_row(n.code)->traits;
        if (n.code == TL_OP_element)
            m |= read_always(g, o) ? GR_READS : GR_READS | GR_OPAQUE;
        else if (n.code == TL_OP_for &&
                 tl_map_get(&g->axis_of, tl_blockn(g->ir, n.region[0])->args.data[0], &have))
            m = GR_CHOICE | gr_mask(g, gr_local_init(g, v)) |
                (gr_mask(g, gr_local_value(g, v)) & ~(1u << have));
        else if (n.code == TL_OP_if)
            m |= GR_CHOICE | gr_mask(g, gr_branch_value(g, v, 0)) | gr_mask(g, gr_branch_value(g, v, 1));
        else if (n.code != TL_OP_const && n.code != TL_OP_dim && n.code != TL_OP_stride &&
                 !(traits & TL_T_ELEMENTWISE))
            m |= GR_OPAQUE;
        for (uint32_t i = 0; i < n.nin && n.code != TL_OP_for; i++)
            m |= gr_mask(g, n.in[i]);
    }
    return tl_map_put(&g->masks, v, m) ? m : GR_OPAQUE;
}

/* ---- sums ---- */

static bool
add_term(GrAff *a, bool inv, uint64_t what, int64_t coef)
{
    uint32_t n = inv ? a->ninv : a->n;
    int64_t *co = inv ? a->icoef : a->coef;
    uint32_t i = 0;
    while (i < n && (inv ? a->inv[i] : a->axis[i]) != what)
        i++;
    if (i == GR_MAX_TERMS)
        return a->ok = false;
    if (i == n) {
        co[i] = 0;
        if (inv)
            a->inv[i] = (TlVal)what;
        else
            a->axis[i] = (uint32_t)what;
        n++;
    }
    co[i] += coef;
    if (!co[i]) {
        n--;
        co[i] = co[n];
        if (inv)
            a->inv[i] = a->inv[n];
        else
            a->axis[i] = a->axis[n];
    }
    if (inv)
        a->ninv = n;
    else
        a->n = n;
    return true;
}

static void
add_aff(GrAff *a, const GrAff *b, int64_t k)
{
    a->ok = a->ok && b->ok;
    a->c += k * b->c;
    for (uint32_t i = 0; a->ok && i < b->n; i++)
        add_term(a, false, b->axis[i], k * b->coef[i]);
    for (uint32_t i = 0; a->ok && i < b->ninv; i++)
        add_term(a, true, b->inv[i], k * b->icoef[i]);
}

bool
gr_const(const Gr *g, TlVal v, int64_t *out)
{
    if (tl_is_const_int(g->ir, v, out))
        return true;
    TlOp o = tl_valn(g->ir, v)->def;
    if (!o || tl_opn(g->ir, o)->code != TL_OP_dim)
        return false;
    *out = tl_vtype(g->ir, tl_opn(g->ir, o)->in[0])->shape[tl_attr_int(g->ir, o, "axis", 0)];
    return *out != TL_DYN;
}

static bool
is_wide(const Gr *g, TlVal v) /* arithmetic of 64 bits: the same as exact */
{
    const TlTypeInfo *t = tl_vtype(g->ir, v);
    return t->kind == TL_TY_INDEX || (t->kind == TL_TY_SCALAR && t->elem == TL_ELEM_I64);
}

GrAff
gr_aff(Gr *g, TlVal v)
{
    GrAff a = {.ok = true};
    int64_t c;
    uint64_t axis;
    if (gr_const(g, v, &c)) {
        a.c = c;
        return a;
    }
    if (tl_map_get(&g->axis_of, v, &axis)) {
        add_term(&a, false, axis, 1);
        return a;
    }
    TlOp o = tl_valn(g->ir, v)->def;
    TlOpNode n = {0};
    if (o)
        n = *tl_opn(g->ir, o);
    if (o && is_wide(g, v) && (n.code == TL_OP_add || n.code == TL_OP_sub)) {
        GrAff x = gr_aff(g, n.in[0]), y = gr_aff(g, n.in[1]);
        add_aff(&a, &x, 1);
        add_aff(&a, &y, n.code == TL_OP_add ? 1 : -1);
        return a;
    }
    if (o && is_wide(g, v) && n.code == TL_OP_mul) {
        GrAff x = gr_aff(g, n.in[0]), y = gr_aff(g, n.in[1]);
        if (x.ok && y.ok && !y.n && !y.ninv) {
            add_aff(&a, &x, y.c);
            return a;
        }
        if (x.ok && y.ok && !x.n && !x.ninv) {
            add_aff(&a, &y, x.c);
            return a;
        }
    }
    if (o && n.code == TL_OP_cast && is_wide(g, v) && is_wide(g, n.in[0]))
        return gr_aff(g, n.in[0]);
    if (gr_mask(g, v) == 0)
        add_term(&a, true, v, 1);
    else
        a.ok = false;
    return a;
}

uint32_t
gr_aff_axes(const GrAff *a)
{
    uint32_t m = 0;
    for (uint32_t i = 0; i < a->n; i++)
        m |= 1u << a->axis[i];
    return m;
}

int64_t
gr_aff_coef(const GrAff *a, uint32_t axis)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->axis[i] == axis)
            return a->coef[i];
    return 0;
}

/* a of statement s and b of statement t are one index once the group's axes are put in each other's place. */
bool
gr_aff_equal(const GrAff *a, const GrStmt *s, const GrAff *b, const GrStmt *t, uint32_t ngroup)
{
    if (!a->ok || !b->ok || a->c != b->c || a->n != b->n || a->ninv != b->ninv)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t to = a->axis[i];
        for (uint32_t x = 0; x < ngroup; x++)
            if (s->map[x] == a->axis[i])
                to = t->map[x];
        if (gr_aff_coef(b, to) != a->coef[i])
            return false;
    }
    for (uint32_t i = 0; i < a->ninv; i++) {
        uint32_t j = 0;
        while (j < b->ninv && b->inv[j] != a->inv[i])
            j++;
        if (j == b->ninv || b->icoef[j] != a->icoef[i])
            return false;
    }
    return true;
}

/* ---- sizes ---- */

int64_t
gr_param(const Gr *g, TlVal v)
{
    const TlBlockNode *b = tl_blockn(g->ir, g->ir->kernels.data[g->k].body);
    for (uint32_t i = 0; i < b->args.len; i++)
        if (b->args.data[i] == v)
            return i;
    return -1;
}

/* Two dims of parameters that the front end knows to be one number (attribute same_dims), through any chain.
 */
static bool
dims_tied(Gr *g, int64_t p, int64_t d, int64_t q, int64_t e)
{
    enum { MAX = 64 };
    int64_t seen[MAX][2] = {{p, d}};
    uint32_t n = 1;
    const TlAttr *a = tl_kattr(g->ir, g->k, "same_dims");
    for (uint32_t at = 0; at < n; at++) {
        if (seen[at][0] == q && seen[at][1] == e)
            return true;
        for (uint32_t i = 0; a && a->kind == TL_ATTR_INTS && i + 3 < a->u.ints.n; i += 4)
            for (uint32_t side = 0; side < 2; side++) {
                const int64_t *x = a->u.ints.v + i + 2 * side, *y = a->u.ints.v + i + 2 - 2 * side;
                if (x[0] != seen[at][0] || x[1] != seen[at][1])
                    continue;
                uint32_t j = 0;
                while (j < n && (seen[j][0] != y[0] || seen[j][1] != y[1]))
                    j++;
                if (j == n && n < MAX) {
                    seen[n][0] = y[0];
                    seen[n++][1] = y[1];
                }
            }
    }
    return false;
}

bool
gr_is_dim(Gr *g, TlVal v, TlVal buf, uint32_t d)
{
    int64_t c;
    if (gr_const(g, v, &c))
        return tl_vtype(g->ir, buf)->shape[d] == c;
    TlOp o = tl_valn(g->ir, v)->def;
    if (!o || tl_opn(g->ir, o)->code != TL_OP_dim)
        return false;
    return dims_tied(g, gr_param(g, tl_opn(g->ir, o)->in[0]), tl_attr_int(g->ir, o, "axis", 0),
                     gr_param(g, buf), d);
}

bool
gr_same_index(Gr *g, TlVal a, TlVal b)
{
    int64_t x, y;
    if (a == b)
        return true;
    if (gr_const(g, a, &x) && gr_const(g, b, &y))
        return x == y;
    TlOp o = tl_valn(g->ir, b)->def;
    return o && tl_opn(g->ir, o)->code == TL_OP_dim &&
           gr_is_dim(g, a, tl_opn(g->ir, o)->in[0], (uint32_t)tl_attr_int(g->ir, o, "axis", 0));
}

static bool
never_negative(Gr *g, TlVal v)
{
    TlOp o = tl_valn(g->ir, v)->def;
    return o && tl_opn(g->ir, o)->code == TL_OP_dim;
}

bool
gr_in_range(Gr *g, const GrAff *a, TlVal buf, uint32_t d)
{
    int64_t lo = a->c, hi = a->c, e, size = tl_vtype(g->ir, buf)->shape[d];
    bool has_hi = a->ninv == 0 && size != TL_DYN;
    if (!a->ok)
        return false;
    for (uint32_t i = 0; i < a->ninv; i++)
        if (a->icoef[i] < 0 || !never_negative(g, a->inv[i]))
            return false;
    for (uint32_t i = 0; i < a->n; i++) {
        bool known = gr_const(g, g->axis[a->axis[i]].extent, &e);
        if (known && e <= 0)
            return true; /* no turn at all */
        if (a->coef[i] > 0) {
            has_hi = has_hi && known;
            hi += known ? a->coef[i] * (e - 1) : 0;
        } else {
            if (!known)
                return false;
            lo += a->coef[i] * (e - 1);
        }
    }
    if (lo < 0)
        return false;
    if (has_hi && hi < size)
        return true;
    return a->n == 1 && a->coef[0] == 1 && a->ninv == 0 && a->c <= 0 &&
           gr_is_dim(g, g->axis[a->axis[0]].extent, buf, d);
}

bool
gr_covers(Gr *g, uint32_t axis, const GrAff *a, TlVal buf, uint32_t d)
{
    int64_t e, size = tl_vtype(g->ir, buf)->shape[d];
    if (!a->ok || a->n != 1 || a->axis[0] != axis || a->coef[0] != 1 || a->ninv)
        return false;
    if (size != TL_DYN && gr_const(g, g->axis[axis].extent, &e))
        return e + a->c >= size;
    return a->c >= 0 && gr_is_dim(g, g->axis[axis].extent, buf, d);
}
