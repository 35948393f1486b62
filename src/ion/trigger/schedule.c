#include "ion/trigger.h"

#include "ion/cron.h"

struct trigger_schedule {
    struct weir_trigger_common common;
    char *cron;
};

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct trigger_schedule *schedule = options;
    struct weir_cron cron;
    struct weir_error cause = {0};
    weir_status status = weir_cron_parse(schedule->cron, &cron, &cause);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status, "%s.cron: %s", where, cause.message);
}

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    (void)options;
    (void)arena;
    bool has_come = inputs->next_ms > 0 && inputs->next_ms <= inputs->now_ms;
    return (struct weir_trigger_verdict){
        has_come, "schedule", has_come || inputs->next_ms == 0 ? INT64_MAX : inputs->next_ms};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(trigger_schedule, cron, "cron", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "When, as cron with a seconds field, in UTC"),
    WEIR_TRIGGER_LEAST(trigger_schedule, "0"),
};

static const struct weir_trigger_ops ops = {
    .sees = WEIR_TRIGGER_SEES_OWN, .check = check, .decide = decide};

const struct weir_kind weir_trigger_kind_schedule = {
    .name = "schedule",
    .doc = "The pipeline runs at times. Times that pass while the server is down, or within the "
           "least interval, are one firing.",
    WEIR_KIND_OPTIONS(trigger_schedule, options_of),
    .ops = &ops,
};

const char *weir_trigger_cron(const struct weir_trigger *trigger)
{
    return trigger->kind == &weir_trigger_kind_schedule
               ? ((const struct trigger_schedule *)trigger->options)->cron
               : NULL;
}
