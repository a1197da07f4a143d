/* module.c - module `tilelang._core`: multi-phase initialisation, module state, exceptions. */
#define TL_PY_IMPORT_ARRAY
#include "py/py.h"

static struct PyModuleDef core_def;

TlPyState *
tl_py_state(PyObject *module)
{
    return (TlPyState *)PyModule_GetState(module);
}

TlPyState *
tl_py_state_of(PyTypeObject *our_type)
{
    return (TlPyState *)PyType_GetModuleState(our_type);
}

PyObject *
tl_py_error(TlPyState *st, TlPyError which)
{
    static const char *const names[] = {
#define X(name) #name,
        TL_PY_ERRORS(X)
#undef X
    };
    if (!st->errors[which]) {
        PyObject *module = PyImport_ImportModule("tilelang.errors");
        if (!module)
            return NULL;
        st->errors[which] = PyObject_GetAttrString(module, names[which]);
        Py_DECREF(module);
    }
    return st->errors[which];
}

PyObject *
tl_py_raise(TlPyState *st, TlPyError which, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PyObject *text = PyUnicode_FromFormatV(fmt, ap);
    va_end(ap);
    PyObject *cls = text ? tl_py_error(st, which) : NULL;
    if (cls)
        PyErr_SetObject(cls, text);
    Py_XDECREF(text);
    return NULL;
}

static PyObject *
text_or_none(const char *s)
{
    if (!s)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}

static const char *
loc_file(const TlDiag *d, TlLoc loc)
{
    return loc.file && loc.file < d->files.len ? d->files.data[loc.file] : NULL;
}

PyObject *
tl_py_diag_list(const TlDiag *d)
{
    static const char *const severities[] = {"note", "warning", "error"};
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < d->entries.len; i++) {
        const TlDiagEntry *e = &d->entries.data[i];
        PyObject *row = Py_BuildValue("(sNNIIINs)", severities[e->severity], text_or_none(e->message),
                                      text_or_none(loc_file(d, e->loc)), e->loc.line, e->loc.col,
                                      e->loc.end_col, text_or_none(e->hint), tl_diag_code_name(e->code));
        if (!row || PyList_Append(list, row) < 0) {
            Py_XDECREF(row);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(row);
    }
    return list;
}

PyObject *
tl_py_raise_diag(TlPyState *st, const TlDiag *d)
{
    const TlDiagEntry *e = NULL;
    for (uint32_t i = 0; i < d->entries.len && !e; i++)
        if (d->entries.data[i].severity == TL_ERROR)
            e = &d->entries.data[i];
    if (!e || d->oom)
        return PyErr_NoMemory();
    PyObject *cls = tl_py_error(st, TL_PY_CompileError);
    PyObject *list = cls ? tl_py_diag_list(d) : NULL;
    if (!list)
        return NULL;
    PyObject *exc = PyObject_CallFunction(
        cls, "NNIIINsN", text_or_none(e->message), text_or_none(loc_file(d, e->loc)), e->loc.line, e->loc.col,
        e->loc.end_col, text_or_none(e->hint), tl_diag_code_name(e->code), list);
    if (exc) {
        PyErr_SetObject(cls, exc);
        Py_DECREF(exc);
    }
    return NULL;
}

static int
import_numpy(void)
{
    import_array1(-1);
    return 0;
}

static int
core_exec(PyObject *module)
{
    if (import_numpy() < 0)
        return -1;
    TlPyState *st = tl_py_state(module);
#define X(name)                                                                                              \
    if (!(st->s_##name = PyUnicode_InternFromString(#name)))                                                 \
        return -1;
    TL_PY_NAMES(X)
#undef X
#define X(part)                                                                                              \
    if (tl_py_##part##_exec(module) < 0)                                                                     \
        return -1;
    TL_PY_PARTS(X)
#undef X
    return 0;
}

/* Every other object that the state owns. */
#define STATE_OBJECTS(V)                                                                                     \
    V(ir_type)                                                                                               \
    V(hip_type) V(binary_type) V(launcher_type) V(devices[0]) V(devices[1]) V(sim_path) V(exchange_type)

static int
core_traverse(PyObject *module, visitproc visit, void *arg)
{
    TlPyState *st = tl_py_state(module);
    for (int i = 0; i < TL_PY_ERROR__COUNT; i++)
        Py_VISIT(st->errors[i]);
#define V(field) Py_VISIT(st->field);
    STATE_OBJECTS(V)
#undef V
    return 0;
}

static int
core_clear(PyObject *module)
{
    TlPyState *st = tl_py_state(module);
    for (int i = 0; i < TL_PY_ERROR__COUNT; i++)
        Py_CLEAR(st->errors[i]);
#define V(field) Py_CLEAR(st->field);
    STATE_OBJECTS(V)
#undef V
    return 0;
}

static void
core_free(void *module)
{
    TlPyState *st = tl_py_state((PyObject *)module);
    if (!st)
        return;
    core_clear((PyObject *)module);
#define X(name) Py_CLEAR(st->s_##name);
    TL_PY_NAMES(X)
#undef X
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilelang._core",
    .m_doc = "Tracing, tile IR, passes, tensors in, launch (no LLVM).",
    .m_size = sizeof(TlPyState),
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&core_def);
}
