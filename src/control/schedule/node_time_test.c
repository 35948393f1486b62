/* When nodes are to be had: maintenance windows and reservations, from the store to the plan and its reasons. */
#include "control/schedule/scheduler_fixture.h"

#include "base/test_main.h"

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
    heartbeat(&fixture, "a", 2);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

/* Time passes, and the nodes speak. */
static void pass(int64_t ms)
{
    fixture.now_ms += ms;
    heartbeat(&fixture, "a", 2);
}

static const char *reason(const char *job)
{
    const char *text = job_state(&fixture, job).job.reason;
    return text != NULL ? text : "";
}

static void limit_all(int64_t ms)
{
    execute(&fixture, weir_arena_printf(&fixture.store.arena,
                                        "UPDATE jobs SET time_limit_ms = %lld,"
                                        " revision = revision + 1000",
                                        (long long)ms));
}

static void close_node(int64_t from_ms, int64_t until_ms)
{
    execute(&fixture,
            weir_arena_printf(&fixture.store.arena,
                              "UPDATE nodes SET closed_from_ms = %lld, closed_until_ms = %lld",
                              (long long)from_ms, (long long)until_ms));
}

START_TEST(a_node_that_closes_gets_what_ends_before_and_opens_again_by_itself)
{
    int64_t from_ms = fixture.now_ms + 60000, until_ms = from_ms + 60000;
    close_node(from_ms, until_ms);
    char *job = gang(&fixture, 1, 1);
    limit_all(60001);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(
        reason(job),
        "node a closes at 00:17 UTC until 00:18 UTC, and the job would not end before");
    ck_assert_int_eq(fixture.next_ms, from_ms);
    char *other = gang(&fixture, 1, 1);
    execute(&fixture, "UPDATE jobs SET time_limit_ms = 60000, revision = revision + 2000"
                      " WHERE id = 'job-002'");
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, other), "a");
    pass(60000);
    (void)cycle(&fixture);
    ck_assert_int_eq(fixture.next_ms, until_ms);
    pass(SCHEDULER_NOTE_EVERY_MS);
    (void)cycle(&fixture);
    ck_assert_str_eq(reason(job), "node a is closed until 00:18 UTC");
    ck_assert_int_eq(job_state(&fixture, job).job.expected_start_ms, until_ms);
    pass(until_ms - fixture.now_ms);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "a");
}

END_TEST

START_TEST(a_window_without_an_end_lasts_until_it_is_taken_away)
{
    close_node(fixture.now_ms, 0);
    char *job = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(reason(job), "node a is closed");
    ck_assert_int_eq(job_state(&fixture, job).job.expected_start_ms, 0);
    ck_assert_int_eq(fixture.next_ms, INT64_MAX);
    close_node(0, 0);
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

static void reserve(const char *values)
{
    execute(&fixture,
            weir_arena_printf(&fixture.store.arena,
                              "INSERT INTO reservations (name, project, queue, nodes, gpus,"
                              " cpus, from_ms, until_ms, created_ms) VALUES (%s, 1)",
                              values));
}

START_TEST(a_reserved_node_is_for_its_project_and_for_the_others_afterwards)
{
    reserve("'r', 'other', NULL, '[\"a\",\"gone\"]', 0, 0, 0, 1060000");
    char *job = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(reason(job), "node a is reserved for others until 00:17 UTC");
    ck_assert_int_eq(fixture.next_ms, 1060000);
    char *own =
        add_job(&fixture, (struct new_job){"command", "other", 1, 1000, 0, 0, 0, NULL, NULL});
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, own), "a");
    pass(60000);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "a");
}

END_TEST

START_TEST(before_a_reservation_begins_only_what_ends_in_time_starts)
{
    reserve("'r', 'other', NULL, '[\"a\"]', 0, 0, 1060000, 1120000");
    char *job = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(
        reason(job),
        "node a is reserved for others from 00:17 UTC until 00:18 UTC, and the job has "
        "no time limit. With a time limit that ends before (`weir job run --time-limit "
        "TIME`) it may start there");
    ck_assert_int_eq(job_state(&fixture, job).job.expected_start_ms, 1120000);
    limit_all(60001);
    pass(SCHEDULER_NOTE_EVERY_MS - 5000);
    ck_assert_int_eq(cycle(&fixture), 0);
    execute(&fixture, "UPDATE jobs SET time_limit_ms = 50000, revision = revision + 2000");
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

START_TEST(a_queues_reservation_is_for_all_below_it_and_ends_when_it_is_deleted)
{
    execute(&fixture,
            "INSERT INTO queues (name, parent, project, priority, min_run_ms, idle_after_ms,"
            " created_ms) VALUES ('dep', NULL, NULL, 100, -1, -1, 1),"
            " ('q', 'dep', 'other', 100, -1, -1, 1)");
    reserve("'r', NULL, 'dep', '[\"a\"]', 0, 0, 0, 1060000");
    char *job = gang(&fixture, 1, 1);
    char *own =
        add_job(&fixture, (struct new_job){"command", "other", 1, 1000, 0, 0, 0, NULL, NULL});
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, own), "a");
    ck_assert_str_eq(places(&fixture, job), "-");
    execute(&fixture, "DELETE FROM reservations");
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

WEIR_TEST_MAIN_WITH("node_time", set_up, tear_down,
                    a_node_that_closes_gets_what_ends_before_and_opens_again_by_itself,
                    a_window_without_an_end_lasts_until_it_is_taken_away,
                    a_reserved_node_is_for_its_project_and_for_the_others_afterwards,
                    before_a_reservation_begins_only_what_ends_in_time_starts,
                    a_queues_reservation_is_for_all_below_it_and_ends_when_it_is_deleted)
