#include "control/engine.h"

#include "base/deadline.h"
#include "base/log.h"
#include "base/uuid.h"
#include "control/alerter.h"
#include "control/aside.h"
#include "control/control.h"
#include "control/deploy.h"
#include "control/idle.h"
#include "control/observe.h"
#include "control/preparer.h"
#include "control/rollout.h"
#include "control/scheduler.h"
#include "control/service.h"
#include "control/sweeper.h"
#include "control/watcher.h"
#include "job/device.h"
#include "job/task_device.h"
#include "job/usage.h"
#include "store/identity.h"
#include "store/stmt.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OUTBOX_LEASE_MS    30000 /* Like the retry, within WEIR_OUTBOX_DELAY_MAX_MS. */
#define OUTBOX_RETRY_MS    1000
#define OUTBOX_MAX_TRIES   20
#define OUTBOX_BATCH       32
#define IDLE_MAX_MS        1000
#define EXPIRE_EVERY_MS    600000
#define IDLE_LOOK_EVERY_MS 10000               /* for jobs that use nothing of what they have */
#define OBSERVE_EVERY_MS   30000               /* what triggers of IONs look at */
#define FREEZE_LOOK_MS     100                 /* while a preparation's dataset is frozen */
#define COUNT_EVERY_MS     2000                /* what tasks that wait ask for */
#define UNIT_MAX_BYTES     ((size_t)256 << 20) /* of one job or ION in memory */

struct engine {
    struct engine_config config;
    char *state_dir, *server_url;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_notified, is_stopping;
    struct weir_node_watch watch;
    int64_t next_expire_mono_ms, next_idle_mono_ms, next_observe_mono_ms, next_count_mono_ms,
        next_sample_mono_ms;
    struct watcher watcher;
    struct alerter alerter;
    struct preparer preparer;
    struct sweeper sweeper;
    struct aside aside;
    struct scheduler *scheduler;
    struct work *work; /* Of the round that runs. */
};

struct work;
typedef weir_status (*work_fn)(struct work *work, struct weir_txn *txn, struct weir_error *err);

/* One round: control transactions with a list of publications. What a round lists lies in its
 * arena; what one job, ION or action needs, in one of its own (run_unit). */
struct work {
    struct engine *engine;
    struct control control;
    work_fn fn;
    const char *job; /**< For job work. */
    const struct weir_job_event *job_event;
    const char *ion;                     /**< For ION work. */
    const char *deployment;              /**< For deployments' work. */
    const struct weir_deploy_load *load; /**< Of that; NULL: not known. */
    bool is_due;                         /**< Out: a deployment's tick; an ION's shift, again. */
    bool observes;                       /**< In this round triggers look at the store. */
    const struct weir_outbox *action;    /**< For outbox work. */
    struct weir_outbox *actions;
    size_t n_actions;
    char **ids;
    size_t n_ids;
    struct control_idle_job *idle;
    size_t n_idle;
    const struct control_idle_job *idle_service;
    int64_t next_ms;     /**< Out: when to look again. */
    char subject[128];   /**< Of the unit: "job/ID", "ion/NAME".  */
    const char *problem; /**< Why it cannot be loaded. */
};

static weir_status run_work_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct work *work = context;
    json_array_clear(work->control.publish);
    return work->fn(work, txn, err);
}

static void publish_all(struct work *work)
{
    control_publish_all(&work->engine->config.listener, work->control.publish);
    json_array_clear(work->control.publish);
}

static weir_status run_write_quietly(struct work *work, work_fn fn, struct weir_error *err)
{
    work->fn = fn;
    WEIR_TRY(weir_store_write(work->engine->config.store, run_work_in, work, err));
    publish_all(work);
    return WEIR_OK;
}

static weir_status run_write(struct work *work, work_fn fn)
{
    struct weir_error err = {0};
    weir_status status = run_write_quietly(work, fn, &err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("error", err.message));
    }
    return status;
}

/* ---- units: one job, ION or action ----------------------------------------------------------- */

static weir_status raise_unreadable(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_raise_unreadable(&work->control, txn, work->subject, work->problem, err);
}

static weir_status resolve_unreadable(struct work *work, struct weir_txn *txn,
                                      struct weir_error *err)
{
    return control_resolve_unreadable(&work->control, txn, work->subject, err);
}

