/* env.c - values of the simulator's variables (contract in env.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "sim/device.h"
#include "sim/env.h"

#define PREFIX "TILELANG_SIM_"

typedef enum Kind { CHIPS, CHECKS, RULES, NUMBER, WORD, OUTPUT, LIBRARY } Kind;
static const struct {
    const char *name;
    Kind kind;
    uint64_t lowest, most;
    const char *words;
} rows[] = {
#define SIM_ENV(name, kind, lowest, most, words) {PREFIX #name, kind, lowest, most, words},
#include "sim/env.def"
#undef SIM_ENV
};

typedef struct Why {
    char *text;
    size_t n;
} Why;

/* "NAME must be ..., not 'value'" */
__attribute__((format(printf, 3, 4))) static bool
refuse(const Why *w, SimEnv v, const char *fmt, ...)
{
    char must[560];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(must, sizeof must, fmt, ap);
    va_end(ap);
    snprintf(w->text, w->n, "%s must be %s, not '%.60s'", rows[v].name, must, sim_env(v));
    return false;
}

const char *
sim_env(SimEnv v)
{
    const char *s = getenv(rows[v].name);
    return s && *s ? s : NULL;
}

size_t
sim_env_token(const char **at)
{
    *at += strspn(*at, ", ");
    return strcspn(*at, ", ");
}

static bool
is(const char *name, const char *s, size_t n)
{
    return strlen(name) == n && !memcmp(name, s, n);
}

/* ---- kinds ---- */

static bool
number(const char *s, uint64_t lowest, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long x = strtoull(s, &end, 10);
    *value = x;
    return *s >= '0' && *s <= '9' && !*end && !errno && x >= lowest && x <= most;
}

/* Which of the words; -1: none of them. */
static int
word(const char *words, const char *s)
{
    for (int i = 0;; i++) {
        size_t n = sim_env_token(&words);
        if (!n)
            return -1;
        if (is(s, words, n))
            return i;
        words += n;
    }
}

static bool
chips(const Why *w, SimEnv v, const char *s)
{
    char there[160] = "";
    uint64_t n = 0;
    bool known = true;
    for (size_t len; (len = sim_env_token(&s)); s += len, n++) {
        IsaArch a = 0;
        while (a < ISA_ARCH_COUNT && !is(isa_arch_name(a), s, len))
            a++;
        known &= a < ISA_ARCH_COUNT;
    }
    if (known && n >= rows[v].lowest && n <= rows[v].most)
        return true;
    for (int a = 0; a < ISA_ARCH_COUNT; a++)
        snprintf(there + strlen(there), sizeof there - strlen(there), "%s%s", a ? ", " : "",
                 isa_arch_name((IsaArch)a));
    if (rows[v].most == 1)
        return refuse(w, v, "one of %s", there);
    return refuse(w, v, "1 to %" PRIu64 " of %s", rows[v].most, there);
}

/* The bit of a check by its name, 0: there is none. */
static uint32_t
check_bit(const char *s, size_t n)
{
    if (is("strict", s, n))
        return SIM_CHECK_STRICT;
    if (is("all", s, n))
        return sim_checks_available();
    for (uint32_t i = 0; i < SIM_CHECK_COUNT; i++)
        if (is(sim_check_name((SimCheck)i), s, n))
            return sim_checks_available() & 1u << i;
    return 0;
}

/* "none" stands alone. */
static bool
checks(const char *s, uint32_t *mask)
{
    uint32_t names = 0;
    bool none = false, known = true;
    *mask = 0;
    for (size_t n; (n = sim_env_token(&s)); s += n, names++) {
        uint32_t bit = check_bit(s, n);
        none |= is("none", s, n);
        known &= bit || is("none", s, n);
        *mask |= bit;
    }
    return known && names && (!none || names == 1);
}

static bool
check_names(const Why *w, SimEnv v)
{
    char there[160] = "";
    for (uint32_t i = 0; i < SIM_CHECK_COUNT; i++)
        if (sim_checks_available() >> i & 1)
            snprintf(there + strlen(there), sizeof there - strlen(there), "%s, ",
                     sim_check_name((SimCheck)i));
    return refuse(w, v, "none, all, or names out of %sstrict with commas between", there);
}

