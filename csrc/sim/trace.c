/* trace.c - records of executed instructions, one stream a wave; the file's format is described in
 * docs/trace.md. Waves record into buffers of their own; only starting a wave takes a lock. A wave whose
 * buffer cannot grow is marked as cut short and goes on unrecorded. Entry points for tilelang.sim are at the
 * end. */
#include <pthread.h>
#include <stdatomic.h>

#include "sim/tlsim.h"
#include "sim/trace.h"

typedef struct Row { /* one executed instruction, as in the file */
    uint32_t pc, data;
    uint16_t words, conflict, lines;
    uint8_t bytes, exec, kind, pad[3];
} Row;
_Static_assert(sizeof(Row) == 20, "row layout");

enum { CHUNK_ADDRESSES = 1, CHUNK_SCALAR, CHUNK_VECTOR, NO_DATA = -1 };
enum { TRACE_VERSION = 1, LINE_BYTES = 128 };

struct SimTraceWave {
    SimTrace *trace;
    SimTraceWave *next;
    uint64_t linear;
    uint32_t wg[3], wave;
    bool cut;
    Row *rows;
    uint64_t nrows, rows_cap, at; /* at: the row of the instruction that runs */
    uint64_t *data;
    uint64_t ndata, data_cap;
    uint64_t conflicts; /* of the statistics before the instruction */
};

struct SimTrace {
    SimTraceOptions o;
    uint64_t *groups;
    pthread_mutex_t lock;
    SimTraceWave *first, **last;
    uint64_t nwaves, skipped;
    atomic_uint_fast64_t held; /* bytes */
};

SimTrace *
sim_trace_new(const SimTraceOptions *o)
{
    SimTrace *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->o = *o;
    t->last = &t->first;
    if (o->groups && !(t->groups = malloc((o->ngroups + 1) * sizeof *t->groups))) {
        free(t);
        return NULL;
    }
    if (o->groups)
        memcpy(t->groups, o->groups, o->ngroups * sizeof *t->groups);
    if (pthread_mutex_init(&t->lock, NULL)) {
        free(t->groups);
        free(t);
        return NULL;
    }
    return t;
}

void
sim_trace_free(SimTrace *t)
{
    if (!t)
        return;
    for (SimTraceWave *w = t->first, *next; w; w = next) {
        next = w->next;
        free(w->rows);
        free(w->data);
        free(w);
    }
    pthread_mutex_destroy(&t->lock);
    free(t->groups);
    free(t);
}

static bool
wanted(const SimTrace *t, uint64_t linear, uint32_t wave)
{
    if (t->o.wave != UINT32_MAX && t->o.wave != wave)
        return false;
    for (uint64_t i = 0; t->groups && i < t->o.ngroups; i++)
        if (t->groups[i] == linear)
            return true;
    return !t->groups;
}

SimTraceWave *
sim_trace_start(SimTrace *t, const SimWave *w)
{
    if (!t || !wanted(t, w->g->linear, w->index))
        return NULL;
    bool room = atomic_load(&t->held) < t->o.max_bytes;
    SimTraceWave *tw = room ? calloc(1, sizeof *tw) : NULL;
    pthread_mutex_lock(&t->lock);
    if (tw) {
        *t->last = tw;
        t->last = &tw->next;
        t->nwaves++;
    } else {
        t->skipped++;
    }
    pthread_mutex_unlock(&t->lock);
    if (!tw)
        return NULL;
    tw->trace = t;
    tw->linear = w->g->linear;
    memcpy(tw->wg, w->g->wg, sizeof tw->wg);
    tw->wave = w->index;
    return tw;
}

/* ---- recording
 * ------------------------------------------------------------------------------------------------------ */

static bool
grow(SimTraceWave *tw, void **p, uint64_t *cap, uint64_t need, size_t size)
{
    if (need <= *cap)
        return true;
    uint64_t c = TL_MAX(need, *cap * 2 + 256);
    void *q = realloc(*p, c * size);
    if (!q) {
        tw->cut = true;
        return false;
    }
    atomic_fetch_add(&tw->trace->held, (c - *cap) * size);
    *p = q;
    *cap = c;
    return true;
}

/* Room for a chunk of n words behind its head; NULL: none. */
static uint64_t *
chunk(SimTraceWave *tw, uint32_t type, uint32_t reg, uint32_t n)
{
    Row *row = &tw->rows[tw->at];
    if (tw->cut || !grow(tw, (void **)&tw->data, &tw->data_cap, tw->ndata + n + 1, sizeof(uint64_t)))
        return NULL;
    if (row->data == (uint32_t)NO_DATA)
        row->data = (uint32_t)tw->ndata;
    else if (row->data + row->words != tw->ndata) /* only what follows on can be added */
        return NULL;
    row->words = (uint16_t)(row->words + n + 1);
    tw->data[tw->ndata] = type | (uint64_t)reg << 16 | (uint64_t)n << 48;
    uint64_t *at = tw->data + tw->ndata + 1;
    tw->ndata += n + 1;
    return at;
}

