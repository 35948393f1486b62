#include "sched/cluster.h"

#include "base/macros.h"
#include "sched/fgd_index.h"

#include <stdlib.h>
#include <string.h>

#define PART_UNITS ((int64_t)1000000000000)

int64_t cluster_device_units(const struct cluster *cluster, int32_t task, int32_t node)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    int64_t size = cluster->nodes[node].device_size;
    if (demand->device_milli == WEIR_SCHED_DEVICE) {
        return size;
    }
    if (demand->device_milli > 0) {
        return (int64_t)((__int128)size * demand->device_milli / WEIR_SCHED_DEVICE);
    }
    bool is_known = cluster->snapshot->nodes[node].device_memory_bytes > 0;
    return is_known ? demand->device_memory_bytes : size + 1;
}

/** What each of the task's devices counts as where devices have so much memory; 0: unknown. */
static int64_t device_charge(const struct weir_sched_demand *demand, int64_t memory)
{
    if (demand->device_milli > 0 || demand->n_devices == 0) {
        return demand->device_milli;
    }
    if (memory <= 0) {
        return WEIR_SCHED_DEVICE;
    }
    __int128 scaled = (__int128)demand->device_memory_bytes * WEIR_SCHED_DEVICE + memory - 1;
    return (int64_t)WEIR_MIN(scaled / memory, WEIR_SCHED_DEVICE);
}

/** The model that a task's devices count as; -1: none that queues have shares of, or not known yet.
 */
static int32_t charged_model(const struct cluster *cluster, int32_t task, int32_t node)
{
    if (cluster->n_resources == WEIR_SCHED_FIRST_MODEL) {
        return -1;
    }
    node = node < 0 ? cluster->tasks[task].target : node;
    return node >= 0 ? cluster->nodes[node].model
                     : cluster->shape_models[cluster->tasks[task].shape];
}

static struct task_charge charge_of(const struct cluster *cluster, int32_t task, int32_t node,
                                    int64_t memory)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct task_state *state = &cluster->tasks[task];
    int64_t devices = demand->n_devices * device_charge(demand, memory);
    for (int32_t i = 0; i < state->n_extras; i++) {
        const struct extra_want *want = &cluster->wants[state->first_extra + i];
        devices += want->count * cluster->extra_milli[want->name];
    }
    return (struct task_charge){.accelerators = devices,
                                .cpu_milli = demand->cpu_milli,
                                .memory_bytes = demand->memory_bytes,
                                .model = charged_model(cluster, task, node)};
}

struct task_charge cluster_charge(const struct cluster *cluster, int32_t task, int32_t node)
{
    int64_t memory =
        node < 0 ? cluster->min_device_memory : cluster->snapshot->nodes[node].device_memory_bytes;
    return charge_of(cluster, task, node, memory);
}

struct task_charge cluster_charge_at_least(const struct cluster *cluster, int32_t task)
{
    return charge_of(cluster, task, -1, cluster->max_device_memory);
}

/** Thousandths of a device of this size that are left. Most are free or taken as a whole. */
static int32_t room_milli_of(int64_t size, int64_t taken)
{
    int64_t room = size - taken;
    if (room <= 0) {
        return 0;
    }
    if (room == size) {
        return WEIR_SCHED_DEVICE;
    }
    if (room <= INT64_MAX / WEIR_SCHED_DEVICE) {
        return (int32_t)(room * WEIR_SCHED_DEVICE / size);
    }
    return (int32_t)((__int128)room * WEIR_SCHED_DEVICE / size);
}

static void node_count_device(struct node_state *node, const struct device_state *device, int sign)
{
    node->whole_now += device->now == 0 && device->future == 0 ? sign : 0;
    node->whole_future += device->future == 0 ? sign : 0;
    node->n_shared += device->future > 0 && device->future < node->device_size ? sign : 0;
    node->room_milli += sign * device->room_milli;
}

