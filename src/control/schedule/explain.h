/**
 * Explain: why a job waits, in one sentence that names what lacks. The planner's own sentence where
 * that is enough; where a job asks for devices, or for certain nodes, it says which and where.
 */
#ifndef WEIR_CONTROL_EXPLAIN_H
#define WEIR_CONTROL_EXPLAIN_H

#include "base/arena.h"
#include "control/snapshot.h"

/**
 * @param wait  The planner's, of this job.
 * @return As reasons are written: what follows "JOB is PENDING: ". In the arena.
 */
const char *explain_wait(const struct snapshot *snapshot, const struct snapshot_job *job,
                         const struct weir_sched_wait *wait, struct weir_arena *arena);

#endif
