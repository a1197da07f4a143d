/* hip_capture.c - HIP: stream capture. A capturing stream adds what it is asked to do to a graph; the nodes
 * that the next one depends on are kept with the stream. An event recorded there carries such a set of nodes
 * to other streams, which join the capture when they wait for it, and must be joined back before it ends.
 *
 * What a capture forbids: waiting for a capturing stream or a captured event, work on the legacy default
 * stream while a blocking stream captures (both make the capture invalid), and, unless the thread's mode or
 * that of the capture is relaxed, allocation and other calls that might wait. */
#include <stdatomic.h>
#include <stdlib.h>

#include "sim/hip_graph.h"

enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };
enum { STATUS_NONE, STATUS_ACTIVE, STATUS_INVALIDATED };
enum { STREAM_NON_BLOCKING = 1, EXTERNAL = 1 };

typedef struct Capture {
    uint64_t id;
    Graph *graph;
    bool own_graph; /* made by the capture; not by the client */
    bool invalid;
    int mode;
    pthread_t thread;
    HipStream *origin, *streams; /* all of them, linked by next_in_capture */
    struct Capture *next;
} Capture;

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_key_t per_thread; /* stands for hipStreamPerThread while it captures */
    Capture *list;
    atomic_uint n;
    uint64_t last_id;
} cap = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local int thread_mode = MODE_GLOBAL;

void
sim_hip_capture_fork(bool before)
{
    if (before)
        pthread_mutex_lock(&cap.lock);
    else
        pthread_mutex_unlock(&cap.lock);
}

/* ---- sets of nodes ---- */

static bool
set_copy(void ***to, size_t *nto, void *const *from, size_t n)
{
    void **p = n ? malloc(n * sizeof *p) : NULL;
    if (n && !p)
        return false;
    if (n)
        memcpy(p, from, n * sizeof *p);
    free(*to);
    *to = p;
    *nto = n;
    return true;
}

static bool
set_merge(void ***to, size_t *nto, void *const *from, size_t n)
{
    void **p = realloc(*to, (*nto + n + 1) * sizeof *p);
    if (!p)
        return false;
    *to = p;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < *nto && p[k] != from[i])
            k++;
        if (k == *nto)
            p[(*nto)++] = from[i];
    }
    return true;
}

/* ---- streams ---- */

static void
drop_per_thread(void *s)
{
    sim_hip_capture_leave(s);
    free(s);
}

static void
make_key(void)
{
    pthread_key_create(&cap.per_thread, drop_per_thread);
}

/* The object of a stream; NULL: the legacy stream, or a per-thread stream that never captured (create: make
 * it). */
static HipStream *
stream_object(void *stream, bool create)
{
    if ((uintptr_t)stream > 2)
        return stream;
    if ((uintptr_t)stream != 2)
        return NULL;
    pthread_once(&cap.once, make_key);
    HipStream *s = pthread_getspecific(cap.per_thread);
    if (!s && create && (s = calloc(1, sizeof *s))) {
        s->h = (Handle){HANDLE_STREAM, sim_hip_current()};
        s->flags = STREAM_NON_BLOCKING;
        if (pthread_setspecific(cap.per_thread, s)) {
            free(s);
            s = NULL;
        }
    }
    return s;
}

static void
join(Capture *c, HipStream *s)
{
    s->capture = c;
    s->next_in_capture = c->streams;
    c->streams = s;
}

static void
leave(HipStream *s)
{
    Capture *c = s->capture;
    HipStream **p = &c->streams;
    while (*p != s)
        p = &(*p)->next_in_capture;
    *p = s->next_in_capture;
    free(s->deps);
    s->capture = NULL;
    s->next_in_capture = NULL;
    s->deps = NULL;
    s->ndeps = 0;
}

/* Ends a capture; its graph is the caller's. */
static void
dissolve(Capture *c)
{
    while (c->streams)
        leave(c->streams);
    Capture **p = &cap.list;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    atomic_fetch_sub(&cap.n, 1);
    c->graph->capturing = false;
    free(c);
}

void
sim_hip_capture_leave(HipStream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&cap.lock);
    Capture *c = s->capture;
    if (c && c->origin == s) {
        Graph *g = c->own_graph ? c->graph : NULL;
        dissolve(c);
        sim_graph_free(g);
    } else if (c) {
        c->invalid = true; /* its work can no longer be joined */
        leave(s);
    }
    pthread_mutex_unlock(&cap.lock);
}

