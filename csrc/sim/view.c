/* view.c - which bytes of a registered host array are elements (contract in mem.h). */
#include "sim/view.h"

enum { RUN_LIMIT = 4096 };

static uint64_t
view_span(const SimView *v, uint32_t d) /* bytes from the first to past the last of dims d.. */
{
    uint64_t span = v->block;
    for (uint32_t i = d; i < v->ndim; i++)
        span += (v->shape[i] - 1) * v->stride[i];
    return span;
}

static uint64_t
view_run(const SimView *v, uint32_t d, uint64_t off)
{
    uint64_t inner, q, qmin, best = 0;
    if (d == v->ndim)
        return off < v->block ? v->block - off : 0;
    inner = view_span(v, d + 1);
    q = TL_MIN(off / v->stride[d], v->shape[d] - 1);
    qmin = off >= inner ? (off - inner) / v->stride[d] + 1 : 0;
    for (; q + 1 > qmin; q--) { /* one turn unless rows overlap */
        uint64_t r = view_run(v, d + 1, off - q * v->stride[d]);
        best = TL_MAX(best, r);
    }
    return best;
}

uint64_t
sim_extent_run(const SimExtent *x, uint64_t addr)
{
    uint64_t run = 0;
    if (x->flags & SIM_EXT_DENSE)
        return x->size - (addr - x->base);
    while (run < RUN_LIMIT) {
        uint64_t step = 0;
        for (uint32_t i = 0; i < x->nviews; i++) {
            const SimView *v = &x->views[i];
            if (addr + run >= v->base) {
                uint64_t r = view_run(v, 0, addr + run - v->base);
                step = TL_MAX(step, r);
            }
        }
        if (!step)
            break;
        run += step;
    }
    return run;
}

/* Brings an array's shape into normal form; false when it overflows. *n is 0 for an empty array. */
bool
sim_view_make(SimView *v, uint64_t base, uint32_t ndim, const int64_t *shape, const int64_t *strides,
              uint32_t item, uint64_t *n)
{
    uint64_t total = item;
    memset(v, 0, sizeof *v);
    v->base = base;
    v->block = item;
    *n = 0;
    for (uint32_t i = 0; i < ndim; i++) {
        uint64_t st, ext;
        if (shape[i] < 0 || strides[i] == INT64_MIN)
            return false;
        if (shape[i] == 0)
            return true;
        if (shape[i] == 1 || strides[i] == 0)
            continue;
        st = (uint64_t)(strides[i] < 0 ? -strides[i] : strides[i]);
        if (__builtin_mul_overflow(st, (uint64_t)shape[i] - 1, &ext) ||
            __builtin_add_overflow(total, ext, &total) || total > (UINT64_C(1) << 47))
            return false;
        if (strides[i] < 0)
            v->base -= ext;
        uint32_t k = v->ndim++;
        for (; k > 0 && v->stride[k - 1] < st; k--) {
            v->stride[k] = v->stride[k - 1];
            v->shape[k] = v->shape[k - 1];
        }
        v->stride[k] = st;
        v->shape[k] = (uint64_t)shape[i];
    }
    while (v->ndim && v->stride[v->ndim - 1] == v->block)
        v->block *= v->shape[--v->ndim];
    *n = total;
    return true;
}
