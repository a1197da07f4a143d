/* check_lds.c - LDS in the checked variant: races between waves of a workgroup within a barrier interval,
 * accesses still in flight over a barrier, loads straight to LDS that nobody waited for, bytes never written.
 *
 * Shadow: one byte for writers and one for readers of every LDS byte, cleared at each barrier.
 *   writer: 0 none, wave + 1, ATOM | (wave + 1), ATOM_ANY (atomics of several waves)
 *   reader: 0 none, wave + 1, 255 several
 */
#include "sim/check.h"
#include "sim/access.h"

enum { ATOM = 0x80, ATOM_ANY = 0xff, READ_MANY = 255 };

static uint64_t
spread(uint8_t v)
{
    return v * UINT64_C(0x0101010101010101);
}

const SimLdsOp *
sim_chk_lds_party(const SimWave *o, uint32_t byte, bool write)
{
    const SimChk *c = o->chk;
    uint32_t n = TL_MIN(c->nlog, (uint32_t)LDSLOG);
    for (uint32_t k = 1; k <= n; k++) {
        const SimLdsOp *p = &c->log[(c->nlog - k) % LDSLOG];
        if ((write && !p->write) || byte < p->lo || byte >= p->hi)
            continue;
        for (uint64_t m = p->exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            if (byte - p->addr[l] < p->bytes)
                return p;
        }
    }
    return NULL;
}

static bool
report_race(SimWave *w, const SimRec *r, uint32_t byte, uint32_t lane, bool write, bool other_write,
            uint8_t mark)
{
    uint32_t o = mark & ~(uint32_t)ATOM;
    const SimGroup *g = w->g;
    uint32_t other = UINT32_MAX;
    if (mark != 255 && o && o <= g->nwaves)
        other = o - 1;
    if (other == UINT32_MAX) /* several: take one that touched it */
        for (uint32_t i = 0; i < g->nwaves && other == UINT32_MAX; i++)
            if (i != w->index && sim_chk_lds_party(&g->waves[i], byte, other_write))
                other = i;
    const SimLdsOp *p = other == UINT32_MAX ? NULL : sim_chk_lds_party(&g->waves[other], byte, other_write);
    uint64_t pc = p ? w->code->base + (uint64_t)p->pc * 4 : 0;
    char who[24] = "another wave", why[96] = "no barrier between them";
    if (other != UINT32_MAX)
        snprintf(who, sizeof who, "wave %u", other);
    if (p && p->flying)
        snprintf(why, sizeof why, "still in flight at the barrier between them: no wait on %s covers it",
                 /* without a counter: a load to LDS that was reported already */
                 isa_counter_name(w->code->arch,
                                  p->counter < ISA_CNT_COUNT ? (IsaCounter)p->counter : ISA_CNT_VM));
    return sim_fault(w, r, SIM_CHECK_RACE, false, UINT64_C(1) << (lane & 63), sim_at(byte), other, pc,
                     "LDS byte %u: %s races with a %s by %s (%s)", byte, write ? "write" : "read",
                     other_write ? "write" : "read", who, why);
}

/* Does the store put what is there already? Compilers let several waves write replicated data. */
static bool
same_value(const SimWave *w, uint32_t byte, uint32_t lane)
{
    const SimChk *c = w->chk;
    if (!c->lds_data)
        return false;
    uint32_t off = byte - c->lds_addr[lane] + (c->lds_hi ? 2 : 0);
    return w->g->lds[byte] == (uint8_t)(c->lds_data[(off / 4) * LANES + lane] >> 8 * (off % 4));
}

/* One byte at a time where a word is mixed. Returns false = stop. */
static bool
slow_bytes(SimWave *w, const SimRec *r, uint32_t at, uint32_t n, uint32_t lane, bool write, bool atomic)
{
    SimGroup *g = w->g;
    uint8_t me = (uint8_t)(w->index + 1);
    for (uint32_t b = at; b < at + n; b++) {
        uint8_t wr = g->lds_wr[b], rd = g->lds_rd[b];
        bool foreign_wr = wr && wr != me && wr != (ATOM | me);
        bool both_atomic = wr & ATOM && (atomic || (write && g->order && sim_order_flag(g, b)));
        bool foreign_rd = (write || atomic) && rd && rd != me;
        bool ordered =
            ((foreign_wr && !both_atomic) || foreign_rd) && g->order && sim_order_has(w, b, write, atomic);
        if (ordered && (write || atomic)) {
            g->lds_rd[b] = 0;
            wr = wr & ATOM && atomic ? wr : 0;
        } else if (!ordered && ((foreign_wr && !both_atomic) || foreign_rd)) {
            bool ow = foreign_wr && !both_atomic;
            if (write && ow && !foreign_rd && !(wr & ATOM) && same_value(w, b, lane))
                continue;
            g->lds_wr[b] = 0; /* once a byte */
            g->lds_rd[b] = 0;
            if (!report_race(w, r, b, lane, write || atomic, ow, ow ? wr : rd))
                return false;
            continue;
        }
        if (atomic)
            g->lds_wr[b] = wr && wr != (ATOM | me) && (wr & ATOM) ? ATOM_ANY
                           : wr == me                             ? me
                                                                  : (uint8_t)(ATOM | me);
        else if (write)
            g->lds_wr[b] = me;
        else
            g->lds_rd[b] = rd && rd != me ? READ_MANY : me;
    }
    return true;
}

