/* t_launch.c - type `Launcher`: the call of a kernel: binds arguments, checks them, finds or makes the code,
 * launches.
 *
 * The hot path (same classes of arguments as the call before) touches Python objects only to read the
 * tensors.
 */
#include <stdlib.h>
#include "py/launch.h"

/* ---- construction
 * -------------------------------------------------------------------------------------------- */

static bool
bad(const char *what)
{
    PyErr_Format(PyExc_ValueError, "Launcher: %s", what);
    return false;
}

static bool
no_memory(void)
{
    PyErr_NoMemory();
    return false;
}

/* A dim of the declaration as nodes; nesting is bounded by the caller's recursion check. */
static bool
parse_dim(TlPyLauncher *self, PyObject *dim, uint32_t *out, int depth)
{
    static const struct {
        const char *name;
        DimOp op;
    } ops[] = {{"+", DIM_ADD}, {"-", DIM_SUB},   {"*", DIM_MUL},  {"//", DIM_FLOORDIV},
               {"%", DIM_MOD}, {"min", DIM_MIN}, {"max", DIM_MAX}};
    DimNode n = {DIM_CONST, 0, 0, 0};
    if (PyUnicode_Check(dim)) {
        n.op = DIM_SYMBOL;
        while (n.a < self->symbols.len && PyUnicode_Compare(self->symbols.data[n.a], dim) != 0)
            n.a++;
        if (n.a == self->symbols.len) {
            if (!tl_vec_push(&self->arena, &self->symbols, dim))
                return no_memory();
            Py_INCREF(dim);
        }
    } else if (PyTuple_Check(dim)) {
        const char *name;
        PyObject *a, *b;
        uint32_t i = 0;
        if (depth > 50)
            return bad("a dimension is too deeply nested");
        if (!PyArg_ParseTuple(dim, "sOO", &name, &a, &b))
            return false;
        while (i < TL_COUNT(ops) && strcmp(name, ops[i].name) != 0)
            i++;
        if (i == TL_COUNT(ops))
            return bad("a dimension has an unknown operation");
        n.op = ops[i].op;
        if (!parse_dim(self, a, &n.a, depth + 1) || !parse_dim(self, b, &n.b, depth + 1))
            return false;
    } else {
        n.value = PyLong_AsLongLong(dim);
        if (n.value == -1 && PyErr_Occurred())
            return false;
    }
    *out = self->nodes.len;
    return tl_vec_push(&self->arena, &self->nodes, n) || no_memory();
}

static bool
parse_param(TlPyLauncher *self, PyObject *row, LaunchParam *p)
{
    static const char *const kinds[] = {"buffer", "scalar", "const"};
    const char *kind, *text;
    PyObject *name, *elem, *dims, *preset = NULL;
    int k = 0;
    if (!PyTuple_Check(row))
        return bad("a parameter is a tuple");
    if (!PyArg_ParseTuple(row, "sUOOs|O", &kind, &name, &elem, &dims, &text, &preset))
        return false;
    while (k < 3 && strcmp(kind, kinds[k]) != 0)
        k++;
    if (k == 3)
        return bad("a parameter is \"buffer\", \"scalar\" or \"const\"");
    p->kind = (ParamKind)k;
    p->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&p->name);
    p->preset = Py_XNewRef(preset);
    if (elem != Py_None) {
        const char *e = PyUnicode_Check(elem) ? PyUnicode_AsUTF8(elem) : "";
        p->elem = (uint8_t)(e ? tl_elem_by_name(e, strlen(e)) : TL_ELEM_NONE);
        if (p->elem == TL_ELEM_NONE)
            return bad("a parameter has an unknown element type");
    }
    if (p->kind == PARAM_SCALAR && p->elem == TL_ELEM_NONE)
        return bad("a scalar has an element type");
    const char *utf8 = PyUnicode_AsUTF8(name), *kernel = PyUnicode_AsUTF8(self->name);
    if (!utf8 || !kernel)
        return false;
    p->who = tl_arena_printf(&self->arena, "%s: parameter %s", kernel, utf8);
    p->text = tl_arena_strdup(&self->arena, text, strlen(text));
    if (!p->who || !p->text)
        return no_memory();
    p->any_rank = dims == Py_None;
    if (p->any_rank)
        return true;
    if (!PyTuple_Check(dims) || PyTuple_GET_SIZE(dims) > TL_TENSOR_MAX_RANK)
        return bad("dims is None or a tuple of at most 8");
    p->rank = (uint8_t)PyTuple_GET_SIZE(dims);
    for (uint32_t i = 0; i < p->rank; i++)
        if (!parse_dim(self, PyTuple_GET_ITEM(dims, i), &p->dims[i], 0))
            return false;
    return true;
}

