/**
 * Snapshot: what the scheduler plans over, kept in memory.
 *
 * The store is the truth; this is a copy of what placement looks at: nodes, and the jobs that are
 * not over with their tasks. It is read whole once, and then brought up to date by what changed
 * (job/changes.h): a reading costs one statement over the jobs of a new revision and one over the
 * nodes, whatever the number of jobs. From the copy follow the rows of a planner's snapshot
 * (sched/snapshot.h), the jobs for which time has passed, and the jobs on a node that is lost.
 *
 *     WEIR_TRY(snapshot_read(&snapshot, txn, now_ms, since_ms, err));  // in a read transaction
 *     const struct weir_sched_snapshot *rows = snapshot_rows(&snapshot, now_ms);
 *
 * How jobs become rows. They wait in the queue of their project (queue_tree.h). A gang is
 * one job of the planner, whose tasks start together. Each replica of a service is a job of its
 * own. A task that wants a node (weir_job_wants) is PENDING; one that is on a node RUNNING, or
 * RELEASING while it stops; others have no row. Beside its CPUs a node has half a CPU for tasks that ask
 * for less than one, so that what mostly waits keeps nobody from a whole CPU. A node that
 * takes no tasks (weir_node_takes_tasks), or has as much text of tasks as its agent is told of, is
 * cordoned. Devices, labels and taints come from supply.h, what a job asks for of them from ask.h: a
 * model is a label of the node, a MIG profile something countable. What runs on a device that is bad
 * or gone counts without it. A task for which a plan has nominated a place is PIPELINED there. A task of no CPU fits every node, even one whose CPUs are all taken. A job that may save
 * before it is evicted, and runs, can_checkpoint; what was asked is_leaving, and has acknowledged when each of its tasks has said so,
 * or its time is over. A job is
 * expected to run as long as the last of its kind did (run_history.h).
 *
 * Bound: SNAPSHOT_TASKS_MAX rows of tasks; jobs beyond them, the youngest, wait without being
 * looked at. Owned by one thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_SNAPSHOT_H
#define WEIR_CONTROL_SNAPSHOT_H

#include "control/ask.h"
#include "control/nominated.h"
#include "control/offers.h"
#include "control/queue_tree.h"
#include "control/run_history.h"
#include "control/supply.h"
#include "job/job.h"
#include "sched/sched.h"

#define SNAPSHOT_TASKS_MAX ((int32_t)1 << 20)

/** Bytes of the definitions of the tasks on a node, before it gets no more: its agent is told all of them
 *  in one answer. A job adds at most WEIR_FRAMEWORK_TEXT_MAX_BYTES. */
#define SNAPSHOT_NODE_TEXT_MAX_BYTES ((int64_t)16 << 20)

/** Tasks of a node: as many as its agent is told of. */
#define SNAPSHOT_NODE_TASKS_MAX 4096

struct snapshot_node {
    struct weir_node facts; /**< As weir_node_each gives them; of the texts only the name. */
    bool takes_tasks, is_lost;
    bool is_closed;        /**< Unhealthy. */
    bool is_end_foreseen;  /**< It ends, or has, as it was known to. */
    struct supply *supply; /**< Its devices, labels and taints. */
    int64_t used_cpu_milli, used_memory_bytes, text_bytes; /**< The sums of the tasks on it. */
};

struct snapshot_job {
    struct weir_job_state state; /**< As weir_job_each_open gives it; a copy. */
    int32_t *nodes;              /**< Per task: its node's index; -1: none. */
    uint8_t *phases;             /**< Per task: enum weir_task_phase. */
    struct ask *ask;             /**< What it asks for of nodes; NULL: nothing. */
    uint64_t work;               /**< run_history_work. */
    int64_t noted_ms;            /**< When why it waits was last written; 0: never. */
    /** In the rows: what it tolerates, and behind that one for what is asked of a cluster (schedule/demand.h). */
    struct weir_sched_toleration *tolerations;
    int32_t n_tolerations;
    int64_t held_until_ms; /**< Until then it asks for nothing: it could not be bound; 0: could. */
};

/** The task that a row of the planner's stands for. */
struct snapshot_task {
    struct snapshot_job *job;
    int32_t task;
};

/** A device of which something is left. */
struct snapshot_left {
    int32_t node;
    int64_t idx;
};

