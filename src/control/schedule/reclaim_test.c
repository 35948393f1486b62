/* What is guaranteed comes back, and nobody loses what is theirs. */
#include "control/schedule/queue_fixture.h"

#include "base/rng.h"

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

#define N_FIRST 8

/* The first project has all of a node of 8, by jobs of one CPU; all run. */
static void borrow_all(char **jobs)
{
    heartbeat(&fixture, "a", 8);
    for (size_t i = 0; i < N_FIRST; i++) {
        jobs[i] = gang_of(&fixture, "default", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), N_FIRST);
    (void)play_agents(&fixture, jobs, N_FIRST);
}

START_TEST(what_is_guaranteed_comes_back_within_one_cycle_and_what_left_goes_on_later)
{
    char *first[N_FIRST], *second[4];
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    borrow_all(first);
    for (size_t i = 0; i < 4; i++) {
        second[i] = gang_of(&fixture, "other", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 4);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 4);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "RUNNING"), 4);
    ck_assert_int_eq(cycle(&fixture), 0); /* Nobody else is asked while they leave. */
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 0);

    ck_assert_uint_eq(play_agents(&fixture, first, N_FIRST), 4);
    ck_assert_int_eq(cycle(&fixture), 4);
    ck_assert_uint_eq(n_in_state(&fixture, second, 4, "STARTING"), 4);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "PENDING"), 4);
    (void)play_agents(&fixture, second, 4);
    fixture.now_ms += 6000;
    heartbeat(&fixture, "a", 8);
    ck_assert_int_eq(cycle(&fixture), 0); /* They rest. */
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 0);
    for (size_t i = 0; i < N_FIRST; i++) {
        struct weir_job job = job_state(&fixture, first[i]).job;
        ck_assert_int_eq(job.n_restarts, 0);
        ck_assert_int_eq(job.n_evictions, strcmp(job.state, "PENDING") == 0);
        if (job.n_evictions > 0) {
            ck_assert_msg(strstr(job.reason, "reclaimed by queue green; now ") == job.reason, "%s",
                          job.reason);
        }
    }

    end_all(&fixture, second[0]);
    end_all(&fixture, second[1]);
    ck_assert_int_eq(cycle(&fixture), 2);
    end_all(&fixture, second[2]);
    end_all(&fixture, second[3]);
    ck_assert_int_eq(cycle(&fixture), 2);
    (void)play_agents(&fixture, first, N_FIRST);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "RUNNING"), N_FIRST);
}

END_TEST

/* One that would go first comes while the others leave: it does not get what they leave. */
START_TEST(what_is_left_goes_to_whom_it_was_made_for_though_another_would_go_first)
{
    char *first[N_FIRST];
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    borrow_all(first);
    char *second = gang_of(&fixture, "other", 1, 4);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 4);
    ck_assert_ptr_nonnull(strstr(job_state(&fixture, second).job.reason, "as a place on node a"));
    char *urgent = add_job(&fixture, (struct new_job){.kind = "predict", /* of higher priority */
                                                      .project = "other",
                                                      .n_tasks = 1,
                                                      .cpu_millis = 4000});
    ck_assert_int_eq(cycle(&fixture), 0);
    size_t n = 0;
    for (size_t i = 0; i < N_FIRST; i++) { /* They leave one after the other. */
        n += play_agents(&fixture, &first[i], 1);
        bool is_due = n == 4 && n_in_state(&fixture, &second, 1, "PENDING") == 1;
        ck_assert_int_eq(cycle(&fixture), is_due);
    }
    ck_assert_uint_eq(n_in_state(&fixture, &second, 1, "STARTING"), 1);
    ck_assert_str_eq(places(&fixture, urgent), "-");
}

END_TEST

/* ---- what saves first ------------------------------------------------------------------------- */

static size_t n_asked(char *const *jobs, size_t n)
{
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        n_found += job_state(&fixture, jobs[i]).tasks[0].asked_ms > 0;
    }
    return n_found;
}

/* Of all that are there, as if they had been sent so. */
static void let_all_save(void)
{
    execute(&fixture, "UPDATE counters SET value = value + 1000 WHERE name = 'job_revisions'");
    execute(&fixture, "UPDATE jobs SET save_within_ms = 60000, revision = revision + 900");
}

