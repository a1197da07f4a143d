/* late.c - delivery="late" (contract in late.h). Which counter an operation counts in and what a wait asks is
 * the table of isa/counters.h. Missing wait states give the old value too: check_hazard.c names the
 * registers, this file keeps what they held.
 */
#include "sim/late.h"
#include "isa/counters.h"
#include "sim/check.h"
#include "sim/trace.h"

enum { MAX_ROWS = 40, MAX_SCALARS = 24, MAX_WHOLE = 16 };
enum { SPACE_GLOBAL = 1, SPACE_SCRATCH = 2, SPACE_CLOCK = 4 };

typedef struct LateOp { /* one memory operation under way */
    struct LateOp *next;
    const SimRec *rec;
    uint64_t exec, due; /* due: clock of the group at which it lands by itself */
    uint8_t counts;     /* counters that still count it */
    uint8_t needs;      /* of these: the ones its effect waits for */
    uint8_t nrow, nscalar;
    uint8_t space; /* SPACE_* that it touches through vector memory, or the clock */
    bool writes;
    bool held;             /* memory was read already: data holds what goes to the rows */
    uint64_t lo, hi;       /* hull of its addresses, last byte included */
    SimChkNumbers numbers; /* the wait check's numbers at issue */
    uint64_t traced;       /* its row in the trace record */
    uint16_t row[MAX_ROWS];
    uint8_t scalar[MAX_SCALARS];
    uint32_t svalue[MAX_SCALARS], sp[MAX_SCALARS];
    SimUndef vp[MAX_ROWS];
    uint32_t data[MAX_ROWS][LANES];
} LateOp;

struct SimLate {
    LateOp *head, **tail, *spare;
    uint32_t n[ISA_CNT_COUNT]; /* under way, by counter */
    uint64_t rng;
    uint32_t chance; /* of 2^32: that something lands after an instruction */
    uint32_t life;   /* longest stay, in instructions of the group */
    bool rubbish;
    uint32_t *old; /* what each row held before its last write, [ROWS * LANES]; NULL: hazards are off */
    uint32_t olds[SREGS];
};

static uint64_t
draw(uint64_t *rng)
{
    uint64_t x = *rng;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *rng = x;
}

/* ---- life of the state ---- */

bool
sim_late_open(SimGroup *g, uint64_t seed)
{
    size_t n = sizeof(SimLate) * g->nwaves;
    if (!(g->late = g->alloc.realloc(g->alloc.self, NULL, 0, n)))
        return false;
    memset(g->late, 0, n);
    g->late_seed = seed;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimLate *t = &g->late[i];
        t->tail = &t->head;
        g->waves[i].late = t;
        if (!(g->checks >> SIM_CHECK_HAZARD & 1))
            continue;
        t->old = g->alloc.realloc(g->alloc.self, NULL, 0, sizeof(uint32_t) * ROWS * LANES);
        if (!t->old)
            return false;
        memset(t->old, 0, sizeof(uint32_t) * ROWS * LANES);
    }
    return true;
}

static void
forget(SimLate *t)
{
    *t->tail = t->spare; /* all ops to the spare list */
    t->spare = t->head;
    t->head = NULL;
    t->tail = &t->head;
    memset(t->n, 0, sizeof t->n);
}

void
sim_late_close(SimGroup *g)
{
    for (uint32_t i = 0; g->late && i < g->nwaves; i++) {
        SimLate *t = &g->late[i];
        if (!t->tail)
            continue;
        forget(t);
        while (t->spare) {
            LateOp *op = t->spare;
            t->spare = op->next;
            g->alloc.realloc(g->alloc.self, op, sizeof *op, 0);
        }
        if (t->old)
            g->alloc.realloc(g->alloc.self, t->old, sizeof(uint32_t) * ROWS * LANES, 0);
    }
    if (g->late)
        g->alloc.realloc(g->alloc.self, g->late, sizeof(SimLate) * g->nwaves, 0);
    g->late = NULL;
}

