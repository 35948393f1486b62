/* What is said of a program becomes the same specification, whichever command says it. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"
#include "cli/job/job_program.h"

#include <string.h>
#include <sys/stat.h>

static void set_up(void)
{
    char folder[160];
    cli_open();
    (void)snprintf(folder, sizeof folder, "%s/work", callers.fixture.dir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(weir_file_write("needs.txt", "torch\n", 6, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write("train.py", "#\n", 2, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write("go.sh", "#\n", 2, 0700, NULL), WEIR_OK);
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
        {{"job", "run", PROGRAM, "--no-files", "--", "python3", "/n/a.py"}, API "/jobs", "a", 2},
        {{"service", "run", PROGRAM, "--", "python3", "/n/a.py"}, API "/services", "a", 2},
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

/* A job begins in a folder of its own: what is not sent is not there, and that is known before it is submitted. */
START_TEST(a_script_that_will_not_be_there_is_refused_with_the_name_that_was_meant)
{
    static const struct {
        const char *words[8], *part;
    } wrong[] = {
        {{"job", "run", "--", "python3", "trian.py"},
         "there is no trian.py in this folder; did you mean train.py?"},
        {{"job", "run", "--", "python3", "-u", "-W", "ignore", "trian.py"},
         "did you mean train.py?"},
        {{"job", "run", "--", "./g.sh"},
         "there is no ./g.sh in this folder; did you mean ./go.sh?"},
        {{"job", "run", "--", "torchrun", "far.py"}, "name it with --dir"},
        {{"job", "run", "--no-files", "--", "python3", "train.py"},
         "--no-files: train.py is not sent"},
        {{"job", "run", "--dir", "none", "--", "true"}, "--dir: there is no folder none"},
        {{"service", "run", "--", "python3", "trian.py"}, "did you mean train.py?"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_msg(cli_run(wrong[i].words) != 0, "%zu", i);
        ck_assert_msg(strstr(cli.err, wrong[i].part) != NULL, "%s: %s", wrong[i].part, cli.err);
    }
    EXPECT(200, "GET " API "/jobs");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

/* As the how-to has it: the script stands in the text that a shell is given. */
START_TEST(the_folder_goes_with_a_command_whose_shell_names_a_file_of_it)
{
    static const struct {
        const char *text;
        bool is_sent;
        const char *warning; /* NULL: none */
    } texts[] = {
        {"./go.sh part-$WEIR_ARRAY_INDEX", true, NULL},
        {"set -e; (python3 train.py)", true, NULL},
        {"echo go.sh.txt", false, NULL},
        {"./og.sh && true", false, "there is no ./og.sh in this folder (did you mean ./go.sh?)"},
        {"cc x.c -o x && ./x", false, NULL},
        {"cd /tmp && ./og.sh", false, NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        EXPECT_EXIT(0, "job", "run", "-ojson", "--", "sh", "-ec", texts[i].text);
        const json_t *spec = json_object_get(cli.json, "spec");
        ck_assert_msg((json_object_get(spec, "code") != NULL) == texts[i].is_sent, "%s: %s",
                      texts[i].text, cli.out);
        const char *warning = strstr(cli.err, "warning:");
        ck_assert_msg(texts[i].warning == NULL ? warning == NULL
                                               : strstr(cli.err, texts[i].warning) != NULL,
                      "%s: %s", texts[i].text, cli.err);
    }
}

END_TEST

START_TEST(accelerators_that_no_node_has_are_warned_of)
{
    EXPECT_EXIT(0, "job", "run", "--gpus", "2:H100", "--", "true");
    ck_assert_ptr_nonnull(strstr(cli.err, "no node of the cluster has one"));
    EXPECT(204,
           "PUT " API "/nodes/n\n\n{\"cpu_slots\":4,\"devices\":[{\"id\":\"g\",\"kind\":\"gpu\","
           "\"state\":\"ok\",\"index\":0,\"model\":\"A100-SXM\"}]}");
    EXPECT_EXIT(0, "job", "run", "--gpus", "2:H100", "--", "true");
    ck_assert_ptr_nonnull(
        strstr(cli.err, "no node has an accelerator \"H100\"; there are A100-SXM"));
    EXPECT_EXIT(0, "job", "run", "--gpus", "1:A100", "--", "true");
    ck_assert_str_eq(cli.err, "");
    EXPECT_EXIT(0, "job", "run", "--", "true");
    ck_assert_str_eq(cli.err, "");
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
                    what_is_wrong_is_named_by_its_option,
                    a_script_that_will_not_be_there_is_refused_with_the_name_that_was_meant,
                    the_folder_goes_with_a_command_whose_shell_names_a_file_of_it,
                    accelerators_that_no_node_has_are_warned_of, a_program_names_its_job)
