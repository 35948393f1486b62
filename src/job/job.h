/**
 * Jobs: records of nodes, jobs and tasks.
 *
 * A *job* is work for a gang of *tasks* that start together or not at all; a task is one process,
 * placed on a *node* whose agent starts and watches it. Task rows are made with the job and keep
 * their identifiers; a restart counts `attempt` up, so that an agent starts each (task, attempt)
 * once and a late report about an old attempt is known as such.
 *
 * The state machine is pure: job/job_step.h. Which node a task gets is not decided here: the control
 * plane's scheduler asks the planner (sched/sched.h) for all open jobs at once, and tells a job by
 * the event BIND. This header loads what a step needs and saves what it decided, inside a
 * transaction:
 *
 *     weir_job_load(txn, id, arena, &state, err);
 *     weir_job_step(&state, &event, now_ms, arena, &actions, err);
 *     weir_job_save(txn, &state, &actions, now_ms, err);
 */
#ifndef WEIR_JOB_JOB_H
#define WEIR_JOB_JOB_H

#include "base/arena.h"
#include "base/record.h"
#include "job/job_step.h"
#include "job/node_watch.h"
#include "store/store.h"

/** Where secrets lie in a job's specification, and in the parameters of its run (base/secret.h). */
#define WEIR_JOB_SECRETS                                                                           \
    "env.* files.* secret service.secret source.token source.password source.cameras.*.password "  \
    "sinks.*.token sinks.*.password sinks.*.secret doors.*.by.token doors.*.by.password "          \
    "doors.*.by.secret"

extern const struct weir_resource weir_node_resource;
extern const struct weir_resource weir_job_resource;
extern const struct weir_resource weir_task_resource;

struct weir_node {
    char *name;
    int64_t cpu_slots; /**< Tasks' slots that fit at once. */
    int64_t memory_bytes;
    int64_t n_accelerators;
    int64_t disk_bytes; /**< Of the agent's folder's disk; 0: not told. */
    int64_t disk_free_bytes;
    char *disk_id;            /**< weir_disk_id of it; NULL: not told. */
    char *inventory;          /**< JSON, as the agent reported it. */
    char *agent_version;      /**< May be NULL. */
    char *leaving;            /**< Why it is about to go, as its agent says; NULL: it is not. */
    char *unhealthy;          /**< Why it takes no tasks though it reports; NULL: it is healthy. */
    char *labels;             /**< JSON object of texts, for selectors; NULL: none. */
    char *taints;             /**< JSON list of {"key","value","effect"}; NULL: none. */
    char *accelerators;       /**< Its accelerators as placement reads them (job/device.h); NULL. */
    bool is_draining;         /**< Takes no new tasks. */
    int64_t closed_from_ms;   /**< Maintenance (job/node_window.h); 0: none. */
    int64_t closed_until_ms;  /**< 0: until it is taken away. */
    int64_t desired_revision; /**< Counts up with every change of what should run there. */
    int64_t last_seen_ms;     /**< Last heartbeat. */
    int64_t left_ms;          /**< When it left the cluster; 0: it is part of it. */
    char *cluster;            /**< Its supplier (job/cluster.h); NULL: it joined by itself. */
    char *allocation;         /**< The one that it is a node of; NULL: none. */
    int64_t device_milli; /**< What of each of its accelerators it has, in thousandths; 0: all. */
    int64_t ends_ms;      /**< When it ends at the latest; 0: nobody says. */
    int64_t created_ms;
};

/**
 * Is a node lost: no heartbeat for timeout_ms? Every node has the full time from since_ms on (job/node_watch.h). A
 * heartbeat of more than 5 s ahead, of before the clock was set back, does not count.
 */
bool weir_node_is_lost(const struct weir_node *node, int64_t now_ms, int64_t since_ms,
                       int64_t timeout_ms);

#define WEIR_NODE_READY  "ready"
#define WEIR_NODE_SILENT "silent"
#define WEIR_NODE_LOST   "lost"
#define WEIR_NODE_LEFT   "left"

/** How a node is (one that was lent and has gone when that was over has left): what the scheduler, alerts, the API, commands and the page all go by. */
const char *weir_node_state(const struct weir_node *node, int64_t now_ms, int64_t since_ms);

/** Is its end nothing that a job of it failed by: does it end as its cluster or its agent has said? */
bool weir_node_end_is_foreseen(const struct weir_node *node, int64_t now_ms);

/**
 * Does a node take new tasks, of those that tolerate its taints: is it ready, healthy, not draining or leaving,
 * and was it heard of since since_ms? What it had before a restart of the server it keeps for the full time, but it gets nothing new before it
 * has spoken.
 */
