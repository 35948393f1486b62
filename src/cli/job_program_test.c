/* What is said of a program becomes the same specification, whichever command says it. */
#include "cli/cli_fixture.h"

#include "base/test_main.h"
#include "cli/job_program.h"

#include <string.h>

static void set_up(void)
{
    cli_open();
    ck_assert_int_eq(chdir(callers.fixture.dir), 0);
    ck_assert_int_eq(weir_file_write("needs.txt", "torch\n", 6, 0600, NULL), WEIR_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    cli_close();
}

#define PROGRAM                                                                                    \
    "--env", "A=1=2", "-eB=", "--secret", "KEY=key", "--python", "needs.txt", "--memory", "2M",    \
        "--cpus", "3", "--network", "none", "--gpus", "2"
#define WANTED                                                                                     \
    "{\"env\":{\"A\":\"1=2\",\"B\":\"\"},\"secrets\":[\"KEY=key\"],\"python\":\"torch\\n\","       \
    "\"memory_max_bytes\":2097152,\"cpus\":3,\"network\":\"none\","                                \
    "\"resources\":{\"accelerators\":2}}"

/* What the last command sent: all of WANTED is in it. */
static void check_spec(const json_t *spec)
{
    const char *member;
    json_t *value, *wanted = json_loads(WANTED, 0, NULL);
    ck_assert_ptr_nonnull(wanted);
    json_object_foreach(wanted, member, value)
    {
        ck_assert_msg(json_equal(json_object_get(spec, member), value), "%s", member);
    }
    json_decref(wanted);
}

START_TEST(each_command_sends_the_same_of_a_program)
{
    static const struct {
        const char *words[CLI_WORDS_MAX], *path, *name;
        size_t n_words;
    } commands[] = {
        {{"job", "run", PROGRAM, "--no-files", "--", "python3", "a.py"}, API "/jobs", "a", 2},
        {{"service", "run", PROGRAM, "--", "python3", "a.py"}, API "/services", "a", 2},
        {{"notebook", "start", PROGRAM}, API "/services", "notebook", 0},
    };

    cli.script_method = "POST";
    cli.script_status = 200;
    cli.script_body = "{\"id\":\"0192aaaa-0000-7000-8000-00000000beef\",\"name\":\"a\","
                      "\"state\":\"STARTING\",\"kind\":\"service\"}";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(commands); i++) {
        cli.script_path = commands[i].path;
        ck_assert_msg(cli_run(commands[i].words) == 0, "%s", cli.err);
        const json_t *spec = json_object_get(cli.script_sent, "spec");
        check_spec(spec);
        ck_assert_uint_eq(json_array_size(json_object_get(spec, "argv")), commands[i].n_words);
        ck_assert_str_eq(json_string_value(json_object_get(cli.script_sent, "name")),
                         commands[i].name);
    }
}

END_TEST

START_TEST(what_is_wrong_is_named_by_its_option)
{
    EXPECT_REFUSED(2, "--memory: expected a size", "job", "run", "--memory", "0", "--", "true");
    EXPECT_REFUSED(2, "--memory: expected a size", "notebook", "start", "--memory", "much");
    EXPECT_REFUSED(2, "--env: expected NAME=VALUE", "service", "run", "--env", "A", "--", "true");
    EXPECT_REFUSED(4, "--python: ", "service", "run", "--python", "none.txt", "--", "true");
    EXPECT_REFUSED(2, "word 2 of the command is no UTF-8", "job", "run", "--", "echo", "\xff");
}

END_TEST

START_TEST(a_program_names_its_job)
{
    static const struct {
        const char *words[4], *name;
    } names[] = {
        {{"python3", "src/Train_v2.py"}, "train_v2"},
        {{"/usr/bin/env"}, "env"},
        {{"sh", "-c", "exit 3"}, "sh"},
        {{"./Go Home!"}, "go-home-"},
        {{"--", "-x"}, "command"},
    };
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct cli_call call = {.arena = &arena};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        size_t n = 0;
        while (names[i].words[n] != NULL) {
            n++;
        }
        ck_assert_str_eq(job_program_name_of(&call, (char **)names[i].words, n), names[i].name);
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN_WITH("job_program", set_up, tear_down, each_command_sends_the_same_of_a_program,
                    what_is_wrong_is_named_by_its_option, a_program_names_its_job)
