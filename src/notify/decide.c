#include "notify/decide.h"

#include "notify/receiver.h"

#include <string.h>

static bool is_same_project(const char *project, const char *alert_project)
{
    return project == NULL || (alert_project != NULL && strcmp(project, alert_project) == 0);
}

bool notify_rule_wants(const struct weir_alert_rule *rule, const struct notify_match *match,
                       const struct weir_alert *alert, const char *alert_project)
{
    return !rule->is_disabled && is_same_project(rule->project, alert_project) &&
           notify_matches(match, alert);
}

bool notify_is_held_back(const struct weir_alert_silence *silence, const struct notify_match *match,
                         const struct weir_alert *alert, const char *alert_project, int64_t now_ms)
{
    return silence->ended_ms == 0 && silence->until_ms > now_ms &&
           is_same_project(silence->project, alert_project) &&
           (silence->alert == NULL || strcmp(silence->alert, alert->key) == 0) &&
           notify_matches(match, alert);
}

const char *notify_group(const struct weir_alert_rule *rule, const struct weir_alert_firing *firing)
{
    if (strcmp(rule->group_by, "rule") == 0) {
        return "";
    }
    if (strcmp(rule->group_by, "subject") == 0) {
        return firing->subject != NULL ? firing->subject : "";
    }
    return firing->id;
}

bool notify_may_act(const struct weir_alert_rule *rule, int64_t last_ms, int64_t now_ms)
{
    /* A last time that lies ahead was written before the wall clock was set back. */
    return last_ms == 0 || last_ms > now_ms || now_ms - last_ms >= rule->action_interval_ms;
}

static bool has_begun(const struct weir_alert_firing *firing)
{
    return strcmp(firing->state, WEIR_FIRING_WAITING) != 0;
}

static struct notify_decision decide_waiting(const struct weir_alert_rule *rule,
                                             const struct weir_alert *alert, int64_t now_ms)
{
    int64_t ripe_ms = alert->raised_ms + rule->hold_ms;
    if (alert->raised_ms >
        now_ms) { /* by a clock that was set back since: how long it waits is unknown */
        return (struct notify_decision){NOTIFY_TELL, now_ms};
    }
    if (ripe_ms > now_ms) {
        return (struct notify_decision){NOTIFY_NOTHING, ripe_ms};
    }
    return (struct notify_decision){NOTIFY_TELL, ripe_ms + rule->group_ms};
}

static struct notify_decision decide_told(const struct weir_alert_rule *rule,
                                          const struct weir_alert *alert,
                                          const struct weir_alert_firing *firing, int64_t now_ms)
{
    bool is_taken = strcmp(alert->state, "acknowledged") == 0;
    bool escalates = rule->escalate_ms > 0 && firing->escalated_ms == 0 && !is_taken;
    int64_t escalate_ms = escalates ? firing->told_ms + rule->escalate_ms : INT64_MAX;
    int64_t resend_ms = firing->resend_ms > 0 ? firing->resend_ms : INT64_MAX;
    int64_t next_ms = WEIR_MIN(escalate_ms, resend_ms);
    if (escalate_ms <= now_ms) {
        return (struct notify_decision){NOTIFY_ESCALATE, 0};
    }
    if (resend_ms <= now_ms ||
        (resend_ms < INT64_MAX && resend_ms > now_ms + WEIR_RECEIVER_RESEND_MS)) {
        return (struct notify_decision){NOTIFY_REPEAT, 0};
    }
    return (struct notify_decision){NOTIFY_NOTHING, next_ms < INT64_MAX ? next_ms : 0};
}

struct notify_decision notify_decide(const struct weir_alert_rule *rule,
                                     const struct weir_alert *alert,
                                     const struct weir_alert_firing *firing, int64_t now_ms)
{
    bool is_silenced = alert->silenced_ms > now_ms || alert->is_sandbox;
    if (strcmp(firing->state, WEIR_FIRING_OVER) == 0) {
        return (struct notify_decision){NOTIFY_NOTHING, 0};
    }
    if (rule == NULL) {
        return (struct notify_decision){NOTIFY_END, 0};
    }
    if (strcmp(alert->state, "resolved") == 0) {
        bool was_short = !has_begun(firing) && rule->hold_ms == 0 && !is_silenced;
        return (struct notify_decision){was_short ? NOTIFY_TELL_END : NOTIFY_END, 0};
    }
    if (is_silenced) {
        return (struct notify_decision){NOTIFY_NOTHING, alert->is_sandbox ? 0 : alert->silenced_ms};
    }
    return has_begun(firing) ? decide_told(rule, alert, firing, now_ms)
                             : decide_waiting(rule, alert, now_ms);
}
