/* launch_check.c - the arguments of one call against the kernel's declaration: rank, dtype, shape, device,
 * overlap; the key of the specialisation. Nothing has been launched or written when a check here fails. */
#include <math.h>
#include "py/launch.h"

bool
tl_launch_refuse(TlPyState *st, TlPyError which, const LaunchParam *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PyObject *text = PyUnicode_FromFormatV(fmt, ap);
    va_end(ap);
    if (text) {
        if (p->text && *p->text)
            tl_py_raise(st, which, "%s (%s): %U", p->who, p->text, text);
        else
            tl_py_raise(st, which, "%s: %U", p->who, text);
    }
    Py_XDECREF(text);
    return false;
}

/* ---- scalars
 * ------------------------------------------------------------------------------------------------- */

/* x in a float format of at most 32 bits, to nearest even; overflow as the format says. */
static uint32_t
encode_float(const TlElemInfo *e, double x)
{
    uint32_t sign = signbit(x) ? 1u << (e->bits - 1) : 0, man_mask = (1u << e->man_bits) - 1;
    uint32_t exp_mask = (1u << e->exp_bits) - 1, top = (exp_mask << e->man_bits) | man_mask;
    uint32_t nan = e->fclass == TL_FCLASS_FNUZ ? 1u << (e->bits - 1) : sign | top;
    uint32_t inf = e->fclass == TL_FCLASS_IEEE ? sign | (exp_mask << e->man_bits) : nan;
    uint32_t limit = e->fclass == TL_FCLASS_IEEE ? exp_mask << e->man_bits
                     : e->fclass == TL_FCLASS_FN ? top
                                                 : top + 1; /* first pattern that is no number */
    if (isnan(x))
        return e->fclass == TL_FCLASS_IEEE ? sign | (exp_mask << e->man_bits) | (1u << (e->man_bits - 1))
                                           : nan;
    if (isinf(x))
        return inf;
    int exp;
    frexp(x, &exp);
    int least = 1 - e->bias; /* exponent of the smallest normal number */
    int unit = (x == 0 || exp - 1 < least ? least : exp - 1) - e->man_bits;
    uint64_t n = (uint64_t)nearbyint(ldexp(fabs(x), -unit)); /* the default rounding: to nearest even */
    uint64_t bits = n + ((uint64_t)(unit + e->man_bits - least) << e->man_bits);
    if (bits >= limit)
        return inf;
    return bits == 0 && e->fclass == TL_FCLASS_FNUZ ? 0 : sign | (uint32_t)bits;
}

static bool
scalar_int(TlPyState *st, const LaunchParam *p, const TlElemInfo *e, PyObject *value, uint64_t *out)
{
    PyObject *index = PyNumber_Index(value);
    if (!index) {
        PyErr_Clear();
        return tl_launch_refuse(st, TL_PY_LaunchTypeError, p, "wants an integer (%s), got %s", e->numpy,
                                Py_TYPE(value)->tp_name);
    }
    int overflow = 0;
    bool fits;
    if (e->kind == TL_KIND_SINT) {
        long long v = PyLong_AsLongLongAndOverflow(index, &overflow);
        *out = (uint64_t)v;
        fits = !overflow && (e->bits == 64 || (v >= -(1LL << (e->bits - 1)) && v < 1LL << (e->bits - 1)));
    } else {
        *out = PyLong_AsUnsignedLongLong(index);
        fits = !PyErr_Occurred() && (e->bits == 64 || *out < UINT64_C(1) << e->bits);
        PyErr_Clear();
    }
    if (!fits)
        tl_launch_refuse(st, TL_PY_LaunchError, p, "%R does not fit into %s", index, e->numpy);
    else if (e->bits < 64)
        *out &= (UINT64_C(1) << e->bits) - 1;
    Py_DECREF(index);
    return fits;
}

