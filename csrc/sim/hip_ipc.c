/* hip_ipc.c - HIP: memory of another process. A handle names the process and a file of it that its memory is;
 * what processes do to it at once is not checked. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/hip.h"

typedef struct Name { /* what a handle holds */
    uint32_t magic, process;
    int32_t fd, pad;
    uint64_t size, offset;
} Name;

enum { MAGIC = 0x746c6970, LAZY_PEER_ACCESS = 1 };

hipError_t
hipIpcGetMemHandle(SimIpcHandle *handle, void *p)
{
    SimExtent x;
    if (!handle || !p)
        RETURN(hipErrorInvalidValue);
    HipDevice *d = sim_hip_owner(p, &x);
    int fd = d ? sim_device_share(d->sim, x.base) : -1;
    if (fd < 0)
        RETURN(hipErrorInvalidValue);
    Name n = {.magic = MAGIC, .process = (uint32_t)getpid(), .fd = fd, .size = x.size};
    n.offset = (uint64_t)p - x.base;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &n, sizeof n);
    RETURN(hipSuccess);
}

hipError_t
hipIpcOpenMemHandle(void **p, SimIpcHandle handle, unsigned flags)
{
    HipDevice *d;
    Name n;
    char path[64];
    hipError_t e = sim_hip_check(&d);
    memcpy(&n, &handle, sizeof n);
    if (!p || flags & ~(unsigned)LAZY_PEER_ACCESS || n.magic != MAGIC || n.offset >= n.size)
        RETURN(hipErrorInvalidValue);
    *p = NULL;
    if (e != hipSuccess)
        RETURN(e);
    if (n.process == (uint32_t)getpid())
        RETURN(hipErrorInvalidContext);
    snprintf(path, sizeof path, "/proc/%u/fd/%d", n.process, n.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *base = fd < 0 ? NULL : sim_mem_attach(d->sim->mem, fd, n.size);
    if (fd >= 0)
        close(fd);
    if (!base) /* it was freed, or the process is gone or another user's */
        RETURN(hipErrorInvalidDevicePointer);
    *p = (char *)base + n.offset;
    RETURN(hipSuccess);
}

hipError_t
hipIpcCloseMemHandle(void *p)
{
    SimExtent x;
    HipDevice *d = p ? sim_hip_owner(p, &x) : NULL;
    if (!d || !(x.tag & SIM_TAG_IPC) || !sim_device_release(d->sim, x.base, SIM_EXT_MALLOC))
        RETURN(hipErrorInvalidValue);
    RETURN(hipSuccess);
}
