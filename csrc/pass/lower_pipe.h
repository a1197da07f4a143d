/* lower_pipe.h - shared by the two files of the pipelined matrix loop: lower_pipe.c (which loops, how many
 * turns, the driver) and lower_pipe_body.c (copies, fragments, the order of the body).
 */
#ifndef TL_PASS_LOWER_PIPE_H
#define TL_PASS_LOWER_PIPE_H

#include "pass/lower.h"

enum { MAX_COPIES = 8, MAX_LOADS = 8, READ_LEAD = 4 /* matrix instructions between a read and its use */ };

typedef struct Copy {
    TlOp store;
    TlVal root;
    LwShared *s;
    LwLdsAcc *w;
    bool plain; /* the stored value is the load itself */
    uint32_t nloads;
    TlOp load[MAX_LOADS];
    bool flipped[MAX_LOADS], flip; /* the load is transposed on its way */
    TlLayout lay[MAX_LOADS];
    LwGlobal g[MAX_LOADS];
    TlVal ratio[MAX_LOADS]; /* i32: soffset = loop offset * ratio */
    LwTile *raw[MAX_LOADS];
    uint8_t perm[TL_LAYOUT_MAX_BITS];
    TlLayout root_lay;
} Copy;

typedef struct Frag { /* one LDS read of one operand: its value in the turn being built */
    TlVal v, next;
    bool carried;
} Frag;

typedef struct Item { /* operations that move together: ids [first, last) of the body, and their place */
    TlOp first, last;
    uint32_t slot;
    uint32_t use; /* the first matrix instruction that needs it; UINT32_MAX: none */
} Item;

typedef struct Pipe {
    Lw *lw;
    TlOp loop;
    TlVal iv;
    int64_t step;
    uint32_t ncopy, ndot;
    Copy copy[MAX_COPIES];
    TlOp dot[MAX_COPIES];
    Frag *frag[MAX_COPIES][2];
    bool tree[MAX_COPIES][2]; /* operand is computed from fragments */
    LwTile *tree_tile[MAX_COPIES][2];
    bool late;
    TL_VEC(Item) items;
    TL_VEC(TlOp) mmas;
    TlBlock body;
    int64_t scale; /* bytes of the loop offset per unit of iv */
} Pipe;

bool lw_pipe_prepare_copy(Pipe *p, Copy *c);
bool lw_pipe_offset_scale(Pipe *p);
bool lw_pipe_alloc_frags(Pipe *p);
/* Everything of the pipelined turns; acc are the accumulators, in and out. n: turns, i64, > 0. */
bool lw_pipe_emit(Pipe *p, LwTile **acc, TlVal n);

#endif
