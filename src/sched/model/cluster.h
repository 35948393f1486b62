/**
 * The state of a cycle: the snapshot with what the cycle has changed so far, and an undo log.
 *
 * Every change is a change of one task: of the node where it *is* (current) and of the node where
 * it *will be* (planned). A node counts both. *now* is what is taken while everything that leaves
 * is still there. *future* is what is taken when that has left and what is pipelined has come. A
 * bind needs room in both, a pipeline in the future only. Queues are charged for the future.
 *
 *     phase        current  planned
 *     PENDING         -        -
 *     RUNNING         n        n
 *     BOUND           n        n        bound in this cycle
 *     PIPELINED     - or o     n        o: it runs there and is evicted to move
 *     RELEASING       o        -
 *     STUCK           o        -        counts as if it stayed
 *
 * Lack of memory sets `status`. Then the state is good for nothing but cluster_fini.
 */
#ifndef WEIR_SCHED_CLUSTER_H
#define WEIR_SCHED_CLUSTER_H

#include "sched/model/node_index.h"
#include "sched/sched.h"

/** Nodes with devices come behind those without in by_cpu. */
#define CLUSTER_KEY_WITH_DEVICES ((int64_t)1 << 61)

/** What a device that is left as a whole counts in by_room. */
#define CLUSTER_KEY_WHOLE_DEVICE ((int64_t)1 << 32)

enum task_phase {
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_BOUND,
    PHASE_PIPELINED,
    PHASE_RELEASING,
    PHASE_STUCK,
    PHASE_GATED,
    PHASE_DONE,
    PHASE_FAILED,
};

struct task_state {
    int32_t current_node, planned_node; /**< Nodes; -1. */
    int32_t job, group;                 /**< Group: index into cluster.groups. */
    int32_t first_assigned; /**< Its n_devices devices in current_devices and planned_devices. */
    int32_t first_extra, n_extras;
    int32_t by_job; /**< For whom it was evicted. */
    int32_t shape;  /**< Equal for tasks that fit the same nodes. */
    uint8_t phase;
    uint8_t reason; /**< enum weir_sched_evict_reason. */
    bool is_fixed;  /**< Charged as non-preemptible. */
    uint32_t current_zones,
        zones; /**< NUMA zones of held and target, a bit each; 0 = not aligned. */
};

/** Something countable that a task wants, its name interned. */
struct extra_want {
    int32_t name;
    int64_t count;
};

struct extra_state {
    int32_t name;
    int64_t count, now, future, device_milli;
};

struct device_state {
    int64_t now, future; /**< In units of the node's device_size. */
    int64_t waiting;     /**< Of future what is pipelined. */
    int32_t n_waiting;   /**< Pipelined tasks on it: a task that joins them waits as well. */
    int32_t room_milli;  /**< Free in the future, in thousandths of it, rounded down. */
};

struct zone_state {
    int64_t cpu_now, cpu_future, memory_now, memory_future;
};

struct node_state {
    int64_t cpu_now, cpu_future, memory_now, memory_future;
    int32_t tasks_now, tasks_future;
    int32_t first_device;
    int32_t whole_now;    /**< Devices with nothing on them, now and in the future. */
    int32_t whole_future; /**< Devices with nothing on them in the future. */
    int32_t n_shared;     /**< Devices that are taken in part in the future. */
    int64_t device_size;  /**< Units of a device (fraction.h). */
    int64_t others_units; /**< What of each device is others': it counts as taken. */
    int64_t room_milli;   /**< Free in the future, over all devices. */
    int32_t first_extra, first_zone;
    int32_t model; /**< The resource that its devices are; -1: no queue has a share of it. */
    bool is_open;  /**< New work may come. */
};

/** What an aligned task is allocated of one NUMA zone. */
struct numa_allocation {
    int64_t cpu_milli, memory_bytes;
};

