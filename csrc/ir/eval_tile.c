/* eval_tile.c - see eval.h: memory, shapes, reductions, dot. */
#include "ir/eval_internal.h"

#include <math.h>

/* ---- memory ---- */

bool
ev_alloc(Ev *e, TlOp o)
{
    const TlTypeInfo *t = ev_type(e, o);
    EvSlot *s = &e->slots[tl_opn(e->ir, o)->res[0]];
    ev_slot_clear(e, s);
    s->mem = (EvMem){.elem = t->elem, .rank = t->rank};
    s->mem.content = ev_tile_new(e, t->elem, t->rank, t->shape, false);
    int64_t stride = 1;
    for (uint32_t d = t->rank; d-- > 0; stride *= t->shape[d]) {
        s->mem.dims[d] = t->shape[d];
        s->mem.strides[d] = stride;
    }
    return s->mem.content != NULL;
}

static int64_t
linear(const EvMem *m, const int64_t *index)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < m->rank; d++)
        at += index[d] * m->strides[d];
    return at;
}

static TlNum
peek(const EvMem *m, const int64_t *index)
{
    int64_t at = linear(m, index);
    if (!m->global)
        return m->content->v[at];
    uint64_t bits = 0;
    uint32_t bytes = tl_elem_bytes(m->elem);
    memcpy(&bits, m->data + at * (int64_t)bytes, bytes); /* little-endian hosts only, as everything here */
    return tl_num_decode(m->elem, bits);
}

static void
poke(const EvMem *m, const int64_t *index, TlNum n)
{
    int64_t at = linear(m, index);
    if (!m->global) {
        m->content->v[at] = n;
        return;
    }
    uint64_t bits = tl_num_encode(m->elem, n);
    uint32_t bytes = tl_elem_bytes(m->elem);
    memcpy(m->data + at * (int64_t)bytes, &bits, bytes);
}

typedef struct Slice { /* what dims, steps and the indices of load and store say */
    const EvMem *m;
    uint32_t rank; /* of the tile that is moved */
    char kind[TL_MAX_RANK];
    int64_t start[TL_MAX_RANK], step[TL_MAX_RANK];
    int64_t lo[TL_MAX_RANK], end[TL_MAX_RANK]; /* valid indices of the memory's dims */
    int64_t asked_end[TL_MAX_RANK];            /* e: the end alone */
    uint32_t pos[TL_MAX_RANK];                 /* s, e: the tile's dim */
    const EvTile *index[TL_MAX_RANK];          /* t */
    uint32_t tile_pos, tile_rank;              /* where the broadcast index tiles' dims stand */
    bool tiles;
} Slice;

static void
place_dims(Slice *s)
{
    uint32_t first = UINT32_MAX, last = 0, count = 0, at = 0;
    for (uint32_t d = 0; d < s->m->rank; d++)
        if (s->kind[d] == 't') {
            first = TL_MIN(first, d);
            last = d;
            count++;
            s->tile_rank = TL_MAX(s->tile_rank, s->index[d]->rank);
        }
    s->tiles = count != 0;
    bool together = count && last - first + 1 == count; /* else they come first, as in NumPy */
    if (s->tiles && !together) {
        s->tile_pos = 0;
        at = s->tile_rank;
    }
    for (uint32_t d = 0; d < s->m->rank; d++) {
        if (together && d == first) {
            s->tile_pos = at;
            at += s->tile_rank;
        }
        if (s->kind[d] == 's')
            s->pos[d] = at++;
    }
    s->rank = at;
}

