/*
 * Elastic trainings: workers are killed at any point of a step, and what the others compute is
 * compared with a training that nobody disturbed. Every worker leaves the digest of its weights
 * after each step: all that took part in a step must have the same bits.
 */
#include "train/test_support.h"

#include "base/log.h"
#include "comm/comm.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define N_WORKERS 4
#define N_EPOCHS  8
#define N_STEPS   48

/** What a worker saw of a step; n is 0 if it did not take part. */
struct seen {
    int n;
    double loss;
    char weights[WEIR_SHA256_TEXT_BYTES];
};

/** Written by the workers, each its own row: shared memory. */
static struct seen (*seen)[TEST_STEPS_MAX];

#define SEEN_BYTES (WEIR_COMM_MAX_RANKS * sizeof *seen)

/** Whom a hook kills, and when. */
static struct {
    int worker;
    uint64_t step;
    int64_t delay_ns; /**< After that step. */
} victims[2];

static int n_victims;
static bool is_ucx;
static int
    n_expected; /**< Workers that there will be; steps before are slow, so that they can come. */
static int *n_deaths; /**< Shared: how many have been killed. */

static void setup(void)
{
    fixture_make();
    seen = mmap(NULL, SEEN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    n_deaths = &fixture.trace->n_attempts;
    n_victims = n_expected = 0;
    weir_log_set_level(WEIR_LOG_ERROR); /* losses are warned about: that is not the test's news */
}

static void teardown(void)
{
    (void)munmap(seen, SEEN_BYTES);
    fixture_drop();
}

static void kill_soon(int64_t delay_ns)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_nsec = delay_ns + 1}};
    ++*n_deaths;
    if (delay_ns == 0) {
        (void)raise(SIGKILL);
    }
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &when, NULL), 0);
}

static void note_step(void *context, const struct weir_train_step *step)
{
    static uint64_t first_step = UINT64_MAX;
    (void)context;
    if (step->rank >= WEIR_COMM_MAX_RANKS || step->step >= TEST_STEPS_MAX) {
        return;
    }
    first_step = WEIR_MIN(first_step, step->step);
    struct seen *now = &seen[step->rank][step->step];
    weir_sha256(step->weights, step->n_weights * sizeof(float), now->weights);
    now->loss = step->loss;
    now->n = step->n_workers;
    if (step->n_workers < n_expected) {
        const struct timespec pause = {.tv_nsec = 20000000};
        (void)nanosleep(&pause, NULL);
    }
    for (int i = 0; i < n_victims; i++) {
        bool is_first = first_step == 0; /* not one that was started in a victim's place */
        if (step->rank == victims[i].worker && step->step == victims[i].step && is_first) {
            kill_soon(victims[i].delay_ns);
        }
    }
}

static const struct weir_train_hooks hooks = {.on_step = note_step};

static struct weir_train_config config_of(const char *norm)
{
    struct weir_train_config config = fixture_config(N_WORKERS, 0, N_EPOCHS);
    fixture_write_model(norm, WITH_DROPOUT);
    config.group.elastic = true;
    config.group.timeout_s = 30;
    config.group.max_restarts = 0;
    config.checkpoint.every_s = 1000;
    return config;
}

/** Losses of the training that nobody disturbs. */
static void undisturbed(const struct weir_train_config *config, double losses[N_STEPS])
{
    int n = n_victims;
    n_victims = 0;
    fixture_train(config, &hooks);
    for (int s = 0; s < N_STEPS; s++) {
        ck_assert_int_eq(seen[0][s].n, N_WORKERS);
        losses[s] = seen[0][s].loss;
    }
    memset(seen, 0, SEEN_BYTES);
    fixture_clear();
    n_victims = n;
}

/** All that took part in a step have the same weights; its loss. */
static double check_step(int step, int *out_n)
{
    const struct seen *first = NULL;
    *out_n = 0;
    for (int w = 0; w < N_WORKERS + 2; w++) {
        const struct seen *one = &seen[w][step];
        if (one->n == 0) {
            continue;
        }
        first = first == NULL ? one : first;
        ++*out_n;
        ck_assert_msg(strcmp(one->weights, first->weights) == 0, "step %d: worker %d has others",
                      step, w);
        ck_assert_int_eq(one->n, first->n);
        ck_assert(one->loss == first->loss);
    }
    ck_assert_msg(first != NULL, "nobody took step %d", step);
    /* Who died between its update and its note did take part. Over UCX a step may be done on some
     * when it fails on others: these take over the state instead. */
    ck_assert_int_le(*out_n, first->n);
    ck_assert(is_ucx || *out_n >= first->n - 1);
    return first->loss;
}

