/** Comparisons of a model version with the one that serves: what a job that measures both tells, and what
 *  a person who reviews the version looks at. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/ion/ion.h"

#include "deploy/deploy.h"
#include "gateway/differed.h"
#include "job/job.h"
#include "track/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFUSIONS_MAX  64
#define LABEL_MAX_BYTES 256

/* ---- told by the job ------------------------------------------------------------------------- */

/* "NAME@v3", as the server wrote it into the job's specification. */
static bool read_pinned(struct api_call *call, const json_t *spec, const char *key, char **out_name,
                        int64_t *out_version)
{
    const char *text = json_string_value(json_object_get(spec, key));
    const char *at = text != NULL ? strrchr(text, '@') : NULL;
    if (at == NULL || at[1] != 'v') {
        return false;
    }
    *out_name = weir_arena_printf(call->arena, "%.*s", (int)(at - text), text);
    *out_version = strtoll(at + 2, NULL, 10);
    return *out_version > 0;
}

/* What is compared the job's specification says, not who tells it. */
static weir_status read_job(struct api_call *call, struct weir_txn *txn,
                            struct weir_comparison *out, struct weir_error *err)
{
    struct weir_run run;
    struct weir_job job = {0};
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    if (run.job != NULL) {
        WEIR_TRY(weir_txn_get(txn, &weir_job_resource, run.job, call->arena, &job, err));
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *spec = job.spec != NULL ? json_loads(job.spec, 0, NULL) : NULL;
    bool is_pair = job.kind != NULL && strcmp(job.kind, "measure") == 0 &&
                   read_pinned(call, spec, "model", &out->model, &out->version) &&
                   read_pinned(call, spec, "live", &out->live_model, &out->live_version) &&
                   read_pinned(call, spec, "dataset", &out->dataset, &out->dataset_version);
    return is_pair ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_CONFLICT,
                                    "run %s compares nothing: only a job of kind measure with a "
                                    "live model does",
                                    call->params[0]);
}

static bool is_label(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL && strlen(text) <= LABEL_MAX_BYTES;
}

static weir_status check_confusions(const json_t *list, struct weir_error *err)
{
    const json_t *one;
    size_t i;
    bool is_good = json_is_array(list) && json_array_size(list) <= CONFUSIONS_MAX;
    json_array_foreach(list, i, one)
    {
        is_good = is_good && json_object_size(one) == 4 &&
                  is_label(json_object_get(one, "label")) &&
                  is_label(json_object_get(one, "answer")) &&
                  json_is_integer(json_object_get(one, "n")) &&
                  json_is_integer(json_object_get(one, "live_n"));
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "$.confusions: expected at most %d of {label, answer, n, "
                                    "live_n}",
                                    CONFUSIONS_MAX);
}

static weir_status read_rows(struct api_call *call, const json_t *list,
                             struct weir_disagreement *rows, struct weir_error *err)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        struct weir_error why;
        rows[i].score = rows[i].live_score = NAN;
        weir_status status = weir_record_from_json(&weir_disagreement_resource, item,
                                                   WEIR_RECORD_CREATE, call->arena, &rows[i], &why);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.disagreements[%zu]%s", i, why.message + 1);
        }
    }
    return WEIR_OK;
}

