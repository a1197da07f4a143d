/* cover.h - the record of executed instructions (contract in cover.c). */
#ifndef TL_SIM_COVER_H
#define TL_SIM_COVER_H

#include "sim/core.h"

int sim_cover_open(void); /* -1: not wanted */
/* false: it cannot be written, which has been said on stderr. */
bool sim_cover_note(int fd, IsaArch arch, bool wave64, const IsaInst *in);
void sim_cover_close(int fd);

#endif
