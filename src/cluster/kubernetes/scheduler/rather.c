#include "cluster/kubernetes/scheduler/rather.h"

#include "base/macros.h"
#include "cluster/kubernetes/scheduler/space.h"

bool rather_counts(const struct neighbours *all, const struct place_term *term)
{
    return !term->has_selector || all->spaces->are_seen;
}

static bool is_of_spread(const struct place_term *term)
{
    return term->max_skew > 0;
}

/* Nodes of which the label says that they are near the other one. */
static void add_near(struct neighbours *all, const struct place_term *term, int32_t other,
                     int64_t *sums)
{
    const int32_t *domains = neighbours_domains(all, term->key);
    for (int32_t i = 0; i < all->n_nodes; i++) {
        sums[i] += domains[i] >= 0 && domains[i] == domains[other] ? term->weight : 0;
    }
}

/* What the pod says of those that lie there. */
static void add_company(struct neighbours *all, const struct place_pod *pod, int64_t *sums)
{
    for (size_t t = 0; t < pod->rather.n; t++) {
        const struct place_term *term = &pod->rather.rows[t];
        const int32_t *domains = neighbours_domains(all, term->key);
        for (size_t k = 0; k < all->n && rather_counts(all, term); k++) {
            const struct neighbours_pod *one = &all->pods[k];
            if (!one->is_planned && place_term_has(term, one->pod, all->spaces)) {
                add_near(all, term, one->node, sums);
            }
        }
        for (int32_t i = 0; i < all->n_nodes && is_of_spread(term); i++) {
            sums[i] += domains[i] < 0 ? RATHER_NOWHERE : 0;
        }
    }
}

/* What those that lie there say of the pod. */
static void add_said(struct neighbours *all, const struct place_pod *pod, int64_t *sums)
{
    for (size_t k = 0; k < all->n && all->n_choosy > 0; k++) {
        const struct place_terms *terms = &all->pods[k].pod->rather;
        for (size_t t = 0; t < terms->n; t++) {
            const struct place_term *term = &terms->rows[t];
            if (!is_of_spread(term) && rather_counts(all, term) &&
                place_term_has(term, pod, all->spaces)) {
                add_near(all, term, all->pods[k].node, sums);
            }
        }
    }
}

static int64_t sum_of_node(const struct place_pod *pod, const struct place_node *node)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n_rather_nodes; i++) {
        const struct place_nodes_wish *wish = &pod->rather_nodes[i];
        sum += select_matches(&wish->nodes, node->labels) ? wish->weight : 0;
    }
    for (size_t i = 0; i < node->n_mild_taints; i++) {
        sum += place_tolerates(pod, &node->mild_taints[i]) ? 0 : RATHER_TAINT;
    }
    return sum;
}

static bool is_to_be_asked(const struct neighbours *all, const struct place_pod *pod)
{
    return pod->n_rather_nodes + pod->rather.n + all->n_choosy + all->n_mild > 0;
}

static int32_t score_of(int64_t sum)
{
    return (int32_t)WEIR_MAX(WEIR_MIN(sum, (int64_t)INT32_MAX), (int64_t)INT32_MIN);
}

/* Pods that say the same, one after another, have one array. */
static const int32_t *scores_of(struct neighbours *all, const int64_t *sums)
{
    bool is_as_last = all->last_scores != NULL, are_equal = true;
    for (int32_t i = 0; i < all->n_nodes; i++) {
        is_as_last = is_as_last && all->last_scores[i] == score_of(sums[i]);
        are_equal = are_equal && score_of(sums[i]) == score_of(sums[0]);
    }
    if (are_equal || is_as_last) {
        return are_equal ? NULL : all->last_scores;
    }
    int32_t *scores = WEIR_ARENA_ARRAY(all->arena, (size_t)all->n_nodes + 1, int32_t);
    for (int32_t i = 0; i < all->n_nodes; i++) {
        scores[i] = score_of(sums[i]);
    }
    return all->last_scores = scores;
}

const int32_t *rather_scores(struct neighbours *all, const struct place_pod *pod)
{
    if (!is_to_be_asked(all, pod)) {
        return NULL;
    }
    if (all->sums == NULL) {
        all->sums = WEIR_ARENA_ARRAY(all->arena, (size_t)all->n_nodes + 1, int64_t);
    }
    for (int32_t i = 0; i < all->n_nodes; i++) {
        all->sums[i] = sum_of_node(pod, all->nodes[i]);
    }
    add_company(all, pod, all->sums);
    add_said(all, pod, all->sums);
    return scores_of(all, all->sums);
}
