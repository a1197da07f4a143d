/* hip_graph.h - what the files of HIP graphs share: nodes, graphs, executable graphs.
 *
 * A graph owns its nodes; a node keeps copies of its parameters. An executable graph is a private clone of a
 * graph with its nodes in an order that obeys their dependencies; they run one after the other. As in HIP,
 * one graph must not be changed by two threads at once. */
#ifndef TL_SIM_HIP_GRAPH_H
#define TL_SIM_HIP_GRAPH_H

#include "sim/hip.h"

typedef enum NodeKind { /* hipGraphNodeType */
                        NODE_KERNEL = 0,
                        NODE_COPY = 1,
                        NODE_MEMSET = 2,
                        NODE_HOST = 3,
                        NODE_GRAPH = 4,
                        NODE_EMPTY = 5,
                        NODE_WAIT = 6,
                        NODE_EVENT = 7,
                        NODE_ALLOC = 10,
                        NODE_FREE = 11
} NodeKind;

typedef struct HipCopy { /* rows of width bytes */
    char *dst;
    const char *src;
    size_t width, height, depth, dst_pitch, dst_slice, src_pitch, src_slice;
    int kind;
} HipCopy;

typedef struct HipMemset { /* hipMemsetParams */
    void *dst;
    unsigned element;
    size_t height, pitch;
    unsigned value;
    size_t width;
} HipMemset;

typedef struct GraphMem { /* memory of an allocation node; lives as long as a graph that has the node */
    uint32_t refs;
    int device;
    void *p;
    size_t size;
    uint64_t id; /* of its extent */
} GraphMem;

typedef struct Graph Graph;
typedef struct Node {
    Handle h;
    NodeKind kind;
    Graph *graph;
    struct Node *next, **deps;
    size_t ndeps;
    const struct Node *source; /* in a clone: the node it was made from (to be compared only) */
    struct Node *twin;         /* while cloning */
    bool placed;               /* while ordering */
    bool disabled;
    bool cooperative;
    int priority;
    KernelParams kernel; /* params: pointers into args */
    HipFunction *function;
    uint8_t *args;
    size_t args_size;
    HipMemset fill;
    HipCopy copy;
    void *event;
    void (*fn)(void *);
    void *user;
    Graph *child;
    GraphMem *mem;
    void *freed; /* NODE_FREE */
} Node;

struct Graph {
    Handle h;
    Node *first, **last;
    size_t n;
    Node **order;   /* executable graphs: all nodes */
    bool handles;   /* the graph and its nodes are known to the client */
    bool capturing; /* a stream's capture adds to it */
    bool is_child;
};

typedef struct Exec {
    Handle h;
    Graph *g;
    uint64_t flags;
} Exec;

/* ---- hip_graph.c ---- */

/* Adds a copy of *proto (its args, child and mem are taken, also on failure). node may be NULL. */
hipError_t sim_graph_add(void **node, void *graph, void *const *deps, size_t ndeps, const Node *proto);
hipError_t sim_graph_new(Graph **out, bool handles);
void sim_graph_free(Graph *g);
hipError_t sim_graph_clone(const Graph *g, bool handles, Graph **out);
/* Fills g->order and those of its children; hipErrorInvalidValue: a cycle. */
hipError_t sim_graph_order(Graph *g);
/* A node of kind NODE_KERNEL, made from params; NODE_ALLOC with fresh memory on the current device. */
hipError_t sim_graph_kernel_node(const KernelParams *params, Node *out);
hipError_t sim_graph_alloc_node(size_t n, Node *out);

/* ---- hip_graph_params.c ---- */

hipError_t sim_graph_copy_3d(const void *params, HipCopy *out);  /* from hipMemcpy3DParms */
hipError_t sim_graph_copy_drv(const void *params, HipCopy *out); /* from HIP_MEMCPY3D */

/* ---- hip_graph_exec.c ---- */

hipError_t sim_hip_run_copy(const HipCopy *c);
hipError_t sim_hip_run_fill(const HipMemset *f);

/* ---- hip_capture.c ---- */

/* Adds what a capturing stream was asked to do to its graph. Takes proto->args and the rest, as
 * sim_graph_add. */
hipError_t sim_hip_capture(HipStream *s, const Node *proto);
/* The event is recorded outside a capture, or destroyed. */
void sim_hip_capture_forget(HipEvent *e);
/* The stream is destroyed: its capture ends. */
void sim_hip_capture_leave(HipStream *s);

#endif
