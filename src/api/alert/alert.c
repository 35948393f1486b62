/** Alerts, and who is told of them: rules, receivers, silences, deliveries (notify/notify.h). */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/ion/health.h"

#include "control/control.h"
#include "notify/notify.h"
#include "notify/receiver.h"
#include "store/event.h"
#include "store/stmt.h"
#include "watch/watch.h"

#include <string.h>

#define LIST_LIMIT_MAX     1000
#define FIRED_SINCE_MS     ((int64_t)30 * 24 * 3600 * 1000)
#define ACTION_INTERVAL_MS ((int64_t)3600 * 1000)
#define DETAILS_MAX        200 /* firings, deliveries of one alert that an answer has */

/* ---- alerts ---------------------------------------------------------------------------------- */

/* What it is at this moment, in one word. */
static const char *status_of(const struct weir_alert *alert, int64_t now_ms)
{
    if (strcmp(alert->state, "resolved") == 0) {
        return "resolved";
    }
    if (alert->silenced_ms > now_ms) {
        return "silenced";
    }
    return strcmp(alert->state, "acknowledged") == 0 ? "acknowledged" : "raised";
}

static struct api_alert alert_view(const struct api_call *call, const struct weir_alert *alert)
{
    return (struct api_alert){.row = alert, .status = status_of(alert, call->now_ms)};
}

/* What the server shows of itself and could not be stored, perhaps because nothing can. */
static weir_status list_unstored(struct api_call *call, struct weir_txn *txn,
                                 struct weir_alert **out, size_t *out_n, struct weir_error *err)
{
    struct weir_alert *alerts;
    size_t n;
    WEIR_TRY(weir_watch_alerts(txn, call->arena, &alerts, &n, err));
    size_t n_stored = n;
    api_add_vitals(call, &alerts, &n);
    *out = &alerts[n_stored];
    *out_n = 0;
    for (size_t i = n_stored; i < n; i++) {
        bool fits;
        WEIR_TRY(api_row_fits(call, &alerts[i], &fits, err));
        if (fits) {
            (*out)[(*out_n)++] = alerts[i];
        }
    }
    return WEIR_OK;
}

weir_status api_alert_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    bool newest = api_query_bool(call, "newest");
    const struct weir_query of = {.order_by = newest ? "raised_ms" : NULL, .is_descending = newest};
    struct api_rows rows;
    struct weir_alert *unstored = NULL;
    size_t n = 0, n_unstored = 0;
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    if (!api_query_has(call, "cursor") && call->rows.is_all) {
        WEIR_TRY(list_unstored(call, txn, &unstored, &n_unstored, err));
    }
    const struct weir_alert *stored = rows.items;
    struct api_alert *views = WEIR_ARENA_ARRAY(call->arena, n_unstored + rows.n, struct api_alert);
    for (size_t i = 0; i < n_unstored; i++) {
        views[n++] = alert_view(call, &unstored[i]);
    }
    for (size_t i = 0; i < rows.n; i++) {
        views[n++] = alert_view(call, &stored[i]);
    }
    api_answer_views(call, api_alert_view(), views, n, rows.next);
    return WEIR_OK;
}

weir_status api_alert_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("alert", EQ, call->params[0])),
                                  .limit = DETAILS_MAX};
    struct weir_alert alert;
    struct api_alert_details details;
    void *firings, *deliveries;
    WEIR_TRY(weir_txn_get(txn, &weir_alert_resource, call->params[0], call->arena, &alert, err));
    WEIR_TRY(weir_txn_list(txn, &weir_alert_firing_resource, &of, call->arena, &firings,
                           &details.n_firings, NULL, err));
    WEIR_TRY(weir_txn_list(txn, &weir_alert_delivery_resource, &of, call->arena, &deliveries,
                           &details.n_deliveries, NULL, err));
    details.firings = firings;
    details.deliveries = deliveries;
    struct api_alert view = alert_view(call, &alert);
    view.details = &details;
    api_answer(call, weir_view_to_json(api_alert_view(), &view));
    return WEIR_OK;
}

/* After a change: tell of it, and answer the alert. */
static weir_status tell_and_answer(struct api_call *call, struct weir_txn *txn, const char *kind,
                                   const char *verb, const char *note, struct weir_error *err)
{
    struct weir_alert alert;
    struct control control = api_control(call);
    WEIR_TRY(weir_txn_get(txn, &weir_alert_resource, call->params[0], call->arena, &alert, err));
    if (kind != NULL) {
        WEIR_TRY(control_log(&control, txn, "alerts", kind,
                             alert.subject != NULL ? alert.subject : "alert",
                             weir_arena_printf(call->arena, "%s %s: %s%s%s%s", call->actor, verb,
                                               alert.message, note != NULL ? " (" : "",
                                               note != NULL ? note : "", note != NULL ? ")" : ""),
                             err));
    }
    const struct api_alert its = alert_view(call, &alert);
    json_t *view = weir_view_to_json(api_alert_view(), &its);
    control_publish(&control, "alerts", json_incref(view));
    api_answer(call, view);
    return WEIR_OK;
}