/* ---- what a capture forbids ---- */

/* Does the thread's mode forbid calls that might wait? Lock held. */
static bool
forbidden(void)
{
    if (thread_mode == MODE_RELAXED)
        return false;
    for (const Capture *c = cap.list; c; c = c->next) {
        bool own = pthread_equal(c->thread, pthread_self());
        if (c->mode == MODE_RELAXED)
            continue;
        if (own || (thread_mode == MODE_GLOBAL && c->mode == MODE_GLOBAL))
            return true;
    }
    return false;
}

hipError_t
sim_hip_unsafe(void)
{
    if (!atomic_load(&cap.n))
        return hipSuccess;
    pthread_mutex_lock(&cap.lock);
    bool no = forbidden();
    pthread_mutex_unlock(&cap.lock);
    return no ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

/* Work on the legacy stream would wait for every blocking stream. Lock held. */
static hipError_t
legacy(void)
{
    hipError_t e = hipSuccess;
    for (Capture *c = cap.list; c; c = c->next) {
        for (const HipStream *s = c->streams; s; s = s->next_in_capture) {
            if (s->flags & STREAM_NON_BLOCKING)
                continue;
            c->invalid = true;
            e = hipErrorStreamCaptureImplicit;
        }
    }
    return e;
}

/* With the lock, before something is done on a capturing stream. */
static hipError_t
join_capture(HipStream *s, void *out)
{
    if (((Capture *)s->capture)->invalid)
        return hipErrorStreamCaptureInvalidated;
    *(HipStream **)out = s;
    return hipSuccess;
}

/* The same before waiting for it. */
static hipError_t
spoil_capture(HipStream *s, void *out)
{
    (void)out;
    ((Capture *)s->capture)->invalid = true;
    return hipErrorStreamCaptureUnsupported;
}

static hipError_t
with_capture(void *stream, hipError_t (*capturing)(HipStream *s, void *out), void *out)
{
    hipError_t e = hipSuccess;
    if (!sim_hip_stream_ok(stream))
        return hipErrorContextIsDestroyed;
    if (!atomic_load(&cap.n))
        return hipSuccess;
    pthread_mutex_lock(&cap.lock);
    HipStream *s = stream_object(stream, false);
    if ((uintptr_t)stream <= 1)
        e = legacy();
    else if (s && s->capture)
        e = capturing(s, out);
    pthread_mutex_unlock(&cap.lock);
    return e;
}

hipError_t
sim_hip_enter(void *stream, HipStream **capturing)
{
    *capturing = NULL;
    return with_capture(stream, join_capture, capturing);
}

hipError_t
sim_hip_enter_sync(void)
{
    HipStream *capturing;
    hipError_t e = sim_hip_enter(NULL, &capturing);
    return e == hipSuccess ? sim_hip_unsafe() : e;
}

hipError_t
sim_hip_wait_stream(void *stream)
{
    return with_capture(stream, spoil_capture, NULL);
}

static Capture *
capture_by_id(uint64_t id)
{
    Capture *c = id ? cap.list : NULL;
    while (c && c->id != id)
        c = c->next;
    return c;
}

hipError_t
sim_hip_wait_event(HipEvent *ev)
{
    if (!atomic_load(&cap.n))
        return hipSuccess;
    pthread_mutex_lock(&cap.lock);
    Capture *c = capture_by_id(ev->capture);
    if (c)
        c->invalid = true;
    pthread_mutex_unlock(&cap.lock);
    return c ? hipErrorCapturedEvent : hipSuccess;
}

void
sim_hip_capture_forget(HipEvent *e)
{
    pthread_mutex_lock(&cap.lock);
    free(e->deps);
    e->deps = NULL;
    e->ndeps = 0;
    e->capture = 0;
    pthread_mutex_unlock(&cap.lock);
}

/* ---- capturing ---- */

hipError_t
sim_hip_capture(HipStream *s, const Node *proto)
{
    void *node;
    pthread_mutex_lock(&cap.lock);
    Capture *c = s->capture;
    /* a stream that left in between: sim_graph_add refuses and takes what proto owns */
    hipError_t e = sim_graph_add(&node, c ? c->graph : NULL, s->deps, s->ndeps, proto);
    if (e == hipSuccess && !set_copy(&s->deps, &s->ndeps, &node, 1))
        e = hipErrorOutOfMemory;
    if (e != hipSuccess && c)
        c->invalid = true;
    pthread_mutex_unlock(&cap.lock);
    return e;
}

hipError_t
sim_hip_capture_record(HipStream *s, HipEvent *ev, unsigned flags)
{
    if (flags & EXTERNAL)
        return sim_hip_capture(s, &(Node){.kind = NODE_EVENT, .event = ev});
    pthread_mutex_lock(&cap.lock);
    const Capture *c = s->capture;
    bool ok = c && set_copy(&ev->deps, &ev->ndeps, s->deps, s->ndeps);
    if (ok)
        ev->capture = c->id;
    pthread_mutex_unlock(&cap.lock);
    return ok ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t
sim_hip_capture_wait(void *stream, HipEvent *ev, unsigned flags, bool *done)
{
    hipError_t e = hipSuccess;
    *done = false;
    if (!atomic_load(&cap.n))
        return hipSuccess;
    pthread_mutex_lock(&cap.lock);
    Capture *from = capture_by_id(ev->capture);
    HipStream *s = stream_object(stream, from != NULL);
    Capture *to = s ? s->capture : NULL;
    *done = from || to;
    if (from && !s) {
        from->invalid = true;
        e = hipErrorStreamCaptureImplicit; /* the legacy stream cannot join */
    } else if (to && to->invalid) {
        e = hipErrorStreamCaptureInvalidated;
    } else if (to && !from && (flags & EXTERNAL)) {
        pthread_mutex_unlock(&cap.lock);
        return sim_hip_capture(s, &(Node){.kind = NODE_WAIT, .event = ev});
    } else if (to && from != to) { /* of another capture, or of none */
        to->invalid = true;
        if (from)
            from->invalid = true;
        e = from ? hipErrorStreamCaptureMerge : hipErrorStreamCaptureIsolation;
    } else if (from) {
        if (!to)
            join(from, s);
        if (!set_merge(&s->deps, &s->ndeps, ev->deps, ev->ndeps)) {
            from->invalid = true;
            e = hipErrorOutOfMemory;
        }
    }
    pthread_mutex_unlock(&cap.lock);
    return e;
}

static hipError_t
begin(void *stream, Graph *graph, void *const *deps, size_t ndeps, int mode)
{
    if (mode < MODE_GLOBAL || mode > MODE_RELAXED)
        return hipErrorInvalidValue;
    if (!sim_hip_stream_ok(stream))
        return hipErrorContextIsDestroyed;
    if ((uintptr_t)stream <= 1)
        return hipErrorStreamCaptureUnsupported;
    HipStream *s = stream_object(stream, true);
    Capture *c = s ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return hipErrorOutOfMemory;
    hipError_t e = s->capture ? hipErrorIllegalState : hipSuccess;
    c->graph = graph;
    if (e == hipSuccess && !graph) {
        e = sim_graph_new(&c->graph, true);
        c->own_graph = true;
    }
    pthread_mutex_lock(&cap.lock);
    if (e == hipSuccess && !set_copy(&s->deps, &s->ndeps, deps, ndeps)) {
        e = hipErrorOutOfMemory;
        if (c->own_graph)
            sim_graph_free(c->graph);
    }
    if (e == hipSuccess) {
        c->graph->capturing = true;
        c->id = ++cap.last_id;
        c->mode = mode;
        c->thread = pthread_self();
        c->origin = s;
        join(c, s);
        c->next = cap.list;
        cap.list = c;
        atomic_fetch_add(&cap.n, 1);
    } else {
        free(c);
    }
    pthread_mutex_unlock(&cap.lock);
    return e;
}

hipError_t
hipStreamBeginCapture(void *stream, int mode)
{
    RETURN(begin(stream, NULL, NULL, 0, mode));
}

hipError_t
hipStreamBeginCaptureToGraph(void *stream, void *graph, void *const *deps, const void *data, size_t ndeps,
                             int mode)
{
    if (data || !sim_hip_handle_valid(graph, HANDLE_GRAPH) || (ndeps && !deps) || ((Graph *)graph)->capturing)
        RETURN(hipErrorInvalidValue);
    for (size_t i = 0; i < ndeps; i++)
        if (!sim_hip_handle_valid(deps[i], HANDLE_NODE) || ((Node *)deps[i])->graph != graph)
            RETURN(hipErrorInvalidValue);
    RETURN(begin(stream, graph, deps, ndeps, mode));
}

static void
mark(Node *n) /* n and all that it depends on */
{
    if (n->placed)
        return;
    n->placed = true;
    for (size_t i = 0; i < n->ndeps; i++)
        mark(n->deps[i]);
}

/* Has every other stream of the capture been joined to the one that began it? */
static bool
all_joined(const Capture *c)
{
    for (Node *n = c->graph->first; n; n = n->next)
        n->placed = false;
    for (size_t i = 0; i < c->origin->ndeps; i++)
        mark(c->origin->deps[i]);
    for (const HipStream *s = c->streams; s; s = s->next_in_capture)
        for (size_t i = 0; i < s->ndeps; i++)
            if (!((Node *)s->deps[i])->placed)
                return false;
    return true;
}

hipError_t
hipStreamEndCapture(void *stream, void **graph)
{
    if (!graph)
        RETURN(hipErrorInvalidValue);
    *graph = NULL;
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    if ((uintptr_t)stream <= 1)
        RETURN(hipErrorIllegalState);
    pthread_mutex_lock(&cap.lock);
    HipStream *s = stream_object(stream, false);
    Capture *c = s ? s->capture : NULL;
    hipError_t e = hipSuccess;
    if (!c)
        e = hipErrorIllegalState;
    else if (c->origin != s)
        e = hipErrorStreamCaptureUnmatched;
    else if (c->mode != MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        e = hipErrorStreamCaptureWrongThread;
    if (e == hipSuccess) {
        Graph *g = c->graph;
        bool own = c->own_graph;
        e = c->invalid      ? hipErrorStreamCaptureInvalidated
            : all_joined(c) ? hipSuccess
                            : hipErrorStreamCaptureUnjoined;
        dissolve(c);
        if (e == hipSuccess)
            *graph = g;
        else if (own)
            sim_graph_free(g);
    }
    pthread_mutex_unlock(&cap.lock);
    RETURN(e);
}

/* ---- questions ---- */

static hipError_t
info(void *stream, int *status, unsigned long long *id, void **graph, void *const **deps, size_t *ndeps)
{
    if (!sim_hip_stream_ok(stream))
        return hipErrorContextIsDestroyed;
    pthread_mutex_lock(&cap.lock);
    HipStream *s = stream_object(stream, false);
    const Capture *c = s ? s->capture : NULL;
    *status = !c ? STATUS_NONE : c->invalid ? STATUS_INVALIDATED : STATUS_ACTIVE;
    if (c && id)
        *id = c->id;
    if (c && graph)
        *graph = c->graph;
    if (c && deps)
        *deps = s->deps;
    if (c && ndeps)
        *ndeps = s->ndeps;
    pthread_mutex_unlock(&cap.lock);
    return hipSuccess;
}

hipError_t
hipStreamIsCapturing(void *stream, int *status)
{
    RETURN(status ? info(stream, status, NULL, NULL, NULL, NULL) : hipErrorInvalidValue);
}

hipError_t
hipStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id)
{
    RETURN(status ? info(stream, status, id, NULL, NULL, NULL) : hipErrorInvalidValue);
}

hipError_t
hipStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                           void *const **deps, size_t *ndeps)
{
    RETURN(status ? info(stream, status, id, graph, deps, ndeps) : hipErrorInvalidValue);
}

hipError_t
hipStreamUpdateCaptureDependencies(void *stream, void **deps, size_t n, unsigned flags)
{
    hipError_t e = hipErrorIllegalState;
    if (flags > 1 || (n && !deps)) /* 0 adds, 1 replaces */
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    pthread_mutex_lock(&cap.lock);
    HipStream *s = stream_object(stream, false);
    const Capture *c = s ? s->capture : NULL;
    if (c && !c->invalid) {
        e = hipSuccess;
        for (size_t i = 0; i < n; i++)
            if (!sim_hip_handle_valid(deps[i], HANDLE_NODE) || ((Node *)deps[i])->graph != c->graph)
                e = hipErrorInvalidValue;
        if (e == hipSuccess &&
            !(flags ? set_copy(&s->deps, &s->ndeps, deps, n) : set_merge(&s->deps, &s->ndeps, deps, n)))
            e = hipErrorOutOfMemory;
    }
    pthread_mutex_unlock(&cap.lock);
    RETURN(e);
}

hipError_t
hipThreadExchangeStreamCaptureMode(int *mode)
{
    if (!mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        RETURN(hipErrorInvalidValue);
    int old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    RETURN(hipSuccess);
}
