/* Receivers, rules and silences as people set them. */
#include "notify/notify.h"

#include "base/json.h"
#include "base/secret.h"
#include "base/uuid.h"
#include "notify/action.h"
#include "notify/match.h"
#include "notify/queue.h"
#include "notify/receiver.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

static const char sql_look_again[] = "UPDATE alerts SET looked = 0 WHERE state <> 'resolved'";
static const char sql_forget_firings[] = "DELETE FROM alert_firings WHERE rule = :rule";

static weir_status check_texts(const char *name, const char *list, struct weir_error *err)
{
    json_t *items = list != NULL ? json_loads(list, 0, NULL) : NULL, *item;
    bool is_good =
        list == NULL || (json_is_array(items) && json_array_size(items) <= WEIR_ALERT_LIST_MAX);
    size_t i;
    json_array_foreach(items, i, item)
    {
        is_good = is_good && json_is_string(item);
    }
    json_decref(items);
    return is_good
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of at most %d names",
                                name, WEIR_ALERT_LIST_MAX);
}

static weir_status check_count(struct weir_txn *txn, const struct weir_resource *resource,
                               const struct weir_query *query, int64_t max, struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_count(txn, resource, query, &n, err));
    return n < max ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_LIMIT, "there are %d %ss already: delete one",
                                    (int)max, resource->name);
}

/* The record as it is, if there is one. */
static weir_status find(struct weir_txn *txn, const struct weir_resource *resource, const char *key,
                        struct weir_arena *arena, void *out, bool *out_is_there,
                        struct weir_error *err)
{
    weir_status status = weir_txn_get(txn, resource, key, arena, out, err);
    *out_is_there = status == WEIR_OK;
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

/* ---- receivers ------------------------------------------------------------------------------- */

static weir_status read_options(struct weir_alert_receiver *receiver, const char *stored_text,
                                struct weir_arena *arena, struct weir_error *err)
{
    struct weir_configured configured;
    WEIR_AUTO(weir_json_auto_free) json_t *options = json_loads(receiver->options, 0, NULL);
    WEIR_AUTO(weir_json_auto_free)
    json_t *stored = stored_text != NULL ? json_loads(stored_text, 0, NULL) : NULL;
    if (!json_is_object(options)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.options: expected an object");
    }
    WEIR_TRY(weir_secrets_restore(options, stored, WEIR_RECEIVER_SECRETS, "$.options", err));
    WEIR_TRY(weir_receiver_read(receiver->kind, options, "$.options", arena, &configured, err));
    receiver->options = weir_json_text(options, arena);
    return WEIR_OK;
}

weir_status weir_alert_receiver_set(struct weir_txn *txn, struct weir_alert_receiver *receiver,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_error *err)
{
    struct weir_alert_receiver before;
    bool is_there;
    WEIR_TRY(
        find(txn, &weir_alert_receiver_resource, receiver->name, arena, &before, &is_there, err));
    WEIR_TRY(check_texts("projects", receiver->projects, err));
    bool is_same_kind = is_there && strcmp(before.kind, receiver->kind) == 0;
    WEIR_TRY(read_options(receiver, is_same_kind ? before.options : NULL, arena, err));
    if (!is_there) {
        WEIR_TRY(
            check_count(txn, &weir_alert_receiver_resource, NULL, WEIR_ALERT_RECEIVERS_MAX, err));
    }
    receiver->created_by = is_there ? before.created_by : receiver->created_by;
    receiver->created_ms = is_there ? before.created_ms : now_ms;
    receiver->updated_ms = now_ms;
    receiver->is_failing = is_there && before.is_failing;
    receiver->last_sent_ms = is_there ? before.last_sent_ms : 0;
    return weir_txn_upsert(txn, &weir_alert_receiver_resource, receiver, err);
}

weir_status weir_alert_receiver_delete(struct weir_txn *txn, const char *name, int64_t now_ms,
                                       struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_query query = {.limit = WEIR_QUERY_LIMIT_MAX};
    void *rules;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_alert_rule_resource, &query, arena, &rules, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_alert_rule *rule = (const struct weir_alert_rule *)rules + i;
        if (notify_list_has(rule->receivers, name) || notify_list_has(rule->escalate_to, name)) {
            return weir_error_set(err, WEIR_ERR_CONFLICT, "rule \"%s\" tells receiver \"%.63s\"",
                                  rule->name, name);
        }
    }
    WEIR_TRY(weir_txn_delete(txn, &weir_alert_receiver_resource, name, err));
    return notify_queue_forget(txn, name, now_ms, arena, err);
}

