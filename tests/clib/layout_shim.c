/* layout_shim.c - what tests/layout needs beside the public functions: text of a layout, sizes of the
 * mirrored structs. */
#include "layout/layout.h"

/* Copies the printed layout into buf (NUL-terminated); its length, or SIZE_MAX if it does not fit or memory
 * is out. */
TL_API size_t tl_test_layout_text(const TlLayout *l, char *buf, size_t room);
/* sizeof of struct `which`, in the order of the table below; 0 behind the end. */
TL_API size_t tl_test_layout_sizes(unsigned which);

size_t
tl_test_layout_text(const TlLayout *l, char *buf, size_t room)
{
    TlArena arena;
    TlText text;
    size_t n = SIZE_MAX;
    tl_arena_init(&arena, NULL);
    tl_text_init(&text, &arena);
    tl_layout_print(l, &text);
    if (!text.failed && text.len < room) {
        memcpy(buf, text.data, text.len + 1);
        n = text.len;
    }
    tl_arena_free(&arena);
    return n;
}

size_t
tl_test_layout_sizes(unsigned which)
{
    static const size_t sizes[] = {
        sizeof(TlElemInfo), sizeof(TlTarget),    sizeof(TlMma),       sizeof(TlOccupancy),
        sizeof(TlLayout),   sizeof(TlDot),       sizeof(TlDotSlice),  sizeof(TlBlocked),
        sizeof(TlLdsMap),   sizeof(TlLdsAccess), sizeof(TlAddrSplit),
    };
    return which < TL_COUNT(sizes) ? sizes[which] : 0;
}
