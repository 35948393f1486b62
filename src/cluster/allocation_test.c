#include "cluster/allocation.h"

#include "base/macros.h"
#include "base/record.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

static struct weir_arena arena;

static struct weir_node_share read_share(const char *tag, char *const *environment,
                                         const char *host)
{
    struct weir_node_share share;
    struct weir_error err;
    if (weir_node_share_read(tag, environment, host, &arena, &share, &err) != WEIR_OK) {
        ck_abort_msg("%s", err.message);
    }
    return share;
}

START_TEST(what_slurm_says_of_a_step_is_the_share)
{
    char *const environment[] = {"SLURM_JOB_ID=4711",
                                 "SLURM_JOB_PARTITION=lo",
                                 "SLURMD_NODENAME=n3",
                                 "SLURM_CPUS_ON_NODE=8",
                                 "SLURM_MEM_PER_CPU=1024",
                                 "CUDA_VISIBLE_DEVICES=2,3",
                                 "SLURM_STEP_GPUS=6,7",
                                 "WEIR_ACCELERATOR_MODEL=h200",
                                 "SLURM_JOB_END_TIME=1795923805",
                                 NULL};
    const struct weir_node_share share = read_share("slurm-a-1f9a", environment, "machine");
    ck_assert_str_eq(share.node, "slurm-a-1f9a-n3");
    ck_assert_str_eq(share.job_id, "4711");
    ck_assert_str_eq(share.partition, "lo");
    ck_assert_int_eq(share.cpus, 8);
    ck_assert_int_eq(share.memory_bytes, (int64_t)8 << 30);
    ck_assert_str_eq(share.devices, "2,3");
    ck_assert_int_eq(share.n_devices, 2);
    ck_assert_str_eq(share.model, "h200");
    ck_assert_int_eq(share.ends_ms, 1795923805000);
}

END_TEST

/* How large a part is only who asked for it knows. */
START_TEST(a_part_of_an_accelerator_counts_where_it_is_told_how_large_it_is)
{
    char *environment[] = {"SLURM_SHARDS_ON_NODE=3", "CUDA_VISIBLE_DEVICES=0",
                           "WEIR_ACCELERATOR_MILLI=300", NULL};
    struct weir_node_share share = read_share("t", environment, "a");
    ck_assert_int_eq(share.n_shards, 3);
    ck_assert_int_eq(share.device_milli, 300);
    ck_assert_str_eq(share.devices, "0");
    environment[2] = "WEIR_ACCELERATOR_MILLI=1000";
    share = read_share("t", environment, "a");
    ck_assert_int_eq(share.device_milli, 0);
    ck_assert_str_eq(share.devices, "");
    environment[1] = "CUDA_VISIBLE_DEVICES=0,1";
    environment[2] = "WEIR_ACCELERATOR_MILLI=300";
    ck_assert_str_eq(read_share("t", environment, "a").devices, "");
}

END_TEST

START_TEST(without_accelerators_there_are_none_whatever_the_machine_has)
{
    static const char *const none[] = {"CUDA_VISIBLE_DEVICES=NoDevFiles",
                                       "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1", "HOME=/",
                                       "CUDA_VISIBLE_DEVICES=0"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(none); i++) {
        const char *shards = i == 4 ? "SLURM_SHARDS_ON_NODE=5" : "SLURM_SHARDS_ON_NODE=";
        char *const environment[] = {(char *)none[i], "SLURM_MEM_PER_NODE=0", (char *)shards, NULL};
        const struct weir_node_share share = read_share("t", environment, "a");
        WEIR_AUTO(weir_json_auto_free)
        json_t *inventory = json_pack("{s:i,s:i,s:i,s:{s:[{}]}}", "cpu_slots", 64, "memory_bytes",
                                      1000, "n_accelerators", 8, "inventory", "accelerators");
        ck_assert_str_eq(share.devices, "");
        weir_node_share_apply(&share, inventory);
        ck_assert_int_eq(json_integer_value(json_object_get(inventory, "n_accelerators")), 0);
        ck_assert_int_eq(json_integer_value(json_object_get(inventory, "cpu_slots")), 64);
        ck_assert_int_eq(json_integer_value(json_object_get(inventory, "memory_bytes")), 1000);
        const json_t *found = json_object_get(inventory, "inventory");
        ck_assert_uint_eq(json_array_size(json_object_get(found, "accelerators")), 0);
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(found, "slurm"), "node")), "a");
    }
}

