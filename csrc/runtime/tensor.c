/* tensor.c - what a launch asks of a tensor: bytes, overlap with itself, the class that code is specialised
 * on. Pure. */
#include "runtime/runtime.h"

int64_t
tl_tensor_numel(const TlTensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

void
tl_tensor_canonical(TlTensor *t)
{
    bool empty = false;
    for (uint32_t i = 0; i < t->rank; i++)
        empty |= t->shape[i] == 0;
    int64_t dense = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->shape[i] == 1 || empty)
            t->strides[i] = dense;
        if (t->shape[i] > 1)
            dense = t->strides[i] * t->shape[i];
    }
}

bool
tl_tensor_span(const TlTensor *t, uintptr_t *lo, uintptr_t *hi)
{
    int64_t below = 0, above = 0;
    *lo = *hi = (uintptr_t)t->ptr;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t reach;
        if (t->shape[i] == 0)
            return true;
        if (__builtin_mul_overflow(t->shape[i] - 1, t->strides[i], &reach))
            return false;
        if (__builtin_add_overflow(reach < 0 ? below : above, reach, reach < 0 ? &below : &above))
            return false;
    }
    if (__builtin_add_overflow(above, 1, &above) ||
        __builtin_mul_overflow(above, (int64_t)t->itemsize, &above) ||
        __builtin_mul_overflow(below, (int64_t)t->itemsize, &below))
        return false;
    return !__builtin_add_overflow(*lo, (intptr_t)below, lo) &&
           !__builtin_add_overflow(*hi, (intptr_t)above, hi);
}

bool
tl_tensor_injective(const TlTensor *t)
{
    uint64_t stride[TL_TENSOR_MAX_RANK], reach[TL_TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0)
            return true;
        if (t->shape[i] == 1)
            continue;
        uint64_t s = t->strides[i] < 0 ? -(uint64_t)t->strides[i] : (uint64_t)t->strides[i];
        uint32_t k = n++;
        for (; k > 0 && stride[k - 1] > s; k--) { /* by stride, ascending */
            stride[k] = stride[k - 1];
            reach[k] = reach[k - 1];
        }
        stride[k] = s;
        reach[k] = (uint64_t)(t->shape[i] - 1);
    }
    uint64_t covered = 0; /* farthest offset that the smaller strides reach */
    for (uint32_t i = 0; i < n; i++) {
        uint64_t r;
        if (stride[i] <= covered || __builtin_mul_overflow(stride[i], reach[i], &r) ||
            __builtin_add_overflow(covered, r, &covered))
            return false;
    }
    return true;
}

/* -d, d the largest of 1, 2, 4, 8, 16 that divides x. */
static int64_t
divisor_class(uint64_t x)
{
    uint64_t low = (x | 16) & -(x | 16);
    return -(int64_t)TL_MIN(low, 16);
}

void
tl_tensor_class(const TlTensor *t, TlTensorClass *out)
{
    int64_t dense = 1;
    bool is_dense = true, backward = false;
    for (uint32_t i = t->rank; i-- > 0;) {
        int64_t s = t->strides[i];
        out->dims[i] = divisor_class((uint64_t)t->shape[i]);
        out->strides[i] = s == 0 || s == 1 ? s : divisor_class((uint64_t)s);
        is_dense &= s == dense;
        backward |= s < 0;
        dense *= TL_MAX(t->shape[i], 1); /* as tl_tensor_canonical counts */
    }
    uintptr_t lo = 0, hi = 0;
    bool fits = tl_tensor_span(t, &lo, &hi);
    out->align = (uint32_t)-divisor_class((uint64_t)(uintptr_t)t->ptr);
    bool big = !fits || backward || hi - lo >= UINT64_C(1) << 31;
    out->flags = (is_dense ? TL_CLASS_DENSE : 0) | (big ? TL_CLASS_BIG : 0);
}

bool
tl_grid_size(const int64_t *triples, uint32_t n, const TlTensor *const *tensors, uint64_t *out)
{
    uint64_t total = 1;
    for (uint32_t i = 0; i + 2 < n; i += 3) {
        int64_t dim = triples[i] < 0 ? triples[i + 1] : tensors[triples[i]]->shape[triples[i + 1]];
        uint64_t c = (uint64_t)triples[i + 2];
        uint64_t count = dim <= 0 ? 0 : ((uint64_t)dim + c - 1) / c;
        if (__builtin_mul_overflow(total, count, &total))
            return false;
    }
    *out = total;
    return total <= INT32_MAX;
}
