/* check.h - shared by the parts of the checked variant. */
#ifndef TL_SIM_CHECK_H
#define TL_SIM_CHECK_H

#include "isa/coherence.h"
#include "sim/core.h"

/* What an instruction is to the checks (SimExt.kind). */
enum { CK_OTHER, CK_SALU, CK_SMEM, CK_VALU, CK_MFMA, CK_VMEM, CK_FLAT, CK_DS, CK_WAIT, CK_NOP, CK_BRANCH };
/* SimExt.use: sinks of undefined values and other traits. */
enum { CU_LOAD = 1, CU_STORE = 2, CU_ATOMIC = 4, CU_DMA = 8, CU_JUMP = 16, CU_SCC = 32, CU_VCC = 64 };

/* check_meet.c: the wave loads at addr, not atomically; its caches were emptied; has every wave of its
 * workgroup loaded nothing since then? What coherent loads and atomics have acquired if so. */
void sim_chk_loaded(SimWave *w, uint64_t addr);
void sim_chk_emptied(SimWave *w, const IsaCoherence *co);
bool sim_chk_fresh(const SimWave *w);
struct SimCoherent;
bool sim_chk_all_met(const SimWave *w, const struct SimCoherent *q);
void sim_chk_meet(SimWave *w);

bool sim_chk_poison(SimWave *w, const SimRec *r); /* sinks, then spreads; before the body runs */
bool sim_chk_hazard(SimWave *w, const SimRec *r, uint32_t written); /* written: flags of what it writes */
/* Missing wait states: what the instruction reads in vain counts as undefined while it runs; after it. */
void sim_chk_hits(SimWave *w);
void sim_chk_hits_after(SimWave *w, const SimRec *r);
void sim_chk_hazard_after(SimWave *w, const SimRec *r);
void sim_chk_hazard_prepare(SimBuild *b);
/* The same for gfx11 and gfx12; flags: of the registers that it reads. */
bool sim_chk_rdna(SimWave *w, const SimRec *r, uint32_t flags);
void sim_chk_rdna_after(SimWave *w, const SimRec *r);
void sim_chk_rdna_prepare(SimBuild *b);
/* A vector instruction that owes and asks nothing but by flags of its registers, and what is left to note of
 * one (all of sim_chk_rdna_after) when none of them is set beside RDNA_READS. */
bool sim_chk_rdna_plain(const SimExt *x);
void sim_chk_rdna_quick(SimWave *w, const SimRec *r);
enum { RDNA_READS = 8 | 32 }; /* of sflag: read by vector instructions */
/* Is it one for the short way of check_run.c? */
void sim_chk_quick_prepare(SimBuild *b);
/* Of an instruction with undefined sources: what of its result is undefined, by trying it out; false: not of
 * the kind that hides or moves bits. */
bool sim_chk_bits(SimWave *w, const SimRec *r, SimUndef *out);
/* A byte of LDS or of a lane's scratch as SimUndef.home. */
static inline uint64_t
sim_chk_home(bool lds, uint32_t lane, uint32_t at)
{
    return UINT64_C(1) << 63 | (uint64_t)lds << 40 | (uint64_t)lane << 32 | at;
}
/* A row that is stored to LDS or scratch. n: bytes of it (1, 2, 4), upper: from the upper half on. */
typedef struct SimBitStore {
    uint32_t row, n;
    bool upper;
    bool in_place; /* the lanes' dwords were loaded from where they go (sim_chk_goes_home) */
} SimBitStore;
/* Was the row loaded where it is stored: from dword d of a lane's address on? */
bool sim_chk_goes_home(const SimChk *c, const SimBitStore *s, bool lds, const uint32_t *addr, uint64_t lanes,
                       uint32_t d);