bool weir_alert_receiver_serves(const struct weir_alert_receiver *receiver, const char *project)
{
    return receiver->projects == NULL || project == NULL ||
           notify_list_has(receiver->projects, project);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static weir_status check_time(const char *name, int64_t time_ms, struct weir_error *err)
{
    return time_ms >= 0 && time_ms <= WEIR_ALERT_TIME_MAX_MS
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected 0 to %lld", name,
                                (long long)WEIR_ALERT_TIME_MAX_MS);
}

static weir_status check_receivers(struct weir_txn *txn, const struct weir_alert_rule *rule,
                                   const char *name, const char *list, struct weir_arena *arena,
                                   struct weir_error *err)
{
    WEIR_TRY(check_texts(name, list, err));
    WEIR_AUTO(weir_json_auto_free)
    json_t *items = list != NULL ? json_loads(list, 0, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const char *text = json_string_value(json_array_get(items, i));
        struct weir_alert_receiver receiver;
        WEIR_TRY(weir_txn_get(txn, &weir_alert_receiver_resource, text, arena, &receiver, err));
        if (!weir_alert_receiver_serves(&receiver, rule->project)) {
            return weir_error_set(err, WEIR_ERR_DENIED,
                                  "receiver \"%s\" is not for project \"%s\": ask an admin of the "
                                  "platform",
                                  receiver.name, rule->project);
        }
    }
    return WEIR_OK;
}

/* An action does what its maker may. A rule that is disabled does nothing: who may not act may so stop it. */
static weir_status check_right(const struct weir_alert_rule *rule,
                               const struct weir_identity *maker, const struct weir_kind *action,
                               const char *where, struct weir_error *err)
{
    enum weir_right right = ((const struct weir_alert_action_ops *)action->ops)->right;
    if (rule->is_disabled || weir_identity_may(maker, right, rule->project)) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "%s: a rule does no more than who sets it: the action %s needs the right "
                          "to %s %s %s%.63s, which \"%.63s\" does not have here; leave it out, "
                          "disable the rule, or have somebody set it who may",
                          where, action->name, weir_right_verb(right), weir_right_noun(right),
                          rule->project != NULL ? "in project " : "on the platform",
                          rule->project != NULL ? rule->project : "", maker->user.name);
}

static weir_status check_actions(const struct weir_alert_rule *rule,
                                 const struct weir_identity *maker, struct weir_arena *arena,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *items = rule->actions != NULL ? json_loads(rule->actions, 0, NULL) : NULL;
    if (rule->actions != NULL &&
        (!json_is_array(items) || json_array_size(items) > WEIR_ALERT_LIST_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.actions: expected a list of at most %d",
                              WEIR_ALERT_LIST_MAX);
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        struct weir_configured action;
        const char *where = weir_arena_printf(arena, "$.actions[%zu]", i);
        WEIR_TRY(weir_registry_read(&weir_alert_actions, json_array_get(items, i), where, arena,
                                    &action, err));
        WEIR_TRY(check_right(rule, maker, action.kind, where, err));
    }
    return WEIR_OK;
}

static weir_status check_rule(struct weir_txn *txn, const struct weir_alert_rule *rule,
                              const struct weir_identity *maker, struct weir_arena *arena,
                              struct weir_error *err)
{
    const struct notify_lists lists = {rule->kinds, rule->subjects, rule->severities};
    WEIR_TRY(notify_match_check(&lists, err));
    WEIR_TRY(check_time("hold_ms", rule->hold_ms, err));
    WEIR_TRY(check_time("group_ms", rule->group_ms, err));
    WEIR_TRY(check_time("escalate_ms", rule->escalate_ms, err));
    WEIR_TRY(check_time("action_interval_ms", rule->action_interval_ms, err));
    if (strcmp(rule->group_by, "none") != 0 && strcmp(rule->group_by, "subject") != 0 &&
        strcmp(rule->group_by, "rule") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.group_by: expected none, subject or rule");
    }
    if ((rule->escalate_ms > 0) != (rule->escalate_to != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$: escalate_ms and escalate_to belong together");
    }
    WEIR_TRY(check_receivers(txn, rule, "receivers", rule->receivers, arena, err));
    WEIR_TRY(check_receivers(txn, rule, "escalate_to", rule->escalate_to, arena, err));
    return check_actions(rule, maker, arena, err);
}

static weir_status check_room(struct weir_txn *txn, const char *project, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("project", EQ, project))};
    return check_count(txn, &weir_alert_rule_resource, &query, WEIR_ALERT_RULES_MAX, err);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

