/** IONs: apply, look, review, roll back; what a replica must serve; who is on which list. */
#include "api/ion/ion.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/ion/health.h"
#include "api/ion/kept.h"
#include "api/model/arms.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/secret.h"
#include "control/control.h"
#include "ion/claim.h"
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

static struct api_pipeline_doc doc_view(const struct weir_ion_doc_pipeline *doc)
{
    bool is_prediction = doc->type == WEIR_PIPELINE_PREDICTION;
    return (struct api_pipeline_doc){
        .dataset = is_prediction ? doc->gallery_dataset : doc->dataset,
        .output = doc->output,
        .against = doc->against,
        .critical = doc->is_critical,
        .restart = doc->restart.kind != NULL ? doc->restart.kind->name : NULL,
        .kind = doc->kind,
        .registers = doc->registers,
        .model = doc->model,
        .workers = doc->workers,
        .parameter_servers = doc->parameter_servers,
        .schedule = schedule_of(doc),
        .new_data = weir_trigger_of_kind(&doc->triggers, &weir_trigger_kind_new_data) != NULL,
        .replicas = doc->replicas,
        .gallery_dataset = doc->gallery_dataset,
        .impostors = doc->impostors,
        .false_accept_rate = doc->false_accept_rate,
        .false_deny_rate = doc->false_deny_rate,
        .gallery_default = doc->gallery_default};
}

/** While a pipeline waits for its job: why, as `weir explain job` says it. */
static void add_reason_of_job(struct weir_txn *txn, struct weir_ion_pipeline *pipeline,
                              struct weir_arena *arena)
{
    struct weir_job job;
    if (pipeline->job != NULL && pipeline->state_reason == NULL &&
        strcmp(pipeline->state, "SERVING") != 0 &&
        weir_txn_get(txn, &weir_job_resource, pipeline->job, arena, &job, NULL) == WEIR_OK &&
        job.reason != NULL) {
        pipeline->state_reason =
            weir_arena_printf(arena, "%s is %s: %s", job.name, job.state, job.reason);
    }
}

/** What its threshold can claim; nothing of a pipeline that reported none. */
static weir_status add_claims(struct weir_txn *txn, const struct weir_ion_pipeline *pipeline,
                              struct weir_arena *arena, struct api_pipeline *view,
                              struct weir_error *err)
{
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    struct weir_unknown unknown;
    if (service == NULL || service->threshold == NULL) {
        return WEIR_OK;
    }
    struct weir_claim *figures = WEIR_ARENA_ARRAY(arena, WEIR_CLAIMS, struct weir_claim);
    WEIR_TRY(weir_unknown_count(txn, pipeline->ion, pipeline->name, weir_time_ms(), &unknown, err));
    weir_claims_of(service->threshold, &unknown, arena, figures);
    view->claims = figures;
    view->n_claims = WEIR_CLAIMS;
    return WEIR_OK;
}

/** A pipeline with its triggers, as the document has them, and how often and why each has fired. */
static struct api_pipeline pipeline_view(struct weir_txn *txn, const struct weir_ion_state *state,
                                         const struct weir_ion_pipeline *pipeline,
                                         struct weir_arena *arena)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, pipeline->name);
    struct weir_ion_pipeline *row = WEIR_ARENA_NEW(arena, struct weir_ion_pipeline);
    struct weir_ion_trigger *triggers =
        WEIR_ARENA_ARRAY(arena, state->n_triggers + 1, struct weir_ion_trigger);
    struct api_pipeline view = {.row = row, .triggers = triggers};
    *row = *pipeline;
    add_reason_of_job(txn, row, arena);
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_ion_trigger *trigger = &state->triggers[i];
        if (strcmp(trigger->pipeline, pipeline->name) == 0 &&
            weir_ion_trigger_of(state, trigger) != NULL) {
            triggers[view.n_triggers++] = *trigger;
        }
    }
    if (doc != NULL) {
        struct api_pipeline_doc *its = WEIR_ARENA_NEW(arena, struct api_pipeline_doc);
        *its = doc_view(doc);
        view.doc = its;
    }
    if (doc != NULL && doc->source != NULL) {
        view.source = json_loads(doc->source, JSON_DECODE_ANY, NULL);
        weir_secrets_mask(view.source, "token");
    }
    return view;
}

/** A candidate that stands in the link's chain: at which policy, since when, and what that says. */
static struct api_waiting_version waiting_view(const struct weir_ion_candidate *candidate)
{
    return (struct api_waiting_version){.version = candidate->version,
                                        .model = candidate->model,
                                        .state = candidate->state,
                                        .position = candidate->position,
                                        .policy = candidate->waits_for,
                                        .why = candidate->waits_why,
                                        .until_ms = candidate->until_ms,
                                        .approvals = candidate->approvals,
                                        .n_approvals = candidate->n_approvals};
}

/** What replicas serve of the link's models, what the link has chosen, and what waits, for a person or
 *  a time. */