/* The path's alert, and the body: {note}. */
static weir_status read_alert(struct api_call *call, struct weir_txn *txn, struct weir_alert *out,
                              const char **out_note, struct weir_error *err)
{
    WEIR_TRY(api_body_only(call, (const char *const[]){"note", NULL}, err));
    WEIR_TRY(api_body_text(call, "note", out_note, err));
    return weir_txn_get(txn, &weir_alert_resource, call->params[0], call->arena, out, err);
}

weir_status api_alert_acknowledge(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_alert alert;
    const char *note;
    WEIR_TRY(read_alert(call, txn, &alert, &note, err));
    bool was_open = strcmp(alert.state, "open") == 0;
    WEIR_TRY(weir_alert_acknowledge(txn, call->params[0], call->actor, note, call->now_ms, err));
    return tell_and_answer(call, txn, was_open ? "alert_acknowledged" : NULL, "looks after", note,
                           err);
}

weir_status api_alert_resolve(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert alert;
    const char *note;
    WEIR_TRY(read_alert(call, txn, &alert, &note, err));
    WEIR_TRY(weir_alert_end(txn, call->params[0], call->actor, call->now_ms, err));
    return tell_and_answer(call, txn, "alert_resolved", "says that it is over", note, err);
}

/* ---- what the parts below share --------------------------------------------------------------- */

/* To the log of the project, or of the platform. */
static weir_status log_of(struct api_call *call, struct weir_txn *txn, const char *project,
                          const char *kind, const char *message, struct weir_error *err)
{
    struct control control = api_control(call);
    const char *subject =
        project != NULL ? weir_arena_printf(call->arena, "project/%s", project) : "server/alerts";
    return control_log(&control, txn, "alerts", kind, subject, message, err);
}

/* The path names it; the body may too, and then the same. */
static weir_status name_by_path(struct api_call *call, struct weir_error *err)
{
    const json_t *name = json_object_get(call->body, "name");
    if (name != NULL &&
        (!json_is_string(name) || strcmp(json_string_value(name), call->params[0]) != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.name: the path names \"%.63s\"",
                              call->params[0]);
    }
    json_object_set_new(call->body, "name", json_string(call->params[0]));
    return WEIR_OK;
}

/* Whoever may do it in one project only need not name it. */
static void name_only_project(struct api_call *call)
{
    if (!call->rows.is_all && call->rows.n_projects == 1 &&
        json_object_get(call->body, "project") == NULL) {
        json_object_set_new(call->body, "project", json_string(call->rows.projects[0]));
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static weir_status rule_view(struct api_call *call, struct weir_txn *txn,
                             const struct weir_alert_rule *rule, struct api_alert_rule *out,
                             struct weir_error *err)
{
    static const char sql[] =
        "SELECT count(*) FROM alert_firings WHERE rule = :rule AND told_ms > :since";
    *out = (struct api_alert_rule){.row = rule};
    return weir_txn_query_int(txn, sql,
                              WEIR_BINDS(WEIR_BIND_TEXT("rule", rule->name),
                                         WEIR_BIND_INT("since", call->now_ms - FIRED_SINCE_MS)),
                              0, &out->n_fired, err);
}

weir_status api_rule_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){.limit = LIST_LIMIT_MAX}, &rows, err));
    const struct weir_alert_rule *rules = rows.items;
    struct api_alert_rule *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_alert_rule);
    for (size_t i = 0; i < rows.n; i++) {
        WEIR_TRY(rule_view(call, txn, &rules[i], &views[i], err));
    }
    api_answer_views(call, api_alert_rule_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

weir_status api_rule_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_rule rule;
    struct api_alert_rule view;
    WEIR_TRY(
        weir_txn_get(txn, &weir_alert_rule_resource, call->params[0], call->arena, &rule, err));
    WEIR_TRY(rule_view(call, txn, &rule, &view, err));
    api_answer(call, weir_view_to_json(api_alert_rule_view(), &view));
    return WEIR_OK;
}

weir_status api_rule_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_rule rule = {
        .group_by = "rule", .tells_end = true, .action_interval_ms = ACTION_INTERVAL_MS};
    WEIR_TRY(name_by_path(call, err));
    name_only_project(call);
    WEIR_TRY(weir_record_from_json(&weir_alert_rule_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &rule, err));
    WEIR_TRY(weir_alert_rule_set(txn, &rule, &call->identity, call->now_ms, call->arena, err));
    WEIR_TRY(log_of(
        call, txn, rule.project, "alert_rule_set",
        weir_arena_printf(call->arena, "Rule %s of alerts was set by %s.", rule.name, call->actor),
        err));
    return api_rule_get(call, txn, err);
}

