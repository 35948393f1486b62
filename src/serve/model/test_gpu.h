/**
 * What holds of a model on a GPU, whichever: executor_gpu_test.c tries it on the emulated one,
 * executor_device_test.c on that of the machine. The oracle is the same file on the processor.
 */
#ifndef WEIR_SERVE_TEST_GPU_H
#define WEIR_SERVE_TEST_GPU_H

#include "serve/executor.h"
#include "serve/executor/gpu_share.h"
#include "serve/test_model.h"

#include "base/file.h"
#include "base/test_main.h"

#include <pthread.h>
#include <stdlib.h>

/** Norms, a residual, pools, groups and a linear: every kind of layer that a graph fuses on a GPU. */
#define TEST_RESIDUAL                                                                              \
    "{\"input\": [3, 12, 10], \"layers\": ["                                                       \
    "{\"name\": \"c1\", \"type\": \"conv\", \"k\": 8, \"kernel\": 3, \"pad\": 1},"                 \
    "{\"name\": \"n1\", \"type\": \"batch_norm\"},"                                                \
    "{\"name\": \"r1\", \"type\": \"relu\"},"                                                      \
    "{\"name\": \"c2\", \"type\": \"conv\", \"k\": 8, \"kernel\": 3, \"pad\": 1, \"groups\": 2},"  \
    "{\"name\": \"n2\", \"type\": \"batch_norm\"},"                                                \
    "{\"name\": \"a2\", \"type\": \"add\", \"from\": [\"n2\", \"r1\"]},"                           \
    "{\"name\": \"p2\", \"type\": \"prelu\"},"                                                     \
    "{\"name\": \"m3\", \"type\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"                    \
    "{\"name\": \"c4\", \"type\": \"conv\", \"k\": 12, \"kernel\": 3, \"stride\": 2},"             \
    "{\"name\": \"n4\", \"type\": \"batch_norm\"},"                                                \
    "{\"name\": \"g5\", \"type\": \"global_pool\"},"                                               \
    "{\"name\": \"f5\", \"type\": \"linear\", \"k\": \"classes\"}],"                               \
    "\"loss\": {\"type\": \"softmax\"}}"

static const char *const test_gpu_specs[] = {TEST_CLASSIFIER, TEST_EMBEDDING, TEST_RESIDUAL};

/** Set by the program: what runs nets on its GPU, and how far numbers may be apart. */
static const struct weir_backend *test_gpu;
static double test_gpu_tolerance;

static char test_gpu_folder[WEIR_DIR_TEMPORARY_BYTES];
static char test_gpu_path[WEIR_DIR_TEMPORARY_BYTES + 32];

static inline void test_gpu_set_up(void)
{
    struct weir_error err;
    ck_assert_int_eq(weir_dir_make_temporary("gpu", test_gpu_folder, &err), WEIR_OK);
    (void)snprintf(test_gpu_path, sizeof test_gpu_path, "%s/model", test_gpu_folder);
}

static inline void test_gpu_tear_down(void)
{
    struct weir_error err;
    ck_assert_uint_eq(gpu_share_taken(), 0); /* whatever was loaded has gone */
    ck_assert_int_eq(weir_dir_remove(test_gpu_folder, &err), WEIR_OK);
}

static inline struct executor_options test_gpu_options(enum executor_device device,
                                                       int32_t batch_max)
{
    return (struct executor_options){
        .n_threads = 1, .device = device, .gpu = test_gpu, .batch_max = batch_max};
}