static void count_devices(struct cluster *cluster, int32_t task, int32_t at, const int32_t *spots,
                          int64_t now, int64_t future)
{
    int32_t n_waiting = cluster->tasks[task].phase == PHASE_PIPELINED ? (int32_t)future : 0;
    struct node_state *node = &cluster->nodes[at];
    int64_t units = cluster_device_units(cluster, task, at), room_milli = node->room_milli;
    int32_t n_devices =
        WEIR_MIN(cluster_demand(cluster, task)->n_devices, cluster->snapshot->nodes[at].n_devices);
    for (int32_t i = 0; i < n_devices; i++) {
        struct device_state *device = &cluster->devices[node->first_device + spots[i]];
        if (cluster->is_building) { /* Then all are counted at once. */
            device->now += now * units;
            device->future += future * units;
            device->waiting += n_waiting * units;
            device->n_waiting += n_waiting;
            continue;
        }
        node_count_device(node, device, -1);
        device->now += now * units;
        device->future += future * units;
        device->waiting += n_waiting * units;
        device->room_milli = room_milli_of(node->device_size, device->future);
        device->n_waiting += n_waiting;
        node_count_device(node, device, 1);
    }
    cluster->room_milli += node->is_open ? node->room_milli - room_milli : 0;
}

void cluster_count_devices(struct cluster *cluster, int32_t at)
{
    struct node_state *node = &cluster->nodes[at];
    node->whole_now = node->whole_future = node->n_shared = 0;
    cluster->room_milli -= node->is_open ? node->room_milli : 0;
    node->room_milli = 0;
    for (int32_t d = 0; d < cluster->snapshot->nodes[at].n_devices; d++) {
        struct device_state *device = &cluster->devices[node->first_device + d];
        device->room_milli = room_milli_of(node->device_size, device->future);
        node_count_device(node, device, 1);
    }
    cluster->room_milli += node->is_open ? node->room_milli : 0;
}

static void count_extras(struct cluster *cluster, const struct task_state *state, int32_t at,
                         int64_t now, int64_t future)
{
    int32_t first = cluster->nodes[at].first_extra;
    int32_t n = cluster->snapshot->nodes[at].n_extras;
    for (int32_t i = 0; i < state->n_extras; i++) {
        const struct extra_want *want = &cluster->wants[state->first_extra + i];
        for (int32_t j = first; j < first + n; j++) {
            if (cluster->extras[j].name == want->name) {
                cluster->extras[j].now += now * want->count;
                cluster->extras[j].future += future * want->count;
            }
        }
    }
}

/** A task over several zones takes an equal part of each. */
static void count_zones(struct cluster *cluster, int32_t task, int32_t at, uint32_t mask,
                        int64_t now, int64_t future)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    int32_t n = __builtin_popcount(mask);
    for (int32_t i = 0; mask != 0; i++, mask >>= 1) {
        if ((mask & 1) != 0) {
            struct zone_state *zone = &cluster->zones[cluster->nodes[at].first_zone + i];
            int64_t cpu = (demand->cpu_milli + n - 1) / n,
                    memory = (demand->memory_bytes + n - 1) / n;
            zone->cpu_now += now * cpu;
            zone->cpu_future += future * cpu;
            zone->memory_now += now * memory;
            zone->memory_future += future * memory;
        }
    }
}

/** Add (1) or take away (-1) what a task takes of a node. */
static void count_at(struct cluster *cluster, int32_t task, int32_t at, const int32_t *spots,
                     int64_t now, int64_t future)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    struct node_state *node = &cluster->nodes[at];
    node->cpu_now += now * demand->cpu_milli;
    node->cpu_future += future * demand->cpu_milli;
    node->memory_now += now * demand->memory_bytes;
    node->memory_future += future * demand->memory_bytes;
    node->tasks_now += (int32_t)now;
    node->tasks_future += (int32_t)future;
    if (demand->n_devices > 0) {
        count_devices(cluster, task, at, spots, now, future);
    }
    if (cluster->tasks[task].n_extras > 0) {
        count_extras(cluster, &cluster->tasks[task], at, now, future);
    }
}