void
sim_late_reset(SimWave *w)
{
    static const uint32_t chance[4] = {0, 1u << 24, 1u << 28, 1u << 30},
                          life[4] = {1 << 16, 1 << 14, 1 << 10, 64};
    SimGroup *g = w->g;
    SimLate *t = w->late;
    forget(t);
    uint64_t x = g->late_seed * UINT64_C(0x9e3779b97f4a7c15) + (g->linear << 8 | w->index);
    x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    t->rng = (x ^ (x >> 29)) * UINT64_C(0x94d049bb133111eb) | 1;
    uint64_t mood = g->late_seed ? draw(&t->rng) >> 33 : 0;
    t->chance = chance[mood & 3];
    t->life = life[mood >> 2 & 3];
    t->rubbish = mood >> 4 & 1;
    if (!w->index)
        g->late_clock = 0;
}

/* ---- carrying out ---- */

static bool
in_ranges(const SimRange *g, uint32_t n, uint32_t reg)
{
    for (uint32_t i = 0; i < n; i++)
        if (reg - g[i].start < g[i].n)
            return true;
    return false;
}

static void
blend_row(uint32_t *row, const uint32_t *other, uint64_t keep)
{
    for (uint32_t l = 0; l < LANES; l++)
        if (!(keep >> l & 1))
            row[l] = other[l];
}

typedef struct Kept { /* registers of the wave while an operation runs on its own */
    uint32_t row[MAX_ROWS][LANES], scalar[MAX_SCALARS], sp[MAX_SCALARS];
    SimUndef vp[MAX_ROWS];
    uint64_t exec;
    SimChkNumbers numbers;
    const SimRec *rec;
    WaveStop stop;
} Kept;

static void
put_operands(SimWave *w, const LateOp *op, Kept *k)
{
    SimChk *c = w->chk;
    k->exec = EXEC(w);
    k->rec = w->rec;
    k->stop = w->stop;
    for (uint32_t i = 0; i < op->nrow; i++) {
        uint32_t *row = ROW(w, op->row[i]);
        memcpy(k->row[i], row, sizeof k->row[i]);
        memcpy(row, op->data[i], sizeof op->data[i]);
        if (c) {
            k->vp[i] = row_undef(c, op->row[i]);
            set_row_undef(c, op->row[i], op->vp[i]);
        }
    }
    for (uint32_t i = 0; i < op->nscalar; i++) {
        k->scalar[i] = w->s[op->scalar[i]];
        w->s[op->scalar[i]] = op->svalue[i];
        if (c) {
            k->sp[i] = c->sp[op->scalar[i]];
            set_sp(c, op->scalar[i], op->sp[i]);
        }
    }
    SET_EXEC(w, op->exec);
    if (c) { /* what came before in the wave's own order has happened */
        k->numbers = c->n;
        c->n = op->numbers;
        c->n.dirty_seq = k->numbers.dirty_seq;
        c->n.wb_seq = k->numbers.wb_seq;
    }
    w->stop = ST_RUN;
}

/* The wave's registers again, but for what the operation has written. */
static void
take_operands(SimWave *w, const LateOp *op, const Kept *k)
{
    SimChk *c = w->chk;
    const SimExt *x = op->rec->ext;
    SET_EXEC(w, k->exec);
    for (uint32_t i = 0; i < op->nrow; i++) {
        uint32_t r = op->row[i];
        bool dst = in_ranges(x->vwrite, x->nvwrite, r);
        if (dst)
            blend_row(ROW(w, r), k->row[i], op->exec);
        else
            memcpy(ROW(w, r), k->row[i], sizeof k->row[i]);
        if (c)
            set_row_undef(c, r, dst ? blend_undef(row_undef(c, r), k->vp[i], op->exec) : k->vp[i]);
    }
    for (uint32_t i = 0; i < op->nscalar; i++) {
        if (in_ranges(x->swrite, x->nswrite, op->scalar[i]))
            continue;
        w->s[op->scalar[i]] = k->scalar[i];
        if (c)
            set_sp(c, op->scalar[i], k->sp[i]);
    }
    if (c) {
        SimChkNumbers now = k->numbers, before = op->numbers;
        before.dirty_seq = now.dirty_seq;
        before.wb_seq = now.wb_seq;
        sim_chk_numbers_merge(&now, &before, &c->n);
        c->n = now;
    }
}

