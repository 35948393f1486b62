/** IONs: apply, look, review, roll back; what a replica must serve; who is on which list. */
#include "api/ion.h"

#include "api/answer.h"
#include "api/args.h"
#include "api/arms.h"
#include "api/functions.h"
#include "api/health.h"
#include "api/query.h"
#include "base/clock.h"
#include "base/secret.h"
#include "control/control.h"
#include "ion/threshold.h"
#include "store/role.h"
#include "store/table.h"
#include "store/tenant.h"
#include "track/registry.h"
#include "watch/watch.h"

#include <stdlib.h>
#include <string.h>

#define FIRINGS_SHOWN 20
#define ION_MAX_BYTES ((size_t)64 << 20) /* in memory */

/* ---- views ----------------------------------------------------------------------------------- */

/** The schedule of the first trigger that has one; NULL: none has. */
static const char *schedule_of(const struct weir_ion_doc_pipeline *doc)
{
    const char *cron = NULL;
    for (size_t i = 0; i < doc->triggers.n && cron == NULL; i++) {
        cron = weir_trigger_cron(&doc->triggers.items[i]);
    }
    return cron;
}

static json_t *pipeline_view(const struct weir_ion_pipeline *pipeline,
                             const struct weir_ion_doc_pipeline *doc)
{
    json_t *view = weir_record_to_json(&weir_ion_pipeline_resource, pipeline);
    if (doc == NULL) {
        return view;
    }
    json_t *more = json_pack(
        "{s:s?,s:s?,s:s?,s:b,s:s?,s:s?,s:s?,s:s?,s:I,s:I,s:s?,s:b,s:I,s:s?,s:s?,s:f,s:f,s:s?}",
        "dataset", doc->type != WEIR_PIPELINE_PREDICTION ? doc->dataset : doc->gallery_dataset,
        "output", doc->output, "against", doc->against, "critical", (int)doc->is_critical,
        "restart", doc->restart.kind != NULL ? doc->restart.kind->name : NULL, "kind", doc->kind,
        "registers", doc->registers, "model", doc->model, "workers", (json_int_t)doc->workers,
        "parameter_servers", (json_int_t)doc->parameter_servers, "schedule", schedule_of(doc),
        "new_data", weir_trigger_of_kind(&doc->triggers, &weir_trigger_kind_new_data) != NULL,
        "replicas", (json_int_t)doc->replicas, "gallery_dataset", doc->gallery_dataset, "impostors",
        doc->impostors, "false_accept_rate", doc->false_accept_rate, "false_deny_rate",
        doc->false_deny_rate, "gallery_default", doc->gallery_default);
    json_object_update(view, more);
    json_decref(more);
    if (doc->source != NULL) {
        json_t *source = json_loads(doc->source, JSON_DECODE_ANY, NULL);
        weir_secrets_mask(source, "token");
        json_object_set_new(view, "source", source);
    }
    return view;
}

/** While a pipeline waits for its job: why, as `weir explain job` says it. */
static void add_reason_of_job(struct weir_txn *txn, const struct weir_ion_pipeline *pipeline,
                              struct weir_arena *arena, json_t *view)
{
    struct weir_job job;
    if (pipeline->job == NULL || pipeline->state_reason != NULL ||
        strcmp(pipeline->state, "SERVING") == 0 ||
        weir_txn_get(txn, &weir_job_resource, pipeline->job, arena, &job, NULL) != WEIR_OK ||
        job.reason == NULL) {
        return;
    }
    json_object_set_new(
        view, "state_reason",
        json_string(weir_arena_printf(arena, "%s is %s: %s", job.name, job.state, job.reason)));
}

/** A candidate that stands in the link's chain: at which policy, since when, and what that says. */
static json_t *waiting_view(const struct weir_ion_candidate *candidate)
{
    json_t *approvals =
        candidate->approvals != NULL ? json_loads(candidate->approvals, 0, NULL) : NULL;
    return json_pack(
        "{s:I,s:s,s:s,s:I,s:s?,s:s?,s:I,s:o}", "version", (json_int_t)candidate->version, "model",
        candidate->model, "state", candidate->state, "position", (json_int_t)candidate->position,
        "policy", candidate->waits_for, "why", candidate->waits_why, "until_ms",
        (json_int_t)candidate->until_ms, "approvals", approvals != NULL ? approvals : json_array());
}

/** What replicas serve of the link's models, what the link has chosen, and what waits, for a person or
 *  a time. */
