/** Deployments: what people ask for, what replicas are told, and what they report. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/model/arms.h"
#include "api/model/model.h"
#include "base/clock.h"
#include "control/deploy.h"
#include "control/inspector.h"
#include "control/uses.h"
#include "store/table.h"

#include "job/job.h"

#include <string.h>

#define PPM_OF_PERCENT ((double)WEIR_SHARES_PPM / 100)

/* ---- how it is told -------------------------------------------------------------------------- */

/* What the replicas say of a version: READY on some, else what the first of them says. */
static const char *version_state(const struct weir_deploy_state *state, int64_t version,
                                 const char **out_reason)
{
    static const char *const texts[] = {[WEIR_DEPLOY_LOADING] = "LOADING",
                                        [WEIR_DEPLOY_READY] = "READY",
                                        [WEIR_DEPLOY_FAILED] = "FAILED"};
    if (weir_deploy_n_ready(state, version) > 0) {
        return texts[WEIR_DEPLOY_READY];
    }
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        for (size_t k = 0; k < replica->n_loaded; k++) {
            if (replica->loaded[k].version == version) {
                *out_reason = replica->loaded[k].reason;
                return texts[replica->loaded[k].phase];
            }
        }
    }
    return NULL;
}

static struct api_served_version *versions_view(const struct weir_deploy_state *state,
                                                struct weir_arena *arena, size_t *out_n)
{
    struct api_served_version *versions =
        WEIR_ARENA_ARRAY(arena, state->n_versions, struct api_served_version);
    *out_n = 0;
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        const char *reason = NULL, *text = version_state(state, row->version, &reason);
        if (!state->versions[i].is_gone) {
            versions[(*out_n)++] = (struct api_served_version){
                .version = row->version,
                .percent = (double)row->wanted_ppm / PPM_OF_PERCENT,
                .live_percent = (double)row->live_ppm / PPM_OF_PERCENT,
                .is_mirror = row->version == state->deployment.mirror,
                .state = text,
                .reason = reason != NULL ? reason : row->failure,
                .n_ready = (int64_t)weir_deploy_n_ready(state, row->version)};
        }
    }
    return versions;
}

/* A replica with what its job says, which knows why it waits. */
static struct api_deployment_replica replica_view(struct weir_txn *txn,
                                                  const struct weir_deployment_replica *row,
                                                  struct weir_arena *arena)
{
    struct weir_job job = {0};
    struct weir_error ignored;
    struct api_deployment_replica view = {.row = row};
    if (row->job != NULL &&
        weir_txn_get(txn, &weir_job_resource, row->job, arena, &job, &ignored) == WEIR_OK) {
        view.job_state = job.state;
        view.reason = job.reason;
    }
    return view;
}

/* Is what was asked for in effect and served, or is it plain that it will not be? */
static bool is_settled(const struct weir_deploy_state *state)
{
    struct weir_shares wanted = weir_deploy_shares(state, false);
    struct weir_shares live = weir_deploy_shares(state, true);
    bool is_in_effect = wanted.n == live.n &&
                        memcmp(wanted.items, live.items, wanted.n * sizeof *wanted.items) == 0;
    const char *word = state->deployment.state;
    return weir_deploy_problem(state) != NULL || strcmp(word, WEIR_DEPLOYMENT_FAILED) == 0 ||
           (is_in_effect && strcmp(word, WEIR_DEPLOYMENT_DEPLOYING) != 0);
}

static struct api_deployment deployment_view(struct weir_txn *txn,
                                             const struct weir_deploy_state *state,
                                             struct weir_arena *arena)
{
    struct weir_shares live = weir_deploy_shares(state, true);
    struct api_deployment_replica *replicas =
        WEIR_ARENA_ARRAY(arena, state->n_replicas, struct api_deployment_replica);
    struct api_deployment view = {.row = &state->deployment,
                                  .cpus = state->deployment.cpu_millis,
                                  .replicas = replicas,
                                  .traffic = weir_shares_text(&live, arena),
                                  .is_settled = is_settled(state)};
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        if (!replica->is_gone) {
            view.n_ready += strcmp(replica->row.state, WEIR_DEPLOYED_READY) == 0;
            replicas[view.n_replicas++] = replica_view(txn, &replica->row, arena);
        }
    }
    view.versions = versions_view(state, arena, &view.n_versions);
    view.comparisons =
        comparisons_at(txn, state->deployment.name, weir_time_ms(), arena, &view.n_comparisons);
    return view;
}

weir_status api_deploy_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_deploy_state *states;
    size_t n;
    WEIR_TRY(weir_deploy_load_all(txn, call->arena, &states, &n, err));
    struct api_deployment *views = WEIR_ARENA_ARRAY(call->arena, n, struct api_deployment);
    for (size_t i = 0; i < n; i++) {
        views[i] = deployment_view(txn, &states[i], call->arena);
    }
    api_answer_views(call, api_deployment_view(), views, n, NULL);
    return WEIR_OK;
}

