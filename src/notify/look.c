/* One look at what is due: load, decide (decide.h), write firings, messages and actions. */
#include "notify/look_private.h"

#include "base/grow.h"
#include "base/json.h"
#include "notify/receiver.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

static const char sql_is_due[] =
    "SELECT EXISTS (SELECT 1 FROM alerts WHERE looked = 0)"
    " OR EXISTS (SELECT 1 FROM alerts WHERE silenced_ms > 0 AND silenced_ms <= :now)"
    " OR EXISTS (SELECT 1 FROM alert_firings WHERE due_ms > 0 AND due_ms <= :now)";
/* What is due, and behind it what may share its message: of a rule that has something to tell, all that
 * waits and is not held back. What is held back must not take the place of what is due. */
static const char sql_due_alerts[] =
    "SELECT id FROM (SELECT id, raised_ms, 0 AS place FROM alerts WHERE looked = 0"
    " UNION ALL SELECT id, raised_ms, 0 FROM alerts WHERE silenced_ms > 0 AND silenced_ms <= :now"
    " UNION ALL SELECT a.id, a.raised_ms, 0 FROM alert_firings f JOIN alerts a ON a.id = f.alert"
    " WHERE f.due_ms > 0 AND f.due_ms <= :now"
    " UNION ALL SELECT a.id, a.raised_ms, 1 FROM alert_firings f JOIN alerts a ON a.id = f.alert"
    " WHERE f.state = 'waiting' AND a.silenced_ms = 0 AND a.is_sandbox = 0 AND f.rule IN"
    " (SELECT rule FROM alert_firings WHERE due_ms > 0 AND due_ms <= :now)) AS due"
    " GROUP BY id, raised_ms ORDER BY min(place), raised_ms, id LIMIT :n";
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

weir_status weir_notify_is_due(struct weir_txn *txn, int64_t now_ms, bool *out,
                               struct weir_error *err)
{
    int64_t is_due;
    WEIR_TRY(weir_txn_query_int(txn, sql_is_due, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), 0,
                                &is_due, err));
    *out = is_due != 0;
    return WEIR_OK;
}

/* ---- what rules make of an alert ------------------------------------------------------------- */

/* The silence that holds it longest. */
static void see_silences(const struct looking *l, struct weir_alert *alert, const char *project)
{
    alert->silence = NULL;
    alert->silenced_ms = 0;
    for (size_t i = 0; i < l->n_silences; i++) {
        const struct look_silence *silence = &l->silences[i];
        if (silence->record->until_ms > alert->silenced_ms &&
            notify_is_held_back(silence->record, &silence->match, alert, project,
                                l->look->now_ms)) {
            alert->silence = silence->record->id;
            alert->silenced_ms = silence->record->until_ms;
        }
    }
}

static void add_item(struct looking *l, struct look_item *item)
{
    const struct weir_alert_rule *rule = item->rule != NULL ? item->rule->record : NULL;
    item->decision = notify_decide(rule, item->alert, &item->firing, l->look->now_ms);
    weir_arena_grow(l->arena, &l->items, sizeof *l->items, l->n_items, &l->cap_items);
    l->items[l->n_items++] = *item;
}

/* Its rule had let go of it, and wants it again: as if it were new, but for what was done. */
static void begin_again(struct weir_alert_firing *firing)
{
    firing->state = WEIR_FIRING_WAITING;
    firing->told_ms = 0;
    firing->escalated_ms = 0;
    firing->resend_ms = 0;
    firing->over_ms = 0;
}

static weir_status see_old_firings(struct looking *l, const struct weir_alert *alert,
                                   const char *project)
{
    const struct weir_query of_alert = {WEIR_FILTERS(WEIR_FILTER_TEXT("alert", EQ, alert->id)),
                                        .limit = WEIR_QUERY_LIMIT_MAX};
    void *firings;
    size_t n;
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_firing_resource, &of_alert, l->arena, &firings, &n,
                           NULL, l->err));
    for (size_t i = 0; i < n; i++) {
        struct look_item item = {.firing = ((const struct weir_alert_firing *)firings)[i],
                                 .alert = alert};
        struct look_rule *rule = looking_rule(l, item.firing.rule);
        if (rule != NULL) {
            /* What it is about may be gone by now: it was of the rule's project. */
            const char *of = project != NULL ? project : rule->record->project;
            bool is_wanted = notify_rule_wants(rule->record, &rule->match, alert, of);
            item.rule = is_wanted ? rule : NULL;
            rule->seen = l->look->n_alerts;
        }
        if (item.rule != NULL && strcmp(item.firing.state, WEIR_FIRING_OVER) == 0 &&
            strcmp(alert->state, "resolved") != 0) {
            begin_again(&item.firing);
        }
        add_item(l, &item);
    }
    return WEIR_OK;
}

