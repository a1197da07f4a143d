/* late.h - delivery="late": results of memory operations land at the last moment that the waits allow.
 *
 * In this mode a memory instruction does nothing when it is issued: it is put aside with the registers it
 * reads, and carried out when a wait covers it, or earlier at a moment that the seed picks. Until then its
 * destination holds the old value (or rubbish, by the seed) and its stores are seen by nobody else.
 * Operations of a counter that keeps order are carried out in order, scalar loads in any. So a program that
 * lacks a wait computes something else, and one that gives the same bits under many seeds needed no other.
 * Every wave has a mood from the seed; seed 0 is always the last moment.
 *
 * The mode has a run loop of its own; no other loop knows it.
 */
#ifndef TL_SIM_LATE_H
#define TL_SIM_LATE_H

#include "sim/core.h"

typedef struct SimLate SimLate;

/* State for n waves, in g->alloc; false: out of memory. */
bool sim_late_open(SimGroup *g, uint64_t seed);
void sim_late_close(SimGroup *g);
void sim_late_reset(SimWave *w); /* start of a wave */
/* Run loop of one wave: at most budget instructions; returns how many. */
uint64_t sim_late_run(SimWave *w, uint64_t budget);
/* Instructions of the next slice, at most `most`. */
uint64_t sim_late_slice(SimGroup *g, uint64_t most);
/* Between slices, after n instructions: operations of all waves may land. false: one faulted. */
bool sim_late_between(SimGroup *g, uint64_t n);
/* Carries out all that is left, of waves that have ended too. false: one faulted. */
bool sim_late_drain(SimGroup *g);

#endif