static json_t *link_view(const struct weir_ion_state *state, const struct weir_ion_doc_link *link)
{
    json_t *pending = json_array(), *waiting = json_array(), *serving = json_null(),
           *model = json_null(), *wanted = json_null(), *policies = json_array();
    const char *deployment = NULL;
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        if (strcmp(candidate->link, link->id) != 0) {
            continue;
        }
        const char *shown = weir_ion_candidate_shown(state, candidate);
        if (strcmp(shown, WEIR_CANDIDATE_SERVING) == 0) {
            serving = json_integer(candidate->version);
            model = json_string(candidate->model);
        }
        if (strcmp(candidate->state, WEIR_CANDIDATE_SERVING) == 0) {
            wanted = json_integer(candidate->version);
            deployment = shown;
        } else if (strcmp(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0) {
            json_array_append_new(pending, json_integer(candidate->version));
        }
        if (candidate->waits_for != NULL) {
            json_array_append_new(waiting, waiting_view(candidate));
        }
    }
    for (size_t i = 0; i < link->policies.n; i++) {
        json_array_append_new(policies, json_string(link->policies.items[i].kind->name));
    }
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:s?,s:o,s:o}", "id", link->id, "from",
                     link->from, "to", link->to, "policy", link->policies.names, "policies",
                     policies, "serving_version", serving, "serving_model", model, "wanted_version",
                     wanted, "deployment_state", deployment, "pending_versions", pending, "waiting",
                     waiting);
}

/** A pipeline's triggers, as the document has them, and how often and why each has fired. */
static json_t *triggers_view(const struct weir_ion_state *state, const char *pipeline)
{
    json_t *triggers = json_array();
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_ion_trigger *trigger = &state->triggers[i];
        if (strcmp(trigger->pipeline, pipeline) == 0 &&
            weir_ion_trigger_of(state, trigger) != NULL) {
            json_array_append_new(triggers,
                                  weir_record_to_json(&weir_ion_trigger_resource, trigger));
        }
    }
    return triggers;
}

static weir_status firings_view(struct weir_txn *txn, const char *ion, struct weir_arena *arena,
                                json_t **out, struct weir_error *err)
{
    struct weir_trigger_firing *firings;
    size_t n;
    WEIR_TRY(weir_firings_list(txn, ion, NULL, FIRINGS_SHOWN, arena, &firings, &n, err));
    *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(*out,
                              weir_record_to_json(&weir_trigger_firing_resource, &firings[i]));
    }
    return WEIR_OK;
}

/** The links that start pipelines: with data, or with models to measure. */
static json_t *starts_view(const struct weir_ion_doc *doc)
{
    json_t *view = json_array();
    for (size_t i = 0; i < doc->n_feeds; i++) {
        const struct weir_ion_doc_feed *feed = &doc->feeds[i];
        json_array_append_new(view,
                              json_pack("{s:s,s:s,s:s,s:s?}", "id", feed->id, "from", feed->from,
                                        "to", feed->to, "dataset", feed->dataset));
    }
    return view;
}

static weir_status ion_view(struct weir_txn *txn, const struct weir_ion_state *state,
                            const struct weir_alert *alerts, size_t n_alerts,
                            struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    json_t *firings;
    WEIR_TRY(firings_view(txn, state->ion.name, arena, &firings, err));
    json_t *view = weir_record_to_json(&weir_ion_resource, &state->ion);
    json_t *pipelines = json_array(), *links = json_array();
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        if (strcmp(pipeline->state, "REMOVED") != 0) {
            json_t *one =
                pipeline_view(pipeline, weir_ion_doc_pipeline(&state->doc, pipeline->name));
            add_reason_of_job(txn, pipeline, arena, one);
            json_object_set_new(one, "triggers", triggers_view(state, pipeline->name));
            json_array_append_new(pipelines, one);
        }
    }
    for (size_t i = 0; i < state->doc.n_links; i++) {
        json_array_append_new(links, link_view(state, &state->doc.links[i]));
    }
    json_object_set_new(view, "pipelines", pipelines);
    json_object_set_new(view, "links", links);
    json_object_set_new(view, "starts", starts_view(&state->doc));
    json_object_set_new(view, "comparisons", comparisons_of_ion(txn, state, weir_time_ms(), arena));
    json_object_set_new(view, "firings", firings);
    struct weir_health health = weir_watch_ion_health(state, alerts, n_alerts);
    json_object_set_new(view, "health", api_health_view(&health));
    *out = view;
    return WEIR_OK;
}

