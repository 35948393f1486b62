/**
 * Live: what the scheduler would do now, asked by people. Each function reads a copy of its own in the
 * caller's read transaction, plans on it, and throws it away: the state is not touched, and the engine
 * does not wait.
 *
 * Cost: a reading of all open jobs and nodes, and one plan or, where it says so, several.
 */
#ifndef WEIR_CONTROL_LIVE_H
#define WEIR_CONTROL_LIVE_H

#include "base/json.h"
#include "job/queue.h"
#include "store/row_scope.h"

#include "base/view_struct.h"

#include "control/live_views.def"

#include "base/view_end.h"

struct weir_registry;

/** When and by what clock nodes count as there, and for whom it is. */
struct control_live {
    int64_t now_ms;
    int64_t since_ms; /**< Since when nodes could report (struct weir_node_watch). */
    /** The projects of jobs and queues that are named; NULL: all. The transaction itself sees
     *  all: plans need all. */
    const struct weir_row_scope *names;
    const struct weir_registry *drivers; /**< The drivers of clusters; NULL: weir_drivers. */
};

/**
 * All queues, those of projects without one too, as a list of the view control_queue (live_views.def). Amounts
 * are {"accelerators", "cpus", "memory"}, and of each model with a share. `borrowed` is what is used above the guarantee that holds now; `waiting` what jobs ask for that
 * have no node. What a department has is what its parts have. `n_…` count jobs; a replica counts as one.
 *
 * Queues of projects that are not named (live->names), and departments that have no part that is, are
 * left out; *out_others counts what they have: {"n_queues", "n_running", "n_waiting"}.
 *
 * @param name  One alone, as a list of one; NULL: all.
 * @param out_others  A new reference. @return NOT_FOUND.
 */
weir_status control_queues(struct weir_txn *txn, const struct control_live *live, const char *name,
                           json_t **out, json_t **out_others,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** A change that is asked about. What is NULL or 0 stays as it is. */
struct control_change {
    /** n_nodes more nodes like this one, empty and ready; or nodes of this pool ("CLUSTER/NAME"), for which pays the account
     *  of the queue of `first`, else of the first job that waits and may run there. */
    const char *like;
    int64_t n_nodes;
    const struct weir_queue *queue; /**< One that is there is so instead; else it is made. */
    /** Identifier of a job that goes before all others that wait in its queue. */
    const char *first;
};

#define CONTROL_NODES_ADDED_MAX 1000

/**
 * What the next cycle does, and what it would do with a change: the view control_what_if.
 * Outcomes are those of weir_sim_next. `jobs` are those that the change makes a difference to, and the
 * job that is first; of a service with several replicas each is one. Those of projects that are not
 * named are `n_others`, and `others` what becomes of them. `queues` are those with a difference, and the one that changes. `guarantees` are as with the change
 * (guarantee.h).
 *
 * @return NOT_FOUND: no such node, pool, queue or open job; INVALID: a queue that cannot be set so, more nodes than
 *         the pool has, or nothing to change; UNSUPPORTED: a queue that would hang below a younger one; LIMIT: more nodes than
 *         CONTROL_NODES_ADDED_MAX.
 */
weir_status control_what_if(struct weir_txn *txn, const struct control_live *live,
                            const struct control_change *change, json_t **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Could all guarantees be kept, were this queue set? Where one cannot now either, no more of it may
 * be missing. @return CONFLICT, with from whom it could be taken.
 */
weir_status control_queue_check(struct weir_txn *txn, const struct control_live *live,
                                const struct weir_queue *queue,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Why a job waits, since when, until when, and what would help: the view control_explanation.
 * The start lies between the earliest and the latest by at least expected_by runs of each of the jobs that run
 * (start_spread.h says how often); null: of one that must end first nothing is known. `is_kept`: what gets free is kept for it, since its queue was
 * not served for long. `ahead` names the first of the n_ahead jobs that go before it in its queue.
 * `code`, `resource`, `need` and `have` are the planner's (sched/sched.h), null for a job that does not
 * wait for it. `helps` are the changes, of those tried, with which it would start: one more node like
 * one there is, first in its queue, a guarantee that covers it, no limit. At most 8 plans.
 * @return NOT_FOUND: no such job.
 */
weir_status control_explain_job(struct weir_txn *txn, const struct control_live *live,
                                const char *job, json_t **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
