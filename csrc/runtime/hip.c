/* hip.c - finds the HIP library, binds its functions by the rows of hip_api.def, loads code and launches it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include "runtime/runtime.h"

enum { PROPERTIES_SIZE = 1472, PROPERTIES_CUS = 388, PROPERTIES_ARCH = 1160 }; /* hipDeviceProp_tR0600 */

/* ---- finding
 * ------------------------------------------------------------------------------------------------- */

static int
find_mapped(struct dl_phdr_info *info, size_t size, void *self)
{
    (void)size;
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    const char *base = strrchr(name, '/');
    if (strncmp(base ? base + 1 : name, "libamdhip64.so", 14) != 0 || strlen(name) >= TL_HIP_PATH_MAX)
        return 0;
    memcpy(self, name, strlen(name) + 1);
    return 1;
}

static void *
open_rocm(const char *named, char *path, char *err, size_t err_size)
{
    static const char *const names[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                        "/opt/rocm/lib/libamdhip64.so"};
    void *lib = NULL;
    if (dl_iterate_phdr(find_mapped, path) && (lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)))
        return lib;
    if (named && *named) {
        snprintf(path, TL_HIP_PATH_MAX, "%s", named);
        lib = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (!lib)
            snprintf(err, err_size, "TILELANG_HIP_LIB=%s cannot be loaded: %s", named, dlerror());
        return lib;
    }
    for (size_t i = 0; i < TL_COUNT(names) && !lib; i++) {
        snprintf(path, TL_HIP_PATH_MAX, "%s", names[i]);
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!lib)
        snprintf(err, err_size,
                 "no ROCm runtime is installed: libamdhip64.so was not found (set TILELANG_HIP_LIB to its "
                 "path; tensors "
                 "in CPU memory run on the simulator and need none)");
    return lib;
}

/* ---- binding
 * ------------------------------------------------------------------------------------------------- */

typedef int (*GetProcAddress)(const char *name, void **fn, int version, uint64_t flags, int *status);

static void *
lookup(const TlHip *h, GetProcAddress get, const char *name)
{
    void *fn = NULL;
    int status = 0;
    if (get && strncmp(name, "hip", 3) == 0 && get(name, &fn, h->version, 0, &status) == 0 && fn)
        return fn;
    return dlsym(h->lib, name);
}

