/* Queues, and jobs that stop and go on, as people see them. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define JOB  "00000000-0000-4000-8000-0000000000b1"
#define TASK "00000000-0000-4000-8000-0000000000a1"

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
}

static void tear_down(void)
{
    callers_close();
}

/* The newest event of this kind has this actor and sentence; NULL: any. */
static void told(const char *kind, const char *actor, const char *message)
{
    EXPECT(200, "GET " API "/events?kind=%s&limit=1", kind);
    ck_assert_msg(json_array_size(said("items")) == 1, "nothing told of %s", kind);
    ck_assert_str_eq(said_text("items.0.actor"), actor);
    if (message != NULL) {
        ck_assert_str_eq(said_text("items.0.message"), message);
    }
}

START_TEST(a_queue_is_as_it_was_set_and_says_what_it_has)
{
    EXPECT(404, "GET " API "/queues/blue");
    EXPECT(200, "PUT " API "/queues/blue\n\n{\"project\":\"default\",\"shares\":"
                "{\"cpus\":{\"guarantee\":2,\"limit\":3}},\"min_run_ms\":60000}");
    ck_assert_str_eq(said_text("project"), "default");
    ck_assert_int_eq(json_integer_value(said("shares.cpus.guarantee")), 2);
    ck_assert_int_eq(json_integer_value(said("min_run_ms")), 60000);
    ck_assert_int_eq(json_integer_value(said("priority")), 100);
    ck_assert(json_is_true(said("is_set")));
    ck_assert_int_eq(json_integer_value(said("used.cpus")), 0);
    EXPECT(200, "GET " API "/queues");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "PUT " API "/queues/blue\n\n{\"project\":\"default\"}");
    ck_assert(json_is_null(said("shares")));
    told("queue_set", "ann",
         "Queue blue was set: shares none, before {\"cpus\":{\"guarantee\":2,\"limit\":3}}; "
         "min_run_ms -1, before 60000.");
    ck_assert_int_eq(json_integer_value(said("items.0.data.before.min_run_ms")), 60000);
    EXPECT(204, "DELETE " API "/queues/blue");
    told("queue_deleted", "ann", "Queue blue was deleted.");
    EXPECT(404, "DELETE " API "/queues/blue");
}

END_TEST

START_TEST(a_queue_that_makes_no_sense_is_refused)
{
    EXPECT(404, "PUT " API "/queues/blue\n\n{\"project\":\"none\"}");
    EXPECT(404, "PUT " API "/queues/blue\n\n{\"parent\":\"none\"}");
    EXPECT(400, "PUT " API "/queues/blue\n\n{\"name\":\"green\"}");
    EXPECT(400, "PUT " API "/queues/No!\n\n{}");
    EXPECT(400, "PUT " API "/queues/blue\n\n{\"shares\":{\"gpus\":{}}}");
    ck_assert_str_eq(said_text("error.message"), "$.shares: \"gpus\" is not known here");
    EXPECT(400, "PUT " API "/queues/blue\n\n{\"shares\":7}");
    EXPECT(400, "PUT " API "/queues/blue\n\n{\"created_ms\":7}");
    EXPECT(400, "PUT " API "/queues/blue\n\n{\"min_run_ms\":-2}");
}

END_TEST

START_TEST(how_much_past_use_counts_is_set_as_a_whole)
{
    EXPECT(200, "GET " API "/past-use");
    ck_assert_int_eq(json_integer_value(said("half_life_ms")), 604800000);
    ck_assert_double_eq(json_number_value(said("weight")), 0);
    EXPECT(400, "PUT " API "/past-use\n\n{\"weight\":1}");
    EXPECT(400, "PUT " API "/past-use\n\n{\"weight\":-1,\"half_life_ms\":3600000}");
    EXPECT(400, "PUT " API "/past-use\n\n{\"weight\":1,\"half_life_ms\":3600000,\"k\":1}");
    EXPECT(200, "PUT " API "/past-use\n\n{\"weight\":1.5,\"half_life_ms\":3600000}");
    told("past_use_set", "ann",
         "Past use counts with weight 1.5 and a half-life of 3600 s, before with 0 and 604800 s.");
    EXPECT(200, "GET " API "/past-use");
    ck_assert_double_eq(json_number_value(said("weight")), 1.5);
    EXPECT(200, "PUT " API "/queues/blue\n\n{\"project\":\"default\"}");
    ck_assert_double_eq(json_number_value(said("past_use.cpus")), 0);
    ck_assert_double_eq(json_number_value(said("past_use.times_share")), 0);
}