bool
tl_launch_scalar(TlPyState *st, const LaunchParam *p, PyObject *value, uint64_t *out)
{
    const TlElemInfo *e = tl_elem_info((TlElem)p->elem);
    if (!PyLong_Check(value) && !PyFloat_Check(value) && !PyArray_IsScalar(value, Generic))
        return tl_launch_refuse(st, TL_PY_LaunchTypeError, p, "wants a number (%s), got %s%s", e->numpy,
                                Py_TYPE(value)->tp_name,
                                PyObject_HasAttr(value, st->s___dlpack__) ? "; pass its .item()" : "");
    if (e->kind == TL_KIND_BOOL) {
        if (!PyBool_Check(value) && !PyArray_IsScalar(value, Bool))
            return tl_launch_refuse(st, TL_PY_LaunchTypeError, p, "wants a bool, got %s",
                                    Py_TYPE(value)->tp_name);
        *out = (uint64_t)PyObject_IsTrue(value);
        return true;
    }
    if (e->kind != TL_KIND_FLOAT)
        return scalar_int(st, p, e, value, out);
    double x = PyFloat_AsDouble(value);
    if (x == -1 && PyErr_Occurred())
        return false;
    *out = 0;
    if (e->bits == 64)
        memcpy(out, &x, sizeof x);
    else if (e->bits == 32)
        memcpy(out, &(float){(float)x}, sizeof(float));
    else
        *out = encode_float(e, x);
    return true;
}

/* ---- shapes
 * -------------------------------------------------------------------------------------------------- */

typedef struct Symbols { /* what the run-time dims of a call are */
    int64_t *value;      /* -1: not bound yet */
    const LaunchParam **from;
} Symbols;

/* False: it overflows, divides by zero, or names a symbol that no argument gives (then *unbound is it). */
static bool
eval_dim(const TlPyLauncher *self, const Symbols *s, uint32_t node, int64_t *out, PyObject **unbound)
{
    const DimNode *n = &self->nodes.data[node];
    int64_t a = 0, b = 0;
    if (n->op == DIM_CONST) {
        *out = n->value;
        return true;
    }
    if (n->op == DIM_SYMBOL) {
        *out = s->value[n->a];
        if (*out < 0)
            *unbound = self->symbols.data[n->a];
        return *out >= 0;
    }
    if (!eval_dim(self, s, n->a, &a, unbound) || !eval_dim(self, s, n->b, &b, unbound))
        return false;
    switch (n->op) {
    case DIM_ADD:
        return !__builtin_add_overflow(a, b, out);
    case DIM_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case DIM_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case DIM_FLOORDIV:
    case DIM_MOD:
        if (b == 0 || (b == -1 && a == INT64_MIN))
            return false;
        *out = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
        if (n->op == DIM_MOD)
            *out = a - *out * b;
        return true;
    case DIM_MIN:
        *out = TL_MIN(a, b);
        return true;
    case DIM_MAX:
        *out = TL_MAX(a, b);
        return true;
    case DIM_CONST:
    case DIM_SYMBOL:
        break;
    }
    return false;
}

static bool
check_shape(const LaunchCall *c, const LaunchParam *p, const TlTensor *t, Symbols *s)
{
    const TlPyLauncher *self = c->self;
    if (p->any_rank)
        return true;
    if (t->rank != p->rank)
        return tl_launch_refuse(self->st, TL_PY_LaunchError, p, "wants %d dimension%s, got %d", (int)p->rank,
                                p->rank == 1 ? "" : "s", (int)t->rank);
    for (uint32_t i = 0; i < p->rank; i++) {
        const DimNode *n = &self->nodes.data[p->dims[i]];
        if (n->op == DIM_CONST && n->value != t->shape[i])
            return tl_launch_refuse(self->st, TL_PY_LaunchError, p, "dimension %u is %lld, wants %lld", i,
                                    (long long)t->shape[i], (long long)n->value);
        if (n->op != DIM_SYMBOL)
            continue;
        if (s->value[n->a] < 0) {
            s->value[n->a] = t->shape[i];
            s->from[n->a] = p;
        } else if (s->value[n->a] != t->shape[i]) {
            return tl_launch_refuse(self->st, TL_PY_LaunchError, p,
                                    "dimension %u is %lld, but %U is %lld by parameter %U", i,
                                    (long long)t->shape[i], self->symbols.data[n->a],
                                    (long long)s->value[n->a], s->from[n->a]->name);
        }
    }
    return true;
}

