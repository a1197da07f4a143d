/* msgpack.h - bounds-checked reader for the subset of MessagePack that code object metadata uses (all types
 * may occur; extension types are skipped). A cursor never leaves its range; a malformed input sets `bad`,
 * after which every call returns nothing. */
#ifndef TL_SIM_MSGPACK_H
#define TL_SIM_MSGPACK_H

#include "base/base.h"

typedef enum MpType {
    MP_NONE,
    MP_NIL,
    MP_BOOL,
    MP_INT,
    MP_UINT,
    MP_FLOAT,
    MP_STR,
    MP_BIN,
    MP_ARRAY,
    MP_MAP,
    MP_EXT
} MpType;

typedef struct MpCursor {
    const uint8_t *p, *end;
    bool bad;
} MpCursor;

typedef struct MpValue {
    MpType type;
    uint64_t u; /* MP_UINT, MP_INT (as two's complement), MP_BOOL; elements of MP_ARRAY, pairs of MP_MAP */
    const char *str; /* MP_STR, MP_BIN: u bytes */
} MpValue;

/* Reads one value; of arrays and maps the head only, their elements follow. */
bool mp_read(MpCursor *c, MpValue *v);
/* Skips the whole value at the cursor. */
bool mp_skip(MpCursor *c);
/* Skips what follows the head of v. */
bool mp_skip_rest(MpCursor *c, const MpValue *v);
static inline bool
mp_is(const MpValue *v, const char *s)
{
    return v->type == MP_STR && v->u == strlen(s) && !memcmp(v->str, s, v->u);
}

#endif
