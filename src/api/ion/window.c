/** Features of a table or a series: the baseline of a model version, and windows of live values that are
 *  compared with it. For models of any kind; replicas of image models compare for themselves. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/ion/health.h"
#include "api/ion/ion.h"
#include "api/model/model.h"
#include "store/table.h"

#include "ion/decision.h"
#include "ion/window.h"
#include "job/attempt.h"
#include "stats/feature.h"
#include "track/model_baseline.h"
#include "track/track.h"

#include <string.h>

static weir_status path_version(struct api_call *call, struct weir_txn *txn,
                                struct weir_model_version *out, struct weir_error *err)
{
    int64_t number = 0;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    return weir_model_version_get(txn, call->params[0], number, call->arena, out, err);
}

weir_status api_baseline_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_model_version version;
    struct weir_features features;
    WEIR_TRY(api_body_only(call, (const char *const[]){"features", "run", NULL}, err));
    WEIR_TRY(path_version(call, txn, &version, err));
    if (call->attempt != NULL &&
        (version.run == NULL || strcmp(version.run, call->attempt->run) != 0)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "version %s of \"%s\" was not made by this task's run",
                              call->params[1], call->params[0]);
    }
    WEIR_TRY(weir_features_parse(call->body, call->arena, &features, err));
    json_t *kept = json_pack("{s:O}", "features", json_object_get(call->body, "features"));
    struct weir_model_baseline baseline = {.version = version.id,
                                           .baseline = weir_json_text(kept, call->arena),
                                           .actor = (char *)call->actor,
                                           .time_ms = call->now_ms};
    json_decref(kept);
    WEIR_TRY(weir_txn_upsert(txn, &weir_model_baseline_resource, &baseline, err));
    api_answer_record(call, &weir_model_baseline_resource, &baseline);
    return WEIR_OK;
}

weir_status api_baseline_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_model_version version;
    struct weir_model_baseline baseline;
    WEIR_TRY(path_version(call, txn, &version, err));
    if (weir_txn_get(txn, &weir_model_baseline_resource, version.id, call->arena, &baseline, err) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "version %s of \"%s\" has no baseline",
                              call->params[1], call->params[0]);
    }
    api_answer_record(call, &weir_model_baseline_resource, &baseline);
    return WEIR_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* A window is compared between two transactions: one that reads what it is compared with, one that
 * stores what was found. The draws may take seconds, and writers wait for each other. */
struct testing {
    struct api_call *call;
    const char *model;
    int64_t version;
    struct weir_features features;
    struct weir_finding *findings;
    size_t n;
    struct api_finding
        *told; /**< Findings as the answer has them; made anew by each run of the transaction. */
    size_t n_told;
};

static weir_status load_features(struct testing *testing, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct api_call *call = testing->call;
    const char *model = testing->model;
    struct weir_model_version version;
    struct weir_model_baseline baseline;
    WEIR_TRY(weir_model_version_get(txn, model, testing->version, call->arena, &version, err));
    if (weir_txn_get(txn, &weir_model_baseline_resource, version.id, call->arena, &baseline, err) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "version %lld of \"%s\" has no baseline to compare with: attach one "
                              "(PUT /models/%s/versions/%lld/baseline)",
                              (long long)testing->version, model, model,
                              (long long)testing->version);
    }
    json_t *value = json_loads(baseline.baseline, 0, NULL);
    weir_status status = weir_features_parse(value, call->arena, &testing->features, err);
    json_decref(value);
    return status;
}

static weir_status store_finding(struct testing *testing, struct weir_txn *txn,
                                 const struct weir_finding *finding, struct weir_error *err)
{
    struct api_call *call = testing->call;
    const struct weir_window window = {.ion = call->params[0],
                                       .pipeline = call->params[1],
                                       .version = testing->version,
                                       .time_ms = call->now_ms};
    struct weir_health_report report;
    bool is_worth;
    WEIR_TRY(weir_window_report(txn, &window, finding, call->arena, &report, &is_worth, err));
    if (!is_worth) {
        return WEIR_OK;
    }
    testing->told[testing->n_told++] = (struct api_finding){.signal = report.signal,
                                                            .statistic = report.statistic,
                                                            .value = report.value,
                                                            .p_value = report.p_value,
                                                            .differs = finding->is_drifted,
                                                            .drifted = report.drifted};
    return api_health_store(call, txn, &report, err);
}

static weir_status check_pipeline(const struct weir_ion_state *state, const char *name,
                                  struct weir_error *err)
{
    return weir_ion_pipeline_of(state, name) != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND, "ion \"%s\" has no pipeline \"%.63s\"",
                                state->ion.name, name);
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct testing *testing = context;
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(testing->call, txn, &state, err));
    WEIR_TRY(check_pipeline(&state, testing->call->params[1], err));
    return load_features(testing, txn, err);
}

static weir_status store_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct testing *testing = context;
    struct weir_ion_state state;
    json_array_clear(testing->call->publish);
    testing->n_told = 0;
    WEIR_TRY(api_ion_load(testing->call, txn, &state, err));
    WEIR_TRY(check_pipeline(&state, testing->call->params[1], err));
    for (size_t i = 0; i < testing->n; i++) {
        WEIR_TRY(store_finding(testing, txn, &testing->findings[i], err));
    }
    return WEIR_OK;
}

weir_status api_window_test(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const members[] = {"model", "version", "features", "rate", NULL};
    struct testing testing = {.call = call};
    (void)txn;
    WEIR_TRY(api_body_only(call, members, err));
    WEIR_TRY(api_body_text(call, "model", &testing.model, err));
    WEIR_TRY(api_body_int(call, "version", 0, &testing.version, err));
    if (testing.model == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.model: missing");
    }
    WEIR_TRY(api_read(call, read_in, &testing, err));
    double rate = json_number_value(json_object_get(call->body, "rate"));
    WEIR_TRY(weir_features_test(&testing.features, call->body, rate, (uint64_t)call->now_ms,
                                call->arena, &testing.findings, &testing.n, err));
    testing.told = WEIR_ARENA_ARRAY(call->arena, testing.n, struct api_finding);
    WEIR_TRY(api_write(call, store_in, &testing, err));
    API_ANSWER(call, api_tested_window, .findings = testing.told, .n_findings = testing.n_told);
    return WEIR_OK;
}
