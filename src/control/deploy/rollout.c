#include "control/rollout.h"

#include "base/uuid.h"
#include "control/deploy.h"
#include "control/deploy/evaluation.h"
#include "ion/arms.h"
#include "store/event.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <string.h>

/* ---- how those do that are tried ------------------------------------------------------------- */

/* What its deployment has of it; a deployment that is not there has nothing. */
static weir_status look(struct control *control, struct weir_txn *txn, const char *deployment,
                        const struct weir_ion_candidate *candidate,
                        const struct weir_policy *policy, int64_t live,
                        struct weir_ion_traffic *out, struct weir_error *err)
{
    struct weir_deploy_state state;
    struct weir_error missing;
    *out = (struct weir_ion_traffic){.candidate = candidate->id};
    weir_status status = weir_deploy_load(txn, deployment, control->arena, &state, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    if (strcmp(state.deployment.model, candidate->model) != 0) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < state.n_versions; i++) {
        const struct weir_deployment_version *row = &state.versions[i].row;
        if (row->version == candidate->version) {
            out->live_ppm = row->live_ppm;
            out->problem = row->failure;
        }
    }
    out->is_ready = weir_deploy_n_ready(&state, candidate->version) > 0;
    const struct weir_policy_ops *ops = weir_policy_ops(policy);
    const struct control_figures *figures = control->figures;
    int64_t slow_us = ops->slow_us != NULL ? ops->slow_us(policy->options) : 0;
    bool is_known = figures != NULL && figures->fn != NULL &&
                    figures->fn(figures->context, deployment, candidate->version, live,
                                state.deployment.mirror, slow_us, control->arena, &out->figures);
    if (!is_known) {
        out->figures = (struct weir_ion_figures){0};
    }
    return WEIR_OK;
}

weir_status control_rollout_gather(struct control *control, struct weir_txn *txn,
                                   const struct weir_ion_state *state, struct weir_ion_event *tick,
                                   struct weir_error *err)
{
    struct weir_ion_traffic *traffic =
        WEIR_ARENA_ARRAY(control->arena, state->n_candidates + 1, struct weir_ion_traffic);
    size_t n = 0;
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const struct weir_policy *policy = weir_ion_watching(state, candidate);
        const struct weir_ion_doc_link *link =
            policy != NULL ? weir_ion_doc_link(&state->doc, candidate->link) : NULL;
        if (link != NULL && link->deployment != NULL) {
            WEIR_TRY(look(control, txn, link->deployment, candidate, policy,
                          weir_ion_wanted_of(state, link).serving, &traffic[n], err));
            WEIR_TRY(
                weir_ion_arms_read(txn, state, candidate, control->arena, &traffic[n].arms, err));
            n++;
        }
    }
    tick->traffic = traffic;
    tick->n_traffic = n;
    return WEIR_OK;
}

static bool is_any_watched(const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (weir_ion_watching(state, &state->candidates[i]) != NULL) {
            return true;
        }
    }
    return false;
}

weir_status control_rollout_look(struct control *control, struct weir_txn *txn,
                                 struct weir_ion_state *state, int64_t *next_ms,
                                 struct weir_error *err)
{
    struct weir_ion_actions actions = {0};
    struct weir_ion_event tick = {.type = WEIR_ION_EVENT_TICK, .actor = "system"};
    if (*next_ms <= control->now_ms || !is_any_watched(state)) {
        return WEIR_OK;
    }
    /* Tried here, and done in a transaction that writes only if something comes of it. */
    WEIR_TRY(control_rollout_gather(control, txn, state, &tick, err));
    WEIR_TRY(control_evaluation_gather(control, txn, state, &tick, err));
    WEIR_TRY(weir_ion_step(state, &tick, control->now_ms, control->arena, &actions, err));
    *next_ms = actions.n > 0 ? control->now_ms
                             : WEIR_MIN(*next_ms, control->now_ms + CONTROL_ROLLOUT_LOOK_MS);
    return WEIR_OK;
}

/* ---- what a link wants ----------------------------------------------------------------------- */

static json_t *share(int64_t version, int64_t ppm)
{
    return json_pack("{s:I,s:f}", "version", (json_int_t)version, "percent", (double)ppm / 10000);
}

/* What a person would write who wants the same. */
static json_t *body_of(const struct weir_ion_wanted *wanted, struct weir_arena *arena)
{
    json_t *traffic = json_array();
    if (wanted->trial_ppm < WEIR_SHARES_PPM) {
        json_array_append_new(traffic, share(wanted->serving, WEIR_SHARES_PPM - wanted->trial_ppm));
    }
    if (wanted->trial_ppm > 0) {
        json_array_append_new(traffic, share(wanted->trial, wanted->trial_ppm));
    }
    const char *mirror =
        wanted->mirror > 0 ? weir_arena_printf(arena, "v%" PRId64, wanted->mirror) : "none";
    return json_pack("{s:s,s:o,s:s}", "model", wanted->model, "traffic", traffic, "mirror", mirror);
}

