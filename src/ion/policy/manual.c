#include "ion/policy.h"

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         struct weir_arena *arena)
{
    (void)inputs;
    (void)arena;
    return (struct weir_policy_verdict){WEIR_VERDICT_WAIT, "manual: a person must approve it"};
}

static const struct weir_policy_ops ops = {.decide = decide};

const struct weir_kind weir_policy_manual = {
    .name = "manual",
    .doc = "A new version waits for a person: `weir approve` or `weir reject`.",
    .ops = &ops,
};
