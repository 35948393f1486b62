/* Messages: of which alerts they tell, and to whom they go. */
#include "notify/look_private.h"

#include "base/clock.h"
#include "base/json.h"
#include "notify/queue.h"
#include "store/table.h"

#include <string.h>

#define ALERTS_IN_MESSAGE 50

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
    const struct look_rule *rule;
    const char *event;
    const char *first_alert;
    json_t *alerts;
    bool is_escalated; /* those who were told by the escalation are told, too */
};

static bool is_told(const struct message *message, const struct look_receiver *receiver)
{
    const struct look_rule *rule = message->rule;
    bool is_of_rule = notify_words_name(&rule->receivers, receiver->record->name);
    bool is_of_escalation = notify_words_name(&rule->escalate_to, receiver->record->name);
    if (strcmp(message->event, WEIR_DELIVERY_ESCALATED) == 0) {
        return is_of_escalation;
    }
    if (!is_of_rule && !(message->is_escalated && is_of_escalation)) {
        return false;
    }
    if (strcmp(message->event, WEIR_DELIVERY_REPEATED) == 0) {
        return receiver->forgets;
    }
    return strcmp(message->event, WEIR_DELIVERY_RESOLVED) != 0 || rule->record->tells_end ||
           receiver->forgets;
}

/* As weir_alert_receiver_serves, of what was read once. */
static bool serves(const struct look_receiver *receiver, const char *project)
{
    return receiver->projects.is_any || project == NULL ||
           notify_words_name(&receiver->projects, project);
}

static weir_status send_message(struct looking *l, const struct message *message)
{
    const struct weir_notify_look *look = l->look;
    const struct weir_alert_rule *rule = message->rule->record;
    json_t *object =
        json_pack("{s:s,s:s,s:s?,s:s?,s:O}", "event", message->event, "rule", rule->name, "project",
                  rule->project, "server", look->server_url, "alerts", message->alerts);
    put_time(object, "time", look->now_ms);
    char *text = weir_json_text(object, l->arena);
    json_decref(object);
    for (size_t i = 0; i < l->n_receivers; i++) {
        const struct look_receiver *receiver = &l->receivers[i];
        const struct weir_alert_delivery delivery = {.receiver = receiver->record->name,
                                                     .rule = rule->name,
                                                     .project = rule->project,
                                                     .alert = (char *)message->first_alert,
                                                     .event = (char *)message->event,
                                                     .message = text};
        if (!is_told(message, receiver) || !serves(receiver, rule->project)) {
            continue;
        }
        WEIR_TRY(notify_queue_add(l->txn, &delivery, look->now_ms, l->arena, NULL, l->err));
        l->look->n_deliveries++;
    }
    return WEIR_OK;
}

/* The message that begins with this item: with others of its group, as many as there is room for. */
static weir_status send_group(struct looking *l, struct look_item *first, const char *event)
{
    struct message message = {.rule = first->rule,
                              .event = event,
                              .first_alert = first->alert->id,
                              .alerts = json_array()};
    for (struct look_item *item = first;
         item != NULL && json_array_size(message.alerts) < ALERTS_IN_MESSAGE; item = item->next) {
        if (!item->is_taken) {
            item->is_taken = true;
            json_array_append_new(message.alerts, describe(item->alert));
            message.is_escalated = message.is_escalated || item->firing.escalated_ms > 0;
        }
    }
    weir_status status = send_message(l, &message);
    json_decref(message.alerts);
    return status;
}

weir_status looking_send(struct looking *l, enum notify_deed deed, const char *event)
{
    for (size_t i = 0; i < l->n_items; i++) {
        l->items[i].is_taken = l->items[i].decision.deed != deed || l->items[i].rule == NULL;
    }
    for (size_t i = 0; i < l->n_items; i++) {
        if (!l->items[i].is_taken) {
            WEIR_TRY(send_group(l, &l->items[i], event));
        }
    }
    return WEIR_OK;
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
