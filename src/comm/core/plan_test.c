/* Plans as text and as files, against cases written by hand. */
#include "comm/core/plan.h"

#include "base/file.h"
#include "base/test_main.h"

#include <unistd.h>

START_TEST(rules_apply_up_to_and_including_their_size)
{
    struct comm_plan plan;
    ck_assert_int_eq(comm_plan_parse("flat:8K:direct#256K:4M:ring", &plan, NULL), WEIR_OK);

    static const struct {
        uint64_t bytes;
        enum comm_algorithm algorithm;
        uint32_t chunk_bytes;
    } cases[] = {{0, COMM_FLAT, 0},           {8192, COMM_FLAT, 0},
                 {8193, COMM_DIRECT, 262144}, {4194304, COMM_DIRECT, 262144},
                 {4194305, COMM_RING, 0},     {UINT64_MAX, COMM_RING, 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        const struct comm_rule *rule = comm_plan_choose(&plan, cases[i].bytes);
        ck_assert_int_eq(rule->algorithm, cases[i].algorithm);
        ck_assert_int_eq(rule->chunk_bytes, cases[i].chunk_bytes);
    }
}

END_TEST

START_TEST(what_is_printed_is_read_back)
{
    static const char *const texts[] = {"ring", "tree:1:halving",
                                        "flat:1000:tree#64K:1M:ring#1M:2G:direct"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        struct comm_plan plan;
        char text[WEIR_COMM_ALGORITHM_BYTES];
        ck_assert_int_eq(comm_plan_parse(texts[i], &plan, NULL), WEIR_OK);
        comm_plan_print(&plan, text);
        ck_assert_str_eq(text, texts[i]);
    }
}

END_TEST

START_TEST(what_is_no_plan_is_refused)
{
    static const char *const texts[] = {"",
                                        "rings",
                                        "ring:",
                                        "ring:8K",
                                        "ring:8K:",
                                        "ring:0:flat",
                                        "ring:2K:flat:1K:tree",
                                        "ring#:flat",
                                        "ring#-1",
                                        "ring:8KK:flat",
                                        "RING",
                                        "ring:99999999999999999999G:flat"};
    char long_text[1000] = "flat";
    for (int i = 1; i <= WEIR_COMM_MAX_RULES; i++) {
        char more[32];
        (void)snprintf(more, sizeof more, ":%d:flat", i);
        (void)strncat(long_text, more, sizeof long_text - strlen(long_text) - 1);
    }
    struct comm_plan plan;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        struct weir_error err;
        ck_assert_msg(comm_plan_parse(texts[i], &plan, &err) == WEIR_ERR_INVALID, "\"%s\"",
                      texts[i]);
        ck_assert_ptr_nonnull(strstr(err.message, "expected"));
    }
    ck_assert_int_eq(comm_plan_parse(long_text, &plan, NULL), WEIR_ERR_INVALID);
}

END_TEST

static void save(const char *path, int n_ranks, int n_hosts, const char *text)
{
    struct comm_plan_key key = {.transport = "tcp", .n_ranks = n_ranks, .n_hosts = n_hosts};
    struct comm_plan plan;
    ck_assert_int_eq(comm_plan_parse(text, &plan, NULL), WEIR_OK);
    ck_assert_int_eq(comm_plan_save(path, &key, &plan, NULL), WEIR_OK);
}

START_TEST(the_nearest_entry_of_a_tuning_file_counts)
{
    char dir[] = "/tmp/weir-plan-test-XXXXXX", path[64], text[WEIR_COMM_ALGORITHM_BYTES];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/tuning.json", dir);
    save(path, 4, 4, "direct");
    save(path, 16, 16, "tree");
    save(path, 4, 1, "halving");
    save(path, 16, 16, "ring"); /* in place of the tree */

    static const struct {
        int n_ranks, n_hosts;
        const char *transport, *expected;
    } cases[] = {{4, 4, "tcp", "direct"}, {4, 1, "tcp", "halving"}, {64, 64, "tcp", "ring"},
                 {2, 2, "tcp", "direct"}, {9, 1, "tcp", "halving"}, {16, 16, "tcp", "ring"}};
    struct comm_plan plan, builtin;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct comm_plan_key key = {.transport = cases[i].transport,
                                    .n_ranks = cases[i].n_ranks,
                                    .n_hosts = cases[i].n_hosts};
        ck_assert_int_eq(comm_plan_load(path, &key, &plan, NULL), WEIR_OK);
        comm_plan_print(&plan, text);
        ck_assert_str_eq(text, cases[i].expected);
    }
    struct comm_plan_key other = {.transport = "rc", .n_ranks = 4, .n_hosts = 4};
    ck_assert_int_eq(comm_plan_load(path, &other, &plan, NULL), WEIR_OK);
    comm_plan_default(&other, &builtin);
    ck_assert_mem_eq(&plan, &builtin, sizeof plan);
    ck_assert_int_eq(weir_file_write(path, "{\"kind\": 3}", 11, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(comm_plan_load(path, &other, &plan, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    ck_assert_int_eq(comm_plan_load(path, &other, &plan, NULL), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(few_add_in_rank_order_and_many_send_to_few)
{
    static const struct {
        struct comm_plan_key key;
        const char *expected;
    } cases[] = {{{"ucx", 2, 2, COMM_WIRE_F32}, "flat:8K:direct"},
                 {{"ucx", 64, 16, COMM_WIRE_BF16}, "flat:8K:direct"},
                 {{"tcp", 17, 1, COMM_WIRE_F32}, "flat:512:tree:256K:ring"},
                 {{"rc", 64, 64, COMM_WIRE_FP16}, "flat:512:tree:256K:halving"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct comm_plan plan;
        char text[WEIR_COMM_ALGORITHM_BYTES];
        comm_plan_default(&cases[i].key, &plan);
        comm_plan_print(&plan, text);
        ck_assert_str_eq(text, cases[i].expected);
    }
}

END_TEST

WEIR_TEST_MAIN("plan", rules_apply_up_to_and_including_their_size, what_is_printed_is_read_back,
               what_is_no_plan_is_refused, few_add_in_rank_order_and_many_send_to_few,
               the_nearest_entry_of_a_tuning_file_counts)