static inline struct serve_model *test_gpu_load(const struct executor_options *options)
{
    struct serve_model *model = NULL;
    struct weir_error err;
    ck_assert_msg(executor_load("weir", test_gpu_path, options, &model, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_str_eq(model->place, options->device == EXECUTOR_GPU ? "the GPU" : "the processor");
    return model;
}

static inline struct weir_tensor *test_gpu_input(const struct serve_model *model, int64_t batch,
                                                 uint64_t seed)
{
    struct weir_tensor *in = NULL;
    struct weir_rng rng;
    test_model_zeros(model, batch, &in);
    weir_rng_init(&rng, seed, 5);
    for (size_t i = 0; i < in->n_elems; i++) {
        ((float *)in->data)[i] = (float)weir_rng_normal(&rng);
    }
    return in;
}

static inline struct weir_tensor *test_gpu_run(struct serve_model *model, struct weir_tensor *in)
{
    struct weir_tensor *out = NULL;
    struct weir_error err;
    ck_assert_msg(serve_model_run(model, &in, &out, &err) == WEIR_OK, "%s", err.message);
    return out;
}

/** Largest difference, in parts of 1 + the largest number. */
static inline double test_gpu_distance(const struct weir_tensor *a, const struct weir_tensor *b)
{
    double d = 0, most = 0;
    ck_assert_uint_eq(a->n_elems, b->n_elems);
    for (size_t i = 0; i < a->n_elems; i++) {
        double x = (double)((const float *)a->data)[i], y = (double)((const float *)b->data)[i];
        d = fmax(d, fabs(x - y));
        most = fmax(most, fabs(y));
    }
    return d / (1 + most);
}

static inline void test_gpu_compare(struct serve_model *gpu, struct serve_model *processor,
                                    int64_t batch, uint64_t seed, double tolerance)
{
    struct weir_tensor *in = test_gpu_input(gpu, batch, seed);
    struct weir_tensor *got = test_gpu_run(gpu, in), *expected = test_gpu_run(processor, in);
    ck_assert_int_eq(got->dims[0], batch);
    double d = test_gpu_distance(got, expected);
    ck_assert_msg(d <= tolerance, "seed %d, batch %d: they differ by %g", (int)seed, (int)batch, d);
    weir_tensor_release(in);
    weir_tensor_release(got);
    weir_tensor_release(expected);
}

/* Batches that fit a plan, that fall between two, and that are run in parts; then small ones again,
 * behind which the memory holds rows of the large ones. */
START_TEST(a_model_on_a_gpu_gives_the_processors_numbers_at_any_batch)
{
    static const int32_t most[] = {0, 4, 17, 40};
    for (uint64_t seed = 20; seed < 23; seed++) {
        test_model_save(test_gpu_path, test_gpu_specs[seed % 3], seed);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(most); i++) {
            const struct executor_options on_gpu = test_gpu_options(EXECUTOR_GPU, most[i]);
            const struct executor_options on_processor =
                test_gpu_options(EXECUTOR_PROCESSOR, most[i]);
            struct serve_model *gpu = test_gpu_load(&on_gpu);
            struct serve_model *processor = test_gpu_load(&on_processor);
            for (int64_t batch = 1; batch <= most[i] + 3; batch++) {
                test_gpu_compare(gpu, processor, batch, seed, test_gpu_tolerance);
            }
            test_gpu_compare(gpu, processor, 2 * most[i] + 9, seed + 100, test_gpu_tolerance);
            test_gpu_compare(gpu, processor, 1, seed + 200, test_gpu_tolerance);
            test_gpu_compare(gpu, processor, 3, seed + 300, test_gpu_tolerance);
            serve_model_unload(gpu);
            serve_model_unload(processor);
        }
    }
}

END_TEST

START_TEST(other_precisions_round_and_no_more)
{
    static const struct {
        const char *precision;
        double tolerance;
    } cases[] = {{"bf16", 3e-2}, {"tf32", 5e-3}};

    test_model_save(test_gpu_path, TEST_RESIDUAL, 31);
    const struct executor_options on_processor = test_gpu_options(EXECUTOR_PROCESSOR, 9);
    struct serve_model *processor = test_gpu_load(&on_processor);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct executor_options options = test_gpu_options(EXECUTOR_GPU, 9);
        options.precision = cases[i].precision;
        struct serve_model *gpu = test_gpu_load(&options);
        for (int64_t batch = 1; batch < 13; batch += 4) {
            test_gpu_compare(gpu, processor, batch, 41, cases[i].tolerance);
        }
        serve_model_unload(gpu);
    }
    serve_model_unload(processor);
}

END_TEST

