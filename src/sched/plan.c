#include "sched/sched.h"

#include "base/macros.h"
#include "sched/action/actions.h"
#include "sched/evict/grace.h"
#include "sched/model/quantum.h"
#include "sched/place/explain.h"
#include "sched/place/nomination.h"

#include <stdlib.h>
#include <string.h>

static weir_status cycle_init(struct cycle *cycle, const struct weir_sched_snapshot *snapshot,
                              const struct weir_sched_profile *profile)
{
    WEIR_TRY(cluster_init(&cycle->cluster, snapshot, profile));
    WEIR_TRY(placer_init(&cycle->placer, &cycle->cluster));
    WEIR_TRY(solver_init(&cycle->solver, &cycle->cluster, &cycle->placer));
    WEIR_TRY(backfill_init(&cycle->backfill, &cycle->cluster, &cycle->placer));
    cycle->tasks = calloc((size_t)snapshot->n_tasks + 1, sizeof *cycle->tasks);
    cycle->is_listed = calloc((size_t)snapshot->n_jobs + 1, sizeof *cycle->is_listed);
    cycle->is_withheld = calloc((size_t)snapshot->n_jobs + 1, sizeof *cycle->is_withheld);
    cycle->owed = calloc((size_t)snapshot->n_queues + 1, sizeof *cycle->owed);
    cycle->first_waiting = calloc((size_t)snapshot->n_queues + 1, sizeof *cycle->first_waiting);
    cycle->runs = calloc((size_t)snapshot->n_jobs + 1, sizeof *cycle->runs);
    cycle->runs_version = -1;
    if (cycle->first_waiting == NULL || cycle->runs == NULL || cycle->tasks == NULL ||
        cycle->is_listed == NULL || cycle->is_withheld == NULL || cycle->owed == NULL) {
        return WEIR_ERR_NOMEM;
    }
    return shares_divide(&cycle->cluster);
}

static void cycle_fini(struct cycle *cycle)
{
    free(cycle->tasks);
    free(cycle->is_listed);
    free(cycle->is_withheld);
    free(cycle->owed);
    free(cycle->first_waiting);
    free(cycle->runs);
    backfill_fini(&cycle->backfill);
    solver_fini(&cycle->solver);
    placer_fini(&cycle->placer);
    cluster_fini(&cycle->cluster);
}

/** Whether the task is to be placed now, or in time. */
static bool is_placed(const struct cluster *cluster, int32_t task)
{
    uint8_t phase = cluster->tasks[task].phase;
    return phase == PHASE_BOUND ||
           (phase == PHASE_PIPELINED && !nomination_is_known(cluster, task));
}

static void add_action(struct weir_sched_plan *plan, const struct cluster *cluster, int32_t task,
                       enum weir_sched_action_kind kind, int32_t *at_device)
{
    const struct task_state *state = &cluster->tasks[task];
    bool is_evict = kind == WEIR_SCHED_EVICT || kind == WEIR_SCHED_REQUEST_CHECKPOINT;
    int32_t n_devices = cluster_demand(cluster, task)->n_devices;
    struct weir_sched_action *action = &plan->actions[plan->n_actions++];
    *action =
        (struct weir_sched_action){.kind = kind,
                                   .task = task,
                                   .node = is_evict ? state->current_node : state->planned_node,
                                   .n_devices = n_devices,
                                   .zones = is_evict ? state->current_zones : state->zones,
                                   .by_job = is_evict ? state->by_job : WEIR_SCHED_NONE};
    if (is_evict) {
        action->reason = (enum weir_sched_evict_reason)state->reason;
    }
    if (n_devices > 0) {
        const int32_t *from = is_evict ? cluster->current_devices : cluster->planned_devices;
        action->devices = plan->device_pool + *at_device;
        memcpy(plan->device_pool + *at_device, from + state->first_assigned,
               (size_t)n_devices * sizeof(int32_t));
        *at_device += n_devices;
    }
}

static void add_actions(struct weir_sched_plan *plan, const struct cluster *cluster)
{
    int32_t at_device = 0, n_tasks = cluster->snapshot->n_tasks;
    for (int32_t t = 0; t < n_tasks; t++) {
        enum grace_step grace_step = grace_step_of(cluster, t);
        if (grace_step != GRACE_NOTHING) {
            add_action(plan, cluster, t,
                       grace_step == GRACE_EVICT ? WEIR_SCHED_EVICT : WEIR_SCHED_REQUEST_CHECKPOINT,
                       &at_device);
        }
    }
    for (int32_t t = 0; t < n_tasks; t++) {
        if (is_placed(cluster, t)) {
            bool is_now = cluster->tasks[t].phase == PHASE_BOUND;
            add_action(plan, cluster, t, is_now ? WEIR_SCHED_BIND : WEIR_SCHED_PIPELINE,
                       &at_device);
        }
    }
}

static int32_t first_pipelined(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    for (int32_t t = given->first_task; t < given->first_task + given->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED) {
            return t;
        }
    }
    return -1;
}

/** The job to which a place went that this plan had given to this one first; -1. */
static int32_t taken_by(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    for (int32_t t = given->first_task; t < given->first_task + given->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PENDING && cluster->tasks[t].by_job >= 0) {
            return cluster->tasks[t].by_job;
        }
    }
    return -1;
}