/* Name the one that cannot be loaded, once; the others go on. */
static void set_aside(struct work *work, const struct weir_error *why)
{
    if (aside_put(&work->engine->aside, work->subject, weir_mono_ms())) {
        weir_log(WEIR_LOG_ERROR, "engine_set_aside", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", why->message));
        work->problem = why->message;
        (void)run_write(work, raise_unreadable);
    }
}

/* How a step of the unit `work->subject` went. */
static void note_outcome(struct work *work, weir_status status, const struct weir_error *err)
{
    if (control_is_unreadable(status)) {
        set_aside(work, err);
    } else if (status == WEIR_OK && aside_take(&work->engine->aside, work->subject)) {
        (void)run_write(work, resolve_unreadable);
    } else if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", err->message));
    }
}

/* Run one step of the unit `work->subject` with an arena of its own: what it needs is free again
 * before the next, and one that is too large fails alone. */
static weir_status run_unit(struct work *work, work_fn fn, bool is_write)
{
    struct weir_error err = {0};
    struct weir_arena *round = work->control.arena, unit;
    weir_arena_init(&unit, UNIT_MAX_BYTES);
    work->control.arena = &unit;
    work->fn = fn;
    weir_status status = is_write
                             ? run_write_quietly(work, fn, &err)
                             : weir_store_read(work->engine->config.store, run_work_in, work, &err);
    note_outcome(work, status, &err);
    work->control.arena = round;
    weir_arena_fini(&unit);
    return status;
}

/* Begin with the next unit; false if it is set aside for now. */
static bool take_unit(struct work *work, const char *kind, const char *id)
{
    (void)snprintf(work->subject, sizeof work->subject, "%s/%s", kind, id);
    work->next_ms = INT64_MAX;
    return !aside_has(&work->engine->aside, work->subject, weir_mono_ms());
}

/* ---- outbox ---------------------------------------------------------------------------------- */

static weir_status take_actions(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_outbox_take(txn, work->control.now_ms, OUTBOX_LEASE_MS, OUTBOX_BATCH,
                            work->control.arena, &work->actions, &work->n_actions, err);
}

static weir_status do_action(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(control_execute(&work->control, txn, work->action->kind, work->action->payload, err));
    return weir_outbox_done(txn, work->action->seq, work->control.now_ms, err);
}

static weir_status retry_action(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    bool is_last = work->action->attempts >= OUTBOX_MAX_TRIES;
    return weir_outbox_fail(txn, work->action->seq, "the action failed; see the server's log",
                            is_last ? 0 : work->control.now_ms + OUTBOX_RETRY_MS,
                            work->control.now_ms, err);
}

static weir_status is_outbox_due(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_outbox_next_due(txn, work->control.now_ms, &work->next_ms, err);
}

/* In an arena of its own, too. What fails is tried again by the outbox's own rule. */
static weir_status run_action(struct work *work)
{
    struct weir_arena *round = work->control.arena, unit;
    weir_arena_init(&unit, UNIT_MAX_BYTES);
    work->control.arena = &unit;
    weir_status status = run_write(work, do_action);
    work->control.arena = round;
    weir_arena_fini(&unit);
    return status;
}

static int64_t run_outbox(struct work *work)
{
    struct weir_error err;
    work->fn = is_outbox_due;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return work->control.now_ms + IDLE_MAX_MS;
    }
    if (work->next_ms > work->control.now_ms) {
        return work->next_ms;
    }
    if (run_write(work, take_actions) != WEIR_OK) {
        return work->control.now_ms + IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_actions; i++) {
        work->action = &work->actions[i];
        if (run_action(work) != WEIR_OK) {
            (void)run_write(work, retry_action);
        }
    }
    return work->control.now_ms; /* actions cause more */
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static weir_status apply_job_event(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_job_event(&work->control, txn, work->job, work->job_event, err);
}

