#include "batch/shards.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

/* Whatever the numbers are: each file is in one shard, each shard is one task's. */
START_TEST(every_file_is_made_once_whatever_the_number_of_tasks)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 29, (uint64_t)_i);
    struct batch_shards shards = {.n_files = (int64_t)weir_rng_below(&rng, 3000),
                                  .shard_size = 1 + (int64_t)weir_rng_below(&rng, 200)};
    int64_t n_tasks = 1 + (int64_t)weir_rng_below(&rng, 20), n_shards = batch_shards_count(&shards);
    int *times = calloc((size_t)shards.n_files + 1, sizeof *times);
    ck_assert_ptr_nonnull(times);
    for (int64_t task = 0; task < n_tasks; task++) {
        for (int64_t i = 0; i < n_shards; i++) {
            int64_t first, n;
            batch_shard_files(&shards, i, &first, &n);
            ck_assert(n >= 1 && n <= shards.shard_size && first + n <= shards.n_files);
            for (int64_t k = first; batch_shard_task(i, n_tasks) == task && k < first + n; k++) {
                ck_assert_int_eq(k / shards.shard_size, i);
                times[k]++;
            }
        }
    }
    for (int64_t k = 0; k < shards.n_files; k++) {
        ck_assert_msg(times[k] == 1, "seed 29/%d: file %lld: %d times", _i, (long long)k, times[k]);
    }
    free(times);
}

END_TEST

START_TEST(shards_have_names_in_their_order)
{
    char a[BATCH_SHARD_NAME_BYTES], b[BATCH_SHARD_NAME_BYTES];
    ck_assert_str_eq(batch_shard_name(3, "jsonl", a), "shard-00003.jsonl");
    ck_assert_str_eq(batch_shard_name(99999, "csv", a), "shard-99999.csv");
    ck_assert_int_lt(strcmp(batch_shard_name(9, "csv", a), batch_shard_name(10, "csv", b)), 0);
    ck_assert_int_eq(batch_shards_count(&(struct batch_shards){0, 5}), 0);
    ck_assert_int_eq(batch_shards_count(&(struct batch_shards){5, 5}), 1);
    ck_assert_int_eq(batch_shards_count(&(struct batch_shards){6, 5}), 2);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("shards", {every_file_is_made_once_whatever_the_number_of_tasks, 50},
                     {shards_have_names_in_their_order, 1})
