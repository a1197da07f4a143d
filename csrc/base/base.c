/* base.c - see base.h */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- allocation ---- */

static void *
libc_realloc(void *self, void *p, size_t old_size, size_t new_size)
{
    (void)self;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

const TlAlloc tl_alloc_libc = {libc_realloc, NULL, false};

static void *
fail_realloc(void *self, void *p, size_t old_size, size_t new_size)
{
    TlFailAlloc *fa = self;
    if (new_size == 0) {
        fa->live_bytes -= old_size;
        free(p);
        return NULL;
    }
    if (++fa->requests == fa->fail_at)
        return NULL;
    void *q = realloc(p, new_size);
    if (q)
        fa->live_bytes += new_size - old_size;
    return q;
}

void
tl_fail_alloc_init(TlFailAlloc *fa, uint64_t fail_at)
{
    *fa = (TlFailAlloc){{fail_realloc, fa, true}, 0, fail_at, 0};
}

struct TlArenaBlock {
    TlArenaBlock *next;
    size_t size;
};

void
tl_arena_init(TlArena *a, const TlAlloc *alloc)
{
    *a = (TlArena){.alloc = alloc ? *alloc : tl_alloc_libc};
}

void
tl_arena_free(TlArena *a)
{
    for (TlArenaBlock *b = a->head, *next; b; b = next) {
        next = b->next;
        a->alloc.realloc(a->alloc.self, b, b->size, 0);
    }
    a->head = NULL;
    a->cur = a->end = NULL;
    a->failed = false;
}

static bool
arena_new_block(TlArena *a, size_t need)
{
    size_t size = a->alloc.exact ? 0 : a->head ? TL_MIN(a->head->size * 2, (size_t)1 << 20) : 8192;
    if (need > SIZE_MAX / 2)
        return false;
    if (size < need + sizeof(TlArenaBlock) + 64)
        size = need + sizeof(TlArenaBlock) + 64;
    TlArenaBlock *b = a->alloc.realloc(a->alloc.self, NULL, 0, size);
    if (!b)
        return false;
    b->next = a->head;
    b->size = size;
    a->head = b;
    a->cur = (char *)(b + 1);
    a->end = (char *)b + size;
    return true;
}

void *
tl_arena_alloc(TlArena *a, size_t size, size_t align)
{
    if (size == 0)
        size = 1;
    for (int tries = 0; tries < 2; tries++) {
        uintptr_t p = ((uintptr_t)a->cur + (align - 1)) & ~(uintptr_t)(align - 1);
        if (a->cur && p <= (uintptr_t)a->end && size <= (uintptr_t)a->end - p) {
            a->cur = a->alloc.exact ? NULL : (char *)(p + size);
            return memset((void *)p, 0, size);
        }
        if (tries == 0 && !arena_new_block(a, size + align))
            break;
    }
    a->failed = true;
    return NULL;
}

char *
tl_arena_strdup(TlArena *a, const char *s, size_t n)
{
    char *p = tl_arena_alloc(a, n + 1, 1);
    if (p && n)
        memcpy(p, s, n);
    return p;
}

char *
tl_shorten(char *to, size_t cap, const char *name)
{
    size_t n = strlen(name), head = (cap - 4) / 2, tail = cap - 4 - head;
    if (n < cap)
        return memcpy(to, name, n + 1);
    memcpy(to, name, head);
    memcpy(to + head, "...", 3);
    memcpy(to + head + 3, name + n - tail, tail + 1);
    return to;
}

char *
tl_arena_printf(TlArena *a, const char *fmt, ...)
{
    TlText t;
    va_list ap;
    tl_text_init(&t, a);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    return t.failed ? NULL : t.data;
}

bool
tl_vec_grow_(TlArena *a, void **data, uint32_t *cap, uint32_t need, size_t elem)
{
    uint32_t ncap = *cap ? *cap : 8;
    while (ncap < need) {
        if (ncap > UINT32_MAX / 2)
            return false;
        ncap *= 2;
    }
    void *p = tl_arena_alloc(a, (size_t)ncap * elem, 16);
    if (!p)
        return false;
    if (*cap)
        memcpy(p, *data, (size_t)*cap * elem);
    *data = p;
    *cap = ncap;
    return true;
}

/* ---- text ---- */

void
tl_text_init(TlText *t, TlArena *a)
{
    *t = (TlText){.arena = a};
}

static bool
text_reserve(TlText *t, size_t n)
{
    if (t->failed)
        return false;
    if (t->len + n + 1 > t->cap) {
        size_t cap = t->cap ? t->cap : 128;
        while (cap < t->len + n + 1)
            cap *= 2;
        char *p = tl_arena_alloc(t->arena, cap, 1);
        if (!p) {
            t->failed = true;
            return false;
        }
        if (t->len)
            memcpy(p, t->data, t->len);
        t->data = p;
        t->cap = cap;
    }
    return true;
}

void
tl_text_put(TlText *t, const char *s, size_t n)
{
    if (!text_reserve(t, n))
        return;
    if (n)
        memcpy(t->data + t->len, s, n);
    t->len += n;
    t->data[t->len] = 0;
}

void
tl_text_puts(TlText *t, const char *s)
{
    tl_text_put(t, s, strlen(s));
}

void
tl_text_vprintf(TlText *t, const char *fmt, va_list ap)
{
    va_list ap2;
    va_copy(ap2, ap);
    int n = vsnprintf(NULL, 0, fmt, ap2);
    va_end(ap2);
    if (n < 0 || !text_reserve(t, (size_t)n)) {
        t->failed = true;
        return;
    }
    vsnprintf(t->data + t->len, (size_t)n + 1, fmt, ap);
    t->len += (size_t)n;
}

void
tl_text_printf(TlText *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tl_text_vprintf(t, fmt, ap);
    va_end(ap);
}

/* ---- interned strings ---- */

uint64_t
tl_hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

bool
tl_strtab_init(TlStrTab *t, TlArena *a)
{
    *t = (TlStrTab){.arena = a};
    return tl_intern(t, "", 0) == 0;
}

static bool
strtab_rehash(TlStrTab *t)
{
    uint32_t n = t->nslots ? t->nslots * 2 : 64;
    uint32_t *slots = TL_NEW_N(t->arena, uint32_t, n);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < t->strs.len; i++) {
        uint32_t h = (uint32_t)tl_hash_bytes(t->strs.data[i], strlen(t->strs.data[i]), 0);
        while (slots[h & (n - 1)])
            h++;
        slots[h & (n - 1)] = i + 1;
    }
    t->slots = slots;
    t->nslots = n;
    return true;
}

