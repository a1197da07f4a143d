/* t_binary.c - type `Binary`: one code object with what a launch of its kernel needs to know; loaded once a
 * device. */
#include <stdlib.h>
#include "py/device.h"

/* ---- loading
 * ------------------------------------------------------------------------------------------------- */

void *
tl_py_binary_function(TlPyState *st, TlPyBinary *b, TlPyHip *hip, int device)
{
    for (uint32_t i = 0; i < b->nloaded; i++)
        if (b->loaded[i].hip == hip && b->loaded[i].device == device)
            return b->loaded[i].code.function;
    struct TlBinaryLoaded *grown = PyMem_Realloc(b->loaded, (b->nloaded + 1) * sizeof *grown);
    if (!grown)
        return PyErr_NoMemory();
    b->loaded = grown;
    struct TlBinaryLoaded *slot = &grown[b->nloaded];
    const char *symbol = PyUnicode_AsUTF8(b->symbol);
    if (!symbol)
        return NULL;
    int code = tl_hip_load(&hip->hip, device, PyBytes_AS_STRING(b->code), symbol, &slot->code);
    if (code != 0) {
        char doing[256];
        snprintf(doing, sizeof doing, "loading kernel %s", symbol);
        return tl_py_hip_raise(st, &hip->hip, code, doing);
    }
    Py_INCREF(hip);
    slot->hip = hip;
    slot->device = device;
    b->nloaded++;
    return slot->code.function;
}

static void
unload(TlPyBinary *b)
{
    TlPyState *st = tl_py_state_of(Py_TYPE(b));
    for (uint32_t i = 0; i < b->nloaded; i++) {
        if (st && !st->at_exit)
            tl_hip_unload(&b->loaded[i].hip->hip, b->loaded[i].device, &b->loaded[i].code);
        Py_DECREF(b->loaded[i].hip);
    }
    b->nloaded = 0;
    PyMem_Free(b->loaded);
    b->loaded = NULL;
}

/* ---- construction
 * -------------------------------------------------------------------------------------------- */

static bool
bad(const char *what)
{
    PyErr_Format(PyExc_ValueError, "Binary: %s", what);
    return false;
}

/* Items of a tuple as int64, in memory of PyMem_Malloc (NULL with *n == 0 for an empty one). */
static bool
ints(PyObject *tuple, const char *what, int64_t **out, uint32_t *n)
{
    *n = 0;
    if (!PyTuple_Check(tuple))
        return bad(what);
    Py_ssize_t len = PyTuple_GET_SIZE(tuple);
    *out = PyMem_Malloc((size_t)len * sizeof **out + 1);
    if (!*out) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        (*out)[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if ((*out)[i] == -1 && PyErr_Occurred())
            return false;
    }
    *n = (uint32_t)len;
    return true;
}

static bool
read_params(TlPyBinary *b, PyObject *params, PyObject *writes)
{
    int64_t *v = NULL;
    uint32_t n;
    bool ok = ints(params, "params is a tuple of launcher parameter indices", &v, &n);
    if (ok && n > TL_BINARY_MAX_PARAMS)
        ok = bad("more than 64 parameters");
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = v[i] >= 0 && v[i] < TL_BINARY_MAX_PARAMS ? true : bad("a parameter index is out of range");
        b->params[i] = (uint16_t)v[i];
    }
    b->nparams = ok ? n : 0;
    PyMem_Free(v);
    v = NULL;
    ok = ok && ints(writes, "writes is a tuple of tile-level parameter indices", &v, &n);
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = v[i] >= 0 && v[i] < b->nparams ? true : bad("writes names a parameter that is not there");
        b->writes |= ok ? UINT64_C(1) << v[i] : 0;
    }
    PyMem_Free(v);
    return ok;
}

static bool
read_slots(TlPyBinary *b, PyObject *slots)
{
    static const char *const names[] = {"ptr", "dim", "stride", "scalar"};
    if (!PyTuple_Check(slots))
        return bad("slots is a tuple");
    Py_ssize_t n = PyTuple_GET_SIZE(slots);
    b->slots = PyMem_Calloc((size_t)n + 1, sizeof *b->slots);
    if (!b->slots) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *kind;
        int param, axis = 0, k = 0;
        PyObject *row = PyTuple_GET_ITEM(slots, i);
        if (!PyTuple_Check(row))
            return bad("a slot is a tuple (kind, parameter, axis)");
        if (!PyArg_ParseTuple(row, "si|i", &kind, &param, &axis))
            return false;
        while (k < 4 && strcmp(kind, names[k]) != 0)
            k++;
        if (k == 4 || param < 0 || param >= (int)b->nparams || axis < 0 || axis >= TL_TENSOR_MAX_RANK)
            return bad("a slot has an unknown kind, parameter or axis");
        b->slots[i] = (TlSlot){(uint8_t)k, (uint8_t)param, (uint8_t)axis};
    }
    b->nslots = (uint32_t)n;
    return true;
}

