/* grid_deps.c - the statements of the grid loops, their parallel axes, the dependences between them, and the
 * axes over which all of them can be divided among programs (the group's).
 *
 * Two accesses to one buffer, one of them a write, must name the group's axes in the same dims by the same
 * expressions: then no program touches what another one does, and inside a program statement follows
 * statement. Loops that two such statements share beyond the group's must show in the accesses likewise,
 * since each statement runs through its loops on its own.
 */
#include "pass/grid.h"

/* ---- collecting ---- */

static bool
read_access(Gr *g, TlOp o, GrAccess *a)
{
    const TlOpNode n = *tl_opn(g->ir, o);
    *a = (GrAccess){.op = o, .buf = n.in[0], .rank = tl_vtype(g->ir, n.in[0])->rank};
    a->first = n.code == TL_OP_element ? 1 : 2;
    for (uint32_t d = 0; d < a->rank; d++)
        a->idx[d] = gr_aff(g, n.in[a->first + d]);
    return true;
}

GrAccess *
gr_read_of(Gr *g, GrStmt *s, TlOp element)
{
    (void)g;
    for (uint32_t i = 0; i < s->reads.len; i++)
        if (s->reads.data[i].op == element)
            return &s->reads.data[i];
    return NULL;
}

/* All elements that a value is computed from. */
static bool
collect_reads(Gr *g, GrStmt *s, TlVal v)
{
    GrAccess a;
    TlOp o = tl_valn(g->ir, v)->def;
    if (!(gr_mask(g, v) & GR_READS) || !o)
        return true;
    if (tl_opn(g->ir, o)->code == TL_OP_element) {
        if (gr_read_of(g, s, o))
            return true;
        return read_access(g, o, &a) && tl_vec_push(g->arena, &s->reads, a);
    }
    if (tl_opn(g->ir, o)->code == TL_OP_for) {
        for (uint32_t i = 0; i < s->nlocal; i++)
            if (s->local[i] == v)
                return true;
        if (!collect_reads(g, s, gr_local_init(g, v)) || !collect_reads(g, s, gr_local_value(g, v)))
            return false;
        if (s->nlocal == GR_MAX_LOCALS)
            gr_serial(g, o, "a statement uses many reduced locals");
        else
            s->local[s->nlocal++] = v;
        return true;
    }
    for (uint32_t r = 0; tl_opn(g->ir, o)->code == TL_OP_if && r < 2; r++)
        if (!collect_reads(g, s, gr_branch_value(g, v, r)))
            return false;
    for (uint32_t i = 0; i < tl_opn(g->ir, o)->nin; i++)
        if (!collect_reads(g, s, tl_opn(g->ir, o)->in[i]))
            return false;
    return true;
}

typedef struct Around { /* what stands around an operation */
    TlOp nest;
    uint32_t axes, nguard;
    TlVal guard[GR_MAX_GUARDS];
    bool negated[GR_MAX_GUARDS];
} Around;

static bool
add_stmt(Gr *g, TlOp o, const Around *at)
{
    const TlOpNode n = *tl_opn(g->ir, o);
    GrStmt s = {
        .op = o, .nest = at->nest, .acc = n.code == TL_OP_acc_element, .axes = at->axes, .value = n.in[1]};
    read_access(g, o, &s.w);
    for (uint32_t d = 0; d < s.w.rank; d++)
        for (uint32_t i = 0; i < s.w.idx[d].n; i++)
            if (!(s.par >> s.w.idx[d].axis[i] & 1)) {
                s.par |= 1u << s.w.idx[d].axis[i];
                if (s.npar < TL_MAX_RANK)
                    s.par_list[s.npar++] = s.w.idx[d].axis[i];
            }
    s.red = at->axes & ~s.par;
    s.nguard = at->nguard;
    memcpy(s.guard, at->guard, sizeof s.guard);
    memcpy(s.negated, at->negated, sizeof s.negated);
    for (uint32_t i = 0; i < s.nguard; i++)
        if (!collect_reads(g, &s, s.guard[i]))
            return false;
    if (!collect_reads(g, &s, s.value))
        return false;
    s.common = s.par;
    for (uint32_t i = 0; i < s.nlocal; i++) /* rather one program for all that shares a local */
        if (s.common & gr_mask(g, s.local[i]))
            s.common &= gr_mask(g, s.local[i]);
    return tl_vec_push(g->arena, &g->stmts, s);
}

