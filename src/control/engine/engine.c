#include "control/engine/engine_private.h"

#include "base/deadline.h"
#include "control/remake.h"
#include "job/heard.h"
#include "job/usage.h"
#include "store/identity.h"

#include <stdbool.h>
#include <stdlib.h>

#define EXPIRE_EVERY_MS    600000
#define IDLE_LOOK_EVERY_MS 10000 /* for jobs that use nothing of what they have */
#define FREEZE_LOOK_MS     100   /* while a preparation's dataset is frozen */
#define COUNT_EVERY_MS     2000  /* what tasks have, and what those that wait ask for */

static weir_status expire_identities(struct work *work, void *none, struct weir_txn *txn,
                                     struct weir_error *err)
{
    (void)none;
    return weir_identity_expire(txn, work->control.now_ms, err);
}

static weir_status count_waiting(struct work *work, void *none, struct weir_txn *txn,
                                 struct weir_error *err)
{
    (void)none;
    int64_t n;
    return weir_usage_roll_waiting(txn, work->control.now_ms, &n, err);
}

static weir_status count_running(struct work *work, void *none, struct weir_txn *txn,
                                 struct weir_error *err)
{
    (void)none;
    int64_t n;
    return weir_usage_roll_running(txn, work->control.now_ms, &n, err);
}

static weir_status keep_heard(struct work *work, void *none, struct weir_txn *txn,
                              struct weir_error *err)
{
    (void)none;
    return weir_heard_keep(txn, work->engine->config.store, err);
}

static weir_status restore_heard(struct work *work, void *none, struct weir_txn *txn,
                                 struct weir_error *err)
{
    (void)none;
    (void)work;
    return weir_heard_restore(txn, err);
}

static weir_status add_samples(struct work *work, void *none, struct weir_txn *txn,
                               struct weir_error *err)
{
    (void)none;
    struct weir_queue_sample *samples;
    struct weir_past_now now;
    size_t n;
    scheduler_sample_queues(work->engine->scheduler, work->control.now_ms, work->control.arena,
                            &samples, &n);
    scheduler_past_now(work->engine->scheduler, samples, n, work->control.arena, &now);
    WEIR_TRY(weir_past_use_roll(txn, &now, work->control.now_ms, err));
    return weir_queue_history_add(txn, samples, n, work->control.now_ms, err);
}

/* ---- parts of a round ------------------------------------------------------------------------ */

/* Each returns when the next round is due for it, by the wall clock. */
#define NEVER INT64_MAX

static int64_t look_for_trouble(struct work *work)
{
    const struct engine *engine = work->engine;
    const struct weir_watch_seen about = {
        .now_ms = work->control.now_ms,
        .since_ms = engine->watch.since_ms,
        .n_silent = engine->watch.cut_ms != 0 ? engine->watch.n_silent : 0,
        .n_heard = engine->watch.n_heard,
        .away_ms = engine->away_ms,
        .back_ms = engine->back_ms};
    watcher_look(&work->engine->watcher, &about, weir_mono_ms());
    return NEVER;
}

static int64_t send_alerts(struct work *work)
{
    alerter_look(&work->engine->alerter);
    return NEVER;
}

static int64_t freeze_datasets(struct work *work)
{
    int64_t now_ms = work->control.now_ms;
    return preparer_look(&work->engine->preparer, now_ms) ? now_ms + FREEZE_LOOK_MS : NEVER;
}

static int64_t run_sweeps(struct work *work)
{
    int64_t now_ms = work->control.now_ms, in_ms = sweeper_look(&work->engine->sweeper, now_ms);
    return now_ms + WEIR_MIN(in_ms, (int64_t)ENGINE_IDLE_MAX_MS);
}

static int64_t run_deployments(struct work *work)
{
    engine_run_deployments(work);
    return NEVER;
}

static int64_t end_idle(struct work *work)
{
    engine_hold_idle(work);
    engine_stop_idle_services(work);
    return NEVER;
}

static int64_t count_use(struct work *work)
{
    if (scheduler_snapshot(work->engine->scheduler)->n_pending > 0) {
        (void)work_write(work, count_waiting, NULL);
    }
    (void)work_write(work, count_running, NULL);
    return NEVER;
}

static int64_t note_heard(struct work *work)
{
    (void)work_write(work, keep_heard, NULL);
    return NEVER;
}

static int64_t sample_queues(struct work *work)
{
    (void)work_write(work, add_samples, NULL);
    return NEVER;
}

static int64_t expire(struct work *work)
{
    struct engine *engine = work->engine;
    (void)work_write(work, expire_identities, NULL);
    aside_sweep(&engine->aside, weir_mono_ms());
    aside_sweep(&engine->sweeper.aside, weir_mono_ms());
    return NEVER;
}

/* In this order: what one part writes the next ones find. IONs start and stop sweeps, deployments and jobs; actions of
 * the outbox (a job that is stopped, files that go) come from all of these; jobs are placed when nothing of this round
 * can make another; the account is of what then runs. */