static bool
bind(TlHip *h, char *err, size_t err_size)
{
    GetProcAddress get = NULL;
    int (*version)(int *) = NULL;
    void *fn = dlsym(h->lib, "hipGetProcAddress");
    memcpy(&get, &fn, sizeof fn);
    fn = dlsym(h->lib, "hipDriverGetVersion");
    memcpy(&version, &fn, sizeof fn);
    if (!version || version(&h->version) != 0) {
        h->version = 0;
        get = NULL;
    }
#define TL_HIP(name, optional, result, args)                                                                 \
    fn = lookup(h, get, #name);                                                                              \
    memcpy(&h->name, &fn, sizeof fn);                                                                        \
    if (!fn && !optional) {                                                                                  \
        snprintf(err, err_size, "%s is no HIP runtime that tilelang can use: it has no %s", h->path, #name); \
        return false;                                                                                        \
    }
#include "runtime/hip_api.def"
#undef TL_HIP
    return true;
}

static bool
ask_devices(TlHip *h, char *err, size_t err_size)
{
    union {
        char bytes[PROPERTIES_SIZE + 2624]; /* room for a runtime whose structure is longer */
        uint64_t align;
    } prop;
    int code = h->hipInit(0);
    if (code == 0)
        code = h->hipGetDeviceCount(&h->ndevices);
    if ((code == TL_HIP_NO_DEVICE || (code == 0 && h->ndevices <= 0)) && h->tlsim_no_device) {
        char why[400];
        h->tlsim_no_device(why, sizeof why);
        snprintf(err, err_size, "the simulator has no device: %s", why);
        return false;
    }
    if (code == TL_HIP_NO_DEVICE || (code == 0 && h->ndevices <= 0)) {
        snprintf(err, err_size,
                 "the HIP runtime %s is installed, but it finds no AMD GPU (%s). Tensors in CPU memory run "
                 "on the simulator "
                 "instead",
                 h->path, h->hipGetErrorName(TL_HIP_NO_DEVICE));
        return false;
    }
    for (int i = 0; code == 0 && i < TL_MIN(h->ndevices, TL_HIP_MAX_DEVICES); i++) {
        memset(&prop, 0, sizeof prop);
        code = h->hipGetDevicePropertiesR0600(&prop, i);
        memcpy(h->arch[i], prop.bytes + PROPERTIES_ARCH, sizeof h->arch[i] - 1);
        h->arch[i][strcspn(h->arch[i], ":")] = '\0';
        memcpy(&h->cus[i], prop.bytes + PROPERTIES_CUS, sizeof h->cus[i]);
    }
    if (code != 0) {
        snprintf(err, err_size, "the HIP runtime %s does not start: %s (%s)", h->path,
                 h->hipGetErrorString(code), h->hipGetErrorName(code));
        return false;
    }
    h->ndevices = TL_MIN(h->ndevices, TL_HIP_MAX_DEVICES);
    return true;
}

bool
tl_hip_open(TlHip *h, TlHipKind kind, const char *path, char *err, size_t err_size)
{
    memset(h, 0, sizeof *h);
    h->kind = kind;
    if (kind == TL_HIP_ROCM) {
        h->lib = open_rocm(path, h->path, err, err_size);
    } else {
        snprintf(h->path, sizeof h->path, "%s", path ? path : "");
        h->lib = dlopen(h->path, RTLD_NOW | RTLD_LOCAL);
        if (!h->lib)
            snprintf(err, err_size, "the simulator cannot be loaded: %s", dlerror());
    }
    if (h->lib && bind(h, err, err_size) && ask_devices(h, err, err_size))
        return true;
    memset(h, 0, sizeof *h); /* the library stays mapped: one that has started threads must not go */
    return false;
}

/* ---- code
 * ---------------------------------------------------------------------------------------------------- */

/* Makes `device` current; *before is what to put back, -1 = nothing. */
static int
enter(const TlHip *h, int device, int *before)
{
    int current = 0;
    *before = -1;
    int code = h->hipGetDevice(&current);
    if (code == 0 && current != device) {
        code = h->hipSetDevice(device);
        if (code == 0)
            *before = current;
    }
    return code;
}

static int
leave(const TlHip *h, int before, int code)
{
    if (code != 0)
        h->hipGetLastError(); /* ours has been reported: not for the next caller */
    if (before >= 0) {
        int back = h->hipSetDevice(before);
        code = code ? code : back;
    }
    return code;
}

int
tl_hip_load(const TlHip *h, int device, const void *code, const char *symbol, TlLoaded *out)
{
    int before;
    int error = enter(h, device, &before);
    memset(out, 0, sizeof *out);
    if (error == 0)
        error = h->hipModuleLoadData(&out->module, code);
    if (error == 0) {
        error = h->hipModuleGetFunction(&out->function, out->module, symbol);
        if (error != 0) {
            h->hipModuleUnload(out->module);
            memset(out, 0, sizeof *out);
        }
    }
    return leave(h, before, error);
}

int
tl_hip_unload(const TlHip *h, int device, TlLoaded *l)
{
    int before;
    int error = enter(h, device, &before);
    if (error == 0 && l->module) {
        h->hipDeviceSynchronize();
        error = h->hipModuleUnload(l->module);
    }
    memset(l, 0, sizeof *l);
    return leave(h, before, error);
}

int
tl_hip_launch(const TlHip *h, int device, void *function, const uint32_t grid[3], uint32_t block,
              void *stream, const void *kernarg, size_t kernarg_size)
{
    int before;
    int error = enter(h, device, &before);
    /* HIP's tags: 1 = the block of arguments, 2 = its size, 3 = end of the list */
    void *extra[] = {(void *)1, (void *)(uintptr_t)kernarg, (void *)2, &kernarg_size, (void *)3};
    if (error == 0)
        error = h->hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block, 1, 1, 0, stream, NULL,
                                         extra);
    return leave(h, before, error);
}