static struct api_link link_view(const struct weir_ion_state *state,
                                 const struct weir_ion_doc_link *link, struct weir_arena *arena)
{
    int64_t *pending = NULL;
    struct api_waiting_version *waiting = NULL;
    size_t cap_pending = 0, cap_waiting = 0;
    char **policies = WEIR_ARENA_ARRAY(arena, link->policies.n, char *);
    struct api_link view = {.id = link->id,
                            .from = link->from,
                            .to = link->to,
                            .policy = link->policies.names,
                            .policies = policies,
                            .n_policies = link->policies.n};
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        if (strcmp(candidate->link, link->id) != 0) {
            continue;
        }
        const char *shown = weir_ion_candidate_shown(state, candidate);
        if (strcmp(shown, WEIR_CANDIDATE_SERVING) == 0) {
            view.serving_version = candidate->version;
            view.serving_model = candidate->model;
        }
        if (strcmp(candidate->state, WEIR_CANDIDATE_SERVING) == 0) {
            view.wanted_version = candidate->version;
            view.deployment_state = shown;
        } else if (strcmp(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0) {
            weir_arena_grow(arena, &pending, sizeof *pending, view.n_pending_versions,
                            &cap_pending);
            pending[view.n_pending_versions++] = candidate->version;
        }
        if (candidate->waits_for != NULL) {
            weir_arena_grow(arena, &waiting, sizeof *waiting, view.n_waiting, &cap_waiting);
            waiting[view.n_waiting++] = waiting_view(candidate);
        }
    }
    for (size_t i = 0; i < link->policies.n; i++) {
        policies[i] = (char *)link->policies.items[i].kind->name;
    }
    view.pending_versions = pending;
    view.waiting = waiting;
    return view;
}

static weir_status ion_view(struct weir_txn *txn, const struct weir_ion_state *state,
                            const struct weir_alert *alerts, size_t n_alerts,
                            struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    struct api_ion_now now = {.health = weir_watch_ion_health(state, alerts, n_alerts)};
    struct weir_trigger_firing *firings;
    WEIR_TRY(weir_firings_list(txn, state->ion.name, NULL, FIRINGS_SHOWN, arena, &firings,
                               &now.n_firings, err));
    now.firings = firings;
    now.comparisons = comparisons_of_ion(txn, state, weir_time_ms(), arena, &now.n_comparisons);
    struct api_pipeline *pipelines =
        WEIR_ARENA_ARRAY(arena, state->n_pipelines, struct api_pipeline);
    struct api_link *links = WEIR_ARENA_ARRAY(arena, state->doc.n_links, struct api_link);
    size_t n = 0;
    for (size_t i = 0; i < state->n_pipelines; i++) {
        if (strcmp(state->pipelines[i].state, "REMOVED") != 0) {
            pipelines[n] = pipeline_view(txn, state, &state->pipelines[i], arena);
            WEIR_TRY(add_claims(txn, &state->pipelines[i], arena, &pipelines[n], err));
            WEIR_TRY(api_kept_of(txn, &state->ion, &state->pipelines[i], arena, &pipelines[n].kept,
                                 err));
            n++;
        }
    }
    for (size_t i = 0; i < state->doc.n_links; i++) {
        links[i] = link_view(state, &state->doc.links[i], arena);
    }
    *out = WEIR_VIEW_JSON(api_ion, .row = &state->ion,
                          .parts = {.pipelines = pipelines,
                                    .n_pipelines = n,
                                    .links = links,
                                    .n_links = state->doc.n_links,
                                    .starts = state->doc.feeds,
                                    .n_starts = state->doc.n_feeds,
                                    .now = &now});
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
        weir_view_add_to_json(api_applied_view(),
                              &(struct api_applied){.warnings = json_incref(warnings)}, view);
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
    api_answer_items(call, items, next);
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
    size_t n = state.n_candidates;
    struct api_candidate *views = WEIR_ARENA_ARRAY(call->arena, n, struct api_candidate);
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_candidate *candidate = &state.candidates[n - 1 - i];
        const char *colon = strchr(candidate->link, ':');
        size_t from_len =
            colon != NULL ? (size_t)(colon - candidate->link) : strlen(candidate->link);
        candidate->state = (char *)weir_ion_candidate_shown(&state, candidate);
        views[i] = (struct api_candidate){
            .row = candidate,
            .link_from = weir_arena_printf(call->arena, "%.*s", (int)from_len, candidate->link),
            .link_to = colon != NULL ? colon + 1 : ""};
    }
    api_answer_views(call, api_candidate_view(), views, n, NULL);
    return WEIR_OK;
}

weir_status api_list_of_ion(struct api_call *call, struct weir_txn *txn, const char *order_by,
                            struct weir_error *err)
{
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, call->params[0])),
                                  .order_by = order_by, .is_descending = true, .limit = 1000};
    return api_list_of(call, txn, &of, err);
}

weir_status api_ion_list_parts(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_of_path(call, txn, "ion", err);
}

weir_status api_policy_decisions(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    return api_list_of_ion(call, txn, "time_ms", err);
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
                                 const char *key, struct weir_error *err)
{
    struct weir_model_version version;
    json_t *model = json_object_get(deployment, key);
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

static weir_status add_signatures(struct api_call *call, struct weir_txn *txn, json_t *deployment,
                                  struct weir_error *err)
{
    WEIR_TRY(add_signature(call, txn, deployment, "model", err));
    return add_signature(call, txn, deployment, "detector", err);
}

weir_status api_deployment_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    int64_t after = api_query_int(call, "after");
    int64_t wait_s = api_query_int(call, "wait_s");
    WEIR_TRY(weir_ion_load(txn, call->params[0], call->arena, &state, err));
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(&state, call->params[1]);
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (service == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "ion \"%s\" has no prediction pipeline \"%s\"", call->params[0],
                              call->params[1]);
    }
    bool is_new = service->deployment != NULL && service->deployment_revision > after;
    if (!is_new && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    json_t *deployment =
        service->deployment != NULL ? json_loads(service->deployment, 0, NULL) : NULL;
    if (deployment == NULL) {
        deployment = json_object();
    }
    if (call->attempt == NULL) { /* only the replica itself needs them */
        weir_secrets_mask(deployment, WEIR_DEPLOYMENT_SECRETS);
    } else {
        weir_status status = add_signatures(call, txn, deployment, err);
        if (status != WEIR_OK) {
            json_decref(deployment);
            return status;
        }
    }
    json_object_set_new(deployment, "revision", json_integer(service->deployment_revision));
    api_answer(call, deployment);
    return WEIR_OK;
}