/* All bytes of a lane at once; `bytes` (1, 2, 4, 8, 16) and `write` are constants where this is inlined. */
static inline __attribute__((always_inline)) bool
mark_lane(SimWave *w, const SimRec *r, uint32_t a, uint32_t l, uint32_t bytes, bool write)
{
    SimGroup *g = w->g;
    const uint64_t all = UINT64_MAX >> (64 - 8 * TL_MIN(bytes, 8u)),
                   me = spread((uint8_t)(w->index + 1)) & all;
    uint64_t w0 = 0, w1 = 0, r0 = 0, r1 = 0;
    memcpy(&w0, g->lds_wr + a, TL_MIN(bytes, 8u));
    memcpy(&r0, g->lds_rd + a, TL_MIN(bytes, 8u));
    if (bytes == 16) {
        memcpy(&w1, g->lds_wr + a + 8, 8);
        memcpy(&r1, g->lds_rd + a + 8, 8);
    } else {
        w1 = w0;
        r1 = r0;
    }
    bool free_wr = !(w0 | w1) || (w0 == me && w1 == me);
    uint8_t *to = write ? g->lds_wr + a : g->lds_rd + a;
    uint64_t v = me;
    if (write) {
        if (UNLIKELY(!free_wr || !(!(r0 | r1) || (r0 == me && r1 == me))))
            goto slow;
    } else {
        if (UNLIKELY(!free_wr || r0 != r1))
            goto slow;
        if (r0 == me || r0 == all)
            return true;
        if (r0) { /* another one after one wave */
            if (r0 != (spread((uint8_t)r0) & all))
                goto slow;
            v = all;
        }
    }
    memcpy(to, &v, TL_MIN(bytes, 8u));
    if (bytes == 16)
        memcpy(to + 8, &v, 8);
    return true;
slow:
    return slow_bytes(w, r, a, bytes, l, write, false);
}

#define MARK_LANES(n)                                                                                        \
    for (uint64_t m = exec; m; m &= m - 1) {                                                                 \
        uint32_t l = (uint32_t)__builtin_ctzll(m);                                                           \
        if (write ? !mark_lane(w, r, addr[l], l, n, true) : !mark_lane(w, r, addr[l], l, n, false))          \
            return false;                                                                                    \
    }

/* [lo, hi): hull of the bytes */
static bool
mark_access(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write,
            bool atomic, uint32_t lo, uint32_t hi)
{
    SimGroup *g = w->g;
    g->sh_lo = TL_MIN(g->sh_lo, lo);
    g->sh_hi = TL_MAX(g->sh_hi, hi);
    if (g->order) {
        sim_order_look(w);
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            if (!slow_bytes(w, r, addr[l], bytes, l, write, atomic))
                return false;
        }
        sim_order_note(w, addr, exec, bytes, write, atomic);
    } else if (!atomic && bytes == 16) {
        MARK_LANES(16)
    } else if (!atomic && bytes == 8) {
        MARK_LANES(8)
    } else if (!atomic && bytes == 4) {
        MARK_LANES(4)
    } else if (!atomic && bytes == 2) {
        MARK_LANES(2)
    } else if (!atomic && bytes == 1) {
        MARK_LANES(1)
    } else if (!atomic && bytes == 12) {
        uint32_t last[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            last[l] = addr[l] + 8;
        MARK_LANES(8)
        addr = last;
        MARK_LANES(4)
    } else {
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            if (!slow_bytes(w, r, addr[l], bytes, l, write, atomic))
                return false;
        }
    }
    return true;
}

