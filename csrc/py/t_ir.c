/* t_ir.c - `_core.Ir`: the IR builder as Python sees it, and the call that runs the passes.
 *
 * One Ir is one compilation: an arena, its diagnostics, its IR. Types, values, blocks, kernels and files are
 * small integers (the IR's own indices); 0 is none. A block is made detached and becomes a region when the
 * operation that takes it is built, so a loop's body can be traced before the types of what it carries are
 * known, and traced again. Faults of the IR (not of the caller's arguments) raise
 * tilelang.errors.CompileError with the operation's place.
 *
 * Threads: the GIL protects an Ir; while the passes run without it the object is marked busy and any other
 * call on it raises RuntimeError. Different Ir objects never share state.
 */
#include "py/py.h"

#include "ir/ir.h"
#include "pass/pass.h"

typedef struct TlPyIr {
    PyObject_HEAD TlArena arena;
    TlDiag diag;
    TlIr ir;
    bool busy;
} TlPyIr;

enum { MAX_OPERANDS = 4096 };

static PyObject *
raise_diag(TlPyIr *self)
{
    TlPyState *st = tl_py_state_of(Py_TYPE(self));
    if (self->arena.failed || self->diag.oom)
        return PyErr_NoMemory();
    if (!self->diag.nerrors) {
        PyErr_SetString(PyExc_RuntimeError, "internal error: the IR refused a request and did not say why");
        return NULL;
    }
    return tl_py_raise_diag(st, &self->diag);
}

static bool
ready(TlPyIr *self)
{
    if (!self->busy)
        return true;
    PyErr_SetString(PyExc_RuntimeError, "this Ir is being compiled by another thread");
    return false;
}

static PyObject *
index_or_raise(TlPyIr *self, uint32_t v)
{
    return v ? PyLong_FromUnsignedLong(v) : raise_diag(self);
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

static bool
arg_count(const char *fn, Py_ssize_t n, Py_ssize_t least, Py_ssize_t most)
{
    if (n >= least && n <= most)
        return true;
    PyErr_Format(PyExc_TypeError, "Ir.%s takes %zd to %zd arguments, got %zd", fn, least, most, n);
    return false;
}

/* A Python int that must be in 1 .. limit-1 (or 0 when zero_ok). */
static bool
get_index(PyObject *o, uint32_t limit, bool zero_ok, const char *what, uint32_t *out)
{
    unsigned long v = PyLong_AsUnsignedLong(o);
    if (v == (unsigned long)-1 && PyErr_Occurred())
        return false;
    if (v >= limit || (!v && !zero_ok)) {
        PyErr_Format(PyExc_ValueError, "%s: no such index %lu", what, v);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

/* Any Python int, wrapped to 64 bits: a u64 constant comes as its two's complement. */
static bool
get_i64(PyObject *o, int64_t *out)
{
    if (!PyLong_Check(o)) {
        PyErr_Format(PyExc_TypeError, "an int is wanted, got %s", Py_TYPE(o)->tp_name);
        return false;
    }
    *out = (int64_t)PyLong_AsUnsignedLongLongMask(o);
    return !(*out == -1 && PyErr_Occurred());
}

static bool
get_elem(PyObject *o, TlElem *out)
{
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(o, &n);
    if (!s)
        return false;
    *out = tl_elem_by_name(s, (size_t)n);
    if (*out == TL_ELEM_NONE)
        PyErr_Format(PyExc_ValueError, "no such element type: %s", s);
    return *out != TL_ELEM_NONE;
}

/* A tuple of ints, or None as TL_DYN where that is allowed. */
static bool
get_dims(PyObject *o, bool dyn_ok, int64_t *out, uint32_t *n)
{
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) > TL_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "sizes must be a tuple of at most %d", TL_MAX_RANK);
        return false;
    }
    *n = (uint32_t)PyTuple_GET_SIZE(o);
    for (uint32_t i = 0; i < *n; i++) {
        PyObject *v = PyTuple_GET_ITEM(o, i);
        if (v == Py_None && dyn_ok)
            out[i] = TL_DYN;
        else if (!get_i64(v, &out[i]))
            return false;
    }
    return true;
}

