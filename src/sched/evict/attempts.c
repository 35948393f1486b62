#include "sched/evict/attempts.h"

#include "sched/evict/candidates.h"
#include "sched/forecast/run_time.h"
#include "sched/model/quantum.h"

#include <stdlib.h>

bool attempts_describe(struct cycle *cycle, int32_t job, struct failure *out)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t n = quantum_next(cluster, job, cycle->tasks);
    if (n == 0 || cluster->jobs[job].n_groups != 1 ||
        cluster->groups[cluster->jobs[job].first_group].topology >= 0) {
        return false;
    }
    *out = (struct failure){.is_set = true,
                            .is_fixed = cluster_is_fixed(cluster, cycle->tasks[0]),
                            .shape = cluster->tasks[cycle->tasks[0]].shape,
                            .n_tasks = n,
                            .priority = cluster->snapshot->jobs[job].priority,
                            .run_ms = run_time_bound_ms(&cluster->snapshot->jobs[job]),
                            .next = -1};
    out->run_ms = out->run_ms > 0 ? out->run_ms : INT64_MAX;
    for (int32_t i = 1; i < n; i++) {
        if (cluster->tasks[cycle->tasks[i]].shape != out->shape) {
            return false;
        }
    }
    return true;
}

/** Whether it matters not who asks, or whoever asks now may preempt nothing that the other one
 *  might not have. */
static bool may_preempt_no_more(const struct cluster *cluster, const struct failure *than,
                                const struct failure *request)
{
    bool asks_as_much = request->n_tasks == than->n_tasks;
    return request->job < 0 ||
           (asks_as_much && candidates_are_no_more(cluster, than->job, request->job));
}

static bool is_no_easier(const struct cluster *cluster, const struct failure *than,
                         const struct failure *request)
{
    return than->is_set && than->shape == request->shape && request->n_tasks >= than->n_tasks &&
           request->priority <= than->priority && (request->is_fixed || !than->is_fixed) &&
           may_preempt_no_more(cluster, than, request);
}

bool attempts_have_failed(const struct cycle *cycle, const struct attempts *attempts, int32_t job,
                          const struct failure *request)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->snapshot->jobs[job].queue;
    if (is_no_easier(cluster, &attempts->last[queue], request)) {
        return true;
    }
    if (attempts->version != cluster->changes.n_commits ||
        backfill_has_reserved(&cycle->backfill, job)) {
        return false;
    }
    for (int32_t i = attempts->first[queue]; i >= 0; i = attempts->all[i].next) {
        if (is_no_easier(cluster, &attempts->all[i], request) &&
            request->run_ms >= attempts->all[i].run_ms) {
            return true;
        }
    }
    return false;
}

void attempts_note(const struct cluster *cluster, struct attempts *attempts, int32_t queue,
                   const struct failure *request)
{
    if (attempts->version != cluster->changes.n_commits) {
        attempts->version = cluster->changes.n_commits;
        attempts->n = 0;
        for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
            attempts->first[q] = -1;
        }
    }
    attempts->last[queue] = attempts->all[attempts->n] = *request;
    attempts->all[attempts->n].next = attempts->first[queue];
    attempts->first[queue] = attempts->n++;
}

weir_status attempts_init(struct attempts *attempts, const struct cluster *cluster)
{
    size_t n_queues = (size_t)cluster->snapshot->n_queues + 1;
    *attempts = (struct attempts){.version = -1};
    attempts->last = calloc(n_queues, sizeof *attempts->last);
    attempts->first = calloc(n_queues, sizeof *attempts->first);
    attempts->all = calloc((size_t)cluster->snapshot->n_jobs + 1, sizeof *attempts->all);
    bool is_whole = attempts->last != NULL && attempts->first != NULL && attempts->all != NULL;
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}

void attempts_fini(struct attempts *attempts)
{
    free(attempts->last);
    free(attempts->first);
    free(attempts->all);
}