/* Definedness of the bytes of one lane after the store; `computed` as for sim_chk_undef_lane. */
void sim_chk_put_lane(const SimChk *c, const SimBitStore *s, uint32_t l, uint8_t *defined, uint8_t *computed);
/* What a missing wait state does: register (row or HIT_SCALAR + code) and how. */
void sim_chk_hit(SimChk *c, uint32_t reg, HitHow how);
/* Wait states that an instruction needs, and by which rule. */
typedef struct SimNeed {
    uint32_t states;
    IsaHazardRule rule;
} SimNeed;
static inline void
sim_need(const SimChk *c, SimNeed *n, uint32_t states, IsaHazardRule rule)
{
    if (states > n->states && !(c->ignore >> rule & 1))
        *n = (SimNeed){states, rule};
}

/* A question about the code that is asked once; threads that ask at once find the same. */
typedef bool SimAsk(const SimCode *c, const SimRec *r);
static inline bool
sim_chk_ask(uint8_t *known, SimAsk *ask, const SimCode *c, const SimRec *r)
{
    uint8_t m = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (m == MAYBE_ASK) {
        m = ask(c, r) ? MAYBE_YES : MAYBE_NO;
        __atomic_store_n(known, m, __ATOMIC_RELAXED);
    }
    return m == MAYBE_YES;
}

/* Does the load or atomic wait for what another wave writes at addr (of its first lane)? */
bool sim_chk_polls(SimWave *w, const SimRec *r, uint64_t addr);
/* Has another wave of the workgroup waited there? */
bool sim_chk_polled(const SimWave *w, uint64_t addr);
/* Does the value, of an atomic the old one, decide what its wave does? */
bool sim_chk_steers(const SimWave *w, const SimRec *r);
/* Is there anything in the code that takes over what atomics released in LDS? */
bool sim_chk_lds_taken(const SimWave *w, const SimRec *r);
/* ... what was released for the device? Invalidations aside. */
bool sim_chk_dev_taken(const SimWave *w, const SimRec *r);
/* 0: the wave's accesses of global memory are complete and written back; or SIM_NO_*. */
uint32_t sim_chk_lacks_release(const SimWave *w);
/* Loads and atomics that are complete hand over what their workgroup released; invalidated: the cache was
 * emptied. */
void sim_chk_flags_seen(SimWave *w, bool invalidated);
/* What others have released for the device through flags that the wave has seen and not invalidated behind:
 * that they have loaded it is certain, so who stores there need not invalidate. */
void sim_chk_loads_seen(SimWave *w);
/* Room for one more coherent access, the wave's last. */
struct SimCoherent *sim_chk_new_coherent(SimWave *w, const SimRec *r, uint32_t counter, uint8_t scope);
static inline void
sim_chk_note_address(struct SimCoherent *q, uint64_t addr)
{
    q->store[q->n] = q->before[q->n] = 0;
    q->addr[q->n++] = addr;
}
/* Behind it, when its addresses are noted: what they hand on. */
void sim_chk_look_now(SimWave *w, struct SimCoherent *q);
/* The newest access of a wave to this byte of LDS; NULL = not in its log. */
const SimLdsOp *sim_chk_lds_party(const SimWave *o, uint32_t byte, bool write);

/* ---- flags within a workgroup (check_order.c) ---- */

typedef struct SimLdsOrder SimLdsOrder;
/* Once before the bytes of an access; does what other waves did to the byte come before it? Then its stamps.
 * All of these only with g->order. */
void sim_order_look(SimWave *w);
bool sim_order_has(const SimWave *w, uint32_t byte, bool write, bool atomic);
void sim_order_note(SimWave *w, const uint32_t *addr, uint64_t exec, uint32_t bytes, bool write, bool atomic);
void sim_order_clear(SimGroup *g, uint32_t lo, uint32_t hi); /* a barrier orders all of it */
/* Before the first LDS atomic of a workgroup is marked: marks of atomics are not taken over. */
void sim_order_begin(SimGroup *g);
void sim_order_release_lds(SimWave *w, const uint32_t *addr, uint64_t exec);
void sim_order_acquire_lds(SimWave *w, const SimRec *r, const uint32_t *addr, uint64_t exec, uint32_t bytes,
                           bool poll);