static bool
add_local(Gr *g, TlOp o)
{
    const TlOpNode n = *tl_opn(g->ir, o);
    TlVal iv = tl_blockn(g->ir, n.region[0])->args.data[0];
    if (!gr_local_fits(g, o) || g->naxes == GR_MAX_AXES)
        return gr_serial(g, o, "a loop with its own order stands inside a grid loop");
    g->axis[g->naxes] = (GrAxis){iv, n.in[1]};
    return tl_map_put(&g->axis_of, iv, g->naxes++);
}

/* The loops of a grid operation become axes. */
static bool
add_axes(Gr *g, TlOp o, Around *at)
{
    const TlOpNode n = *tl_opn(g->ir, o);
    for (uint32_t i = 0; i < n.nin; i++) {
        TlVal arg = tl_blockn(g->ir, n.region[0])->args.data[i];
        if (g->naxes == GR_MAX_AXES)
            return gr_fail(g, n.loc, TL_E_UNSUPPORTED, "more than %d grid loops in one kernel", GR_MAX_AXES);
        if (gr_mask(g, n.in[i]) != 0)
            gr_serial(g, o, "the extent of a loop depends on another loop");
        g->axis[g->naxes] = (GrAxis){arg, n.in[i]};
        if (!tl_map_put(&g->axis_of, arg, g->naxes))
            return false;
        at->axes |= 1u << g->naxes++;
    }
    return true;
}

static bool collect_block(Gr *g, TlBlock b, const Around *at);

static bool
collect_branches(Gr *g, TlOp o, const Around *at)
{
    const TlOpNode n = *tl_opn(g->ir, o);
    for (uint32_t r = 0; r < 2; r++) {
        Around in = *at;
        if (in.nguard == GR_MAX_GUARDS) {
            gr_serial(g, o, "branches stand inside branches");
            return true;
        }
        in.guard[in.nguard] = n.in[0];
        in.negated[in.nguard++] = r == 1;
        if (!collect_block(g, n.region[r], &in))
            return false;
    }
    return true;
}

static bool
collect_block(Gr *g, TlBlock b, const Around *at)
{
    for (TlOp o = tl_blockn(g->ir, b)->first; o; o = tl_opn(g->ir, o)->next) {
        const TlOpNode n = *tl_opn(g->ir, o);
        uint32_t traits = tl_op_row(n.code)->traits;
        Around in = *at;
        if (n.code == TL_OP_set_element || n.code == TL_OP_acc_element) {
            if (!add_stmt(g, o, at))
                return false;
        } else if (n.code == TL_OP_grid) {
            if (!add_axes(g, o, &in) || !collect_block(g, n.region[0], &in))
                return false;
        } else if (n.code == TL_OP_if) {
            if (!collect_branches(g, o, at))
                return false;
        } else if (n.code == TL_OP_for) {
            if (!add_local(g, o) && !g->serial)
                return false;
        } else if (n.nregion) {
            gr_serial(g, o, "a loop with its own order stands inside a grid loop");
        } else if (n.code != TL_OP_element && n.code != TL_OP_yield && !(traits & TL_T_PURE)) {
            return gr_fail(g, n.loc, TL_E_UNSUPPORTED, "'%s' inside a grid loop", tl_op_row(n.code)->name);
        }
    }
    return true;
}

static bool
has_grid(TlIr *ir, TlOp o, void *self)
{
    *(bool *)self |= tl_opn(ir, o)->code == TL_OP_grid;
    return true;
}

/* The kernel's body: loops, and scalars around them. */
bool
gr_collect(Gr *g)
{
    for (TlOp o = tl_blockn(g->ir, g->ir->kernels.data[g->k].body)->first; o; o = tl_opn(g->ir, o)->next) {
        const TlOpNode n = *tl_opn(g->ir, o);
        bool in = false, scalar = n.nres == 1 && tl_vtype(g->ir, n.res[0])->kind != TL_TY_TILE;
        if (n.code == TL_OP_grid) {
            Around at = {.nest = o};
            if (!add_axes(g, o, &at) || !collect_block(g, n.region[0], &at))
                return false;
            continue;
        }
        for (uint32_t r = 0; r < n.nregion; r++)
            tl_walk(g->ir, n.region[r], has_grid, &in);
        if (in) {
            gr_serial(g, o, "a grid loop stands inside another kind of loop or branch");
            continue;
        }
        if (scalar && n.code == TL_OP_load && !tl_vec_push(g->arena, &g->scalar_loads, o))
            return false;
        bool pure = tl_op_row(n.code)->traits & TL_T_PURE && n.code != TL_OP_program_id &&
                    n.code != TL_OP_num_programs;
        if (!(scalar && (pure || n.code == TL_OP_load)) && n.code != TL_OP_assert &&
            n.code != TL_OP_barrier) {
            gr_fail(g, n.loc, TL_E_UNSUPPORTED,
                    "grid loops and tile-style statements in one kernel are not supported yet");
            return tl_hint(g->diag, "write two kernels, one in each style");
        }
    }
    return true;
}

