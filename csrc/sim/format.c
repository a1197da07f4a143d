/* format.c - printf formats with arguments that a kernel packed (contract in service.h). Formats and
 * arguments are untrusted: every conversion is made anew from what was understood of it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>

#include "sim/service.h"

typedef enum Length { LEN_INT, LEN_CHAR, LEN_SHORT, LEN_LONG, LEN_VECTOR32 } Length;

typedef struct Spec {
    char flags[8];
    int width, precision; /* -1: none */
    uint32_t vector;      /* elements, 1: a scalar */
    Length length;
    char conversion;
} Spec;

enum { MAX_FIELD = 4096 };

/* The next argument of up to 8 bytes; *size as it was packed. */
static bool
next_arg(SimFormatArgs *a, uint64_t *value, uint32_t *size)
{
    *size = 8;
    if (a->sizes) {
        if (a->i == a->nsizes)
            return false;
        *size = a->sizes[a->i++];
    }
    if ((uint64_t)(a->end - a->p) < *size)
        return false;
    *value = 0;
    memcpy(value, a->p, TL_MIN(*size, 8));
    a->p += *size;
    return true;
}

static int
number(const char **f, SimFormatArgs *a, bool *ok)
{
    int n = 0;
    if (**f == '*') {
        uint64_t v = 0;
        uint32_t size;
        ++*f;
        *ok = *ok && next_arg(a, &v, &size);
        n = (int)v;
    }
    for (; **f >= '0' && **f <= '9'; ++*f)
        n = TL_MIN(n * 10 + (**f - '0'), MAX_FIELD);
    return n < -MAX_FIELD ? -MAX_FIELD : TL_MIN(n, MAX_FIELD);
}

/* Reads a conversion from behind its '%'. */
static bool
read_spec(const char **f, SimFormatArgs *a, Spec *s)
{
    bool ok = true;
    size_t n = 0;
    *s = (Spec){.width = -1, .precision = -1, .vector = 1};
    for (; **f && strchr("-+ #0", **f); ++*f)
        if (!strchr(s->flags, **f) && n < 6)
            s->flags[n++] = **f;
    if (**f == '*' || (**f >= '1' && **f <= '9'))
        s->width = number(f, a, &ok);
    if (s->width < 0 && s->width != -1) {
        s->flags[n++] = '-';
        s->width = -s->width;
    }
    if (**f == '.') {
        ++*f;
        s->precision = number(f, a, &ok);
    }
    if (**f == 'v') {
        ++*f;
        s->vector = (uint32_t)number(f, a, &ok);
        ok = ok && s->vector >= 1 && s->vector <= 16;
    }
    for (; **f && strchr("hlLjzt", **f); ++*f) {
        if (**f == 'h')
            s->length = s->length == LEN_SHORT ? LEN_CHAR : LEN_SHORT;
        else
            s->length = s->length == LEN_SHORT ? LEN_VECTOR32 : LEN_LONG; /* hl: elements of 4 bytes */
    }
    s->conversion = **f;
    if (**f)
        ++*f;
    return ok && s->conversion;
}

/* An integer cut to its length; size: bytes that it was packed in. */
static int64_t
cut(uint64_t v, Length length, uint32_t size)
{
    switch (length) {
    case LEN_CHAR:
        return (int8_t)v;
    case LEN_SHORT:
        return (int16_t)v;
    case LEN_LONG:
        return size == 4 ? (int64_t)(int32_t)v : (int64_t)v;
    case LEN_INT:
    case LEN_VECTOR32:
        break;
    }
    return (int32_t)v;
}

static uint64_t
unsign(int64_t v, Length length, uint32_t size)
{
    switch (length) {
    case LEN_CHAR:
        return (uint8_t)v;
    case LEN_SHORT:
        return (uint16_t)v;
    case LEN_LONG:
        return size == 4 ? (uint32_t)v : (uint64_t)v;
    case LEN_INT:
    case LEN_VECTOR32:
        break;
    }
    return (uint32_t)v;
}

static double
real(uint64_t v, uint32_t size)
{
    float f;
    double d;
    uint32_t w = (uint32_t)v;
    memcpy(&f, &w, 4);
    memcpy(&d, &v, 8);
    return size == 4 ? (double)f : d;
}

