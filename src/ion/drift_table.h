/**
 * Drift table: what the health reports of a span of time say of an ION, as a row for each signal of a pipeline. A row has
 * what its newest report says, counts and histogram of all its windows, how its p-value went over the parts of the span,
 * since when it drifts, and the frames that lie farthest from training.
 *
 * It is made of reports that are stored, each of which names its farthest frames (predict/farthest.h): no decision is
 * looked through for it.
 *
 *     struct weir_drift_table table = {.since_ms = since, .until_ms = until, .n_points = 60};
 *     WEIR_TRY(weir_drift_table_read(txn, "door", NULL, arena, &table, err));
 *     … write or free each row's JSON …
 */
#ifndef WEIR_ION_DRIFT_TABLE_H
#define WEIR_ION_DRIFT_TABLE_H

#include "base/arena.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_txn;

/** Frames of one signal. */
#define WEIR_FAR_FRAMES_MAX 10

/** A frame that lies far from training by its value of a signal. */
struct weir_far_frame {
    const char *camera;
    int64_t frame, time_ms;
    double value, sigmas;
    const char *decision; /**< That was made of it; NULL: none is kept. */
    bool has_picture;     /**< The decision's picture is kept. */
};

/** A row. Text lies in the arena. JSON is owned; NULL: not known. */
struct weir_drift_signal {
    const char *pipeline, *signal, *replica, *statistic;
    int64_t model_version;
    double value, p_value;
    bool drifted;
    /** "drifts"; "watch": its p-value is small even among so many signals (Benjamini and Hochberg); "none". */
    const char *state;
    int64_t n_samples, n_windows, n_drifted;
    int64_t time_ms,
        began_ms; /**< When the newest report came; since when it drifts, 0: it does not. */
    json_t *effect, *live_mean, *live_stddev, *baseline_mean, *baseline_stddev, *distances,
        *baseline, *cameras; /**< As the newest report's detail has them. */
    json_t *live;  /**< The same, with counts of all windows of these edges and version. */
    json_t *cells; /**< Smallest p-value of each part of the span; null: no report. */
    struct weir_far_frame *farthest; /**< The farthest first; a frame is there once. */
    size_t n_farthest;
};

struct weir_drift_table {
    int64_t since_ms, until_ms;        /**< In: the span, [since, until), of at least 1 ms. */
    int64_t n_points;                  /**< In: into so many equal parts; at least 1. */
    struct weir_drift_signal *signals; /**< Those that drift first, then by p-value. */
    size_t n;
    bool is_cut; /**< There are more reports, or signals, than were looked at. */
};

/**
 * Read the reports of an ION, or of one of its pipelines, and make the table.
 *
 * @param pipeline  NULL: all.
 * @param inout_table  The span is the caller's; the rows are set on success, and lie in the arena.
 * Cost: the newest 5000 reports of the span at most, and a look-up for each far frame.
 */
weir_status weir_drift_table_read(struct weir_txn *txn, const char *ion, const char *pipeline,
                                  struct weir_arena *arena, struct weir_drift_table *inout_table,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
