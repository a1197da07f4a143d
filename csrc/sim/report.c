/* report.c - gathers the faults of a launch and turns them into reports (contract in device.h).
 *
 * Equal faults (check, instruction, other instruction) become one report with a count. The sink says "stop"
 * when the list is full. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device.h"
#include "sim/elf.h"

struct SimReporter {
    SimDevice *dev;
    const SimKernel *kernel;
    pthread_mutex_t lock;
    SimFault faults[SIM_MAX_REPORTS];
    uint64_t counts[SIM_MAX_REPORTS];
    atomic_uint n;
    uint64_t total;
};

enum {
    STOP_AFTER = 4096, /* occurrences of known faults before the launch is given up */
    LOWEST = 1 << 24   /* device addresses are above */
};

SimReporter *
sim_reporter_new(SimDevice *d, const SimKernel *k)
{
    SimReporter *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    if (pthread_mutex_init(&r->lock, NULL)) {
        free(r);
        return NULL;
    }
    r->dev = d;
    r->kernel = k;
    return r;
}

bool
sim_reporter_sink(void *self, const SimFault *f)
{
    SimReporter *r = self;
    bool go_on;
    pthread_mutex_lock(&r->lock);
    uint32_t i = 0;
    while (i < r->n && (r->faults[i].check != f->check || r->faults[i].pc != f->pc ||
                        r->faults[i].other_pc != f->other_pc))
        i++;
    if (i == r->n && r->n < SIM_MAX_REPORTS)
        r->faults[atomic_fetch_add(&r->n, 1)] = *f;
    if (i < r->n)
        r->counts[i]++;
    go_on = ++r->total < STOP_AFTER && r->n < SIM_MAX_REPORTS;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

bool
sim_reporter_any(const SimReporter *r)
{
    return r->n != 0;
}

/* ---- text ---- */

/* Bytes of the UTF-8 sequence at s; 0: it is none (names come from files, and texts may be cut off). */
static uint32_t
utf8(const char *s)
{
    static const struct {
        uint8_t mask, lead, low, high; /* of the second byte */
    } kinds[] = {{0xff, 0xe0, 0xa0, 0xbf}, {0xff, 0xed, 0x80, 0x9f}, {0xff, 0xf0, 0x90, 0xbf},
                 {0xff, 0xf4, 0x80, 0x8f}, {0xe0, 0xc0, 0x80, 0xbf}, {0xf0, 0xe0, 0x80, 0xbf},
                 {0xfc, 0xf0, 0x80, 0xbf}};
    uint8_t c = (uint8_t)s[0];
    if (c < 0x80)
        return 1;
    uint32_t n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    for (uint32_t i = 0; i < TL_COUNT(kinds); i++) {
        if ((c & kinds[i].mask) != kinds[i].lead || c < 0xc2)
            continue;
        bool ok = (uint8_t)s[1] >= kinds[i].low && (uint8_t)s[1] <= kinds[i].high;
        for (uint32_t k = 2; k < n && ok; k++)
            ok = ((uint8_t)s[k] & 0xc0) == 0x80;
        return ok ? n : 0;
    }
    return 0;
}

void
sim_put_json(TlText *t, const char *s)
{
    if (!s) { /* a text for which there was no memory */
        t->failed = true;
        return;
    }
    tl_text_puts(t, "\"");
    for (uint32_t n; *s; s += n ? n : 1) {
        n = utf8(s);
        if (!n)
            tl_text_puts(t, "\\ufffd");
        else if (*s == '"' || *s == '\\')
            tl_text_printf(t, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            tl_text_printf(t, "\\u%04x", *s);
        else
            tl_text_put(t, s, n);
    }
    tl_text_puts(t, "\"");
}

/* Text of the instruction at a host address of the image. */
static void
put_text(SimImage *im, bool wave64, uint64_t pc, char *to, size_t size)
{
    TlArena a;
    TlText t;
    IsaInst inst;
    const char *why;
    *to = 0;
    if (pc < im->code_lo || pc >= im->code_hi)
        return;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    if (isa_decode(im->arch, wave64, sim_dm_host(pc), im->code_hi - pc, &inst, &why))
        isa_print(im->arch, wave64, &inst, &t);
    else
        isa_print_unknown(sim_dm_host(pc), im->code_hi - pc, why, &t);
    if (!t.failed && t.data)
        snprintf(to, size, "%s", t.data);
    tl_arena_free(&a);
}

static void
put_line(SimImage *im, uint64_t pc, char *file, size_t size, uint32_t *line)
{
    const char *name;
    *file = 0;
    *line = 0;
    if (sim_image_line(im, pc, &name, line))
        tl_shorten(file, size, name);
}

/* Where a global address is, in words; offsets in LDS and scratch are below anything that can be mapped. */
static void
put_buffer(SimMemPort *port, uint64_t addr, char *to, size_t size)
{
    TlArena a;
    TlText t;
    *to = 0;
    if (addr < LOWEST)
        return;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    sim_mem_describe(port, addr, 1, &t);
    if (!t.failed && t.data)
        snprintf(to, size, "%s", t.data);
    tl_arena_free(&a);
}

/* The function of a place outside of the kernel. */
static void
put_function(const SimKernel *k, uint64_t pc, char *to, size_t size)
{
    const SimImage *im = k->image;
    if (pc >= k->entry && (!k->size || pc - k->entry < k->size))
        return;
    for (uint32_t i = 0; i < im->symbols.len; i++) {
        const SimSymbol *s = &im->symbols.data[i];
        if (s->type == STT_FUNC && pc - s->address < s->size)
            tl_shorten(to, size, s->name);
    }
}

static void
make_report(const SimReporter *r, uint32_t i, SimReport *out)
{
    const SimFault *f = &r->faults[i];
    SimImage *im = r->kernel->image;
    memset(out, 0, sizeof *out);
    out->check = f->check;
    memcpy(out->wg, f->wg, sizeof out->wg);
    out->wave = f->wave;
    out->other_wave = f->other_wave;
    out->lanes = f->lanes;
    out->count = r->counts[i];
    out->pc = (int64_t)(f->pc - r->kernel->entry);
    out->other_pc = f->other_pc ? (int64_t)(f->other_pc - r->kernel->entry) : INT64_MIN;
    out->has_address = f->address != 0;
    out->rule = f->rule;
    out->address = f->address == SIM_AT_ZERO ? 0 : f->address;
    snprintf(out->message, sizeof out->message, "%s", f->message);
    tl_shorten(out->kernel, sizeof out->kernel, r->kernel->name);
    put_text(im, r->kernel->wave64, f->pc, out->text, sizeof out->text);
    put_line(im, f->pc, out->file, sizeof out->file, &out->line);
    put_function(r->kernel, f->pc, out->function, sizeof out->function);
    if (f->other_pc) {
        put_text(im, r->kernel->wave64, f->other_pc, out->other_text, sizeof out->other_text);
        put_line(im, f->other_pc, out->other_file, sizeof out->other_file, &out->other_line);
        put_function(r->kernel, f->other_pc, out->other_function, sizeof out->other_function);
    }
}

void
sim_reporter_finish(SimReporter *r)
{
    SimMemPort port;
    bool open = r->n && sim_port_open(&port, r->dev->mem, false);
    r->dev->nreports = r->n;
    uint64_t ended = atomic_load(&r->dev->groups_done), all = atomic_load(&r->dev->groups_total);
    r->dev->gave_up = r->n && all > 1 && ended < all;
    if (r->dev->gave_up)
        snprintf(r->dev->error, sizeof r->dev->error,
                 "the launch was given up when %" PRIu64 " of %" PRIu64
                 " workgroups had ended, there may be more",
                 ended, all);
    for (uint32_t i = 0; i < r->n; i++) {
        SimReport *to = &r->dev->reports[i];
        make_report(r, i, to);
        if (open)
            put_buffer(&port, to->address, to->buffer, sizeof to->buffer);
    }
    if (open)
        sim_port_close(&port);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* A place in the code; functions that a kernel calls may lie before it. */
static void
put_place(TlText *out, int64_t pc, const char *function, const char *text, const char *file, uint32_t line)
{
    uint64_t from = pc < 0 ? -(uint64_t)pc : (uint64_t)pc;
    char label[SIM_LABEL];
    tl_text_printf(out, "%c0x%" PRIx64, pc < 0 ? '-' : '+', from);
    if (function[0])
        tl_text_printf(out, " in %s", tl_shorten(label, sizeof label, function));
    tl_text_printf(out, ": %s", text);
    if (file[0])
        tl_text_printf(out, "  (%s:%u)", tl_shorten(label, sizeof label, file), line);
}

void
sim_report_print(const SimReport *r, TlText *out)
{
    char label[SIM_LABEL];
    tl_text_printf(out, "%s: %s\n  kernel %s, workgroup (%u, %u, %u), wave %u",
                   sim_check_name((SimCheck)r->check), r->message, tl_shorten(label, sizeof label, r->kernel),
                   r->wg[0], r->wg[1], r->wg[2], r->wave);
    if (r->rule)
        tl_text_printf(out, ", rule %s", isa_hazard_rule((IsaHazardRule)r->rule));
    if (r->lanes)
        tl_text_printf(out, ", lanes 0x%" PRIx64, r->lanes);
    if (r->buffer[0] && !strstr(r->message, r->buffer))
        tl_text_printf(out, "\n  address 0x%" PRIx64 ": %s", r->address, r->buffer);
    tl_text_puts(out, "\n  at ");
    put_place(out, r->pc, r->function, r->text, r->file, r->line);
    if (r->other_pc != INT64_MIN) {
        tl_text_puts(out, r->check == SIM_CHECK_INIT ? "\n  loaded by: " : "\n  other party: ");
        if (r->other_wave != UINT32_MAX)
            tl_text_printf(out, "wave %u, ", r->other_wave);
        put_place(out, r->other_pc, r->other_function, r->other_text, r->other_file, r->other_line);
    }
    if (r->count > 1)
        tl_text_printf(out, "\n  %" PRIu64 " times", r->count);
    tl_text_puts(out, "\n");
}
