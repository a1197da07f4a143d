/* t_device.c - type `Hip`: an opened HIP library, the ROCm runtime ("rocm") or the simulator ("cpu"); HIP
 * errors as exceptions. */
#include <stdlib.h>
#include "py/device.h"

static const char *const kind_names[] = {"rocm", "cpu"}; /* by TlHipKind */

/* ---- errors
 * -------------------------------------------------------------------------------------------------- */

/* What a function like tlsim_last_report tells, as str; NULL with an exception. */
static PyObject *
sim_text(size_t (*tell)(char *, size_t))
{
    size_t need = tell(NULL, 0);
    for (;;) {
        char *buf = PyMem_Malloc(need + 1);
        if (!buf)
            return PyErr_NoMemory();
        size_t got = tell(buf, need + 1);
        if (got <= need) {
            PyObject *text = PyUnicode_DecodeUTF8(buf, (Py_ssize_t)got, "replace");
            PyMem_Free(buf);
            return text;
        }
        PyMem_Free(buf);
        need = got;
    }
}

PyObject *
tl_py_hip_raise(TlPyState *st, const TlHip *h, int code, const char *doing)
{
    const char *name = h->hipGetErrorName(code), *text = h->hipGetErrorString(code);
    name = name ? name : "unknown error";
    text = text ? text : "unknown error";
    if (h->tlsim_last_report) {
        PyObject *cls = tl_py_error(st, TL_PY_SimulatorFault);
        PyObject *report = cls ? sim_text(h->tlsim_last_report) : NULL;
        if (!report)
            return NULL;
        if (PyUnicode_GET_LENGTH(report) > 2) {
            PyObject *exc = PyObject_CallMethod(cls, "from_report", "sOis", doing, report, code, name);
            Py_DECREF(report);
            if (exc) {
                PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
                Py_DECREF(exc);
            }
            return NULL;
        }
        Py_DECREF(report);
    }
    PyObject *cls = tl_py_error(st, TL_PY_DeviceError);
    PyObject *message = cls ? PyUnicode_FromFormat("%s: %s (%s, %d)", doing, text, name, code) : NULL;
    PyObject *exc = message ? PyObject_CallFunction(cls, "Ois", message, code, name) : NULL;
    Py_XDECREF(message);
    if (exc) {
        PyErr_SetObject(cls, exc);
        Py_DECREF(exc);
    }
    return NULL;
}

/* ---- opening
 * ------------------------------------------------------------------------------------------------- */

/* $TILELANG_SIM_LIB, else libtilelang_sim.so beside this module. New reference. */
static PyObject *
sim_path(PyObject *module)
{
    const char *named = getenv("TILELANG_SIM_LIB");
    if (named && *named)
        return PyUnicode_DecodeFSDefault(named);
    PyObject *file = PyModule_GetFilenameObject(module);
    if (!file)
        return NULL;
    Py_ssize_t slash = PyUnicode_FindChar(file, '/', 0, PyUnicode_GET_LENGTH(file), -1);
    PyObject *folder = PyUnicode_Substring(file, 0, slash + 1);
    PyObject *path = folder ? PyUnicode_FromFormat("%Ulibtilelang_sim.so", folder) : NULL;
    Py_DECREF(file);
    Py_XDECREF(folder);
    return path;
}

TlPyHip *
tl_py_hip(TlPyState *st, TlHipKind kind)
{
    if (st->devices[kind])
        return (TlPyHip *)st->devices[kind];
    PyObject *bytes = NULL;
    const char *path = getenv("TILELANG_HIP_LIB");
    if (kind == TL_HIP_SIM) {
        bytes = st->sim_path ? PyUnicode_EncodeFSDefault(st->sim_path) : NULL;
        if (!bytes)
            return NULL;
        path = PyBytes_AS_STRING(bytes);
    }
    char err[TL_HIP_PATH_MAX + 512];
    TlPyHip *self = (TlPyHip *)st->hip_type->tp_alloc(st->hip_type, 0);
    if (self && !tl_hip_open(&self->hip, kind, path, err, sizeof err)) {
        const char *named = kind == TL_HIP_SIM ? getenv("TILELANG_SIM_LIB") : NULL;
        tl_py_raise(st, TL_PY_DeviceError, "%s%s", named && *named ? "TILELANG_SIM_LIB: " : "", err);
        Py_CLEAR(self);
    }
    Py_XDECREF(bytes);
    st->devices[kind] = (PyObject *)self;
    return self;
}

static PyObject *
device(PyObject *module, PyObject *arg)
{
    const char *name = PyUnicode_Check(arg) ? PyUnicode_AsUTF8(arg) : "";
    for (int kind = 0; name && kind < 2; kind++)
        if (strcmp(name, kind_names[kind]) == 0) {
            PyObject *hip = (PyObject *)tl_py_hip(tl_py_state(module), (TlHipKind)kind);
            Py_XINCREF(hip);
            return hip;
        }
    return name ? PyErr_Format(PyExc_ValueError, "device: \"rocm\" or \"cpu\", not %R", arg) : NULL;
}

