/* basetest.c - csrc/base seen by ctypes: each function runs one story and gives 0, or the number of the step
 * that went wrong (a line of this file). */
#include "base/base.h"

#include <stdio.h>

#define STEP(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            return __LINE__;                                                                                 \
    } while (0)

TL_API int tl_test_arena(uint64_t seed);
TL_API int tl_test_containers(uint64_t seed);
TL_API int tl_test_text(void);
TL_API int tl_test_diag(void);
TL_API int tl_test_base_alloc_sweep(void);

static uint64_t
next(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* Blocks of all sizes and alignments: zeroed, aligned, apart from each other, all given back. */
int
tl_test_arena(uint64_t seed)
{
    TlFailAlloc fa;
    TlArena a;
    for (int exact = 0; exact < 2; exact++) {
        tl_fail_alloc_init(&fa, 0);
        fa.alloc.exact = exact;
        tl_arena_init(&a, &fa.alloc);
        unsigned char *got[200];
        size_t size[200];
        for (int i = 0; i < 200; i++) {
            size_t align = (size_t)1 << next(&seed) % 7;
            size[i] = next(&seed) % (i % 20 == 0 ? 100000 : 200);
            got[i] = tl_arena_alloc(&a, size[i], align);
            STEP(got[i] && (uintptr_t)got[i] % align == 0);
            for (size_t k = 0; k < size[i]; k++)
                STEP(got[i][k] == 0);
            memset(got[i], i + 1, size[i]);
        }
        for (int i = 0; i < 200; i++)
            for (size_t k = 0; k < size[i]; k++)
                STEP(got[i][k] == (unsigned char)(i + 1));
        STEP(exact ? fa.requests == 200 : fa.requests < 60);
        STEP(fa.live_bytes > 0 && !a.failed);
        STEP(tl_arena_alloc(&a, SIZE_MAX / 2 + 1, 1) == NULL && a.failed);
        tl_arena_free(&a);
        STEP(fa.live_bytes == 0 && !a.failed);
    }
    return 0;
}

int
tl_test_containers(uint64_t seed)
{
    TlArena a;
    TlStrTab t;
    TlMap m;
    TL_VEC(int) v = {0};
    char name[32];
    uint64_t got;
    tl_arena_init(&a, NULL);
    for (int i = 0; i < 5000; i++)
        STEP(tl_vec_push(&a, &v, i));
    for (int i = 0; i < 5000; i++)
        STEP(v.data[i] == i);
    /* strings: equal text, equal id; ids ascend; 0 is "" */
    STEP(tl_strtab_init(&t, &a) && tl_intern(&t, "", 0) == 0 && tl_intern(&t, "abc", 3) == 1);
    for (int i = 0; i < 3000; i++) {
        int n = snprintf(name, sizeof name, "name%d", i);
        STEP(tl_intern(&t, name, (size_t)n) == (TlStr)(i + 2));
    }
    for (int i = 0; i < 3000; i++) {
        int n = snprintf(name, sizeof name, "name%d tail", i) - 5;
        STEP(tl_intern(&t, name, (size_t)n) == (TlStr)(i + 2) &&
             strlen(tl_str(&t, (TlStr)(i + 2))) == (size_t)n);
    }
    /* map against itself: keys that collide in their low bits, overwriting, absent keys, key 0 */
    tl_map_init(&m, &a);
    STEP(!tl_map_get(&m, 0, &got));
    STEP(tl_map_put(&m, 0, 7) && tl_map_get(&m, 0, &got) && got == 7);
    uint64_t keys[2000];
    for (int i = 0; i < 2000; i++) {
        keys[i] = i % 2 ? (uint64_t)(i + 1) << 40 : next(&seed) << 20 | (uint64_t)i << 1 | 1;
        STEP(tl_map_put(&m, keys[i], (uint64_t)i) && tl_map_put(&m, keys[i], (uint64_t)i * 3));
    }
    for (int i = 0; i < 2000; i++)
        STEP(tl_map_get(&m, keys[i], &got) && got == (uint64_t)i * 3);
    STEP(m.n == 2001 && !tl_map_get(&m, 12345678901234567u << 1, &got));
    tl_arena_free(&a);
    return 0;
}

int
tl_test_text(void)
{
    TlArena a;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    for (int i = 0; i < 1000; i++)
        tl_text_printf(&t, "%d,", i);
    tl_text_put(&t, "\0x", 2);
    STEP(!t.failed && t.len == 10 * 2 + 90 * 3 + 900 * 4 + 2 && t.data[t.len] == 0);
    STEP(memcmp(t.data, "0,1,2,", 6) == 0 && t.data[t.len - 1] == 'x' && t.data[t.len - 2] == 0);
    STEP(strcmp(tl_arena_printf(&a, "%s-%03d", "a", 7), "a-007") == 0);
    STEP(strcmp(tl_arena_strdup(&a, "hello", 4), "hell") == 0);
    tl_arena_free(&a);
    return 0;
}

int
tl_test_diag(void)
{
    TlArena a;
    TlDiag d;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_diag_init(&d, &a);
    uint32_t f = tl_diag_file(&d, "a.py"), g = tl_diag_file(&d, "b.py");
    STEP(f && g && f != g && tl_diag_file(&d, "a.py") == f);
    STEP(!tl_error(&d, (TlLoc){f, 3, 5, 9}, TL_E_VALUE, "too large"));
    STEP(!tl_hint(&d, "use %d", 4));
    STEP(!tl_error(&d, (TlLoc){0}, TL_E_NOTE, "by the way"));
    STEP(!tl_error(&d, (TlLoc){g, 1, 0, 0}, TL_E_INTERNAL, "odd"));
    STEP(d.nerrors == 2 && d.entries.len == 3 && !d.oom);
    tl_text_init(&t, &a);
    tl_diag_print(&d, &t);
    STEP(strcmp(t.data,
                "a.py:3:5: error: too large [VALUE]\n  hint: use 4\nnote: by the way [NOTE]\n"
                "b.py:1:0: error: internal error: odd (this is a fault of tilelang, please report it) "
                "[INTERNAL]\n") == 0);
    tl_arena_free(&a);
    return 0;
}

/* Every request of containers and diagnostics fails once: said so, nothing kept, nothing read beyond. */
int
tl_test_base_alloc_sweep(void)
{
    for (uint64_t at = 1;; at++) {
        TlFailAlloc fa;
        TlArena a;
        TlStrTab t;
        TlMap m;
        TlDiag d;
        TlText x;
        char name[32];
        bool ok = true;
        tl_fail_alloc_init(&fa, at);
        tl_arena_init(&a, &fa.alloc);
        tl_diag_init(&d, &a);
        tl_map_init(&m, &a);
        tl_text_init(&x, &a);
        ok &= tl_strtab_init(&t, &a);
        for (int i = 0; ok && i < 100; i++) {
            int n = snprintf(name, sizeof name, "n%d", i);
            ok &= tl_intern(&t, name, (size_t)n) != UINT32_MAX && tl_map_put(&m, (uint64_t)i * 977, 1);
            tl_text_printf(&x, "%s;", name);
            tl_error(&d, (TlLoc){tl_diag_file(&d, i < 3 ? name : "n"), 1, 1, 0}, TL_E_TYPE, name);
            tl_hint(&d, "%s", name);
        }
        tl_diag_print(&d, &x);
        ok &= !x.failed && !d.oom;
        bool hit = fa.requests >= at, said = a.failed;
        tl_arena_free(&a);
        STEP(fa.live_bytes == 0);
        if (!hit) {
            STEP(ok && at > 100);
            return 0;
        }
        STEP(said);
    }
}
