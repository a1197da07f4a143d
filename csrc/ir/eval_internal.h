/* eval_internal.h - between eval.c (programs, control flow, scalars, element-wise) and eval_tile.c (memory,
 * shapes). */
#ifndef TL_IR_EVAL_INTERNAL_H
#define TL_IR_EVAL_INTERNAL_H

#include "ir/eval.h"

typedef struct EvTile { /* a value; shared by reference count, never changed once it is in a slot */
    uint32_t refs;
    TlElem elem;
    uint32_t rank;
    int64_t shape[TL_MAX_RANK], n;
    int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
    uint8_t *mask; /* NULL: the whole box is valid; else a byte an element */
    bool free;     /* a constant or made of such alone: values everywhere, no extent of its own */
    bool sum;      /* of dots, started free: its box is that of all that was added */
    bool nothing;  /* read at a plain index outside of its memory, or made of such: the box is empty */
    TlNum *v;
    size_t bytes; /* of the one block that all this is */
} EvTile;

typedef struct EvMem { /* what load and store work on */
    bool global;
    TlElem elem;
    uint32_t rank;
    int64_t dims[TL_MAX_RANK], strides[TL_MAX_RANK];
    char *data;      /* global */
    EvTile *content; /* shared, local: owned, changed in place; its box is the extent that was stored */
    bool permuted;   /* a transposed view: content belongs to the tile that it is a view of */
} EvMem;

typedef struct EvSlot { /* one SSA value */
    TlNum num;
    EvTile *tile;
    EvMem mem;
} EvSlot;

typedef struct Ev {
    TlIr *ir;
    TlKernelId kernel;
    EvSlot *slots;
    int64_t pid[3], grid[3];
    bool oom;
} Ev;

EvTile *ev_tile_new(Ev *e, TlElem elem, uint32_t rank, const int64_t *shape, bool mask);
void ev_tile_release(Ev *e, EvTile *t);
static inline bool
ev_valid(const EvTile *t, const int64_t *at, int64_t linear)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (at[d] < t->lo[d] || at[d] >= t->hi[d])
            return false;
    return !t->mask || t->mask[linear];
}
/* Counts `at` up, last dim fastest; false at the end. */
static inline bool
ev_next(uint32_t rank, const int64_t *shape, int64_t *at)
{
    for (uint32_t d = rank; d-- > 0;) {
        if (++at[d] < shape[d])
            return true;
        at[d] = 0;
    }
    return false;
}
static inline EvSlot *
ev_in(Ev *e, TlOp o, uint32_t i)
{
    return &e->slots[tl_opn(e->ir, o)->in[i]];
}
static inline const TlTypeInfo *
ev_type(const Ev *e, TlOp o) /* of the first result */
{
    return tl_vtype(e->ir, tl_opn(e->ir, o)->res[0]);
}
/* Puts the tile (whose reference it takes; NULL = out of memory) into the operation's result. */
bool ev_give(Ev *e, TlOp o, EvTile *t);
bool ev_fault(Ev *e, TlOp o, const char *fmt, ...) TL_PRINTF(3, 4);

/* Everything with memory or shapes; false with a fault, also for operations it does not know. */
bool ev_tile_op(Ev *e, TlOp o);
bool ev_alloc(Ev *e, TlOp o);
void ev_slot_clear(Ev *e, EvSlot *s);

#endif
