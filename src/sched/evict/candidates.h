/** Who may be a victim of which action, for one job: solver->is_victim is marked. */
#ifndef WEIR_SCHED_CANDIDATES_H
#define WEIR_SCHED_CANDIDATES_H

#include "sched/action/actions.h"

typedef void candidates_fn(struct cycle *cycle, int32_t job);

/** Consolidation: whoever runs and may lose. Cost: jobs, but only bytes of them. */
candidates_fn candidates_of_all;

/** Reclaim: those of other queues that have run for as long as is stated, or what is above their
 *  minimum. */
candidates_fn candidates_of_others;

/** Preempt: those of the job's own queue that it goes before, by priority, by the device time they
 *  have had, or because it has waited too long. Of nobody who runs more than what is above its
 *  minimum, if the job itself runs and only grows. */
candidates_fn candidates_of_queue;

/** For a job that has waited too long and is no larger than its queue's quota: those of its queue,
 *  nearest in solver->rings, and those of queues that hold more than is guaranteed to them. @return
 *  Whether there is any. */
bool candidates_when_due(struct cycle *cycle, int32_t job, const struct weir_sched_amount *amount);

/** Whether whatever `job` may preempt, `than` may preempt as well, if it asks for as much. */
bool candidates_are_no_more(const struct cluster *cluster, int32_t than, int32_t job);

#endif
