/* hip_graph.c - HIP: explicit graphs. A node keeps copies of its parameters; an executable graph is the nodes
 * in an order that obeys their dependencies, run one after the other. Stream capture is not there. */
#include <stdlib.h>

#include "sim/hip.h"

typedef enum NodeKind { NODE_EMPTY, NODE_KERNEL, NODE_MEMSET, NODE_COPY, NODE_EVENT, NODE_HOST } NodeKind;

typedef struct Copy { /* rows of width bytes */
    char *dst;
    const char *src;
    size_t width, height, depth, dst_pitch, dst_slice, src_pitch, src_slice;
} Copy;

typedef struct Memset { /* hipMemsetParams */
    void *dst;
    unsigned element;
    size_t height, pitch;
    unsigned value;
    size_t width;
} Memset;

typedef struct KernelParams { /* hipKernelNodeParams */
    SimDim3 block;
    void **extra;
    void *function;
    SimDim3 grid;
    void **params;
    unsigned lds;
} KernelParams;

typedef struct Node {
    Handle h;
    NodeKind kind;
    struct Node *next, **deps;
    size_t ndeps;
    bool placed; /* while instantiating */
    KernelParams kernel;
    uint8_t *args;
    size_t args_size;
    Memset fill;
    Copy copy;
    void *event;
    void (*fn)(void *);
    void *user;
} Node;

typedef struct Graph {
    Handle h;
    Node *first, **last;
    size_t n;
} Graph;

typedef struct Exec {
    Handle h;
    Node *nodes; /* copies, in order */
    size_t n;
} Exec;

/* ---- graphs ---- */

hipError_t
hipGraphCreate(void **graph, unsigned flags)
{
    if (!graph || flags)
        RETURN(hipErrorInvalidValue);
    Graph *g = calloc(1, sizeof *g);
    if (!g)
        RETURN(hipErrorOutOfMemory);
    g->h = (Handle){HANDLE_GRAPH, sim_hip_current()};
    g->last = &g->first;
    if (!sim_hip_handle_add(&g->h)) {
        free(g);
        RETURN(hipErrorOutOfMemory);
    }
    *graph = g;
    RETURN(hipSuccess);
}

hipError_t
hipGraphDestroy(void *graph)
{
    Graph *g = graph;
    if (!sim_hip_handle_remove(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        sim_hip_handle_remove(n, HANDLE_NODE);
        free(n->deps);
        free(n->args);
        free(n);
    }
    free(g);
    RETURN(hipSuccess);
}

static bool
depend(Node *n, void *const *deps, size_t count)
{
    Node **all = count ? realloc(n->deps, (n->ndeps + count) * sizeof(Node *)) : n->deps;
    if (count && !all)
        return false;
    n->deps = all;
    for (size_t i = 0; i < count; i++)
        n->deps[n->ndeps++] = deps[i];
    return true;
}

static bool
nodes_valid(void *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!nodes || !sim_hip_handle_valid(nodes[i], HANDLE_NODE))
            return false;
    return true;
}

/* Adds a copy of *proto; takes proto->args, also on failure. */
static hipError_t
add(void **node, void *graph, void *const *deps, size_t ndeps, const Node *proto)
{
    hipError_t e = hipErrorInvalidValue;
    Graph *g = graph;
    Node *n = NULL;
    if (node && sim_hip_handle_valid(graph, HANDLE_GRAPH) && nodes_valid(deps, ndeps)) {
        e = hipErrorOutOfMemory;
        if ((n = malloc(sizeof *n))) {
            *n = *proto;
            n->h = (Handle){HANDLE_NODE, g->h.device};
            if (depend(n, deps, ndeps) && sim_hip_handle_add(&n->h)) {
                *g->last = n;
                g->last = &n->next;
                g->n++;
                *node = n;
                return hipSuccess;
            }
            free(n->deps);
            free(n);
        }
    }
    free(proto->args);
    return e;
}

hipError_t
hipGraphAddEmptyNode(void **node, void *graph, void *const *deps, size_t ndeps)
{
    RETURN(add(node, graph, deps, ndeps, &(Node){.kind = NODE_EMPTY}));
}

