/** Features of a table or a series: the baseline of a model version, and windows of live values that are
 *  compared with it. For models of any kind; replicas of image models compare for themselves. */
#include "api/api_private.h"

#include "base/uuid.h"
#include "ion/decision.h"
#include "ion/ion.h"
#include "job/attempt.h"
#include "stats/feature.h"
#include "track/model_baseline.h"
#include "track/track.h"

#include <stdlib.h>
#include <string.h>

#define CONFIRM_WINDOWS 3 /* … of which two differ, this one included */
#define BEFORE_MAX      12000

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

struct testing {
    struct api_call *call;
    struct weir_features features;
    struct weir_finding *findings;
    size_t n;
    int64_t version;
    const struct weir_health_report *before; /**< Of the pipeline, newest first. */
    size_t n_before;
};

static weir_status load_features(struct testing *testing, struct weir_txn *txn, const char *model,
                                 struct weir_error *err)
{
    struct api_call *call = testing->call;
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

static weir_status load_before(struct testing *testing, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct api_call *call = testing->call;
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, call->params[0]),
                                            WEIR_FILTER_TEXT("pipeline", EQ, call->params[1])),
                               .order_by = "seq", .is_descending = true,
                               .limit =
                                   WEIR_MIN(CONFIRM_WINDOWS * (testing->n + 1), (size_t)BEFORE_MAX),
                               .max_bytes = API_ANSWER_MAX_BYTES};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_health_report_resource, &query, call->arena, &items,
                           &testing->n_before, NULL, err));
    testing->before = items;
    return WEIR_OK;
}

/* Did one of the last windows of this signal and version differ, too? *out_was_drifted: by its last. */
static bool differed_before(const struct testing *testing, const char *signal,
                            bool *out_was_drifted)
{
    int n_seen = 0;
    bool differed = false;
    *out_was_drifted = false;
    for (size_t i = 0; i < testing->n_before && n_seen < CONFIRM_WINDOWS - 1; i++) {
        const struct weir_health_report *report = &testing->before[i];
        if (strcmp(report->signal, signal) != 0) {
            continue;
        }
        *out_was_drifted = *out_was_drifted || (n_seen == 0 && report->drifted);
        differed =
            differed || (report->model_version == testing->version && report->detail != NULL &&
                         strstr(report->detail, "\"differs\":true") != NULL);
        n_seen++;
    }
    return differed;
}

static json_t *counts_of(const struct weir_histogram *hist)
{
    json_t *edges = json_array(), *counts = json_array();
    for (uint32_t i = 0; i < hist->n_bins; i++) {
        if (i + 1 < hist->n_bins) {
            json_array_append_new(edges, json_real(hist->edges[i]));
        }
        json_array_append_new(counts, json_integer((json_int_t)hist->counts[i]));
    }
    return json_pack("{s:o,s:o}", "edges", edges, "counts", counts);
}

static json_t *detail_of(const struct weir_finding *finding)
{
    const struct weir_histogram *baseline = &finding->feature->baseline;
    json_t *detail = json_pack("{s:b}", "differs", (int)finding->is_drifted);
    if (finding->kind != WEIR_FINDING_FEATURE) {
        return detail;
    }
    json_object_set_new(detail, "effect", json_real(finding->effect));
    json_object_set_new(detail, "live", counts_of(&finding->live));
    json_object_set_new(detail, "baseline", counts_of(baseline));
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

/* A rate of nothing is not worth a row, unless it ends a drift. */
static weir_status store_finding(struct testing *testing, struct weir_txn *txn,
                                 const struct weir_finding *finding, json_t *list,
                                 struct weir_error *err)
{
    struct api_call *call = testing->call;
    char id[WEIR_UUID_BYTES];
    bool was_drifted;
    char *signal = weir_arena_printf(call->arena, "%s:%s", weir_finding_kind_name(finding->kind),
                                     finding->feature->name);
    bool is_drifted = differed_before(testing, signal, &was_drifted) && finding->is_drifted;
    if (finding->kind != WEIR_FINDING_FEATURE && finding->value == 0 && !was_drifted) {
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
    json_array_append_new(list, json_pack("{s:s,s:s,s:f,s:f,s:b,s:b}", "signal", signal,
                                          "statistic", finding->statistic, "value", finding->value,
                                          "p_value", finding->p_value, "differs",
                                          (int)finding->is_drifted, "drifted", (int)is_drifted));
    return api_health_store(call, txn, &report, err);
}

static weir_status check_pipeline(const struct weir_ion_state *state, const char *name,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        if (strcmp(state->pipelines[i].name, name) == 0) {
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "ion \"%s\" has no pipeline \"%.63s\"",
                          state->ion.name, name);
}

weir_status api_window_test(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const members[] = {"model", "version", "features", "rate", NULL};
    struct testing testing = {.call = call};
    struct weir_ion_state state;
    const char *model;
    WEIR_TRY(api_body_only(call, members, err));
    WEIR_TRY(api_body_text(call, "model", &model, err));
    WEIR_TRY(api_body_int(call, "version", 0, &testing.version, err));
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(check_pipeline(&state, call->params[1], err));
    if (model == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.model: missing");
    }
    WEIR_TRY(load_features(&testing, txn, model, err));
    double rate = json_number_value(json_object_get(call->body, "rate"));
    WEIR_TRY(weir_features_test(&testing.features, call->body, rate, (uint64_t)call->now_ms,
                                call->arena, &testing.findings, &testing.n, err));
    WEIR_TRY(load_before(&testing, txn, err));
    json_t *list = json_array();
    for (size_t i = 0; i < testing.n; i++) {
        weir_status status = store_finding(&testing, txn, &testing.findings[i], list, err);
        if (status != WEIR_OK) {
            json_decref(list);
            return status;
        }
    }
    api_answer(call, json_pack("{s:o}", "findings", list));
    return WEIR_OK;
}