static bool
get_loc(TlPyIr *self, PyObject *o, TlLoc *loc)
{
    *loc = (TlLoc){0};
    if (!o || o == Py_None)
        return true;
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != 4) {
        PyErr_SetString(PyExc_TypeError, "a place is (file, line, col, end_col)");
        return false;
    }
    return get_index(PyTuple_GET_ITEM(o, 0), self->diag.files.len ? self->diag.files.len : 1, true, "file",
                     &loc->file) &&
           get_index(PyTuple_GET_ITEM(o, 1), UINT32_MAX, true, "line", &loc->line) &&
           get_index(PyTuple_GET_ITEM(o, 2), UINT32_MAX, true, "column", &loc->col) &&
           get_index(PyTuple_GET_ITEM(o, 3), UINT32_MAX, true, "column", &loc->end_col);
}

static bool
get_block(TlPyIr *self, PyObject *o, TlBlock *out)
{
    return get_index(o, self->ir.blocks.len, false, "block", out);
}

static bool
get_kernel(TlPyIr *self, PyObject *o, TlKernelId *out)
{
    return get_index(o, self->ir.kernels.len, false, "kernel", out);
}

/* ---- types, kernels, blocks ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    TlTypeKind kind;
} type_kinds[] = {{"index", TL_TY_INDEX},   {"scalar", TL_TY_SCALAR}, {"tile", TL_TY_TILE},
                  {"shared", TL_TY_SHARED}, {"local", TL_TY_LOCAL},   {"vec", TL_TY_VEC},
                  {"ptr", TL_TY_PTR},       {"rsrc", TL_TY_RSRC},     {"lds", TL_TY_LDS}};

static PyObject *
ir_type(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (!ready(self) || !arg_count("type", nargs, 1, 3))
        return NULL;
    const char *name = PyUnicode_AsUTF8(args[0]);
    if (!name)
        return NULL;
    TlTypeInfo info = {0};
    for (size_t i = 0; i < TL_COUNT(type_kinds); i++)
        if (strcmp(type_kinds[i].name, name) == 0)
            info.kind = type_kinds[i].kind;
    if (info.kind == TL_TY_VOID) {
        PyErr_Format(PyExc_ValueError, "no such kind of type: %s", name);
        return NULL;
    }
    if (nargs > 1 && args[1] != Py_None && !get_elem(args[1], &info.elem))
        return NULL;
    if (nargs > 2 && !get_dims(args[2], false, info.shape, &info.rank))
        return NULL;
    return index_or_raise(self, tl_type(&self->ir, &info));
}

static bool
get_divisors(PyObject *o, uint32_t rank, uint32_t *out)
{
    int64_t v[TL_MAX_RANK];
    uint32_t n;
    if (!get_dims(o, false, v, &n))
        return false;
    for (uint32_t i = 0; i < n && i < rank; i++) {
        if (v[i] < 1 || v[i] > UINT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "a divisor must be positive");
            return false;
        }
        out[i] = (uint32_t)v[i];
    }
    return true;
}

/* buffer(elem, dims, strides, dim_divisors, stride_divisors, align, flags) */
static PyObject *
ir_buffer(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (!ready(self) || !arg_count("buffer", nargs, 7, 7))
        return NULL;
    TlTypeInfo info = {.kind = TL_TY_BUF};
    uint32_t nstrides;
    if (!get_elem(args[0], &info.elem) || !get_dims(args[1], true, info.shape, &info.rank) ||
        !get_dims(args[2], true, info.strides, &nstrides) ||
        !get_divisors(args[3], info.rank, info.dim_div) ||
        !get_divisors(args[4], info.rank, info.stride_div) ||
        !get_index(args[5], 1u << 16, false, "alignment", &info.align) ||
        !get_index(args[6], 1u << 16, true, "flags", &info.flags))
        return NULL;
    if (nstrides != info.rank) {
        PyErr_SetString(PyExc_ValueError, "a buffer needs as many strides as dims");
        return NULL;
    }
    return index_or_raise(self, tl_type(&self->ir, &info));
}