static void see_new_firings(struct looking *l, const struct weir_alert *alert, const char *project)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct look_rule *rule = &l->rules[i];
        const struct weir_alert_rule *record = rule->record;
        bool was_before = strcmp(alert->state, "resolved") == 0 &&
                          alert->resolved_ms < record->created_ms; /* nobody had the rule then */
        if (rule->seen == l->look->n_alerts || was_before ||
            !notify_rule_wants(record, &rule->match, alert, project)) {
            continue;
        }
        struct look_item item = {
            .firing = {.id = weir_arena_printf(l->arena, "%s/%s", record->name, alert->id),
                       .rule = record->name,
                       .alert = alert->id,
                       .project = record->project,
                       .subject = alert->subject,
                       .state = WEIR_FIRING_WAITING,
                       .raised_ms = alert->raised_ms},
            .alert = alert,
            .rule = rule};
        add_item(l, &item);
    }
}

static weir_status see_alert(struct looking *l, const char *id)
{
    struct weir_alert *alert = WEIR_ARENA_NEW(l->arena, struct weir_alert);
    l->look->n_alerts++;
    WEIR_TRY(weir_txn_get(l->txn, &weir_alert_resource, id, l->arena, alert, l->err));
    if (alert->subject != NULL && l->look->is_sandbox != NULL) {
        WEIR_TRY(l->look->is_sandbox(l->txn, alert->subject, l->arena, &alert->is_sandbox, l->err));
    }
    see_silences(l, alert, alert->project);
    WEIR_TRY(see_old_firings(l, alert, alert->project));
    see_new_firings(l, alert, alert->project);
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
    looking_group(l);
    for (size_t i = 0; i < l->n_items; i++) {
        const struct look_item *item = &l->items[i];
        if (item->decision.deed == NOTIFY_TELL && item->decision.due_ms <= l->look->now_ms) {
            item->first->is_group_due = true;
        }
    }
    for (size_t i = 0; i < l->n_items; i++) {
        struct look_item *item = &l->items[i];
        if (item->decision.deed == NOTIFY_TELL && !item->first->is_group_due) {
            item->decision.deed = NOTIFY_NOTHING;
        }
    }
}

/* ---- actions --------------------------------------------------------------------------------- */

static void note_action(json_t *noted, const json_t *action, const char *state, const char *message)
{
    json_array_append_new(noted,
                          json_pack("{s:O,s:s,s:s?}", "kind", json_object_get(action, "kind"),
                                    "state", state, "message", message));
}

static weir_status decide_actions(struct looking *l, struct look_item *item, const json_t *actions,
                                  json_t *noted)
{
    const struct weir_alert_rule *rule = item->rule->record;
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
                                                  .maker = rule->set_by,
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

static weir_status act(struct looking *l, struct look_item *item)
{
    const char *wanted = item->rule->record->actions;
    if (wanted == NULL || l->look->act == NULL || item->firing.acted_ms > 0) {
        return WEIR_OK;
    }
    json_t *actions = json_loads(wanted, 0, NULL), *noted = json_array();
    weir_status status = decide_actions(l, item, actions, noted);
    item->firing.actions =
        json_array_size(noted) > 0 ? weir_json_text(noted, l->arena) : item->firing.actions;
    json_decref(actions);
    json_decref(noted);
    return status;
}

/* ---- firings --------------------------------------------------------------------------------- */

/* When to look at it again, now that the deed is done. */
static void set_due(struct looking *l, struct look_item *item)
{
    struct weir_alert_firing *firing = &item->firing;
    int64_t now_ms = l->look->now_ms;
    bool is_new_start = item->decision.deed == NOTIFY_TELL || item->decision.deed == NOTIFY_REPEAT;
    if (is_new_start && item->rule->has_forgetful) {
        firing->resend_ms = now_ms + WEIR_RECEIVER_RESEND_MS;
    } else if (item->decision.deed == NOTIFY_REPEAT) {
        firing->resend_ms = 0;
    }
    const struct notify_decision next =
        notify_decide(item->rule->record, item->alert, firing, now_ms);
    firing->due_ms = next.deed == NOTIFY_NOTHING ? next.due_ms : now_ms;
}

static weir_status save(struct looking *l, struct look_item *item)
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
        struct look_item *item = &l->items[i];
        bool was_told = item->firing.told_ms > 0;
        if (item->decision.deed == NOTIFY_END && !was_told) {
            item->rule = NULL;
        }
    }
}

static weir_status write_all(struct looking *l)
{
    drop_untold_ends(l);
    WEIR_TRY(looking_send(l, NOTIFY_TELL, WEIR_DELIVERY_RAISED));
    WEIR_TRY(looking_send(l, NOTIFY_TELL_END, WEIR_DELIVERY_RAISED));
    WEIR_TRY(looking_send(l, NOTIFY_TELL_END, WEIR_DELIVERY_RESOLVED));
    WEIR_TRY(looking_send(l, NOTIFY_ESCALATE, WEIR_DELIVERY_ESCALATED));
    WEIR_TRY(looking_send(l, NOTIFY_REPEAT, WEIR_DELIVERY_REPEATED));
    WEIR_TRY(looking_send(l, NOTIFY_END, WEIR_DELIVERY_RESOLVED));
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
    WEIR_TRY(looking_load(&l));
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
    weir_status found = weir_txn_get(txn, &weir_alert_firing_resource, id, arena, &firing, err);
    if (found == WEIR_ERR_NOT_FOUND || (found == WEIR_OK && firing.actions == NULL)) {
        return WEIR_OK; /* its rule was deleted meanwhile */
    }
    WEIR_TRY(found);
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
