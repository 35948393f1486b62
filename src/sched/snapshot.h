/**
 * What the scheduler looks at: nodes, queues, jobs and tasks as plain arrays. sched.h includes this
 * header and says the units, who owns a snapshot, and what it is for.
 */
#ifndef WEIR_SCHED_SNAPSHOT_H
#define WEIR_SCHED_SNAPSHOT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_SCHED_UNLIMITED  (-1)
#define WEIR_SCHED_NONE       (-1)
#define WEIR_SCHED_DEVICE     1000 /**< A whole device, in thousandths. */
#define WEIR_SCHED_AMOUNT_MAX ((int64_t)1 << 60)

/** The resources that queues divide: three, and the devices of each of weir_sched_models. */
enum weir_sched_resource {
    WEIR_SCHED_ACCELERATOR, /**< Thousandths of a device, whatever its model. */
    WEIR_SCHED_CPU,         /**< Milli-cores. */
    WEIR_SCHED_MEMORY,      /**< Bytes. */
    WEIR_SCHED_N_RESOURCES,
    WEIR_SCHED_FIRST_MODEL = WEIR_SCHED_N_RESOURCES, /**< Thousandths of a device of the first. */
    WEIR_SCHED_RESOURCES_MAX = 16,                   /**< So that an amount is two cache lines. */
};

/** Models that queues may have shares of. */
#define WEIR_SCHED_MODELS_MAX (WEIR_SCHED_RESOURCES_MAX - WEIR_SCHED_FIRST_MODEL)

/** An amount of each. Devices of a model count twice: as accelerators, and as the model's. */
struct weir_sched_amount {
    int64_t of[WEIR_SCHED_RESOURCES_MAX];
};

struct weir_sched_label {
    const char *key, *value;
};

/** Tasks that do not tolerate it are not placed on the node. */
struct weir_sched_taint {
    const char *key, *value;
};

/** An empty key tolerates every taint; a NULL value every value of the key. */
struct weir_sched_toleration {
    const char *key, *value;
};

/** Something countable of a name: a MIG profile ("nvidia.com/mig-1g.10gb"), a licence, a card. */
struct weir_sched_extra {
    const char *name;
    int64_t count;
    /** What one of them counts as, of a queue's accelerators; 0 = nothing. */
    int64_t device_milli;
};

struct weir_sched_numa_zone {
    int64_t cpu_milli;    /**< WEIR_SCHED_UNLIMITED: not divided by zone. */
    int64_t memory_bytes; /**< The same. */
    int32_t n_devices;    /**< The same. The node's devices belong to zones in order. */
};

enum weir_sched_numa_policy {
    WEIR_SCHED_NUMA_NONE,        /**< Zones do not matter. */
    WEIR_SCHED_NUMA_RESTRICTED,  /**< No more zones than the least that could hold the task. */
    WEIR_SCHED_NUMA_SINGLE,      /**< A task with numa_aligned lies in one zone. */
    WEIR_SCHED_NUMA_BEST_EFFORT, /**< In as few as can be had, but nobody is refused. */
};

struct weir_sched_node {
    const char *name;
    const char *model; /**< Of its devices, "A100-40GB"; NULL = unnamed. */
    int32_t n_devices;
    int32_t n_tasks_max;         /**< WEIR_SCHED_UNLIMITED. */
    int64_t device_memory_bytes; /**< Of each device; 0 = unknown: no request by memory fits. */
    /** What there is of each device, in thousandths: the rest is others', so that a request for whole devices does not fit.
     *  0 = all. */
    int32_t device_milli;
    int64_t cpu_milli, memory_bytes;
    const struct weir_sched_label *labels;
    int32_t n_labels;
    const struct weir_sched_taint *taints;
    int32_t n_taints;
    const struct weir_sched_extra *extras;
    int32_t n_extras;
    const struct weir_sched_numa_zone *zones;
    int32_t n_zones;
    enum weir_sched_numa_policy numa_policy;
    bool is_whole_only; /**< Its devices are not shared: a share of one does not fit. */
    bool is_cordoned;   /**< What runs stays, nothing new comes. */
    /** Maintenance: nothing is placed from the first to the second; 0, 0 = none. A job with a known
     *  run time (time_limit_ms, else expected_run_ms) that would reach into it is not placed
     *  either. */
    int64_t closed_from_ms, closed_until_ms;
};

