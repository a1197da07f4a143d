/* target.c - module functions of `_core` that keep no state: the chips, their occupancy, places in Python
 * code. */
#include "py/py.h"

#include "target/target.h"

/* occupancy(target, vgprs, agprs, lds, waves) -> {"workgroups", "waves_per_simd", "limit"} */
static PyObject *
occupancy(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    unsigned vgprs, agprs, lds, waves;
    if (!PyArg_ParseTuple(args, "sIIII:occupancy", &name, &vgprs, &agprs, &lds, &waves))
        return NULL;
    const TlTarget *t = tl_target_by_name(name);
    if (!t) {
        PyErr_Format(PyExc_ValueError, "unknown target %s; known: %s", name, tl_target_names());
        return NULL;
    }
    TlOccupancy o = tl_occupancy(t, vgprs, agprs, lds, waves ? waves : 1);
    return Py_BuildValue("{sIsIss}", "workgroups", o.workgroups, "waves_per_simd", o.waves_per_simd, "limit",
                         tl_limit_name(o.limit));
}

/* target_info(name) -> {"name", "wave", "lds_max", ...} or None */
static PyObject *
target_info(PyObject *Py_UNUSED(module), PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name)
        return NULL;
    const TlTarget *t = tl_target_by_name(name);
    if (!t)
        Py_RETURN_NONE;
    return Py_BuildValue("{sssssIsIsI}", "name", t->name, "products", t->products, "wave", (unsigned)t->wave,
                         "lds_max", t->lds_max, "units", (unsigned)t->units);
}

/* code_place(code, offset) -> (line, column, end line, end column), columns in bytes from 0; -1: not known */
static PyObject *
code_place(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    int line = -1, col = -1, end_line = -1, end_col = -1;
    if (nargs != 2 || !PyCode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "code_place takes a code object and an offset");
        return NULL;
    }
    int offset = (int)PyLong_AsLong(args[1]);
    if (PyErr_Occurred())
        return NULL;
#if PY_VERSION_HEX >= 0x030B0000
    PyCode_Addr2Location((PyCodeObject *)args[0], offset, &line, &col, &end_line, &end_col);
#else
    line = PyCode_Addr2Line((PyCodeObject *)args[0], offset);
#endif
    return Py_BuildValue("(iiii)", line, col, end_line, end_col);
}

static PyMethodDef functions[] = {
    {"code_place", (PyCFunction)(void (*)(void))code_place, METH_FASTCALL,
     "code_place(code, offset) -> (line, column, end line, end column); -1: not known"},
    {"occupancy", occupancy, METH_VARARGS, "occupancy(target, vgprs, agprs, lds, waves) -> dict"},
    {"target_info", target_info, METH_O, "target_info(name) -> dict, or None for an unknown chip"},
    {0},
};

int
tl_py_target_exec(PyObject *module)
{
    PyObject *targets = PyUnicode_FromString(tl_target_names());
    int rc = targets && PyModule_AddFunctions(module, functions) == 0
                 ? PyModule_AddObjectRef(module, "TARGETS", targets)
                 : -1;
    Py_XDECREF(targets);
    return rc;
}
