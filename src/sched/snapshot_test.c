/* Snapshots as JSON: back and forth at random, and what is refused. */
#include "sched/snapshot_json.h"

#include "base/test_main.h"
#include "sched/test_cluster.h"

START_TEST(a_snapshot_reads_back_as_it_was_and_is_planned_alike)
{
    struct test_cluster cluster;
    struct weir_rng rng;
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sched_snapshot again;
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    weir_rng_init(&rng, (uint64_t)_i, 3);
    test_cluster_random(&cluster, &rng, 8);
    weir_arena_init(&arena, 0);
    json_t *text = weir_sched_snapshot_to_json(&cluster.snapshot);
    ck_assert_msg(weir_sched_snapshot_from_json(text, &arena, &again, &err) == WEIR_OK, "%s",
                  err.message);
    struct weir_sched_plan *first = test_plan(&cluster, &profile), *second = NULL;
    ck_assert_int_eq(weir_sched_plan(&again, &profile, &second, &err), WEIR_OK);
    json_t *left = weir_sched_plan_to_json(&cluster.snapshot, first);
    json_t *right = weir_sched_plan_to_json(&again, second);
    ck_assert(json_equal(left, right));
    json_decref(left);
    json_decref(right);
    weir_sched_plan_destroy(first);
    weir_sched_plan_destroy(second);
    json_decref(text);
    weir_arena_fini(&arena);
    test_cluster_fini(&cluster);
}

END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {"[]", "expected an object"},
    {"{\"node\": []}", "unknown member"},
    {"{\"nodes\": [{}]}", "name"},
    {"{\"nodes\": [{\"name\": \"n\", \"n_devices\": -1}]}", "devices"},
    {"{\"nodes\": [{\"name\": \"n\", \"cpu_milli\": \"4\"}]}", "an integer"},
    {"{\"queues\": [{\"name\": \"q\", \"parent\": \"q\"}]}", "a queue before it"},
    {"{\"queues\": [{\"name\": \"q\", \"cpu\": {\"quota\": -2}}]}", "negative"},
    {"{\"jobs\": [{\"name\": \"j\", \"queue\": \"q\"}]}", "name of a queue"},
    {"{\"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": \"j\", \"queue\": \"q\", \"tasks\": "
     "[{\"name\": \"t\", \"node\": \"n\"}]}]}",
     "name of a node"},
    {"{\"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": \"j\", \"queue\": \"q\", \"tasks\": "
     "[{\"name\": \"t\", \"state\": \"running\"}]}]}",
     "a node that is not there"},
    {"{\"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": \"j\", \"queue\": \"q\", \"tasks\": "
     "[{\"name\": \"t\", \"n_devices\": 1}]}]}",
     "by share or by memory"},
    {"{\"queues\": [{\"name\": \"q\"}, {\"name\": \"r\", \"parent\": \"q\"}], \"jobs\": "
     "[{\"name\": "
     "\"j\", \"queue\": \"q\"}]}",
     "not a leaf"},
};

START_TEST(what_makes_no_sense_is_refused_by_name)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sched_snapshot snapshot;
    json_t *document = json_loads(refused[_i].text, 0, NULL);
    ck_assert_ptr_nonnull(document);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_sched_snapshot_from_json(document, &arena, &snapshot, &err),
                     WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, refused[_i].says) != NULL, "%s: %s", refused[_i].text,
                  err.message);
    json_decref(document);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(profiles_are_checked)
{
    struct weir_sched_profile profile;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_sched_profile_named("none", &profile, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, &err), WEIR_OK);
    ck_assert_int_eq(weir_sched_profile_check(&profile, &err), WEIR_OK);
    profile.actions = "allocate,dance";
    ck_assert_int_eq(weir_sched_profile_check(&profile, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "dance"));
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, &err), WEIR_OK);
    profile.saturation_ppm = 1;
    ck_assert_int_eq(weir_sched_profile_check(&profile, &err), WEIR_ERR_INVALID);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tcase = tcase_create("snapshot");
    tcase_add_loop_test(tcase, a_snapshot_reads_back_as_it_was_and_is_planned_alike, 0, 50);
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_by_name, 0,
                        (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(tcase, profiles_are_checked);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
