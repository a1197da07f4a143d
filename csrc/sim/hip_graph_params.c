/* hip_graph_params.c - HIP: parameters of graph nodes, asked for and changed, in a graph and in an executable
 * one. */
#include <stdlib.h>

#include "sim/hip_graph.h"

/* ---- copies ---- */

typedef struct Pitched { /* hipPitchedPtr */
    char *ptr;
    size_t pitch, xsize, ysize;
} Pitched;

typedef struct Copy3D { /* hipMemcpy3DParms */
    void *src_array;
    size_t src_pos[3];
    Pitched src;
    void *dst_array;
    size_t dst_pos[3];
    Pitched dst;
    size_t extent[3];
    int kind;
} Copy3D;

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

enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 10, KIND_DEFAULT = 4 };

hipError_t
sim_graph_copy_3d(const void *params, HipCopy *out)
{
    static atomic_bool said;
    Copy3D p;
    memcpy(&p, params, sizeof p);
    if (p.src_array || p.dst_array)
        return sim_hip_refuse("a copy from or to an array (hipMemcpy3D)", &said);
    if (!p.src.ptr || !p.dst.ptr)
        return hipErrorInvalidValue;
    if ((p.extent[1] > 1 || p.extent[2] > 1) && (p.extent[0] > p.src.pitch || p.extent[0] > p.dst.pitch))
        return hipErrorInvalidPitchValue;
    *out = (HipCopy){.width = p.extent[0],
                     .height = p.extent[1],
                     .depth = p.extent[2],
                     .dst_pitch = p.dst.pitch,
                     .dst_slice = p.dst.pitch * p.dst.ysize,
                     .src_pitch = p.src.pitch,
                     .src_slice = p.src.pitch * p.src.ysize,
                     .kind = p.kind};
    out->dst = p.dst.ptr + p.dst_pos[0] + p.dst_pos[1] * out->dst_pitch + p.dst_pos[2] * out->dst_slice;
    out->src = p.src.ptr + p.src_pos[0] + p.src_pos[1] * out->src_pitch + p.src_pos[2] * out->src_slice;
    return hipSuccess;
}

static char *
drv_start(const DrvSide *s)
{
    char *p = s->type == TYPE_HOST ? s->host : s->device;
    return p ? p + s->x + s->y * s->pitch + s->z * s->pitch * s->height : NULL;
}

hipError_t
sim_graph_copy_drv(const void *params, HipCopy *out)
{
    static atomic_bool said;
    DrvCopy3D p;
    memcpy(&p, params, sizeof p);
    if (p.src.type == TYPE_ARRAY || p.dst.type == TYPE_ARRAY)
        return sim_hip_refuse("a copy from or to an array (hipDrvMemcpy3D)", &said);
    *out = (HipCopy){.dst = drv_start(&p.dst),
                     .src = drv_start(&p.src),
                     .width = p.width,
                     .height = p.height,
                     .depth = p.depth,
                     .dst_pitch = p.dst.pitch ? p.dst.pitch : p.width,
                     .src_pitch = p.src.pitch ? p.src.pitch : p.width,
                     .kind = KIND_DEFAULT};
    out->dst_slice = out->dst_pitch * (p.dst.height ? p.dst.height : p.height);
    out->src_slice = out->src_pitch * (p.src.height ? p.src.height : p.height);
    return out->dst && out->src ? hipSuccess : hipErrorInvalidValue;
}

/* ---- which node ---- */

static Node *
graph_node(void *node, NodeKind kind)
{
    Node *n = node;
    return sim_hip_handle_valid(node, HANDLE_NODE) && n->kind == kind ? n : NULL;
}

/* The executable graph's own copy of a node. */
static Node *
find_in(const Graph *g, const void *node)
{
    for (Node *n = g->first; n; n = n->next) {
        Node *c = n->source == node ? n : n->child ? find_in(n->child, node) : NULL;
        if (c)
            return c;
    }
    return NULL;
}

static Node *
exec_node(void *exec, void *node, NodeKind kind)
{
    Node *n = sim_hip_handle_valid(exec, HANDLE_EXEC) && node ? find_in(((Exec *)exec)->g, node) : NULL;
    return n && n->kind == kind ? n : NULL;
}

/* ---- kernels ---- */

hipError_t
hipGraphKernelNodeGetParams(void *node, void *params)
{
    const Node *n = graph_node(node, NODE_KERNEL);
    if (!n || !params)
        RETURN(hipErrorInvalidValue);
    memcpy(params, &n->kernel, sizeof n->kernel);
    RETURN(hipSuccess);
}

