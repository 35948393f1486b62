/* A gang that runs with fewer of its tasks than it has. */
#include "job/elastic.h"
#include "job/job_step_fixture.h"

static struct weir_job_state make_elastic(size_t n, int64_t min, int64_t restarts)
{
    struct weir_job_state state = make_job("command", n, 0, restarts);
    state.job.min_tasks = min;
    return state;
}

/* "ab-" puts the first on a, the second on b, the third nowhere; of those that want a node. */
static weir_status bind(struct weir_job_state *state, const char *places, int64_t now_ms)
{
    static char names[16][2];
    const char *nodes[16];
    size_t n = strlen(places);
    for (size_t i = 0; i < n; i++) {
        names[i][0] = places[i];
        nodes[i] = places[i] != '-' ? names[i] : NULL;
    }
    return step(state,
                (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = n},
                now_ms);
}

static size_t n_wanted(const struct weir_job_state *state, int64_t now_ms)
{
    size_t wants[16];
    return weir_job_wants(state, now_ms, wants);
}

/* "RRW": running, waiting … */
static const char *phases(const struct weir_job_state *state)
{
    static char text[17];
    for (size_t i = 0; i < state->n_tasks; i++) {
        text[i] = state->tasks[i].state[0] == 'S' ? state->tasks[i].state[2] /* A or O */
                                                  : state->tasks[i].state[0];
    }
    text[state->n_tasks] = '\0';
    return text;
}

/* Three of four run, on a, a and b. */
static struct weir_job_state running(int64_t restarts)
{
    struct weir_job_state state = make_elastic(4, 2, restarts);
    ck_assert_int_eq(bind(&state, "aab-", 10), WEIR_OK);
    for (size_t i = 0; i < 3; i++) {
        run(&state, i, 20);
    }
    ck_assert_str_eq(state.job.state, "RUNNING");
    return state;
}

START_TEST(it_begins_with_its_least_and_takes_the_others_one_by_one)
{
    struct weir_job_state state = make_elastic(4, 2, 0);
    ck_assert_int_eq(bind(&state, "a---", 10), WEIR_ERR_INVALID);
    ck_assert_int_eq(bind(&state, "a-b-", 10), WEIR_OK);
    ck_assert_str_eq(state.job.state, "STARTING");
    run(&state, 0, 20);
    ck_assert_str_eq(state.job.state, "STARTING");
    run(&state, 2, 20);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_uint_eq(n_wanted(&state, 30), 2);
    ck_assert_int_eq(bind(&state, "-c", 30), WEIR_OK);
    ck_assert_str_eq(phases(&state), "RWRA");
    ck_assert_str_eq(state.tasks[3].node, "c");
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_int_eq(state.job.attempt, 1);
}

END_TEST

START_TEST(it_goes_on_without_a_task_that_fails_and_starts_it_again)
{
    struct weir_job_state state = running(1);
    end(&state, 1, 1, 100000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(phases(&state), "RWRW");
    ck_assert_int_eq(state.job.n_restarts, 1);
    ck_assert_uint_eq(n_wanted(&state, 100000), 1); /* the other one, until the back-off is over */
    int64_t due_ms = weir_job_next_tick_ms(&state, 100000);
    ck_assert_int_gt(due_ms, 100000);
    ck_assert_uint_eq(n_wanted(&state, due_ms), 2);
    ck_assert_int_eq(bind(&state, "a-", due_ms), WEIR_OK);
    ck_assert_int_eq(state.tasks[1].attempt, 2);
    run(&state, 1, due_ms + 1);
    end(&state, 1, 1, due_ms + 100000); /* it may not fail a second time */
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.job.outcome, "FAILED");
}

END_TEST

START_TEST(below_its_least_all_start_again)
{
    struct weir_job_state state = running(3);
    end(&state, 0, 1, 1000);
    end(&state, 1, 1, 1000); /* only one would be left */
    ck_assert_str_eq(state.job.state, "RESTARTING");
    ck_assert_str_eq(state.tasks[2].desired, "stopped");
    end(&state, 2, 0, 2000);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, 900000);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(bind(&state, "ab--", 900001), WEIR_OK);
    ck_assert_int_eq(state.job.attempt, 2);
    ck_assert_int_eq(state.tasks[0].attempt, 2);
}

END_TEST

START_TEST(a_lost_node_takes_what_was_on_it_and_no_more)
{
    struct weir_job_state state = running(0);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "b"}, 1000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(phases(&state), "RRWW");
    ck_assert_int_eq(state.job.n_restarts, 0);
    struct weir_job_state other = running(3);
    must(&other, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"}, 1000);
    ck_assert_str_eq(other.job.state, "RESTARTING"); /* two of three were there */
    ck_assert_int_eq(other.job.n_restarts, 1);
}

END_TEST

START_TEST(one_that_is_evicted_shrinks_it_without_a_restart)
{
    struct weir_job_state state = running(0);
    const struct weir_job_event evict = {
        .type = WEIR_JOB_EVENT_EVICT, .task = "t2", .text = "reclaimed by queue b"};
    must(&state, evict, 1000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(phases(&state), "RROW");
    end(&state, 2, 0, 2000); /* it has saved what it has, and says that all is well */
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(phases(&state), "RRWW");
    ck_assert_int_eq(state.job.n_restarts, 0);
    const struct weir_job_event again = {
        .type = WEIR_JOB_EVENT_EVICT, .task = "t1", .text = "reclaimed by queue b"};
    must(&state, again, 3000); /* one of two: below its least all wait again */
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.job.outcome, "PENDING");
    end(&state, 0, 75, 3100);
    end(&state, 1, 75, 3100);
    ck_assert_str_eq(state.job.state, "PENDING");
}

END_TEST

START_TEST(it_has_succeeded_when_the_first_has_ended_well_and_none_is_alive)
{
    struct weir_job_state state = running(0);
    end(&state, 0, 0, 1000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_uint_eq(n_wanted(&state, 900000), 0); /* no other is started any more */
    end(&state, 1, 0, 1000);
    end(&state, 2, 0, 1100);
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
    struct weir_job_state other = running(0);
    end(&other, 0, 0, 1000);
    end(&other, 1, 1, 1000); /* at the end each counts */
    ck_assert_str_eq(other.job.outcome, "FAILED");
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {it_begins_with_its_least_and_takes_the_others_one_by_one,
                                  it_goes_on_without_a_task_that_fails_and_starts_it_again,
                                  below_its_least_all_start_again,
                                  a_lost_node_takes_what_was_on_it_and_no_more,
                                  one_that_is_evicted_shrinks_it_without_a_restart,
                                  it_has_succeeded_when_the_first_has_ended_well_and_none_is_alive};
    return weir_test_run(
        weir_test_suite_with("elastic", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
