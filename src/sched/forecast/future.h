/**
 * The future as backfill supposes it: jobs end one after the other, at the times that run_time.h
 * expects. What waiting jobs were given (slots) begins and ends among them. A *position* is a
 * number of completions: at position 0 all of them are still to come; at n_completions nothing runs
 * any more.
 *
 *     future_begin(backfill);
 *     position = future_find(backfill, &slot, n, 0);
 *     if (position >= 0 && future_place(backfill, position, &slot, n)) { … }
 *     future_take_back(backfill);
 *     future_end(backfill);
 *
 * It works on the state of the cluster itself, by what cluster.h offers to suppose, and leaves it
 * as it was. Of struct backfill it owns completions, position, of_jobs, is_active, scan and what is
 * touched.
 */
#ifndef WEIR_SCHED_FUTURE_H
#define WEIR_SCHED_FUTURE_H

#include "sched/forecast/backfill.h"

/** Hold a slot's rooms in the state, or let them go. Call future_update when done. */
void future_hold(struct backfill *backfill, struct backfill_slot *slot, bool holds_room);

/** Bring the indices of all nodes that future_hold changed up to date, each node once. */
void future_update(struct backfill *backfill);

/**
 * Suppose the present, with all slots held and charged. Each begins at the latest when the job at
 * hand could, so that job may not use their room before they have ended.
 */
void future_begin(struct backfill *backfill);

/** Suppose nothing any more. The slots stay held. */
void future_end(struct backfill *backfill);

/**
 * Search for the time at which the slot's job could start with the first n of backfill.tasks.
 * @param least  No position before this one is looked at.
 * @return The fewest completions after which they fit and their queues admit them; -1: they never
 *         do.
 *
 * Cost: O(log completions) attempts to place; for one task alone, a pass over the nodes where
 * something ends.
 */
int32_t future_find(struct backfill *backfill, const struct backfill_slot *slot, int32_t n,
                    int32_t least);

/**
 * Place the tasks where future_find has just found that they fit. Then read their placements from
 * the cluster's tasks, and call future_take_back, whatever the result.
 */
bool future_place(struct backfill *backfill, int32_t position, const struct backfill_slot *slot,
                  int32_t n);
void future_take_back(struct backfill *backfill);

/** Let a new slot of backfill.slots take part: it begins at the present position. */
void future_add(struct backfill *backfill, int32_t at_slot);

#endif