static bool
read_slice(Ev *e, TlOp o, uint32_t at, Slice *s)
{
    const char *dims = tl_attr_str(e->ir, o, "dims", "");
    const TlAttr *steps = tl_attr(e->ir, o, "steps");
    *s = (Slice){.m = &ev_in(e, o, 0)->mem};
    for (uint32_t d = 0; d < s->m->rank; d++) {
        s->kind[d] = *dims ? dims[d] : 's';
        s->step[d] = steps ? steps->u.ints.v[d] : 1;
        bool box = !s->m->global && !s->m->permuted; /* a transposed view counts as valid, 0 in the gap */
        s->end[d] = box ? s->m->content->hi[d] : s->m->dims[d];
        s->lo[d] = box ? s->m->content->lo[d] : 0;
        s->asked_end[d] = INT64_MAX;
        if (!*dims)
            continue;
        if (s->kind[d] == 't')
            s->index[d] = ev_in(e, o, at)->tile;
        else
            s->start[d] = ev_in(e, o, at)->num.i;
        at++;
        if (s->kind[d] == 'e') {
            s->asked_end[d] = ev_in(e, o, at++)->num.i;
            s->end[d] = TL_MIN(s->end[d], s->asked_end[d]);
            s->kind[d] = 's';
        }
    }
    place_dims(s);
    return true;
}

/* Position in memory of the tile's element `at`; false where it is not valid there. */
static bool
locate(const Slice *s, const int64_t *at, int64_t *index)
{
    bool ok = true;
    for (uint32_t d = 0; d < s->m->rank; d++) {
        if (s->kind[d] == 's') {
            index[d] = s->start[d] + s->step[d] * at[s->pos[d]];
        } else if (s->kind[d] == 'i') {
            index[d] = s->start[d];
        } else {
            const EvTile *t = s->index[d];
            int64_t k = 0, where[TL_MAX_RANK];
            for (uint32_t i = 0; i < t->rank; i++) { /* right-aligned, dims of size 1 stretch */
                int64_t x = at[s->tile_pos + s->tile_rank - t->rank + i];
                where[i] = t->shape[i] == 1 ? 0 : x;
                k = k * t->shape[i] + where[i];
            }
            index[d] = t->v[k].i;
            ok &= ev_valid(t, where, k);
        }
        ok &= index[d] >= s->lo[d] && index[d] < s->end[d];
    }
    return ok;
}

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static bool
op_load(Ev *e, TlOp o)
{
    Slice s;
    const TlTypeInfo *rt = ev_type(e, o);
    int64_t at[TL_MAX_RANK] = {0}, index[TL_MAX_RANK];
    read_slice(e, o, 1, &s);
    if (rt->kind != TL_TY_TILE) {
        bool in = locate(&s, at, index);
        TlNum n = in ? peek(s.m, index) : (TlNum){0};
        EvSlot *r = &e->slots[tl_opn(e->ir, o)->res[0]];
        ev_slot_clear(e, r);
        r->num = n;
        return true;
    }
    EvTile *t = ev_tile_new(e, rt->elem, rt->rank, rt->shape, s.tiles);
    bool nothing = false;
    if (!t)
        return false;
    for (uint32_t d = 0; d < s.m->rank; d++) {
        if (s.kind[d] == 's') {
            uint32_t p = s.pos[d];
            t->lo[p] = TL_MIN(TL_MAX(ceil_div(s.lo[d] - s.start[d], s.step[d]), 0), t->shape[p]);
            t->hi[p] = TL_MAX(TL_MIN(ceil_div(s.end[d] - s.start[d], s.step[d]), t->shape[p]), t->lo[p]);
        } else if (s.kind[d] == 'i' && (s.start[d] < s.lo[d] || s.start[d] >= s.end[d])) {
            nothing = true;
        }
    }
    for (uint32_t d = 0; nothing && d < t->rank; d++)
        t->hi[d] = t->lo[d];
    t->nothing = nothing || (!s.m->global && s.m->content->nothing);
    int64_t k = 0;
    do {
        bool in = locate(&s, at, index);
        if (in)
            t->v[k] = peek(s.m, index);
        else if (t->mask)
            t->mask[k] = 0;
        k++;
    } while (ev_next(t->rank, t->shape, at));
    return ev_give(e, o, t);
}

