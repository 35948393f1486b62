/**
 * The search for victims by which the job and whoever is evicted for it wait again, and get places
 * in the order of queues as in an allocation: a scenario in which others take the room before the
 * job is none. It finds how many of the job's tasks can be placed by doubling and halving, and
 * begins each time with the victims that were needed so far.
 *
 * Two ways to choose among the victims popped so far come one after the other: those of the jobs on
 * one node of the last one; then those on the fewest nodes with the least room that could do.
 */
#ifndef WEIR_SCHED_SEARCH_H
#define WEIR_SCHED_SEARCH_H

#include "sched/evict/solver.h"

/** Whether the profile asks for it (like_kai). */
bool search_applies(const struct cluster *cluster);

weir_status search_init(struct search *search, const struct cluster *cluster) WEIR_MUST_CHECK;
void search_fini(struct search *search);

/** solver_solve for the first n_tasks of solver->pending; the state is as it was if it fails. */
bool search_solve(struct solver *solver, int32_t n_tasks);

#endif
