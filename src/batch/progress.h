/**
 * Progress: how far a batch prediction is, for its log and its run's curves: "files" and "shards" that
 * are done by all tasks together, "files_per_second" of this task. The step is the number of shards
 * done, so that the tasks' reports make one curve.
 *
 * A report that does not arrive is told in the log and forgotten.
 */
#ifndef WEIR_BATCH_PROGRESS_H
#define WEIR_BATCH_PROGRESS_H

#include "batch/results.h"
#include "batch/shards.h"

struct batch_progress {
    struct batch_results *results; /**< Borrowed. */
    const struct batch_shards *shards;
    int64_t start_ms, last_ms; /**< Monotonic. */
    int64_t n_files;           /**< Of this task, since it started. */
    int64_t n_errors;          /**< Of those. */
    bool is_refused;           /**< The server wants no reports. */
};

void batch_progress_start(struct batch_progress *progress, struct batch_results *results,
                          const struct batch_shards *shards);

/** A shard is done. Tells it if a second has passed since the last time. */
void batch_progress_add(struct batch_progress *progress, int64_t n_files, int64_t n_errors);

/** Tells where it stands now. */
void batch_progress_tell(struct batch_progress *progress);

#endif
