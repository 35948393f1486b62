#include "cli/cli.h"

#include "cli/command.h"
#include "cli/hint.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_commands(FILE *file)
{
    (void)fprintf(file, "Weir: train, serve and watch models on your own machines.\n\n"
                        "Usage: weir COMMAND [ARGUMENTS]\n\nCommands:\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if ((cli_commands[i]->flags & CLI_HIDDEN) == 0) {
            (void)fprintf(file, "  %-12s  %s\n", cli_commands[i]->name, cli_commands[i]->summary);
        }
    }
    (void)fprintf(file, "\n`weir COMMAND --help` tells more; weir(1) tells all.\n");
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

int weir_cli_main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0) {
        int ignored;
        const struct cli_command *about = match_command(argc - 2, argv + 2, &ignored);
        if (about != NULL) {
            cli_print_help(about);
        } else {
            print_commands(argc < 2 ? stderr : stdout);
        }
        return argc < 2 ? weir_status_exit(WEIR_ERR_INVALID) : 0;
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