bool weir_node_takes_tasks(const struct weir_node *node, int64_t now_ms, int64_t since_ms);

/** Label that a node has by itself if it starts tasks in images: its value is WEIR_NODE_CRUN. */
#define WEIR_NODE_LABEL_IMAGES "weir/images"
#define WEIR_NODE_CRUN         "crun"

/** Set that label, or take it away, by what the node's inventory says (isolation.images). A node that
 *  is there. */
weir_status weir_node_note_images(struct weir_txn *txn, const char *node, const json_t *inventory,
                                  struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** Has a node said that it starts tasks in images? *out: true also while there is no node. */
weir_status weir_nodes_have_images(struct weir_txn *txn, bool *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Would a heartbeat tell placement anything: is the node new, has it become larger, smaller, healthy
 * or unhealthy, or was it silent? *out: true if so. Before weir_node_heartbeat.
 */
weir_status weir_node_is_news(struct weir_txn *txn, const struct weir_node *node, int64_t now_ms,
                              int64_t since_ms, bool *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Has its agent said that it is about to go? *out: false also for a node that is not there. */
weir_status weir_node_is_leaving(struct weir_txn *txn, const char *name, bool *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Register a node, or its heartbeat: inserts, or updates all but name, labels, taints, is_draining,
 * the window, cluster, allocation, desired_revision and created_ms. One that had left is part of the cluster again. A node
 * that joined with the token of an allocation is one of it, and has what that was asked with of each accelerator; that alone may say when
 * it ends.
 */
weir_status weir_node_heartbeat(struct weir_txn *txn, const struct weir_node *node, int64_t now_ms,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** It is part of the cluster no more: its tokens end, its devices are forgotten, what it did stays known. What becomes of
 *  tasks there is for the caller. */
weir_status weir_node_leave(struct weir_txn *txn, const char *name, int64_t now_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Insert a PENDING job and its tasks. Read from job: every field the caller may choose; n_tasks
 * tasks with id, role, rank, cpu_millis, memory_bytes and definition. State, attempt, times and
 * revision are set here.
 */
weir_status weir_job_create(struct weir_txn *txn, const struct weir_job *job,
                            const struct weir_task *tasks, size_t n_tasks, int64_t now_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Whoever waits for any change, and not for one of these, waits for this topic. */
#define WEIR_TOPIC_GENERAL ((uint64_t)1)

/** The number of the first topic that is neither this one nor a node's; 10 are. */
#define WEIR_TOPIC_FREE 54

/**
 * The topic of a node: one of 53 bits beside the general one, so that a few nodes share it. A transaction that
 * counts up a node's desired_revision marks it (weir_txn_mark), and nothing else does.
 */
uint64_t weir_node_topic(const char *name);

/**
 * Load a job and its tasks, by rank. The tasks' definitions stay NULL: they are for their nodes
 * (weir_task_list_on_node), and a job may have megabytes of them.
 * @return NOT_FOUND; LIMIT if it is more than the arena may hold.
 */
weir_status weir_job_load(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                          struct weir_job_state *out, struct weir_error *err) WEIR_MUST_CHECK;

/** When a job's tasks all ran for the first time; 0 = not yet, or there is no such job. */
weir_status weir_job_started_ms(struct weir_txn *txn, const char *id, int64_t *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Is it over, whichever way? True also of a job that is not there. */
weir_status weir_job_is_over(struct weir_txn *txn, const char *id, bool *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Write the job, its tasks, and the events among the actions; count up desired_revision of the
 * nodes that the WAKE_NODE actions name. state->job.revision becomes the new one.
 */
weir_status weir_job_save(struct weir_txn *txn, struct weir_job_state *state,
                          const struct weir_job_actions *actions, int64_t now_ms,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Give up a job that cannot be loaded: CANCELLED, its tasks LOST and no longer wanted by their
 * nodes; with an event by `actor`. @return NOT_FOUND; CONFLICT if it is over.
 */
weir_status weir_job_abandon(struct weir_txn *txn, const char *id, const char *reason,
                             const char *actor, int64_t now_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Identifiers of the jobs of an ION that are not over. */
weir_status weir_job_list_open_of(struct weir_txn *txn, const char *ion, struct weir_arena *arena,
                                  char ***out_ids, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Identifiers of the jobs that are not over (PENDING … STOPPING), oldest first. */
weir_status weir_job_list_open(struct weir_txn *txn, struct weir_arena *arena, char ***out_ids,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Tasks that a node's agent should know: placed there and not over. Their `desired` says what
 * should be; tasks that are not in the list should not run there.
 */
weir_status weir_task_list_on_node(struct weir_txn *txn, const char *node, struct weir_arena *arena,
                                   struct weir_task **out, size_t *out_n,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
