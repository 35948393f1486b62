#include "notify/action.h"

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_alert_action_##name,
#include "notify/actions.def"
#undef WEIR_KIND
};

const struct weir_registry weir_alert_actions = {
    .noun = "alert-action",
    .plural = "alert-actions",
    .doc =
        "What a rule does about an alert of an ION, as a person would, with the actor rule/NAME: "
        "once for each alert.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};
