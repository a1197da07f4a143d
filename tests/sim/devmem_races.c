/* devmem_races.c - two threads on the same memory: through csrc/sim/devmem.h nothing is reported by
 * ThreadSanitizer, whatever the access; on a plain variable it is. Built and run by test_sim_devmem.py.
 * Argument: "devmem", "plain" (the variable), "copy" (the simulator's side of a copy). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "sim/devmem.h"

enum { BYTES = 4096, ROUNDS = 20000 };
static _Alignas(64) uint8_t memory[BYTES];
static uint32_t row[64]; /* of the simulator */
static int plain;
static const char *what;
static pthread_barrier_t start;

static void
devmem(uint64_t at, uint32_t k)
{
    uint32_t own[64] = {k}, old = 0;
    uint64_t old64 = 0;
    sim_dm_put8(at + 1, (uint8_t)k);
    sim_dm_put16(at + 2, sim_dm_get8(at));
    sim_dm_put32(at, sim_dm_get16(at + 3));
    sim_dm_put64(at + 8, sim_dm_get32(at) + sim_dm_get64(at + 5));
#if defined(__SSE2__)
    sim_dm_put128(at + 4, sim_dm_get128(at));
#endif
    sim_dm_write(at + 256, own, sizeof own);
    sim_dm_read(own, at + 200, sizeof own);
    sim_dm_move(at + 520, at + 512, 300);
    sim_dm_move(at + 512, at + 520, 300);
    sim_dm_fill8(at + 1000, (uint8_t)k, 77);
    sim_dm_fill16(at + 1000, (uint16_t)k, 77);
    sim_dm_fill32(at + 1000, k, 77);
    old = sim_dm_load32(at);
    old64 = sim_dm_load64(at + 8);
    while (!sim_dm_cas32(at + 2048, &old, old + 1))
        ;
    while (!sim_dm_cas64(at + 2056, &old64, old64 + 1))
        ;
    sim_dm_swap64(at + 8, old64);
    sim_dm_and32(at, ~1u);
}

static void *
run(void *arg)
{
    pthread_barrier_wait(&start);
    for (uint32_t k = 0; k < ROUNDS; k++) {
        if (!strcmp(what, "plain"))
            plain++;
        else if (!strcmp(what, "copy"))
            sim_dm_read(row, sim_dm_at(memory), sizeof row);
        else
            devmem(sim_dm_at(memory), k);
    }
    return arg;
}

/* What the accesses do, whether or not they are watched. */
static bool
values(void)
{
    uint8_t from[40], to[40];
    for (uint32_t n = 0; n < sizeof from; n++)
        for (uint32_t shift = 0; shift < 9; shift++) {
            uint64_t at = sim_dm_at(memory) + shift;
            for (uint32_t i = 0; i < sizeof from; i++)
                from[i] = (uint8_t)(7 * i + n + 1);
            sim_dm_fill8(sim_dm_at(memory), 0xee, 64);
            sim_dm_write(at, from, n);
            sim_dm_read(to, at, n);
            if (memcmp(from, to, n) || memory[shift + n] != 0xee || (shift && memory[shift - 1] != 0xee))
                return false;
            sim_dm_move(at + 3, at, n); /* overlaps */
            sim_dm_move(at + 1, at + 3, n);
            sim_dm_read(to, at + 1, n);
            sim_dm_fill8(at, 0x11, n);
            if (memcmp(from, to, n) || (n && (memory[shift] != 0x11 || memory[shift + n - 1] != 0x11)))
                return false;
        }
    return true;
}

int
main(int argc, char **argv)
{
    pthread_t t[2];
    if (argc != 2 || !values())
        return 1;
    what = argv[1];
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&t[i], NULL, run, NULL))
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    if (!strcmp(what, "devmem") && sim_dm_get32(sim_dm_at(memory) + 2048) != 2 * ROUNDS)
        return 3; /* atomics lose nothing */
    puts("done");
    return 0;
}