static hipError_t
set_kernel(Node *n, const void *params)
{
    KernelParams p;
    Node fresh;
    if (!n || !params)
        return hipErrorInvalidValue;
    memcpy(&p, params, sizeof p);
    hipError_t e = sim_graph_kernel_node(&p, &fresh);
    if (e != hipSuccess)
        return e;
    free(n->args);
    free(n->kernel.params);
    n->kernel = fresh.kernel;
    n->function = fresh.function;
    n->args = fresh.args;
    n->args_size = fresh.args_size;
    return hipSuccess;
}

hipError_t
hipGraphKernelNodeSetParams(void *node, const void *params)
{
    RETURN(set_kernel(graph_node(node, NODE_KERNEL), params));
}

hipError_t
hipGraphExecKernelNodeSetParams(void *exec, void *node, const void *params)
{
    RETURN(set_kernel(exec_node(exec, node, NODE_KERNEL), params));
}

enum { ATTR_COOPERATIVE = 2, ATTR_PRIORITY = 8 };

hipError_t
hipGraphKernelNodeSetAttribute(void *node, int attribute, const void *value)
{
    Node *n = graph_node(node, NODE_KERNEL);
    int v;
    if (!n || !value || (attribute != ATTR_COOPERATIVE && attribute != ATTR_PRIORITY))
        RETURN(hipErrorInvalidValue);
    memcpy(&v, value, sizeof v);
    if (attribute == ATTR_COOPERATIVE)
        n->cooperative = v != 0;
    else
        n->priority = v;
    RETURN(hipSuccess);
}

hipError_t
hipGraphKernelNodeGetAttribute(void *node, int attribute, void *value)
{
    const Node *n = graph_node(node, NODE_KERNEL);
    if (!n || !value || (attribute != ATTR_COOPERATIVE && attribute != ATTR_PRIORITY))
        RETURN(hipErrorInvalidValue);
    int v = attribute == ATTR_COOPERATIVE ? n->cooperative : n->priority;
    memcpy(value, &v, sizeof v);
    RETURN(hipSuccess);
}

hipError_t
hipGraphKernelNodeCopyAttributes(void *src, void *dst)
{
    const Node *from = graph_node(src, NODE_KERNEL);
    Node *to = graph_node(dst, NODE_KERNEL);
    if (!from || !to)
        RETURN(hipErrorInvalidValue);
    to->cooperative = from->cooperative;
    to->priority = from->priority;
    RETURN(hipSuccess);
}

/* ---- copies of nodes ---- */

hipError_t
hipGraphMemcpyNodeGetParams(void *node, void *params)
{
    const Node *n = graph_node(node, NODE_COPY);
    if (!n || !params)
        RETURN(hipErrorInvalidValue);
    const HipCopy *c = &n->copy;
    Copy3D p = {
        .src = {(char *)c->src, c->src_pitch, c->width, c->src_pitch ? c->src_slice / c->src_pitch : 0},
        .dst = {c->dst, c->dst_pitch, c->width, c->dst_pitch ? c->dst_slice / c->dst_pitch : 0},
        .extent = {c->width, c->height, c->depth},
        .kind = c->kind};
    memcpy(params, &p, sizeof p);
    RETURN(hipSuccess);
}

static DrvSide
drv_side(const char *p, size_t pitch, size_t slice)
{
    SimExtent x;
    DrvSide s = {.pitch = pitch, .height = pitch ? slice / pitch : 0};
    if (sim_hip_owner(p, &x)) {
        s.type = TYPE_DEVICE;
        s.device = (char *)p;
    } else {
        s.type = TYPE_HOST;
        s.host = (char *)p;
    }
    return s;
}

hipError_t
hipDrvGraphMemcpyNodeGetParams(void *node, void *params)
{
    const Node *n = graph_node(node, NODE_COPY);
    if (!n || !params)
        RETURN(hipErrorInvalidValue);
    const HipCopy *c = &n->copy;
    DrvCopy3D p = {.src = drv_side(c->src, c->src_pitch, c->src_slice),
                   .dst = drv_side(c->dst, c->dst_pitch, c->dst_slice),
                   .width = c->width,
                   .height = c->height,
                   .depth = c->depth};
    memcpy(params, &p, sizeof p);
    RETURN(hipSuccess);
}

typedef hipError_t (*CopyReader)(const void *params, HipCopy *out);

