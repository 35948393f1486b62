#include "serve/replica/test_replica.h"
#include "serve/replica/versions.h"

#include "base/clock.h"

static struct test_replica t; /* for its files */
static struct versions *versions;
static struct weir_error err;

static void start(void)
{
    test_replica_files(&t);
    ck_assert_int_eq(
        versions_create(&(struct versions_config){.executor = {.n_threads = 1}}, &versions, &err),
        WEIR_OK);
}

static void stop(void)
{
    versions_destroy(versions);
    test_replica_stop(&t);
}

static struct version_wanted wanted_of(const char *path, int64_t number)
{
    return (struct version_wanted){.model = "m",
                                   .number = number,
                                   .path = path,
                                   .blob = path,
                                   .rules = {.batch_max = 4, .queue_max = 8}};
}

static void load(const char *path, int64_t number)
{
    const struct version_wanted wanted = wanted_of(path, number);
    ck_assert_msg(versions_load(versions, &wanted, &err) == WEIR_OK, "%s", err.message);
}

/* State of the version in the list; -1: it is not there. */
static int state_of(int64_t number)
{
    struct weir_arena arena;
    struct versions_view view;
    int state = -1;
    weir_arena_init(&arena, 0);
    versions_view(versions, &arena, &view);
    for (size_t i = 0; i < view.n; i++) {
        state = view.rows[i].number == number ? (int)view.rows[i].state : state;
        ck_assert((view.rows[i].version != NULL) == (view.rows[i].state == VERSION_READY));
    }
    versions_view_release(&view);
    weir_arena_fini(&arena);
    return state;
}

