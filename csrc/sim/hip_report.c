/* hip_report.c - what the runtime asks the simulator beyond HIP, on the current device: extents of host
 * arrays, the reports and statistics of the last launch as JSON; and reports for foreign hosts (stderr,
 * TILELANG_SIM_REPORT=file). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/hip.h"

/* The row layout of the runtime's table: */
TL_API uint64_t tlsim_register(const void *data, uint32_t ndim, const int64_t *shape, const int64_t *strides,
                               uint32_t itemsize, const char *name);
TL_API int tlsim_unregister(uint64_t id); /* 0: done */
TL_API size_t tlsim_last_report(char *buf,
                                size_t cap); /* returns the whole length; "[]" after a clean launch */
TL_API size_t tlsim_last_stats(char *buf, size_t cap);
TL_API void tlsim_stats_enable(int on); /* count every instruction: adds by_pc and by_mnemonic */

uint64_t
tlsim_register(const void *data, uint32_t ndim, const int64_t *shape, const int64_t *strides,
               uint32_t itemsize, const char *name)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    return d ? sim_mem_register(d->sim->mem, data, ndim, shape, strides, itemsize, name) : 0;
}

int
tlsim_unregister(uint64_t id)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    return d && sim_mem_unregister(d->sim->mem, id) ? 0 : 1;
}

/* ---- JSON ---- */

static void
put_line(TlText *t, const char *key, const char *file, uint32_t line)
{
    tl_text_printf(t, ", \"%s\": ", key);
    if (!file[0] || !line) {
        tl_text_puts(t, "null");
        return;
    }
    sim_put_json(t, tl_arena_printf(t->arena, "%s:%u", file, line));
}

static void
put_field(TlText *t, const char *key, const char *value)
{
    tl_text_printf(t, ", \"%s\": ", key);
    sim_put_json(t, value);
}

static void
put_report(TlText *t, const SimReport *r)
{
    tl_text_printf(t, "{\"check\": \"%s\"", sim_check_name((SimCheck)r->check));
    put_field(t, "message", r->message);
    if (r->rule)
        put_field(t, "rule", isa_hazard_rule((IsaHazardRule)r->rule));
    else
        tl_text_puts(t, ", \"rule\": null");
    put_field(t, "kernel", r->kernel);
    tl_text_printf(t, ", \"workgroup\": [%u, %u, %u], \"wave\": %u, \"lanes\": [", r->wg[0], r->wg[1],
                   r->wg[2], r->wave);
    for (uint32_t i = 0, n = 0; i < 64; i++)
        if (r->lanes >> i & 1)
            tl_text_printf(t, "%s%u", n++ ? ", " : "", i);
    tl_text_printf(t, "], \"pc\": %" PRId64, r->pc);
    put_field(t, "text", r->text);
    if (r->has_address)
        tl_text_printf(t, ", \"address\": %" PRIu64, r->address);
    else
        tl_text_puts(t, ", \"address\": null");
    if (r->buffer[0])
        put_field(t, "buffer", r->buffer);
    else
        tl_text_puts(t, ", \"buffer\": null");
    if (r->other_pc != INT64_MIN)
        tl_text_printf(t, ", \"other_pc\": %" PRId64, r->other_pc);
    else
        tl_text_puts(t, ", \"other_pc\": null");
    put_line(t, "line", r->file, r->line);
    if (r->other_wave != UINT32_MAX)
        tl_text_printf(t, ", \"other_wave\": %u", r->other_wave);
    else
        tl_text_puts(t, ", \"other_wave\": null");
    put_field(t, "other_text", r->other_text);
    put_line(t, "other_line", r->other_file, r->other_line);
    put_field(t, "function", r->function[0] ? r->function : r->kernel);
    put_field(t, "other_function",
              r->other_pc == INT64_MIN ? ""
              : r->other_function[0]   ? r->other_function
                                       : r->kernel);
    tl_text_printf(t, ", \"count\": %" PRIu64, r->count);
    TlText whole;
    tl_text_init(&whole, t->arena);
    sim_report_print(r, &whole);
    put_field(t, "details", whole.data ? whole.data : "");
    tl_text_puts(t, "}");
}

static void
put_reports(TlText *t, const SimDevice *d)
{
    tl_text_puts(t, "[");
    for (uint32_t i = 0; i < d->nreports; i++) {
        tl_text_puts(t, i ? ",\n " : "");
        put_report(t, &d->reports[i]);
    }
    tl_text_puts(t, "]");
}

/* One JSON object a line, written at once so that several processes may share a file. */
static void
append_lines(const SimDevice *d, const char *path, TlArena *a)
{
    TlText t;
    tl_text_init(&t, a);
    for (uint32_t i = 0; i < d->nreports; i++) {
        put_report(&t, &d->reports[i]);
        t.len--; /* its brace */
        put_field(&t, "chip", d->chip->gfx);
        tl_text_printf(&t, ", \"launch\": %" PRIu64 ", \"gave_up\": %s}\n", d->launches,
                       d->gave_up ? "true" : "false");
    }
    FILE *f = t.data && !t.failed ? fopen(path, "a") : NULL;
    bool ok = f && fwrite(t.data, 1, t.len, f) == t.len;
    if ((f && fclose(f)) || !ok)
        sim_env_unwritable(SIM_ENV_REPORT);
}

static size_t
give(TlText *t, char *buf, size_t cap)
{
    size_t n = t->failed || !t->data ? 0 : t->len;
    if (buf && cap)
        snprintf(buf, cap, "%s", n ? t->data : "");
    return n;
}

/* Each thread's last report: a launch is over when its call returns, so the thread that asks is the one that
 * launched. */
static pthread_key_t last_key;
static pthread_once_t last_once = PTHREAD_ONCE_INIT;

