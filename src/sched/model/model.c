#include "sched/model/model.h"

#include "sched/model/shape.h"
#include "sched/place/fits.h"

#include <stdlib.h>
#include <string.h>

/** Add a name unless it is there. */
static int32_t add_name(const char **names, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return n;
        }
    }
    if (n < WEIR_SCHED_MODELS_MAX) {
        names[n++] = name;
    }
    return n;
}

int32_t weir_sched_models(const struct weir_sched_snapshot *snapshot,
                          const char *out[WEIR_SCHED_MODELS_MAX])
{
    int32_t n = 0;
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        const struct weir_sched_queue *queue = &snapshot->queues[q];
        for (int32_t i = 0; i < queue->n_models; i++) {
            n = add_name(out, n, queue->models[i].model);
        }
        for (int32_t w = 0; w < queue->n_timed_quotas; w++) {
            for (int32_t i = 0; i < queue->timed_quotas[w].n_models; i++) {
                n = add_name(out, n, queue->timed_quotas[w].models[i].model);
            }
        }
    }
    return n;
}

int32_t model_named(const struct cluster *cluster, const char *name)
{
    for (int32_t r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources && name != NULL;
         r++) {
        if (strcmp(cluster->capacity.models[r - WEIR_SCHED_FIRST_MODEL], name) == 0) {
            return r;
        }
    }
    return -1;
}

static int64_t devices_of(const struct weir_sched_node *node)
{
    int64_t sum = node->n_devices * weir_sched_device_milli(node);
    for (int32_t i = 0; i < node->n_extras; i++) {
        sum += node->extras[i].count * node->extras[i].device_milli;
    }
    return sum;
}

void model_number(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    cluster->capacity.n_resources =
        WEIR_SCHED_FIRST_MODEL + weir_sched_models(snapshot, cluster->capacity.models);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        int32_t r = model_named(cluster, snapshot->nodes[i].model);
        cluster->nodes[i].model = r;
        cluster->index.parts[i] = (uint8_t)(r < 0 ? 0 : r - WEIR_SCHED_FIRST_MODEL + 1);
        if (r >= 0) {
            cluster->capacity.total.of[r] += devices_of(&snapshot->nodes[i]);
        }
    }
}

/** The model of all nodes with devices that the task's selector and tolerations allow; -1. */
static int32_t only_model(const struct cluster *cluster, int32_t task)
{
    int32_t model = -1;
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        int32_t other = cluster->nodes[i].model;
        if ((model >= 0 && other == model) || devices_of(&cluster->snapshot->nodes[i]) == 0 ||
            !fits_allows(cluster, task, i)) {
            continue;
        }
        if (model >= 0 || other < 0) {
            return -1;
        }
        model = other;
    }
    return model;
}

weir_status model_bind_shapes(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    if (cluster->capacity.n_resources == WEIR_SCHED_FIRST_MODEL) {
        return WEIR_OK;
    }
    size_t n_slots = 16;
    while (n_slots < 2 * (size_t)cluster->shapes.n) {
        n_slots *= 2;
    }
    int32_t *slots = calloc(n_slots, sizeof *slots); /* First task of a constraint, plus 1. */
    bool *is_known = calloc((size_t)cluster->shapes.n + 1, sizeof *is_known);
    cluster->shapes.models = calloc((size_t)cluster->shapes.n + 1, sizeof(int32_t));
    bool is_whole = slots != NULL && is_known != NULL && cluster->shapes.models != NULL;
    for (int32_t t = 0; t < snapshot->n_tasks && is_whole; t++) {
        int32_t shape = cluster->tasks[t].shape;
        if (is_known[shape]) {
            continue;
        }
        is_known[shape] = true;
        size_t at = (size_t)shape_constraint_hash(&snapshot->tasks[t]) & (n_slots - 1);
        while (slots[at] != 0 &&
               !shape_has_same_constraint(&snapshot->tasks[t], &snapshot->tasks[slots[at] - 1])) {
            at = (at + 1) & (n_slots - 1);
        }
        if (slots[at] == 0) {
            slots[at] = t + 1;
            cluster->shapes.models[shape] = only_model(cluster, t);
        } else {
            cluster->shapes.models[shape] =
                cluster->shapes.models[cluster->tasks[slots[at] - 1].shape];
        }
    }
    free(slots);
    free(is_known);
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}
