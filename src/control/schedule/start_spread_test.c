/* Where a job starts, against what was told of it: clusters and histories at random. */
#include "control/schedule/start_spread.h"

#include "base/test_main.h"
#include "base/test_seed.h"
#include "sched/sched.h"

#include <math.h>

#define JOBS_MAX   8
#define RUNS_MAX   8
#define N_CLUSTERS WEIR_TEST_TIMES(10000, 1000)
#define NOW_MS     INT64_C(100000000)

/* Lengths of runs of one kind of work. */
struct lengths {
    double middle_ms, spread;
};

static int64_t draw(struct weir_rng *rng, const struct lengths *of)
{
    double normal = 0;
    for (int i = 0; i < 12; i++) {
        normal += weir_rng_f64(rng);
    }
    return (int64_t)(of->middle_ms * exp(of->spread * (normal - 6))) + 1;
}

struct running {
    int64_t end_ms;
    int cpus;
};

/* When so many CPUs are free, if jobs end as `ends` says. */
static int64_t start_of(const struct running *jobs, int n, int free_cpus, int wanted)
{
    bool is_over[JOBS_MAX] = {false};
    int64_t at_ms = NOW_MS;
    while (free_cpus < wanted) {
        int next = -1;
        for (int i = 0; i < n; i++) {
            next = !is_over[i] && (next < 0 || jobs[i].end_ms < jobs[next].end_ms) ? i : next;
        }
        is_over[next] = true;
        free_cpus += jobs[next].cpus;
        at_ms = WEIR_MAX(at_ms, jobs[next].end_ms);
    }
    return at_ms;
}

/* Sorts of clusters. */
static const struct sort {
    int n_least, n_most;
    bool is_alike;  /* all jobs do work of one kind, and have just begun */
    bool needs_all; /* what waits needs all that runs */
    bool ran_long;
} sorts[] = {{1, JOBS_MAX, false, false, false},       {1, JOBS_MAX, false, true, false},
             {1, JOBS_MAX, false, true, true},         {JOBS_MAX, JOBS_MAX, true, true, false},
             {JOBS_MAX, JOBS_MAX, true, false, false}, {1, 1, false, true, true}};

/* A run of this work that goes on at `*ran_ms`, which is chosen without regard to how long it will be. */
static int64_t draw_running(struct weir_rng *rng, const struct lengths *of, const struct sort *sort,
                            int64_t *out_ran_ms)
{
    for (;;) {
        double part = sort->is_alike ? 0 : weir_rng_f64(rng) + (sort->ran_long ? 1 : 0);
        *out_ran_ms = (int64_t)(of->middle_ms * part);
        for (int i = 0; i < 20; i++) {
            int64_t length_ms = draw(rng, of);
            if (length_ms > *out_ran_ms) {
                return length_ms;
            }
        }
    }
}

/* One cluster, of jobs that have run so often. @return Whether something was told of it. */
static bool play(struct weir_rng *rng, const struct sort *sort, struct start_spread *told,
                 int64_t *out_start_ms)
{
    struct start_spread_job jobs[JOBS_MAX];
    struct running real[JOBS_MAX], expected[JOBS_MAX];
    const struct lengths like = {.middle_ms = 60000.0 * (double)(1 + weir_rng_below(rng, 100)),
                                 .spread = 0.3 + weir_rng_f64(rng)};
    int n_cpus = 0, n_more = sort->n_most - sort->n_least;
    int n = sort->n_least + (int)weir_rng_below(rng, (uint64_t)n_more + 1);
    for (int i = 0; i < n; i++) {
        struct lengths of = like;
        of.middle_ms *= sort->is_alike ? 1 : 0.5 + weir_rng_f64(rng);
        int64_t ran_ms, last_ms = 0, length_ms = draw_running(rng, &of, sort, &ran_ms);
        struct start_spread_job *job = &jobs[i];
        *job = (struct start_spread_job){.started_ms = NOW_MS - ran_ms};
        for (int k = 0; k < RUNS_MAX; k++) {
            last_ms = draw(rng, &of);
            if (last_ms > ran_ms) {
                job->least_ms = job->n_runs == 0 ? last_ms : WEIR_MIN(job->least_ms, last_ms);
                job->most_ms = WEIR_MAX(job->most_ms, last_ms);
                job->n_runs++;
            }
        }
        const struct weir_sched_job row = {.started_ms = job->started_ms,
                                           .expected_run_ms = last_ms};
        job->expected_end_ms = weir_sched_job_end_ms(&row, NOW_MS);
        int cpus = 1 + (int)weir_rng_below(rng, 8);
        real[i] = (struct running){job->started_ms + length_ms, cpus};
        expected[i] = (struct running){job->expected_end_ms, cpus};
        n_cpus += cpus;
    }
    int wanted = sort->needs_all ? n_cpus : 1 + (int)weir_rng_below(rng, (uint64_t)n_cpus);
    *out_start_ms = start_of(real, n, 0, wanted);
    int64_t expected_ms = start_of(expected, n, 0, wanted);
    bool is_told = start_spread_tell(jobs, (size_t)n, NOW_MS, expected_ms, told);
    if (is_told) {
        ck_assert_int_ge(told->earliest_ms, NOW_MS);
        ck_assert_int_le(told->earliest_ms, expected_ms);
        ck_assert_int_ge(told->latest_ms, expected_ms);
    }
    return is_told;
}

