/** Runs and metrics. */
#include "api/api_private.h"

#include "control/control.h"
#include "store/stmt.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define METRICS_PER_CALL 10000
#define METRICS_PER_READ 20000

/* The model version that a run made: {"model", "version"}; null if there is none (any more). */
static weir_status registered_view(struct api_call *call, struct weir_txn *txn, const char *run,
                                   json_t **out, struct weir_error *err)
{
    struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("run", EQ, run), WEIR_FILTER_INT("deleted_ms", EQ, 0)),
        .order_by = "created_ms", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_model_version_resource, &query, call->arena, &items, &n, NULL,
                           err));
    const struct weir_model_version *made = items;
    *out = n == 0
               ? json_null()
               : json_pack("{s:s,s:I}", "model", made->model, "version", (json_int_t)made->version);
    return WEIR_OK;
}

/* When a run began to work: when its job did, not when that was handed in; null = not yet. */
static weir_status started_view(struct weir_txn *txn, const struct weir_run *run, json_t **out,
                                struct weir_error *err)
{
    char text[WEIR_TIME_TEXT_BYTES];
    int64_t started_ms = run->created_ms;
    if (run->job != NULL) {
        WEIR_TRY(weir_job_started_ms(txn, run->job, &started_ms, err));
    }
    weir_time_format(started_ms, text);
    *out = started_ms == 0 ? json_null() : json_string(text);
    return WEIR_OK;
}

/* The last measurements of a run: all of them as "metrics", those that people ask for beside the
 * record too, null where there is none yet. */
static void add_metrics(json_t *view, const struct weir_metric *latest, size_t n)
{
    static const char *const shown[] = {"epoch",
                                        "epochs",
                                        "progress",
                                        "loss",
                                        "accuracy",
                                        "images_per_second",
                                        "validation_loss",
                                        "validation_accuracy",
                                        NULL};
    json_t *metrics = json_object();
    for (const char *const *key = shown; *key != NULL; key++) {
        json_object_set_new(view, *key, json_null());
    }
    for (size_t i = 0; i < n; i++) {
        json_t *value = isfinite(latest[i].value) ? json_real(latest[i].value) : json_null();
        json_object_set_new(metrics, latest[i].key, value);
        if (json_object_get(view, latest[i].key) != NULL &&
            weir_resource_field(&weir_run_resource, latest[i].key) == NULL) {
            json_object_set(view, latest[i].key, value);
        }
    }
    json_object_set_new(view, "metrics", metrics);
}

/* A run as people want to see it: its record, its last measurements, how far it is, and what came
 * of it. */
static weir_status run_view(struct api_call *call, struct weir_txn *txn, const struct weir_run *run,
                            json_t **out, struct weir_error *err)
{
    struct weir_metric *latest;
    json_t *registered, *started;
    size_t n;
    WEIR_TRY(weir_metrics_latest(txn, run->id, call->arena, &latest, &n, err));
    WEIR_TRY(started_view(txn, run, &started, err));
    weir_status status = registered_view(call, txn, run->id, &registered, err);
    if (status != WEIR_OK) {
        json_decref(started);
        return status;
    }
    json_t *view = weir_record_to_json(&weir_run_resource, run);
    add_metrics(view, latest, n);
    json_t *model = json_object_get(json_object_get(view, "parameters"), "model");
    json_object_set(view, "model", model != NULL ? model : json_null());
    json_object_set_new(view, "registered", registered);
    json_object_set_new(view, "started_ms", started);
    *out = view;
    return WEIR_OK;
}

weir_status api_run_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_filter filters[4];
    size_t n_filters = 0, n;
    int64_t limit;
    static const char *const names[] = {"ion", "project", "status", "job"};
    WEIR_TRY(api_query_int(call, "limit", 50, 1, 200, &limit, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const char *value = weir_http_request_query(call->request, names[i]);
        if (value != NULL) {
            filters[n_filters++] = WEIR_FILTER_TEXT(names[i], EQ, value);
        }
    }
    struct weir_query query = {.filters = filters,
                               .n_filters = n_filters,
                               .order_by = "created_ms",
                               .is_descending = true,
                               .limit = (size_t)limit,
                               .max_bytes = API_ANSWER_MAX_BYTES,
                               .cursor = weir_http_request_query(call->request, "cursor")};
    void *items;
    char *next;
    WEIR_TRY(weir_txn_list(txn, &weir_run_resource, &query, call->arena, &items, &n, &next, err));
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *view;
        weir_status status = run_view(call, txn, (const struct weir_run *)items + i, &view, err);
        if (status != WEIR_OK) {
            json_decref(views);
            return status;
        }
        json_array_append_new(views, view);
    }
    api_answer(call, json_pack("{s:o,s:s?}", "items", views, "next", next));
    return WEIR_OK;
}

weir_status api_run_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_run run;
    json_t *view;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    WEIR_TRY(run_view(call, txn, &run, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

/* A task that reports its own run does what it is there for; a person who changes one acts. */
static weir_status tell_update(const struct api_call *call, struct control *control,
                               struct weir_txn *txn, const struct weir_run *run,
                               const char *old_status, bool has_summary, struct weir_error *err)
{
    if (call->attempt != NULL) {
        return WEIR_OK;
    }
    return control_log(
        control, txn, "runs", "run_changed", weir_arena_printf(call->arena, "run/%s", run->id),
        weir_arena_printf(call->arena, "Run %s has status %s, before %s%s.", run->name, run->status,
                          old_status, has_summary ? ", and another summary" : ""),
        err);
}

weir_status api_run_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"status", "summary", NULL};
    struct weir_run run;
    const char *status;
    const json_t *summary = json_object_get(call->body, "summary");
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "status", &status, err));
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    const char *old_status = run.status;
    if (status != NULL) {
        static const char *const known[] = {"RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"};
        bool is_known = false;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
            is_known = is_known || strcmp(known[i], status) == 0;
        }
        if (!is_known) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.status: expected RUNNING, SCHEDULED, FINISHED, FAILED or "
                                  "KILLED");
        }
        run.status = weir_arena_strdup(call->arena, status);
        bool is_over = strcmp(status, "RUNNING") != 0 && strcmp(status, "SCHEDULED") != 0;
        run.finished_ms = is_over ? call->now_ms : 0;
    }
    if (summary != NULL) {
        run.summary = weir_json_text(summary, call->arena);
    }
    WEIR_TRY(weir_txn_update(txn, &weir_run_resource, &run,
                             WEIR_FIELDS("status", "summary", "finished_ms"), err));
    struct control control = api_control(call);
    WEIR_TRY(tell_update(call, &control, txn, &run, old_status, summary != NULL, err));
    control_publish(&control, "runs", json_pack("{s:s,s:s}", "id", run.id, "status", run.status));
    api_answer_record(call, &weir_run_resource, &run);
    return WEIR_OK;
}

weir_status api_metrics_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_run run;
    int64_t after;
    struct weir_metric *metrics;
    size_t n;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    WEIR_TRY(api_query_int(call, "after_step", INT64_MIN, INT64_MIN, INT64_MAX, &after, err));
    WEIR_TRY(weir_metrics_list(txn, call->params[0], weir_http_request_query(call->request, "key"),
                               after, METRICS_PER_READ, call->arena, &metrics, &n, err));
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