/* What a load has read goes to its registers. */
static void
land_held(SimWave *w, const LateOp *op)
{
    SimChk *c = w->chk;
    for (uint32_t i = 0; i < op->nrow; i++) {
        uint32_t r = op->row[i];
        uint32_t t[LANES];
        memcpy(t, op->data[i], sizeof t);
        blend_row(t, ROW(w, r), op->exec);
        memcpy(ROW(w, r), t, sizeof t);
        if (c)
            set_row_undef(c, r, blend_undef(op->vp[i], row_undef(c, r), op->exec));
    }
}

/* false: a fault ended the group. */
static bool
carry_out(SimWave *w, const LateOp *op)
{
    if (op->held) {
        land_held(w, op);
        return true;
    }
    Kept k;
    put_operands(w, op, &k);
    uint64_t row = w->trace ? sim_trace_go(w, op->traced) : 0;
    const SimRec *next = op->rec->body(w, op->rec);
    take_operands(w, op, &k);
    if (w->trace) {
        sim_trace_after(w, op->rec);
        sim_trace_go(w, row);
    }
    if (!next && w->stop == ST_FAULT)
        return false;
    w->stop = k.stop;
    w->rec = k.rec;
    return true;
}

/* A wave sees its own accesses of an address in program order, whatever counters they are in: loads and
 * stores of RDNA have one each. */
static bool
in_turn(const LateOp *a, const LateOp *b)
{
    return (a->space & b->space) && (a->writes || b->writes) && a->lo <= b->hi && b->lo <= a->hi;
}

static bool read_now(SimWave *w, LateOp *op);
static bool effect(SimWave *w, LateOp *op);

/* A vector cache serves the accesses of its waves in the order of issue: what was issued before an operation
 * (NULL: all of it), or before a barrier, comes before what others issue once they have seen it, waited for
 * or not (compilers rely on it); registers and LDS get the data of loads as late as ever. */
static bool
serve(SimWave *w, const LateOp *until)
{
    for (LateOp *op = w->late->head; op && op != until; op = op->next) {
        if (!op->needs || !(op->space & SPACE_GLOBAL) || (op->needs >> ISA_CNT_DS & 1) ||
            (op->rec->ext->use & CU_DMA))
            continue;
        if (op->rec->ext->nvwrite) {
            if (!read_now(w, op))
                return false;
            continue;
        }
        op->needs = 0;
        if (!effect(w, op))
            return false;
    }
    return true;
}

/* Carries out an operation after those before it that it has to follow. */
static bool
effect(SimWave *w, LateOp *op)
{
    bool seen = op->rec->ext->use & (CU_STORE | CU_ATOMIC); /* by waves that share the cache */
    if (seen && w->g->nwaves > 1 && sim_one_cache(w->g->info) && !serve(w, op))
        return false;
    for (LateOp *q = w->late->head; op->space && q && q != op; q = q->next)
        if (q->needs && in_turn(q, op)) {
            q->needs = 0;
            if (!effect(w, q))
                return false;
        }
    return carry_out(w, op);
}

/* Does the operation leave parts of such registers as they are (halves, three of them in two registers, block
 * loads)? */
static bool
keeps_parts(const SimExt *x, uint32_t i)
{
    return x->vwrite[i].n > MAX_WHOLE || x->vwrite[i].half || x->in.op == ISA_OP_buffer_load_d16_format_xyz ||
           x->in.op == ISA_OP_tbuffer_load_d16_format_xyz;
}