/* Of those that were told by so many runs. */
struct tally {
    int n_told, n_kept;
};

START_TEST(starts_lie_in_the_interval_as_often_as_it_says)
{
    struct weir_rng rng;
    struct tally tallies[RUNS_MAX + 1] = {{0, 0}};
    uint64_t seed = test_seed(&rng);
    for (int i = 0; i < N_CLUSTERS; i++) {
        struct start_spread told;
        int64_t start_ms;
        if (play(&rng, &sorts[_i], &told, &start_ms)) {
            tallies[told.n_runs].n_told++;
            tallies[told.n_runs].n_kept +=
                start_ms >= told.earliest_ms && start_ms <= told.latest_ms;
        }
    }
    for (int n = 2; n <= RUNS_MAX; n++) {
        const struct tally *t = &tallies[n];
        double part = (double)(n - 1) / (n + 1);
        double least = t->n_told * part - 4 * sqrt(t->n_told * part * (1 - part)) - 1;
        printf("by %d runs %d of %d, promised %.3f\n", n, t->n_kept, t->n_told, part);
        ck_assert_msg(t->n_kept >= least, "by %d runs %d of %d, seed %llu", n, t->n_kept, t->n_told,
                      (unsigned long long)seed);
    }
}

END_TEST

START_TEST(of_a_job_of_which_nothing_is_known_nothing_is_told)
{
    struct start_spread told;
    struct start_spread_job jobs[2] = {{.started_ms = NOW_MS - 5,
                                        .expected_end_ms = NOW_MS + 10,
                                        .least_ms = 10,
                                        .most_ms = 20,
                                        .n_runs = 3},
                                       {.started_ms = NOW_MS - 5, .expected_end_ms = NOW_MS + 9}};
    ck_assert(!start_spread_tell(jobs, 2, NOW_MS, NOW_MS + 10, &told));
    jobs[1].limit_ms = NOW_MS + 40; /* it ends by then, whatever it is */
    ck_assert(start_spread_tell(jobs, 2, NOW_MS, NOW_MS + 10, &told));
    ck_assert_int_eq(told.earliest_ms, NOW_MS);
    ck_assert_int_eq(told.latest_ms, NOW_MS + 40);
    jobs[1] = (struct start_spread_job){.started_ms = NOW_MS - 5, .expected_end_ms = NOW_MS + 99};
    ck_assert(start_spread_tell(jobs, 2, NOW_MS, NOW_MS + 10, &told)); /* it is not waited for */
    ck_assert_int_eq(told.latest_ms, NOW_MS + 15);
    ck_assert_int_eq(told.n_runs, 3);
    ck_assert(!start_spread_tell(NULL, 0, NOW_MS, NOW_MS + 10, &told));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("start spread");
    TCase *tcase = tcase_create("start spread");
    tcase_add_loop_test(tcase, starts_lie_in_the_interval_as_often_as_it_says, 0,
                        sizeof sorts / sizeof *sorts);
    tcase_add_test(tcase, of_a_job_of_which_nothing_is_known_nothing_is_told);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