START_TEST(the_highest_ready_version_answers_unless_one_is_named)
{
    struct version *version;
    ck_assert_int_eq(versions_get(versions, "m", 0, &version, &err), WEIR_ERR_NOT_FOUND);
    load(t.relu_path, 2);
    load(t.net_path, 7);
    versions_announce(versions, "m", 9);
    ck_assert_int_eq(state_of(9), VERSION_LOADING);
    ck_assert_int_eq(versions_get(versions, NULL, 0, &version, &err), WEIR_OK);
    ck_assert_int_eq(version->number, 7);
    version_unref(version);
    ck_assert_int_eq(versions_get(versions, "m", 2, &version, &err), WEIR_OK);
    ck_assert_str_eq(version->signature.executor, "onnx");
    version_unref(version);
    ck_assert_int_eq(versions_get(versions, "m", 9, &version, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "version 9 of m is LOADING");
    ck_assert_int_eq(versions_get(versions, "m", 3, &version, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(versions_get(versions, "n", 0, &version, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_str_eq(err.message, "there is no model n here; there is: m");
}

END_TEST

START_TEST(a_version_in_use_outlives_its_unloading)
{
    struct version *version;
    load(t.relu_path, 1);
    ck_assert_int_eq(versions_get(versions, "m", 1, &version, &err), WEIR_OK);
    ck_assert(versions_unload(versions, "m", 1));
    ck_assert(!versions_unload(versions, "m", 1));
    ck_assert_int_eq(state_of(1), VERSION_UNLOADING);
    struct version *other;
    ck_assert_int_eq(versions_get(versions, "m", 1, &other, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_str_eq(version->signature.inputs[0].name, "x"); /* still there */
    version_unref(version);
    versions_wait_freed(versions);
    ck_assert_int_eq(state_of(1), -1);
}

END_TEST

START_TEST(the_same_file_is_not_loaded_again_and_another_replaces_it)
{
    struct version *first, *second;
    load(t.relu_path, 1);
    ck_assert_int_eq(versions_get(versions, "m", 1, &first, &err), WEIR_OK);
    struct version_wanted wanted = wanted_of(t.relu_path, 1);
    wanted.rules.batch_max = 32;
    ck_assert_int_eq(versions_load(versions, &wanted, &err), WEIR_OK);
    ck_assert_int_eq(versions_get(versions, "m", 1, &second, &err), WEIR_OK);
    ck_assert_ptr_eq(first, second);
    struct batcher_rules rules;
    batcher_get_rules(second->batcher, &rules);
    ck_assert_int_eq(rules.batch_max, 32);
    version_unref(second);
    load(t.net_path, 1);
    ck_assert_int_eq(versions_get(versions, "m", 1, &second, &err), WEIR_OK);
    ck_assert_ptr_ne(first, second);
    ck_assert_str_eq(second->signature.executor, "weir");
    version_unref(second);
    version_unref(first);
}

END_TEST

START_TEST(what_cannot_be_loaded_is_failed_with_the_reason_and_the_old_one_serves)
{
    struct version *version;
    char path[TEST_PATH_BYTES + 8];
    (void)snprintf(path, sizeof path, "%s/bad", t.folder);
    ck_assert_int_eq(weir_file_write(path, "hello", 5, 0600, &err), WEIR_OK);
    struct version_wanted wanted = wanted_of(path, 4);
    ck_assert_int_ne(versions_load(versions, &wanted, &err), WEIR_OK);
    ck_assert_int_eq(state_of(4), VERSION_FAILED);
    ck_assert_int_eq(versions_get(versions, "m", 4, &version, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "FAILED: "));
    load(t.relu_path, 5);
    wanted.number = 5;
    ck_assert_int_ne(versions_load(versions, &wanted, &err), WEIR_OK);
    ck_assert_int_eq(state_of(5), VERSION_READY);
    ck_assert(versions_unload(versions, "m", 4));
    ck_assert_int_eq(state_of(4), -1);
}

END_TEST

START_TEST(memory_is_bounded_over_all_versions)
{
    versions_set_limits(versions, 1, 1);
    const struct version_wanted wanted = wanted_of(t.net_path, 1);
    ck_assert_int_eq(versions_load(versions, &wanted, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "unload one, or allow more"));
    ck_assert_int_eq(state_of(1), VERSION_LOADING); /* room may be made */
    versions_set_limits(versions, (size_t)1 << 40, 1);
    ck_assert_int_eq(versions_load(versions, &wanted, &err), WEIR_OK);
    ck_assert_int_eq(state_of(1), VERSION_READY);
}

END_TEST

START_TEST(golden_inputs_are_checked_before_a_version_takes_requests)
{
#define INPUT                                                                                      \
    "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,-2,3,-4]}],"

    static const struct {
        const char *golden, *sentence;
    } cases[] = {
        {INPUT
         "\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,0,3,0]}]}",
         NULL},
        {INPUT
         "\"tolerance\":0.6,\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":\"FP32\","
         "\"data\":[2,0,3,0]}]}",
         NULL},
        {INPUT
         "\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[2,0,3,0]}]}",
         "element 0 of 'y' is 1, expected 2"},
        {INPUT
         "\"outputs\":[{\"name\":\"y\",\"shape\":[4],\"datatype\":\"FP32\",\"data\":[1,0,3,0]}]}",
         "expected FLOAT 4"},
        {"[" INPUT "\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,"
         "0,3,0]}]}," INPUT "\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":"
         "\"FP32\",\"data\":[1,0,3,7]}]}]",
         "case 2: golden check: element 3 of 'y' is 0, expected 7"},
        {INPUT "\"outputs\":[]}", "no output is expected"},
        {"[]", "there is no case"},
        {"{\"outputs\":[]}", "'x' is missing"},
        {"{\"inputs\":[{\"name\":\"q\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
         "no 'q'"},
        {"{", "JSON"},
    };

#undef INPUT
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct version_wanted wanted = wanted_of(t.relu_path, 1);
        wanted.blob = NULL;
        wanted.golden = cases[i].golden;
        wanted.golden_len = strlen(cases[i].golden);
        weir_status status = versions_load(versions, &wanted, &err);
        ck_assert_msg((status == WEIR_OK) == (cases[i].sentence == NULL), "%s: %s", cases[i].golden,
                      err.message);
        ck_assert_msg(status == WEIR_OK || strstr(err.message, cases[i].sentence) != NULL, "%s",
                      err.message);
        (void)versions_unload(versions, "m", 1);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("versions", start, stop, the_highest_ready_version_answers_unless_one_is_named,
                    a_version_in_use_outlives_its_unloading,
                    the_same_file_is_not_loaded_again_and_another_replaces_it,
                    what_cannot_be_loaded_is_failed_with_the_reason_and_the_old_one_serves,
                    memory_is_bounded_over_all_versions,
                    golden_inputs_are_checked_before_a_version_takes_requests)