TlStr
tl_intern(TlStrTab *t, const char *s, size_t n)
{
    if (t->strs.len * 2 >= t->nslots && !strtab_rehash(t))
        return UINT32_MAX;
    uint32_t h = (uint32_t)tl_hash_bytes(s, n, 0);
    for (;; h++) {
        uint32_t v = t->slots[h & (t->nslots - 1)];
        if (!v)
            break;
        const char *have = t->strs.data[v - 1];
        if (strlen(have) == n && (n == 0 || memcmp(have, s, n) == 0))
            return v - 1;
    }
    char *copy = tl_arena_strdup(t->arena, s, n);
    if (!copy || !tl_vec_push(t->arena, &t->strs, copy))
        return UINT32_MAX;
    t->slots[h & (t->nslots - 1)] = t->strs.len;
    return t->strs.len - 1;
}

/* ---- map ---- */

void
tl_map_init(TlMap *m, TlArena *a)
{
    *m = (TlMap){.arena = a};
}

static uint32_t
map_slot(const TlMap *m, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & (m->cap - 1);
    while (m->used[i] && m->keys[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

bool
tl_map_put(TlMap *m, uint64_t key, uint64_t val)
{
    if (m->n * 2 >= m->cap) {
        TlMap b = {.arena = m->arena, .cap = m->cap ? m->cap * 2 : 16};
        b.keys = TL_NEW_N(m->arena, uint64_t, b.cap);
        b.vals = TL_NEW_N(m->arena, uint64_t, b.cap);
        b.used = TL_NEW_N(m->arena, uint8_t, b.cap);
        if (!b.keys || !b.vals || !b.used)
            return false;
        for (uint32_t i = 0; i < m->cap; i++)
            if (m->used[i]) {
                uint32_t j = map_slot(&b, m->keys[i]);
                b.used[j] = 1;
                b.keys[j] = m->keys[i];
                b.vals[j] = m->vals[i];
                b.n++;
            }
        *m = b;
    }
    uint32_t i = map_slot(m, key);
    if (!m->used[i]) {
        m->used[i] = 1;
        m->keys[i] = key;
        m->n++;
    }
    m->vals[i] = val;
    return true;
}

bool
tl_map_get(const TlMap *m, uint64_t key, uint64_t *val)
{
    if (!m->cap)
        return false;
    uint32_t i = map_slot(m, key);
    if (!m->used[i])
        return false;
    *val = m->vals[i];
    return true;
}

/* ---- diagnostics ---- */

static const struct {
    const char *name;
    TlSeverity severity;
    const char *format;
} diag_rows[] = {
#define TL_DIAG(code, severity, format) {#code, severity, format},
#include "base/diag.def"
#undef TL_DIAG
};

void
tl_diag_init(TlDiag *d, TlArena *a)
{
    *d = (TlDiag){.arena = a};
    if (!tl_vec_push(a, &d->files, ""))
        d->oom = true;
}

uint32_t
tl_diag_file(TlDiag *d, const char *name)
{
    for (uint32_t i = 1; i < d->files.len; i++)
        if (strcmp(d->files.data[i], name) == 0)
            return i;
    char *copy = tl_arena_strdup(d->arena, name, strlen(name));
    if (!copy || !tl_vec_push(d->arena, &d->files, copy)) {
        d->oom = true;
        return 0;
    }
    return d->files.len - 1;
}

bool
tl_error(TlDiag *d, TlLoc loc, TlDiagCode code, ...)
{
    TlText t;
    va_list ap;
    TlDiagEntry e = {.code = code, .severity = diag_rows[code].severity, .loc = loc};
    tl_text_init(&t, d->arena);
    va_start(ap, code);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    tl_text_vprintf(&t, diag_rows[code].format, ap);
#pragma GCC diagnostic pop
    va_end(ap);
    e.message = t.failed ? "out of memory" : t.data;
    if (t.failed || !tl_vec_push(d->arena, &d->entries, e))
        d->oom = true;
    if (e.severity == TL_ERROR)
        d->nerrors++;
    return false;
}

bool
tl_hint(TlDiag *d, const char *fmt, ...)
{
    TlText t;
    va_list ap;
    if (!d->entries.len)
        return false;
    tl_text_init(&t, d->arena);
    va_start(ap, fmt);
    tl_text_vprintf(&t, fmt, ap);
    va_end(ap);
    if (!t.failed)
        d->entries.data[d->entries.len - 1].hint = t.data;
    return false;
}

const char *
tl_diag_code_name(TlDiagCode code)
{
    return diag_rows[code].name;
}

void
tl_diag_print(const TlDiag *d, TlText *out)
{
    static const char *const words[] = {"note", "warning", "error"};
    for (uint32_t i = 0; i < d->entries.len; i++) {
        const TlDiagEntry *e = &d->entries.data[i];
        if (e->loc.file)
            tl_text_printf(out, "%s:%u:%u: ", d->files.data[e->loc.file], e->loc.line, e->loc.col);
        tl_text_printf(out, "%s: %s [%s]\n", words[e->severity], e->message, diag_rows[e->code].name);
        if (e->hint)
            tl_text_printf(out, "  hint: %s\n", e->hint);
    }
    if (d->oom)
        tl_text_puts(out, "error: out of memory [OOM]\n");
}