static const SimLdsOp *
log_access(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write,
           uint8_t counter)
{
    SimChk *c = w->chk;
    SimLdsOp *p = &c->log[c->nlog++ % LDSLOG];
    p->seq = c->n.issued[counter] + 1;
    p->counter = counter;
    p->write = write;
    p->bytes = (uint8_t)bytes;
    p->pc = r->at;
    p->epoch = w->race.interval;
    p->flying = false;
    p->complete = sim_chk_complete(&c->n);
    p->releases = w->race.releases;
    p->exec = exec;
    memcpy(p->addr, addr, sizeof p->addr);
    int32_t lo = INT32_MAX, hi = 0; /* LDS is smaller than 2 GiB; signed vectors compare faster */
    if (exec == ~UINT64_C(0)) {
        for (uint32_t l = 0; l < LANES; l++) {
            lo = TL_MIN(lo, (int32_t)addr[l]);
            hi = TL_MAX(hi, (int32_t)addr[l]);
        }
    } else {
        for (uint64_t m = exec; m; m &= m - 1) {
            int32_t a = (int32_t)addr[__builtin_ctzll(m)];
            lo = TL_MIN(lo, a);
            hi = TL_MAX(hi, a);
        }
    }
    p->lo = (uint32_t)lo;
    p->hi = (uint32_t)hi + bytes;
    return p;
}

/* Own accesses to bytes that a load straight to LDS is still to write. */
static bool
check_dma(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes)
{
    SimChk *c = w->chk;
    uint32_t n = TL_MIN(c->nlog, (uint32_t)LDSLOG), open = 0;
    for (uint32_t k = 1; k <= n; k++) {
        SimLdsOp *p = &c->log[(c->nlog - k) % LDSLOG];
        if (p->counter != ISA_CNT_VM || cnt_done(&c->n, ISA_CNT_VM, p->seq))
            continue;
        open++;
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m), a = addr[l];
            if (a >= p->hi || a + bytes <= p->lo)
                continue;
            for (uint64_t q = p->exec; q; q &= q - 1) {
                uint32_t b = p->addr[__builtin_ctzll(q)];
                if (a >= b + p->bytes || a + bytes <= b)
                    continue;
                p->counter = ISA_CNT_COUNT;
                return sim_fault(
                    w, r, SIM_CHECK_WAIT, false, UINT64_C(1) << l, sim_at(a), UINT32_MAX,
                    w->code->base + (uint64_t)p->pc * 4,
                    "LDS byte %u is used while the load straight to it is not complete (no wait on vmcnt "
                    "covers it)",
                    a);
            }
        }
    }
    c->dma_out = open;
    return true;
}

/* Has no other wave written these bytes since the barrier but by atomics? */
static bool
atomics_alone(const SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes)
{
    uint8_t me = (uint8_t)(w->index + 1);
    for (uint64_t m = exec; m; m &= m - 1)
        for (uint32_t l = (uint32_t)__builtin_ctzll(m), b = 0; b < bytes; b++) {
            uint8_t wr = w->g->lds_wr[addr[l] + b];
            if (wr && wr != me && !(wr & ATOM))
                return false;
        }
    return true;
}

static bool
access_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write,
           bool atomic)
{
    SimChk *c = w->chk;
    if (!exec)
        return true;
    if (c->dma_out && checking(w, SIM_CHECK_WAIT) && !check_dma(w, r, addr, exec, bytes))
        return false;
    if (!checking(w, SIM_CHECK_RACE) || w->g->nwaves == 1)
        return true;
    uint32_t first = addr[__builtin_ctzll(exec)];
    if (c->group_open)
        sim_chk_flags_seen(w, false);
    if (c->loads_open)
        sim_chk_loads_seen(w);
    bool polls = (!write || atomic) && sim_chk_polls(w, r, first);
    if (polls || (atomic && r->ext->in.ndst && sim_chk_steers(w, r)))
        sim_order_acquire_lds(w, r, addr, exec, bytes, polls);
    if (polls && !atomic)
        return true;
    c->effects += write;
    if (atomic)
        sim_order_begin(w->g);
    if (!write && sim_chk_maybe(w, r) && atomics_alone(w, addr, exec, bytes))
        return true; /* the compare-and-swap that follows is looked at */
    const SimLdsOp *p = log_access(w, r, addr, exec, bytes, write, ISA_CNT_DS);
    if (!mark_access(w, r, addr, exec, bytes, write, atomic, p->lo, p->hi))
        return false;
    if (atomic && sim_chk_lds_taken(w, r))
        sim_order_release_lds(w, addr, exec);
    return true;
}

