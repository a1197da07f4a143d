/* launch_grid.c - pass "launch_grid": the grid of programs from the stores.
 *
 * requires: grid loops gone.   keeps: everything.   breaks: nothing.
 *
 * Sets the kernel attributes grid0.. (triples param, axis, C: ceil(dim / C)) unless they are there or the
 * caller gives the grid (user_grid). A program id must occur in a stored dimension as p*C : p*C + C (C = 1: a
 * plain index), all stores must agree; anything else needs grid=.
 */
#include "pass/pass.h"

typedef struct Grid {
    TlIr *ir;
    TlKernelId k;
    int64_t g[3][3];
    bool set[3];
    bool ok;
    uint32_t used; /* program ids read anywhere */
    TlOp use[3];
} Grid;

static bool
refuse(Grid *g, TlOp at, const char *what)
{
    g->ok = false;
    tl_error(g->ir->diag, tl_opn(g->ir, at)->loc, TL_E_GRID, what);
    return tl_hint(g->ir->diag, "give the grid: @tl.kernel(grid=...) or kernel[grid](...)");
}

/* v = coef * program_id(axis), coef > 0. axis -1: no program id in it; -2: something else with one. */
static int
scaled_id(TlIr *ir, TlVal v, int64_t *coef, int depth)
{
    TlOp o = tl_valn(ir, v)->def;
    int64_t c;
    if (!o || depth > 60)
        return -1;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_program_id) {
        *coef = 1;
        return (int)tl_attr_int(ir, o, "axis", 0);
    }
    if (n.code == TL_OP_const || n.code == TL_OP_load)
        return -1;
    if (n.code == TL_OP_mul && (tl_is_const_int(ir, n.in[1], &c) || tl_is_const_int(ir, n.in[0], &c))) {
        int a = scaled_id(ir, tl_is_const_int(ir, n.in[1], &c) ? n.in[0] : n.in[1], coef, depth + 1);
        *coef *= c;
        return a;
    }
    for (uint32_t i = 0; i < n.nin; i++) {
        int64_t x;
        if (tl_vtype(ir, n.in[i])->kind == TL_TY_INDEX || tl_vtype(ir, n.in[i])->kind == TL_TY_SCALAR)
            if (scaled_id(ir, n.in[i], &x, depth + 1) != -1)
                return -2;
    }
    return -1;
}

static int64_t
param_index(TlIr *ir, TlKernelId k, TlVal v)
{
    const TlBlockNode *b = tl_blockn(ir, ir->kernels.data[k].body);
    for (uint32_t i = 0; i < b->args.len; i++)
        if (b->args.data[i] == v)
            return i;
    return -1;
}

static bool
look_at(TlIr *ir, TlOp o, void *self)
{
    Grid *g = self;
    const TlOpNode n = *tl_opn(ir, o);
    if (n.code == TL_OP_program_id) {
        int64_t a = tl_attr_int(ir, o, "axis", 0);
        g->used |= 1u << a;
        g->use[a] = o;
    }
    if (n.code != TL_OP_store || tl_vtype(ir, n.in[0])->kind != TL_TY_BUF)
        return true;
    const char *d = tl_attr_str(ir, o, "dims", "");
    uint32_t at = 2, td = 0;
    for (uint32_t i = 0; d[i]; at += d[i] == 'e' ? 2 : 1, td += d[i] != 'i', i++) {
        int64_t coef = 0;
        int axis = scaled_id(ir, n.in[at], &coef, 0);
        if (axis == -1)
            continue;
        int64_t cap = d[i] == 'i' ? 1 : tl_vtype(ir, n.in[1])->shape[td];
        if (axis < 0 || d[i] == 't' || coef != cap)
            return refuse(g, o,
                          "the grid cannot be inferred: the stored block is not selected as p*C : p*C + C by "
                          "a program id p");
        /* an end of its own ('e') may cut the last block, not stretch it over others: fine for the grid */
        int64_t t[3] = {param_index(ir, g->k, n.in[0]), i, cap};
        if (!g->set[axis]) {
            memcpy(g->g[axis], t, sizeof t);
            g->set[axis] = true;
        } else if (g->g[axis][2] != cap) {
            return refuse(g, o,
                          "the grid cannot be inferred: two stores divide a program id's dimension into "
                          "blocks of different sizes");
        } else {
            const TlTypeInfo *a = tl_vtype(ir, n.in[0]);
            TlVal fv = tl_blockn(ir, ir->kernels.data[g->k].body)->args.data[g->g[axis][0]];
            int64_t d0 = tl_vtype(ir, fv)->shape[g->g[axis][1]], d1 = a->shape[i];
            if (d0 != TL_DYN && d1 != TL_DYN && (d0 + cap - 1) / cap != (d1 + cap - 1) / cap)
                return refuse(g, o,
                              "the grid cannot be inferred: two stores need different numbers of programs");
        }
    }
    return true;
}

bool
tl_pass_launch_grid(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    static const char *const names[] = {"grid0", "grid1", "grid2"};
    Grid g = {.ir = ir, .k = *kernel, .ok = true};
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD || tl_kattr_int(ir, *kernel, "user_grid", 0) ||
        tl_kattr(ir, *kernel, "grid0"))
        return true;
    if (!tl_walk(ir, ir->kernels.data[*kernel].body, look_at, &g) || !g.ok)
        return false;
    for (uint32_t a = 0; a < 3; a++) {
        if ((g.used >> a & 1) && !g.set[a])
            return refuse(&g, g.use[a], "the grid cannot be inferred: no store is placed by this program id");
        int64_t one[3] = {-1, 1, 1};
        if (!tl_kattr_set_ints(ir, *kernel, names[a], g.set[a] ? g.g[a] : one, 3))
            return tl_error(ir->diag, (TlLoc){0}, TL_E_OOM);
        if (!(g.used >> (a + 1)))
            break;
    }
    return true;
}