static PyObject *launcher_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static bool
launcher_fill(TlPyLauncher *self, PyObject *params)
{
    Py_ssize_t n = PyTuple_GET_SIZE(params);
    if (n > LAUNCH_MAX_PARAMS)
        return bad("more than 64 parameters");
    self->params = PyMem_Calloc((size_t)n + 1, sizeof *self->params);
    self->cache = PyDict_New();
    if (!self->params || !self->cache)
        return no_memory();
    for (Py_ssize_t i = 0; i < n; i++) {
        self->nparams++;
        if (!parse_param(self, PyTuple_GET_ITEM(params, i), &self->params[i]))
            return false;
        self->nconsts += self->params[i].kind == PARAM_CONST;
    }
    self->last_key = PyMem_Malloc(tl_launch_key_max(self));
    self->last_consts = PyMem_Calloc(self->nconsts + 1, sizeof *self->last_consts);
    return self->last_key && self->last_consts ? true : no_memory();
}

static PyObject *
launcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "params", "specialize", "fixed", "general", NULL};
    PyObject *name, *params, *specialize, *fixed = Py_None, *general = Py_None;
    TlPyState *st = tl_py_state_of(type);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O|OO:Launcher", names, &name, &PyTuple_Type, &params,
                                     &specialize, &fixed, &general))
        return NULL;
    if (fixed != Py_None && !Py_IS_TYPE(fixed, st->binary_type))
        return PyErr_Format(PyExc_TypeError, "Launcher: fixed is a Binary or None");
    TlPyLauncher *self = (TlPyLauncher *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    tl_arena_init(&self->arena, NULL);
    self->call = launcher_vectorcall;
    self->st = st;
    self->module = Py_NewRef(PyType_GetModule(type));
    self->name = Py_NewRef(name);
    self->specialize = Py_NewRef(specialize);
    self->fixed = fixed == Py_None ? NULL : (TlPyBinary *)Py_NewRef(fixed);
    self->general = general == Py_None ? NULL : Py_NewRef(general);
    bool ok = launcher_fill(self, params);
    for (uint32_t i = 0; ok && self->fixed && i < self->fixed->nparams; i++)
        if (self->fixed->params[i] >= self->nparams)
            ok = bad("fixed names a parameter that is not there");
    if (!ok)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int
launcher_traverse(PyObject *o, visitproc visit, void *arg)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(self->module);
    Py_VISIT(self->specialize);
    Py_VISIT(self->cache);
    Py_VISIT(self->last);
    Py_VISIT(self->fixed);
    Py_VISIT(self->general);
    Py_VISIT(self->twin);
    Py_VISIT(self->last_hit);
    for (uint32_t i = 0; self->params && i < self->nparams; i++)
        Py_VISIT(self->params[i].preset);
    for (uint32_t i = 0; self->last_consts && i < self->nconsts; i++)
        Py_VISIT(self->last_consts[i]);
    return 0;
}

static int
launcher_clear(PyObject *o)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    Py_CLEAR(self->specialize);
    Py_CLEAR(self->cache);
    Py_CLEAR(self->last);
    Py_CLEAR(self->fixed);
    Py_CLEAR(self->general);
    Py_CLEAR(self->twin);
    Py_CLEAR(self->last_hit);
    for (uint32_t i = 0; self->params && i < self->nparams; i++)
        Py_CLEAR(self->params[i].preset);
    for (uint32_t i = 0; self->last_consts && i < self->nconsts; i++)
        Py_CLEAR(self->last_consts[i]);
    return 0;
}

