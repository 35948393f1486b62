#include "ion/restart.h"

struct restart_always {
    int64_t backoff_s;
};

static bool decide(const struct weir_restart_inputs *inputs, const void *options,
                   int64_t *out_delay_ms)
{
    (void)inputs;
    *out_delay_ms = ((const struct restart_always *)options)->backoff_s * 1000;
    return true;
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(restart_always, backoff_s, "backoff-s", INT, 0, "60", 1, 86400,
                  "Time between the end of a run and the next"),
};

static const struct weir_restart_ops ops = {.decide = decide};

const struct weir_kind weir_restart_always = {
    .name = "always",
    .doc = "A run that has ended, well or badly, is followed by another.",
    WEIR_KIND_OPTIONS(restart_always, options_of),
    .ops = &ops,
};