/* Dims that are expressions, once all names have their values. */
static bool
check_expressions(const LaunchCall *c, const Symbols *s)
{
    const TlPyLauncher *self = c->self;
    for (uint32_t k = 0; k < self->nparams; k++) {
        const LaunchParam *p = &self->params[k];
        if (p->kind != PARAM_BUFFER || p->any_rank || c->args[k].none)
            continue;
        for (uint32_t i = 0; i < p->rank; i++) {
            int64_t want, got = c->args[k].t.shape[i];
            PyObject *unbound = NULL;
            if (self->nodes.data[p->dims[i]].op <= DIM_SYMBOL)
                continue;
            if (!eval_dim(self, s, p->dims[i], &want, &unbound))
                return unbound ? tl_launch_refuse(self->st, TL_PY_LaunchError, p,
                                                  "dimension %u needs %U, which no argument gives a value", i,
                                                  unbound)
                               : tl_launch_refuse(self->st, TL_PY_LaunchError, p,
                                                  "dimension %u cannot be computed", i);
            if (want != got)
                return tl_launch_refuse(self->st, TL_PY_LaunchError, p, "dimension %u is %lld, wants %lld", i,
                                        (long long)got, (long long)want);
        }
    }
    return true;
}

/* ---- reading
 * ------------------------------------------------------------------------------------------------- */

static const char *
place(const TlTensor *t, char *buf, size_t size)
{
    if (!t->rocm)
        return "in CPU memory";
    snprintf(buf, size, "on ROCm device %d", (int)t->device);
    return buf;
}

static bool
read_buffer(LaunchCall *c, uint32_t k, Symbols *s, const LaunchArg **first, const LaunchParam **first_param)
{
    const LaunchParam *p = &c->self->params[k];
    LaunchArg *a = &c->args[k];
    TlPyState *st = c->self->st;
    if (a->object == Py_None && p->preset == Py_None) {
        a->none = true;
        memset(&a->t, 0, sizeof a->t);
        return true;
    }
    if (!tl_py_tensor(st, a->object, p->who, p->text, &a->t, &a->hold))
        return false;
    if (p->elem != TL_ELEM_NONE && p->elem != a->t.elem)
        return tl_launch_refuse(st, TL_PY_LaunchTypeError, p, "wants dtype %s, got %s",
                                tl_elem_info((TlElem)p->elem)->numpy, tl_elem_info((TlElem)a->t.elem)->numpy);
    if (!check_shape(c, p, &a->t, s))
        return false;
    if (!tl_tensor_span(&a->t, &a->lo, &a->hi))
        return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                "its shape and strides reach outside the address space");
    tl_tensor_class(&a->t, &a->cls);
    if (!*first) {
        *first = a;
        *first_param = p;
        c->stream_from = a->object;
    } else if ((*first)->t.rocm != a->t.rocm || (*first)->t.device != a->t.device) {
        char here[32], there[32];
        return tl_launch_refuse(
            st, TL_PY_LaunchError, p, "is %s, but parameter %U is %s; all tensors must be on one device",
            place(&a->t, here, sizeof here), (*first_param)->name, place(&(*first)->t, there, sizeof there));
    }
    return true;
}

static bool
apart(const LaunchArg *a, const LaunchArg *b)
{
    return a->hi <= b->lo || b->hi <= a->lo || a->lo == a->hi || b->lo == b->hi;
}

/* NOALIAS for each buffer whose bytes meet no other's. */
static void
find_aliases(LaunchCall *c)
{
    uint32_t n = c->self->nparams;
    for (uint32_t i = 0; i < n; i++) {
        LaunchArg *a = &c->args[i];
        if (c->self->params[i].kind != PARAM_BUFFER || a->none)
            continue;
        bool alone = true;
        for (uint32_t j = 0; j < n && alone; j++) {
            const LaunchArg *b = &c->args[j];
            if (j != i && c->self->params[j].kind == PARAM_BUFFER && !b->none)
                alone = apart(a, b);
        }
        a->cls.flags |= alone ? TL_CLASS_NOALIAS : 0;
    }
}

