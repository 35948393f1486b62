#include "sched/place/affinity.h"

#include <string.h>

static const char *value_of(const struct weir_sched_node *node, const char *key)
{
    for (int32_t i = 0; i < node->n_labels; i++) {
        if (strcmp(node->labels[i].key, key) == 0) {
            return node->labels[i].value;
        }
    }
    return NULL;
}

bool affinity_has_labels(const struct weir_sched_task *task, const struct weir_sched_label *labels,
                         int32_t n_labels)
{
    for (int32_t i = 0; i < n_labels; i++) {
        bool is_found = false;
        for (int32_t j = 0; j < task->n_labels && !is_found; j++) {
            is_found = strcmp(task->labels[j].key, labels[i].key) == 0 &&
                       strcmp(task->labels[j].value, labels[i].value) == 0;
        }
        if (!is_found) {
            return false;
        }
    }
    return true;
}

bool affinity_has_same_labels(const struct weir_sched_task *left,
                              const struct weir_sched_task *right)
{
    return left->n_labels == right->n_labels &&
           affinity_has_labels(left, right->labels, right->n_labels);
}

void affinity_init(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        cluster->has_anti_affinity =
            cluster->has_anti_affinity || snapshot->tasks[i].anti_affinity_key != NULL;
    }
}

bool affinity_matters(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[task];
    return wants->affinity_key != NULL || wants->anti_affinity_key != NULL ||
           (cluster->has_anti_affinity && wants->n_labels > 0);
}

static bool is_wanted_by(const struct cluster *cluster, int32_t task, int32_t by)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[by];
    return affinity_has_labels(&cluster->snapshot->tasks[task], wants->affinity_labels,
                               wants->n_affinity_labels);
}

static bool are_near(const struct cluster *cluster, int32_t left, int32_t right, const char *key)
{
    const struct weir_sched_node *nodes = cluster->snapshot->nodes;
    const char *l = value_of(&nodes[left], key), *r = value_of(&nodes[right], key);
    return l != NULL && r != NULL && strcmp(l, r) == 0;
}

/** Whether a task is in the node's domain of `key`; with those that leave, or without. */
static bool is_near(const struct cluster *cluster, int32_t task, int32_t node, const char *key,
                    bool with_leaving)
{
    const struct task_state *state = &cluster->tasks[task];
    return (state->planned_node >= 0 && are_near(cluster, state->planned_node, node, key)) ||
           (with_leaving && state->current_node >= 0 &&
            are_near(cluster, state->current_node, node, key));
}

/** Whether one that the task wants is near; or there is none anywhere, and it is one itself: the
 *  first of those that want each other goes anywhere. */
static bool has_company(const struct cluster *cluster, int32_t task, int32_t node)
{
    const char *key = cluster->snapshot->tasks[task].affinity_key;
    bool is_first =
        is_wanted_by(cluster, task, task) && value_of(&cluster->snapshot->nodes[node], key) != NULL;
    for (int32_t i = 0; i < cluster->snapshot->n_tasks; i++) {
        if (i == task || cluster->tasks[i].planned_node < 0 || !is_wanted_by(cluster, i, task)) {
            continue;
        }
        is_first = false;
        if (is_near(cluster, i, node, key, false)) {
            return true;
        }
    }
    return is_first;
}

/** Whether one is near that keeps away from the task, or from which it keeps away. */
static bool is_disturbed(const struct cluster *cluster, int32_t task, int32_t node, bool is_now)
{
    const struct weir_sched_task *tasks = cluster->snapshot->tasks;
    const char *key = tasks[task].anti_affinity_key;
    for (int32_t i = 0; i < cluster->snapshot->n_tasks; i++) {
        const char *other_key = tasks[i].anti_affinity_key;
        bool has_place =
            cluster->tasks[i].planned_node >= 0 || (is_now && cluster->tasks[i].current_node >= 0);
        if (i == task || !has_place) {
            continue;
        }
        if ((key != NULL && is_wanted_by(cluster, i, task) &&
             is_near(cluster, i, node, key, is_now)) ||
            (other_key != NULL && is_wanted_by(cluster, task, i) &&
             is_near(cluster, i, node, other_key, is_now))) {
            return true;
        }
    }
    return false;
}

bool affinity_allows(const struct cluster *cluster, int32_t task, int32_t node, bool is_now)
{
    if (!affinity_matters(cluster, task)) {
        return true;
    }
    if (cluster->snapshot->tasks[task].affinity_key != NULL && !has_company(cluster, task, node)) {
        return false;
    }
    return !cluster->has_anti_affinity || !is_disturbed(cluster, task, node, is_now);
}
