/**
 * The job state machine: a pure function (state, event, time) → (state, actions).
 *
 *     PENDING ──bind→ STARTING ─all run→ RUNNING ─work done→ SUCCEEDED
 *        ↑                └──────┬──────────┘  └─cancel→ STOPPING → CANCELLED
 *        └─back-off over─ RESTARTING ←a task fails   └─no restart left→ STOPPING → FAILED
 *
 * Two kinds of job. A *gang* (train, command): all tasks are placed together; when one fails or is
 * lost the others are stopped, and when all have ended the whole gang starts again as the next
 * attempt (training goes on from its last checkpoint), after a back-off, as long as restart.h
 * allows. It succeeds when every worker has exited with 0; parameter servers are then stopped. A
 * *service*: every replica is placed, restarted and backed off on its own, for ever,
 * until cancelled. The reason of a failure is what the task said of its end: its last words.
 *
 * An *array* is a job of tasks that have nothing to do with each other: each is placed and tried
 * again on its own, as of a service, and ends for good; job/array.h.
 *
 * A job moves when a device of one of its tasks is bad or gone: its tasks are stopped and placed again,
 * which is no restart. A gang that runs for longer than its time limit is stopped, and has failed.
 *
 * A job that is evicted is stopped for others: its outcome is PENDING, so when its tasks have ended it
 * waits again and goes on, a training from the checkpoint that it saves when it is stopped. That is no
 * restart. One that says that it can save is asked first, and evicted when all its tasks have said that they have, or
 * save_within_ms later. A task that was asked and ends has answered: it is evicted, unless it ends well without
 * having said that it saved, which is its end as ever. One of a kind with known exits whose tasks all end well meanwhile has succeeded. A job that
 * is held is stopped the same way and wants no node until it is released.
 *
 * A node may end as it was known to: the time that it was lent for is over, or its cluster takes it back. What ends
 * with it, whichever way, was evicted, unless it ended well.
 *
 * A lost task counts as ended. Should its node come back, the agent sees that the task is stopped
 * or has a later attempt and stops the old process; its reports are ignored by attempt.
 */
#ifndef WEIR_JOB_JOB_STEP_H
#define WEIR_JOB_JOB_STEP_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_job_phase {
    WEIR_JOB_PENDING,
    WEIR_JOB_STARTING,
    WEIR_JOB_RUNNING,
    WEIR_JOB_RESTARTING,
    WEIR_JOB_STOPPING,
    WEIR_JOB_SUCCEEDED,
    WEIR_JOB_FAILED,
    WEIR_JOB_CANCELLED,
};

enum weir_task_phase {
    WEIR_TASK_WAITING,  /**< Has no node. */
    WEIR_TASK_STARTING, /**< Should run; no report yet. */
    WEIR_TASK_RUNNING,
    WEIR_TASK_STOPPING, /**< Should end; no report yet. */
    WEIR_TASK_EXITED,
    WEIR_TASK_LOST, /**< Its node or its process vanished. */
};

/** "PENDING" …; -1 for any other text. */
const char *weir_job_phase_text(enum weir_job_phase phase);
int weir_job_phase_from_text(const char *text);
const char *weir_task_phase_text(enum weir_task_phase phase);
int weir_task_phase_from_text(const char *text);

struct weir_job_state;
struct weir_task;

/** Of a text that is none, as from elsewhere: FAILED, and LOST. */
enum weir_job_phase weir_job_phase_of(const struct weir_job_state *state);
enum weir_task_phase weir_task_phase_of(const struct weir_task *task);

/** Is the task on a node, or was it until its end is reported: STARTING, RUNNING or STOPPING? */
bool weir_task_is_alive(const struct weir_task *task);

/** How a task that has ended did, for people: "worker 0 was killed by signal 9". In the arena. */
char *weir_task_describe_end(const struct weir_task *task, struct weir_arena *arena);

/** The task of this identifier; NULL: the job has none. */
struct weir_task *weir_job_find_task(struct weir_job_state *state, const char *id);

/** Is none of its tasks alive? */
bool weir_job_none_is_alive(const struct weir_job_state *state);

/** Is the job over: SUCCEEDED, FAILED or CANCELLED? */
bool weir_job_phase_is_final(enum weir_job_phase phase);