static void tell_job(struct work *work, const char *job, const struct weir_job_event *event)
{
    work->job = job;
    work->job_event = event;
    if (take_unit(work, "job", job)) {
        (void)run_unit(work, apply_job_event, true);
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

/* Tasks on a node that went silent are lost. @return Whether there were any. */
static bool lose_nodes(struct work *work, const struct snapshot_job *job)
{
    const struct snapshot *snapshot = scheduler_snapshot(work->engine->scheduler);
    bool is_any = false;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        const struct snapshot_node *node =
            job->nodes[i] >= 0 ? &snapshot->nodes[job->nodes[i]] : NULL;
        if (node != NULL && node->is_lost && snapshot_is_on_node(job, i) && !was_told(job, i)) {
            struct weir_job_event event = {.type = WEIR_JOB_EVENT_NODE_LOST,
                                           .node = node->facts.name};
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
        if (is_any && !weir_job_is_loose(&job->state)) {
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

static weir_status list_idle(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_idle_jobs(&work->control, txn, &work->idle, &work->n_idle, err);
}

/* Devices that are not used are taken back: their jobs are held. */
static void hold_idle(struct work *work)
{
    struct weir_error err;
    work->fn = list_idle;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return; /* tried again with the next look */
    }
    for (size_t i = 0; i < work->n_idle; i++) {
        const struct weir_job_event hold = {.type = WEIR_JOB_EVENT_HOLD,
                                            .text = work->idle[i].text};
        tell_job(work, work->idle[i].id, &hold);
    }
}

static weir_status list_idle_services(struct work *work, struct weir_txn *txn,
                                      struct weir_error *err)
{
    return control_idle_services(&work->control, txn, &work->idle, &work->n_idle, err);
}

static weir_status stop_idle_service(struct work *work, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_service_look look;
    return control_service_stop(&work->control, txn, work->idle_service->id,
                                work->idle_service->text, &look, err);
}

/* Programs that nobody looks at any more. */
static void stop_idle_services(struct work *work)
{
    struct weir_error err;
    work->fn = list_idle_services;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return; /* tried again with the next look */
    }
    for (size_t i = 0; i < work->n_idle; i++) {
        work->idle_service = &work->idle[i];
        (void)run_write(work, stop_idle_service);
    }
}

/* A job could or could not be bound: one that cannot be loaded is set aside, as by any other step. */
static int64_t note_bind(void *context, const char *job, weir_status status,
                         const struct weir_error *err)
{
    struct work *work = ((struct engine *)context)->work;
    (void)take_unit(work, "job", job);
    note_outcome(work, status, err);
    return control_is_unreadable(status) ? ASIDE_AGAIN_MS : SCHEDULER_AGAIN_MS;
}

static weir_status read_cluster(struct work *work, struct weir_error *err)
{
    return scheduler_read(work->engine->scheduler, work->control.now_ms,
                          work->engine->watch.since_ms, err);
}

static int64_t run_jobs(struct work *work)
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
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "engine_cannot_plan", WEIR_KV_STR("error", err.message));
        return work->control.now_ms + IDLE_MAX_MS;
    }
    return scheduler_commit(scheduler, work->control.now_ms, work->engine->watch.since_ms);
}

/* ---- IONs ------------------------------------------------------------------------------------ */

static weir_status list_ions(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_ion_list_active(txn, work->control.arena, &work->ids, &work->n_ids, err);
}

static weir_status peek_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    work->is_due = false;
    WEIR_TRY(weir_ion_load(txn, work->ion, work->control.arena, &state, err));
    work->next_ms = weir_ion_next_tick_ms(&state, work->control.now_ms);
    if (work->observes) {
        WEIR_TRY(control_rollout_is_refused(&work->control, txn, &state, &work->is_due, err));
    }
    if (work->observes && work->next_ms > work->control.now_ms) {
        bool is_due;
        WEIR_TRY(control_observe_is_due(&work->control, txn, &state, &is_due, err));
        work->next_ms = is_due ? work->control.now_ms : work->next_ms;
    }
    return control_rollout_look(&work->control, txn, &state, &work->next_ms, err);
}

static weir_status tick_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_ion_tick(&work->control, txn, work->ion, err);
}

static weir_status shift_again(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_rollout_again(&work->control, txn, work->ion, err);
}

static void run_ion(struct work *work)
{
    if (!take_unit(work, "ion", work->ion) || run_unit(work, peek_ion, false) != WEIR_OK) {
        return;
    }
    if (work->is_due) {
        (void)run_unit(work, shift_again, true);
    }
    if (work->next_ms <= work->control.now_ms) {
        (void)run_unit(work, tick_ion, true);
    }
}

static int64_t run_ions(struct work *work)
{
    struct weir_error err;
    int64_t next_ms = INT64_MAX;
    work->fn = list_ions;
    work->observes = weir_mono_ms() >= work->engine->next_observe_mono_ms;
    if (work->observes) {
        work->engine->next_observe_mono_ms = weir_mono_ms() + OBSERVE_EVERY_MS;
    }
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return work->control.now_ms + IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        work->ion = work->ids[i];
        run_ion(work);
        next_ms = WEIR_MIN(next_ms, work->next_ms);
    }
    return next_ms;
}

/* ---- deployments ----------------------------------------------------------------------------- */

