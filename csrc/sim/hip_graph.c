/* hip_graph.c - HIP: making graphs, asking about them, cloning them (contract in hip_graph.h). */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip_graph.h"

/* ---- life of graphs and nodes ---- */

hipError_t
sim_graph_new(Graph **out, bool handles)
{
    Graph *g = calloc(1, sizeof *g);
    if (!g)
        return hipErrorOutOfMemory;
    g->h = (Handle){HANDLE_GRAPH, sim_hip_current()};
    g->last = &g->first;
    g->handles = handles;
    if (handles && !sim_hip_handle_add(&g->h)) {
        free(g);
        return hipErrorOutOfMemory;
    }
    *out = g;
    return hipSuccess;
}

static void
mem_drop(GraphMem *m)
{
    SimExtent x;
    if (!m || --m->refs)
        return;
    HipDevice *d = sim_hip_device(m->device);
    if (d && sim_mem_lookup(d->sim->mem, (uint64_t)m->p, 1, &x) && x.id == m->id)
        sim_device_release(d->sim, (uint64_t)m->p, SIM_EXT_MALLOC);
    free(m);
}

/* What a node owns. */
static void
node_clear(Node *n)
{
    free(n->args);
    free(n->kernel.params);
    mem_drop(n->mem);
    if (n->child)
        sim_graph_free(n->child);
    n->args = NULL;
    n->kernel.params = NULL;
    n->mem = NULL;
    n->child = NULL;
}

static void
node_free(Graph *g, Node *n)
{
    if (g->handles)
        sim_hip_handle_remove(n, HANDLE_NODE);
    node_clear(n);
    free(n->deps);
    free(n);
}

void
sim_graph_free(Graph *g)
{
    if (!g)
        return;
    if (g->handles)
        sim_hip_handle_remove(g, HANDLE_GRAPH);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        node_free(g, n);
    }
    free(g->order);
    free(g);
}

hipError_t
hipGraphCreate(void **graph, unsigned flags)
{
    Graph *g;
    if (!graph || flags)
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_graph_new(&g, true);
    if (e == hipSuccess)
        *graph = g;
    RETURN(e);
}

hipError_t
hipGraphDestroy(void *graph)
{
    const Graph *g = graph;
    if (!sim_hip_handle_valid(graph, HANDLE_GRAPH) || g->capturing || g->is_child)
        RETURN(hipErrorInvalidValue);
    sim_graph_free(graph);
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

/* Pointers to each explicit argument within args. */
static bool
point_params(Node *n)
{
    const SimKernel *k = n->function->kernel;
    uint32_t count = 0;
    free(n->kernel.params);
    if (!(n->kernel.params = calloc(k->nargs + 1, sizeof(void *))))
        return false;
    for (uint32_t i = 0; i < k->nargs; i++)
        if (!sim_arg_hidden(&k->args[i]) && k->args[i].offset < n->args_size)
            n->kernel.params[count++] = n->args + k->args[i].offset;
    return true;
}

hipError_t
sim_graph_kernel_node(const KernelParams *params, Node *out)
{
    *out = (Node){.kind = NODE_KERNEL, .kernel = *params};
    void *f;
    out->kernel.params = NULL;
    out->kernel.extra = NULL;
    hipError_t e = sim_hip_function(params->function, &f);
    if (e != hipSuccess)
        return e;
    out->function = f;
    e = sim_hip_pack(f, params->params, params->extra, &out->args, &out->args_size);
    if (e == hipSuccess && !point_params(out)) {
        free(out->args);
        return hipErrorOutOfMemory;
    }
    return e;
}

hipError_t
sim_graph_alloc_node(size_t size, Node *out)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    SimExtent x;
    if (!d)
        return hipErrorNoDevice;
    GraphMem *m = calloc(1, sizeof *m);
    if (!m)
        return hipErrorOutOfMemory;
    m->p = sim_mem_alloc(d->sim->mem, size ? size : 1, SIM_EXT_MALLOC, false, "graph memory");
    if (!m->p || !sim_mem_lookup(d->sim->mem, (uint64_t)m->p, 1, &x)) {
        free(m);
        return hipErrorOutOfMemory;
    }
    m->refs = 1;
    m->device = sim_hip_current();
    m->size = size;
    m->id = x.id;
    *out = (Node){.kind = NODE_ALLOC, .mem = m};
    return hipSuccess;
}

