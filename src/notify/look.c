/* One look at what is due: load, decide (decide.h), write firings, messages and actions. */
#include "notify/notify.h"

#include "base/clock.h"
#include "base/json.h"
#include "notify/decide.h"
#include "notify/match.h"
#include "notify/queue.h"
#include "notify/receiver.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define ALERTS_IN_MESSAGE 50

static const char sql_is_due[] =
    "SELECT EXISTS (SELECT 1 FROM alerts WHERE looked = 0)"
    " OR EXISTS (SELECT 1 FROM alerts WHERE silenced_ms > 0 AND silenced_ms <= :now)"
    " OR EXISTS (SELECT 1 FROM alert_firings WHERE due_ms > 0 AND due_ms <= :now)";
/* Of a rule that has something to tell all that waits is looked at: it may share the message. */
static const char sql_due_alerts[] =
    "SELECT id FROM (SELECT id, raised_ms FROM alerts WHERE looked = 0"
    " UNION SELECT id, raised_ms FROM alerts WHERE silenced_ms > 0 AND silenced_ms <= :now"
    " UNION SELECT a.id, a.raised_ms FROM alert_firings f JOIN alerts a ON a.id = f.alert"
    " WHERE f.due_ms > 0 AND f.due_ms <= :now"
    " UNION SELECT a.id, a.raised_ms FROM alert_firings f JOIN alerts a ON a.id = f.alert"
    " WHERE f.state = 'waiting' AND f.rule IN (SELECT rule FROM alert_firings WHERE due_ms > 0"
    " AND due_ms <= :now)) AS due ORDER BY raised_ms, id LIMIT :n";
static const char sql_looked[] =
    "UPDATE alerts SET looked = 1, silence = :silence, silenced_ms = :until,"
    " is_sandbox = :sandbox WHERE id = :id";
static const char sql_last_acted[] =
    "SELECT max(acted_ms) FROM alert_firings WHERE rule = :rule AND subject = :subject";
static const char sql_end_silences[] =
    "UPDATE alert_silences SET ended_ms = until_ms WHERE ended_ms = 0 AND until_ms <= :now";
/* Firings of an alert that is gone have nothing to wait for. */
static const char sql_forget_lost[] =
    "UPDATE alert_firings SET due_ms = 0 WHERE due_ms > 0 AND due_ms <= :now"
    " AND NOT EXISTS (SELECT 1 FROM alerts WHERE id = alert_firings.alert)";

/* A firing, what it is of, and what is to be done. */
struct item {
    struct weir_alert_firing firing;
    const struct weir_alert *alert;
    const struct weir_alert_rule *rule; /* NULL: it is gone */
    struct notify_decision decision;
    bool is_taken; /* it is in a message */
};

struct looking {
    struct weir_txn *txn;
    struct weir_notify_look *look;
    struct weir_arena *arena;
    struct weir_error *err;
    struct weir_alert_rule *rules;
    size_t n_rules;
    struct weir_alert_silence *silences;
    size_t n_silences;
    struct weir_alert_receiver *receivers;
    size_t n_receivers;
    struct item *items;
    size_t n_items, cap_items;
};

weir_status weir_notify_is_due(struct weir_txn *txn, int64_t now_ms, bool *out,
                               struct weir_error *err)
{
    int64_t is_due;
    WEIR_TRY(weir_txn_query_int(txn, sql_is_due, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), 0,
                                &is_due, err));
    *out = is_due != 0;
    return WEIR_OK;
}

/* ---- load ------------------------------------------------------------------------------------ */

static weir_status load_all(struct looking *l)
{
    const struct weir_query all = {.limit = WEIR_QUERY_LIMIT_MAX};
    const struct weir_query active = {WEIR_FILTERS(WEIR_FILTER_INT("until_ms", GT, l->look->now_ms),
                                                   WEIR_FILTER_INT("ended_ms", EQ, 0)),
                                      .limit = WEIR_QUERY_LIMIT_MAX};
    void *rules, *silences, *receivers;
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_rule_resource, &all, l->arena, &rules, &l->n_rules,
                           NULL, l->err));
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_silence_resource, &active, l->arena, &silences,
                           &l->n_silences, NULL, l->err));
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_receiver_resource, &all, l->arena, &receivers,
                           &l->n_receivers, NULL, l->err));
    l->rules = rules;
    l->silences = silences;
    l->receivers = receivers;
    return WEIR_OK;
}

static const struct weir_alert_rule *find_rule(const struct looking *l, const char *name)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        if (strcmp(l->rules[i].name, name) == 0) {
            return l->rules[i].is_disabled ? NULL : &l->rules[i];
        }
    }
    return NULL;
}