void cluster_index_node(struct cluster *cluster, int32_t at)
{
    if (cluster->fgd != NULL) {
        fgd_index_note(cluster->fgd, at);
    }
    if (!cluster->is_unindexed[at]) {
        cluster->is_unindexed[at] = true;
        cluster->unindexed[cluster->n_unindexed++] = at;
    }
}

/** A share of the whole, for an order: equal shares of different wholes are equal. */
static int64_t part_of(int64_t amount, int64_t whole)
{
    return whole > 0 ? (int64_t)((__int128)amount * PART_UNITS / whole) : 0;
}

/** Who packs looks for the fewest whole devices left, and only then at what is left of others. */
static int64_t key_by_room(const struct cluster *cluster, int32_t at)
{
    const struct node_state *node = &cluster->nodes[at];
    int64_t all = (int64_t)cluster->snapshot->nodes[at].n_devices * WEIR_SCHED_DEVICE;
    return cluster->profile->placement[0] == 's'
               ? PART_UNITS - part_of(node->room_milli, all)
               : node->whole_future * CLUSTER_KEY_WHOLE_DEVICE + node->room_milli;
}

/** Whether the node has devices of any kind, as a whole or in parts. */
static bool has_devices(const struct weir_sched_node *node)
{
    bool has_some = node->n_devices > 0;
    for (int32_t i = 0; i < node->n_extras && !has_some; i++) {
        has_some = node->extras[i].count > 0 && node->extras[i].device_milli > 0;
    }
    return has_some;
}

static int64_t key_by_cpu(const struct cluster *cluster, int32_t at)
{
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    int64_t room = WEIR_MAX(given->cpu_milli - cluster->nodes[at].cpu_future, 0);
    int64_t key = cluster->profile->placement_cpu[0] == 's'
                      ? PART_UNITS - part_of(room, given->cpu_milli)
                      : room;
    return key + (has_devices(given) ? CLUSTER_KEY_WITH_DEVICES : 0);
}

static void index_node(struct cluster *cluster, int32_t at)
{
    const struct node_state *node = &cluster->nodes[at];
    if (!node->is_open) {
        return;
    }
    if (cluster->snapshot->nodes[at].n_devices > 0) {
        int64_t key = key_by_room(cluster, at);
        node_index_set(&cluster->indices.by_room, at, key);
        if (node->n_shared > 0) {
            node_index_set(&cluster->indices.by_shared, at, key);
        } else {
            node_index_clear(&cluster->indices.by_shared, at);
        }
    }
    node_index_set(&cluster->indices.by_cpu, at, key_by_cpu(cluster, at));
}

int64_t cluster_least_key(const struct cluster *cluster, const struct weir_sched_demand *demand)
{
    const struct weir_sched_profile *profile = cluster->profile;
    if (demand->n_devices == 0) {
        return profile->placement_cpu[0] == 's' ? 0 : demand->cpu_milli;
    }
    if (profile->placement[0] == 's') {
        return 0;
    }
    return demand->device_milli == WEIR_SCHED_DEVICE
               ? demand->n_devices * CLUSTER_KEY_WHOLE_DEVICE
               : (int64_t)demand->n_devices * WEIR_MAX(demand->device_milli, 1);
}

const struct cluster_indices *cluster_indices(struct cluster *cluster)
{
    for (int32_t i = 0; i < cluster->n_unindexed; i++) {
        cluster->is_unindexed[cluster->unindexed[i]] = false;
        index_node(cluster, cluster->unindexed[i]);
    }
    cluster->n_unindexed = 0;
    return &cluster->indices;
}

static void count_queues(struct cluster *cluster, const struct task_state *state, int32_t task,
                         int sign)
{
    struct task_charge charge = cluster_charge(cluster, task, state->target);
    int32_t queue = cluster->jobs[state->job].queue;
    cluster->user_held[cluster->jobs[state->job].user] += sign * charge.accelerators;
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        struct queue_state *of = &cluster->queues[queue];
        amount_count(&of->allocated, &charge, sign);
        if (state->is_fixed) {
            amount_count(&of->non_preemptible, &charge, sign);
        }
    }
}