weir_status api_ion_look(struct api_call *call, struct weir_txn *txn, const char *name,
                         json_t **out, struct weir_error *err)
{
    struct weir_ion_state state;
    struct weir_alert *alerts;
    size_t n_alerts;
    WEIR_TRY(weir_ion_load(txn, name, call->arena, &state, err));
    WEIR_TRY(weir_watch_alerts(txn, call->arena, &alerts, &n_alerts, err));
    return ion_view(txn, &state, alerts, n_alerts, call->arena, out, err);
}

weir_status api_ion_answer(struct api_call *call, struct weir_txn *txn, const char *name,
                           json_t *warnings, struct weir_error *err)
{
    json_t *view;
    WEIR_TRY(api_ion_look(call, txn, name, &view, err));
    if (warnings != NULL) {
        json_object_set_new(view, "warnings", json_copy(warnings));
    }
    api_answer(call, view);
    return WEIR_OK;
}

/* Its view, or of one that cannot be read its name and why: it must not hide the others. */
static json_t *ion_view_by_name(struct weir_txn *txn, const char *name,
                                const struct weir_alert *alerts, size_t n_alerts, size_t *weight)
{
    struct weir_arena arena;
    struct weir_ion_state state;
    struct weir_error reason = {0};
    json_t *view;
    weir_arena_init(&arena, ION_MAX_BYTES);
    weir_status status = weir_ion_load(txn, name, &arena, &state, &reason);
    if (status == WEIR_OK) {
        status = ion_view(txn, &state, alerts, n_alerts, &arena, &view, &reason);
    }
    if (status != WEIR_OK) {
        view = json_pack("{s:s,s:s,s:s,s:[],s:[]}", "name", name, "state", "ACTIVE", "problem",
                         reason.message, "pipelines", "links");
    }
    *weight += arena.used_bytes;
    weir_arena_fini(&arena);
    return view;
}

weir_status api_ion_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char **names;
    const char *next = NULL, *cursor = api_query_text(call, "cursor");
    struct weir_alert *alerts;
    size_t n, n_alerts, weight = 0;
    WEIR_TRY(weir_ion_list_active(txn, call->arena, &names, &n, err));
    WEIR_TRY(weir_watch_alerts(txn, call->arena, &alerts, &n_alerts, err));
    json_t *items = json_array();
    for (size_t i = 0; i < n && next == NULL; i++) {
        if (cursor == NULL || strcmp(names[i], cursor) > 0) {
            json_array_append_new(items,
                                  ion_view_by_name(txn, names[i], alerts, n_alerts, &weight));
            next = weight > API_ANSWER_MAX_BYTES && i + 1 < n ? names[i] : NULL;
        }
    }
    api_answer(call, json_pack("{s:o,s:s?}", "items", items, "next", next));
    return WEIR_OK;
}

weir_status api_ion_load(struct api_call *call, struct weir_txn *txn, struct weir_ion_state *out,
                         struct weir_error *err)
{
    WEIR_TRY(weir_ion_load(txn, call->params[0], call->arena, out, err));
    if (strcmp(out->ion.state, "DELETED") == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "ion \"%s\" was deleted", call->params[0]);
    }
    return WEIR_OK;
}

weir_status api_ion_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    return api_ion_answer(call, txn, call->params[0], NULL, err);
}

/* ---- changes --------------------------------------------------------------------------------- */

static weir_status step_and_answer(struct api_call *call, struct weir_txn *txn,
                                   const struct weir_ion_event *event, struct weir_error *err)
{
    struct control control = api_control(call);
    WEIR_TRY(control_ion_event(&control, txn, call->params[0], event, err));
    return api_ion_answer(call, txn, call->params[0], NULL, err);
}

weir_status api_ion_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_DELETED, .actor = call->actor};
    weir_status status = control_ion_event(&control, txn, call->params[0], &event, err);
    if (control_is_unreadable(status)) {
        status = control_ion_abandon(&control, txn, call->params[0], err);
    }
    WEIR_TRY(status);
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_ion_trigger(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"pipeline", NULL};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_TRIGGER, .actor = call->actor};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "pipeline", &event.pipeline, err));
    if (event.pipeline == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.pipeline: missing (which training to start)");
    }
    return step_and_answer(call, txn, &event, err);
}

weir_status api_ion_run(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"times", NULL};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_RUN, .actor = call->actor};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_int(call, "times", 1, &event.times, err));
    return step_and_answer(call, txn, &event, err);
}

