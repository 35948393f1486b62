/**
 * Whether a scenario of the solver may be carried out: what reclaim takes must be fair, and neither
 * reclaim nor preempt may make room that would go to others first (README.md).
 */
#ifndef WEIR_SCHED_ALLOW_H
#define WEIR_SCHED_ALLOW_H

#include "sched/solver.h"

solver_allow_fn allow_reclaim, allow_preempt;

#endif
