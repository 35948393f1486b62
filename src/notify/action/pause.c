#include "notify/action.h"

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_alert_action_pause, pipeline, "pipeline", TEXT, 0, NULL, 0, 0,
                  "Which pipeline; else all of the ION"),
};

static const struct weir_alert_action_ops ops = {.right = WEIR_RIGHT_IONS_PAUSE};

const struct weir_kind weir_alert_action_pause = {
    .name = "pause",
    .doc = "Pause the ION or one of its pipelines, as `weir ion pause` does: no training begins, "
           "replicas stop.",
    WEIR_KIND_OPTIONS(weir_alert_action_pause, options_of),
    .ops = &ops,
};
