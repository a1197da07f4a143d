/* gws.c - global wave sync: 64 counters a launch that waves of all workgroups meet at.
 *
 * Resource = M0[21:16] + offset, modulo 64; the value is that of the first active lane. A wave that has to
 * wait sleeps on its instruction and asks again in its next slice. A barrier orders memory like a release
 * before it and an acquire behind it.
 */
#include <pthread.h>

#include "sim/core.h"

#define BODY(name) static const SimRec *gw_##name(SimWave *w, const SimRec *r)

typedef struct GwsResource {
    uint32_t count, waiting, generation;
} GwsResource;
struct SimGws {
    pthread_mutex_t lock;
    GwsResource r[64];
};

SimGws *
sim_gws_new(void)
{
    SimGws *g = calloc(1, sizeof *g);
    if (g && pthread_mutex_init(&g->lock, NULL)) {
        free(g);
        g = NULL;
    }
    return g;
}
void
sim_gws_reset(SimGws *g, uint32_t groups)
{
    memset(g->r, 0, sizeof g->r);
    g->r[0].count = groups ? groups - 1 : 0;
}
void
sim_gws_free(SimGws *g)
{
    if (g)
        pthread_mutex_destroy(&g->lock);
    free(g);
}

static uint32_t
first_value(SimWave *w, const SimRec *r)
{
    uint64_t exec = EXEC(w);
    uint32_t t[128];
    return r->src[0].kind ? src_row(w, r->src[0], t)[exec ? __builtin_ctzll(exec) : 0] : 0;
}

static GwsResource *
enter(SimWave *w, const SimRec *r, SimGws **g)
{
    *g = w->g->info ? w->g->info->gws : w->g->gws;
    if (!*g)
        return NULL;
    pthread_mutex_lock(&(*g)->lock);
    return &(*g)->r[(((w->s[S_M0] >> 16) & 63) + (uint32_t)r->imm) & 63];
}

static const SimRec *
missing(SimWave *w, const SimRec *r)
{
    return sim_fault_illegal(w, r, "this launch has no global wave sync");
}

/* The wave asks again later. */
static const SimRec *
wait_here(SimWave *w, const SimRec *r)
{
    if (w->g->own_exec) {
        sim_fault(w, r, SIM_FAULT_HANG, true, 0, 0, UINT32_MAX, 0, "waits for other waves; there are none");
        return NULL;
    }
    w->rec = r;
    w->stop = ST_SLEEP;
    return NULL;
}

BODY(init)
{
    SimGws *g;
    GwsResource *x = enter(w, r, &g);
    if (!x)
        return missing(w, r);
    x->count = first_value(w, r);
    x->waiting = 0;
    pthread_mutex_unlock(&g->lock);
    return NEXT(r);
}

static void
order(SimWave *w, const GwsResource *x, bool release)
{
    if (!w->g->info || !w->g->info->race || !checking(w, SIM_CHECK_RACE))
        return;
    if (release)
        sim_race_release(w->g->info->race, &w->race, (uint64_t)(uintptr_t)x);
    else
        sim_race_acquire(w->g->info->race, &w->race, (uint64_t)(uintptr_t)x, SIM_HAND_ALL);
}

/* The count says how many waves are still to come behind this one; the last one sets it anew. */
BODY(barrier)
{
    SimGws *g;
    GwsResource *x = enter(w, r, &g);
    bool go = true;
    if (!x)
        return missing(w, r);
    if (w->gws_waits) {
        go = x->generation != w->gws_generation;
    } else {
        order(w, x, true);
        if (x->count == 0) {
            x->generation++;
            x->count = first_value(w, r);
        } else {
            x->count--;
            w->gws_generation = x->generation;
            go = false;
        }
    }
    w->gws_waits = !go;
    pthread_mutex_unlock(&g->lock);
    if (!go)
        return wait_here(w, r);
    order(w, x, false);
    return NEXT(r);
}

BODY(sema_p)
{
    SimGws *g;
    GwsResource *x = enter(w, r, &g);
    if (!x)
        return missing(w, r);
    bool go = x->count > 0;
    if (go) {
        x->count--;
        x->waiting -= w->gws_waits;
        w->gws_waits = false;
    } else if (!w->gws_waits) {
        w->gws_waits = true;
        x->waiting++;
    }
    pthread_mutex_unlock(&g->lock);
    if (!go)
        return wait_here(w, r);
    order(w, x, false);
    return NEXT(r);
}

/* Lets waves go: one, as many as the value says, or all that wait; r->aux says which. */
enum { RELEASE_ONE, RELEASE_VALUE, RELEASE_ALL };
BODY(release)
{
    SimGws *g;
    GwsResource *x = enter(w, r, &g);
    if (!x)
        return missing(w, r);
    order(w, x, true);
    x->count += r->aux == RELEASE_ONE ? 1 : r->aux == RELEASE_VALUE ? first_value(w, r) : x->waiting;
    pthread_mutex_unlock(&g->lock);
    return NEXT(r);
}

bool
sim_build_gws(SimBuild *b)
{
    static const struct {
        const char *name;
        SimBody body;
        uint16_t aux;
    } rows[] = {
        {"ds_gws_init", gw_init, 0},
        {"ds_gws_barrier", gw_barrier, 0},
        {"ds_gws_sema_p", gw_sema_p, 0},
        {"ds_gws_sema_v", gw_release, RELEASE_ONE},
        {"ds_gws_sema_br", gw_release, RELEASE_VALUE},
        {"ds_gws_sema_release_all", gw_release, RELEASE_ALL},
    };
    for (uint32_t i = 0; i < TL_COUNT(rows); i++) {
        if (strcmp(rows[i].name, b->name))
            continue;
        const IsaOpnd *o = sim_build_read(b, 0);
        if (o && (o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR))
            b->r->src[0] = sim_build_src(b, o);
        b->r->imm = b->in->offset & 63;
        b->r->body = rows[i].body;
        b->r->aux = rows[i].aux;
        b->x->poison = POI_NONE;
        return true;
    }
    return false;
}
