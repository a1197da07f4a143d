/* typed.h - elements of typed buffers (formats as gfx9 numbers them): memory bytes to components and back. */
#ifndef TL_SIM_TYPED_H
#define TL_SIM_TYPED_H

#include "sim/core.h"

/* Bytes of an element of a data format; 0: no such format. */
uint32_t sim_format_bytes(uint32_t dfmt);
/* The two formats of gfx9 that one of gfx11 and later means; false = reserved. */
bool sim_format_unified(uint32_t format, uint32_t *dfmt, uint32_t *nfmt);
/* Components of the element at an address: floats or integers of 32 bits, or (half) of 16; those that the
 * format lacks are 0, 0, 0, 1 (as the number format counts: 1.0 or 1). Numbers become halves to nearest even;
 * cut: floats of 32 bits are cut off. */
void sim_format_load(uint32_t dfmt, uint32_t nfmt, uint64_t at, uint32_t c[4], bool half, bool cut);
/* The reverse; integers that do not fit are clamped. */
void sim_format_store(uint32_t dfmt, uint32_t nfmt, const uint32_t c[4], uint64_t at, bool half);
uint32_t sim_format_one(uint32_t nfmt, bool half); /* 1 or 1.0 */

#endif
