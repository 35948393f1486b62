/**
 * Offers: the copy of clusters, their pools and what was asked of them (job/cluster.h) that the scheduler looks at.
 * It is read again when one of them has changed.
 *
 * Where a job may run. It names clusters, or else its queue does, or the next one above it: then there alone, in that
 * order; else anywhere. The queue's list is a bound: of what a job names, what its queue does not list is left out.
 * WEIR_CLUSTER_OWN is a cluster like others in such a list, the one of the nodes that joined by themselves. To the planner
 * each node has a taint of its cluster and its payer there, and a task tolerates those of its job; while there are no
 * clusters and nobody names one there are no such taints.
 *
 * Owned by the snapshot's thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_OFFERS_H
#define WEIR_CONTROL_OFFERS_H

#include "base/arena.h"
#include "base/json.h"
#include "control/ask.h"
#include "control/queue_tree.h"
#include "job/cluster.h"

struct weir_driver_ops;
struct weir_registry;

/** The label of a node that says which cluster supplied it, and the taint that says so too, with its payer there
 *  (offers_mark). */
#define OFFERS_CLUSTER_KEY "weir/cluster"

/** Nodes are asked for so much longer than a job may run, for agents to start, and as clusters tell them some minutes
 *  before that they end; and a job that may run so much longer than a node has left is placed there: most end before. */
#define OFFERS_SPARE_MS ((int64_t)300000)

/** A cluster did not give, lately, what was asked of it for a job. */
struct offers_refusal {
    const char *job, *pool, *cluster, *why;
    int64_t ended_ms; /**< The last. */
    int64_t n;
};

/** What a cluster's driver reads of its options. */
struct offers_driver {
    const struct weir_driver_ops *ops; /**< NULL: its options cannot be read. */
    const void *options;
    json_t *document; /**< The options point into it. */
};

struct offers {
    const struct weir_registry *drivers;
    struct weir_cluster *clusters; /**< By name. */
    struct offers_driver *of;      /**< Per cluster. */
    size_t n_clusters;
    struct weir_pool *pools; /**< Those of clusters that cost least first. */
    size_t n_pools;
    struct weir_allocation *allocations;  /**< Those that have not ended. */
    const struct weir_allocation **by_id; /**< The same, by their identifiers. */
    size_t n_allocations;
    struct offers_refusal *refusals;
    size_t n_refusals;
    int64_t revision; /**< -1: nothing was read. */
    struct weir_arena arena;
};

void offers_init(struct offers *offers);
void offers_fini(struct offers *offers);

/** Bring it up to date, in a read transaction. *out_is_changed is set if anything was read. */
weir_status offers_read(struct offers *offers, struct weir_txn *txn, int64_t now_ms,
                        bool *out_is_changed, struct weir_error *err) WEIR_MUST_CHECK;

/** NULL: there is none of this name. */
const struct weir_cluster *offers_cluster(const struct offers *offers, const char *name);

/** NULL: there is none of this identifier that has not ended. */
const struct weir_allocation *offers_allocation(const struct offers *offers, const char *id);

/**
 * The value of the taint of a node of a cluster that a queue pays for: the cluster's name, the payer where queues have
 * accounts of their own there, and what its pods were made as. Text of the cluster, or in the arena. A cluster that is not
 * there: its name.
 * @param pod  What was wanted of its pods (ask.h); NULL: nothing.
 */
const char *offers_mark(const struct offers *offers, const char *cluster, const char *queue,
                        const char *pod, struct weir_arena *arena);

/** Are the nodes of this cluster pods that are made as a job wants them? */
bool offers_makes_pods(const struct offers *offers, const char *cluster);

/** NULL: there is none of this identifier ("CLUSTER/NAME"). */
const struct weir_pool *offers_pool(const struct offers *offers, const char *id);

/**
 * A node of a pool, empty and without a name, as it would come to the planner: the pool's shape, its cluster's labels, one
 * taint, of the cluster, and its end as far away as may be. The nodes of an allocation are those of a pool of its shape.
 * Pure. Text of the pool and of `mark` (offers_mark), or in the arena.
 */
struct weir_sched_node offers_pool_node(const struct weir_pool *pool, const char *mark,
                                        int64_t now_ms, struct weir_arena *arena);

/** Where a job may run, and after what wait nodes are asked for it. */
struct offers_where {
    const char *const *names; /**< In order; NULL: anywhere. */
    size_t n;
    const char *const *bound; /**< What its queue lists; NULL: all may be named. */
    size_t n_bound;
    const char *bound_by; /**< The queue that does. */
    int64_t after_ms;     /**< -1: as each cluster says. */
};

/** @param ask  The job's; NULL: it asks for nothing. @param queue  The row of its queue. */
struct offers_where offers_where(const struct queue_tree *queues, const struct ask *ask,
                                 int32_t queue);

/** Does the queue let its jobs run there? */
bool offers_allows(const struct offers_where *where, const char *cluster);

/** Where the cluster stands in the order; -1: it may not run there. `names` NULL: 0. */
int32_t offers_rank(const struct offers_where *where, const char *cluster);

#endif
