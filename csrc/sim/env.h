/* env.h - the simulator's variables of the environment, TILELANG_SIM_... (rows in env.def). Whoever makes a
 * device, or runs instructions without one, asks sim_env_check first; the others then take values as they
 * are.
 */
#ifndef TL_SIM_ENV_H
#define TL_SIM_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_ENV_CHIPS = 16 }; /* chips of TILELANG_SIM_DEVICES */

typedef enum SimEnv {
#define SIM_ENV(name, kind, lowest, most, words) SIM_ENV_##name,
#include "sim/env.def"
#undef SIM_ENV
    SIM_ENV_COUNT
} SimEnv;

/* Does every variable hold what it may, and is there none of that prefix that nobody reads? If not, why names
 * the variable, its value and what is allowed. */
bool sim_env_check(char *why, size_t n);

const char *sim_env(SimEnv v);                         /* the value; NULL: not set, or empty */
uint64_t sim_env_number(SimEnv v, uint64_t otherwise); /* of a NUMBER */
uint32_t sim_env_word(SimEnv v);                       /* of a WORD: which; the first when it is not set */
uint32_t sim_env_checks(uint32_t otherwise);           /* TILELANG_SIM_CHECK as a mask */
uint32_t sim_env_rules(void);                          /* TILELANG_SIM_IGNORE as a set */
/* The next name of a list from *at on: its length, and *at is where it begins; 0: no more. */
size_t sim_env_token(const char **at);
/* A line to the file that an OUTPUT names cannot be written: said on stderr, with errno's reason. */
void sim_env_unwritable(SimEnv v);

#endif
