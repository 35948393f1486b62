/** The board of a job (job/board.h): its tasks write, and wait for what others write. */
#include "job/board.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "store/table.h"

weir_status api_board_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t n_there, seq;
    struct weir_job job;
    struct weir_board_value *values;
    size_t n;
    const char *job_id = call->params[0];
    const char *prefix = api_query_text(call, "prefix");
    prefix = prefix != NULL ? prefix : "";
    int64_t n_wanted = api_query_int(call, "count");
    int64_t after = api_query_int(call, "after");
    int64_t wait_s = api_query_int(call, "wait_s");
    if (call->attempt == NULL) { /* a task's own job is there */
        WEIR_TRY(weir_txn_get(txn, &weir_job_resource, job_id, call->arena, &job, err));
    }
    WEIR_TRY(weir_board_look(txn, job_id, prefix, &n_there, &seq, err));
    if ((n_there < n_wanted || seq <= after) && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    WEIR_TRY(weir_board_list(txn, job_id, prefix, call->arena, &values, &n, err));
    API_ANSWER(call, api_board, .values = values, .n_values = n, .revision = seq);
    return WEIR_OK;
}

weir_status api_board_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"value", NULL};
    const json_t *value = json_object_get(call->body, "value");
    WEIR_TRY(api_body_only(call, fields, err));
    if (!json_is_string(value) && !json_is_null(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.value: expected a text, or null");
    }
    if (call->attempt == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a value belongs to the attempt that writes it: show the token of a "
                              "task of the job");
    }
    WEIR_TRY(weir_board_put(txn, call->attempt, call->params[1], json_string_value(value), err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
