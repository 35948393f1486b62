#include "ion/trigger.h"

struct trigger_manual {
    struct weir_trigger_common common;
    bool allowed;
};

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct trigger_manual *manual = options;
    if (!manual->allowed) {
        return (struct weir_trigger_verdict){false, "its triggers say manual: false", INT64_MAX};
    }
    if (inputs->by == NULL) {
        return (struct weir_trigger_verdict){false, "nobody wants it", INT64_MAX};
    }
    return (struct weir_trigger_verdict){true, weir_arena_printf(arena, "by hand (%s)", inputs->by),
                                         0};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(trigger_manual, allowed, "allowed", BOOL, 0, "true", 0, 0,
                  "Whether a person may start the pipeline"),
    WEIR_TRIGGER_LEAST(trigger_manual, "0"),
};

static const struct weir_trigger_ops ops = {.sees = WEIR_TRIGGER_SEES_OWN, .decide = decide};

const struct weir_kind weir_trigger_kind_manual = {
    .name = "manual",
    .doc = "A person starts the pipeline (`weir trigger`), or a rule of alerts does. Every "
           "pipeline has it; allowed: false refuses.",
    WEIR_KIND_OPTIONS(trigger_manual, options_of),
    .ops = &ops,
};
