#include "sched/evict/candidates.h"

#include "sched/model/quantum.h"
#include "sched/order/ageing.h"
#include "sched/share/shares.h"

#include <string.h>

/** Time that a queue's jobs run before others may take from them: the nearest that is stated. */
static int64_t min_run_ms(const struct cluster *cluster, int32_t queue, bool is_reclaim)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        const struct weir_sched_queue *given = &cluster->snapshot->queues[queue];
        int64_t stated = is_reclaim ? given->reclaim_min_run_ms : given->preempt_min_run_ms;
        if (stated >= 0) {
            return stated;
        }
    }
    return 0;
}

/** A job that runs and may lose. A job of which a part is on the move already is left alone: the rest
 *  of a gang must not go without it. By retake_pipelined also a job that is pipelined as a whole. */
static uint8_t judge_running(const struct cluster *cluster, int32_t victim)
{
    const struct group_state *root = &cluster->groups[cluster->jobs[victim].first_group];
    bool is_settled = root->n_alive > 0 && root->n_pipelined == 0;
    bool is_planned =
        cluster->profile->retake_pipelined && quantum_is_only_pipelined(cluster, victim);
    return (is_settled || is_planned) &&
                   cluster->jobs[victim].preemptibility != WEIR_SCHED_NON_PREEMPTIBLE
               ? SOLVER_WHOLE
               : SOLVER_NOT_A_VICTIM;
}

/** Judge those again that have changed since the last time. */
static void update_running(struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    if (cycle->runs_version == cluster->changes.n_commits) {
        return;
    }
    for (int32_t v = 0; v < cluster->snapshot->n_jobs; v++) {
        if (cluster->changes.of_jobs[v] > cycle->runs_version) {
            cycle->runs[v] = judge_running(cluster, v);
        }
    }
    cycle->runs_version = cluster->changes.n_commits;
}

void candidates_of_all(struct cycle *cycle, int32_t job)
{
    update_running(cycle);
    memcpy(cycle->solver.request.is_victim, cycle->runs, (size_t)cycle->cluster.snapshot->n_jobs);
    cycle->solver.request.is_victim[job] = SOLVER_NOT_A_VICTIM;
}

static uint8_t judge_min_run(const struct cluster *cluster, int32_t victim, int64_t min_run)
{
    const struct weir_sched_job *job = &cluster->snapshot->jobs[victim];
    bool is_young = job->started_ms > 0 && cluster->snapshot->now_ms - job->started_ms < min_run;
    return is_young ? SOLVER_SURPLUS : SOLVER_WHOLE;
}

void candidates_of_others(struct cycle *cycle, int32_t job)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->jobs[job].queue;
    uint8_t *is_victim = cycle->solver.request.is_victim;
    candidates_of_all(cycle, job);
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        const int32_t *jobs = cluster->queue_jobs + cluster->queue_first[q];
        int32_t n = cluster->queue_first[q + 1] - cluster->queue_first[q];
        int32_t taker = queue, loser = q;
        cluster_find_siblings(cluster, &taker, &loser);
        bool is_out = q == queue;
        int64_t min_run = is_out || n == 0 ? 0 : min_run_ms(cluster, loser, true);
        for (int32_t i = 0; i < n && (is_out || min_run > 0); i++) {
            if (is_out) {
                is_victim[jobs[i]] = SOLVER_NOT_A_VICTIM;
            } else if (is_victim[jobs[i]] != SOLVER_NOT_A_VICTIM) {
                is_victim[jobs[i]] = judge_min_run(cluster, jobs[i], min_run);
            }
        }
    }
}

/** Whether the job runs and only wants more: then others lose no more than what they have beyond
 *  their minimum. */
static bool only_grows(const struct cluster *cluster, int32_t job)
{
    return quantum_rank(cluster, job) != QUANTUM_BELOW;
}

/** Whether the job has waited too long for less than its minimum: then it takes from whoever of its
 *  queue is not spared for the same reason. */
static bool is_due(const struct cluster *cluster, int32_t job)
{
    return quantum_rank(cluster, job) == QUANTUM_BELOW && ageing_is_due(cluster, job);
}

static uint8_t judge_preempt(const struct cluster *cluster, int32_t job, int32_t victim,
                             int64_t min_run)
{
    int32_t own = cluster->jobs[job].priority, other = cluster->jobs[victim].priority;
    bool may_take = other < own || (other == own && is_due(cluster, job));
    if (!may_take || ageing_is_spared(cluster, victim)) {
        return SOLVER_NOT_A_VICTIM;
    }
    return only_grows(cluster, job) ? SOLVER_SURPLUS : judge_min_run(cluster, victim, min_run);
}

void candidates_of_queue(struct cycle *cycle, int32_t job)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->jobs[job].queue;
    int64_t min_run = min_run_ms(cluster, queue, false);
    update_running(cycle);
    memset(cycle->solver.request.is_victim, SOLVER_NOT_A_VICTIM, (size_t)cluster->snapshot->n_jobs);
    for (int32_t i = cluster->queue_first[queue]; i < cluster->queue_first[queue + 1]; i++) {
        int32_t victim = cluster->queue_jobs[i];
        if (victim != job && cycle->runs[victim] != SOLVER_NOT_A_VICTIM) {
            cycle->solver.request.is_victim[victim] = judge_preempt(cluster, job, victim, min_run);
        }
    }
}

bool candidates_when_due(struct cycle *cycle, int32_t job, const struct weir_sched_amount *amount)
{
    const struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    int32_t own = cluster->jobs[job].queue;
    bool is_any = false;
    if (!cluster->profile->guarantee_first || !cluster->profile->nominations ||
        !is_due(cluster, job) || !shares_is_within_quotas(cluster, own, amount)) {
        return false;
    }
    candidates_of_queue(cycle, job);
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        bool borrows = q != own && !shares_holds_its_own(cluster, q, amount, NULL);
        int64_t min_run = borrows ? min_run_ms(cluster, q, true) : 0;
        solver->request.tiers[q] = q != own;
        for (int32_t i = cluster->queue_first[q]; i < cluster->queue_first[q + 1]; i++) {
            int32_t victim = cluster->queue_jobs[i];
            if (borrows && cycle->runs[victim] != SOLVER_NOT_A_VICTIM &&
                !ageing_is_spared(cluster, victim)) {
                solver->request.is_victim[victim] = judge_min_run(cluster, victim, min_run);
                is_any = true;
            }
        }
    }
    return is_any;
}

bool candidates_are_no_more(const struct cluster *cluster, int32_t than, int32_t job)
{
    return (only_grows(cluster, job) || !only_grows(cluster, than)) &&
           (is_due(cluster, than) || !is_due(cluster, job));
}
