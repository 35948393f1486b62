#include "sched/evict/feasibility.h"

#include "base/macros.h"
#include "sched/place/affinity.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_AHEAD 8

weir_status feasibility_init(struct feasibility *feasibility, struct cluster *cluster,
                             struct placer *placer)
{
    size_t n_shapes = (size_t)cluster->shapes.n + 1;
    *feasibility = (struct feasibility){.cluster = cluster, .placer = placer, .version = -1};
    feasibility->reclaimable =
        calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof *feasibility->reclaimable);
    feasibility->examples = calloc(n_shapes, sizeof *feasibility->examples);
    feasibility->is_movable = calloc(n_shapes, sizeof *feasibility->is_movable);
    feasibility->counts_all = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof(bool));
    feasibility->verdicts = calloc(n_shapes, sizeof *feasibility->verdicts);
    feasibility->gangs = calloc((size_t)cluster->snapshot->n_jobs + 1, sizeof *feasibility->gangs);
    if (feasibility->reclaimable == NULL || feasibility->examples == NULL ||
        feasibility->is_movable == NULL || feasibility->verdicts == NULL ||
        feasibility->counts_all == NULL || feasibility->gangs == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        if (cluster->jobs[j].n_tasks > 1 &&
            cluster->jobs[j].preemptibility != WEIR_SCHED_NON_PREEMPTIBLE) {
            feasibility->gangs[feasibility->n_gangs++] = j;
        }
    }
    for (int32_t t = cluster->snapshot->n_tasks - 1; t >= 0; t--) {
        feasibility->examples[cluster->tasks[t].shape] = t;
    }
    return WEIR_OK;
}

void feasibility_fini(struct feasibility *feasibility)
{
    free(feasibility->reclaimable);
    free(feasibility->examples);
    free(feasibility->is_movable);
    free(feasibility->counts_all);
    free(feasibility->verdicts);
    free(feasibility->gangs);
    *feasibility = (struct feasibility){0};
}

/** Whether the task fits on a node with a key from `from` to below `end`. */
static bool walk(const struct feasibility *feasibility, int32_t task,
                 const struct node_index *index, int64_t from, int64_t end)
{
    struct assignment assignment = {.devices = feasibility->placer->devices};
    int32_t at = node_index_at_least(index, NODE_INDEX_ALL, from, 0);
    while (at >= 0 && index->entries[at].key < end) {
        assignment.node = at;
        fits_find(feasibility->cluster, task, &assignment);
        if (assignment.when >= FITS_FUTURE) {
            return true;
        }
        at = node_index_at_least(index, NODE_INDEX_ALL, index->entries[at].key, at + 1);
    }
    return false;
}

/** Whether a task of the shape fits somewhere when what leaves has left. */
static bool fits_somewhere(const struct feasibility *feasibility, int32_t shape)
{
    const struct cluster *cluster = feasibility->cluster;
    int32_t task = feasibility->examples[shape];
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (affinity_matters(cluster, task)) {
        return true; /* It depends on who else goes. */
    }
    const struct cluster_indices *indices = cluster_indices(feasibility->cluster);
    int64_t least = cluster_least_key(cluster, demand);
    if (demand->n_devices > 0) {
        return walk(feasibility, task, &indices->by_room, least, INT64_MAX);
    }
    return walk(feasibility, task, &indices->by_cpu, CLUSTER_KEY_WITH_DEVICES + least, INT64_MAX) ||
           walk(feasibility, task, &indices->by_cpu, least, CLUSTER_KEY_WITH_DEVICES);
}

/** Thousandths of the node's devices that a task takes, rounded up or down. */
static int64_t milli_on(const struct cluster *cluster, int32_t task, int32_t node, bool is_up)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    bool is_exact = demand->device_milli > 0;
    if (demand->n_devices == 0 || is_exact) {
        return (int64_t)demand->n_devices * demand->device_milli;
    }
    int64_t size = cluster->nodes[node].device_size;
    __int128 units = cluster_device_units(cluster, task, node);
    return demand->n_devices *
           (int64_t)((units * WEIR_SCHED_DEVICE + (is_up ? size - 1 : 0)) / size);
}

