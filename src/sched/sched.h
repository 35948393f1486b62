/**
 * The scheduler: a pure function from a snapshot of a cluster to what should change in it.
 *
 * Who may run now, where, and who must make room? A *snapshot* says what there is: nodes with
 * devices, a tree of queues with shares, jobs made of tasks. A *profile* says by which rules. A
 * *plan* is the answer: bind this task to these devices, evict that one, and for each job that
 * waits the reason. Nothing is read from outside and nothing is kept: the live server, the
 * simulator, "what if" and the tests call the same function, and the same input gives the same
 * output, because every quantity is a fixed-point int64 and every order has a last tie-break.
 *
 *     struct weir_sched_profile profile;
 *     WEIR_TRY(weir_sched_profile_named("default", &profile, err));
 *     struct weir_sched_plan *plan;
 *     WEIR_TRY(weir_sched_plan(&snapshot, &profile, &plan, err));
 *     for (int32_t i = 0; i < plan->n_actions; i++) …
 *     weir_sched_plan_destroy(plan);
 *
 * A cycle runs the profile's actions in order on one state: *allocate* gives what is free, in the
 * order of the queues' shares; *consolidation* moves preemptible work so that a waiting job fits;
 * *reclaim* takes back, between queues, what exceeds a fair share; *preempt* makes room for higher
 * priority inside a queue; *stalegangeviction* ends gangs that lost members. What is placed where
 * an evicted task must leave first is *pipelined*: the next snapshots say when it has left.
 *
 * Units: accelerators in thousandths of a device, CPU in milli-cores, memory in bytes, time in
 * milliseconds since 1970. -1 is unlimited where it says so. Indices are int32_t into the arrays of
 * the snapshot, -1 is none. The caller owns all of a snapshot; it is only read during the call.
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
 * The rules. Numbers are int64_t and texts char * because an option table fills them
 * (weir_sched_profile_options). Texts are static or belong to the caller.
 */
struct weir_sched_profile {
    char *actions;            /**< In order, separated by commas. */
    char *placement;          /**< Of tasks with devices on nodes: "binpack", "spread", "fgd". */
    char *placement_cpu;      /**< Of tasks without. */
    char *placement_gpu;      /**< Of shares on the devices of a node: "pack" or "spread". */
    int64_t saturation_ppm;   /**< Reclaim's saturation multiplier, 1000000 = 1. */
    int64_t usage_weight_ppm; /**< k: how much past use costs; 0 = nothing. */
    int64_t consolidation_max_moves; /**< Tasks a consolidation may move; -1 = any number. */
    int64_t search_max_scenarios; /**< After so many, or as much work, a job counts as not solvable,
                                       and an action leaves the rest to a later cycle. */
    int64_t stale_grace_ms;       /**< Of jobs that state none. */
    int64_t evict_grace_ms;       /**< Time to save after being asked; -1: nobody is asked. */
    int64_t idle_pct;             /**< Devices used less than this are idle; 0: none is. */
    int64_t idle_after_ms;        /**< Taken back when idle for so long (action "idle"). */
    bool nominations; /**< Places that an earlier plan gave (PIPELINED, promise) are kept. */
    bool least_eviction_cost; /**< Of equal victims the one goes that loses the least work. */
    bool fair_users;      /**< Of equal jobs of a queue that of the user with the smaller share goes
                               first. */
    bool guarantee_first; /**< What is guaranteed is given before what is lent, whoever is first. */
    int64_t backfill_depth;  /**< Waiting jobs, in order, for whom room is held; 0: none. */
    int64_t forecast_depth;  /**< Further ones for whom a start is worked out. */
    int64_t ageing_bound_ms; /**< Who waits for longer goes first in the queue; 0: nobody. */
    int64_t service_base_ms; /**< Who has had less goes first (service.h); 0: whoever came first. */
    int64_t service_levels;
    int64_t service_swap_ms;
    bool timed_quotas; /**< Shares follow their windows in the day and week. */
    bool move_victims; /**< Place what reclaim and preempt evict elsewhere, if there is room. */
};

