#include "cli/cli.h"

#include "cli/command.h"
#include "cli/core/help.h"
#include "cli/core/hint.h"

#include "base/library.h"

#include <string.h>

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* "job --help", where there is no command "job". */
static bool asks_for_group(int argc, char **argv)
{
    int ignored;
    return argc == 2 && is_help(argv[1]) && cli_is_group(argv[0]) &&
           cli_command_match(1, argv, &ignored) == NULL;
}

static weir_status run_words(struct cli_call *call, int argc, char **argv, struct weir_error *err)
{
    int n_words, n_given;
    char **given;
    if (is_help(argv[0])) {
        return cli_help_on(argc - 1, argv + 1, err);
    }
    if (asks_for_group(argc, argv)) {
        return cli_help_on(1, argv, err);
    }
    cli_reword(argc, argv, call->arena, &n_given, &given);
    call->command = cli_command_match(n_given, given, &n_words);
    call->argc = n_given - n_words;
    call->argv = given + n_words;
    return call->command != NULL ? cli_call_run(call, err)
                                 : cli_unknown_command(n_given, given, err);
}

int weir_cli_main(int argc, char **argv)
{
    if (argc < 2) {
        cli_help_print(stderr);
        return weir_status_exit(WEIR_ERR_INVALID);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        weir_version_print("weir");
        return 0;
    }
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    struct cli_call call = {.arena = &arena};
    weir_status status = run_words(&call, argc - 1, argv + 1, &err);
    return cli_call_end(&call, status, &err);
}