static int
put_value(TlText *out, const Spec *s, uint64_t v, uint32_t size)
{
    char spec[64], buf[2 * MAX_FIELD + 400];
    int n = snprintf(spec, sizeof spec, "%%%s", s->flags);
    if (s->width >= 0)
        n += snprintf(spec + n, sizeof spec - (size_t)n, "%d", s->width);
    if (s->precision >= 0)
        n += snprintf(spec + n, sizeof spec - (size_t)n, ".%d", s->precision);
    int64_t i = cut(v, s->length, size);
    switch (s->conversion) {
    case 'd':
    case 'i':
        snprintf(spec + n, sizeof spec - (size_t)n, "ll%c", s->conversion);
        n = snprintf(buf, sizeof buf, spec, (long long)i);
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        snprintf(spec + n, sizeof spec - (size_t)n, "ll%c", s->conversion);
        n = snprintf(buf, sizeof buf, spec, (unsigned long long)unsign(i, s->length, size));
        break;
    case 'c':
        snprintf(spec + n, sizeof spec - (size_t)n, "c");
        n = snprintf(buf, sizeof buf, spec, (int)(unsigned char)v);
        break;
    case 'p':
        snprintf(spec + n, sizeof spec - (size_t)n, "p");
        n = snprintf(buf, sizeof buf, spec, (void *)(uintptr_t)v);
        break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        snprintf(spec + n, sizeof spec - (size_t)n, "%c", s->conversion);
        n = snprintf(buf, sizeof buf, spec, real(v, size));
        break;
    default: /* no conversion: as it stands */
        buf[0] = '%';
        buf[1] = s->conversion;
        n = 2;
        break;
    }
    n = TL_MIN(n, (int)sizeof buf - 1);
    tl_text_put(out, buf, (size_t)n);
    return n;
}

static int
put_string(TlText *out, const Spec *s, SimFormatArgs *a)
{
    const char *p = (const char *)a->p;
    size_t room = (size_t)(a->end - a->p), used, n;
    if (a->sizes) {
        if (a->i == a->nsizes || a->sizes[a->i] > room)
            return -1;
        used = room = a->sizes[a->i++];
        n = strnlen(p, room);
    } else {
        n = strnlen(p, room);
        used = TL_MIN(room, (n + 8) & ~(size_t)7);
    }
    a->p += used;
    if (s->precision >= 0)
        n = TL_MIN(n, (size_t)s->precision);
    size_t pad = s->width > 0 && (size_t)s->width > n ? (size_t)s->width - n : 0;
    bool left = strchr(s->flags, '-') != NULL;
    for (size_t i = 0; i < pad && !left; i++)
        tl_text_put(out, " ", 1);
    tl_text_put(out, p, n);
    for (size_t i = 0; i < pad && left; i++)
        tl_text_put(out, " ", 1);
    return (int)(n + pad);
}

/* A vector of OpenCL: elements with commas. */
static int
put_vector(TlText *out, const Spec *s, SimFormatArgs *a)
{
    int total = 0;
    if (!a->sizes || a->i == a->nsizes || (uint64_t)(a->end - a->p) < a->sizes[a->i])
        return -1;
    uint32_t whole = a->sizes[a->i++];
    uint32_t size = whole % s->vector ? whole / 4 : whole / s->vector; /* three may take the room of four */
    for (uint32_t k = 0; k < s->vector && size >= 1 && size <= 8; k++) {
        uint64_t v = 0;
        if (k) {
            tl_text_put(out, ",", 1);
            total++;
        }
        memcpy(&v, a->p + k * size, size);
        total += put_value(out, s, v, size);
    }
    a->p += whole;
    return total;
}

int
sim_format(TlText *out, const char *f, SimFormatArgs *a)
{
    int total = 0;
    while (*f) {
        size_t plain = strcspn(f, "%");
        tl_text_put(out, f, plain);
        total += (int)plain;
        f += plain;
        if (!*f)
            break;
        if (f[1] == '%') {
            tl_text_put(out, "%", 1);
            total++;
            f += 2;
            continue;
        }
        Spec s;
        uint64_t v;
        uint32_t size;
        int n = 0;
        f++;
        if (!read_spec(&f, a, &s))
            return -1;
        if (s.conversion == 's' && s.vector == 1)
            n = put_string(out, &s, a);
        else if (s.vector > 1)
            n = put_vector(out, &s, a);
        else if (!next_arg(a, &v, &size))
            n = -1;
        else if (s.conversion != 'n') /* nothing is written back */
            n = put_value(out, &s, v, size);
        if (n < 0)
            return -1;
        total += n;
    }
    return total;
}