/** "default", or "kai": options that come nearest to KAI-Scheduler's decisions. @return NOT_FOUND naming those there are. */
weir_status weir_sched_profile_named(const char *name, struct weir_sched_profile *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** The table of a profile's options, for flags, files and manuals; its fallbacks are `default`'s.
 */
const struct weir_option *weir_sched_profile_options(size_t *out_n);

/** @return INVALID naming the option and what it may be. */
weir_status weir_sched_profile_check(const struct weir_sched_profile *profile,
                                     struct weir_error *err) WEIR_MUST_CHECK;

enum weir_sched_action_kind {
    WEIR_SCHED_BIND,     /**< Start the task there now. */
    WEIR_SCHED_PIPELINE, /**< Keep the place for the task until what leaves it has left. */
    WEIR_SCHED_EVICT,    /**< Tell the task to end. */
    WEIR_SCHED_REQUEST_CHECKPOINT, /**< Ask the task to save its state: an EVICT comes when the job has
                                    acknowledged, or evict_grace_ms later. Until then the snapshots
                                    say is_leaving, and checkpoint_requested_ms of its job. */
};

enum weir_sched_evict_reason {
    WEIR_SCHED_EVICT_NONE,
    WEIR_SCHED_EVICT_CONSOLIDATION, /**< To move: a PIPELINE of the same task follows. */
    WEIR_SCHED_EVICT_RECLAIM,       /**< Another queue's share. */
    WEIR_SCHED_EVICT_PREEMPT,       /**< Higher priority in its queue. */
    WEIR_SCHED_EVICT_STALE,         /**< Its gang is below its minimum for too long. */
    WEIR_SCHED_EVICT_AFTER_GRACE,   /**< It was asked before, and has saved or had its time. */
    WEIR_SCHED_EVICT_TIME_LIMIT,    /**< It runs for longer than its time limit. */
    WEIR_SCHED_EVICT_IDLE, /**< Its devices are idle for too long. Whoever carries this out holds
                                the job back until somebody wants it again. */
};

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
                                      waits for anything else has lost all promises. */
    WEIR_SCHED_WAIT_QUEUE_LIMIT, /**< object: queue; need: with the job; have: limit. */
    WEIR_SCHED_WAIT_QUEUE_QUOTA, /**< Non-preemptible. object: queue; need, have: quota. */
    WEIR_SCHED_WAIT_GANG,        /**< need: tasks to start together; have: how many fit. */
    WEIR_SCHED_WAIT_NO_NODE,     /**< No node matches selector, taints, affinity. object: task. */
    WEIR_SCHED_WAIT_TOO_LARGE,   /**< No node is that big, even empty. need, have: of resource. */
    WEIR_SCHED_WAIT_FULL,        /**< need: of resource on one node; have: largest free. */
    WEIR_SCHED_WAIT_TOPOLOGY,    /**< No domain holds it. object: group; need, have: tasks. */
    WEIR_SCHED_WAIT_MEMBERS,     /**< Fewer tasks exist than its minimum. need, have: tasks. */
    WEIR_SCHED_WAIT_RESERVED,    /**< What is free is held for jobs before it. object: the first, or
                                      who took the place that it had in this plan. */
    WEIR_SCHED_WAIT_ZONES,       /**< The NUMA zones of nodes that would do otherwise. object: task;
                                      have: 1 if some could hold it were they empty. */
    WEIR_SCHED_N_WAIT_CODES,
};

#define WEIR_SCHED_TEXT_BYTES 320

struct weir_sched_wait {
    int32_t job;
    enum weir_sched_wait_code code;
    enum weir_sched_resource resource; /**< FIRST_MODEL + i: devices of a model. */
    int64_t need, have;
    int32_t object;            /**< Index as the code says; WEIR_SCHED_NONE. */
    int64_t expected_start_ms; /**< If jobs end as expected (backfill.h); 0 = unknown. */
    int32_t after_job;         /**< Then the job with whose end it starts; else WEIR_SCHED_NONE. */
    char text[WEIR_SCHED_TEXT_BYTES]; /**< A sentence for the person who waits. */
};

/** "queue_limit" … of a code; "unknown" outside the list. */
const char *weir_sched_wait_name(enum weir_sched_wait_code code);

/** What a queue is entitled to in this cycle, and what it has after the plan. */
struct weir_sched_queue_share {
    struct weir_sched_amount fair_share, requested, allocated, allocated_non_preemptible;
};

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
 * One cycle.
 *
 * @param plan  On success a plan that weir_sched_plan_destroy frees. It refers to nothing of the
 *              snapshot but by index.
 * @return INVALID or UNSUPPORTED as the checks of snapshot and profile; NOMEM.
 * Cost: memory linear in nodes, devices, tasks and queues. A bind is O(log nodes) where labels, and
 * the queue's shares of models, do not rule out the best nodes; a job whose twin found no place in
 * the cycle costs O(1). Shares of models cost a look at the nodes for every distinct set of
 * selector and tolerations.
 */
weir_status weir_sched_plan(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_profile *profile, struct weir_sched_plan **plan,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_sched_plan_destroy(struct weir_sched_plan *plan);

#endif
