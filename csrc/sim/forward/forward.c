/* forward.c - libamdhip64.so, .so.6 and .so.7: every name under which a program looks for HIP leads to one
 * simulator.
 *
 * The library needs libtilelang_sim.so in the folder above and has one jump for each HIP function, so that
 * programs can also be linked against it. The targets are looked up when it is loaded, which is after the
 * simulator is and before anything that needs this library runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stddef.h>

extern void tlsim_counters(void *dev, void *launches,
                           void *instructions); /* keeps the need of the simulator */
__attribute__((visibility("hidden"), used)) void *const tlfwd_need = (void *)tlsim_counters;

#define SIM_HIP(name, args)            __attribute__((visibility("hidden"), used)) void *tlfwd_##name;
#define SIM_HIP_AS(result, name, args) SIM_HIP(name, args)
#define SIM_ALIAS(name, function)      SIM_HIP(name, )
#define SIM_REFUSED(name)              SIM_HIP(name, )
#include "sim/hip_more.def"
#include "sim/hip_sim.def"
#undef SIM_HIP

#if defined(__x86_64__)
#define JUMP(slot) "endbr64\n\tjmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(slot) "adrp x16, " slot "\n\tldr x16, [x16, :lo12:" slot "]\n\tbr x16\n"
#endif

#ifdef JUMP
#define SIM_HIP(name, args)                                                                                  \
    __asm__(".text\n\t.p2align 4\n\t.globl " #name "\n\t.type " #name ", %function\n" #name                  \
            ":\n\t" JUMP("tlfwd_" #name) "\t.size " #name ", .-" #name "\n");
#include "sim/hip_more.def"
#include "sim/hip_sim.def"
#undef SIM_HIP
#endif

static const struct {
    const char *name;
    void **slot;
} slots[] = {
#define SIM_HIP(name, args) {#name, &tlfwd_##name},
#include "sim/hip_more.def"
#include "sim/hip_sim.def"
#undef SIM_HIP
};

__attribute__((constructor)) static void
find_targets(void)
{
    void *sim = dlopen("libtilelang_sim.so", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; sim && i < sizeof slots / sizeof *slots; i++)
        *slots[i].slot = dlsym(sim, slots[i].name);
}