static hipError_t
set_copy(Node *n, const void *params, CopyReader read)
{
    HipCopy c;
    if (!n || !params)
        return hipErrorInvalidValue;
    hipError_t e = read(params, &c);
    if (e == hipSuccess)
        n->copy = c;
    return e;
}

hipError_t
hipGraphMemcpyNodeSetParams(void *node, const void *params)
{
    RETURN(set_copy(graph_node(node, NODE_COPY), params, sim_graph_copy_3d));
}

hipError_t
hipGraphExecMemcpyNodeSetParams(void *exec, void *node, const void *params)
{
    RETURN(set_copy(exec_node(exec, node, NODE_COPY), params, sim_graph_copy_3d));
}

hipError_t
hipDrvGraphMemcpyNodeSetParams(void *node, const void *params)
{
    RETURN(set_copy(graph_node(node, NODE_COPY), params, sim_graph_copy_drv));
}

hipError_t
hipDrvGraphExecMemcpyNodeSetParams(void *exec, void *node, const void *params, void *ctx)
{
    (void)ctx;
    RETURN(set_copy(exec_node(exec, node, NODE_COPY), params, sim_graph_copy_drv));
}

static hipError_t
set_1d(Node *n, void *dst, const void *src, size_t count, int kind)
{
    if (!n || !dst || !src)
        return hipErrorInvalidValue;
    n->copy = (HipCopy){.dst = dst, .src = src, .width = count, .height = 1, .depth = 1, .kind = kind};
    return hipSuccess;
}

hipError_t
hipGraphMemcpyNodeSetParams1D(void *node, void *dst, const void *src, size_t n, int kind)
{
    RETURN(set_1d(graph_node(node, NODE_COPY), dst, src, n, kind));
}

hipError_t
hipGraphExecMemcpyNodeSetParams1D(void *exec, void *node, void *dst, const void *src, size_t n, int kind)
{
    RETURN(set_1d(exec_node(exec, node, NODE_COPY), dst, src, n, kind));
}

/* Where [offset, offset + n) of a device variable is. */
static hipError_t
in_symbol(const void *symbol, size_t n, size_t offset, char **out)
{
    void *p;
    size_t size;
    hipError_t e = hipGetSymbolAddress(&p, symbol);
    if (e == hipSuccess)
        e = hipGetSymbolSize(&size, symbol);
    if (e == hipSuccess && (offset > size || size - offset < n))
        e = hipErrorInvalidValue;
    if (e == hipSuccess)
        *out = (char *)p + offset;
    return e;
}

hipError_t
hipGraphAddMemcpyNodeFromSymbol(void **node, void *graph, void *const *deps, size_t ndeps, void *dst,
                                const void *symbol, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipGraphAddMemcpyNode1D(node, graph, deps, ndeps, dst, p, n, kind) : e);
}

hipError_t
hipGraphAddMemcpyNodeToSymbol(void **node, void *graph, void *const *deps, size_t ndeps, const void *symbol,
                              const void *src, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    RETURN(e == hipSuccess ? hipGraphAddMemcpyNode1D(node, graph, deps, ndeps, p, src, n, kind) : e);
}

static hipError_t
set_from(Node *node, void *dst, const void *symbol, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    return e == hipSuccess ? set_1d(node, dst, p, n, kind) : e;
}

static hipError_t
set_to(Node *node, const void *symbol, const void *src, size_t n, size_t offset, int kind)
{
    char *p;
    hipError_t e = in_symbol(symbol, n, offset, &p);
    return e == hipSuccess ? set_1d(node, p, src, n, kind) : e;
}

hipError_t
hipGraphMemcpyNodeSetParamsFromSymbol(void *node, void *dst, const void *symbol, size_t n, size_t offset,
                                      int kind)
{
    RETURN(set_from(graph_node(node, NODE_COPY), dst, symbol, n, offset, kind));
}

hipError_t
hipGraphExecMemcpyNodeSetParamsFromSymbol(void *exec, void *node, void *dst, const void *symbol, size_t n,
                                          size_t offset, int kind)
{
    RETURN(set_from(exec_node(exec, node, NODE_COPY), dst, symbol, n, offset, kind));
}

hipError_t
hipGraphMemcpyNodeSetParamsToSymbol(void *node, const void *symbol, const void *src, size_t n, size_t offset,
                                    int kind)
{
    RETURN(set_to(graph_node(node, NODE_COPY), symbol, src, n, offset, kind));
}

hipError_t
hipGraphExecMemcpyNodeSetParamsToSymbol(void *exec, void *node, const void *symbol, const void *src, size_t n,
                                        size_t offset, int kind)
{
    RETURN(set_to(exec_node(exec, node, NODE_COPY), symbol, src, n, offset, kind));
}