/* ---- statements by themselves ---- */

static bool
one_axis_a_dim(Gr *g, const GrStmt *s, const GrAccess *a)
{
    uint32_t seen = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        uint32_t in_dim = 0;
        if (!a->idx[d].ok)
            return gr_serial(g, a->op, "an index is no sum of loop variables");
        for (uint32_t i = 0; i < a->idx[d].n; i++) {
            uint32_t m = 1u << a->idx[d].axis[i];
            if (!(m & s->par))
                continue;
            if (a->idx[d].coef[i] != 1 || in_dim || (seen & m))
                return gr_serial(
                    g, a->op,
                    "an index is not one loop variable plus an offset, or a loop variable indexes two dims");
            in_dim = m;
            seen |= m;
        }
    }
    return true;
}

static bool
check_stmt(Gr *g, GrStmt *s)
{
    uint32_t from = gr_mask(g, s->value);
    for (uint32_t i = 0; i < s->nguard; i++)
        from |= gr_mask(g, s->guard[i]);
    if (from & GR_OPAQUE)
        return gr_serial(g, s->op,
                         "a value comes from a loop with its own order, or is read in a branch only");
    if (!one_axis_a_dim(g, s, &s->w))
        return false;
    if (s->red && !s->acc)
        return gr_serial(g, s->op, "each turn of a loop overwrites the same element");
    for (uint32_t i = 0; i < s->reads.len; i++) {
        const GrAccess *a = &s->reads.data[i];
        if (!one_axis_a_dim(g, s, a))
            return false;
        if (s->red && a->buf == s->w.buf)
            return gr_serial(g, a->op, "a reduction uses its own partial result");
        for (uint32_t d = 0; a->buf == s->w.buf && d < a->rank; d++)
            if (!gr_aff_equal(&a->idx[d], s, &s->w.idx[d], s, 0))
                return gr_serial(g, a->op, "a statement reads other elements of the tensor that it writes");
    }
    return true;
}

/* ---- the group's axes ---- */

static const GrAccess *
access_of(const GrStmt *s, TlVal buf, uint32_t i)
{
    if (i == 0)
        return s->w.buf == buf ? &s->w : NULL;
    return i <= s->reads.len && s->reads.data[i - 1].buf == buf ? &s->reads.data[i - 1] : NULL;
}

static bool
touches(const GrStmt *s, TlVal buf)
{
    for (uint32_t i = 0; i <= s->reads.len; i++)
        if (access_of(s, buf, i))
            return true;
    return false;
}

static bool
conflict(const GrStmt *s, const GrStmt *t)
{
    return touches(s, t->w.buf) || touches(t, s->w.buf);
}

/* t's axes for the group's, from accesses of s and t to one buffer. */
static bool
map_by_access(Gr *g, const GrStmt *s, GrStmt *t)
{
    TlVal bufs[2] = {s->w.buf, t->w.buf};
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i <= s->reads.len; i++)
            for (uint32_t j = 0; j <= t->reads.len; j++) {
                const GrAccess *x = access_of(s, bufs[b], i), *y = access_of(t, bufs[b], j);
                uint32_t found = 0, used = 0;
                for (uint32_t a = 0; x && y && a < g->ngroup; a++)
                    for (uint32_t d = 0; d < x->rank; d++) {
                        uint32_t m = gr_aff_axes(&y->idx[d]) & t->par;
                        if (gr_aff_coef(&x->idx[d], s->map[a]) != 1 || !m || (m & (m - 1)) || (m & used))
                            continue;
                        t->map[a] = (uint32_t)__builtin_ctz(m);
                        used |= m;
                        found++;
                        break;
                    }
                if (found == g->ngroup)
                    return true;
            }
    return false;
}