static bool
find_device(LaunchCall *c, const LaunchArg *first, const LaunchParam *p)
{
    TlPyState *st = c->self->st;
    c->device = first ? first->t.device : 0;
    if (first) {
        c->hip = tl_py_hip(st, first->t.rocm ? TL_HIP_ROCM : TL_HIP_SIM);
        if (c->hip && c->device >= c->hip->hip.ndevices)
            return tl_launch_refuse(st, TL_PY_LaunchError, p, "is on ROCm device %d; %s has %d", c->device,
                                    c->hip->hip.path, c->hip->hip.ndevices);
        return c->hip != NULL;
    }
    c->hip = tl_py_hip(st, TL_HIP_ROCM);
    if (!c->hip) {
        PyErr_Clear();
        c->hip = tl_py_hip(st, TL_HIP_SIM);
    }
    return c->hip != NULL;
}

bool
tl_launch_read(LaunchCall *c, PyObject *const *values)
{
    TlPyLauncher *self = c->self;
    int64_t bound[LAUNCH_MAX_PARAMS * TL_TENSOR_MAX_RANK];
    const LaunchParam *from[LAUNCH_MAX_PARAMS * TL_TENSOR_MAX_RANK], *first_param = NULL;
    const LaunchArg *first = NULL;
    Symbols s = {bound, from};
    for (uint32_t i = 0; i < self->symbols.len; i++)
        bound[i] = -1;
    for (uint32_t k = 0; k < self->nparams; k++) {
        LaunchArg *a = &c->args[k];
        a->object = values[k];
        a->none = false;
        memset(&a->hold, 0, sizeof a->hold);
    }
    for (uint32_t k = 0; k < self->nparams; k++) {
        bool ok = true;
        switch (self->params[k].kind) {
        case PARAM_BUFFER:
            ok = read_buffer(c, k, &s, &first, &first_param);
            break;
        case PARAM_SCALAR:
            ok = tl_launch_scalar(self->st, &self->params[k], values[k], &c->args[k].scalar);
            break;
        case PARAM_CONST:
            break;
        }
        if (!ok)
            return false;
    }
    if (!check_expressions(c, &s))
        return false;
    find_aliases(c);
    return find_device(c, first, first_param);
}

void
tl_launch_release(LaunchCall *c)
{
    for (uint32_t k = 0; k < c->self->nparams; k++)
        tl_hold_release(&c->args[k].hold);
}

/* ---- the key
 * ------------------------------------------------------------------------------------------------- */

/* A dim that the declaration fixes says nothing new. */
static int64_t
dim_class(const LaunchCall *c, uint32_t k, uint32_t axis)
{
    const LaunchParam *p = &c->self->params[k];
    if (!p->any_rank && c->self->nodes.data[p->dims[axis]].op == DIM_CONST)
        return c->args[k].t.shape[axis];
    return c->args[k].cls.dims[axis];
}

size_t
tl_launch_key_max(const TlPyLauncher *self)
{
    return 8 + (size_t)self->nparams * (8 + 2 * TL_TENSOR_MAX_RANK);
}

size_t
tl_launch_key(const LaunchCall *c, char *key)
{
    char *p = key;
    *p++ = (char)c->hip->hip.kind;
    *p++ = (char)c->device;
    for (uint32_t k = 0; k < c->self->nparams; k++) {
        const LaunchArg *a = &c->args[k];
        if (c->self->params[k].kind != PARAM_BUFFER)
            continue;
        if (a->none) {
            *p++ = (char)0xff;
            continue;
        }
        *p++ = (char)a->t.rank;
        *p++ = (char)a->t.elem;
        *p++ = (char)a->cls.align;
        *p++ = (char)a->cls.flags;
        for (uint32_t i = 0; i < a->t.rank; i++)
            *p++ = (char)a->cls.dims[i];
        if (!(a->cls.flags & TL_CLASS_DENSE))
            for (uint32_t i = 0; i < a->t.rank; i++)
                *p++ = (char)a->cls.strides[i];
    }
    return (size_t)(p - key);
}

static PyObject *
class_tuple(const LaunchCall *c, uint32_t k, bool strides)
{
    const LaunchArg *a = &c->args[k];
    int64_t v[TL_TENSOR_MAX_RANK];
    for (uint32_t i = 0; i < a->t.rank; i++)
        v[i] = strides ? a->cls.strides[i] : dim_class(c, k, i);
    return tl_py_int_tuple(v, a->t.rank);
}

