/** What the files of the domain share: the retainer, and how a kind is looked at and swept. */
#ifndef WEIR_RETAIN_RETAIN_PRIVATE_H
#define WEIR_RETAIN_RETAIN_PRIVATE_H

#include "retain/choose.h"
#include "retain/pace.h"
#include "retain/retain.h"

#include <pthread.h>

/** The pace of giving back pages, behind those of the kinds. */
#define RETAIN_PACE_SHRINK WEIR_RETAIN_N

struct weir_retainer {
    struct weir_retainer_config config; /**< state_dir: own copy; clock: never NULL. */
    pthread_t thread;
    bool has_thread;
    /* Of the thread that sweeps. */
    int64_t due_mono_ms[WEIR_RETAIN_N];
    struct retain_pace paces[WEIR_RETAIN_N + 1]; /**< Of rows. */
    bool has_more; /**< The last sweep has left some of what is to go. */
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_notified, is_stopping;
    int64_t n_steps, n_long_steps; /**< Of rows; those that took longer than PACE_STEP_MAX_US. */
    int64_t longest_step_us;
};

/** One look at one kind, under the policy that holds. Text lives in the arena. */
struct retain_look {
    struct weir_retainer *retainer;
    enum weir_retain_kind kind;
    struct weir_retain_limit limit;
    struct weir_retain_limit decisions; /**< Of decisions. */
    int64_t now_ms;
    struct weir_arena *arena;
};

/** What a kind takes now. */
struct retain_size {
    int64_t n;         /**< Rows, files or folders. */
    int64_t bytes;     /**< Rows: reckoned. */
    int64_t oldest_ms; /**< 0: none. */
    int64_t n_needed;  /**< Of n: must stay. */
    int64_t n_going;   /**< Of n: go with the next round. */
};

/** How a kind is swept and measured, and how often. */
struct retain_ops {
    weir_status (*sweep)(const struct retain_look *look, struct weir_error *err);
    weir_status (*measure)(const struct retain_look *look, struct retain_size *out,
                           struct weir_error *err);
    int64_t every_ms;
};

extern const struct retain_ops retain_ops[WEIR_RETAIN_N];

weir_status retain_folders_sweep(const struct retain_look *look, struct weir_error *err);
weir_status retain_folders_measure(const struct retain_look *look, struct retain_size *out,
                                   struct weir_error *err);
weir_status retain_blobs_sweep(const struct retain_look *look, struct weir_error *err);
weir_status retain_blobs_measure(const struct retain_look *look, struct retain_size *out,
                                 struct weir_error *err);
weir_status retain_rows_sweep(const struct retain_look *look, struct weir_error *err);
weir_status retain_rows_measure(const struct retain_look *look, struct retain_size *out,
                                struct weir_error *err);

/** B-tree entries of a row of that kind: itself and its indexes. 1: they are no rows. */
int64_t retain_rows_entries(enum weir_retain_kind kind);

/** Give the disk what the database no longer needs, if that is much. */
weir_status retain_shrink(struct weir_retainer *retainer, struct weir_error *err);

/**
 * Folders of replicas that hold decisions which nobody ships any more (is_left), oldest first: beyond
 * the size of decisions the oldest `goes`. By age they have been judged.
 */
void retain_left_choose(const struct retain_look *look, struct retain_item *items, size_t n);

/** Raise or resolve the alert about them, and tell of those that go. */
weir_status retain_left_tell(const struct retain_look *look, const struct retain_item *items,
                             size_t n, struct weir_error *err) WEIR_MUST_CHECK;

/** Is the retainer to stop? Long sweeps ask between two steps. */
bool retain_is_stopping(struct weir_retainer *retainer);

/** Wait before the next step, on the retainer's thread; at once without one, or when it stops. */
void retain_pause(struct weir_retainer *retainer, int64_t wait_ms);

/** What the files below `path` (a file or a folder) take on the disk; links are not followed. */
int64_t retain_tree_bytes(const char *path);

#endif