/** What there is of each device of a node, in thousandths. */
static inline int64_t weir_sched_device_milli(const struct weir_sched_node *node)
{
    return node->device_milli > 0 ? node->device_milli : WEIR_SCHED_DEVICE;
}

struct weir_sched_share {
    int64_t quota;  /**< Guaranteed; WEIR_SCHED_UNLIMITED. */
    int64_t weight; /**< Of what is left over; 0 = nothing beyond the quota. Below 0 counts as 0. */
    int64_t limit;  /**< Never more; WEIR_SCHED_UNLIMITED. */
};

/**
 * A queue's share of the devices of one model ("H100": quota 8, limit 16), beside its share of all
 * devices.
 *
 * Every rule of shares holds for both. A task on a node of the model counts as accelerators and as
 * devices of the model, for its queue and all above it. It starts within the limits of both;
 * non-preemptible work starts within the quotas of both. What is left over of a model is divided
 * among the queues that ask for it. Work on a model within the queue's quota of it is not
 * reclaimed, whatever the queue has in all.
 *
 * The node that a task gets decides what it counts as (weir_sched_node.model). A task *must* run on
 * a model if no other nodes with devices have the labels and taints that it asks for. Then it
 * requests the model while it waits. A task that may run on several models requests none until it
 * runs; where its queue's share of one model is used up, it goes to another.
 *
 * A queue that names no share of a model is not bounded in it: {quota, limit:
 * WEIR_SCHED_UNLIMITED}. Then only its accelerators in all count, and within their quota it loses
 * none of that model for others. So a guarantee of a model is worth what the others' quotas leave
 * of it. A queue that may only borrow a model has a quota of 0 of it.
 */
struct weir_sched_model_share {
    const char *model; /**< As nodes name it. */
    struct weir_sched_share share;
};

/** Shares that hold on some days of the week, from one minute of the day to another. */
struct weir_sched_timed_quota {
    int32_t days;         /**< Bit 0 is Monday; the days on which it begins. */
    int32_t from_minute;  /**< 0…1440, UTC. */
    int32_t until_minute; /**< Not after from_minute: of the next day. */
    struct weir_sched_share shares[WEIR_SCHED_N_RESOURCES];
    const struct weir_sched_model_share *models; /**< Of others the queue's own hold. */
    int32_t n_models;
};

/** A queue's order of creation is its place in the array. */
struct weir_sched_queue {
    const char *name;
    int32_t parent; /**< Before it in the array; WEIR_SCHED_NONE: a root. Jobs only in leaves. */
    int32_t priority;
    struct weir_sched_share shares[WEIR_SCHED_N_RESOURCES];
    const struct weir_sched_model_share *models; /**< Each model once. */
    int32_t n_models;
    /** Decayed use in the window, in millionths of the cluster's capacity of the resource. Of
     * single models past use does not count. */
    int64_t usage_ppm[WEIR_SCHED_N_RESOURCES];
    int64_t preempt_min_run_ms; /**< -1: the parent's. */
    int64_t reclaim_min_run_ms; /**< -1: the parent's. */
    int64_t served_ms; /**< When a job of it last started or ended; 0 = not since anybody knows. */
    /** The first that holds replaces the shares. */
    const struct weir_sched_timed_quota *timed_quotas;
    int32_t n_timed_quotas;
};

/** A tree of node labels, the widest level first: {"zone", "rack"}. */
struct weir_sched_topology {
    const char *name;
    const char *const *levels; /**< Label keys. */
    int32_t n_levels;
};

/** What a task asks for. All that is stated adds up. */
struct weir_sched_demand {
    int64_t cpu_milli, memory_bytes;
    int32_t n_devices;                     /**< Different devices of one node. */
    int32_t device_milli;                  /**< Of each, 1…1000; 0 = by memory. */
    int64_t device_memory_bytes;           /**< Of each; 0 = by share. */
    const struct weir_sched_extra *extras; /**< By name; device_milli is the node's. */
    int32_t n_extras;
    bool numa_aligned; /**< Wants its CPUs, memory and devices in one place. */
};

