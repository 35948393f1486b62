#include "control/deploy/evaluation.h"

#include "framework/framework.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- gathered -------------------------------------------------------------------------------- */

/* The run's figure of that name; 0 without one. */
static double figure(const struct weir_metric *metrics, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(metrics[i].key, key) == 0 && isfinite(metrics[i].value)) {
            return metrics[i].value;
        }
    }
    return 0;
}

static weir_status read_figures(struct control *control, struct weir_txn *txn, const char *run,
                                struct weir_policy_evaluation *out, struct weir_error *err)
{
    struct weir_metric *metrics;
    size_t n;
    WEIR_TRY(weir_metrics_latest(txn, run, control->arena, &metrics, &n, err));
    out->n_samples = llround(figure(metrics, n, "samples"));
    out->n_errors = llround(figure(metrics, n, "errors"));
    out->accuracy = figure(metrics, n, "accuracy");
    out->loss = figure(metrics, n, "loss");
    out->live_accuracy = figure(metrics, n, "live_accuracy");
    out->live_loss = figure(metrics, n, "live_loss");
    out->only_candidate = llround(figure(metrics, n, "only_model"));
    out->only_live = llround(figure(metrics, n, "only_live"));
    out->loss_m2 = figure(metrics, n, "loss_m2");
    if (out->n_samples == 0) {
        out->problem = "its run has no figures";
    }
    return WEIR_OK;
}

static weir_status look(struct control *control, struct weir_txn *txn, const char *id,
                        struct weir_policy_evaluation *out, struct weir_error *err)
{
    struct weir_job job;
    struct weir_error missing;
    *out = (struct weir_policy_evaluation){.job = (char *)id};
    weir_status status = weir_txn_get(txn, &weir_job_resource, id, control->arena, &job, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        out->problem = "its job is not there any more";
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    out->state = job.state;
    bool is_cancelled = strcmp(job.state, "CANCELLED") == 0;
    if (is_cancelled || strcmp(job.state, "FAILED") == 0) {
        out->problem = weir_arena_printf(
            control->arena, "its job %s%s%s", is_cancelled ? "was cancelled" : "failed",
            job.reason != NULL ? ": " : "", job.reason != NULL ? job.reason : "");
    }
    return strcmp(job.state, "SUCCEEDED") == 0 ? read_figures(control, txn, job.run, out, err)
                                               : WEIR_OK;
}

weir_status control_evaluation_gather(struct control *control, struct weir_txn *txn,
                                      const struct weir_ion_state *state,
                                      struct weir_ion_event *tick, struct weir_error *err)
{
    struct weir_ion_measured *measured =
        WEIR_ARENA_ARRAY(control->arena, state->n_candidates + 1, struct weir_ion_measured);
    size_t n = 0;
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const char *job = weir_policy_evaluation_of(candidate->evaluation)->job;
        if (job != NULL && weir_ion_watching(state, candidate) != NULL) {
            measured[n].candidate = candidate->id;
            WEIR_TRY(look(control, txn, job, &measured[n].figures, err));
            n++;
        }
    }
    tick->measured = measured;
    tick->n_measured = n;
    return WEIR_OK;
}

/* ---- begun ----------------------------------------------------------------------------------- */

/* What the policy's options say of the job. */
static json_t *spec_of(const struct weir_ion_candidate *candidate, const struct weir_policy *policy,
                       int64_t live_version)
{
    json_t *options = json_loads(policy->text, 0, NULL);
    json_t *spec = json_object();
    json_object_set_new(spec, "model",
                        json_sprintf("%s@v%" PRId64, candidate->model, candidate->version));
    json_object_set(spec, "dataset", json_object_get(options, "dataset"));
    if (live_version > 0) {
        json_object_set_new(spec, "live",
                            json_sprintf("%s@v%" PRId64, candidate->model, live_version));
    }
    json_decref(options);
    return spec;
}

static weir_status make_job(struct control *control, struct weir_txn *txn,
                            const struct weir_ion_state *state,
                            const struct weir_ion_candidate *candidate,
                            const struct weir_policy *policy, int64_t live_version,
                            struct weir_job *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *spec = spec_of(candidate, policy, live_version);
    const struct control_job wanted = {
        .name = weir_arena_printf(control->arena, "%s.evaluate.v%" PRId64, state->ion.name,
                                  candidate->version),
        .project = state->ion.project,
        .kind = "measure",
        .spec = spec,
        .max_restarts = weir_job_ops_of("measure")->max_restarts,
        .ion = state->ion.name,
        .cause = weir_arena_printf(control->arena, "policy %s of link %s", policy->kind->name,
                                   candidate->link)};
    return control_job_create(control, txn, &wanted, out, err);
}

weir_status control_evaluation_start(struct control *control, struct weir_txn *txn,
                                     struct weir_ion_state *state, const char *id, int64_t number,
                                     struct weir_error *err)
{
    const struct weir_ion_candidate *candidate = weir_ion_candidate_of(state, id);
    const struct weir_policy *policy =
        candidate != NULL ? weir_ion_watching(state, candidate) : NULL;
    const struct weir_policy_evaluation *row =
        weir_policy_evaluation_of(candidate != NULL ? candidate->evaluation : NULL);
    if (policy == NULL || !weir_policy_ops(policy)->measures || row->n != number ||
        row->job != NULL || row->problem != NULL || strcmp(state->ion.state, "ACTIVE") != 0) {
        return WEIR_OK;
    }
    struct weir_job job = {0};
    struct weir_error reason = {0};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_MEASURING,
                                   .actor = control->actor,
                                   .candidate = id,
                                   .number = number};
    weir_status status =
        make_job(control, txn, state, candidate, policy, row->live_version, &job, &reason);
    switch (status) {
    case WEIR_OK:
        event.job = job.id;
        event.run = job.run;
        break;
    case WEIR_ERR_INVALID:
    case WEIR_ERR_NOT_FOUND:
    case WEIR_ERR_LIMIT:
    case WEIR_ERR_UNSUPPORTED:
        event.note = weir_arena_strdup(control->arena, reason.message);
        break;
    default:
        return weir_error_set(err, status, "%s", reason.message);
    }
    return control_ion_step(control, txn, state, &event, err);
}