void feasibility_add(const struct cluster *cluster, int32_t task, int32_t node,
                     struct feasibility_room *room)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    room->milli += milli_on(cluster, task, node, true);
    room->cpu_milli += demand->cpu_milli;
    room->memory_bytes += demand->memory_bytes;
    room->n_tasks++;
}

void feasibility_count(const struct feasibility *feasibility, int32_t task, int32_t node,
                       bool may_lose, bool is_gang, struct reclaimable *gain)
{
    feasibility_add(feasibility->cluster, task, node, &gain->of_all);
    if (may_lose || feasibility->is_movable[feasibility->cluster->tasks[task].shape]) {
        feasibility_add(feasibility->cluster, task, node, &gain->of_useful);
    }
    gain->counts_all = gain->counts_all || (may_lose && is_gang) || feasibility->counts_all[node];
}

static const struct feasibility_room *room_of(const struct reclaimable *gain)
{
    return gain->counts_all ? &gain->of_all : &gain->of_useful;
}

bool feasibility_fits(const struct cluster *cluster, int32_t task, int32_t at,
                      const struct reclaimable *of)
{
    const struct feasibility_room *gain = room_of(of);
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    /* The room of each device was rounded down. */
    int64_t milli = node->room_milli + given->n_devices + gain->milli;
    return milli_on(cluster, task, at, false) <= milli && demand->n_devices <= given->n_devices &&
           (demand->cpu_milli == 0 ||
            demand->cpu_milli <= given->cpu_milli - node->cpu_future + gain->cpu_milli) &&
           (demand->memory_bytes == 0 || demand->memory_bytes <= given->memory_bytes -
                                                                     node->memory_future +
                                                                     gain->memory_bytes) &&
           (given->n_tasks_max < 0 || node->tasks_future - gain->n_tasks < given->n_tasks_max);
}

/** The node that a task would leave if it went: where it runs and stays, or, by retake_pipelined,
 *  where it has only a place; -1. */
static int32_t node_to_leave(const struct cluster *cluster, int32_t t)
{
    const struct task_state *task = &cluster->tasks[t];
    bool is_pipelined = task->phase == PHASE_PIPELINED && task->current_node < 0;
    bool is_settled = task->current_node >= 0 && task->current_node == task->planned_node;
    return is_settled || (is_pipelined && cluster->profile->retake_pipelined) ? task->planned_node
                                                                              : -1;
}

static bool is_share(const struct weir_sched_demand *demand)
{
    return demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE;
}

/** Note the nodes of a job whose tasks may go together and not come back to where they were. */
static void note_gang(struct feasibility *feasibility, const struct weir_sched_job *job)
{
    const struct cluster *cluster = feasibility->cluster;
    bool is_any = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        is_any = is_any || (node_to_leave(cluster, t) >= 0 &&
                            (feasibility->is_movable[cluster->tasks[t].shape] ||
                             is_share(cluster_demand(cluster, t))));
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_any; t++) {
        int32_t node = node_to_leave(cluster, t);
        if (node >= 0) {
            feasibility->counts_all[node] = true;
        }
    }
}

