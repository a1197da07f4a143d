/* base.h - what every other folder builds on: arena, vectors, text buffer, hash map, diagnostics.
 *
 * Rules of the house. Nothing here (or above) exits or aborts on user input: functions return bool or an
 * index (0 = failed) and put the fault into a TlDiag. All memory of one compilation lives in one TlArena and
 * is freed at once. An allocation that fails sets arena->failed and returns NULL; callers pass that on.
 */
#ifndef TL_BASE_H
#define TL_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define TL_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define TL_API          __attribute__((visibility("default")))
#define TL_UNUSED       __attribute__((unused))
#else
#define TL_PRINTF(a, b)
#define TL_API
#define TL_UNUSED
#endif
#define TL_COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define TL_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TL_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- allocation --------------------------------------------------------------------------------- */

/* The allocator below every arena and every heap block of the core. Tests install one that fails its n-th
 * request. */
typedef struct TlAlloc {
    void *(*realloc)(void *self, void *p, size_t old_size, size_t new_size); /* new_size 0 frees */
    void *self;
    bool exact; /* arenas pass every request on instead of cutting it from a block (tests: each can fail) */
} TlAlloc;

extern const TlAlloc tl_alloc_libc;

/* An allocator that fails (returns NULL) at its fail_at-th allocating request (1 = the first; 0 = never) and
 * counts requests and live bytes; one per test, not shared between threads. */
typedef struct TlFailAlloc {
    TlAlloc alloc;
    uint64_t requests, fail_at, live_bytes;
} TlFailAlloc;

void tl_fail_alloc_init(TlFailAlloc *fa, uint64_t fail_at);

typedef struct TlArenaBlock TlArenaBlock;
typedef struct TlArena {
    TlAlloc alloc;
    TlArenaBlock *head;
    char *cur, *end;
    bool failed; /* sticky: some request could not be met */
} TlArena;

void tl_arena_init(TlArena *a, const TlAlloc *alloc); /* alloc NULL: libc */
void tl_arena_free(TlArena *a);
void *tl_arena_alloc(TlArena *a, size_t size, size_t align); /* zeroed; NULL on failure */
char *tl_arena_strdup(TlArena *a, const char *s, size_t n);  /* NUL-terminated copy of n bytes */
char *tl_arena_printf(TlArena *a, const char *fmt, ...) TL_PRINTF(2, 3);
/* A name (mangled ones have hundreds of bytes) into cap > 8 bytes: where it does not fit, its middle is
 * "...". Returns to. */
char *tl_shorten(char *to, size_t cap, const char *name);
#define TL_NEW(a, T)      ((T *)tl_arena_alloc((a), sizeof(T), _Alignof(T)))
#define TL_NEW_N(a, T, n) ((T *)tl_arena_alloc((a), sizeof(T) * (size_t)(n), _Alignof(T)))

/* ---- growable arrays in an arena: TL_VEC(int) v = {0}; if (!tl_vec_push(&arena, &v, 3)) fail; v.data[i]  */

#define TL_VEC(T)                                                                                            \
    struct {                                                                                                 \
        T *data;                                                                                             \
        uint32_t len, cap;                                                                                   \
    }
bool tl_vec_grow_(TlArena *a, void **data, uint32_t *cap, uint32_t need, size_t elem);
#define tl_vec_reserve(a, v, n)                                                                              \
    ((n) <= (v)->cap || tl_vec_grow_((a), (void **)&(v)->data, &(v)->cap, (uint32_t)(n), sizeof(*(v)->data)))
#define tl_vec_push(a, v, x)                                                                                 \
    (tl_vec_reserve((a), (v), (v)->len + 1) ? ((v)->data[(v)->len++] = (x), true) : false)

/* ---- text buffer (all printers) ----------------------------------------------------------------- */

typedef struct TlText {
    TlArena *arena;
    char *data; /* always NUL-terminated once anything was written */
    size_t len, cap;
    bool failed;
} TlText;

void tl_text_init(TlText *t, TlArena *a);
void tl_text_put(TlText *t, const char *s, size_t n);
void tl_text_puts(TlText *t, const char *s);
void tl_text_printf(TlText *t, const char *fmt, ...) TL_PRINTF(2, 3);
void tl_text_vprintf(TlText *t, const char *fmt, va_list ap) TL_PRINTF(2, 0);

/* ---- interned strings: equal text <=> equal id; id 0 is "" -------------------------------------- */

typedef uint32_t TlStr;
typedef struct TlStrTab {
    TlArena *arena;
    TL_VEC(const char *) strs;
    uint32_t *slots;
    uint32_t nslots;
} TlStrTab;
bool tl_strtab_init(TlStrTab *t, TlArena *a);
TlStr tl_intern(TlStrTab *t, const char *s, size_t n); /* UINT32_MAX on failure */
static inline const char *
tl_str(const TlStrTab *t, TlStr s)
{
    return t->strs.data[s];
}

/* ---- hash map u64 -> u64, open addressing ------------------------------------------------------- */

typedef struct TlMap {
    TlArena *arena;
    uint64_t *keys, *vals;
    uint8_t *used;
    uint32_t n, cap;
} TlMap;
void tl_map_init(TlMap *m, TlArena *a);
bool tl_map_put(TlMap *m, uint64_t key, uint64_t val);        /* overwrites; false only when out of memory */
bool tl_map_get(const TlMap *m, uint64_t key, uint64_t *val); /* false when absent */
uint64_t tl_hash_bytes(const void *p, size_t n, uint64_t seed);

/* ---- diagnostics -------------------------------------------------------------------------------- */

typedef struct TlLoc { /* file 0: unknown. Lines from 1, columns from 1 (0: unknown). */
    uint32_t file;     /* index into TlDiag.files; 0 = none */
    uint32_t line, col, end_col;
} TlLoc;

typedef enum TlSeverity { TL_NOTE, TL_WARNING, TL_ERROR } TlSeverity;

typedef enum TlDiagCode {
#define TL_DIAG(code, severity, format) TL_E_##code,
#include "base/diag.def"
#undef TL_DIAG
    TL_E__COUNT
} TlDiagCode;

typedef struct TlDiagEntry {
    TlDiagCode code;
    TlSeverity severity;
    TlLoc loc;
    const char *message; /* the format of diag.def filled in */
    const char *hint;    /* a way out, or NULL */
} TlDiagEntry;

typedef struct TlDiag { /* one per compilation */
    TlArena *arena;
    TL_VEC(TlDiagEntry) entries;
    TL_VEC(const char *) files;
    uint32_t nerrors;
    bool oom;
} TlDiag;

void tl_diag_init(TlDiag *d, TlArena *a);
uint32_t tl_diag_file(TlDiag *d, const char *name); /* index for TlLoc.file */
/* Adds an entry; the format comes from diag.def. Always returns false, so `return tl_error(...)` reads well.
 */
bool tl_error(TlDiag *d, TlLoc loc, TlDiagCode code, ...);
/* Attaches a way out to the newest entry. Returns false. */
bool tl_hint(TlDiag *d, const char *fmt, ...) TL_PRINTF(2, 3);
const char *tl_diag_code_name(TlDiagCode code);
/* "file:line:col: error: message [code]" lines of all entries. */
void tl_diag_print(const TlDiag *d, TlText *out);

#endif
