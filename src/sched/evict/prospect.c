#include "sched/evict/prospect.h"

#include "base/macros.h"
#include "sched/place/affinity.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_AHEAD 8

weir_status prospect_init(struct prospect *prospect, struct cluster *cluster, struct placer *placer)
{
    size_t n_shapes = (size_t)cluster->n_shapes + 1;
    *prospect = (struct prospect){.cluster = cluster, .placer = placer, .version = -1};
    prospect->gains = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof *prospect->gains);
    prospect->examples = calloc(n_shapes, sizeof *prospect->examples);
    prospect->is_movable = calloc(n_shapes, sizeof *prospect->is_movable);
    prospect->is_loose = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof(bool));
    prospect->hopes = calloc(n_shapes, sizeof *prospect->hopes);
    prospect->gangs = calloc((size_t)cluster->snapshot->n_jobs + 1, sizeof *prospect->gangs);
    if (prospect->gains == NULL || prospect->examples == NULL || prospect->is_movable == NULL ||
        prospect->hopes == NULL || prospect->is_loose == NULL || prospect->gangs == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        if (cluster->jobs[j].n_tasks > 1 &&
            cluster->jobs[j].preemptibility != WEIR_SCHED_NON_PREEMPTIBLE) {
            prospect->gangs[prospect->n_gangs++] = j;
        }
    }
    for (int32_t t = cluster->snapshot->n_tasks - 1; t >= 0; t--) {
        prospect->examples[cluster->tasks[t].shape] = t;
    }
    return WEIR_OK;
}

void prospect_fini(struct prospect *prospect)
{
    free(prospect->gains);
    free(prospect->examples);
    free(prospect->is_movable);
    free(prospect->is_loose);
    free(prospect->hopes);
    free(prospect->gangs);
    *prospect = (struct prospect){0};
}

/** Whether the task fits on a node with a key from `from` to below `end`. */
static bool walk(const struct prospect *prospect, int32_t task, const struct node_index *index,
                 int64_t from, int64_t end)
{
    struct fits_spot spot = {.devices = prospect->placer->devices};
    int32_t at = node_index_at_least(index, NODE_INDEX_ALL, from, 0);
    while (at >= 0 && index->entries[at].key < end) {
        spot.node = at;
        fits_find(prospect->cluster, task, &spot);
        if (spot.when >= FITS_FUTURE) {
            return true;
        }
        at = node_index_at_least(index, NODE_INDEX_ALL, index->entries[at].key, at + 1);
    }
    return false;
}

/** Whether a task of the shape fits somewhere when what leaves has left. */
static bool fits_somewhere(const struct prospect *prospect, int32_t shape)
{
    const struct cluster *cluster = prospect->cluster;
    int32_t task = prospect->examples[shape];
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (affinity_matters(cluster, task)) {
        return true; /* It depends on who else goes. */
    }
    const struct cluster_indices *indices = cluster_indices(prospect->cluster);
    int64_t least = cluster_least_key(cluster, demand);
    if (demand->n_devices > 0) {
        return walk(prospect, task, &indices->by_room, least, INT64_MAX);
    }
    return walk(prospect, task, &indices->by_cpu, CLUSTER_KEY_WITH_DEVICES + least, INT64_MAX) ||
           walk(prospect, task, &indices->by_cpu, least, CLUSTER_KEY_WITH_DEVICES);
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

void prospect_add(const struct cluster *cluster, int32_t task, int32_t node,
                  struct prospect_room *room)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    room->milli += milli_on(cluster, task, node, true);
    room->cpu_milli += demand->cpu_milli;
    room->memory_bytes += demand->memory_bytes;
    room->n_tasks++;
}

void prospect_count(const struct prospect *prospect, int32_t task, int32_t node, bool may_lose,
                    bool is_gang, struct prospect_gain *gain)
{
    prospect_add(prospect->cluster, task, node, &gain->of_all);
    if (may_lose || prospect->is_movable[prospect->cluster->tasks[task].shape]) {
        prospect_add(prospect->cluster, task, node, &gain->of_useful);
    }
    gain->is_loose = gain->is_loose || (may_lose && is_gang) || prospect->is_loose[node];
}

static const struct prospect_room *room_of(const struct prospect_gain *gain)
{
    return gain->is_loose ? &gain->of_all : &gain->of_useful;
}

