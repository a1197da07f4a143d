/* check_hazard.c - are the wait states there? CDNA chips do not interlock some pairs of instructions: the
 * program must put other instructions or s_nop between them. For each register this keeps, for each kind of
 * consumer, how many states are still missing (the most over all paths); every instruction counts that down.
 */
#include "isa/check_int.h"
#include "isa/counters.h"

/* Kinds of consumer. */
enum {
    K_VALU,     /* read by a VALU other than MFMA */
    K_MEM,      /* read by a memory instruction */
    K_AB,       /* MFMA A or B (or the index of smfmac) */
    K_C_SAME,   /* MFMA C, the very tuple */
    K_C_OTHER,  /* MFMA C, another tuple that overlaps */
    K_C_PLAIN,  /* the same by one that is no XDL: f64, on later chips f32 */
    K_MFMA,     /* any MFMA operand, after a plain VALU write */
    K_NONTRANS, /* VALU that is not transcendental */
    K_PARTIAL,  /* VALU, after a write of half the register */
    K_DOT,      /* anything but the C operand of the same dot product */
    K_DPP,
    K_LANE,    /* v_readlane, v_readfirstlane read it */
    K_SWAP,    /* v_permlane16_swap, v_permlane32_swap */
    K_WRITE_D, /* overwritten by a VALU or a load: D, C */
    K_WRITE_C,
    K_WRITE_DATA, /* overwritten by a VALU: data of a store */
    K_SEL,        /* scalar: lane select of v_readlane and v_writelane; VCC of v_div_fmas */
    K_COUNT
};

typedef struct Missing {
    uint8_t n[K_COUNT];
    uint8_t tuple_n; /* the MFMA destination it is part of */
    uint16_t tuple, op;
    uint32_t from;
} Missing;

typedef struct HazState {
    Missing reg[ISA_NREGS];
    IsaRegSet live; /* registers that lack something */
    uint8_t exec_mfma, exec_dpp, m0,
        setreg; /* states missing after a VALU wrote EXEC, SALU wrote M0, s_setreg */
    uint16_t setreg_id;
    uint32_t exec_from, m0_from, setreg_from;
} HazState;

static bool
join(void *into, const void *from)
{
    HazState *a = into;
    const HazState *b = from;
    bool changed = false;
    ISA_EACH (r, &b->live) {
        for (uint32_t k = 0; k < K_COUNT; k++)
            if (b->reg[r].n[k] > a->reg[r].n[k]) {
                uint8_t keep[K_COUNT];
                memcpy(keep, a->reg[r].n, sizeof keep);
                a->reg[r] = b->reg[r];
                for (uint32_t j = 0; j < K_COUNT; j++)
                    a->reg[r].n[j] = TL_MAX(keep[j], b->reg[r].n[j]);
                changed = true;
            }
        isa_set_add(&a->live, r);
    }
#define JOIN_ONE(f, who)                                                                                     \
    if (b->f > a->f) {                                                                                       \
        a->f = b->f;                                                                                         \
        a->who = b->who;                                                                                     \
        changed = true;                                                                                      \
    }
    JOIN_ONE(exec_mfma, exec_from)
    JOIN_ONE(exec_dpp, exec_from)
    JOIN_ONE(m0, m0_from)
    if (b->setreg > a->setreg) {
        a->setreg_id = b->setreg_id;
        JOIN_ONE(setreg, setreg_from)
    }
#undef JOIN_ONE
    return changed;
}

static void
count_down(HazState *s, uint32_t states)
{
    ISA_EACH (r, &s->live) {
        uint8_t left = 0;
        for (uint32_t k = 0; k < K_COUNT; k++) {
            s->reg[r].n[k] = (uint8_t)(s->reg[r].n[k] > states ? s->reg[r].n[k] - states : 0);
            left |= s->reg[r].n[k];
        }
        if (!left)
            isa_set_remove(&s->live, r);
    }
    s->exec_mfma = (uint8_t)(s->exec_mfma > states ? s->exec_mfma - states : 0);
    s->exec_dpp = (uint8_t)(s->exec_dpp > states ? s->exec_dpp - states : 0);
    s->m0 = (uint8_t)(s->m0 > states ? s->m0 - states : 0);
    s->setreg = (uint8_t)(s->setreg > states ? s->setreg - states : 0);
}