hipError_t
sim_graph_add(void **node, void *graph, void *const *deps, size_t ndeps, const Node *proto)
{
    hipError_t e = hipErrorInvalidValue;
    Graph *g = graph;
    Node *n = NULL;
    if (sim_hip_handle_valid(graph, HANDLE_GRAPH) && nodes_valid(deps, ndeps)) {
        e = hipErrorOutOfMemory;
        if ((n = malloc(sizeof *n))) {
            *n = *proto;
            n->h = (Handle){HANDLE_NODE, g->h.device};
            n->graph = g;
            if (depend(n, deps, ndeps) && sim_hip_handle_add(&n->h)) {
                *g->last = n;
                g->last = &n->next;
                g->n++;
                if (node)
                    *node = n;
                return hipSuccess;
            }
            free(n->deps);
            free(n);
        }
    }
    Node taken = *proto;
    node_clear(&taken);
    return e;
}

static void
unlink_node(Graph *g, Node *n)
{
    Node **p = &g->first;
    for (Node *o = g->first; o; o = o->next) {
        size_t kept = 0;
        for (size_t i = 0; i < o->ndeps; i++)
            if (o->deps[i] != n)
                o->deps[kept++] = o->deps[i];
        o->ndeps = kept;
    }
    while (*p != n)
        p = &(*p)->next;
    *p = n->next;
    if (g->last == &n->next)
        g->last = p;
    g->n--;
}

hipError_t
hipGraphDestroyNode(void *node)
{
    Node *n = node;
    if (!sim_hip_handle_valid(node, HANDLE_NODE))
        RETURN(hipErrorInvalidValue);
    Graph *g = n->graph;
    if (g->capturing)
        RETURN(hipErrorInvalidValue);
    unlink_node(g, n);
    node_free(g, n);
    RETURN(hipSuccess);
}

/* ---- clones and order ---- */

static hipError_t
clone_node(const Node *from, bool handles, Graph *g)
{
    Node *n = malloc(sizeof *n);
    hipError_t e = hipErrorOutOfMemory;
    if (!n)
        return e;
    *n = *from;
    n->graph = g;
    n->source = from;
    n->next = NULL;
    n->deps = NULL;
    n->args = NULL;
    n->kernel.params = NULL;
    n->child = NULL;
    n->ndeps = 0;
    bool ok = true;
    if (n->mem)
        n->mem->refs++;
    if (from->args) {
        ok = (n->args = malloc(n->args_size ? n->args_size : 1)) != NULL;
        if (ok)
            memcpy(n->args, from->args, n->args_size);
        ok = ok && point_params(n);
    }
    if (ok && from->child) {
        ok = (e = sim_graph_clone(from->child, handles, &n->child)) == hipSuccess;
        if (ok)
            n->child->is_child = true;
    }
    if (!ok || (handles && !sim_hip_handle_add(&n->h))) {
        node_clear(n);
        free(n);
        return e;
    }
    *g->last = n;
    g->last = &n->next;
    g->n++;
    return hipSuccess;
}

hipError_t
sim_graph_clone(const Graph *from, bool handles, Graph **out)
{
    Graph *g;
    hipError_t e = sim_graph_new(&g, handles);
    if (e != hipSuccess)
        return e;
    for (Node *n = from->first; n && e == hipSuccess; n = n->next) {
        Node **at = g->last;
        if ((e = clone_node(n, handles, g)) == hipSuccess)
            n->twin = *at;
    }
    for (Node *n = from->first; n && e == hipSuccess; n = n->next)
        for (size_t i = 0; i < n->ndeps && e == hipSuccess; i++)
            if (!depend(n->twin, (void *[]){n->deps[i]->twin}, 1))
                e = hipErrorOutOfMemory;
    if (e != hipSuccess) {
        sim_graph_free(g);
        return e;
    }
    *out = g;
    return hipSuccess;
}

static bool
ready(const Node *n)
{
    for (size_t i = 0; i < n->ndeps; i++)
        if (!n->deps[i]->placed)
            return false;
    return !n->placed;
}

hipError_t
sim_graph_order(Graph *g)
{
    size_t placed = 0;
    free(g->order);
    if (!(g->order = calloc(g->n ? g->n : 1, sizeof *g->order)))
        return hipErrorOutOfMemory;
    for (Node *n = g->first; n; n = n->next)
        n->placed = false;
    while (placed < g->n) { /* first come first served among those whose dependencies are done */
        Node *n = g->first;
        while (n && !ready(n))
            n = n->next;
        if (!n)
            return hipErrorInvalidValue;
        n->placed = true;
        g->order[placed++] = n;
        hipError_t e = n->child ? sim_graph_order(n->child) : hipSuccess;
        if (e != hipSuccess)
            return e;
    }
    return hipSuccess;
}

