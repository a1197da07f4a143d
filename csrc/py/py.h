/* py.h - what the files of the CPython binding share: module state, exceptions, the parts of module `_core`.
 *
 * `_core` uses multi-phase initialisation; all state is in the module. A part of the binding is one file with
 * one `int tl_py_<part>_exec(PyObject *module)` that adds its types and functions (0, or -1 with an
 * exception) and is a row of TL_PY_PARTS. Heap types get the module state by tl_py_state(PyType_GetModule /
 * tp defining class).
 */
#ifndef TL_PY_H
#define TL_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
/* module.c alone defines TL_PY_IMPORT_ARRAY and fills the table. */
#define PY_ARRAY_UNIQUE_SYMBOL tl_numpy_api
#ifndef TL_PY_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <structmember.h>

#include "base/base.h"

#define TL_PY_PARTS(X)                                                                                       \
    X(ir)     /* t_ir.c: the IR builder */                                                                   \
    X(target) /* target.c: chips, occupancy, places in Python code */                                        \
    X(dlpack) /* dlpack.c: tensor_info */                                                                    \
    X(device) /* t_device.c: Hip */                                                                          \
    X(binary) /* t_binary.c: Binary */                                                                       \
    X(launch) /* t_launch.c: Launcher */

/* Exceptions of tilelang/errors.py, in TlPyState.errors. */
#define TL_PY_ERRORS(X)                                                                                      \
    X(CompileError)                                                                                          \
    X(LaunchError)                                                                                           \
    X(LaunchTypeError)                                                                                       \
    X(DeviceError)                                                                                           \
    X(SimulatorFault)

typedef enum TlPyError {
#define X(name) TL_PY_##name,
    TL_PY_ERRORS(X)
#undef X
        TL_PY_ERROR__COUNT
} TlPyError;

#define TL_PY_NAMES(X)                                                                                       \
    X(__dlpack__)                                                                                            \
    X(__dlpack_device__)                                                                                     \
    X(__dlpack_c_exchange_api__)                                                                             \
    X(max_version)                                                                                           \
    X(stream)                                                                                                \
    X(requires_grad)                                                                                         \
    X(is_neg)                                                                                                \
    X(detach)

typedef struct TlPyState {
    PyObject *errors[TL_PY_ERROR__COUNT]; /* classes, imported from tilelang.errors at first use */
#define X(name) PyObject *s_##name;       /* interned strings */
    TL_PY_NAMES(X)
#undef X
    PyTypeObject *ir_type;                                /* of t_ir.c */
    PyTypeObject *hip_type, *binary_type, *launcher_type; /* of t_device.c, t_binary.c, t_launch.c */
    PyObject *devices[2];                                 /* Hip objects by TlHipKind once opened */
    PyObject *sim_path;                                   /* str: where libtilelang_sim.so is */
    bool at_exit; /* the interpreter ends: HIP may be gone, nothing is unloaded any more */
    /* the type that gave its exchange table last (a strong reference) and the table */
    PyTypeObject *exchange_type;
    const void *exchange_api;
    bool exchange_neg;  /* its objects have is_neg() */
    bool exchange_fake; /* its objects have no memory */
} TlPyState;

TlPyState *tl_py_state(PyObject *module);
/* The module that this object's heap type belongs to; never NULL for our types. */
TlPyState *tl_py_state_of(PyTypeObject *our_type);
/* Class of errors.py; borrowed; NULL with an exception. */
PyObject *tl_py_error(TlPyState *st, TlPyError which);
/* Raises it with a message formatted as PyUnicode_FromFormat does; returns NULL. */
PyObject *tl_py_raise(TlPyState *st, TlPyError which, const char *fmt, ...);
/* Raises CompileError from the first error of a TlDiag: args (message, file, line, col, end_col, hint, code,
 * diagnostics), where diagnostics is a list of such tuples, all entries in order; NULL is returned. Also for
 * out of memory. */
PyObject *tl_py_raise_diag(TlPyState *st, const TlDiag *d);
/* list of (severity, message, file, line, col, end_col, hint, code); severity "note", "warning", "error". */
PyObject *tl_py_diag_list(const TlDiag *d);
PyObject *tl_py_int_tuple(const int64_t *v, uint32_t n); /* NULL with an error set */

#define X(part) int tl_py_##part##_exec(PyObject *module);
TL_PY_PARTS(X)
#undef X

#endif