/* Has an access that waits been there? Then the byte is a flag's, and stores to it are atomic. */
bool sim_order_flag(const SimGroup *g, uint32_t byte);
void sim_order_store(SimWave *w, uint64_t addr); /* of global memory, its first lane */
void sim_order_release(SimWave *w, const uint64_t *addr, uint64_t lanes);
void sim_order_acquire(SimWave *w, uint64_t addr, uint32_t store, uint32_t before);
bool sim_order_poll(SimWave *w, const uint64_t *addr,
                    uint64_t lanes); /* false: others have stored there too */

enum { CB_VM = 1 << ISA_CNT_VM, CB_VS = 1 << ISA_CNT_VS, CB_DS = 1 << ISA_CNT_DS, CB_KM = 1 << ISA_CNT_KM };
/* Is operation `seq` of a counter complete for sure? */
static inline bool
cnt_done(const SimChkNumbers *n, uint32_t counter, uint32_t seq)
{
    return (int32_t)(seq - n->done[counter]) <= 0;
}
/* Are a wave's accesses of global memory? */
static inline bool
sim_chk_complete(const SimChkNumbers *n)
{
    return cnt_done(n, ISA_CNT_VM, n->access[ISA_CNT_VM]) && cnt_done(n, ISA_CNT_VS, n->access[ISA_CNT_VS]);
}
/* The counter that stores count in. */
static inline uint32_t
store_counter(IsaArch arch)
{
    return arch <= ISA_GFX950 ? ISA_CNT_VM : ISA_CNT_VS;
}

/* What a vector or matrix instruction of gfx9 wrote at state `now`, for those that must keep their distance.
 */
void sim_chk_note_rows(SimChk *c, const SimRec *r, const SimExt *x, const SimRange *g, uint32_t now);
static inline void
note_vector_writes(SimChk *c, const SimRec *r, const SimExt *x, uint32_t now)
{
    for (uint32_t i = 0; i < x->nvwrite; i++) {
        const SimRange *g = &x->vwrite[i];
        if (UNLIKELY(g->n != 1 || x->haz != HZ_VALU)) {
            sim_chk_note_rows(c, r, x, g, now);
            continue;
        }
        uint32_t row = g->start; /* nothing but its time and class is ever asked for */
        c->vtime[row] = now;
        c->vprod[row] = HZ_VALU;
        c->wpc[row] = r->at;
        c->dlen[row] = 0;
        if (UNLIKELY(c->vflag[row] & VF_PROD))
            c->vflag[row] &= (uint8_t)~VF_PROD;
    }
    for (uint32_t i = 0; i < x->nswrite; i++)
        for (uint32_t s = x->swrite[i].start; s < x->swrite[i].start + (uint32_t)x->swrite[i].n; s++) {
            c->stime[s] = now;
            c->swpc[s] = r->at;
            if (!(c->sflag[s] & VF_PROD))
                c->sflag[s] |= VF_PROD;
        }
}

/* Where an undefined value comes from. */
typedef struct SimOrigin {
    uint32_t org;
    uint64_t at;
} SimOrigin;
void sim_chk_origin_start(SimChk *c);
void sim_chk_origin_load(SimWave *w, const SimRec *r); /* behind the body, when org_new is set */
/* Of the first undefined source; before the body. Behind sim_chk_poison it goes to what is undefined then. */
SimOrigin sim_chk_origin_of(const SimWave *w, const SimExt *x);
void sim_chk_origin_spread(SimWave *w, const SimExt *x, SimOrigin from);
void sim_chk_origin_lost(SimWave *w, const SimRec *r); /* of swaps, and of registers relative to M0 */
/* "; it comes from ..." of a row, or of scalar i - ROWS, empty when it is not known; *pc: of the load, 0
 * without. */
const char *sim_chk_origin_text(SimWave *w, uint32_t i, char *text, size_t n, uint64_t *pc);

