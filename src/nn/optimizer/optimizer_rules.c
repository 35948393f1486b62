#include "optimizer_rules.h"

#include "nn/backend/cpu/cpu_level.h"

#include <string.h>

const struct optimizer_rule_table *optimizer_rules_of_machine(void)
{
    switch (cpu_level()) {
    case CPU_LEVEL_V4:
        return &optimizer_rules_v4;
    case CPU_LEVEL_V3:
        return &optimizer_rules_v3;
    case CPU_LEVEL_V1:
        break;
    }
    return &optimizer_rules_v1;
}

const struct optimizer_rule *optimizer_rule_in(const struct optimizer_rule_table *table,
                                               const struct weir_optimizer_config *config)
{
    const struct optimizer_rule *best = NULL;
    for (size_t i = 0; i < table->n_rules; i++) {
        const struct optimizer_rule *rule = &table->rules[i];
        if (strcmp(rule->name, config->name) == 0 &&
            (!rule->has_momentum || config->momentum > 0) &&
            (!rule->is_nesterov || config->is_nesterov)) {
            best = rule; /* the later of a name is the more special one */
        }
    }
    return best;
}