static struct item *add_item(struct looking *l, const struct item *item)
{
    if (l->n_items == l->cap_items) {
        size_t cap = l->cap_items > 0 ? 2 * l->cap_items : 64;
        struct item *items = WEIR_ARENA_ARRAY(l->arena, cap, struct item);
        if (l->n_items > 0) {
            memcpy(items, l->items, l->n_items * sizeof *items);
        }
        l->items = items;
        l->cap_items = cap;
    }
    l->items[l->n_items] = *item;
    return &l->items[l->n_items++];
}

static bool has_firing(const struct looking *l, size_t from, const char *rule)
{
    for (size_t i = from; i < l->n_items; i++) {
        if (strcmp(l->items[i].firing.rule, rule) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what rules make of an alert ------------------------------------------------------------- */

/* The silence that holds it longest. */
static void see_silences(const struct looking *l, struct weir_alert *alert, const char *project)
{
    alert->silence = NULL;
    alert->silenced_ms = 0;
    for (size_t i = 0; i < l->n_silences; i++) {
        const struct weir_alert_silence *silence = &l->silences[i];
        if (silence->until_ms > alert->silenced_ms &&
            notify_is_held_back(silence, alert, project, l->look->now_ms)) {
            alert->silence = silence->id;
            alert->silenced_ms = silence->until_ms;
        }
    }
}

static weir_status see_old_firings(struct looking *l, const struct weir_alert *alert)
{
    const struct weir_query of_alert = {WEIR_FILTERS(WEIR_FILTER_TEXT("alert", EQ, alert->id)),
                                        .limit = WEIR_QUERY_LIMIT_MAX};
    void *firings;
    size_t n;
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_firing_resource, &of_alert, l->arena, &firings, &n,
                           NULL, l->err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_alert_firing *firing = (const struct weir_alert_firing *)firings + i;
        struct item item = {.firing = *firing, .alert = alert, .rule = find_rule(l, firing->rule)};
        item.decision = notify_decide(item.rule, alert, firing, l->look->now_ms);
        (void)add_item(l, &item);
    }
    return WEIR_OK;
}

static void see_new_firings(struct looking *l, const struct weir_alert *alert, const char *project,
                            size_t from)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct weir_alert_rule *rule = &l->rules[i];
        if (has_firing(l, from, rule->name) || !notify_rule_wants(rule, alert, project)) {
            continue;
        }
        struct item item = {
            .firing = {.id = weir_arena_printf(l->arena, "%s/%s", rule->name, alert->id),
                       .rule = rule->name,
                       .alert = alert->id,
                       .project = rule->project,
                       .subject = alert->subject,
                       .state = WEIR_FIRING_WAITING,
                       .raised_ms = alert->raised_ms},
            .alert = alert,
            .rule = rule};
        item.decision = notify_decide(rule, alert, &item.firing, l->look->now_ms);
        (void)add_item(l, &item);
    }
}

static weir_status see_alert(struct looking *l, const char *id)
{
    struct weir_alert *alert = WEIR_ARENA_NEW(l->arena, struct weir_alert);
    char *project = NULL;
    size_t from = l->n_items;
    WEIR_TRY(weir_txn_get(l->txn, &weir_alert_resource, id, l->arena, alert, l->err));
    if (alert->subject != NULL) {
        WEIR_TRY(weir_subject_project(l->txn, alert->subject, l->arena, &project, l->err));
        if (l->look->is_sandbox != NULL) {
            WEIR_TRY(
                l->look->is_sandbox(l->txn, alert->subject, l->arena, &alert->is_sandbox, l->err));
        }
    }
    see_silences(l, alert, project);
    WEIR_TRY(see_old_firings(l, alert));
    see_new_firings(l, alert, project, from);
    l->look->n_alerts++;
    return weir_txn_exec(l->txn, sql_looked,
                         WEIR_BINDS(WEIR_BIND_TEXT("silence", alert->silence),
                                    WEIR_BIND_INT("until", alert->silenced_ms),
                                    WEIR_BIND_INT("sandbox", alert->is_sandbox),
                                    WEIR_BIND_TEXT("id", alert->id)),
                         NULL, l->err);
}

