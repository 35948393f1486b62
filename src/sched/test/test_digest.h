/** For tests: what tells whether two plans are the same. */
#ifndef WEIR_SCHED_TEST_DIGEST_H
#define WEIR_SCHED_TEST_DIGEST_H

#include "sched/sched.h"

static inline uint64_t test_mix(uint64_t digest, int64_t value)
{
    digest = (digest ^ (uint64_t)value) * 0x9e3779b97f4a7c15U;
    return digest ^ digest >> 29;
}

static inline uint64_t test_mix_amount(uint64_t digest, const struct weir_sched_amount *amount)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        digest = test_mix(digest, amount->of[r]);
    }
    return digest;
}

/** `digest`, and all that the plan says. */
static inline uint64_t test_digest_plan(uint64_t digest, const struct weir_sched_plan *plan)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        digest = test_mix(test_mix(test_mix(digest, action->kind), action->task), action->node);
        digest =
            test_mix(test_mix(test_mix(digest, action->reason), action->by_job), action->zones);
        for (int32_t d = 0; d < action->n_devices; d++) {
            digest = test_mix(digest, action->devices[d]);
        }
    }
    for (int32_t i = 0; i < plan->n_waits; i++) {
        const struct weir_sched_wait *wait = &plan->waits[i];
        digest = test_mix(test_mix(test_mix(digest, wait->job), wait->code), wait->resource);
        digest = test_mix(test_mix(test_mix(digest, wait->need), wait->have), wait->object);
        digest = test_mix(test_mix(digest, wait->expected_start_ms), wait->after_job);
    }
    if (plan->n_actions + plan->n_waits > 0) {
        digest = test_mix_amount(digest, &plan->queues[0].fair_share);
        digest = test_mix_amount(digest, &plan->queues[0].allocated);
    }
    return digest;
}

#endif
