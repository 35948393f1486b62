/**
 * The two files of results beside the shards.
 *
 * batch.json says what is predicted: {"model", "blob", "dataset", "manifest", "split", "top", "values",
 * "format", "batch_size", "shard_size", "n_files"}. Results that are there are gone on with only if it
 * is the same.
 *
 * manifest.json is written by the task that finds all shards there: {"model", "dataset", "format",
 * "n_files", "n_errors", "shards": [{"name", "bytes", "sha256", "n_rows", "n_errors"}]}. It depends on
 * the shards alone, so that two tasks that find so at the same moment write the same.
 */
#ifndef WEIR_BATCH_MANIFEST_H
#define WEIR_BATCH_MANIFEST_H

#include "batch/results.h"
#include "batch/shards.h"

/** Write or compare batch.json. @return CONFLICT: the results are of another prediction. */
weir_status batch_identity_check(struct batch_results *results, int64_t n_files,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Write manifest.json if all shards are there and it is not. *out_n_missing: shards that are not
 *  there. CORRUPT: a shard does not have its rows. */
weir_status batch_manifest_write(struct batch_results *results, const struct batch_shards *shards,
                                 int64_t *out_n_missing, struct weir_error *err) WEIR_MUST_CHECK;

/** Shards that were there when it was looked. */
int64_t batch_shards_there(const struct batch_results *results, const struct batch_shards *shards);

#endif
