/*
 * Workers whose GPUs, emulated ones, sum gradients among themselves: against one worker with the whole
 * batch, and against the exchange through the processor's memory. Workers are killed and stopped in the
 * middle of a sum. All-reduces run as late as they may on one kind of emulated GPU, and as early on the
 * other.
 */
#include "nn/backend/cuda/emulated/emulated.h"
#include "train/test_support.h"

#include "base/log.h"
#include "train/config.h"

#include <math.h>
#include <signal.h>

#define N_WORKERS_MAX 4

/** What a worker saw after a step. */
struct seen {
    int n_workers;
    char weights[WEIR_SHA256_TEXT_BYTES];
};

/** Shared by all processes. */
static struct shared {
    struct seen seen[N_WORKERS_MAX][TEST_STEPS_MAX];
    int n_victims;
} * shared;

static void set_up(void)
{
    fixture_make();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    cuda_gpus = &gpu_emulated_ops;
    emulated_n_gpus = EMULATED_GROUP_MAX;
    emulated_group_lack = NULL;
    emulated_victim = (struct emulated_victim){.rank = -1};
    weir_log_set_level(WEIR_LOG_ERROR);
}

static void tear_down(void)
{
    (void)munmap(shared, sizeof *shared);
    fixture_drop();
}

static void note_step(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank < N_WORKERS_MAX && step->step < TEST_STEPS_MAX) {
        struct seen *now = &shared->seen[step->rank][step->step];
        weir_sha256(step->weights, step->n_weights * sizeof(float), now->weights);
        now->n_workers = step->n_workers;
    }
}

static const struct weir_train_hooks hooks = {.on_step = note_step};

static struct weir_train_config config_of(int n_workers, const char *strategy, int n_epochs)
{
    struct weir_train_config config = fixture_config(n_workers, 0, n_epochs);
    config.model.backend = "cuda";
    config.exchange.strategy = (char *)strategy;
    config.checkpoint.every_s = 1000;
    return config;
}

/** The weights that a training ends with. Its workers must have had the same bits after each step. */
static const float *train(const struct weir_train_config *config, size_t *out_n)
{
    memset(shared->seen, 0, sizeof shared->seen);
    fixture_clear();
    fixture_train(config, &hooks);
    for (int s = 0; s < TEST_STEPS_MAX && shared->seen[0][s].n_workers > 0; s++) {
        for (int w = 1; w < config->group.workers; w++) {
            ck_assert_msg(strcmp(shared->seen[w][s].weights, shared->seen[0][s].weights) == 0,
                          "step %d: worker %d has other weights than worker 0", s, w);
        }
    }
    return fixture_weights(out_n);
}

/* Far less than what a step changes. */
static void must_be_near(const float *a, const float *b, size_t n, const char *what)
{
    double largest = 0, difference = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    }
    ck_assert_msg(difference < 2e-4 * largest, "%s: weights of up to %g differ by %g", what,
                  largest, difference);
}

static const struct gpu_ops *const kinds[] = {&gpu_emulated_ops, &gpu_emulated_bare_ops};

/* ---- the numbers ---------------------------------------------------------------------------- */

static const struct {
    const char *name, *norm, *dropout;
} models[] = {{"plain", "", ""}, {"dropout", "", WITH_DROPOUT}, {"norm", WITH_NORM, ""}};

START_TEST(gpus_that_sum_gradients_train_as_one_worker_does)
{
    /* Not with a norm, which sees the worker's own images. */
    for (size_t m = 0; m < 2; m += WEIR_TEST_TIMES(1, 2)) {
        size_t n = 0;
        fixture_write_model(models[m].norm, models[m].dropout);
        struct weir_train_config config = config_of(1, "auto", 3);
        cuda_gpus = kinds[((size_t)_i + m) % 2];
        const float *alone = train(&config, &n);
        for (int workers = 2; workers <= 3; workers++) { /* 8 + 8, and 5 + 5 + 6 images */
            config = config_of(workers, "nccl", 3);
            must_be_near(alone, train(&config, &n), n, models[m].name);
        }
    }
}

END_TEST

START_TEST(gpus_that_sum_gradients_have_the_weights_of_an_exchange_through_memory)
{
    for (size_t m = 0; m < WEIR_ARRAY_LEN(models); m += WEIR_TEST_TIMES(1, 2)) {
        for (int workers = 2; workers <= 3; workers += WEIR_TEST_TIMES(1, 2)) {
            size_t n = 0;
            cuda_gpus = kinds[((size_t)_i + m + (size_t)workers) % 2];
            fixture_write_model(models[m].norm, models[m].dropout);
            struct weir_train_config config = config_of(workers, "memory", 2);
            const float *by_memory = train(&config, &n);
            config.exchange.strategy = "nccl";
            must_be_near(by_memory, train(&config, &n), n, models[m].name);
        }
    }
}

END_TEST

