/* Words, options and their mistakes: what is said about them, and with which exit status. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"
#include "cli/command.h"
#include "cli/core/help.h"

START_TEST(every_commands_help_names_its_usage_and_options)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *command = cli_commands[i];
        char first[64], option[80];
        if (command->flags & CLI_RAW) {
            continue; /* another program's */
        }
        (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "),
                       command->name);
        const char *second = strchr(command->name, ' ');
        if (second != NULL) {
            EXPECT_EXIT(0, first, second + 1, "--help");
        } else {
            EXPECT_EXIT(0, first, "-h");
        }
        ck_assert_msg(strncmp(cli.out, command->summary, strlen(command->summary)) == 0, "%s",
                      command->name);
        (void)snprintf(option, sizeof option, "Usage: weir %s", command->name);
        EXPECT_OUT(option);
        for (size_t k = 0; k < command->n_options; k++) {
            (void)snprintf(option, sizeof option, "--%s", command->options[k].name);
            ck_assert_msg(strstr(cli.out, option) != NULL, "weir %s --help has no %s",
                          command->name, option);
            ck_assert_msg(strstr(cli.out, command->options[k].doc) != NULL, "weir %s: %s",
                          command->name, command->options[k].doc);
        }
        ck_assert_str_eq(cli.err, "");
    }
}

END_TEST

START_TEST(help_lists_the_commands_that_are_not_hidden)
{
    static const char *const some[] = {"apply", "get",   "job run", "dataset", "server",
                                       "logs",  "login", "backup",  "doctor",  "explain"};
    int width = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        int len = (int)strlen(cli_commands[i]->name);
        width = (cli_commands[i]->flags & CLI_HIDDEN) == 0 ? WEIR_MAX(width, len) : width;
    }
    EXPECT_EXIT(0, "help");
    ck_assert_ptr_nonnull(strstr(cli.out, "  deploy  ")); /* one of the first */
    EXPECT_EXIT(0, "help", "all");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(some); i++) {
        EXPECT_OUT(some[i]);
    }
    for (size_t i = 0; i < cli_n_commands; i++) {
        char line[80];
        (void)snprintf(line, sizeof line, "\n  %-*s  ", width, cli_commands[i]->name);
        ck_assert_int_eq(strstr(cli.out, line) == NULL, (cli_commands[i]->flags & CLI_HIDDEN) != 0);
    }
    EXPECT_EXIT(0, "help", "get");
    EXPECT_OUT("Usage: weir get NOUN");
    EXPECT_EXIT(0, "--help");
    EXPECT_EXIT(0, "--version");
    EXPECT_OUT("weir " WEIR_VERSION "\n");
    EXPECT_EXIT(2, NULL);
    ck_assert_str_eq(cli.out, "");
    ck_assert_ptr_nonnull(strstr(cli.err, "Usage: weir COMMAND"));
}

END_TEST

START_TEST(help_on_a_first_word_lists_the_commands_that_begin_with_it)
{
    static const char *const asked[][2] = {{"job", "--help"}, {"job", "-h"}, {"help", "job"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(asked); i++) {
        EXPECT_EXIT(0, asked[i][0], asked[i][1]);
        for (size_t k = 0; k < cli_n_commands; k++) {
            const struct cli_command *command = cli_commands[k];
            bool is_of_job = strncmp(command->name, "job ", 4) == 0;
            ck_assert_msg((strstr(cli.out, command->summary) != NULL) == is_of_job, "%s",
                          command->name);
        }
        ck_assert_str_eq(cli.err, "");
    }
    /* A group of the list is named by its title's first word, as it stands there or not. */
    static const char *const groups[] = {"IONs", "ions", "data", "People"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        EXPECT_EXIT(0, "help", groups[i]);
        ck_assert_int_eq(strstr(cli.out, "  reject ") != NULL, i < 2);
        ck_assert_int_eq(strstr(cli.out, "  model push ") != NULL, i == 2);
    }
    /* A word that is a command too has its own help. */
    EXPECT_EXIT(0, "server", "--help");
    EXPECT_OUT("Usage: weir server [");
}

END_TEST

START_TEST(what_was_meant_is_named)
{
    static const struct {
        const char *words[3], *part;
    } wrong[] = {
        {{"aply"}, "did you mean weir apply?"},
        {{"gte", "jobs"}, "did you mean weir get?"},
        {{"ps"}, "`weir get jobs`"},
        {{"submit"}, "`weir job submit -f FILE`"},
        {{"xyzzy"}, "`weir help` lists them"},
        {{"job"}, "expected "},
        {{"job", "sumbit"}, "did you mean submit?"},
        {{"job", "frobnicate"}, "expected "},
        {{"ion", "front"}, "`weir describe ion NAME` shows one"},
        {{"get", "job-s"}, "did you mean jobs?"},
        {{"get", "xyzzy"}, "there are "},
        {{"get", "jobs", "--limt=3"}, "did you mean --limit?"},
        {{"get", "jobs", "--frobnicate"}, "unknown option --frobnicate"},
        {{"get", "jobs", "--limit=many"}, "--limit"},
        {{"get", "jobs", "--limit=0"}, "--limit"},
        {{"get", "jobs", "--limit"}, "--limit"},
        {{"get", "jobs", "colour=red"}, "state kind ion project"},
        {{"get", "ions", "state=x"}, "cannot be filtered"},
        {{"get", "jobs", "-oxml"},
         "--output: expected text, name, wide, yaml or json, got \"xml\""},
        {{"login", "-owide"}, "--output: expected text or json"},
        {{"get", "tasks"}, "of which job?"},
        {{"get"}, "usage: weir get NOUN"},
        {{"apply"}, "which file? weir apply -f FILE"},
        {{"apply", "extra"}, "usage: weir apply -f FILE"},
        {{"describe", "job"}, "which job? weir describe job JOB"},
        {{"help", "aply"}, "did you mean weir apply?"},
        {{"get", "all"}, "`weir get ions,jobs,services,deployments`"},
        {{"metrics", "x"}, "say `weir get metrics RUN`"},
        {{"sbatch", "x.sh"}, "`weir job run SCRIPT`"},
        {{"job", "stop", "x"}, "`weir job cancel JOB`"},
        {{"job", "run", "--mem=4G"}, "unknown option --mem; here it is --memory 4G"},
        {{"member", "ban", "ion"}, "usage: weir member allow|deny|remove"},
        {{"user", "fire", "ann"}, "usage: weir user create NAME"},
        {{"job", "run"}, "put -- in front of the command"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_REFUSED(2, wrong[i].part, wrong[i].words[0], wrong[i].words[1], wrong[i].words[2]);
    }
}

END_TEST

/* A command that help does not name is not there for a newcomer. */
START_TEST(each_command_is_in_one_group_of_help)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        bool is_shown = (cli_commands[i]->flags & CLI_HIDDEN) == 0;
        ck_assert_msg((cli_help_group(cli_commands[i]->name) != NULL) == is_shown, "%s",
                      cli_commands[i]->name);
    }
}

