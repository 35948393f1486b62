/*
 * Training by several workers against training by one, and both against a loop of a few lines that
 * uses nn and data directly.
 */
#include "train/test_support.h"

#include "nn/model_file.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"
#include "train/task.h"

#include <math.h>

#define N_LOSSES 50
#define N_EPOCHS 9 /* of 6 steps */

static const double *losses_of(int workers, int servers)
{
    struct weir_train_config config = fixture_config(workers, servers, N_EPOCHS);
    config.checkpoint.every_s = 1000;
    fixture_clear();
    fixture_train(&config, &fixture_hooks);
    return (const double *)(void *)weir_arena_memdup(&fixture.arena, fixture.trace->losses,
                                                     N_LOSSES * sizeof(double));
}

/** What training is, without train's own loop. */
static void serial_losses(double out[N_LOSSES])
{
    struct weir_train_config config = fixture_config(1, 0, N_EPOCHS);
    struct train_task task;
    struct weir_net_input input;
    struct weir_net *net = NULL;
    struct weir_optimizer *optimizer = NULL;
    struct weir_loader *loader = NULL;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_int_eq(train_measure_input(&task, &input, &fixture.err), WEIR_OK);
    const struct weir_net_config shape = {.batch = 16,
                                          .n_gradient_parts = 2,
                                          .n_threads = 1,
                                          .is_training = true,
                                          .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_create(task.graph, &shape, &net, &fixture.err), WEIR_OK);
    weir_net_init_weights(net, 1);
    size_t n_params = 0, n_gradients = 0;
    const struct weir_param *params = weir_net_params(net, &n_params);
    float *gradients = weir_net_gradients(net, &n_gradients);
    const struct weir_optimizer_config sgd = {
        .name = "sgd", .momentum = 0.9, .weight_decay = 0.0005};
    ck_assert_int_eq(weir_optimizer_create(&sgd, params, n_params, &optimizer, &fixture.err),
                     WEIR_OK);
    const struct weir_loader_config loading = {.input = train_data_input(&input),
                                               .batch = 16,
                                               .seed = 1,
                                               .n_epochs = N_EPOCHS,
                                               .shuffle = true,
                                               .tail = WEIR_TAIL_DROP};
    ck_assert_int_eq(weir_loader_create(task.dataset, &loading, &loader, &fixture.err), WEIR_OK);
    for (uint64_t step = 0; step < N_LOSSES; step++) {
        struct weir_batch batch;
        struct weir_step_result result;
        ck_assert_int_eq(weir_loader_next(loader, &batch, &fixture.err), WEIR_OK);
        memcpy(weir_net_input(net), batch.images, 16UL * TEST_SIDE * TEST_SIDE * sizeof(float));
        memcpy(weir_net_labels(net), batch.labels, 16 * sizeof(int32_t));
        ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, &result), WEIR_OK);
        out[step] = result.loss;
        /* Cosine without warm-up, worked from its formula: 9 epochs of 6 steps from 0.05. */
        double rate = 0.05 * (1 + cos(M_PI * (double)step / (N_EPOCHS * 6))) / 2;
        weir_optimizer_update(optimizer, weir_net_weights(net, NULL), gradients, 0, n_gradients,
                              rate, step);
        weir_net_weights_changed(net);
    }
    weir_loader_destroy(loader);
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    train_task_close(&task);
}

START_TEST(one_worker_does_what_a_plain_loop_does)
{
    double expected[N_LOSSES];
    serial_losses(expected);
    const double *losses = losses_of(1, 0);
    for (int i = 0; i < N_LOSSES; i++) {
        ck_assert_msg(fabs(losses[i] - expected[i]) < 1e-9, "step %d: %.12g, not %.12g", i,
                      losses[i], expected[i]);
    }
    ck_assert_double_lt(losses[N_LOSSES - 1], losses[0] / 2);
}

END_TEST

START_TEST(more_workers_see_the_losses_of_one)
{
    fixture_write_model("", WITH_DROPOUT);
    const double *alone = losses_of(1, 0);
    for (int workers = 2; workers <= 3; workers++) { /* 16 pictures: 8 + 8, and 5 + 5 + 6 */
        const double *together = losses_of(workers, 0);
        for (int i = 0; i < N_LOSSES; i++) {
            ck_assert_msg(fabs(alone[i] - together[i]) < 1e-4, "%d workers, step %d: %g, alone %g",
                          workers, i, together[i], alone[i]);
        }
    }
}