static PyObject *
ir_type_text(TlPyIr *self, PyObject *arg)
{
    uint32_t t;
    if (!ready(self) || !get_index(arg, self->ir.types.len, false, "type", &t))
        return NULL;
    TlText text;
    tl_text_init(&text, &self->arena);
    tl_type_print(&self->ir, t, &text);
    return text.failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.len, "replace");
}

static PyObject *
ir_file(TlPyIr *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name || !ready(self))
        return NULL;
    return index_or_raise(self, tl_diag_file(&self->diag, name));
}

/* kernel(name, loc=None, level="tile") */
static PyObject *
ir_kernel(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (!ready(self) || !arg_count("kernel", nargs, 1, 3))
        return NULL;
    const char *name = PyUnicode_AsUTF8(args[0]);
    const char *level = nargs > 2 ? PyUnicode_AsUTF8(args[2]) : "tile";
    TlLoc loc;
    if (!name || !level || !get_loc(self, nargs > 1 ? args[1] : NULL, &loc))
        return NULL;
    TlKernelId k =
        tl_kernel_new(&self->ir, name, strcmp(level, "thread") == 0 ? TL_LEVEL_THREAD : TL_LEVEL_TILE);
    if (k)
        self->ir.kernels.data[k].loc = loc;
    return index_or_raise(self, k);
}

static PyObject *
attr_value(TlPyIr *self, const TlAttr *a)
{
    if (!a)
        Py_RETURN_NONE;
    switch (a->kind) {
    case TL_ATTR_INT:
        return PyLong_FromLongLong(a->u.i);
    case TL_ATTR_FLOAT:
        return PyFloat_FromDouble(a->u.f);
    case TL_ATTR_STR:
        return PyUnicode_FromString(tl_str(&self->ir.strs, a->u.s));
    case TL_ATTR_INTS:
        break;
    }
    return tl_py_int_tuple(a->u.ints.v, a->u.ints.n);
}

/* attr(kernel, key, value): int, str or tuple of ints. attr(kernel, key) gives the value or None. */
static PyObject *
ir_attr(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlKernelId k;
    if (!ready(self) || !arg_count("attr", nargs, 2, 3) || !get_kernel(self, args[0], &k))
        return NULL;
    const char *key = PyUnicode_AsUTF8(args[1]);
    if (!key)
        return NULL;
    if (nargs == 2)
        return attr_value(self, tl_kattr(&self->ir, k, key));
    bool ok;
    if (PyUnicode_Check(args[2])) {
        const char *s = PyUnicode_AsUTF8(args[2]);
        if (!s)
            return NULL;
        ok = tl_kattr_set_str(&self->ir, k, key, s);
    } else if (PyTuple_Check(args[2])) {
        Py_ssize_t n = PyTuple_GET_SIZE(args[2]);
        int64_t *v = TL_NEW_N(&self->arena, int64_t, n ? n : 1);
        if (!v)
            return PyErr_NoMemory();
        for (Py_ssize_t i = 0; i < n; i++)
            if (!get_i64(PyTuple_GET_ITEM(args[2], i), &v[i]))
                return NULL;
        ok = tl_kattr_set_ints(&self->ir, k, key, v, (uint32_t)n);
    } else {
        int64_t v;
        if (!get_i64(args[2], &v))
            return NULL;
        ok = tl_kattr_set_int(&self->ir, k, key, v);
    }
    if (!ok)
        return raise_diag(self);
    Py_RETURN_NONE;
}

static PyObject *
ir_body(TlPyIr *self, PyObject *arg)
{
    TlKernelId k;
    if (!ready(self) || !get_kernel(self, arg, &k))
        return NULL;
    return PyLong_FromUnsignedLong(self->ir.kernels.data[k].body);
}

