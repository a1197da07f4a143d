/* dlpack.c - tensors in: NumPy's C API, the DLPack exchange table of a type (torch), DLPack capsules, old and
 * versioned.
 *
 * Nothing is copied: a TlTensor points at the object's own memory. The exchange table checks nothing, so what
 * its objects may carry beside plain memory is refused here: gradients while they are recorded, negation
 * bits, tensors without data.
 */
#include "py/dlpack.h"

void
tl_hold_release(TlHold *h)
{
    if (!h->old && !h->versioned && !h->object)
        return;
    PyObject *type, *value, *trace; /* a deleter may run Python: our exception must wait */
    PyErr_Fetch(&type, &value, &trace);
    if (h->old && h->old->deleter)
        h->old->deleter(h->old);
    if (h->versioned && h->versioned->deleter)
        h->versioned->deleter(h->versioned);
    Py_XDECREF(h->object);
    memset(h, 0, sizeof *h);
    PyErr_Restore(type, value, trace);
}

#define NO_MEMORY                                                                                            \
    "has no memory (a fake, functional or meta tensor); `like=` takes such tensors, a launch does not"

typedef struct Ask { /* who asks, for messages */
    TlPyState *st;
    const char *who, *wants;
} Ask;

/* "A: reason" */
static bool
refuse(const Ask *a, TlPyError which, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PyObject *text = PyUnicode_FromFormatV(fmt, ap);
    va_end(ap);
    if (text)
        tl_py_raise(a->st, which, "%s: %U", a->who ? a->who : "argument", text);
    Py_XDECREF(text);
    return false;
}

/* The producer's own exception as our reason: its first line, as torch appends a C++ stack trace. */
static bool
refuse_raised(const Ask *a, const char *prefix)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = PyObject_Str(value ? value : type);
    PyObject *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
    if (lines && PyList_GET_SIZE(lines) > 0)
        refuse(a, TL_PY_LaunchError, "%s%U", prefix, PyList_GET_ITEM(lines, 0));
    else
        refuse(a, TL_PY_LaunchError, "%sno reason given", prefix);
    Py_XDECREF(lines);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool
not_a_tensor(const Ask *a, PyObject *obj)
{
    const char *type = Py_TYPE(obj)->tp_name;
    if (a->wants && *a->wants)
        return refuse(a, TL_PY_LaunchTypeError,
                      "wants a tensor (%s), got %s; torch tensors, NumPy arrays and objects with __dlpack__ "
                      "are tensors",
                      a->wants, type);
    return refuse(
        a, TL_PY_LaunchTypeError,
        "wants a tensor, got %s; torch tensors, NumPy arrays and objects with __dlpack__ are tensors", type);
}

/* ---- what all ways share
 * ------------------------------------------------------------------------------------- */

/* Shape and strides (already in *out) make sense, data is there. */
static bool
finish(const Ask *a, TlTensor *out)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < out->rank; i++)
        if (out->shape[i] < 0 || __builtin_mul_overflow(n, out->shape[i], &n))
            return refuse(a, TL_PY_LaunchError, "has a negative or overflowing shape");
    if (n > 0 && !out->ptr)
        return refuse(a, TL_PY_LaunchError,
                      "has no memory (a fake, functional or meta tensor); `like=` takes such tensors, a "
                      "launch does not");
    if (n > 0 && (uintptr_t)out->ptr % out->itemsize)
        return refuse(a, TL_PY_LaunchError,
                      "starts at an address that is no multiple of its element's %d bytes; copy it",
                      (int)out->itemsize);
    tl_tensor_canonical(out);
    return true;
}