END_TEST

START_TEST(what_if_needs_a_change)
{
    EXPECT(400, "POST " API "/what-if\n\n{}");
    EXPECT(400, "POST " API "/what-if\n\n{\"queue\":\"blue\"}");
    EXPECT(400, "POST " API "/what-if\n\n{\"n_nodes\":2}");
    EXPECT(400, "POST " API "/what-if\n\n{\"node\":\"n\"}");
    EXPECT(404, "POST " API "/what-if\n\n{\"add_node\":\"m\"}");
    EXPECT(200, "POST " API "/what-if\n\n{\"add_node\":\"n\",\"n_nodes\":3}");
    ck_assert_uint_eq(json_array_size(said("jobs")), 0);
    ck_assert_int_eq(json_integer_value(said("after.starts")), 0);
}

END_TEST

START_TEST(a_job_is_held_and_goes_on_and_is_sent_back)
{
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "command", .node = "n", .spec = "{\"argv\":[\"true\"]}"});
    EXPECT(200, "POST " API "/jobs/" JOB "/requeue");
    ck_assert_str_eq(said_text("state"), "STOPPING");
    ck_assert_str_eq(said_text("outcome"), "PENDING");
    ck_assert_int_eq(json_integer_value(said("n_evictions")), 1);
    EXPECT(409, "POST " API "/jobs/" JOB "/requeue");
    EXPECT(200, "POST " API "/jobs/" JOB "/hold");
    ck_assert(json_is_true(said("is_held")));
    ck_assert_str_eq(said_text("reason"), "held by ann");
    EXPECT(200, "GET " API "/jobs/" JOB "/explanation");
    ck_assert_ptr_nonnull(strstr(said_text("why"), "held by ann"));
    ck_assert(json_is_false(said("is_kept")));
    ck_assert(json_is_null(said("expected_latest")));
    ck_assert_uint_eq(json_array_size(said("ahead")), json_integer_value(said("n_ahead")));
    EXPECT(200, "POST " API "/jobs/" JOB "/resume");
    ck_assert(json_is_false(said("is_held")));
    ck_assert_str_eq(said_text("id"), JOB); /* The same job, not another. */
    told("job_released", "ann", "Job j is held no longer: released by ann.");
    told("job_held", "ann", "Job j is held by ann.");
    told("job_evicted", "ann", NULL);
    EXPECT(200, "POST " API "/jobs/" JOB "/cancel");
    told("job_cancel_asked", "ann", "Job j is stopped for good: cancelled by ann.");
    EXPECT(404, "POST " API "/jobs/none/hold");
    EXPECT(404, "GET " API "/jobs/none/explanation");
}

END_TEST

START_TEST(guarantees_above_what_the_nodes_have_need_insistence)
{
    EXPECT(200, "PUT " API "/queues/blue\n\n{\"shares\":{\"cpus\":{\"guarantee\":3}}}");
    EXPECT_ERROR(409,
                 "guarantees of 5 CPUs in all are more than the 4 CPUs that the nodes have; of "
                 "theirs these do not use: blue (3 CPUs). Take it from them first",
                 "PUT " API "/queues/green\n\n{\"shares\":{\"cpus\":{\"guarantee\":2}}}");
    EXPECT_ERROR(
        409, "no other queue has any that it does not use. Guarantee less, add nodes, or insist",
        "PUT " API "/queues/blue\n\n{\"shares\":{\"cpus\":{\"guarantee\":9}}}");
    EXPECT(404, "DELETE " API "/queues/green");
    EXPECT(200, "PUT " API "/queues/green?force=1\n\n{\"shares\":{\"cpus\":{\"guarantee\":2}}}");
    /* Too much is guaranteed already: less is taken, more is not. */
    EXPECT(200, "PUT " API "/queues/blue\n\n{\"shares\":{\"cpus\":{\"guarantee\":3}}}");
    EXPECT(409, "PUT " API "/queues/blue\n\n{\"shares\":{\"cpus\":{\"guarantee\":4}}}");
    EXPECT(200, "POST " API "/what-if\n\n{\"queue\":\"blue\",\"shares\":{\"cpus\":"
                "{\"guarantee\":4,\"weight\":3}}}");
    ck_assert(json_is_false(said("guarantees.can_be_kept")));
    ck_assert_int_eq(json_integer_value(said("guarantees.sum.cpus")), 6);
    EXPECT(200, "POST " API "/what-if\n\n{\"queue\":\"default\",\"priority\":7}");
    ck_assert_str_eq(said_text("queues.0.name"), "default");
}

