/**
 * Queue tree: the queues of the store (job/queue.h) as the planner's rows.
 *
 * Parents come before their children, else the older before the younger. Behind them comes a queue for
 * each project that has none: at the root, without guarantee or limit, of weight 1; by name. A snapshot
 * names the projects of its jobs between queue_tree_begin and queue_tree_end:
 *
 *     WEIR_TRY(queue_tree_read(&tree, txn, &is_changed, err));   // only if something has changed
 *     queue_tree_begin(&tree);
 *     queue_tree_add(&tree, project); …
 *     queue_tree_end(&tree);
 *     row = queue_tree_find(&tree, project);
 *
 * What projects have had lately (job/past_use.h) is put in the rows of their queues, and of a queue above
 * others what those have had; whether it counts or not.
 *
 * Owned by one thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_QUEUE_TREE_H
#define WEIR_CONTROL_QUEUE_TREE_H

#include "job/past_use.h"
#include "job/queue.h"
#include "sched/sched.h"

/** The queue of a project. */
struct queue_tree_project {
    const char *name;
    int32_t row; /**< -1: not chosen yet. */
};

/** Where jobs of a queue may run that say nothing of it (job/cluster.h). */
struct queue_tree_where {
    const char *const *names; /**< In order; n_names 0: as the parent says. */
    size_t n_names;
    int64_t after_ms; /**< -1: as the parent says. */
};

struct queue_tree {
    struct weir_sched_queue *rows;
    int32_t n_rows;
    int32_t n_set; /**< Rows of queues in the store; the rest are of projects without one. */
    bool is_timed; /**< Some shares follow the time of the week. */
    struct weir_past_rule past_rule; /**< How much past use counts. */

    int64_t revision, past_revision;
    struct weir_arena arena;             /**< Holds what the rows of set queues point to. */
    struct queue_tree_project *projects; /**< By name. */
    struct queue_tree_where *where;      /**< Per row of a set queue. */
    size_t n_projects, rows_cap, projects_cap, where_cap;
    struct weir_arena past_arena;
    struct weir_past_use *past; /**< What projects have had, by name (job/past_use.h). */
    size_t n_past;
};

void queue_tree_init(struct queue_tree *tree);
void queue_tree_fini(struct queue_tree *tree);

/** Bring it up to date, in a read transaction. *out_is_changed is set if anything was read. */
weir_status queue_tree_read(struct queue_tree *tree, struct weir_txn *txn, bool *out_is_changed,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Forget the projects without a queue, then name them again. Names are borrowed. */
void queue_tree_begin(struct queue_tree *tree);
void queue_tree_add(struct queue_tree *tree, const char *project);
void queue_tree_end(struct queue_tree *tree);

/**
 * The rules of the planner: the profile "default". What can save is asked to before it is evicted. Evictions
 * begin with the first queue that is set. Past use counts as the tree's rule says.
 *
 * @param are_queues_set  Or would be.
 */
weir_status queue_tree_rules(const struct queue_tree *tree, bool are_queues_set,
                             struct weir_sched_profile *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Give a row the shares that JSON says (weir_queue_shares_read); texts are put in the arena. */
weir_status queue_tree_put_shares(struct weir_sched_queue *row, const char *shares,
                                  struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** The same with its times of the week (weir_queue_times_read). */
weir_status queue_tree_put_times(struct weir_sched_queue *row, const char *times,
                                 struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** What a queue says of where its jobs run; NULL: nothing, as it is no set one. */
const struct queue_tree_where *queue_tree_where(const struct queue_tree *tree, int32_t row);

/** Does any queue name clusters? */
bool queue_tree_names_clusters(const struct queue_tree *tree);

/** The row of a project that was added. */
int32_t queue_tree_find(const struct queue_tree *tree, const char *project);

#endif