bool
sim_chk_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write)
{
    return access_lds(w, r, addr, exec, bytes, write, false);
}

bool
sim_chk_lds_write(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                  const uint32_t *data, bool hi)
{
    SimChk *c = w->chk;
    c->lds_data = data;
    c->lds_addr = addr;
    c->lds_hi = hi;
    bool ok = access_lds(w, r, addr, exec, bytes, true, false);
    c->lds_data = c->lds_addr = NULL;
    return ok;
}

bool
sim_chk_lds_atomic(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes)
{
    return access_lds(w, r, addr, exec, bytes, true, true);
}

bool
sim_chk_lds_dma(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                const SimUndef *undef)
{
    SimChk *c = w->chk;
    SimGroup *g = w->g;
    if (g->lds_init)
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            for (uint32_t d = 0; d < bytes / 4; d++)
                memset(g->lds_init + addr[l] + 4 * d, (undef[d].any >> l) & 1 ? 0 : 0xff, 4);
        }
    for (uint32_t d = 0; d < bytes / 4; d++)
        g->lds_all_init &= !(undef[d].any & exec);
    if (c->dma_out && checking(w, SIM_CHECK_WAIT) && !check_dma(w, r, addr, exec, bytes))
        return false;
    if (!exec)
        return true;
    const SimLdsOp *p = log_access(w, r, addr, exec, bytes, true, ISA_CNT_VM);
    c->dma_out++;
    if (!checking(w, SIM_CHECK_RACE) || g->nwaves == 1)
        return true;
    return mark_access(w, r, addr, exec, bytes, true, false, p->lo, p->hi);
}

/* ---- barriers ---- */

/* The wave arrives at a barrier (s_barrier, s_barrier_signal): what is under way belongs to the next
 * interval. */
void
sim_chk_signal(SimWave *w)
{
    SimChk *c = w->chk;
    const SimChkNumbers *n = &c->n;
    w->chk->effects++;
    if (c->device_open)
        sim_chk_meet(w);
    if (c->loads_open)
        sim_chk_loads_seen(w);
    sim_race_signal(&w->race, sim_chk_complete(n));
    for (uint32_t k = 0; k < TL_MIN(c->nlog, (uint32_t)LDSLOG); k++) {
        SimLdsOp *p = &c->log[k];
        if (p->counter != ISA_CNT_COUNT && !cnt_done(n, p->counter, p->seq)) {
            p->epoch = w->race.interval;
            p->flying = true;
        }
    }
}

/* Marks an access anew: it belongs to the interval that begins. */
static void
mark_again(SimGroup *g, uint32_t wave, const SimLdsOp *p)
{
    uint8_t *sh = p->write ? g->lds_wr : g->lds_rd;
    for (uint64_t m = p->exec; m; m &= m - 1) {
        uint32_t a = p->addr[__builtin_ctzll(m)];
        for (uint32_t b = a; b < a + p->bytes; b++)
            sh[b] = !p->write && sh[b] && sh[b] != wave + 1 ? READ_MANY : (uint8_t)(wave + 1);
        g->sh_lo = TL_MIN(g->sh_lo, a);
        g->sh_hi = TL_MAX(g->sh_hi, a + p->bytes);
    }
}

static bool
all_ones(const uint8_t *p, uint32_t n)
{
    uint8_t v = 0xff;
    for (uint32_t i = 0; i < n; i++)
        v &= p[i];
    return v == 0xff;
}

/* A barrier is complete: clear the interval, then mark again what was in flight at a wave's arrival and what
 * it did after it. */
static void
next_interval(SimGroup *g)
{
    /* all of LDS is defined from some barrier on in most kernels: looked for at 1, 2, 4, 8, ... */
    if (g->lds_init && !g->lds_all_init && !(g->epoch & (g->epoch - 1)))
        g->lds_all_init = all_ones(g->lds_init, g->lds_bytes);
    if (!g->lds_wr || g->nwaves == 1)
        return;
    if (g->sh_lo < g->sh_hi) {
        if (g->order)
            sim_order_clear(g, g->sh_lo, g->sh_hi);
        memset(g->lds_wr + g->sh_lo, 0, g->sh_hi - g->sh_lo);
        memset(g->lds_rd + g->sh_lo, 0, g->sh_hi - g->sh_lo);
    }
    g->sh_lo = UINT32_MAX;
    g->sh_hi = 0;
    for (uint32_t i = 0; i < g->nwaves; i++) {
        SimWave *w = &g->waves[i];
        SimChk *c = w->chk;
        uint32_t n = TL_MIN(c->nlog, (uint32_t)LDSLOG);
        if (w->stop == ST_END)
            continue;
        for (uint32_t k = 1; k <= n; k++) {
            const SimLdsOp *p = &c->log[(c->nlog - k) % LDSLOG];
            if (p->epoch <= w->race.waited)
                continue;
            mark_again(g, i, p);
            if (g->order)
                sim_order_note(w, p->addr, p->exec, p->bytes, p->write, false);
        }
    }
}