hipError_t
hipGraphClone(void **clone, void *graph)
{
    Graph *g;
    if (!clone || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_graph_clone(graph, true, &g);
    if (e == hipSuccess)
        *clone = g;
    RETURN(e);
}

hipError_t
hipGraphNodeFindInClone(void **node, void *original, void *clone)
{
    if (!node || !sim_hip_handle_valid(original, HANDLE_NODE) || !sim_hip_handle_valid(clone, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    for (Node *n = ((Graph *)clone)->first; n; n = n->next) {
        if (n->source == original) {
            *node = n;
            RETURN(hipSuccess);
        }
    }
    RETURN(hipErrorInvalidValue);
}

/* ---- nodes ---- */

hipError_t
hipGraphAddEmptyNode(void **node, void *graph, void *const *deps, size_t ndeps)
{
    RETURN(node ? sim_graph_add(node, graph, deps, ndeps, &(Node){.kind = NODE_EMPTY})
                : hipErrorInvalidValue);
}

hipError_t
hipGraphAddKernelNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    KernelParams p;
    Node n;
    if (!params || !node)
        RETURN(hipErrorInvalidValue);
    memcpy(&p, params, sizeof p);
    hipError_t e = sim_graph_kernel_node(&p, &n);
    RETURN(e == hipSuccess ? sim_graph_add(node, graph, deps, ndeps, &n) : e);
}

hipError_t
hipGraphAddMemsetNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    Node n = {.kind = NODE_MEMSET};
    if (!params || !node)
        RETURN(hipErrorInvalidValue);
    memcpy(&n.fill, params, sizeof n.fill);
    if (n.fill.element != 1 && n.fill.element != 2 && n.fill.element != 4)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_graph_add(node, graph, deps, ndeps, &n));
}

hipError_t
hipDrvGraphAddMemsetNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params,
                         void *ctx)
{
    (void)ctx;
    return hipGraphAddMemsetNode(node, graph, deps, ndeps, params);
}

hipError_t
hipGraphAddMemcpyNode1D(void **node, void *graph, void *const *deps, size_t ndeps, void *dst, const void *src,
                        size_t n, int kind)
{
    Node c = {.kind = NODE_COPY,
              .copy = {.dst = dst, .src = src, .width = n, .height = 1, .depth = 1, .kind = kind}};
    if (!node || !dst || !src)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_graph_add(node, graph, deps, ndeps, &c));
}

hipError_t
hipGraphAddMemcpyNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    Node n = {.kind = NODE_COPY};
    hipError_t e = params && node ? sim_graph_copy_3d(params, &n.copy) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? sim_graph_add(node, graph, deps, ndeps, &n) : e);
}

hipError_t
hipDrvGraphAddMemcpyNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params,
                         void *ctx)
{
    Node n = {.kind = NODE_COPY};
    (void)ctx;
    hipError_t e = params && node ? sim_graph_copy_drv(params, &n.copy) : hipErrorInvalidValue;
    RETURN(e == hipSuccess ? sim_graph_add(node, graph, deps, ndeps, &n) : e);
}

static hipError_t
add_event(void **node, void *graph, void *const *deps, size_t ndeps, void *event, NodeKind kind)
{
    if (!node || !sim_hip_handle_valid(event, HANDLE_EVENT))
        return hipErrorInvalidValue;
    return sim_graph_add(node, graph, deps, ndeps, &(Node){.kind = kind, .event = event});
}

hipError_t
hipGraphAddEventRecordNode(void **node, void *graph, void *const *deps, size_t ndeps, void *event)
{
    RETURN(add_event(node, graph, deps, ndeps, event, NODE_EVENT));
}

hipError_t
hipGraphAddEventWaitNode(void **node, void *graph, void *const *deps, size_t ndeps, void *event)
{
    RETURN(add_event(node, graph, deps, ndeps, event, NODE_WAIT));
}

typedef struct HostParams { /* hipHostNodeParams */
    void (*fn)(void *);
    void *user;
} HostParams;