static bool
read_grid(TlPyBinary *b, PyObject *grid)
{
    if (grid == Py_None)
        return true;
    if (!PyTuple_Check(grid) || PyTuple_GET_SIZE(grid) > 3)
        return bad("grid is None or a tuple of up to 3 tuples of triples");
    for (Py_ssize_t a = 0; a < PyTuple_GET_SIZE(grid); a++) {
        if (!ints(PyTuple_GET_ITEM(grid, a), "an axis of grid is a tuple of triples", &b->grid[a],
                  &b->grid_len[a]))
            return false;
        const int64_t *v = b->grid[a];
        if (b->grid_len[a] % 3)
            return bad("an axis of grid is a tuple of triples (param, axis, C)");
        for (uint32_t i = 0; i < b->grid_len[a]; i += 3) {
            if (v[i] >= (int64_t)b->nparams || v[i] < -1 || v[i + 2] < 1)
                return bad("a triple of grid is out of range");
            if (v[i] >= 0 && (v[i + 1] < 0 || v[i + 1] >= TL_TENSOR_MAX_RANK))
                return bad("a triple of grid names an axis that is not there");
        }
    }
    b->has_grid = true;
    return true;
}

static PyObject *
binary_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "symbol", "params", "slots", "grid", "block", "writes", "requires", NULL};
    PyObject *code, *symbol, *params, *slots, *grid, *writes, *requires = Py_None;
    unsigned block;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "SUOOOIO|O:Binary", names, &code, &symbol, &params, &slots,
                                     &grid, &block, &writes, &requires))
        return NULL;
    TlPyBinary *b = (TlPyBinary *)type->tp_alloc(type, 0);
    if (!b)
        return NULL;
    b->code = Py_NewRef(code);
    b->symbol = Py_NewRef(symbol);
    b->requires = Py_NewRef(requires);
    b->owner = Py_NewRef(Py_None);
    b->block = block;
    bool ok = read_params(b, params, writes) && read_slots(b, slots) && read_grid(b, grid);
    if (ok && (block < 1 || block > 1024))
        ok = bad("block is 1 to 1024 threads");
    if (ok && requires != Py_None && !PyTuple_Check(requires))
        ok = bad("requires is None or a tuple");
    if (!ok)
        Py_CLEAR(b);
    return (PyObject *)b;
}

static int
binary_traverse(PyObject *self, visitproc visit, void *arg)
{
    TlPyBinary *b = (TlPyBinary *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(b->owner);
    Py_VISIT(b->requires);
    return 0;
}

static int
binary_clear(PyObject *self)
{
    TlPyBinary *b = (TlPyBinary *)self;
    Py_CLEAR(b->owner);
    Py_CLEAR(b->requires);
    return 0;
}

static void
binary_dealloc(PyObject *self)
{
    TlPyBinary *b = (TlPyBinary *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    unload(b);
    binary_clear(self);
    Py_CLEAR(b->code);
    Py_CLEAR(b->symbol);
    PyMem_Free(b->slots);
    for (int a = 0; a < 3; a++)
        PyMem_Free(b->grid[a]);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
binary_repr(PyObject *self)
{
    TlPyBinary *b = (TlPyBinary *)self;
    return PyUnicode_FromFormat("<Binary %U, %zd bytes, %u threads>", b->symbol, PyBytes_GET_SIZE(b->code),
                                b->block);
}

static PyObject *
get_field(PyObject *self, void *closure)
{
    return Py_NewRef(*(PyObject **)((char *)self + (size_t)closure));
}

static int
set_owner(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    TlPyBinary *b = (TlPyBinary *)self;
    Py_XSETREF(b->owner, Py_NewRef(value ? value : Py_None));
    return 0;
}

static PyObject *
get_block(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(((TlPyBinary *)self)->block);
}

static PyGetSetDef binary_getset[] = {
    {"code", get_field, NULL, "the code object, bytes", (void *)offsetof(TlPyBinary, code)},
    {"symbol", get_field, NULL, "name of the kernel in it", (void *)offsetof(TlPyBinary, symbol)},
    {"requires", get_field, NULL, "what the arguments must be like, or None",
     (void *)offsetof(TlPyBinary, requires)},
    {"owner", get_field, set_owner, "any object", (void *)offsetof(TlPyBinary, owner)},
    {"block", get_block, NULL, "threads of a workgroup", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot binary_slots[] = {
    {Py_tp_doc,
     "Binary(code, symbol, params, slots, grid, block, writes, requires=None)\n\n"
     "A code object and how to launch its kernel: params[i] is the launcher parameter of tile-level "
     "parameter i; "
     "slots are (kind, tile parameter, axis), kind \"ptr\", \"dim\", \"stride\" or \"scalar\", 8 bytes each "
     "in "
     "order; grid is None or for each axis triples (tile parameter, axis, C): the product of ceil(dim / C), "
     "parameter -1: of ceil(axis / C); writes are the tile-level parameters that the kernel stores to."},
    {Py_tp_new, binary_new},
    {Py_tp_dealloc, binary_dealloc},
    {Py_tp_traverse, binary_traverse},
    {Py_tp_clear, binary_clear},
    {Py_tp_repr, binary_repr},
    {Py_tp_getset, binary_getset},
    {0, NULL},
};
static PyType_Spec binary_spec = {"tilelang._core.Binary", sizeof(TlPyBinary), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, binary_slots};

int
tl_py_binary_exec(PyObject *module)
{
    TlPyState *st = tl_py_state(module);
    st->binary_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &binary_spec, NULL);
    return st->binary_type ? PyModule_AddType(module, st->binary_type) : -1;
}