static void
launcher_dealloc(PyObject *o)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyTypeObject *type = Py_TYPE(o);
    PyObject_GC_UnTrack(o);
    launcher_clear(o);
    for (uint32_t i = 0; self->params && i < self->nparams; i++)
        Py_CLEAR(self->params[i].name);
    for (uint32_t i = 0; i < self->symbols.len; i++)
        Py_DECREF(self->symbols.data[i]);
    Py_CLEAR(self->name);
    Py_CLEAR(self->module);
    PyMem_Free(self->params);
    PyMem_Free(self->last_key);
    PyMem_Free(self->last_consts);
    tl_arena_free(&self->arena);
    type->tp_free(o);
    Py_DECREF(type);
}

/* ---- binding
 * ------------------------------------------------------------------------------------------------- */

static bool
bind_error(TlPyLauncher *self, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PyObject *text = PyUnicode_FromFormatV(fmt, ap);
    va_end(ap);
    if (text)
        tl_py_raise(self->st, TL_PY_LaunchTypeError, "%U: %U", self->name, text);
    Py_XDECREF(text);
    return false;
}

static bool
bind_keyword(TlPyLauncher *self, PyObject *name, PyObject *value, PyObject **values)
{
    uint32_t i = 0;
    while (i < self->nparams && self->params[i].name != name)
        i++;
    for (uint32_t k = 0; i == self->nparams && k < self->nparams; k++)
        if (PyUnicode_Compare(self->params[k].name, name) == 0)
            i = k;
    if (i == self->nparams)
        return bind_error(self, "there is no parameter %U", name);
    if (values[i])
        return bind_error(self, "parameter %U is given twice", name);
    values[i] = value;
    return true;
}

/* Fills in what was left out; values are borrowed. */
static bool
bind_presets(TlPyLauncher *self, PyObject **values)
{
    for (uint32_t i = 0; i < self->nparams; i++) {
        if (values[i])
            continue;
        if (!self->params[i].preset)
            return bind_error(self, "parameter %U is missing", self->params[i].name);
        values[i] = self->params[i].preset;
    }
    return true;
}

static bool
bind_positional(TlPyLauncher *self, PyObject *const *args, size_t n, PyObject **values)
{
    if (n > self->nparams)
        return bind_error(self, "takes %u argument%s, got %zu", self->nparams, self->nparams == 1 ? "" : "s",
                          n);
    for (size_t i = 0; i < self->nparams; i++)
        values[i] = i < n ? args[i] : NULL;
    return true;
}

