/** Jobs: what becomes of them by time, by lost nodes and devices, by disuse; and their placement. */
#include "control/engine/engine_private.h"

#include "base/log.h"
#include "control/schedule/idle.h"
#include "control/service.h"
#include "job/device.h"
#include "job/task_device.h"

#include <string.h>

/** What has become of one of them. */
struct job_unit {
    const char *id;
    const struct weir_job_event *event;
};

static weir_status apply_job_event(struct work *work, void *unit, struct weir_txn *txn,
                                   struct weir_error *err)
{
    const struct job_unit *job = unit;
    return control_job_event(&work->control, txn, job->id, job->event, err);
}

static void tell_job(struct work *work, const char *job, const struct weir_job_event *event)
{
    struct job_unit unit = {job, event};
    if (work_take_unit(work, "job", job)) {
        (void)work_run_unit(work, apply_job_event, &unit, true);
    }
}

/* Was this node of the job's found lost before, at another of its tasks? */
static bool was_told(const struct snapshot_job *job, size_t task)
{
    for (size_t i = 0; i < task; i++) {
        if (job->nodes[i] == job->nodes[task] && snapshot_is_on_node(job, i)) {
            return true;
        }
    }
    return false;
}

/* Is a node lost, for this job? One whose tasks stop themselves is waited for until they have. */
static bool is_lost_for(const struct work *work, const struct snapshot_node *node,
                        const struct weir_job *job)
{
    return node->is_lost &&
           (job->fence_ms == 0 ||
            weir_node_is_lost(&node->facts, work->control.now_ms, work->engine->watch.since_ms,
                              WEIR_MAX(job->fence_ms, weir_node_lost_ms())));
}

/* Tasks on a node that went silent are lost. @return Whether there were any. */
static bool lose_nodes(struct work *work, const struct snapshot_job *job)
{
    const struct snapshot *snapshot = scheduler_snapshot(work->engine->scheduler);
    bool is_any = false;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        const struct snapshot_node *node =
            job->nodes[i] >= 0 ? &snapshot->nodes[job->nodes[i]] : NULL;
        if (node != NULL && is_lost_for(work, node, &job->state.job) &&
            snapshot_is_on_node(job, i) && !was_told(job, i)) {
            struct weir_job_event event = {.type = WEIR_JOB_EVENT_NODE_LOST,
                                           .node = node->facts.name,
                                           .is_foreseen = node->is_end_foreseen};
            tell_job(work, job->state.job.id, &event);
            is_any = true;
        }
    }
    return is_any;
}

/* "device 3 (H100) of node a is bad"; NULL: it is as it should be. */
static const char *tell_unfit(struct work *work, const struct snapshot_job *job, size_t task)
{
    struct supply_device *devices[WEIR_TASK_DEVICES_MAX];
    const struct snapshot *snapshot = scheduler_snapshot(work->engine->scheduler);
    size_t n = snapshot_devices(snapshot, job, task, devices);
    for (size_t i = 0; i < n; i++) {
        if (devices[i] == NULL || strcmp(devices[i]->state, WEIR_DEVICE_OK) != 0) {
            return weir_arena_printf(work->control.arena, "a device that it had on node %s is %s",
                                     snapshot->nodes[job->nodes[task]].facts.name,
                                     devices[i] != NULL ? devices[i]->state : WEIR_DEVICE_GONE);
        }
    }
    return NULL;
}

/* Tasks whose device is bad or gone move. @return Whether there were any. */
static bool lose_devices(struct work *work, const struct snapshot_job *job)
{
    bool is_any = false;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        const struct weir_task *task = &job->state.tasks[i];
        bool runs = job->phases[i] == WEIR_TASK_STARTING || job->phases[i] == WEIR_TASK_RUNNING;
        const char *why =
            runs && task->devices != NULL && job->nodes[i] >= 0 ? tell_unfit(work, job, i) : NULL;
        if (why != NULL) {
            const struct weir_job_event event = {.type = WEIR_JOB_EVENT_DEVICE_LOST,
                                                 .task = task->id,
                                                 .attempt = task->attempt,
                                                 .text = why};
            tell_job(work, job->state.job.id,
                     &event); /* of a gang all tasks move; once is enough */
            is_any = true;
        }
        if (is_any && !weir_job_has_independent_tasks(&job->state)) {
            break;
        }
    }
    return is_any;
}