hipError_t
hipGraphAddKernelNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    Node n = {.kind = NODE_KERNEL};
    if (!params)
        RETURN(hipErrorInvalidValue);
    memcpy(&n.kernel, params, sizeof n.kernel);
    hipError_t e = sim_hip_function(n.kernel.function, &n.kernel.function);
    if (e == hipSuccess)
        e = sim_hip_pack(n.kernel.function, n.kernel.params, n.kernel.extra, &n.args, &n.args_size);
    RETURN(e == hipSuccess ? add(node, graph, deps, ndeps, &n) : e);
}

hipError_t
hipGraphAddMemsetNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    Node n = {.kind = NODE_MEMSET};
    if (!params)
        RETURN(hipErrorInvalidValue);
    memcpy(&n.fill, params, sizeof n.fill);
    if (n.fill.element != 1 && n.fill.element != 2 && n.fill.element != 4)
        RETURN(hipErrorInvalidValue);
    RETURN(add(node, graph, deps, ndeps, &n));
}

hipError_t
hipGraphAddMemcpyNode1D(void **node, void *graph, void *const *deps, size_t ndeps, void *dst, const void *src,
                        size_t n, int kind)
{
    (void)kind;
    Node c = {.kind = NODE_COPY, .copy = {.dst = dst, .src = src, .width = n, .height = 1, .depth = 1}};
    RETURN(add(node, graph, deps, ndeps, &c));
}

typedef struct Copy3D { /* hipMemcpy3DParms */
    void *src_array;
    size_t src_pos[3];
    struct {
        char *ptr;
        size_t pitch, xsize, ysize;
    } src;
    void *dst_array;
    size_t dst_pos[3];
    struct {
        char *ptr;
        size_t pitch, xsize, ysize;
    } dst;
    size_t extent[3];
    int kind;
} Copy3D;

hipError_t
hipGraphAddMemcpyNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    Copy3D p;
    if (!params)
        RETURN(hipErrorInvalidValue);
    memcpy(&p, params, sizeof p);
    if (p.src_array || p.dst_array)
        RETURN(hipErrorNotSupported);
    Node n = {.kind = NODE_COPY};
    n.copy = (Copy){.width = p.extent[0],
                    .height = p.extent[1],
                    .depth = p.extent[2],
                    .dst_pitch = p.dst.pitch,
                    .dst_slice = p.dst.pitch * p.dst.ysize,
                    .src_pitch = p.src.pitch,
                    .src_slice = p.src.pitch * p.src.ysize};
    n.copy.dst = p.dst.ptr + p.dst_pos[0] + p.dst_pos[1] * n.copy.dst_pitch + p.dst_pos[2] * n.copy.dst_slice;
    n.copy.src = p.src.ptr + p.src_pos[0] + p.src_pos[1] * n.copy.src_pitch + p.src_pos[2] * n.copy.src_slice;
    RETURN(add(node, graph, deps, ndeps, &n));
}

typedef struct DrvSide { /* half of HIP_MEMCPY3D */
    size_t x, y, z, lod;
    int type;
    char *host, *device;
    void *array;
    size_t pitch, height;
} DrvSide;

typedef struct DrvCopy3D { /* HIP_MEMCPY3D */
    DrvSide src, dst;
    size_t width, height, depth;
} DrvCopy3D;

static char *
drv_start(const DrvSide *s)
{
    char *p = s->type == 1 ? s->host : s->device; /* hipMemoryTypeHost */
    return p + s->x + s->y * s->pitch + s->z * s->pitch * s->height;
}

hipError_t
hipDrvGraphAddMemcpyNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params,
                         void *ctx)
{
    DrvCopy3D p;
    (void)ctx;
    if (!params)
        RETURN(hipErrorInvalidValue);
    memcpy(&p, params, sizeof p);
    if (p.src.type == 10 || p.dst.type == 10) /* hipMemoryTypeArray */
        RETURN(hipErrorNotSupported);
    Node n = {.kind = NODE_COPY};
    n.copy = (Copy){.dst = drv_start(&p.dst),
                    .src = drv_start(&p.src),
                    .width = p.width,
                    .height = p.height,
                    .depth = p.depth,
                    .dst_pitch = p.dst.pitch,
                    .dst_slice = p.dst.pitch * p.dst.height,
                    .src_pitch = p.src.pitch,
                    .src_slice = p.src.pitch * p.src.height};
    RETURN(add(node, graph, deps, ndeps, &n));
}