bool prospect_fits(const struct cluster *cluster, int32_t task, int32_t at,
                   const struct prospect_gain *of)
{
    const struct prospect_room *gain = room_of(of);
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

static bool is_settled(const struct task_state *task)
{
    return task->held >= 0 && task->held == task->target;
}

static bool is_share(const struct weir_sched_demand *demand)
{
    return demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE;
}

/** Note the nodes of a job whose tasks may go together and not come back to where they were. */
static void note_gang(struct prospect *prospect, const struct weir_sched_job *job)
{
    const struct cluster *cluster = prospect->cluster;
    bool is_any = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        is_any = is_any || (is_settled(&cluster->tasks[t]) &&
                            (prospect->is_movable[cluster->tasks[t].shape] ||
                             is_share(cluster_demand(cluster, t))));
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_any; t++) {
        if (is_settled(&cluster->tasks[t])) {
            prospect->is_loose[cluster->tasks[t].held] = true;
        }
    }
}

void prospect_update(struct prospect *prospect)
{
    const struct cluster *cluster = prospect->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    if (prospect->version == cluster->n_commits) {
        return;
    }
    prospect->version = cluster->n_commits;
    memset(prospect->gains, 0, (size_t)snapshot->n_nodes * sizeof *prospect->gains);
    memset(prospect->hopes, 0, (size_t)cluster->n_shapes);
    for (int32_t shape = 0; shape < cluster->n_shapes; shape++) {
        prospect->is_movable[shape] = fits_somewhere(prospect, shape);
    }
    memset(prospect->is_loose, 0, (size_t)snapshot->n_nodes * sizeof *prospect->is_loose);
    for (int32_t i = 0; i < prospect->n_gangs; i++) {
        note_gang(prospect, &snapshot->jobs[prospect->gangs[i]]);
    }
    for (int32_t t = 0; t < snapshot->n_tasks; t++) {
        const struct task_state *task = &cluster->tasks[t];
        int32_t later = cluster->tasks[WEIR_MIN(t + COUNT_AHEAD, snapshot->n_tasks - 1)].held;
        if (later >= 0) { /* Tasks lie on nodes in no order. */
            __builtin_prefetch(&prospect->gains[later], 1);
            __builtin_prefetch(&prospect->gains[later].is_loose, 1);
        }
        if (is_settled(task) &&
            cluster->jobs[task->job].preemptibility != WEIR_SCHED_NON_PREEMPTIBLE) {
            prospect_count(prospect, t, task->held, false, false, &prospect->gains[task->held]);
        }
    }
}

/** How many of `need` there are in what is free. */
static int64_t times(int64_t free_amount, int64_t need)
{
    return need <= 0 ? INT32_MAX : WEIR_MAX(free_amount, 0) / need;
}

int64_t prospect_count_on(const struct cluster *cluster, int32_t task, int32_t at,
                          const struct prospect_gain *of)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    const struct prospect_room *gain = room_of(of);
    if (!prospect_fits(cluster, task, at, of) || !fits_ever(cluster, task, at)) {
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

int64_t prospect_count_fits(const struct cluster *cluster, int32_t task,
                            const struct prospect_gain *gains, int64_t most)
{
    int64_t n = 0;
    for (int32_t at = 0; at < cluster->snapshot->n_nodes && n < most; at++) {
        n += prospect_count_on(cluster, task, at, &gains[at]);
    }
    return n;
}

static enum prospect_hope look(const struct prospect *prospect, int32_t task)
{
    const struct cluster *cluster = prospect->cluster;
    for (int32_t node = 0; node < cluster->snapshot->n_nodes; node++) {
        if (prospect_fits(cluster, task, node, &prospect->gains[node]) &&
            fits_ever(cluster, task, node)) {
            return PROSPECT_SOME;
        }
    }
    return PROSPECT_NONE;
}

bool prospect_is_known(const struct prospect *prospect, int32_t task)
{
    return prospect->hopes[prospect->cluster->tasks[task].shape] != PROSPECT_UNKNOWN;
}

bool prospect_is_hopeless(struct prospect *prospect, int32_t task)
{
    int32_t shape = prospect->cluster->tasks[task].shape;
    if (prospect->hopes[shape] == PROSPECT_UNKNOWN) {
        prospect->hopes[shape] = (uint8_t)look(prospect, task);
    }
    return prospect->hopes[shape] == PROSPECT_NONE;
}