static void
make_key(void)
{
    pthread_key_create(&last_key, free);
}

static void
keep_last(const char *json)
{
    pthread_once(&last_once, make_key);
    char *old = pthread_getspecific(last_key), *copy = NULL;
    if (!old && !json)
        return;
    if (json) {
        size_t n = strlen(json) + 1;
        if ((copy = malloc(n)))
            memcpy(copy, json, n);
    }
    pthread_setspecific(last_key, copy);
    free(old);
}

size_t
tlsim_last_report(char *buf, size_t cap)
{
    pthread_once(&last_once, make_key);
    const char *json = pthread_getspecific(last_key);
    if (!json)
        json = "[]";
    if (buf && cap)
        snprintf(buf, cap, "%s", json);
    return strlen(json);
}

void
sim_report_append(const SimDevice *d)
{
    const char *path = sim_env(SIM_ENV_REPORT);
    TlArena a;
    if (!path)
        return;
    tl_arena_init(&a, NULL);
    append_lines(d, path, &a);
    tl_arena_free(&a);
}

void
sim_hip_tell(SimDevice *d, bool quiet)
{
    TlArena a;
    TlText t, json;
    if (!d) {
        keep_last(NULL);
        return;
    }
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    tl_text_init(&json, &a);
    for (uint32_t i = 0; i < d->nreports && !quiet; i++)
        sim_report_print(&d->reports[i], &t);
    if (t.data && !t.failed)
        fprintf(stderr, "tilelang simulator: %u fault%s\n%s%s%s", d->nreports, d->nreports == 1 ? "" : "s",
                t.data, d->gave_up ? d->error : "", d->gave_up ? "\n" : "");
    put_reports(&json, d);
    keep_last(json.failed ? NULL : json.data);
    tl_arena_free(&a);
    sim_report_append(d);
}

/* ---- statistics ---- */

static void
put_widths(TlText *t, const char *key, const uint64_t *a, const uint64_t *b)
{
    static const uint32_t width[SIM_WIDTH_COUNT] = {1, 2, 4, 8, 12, 16};
    tl_text_printf(t, ", \"%s\": {", key);
    for (uint32_t i = 0; i < SIM_WIDTH_COUNT; i++)
        tl_text_printf(t, "%s\"%u\": %" PRIu64, i ? ", " : "", width[i], a[i] + (b ? b[i] : 0));
    tl_text_puts(t, "}");
}

/* by_pc and by_mnemonic */
static void
put_counts(TlText *t, const HipDevice *d)
{
    const SimImage *im = d->stats_image;
    uint64_t words = sim_image_count_words(im);
    uint64_t *by_op = TL_NEW_N(t->arena, uint64_t, isa_op_count());
    if (!by_op) {
        t->failed = true;
        return;
    }
    tl_text_puts(t, ", \"by_pc\": {");
    bool first = true;
    for (uint64_t i = 0; i < words; i++) {
        uint64_t n = d->stats.pc_counts[i], pc = im->code_lo + 4 * i;
        const char *why;
        IsaInst inst;
        TlText text;
        if (!n ||
            !isa_decode(im->arch, d->stats_kernel->wave64, sim_dm_host(pc), im->code_hi - pc, &inst, &why))
            continue;
        by_op[inst.op] += n;
        tl_text_init(&text, t->arena);
        isa_print(im->arch, d->stats_kernel->wave64, &inst, &text);
        tl_text_printf(t, "%s\"%" PRId64 "\": [%" PRIu64 ", ", first ? "" : ", ",
                       (int64_t)(pc - d->stats_kernel->entry), n);
        sim_put_json(t, text.data ? text.data : "");
        tl_text_puts(t, "]");
        first = false;
    }
    tl_text_puts(t, "}, \"by_mnemonic\": {");
    first = true;
    for (uint32_t i = 0; i < isa_op_count(); i++) {
        if (!by_op[i])
            continue;
        tl_text_printf(t, "%s\"%s\": %" PRIu64, first ? "" : ", ", isa_op_info(i)->name, by_op[i]);
        first = false;
    }
    tl_text_puts(t, "}");
}

size_t
tlsim_last_stats(char *buf, size_t cap)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    TlArena a;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    if (d) {
        pthread_mutex_lock(&d->lock);
        const SimStats *s = &d->stats;
        tl_text_printf(&t,
                       "{\"launches\": %" PRIu64 ", \"instructions\": %" PRIu64
                       ", \"lds_conflict_cycles\": %" PRIu64,
                       d->sim->launches, s->instructions, s->lds_conflict_cycles);
        put_widths(&t, "global_bytes", s->global_read, s->global_write);
        put_widths(&t, "global_read_bytes", s->global_read, NULL);
        put_widths(&t, "global_write_bytes", s->global_write, NULL);
        put_widths(&t, "lds_bytes", s->lds_read, s->lds_write);
        put_widths(&t, "lds_read_bytes", s->lds_read, NULL);
        put_widths(&t, "lds_write_bytes", s->lds_write, NULL);
        tl_text_printf(
            &t, ", \"scalar_bytes\": %" PRIu64 ", \"lds_dma_bytes\": %" PRIu64 ", \"atomic_lanes\": %" PRIu64,
            s->scalar_read, s->lds_dma, s->atomics);
        if (s->pc_counts && d->stats_image)
            put_counts(&t, d);
        tl_text_puts(&t, "}");
        pthread_mutex_unlock(&d->lock);
    } else {
        tl_text_puts(&t, "{}");
    }
    size_t n = give(&t, buf, cap);
    tl_arena_free(&a);
    return n;
}

void
tlsim_stats_enable(int on)
{
    HipDevice *d = sim_hip_device(sim_hip_current());
    if (d)
        d->stats_on = on != 0;
}
