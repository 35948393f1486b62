/**
 * The driver of a replay that asks the scheduler: a snapshot of what waits and runs, a plan, and
 * the plan carried out (sched/apply.h). The ledger checks each placement against what its node has
 * left. So a replay is also a test of the scheduler: a plan that gives something away twice ends it
 * with INTERNAL.
 */
#ifndef WEIR_SIM_CYCLE_H
#define WEIR_SIM_CYCLE_H

#include "sim/timeline.h"

struct cycle;

/**
 * Make the driver. `queues` are those that the timeline's jobs refer to. All is borrowed until
 * cycle_destroy.
 */
weir_status cycle_create(struct timeline *timeline, const struct weir_sim_cluster *cluster,
                         const struct weir_sched_queue *queues, int32_t n_queues,
                         const struct weir_sched_profile *profile, struct cycle **out,
                         struct weir_error *err) WEIR_MUST_CHECK;
void cycle_destroy(struct cycle *cycle);
struct timeline_driver cycle_driver(struct cycle *cycle);

/**
 * Add to a report: the numbers of cycles and of decisions, and why the first job that waits does.
 */
void cycle_report(const struct cycle *cycle, struct weir_sim_report *report);

#endif
