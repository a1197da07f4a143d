/* mem.c - allocation table: owned allocations, registered host arrays, snapshots, lookups (contract in
 * mem.h).
 *
 * Owned allocations are kept sorted by base. Host arrays are a plain list; a snapshot merges overlapping
 * hulls into extents with several views. A snapshot is built when something asks and the table has changed
 * since the last one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/mem_int.h"
#include "sim/view.h"

enum { FILL_LIMIT = 4 << 20 };

typedef struct Owned {
    SimExtent x;
    void *map; /* NULL: host-owned */
    uint64_t map_size;
    int file; /* 1 + a descriptor that it is the memory of; 0: of none */
    char name[40];
} Owned;

typedef struct Reg {
    uint64_t id, lo, hi; /* lo == hi: empty array */
    SimView view;
    char name[40];
} Reg;

/* ---- snapshots ---- */

void
sim_snap_unref(SimMemSnapshot *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    free(s->ext);
    free(s->ranges);
    free(s->views);
    free(s->names);
    free(s);
}

static int
cmp_reg(const void *a, const void *b)
{
    const Reg *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo ? 1 : x->id < y->id ? -1 : x->id > y->id;
}

static int
cmp_ext(const void *a, const void *b)
{
    const SimExtent *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

static int
cmp_range(const void *a, const void *b)
{
    const SimMemRange *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static bool
owned_overlap(const SimMem *m, uint64_t lo, uint64_t hi)
{
    uint32_t a = 0, b = m->nowned; /* first with end > lo */
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        if (m->owned[mid]->x.base + m->owned[mid]->x.size > lo)
            b = mid;
        else
            a = mid + 1;
    }
    return a < m->nowned && m->owned[a]->x.base < hi;
}

/* One extent from regs[i..j), whose hulls overlap transitively. */
static void
snap_group(SimMemSnapshot *s, const Reg *regs, uint32_t i, uint32_t j, uint32_t *nviews)
{
    SimExtent *x = &s->ext[s->n];
    uint64_t hi = regs[i].hi;
    bool dense = true;
    x->base = regs[i].lo;
    x->id = regs[i].id;
    x->kind = SIM_EXT_ARRAY;
    x->flags = SIM_EXT_HOSTOWNED;
    x->views = &s->views[*nviews];
    for (uint32_t k = i; k < j; k++) {
        hi = TL_MAX(hi, regs[k].hi);
        dense &= regs[k].view.ndim == 0;
        s->views[(*nviews)++] = regs[k].view;
    }
    x->size = hi - x->base;
    x->nviews = j - i;
    if (dense) { /* overlapping blocks leave no gap */
        x->flags |= SIM_EXT_DENSE;
        x->nviews = 0;
        x->views = NULL;
    }
    memcpy(s->names[s->n], regs[i].name, sizeof regs[i].name);
    x->name = s->names[s->n][0] ? s->names[s->n] : NULL;
    s->n++;
}

static SimMemSnapshot *
snap_build(SimMem *m)
{
    uint32_t cap = m->nowned + m->nregs + 1, nviews = 0;
    SimMemSnapshot *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    s->ext = calloc(cap, sizeof *s->ext);
    s->ranges = calloc(cap, sizeof *s->ranges);
    s->views = calloc(m->nregs + 1, sizeof *s->views);
    s->names = calloc(cap, sizeof *s->names);
    if (!s->ext || !s->ranges || !s->views || !s->names) {
        sim_snap_unref(s);
        return NULL;
    }
    for (uint32_t i = 0; i < m->nowned; i++) {
        Owned *o = m->owned[i];
        s->ext[s->n] = o->x;
        memcpy(s->names[s->n], o->name, sizeof o->name);
        s->ext[s->n].name = o->name[0] ? s->names[s->n] : NULL;
        s->n++;
        if (o->map)
            s->ranges[s->nranges++] = (SimMemRange){(uint64_t)o->map, (uint64_t)o->map + o->map_size};
    }
    if (m->nregs)
        qsort(m->regs, m->nregs, sizeof *m->regs, cmp_reg);
    for (uint32_t i = 0; i < m->nregs;) {
        uint64_t hi = m->regs[i].hi;
        uint32_t j = i + 1;
        if (m->regs[i].lo == hi || owned_overlap(m, m->regs[i].lo, hi)) {
            i++;
            continue;
        }
        while (j < m->nregs && m->regs[j].lo < hi) {
            hi = TL_MAX(hi, m->regs[j].hi);
            j++;
        }
        snap_group(s, m->regs, i, j, &nviews);
        i = j;
    }
    qsort(s->ext, s->n, sizeof *s->ext, cmp_ext);
    qsort(s->ranges, s->nranges, sizeof *s->ranges, cmp_range);
    return s;
}

static void
touch(SimMem *m)
{
    sim_snap_unref(m->snap);
    m->snap = NULL;
}

SimMemSnapshot *
sim_snap_get(SimMem *m)
{
    SimMemSnapshot *s;
    pthread_mutex_lock(&m->lock);
    if (!m->snap)
        m->snap = snap_build(m);
    s = m->snap;
    if (s)
        atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&m->lock);
    return s;
}

