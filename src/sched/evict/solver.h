/**
 * Make room for a job: which running tasks must go so that it fits, tried out and rolled back until
 * a scenario holds. Victims come one unit (a gang, or a task above a minimum) at a time in the
 * order in which they lose; the job's tasks are solved one after another, each with the victims on
 * one more node.
 */
#ifndef WEIR_SCHED_SOLVER_H
#define WEIR_SCHED_SOLVER_H

#include "sched/evict/feasibility.h"
#include "sched/order/order.h"
#include "sched/place/place.h"
#include "sched/share/reclaim.h"

/** A search is counted in steps of about a microsecond: a unit that is popped is one, looking at
 *  some jobs is, and a scenario is one and more on many nodes. All searches of an action that find
 *  nothing may take some steps for each of the profile's search_max_scenarios. */
#define SOLVER_NODES_PER_STEP     500
#define SOLVER_JOBS_PER_STEP      4
#define SOLVER_STEPS_PER_SCENARIO 4

/** On more nodes a search for moves looks only at victims that are in the way, and all of them may
 *  take the fewer steps the more nodes there are, as the rest of a cycle takes the longer.
 *  What is owed to who waits does not depend on moves. */
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

/** Tasks of one job that end together. */
struct eviction_unit {
    int32_t first, n; /**< Of solver.unit_tasks. */
    int32_t job;
    int32_t previous; /**< Unit of the same job that was popped before; -1. */
    bool is_last;     /**< Nothing of the job stays without it. */
    bool is_recorded; /**< Part of the solution for the tasks solved so far. */
    bool is_evicted;  /**< In the scenario that is in place. */
    bool must_run_on; /**< While victims are settled: before those that may be lost. */
};

/** The victims of a search before any was popped, for the next one. */
struct solver_sorted {
    struct order order;
    bool *is_listed;
    int64_t version; /**< The state that they are for (cluster.n_commits); -1: none. */
};

struct solver_link {
    int32_t unit, next;
};

struct solver;

/** Judges a scenario that is in place: every loss is a unit that found no other place. */
typedef bool solver_allow_fn(const struct solver *solver, const struct reclaim_loss *losses,
                             int32_t n_losses);

struct solver {
    struct cluster *cluster;
    struct placer *placer;
    int32_t job; /**< For which room is made. */
    struct weir_sched_amount amount, fixed;
    enum weir_sched_evict_reason reason;
    solver_allow_fn *allow;
    bool must_move_all; /**< Consolidation: whoever is evicted must have a new place. */
    bool may_move;      /**< Look for new places for victims. */

    struct feasibility feasibility;
    bool are_open;  /**< `victims` and what follows is made for the job at hand. */
    bool is_simple; /**< The job's first task: what it needs is a matter of one node alone. */
    struct order victims;
    struct solver_sorted sorted[2]; /**< Of all queues; and of one alone. */
    uint8_t *is_victim;             /**< Per job: enum solver_victim; input. */
    bool *is_listed;                /**< Per job: the same for the order. */
    int32_t *popped;                /**< Per job: tasks popped already. */
    int32_t *last_unit;             /**< Per job: the last of its units so far; -1. */

    int32_t *unit_nodes; /**< Node of each of unit_tasks before it goes. */
    int32_t *unit_tasks; /**< Tasks of the units popped so far, unit after unit. */
    struct eviction_unit *units;
    int32_t n_units, n_unit_tasks;
    int32_t *node_head;              /**< Per node: last link of a unit with a task there; -1. */
    struct solver_link *links;       /**< As many as unit_tasks. */
    struct reclaimable *reclaimable; /**< Per node: of the units popped so far. */
    struct reclaimable *all_reclaimable; /**< Of all victims: scratch. */
    bool *is_feasible; /**< Per node: the job's tasks would fit if all who could move had. */
    bool is_pruned;    /**< Only victims on such nodes are popped. */
    bool is_large;     /**< By SOLVER_LARGE. */
    int32_t *tiers; /**< Per leaf queue how far it is: the victims of ring 0 go first, then those of
                         1; each is tried with those before it on its node, and alone. Input. */
    int32_t n_tiers, tier; /**< 0: all at once. The former is input. */
    bool *may_lose;        /**< Per leaf queue: may lose work; else its victims must move. Input. */

    int32_t *evicted; /**< Units of the scenario in place, in the order of popping. */
    int32_t n_evicted;
    int32_t *recorded; /**< Units that are part of the solution so far. */
    int32_t n_recorded;

    int32_t *pending;            /**< Tasks of the job that are being solved. */
    int32_t *made;               /**< Nodes on which a scenario makes room. */
    int32_t *scratch;            /**< Room for a job's tasks. */
    struct reclaim_loss *losses; /**< Grows: it is large, and few cycles need it. */
    int32_t losses_cap;
    struct weir_sched_amount *remaining; /**< Per queue, zero between uses. */
    const int32_t *first_waiting;        /**< Per leaf queue: the job that is tried first; -1. */
    size_t checkpoint;
    int32_t n_frozen;        /**< First tasks of `pending` whose places stand. */
    int32_t n_frozen_losses; /**< What they cost: the first of `losses`. */
    int64_t n_scenarios;
    int64_t n_steps, steps_max; /**< Of all searches of the action; a search ends beyond. Input. */
};

weir_status solver_init(struct solver *solver, struct cluster *cluster,
                        struct placer *placer) WEIR_MUST_CHECK;
void solver_fini(struct solver *solver);

/** Of so many steps of an action those that its searches may take if it only moves work. */
int64_t solver_steps_for_moves(const struct solver *solver, int64_t most);

/** Room for the next tasks of solver->job out of the jobs marked in solver->is_victim. On success
 *  the changes are in place; without, nothing has changed. */
bool solver_solve(struct solver *solver);

#endif
