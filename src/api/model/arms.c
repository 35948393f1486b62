#include "api/model/arms.h"

#include "base/grow.h"
#include "ion/ab_view.h"
#include "ion/arms.h"
#include "ion/feedback.h"
#include "store/stmt.h"

#include <math.h>
#include <string.h>

static const char sql_ions[] =
    "SELECT DISTINCT ion FROM ion_arms WHERE deployment = :deployment ORDER BY ion";

/** Of yes and no with the interval of the rate. */
static struct api_arm arm_view(const struct weir_ab_view *view, const struct weir_ab_arm *arm,
                               int64_t version, bool is_live)
{
    struct weir_accuracy rate = weir_accuracy_of(arm->n, llround(arm->mean * (double)arm->n));
    bool has_interval = view->is_rate && arm->n > 0;
    return (struct api_arm){.version = version,
                            .is_live = is_live,
                            .n = arm->n,
                            .mean = arm->n > 0 ? arm->mean : NAN,
                            .variance = arm->n > 1 ? arm->m2 / (double)(arm->n - 1) : NAN,
                            .low = has_interval ? rate.low : NAN,
                            .high = has_interval ? rate.high : NAN};
}

static struct api_ab_comparison comparison_view(const struct weir_ion_state *state,
                                                const struct weir_ion_candidate *candidate,
                                                const struct weir_ab_view *view,
                                                int64_t live_version, int64_t now_ms,
                                                struct weir_arena *arena)
{
    const struct weir_ab *found = &view->found;
    int64_t until_ms = candidate->step_ms + view->timeout_ms;
    struct api_arm *arms = WEIR_ARENA_ARRAY(arena, 2, struct api_arm);
    arms[0] = arm_view(view, &view->live, live_version, true);
    arms[1] = arm_view(view, &view->arm, candidate->version, false);
    return (struct api_ab_comparison){
        .ion = state->ion.name,
        .link = candidate->link,
        .deployment = weir_ion_doc_link(&state->doc, candidate->link)->deployment,
        .model = candidate->model,
        .metric = view->metric,
        .is_rate = view->is_rate,
        .is_less_better = view->is_less_better,
        .confidence = view->confidence,
        .min_samples = view->min_samples,
        .share_percent = (double)candidate->share_ppm / 10000,
        .begun_ms = candidate->begun_ms,
        .until_ms = until_ms,
        .left_s = WEIR_MAX((until_ms - now_ms) / 1000, 0),
        .arms = arms,
        .n_arms = 2,
        .difference = found->difference,
        .difference_low = found->low,
        .difference_high = found->high,
        .uplift = found->uplift,
        .z = found->z,
        .p = found->p,
        .p_better = found->p_better,
        .p_worse = found->p_worse};
}

struct api_ab_comparison *comparisons_of_ion(struct weir_txn *txn,
                                             const struct weir_ion_state *state, int64_t now_ms,
                                             struct weir_arena *arena, size_t *out_n)
{
    struct api_ab_comparison *list = NULL;
    size_t cap = 0;
    *out_n = 0;
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const struct weir_policy *policy = weir_ion_watching(state, candidate);
        struct weir_policy_arms arms;
        struct weir_ab_view view;
        struct weir_error ignored;
        if (policy != NULL && candidate->begun_ms > 0 &&
            weir_ion_arms_read(txn, state, candidate, arena, &arms, &ignored) == WEIR_OK &&
            arms.live_version > 0 && weir_ab_view_of(policy, &arms, &view)) {
            weir_arena_grow(arena, &list, sizeof *list, *out_n, &cap);
            list[(*out_n)++] =
                comparison_view(state, candidate, &view, arms.live_version, now_ms, arena);
        }
    }
    return list;
}

struct api_ab_comparison *comparisons_at(struct weir_txn *txn, const char *deployment,
                                         int64_t now_ms, struct weir_arena *arena, size_t *out_n)
{
    struct api_ab_comparison *list = NULL;
    struct weir_error ignored;
    char **ions;
    size_t n, n_found, cap = 0;
    *out_n = 0;
    if (weir_txn_query_texts(txn, sql_ions, WEIR_BINDS(WEIR_BIND_TEXT("deployment", deployment)),
                             arena, &ions, &n, &ignored) != WEIR_OK) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_state *state = WEIR_ARENA_NEW(arena, struct weir_ion_state);
        if (weir_ion_load(txn, ions[i], arena, state, &ignored) != WEIR_OK) {
            continue;
        }
        const struct api_ab_comparison *found =
            comparisons_of_ion(txn, state, now_ms, arena, &n_found);
        for (size_t k = 0; k < n_found; k++) {
            if (strcmp(found[k].deployment, deployment) == 0) {
                weir_arena_grow(arena, &list, sizeof *list, *out_n, &cap);
                list[(*out_n)++] = found[k];
            }
        }
    }
    return list;
}
