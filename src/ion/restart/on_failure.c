#include "ion/restart.h"

#define BACKOFF_MAX_S 3600 /* what is longer is a schedule */

struct restart_on_failure {
    int64_t times, backoff_s;
};

/** Each further failure doubles the delay. */
static bool decide(const struct weir_restart_inputs *inputs, const void *options,
                   int64_t *out_delay_ms)
{
    const struct restart_on_failure *rule = options;
    if (inputs->n_failures == 0 || inputs->n_failures > rule->times) {
        return false;
    }
    int64_t delay_s = rule->backoff_s;
    for (int64_t i = 1; i < inputs->n_failures && delay_s < BACKOFF_MAX_S; i++) {
        delay_s *= 2;
    }
    *out_delay_ms = WEIR_MIN(delay_s, (int64_t)BACKOFF_MAX_S) * 1000;
    return true;
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(restart_on_failure, times, "times", INT, 0, "3", 1, 1000,
                  "So often in a row; the failure after that is for good"),
    WEIR_OPT_JSON(restart_on_failure, backoff_s, "backoff-s", INT, 0, "10", 0, BACKOFF_MAX_S,
                  "Time between the first failure and the next run; each further failure doubles "
                  "it, up to an hour"),
};

static const struct weir_restart_ops ops = {.is_patient = true, .decide = decide};

const struct weir_kind weir_restart_on_failure = {
    .name = "on-failure",
    .doc = "A run that has failed is followed by another, so many times in a row.",
    WEIR_KIND_OPTIONS(restart_on_failure, options_of),
    .ops = &ops,
};