/* What is ripe is told with its group: when the first of that has waited long enough. */
static void settle_groups(struct looking *l)
{
    for (size_t i = 0; i < l->n_items; i++) {
        const struct item *first = &l->items[i];
        if (first->decision.deed != NOTIFY_TELL || first->decision.due_ms > l->look->now_ms) {
            continue;
        }
        for (size_t k = 0; k < l->n_items; k++) {
            struct item *item = &l->items[k];
            if (item->decision.deed == NOTIFY_TELL && item->rule == first->rule &&
                notify_shares(item->rule, &first->firing, &item->firing)) {
                item->decision.due_ms = WEIR_MIN(item->decision.due_ms, l->look->now_ms);
            }
        }
    }
    for (size_t i = 0; i < l->n_items; i++) {
        struct item *item = &l->items[i];
        if (item->decision.deed == NOTIFY_TELL && item->decision.due_ms > l->look->now_ms) {
            item->decision.deed = NOTIFY_NOTHING;
        }
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put_time(json_t *object, const char *member, int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms > 0) {
        weir_time_format(time_ms, text);
        json_object_set_new(object, member, json_string(text));
    } else {
        json_object_set_new(object, member, json_null());
    }
}

static json_t *describe(const struct weir_alert *alert)
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s?,s:s,s:s,s:I,s:s?}", "id", alert->id, "key", alert->key,
                  "kind", alert->kind, "severity", alert->severity, "subject", alert->subject,
                  "message", alert->message, "state", alert->state, "count",
                  (json_int_t)alert->count, "acknowledged_by", alert->acknowledged_by);
    put_time(object, "raised", alert->raised_ms);
    put_time(object, "last", alert->last_ms);
    put_time(object, "resolved", alert->resolved_ms);
    return object;
}

/* A message under way: of which rule, of what, to whom. */
struct message {
    const struct weir_alert_rule *rule;
    const char *event;
    const char *first_alert;
    json_t *alerts;
    bool is_escalated; /* those who were told by the escalation are told, too */
};

static bool is_told(const struct message *message, const struct weir_alert_receiver *receiver)
{
    const struct weir_alert_rule *rule = message->rule;
    bool is_of_rule = notify_list_has(rule->receivers, receiver->name);
    bool is_of_escalation = notify_list_has(rule->escalate_to, receiver->name);
    if (strcmp(message->event, WEIR_DELIVERY_ESCALATED) == 0) {
        return is_of_escalation;
    }
    if (!is_of_rule && !(message->is_escalated && is_of_escalation)) {
        return false;
    }
    bool forgets = weir_receiver_forgets(receiver->kind);
    if (strcmp(message->event, WEIR_DELIVERY_REPEATED) == 0) {
        return forgets;
    }
    return strcmp(message->event, WEIR_DELIVERY_RESOLVED) != 0 || rule->tells_end || forgets;
}

static weir_status send_message(struct looking *l, const struct message *message)
{
    const struct weir_notify_look *look = l->look;
    json_t *object = json_pack("{s:s,s:s,s:s?,s:s?,s:O}", "event", message->event, "rule",
                               message->rule->name, "project", message->rule->project, "server",
                               look->server_url, "alerts", message->alerts);
    put_time(object, "time", look->now_ms);
    char *text = weir_json_text(object, l->arena);
    json_decref(object);
    for (size_t i = 0; i < l->n_receivers; i++) {
        const struct weir_alert_delivery delivery = {.receiver = l->receivers[i].name,
                                                     .rule = message->rule->name,
                                                     .project = message->rule->project,
                                                     .alert = (char *)message->first_alert,
                                                     .event = (char *)message->event,
                                                     .message = text};
        if (!is_told(message, &l->receivers[i]) ||
            !weir_alert_receiver_serves(&l->receivers[i], message->rule->project)) {
            continue;
        }
        WEIR_TRY(notify_queue_add(l->txn, &delivery, look->now_ms, l->arena, NULL, l->err));
        l->look->n_deliveries++;
    }
    return WEIR_OK;
}

/* All firings with this deed, in messages as their rules group them. */
static weir_status send_all(struct looking *l, enum notify_deed deed, const char *event)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < l->n_items; i++) {
        l->items[i].is_taken = l->items[i].decision.deed != deed || l->items[i].rule == NULL;
    }
    for (size_t i = 0; i < l->n_items && status == WEIR_OK; i++) {
        const struct item *first = &l->items[i];
        struct message message = {
            .rule = first->rule, .event = event, .first_alert = first->alert->id};
        if (first->is_taken) {
            continue;
        }
        message.alerts = json_array();
        for (size_t k = i; k < l->n_items && json_array_size(message.alerts) < ALERTS_IN_MESSAGE;
             k++) {
            struct item *item = &l->items[k];
            if (!item->is_taken && item->rule == first->rule &&
                notify_shares(first->rule, &first->firing, &item->firing)) {
                item->is_taken = true;
                json_array_append_new(message.alerts, describe(item->alert));
                message.is_escalated = message.is_escalated || item->firing.escalated_ms > 0;
            }
        }
        status = send_message(l, &message);
        json_decref(message.alerts);
    }
    return status;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void note_action(json_t *noted, const json_t *action, const char *state, const char *message)
{
    json_array_append_new(noted,
                          json_pack("{s:O,s:s,s:s?}", "kind", json_object_get(action, "kind"),
                                    "state", state, "message", message));
}