/* The same from a tuple and a dict (or NULL, or None). */
static bool
bind_objects(TlPyLauncher *self, PyObject *args, PyObject *kwargs, PyObject **values)
{
    if (!PyTuple_Check(args) || (kwargs && kwargs != Py_None && !PyDict_Check(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Launcher: args is a tuple, kwargs a dict");
        return false;
    }
    if (!bind_positional(self, PySequence_Fast_ITEMS(args), (size_t)PyTuple_GET_SIZE(args), values))
        return false;
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (kwargs && kwargs != Py_None && PyDict_Next(kwargs, &pos, &key, &value))
        if (!PyUnicode_Check(key) || !bind_keyword(self, key, value, values))
            return false;
    return bind_presets(self, values);
}

/* ---- code for the arguments
 * ---------------------------------------------------------------------------------- */

static bool
same_consts(const TlPyLauncher *self, const LaunchCall *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; self->nconsts && i < self->nparams; i++)
        if (self->params[i].kind == PARAM_CONST && self->last_consts[n++] != c->args[i].object)
            return false;
    return true;
}

/* bytes, or (bytes, type, value, ...) when there are constants. */
static PyObject *
dict_key(const TlPyLauncher *self, const LaunchCall *c, const char *key, size_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(key, (Py_ssize_t)size);
    if (!bytes || !self->nconsts)
        return bytes;
    PyObject *t = PyTuple_New(1 + 2 * (Py_ssize_t)self->nconsts);
    if (!t) {
        Py_DECREF(bytes);
        return NULL;
    }
    Py_ssize_t n = 0;
    PyTuple_SET_ITEM(t, n++, bytes);
    for (uint32_t i = 0; i < self->nparams; i++)
        if (self->params[i].kind == PARAM_CONST) {
            PyTuple_SET_ITEM(t, n++, Py_NewRef(Py_TYPE(c->args[i].object)));
            PyTuple_SET_ITEM(t, n++, Py_NewRef(c->args[i].object));
        }
    return t;
}

/* What a callback made, if it is a Binary for these parameters; takes the reference. NULL with an exception.
 */
static TlPyBinary *
check_made(const TlPyLauncher *self, PyObject *made, const char *by)
{
    if (!made)
        return NULL;
    bool ok = true;
    if (!Py_IS_TYPE(made, self->st->binary_type)) {
        PyErr_Format(PyExc_TypeError, "Launcher: %s gave %s, not a Binary", by, Py_TYPE(made)->tp_name);
        ok = false;
    }
    for (uint32_t i = 0; ok && i < ((TlPyBinary *)made)->nparams; i++)
        if (((TlPyBinary *)made)->params[i] >= self->nparams)
            ok = bad("the Binary names a parameter that is not there");
    if (!ok)
        Py_CLEAR(made);
    return (TlPyBinary *)made;
}

static TlPyBinary *
make_binary(TlPyLauncher *self, const LaunchCall *c, PyObject *cache_key)
{
    PyObject *key = tl_launch_key_object(c);
    PyObject *made = key ? PyObject_CallOneArg(self->specialize, key) : NULL;
    Py_XDECREF(key);
    TlPyBinary *b = check_made(self, made, "specialize");
    if (b && PyDict_SetItem(self->cache, cache_key, (PyObject *)b) < 0)
        Py_CLEAR(b);
    return b;
}

/* The code of an ahead-of-time kernel that these arguments fit. New reference; NULL with an exception. */
static TlPyBinary *
fixed_binary(TlPyLauncher *self, const LaunchCall *c)
{
    TlPyBinary *b = self->fixed;
    if (self->general && tl_launch_general(c, b)) {
        if (!self->twin) {
            TlPyBinary *made = check_made(self, PyObject_CallNoArgs(self->general), "general");
            if (!made)
                return NULL;
            Py_XSETREF(self->twin, made);
        }
        b = self->twin;
    }
    Py_INCREF(b);
    if (b->requires != Py_None && !tl_launch_requires(c, b))
        Py_CLEAR(b);
    return b;
}

/* New reference; NULL with an exception. */
static TlPyBinary *
find_binary(TlPyLauncher *self, const LaunchCall *c)
{
    if (self->fixed)
        return fixed_binary(self, c);
    char key[8 + LAUNCH_MAX_PARAMS * (8 + 2 * TL_TENSOR_MAX_RANK)];
    size_t size = tl_launch_key(c, key);
    if (self->last_hit && size == self->last_key_size && memcmp(key, self->last_key, size) == 0 &&
        same_consts(self, c))
        return (TlPyBinary *)Py_NewRef(self->last_hit);
    PyObject *cache_key = dict_key(self, c, key, size);
    if (!cache_key)
        return NULL;
    PyObject *hit = PyDict_GetItemWithError(self->cache, cache_key);
    TlPyBinary *b = hit                ? (TlPyBinary *)Py_NewRef(hit)
                    : PyErr_Occurred() ? NULL
                                       : make_binary(self, c, cache_key);
    if (!b && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError) && self->nconsts &&
        PyObject_Hash(cache_key) == -1) {
        PyErr_Clear();
        bind_error(self, "a constexpr argument cannot be hashed");
    }
    Py_DECREF(cache_key);
    if (!b)
        return NULL;
    memcpy(self->last_key, key, size);
    self->last_key_size = size;
    Py_XSETREF(self->last_hit, (TlPyBinary *)Py_NewRef(b));
    uint32_t n = 0;
    for (uint32_t i = 0; self->nconsts && i < self->nparams; i++)
        if (self->params[i].kind == PARAM_CONST)
            Py_XSETREF(self->last_consts[n++], Py_NewRef(c->args[i].object));
    return b;
}