void feasibility_update(struct feasibility *feasibility)
{
    const struct cluster *cluster = feasibility->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    if (feasibility->version == cluster->changes.n_commits) {
        return;
    }
    feasibility->version = cluster->changes.n_commits;
    memset(feasibility->reclaimable, 0,
           (size_t)snapshot->n_nodes * sizeof *feasibility->reclaimable);
    memset(feasibility->verdicts, 0, (size_t)cluster->shapes.n);
    for (int32_t shape = 0; shape < cluster->shapes.n; shape++) {
        feasibility->is_movable[shape] = fits_somewhere(feasibility, shape);
    }
    memset(feasibility->counts_all, 0, (size_t)snapshot->n_nodes * sizeof *feasibility->counts_all);
    for (int32_t i = 0; i < feasibility->n_gangs; i++) {
        note_gang(feasibility, &snapshot->jobs[feasibility->gangs[i]]);
    }
    for (int32_t t = 0; t < snapshot->n_tasks; t++) {
        const struct task_state *task = &cluster->tasks[t];
        int32_t later =
            cluster->tasks[WEIR_MIN(t + COUNT_AHEAD, snapshot->n_tasks - 1)].current_node;
        if (later >= 0) { /* Tasks lie on nodes in no order. */
            __builtin_prefetch(&feasibility->reclaimable[later], 1);
            __builtin_prefetch(&feasibility->reclaimable[later].counts_all, 1);
        }
        int32_t node = node_to_leave(cluster, t);
        if (node >= 0 && cluster->jobs[task->job].preemptibility != WEIR_SCHED_NON_PREEMPTIBLE) {
            feasibility_count(feasibility, t, node, false, false, &feasibility->reclaimable[node]);
        }
    }
}

/** How many of `need` there are in what is free. */
static int64_t times(int64_t free_amount, int64_t need)
{
    return need <= 0 ? INT32_MAX : WEIR_MAX(free_amount, 0) / need;
}

int64_t feasibility_count_on(const struct cluster *cluster, int32_t task, int32_t at,
                             const struct reclaimable *of)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    const struct feasibility_room *gain = room_of(of);
    if (!feasibility_fits(cluster, task, at, of) || !fits_ever(cluster, task, at)) {
        return 0;
    }
    int64_t milli = node->room_milli + given->n_devices + gain->milli;
    int64_t n = times(milli, milli_on(cluster, task, at, false));
    int64_t n_cpu = times(given->cpu_milli - node->cpu_future + gain->cpu_milli, demand->cpu_milli);
    int64_t n_memory =
        times(given->memory_bytes - node->memory_future + gain->memory_bytes, demand->memory_bytes);
    n = WEIR_MIN(n, WEIR_MIN(n_cpu, n_memory));
    if (given->n_tasks_max >= 0) {
        n = WEIR_MIN(n, given->n_tasks_max - node->tasks_future + gain->n_tasks);
    }
    return n;
}

int64_t feasibility_count_fits(const struct cluster *cluster, int32_t task,
                               const struct reclaimable *reclaimable, int64_t most)
{
    int64_t n = 0;
    for (int32_t at = 0; at < cluster->snapshot->n_nodes && n < most; at++) {
        n += feasibility_count_on(cluster, task, at, &reclaimable[at]);
    }
    return n;
}

static enum feasibility_verdict look(const struct feasibility *feasibility, int32_t task)
{
    const struct cluster *cluster = feasibility->cluster;
    for (int32_t node = 0; node < cluster->snapshot->n_nodes; node++) {
        if (feasibility_fits(cluster, task, node, &feasibility->reclaimable[node]) &&
            fits_ever(cluster, task, node)) {
            return FEASIBILITY_SOME;
        }
    }
    return FEASIBILITY_NONE;
}

bool feasibility_is_known(const struct feasibility *feasibility, int32_t task)
{
    return feasibility->verdicts[feasibility->cluster->tasks[task].shape] != FEASIBILITY_UNKNOWN;
}

bool feasibility_rules_out(struct feasibility *feasibility, int32_t task)
{
    int32_t shape = feasibility->cluster->tasks[task].shape;
    if (feasibility->verdicts[shape] == FEASIBILITY_UNKNOWN) {
        feasibility->verdicts[shape] = (uint8_t)look(feasibility, task);
    }
    return feasibility->verdicts[shape] == FEASIBILITY_NONE;
}