static void pass(int64_t ms)
{
    fixture.now_ms += ms;
    heartbeat(&fixture, "a", 8);
}

START_TEST(what_can_save_is_asked_and_leaves_when_it_has_or_its_time_is_over)
{
    char *first[N_FIRST], *second;
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    borrow_all(first);
    let_all_save();
    second = gang_of(&fixture, "other", 1, 2);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_uint_eq(n_asked(first, N_FIRST), 2);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "RUNNING"), N_FIRST);
    ck_assert_ptr_nonnull(strstr(job_state(&fixture, second).job.reason, "as a place on node a"));
    pass(1000);
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_asked(first, N_FIRST), 2); /* No more, though nobody has left. */
    ck_assert_int_eq(fixture.next_ms, 1000000 + 60000);
    for (size_t i = 0; i < N_FIRST; i++) {
        if (job_state(&fixture, first[i]).tasks[0].asked_ms > 0) {
            report(&fixture, first[i], 0, WEIR_JOB_EVENT_TASK_SAVED, 0);
            break;
        }
    }
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 1);
    pass(58999);
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 1);
    pass(1);
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 2);
    (void)play_agents(&fixture, first, N_FIRST);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_uint_eq(n_in_state(&fixture, &second, 1, "STARTING"), 1);
    for (size_t i = 0; i < N_FIRST; i++) {
        struct weir_job job = job_state(&fixture, first[i]).job;
        ck_assert(job.n_evictions == 0 || strncmp(job.reason, "reclaimed by queue green", 24) == 0);
    }
}

END_TEST

/* The plan is made for its sake though nobody waits any more: its work was told that it has to go. */
START_TEST(what_was_asked_leaves_though_nobody_wants_its_place_any_more)
{
    char *first[N_FIRST], *second;
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    borrow_all(first);
    let_all_save();
    second = gang_of(&fixture, "other", 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_uint_eq(n_asked(first, N_FIRST), 1);
    execute(&fixture, weir_arena_printf(&fixture.store.arena,
                                        "UPDATE jobs SET state = 'CANCELLED', revision = revision "
                                        "+ 100 WHERE id = '%s'",
                                        second));
    scheduler_restart(&fixture); /* Nothing of it is only in memory. */
    pass(60000);
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 1);
}

END_TEST

/* Each task of a job whose tasks are independent is asked for itself. */
START_TEST(a_task_that_runs_is_asked_though_another_of_its_job_only_starts)
{
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    heartbeat(&fixture, "a", 8);
    char *job = add_job(
        &fixture, (struct new_job){
                      .kind = "predict", .project = "default", .n_tasks = 8, .cpu_millis = 1000});
    let_all_save();
    ck_assert_int_eq(cycle(&fixture), 8);
    for (size_t i = 1; i < 8; i++) {
        report(&fixture, job, i, WEIR_JOB_EVENT_TASK_RUNNING, 0);
    }
    (void)gang_of(&fixture, "other", 1, 4);
    (void)cycle(&fixture);
    struct weir_job_state state = job_state(&fixture, job);
    size_t n = 0;
    ck_assert(weir_job_has_independent_tasks(&state));
    for (size_t i = 1; i < 8; i++) {
        ck_assert_str_eq(state.tasks[i].state, "RUNNING");
        n += state.tasks[i].asked_ms > 0;
    }
    ck_assert_uint_ge(n, 3);
}

END_TEST

START_TEST(what_only_starts_is_stopped_at_once)
{
    char *first[N_FIRST];
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    heartbeat(&fixture, "a", 8);
    for (size_t i = 0; i < N_FIRST; i++) {
        first[i] = gang_of(&fixture, "default", 1, 1);
    }
    let_all_save();
    ck_assert_int_eq(cycle(&fixture), N_FIRST);
    (void)gang_of(&fixture, "other", 1, 1);
    (void)cycle(&fixture);
    ck_assert_uint_eq(n_asked(first, N_FIRST), 0);
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "STOPPING"), 1);
}

END_TEST

START_TEST(while_no_queue_is_set_nothing_is_taken_from_anybody)
{
    char *first[N_FIRST];
    borrow_all(first);
    char *second = gang_of(&fixture, "other", 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 0);
    ck_assert_str_eq(places(&fixture, second), "-");
}