weir_status api_rule_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_rule rule;
    WEIR_TRY(
        weir_txn_get(txn, &weir_alert_rule_resource, call->params[0], call->arena, &rule, err));
    WEIR_TRY(weir_alert_rule_delete(txn, call->params[0], err));
    WEIR_TRY(log_of(call, txn, rule.project, "alert_rule_deleted",
                    weir_arena_printf(call->arena, "Rule %s of alerts was deleted by %s.",
                                      rule.name, call->actor),
                    err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- silences -------------------------------------------------------------------------------- */

weir_status api_silence_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_silence silence = {0};
    if (json_object_get(call->body, "alert") == NULL) {
        name_only_project(call);
    }
    WEIR_TRY(weir_record_from_json(&weir_alert_silence_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &silence, err));
    silence.created_by = (char *)call->actor;
    WEIR_TRY(weir_alert_silence_begin(txn, &silence, call->now_ms, call->arena, err));
    WEIR_TRY(log_of(call, txn, silence.project, "alerts_silenced",
                    weir_arena_printf(call->arena, "%s silenced alerts%s%s.", call->actor,
                                      silence.note != NULL ? ": " : "",
                                      silence.note != NULL ? silence.note : ""),
                    err));
    api_answer_record(call, &weir_alert_silence_resource, &silence);
    return WEIR_OK;
}

weir_status api_silence_end(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_silence silence;
    WEIR_TRY(weir_txn_get(txn, &weir_alert_silence_resource, call->params[0], call->arena, &silence,
                          err));
    WEIR_TRY(
        weir_alert_silence_end(txn, call->params[0], call->actor, call->now_ms, call->arena, err));
    WEIR_TRY(log_of(call, txn, silence.project, "silence_ended",
                    weir_arena_printf(call->arena, "%s ended a silence of alerts.", call->actor),
                    err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- receivers ------------------------------------------------------------------------------- */

/* An address may itself be a secret: only who may change receivers sees how they are reached. */
static void hide_address(const struct api_call *call, struct weir_alert_receiver *receiver)
{
    if ((call->identity.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_RECEIVERS_CHANGE)) == 0) {
        receiver->options = (char *)"{}";
        receiver->projects = NULL;
    }
}

static weir_status receiver_view(struct api_call *call, struct weir_txn *txn,
                                 struct weir_alert_receiver *receiver,
                                 struct api_alert_receiver *out, struct weir_error *err)
{
    static const char waiting[] =
        "SELECT count(*) FROM alert_deliveries WHERE receiver = :name AND state = 'pending'";
    *out = (struct api_alert_receiver){.row = receiver};
    hide_address(call, receiver);
    return weir_txn_query_int(txn, waiting, WEIR_BINDS(WEIR_BIND_TEXT("name", receiver->name)), 0,
                              &out->n_waiting, err);
}

static bool may_use(const struct api_call *call, const struct weir_alert_receiver *receiver)
{
    bool may = call->rows.is_all;
    for (size_t i = 0; i < call->rows.n_projects && !may; i++) {
        may = weir_alert_receiver_serves(receiver, call->rows.projects[i]);
    }
    return may;
}

weir_status api_receiver_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){.limit = LIST_LIMIT_MAX}, &rows, err));
    struct weir_alert_receiver *receivers = rows.items;
    struct api_alert_receiver *views =
        WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_alert_receiver);
    size_t n_views = 0;
    for (size_t i = 0; i < rows.n; i++) {
        if (may_use(call, &receivers[i])) {
            WEIR_TRY(receiver_view(call, txn, &receivers[i], &views[n_views++], err));
        }
    }
    api_answer_views(call, api_alert_receiver_view(), views, n_views, rows.next);
    return WEIR_OK;
}

weir_status api_receiver_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_receiver receiver;
    struct api_alert_receiver view;
    WEIR_TRY(weir_txn_get(txn, &weir_alert_receiver_resource, call->params[0], call->arena,
                          &receiver, err));
    if (!may_use(call, &receiver)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "receiver \"%.63s\" not found",
                              call->params[0]);
    }
    WEIR_TRY(receiver_view(call, txn, &receiver, &view, err));
    api_answer(call, weir_view_to_json(api_alert_receiver_view(), &view));
    return WEIR_OK;
}

weir_status api_receiver_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_receiver receiver = {0};
    WEIR_TRY(name_by_path(call, err));
    WEIR_TRY(weir_record_from_json(&weir_alert_receiver_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &receiver, err));
    receiver.created_by = (char *)call->actor;
    WEIR_TRY(weir_alert_receiver_set(txn, &receiver, call->now_ms, call->arena, err));
    WEIR_TRY(log_of(call, txn, NULL, "alert_receiver_set",
                    weir_arena_printf(call->arena, "Receiver %s of alerts was set by %s.",
                                      receiver.name, call->actor),
                    err));
    return api_receiver_get(call, txn, err);
}

weir_status api_receiver_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(weir_alert_receiver_delete(txn, call->params[0], call->now_ms, call->arena, err));
    WEIR_TRY(log_of(call, txn, NULL, "alert_receiver_deleted",
                    weir_arena_printf(call->arena, "Receiver %s of alerts was deleted by %s.",
                                      call->params[0], call->actor),
                    err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_receiver_test(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert_delivery delivery;
    char *id;
    WEIR_TRY(weir_notify_test(txn, call->params[0], call->api->server_url, call->now_ms,
                              call->arena, &id, err));
    WEIR_TRY(weir_txn_get(txn, &weir_alert_delivery_resource, id, call->arena, &delivery, err));
    api_answer_record(call, &weir_alert_delivery_resource, &delivery);
    return WEIR_OK;
}
