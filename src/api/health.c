/** How it is: of nodes, of IONs, of the whole. */
#include "api/health.h"

#include "api/answer.h"
#include "api/args.h"
#include "api/functions.h"
#include "api/node.h"
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
    struct weir_query query = {.cursor = weir_http_request_query(call->request, "cursor")};
    int64_t limit;
    void *items;
    size_t n;
    char *next;
    WEIR_TRY(api_query_int(call, "limit", 100, 1, 1000, &limit, err));
    query.limit = (size_t)limit;
    WEIR_TRY(weir_txn_list(txn, &weir_node_resource, &query, call->arena, &items, &n, &next, err));
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(views, api_node_view(call, (const struct weir_node *)items + i));
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

weir_status api_health_summary(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_alert *alerts;
    size_t n;
    WEIR_TRY(weir_watch_alerts(txn, call->arena, &alerts, &n, err));
    WEIR_TRY(weir_watch_leave_sandboxes(txn, alerts, &n, err));
    struct weir_health health = weir_watch_health(alerts, n);
    json_t *view = api_health_view(&health);
    json_object_set_new(view, "reasons", reasons_view(alerts, n));
    api_answer(call, view);
    return WEIR_OK;
}