/**
 * What of a node's future is only held (cluster_hold). It is asked for rarely, so it is kept apart.
 */
struct node_hold {
    int64_t cpu, memory;
    int32_t tasks;
};

/** Counters of a job's sub-group; of an inner group over all below it. */
struct group_state {
    int32_t job, parent; /**< Parent: index into cluster.groups; -1. */
    int32_t min_member;
    int32_t first_child, next_sibling; /**< -1. */
    int32_t first_task, n_tasks;       /**< In cluster.task_order; leaves only. */
    int32_t n_alive;                   /**< RUNNING, BOUND. */
    int32_t n_pipelined, n_pending, n_releasing;
    int32_t topology, required_level, preferred_level;
};

struct job_state {
    int32_t first_group; /**< The root; its counters are the job's. */
    int32_t n_groups;
    int32_t queue;
    int32_t user; /**< Index into cluster.user_usage; 0 if users do not matter. */
    int32_t wait; /**< Index into cluster.waits; -1: nothing of it waits. */
    int32_t first_task, n_tasks;
    int32_t priority;
    uint8_t preemptibility; /**< enum weir_sched_preemptibility. */
};

struct queue_state {
    struct weir_sched_share shares[WEIR_SCHED_RESOURCES_MAX]; /**< Those that hold now. */
    struct weir_sched_amount allocated, non_preemptible, requested, fair_share;
    int32_t first_child, next_sibling;
    int32_t depth;
    int32_t bounds_model; /**< The nearest from here upwards with a limit or quota of one; -1. */
};

/** What a task counts as. */
struct task_charge {
    int64_t accelerators, cpu_milli, memory_bytes;
    int32_t model; /**< The resource that the accelerators are as well; -1. */
};

/** Why tasks of a shape found no placement. Tasks of the same shape need not be explained again. */
struct shape_reason {
    bool is_known;
    enum weir_sched_wait_code code;
    enum weir_sched_resource resource;
    int64_t need, have;
    int32_t queue; /**< That has no more of a model. */
};

struct undo_entry {
    int32_t task;
    int32_t current_node, planned_node, by_job;
    int32_t first_device; /**< In undo_devices: held, then target. */
    int32_t first_numa;   /**< In undo_numa, the same; if it has zones. */
    uint32_t current_zones, zones;
    uint8_t phase, reason;
    bool is_fixed;
};

/**
 * Nodes with devices; those with a shared device among them; and all nodes by CPU, those without
 * devices first. Each is in the order in which the rules of placement prefer nodes: "binpack" the
 * ones with the least left, "spread" the ones of which the greatest part is left.
 */
struct cluster_indices {
    struct node_index by_room, by_shared, by_cpu;
};

/** What a cycle can undo: one entry for each change of a task since the last commit. */
struct undo_log {
    struct undo_entry *entries;
    size_t n, cap;
    int32_t *devices; /**< Of all entries. */
    size_t n_devices, devices_cap;
    struct numa_allocation *numa; /**< Of the entries with zones. */
    size_t n_numa, numa_cap;
};

/** What tasks of one shape have in common; arrays by shape. */
struct cluster_shapes {
    int32_t n;
    struct weir_sched_demand *demands;
    int64_t *failed; /**< changes.n_freed at which it found no placement; -1. */
    struct shape_reason *reasons;
    int32_t *models; /**< The resource of the model that it must run on; -1. */
};

/** The indices of nodes, and which nodes they do not show as they are now. */
struct cluster_index {
    struct cluster_indices by; /**< Read through cluster_indices, which brings them up to date. */
    int32_t *stale;            /**< Nodes that have changed since. */
    int32_t n_stale;
    bool *is_stale; /**< Per node. */
    uint8_t *parts; /**< Per node: 0, or one more than its model's number. */
};

