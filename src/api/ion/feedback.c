/** How well an ION does: the truth about its decisions, told later, and business figures. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/ion/ion.h"

#include "gateway/receipt.h"
#include "ion/feedback.h"
#include "ion/kpi.h"
#include "ion/outcome.h"

#include <math.h>
#include <string.h>

#define FEEDBACK_PER_CALL 1000
#define SPAN_DEFAULT_MS   ((int64_t)7 * 24 * 3600 * 1000)

/* A version that nobody knows here would be compared with nothing, and nobody would notice. */
static weir_status check_version(struct weir_txn *txn, const struct weir_ion_state *state,
                                 const struct weir_kpi *kpi, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_model_version version;
    if (kpi->model == NULL || kpi->model_version <= 0) {
        return WEIR_OK; /* weir_kpi_add says what belongs together */
    }
    WEIR_TRY(weir_model_version_get(txn, kpi->model, kpi->model_version, arena, &version, err));
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (strcmp(state->candidates[i].model, kpi->model) == 0 &&
            state->candidates[i].version == kpi->model_version) {
            return WEIR_OK;
        }
    }
    return weir_error_set(
        err, WEIR_ERR_CONFLICT,
        "version %lld of model %s has come to no link of ION %s: no figure of the "
        "ION can be of it",
        (long long)kpi->model_version, kpi->model, state->ion.name);
}

weir_status api_kpi_add(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    struct weir_kpi kpi = {.value = NAN};
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(weir_record_from_json(&weir_kpi_resource, call->body, WEIR_RECORD_CREATE, call->arena,
                                   &kpi, err));
    WEIR_TRY(check_version(txn, &state, &kpi, call->arena, err));
    kpi.ion = state.ion.name;
    kpi.actor = (char *)call->actor;
    if (!json_is_string(json_object_get(call->body, "time_ms")) &&
        !json_is_integer(json_object_get(call->body, "time_ms"))) {
        kpi.time_ms = call->now_ms;
    }
    WEIR_TRY(weir_kpi_add(txn, &kpi, call->now_ms, call->arena, err));
    api_answer_record(call, &weir_kpi_resource, &kpi);
    return WEIR_OK;
}

weir_status api_kpi_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    return api_list_numbered_where(call, txn, &WEIR_FILTER_TEXT("ion", EQ, call->params[0]), 1,
                                   err);
}

/* ---- feedback -------------------------------------------------------------------------------- */

/** {request, success}, {request, decided, truth} or {request, kpi, value}: the name and the value. */
static bool read_outcome(const json_t *item, struct weir_outcome *out)
{
    const json_t *success = json_object_get(item, "success");
    const json_t *value = json_object_get(item, "value");
    out->decided = (char *)json_string_value(json_object_get(item, "decided"));
    out->truth = (char *)json_string_value(json_object_get(item, "truth"));
    out->name = (char *)json_string_value(json_object_get(item, "kpi"));
    if (json_object_size(item) == 2 && json_is_boolean(success)) {
        out->name = (char *)WEIR_OUTCOME_SUCCESS;
        out->value = json_is_true(success);
        return true;
    }
    if (json_object_size(item) == 3 && out->decided != NULL && out->truth != NULL) {
        out->name = (char *)WEIR_OUTCOME_SUCCESS;
        out->value = strcmp(out->decided, out->truth) == 0;
        return true;
    }
    out->value = json_number_value(value);
    return json_object_size(item) == 3 && out->name != NULL && json_is_number(value) &&
           strcmp(out->name, WEIR_OUTCOME_SUCCESS) != 0;
}