weir_status weir_alert_rule_set(struct weir_txn *txn, struct weir_alert_rule *rule,
                                const struct weir_identity *maker, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err)
{
    struct weir_alert_rule before;
    bool is_there;
    WEIR_TRY(find(txn, &weir_alert_rule_resource, rule->name, arena, &before, &is_there, err));
    WEIR_TRY(check_rule(txn, rule, maker, arena, err));
    if (is_there && !is_same_text(before.project, rule->project)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "rule \"%s\" is of %s%s: delete it first, or take another name",
                              rule->name, before.project != NULL ? "project " : "the platform",
                              before.project != NULL ? before.project : "");
    }
    if (!is_there) {
        WEIR_TRY(check_room(txn, rule->project, err));
    }
    rule->set_by = maker->user.name;
    rule->created_by = is_there ? before.created_by : maker->user.name;
    rule->created_ms = is_there ? before.created_ms : now_ms;
    rule->updated_ms = now_ms;
    WEIR_TRY(weir_txn_upsert(txn, &weir_alert_rule_resource, rule, err));
    return weir_txn_exec(txn, sql_look_again, WEIR_NO_BINDS, NULL, err);
}

weir_status weir_alert_rule_delete(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    WEIR_TRY(weir_txn_delete(txn, &weir_alert_rule_resource, name, err));
    return weir_txn_exec(txn, sql_forget_firings, WEIR_BINDS(WEIR_BIND_TEXT("rule", name)), NULL,
                         err);
}

/* ---- silences -------------------------------------------------------------------------------- */

/* One alert is named by its identifier, and silenced by its key, under which it may come again. */
static weir_status name_alert(struct weir_txn *txn, struct weir_alert_silence *silence,
                              struct weir_arena *arena, struct weir_error *err)
{
    struct weir_alert alert;
    if (silence->alert == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(txn, &weir_alert_resource, silence->alert, arena, &alert, err));
    silence->alert = alert.key;
    silence->project = silence->project == NULL ? alert.project : silence->project;
    return WEIR_OK;
}

weir_status weir_alert_silence_begin(struct weir_txn *txn, struct weir_alert_silence *silence,
                                     int64_t now_ms, struct weir_arena *arena,
                                     struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    const struct notify_lists lists = {silence->kinds, silence->subjects, silence->severities};
    if (silence->alert == NULL && silence->kinds == NULL && silence->subjects == NULL &&
        silence->severities == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$: say what to silence: alert, kinds, subjects or severities");
    }
    WEIR_TRY(notify_match_check(&lists, err));
    if (silence->until_ms <= now_ms || silence->until_ms > now_ms + WEIR_ALERT_SILENCE_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.until_ms: expected a time in the next 366 days");
    }
    WEIR_TRY(name_alert(txn, silence, arena, err));
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("project", EQ, silence->project),
                                                  WEIR_FILTER_INT("until_ms", GT, now_ms),
                                                  WEIR_FILTER_INT("ended_ms", EQ, 0))};
    WEIR_TRY(check_count(txn, &weir_alert_silence_resource, &query, WEIR_ALERT_SILENCES_MAX, err));
    weir_uuid_make(id);
    silence->id = weir_arena_strdup(arena, id);
    silence->created_ms = now_ms;
    silence->ended_by = NULL;
    silence->ended_ms = 0;
    WEIR_TRY(weir_txn_insert(txn, &weir_alert_silence_resource, silence, err));
    return weir_txn_exec(txn, sql_look_again, WEIR_NO_BINDS, NULL, err);
}

weir_status weir_alert_silence_end(struct weir_txn *txn, const char *id, const char *actor,
                                   int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_alert_silence silence;
    WEIR_TRY(weir_txn_get(txn, &weir_alert_silence_resource, id, arena, &silence, err));
    if (silence.ended_ms > 0 || silence.until_ms <= now_ms) {
        return WEIR_OK;
    }
    silence.ended_by = (char *)actor;
    silence.ended_ms = now_ms;
    WEIR_TRY(weir_txn_update(txn, &weir_alert_silence_resource, &silence,
                             WEIR_FIELDS("ended_by", "ended_ms"), err));
    return weir_txn_exec(txn, sql_look_again, WEIR_NO_BINDS, NULL, err);
}