static bool
map_stmt(Gr *g, const GrStmt *s, GrStmt *t)
{
    uint32_t have = 0;
    if (s->nest == t->nest) {
        for (uint32_t a = 0; a < g->ngroup; a++)
            have += t->par >> s->map[a] & 1;
        if (have == g->ngroup)
            memcpy(t->map, s->map, sizeof t->map);
        return have == g->ngroup;
    }
    if (conflict(s, t))
        return map_by_access(g, s, t);
    if (t->npar < g->ngroup)
        return false;
    for (uint32_t a = 0; a < g->ngroup; a++) {
        t->map[a] = t->par_list[a];
        if (!gr_same_index(g, g->axis[t->map[a]].extent, g->axis[s->map[a]].extent))
            return false;
    }
    return true;
}

/* There are no axes in common that programs could divide: one program runs the statements one after the
 * other. */
static GrVerdict
one_program(Gr *g, const GrStmt *s, const GrStmt *t, const char *why)
{
    g->single = true;
    g->single_at = t->op;
    g->split = s->nest != t->nest;
    g->ngroup = 0;
    g->why = why;
    if (g->split)
        g->why = tl_arena_printf(g->arena, "it and the loop at line %u would need launches of their own: %s",
                                 tl_opn(g->ir, s->op)->loc.line, why);
    return g->why ? GR_TILES : GR_REFUSED;
}

static GrVerdict
map_all(Gr *g)
{
    GrStmt *s0 = &g->stmts.data[0];
    for (uint32_t i = 1; i < g->stmts.len; i++)
        if (__builtin_popcount(g->stmts.data[i].common) < __builtin_popcount(s0->common))
            s0 = &g->stmts.data[i];
    if (!s0->common) {
        const GrStmt *t = s0;
        for (uint32_t i = 0; i < g->stmts.len; i++)
            if (g->stmts.data[i].nest != s0->nest)
                t = &g->stmts.data[i];
        return one_program(g, t, s0, "a single element is written");
    }
    for (uint32_t i = 0; i < s0->npar; i++)
        if (s0->common >> s0->par_list[i] & 1)
            s0->map[g->ngroup++] = s0->par_list[i];
    s0->mapped = true;
    for (uint32_t turn = 0; turn < g->stmts.len; turn++)
        for (uint32_t i = 0; i < g->stmts.len; i++)
            for (uint32_t j = 0; j < g->stmts.len && !g->stmts.data[i].mapped; j++)
                g->stmts.data[i].mapped =
                    g->stmts.data[j].mapped && map_stmt(g, &g->stmts.data[j], &g->stmts.data[i]);
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        GrStmt *s = &g->stmts.data[i];
        bool same = s->mapped;
        for (uint32_t a = 0; same && a < g->ngroup; a++)
            same = gr_same_index(g, g->axis[s->map[a]].extent, g->axis[s0->map[a]].extent);
        if (same)
            continue;
        GrStmt *first = s0->nest == s->nest ? &g->stmts.data[0] : s0;
        return one_program(g, first, s, "the statements are not over the same elements");
    }
    return GR_TILES;
}

/* ---- dependences ---- */

/* Accesses a of s and b of t to one buffer never meet in two programs, nor in an order that matters. */
static bool
harmless(Gr *g, const GrStmt *s, const GrAccess *a, const GrStmt *t, const GrAccess *b)
{
    uint32_t shared = s->axes & t->axes, seen = 0;
    for (uint32_t x = 0; x < g->ngroup; x++)
        shared &= ~(1u << s->map[x]);
    for (uint32_t d = 0; d < a->rank; d++)
        for (uint32_t x = 0; x < g->ngroup; x++)
            if (gr_aff_coef(&a->idx[d], s->map[x]) && a->idx[d].n == 1 &&
                gr_aff_equal(&a->idx[d], s, &b->idx[d], t, g->ngroup))
                seen |= 1u << x;
    if (seen != (1u << g->ngroup) - 1)
        return false;
    for (uint32_t d = 0; s != t && d < a->rank; d++)
        if (a->idx[d].n == 1 && b->idx[d].n == 1 && a->idx[d].axis[0] == b->idx[d].axis[0] &&
            gr_aff_equal(&a->idx[d], s, &b->idx[d], t, g->ngroup))
            shared &= ~(1u << a->idx[d].axis[0]);
    return s == t || !shared;
}

