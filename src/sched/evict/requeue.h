/**
 * One scenario of search.h: victims go, and wait again together with the job; all that waits has
 * its turn, and these get what there is for them then.
 */
#ifndef WEIR_SCHED_REQUEUE_H
#define WEIR_SCHED_REQUEUE_H

#include "sched/evict/solver.h"

/** Take back the scenario in place. */
void requeue_clear(struct solver *solver);

/** Let it stand, and forget who its victims are. */
void requeue_release(struct solver *solver);

/** Evict what is recorded and the chosen units of solver->search. @return Whether the job gets the
 *  place for what it shows, and what is lost is allowed; then the scenario is in place. */
bool requeue_try(struct solver *solver);

#endif
