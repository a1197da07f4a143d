/* vmem_typed.c - typed buffers: the format is in the instruction (tbuffer) or in the descriptor; gfx9 has a
 * data and a number format, later chips one number for both.
 */
#include "sim/bits.h"
#include "sim/typed.h"
#include "sim/vmem.h"

/* Format and lanes of a typed access; false = stop. */
static bool
typed_lanes(SimWave *w, const SimRec *r, VmOp *op, VmLanes *v, bool write, uint32_t *dfmt, uint32_t *nfmt)
{
    const IsaInst *in = &r->ext->in;
    uint32_t word3 = w->s[r->src[3].idx + 3];
    uint32_t n = 0, unified = in->enc == ISA_MTBUF ? in->format : word3 >> 12 & 63;
    if (w->code->arch < ISA_GFX1100) {
        *dfmt = in->enc == ISA_MTBUF ? in->format & 15 : word3 >> 15 & 15;
        *nfmt = in->enc == ISA_MTBUF ? in->format >> 4 & 7 : word3 >> 12 & 7;
        n = sim_format_bytes(*dfmt);
    } else if (sim_format_unified(unified, dfmt, nfmt)) {
        n = sim_format_bytes(*dfmt);
    }
    if (!n) {
        sim_fault(w, r, SIM_FAULT_ILLEGAL, true, 0, 0, UINT32_MAX, 0,
                  "data format %u of the buffer is not known", w->code->arch < ISA_GFX1100 ? *dfmt : unified);
        return false;
    }
    op->acc.bytes = (uint8_t)n;
    if (!sim_vm_lanes(w, r, op, v, write, EXEC(w)))
        return false;
    return !w->chk || (write ? sim_vm_check_store(w, r, op, v) : sim_vm_check_load(w, r, op, v));
}

/* The four components of one lane, selected by the descriptor (MTBUF: as they are). Out of range they are 0,
 * but where the descriptor selects a 1. */
static void
components(SimWave *w, const SimRec *r, const VmLanes *v, uint32_t l, uint32_t dfmt, uint32_t nfmt, bool half,
           uint32_t out[4])
{
    uint32_t c[4] = {0}, word3 = w->s[r->src[3].idx + 3];
    if (v->ok >> l & 1) /* gfx11 and later say that they cut floats off */
        sim_format_load(dfmt, nfmt, v->ptr[l], c, half, w->code->arch >= ISA_GFX1100);
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t sel = r->ext->in.enc == ISA_MTBUF ? 4 + k : word3 >> 3 * k & 7;
        out[k] = sel >= 4 ? c[sel - 4] : sel == 1 ? sim_format_one(nfmt, half) : 0;
    }
}

/* The first component of each active lane, for a load straight to LDS; false: stop. */
bool
sim_typed_column(SimWave *w, const SimRec *r, VmLanes *v, uint32_t *row)
{
    VmOp op = *(const VmOp *)r->p;
    uint32_t dfmt = 0, nfmt = 0, out[4];
    memset(v->undef, 0, sizeof v->undef);
    if (!typed_lanes(w, r, &op, v, false, &dfmt, &nfmt))
        return false;
    for (uint64_t m = v->exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m);
        components(w, r, v, l, dfmt, nfmt, false, out);
        row[l] = out[0];
    }
    return true;
}

const SimRec *
sim_body_typed_load(SimWave *w, const SimRec *r)
{
    VmOp op = *(const VmOp *)r->p;
    uint32_t dfmt = 0, nfmt = 0, nd = op.acc.dwords, comps = op.comps;
    VmLanes v;
    if (!EXEC(w))
        return NEXT(r);
    memset(v.undef, 0, sizeof v.undef);
    if (!typed_lanes(w, r, &op, &v, false, &dfmt, &nfmt))
        return NULL;
    uint32_t half = op.acc.d16 & 3, keep = op.acc.d16 & D16_CLEAR ? 0 : ~0u;
    for (uint64_t m = v.exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), out[4];
        components(w, r, &v, l, dfmt, nfmt, half, out);
        for (uint32_t k = 0; k < nd; k++) {
            uint32_t *reg = &ROW(w, r->dst + k)[l], old = *reg & keep; /* of a half that no component fills */
            if (!half)
                *reg = out[k];
            else if (half & 2)
                *reg = (old & 0xffff) | out[0] << 16;
            else
                *reg = out[2 * k] | (2 * k + 1 < comps ? out[2 * k + 1] << 16 : old & 0xffff0000u);
        }
    }
    if (w->chk) {
        SimUndef all = {.any = v.undef[0].any | v.undef[1].any | v.undef[2].any | v.undef[3].any};
        SimUndef undef[4] = {all, all, all, all};
        op.acc.d16 = 0;
        sim_write_poison(w, &op.acc, v.exec, r->dst, undef);
    }
    return NEXT(r);
}

const SimRec *
sim_body_typed_store(SimWave *w, const SimRec *r)
{
    VmOp op = *(const VmOp *)r->p;
    uint32_t dfmt = 0, nfmt = 0;
    VmLanes v;
    if (!EXEC(w))
        return NEXT(r);
    if (!typed_lanes(w, r, &op, &v, true, &dfmt, &nfmt))
        return NULL;
    bool fill = w->code->arch >= ISA_GFX1100; /* the first component stands for those that are not given */
    for (uint64_t m = v.ok & v.exec; m; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(m), c[4] = {0};
        for (uint32_t k = 0; k < op.comps; k++) {
            uint32_t reg = ROW(w, r->src[1].idx + (op.acc.d16 ? k / 2 : k))[l];
            c[k] = !op.acc.d16 ? reg : op.acc.d16 & 2 || k & 1 ? reg >> 16 : reg & 0xffff;
        }
        for (uint32_t k = op.comps; k < 4 && fill; k++)
            c[k] = c[0];
        sim_format_store(dfmt, nfmt, c, v.ptr[l], op.acc.d16);
    }
    return NEXT(r);
}
