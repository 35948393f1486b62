/**
 * Settle: the claims of pods that get a place are asked to be bound where it is. A pod that has to wait for that keeps its place
 * meanwhile, and its gang with it; it is bound when the claims of all of them are. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SETTLE_H
#define WEIR_CLUSTER_KUBERNETES_SETTLE_H

#include "cluster/kubernetes/scheduler/carry_out.h"

#include "sched/apply.h"

/** So long a place is kept for a pod that waits for its claims. */
#define SETTLE_MS 600000
/** What is not told so long after it was done was undone. */
#define SETTLE_TOLD_MS 2000
/** So long no volume is asked for where none could be made. */
#define SETTLE_REFUSED_MS 60000
/** What was asked for in cycles before this one, and is not told yet, is assumed. */
void settle_recall(struct memory *memory, int64_t cycle, int64_t now_ms, struct volumes *volumes);

/** May the pods of a part have their claims where the plan has them, one after another? Then it is assumed that they have. */
bool settle_fits(struct carry_out *carry, const struct weir_sched_part *part);

/** That is not assumed, after all. */
void settle_take_back(struct carry_out *carry);

/** Ask for what is assumed. @return Do the pods wait for it? */
bool settle_ask(struct carry_out *carry, const struct weir_sched_part *part);

/** Bind pods that have waited long enough, or give up their places, or say that they wait. */
void settle_waiting(struct carry_out *carry);

/** The pod's place is given up: others may have it. */
void settle_give_up(struct memory_item *item);

/** What was asked for was answered. @return Is there something new to be planned? */
bool settle_done(struct memory *memory, struct memory_item *item, const struct calls_one *one,
                 weir_status status, const struct weir_error *err);

#endif
