/* hip_stream.c - HIP: streams and events. Work is done when its call returns, so waiting has nothing to wait
 * for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <time.h>

#include "sim/hip.h"

enum { EVENT_DISABLE_TIMING = 2, EVENT_FLAGS = 0xe0000007u & 0x7fffffff, STREAM_NON_BLOCKING = 1 };

static hipError_t
stream_new(void **stream, unsigned flags, int priority)
{
    HipDevice *d;
    hipError_t e = sim_hip_check(&d);
    if (!stream)
        return hipErrorInvalidValue;
    *stream = NULL;
    if (e != hipSuccess)
        return e;
    if (flags & ~(unsigned)STREAM_NON_BLOCKING)
        return hipErrorInvalidValue;
    HipStream *s = calloc(1, sizeof *s);
    if (!s)
        return hipErrorOutOfMemory;
    s->h = (Handle){HANDLE_STREAM, sim_hip_current()};
    s->flags = flags;
    s->priority = priority < -1 ? -1 : priority > 1 ? 1 : priority;
    if (!sim_hip_handle_add(&s->h)) {
        free(s);
        return hipErrorOutOfMemory;
    }
    *stream = s;
    return hipSuccess;
}

hipError_t
hipStreamCreate(void **stream)
{
    RETURN(stream_new(stream, 0, 0));
}

hipError_t
hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    RETURN(stream_new(stream, flags, 0));
}

hipError_t
hipStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    RETURN(stream_new(stream, flags, priority));
}

hipError_t
hipStreamDestroy(void *stream)
{
    if ((uintptr_t)stream <= 2)
        RETURN(hipErrorInvalidHandle);
    if (!sim_hip_handle_remove(stream, HANDLE_STREAM))
        RETURN(hipErrorContextIsDestroyed);
    free(stream);
    RETURN(hipSuccess);
}

/* The state of what a stream has run. */
static hipError_t
stream_state(void *stream)
{
    if (!sim_hip_stream_ok(stream))
        return hipErrorContextIsDestroyed;
    HipDevice *d = (uintptr_t)stream > 2 ? sim_hip_device(((HipStream *)stream)->h.device)
                                         : sim_hip_device(sim_hip_current());
    return d ? d->sticky : hipErrorNoDevice;
}

hipError_t
hipStreamSynchronize(void *stream)
{
    RETURN(stream_state(stream));
}

hipError_t
hipStreamQuery(void *stream)
{
    RETURN(stream_state(stream));
}

hipError_t
hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    if (flags > 1)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    RETURN(sim_hip_stream_ok(stream) ? hipSuccess : hipErrorContextIsDestroyed);
}

hipError_t
hipStreamGetFlags(void *stream, unsigned *flags)
{
    if (!flags)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    *flags = (uintptr_t)stream > 2 ? ((HipStream *)stream)->flags : 0;
    RETURN(hipSuccess);
}

hipError_t
hipStreamGetPriority(void *stream, int *priority)
{
    if (!priority)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    *priority = (uintptr_t)stream > 2 ? ((HipStream *)stream)->priority : 0;
    RETURN(hipSuccess);
}

hipError_t
hipStreamGetDevice(void *stream, int *device)
{
    if (!device)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    *device = (uintptr_t)stream > 2 ? ((HipStream *)stream)->h.device : sim_hip_current();
    RETURN(hipSuccess);
}

hipError_t
hipStreamIsCapturing(void *stream, int *status)
{
    if (!status)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    *status = 0;
    RETURN(hipSuccess);
}

hipError_t
hipStreamAddCallback(void *stream, void (*fn)(void *, hipError_t, void *), void *user, unsigned flags)
{
    if (!fn || flags)
        RETURN(hipErrorInvalidValue);
    hipError_t e = stream_state(stream);
    if (e == hipErrorContextIsDestroyed)
        RETURN(e);
    fn(stream, e, user);
    RETURN(hipSuccess);
}

hipError_t
hipLaunchHostFunc(void *stream, void (*fn)(void *), void *user)
{
    if (!fn)
        RETURN(hipErrorInvalidValue);
    hipError_t e = stream_state(stream);
    if (e == hipSuccess)
        fn(user);
    RETURN(e);
}

/* ---- events ---- */

static hipError_t
event_new(void **event, unsigned flags)
{
    hipError_t e = sim_hip_check(NULL);
    if (!event)
        return hipErrorInvalidValue;
    *event = NULL;
    if (e != hipSuccess)
        return e;
    if (flags & ~(unsigned)EVENT_FLAGS)
        return hipErrorInvalidValue;
    HipEvent *ev = calloc(1, sizeof *ev);
    if (!ev)
        return hipErrorOutOfMemory;
    ev->h = (Handle){HANDLE_EVENT, sim_hip_current()};
    ev->flags = flags;
    if (!sim_hip_handle_add(&ev->h)) {
        free(ev);
        return hipErrorOutOfMemory;
    }
    *event = ev;
    return hipSuccess;
}

hipError_t
hipEventCreate(void **event)
{
    RETURN(event_new(event, 0));
}

hipError_t
hipEventCreateWithFlags(void **event, unsigned flags)
{
    RETURN(event_new(event, flags));
}

hipError_t
hipEventDestroy(void *event)
{
    if (!sim_hip_handle_remove(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    free(event);
    RETURN(hipSuccess);
}

hipError_t
hipEventRecord(void *event, void *stream)
{
    struct timespec ts;
    HipEvent *ev = event;
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ev->ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    ev->recorded = true;
    RETURN(hipSuccess);
}

hipError_t
hipEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    if (flags > 1)
        RETURN(hipErrorInvalidValue);
    return hipEventRecord(event, stream);
}

hipError_t
hipEventSynchronize(void *event)
{
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    HipDevice *d = sim_hip_device(((HipEvent *)event)->h.device);
    RETURN(d ? d->sticky : hipErrorNoDevice);
}

hipError_t
hipEventQuery(void *event)
{
    return hipEventSynchronize(event);
}

hipError_t
hipEventElapsedTime(float *ms, void *start, void *stop)
{
    HipEvent *a = start, *b = stop;
    if (!ms)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_handle_valid(start, HANDLE_EVENT) || !sim_hip_handle_valid(stop, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    if (!a->recorded || !b->recorded || (a->flags | b->flags) & EVENT_DISABLE_TIMING)
        RETURN(hipErrorInvalidHandle);
    *ms = (float)((double)(int64_t)(b->ns - a->ns) / 1e6);
    RETURN(hipSuccess);
}
