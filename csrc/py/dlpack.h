/* dlpack.h - tensors of other libraries as TlTensor. The structures follow the DLPack ABI, major version 1.
 */
#ifndef TL_PY_DLPACK_H
#define TL_PY_DLPACK_H

#include "py/py.h"
#include "runtime/runtime.h"
#include "target/target.h"

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_ROCM = 10, DL_ROCM_HOST = 11, DL_FLAG_READ_ONLY = 1 };

typedef struct DlTensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* elements; strides NULL = row-major */
    uint64_t byte_offset;
} DlTensor;

typedef struct DlVersion {
    uint32_t major, minor;
} DlVersion;

typedef struct DlManaged { /* capsule "dltensor" */
    DlTensor tensor;
    void *context;
    void (*deleter)(struct DlManaged *self);
} DlManaged;

typedef struct DlManagedVersioned { /* capsule "dltensor_versioned" */
    DlVersion version;
    void *context;
    void (*deleter)(struct DlManagedVersioned *self);
    uint64_t flags;
    DlTensor tensor;
} DlManagedVersioned;

typedef struct DlExchange { /* capsule "dlpack_exchange_api" on a type */
    DlVersion version;
    struct DlExchange *previous; /* an older major version's table */
    void *allocator, *managed_from_object, *managed_to_object;
    int (*tensor_from_object)(void *object,
                              DlTensor *out); /* borrowed: shape and strides are the object's; may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
} DlExchange;

/* What has to be given back once a launch is over. */
typedef struct TlHold {
    DlManaged *old;
    DlManagedVersioned *versioned;
    PyObject *object; /* a stand-in that was made (detached), or NULL */
} TlHold;
void tl_hold_release(TlHold *h);

/* Reads `obj` as a tensor. `who` names the parameter in messages, `wants` is the annotation as written
 * (either may be NULL). *hold must be zeroed and is to be released after use, on failure too. False with an
 * exception: LaunchTypeError for what is no tensor or has an element type we do not know, LaunchError for one
 * that may not be used. */
bool tl_py_tensor(TlPyState *st, PyObject *obj, const char *who, const char *wants, TlTensor *out,
                  TlHold *hold);
/* Current stream of the library that obj comes from, for ROCm device `device`; NULL = the default stream. */
void *tl_py_stream(TlPyState *st, PyObject *obj, int device);

#endif