void
sim_chk_barrier(SimGroup *g)
{
    next_interval(g);
    if (!g->info->race || g->nwaves > MAX_GROUP_WAVES)
        return;
    SimRaceWave *all[MAX_GROUP_WAVES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nwaves; i++)
        if (g->waves[i].stop != ST_END)
            all[n++] = &g->waves[i].race;
    sim_race_barrier(all, n);
}

/* The wave gets past its barrier. */
void
sim_chk_pass(SimWave *w)
{
    SimGroup *g = w->g;
    SimRaceWave *all[MAX_GROUP_WAVES];
    uint32_t n = TL_MIN(g->nwaves, (uint32_t)MAX_GROUP_WAVES);
    for (uint32_t i = 0; i < n; i++)
        all[i] = g->waves[i].stop == ST_END ? NULL : &g->waves[i].race;
    sim_race_wait(&w->race, all, n);
    if (w->race.seen && sim_chk_fresh(w))
        sim_race_invalidate(&w->race);
}

/* ---- definedness
 * ------------------------------------------------------------------------------------------------- */

void
sim_chk_lds_undef(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes, SimUndef *undef)
{
    const uint8_t *init = w->g->lds_init;
    for (uint32_t d = 0; d < (bytes + 3) / 4; d++)
        undef[d] = (SimUndef){0};
    if (!init || w->g->lds_all_init)
        return;
    const uint64_t ones = ~UINT64_C(0);
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        const uint8_t *p = init + addr[l];
        uint64_t v, q;
        memcpy(&v, p, 8); /* the map has room behind it */
        if (bytes == 16) {
            memcpy(&q, p + 8, 8);
            if (LIKELY(v == ones && q == ones))
                continue;
        } else if (bytes == 8 && v == ones) {
            continue;
        } else if (bytes == 4 && (uint32_t)v == (uint32_t)ones) {
            continue;
        }
        for (uint32_t k = 0; k < bytes; k++)
            if (p[k] != 0xff) {
                sim_chk_origin_found(w->chk, ORG_LDS, addr[l] + k);
                break;
            }
        sim_chk_undef_lane(undef, l, p, p + sim_lds_map(w->g), bytes, sim_chk_home(true, l, addr[l]));
    }
}

void
sim_chk_lds_store(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool upper)
{
    uint8_t *init = w->g->lds_init;
    const SimChk *c = w->chk;
    if (!init)
        return;
    uint32_t nd = (bytes + 3) / 4;
    uint64_t any = 0;
    for (uint32_t d = 0; d < nd; d++)
        any |= c->vp[src + d];
    if (!(any & exec)) {
        if (w->g->lds_all_init)
            return;
        for (uint64_t m = exec; m; m &= m - 1) {
            uint8_t *p = init + addr[__builtin_ctzll(m)];
            switch (bytes) {
            case 16:
                memset(p, 0xff, 16);
                break;
            case 8:
                memset(p, 0xff, 8);
                break;
            case 4:
                memset(p, 0xff, 4);
                break;
            default:
                memset(p, 0xff, bytes);
            }
        }
        return;
    }
    w->g->lds_all_init = false;
    for (uint32_t d = 0; d < nd; d++) {
        SimBitStore s = {src + d, TL_MIN(bytes, 4u), upper, false};
        s.in_place = sim_chk_goes_home(c, &s, true, addr, exec, d);
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            uint8_t *p = init + addr[l] + 4 * d;
            sim_chk_put_lane(c, &s, l, p, p + sim_lds_map(w->g));
        }
    }
}

void
sim_chk_lds_atomic_data(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                        bool swap)
{
    const SimChk *c = w->chk;
    if (swap) {
        sim_chk_lds_store(w, src, addr, exec, bytes, false);
        return;
    }
    for (uint32_t d = 0; w->g->lds_init && d < bytes / 4; d++)
        for (uint64_t m = c->vp[src + d] & exec; m; m &= m - 1)
            memset(w->g->lds_init + addr[__builtin_ctzll(m)] + 4 * d, 0, 4), w->g->lds_all_init = false;
}