static PyObject *
key_param(const LaunchCall *c, uint32_t k)
{
    const LaunchParam *p = &c->self->params[k];
    const LaunchArg *a = &c->args[k];
    switch (p->kind) {
    case PARAM_BUFFER:
        if (a->none)
            return Py_BuildValue("(s)", "none");
        return Py_BuildValue("(ssNNII)", "buffer", tl_elem_name((TlElem)a->t.elem), class_tuple(c, k, false),
                             class_tuple(c, k, true), a->cls.align, a->cls.flags);
    case PARAM_SCALAR:
        return Py_BuildValue("(ss)", "scalar", tl_elem_name((TlElem)p->elem));
    case PARAM_CONST:
        return Py_BuildValue("(sO)", "const", a->object);
    }
    return NULL;
}

PyObject *
tl_launch_key_object(const LaunchCall *c)
{
    PyObject *params = PyTuple_New(c->self->nparams);
    for (uint32_t k = 0; params && k < c->self->nparams; k++) {
        PyObject *p = key_param(c, k);
        if (!p) {
            Py_DECREF(params);
            return NULL;
        }
        PyTuple_SET_ITEM(params, k, p);
    }
    if (!params)
        return NULL;
    return Py_BuildValue("(sisN)", c->hip->hip.kind == TL_HIP_SIM ? "cpu" : "rocm", c->device,
                         c->hip->hip.arch[c->device], params);
}

/* ---- code for fixed classes
 * ---------------------------------------------------------------------------------- */

/* Value v against a class: a constant >= 0 must be met, -d must divide. */
static bool
meets(int64_t v, int64_t cls)
{
    return cls >= 0 ? v == cls : v % cls == 0;
}

/* Bit k: the code writes the launcher's parameter k. */
static uint64_t
written_params(const TlPyBinary *b)
{
    uint64_t out = 0;
    for (uint32_t i = 0; i < b->nparams; i++)
        out |= (uint64_t)(b->writes >> i & 1) << b->params[i];
    return out;
}

/* Does a buffer share bytes with another, one of the two being written? What is only read may be one tensor.
 */
static bool
order_matters(const LaunchCall *c, uint32_t k, uint64_t written)
{
    for (uint32_t j = 0; j < c->self->nparams; j++)
        if (j != k && c->self->params[j].kind == PARAM_BUFFER && !c->args[j].none &&
            ((written >> k | written >> j) & 1) && !apart(&c->args[k], &c->args[j]))
            return true;
    return false;
}

static bool
requires_buffer(const LaunchCall *c, uint32_t k, PyObject *want, uint64_t written)
{
    const LaunchParam *p = &c->self->params[k];
    const LaunchArg *a = &c->args[k];
    TlPyState *st = c->self->st;
    const char *tag, *elem;
    PyObject *dims, *strides;
    unsigned align, flags;
    if (!PyArg_ParseTuple(want, "ssO!O!II", &tag, &elem, &PyTuple_Type, &dims, &PyTuple_Type, &strides,
                          &align, &flags))
        return false;
    if (tl_elem_by_name(elem, strlen(elem)) != (TlElem)a->t.elem)
        return tl_launch_refuse(st, TL_PY_LaunchTypeError, p, "was compiled for dtype %s, got %s",
                                tl_elem_info(tl_elem_by_name(elem, strlen(elem)))->numpy,
                                tl_elem_info((TlElem)a->t.elem)->numpy);
    if (PyTuple_GET_SIZE(dims) != a->t.rank || PyTuple_GET_SIZE(strides) != a->t.rank)
        return tl_launch_refuse(st, TL_PY_LaunchError, p, "was compiled for %zd dimensions, got %d",
                                PyTuple_GET_SIZE(dims), (int)a->t.rank);
    for (uint32_t i = 0; i < a->t.rank; i++) {
        long long d = PyLong_AsLongLong(PyTuple_GET_ITEM(dims, i)),
                  s = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, i));
        if (PyErr_Occurred())
            return false;
        if (!meets(a->t.shape[i], d))
            return tl_launch_refuse(st, TL_PY_LaunchError, p, "dimension %u is %lld, was compiled for %s%lld",
                                    i, (long long)a->t.shape[i], d < 0 ? "a multiple of " : "",
                                    d < 0 ? -d : d);
        if (!(flags & TL_CLASS_DENSE) && !meets(a->t.strides[i], s))
            return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                    "the stride of dimension %u is %lld elements, was compiled for %s%lld", i,
                                    (long long)a->t.strides[i], s < 0 ? "a multiple of " : "",
                                    s < 0 ? -s : s);
    }
    if ((flags & TL_CLASS_DENSE) && !(a->cls.flags & TL_CLASS_DENSE))
        return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                "was compiled for a contiguous tensor, got a strided one");
    if ((uintptr_t)a->t.ptr % align && a->lo != a->hi)
        return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                "was compiled for an alignment of %u bytes, starts at 0x%zx", align,
                                (size_t)(uintptr_t)a->t.ptr);
    if ((flags & TL_CLASS_NOALIAS) && !(a->cls.flags & TL_CLASS_NOALIAS) && order_matters(c, k, written))
        return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                "overlaps another argument, was compiled for one that does not");
    if (!(flags & TL_CLASS_BIG) && (a->cls.flags & TL_CLASS_BIG))
        return tl_launch_refuse(st, TL_PY_LaunchError, p,
                                "spans 2 GiB or more or has a negative stride, was compiled for neither");
    return true;
}

