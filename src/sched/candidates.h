/** Who may be a victim of which action, for one job: solver->is_victim is marked. */
#ifndef WEIR_SCHED_CANDIDATES_H
#define WEIR_SCHED_CANDIDATES_H

#include "sched/actions.h"

typedef void candidates_fn(struct cycle *cycle, int32_t job);

/** Consolidation: whoever runs and may lose. Cost: jobs, but only bytes of them. */
candidates_fn candidates_of_all;

/** Reclaim: those of other queues that have run for as long as is stated, or what is above their
 *  minimum. */
candidates_fn candidates_of_others;

/** Preempt: those of the job's own queue that it goes before. */
candidates_fn candidates_of_queue;

#endif