static weir_status decide_actions(struct looking *l, struct item *item, const json_t *actions,
                                  json_t *noted)
{
    const struct weir_alert_rule *rule = item->rule;
    const char *subject = item->alert->subject != NULL ? item->alert->subject : "";
    int64_t last_ms;
    size_t i;
    const json_t *action;
    WEIR_TRY(weir_txn_query_int(
        l->txn, sql_last_acted,
        WEIR_BINDS(WEIR_BIND_TEXT("rule", rule->name), WEIR_BIND_TEXT("subject", subject)), 0,
        &last_ms, l->err));
    bool may = notify_may_act(rule, last_ms, l->look->now_ms);
    bool is_ion = strncmp(subject, "ion/", 4) == 0;
    json_array_foreach(actions, i, action)
    {
        if (!is_ion || !may) {
            note_action(noted, action, "skipped",
                        !is_ion ? "the alert is not about an ION"
                                : "the rule acted on it less than its interval ago");
            continue;
        }
        const struct weir_notify_action wanted = {.firing = item->firing.id,
                                                  .rule = rule->name,
                                                  .subject = subject,
                                                  .alert = item->alert->kind,
                                                  .action = weir_json_text(action, l->arena),
                                                  .number = (int64_t)i};
        WEIR_TRY(l->look->act(l->txn, &wanted, l->look->now_ms, l->arena, l->err));
        note_action(noted, action, "decided", NULL);
        item->firing.acted_ms = l->look->now_ms;
    }
    return WEIR_OK;
}

static weir_status act(struct looking *l, struct item *item)
{
    if (item->rule->actions == NULL || l->look->act == NULL) {
        return WEIR_OK;
    }
    json_t *actions = json_loads(item->rule->actions, 0, NULL), *noted = json_array();
    weir_status status = decide_actions(l, item, actions, noted);
    item->firing.actions =
        json_array_size(noted) > 0 ? weir_json_text(noted, l->arena) : item->firing.actions;
    json_decref(actions);
    json_decref(noted);
    return status;
}

/* ---- firings --------------------------------------------------------------------------------- */

static bool rule_has_forgetful(const struct looking *l, const struct weir_alert_rule *rule)
{
    for (size_t i = 0; i < l->n_receivers; i++) {
        if (weir_receiver_forgets(l->receivers[i].kind) &&
            (notify_list_has(rule->receivers, l->receivers[i].name) ||
             notify_list_has(rule->escalate_to, l->receivers[i].name))) {
            return true;
        }
    }
    return false;
}

/* When to look at it again, now that the deed is done. */
static void set_due(struct looking *l, struct item *item)
{
    struct weir_alert_firing *firing = &item->firing;
    int64_t now_ms = l->look->now_ms;
    bool is_new_start = item->decision.deed == NOTIFY_TELL || item->decision.deed == NOTIFY_REPEAT;
    if (is_new_start && rule_has_forgetful(l, item->rule)) {
        firing->resend_ms = now_ms + WEIR_RECEIVER_RESEND_MS;
    } else if (item->decision.deed == NOTIFY_REPEAT) {
        firing->resend_ms = 0;
    }
    firing->due_ms = notify_decide(item->rule, item->alert, firing, now_ms).due_ms;
}

static weir_status save(struct looking *l, struct item *item)
{
    struct weir_alert_firing *firing = &item->firing;
    int64_t now_ms = l->look->now_ms;
    switch (item->decision.deed) {
    case NOTIFY_NOTHING:
        firing->due_ms = item->decision.due_ms;
        break;
    case NOTIFY_TELL:
        firing->state = WEIR_FIRING_TOLD;
        firing->told_ms = now_ms;
        WEIR_TRY(act(l, item));
        set_due(l, item);
        break;
    case NOTIFY_ESCALATE:
        firing->state = WEIR_FIRING_ESCALATED;
        firing->escalated_ms = now_ms;
        set_due(l, item);
        break;
    case NOTIFY_REPEAT:
        set_due(l, item);
        break;
    case NOTIFY_TELL_END:
        firing->told_ms = now_ms;
        /* fall through */
    case NOTIFY_END:
        firing->state = WEIR_FIRING_OVER;
        firing->over_ms = now_ms;
        firing->due_ms = 0;
        firing->resend_ms = 0;
        break;
    }
    return weir_txn_upsert(l->txn, &weir_alert_firing_resource, firing, l->err);
}

