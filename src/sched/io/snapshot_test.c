/* Snapshots as JSON: back and forth at random, and what is refused. */
#include "sched/snapshot_json.h"

#include "base/test_main.h"
#include "sched/test/test_cluster.h"
#include "sched/test_snapshot.h"

#include <stdlib.h>

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

/* Every member there is, none with its default. */
static const char everything[] =
    "{\"now_ms\": 5000, \"nodes\": ["
    "{\"name\": \"n1\", \"model\": \"A100\", \"n_devices\": 4, \"device_memory_bytes\": 80,"
    " \"device_milli\": 500, \"cpu_milli\": 64000, \"memory_bytes\": 1000, \"n_tasks_max\": 9,"
    " \"labels\": {\"zone\": \"z\", \"rack\": \"r\"}, \"taints\": [{\"key\": \"k\", \"value\": "
    "\"v\"}],"
    " \"extras\": [{\"name\": \"mig\", \"count\": 2, \"device_milli\": 142}],"
    " \"zones\": [{\"cpu_milli\": 32000, \"memory_bytes\": 500, \"n_devices\": 2}],"
    " \"numa_policy\": \"single\", \"is_whole_only\": true, \"is_cordoned\": true,"
    " \"closed_from_ms\": 7000, \"closed_until_ms\": 8000}],"
    " \"queues\": [{\"name\": \"all\", \"usage_ppm\": [0, 0, 0], \"accelerator\": {}, \"cpu\": {},"
    " \"memory\": {}}, {\"name\": \"q\", \"parent\": \"all\", \"priority\": 7,"
    " \"accelerator\": {\"quota\": 4000, \"weight\": 2, \"limit\": 8000}, \"cpu\": {\"quota\": 1},"
    " \"memory\": {\"limit\": 3}, \"models\": {\"A100\": {\"quota\": 2000, \"weight\": 3, "
    "\"limit\": "
    "4000}, \"H100\": {\"limit\": 0}}, \"usage_ppm\": [1, 2, 3], \"preempt_min_run_ms\": 10,"
    " \"reclaim_min_run_ms\": 20, \"timed_quotas\": [{\"days\": 3, \"from_minute\": 60,"
    " \"until_minute\": 120, \"accelerator\": {\"quota\": 1000, \"weight\": 5, \"limit\": 2000},"
    " \"cpu\": {\"quota\": 1, \"weight\": 1, \"limit\": -1},"
    " \"memory\": {\"quota\": -1, \"weight\": 1, \"limit\": 3},"
    " \"models\": {\"L4\": {\"quota\": 0}}}]}],"
    " \"topologies\": [{\"name\": \"t\", \"levels\": [\"zone\", \"rack\"]}],"
    " \"jobs\": [{\"name\": \"j\", \"user\": \"ada\", \"queue\": \"q\", \"priority\": 50,"
    " \"preemptibility\": \"semi-preemptible\", \"min_member\": 1, \"created_ms\": 1,"
    " \"queued_ms\": 2, \"started_ms\": 3, \"preemption_delay_ms\": 4, \"stale_since_ms\": 5,"
    " \"stale_grace_ms\": 6, \"time_limit_ms\": 7, \"expected_run_ms\": 8, \"checkpoint_ms\": 9,"
    " \"checkpoint_requested_ms\": 10, \"evict_acknowledged\": true, \"utilisation_pct\": 11,"
    " \"can_checkpoint\": true, \"idle_since_ms\": 12, \"groups\": [{\"name\": \"g\","
    " \"min_member\": 1, \"topology\": \"t\", \"required_level\": \"zone\","
    " \"preferred_level\": \"rack\"}], \"tasks\": [{\"name\": \"j-0\", \"state\": \"running\","
    " \"node\": \"n1\", \"order\": 3, \"devices\": [0, 2], \"zones\": [0], \"n_devices\": 2, "
    "\"device_milli\": 500,"
    " \"cpu_milli\": 100, \"memory_bytes\": 10, \"numa_aligned\": true, \"is_leaving\": true,"
    " \"extras\": [{\"name\": \"mig\"}], \"selector\": {\"zone\": null, \"rack\": \"r\"},"
    " \"tolerations\": [{\"key\": \"k\", \"value\": \"v\"}], \"labels\": {\"app\": \"x\"},"
    " \"scores\": {\"n1\": -5}, \"wishes\": [{\"weight\": -2, \"domains\": {\"n1\": 0}, "
    "\"labels\": "
    "{\"app\": \"y\"}}],"
    " \"affinity_key\": \"zone\", \"anti_affinity_key\": \"rack\", \"affinity_labels\": {\"a\": "
    "\"b\"},"
    " \"nomination\": {\"node\": \"n1\", \"devices\": [1, 3], \"zones\": [0]}}]}],"
    " \"reservations\": [{\"name\": \"r\", \"queue\": \"q\", \"job\": \"j\", \"from_ms\": 6000,"
    " \"until_ms\": 9000, \"nodes\": [\"n1\"]}]}";