enum weir_sched_task_state {
    WEIR_SCHED_PENDING,
    WEIR_SCHED_RUNNING,   /**< Or bound to a node and about to run. */
    WEIR_SCHED_RELEASING, /**< Told to end; holds what it has until it has. */
    WEIR_SCHED_STUCK,     /**< Told to end and does not: nothing is planned on its room. */
    WEIR_SCHED_PIPELINED, /**< An earlier plan nominated a placement for it. */
    WEIR_SCHED_GATED,     /**< Waits for something else than room; is not placed. */
    WEIR_SCHED_DONE,      /**< Ended well; its gang is not stale for lack of it. */
    WEIR_SCHED_FAILED,    /**< Ended otherwise. */
};

/** Whether a task in this state has a node. */
static inline bool weir_sched_task_has_node(enum weir_sched_task_state state)
{
    return state >= WEIR_SCHED_RUNNING && state <= WEIR_SCHED_PIPELINED;
}

/** The placement that an earlier plan nominated for a task that still has to leave another node. */
struct weir_sched_nomination {
    int32_t node;
    const int32_t *devices; /**< demand.n_devices of the node's. */
    uint32_t zones;         /**< NUMA zones of it, a bit each; 0: not known. */
};

/** Company that a task rather has near it, or rather not. */
struct weir_sched_wish {
    int32_t weight; /**< For each task that is meant; below 0: rather not. */
    /** For each node of the snapshot: nodes of one number are near each other; -1: near none. Below the number of nodes. */
    const int32_t *domains;
    const struct weir_sched_label *labels; /**< Tasks that have all of them are meant. */
    int32_t n_labels;
};

struct weir_sched_task {
    const char *name;
    enum weir_sched_task_state state;
    int32_t node;  /**< Of RUNNING, RELEASING, STUCK and PIPELINED. */
    int32_t group; /**< Index of a group of its job that is a leaf; 0 if the job has none. */
    int32_t order; /**< Within the group, higher first, and lost last. */
    /** Indices of its devices on its node, demand.n_devices of them; NULL: any that fit. */
    const int32_t *devices;
    uint32_t zones;  /**< NUMA zones of its node that it takes, a bit each; 0: not known. */
    bool is_leaving; /**< RUNNING with a checkpoint request: counts as if RELEASING. */
    const struct weir_sched_nomination *nomination; /**< Where it goes when it has left; NULL. */
    struct weir_sched_demand demand;
    /** Node must carry each of these; values NULL: the key alone. */
    const struct weir_sched_label *selector;
    int32_t n_selector;
    const struct weir_sched_toleration *tolerations;
    int32_t n_tolerations;
    const struct weir_sched_label *labels; /**< What affinities of others look at. */
    int32_t n_labels;
    /** Only where, in the same value of this node label, a task runs that has all of
     *  affinity_labels; or none, and then none that has them comes there either. NULL: does not
     *  matter. A task that has them itself may be the first of them. */
    const char *affinity_key, *anti_affinity_key;
    const struct weir_sched_label *affinity_labels;
    int32_t n_affinity_labels;
    /** Tasks of the same number rather lie on different nodes, where those start it as soon; 0:
     *  does not matter. */
    int32_t spread;
    /** The higher the sum of a node's score and what the wishes come to there, the rather it gets that node, where that starts it
     *  as soon, and is as good for its group. For each node of the snapshot; NULL: all are 0. */
    const int32_t *scores;
    const struct weir_sched_wish *wishes;
    int32_t n_wishes;
};

/**
 * One sub-group of a job. Groups form a tree, parents before children; the first is the root. A
 * leaf has tasks, of which min_member must run. Of an inner group's children min_member must be
 * satisfied (WEIR_SCHED_UNLIMITED: all).
 */
struct weir_sched_group {
    const char *name;
    int32_t parent; /**< Index among the job's groups; WEIR_SCHED_NONE for the first only. */
    int32_t min_member;
    int32_t topology;        /**< WEIR_SCHED_NONE: anywhere. */
    int32_t required_level;  /**< All in one domain of this level; WEIR_SCHED_NONE. */
    int32_t preferred_level; /**< Rather in one domain of this level; WEIR_SCHED_NONE. */
};