END_TEST

START_TEST(no_more_is_taken_than_is_lent)
{
    char *first[N_FIRST], *second[8];
    set_queue(&fixture, "blue", "default", NULL, 6, "");
    set_queue(&fixture, "green", "other", NULL, 2, "");
    borrow_all(first);
    for (size_t i = 0; i < 8; i++) {
        second[i] = gang_of(&fixture, "other", 1, 1);
    }
    for (int i = 0; i < 6; i++) {
        (void)cycle(&fixture);
        (void)play_agents(&fixture, first, N_FIRST);
        (void)play_agents(&fixture, second, 8);
    }
    ck_assert_uint_eq(n_in_state(&fixture, first, N_FIRST, "RUNNING"), 6);
    ck_assert_uint_eq(n_in_state(&fixture, second, 8, "RUNNING"), 2);
}

END_TEST

START_TEST(a_limit_holds_though_there_is_room)
{
    char *jobs[4];
    set_queue(&fixture, "blue", "default", NULL, 0, ", \"limit\": 2");
    heartbeat(&fixture, "a", 8);
    for (size_t i = 0; i < 4; i++) {
        jobs[i] = gang_of(&fixture, "default", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_ptr_nonnull(strstr(job_state(&fixture, jobs[3]).job.reason, "blue"));
    set_queue(&fixture, "blue", "default", NULL, 0, ", \"limit\": 3");
    ck_assert_int_eq(cycle(&fixture), 1);
}

END_TEST

START_TEST(a_gang_goes_whole)
{
    set_queue(&fixture, "blue", "default", NULL, 4, "");
    set_queue(&fixture, "green", "other", NULL, 4, "");
    heartbeat(&fixture, "a", 8);
    char *gangs[2] = {gang_of(&fixture, "default", 4, 1), gang_of(&fixture, "default", 4, 1)};
    ck_assert_int_eq(cycle(&fixture), 8);
    (void)play_agents(&fixture, gangs, 2);
    char *one = gang_of(&fixture, "other", 1, 1);
    (void)cycle(&fixture);
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 4);
    ck_assert_uint_eq(n_in_state(&fixture, gangs, 2, "RUNNING"), 1);
    ck_assert_uint_eq(play_agents(&fixture, gangs, 2), 4);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, one), "a");
}

END_TEST

START_TEST(a_department_shares_among_its_projects_first)
{
    char *mine[4], *others[4];
    set_queue(&fixture, "research", NULL, NULL, 4, "");
    set_queue(&fixture, "blue", "default", "research", 2, "");
    set_queue(&fixture, "green", "other", "research", 2, "");
    heartbeat(&fixture, "a", 4);
    for (size_t i = 0; i < 4; i++) {
        mine[i] = gang_of(&fixture, "default", 1, 1);
    }
    ck_assert_int_eq(cycle(&fixture), 4);
    (void)play_agents(&fixture, mine, 4);
    for (size_t i = 0; i < 4; i++) {
        others[i] = gang_of(&fixture, "other", 1, 1);
    }
    for (int i = 0; i < 4; i++) {
        (void)cycle(&fixture);
        (void)play_agents(&fixture, mine, 4);
        (void)play_agents(&fixture, others, 4);
    }
    ck_assert_uint_eq(n_in_state(&fixture, mine, 4, "RUNNING"), 2);
    ck_assert_uint_eq(n_in_state(&fixture, others, 4, "RUNNING"), 2);
}

END_TEST

/* ---- laws ------------------------------------------------------------------------------------ */

#define N_JOBS   24
#define N_CPUS   8
#define N_ROUNDS 40

struct law {
    char *jobs[N_JOBS];
    int owner[N_JOBS]; /* 0 or 1 */
    size_t n;
    int64_t guarantee[2];
};

static int64_t n_held(const struct law *law, int owner, bool with_stopping)
{
    int64_t n = 0;
    for (size_t i = 0; i < law->n; i++) {
        const char *state = job_state(&fixture, law->jobs[i]).job.state;
        bool holds = strcmp(state, "RUNNING") == 0 || strcmp(state, "STARTING") == 0 ||
                     (with_stopping && strcmp(state, "STOPPING") == 0);
        n += law->owner[i] == owner && holds;
    }
    return n;
}