/** The NUMA zones of all nodes, and what tasks are allocated of them. */
struct cluster_numa {
    struct zone_state *zones;
    int32_t max_zones;                         /**< Of any node; 0: no node states zones. */
    bool zones_have_devices;                   /**< Zones of a node by whose policy they matter. */
    struct numa_allocation *current, *planned; /**< Per task and zone; NULL if max_zones is 0. */
};

/** What the cluster has in all. */
struct cluster_capacity {
    struct weir_sched_amount total;
    int n_resources;
    const char *models[WEIR_SCHED_MODELS_MAX]; /**< Names of the resources from FIRST_MODEL on. */
    int64_t *extra_milli; /**< Per interned name: thousandths of a device that one counts as. */
    int32_t n_extra_names;
    int64_t room_milli; /**< Free in the future, over the devices of all open nodes. */
    int64_t min_device_size, max_device_size; /**< Of nodes that state memory; 0: none does. */
};

/** What depends on time. */
struct cluster_times {
    int64_t at_ms;                      /**< When tasks would start: now, or supposed. */
    bool has_closings;                  /**< Some node has a maintenance window. */
    bool enforces_limits;               /**< Jobs over their time limit get nothing more. */
    int32_t *reserved_first, *reserved; /**< Per node, and an end: its reservations; NULL: none. */
};

/** Counters of changes, by which others know whether what they worked out still holds. */
struct cluster_changes {
    int64_t n_freed;   /**< Events that may make room. */
    int64_t n_commits; /**< Commits that kept a change. */
    bool has_freed;    /**< A commit kept an eviction, or took back what the cycle gave. */
    int64_t *of_jobs;  /**< Per job: n_commits at its last change; 0: it has not changed. */
};

struct cluster {
    const struct weir_sched_snapshot *snapshot;
    const struct weir_sched_profile *profile;
    weir_status status;

    struct node_state *nodes;
    struct device_state *devices;
    struct node_hold *node_holds; /**< Per node. */
    int64_t *unit_holds;          /**< Per device: of its future what is only held. */
    bool *is_excluded;            /**< Per node: not to be used in the scenario at hand. */
    struct extra_state *extras;
    struct cluster_numa numa;
    struct cluster_capacity capacity;
    struct cluster_index index;
    struct fgd_index *fgd; /**< Told of every node that changes; NULL: the rule is not in use. */

    struct task_state *tasks;
    int32_t *current_devices, *planned_devices;
    struct extra_want *wants;
    struct cluster_shapes shapes;
    struct job_state *jobs;
    struct weir_sched_wait *waits; /**< Why jobs wait; cluster_wait. */
    struct group_state *groups;
    int32_t n_groups;
    int32_t *task_order; /**< Tasks of each leaf group, the most wanted first. */

    struct queue_state *queues;
    int32_t first_root;                /**< Queue without parent; the others by next_sibling. */
    int32_t *queue_first, *queue_jobs; /**< Per queue, and an end: its jobs, in order. */
    int64_t *user_usage; /**< Per user of a queue: thousandths of devices of what is placed. */

    struct cluster_times times;
    struct cluster_changes changes;
    struct undo_log undo;
    int64_t n_decisions;
    int32_t *spread, n_spread; /**< Tasks that are spread (weir_sched_task.spread). */
    int32_t *alike;            /**< Per node, while one of them is placed: of its like there. */
    int64_t *wished;           /**< Per node, while a task is placed: the sum of its wishes. */
    int32_t *company;          /**< Per domain of a wish, while it is counted. */
    bool has_anti_affinity;    /**< Some task keeps away from others. */
    bool has_nominations;      /**< Some placements were nominated by an earlier plan. */
    bool is_building;          /**< Tasks are counted on devices, but these not yet on nodes. */
};

weir_status cluster_init(struct cluster *cluster, const struct weir_sched_snapshot *snapshot,
                         const struct weir_sched_profile *profile) WEIR_MUST_CHECK;
void cluster_fini(struct cluster *cluster);