static PyObject *
ir_block(TlPyIr *self, PyObject *arg)
{
    TlKernelId k;
    if (!ready(self) || !get_kernel(self, arg, &k))
        return NULL;
    return index_or_raise(self, tl_block_new(&self->ir, k, 0));
}

/* arg(block, type, name) */
static PyObject *
ir_arg(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlBlock b;
    TlType t;
    if (!ready(self) || !arg_count("arg", nargs, 3, 3) || !get_block(self, args[0], &b) ||
        !get_index(args[1], self->ir.types.len, false, "type", &t))
        return NULL;
    const char *name = PyUnicode_AsUTF8(args[2]);
    if (!name)
        return NULL;
    return index_or_raise(self, tl_block_arg(&self->ir, b, t, name));
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static bool
get_list(PyObject *o, uint32_t limit, const char *what, uint32_t *out, uint32_t max, uint32_t *n)
{
    *n = 0;
    if (!o || o == Py_None)
        return true;
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) > (Py_ssize_t)max) {
        PyErr_Format(PyExc_TypeError, "%ss must be a tuple of at most %u", what, max);
        return false;
    }
    *n = (uint32_t)PyTuple_GET_SIZE(o);
    for (uint32_t i = 0; i < *n; i++)
        if (!get_index(PyTuple_GET_ITEM(o, i), limit, false, what, &out[i]))
            return false;
    return true;
}

static bool
set_ints_attr(TlPyIr *self, TlOp op, const char *key, PyObject *seq)
{
    Py_ssize_t n = PyTuple_GET_SIZE(seq);
    int64_t *v = TL_NEW_N(&self->arena, int64_t, n ? n : 1);
    if (!v)
        return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!get_i64(PyTuple_GET_ITEM(seq, i), &v[i]))
            return false;
    return tl_attr_set_ints(&self->ir, op, key, v, (uint32_t)n) || raise_diag(self) != NULL;
}

static bool
set_attrs(TlPyIr *self, TlOp op, PyObject *dict)
{
    if (!dict || dict == Py_None)
        return true;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "attributes must be a dict");
        return false;
    }
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (PyDict_Next(dict, &pos, &key, &value)) {
        const char *k = PyUnicode_AsUTF8(key);
        bool ok;
        if (!k)
            return false;
        if (PyTuple_Check(value)) {
            if (!set_ints_attr(self, op, k, value))
                return false;
            continue;
        }
        if (PyUnicode_Check(value)) {
            const char *s = PyUnicode_AsUTF8(value);
            if (!s)
                return false;
            ok = tl_attr_set_str(&self->ir, op, k, s);
        } else if (PyFloat_Check(value)) {
            ok = tl_attr_set_float(&self->ir, op, k, PyFloat_AS_DOUBLE(value));
        } else {
            int64_t v;
            if (!get_i64(value, &v))
                return false;
            ok = tl_attr_set_int(&self->ir, op, k, v);
        }
        if (!ok)
            return raise_diag(self) != NULL;
    }
    return true;
}

static bool
adopt_regions(TlPyIr *self, TlOp op, const TlBlock *regions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        TlBlockNode *b = tl_blockn(&self->ir, regions[i]);
        if (b->parent || self->ir.kernels.data[b->kernel].body == regions[i]) {
            PyErr_SetString(PyExc_ValueError, "the block is already a region");
            return false;
        }
        b->parent = op;
        tl_opn(&self->ir, op)->region[i] = regions[i];
    }
    tl_opn(&self->ir, op)->nregion = n;
    return true;
}

