/* hip_proc.c - HIP: versions, errors, look-up of functions by name. */
#include "sim/hip.h"

static const struct {
    hipError_t code;
    const char *name, *text;
} errors[] = {
#define SIM_ERR(name, code, text) {name, #name, text},
#include "sim/hip_errors.def"
#undef SIM_ERR
};

static const struct {
    const char *name;
    void (*fn)(void);
} functions[] = {
#define SIM_HIP(name, args)            {#name, (void (*)(void))name},
#define SIM_HIP_AS(result, name, args) {#name, (void (*)(void))name},
#include "sim/hip_sim.def"
#undef SIM_HIP
#undef SIM_HIP_AS
};

hipError_t
hipInit(unsigned flags)
{
    if (flags)
        ANSWER(hipErrorInvalidValue);
    ANSWER(sim_hip_device_count() ? hipSuccess : hipErrorNoDevice);
}

hipError_t
hipDriverGetVersion(int *version)
{
    if (!version)
        RETURN(hipErrorInvalidValue);
    *version = SIM_HIP_VERSION;
    return hipSuccess;
}

hipError_t
hipRuntimeGetVersion(int *version)
{
    return hipDriverGetVersion(version);
}

/* The sticky error is never cleared. */
static hipError_t
last(bool clear)
{
    HipDevice *d;
    hipError_t sticky = sim_hip_check(&d), e = sim_hip_last(clear);
    return e != hipSuccess ? e : sticky;
}

hipError_t
hipGetLastError(void)
{
    return last(true);
}

hipError_t
hipExtGetLastError(void)
{
    return last(true);
}

hipError_t
hipPeekAtLastError(void)
{
    return last(false);
}

const char *
hipGetErrorName(hipError_t error)
{
    for (size_t i = 0; i < TL_COUNT(errors); i++)
        if (errors[i].code == error)
            return errors[i].name;
    return "hipErrorUnknown";
}

const char *
hipGetErrorString(hipError_t error)
{
    for (size_t i = 0; i < TL_COUNT(errors); i++)
        if (errors[i].code == error)
            return errors[i].text;
    return "unknown error";
}

static hipError_t
drv_text(hipError_t error, const char **text, bool name)
{
    if (!text)
        return hipErrorInvalidValue;
    *text = NULL;
    for (size_t i = 0; i < TL_COUNT(errors); i++)
        if (errors[i].code == error)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? hipSuccess : hipErrorInvalidValue;
}

hipError_t
hipDrvGetErrorName(hipError_t error, const char **text)
{
    return drv_text(error, text, true);
}

hipError_t
hipDrvGetErrorString(hipError_t error, const char **text)
{
    return drv_text(error, text, false);
}

const char *
hipApiName(uint32_t id)
{
    return id < TL_COUNT(functions) ? functions[id].name : "unknown";
}

static void *
look_up(const char *name)
{
    void *p = NULL;
    for (size_t i = 0; i < TL_COUNT(functions) && !p; i++)
        if (!strcmp(functions[i].name, name))
            memcpy(&p, &functions[i].fn, sizeof p);
    return p ? p : sim_hip_more(name);
}

hipError_t
hipGetProcAddress(const char *name, void **pfn, int version, uint64_t flags, int *status)
{
    (void)flags;
    if (!name || !pfn)
        ANSWER(hipErrorInvalidValue);
    /* Since HIP 6 the plain names mean the new layout. */
    if (version >= 600 && !strcmp(name, "hipGetDeviceProperties"))
        name = "hipGetDevicePropertiesR0600";
    if (version >= 600 && !strcmp(name, "hipChooseDevice"))
        name = "hipChooseDeviceR0600";
    *pfn = look_up(name);
    if (status)
        *status = *pfn ? 0 : 1; /* success, symbol not found */
    ANSWER(*pfn ? hipSuccess : hipErrorInvalidValue);
}

hipError_t
hipGetDriverEntryPoint(const char *name, void **pfn, unsigned long long flags, int *status)
{
    return hipGetProcAddress(name, pfn, SIM_HIP_VERSION / 100000, flags, status);
}
