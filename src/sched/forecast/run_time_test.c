#include "sched/forecast/run_time.h"

#include "base/test_main.h"
#include "sched/test/test_cluster.h"

#define HOUR_MS ((int64_t)3600000)

/** A node of 8 devices, two queues, and one job of one device in the first. */
static struct weir_sched_job *arrange(struct test_cluster *cluster, int n_nodes)
{
    test_cluster_init(cluster, n_nodes, 4, 4, 16);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, 8);
    }
    test_queue(cluster, -1, -1, 1, -1);
    test_queue(cluster, 0, -1, 1, -1);
    test_queue(cluster, 0, -1, 1, -1);
    return test_job(cluster, 1, 50, 1, 1);
}

/** Plans under a profile and says on which node the only pending task starts; -1: none. */
static int32_t starts_on(const struct test_cluster *cluster, const char *name)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(name, &profile, NULL), WEIR_OK);
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    int32_t node = -1;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        node = plan->actions[i].kind == WEIR_SCHED_BIND ? plan->actions[i].node : node;
    }
    weir_sched_plan_destroy(plan);
    return node;
}

START_TEST(a_job_that_finishes_before_maintenance_starts_and_one_that_would_not_waits)
{
    static const struct {
        int64_t limit_ms, expected_ms;
        bool starts;
    } rows[] = {{0, 0, true},       {HOUR_MS, 0, true},      {HOUR_MS + 1, 0, false},
                {0, HOUR_MS, true}, {0, HOUR_MS + 1, false}, {2 * HOUR_MS, HOUR_MS / 2, false}};

    struct test_cluster cluster;
    struct weir_sched_job *job = arrange(&cluster, 1);
    cluster.nodes[0].closed_from_ms = TEST_NOW_MS + HOUR_MS;
    cluster.nodes[0].closed_until_ms = TEST_NOW_MS + 2 * HOUR_MS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job->time_limit_ms = rows[i].limit_ms;
        job->expected_run_ms = rows[i].expected_ms;
        ck_assert_int_eq(starts_on(&cluster, "kai") == 0, rows[i].starts);
        ck_assert_int_eq(starts_on(&cluster, "default") == 0, rows[i].starts);
    }
    cluster.nodes[0].closed_from_ms = TEST_NOW_MS - 1;
    job->time_limit_ms = 1;
    ck_assert_int_eq(starts_on(&cluster, "kai"), -1);
    cluster.nodes[0].closed_until_ms = TEST_NOW_MS;
    ck_assert_int_eq(starts_on(&cluster, "kai"), 0);
    test_cluster_fini(&cluster);
}

END_TEST

/** Plans by the default rules. @return Why the first job waits. */
static const char *waits_for(const struct test_cluster *cluster, enum weir_sched_wait_code code)
{
    static char text[WEIR_SCHED_TEXT_BYTES];
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_int_eq(plan->n_waits, 1);
    ck_assert_str_eq(weir_sched_wait_name(plan->waits[0].code), weir_sched_wait_name(code));
    ck_assert_int_eq(plan->waits[0].object, 0);
    (void)snprintf(text, sizeof text, "%.*s", plan->waits[0].why_bytes, plan->waits[0].text);
    weir_sched_plan_destroy(plan);
    return text;
}

