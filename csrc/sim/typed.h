/* typed.h - elements of typed buffers (formats as gfx9 numbers them): memory bytes to components and back. */
#ifndef TL_SIM_TYPED_H
#define TL_SIM_TYPED_H

#include "sim/core.h"

/* Bytes of an element of a data format; 0: no such format. */
uint32_t sim_format_bytes(uint32_t dfmt);
/* The two formats of gfx9 that one of gfx11 and later means; false = reserved. */
bool sim_format_unified(uint32_t format, uint32_t *dfmt, uint32_t *nfmt);
/* Components of the element at an address: 32-bit floats or integers; those that the format lacks are 0, 0,
 * 0, 1 (as the number format counts: 1.0 or 1). */
void sim_format_load(uint32_t dfmt, uint32_t nfmt, uint64_t at, uint32_t c[4]);
/* The reverse; integers that do not fit are clamped. */
void sim_format_store(uint32_t dfmt, uint32_t nfmt, const uint32_t c[4], uint64_t at);
uint32_t sim_half_of(uint32_t f32); /* bits, to nearest even */

#endif