END_TEST

START_TEST(one_worker_has_the_bits_of_as_many_workers_as_it_makes_parts)
{
    static const char *const names[] = {"reference", "onednn", "reference"};
    static const char *const precisions[] = {"f32", "f32", "bf16"};
    fixture_write_model("", WITH_DROPOUT);
    for (int i = 0; i < 3; i++) {
        for (int n_workers = 2; n_workers <= 4; n_workers *= 2) {
            struct weir_train_config config = fixture_config(1, 0, 3);
            size_t n = 0;
            config.model.backend = (char *)names[i];
            config.model.precision = (char *)precisions[i];
            config.loop.gradient_parts = n_workers;
            fixture_clear();
            fixture_train(&config, NULL);
            const float *alone = fixture_weights(&n);
            config.group.workers = n_workers;
            fixture_clear();
            fixture_train(&config, NULL);
            ck_assert_msg(memcmp(alone, fixture_weights(&n), n * sizeof *alone) == 0,
                          "%s, %d workers", names[i], n_workers);
        }
    }
}

END_TEST

/* From FIRST_NORM on norms are needed. */
enum { FIRST_NORM = 4 };

static const struct optimizer_case {
    const char *optimizer;
    double clip_norm;
} optimizers[] = {{"sgd:nesterov=1", 0}, {"rmsprop", 0}, {"adam", 0},   {"adamw", 0}, {"lars", 0},
                  {"lamb", 0},           {"sgd", 0.1},   {"lars", 0.1}, {"lamb", 0.1}};

START_TEST(parameter_servers_give_the_weights_of_an_all_reduce)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(optimizers); i += WEIR_TEST_TIMES(1, 2)) {
        struct weir_train_config config = fixture_config(2, 0, 2);
        size_t n = 0;
        config.optimizer.name = (char *)optimizers[i].optimizer;
        config.optimizer.clip_norm = optimizers[i].clip_norm;
        config.checkpoint.every_s = 1000;
        fixture_clear();
        fixture_train(&config, NULL);
        const float *reduced = fixture_weights(&n);
        for (int servers = 1; servers <= (i < FIRST_NORM ? 2 : 3); servers++) {
            config.group.parameter_servers = servers;
            config.exchange.transport = (char *)(servers == 3 ? "tcp" : "shm");
            fixture_clear();
            fixture_train(&config, NULL);
            const float *by_servers = fixture_weights(&n);
            ck_assert_msg(memcmp(reduced, by_servers, n * sizeof *by_servers) == 0,
                          "%s, %d servers", optimizers[i].optimizer, servers);
        }
    }
}

END_TEST

START_TEST(workers_that_share_the_update_have_the_weights_and_checkpoints_of_an_all_reduce)
{
    static const char *const last = "step-000000000012.safetensors";
    char path[160];
    for (size_t i = 0; i < 2 * WEIR_ARRAY_LEN(optimizers); i += WEIR_TEST_TIMES(1, 3)) {
        if (i < 2 * FIRST_NORM && i % 2 != i / 2 % 2) {
            continue; /* by one transport is enough */
        }
        struct weir_train_config config = fixture_config(2 + (int)(i % 2), 0, 2);
        size_t n = 0, n_kept = 0, n_again = 0;
        config.optimizer.name = (char *)optimizers[i / 2].optimizer;
        config.optimizer.clip_norm = optimizers[i / 2].clip_norm;
        config.exchange.transport = (char *)"tcp";
        config.checkpoint.every_s = 1000;
        fixture_clear();
        fixture_train(&config, NULL);
        const float *reduced = fixture_weights(&n);
        (void)snprintf(path, sizeof path, "%s/%s", fixture.checkpoints, last);
        const char *kept = fixture_read(path, &n_kept);
        config.exchange.transport = (char *)(i % 2 == 0 ? "shm" : "tcp");
        /* In shared memory they share it unasked, where no norms are needed. */
        config.exchange.shard_update = i % 2 != 0 || i >= 2 * FIRST_NORM;
        fixture_clear();
        fixture_train(&config, NULL);
        ck_assert_msg(memcmp(reduced, fixture_weights(&n), n * sizeof *reduced) == 0, "%s",
                      config.optimizer.name);
        const char *again = fixture_read(path, &n_again);
        ck_assert_uint_eq(n_kept, n_again);
        ck_assert_msg(memcmp(kept, again, n_kept) == 0, "%s: another checkpoint",
                      config.optimizer.name);
    }
}

