/* valu.h - shared by the VALU wrappers. */
#ifndef TL_SIM_VALU_H
#define TL_SIM_VALU_H

#include "sim/core.h"

enum {
    RF_CIN = 1,
    RF_COUT = 2,
    RF_CMPX = 4,
    RF_INTSAT = 8,
    RF_CHIP = 16 /* minds the modes itself */,
    RF_GEN = 32 /* through the general wrapper */
};

enum { /* SimRec.fl2 of a body with signs, shifted by the number of the source */
       RS_NEG = 1,
       RS_ABS = 8
};
enum { RS_F32, RS_F16, RS_F64 }; /* SimRec.aux of it: what the sources are */

void sim_blend(SimWave *w, uint64_t exec, uint32_t *d, const uint32_t *v, uint32_t n);
bool sim_type_is64(uint8_t t);
bool sim_type_is16(uint8_t t);
bool sim_type_is_float(uint8_t t);
bool sim_mode_matters(const SimOpDesc *d);
/* The wrapper for modifiers; int_clamp: the kernel saturates by itself. */
bool sim_build_valu_gen(SimBuild *b, bool int_clamp);

/* What the general wrapper would write, and to which lanes; nothing is written. For an instruction with
 * RF_GEN whose result is a row. */
void sim_valu_compute(SimWave *w, const SimRec *r, uint32_t res[128], uint64_t *write);
/* Half of a pair (VOPD): its result, one row, written nowhere else. */
void sim_dual_compute(SimWave *w, const SimRec *h, uint32_t *res);

typedef struct SimDual { /* VOPD: SimRec.p of the record points to one */
    SimRec half[2];
} SimDual;

/* DPP: for each lane its source lane, or 255 for none; *write = lanes that the row and bank masks allow. */
void sim_dpp_lanes(const IsaInst *in, uint8_t lane[64], uint64_t *write);
/* The same for ever, made with the record; false: out of memory. */
typedef struct SimDpp {
    uint8_t lane[64];     /* 0 where there is none */
    uint64_t write, none; /* none: lanes without a source lane */
} SimDpp;
bool sim_build_dpp(SimBuild *b);
/* Moves a source of n rows by DPP; returns the lanes that may be written. */
uint64_t sim_apply_dpp(SimWave *w, const SimExt *x, const uint32_t *src, uint32_t *out, uint32_t n);
static inline bool
sim_is_dpp(const IsaInst *in)
{
    return in->form == ISA_DPP || in->form == ISA_DPP8;
}
/* Does lane i get a value from its source lane? Else it reads 0 or is not written. */
static inline bool
sim_dpp_valid(const IsaInst *in, uint8_t lane, uint64_t exec)
{
    return lane != 255 && (in->fi || ((exec >> lane) & 1));
}
static inline bool
sim_dpp_zero(const IsaInst *in)
{
    return in->form == ISA_DPP8 || in->bound_ctrl;
}

/* Exchanges two rows where EXEC is on. */
static inline void
sim_swap_rows(SimWave *w, uint32_t *a, uint32_t *b)
{
    const uint32_t *m = exec_mask(w, EXEC(w));
    for (int i = 0; i < LANES; i++) {
        uint32_t x = (a[i] ^ b[i]) & m[i];
        a[i] ^= x;
        b[i] ^= x;
    }
}

/* lane.c, lane_rdna.c */
bool sim_build_lane_rdna(SimBuild *b);
const SimRec *sim_body_nop(SimWave *w, const SimRec *r);
/* permlane: for each lane the lane it reads; 254: it gets 0, 255: it keeps its value. */
void sim_perm_lanes(SimWave *w, const SimRec *r, uint8_t lane[64]);
/* Rows of a move or swap relative to M0; false: the destination is no register. */
bool sim_rel_rows(const SimWave *w, const SimRec *r, uint32_t *src, uint32_t *dst);
/* The bits of a lane number. */
static inline uint32_t
sim_lane_bits(const SimWave *w)
{
    return w->lane_mask >> 32 ? 63 : 31;
}

#endif