/** A thread that uses a model which another has loaded. */
struct test_gpu_user {
    pthread_t thread;
    struct serve_model *model;
    struct weir_tensor *in[3], *expected[3];
    int n_runs;
    double distance;
};

static void *test_gpu_use(void *context)
{
    struct test_gpu_user *user = context;
    for (int i = 0; i < user->n_runs; i++) {
        struct weir_tensor *out = test_gpu_run(user->model, user->in[i % 3]);
        user->distance = fmax(user->distance, test_gpu_distance(out, user->expected[i % 3]));
        weir_tensor_release(out);
    }
    return NULL;
}

/* Check's assertions end the process from any thread, which fails the test too. */
START_TEST(models_that_one_thread_loads_are_run_by_others_at_the_same_time)
{
    struct test_gpu_user users[3] = {{.n_runs = 0}};
    for (uint64_t i = 0; i < 3; i++) {
        const struct executor_options on_gpu = test_gpu_options(EXECUTOR_GPU, 8);
        const struct executor_options on_processor = test_gpu_options(EXECUTOR_PROCESSOR, 8);
        test_model_save(test_gpu_path, test_gpu_specs[i], 50 + i);
        struct serve_model *processor = test_gpu_load(&on_processor);
        users[i].n_runs = WEIR_TEST_TIMES(60, 15);
        users[i].model = test_gpu_load(&on_gpu);
        for (uint64_t k = 0; k < 3; k++) {
            users[i].in[k] = test_gpu_input(processor, 1 + 4 * (int64_t)k, 60 + k);
            users[i].expected[k] = test_gpu_run(processor, users[i].in[k]);
        }
        serve_model_unload(processor);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&users[i].thread, NULL, test_gpu_use, &users[i]), 0);
    }
    /* Meanwhile others come and go: the last net was loaded for a test of its own file. */
    for (int i = 0; i < 3; i++) {
        const struct executor_options on_gpu = test_gpu_options(EXECUTOR_GPU, 2);
        serve_model_unload(test_gpu_load(&on_gpu));
    }
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(users[i].thread, NULL);
        ck_assert_msg(users[i].distance <= test_gpu_tolerance, "model %d differs by %g", i,
                      users[i].distance);
        serve_model_unload(users[i].model);
        for (int k = 0; k < 3; k++) {
            weir_tensor_release(users[i].in[k]);
            weir_tensor_release(users[i].expected[k]);
        }
    }
}

END_TEST

START_TEST(memory_beyond_a_bound_is_refused_until_there_is_room)
{
    struct weir_error err;
    struct serve_model *first, *second;
    char text[32];
    struct executor_options options = test_gpu_options(EXECUTOR_GPU, 8);
    test_model_save(test_gpu_path, TEST_RESIDUAL, 71);
    options.memory_max_bytes = 2000;
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &first, &err), WEIR_ERR_LIMIT);
    ck_assert_msg(strstr(err.message, "on the GPU") && strstr(err.message, "2000"), "%s",
                  err.message);
    options.memory_max_bytes = 0;
    first = test_gpu_load(&options);
    /* A share of one model and a half: the second must wait for the first to go. */
    (void)snprintf(text, sizeof text, "%zu", gpu_share_taken() * 3 / 2);
    setenv("WEIR_DEVICE_MEMORY", text, 1);
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &second, &err), WEIR_ERR_LIMIT);
    serve_model_unload(first);
    serve_model_unload(test_gpu_load(&options));
    setenv("WEIR_DEVICE_MEMORY", "4 GB", 1);
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &second, &err),
                     WEIR_ERR_INVALID);
    unsetenv("WEIR_DEVICE_MEMORY");
}

END_TEST

#define TEST_GPU_CASES(tcase)                                                                      \
    tcase_add_test(tcase, a_model_on_a_gpu_gives_the_processors_numbers_at_any_batch);             \
    tcase_add_test(tcase, other_precisions_round_and_no_more);                                     \
    tcase_add_test(tcase, models_that_one_thread_loads_are_run_by_others_at_the_same_time);        \
    tcase_add_test(tcase, memory_beyond_a_bound_is_refused_until_there_is_room)

#endif