START_TEST(options_of_a_step_hold_for_gpus_that_sum_gradients)
{
    static const struct {
        const char *optimizer;
        double clip_norm, average_decay;
        int micro_batches;
    } cases[] = {{"sgd", 0, 0, 2},  {"adam", 0, 0, 3},  {"sgd", 0.1, 0, 1},    {"lars", 0, 0, 1},
                 {"lamb", 0, 0, 2}, {"sgd", 0, 0.9, 1}, {"rmsprop", 0, 0.9, 2}};

    fixture_write_model(WITH_NORM, "");
    for (size_t i = (size_t)_i; i < WEIR_ARRAY_LEN(cases); i += WEIR_TEST_TIMES(2, 4)) {
        size_t n = 0;
        struct weir_train_config config = config_of(2, "memory", 2);
        config.optimizer.name = (char *)cases[i].optimizer;
        config.optimizer.clip_norm = cases[i].clip_norm;
        config.optimizer.average_decay = cases[i].average_decay;
        config.loop.micro_batches = cases[i].micro_batches;
        const float *by_memory = train(&config, &n);
        config.exchange.strategy = "nccl";
        must_be_near(by_memory, train(&config, &n), n, cases[i].optimizer);
    }
}

END_TEST

/* Sums are of scaled gradients: they lose the scale when all runs and GPUs are in them. */
START_TEST(fp16_that_gpus_sum_has_the_weights_of_an_exchange_through_memory)
{
    for (int i = 0; i < 3; i++) {
        size_t n = 0;
        struct weir_train_config config = config_of(2, "memory", 2);
        config.model.precision = "fp16";
        config.loop.micro_batches = 1 + i;
        config.optimizer.clip_norm = i == 1 ? 0.1 : 0;
        cuda_gpus = kinds[i % 2];
        const float *by_memory = train(&config, &n);
        config.exchange.strategy = "nccl";
        must_be_near(by_memory, train(&config, &n), n, "fp16");
    }
}

END_TEST

START_TEST(a_training_that_is_stopped_goes_on_with_gpus_or_without)
{
    size_t n = 0;
    struct weir_train_config config = config_of(2, "nccl", 1);
    config.optimizer.name = "adam";
    config.optimizer.schedule = "constant";
    config.loop.epochs = 2;
    const float *at_once = train(&config, &n);
    /* A worker is killed between; the training begins again at the checkpoint of the first epoch. */
    emulated_victim = (struct emulated_victim){
        .rank = 1, .n_sums = 8, .signal = SIGKILL, .n_left = &shared->n_victims};
    shared->n_victims = 1;
    must_be_near(at_once, train(&config, &n), n, "again");
    ck_assert_int_eq(fixture.trace->n_attempts, 2);
}

END_TEST

/* ---- losses --------------------------------------------------------------------------------- */

START_TEST(a_worker_killed_in_the_middle_of_a_sum_is_a_restart)
{
    size_t n = 0;
    struct weir_train_config config = config_of(2 + _i % 2, "nccl", 2);
    config.checkpoint.every_s = 0;
    const float *undisturbed = train(&config, &n);
    emulated_victim = (struct emulated_victim){
        .rank = _i % 2, .n_sums = 9, .signal = SIGKILL, .n_left = &shared->n_victims};
    shared->n_victims = 1;
    const float *again = train(&config, &n);
    ck_assert_int_eq(shared->n_victims, 0);
    ck_assert_int_eq(fixture.trace->n_attempts, 2);
    ck_assert_mem_eq(undisturbed, again, n * sizeof *again);
}

END_TEST

START_TEST(an_elastic_group_goes_on_without_a_worker_killed_in_the_middle_of_a_sum)
{
    struct weir_train_config config = config_of(3, "auto", 2); /* they are wanted, and can be */
    config.group.elastic = true;
    config.group.max_restarts = 0;
    emulated_victim = (struct emulated_victim){
        .rank = _i, .n_sums = 7, .signal = SIGKILL, .n_left = &shared->n_victims};
    shared->n_victims = 1;
    fixture_clear();
    fixture_train(&config, &hooks);
    ck_assert_int_eq(shared->n_victims, 0);
    int i_left = _i == 0 ? 1 : 0, i_other = _i == 2 ? 1 : 2;
    for (int s = 0; s < 12; s++) {
        ck_assert_int_eq(shared->seen[i_left][s].n_workers, s < 6 ? 3 : 2);
        ck_assert_str_eq(shared->seen[i_left][s].weights, shared->seen[i_other][s].weights);
    }
}

END_TEST