/* Shared and local tiles: a whole store stores the box too; after a part of it everything is valid, 0 in the
 * gap. */
static void
store_own(const Slice *s, const EvTile *t, TlNum scalar)
{
    EvTile *c = s->m->content;
    int64_t at[TL_MAX_RANK] = {0}, index[TL_MAX_RANK], k = 0;
    bool whole = t && t->rank == c->rank && !s->m->permuted && !s->tiles;
    for (uint32_t d = 0; whole && d < c->rank; d++)
        whole = s->kind[d] == 's' && s->start[d] == 0 && s->step[d] == 1 && t->shape[d] == c->shape[d] &&
                s->asked_end[d] >= c->shape[d];
    c->nothing = whole && t->nothing;
    Slice all = *s;
    for (uint32_t d = 0; d < c->rank; d++) {
        all.lo[d] = 0;
        all.end[d] = TL_MIN(s->m->dims[d], s->asked_end[d]);
        c->lo[d] = whole ? t->lo[d] : 0;
        c->hi[d] = whole ? t->hi[d] : c->shape[d];
    }
    if (!t) {
        if (locate(&all, at, index))
            poke(s->m, index, scalar);
        return;
    }
    do {
        if (locate(&all, at, index))
            poke(s->m, index, ev_valid(t, at, k) ? t->v[k] : (TlNum){0});
        k++;
    } while (ev_next(t->rank, t->shape, at));
}

static bool
op_store(Ev *e, TlOp o)
{
    Slice s;
    const EvTile *t = ev_in(e, o, 1)->tile;
    TlNum scalar = ev_in(e, o, 1)->num;
    int64_t at[TL_MAX_RANK] = {0}, index[TL_MAX_RANK], k = 0;
    read_slice(e, o, 2, &s);
    if (!s.m->global) {
        store_own(&s, t, scalar);
        return true;
    }
    if (!t) {
        if (locate(&s, at, index))
            poke(s.m, index, scalar);
        return true;
    }
    do {
        if (ev_valid(t, at, k) && locate(&s, at, index))
            poke(s.m, index, t->v[k]);
        k++;
    } while (ev_next(t->rank, t->shape, at));
    return true;
}

static bool
element_index(Ev *e, TlOp o, uint32_t first, int64_t *index)
{
    const EvMem *m = &ev_in(e, o, 0)->mem;
    bool in = true;
    for (uint32_t d = 0; d < m->rank; d++) {
        index[d] = ev_in(e, o, first + d)->num.i;
        in &= index[d] >= 0 && index[d] < m->dims[d];
    }
    return in;
}

static TlOpcode
combiner(const char *kind)
{
    static const struct {
        const char *kind;
        TlOpcode code;
    } rows[] = {{"sum", TL_OP_add}, {"prod", TL_OP_mul}, {"max", TL_OP_max}, {"min", TL_OP_min},
                {"any", TL_OP_or},  {"all", TL_OP_and},  {"xor", TL_OP_xor}};
    for (uint32_t i = 0; i < TL_COUNT(rows); i++)
        if (strcmp(rows[i].kind, kind) == 0)
            return rows[i].code;
    return TL_OP_NONE;
}

static bool
op_element(Ev *e, TlOp o)
{
    int64_t index[TL_MAX_RANK];
    const EvMem *m = &ev_in(e, o, 0)->mem;
    TlOpcode c = tl_opn(e->ir, o)->code;
    bool in = element_index(e, o, c == TL_OP_element ? 1 : 2, index);
    if (c == TL_OP_element) {
        TlNum n = in ? peek(m, index) : (TlNum){0};
        EvSlot *r = &e->slots[tl_opn(e->ir, o)->res[0]];
        ev_slot_clear(e, r);
        r->num = n;
        return true;
    }
    TlNum v = ev_in(e, o, 1)->num;
    if (in && c == TL_OP_acc_element) {
        /* in the accumulator's type, which is the value's; rounded to the buffer's by every step here */
        TlElem wide = tl_vtype(e->ir, tl_opn(e->ir, o)->in[1])->elem;
        TlNum two[2] = {tl_num_cast(m->elem, wide, peek(m, index)), v};
        tl_fold(combiner(tl_attr_str(e->ir, o, "kind", "")), wide, two, &v);
        v = tl_num_cast(wide, m->elem, v);
    }
    if (in)
        poke(m, index, v);
    return true;
}

