#include "ion/trigger.h"

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct weir_trigger_alert *alert = options;
    if (inputs->alert == NULL || inputs->alert_ms <= weir_trigger_since_ms(inputs)) {
        return (struct weir_trigger_verdict){
            false, weir_arena_printf(arena, "no new alert %s", alert->alert), INT64_MAX};
    }
    return (struct weir_trigger_verdict){
        true, weir_arena_printf(arena, "alert %s: %s", alert->alert, inputs->alert), 0};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_trigger_alert, alert, "alert", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Kind of the alert"),
    WEIR_TRIGGER_LEAST(weir_trigger_alert, "3600"),
};

static const struct weir_trigger_ops ops = {.sees = WEIR_TRIGGER_SEES_ALERT, .decide = decide};

const struct weir_kind weir_trigger_kind_alert = {
    .name = "alert",
    .doc = "An alert of the kind about this ION is open, and was raised since the beginning of the "
           "last run.",
    WEIR_KIND_OPTIONS(weir_trigger_alert, options_of),
    .ops = &ops,
};
