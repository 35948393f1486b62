/** The tasks of a snapshot: what they are, and where they lie. */
#include "sched/model/cluster.h"

#include "base/macros.h"
#include "sched/place/nomination.h"
#include "sched/place/zones.h"

#include <stdlib.h>
#include <string.h>

static void set_devices(struct cluster *cluster, int32_t task, const int32_t *devices)
{
    const struct task_state *state = &cluster->tasks[task];
    size_t n = (size_t)cluster->snapshot->tasks[task].demand.n_devices * sizeof *devices;
    memmove(cluster->planned_devices + state->first_assigned, devices, n);
    memcpy(cluster->current_devices + state->first_assigned, devices, n);
}

/** Devices of a running task that names none: those with most room, shared ones first for shares.
 */
static void guess_devices(struct cluster *cluster, int32_t task, int32_t at)
{
    const struct node_state *node = &cluster->nodes[at];
    int32_t n = cluster->snapshot->nodes[at].n_devices;
    int32_t n_wanted = WEIR_MIN(cluster_demand(cluster, task)->n_devices, n);
    int64_t units = cluster_device_units(cluster, task, at);
    int32_t *out = cluster->planned_devices + cluster->tasks[task].first_assigned;
    for (int32_t i = 0; i < n_wanted; i++) {
        int32_t best = -1;
        int64_t best_score = 0;
        for (int32_t d = 0; d < n; d++) {
            bool is_taken = false;
            for (int32_t j = 0; j < i; j++) {
                is_taken = is_taken || out[j] == d;
            }
            int64_t used = cluster->devices[node->first_device + d].now;
            int64_t score = used + units <= node->device_size ? used : INT64_MIN / 2 - used;
            if (!is_taken && (best < 0 || score > best_score)) {
                best = d;
                best_score = score;
            }
        }
        out[i] = best;
    }
}

/** The zones of a task that did not say which: where its devices lie, or those it would be given
 *  if it came now. */
static uint32_t guess_zones(const struct cluster *cluster, int32_t task, int32_t at)
{
    int32_t *devices = cluster->planned_devices + cluster->tasks[task].first_assigned;
    int32_t n_devices = cluster_demand(cluster, task)->n_devices, span;
    uint32_t zones = 0;
    if (!zones_concern(cluster, task)) {
        return 0;
    }
    if (n_devices > 0 && cluster->numa.zones_have_devices) {
        return zones_of_devices(&cluster->snapshot->nodes[at], devices, n_devices);
    }
    return zones_find(cluster, task, at, false, devices, &zones, &span) ? zones : 0;
}

static void put_in_zones(struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    struct task_state *state = &cluster->tasks[task];
    bool is_policy = cluster->snapshot->nodes[at].numa_policy != WEIR_SCHED_NUMA_NONE;
    state->zones = !is_policy          ? 0
                   : given->zones != 0 ? given->zones
                                       : guess_zones(cluster, task, at);
    state->current_zones = state->zones;
    if (state->zones != 0) {
        struct numa_allocation *numa = cluster_planned_numa(cluster, task);
        zones_allocate(cluster, task, at, state->zones, false, numa);
        memcpy(cluster_current_numa(cluster, task), numa,
               (size_t)cluster->numa.max_zones * sizeof *numa);
    }
}

/** What a task is by itself and in its groups; where it lies is counted later. */
static void read_task(struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    struct task_state *state = &cluster->tasks[task];
    static const uint8_t phases[] = {
        [WEIR_SCHED_PENDING] = PHASE_PENDING,     [WEIR_SCHED_RUNNING] = PHASE_RUNNING,
        [WEIR_SCHED_RELEASING] = PHASE_RELEASING, [WEIR_SCHED_STUCK] = PHASE_STUCK,
        [WEIR_SCHED_PIPELINED] = PHASE_PIPELINED, [WEIR_SCHED_GATED] = PHASE_GATED,
        [WEIR_SCHED_DONE] = PHASE_DONE,           [WEIR_SCHED_FAILED] = PHASE_FAILED};
    bool is_leaving = given->state == WEIR_SCHED_RUNNING && given->is_leaving;
    state->phase = is_leaving ? PHASE_RELEASING : phases[given->state];
    state->reason = is_leaving ? WEIR_SCHED_EVICT_AFTER_GRACE : WEIR_SCHED_EVICT_NONE;
    bool is_pipelined = given->state == WEIR_SCHED_PIPELINED;
    if (weir_sched_task_has_node(given->state)) {
        state->current_node = is_pipelined ? -1 : given->node;
        if (given->devices != NULL) {
            set_devices(cluster, task, given->devices);
        }
        state->planned_node = state->phase == PHASE_RUNNING || is_pipelined ? given->node : -1;
        state->is_fixed = cluster_is_fixed(cluster, task);
        cluster->has_nominations = cluster->has_nominations || is_pipelined;
    }
    cluster_count_in_groups(cluster, task, 1);
}