weir_status api_comparison_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "disagreements");
    struct weir_comparison comparison = {
        .accuracy = NAN, .live_accuracy = NAN, .p_value = NAN, .run = (char *)call->params[0]};
    if (!json_is_array(list) || json_array_size(list) > WEIR_DISAGREEMENTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.disagreements: expected an array of at most %d",
                              WEIR_DISAGREEMENTS_MAX);
    }
    WEIR_TRY(check_confusions(json_object_get(call->body, "confusions"), err));
    WEIR_AUTO(weir_json_auto_free) json_t *fields = json_copy(call->body);
    (void)json_object_del(fields, "disagreements");
    WEIR_TRY(weir_record_from_json(&weir_comparison_resource, fields, WEIR_RECORD_CREATE,
                                   call->arena, &comparison, err));
    comparison.run = (char *)call->params[0];
    comparison.time_ms = call->now_ms;
    WEIR_TRY(read_job(call, txn, &comparison, err));
    size_t n = json_array_size(list);
    struct weir_disagreement *rows = WEIR_ARENA_ARRAY(call->arena, n + 1, struct weir_disagreement);
    WEIR_TRY(read_rows(call, list, rows, err));
    WEIR_TRY(weir_comparison_put(txn, &comparison, rows, n, call->arena, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

/** What was found: a comparison, or why there is none. */
struct found {
    struct weir_comparison comparison;
    const char *why; /**< NULL: there is one. */
};

static void answer_comparison(struct api_call *call, const struct found *found)
{
    API_ANSWER(call, api_found_comparison,
               .comparison = found->why == NULL ? &found->comparison : NULL, .why = found->why);
}

/* Pictures of a dataset that the caller may not see stay unknown to them. */
static bool sees_pictures(struct api_call *call, struct weir_txn *txn, const char *name)
{
    struct weir_dataset dataset;
    return weir_txn_get(txn, &weir_dataset_resource, name, call->arena, &dataset, NULL) == WEIR_OK;
}

static weir_status answer_rows(struct api_call *call, struct weir_txn *txn,
                               const struct found *found, struct weir_error *err)
{
    struct weir_disagreement *rows = NULL;
    size_t n = 0;
    char *next = NULL;
    if (found->why == NULL) {
        WEIR_TRY(weir_disagreements_list(txn, found->comparison.run, api_query_text(call, "kind"),
                                         (size_t)api_query_int(call, "limit"),
                                         api_query_text(call, "cursor"), call->arena, &rows, &n,
                                         &next, err));
    }
    bool sees = n > 0 && sees_pictures(call, txn, found->comparison.dataset);
    for (size_t i = 0; i < n; i++) {
        rows[i].sha256 = sees ? rows[i].sha256 : NULL;
    }
    API_ANSWER(call, api_found_disagreements, .items = rows, .n_items = n, .next = next,
               .why = found->why);
    return WEIR_OK;
}

/* ---- looked at by run ------------------------------------------------------------------------ */

static weir_status find_of_run(struct api_call *call, struct weir_txn *txn, struct found *out,
                               struct weir_error *err)
{
    struct weir_run run;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    weir_status status =
        weir_txn_get(txn, &weir_comparison_resource, run.id, call->arena, &out->comparison, NULL);
    out->why = status == WEIR_ERR_NOT_FOUND ? "this run compared no samples: one of a job of kind "
                                              "measure with a live model does"
                                            : NULL;
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

weir_status api_comparison_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct found found;
    WEIR_TRY(find_of_run(call, txn, &found, err));
    answer_comparison(call, &found);
    return WEIR_OK;
}

weir_status api_disagreement_list(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct found found;
    WEIR_TRY(find_of_run(call, txn, &found, err));
    return answer_rows(call, txn, &found, err);
}

/* ---- looked at by who reviews a version ------------------------------------------------------- */

/* Versions that wait for people go before others, newer ones before older ones. */
static bool is_nearer(const struct weir_ion_candidate *candidate,
                      const struct weir_ion_candidate *found)
{
    bool waits = strcmp(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0;
    bool found_waits = found != NULL && strcmp(found->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0;
    return found == NULL || (waits && !found_waits) ||
           (waits == found_waits && candidate->version > found->version);
}

/* *out is NULL if none has come, and none is named. */
static weir_status find_candidate(struct api_call *call, const struct weir_ion_state *state,
                                  const struct weir_ion_candidate **out, struct weir_error *err)
{
    const char *link = api_query_text(call, "link");
    const struct weir_ion_candidate *found = NULL;
    int64_t version = api_query_int(call, "version");
    if (link != NULL && weir_ion_doc_link(&state->doc, link) == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no link \"%.100s\"",
                              state->ion.name, link);
    }
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        bool is_meant = (link == NULL || strcmp(candidate->link, link) == 0) &&
                        (version == 0 || candidate->version == version);
        if (is_meant && is_nearer(candidate, found)) {
            found = candidate;
        }
    }
    if (found == NULL && version != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "no version %" PRId64 " has come to a link of ION \"%s\"", version,
                              state->ion.name);
    }
    *out = found;
    return WEIR_OK;
}

/* Said to whoever expected some, with what they can do. */
static char *none_compared(struct api_call *call, const struct weir_ion_candidate *candidate,
                           const struct weir_ion_candidate *live)
{
    static const char how[] = "a comparison pipeline against what serves, or the policy evaluate "
                              "before manual, measures both on a dataset of labelled pictures "
                              "(docs/howto/review-and-roll-back.md)";
    if (live == NULL) {
        return weir_arena_printf(call->arena,
                                 "no samples were compared: beside version %" PRId64
                                 " of %s nothing serves on link %s that it could be compared with. "
                                 "For the versions after it, %s",
                                 candidate->version, candidate->model, candidate->link, how);
    }
    return weir_arena_printf(call->arena,
                             "no samples were compared: version %" PRId64
                             " of %s was not measured beside version %" PRId64
                             ", which serves. For the next versions, %s; for this one: weir job "
                             "submit, of kind measure",
                             candidate->version, candidate->model, live->version, how);
}

static weir_status find_of_ion(struct api_call *call, struct weir_txn *txn, struct found *out,
                               struct weir_error *err)
{
    struct weir_ion_state state;
    const struct weir_ion_candidate *candidate = NULL;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(find_candidate(call, &state, &candidate, err));
    if (candidate == NULL) {
        out->why = "no samples were compared: no version has come to a link yet";
        return WEIR_OK;
    }
    const struct weir_ion_candidate *live = weir_ion_serving(&state, candidate->link);
    live = live != candidate ? live : NULL;
    weir_status status = weir_comparison_find(
        txn, candidate->model, candidate->version, live != NULL ? live->model : NULL,
        live != NULL ? live->version : 0, call->arena, &out->comparison, err);
    out->why = status == WEIR_ERR_NOT_FOUND ? none_compared(call, candidate, live) : NULL;
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

weir_status api_ion_comparison(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct found found;
    WEIR_TRY(find_of_ion(call, txn, &found, err));
    answer_comparison(call, &found);
    return WEIR_OK;
}

weir_status api_ion_disagreements(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct found found;
    WEIR_TRY(find_of_ion(call, txn, &found, err));
    return answer_rows(call, txn, &found, err);
}

/* ---- of a deployment's mirror ------------------------------------------------------------------ */

static void add_differed(void *context, const struct weir_gateway_differed *one)
{
    json_array_append_new(
        context,
        WEIR_VIEW_JSON(api_differed_answer, .time_ms = one->time_ms, .version = one->version,
                       .live_version = one->live_version, .request = one->id, .answer = one->answer,
                       .status = one->http_status, .live_answer = one->live_answer,
                       .live_status = one->live_http_status));
}

weir_status api_deploy_disagreements(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_deployment deployment;
    WEIR_TRY(weir_txn_get(txn, &weir_deployment_resource, call->params[0], call->arena, &deployment,
                          err));
    json_t *items = json_array();
    if (call->api->gateway != NULL) {
        weir_gateway_differed_each(call->api->gateway, deployment.name, add_differed, items);
    }
    API_ANSWER(call, api_deployment_disagreements, .items = items);
    return WEIR_OK;
}