/**
 * Count a task everywhere (sign 1) or no longer (-1), and tell the indices that its node has
 * changed. For the building of the state and the functions below.
 */
void cluster_count_task(struct cluster *cluster, int32_t task, int sign);

/** The two halves of cluster_count_task: on its node and in its queues; and in its groups. */
void cluster_count_in_place(struct cluster *cluster, int32_t task, int sign);
void cluster_count_in_groups(struct cluster *cluster, int32_t task, int sign);
void cluster_index_node(struct cluster *cluster, int32_t node);

/** For cluster_init: read all tasks and count them where they are, in the order of nodes. NOMEM. */
weir_status cluster_put_tasks(struct cluster *cluster) WEIR_MUST_CHECK;

/**
 * Make a node's counters from its devices, after its tasks were counted on these
 * (cluster.is_building).
 */
void cluster_count_devices(struct cluster *cluster, int32_t node);

/**
 * The indices, up to date until the next change. Cost: O(log nodes) for each node that has changed
 * since the last call, however often it has.
 */
const struct cluster_indices *cluster_indices(struct cluster *cluster);

/**
 * The least key, in by_room or by_cpu, of a node with room for the demand. Where nodes have
 * devices, add CLUSTER_KEY_WITH_DEVICES in by_cpu.
 */
int64_t cluster_least_key(const struct cluster *cluster, const struct weir_sched_demand *demand);

/** Why a job that has something to place waits. */
static inline struct weir_sched_wait *cluster_wait(struct cluster *cluster, int32_t job)
{
    return &cluster->waits[cluster->jobs[job].wait];
}

/** Whether placing the task now would count as non-preemptible. */
bool cluster_is_fixed(const struct cluster *cluster, int32_t task);

/** A point to come back to: cluster_rollback undoes everything after it. */
size_t cluster_checkpoint(const struct cluster *cluster);
void cluster_rollback(struct cluster *cluster, size_t checkpoint);

/** Keep everything so far. There is no way back behind it. */
void cluster_commit(struct cluster *cluster);

/**
 * Bind or pipeline a PENDING task, or pipeline a RELEASING one. Node, devices and zones were found
 * to fit (fits.h).
 */
void cluster_place(struct cluster *cluster, int32_t task, enum task_phase phase, int32_t node,
                   const int32_t *devices, uint32_t zones);

/** Make a RUNNING task RELEASING; make a BOUND or PIPELINED one what it was before. */
void cluster_evict(struct cluster *cluster, int32_t task, enum weir_sched_evict_reason reason,
                   int32_t by_job);

/** Take an eviction of this cycle back. The task's room must be free in the future. */
void cluster_unevict(struct cluster *cluster, int32_t task);

/** Let a PIPELINED task wait for other devices of its node. */
void cluster_move(struct cluster *cluster, int32_t task, const int32_t *devices);

/** Make a PIPELINED task that has no current node BOUND on its planned one. */
void cluster_bind(struct cluster *cluster, int32_t task);

/** Make a task that was BOUND in this cycle PIPELINED on the same node. */
void cluster_defer(struct cluster *cluster, int32_t task);

/**
 * Count a room as taken in the future (sign 1) by a task that is not placed there, or no longer
 * (-1), an equal part of each zone. A rollback does not undo it: the caller that holds also lets
 * go. The caller calls cluster_index_node before anything is placed.
 */
void cluster_hold(struct cluster *cluster, int32_t task, int32_t node, const int32_t *devices,
                  uint32_t zones, int sign);

/**
 * Count a task as gone from its planned node and from its queues (sign 1), or as there again (-1).
 * A rollback does not undo it, and the caller indexes the node.
 */
void cluster_suppose_gone(struct cluster *cluster, int32_t task, int sign);

/**
 * Count an amount more (sign 1) or less (-1) for a queue and all above it. A rollback does not undo
 * it.
 */
