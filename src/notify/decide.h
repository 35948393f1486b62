/**
 * What becomes of a firing: a pure function of the rule, the alert, the firing and the time.
 *
 * A firing waits until the alert has lasted for the rule's hold time; then it is *ripe*, and is told
 * with others of its group: at once, or group_ms after the first of them was ripe. Silenced, it does
 * nothing until the silence ends. Told and not acknowledged for escalate_ms, it is escalated, once. An
 * alert that ends before it was told is told of only if the rule has no hold time, so that a short one
 * is not lost.
 */
#ifndef WEIR_NOTIFY_DECIDE_H
#define WEIR_NOTIFY_DECIDE_H

#include "notify/match.h"
#include "notify/notify.h"

/** What is to be done now. */
enum notify_deed {
    NOTIFY_NOTHING,
    NOTIFY_TELL, /**< It is ripe, and may be told with its group. */
    NOTIFY_ESCALATE,
    NOTIFY_REPEAT,   /**< To receivers that forget (receiver.h). */
    NOTIFY_END,      /**< It is over: told if it had been, and the rule tells ends. */
    NOTIFY_TELL_END, /**< It began and ended between two looks. */
};

struct notify_decision {
    enum notify_deed deed;
    /** When to look again; 0: when the alert changes. Of TELL: when the group is due. */
    int64_t due_ms;
};

/**
 * Decide. Pure.
 * @param rule  NULL: it was deleted, is disabled, or does not want the alert any more.
 */
struct notify_decision notify_decide(const struct weir_alert_rule *rule,
                                     const struct weir_alert *alert,
                                     const struct weir_alert_firing *firing, int64_t now_ms);

/** Does the rule want this alert? Pure. `match` is the rule's; alert_project NULL: of no project. */
bool notify_rule_wants(const struct weir_alert_rule *rule, const struct notify_match *match,
                       const struct weir_alert *alert, const char *alert_project);

/** Does the silence hold the alert back at this time? Pure. `match` is the silence's. */
bool notify_is_held_back(const struct weir_alert_silence *silence, const struct notify_match *match,
                         const struct weir_alert *alert, const char *alert_project, int64_t now_ms);

/** Firings of one rule share a message if this is the same text. Pure; borrowed of its arguments. */
const char *notify_group(const struct weir_alert_rule *rule,
                         const struct weir_alert_firing *firing);

/** May the rule act on the subject, on which it acted at last_ms (0: never)? Pure. */
bool notify_may_act(const struct weir_alert_rule *rule, int64_t last_ms, int64_t now_ms);

#endif