/* ---- fills, host calls, events, children ---- */

hipError_t
hipGraphMemsetNodeGetParams(void *node, void *params)
{
    const Node *n = graph_node(node, NODE_MEMSET);
    if (!n || !params)
        RETURN(hipErrorInvalidValue);
    memcpy(params, &n->fill, sizeof n->fill);
    RETURN(hipSuccess);
}

static hipError_t
set_fill(Node *n, const void *params)
{
    HipMemset f;
    if (!n || !params)
        return hipErrorInvalidValue;
    memcpy(&f, params, sizeof f);
    if (!f.dst || (f.element != 1 && f.element != 2 && f.element != 4))
        return hipErrorInvalidValue;
    n->fill = f;
    return hipSuccess;
}

hipError_t
hipGraphMemsetNodeSetParams(void *node, const void *params)
{
    RETURN(set_fill(graph_node(node, NODE_MEMSET), params));
}

hipError_t
hipGraphExecMemsetNodeSetParams(void *exec, void *node, const void *params)
{
    RETURN(set_fill(exec_node(exec, node, NODE_MEMSET), params));
}

hipError_t
hipDrvGraphExecMemsetNodeSetParams(void *exec, void *node, const void *params, void *ctx)
{
    (void)ctx;
    RETURN(set_fill(exec_node(exec, node, NODE_MEMSET), params));
}

typedef struct HostParams { /* hipHostNodeParams */
    void (*fn)(void *);
    void *user;
} HostParams;

hipError_t
hipGraphHostNodeGetParams(void *node, void *params)
{
    const Node *n = graph_node(node, NODE_HOST);
    if (!n || !params)
        RETURN(hipErrorInvalidValue);
    memcpy(params, &(HostParams){n->fn, n->user}, sizeof(HostParams));
    RETURN(hipSuccess);
}

static hipError_t
set_host(Node *n, const void *params)
{
    HostParams p;
    if (!n || !params)
        return hipErrorInvalidValue;
    memcpy(&p, params, sizeof p);
    if (!p.fn)
        return hipErrorInvalidValue;
    n->fn = p.fn;
    n->user = p.user;
    return hipSuccess;
}

hipError_t
hipGraphHostNodeSetParams(void *node, const void *params)
{
    RETURN(set_host(graph_node(node, NODE_HOST), params));
}

hipError_t
hipGraphExecHostNodeSetParams(void *exec, void *node, const void *params)
{
    RETURN(set_host(exec_node(exec, node, NODE_HOST), params));
}

static hipError_t
get_event(const Node *n, void **event)
{
    if (!n || !event)
        return hipErrorInvalidValue;
    *event = n->event;
    return hipSuccess;
}

static hipError_t
set_event(Node *n, void *event)
{
    if (!n || !sim_hip_handle_valid(event, HANDLE_EVENT))
        return hipErrorInvalidValue;
    n->event = event;
    return hipSuccess;
}

hipError_t
hipGraphEventRecordNodeGetEvent(void *node, void **event)
{
    RETURN(get_event(graph_node(node, NODE_EVENT), event));
}

hipError_t
hipGraphEventRecordNodeSetEvent(void *node, void *event)
{
    RETURN(set_event(graph_node(node, NODE_EVENT), event));
}

hipError_t
hipGraphExecEventRecordNodeSetEvent(void *exec, void *node, void *event)
{
    RETURN(set_event(exec_node(exec, node, NODE_EVENT), event));
}

hipError_t
hipGraphEventWaitNodeGetEvent(void *node, void **event)
{
    RETURN(get_event(graph_node(node, NODE_WAIT), event));
}

hipError_t
hipGraphEventWaitNodeSetEvent(void *node, void *event)
{
    RETURN(set_event(graph_node(node, NODE_WAIT), event));
}

hipError_t
hipGraphExecEventWaitNodeSetEvent(void *exec, void *node, void *event)
{
    RETURN(set_event(exec_node(exec, node, NODE_WAIT), event));
}

