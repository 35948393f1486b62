/** Changes of a snapshot whose two plans are plain to see. */
#include "sim/what_if.h"

#include "base/arena.h"
#include "base/test_main.h"
#include "sched/snapshot_json.h"

#include <string.h>

/* Eight devices; speech holds six, two over its quota; vision waits with a job of eight. */
static const char text[] =
    "{\"now_ms\": 1000000, \"nodes\": [{\"name\": \"n\", \"n_devices\": 8, \"cpu_milli\": 1000, "
    "\"memory_bytes\": 1000}],"
    "\"queues\": [{\"name\": \"vision\", \"accelerator\": {\"quota\": 4000, \"weight\": 1, "
    "\"limit\": -1}},"
    " {\"name\": \"speech\", \"accelerator\": {\"quota\": 4000, \"weight\": 1, \"limit\": -1}}],"
    "\"jobs\": ["
    "{\"name\": \"old\", \"queue\": \"speech\", \"created_ms\": 1, \"started_ms\": 1, \"tasks\": "
    "[{\"name\": \"old-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 3, "
    "\"device_milli\": 1000, \"devices\": [0, 1, 2]}]},"
    "{\"name\": \"young\", \"queue\": \"speech\", \"created_ms\": 2, \"started_ms\": 2, \"tasks\": "
    "[{\"name\": \"young-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 3, "
    "\"device_milli\": 1000, \"devices\": [3, 4, 5]}]},"
    "{\"name\": \"big\", \"queue\": \"vision\", \"created_ms\": 3, \"queued_ms\": 3, \"tasks\": "
    "[{\"name\": \"big-0\", \"state\": \"pending\", \"n_devices\": 8, \"device_milli\": 1000}]}]}";

/* All four are in their queue's quota; three go for what they do themselves. */
static const char going[] =
    "{\"now_ms\": 10000000, \"nodes\": [{\"name\": \"n\", \"n_devices\": 8, \"cpu_milli\": 1000, "
    "\"memory_bytes\": 1000}],"
    "\"queues\": [{\"name\": \"speech\", \"accelerator\": {\"quota\": 8000, \"weight\": 1, "
    "\"limit\": -1}}],"
    "\"jobs\": ["
    "{\"name\": \"works\", \"queue\": \"speech\", \"created_ms\": 1, \"started_ms\": 1, \"tasks\": "
    "[{\"name\": \"works-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 2, "
    "\"device_milli\": 1000, \"devices\": [0, 1]}]},"
    "{\"name\": \"long\", \"queue\": \"speech\", \"created_ms\": 1, \"started_ms\": 1, "
    "\"time_limit_ms\": 600000, \"tasks\": "
    "[{\"name\": \"long-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 2, "
    "\"device_milli\": 1000, \"devices\": [2, 3]}]},"
    "{\"name\": \"idle\", \"queue\": \"speech\", \"created_ms\": 1, \"started_ms\": 1, "
    "\"utilisation_pct\": 1, \"idle_since_ms\": 1, \"tasks\": "
    "[{\"name\": \"idle-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 2, "
    "\"device_milli\": 1000, \"devices\": [4, 5]}]},"
    "{\"name\": \"saved\", \"queue\": \"speech\", \"created_ms\": 1, \"started_ms\": 1, "
    "\"can_checkpoint\": true, \"checkpoint_requested_ms\": 9999000, \"evict_acknowledged\": true, "
    "\"tasks\": "
    "[{\"name\": \"saved-0\", \"state\": \"running\", \"node\": \"n\", \"n_devices\": 2, "
    "\"device_milli\": 1000, \"devices\": [6, 7], \"is_leaving\": true}]}]}";

struct world {
    struct weir_arena arena;
    json_t *document, *answer;
    struct weir_sched_snapshot snapshot;
    struct weir_sched_profile profile;
    struct weir_sim_change change;
    struct weir_error err;
};

static void open_text(struct world *world, const char *json, const char *profile)
{
    *world = (struct world){0};
    weir_arena_init(&world->arena, 0);
    ck_assert_int_eq(weir_json_parse(json, strlen(json), "text", &world->document, &world->err),
                     WEIR_OK);
    weir_status status = weir_sched_snapshot_from_json(world->document, &world->arena,
                                                       &world->snapshot, &world->err);
    ck_assert_msg(status == WEIR_OK, "%s", world->err.message);
    ck_assert_int_eq(weir_sched_profile_named(profile, &world->profile, &world->err), WEIR_OK);
    weir_sim_change_init(&world->change);
}

