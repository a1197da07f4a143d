/* grid_loops.c - pass "grid_loops": kernels written as loops over elements become tile programs.
 *
 * requires: tile level.   keeps: meaning (Python's loop order; only sums are associated otherwise).
 * breaks:   grid, element, set_element, acc_element are gone; the launch grid is set.
 *
 * Contractions become the program of a matrix product, everything else that is free of dependences between
 * its turns becomes element-wise tiles (with loops over what is reduced). What cannot be divided runs in one
 * program, serially, with a note that says why. Loops that would need a launch each are refused.
 */
#include "pass/grid.h"

#include <stdio.h>

bool
gr_fail(Gr *g, TlLoc loc, TlDiagCode code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tl_error(g->diag, loc, code, text);
}

bool
gr_serial(Gr *g, TlOp at, const char *why)
{
    if (!g->serial) {
        g->why = why;
        g->why_loc = tl_opn(g->ir, at)->loc;
    }
    g->serial = true;
    return false;
}

const char *
gr_name(const Gr *g, TlVal v)
{
    return tl_str(&g->ir->strs, tl_valn(g->ir, v)->name);
}

static bool
find_grid(TlIr *ir, TlOp o, void *self)
{
    TlOp *found = self;
    if (!*found && tl_opn(ir, o)->code == TL_OP_grid)
        *found = o;
    return true;
}

static bool
go_serial(Gr *g)
{
    for (uint32_t a = 0; a < 3; a++) {
        static const char *const names[] = {"grid0", "grid1", "grid2"};
        tl_kattr_remove(g->ir, g->k, names[a]);
    }
    const char *text = tl_arena_printf(g->arena, "this grid loop runs serially, in one program: %s", g->why);
    tl_error(g->diag, g->why_loc, TL_E_PERF, text ? text : "a grid loop runs serially");
    return gr_emit_serial(g);
}

/* The loops' place is that of the last one; everything they use stands before them. */
static bool
replace(Gr *g, TlOp last)
{
    TlBlock body = g->ir->kernels.data[g->k].body;
    TlOp mark = tl_opn(g->ir, last)->prev;
    g->b = (TlBuilder){g->ir, body, last, tl_opn(g->ir, last)->loc};
    if (!gr_emit(g)) {
        if (!g->serial)
            return false;
        while (tl_opn(g->ir, last)->prev != mark) /* take back what was begun */
            tl_op_unlink(g->ir, tl_opn(g->ir, last)->prev);
        return go_serial(g);
    }
    for (TlOp o = tl_blockn(g->ir, body)->first, next; o; o = next) {
        next = tl_opn(g->ir, o)->next;
        if (tl_opn(g->ir, o)->code == TL_OP_grid)
            tl_op_unlink(g->ir, o);
    }
    if (g->single) {
        const char *text = tl_arena_printf(g->arena, "this grid loop runs in one single program: %s", g->why);
        tl_error(g->diag, tl_opn(g->ir, g->single_at)->loc, TL_E_PERF, text ? text : "one single program");
        if (g->split)
            tl_hint(g->diag, "split the kernel: put each of the two loops in a kernel of its own");
    }
    return true;
}

static bool
run(Gr *g)
{
    TlBlock body = g->ir->kernels.data[g->k].body;
    TlOp first = 0, last = 0;
    tl_walk(g->ir, body, find_grid, &first);
    if (!first)
        return true;
    if (tl_kattr_int(g->ir, g->k, "user_grid", 0) || tl_kattr(g->ir, g->k, "grid0")) {
        gr_fail(g, tl_opn(g->ir, first)->loc, TL_E_GRID, "a kernel of grid loops chooses its own grid");
        return tl_hint(g->diag, "leave out grid=");
    }
    if (!gr_collect(g))
        return false;
    if (!g->stmts.len && !g->serial) { /* loops that write nothing */
        for (TlOp o = tl_blockn(g->ir, body)->first, next; o; o = next) {
            next = tl_opn(g->ir, o)->next;
            if (tl_opn(g->ir, o)->code == TL_OP_grid)
                tl_op_unlink(g->ir, o);
        }
        return tl_kattr_set_ints(g->ir, g->k, "grid0", (int64_t[]){-1, 1, 1}, 3);
    }
    switch (gr_analyse(g)) {
    case GR_REFUSED:
        return false;
    case GR_SERIAL:
        return go_serial(g);
    case GR_TILES:
        break;
    }
    for (TlOp o = tl_blockn(g->ir, body)->first; o; o = tl_opn(g->ir, o)->next)
        if (tl_opn(g->ir, o)->code == TL_OP_grid)
            last = o;
    return replace(g, last);
}

bool
tl_pass_grid_loops(TlIr *ir, TlKernelId *kernel, const TlPassOptions *opts)
{
    Gr g = {.ir = ir, .diag = ir->diag, .arena = ir->arena, .k = *kernel};
    (void)opts;
    if (ir->kernels.data[*kernel].level == TL_LEVEL_THREAD)
        return true;
    tl_map_init(&g.axis_of, ir->arena);
    tl_map_init(&g.masks, ir->arena);
    if (run(&g))
        return true;
    if (!ir->diag->nerrors)
        tl_error(ir->diag, tl_kerneln(ir, *kernel)->loc, ir->arena->failed ? TL_E_OOM : TL_E_INTERNAL,
                 "grid loops");
    return false;
}
