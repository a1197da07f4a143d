/* service.c - hostcalls, printf buffer and heap of kernels (contract in service.h).
 *
 * A hostcall goes through a packet of the hostcall buffer: the wave takes one from the free stack, fills in
 * service number, active lanes and 8 words a lane, pushes it on the ready stack, adds to the doorbell signal
 * and sends an interrupt; it then waits until the packet's ready bit is gone, reads two words a lane as the
 * result and pushes the packet back. Stack entries are packet numbers with a counter above them. A printf is
 * a row of such calls, each with some words of the message; its first word says whether the message begins or
 * ends, how many words follow, and, between begin and end, the number that the host gave it.
 *
 * What the device writes here is untrusted. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/service.h"

typedef struct Header {
    uint64_t next;
    uint64_t lanes;
    uint32_t service;
    uint32_t control; /* bit 0: ready */
} Header;

typedef struct Hostcall { /* at the head of its memory; then the signal */
    uint64_t headers, payloads, doorbell;
    uint64_t free_stack, ready_stack;
    uint64_t index_mask;
} Hostcall;

typedef struct Signal { /* amd_signal_t */
    int64_t kind, value;
    uint64_t mailbox;
    uint32_t event, pad;
    uint64_t rest[4];
} Signal;

enum { SIGNAL_AT = 64, MAILBOX_AT = 128, HEADERS_AT = 256 };
enum { SERVICE_CALL = 1, SERVICE_PRINTF = 2, SERVICE_MEMORY = 3 };
enum { MSG_BEGIN = 1, MSG_END = 2, MSG_LEN_SHIFT = 5, MSG_LEN_MASK = 7, MSG_ID_SHIFT = 8 };
enum { MAX_MESSAGES = 1 << 16, MAX_WORDS = 1 << 17, PRINTF_BYTES = 1 << 20, HEAP_HEAD = 1 << 17 };

typedef struct Message {
    uint64_t *words;
    uint32_t n, cap;
    bool used;
} Message;

typedef struct Block { /* of the heap, in order of address, without gaps */
    uint64_t size;
    bool used;
    struct Block *next;
} Block;

struct SimServices {
    SimMem *mem;
    pthread_mutex_t lock;
    uint32_t waves;
    uint64_t packets;                                  /* a power of two */
    uint64_t call, payloads, printf_buffer, heap_head; /* device memory; 0: not there yet */
    uint8_t *heap;
    uint64_t heap_bytes, heap_mapped;
    Block *blocks;
    Message *messages;
    uint32_t nmessages;
};

SimServices *
sim_services_new(SimMem *mem, uint32_t waves, uint64_t heap_bytes)
{
    SimServices *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (pthread_mutex_init(&s->lock, NULL)) {
        free(s);
        return NULL;
    }
    s->mem = mem;
    s->waves = TL_MAX(waves, 1);
    s->heap_bytes = heap_bytes;
    return s;
}