bool
tl_launch_general(const LaunchCall *c, const TlPyBinary *b)
{
    const uint64_t written = written_params(b);
    for (uint32_t k = 0; k < c->self->nparams; k++)
        if (c->self->params[k].kind == PARAM_BUFFER && !c->args[k].none &&
            ((c->args[k].cls.flags & TL_CLASS_BIG) ||
             (!(c->args[k].cls.flags & TL_CLASS_NOALIAS) && order_matters(c, k, written))))
            return true;
    return false;
}

bool
tl_launch_requires(const LaunchCall *c, const TlPyBinary *b)
{
    PyObject *requires = b->requires;
    const uint64_t written = written_params(b);
    if (PyTuple_GET_SIZE(requires) != (Py_ssize_t)c->self->nparams) {
        PyErr_SetString(PyExc_ValueError, "Binary.requires: one entry for each parameter");
        return false;
    }
    for (uint32_t k = 0; k < c->self->nparams; k++) {
        const LaunchParam *p = &c->self->params[k];
        PyObject *want = PyTuple_GET_ITEM(requires, k);
        const char *tag = PyTuple_Check(want) && PyTuple_GET_SIZE(want) > 0
                              ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(want, 0))
                              : NULL;
        if (!tag) {
            PyErr_SetString(PyExc_ValueError, "Binary.requires: an entry is no tuple with a kind");
            return false;
        }
        if (p->kind == PARAM_BUFFER && (strcmp(tag, "none") == 0) != c->args[k].none)
            return tl_launch_refuse(c->self->st, TL_PY_LaunchTypeError, p,
                                    c->args[k].none ? "was compiled for a tensor, got None"
                                                    : "was compiled for None, got a tensor");
        if (p->kind == PARAM_BUFFER && !c->args[k].none && !requires_buffer(c, k, want, written))
            return false;
        if (p->kind == PARAM_CONST) {
            int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(want, 1), c->args[k].object, Py_EQ);
            if (same < 0)
                return false;
            if (!same)
                return tl_launch_refuse(c->self->st, TL_PY_LaunchError, p, "was compiled for %R, got %R",
                                        PyTuple_GET_ITEM(want, 1), c->args[k].object);
        }
    }
    return true;
}

bool
tl_launch_outputs(const LaunchCall *c, const TlPyBinary *b)
{
    for (uint32_t i = 0; i < b->nparams; i++) {
        if (!(b->writes >> i & 1))
            continue;
        const LaunchParam *p = &c->self->params[b->params[i]];
        const TlTensor *t = &c->args[b->params[i]].t;
        if (t->readonly)
            return tl_launch_refuse(c->self->st, TL_PY_LaunchError, p,
                                    "is written by the kernel, but is read-only");
        if (!tl_tensor_injective(t))
            return tl_launch_refuse(
                c->self->st, TL_PY_LaunchError, p,
                "is written by the kernel, but its strides do not prove that no two of its elements "
                "share an address (an expanded or overlapping view)");
    }
    return true;
}