static bool
rule_names(const Why *w, SimEnv v)
{
    char there[480];
    isa_hazard_rules_list(there, sizeof there);
    return refuse(w, v, "names out of %s", there);
}

/* A file that is there and can be written, or the folder where it can be made. */
static bool
writable(const char *path)
{
    struct stat st;
    char folder[PATH_MAX];
    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode))
            errno = EISDIR;
        return !S_ISDIR(st.st_mode) && !access(path, W_OK);
    }
    const char *slash = strrchr(path, '/');
    if (errno != ENOENT)
        return false;
    if (!slash)
        return !access(".", W_OK | X_OK);
    snprintf(folder, sizeof folder, "%.*s", (int)TL_MAX(slash - path, 1), path);
    if (!slash[1])
        errno = EISDIR;
    return slash[1] && !access(folder, W_OK | X_OK);
}

static bool
check(const Why *w, SimEnv v)
{
    const char *s = sim_env(v);
    uint64_t value;
    uint32_t mask;
    if (!s)
        return true;
    switch (rows[v].kind) {
    case CHIPS:
        return chips(w, v, s);
    case CHECKS:
        return checks(s, &mask) || check_names(w, v);
    case RULES:
        return isa_hazard_rules(s, &mask) || rule_names(w, v);
    case NUMBER:
        return number(s, rows[v].lowest, rows[v].most, &value) ||
               refuse(w, v, "a number from %" PRIu64 " to %" PRIu64, rows[v].lowest, rows[v].most);
    case WORD:
        return word(rows[v].words, s) >= 0 || refuse(w, v, "one of %s", rows[v].words);
    case OUTPUT:
        return writable(s) || refuse(w, v, "a file that can be written (%s)", strerror(errno));
    case LIBRARY:
        break;
    }
    return true;
}

/* A name that nobody reads is most likely mistyped. */
static bool
known(const Why *w, const char *entry)
{
    size_t n = strcspn(entry, "=");
    if (strncmp(entry, PREFIX, sizeof PREFIX - 1))
        return true;
    for (int v = 0; v < SIM_ENV_COUNT; v++)
        if (is(rows[v].name, entry, n))
            return true;
    int at = snprintf(w->text, w->n,
                      "there is no variable %.*s; those of " PREFIX " are:", (int)TL_MIN(n, 60), entry);
    for (int v = 0; v < SIM_ENV_COUNT && at >= 0 && (size_t)at < w->n; v++)
        at += snprintf(w->text + at, w->n - (size_t)at, "%s %s", v ? "," : "",
                       rows[v].name + sizeof PREFIX - 1);
    return false;
}

bool
sim_env_check(char *why, size_t n)
{
    Why w = {why, n};
    for (char **e = environ; e && *e; e++)
        if (!known(&w, *e))
            return false;
    for (int v = 0; v < SIM_ENV_COUNT; v++)
        if (!check(&w, (SimEnv)v))
            return false;
    return true;
}

/* ---- values ---- */

uint64_t
sim_env_number(SimEnv v, uint64_t otherwise)
{
    const char *s = sim_env(v);
    uint64_t x;
    return s && number(s, rows[v].lowest, rows[v].most, &x) ? x : otherwise;
}

uint32_t
sim_env_word(SimEnv v)
{
    const char *s = sim_env(v);
    return (uint32_t)TL_MAX(s ? word(rows[v].words, s) : 0, 0);
}

uint32_t
sim_env_checks(uint32_t otherwise)
{
    const char *s = sim_env(SIM_ENV_CHECK);
    uint32_t mask;
    return s && checks(s, &mask) ? mask : otherwise;
}

uint32_t
sim_env_rules(void)
{
    const char *s = sim_env(SIM_ENV_IGNORE);
    uint32_t set = 0;
    return s && isa_hazard_rules(s, &set) ? set : 0;
}

void
sim_env_unwritable(SimEnv v)
{
    int e = errno;
    const char *path = sim_env(v);
    fprintf(stderr, "tilelang simulator: %s: cannot write to %s: %s\n", rows[v].name, path ? path : "it",
            strerror(e));
}