weir_status api_ion_promote(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {NULL};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_PROMOTED, .actor = call->actor};
    WEIR_TRY(api_body_only(call, fields, err));
    return step_and_answer(call, txn, &event, err);
}

/** The caller's roles here: on the platform, and those in the ION's project that the token may use.
 *  NULL at the end. */
static weir_status roles_here(struct api_call *call, struct weir_txn *txn, const char *project,
                              const char *const **out, struct weir_error *err)
{
    const struct weir_identity *identity = &call->identity;
    weir_rights rights = identity->rights;
    char **in_project;
    size_t n, n_roles = 0;
    WEIR_TRY(weir_project_roles_of(txn, project, call->actor, call->arena, &in_project, &n, err));
    const char **roles = WEIR_ARENA_ARRAY(call->arena, n + 2, const char *);
    for (size_t i = 0; i < identity->n_grants; i++) {
        if (strcmp(identity->grants[i].project, project) == 0) {
            rights |= identity->grants[i].rights;
        }
    }
    roles[n_roles++] = identity->role_name;
    for (size_t i = 0; i < n; i++) {
        struct weir_role_found role;
        struct weir_error gone;
        weir_status status = weir_role_find(txn, in_project[i], call->arena, &role, &gone);
        if (status != WEIR_OK && status != WEIR_ERR_INVALID) {
            return weir_error_set(err, status, "%s", gone.message);
        }
        if (status == WEIR_OK && (role.rights & ~rights) == 0 &&
            strcmp(role.name, identity->role_name) != 0) {
            roles[n_roles++] = role.name;
        }
    }
    *out = roles;
    return WEIR_OK;
}

static weir_status review(struct api_call *call, struct weir_txn *txn,
                          enum weir_ion_event_type type, struct weir_error *err)
{
    static const char *const fields[] = {"version", "note", "link", NULL};
    struct weir_ion_event event = {.type = type, .actor = call->actor};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_int(call, "version", 0, &event.version, err));
    WEIR_TRY(api_body_text(call, "note", &event.note, err));
    WEIR_TRY(api_body_text(call, "link", &event.link, err));
    if (type == WEIR_ION_EVENT_APPROVE) {
        struct weir_ion ion;
        WEIR_TRY(weir_txn_get(txn, &weir_ion_resource, call->params[0], call->arena, &ion, err));
        WEIR_TRY(roles_here(call, txn, ion.project, &event.roles, err));
    }
    return step_and_answer(call, txn, &event, err);
}

weir_status api_ion_approve(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return review(call, txn, WEIR_ION_EVENT_APPROVE, err);
}

weir_status api_ion_reject(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return review(call, txn, WEIR_ION_EVENT_REJECT, err);
}

weir_status api_ion_rollback(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return review(call, txn, WEIR_ION_EVENT_ROLLBACK, err);
}

static weir_status pause_or_resume(struct api_call *call, struct weir_txn *txn,
                                   enum weir_ion_event_type type, struct weir_error *err)
{
    static const char *const fields[] = {"pipeline", NULL};
    struct weir_ion_event event = {.type = type, .actor = call->actor};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "pipeline", &event.pipeline, err));
    return step_and_answer(call, txn, &event, err);
}

weir_status api_ion_pause(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return pause_or_resume(call, txn, WEIR_ION_EVENT_PAUSE, err);
}

weir_status api_ion_resume(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return pause_or_resume(call, txn, WEIR_ION_EVENT_RESUME, err);
}

weir_status api_ion_set_model(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"link", "version", "note", NULL};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_SET, .actor = call->actor, .n_models = 1};
    struct weir_ion_state state;
    struct weir_model_version version;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "link", &event.link, err));
    WEIR_TRY(api_body_int(call, "version", 0, &event.version, err));
    WEIR_TRY(api_body_text(call, "note", &event.note, err));
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&state.doc, event.link);
    if (event.link == NULL || event.version <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              event.link == NULL
                                  ? "$.link: missing (which link, FROM:TO)"
                                  : "$.version: missing (which version of its model)");
    }
    if (link == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no link \"%.127s\"",
                              call->params[0], event.link);
    }
    const char *name =
        link->model != NULL ? link->model : weir_ion_doc_model(&state.doc, link->from);
    WEIR_TRY(weir_model_version_get(txn, name, event.version, call->arena, &version, err));
    WEIR_TRY(weir_version_check_servable(&version, err));
    const struct weir_ion_model model = control_ion_model(&version, call->arena);
    event.models = &model;
    return step_and_answer(call, txn, &event, err);
}

/* ---- parts ----------------------------------------------------------------------------------- */

