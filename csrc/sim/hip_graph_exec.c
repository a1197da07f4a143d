/* hip_graph_exec.c - HIP: executable graphs: made, updated, run (contract in hip_graph.h). */
#include <stdlib.h>

#include "sim/hip_graph.h"

static hipError_t
instantiate(void **exec, void *graph, uint64_t flags)
{
    if (!exec || !sim_hip_handle_valid(graph, HANDLE_GRAPH) || ((Graph *)graph)->capturing)
        return hipErrorInvalidValue;
    Exec *x = calloc(1, sizeof *x);
    if (!x)
        return hipErrorOutOfMemory;
    x->h = (Handle){HANDLE_EXEC, sim_hip_current()};
    x->flags = flags;
    hipError_t e = sim_graph_clone(graph, false, &x->g);
    if (e == hipSuccess)
        e = sim_graph_order(x->g);
    if (e == hipSuccess && !sim_hip_handle_add(&x->h))
        e = hipErrorOutOfMemory;
    if (e != hipSuccess) {
        sim_graph_free(x->g);
        free(x);
        return e;
    }
    *exec = x;
    return hipSuccess;
}

hipError_t
hipGraphInstantiate(void **exec, void *graph, void **error_node, char *log, size_t size)
{
    if (error_node)
        *error_node = NULL;
    if (log && size)
        *log = 0;
    RETURN(instantiate(exec, graph, 0));
}

enum { FLAG_AUTO_FREE = 1, FLAG_UPLOAD = 2, FLAG_DEVICE_LAUNCH = 4, FLAG_NODE_PRIORITY = 8 };

static hipError_t
with_flags(void **exec, void *graph, uint64_t flags)
{
    static atomic_bool said;
    if (flags & ~(uint64_t)(FLAG_AUTO_FREE | FLAG_UPLOAD | FLAG_DEVICE_LAUNCH | FLAG_NODE_PRIORITY))
        return hipErrorInvalidValue;
    if (flags & FLAG_DEVICE_LAUNCH)
        return sim_hip_refuse("a graph that kernels launch (hipGraphInstantiateFlagDeviceLaunch)", &said);
    return instantiate(exec, graph, flags);
}

hipError_t
hipGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    RETURN(with_flags(exec, graph, flags));
}

typedef struct InstantiateParams { /* hipGraphInstantiateParams */
    void *error_node;
    unsigned long long flags;
    int result;
    void *stream;
} InstantiateParams;

hipError_t
hipGraphInstantiateWithParams(void **exec, void *graph, void *params)
{
    InstantiateParams *p = params;
    if (!p)
        RETURN(hipErrorInvalidValue);
    hipError_t e = with_flags(exec, graph, p->flags);
    p->error_node = NULL;
    p->result = e != hipSuccess; /* success, error */
    RETURN(e);
}

hipError_t
hipGraphExecGetFlags(void *exec, unsigned long long *flags)
{
    if (!flags || !sim_hip_handle_valid(exec, HANDLE_EXEC))
        RETURN(hipErrorInvalidValue);
    *flags = ((Exec *)exec)->flags;
    RETURN(hipSuccess);
}

enum { UPDATE_OK, UPDATE_ERROR, UPDATE_TOPOLOGY, UPDATE_NODE_TYPE };

/* May the nodes of b stand in for those of a? *at: the first of b that may not. */
static int
compare(const Graph *a, const Graph *b, void **at)
{
    if (a->n != b->n)
        return UPDATE_TOPOLOGY;
    for (size_t i = 0; i < a->n; i++) {
        const Node *p = a->order[i], *q = b->order[i];
        *at = (void *)q->source;
        if (p->kind != q->kind)
            return UPDATE_NODE_TYPE;
        if (p->ndeps != q->ndeps)
            return UPDATE_TOPOLOGY;
        int r = p->child ? compare(p->child, q->child, at) : UPDATE_OK;
        if (r != UPDATE_OK)
            return r;
    }
    *at = NULL;
    return UPDATE_OK;
}

/* Later changes name the nodes of the graph that was instantiated. */
static void
keep_sources(const Graph *a, Graph *b)
{
    for (size_t i = 0; i < a->n; i++) {
        b->order[i]->source = a->order[i]->source;
        if (a->order[i]->child)
            keep_sources(a->order[i]->child, b->order[i]->child);
    }
}

