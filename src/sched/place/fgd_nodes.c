#include "sched/place/fgd_nodes.h"

#include "base/macros.h"
#include "sched/model/shape.h"
#include "sched/place/fits.h"

#include <stdlib.h>
#include <string.h>

static int32_t find_constraint(struct fgd_nodes *nodes, int32_t task)
{
    const struct weir_sched_task *tasks = nodes->cluster->snapshot->tasks;
    for (int32_t i = 0; i < nodes->n_constraints; i++) {
        if (shape_has_same_constraint(&tasks[nodes->examples[i]], &tasks[task])) {
            return i;
        }
    }
    if (nodes->n_constraints == FGD_CONSTRAINTS_MAX - 1) {
        return FGD_CONSTRAINTS_MAX - 1;
    }
    nodes->examples[nodes->n_constraints] = task;
    return nodes->n_constraints++;
}

static bool is_about(const struct weir_sched_task *task)
{
    return task->state != WEIR_SCHED_DONE && task->state != WEIR_SCHED_GATED;
}

/** Count the tasks of each shape as a kind. */
static struct fgd_kind *count_kinds(struct fgd_nodes *nodes)
{
    const struct cluster *cluster = nodes->cluster;
    struct fgd_kind *kinds = calloc((size_t)cluster->shapes.n + 1, sizeof *kinds);
    bool *is_known = calloc((size_t)cluster->shapes.n + 1, sizeof *is_known);
    for (int32_t t = 0; kinds != NULL && is_known != NULL && t < cluster->snapshot->n_tasks; t++) {
        int32_t shape = cluster->tasks[t].shape;
        const struct weir_sched_demand *demand = cluster_demand(cluster, t);
        if (!is_known[shape]) {
            is_known[shape] = true;
            nodes->constraints[shape] = find_constraint(nodes, t);
            kinds[shape] = (struct fgd_kind){.cpu_milli = demand->cpu_milli,
                                             .memory_bytes = demand->memory_bytes,
                                             .device_memory_bytes = demand->device_memory_bytes,
                                             .n_devices = demand->n_devices,
                                             .device_milli = demand->device_milli,
                                             .constraint = nodes->constraints[shape]};
        }
        kinds[shape].count += is_about(&cluster->snapshot->tasks[t]);
    }
    if (is_known == NULL) {
        free(kinds);
        kinds = NULL;
    }
    free(is_known);
    return kinds;
}

/** The class of a node: found among those there are, or made. */
static int32_t classify(struct fgd_nodes *nodes, int32_t at)
{
    const struct weir_sched_node *given = &nodes->cluster->snapshot->nodes[at];
    bool *allows = nodes->allows + (size_t)nodes->n_classes * FGD_CONSTRAINTS_MAX;
    for (int32_t i = 0; i < FGD_CONSTRAINTS_MAX; i++) {
        allows[i] =
            i >= nodes->n_constraints || fits_allows(nodes->cluster, nodes->examples[i], at);
    }
    for (int32_t c = 0; c < nodes->n_classes; c++) {
        const struct fgd_class *class_ = &nodes->classes[c];
        if (class_->device_memory_bytes == given->device_memory_bytes &&
            class_->is_whole_only == given->is_whole_only &&
            memcmp(class_->allows, allows, FGD_CONSTRAINTS_MAX) == 0) {
            return c;
        }
    }
    nodes->classes[nodes->n_classes] = (struct fgd_class){
        .device_memory_bytes = given->device_memory_bytes,
        .is_whole_only = given->is_whole_only,
        .allows = allows,
    };
    return nodes->n_classes++;
}