static PyObject *
results(TlPyIr *self, TlOp op)
{
    const TlOpNode *n = tl_opn(&self->ir, op);
    if (n->nres == 0)
        Py_RETURN_NONE;
    if (n->nres == 1)
        return PyLong_FromUnsignedLong(n->res[0]);
    PyObject *t = PyTuple_New((Py_ssize_t)n->nres);
    for (uint32_t i = 0; t && i < n->nres; i++) {
        PyObject *v = PyLong_FromUnsignedLong(n->res[i]);
        if (!v) {
            Py_CLEAR(t);
            break;
        }
        PyTuple_SET_ITEM(t, (Py_ssize_t)i, v);
    }
    return t;
}

/* op(block, opcode, operands, result_types, attrs=None, regions=None, loc=None, name="") */
static PyObject *
ir_op(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t code, nin, ntypes, nregions;
    TlBlock regions[TL_MAX_REGIONS];
    TlBuilder b = {.ir = &self->ir};
    if (!ready(self) || !arg_count("op", nargs, 4, 8) || !get_block(self, args[0], &b.block) ||
        !get_index(args[1], TL_OP__COUNT, false, "operation", &code) ||
        !get_loc(self, nargs > 6 ? args[6] : NULL, &b.loc) ||
        !get_list(nargs > 5 ? args[5] : NULL, self->ir.blocks.len, "region", regions, TL_MAX_REGIONS,
                  &nregions))
        return NULL;
    uint32_t want = 0;
    for (int i = 2; i < 4; i++)
        want += PyTuple_Check(args[i]) ? (uint32_t)PyTuple_GET_SIZE(args[i]) : 0;
    uint32_t small[32], *in = small;
    if (want > TL_COUNT(small) && !(in = TL_NEW_N(&self->arena, uint32_t, want)))
        return PyErr_NoMemory();
    if (!get_list(args[2], self->ir.vals.len, "operand", in, want < MAX_OPERANDS ? want : MAX_OPERANDS,
                  &nin) ||
        !get_list(args[3], self->ir.types.len, "type", in + nin, want - nin, &ntypes))
        return NULL;
    TlOp op = tl_build(&b, (TlOpcode)code, in, nin, in + nin, ntypes);
    if (!op)
        return raise_diag(self);
    if (!adopt_regions(self, op, regions, nregions) || !set_attrs(self, op, nargs > 4 ? args[4] : NULL))
        return NULL;
    if (nargs > 7 && ntypes == 1) {
        const char *name = PyUnicode_AsUTF8(args[7]);
        if (!name)
            return NULL;
        if (*name)
            tl_val_set_name(&self->ir, tl_result(&self->ir, op, 0), name);
    }
    return results(self, op);
}

/* name(value, text): a hint for printing */
static PyObject *
ir_name(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t v;
    if (!ready(self) || !arg_count("name", nargs, 2, 2) ||
        !get_index(args[0], self->ir.vals.len, false, "value", &v))
        return NULL;
    const char *name = PyUnicode_AsUTF8(args[1]);
    if (!name)
        return NULL;
    tl_val_set_name(&self->ir, v, name);
    Py_RETURN_NONE;
}

/* const(block, type, value, loc=None): int or float, rounded or wrapped to the type, splat over a tile */
static PyObject *
ir_const(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlBuilder b = {.ir = &self->ir};
    TlType t;
    if (!ready(self) || !arg_count("const", nargs, 3, 4) || !get_block(self, args[0], &b.block) ||
        !get_index(args[1], self->ir.types.len, false, "type", &t) ||
        !get_loc(self, nargs > 3 ? args[3] : NULL, &b.loc))
        return NULL;
    if (PyFloat_Check(args[2]))
        return index_or_raise(self, tl_const_float(&b, t, PyFloat_AS_DOUBLE(args[2])));
    int64_t v;
    if (!get_i64(args[2], &v))
        return NULL;
    return index_or_raise(self, tl_const_int(&b, t, v));
}

/* pure(block): does the block hold nothing but pure operations (nested regions count as not pure)? Their
 * number, or -1. */