hipError_t
hipGraphAddEventRecordNode(void **node, void *graph, void *const *deps, size_t ndeps, void *event)
{
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidValue);
    RETURN(add(node, graph, deps, ndeps, &(Node){.kind = NODE_EVENT, .event = event}));
}

hipError_t
hipGraphAddEventWaitNode(void **node, void *graph, void *const *deps, size_t ndeps, void *event)
{
    if (!sim_hip_handle_valid(event, HANDLE_EVENT))
        RETURN(hipErrorInvalidValue);
    RETURN(add(node, graph, deps, ndeps, &(Node){.kind = NODE_EMPTY}));
}

typedef struct HostParams { /* hipHostNodeParams */
    void (*fn)(void *);
    void *user;
} HostParams;

hipError_t
hipGraphAddHostNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    HostParams p;
    if (!params)
        RETURN(hipErrorInvalidValue);
    memcpy(&p, params, sizeof p);
    if (!p.fn)
        RETURN(hipErrorInvalidValue);
    RETURN(add(node, graph, deps, ndeps, &(Node){.kind = NODE_HOST, .fn = p.fn, .user = p.user}));
}

hipError_t
hipGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t n)
{
    if (!sim_hip_handle_valid(graph, HANDLE_GRAPH) || !nodes_valid(from, n) || !nodes_valid(to, n))
        RETURN(hipErrorInvalidValue);
    for (size_t i = 0; i < n; i++)
        if (!depend(to[i], &from[i], 1))
            RETURN(hipErrorOutOfMemory);
    RETURN(hipSuccess);
}