static bool
from_dl(const Ask *a, const DlTensor *t, TlTensor *out)
{
    if (t->ndim < 0 || t->ndim > TL_TENSOR_MAX_RANK)
        return refuse(a, TL_PY_LaunchError, "has %d dimensions; at most %d are supported", (int)t->ndim,
                      (int)TL_TENSOR_MAX_RANK);
    TlElem elem = t->dtype.lanes == 1 ? tl_elem_by_dlpack(t->dtype.code, t->dtype.bits) : TL_ELEM_NONE;
    if (elem == TL_ELEM_NONE)
        return refuse(a, TL_PY_LaunchTypeError,
                      "has an element type that tilelang does not know (DLPack code %d, %d bits, %d lanes)",
                      (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes);
    switch (t->device.type) {
    case DL_CPU:
    case DL_CUDA_HOST:
        out->rocm = 0;
        break;
    case DL_ROCM:
    case DL_ROCM_HOST:
        out->rocm = 1;
        break;
    default:
        return refuse(
            a, TL_PY_LaunchError,
            t->device.type == DL_CUDA
                ? "is on an NVIDIA GPU (DLPack device type %d); tilelang runs on AMD GPUs and on the "
                  "simulator"
                : "is on a device of DLPack type %d; tilelang runs on AMD GPUs and on the simulator",
            (int)t->device.type);
    }
    out->device = out->rocm ? t->device.id : 0;
    out->ptr = t->data ? (uint8_t *)t->data + t->byte_offset : NULL;
    out->elem = (uint8_t)elem;
    out->itemsize = (uint8_t)tl_elem_bytes(elem);
    out->rank = (uint8_t)t->ndim;
    int64_t dense = 1;
    for (int32_t i = t->ndim; i-- > 0;) {
        out->shape[i] = t->shape[i];
        out->strides[i] = t->strides ? t->strides[i] : dense;
        if (__builtin_mul_overflow(dense, t->shape[i], &dense))
            return refuse(a, TL_PY_LaunchError, "has an overflowing shape");
    }
    return finish(a, out);
}

/* ---- NumPy
 * --------------------------------------------------------------------------------------------------- */

static TlElem
numpy_elem(PyArray_Descr *d)
{
    int size = (int)PyDataType_ELSIZE(d);
    switch (d->kind) {
    case 'b':
        return TL_ELEM_I1;
    case 'i':
        return size == 1 ? TL_ELEM_I8 : size == 2 ? TL_ELEM_I16 : size == 4 ? TL_ELEM_I32 : TL_ELEM_I64;
    case 'u':
        return size == 1 ? TL_ELEM_U8 : size == 2 ? TL_ELEM_U16 : size == 4 ? TL_ELEM_U32 : TL_ELEM_U64;
    case 'f':
        if (!PyTypeNum_ISUSERDEF(d->type_num))
            return size == 2 ? TL_ELEM_F16 : size == 4 ? TL_ELEM_F32 : size == 8 ? TL_ELEM_F64 : TL_ELEM_NONE;
        break;
    default:
        break;
    }
    if (!PyTypeNum_ISUSERDEF(d->type_num) || !d->typeobj) /* ml_dtypes: told by the name of the scalar type */
        return TL_ELEM_NONE;
    const char *name = strrchr(d->typeobj->tp_name, '.');
    name = name ? name + 1 : d->typeobj->tp_name;
    TlElem e = tl_elem_by_numpy(name, strlen(name));
    return e != TL_ELEM_NONE && (int)tl_elem_bytes(e) == size ? e : TL_ELEM_NONE;
}

static bool
from_numpy(const Ask *a, PyArrayObject *arr, TlTensor *out)
{
    PyArray_Descr *d = PyArray_DESCR(arr);
    int ndim = PyArray_NDIM(arr);
    TlElem elem = numpy_elem(d);
    if (elem == TL_ELEM_NONE)
        return refuse(a, TL_PY_LaunchTypeError, "has dtype %S, which tilelang does not know", (PyObject *)d);
    if (!PyArray_CheckExact(arr) && PyObject_HasAttrString((PyObject *)arr, "mask"))
        return refuse(a, TL_PY_LaunchTypeError,
                      "is a masked array; give its .data, and the mask as a tensor of its own");
    if (PyArray_ISBYTESWAPPED(arr))
        return refuse(a, TL_PY_LaunchTypeError, "has dtype %S, which is not in this machine's byte order",
                      (PyObject *)d);
    if (ndim > TL_TENSOR_MAX_RANK)
        return refuse(a, TL_PY_LaunchError, "has %d dimensions; at most %d are supported", ndim,
                      (int)TL_TENSOR_MAX_RANK);
    int64_t size = (int64_t)tl_elem_bytes(elem);
    out->ptr = (uint8_t *)PyArray_DATA(arr);
    out->elem = (uint8_t)elem;
    out->itemsize = (uint8_t)size;
    out->rank = (uint8_t)ndim;
    out->rocm = 0;
    out->device = 0;
    out->readonly = !PyArray_ISWRITEABLE(arr);
    for (int i = 0; i < ndim; i++) {
        int64_t bytes = PyArray_STRIDE(arr, i);
        out->shape[i] = PyArray_DIM(arr, i);
        if (bytes % size && out->shape[i] > 1)
            return refuse(a, TL_PY_LaunchError,
                          "dimension %d has a stride of %zd bytes, no multiple of its element's %d; copy it",
                          i, (Py_ssize_t)bytes, (int)size);
        out->strides[i] = bytes / size;
    }
    return finish(a, out);
}

/* ---- exchange table
 * ------------------------------------------------------------------------------------------ */

/* The table of obj's type, or NULL without an exception. Remembers the last type that had one. */
static const DlExchange *
exchange_of(TlPyState *st, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (type == st->exchange_type)
        return (const DlExchange *)st->exchange_api;
    PyObject *capsule = PyObject_GetAttr((PyObject *)type, st->s___dlpack_c_exchange_api__);
    const DlExchange *api = NULL;
    if (capsule && PyCapsule_CheckExact(capsule))
        api = (const DlExchange *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyErr_Clear();
    Py_XDECREF(capsule); /* such tables live as long as the library */
    while (api && api->version.major != 1)
        api = api->version.major > 1 ? api->previous : NULL;
    if (api && !api->tensor_from_object)
        api = NULL;
    if (api) {
        PyObject *neg = PyObject_GetAttr((PyObject *)type, st->s_is_neg);
        PyErr_Clear();
        st->exchange_neg = neg != NULL;
        const char *name = strrchr(type->tp_name, '.');
        st->exchange_fake = strcmp(name ? name + 1 : type->tp_name, "FakeTensor") == 0;
        Py_XDECREF(neg);
        Py_INCREF(type);
        Py_XSETREF(st->exchange_type, type);
        st->exchange_api = api;
    }
    return api;
}

/* 1 = obj.requires_grad is true, 0 = not or no such attribute, -1 = exception. */
static int
requires_grad(TlPyState *st, PyObject *obj)
{
    PyObject *flag = PyObject_GetAttr(obj, st->s_requires_grad);
    if (!flag) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    int yes = flag == Py_False ? 0 : flag == Py_True ? 1 : PyObject_IsTrue(flag);
    Py_DECREF(flag);
    return yes;
}

/* torch.is_grad_enabled(), without importing torch; true where that cannot be told. -1 = exception. */
static int
grad_enabled(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *torch = modules ? PyDict_GetItemString(modules, "torch") : NULL;
    if (!torch)
        return 1;
    PyObject *answer = PyObject_CallMethod(torch, "is_grad_enabled", NULL);
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return yes;
}

static bool
grad_allows(const Ask *a, PyObject *obj, bool *requires)
{
    int grad = requires_grad(a->st, obj);
    *requires = grad > 0;
    int enabled = grad > 0 ? grad_enabled() : grad;
    if (enabled < 0)
        return false;
    if (enabled)
        return refuse(
            a, TL_PY_LaunchError,
            "requires grad, and tilelang's kernels record no gradients; pass .detach() or launch under "
            "torch.no_grad()");
    return true;
}

static bool
neg_allows(const Ask *a, PyObject *obj)
{
    PyObject *neg = PyObject_CallMethodNoArgs(obj, a->st->s_is_neg);
    int yes = neg ? PyObject_IsTrue(neg) : -1;
    Py_XDECREF(neg);
    if (yes > 0)
        refuse(a, TL_PY_LaunchError,
               "is a negated view (its negation bit is set): its memory holds other values; pass "
               ".resolve_neg()");
    return yes == 0;
}

static bool
from_exchange(const Ask *a, const DlExchange *api, PyObject *obj, TlTensor *out)
{
    bool requires;
    DlTensor t;
    if (a->st->exchange_fake) /* asking for its address makes torch warn */
        return refuse(a, TL_PY_LaunchError, NO_MEMORY);
    if (!grad_allows(a, obj, &requires) || (a->st->exchange_neg && !neg_allows(a, obj)))
        return false;
    if (api->tensor_from_object(obj, &t) != 0) {
        if (!PyErr_Occurred())
            return refuse(a, TL_PY_LaunchError, "its library (%s) gives no access to its memory",
                          Py_TYPE(obj)->tp_name);
        return refuse_raised(a, "");
    }
    return from_dl(a, &t, out);
}

/* ---- capsules
 * ------------------------------------------------------------------------------------------------ */

/* obj.__dlpack__(max_version=(1, 1)[, stream=0]), without keywords for old producers. New reference or NULL.
 */
static PyObject *
call_dlpack(TlPyState *st, PyObject *method, bool on_rocm)
{
    PyObject *version = Py_BuildValue("(ii)", 1, 1), *zero = PyLong_FromLong(0);
    PyObject *kwargs = PyDict_New(), *none = PyTuple_New(0), *capsule = NULL;
    if (version && zero && kwargs && none && PyDict_SetItem(kwargs, st->s_max_version, version) == 0 &&
        (!on_rocm || PyDict_SetItem(kwargs, st->s_stream, zero) == 0)) {
        capsule = PyObject_Call(method, none, kwargs);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* does not know max_version */
            PyErr_Clear();
            if (PyDict_DelItem(kwargs, st->s_max_version) == 0)
                capsule = PyObject_Call(method, none, kwargs);
        }
    }
    Py_XDECREF(version);
    Py_XDECREF(zero);
    Py_XDECREF(kwargs);
    Py_XDECREF(none);
    return capsule;
}

static bool
on_rocm_device(TlPyState *st, PyObject *obj)
{
    PyObject *device = PyObject_CallMethodNoArgs(obj, st->s___dlpack_device__);
    long type = 0;
    if (device && PyTuple_Check(device) && PyTuple_GET_SIZE(device) == 2)
        type = PyLong_AsLong(PyTuple_GET_ITEM(device, 0));
    PyErr_Clear();
    Py_XDECREF(device);
    return type == DL_ROCM;
}

static bool
from_capsule(const Ask *a, PyObject *capsule, TlTensor *out, TlHold *hold)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DlManagedVersioned *m = (DlManagedVersioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0)
            return false;
        hold->versioned = m;
        if (m->version.major != 1)
            return refuse(a, TL_PY_LaunchError, "comes as DLPack %d.%d; tilelang speaks version 1",
                          (int)m->version.major, (int)m->version.minor);
        out->readonly = (m->flags & DL_FLAG_READ_ONLY) != 0;
        return from_dl(a, &m->tensor, out);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DlManaged *m = (DlManaged *)PyCapsule_GetPointer(capsule, "dltensor");
        if (PyCapsule_SetName(capsule, "used_dltensor") < 0)
            return false;
        hold->old = m;
        return from_dl(a, &m->tensor, out);
    }
    return refuse(a, TL_PY_LaunchTypeError, "its __dlpack__ gave no DLPack capsule");
}

