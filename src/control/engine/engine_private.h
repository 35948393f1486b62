/**
 * One round of the engine, in parts: engine.c is the thread, which calls them in turn; engine_unit.c runs their
 * transactions. All on the engine's thread.
 */
#ifndef WEIR_CONTROL_ENGINE_PRIVATE_H
#define WEIR_CONTROL_ENGINE_PRIVATE_H

#include "control/control.h"
#include "control/engine.h"
#include "control/engine/alerter.h"
#include "control/engine/aside.h"
#include "control/engine/presence.h"
#include "control/engine/watcher.h"
#include "control/job/preparer.h"
#include "control/schedule/idle.h"
#include "control/scheduler.h"
#include "control/sweep/sweeper.h"

#include <pthread.h>

#define ENGINE_IDLE_MAX_MS  1000 /**< A round is never further off. */
#define ENGINE_PARTS_MAX    16
#define WORK_UNIT_MAX_BYTES ((size_t)256 << 20) /**< One job or ION in memory. */

struct engine {
    struct engine_config config;
    char *state_dir, *server_url;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_notified, is_stopping;
    struct weir_node_watch watch;
    struct presence *presence;
    int64_t next_nodes_mono_ms;
    int64_t away_ms, back_ms; /**< The last time that the server did not run (weir_watch_seen). */
    int64_t next_observe_mono_ms;
    int64_t due_mono_ms
        [ENGINE_PARTS_MAX]; /**< Of the parts of a round that have a pace of their own. */
    struct watcher watcher;
    struct alerter alerter;
    struct preparer preparer;
    struct sweeper sweeper;
    struct aside aside;
    struct scheduler *scheduler;
    struct work *work; /**< The running round's. */
};

struct work;

/** A step in a transaction. `unit`: what it is about, and what it finds; of each part of a round its own struct. */
typedef weir_status (*work_fn)(struct work *work, void *unit, struct weir_txn *txn,
                               struct weir_error *err);

/** One round: control transactions with a list of publications. What a round lists lies in its
 * arena; what one job, ION or action needs, in one of its own (work_run_unit). */
struct work {
    struct engine *engine;
    struct control control;
    char subject[128]; /**< The taken unit's: "job/ID", "ion/NAME".  */
};

/** Names that a round goes through. */
struct work_names {
    char **items;
    size_t n;
};

/** Run it in a read transaction. */
weir_status work_read(struct work *work, work_fn fn, void *unit,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Run it in a transaction, and publish what it lists. What goes wrong is logged, but for NOT_FOUND. */
weir_status work_write(struct work *work, work_fn fn, void *unit);

/** Begin with the next unit, "KIND/ID"; false if it is set aside for now. */
bool work_take_unit(struct work *work, const char *kind, const char *id);

/** Run one step of the unit that was taken with an arena of its own: what it needs is free again before the next, and
 *  one that is too large fails alone. */
weir_status work_run_unit(struct work *work, work_fn fn, void *unit, bool is_write);

/** How a step of the unit that was taken went: one that cannot be loaded is set aside, and one that can again is not. */
void work_note_outcome(struct work *work, weir_status status, const struct weir_error *err);

/**
 * Before anything is decided: follow a wall clock that was set, and know whether silence is the server's own.
 * Sets the round's time.
 */
void engine_keep_time(struct work *work);

/** Make the scheduler, which reads everything again. */
void engine_make_scheduler(struct engine *engine);

/* The parts of a round. Those that return a time say when the next round is due for them, by the wall clock. */

/** Do the actions that are due. */
int64_t engine_run_outbox(struct work *work);

/** Notice what has become of jobs, and place those that wait. */
int64_t engine_run_jobs(struct work *work);

/** For the scheduler's configuration; the context is the engine. A job could or could not be bound: one that cannot be
 *  loaded is set aside, as by any other step. @return After how many ms it is tried again. */
int64_t engine_note_bind(void *context, const char *job, weir_status status,
                         const struct weir_error *err);

/** Devices that are not used are taken back: their jobs are held. */
void engine_hold_idle(struct work *work);

/** Stop services that nobody looks at any more. */
void engine_stop_idle_services(struct work *work);

int64_t engine_run_ions(struct work *work);

/** Each is looked at in every round: the load is nowhere in the store, and no round is far off. */
void engine_run_deployments(struct work *work);

#endif