static bool has_wait(const struct cluster *cluster, int32_t job)
{
    const struct group_state *root = &cluster->groups[cluster->jobs[job].first_group];
    return root->n_pipelined > 0 ||
           (root->n_pending > 0 && !quantum_is_satisfied(cluster, cluster->jobs[job].first_group));
}

/** Why a job waits, if it does: what the last action that tried it said. */
static bool find_wait(struct cluster *cluster, int32_t job, struct weir_sched_wait *out)
{
    if (!has_wait(cluster, job)) {
        return false;
    }
    const struct group_state *root = &cluster->groups[cluster->jobs[job].first_group];
    *out = (struct weir_sched_wait){0};
    if (cluster->jobs[job].wait >= 0) {
        *out = *cluster_wait(cluster, job);
    }
    out->job = job;
    if (root->n_pipelined > 0) {
        int32_t task = first_pipelined(cluster, job);
        out->code = WEIR_SCHED_WAIT_ROOM_COMING;
        out->object = cluster->tasks[task].planned_node;
        out->expected_start_ms = 0; /* Who leaves does not say when. */
    } else if (out->code == WEIR_SCHED_WAIT_NONE && taken_by(cluster, job) >= 0) {
        out->code = WEIR_SCHED_WAIT_RESERVED;
        out->object = taken_by(cluster, job);
    } else if (out->code == WEIR_SCHED_WAIT_NONE) {
        out->code = WEIR_SCHED_WAIT_MEMBERS;
        out->need = root->min_member;
        out->have = root->n_pending + root->n_alive;
        out->object = WEIR_SCHED_NONE;
    }
    bool is_of_share =
        out->code == WEIR_SCHED_WAIT_QUEUE_LIMIT || out->code == WEIR_SCHED_WAIT_QUEUE_QUOTA;
    if (out->resource >= WEIR_SCHED_FIRST_MODEL && !is_of_share) {
        out->resource = WEIR_SCHED_ACCELERATOR; /* That was what an earlier attempt met. */
    }
    explain_text(cluster, out);
    return true;
}

static weir_status make_plan(struct cluster *cluster, struct weir_sched_plan *plan)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    size_t n_actions = 0, n_devices = 0, n_waits = 0;
    struct weir_sched_wait wait;
    for (int32_t t = 0; t < snapshot->n_tasks; t++) {
        size_t n = grace_step_of(cluster, t) != GRACE_NOTHING;
        n += is_placed(cluster, t);
        n_actions += n;
        n_devices += n * (size_t)cluster_demand(cluster, t)->n_devices;
    }
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        n_waits += has_wait(cluster, j);
    }
    plan->actions = calloc(n_actions + 1, sizeof *plan->actions);
    plan->device_pool = calloc(n_devices + 1, sizeof *plan->device_pool);
    plan->waits = calloc(n_waits + 1, sizeof *plan->waits);
    plan->queues = calloc((size_t)snapshot->n_queues + 1, sizeof *plan->queues);
    if (plan->actions == NULL || plan->device_pool == NULL || plan->waits == NULL ||
        plan->queues == NULL) {
        return WEIR_ERR_NOMEM;
    }
    add_actions(plan, cluster);
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        if (find_wait(cluster, j, &wait)) {
            plan->waits[plan->n_waits++] = wait;
        }
    }
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        const struct queue_state *queue = &cluster->queues[q];
        plan->queues[q] = (struct weir_sched_queue_share){queue->fair_share, queue->requested,
                                                          queue->allocated, queue->non_preemptible};
    }
    plan->n_decisions = cluster->n_decisions;
    return WEIR_OK;
}

static weir_status run_actions(struct cycle *cycle)
{
    WEIR_TRY(nomination_drop_void(&cycle->cluster));
    for (const char *at = cycle->cluster.profile->actions; *at != '\0';) {
        size_t len = strcspn(at, ",");
        WEIR_TRY(action_named(at, len)(cycle));
        at += len + (at[len] == ',');
    }
    bool binds = strstr(cycle->cluster.profile->actions, "allocate") != NULL;
    if (binds && cycle->cluster.profile->guarantee_first && cycle->cluster.changes.has_freed) {
        WEIR_TRY(action_give_rest(cycle));
    }
    WEIR_TRY(action_allocate_withheld(cycle));
    return binds ? action_bind_ready(cycle) : cycle->cluster.status;
}

weir_status weir_sched_plan(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_profile *profile, struct weir_sched_plan **out,
                            struct weir_error *err)
{
    WEIR_TRY(weir_sched_profile_check(profile, err));
    WEIR_TRY(weir_sched_snapshot_check(snapshot, err));
    struct cycle cycle = {0};
    struct weir_sched_plan *plan = calloc(1, sizeof *plan);
    weir_status status = plan == NULL ? WEIR_ERR_NOMEM : cycle_init(&cycle, snapshot, profile);
    if (status == WEIR_OK) {
        status = run_actions(&cycle);
    }
    if (status == WEIR_OK) {
        status = make_plan(&cycle.cluster, plan);
    }
    cycle_fini(&cycle);
    if (status != WEIR_OK) {
        weir_sched_plan_destroy(plan);
        return weir_error_set(err, status, "planning: %s", weir_status_text(status));
    }
    *out = plan;
    return WEIR_OK;
}

void weir_sched_plan_destroy(struct weir_sched_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    free(plan->actions);
    free(plan->device_pool);
    free(plan->waits);
    free(plan->queues);
    free(plan);
}
