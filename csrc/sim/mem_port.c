/* mem_port.c - what a worker thread asks of device memory: extents by address, in the table's snapshot, in
 * those of other devices, in mappings of the host that nobody registered (contract in mem.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/mem_int.h"

struct SimPeers { /* what a port sees of other devices */
    SimMemSnapshot *snap[SIM_MEM_PEERS];
    bool reach[SIM_MEM_PEERS];
    uint32_t n;
};

static const SimExtent empty_extent = {0};

/* ---- foreign mappings ---- */

typedef struct Mapping {
    uint64_t lo, hi;
    bool writable;
} Mapping;

struct SimForeign {
    Mapping *maps;
    uint32_t n, cap;
    SimExtent **ext; /* handed out; stable until the port closes */
    uint32_t next, ext_cap;
};

static bool
maps_push(struct SimForeign *f, Mapping mp)
{
    if (f->n && f->maps[f->n - 1].hi == mp.lo && f->maps[f->n - 1].writable == mp.writable) {
        f->maps[f->n - 1].hi = mp.hi;
        return true;
    }
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 256;
        Mapping *p = realloc(f->maps, cap * sizeof *p);
        if (!p)
            return false;
        f->maps = p;
        f->cap = cap;
    }
    f->maps[f->n++] = mp;
    return true;
}

static void
maps_read(struct SimForeign *f)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[512], perms[5];
    uint64_t lo, hi;
    f->n = 0;
    if (!in)
        return;
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &lo, &hi, perms) != 3 || perms[0] != 'r')
            continue;
        if (strstr(line, "[vsyscall]") || strstr(line, "[vvar"))
            continue;
        if (!maps_push(f, (Mapping){lo, hi, perms[1] == 'w'}))
            break;
    }
    fclose(in);
}

static const Mapping *
maps_find(const struct SimForeign *f, uint64_t addr)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (addr >= f->maps[i].lo && addr < f->maps[i].hi)
            return &f->maps[i];
    return NULL;
}

/* Cuts [*lo, *hi) around addr to what a table has nothing of; false: addr itself is its. */
static bool
outside_of(const SimMemSnapshot *s, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
    for (uint32_t i = 0; i < s->nranges; i++) {
        if (addr >= s->ranges[i].lo && addr < s->ranges[i].hi)
            return false;
        if (s->ranges[i].hi <= addr)
            *lo = TL_MAX(*lo, s->ranges[i].hi);
        else
            *hi = TL_MIN(*hi, s->ranges[i].lo);
    }
    int64_t k = sim_snap_below(s, addr);
    if (k >= 0) {
        if (s->ext[k].base + s->ext[k].size > addr)
            return false;
        *lo = TL_MAX(*lo, s->ext[k].base + s->ext[k].size);
    }
    if (k + 1 < (int64_t)s->n)
        *hi = TL_MIN(*hi, s->ext[k + 1].base);
    return true;
}

/* The part of a host mapping around addr that touches nothing of the tables. */
static const SimExtent *
foreign_find(SimMemPort *p, uint64_t addr, uint32_t n)
{
    struct SimForeign *f = p->fmaps;
    if (!f && !(f = p->fmaps = calloc(1, sizeof *f)))
        return NULL;
    for (uint32_t i = 0; i < f->next; i++)
        if (addr >= f->ext[i]->base && addr - f->ext[i]->base < f->ext[i]->size &&
            f->ext[i]->size - (addr - f->ext[i]->base) >= n)
            return f->ext[i];
    const Mapping *mp = f->n ? maps_find(f, addr) : NULL;
    if (!mp) { /* mapped since? */
        maps_read(f);
        if (!(mp = maps_find(f, addr)))
            return NULL;
    }
    uint64_t lo = mp->lo, hi = mp->hi;
    bool ok = outside_of(p->snap, addr, &lo, &hi);
    for (uint32_t i = 0; ok && p->peers && i < p->peers->n; i++)
        ok = outside_of(p->peers->snap[i], addr, &lo, &hi);
    if (!ok || hi - addr < n)
        return NULL;
    if (f->next == f->ext_cap) {
        uint32_t cap = f->ext_cap ? f->ext_cap * 2 : 16;
        SimExtent **e = realloc(f->ext, cap * sizeof *e);
        if (!e)
            return NULL;
        f->ext = e;
        f->ext_cap = cap;
    }
    SimExtent *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->base = lo;
    x->size = hi - lo;
    x->kind = SIM_EXT_FOREIGN;
    x->flags = SIM_EXT_DENSE | SIM_EXT_UNBOUNDED | SIM_EXT_HOSTOWNED | (mp->writable ? 0 : SIM_EXT_READONLY);
    return f->ext[f->next++] = x;
}

/* ---- ports ---- */

static bool
open_peers(SimMemPort *p, SimMem *m)
{
    struct SimPeers *q = p->peers = calloc(1, sizeof *q);
    if (!q)
        return false;
    for (uint32_t i = 0; i < m->npeers; i++) {
        if (!(q->snap[i] = sim_snap_get(m->peers[i])))
            return false;
        q->n++;
    }
    pthread_mutex_lock(&m->lock);
    memcpy(q->reach, m->reach, sizeof q->reach);
    pthread_mutex_unlock(&m->lock);
    return true;
}

/* The extent of another device in which addr lies, and whether it may be accessed. */
static const SimExtent *
peer_find(const struct SimPeers *q, uint64_t addr, bool *may)
{
    for (uint32_t i = 0; q && i < q->n; i++) {
        int64_t k = sim_snap_below(q->snap[i], addr);
        const SimExtent *x = k >= 0 ? &q->snap[i]->ext[k] : NULL;
        if (!x || addr - x->base >= x->size)
            continue;
        *may = q->reach[i] || x->kind == SIM_EXT_PINNED || x->kind == SIM_EXT_ARRAY;
        return x;
    }
    return NULL;
}