static int64_t n_waiting(const struct law *law, int owner)
{
    int64_t n = 0;
    for (size_t i = 0; i < law->n; i++) {
        n += law->owner[i] == owner &&
             strcmp(job_state(&fixture, law->jobs[i]).job.state, "PENDING") == 0;
    }
    return n;
}

static void check_cycle(const struct law *law)
{
    int64_t before[2] = {n_held(law, 0, false), n_held(law, 1, false)};
    (void)cycle(&fixture);
    ck_assert_int_le(n_held(law, 0, true) + n_held(law, 1, true), N_CPUS);
    for (int owner = 0; owner < 2; owner++) {
        int64_t after = n_held(law, owner, false);
        ck_assert_msg(after >= WEIR_MIN(before[owner], law->guarantee[owner]),
                      "queue %d had %lld, has %lld of its %lld", owner, (long long)before[owner],
                      (long long)after, (long long)law->guarantee[owner]);
    }
    for (size_t i = 0; i < law->n; i++) {
        ck_assert_int_eq(job_state(&fixture, law->jobs[i]).job.n_restarts, 0);
    }
}

/* Nobody comes or goes: evictions end, and whoever waits has what is guaranteed to it. */
static void check_rest(struct law *law)
{
    for (int i = 0; i < 8; i++) {
        (void)play_agents(&fixture, law->jobs, law->n);
        check_cycle(law);
    }
    ck_assert_int_eq(scheduler_n_evicted(fixture.scheduler), 0);
    for (int owner = 0; owner < 2; owner++) {
        ck_assert(n_waiting(law, owner) == 0 || n_held(law, owner, false) >= law->guarantee[owner]);
    }
}

static void play(uint64_t seed)
{
    struct weir_rng rng;
    struct law law = {.guarantee = {(int64_t)(seed % 5), (int64_t)(8 - seed % 7 - seed % 5 % 2)}};
    weir_rng_init(&rng, seed, 1);
    law.guarantee[1] = WEIR_MIN(law.guarantee[1], N_CPUS - law.guarantee[0]);
    set_queue(&fixture, "blue", "default", NULL, law.guarantee[0], "");
    set_queue(&fixture, "green", "other", NULL, law.guarantee[1], "");
    for (int round = 0; round < N_ROUNDS; round++) {
        fixture.now_ms += 1000;
        heartbeat(&fixture, "a", N_CPUS);
        uint64_t dice = weir_rng_below(&rng, 4);
        if (dice <= 1 && law.n < N_JOBS) {
            int owner = (int)weir_rng_below(&rng, 2);
            law.owner[law.n] = owner;
            law.jobs[law.n++] = gang_of(&fixture, owner == 0 ? "default" : "other", 1, 1);
        } else if (dice == 2 && law.n > 0) {
            char *job = law.jobs[weir_rng_below(&rng, law.n)];
            if (strcmp(job_state(&fixture, job).job.state, "RUNNING") == 0) {
                end_all(&fixture, job);
            }
        } else {
            (void)play_agents(&fixture, law.jobs, law.n);
        }
        check_cycle(&law);
    }
    check_rest(&law);
}

START_TEST(nobody_falls_below_what_is_guaranteed_and_whoever_is_owed_gets_it)
{
    for (uint64_t seed = 1; seed <= WEIR_TEST_TIMES(12, 3); seed++) {
        play(seed);
        tear_down();
        set_up();
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("reclaim", set_up, tear_down,
                    what_is_guaranteed_comes_back_within_one_cycle_and_what_left_goes_on_later,
                    what_is_left_goes_to_whom_it_was_made_for_though_another_would_go_first,
                    what_can_save_is_asked_and_leaves_when_it_has_or_its_time_is_over,
                    what_was_asked_leaves_though_nobody_wants_its_place_any_more,
                    what_only_starts_is_stopped_at_once,
                    a_task_that_runs_is_asked_though_another_of_its_job_only_starts,
                    while_no_queue_is_set_nothing_is_taken_from_anybody,
                    no_more_is_taken_than_is_lent, a_limit_holds_though_there_is_room,
                    a_gang_goes_whole, a_department_shares_among_its_projects_first,
                    nobody_falls_below_what_is_guaranteed_and_whoever_is_owed_gets_it)
