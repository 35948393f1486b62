/**
 * Shards: which files of a dataset go into which file of results, and which task makes it.
 *
 * File i belongs to shard i / shard_size, and shard s to task s mod n_tasks. So the shards are the same
 * for any number of tasks.
 *
 * Pure; any thread.
 */
#ifndef WEIR_BATCH_SHARDS_H
#define WEIR_BATCH_SHARDS_H

#include <stddef.h>
#include <stdint.h>

/** More shards than this are refused: each is a file, and a request. */
#define BATCH_SHARDS_MAX       100000
#define BATCH_SHARD_NAME_BYTES 32

struct batch_shards {
    int64_t n_files;
    int64_t shard_size; /**< Files of each shard but the last; at least 1. */
};

/** How many there are; 0 without files. */
int64_t batch_shards_count(const struct batch_shards *shards);

/** The files of a shard: *out_n from *out_first on. */
void batch_shard_files(const struct batch_shards *shards, int64_t i_shard, int64_t *out_first,
                       int64_t *out_n);

/** The task that makes it: 0 to n_tasks - 1. */
int64_t batch_shard_task(int64_t i_shard, int64_t n_tasks);

/** "shard-00003.jsonl" of shard 3 in the format "jsonl". Returns `out`. */
const char *batch_shard_name(int64_t i_shard, const char *format, char out[BATCH_SHARD_NAME_BYTES]);

#endif