static void open_world(struct world *world)
{
    open_text(world, text, "kai");
}

static void close_world(struct world *world)
{
    json_decref(world->answer);
    json_decref(world->document);
    weir_arena_fini(&world->arena);
}

static weir_status ask(struct world *world)
{
    return weir_sim_what_if(&world->snapshot, &world->profile, &world->change, &world->answer,
                            &world->err);
}

/** Member of the answer's entry for a job; NULL if it has none. */
static const char *told(const struct world *world, const char *job, const char *member)
{
    const json_t *jobs = json_object_get(world->answer, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *entry = json_array_get(jobs, i);
        if (strcmp(json_string_value(json_object_get(entry, "job")), job) == 0) {
            return json_string_value(json_object_get(entry, member));
        }
    }
    return NULL;
}

START_TEST(the_next_cycle_tells_of_each_job)
{
    struct world world;
    open_world(&world);
    ck_assert_int_eq(weir_sim_next(&world.snapshot, &world.profile, &world.answer, &world.err),
                     WEIR_OK);
    ck_assert_str_eq(told(&world, "old", "outcome"), "stays");
    ck_assert_str_eq(told(&world, "big", "outcome"), "waits");
    ck_assert_int_gt(strlen(told(&world, "big", "why")), 10);
    close_world(&world);
}

END_TEST

START_TEST(half_the_accelerators_would_be_taken_back_from_the_borrower)
{
    struct world world;
    open_world(&world);
    world.change.job = "big";
    world.change.accelerators = 4;
    ck_assert_msg(ask(&world) == WEIR_OK, "%s", world.err.message);
    ck_assert_str_eq(told(&world, "big", "before"), "waits");
    ck_assert_str_eq(told(&world, "big", "after"), "starts when room is free");
    ck_assert_str_eq(told(&world, "young", "after"), "evicted");
    ck_assert_ptr_nonnull(strstr(told(&world, "young", "why_after"), "for big"));
    ck_assert_ptr_null(told(&world, "old", "after"));
    close_world(&world);
}

END_TEST

START_TEST(two_accelerators_would_start_at_once)
{
    struct world world;
    open_world(&world);
    world.change.job = "big";
    world.change.accelerators = 2;
    ck_assert_int_eq(ask(&world), WEIR_OK);
    ck_assert_str_eq(told(&world, "big", "after"), "starts");
    ck_assert_ptr_null(told(&world, "young", "after"));
    close_world(&world);
}

END_TEST

START_TEST(all_quota_would_take_everything_back)
{
    struct world world;
    open_world(&world);
    struct weir_sched_queue queues[2] = {world.snapshot.queues[0], world.snapshot.queues[1]};
    queues[1].shares[WEIR_SCHED_ACCELERATOR].quota = 0;
    world.snapshot.queues = queues;
    world.change.queue = "vision";
    world.change.quota_milli = 8000;
    ck_assert_int_eq(ask(&world), WEIR_OK);
    ck_assert_str_eq(told(&world, "big", "after"), "starts when room is free");
    ck_assert_str_eq(told(&world, "old", "after"), "evicted");
    ck_assert_str_eq(told(&world, "young", "after"), "evicted");
    close_world(&world);
}

END_TEST

START_TEST(who_goes_for_what_it_does_itself_is_told_so)
{
    struct world world;
    open_text(&world, going, "default");
    ck_assert_int_eq(weir_sim_next(&world.snapshot, &world.profile, &world.answer, &world.err),
                     WEIR_OK);
    ck_assert_str_eq(told(&world, "works", "outcome"), "stays");
    ck_assert_str_eq(told(&world, "long", "outcome"), "evicted");
    ck_assert_str_eq(told(&world, "long", "why"), "runs for longer than its time limit");
    ck_assert_str_eq(told(&world, "idle", "outcome"), "evicted");
    ck_assert_str_eq(told(&world, "idle", "why"), "its devices are idle for too long");
    ck_assert_str_eq(told(&world, "saved", "outcome"), "evicted");
    ck_assert_str_eq(told(&world, "saved", "why"),
                     "was asked to leave, and has saved or had its time");
    close_world(&world);
}

END_TEST