static const struct part {
    const char *name; /* in /metrics */
    int64_t (*look)(struct work *work);
    int64_t every_ms; /* 0: in each round */
} parts[] = {
    {"trouble", look_for_trouble, 0},
    {"alerts", send_alerts, 0},
    {"ions", engine_run_ions, 0},
    {"datasets", freeze_datasets, 0},
    {"sweeps", run_sweeps, 0},
    {"deployments", run_deployments, 0},
    {"outbox", engine_run_outbox, 0},
    {"idle", end_idle, IDLE_LOOK_EVERY_MS},
    {"jobs", engine_run_jobs, 0},
    {"use", count_use, COUNT_EVERY_MS},
    {"heard", note_heard, WEIR_HEARD_EVERY_MS},
    {"queues", sample_queues, WEIR_QUEUE_SAMPLE_MS},
    {"expire", expire, EXPIRE_EVERY_MS},
};

_Static_assert(WEIR_ARRAY_LEN(parts) <= ENGINE_PARTS_MAX, "there is no room for their times");

static int64_t run_part(struct work *work, size_t i)
{
    struct engine *engine = work->engine;
    uint64_t begin_ns = weir_mono_ns();
    if (weir_mono_ms() < engine->due_mono_ms[i]) {
        return NEVER;
    }
    int64_t due_ms = parts[i].look(work);
    engine->due_mono_ms[i] = weir_mono_ms() + parts[i].every_ms;
    vitals_spent(engine->config.vitals, parts[i].name,
                 (int64_t)((weir_mono_ns() - begin_ns) / 1000));
    return due_ms;
}

/* One round over everything. Returns when the next one is due. */
static int64_t run_round(struct engine *engine)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct control_listener *listener = &engine->config.listener;
    struct work work = {.engine = engine,
                        .control = {.arena = &arena,
                                    .actor = "system",
                                    .state_dir = engine->state_dir,
                                    .server_url = engine->server_url,
                                    .figures = &engine->config.figures,
                                    .publish = json_array()}};
    engine_keep_time(&work);
    if (listener->tick != NULL) {
        listener->tick(listener->context, work.control.now_ms, engine->watch.since_ms);
    }
    engine->work = &work;
    vitals_round(engine->config.vitals);
    int64_t due_ms = NEVER;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        int64_t part_ms = run_part(&work, i);
        due_ms = WEIR_MIN(due_ms, part_ms);
    }
    json_decref(work.control.publish);
    weir_arena_fini(&arena);
    return due_ms;
}

/* Wait for a notification, or until `due_ms` of the wall clock, but never long: a clock that is set
 * back must not stop the engine. */
static bool wait_for_work(struct engine *engine, int64_t due_ms)
{
    int64_t left_ms =
        WEIR_MIN(due_ms - weir_clock_now_ms(engine->config.clock), (int64_t)ENGINE_IDLE_MAX_MS);
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

static weir_status release_outbox(struct work *work, void *none, struct weir_txn *txn,
                                  struct weir_error *err)
{
    (void)none;
    return weir_outbox_release(txn, work->control.now_ms, err);
}

static weir_status remake_jobs(struct work *work, void *none, struct weir_txn *txn,
                               struct weir_error *err)
{
    (void)none;
    return control_remake(&work->control, txn, err);
}

/* Before the first round, or after the last one. */
static void run_outside(struct engine *engine, work_fn fn)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct work work = {.engine = engine,
                        .control = {.arena = &arena,
                                    .now_ms = engine->watch.since_ms,
                                    .actor = "system",
                                    .state_dir = engine->state_dir,
                                    .server_url = engine->server_url,
                                    .publish = json_array()}};
    (void)work_write(&work, fn, NULL);
    json_decref(work.control.publish);
    weir_arena_fini(&arena);
}

static void *engine_main(void *argument)
{
    struct engine *engine = argument;
    run_outside(engine, release_outbox);
    run_outside(engine, restore_heard);
    run_outside(engine, remake_jobs);
    while (wait_for_work(engine, run_round(engine))) {
    }
    run_outside(engine, keep_heard);
    return NULL;
}

void engine_make_scheduler(struct engine *engine)
{
    const struct scheduler_config config = {.store = engine->config.store,
                                            .listener = engine->config.listener,
                                            .state_dir = engine->state_dir,
                                            .server_url = engine->server_url,
                                            .wrote = engine_note_bind,
                                            .context = engine};
    engine->scheduler = scheduler_create(&config);
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
                                       .state_dir = engine->state_dir,
                                       .figures = &engine->config.figures,
                                       .vitals = config->vitals};
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
    weir_node_watch_start(&engine->watch, weir_clock_now_ms(engine->config.clock));
    engine_make_scheduler(engine);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->woken, NULL);
    weir_status status = presence_start(&engine->presence, err);
    int reason = status == WEIR_OK ? pthread_create(&engine->thread, NULL, engine_main, engine) : 0;
    if (reason != 0) {
        status = weir_error_set_errno(err, reason, "cannot start the engine's thread");
    }
    if (status != WEIR_OK) {
        engine_destroy(engine);
        return status;
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
    presence_stop(engine->presence);
    engine->presence = NULL;
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    presence_stop(engine->presence);
    aside_fini(&engine->aside);
    aside_fini(&engine->sweeper.aside);
    scheduler_destroy(engine->scheduler);
    pthread_cond_destroy(&engine->woken);
    pthread_mutex_destroy(&engine->lock);
    watcher_fini(&engine->watcher);
    free(engine->state_dir);
    free(engine->server_url);
    free(engine);
}
