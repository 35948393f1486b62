/** What answers have about the platform: who calls, roles, health, events, alerts, the audit. */
#include "api/shape_private.h"

#include "api/role.h"
#include "notify/notify.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/tenant.h"

static const struct api_member caller_members[] = {
    ALWAYS("user", "text", "Who calls"),
    ALWAYS("role", "text", "At most this role"),
    OR_NULL("csrf", "text",
            "What a browser repeats in X-Weir-Csrf with each change; null for tokens"),
    ALWAYS("version", "text", "Version of the server"),
    ALWAYS("rights", "list of text", "What the caller may on the platform and in all projects"),
    ALWAYS("projects", "map of list of text", "What the caller may in single projects, by name"),
    ALWAYS("gone_roles", "list of gone role",
           "Roles of the caller that are not there any more: they give no rights"),
    ALWAYS("proofs", "list of text",
           "Kinds of proof that the server takes, as in `weir explain proof`"),
};
static const struct api_member gone_role_members[] = {
    ALWAYS("project", "text", "Where the caller has it"),
    ALWAYS("role", "text", "Its name"),
};
static const struct api_member project_member_members[] = {
    OR_NULL("problem", "text", "Why the role gives no rights: it is not there any more"),
};
static const struct api_member new_role_members[] = {
    ALWAYS("name", "text", "Unique name; not one of Weir's own roles"),
    MAY_MISS("description", "text", "Whom it is for"),
    MAY_MISS("like", "text", "A role whose rights in projects it begins with"),
    MAY_MISS("rights", "list of text", "Rights beside those: \"read models\" …"),
    MAY_MISS("without", "list of text", "Rights that it does not have"),
};
static const struct api_member changed_role_members[] = {
    MAY_MISS("description", "text", "Whom it is for"),
    MAY_MISS("like", "text", "A role, also this one, whose rights in projects it has"),
    MAY_MISS("rights", "list of text",
             "Rights beside those; without like and rights, it keeps what it has"),
    MAY_MISS("without", "list of text", "Rights that are taken from it"),
};
static const struct api_member role_members[] = {
    ALWAYS("rights", "list of text", "What whoever has it on the platform may: cancel jobs …"),
    ALWAYS("project_rights", "list of text", "What of it whoever has it in a project may there"),
};
static const struct api_member health_members[] = {
    ALWAYS("status", "text", "ok, waiting (for a first model), degraded or down"),
    OR_NULL("reason", "text", "Why, in a sentence"),
    OR_NULL("since", "time", "Since when"),
};
static const struct api_member reason_members[] = {
    ALWAYS("status", "text", "What it makes of the whole: degraded or down"),
    OR_NULL("reason", "text", "What is wrong, in a sentence"),
    OR_NULL("since", "time", "Since when"),
    ALWAYS("kind", "text", "Kind of the alert"),
    ALWAYS("severity", "text", "Severity of the alert"),
    OR_NULL("subject", "text", "About what: ion/NAME, node/NAME …"),
    ALWAYS("alert", "text", "Identifier of the alert"),
};
static const struct api_member health_summary_members[] = {
    ALWAYS("status", "text", "ok, waiting (for a first model), degraded or down"),
    OR_NULL("reason", "text", "Why, in a sentence"),
    OR_NULL("since", "time", "Since when"),
    ALWAYS("reasons", "list of health reason", "One for each alert that makes it so"),
};
static const struct api_member chain_finding_members[] = {
    ALWAYS("what", "text", "Kind of damage, for programs"),
    ALWAYS("seq", "integer", "Event where it shows"),
    ALWAYS("number", "integer", "Its row in the chain"),
    ALWAYS("message", "text", "In a sentence"),
};
static const struct api_member chain_cut_members[] = {
    ALWAYS("n", "integer", "How many"),
    ALWAYS("first_seq", "integer", "First event"),
    ALWAYS("last_seq", "integer", "Last event"),
    ALWAYS("first_ms", "time", "When the first was written"),
    ALWAYS("last_ms", "time", "When the last was written"),
};
static const struct api_member chain_members[] = {
    ALWAYS("chain", "text", "acts or accesses"),
    ALWAYS("is_whole", "bool", "No row was altered, taken out or put in"),
    ALWAYS("number", "integer", "Of its last row"),
    ALWAYS("hash", "text", "Of its last row: who notes it can compare later"),
    ALWAYS("n_rows", "integer", "Rows that were looked at"),
    ALWAYS("n_before", "integer", "Events older than the chain"),
    ALWAYS("begins_after", "integer", "Event that it begins after"),
    OR_NULL("cut", "chain cut", "Rows that retention took"),
    OR_NULL("finding", "chain finding", "The first damage; null: none"),
};
static const struct api_member audit_members[] = {
    ALWAYS("is_whole", "bool", "All of its chains are"),
    ALWAYS("chains", "list of verified chain", "Acts, then accesses"),
};
static const struct api_member alert_members[] = {
    ALWAYS("status", "text", "Now: raised, acknowledged, silenced or resolved"),
    MAY_MISS("firings", "list of firing", "Of a single one: what rules made of it"),
    MAY_MISS("deliveries", "list of delivery", "Of a single one: who was told, and when"),
};
static const struct api_member rule_members[] = {
    ALWAYS("n_fired", "integer", "Alerts that it told of in the last 30 days"),
};
static const struct api_member receiver_members[] = {
    ALWAYS("n_waiting", "integer", "Messages that wait for it"),
};
static const struct api_member alive_members[] = {
    ALWAYS("status", "text", "ok; down, with the HTTP status 503, when the server cannot work"),
    ALWAYS("version", "text", "Version of the server"),
    MAY_MISS("reason", "text", "Why it is down, and what to do"),
};

