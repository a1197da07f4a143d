/* forward.c - libamdhip64.so, .so.6 and .so.7: libraries that hold nothing and need libtilelang_sim.so in the folder above,
 * so that every name under which a program looks for HIP leads to one simulator. dlsym on their handle and the dynamic
 * linker both search what a library needs. */
extern int hipInit(unsigned flags);
int (*tilelang_sim_forward(void))(unsigned);

__attribute__((visibility("default"))) int (*tilelang_sim_forward(void))(unsigned)
{
    return hipInit; /* so that the linker keeps the need */
}