/* ---- what an instruction is
 * ---------------------------------------------------------------------------------------- */

typedef struct Kind {
    bool mfma, valu, mem, trans, dpp, partial, dot, lane, swap, fmas, selects, rw_lane, m0, salu, wait;
    bool f64, f32, plain; /* of MFMA: the types that are no XDL; gfx90a: f64 alone */
    uint32_t passes, m;
} Kind;

static bool
starts(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool
ends(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n >= k && strcmp(name + n - k, suffix) == 0;
}

/* Passes (4 cycles each) from the shape in the name: v_mfma_f32_32x32x4_2b_f16. */
static void
mfma_kind(IsaArch arch, const IsaInst *in, const char *name, Kind *k)
{
    const char *x = strchr(name, 'x');
    while (x && !(x[-1] >= '0' && x[-1] <= '9'))
        x = strchr(x + 1, 'x');
    k->m = !x ? 4 : x[-1] == '2' ? 32 : x[-1] == '6' ? 16 : 4;
    k->f64 = ends(name, "f64"); /* gfx90a spells it 16x16x4f64 */
    k->f32 = ends(name, "_f32") && starts(name, "v_mfma");
    k->plain = k->f64 || (k->f32 && arch != ISA_GFX90A);
    bool blocks = strstr(name, "_2b_") || strstr(name, "_4b_") || strstr(name, "_16b_");
    if (k->f64)
        k->passes = k->m == 4 ? 4 : arch == ISA_GFX950 ? 16 : 8;
    else if (k->m == 4)
        k->passes = 2;
    else if (arch == ISA_GFX90A || blocks || k->f32)
        k->passes = k->m / 2;
    else if (ends(name, "f8f6f4") && (in->cbsz < 2 || in->blgp < 2))
        k->passes = k->m / 2;
    else
        k->passes = k->m / 4;
}

static Kind
kind_of(IsaArch arch, const IsaInst *in)
{
    const IsaOpInfo *info = isa_op_info(in->op);
    const char *n = info->name;
    uint32_t cl = info->classes;
    Kind k = {.mfma = cl & ISA_C_MFMA, .trans = cl & ISA_C_TRANS, .salu = cl & ISA_C_SALU};
    k.valu = (cl & ISA_C_VALU) && !k.mfma && !(cl & ISA_C_NOP);
    k.mem = cl & (ISA_C_VMEM | ISA_C_DS);
    k.dpp = in->form == ISA_DPP;
    k.lane = starts(n, "v_readlane") || starts(n, "v_readfirstlane");
    k.selects = starts(n, "v_readlane") || starts(n, "v_writelane");
    k.swap = starts(n, "v_permlane") && strstr(n, "swap");
    k.fmas = starts(n, "v_div_fmas");
    k.dot = starts(n, "v_dot");
    k.wait = starts(n, "s_waitcnt");
    k.m0 = in->lds || strstr(n, "_load_lds_") || isa_needs_m0(in);
    k.rw_lane = arch != ISA_GFX90A && (k.lane || starts(n, "v_writelane"));
    if (in->form == ISA_SDWA)
        k.partial = in->dst_sel != 6 && in->enc != ISA_VOPC;
    else if (k.valu && in->form == ISA_VOP3)
        k.partial = (in->op_sel & 8) != 0;
    if (k.mfma)
        mfma_kind(arch, in, n, &k);
    return k;
}

/* ---- consumers
 * ----------------------------------------------------------------------------------------------------- */

/* States that are missing, and by which rule. */
typedef struct Lack {
    const IsaWalk *w;
    uint32_t states;
    IsaHazardRule rule;
} Lack;

static void
lacks(Lack *l, uint32_t states, IsaHazardRule rule)
{
    if (states > l->states && !isa_ignored(l->w, rule)) {
        l->states = states;
        l->rule = rule;
    }
}

static bool
report(IsaWalk *w, uint32_t i, uint32_t from, uint32_t reg, const char *what, const Lack *l)
{
    w->rule = l->rule;
    return !l->states || isa_fault(w, ISA_FAULT_HAZARD, i, from, reg, what, "after", (int)l->states);
}

/* A scalar register that VALU wrote is read. */
static void
scalar_lacks(const Missing *m, const Kind *k, uint32_t pos, Lack *l)
{
    if (k->mem)
        lacks(l, m->n[K_MEM], ISA_HR_VALU_SGPR_MEM);
    if (k->valu)
        lacks(l, m->n[K_VALU], ISA_HR_VALU_SGPR);
    if (k->selects && pos == 2)
        lacks(l, m->n[K_SEL], ISA_HR_VALU_SGPR_LANE);
    if (k->fmas)
        lacks(l, m->n[K_SEL], ISA_HR_VALU_VCC_FMAS);
}

static void
matrix_lacks(const Missing *m, const Kind *k, const IsaInst *in, const IsaOpnd *o, uint32_t first, Lack *l)
{
    uint32_t pos = (uint32_t)(o - in->opnd);
    bool is_c = pos == 3 || (pos == 0 && (o->flags & ISA_READ));
    if (starts(isa_op_info(in->op)->name, "v_smfmac"))
        is_c = pos == 0;
    lacks(l, m->n[K_MFMA], ISA_HR_VALU_MFMA);
    if (!is_c)
        lacks(l, m->n[K_AB], ISA_HR_MFMA_AB);
    else if (m->tuple == first && m->tuple_n == o->nregs)
        lacks(l, m->n[K_C_SAME], ISA_HR_MFMA_C);
    else
        lacks(l, m->n[k->plain ? K_C_PLAIN : K_C_OTHER], ISA_HR_MFMA_C_OTHER);
}

/* States that this read of register r still lacks. */
static void
read_lacks(const Missing *m, const Kind *k, const IsaInst *in, const IsaOpnd *o, uint32_t r, uint32_t first,
           Lack *l)
{
    uint32_t pos = (uint32_t)(o - in->opnd);
    if (r >= ISA_REG_S) {
        scalar_lacks(m, k, pos, l);
    } else if (k->mfma) {
        matrix_lacks(m, k, in, o, first, l);
    } else if (k->mem) {
        lacks(l, m->n[K_MEM], ISA_HR_MFMA_MEM);
        lacks(l, m->n[K_DOT], ISA_HR_DOT);
    } else if (k->valu) {
        bool same_dot_c = k->dot && m->op == in->op && (pos == 3 || (pos == 0 && (o->flags & ISA_READ)));
        lacks(l, m->n[K_VALU], ISA_HR_MFMA_VALU);
        lacks(l, k->trans ? 0 : m->n[K_NONTRANS], ISA_HR_TRANS);
        lacks(l, m->n[K_PARTIAL], ISA_HR_PARTIAL);
        lacks(l, same_dot_c ? 0 : m->n[K_DOT], ISA_HR_DOT);
        lacks(l, k->dpp && pos == 1 ? m->n[K_DPP] : 0, ISA_HR_VALU_DPP);
        lacks(l, k->lane ? m->n[K_LANE] : 0, ISA_HR_VALU_LANE);
        lacks(l, k->swap ? m->n[K_SWAP] : 0, ISA_HR_VALU_SWAP);
    }
}

/* ... and this write of a vector register. */
static void
write_lacks(const Missing *m, const Kind *k, const IsaInst *in, Lack *l)
{
    if (k->valu || k->mem) {
        lacks(l, m->n[K_WRITE_D], k->mem ? ISA_HR_MFMA_LOAD : ISA_HR_MFMA_OVER);
        lacks(l, m->n[K_WRITE_C], k->mem ? ISA_HR_MFMA_C_LOAD : ISA_HR_MFMA_C_OVER);
        lacks(l, m->op == in->op ? 0 : m->n[K_DOT], ISA_HR_DOT_OVER);
    }
    if (k->valu || k->mfma)
        lacks(l, m->n[K_WRITE_DATA], ISA_HR_STORE_DATA);
}

static bool
check_operands(IsaWalk *w, const HazState *s, uint32_t i, const Kind *k)
{
    const IsaInst *in = &w->c->inst[i];
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        uint32_t first, n;
        if (!isa_opnd_regs(o, &first, &n))
            continue;
        for (uint32_t r = first; r < first + n; r++) {
            const Missing *m = &s->reg[r];
            Lack l = {.w = w};
            if (o->flags & ISA_READ)
                read_lacks(m, k, in, o, r, first, &l);
            uint32_t reads = l.states;
            if ((o->flags & ISA_WRITE) && r < ISA_REG_S)
                write_lacks(m, k, in, &l);
            if (!report(w, i, m->from, r, l.states > reads ? "is overwritten" : "is read", &l))
                return false;
            if (l.states)
                break;
        }
    }
    return true;
}

