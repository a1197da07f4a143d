/* service.h - what the host does for running kernels: hostcalls (printf, memory for device malloc), the
 * printf buffer of OpenCL and of -mprintf-kind=buffered, the heap that device malloc starts from.
 *
 * Everything is made at the first launch of a kernel whose hidden arguments ask for it. A hostcall is served
 * on the spot, by the thread that runs the wave, when the wave sends its interrupt message. */
#ifndef TL_SIM_SERVICE_H
#define TL_SIM_SERVICE_H

#include "sim/image.h"

typedef struct SimServices SimServices;

/* waves: as many as can be resident at once. heap_bytes: for device malloc. NULL: out of memory. */
SimServices *sim_services_new(SimMem *mem, uint32_t waves, uint64_t heap_bytes);
void sim_services_free(SimServices *s); /* after its SimMem */

/* Does the kernel ask for one of them? */
bool sim_services_wanted(const SimKernel *k);
/* Sets the addresses for the hidden arguments, and up what the kernel asks for; false: out of memory. */
bool sim_services_begin(SimServices *s, const SimKernel *k, SimLaunchDims *dims);
/* Serves what waves have asked for. Not NULL: what was asked for is refused, and why. */
const char *sim_services_serve(void *self);
/* After the launch: prints what is in the printf buffer. */
void sim_services_end(SimServices *s, const SimKernel *k);

/* ---- format.c: printf on the host, arguments as the device packed them ---- */

typedef struct SimFormatArgs {
    const uint8_t *p, *end;
    const uint32_t *sizes; /* bytes of each argument; NULL: 8 each, strings in place and padded to 8 */
    uint32_t nsizes, i;
} SimFormatArgs;

/* Appends the formatted text. Returns its length, -1 when the arguments do not suffice. */
int sim_format(TlText *out, const char *format, SimFormatArgs *args);

#endif
