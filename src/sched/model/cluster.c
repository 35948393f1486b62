#include "sched/model/cluster.h"

#include "base/macros.h"
#include "sched/model/fraction.h"
#include "sched/place/zones.h"

int64_t cluster_device_units(const struct cluster *cluster, int32_t task, int32_t node)
{
    return fraction_units(cluster_demand(cluster, task), cluster->nodes[node].device_size,
                          cluster->snapshot->nodes[node].device_memory_bytes > 0);
}

/** The model that a task's devices count as; -1: none that queues have shares of, or not known yet.
 */
static int32_t charged_model(const struct cluster *cluster, int32_t task, int32_t node)
{
    if (cluster->capacity.n_resources == WEIR_SCHED_FIRST_MODEL) {
        return -1;
    }
    node = node < 0 ? cluster->tasks[task].planned_node : node;
    return node >= 0 ? cluster->nodes[node].model
                     : cluster->shapes.models[cluster->tasks[task].shape];
}

/** `size`: of the devices; 0: unknown. */
static struct task_charge charge_of(const struct cluster *cluster, int32_t task, int32_t node,
                                    int64_t size)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct task_state *state = &cluster->tasks[task];
    int64_t devices = fraction_charge(demand, size);
    for (int32_t i = 0; i < state->n_extras; i++) {
        const struct extra_want *want = &cluster->wants[state->first_extra + i];
        devices += want->count * cluster->capacity.extra_milli[want->name];
    }
    return (struct task_charge){.accelerators = devices,
                                .cpu_milli = demand->cpu_milli,
                                .memory_bytes = demand->memory_bytes,
                                .model = charged_model(cluster, task, node)};
}

struct task_charge cluster_charge(const struct cluster *cluster, int32_t task, int32_t node)
{
    int64_t size = cluster->capacity.min_device_size;
    if (node >= 0 && demand_is_by_memory(cluster_demand(cluster, task))) { /* Else it is not used,
                                                               and nodes are far apart. */
        bool is_known = cluster->snapshot->nodes[node].device_memory_bytes > 0;
        size = is_known ? cluster->nodes[node].device_size : 0;
    }
    return charge_of(cluster, task, node, size);
}

struct task_charge cluster_charge_at_least(const struct cluster *cluster, int32_t task)
{
    return charge_of(cluster, task, -1, cluster->capacity.max_device_size);
}

static void node_count_device(struct node_state *node, const struct device_state *device, int sign)
{
    node->whole_now += device->now == 0 && device->future == 0 ? sign : 0;
    node->whole_future += device->future == 0 ? sign : 0;
    node->n_shared += device->future > 0 && device->future < node->device_size ? sign : 0;
    node->room_milli += sign * device->room_milli;
}

static void count_devices(struct cluster *cluster, int32_t task, int32_t at,
                          const int32_t *assigned, int64_t now, int64_t future)
{
    int32_t n_waiting = cluster->tasks[task].phase == PHASE_PIPELINED ? (int32_t)future : 0;
    struct node_state *node = &cluster->nodes[at];
    int64_t units = cluster_device_units(cluster, task, at), room_milli = node->room_milli;
    int32_t n_devices =
        WEIR_MIN(cluster_demand(cluster, task)->n_devices, cluster->snapshot->nodes[at].n_devices);
    for (int32_t i = 0; i < n_devices; i++) {
        struct device_state *device = &cluster->devices[node->first_device + assigned[i]];
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
        device->room_milli = fraction_room(node->device_size, device->future);
        device->n_waiting += n_waiting;
        node_count_device(node, device, 1);
    }
    cluster->capacity.room_milli += node->is_open ? node->room_milli - room_milli : 0;
}

void cluster_count_devices(struct cluster *cluster, int32_t at)
{
    struct node_state *node = &cluster->nodes[at];
    node->whole_now = node->whole_future = node->n_shared = 0;
    cluster->capacity.room_milli -= node->is_open ? node->room_milli : 0;
    node->room_milli = 0;
    for (int32_t d = 0; d < cluster->snapshot->nodes[at].n_devices; d++) {
        struct device_state *device = &cluster->devices[node->first_device + d];
        device->room_milli = fraction_room(node->device_size, device->future);
        node_count_device(node, device, 1);
    }
    cluster->capacity.room_milli += node->is_open ? node->room_milli : 0;
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

/** Count what is drawn of zones, a bit each. */
static void count_zones(struct cluster *cluster, int32_t at, uint32_t mask,
                        const struct numa_allocation *numa, int64_t now, int64_t future)
{
    for (int32_t i = 0; mask != 0; i++, mask >>= 1) {
        if ((mask & 1) != 0) {
            struct zone_state *zone = &cluster->numa.zones[cluster->nodes[at].first_zone + i];
            zone->cpu_now += now * numa[i].cpu_milli;
            zone->cpu_future += future * numa[i].cpu_milli;
            zone->memory_now += now * numa[i].memory_bytes;
            zone->memory_future += future * numa[i].memory_bytes;
        }
    }
}

/** Add (1) or take away (-1) what a task takes of a node. */
static void count_at(struct cluster *cluster, int32_t task, int32_t at, const int32_t *assigned,
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
        count_devices(cluster, task, at, assigned, now, future);
    }
    if (cluster->tasks[task].n_extras > 0) {
        count_extras(cluster, &cluster->tasks[task], at, now, future);
    }
}

