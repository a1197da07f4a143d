/* launch.h - inside of the launcher: declared parameters, one call's arguments, checks and the specialisation
 * key. */
#ifndef TL_PY_LAUNCH_H
#define TL_PY_LAUNCH_H

#include "py/device.h"
#include "py/dlpack.h"

enum { LAUNCH_MAX_PARAMS = TL_BINARY_MAX_PARAMS };

typedef enum DimOp {
    DIM_CONST,
    DIM_SYMBOL,
    DIM_ADD,
    DIM_SUB,
    DIM_MUL,
    DIM_FLOORDIV,
    DIM_MOD,
    DIM_MIN,
    DIM_MAX
} DimOp;
typedef struct DimNode { /* a tree: a and b are nodes, or a is the symbol, or value the constant */
    DimOp op;
    uint32_t a, b;
    int64_t value;
} DimNode;

typedef enum ParamKind { PARAM_BUFFER, PARAM_SCALAR, PARAM_CONST } ParamKind;
typedef struct LaunchParam {
    ParamKind kind;
    uint8_t elem; /* TL_ELEM_NONE: open */
    bool any_rank;
    uint8_t rank;
    uint32_t dims[TL_TENSOR_MAX_RANK]; /* nodes */
    PyObject *name, *preset;           /* str (interned); default or NULL */
    char *who, *text;                  /* "matmul: parameter A"; the annotation as written */
} LaunchParam;

typedef struct TlPyLauncher {
    PyObject_HEAD vectorcallfunc call;
    TlPyState *st;
    PyObject *name, *specialize, *module; /* module keeps st alive */
    uint32_t nparams, nconsts;
    LaunchParam *params;
    TL_VEC(DimNode) nodes;
    TL_VEC(PyObject *) symbols; /* str, owned */
    TlArena arena;              /* of nodes and symbols */
    PyObject *cache;            /* dict: key -> Binary */
    TlPyBinary *last, *fixed;   /* last run, or NULL; the one of an ahead-of-time kernel, or NULL */
    PyObject *general; /* callable: fixed's twin for arguments that overlap or span far; NULL: refused */
    TlPyBinary *twin;  /* what it gave, or NULL */
    char *last_key;    /* of last_hit */
    size_t last_key_size;
    TlPyBinary *last_hit;
    PyObject **last_consts; /* nconsts, owned */
} TlPyLauncher;

typedef struct LaunchArg { /* one argument of a call */
    PyObject *object;      /* borrowed */
    bool none;             /* a buffer left out */
    TlTensor t;
    TlTensorClass cls;
    uintptr_t lo, hi;
    uint64_t scalar; /* bytes of the slot */
    TlHold hold;
} LaunchArg;

typedef struct LaunchCall {
    TlPyLauncher *self;
    LaunchArg *args; /* nparams */
    TlPyHip *hip;
    int device;
    PyObject *stream_from; /* the first tensor */
} LaunchCall;

/* Reads and checks all arguments against the declaration and finds the device. False with an exception. */
bool tl_launch_read(LaunchCall *c, PyObject *const *values);
void tl_launch_release(LaunchCall *c);
/* Bytes that tell calls apart that need different code (constants apart). Returns the size; at most
 * tl_launch_key_max(). */
size_t tl_launch_key(const LaunchCall *c, char *key);
size_t tl_launch_key_max(const TlPyLauncher *self);
/* The same for Python: (device_kind, device_index, arch, params). New reference. */
PyObject *tl_launch_key_object(const LaunchCall *c);
/* Do the arguments fit code that was compiled for b->requires (the params part of such a key)? */
bool tl_launch_requires(const LaunchCall *c, const TlPyBinary *b);
/* Does a buffer overlap another, one of the two written by b, or need 64-bit addresses? */
bool tl_launch_general(const LaunchCall *c, const TlPyBinary *b);
/* Stored-to arguments: writable, no element twice. */
bool tl_launch_outputs(const LaunchCall *c, const TlPyBinary *b);
/* A Python or NumPy number as the bytes of a scalar of this type. */
bool tl_launch_scalar(TlPyState *st, const LaunchParam *p, PyObject *value, uint64_t *out);
/* "A: what" as LaunchError / LaunchTypeError. Returns false. */
bool tl_launch_refuse(TlPyState *st, TlPyError which, const LaunchParam *p, const char *fmt, ...);

#endif
