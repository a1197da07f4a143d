/* msgpack.c - see msgpack.h. */
#include "sim/msgpack.h"

enum { MAX_DEPTH = 32 };

static bool
fail(MpCursor *c)
{
    c->bad = true;
    c->p = c->end;
    return false;
}

static bool
take(MpCursor *c, uint32_t n, uint64_t *out) /* n big-endian bytes */
{
    uint64_t v = 0;
    if ((uint64_t)(c->end - c->p) < n)
        return fail(c);
    for (uint32_t i = 0; i < n; i++)
        v = v << 8 | *c->p++;
    *out = v;
    return true;
}

static bool
bytes(MpCursor *c, MpValue *v, MpType type, uint64_t n)
{
    if ((uint64_t)(c->end - c->p) < n)
        return fail(c);
    v->type = type;
    v->u = n;
    v->str = (const char *)c->p;
    c->p += n;
    return true;
}

static bool
sized(MpCursor *c, MpValue *v, MpType type, uint32_t len_bytes)
{
    uint64_t n;
    if (!take(c, len_bytes, &n))
        return false;
    if (type == MP_STR || type == MP_BIN)
        return bytes(c, v, type, n);
    if (type == MP_EXT)
        return bytes(c, v, type, n + 1);
    v->type = type;
    v->u = n;
    return true;
}

static bool
number(MpCursor *c, MpValue *v, uint8_t b)
{
    uint32_t n = 1u << (b & 3);
    v->type = b >= 0xd0 ? MP_INT : MP_UINT;
    if (!take(c, n, &v->u))
        return false;
    if (b >= 0xd0 && n < 8 && v->u >> (8 * n - 1))
        v->u |= ~UINT64_C(0) << (8 * n);
    return true;
}

/* What a byte of 0xc0 to 0xdf that is no number begins. */
static bool
tagged(MpCursor *c, MpValue *v, uint8_t b)
{
    switch (b) {
    case 0xc0:
        v->type = MP_NIL;
        return true;
    case 0xc2:
    case 0xc3:
        v->type = MP_BOOL;
        v->u = b & 1;
        return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return sized(c, v, MP_BIN, 1u << (b - 0xc4));
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return sized(c, v, MP_EXT, 1u << (b - 0xc7));
    case 0xca:
    case 0xcb:
        v->type = MP_FLOAT;
        return take(c, b == 0xca ? 4 : 8, &v->u);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return bytes(c, v, MP_EXT, (UINT64_C(1) << (b - 0xd4)) + 1);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return sized(c, v, MP_STR, 1u << (b - 0xd9));
    case 0xdc:
    case 0xdd:
        return sized(c, v, MP_ARRAY, b == 0xdc ? 2 : 4);
    case 0xde:
    case 0xdf:
        return sized(c, v, MP_MAP, b == 0xde ? 2 : 4);
    default: /* 0xc1 */
        return fail(c);
    }
}

bool
mp_read(MpCursor *c, MpValue *v)
{
    *v = (MpValue){0};
    if (c->bad || c->p >= c->end)
        return fail(c);
    uint8_t b = *c->p++;
    if (b < 0x80) {
        v->type = MP_UINT;
        v->u = b;
        return true;
    }
    if (b >= 0xe0) {
        v->type = MP_INT;
        v->u = (uint64_t)(int64_t)(int8_t)b;
        return true;
    }
    if (b < 0x90 || b < 0xa0) {
        v->type = b < 0x90 ? MP_MAP : MP_ARRAY;
        v->u = b & 15;
        return true;
    }
    if (b < 0xc0)
        return bytes(c, v, MP_STR, b & 31);
    if (b >= 0xcc && b <= 0xd3)
        return number(c, v, b);
    return tagged(c, v, b);
}

static bool
skip_depth(MpCursor *c, uint32_t depth)
{
    MpValue v;
    if (depth > MAX_DEPTH)
        return fail(c);
    if (!mp_read(c, &v))
        return false;
    uint64_t n = v.type == MP_MAP ? 2 * v.u : v.type == MP_ARRAY ? v.u : 0;
    for (uint64_t i = 0; i < n; i++)
        if (!skip_depth(c, depth + 1))
            return false;
    return true;
}

bool
mp_skip(MpCursor *c)
{
    return skip_depth(c, 0);
}

bool
mp_skip_rest(MpCursor *c, const MpValue *v)
{
    uint64_t n = v->type == MP_MAP ? 2 * v->u : v->type == MP_ARRAY ? v->u : 0;
    for (uint64_t i = 0; i < n; i++)
        if (!mp_skip(c))
            return false;
    return !c->bad;
}
