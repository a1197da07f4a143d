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

/* The newest access of another wave to this byte; 0 = not in its log. */
static uint64_t
find_party(const SimWave *o, uint32_t byte, bool write)
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
                return o->code->base + (uint64_t)p->pc * 4;
        }
    }
    return 0;
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
            if (i != w->index && find_party(&g->waves[i], byte, other_write))
                other = i;
    uint64_t pc = other == UINT32_MAX ? 0 : find_party(&g->waves[other], byte, other_write);
    char who[24] = "another wave";
    if (other != UINT32_MAX)
        snprintf(who, sizeof who, "wave %u", other);
    return sim_fault(
        w, r, SIM_CHECK_RACE, false, UINT64_C(1) << (lane & 63), byte, other, pc,
        "LDS byte %u: %s races with a %s by %s (no barrier between them, or an access still in flight over "
        "it)",
        byte, write ? "write" : "read", other_write ? "write" : "read", who);
}

/* One byte at a time where a word is mixed. Returns false = stop. */
static bool
slow_bytes(SimWave *w, const SimRec *r, uint32_t at, uint32_t n, uint32_t lane, bool write, bool atomic)
{
    SimGroup *g = w->g;
    uint8_t me = (uint8_t)(w->index + 1);
    for (uint32_t b = at; b < at + n; b++) {
        uint8_t wr = g->lds_wr[b], rd = g->lds_rd[b];
        bool foreign_wr = wr && wr != me && wr != (ATOM | me), both_atomic = atomic && (wr & ATOM);
        bool foreign_rd = (write || atomic) && rd && rd != me;
        if ((foreign_wr && !both_atomic) || foreign_rd) {
            bool ow = foreign_wr && !both_atomic;
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

static inline bool
mark_word(SimWave *w, const SimRec *r, uint32_t at, uint32_t lane, bool write)
{
    SimGroup *g = w->g;
    uint64_t me = spread((uint8_t)(w->index + 1)), wr, rd;
    memcpy(&wr, g->lds_wr + at, 8);
    memcpy(&rd, g->lds_rd + at, 8);
    if (write) {
        if (LIKELY((wr == 0 || wr == me) && (rd == 0 || rd == me))) {
            memcpy(g->lds_wr + at, &me, 8);
            return true;
        }
    } else if (LIKELY(wr == 0 || wr == me)) {
        if (rd == me || rd == ~UINT64_C(0))
            return true;
        if (rd == 0 || rd == spread((uint8_t)rd)) { /* the first reader, or another one after one wave */
            uint64_t v = rd ? ~UINT64_C(0) : me;
            memcpy(g->lds_rd + at, &v, 8);
            return true;
        }
    }
    return slow_bytes(w, r, at, 8, lane, write, false);
}

static bool
mark_access(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write,
            bool atomic)
{
    SimGroup *g = w->g;
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), a = addr[l], n = bytes;
        g->sh_lo = TL_MIN(g->sh_lo, a);
        g->sh_hi = TL_MAX(g->sh_hi, a + n);
        if (!atomic)
            for (; n >= 8; n -= 8, a += 8)
                if (!mark_word(w, r, a, l, write))
                    return false;
        if (n == 4 && !atomic) {
            uint32_t me = (uint32_t)spread((uint8_t)(w->index + 1)), wr, rd;
            memcpy(&wr, g->lds_wr + a, 4);
            memcpy(&rd, g->lds_rd + a, 4);
            if ((wr == 0 || wr == me) && (rd == me || rd == 0 || (!write && rd == ~0u))) {
                if (write)
                    memcpy(g->lds_wr + a, &me, 4);
                else if (rd == 0)
                    memcpy(g->lds_rd + a, &me, 4);
                continue;
            }
        }
        if (n && !slow_bytes(w, r, a, n, l, write, atomic))
            return false;
    }
    return true;
}

static void
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
    p->exec = exec;
    p->lo = UINT32_MAX;
    p->hi = 0;
    memcpy(p->addr, addr, sizeof p->addr);
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t a = addr[__builtin_ctzll(m)];
        p->lo = TL_MIN(p->lo, a);
        p->hi = TL_MAX(p->hi, a + bytes);
    }
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
                    w, r, SIM_CHECK_WAIT, false, UINT64_C(1) << l, a, UINT32_MAX,
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
    log_access(w, r, addr, exec, bytes, write, ISA_CNT_DS);
    return mark_access(w, r, addr, exec, bytes, write, atomic);
}

