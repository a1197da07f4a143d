/* race_cell.c - races on global memory: the rules for the last write and the last read of one byte or dword,
 * whatever keeps them (race.c, race_sparse.c).
 */
#include "sim/race_int.h"

Rec
sim_race_rec_(uint32_t epoch, uint16_t pc, bool write)
{
    return (Rec){.epoch = epoch & EP_ID,
                 .pc = pc & PC_UNKNOWN,
                 .mask = 15,
                 .atomic = pc >> 15,
                 .multi_wave = (epoch & EP_WAVES) != 0,
                 .multi_group = !write && (epoch & EP_GROUPS) != 0};
}

void
sim_race_found_(Access *a, const Verdict *v, uint64_t addr, uint32_t lane)
{
    if (a->found)
        return;
    a->found = true;
    Epoch e = epoch_of(a->r, v->rec.epoch);
    *a->hit = (SimRaceHit){.addr = addr,
                           .lane = lane,
                           .workgroup = v->known_party ? e.group : UINT32_MAX,
                           .wave = v->known_party ? e.wave : UINT32_MAX,
                           .pc_slot = v->rec.pc < PC_UNKNOWN ? a->r->pc_slot[v->rec.pc] : UINT32_MAX,
                           .other = v->other,
                           .behind_barrier = e.group == a->w->workgroup && e.interval < a->w->waited};
}

/* Both atomic; two stores that may be atomic are taken for plain ones. */
static bool
both_atomic(SimAccess k, const Rec *wr)
{
    return is_atomic(k) && wr->atomic && !(k == SIM_ACC_MAYBE && wr->multi_wave);
}

Verdict
sim_race_judge_(Access *a, const Cell *c, uint32_t mask)
{
    bool atomic = is_atomic(a->kind);
    if (c->wr.epoch && c->wr.mask & mask && !both_atomic(a->kind, &c->wr) &&
        !ordered(a, c->wr.epoch, OF_WRITE))
        return (Verdict){true, true, c->wr,
                         c->wr.atomic && !c->wr.multi_wave ? SIM_ACC_ATOMIC : SIM_ACC_WRITE};
    if (is_read(a->kind) || !c->rd.epoch || !(c->rd.mask & mask) || (atomic && c->rd.atomic))
        return (Verdict){0};
    Verdict v = {true, true, c->rd, c->rd.atomic ? SIM_ACC_ATOMIC_READ : SIM_ACC_READ};
    if (!ordered(a, c->rd.epoch, OF_READ))
        return v;
    if (a->w->known) /* the other readers may be among what it acquired */
        return (Verdict){0};
    Epoch e = epoch_of(a->r, c->rd.epoch);
    v.known_party = false;
    v.races =
        c->rd.multi_group || (c->rd.multi_wave && e.group == a->w->workgroup && e.interval >= a->w->waited);
    return v;
}

void
sim_race_enter_(Access *a, Cell *c, uint32_t mask)
{
    bool read = is_read(a->kind), atomic = is_atomic(a->kind);
    Rec *rec = read ? &c->rd : &c->wr;
    if (rec->epoch == a->epoch) {
        rec->mask |= mask & 15;
        rec->pc = a->pc;
        rec->atomic &= atomic;
        if (!read)
            rec->multi_wave |= a->kind == SIM_ACC_MAYBE;
        return;
    }
    Rec n = {.epoch = a->epoch, .pc = a->pc, .mask = mask & 15, .atomic = atomic};
    if (read && rec->epoch && !ordered(a, rec->epoch, OF_READ)) {
        Epoch e = epoch_of(a->r, rec->epoch);
        n.multi_group = rec->multi_group || e.group != a->w->workgroup;
        n.multi_wave = e.group == a->w->workgroup;
        n.atomic &= rec->atomic;
    } else if (read && rec->epoch) {
        /* the same wave again (other releases) or after a barrier: readers of other groups stay unordered */
        n.multi_group = rec->multi_group;
        Epoch e = epoch_of(a->r, rec->epoch);
        n.multi_wave = rec->multi_wave && e.interval >= a->w->waited;
    }
    n.moved = rec->moved;
    if (!read)
        n.multi_wave = a->kind == SIM_ACC_MAYBE;
    *rec = n;
}
