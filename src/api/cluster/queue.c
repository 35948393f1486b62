/** Queues, and what the scheduler would do: control/live.h. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "control/control.h"
#include "control/live.h"
#include "framework/request.h"
#include "store/table.h"

#include "job/past_use.h"
#include "job/queue.h"
#include "job/reservation.h"
#include "store/event.h"

#include <string.h>

/* Everybody may ask, and is told the names of what they may read. */
static struct control_live live_of(const struct api_call *call)
{
    struct weir_row_scope *names = WEIR_ARENA_NEW(call->arena, struct weir_row_scope);
    *names = api_projects_with(call, WEIR_RIGHT_JOBS_READ);
    return (struct control_live){call->now_ms, call->api->since_ms, names, NULL};
}

weir_status api_queue_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    json_t *queues, *others;
    WEIR_TRY(control_queues(txn, &live, NULL, &queues, &others, err));
    API_ANSWER(call, control_queue_list, .items = queues, .others = others);
    return WEIR_OK;
}

weir_status api_queue_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    json_t *queues, *others;
    WEIR_TRY(control_queues(txn, &live, call->params[0], &queues, &others, err));
    api_answer(call, json_incref(json_array_get(queues, 0)));
    json_decref(queues);
    json_decref(others);
    return WEIR_OK;
}

/* What a person may set of a queue: told old and new when it changes. */
static const char *const queue_members[] = {"parent",        "project",  "priority",
                                            "shares",        "times",    "min_run_ms",
                                            "idle_after_ms", "clusters", "overflow_after_ms"};

#define VALUE_SHOWN_MAX 300 /* Of one value in a sentence; the event's data has all of it. */

/* "shares {…}, before none; priority 50, before 100" */
static const char *tell_changes(struct api_call *call, const json_t *before, const json_t *after)
{
    const char *text = "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(queue_members); i++) {
        const json_t *was = json_object_get(before, queue_members[i]);
        const json_t *is = json_object_get(after, queue_members[i]);
        bool has_was = was != NULL && !json_is_null(was), has_is = is != NULL && !json_is_null(is);
        if ((!has_was && !has_is) || (has_was && has_is && json_equal(was, is))) {
            continue;
        }
        const char *now_text = has_is ? weir_json_text(is, call->arena) : "none";
        const char *was_text = has_was ? weir_json_text(was, call->arena) : "none";
        text = weir_arena_printf(call->arena, "%s%s%s %.*s%s", text, text[0] != '\0' ? "; " : "",
                                 queue_members[i], VALUE_SHOWN_MAX, now_text,
                                 strlen(now_text) > VALUE_SHOWN_MAX ? "…" : "");
        text = before == NULL
                   ? text
                   : weir_arena_printf(call->arena, "%s, before %.*s%s", text, VALUE_SHOWN_MAX,
                                       was_text, strlen(was_text) > VALUE_SHOWN_MAX ? "…" : "");
    }
    return text;
}

/* NULL: there is none of this name. */
static json_t *queue_view(struct api_call *call, struct weir_txn *txn, const char *name)
{
    struct weir_queue queue;
    return weir_txn_get(txn, &weir_queue_resource, name, call->arena, &queue, NULL) == WEIR_OK
               ? weir_record_to_json(&weir_queue_resource, &queue)
               : NULL;
}

/* One that was not there is made, one that is there no longer deleted. */
static weir_status act_on_queue(struct api_call *call, struct weir_txn *txn, const char *queue,
                                const json_t *before, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *after = queue_view(call, txn, queue);
    WEIR_AUTO(weir_json_auto_free)
    json_t *data = json_pack("{s:O*,s:O*}", "before", before, "after", after);
    const char *changes = after != NULL ? tell_changes(call, before, after) : "";
    const char *verb = after == NULL ? "deleted" : before == NULL ? "made" : "set";
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = "jobs",
        .kind = after != NULL ? "queue_set" : "queue_deleted",
        .subject = weir_arena_printf(call->arena, "queue/%s", queue),
        .actor = (char *)call->actor,
        .message = weir_arena_printf(call->arena, "Queue %s was %s%s%s.", queue, verb,
                                     changes[0] != '\0' ? ": " : "", changes),
        .data = weir_json_text(data, call->arena)};
    return weir_event_append(txn, &event, NULL, err);
}

static weir_status read_queue(struct api_call *call, json_t *body, struct weir_queue *out,
                              struct weir_error *err)
{
    *out = (struct weir_queue){
        .priority = 100, .min_run_ms = -1, .idle_after_ms = -1, .overflow_after_ms = -1};
    return weir_record_from_json(&weir_queue_resource, body, WEIR_RECORD_CREATE, call->arena, out,
                                 err);
}

weir_status api_queue_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct control_live live = live_of(call);
    struct weir_queue queue;
    const char *name = json_string_value(json_object_get(call->body, "name"));
    if (name != NULL && strcmp(name, call->params[0]) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.name: the path names queue %s",
                              call->params[0]);
    }
    json_object_set_new(call->body, "name", json_string(call->params[0]));
    WEIR_TRY(read_queue(call, call->body, &queue, err));
    WEIR_AUTO(weir_json_auto_free) json_t *before = queue_view(call, txn, queue.name);
    if (!api_query_bool(call, "force")) {
        WEIR_TRY(control_queue_check(txn, &live, &queue, err));
    }
    WEIR_TRY(weir_queue_set(txn, &queue, call->now_ms, err));
    WEIR_TRY(act_on_queue(call, txn, queue.name, before, err));
    return api_queue_get(call, txn, err);
}