START_TEST(a_job_that_waits_for_the_time_of_a_node_is_told_which_and_when)
{
    static const int32_t nodes[] = {0};
    struct test_cluster cluster;
    struct weir_sched_job *job = arrange(&cluster, 1);
    struct weir_sched_reservation reserved = {.name = "kept",
                                              .queue = 2,
                                              .job = -1,
                                              .from_ms = TEST_NOW_MS + HOUR_MS,
                                              .until_ms = TEST_NOW_MS + 2 * HOUR_MS,
                                              .nodes = nodes,
                                              .n_nodes = 1};
    job->time_limit_ms = 3 * HOUR_MS;
    cluster.nodes[0].closed_from_ms = TEST_NOW_MS + HOUR_MS;
    cluster.nodes[0].closed_until_ms = WEIR_SCHED_AMOUNT_MAX;
    const char *text = waits_for(&cluster, WEIR_SCHED_WAIT_CLOSING);
    ck_assert_ptr_nonnull(strstr(text, " closes at "));
    ck_assert_ptr_nonnull(strstr(text, " UTC, and the job would not end before."));
    cluster.nodes[0].closed_from_ms = TEST_NOW_MS;
    text = waits_for(&cluster, WEIR_SCHED_WAIT_CLOSING);
    ck_assert_ptr_nonnull(strstr(text, " is closed."));
    cluster.nodes[0].closed_until_ms = TEST_NOW_MS + 1;
    text = waits_for(&cluster, WEIR_SCHED_WAIT_CLOSING);
    ck_assert_ptr_nonnull(strstr(text, " is closed until "));
    cluster.nodes[0].closed_from_ms = cluster.nodes[0].closed_until_ms = 0;
    cluster.snapshot.reservations = &reserved;
    cluster.snapshot.n_reservations = 1;
    job->time_limit_ms = 0;
    text = waits_for(&cluster, WEIR_SCHED_WAIT_NODE_RESERVED);
    ck_assert_ptr_nonnull(strstr(text, " is reserved for others from "));
    ck_assert_ptr_nonnull(strstr(text, " UTC, and the job has no time limit."));
    reserved.from_ms = TEST_NOW_MS;
    text = waits_for(&cluster, WEIR_SCHED_WAIT_NODE_RESERVED);
    ck_assert_ptr_nonnull(strstr(text, " is reserved for others until "));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(of_twins_the_short_one_starts_before_maintenance_though_the_long_one_did_not)
{
    struct test_cluster cluster;
    arrange(&cluster, 1)->time_limit_ms = 2 * HOUR_MS;
    test_job(&cluster, 1, 50, 1, 1)->time_limit_ms = HOUR_MS / 2;
    cluster.nodes[0].closed_from_ms = TEST_NOW_MS + HOUR_MS;
    cluster.nodes[0].closed_until_ms = TEST_NOW_MS + 2 * HOUR_MS;
    ck_assert_int_eq(starts_on(&cluster, "kai"), 0);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(what_is_kept_is_for_its_owner_and_for_who_finishes_before)
{
    static const int32_t nodes[] = {0};

    static const struct {
        int32_t queue, job;
        int64_t from_ms, until_ms, limit_ms;
        bool starts;
    } rows[] = {
        {2, -1, 0, HOUR_MS, 0, false},                     /* Another queue's, now. */
        {1, -1, 0, HOUR_MS, 0, true},                      /* Its own. */
        {0, -1, 0, HOUR_MS, 0, true},                      /* The one above's. */
        {-1, 0, 0, HOUR_MS, 0, true},                      /* The job's. */
        {1, 1, 0, HOUR_MS, 0, false},                      /* Another job's of its queue. */
        {-1, -1, 0, HOUR_MS, 0, false},                    /* Nobody's. */
        {2, -1, HOUR_MS, 2 * HOUR_MS, 0, false},           /* Soon; who knows when it ends. */
        {2, -1, HOUR_MS, 2 * HOUR_MS, HOUR_MS, true},      /* Ends in time. */
        {2, -1, HOUR_MS, 2 * HOUR_MS, HOUR_MS + 1, false}, /* Does not. */
        {2, -1, -2 * HOUR_MS, -HOUR_MS, 0, true},          /* Is over. */
    };

    struct test_cluster cluster;
    struct weir_sched_job *job = arrange(&cluster, 1);
    test_job(&cluster, 2, 50, 1, 0);
    cluster.tasks[1].state = WEIR_SCHED_GATED;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_sched_reservation reserved = {.name = "kept",
                                                  .queue = rows[i].queue,
                                                  .job = rows[i].job,
                                                  .from_ms = TEST_NOW_MS + rows[i].from_ms,
                                                  .until_ms = TEST_NOW_MS + rows[i].until_ms,
                                                  .nodes = nodes,
                                                  .n_nodes = 1};
        cluster.snapshot.reservations = &reserved;
        cluster.snapshot.n_reservations = 1;
        job->time_limit_ms = rows[i].limit_ms;
        ck_assert_msg((starts_on(&cluster, "kai") == 0) == rows[i].starts, "row %zu", i);
        ck_assert_msg((starts_on(&cluster, "default") == 0) == rows[i].starts, "row %zu", i);
    }
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(of_many_reservations_each_counts_on_its_own_nodes)
{
    static const int32_t first[] = {3, 0, 1}, second[] = {1, 2};
    struct weir_sched_reservation reserved[] = {
        {"a", 2, -1, TEST_NOW_MS, TEST_NOW_MS + 1, first, 3},
        {"b", 2, -1, TEST_NOW_MS - 9, TEST_NOW_MS, second, 2},
    };
    struct test_cluster cluster;
    arrange(&cluster, 4);
    cluster.snapshot.reservations = reserved;
    cluster.snapshot.n_reservations = 2;
    ck_assert_int_eq(starts_on(&cluster, "kai"), 2);
    reserved[1].until_ms++;
    ck_assert_int_eq(starts_on(&cluster, "kai"), -1);
    reserved[0].n_nodes = 2;
    reserved[1].n_nodes = 0;
    ck_assert_int_eq(starts_on(&cluster, "kai"), 1);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_reservation_that_cannot_be_is_refused_by_name)
{
    static const int32_t nodes[] = {1};
    struct weir_sched_reservation reserved = {"party", 1, -1, 5, 5, nodes, 0};
    struct test_cluster cluster;
    arrange(&cluster, 1);
    cluster.snapshot.reservations = &reserved;
    cluster.snapshot.n_reservations = 1;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "party"));
    reserved.until_ms = 6;
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_OK);
    reserved.n_nodes = 1;
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_ERR_INVALID);
    reserved.n_nodes = 0;
    reserved.queue = 3;
    ck_assert_int_eq(weir_sched_snapshot_check(&cluster.snapshot, &err), WEIR_ERR_INVALID);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(the_end_of_a_job_is_what_is_expected_or_its_limit_or_as_long_again)
{
    static const struct {
        int64_t ran_ms, limit_ms, expected_ms, left_ms;
    } rows[] = {
        {HOUR_MS, 3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS},
        {HOUR_MS, 3 * HOUR_MS, 0, 2 * HOUR_MS},
        {HOUR_MS, 0, 0, HOUR_MS},
        {1000, 0, 0, HOUR_MS / 6},
        {1000, 60000, 0, 59000},
        {5 * HOUR_MS, 0, 2 * HOUR_MS, 5 * HOUR_MS},
        {400 * HOUR_MS, 0, 0, 168 * HOUR_MS},
        {5 * HOUR_MS, HOUR_MS, 0, 1},
        {2 * HOUR_MS, 3 * HOUR_MS, HOUR_MS / 2, HOUR_MS},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_sched_job job = {.started_ms = TEST_NOW_MS - rows[i].ran_ms,
                                     .time_limit_ms = rows[i].limit_ms,
                                     .expected_run_ms = rows[i].expected_ms};
        ck_assert_int_eq(run_time_end_ms(&job, TEST_NOW_MS), TEST_NOW_MS + rows[i].left_ms);
    }
    struct weir_sched_job fresh = {0};
    ck_assert_int_eq(run_time_end_ms(&fresh, TEST_NOW_MS), TEST_NOW_MS + 24 * HOUR_MS);
}

END_TEST

WEIR_TEST_MAIN("calendar",
               a_job_that_finishes_before_maintenance_starts_and_one_that_would_not_waits,
               a_job_that_waits_for_the_time_of_a_node_is_told_which_and_when,
               of_twins_the_short_one_starts_before_maintenance_though_the_long_one_did_not,
               what_is_kept_is_for_its_owner_and_for_who_finishes_before,
               of_many_reservations_each_counts_on_its_own_nodes,
               a_reservation_that_cannot_be_is_refused_by_name,
               the_end_of_a_job_is_what_is_expected_or_its_limit_or_as_long_again)