static bool
from_dlpack(const Ask *a, PyObject *obj, TlTensor *out, TlHold *hold)
{
    bool requires;
    if (!grad_allows(a, obj, &requires))
        return false;
    if (requires) { /* allowed, as no gradient is recorded now, but producers refuse it */
        hold->object = obj = PyObject_CallMethodNoArgs(obj, a->st->s_detach);
        if (!obj)
            return false;
    }
    PyObject *method = PyObject_GetAttr(obj, a->st->s___dlpack__);
    if (!method) {
        PyErr_Clear();
        return not_a_tensor(a, obj);
    }
    PyObject *capsule = call_dlpack(a->st, method, on_rocm_device(a->st, obj));
    Py_DECREF(method);
    if (!capsule) {
        return refuse_raised(a, "its __dlpack__ fails: ");
    }
    bool ok = from_capsule(a, capsule, out, hold);
    Py_DECREF(capsule);
    return ok;
}

bool
tl_py_tensor(TlPyState *st, PyObject *obj, const char *who, const char *wants, TlTensor *out, TlHold *hold)
{
    Ask a = {st, who, wants};
    out->readonly = 0;
    if (PyArray_Check(obj))
        return from_numpy(&a, (PyArrayObject *)obj, out);
    if (PyType_Check(obj)) /* a class has __dlpack__ too */
        return not_a_tensor(&a, obj);
    const DlExchange *api = exchange_of(st, obj);
    if (api)
        return from_exchange(&a, api, obj, out);
    return from_dlpack(&a, obj, out, hold);
}