static bool
check_state(IsaWalk *w, const HazState *s, uint32_t i, const Kind *k)
{
    const IsaInst *in = &w->c->inst[i];
    bool same = in->op == ISA_OP_s_getreg_b32 && (in->opnd[1].bits & 63) == s->setreg_id;
    Lack exec = {.w = w}, m0 = {.w = w}, setreg = {.w = w};
    lacks(&exec, k->mfma || k->rw_lane ? s->exec_mfma : k->dpp ? s->exec_dpp : 0, ISA_HR_EXEC);
    lacks(&m0, k->m0 ? s->m0 : 0, ISA_HR_M0);
    lacks(&setreg, same ? s->setreg : 0, ISA_HR_SETREG);
    return report(w, i, s->exec_from, UINT32_MAX, "exec is used", &exec) &&
           report(w, i, s->m0_from, UINT32_MAX, "m0 is used", &m0) &&
           report(w, i, s->setreg_from, UINT32_MAX, "the hardware register is read", &setreg);
}

/* ---- producers
 * ----------------------------------------------------------------------------------------------------- */

static void
mfma_needs(IsaArch arch, const Kind *k, Missing *m)
{
    uint32_t p = k->passes;
    if (k->f64) {
        bool big = k->m == 16, late = arch == ISA_GFX950;
        m->n[K_VALU] = (uint8_t)(!big ? 6 : late ? 19 : 11);
        m->n[K_WRITE_D] = big ? 11 : 6;
        m->n[K_MEM] = (uint8_t)(big ? 18 : 9);
        m->n[K_AB] = m->n[K_VALU];
        m->n[K_C_SAME] = big ? 0 : 4;
        m->n[K_C_PLAIN] = (uint8_t)(!big ? 4 : late ? 17 : 9); /* the others wait by themselves */
        return;
    }
    uint32_t read = p + 3, other = p, plain = p + 1;
    if (arch != ISA_GFX90A) {
        read = k->f32 ? p + 2 : arch == ISA_GFX950 && p > 2 ? p + 4 : p + 3;
        other = k->f32 ? 0 : arch == ISA_GFX950 ? p + 2 : p + 1;
        plain = k->f32 ? p : arch == ISA_GFX950 && p > 2 ? p + 2 : p + 1;
        m->n[K_C_SAME] = p == 2 ? 2 : 0;
    }
    m->n[K_VALU] = m->n[K_MEM] = m->n[K_AB] = m->n[K_WRITE_D] = (uint8_t)read;
    m->n[K_C_OTHER] = (uint8_t)other;
    m->n[K_C_PLAIN] = (uint8_t)plain;
}