/** A reservation that is not over (job/reservation.h). */
struct snapshot_reservation {
    const char *name, *project, *queue; /**< One of the two last is NULL. */
    const char *const *nodes;
    size_t n_nodes;
    int64_t from_ms, until_ms;
};

/** When a job of a project that had a node last ended. */
struct snapshot_served {
    char *project;
    int64_t ended_ms;
};

struct snapshot {
    struct snapshot_node *nodes; /**< By name. */
    int32_t n_nodes, nodes_cap;
    struct snapshot_job **jobs; /**< By id. */
    int32_t n_jobs, jobs_cap;
    struct run_history history;
    struct queue_tree queues;
    struct offers offers;
    struct snapshot_served *served;
    size_t n_served, served_cap;
    struct snapshot_reservation *reservations;
    size_t n_reservations;
    struct weir_arena reservations_arena; /**< Theirs, until others are read. */
    uint64_t reservations_hash;           /**< All that was read; 0: nothing was. */
    struct nominated nominated;           /**< By the last plan; the planning thread sets it. */
    int64_t revision;                     /**< The newest change's; -1: nothing was read yet. */
    bool names_clusters;                  /**< Some job or queue does; of the last rows. */
    bool is_changed;   /**< A reading found something new; the planning thread clears it. */
    int32_t n_pending; /**< Tasks in the rows that want a node. */
    int32_t n_leaving; /**< Tasks that were asked to save and run. */
    /** When the time of the first of those that have not is over; INT64_MAX: there is none. */
    int64_t save_due_ms;
    struct snapshot_left *left;
    size_t n_left, left_cap;

    /* The rows, and what they stand for. */
    struct weir_arena rows_arena; /**< Holds what rows point to beside. */
    const char **marks;           /**< What snapshot_mark has found; NULL: nothing yet. */
    struct weir_sched_snapshot rows;
    struct weir_sched_node *row_nodes;
    struct weir_sched_job *row_jobs;
    struct weir_sched_task *row_tasks;
    struct weir_sched_topology *row_topologies;
    struct snapshot_task *tasks; /**< Per row of a task. */
    int32_t row_nodes_cap, row_jobs_cap, row_tasks_cap, tasks_cap, row_topologies_cap;
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_fini(struct snapshot *snapshot);

/**
 * Bring it up to date. In a read transaction.
 *
 * @param since_ms  Since when nodes could report (struct weir_node_watch).
 * An error leaves it as it was or with some jobs newer than others; the next reading mends that.
 */
weir_status snapshot_read(struct snapshot *snapshot, struct weir_txn *txn, int64_t now_ms,
                          int64_t since_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The rows for the planner, at this time. Valid until the next call of any function here. */
const struct weir_sched_snapshot *snapshot_rows(struct snapshot *snapshot, int64_t now_ms);

/** Do nodes and tasks have marks of clusters: is there one, or is one named? */
bool snapshot_has_clusters(const struct snapshot *snapshot);

/** The mark of nodes of a cluster that a queue, a row, pays for, made as `pod` says (offers_mark). Valid as long as the
 *  rows. */
const char *snapshot_mark(struct snapshot *snapshot, int32_t queue, const char *cluster,
                          const char *pod);

/** When a node closes or opens, or a reservation begins or is over, after now_ms; INT64_MAX: never. */
int64_t snapshot_next_ms(const struct snapshot *snapshot, int64_t now_ms);

/** Index of a node; -1: there is none of this name. */
int32_t snapshot_find_node(const struct snapshot *snapshot, const char *name);

/** Note in the copy what weir_job_note_wait wrote. The job moves in memory. */
void snapshot_note_wait(struct snapshot *snapshot, struct snapshot_job *job, const char *reason,
                        int64_t expected_start_ms, int64_t now_ms);

/** The devices of a task that is on a node, NULL for those that are gone and forgotten. `out` has
 *  room for WEIR_TASK_DEVICES_MAX. @return How many. */
size_t snapshot_devices(const struct snapshot *snapshot, const struct snapshot_job *job,
                        size_t task, struct supply_device **out);

/** Is the task on a node, or was it until its end is reported? */
bool snapshot_is_on_node(const struct snapshot_job *job, size_t task);

#endif