/** What queues ask for: what they have, and what is pending. */
static void count_requested(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        cluster->queues[q].requested = cluster->queues[q].allocated;
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        if (cluster->tasks[i].phase != PHASE_PENDING) {
            continue;
        }
        struct task_charge charge = cluster_charge(cluster, i, -1);
        int32_t queue = cluster->jobs[cluster->tasks[i].job].queue;
        for (; queue >= 0; queue = snapshot->queues[queue].parent) {
            amount_count(&cluster->queues[queue].requested, &charge, 1);
        }
    }
}

/** A task that has a node. */
struct seat {
    int32_t task;
    bool has_devices; /**< It names them. */
};

/** Read a task; if it has a node, it becomes the next seat there. */
static void seat_task(struct cluster *cluster, int32_t task, struct seat *seats, int32_t *stops)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    read_task(cluster, task);
    if (weir_sched_task_has_node(given->state)) {
        seats[stops[given->node]++] = (struct seat){task, given->devices != NULL};
    }
}

/** Read all tasks. Those with a node become seats, node after node; on a node those that name their
 *  devices first, so that a guess does not take them. @param ends Per node, zeroed: out, the end of
 *  its seats. @param later Room for all tasks. */
static void seat_tasks(struct cluster *cluster, struct seat *seats, int32_t *stops, int32_t *later)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t n_seats = 0, n_later = 0;
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        if (weir_sched_task_has_node(snapshot->tasks[i].state)) {
            stops[snapshot->tasks[i].node]++;
        }
    }
    for (int32_t at = 0; at < snapshot->n_nodes; at++) { /* Counts become starts, then ends. */
        n_seats += stops[at];
        stops[at] = n_seats - stops[at];
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        int32_t task = cluster->task_order[i];
        if (snapshot->tasks[task].devices == NULL) {
            later[n_later++] = task;
        } else {
            seat_task(cluster, task, seats, stops);
        }
    }
    for (int32_t i = 0; i < n_later; i++) {
        seat_task(cluster, later[i], seats, stops);
    }
}

#define PUT_AHEAD 8

/** Count who lies on a node, there and in the queues. Loads what nodes have in order, and of tasks,
 *  which are in none, a little ahead. */
static void put_on_node(struct cluster *cluster, int32_t at, const struct seat *seats, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t task = seats[i].task;
        struct task_state *state = &cluster->tasks[task];
        __builtin_prefetch(&cluster->tasks[seats[i + PUT_AHEAD].task]);
        __builtin_prefetch(&cluster->jobs[cluster->tasks[seats[i + PUT_AHEAD / 2].task].job]);
        if (!seats[i].has_devices) {
            guess_devices(cluster, task, at);
            set_devices(cluster, task, cluster->planned_devices + state->first_assigned);
        }
        put_in_zones(cluster, task, at);
        cluster_count_in_place(cluster, task, 1);
    }
}

weir_status cluster_put_tasks(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    struct seat *seats = calloc((size_t)snapshot->n_tasks + PUT_AHEAD, sizeof *seats);
    int32_t *stops = calloc((size_t)snapshot->n_nodes + 1, sizeof *stops);
    int32_t *later = malloc(((size_t)snapshot->n_tasks + 1) * sizeof *later);
    bool is_whole = seats != NULL && stops != NULL && later != NULL;
    if (is_whole) {
        seat_tasks(cluster, seats, stops, later);
        cluster->is_building = true;
        for (int32_t at = 0; at < snapshot->n_nodes; at++) {
            int32_t first = at > 0 ? stops[at - 1] : 0;
            put_on_node(cluster, at, seats + first, stops[at] - first);
            cluster_count_devices(cluster, at);
        }
        cluster->is_building = false;
    }
    free(seats);
    free(stops);
    free(later);
    if (!is_whole) {
        return WEIR_ERR_NOMEM;
    }
    nomination_take_all(cluster);
    count_requested(cluster);
    return WEIR_OK;
}