/* ---- launch
 * -------------------------------------------------------------------------------------------------- */

static bool
grid_limits(TlPyLauncher *self, const uint64_t grid[3])
{
    if (grid[0] > INT32_MAX || grid[1] > UINT16_MAX || grid[2] > UINT16_MAX)
        return tl_py_raise(self->st, TL_PY_LaunchError,
                           "%U: a grid of %llu x %llu x %llu workgroups is over the limit of 2147483647 x "
                           "65535 x 65535",
                           self->name, (unsigned long long)grid[0], (unsigned long long)grid[1],
                           (unsigned long long)grid[2]) != NULL;
    return true;
}

static bool
given_grid(TlPyLauncher *self, PyObject *given, uint64_t grid[3])
{
    PyObject *one[1] = {given}, *const *items = one;
    Py_ssize_t n = 1;
    if (PyTuple_Check(given) || PyList_Check(given)) {
        items = PySequence_Fast_ITEMS(given);
        n = PySequence_Fast_GET_SIZE(given);
    }
    if (n < 1 || n > 3)
        return bind_error(self, "grid: 1 to 3 numbers, got %zd", n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *index = PyNumber_Index(items[i]);
        long long v = index ? PyLong_AsLongLong(index) : -1;
        Py_XDECREF(index);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return bind_error(self, "grid: an int or a tuple of ints, got %R", given);
        }
        if (v < 0)
            return tl_py_raise(self->st, TL_PY_LaunchError, "%U: grid: %lld is negative", self->name, v) !=
                   NULL;
        grid[i] = (uint64_t)v;
    }
    return true;
}

static bool
find_grid(LaunchCall *c, const TlPyBinary *b, PyObject *given, uint64_t grid[3])
{
    TlPyLauncher *self = c->self;
    grid[0] = grid[1] = grid[2] = 1;
    if (given && given != Py_None)
        return given_grid(self, given, grid) && grid_limits(self, grid);
    if (!b->has_grid)
        return bind_error(
            self, "its grid cannot be inferred: call it as kernel[grid](...), or give grid= to tl.kernel");
    const TlTensor *tensors[TL_BINARY_MAX_PARAMS];
    for (uint32_t i = 0; i < b->nparams; i++)
        tensors[i] = &c->args[b->params[i]].t;
    for (int a = 0; a < 3; a++)
        if (b->grid_len[a] && !tl_grid_size(b->grid[a], b->grid_len[a], tensors, &grid[a]))
            grid[a] = UINT64_MAX;
    return grid_limits(self, grid);
}

static void
fill_kernarg(const LaunchCall *c, const TlPyBinary *b, uint64_t *out)
{
    for (uint32_t i = 0; i < b->nslots; i++) {
        const TlSlot *s = &b->slots[i];
        const LaunchArg *a = &c->args[b->params[s->param]];
        switch ((TlSlotKind)s->kind) {
        case TL_SLOT_PTR:
            out[i] = (uint64_t)(uintptr_t)a->t.ptr;
            break;
        case TL_SLOT_DIM:
            out[i] = (uint64_t)a->t.shape[s->axis];
            break;
        case TL_SLOT_STRIDE:
            out[i] = (uint64_t)a->t.strides[s->axis];
            break;
        case TL_SLOT_SCALAR:
            out[i] = a->scalar;
            break;
        }
    }
}

/* The simulator learns which bytes are elements of the tensors. */
static bool
register_tensors(const LaunchCall *c, uint64_t *ids)
{
    const TlHip *h = &c->hip->hip;
    for (uint32_t k = 0; k < c->self->nparams; k++) {
        const LaunchArg *a = &c->args[k];
        int64_t bytes[TL_TENSOR_MAX_RANK];
        ids[k] = 0;
        if (!h->tlsim_register || c->self->params[k].kind != PARAM_BUFFER || a->none || a->lo == a->hi)
            continue;
        for (uint32_t i = 0; i < a->t.rank; i++)
            bytes[i] = a->t.strides[i] * a->t.itemsize;
        ids[k] = h->tlsim_register(a->t.ptr, a->t.rank, a->t.shape, bytes, a->t.itemsize,
                                   PyUnicode_AsUTF8(c->self->params[k].name));
        if (!ids[k])
            return tl_launch_refuse(c->self->st, TL_PY_LaunchError, &c->self->params[k],
                                    "the simulator cannot take this tensor (out of memory)");
    }
    return true;
}