/* Nodes that are kept for it would be kept for nobody. */
static weir_status check_unreserved(struct api_call *call, struct weir_txn *txn, const char *queue,
                                    struct weir_error *err)
{
    struct weir_reservation *list;
    size_t n;
    WEIR_TRY(weir_reservation_list(txn, call->now_ms, call->arena, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (list[i].queue != NULL && strcmp(list[i].queue, queue) == 0) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "queue %.60s has reservation %.60s: delete it first "
                                  "(`weir delete reservation %.60s`)",
                                  queue, list[i].name, list[i].name);
        }
    }
    return WEIR_OK;
}

weir_status api_queue_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(check_unreserved(call, txn, call->params[0], err));
    WEIR_AUTO(weir_json_auto_free) json_t *before = queue_view(call, txn, call->params[0]);
    WEIR_TRY(weir_queue_delete(txn, call->params[0], err));
    WEIR_TRY(act_on_queue(call, txn, call->params[0], before, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- past use -------------------------------------------------------------------------------- */

weir_status api_past_rule_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_past_rule rule;
    WEIR_TRY(weir_past_rule_get(txn, &rule, err));
    api_answer_record(call, &weir_past_rule_resource, &rule);
    return WEIR_OK;
}

weir_status api_past_rule_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_past_rule rule, before;
    WEIR_TRY(weir_record_from_json(&weir_past_rule_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &rule, err));
    WEIR_TRY(weir_past_rule_get(txn, &before, err));
    WEIR_TRY(weir_past_rule_set(txn, &rule, call->now_ms, err));
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = "jobs",
        .kind = "past_use_set",
        .subject = "queue/",
        .actor = (char *)call->actor,
        .message = weir_arena_printf(
            call->arena,
            "Past use counts with weight %g and a half-life of %lld s, before with %g and %lld s.",
            rule.weight, (long long)rule.half_life_ms / 1000, before.weight,
            (long long)before.half_life_ms / 1000)};
    WEIR_TRY(weir_event_append(txn, &event, NULL, err));
    api_answer_record(call, &weir_past_rule_resource, &rule);
    return WEIR_OK;
}

/* ---- what if --------------------------------------------------------------------------------- */

/* The queue as it would be: what the body does not say is as it is. One that is not there is made; under
 * the name of a project that has none it is that project's. */
static weir_status read_change_of_queue(struct api_call *call, struct weir_txn *txn,
                                        const char *name, struct weir_queue *out,
                                        struct weir_error *err)
{
    struct weir_project project;
    WEIR_AUTO(weir_json_auto_free) json_t *before = queue_view(call, txn, name);
    WEIR_AUTO(weir_json_auto_free) json_t *after = json_pack("{s:s}", "name", name);
    bool is_project = before == NULL && weir_txn_get(txn, &weir_project_resource, name, call->arena,
                                                     &project, NULL) == WEIR_OK;
    if (is_project) {
        json_object_set_new(after, "project", json_string(name));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(queue_members); i++) {
        json_t *said = json_object_get(call->body, queue_members[i]);
        json_t *value = said != NULL ? said : json_object_get(before, queue_members[i]);
        if (value != NULL && !json_is_null(value)) {
            json_object_set(after, queue_members[i], value);
        } else if (said != NULL) {
            json_object_del(after, queue_members[i]);
        }
    }
    return read_queue(call, after, out, err);
}

static bool changes_queue(const struct api_call *call)
{
    bool does = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(queue_members); i++) {
        does = does || json_object_get(call->body, queue_members[i]) != NULL;
    }
    return does;
}

weir_status api_what_if(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {
        "add_node",          "n_nodes", "first", "queue",      "parent",        "project",
        "priority",          "shares",  "times", "min_run_ms", "idle_after_ms", "clusters",
        "overflow_after_ms", NULL};
    const struct control_live live = live_of(call);
    struct control_change change = {0};
    struct weir_queue queue;
    const char *name;
    json_t *answer;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "add_node", &change.like, err));
    WEIR_TRY(api_body_text(call, "queue", &name, err));
    WEIR_TRY(api_body_text(call, "first", &change.first, err));
    WEIR_TRY(api_body_int(call, "n_nodes", change.like != NULL ? 1 : 0, &change.n_nodes, err));
    if ((name != NULL) != changes_queue(call) || (change.like == NULL && change.n_nodes > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected queue with what changes of it (shares, times, parent, "
                              "project, priority), and n_nodes only with add_node");
    }
    if (name != NULL) {
        WEIR_TRY(read_change_of_queue(call, txn, name, &queue, err));
        change.queue = &queue;
    }
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

static weir_status send_and_answer(struct api_call *call, struct weir_txn *txn,
                                   const struct weir_job_event *event, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_job job;
    WEIR_TRY(control_job_event(&control, txn, call->params[0], event, err));
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    api_answer_record(call, &weir_job_resource, &job);
    return WEIR_OK;
}

static weir_status send_event(struct api_call *call, struct weir_txn *txn,
                              enum weir_job_event_type type, const char *text,
                              struct weir_error *err)
{
    return send_and_answer(call, txn, &(struct weir_job_event){.type = type, .text = text}, err);
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

weir_status api_job_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"priority", NULL};
    struct weir_job_event event = {.type = WEIR_JOB_EVENT_PRIORITY,
                                   .text =
                                       weir_arena_printf(call->arena, "set by %s", call->actor)};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_int(call, "priority", -1, &event.priority, err));
    if (event.priority < 0 || event.priority > WEIR_REQUEST_PRIORITY_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.priority: expected 0 to %d",
                              WEIR_REQUEST_PRIORITY_MAX);
    }
    return send_and_answer(call, txn, &event, err);
}

weir_status api_job_release(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return send_event(call, txn, WEIR_JOB_EVENT_RELEASE,
                      weir_arena_printf(call->arena, "released by %s", call->actor), err);
}