static PyObject *
ir_pure(TlPyIr *self, PyObject *arg)
{
    TlBlock b;
    if (!ready(self) || !get_block(self, arg, &b))
        return NULL;
    long n = 0;
    for (TlOp o = tl_blockn(&self->ir, b)->first; o; o = tl_opn(&self->ir, o)->next, n++)
        if (!(tl_op_row(tl_opn(&self->ir, o)->code)->traits & TL_T_PURE) || tl_opn(&self->ir, o)->nregion)
            return PyLong_FromLong(-1);
    return PyLong_FromLong(n);
}

/* splice(from, to): moves all operations of a detached block to the end of another. */
static PyObject *
ir_splice(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlBlock from, to;
    if (!ready(self) || !arg_count("splice", nargs, 2, 2) || !get_block(self, args[0], &from) ||
        !get_block(self, args[1], &to))
        return NULL;
    while (tl_blockn(&self->ir, from)->first)
        tl_op_move_before(&self->ir, tl_blockn(&self->ir, from)->first, to, 0);
    Py_RETURN_NONE;
}

/* ---- text, checks, passes ------------------------------------------------------------------------------ */

/* text(kernel, locs=False) */
static PyObject *
ir_text(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlKernelId k;
    if (!ready(self) || !arg_count("text", nargs, 1, 2) || !get_kernel(self, args[0], &k))
        return NULL;
    int locs = nargs > 1 ? PyObject_IsTrue(args[1]) : 0;
    if (locs < 0)
        return NULL;
    TlText text;
    tl_text_init(&text, &self->arena);
    tl_print_kernel(&self->ir, k, &text, locs != 0);
    if (text.failed)
        return PyErr_NoMemory();
    return PyUnicode_DecodeUTF8(text.data ? text.data : "", (Py_ssize_t)text.len, "replace");
}

static PyObject *
ir_parse(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (!ready(self) || !arg_count("parse", nargs, 2, 2))
        return NULL;
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(args[0], &n);
    const char *name = text ? PyUnicode_AsUTF8(args[1]) : NULL;
    if (!name)
        return NULL;
    uint32_t before = self->ir.kernels.len;
    if (!tl_parse(&self->ir, text, (size_t)n, name))
        return raise_diag(self);
    return PyLong_FromUnsignedLong(before < self->ir.kernels.len ? before : 0);
}

static PyObject *
ir_verify(TlPyIr *self, PyObject *arg)
{
    TlKernelId k;
    if (!ready(self) || !get_kernel(self, arg, &k))
        return NULL;
    if (!tl_verify(&self->ir, k, NULL))
        return raise_diag(self);
    Py_RETURN_NONE;
}

static PyObject *
ir_diagnostics(TlPyIr *self, PyObject *Py_UNUSED(arg))
{
    return ready(self) ? tl_py_diag_list(&self->diag) : NULL;
}