weir_status api_ion_candidates(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    json_t *items = json_array();
    for (size_t i = state.n_candidates; i > 0; i--) {
        const struct weir_ion_candidate *candidate = &state.candidates[i - 1];
        json_t *view = weir_record_to_json(&weir_ion_candidate_resource, candidate);
        json_object_set_new(view, "state",
                            json_string(weir_ion_candidate_shown(&state, candidate)));
        const char *colon = strchr(candidate->link, ':');
        size_t from_len =
            colon != NULL ? (size_t)(colon - candidate->link) : strlen(candidate->link);
        json_object_set_new(view, "link_from", json_stringn(candidate->link, from_len));
        json_object_set_new(view, "link_to", json_string(colon != NULL ? colon + 1 : ""));
        json_array_append_new(items, view);
    }
    api_answer(call, json_pack("{s:o,s:n}", "items", items, "next"));
    return WEIR_OK;
}

weir_status api_list_of_ion(struct api_call *call, struct weir_txn *txn,
                            const struct weir_resource *resource, const char *order_by,
                            struct weir_error *err)
{
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, call->params[0])),
                               .order_by = order_by,
                               .is_descending = order_by != NULL,
                               .limit = 1000,
                               .max_bytes = API_ANSWER_MAX_BYTES,
                               .cursor = api_query_text(call, "cursor")};
    void *items;
    size_t n;
    char *next;
    WEIR_TRY(weir_txn_list(txn, resource, &query, call->arena, &items, &n, &next, err));
    api_answer_list(call, resource, items, n, next);
    return WEIR_OK;
}

weir_status api_policy_decisions(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    return api_list_of_ion(call, txn, &weir_policy_decision_resource, "time_ms", err);
}

weir_status api_threshold_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_threshold report = weir_threshold_unknown;
    struct control control = api_control(call);
    bool is_new;
    WEIR_TRY(weir_record_from_json(&weir_threshold_resource, call->body, WEIR_RECORD_REPORT,
                                   call->arena, &report, err));
    if (report.deployment_revision <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.deployment_revision: expected 1 or more");
    }
    report.time_ms = call->now_ms;
    WEIR_TRY(weir_threshold_store(txn, call->params[0], call->params[1], &report, &is_new, err));
    if (is_new) {
        WEIR_TRY(control_log(&control, txn, "ions", "threshold_set",
                             weir_arena_printf(call->arena, "ion/%s", call->params[0]),
                             weir_threshold_sentence(&report, call->params[1], call->arena), err));
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/** How a picture becomes the model's input, as it was found when the version was pushed: a replica
 *  runs the model by it. A version without one, which Weir trained, says it in its file. */
static weir_status add_signature(struct api_call *call, struct weir_txn *txn, json_t *deployment,
                                 struct weir_error *err)
{
    struct weir_model_version version;
    json_t *model = json_object_get(deployment, "model");
    const char *id = json_string_value(json_object_get(model, "id"));
    if (id == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(txn, &weir_model_version_resource, id, call->arena, &version, err));
    json_t *signature =
        version.signature != NULL ? json_loads(version.signature, 0, NULL) : json_null();
    json_object_set_new(model, "signature", signature != NULL ? signature : json_null());
    return WEIR_OK;
}

weir_status api_deployment_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    int64_t after = api_query_int(call, "after");
    int64_t wait_s = api_query_int(call, "wait_s");
    WEIR_TRY(weir_ion_load(txn, call->params[0], call->arena, &state, err));
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(&state, call->params[1]);
    if (pipeline == NULL || strcmp(pipeline->type, "prediction") != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "ion \"%s\" has no prediction pipeline \"%s\"", call->params[0],
                              call->params[1]);
    }
    bool is_new = pipeline->deployment != NULL && pipeline->deployment_revision > after;
    if (!is_new && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    json_t *deployment =
        pipeline->deployment != NULL ? json_loads(pipeline->deployment, 0, NULL) : NULL;
    if (deployment == NULL) {
        deployment = json_object();
    }
    if (call->attempt == NULL) { /* only the replica itself needs them */
        weir_secrets_mask(deployment, WEIR_DEPLOYMENT_SECRETS);
    } else {
        weir_status status = add_signature(call, txn, deployment, err);
        if (status != WEIR_OK) {
            json_decref(deployment);
            return status;
        }
    }
    json_object_set_new(deployment, "revision", json_integer(pipeline->deployment_revision));
    api_answer(call, deployment);
    return WEIR_OK;
}