void
sim_services_free(SimServices *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->nmessages; i++)
        free(s->messages[i].words);
    free(s->messages);
    for (Block *b = s->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    if (s->heap)
        munmap(s->heap, s->heap_mapped);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- memory for device malloc: whole pages, blocks of 2 MiB and more on such a boundary ---- */

enum { SMALL_PAGE = 1 << 12, BIG_PAGE = 1 << 21 };

static uint64_t
make_area(SimServices *s, uint64_t bytes, const char *name)
{
    return sim_dm_at(sim_mem_alloc(s->mem, bytes, SIM_EXT_SYSTEM, true, name));
}

static bool
make_heap(SimServices *s)
{
    if (s->heap)
        return true;
    if (!(s->heap_head = make_area(s, HEAP_HEAD, "heap of device malloc")))
        return false;
    uint64_t size = (s->heap_bytes + BIG_PAGE - 1) & ~(uint64_t)(BIG_PAGE - 1);
    s->heap_mapped = size + BIG_PAGE;
    void *p = mmap(NULL, s->heap_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return false;
    uint64_t base = ((uint64_t)p + BIG_PAGE - 1) & ~(uint64_t)(BIG_PAGE - 1);
    Block *b = size ? calloc(1, sizeof *b) : NULL;
    if (size &&
        (!b || !sim_mem_add(s->mem, sim_dm_host(base), size, SIM_EXT_SYSTEM, 0, "memory of device malloc"))) {
        munmap(p, s->heap_mapped);
        free(b);
        return false;
    }
    if (b)
        b->size = size;
    s->heap = p;
    s->blocks = b;
    return true;
}

static uint64_t
heap_start(const SimServices *s)
{
    return ((uint64_t)s->heap + BIG_PAGE - 1) & ~(uint64_t)(BIG_PAGE - 1);
}

static bool
split(Block *b, uint64_t size)
{
    if (b->size == size)
        return true;
    Block *rest = malloc(sizeof *rest);
    if (!rest)
        return false;
    *rest = (Block){b->size - size, false, b->next};
    b->size = size;
    b->next = rest;
    return true;
}

static uint64_t
heap_alloc(SimServices *s, uint64_t size)
{
    uint64_t at = s->heap ? heap_start(s) : 0, align = size >= BIG_PAGE ? BIG_PAGE : SMALL_PAGE;
    if (!size || size > s->heap_bytes)
        return 0;
    size = (size + SMALL_PAGE - 1) & ~(uint64_t)(SMALL_PAGE - 1);
    for (Block *b = s->blocks; b; at += b->size, b = b->next) {
        uint64_t skip = -at & (align - 1);
        if (b->used || b->size < skip || b->size - skip < size)
            continue;
        if (skip) {
            if (!split(b, skip))
                return 0;
            at += skip;
            b = b->next;
        }
        if (!split(b, size))
            return 0;
        b->used = true;
        sim_dm_fill8(at, 0, size);
        return at;
    }
    return 0;
}

static bool
heap_free(SimServices *s, uint64_t addr)
{
    uint64_t at = s->heap ? heap_start(s) : 0;
    Block *before = NULL;
    for (Block *b = s->blocks; b; at += b->size, before = b, b = b->next) {
        if (at != addr || !b->used)
            continue;
        b->used = false;
        for (Block *a = before && !before->used ? before : b, *n; (n = a->next) && !n->used;) {
            a->size += n->size;
            a->next = n->next;
            free(n);
        }
        return true;
    }
    return false;
}

/* ---- printf messages ---- */

static Message *
message(SimServices *s, uint64_t id)
{
    return id < s->nmessages && s->messages[id].used ? &s->messages[id] : NULL;
}

static bool
begin_message(SimServices *s, uint64_t *id)
{
    uint32_t i = 0;
    while (i < s->nmessages && s->messages[i].used)
        i++;
    if (i == s->nmessages) {
        Message *m = i < MAX_MESSAGES ? realloc(s->messages, (i + 1) * sizeof *m) : NULL;
        if (!m)
            return false;
        s->messages = m;
        s->messages[s->nmessages++] = (Message){0};
    }
    s->messages[i].used = true;
    s->messages[i].n = 0;
    *id = i;
    return true;
}

static bool
append(Message *m, const uint64_t *words, uint32_t n)
{
    if (!n) /* a packet may bring none before there is room for any */
        return true;
    if (m->n + n > m->cap) {
        uint32_t cap = TL_MAX(16, 2 * (m->n + n));
        uint64_t *p = cap <= MAX_WORDS ? realloc(m->words, cap * sizeof *p) : NULL;
        if (!p)
            return false;
        m->words = p;
        m->cap = cap;
    }
    memcpy(m->words + m->n, words, n * sizeof *words);
    m->n += n;
    return true;
}

static int
print(FILE *to, const char *format, SimFormatArgs *args)
{
    TlArena a;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    int n = sim_format(&t, format, args);
    if (n >= 0 && t.data && !t.failed) {
        fwrite(t.data, 1, t.len, to);
        fflush(to);
    }
    tl_arena_free(&a);
    return n;
}

/* Word 0: bit 0 for stderr; then the format, padded to whole words; then the arguments. */
static int
print_message(const Message *m)
{
    const char *format = (const char *)(m->words + 1);
    size_t room = m->n > 1 ? (m->n - 1) * sizeof(uint64_t) : 0, n = strnlen(format, room);
    if (n == room)
        return -1;
    const uint8_t *end = (const uint8_t *)(m->words + m->n);
    SimFormatArgs args = {.p = (const uint8_t *)(m->words + 1) + ((n + 8) & ~(size_t)7), .end = end};
    return print(m->words[0] & 1 ? stderr : stdout, format, &args);
}

static void
serve_printf(SimServices *s, uint64_t w[8])
{
    uint64_t desc = w[0], id = desc >> MSG_ID_SHIFT;
    uint32_t n = (uint32_t)(desc >> MSG_LEN_SHIFT & MSG_LEN_MASK);
    if (desc & MSG_BEGIN && !begin_message(s, &id)) {
        w[0] = (uint64_t)-1;
        return;
    }
    Message *m = message(s, id);
    if (!m || !append(m, w + 1, n)) {
        w[0] = (uint64_t)-1;
    } else if (desc & MSG_END) {
        w[0] = (uint64_t)(int64_t)print_message(m);
        m->used = false;
    } else {
        w[0] = (desc & 0xfe) | id << MSG_ID_SHIFT;
    }
}

/* ---- hostcalls ---- */

static bool
make_hostcall(SimServices *s)
{
    uint64_t n = 64;
    if (s->call)
        return true;
    while (n < s->waves)
        n *= 2;
    uint64_t payloads = (HEADERS_AT + n * sizeof(Header) + 4095) & ~UINT64_C(4095);
    uint64_t area = make_area(s, payloads + n * 64 * 8 * 8, "hostcall buffer"), top = 0;
    if (!area)
        return false;
    for (uint64_t i = 0; i < n; i++) { /* packet 0 with the counter at 1: zero means empty */
        sim_dm_put64(area + HEADERS_AT + i * sizeof(Header) + offsetof(Header, next), top);
        top = i ? i : n;
    }
    Signal doorbell = {.mailbox = area + MAILBOX_AT, .event = 1};
    Hostcall c = {.headers = area + HEADERS_AT,
                  .payloads = area + payloads,
                  .doorbell = area + SIGNAL_AT,
                  .free_stack = top,
                  .index_mask = n - 1};
    sim_dm_write(area + SIGNAL_AT, &doorbell, sizeof doorbell);
    sim_dm_write(area, &c, sizeof c);
    s->payloads = area + payloads;
    s->packets = n;
    s->call = area;
    return true;
}

static const char *
serve_packet(SimServices *s, const Header *h, uint64_t payload)
{
    for (uint64_t m = h->lanes; m; m &= m - 1) {
        uint64_t at = payload + (uint32_t)__builtin_ctzll(m) * 64, w[8];
        sim_dm_read(w, at, sizeof w);
        switch (h->service) {
        case SERVICE_PRINTF:
            serve_printf(s, w);
            break;
        case SERVICE_MEMORY: /* address to be freed, or 0 and a size */
            if (w[0] && !heap_free(s, w[0]))
                return "hostcall: memory is freed that device malloc did not take";
            w[0] = w[0] ? 0 : heap_alloc(s, w[1]);
            break;
        case SERVICE_CALL:
            return "hostcall: calls of host functions (service 1) are not supported";
        default:
            return "hostcall: this service is not known";
        }
        sim_dm_put64(at, w[0]);
    }
    return NULL;
}

const char *
sim_services_serve(void *self)
{
    SimServices *s = self;
    uint64_t ready = s->call + offsetof(Hostcall, ready_stack);
    const char *why = NULL;
    if (!s->call || !sim_dm_load64(ready))
        return NULL;
    pthread_mutex_lock(&s->lock);
    uint64_t top = sim_dm_swap64(ready, 0);
    for (uint64_t i = 0; top && i < s->packets; i++) {
        uint64_t at = top & (s->packets - 1), header = s->call + HEADERS_AT + at * sizeof(Header);
        Header h;
        sim_dm_read(&h, header, sizeof h);
        const char *no = serve_packet(s, &h, s->payloads + at * 64 * 64);
        why = why ? why : no;
        sim_dm_and32(header + offsetof(Header, control), ~1u);
        top = h.next;
    }
    pthread_mutex_unlock(&s->lock);
    return why;
}

/* ---- the printf buffer: bytes used and in all, then records ---- */

static void
reset_printf(SimServices *s)
{
    uint32_t head[2] = {0, PRINTF_BYTES};
    sim_dm_write(s->printf_buffer, head, sizeof head);
}

/* The format after its hash: "0:0:HASH,format". */
static const char *
by_hash(const SimImage *im, uint64_t hash)
{
    for (uint32_t i = 0; i < im->printf_formats.len; i++) {
        const char *f = im->printf_formats.data[i];
        char *end;
        if (!strncmp(f, "0:0:", 4) && strtoull(f + 4, &end, 16) == hash && *end == ',')
            return end + 1;
    }
    return NULL;
}

enum { MAX_ARGS = 64 };

/* "ID:N:SIZE:...:format" with octal escapes and \n undone; false: there is none. */
static bool
by_id(const SimImage *im, uint32_t id, uint32_t sizes[MAX_ARGS], uint32_t *n, TlText *format)
{
    for (uint32_t i = 0; i < im->printf_formats.len; i++) {
        char *f;
        if (strtoul(im->printf_formats.data[i], &f, 10) != id || *f != ':')
            continue;
        unsigned long count = strtoul(f + 1, &f, 10);
        if (count > MAX_ARGS)
            return false;
        for (*n = 0; *n < count && *f == ':'; ++*n)
            sizes[*n] = (uint32_t)strtoul(f + 1, &f, 10);
        if (*n < count || *f++ != ':')
            return false;
        while (*f) {
            char c = *f++;
            if (c == '\\' && *f >= '0' && *f <= '7') {
                c = (char)strtoul((char[]){f[0], f[1], 0}, NULL, 8);
                f += f[1] ? 2 : 1;
            } else if (c == '\\' && *f) {
                static const char names[] = "abfnrtv\\\"'?", values[] = "\a\b\f\n\r\t\v\\\"'?";
                const char *k = strchr(names, *f++);
                c = k ? values[k - names] : f[-1];
            }
            tl_text_put(format, &c, 1);
        }
        return true;
    }
    return false;
}

/* One record at p; returns its bytes, 0: not understood. */
static uint32_t
print_id_record(const SimImage *im, const uint8_t *p, const uint8_t *end)
{
    uint32_t id, n = 0, sizes[MAX_ARGS], bytes = 4;
    TlArena a;
    TlText f;
    memcpy(&id, p, 4);
    tl_arena_init(&a, NULL);
    tl_text_init(&f, &a);
    if (by_id(im, id, sizes, &n, &f) && f.data && !f.failed) {
        SimFormatArgs args = {.p = p + 4, .end = end, .sizes = sizes, .nsizes = n};
        print(stdout, f.data, &args);
        for (uint32_t i = 0; i < n; i++)
            bytes += sizes[i];
    } else {
        bytes = 0;
    }
    tl_arena_free(&a);
    return bytes;
}

/* Bit 0 stderr, bit 1 a constant format (its hash follows, else the format), bytes above. */
static uint32_t
print_hash_record(const SimImage *im, const uint8_t *p, const uint8_t *end)
{
    uint32_t control;
    memcpy(&control, p, 4);
    uint32_t bytes = control >> 2;
    if (bytes < 4 || bytes > (uint64_t)(end - p))
        return 0;
    SimFormatArgs args = {.p = p + 4, .end = p + bytes};
    const char *format = (const char *)args.p;
    if (control & 2) {
        uint64_t hash = 0;
        if (bytes < 12)
            return 0;
        memcpy(&hash, args.p, 8);
        format = by_hash(im, hash);
        args.p += 8;
    } else {
        size_t n = strnlen(format, bytes - 4);
        if (n == bytes - 4)
            return 0;
        args.p += (n + 8) & ~(size_t)7;
    }
    if (!format || args.p > args.end)
        return 0;
    print(control & 1 ? stderr : stdout, format, &args);
    return bytes;
}

void
sim_services_end(SimServices *s, const SimKernel *k)
{
    uint32_t used, step = 1;
    const SimImage *im = k->image;
    if (!s->printf_buffer)
        return;
    used = TL_MIN(sim_dm_get32(s->printf_buffer), PRINTF_BYTES - 8);
    bool hashed = !im->printf_formats.len || !strncmp(im->printf_formats.data[0], "0:0:", 4);
    uint8_t *records = malloc(used + 1);
    if (records) {
        sim_dm_read(records, s->printf_buffer + 8, used);
        const uint8_t *p = records, *end = p + used;
        for (; end - p >= 4 && step; p += step)
            step = hashed ? print_hash_record(im, p, end) : print_id_record(im, p, end);
    }
    if (!step || !records)
        fprintf(stderr, "tilelang simulator: kernel %s left a printf record that cannot be read%s\n", k->name,
                records ? "" : ": out of memory");
    free(records);
    reset_printf(s);
}

/* ---- a launch ---- */

bool
sim_services_wanted(const SimKernel *k)
{
    for (uint32_t i = 0; i < k->nargs; i++)
        if (k->args[i].kind == SIM_ARG_hidden_printf_buffer ||
            k->args[i].kind == SIM_ARG_hidden_hostcall_buffer || k->args[i].kind == SIM_ARG_hidden_heap_v1)
            return true;
    return false;
}

bool
sim_services_begin(SimServices *s, const SimKernel *k, SimLaunchDims *dims)
{
    for (uint32_t i = 0; i < k->nargs; i++) {
        if (k->args[i].kind == SIM_ARG_hidden_printf_buffer && !s->printf_buffer) {
            if (!(s->printf_buffer = make_area(s, PRINTF_BYTES, "printf buffer")))
                return false;
            reset_printf(s);
        }
        if (k->args[i].kind == SIM_ARG_hidden_hostcall_buffer && !make_hostcall(s))
            return false;
        if (k->args[i].kind == SIM_ARG_hidden_heap_v1 && !make_heap(s))
            return false;
    }
    dims->printf_buffer = s->printf_buffer;
    dims->hostcall = s->call;
    dims->heap = s->heap_head;
    for (uint32_t i = 0; i < s->nmessages; i++) /* what a launch that was ended left behind */
        s->messages[i].used = false;
    return true;
}
