/**
 * Queue sample: what each queue is guaranteed, has, has borrowed and waits for, from the scheduler's copy:
 * for the history of queues (job/queue_history.h). No plan is made: what is, not what would be fair.
 */
#ifndef WEIR_CONTROL_QUEUE_SAMPLE_H
#define WEIR_CONTROL_QUEUE_SAMPLE_H

#include "control/snapshot.h"
#include "job/queue_history.h"

/**
 * One sample per row of a queue; what a department has is what its parts have. Texts are the
 * snapshot's. `out` has room for all rows of queues. Pure. Cost: tasks × depth of the tree.
 */
void queue_sample(const struct snapshot *snapshot, struct weir_queue_sample *out);

#endif
