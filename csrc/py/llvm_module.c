/* llvm_module.c - module `tilelang._llvm`: code generation for Python. It shares nothing with `_core`:
 * printed IR in, code object out. The GIL is released while LLVM works; any number of threads may compile.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "codegen/codegen.h"

typedef struct State {
    PyTypeObject *code_object;
} State;

static PyStructSequence_Field fields[] = {
    {"kernel", "name of the kernel and its symbol: str"},
    {"hsaco", "the code object, an ELF file: bytes"},
    {"asm", "assembly text: str, or None unless asked for"},
    {"llir", "LLVM IR as built: str, or None unless asked for"},
    {"times", "milliseconds of the phases: dict of float"},
    {"resources",
     "vgprs, agprs, sgprs, lds_bytes, scratch_bytes, vgpr_spills, sgpr_spills, ...: dict of int"},
    {NULL, NULL}};
static PyStructSequence_Desc code_object_desc = {
    "tilelang._llvm.CodeObject", "What compile() returns: (kernel, hsaco, asm, llir, times, resources).",
    fields, 6};

/* ---- errors ---- */

static PyObject *
location(const TlDiag *d, const TlDiagEntry *e)
{
    if (e->loc.file && e->loc.file < d->files.len)
        return PyUnicode_DecodeFSDefault(d->files.data[e->loc.file]);
    Py_RETURN_NONE;
}

static PyObject *
entry_tuple(const TlDiag *d, const TlDiagEntry *e)
{
    static const char *const severity[] = {
        [TL_NOTE] = "note", [TL_WARNING] = "warning", [TL_ERROR] = "error"};
    PyObject *file = location(d, e);
    if (!file)
        return NULL;
    return Py_BuildValue("(ssNIIIzs)", severity[e->severity], e->message, file, e->loc.line, e->loc.col,
                         e->loc.end_col, e->hint, tl_diag_code_name(e->code));
}

static PyObject *
raise_diag(const TlDiag *d)
{
    const TlDiagEntry *first = NULL;
    PyObject *all = PyList_New(0), *errors = NULL, *cls = NULL, *args = NULL, *file = NULL;
    for (uint32_t i = 0; all && i < d->entries.len; i++) {
        const TlDiagEntry *e = &d->entries.data[i];
        PyObject *t = entry_tuple(d, e);
        if (!t || PyList_Append(all, t) < 0) {
            Py_XDECREF(t);
            Py_CLEAR(all);
            break;
        }
        Py_DECREF(t);
        if (!first && e->severity == TL_ERROR)
            first = e;
    }
    if (!all || !first) {
        Py_XDECREF(all);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    if ((errors = PyImport_ImportModule("tilelang.errors")) &&
        (cls = PyObject_GetAttrString(errors, "CompileError")) && (file = location(d, first)) &&
        (args = Py_BuildValue("(sOIIIzsO)", first->message, file, first->loc.line, first->loc.col,
                              first->loc.end_col, first->hint, tl_diag_code_name(first->code), all)))
        PyErr_SetObject(cls, args);
    Py_DECREF(all);
    Py_XDECREF(errors);
    Py_XDECREF(cls);
    Py_XDECREF(file);
    Py_XDECREF(args);
    return NULL;
}

/* ---- results ---- */

static PyObject *
times_dict(const TlCodegenTimes *t)
{
    return Py_BuildValue("{sdsdsdsdsdsdsd}", "init", t->init, "parse", t->parse, "build", t->build, "opt",
                         t->opt, "emit", t->emit, "link", t->link, "total", t->total);
}

static PyObject *
resources_dict(const TlResources *r)
{
    return Py_BuildValue("{sIsIsIsIsIsIsIsIsIsI}", "vgprs", r->vgprs, "agprs", r->agprs, "sgprs", r->sgprs,
                         "lds_bytes", r->lds_bytes, "scratch_bytes", r->scratch_bytes, "vgpr_spills",
                         r->vgpr_spills, "sgpr_spills", r->sgpr_spills, "kernarg_bytes", r->kernarg_bytes,
                         "wave_size", r->wave_size, "max_workgroup", r->max_workgroup);
}

static PyObject *
text_or_none(const char *s, size_t n)
{
    if (s)
        return PyUnicode_DecodeUTF8(s, (Py_ssize_t)n, "replace");
    Py_RETURN_NONE;
}

static PyObject *
result(State *st, const TlCodeObject *c)
{
    PyObject *r = PyStructSequence_New(st->code_object);
    PyObject *items[] = {PyUnicode_FromString(c->kernel),
                         PyBytes_FromStringAndSize((const char *)c->hsaco, (Py_ssize_t)c->hsaco_len),
                         text_or_none(c->asm_text, c->asm_len),
                         text_or_none(c->llir, c->llir_len),
                         times_dict(&c->times),
                         resources_dict(&c->resources)};
    bool ok = r != NULL;
    for (size_t i = 0; i < TL_COUNT(items); i++) {
        ok = ok && items[i];
        if (r)
            PyStructSequence_SetItem(r, (Py_ssize_t)i, items[i]); /* takes the reference */
        else
            Py_XDECREF(items[i]);
    }
    if (!ok)
        Py_CLEAR(r);
    return r;
}

PyDoc_STRVAR(
    compile_doc,
    "compile(text, *, asm=False, llir=False, line_tables=True, check=False) -> CodeObject\n\n"
    "text: one kernel at level thread as printed IR (str or bytes); its attribute `target` names the chip.\n"
    "asm, llir: also give the assembly and the LLVM IR (asm about doubles the time).\n"
    "line_tables=False leaves out the DWARF line table; check=True runs LLVM's verifier.\n"
    "Raises tilelang.CompileError. The GIL is released meanwhile.");

static PyObject *
compile(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "asm", "llir", "line_tables", "check", NULL};
    int want_asm = 0, want_llir = 0, lines = 1, check = 0;
    Py_buffer text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s*|$pppp:compile", names, &text, &want_asm, &want_llir,
                                     &lines, &check))
        return NULL;
    TlCodegenOptions opts = {
        .want_asm = want_asm, .want_llir = want_llir, .no_line_tables = !lines, .check_llvm_ir = check};
    TlArena arena;
    TlDiag diag;
    TlCodeObject code;
    bool ok;
    tl_arena_init(&arena, NULL);
    tl_diag_init(&diag, &arena);
    Py_BEGIN_ALLOW_THREADS;
    ok = tl_codegen(&arena, &diag, text.buf, (size_t)text.len, &opts, &code);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&text);
    PyObject *r = ok ? result(PyModule_GetState(module), &code) : raise_diag(&diag);
    tl_arena_free(&arena);
    return r;
}