/* ---- methods
 * ------------------------------------------------------------------------------------------------- */

static const TlHip *
hip_of(PyObject *self)
{
    return &((TlPyHip *)self)->hip;
}

static bool
check_index(const TlHip *h, int index)
{
    if (index >= 0 && index < h->ndevices)
        return true;
    PyErr_Format(PyExc_IndexError, "device %d: there are %d", index, h->ndevices);
    return false;
}

static PyObject *
hip_arch(PyObject *self, PyObject *args)
{
    int index = 0;
    if (!PyArg_ParseTuple(args, "|i:arch", &index) || !check_index(hip_of(self), index))
        return NULL;
    return PyUnicode_FromString(hip_of(self)->arch[index]);
}

static PyObject *
hip_num_cus(PyObject *self, PyObject *args)
{
    int index = 0;
    if (!PyArg_ParseTuple(args, "|i:num_cus", &index) || !check_index(hip_of(self), index))
        return NULL;
    return PyLong_FromLong(hip_of(self)->cus[index]);
}

static PyObject *
hip_synchronize(PyObject *self, PyObject *Py_UNUSED(none))
{
    const TlHip *h = hip_of(self);
    int code;
    Py_BEGIN_ALLOW_THREADS code = h->hipDeviceSynchronize();
    Py_END_ALLOW_THREADS if (code != 0) return tl_py_hip_raise(tl_py_state_of(Py_TYPE(self)), h, code,
                                                               "synchronize");
    Py_RETURN_NONE;
}

static PyObject *
hip_last_stats(PyObject *self, PyObject *Py_UNUSED(none))
{
    const TlHip *h = hip_of(self);
    if (!h->tlsim_last_stats)
        Py_RETURN_NONE;
    return sim_text(h->tlsim_last_stats);
}

static PyMethodDef hip_methods[] = {
    {"arch", hip_arch, METH_VARARGS, "arch(index=0) -> \"gfx942\": the chip, without target features."},
    {"num_cus", hip_num_cus, METH_VARARGS, "num_cus(index=0) -> number of compute units."},
    {"synchronize", hip_synchronize, METH_NOARGS, "Waits for the current device; DeviceError on a fault."},
    {"last_stats", hip_last_stats, METH_NOARGS,
     "JSON text of the simulator's statistics of the last launch; None on a GPU."},
    {NULL, NULL, 0, NULL},
};

static PyObject *
get_kind(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(kind_names[hip_of(self)->kind]);
}

static PyObject *
get_path(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_DecodeFSDefault(hip_of(self)->path);
}

static PyObject *
get_version(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(hip_of(self)->version);
}

static PyObject *
get_device_count(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(hip_of(self)->ndevices);
}

static PyGetSetDef hip_getset[] = {
    {"kind", get_kind, NULL, "\"rocm\" or \"cpu\" (the simulator)", NULL},
    {"path", get_path, NULL, "file of the library", NULL},
    {"version", get_version, NULL, "hipDriverGetVersion, 0 if unknown", NULL},
    {"device_count", get_device_count, NULL, "number of devices", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static void
hip_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot hip_slots[] = {
    {Py_tp_doc,
     "An opened HIP library: the ROCm runtime, or the simulator for CPU tensors. Made by device()."},
    {Py_tp_methods, hip_methods},
    {Py_tp_getset, hip_getset},
    {Py_tp_dealloc, hip_dealloc},
    {0, NULL},
};
static PyType_Spec hip_spec = {"tilelang._core.Hip", sizeof(TlPyHip), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, hip_slots};

static PyObject *
at_exit(PyObject *module, PyObject *Py_UNUSED(none))
{
    tl_py_state(module)->at_exit = true;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"device", device, METH_O,
     "device(kind) -> Hip: \"rocm\" (the ROCm runtime) or \"cpu\" (the simulator), opened at first use; "
     "DeviceError where "
     "there is none."},
    {"_at_exit", at_exit, METH_NOARGS, "From now on no code is unloaded: the HIP library may go first."},
    {NULL, NULL, 0, NULL},
};

int
tl_py_device_exec(PyObject *module)
{
    TlPyState *st = tl_py_state(module);
    st->hip_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &hip_spec, NULL);
    st->sim_path = sim_path(module);
    if (!st->hip_type || !st->sim_path || PyModule_AddFunctions(module, functions) < 0 ||
        PyModule_AddType(module, st->hip_type) < 0)
        return -1;
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *function = atexit ? PyObject_GetAttrString(module, "_at_exit") : NULL;
    PyObject *done = function ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