/* A load reads memory now and gives its registers later. */
static bool
read_now(SimWave *w, LateOp *op)
{
    SimChk *c = w->chk;
    const SimExt *x = op->rec->ext;
    uint32_t row[MAX_ROWS], n = 0, old[MAX_ROWS][LANES];
    SimUndef vp[MAX_ROWS];
    bool part = false;
    for (uint32_t i = 0; i < x->nvwrite; i++) {
        part |= keeps_parts(x, i) ||
                (!(x->use & CU_ATOMIC) && in_ranges(x->vread, x->nvread, x->vwrite[i].start));
        for (uint32_t k = 0; k < x->vwrite[i].n && n < MAX_ROWS; k++)
            row[n++] = x->vwrite[i].start + k;
    }
    if (part || n == MAX_ROWS) { /* all of it now */
        op->needs = 0;
        return effect(w, op);
    }
    for (uint32_t i = 0; i < n; i++) {
        memcpy(old[i], ROW(w, row[i]), sizeof old[i]);
        vp[i] = c ? row_undef(c, row[i]) : (SimUndef){0};
    }
    uint8_t needs = op->needs;
    op->needs = 0;
    bool go = effect(w, op);
    op->needs = needs;
    op->held = true;
    op->nrow = (uint8_t)n;
    op->space = 0;
    for (uint32_t i = 0; i < n; i++) {
        op->row[i] = (uint16_t)row[i];
        memcpy(op->data[i], ROW(w, row[i]), sizeof old[i]);
        memcpy(ROW(w, row[i]), old[i], sizeof old[i]);
        if (c) {
            op->vp[i] = row_undef(c, row[i]);
            set_row_undef(c, row[i], vp[i]);
        }
    }
    return go;
}

/* The operation at *at is complete for counter c. */
static bool
complete(SimWave *w, LateOp **at, uint32_t c)
{
    SimLate *t = w->late;
    LateOp *op = *at;
    uint8_t bit = (uint8_t)(1u << c);
    bool go = true;
    t->n[c]--;
    op->counts &= (uint8_t)~bit;
    if (op->needs & bit) {
        op->needs &= (uint8_t)~bit;
        go = op->needs || effect(w, op);
    }
    if (!op->counts) {
        *at = op->next;
        if (!op->next)
            t->tail = at;
        op->next = t->spare;
        t->spare = op;
    }
    return go;
}

/* One operation of counter c completes: the oldest, or any where there is no order. */
static bool
one_lands(SimWave *w, uint32_t c)
{
    SimLate *t = w->late;
    uint32_t skip = isa_counter_in_order((IsaCounter)c) ? 0 : (uint32_t)(draw(&t->rng) >> 33) % t->n[c];
    for (LateOp **at = &t->head; *at; at = &(*at)->next)
        if (((*at)->counts >> c & 1) && skip-- == 0)
            return complete(w, at, c);
    t->n[c] = 0; /* never comes here: n counts the list */
    return true;
}

/* At most `limit` of counter c and those counted with it stay. */
static bool
leave(SimWave *w, uint32_t c, uint32_t limit)
{
    SimLate *t = w->late;
    uint32_t all = isa_counters_joined(w->code->arch, (IsaCounter)c);
    for (;;) {
        uint32_t sum = 0, pick = 0, seen = 0;
        for (uint32_t m = all; m; m &= m - 1) {
            uint32_t q = (uint32_t)__builtin_ctz(m);
            sum += t->n[q];
            if (t->n[q] && (!seen++ || draw(&t->rng) >> 62)) /* mostly the one without order */
                pick = q;
        }
        if (sum <= limit)
            return true;
        if (!one_lands(w, pick))
            return false;
    }
}

static bool
wait_for(SimWave *w, const uint16_t *limit)
{
    for (uint32_t c = 0; c < ISA_CNT_COUNT; c++)
        if (limit[c] != ISA_CNT_ANY && !leave(w, c, limit[c]))
            return false;
    return true;
}