/** Of a request that a deployment answered. */
static weir_status give_outcome(struct api_call *call, struct weir_txn *txn, const json_t *item,
                                const char *request, bool *out_is_truth, bool *out_is_right,
                                struct weir_error *err)
{
    struct weir_receipt receipt;
    struct weir_outcome told = {0};
    if (!read_outcome(item, &told)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$: expected {\"request\": identifier} with \"success\": true or false, "
            "with \"decided\" and \"truth\", or with the name of a \"kpi\", which "
            "is not success, and its \"value\"");
    }
    WEIR_TRY(weir_receipt_open(call->api->task_key, request, call->arena, &receipt, err));
    told.request = (char *)request;
    told.deployment = receipt.deployment;
    told.version = receipt.version;
    told.answered_ms = receipt.time_ms;
    told.actor = (char *)call->actor;
    told.time_ms = call->now_ms;
    *out_is_truth = strcmp(told.name, WEIR_OUTCOME_SUCCESS) == 0;
    *out_is_right = *out_is_truth && told.value != 0;
    return weir_outcome_store(txn, &told, call->arena, err);
}

static weir_status give_one(struct api_call *call, struct weir_txn *txn, const json_t *item,
                            bool *out_is_truth, bool *out_is_right, struct weir_error *err)
{
    struct weir_feedback stored;
    const char *request = json_string_value(json_object_get(item, "request"));
    if (request != NULL) {
        return give_outcome(call, txn, item, request, out_is_truth, out_is_right, err);
    }
    const char *decision = json_string_value(json_object_get(item, "decision"));
    const char *truth = json_string_value(json_object_get(item, "truth"));
    if (decision == NULL || truth == NULL || json_object_size(item) != 2) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$: expected {\"decision\": identifier, \"truth\": text}, or "
                              "{\"request\": identifier} with what came of it");
    }
    WEIR_TRY(weir_feedback_store(txn, decision, truth, call->actor, call->now_ms, call->arena,
                                 &stored, err));
    *out_is_truth = true;
    *out_is_right = stored.is_right;
    return WEIR_OK;
}

weir_status api_feedback_give(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "feedback");
    bool is_right = false, is_truth = false;
    size_t i, n_right = 0, n_truths = 0, n = json_array_size(list);
    json_t *item;
    if (list == NULL) {
        WEIR_TRY(give_one(call, txn, call->body, &is_truth, &is_right, err));
        API_ANSWER(call, api_stored_feedback, .stored = 1, .right = is_right, .judged = is_truth);
        return WEIR_OK;
    }
    WEIR_TRY(api_body_only(call, (const char *const[]){"feedback", NULL}, err));
    if (!json_is_array(list) || n == 0 || n > FEEDBACK_PER_CALL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.feedback: expected an array of 1 to %d",
                              FEEDBACK_PER_CALL);
    }
    json_array_foreach(list, i, item)
    {
        struct weir_error wrong = {0};
        weir_status status = give_one(call, txn, item, &is_truth, &is_right, &wrong);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.feedback[%zu]: %s", i, wrong.message);
        }
        n_right += is_right;
        n_truths += is_truth;
    }
    API_ANSWER(call, api_stored_feedback, .stored = (int64_t)n, .right = (int64_t)n_right,
               .judged = (int64_t)n_truths);
    return WEIR_OK;
}

/* ---- the health of an ION -------------------------------------------------------------------- */

weir_status api_ion_health(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *pipeline = api_query_text(call, "pipeline");
    const char *by = api_query_text(call, "by");
    struct weir_accuracy accuracy;
    struct weir_accuracy_group *groups;
    struct weir_kpi *kpis;
    struct weir_ion_state state;
    size_t n_groups, n_kpis;
    by = by != NULL ? by : "camera";
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    int64_t since_ms = api_query_time(call, "since", call->now_ms - SPAN_DEFAULT_MS);
    WEIR_TRY(weir_feedback_accuracy(txn, call->params[0], pipeline, since_ms, &accuracy, err));
    WEIR_TRY(weir_feedback_groups(txn, call->params[0], pipeline, since_ms, by, call->arena,
                                  &groups, &n_groups, err));
    WEIR_TRY(weir_kpis_latest(txn, call->params[0], call->arena, &kpis, &n_kpis, err));
    API_ANSWER(call, api_ion_health, .ion = call->params[0], .since_ms = since_ms,
               .accuracy = &accuracy, .by = by, .groups = groups, .n_groups = n_groups,
               .kpis = kpis, .n_kpis = n_kpis);
    return WEIR_OK;
}