static weir_status allocate(struct fgd_nodes *nodes)
{
    const struct weir_sched_snapshot *snapshot = nodes->cluster->snapshot;
    size_t n_nodes = (size_t)snapshot->n_nodes + 1, n_devices = 1;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        n_devices += (size_t)snapshot->nodes[i].n_devices;
        nodes->max_devices = WEIR_MAX(nodes->max_devices, snapshot->nodes[i].n_devices);
    }
    nodes->states = calloc(n_nodes, sizeof *nodes->states);
    nodes->rooms = calloc(n_nodes, sizeof *nodes->rooms);
    nodes->classes = calloc(n_nodes, sizeof *nodes->classes);
    nodes->allows = calloc(n_nodes, FGD_CONSTRAINTS_MAX);
    nodes->pool = calloc(n_devices, sizeof *nodes->pool);
    nodes->scratch = calloc((size_t)nodes->max_devices + 1, sizeof *nodes->scratch);
    nodes->constraints = calloc((size_t)nodes->cluster->shapes.n + 1, sizeof(int32_t));
    nodes->examples = calloc(FGD_CONSTRAINTS_MAX, sizeof(int32_t));
    return nodes->states == NULL || nodes->rooms == NULL || nodes->classes == NULL ||
                   nodes->allows == NULL || nodes->pool == NULL || nodes->scratch == NULL ||
                   nodes->constraints == NULL || nodes->examples == NULL
               ? WEIR_ERR_NOMEM
               : WEIR_OK;
}

weir_status fgd_nodes_init(struct fgd_nodes *nodes, const struct cluster *cluster)
{
    *nodes = (struct fgd_nodes){.cluster = cluster};
    WEIR_TRY(allocate(nodes));
    WEIR_AUTO(weir_auto_free) struct fgd_kind *kinds = count_kinds(nodes);
    if (kinds == NULL) {
        return WEIR_ERR_NOMEM;
    }
    int32_t *free_devices = nodes->pool;
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        nodes->states[i].class_ = classify(nodes, i);
        nodes->states[i].n_devices = cluster->snapshot->nodes[i].n_devices;
        nodes->states[i].free = free_devices;
        free_devices += nodes->states[i].n_devices;
        fgd_nodes_update(nodes, i);
    }
    return fgd_mix_init(&nodes->mix, kinds, cluster->shapes.n, nodes->classes, FGD_DEPTH_PCT);
}

void fgd_nodes_fini(struct fgd_nodes *nodes)
{
    fgd_mix_fini(&nodes->mix);
    free(nodes->states);
    free(nodes->rooms);
    free(nodes->classes);
    free(nodes->allows);
    free(nodes->pool);
    free(nodes->scratch);
    free(nodes->constraints);
    free(nodes->examples);
}

int32_t fgd_nodes_free(const struct cluster *cluster, int32_t node, int32_t device)
{
    return cluster->devices[cluster->nodes[node].first_device + device].room_milli;
}

bool fgd_nodes_update(struct fgd_nodes *nodes, int32_t at)
{
    const struct cluster *cluster = nodes->cluster;
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    struct fgd_state *state = &nodes->states[at];
    int64_t cpu_milli = WEIR_MAX(given->cpu_milli - cluster->nodes[at].cpu_future, 0);
    int64_t memory_bytes = WEIR_MAX(given->memory_bytes - cluster->nodes[at].memory_future, 0);
    int64_t room = 0;
    for (int32_t d = 0; d < state->n_devices; d++) {
        int32_t left = fgd_nodes_free(cluster, at, d), i = d;
        for (; i > 0 && nodes->scratch[i - 1] < left; i--) {
            nodes->scratch[i] = nodes->scratch[i - 1];
        }
        nodes->scratch[i] = left;
        room += left;
    }
    size_t size = (size_t)state->n_devices * sizeof *state->free;
    bool is_changed = cpu_milli != state->cpu_milli || memory_bytes != state->memory_bytes ||
                      memcmp(nodes->scratch, state->free, size) != 0;
    state->cpu_milli = cpu_milli;
    state->memory_bytes = memory_bytes;
    memcpy(state->free, nodes->scratch, size);
    nodes->rooms[at] = cluster->nodes[at].is_open ? room : 0;
    return is_changed;
}

bool fgd_nodes_allow(const struct fgd_nodes *nodes, int32_t task, int32_t node)
{
    int32_t constraint = nodes->constraints[nodes->cluster->tasks[task].shape];
    return nodes->classes[nodes->states[node].class_].allows[constraint];
}

void fgd_nodes_sum(const struct fgd_nodes *nodes, int64_t *sums)
{
    memset(sums, 0, (size_t)nodes->mix.n_kinds * sizeof *sums);
    for (int32_t i = 0; i < nodes->cluster->snapshot->n_nodes; i++) {
        if (nodes->rooms[i] > 0) {
            fgd_usable(&nodes->mix, &nodes->states[i], 1, sums);
        }
    }
}
