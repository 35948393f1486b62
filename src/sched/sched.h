/**
 * The scheduler: a pure function from a snapshot of a cluster to what should change in it.
 *
 * It answers who may run now, where, and who must make room. A *snapshot* says what there is: nodes
 * with devices, a tree of queues with shares, jobs made of tasks. A *profile* says by which rules.
 * A *plan* is the answer: bind this task to these devices, evict that one, and, for each job that
 * waits, the reason. The function reads nothing else and keeps nothing. The server, the simulator,
 * "what if" and the tests call the same one. The same input gives the same output: every quantity
 * is a fixed-point int64, and every order has a last tie-break.
 *
 *     struct weir_sched_profile profile;
 *     WEIR_TRY(weir_sched_profile_named("default", &profile, err));
 *     struct weir_sched_plan *plan;
 *     WEIR_TRY(weir_sched_plan(&snapshot, &profile, &plan, err));
 *     for (int32_t i = 0; i < plan->n_actions; i++) …
 *     weir_sched_plan_destroy(plan);
 *
 * A cycle runs the profile's actions in order on one state:
 *
 * - *timelimit* ends jobs that run longer than they may; *idle* takes idle devices back.
 * - *allocate* gives what is free, in the order of the queues' shares.
 * - *consolidation* moves preemptible work so that a waiting job fits.
 * - *reclaim* takes back, between queues, what exceeds a fair share.
 * - *preempt* makes room for higher priority inside a queue.
 * - *stalegangeviction* ends gangs that lost members.
 *
 * A task that is placed where an evicted task must leave first is *pipelined*. The next snapshots
 * say when the room is free. apply.h carries a plan out.
 *
 * Units: accelerators in thousandths of a device, CPU in milli-cores, memory in bytes, time in
 * milliseconds since 1970. -1 is unlimited where it says so. Indices are int32_t into the arrays of
 * the snapshot; -1 is none.
 *
 * Ownership: the caller owns all of a snapshot. It is only read during the call.
 *
 * Threads: all functions are re-entrant. Memory: WEIR_ERR_NOMEM leaves nothing behind.
 */
#ifndef WEIR_SCHED_SCHED_H
#define WEIR_SCHED_SCHED_H

#include "base/options.h"
#include "base/status.h"
#include "sched/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * The rules of a cycle. weir_sched_profile_options is their table: it fills them, so numbers are
 * int64_t and texts char *. Texts are static or belong to the caller.
 */
struct weir_sched_profile {
    char *actions;            /**< In order, separated by commas. */
    char *placement;          /**< Of tasks with devices on nodes: "binpack", "spread", "fgd". */
    char *placement_cpu;      /**< Of tasks without devices. */
    char *placement_gpu;      /**< Of fractional shares on a node's devices: "pack", "spread". */
    int64_t saturation_ppm;   /**< Reclaim's saturation multiplier, 1000000 = 1. */
    int64_t usage_weight_ppm; /**< k: how much past use costs; 0 = nothing. */
    int64_t consolidation_max_moves; /**< Tasks that a consolidation may move; -1 = any number. */
    int64_t search_max_scenarios; /**< After so many, or as much work, a job counts as not solvable,
                                       and an action leaves the rest to a later cycle. */
    int64_t stale_grace_ms;       /**< Of jobs that state none. */
    int64_t evict_grace_ms;       /**< Grace period of a checkpoint request; -1: none is made. */
    int64_t idle_pct;             /**< Devices used less than this are idle; 0: none is. */
    int64_t idle_after_ms;        /**< Taken back when idle for so long (action "idle"). */
    bool nominations;             /**< Nominated placements of an earlier plan stand. */
    bool least_eviction_cost;     /**< Of equal victims, evict what undoes the least work. */
    bool fair_users;      /**< Of equal jobs of a queue, the one whose user has less goes first. */
    bool guarantee_first; /**< What is guaranteed is given before what is lent. */
    int64_t backfill_depth;   /**< Waiting jobs, in order, for which room is held; 0: none. */
    int64_t forecast_depth;   /**< Further waiting jobs whose start is worked out. */
    int64_t reserve_after_ms; /**< The first job of a queue that was not served for longer has room
                                   held for it before the queues are compared; 0: none has. */
    int64_t ageing_bound_ms;  /**< A job that waits longer goes first in its queue; 0: none does. */
    bool timed_quotas;        /**< Shares follow the quotas stated for times of day and week. */
    bool move_victims; /**< Place elsewhere what reclaim and preempt evict, if there is room. */
    /** An action may take back what one before it in the cycle has pipelined. */
    bool retake_pipelined;
    bool over_share_in_all; /**< A queue is above its share only if it is so in every resource. */
};

