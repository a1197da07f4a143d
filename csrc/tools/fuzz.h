/* fuzz.h - what the fuzzing tools share: their targets' type, and the chip and wave size of an input. */
#ifndef TL_TOOLS_FUZZ_H
#define TL_TOOLS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "isa/isa.h"

typedef bool Target(const uint8_t *data, size_t size);

/* The chip that SIMFUZZ_CHIP names, or ISA_ARCH_COUNT. */
static IsaArch
one_chip(void)
{
    static uint32_t known; /* 1 + the answer */
    const char *name = known ? NULL : getenv("SIMFUZZ_CHIP");
    for (uint32_t k = 0; !known; k++)
        if (k == ISA_ARCH_COUNT || (name && !strcmp(name, isa_arch_name((IsaArch)k))))
            known = k + 1;
    return (IsaArch)(known - 1);
}

static bool
start(const uint8_t *data, size_t size, IsaArch *arch, bool *wave64)
{
    if (!size)
        return false;
    IsaArch only = one_chip();
    *arch = only < ISA_ARCH_COUNT ? only : (IsaArch)(data[0] % ISA_ARCH_COUNT);
    *wave64 = *arch <= ISA_GFX950 || (data[0] & 0x80);
    return true;
}

#endif
