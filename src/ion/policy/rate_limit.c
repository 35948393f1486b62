#include "ion/policy.h"

#include <inttypes.h>

struct weir_policy_rate_limit {
    int64_t min_interval_s;
};

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_rate_limit *limit = options;
    int64_t until_ms = inputs->last_served_ms + limit->min_interval_s * 1000;
    if (inputs->last_served_ms > 0 && until_ms > inputs->now_ms) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_WAIT,
            .rule = weir_arena_printf(
                arena, "rate-limit: another version began to serve less than %" PRId64 " s ago",
                limit->min_interval_s),
            .until_ms = until_ms};
    }
    return weir_policy_answer(
        WEIR_VERDICT_PASS,
        weir_arena_printf(arena, "rate-limit: nothing began to serve within %" PRId64 " s",
                          limit->min_interval_s));
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_rate_limit, min_interval_s, "min-interval-s", INT,
                  WEIR_OPTION_REQUIRED, NULL, 1, 315360000,
                  "Least time between two versions that begin to serve"),
};

static const struct weir_policy_ops ops = {.decide = decide, .is_gate = true};

const struct weir_kind weir_policy_rate_limit = {
    .name = "rate-limit",
    .doc = "A version waits until min_interval_s have passed since the link last began to serve "
           "another; one that is older than what serves by then is skipped.",
    WEIR_KIND_OPTIONS(weir_policy_rate_limit, options_of),
    .ops = &ops,
};