END_TEST

/* More weights than one range of a shared update: norms of what several ranges cut. */
START_TEST(shared_ranges_that_cut_tensors_have_the_norms_of_one_worker)
{
    static const char text[] = "input: [1, 12, 12]\nlayers:\n"
                               "  - {name: fc1, type: linear, k: 1000}\n"
                               "  - {name: relu1, type: relu}\n"
                               "  - {name: fc2, type: linear, k: 1300}\n"
                               "  - {name: relu2, type: relu}\n"
                               "  - {name: fc3, type: linear, k: classes}\n"
                               "loss: {type: softmax}\n";
    ck_assert_int_eq(weir_file_write_atomic(fixture.model, text, sizeof text - 1, 0644, NULL),
                     WEIR_OK);
    struct weir_train_config config = fixture_config(1, 0, 1);
    size_t n = 0;
    config.model.backend = "onednn";
    config.optimizer.name = "lamb";
    config.optimizer.clip_norm = 0.1;
    config.loop.gradient_parts = 2;
    config.checkpoint.every_s = 1000;
    fixture_train(&config, NULL);
    const float *alone = fixture_weights(&n);
    config.group.workers = 2;
    config.exchange.shard_update = true;
    fixture_clear();
    fixture_train(&config, NULL);
    ck_assert_mem_eq(alone, fixture_weights(&n), n * sizeof *alone);
}

END_TEST

START_TEST(workers_that_may_be_steps_apart_learn_too)
{
    for (int i = 0; i < 3; i++) {
        struct weir_train_config config = fixture_config(3, 1 + i % 2, N_EPOCHS);
        config.exchange.staleness = i < 2 ? 1 : 1000; /* as good as none */
        config.exchange.transport = (char *)(i == 1 ? "tcp" : "shm");
        config.optimizer.momentum = 0.5;
        config.checkpoint.every_s = 1000;
        fixture_clear();
        fixture_train(&config, &fixture_hooks);
        double first = 0, last = 0;
        for (int k = 0; k < 6; k++) { /* an epoch */
            first += fixture.trace->losses[k] / 6;
            last += fixture.trace->losses[6 * (N_EPOCHS - 1) + k] / 6;
        }
        ck_assert_msg(last < first / 2, "%d: from %g to %g", i, first, last);
    }
}

END_TEST

START_TEST(what_cannot_be_steps_apart_is_refused)
{
    struct weir_train_config config = fixture_config(2, 0, 1);
    config.exchange.staleness = 1;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    config = fixture_config(2, 1, 1);
    config.exchange.staleness = 1;
    config.optimizer.clip_norm = 1;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "clip_norm"));
}

END_TEST

START_TEST(what_cannot_share_the_update_is_refused)
{
    struct weir_train_config config = fixture_config(2, 1, 1);
    config.exchange.shard_update = true;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    config = fixture_config(2, 0, 1);
    config.exchange.shard_update = config.group.elastic = true;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "shard_update"));
}

END_TEST

static void check_wires(int n_servers)
{
    static const char *const wires[] = {"f32", "bf16", "fp16"};
    double losses[WEIR_ARRAY_LEN(wires)];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wires); i++) {
        struct weir_train_config config = fixture_config(2, n_servers, N_EPOCHS);
        config.exchange.transport = (char *)"tcp";
        config.exchange.wire = (char *)wires[i];
        config.checkpoint.every_s = 1000;
        fixture_clear();
        fixture_train(&config, &fixture_hooks);
        losses[i] = 0;
        for (int k = N_LOSSES - 6; k < N_LOSSES; k++) { /* an epoch */
            losses[i] += fixture.trace->losses[k] / 6;
        }
    }
    /* The sums are sent as they say: the losses differ, if little. */
    for (size_t i = 1; i < WEIR_ARRAY_LEN(wires); i++) {
        ck_assert_msg(losses[i] != losses[0], "%s gives %g as f32", wires[i], losses[i]);
        ck_assert_msg(fabs(losses[i] - losses[0]) < 0.02 * losses[0] + 0.002, "%s: %g, f32: %g",
                      wires[i], losses[i], losses[0]);
    }
}