/* An operation's place in the text of the kernel: paths from the outside in, compared. */
static bool
stands_before(const Gr *g, TlOp a, TlOp b)
{
    TlOp pa[16], pb[16];
    uint32_t na = 0, nb = 0;
    for (TlOp o = a; o && na < TL_COUNT(pa); o = tl_blockn(g->ir, tl_opn(g->ir, o)->block)->parent)
        pa[na++] = o;
    for (TlOp o = b; o && nb < TL_COUNT(pb); o = tl_blockn(g->ir, tl_opn(g->ir, o)->block)->parent)
        pb[nb++] = o;
    while (na && nb && pa[na - 1] == pb[nb - 1]) {
        na--;
        nb--;
    }
    if (!na || !nb || tl_opn(g->ir, pa[na - 1])->block != tl_opn(g->ir, pb[nb - 1])->block)
        return true; /* one inside the other, or branches of one `if`: take it as before */
    for (TlOp o = pa[na - 1]; o; o = tl_opn(g->ir, o)->next)
        if (o == pb[nb - 1])
            return true;
    return false;
}

/* t computes with an element that it read before s wrote its tensor. */
static bool
read_too_early(Gr *g, const GrStmt *s, const GrStmt *t)
{
    for (uint32_t i = 0; s != t && s->nest == t->nest && i < t->reads.len; i++)
        if (t->reads.data[i].buf == s->w.buf && stands_before(g, t->reads.data[i].op, s->op))
            return true;
    return false;
}

static GrVerdict
check_pair(Gr *g, const GrStmt *s, const GrStmt *t)
{
    if (read_too_early(g, s, t)) {
        gr_serial(g, t->op, "an element is read before another statement writes it, and used after");
        return GR_SERIAL;
    }
    for (uint32_t i = 0; i <= s->reads.len; i++)
        for (uint32_t j = 0; j <= t->reads.len; j++) {
            TlVal buf = i == 0 ? s->w.buf : t->w.buf;
            const GrAccess *a = access_of(s, buf, i), *b = access_of(t, buf, j);
            if (!a || !b || (i && j) || harmless(g, s, a, t, b))
                continue;
            if (s->nest == t->nest) {
                gr_serial(g, t->op, "a statement depends on other turns of the loops");
                return GR_SERIAL;
            }
            const char *why = tl_arena_printf(g->arena, "'%s' is used at other elements than it is written",
                                              gr_name(g, buf));
            return one_program(g, s, t, why ? why : "");
        }
    return GR_TILES;
}

static bool
check_alias(Gr *g)
{
    for (uint32_t i = 0; i < g->stmts.len; i++)
        for (uint32_t j = 0; j < g->scalar_loads.len; j++) {
            TlVal w = g->stmts.data[i].w.buf, x = tl_opn(g->ir, g->scalar_loads.data[j])->in[0];
            if (x == w || !((tl_vtype(g->ir, w)->flags | tl_vtype(g->ir, x)->flags) & TL_BUF_NOALIAS))
                return gr_serial(g, g->stmts.data[i].op,
                                 "a scalar is read from a tensor that the loops write");
        }
    for (uint32_t i = 0; i < g->stmts.len; i++)
        for (uint32_t j = 0; j < g->stmts.len; j++)
            for (uint32_t r = 0; r <= g->stmts.data[j].reads.len; r++) {
                TlVal w = g->stmts.data[i].w.buf;
                const GrStmt *t = &g->stmts.data[j];
                TlVal x = r == 0 ? t->w.buf : t->reads.data[r - 1].buf;
                if (x != w && !((tl_vtype(g->ir, w)->flags | tl_vtype(g->ir, x)->flags) & TL_BUF_NOALIAS))
                    return gr_serial(g, g->stmts.data[i].op,
                                     "a tensor that is written may overlap another argument");
            }
    return true;
}

GrVerdict
gr_analyse(Gr *g)
{
    if (g->serial)
        return GR_SERIAL;
    for (uint32_t i = 0; i < g->stmts.len; i++)
        if (!check_stmt(g, &g->stmts.data[i]))
            return GR_SERIAL;
    if (!check_alias(g))
        return GR_SERIAL;
    GrVerdict v = map_all(g);
    bool single;
    do { /* once more when a pair calls for a single program */
        single = g->single;
        for (uint32_t i = 0; v == GR_TILES && i < g->stmts.len; i++) {
            GrStmt *s = &g->stmts.data[i];
            s->inner = s->par;
            for (uint32_t a = 0; a < g->ngroup; a++)
                s->inner &= ~(1u << s->map[a]);
        }
        for (uint32_t i = 0; v == GR_TILES && i < g->stmts.len; i++)
            for (uint32_t j = i; v == GR_TILES && j < g->stmts.len && single == g->single; j++)
                v = check_pair(g, &g->stmts.data[i], &g->stmts.data[j]);
    } while (v == GR_TILES && single != g->single);
    return v;
}
