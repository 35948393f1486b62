#include "base/options.h"

#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

struct sample {
    char *data, *tags;
    int64_t workers;
    double rate;
    bool is_quiet;
};

static const struct weir_option options[] = {
    WEIR_OPT(sample, data, "data", 'd', TEXT, NULL, 0, 0, "DIR", "Where the images are"),
    WEIR_OPT(sample, workers, "workers", 'n', INT, "2", 1, 64, "N", "How many"),
    WEIR_OPT(sample, rate, "learning-rate", 0, F64, "0.1", 0, 10, "R", "How fast"),
    WEIR_OPT(sample, is_quiet, "quiet", 'q', BOOL, NULL, 0, 0, NULL, "Say little"),
    WEIR_OPT(sample, tags, "tag", 0, LIST, NULL, 0, 0, "T", "May be repeated"),
};

static struct weir_arena arena;
static struct weir_error err;
static char **words;
static size_t n_words;

static weir_status parse(struct sample *out, int argc, const char *const *argv)
{
    return weir_options_parse(options, sizeof options / sizeof options[0], argc,
                              (char *const *)argv, &arena, out, &words, &n_words, &err);
}

#define PARSE(out, ...)                                                                            \
    parse((out), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                    \
          (const char *[]){__VA_ARGS__})

START_TEST(flags_beat_the_environment_which_beats_the_default)
{
    weir_arena_init(&arena, 0);
    struct sample s = {0};
    ck_assert_int_eq(PARSE(&s, "word"), WEIR_OK);
    ck_assert_int_eq(s.workers, 2);
    ck_assert_int_eq(setenv("WEIR_WORKERS", "3", 1), 0);
    ck_assert_int_eq(setenv("WEIR_LEARNING_RATE", "0.5", 1), 0);
    s = (struct sample){0};
    ck_assert_int_eq(
        PARSE(&s, "a", "-n4", "--data=/x y", "-q", "--tag", "1", "--tag=2", "b", "--", "--not"),
        WEIR_OK);
    ck_assert_int_eq(s.workers, 4);
    ck_assert_double_eq(s.rate, 0.5);
    ck_assert_str_eq(s.data, "/x y");
    ck_assert_str_eq(s.tags, "1\n2");
    ck_assert(s.is_quiet);
    ck_assert_uint_eq(n_words, 3);
    ck_assert_str_eq(words[2], "--not");
    s = (struct sample){0};
    ck_assert_int_eq(PARSE(&s, "--quiet", "--no-quiet"), WEIR_OK);
    ck_assert(!s.is_quiet);
    (void)unsetenv("WEIR_WORKERS");
    (void)unsetenv("WEIR_LEARNING_RATE");
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(wrong_flags_say_what_was_expected)
{
    weir_arena_init(&arena, 0);
    struct sample s = {0};
    ck_assert_int_eq(PARSE(&s, "--worker", "3"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "unknown option --worker; did you mean --workers?");
    ck_assert_int_eq(PARSE(&s, "--workers", "x"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "--workers: expected an integer, got \"x\"");
    ck_assert_int_eq(PARSE(&s, "--workers", "65"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "--workers: 65 is outside 1 … 64");
    ck_assert_int_eq(PARSE(&s, "--data"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "--data needs a value (DIR)");
    ck_assert_int_eq(PARSE(&s, "--learning-rate", "nan"), WEIR_ERR_INVALID);
    ck_assert_int_eq(PARSE(&s, "--workers", "99999999999999999999"), WEIR_ERR_INVALID);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_configuration_file_sets_the_same_options)
{
    weir_arena_init(&arena, 0);
    struct sample s = {0};
    json_t *object =
        json_loads("{\"learning_rate\":0.25,\"workers\":5,\"quiet\":true,\"data\":\"d\"}", 0, NULL);
    ck_assert_int_eq(weir_options_from_json(options, sizeof options / sizeof options[0], object,
                                            &arena, &s, &err),
                     WEIR_OK);
    json_decref(object);
    ck_assert_double_eq(s.rate, 0.25);
    ck_assert_int_eq(s.workers, 5);
    ck_assert(s.is_quiet);
    object = json_loads("{\"speed\":1}", 0, NULL);
    ck_assert_int_eq(weir_options_from_json(options, sizeof options / sizeof options[0], object,
                                            &arena, &s, &err),
                     WEIR_ERR_INVALID);
    ck_assert_msg(strncmp(err.message, "$.speed: unknown option; there are ",
                          strlen("$.speed: unknown option; there are ")) == 0 &&
                      strstr(err.message, "learning_rate") != NULL,
                  "%s", err.message);
    json_decref(object);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("options", flags_beat_the_environment_which_beats_the_default,
               wrong_flags_say_what_was_expected, a_configuration_file_sets_the_same_options)