static PyObject *
times_list(const TlPassTimes *times)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < times->n; i++) {
        PyObject *row = Py_BuildValue("(sdI)", times->run[i].name, times->run[i].ms, times->run[i].ops_after);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* passes(kernel, print_after=None, skip=None, only=None) -> (kernel, dump, [(pass, ms, operations after)]) */
static PyObject *
ir_passes(TlPyIr *self, PyObject *const *args, Py_ssize_t nargs)
{
    TlKernelId k;
    if (!ready(self) || !arg_count("passes", nargs, 1, 4) || !get_kernel(self, args[0], &k))
        return NULL;
    const char *text[3] = {NULL, NULL, NULL};
    for (Py_ssize_t i = 1; i < nargs; i++)
        if (args[i] != Py_None && !(text[i - 1] = PyUnicode_AsUTF8(args[i])))
            return NULL;
    TlText dump;
    TlPassTimes times = {.n = 0};
    tl_text_init(&dump, &self->arena);
    TlPassOptions opts = {
        .print_after = text[0], .skip = text[1], .passes = text[2], .dump = &dump, .times = &times};
    bool ok;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS;
    ok = tl_passes_run(&self->ir, &k, &opts);
    Py_END_ALLOW_THREADS;
    self->busy = false;
    if (!ok)
        return raise_diag(self);
    PyObject *list = times_list(&times);
    return list ? Py_BuildValue("(IsN)", k, dump.data ? dump.data : "", list) : NULL;
}

/* ---- the type ------------------------------------------------------------------------------------------ */

static PyObject *
ir_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Ir takes no arguments");
        return NULL;
    }
    TlPyIr *self = (TlPyIr *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    tl_arena_init(&self->arena, NULL);
    tl_diag_init(&self->diag, &self->arena);
    if (!tl_ir_init(&self->ir, &self->arena, &self->diag)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
ir_dealloc(TlPyIr *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tl_arena_free(&self->arena);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

#define FAST(name, doc) {#name, (PyCFunction)(void (*)(void))ir_##name, METH_FASTCALL, doc}
#define ONE(name, doc)  {#name, (PyCFunction)ir_##name, METH_O, doc}
static PyMethodDef ir_methods[] = {
    FAST(type, "type(kind, elem=None, shape=()) -> type"),
    FAST(buffer,
         "buffer(elem, dims, strides, dim_divisors, stride_divisors, align, flags) -> type; None: dynamic"),
    ONE(type_text, "type_text(type) -> str"),
    ONE(file, "file(name) -> file"),
    FAST(kernel, "kernel(name, loc=None, level='tile') -> kernel"),
    FAST(attr, "attr(kernel, key[, value]): sets or gets an attribute of a kernel"),
    ONE(body, "body(kernel) -> block"),
    ONE(block, "block(kernel) -> detached block"),
    FAST(arg, "arg(block, type, name) -> value"),
    FAST(op, "op(block, opcode, operands, types, attrs=None, regions=None, loc=None, name='') -> value(s) or "
             "None"),
    FAST(const, "const(block, type, value, loc=None) -> value: an int or float, splat over a tile"),
    FAST(name, "name(value, text): a hint for printing"),
    ONE(pure, "pure(block) -> number of operations if all are pure, else -1"),
    FAST(splice, "splice(from, to): moves the operations of a block to the end of another"),
    FAST(text, "text(kernel, locs=False) -> str"),
    FAST(parse, "parse(text, filename) -> first kernel"),
    FAST(passes,
         "passes(kernel, print_after=None, skip=None, only=None) -> (kernel, dump, times); without the GIL"),
    ONE(verify, "verify(kernel): raises CompileError with all faults"),
    {"diagnostics", (PyCFunction)ir_diagnostics, METH_NOARGS, "all diagnostics so far"},
    {0},
};

static PyType_Slot ir_slots[] = {
    {Py_tp_new, ir_new},
    {Py_tp_dealloc, ir_dealloc},
    {Py_tp_methods, ir_methods},
    {Py_tp_doc, "Builder of one compilation's tile IR; types, values, blocks and kernels are ints."},
    {0, NULL},
};

static PyType_Spec ir_spec = {
    .name = "tilelang._core.Ir",
    .basicsize = sizeof(TlPyIr),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = ir_slots,
};

/* _core.OPS: {name: (opcode, traits)} */
static PyObject *
op_table(void)
{
    PyObject *d = PyDict_New();
    for (int c = TL_OP_NONE + 1; d && c < TL_OP__COUNT; c++) {
        const TlOpRow *row = tl_op_row((TlOpcode)c);
        PyObject *v = Py_BuildValue("(iI)", c, row->traits);
        if (!v || PyDict_SetItemString(d, row->name, v) < 0)
            Py_CLEAR(d);
        Py_XDECREF(v);
    }
    return d;
}

int
tl_py_ir_exec(PyObject *module)
{
    TlPyState *st = tl_py_state(module);
    st->ir_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &ir_spec, NULL);
    if (!st->ir_type || PyModule_AddType(module, st->ir_type) < 0)
        return -1;
    PyObject *ops = op_table();
    int rc = ops ? PyModule_AddObjectRef(module, "OPS", ops) : -1;
    Py_XDECREF(ops);
    return rc;
}
