/** What becomes of the victims of a scenario when the job has its place. */
#ifndef WEIR_SCHED_REPLACE_VICTIMS_H
#define WEIR_SCHED_REPLACE_VICTIMS_H

#include "sched/evict/solver.h"

/**
 * Let victims stay that need not go and find others a new place; the last popped, which had the
 * best claim, first. If the scenario is not allowed so, try once more with those first that the job
 * has no right to, and then with victims going wherever they fit best.
 *
 * @param n_tasks  Of solver->pending, that are placed.
 * @return Whether what remains lost is allowed.
 */
bool replace_victims(struct solver *solver, int32_t n_tasks);

/** What units lost for good, in the order in which they were popped, into solver->losses. */
int32_t replace_count_losses(struct solver *solver);

/** Room for so many in solver->losses. @return false: memory is out. */
bool replace_reserve_losses(struct solver *solver, int32_t n);

/** Whether all tasks of a unit run on where they were. */
bool replace_is_whole(const struct solver *solver, const struct eviction_unit *unit);

#endif