/* Of those that end, who was never told has nothing to be told of. */
static void drop_untold_ends(struct looking *l)
{
    for (size_t i = 0; i < l->n_items; i++) {
        struct item *item = &l->items[i];
        bool was_told = item->firing.told_ms > 0;
        if (item->decision.deed == NOTIFY_END && !was_told) {
            item->rule = NULL;
        }
    }
}

static weir_status write_all(struct looking *l)
{
    drop_untold_ends(l);
    WEIR_TRY(send_all(l, NOTIFY_TELL, WEIR_DELIVERY_RAISED));
    WEIR_TRY(send_all(l, NOTIFY_TELL_END, WEIR_DELIVERY_RAISED));
    WEIR_TRY(send_all(l, NOTIFY_TELL_END, WEIR_DELIVERY_RESOLVED));
    WEIR_TRY(send_all(l, NOTIFY_ESCALATE, WEIR_DELIVERY_ESCALATED));
    WEIR_TRY(send_all(l, NOTIFY_REPEAT, WEIR_DELIVERY_REPEATED));
    WEIR_TRY(send_all(l, NOTIFY_END, WEIR_DELIVERY_RESOLVED));
    for (size_t i = 0; i < l->n_items; i++) {
        WEIR_TRY(save(l, &l->items[i]));
    }
    return WEIR_OK;
}

weir_status weir_notify_look(struct weir_txn *txn, struct weir_notify_look *look,
                             struct weir_arena *arena, struct weir_error *err)
{
    struct looking l = {.txn = txn, .look = look, .arena = arena, .err = err};
    char **ids;
    size_t n;
    look->n_alerts = 0;
    look->n_deliveries = 0;
    WEIR_TRY(weir_txn_exec(txn, sql_end_silences, WEIR_BINDS(WEIR_BIND_INT("now", look->now_ms)),
                           NULL, err));
    WEIR_TRY(load_all(&l));
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_due_alerts,
        WEIR_BINDS(WEIR_BIND_INT("now", look->now_ms), WEIR_BIND_INT("n", WEIR_NOTIFY_ALERTS_MAX)),
        arena, &ids, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(see_alert(&l, ids[i]));
    }
    settle_groups(&l);
    WEIR_TRY(write_all(&l));
    return weir_txn_exec(txn, sql_forget_lost, WEIR_BINDS(WEIR_BIND_INT("now", look->now_ms)), NULL,
                         err);
}

weir_status weir_notify_action_done(struct weir_txn *txn, const char *id, int64_t number,
                                    const char *state, const char *message,
                                    struct weir_arena *arena, struct weir_error *err)
{
    struct weir_alert_firing firing;
    struct weir_error missing;
    if (weir_txn_get(txn, &weir_alert_firing_resource, id, arena, &firing, &missing) != WEIR_OK ||
        firing.actions == NULL) {
        return WEIR_OK; /* its rule was deleted meanwhile */
    }
    WEIR_AUTO(weir_json_auto_free) json_t *actions = json_loads(firing.actions, 0, NULL);
    json_t *action = json_array_get(actions, (size_t)number);
    if (action == NULL) {
        return WEIR_OK;
    }
    json_object_set_new(action, "state", json_string(state));
    json_object_set_new(action, "message", message != NULL ? json_string(message) : json_null());
    firing.actions = weir_json_text(actions, arena);
    return weir_txn_update(txn, &weir_alert_firing_resource, &firing, WEIR_FIELDS("actions"), err);
}

weir_status weir_notify_test(struct weir_txn *txn, const char *name, const char *server_url,
                             int64_t now_ms, struct weir_arena *arena, char **out_id,
                             struct weir_error *err)
{
    struct weir_alert_receiver receiver;
    WEIR_TRY(weir_txn_get(txn, &weir_alert_receiver_resource, name, arena, &receiver, err));
    json_t *message = json_pack("{s:s,s:n,s:n,s:s?,s:[]}", "event", WEIR_DELIVERY_TEST, "rule",
                                "project", "server", server_url, "alerts");
    put_time(message, "time", now_ms);
    const struct weir_alert_delivery delivery = {.receiver = receiver.name,
                                                 .event = WEIR_DELIVERY_TEST,
                                                 .message = weir_json_text(message, arena)};
    json_decref(message);
    WEIR_TRY(notify_queue_add(txn, &delivery, now_ms, arena, out_id, err));
    return *out_id != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%d messages wait for receiver \"%s\"",
                                NOTIFY_QUEUE_MAX, receiver.name);
}
