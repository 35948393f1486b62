/**
 * The solver: which running tasks must go so that a job fits. Scenarios are tried out and rolled
 * back until one holds. Victims come one eviction unit (a gang, or a task above a minimum) at a
 * time, in the order in which they lose. The job's tasks are solved one after another, each with
 * the victims on one more node.
 */
#ifndef WEIR_SCHED_SOLVER_H
#define WEIR_SCHED_SOLVER_H

#include "sched/evict/feasibility.h"
#include "sched/order/order.h"
#include "sched/place/place.h"
#include "sched/share/reclaim.h"

/**
 * A search is counted in steps of about a microsecond. To pop a unit is one, to look at some jobs
 * is one, and a scenario is one, and more on many nodes. All searches of an action that find
 * nothing may take SOLVER_STEPS_PER_SCENARIO steps for each of the profile's search_max_scenarios.
 */
#define SOLVER_NODES_PER_STEP     500
#define SOLVER_JOBS_PER_STEP      4
#define SOLVER_STEPS_PER_SCENARIO 4

/**
 * On more nodes than this, a search for moves looks only at victims that are in the way. All such
 * searches may take fewer steps the more nodes there are, because the rest of a cycle takes longer.
 * What is owed to waiting jobs does not depend on moves.
 */
#define SOLVER_LARGE 700

/** Of victims in the way, and of nodes where the job could lie, so many are looked at in a step;
 * and so many victims sorted. */
#define SOLVER_LOOKS_PER_STEP 64
#define SOLVER_SORTS_PER_STEP 8

enum solver_victim {
    SOLVER_NOT_A_VICTIM,
    SOLVER_SURPLUS, /**< What is above its minimum. */
    SOLVER_WHOLE,
};

/** An eviction unit: tasks of one job that end together. */
struct eviction_unit {
    int32_t first, n; /**< Of solver.units.tasks. */
    int32_t job;
    int32_t previous; /**< Unit of the same job that was popped before; -1. */
    bool is_last;     /**< Nothing of the job stays without it. */
    bool is_recorded; /**< Part of the solution for the tasks solved so far. */
    bool is_evicted;  /**< In the scenario that is in place. */
    bool must_run_on; /**< It keeps running before those that may be lost. */
};

/** The victims of a search before any was popped, for the next one. */
struct solver_sorted {
    struct order order;
    bool *is_listed;
    int64_t version; /**< The state that they are for (cluster.changes.n_commits); -1: none. */
};

struct solver_link {
    int32_t unit, next;
};

struct solver;

/** Judges a scenario that is in place. Every loss is a unit that found no other placement. */
typedef bool solver_allow_fn(const struct solver *solver, const struct reclaim_loss *losses,
                             int32_t n_losses);

/** For whom a solver makes room, and by which rules: its input. */
struct solver_request {
    int32_t job;
    struct weir_sched_amount amount, fixed;
    enum weir_sched_evict_reason reason;
    solver_allow_fn *allow;
    bool must_move_all; /**< Consolidation: every victim must have a new placement. */
    bool may_move;      /**< Look for new placements for victims. */
    uint8_t *is_victim; /**< Per job: enum solver_victim. */
    bool *may_lose;     /**< Per leaf queue: it may lose work; else its victims must move. */
    int32_t *tiers;     /**< Per leaf queue: victims of tier 0 go first, then those of 1. Each is
                             tried with those before it on its node, and alone. */
    int32_t n_tiers;    /**< 0: all at once. */
    const int32_t *first_waiting; /**< Per leaf queue: the job that is tried first; -1. */
};

/** The eviction units popped so far. */
struct solver_units {
    struct eviction_unit *all;
    int32_t *tasks; /**< Of the units, one after the other. */
    int32_t *nodes; /**< Of each of these tasks, before it goes. */
    int32_t n, n_tasks;
    int32_t *popped;                 /**< Per job: its tasks among them. */
    int32_t *last_of_job;            /**< Per job: its last unit; -1. */
    int32_t *node_head;              /**< Per node: last link of a unit with a task there; -1. */
    struct solver_link *links;       /**< As many as tasks. */
    struct reclaimable *reclaimable; /**< Per node. */
};

/** The scenario in place, and what stands of it. */
struct solver_scenario {
    size_t checkpoint; /**< Of the cluster before it. */
    int32_t *evicted;  /**< Units, in the order of popping. */
    int32_t n_evicted;
    int32_t *recorded; /**< Units that are part of the solution so far. */
    int32_t n_recorded;
    int32_t *made;               /**< Nodes on which room is made. */
    struct reclaim_loss *losses; /**< Grows: it is large, and few cycles need it. */
    int32_t losses_cap;
    int32_t n_frozen;        /**< First tasks of `pending` whose placements stand. */
    int32_t n_frozen_losses; /**< What they cost: the first of `losses`. */
};

/** How much has been searched. */
struct solver_budget {
    int64_t n_scenarios; /**< Of this search. */
    int64_t n_steps;     /**< Of all searches of the action. */
    int64_t steps_max;   /**< A search ends beyond. Input. */
};

struct solver {
    struct cluster *cluster;
    struct placer *placer;
    struct solver_request request;
    struct feasibility feasibility;

    bool are_open;     /**< `victims` and what follows is made for the job at hand. */
    bool is_simple;    /**< What the job's first task needs is a matter of one node alone. */
    bool is_pruned;    /**< Only victims on feasible nodes are popped. */
    bool is_large;     /**< By SOLVER_LARGE. */
    int32_t tier;      /**< The one at hand. */
    bool *is_feasible; /**< Per node: the job's tasks would fit if all that could move had. */
    struct order victims;
    struct solver_sorted sorted[2]; /**< Of all queues; and of one alone. */
    bool *is_listed;                /**< Per job: request.is_victim for the order. */
    struct solver_units units;
    struct solver_scenario scenario;
    struct solver_budget budget;

    int32_t *pending;                    /**< Tasks of the job that are being solved. */
    int32_t *scratch;                    /**< Room for a job's tasks. */
    struct reclaimable *all_reclaimable; /**< Per node, of all victims: scratch. */
    struct weir_sched_amount *remaining; /**< Per queue, zero between uses. */
    void *memory;                        /**< All of its arrays but scenario.losses. */
};

weir_status solver_init(struct solver *solver, struct cluster *cluster,
                        struct placer *placer) WEIR_MUST_CHECK;
void solver_fini(struct solver *solver);

/** Of so many steps of an action, those that its searches may take if it only moves work. */
int64_t solver_steps_for_moves(const struct solver *solver, int64_t most);

/**
 * Make room for the next tasks of request.job out of the jobs marked in request.is_victim.
 * @return true: the changes are in place; false: nothing has changed.
 */
bool solver_solve(struct solver *solver);

#endif
