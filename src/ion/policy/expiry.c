#include "ion/policy.h"

#include <inttypes.h>

struct weir_policy_expiry {
    int64_t max_age_s;
};

static int64_t limit_ms(const struct weir_policy_inputs *inputs, const void *options)
{
    const struct weir_policy_expiry *expiry = options;
    return inputs->created_ms + expiry->max_age_s * 1000;
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_expiry *expiry = options;
    bool is_over = inputs->now_ms >= limit_ms(inputs, options);
    return (struct weir_policy_verdict){
        .verdict = is_over ? WEIR_VERDICT_SKIP : WEIR_VERDICT_PASS,
        .rule = weir_arena_printf(arena,
                                  is_over ? "expiry: it did not serve within %" PRId64 " s"
                                          : "expiry: it may wait %" PRId64 " s in all",
                                  expiry->max_age_s)};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_expiry, max_age_s, "max-age-s", INT, WEIR_OPTION_REQUIRED, NULL, 1,
                  315360000, "How long a version may wait, from when it came to the link"),
};

static const struct weir_policy_ops ops = {
    .decide = decide, .is_limit = true, .limit_ms = limit_ms};

const struct weir_kind weir_policy_expiry = {
    .name = "expiry",
    .doc = "A version that waits longer than max_age_s is skipped, whichever policy of the "
           "chain it waits at.",
    WEIR_KIND_OPTIONS(weir_policy_expiry, options_of),
    .ops = &ops,
};
