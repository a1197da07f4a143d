/* lines.c - source lines of a code object: the line-number programs of .debug_line, DWARF versions 4 and 5
 * (image.h).
 *
 * Input is untrusted: every read is checked against its unit; a malformed unit ends the reading, what came
 * before it is kept. */
#include <stdlib.h>
#include <string.h>

#include "sim/image_priv.h"

typedef struct Row {
    uint64_t addr;
    uint32_t file; /* index into SimLines.files; UINT32_MAX = end of a sequence */
    uint32_t line, seq, order;
} Row;

struct SimLines {
    TlArena arena;
    TL_VEC(Row) rows;
    TL_VEC(const char *) files;
    uint64_t name_bytes, name_limit; /* of files: entries that share strings multiply a small file's memory */
};

typedef struct Section {
    const uint8_t *p;
    uint64_t n;
} Section;

typedef struct Cur { /* cursor over one unit */
    const uint8_t *p, *end;
    bool bad;
} Cur;

static const uint64_t max_rows = 1 << 22;

/* ---- reading ---- */

static uint64_t
get(Cur *c, uint32_t n)
{
    uint64_t v = 0;
    if ((uint64_t)(c->end - c->p) < n) {
        c->bad = true;
        c->p = c->end;
        return 0;
    }
    memcpy(&v, c->p, n);
    c->p += n;
    return v;
}

static uint64_t
uleb(Cur *c)
{
    uint64_t v = 0;
    for (uint32_t shift = 0; !c->bad; shift += 7) {
        uint64_t b = get(c, 1);
        if (shift < 64)
            v |= (b & 0x7f) << shift;
        if (!(b & 0x80))
            break;
    }
    return v;
}