START_TEST(every_member_reads_back)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sched_snapshot snapshot;
    json_t *given = json_loads(everything, 0, NULL);
    ck_assert_ptr_nonnull(given);
    weir_arena_init(&arena, 0);
    ck_assert_msg(weir_sched_snapshot_from_json(given, &arena, &snapshot, &err) == WEIR_OK, "%s",
                  err.message);
    json_t *written = weir_sched_snapshot_to_json(&snapshot);
    char *text = json_dumps(written, JSON_INDENT(1) | JSON_SORT_KEYS);
    ck_assert_msg(json_equal(given, written), "%s", text);
    free(text);
    json_decref(written);
    json_decref(given);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {"{\"reservations\": [{\"name\": \"r\", \"queue\": \"q\"}]}", "name of a queue"},
    {"{\"reservations\": [{\"name\": \"r\", \"job\": \"j\"}]}", "name of a job"},
    {"{\"reservations\": [{\"name\": \"r\", \"nodes\": [null]}]}", "name of a node"},
    {"{\"reservations\": [{\"name\": \"r\", \"nodes\": [\"n\"]}]}", "name of a node"},
    {"[]", "expected an object"},
    {"{\"node\": []}", "unknown member"},
    {"{\"nodes\": [{}]}", "name"},
    {"{\"nodes\": [{\"name\": \"n\", \"n_devices\": -1}]}", "devices"},
    {"{\"nodes\": [{\"name\": \"n\", \"cpu_milli\": \"4\"}]}", "an integer"},
    {"{\"queues\": [{\"name\": \"q\", \"parent\": \"q\"}]}", "a queue before it"},
    {"{\"queues\": [{\"name\": \"q\", \"cpu\": {\"quota\": -2}}]}", "negative"},
    {"{\"queues\": [{\"name\": \"q\", \"models\": [\"A100\"]}]}", "an object of shares"},
    {"{\"queues\": [{\"name\": \"q\", \"models\": {\"A100\": 4}}]}", "expected an object"},
    {"{\"queues\": [{\"name\": \"q\", \"models\": {\"A100\": {\"quote\": 4}}}]}", "unknown member"},
    {"{\"queues\": [{\"name\": \"q\", \"models\": {\"\": {}}}]}", "share of a model"},
    {"{\"queues\": [{\"name\": \"q\", \"models\": {\"A100\": {\"limit\": -2}}}]}", "negative"},
    {"{\"queues\": [{\"name\": \"q\", \"timed_quotas\": [{\"models\": {\"\": {}}}]}]}",
     "share of a model"},
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
    {"{\"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": \"j\", \"queue\": \"q\", \"tasks\": "
     "[{\"name\": \"t\", \"scores\": {\"n\": 1}}]}]}",
     "names of nodes"},
    {"{\"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": \"j\", \"queue\": \"q\", \"tasks\": "
     "[{\"name\": \"t\", \"wishes\": [{\"weight\": 1}]}]}]}",
     "no domains"},
    {"{\"nodes\": [{\"name\": \"n\"}], \"queues\": [{\"name\": \"q\"}], \"jobs\": [{\"name\": "
     "\"j\", "
     "\"queue\": \"q\", \"tasks\": [{\"name\": \"t\", \"wishes\": [{\"weight\": 1, \"domains\": "
     "{\"n\": 1}}]}]}]}",
     "out of range"},
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

/** Every time of a job: plans subtract them from each other. */
static const char *const times[] = {
    "created_ms",          "queued_ms",       "started_ms",
    "preemption_delay_ms", "stale_since_ms",  "time_limit_ms",
    "checkpoint_ms",       "expected_run_ms", "checkpoint_requested_ms",
    "idle_since_ms",
};

START_TEST(times_that_cannot_be_subtracted_are_refused)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        struct weir_arena arena;
        struct weir_error err = {0};
        struct weir_sched_snapshot snapshot;
        json_t *document =
            json_pack("{s:[{s:s}], s:[{s:s, s:s, s:I}]}", "queues", "name", "q", "jobs", "name",
                      "j", "queue", "q", times[_i], (json_int_t)extremes[i]);
        weir_arena_init(&arena, 0);
        ck_assert_int_eq(weir_sched_snapshot_from_json(document, &arena, &snapshot, &err),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, "too large") != NULL, "%s: %s", times[_i], err.message);
        json_decref(document);
        weir_arena_fini(&arena);
    }
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

WEIR_TEST_LOOPS_MAIN("snapshot", {a_snapshot_reads_back_as_it_was_and_is_planned_alike, 50},
                     {what_makes_no_sense_is_refused_by_name,
                      (int)(sizeof refused / sizeof refused[0])},
                     {times_that_cannot_be_subtracted_are_refused,
                      (int)(sizeof times / sizeof times[0])},
                     {every_member_reads_back, 0}, {profiles_are_checked, 0})
