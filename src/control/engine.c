#include "control/engine.h"

#include "base/deadline.h"
#include "base/log.h"
#include "base/uuid.h"
#include "control/aside.h"
#include "control/control.h"
#include "control/watcher.h"
#include "store/identity.h"
#include "store/table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OUTBOX_LEASE_MS  30000 /* Like the retry, within WEIR_OUTBOX_DELAY_MAX_MS. */
#define OUTBOX_RETRY_MS  1000
#define OUTBOX_MAX_TRIES 20
#define OUTBOX_BATCH     32
#define IDLE_MAX_MS      1000
#define EXPIRE_EVERY_MS  600000
#define UNIT_MAX_BYTES   ((size_t)256 << 20) /* of one job or ION in memory */

struct engine {
    struct engine_config config;
    char *state_dir, *server_url;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_notified, is_stopping;
    struct weir_node_watch watch;
    int64_t next_expire_mono_ms;
    struct watcher watcher;
    struct aside aside;
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
    const char *ion;                  /**< For ION work. */
    const struct weir_outbox *action; /**< For outbox work. */
    struct weir_outbox *actions;
    size_t n_actions;
    char **ids;
    size_t n_ids;
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
    if (control_is_unreadable(status)) {
        set_aside(work, &err);
    } else if (status == WEIR_OK && aside_take(&work->engine->aside, work->subject)) {
        (void)run_write(work, resolve_unreadable);
    } else if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", err.message));
    }
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

static weir_status list_jobs(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_job_list_open(txn, work->control.arena, &work->ids, &work->n_ids, err);
}

static weir_status apply_job_event(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_job_event(&work->control, txn, work->job, work->job_event, err);
}

/* Tasks on a node that went silent are lost. */
static weir_status find_lost_nodes(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_query query = {.limit = WEIR_QUERY_LIMIT_MAX};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_node_resource, &query, work->control.arena, &items, &n, NULL,
                           err));
    work->ids = WEIR_ARENA_ARRAY(work->control.arena, n + 1, char *);
    work->n_ids = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_node *node = (const struct weir_node *)items + i;
        if (weir_node_is_lost(node, work->control.now_ms, work->engine->watch.since_ms,
                              WEIR_NODE_LOST_MS)) {
            work->ids[work->n_ids++] = node->name;
        }
    }
    return WEIR_OK;
}

static bool has_task_on(const struct weir_job_state *state, const char *node)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        int phase = weir_task_phase_from_text(state->tasks[i].state);
        bool is_there = phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING ||
                        phase == WEIR_TASK_STOPPING;
        if (is_there && state->tasks[i].node != NULL && strcmp(state->tasks[i].node, node) == 0) {
            return true;
        }
    }
    return false;
}

/* Place what wants a node: a gang whole, replicas one by one. */
static weir_status place_tasks(struct work *work, struct weir_txn *txn,
                               const struct weir_job_state *state, const size_t *wants,
                               size_t n_wants, struct weir_error *err)
{
    struct weir_arena *arena = work->control.arena;
    struct weir_place_node *nodes;
    size_t n_nodes;
    char reason[WEIR_PLACE_REASON_BYTES];
    WEIR_TRY(weir_place_nodes_load(txn, work->control.now_ms, work->engine->watch.since_ms,
                                   WEIR_NODE_LOST_MS, arena, &nodes, &n_nodes, err));
    int64_t *slots = WEIR_ARENA_ARRAY(arena, n_wants, int64_t);
    size_t *chosen = WEIR_ARENA_ARRAY(arena, n_wants, size_t);
    const char **names = WEIR_ARENA_ARRAY(arena, n_wants, const char *);
    for (size_t i = 0; i < n_wants; i++) {
        slots[i] = state->tasks[wants[i]].cpu_slots;
    }
    struct weir_job_event event = {.type = WEIR_JOB_EVENT_UNPLACED, .text = reason};
    if (weir_place(slots, n_wants, nodes, n_nodes, chosen, reason)) {
        for (size_t i = 0; i < n_wants; i++) {
            names[i] = nodes[chosen[i]].name;
        }
        event = (struct weir_job_event){
            .type = WEIR_JOB_EVENT_PLACED, .place = names, .n_place = n_wants};
    } else if (state->job.reason != NULL && strcmp(state->job.reason, reason) == 0) {
        return WEIR_OK; /* nothing new to say */
    }
    return control_job_event(&work->control, txn, state->job.id, &event, err);
}

static weir_status step_job(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job_state state;
    WEIR_TRY(weir_job_load(txn, work->job, work->control.arena, &state, err));
    if (weir_job_next_tick_ms(&state, work->control.now_ms) <= work->control.now_ms) {
        struct weir_job_event tick = {.type = WEIR_JOB_EVENT_TICK};
        WEIR_TRY(control_job_event(&work->control, txn, work->job, &tick, err));
        WEIR_TRY(weir_job_load(txn, work->job, work->control.arena, &state, err));
    }
    size_t *wants = WEIR_ARENA_ARRAY(work->control.arena, state.n_tasks + 1, size_t);
    size_t n_wants = weir_job_wants(&state, work->control.now_ms, wants);
    if (n_wants > 0) {
        WEIR_TRY(place_tasks(work, txn, &state, wants, n_wants, err));
        WEIR_TRY(weir_job_load(txn, work->job, work->control.arena, &state, err));
    }
    work->next_ms = weir_job_next_tick_ms(&state, work->control.now_ms);
    return WEIR_OK;
}

