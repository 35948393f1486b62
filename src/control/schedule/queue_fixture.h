/** Tests: queues over the scheduler's fixture. */
#ifndef WEIR_CONTROL_QUEUE_FIXTURE_H
#define WEIR_CONTROL_QUEUE_FIXTURE_H

#include "control/schedule/scheduler_fixture.h"
#include "job/queue.h"

static inline weir_status set_queue_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_queue_set(txn, context, 1, err);
}

/** A queue with this guarantee of CPUs; `more` are other members of its share: ", \"limit\": 2". */
static inline void set_queue(struct scheduler_fixture *fixture, const char *name,
                             const char *project, const char *parent, int64_t cpus,
                             const char *more)
{
    struct weir_queue queue = {.name = (char *)name,
                               .parent = (char *)parent,
                               .project = (char *)project,
                               .shares = weir_arena_printf(&fixture->store.arena,
                                                           "{\"cpus\": {\"guarantee\": %lld%s}}",
                                                           (long long)cpus, more),
                               .min_run_ms = -1};
    fixture_write(&fixture->store, set_queue_in, &queue);
}

/** A gang of a project. */
static inline char *gang_of(struct scheduler_fixture *fixture, const char *project, size_t n_tasks,
                            int64_t cpus)
{
    return add_job(fixture, (struct new_job){.kind = "command",
                                             .project = project,
                                             .n_tasks = n_tasks,
                                             .cpu_millis = cpus * 1000});
}

/** What agents do: what should stop has ended, what should run runs. @return Tasks that ended. */
static inline size_t play_agents(struct scheduler_fixture *fixture, char *const *jobs, size_t n)
{
    size_t n_ended = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_job_state state = job_state(fixture, jobs[i]);
        for (size_t k = 0; k < state.n_tasks; k++) {
            const char *phase = state.tasks[k].state;
            if (strcmp(phase, "STOPPING") == 0) {
                report(fixture, jobs[i], k, WEIR_JOB_EVENT_TASK_EXITED, 75);
                n_ended++;
            } else if (strcmp(phase, "STARTING") == 0) {
                report(fixture, jobs[i], k, WEIR_JOB_EVENT_TASK_RUNNING, 0);
            }
        }
    }
    return n_ended;
}

/** Jobs in this state. */
static inline size_t n_in_state(struct scheduler_fixture *fixture, char *const *jobs, size_t n,
                                const char *state)
{
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        n_found += strcmp(job_state(fixture, jobs[i]).job.state, state) == 0;
    }
    return n_found;
}

#endif
