/**
 * The jobs of all queues in the order in which they are served or, as victims, in the order in
 * which they lose. There is a heap of jobs in each leaf queue and of queues in each parent. A
 * queue's place in its heap depends on what it has and on its next job.
 */
#ifndef WEIR_SCHED_ORDER_H
#define WEIR_SCHED_ORDER_H

#include "sched/order/order_key.h"

struct order_queue {
    int32_t first, n; /**< Its heap: of jobs in a leaf, of children elsewhere. */
    int32_t position; /**< In the parent's heap; -1 = not in. */
    int32_t top;      /**< Best job at or below; -1. */
    struct order_key key;
    struct weir_sched_amount taken; /**< Victims taken so far, at and below. */
    bool is_stale;                  /**< While an order is brought up to date. */
};

/** What decides most comparisons of two jobs of a queue. */
struct order_job {
    int64_t claim; /**< Of victims what is lost with it, else its user's share. */
    int64_t created_ms;
    int32_t priority;
};

struct order_entry {
    uint64_t key; /**< The smaller goes first; of equal ones all that is known decides. */
    int32_t job;
};

struct order {
    const struct cluster *cluster;
    bool is_victims;
    struct order_queue *queues; /**< One per queue, then the invisible root. */
    struct order_entry *jobs;   /**< Heaps of all leaves. */
    int32_t *children;          /**< Heaps of all parents. */
    int32_t *scratch;           /**< Room for one job's tasks. */
    uint8_t *ranks;             /**< Per job: quantum_rank. */
    struct order_job *of_jobs;  /**< Of a copy: those of what it is a copy of. */
    bool is_copy;
    int32_t measured;                 /**< While keys are made: a job, */
    struct weir_sched_amount measure; /**< and what comes or goes with it next. */
    int32_t dirty;                    /**< Leaf whose place is to be worked out again; -1. */
};

/**
 * Order the listed jobs (one flag per job). The order borrows the cluster. NOMEM: order_fini frees
 * what was made.
 */
weir_status order_init(struct order *order, const struct cluster *cluster, const bool *is_listed,
                       bool is_victims) WEIR_MUST_CHECK;

void order_fini(struct order *order);

/**
 * Bring an order of victims, of which nothing was popped, to the jobs that are listed now and to
 * the present state. `was_listed` were listed when cluster.changes.n_commits was `since`. Cost: as
 * order_init for the queues in which anything differs.
 */
void order_update(struct order *order, const bool *is_listed, const bool *was_listed,
                  int64_t since);

/**
 * Begin again with `from`, of which nothing was popped. `order` is zeroed, or a copy of an order of
 * the same cluster, whose arrays are used again. It is good for as long as `from` does not change.
 * Cost: jobs, but none are compared.
 */
weir_status order_copy(struct order *order, const struct order *from) WEIR_MUST_CHECK;

/** Take the next job out; -1: none is left. O(depth * log). */
int32_t order_pop(struct order *order);

/** Take the next job of a leaf queue out, whatever is before it elsewhere; -1: none is left. */
int32_t order_pop_of(struct order *order, int32_t leaf);

/** Put a job back that was popped, with what it is now. */
void order_push(struct order *order, int32_t job);

/** The same with a rank (enum quantum_rank) that the state does not show. */
void order_push_ranked(struct order *order, int32_t job, int rank);

/** Note that this much was popped from the queue of a victim. */
void order_count_loss(struct order *order, int32_t job, const struct weir_sched_amount *amount);

/**
 * Find every queue's place again. Call when more has changed than what the queue of the last popped
 * job has.
 */
void order_refresh(struct order *order);

#endif