PyDoc_STRVAR(resources_doc,
             "resources(hsaco, kernel) -> dict\n\nRegisters, LDS, scratch and spills that the metadata of a "
             "code object (bytes) gives for a kernel (str). Raises tilelang.CompileError.");

static PyObject *
resources(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer elf;
    const char *kernel;
    if (!PyArg_ParseTuple(args, "y*s:resources", &elf, &kernel))
        return NULL;
    TlArena arena;
    TlDiag diag;
    TlResources r;
    tl_arena_init(&arena, NULL);
    tl_diag_init(&diag, &arena);
    bool ok = tl_code_resources(&diag, elf.buf, (size_t)elf.len, kernel, &r);
    PyBuffer_Release(&elf);
    PyObject *d = ok ? resources_dict(&r) : raise_diag(&diag);
    tl_arena_free(&arena);
    return d;
}

/* ---- module ---- */

static PyMethodDef methods[] = {
    {"compile", (PyCFunction)(void (*)(void))compile, METH_VARARGS | METH_KEYWORDS, compile_doc},
    {"resources", resources, METH_VARARGS, resources_doc},
    {NULL, NULL, 0, NULL}};

static int
exec(PyObject *module)
{
    State *st = PyModule_GetState(module);
    st->code_object = PyStructSequence_NewType(&code_object_desc);
    if (!st->code_object || PyModule_AddObjectRef(module, "CodeObject", (PyObject *)st->code_object) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "llvm_version", tl_codegen_llvm_version());
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *st = PyModule_GetState(module);
    Py_VISIT(st->code_object);
    return 0;
}

static int
clear(PyObject *module)
{
    State *st = PyModule_GetState(module);
    Py_CLEAR(st->code_object);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0, NULL}};
static struct PyModuleDef def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilelang._llvm",
    .m_doc = "Code generation: thread-level IR to AMDGPU code objects, by LLVM and lld in process.",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear};

PyMODINIT_FUNC
PyInit__llvm(void)
{
    return PyModuleDef_Init(&def);
}