hipError_t
hipGraphGetNodes(void *graph, void **nodes, size_t *n)
{
    const Graph *g = graph;
    if (!n || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    size_t i = 0;
    for (Node *p = g->first; p && nodes && i < *n; p = p->next)
        nodes[i++] = p;
    *n = nodes ? i : g->n;
    RETURN(hipSuccess);
}

/* ---- executable graphs ---- */

static void
exec_clear(Exec *x)
{
    for (size_t i = 0; i < x->n; i++)
        free(x->nodes[i].args);
    free(x->nodes);
    x->nodes = NULL;
    x->n = 0;
}

static bool
ready(const Node *n)
{
    for (size_t i = 0; i < n->ndeps; i++)
        if (!n->deps[i]->placed)
            return false;
    return !n->placed;
}

/* Fills x with copies of g's nodes, first come first served among those whose dependencies are done. */
static hipError_t
order(Exec *x, Graph *g)
{
    if (!(x->nodes = calloc(g->n ? g->n : 1, sizeof *x->nodes)))
        return hipErrorOutOfMemory;
    for (Node *n = g->first; n; n = n->next)
        n->placed = false;
    while (x->n < g->n) {
        Node *n = g->first;
        while (n && !ready(n))
            n = n->next;
        if (!n)
            return hipErrorInvalidValue; /* a cycle */
        Node *c = &x->nodes[x->n];
        *c = *n;
        c->args = NULL;
        c->deps = NULL;
        if (n->args) {
            if (!(c->args = malloc(n->args_size ? n->args_size : 1)))
                return hipErrorOutOfMemory;
            memcpy(c->args, n->args, n->args_size);
        }
        n->placed = true;
        x->n++;
    }
    return hipSuccess;
}

static hipError_t
instantiate(void **exec, void *graph)
{
    if (!exec || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        return hipErrorInvalidValue;
    Exec *x = calloc(1, sizeof *x);
    hipError_t e = x ? order(x, graph) : hipErrorOutOfMemory;
    if (x)
        x->h = (Handle){HANDLE_EXEC, sim_hip_current()};
    if (e == hipSuccess && !sim_hip_handle_add(&x->h))
        e = hipErrorOutOfMemory;
    if (e != hipSuccess && x) {
        exec_clear(x);
        free(x);
    }
    if (e == hipSuccess)
        *exec = x;
    return e;
}

hipError_t
hipGraphInstantiate(void **exec, void *graph, void **error_node, char *log, size_t size)
{
    if (error_node)
        *error_node = NULL;
    if (log && size)
        *log = 0;
    RETURN(instantiate(exec, graph));
}

hipError_t
hipGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    (void)flags;
    RETURN(instantiate(exec, graph));
}

hipError_t
hipGraphExecUpdate(void *exec, void *graph, void **error_node, int *result)
{
    Exec *x = exec, fresh = {0};
    const Graph *g = graph;
    if (error_node)
        *error_node = NULL;
    if (!sim_hip_handle_valid(exec, HANDLE_EXEC) || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    hipError_t e = g->n == x->n ? order(&fresh, graph) : hipErrorGraphExecUpdateFailure;
    for (size_t i = 0; e == hipSuccess && i < x->n; i++)
        if (fresh.nodes[i].kind != x->nodes[i].kind)
            e = hipErrorGraphExecUpdateFailure;
    if (result)
        *result = e == hipSuccess ? 0 : g->n != x->n ? 2 : 3; /* topology, node type */
    if (e == hipSuccess) {
        exec_clear(x);
        x->nodes = fresh.nodes;
        x->n = fresh.n;
    } else {
        exec_clear(&fresh);
    }
    RETURN(e);
}

hipError_t
hipGraphExecDestroy(void *exec)
{
    if (!sim_hip_handle_remove(exec, HANDLE_EXEC))
        RETURN(hipErrorInvalidValue);
    exec_clear(exec);
    free(exec);
    RETURN(hipSuccess);
}

/* ---- running ---- */

static hipError_t
run_fill(const Memset *f)
{
    hipError_t e = hipSuccess;
    for (size_t y = 0; y < f->height && e == hipSuccess; y++) {
        char *row = (char *)f->dst + y * f->pitch;
        e = f->element == 1   ? hipMemsetD8(row, (unsigned char)f->value, f->width)
            : f->element == 2 ? hipMemsetD16(row, (unsigned short)f->value, f->width)
                              : hipMemsetD32(row, (int)f->value, f->width);
    }
    return e;
}

static hipError_t
run_copy(const Copy *c)
{
    hipError_t e = hipSuccess;
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height && e == hipSuccess; y++)
            e = hipMemcpy(c->dst + z * c->dst_slice + y * c->dst_pitch,
                          c->src + z * c->src_slice + y * c->src_pitch, c->width, 4);
    return e;
}

static hipError_t
run_node(const Node *n, void *stream)
{
    switch (n->kind) {
    case NODE_EMPTY:
        return hipSuccess;
    case NODE_KERNEL: {
        const KernelParams *k = &n->kernel;
        size_t size = n->args_size;
        void *extra[] = {(void *)1, n->args, (void *)2, &size, (void *)3};
        return sim_hip_run(k->function, (uint32_t[3]){k->grid.x, k->grid.y, k->grid.z},
                           (uint32_t[3]){k->block.x, k->block.y, k->block.z}, k->lds, NULL, extra, false);
    }
    case NODE_MEMSET:
        return run_fill(&n->fill);
    case NODE_COPY:
        return run_copy(&n->copy);
    case NODE_EVENT:
        return hipEventRecord(n->event, stream);
    case NODE_HOST:
        n->fn(n->user);
        return hipSuccess;
    }
    return hipErrorUnknown;
}

hipError_t
hipGraphLaunch(void *exec, void *stream)
{
    const Exec *x = exec;
    if (!sim_hip_handle_valid(exec, HANDLE_EXEC))
        RETURN(hipErrorInvalidValue);
    if (!sim_hip_stream_ok(stream))
        RETURN(hipErrorContextIsDestroyed);
    hipError_t e = sim_hip_check(NULL);
    for (size_t i = 0; i < x->n && e == hipSuccess; i++)
        e = run_node(&x->nodes[i], stream);
    RETURN(e);
}
