#include "notify/action.h"

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_alert_action_retrain, pipeline, "pipeline", TEXT, 0, NULL, 0, 0,
                  "Which training; else the only one of the ION"),
};

static const struct weir_alert_action_ops ops = {.right = WEIR_RIGHT_IONS_TRIGGER};

const struct weir_kind weir_alert_action_retrain = {
    .name = "retrain",
    .doc = "Start a training of the ION, as `weir trigger` does.",
    WEIR_KIND_OPTIONS(weir_alert_action_retrain, options_of),
    .ops = &ops,
};