void
sim_trace_before(SimWave *w, const SimRec *r)
{
    SimTraceWave *tw = w->trace;
    if (tw->cut || !grow(tw, (void **)&tw->rows, &tw->rows_cap, tw->nrows + 1, sizeof(Row)))
        return;
    if (tw->ndata > UINT32_MAX - 4096) {
        tw->cut = true;
        return;
    }
    tw->at = tw->nrows++;
    tw->rows[tw->at] = (Row){.pc = (uint32_t)(rec_pc(w, r) - w->g->info->entry),
                             .data = (uint32_t)NO_DATA,
                             .exec = (uint8_t)__builtin_popcountll(EXEC(w))};
    tw->conflicts = w->stats ? w->stats->lds_conflict_cycles : 0;
}

uint64_t
sim_trace_go(SimWave *w, uint64_t row)
{
    SimTraceWave *tw = w->trace;
    uint64_t from = tw->at;
    if (row < tw->nrows)
        tw->at = row;
    tw->conflicts = w->stats ? w->stats->lds_conflict_cycles : 0;
    return from;
}

static void
put_registers(SimWave *w, SimTraceWave *tw, const IsaInst *in)
{
    for (uint32_t i = 0; i < in->nopnds; i++) {
        const IsaOpnd *o = &in->opnd[i];
        bool vector = o->kind == ISA_OPND_VGPR || o->kind == ISA_OPND_AGPR;
        if (!(o->flags & ISA_WRITE) || (!vector && o->kind != ISA_OPND_SGPR))
            continue;
        bool rdna = w->code->arch >= ISA_GFX1100;
        if (!vector && rdna && o->reg == 124) /* null, one register or several */
            continue;
        for (uint32_t k = 0; k < o->nregs; k++) {
            uint32_t reg = o->reg + k;
            if (vector) {
                reg += o->kind == ISA_OPND_AGPR ? ROW_AGPR : 0;
                uint64_t *to = reg < ROWS ? chunk(tw, CHUNK_VECTOR, reg, LANES / 2) : NULL;
                if (to)
                    memcpy(to, ROW(w, reg), LANES * 4);
                continue;
            }
            if (rdna && reg == 125)
                reg = S_M0;
            uint64_t *to = reg < 128 ? chunk(tw, CHUNK_SCALAR, reg, 1) : NULL;
            if (to)
                *to = w->s[reg];
        }
    }
}

void
sim_trace_after(SimWave *w, const SimRec *r)
{
    SimTraceWave *tw = w->trace;
    if (tw->cut || !tw->nrows)
        return;
    Row *row = &tw->rows[tw->at];
    if (w->stats)
        row->conflict = (uint16_t)TL_MIN(w->stats->lds_conflict_cycles - tw->conflicts, UINT16_MAX);
    if (tw->trace->o.values && r->ext)
        put_registers(w, tw, &r->ext->in);
}

/* Different lines of LINE_BYTES among the lanes' bytes. */
static uint32_t
count_lines(const uint64_t *addr, uint32_t lanes, uint32_t n)
{
    uint64_t seen[2 * LANES];
    uint32_t count = 0;
    for (uint32_t l = 0; l < lanes; l++)
        for (uint64_t x = addr[l] / LINE_BYTES; x <= (addr[l] + n - 1) / LINE_BYTES; x++) {
            uint32_t k = count;
            while (k && seen[k - 1] != x)
                k--;
            if (!k && count < 2 * LANES)
                seen[count++] = x;
        }
    return count;
}

static void
put_addresses(SimWave *w, SimTraceKind kind, const uint64_t *addr, uint64_t exec, uint32_t n)
{
    SimTraceWave *tw = w->trace;
    if (tw->cut || !tw->nrows)
        return;
    Row *row = &tw->rows[tw->at];
    uint32_t lanes = (uint32_t)__builtin_popcountll(exec), k = 1;
    row->kind = (uint8_t)kind;
    row->bytes = (uint8_t)TL_MIN(n, 255u);
    uint64_t *to = chunk(tw, CHUNK_ADDRESSES, 0, lanes + 1);
    if (!to)
        return;
    to[0] = exec;
    for (uint64_t m = exec; m; m &= m - 1)
        to[k++] = addr[__builtin_ctzll(m)];
    if (kind == SIM_TRACE_GLOBAL || kind == SIM_TRACE_SCALAR)
        row->lines = (uint16_t)(row->lines + count_lines(to + 1, lanes, n));
}

