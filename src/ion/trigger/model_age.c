#include "ion/trigger.h"

#include <inttypes.h>

struct trigger_model_age {
    struct weir_trigger_common common;
    int64_t max_age_s;
};

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct trigger_model_age *age = options;
    /* A run that brought nothing younger is not begun again at once: it counts as a model. */
    int64_t since_ms = WEIR_MAX(inputs->model_ms, weir_trigger_past_ms(inputs, inputs->started_ms));
    int64_t until_ms = since_ms + age->max_age_s * 1000;
    if (inputs->model_ms == 0) {
        return (struct weir_trigger_verdict){false, "there is no model yet", INT64_MAX};
    }
    if (until_ms > inputs->now_ms) {
        return (struct weir_trigger_verdict){
            false,
            weir_arena_printf(arena, "the model, or the last run, is younger than %" PRId64 " s",
                              age->max_age_s),
            until_ms};
    }
    return (struct weir_trigger_verdict){
        true, weir_arena_printf(arena, "the model is older than %" PRId64 " s", age->max_age_s), 0};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(trigger_model_age, max_age_s, "max-age-s", INT, WEIR_OPTION_REQUIRED, NULL, 1,
                  315360000, "Age of the newest version"),
    WEIR_TRIGGER_LEAST(trigger_model_age, "3600"),
};

static const struct weir_trigger_ops ops = {.sees = WEIR_TRIGGER_SEES_MODEL, .decide = decide};

const struct weir_kind weir_trigger_kind_model_age = {
    .name = "model-age",
    .doc = "The newest version of the pipeline's model is older than max_age_s, and so is the "
           "beginning of its last run.",
    WEIR_KIND_OPTIONS(trigger_model_age, options_of),
    .ops = &ops,
};
