/**
 * Demand: which nodes should be asked of clusters, and which are given back.
 *
 * The planner says it: it is asked once more, with nodes added to those that are there. First those that were asked for and
 * have not joined; what it places there waits for them. Then, pool by pool, nodes like those that can be had; what it
 * places there is asked for, just as large as what was placed. So quotas, gangs, devices and selectors are those of any
 * plan: a gang is asked for whole, as one allocation, and several small jobs share a node. The nodes that are there take
 * nothing in these plans: a gang that counted on one of them would hold it while it waits for the others.
 *
 *     nodes + asked for        → which job waits for which allocation; allocations that nothing waits for
 *     … + pool 1, + pool 2 …   → what is to be asked for
 *
 * Pools come in the order of their weight; where a job or its queue names clusters, theirs come in that order. A job has
 * to have waited as long as it, its queue or the cluster says. What a cluster refused, or did not keep, is not asked of
 * it again for that job before some time, which doubles. What is wanted, and not asked for yet, of a cluster that is not
 * ready, or that is being drained, is no longer counted on: its job may go elsewhere.
 *
 * Pure, but for the identifiers of what is asked for, which are drawn.
 */
#ifndef WEIR_CONTROL_DEMAND_H
#define WEIR_CONTROL_DEMAND_H

#include "control/snapshot.h"

#define DEMAND_NODES_MAX       1024  /**< So many nodes of a pool are thought of at once. */
#define DEMAND_PENDING_IDLE_MS 10000 /**< A wait that nothing needs any more lasts no longer. */
/** Nodes that were idle for so long go back at once if others are waited for there. */
#define DEMAND_WAITED_IDLE_MS 2000
#define DEMAND_DEVICES_MS     120000 /**< Within so long of its start a node has told of its devices. */
#define DEMAND_JOIN_MS        ((int64_t)15 * 60 * 1000) /**< Nodes that run have joined within so long. */
#define DEMAND_AGAIN_LEAST_MS 10000                     /**< After a refusal; it doubles. */
#define DEMAND_AGAIN_MOST_MS  ((int64_t)600 * 1000)

/** A job that waits for an allocation, or why none is asked for. */
struct demand_wait {
    char *job;
    const char *text;  /**< For the job's reason. */
    int64_t starts_ms; /**< When it may start, as a cluster expects; 0: nobody says. */
};

struct demand {
    struct weir_allocation *wanted; /**< To be inserted. */
    size_t n_wanted;
    const struct weir_allocation **idle;   /**< Nothing needs them since now. */
    const struct weir_allocation **needed; /**< Something does again. */
    /** Nothing has needed them for so long that they are given back. */
    const struct weir_allocation **over;
    /** They run, and nodes of them never joined: they are given up. */
    const struct weir_allocation **missing;
    size_t n_idle, n_needed, n_over, n_missing;
    struct demand_wait *waits; /**< By job. */
    size_t n_waits;
    int64_t next_ms; /**< When to look again though nothing changes; INT64_MAX: never. */
};

/**
 * @param snapshot  Its rows are made again.
 * @param profile   The rules; of its actions only allocate counts.
 * @param out       In the arena. But for waits it points into the snapshot's offers, until they are read again.
 * @return As weir_sched_plan.
 *
 * Cost: a plan, and one for each pool that is open to a job that waits.
 */
weir_status demand_look(struct snapshot *snapshot, const struct weir_sched_profile *profile,
                        int64_t now_ms, struct weir_arena *arena, struct demand *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** What is said of the job; NULL: nothing. */
const struct demand_wait *demand_wait_of(const struct demand *demand, const char *job);

#endif
