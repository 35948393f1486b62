/*
 * Trainings that are disturbed against the same trainings undisturbed: the model files must be
 * equal byte by byte.
 */
#include "train/test_support.h"

#include "base/log.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#define N_EPOCHS 3
#define N_STEPS  18

/** Whom a hook disturbs, and when. */
static struct {
    int rank;
    uint64_t step;
    int64_t delay_ns; /**< After that step. */
} victim;

static uint64_t seed;

static void choose_victim(int n_ranks)
{
    struct weir_rng rng;
    weir_random_bytes(&seed, sizeof seed);
    weir_rng_init(&rng, seed, 0);
    victim.rank = (int)weir_rng_below(&rng, (uint64_t)n_ranks);
    victim.step = weir_rng_below(&rng, N_STEPS - 3);
    victim.delay_ns = (int64_t)weir_rng_below(&rng, 3000000);
    (void)fprintf(stderr, "seed %llu: rank %d, %lld ns after step %llu\n", (unsigned long long)seed,
                  victim.rank, (long long)victim.delay_ns, (unsigned long long)victim.step);
}

/** The kernel kills this process some time into the next step. */
static void kill_soon(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank != victim.rank || step->attempt != 0 || step->step < victim.step) {
        return;
    }
    if (step->step == victim.step + 2) {
        (void)raise(SIGKILL); /* steps were too fast for the timer */
    }
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_nsec = victim.delay_ns + 1}};
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &when, NULL), 0);
}

/** As if an agent stopped one task. */
static void stop_rank(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank == victim.rank && step->step == victim.step) {
        (void)raise(SIGTERM);
    }
}

/** As Ctrl-C does. */
static void stop_launcher(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank == 0 && step->step == 3) {
        (void)kill(getppid(), SIGINT);
    }
}

/** As coreutils' timeout does: to the process, and then to its group. */
static void stop_launcher_twice(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank != 0 || step->step != 3) {
        return;
    }
    sigset_t pending;
    (void)kill(getppid(), SIGTERM);
    do { /* until it has come through the launcher, so that the two are two */
        (void)sched_yield();
        (void)sigpending(&pending);
    } while (sigismember(&pending, SIGTERM) == 0);
    (void)kill(getppid(), SIGTERM);
}

static const struct weir_train_hooks killing = {.on_step = kill_soon};
static const struct weir_train_hooks stopping = {.on_step = stop_rank};
static const struct weir_train_hooks interrupting = {.on_step = stop_launcher};
static const struct weir_train_hooks interrupting_twice = {.on_step = stop_launcher_twice};

static const struct gang {
    int workers, servers;
    const char *norm, *dropout, *optimizer;
    double clip_norm;
    const char *wire; /* NULL: in shared memory */
    bool is_shared;   /* The workers share the update. */
} gangs[] = {
    {1, 0, WITH_NORM, WITH_DROPOUT, "sgd", 0, NULL, false},
    {2, 0, WITH_NORM, WITH_DROPOUT, "adam", 0.5, NULL, false},
    {2, 1, "", WITH_DROPOUT, "sgd:nesterov=1", 0, NULL, false},
    {2, 2, WITH_NORM, "", "adam", 0, NULL, false},
    {3, 0, WITH_NORM, "", "lamb", 0.5, NULL, true},
    {2, 2, WITH_NORM, "", "lars", 0.5, NULL, false},
    {2, 1, "", WITH_DROPOUT, "adam", 0, "bf16", false},
    {2, 0, WITH_NORM, "", "lars", 0, NULL, false},
    {2, 1, "", WITH_DROPOUT, "lamb", 0.5, NULL, false},
    {1, 0, "", WITH_DROPOUT, "rmsprop", 0, NULL, false},
    {2, 2, WITH_NORM, "", "adamw", 0, NULL, false},
};

static struct weir_train_config config_of(const struct gang *gang)
{
    struct weir_train_config config = fixture_config(gang->workers, gang->servers, N_EPOCHS);
    fixture_write_model(gang->norm, gang->dropout);
    config.optimizer.name = (char *)gang->optimizer;
    config.optimizer.clip_norm = gang->clip_norm;
    config.exchange.shard_update = gang->is_shared;
    if (gang->wire != NULL) {
        config.exchange.wire = (char *)gang->wire;
        config.exchange.transport = (char *)"tcp";
    }
    return config;
}

