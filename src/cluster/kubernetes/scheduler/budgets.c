#include "cluster/kubernetes/scheduler/budgets.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/macros.h"

#include <string.h>

#define LIST_EACH_MS 3000

void budgets_init(struct budgets *budgets)
{
    *budgets = (struct budgets){0};
    weir_arena_init(&budgets->arena, 0);
}

void budgets_fini(struct budgets *budgets)
{
    weir_arena_fini(&budgets->arena);
}

static void read_one(struct budgets *budgets, const json_t *object)
{
    weir_arena_grow(&budgets->arena, &budgets->rows, sizeof budgets->rows[0], budgets->n,
                    &budgets->cap);
    budgets->rows[budgets->n++] = (struct budgets_one){
        .space = weir_arena_strdup(&budgets->arena, weir_kube_text(object, "metadata.namespace")),
        .pods = select_read(weir_kube_at(object, "spec.selector"), &budgets->arena),
        .n_allowed = json_integer_value(weir_kube_at(object, "status.disruptionsAllowed"))};
}

weir_status budgets_list(struct budgets *budgets, struct weir_kube *kube, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct weir_kube_call call = {
        .method = "GET", .path = "/apis/policy/v1/poddisruptionbudgets", .timeout_ms = 2000};
    json_t *list, *one;
    size_t i;
    weir_arena_init(&arena, 0);
    if (budgets->listed_ms != 0 && weir_mono_ms() - budgets->listed_ms < LIST_EACH_MS) {
        return WEIR_OK;
    }
    budgets->listed_ms = weir_mono_ms();
    WEIR_TRY(weir_kube_call(kube, &call, &arena, &list, NULL, err));
    weir_arena_fini(&budgets->arena);
    budgets->rows = NULL;
    budgets->n = budgets->cap = 0;
    json_array_foreach(json_object_get(list, "items"), i, one)
    {
        read_one(budgets, one);
    }
    json_decref(list);
    return WEIR_OK;
}

static bool has(const struct budgets_one *budget, const struct place_pod *pod)
{
    return budget->space != NULL && strcmp(budget->space, pod->space) == 0 &&
           select_matches(&budget->pods, pod->labels);
}

/* Pods of its gang that the budget speaks of, this one with them. */
static int64_t count_of_gang(const struct budgets_one *budget, const struct world_pod *pods,
                             size_t n_pods, const struct place_pod *pod)
{
    int64_t n = 0;
    for (size_t i = 0; pod->gang != NULL && i < n_pods; i++) {
        const struct place_pod *other = pods[i].pod;
        n += pods[i].node != NULL && other->gang != NULL && strcmp(other->gang, pod->gang) == 0 &&
             has(budget, other);
    }
    return WEIR_MAX(n, (int64_t)1);
}

bool budgets_spare(const struct budgets *budgets, struct world_pod *pods, size_t n_pods)
{
    bool is_any = false;
    for (size_t k = 0; k < budgets->n; k++) {
        const struct budgets_one *budget = &budgets->rows[k];
        for (size_t i = 0; i < n_pods; i++) {
            struct world_pod *pod = &pods[i];
            if (pod->pod->is_ours && pod->node != NULL && !pod->is_leaving &&
                has(budget, pod->pod) &&
                budget->n_allowed < count_of_gang(budget, pods, n_pods, pod->pod)) {
                pod->is_spared = true;
            }
            is_any = is_any || pod->is_spared;
        }
    }
    return is_any;
}
