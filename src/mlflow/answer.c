/** Answers: errors as MLflow's clients read them, and JSON that is written rather than built. */
#include "mlflow/call.h"
#include "mlflow/number.h"

#include "blob/blob.h"
#include "store/pulse.h"

#include <math.h>

/* What a status is called there. None is a 5xx for what a caller did wrong: clients would try again for
 * minutes. */
static const struct {
    weir_status status;
    const char *code;
    int http_status;
} codes[] = {
    {WEIR_ERR_INVALID, "INVALID_PARAMETER_VALUE", 400},
    {WEIR_ERR_CONFLICT, "INVALID_PARAMETER_VALUE", 400},
    {WEIR_ERR_LIMIT, "INVALID_PARAMETER_VALUE", 400},
    {WEIR_ERR_CORRUPT, "INVALID_PARAMETER_VALUE", 400},
    {WEIR_ERR_NOT_FOUND, "RESOURCE_DOES_NOT_EXIST", 404},
    {WEIR_ERR_EXISTS, "RESOURCE_ALREADY_EXISTS", 400},
    {WEIR_ERR_DENIED, "PERMISSION_DENIED", 403},
    {WEIR_ERR_UNAUTH, "UNAUTHENTICATED", 401},
    {WEIR_ERR_UNSUPPORTED, "NOT_IMPLEMENTED", 501},
    {WEIR_ERR_UNAVAILABLE, "TEMPORARILY_UNAVAILABLE", 503},
    {WEIR_ERR_NOSPACE, "RESOURCE_EXHAUSTED", 507},
};

void weir_mlflow_answer_error(struct weir_http_response *response, const char *code,
                              const struct weir_error *err)
{
    const char *text = "INTERNAL_ERROR";
    int http_status = 500;
    /* What the store has lost is no fault of the caller's. */
    bool is_ours = weir_store_error_is_damage(err) || weir_blob_error_is_damage(err);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(codes) && !is_ours; i++) {
        if (codes[i].status == err->status) {
            text = codes[i].code;
            http_status = codes[i].http_status;
        }
    }
    const char *message =
        weir_text_is_utf8(err->message) ? err->message : weir_status_text(err->status);
    weir_http_response_json(
        response, http_status,
        json_pack("{s:s,s:s}", "error_code", code != NULL ? code : text, "message", message));
    if (http_status == 401) {
        weir_http_response_header(response, "WWW-Authenticate", "Bearer realm=\"weir\"");
    } else if (http_status == 503) {
        weir_http_response_header(response, "Retry-After", "1");
    }
}

void mlflow_answer(struct weir_mlflow_call *call, json_t *object)
{
    weir_http_response_json(call->response, 200, object);
}

void mlflow_answer_nothing(struct weir_mlflow_call *call)
{
    weir_http_response_text(call->response, 200, "application/json", "{}");
}

void mlflow_answer_buf(struct weir_mlflow_call *call, struct weir_buf *buf)
{
    weir_http_response_buf(call->response, 200, "application/json", buf);
}