static weir_status list_deployments(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_txn_query_texts(txn, "SELECT name FROM deployments ORDER BY name", WEIR_NO_BINDS,
                                work->control.arena, &work->ids, &work->n_ids, err);
}

static weir_status peek_deployment(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_deploy_is_due(txn, work->deployment, work->load, work->control.now_ms,
                                 work->control.arena, &work->is_due, err);
}

static weir_status tick_deployment(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_deploy_event tick = {
        .type = WEIR_DEPLOY_EVENT_TICK, .actor = "system", .load = work->load};
    return control_deploy_event(&work->control, txn, work->deployment, &tick, err);
}

/* Each is looked at in every round: the load is nowhere in the store, and no round is far off. */
static void run_deployments(struct work *work)
{
    struct weir_error err;
    const struct engine_config *config = &work->engine->config;
    work->fn = list_deployments;
    if (weir_store_read(config->store, run_work_in, work, &err) != WEIR_OK) {
        return; /* tried again with the next round */
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        struct weir_deploy_load load;
        work->deployment = work->ids[i];
        bool is_known =
            config->load != NULL && config->load(config->load_context, work->deployment, &load);
        work->load = is_known ? &load : NULL;
        if (take_unit(work, "deployment", work->deployment) &&
            run_unit(work, peek_deployment, false) == WEIR_OK && work->is_due) {
            (void)run_unit(work, tick_deployment, true);
        }
    }
}

