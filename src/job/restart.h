/**
 * Whether and when a task that has ended is started again: the rules that job_step.h applies, pure.
 *
 * A gang is tried again after a back-off of 1 s, 2 s, 4 s … 60 s, max_restarts times. Two kinds of
 * end are told apart from the rest. One that a second try cannot mend (a weir-worker that exits
 * with a permanent status: wrong options, no such data; any program that could not be run, 126 or
 * 127 as of a shell) is not tried again. One that is nobody's
 * fault in the program (its node or its supervisor was lost) is tried again WEIR_JOB_LOSSES_MIN
 * times even when max_restarts is less: that number bounds what the program itself does wrong.
 *
 * A replica is what people wait for at a door: it starts again for ever, after 0.5 s and at most
 * 1 s, so that with its start, even on a busy machine, it is away less than 5 s however often
 * it is killed. Only one that exits with a permanent status, which it does each time until somebody
 * mends something, is tried less and less often, down to once in 60 s.
 */
#ifndef WEIR_JOB_RESTART_H
#define WEIR_JOB_RESTART_H

#include "job/job_step.h"

/** A lost gang is started again so often, whatever max_restarts is. */
#define WEIR_JOB_LOSSES_MIN 3

/** A replica that ran this long served: its back-off begins again. */
#define WEIR_JOB_STABLE_MS 5000

/** Is an end of this task one that a second try of the same cannot mend? */
bool weir_task_is_beyond_repair(const struct weir_job *job, const struct weir_task *task);

/** May the gang start once more after the end of this task? */
bool weir_job_may_restart(const struct weir_job *job, const struct weir_task *ended);

/** Back-off of a gang before restart number n (1, 2 …). */
int64_t weir_job_backoff_ms(int64_t n_restarts);

/** Back-off of a replica, from its n_restarts and how it ended. */
int64_t weir_replica_backoff_ms(const struct weir_task *replica);

/** Is restart number n of a replica told in the event log? The first five, then one in twenty. */
bool weir_replica_restart_is_told(int64_t n_restarts);

/** When a back-off that was to end at due_ms ends: a wall clock that was set back meanwhile does
 * not make it longer than backoff_ms. */
int64_t weir_backoff_end_ms(int64_t due_ms, int64_t backoff_ms, int64_t now_ms);

/** When the back-off of a RESTARTING gang is over. */
int64_t weir_gang_due_ms(const struct weir_job *job, int64_t now_ms);

/** When the time limit of a placed gang is over; INT64_MAX: it has none, or is not placed. */
int64_t weir_job_limit_end_ms(const struct weir_job_state *state);

#endif
