/**
 * What belongs to a run beside its record (track.h): parameters, which are written once; tags, which
 * change; measurements as programs log them; the data that it read. A run is named by the number of its
 * row here: weir_run_number. Each function runs inside the caller's transaction.
 *
 * On a connection with a row scope these tables are views that ask for each row whether it is seen. The
 * functions here that read pass them by: a caller that has a run's number has seen the run.
 */
#ifndef WEIR_TRACK_RUN_H
#define WEIR_TRACK_RUN_H

#include "track/experiment.h"
#include "track/track.h"

/* In bytes of UTF-8: of 250, 6,000 and 8,000 characters. */
#define WEIR_RUN_KEY_MAX       1000 /**< Of the name of a parameter, a tag or a measurement. */
#define WEIR_RUN_PARAMETER_MAX 24000
#define WEIR_RUN_TAG_MAX       32000

/** @return NOT_FOUND, also for a run that the transaction's scope does not show. */
weir_status weir_run_number(struct weir_txn *txn, const char *id, int64_t *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Add a run. The plain values of its `parameters`, those inside of objects as "a.b", become its
 * parameters, but for what the record hides.
 * @return As weir_txn_insert.
 */
weir_status weir_run_insert(struct weir_txn *txn, const struct weir_run *run, int64_t *out_number,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Move a run to another experiment of its project, unless something was measured in it: "system/…",
 * which the agent measures, is not counted. Else nothing is done.
 */
weir_status weir_run_move(struct weir_txn *txn, const char *id, int64_t experiment,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The number of a name, which gets one. INVALID if it is empty or over WEIR_RUN_KEY_MAX. */
weir_status weir_track_key(struct weir_txn *txn, const char *name, int64_t *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Set parameters. One that has the same value already is fine. @return CONFLICT if it has another:
 *  the message names it and both; INVALID for a name or value over its maximum. */
weir_status weir_run_parameters_put(struct weir_txn *txn, int64_t run,
                                    const struct weir_tag *parameters, size_t n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Set tags, or give them new values. @return INVALID. */
weir_status weir_run_tags_put(struct weir_txn *txn, int64_t run, const struct weir_tag *tags,
                              size_t n, struct weir_error *err) WEIR_MUST_CHECK;
/** @return NOT_FOUND. */
weir_status weir_run_tag_delete(struct weir_txn *txn, int64_t run, const char *key,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The parameters that a run has from what it was started with (weir_run.parameters): its plain values,
 * those within objects as "outer.inner". Any others of it were logged by its program.
 * @param text  NULL, or no JSON object: there are none.
 * @param out   In the arena.
 */
void weir_run_parameters_of(const char *text, struct weir_arena *arena, struct weir_tag **out,
                            size_t *out_n);

/** All of a run, by name. */
weir_status weir_run_parameters(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                                struct weir_tag **out, size_t *out_n,
                                struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_run_tags(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                          struct weir_tag **out, size_t *out_n,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Add measurements. Every one is kept; one that is there with the same key, step, time and value
 * changes nothing. An infinite value becomes the largest finite one of its sign.
 * @param metrics  `run` is not read.
 * Cost: about a microsecond for each.
 */
weir_status weir_metrics_log(struct weir_txn *txn, int64_t run, const struct weir_metric *metrics,
                             size_t n, struct weir_error *err) WEIR_MUST_CHECK;

/** The last measurement of every key, by name, however many. `run` of each is NULL. */
weir_status weir_run_metrics(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                             struct weir_metric **out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Where a page of a key's history begins: behind this measurement. */
struct weir_metric_place {
    int64_t step, time_ms;
    double value;
    bool is_nan;
};

/**
 * Measurements of one key by step, time and value. `run` of each is NULL.
 * @param after  NULL: from the first.
 */
weir_status weir_metrics_page(struct weir_txn *txn, int64_t run, const char *key,
                              const struct weir_metric_place *after, size_t limit,
                              struct weir_arena *arena, struct weir_metric **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * At most `n_max` (2 to 10,000) measurements of one key, spread evenly over its steps (over time, if all
 * have one step), among them the first and the last. All of them, if they are no more.
 * Cost: of n_max rows, however long the history is.
 */
weir_status weir_metrics_sample(struct weir_txn *txn, int64_t run, const char *key, size_t n_max,
                                struct weir_arena *arena, struct weir_metric **out, size_t *out_n,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Data that a run read. */
struct weir_run_input {
    char *name, *digest;
    char *source_type, *source, *schema, *profile; /**< May be NULL. */
    char *context;                                 /**< "training" …; NULL: none. */
    char *tags;                                    /**< JSON: [{"key", "value"}] */
};

/** Note that a run read something. What it has already stays as it is. @return INVALID. */
weir_status weir_run_input_put(struct weir_txn *txn, int64_t run, int64_t experiment,
                               const struct weir_run_input *input,
                               struct weir_error *err) WEIR_MUST_CHECK;

weir_status weir_run_inputs(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                            struct weir_run_input **out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