/* Does this job need a write at all? Read first: most ticks change nothing. */
static weir_status peek_job(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job_state state;
    WEIR_TRY(weir_job_load(txn, work->job, work->control.arena, &state, err));
    size_t *wants = WEIR_ARENA_ARRAY(work->control.arena, state.n_tasks + 1, size_t);
    bool has_work = weir_job_wants(&state, work->control.now_ms, wants) > 0;
    work->next_ms = has_work ? 0 : weir_job_next_tick_ms(&state, work->control.now_ms);
    return WEIR_OK;
}

static int64_t run_jobs(struct work *work)
{
    struct weir_error err;
    int64_t next_ms = INT64_MAX;
    work->fn = list_jobs;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return work->control.now_ms + IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        work->job = work->ids[i];
        if (take_unit(work, "job", work->job) && run_unit(work, peek_job, false) == WEIR_OK &&
            work->next_ms <= work->control.now_ms) {
            (void)run_unit(work, step_job, true);
        }
        next_ms = WEIR_MIN(next_ms, work->next_ms);
    }
    return next_ms;
}

static weir_status lose_node_of_job(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job_state state;
    WEIR_TRY(weir_job_load(txn, work->job, work->control.arena, &state, err));
    if (!has_task_on(&state, work->job_event->node)) {
        return WEIR_OK;
    }
    return apply_job_event(work, txn, err);
}

static void run_lost_nodes(struct work *work)
{
    struct weir_error err;
    work->fn = find_lost_nodes;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK ||
        work->n_ids == 0) {
        return;
    }
    char **nodes = work->ids;
    size_t n_nodes = work->n_ids;
    work->fn = list_jobs;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return;
    }
    for (size_t i = 0; i < n_nodes; i++) {
        struct weir_job_event event = {.type = WEIR_JOB_EVENT_NODE_LOST, .node = nodes[i]};
        work->job_event = &event;
        for (size_t k = 0; k < work->n_ids; k++) {
            work->job = work->ids[k];
            if (take_unit(work, "job", work->job)) {
                (void)run_unit(work, lose_node_of_job, true);
            }
        }
    }
}

/* ---- IONs ------------------------------------------------------------------------------------ */

static weir_status list_ions(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_ion_list_active(txn, work->control.arena, &work->ids, &work->n_ids, err);
}

static weir_status peek_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(weir_ion_load(txn, work->ion, work->control.arena, &state, err));
    work->next_ms = weir_ion_next_tick_ms(&state, work->control.now_ms);
    return WEIR_OK;
}

static weir_status tick_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_event tick = {.type = WEIR_ION_EVENT_TICK, .actor = "system"};
    return control_ion_event(&work->control, txn, work->ion, &tick, err);
}

static int64_t run_ions(struct work *work)
{
    struct weir_error err;
    int64_t next_ms = INT64_MAX;
    work->fn = list_ions;
    if (weir_store_read(work->engine->config.store, run_work_in, work, &err) != WEIR_OK) {
        return work->control.now_ms + IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        work->ion = work->ids[i];
        if (take_unit(work, "ion", work->ion) && run_unit(work, peek_ion, false) == WEIR_OK &&
            work->next_ms <= work->control.now_ms) {
            (void)run_unit(work, tick_ion, true);
        }
        next_ms = WEIR_MIN(next_ms, work->next_ms);
    }
    return next_ms;
}

static weir_status expire_identities(struct work *work, struct weir_txn *txn,
                                     struct weir_error *err)
{
    return weir_identity_expire(txn, work->control.now_ms, err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

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
                                    .publish = json_array()}};
    if (weir_node_watch_look(&engine->watch, work.control.now_ms, weir_mono_ms())) {
        weir_log(WEIR_LOG_WARN, "wall_clock_was_set",
                 WEIR_KV_STR("effect", "every node has the full time to report"));
    }
    run_lost_nodes(&work);
    watcher_look(&engine->watcher, work.control.now_ms, engine->watch.since_ms, weir_mono_ms());
    int64_t due = run_ions(&work);
    int64_t outbox_due = run_outbox(&work);
    int64_t jobs_due = run_jobs(&work);
    if (weir_mono_ms() >= engine->next_expire_mono_ms) {
        (void)run_write(&work, expire_identities);
        aside_sweep(&engine->aside, weir_mono_ms());
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
           pthread_cond_timedwait(&engine->woken, &engine->lock, &until) == 0) {
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
    weir_node_watch_start(&engine->watch, weir_clock_now_ms(engine->config.clock), weir_mono_ms());
    pthread_mutex_init(&engine->lock, NULL);
    weir_cond_init(&engine->woken);
    int reason = pthread_create(&engine->thread, NULL, engine_main, engine);
    if (reason != 0) {
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
    pthread_cond_destroy(&engine->woken);
    pthread_mutex_destroy(&engine->lock);
    free(engine->state_dir);
    free(engine->server_url);
    free(engine);
}
