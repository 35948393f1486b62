/** Features of a table or a series: the baseline of a model version, and windows of live values that are
 *  compared with it. For models of any kind; replicas of image models compare for themselves. */
#include "api/answer.h"
#include "api/args.h"
#include "api/functions.h"
#include "api/health.h"
#include "api/ion.h"
#include "api/views.h"
#include "store/table.h"

#include "base/uuid.h"
#include "ion/decision.h"
#include "job/attempt.h"
#include "stats/feature.h"
#include "track/model_baseline.h"
#include "track/track.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE_MAX 2 /* of the last 3 windows, this one and those before it, two must differ */

static weir_status load_version(struct api_call *call, struct weir_txn *txn, const char *model,
                                int64_t number, struct weir_model_version *out,
                                struct weir_error *err)
{
    return weir_model_version_get(txn, model, number, call->arena, out, err);
}

static weir_status path_version(struct api_call *call, struct weir_txn *txn,
                                struct weir_model_version *out, struct weir_error *err)
{
    char *end;
    long long number = strtoll(call->params[1], &end, 10);
    if (*end != '\0' || number < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\" is no version: expected 1, 2 …",
                              call->params[1]);
    }
    return load_version(call, txn, call->params[0], number, out, err);
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
    WEIR_TRY(load_version(call, txn, model, testing->version, &version, err));
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

/* The windows of a signal before this one. */
struct before {
    bool was_drifted;        /**< By the last. */
    bool has_differed;       /**< One did. */
    bool has_differed_alike; /**< One of this version did. */
};

static bool says_differs(const struct weir_health_report *report)
{
    json_t *detail = report->detail != NULL ? json_loads(report->detail, 0, NULL) : NULL;
    bool differs = json_is_true(json_object_get(detail, "differs"));
    json_decref(detail);
    return differs;
}

static weir_status load_before(const struct testing *testing, struct weir_txn *txn,
                               const char *signal, struct before *out, struct weir_error *err)
{
    const struct api_call *call = testing->call;
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, call->params[0]),
                                                  WEIR_FILTER_TEXT("pipeline", EQ, call->params[1]),
                                                  WEIR_FILTER_TEXT("signal", EQ, signal)),
                                     .order_by = "seq", .is_descending = true, .limit = BEFORE_MAX};
    struct weir_arena arena;
    void *items;
    size_t n;
    weir_arena_init(&arena, API_ANSWER_MAX_BYTES);
    weir_status status =
        weir_txn_list(txn, &weir_health_report_resource, &query, &arena, &items, &n, NULL, err);
    if (status != WEIR_OK) {
        weir_arena_fini(&arena);
        return status;
    }
    const struct weir_health_report *reports = items;
    *out = (struct before){.was_drifted = n > 0 && reports[0].drifted};
    for (size_t i = 0; i < n; i++) {
        bool differs = says_differs(&reports[i]);
        out->has_differed = out->has_differed || differs;
        out->has_differed_alike =
            out->has_differed_alike || (differs && reports[i].model_version == testing->version);
    }
    weir_arena_fini(&arena);
    return WEIR_OK;
}

static json_t *detail_of(const struct weir_finding *finding)
{
    const struct weir_histogram *baseline = &finding->feature->baseline;
    json_t *detail = json_pack("{s:b}", "differs", (int)finding->is_drifted);
    if (finding->kind != WEIR_FINDING_FEATURE) {
        return detail;
    }
    json_object_set_new(detail, "effect", json_real(finding->effect));
    json_object_set_new(detail, "live", weir_histogram_counts_json(&finding->live));
    json_object_set_new(detail, "baseline", weir_histogram_counts_json(baseline));
    json_t *names = json_array();
    for (size_t i = 0; i < finding->feature->n_categories; i++) {
        json_array_append_new(names, json_string(finding->feature->categories[i]));
    }
    if (finding->feature->is_category) { /* codes have no mean */
        json_object_set_new(detail, "categories", names);
        return detail;
    }
    json_decref(names);
    json_object_set_new(detail, "live_mean", json_real(finding->live.mean));
    json_object_set_new(detail, "live_stddev", json_real(weir_histogram_stddev(&finding->live)));
    json_object_set_new(detail, "baseline_mean", json_real(baseline->mean));
    json_object_set_new(detail, "baseline_stddev", json_real(weir_histogram_stddev(baseline)));
    return detail;
}

/* A rate of nothing is not worth a row, unless a window before it has one that says otherwise: then
 * the last rows of a signal are its last windows. */
static weir_status store_finding(struct testing *testing, struct weir_txn *txn,
                                 const struct weir_finding *finding, struct weir_error *err)
{
    struct api_call *call = testing->call;
    char id[WEIR_UUID_BYTES];
    struct before before;
    char *signal = weir_arena_printf(call->arena, "%s:%s", weir_finding_kind_name(finding->kind),
                                     finding->feature->name);
    WEIR_TRY(load_before(testing, txn, signal, &before, err));
    bool is_drifted = before.has_differed_alike && finding->is_drifted;
    if (finding->kind != WEIR_FINDING_FEATURE && finding->value == 0 && !before.was_drifted &&
        !before.has_differed) {
        return WEIR_OK;
    }
    json_t *detail = detail_of(finding);
    weir_uuid_make(id);
    struct weir_health_report report = {.id = id,
                                        .ion = (char *)call->params[0],
                                        .pipeline = (char *)call->params[1],
                                        .signal = signal,
                                        .statistic = (char *)finding->statistic,
                                        .value = finding->value,
                                        .p_value = finding->p_value,
                                        .drifted = is_drifted,
                                        .n_samples = (int64_t)finding->n_values,
                                        .model_version = testing->version,
                                        .detail = weir_json_text(detail, call->arena),
                                        .time_ms = call->now_ms};
    json_decref(detail);
    testing->told[testing->n_told++] = (struct api_finding){.signal = signal,
                                                            .statistic = finding->statistic,
                                                            .value = finding->value,
                                                            .p_value = finding->p_value,
                                                            .differs = finding->is_drifted,
                                                            .drifted = is_drifted};
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
