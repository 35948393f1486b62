/** The eviction units that a solver may take, one after another in the order in which they lose. */
#ifndef WEIR_SCHED_VICTIMS_H
#define WEIR_SCHED_VICTIMS_H

#include "sched/evict/solver.h"

/**
 * Begin with what solver->request.is_victim marks. The first victims_pop does so if it was not
 * done: many searches end without one.
 */
weir_status victims_open(struct solver *solver) WEIR_MUST_CHECK;
void victims_close(struct solver *solver);

/**
 * Append the next unit to solver->units.all. The state must be the one before any scenario. false:
 * there is none.
 */
bool victims_pop(struct solver *solver);

#endif
