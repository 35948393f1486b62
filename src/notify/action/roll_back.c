#include "notify/action.h"

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_alert_action_roll_back, link, "link", TEXT, 0, NULL, 0, 0,
                  "Which link, FROM:TO; else the only one that serves"),
};

static const struct weir_alert_action_ops ops = {.right = WEIR_RIGHT_IONS_ROLLBACK};

const struct weir_kind weir_alert_action_roll_back = {
    .name = "roll-back",
    .doc = "Serve the version again that served before, as `weir rollback` does.",
    WEIR_KIND_OPTIONS(weir_alert_action_roll_back, options_of),
    .ops = &ops,
};
