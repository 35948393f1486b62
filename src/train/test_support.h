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

struct test_bed {
    char dir[64], data[96], model[96], output[96], checkpoints[96];
    struct weir_arena arena;
    struct test_trace *trace;
    struct weir_error err;
};

static struct test_bed bed;

/** A convolution, a norm or none, dropout or none: what a model file can say. */
static inline void bed_write_model(const char *norm, const char *dropout)
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
    ck_assert_int_eq(weir_file_write_atomic(bed.model, text, strlen(text), 0644, NULL), WEIR_OK);
}

#define WITH_NORM    "  - {name: bn, type: batch_norm}\n"
#define WITH_DROPOUT "  - {name: drop, type: dropout, rate: 0.25}\n"

/** One picture: a bright bar whose place is the class, and noise. */
static inline void bed_write_picture(int i_class, int i_picture)
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
    (void)snprintf(path, sizeof path, "%s/class-%d/%02d.pgm", bed.data, i_class, i_picture);
    ck_assert_int_eq(weir_file_write_atomic(path, buf.data, buf.len, 0644, NULL), WEIR_OK);
    weir_buf_fini(&buf);
    weir_image_fini(&image);
}

static inline void bed_make(void)
{
    memset(&bed, 0, sizeof bed);
    weir_arena_init(&bed.arena, 0);
    (void)snprintf(bed.dir, sizeof bed.dir, "/tmp/weir-train-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(bed.dir));
    (void)snprintf(bed.data, sizeof bed.data, "%s/data", bed.dir);
    (void)snprintf(bed.model, sizeof bed.model, "%s/model.yaml", bed.dir);
    (void)snprintf(bed.output, sizeof bed.output, "%s/out.safetensors", bed.dir);
    (void)snprintf(bed.checkpoints, sizeof bed.checkpoints, "%s/checkpoints", bed.dir);
    for (int c = 0; c < TEST_CLASSES; c++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/class-%d", bed.data, c);
        ck_assert_int_eq(weir_dir_make(path, 0755, NULL), WEIR_OK);
        for (int i = 0; i < TEST_PER_CLASS; i++) {
            bed_write_picture(c, i);
        }
    }
    bed_write_model("", "");
    bed.trace =
        mmap(NULL, sizeof *bed.trace, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bed.trace, MAP_FAILED);
    /* Progress goes where a test can read it, and not between the lines of the report. */
    char progress[160];
    (void)snprintf(progress, sizeof progress, "%s/progress", bed.dir);
    (void)fflush(stdout);
    ck_assert_ptr_nonnull(freopen(progress, "we", stdout));
}

static inline void bed_drop(void)
{
    weir_arena_fini(&bed.arena);
    (void)munmap(bed.trace, sizeof *bed.trace);
    ck_assert_int_eq(weir_dir_remove(bed.dir, NULL), WEIR_OK);
}

/** 6 steps an epoch, checkpoint at each step. */
static inline struct weir_train_config bed_config(int workers, int servers, int epochs)
{
    struct weir_train_config config;
    weir_training_defaults(&config, &bed.arena);
    config.model = bed.model;
    config.data = bed.data;
    config.output = bed.output;
    config.checkpoint_dir = bed.checkpoints;
    config.checkpoint_every_s = 0;
    config.backend = "reference";
    config.threads = 1;
    config.workers = workers;
    config.parameter_servers = servers;
    config.epochs = epochs;
    config.batch_size = 16;
    config.format = "json";
    return config;
}

static inline void bed_trace_step(void *context, const struct weir_train_step *step)
{
    (void)context;
    struct test_trace *trace = bed.trace;
    if (step->rank == 0 && step->step < TEST_STEPS_MAX && step->attempt < 16) {
        if (trace->n_attempts <= step->attempt) {
            trace->n_attempts = step->attempt + 1;
            trace->first_steps[step->attempt] = (int)step->step;
        }
        trace->losses[step->step] = step->loss;
    }
}

static const struct weir_train_hooks bed_hooks = {.on_step = bed_trace_step};

/** Begin again: no checkpoints, no trace. */
static inline void bed_clear(void)
{
    memset(bed.trace, 0, sizeof *bed.trace);
    ck_assert_int_eq(weir_dir_remove(bed.checkpoints, NULL), WEIR_OK);
}

static inline void bed_train(const struct weir_train_config *config,
                             const struct weir_train_hooks *hooks)
{
    weir_status status = weir_train_launch(config, hooks, &bed.err);
    ck_assert_msg(status == WEIR_OK, "%s", bed.err.message);
}

static inline char *bed_read(const char *path, size_t *out_len)
{
    char *bytes = NULL;
    weir_status status = weir_file_read(path, 64 << 20, &bed.arena, &bytes, out_len, &bed.err);
    ck_assert_msg(status == WEIR_OK, "%s", bed.err.message);
    return bytes;
}

/** The model file is this one, byte by byte. */
static inline void bed_expect_output(const char *expected, size_t expected_len)
{
    size_t len = 0;
    const char *bytes = bed_read(bed.output, &len);
    ck_assert_uint_eq(len, expected_len);
    ck_assert_mem_eq(bytes, expected, len);
}

/** The trained weights, in the arena. */
static inline const float *bed_weights(size_t *out_n)
{
    struct weir_net *net = NULL;
    struct weir_net_file *file = NULL;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    weir_status status = weir_net_file_load(bed.output, &config, &net, &file, &bed.err);
    ck_assert_msg(status == WEIR_OK, "%s", bed.err.message);
    const float *weights = weir_net_weights(net, out_n);
    weights =
        (const float *)(void *)weir_arena_memdup(&bed.arena, weights, *out_n * sizeof *weights);
    weir_net_destroy(net);
    weir_net_file_close(file);
    return weights;
}

#endif