/* ---- shapes ---- */

/* Result element `at` is the operand's element from(at). */
typedef void (*FromFn)(const Ev *e, TlOp o, const EvTile *x, const int64_t *at, int64_t *from);

static void
from_broadcast(const Ev *e, TlOp o, const EvTile *x, const int64_t *at, int64_t *from)
{
    (void)e;
    (void)o;
    for (uint32_t d = 0; d < x->rank; d++)
        from[d] = x->shape[d] == 1 ? 0 : at[d];
}

static void
from_expand(const Ev *e, TlOp o, const EvTile *x, const int64_t *at, int64_t *from)
{
    uint32_t axis = (uint32_t)tl_attr_int(e->ir, o, "axis", 0);
    for (uint32_t d = 0; d < x->rank; d++)
        from[d] = at[d + (d >= axis)];
}

static void
from_trans(const Ev *e, TlOp o, const EvTile *x, const int64_t *at, int64_t *from)
{
    const TlAttr *p = tl_attr(e->ir, o, "perm");
    for (uint32_t d = 0; d < x->rank; d++)
        from[p->u.ints.v[d]] = at[d];
}

static bool
rearrange(Ev *e, TlOp o, FromFn fn)
{
    const EvTile *x = ev_in(e, o, 0)->tile;
    const TlTypeInfo *rt = ev_type(e, o);
    int64_t at[TL_MAX_RANK] = {0}, from[TL_MAX_RANK] = {0}, k = 0;
    EvTile *t = ev_tile_new(e, rt->elem, rt->rank, rt->shape, true);
    if (!t)
        return false;
    bool all = true;
    do {
        fn(e, o, x, at, from);
        int64_t s = 0;
        for (uint32_t d = 0; d < x->rank; d++)
            s = s * x->shape[d] + from[d];
        t->v[k] = x->v[s];
        t->mask[k] = ev_valid(x, from, s);
        all &= t->mask[k];
        k++;
    } while (ev_next(t->rank, t->shape, at));
    if (all)
        t->mask = NULL;
    t->free = x->free;
    t->nothing = x->nothing;
    return ev_give(e, o, t);
}

/* The box of a rearranged tile, so that reductions and dot see rectangles: the operand's box carried over. */
static void
carry_box(Ev *e, TlOp o)
{
    const EvTile *x = ev_in(e, o, 0)->tile;
    EvTile *t = e->slots[tl_opn(e->ir, o)->res[0]].tile;
    TlOpcode c = tl_opn(e->ir, o)->code;
    uint32_t axis = (uint32_t)tl_attr_int(e->ir, o, "axis", 0);
    const TlAttr *p = tl_attr(e->ir, o, "perm");
    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t s = c == TL_OP_trans         ? (uint32_t)p->u.ints.v[d]
                     : c == TL_OP_expand_dims ? d - (d > axis)
                                              : d;
        if (c == TL_OP_expand_dims && d == axis)
            continue;
        if (c == TL_OP_broadcast && x->shape[s] == 1 && t->shape[d] != 1) {
            if (x->hi[s] <= x->lo[s])
                t->hi[d] = t->lo[d];
            continue;
        }
        t->lo[d] = x->lo[s];
        t->hi[d] = x->hi[s];
    }
    if (!x->mask)
        t->mask = NULL;
}