static inline void
set_vp(SimChk *c, uint32_t row, uint64_t p)
{
    c->org[row] = p ? c->org[row] : ORG_NONE;
    c->vp[row] = p;
    c->vflag[row] = (uint8_t)((c->vflag[row] & ~(VF_POISON | VF_PART | VF_HOME)) | (p ? VF_POISON : 0));
}
static inline SimUndef
row_undef(const SimChk *c, uint32_t row)
{
    uint64_t home = c->vflag[row] & VF_HOME ? c->vhome[row] : 0;
    if (!(c->vflag[row] & VF_PART))
        return (SimUndef){.any = c->vp[row], .home = home};
    return (SimUndef){c->vp[row], c->vpart[row] & c->vp[row], c->vknown[row], c->vpad[row], home};
}
static inline void
set_row_undef(SimChk *c, uint32_t row, SimUndef u)
{
    set_vp(c, row, u.any);
    c->vpart[row] = u.part;
    c->vknown[row] = u.known;
    c->vpad[row] = u.pad;
    c->vhome[row] = u.home;
    c->vflag[row] |= (u.any & u.part ? VF_PART : 0) | (u.any && u.home ? VF_HOME : 0);
}
/* a in the lanes of m, b in the others */
static inline SimUndef
blend_undef(SimUndef a, SimUndef b, uint64_t m)
{
    uint64_t pa = a.part & m, pb = b.part & ~m;
    /* one set of bits is known for all lanes: the new ones keep theirs, the others are undefined in all bits
     */
    if (pa && pb && (a.known & ~b.known))
        pb = 0;
    uint32_t known = !pb ? a.known : !pa ? b.known : a.known & b.known;
    uint32_t pad = !pb ? a.pad : !pa ? b.pad : a.pad & b.pad;
    uint64_t home = a.any & m ? a.home : b.home; /* (it tells its lane) */
    return (SimUndef){(a.any & m) | (b.any & ~m), known ? pa | pb : 0, known, pad, home};
}
/* What moved: from[l] is the lane that the value of lane l comes from; LANES and above: from none. */
static inline SimUndef
moved_undef(SimUndef had, const uint8_t from[LANES])
{
    SimUndef to = {.known = had.known};
    for (uint32_t l = 0; l < LANES; l++)
        if (from[l] < LANES) {
            to.any |= (had.any >> from[l] & 1) << l;
            to.part |= (had.part >> from[l] & 1) << l;
        }
    return to;
}
/* What the lanes of wr are after a write. */
static inline void
write_vp(SimChk *c, uint32_t row, SimUndef u, uint64_t wr)
{
    if (LIKELY(!(u.part & wr) && !u.home && !(c->vflag[row] & (VF_PART | VF_HOME))))
        set_vp(c, row, (c->vp[row] & ~wr) | (u.any & wr));
    else
        set_row_undef(c, row, blend_undef(u, row_undef(c, row), wr));
}
/* Lanes of a poisoned row of which the upper half alone is undefined. */
static inline uint64_t
high_only(const SimChk *c, uint32_t row)
{
    SimUndef u = row_undef(c, row);
    return (u.known & 0xffff) == 0xffff ? u.part : 0;
}
/* Undefined bits of one lane. */
static inline uint32_t
lane_bits(const SimChk *c, uint32_t row, uint32_t l)
{
    SimUndef u = row_undef(c, row);
    return u.part >> l & 1 ? ~u.known : u.any >> l & 1 ? ~0u : 0;
}
/* Those of them that are no padding. */
static inline uint32_t
counted_bits(const SimChk *c, uint32_t row, uint32_t l)
{
    SimUndef u = row_undef(c, row);
    return u.part >> l & 1 ? ~(u.known | u.pad) : u.any >> l & 1 ? ~0u : 0;
}
static inline void
set_sp(SimChk *c, uint32_t s, uint32_t p)
{
    c->org[ROWS + s] = p ? c->org[ROWS + s] : ORG_NONE;
    c->sp[s] = p;
    c->sflag[s] = (uint8_t)((c->sflag[s] & ~VF_POISON) | (p ? VF_POISON : 0));
}
/* "v12", "a3", "s7" */
const char *sim_row_name(uint32_t row, char buf[16]);
const char *sim_sreg_name(uint32_t s, char buf[16]);

#endif