static void
unregister_tensors(const LaunchCall *c, const uint64_t *ids)
{
    for (uint32_t k = 0; k < c->self->nparams; k++)
        if (ids[k] && c->hip->hip.tlsim_unregister)
            c->hip->hip.tlsim_unregister(ids[k]);
}

static bool
launch(LaunchCall *c, TlPyBinary *b, PyObject *given)
{
    uint64_t grid[3], ids[LAUNCH_MAX_PARAMS] = {0}, small[64], *kernarg = small;
    if (!tl_launch_outputs(c, b) || !find_grid(c, b, given, grid))
        return false;
    if (!grid[0] || !grid[1] || !grid[2])
        return true;
    void *function = tl_py_binary_function(c->self->st, b, c->hip, c->device);
    if (!function)
        return false;
    if (b->nslots > TL_COUNT(small) && !(kernarg = PyMem_Malloc(b->nslots * sizeof *kernarg)))
        return no_memory();
    fill_kernarg(c, b, kernarg);
    const TlHip *h = &c->hip->hip;
    void *stream = h->kind == TL_HIP_ROCM && c->stream_from
                       ? tl_py_stream(c->self->st, c->stream_from, c->device)
                       : NULL;
    uint32_t size[3] = {(uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2]};
    bool ok = h->kind == TL_HIP_ROCM || register_tensors(c, ids);
    if (ok) {
        int code;
        Py_BEGIN_ALLOW_THREADS;
        code = tl_hip_launch(h, c->device, function, size, b->block, stream, kernarg,
                             b->nslots * sizeof *kernarg);
        Py_END_ALLOW_THREADS;
        if (code != 0) {
            char doing[256];
            snprintf(doing, sizeof doing, "launch of %s", PyUnicode_AsUTF8(c->self->name));
            tl_py_hip_raise(c->self->st, h, code, doing);
            ok = false;
        }
    }
    if (h->kind == TL_HIP_SIM)
        unregister_tensors(c, ids);
    if (kernarg != small)
        PyMem_Free(kernarg);
    return ok;
}

/* values are borrowed and complete. Returns the Binary (new reference), or NULL with an exception. */
static TlPyBinary *
run(TlPyLauncher *self, PyObject *const *values, PyObject *given, bool only_prepare)
{
    LaunchArg args[LAUNCH_MAX_PARAMS];
    LaunchCall c = {.self = self, .args = args};
    TlPyBinary *b = NULL;
    if (tl_launch_read(&c, values))
        b = find_binary(self, &c);
    if (b) {
        Py_XSETREF(self->last, (TlPyBinary *)Py_NewRef(b));
        if (!only_prepare && !launch(&c, b, given))
            Py_CLEAR(b);
    }
    tl_launch_release(&c);
    return b;
}

static PyObject *
launcher_vectorcall(PyObject *o, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyObject *values[LAUNCH_MAX_PARAMS];
    size_t n = (size_t)PyVectorcall_NARGS(nargsf);
    if (!bind_positional(self, args, n, values))
        return NULL;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (!bind_keyword(self, PyTuple_GET_ITEM(kwnames, i), args[n + (size_t)i], values))
            return NULL;
    if (!bind_presets(self, values))
        return NULL;
    TlPyBinary *b = run(self, values, NULL, false);
    if (!b)
        return NULL;
    Py_DECREF(b);
    Py_RETURN_NONE;
}

/* ---- methods
 * ------------------------------------------------------------------------------------------------- */

static PyObject *
launcher_launch(PyObject *o, PyObject *args)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyObject *grid, *pos, *kwargs = NULL, *values[LAUNCH_MAX_PARAMS];
    if (!PyArg_ParseTuple(args, "OO|O:launch", &grid, &pos, &kwargs) ||
        !bind_objects(self, pos, kwargs, values))
        return NULL;
    TlPyBinary *b = run(self, values, grid, false);
    if (!b)
        return NULL;
    Py_DECREF(b);
    Py_RETURN_NONE;
}