static int64_t ppm_of(const struct weir_shares *shares, int64_t version)
{
    for (size_t i = 0; i < shares->n; i++) {
        if (shares->items[i].version == version) {
            return shares->items[i].ppm;
        }
    }
    return 0;
}

static bool is_so(const struct weir_deploy_state *state, const struct weir_ion_wanted *wanted)
{
    struct weir_shares shares = weir_deploy_shares(state, false);
    return strcmp(state->deployment.model, wanted->model) == 0 &&
           state->deployment.mirror == wanted->mirror &&
           ppm_of(&shares, wanted->serving) == WEIR_SHARES_PPM - wanted->trial_ppm &&
           (wanted->trial == 0 || ppm_of(&shares, wanted->trial) == wanted->trial_ppm);
}

/* The deployment as a link wants it. */
static weir_status put(struct control *control, struct weir_txn *txn,
                       const struct weir_ion_state *ion, const char *deployment,
                       const struct weir_ion_wanted *wanted, struct weir_error *err)
{
    struct weir_deploy_state state;
    struct weir_model model;
    struct weir_share_model shares;
    weir_status status = weir_deploy_load(txn, deployment, control->arena, &state, err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    if (status == WEIR_OK && is_so(&state, wanted)) {
        return WEIR_OK;
    }
    const char *project = status == WEIR_OK ? state.deployment.project : NULL;
    if (status != WEIR_OK) {
        WEIR_TRY(control_share_model(txn, wanted->model, control->arena, &model, &shares, err));
        project = model.project;
    }
    if (strcmp(project, ion->ion.project) != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "deployment \"%s\" is of another project than the ION", deployment);
    }
    json_t *body = body_of(wanted, control->arena);
    status = control_deploy_put(control, txn, deployment, body, &state, err);
    json_decref(body);
    return status;
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static char *alert_key(struct control *control, const char *ion, const char *link)
{
    return weir_arena_printf(control->arena, WEIR_ION_SHIFT_ALERT, ion, link);
}

/* What is open under this key, and says this (NULL: whatever). */
static weir_status count_open(struct weir_txn *txn, const char *key, const char *message,
                              int64_t *out, struct weir_error *err)
{
    static const char sql[] = "SELECT count(*) FROM alerts WHERE key = :key"
                              " AND state <> 'resolved' AND (message = :text OR :text IS NULL)";
    return weir_txn_query_int(
        txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("key", key), WEIR_BIND_TEXT("text", message)), 0, out,
        err);
}

/* Tried again and refused again is nothing new. */
static weir_status raise_refused(struct control *control, struct weir_txn *txn, const char *key,
                                 const char *ion, const struct weir_ion_doc_link *link,
                                 const char *reason, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    int64_t n_known;
    weir_uuid_make(id);
    const struct weir_alert alert = {
        .id = id,
        .key = (char *)key,
        .kind = "deployment_failed",
        .subject = weir_arena_printf(control->arena, "ion/%s", ion),
        .message = weir_arena_printf(
            control->arena, "Deployment %s cannot be as link %s wants it, and stays as it is: %s",
            link->deployment, link->id, reason)};
    WEIR_TRY(count_open(txn, key, alert.message, &n_known, err));
    if (n_known > 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_alert_raise(txn, &alert, control->now_ms, NULL, err));
    control_publish(control, "alerts", json_pack("{s:s}", "kind", alert.kind));
    return WEIR_OK;
}

static weir_status is_refused(struct control *control, struct weir_txn *txn,
                              const struct weir_ion_state *state,
                              const struct weir_ion_doc_link *link, bool *out,
                              struct weir_error *err)
{
    int64_t n_open = 0;
    if (link->deployment != NULL) {
        WEIR_TRY(
            count_open(txn, alert_key(control, state->ion.name, link->id), NULL, &n_open, err));
    }
    *out = n_open > 0;
    return WEIR_OK;
}

weir_status control_rollout_is_refused(struct control *control, struct weir_txn *txn,
                                       const struct weir_ion_state *state, bool *out,
                                       struct weir_error *err)
{
    *out = false;
    for (size_t i = 0; i < state->doc.n_links && !*out; i++) {
        WEIR_TRY(is_refused(control, txn, state, &state->doc.links[i], out, err));
    }
    return WEIR_OK;
}

