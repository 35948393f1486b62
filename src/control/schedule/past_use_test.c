/* Past use from the account to the plan: over time queues have what their weights say, though at no moment it can be
 * divided so. */
#include "control/schedule/queue_fixture.h"

#include "base/rng.h"
#include "control/schedule/past_share.h"
#include "job/past_use.h"
#include "job/usage.h"

#define STEP_MS  INT64_C(120000)
#define N_STEPS  480
#define N_OPEN   2 /* Jobs of a project that are not over, at any time. */
#define LONG_MS  (20 * STEP_MS)
#define SHORT_MS (2 * STEP_MS)

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

static weir_status set_rule_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_past_rule_set(txn, context, 1, err);
}

static void set_rule(int64_t half_life_ms, double weight)
{
    struct weir_past_rule rule = {half_life_ms, weight};
    fixture_write(&fixture.store, set_rule_in, &rule);
}

/* As the engine does: the account, then what it says of the past. */
static weir_status roll_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t n;
    MUST(weir_usage_roll_running(txn, fixture.now_ms, &n, err));
    return weir_past_use_roll(txn, context, fixture.now_ms, err);
}

static void roll(void)
{
    struct weir_queue_sample *samples;
    struct weir_past_now now;
    size_t n;
    scheduler_sample_queues(fixture.scheduler, fixture.now_ms, &fixture.store.arena, &samples, &n);
    scheduler_past_now(fixture.scheduler, samples, n, &fixture.store.arena, &now);
    fixture_write(&fixture.store, roll_in, &now);
}

/* ---- a cluster of one CPU and two projects that always want it -------------------------------- */

struct work {
    char *id;
    int64_t runs_ms, ran_ms;
};

struct side {
    const char *project;
    int64_t typical_ms, used_ms;
    struct work open[N_OPEN];
};

static void submit(struct side *side, struct work *work, struct weir_rng *rng)
{
    *work = (struct work){.id = gang_of(&fixture, side->project, 1, 1),
                          .runs_ms = side->typical_ms / 2 +
                                     (int64_t)weir_rng_below(rng, (uint64_t)side->typical_ms)};
}

static void pass_step(struct side *sides, struct weir_rng *rng, bool counts)
{
    fixture.now_ms += STEP_MS;
    heartbeat(&fixture, "a", 1);
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < N_OPEN; i++) {
            struct work *work = &sides[s].open[i];
            bool is_running =
                work->id != NULL && strcmp(job_state(&fixture, work->id).job.state, "RUNNING") == 0;
            work->ran_ms += is_running ? STEP_MS : 0;
            sides[s].used_ms += is_running && counts ? STEP_MS : 0;
            if (is_running && work->ran_ms >= work->runs_ms) {
                end_all(&fixture, work->id);
                work->id = NULL;
            }
            if (work->id == NULL) {
                submit(&sides[s], work, rng);
            }
        }
    }
    roll();
    (void)cycle(&fixture);
    for (int s = 0; s < 2; s++) {
        char *ids[N_OPEN];
        for (int i = 0; i < N_OPEN; i++) {
            ids[i] = sides[s].open[i].id;
        }
        (void)play_agents(&fixture, ids, N_OPEN);
    }
}

/* What the side of the long jobs has had of all, when it has settled. */
static double share_of_long(uint64_t seed, double weight)
{
    struct weir_rng rng;
    struct side sides[2] = {{.project = "default", .typical_ms = LONG_MS},
                            {.project = "other", .typical_ms = SHORT_MS}};
    weir_rng_init(&rng, seed, 0);
    set_rule(60 * STEP_MS, weight);
    for (int i = 0; i < N_STEPS; i++) {
        pass_step(sides, &rng, i > N_STEPS / 4);
    }
    return (double)sides[0].used_ms / (double)(sides[0].used_ms + sides[1].used_ms);
}

START_TEST(over_time_projects_have_what_their_weights_say)
{
    printf("seed %d\n", _i + 1);
    double share = share_of_long((uint64_t)_i + 1, 1);
    ck_assert_double_ge(share, 0.38);
    ck_assert_double_le(share, 0.62);
}

END_TEST

START_TEST(where_it_does_not_count_long_jobs_have_more_of_what_cannot_be_divided)
{
    ck_assert_double_ge(share_of_long(1, 0), 0.8);
}

END_TEST

/* ---- what is told of it ------------------------------------------------------------------------ */