/* ---- other devices ---- */

void
sim_mem_link(SimMem *m, SimMem *peer)
{
    if (m->npeers < SIM_MEM_PEERS)
        m->peers[m->npeers++] = peer;
}

bool
sim_mem_reach(SimMem *m, const SimMem *peer, bool on)
{
    bool changed = false;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->npeers; i++) {
        if (m->peers[i] == peer) {
            changed = m->reach[i] != on;
            m->reach[i] = on;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return changed;
}

/* ---- lookups ---- */

bool
sim_mem_lookup(SimMem *m, uint64_t addr, uint64_t n, SimExtent *out)
{
    SimMemSnapshot *s = sim_snap_get(m);
    int64_t k = s ? sim_snap_below(s, addr) : -1;
    bool ok = false;
    if (k >= 0) {
        uint64_t off = addr - s->ext[k].base;
        ok = off < s->ext[k].size && s->ext[k].size - off >= n;
        if (ok && out) {
            *out = s->ext[k];
            out->views = NULL;
            out->nviews = 0;
            out->name = NULL;
        }
    }
    sim_snap_unref(s);
    return ok;
}

bool
sim_mem_touches(SimMem *m, uint64_t addr, uint64_t n)
{
    SimMemSnapshot *s = sim_snap_get(m);
    uint32_t a = 0, b = s ? s->nranges : 0; /* the first that ends behind addr */
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        if (s->ranges[mid].hi > addr)
            b = mid;
        else
            a = mid + 1;
    }
    bool touches = s && a < s->nranges && (s->ranges[a].lo <= addr || s->ranges[a].lo - addr < n);
    sim_snap_unref(s);
    return touches;
}

bool
sim_mem_known(SimMem *m, uint64_t addr)
{
    SimMemSnapshot *s = sim_snap_get(m);
    int64_t k = s ? sim_snap_below(s, addr) : -1;
    bool ok = k >= 0 && addr - s->ext[k].base <= s->ext[k].size;
    sim_snap_unref(s);
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->nregs && !ok; i++)
        ok = m->regs[i].lo == m->regs[i].hi && m->regs[i].lo == addr;
    pthread_mutex_unlock(&m->lock);
    return ok;
}

/* ---- the table ---- */

SimMem *
sim_mem_new(bool init_shadow)
{
    SimMem *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->init_shadow = init_shadow;
    m->next_id = 1;
    if (pthread_mutex_init(&m->lock, NULL)) {
        free(m);
        return NULL;
    }
    return m;
}

bool
sim_mem_shadowed(const SimMem *m)
{
    return m->init_shadow;
}

static void
owned_free(Owned *o)
{
    if (o->map)
        munmap(o->map, o->map_size);
    if (o->file)
        close(o->file - 1);
    free(o->x.init);
    free(o->x.whole);
    free(o);
}