enum weir_sched_preemptibility {
    WEIR_SCHED_PREEMPTIBLE,
    WEIR_SCHED_NON_PREEMPTIBLE,  /**< Never evicted for others; stays within quota. */
    WEIR_SCHED_SEMI_PREEMPTIBLE, /**< The minimum is not preemptible, what is above it is. */
};

struct weir_sched_job {
    const char *name;
    const char *user; /**< NULL = unknown. */
    int32_t queue;
    int32_t priority;
    enum weir_sched_preemptibility preemptibility;
    int32_t first_task,
        n_tasks; /**< Its tasks are contiguous, and every task belongs to one job. */
    const struct weir_sched_group *groups;
    int32_t n_groups;   /**< 0: one group with min_member. */
    int32_t min_member; /**< Used if n_groups is 0; WEIR_SCHED_UNLIMITED: all tasks. */
    int64_t created_ms;
    int64_t queued_ms;  /**< Began to wait (again): the preemption delay counts from here. */
    int64_t started_ms; /**< Its minimum runs since; 0 = it does not. */
    int64_t preemption_delay_ms; /**< Causes no eviction for so long. */
    int64_t stale_since_ms;      /**< Below its minimum since; 0 = is not. */
    int64_t stale_grace_ms;  /**< Evicted after so long; -1 = never, INT64_MIN = the profile's. */
    int64_t time_limit_ms;   /**< Longest run; 0 = none. */
    int64_t expected_run_ms; /**< What is expected; 0 = unknown. */
    int64_t checkpoint_ms;   /**< When its last checkpoint was complete; 0 = none. */
    int64_t checkpoint_requested_ms; /**< The first checkpoint request to its tasks; 0 = none. */
    bool evict_acknowledged;         /**< The checkpoint that was requested is there. */
    bool can_checkpoint;             /**< Gets a checkpoint request before it is evicted. */
    int32_t utilisation_pct;         /**< Measured use of its devices; -1 = not measured. */
    int64_t idle_since_ms;           /**< Its use is low since, without a break; 0 = it is not. */
};

/**
 * Whole nodes that are reserved for one job, or for a queue and all below it, for a span of time.
 * What runs there when the span begins stays. Nothing else starts there in the span, nor before it
 * unless a known run time (time_limit_ms, else expected_run_ms) ends first.
 */
struct weir_sched_reservation {
    const char *name;
    int32_t queue, job; /**< The job alone if it is not WEIR_SCHED_NONE; both NONE: for nobody. */
    int64_t from_ms, until_ms;
    const int32_t *nodes;
    int32_t n_nodes;
};

struct weir_sched_snapshot {
    int64_t now_ms;
    const struct weir_sched_node *nodes;
    int32_t n_nodes;
    const struct weir_sched_queue *queues;
    int32_t n_queues;
    const struct weir_sched_job *jobs;
    int32_t n_jobs;
    const struct weir_sched_task *tasks;
    int32_t n_tasks;
    const struct weir_sched_topology *topologies;
    int32_t n_topologies;
    const struct weir_sched_reservation *reservations;
    int32_t n_reservations;
};

/**
 * The models of which queues have shares, in the order in which queues and their timed quotas first
 * name them. Model i is resource WEIR_SCHED_FIRST_MODEL + i of an amount.
 *
 * @param out  Texts of the snapshot.
 * @return How many. Models beyond WEIR_SCHED_MODELS_MAX are not counted; a snapshot that has more
 *         is refused.
 */
int32_t weir_sched_models(const struct weir_sched_snapshot *snapshot,
                          const char *out[WEIR_SCHED_MODELS_MAX]);

/** The first timed quota of a queue that holds at now_ms; NULL: the queue's own shares hold. */
const struct weir_sched_timed_quota *
weir_sched_timed_quota_now(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_queue *queue);

/**
 * Look for anything of which no plan could be made: an index outside its array, a negative amount,
 * two jobs that hold one task, a loop in a tree. weir_sched_plan does this first.
 *
 * @return INVALID, naming the object and what is wrong; LIMIT: more of something than is planned
 *         for.
 *
 * Cost: linear.
 */
weir_status weir_sched_snapshot_check(const struct weir_sched_snapshot *snapshot,
                                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
