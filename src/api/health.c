/** How it is: of nodes, of IONs, of the whole. */
#include "api/health.h"

#include "api/answer.h"
#include "api/functions.h"
#include "api/node.h"
#include "api/query.h"
#include "api/scope.h"
#include "control/vitals.h"
#include "store/table.h"
#include "watch/watch.h"

#include <string.h>

json_t *api_health_view(const struct weir_health *health)
{
    json_t *since = json_null();
    if (health->since_ms > 0) {
        char text[WEIR_TIME_TEXT_BYTES];
        weir_time_format(health->since_ms, text);
        since = json_string(text);
    }
    return json_pack("{s:s,s:s?,s:o}", "status", health->status, "reason", health->reason, "since",
                     since);
}

weir_status api_node_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_query query = {.cursor = api_query_text(call, "cursor")};
    void *items;
    size_t n;
    char *next;
    query.limit = (size_t)api_query_int(call, "limit");
    WEIR_TRY(weir_txn_list(txn, &weir_node_resource, &query, call->arena, &items, &n, &next, err));
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(views, api_node_view(call, (const struct weir_node *)items + i));
    }
    weir_status status = api_nodes_add_load(call, txn, items, views, err);
    if (status != WEIR_OK) {
        json_decref(views);
        return status;
    }
    api_answer(call, json_pack("{s:o,s:s?}", "items", views, "next", next));
    return WEIR_OK;
}

static json_t *reasons_view(const struct weir_alert *alerts, size_t n)
{
    json_t *reasons = json_array();
    for (size_t i = 0; i < n; i++) {
        struct weir_health one = weir_watch_health(&alerts[i], 1);
        if (strcmp(one.status, "ok") != 0) {
            json_t *view = api_health_view(&one);
            json_object_set_new(view, "kind", json_string(alerts[i].kind));
            json_object_set_new(view, "severity", json_string(alerts[i].severity));
            json_object_set_new(view, "subject",
                                alerts[i].subject != NULL ? json_string(alerts[i].subject)
                                                          : json_null());
            json_object_set_new(view, "alert", json_string(alerts[i].id));
            json_array_append_new(reasons, view);
        }
    }
    return reasons;
}

static bool is_told(const struct weir_alert *alerts, size_t n,
                    const struct weir_watch_finding *finding)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(alerts[i].key, finding->key) == 0) {
            return true;
        }
    }
    return false;
}

void api_add_vitals(struct api_call *call, struct weir_alert **alerts, size_t *n)
{
    struct weir_watch_findings found = {0};
    vitals_find(call->api->vitals, call->arena, &found);
    struct weir_alert *all = WEIR_ARENA_ARRAY(call->arena, *n + found.n + 1, struct weir_alert);
    if (*n > 0) {
        memcpy(all, *alerts, *n * sizeof *all);
    }
    for (size_t i = 0; i < found.n; i++) {
        const struct weir_watch_finding *finding = &found.items[i];
        if (!is_told(*alerts, *n, finding)) {
            all[(*n)++] = (struct weir_alert){.id = (char *)finding->key,
                                              .key = (char *)finding->key,
                                              .severity = (char *)finding->severity,
                                              .kind = (char *)finding->kind,
                                              .subject = (char *)finding->subject,
                                              .message = (char *)finding->message,
                                              .state = (char *)"open",
                                              .count = 1,
                                              .raised_ms = call->now_ms,
                                              .last_ms = call->now_ms};
            *alerts = all;
        }
    }
    *alerts = all;
}

struct unresolved {
    struct api_call *call;
    struct weir_alert *alerts;
    size_t n;
};

static weir_status read_unresolved(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct unresolved *of = context;
    WEIR_TRY(weir_watch_alerts(txn, of->call->arena, &of->alerts, &of->n, err));
    return weir_watch_leave_sandboxes(txn, of->alerts, &of->n, err);
}

/* Outside of a transaction: what is wrong may be that there can be none. */
weir_status api_health_summary(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct unresolved of = {.call = call};
    (void)txn;
    weir_status status = api_read(call, read_unresolved, &of, err);
    struct weir_alert *alerts = status == WEIR_OK ? of.alerts : NULL;
    size_t n = status == WEIR_OK ? of.n : 0;
    api_add_vitals(call, &alerts, &n);
    if (n == 0 && status != WEIR_OK) {
        return status;
    }
    struct weir_health health = weir_watch_health(alerts, n);
    json_t *view = api_health_view(&health);
    json_object_set_new(view, "reasons", reasons_view(alerts, n));
    api_answer(call, view);
    return WEIR_OK;
}
