/**
 * Comparison: two models on the same labelled pictures, and the disagreements, a bounded sample of the
 * pictures on which their answers differ. Made by a job of the kind `measure` (batch/measure.h), one of
 * its run; looked at by the person who reviews the version.
 *
 * Each disagreement is of a kind: of the two answers the live model's alone is right, the candidate's
 * alone, or neither. They go with the run.
 */
#ifndef WEIR_TRACK_COMPARISON_H
#define WEIR_TRACK_COMPARISON_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

/** Of one comparison. */
#define WEIR_DISAGREEMENTS_MAX 200

#define WEIR_DISAGREEMENT_LIVE_RIGHT      "live-right"
#define WEIR_DISAGREEMENT_CANDIDATE_RIGHT "candidate-right"
#define WEIR_DISAGREEMENT_BOTH_WRONG      "both-wrong"

struct weir_comparison {
    char *run;
    char *model, *live_model;
    int64_t version, live_version;
    char *dataset;
    int64_t dataset_version;
    int64_t n_samples, n_errors; /**< Pictures; those that cannot be read. */
    double accuracy, live_accuracy;
    double p_value; /**< Of the exact McNemar test, two-sided. */
    int64_t better; /**< 1, -1 or 0: nobody can say. */
    int64_t n_live_right, n_candidate_right, n_both_wrong; /**< Disagreements of all pictures. */
    int64_t n_kept;                                        /**< Of those, in the sample. */
    char *confusions; /**< JSON: [{label, answer, n, live_n}], the most frequent wrong answers. */
    int64_t time_ms;
};

struct weir_disagreement {
    char *id; /**< RUN/0007 */
    char *run;
    int64_t place; /**< In the sample, from 0. */
    char *kind;
    char *file;   /**< CLASS/FILE of the dataset version. */
    char *sha256; /**< Of the picture; NULL: unknown, or not the reader's to see. */
    char *label;  /**< What it is. */
    char *answer, *live_answer;
    double score, live_score; /**< Probability that each gave to its answer; NaN: unknown. */
};

/** Tables comparisons and disagreements. */
extern const struct weir_resource weir_comparison_resource;
extern const struct weir_resource weir_disagreement_resource;

/**
 * Store a comparison with its disagreements; what the run had before is replaced.
 *
 * @param rows  At most WEIR_DISAGREEMENTS_MAX; id, run and place are set here.
 * @return INVALID naming the row; NOT_FOUND: there is no such run.
 */
weir_status weir_comparison_put(struct weir_txn *txn, const struct weir_comparison *comparison,
                                struct weir_disagreement *rows, size_t n, struct weir_arena *arena,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The newest comparison of a model version; one with this live version goes before all others.
 *
 * @param live_model  NULL: whatever it was compared with.
 * @return NOT_FOUND, with no message: the caller knows what to advise.
 */
weir_status weir_comparison_find(struct weir_txn *txn, const char *model, int64_t version,
                                 const char *live_model, int64_t live_version,
                                 struct weir_arena *arena, struct weir_comparison *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** One page of a comparison's disagreements, in the order of the sample. `kind` NULL: all.
 *  @return INVALID: no such kind. */
weir_status weir_disagreements_list(struct weir_txn *txn, const char *run, const char *kind,
                                    size_t limit, const char *cursor, struct weir_arena *arena,
                                    struct weir_disagreement **out, size_t *out_n, char **out_next,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
