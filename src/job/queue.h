/**
 * Queues: a tree that says what of the cluster is whose.
 *
 * A queue has a *share* of each resource: a guarantee, a weight by which what is left over is
 * divided, and a limit. The queue of a project is a leaf, and the project's jobs wait in it. A queue
 * without a project is a department: its children divide what is its. A project that has no queue has
 * one all the same, at the root of the tree, without a guarantee or a limit and of weight 1. So before
 * the first queue is set all projects share alike.
 *
 * `shares` is JSON: {"accelerators": SHARE, "cpus": SHARE, "memory": SHARE, "models": {"H100": SHARE}}.
 * A SHARE is {"guarantee": 4, "weight": 1, "limit": 8}; what it leaves out is 0, 1 and null, which is
 * no limit. A guarantee of null is all there is. Accelerators and CPUs may have three decimals; memory
 * is in bytes. `times` is JSON: [{"days": ["mon", "tue"], "from": "20:00", "until": "06:00", "shares":
 * {…}}]: shares that hold from one time of these days until another, of the next day if it is not
 * after the first; by UTC. The first that holds stands in for `shares`.
 *
 *     struct weir_queue_shares shares;
 *     WEIR_TRY(weir_queue_shares_read(queue.shares, "$.shares", arena, &shares, err));
 */
#ifndef WEIR_JOB_QUEUE_H
#define WEIR_JOB_QUEUE_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_QUEUES_MAX       1000 /**< More cannot be set. */
#define WEIR_QUEUE_TIMES_MAX  32   /**< Of one queue. */
#define WEIR_QUEUE_MODELS_MAX 13   /**< In all of a tree: as many as the planner knows. */
#define WEIR_QUEUE_UNLIMITED  (-1)

extern const struct weir_resource weir_queue_resource;

struct weir_queue {
    char *name;
    char *parent;     /**< NULL: at the root. */
    char *project;    /**< Whose jobs wait in it; NULL: a department. */
    int64_t priority; /**< Among its siblings: the higher gets what is left over first. */
    char *shares;     /**< JSON; NULL: as of a project without a queue. */
    char *times;      /**< JSON; NULL: none. */
    /** A job of it is not evicted before it has run so long; -1: the parent's. */
    int64_t min_run_ms;
    int64_t idle_after_ms; /**< A job of it whose devices have been idle for so long is held
                                (control/schedule/idle.h); 0: none is; -1: the parent's. */
    /** JSON list of names (job/cluster.h), in order: where those of its jobs that name none may run; NULL: the parent's,
     *  at the root anywhere. */
    char *clusters;
    /** A job of it has waited so long before nodes are asked of a cluster for it; -1: the parent's, at the root as each
     *  cluster says. */
    int64_t overflow_after_ms;
    int64_t created_ms;
};

enum weir_queue_amount { WEIR_QUEUE_ACCELERATORS, WEIR_QUEUE_CPUS, WEIR_QUEUE_MEMORY };

#define WEIR_QUEUE_N_RESOURCES 3

/** "accelerators", "cpus", "memory". Static. */
const char *weir_queue_amount_name(enum weir_queue_amount amount);

/** Of accelerators and CPUs in thousandths, of memory in bytes. */
struct weir_queue_share {
    int64_t guarantee; /**< WEIR_QUEUE_UNLIMITED. */
    int64_t weight;
    int64_t limit; /**< WEIR_QUEUE_UNLIMITED. */
};

struct weir_queue_model {
    char *model;
    struct weir_queue_share share;
};

struct weir_queue_shares {
    struct weir_queue_share of[WEIR_QUEUE_N_RESOURCES];
    struct weir_queue_model *models;
    size_t n_models;
};

struct weir_queue_time {
    int days;                /**< Bit 0 is Monday. */
    int from_min, until_min; /**< Of the day. */
    struct weir_queue_shares shares;
};

/**
 * Read shares.
 *
 * @param text  JSON, or NULL: no guarantee, weight 1, no limit.
 * @param path  What errors begin with: "$.shares".
 * @return INVALID, naming the member. Texts of *out are in the arena.
 */
weir_status weir_queue_shares_read(const char *text, const char *path, struct weir_arena *arena,
                                   struct weir_queue_shares *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Read times of the day. NULL: none. @return INVALID; LIMIT: more than WEIR_QUEUE_TIMES_MAX. */
weir_status weir_queue_times_read(const char *text, struct weir_arena *arena,
                                  struct weir_queue_time **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** All queues, oldest first; parents may come after their children. */
weir_status weir_queue_list(struct weir_txn *txn, struct weir_arena *arena, struct weir_queue **out,
                            size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Counts up with every change of a queue: a copy is read again when it has. */
weir_status weir_queue_revision(struct weir_txn *txn, int64_t *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a queue, or change all of it but created_ms.
 *
 * @return INVALID: shares or times that cannot be read, a parent that has a project or would make a
 *         loop, a project for a queue that has children; NOT_FOUND: there is no such parent or project;
 *         CONFLICT: the project has another queue; LIMIT: WEIR_QUEUES_MAX, or too many models.
 */
weir_status weir_queue_set(struct weir_txn *txn, const struct weir_queue *queue, int64_t now_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Would weir_queue_set take it? Errors as its. Nothing is written. */
weir_status weir_queue_check(struct weir_txn *txn, const struct weir_queue *queue,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND; CONFLICT: it has children. Its project's jobs go on without a guarantee. */
weir_status weir_queue_delete(struct weir_txn *txn, const char *name,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