/* What has become of jobs without anybody's doing. @return Whether there was anything. */
static bool notice_jobs(struct work *work)
{
    const struct weir_job_event tick = {.type = WEIR_JOB_EVENT_TICK};
    const struct snapshot *snapshot = scheduler_snapshot(work->engine->scheduler);
    bool is_any = false;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        const struct snapshot_job *job = snapshot->jobs[i];
        bool has_lost = lose_nodes(work, job) || lose_devices(work, job);
        bool is_due =
            weir_job_next_tick_ms(&job->state, work->control.now_ms) <= work->control.now_ms;
        if (is_due && !has_lost) {
            tell_job(work, job->state.job.id, &tick);
        }
        is_any = is_any || has_lost || is_due;
    }
    return is_any;
}

int64_t engine_note_bind(void *context, const char *job, weir_status status,
                         const struct weir_error *err)
{
    struct work *work = ((struct engine *)context)->work;
    (void)work_take_unit(work, "job", job);
    work_note_outcome(work, status, err);
    return control_is_unreadable(status) ? ASIDE_AGAIN_MS : SCHEDULER_AGAIN_MS;
}

static weir_status read_cluster(struct work *work, struct weir_error *err)
{
    return scheduler_read(work->engine->scheduler, work->control.now_ms,
                          work->engine->watch.since_ms, err);
}

/* @return When it is due again. */
static int64_t ask_clusters(struct work *work)
{
    const struct engine_config *config = &work->engine->config;
    struct weir_error err;
    bool is_asked;
    int64_t next_ms;
    weir_status status = scheduler_demand(work->engine->scheduler, work->control.now_ms,
                                          work->engine->watch.since_ms, &next_ms, &is_asked, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "engine_cannot_ask_clusters", WEIR_KV_STR("error", err.message));
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    if (is_asked && config->asked != NULL) {
        config->asked(config->asked_context);
    }
    return next_ms;
}

int64_t engine_run_jobs(struct work *work)
{
    struct weir_error err;
    struct scheduler *scheduler = work->engine->scheduler;
    weir_status status = read_cluster(work, &err);
    if (status == WEIR_OK && notice_jobs(work)) {
        status = read_cluster(work, &err);
    }
    if (status == WEIR_OK) {
        status = scheduler_plan(scheduler, work->control.now_ms, &err);
    }
    vitals_note(work->engine->config.vitals, VITALS_PLAN, status, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "engine_cannot_plan", WEIR_KV_STR("error", err.message));
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    int64_t due_ms =
        scheduler_commit(scheduler, work->control.now_ms, work->engine->watch.since_ms);
    return WEIR_MIN(due_ms, ask_clusters(work));
}

/* ---- what nobody uses ------------------------------------------------------------------------ */

struct idle_jobs {
    struct control_idle_job *items;
    size_t n;
};

static weir_status list_idle(struct work *work, void *idle, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct idle_jobs *out = idle;
    return control_idle_jobs(&work->control, txn, &out->items, &out->n, err);
}

void engine_hold_idle(struct work *work)
{
    struct weir_error err;
    struct idle_jobs idle;
    if (work_read(work, list_idle, &idle, &err) != WEIR_OK) {
        return; /* tried again with the next look */
    }
    for (size_t i = 0; i < idle.n; i++) {
        const struct weir_job_event hold = {.type = WEIR_JOB_EVENT_HOLD,
                                            .text = idle.items[i].text};
        tell_job(work, idle.items[i].id, &hold);
    }
}

static weir_status list_idle_services(struct work *work, void *idle, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct idle_jobs *out = idle;
    return control_idle_services(&work->control, txn, &out->items, &out->n, err);
}

static weir_status stop_idle_service(struct work *work, void *service, struct weir_txn *txn,
                                     struct weir_error *err)
{
    const struct control_idle_job *idle = service;
    struct weir_service_look look;
    return control_service_stop(&work->control, txn, idle->id, idle->text, &look, err);
}

void engine_stop_idle_services(struct work *work)
{
    struct weir_error err;
    struct idle_jobs idle;
    if (work_read(work, list_idle_services, &idle, &err) != WEIR_OK) {
        return; /* tried again with the next look */
    }
    for (size_t i = 0; i < idle.n; i++) {
        (void)work_write(work, stop_idle_service, &idle.items[i]);
    }
}
