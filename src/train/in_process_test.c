/* Oracles: the launcher's training, plain forward passes, and the options' order of precedence. */
#include "train/in_process.h"

#include "train/embed.h"
#include "train/recipe.h"
#include "train/test_support.h"

#include <math.h>

START_TEST(a_training_alone_is_the_launchers_bit_for_bit)
{
    struct train_task task;
    struct train_in_process_result result;
    size_t n = 0, n_in_process = 0;
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    struct weir_train_config config = fixture_config(1, 0, 2);
    fixture_train(&config, NULL);
    const float *launched = fixture_weights(&n);
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    weir_status status = train_in_process(&task, &result, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    const float *weights = weir_net_weights(result.net, &n_in_process);
    ck_assert_uint_eq(n, n_in_process);
    ck_assert_mem_eq(weights, launched, n * sizeof *weights);
    weir_net_destroy(result.net);
    train_task_close(&task);
}

END_TEST

START_TEST(the_launcher_keeps_its_temporary_folder_where_the_environment_says)
{
    char tmp[160];
    struct weir_train_config config = fixture_config(1, 0, 1);
    (void)snprintf(tmp, sizeof tmp, "%s/tmp", fixture.dir);
    ck_assert_int_eq(setenv("TMPDIR", tmp, 1), 0);
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, tmp));
    ck_assert_int_eq(weir_dir_make(tmp, 0700, NULL), WEIR_OK);
    fixture_train(&config, NULL);
    ck_assert_int_eq(rmdir(tmp), 0); /* nothing is left in it */
    ck_assert_int_eq(unsetenv("TMPDIR"), 0);
}

END_TEST

/* ---- embeddings ----------------------------------------------------------------------------- */

enum { DIM = 12, LEN = TEST_SIDE * TEST_SIDE };

static void write_embedding(void)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "input: [1, %d, %d]\nlayers:\n"
                   "  - {name: conv, type: conv, k: 4, kernel: 3, stride: 2, pad: 1}\n"
                   "  - {name: prelu, type: prelu}\n"
                   "  - {name: fc, type: linear, k: %d}\n"
                   "loss: {type: margin}\n",
                   TEST_SIDE, TEST_SIDE, DIM);
    ck_assert_int_eq(weir_file_write_atomic(fixture.model, text, strlen(text), 0644, NULL),
                     WEIR_OK);
}

static void mirror(const float *from, float *to)
{
    for (int i = 0; i < LEN; i++) {
        to[i] = from[i / TEST_SIDE * TEST_SIDE + TEST_SIDE - 1 - i % TEST_SIDE];
    }
}

START_TEST(a_vector_is_the_sum_of_both_views_at_length_one)
{
    float tensors[3 * LEN], vectors[3 * DIM], plain[2 * DIM];
    struct train_task task;
    struct weir_net *net = NULL;
    write_embedding();
    struct weir_train_config config = fixture_config(1, 0, 1);
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    const struct weir_net_config net_config = {
        .batch = 3, .n_threads = 1, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_create(task.graph, &net_config, &net, &fixture.err), WEIR_OK);
    weir_net_init_weights(net, 3);
    const struct weir_net_input input = {.shape = {1, TEST_SIDE, TEST_SIDE}, .std = {1}};
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 1);
    for (int i = 0; i < 2 * LEN; i++) {
        tensors[i] = (float)weir_rng_normal(&rng);
    }
    mirror(tensors, tensors + 2 * LEN); /* the third picture is the first one's mirror image */
    ck_assert_int_eq(train_embed_batch(net, &input, tensors, 3, DIM, vectors), WEIR_OK);
    ck_assert_mem_eq(vectors, vectors + 2 * DIM, DIM * sizeof *vectors);
    /* Pictures 0 and 2 as the net itself sees them. */
    memcpy(weir_net_input(net), tensors, sizeof tensors);
    ck_assert_int_eq(weir_net_forward(net, 3, NULL), WEIR_OK);
    memcpy(plain, weir_net_output(net), DIM * sizeof *plain);
    memcpy(plain + DIM, weir_net_output(net) + 2 * DIM, DIM * sizeof *plain);
    double squares = 0;
    for (int i = 0; i < DIM; i++) {
        double sum = (double)plain[i] + (double)plain[DIM + i];
        squares += sum * sum;
    }
    for (int i = 0; i < DIM; i++) {
        double sum = (double)plain[i] + (double)plain[DIM + i];
        ck_assert_double_eq_tol((double)vectors[i], sum / sqrt(squares), 1e-5);
    }
    weir_net_destroy(net);
    train_task_close(&task);
}

END_TEST

