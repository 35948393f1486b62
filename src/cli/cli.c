#include "cli/cli.h"

#include "cli/command.h"
#include "cli/hint.h"

#include "base/log.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_shown(const struct cli_command *command, const char *group)
{
    return (command->flags & CLI_HIDDEN) == 0 &&
           (group == NULL || cli_is_of_group(command->name, group));
}

/* @param group  First word of those to list; NULL: all. */
static void list_commands(FILE *file, const char *group)
{
    size_t width = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        size_t len = strlen(cli_commands[i]->name);
        width = is_shown(cli_commands[i], group) ? WEIR_MAX(width, len) : width;
    }
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (is_shown(cli_commands[i], group)) {
            (void)fprintf(file, "  %-*s  %s\n", (int)width, cli_commands[i]->name,
                          cli_commands[i]->summary);
        }
    }
}

static void print_commands(FILE *file)
{
    (void)fprintf(file, "Weir: train, serve and watch models on your own machines.\n\n"
                        "Usage: weir COMMAND [ARGUMENTS]\n\nCommands:\n");
    list_commands(file, NULL);
    (void)fprintf(file, "\n`weir COMMAND --help` tells more; weir(1) tells all.\n");
}

static void print_group(const char *group)
{
    printf("Usage: weir %s COMMAND [ARGUMENTS]\n\nCommands:\n", group);
    list_commands(stdout, group);
    printf("\n`weir %s COMMAND --help` tells more.\n", group);
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}

/* Commands of two words ("server stop") come before those of one. */
static const struct cli_command *match_command(int argc, char **argv, int *out_n_words)
{
    char both[80];
    *out_n_words = 2;
    if (argc > 1 && snprintf(both, sizeof both, "%s %s", argv[0], argv[1]) < (int)sizeof both &&
        find_command(both) != NULL) {
        return find_command(both);
    }
    *out_n_words = 1;
    return argc > 0 ? find_command(argv[0]) : NULL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Help on what the words name: a command, those that begin with the first word, or all. */
static void print_help_on(int argc, char **argv)
{
    int ignored;
    const struct cli_command *command = match_command(argc, argv, &ignored);
    if (command != NULL) {
        cli_print_help(command);
    } else if (argc > 0 && cli_is_group(argv[0])) {
        print_group(argv[0]);
    } else {
        print_commands(stdout);
    }
}

int weir_cli_main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return weir_status_exit(WEIR_ERR_INVALID);
    }
    if (is_help(argv[1])) {
        print_help_on(argc - 2, argv + 2);
        return 0;
    }
    if (argc == 3 && is_help(argv[2]) && find_command(argv[1]) == NULL && cli_is_group(argv[1])) {
        print_group(argv[1]);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("weir %s\n", WEIR_VERSION);
        return 0;
    }
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    int n_words, n_given;
    char **given;
    cli_reword(argc - 1, argv + 1, &arena, &n_given, &given);
    const struct cli_command *command = match_command(n_given, given, &n_words);
    struct cli_call call = {
        .arena = &arena, .command = command, .argc = n_given - n_words, .argv = given + n_words};
    weir_status status;
    if (call.command == NULL) {
        status = cli_unknown_command(n_given, given, &err);
    } else {
        status = cli_call_run(&call, &err);
    }
    return cli_call_end(&call, status, &err);
}
