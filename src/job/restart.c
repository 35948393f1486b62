#include "job/restart.h"

#include <string.h>

#define GANG_FIRST_MS    1000
#define REPLICA_FIRST_MS 500
#define REPLICA_MAX_MS   1000
#define BACKOFF_MAX_MS   60000
#define N_TOLD           5
#define TOLD_EVERY       20

static int64_t doubled_ms(int64_t first_ms, int64_t n_restarts, int64_t max_ms)
{
    int64_t backoff_ms = first_ms;
    for (int64_t i = 1; i < n_restarts && backoff_ms < max_ms; i++) {
        backoff_ms *= 2;
    }
    return WEIR_MIN(backoff_ms, max_ms);
}

static bool is_lost(const struct weir_task *task)
{
    return strcmp(task->state, weir_task_phase_text(WEIR_TASK_LOST)) == 0;
}

static bool was_not_run(const struct weir_task *task)
{
    return task->exit_code == WEIR_EXIT_NOT_RUN || task->exit_code == WEIR_EXIT_NOT_FOUND;
}

bool weir_task_is_beyond_repair(const struct weir_job *job, const struct weir_task *task)
{
    /* What other exit statuses of other programs mean is not known. */
    bool is_permanent =
        was_not_run(task) || (job->has_known_exits && weir_exit_is_permanent(task->exit_code));
    return is_permanent && !is_lost(task) && task->signal == 0;
}

bool weir_job_may_restart(const struct weir_job *job, const struct weir_task *ended)
{
    int64_t most = is_lost(ended) ? WEIR_MAX(job->max_restarts, (int64_t)WEIR_JOB_LOSSES_MIN)
                                  : job->max_restarts;
    return job->n_restarts < most && !weir_task_is_beyond_repair(job, ended);
}

int64_t weir_job_backoff_ms(int64_t n_restarts)
{
    return doubled_ms(GANG_FIRST_MS, n_restarts, BACKOFF_MAX_MS);
}

int64_t weir_replica_backoff_ms(const struct weir_task *replica)
{
    bool is_hopeless = replica->signal == 0 &&
                       (was_not_run(replica) || weir_exit_is_permanent(replica->exit_code));
    return doubled_ms(REPLICA_FIRST_MS, replica->n_restarts,
                      is_hopeless ? BACKOFF_MAX_MS : REPLICA_MAX_MS);
}

bool weir_replica_restart_is_told(int64_t n_restarts)
{
    return n_restarts <= N_TOLD || n_restarts % TOLD_EVERY == 0;
}

int64_t weir_backoff_end_ms(int64_t due_ms, int64_t backoff_ms, int64_t now_ms)
{
    return due_ms - now_ms > backoff_ms ? now_ms : due_ms;
}
