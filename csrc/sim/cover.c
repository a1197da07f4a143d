/* cover.c - which instructions ran: with TILELANG_SIM_COVERAGE=file every instruction that is decoded for its
 * first execution adds a line "chip, wave size, text" (tabs between) to the file. tools/isa/coverage.py reads
 * it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <unistd.h>

#include "sim/cover.h"
#include "sim/env.h"

int
sim_cover_open(void)
{
    const char *path = sim_env(SIM_ENV_COVERAGE);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (path && fd < 0)
        sim_env_unwritable(SIM_ENV_COVERAGE);
    return fd;
}

bool
sim_cover_note(int fd, IsaArch arch, bool wave64, const IsaInst *in)
{
    TlArena a;
    TlText t;
    tl_arena_init(&a, NULL);
    tl_text_init(&t, &a);
    tl_text_printf(&t, "%s\t%d\t", isa_arch_name(arch), wave64 ? 64 : 32);
    isa_print(arch, wave64, in, &t);
    tl_text_puts(&t, "\n");
    bool ok = t.failed || write(fd, t.data, t.len) == (ssize_t)t.len;
    if (!ok) /* no fault of the program */
        sim_env_unwritable(SIM_ENV_COVERAGE);
    tl_arena_free(&a);
    return ok;
}

void
sim_cover_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
