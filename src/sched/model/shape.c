#include "sched/model/shape.h"

#include "sched/forecast/run_time.h"
#include "sched/place/affinity.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdU;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    }
    return mix(hash, text == NULL);
}

uint64_t shape_constraint_hash(const struct weir_sched_task *task)
{
    uint64_t hash = 0;
    for (int32_t i = 0; i < task->n_selector; i++) {
        hash = mix_text(mix_text(hash, task->selector[i].key), task->selector[i].value);
    }
    for (int32_t i = 0; i < task->n_tolerations; i++) {
        hash = mix_text(mix_text(hash, task->tolerations[i].key), task->tolerations[i].value);
    }
    return hash;
}

static uint64_t hash_of(const struct weir_sched_task *task)
{
    const struct weir_sched_demand *demand = &task->demand;
    uint64_t hash = mix(shape_constraint_hash(task), (uint64_t)demand->cpu_milli);
    hash = mix(hash, (uint64_t)demand->memory_bytes);
    hash = mix(hash, (uint64_t)demand->n_devices);
    hash = mix(hash, (uint64_t)demand->device_milli);
    hash = mix(hash, (uint64_t)demand->device_memory_bytes);
    hash = mix(hash, demand->numa_aligned);
    for (int32_t i = 0; i < demand->n_extras; i++) {
        hash = mix_text(mix(hash, (uint64_t)demand->extras[i].count), demand->extras[i].name);
    }
    return hash;
}

static bool is_same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

static bool is_same_demand(const struct weir_sched_demand *left,
                           const struct weir_sched_demand *right)
{
    if (left->cpu_milli != right->cpu_milli || left->memory_bytes != right->memory_bytes ||
        left->n_devices != right->n_devices || left->device_milli != right->device_milli ||
        left->device_memory_bytes != right->device_memory_bytes ||
        left->numa_aligned != right->numa_aligned || left->n_extras != right->n_extras) {
        return false;
    }
    for (int32_t i = 0; i < left->n_extras; i++) {
        if (left->extras[i].count != right->extras[i].count ||
            !is_same_text(left->extras[i].name, right->extras[i].name)) {
            return false;
        }
    }
    return true;
}

bool shape_has_same_constraint(const struct weir_sched_task *left,
                               const struct weir_sched_task *right)
{
    if (left->n_selector != right->n_selector || left->n_tolerations != right->n_tolerations) {
        return false;
    }
    for (int32_t i = 0; i < left->n_selector; i++) {
        if (!is_same_text(left->selector[i].key, right->selector[i].key) ||
            !is_same_text(left->selector[i].value, right->selector[i].value)) {
            return false;
        }
    }
    for (int32_t i = 0; i < left->n_tolerations; i++) {
        if (!is_same_text(left->tolerations[i].key, right->tolerations[i].key) ||
            !is_same_text(left->tolerations[i].value, right->tolerations[i].value)) {
            return false;
        }
    }
    return true;
}

/** Tasks with affinities are each of their own shape: what fits them depends on other tasks. */
static bool is_same(const struct weir_sched_task *left, const struct weir_sched_task *right)
{
    return left->affinity_key == NULL && left->anti_affinity_key == NULL &&
           right->affinity_key == NULL && right->anti_affinity_key == NULL &&
           is_same_demand(&left->demand, &right->demand) && shape_has_same_constraint(left, right);
}

/** A number that differs where shares_admit_at may differ for equal tasks of two jobs; 0 if it
 *  admits them everywhere. */
static uint64_t shares_kind(const struct cluster *cluster, int32_t task)
{
    int32_t job = cluster->tasks[task].job;
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int32_t queue = demand_is_by_memory(&cluster->snapshot->tasks[task].demand)
                        ? given->queue
                        : cluster->queues[given->queue].bounds_model;
    if (queue < 0) {
        return 0;
    }
    /* What is not preemptible has the quota to stay in as well; of a semi-preemptible job that
     * depends on how much of it runs. */
    uint64_t n_queues = (uint64_t)cluster->snapshot->n_queues;
    return given->preemptibility == WEIR_SCHED_SEMI_PREEMPTIBLE
               ? 1 + 2 * n_queues + (uint64_t)job
               : 1 + 2 * (uint64_t)queue + (given->preemptibility == WEIR_SCHED_NON_PREEMPTIBLE);
}

static bool are_twins(const struct cluster *cluster, int32_t left, int32_t right)
{
    const struct weir_sched_task *tasks = cluster->snapshot->tasks;
    int32_t l = cluster->tasks[left].job, r = cluster->tasks[right].job;
    return is_same(&tasks[left], &tasks[right]) &&
           (!cluster->has_anti_affinity || affinity_has_same_labels(&tasks[left], &tasks[right])) &&
           (l == r || (run_time_kind(cluster, l) == run_time_kind(cluster, r) &&
                       shares_kind(cluster, left) == shares_kind(cluster, right)));
}

weir_status shape_assign(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    size_t n_slots = 16;
    while (n_slots < 2 * (size_t)snapshot->n_tasks) {
        n_slots *= 2;
    }
    int32_t *slots = calloc(n_slots, sizeof *slots); /* First task of a shape, plus 1. */
    if (slots == NULL) {
        return WEIR_ERR_NOMEM;
    }
    int32_t previous = -1; /* Neighbours are mostly alike: no need to hash them. */
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        const struct weir_sched_task *task = &snapshot->tasks[i];
        if (previous >= 0 && are_twins(cluster, i, previous)) {
            cluster->tasks[i].shape = cluster->tasks[previous].shape;
            continue;
        }
        previous = i;
        int32_t job = cluster->tasks[i].job;
        uint64_t hash =
            mix(mix(hash_of(task), run_time_kind(cluster, job)), shares_kind(cluster, i));
        size_t at = (size_t)hash & (n_slots - 1);
        while (slots[at] != 0 && !are_twins(cluster, i, slots[at] - 1)) {
            at = (at + 1) & (n_slots - 1);
        }
        if (slots[at] == 0) {
            slots[at] = i + 1;
            cluster->tasks[i].shape = cluster->shapes.n++;
        } else {
            cluster->tasks[i].shape = cluster->tasks[slots[at] - 1].shape;
        }
    }
    free(slots);
    cluster->shapes.demands =
        calloc((size_t)cluster->shapes.n + 1, sizeof *cluster->shapes.demands);
    cluster->shapes.failed = malloc(((size_t)cluster->shapes.n + 1) * sizeof(int64_t));
    cluster->shapes.reasons = calloc((size_t)cluster->shapes.n + 1, sizeof(struct shape_reason));
    if (cluster->shapes.demands == NULL || cluster->shapes.failed == NULL ||
        cluster->shapes.reasons == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0, n_known = 0; n_known < cluster->shapes.n; i++) { /* In order of tasks. */
        if (cluster->tasks[i].shape == n_known) {
            cluster->shapes.demands[n_known++] = snapshot->tasks[i].demand;
        }
    }
    for (int32_t i = 0; i < cluster->shapes.n; i++) {
        cluster->shapes.failed[i] = -1;
    }
    return WEIR_OK;
}