/* One project has had the node for an hour, then both want all of it. */
static void use_up(double weight)
{
    char *job;
    set_rule(3600000, weight);
    heartbeat(&fixture, "a", 8);
    job = gang_of(&fixture, "default", 1, 8);
    ck_assert_int_eq(cycle(&fixture), 1);
    (void)play_agents(&fixture, &job, 1);
    for (int i = 0; i < 30; i++) {
        roll();
        fixture.now_ms += STEP_MS;
    }
    heartbeat(&fixture, "a", 8);
    end_all(&fixture, job);
    roll();
}

static size_t n_started(const char *project, char *const *jobs, size_t n)
{
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_job job = job_state(&fixture, jobs[i]).job;
        n_found += strcmp(job.project, project) == 0 && strcmp(job.state, "STARTING") == 0;
    }
    return n_found;
}

static void let_both_want_all(char **jobs)
{
    for (size_t i = 0; i < 16; i++) {
        jobs[i] = gang_of(&fixture, i % 2 == 0 ? "default" : "other", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 8);
}

START_TEST(who_has_had_less_lately_gets_what_is_idle_first)
{
    char *jobs[16];
    use_up(1);
    let_both_want_all(jobs);
    ck_assert_uint_eq(n_started("other", jobs, 16), 8);
    const struct weir_sched_snapshot *rows = &scheduler_snapshot(fixture.scheduler)->rows;
    ck_assert_double_ge(past_share(rows, 0), 1.8);
    ck_assert_ptr_nonnull(strstr(past_share_tell(rows, 0, 3600000, &fixture.store.arena),
                                 " times its share of the CPUs of late"));
    ck_assert_ptr_null(past_share_tell(rows, 1, 3600000, &fixture.store.arena));
}

END_TEST

START_TEST(where_it_does_not_count_both_get_the_same)
{
    char *jobs[16];
    use_up(0);
    let_both_want_all(jobs);
    ck_assert_uint_eq(n_started("other", jobs, 16), 4);
}

END_TEST

START_TEST(a_guarantee_is_given_whatever_was_had_before)
{
    char *jobs[16];
    use_up(1);
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 0, "");
    let_both_want_all(jobs);
    ck_assert_uint_eq(n_started("default", jobs, 16), 4);
    ck_assert_uint_eq(n_started("other", jobs, 16), 4);
}

END_TEST

START_TEST(
    a_department_has_had_what_its_parts_have_and_a_share_is_its_guarantee_and_part_of_the_rest)
{
    const struct weir_sched_node node = {.cpu_milli = 10000};
    struct weir_sched_queue queues[] = {{.name = "d", .parent = -1, .usage_ppm = {0, 800000, 0}},
                                        {.name = "e", .parent = -1, .usage_ppm = {0, 100000, 0}},
                                        {.name = "a", .parent = 0, .usage_ppm = {0, 800000, 0}},
                                        {.name = "b", .parent = 0}};
    const struct weir_sched_snapshot rows = {
        .nodes = &node, .n_nodes = 1, .queues = queues, .n_queues = 4};
    for (int i = 0; i < 4; i++) {
        queues[i].shares[WEIR_SCHED_CPU] = (struct weir_sched_share){0, 1, -1};
    }
    queues[0].shares[WEIR_SCHED_CPU].quota = 2000; /* is due 0.2 + 0.8 / 2 */
    queues[2].shares[WEIR_SCHED_CPU].weight = 3;
    ck_assert_double_eq_tol(past_share(&rows, 0), 0.8 / 0.6, 1e-9);
    ck_assert_double_eq_tol(past_share(&rows, 1), 0.1 / 0.4, 1e-9);
    ck_assert_double_eq_tol(past_share(&rows, 2), 0.8 / 0.45, 1e-9);
    queues[3].shares[WEIR_SCHED_CPU].weight = 0;
    ck_assert_double_eq(past_share(&rows, 3), -1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("past_use");
    TCase *tcase = tcase_create("past_use");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, over_time_projects_have_what_their_weights_say, 0,
                        WEIR_TEST_TIMES(2, 1));
    tcase_add_test(tcase, where_it_does_not_count_long_jobs_have_more_of_what_cannot_be_divided);
    tcase_add_test(tcase, who_has_had_less_lately_gets_what_is_idle_first);
    tcase_add_test(tcase, where_it_does_not_count_both_get_the_same);
    tcase_add_test(tcase, a_guarantee_is_given_whatever_was_had_before);
    tcase_add_test(
        tcase,
        a_department_has_had_what_its_parts_have_and_a_share_is_its_guarantee_and_part_of_the_rest);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