static void
valu_needs(IsaArch arch, const Kind *k, Missing *m, bool scalar)
{
    bool later = arch != ISA_GFX90A;
    if (scalar) {
        m->n[K_MEM] = 5;
        m->n[K_VALU] = later ? 2 : 0;
        m->n[K_SEL] = 4;
        return;
    }
    m->n[K_MFMA] = 2;
    m->n[K_DPP] = 2;
    m->n[K_LANE] = later ? 1 : 0;
    m->n[K_SWAP] = arch == ISA_GFX950 ? 2 : 0;
    m->n[K_NONTRANS] = k->trans && later ? 1 : 0;
    m->n[K_PARTIAL] = k->partial && later ? 1 : 0;
    m->n[K_DOT] = k->dot ? 3 : 0;
}

static void
mark_writes(HazState *s, const IsaWalk *w, uint32_t i, const Kind *k)
{
    const IsaInst *in = &w->c->inst[i];
    for (uint32_t q = 0; q < in->nopnds; q++) {
        const IsaOpnd *o = &in->opnd[q];
        uint32_t first, n;
        if (!(o->flags & ISA_WRITE) || !isa_opnd_regs(o, &first, &n))
            continue;
        Missing m = {.from = i, .op = in->op, .tuple = (uint16_t)first, .tuple_n = (uint8_t)n};
        if (k->mfma)
            mfma_needs(w->c->arch, k, &m);
        else if (k->valu)
            valu_needs(w->c->arch, k, &m, first >= ISA_REG_S);
        for (uint32_t r = first; r < first + n; r++) {
            s->reg[r] = m;
            if (k->mfma || k->valu)
                isa_set_add(&s->live, r);
            else
                isa_set_remove(&s->live, r);
        }
        if (k->valu && first <= ISA_REG_S + 126 && first + n > ISA_REG_S + 126) {
            s->exec_mfma = 4;
            s->exec_dpp = 5;
            s->exec_from = i;
        }
        if (k->salu && first <= ISA_REG_S + 124 && first + n > ISA_REG_S + 124) {
            s->m0 = 1;
            s->m0_from = i;
        }
    }
}