static void count_groups(struct cluster *cluster, const struct task_state *state, int sign)
{
    for (int32_t g = state->group; g >= 0; g = cluster->groups[g].parent) {
        struct group_state *group = &cluster->groups[g];
        switch ((enum task_phase)state->phase) {
        case PHASE_RUNNING:
        case PHASE_BOUND:
            group->n_alive += sign;
            break;
        case PHASE_PIPELINED:
            group->n_pipelined += sign;
            break;
        case PHASE_PENDING:
            group->n_pending += sign;
            break;
        case PHASE_RELEASING:
        case PHASE_STUCK:
            group->n_releasing += sign;
            break;
        case PHASE_HELD:
        case PHASE_DONE:
        case PHASE_FAILED:
            break;
        }
    }
}

void cluster_count_task(struct cluster *cluster, int32_t task, int sign)
{
    const struct task_state *state = &cluster->tasks[task];
    const int32_t *held = cluster->held_devices + state->first_spot;
    const int32_t *target = cluster->target_devices + state->first_spot;
    bool is_at_home = state->phase == PHASE_RUNNING || state->phase == PHASE_BOUND;
    if (state->phase == PHASE_STUCK) {
        count_at(cluster, task, state->held, held, sign, sign);
        count_zones(cluster, task, state->held, state->held_zones, sign, sign);
    } else if (is_at_home) {
        count_at(cluster, task, state->target, target, sign, sign);
        count_zones(cluster, task, state->target, state->zones, sign, sign);
    } else {
        if (state->held >= 0) {
            count_at(cluster, task, state->held, held, sign, 0);
            count_zones(cluster, task, state->held, state->held_zones, sign, 0);
        }
        if (state->target >= 0) {
            count_at(cluster, task, state->target, target, 0, sign);
            count_zones(cluster, task, state->target, state->zones, 0, sign);
        }
    }
    if (state->target >= 0) {
        count_queues(cluster, state, task, sign);
    }
    count_groups(cluster, state, sign);
}

static void index_nodes_of(struct cluster *cluster, const struct task_state *state)
{
    if (state->held >= 0) {
        cluster_index_node(cluster, state->held);
    }
    if (state->target >= 0 && state->target != state->held) {
        cluster_index_node(cluster, state->target);
    }
}

