#include "ion/policy.h"

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    (void)options;
    (void)arena;
    return inputs->candidate_version < inputs->newest_other_version
               ? weir_policy_answer(WEIR_VERDICT_SKIP,
                                    "always-update: a newer version came before it")
               : weir_policy_answer(WEIR_VERDICT_PASS,
                                    "always-update: the newest version is taken");
}

static const struct weir_policy_ops ops = {.decide = decide};

const struct weir_kind weir_policy_always_update = {
    .name = "always-update",
    .doc = "A new version passes at once; an older one that comes later is skipped.",
    .ops = &ops,
};
