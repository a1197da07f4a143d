/* runtime.h - HIP by table, loaded code, tensors as a launch sees them. No Python here.
 *
 * A TlHip is one bound library: the ROCm runtime, or the simulator (the same table on another file).
 * Functions that talk to a device return HIP's error number, 0 = success. Tensor functions are pure. Nothing
 * keeps global state.
 */
#ifndef TL_RUNTIME_H
#define TL_RUNTIME_H

#include "base/base.h"

/* ---- libraries
 * ----------------------------------------------------------------------------------------------- */

enum { TL_HIP_NO_DEVICE = 100, TL_HIP_PATH_MAX = 512, TL_HIP_MAX_DEVICES = 64 };

typedef enum TlHipKind { TL_HIP_ROCM, TL_HIP_SIM } TlHipKind;

typedef struct TlHip {
    TlHipKind kind;
    void *lib;
    char path[TL_HIP_PATH_MAX]; /* as found, for messages */
    int version;                /* hipDriverGetVersion, 0 = unknown */
    int ndevices;
    char arch[TL_HIP_MAX_DEVICES][32]; /* "gfx942": target features cut off */
    int cus[TL_HIP_MAX_DEVICES];
#define TL_HIP(name, optional, result, args) result(*name) args;
#include "runtime/hip_api.def"
#undef TL_HIP
} TlHip;

/* Finds and binds a library and asks it for its devices. ROCM: a libamdhip64.so that the process has already
 * mapped, then `path` (TILELANG_HIP_LIB; NULL = none), then the system's names. SIM: `path` alone. On failure
 * false with a message for the user in err; *h is then zero. A bound library stays loaded for the life of the
 * process. */
bool tl_hip_open(TlHip *h, TlHipKind kind, const char *path, char *err, size_t err_size);

/* ---- loaded code
 * --------------------------------------------------------------------------------------------- */

typedef struct TlLoaded { /* one code object on one device */
    void *module, *function;
} TlLoaded;

/* The current device is set to `device` for the call and put back. */
int tl_hip_load(const TlHip *h, int device, const void *code, const char *symbol, TlLoaded *out);
int tl_hip_unload(const TlHip *h, int device, TlLoaded *l); /* waits for the device first */
int tl_hip_launch(const TlHip *h, int device, void *function, const uint32_t grid[3], uint32_t block,
                  void *stream, const void *kernarg, size_t kernarg_size);

/* ---- tensors
 * ------------------------------------------------------------------------------------------------- */

enum { TL_TENSOR_MAX_RANK = 8 };

typedef struct TlTensor {
    uint8_t *ptr;                                                   /* element [0, ..., 0] */
    int64_t shape[TL_TENSOR_MAX_RANK], strides[TL_TENSOR_MAX_RANK]; /* strides in elements, any sign */
    uint8_t elem;                                                   /* the caller's element number */
    uint8_t itemsize;
    uint8_t rank;
    uint8_t rocm; /* device memory of the ROCm runtime; else host memory */
    uint8_t readonly;
    int32_t device;
} TlTensor;

typedef struct TlTensorClass {           /* what a specialisation may depend on */
    int64_t dims[TL_TENSOR_MAX_RANK];    /* -d: a multiple of d (1, 2, 4, 8, 16) */
    int64_t strides[TL_TENSOR_MAX_RANK]; /* 0, 1, or -d */
    uint32_t align;                      /* bytes, 1..16 */
    uint32_t flags;                      /* TL_CLASS_* */
} TlTensorClass;
/* The same bits as the IR's buffer flags. BIG: 2 GiB and more from first to last byte, or a negative stride.
 */
enum { TL_CLASS_NOALIAS = 1, TL_CLASS_DENSE = 2, TL_CLASS_BIG = 4 };

/* Dims of size 1 (or all, when some dim is 0) get the stride that row-major order would give them: their own
 * says nothing. */
void tl_tensor_canonical(TlTensor *t);
int64_t
tl_tensor_numel(const TlTensor *t); /* shapes are non-negative and the product fits (checked on import) */
/* Bytes that its elements lie in: [lo, hi); empty when it has none. False: the numbers overflow. */
bool tl_tensor_span(const TlTensor *t, uintptr_t *lo, uintptr_t *hi);
/* True when the strides prove that no two elements share an address. */
bool tl_tensor_injective(const TlTensor *t);
/* Everything but NOALIAS. t is canonical. */
void tl_tensor_class(const TlTensor *t, TlTensorClass *out);

/* Workgroups along one axis: the product of ceil(dim / C) over triples (param, axis, C); param -1: the dim is
 * `axis` itself. tensors[i] is tile parameter i (NULL where it is no buffer). False: out of range (more than
 * 2^31 - 1). */
bool tl_grid_size(const int64_t *triples, uint32_t n, const TlTensor *const *tensors, uint64_t *out);

#endif