static void check_losses(const double expected[N_STEPS], double tolerance)
{
    for (int s = 0; s < N_STEPS; s++) {
        int n = 0;
        double loss = check_step(s, &n);
        ck_assert_msg(fabs(loss - expected[s]) < tolerance, "step %d: loss %.9g, not %.9g", s, loss,
                      expected[s]);
    }
}

START_TEST(whoever_is_killed_wherever_in_a_step_the_others_go_on_as_if_it_had_been_done_by_all)
{
    double expected[N_STEPS];
    struct weir_train_config config = config_of("");
    struct weir_rng rng;
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    weir_rng_init(&rng, seed, 0);
    is_ucx = _i == 1;
    config.exchange.transport = is_ucx ? "ucx" : "auto";
    undisturbed(&config, expected);
    for (int i = 0; i < N_WORKERS; i++) {
        victims[0].worker = i % N_WORKERS;
        victims[0].step = weir_rng_below(&rng, N_STEPS - 4);
        victims[0].delay_ns = i == 0 ? 0 : (int64_t)weir_rng_below(&rng, 3000000);
        n_victims = 1;
        (void)fprintf(stderr, "seed %llu: worker %d, %lld ns after step %llu\n",
                      (unsigned long long)seed, victims[0].worker, (long long)victims[0].delay_ns,
                      (unsigned long long)victims[0].step);
        fixture_train(&config, &hooks);
        check_losses(expected, 1e-4);
        int n = 0;
        (void)check_step(N_STEPS - 1, &n);
        ck_assert_int_eq(n, N_WORKERS - 1);
        memset(seen, 0, SEEN_BYTES);
        fixture_clear();
    }
}

END_TEST

START_TEST(workers_are_lost_until_one_is_left)
{
    double expected[N_STEPS];
    struct weir_train_config config = config_of("");
    undisturbed(&config, expected);
    victims[0].worker = 0;
    victims[0].step = 11;
    victims[1].worker = 2;
    victims[1].step = 11; /* at the same time, or while the others meet */
    n_victims = 2;
    config.group.workers = 3;
    fixture_train(&config, &hooks);
    check_losses(expected, 1e-4);
    ck_assert_int_eq(seen[1][N_STEPS - 1].n, 1);
}

END_TEST

/** What leaders have said, as text. */
static char *fixture_progress(void)
{
    char path[160];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/progress", fixture.dir);
    return fixture_read(path, &len);
}

START_TEST(another_takes_the_place_of_a_lost_worker)
{
    double expected[N_STEPS * 8];
    struct weir_train_config config = config_of("");
    config.group.workers = 3;
    config.loop.epochs = 40; /* a newcomer needs some ms, a step less than one */
    config.group.max_restarts = 5;
    n_victims = 0;
    fixture_train(&config, &hooks);
    for (int s = 0; s < 240; s++) {
        expected[s] = seen[0][s].loss;
    }
    memset(seen, 0, SEEN_BYTES);
    fixture_clear();
    victims[0].worker = _i;
    victims[0].step = 7;
    victims[0].delay_ns = 100000;
    n_victims = 1;
    n_expected = 3;
    fixture_train(&config, &hooks);
    for (int s = 0; s < 240; s++) {
        int n = 0;
        double loss = check_step(s, &n);
        ck_assert_msg(fabs(loss - expected[s]) < 1e-3, "step %d: loss %.9g, not %.9g", s, loss,
                      expected[s]);
    }
    ck_assert_int_eq(seen[_i][239].n, 3); /* it is there, and all are */
    const char *progress = fixture_progress();
    char lost[32], joined[32];
    (void)snprintf(lost, sizeof lost, "\"lost\":[%d]", _i);
    (void)snprintf(joined, sizeof joined, "\"joined\":[%d]", _i);
    ck_assert_msg(strstr(progress, lost) != NULL, "%s", lost);
    ck_assert_msg(strstr(progress, joined) != NULL, "%s", joined);
}

END_TEST

