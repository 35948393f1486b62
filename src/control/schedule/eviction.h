/**
 * Evictions: what a plan stops for others, taken from it and written.
 *
 * A gang goes whole, whichever of its tasks the plan names; of a service go the replicas that it names.
 * What is written is the event EVICT (job/job_step.h), with a reason that says for whom; or ASK, where the job
 * may save first: then EVICT follows from a later plan. A job that has changed since the plan is left alone.
 */
#ifndef WEIR_CONTROL_EVICTION_H
#define WEIR_CONTROL_EVICTION_H

#include "control/control.h"
#include "control/snapshot.h"
#include "sched/apply.h"

struct eviction {
    struct snapshot_job *job;
    const char *task; /**< A replica; NULL: the whole gang. */
    const char *text; /**< "reclaimed by queue vision"; NULL: as it was asked. */
    bool is_request;  /**< Only asked to save. */
    bool is_told;     /**< By the last run of its transaction. */
};

/** One plan's, in its arena. */
struct evictions {
    struct eviction *items;
    size_t n;
};

/** Room for all of a plan. */
void evictions_begin(struct evictions *evictions, const struct weir_sched_plan *plan,
                     struct weir_arena *arena);

/** Take what the plan stops of one job. */
void evictions_take(struct evictions *evictions, const struct snapshot *snapshot,
                    const struct weir_sched_part *part, struct weir_arena *arena);

/** Write n of them from `first` on. In a write transaction. */
weir_status evictions_write(struct evictions *evictions, size_t first, size_t n,
                            struct control *control, struct weir_txn *txn,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Tasks that have been asked to end. */
int32_t evictions_n_told(const struct evictions *evictions);

#endif