START_TEST(mirrored_people_are_trained_on_and_not_named_in_the_model)
{
    struct weir_net_file *file = NULL;
    struct train_task task;
    write_embedding();
    struct weir_train_config config = fixture_config(1, 0, 1);
    config.data.mirror_classes = true;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_graph_n_classes(task.graph), 2 * TEST_CLASSES);
    ck_assert_uint_eq(task.order.n_samples, (uint64_t)(2 * TEST_CLASSES * TEST_PER_CLASS));
    train_task_close(&task);
    fixture_train(&config, NULL);
    weir_status status = weir_net_file_open(fixture.output, &file, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    const struct weir_net_file_info *info = weir_net_file_info(file);
    ck_assert_uint_eq(info->n_labels, TEST_CLASSES);
    ck_assert_str_eq(info->labels[3], "class-3");
    ck_assert_ptr_nonnull(strstr(info->baseline, "score"));
    weir_net_file_close(file);
    size_t n = 0;
    (void)fixture_weights(&n); /* it can be loaded, to serve */
    fixture_write_model("", "");
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "mirror_classes"));
    train_task_close(&task);
}

END_TEST

/* ---- recipes -------------------------------------------------------------------------------- */

static weir_status parse(int argc, const char *const *argv, struct weir_train_config *out)
{
    return weir_train_config_parse(argc, (char *const *)argv, &fixture.arena, out, &fixture.err);
}

START_TEST(a_recipe_stands_between_the_defaults_and_what_the_user_says)
{
    struct weir_train_config config;
    char spec[96];
    const char *const plain[] = {"--model", "face-embed", "--data", "d"};
    ck_assert_int_eq(parse(4, plain, &config), WEIR_OK);
    ck_assert_str_eq(config.optimizer.name, "adam");
    ck_assert_str_eq(config.data.augment, "face");
    ck_assert(config.data.mirror_classes);
    ck_assert_double_eq(config.optimizer.learning_rate, 0.002);
    ck_assert_int_eq(config.loop.steps, 400);
    const char *const lenet[] = {"--model", "lenet", "--data", "d"};
    ck_assert_int_eq(parse(4, lenet, &config), WEIR_OK);
    ck_assert_str_eq(config.optimizer.name, "sgd");
    ck_assert(!config.data.mirror_classes);
    (void)snprintf(spec, sizeof spec, "%s/spec.json", fixture.dir);
    const char *text = "{\"model\":\"face-embed\",\"data\":\"d\",\"optimizer\":\"sgd\","
                       "\"steps\":99,\"mirror_classes\":false}";
    ck_assert_int_eq(weir_file_write_atomic(spec, text, strlen(text), 0644, NULL), WEIR_OK);
    const char *const both[] = {"--spec", spec, "--steps", "50"};
    ck_assert_int_eq(parse(4, both, &config), WEIR_OK);
    ck_assert_str_eq(config.data.augment, "face");
    ck_assert_str_eq(config.optimizer.name, "sgd");
    ck_assert(!config.data.mirror_classes);
    ck_assert_int_eq(config.loop.steps, 50);
    /* The flag's model, and so its recipe, beats the file's. */
    const char *const other[] = {"--spec", spec, "--model", "lenet"};
    ck_assert_int_eq(parse(4, other, &config), WEIR_OK);
    ck_assert_str_eq(config.data.augment, "none");
}

END_TEST

START_TEST(steps_and_batches_follow_the_data)
{
    struct train_task task;
    struct weir_train_config config = fixture_config(1, 0, 0);
    config.loop.batch_size = 0;
    config.loop.steps = 33;
    config.optimizer.warmup_epochs = -1;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(task.order.batch, 64); /* 96 pictures: one step an epoch */
    ck_assert_uint_eq(task.n_epochs, 33);
    ck_assert_uint_eq(task.schedule.n_warmup, 2); /* 1.65 epochs of one step */
    train_task_close(&task);
    config.loop.batch_size = 16;
    config.loop.steps = 0;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(task.n_epochs, 10);
    ck_assert_uint_eq(task.n_steps, 60);
    train_task_close(&task);
    config.loop.epochs = 2;
    config.loop.steps = 1000;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(task.n_steps, 12);
    train_task_close(&task);
}

END_TEST

WEIR_TEST_MAIN_WITH("solo", fixture_make, fixture_drop,
                    a_training_alone_is_the_launchers_bit_for_bit,
                    the_launcher_keeps_its_temporary_folder_where_the_environment_says,
                    a_vector_is_the_sum_of_both_views_at_length_one,
                    mirrored_people_are_trained_on_and_not_named_in_the_model,
                    a_recipe_stands_between_the_defaults_and_what_the_user_says,
                    steps_and_batches_follow_the_data)