static bool
op_reshape(Ev *e, TlOp o)
{
    const EvTile *x = ev_in(e, o, 0)->tile;
    const TlTypeInfo *rt = ev_type(e, o);
    int64_t at[TL_MAX_RANK] = {0}, k = 0;
    EvTile *t = ev_tile_new(e, rt->elem, rt->rank, rt->shape, true);
    if (!t)
        return false;
    do {
        t->v[k] = x->v[k];
        t->mask[k] = ev_valid(x, at, k);
        k++;
    } while (ev_next(x->rank, x->shape, at));
    t->nothing = x->nothing;
    return ev_give(e, o, t);
}

static bool
op_trans(Ev *e, TlOp o)
{
    const TlAttr *p = tl_attr(e->ir, o, "perm");
    if (ev_type(e, o)->kind == TL_TY_TILE) {
        if (!rearrange(e, o, from_trans))
            return false;
        carry_box(e, o);
        return true;
    }
    EvSlot *r = &e->slots[tl_opn(e->ir, o)->res[0]];
    EvMem m = ev_in(e, o, 0)->mem, v = m;
    for (uint32_t d = 0; d < m.rank; d++) {
        v.dims[d] = m.dims[p->u.ints.v[d]];
        v.strides[d] = m.strides[p->u.ints.v[d]];
    }
    v.permuted = true;
    v.content->refs++;
    ev_slot_clear(e, r);
    r->mem = v;
    return true;
}

static bool
op_make(Ev *e, TlOp o) /* arange, splat */
{
    const TlTypeInfo *rt = ev_type(e, o);
    bool range = tl_opn(e->ir, o)->code == TL_OP_arange;
    EvTile *t = ev_tile_new(e, rt->elem, rt->rank, rt->shape, false);
    int64_t start = tl_attr_int(e->ir, o, "start", 0);
    for (int64_t k = 0; t && k < t->n; k++)
        t->v[k] = range ? (TlNum){.i = tl_int_wrap(rt->elem, start + k)} : ev_in(e, o, 0)->num;
    if (t)
        t->free = true;
    return ev_give(e, o, t);
}

static bool
op_fill(Ev *e, TlOp o) /* fill, valid */
{
    const EvTile *x = ev_in(e, o, 0)->tile;
    bool fill = tl_opn(e->ir, o)->code == TL_OP_fill;
    int64_t at[TL_MAX_RANK] = {0}, k = 0;
    EvTile *t = ev_tile_new(e, fill ? x->elem : TL_ELEM_I1, x->rank, x->shape, false);
    if (!t)
        return false;
    do {
        bool ok = ev_valid(x, at, k);
        t->v[k] = fill ? (ok ? x->v[k] : ev_in(e, o, 1)->num) : (TlNum){.i = ok};
        k++;
    } while (ev_next(x->rank, x->shape, at));
    return ev_give(e, o, t);
}

static TlNum
identity(const char *kind, TlElem elem)
{
    TlNum n = {0};
    bool flt = tl_elem_is_float(elem), top = strcmp(kind, "min") == 0, bottom = strcmp(kind, "max") == 0;
    if (strcmp(kind, "prod") == 0 || strcmp(kind, "all") == 0)
        return tl_num_cast(TL_ELEM_I32, elem, (TlNum){.i = 1});
    if (!top && !bottom)
        return n;
    if (flt)
        n.f = tl_elem_info(elem)->fclass == TL_FCLASS_IEEE ? (top ? (double)INFINITY : -(double)INFINITY) : 0;
    else
        n = tl_num_cast(TL_ELEM_F64, elem, (TlNum){.f = top ? 1e300 : -1e300}); /* saturates */
    if (flt && tl_elem_info(elem)->fclass != TL_FCLASS_IEEE) { /* no infinity: the largest of its values */
        uint64_t bits = tl_elem_info(elem)->fclass == TL_FCLASS_FN ? 0x7e : 0x7f;
        n.f = (top ? 1 : -1) * tl_num_decode(elem, bits).f;
    }
    return n;
}

