/*
 * Trainings that begin with weights from a file, at a rate at which nothing is learned: what comes
 * out must be what went in.
 */
#include "train/test_support.h"

#include <math.h>

static struct weir_train_config still(int workers, int servers)
{
    struct weir_train_config config = fixture_config(workers, servers, 1);
    config.optimizer.learning_rate = 1e-12;
    config.optimizer.momentum = config.optimizer.weight_decay = 0;
    config.group.max_restarts = 0;
    return config;
}

/** Train for a while, and keep the file beside the place of the next one. */
static const float *train_first(char *path, size_t size, size_t *out_n)
{
    const struct weir_train_config config = fixture_config(1, 0, 2);
    fixture_write_model(WITH_NORM, "");
    fixture_train(&config, NULL);
    const float *weights = fixture_weights(out_n);
    (void)snprintf(path, size, "%s/first.safetensors", fixture.dir);
    ck_assert_int_eq(rename(fixture.output, path), 0);
    return weights;
}

START_TEST(a_training_starts_from_the_weights_it_is_given)
{
    static const int gangs[][2] = {{1, 0}, {2, 0}, {2, 1}};
    char path[160];
    size_t n = 0;
    const float *first = train_first(path, sizeof path, &n);
    for (size_t g = 0; g < WEIR_ARRAY_LEN(gangs); g++) {
        struct weir_train_config config = still(gangs[g][0], gangs[g][1]);
        config.model.weights = path;
        config.loop.seed = 9;
        config.optimizer.average_decay = g == 0 ? 0.5 : 0;
        fixture_clear();
        fixture_train(&config, &fixture_hooks);
        const float *weights = fixture_weights(&(size_t){0});
        size_t n_equal = 0;
        for (size_t i = 0; i < n; i++) {
            n_equal += fabsf(weights[i] - first[i]) < 1e-6f;
        }
        /* the norm's running statistics move on */
        ck_assert_msg(n_equal >= n - 16, "%zu of %zu weights of gang %zu are the file's", n_equal,
                      n, g);
    }
}

END_TEST

START_TEST(a_file_of_another_network_ends_the_training_with_its_name)
{
    char path[160];
    size_t n = 0;
    (void)train_first(path, sizeof path, &n);
    struct weir_train_config config = still(1, 0);
    config.model.weights = path;
    config.model.name = "lenet";
    fixture_clear();
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "first.safetensors"));
}

END_TEST

START_TEST(a_checkpoint_goes_before_the_file)
{
    char path[160];
    size_t n = 0, n_equal = 0;
    const float *first = train_first(path, sizeof path, &n);
    struct weir_train_config config = fixture_config(1, 0, 2);
    config.model.weights = path;
    config.loop.seed = 5;
    fixture_clear();
    fixture_train(&config, NULL); /* leaves its checkpoints */
    const float *second = fixture_weights(&n);
    config.model.weights = "/nowhere";
    fixture_train(&config, NULL);
    ck_assert_mem_eq(second, fixture_weights(&n), n * sizeof *second);
    for (size_t i = 0; i < n; i++) {
        n_equal += second[i] == first[i];
    }
    ck_assert_uint_lt(n_equal, n / 2);
}

END_TEST

WEIR_TEST_MAIN_WITH("weights", fixture_make, fixture_drop,
                    a_training_starts_from_the_weights_it_is_given,
                    a_file_of_another_network_ends_the_training_with_its_name,
                    a_checkpoint_goes_before_the_file)