/* Something lands early. */
static bool
any_lands(SimWave *w)
{
    SimLate *t = w->late;
    uint32_t c = (uint32_t)(draw(&t->rng) >> 33) % ISA_CNT_COUNT;
    for (uint32_t k = 0; k < ISA_CNT_COUNT; k++, c = (c + 1) % ISA_CNT_COUNT)
        if (t->n[c])
            return one_lands(w, c);
    return true;
}

/* ---- issue ---- */

static bool
keep_row(SimWave *w, LateOp *op, uint32_t row)
{
    for (uint32_t i = 0; i < op->nrow; i++)
        if (op->row[i] == row)
            return true;
    if (op->nrow == MAX_ROWS)
        return false;
    memcpy(op->data[op->nrow], ROW(w, row), sizeof op->data[0]);
    op->vp[op->nrow] = w->chk ? row_undef(w->chk, row) : (SimUndef){0};
    op->row[op->nrow++] = (uint16_t)row;
    return true;
}

static bool
keep_scalar(SimWave *w, LateOp *op, uint32_t s)
{
    for (uint32_t i = 0; i < op->nscalar; i++)
        if (op->scalar[i] == s)
            return true;
    if (op->nscalar == MAX_SCALARS)
        return false;
    op->svalue[op->nscalar] = w->s[s];
    op->sp[op->nscalar] = w->chk ? w->chk->sp[s] : 0;
    op->scalar[op->nscalar++] = (uint8_t)s;
    return true;
}

/* What the operation reads. A half load reads the rest of its destination when it lands. */
static bool
keep_operands(SimWave *w, LateOp *op)
{
    const SimExt *x = op->rec->ext;
    bool ok = keep_scalar(w, op, S_M0);
    for (uint32_t i = 0; i < x->nvread; i++)
        for (uint32_t k = 0; ok && k < x->vread[i].n; k++) {
            uint32_t row = x->vread[i].start + k;
            if ((x->use & CU_ATOMIC) || x->vread[i].cls != 7 || !in_ranges(x->vwrite, x->nvwrite, row))
                ok = keep_row(w, op, row);
        }
    for (uint32_t i = 0; i < x->nsread; i++)
        for (uint32_t k = 0; ok && k < x->sread[i].n; k++)
            ok = keep_scalar(w, op, x->sread[i].start + k);
    return ok;
}

/* Where a vector memory operation goes: as far as it is cheaply known, else anywhere. */
static void
find_hull(SimWave *w, const SimRec *r, LateOp *op)
{
    const SimExt *x = r->ext;
    op->space = 0;
    op->lo = 0;
    op->hi = UINT64_MAX;
    op->writes = x->use & (CU_STORE | CU_ATOMIC);
    uint32_t kind = x->in.op;
    if (kind == ISA_OP_s_memtime || kind == ISA_OP_s_memrealtime || kind == ISA_OP_s_sendmsg_rtn_b32 ||
        kind == ISA_OP_s_sendmsg_rtn_b64) { /* readings in the order of the program */
        op->space = SPACE_CLOCK;
        op->writes = true;
        return;
    }
    if (!(isa_op_info(x->in.op)->classes & ISA_C_VMEM))
        return;
    op->space = SPACE_GLOBAL | SPACE_SCRATCH;
    if (x->in.enc == ISA_SCRATCH)
        op->space = SPACE_SCRATCH;
    if ((x->in.enc != ISA_GLOBAL && x->in.enc != ISA_FLAT) || r->src[0].kind != SRC_V || !op->exec)
        return;
    const uint32_t *a = ROW(w, r->src[0].idx);
    uint64_t base = (uint64_t)(int64_t)r->imm, lo = UINT64_MAX, hi = 0;
    bool offsets = r->src[2].kind != SRC_NONE;
    if (offsets)
        base += s64(w, r->src[2]);
    for (uint64_t m = op->exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        uint64_t va = base + (offsets ? a[l] : a[l] | (uint64_t)a[l + 64] << 32);
        lo = TL_MIN(lo, va);
        hi = TL_MAX(hi, va);
        if (va >> 32 == SIM_PRIVATE_APERTURE >> 32)
            return;
    }
    op->space = SPACE_GLOBAL;
    op->lo = lo;
    op->hi = hi + 127; /* a block of registers */
}