static void count_queues(struct cluster *cluster, const struct task_state *state, int32_t task,
                         int sign)
{
    struct task_charge charge = cluster_charge(cluster, task, state->planned_node);
    int32_t queue = cluster->jobs[state->job].queue;
    cluster->user_usage[cluster->jobs[state->job].user] += sign * charge.accelerators;
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        struct queue_state *of = &cluster->queues[queue];
        amount_count(&of->allocated, &charge, sign);
        if (state->is_fixed) {
            amount_count(&of->non_preemptible, &charge, sign);
        }
    }
}

void cluster_count_in_groups(struct cluster *cluster, int32_t task, int sign)
{
    const struct task_state *state = &cluster->tasks[task];
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
        case PHASE_GATED:
        case PHASE_DONE:
        case PHASE_FAILED:
            break;
        }
    }
}

void cluster_count_in_place(struct cluster *cluster, int32_t task, int sign)
{
    const struct task_state *state = &cluster->tasks[task];
    const int32_t *current_node = cluster->current_devices + state->first_assigned;
    const int32_t *planned_node = cluster->planned_devices + state->first_assigned;
    const struct numa_allocation *current_numa = cluster_current_numa(cluster, task);
    const struct numa_allocation *numa = cluster_planned_numa(cluster, task);
    bool is_at_home = state->phase == PHASE_RUNNING || state->phase == PHASE_BOUND;
    if (state->phase == PHASE_STUCK) {
        count_at(cluster, task, state->current_node, current_node, sign, sign);
        count_zones(cluster, state->current_node, state->current_zones, current_numa, sign, sign);
    } else if (is_at_home) {
        count_at(cluster, task, state->planned_node, planned_node, sign, sign);
        count_zones(cluster, state->planned_node, state->zones, numa, sign, sign);
    } else {
        if (state->current_node >= 0) {
            count_at(cluster, task, state->current_node, current_node, sign, 0);
            count_zones(cluster, state->current_node, state->current_zones, current_numa, sign, 0);
        }
        if (state->planned_node >= 0) {
            count_at(cluster, task, state->planned_node, planned_node, 0, sign);
            count_zones(cluster, state->planned_node, state->zones, numa, 0, sign);
        }
    }
    if (state->planned_node >= 0) {
        count_queues(cluster, state, task, sign);
    }
}

void cluster_count_task(struct cluster *cluster, int32_t task, int sign)
{
    cluster_count_in_place(cluster, task, sign);
    cluster_count_in_groups(cluster, task, sign);
}

/** Keep apart what of a node is only held. */
static void count_holds(struct cluster *cluster, int32_t task, int32_t at, const int32_t *assigned,
                        int sign)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    struct node_hold *holds = &cluster->node_holds[at];
    int64_t *unit_holds = cluster->unit_holds + cluster->nodes[at].first_device;
    int64_t units = cluster_device_units(cluster, task, at);
    holds->cpu += sign * demand->cpu_milli;
    holds->memory += sign * demand->memory_bytes;
    holds->tasks += sign;
    for (int32_t i = 0; i < WEIR_MIN(demand->n_devices, cluster->snapshot->nodes[at].n_devices);
         i++) {
        unit_holds[assigned[i]] += sign * units;
    }
}

static void hold(struct cluster *cluster, int32_t task, int32_t node, const int32_t *devices,
                 uint32_t zones, const struct numa_allocation *numa, int sign)
{
    count_at(cluster, task, node, devices, 0, sign);
    count_zones(cluster, node, zones, numa, 0, sign);
    count_holds(cluster, task, node, devices, sign);
}

void cluster_hold(struct cluster *cluster, int32_t task, int32_t node, const int32_t *devices,
                  uint32_t zones, int sign)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    struct numa_allocation parts[ZONES_MAX] = {{0}};
    int64_t n_zones = __builtin_popcount(zones);
    for (int32_t i = 0; n_zones > 0 && i < cluster->numa.max_zones; i++) {
        parts[i] =
            (struct numa_allocation){demand->cpu_milli / n_zones, demand->memory_bytes / n_zones};
    }
    hold(cluster, task, node, devices, zones, parts, sign);
}

void cluster_suppose_gone(struct cluster *cluster, int32_t task, int sign)
{
    const struct task_state *state = &cluster->tasks[task];
    hold(cluster, task, state->planned_node, cluster->planned_devices + state->first_assigned,
         state->zones, cluster_planned_numa(cluster, task), -sign);
    count_queues(cluster, state, task, -sign);
}

void cluster_suppose_charged(struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount,
                             const struct weir_sched_amount *fixed, int sign)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        struct queue_state *of = &cluster->queues[queue];
        for (int r = 0; r < cluster->capacity.n_resources; r++) {
            of->allocated.of[r] += sign * amount->of[r];
            of->non_preemptible.of[r] += sign * fixed->of[r];
        }
    }
}