void
sim_trace_global(SimWave *w, const uint64_t *addr, uint64_t exec, uint32_t n, bool scratch)
{
    put_addresses(w, scratch ? SIM_TRACE_SCRATCH : SIM_TRACE_GLOBAL, addr, exec, n);
}

void
sim_trace_lds(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t n)
{
    uint64_t wide[LANES];
    for (uint32_t l = 0; l < LANES; l++)
        wide[l] = addr[l];
    put_addresses(w, SIM_TRACE_LDS, wide, exec, n);
}

void
sim_trace_scalar(SimWave *w, uint64_t addr, uint32_t n)
{
    put_addresses(w, SIM_TRACE_SCALAR, &addr, 1, n);
}

/* ---- the file
 * -------------------------------------------------------------------------------------------------------- */

typedef struct Head {
    char magic[8];
    uint32_t version, head_bytes, row_bytes, wave_size;
    uint64_t nwaves, skipped;
    char arch[16], kernel[256];
} Head;

typedef struct WaveHead {
    uint64_t linear;
    uint32_t wg[3], wave;
    uint32_t cut, pad;
    uint64_t nrows, ndata;
} WaveHead;

uint8_t *
sim_trace_save(const SimTrace *t, const char *arch, const char *kernel, uint32_t wave_size, uint64_t entry,
               uint64_t *size)
{
    uint64_t total = sizeof(Head);
    (void)entry;
    for (const SimTraceWave *w = t->first; w; w = w->next)
        total += sizeof(WaveHead) + (w->nrows * sizeof(Row) + 7) / 8 * 8 + w->ndata * 8;
    uint8_t *out = calloc(1, total), *p = out;
    if (!out)
        return NULL;
    Head h = {
        .magic = "TLTRACE", .version = TRACE_VERSION, .head_bytes = sizeof(Head), .row_bytes = sizeof(Row)};
    h.wave_size = wave_size;
    h.nwaves = t->nwaves;
    h.skipped = t->skipped;
    snprintf(h.arch, sizeof h.arch, "%s", arch);
    tl_shorten(h.kernel, sizeof h.kernel, kernel);
    memcpy(p, &h, sizeof h);
    p += sizeof h;
    for (const SimTraceWave *w = t->first; w; w = w->next) {
        WaveHead wh = {
            .linear = w->linear, .wave = w->wave, .cut = w->cut, .nrows = w->nrows, .ndata = w->ndata};
        memcpy(wh.wg, w->wg, sizeof wh.wg);
        memcpy(p, &wh, sizeof wh);
        p += sizeof wh;
        if (w->nrows)
            memcpy(p, w->rows, w->nrows * sizeof(Row));
        p += (w->nrows * sizeof(Row) + 7) / 8 * 8;
        if (w->ndata)
            memcpy(p, w->data, w->ndata * 8);
        p += w->ndata * 8;
    }
    *size = total;
    return out;
}

/* ---- for tilelang.sim
 * ------------------------------------------------------------------------------------------------- */

/* As tlsim_launch, with a record of the waves of `groups` (NULL: all), wave UINT32_MAX: all of them. *file
 * and *bytes: the record, to be freed by tlsim_text_free; NULL when memory ran out. */
TL_API int32_t tlsim_launch_traced(SimDevice *dev, SimKernel *k, const uint32_t grid[3],
                                   const uint32_t block[3], uint32_t dynamic_lds, const void *kernarg,
                                   uint64_t kernarg_bytes, SimStats *stats, const SimTraceOptions *options,
                                   uint8_t **file, uint64_t *bytes);

int32_t
tlsim_launch_traced(SimDevice *dev, SimKernel *k, const uint32_t grid[3], const uint32_t block[3],
                    uint32_t dynamic_lds, const void *kernarg, uint64_t kernarg_bytes, SimStats *stats,
                    const SimTraceOptions *options, uint8_t **file, uint64_t *bytes)
{
    SimDevice *d = dev ? dev : sim_hip_current_device();
    SimTrace *t = d ? sim_trace_new(options) : NULL;
    *file = NULL;
    *bytes = 0;
    if (!t)
        return d ? SIM_NO_MEMORY : SIM_UNSUPPORTED;
    SimLaunch l = {.kernel = k,
                   .dynamic_lds = dynamic_lds,
                   .kernarg = kernarg,
                   .kernarg_bytes = kernarg_bytes,
                   .stats = stats,
                   .trace = t};
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.block, block, sizeof l.block);
    int32_t st = (int32_t)sim_device_launch(d, &l);
    if (st == SIM_FAULTED)
        sim_report_append(d);
    *file = sim_trace_save(t, isa_arch_name(k->image->arch), k->name, k->wave64 ? 64 : 32, k->entry, bytes);
    sim_trace_free(t);
    return st;
}