static bool
op_reduce(Ev *e, TlOp o)
{
    const EvTile *x = ev_in(e, o, 0)->tile;
    const TlTypeInfo *rt = ev_type(e, o);
    const char *kind = tl_attr_str(e->ir, o, "kind", "");
    uint32_t axis = (uint32_t)tl_attr_int(e->ir, o, "axis", 0);
    int64_t at[TL_MAX_RANK] = {0}, shape[TL_MAX_RANK] = {1}, lo[TL_MAX_RANK] = {0}, hi[TL_MAX_RANK] = {1},
            k = 0;
    uint32_t rank = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis) {
            shape[rank] = x->shape[d];
            lo[rank] = x->lo[d];
            hi[rank++] = x->hi[d];
        }
    TlElem elem = tl_type_elem(rt);
    EvTile *t = ev_tile_new(e, elem, rank ? rank : 1, shape, false);
    if (!t)
        return false;
    /* sums of narrow floats run in f32 and round once at the end */
    TlElem wide = tl_elem_is_float(elem) && elem != TL_ELEM_F64 && combiner(kind) != TL_OP_max &&
                          combiner(kind) != TL_OP_min
                      ? TL_ELEM_F32
                      : elem;
    for (int64_t i = 0; i < t->n; i++)
        t->v[i] = identity(kind, wide);
    do {
        int64_t to = 0;
        for (uint32_t d = 0; d < x->rank; d++)
            if (d != axis)
                to = to * x->shape[d] + at[d];
        TlNum two[2] = {t->v[to], tl_num_cast(x->elem, wide, x->v[k])};
        if (ev_valid(x, at, k))
            tl_fold(combiner(kind), wide, two, &t->v[to]);
        k++;
    } while (ev_next(x->rank, x->shape, at));
    for (int64_t i = 0; i < t->n; i++)
        t->v[i] = tl_num_cast(wide, elem, t->v[i]);
    for (uint32_t d = 0; d < rank; d++) {
        t->lo[d] = lo[d];
        t->hi[d] = hi[d];
    }
    t->nothing = x->nothing;
    if (rank)
        return ev_give(e, o, t);
    EvSlot *r = &e->slots[tl_opn(e->ir, o)->res[0]];
    TlNum n = t->v[0];
    ev_tile_release(e, t);
    ev_slot_clear(e, r);
    r->num = n;
    return true;
}

/* ---- dot ---- */

/* An operand as doubles or ints in a plain array, invalid elements 0; box: of its last two dims. */
static EvTile *
dot_operand(Ev *e, TlOp o, uint32_t i)
{
    const EvSlot *s = ev_in(e, o, i);
    const TlTypeInfo *ti = tl_vtype(e->ir, tl_opn(e->ir, o)->in[i]);
    EvTile *t = ev_tile_new(e, ti->elem, ti->rank, ti->shape, false);
    int64_t at[TL_MAX_RANK] = {0}, k = 0;
    if (!t)
        return NULL;
    t->nothing = s->tile ? s->tile->nothing : s->mem.content->nothing;
    for (uint32_t d = 0; d < t->rank; d++)
        if (s->tile || !s->mem.permuted) {
            t->lo[d] = s->tile ? s->tile->lo[d] : s->mem.content->lo[d];
            t->hi[d] = s->tile ? s->tile->hi[d] : s->mem.content->hi[d];
        }
    do {
        if (s->tile)
            t->v[k] = ev_valid(s->tile, at, k) ? s->tile->v[k] : (TlNum){0};
        else
            t->v[k] = peek(&s->mem, at); /* 0 in the gap */
        k++;
    } while (ev_next(t->rank, t->shape, at));
    return t;
}

