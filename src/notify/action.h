/**
 * Kinds of actions: what a rule does about an alert of an ION, as a person would, with the actor
 * "rule/NAME", and with the rights of the user who set the rule (weir_alert_rule.set_by). Each is done once
 * for an alert, when the rule's receivers are told, and not more often on one ION than the rule's
 * action_interval_ms says.
 */
#ifndef WEIR_NOTIFY_ACTION_H
#define WEIR_NOTIFY_ACTION_H

#include "base/kind.h"
#include "store/rights.h"

/** The ops of a kind. */
struct weir_alert_action_ops {
    enum weir_right right; /**< Its command needs it, and so does the setter of a rule. */
};

extern const struct weir_registry weir_alert_actions;

#define WEIR_KIND(name) extern const struct weir_kind weir_alert_action_##name;
#include "notify/actions.def"
#undef WEIR_KIND

/** NULL: the only one that there is. */
struct weir_alert_action_retrain {
    char *pipeline;
};

struct weir_alert_action_roll_back {
    char *link;
};

/** NULL: all. */
struct weir_alert_action_pause {
    char *pipeline;
};

struct weir_alert_action_default_model {
    char *link;
};

#endif
