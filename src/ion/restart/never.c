#include "ion/restart.h"

static bool decide(const struct weir_restart_inputs *inputs, const void *options,
                   int64_t *out_delay_ms)
{
    (void)inputs;
    (void)options;
    (void)out_delay_ms;
    return false;
}

static const struct weir_restart_ops ops = {.decide = decide};

const struct weir_kind weir_restart_never = {
    .name = "never",
    .doc = "Only triggers start it.",
    .ops = &ops,
};