static const struct api_shape shapes[] = {
    SHAPE("alive", NULL, "GET /health", alive_members),
    SHAPE("gone role", NULL, NULL, gone_role_members),
    SHAPE("caller", NULL, "GET /api/v1/session", caller_members),
    RECORD("role", weir_role_resource, "name", role_members),
    SHAPE_OF_BODY("new role", "POST /api/v1/roles", new_role_members),
    SHAPE_OF_BODY("changed role", "PUT /api/v1/roles/{name}", changed_role_members),
    RECORD("project member", weir_project_member_resource, "project created_by created_ms",
           project_member_members),
    SHAPE("health", NULL, NULL, health_members),
    SHAPE("health reason", NULL, NULL, reason_members),
    SHAPE("health summary", NULL, "GET /api/v1/health/summary", health_summary_members),
    PLAIN_RECORD("firing", weir_alert_firing_resource, "rule alert state raised_ms"),
    PLAIN_RECORD("delivery", weir_alert_delivery_resource,
                 "receiver event message state created_ms"),
    SHAPE("chain finding", NULL, NULL, chain_finding_members),
    SHAPE("chain cut", NULL, NULL, chain_cut_members),
    SHAPE("verified chain", NULL, NULL, chain_members),
    SHAPE("verified audit", NULL, "GET /api/v1/audit/verify", audit_members),
    RECORD("alert", weir_alert_resource, "key severity kind message state raised_ms last_ms",
           alert_members),
    RECORD("alert rule", weir_alert_rule_resource, "group_by created_by created_ms updated_ms",
           rule_members),
    RECORD("alert receiver", weir_alert_receiver_resource, "created_by created_ms updated_ms",
           receiver_members),
    PLAIN_RECORD("silence", weir_alert_silence_resource, "until_ms created_by created_ms"),
    PLAIN_RECORD("event", weir_event_resource, "topic kind message severity time_ms"),
    PLAIN_RECORD("project", weir_project_resource, "created_ms"),
};

const struct api_shape_list api_shapes_of_platform = API_SHAPE_LIST(shapes);
