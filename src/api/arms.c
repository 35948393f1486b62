#include "api/arms.h"

#include "base/clock.h"
#include "ion/ab_view.h"
#include "ion/arms.h"
#include "ion/feedback.h"
#include "store/stmt.h"

#include <math.h>
#include <string.h>

static const char sql_ions[] =
    "SELECT DISTINCT ion FROM ion_arms WHERE deployment = :deployment ORDER BY ion";

static json_t *moment(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, text);
    return json_string(text);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/** Of yes and no with the interval of the rate. */
static json_t *arm_view(const struct weir_ab_view *view, const struct weir_ab_arm *arm,
                        int64_t version, bool is_live)
{
    struct weir_accuracy rate = weir_accuracy_of(arm->n, llround(arm->mean * (double)arm->n));
    bool has_interval = view->is_rate && arm->n > 0;
    double variance = arm->n > 1 ? arm->m2 / (double)(arm->n - 1) : NAN;
    return json_pack("{s:I,s:b,s:I,s:o,s:o,s:o,s:o}", "version", (json_int_t)version, "is_live",
                     is_live, "n", (json_int_t)arm->n, "mean", number(arm->n > 0 ? arm->mean : NAN),
                     "variance", number(variance), "low", number(has_interval ? rate.low : NAN),
                     "high", number(has_interval ? rate.high : NAN));
}

static json_t *comparison_view(const struct weir_ion_state *state,
                               const struct weir_ion_candidate *candidate,
                               const struct weir_ab_view *view, int64_t live_version,
                               int64_t now_ms)
{
    const struct weir_ab *found = &view->found;
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, candidate->link);
    int64_t until_ms = candidate->step_ms + view->timeout_ms;
    json_t *out = json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:f,s:I,s:f}", "ion", state->ion.name,
                            "link", candidate->link, "deployment", link->deployment, "model",
                            candidate->model, "metric", view->metric, "is_rate", view->is_rate,
                            "is_less_better", view->is_less_better, "confidence", view->confidence,
                            "min_samples", (json_int_t)view->min_samples, "share_percent",
                            (double)candidate->share_ppm / 10000);
    json_object_set_new(out, "begun_ms", moment(candidate->begun_ms));
    json_object_set_new(out, "until_ms", moment(until_ms));
    json_object_set_new(out, "left_s", json_integer(WEIR_MAX((until_ms - now_ms) / 1000, 0)));
    json_t *arms = json_array();
    json_array_append_new(arms, arm_view(view, &view->live, live_version, true));
    json_array_append_new(arms, arm_view(view, &view->arm, candidate->version, false));
    json_object_set_new(out, "arms", arms);
    json_object_set_new(out, "difference", number(found->difference));
    json_object_set_new(out, "difference_low", number(found->low));
    json_object_set_new(out, "difference_high", number(found->high));
    json_object_set_new(out, "uplift", number(found->uplift));
    json_object_set_new(out, "z", number(found->z));
    json_object_set_new(out, "p", number(found->p));
    json_object_set_new(out, "p_better", number(found->p_better));
    json_object_set_new(out, "p_worse", number(found->p_worse));
    return out;
}

json_t *comparisons_of_ion(struct weir_txn *txn, const struct weir_ion_state *state, int64_t now_ms,
                           struct weir_arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const struct weir_policy *policy = weir_ion_watching(state, candidate);
        struct weir_policy_arms arms;
        struct weir_ab_view view;
        struct weir_error ignored;
        if (policy != NULL && candidate->begun_ms > 0 &&
            weir_ion_arms_read(txn, state, candidate, arena, &arms, &ignored) == WEIR_OK &&
            arms.live_version > 0 && weir_ab_view_of(policy, &arms, &view)) {
            json_array_append_new(
                list, comparison_view(state, candidate, &view, arms.live_version, now_ms));
        }
    }
    return list;
}

json_t *comparisons_at(struct weir_txn *txn, const char *deployment, int64_t now_ms,
                       struct weir_arena *arena)
{
    json_t *list = json_array(), *one;
    struct weir_error ignored;
    char **ions;
    size_t n, k;
    if (weir_txn_query_texts(txn, sql_ions, WEIR_BINDS(WEIR_BIND_TEXT("deployment", deployment)),
                             arena, &ions, &n, &ignored) != WEIR_OK) {
        return list;
    }
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_state state;
        if (weir_ion_load(txn, ions[i], arena, &state, &ignored) != WEIR_OK) {
            continue;
        }
        json_t *found = comparisons_of_ion(txn, &state, now_ms, arena);
        json_array_foreach(found, k, one)
        {
            if (strcmp(json_string_value(json_object_get(one, "deployment")), deployment) == 0) {
                json_array_append(list, one);
            }
        }
        json_decref(found);
    }
    return list;
}
