#include "cli/core/help.h"

#include "base/names.h"
#include "cli/core/document.h"
#include "cli/core/hint.h"
#include "cli/core/noun.h"

#include <string.h>
#include <strings.h>

/* What a person needs first, in the order in which they need it. */
static const char *const first[] = {
    "server", "login",   "doctor", "job run",    "logs",   "get",     "describe", "explain",
    "wait",   "dataset", "train",  "model push", "deploy", "predict", "apply",
};

/** First words of commands, by what they are about. Each command is in one of them. */
static const struct {
    const char *title, *words; /* separated by blanks */
} groups[] = {
    {"Look", "get describe explain top wait logs lineage runs experiment artifact"},
    {"Jobs", "job sweep service notebook tensorboard batch secret"},
    {"Data and models", "dataset train evaluate model deploy scale rollout undeploy predict"},
    {"IONs", "apply diff edit approve reject rollback ion trigger health kpi feedback statistics "
             "member door snapshot"},
    {"Alerts", "alert"},
    {"Cluster", "node cluster allocation reserve agent queue usage what-if simulate bench"},
    {"People", "login logout context whoami project role group user token session person audit"},
    {"Server", "server backup restore store doctor demo"},
    {"Anything", "delete completion"},
};

static size_t first_word_len(const char *command)
{
    return strcspn(command, " ");
}

static bool is_in_group(size_t i_group, const char *command)
{
    return weir_words_have(groups[i_group].words, command, first_word_len(command));
}

const char *cli_help_group(const char *command)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        if (is_in_group(i, command)) {
            return groups[i].title;
        }
    }
    return NULL;
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

const struct cli_command *cli_command_match(int argc, char **argv, int *out_n_words)
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

static bool is_shown(const struct cli_command *command)
{
    return (command->flags & CLI_HIDDEN) == 0;
}

static void print_one(FILE *file, const struct cli_command *command, size_t width)
{
    (void)fprintf(file, "  %-*s  %s\n", (int)width, command->name, command->summary);
}

static size_t width_of_names(void)
{
    size_t width = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        width = is_shown(cli_commands[i]) ? WEIR_MAX(width, strlen(cli_commands[i]->name)) : width;
    }
    return width;
}

bool cli_help_is_first(size_t i_command)
{
    const char *name = cli_commands[i_command]->name;
    size_t len = first_word_len(name);
    for (size_t i = 0; i < i_command; i++) {
        const char *before = cli_commands[i]->name;
        if (is_shown(cli_commands[i]) && first_word_len(before) == len &&
            strncmp(before, name, len) == 0) {
            return false;
        }
    }
    return is_shown(cli_commands[i_command]);
}

/* The first words of a group's commands, each once. */
static void print_names(FILE *file, size_t i_group)
{
    int column = fprintf(file, "  %-16s", groups[i_group].title);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        size_t len = first_word_len(name);
        if (is_in_group(i_group, name) && cli_help_is_first(i)) {
            if (column + (int)len > 96) {
                column = fprintf(file, "\n%18s", "") - 1;
            }
            column += fprintf(file, " %.*s", (int)len, name);
        }
    }
    (void)fputc('\n', file);
}

void cli_help_print(FILE *file)
{
    size_t width = 0;
    (void)fprintf(file, "Weir: train, serve and watch models on your own machines.\n\n"
                        "Usage: weir COMMAND [ARGUMENTS]\n\nFirst:\n");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(first); i++) {
        width = WEIR_MAX(width, strlen(first[i]));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(first); i++) {
        print_one(file, find_command(first[i]), width);
    }
    (void)fprintf(file, "\nAll, by what they are about:\n");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        print_names(file, i);
    }
    (void)fputs(
        "\n`weir help jobs` (or another group, or all) says what each does, `weir help "
        "COMMAND` tells more,\n`weir explain WORD` says what a word means; weir(1) tells all.\n",
        file);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *dir = cli_document_dir(&arena);
    if (dir != NULL) {
        (void)fprintf(file, "Where to begin: %s/README.md\n", dir);
    }
    weir_arena_fini(&arena);
}

/* Each command of the group whose title begins with this word, whatever its case; "" are all. */
static bool print_groups(const char *word)
{
    size_t width = width_of_names(), n_printed = 0, len = strlen(word);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        const char *title = groups[i].title;
        if (len > 0 && (len != first_word_len(title) || strncasecmp(title, word, len) != 0)) {
            continue;
        }
        printf("%s%s\n", n_printed++ > 0 ? "\n" : "", title);
        for (size_t k = 0; k < cli_n_commands; k++) {
            if (is_shown(cli_commands[k]) && is_in_group(i, cli_commands[k]->name)) {
                print_one(stdout, cli_commands[k], width);
            }
        }
    }
    return n_printed > 0;
}

/* The commands of one first word. */
static void print_family(const char *word)
{
    printf("Usage: weir %s COMMAND [ARGUMENTS]\n\nCommands:\n", word);
    size_t width = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < cli_n_commands; i++) {
            const struct cli_command *command = cli_commands[i];
            bool is_of_it = is_shown(command) && (cli_is_of_group(command->name, word) ||
                                                  strcmp(command->name, word) == 0);
            if (is_of_it && turn == 0) {
                width = WEIR_MAX(width, strlen(command->name));
            } else if (is_of_it) {
                print_one(stdout, command, width);
            }
        }
    }
    printf("\n`weir help %s COMMAND` tells more.\n", word);
}

weir_status cli_help_on(int argc, char **argv, struct weir_error *err)
{
    int ignored;
    const struct cli_command *command = cli_command_match(argc, argv, &ignored);
    if (argc == 0) {
        cli_help_print(stdout);
    } else if (command != NULL) {
        cli_print_help(command);
    } else if (argc == 1 && cli_is_group(argv[0])) {
        print_family(argv[0]);
    } else if (argc > 1 || !print_groups(strcmp(argv[0], "all") == 0 ? "" : argv[0])) {
        return cli_unknown_command(argc, argv, err);
    }
    return WEIR_OK;
}