weir_status api_deploy_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_deploy_state state;
    int64_t wait_s = api_query_int(call, "wait_s");
    WEIR_TRY(weir_deploy_load(txn, call->params[0], call->arena, &state, err));
    if (!is_settled(&state) && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    const struct api_deployment view = deployment_view(txn, &state, call->arena);
    api_answer(call, weir_view_to_json(api_deployment_view(), &view));
    return WEIR_OK;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* A change on its way in; and the version whose file nobody has looked at yet, from a time before
 * that was done. */
struct change {
    struct api_call *call;
    json_t *view;
    struct weir_model_version unknown;
    bool has_unknown;
};

static weir_status find_unknown(struct weir_txn *txn, const struct weir_deploy_state *state,
                                struct change *change, struct weir_error *err)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        WEIR_TRY(weir_model_version_get(txn, row->model, row->version, change->call->arena,
                                        &change->unknown, err));
        if (!state->versions[i].is_gone && change->unknown.signature == NULL) {
            change->has_unknown = true;
            return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "v%lld has not been looked at yet",
                                  (long long)row->version);
        }
    }
    return WEIR_OK;
}

/* The version with the largest share in effect; 0: nothing serves, or it is another model. */
static int64_t main_version(struct weir_txn *txn, const char *name, struct weir_arena *arena)
{
    struct weir_deploy_state state;
    struct weir_error ignored;
    int64_t version = 0, most_ppm = 0;
    if (weir_deploy_load(txn, name, arena, &state, &ignored) != WEIR_OK) {
        return 0;
    }
    for (size_t i = 0; i < state.n_versions; i++) {
        if (state.versions[i].row.live_ppm > most_ppm) {
            version = state.versions[i].row.version;
            most_ppm = state.versions[i].row.live_ppm;
        }
    }
    return version;
}

/* What callers of the version that served will notice, for who asked for it. */
static weir_status add_warnings(struct weir_txn *txn, const struct weir_deploy_state *state,
                                int64_t before, struct weir_arena *arena,
                                struct api_deployment *view, struct weir_error *err)
{
    char **warnings = WEIR_ARENA_ARRAY(arena, state->n_versions + 1, char *);
    view->warnings = warnings;
    for (size_t i = 0; i < state->n_versions && before > 0; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        char *changes = NULL;
        if (!state->versions[i].is_gone && row->wanted_ppm > 0 && row->version != before) {
            WEIR_TRY(control_version_changes(txn, row->model, before, row->version, arena, &changes,
                                             err));
        }
        if (changes != NULL) {
            warnings[view->n_warnings++] = changes;
        }
    }
    return WEIR_OK;
}

static weir_status put_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct change *change = context;
    struct api_call *call = change->call;
    struct control control = api_control(call);
    struct weir_deploy_state state;
    json_array_clear(call->publish);
    json_decref(change->view);
    change->view = NULL;
    change->has_unknown = false;
    int64_t before = main_version(txn, call->params[0], call->arena);
    WEIR_TRY(control_deploy_put(&control, txn, call->params[0], call->body, &state, err));
    WEIR_TRY(find_unknown(txn, &state, change, err));
    struct api_deployment view = deployment_view(txn, &state, call->arena);
    WEIR_TRY(add_warnings(txn, &state, before, call->arena, &view, err));
    change->view = weir_view_to_json(api_deployment_view(), &view);
    return WEIR_OK;
}

static weir_status store_signature_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_update(txn, &weir_model_version_resource, context, WEIR_FIELDS("signature"),
                           err);
}

/* Look at the version that has no signature. *out_is_done: try the change again; else it waits. */
static weir_status look_at_unknown(struct change *change, bool *out_is_done, struct weir_error *err)
{
    struct weir_model_version *version = &change->unknown;
    const struct inspect_question question = {.blob = version->blob, .name = version->model};
    weir_status status = api_inspect(change->call, &question, &version->signature, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "v%lld cannot be served: ", (long long)version->version);
    }
    *out_is_done = version->signature != NULL;
    return *out_is_done
               ? weir_store_write(change->call->api->store, store_signature_in, version, err)
               : WEIR_OK;
}

weir_status api_deploy_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct change change = {.call = call};
    (void)txn;
    weir_status status = api_write(call, put_in, &change, err);
    for (int i = 0; status != WEIR_OK && change.has_unknown && i < WEIR_DEPLOY_VERSIONS_MAX; i++) {
        bool is_done = false;
        WEIR_TRY(look_at_unknown(&change, &is_done, err));
        if (!is_done) {
            return WEIR_OK;
        }
        status = api_write(call, put_in, &change, err);
    }
    if (status == WEIR_OK) {
        api_answer(call, change.view);
    }
    return status;
}

weir_status api_deploy_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    if (!api_query_bool(call, "force")) {
        WEIR_TRY(control_check_deployment_unused(&control, txn, call->params[0], err));
    }
    WEIR_TRY(control_deploy_delete(&control, txn, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- replicas -------------------------------------------------------------------------------- */

weir_status api_deploy_desired(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_deploy_state state;
    json_t *desired;
    int64_t after = api_query_int(call, "after");
    int64_t wait_s = api_query_int(call, "wait_s");
    WEIR_TRY(weir_deploy_load(txn, call->params[0], call->arena, &state, err));
    if (state.deployment.revision <= after && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    WEIR_TRY(control_deploy_desired(txn, &state, call->arena, &desired, err));
    api_answer(call, desired);
    return WEIR_OK;
}

weir_status api_deploy_report(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_deployment_replica report = {0};
    struct control control = api_control(call);
    WEIR_TRY(weir_record_from_json(&weir_deployment_replica_resource, call->body,
                                   WEIR_RECORD_CREATE, call->arena, &report, err));
    report.id = weir_arena_strdup(call->arena, call->params[1]);
    WEIR_TRY(control_deploy_report(&control, txn, call->params[0], &report, err));
    call->is_routine = json_array_size(call->publish) == 0; /* a heartbeat */
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