END_TEST

START_TEST(a_noun_in_front_is_the_same_as_behind)
{
    EXPECT_EXIT(0, "get", "projects");
    char *behind = strdup(cli.out);

    static const struct {
        const char *words[3];
    } same[] = {{{"projects"}}, {{"projects", "list"}}, {{"project", "ls"}}, {{"projects", "-n5"}}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(same); i++) {
        EXPECT_EXIT(0, same[i].words[0], same[i].words[1], same[i].words[2]);
        ck_assert_str_eq(cli.out, behind);
    }
    free(behind);
}

END_TEST

/* ---- what servers say ------------------------------------------------------------------------ */

START_TEST(each_failure_has_its_exit_status)
{
    static const struct {
        int status, exit;
        const char *name;
    } rows[] = {{400, 2, "INVALID"},     {401, 6, "UNAUTH"},   {403, 6, "DENIED"},
                {404, 4, "NOT_FOUND"},   {409, 5, "CONFLICT"}, {413, 3, "LIMIT"},
                {501, 7, "UNSUPPORTED"}, {422, 3, "CORRUPT"},  {507, 8, "NOSPACE"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char body[128];
        (void)snprintf(body, sizeof body,
                       "{\"error\":{\"status\":\"%s\",\"message\":\"the sentence\"}}",
                       rows[i].name);
        cli.script_path = "/api/v1/projects";
        cli.script_status = rows[i].status;
        cli.script_body = body;
        EXPECT_REFUSED(rows[i].exit, "the sentence", "get", "projects");
    }
}

END_TEST

START_TEST(an_answer_that_is_none_is_an_error)
{
    static const char *const bodies[] = {"", "<html>", "{\"items\":", "\"text\""};
    cli.script_path = "/api/v1/projects";
    cli.script_status = 500;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bodies); i++) {
        cli.script_body = bodies[i];
        int status = WEIR("get", "projects");
        ck_assert_int_ne(status, 0);
        ck_assert_int_gt((int)strlen(cli.err), 10);
        ck_assert_str_eq(cli.out, "");
    }
}

END_TEST

START_TEST(a_server_that_is_not_there_is_named)
{
    EXPECT_EXIT(9, "get", "projects", "--server", "http://127.0.0.1:1");
    ck_assert_ptr_nonnull(strstr(cli.err, "127.0.0.1:1"));
    EXPECT_REFUSED(6, "", "get", "projects", "--token", "weir_wrong");
    EXPECT_REFUSED(2, "", "get", "projects", "--server", "ftp://x");
}

END_TEST

WEIR_TEST_MAIN_WITH("usage", cli_open, cli_close, every_commands_help_names_its_usage_and_options,
                    help_lists_the_commands_that_are_not_hidden,
                    each_command_is_in_one_group_of_help,
                    help_on_a_first_word_lists_the_commands_that_begin_with_it,
                    what_was_meant_is_named, a_noun_in_front_is_the_same_as_behind,
                    each_failure_has_its_exit_status, an_answer_that_is_none_is_an_error,
                    a_server_that_is_not_there_is_named)