/* Lanes of a flat access that lie in LDS. */
static uint64_t
lds_lanes(SimWave *w, const SimRec *r)
{
    uint64_t lanes = 0;
    const uint32_t *hi = ROW(w, r->src[0].idx + 1);
    for (uint64_t m = EXEC(w); m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        lanes |= (uint64_t)(hi[l] == (uint32_t)(SIM_SHARED_APERTURE >> 32)) << l;
    }
    return lanes;
}

/* Until the data is there the destination may hold anything. */
static void
spoil(SimWave *w, const SimExt *x)
{
    SimLate *t = w->late;
    uint32_t bad = (uint32_t)(draw(&t->rng) >> 32);
    const uint32_t *m = exec_mask(w, EXEC(w));
    for (uint32_t i = 0; i < x->nvwrite; i++) {
        if (in_ranges(x->vread, x->nvread, x->vwrite[i].start) || keeps_parts(x, i))
            continue; /* only a part is written, or it is an operand too */
        for (uint32_t k = 0; k < x->vwrite[i].n; k++) {
            uint32_t *row = ROW(w, x->vwrite[i].start + k);
            for (uint32_t l = 0; l < LANES; l++)
                row[l] = (row[l] & ~m[l]) | ((bad + l) & m[l]);
        }
    }
    for (uint32_t i = 0; i < x->nswrite; i++)
        for (uint32_t k = 0; k < x->swrite[i].n; k++)
            w->s[x->swrite[i].start + k] = bad;
}

/* Counters of an instruction that is put aside, 0: it is carried out at once. */
static uint32_t
deferred(const SimWave *w, const SimRec *r)
{
    const SimExt *x = r->ext;
    uint32_t c = x && x->in.size ? isa_counters_of(w->code->arch, &x->in) : 0;
    if (!c)
        return 0;
    uint32_t op = x->in.op;
    bool gws = x->in.gds || (op >= ISA_OP_ds_gws_barrier && op <= ISA_OP_ds_gws_sema_v);
    return gws || op == ISA_OP_s_sendmsg || op == ISA_OP_s_sendmsghalt ? 0 : c;
}

/* Puts an operation of these lanes aside; false: stop. */
static bool
put_aside(SimWave *w, const SimRec *r, uint32_t counts, uint32_t needs, uint64_t exec)
{
    SimLate *t = w->late;
    LateOp *op = t->spare;
    if (op)
        t->spare = op->next;
    else if (!(op = w->g->alloc.realloc(w->g->alloc.self, NULL, 0, sizeof *op))) {
        sim_fault(w, r, SIM_FAULT_OOM, true, 0, 0, UINT32_MAX, 0, "out of memory");
        return false;
    }
    op->next = NULL;
    op->rec = r;
    op->traced = w->trace ? sim_trace_go(w, UINT64_MAX) : 0;
    op->exec = exec;
    op->due = w->g->late_clock + (t->chance ? 1 + (draw(&t->rng) >> 33) % t->life : t->life);
    op->counts = (uint8_t)counts;
    op->needs = (uint8_t)needs;
    op->nrow = op->nscalar = 0;
    op->held = false;
    find_hull(w, r, op);
    if (w->chk)
        op->numbers = w->chk->n;
    if (!keep_operands(w, op)) {
        op->next = t->spare;
        t->spare = op;
        sim_fault(w, r, SIM_FAULT_ILLEGAL, true, 0, 0, UINT32_MAX, 0,
                  "more operands than late delivery can put aside");
        return false;
    }
    for (uint32_t m = counts; m; m &= m - 1)
        t->n[__builtin_ctz(m)]++;
    *t->tail = op;
    t->tail = &op->next;
    return true;
}