struct weir_job {
    char *id;
    char *name;
    char *project;
    char *kind;           /**< Of weir_job_kinds (framework); the two facts below are the kind's. */
    bool is_service;      /**< Its tasks are placed and restarted one by one, for ever; else it is
                               a gang. */
    bool has_known_exits; /**< weir_exit_is_permanent says what its exit statuses mean. */
    char *spec;           /**< JSON. */
    char *state;          /**< Text of enum weir_job_phase. */
    char *reason;         /**< Why it waits, restarts or failed; NULL if there is nothing to say. */
    int64_t expected_start_ms; /**< While it waits: when it may start; 0 = not known. */
    char *outcome;             /**< While STOPPING: the state it goes to; NULL otherwise. */
    bool is_held;              /**< It wants no node until it is released. */
    char *eviction;            /**< Why it was stopped for others; NULL once it is placed again. */
    int64_t n_evictions;       /**< How often it was. */
    int64_t queued_ms;         /**< Since when it waits again; 0: since created_ms. */
    int64_t attempt;           /**< 1, 2 …: of a gang. */
    int64_t max_restarts;      /**< Of a gang; a service restarts always. */
    int64_t priority;          /**< Within its queue: the higher goes first. */
    bool is_preemptible;       /**< It may be stopped for others, and goes on later. */
    int64_t time_limit_ms;     /**< Longest run of a gang, from its placement on; 0: none. */
    int64_t save_within_ms;    /**< Before it is stopped for others its tasks are asked to save, and
                                    may for so long; 0: they are not asked. */
    int64_t fence_ms;          /**< Its tasks stop themselves within so long on a node that does not
                                    reach the server; 0: they do not. */
    int64_t min_tasks;         /**< A gang begins, and goes on, with so many; 0: with all. */
    bool is_array;             /**< Its tasks are independent of each other (job/array.h). */
    int64_t parallel;          /**< Of an array: so many tasks at once; 0: all. */
    char *placement;           /**< JSON: {"node_selector", "tolerations", "topology"}; NULL. */
    int64_t n_restarts;
    int64_t due_ms; /**< RESTARTING: when the back-off is over. */
    char *ion;      /**< ION, pipeline and training number it works for; NULL and 0 if none. */
    char *pipeline;
    int64_t training;
    char *run; /**< Tracked run or NULL. */
    char *created_by;
    char *limited_to; /**< Role of the token that it was sent with; NULL: no token limits it. */
    int64_t created_ms;
    int64_t started_ms;  /**< First time RUNNING; 0 = not yet. */
    int64_t finished_ms; /**< 0 = not yet. */
    int64_t revision;    /**< Counts up with every change of any job; weir_job_save sets it. */
};

struct weir_task {
    char *id;
    char *job;
    int64_t rank;
    char *role;           /**< "worker", "parameter_server", "replica", "command", "server" or
                          "evaluator". */
    int64_t cpu_millis;   /**< Thousandths of a CPU that are kept for it. */
    int64_t cpu_slots;    /**< The same in whole CPUs, rounded up: for those who read only that. */
    int64_t memory_bytes; /**< What it may use, kept for it on its node; 0: it has no limit. */
    int64_t n_accelerators;           /**< Different devices of one node. */
    char *accelerator_model;          /**< NULL: any. */
    int64_t accelerator_milli;        /**< Of each, in thousandths; 0: by memory. */
    int64_t accelerator_memory_bytes; /**< Of each; 0: by share. */
    char *mig_profile;                /**< Each is a MIG slice of this profile; NULL: a device. */
    char *devices;            /**< Indices of those that it has on its node: "0,3"; NULL: none. */
    char *definition;         /**< JSON for the agent: argv, env, files, limits. */
    int64_t definition_bytes; /**< Its length. */
    char *node;               /**< NULL while WAITING. */
    int64_t attempt;          /**< 0 before the first start. */
    char *state;              /**< Text of enum weir_task_phase. */
    char *desired;            /**< "running" or "stopped". */
    int64_t pid;
    int64_t exit_code; /**< -1: none (killed by a signal, or not ended). */
    int64_t signal;    /**< 0: none. */
    char *message;
    int64_t n_restarts; /**< Of a replica: since it last ran for WEIR_JOB_STABLE_MS. */
    int64_t due_ms;     /**< WAITING replica: not before. */
    int64_t started_ms;
    int64_t finished_ms;
    int64_t asked_ms; /**< When this attempt was asked to save; 0: it was not. */
    int64_t saved_ms; /**< When it said that it has; 0: it did not. */
};

/** A job and all its tasks, by rank. The step changes it in place. */
struct weir_job_state {
    struct weir_job job;
    struct weir_task *tasks;
    size_t n_tasks;
    const struct weir_task *loaded; /**< The tasks as weir_job_load found them: weir_job_save writes
                                         those that differ. NULL: all of them. */
};

