/* code.c - decode-once records: one per dword of code, made on first execution; operand resolution for
 * builders. */
#include <pthread.h>

#include "sim/core.h"
#include "sim/cover.h"
#include "sim/env.h"

const SimOpDesc sim_kern_desc[K_COUNT] = {
#define KERN(name, nsrc, dt, ta, tb, tc, flags, ...)                                                         \
    {#name, nsrc, KT_##dt, {KT_##ta, KT_##tb, KT_##tc}, flags},
#include "sim/kernels.def"
#undef KERN
};

/* The best level of this host; TILELANG_SIM_HOST asks for none above the one it names (results are the same).
 */
const SimHostOps *
sim_host_ops(void)
{
    uint32_t ask = sim_env_word(SIM_ENV_HOST); /* avx512, avx2, base */
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    bool base = ask == 2, avx2 = ask == 1;
    if (!base && !avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return &sim_host_avx512;
    if (!base && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return &sim_host_avx2;
#else
    (void)ask;
#endif
    return &sim_host_base;
}

bool
sim_arch_available(IsaArch arch)
{
    return (uint32_t)arch < ISA_ARCH_COUNT;
}

/* Zeroed; large tables of a big code object stay untouched pages where the allocator is libc's. */
static void *
code_alloc(const TlAlloc *a, size_t n)
{
    if (a->realloc == tl_alloc_libc.realloc)
        return calloc(1, n);
    void *p = a->realloc(a->self, NULL, 0, n);
    if (p)
        memset(p, 0, n);
    return p;
}

enum { MAX_CONSTS = 65535 };

/* 1 + the body of each instruction, 0: none of the table. Made once; only read afterwards. */
static uint16_t kern_of_op[ISA_OP__COUNT];
static pthread_once_t kern_once = PTHREAD_ONCE_INIT;

static void
find_kerns(void)
{
    for (uint32_t k = 0; k < K_COUNT; k++) {
        uint32_t op = isa_op_by_name(sim_kern_desc[k].name);
        if (op < ISA_OP__COUNT)
            kern_of_op[op] = (uint16_t)(k + 1);
    }
}

SimCode *
sim_code_new(const TlAlloc *alloc, IsaArch arch, bool wave64, uint64_t base, uint64_t size, const char **why)
{
    const TlAlloc *a = alloc ? alloc : &tl_alloc_libc;
    if (!sim_arch_available(arch) || (!wave64 && arch < ISA_GFX1100)) {
        if (why)
            *why = "no instruction bodies for this architecture and wave size";
        return NULL;
    }
    SimCode *c = code_alloc(a, sizeof *c);
    if (!c) {
        if (why)
            *why = "out of memory";
        return NULL;
    }
    c->alloc = *a;
    tl_arena_init(&c->arena, a);
    tl_map_init(&c->const_map, &c->arena);
    c->arch = arch;
    c->wave64 = wave64;
    c->cover = sim_cover_open();
    c->base = base;
    c->lds_taken = c->dev_taken = MAYBE_ASK;
    c->size = size & ~UINT64_C(3);
    c->nrec = (uint32_t)(c->size / 4) + 1; /* one more: running off the end */
    c->host = sim_host_ops();
    c->consts = code_alloc(a, sizeof(*c->consts) * MAX_CONSTS);
    c->recs[MODE_PLAIN] = code_alloc(a, sizeof(SimRec) * c->nrec);
    pthread_once(&kern_once, find_kerns);
    c->op_index = kern_of_op;
    if (!c->consts || !c->recs[MODE_PLAIN]) {
        sim_code_free(c);
        if (why)
            *why = "out of memory";
        return NULL;
    }
    return c;
}

void
sim_code_free(SimCode *c)
{
    if (!c)
        return;
    TlAlloc a = c->alloc;
    sim_cover_close(c->cover);
    for (uint32_t m = 0; m < MODE_CLASSES; m++)
        if (c->recs[m])
            a.realloc(a.self, c->recs[m], sizeof(SimRec) * c->nrec, 0);
    if (c->consts)
        a.realloc(a.self, c->consts, sizeof(*c->consts) * MAX_CONSTS, 0);
    tl_arena_free(&c->arena);
    a.realloc(a.self, c, sizeof *c, 0);
}

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() ((void)0)
#endif

static void
code_lock(SimCode *c)
{
    while (__atomic_exchange_n(&c->lock, 1, __ATOMIC_ACQUIRE))
        RELAX();
}
static void
code_unlock(SimCode *c)
{
    __atomic_store_n(&c->lock, 0, __ATOMIC_RELEASE);
}

SimRec *
sim_code_table(SimCode *c, uint32_t cls)
{
    SimRec *t = __atomic_load_n(&c->recs[cls], __ATOMIC_ACQUIRE);
    if (t)
        return t;
    code_lock(c);
    t = c->recs[cls];
    if (!t) {
        t = code_alloc(&c->alloc, sizeof(SimRec) * c->nrec);
        __atomic_store_n(&c->recs[cls], t, __ATOMIC_RELEASE);
    }
    code_unlock(c);
    return t;
}

/* Index of the row pair that holds this value in all lanes; UINT32_MAX: no room. */
static uint32_t
const_row(SimCode *c, uint64_t v)
{
    uint64_t idx;
    if (tl_map_get(&c->const_map, v, &idx))
        return (uint32_t)idx;
    if (c->nconst >= MAX_CONSTS)
        return UINT32_MAX;
    uint32_t *row = tl_arena_alloc(&c->arena, 512, 64);
    if (!row || !tl_map_put(&c->const_map, v, c->nconst))
        return UINT32_MAX;
    for (uint32_t i = 0; i < LANES; i++) {
        row[i] = (uint32_t)v;
        row[i + LANES] = (uint32_t)(v >> 32);
    }
    c->consts[c->nconst] = row;
    return c->nconst++;
}

SimSrc
sim_build_const(SimBuild *b, uint64_t v)
{
    SimSrc s = {SRC_C, 2, 0};
    uint32_t idx = const_row(b->code, v);
    if (idx == UINT32_MAX)
        b->failed = true;
    else
        s.idx = (uint16_t)idx;
    return s;
}

/* Scalar operand code of the architecture to the simulator's own. */
static uint16_t
scalar_code(const SimCode *c, uint16_t reg)
{
    if (c->arch >= ISA_GFX1100 && (reg == 124 || reg == 125))
        return reg == 124 ? S_NULL : S_M0;
    return reg;
}

uint16_t
sim_build_sreg(const SimBuild *b, const IsaOpnd *o)
{
    return scalar_code(b->code, o->reg);
}

SimSrc
sim_build_src(SimBuild *b, const IsaOpnd *o)
{
    SimSrc s = {SRC_NONE, o->nregs, 0};
    switch ((IsaOpndKind)o->kind) {
    case ISA_OPND_VGPR:
        s.kind = SRC_V;
        s.idx = o->reg;
        break;
    case ISA_OPND_AGPR:
        s.kind = SRC_V;
        s.idx = (uint16_t)(o->reg + ROW_AGPR);
        break;
    case ISA_OPND_SGPR:
        if (scalar_code(b->code, o->reg) == S_NULL)
            return sim_build_const(b, 0);
        s.kind = o->nregs >= 2 ? SRC_S64 : SRC_S;
        s.idx = scalar_code(b->code, o->reg);
        break;
    case ISA_OPND_CONST:
    case ISA_OPND_IMM:
        switch (o->type) {
        case ISA_T_B64:
        case ISA_T_U64:
        case ISA_T_I64:
        case ISA_T_F64:
            return sim_build_const(b, o->bits64);
        case ISA_T_V2F32:
        case ISA_T_V2B32:
            return sim_build_const(b, o->bits | (uint64_t)o->bits << 32);
        default:
            return sim_build_const(b, o->bits);
        }
    case ISA_OPND_SRC:
        s.kind = SRC_X;
        s.idx = o->reg;
        break;
    case ISA_OPND_NONE:
        break;
    }
    return s;
}

const IsaOpnd *
sim_build_read(const SimBuild *b, uint32_t nth)
{
    for (uint32_t i = 0; i < b->in->nopnds; i++) {
        const IsaOpnd *o = &b->in->opnd[i];
        if (i < b->in->ndst || (o->flags & ISA_IMPLICIT))
            continue;
        if (nth-- == 0)
            return o;
    }
    return NULL;
}

const SimRec *
sim_fault_illegal(SimWave *w, const SimRec *r, const char *why)
{
    char text[160] = "";
    uint64_t off = (uint64_t)r->at * 4;
    if (r->ext && !r->ext->in.size && off + 4 <= w->code->size) { /* not decoded */
        snprintf(text, sizeof text, ".long 0x%08x", sim_dm_get32(w->code->base + off));
    } else if (r->ext && r->ext->in.size) {
        TlArena a;
        TlText t;
        tl_arena_init(&a, NULL);
        tl_text_init(&t, &a);
        isa_print(w->code->arch, w->code->wave64, &r->ext->in, &t);
        if (t.data)
            strncpy(text, t.data, sizeof text - 1);
        tl_arena_free(&a);
    }
    sim_fault(w, r, SIM_FAULT_ILLEGAL, true, 0, 0, UINT32_MAX, 0, "%s%s%s", why, text[0] ? ": " : "", text);
    return NULL;
}

static const SimRec *
body_illegal(SimWave *w, const SimRec *r)
{
    return sim_fault_illegal(w, r, r->p ? r->p : "unsupported instruction");
}

static const SimRec *
body_off_end(SimWave *w, const SimRec *r)
{
    if (w->g->own_exec) {
        w->rec = r;
        w->stop = ST_END;
        return NULL;
    }
    sim_fault(w, r, SIM_FAULT_ILLEGAL, true, 0, 0, UINT32_MAX, 0, "execution ran off the end of the code");
    return NULL;
}

void
sim_code_decode(SimCode *c, uint32_t cls, SimRec *r)
{
    code_lock(c);
    if (__atomic_load_n(&r->body, __ATOMIC_ACQUIRE)) {
        code_unlock(c);
        return;
    }
    uint64_t off = (uint64_t)(r - c->recs[cls]) * 4;
    SimRec n = {0};
    n.at = (uint32_t)(off / 4);
    n.size = 1;
    if (off >= c->size) {
        n.body = body_off_end;
    } else {
        const char *why = "unknown instruction";
        SimExt *x = tl_arena_alloc(&c->arena, sizeof *x, 64);
        if (!x) {
            n.body = body_illegal;
            n.p = "out of memory while decoding";
        } else if (!isa_decode(c->arch, c->wave64, sim_dm_host(c->base + off), c->size - off, &x->in, &why)) {
            n.body = body_illegal;
            n.p = why ? why : "unknown instruction";
            x->in.size = 0;
            n.ext = x;
        } else {
            SimBuild b = {c, &n, x, &x->in, isa_op_info(x->in.op)->name, cls, false, 0, (int64_t)(off / 4)};
            n.ext = x;
            n.op = x->in.op;
            n.size = x->in.size / 4;
            b.kern = c->op_index[x->in.op];
            bool ok = sim_build_salu(&b) || sim_build_smem(&b) || sim_build_mfma(&b) || sim_build_lane(&b) ||
                      sim_build_valu_cdna(&b) || sim_build_valu(&b) || sim_build_ds(&b) || sim_build_vmem(&b);
            if (!ok || b.failed) {
                n.body = body_illegal;
                n.p = b.failed ? "out of memory while decoding" : NULL;
            } else {
                if (!sim_build_skipped(&b))
                    sim_chk_prepare(&b);
                if (c->cover >= 0 && !sim_cover_note(c->cover, c->arch, c->wave64, b.in)) {
                    sim_cover_close(c->cover); /* said once a code object */
                    c->cover = -1;
                }
                if (cls & MODE_IDX)
                    sim_build_indexed(&b);
            }
        }
    }
    /* other threads look at the body all the time: it is written once, last, and atomically */
    memcpy((uint8_t *)r + sizeof r->body, (const uint8_t *)&n + sizeof n.body, sizeof n - sizeof n.body);
    __atomic_store_n(&r->body, n.body, __ATOMIC_RELEASE);
    code_unlock(c);
}

bool
sim_code_at(const SimCode *c, uint64_t at, IsaInst *in)
{
    const char *why;
    return at < c->size &&
           isa_decode(c->arch, c->wave64, sim_dm_host(c->base + at), c->size - at, in, &why) && in->size;
}

/* Marks the dwords to which direct branches lead. */
static void
find_joins(SimCode *c)
{
    c->joins = TL_NEW_N(&c->arena, uint8_t, c->nrec / 8 + 1);
    IsaInst in;
    int64_t to;
    for (uint64_t off = 0; c->joins && off < c->size;) {
        bool known = sim_code_at(c, off, &in);
        if (known && isa_branch_to(&in, (int64_t)off, &to) && (uint64_t)to / 4 < c->nrec)
            c->joins[to / 32] |= (uint8_t)(1u << to / 4 % 8);
        off += known ? in.size : 4;
    }
}

bool
sim_code_joined(SimCode *c, uint32_t from, uint32_t to)
{
    bool joined = to <= from;
    code_lock(c);
    if (!c->joins)
        find_joins(c);
    for (uint32_t at = from + 1; c->joins && !joined && at <= to && at < c->nrec; at++)
        joined = c->joins[at / 8] >> at % 8 & 1;
    code_unlock(c);
    return joined;
}

/* ---- operands at run time ---- */

uint32_t
sim_src_special(SimWave *w, uint32_t code, uint32_t *hi)
{
    *hi = 0;
    switch (code) {
    case 235: /* src_shared_base */
        *hi = (uint32_t)(SIM_SHARED_APERTURE >> 32);
        return 0;
    case 236: /* src_shared_limit */
        *hi = (uint32_t)(SIM_SHARED_APERTURE >> 32);
        return UINT32_MAX;
    case 237: /* src_private_base */
        *hi = (uint32_t)(SIM_PRIVATE_APERTURE >> 32);
        return 0;
    case 238:
        *hi = (uint32_t)(SIM_PRIVATE_APERTURE >> 32);
        return UINT32_MAX;
    case 251: /* vccz */
        return VCC(w) == 0;
    case 252: /* execz */
        return EXEC(w) == 0;
    case 253:
        return w->scc;
    default:
        return 0;
    }
}

const uint32_t *
sim_row_slow(SimWave *w, SimSrc s, uint32_t *tmp)
{
    uint32_t lo, hi = 0;
    if (s.kind == SRC_X)
        lo = sim_src_special(w, s.idx, &hi);
    else
        lo = w->s[s.idx];
    if (s.kind == SRC_S64)
        hi = w->s[s.idx + 1];
    for (int i = 0; i < LANES; i++)
        tmp[i] = lo;
    if (s.kind != SRC_S)
        for (int i = 0; i < LANES; i++)
            tmp[LANES + i] = hi;
    return tmp;
}

void
sim_mask_expand(uint64_t bits, uint32_t *row)
{
    static const uint32_t quad[16][4] = {
#define Q(n) {(n) & 1 ? ~0u : 0, (n) & 2 ? ~0u : 0, (n) & 4 ? ~0u : 0, (n) & 8 ? ~0u : 0}
        Q(0), Q(1),  Q(2),  Q(3),  Q(4),  Q(5),  Q(6), Q(7), Q(8),
        Q(9), Q(10), Q(11), Q(12), Q(13), Q(14), Q(15)
#undef Q
    };
    for (int q = 0; q < 16; q++, bits >>= 4)
        memcpy(row + 4 * q, quad[bits & 15], 16);
}

void
sim_mask_rebuild(SimWave *w, uint64_t exec)
{
    sim_mask_expand(exec, w->mask);
    w->mask_exec = exec;
}