/** A process that is one rank, as an agent or a person starts it. */
static pid_t start_rank(const struct weir_train_config *common, int rank, bool is_joining)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_train_config config = *common;
        config.group.rank = rank;
        config.group.join = is_joining;
        if (weir_train_rank(&config, &hooks, &fixture.err) != WEIR_OK) {
            (void)fprintf(stderr, "rank %d: %s\n", rank, fixture.err.message);
            _exit(1);
        }
        _exit(0);
    }
    return pid;
}

static void check_ended(pid_t pid)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(who_is_started_by_hand_joins_and_the_group_grows)
{
    struct weir_train_config config = config_of("");
    char url[96];
    (void)snprintf(url, sizeof url, "file://%s/rendezvous", fixture.dir);
    config.group.rendezvous = url;
    config.group.secret = "open sesame";
    config.group.workers = 2;
    config.loop.epochs = 40;
    n_expected = 3;
    pid_t pids[] = {start_rank(&config, 0, false), start_rank(&config, 1, false),
                    start_rank(&config, 2, true)};
    for (int r = 0; r < 3; r++) {
        check_ended(pids[r]);
    }
    for (int s = 0; s < 240; s++) {
        int n = 0;
        (void)check_step(s, &n);
    }
    ck_assert_int_eq(seen[2][239].n, 3);
    check_ended(
        start_rank(&config, 1, true)); /* too late: the work is done, and that is no error */
    ck_assert(weir_path_exists(fixture.output));
}

END_TEST

START_TEST(below_min_workers_training_needs_the_last_checkpoint)
{
    struct weir_train_config config = config_of(WITH_NORM);
    size_t len = 0, again_len = 0;
    config.group.workers = 2;
    fixture_train(&config, &hooks);
    const char *expected = fixture_read(fixture.output, &len);
    fixture_clear();
    config.group.min_workers = 2;
    config.group.max_restarts = 3;
    victims[0].worker = 1;
    victims[0].step = 9;
    n_victims = 1;
    victims[0].delay_ns = 50000;
    fixture_train(&config, &hooks);
    /* All began again, with as many: the same model, bit by bit, batch norm or not. */
    const char *again = fixture_read(fixture.output, &again_len);
    ck_assert_uint_eq(again_len, len);
    ck_assert_mem_eq(again, expected, len);
}

END_TEST

START_TEST(running_statistics_are_those_of_the_last_step_that_was_done)
{
    /* With batch norm losses differ with the share; but nobody may have half of a failed step. */
    struct weir_train_config config = config_of(WITH_NORM);
    for (int i = 0; i < WEIR_TEST_TIMES(6, N_WORKERS); i++) {
        int n = 0;
        victims[0].worker = i % N_WORKERS;
        victims[0].step = (uint64_t)(5 + 3 * i);
        victims[0].delay_ns = 90000 * i;
        n_victims = 1;
        fixture_train(&config, &hooks);
        for (int s = 0; s < N_STEPS; s++) {
            (void)check_step(s, &n);
        }
        memset(seen, 0, SEEN_BYTES);
        fixture_clear();
    }
}

END_TEST

START_TEST(what_elastic_cannot_do_is_refused)
{
    struct weir_train_config config = config_of("");
    config.group.parameter_servers = 1;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "parameter servers"));
    config.group.parameter_servers = 0;
    config.group.min_workers = N_WORKERS + 1;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    config.group.min_workers = 2;
    config.group.elastic = false;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    config.group.min_workers = 1;
    config.group.join = true; /* without a rank */
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("elastic");
    TCase *tcase = tcase_create("elastic");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(
        tcase, whoever_is_killed_wherever_in_a_step_the_others_go_on_as_if_it_had_been_done_by_all,
        0, WEIR_TEST_TIMES(4, 2));
    tcase_add_test(tcase, workers_are_lost_until_one_is_left);
    tcase_add_loop_test(tcase, another_takes_the_place_of_a_lost_worker, 0, 3);
    tcase_add_test(tcase, who_is_started_by_hand_joins_and_the_group_grows);
    tcase_add_test(tcase, below_min_workers_training_needs_the_last_checkpoint);
    tcase_add_test(tcase, running_statistics_are_those_of_the_last_step_that_was_done);
    tcase_add_test(tcase, what_elastic_cannot_do_is_refused);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
