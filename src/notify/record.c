/* The tables of what notify.h describes. */
#include "notify/notify.h"

#include "notify/receiver.h"
#include "store/noun.h"

#define RO WEIR_FIELD_READ_ONLY

// clang-format off
static const struct weir_field receiver_fields[] = {
    WEIR_FIELD(weir_alert_receiver, name,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "What rules call it"),
    WEIR_FIELD(weir_alert_receiver, kind,       TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "webhook, email or alertmanager"),
    WEIR_FIELD(weir_alert_receiver, doc,        TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What it is for"),
    WEIR_FIELD_HIDING(weir_alert_receiver, options, WEIR_FIELD_REQUIRED, WEIR_RECEIVER_SECRETS, "", "Options of its kind"),
    WEIR_FIELD(weir_alert_receiver, projects,   JSON, 0, "", "Projects whose rules may use it; null: all"),
    WEIR_FIELD(weir_alert_receiver, created_by, TEXT, RO, "", "Who made it"),
    WEIR_FIELD(weir_alert_receiver, created_ms, TIME, RO, "ms", "Creation"),
    WEIR_FIELD(weir_alert_receiver, updated_ms, TIME, RO, "ms", "Last change"),
    WEIR_FIELD(weir_alert_receiver, is_failing, BOOL, RO, "", "It refused a message, or does not take any"),
    WEIR_FIELD(weir_alert_receiver, last_sent_ms, TIME, RO, "ms", "When it last took one"),
};
static const struct weir_field rule_fields[] = {
    WEIR_FIELD(weir_alert_rule, name,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_alert_rule, project,      TEXT, WEIR_FIELD_COLUMN, "", "Whose alerts it looks at; null: all, of the platform too"),
    WEIR_FIELD(weir_alert_rule, doc,          TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What it is for"),
    WEIR_FIELD(weir_alert_rule, kinds,        JSON, WEIR_FIELD_COLUMN, "", "Kinds of alerts; null: any"),
    WEIR_FIELD(weir_alert_rule, subjects,     JSON, WEIR_FIELD_COLUMN, "", "Patterns of subjects, as in ion/door*; null: any"),
    WEIR_FIELD(weir_alert_rule, severities,   JSON, WEIR_FIELD_COLUMN, "", "info, warning, critical; null: any"),
    WEIR_FIELD(weir_alert_rule, hold_ms,      INT,  WEIR_FIELD_COLUMN, "ms", "An alert must have lasted so long"),
    WEIR_FIELD(weir_alert_rule, group_by,     TEXT, 0, "", "What shares a message: none (one each), subject or rule"),
    WEIR_FIELD(weir_alert_rule, group_ms,     INT,  0, "ms", "How long the first of a message waits for others"),
    WEIR_FIELD(weir_alert_rule, receivers,    JSON, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Receivers that are told"),
    WEIR_FIELD(weir_alert_rule, tells_end,    BOOL, 0, "", "They are told when it is over, too"),
    WEIR_FIELD(weir_alert_rule, escalate_ms,  INT,  0, "ms", "Tell escalate_to if nobody has acknowledged it so long after it was told; 0: never"),
    WEIR_FIELD(weir_alert_rule, escalate_to,  JSON, 0, "", "Receivers that are told then"),
    WEIR_FIELD(weir_alert_rule, actions,      JSON, WEIR_FIELD_COLUMN, "", "What is done, once for each alert: objects with kind and its options"),
    WEIR_FIELD(weir_alert_rule, action_interval_ms, INT, 0, "ms", "Least time between two times that it acts on one subject"),
    WEIR_FIELD(weir_alert_rule, is_disabled,  BOOL, 0, "", "It does nothing"),
    WEIR_FIELD(weir_alert_rule, created_by,   TEXT, RO, "", "Who made it"),
    WEIR_FIELD(weir_alert_rule, set_by,       TEXT, RO, "", "Who set it last; its actions are done only while this person may"),
    WEIR_FIELD(weir_alert_rule, created_ms,   TIME, RO, "ms", "Creation"),
    WEIR_FIELD(weir_alert_rule, updated_ms,   TIME, RO, "ms", "Last change"),
};
static const struct weir_field silence_fields[] = {
    WEIR_FIELD(weir_alert_silence, id,         TEXT, WEIR_FIELD_KEY | RO | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_alert_silence, project,    TEXT, WEIR_FIELD_COLUMN, "", "Whose alerts; null: all"),
    WEIR_FIELD(weir_alert_silence, alert,      TEXT, WEIR_FIELD_COLUMN, "", "Key of one alert; null: those that match"),
    WEIR_FIELD(weir_alert_silence, kinds,      JSON, WEIR_FIELD_COLUMN, "", "Kinds of alerts; null: any"),
    WEIR_FIELD(weir_alert_silence, subjects,   JSON, WEIR_FIELD_COLUMN, "", "Patterns of subjects; null: any"),
    WEIR_FIELD(weir_alert_silence, severities, JSON, WEIR_FIELD_COLUMN, "", "info, warning, critical; null: any"),
    WEIR_FIELD(weir_alert_silence, until_ms,   TIME, WEIR_FIELD_COLUMN, "ms", "When it ends"),
    WEIR_FIELD(weir_alert_silence, note,       TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why"),
    WEIR_FIELD(weir_alert_silence, created_by, TEXT, RO | WEIR_FIELD_COLUMN, "", "Who began it"),
    WEIR_FIELD(weir_alert_silence, created_ms, TIME, RO, "ms", "When"),
    WEIR_FIELD(weir_alert_silence, ended_by,   TEXT, RO, "", "Who ended it; nobody: its time was over"),
    WEIR_FIELD(weir_alert_silence, ended_ms,   TIME, RO, "ms", "When it ended"),
};
static const struct weir_field firing_fields[] = {
    WEIR_FIELD(weir_alert_firing, id,           TEXT, WEIR_FIELD_KEY | RO, "", "RULE/ALERT"),
    WEIR_FIELD(weir_alert_firing, rule,         TEXT, RO | WEIR_FIELD_COLUMN, "", "Rule"),
    WEIR_FIELD(weir_alert_firing, alert,        TEXT, RO | WEIR_FIELD_COLUMN, "", "Alert"),
    WEIR_FIELD(weir_alert_firing, project,      TEXT, RO, "", "The rule's project; null: of the platform"),
    WEIR_FIELD(weir_alert_firing, subject,      TEXT, RO | WEIR_FIELD_COLUMN, "", "About what"),
    WEIR_FIELD(weir_alert_firing, state,        TEXT, RO | WEIR_FIELD_COLUMN, "", "waiting, told, escalated or over"),
    WEIR_FIELD(weir_alert_firing, due_ms,       TIME, RO, "ms", "When something is due next"),
    WEIR_FIELD(weir_alert_firing, raised_ms,    TIME, RO, "ms", "When the alert was raised"),
    WEIR_FIELD(weir_alert_firing, told_ms,      TIME, RO, "ms", "When its receivers were told"),
    WEIR_FIELD(weir_alert_firing, escalated_ms, TIME, RO, "ms", "When it was escalated"),
    WEIR_FIELD(weir_alert_firing, resend_ms,    TIME, RO, "ms", "When receivers that forget are told again"),
    WEIR_FIELD(weir_alert_firing, over_ms,      TIME, RO, "ms", "When it was over"),
    WEIR_FIELD(weir_alert_firing, acted_ms,     TIME, RO, "ms", "When its actions were decided on"),
    WEIR_FIELD(weir_alert_firing, actions,      JSON, RO, "", "What became of them: kind, state, message"),
};
static const struct weir_field delivery_fields[] = {
    WEIR_FIELD(weir_alert_delivery, id,         TEXT, WEIR_FIELD_KEY | RO | WEIR_FIELD_COLUMN, "", "Identifier, the same with each try"),
    WEIR_FIELD(weir_alert_delivery, seq,        INT,  RO, "", "Order of decision"),
    WEIR_FIELD(weir_alert_delivery, receiver,   TEXT, RO | WEIR_FIELD_COLUMN, "", "Where it goes"),
    WEIR_FIELD(weir_alert_delivery, rule,       TEXT, RO | WEIR_FIELD_COLUMN, "", "Rule that wants it; null: a test"),
    WEIR_FIELD(weir_alert_delivery, project,    TEXT, RO, "", "The rule's project; null: of the platform"),
    WEIR_FIELD(weir_alert_delivery, alert,      TEXT, RO, "", "The first alert that it tells of"),
    WEIR_FIELD(weir_alert_delivery, event,      TEXT, RO | WEIR_FIELD_COLUMN, "", "raised, escalated, repeated, resolved or test"),
    WEIR_FIELD(weir_alert_delivery, message,    JSON, RO, "", "What is sent"),
    WEIR_FIELD(weir_alert_delivery, state,      TEXT, RO | WEIR_FIELD_COLUMN, "", "pending, sent or dead"),
    WEIR_FIELD(weir_alert_delivery, attempts,   INT,  RO | WEIR_FIELD_COLUMN, "", "How often it was tried"),
    WEIR_FIELD(weir_alert_delivery, due_ms,     TIME, RO, "ms", "Not before"),
    WEIR_FIELD(weir_alert_delivery, error,      TEXT, RO | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What went wrong last"),
    WEIR_FIELD(weir_alert_delivery, created_ms, TIME, RO | WEIR_FIELD_COLUMN, "ms", "When it was decided"),
    WEIR_FIELD(weir_alert_delivery, done_ms,    TIME, RO, "ms", "When it was sent or given up"),
};
// clang-format on

const struct weir_resource weir_alert_receiver_resource =
    WEIR_RESOURCE("alert receiver", "alert_receivers", weir_alert_receiver, receiver_fields);
const struct weir_resource weir_alert_rule_resource =
    WEIR_RESOURCE("alert rule", "alert_rules", weir_alert_rule, rule_fields);
const struct weir_resource weir_alert_silence_resource =
    WEIR_RESOURCE("silence", "alert_silences", weir_alert_silence, silence_fields);
const struct weir_resource weir_alert_firing_resource =
    WEIR_RESOURCE("firing", "alert_firings", weir_alert_firing, firing_fields);
const struct weir_resource weir_alert_delivery_resource =
    WEIR_RESOURCE("delivery", "alert_deliveries", weir_alert_delivery, delivery_fields);

const struct weir_noun weir_noun_alert_silence = {
    "alert_silences", .project = "project",
    .rules = {WEIR_RULE("silences", "Silences of alerts that have ended",
                        "Those that ended longest ago go first; one that holds stays.", 70,
                        {WEIR_DAYS(730), WEIR_MB(1)}, 400, 3, .time = "ended_ms",
                        .where = "ended_ms > 0")}};

const struct weir_noun weir_noun_alert_delivery = {
    "alert_deliveries", .project = "project",
    .rules = {WEIR_RULE("deliveries", "Messages about alerts that were sent or given up",
                        "Those done longest ago go first; one that waits stays.", 60,
                        {WEIR_DAYS(90), WEIR_MB(5)}, 1500, 7, .time = "done_ms", .tie = "seq",
                        .where = "state <> 'pending'")}};
