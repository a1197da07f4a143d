/* device.h - Hip and Binary objects as the launcher sees them. */
#ifndef TL_PY_DEVICE_H
#define TL_PY_DEVICE_H

#include "py/py.h"
#include "runtime/runtime.h"

typedef struct TlPyHip {
    PyObject_HEAD TlHip hip;
} TlPyHip;

/* The opened library, borrowed; opened at first use. NULL with DeviceError. */
TlPyHip *tl_py_hip(TlPyState *st, TlHipKind kind);
/* Raises DeviceError, or SimulatorFault where the simulator has reports. Returns NULL. `doing`: "launch of
 * matmul". */
PyObject *tl_py_hip_raise(TlPyState *st, const TlHip *h, int code, const char *doing);

typedef enum TlSlotKind { TL_SLOT_PTR, TL_SLOT_DIM, TL_SLOT_STRIDE, TL_SLOT_SCALAR } TlSlotKind;
typedef struct TlSlot { /* one 8-byte slot of the kernel arguments */
    uint8_t kind, param, axis;
} TlSlot;

enum { TL_BINARY_MAX_PARAMS = 64 };

typedef struct TlPyBinary {
    PyObject_HEAD PyObject *code, *symbol, *owner,
                                               *
        requires; /* bytes, str, any, tuple or None */
    uint32_t nparams, nslots, block;
    uint16_t params[TL_BINARY_MAX_PARAMS]; /* launcher parameter of each tile-level parameter */
    uint64_t writes;                       /* bit i: tile-level parameter i is stored to */
    TlSlot *slots;
    bool has_grid;
    uint32_t grid_len[3];
    int64_t *grid[3]; /* triples */
    uint32_t nloaded;
    struct TlBinaryLoaded {
        TlPyHip *hip;
        int device;
        TlLoaded code;
    } *loaded;
} TlPyBinary;

/* The kernel on this device, loaded at first use; NULL with an exception. */
void *tl_py_binary_function(TlPyState *st, TlPyBinary *b, TlPyHip *hip, int device);

#endif
