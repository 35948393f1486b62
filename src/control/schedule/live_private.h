/** What the questions of live.h share. */
#ifndef WEIR_CONTROL_LIVE_PRIVATE_H
#define WEIR_CONTROL_LIVE_PRIVATE_H

#include "control/live.h"
#include "control/snapshot.h"

/** A copy of the state, and the planner's rows of it. */
struct live {
    struct snapshot snapshot;
    const struct weir_sched_snapshot *rows;
    struct weir_sched_profile profile; /**< As the scheduler's. */
    const struct weir_row_scope *names;
    bool *named; /**< Per row of a queue: may it be named? */
    struct weir_arena arena;
    int64_t now_ms;
};

/** In a read transaction. On error there is nothing to close. */
weir_status live_open(struct live *live, struct weir_txn *txn, const struct control_live *at,
                      struct weir_error *err) WEIR_MUST_CHECK;
void live_close(struct live *live);

/** The job of a row, and may it be named? */
const struct weir_job *live_job(const struct live *live, int32_t row);
bool live_names_job(const struct live *live, int32_t row);

/** The row of a queue that may be named; -1: there is none. */
int32_t live_find_queue(const struct live *live, const char *name);

/** Rows that may be changed: copies of queues, jobs and nodes, with room for `n_nodes` more nodes and
 *  one more queue. */
struct live_change {
    struct weir_sched_snapshot rows;
    struct weir_sched_node *nodes;
    struct weir_sched_queue *queues;
    struct weir_sched_job *jobs;
    int32_t i_queue; /**< The queue that changes; -1: none. */
};

void live_change_begin(struct live *live, int64_t n_nodes, struct live_change *out);

/** n more nodes like that of this index, empty and ready. There must be room. */
void live_add_nodes(struct live *live, struct live_change *change, int32_t like, int64_t n);

/** n nodes of a pool as they are asked for there for this job, a row: its queue's account pays, and pods are as it wants them.
 *  -1: for none. There must be room. */
void live_add_pool_nodes(struct live *live, struct live_change *change,
                         const struct weir_pool *pool, int32_t job, int64_t n);

/** What the job of a row asks for; NULL: nothing. */
const struct ask *live_ask(const struct live *live, int32_t job);

/** The job goes before all others of its queue that wait. */
void live_put_first(struct live_change *change, int32_t job);

/** What a queue has after a plan: {"guarantee", "fair_share", "used", "borrowed", "waiting"}, each
 *  AMOUNTS (live.h). */
struct control_queue_share live_shares(const struct weir_sched_snapshot *rows,
                                       const struct weir_sched_plan *plan, int32_t row);

/** An amount of each resource and model, as JSON; an unlimited one is null. */
json_t *live_amounts(const struct weir_sched_snapshot *rows,
                     const struct weir_sched_amount *amount);

/** An amount as people write it: thousandths as a number, bytes as an integer. */
json_t *live_amount(int64_t amount, bool is_memory);

#endif
