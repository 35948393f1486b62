/**
 * Retention: what is kept, for how long, and how much of it.
 *
 * Whatever grows by itself in the state folder is a *kind* (decisions, pictures, logs …) with a
 * *rule*: what it is, when it goes, how old and how large it may become by default. Rules of rows
 * stand with the noun (store/noun.h), those of folders and blobs here. The *policy* is the rules'
 * limits as an admin has changed them, one setting in the store. The
 * *retainer* is a thread that applies the policy: once a minute to rows, every five minutes to
 * folders, once an hour to blobs, and at once when asked.
 *
 *     weir_retainer_start(&config, &retainer, err);
 *     weir_retainer_notify(retainer);              // apply the policy now
 *     weir_retainer_usage(retainer, arena, &usage, err);
 *
 * Rows go in steps: each is one write transaction that is meant to take a millisecond, with a pause
 * four times as long behind it; how many rows a step takes follows from how long those before it
 * took (pace.h).
 * Files go only when nothing refers to them: a folder of a job that is over, a pack of pictures
 * (its rows say "gone" from then on), a blob that no record names and that nobody has touched for
 * its time. A round that is cut short anywhere, also by a kill, is simply done again.
 *
 * What is still needed is never taken, whatever the limits say: models that records name, the
 * checkpoints of jobs that are not over, outboxes with decisions that were not shipped (for as long
 * as decisions are kept; an alert tells of those whose job is over), what people made (datasets, model versions, IONs, users). When only such things are left, a kind may
 * be above its bound; its usage says so.
 */
#ifndef WEIR_RETAIN_RETAIN_H
#define WEIR_RETAIN_RETAIN_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/record.h"
#include "blob/blob.h"
#include "blob/pack.h"
#include "store/noun.h"
#include "store/store.h"

/** In state_dir/datasets: the folder of a dataset that is being deleted begins so. What an earlier server left of
 *  such goes with the first round. */
#define WEIR_RETAIN_GONE ".gone-"

/** No bound: kept for ever, or whatever its size. */
#define WEIR_RETAIN_ANY ((int64_t)-1)

/** Kinds there may be. A kind is a number from 0, in the order of lists, while the program runs; its name is stored. */
#define WEIR_RETAIN_KINDS_MAX 64

/** How many kinds there are. Any thread, as the next two. */
int weir_retain_n(void);

/** The rule of a kind: store/noun.h. */
const struct weir_retain_rule *weir_retain_rule(int kind);

/** The kind of that name, or -1. */
int weir_retain_kind_from_text(const char *name);

struct weir_retain_policy {
    struct weir_retain_limit limits[WEIR_RETAIN_KINDS_MAX];
};

/**
 * Read a limit as people write it: an age, a size, or both with a comma between ("30d,10GB").
 * An age is a number with s, m, h or d, or "forever"; a size a number with B, kB, MB, GB, TB, KiB,
 * MiB, GiB or TiB, or "unbounded"; "default" sets both. What is not named stays as it is.
 * @return INVALID with what was expected; the limit is then untouched.
 */
weir_status weir_retain_limit_parse(const char *text, int kind, struct weir_retain_limit *limit,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** As weir_retain_limit_parse reads it: "30d,10GB". Returns out. */
#define WEIR_RETAIN_LIMIT_TEXT_BYTES 64
const char *weir_retain_limit_text(const struct weir_retain_limit *limit,
                                   char out[WEIR_RETAIN_LIMIT_TEXT_BYTES]);

/** The policy that holds: the defaults and what the setting "retention" changes of them. */
weir_status weir_retain_policy_load(struct weir_txn *txn, struct weir_arena *arena,
                                    struct weir_retain_policy *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Store what differs from the defaults. */
weir_status weir_retain_policy_save(struct weir_txn *txn, const struct weir_retain_policy *policy,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_error *err) WEIR_MUST_CHECK;

struct weir_retainer;

struct weir_retainer_config {
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_packs *pictures;    /**< In state_dir/pictures. */
    const char *state_dir;          /**< Copied. */
    const struct weir_clock *clock; /**< NULL: the system's. */
};

/** Make a retainer; its thread runs from weir_retainer_start on. Nothing else is started. */
struct weir_retainer *weir_retainer_create(const struct weir_retainer_config *config);
weir_status weir_retainer_start(struct weir_retainer *retainer,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** End the thread, after the step in progress. NULL is accepted. */
void weir_retainer_destroy(struct weir_retainer *retainer);

/** Apply the policy to every kind soon. Any thread. */
void weir_retainer_notify(struct weir_retainer *retainer);

/** What a kind takes; also kinds without a rule (files of datasets, the database as a whole). */
struct weir_retain_usage {
    char *kind, *what, *rule;
    char *unit; /**< "rows" (they lie in the database) or "files". */
    int64_t n;
    int64_t n_needed; /**< Of files: those that stay whatever the limits say. */
    int64_t used_bytes;
    char *limit; /**< NULL: it has no rule. */
    int64_t oldest_ms;
    char *next; /**< What goes next, for people. */
};

extern const struct weir_resource weir_retain_usage_resource;

struct weir_retain_report {
    struct weir_retain_usage *items;
    size_t n;
    int64_t total_bytes; /**< Of the state folder. */
    int64_t disk_bytes, disk_free_bytes;
    int64_t n_steps, n_long_steps; /**< Of rows since the start; those that took over 10 ms. */
    int64_t longest_step_us;
};

/** What the state folder takes now, and what goes next. Text in the arena. Any thread. Cost: looks
 *  at every file's size, and reads every manifest. */
weir_status weir_retainer_usage(struct weir_retainer *retainer, struct weir_arena *arena,
                                struct weir_retain_report *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Apply the policy to every kind now, on this thread, without pauses: for tests and benches, on a
 * retainer that was not started. A kind that fails is logged, and the others go on.
 * @return The first failure.
 */
weir_status weir_retainer_round(struct weir_retainer *retainer,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Remove a job that is over, with its tasks, its run and what that measured, now: in steps of at most 1000 rows, each
 * a write transaction. Its files go with the retainer's next round. What is not over, or not there, stays as it is.
 * Cut short anywhere, it is simply done again. Who calls has checked that nothing needs it.
 */
weir_status weir_retain_job_remove(struct weir_store *store, const char *id,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Has a replica of the job decisions that were never shipped? Whoever ships them asks for the job. */
bool weir_retain_job_has_left(const char *state_dir, const char *job);

#endif