void *
tl_py_stream(TlPyState *st, PyObject *obj, int device)
{
    const DlExchange *api = PyArray_Check(obj) ? NULL : exchange_of(st, obj);
    void *stream = NULL;
    if (api && api->current_stream && api->current_stream(DL_ROCM, device, &stream) != 0) {
        PyErr_Clear();
        stream = NULL;
    }
    return stream;
}

/* ---- module functions
 * ---------------------------------------------------------------------------------------- */

PyObject *
tl_py_int_tuple(const int64_t *v, uint32_t n)
{
    PyObject *t = PyTuple_New(n);
    for (uint32_t i = 0; t && i < n; i++) {
        PyObject *x = PyLong_FromLongLong(v[i]);
        if (!x) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, x);
    }
    return t;
}

static PyObject *
tensor_info(PyObject *module, PyObject *obj)
{
    TlTensor t;
    TlHold hold = {0};
    PyObject *out = NULL;
    if (tl_py_tensor(tl_py_state(module), obj, NULL, NULL, &t, &hold))
        out = Py_BuildValue("(KsNNsiO)", (unsigned long long)(uintptr_t)t.ptr, tl_elem_name((TlElem)t.elem),
                            tl_py_int_tuple(t.shape, t.rank), tl_py_int_tuple(t.strides, t.rank),
                            t.rocm ? "rocm" : "cpu", (int)t.device, t.readonly ? Py_True : Py_False);
    tl_hold_release(&hold);
    return out;
}

static PyMethodDef functions[] = {
    {"tensor_info", tensor_info, METH_O,
     "tensor_info(obj) -> (address, dtype name, shape, strides in elements, \"cpu\" or \"rocm\", device "
     "index, read-only)\n\n"
     "What a launch would see of a tensor. Strides of dimensions of size 1 are as in row-major order.\n"
     "LaunchTypeError or LaunchError when obj is no tensor or may not be used."},
    {NULL, NULL, 0, NULL},
};

int
tl_py_dlpack_exec(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