END_TEST

START_TEST(a_tag_that_is_none_or_leaves_no_room_is_refused)
{
    static const char *const tags[] = {
        "", "-a", "A", "a b", "a.b", "a/b", "0123456789012345678901234567890123456789012345678901"};
    char *const environment[] = {NULL};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tags); i++) {
        struct weir_node_share share;
        struct weir_error err;
        ck_assert_int_eq(weir_node_share_read(tags[i], environment, "a", &arena, &share, &err),
                         WEIR_ERR_INVALID);
    }
}

END_TEST

/* Whatever a host is called, and whatever the environment says: a name in its form that begins with the tag, another one
 * for another host, and nothing negative. */
START_TEST(any_environment_gives_a_node)
{
    static const char *const names[] = {
        "SLURMD_NODENAME",   "SLURM_JOB_ID",         "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE",
        "SLURM_MEM_PER_CPU", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_END_TIME", "SLURM_SHARDS_ON_NODE"};
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int i = 0; i < 3000; i++) {
        char texts[WEIR_ARRAY_LEN(names)][96], tag[52], host[2][96];
        char *environment[WEIR_ARRAY_LEN(names) + 1] = {NULL};
        for (size_t k = 0; k < WEIR_ARRAY_LEN(names); k++) {
            size_t len = weir_rng_below(&rng, 60), at;
            at = (size_t)snprintf(texts[k], sizeof texts[k], "%s=", names[k]);
            for (size_t c = 0; c < len; c++) {
                texts[k][at++] = (char)(weir_rng_below(&rng, 3) == 0
                                            ? 1 + weir_rng_below(&rng, 255)
                                            : (uint64_t) "0123456789,-"[weir_rng_below(&rng, 12)]);
            }
            texts[k][at] = '\0';
            environment[k] = texts[k];
        }
        size_t tag_len = 1 + weir_rng_below(&rng, 49);
        memset(tag, 'a' + (int)weir_rng_below(&rng, 26), tag_len);
        tag[tag_len] = '\0';
        struct weir_node_share share = read_share(tag, environment, "m");
        ck_assert_msg(weir_name_is_valid(share.node), "%s", share.node);
        ck_assert(strncmp(share.node, tag, tag_len) == 0 && share.node[tag_len] == '-');
        ck_assert(share.cpus >= 0 && share.memory_bytes >= 0 && share.ends_ms >= 0 &&
                  share.n_shards >= 0);
        for (size_t k = 0; k < 2; k++) { /* the same but for one letter, somewhere */
            memset(host[k], 'x', sizeof host[k]);
            host[k][weir_rng_below(&rng, 90)] = (char)('a' + (int)weir_rng_below(&rng, 20));
            host[k][90] = '\0';
        }
        environment[0] = NULL;
        const char *first = read_share(tag, environment, host[0]).node;
        const char *second = read_share(tag, environment, host[1]).node;
        ck_assert_int_eq(strcmp(first, second) == 0, strcmp(host[0], host[1]) == 0);
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
    }
}

END_TEST

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

WEIR_TEST_MAIN_WITH("allocation", set_up, tear_down, what_slurm_says_of_a_step_is_the_share,
                    a_part_of_an_accelerator_counts_where_it_is_told_how_large_it_is,
                    without_accelerators_there_are_none_whatever_the_machine_has,
                    a_tag_that_is_none_or_leaves_no_room_is_refused, any_environment_gives_a_node)