START_TEST(who_can_save_is_asked_to_do_so_first)
{
    struct world world;
    open_text(&world, text, "default");
    struct weir_sched_job jobs[3];
    memcpy(jobs, world.snapshot.jobs, sizeof jobs);
    jobs[0].can_checkpoint = jobs[1].can_checkpoint = true;
    world.snapshot.jobs = jobs;
    world.change.job = "big";
    world.change.accelerators = 4;
    ck_assert_msg(ask(&world) == WEIR_OK, "%s", world.err.message);
    ck_assert_str_eq(told(&world, "young", "after"), "evicted");
    ck_assert_str_eq(told(&world, "young", "why_after"),
                     "asked to save first: reclaimed by another queue, for big");
    close_world(&world);
}

END_TEST

/* One of four H100 runs; vision may have one, speech as many as it likes. */
static const char by_model[] =
    "{\"now_ms\": 1000000, \"nodes\": [{\"name\": \"n\", \"model\": \"H100\", \"n_devices\": 4, "
    "\"cpu_milli\": 1000, \"memory_bytes\": 1000}],"
    "\"queues\": [{\"name\": \"vision\", \"models\": {\"H100\": {\"limit\": 1000}}}, {\"name\": "
    "\"speech\"}],"
    "\"jobs\": ["
    "{\"name\": \"runs\", \"queue\": \"vision\", \"tasks\": [{\"name\": \"runs-0\", \"state\": "
    "\"running\", \"node\": \"n\", \"n_devices\": 1, \"device_milli\": 1000}]},"
    "{\"name\": \"more\", \"queue\": \"vision\", \"tasks\": [{\"name\": \"more-0\", "
    "\"n_devices\": 1, \"device_milli\": 1000}]},"
    "{\"name\": \"talk\", \"queue\": \"speech\", \"tasks\": [{\"name\": \"talk-0\", "
    "\"n_devices\": 1, \"device_milli\": 1000}]}]}";

START_TEST(a_share_of_one_model_may_change)
{
    struct world world;
    open_text(&world, by_model, "default");
    world.change.queue = "vision";
    world.change.model = "H100";
    world.change.limit_milli = 2000;
    ck_assert_msg(ask(&world) == WEIR_OK, "%s", world.err.message);
    ck_assert_str_eq(told(&world, "more", "before"), "waits");
    ck_assert_ptr_nonnull(strstr(told(&world, "more", "why_before"), "of model H100"));
    ck_assert_str_eq(told(&world, "more", "after"), "starts");
    ck_assert_ptr_null(told(&world, "talk", "after"));
    const json_t *queues = json_object_get(world.answer, "queues");
    ck_assert_int_eq(json_array_size(queues), 2); /* In all, and of the model. */
    const json_t *of_model = json_array_get(queues, 1);
    ck_assert_str_eq(json_string_value(json_object_get(of_model, "model")), "H100");
    ck_assert_double_eq(json_number_value(json_object_get(of_model, "allocated_before")), 1);
    ck_assert_double_eq(json_number_value(json_object_get(of_model, "allocated_after")), 2);
    close_world(&world);

    open_text(&world, by_model, "default");
    world.change.queue = "speech"; /* It has none yet. */
    world.change.model = "H100";
    world.change.limit_milli = 0;
    ck_assert_msg(ask(&world) == WEIR_OK, "%s", world.err.message);
    ck_assert_str_eq(told(&world, "talk", "before"), "starts");
    ck_assert_str_eq(told(&world, "talk", "after"), "waits");
    json_decref(world.answer);
    world.answer = NULL;
    world.change.model = "L4";
    ck_assert_int_eq(ask(&world), WEIR_ERR_NOT_FOUND);
    close_world(&world);
}

END_TEST

START_TEST(wrong_changes_are_refused)
{
    struct world world;
    open_world(&world);
    ck_assert_int_eq(ask(&world), WEIR_ERR_INVALID);
    world.change.job = "nobody";
    ck_assert_int_eq(ask(&world), WEIR_ERR_NOT_FOUND);
    world.change.job = "big";
    world.change.accelerators = 0;
    ck_assert_int_eq(ask(&world), WEIR_ERR_INVALID);
    world.change.accelerators = WEIR_SIM_KEEP;
    world.change.queue = "nowhere";
    ck_assert_int_eq(ask(&world), WEIR_ERR_NOT_FOUND);
    close_world(&world);
}

END_TEST

WEIR_TEST_MAIN("what_if", the_next_cycle_tells_of_each_job,
               half_the_accelerators_would_be_taken_back_from_the_borrower,
               two_accelerators_would_start_at_once, all_quota_would_take_everything_back,
               who_goes_for_what_it_does_itself_is_told_so, who_can_save_is_asked_to_do_so_first,
               a_share_of_one_model_may_change, wrong_changes_are_refused)