bool
sim_port_open(SimMemPort *p, SimMem *m, bool foreign)
{
    *p = (SimMemPort){.last = &empty_extent, .foreign = foreign};
    p->snap = sim_snap_get(m);
    return p->snap && (!m->npeers || open_peers(p, m));
}

void
sim_port_close(SimMemPort *p)
{
    sim_snap_unref((SimMemSnapshot *)p->snap);
    for (uint32_t i = 0; p->peers && i < p->peers->n; i++)
        sim_snap_unref(p->peers->snap[i]);
    free(p->peers);
    if (p->fmaps) {
        for (uint32_t i = 0; i < p->fmaps->next; i++)
            free(p->fmaps->ext[i]);
        free(p->fmaps->ext);
        free(p->fmaps->maps);
        free(p->fmaps);
    }
    *p = (SimMemPort){.last = &empty_extent};
}

const SimExtent *
sim_mem_find_slow(SimMemPort *p, uint64_t addr, uint32_t n)
{
    const SimMemSnapshot *s = p->snap;
    int64_t k = s ? sim_snap_below(s, addr) : -1;
    if (k >= 0) {
        const SimExtent *x = &s->ext[k];
        uint64_t off = addr - x->base;
        if (off < x->size)
            return x->size - off >= n ? (p->last = x) : NULL;
    }
    bool may = false;
    const SimExtent *x = p->peers ? peer_find(p->peers, addr, &may) : NULL;
    if (x)
        return may && x->size - (addr - x->base) >= n ? (p->last = x) : NULL;
    if (!s || !p->foreign || addr + n < addr)
        return NULL;
    x = foreign_find(p, addr, n);
    if (x)
        p->last = x;
    return x;
}

bool
sim_mem_in_tail(const SimMemPort *p, uint64_t addr, uint32_t n)
{
    int64_t k = p->snap ? sim_snap_below(p->snap, addr) : -1;
    if (k < 0)
        return false;
    const SimExtent *x = &p->snap->ext[k];
    uint64_t body = (TL_MAX(x->size, 1) + SIM_MEM_PAGE - 1) & ~(uint64_t)(SIM_MEM_PAGE - 1);
    return x->kind == SIM_EXT_MALLOC && !(x->flags & SIM_EXT_HOSTOWNED) && addr - x->base < body &&
           body - (addr - x->base) >= n;
}

static const char *const kind_names[] = {[SIM_EXT_MALLOC] = "hipMalloc",
                                         [SIM_EXT_PINNED] = "pinned host memory",
                                         [SIM_EXT_ARRAY] = "array",
                                         [SIM_EXT_CODE] = "code object",
                                         [SIM_EXT_KERNARG] = "kernel arguments",
                                         [SIM_EXT_SYSTEM] = "system memory",
                                         [SIM_EXT_SYNC] = "grid barrier",
                                         [SIM_EXT_FOREIGN] = "unregistered host memory"};

static void
put_extent(const SimExtent *x, TlText *out)
{
    tl_text_puts(out, x->tag & SIM_TAG_MANAGED ? "managed memory" : kind_names[x->kind]);
    if (x->name)
        tl_text_printf(out, " '%s'", x->name);
    else if (x->kind == SIM_EXT_MALLOC || x->kind == SIM_EXT_ARRAY)
        tl_text_printf(out, " #%" PRIu64, x->id);
    tl_text_printf(out, " (0x%" PRIx64 ", %" PRIu64 " bytes%s)", x->base, x->size,
                   x->flags & SIM_EXT_UNBOUNDED ? ", unbounded" : "");
}

void
sim_mem_describe(SimMemPort *p, uint64_t addr, uint32_t n, TlText *out)
{
    const SimMemSnapshot *s = p->snap;
    int64_t k = s ? sim_snap_below(s, addr) : -1;
    const SimExtent *lo = k >= 0 ? &s->ext[k] : NULL;
    const SimExtent *hi = s && k + 1 < (int64_t)s->n ? &s->ext[k + 1] : NULL;
    if (lo && addr - lo->base < lo->size) {
        uint64_t off = addr - lo->base, left = lo->size - off;
        if (n > left)
            tl_text_printf(out, "runs %" PRIu64 " bytes past the end of ", n - left);
        else if (sim_extent_holds(lo, addr, n))
            tl_text_printf(out, "at offset %" PRIu64 " of %s", off,
                           lo->flags & SIM_EXT_READONLY ? "the read-only " : "");
        else
            tl_text_printf(out, "at offset %" PRIu64 ", between the elements of ", off);
        put_extent(lo, out);
        return;
    }
    bool may = false;
    const SimExtent *peer = peer_find(p->peers, addr, &may);
    if (peer) {
        tl_text_puts(out, may ? "past the end of " : "peer access is not enabled to another device's ");
        put_extent(peer, out);
        return;
    }
    uint64_t dlo = lo ? addr - (lo->base + lo->size) : UINT64_MAX;
    uint64_t dhi = hi ? hi->base - addr : UINT64_MAX;
    const uint64_t near = 1 << 30;
    if (TL_MIN(dlo, dhi) > near) {
        tl_text_puts(out, addr < SIM_MEM_PAGE ? "a null pointer" : "in no allocation");
    } else if (dlo <= dhi) {
        tl_text_printf(out, "%" PRIu64 " bytes after the end of ", dlo);
        put_extent(lo, out);
    } else {
        tl_text_printf(out, "%" PRIu64 " bytes before ", dhi);
        put_extent(hi, out);
    }
}
