/* hazard_rules.c - names of hazard rows (contract in hazard_rules.h). */
#include <stdio.h>
#include <string.h>

#include "isa/hazard_rules.h"

static const struct {
    const char *name, *what;
} rules[ISA_HR_COUNT] = {
    [ISA_HR_NONE] = {"", ""},
#define HAZARD_RULE(id, name, what) [ISA_HR_##id] = {name, what},
#include "isa/hazard_rules.def"
#undef HAZARD_RULE
};

const char *
isa_hazard_rule(IsaHazardRule rule)
{
    return (uint32_t)rule < ISA_HR_COUNT ? rules[rule].name : "";
}

const char *
isa_hazard_what(IsaHazardRule rule)
{
    return rules[rule].what;
}

bool
isa_hazard_rules(const char *list, uint32_t *set)
{
    *set = 0;
    for (size_t n; list += strspn(list, ", "), (n = strcspn(list, ", ")); list += n) {
        uint32_t k = 1;
        while (k < ISA_HR_COUNT && (strlen(rules[k].name) != n || memcmp(rules[k].name, list, n) != 0))
            k++;
        if (k == ISA_HR_COUNT)
            return false;
        *set |= 1u << k;
    }
    return true;
}

void
isa_hazard_rules_list(char *text, size_t n)
{
    size_t at = 0;
    *text = 0;
    for (uint32_t k = 1; k < ISA_HR_COUNT && at < n; k++)
        at += (size_t)snprintf(text + at, n - at, "%s%s", k > 1 ? ", " : "", rules[k].name);
}
