/**
 * Whether a scenario of the solver may be carried out. What reclaim takes must be fair. Neither
 * reclaim nor preempt may make room that would go to others first (README.md).
 */
#ifndef WEIR_SCHED_ALLOW_H
#define WEIR_SCHED_ALLOW_H

#include "sched/evict/solver.h"

solver_allow_fn allow_reclaim, allow_preempt;

/**
 * For a job that has waited too long: of other queues it takes only what is lent to them. Only
 * where nominations stand, so that the room that is made is the job's.
 */
solver_allow_fn allow_lent;

#endif