END_TEST

START_TEST(the_priority_of_a_job_that_waits_or_runs_is_changed)
{
    char viewer[BEARER_BYTES];
    make_caller("vic", "viewer", "", viewer);
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "command", .node = "n", .spec = "{\"argv\":[\"true\"]}"});
    EXPECT(200, "PATCH " API "/jobs/" JOB "\n\n{\"priority\":70}");
    ck_assert_int_eq(json_integer_value(said("priority")), 70);
    told("job_priority", "ann", "Job j has priority 70, before 0: set by ann.");
    EXPECT(400, "PATCH " API "/jobs/" JOB "\n\n{\"priority\":1001}");
    EXPECT(400, "PATCH " API "/jobs/" JOB "\n\n{}");
    EXPECT(400, "PATCH " API "/jobs/" JOB "\n\n{\"name\":\"x\"}");
    EXPECT_STATUS(403, ask_as(viewer, "PATCH " API "/jobs/" JOB "\n\n{\"priority\":7}"));
    EXPECT(404, "PATCH " API "/jobs/none\n\n{\"priority\":7}");
}

END_TEST

START_TEST(who_may_hold_may_release_and_who_may_not_submit_starts_nothing_again)
{
    char operator[BEARER_BYTES];
    make_caller("olga", "operator", "", operator);
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "command", .node = "n", .spec = "{\"argv\":[\"true\"]}"});
    EXPECT_STATUS(200, ask_as(operator, "POST " API "/jobs/" JOB "/hold"));
    EXPECT_STATUS(200, ask_as(operator, "POST " API "/jobs/" JOB "/resume"));
    ck_assert(json_is_false(said("is_held")));
    told("job_released", "olga", NULL);
    EXPECT_STATUS(403, ask_as(operator, "POST " API "/jobs/" JOB "/resume"));
}

END_TEST

START_TEST(each_act_of_a_person_names_them)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"vision\"}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"faces\",\"project\":\"vision\"}");
    told("dataset_created", "ann", "Dataset faces was made in project vision: empty, for uploads.");
    EXPECT(200, "GET " API "/events?topic=audit&kind=project_created");
    ck_assert_ptr_nonnull(strstr(said_text("items.0.message"), "Project vision was made"));
    ck_assert_str_eq(said_text("items.0.actor"), "ann");
    EXPECT(204, "POST " API "/store/sweep");
    told("store_swept", "ann", NULL);
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = "train",
                                   .node = "n",
                                   .run = "00000000-0000-4000-8000-0000000000c1"});
    EXPECT(200, "PATCH " API "/runs/00000000-0000-4000-8000-0000000000c1\n\n"
                "{\"status\":\"FAILED\"}");
    told("run_changed", "ann", "Run r has status FAILED, before RUNNING.");
    EXPECT(200, "PATCH " API "/nodes/n\n\n{\"labels\":{\"zone\":\"a\"}}");
    EXPECT(200, "PATCH " API "/nodes/n\n\n{\"labels\":{\"zone\":\"b\"}}");
    told("node_marked", "ann", "Node n has labels {\"zone\":\"b\"}, before {\"zone\":\"a\"}.");
}

END_TEST

WEIR_TEST_MAIN_WITH("queue_routes", set_up, tear_down,
                    a_queue_is_as_it_was_set_and_says_what_it_has,
                    a_queue_that_makes_no_sense_is_refused,
                    how_much_past_use_counts_is_set_as_a_whole, what_if_needs_a_change,
                    a_job_is_held_and_goes_on_and_is_sent_back,
                    who_may_hold_may_release_and_who_may_not_submit_starts_nothing_again,
                    each_act_of_a_person_names_them,
                    guarantees_above_what_the_nodes_have_need_insistence,
                    the_priority_of_a_job_that_waits_or_runs_is_changed)