/* The new child must look like the old one; its nodes are then the old one's for later changes. */
hipError_t
hipGraphExecChildGraphNodeSetParams(void *exec, void *node, void *child)
{
    Node *n = exec_node(exec, node, NODE_GRAPH);
    Graph *fresh;
    if (!n || !sim_hip_handle_valid(child, HANDLE_GRAPH))
        RETURN(hipErrorInvalidValue);
    hipError_t e = sim_graph_clone(child, false, &fresh);
    if (e != hipSuccess)
        RETURN(e);
    const Node *a = n->child->first;
    Node *b = fresh->first;
    while (a && b && a->kind == b->kind && a->ndeps == b->ndeps) {
        a = a->next;
        b = b->next;
    }
    e = a || b ? hipErrorGraphExecUpdateFailure : sim_graph_order(fresh);
    if (e == hipSuccess) {
        sim_graph_free(n->child);
        n->child = fresh;
    } else {
        sim_graph_free(fresh);
    }
    RETURN(e);
}

hipError_t
hipGraphNodeSetEnabled(void *exec, void *node, unsigned enabled)
{
    Node *n = sim_hip_handle_valid(exec, HANDLE_EXEC) && node ? find_in(((Exec *)exec)->g, node) : NULL;
    if (!n || (n->kind != NODE_KERNEL && n->kind != NODE_COPY && n->kind != NODE_MEMSET))
        RETURN(hipErrorInvalidValue);
    n->disabled = !enabled;
    RETURN(hipSuccess);
}

hipError_t
hipGraphNodeGetEnabled(void *exec, void *node, unsigned *enabled)
{
    const Node *n = sim_hip_handle_valid(exec, HANDLE_EXEC) && node ? find_in(((Exec *)exec)->g, node) : NULL;
    if (!n || !enabled)
        RETURN(hipErrorInvalidValue);
    *enabled = !n->disabled;
    RETURN(hipSuccess);
}

/* ---- hipGraphNodeParams: one struct for all kinds ---- */

typedef struct AnyParams {
    int type, reserved[3];
    char u[232]; /* copies: the hipMemcpy3DParms after 16 bytes of flags */
    long long reserved2;
} AnyParams;
enum { ANY_COPY_AT = 16 };

static void *
any_pointer(const AnyParams *p)
{
    void *v;
    memcpy(&v, p->u, sizeof v);
    return v;
}

hipError_t
hipGraphAddNode(void **node, void *graph, void *const *deps, size_t ndeps, void *params)
{
    AnyParams *p = params;
    if (!p)
        RETURN(hipErrorInvalidValue);
    switch (p->type) {
    case NODE_KERNEL:
        return hipGraphAddKernelNode(node, graph, deps, ndeps, p->u);
    case NODE_COPY:
        return hipGraphAddMemcpyNode(node, graph, deps, ndeps, p->u + ANY_COPY_AT);
    case NODE_MEMSET:
        return hipGraphAddMemsetNode(node, graph, deps, ndeps, p->u);
    case NODE_HOST:
        return hipGraphAddHostNode(node, graph, deps, ndeps, p->u);
    case NODE_GRAPH:
        return hipGraphAddChildGraphNode(node, graph, deps, ndeps, any_pointer(p));
    case NODE_EMPTY:
        return hipGraphAddEmptyNode(node, graph, deps, ndeps);
    case NODE_WAIT:
        return hipGraphAddEventWaitNode(node, graph, deps, ndeps, any_pointer(p));
    case NODE_EVENT:
        return hipGraphAddEventRecordNode(node, graph, deps, ndeps, any_pointer(p));
    case NODE_ALLOC:
        return hipGraphAddMemAllocNode(node, graph, deps, ndeps, p->u);
    case NODE_FREE:
        return hipGraphAddMemFreeNode(node, graph, deps, ndeps, any_pointer(p));
    default:
        RETURN(hipErrorInvalidValue);
    }
}

static hipError_t
set_any(Node *n, const AnyParams *p)
{
    if (!n)
        return hipErrorInvalidValue;
    switch (p->type) {
    case NODE_KERNEL:
        return set_kernel(n, p->u);
    case NODE_COPY:
        return set_copy(n, p->u + ANY_COPY_AT, sim_graph_copy_3d);
    case NODE_MEMSET:
        return set_fill(n, p->u);
    case NODE_HOST:
        return set_host(n, p->u);
    case NODE_WAIT:
    case NODE_EVENT:
        return set_event(n, any_pointer(p));
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t
hipGraphNodeSetParams(void *node, void *params)
{
    const AnyParams *p = params;
    RETURN(p ? set_any(graph_node(node, (NodeKind)p->type), p) : hipErrorInvalidValue);
}

hipError_t
hipGraphExecNodeSetParams(void *exec, void *node, void *params)
{
    const AnyParams *p = params;
    RETURN(p ? set_any(exec_node(exec, node, (NodeKind)p->type), p) : hipErrorInvalidValue);
}
