/**
 * What becomes of a scenario's victims once the job is placed: they keep running, move, or are
 * lost.
 */
#ifndef WEIR_SCHED_REPLACE_VICTIMS_H
#define WEIR_SCHED_REPLACE_VICTIMS_H

#include "sched/evict/solver.h"

/**
 * Let victims that need not go keep running, and find others a new placement. The last popped,
 * which has the best claim, comes first. If the scenario is not allowed so, two more ways are
 * tried: first the victims to which the job has no right; then victims go wherever they fit best.
 *
 * @param n_tasks  How many of solver->pending are placed.
 * @return Whether what remains lost is allowed.
 */
bool replace_victims(struct solver *solver, int32_t n_tasks);

/**
 * Count what units lose for good into solver->scenario.losses, in the order in which they were
 * popped.
 * @return How many.
 */
int32_t replace_count_losses(struct solver *solver);

/** Whether all tasks of a unit run where they were. */
bool replace_is_whole(const struct solver *solver, const struct eviction_unit *unit);

#endif