/* A flat access counts in two counters. What it loads is there when both say so; what it stores to LDS is
 * done when the LDS counter says so, and to global memory when the other one does. */
static bool
issue_flat(SimWave *w, const SimRec *r, uint32_t counts)
{
    uint64_t exec = EXEC(w), lds = lds_lanes(w, r);
    uint32_t ds = 1u << ISA_CNT_DS;
    if (w->chk)
        w->chk->flat_lds = lds != 0;
    if (r->ext->nvwrite || !lds || lds == exec) {
        uint32_t needs = !lds ? counts & ~ds : r->ext->nvwrite ? counts : ds;
        return put_aside(w, r, counts, needs, exec);
    }
    return put_aside(w, r, ds, ds, lds) && put_aside(w, r, counts & ~ds, counts & ~ds, exec & ~lds);
}

/* false: stop. */
static bool
issue(SimWave *w, const SimRec *r, uint32_t counts)
{
    SimLate *t = w->late;
    for (uint32_t m = counts; m; m &= m - 1) {
        uint32_t c = (uint32_t)__builtin_ctz(m);
        if (!leave(w, c, isa_counter_most(w->code->arch, (IsaCounter)c) - 1)) /* full: the issue waits */
            return false;
    }
    bool flat = r->ext->in.enc == ISA_FLAT && r->src[0].kind == SRC_V;
    if (flat ? !issue_flat(w, r, counts) : !put_aside(w, r, counts, counts, EXEC(w)))
        return false;
    if (t->rubbish)
        spoil(w, r->ext);
    return true;
}

/* ---- missing wait states ---- */

typedef struct Stale { /* what registers hold that the instruction does not see */
    uint32_t row[TL_COUNT(((SimChk *)0)->hit)][LANES];
} Stale;

/* The operands as the instruction finds them: from before their last write. */
static void
stale_operands(SimWave *w, Stale *q)
{
    const SimChk *c = w->chk;
    SimLate *t = w->late;
    for (uint32_t i = 0; i < c->nhit; i++) {
        uint32_t reg = c->hit[i].reg, s = reg & ~(uint32_t)HIT_SCALAR;
        if (reg & HIT_SCALAR) {
            q->row[i][0] = w->s[s];
            w->s[s] = t->olds[s];
            continue;
        }
        memcpy(q->row[i], ROW(w, reg), sizeof q->row[i]);
        if (c->hit[i].how == HIT_READ)
            memcpy(ROW(w, reg), t->old + (size_t)reg * LANES, sizeof q->row[i]);
    }
}

/* Afterwards: the registers as they come to be, but for results. */
static void
true_operands(SimWave *w, const SimExt *x, const Stale *q)
{
    const SimChk *c = w->chk;
    uint64_t exec = x->kind == CK_MFMA ? ~UINT64_C(0) : EXEC(w);
    for (uint32_t i = 0; i < c->nhit; i++) {
        uint32_t reg = c->hit[i].reg, s = reg & ~(uint32_t)HIT_SCALAR;
        if (reg & HIT_SCALAR) {
            if (!in_ranges(x->swrite, x->nswrite, s))
                w->s[s] = q->row[i][0];
        } else if (c->hit[i].how == HIT_READ && in_ranges(x->vwrite, x->nvwrite, reg)) {
            blend_row(ROW(w, reg), q->row[i], exec);
        } else {
            memcpy(ROW(w, reg), q->row[i], sizeof q->row[i]);
        }
    }
}