START_TEST(gradients_sent_as_16_bits_teach_the_same_up_to_rounding)
{
    check_wires(0);
    check_wires(1);
    struct weir_train_config wrong = fixture_config(2, 0, 1);
    wrong.exchange.wire = (char *)"f8";
    ck_assert_int_eq(weir_train_config_check(&wrong, &fixture.err), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_picture_that_is_damaged_is_left_out_or_ends_the_training)
{
    char path[160];
    struct weir_train_config config = fixture_config(2, 0, 1);
    (void)snprintf(path, sizeof path, "%s/class-1/03.pgm", fixture.data);
    ck_assert_int_eq(truncate(path, 40), 0);
    fixture_train(&config, NULL);
    config.data.on_damage = "fatal";
    config.group.max_restarts = 0;
    fixture_clear();
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_CORRUPT);
    ck_assert_msg(strstr(fixture.err.message, "class-1/03.pgm") != NULL, "%s", fixture.err.message);
}

END_TEST

START_TEST(a_loss_that_is_no_number_ends_the_training_with_advice)
{
    for (int servers = 0; servers < 2; servers++) {
        struct weir_train_config config = fixture_config(2, servers, 3);
        config.optimizer.learning_rate = 1e6;
        fixture_clear();
        ck_assert_int_eq(weir_train_launch(&config, &fixture_hooks, &fixture.err),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(fixture.err.message, "learning_rate") != NULL, "%s",
                      fixture.err.message);
        ck_assert_int_eq(fixture.trace->n_attempts, 1); /* trying again would not help */
        config.checkpoint.every_s = 1000; /* and no hook: weights are under way when it ends */
        ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_INVALID);
        ck_assert_msg(strstr(fixture.err.message, "learning_rate") != NULL, "%s",
                      fixture.err.message);
    }
}

END_TEST

START_TEST(an_embedding_is_trained_and_knows_its_scores)
{
    struct weir_train_config config = fixture_config(2, 0, 2);
    struct weir_net_file *file = NULL;
    struct weir_net *net = NULL;
    const struct weir_net_config inference = {.batch = 1, .n_threads = 1};
    config.model.name = "face-embed";
    config.model.input = "[1,32,24]";
    config.model.backend = "onednn";
    config.data.mirror_classes = true; /* trained on eight classes, of which the file names four */
    fixture_train(&config, &fixture_hooks);
    ck_assert_int_eq(weir_net_file_load(fixture.output, &inference, &net, &file, &fixture.err),
                     WEIR_OK);
    weir_net_destroy(net);
    const struct weir_net_file_info *info = weir_net_file_info(file);
    ck_assert_ptr_nonnull(strstr(info->baseline, "\"score\""));
    ck_assert_ptr_nonnull(strstr(info->baseline, "\"brightness\""));
    ck_assert_uint_eq(info->n_labels, TEST_CLASSES);
    ck_assert_str_eq(info->labels[2], "class-2");
    weir_net_file_close(file);
}

END_TEST

START_TEST(labels_of_an_embedding_are_not_smoothed)
{
    struct weir_train_config config = fixture_config(1, 0, 1);
    config.model.name = "face-embed";
    config.model.input = "1,32,24";
    config.optimizer.label_smoothing = 0.1;
    config.group.max_restarts = 0;
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(fixture.err.message, "label_smoothing") != NULL, "%s",
                  fixture.err.message);
}

END_TEST

WEIR_TEST_MAIN_WITH("parallel", fixture_make, fixture_drop, one_worker_does_what_a_plain_loop_does,
                    more_workers_see_the_losses_of_one,
                    one_worker_has_the_bits_of_as_many_workers_as_it_makes_parts,
                    parameter_servers_give_the_weights_of_an_all_reduce,
                    workers_that_share_the_update_have_the_weights_and_checkpoints_of_an_all_reduce,
                    shared_ranges_that_cut_tensors_have_the_norms_of_one_worker,
                    what_cannot_share_the_update_is_refused,
                    workers_that_may_be_steps_apart_learn_too,
                    what_cannot_be_steps_apart_is_refused,
                    gradients_sent_as_16_bits_teach_the_same_up_to_rounding,
                    a_picture_that_is_damaged_is_left_out_or_ends_the_training,
                    a_loss_that_is_no_number_ends_the_training_with_advice,
                    an_embedding_is_trained_and_knows_its_scores,
                    labels_of_an_embedding_are_not_smoothed)
