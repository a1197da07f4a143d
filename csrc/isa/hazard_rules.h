/* hazard_rules.h - the names of the rows of the check "hazard", for all chips (rows in hazard_rules.def). */
#ifndef TL_ISA_HAZARD_RULES_H
#define TL_ISA_HAZARD_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum IsaHazardRule {
    ISA_HR_NONE,
#define HAZARD_RULE(id, name, what) ISA_HR_##id,
#include "isa/hazard_rules.def"
#undef HAZARD_RULE
    ISA_HR_COUNT
} IsaHazardRule;

/* A set of rules has a bit for each: 1 << rule. */
_Static_assert(ISA_HR_COUNT <= 32, "sets of rules are uint32_t");

const char *isa_hazard_rule(IsaHazardRule rule); /* "mfma-valu", ...; "" for ISA_HR_NONE */
const char *isa_hazard_what(IsaHazardRule rule);
/* Names with commas or blanks between, as a set. false: one does not exist. */
bool isa_hazard_rules(const char *list, uint32_t *set);
/* "mfma-valu, mfma-mem, ..." */
void isa_hazard_rules_list(char *text, size_t n);

#endif