/* Keeps what the instruction writes over. */
static void
remember(SimWave *w, const SimExt *x, const Stale *q)
{
    const SimChk *c = w->chk;
    SimLate *t = w->late;
    for (uint32_t i = 0; i < x->nvwrite; i++)
        memcpy(t->old + (size_t)x->vwrite[i].start * LANES, ROW(w, x->vwrite[i].start),
               sizeof(uint32_t) * LANES * x->vwrite[i].n);
    for (uint32_t i = 0; i < x->nswrite; i++)
        memcpy(t->olds + x->swrite[i].start, w->s + x->swrite[i].start, 4 * x->swrite[i].n);
    for (uint32_t i = 0; i < c->nhit; i++) { /* of these the registers do not hold it now */
        uint32_t reg = c->hit[i].reg;
        if (!(reg & HIT_SCALAR) && in_ranges(x->vwrite, x->nvwrite, reg))
            memcpy(t->old + (size_t)reg * LANES, q->row[i], sizeof q->row[i]);
        else if ((reg & HIT_SCALAR) && in_ranges(x->swrite, x->nswrite, reg & ~(uint32_t)HIT_SCALAR))
            t->olds[reg & ~(uint32_t)HIT_SCALAR] = q->row[i][0];
    }
}

/* ---- run loop ---- */

static const SimRec *
step(SimWave *w, const SimRec *r)
{
    SimLate *t = w->late;
    uint16_t limit[ISA_CNT_COUNT];
    const SimExt *x = r->ext;
    bool scalar = x && (x->in.enc == ISA_SOPP || x->in.enc == ISA_SOPK);
    if (scalar && isa_wait_limits(w->code->arch, &x->in, limit) && !wait_for(w, limit))
        return NULL;
    if (x && x->in.size && (isa_op_info(x->in.op)->classes & ISA_C_BARRIER) && sim_one_cache(w->g->info) &&
        !serve(w, NULL))
        return NULL;
    uint32_t counts = deferred(w, r);
    const SimRec *next = NULL;
    Stale q;
    bool known = t->old && x && x->in.size;
    if (known && w->chk->nhit)
        stale_operands(w, &q);
    if (known && !counts)
        remember(w, x, &q);
    if (!counts) {
        next = r->body(w, r);
        if (w->trace)
            sim_trace_after(w, r);
    } else if (issue(w, r, counts))
        next = NEXT(r);
    if (known && w->chk->nhit)
        true_operands(w, x, &q);
    if (next && t->head && t->chance && draw(&t->rng) >> 32 < t->chance && !any_lands(w))
        return NULL;
    return next;
}

uint64_t
sim_late_run(SimWave *w, uint64_t budget)
{
    uint64_t *counts = w->stats ? w->stats->pc_counts : NULL, left = budget;
    const SimRec *r = w->rec;
    while (left) {
        if (UNLIKELY(!__atomic_load_n(&r->body, __ATOMIC_ACQUIRE)))
            sim_code_decode(w->code, w->mode_cls, (SimRec *)(uintptr_t)r);
        if (w->chk && !sim_chk_before(w, r))
            break;
        if (w->trace)
            sim_trace_before(w, r);
        const SimRec *next = step(w, r);
        left--;
        if (w->chk)
            sim_chk_after(w, r);
        if (counts)
            counts[r->at]++;
        if (!next)
            break;
        r = next;
    }
    if (w->stop == ST_RUN || w->stop == ST_FAULT)
        w->rec = r;
    return budget - left;
}

/* ---- the group ---- */

uint64_t
sim_late_slice(SimGroup *g, uint64_t most)
{
    if (!g->late_seed)
        return most;
    uint64_t x = draw(&g->late[0].rng), n = UINT64_C(1) << (x >> 40) % 13;
    return TL_MIN(most, n + (x >> 50) % n);
}

bool
sim_late_between(SimGroup *g, uint64_t n)
{
    g->late_clock += n;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        SimLate *t = w->late;
        while (t->head && t->head->due < g->late_clock)
            if (!one_lands(w, (uint32_t)__builtin_ctz(t->head->counts)))
                return false;
        if (t->head && t->chance && !(draw(&t->rng) >> 62) && !any_lands(w))
            return false;
    }
    return true;
}

bool
sim_late_drain(SimGroup *g)
{
    for (uint32_t i = 0; i < g->nwaves; i++)
        while (g->late[i].head)
            if (!one_lands(&g->waves[i], (uint32_t)__builtin_ctz(g->late[i].head->counts)))
                return false;
    return true;
}