weir_status control_rollout_again(struct control *control, struct weir_txn *txn, const char *ion,
                                  struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    for (size_t i = 0; i < state.doc.n_links; i++) {
        const char *link = state.doc.links[i].id;
        bool is_due;
        WEIR_TRY(is_refused(control, txn, &state, &state.doc.links[i], &is_due, err));
        if (!is_due) {
            continue;
        }
        json_t *payload = json_pack("{s:s,s:s}", "ion", ion, "pipeline", link);
        const char *text = weir_json_text(payload, control->arena);
        json_decref(payload);
        WEIR_TRY(weir_outbox_add(txn,
                                 weir_arena_printf(control->arena,
                                                   "shift_deployment:%s:%s:again:%" PRId64, ion,
                                                   link, control->now_ms),
                                 "shift_deployment", text, control->now_ms, control->now_ms, err));
    }
    return WEIR_OK;
}

/* ---- carried out ----------------------------------------------------------------------------- */

static weir_status shift(struct control *control, struct weir_txn *txn,
                         const struct weir_ion_state *state, const struct weir_ion_doc_link *link,
                         struct weir_error *err)
{
    struct weir_error reason = {0};
    /* Not what it wanted when this was written, but what it wants now: it can be done twice, or late. */
    struct weir_ion_wanted wanted = weir_ion_wanted_of(state, link);
    char *key = alert_key(control, state->ion.name, link->id);
    weir_status status = wanted.model != NULL
                             ? put(control, txn, state, link->deployment, &wanted, &reason)
                             : WEIR_OK;
    switch (status) {
    case WEIR_OK:
        return weir_alert_resolve(txn, key, control->now_ms, err);
    case WEIR_ERR_INVALID:
    case WEIR_ERR_NOT_FOUND:
    case WEIR_ERR_CONFLICT:
        return raise_refused(control, txn, key, state->ion.name, link, reason.message, err);
    default: /* LIMIT, too: something may have been written, and the outbox tries again */
        return weir_error_set(err, status, "%s", reason.message);
    }
}

/* Does a link that is there decide what the deployment serves? */
static bool is_taken_over(const struct weir_ion_state *state, const char *deployment)
{
    for (size_t i = 0; i < state->doc.n_links; i++) {
        const struct weir_ion_doc_link *link = &state->doc.links[i];
        if (strcmp(state->ion.state, "ACTIVE") == 0 && link->deployment != NULL &&
            strcmp(link->deployment, deployment) == 0 &&
            weir_ion_wanted_of(state, link).model != NULL) {
            return true;
        }
    }
    return false;
}

/* What a link that is gone gave to a trial; by now somebody may have taken it away. */
static weir_status give_back(struct control *control, struct weir_txn *txn,
                             const struct weir_ion_state *ion, const char *deployment,
                             const struct weir_ion_wanted *wanted, struct weir_error *err)
{
    struct weir_deploy_state state;
    struct weir_error missing;
    if (is_taken_over(ion, deployment)) {
        return WEIR_OK;
    }
    weir_status status = weir_deploy_load(txn, deployment, control->arena, &state, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    struct weir_shares shares = weir_deploy_shares(&state, false);
    bool is_there =
        strcmp(state.deployment.model, wanted->model) == 0 &&
        (ppm_of(&shares, wanted->trial) > 0 || state.deployment.mirror == wanted->trial);
    return is_there ? put(control, txn, ion, deployment, wanted, err) : WEIR_OK;
}

static const char *text_of(const json_t *payload, const char *name)
{
    return json_string_value(json_object_get(payload, name));
}

static int64_t int_of(const json_t *payload, const char *name)
{
    return json_integer_value(json_object_get(payload, name));
}

weir_status control_rollout_shift(struct control *control, struct weir_txn *txn,
                                  const json_t *payload, struct weir_error *err)
{
    struct weir_ion_state state;
    const char *ion = text_of(payload, "ion"), *deployment = text_of(payload, "deployment");
    if (ion == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "a shift of no ION");
    }
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    const struct weir_ion_doc_link *link =
        weir_ion_doc_link(&state.doc, text_of(payload, "pipeline"));
    if (link != NULL && strcmp(state.ion.state, "ACTIVE") == 0) {
        return shift(control, txn, &state, link, err);
    }
    const struct weir_ion_wanted wanted = {.model = text_of(payload, "model"),
                                           .serving = int_of(payload, "serving"),
                                           .trial = int_of(payload, "trial")};
    return deployment != NULL && wanted.model != NULL
               ? give_back(control, txn, &state, deployment, &wanted, err)
               : WEIR_OK;
}