static void
multiply(TlElem acc, const TlNum *a, const TlNum *b, TlNum *c, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < K; k++) {
            TlNum x = a[m * K + k];
            const TlNum *y = &b[k * N];
            TlNum *z = &c[m * N];
            if (acc == TL_ELEM_F32)
                for (int64_t n = 0; n < N; n++)
                    z[n].f = (float)(z[n].f + x.f * y[n].f);
            else if (acc == TL_ELEM_F64)
                for (int64_t n = 0; n < N; n++)
                    z[n].f = fma(x.f, y[n].f, z[n].f);
            else
                for (int64_t n = 0; n < N; n++)
                    z[n].i = (int32_t)(uint32_t)((uint64_t)z[n].i + (uint64_t)x.i * (uint64_t)y[n].i);
        }
}

static bool
op_dot(Ev *e, TlOp o)
{
    const EvTile *acc = ev_in(e, o, 2)->tile;
    EvTile *a = dot_operand(e, o, 0), *b = dot_operand(e, o, 1);
    EvTile *c = ev_tile_new(e, acc->elem, acc->rank, acc->shape, acc->mask != NULL);
    bool ok = a && b && c;
    if (ok) {
        uint32_t r = acc->rank;
        int64_t M = a->shape[r - 2], K = a->shape[r - 1], N = b->shape[r - 1];
        memcpy(c->v, acc->v, (size_t)c->n * sizeof *c->v);
        if (acc->mask)
            memcpy(c->mask, acc->mask, (size_t)c->n);
        for (uint32_t d = 0; d < r; d++) {
            c->lo[d] = acc->lo[d];
            c->hi[d] = acc->hi[d];
        }
        for (int64_t i = 0; i < c->n / (M * N); i++)
            multiply(c->elem, a->v + i * M * K, b->v + i * K * N, c->v + i * M * N, M, N, K);
        bool some = !a->nothing && !b->nothing;
        c->free = acc->free && !some;
        c->sum = !c->free && (acc->free || acc->sum);
        for (uint32_t d = 0; acc->sum && some && d < r; d++) {
            c->lo[d] = TL_MIN(c->lo[d], d == r - 1 ? b->lo[d] : a->lo[d]);
            c->hi[d] = TL_MAX(c->hi[d], d == r - 1 ? b->hi[d] : a->hi[d]);
        }
        for (uint32_t d = 0; acc->free && some && d < r;
             d++) { /* it takes the extent of what is accumulated */
            c->lo[d] = d == r - 1 ? b->lo[d] : a->lo[d];
            c->hi[d] = d == r - 1 ? b->hi[d] : a->hi[d];
        }
    }
    ev_tile_release(e, a);
    ev_tile_release(e, b);
    if (!ok) {
        ev_tile_release(e, c);
        return false;
    }
    return ev_give(e, o, c);
}

bool
ev_tile_op(Ev *e, TlOp o)
{
    switch ((int)tl_opn(e->ir, o)->code) {
    case TL_OP_load:
        return op_load(e, o);
    case TL_OP_store:
        return op_store(e, o);
    case TL_OP_element:
    case TL_OP_set_element:
    case TL_OP_acc_element:
        return op_element(e, o);
    case TL_OP_arange:
    case TL_OP_splat:
        return op_make(e, o);
    case TL_OP_broadcast:
        if (!rearrange(e, o, from_broadcast))
            return false;
        carry_box(e, o);
        return true;
    case TL_OP_expand_dims:
        if (!rearrange(e, o, from_expand))
            return false;
        carry_box(e, o);
        return true;
    case TL_OP_reshape:
        return op_reshape(e, o);
    case TL_OP_trans:
        return op_trans(e, o);
    case TL_OP_reduce:
        return op_reduce(e, o);
    case TL_OP_fill:
    case TL_OP_valid:
        return op_fill(e, o);
    case TL_OP_dot:
        return op_dot(e, o);
    }
    return ev_fault(e, o, "the evaluator does not have this operation");
}