void
sim_mem_free(SimMem *m)
{
    if (!m)
        return;
    touch(m);
    for (uint32_t i = 0; i < m->nowned; i++)
        owned_free(m->owned[i]);
    free(m->owned);
    free(m->regs);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static void
set_name(char (*to)[40], const char *name)
{
    if (name)
        tl_shorten(*to, sizeof *to, name);
}

/* Room for n more. The lock is held. */
static bool
reserve(SimMem *m, uint32_t n)
{
    if (m->nowned + n <= m->owned_cap)
        return true;
    uint32_t cap = TL_MAX(m->nowned + n, m->owned_cap ? m->owned_cap * 2 : 64);
    Owned **p = realloc(m->owned, cap * sizeof *p);
    if (!p)
        return false;
    m->owned = p;
    m->owned_cap = cap;
    return true;
}

/* Takes `o`; frees it on failure. */
static bool
owned_insert(SimMem *m, Owned *o)
{
    bool ok = false;
    pthread_mutex_lock(&m->lock);
    if (!reserve(m, 1))
        goto out;
    if (owned_overlap(m, o->x.base, o->x.base + o->x.size))
        goto out;
    uint32_t k = m->nowned;
    for (; k > 0 && m->owned[k - 1]->x.base > o->x.base; k--)
        m->owned[k] = m->owned[k - 1];
    m->owned[k] = o;
    m->nowned++;
    o->x.id = m->next_id++;
    if (o->x.kind == SIM_EXT_MALLOC)
        m->bytes += o->x.size;
    touch(m);
    ok = true;
out:
    pthread_mutex_unlock(&m->lock);
    if (!ok)
        owned_free(o);
    return ok;
}

static uint64_t
whole_pages(uint64_t size)
{
    return (TL_MAX(size, 1) + SIM_MEM_PAGE - 1) & ~(uint64_t)(SIM_MEM_PAGE - 1);
}

void *
sim_mem_alloc(SimMem *m, uint64_t size, SimExtentKind kind, bool defined, const char *name)
{
    if (size > (UINT64_C(1) << 46))
        return NULL;
    Owned *o = calloc(1, sizeof *o);
    uint64_t body = whole_pages(size);
    void *p;
    if (!o)
        return NULL;
    o->map_size = body + SIM_MEM_PAGE;
    p = mmap(NULL, o->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(o);
        return NULL;
    }
    o->map = p;
    if (mprotect((char *)p + body, SIM_MEM_PAGE, PROT_NONE)) {
        owned_free(o);
        return NULL;
    }
    o->x = (SimExtent){.base = (uint64_t)p, .size = size, .kind = (uint8_t)kind, .flags = SIM_EXT_DENSE};
    if (kind == SIM_EXT_KERNARG)
        o->x.flags |= SIM_EXT_READONLY;
    set_name(&o->name, name);
    if (!defined) {
        if (size <= FILL_LIMIT)
            sim_dm_fill8(sim_dm_at(p), 0xcd, size);
        if (m->init_shadow && !sim_defined_new(&o->x)) {
            owned_free(o);
            return NULL;
        }
    }
    return owned_insert(m, o) ? p : NULL;
}

void *
sim_mem_attach(SimMem *m, int fd, uint64_t size)
{
    struct stat st;
    uint64_t body = whole_pages(size);
    if (size > (UINT64_C(1) << 46) || fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size != body)
        return NULL;
    Owned *o = calloc(1, sizeof *o);
    void *p = mmap(NULL, body + SIM_MEM_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!o || p == MAP_FAILED) {
        free(o);
        return NULL;
    }
    o->map = p;
    o->map_size = body + SIM_MEM_PAGE;
    o->x = (SimExtent){.base = (uint64_t)p, .size = size, .kind = SIM_EXT_MALLOC, .flags = SIM_EXT_DENSE};
    o->x.tag = SIM_TAG_IPC;
    if (mmap(p, body, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        owned_free(o);
        return NULL;
    }
    return owned_insert(m, o) ? p : NULL;
}

/* The bytes of [base, base + n) as a file; pages of zeros take no room. */
static int
to_file(uint64_t base, uint64_t n)
{
    static const char zeros[SIM_MEM_PAGE];
    char page[SIM_MEM_PAGE];
    int fd = memfd_create("tilelang simulator", MFD_CLOEXEC);
    bool ok = fd >= 0 && !ftruncate(fd, (off_t)n);
    for (uint64_t at = 0; ok && at < n; at += sizeof page) {
        sim_dm_read(page, base + at, sizeof page);
        if (memcmp(page, zeros, sizeof page))
            ok = pwrite(fd, page, sizeof page, (off_t)at) == (ssize_t)sizeof page;
    }
    if (ok || fd < 0)
        return fd;
    close(fd);
    return -1;
}

int
sim_mem_share(SimMem *m, uint64_t base)
{
    int fd = -1;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->nowned; i++) {
        Owned *o = m->owned[i];
        if (o->x.base != base || o->x.kind != SIM_EXT_MALLOC || !o->map || o->x.tag & SIM_TAG_IPC)
            continue;
        uint64_t body = whole_pages(o->x.size);
        if (!o->file && (fd = to_file(base, body)) >= 0) {
            if (mmap(o->map, body, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
                close(fd);
            else
                o->file = fd + 1;
        }
        fd = o->file - 1;
        if (fd >= 0)
            sim_mark_defined(&o->x, base, o->x.size);
        break;
    }
    pthread_mutex_unlock(&m->lock);
    return fd;
}

bool
sim_mem_add(SimMem *m, void *base, uint64_t size, SimExtentKind kind, uint32_t flags, const char *name)
{
    Owned *o = size ? calloc(1, sizeof *o) : NULL;
    if (!o)
        return false;
    o->x = (SimExtent){.base = (uint64_t)base,
                       .size = size,
                       .kind = (uint8_t)kind,
                       .flags = (uint8_t)(flags | SIM_EXT_DENSE | SIM_EXT_HOSTOWNED)};
    set_name(&o->name, name);
    return owned_insert(m, o);
}

bool
sim_mem_stretches(SimMem *m, uint64_t lo, uint64_t hi, const SimStretch *s, uint32_t n)
{
    Owned **made = calloc(n + 1, sizeof *made);
    bool ok = made != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        if (!(ok = (made[i] = calloc(1, sizeof **made)) != NULL))
            break;
        made[i]->x =
            (SimExtent){.base = s[i].base, .size = s[i].size, .kind = SIM_EXT_MALLOC, .tag = s[i].tag};
        made[i]->x.flags = (uint8_t)(s[i].flags | SIM_EXT_DENSE | SIM_EXT_HOSTOWNED);
    }
    pthread_mutex_lock(&m->lock);
    if ((ok = ok && reserve(m, n))) {
        uint32_t k = 0, end;
        while (k < m->nowned && m->owned[k]->x.base < lo)
            k++;
        for (end = k; end < m->nowned && m->owned[end]->x.base < hi; end++) {
            m->bytes -= m->owned[end]->x.size;
            owned_free(m->owned[end]);
        }
        memmove(m->owned + k + n, m->owned + end, (m->nowned - end) * sizeof *m->owned);
        memcpy(m->owned + k, made, n * sizeof *made);
        m->nowned += n - (end - k);
        for (uint32_t i = 0; i < n; i++) {
            made[i]->x.id = m->next_id++;
            m->bytes += made[i]->x.size;
        }
        touch(m);
    }
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; !ok && made && i < n; i++)
        free(made[i]);
    free(made);
    return ok;
}

void
sim_mem_fork(SimMem *m, bool before)
{
    if (before)
        pthread_mutex_lock(&m->lock);
    else
        pthread_mutex_unlock(&m->lock);
}

/* Changes the extent that begins at base. */
static bool
amend(SimMem *m, uint64_t base, uint8_t flags, const uint64_t *tag)
{
    bool found = false;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->nowned && !found; i++) {
        if (m->owned[i]->x.base != base)
            continue;
        m->owned[i]->x.flags |= flags;
        if (tag)
            m->owned[i]->x.tag = *tag;
        touch(m);
        found = true;
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

bool
sim_mem_protect(SimMem *m, uint64_t base)
{
    return amend(m, base, SIM_EXT_READONLY, NULL);
}

bool
sim_mem_tag(SimMem *m, uint64_t base, uint64_t tag)
{
    return amend(m, base, 0, &tag);
}

bool
sim_mem_release(SimMem *m, uint64_t base, SimExtentKind kind)
{
    Owned *o = NULL;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->nowned; i++) {
        if (m->owned[i]->x.base != base || m->owned[i]->x.kind != kind)
            continue;
        o = m->owned[i];
        memmove(m->owned + i, m->owned + i + 1, (m->nowned - i - 1) * sizeof *m->owned);
        m->nowned--;
        if (kind == SIM_EXT_MALLOC)
            m->bytes -= o->x.size;
        touch(m);
        break;
    }
    pthread_mutex_unlock(&m->lock);
    if (o)
        owned_free(o);
    return o != NULL;
}

uint64_t
sim_mem_register(SimMem *m, const void *data, uint32_t ndim, const int64_t *shape, const int64_t *strides,
                 uint32_t itemsize, const char *name)
{
    Reg r = {0};
    uint64_t n;
    if (ndim > SIM_VIEW_DIMS || !itemsize ||
        !sim_view_make(&r.view, (uint64_t)data, ndim, shape, strides, itemsize, &n))
        return 0;
    r.lo = r.view.base;
    r.hi = r.lo + n;
    set_name(&r.name, name);
    pthread_mutex_lock(&m->lock);
    if (m->nregs == m->reg_cap) {
        uint32_t cap = m->reg_cap ? m->reg_cap * 2 : 16;
        Reg *p = realloc(m->regs, cap * sizeof *p);
        if (!p) {
            pthread_mutex_unlock(&m->lock);
            return 0;
        }
        m->regs = p;
        m->reg_cap = cap;
    }
    r.id = m->next_id++;
    m->regs[m->nregs++] = r;
    touch(m);
    pthread_mutex_unlock(&m->lock);
    return r.id;
}

bool
sim_mem_unregister(SimMem *m, uint64_t id)
{
    bool ok = false;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->nregs && !ok; i++) {
        if (m->regs[i].id != id)
            continue;
        m->regs[i] = m->regs[--m->nregs];
        touch(m);
        ok = true;
    }
    pthread_mutex_unlock(&m->lock);
    return ok;
}

uint64_t
sim_mem_bytes(SimMem *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t n = m->bytes;
    pthread_mutex_unlock(&m->lock);
    return n;
}

uint32_t
sim_mem_arrays(SimMem *m)
{
    pthread_mutex_lock(&m->lock);
    uint32_t n = m->nregs;
    pthread_mutex_unlock(&m->lock);
    return n;
}
