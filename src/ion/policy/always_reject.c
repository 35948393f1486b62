#include "ion/policy.h"

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    (void)inputs;
    (void)options;
    (void)arena;
    return weir_policy_answer(WEIR_VERDICT_REJECT, "always-reject: no version passes here");
}

static const struct weir_policy_ops ops = {.decide = decide};

const struct weir_kind weir_policy_always_reject = {
    .name = "always-reject",
    .doc = "No version passes: the link goes on serving what it serves.",
    .ops = &ops,
};
