/** Runs and metrics. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "store/table.h"

#include "control/control.h"
#include "track/run.h"

#include <unistd.h>

#define METRICS_PER_CALL 10000
#define METRICS_PER_READ 20000

/* A chart needs no more points than it is wide. */
static weir_status answer_sample(struct api_call *call, struct weir_txn *txn, int64_t n_points,
                                 struct weir_error *err)
{
    const char *key = api_query_text(call, "key");
    struct weir_metric *metrics;
    int64_t number;
    size_t n;
    if (key == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "query parameter max_points: name a key, too");
    }
    WEIR_TRY(weir_run_number(txn, call->params[0], &number, err));
    WEIR_TRY(
        weir_metrics_sample(txn, number, key, (size_t)n_points, call->arena, &metrics, &n, err));
    for (size_t i = 0; i < n; i++) {
        metrics[i].run = weir_arena_strdup(call->arena, call->params[0]);
    }
    api_answer_list(call, &weir_metric_resource, metrics, n, NULL);
    return WEIR_OK;
}

weir_status api_metrics_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_run run;
    struct weir_metric *metrics;
    size_t n;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    int64_t n_points = api_query_int(call, "max_points");
    if (n_points > 0) {
        return answer_sample(call, txn, n_points, err);
    }
    int64_t after = api_query_int(call, "after_step");
    WEIR_TRY(weir_metrics_list(txn, call->params[0], api_query_text(call, "key"), after,
                               METRICS_PER_READ, call->arena, &metrics, &n, err));
    api_answer_list(call, &weir_metric_resource, metrics, n, NULL);
    return WEIR_OK;
}

/* A measurement must say what it measured: a key that is misspelt would be stored as a 0. */
weir_status api_metrics_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "metrics");
    size_t n = json_array_size(list), i;
    json_t *item;
    WEIR_TRY(api_body_only(call, (const char *const[]){"metrics", NULL}, err));
    if (!json_is_array(list) || n > METRICS_PER_CALL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.metrics: expected an array of at most %d",
                              METRICS_PER_CALL);
    }
    struct weir_metric *metrics = WEIR_ARENA_ARRAY(call->arena, n + 1, struct weir_metric);
    json_array_foreach(list, i, item)
    {
        struct weir_error why;
        weir_status status = weir_record_from_json(&weir_metric_resource, item, WEIR_RECORD_REPORT,
                                                   call->arena, &metrics[i], &why);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.metrics[%zu]%s", i, why.message + 1);
        }
        metrics[i].run = weir_arena_strdup(call->arena, call->params[0]);
        metrics[i].time_ms = metrics[i].time_ms != 0 ? metrics[i].time_ms : call->now_ms;
    }
    WEIR_TRY(weir_metrics_put(txn, call->params[0], metrics, n, err));
    struct control control = api_control(call);
    json_t *points = json_array();
    for (i = 0; i < n; i++) {
        json_array_append_new(points, weir_record_to_json(&weir_metric_resource, &metrics[i]));
    }
    control_publish(&control, "runs",
                    json_pack("{s:s,s:o}", "id", call->params[0], "metrics", points));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