bool
sim_chk_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write)
{
    return access_lds(w, r, addr, exec, bytes, write, false);
}

bool
sim_chk_lds_atomic(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes)
{
    return access_lds(w, r, addr, exec, bytes, true, true);
}

bool
sim_chk_lds_dma(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                const uint64_t *undef)
{
    SimChk *c = w->chk;
    SimGroup *g = w->g;
    if (g->lds_init)
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            for (uint32_t d = 0; d < bytes / 4; d++)
                memset(g->lds_init + addr[l] + 4 * d, (undef[d] >> l) & 1 ? 0 : 1, 4);
        }
    if (c->dma_out && checking(w, SIM_CHECK_WAIT) && !check_dma(w, r, addr, exec, bytes))
        return false;
    log_access(w, r, addr, exec, bytes, true, ISA_CNT_VM);
    c->dma_out++;
    if (!checking(w, SIM_CHECK_RACE) || g->nwaves == 1)
        return true;
    return mark_access(w, r, addr, exec, bytes, true, false);
}

/* ---- barriers ---- */

/* The wave arrives at a barrier (s_barrier, s_barrier_signal). */
void
sim_chk_signal(SimWave *w)
{
    const SimChkNumbers *n = &w->chk->n;
    sim_race_signal(&w->race, cnt_done(n, ISA_CNT_VM, n->access[ISA_CNT_VM]) &&
                                  cnt_done(n, ISA_CNT_VS, n->access[ISA_CNT_VS]));
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

/* A barrier is complete: clear the interval, then mark again what is still in flight and what waves did after
 * their arrival. */
static void
next_interval(SimGroup *g)
{
    if (!g->lds_wr || g->nwaves == 1)
        return;
    if (g->sh_lo < g->sh_hi) {
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
            bool under_way = p->counter != ISA_CNT_COUNT && !cnt_done(&c->n, p->counter, p->seq);
            if (under_way || p->epoch > w->race.waited)
                mark_again(g, i, p);
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
}

/* ---- definedness
 * ------------------------------------------------------------------------------------------------- */

void
sim_chk_lds_undef(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes, uint64_t *undef)
{
    const uint8_t *init = w->g->lds_init;
    for (uint32_t d = 0; d < (bytes + 3) / 4; d++)
        undef[d] = 0;
    if (!init)
        return;
    const uint64_t ones = UINT64_C(0x0101010101010101);
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
            undef[k / 4] |= (uint64_t)!p[k] << l;
    }
}

void
sim_chk_lds_store(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes)
{
    uint8_t *init = w->g->lds_init;
    const SimChk *c = w->chk;
    if (!init)
        return;
    uint32_t nd = (bytes + 3) / 4, step = TL_MIN(bytes, 4u);
    uint64_t any = 0;
    for (uint32_t d = 0; d < nd; d++)
        any |= c->vp[src + d];
    if (!(any & exec)) {
        for (uint64_t m = exec; m; m &= m - 1) {
            uint8_t *p = init + addr[__builtin_ctzll(m)];
            static const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
            switch (bytes) {
            case 16:
                memcpy(p, ones, 16);
                break;
            case 8:
                memcpy(p, ones, 8);
                break;
            case 4:
                memcpy(p, ones, 4);
                break;
            default:
                memset(p, 1, bytes);
            }
        }
        return;
    }
    for (uint32_t d = 0; d < nd; d++) {
        uint64_t p = c->vp[src + d];
        for (uint64_t m = exec; m; m &= m - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(m);
            memset(init + addr[l] + 4 * d, (p >> l) & 1 ? 0 : 1, step);
        }
    }
}

void
sim_chk_lds_atomic_data(SimWave *w, uint32_t src, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                        bool swap)
{
    const SimChk *c = w->chk;
    if (swap) {
        sim_chk_lds_store(w, src, addr, exec, bytes);
        return;
    }
    for (uint32_t d = 0; w->g->lds_init && d < bytes / 4; d++)
        for (uint64_t m = c->vp[src + d] & exec; m; m &= m - 1)
            memset(w->g->lds_init + addr[__builtin_ctzll(m)] + 4 * d, 0, 4);
}