/**
 * Fill *out with a profile by its name.
 *
 * @param name  "default", or "kai": the options that come nearest to KAI-Scheduler's decisions.
 * @return NOT_FOUND, naming the profiles there are. Texts of *out are static.
 */
weir_status weir_sched_profile_named(const char *name, struct weir_sched_profile *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The table of a profile's options, for flags, files and manuals. Its fallbacks are those of
 * "default". Static.
 */
const struct weir_option *weir_sched_profile_options(size_t *out_n);

/**
 * Check the values of a profile. weir_sched_plan does so first.
 *
 * @return INVALID, naming the option and what it may be.
 */
weir_status weir_sched_profile_check(const struct weir_sched_profile *profile,
                                     struct weir_error *err) WEIR_MUST_CHECK;

enum weir_sched_action_kind {
    WEIR_SCHED_BIND,     /**< Start the task there now. */
    WEIR_SCHED_PIPELINE, /**< Nominate the placement: it is bound when what leaves has left. */
    WEIR_SCHED_EVICT,    /**< Tell the task to end. */
    /** Request a checkpoint of the task. An EVICT follows when the job has acknowledged it, or
     *  evict_grace_ms later. Until then the snapshots say is_leaving, and
     *  checkpoint_requested_ms of its job. */
    WEIR_SCHED_REQUEST_CHECKPOINT,
};

enum weir_sched_evict_reason {
    WEIR_SCHED_EVICT_NONE,
    WEIR_SCHED_EVICT_CONSOLIDATION, /**< To move: a PIPELINE of the same task follows. */
    WEIR_SCHED_EVICT_RECLAIM,       /**< Another queue's share. */
    WEIR_SCHED_EVICT_PREEMPT,       /**< Higher priority in its queue. */
    WEIR_SCHED_EVICT_STALE,         /**< Its gang is below its minimum for too long. */
    WEIR_SCHED_EVICT_AFTER_GRACE,   /**< Its checkpoint is there, or the grace period over. */
    WEIR_SCHED_EVICT_TIME_LIMIT,    /**< It runs for longer than its time limit. */
    WEIR_SCHED_EVICT_IDLE, /**< Its devices are idle for too long. The executor holds the job back
                                until a person wants it again. */
};

/** One step of a plan. */
struct weir_sched_action {
    enum weir_sched_action_kind kind;
    int32_t task;
    int32_t node;
    const int32_t *devices; /**< Of the node; NULL if n_devices is 0. */
    int32_t n_devices;
    uint32_t zones; /**< NUMA zones it takes, a bit each; 0 = they do not matter. */
    enum weir_sched_evict_reason reason;
    int32_t by_job; /**< EVICT, GRACE_REQUEST_CHECKPOINT: for which job; WEIR_SCHED_NONE. */
};

/** Why a job waits. `object`, `need` and `have` of struct weir_sched_wait are said beside each. */
enum weir_sched_wait_code {
    WEIR_SCHED_WAIT_NONE,
    WEIR_SCHED_WAIT_ROOM_COMING, /**< Pipelined. object: node of its first such task. A job that
                                      waits for anything else has no nomination left. */
    WEIR_SCHED_WAIT_QUEUE_LIMIT, /**< object: queue; need: with the job; have: limit. */
    WEIR_SCHED_WAIT_QUEUE_QUOTA, /**< Non-preemptible. object: queue; need, have: quota. */
    WEIR_SCHED_WAIT_GANG,        /**< need: tasks to start together; have: how many fit. */
    WEIR_SCHED_WAIT_NO_NODE,     /**< No node matches selector, taints, affinity. object: task. */
    WEIR_SCHED_WAIT_TOO_LARGE,   /**< No node is that big, even empty. need, have: of resource. */
    WEIR_SCHED_WAIT_FULL,        /**< need: of resource on one node; have: largest free. */
    WEIR_SCHED_WAIT_TOPOLOGY,    /**< No domain holds it. object: group; need, have: tasks. */
    WEIR_SCHED_WAIT_MEMBERS,     /**< Fewer tasks exist than its minimum. need, have: tasks. */
    WEIR_SCHED_WAIT_RESERVED,    /**< What is free is held for jobs before it. object: the first, or
                                      the job that took the room it had in this plan. */
    WEIR_SCHED_WAIT_ZONES,       /**< The NUMA zones of nodes that would do otherwise. object: task;
                                      have: 1 if some could hold it were they empty. */
    WEIR_SCHED_WAIT_CLOSING, /**< A node would do, but it is closed, or before the job would end.
                                      object: node; have: since or from when; need: 1 if others that
                                      would do are full. */
    WEIR_SCHED_WAIT_NODE_RESERVED, /**< A node would do, but it is reserved for others. As CLOSING. */
    WEIR_SCHED_N_WAIT_CODES,
};

#define WEIR_SCHED_TEXT_BYTES 320

/** Why one job waits. */
struct weir_sched_wait {
    int32_t job;
    enum weir_sched_wait_code code;
    enum weir_sched_resource resource; /**< FIRST_MODEL + i: devices of a model. */
    int64_t need, have;
    int32_t object; /**< Index as the code says; WEIR_SCHED_NONE. */
    /** If jobs end as expected (backfill.h), or when the window of a node ends that alone would do;
     *  0 = unknown. */
    int64_t expected_start_ms;
    int32_t after_job; /**< Then the job with whose end it starts; else WEIR_SCHED_NONE. */
    bool is_kept; /**< Its queue was not served for long: what gets free is kept for it first. */
    char text[WEIR_SCHED_TEXT_BYTES]; /**< A sentence for the person who waits. */
    int32_t why_bytes;                /**< Of text: why; what follows says when. */
};

/** The name of a code: "queue_limit" and so on; "unknown" outside the list. Static. */
const char *weir_sched_wait_name(enum weir_sched_wait_code code);

/** What a queue is entitled to in this cycle, and what it has after the plan. */
struct weir_sched_queue_share {
    struct weir_sched_amount fair_share, requested, allocated, allocated_non_preemptible;
};

/** What should change. It refers to nothing of the snapshot but by index. */
struct weir_sched_plan {
    struct weir_sched_action *actions; /**< An EVICT comes before what it makes room for. */
    int32_t n_actions;
    struct weir_sched_wait *waits; /**< One per job with pending tasks below its minimum, by job. */
    int32_t n_waits;
    struct weir_sched_queue_share *queues; /**< One per queue. */
    int64_t n_decisions;  /**< Places decided on, including those of scenarios thrown away. */
    int32_t *device_pool; /**< What actions' devices point into. */
};

/**
 * Plan one cycle.
 *
 * @param snapshot  Read during the call only.
 * @param plan      Out: the caller frees it with weir_sched_plan_destroy. Unchanged on error.
 * @return INVALID or UNSUPPORTED, as the checks of snapshot and profile say; NOMEM.
 *
 * Cost: memory is linear in nodes, devices, tasks and queues. A bind is O(log nodes) where labels,
 * and the queue's shares of models, do not rule out the best nodes. A job whose twin found no place
 * in the cycle costs O(1). Shares of models cost a look at the nodes for every distinct set of
 * selector and tolerations.
 */
weir_status weir_sched_plan(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_profile *profile, struct weir_sched_plan **plan,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Free a plan. NULL is accepted. */
void weir_sched_plan_destroy(struct weir_sched_plan *plan);

/** When a job that runs probably ends, as plans suppose it: what is expected, at most its limit; of one of which
 *  nothing is known, or that outlived what was expected, as long again as it has run. After now_ms. */
int64_t weir_sched_job_end_ms(const struct weir_sched_job *job, int64_t now_ms);

#endif
