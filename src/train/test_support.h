/** For the tests of train: a folder with a tiny data set, and trainings in it. */
#ifndef WEIR_TRAIN_TEST_SUPPORT_H
#define WEIR_TRAIN_TEST_SUPPORT_H

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "data/image.h"
#include "nn/net_file.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEST_CLASSES   4
#define TEST_PER_CLASS 24
#define TEST_SIDE      12
#define TEST_STEPS_MAX 256

/** Written by ranks, read by the test: shared memory. */
struct test_trace {
    double losses[TEST_STEPS_MAX]; /**< As rank 0 saw them. */
    int n_attempts;                /**< Highest attempt seen, plus one. */
    int first_steps[16];           /**< First step of each attempt, as rank 0 saw it. */
};

struct fixture {
    char dir[64], data[96], model[96], output[96], checkpoints[96];
    struct weir_arena arena;
    struct test_trace *trace;
    struct weir_error err;
};

static struct fixture fixture;

/** A convolution, a norm or none, dropout or none: what a model file can say. */
static inline void fixture_write_model(const char *norm, const char *dropout)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "input: [1, %d, %d]\nlayers:\n"
                   "  - {name: conv, type: conv, k: 4, kernel: 3, pad: 1}\n%s"
                   "  - {name: relu, type: relu}\n"
                   "  - {name: pool, type: max_pool, kernel: 2}\n"
                   "  - {name: fc1, type: linear, k: 24}\n"
                   "  - {name: relu1, type: relu}\n%s"
                   "  - {name: fc2, type: linear, k: classes}\n"
                   "loss: {type: softmax}\n",
                   TEST_SIDE, TEST_SIDE, norm, dropout);
    ck_assert_int_eq(weir_file_write_atomic(fixture.model, text, strlen(text), 0644, NULL),
                     WEIR_OK);
}

#define WITH_NORM    "  - {name: bn, type: batch_norm}\n"
#define WITH_DROPOUT "  - {name: drop, type: dropout, rate: 0.25}\n"

/** One picture: a bright bar whose place is the class, and noise. */
static inline void fixture_write_picture(int i_class, int i_picture)
{
    struct weir_image image = {0};
    struct weir_rng rng;
    struct weir_buf buf;
    char path[160];
    ck_assert_int_eq(weir_image_init(&image, TEST_SIDE, TEST_SIDE, 1, NULL), WEIR_OK);
    weir_rng_init(&rng, 77, (uint64_t)(i_class * 1000 + i_picture));
    for (int y = 0; y < TEST_SIDE; y++) {
        for (int x = 0; x < TEST_SIDE; x++) {
            int bright = x / 3 == i_class ? 60 : 0;
            image.pixels[y * TEST_SIDE + x] = (uint8_t)(bright + (int)weir_rng_below(&rng, 150));
        }
    }
    weir_buf_init(&buf, 1 << 16);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_PNM, 0, &buf, NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/class-%d/%02d.pgm", fixture.data, i_class, i_picture);
    ck_assert_int_eq(weir_file_write_atomic(path, buf.data, buf.len, 0644, NULL), WEIR_OK);
    weir_buf_fini(&buf);
    weir_image_fini(&image);
}

static inline void fixture_make(void)
{
    memset(&fixture, 0, sizeof fixture);
    weir_arena_init(&fixture.arena, 0);
    (void)snprintf(fixture.dir, sizeof fixture.dir, "/tmp/weir-train-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fixture.dir));
    (void)snprintf(fixture.data, sizeof fixture.data, "%s/data", fixture.dir);
    (void)snprintf(fixture.model, sizeof fixture.model, "%s/model.yaml", fixture.dir);
    (void)snprintf(fixture.output, sizeof fixture.output, "%s/out.safetensors", fixture.dir);
    (void)snprintf(fixture.checkpoints, sizeof fixture.checkpoints, "%s/checkpoints", fixture.dir);
    for (int c = 0; c < TEST_CLASSES; c++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/class-%d", fixture.data, c);
        ck_assert_int_eq(weir_dir_make(path, 0755, NULL), WEIR_OK);
        for (int i = 0; i < TEST_PER_CLASS; i++) {
            fixture_write_picture(c, i);
        }
    }
    fixture_write_model("", "");
    fixture.trace = mmap(NULL, sizeof *fixture.trace, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(fixture.trace, MAP_FAILED);
    /* Progress goes where a test can read it, and not between the lines of the report. */
    char progress[160];
    (void)snprintf(progress, sizeof progress, "%s/progress", fixture.dir);
    (void)fflush(stdout);
    ck_assert_ptr_nonnull(freopen(progress, "we", stdout));
}

static inline void fixture_drop(void)
{
    weir_arena_fini(&fixture.arena);
    (void)munmap(fixture.trace, sizeof *fixture.trace);
    ck_assert_int_eq(weir_dir_remove(fixture.dir, NULL), WEIR_OK);
}

/** 6 steps an epoch, checkpoint at each step. */
static inline struct weir_train_config fixture_config(int workers, int servers, int epochs)
{
    struct weir_train_config config;
    weir_training_defaults(&config, &fixture.arena);
    config.model.name = fixture.model;
    config.data.path = fixture.data;
    config.output.file = fixture.output;
    config.checkpoint.dir = fixture.checkpoints;
    config.checkpoint.every_s = 0;
    config.model.backend = "reference";
    config.group.threads = 1;
    config.group.workers = workers;
    config.group.parameter_servers = servers;
    config.loop.epochs = epochs;
    config.loop.batch_size = 16;
    config.output.format = "json";
    return config;
}

static inline void fixture_trace_step(void *context, const struct weir_train_step *step)
{
    (void)context;
    struct test_trace *trace = fixture.trace;
    if (step->rank == 0 && step->step < TEST_STEPS_MAX && step->attempt < 16) {
        if (trace->n_attempts <= step->attempt) {
            trace->n_attempts = step->attempt + 1;
            trace->first_steps[step->attempt] = (int)step->step;
        }
        trace->losses[step->step] = step->loss;
    }
}

static const struct weir_train_hooks fixture_hooks = {.on_step = fixture_trace_step};

/** Begin again: no checkpoints, no trace. */
static inline void fixture_clear(void)
{
    memset(fixture.trace, 0, sizeof *fixture.trace);
    ck_assert_int_eq(weir_dir_remove(fixture.checkpoints, NULL), WEIR_OK);
}

static inline void fixture_train(const struct weir_train_config *config,
                                 const struct weir_train_hooks *hooks)
{
    weir_status status = weir_train_launch(config, hooks, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
}

static inline char *fixture_read(const char *path, size_t *out_len)
{
    char *bytes = NULL;
    weir_status status =
        weir_file_read(path, 64 << 20, &fixture.arena, &bytes, out_len, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return bytes;
}

/** The model file is this one, byte by byte. */
static inline void fixture_expect_output(const char *expected, size_t expected_len)
{
    size_t len = 0;
    const char *bytes = fixture_read(fixture.output, &len);
    ck_assert_uint_eq(len, expected_len);
    ck_assert_mem_eq(bytes, expected, len);
}

/** The trained weights, in the arena. */
static inline const float *fixture_weights(size_t *out_n)
{
    struct weir_net *net = NULL;
    struct weir_net_file *file = NULL;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    weir_status status = weir_net_file_load(fixture.output, &config, &net, &file, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    const float *weights = weir_net_weights(net, out_n);
    weights =
        (const float *)(void *)weir_arena_memdup(&fixture.arena, weights, *out_n * sizeof *weights);
    weir_net_destroy(net);
    weir_net_file_close(file);
    return weights;
}

#endif
