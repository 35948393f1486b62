/** What the files of the domain share: the retainer, and how a kind is looked at and swept. */
#ifndef WEIR_RETAIN_RETAIN_PRIVATE_H
#define WEIR_RETAIN_RETAIN_PRIVATE_H

#include "retain/choose.h"
#include "retain/pace.h"
#include "retain/project.h"
#include "retain/retain.h"
#include "store/stmt.h"

#include <pthread.h>

#define RETAIN_MINUTE_MS ((int64_t)60000)

/** Kinds that others depend on. */
#define RETAIN_DECISIONS "decisions"
#define RETAIN_JOBS      "jobs"
#define RETAIN_PICTURES  WEIR_RETAIN_PICTURES

/** The pace of giving back pages, behind those of the kinds. */
#define RETAIN_PACE_SHRINK WEIR_RETAIN_KINDS_MAX

struct weir_retainer {
    struct weir_retainer_config config; /**< state_dir: own copy; clock: never NULL. */
    pthread_t thread;
    bool has_thread;
    int64_t since_ms; /**< Made then, by the system's clock. */
    /* Of the thread that sweeps. */
    int64_t due_mono_ms[WEIR_RETAIN_KINDS_MAX];
    struct retain_pace paces[WEIR_RETAIN_KINDS_MAX + 1]; /**< Of rows. */
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
    int kind;
    struct weir_retain_limit limit;
    const struct weir_retain_policy *policy;
    const struct weir_retain_projects *projects;
    /** A project has a time of its own for the kind, or for what it is kept as long as. */
    bool has_own;
    const char *preview_project; /**< Not NULL: as if this one kept the kind for preview_keep_ms. */
    int64_t preview_keep_ms;
    int64_t now_ms;
    struct weir_arena *arena;
};

/** How long a project keeps a kind. */
int64_t retain_keep(const struct retain_look *look, const char *project, int kind);

/** A time as a span to compare: none is longer than for ever. */
int64_t retain_span(int64_t keep_ms);

/** What ended at that time or before is too old for an age; INT64_MIN: nothing is. */
int64_t retain_before(const struct retain_look *look, int64_t keep_ms);

/** Begin a look: text and settings live in the arena. */
weir_status retain_look_begin(struct weir_retainer *retainer, struct weir_arena *arena,
                              struct retain_look *out, struct weir_error *err) WEIR_MUST_CHECK;

/** At one kind. */
void retain_look_at(struct retain_look *look, int kind);

/** What a kind takes now. */
struct retain_size {
    int64_t n;         /**< Rows, files or folders. */
    int64_t bytes;     /**< Rows: reckoned. */
    int64_t oldest_ms; /**< 0: none. */
    int64_t n_needed;  /**< Of n: must stay. */
    int64_t n_going;   /**< Of n: go with the next round. */
};

/** How a kind is swept and measured, and how often; and what of preview_project would go. */
struct retain_ops {
    weir_status (*sweep)(const struct retain_look *look, struct weir_error *err);
    weir_status (*measure)(const struct retain_look *look, struct retain_size *out,
                           struct weir_error *err);
    weir_status (*preview)(const struct retain_look *look, struct weir_retain_preview *out,
                           struct weir_error *err);
    int64_t every_ms;
};

extern const struct retain_ops retain_rows_ops, retain_folders_ops, retain_blobs_ops;

#define RETAIN_REMOVE_MAX (sizeof((struct weir_retain_rule *)0)->remove / sizeof(char *))

/** What is asked about rows. NULL: not of this kind of rule. */
struct retain_sql {
    const char *count, *oldest;
    /** Keyed: those that may go, from :before or earlier, oldest first, at most :n. */
    const char *keys;
    /** Of a key, as the rule's; numbered: what is numbered up to :cut. */
    const char *remove[RETAIN_REMOVE_MAX];
    /** Numbered: the first number; the last of the first :n rows that is older than :before; of the first :n. */
    const char *first, *cut_old, *cut_n;
    /** Of :project: keys of those with something from :before or earlier; how many rows would go. */
    const char *own_keys, *own_count;
    /** Numbered: of a key what is from :before or earlier; all rows, one by one. */
    const char *own_remove[1], *count_all;
};

struct retain_folder;

struct retain_kind {
    const struct weir_retain_rule *rule;
    const struct retain_ops *ops;
    const struct retain_folder *folder; /**< Of a kind of folders. */
    struct retain_sql sql;              /**< Of a kind of rows. */
};

/** The kind with that number, which there must be. */
const struct retain_kind *retain_kind(int kind);

struct retain_entry;

/** A folder of the state folder, and what its entries are worth. */
struct retain_folder {
    struct weir_retain_rule rule;
    const char *dir;
    weir_status (*judge)(struct weir_txn *txn, const struct retain_look *look,
                         const struct retain_entry *entry, struct weir_error *err);
    bool spares_last; /**< What ended last goes by its age alone. */
    bool is_packs;    /**< Of pictures: one may be being written. */
    /** Before its entries are looked at. NULL: nothing. */
    weir_status (*before)(const struct retain_look *look, struct weir_error *err);
    /** Of what goes, and stays, before it does. NULL: nothing. */
    weir_status (*tell)(const struct retain_look *look, const struct retain_item *items, size_t n,
                        struct weir_error *err);
    /** NULL: its entries of the project are counted. */
    weir_status (*preview)(const struct retain_look *look, struct weir_retain_preview *out,
                           struct weir_error *err);
};

extern const struct retain_folder retain_folders[];
extern const size_t retain_n_folders;
extern const struct weir_retain_rule retain_blobs_rule;

/** The number, or the texts (in the look's arena), that a statement reads. */
weir_status retain_query_int(const struct retain_look *look, const char *sql,
                             const struct weir_bind *binds, size_t n_binds, int64_t *out,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status retain_query_texts(const struct retain_look *look, const char *sql,
                               const struct weir_bind *binds, size_t n_binds, char ***out,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Delete all of a key by statements, to the first NULL or the n-th, in steps. Adds what the last one took. */
weir_status retain_rows_remove(const struct retain_look *look, const char *const *sql, size_t n,
                               const char *key, int64_t before, int64_t *n_removed,
                               struct weir_error *err);

/** Projects' rows by the age that each of them keeps; there is at least one with its own. */
weir_status retain_own_sweep(const struct retain_look *look, int64_t *n_removed,
                             struct weir_error *err);

/** How many rows that would take; and of preview_project. */
weir_status retain_own_count(const struct retain_look *look, int64_t *out_n,
                             struct weir_error *err);
weir_status retain_own_preview(const struct retain_look *look, struct weir_retain_preview *out,
                               struct weir_error *err);

/** How long packs of pictures stay: as long as the project that keeps its pictures longest. */
int64_t retain_pictures_longest(const struct retain_look *look);

/** Erase, in packs, the pictures of projects that keep them less long than the packs, and remove packs whose rows have all
 *  gone. */
weir_status retain_pictures_sweep(const struct retain_look *look, struct weir_error *err);

/** Which pictures of a pipeline are old. */
extern const char retain_sql_old_of_pipeline[];

/** Erase the pictures of a project's decisions from `before` or earlier. */
weir_status retain_pictures_erase(const struct retain_look *look, const char *project,
                                  int64_t before, struct weir_error *err);

/** Pictures of the look's preview project that its age takes. */
weir_status retain_pictures_preview(const struct retain_look *look, struct weir_retain_preview *out,
                                    struct weir_error *err);

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