void cluster_suppose_charged(struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount,
                             const struct weir_sched_amount *fixed, int sign);

/** Whether the task asks for memory of devices, and so counts more on smaller ones. */
static inline bool demand_is_by_memory(const struct weir_sched_demand *demand)
{
    return demand->n_devices > 0 && demand->device_milli == 0;
}

/**
 * What a task counts as, on a node, for its queues' shares. Node -1: on the node with the smallest
 * devices, and of the model on which the task is or must run.
 */
struct task_charge cluster_charge(const struct cluster *cluster, int32_t task, int32_t node);

/**
 * The same on the node with the largest devices: a task whose queues may not take so much may be
 * placed nowhere.
 */
struct task_charge cluster_charge_at_least(const struct cluster *cluster, int32_t task);

/** Units of one device that the task takes on this node; more than device_size if it cannot. */
int64_t cluster_device_units(const struct cluster *cluster, int32_t task, int32_t node);

/**
 * What the task is allocated of the zones of its current node; cluster_planned_numa: of its planned
 * node. NULL if zones matter nowhere.
 */
static inline struct numa_allocation *cluster_current_numa(const struct cluster *cluster,
                                                           int32_t task)
{
    return cluster->numa.max_zones == 0
               ? NULL
               : cluster->numa.current + (size_t)task * cluster->numa.max_zones;
}

static inline struct numa_allocation *cluster_planned_numa(const struct cluster *cluster,
                                                           int32_t task)
{
    return cluster->numa.max_zones == 0
               ? NULL
               : cluster->numa.planned + (size_t)task * cluster->numa.max_zones;
}

static inline const struct weir_sched_demand *cluster_demand(const struct cluster *cluster,
                                                             int32_t task)
{
    return &cluster->shapes.demands[cluster->tasks[task].shape];
}

/**
 * Go up from two queues to the ancestors-or-selves that are siblings. They are equal if one queue
 * is the other or above it.
 */
static inline void cluster_find_siblings(const struct cluster *cluster, int32_t *left,
                                         int32_t *right)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    while (cluster->queues[*left].depth > cluster->queues[*right].depth) {
        *left = queues[*left].parent;
    }
    while (cluster->queues[*right].depth > cluster->queues[*left].depth) {
        *right = queues[*right].parent;
    }
    while (*left != *right && queues[*left].parent != queues[*right].parent) {
        *left = queues[*left].parent;
        *right = queues[*right].parent;
    }
}

/** Whether a group is `ancestor` or below it. */
static inline bool group_is_below(const struct cluster *cluster, int32_t group, int32_t ancestor)
{
    while (group >= 0 && group != ancestor) {
        group = cluster->groups[group].parent;
    }
    return group >= 0;
}

/** The node from which a victim is taken: where it runs, or waits to run. */
static inline int32_t cluster_seat(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    return state->phase == PHASE_PIPELINED ? state->planned_node : state->current_node;
}

static inline void amount_count(struct weir_sched_amount *sum, const struct task_charge *charge,
                                int sign)
{
    sum->of[WEIR_SCHED_ACCELERATOR] += sign * charge->accelerators;
    sum->of[WEIR_SCHED_CPU] += sign * charge->cpu_milli;
    sum->of[WEIR_SCHED_MEMORY] += sign * charge->memory_bytes;
    if (charge->model >= 0) {
        sum->of[charge->model] += sign * charge->accelerators;
    }
}

static inline void amount_add(struct weir_sched_amount *sum, const struct weir_sched_amount *what)
{
    for (int r = 0; r < WEIR_SCHED_RESOURCES_MAX; r++) {
        sum->of[r] += what->of[r];
    }
}

static inline void amount_subtract(struct weir_sched_amount *sum,
                                   const struct weir_sched_amount *what)
{
    for (int r = 0; r < WEIR_SCHED_RESOURCES_MAX; r++) {
        sum->of[r] -= what->of[r];
    }
}

#endif