static weir_status expire_identities(struct work *work, struct weir_txn *txn,
                                     struct weir_error *err)
{
    return weir_identity_expire(txn, work->control.now_ms, err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static weir_status count_waiting(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    int64_t n;
    return weir_usage_roll_waiting(txn, work->control.now_ms, &n, err);
}

static weir_status add_samples(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_queue_sample *samples;
    size_t n;
    scheduler_sample_queues(work->engine->scheduler, work->control.now_ms, work->control.arena,
                            &samples, &n);
    return weir_queue_history_add(txn, samples, n, work->control.now_ms, err);
}

/* The account (job/usage.h) of what no heartbeat counts. */
static void keep_account(struct work *work)
{
    struct engine *engine = work->engine;
    int64_t now_ms = weir_mono_ms();
    if (now_ms >= engine->next_count_mono_ms &&
        scheduler_snapshot(engine->scheduler)->n_pending > 0) {
        (void)run_write(work, count_waiting);
        engine->next_count_mono_ms = now_ms + COUNT_EVERY_MS;
    }
    if (now_ms >= engine->next_sample_mono_ms) {
        (void)run_write(work, add_samples);
        engine->next_sample_mono_ms = now_ms + WEIR_QUEUE_SAMPLE_MS;
    }
}

/* One round over everything. Returns when the next one is due. */
static int64_t run_round(struct engine *engine)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct control_listener *listener = &engine->config.listener;
    if (listener->tick != NULL) {
        listener->tick(listener->context, weir_clock_now_ms(engine->config.clock));
    }
    struct work work = {.engine = engine,
                        .control = {.arena = &arena,
                                    .now_ms = weir_clock_now_ms(engine->config.clock),
                                    .actor = "system",
                                    .state_dir = engine->state_dir,
                                    .server_url = engine->server_url,
                                    .figures = &engine->config.figures,
                                    .publish = json_array()}};
    if (weir_node_watch_look(&engine->watch, work.control.now_ms, weir_mono_ms())) {
        weir_log(WEIR_LOG_WARN, "wall_clock_was_set",
                 WEIR_KV_STR("effect", "every node has the full time to report"));
    }
    engine->work = &work;
    watcher_look(&engine->watcher, work.control.now_ms, engine->watch.since_ms, weir_mono_ms());
    alerter_look(&engine->alerter);
    int64_t due = run_ions(&work);
    if (preparer_look(&engine->preparer, work.control.now_ms)) {
        due = WEIR_MIN(due, work.control.now_ms + FREEZE_LOOK_MS);
    }
    int64_t sweeps_in = sweeper_look(&engine->sweeper, work.control.now_ms);
    due = WEIR_MIN(due, work.control.now_ms + WEIR_MIN(sweeps_in, (int64_t)IDLE_MAX_MS));
    run_deployments(&work);
    int64_t outbox_due = run_outbox(&work);
    if (weir_mono_ms() >= engine->next_idle_mono_ms) {
        hold_idle(&work);
        stop_idle_services(&work);
        engine->next_idle_mono_ms = weir_mono_ms() + IDLE_LOOK_EVERY_MS;
    }
    int64_t jobs_due = run_jobs(&work);
    keep_account(&work);
    if (weir_mono_ms() >= engine->next_expire_mono_ms) {
        (void)run_write(&work, expire_identities);
        aside_sweep(&engine->aside, weir_mono_ms());
        aside_sweep(&engine->sweeper.aside, weir_mono_ms());
        engine->next_expire_mono_ms = weir_mono_ms() + EXPIRE_EVERY_MS;
    }
    json_decref(work.control.publish);
    weir_arena_fini(&arena);
    return WEIR_MIN(due, WEIR_MIN(outbox_due, jobs_due));
}

/* Wait for a notification, or until `due_ms` of the wall clock, but never long: a clock that is set
 * back must not stop the engine. */
static bool wait_for_work(struct engine *engine, int64_t due_ms)
{
    int64_t left_ms =
        WEIR_MIN(due_ms - weir_clock_now_ms(engine->config.clock), (int64_t)IDLE_MAX_MS);
    struct timespec until = weir_deadline_after(left_ms);
    pthread_mutex_lock(&engine->lock);
    while (!engine->is_notified && !engine->is_stopping &&
           weir_cond_wait_until(&engine->woken, &engine->lock, &until) == 0) {
    }
    engine->is_notified = false;
    bool goes_on = !engine->is_stopping;
    pthread_mutex_unlock(&engine->lock);
    return goes_on;
}

static weir_status release_outbox(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_outbox_release(txn, work->control.now_ms, err);
}

static void *engine_main(void *argument)
{
    struct engine *engine = argument;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct work work = {
        .engine = engine,
        .control = {.arena = &arena, .now_ms = engine->watch.since_ms, .publish = json_array()}};
    (void)run_write(&work, release_outbox);
    json_decref(work.control.publish);
    weir_arena_fini(&arena);
    while (wait_for_work(engine, run_round(engine))) {
    }
    return NULL;
}

weir_status engine_start(const struct engine_config *config, struct engine **out,
                         struct weir_error *err)
{
    struct engine *engine = weir_xalloc(sizeof *engine);
    engine->config = *config;
    engine->config.clock = config->clock != NULL ? config->clock : &weir_system_clock;
    engine->state_dir = weir_xstrdup(config->state_dir);
    engine->server_url = weir_xstrdup(config->server_url);
    engine->watcher = (struct watcher){.store = config->store,
                                       .listener = config->listener,
                                       .blobs = config->blobs,
                                       .state_dir = engine->state_dir};
    engine->alerter = (struct alerter){.store = config->store,
                                       .clock = engine->config.clock,
                                       .listener = config->listener,
                                       .server_url = engine->server_url,
                                       .told = config->told,
                                       .context = config->told_context};
    engine->preparer = (struct preparer){.store = config->store,
                                         .listener = config->listener,
                                         .freezer = config->freezer,
                                         .state_dir = engine->state_dir};
    engine->sweeper = (struct sweeper){.store = config->store, .listener = config->listener};
    weir_node_watch_start(&engine->watch, weir_clock_now_ms(engine->config.clock), weir_mono_ms());
    const struct scheduler_config scheduler = {.store = config->store,
                                               .listener = config->listener,
                                               .state_dir = engine->state_dir,
                                               .server_url = engine->server_url,
                                               .wrote = note_bind,
                                               .context = engine};
    engine->scheduler = scheduler_create(&scheduler);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->woken, NULL);
    int reason = pthread_create(&engine->thread, NULL, engine_main, engine);
    if (reason != 0) {
        scheduler_destroy(engine->scheduler);
        free(engine->state_dir);
        free(engine->server_url);
        free(engine);
        return weir_error_set_errno(err, reason, "cannot start the engine's thread");
    }
    *out = engine;
    return WEIR_OK;
}

void engine_notify(void *context)
{
    struct engine *engine = context;
    if (engine == NULL) {
        return;
    }
    pthread_mutex_lock(&engine->lock);
    engine->is_notified = true;
    pthread_cond_signal(&engine->woken);
    pthread_mutex_unlock(&engine->lock);
}

void engine_stop(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    pthread_mutex_lock(&engine->lock);
    engine->is_stopping = true;
    pthread_cond_signal(&engine->woken);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    aside_fini(&engine->aside);
    aside_fini(&engine->sweeper.aside);
    scheduler_destroy(engine->scheduler);
    pthread_cond_destroy(&engine->woken);
    pthread_mutex_destroy(&engine->lock);
    free(engine->state_dir);
    free(engine->server_url);
    free(engine);
}