static PyObject *
launcher_prepare(PyObject *o, PyObject *args)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyObject *pos, *kwargs = NULL, *values[LAUNCH_MAX_PARAMS];
    if (!PyArg_ParseTuple(args, "O|O:prepare", &pos, &kwargs) || !bind_objects(self, pos, kwargs, values))
        return NULL;
    return (PyObject *)run(self, values, NULL, true);
}

static PyObject *
launcher_bind(PyObject *o, PyObject *args)
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyObject *pos, *kwargs = NULL, *values[LAUNCH_MAX_PARAMS];
    if (!PyArg_ParseTuple(args, "O|O:bind", &pos, &kwargs) || !bind_objects(self, pos, kwargs, values))
        return NULL;
    PyObject *out = PyTuple_New(self->nparams);
    for (uint32_t i = 0; out && i < self->nparams; i++)
        PyTuple_SET_ITEM(out, i, Py_NewRef(values[i]));
    return out;
}

static PyMethodDef launcher_methods[] = {
    {"launch", launcher_launch, METH_VARARGS,
     "launch(grid, args, kwargs=None): as a call, with the grid given: an int, a tuple of up to 3, or None."},
    {"prepare", launcher_prepare, METH_VARARGS,
     "prepare(args, kwargs=None) -> Binary: checks and specialises as a call does, and launches nothing."},
    {"bind", launcher_bind, METH_VARARGS,
     "bind(args, kwargs=None) -> tuple: every parameter's value, in order."},
    {NULL, NULL, 0, NULL},
};

static PyObject *
get_last(PyObject *o, void *Py_UNUSED(closure))
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    return Py_NewRef(self->last ? (PyObject *)self->last : Py_None);
}

static PyObject *
get_binaries(PyObject *o, void *Py_UNUSED(closure))
{
    TlPyLauncher *self = (TlPyLauncher *)o;
    PyObject *list = PyDict_Values(self->cache);
    if (list && self->fixed && PyList_Append(list, (PyObject *)self->fixed) < 0)
        Py_CLEAR(list);
    if (list && self->twin && PyList_Append(list, (PyObject *)self->twin) < 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *
get_name(PyObject *o, void *Py_UNUSED(closure))
{
    return Py_NewRef(((TlPyLauncher *)o)->name);
}

static PyGetSetDef launcher_getset[] = {
    {"name", get_name, NULL, "the kernel's name", NULL},
    {"last", get_last, NULL, "the Binary last run or prepared, or None", NULL},
    {"binaries", get_binaries, NULL, "all Binaries made so far, a list", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef launcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TlPyLauncher, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc,
     "Launcher(name, params, specialize, fixed=None, general=None)\n\nThe call of a kernel. params: one "
     "tuple a parameter: "
     "(kind, "
     "name, dtype or None, dims or None, annotation as written[, default]), kind \"buffer\", \"scalar\" or "
     "\"const\". specialize(key) makes a Binary for arguments of a kind not met before; key is (\"cpu\" or "
     "\"rocm\", device index, chip, params). fixed: the only Binary, general() its twin for arguments "
     "that overlap or need 64-bit addresses, else refused. LaunchError and LaunchTypeError name the "
     "parameter that does "
     "not fit."},
    {Py_tp_new, launcher_new},
    {Py_tp_dealloc, launcher_dealloc},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_clear, launcher_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_methods, launcher_methods},
    {Py_tp_getset, launcher_getset},
    {Py_tp_members, launcher_members},
    {0, NULL},
};
static PyType_Spec launcher_spec = {"tilelang._core.Launcher", sizeof(TlPyLauncher), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                    launcher_slots};

int
tl_py_launch_exec(PyObject *module)
{
    TlPyState *st = tl_py_state(module);
    st->launcher_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &launcher_spec, NULL);
    return st->launcher_type ? PyModule_AddType(module, st->launcher_type) : -1;
}