static bool grow(void **array, size_t *cap, size_t needed, size_t size)
{
    if (needed <= *cap) {
        return true;
    }
    size_t new_cap = WEIR_MAX(needed, *cap * 2 + 256);
    void *grown = realloc(*array, new_cap * size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *cap = new_cap;
    return true;
}

/** Remember a task as it is. Without memory the log is cut short and `status` says so. */
static void log_task(struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    size_t n_spots = 2 * (size_t)cluster_demand(cluster, task)->n_devices;
    if (!grow((void **)&cluster->log, &cluster->log_cap, cluster->n_log + 1,
              sizeof *cluster->log) ||
        !grow((void **)&cluster->undo_devices, &cluster->undo_devices_cap,
              cluster->n_undo_devices + n_spots, sizeof *cluster->undo_devices)) {
        cluster->status = WEIR_ERR_NOMEM;
        return;
    }
    cluster->log[cluster->n_log++] = (struct undo){
        .task = task,
        .held = state->held,
        .target = state->target,
        .by_job = state->by_job,
        .held_zones = state->held_zones,
        .zones = state->zones,
        .first_device = (int32_t)cluster->n_undo_devices,
        .phase = state->phase,
        .reason = state->reason,
        .is_fixed = state->is_fixed,
    };
    if (n_spots > 0) {
        int32_t *saved = cluster->undo_devices + cluster->n_undo_devices;
        memcpy(saved, cluster->held_devices + state->first_spot, n_spots / 2 * sizeof *saved);
        memcpy(saved + n_spots / 2, cluster->target_devices + state->first_spot,
               n_spots / 2 * sizeof *saved);
        cluster->n_undo_devices += n_spots;
    }
}

/** Begin and end a change of a task: in between it counts nowhere. */
static struct task_state *change_begin(struct cluster *cluster, int32_t task)
{
    log_task(cluster, task);
    cluster_count_task(cluster, task, -1);
    return &cluster->tasks[task];
}

static void change_end(struct cluster *cluster, int32_t task, int32_t old_target)
{
    cluster_count_task(cluster, task, 1);
    if (old_target >= 0 && old_target != cluster->tasks[task].target) {
        cluster_index_node(cluster, old_target);
    }
    index_nodes_of(cluster, &cluster->tasks[task]);
}

size_t cluster_checkpoint(const struct cluster *cluster)
{
    return cluster->n_log;
}

void cluster_rollback(struct cluster *cluster, size_t checkpoint)
{
    while (cluster->n_log > checkpoint) {
        const struct undo *undo = &cluster->log[--cluster->n_log];
        struct task_state *state = &cluster->tasks[undo->task];
        int32_t old_target = state->target, old_held = state->held;
        cluster_count_task(cluster, undo->task, -1);
        state->held = undo->held;
        state->target = undo->target;
        state->by_job = undo->by_job;
        state->held_zones = undo->held_zones;
        state->zones = undo->zones;
        state->phase = undo->phase;
        state->reason = undo->reason;
        state->is_fixed = undo->is_fixed;
        size_t n_devices = (size_t)cluster_demand(cluster, undo->task)->n_devices;
        if (n_devices > 0) {
            const int32_t *saved = cluster->undo_devices + undo->first_device;
            memcpy(cluster->held_devices + state->first_spot, saved, n_devices * sizeof *saved);
            memcpy(cluster->target_devices + state->first_spot, saved + n_devices,
                   n_devices * sizeof *saved);
        }
        cluster->n_undo_devices = (size_t)undo->first_device;
        change_end(cluster, undo->task, old_target);
        if (old_held >= 0 && old_held != state->held) {
            cluster_index_node(cluster, old_held);
        }
    }
}

void cluster_commit(struct cluster *cluster)
{
    cluster->n_commits += cluster->n_log > 0;
    for (size_t i = 0; i < cluster->n_log; i++) {
        const struct task_state *task = &cluster->tasks[cluster->log[i].task];
        cluster->changed[task->job] = cluster->n_commits;
        cluster->has_evicted = cluster->has_evicted || task->phase == PHASE_RELEASING;
    }
    if (cluster->fgd != NULL && cluster->n_log > 0) {
        fgd_index_commit(cluster->fgd, cluster->n_log);
    }
    cluster->n_log = 0;
    cluster->n_undo_devices = 0;
}

bool cluster_is_fixed(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    const struct group_state *group = &cluster->groups[state->group];
    switch ((enum weir_sched_preemptibility)cluster->jobs[state->job].preemptibility) {
    case WEIR_SCHED_NON_PREEMPTIBLE:
        return true;
    case WEIR_SCHED_SEMI_PREEMPTIBLE:
        return group->n_alive + group->n_pipelined < group->min_member;
    case WEIR_SCHED_PREEMPTIBLE:
        break;
    }
    return false;
}

void cluster_place(struct cluster *cluster, int32_t task, enum task_phase phase, int32_t node,
                   const int32_t *devices, uint32_t zones)
{
    bool is_fixed = cluster_is_fixed(cluster, task);
    struct task_state *state = change_begin(cluster, task);
    size_t n_devices = (size_t)cluster_demand(cluster, task)->n_devices;
    state->target = node;
    state->phase = (uint8_t)phase;
    state->is_fixed = is_fixed;
    state->zones = zones;
    if (n_devices > 0) {
        memcpy(cluster->target_devices + state->first_spot, devices, n_devices * sizeof *devices);
    }
    if (phase == PHASE_BOUND) {
        state->held = node;
        state->held_zones = zones;
        if (n_devices > 0) {
            memcpy(cluster->held_devices + state->first_spot, devices, n_devices * sizeof *devices);
        }
    }
    cluster->n_decisions++;
    change_end(cluster, task, -1);
}

void cluster_evict(struct cluster *cluster, int32_t task, enum weir_sched_evict_reason reason,
                   int32_t by_job)
{
    struct task_state *state = change_begin(cluster, task);
    int32_t old_target = state->target;
    if (state->phase == PHASE_BOUND || (state->phase == PHASE_PIPELINED && state->held < 0)) {
        state->phase = PHASE_PENDING;
        state->held = -1;
    } else {
        state->phase = PHASE_RELEASING;
        state->reason = (uint8_t)reason;
    }
    state->by_job = by_job;
    state->target = -1;
    cluster->n_freed++;
    change_end(cluster, task, old_target);
    if (old_target >= 0) {
        cluster_index_node(cluster, old_target);
    }
}

void cluster_unevict(struct cluster *cluster, int32_t task)
{
    bool is_fixed = cluster_is_fixed(cluster, task);
    struct task_state *state = change_begin(cluster, task);
    size_t n_devices = (size_t)cluster_demand(cluster, task)->n_devices;
    state->phase = PHASE_RUNNING;
    state->target = state->held;
    state->zones = state->held_zones;
    state->reason = WEIR_SCHED_EVICT_NONE;
    state->by_job = WEIR_SCHED_NONE;
    state->is_fixed = is_fixed;
    if (n_devices > 0) {
        memcpy(cluster->target_devices + state->first_spot,
               cluster->held_devices + state->first_spot, n_devices * sizeof(int32_t));
    }
    change_end(cluster, task, -1);
}

void cluster_defer(struct cluster *cluster, int32_t task)
{
    struct task_state *state = change_begin(cluster, task);
    state->phase = PHASE_PIPELINED;
    state->held = -1;
    change_end(cluster, task, -1);
    cluster_index_node(cluster, state->target);
}

void cluster_move(struct cluster *cluster, int32_t task, const int32_t *devices)
{
    struct task_state *state = change_begin(cluster, task);
    memcpy(cluster->target_devices + state->first_spot, devices,
           (size_t)cluster_demand(cluster, task)->n_devices * sizeof *devices);
    change_end(cluster, task, -1);
}

void cluster_bind(struct cluster *cluster, int32_t task)
{
    struct task_state *state = change_begin(cluster, task);
    state->phase = PHASE_BOUND;
    state->held = state->target;
    state->held_zones = state->zones;
    memcpy(cluster->held_devices + state->first_spot, cluster->target_devices + state->first_spot,
           (size_t)cluster_demand(cluster, task)->n_devices * sizeof(int32_t));
    change_end(cluster, task, -1);
}

/** Keep apart what of a node is only held. */
static void count_held(struct cluster *cluster, int32_t task, int32_t at, const int32_t *spots,
                       int sign)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    struct node_held *held = &cluster->nodes_held[at];
    int64_t *units_held = cluster->units_held + cluster->nodes[at].first_device;
    int64_t units = cluster_device_units(cluster, task, at);
    held->cpu += sign * demand->cpu_milli;
    held->memory += sign * demand->memory_bytes;
    held->tasks += sign;
    for (int32_t i = 0; i < WEIR_MIN(demand->n_devices, cluster->snapshot->nodes[at].n_devices);
         i++) {
        units_held[spots[i]] += sign * units;
    }
}

void cluster_hold(struct cluster *cluster, int32_t task, int32_t node, const int32_t *devices,
                  uint32_t zones, int sign)
{
    count_at(cluster, task, node, devices, 0, sign);
    count_zones(cluster, task, node, zones, 0, sign);
    count_held(cluster, task, node, devices, sign);
}

void cluster_suppose_gone(struct cluster *cluster, int32_t task, int sign)
{
    const struct task_state *state = &cluster->tasks[task];
    cluster_hold(cluster, task, state->target, cluster->target_devices + state->first_spot,
                 state->zones, -sign);
    count_queues(cluster, state, task, -sign);
}

void cluster_suppose_charged(struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount,
                             const struct weir_sched_amount *fixed, int sign)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        struct queue_state *of = &cluster->queues[queue];
        for (int r = 0; r < cluster->n_resources; r++) {
            of->allocated.of[r] += sign * amount->of[r];
            of->non_preemptible.of[r] += sign * fixed->of[r];
        }
    }
}
