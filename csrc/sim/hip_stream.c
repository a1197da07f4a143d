/* hip_stream.c - HIP: streams and events. Work is done when its call returns, so waiting has nothing to wait
 * for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "sim/hip_graph.h"

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, EVENT_FLAGS = 7, STREAM_NON_BLOCKING = 1 };

static atomic_uint_fast64_t last_stream;

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
    s->id = atomic_fetch_add(&last_stream, 1) + 1;
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
    sim_hip_capture_leave(stream);
    free(stream);
    RETURN(hipSuccess);
}

/* The state of what a stream has run. */
static hipError_t
stream_state(void *stream)
{
    hipError_t e = sim_hip_wait_stream(stream);
    if (e != hipSuccess)
        return e;
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
    bool done;
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    RETURN(sim_hip_capture_wait(stream, event, flags, &done));
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
hipStreamGetId(void *stream, unsigned long long *id)
{
    if (!id)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    *id = (uintptr_t)stream > 2 ? ((HipStream *)stream)->id + 2 : (uintptr_t)stream;
    RETURN(hipSuccess);
}

int
hipGetStreamDeviceId(void *stream)
{
    int device = -1;
    return hipStreamGetDevice(stream, &device) == hipSuccess ? device : -1;
}

/* Compute units cannot be set aside: a mask is taken and means nothing. */
hipError_t
hipExtStreamCreateWithCUMask(void **stream, unsigned words, const uint32_t *mask)
{
    if (!words || !mask)
        RETURN(hipErrorInvalidValue);
    RETURN(stream_new(stream, 0, 0));
}

hipError_t
hipExtStreamGetCUMask(void *stream, unsigned words, uint32_t *mask)
{
    if (!mask || !words)
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    const HipDevice *d = sim_hip_device(sim_hip_current());
    for (unsigned i = 0; i < words; i++) {
        uint32_t n = d && d->sim->cus > 32 * i ? d->sim->cus - 32 * i : 0;
        mask[i] = n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
    }
    RETURN(hipSuccess);
}

hipError_t
hipStreamWriteValue32(void *stream, void *p, uint32_t value, unsigned flags)
{
    if (!p || flags)
        RETURN(hipErrorInvalidValue);
    return hipMemsetD32Async(p, (int)value, 1, stream);
}

hipError_t
hipStreamWriteValue64(void *stream, void *p, uint64_t value, unsigned flags)
{
    HipStream *capturing;
    if (!p || flags)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess && capturing)
        e = hipErrorStreamCaptureUnsupported;
    RETURN(e == hipSuccess ? sim_hip_copy(p, &value, sizeof value, 4) : e);
}

enum { WAIT_GTE, WAIT_EQ, WAIT_AND, WAIT_NOR };

/* Everything before it is done, so the value is there or nobody will write it. */
static hipError_t
wait_value(void *stream, void *p, uint64_t value, unsigned how, uint64_t mask, size_t size)
{
    static atomic_bool said;
    HipStream *capturing;
    HipDevice *d;
    uint64_t now = 0;
    if (!p || how > WAIT_NOR || (uintptr_t)p % size)
        return hipErrorInvalidValue;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess && capturing)
        e = hipErrorStreamCaptureUnsupported;
    if (e == hipSuccess && !sim_hip_range_ok(p, size, &d))
        e = hipErrorInvalidValue;
    if (e != hipSuccess)
        return e;
    sim_dm_read(&now, (uint64_t)p, size);
    uint64_t all = size == 4 ? UINT32_MAX : UINT64_MAX;
    bool there = how == WAIT_GTE   ? (now & mask) >= value
                 : how == WAIT_EQ  ? (now & mask) == value
                 : how == WAIT_AND ? (now & mask & value) != 0
                                   : (~((now & mask) | (value & mask)) & all) != 0;
    return there ? hipSuccess : sim_hip_refuse("waiting for a value that is still to be written", &said);
}

hipError_t
hipStreamWaitValue32(void *stream, void *p, uint32_t value, unsigned flags, uint32_t mask)
{
    RETURN(wait_value(stream, p, value, flags, mask, sizeof value));
}

hipError_t
hipStreamWaitValue64(void *stream, void *p, uint64_t value, unsigned flags, uint64_t mask)
{
    RETURN(wait_value(stream, p, value, flags, mask, sizeof value));
}

hipError_t
hipStreamAddCallback(void *stream, void (*fn)(void *, hipError_t, void *), void *user, unsigned flags)
{
    if (!fn || flags)
        RETURN(hipErrorInvalidValue);
    hipError_t e = stream_state(stream);
    if (e == hipErrorContextIsDestroyed || e == hipErrorStreamCaptureUnsupported ||
        e == hipErrorStreamCaptureImplicit)
        RETURN(e);
    fn(stream, e, user);
    RETURN(hipSuccess);
}

hipError_t
hipLaunchHostFunc(void *stream, void (*fn)(void *), void *user)
{
    HipStream *capturing;
    if (!fn)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess && capturing)
        RETURN(sim_hip_capture(capturing, &(Node){.kind = NODE_HOST, .fn = fn, .user = user}));
    if (e == hipSuccess)
        e = stream_state(stream);
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
    unsigned fence = flags >> 29; /* of the system, the device, or none: one of them */
    if ((flags & 0x1fffffffu & ~(unsigned)EVENT_FLAGS) || fence & (fence - 1) ||
        (flags & EVENT_INTERPROCESS && !(flags & EVENT_DISABLE_TIMING)))
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
    sim_hip_capture_forget(event);
    free(event);
    RETURN(hipSuccess);
}

hipError_t
sim_hip_record(void *event)
{
    struct timespec ts;
    HipEvent *ev = event;
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        return hipErrorInvalidHandle;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ev->ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    ev->recorded = true;
    return hipSuccess;
}

static hipError_t
record(void *event, void *stream, unsigned flags)
{
    HipStream *capturing;
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        return hipErrorInvalidHandle;
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e != hipSuccess)
        return e;
    if (capturing)
        return sim_hip_capture_record(capturing, event, flags);
    int device = (uintptr_t)stream > 2 ? ((HipStream *)stream)->h.device : sim_hip_current();
    if (((HipEvent *)event)->h.device != device)
        return hipErrorInvalidHandle;
    if (((HipEvent *)event)->capture)
        sim_hip_capture_forget(event);
    return sim_hip_record(event);
}

hipError_t
hipEventRecord(void *event, void *stream)
{
    RETURN(record(event, stream, 0));
}

hipError_t
hipEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    RETURN(flags > 1 ? hipErrorInvalidValue : record(event, stream, flags));
}

hipError_t
hipEventSynchronize(void *event)
{
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidHandle);
    hipError_t e = sim_hip_wait_event(event);
    HipDevice *d = sim_hip_device(((HipEvent *)event)->h.device);
    RETURN(e != hipSuccess ? e : d ? d->sticky : hipErrorNoDevice);
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