START_TEST(a_worker_that_stands_still_ends_the_step_by_the_deadline)
{
    struct weir_train_config config = config_of(2, "nccl", 2);
    config.group.timeout_s = 2;
    config.group.max_restarts = 0;
    emulated_victim = (struct emulated_victim){
        .rank = 1, .n_sums = 4, .signal = SIGSTOP, .n_left = &shared->n_victims};
    shared->n_victims = 1;
    fixture_clear();
    weir_status status = weir_train_launch(&config, &hooks, &fixture.err);
    ck_assert_msg(status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_PEER, "%s", fixture.err.message);
    ck_assert_msg(strstr(fixture.err.message, "1") != NULL, "%s", fixture.err.message);
}

END_TEST

/* ---- where it cannot be --------------------------------------------------------------------- */

/** Trains in a child whose log goes into a file; the text of it. */
static const char *log_of(const struct weir_train_config *config)
{
    char path[160];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/log", fixture.dir);
    (void)fflush(NULL);
    int kept = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen(path, "we", stderr));
    weir_log_set_level(WEIR_LOG_WARN);
    fixture_clear();
    weir_status status = weir_train_launch(config, &hooks, &fixture.err);
    weir_log_set_level(WEIR_LOG_ERROR);
    (void)fflush(stderr);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return fixture_read(path, &len);
}

static void must_do_without(struct weir_train_config *config, const char *reason)
{
    size_t n = 0;
    config->exchange.strategy = "memory";
    const float *by_memory = train(config, &n);
    config->exchange.strategy = "auto";
    const char *log = log_of(config);
    ck_assert_msg(strstr(log, "gradients_pass_memory") && strstr(log, reason), "%s", log);
    ck_assert_mem_eq(by_memory, fixture_weights(&n), n * sizeof *by_memory);
    config->exchange.strategy = "nccl";
    fixture_clear();
    ck_assert_int_eq(weir_train_launch(config, &hooks, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(fixture.err.message, "exchange: nccl: ") != NULL &&
                      strstr(fixture.err.message, reason) != NULL,
                  "%s", fixture.err.message);
}

START_TEST(workers_of_one_gpu_exchange_through_memory_and_say_why)
{
    struct weir_train_config config = config_of(2, "auto", 1);
    emulated_n_gpus = 1;
    must_do_without(&config, "workers 0 and 1 have the same GPU");
    config = config_of(3, "auto", 1);
    emulated_n_gpus = 2;
    must_do_without(&config, "workers 0 and 2 have the same GPU");
}

END_TEST

START_TEST(workers_without_nccl_exchange_through_memory_and_say_why)
{
    struct weir_train_config config = config_of(2, "auto", 1);
    emulated_group_lack = "cannot load NCCL (libnccl.so.2)";
    must_do_without(&config, "worker 0: cannot load NCCL (libnccl.so.2)");
}

END_TEST

START_TEST(workers_whose_gpus_cannot_meet_exchange_through_memory_and_say_why)
{
    struct weir_train_config config = config_of(2, "auto", 1);
    config.group.timeout_s = 4; /* worker 0 waits for half of it */
    emulated_victim = (struct emulated_victim){.rank = 1, .fails_to_open = true};
    must_do_without(&config, "worker 1: it fails as it was asked to");
}

END_TEST

START_TEST(what_nccl_does_not_do_is_refused)
{
    struct weir_train_config config = config_of(2, "nccl", 1);
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_OK);
    config.exchange.shard_update = true;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_UNSUPPORTED);
    config.exchange.shard_update = false;
    config.group.parameter_servers = 1;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_UNSUPPORTED);
    config.group.parameter_servers = 0;
    config.model.backend = "onednn";
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "cuda"));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl");
    TCase *tcase = tcase_create("nccl");
    tcase_set_timeout(tcase, 240);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, gpus_that_sum_gradients_train_as_one_worker_does, 0,
                        WEIR_TEST_TIMES(2, 1));
    tcase_add_loop_test(
        tcase, gpus_that_sum_gradients_have_the_weights_of_an_exchange_through_memory, 0, 2);
    tcase_add_loop_test(tcase, options_of_a_step_hold_for_gpus_that_sum_gradients, 0, 2);
    tcase_add_test(tcase, fp16_that_gpus_sum_has_the_weights_of_an_exchange_through_memory);
    tcase_add_test(tcase, a_training_that_is_stopped_goes_on_with_gpus_or_without);
    tcase_add_loop_test(tcase, a_worker_killed_in_the_middle_of_a_sum_is_a_restart, 0, 2);
    tcase_add_loop_test(
        tcase, an_elastic_group_goes_on_without_a_worker_killed_in_the_middle_of_a_sum, 0, 3);
    tcase_add_test(tcase, a_worker_that_stands_still_ends_the_step_by_the_deadline);
    tcase_add_test(tcase, workers_of_one_gpu_exchange_through_memory_and_say_why);
    tcase_add_test(tcase, workers_without_nccl_exchange_through_memory_and_say_why);
    tcase_add_test(tcase, workers_whose_gpus_cannot_meet_exchange_through_memory_and_say_why);
    tcase_add_test(tcase, what_nccl_does_not_do_is_refused);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
