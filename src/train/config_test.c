/** What a command line and a spec.json make of a training, and what they are told if it is none. */
#include "train/config.h"

#include "base/file.h"
#include "base/test_main.h"
#include "nn/schedule.h"

#include <string.h>
#include <unistd.h>

static struct weir_arena arena;
static struct weir_error err;
static struct weir_train_config config;
static char spec_path[64];

static void setup(void)
{
    weir_arena_init(&arena, 0);
    (void)snprintf(spec_path, sizeof spec_path, "/tmp/weir-spec-XXXXXX");
    int fd = mkstemp(spec_path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void teardown(void)
{
    (void)unlink(spec_path);
    weir_arena_fini(&arena);
}

static weir_status parse(int argc, const char *const *argv)
{
    return weir_train_config_parse(argc, (char *const *)argv, &arena, &config, &err);
}

#define PARSE(...)                                                                                 \
    parse((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                           \
          (const char *[]){__VA_ARGS__})

static void write_spec(const char *text)
{
    ck_assert_int_eq(weir_file_write_atomic(spec_path, text, strlen(text), 0644, NULL), WEIR_OK);
}

START_TEST(a_command_line_needs_a_model_and_data_only)
{
    ck_assert_int_eq(PARSE("--model", "mlp", "--data", "d"), WEIR_OK);
    ck_assert_int_eq(config.group.workers, 1);
    ck_assert_int_eq(config.group.rank, -1);
    ck_assert(train_is_launcher(&config));
    ck_assert_str_eq(config.output.file, "model.safetensors");
}

END_TEST

START_TEST(a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default)
{
    write_spec("{\"model\":\"mlp\",\"data\":\"d\",\"epochs\":3,\"batch_size\":24,\"seed\":5}");
    ck_assert_int_eq(setenv("WEIR_BATCH_SIZE", "25", 1), 0);
    ck_assert_int_eq(setenv("WEIR_SEED", "6", 1), 0);
    ck_assert_int_eq(PARSE("--spec", spec_path, "--seed", "7"), WEIR_OK);
    ck_assert_int_eq(config.group.workers, 1);
    ck_assert_int_eq(config.loop.epochs, 3);
    ck_assert_int_eq(config.loop.batch_size, 25);
    ck_assert_int_eq(config.loop.seed, 7);
}

END_TEST

START_TEST(a_training_inside_a_job_of_commands_is_its_own_launcher)
{
    ck_assert_int_eq(setenv("WEIR_ROLE", "command", 1), 0);
    ck_assert_int_eq(setenv("WEIR_RANK", "0", 1), 0);
    ck_assert_int_eq(PARSE("--model", "mlp", "--data", "d", "--workers", "2"), WEIR_OK);
    ck_assert(train_is_launcher(&config));
}

END_TEST

START_TEST(the_specification_of_a_task_is_understood)
{
    struct weir_shape shape;
    bool is_given = false;
    write_spec("{\"model\":\"face-embed\",\"data\":\"/d\",\"validation\":null,\"workers\":2,"
               "\"parameter_servers\":1,\"rank\":2,\"role\":\"parameter_server\",\"rendezvous\":"
               "\"file:///r\",\"secret\":\"00\",\"input\":[1,64,56],\"learning_rate\":0.1,"
               "\"checkpoint_dir\":\"/c\",\"server\":\"http://h\",\"token_file\":\"token\",\"run\":"
               "\"r\",\"model_name\":\"faces\",\"dataset\":\"faces\",\"dataset_version\":3,"
               "\"job\":\"j\"}");
    ck_assert_msg(PARSE("--spec", spec_path) == WEIR_OK, "%s", err.message);
    ck_assert(train_is_server(&config) && !train_is_launcher(&config));
    ck_assert_ptr_null(config.data.validation);
    ck_assert_int_eq(train_config_shape(&config, &is_given, &shape, &err), WEIR_OK);
    ck_assert(is_given && shape.c == 1 && shape.h == 64 && shape.w == 56);
}

END_TEST

static const struct refused {
    const char *spec;
    const char *expected; /**< In the message. */
} refused[] = {
    {"{\"data\":\"d\"}", "--model"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"epoch\":1}", "$.epoch"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"epochs\":-1}", "$.epochs"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"epochs\":\"many\"}", "$.epochs"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"augment\":\"warp\"}", "warp"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"input\":[2,4,4]}", "input"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"input\":\"1,28\"}", "input"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"data_kind\":\"csv\"}", "csv"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"on_damage\":\"cry\"}", "cry"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"backend\":\"abacus\"}", "abacus"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"precision\":\"f16\"}", "f16"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"precision\":\"fp16\"}", "needs --backend cuda"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"precision\":\"fp16\",\"backend\":\"cuda\",\"shard_"
     "update\":true,\"workers\":2}",
     "--shard-update"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"precision\":\"fp16\",\"backend\":\"cuda\",\"parameter_"
     "servers\":1}",
     "--parameter-servers"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"convolution\":\"fft\"}", "fft"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"workers\":4,\"batch_size\":3}", "batch_size"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"workers\":200,\"parameter_servers\":100}", "256"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"role\":\"worker\"}", "rank"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"workers\":2,\"rank\":0}", "rendezvous"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"workers\":2,\"rank\":2}", "rank"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"rank\":0,\"role\":\"parameter_server\"}", "worker"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"model_name\":\"m\"}", "server"},
    {"{\"model\":\"mlp\",\"data\":\"d\",\"run\":\"r\"}", "server"},
    {"[]", "object"},
};

/* Every word of a choice is one that the code of it takes; see framework/training.h. */
START_TEST(the_choices_of_the_options_are_those_of_the_parts_that_read_them)
{
    size_t n, n_types;
    const char *const *choices = weir_training_words("optimizer", &n);
    const struct weir_optimizer_type *optimizers = weir_optimizer_types(&n_types);
    ck_assert_uint_eq(n, n_types);
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(choices[i], optimizers[i].name);
    }
    choices = weir_training_words("schedule", &n);
    const struct weir_schedule_type *schedules = weir_schedule_types(&n_types);
    ck_assert_uint_eq(n, n_types);
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(choices[i], schedules[i].name);
    }
    choices = weir_training_words("augment", &n);
    for (size_t i = 0; i < n; i++) {
        enum weir_augment augment;
        ck_assert_int_eq(weir_augment_from_name(choices[i], &augment, &err), WEIR_OK);
        ck_assert_uint_eq((size_t)augment, i);
    }
    choices = weir_training_words("backend", &n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(weir_backend_find(choices[i]));
    }
    choices = weir_training_words("precision", &n);
    for (size_t i = 0; i < n; i++) {
        enum weir_precision precision;
        ck_assert_int_eq(weir_precision_parse(choices[i], &precision, &err), WEIR_OK);
    }
    choices = weir_training_words("convolution", &n);
    for (size_t i = 0; i < n; i++) {
        enum weir_convolution convolution;
        ck_assert_int_eq(weir_convolution_parse(choices[i], &convolution, &err), WEIR_OK);
    }
    choices = weir_training_words("data_kind", &n);
    for (size_t i = 0; i < n; i++) {
        enum weir_dataset_kind kind;
        ck_assert_int_eq(train_data_kind(choices[i], &kind, &err), WEIR_OK);
    }
}

END_TEST

START_TEST(nonsense_is_refused_by_name)
{
    write_spec(refused[_i].spec);
    ck_assert_int_lt(PARSE("--spec", spec_path), 0);
    ck_assert_msg(strstr(err.message, refused[_i].expected) != NULL, "%s", err.message);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tcase = tcase_create("config");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_command_line_needs_a_model_and_data_only);
    tcase_add_test(tcase,
                   a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default);
    tcase_add_test(tcase, a_training_inside_a_job_of_commands_is_its_own_launcher);
    tcase_add_test(tcase, the_specification_of_a_task_is_understood);
    tcase_add_test(tcase, the_choices_of_the_options_are_those_of_the_parts_that_read_them);
    tcase_add_loop_test(tcase, nonsense_is_refused_by_name, 0, (int)WEIR_ARRAY_LEN(refused));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
