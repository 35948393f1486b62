/** Queues, and what the scheduler would do: control/live.h. */
#include "api/api_private.h"
#include "control/control.h"
#include "control/live.h"

#include "job/queue.h"

#include <string.h>

static struct control_live live_of(const struct api_call *call)
{
    return (struct control_live){call->now_ms, call->api->started_ms};
}

weir_status api_queue_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    json_t *queues;
    WEIR_TRY(control_queues(txn, &live, NULL, &queues, err));
    api_answer(call, json_pack("{s:o,s:n}", "items", queues, "next"));
    return WEIR_OK;
}

weir_status api_queue_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    json_t *queues;
    WEIR_TRY(control_queues(txn, &live, call->params[0], &queues, err));
    api_answer(call, json_incref(json_array_get(queues, 0)));
    json_decref(queues);
    return WEIR_OK;
}

static weir_status act_on_queue(struct api_call *call, struct weir_txn *txn, const char *kind,
                                const char *queue, const char *what, struct weir_error *err)
{
    struct control control = api_control(call);
    return control_log(&control, txn, "jobs", kind,
                       weir_arena_printf(call->arena, "queue/%s", queue),
                       weir_arena_printf(call->arena, "Queue %s was %s.", queue, what), err);
}

weir_status api_queue_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_queue queue = {.priority = 100, .min_run_ms = -1, .idle_after_ms = -1};
    const char *name = json_string_value(json_object_get(call->body, "name"));
    if (name != NULL && strcmp(name, call->params[0]) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.name: the path names queue %s",
                              call->params[0]);
    }
    json_object_set_new(call->body, "name", json_string(call->params[0]));
    WEIR_TRY(weir_record_from_json(&weir_queue_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &queue, err));
    WEIR_TRY(weir_queue_set(txn, &queue, call->now_ms, err));
    WEIR_TRY(act_on_queue(call, txn, "queue_set", queue.name, "set", err));
    return api_queue_get(call, txn, err);
}

weir_status api_queue_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(weir_queue_delete(txn, call->params[0], err));
    WEIR_TRY(act_on_queue(call, txn, "queue_deleted", call->params[0], "deleted", err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_what_if(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"add_node", "n_nodes", "queue", "shares", "first", NULL};
    const struct control_live live = live_of(call);
    const json_t *shares = json_object_get(call->body, "shares");
    struct control_change change = {0};
    json_t *answer;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "add_node", &change.like, err));
    WEIR_TRY(api_body_text(call, "queue", &change.queue, err));
    WEIR_TRY(api_body_text(call, "first", &change.first, err));
    WEIR_TRY(api_body_int(call, "n_nodes", change.like != NULL ? 1 : 0, &change.n_nodes, err));
    if ((change.queue != NULL) != (shares != NULL) || (change.like == NULL && change.n_nodes > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected queue with shares, and n_nodes only with add_node");
    }
    change.shares = shares != NULL ? weir_json_text(shares, call->arena) : NULL;
    WEIR_TRY(control_what_if(txn, &live, &change, &answer, err));
    api_answer(call, answer);
    return WEIR_OK;
}

weir_status api_job_explain(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    json_t *answer;
    WEIR_TRY(control_explain_job(txn, &live, call->params[0], &answer, err));
    api_answer(call, answer);
    return WEIR_OK;
}

/* ---- jobs that stop and go on ---------------------------------------------------------------- */

static weir_status send_event(struct api_call *call, struct weir_txn *txn,
                              enum weir_job_event_type type, const char *text,
                              struct weir_error *err)
{
    struct control control = api_control(call);
    const struct weir_job_event event = {.type = type, .text = text};
    struct weir_job job;
    WEIR_TRY(control_job_event(&control, txn, call->params[0], &event, err));
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    api_answer_record(call, &weir_job_resource, &job);
    return WEIR_OK;
}

weir_status api_job_hold(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return send_event(call, txn, WEIR_JOB_EVENT_HOLD,
                      weir_arena_printf(call->arena, "held by %s", call->actor), err);
}

weir_status api_job_requeue(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return send_event(call, txn, WEIR_JOB_EVENT_EVICT,
                      weir_arena_printf(call->arena, "sent back to its queue by %s", call->actor),
                      err);
}

weir_status api_job_release(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return send_event(call, txn, WEIR_JOB_EVENT_RELEASE, NULL, err);
}