static int64_t
sleb(Cur *c)
{
    uint64_t v = 0, b = 0;
    uint32_t shift = 0;
    do {
        b = get(c, 1);
        if (shift < 64)
            v |= (b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80 && !c->bad);
    if (shift < 64 && b & 0x40)
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

static const char *
string_at(const uint8_t *p, const uint8_t *end)
{
    return p < end && memchr(p, 0, (size_t)(end - p)) ? (const char *)p : NULL;
}

static const char *
inline_string(Cur *c)
{
    const char *s = string_at(c->p, c->end);
    if (!s) {
        c->bad = true;
        c->p = c->end;
        return "";
    }
    c->p += strlen(s) + 1;
    return s;
}

/* ---- file tables ---- */

typedef struct Unit {
    SimLines *l;
    Section line_str, str;
    Cur c;
    uint32_t offset_size, version;
    uint32_t first_file;   /* index in l->files of this unit's file number `base` */
    uint32_t base, nfiles; /* numbers start at 1 (v4) or 0 (v5) */
    TL_VEC(const char *) dirs;
    uint8_t min_inst, line_range, opcode_base, oplen[256];
    int8_t line_base;
    bool default_stmt;
} Unit;

static bool
add_file(Unit *u, const char *dir, const char *name)
{
    const char *s = name;
    const char *first = u->dirs.len ? u->dirs.data[0] : ""; /* version 5: where the compiler ran */
    bool joined = dir && *dir && name[0] != '/', under = joined && dir[0] != '/' && *first == '/';
    u->l->name_bytes += strlen(name) + (joined ? strlen(dir) : 0) + (under ? strlen(first) : 0);
    if (u->l->name_bytes > u->l->name_limit)
        return false;
    if (under)
        s = tl_arena_printf(&u->l->arena, "%s/%s/%s", first, dir, name);
    else if (joined)
        s = tl_arena_printf(&u->l->arena, "%s/%s", dir, name);
    else
        s = tl_arena_strdup(&u->l->arena, name, strlen(name));
    if (!s || !tl_vec_push(&u->l->arena, &u->l->files, s))
        return false;
    u->nfiles++;
    return true;
}

static bool
files_v4(Unit *u)
{
    Cur *c = &u->c;
    u->base = 1;
    if (!tl_vec_push(&u->l->arena, &u->dirs, ""))
        return false;
    for (;;) {
        const char *d = inline_string(c);
        if (c->bad)
            return false;
        if (!*d)
            break;
        if (!tl_vec_push(&u->l->arena, &u->dirs, d))
            return false;
    }
    for (;;) {
        const char *name = inline_string(c);
        if (c->bad)
            return false;
        if (!*name)
            return true;
        uint64_t dir = uleb(c);
        uleb(c);
        uleb(c);
        if (!add_file(u, dir < u->dirs.len ? u->dirs.data[dir] : NULL, name))
            return false;
    }
}

enum { LNCT_PATH = 1, LNCT_DIRECTORY = 2, MAX_FORMAT = 16 };

/* One attribute value; strings go to *s, numbers to *v. */
static bool
form(Unit *u, uint64_t form, const char **s, uint64_t *v)
{
    Cur *c = &u->c;
    Section sec = {0};
    uint64_t n = 0;
    switch (form) {
    case 0x08: /* string */
        *s = inline_string(c);
        return !c->bad;
    case 0x0e: /* strp */
    case 0x1f: /* line_strp */
        sec = form == 0x0e ? u->str : u->line_str;
        n = get(c, u->offset_size);
        *s = n < sec.n ? string_at(sec.p + n, sec.p + sec.n) : NULL;
        return *s != NULL && !c->bad;
    case 0x0b: /* data1 */
        *v = get(c, 1);
        return !c->bad;
    case 0x05: /* data2 */
        *v = get(c, 2);
        return !c->bad;
    case 0x06: /* data4 */
        *v = get(c, 4);
        return !c->bad;
    case 0x07: /* data8 */
        *v = get(c, 8);
        return !c->bad;
    case 0x0f: /* udata */
        *v = uleb(c);
        return !c->bad;
    case 0x1e: /* data16: MD5 */
        get(c, 8);
        get(c, 8);
        return !c->bad;
    case 0x0a: /* block1 */
        n = get(c, 1);
        break;
    case 0x09: /* block */
        n = uleb(c);
        break;
    default:
        return false;
    }
    if (c->bad || (uint64_t)(c->end - c->p) < n)
        return false;
    c->p += n;
    return true;
}

static bool
table_v5(Unit *u, bool files)
{
    Cur *c = &u->c;
    uint64_t fmt[MAX_FORMAT][2];
    uint64_t nf = get(c, 1);
    if (nf > MAX_FORMAT)
        return false;
    for (uint64_t i = 0; i < nf; i++) {
        fmt[i][0] = uleb(c);
        fmt[i][1] = uleb(c);
    }
    uint64_t n = uleb(c);
    if (c->bad || n > (uint64_t)(c->end - c->p) || (n && !nf))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const char *path = "";
        uint64_t dir = 0;
        for (uint64_t k = 0; k < nf; k++) {
            const char *s = NULL;
            uint64_t v = 0;
            if (!form(u, fmt[k][1], &s, &v))
                return false;
            if (fmt[k][0] == LNCT_PATH && s)
                path = s;
            if (fmt[k][0] == LNCT_DIRECTORY)
                dir = v;
        }
        bool ok = files ? add_file(u, dir < u->dirs.len ? u->dirs.data[dir] : NULL, path)
                        : tl_vec_push(&u->l->arena, &u->dirs, path);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- the line program ---- */

typedef struct State {
    uint64_t addr, file, line;
    uint32_t seq;
} State;

static bool
emit(Unit *u, State *s, bool end)
{
    uint64_t i = s->file - u->base;
    Row r = {.addr = s->addr, .file = UINT32_MAX, .line = (uint32_t)s->line, .seq = s->seq};
    r.order = u->l->rows.len;
    if (!end && i < u->nfiles)
        r.file = u->first_file + (uint32_t)i;
    return u->l->rows.len < max_rows && tl_vec_push(&u->l->arena, &u->l->rows, r);
}

static bool
extended(Unit *u, State *s)
{
    Cur *c = &u->c;
    uint64_t len = uleb(c);
    if (c->bad || !len || len > (uint64_t)(c->end - c->p))
        return false;
    const uint8_t *next = c->p + len;
    switch (get(c, 1)) {
    case 1: /* end_sequence */
        if (!emit(u, s, true))
            return false;
        *s = (State){.file = 1, .line = 1, .seq = s->seq + 1};
        break;
    case 2: /* set_address */
        s->addr = get(c, (uint32_t)TL_MIN(len - 1, 8));
        break;
    default:
        break;
    }
    c->p = next;
    return !c->bad;
}

static bool
standard(Unit *u, State *s, uint8_t op)
{
    Cur *c = &u->c;
    switch (op) {
    case 1: /* copy */
        return emit(u, s, false);
    case 2: /* advance_pc */
        s->addr += uleb(c) * u->min_inst;
        break;
    case 3: /* advance_line */
        s->line += (uint64_t)sleb(c);
        break;
    case 4: /* set_file */
        s->file = uleb(c);
        break;
    case 8: /* const_add_pc */
        s->addr += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->min_inst;
        break;
    case 9: /* fixed_advance_pc */
        s->addr += get(c, 2);
        break;
    default:
        for (uint32_t i = 0; i < u->oplen[op]; i++)
            uleb(c);
        break;
    }
    return !c->bad;
}

static bool
run_program(Unit *u, uint32_t seq)
{
    State s = {.file = 1, .line = 1, .seq = seq};
    Cur *c = &u->c;
    while (c->p < c->end) {
        uint8_t op = (uint8_t)get(c, 1);
        bool ok;
        if (op >= u->opcode_base) {
            uint32_t adj = op - u->opcode_base;
            s.addr += (uint64_t)(adj / u->line_range) * u->min_inst;
            s.line += (uint64_t)(int64_t)(u->line_base + (int32_t)(adj % u->line_range));
            ok = emit(u, &s, false);
        } else {
            ok = op ? standard(u, &s, op) : extended(u, &s);
        }
        if (!ok)
            return false;
    }
    return true;
}

/* One unit at c (its length already read into c->end). */
static bool
read_unit(SimLines *l, Unit *u)
{
    Cur *c = &u->c;
    u->version = (uint32_t)get(c, 2);
    if (u->version < 2 || u->version > 5)
        return true; /* not known: skipped */
    if (u->version == 5)
        get(c, 2); /* address and segment selector sizes */
    uint64_t header = get(c, u->offset_size);
    if (c->bad || header > (uint64_t)(c->end - c->p))
        return false;
    const uint8_t *program = c->p + header;
    u->min_inst = (uint8_t)get(c, 1);
    if (u->version >= 4)
        get(c, 1); /* operations per instruction: 1 */
    u->default_stmt = get(c, 1);
    u->line_base = (int8_t)get(c, 1);
    u->line_range = (uint8_t)get(c, 1);
    u->opcode_base = (uint8_t)get(c, 1);
    if (c->bad || !u->line_range || !u->opcode_base)
        return false;
    for (uint32_t i = 1; i < u->opcode_base; i++)
        u->oplen[i] = (uint8_t)get(c, 1);
    u->first_file = l->files.len;
    if (u->version == 5 ? !table_v5(u, false) || !table_v5(u, true) : !files_v4(u))
        return false;
    c->p = program;
    return run_program(u, l->rows.len ? l->rows.data[l->rows.len - 1].seq + 1 : 0);
}

static int
cmp_row(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    /* the end of one sequence comes before the start of the next at the same address; else program order */
    if ((x->file == UINT32_MAX) != (y->file == UINT32_MAX) && x->seq != y->seq)
        return x->file == UINT32_MAX ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static Section
find_section(const Loader *ld, const char *name)
{
    Loader l = *ld;
    char buf[64];
    Shdr str, sh;
    l.why = buf;
    l.why_size = sizeof buf;
    if (ld->eh.shstrndx >= ld->eh.shnum || !load_shdr(&l, ld->eh.shstrndx, &str))
        return (Section){0};
    for (uint32_t i = 0; i < ld->eh.shnum; i++) {
        if (!load_shdr(&l, i, &sh))
            break;
        const char *s = load_str(ld, str.offset + sh.name, str.offset + str.size);
        if (!s || strcmp(s, name) || sh.type == SHT_NOBITS || sh.flags & 0x800 /* compressed */)
            continue;
        if (sh.offset <= ld->size && ld->size - sh.offset >= sh.size)
            return (Section){ld->file + sh.offset, sh.size};
    }
    return (Section){0};
}

SimLines *
sim_lines_read(const uint8_t *file, uint64_t size)
{
    Loader ld = {.file = file, .size = size};
    if (!load_get(&ld, 0, &ld.eh, sizeof ld.eh))
        return NULL;
    Section line = find_section(&ld, ".debug_line");
    SimLines *l = line.n ? calloc(1, sizeof *l) : NULL;
    if (!l)
        return NULL;
    tl_arena_init(&l->arena, NULL);
    l->name_limit = (1 << 20) + 64 * size;
    Section line_str = find_section(&ld, ".debug_line_str"), str = find_section(&ld, ".debug_str");
    Cur all = {line.p, line.p + line.n, false};
    while (all.end - all.p > 6) {
        Unit u = {.l = l, .line_str = line_str, .str = str, .offset_size = 4};
        uint64_t len = get(&all, 4);
        if (len == 0xffffffff) {
            u.offset_size = 8;
            len = get(&all, 8);
        }
        if (all.bad || len > (uint64_t)(all.end - all.p))
            break;
        u.c = (Cur){all.p, all.p + len, false};
        all.p += len;
        if (!read_unit(l, &u))
            break;
    }
    if (!l->rows.len) {
        sim_lines_free(l);
        return NULL;
    }
    qsort(l->rows.data, l->rows.len, sizeof(Row), cmp_row);
    return l;
}

void
sim_lines_free(SimLines *l)
{
    if (!l)
        return;
    tl_arena_free(&l->arena);
    free(l);
}

bool
sim_lines_find(const SimLines *l, uint64_t vaddr, const char **file, uint32_t *line)
{
    uint32_t a = 0, b = l->rows.len;
    while (a < b) {
        uint32_t mid = (a + b) / 2;
        if (l->rows.data[mid].addr <= vaddr)
            a = mid + 1;
        else
            b = mid;
    }
    if (!a)
        return false;
    const Row *r = &l->rows.data[a - 1];
    if (r->file == UINT32_MAX || !r->line)
        return false;
    *file = l->files.data[r->file];
    *line = r->line;
    return true;
}