/** The model file of the undisturbed training. */
static char *undisturbed(const struct weir_train_config *config, size_t *out_len)
{
    fixture_clear();
    fixture_train(config, NULL);
    char *bytes = fixture_read(config->output.file, out_len);
    fixture_clear();
    ck_assert_int_eq(unlink(config->output.file), 0);
    return bytes;
}

START_TEST(a_killed_rank_changes_nothing)
{
    const struct gang *gang = &gangs[_i];
    struct weir_train_config config = config_of(gang);
    size_t len = 0;
    const char *expected = undisturbed(&config, &len);
    choose_victim(gang->workers + gang->servers);
    config.checkpoint.every_s = _i % 2 == 0 ? 0 : 1000; /* or only at the end of epochs */
    fixture_train(&config, &killing);
    ck_assert_int_eq(fixture.trace->n_attempts, 2);
    fixture_expect_output(expected, len);
}

END_TEST

START_TEST(a_stopped_training_goes_on_as_if_nothing_had_happened)
{
    const struct gang *gang = &gangs[_i];
    struct weir_train_config config = config_of(gang);
    size_t len = 0;
    const char *expected = undisturbed(&config, &len);
    victim.rank = gang->workers - 1;
    victim.step = 7; /* in the middle of an epoch */
    config.checkpoint.every_s = 1000;
    ck_assert_int_eq(weir_train_launch(&config, &stopping, &fixture.err), WEIR_ERR_CANCELLED);
    ck_assert_msg(strstr(fixture.err.message, "step 8") != NULL, "%s", fixture.err.message);
    ck_assert(!weir_path_exists(fixture.output));
    fixture_train(&config, NULL);
    fixture_expect_output(expected, len);
}

END_TEST

START_TEST(an_interrupt_stops_with_a_checkpoint_that_is_gone_when_the_model_is_there)
{
    struct weir_train_config config = fixture_config(2, 0, 40);
    char folder[128];
    config.checkpoint.dir = NULL; /* beside the output, the launcher's own */
    config.checkpoint.every_s = 1000;
    (void)snprintf(folder, sizeof folder, "%s.checkpoints", fixture.output);
    ck_assert_int_eq(weir_train_launch(&config, &interrupting, &fixture.err), WEIR_ERR_CANCELLED);
    ck_assert(weir_path_is_dir(folder));
    struct weir_train_config other = config;
    other.optimizer.learning_rate = 0.25;
    ck_assert_int_eq(weir_train_launch(&other, NULL, &fixture.err), WEIR_ERR_CONFLICT);
    ck_assert_msg(strstr(fixture.err.message, "learning_rate is 0.05 there and 0.25 here") != NULL,
                  "%s", fixture.err.message);
    memset(fixture.trace, 0, sizeof *fixture.trace);
    fixture_train(&config, &fixture_hooks);
    ck_assert_int_gt(fixture.trace->first_steps[0], 3);
    ck_assert(!weir_path_exists(folder));
}

END_TEST

START_TEST(one_request_to_stop_that_comes_twice_stops_with_a_checkpoint_too)
{
    for (int servers = 0; servers < 2; servers++) {
        struct weir_train_config config = fixture_config(2, servers, 40);
        fixture_clear();
        ck_assert_int_eq(weir_train_launch(&config, &interrupting_twice, &fixture.err),
                         WEIR_ERR_CANCELLED);
        ck_assert_msg(strncmp(fixture.err.message, "stopped at step ", 16) == 0, "%s",
                      fixture.err.message);
    }
}

END_TEST

/** The newest checkpoint but one; they are a step or more apart, as the disk allows. */
static int step_before(int newest)
{
    for (int step = newest - 1; step > 0; step--) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/step-%012d.safetensors", fixture.checkpoints, step);
        if (weir_path_exists(path)) {
            return step;
        }
    }
    return 0;
}