enum weir_job_event_type {
    WEIR_JOB_EVENT_BIND,         /**< place: a node for each task of weir_job_wants; devices. */
    WEIR_JOB_EVENT_TASK_RUNNING, /**< task, attempt, pid. */
    WEIR_JOB_EVENT_TASK_HELD, /**< task, attempt, text: its program failed, and its place is kept. */
    WEIR_JOB_EVENT_TASK_EXITED, /**< task, attempt, exit_code, signal, text. */
    WEIR_JOB_EVENT_TASK_LOST,   /**< task, attempt, text: the agent does not know its end. */
    WEIR_JOB_EVENT_NODE_LOST,   /**< node; is_foreseen, and text: why. */
    WEIR_JOB_EVENT_DEVICE_LOST, /**< task, attempt, text: a device that it has is bad or gone. */
    WEIR_JOB_EVENT_CANCEL,      /**< text: by whom and why. */
    WEIR_JOB_EVENT_ASK,         /**< Ask to save what is to be evicted. text: for whom; task as of
                                      EVICT. */
    WEIR_JOB_EVENT_TASK_SAVED,  /**< task, attempt: it says that it has saved. */
    WEIR_JOB_EVENT_EVICT,       /**< text: for whom, NULL: as it was asked; task: a service's
                                      replica, or one of an elastic gang; NULL: all. */
    WEIR_JOB_EVENT_HOLD,        /**< text: by whom. */
    WEIR_JOB_EVENT_RELEASE,     /**< Hold it no longer. text: by whom. */
    WEIR_JOB_EVENT_PRIORITY,    /**< priority: the job's from now on; text: by whom. */
    WEIR_JOB_EVENT_TICK,        /**< Time has passed. */
};

struct weir_job_event {
    enum weir_job_event_type type;
    const char *task; /**< Identifier. */
    int64_t attempt;
    int64_t pid;
    int64_t exit_code;
    int64_t signal;
    int64_t priority;
    const char *text;
    const char *node;
    /** NODE_LOST, TASK_EXITED, TASK_LOST: the node ends as it was known to. No restart. */
    bool is_foreseen;
    const char *const
        *place; /**< BIND: node names, in the order of weir_job_wants; a service's may be NULL. */
    const char *const *devices; /**< BIND: per place the indices of devices; NULL: none at all. */
    size_t n_place;
};

enum weir_job_action_type {
    WEIR_JOB_ACTION_WAKE_NODE, /**< node: what should run there has changed. */
    WEIR_JOB_ACTION_EVENT,     /**< kind, message: to the event log. */
    WEIR_JOB_ACTION_ENDED,     /**< The job is over: kind = final state, message = reason or "". */
};

struct weir_job_action {
    enum weir_job_action_type type;
    const char *node;
    const char *kind;
    const char *message;
};

/** Actions in the order they were decided; grows in the arena. Start with {0}. */
struct weir_job_actions {
    struct weir_job_action *items;
    size_t n;
    size_t cap;
    /** Whose act it was; NULL: what followed by itself. weir_job_save reads it. */
    const char *actor;
};

/**
 * Which tasks want a node now. For a gang: all or none; for a service: each replica whose back-off
 * is over (bind them one by one). For an elastic gang (job/elastic.h): all while it waits, of which
 * min_tasks at least are bound together; then each that it has not, or has lost, one by one.
 *
 * @param out_tasks  Indices into state->tasks, room for n_tasks.
 * @return Their number.
 */
size_t weir_job_wants(const struct weir_job_state *state, int64_t now_ms, size_t *out_tasks);

/** Is it a service, whose tasks are started again for ever? */
bool weir_job_is_service(const struct weir_job_state *state);

/** Are its tasks placed and stopped one by one: a service's, or an array's? Else it is a gang. */
bool weir_job_has_independent_tasks(const struct weir_job_state *state);

/**
 * When to come back: a TICK then changes something, or weir_job_wants then gives more; INT64_MAX if
 * never.
 */
int64_t weir_job_next_tick_ms(const struct weir_job_state *state, int64_t now_ms);

/**
 * Apply one event. Events that no longer matter (an old attempt's report, anything about a job that
 * is over) change nothing and are WEIR_OK.
 *
 * @return CONFLICT for CANCEL, HOLD and PRIORITY of a job that is over, RELEASE of one that is not held, EVICT and ASK of
 *         one that has no task on a node; NOT_FOUND for an unknown task; INVALID for a
 *         BIND that does not fit weir_job_wants. The state is untouched on error.
 */
weir_status weir_job_step(struct weir_job_state *state, const struct weir_job_event *event,
                          int64_t now_ms, struct weir_arena *arena,
                          struct weir_job_actions *actions, struct weir_error *err) WEIR_MUST_CHECK;

#endif