weir_status mlflow_answer_made(struct weir_mlflow_call *call, weir_status status,
                               struct weir_buf *buf)
{
    if (status != WEIR_OK) {
        weir_buf_fini(buf);
        return status;
    }
    (void)weir_buf_puts(buf, "}");
    mlflow_answer_buf(call, buf);
    return WEIR_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void mlflow_put_text(struct weir_buf *buf, const char *text)
{
    (void)weir_buf_append(buf, "\"", 1);
    const char *begin = text != NULL ? text : "";
    for (const char *p = begin;; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        (void)weir_buf_append(buf, begin, (size_t)(p - begin));
        if (c == '\0') {
            break;
        }
        if (c == '"' || c == '\\') {
            const char escaped[] = {'\\', (char)c};
            (void)weir_buf_append(buf, escaped, sizeof escaped);
        } else {
            (void)weir_buf_printf(buf, "\\u%04x", c);
        }
        begin = p + 1;
    }
    (void)weir_buf_append(buf, "\"", 1);
}

void mlflow_put_int(struct weir_buf *buf, int64_t value)
{
    char text[NUMBER_TEXT_BYTES];
    (void)weir_buf_append(buf, text, number_int_text(value, text));
}

static void put_number(struct weir_buf *buf, double value)
{
    char text[NUMBER_TEXT_BYTES];
    if (isnan(value)) {
        (void)weir_buf_puts(buf, "\"NaN\"");
    } else if (isinf(value)) {
        (void)weir_buf_puts(buf, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else {
        (void)weir_buf_append(buf, text, number_text(value, text));
    }
}

void mlflow_put_member(struct weir_buf *buf, const char *name, const char *text)
{
    if (text == NULL) {
        return;
    }
    if (buf->len > 0 && buf->data[buf->len - 1] != '{') {
        (void)weir_buf_append(buf, ",", 1);
    }
    (void)weir_buf_append(buf, "\"", 1);
    (void)weir_buf_puts(buf, name);
    (void)weir_buf_append(buf, "\":", 2);
    mlflow_put_text(buf, text);
}

static void put_int_member(struct weir_buf *buf, const char *name, int64_t value)
{
    (void)weir_buf_append(buf, ",\"", 2);
    (void)weir_buf_puts(buf, name);
    (void)weir_buf_append(buf, "\":", 2);
    mlflow_put_int(buf, value);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/** Where a run's artifacts are, for MLflow's clients. */
static void put_artifact_uri(struct weir_buf *buf, const struct weir_run *run)
{
    (void)weir_buf_puts(buf, ",\"artifact_uri\":");
    if (run->artifact_root != NULL) {
        mlflow_put_text(buf, run->artifact_root);
        return;
    }
    (void)weir_buf_puts(buf, "\"" MLFLOW_ARTIFACTS "/");
    mlflow_put_int(buf, run->experiment);
    (void)weir_buf_append(buf, "/", 1);
    (void)weir_buf_puts(buf, run->id);
    (void)weir_buf_puts(buf, "/artifacts\"");
}

void mlflow_put_run_info(struct weir_buf *buf, const struct weir_run *run)
{
    (void)weir_buf_append(buf, "{", 1);
    mlflow_put_member(buf, "run_id", run->id);
    mlflow_put_member(buf, "run_uuid", run->id);
    mlflow_put_member(buf, "run_name", run->name);
    (void)weir_buf_puts(buf, ",\"experiment_id\":\"");
    mlflow_put_int(buf, run->experiment);
    (void)weir_buf_append(buf, "\"", 1);
    mlflow_put_member(buf, "user_id", run->user != NULL ? run->user : "unknown");
    mlflow_put_member(buf, "status", run->status);
    put_int_member(buf, "start_time", run->start_ms);
    if (run->finished_ms != 0) {
        put_int_member(buf, "end_time", run->finished_ms);
    }
    put_artifact_uri(buf, run);
    mlflow_put_member(buf, "lifecycle_stage", run->deleted_ms != 0 ? "deleted" : "active");
    (void)weir_buf_append(buf, "}", 1);
}

void mlflow_put_metric(struct weir_buf *buf, const struct weir_metric *metric, const char *run_id)
{
    (void)weir_buf_append(buf, "{", 1);
    mlflow_put_member(buf, "key", metric->key);
    (void)weir_buf_puts(buf, ",\"value\":");
    put_number(buf, metric->value);
    put_int_member(buf, "timestamp", metric->time_ms);
    put_int_member(buf, "step", metric->step);
    mlflow_put_member(buf, "run_id", run_id);
    (void)weir_buf_append(buf, "}", 1);
}

void mlflow_put_pairs(struct weir_buf *buf, const char *before, const struct weir_tag *pairs,
                      size_t n)
{
    (void)weir_buf_puts(buf, before);
    (void)weir_buf_append(buf, "[", 1);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(buf, i > 0 ? ",{" : "{");
        mlflow_put_member(buf, "key", pairs[i].key);
        mlflow_put_member(buf, "value", pairs[i].value);
        (void)weir_buf_append(buf, "}", 1);
    }
    (void)weir_buf_append(buf, "]", 1);
}

weir_status mlflow_put_inputs(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_buf *buf, int64_t run, const char *id,
                              struct weir_error *err)
{
    struct weir_run_input *inputs;
    size_t n;
    WEIR_TRY(weir_run_inputs(txn, run, call->arena, &inputs, &n, err));
    (void)weir_buf_puts(buf, ",\"inputs\":{\"dataset_inputs\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_printf(buf, "%s{\"tags\":%s,\"dataset\":{", i > 0 ? "," : "",
                              inputs[i].tags != NULL ? inputs[i].tags : "[]");
        mlflow_put_member(buf, "name", inputs[i].name);
        mlflow_put_member(buf, "digest", inputs[i].digest);
        mlflow_put_member(buf, "source_type", inputs[i].source_type);
        mlflow_put_member(buf, "source", inputs[i].source);
        mlflow_put_member(buf, "schema", inputs[i].schema);
        mlflow_put_member(buf, "profile", inputs[i].profile);
        (void)weir_buf_puts(buf, "}}");
    }
    (void)weir_buf_puts(buf, "]");
    if (id != NULL) {
        (void)weir_buf_puts(buf, ",");
        WEIR_TRY(mlflow_put_uses(call, txn, buf, id, false, err));
        (void)weir_buf_puts(buf, "},\"outputs\":{");
        WEIR_TRY(mlflow_put_uses(call, txn, buf, id, true, err));
    }
    (void)weir_buf_puts(buf, "}");
    return WEIR_OK;
}

weir_status mlflow_put_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_buf *buf, const struct mlflow_run *run,
                           struct weir_error *err)
{
    struct weir_metric *metrics;
    struct weir_tag *pairs;
    size_t n;
    WEIR_TRY(weir_run_metrics(txn, run->number, call->arena, &metrics, &n, err));
    (void)weir_buf_puts(buf, "{\"info\":");
    mlflow_put_run_info(buf, &run->record);
    (void)weir_buf_puts(buf, ",\"data\":{\"metrics\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(buf, i > 0 ? "," : "");
        mlflow_put_metric(buf, &metrics[i], NULL);
    }
    (void)weir_buf_puts(buf, "],");
    WEIR_TRY(weir_run_parameters(txn, run->number, call->arena, &pairs, &n, err));
    mlflow_put_pairs(buf, "\"params\":", pairs, n);
    WEIR_TRY(weir_run_tags(txn, run->number, call->arena, &pairs, &n, err));
    mlflow_put_pairs(buf, ",\"tags\":", pairs, n);
    (void)weir_buf_puts(buf, "}");
    WEIR_TRY(mlflow_put_inputs(call, txn, buf, run->number, run->record.id, err));
    (void)weir_buf_puts(buf, "}");
    return WEIR_OK;
}
