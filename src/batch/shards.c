#include "batch/shards.h"

#include "base/macros.h"

#include <stdio.h>

int64_t batch_shards_count(const struct batch_shards *shards)
{
    return shards->n_files / shards->shard_size + (shards->n_files % shards->shard_size != 0);
}

void batch_shard_files(const struct batch_shards *shards, int64_t i_shard, int64_t *out_first,
                       int64_t *out_n)
{
    *out_first = i_shard * shards->shard_size;
    *out_n = WEIR_MIN(shards->shard_size, shards->n_files - *out_first);
}

int64_t batch_shard_task(int64_t i_shard, int64_t n_tasks)
{
    return i_shard % n_tasks;
}

const char *batch_shard_name(int64_t i_shard, const char *format, char out[BATCH_SHARD_NAME_BYTES])
{
    (void)snprintf(out, BATCH_SHARD_NAME_BYTES, "shard-%05lld.%.8s", (long long)i_shard, format);
    return out;
}