hipError_t
hipGraphAddHostNode(void **node, void *graph, void *const *deps, size_t ndeps, const void *params)
{
    HostParams p;
    if (!params || !node)
        RETURN(hipErrorInvalidValue);
    memcpy(&p, params, sizeof p);
    if (!p.fn)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_graph_add(node, graph, deps, ndeps, &(Node){.kind = NODE_HOST, .fn = p.fn, .user = p.user}));
}

hipError_t
hipGraphAddChildGraphNode(void **node, void *graph, void *const *deps, size_t ndeps, void *child)
{
    Node n = {.kind = NODE_GRAPH};
    if (!node || child == graph || !sim_hip_handle_valid(child, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_graph_clone(child, true, &n.child);
    if (e != hipSuccess)
        RETURN(e);
    n.child->is_child = true;
    RETURN(sim_graph_add(node, graph, deps, ndeps, &n));
}

hipError_t
hipGraphChildGraphNodeGetGraph(void *node, void **graph)
{
    if (!graph || !sim_hip_handle_valid(node, HANDLE_NODE) || ((Node *)node)->kind != NODE_GRAPH)
        RETURN(hipErrorInvalidValue);
    *graph = ((Node *)node)->child;
    RETURN(hipSuccess);
}

/* hipMemAllocNodeParams: a pool's properties (88 bytes), access descriptors, then: */
enum { ALLOC_SIZE_AT = 104, ALLOC_PTR_AT = 112 };

hipError_t
hipGraphAddMemAllocNode(void **node, void *graph, void *const *deps, size_t ndeps, void *params)
{
    size_t size;
    Node n;
    if (!params || !node)
        RETURN(hipErrorInvalidValue);
    memcpy(&size, (char *)params + ALLOC_SIZE_AT, sizeof size);
    hipError_t e = size ? sim_graph_alloc_node(size, &n) : hipErrorInvalidValue;
    if (e != hipSuccess)
        RETURN(e);
    void *p = n.mem->p;
    e = sim_graph_add(node, graph, deps, ndeps, &n);
    if (e == hipSuccess)
        memcpy((char *)params + ALLOC_PTR_AT, &p, sizeof p);
    RETURN(e);
}

hipError_t
hipGraphMemAllocNodeGetParams(void *node, void *params)
{
    const Node *n = node;
    if (!params || !sim_hip_handle_valid(node, HANDLE_NODE) || n->kind != NODE_ALLOC)
        RETURN(hipErrorInvalidValue);
    memset(params, 0, ALLOC_SIZE_AT);
    memcpy((char *)params + ALLOC_SIZE_AT, &n->mem->size, 8);
    memcpy((char *)params + ALLOC_PTR_AT, &n->mem->p, 8);
    RETURN(hipSuccess);
}

hipError_t
hipGraphAddMemFreeNode(void **node, void *graph, void *const *deps, size_t ndeps, void *p)
{
    if (!p || !node)
        RETURN(hipErrorInvalidValue);
    RETURN(sim_graph_add(node, graph, deps, ndeps, &(Node){.kind = NODE_FREE, .freed = p}));
}

hipError_t
hipDrvGraphAddMemFreeNode(void **node, void *graph, void *const *deps, size_t ndeps, void *p)
{
    return hipGraphAddMemFreeNode(node, graph, deps, ndeps, p);
}

hipError_t
hipGraphMemFreeNodeGetParams(void *node, void *p)
{
    if (!p || !sim_hip_handle_valid(node, HANDLE_NODE) || ((Node *)node)->kind != NODE_FREE)
        RETURN(hipErrorInvalidValue);
    memcpy(p, &((Node *)node)->freed, sizeof(void *));
    RETURN(hipSuccess);
}

/* ---- edges and questions ---- */

hipError_t
hipGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t n)
{
    if (!sim_hip_handle_valid(graph, HANDLE_GRAPH) || !nodes_valid(from, n) || !nodes_valid(to, n))
        RETURN(hipErrorInvalidValue);
    for (size_t i = 0; i < n; i++)
        if (from[i] == to[i])
            RETURN(hipErrorInvalidValue);
    for (size_t i = 0; i < n; i++)
        if (!depend(to[i], &from[i], 1))
            RETURN(hipErrorOutOfMemory);
    RETURN(hipSuccess);
}

hipError_t
hipGraphRemoveDependencies(void *graph, void *const *from, void *const *to, size_t n)
{
    if (!sim_hip_handle_valid(graph, HANDLE_GRAPH) || !nodes_valid(from, n) || !nodes_valid(to, n))
        RETURN(hipErrorInvalidValue);
    for (size_t i = 0; i < n; i++) {
        Node *t = to[i];
        size_t k = 0;
        while (k < t->ndeps && t->deps[k] != from[i])
            k++;
        if (k == t->ndeps)
            RETURN(hipErrorInvalidValue);
        t->deps[k] = t->deps[--t->ndeps];
    }
    RETURN(hipSuccess);
}

/* Gives one node to an array of a client that has room for *n; counts on without an array. */
static void
give(void **out, size_t room, size_t *i, void *node)
{
    if (out && *i < room)
        out[*i] = node;
    ++*i;
}

static hipError_t
given(void **out, size_t *n, size_t i)
{
    *n = out ? TL_MIN(*n, i) : i;
    return hipSuccess;
}

static hipError_t
list_nodes(void *graph, void **nodes, size_t *n, bool roots)
{
    size_t i = 0;
    if (!n || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        return hipErrorInvalidValue;
    for (Node *p = ((Graph *)graph)->first; p; p = p->next)
        if (!roots || !p->ndeps)
            give(nodes, *n, &i, p);
    return given(nodes, n, i);
}

hipError_t
hipGraphGetNodes(void *graph, void **nodes, size_t *n)
{
    RETURN(list_nodes(graph, nodes, n, false));
}

hipError_t
hipGraphGetRootNodes(void *graph, void **nodes, size_t *n)
{
    RETURN(list_nodes(graph, nodes, n, true));
}

hipError_t
hipGraphGetEdges(void *graph, void **from, void **to, size_t *n)
{
    size_t i = 0, k = 0;
    if (!n || !from != !to || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    for (Node *p = ((Graph *)graph)->first; p; p = p->next) {
        for (size_t d = 0; d < p->ndeps; d++) {
            give(from, *n, &i, p->deps[d]);
            give(to, *n, &k, p);
        }
    }
    RETURN(given(from, n, i));
}

hipError_t
hipGraphNodeGetDependencies(void *node, void **deps, size_t *n)
{
    size_t i = 0;
    const Node *p = node;
    if (!n || !sim_hip_handle_valid(node, HANDLE_NODE))
        RETURN(hipErrorInvalidValue);
    for (size_t d = 0; d < p->ndeps; d++)
        give(deps, *n, &i, p->deps[d]);
    RETURN(given(deps, n, i));
}

hipError_t
hipGraphNodeGetDependentNodes(void *node, void **nodes, size_t *n)
{
    size_t i = 0;
    if (!n || !sim_hip_handle_valid(node, HANDLE_NODE))
        RETURN(hipErrorInvalidValue);
    for (Node *p = ((Node *)node)->graph->first; p; p = p->next)
        for (size_t d = 0; d < p->ndeps; d++)
            if (p->deps[d] == node)
                give(nodes, *n, &i, p);
    RETURN(given(nodes, n, i));
}

hipError_t
hipGraphNodeGetType(void *node, int *type)
{
    if (!type || !sim_hip_handle_valid(node, HANDLE_NODE))
        RETURN(hipErrorInvalidValue);
    *type = (int)((Node *)node)->kind;
    RETURN(hipSuccess);
}

static const char *
kind_name(NodeKind k)
{
    static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty",
                                        "wait",   "event",  "",       "",     "alloc", "free"};
    return names[k];
}

hipError_t
hipGraphDebugDotPrint(void *graph, const char *path, unsigned flags)
{
    (void)flags;
    if (!path || !sim_hip_handle_valid(graph, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    FILE *f = fopen(path, "w");
    if (!f)
        RETURN(hipErrorOperatingSystem);
    fprintf(f, "digraph graph_%p {\n", graph);
    for (const Node *n = ((Graph *)graph)->first; n; n = n->next) {
        fprintf(f, "  \"%p\" [label=\"%s%s%s\"];\n", (const void *)n, kind_name(n->kind),
                n->kind == NODE_KERNEL ? " " : "", n->kind == NODE_KERNEL ? n->function->kernel->name : "");
        for (size_t i = 0; i < n->ndeps; i++)
            fprintf(f, "  \"%p\" -> \"%p\";\n", (const void *)n->deps[i], (const void *)n);
    }
    fprintf(f, "}\n");
    RETURN(fclose(f) ? hipErrorOperatingSystem : hipSuccess);
}