/* Write-after-read: MFMA's C, and the data of wide stores. */
static void
mark_reads(HazState *s, const IsaWalk *w, uint32_t i, const Kind *k)
{
    const IsaInst *in = &w->c->inst[i];
    IsaArch arch = w->c->arch;
    uint32_t cl = isa_op_info(in->op)->classes, need = 0, pos = 0, kind = k->mfma ? K_WRITE_C : K_WRITE_DATA;
    if (k->mfma && starts(isa_op_info(in->op)->name, "v_smfmac"))
        return; /* C is D, the index is read at once */
    if (k->mfma && !k->f64) {
        need = arch != ISA_GFX90A && k->f32 ? 0 : k->passes - 1;
        pos = 3;
    } else if ((cl & ISA_C_VMEM) && ((cl & ISA_C_STORE) || isa_wide_atomic(in))) {
        bool soffset = in->enc == ISA_MUBUF && in->opnd[3].kind == ISA_OPND_SGPR;
        pos = isa_data_opnd(in);
        need = arch == ISA_GFX90A || soffset ? 1 : 2;
        if (in->opnd[pos].nregs <= 2)
            need = 0;
    }
    uint32_t first, n;
    if (!need || pos >= in->nopnds || !isa_opnd_regs(&in->opnd[pos], &first, &n) || first >= ISA_REG_S)
        return;
    for (uint32_t r = first; r < first + n; r++)
        if (s->reg[r].n[kind] < need) {
            s->reg[r].n[kind] = (uint8_t)need;
            isa_set_add(&s->live, r);
            if (!s->reg[r].n[K_VALU])
                s->reg[r].from = i;
        }
}

static bool
step(IsaWalk *w, void *state, uint32_t i)
{
    HazState *s = state;
    const IsaInst *in = &w->c->inst[i];
    const Kind *k = &((const Kind *)w->facts)[i];
    if (w->report && (!check_operands(w, s, i, k) || !check_state(w, s, i, k)))
        return false;
    count_down(s, in->op == ISA_OP_s_nop ? (in->opnd[0].bits & 15) + 1 : 1);
    if (in->op == ISA_OP_s_swappc_b64 || in->op == ISA_OP_s_call_b64) {
        memset(s, 0, sizeof *s);
        return true;
    }
    uint16_t limit[ISA_CNT_COUNT];
    if (k->wait && isa_wait_limits(w->c->arch, in, limit) && limit[ISA_CNT_VM] == 0)
        ISA_EACH (r, &s->live) /* a store that is complete has read its data */
            s->reg[r].n[K_WRITE_DATA] = 0;
    mark_reads(s, w, i, k);
    mark_writes(s, w, i, k);
    if (in->op == ISA_OP_s_setreg_b32 || in->op == ISA_OP_s_setreg_imm32_b32) {
        s->setreg = 2;
        s->setreg_id = (uint16_t)(in->opnd[0].bits & 63);
        s->setreg_from = i;
    }
    return true;
}

bool
isa_check_hazards(IsaWalk *w)
{
    const IsaCode *c = w->c;
    Kind *kinds = TL_NEW_N(c->arena, Kind, c->n);
    if (!kinds)
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        kinds[i] = kind_of(c->arch, &c->inst[i]);
    w->facts = kinds;
    return isa_walk(w, sizeof(HazState), step, join);
}
