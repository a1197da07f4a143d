/* simplify.h - between simplify.c (walk, merging, hoisting, dead code) and simplify_fold.c (constants,
 * identities). */
#ifndef TL_PASS_SIMPLIFY_H
#define TL_PASS_SIMPLIFY_H

#include "pass/pass.h"

typedef struct TlSimplifier {
    TlIr *ir;
    TlKernelId kernel;
    TlLevel level;
    uint32_t what;
    TlSimplifyStats stats;
    TlStr key_value, key_fvalue;
    TL_VEC(TlVal) repl;  /* value -> what stands for it; 0 or beyond the end = itself */
    TL_VEC(TlOp) made;   /* operations that folding put before the current one, not yet merged or hoisted */
    uint8_t *block_open; /* blocks that the walk stands in: what is in them above is visible here */
    uint32_t *heads;     /* hash table of pure operations: index + 1 into entries */
    uint32_t nheads;
    TL_VEC(struct TlCseEntry) entries;
    TL_VEC(TlVal) work; /* liveness */
    uint8_t *live_op, *live_val;
    bool oom;
} TlSimplifier;

struct TlCseEntry {
    uint64_t hash;
    TlOp op;
    uint32_t next;
};

/* Folds operation o in place as far as it goes (it may become another operation or a constant). Returns a
 * value that stands for its only result, or 0. */
TlVal tl_simplify_fold(TlSimplifier *s, TlOp o);

static inline TlVal
tl_simplify_resolve(const TlSimplifier *s, TlVal v)
{
    while (v < s->repl.len && s->repl.data[v])
        v = s->repl.data[v];
    return v;
}

#endif
