/** How it is: of nodes, of IONs, of the whole. */
#include "api/ion/health.h"

#include "api/cluster/node.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "control/vitals.h"
#include "store/table.h"
#include "watch/watch.h"

#include <string.h>

weir_status api_node_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_node *views;
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){0}, &rows, err));
    WEIR_TRY(api_node_views(call, txn, rows.items, rows.n, &views, err));
    api_answer_views(call, api_node_view(), views, rows.n, rows.next);
    return WEIR_OK;
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
    struct api_health_reason *reasons = WEIR_ARENA_ARRAY(call->arena, n, struct api_health_reason);
    size_t n_reasons = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_health one = weir_watch_health(&alerts[i], 1);
        if (strcmp(one.status, "ok") != 0) {
            reasons[n_reasons++] = (struct api_health_reason){.status = one.status,
                                                              .reason = one.reason,
                                                              .since = one.since_ms,
                                                              .kind = alerts[i].kind,
                                                              .severity = alerts[i].severity,
                                                              .subject = alerts[i].subject,
                                                              .alert = alerts[i].id};
        }
    }
    API_ANSWER(call, api_health_summary, .health = health, .reasons = reasons,
               .n_reasons = n_reasons);
    return WEIR_OK;
}
