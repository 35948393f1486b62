#include "notify/action.h"

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_alert_action_default_model, link, "link", TEXT, 0, NULL, 0, 0,
                  "Which link, FROM:TO; else the only one that has a default"),
};

static const struct weir_alert_action_ops ops = {.right = WEIR_RIGHT_IONS_ROLLBACK};

const struct weir_kind weir_alert_action_default_model = {
    .name = "default-model",
    .doc = "Serve the model that the link names as its default, as `weir ion set-model` does.",
    WEIR_KIND_OPTIONS(weir_alert_action_default_model, options_of),
    .ops = &ops,
};