hipError_t
hipGraphExecUpdate(void *exec, void *graph, void **error_node, int *result)
{
    Exec *x = exec;
    Graph *fresh = NULL;
    void *at = NULL;
    int r = UPDATE_ERROR;
    if (error_node)
        *error_node = NULL;
    if (!sim_hip_handle_valid(exec, HANDLE_EXEC) || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_graph_clone(graph, false, &fresh);
    if (e == hipSuccess)
        e = sim_graph_order(fresh);
    if (e == hipSuccess && (r = compare(x->g, fresh, &at)) != UPDATE_OK)
        e = hipErrorGraphExecUpdateFailure;
    if (result)
        *result = r;
    if (error_node)
        *error_node = at;
    if (e == hipSuccess) {
        keep_sources(x->g, fresh);
        sim_graph_free(x->g);
        x->g = fresh;
    } else {
        sim_graph_free(fresh);
    }
    RETURN(e);
}

hipError_t
hipGraphExecDestroy(void *exec)
{
    Exec *x = exec;
    if (!sim_hip_handle_remove(exec, HANDLE_EXEC))
        RETURN(hipErrorInvalidValue);
    sim_graph_free(x->g);
    free(x);
    RETURN(hipSuccess);
}

/* ---- running ---- */

/* Where row y of slice z is behind the base; false: at no address. */
static bool
row_offset(const void *base, size_t z, size_t slice, size_t y, size_t pitch, size_t *offset)
{
    size_t slices, rows;
    if (__builtin_mul_overflow(z, slice, &slices) || __builtin_mul_overflow(y, pitch, &rows) ||
        __builtin_add_overflow(slices, rows, offset))
        return false;
    size_t most = PTRDIFF_MAX, low = (size_t)(uintptr_t)base;
    return !*offset || (low <= most && *offset <= most - low);
}

hipError_t
sim_hip_run_fill(const HipMemset *f)
{
    hipError_t e = hipSuccess;
    size_t width;
    if (!f->width)
        return sim_hip_check(NULL);
    if (__builtin_mul_overflow(f->width, f->element, &width) ||
        !sim_hip_rows_ok(f->dst, width, f->height, 1, f->pitch, 0))
        return hipErrorInvalidValue;
    for (size_t y = 0; y < f->height && e == hipSuccess; y++) {
        size_t at;
        if (!row_offset(f->dst, 0, 0, y, f->pitch, &at))
            return hipErrorInvalidValue;
        char *row = (char *)f->dst + at;
        e = sim_hip_fill(row, f->value, f->element, f->width);
    }
    return e;
}

hipError_t
sim_hip_run_copy(const HipCopy *c)
{
    hipError_t e = hipSuccess;
    if (!c->width || !c->height)
        return sim_hip_check(NULL);
    if (!sim_hip_rows_ok(c->dst, c->width, c->height, c->depth, c->dst_pitch, c->dst_slice) ||
        !sim_hip_rows_ok(c->src, c->width, c->height, c->depth, c->src_pitch, c->src_slice))
        return hipErrorInvalidValue;
    for (size_t z = 0; z < c->depth && e == hipSuccess; z++)
        for (size_t y = 0; y < c->height && e == hipSuccess; y++) {
            size_t to, from;
            if (!row_offset(c->dst, z, c->dst_slice, y, c->dst_pitch, &to) ||
                !row_offset(c->src, z, c->src_slice, y, c->src_pitch, &from))
                return hipErrorInvalidValue;
            e = sim_hip_copy(c->dst + to, c->src + from, c->width, c->kind);
        }
    return e;
}

static hipError_t run_graph(const Graph *g, void *stream);

static hipError_t
run_kernel(const Node *n)
{
    KernelParams p = n->kernel;
    size_t size = n->args_size;
    void *extra[] = {(void *)1, n->args, (void *)2, &size, (void *)3};
    p.params = NULL;
    p.extra = extra;
    return sim_hip_run(n->function, &p, NULL, n->cooperative);
}

static hipError_t
run_node(const Node *n, void *stream)
{
    if (n->disabled)
        return hipSuccess;
    switch (n->kind) {
    case NODE_EMPTY:
    case NODE_WAIT:
    case NODE_ALLOC:
    case NODE_FREE:
        return hipSuccess;
    case NODE_KERNEL:
        return run_kernel(n);
    case NODE_MEMSET:
        return sim_hip_run_fill(&n->fill);
    case NODE_COPY:
        return sim_hip_run_copy(&n->copy);
    case NODE_EVENT:
        return sim_hip_record(n->event);
    case NODE_HOST:
        n->fn(n->user);
        return hipSuccess;
    case NODE_GRAPH:
        return run_graph(n->child, stream);
    }
    return hipErrorUnknown;
}

static hipError_t
run_graph(const Graph *g, void *stream)
{
    hipError_t e = hipSuccess;
    for (size_t i = 0; i < g->n && e == hipSuccess; i++)
        e = run_node(g->order[i], stream);
    return e;
}

hipError_t
hipGraphLaunch(void *exec, void *stream)
{
    const Exec *x = exec;
    HipStream *capturing;
    if (!sim_hip_handle_valid(exec, HANDLE_EXEC))
        ANSWER(hipErrorInvalidValue);
    hipError_t e = sim_hip_enter(stream, &capturing);
    if (e == hipSuccess && capturing) {
        Node n = {.kind = NODE_GRAPH};
        if ((e = sim_graph_clone(x->g, true, &n.child)) == hipSuccess) {
            n.child->is_child = true;
            e = sim_hip_capture(capturing, &n);
        }
        ANSWER(e);
    }
    if (e == hipSuccess)
        e = sim_hip_check(NULL);
    if (e != hipSuccess)
        ANSWER(e);
    e = run_graph(x->g, stream);
    ANSWER(sim_hip_check(NULL) == hipSuccess ? e : hipSuccess); /* later calls say what a kernel of it did */
}

hipError_t
hipGraphUpload(void *exec, void *stream)
{
    if (!sim_hip_handle_valid(exec, HANDLE_EXEC))
        RETURN(hipErrorInvalidValue);
    RETURN(sim_hip_stream_ok(stream) ? hipSuccess : hipErrorContextIsDestroyed);
}
