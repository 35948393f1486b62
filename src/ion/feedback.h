/**
 * Feedback: the truth about a decision, told by a person or another system, often days later. From it
 * follow an ION's live accuracy and where its errors are.
 *
 * What a decision said is the person it recognised, the label it gave, or "unknown"; the truth is told
 * in the same words, and the decision was right if they are equal. A row holds what it is counted by,
 * because decisions go by retention.
 *
 * The transaction's row scope holds: a decision of a project that the caller may not see is not found.
 */
#ifndef WEIR_ION_FEEDBACK_H
#define WEIR_ION_FEEDBACK_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

/** What a decision said that recognised nobody, and the truth about somebody nobody knows. */
#define WEIR_FEEDBACK_UNKNOWN "unknown"

#define WEIR_FEEDBACK_TRUTH_MAX_BYTES 256

/** A person reads it: not empty, not longer, no control characters, which could act on a terminal. */
bool weir_feedback_is_plain(const char *text);

struct weir_feedback {
    char *decision; /**< Identifier of the decision. */
    int64_t seq;
    char *ion;
    char *pipeline;
    char *camera;
    int64_t model_version;
    char *decided; /**< Person, label or "unknown". */
    char *truth;
    bool is_right;
    double score;
    int64_t decided_ms;
    char *actor;
    int64_t time_ms;
};

extern const struct weir_resource weir_feedback_resource;

/**
 * Store the truth about a decision; told again, the last holds.
 * @return NOT_FOUND (no such decision that the caller may see), CONFLICT for one that decided nothing
 *         (verdict "error"), INVALID for a truth that is empty, over 256 bytes, or not plain text.
 */
weir_status weir_feedback_store(struct weir_txn *txn, const char *decision, const char *truth,
                                const char *actor, int64_t now_ms, struct weir_arena *arena,
                                struct weir_feedback *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Decisions whose truth is known, and how many of them were right. */
struct weir_accuracy {
    int64_t n;
    int64_t n_right;
    /** The wrong ones: somebody was taken for another, known or not; somebody known was not recognised.
     *  0 where only right and wrong are counted. */
    int64_t n_taken, n_missed;
    double accuracy;  /**< NaN if n is 0. */
    double low, high; /**< Wilson's 95 % interval; 0 and 1 if n is 0. */
};

/** From counts. Pure. */
struct weir_accuracy weir_accuracy_of(int64_t n, int64_t n_right);

/**
 * Accuracy of an ION's decisions from a time on, by the decisions' own time.
 * @param pipeline  NULL: of all.
 * Cost: an index entry and a row for each feedback since then.
 */
weir_status weir_feedback_accuracy(struct weir_txn *txn, const char *ion, const char *pipeline,
                                   int64_t since_ms, struct weir_accuracy *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

struct weir_accuracy_group {
    char *name; /**< Camera, person, label … */
    struct weir_accuracy accuracy;
};

/** At most so many groups, those with the most errors first. */
#define WEIR_ACCURACY_GROUPS_MAX 100

/** What decisions can be grouped by: "camera", "truth", "decided", "model_version", "pipeline", "day";
 *  ended by NULL. */
extern const char *const weir_feedback_groupings[];

/** The same by group. @return INVALID for a grouping that there is not. */
weir_status weir_feedback_groups(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 int64_t since_ms, const char *by, struct weir_arena *arena,
                                 struct weir_accuracy_group **out, size_t *out_n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