static void damage(const char *path)
{
    size_t len = 0;
    char *bytes = fixture_read(path, &len);
    bytes[len - 9] ^= 0x10;
    ck_assert_int_eq(weir_file_write_atomic(path, bytes, len, 0644, NULL), WEIR_OK);
}

START_TEST(a_damaged_checkpoint_costs_the_steps_since_the_one_before)
{
    const struct gang *gang = &gangs[_i];
    struct weir_train_config config = config_of(gang);
    size_t len = 0;
    const char *expected = undisturbed(&config, &len);
    victim.rank = 0;
    victim.step = 9;
    ck_assert_int_eq(weir_train_launch(&config, &stopping, &fixture.err), WEIR_ERR_CANCELLED);
    char path[160];
    (void)snprintf(path, sizeof path, "%s/step-%012d%s.safetensors", fixture.checkpoints, 10,
                   gang->servers > 0 ? ".server-0" : "");
    const int before = step_before(10);
    damage(path);
    memset(fixture.trace, 0, sizeof *fixture.trace);
    fixture_train(&config, &fixture_hooks);
    ck_assert_int_eq(fixture.trace->first_steps[0], before);
    fixture_expect_output(expected, len);
}

END_TEST

START_TEST(a_training_can_go_on_with_other_servers)
{
    /* The optimiser's state moves from one server to two, and then to the workers. */
    struct weir_train_config config = fixture_config(2, 0, N_EPOCHS);
    size_t n = 0;
    fixture_train(&config, NULL);
    const float *expected = fixture_weights(&n);
    fixture_clear();
    victim.rank = 0;
    for (int i = 0; i < 2; i++) {
        victim.step = i == 0 ? 4 : 8;
        config.group.parameter_servers = i + 1;
        ck_assert_int_eq(weir_train_launch(&config, &stopping, &fixture.err), WEIR_ERR_CANCELLED);
    }
    config.group.parameter_servers = 0;
    fixture_train(&config, NULL);
    ck_assert_mem_eq(fixture_weights(&n), expected, n * sizeof *expected);
}

END_TEST

START_TEST(a_rank_that_dies_again_and_again_ends_the_training)
{
    struct weir_train_config config = fixture_config(2, 0, N_EPOCHS);
    config.group.max_restarts = 0;
    victim.rank = 1;
    victim.step = 2;
    victim.delay_ns = 0;
    ck_assert_int_eq(weir_train_launch(&config, &killing, &fixture.err), WEIR_ERR_PEER);
    ck_assert_msg(strstr(fixture.err.message, "worker 1 was killed by signal 9") != NULL, "%s",
                  fixture.err.message);
}

END_TEST

START_TEST(a_finished_training_is_not_done_again)
{
    struct weir_train_config config = fixture_config(2, 0, 1);
    fixture_train(&config, NULL);
    size_t len = 0;
    const char *expected = fixture_read(fixture.output, &len);
    ck_assert_int_eq(unlink(fixture.output), 0);
    fixture_train(&config, &fixture_hooks);
    ck_assert_int_eq(fixture.trace->n_attempts, 0); /* no step */
    fixture_expect_output(expected, len);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("recovery");
    TCase *tcase = tcase_create("recovery");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, fixture_make, fixture_drop);
    tcase_add_loop_test(tcase, a_killed_rank_changes_nothing, 0, 6);
    tcase_add_loop_test(tcase, a_stopped_training_goes_on_as_if_nothing_had_happened, 0,
                        WEIR_TEST_TIMES((int)WEIR_ARRAY_LEN(gangs), 7));
    tcase_add_loop_test(tcase, a_damaged_checkpoint_costs_the_steps_since_the_one_before, 1, 3);
    tcase_add_test(tcase,
                   an_interrupt_stops_with_a_checkpoint_that_is_gone_when_the_model_is_there);
    tcase_add_test(tcase, one_request_to_stop_that_comes_twice_stops_with_a_checkpoint_too);
    tcase_add_test(tcase, a_training_can_go_on_with_other_servers);
    tcase_add_test(tcase, a_rank_that_dies_again_and_again_ends_the_training);
    tcase_add_test(tcase, a_finished_training_is_not_done_again);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
