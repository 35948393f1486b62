#include "cli/hint.h"

#include "base/names.h"
#include "cli/noun.h"

#include <string.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

bool cli_is_of_group(const char *command, const char *group)
{
    size_t len = strlen(group);
    return strncmp(command, group, len) == 0 && command[len] == ' ';
}

/* Is there a command "first second"? With second NULL: any whose first word is that. */
static bool has_command(const char *first, const char *second)
{
    size_t len = strlen(first);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (cli_is_of_group(name, first) &&
            (second == NULL || strcmp(name + len + 1, second) == 0)) {
            return true;
        }
    }
    return false;
}

bool cli_is_group(const char *group)
{
    return has_command(group, NULL);
}

static bool is_command(const char *word)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->name, word) == 0) {
            return true;
        }
    }
    return false;
}

/* "get" or "describe" for the word behind a noun; NULL if it is neither. */
static const char *verb_of(const char *word)
{
    static const char *const lists[] = {"list", "ls", "get", NULL};
    static const char *const shows[] = {"show", "describe", "info", NULL};
    return is_one_of(word, lists) ? "get" : is_one_of(word, shows) ? "describe" : NULL;
}

void cli_reword(int argc, char **argv, struct weir_arena *arena, int *out_argc, char ***out_argv)
{
    *out_argc = argc;
    *out_argv = argv;
    const struct cli_noun *noun = argc > 0 ? cli_noun_find(argv[0]) : NULL;
    if (noun == NULL || (argc > 1 && has_command(argv[0], argv[1]))) {
        return;
    }
    const char *verb = argc > 1 ? verb_of(argv[1]) : NULL;
    bool is_listed = strcmp(argv[0], noun->plural) == 0 && !is_command(argv[0]) &&
                     (argc == 1 || argv[1][0] == '-' || strchr(argv[1], '=') != NULL);
    if (verb == NULL && !is_listed) {
        return;
    }
    int n_skipped = verb != NULL ? 2 : 1;
    char **words = WEIR_ARENA_ARRAY(arena, (size_t)argc + 3, char *);
    words[0] = weir_arena_strdup(arena, verb != NULL ? verb : "get");
    words[1] = argv[0];
    memcpy(words + 2, argv + n_skipped, (size_t)(argc - n_skipped) * sizeof *words);
    *out_argc = argc - n_skipped + 2;
    *out_argv = words;
}

/* What other programs call it. */
static const struct {
    const char *word, *command;
} synonyms[] = {
    {"ps", "weir get jobs"},
    {"list", "weir get NOUN"},
    {"ls", "weir get NOUN"},
    {"show", "weir describe [NOUN] NAME"},
    {"inspect", "weir describe [NOUN] NAME"},
    {"status", "weir get ions, or weir doctor"},
    {"submit", "weir job submit -f FILE"},
    {"run", "weir job run -- COMMAND"},
    {"exec", "weir job run -- COMMAND"},
    {"cancel", "weir job cancel JOB"},
    {"kill", "weir job cancel JOB"},
    {"restart", "weir job restart JOB"},
    {"resume", "weir job resume JOB"},
    {"stop", "weir job cancel JOB, or weir server stop"},
    {"start", "weir server"},
    {"serve", "weir server"},
    {"log", "weir logs JOB"},
    {"deploy", "weir apply -f FILE"},
    {"create", "weir apply -f FILE, or weir dataset create NAME"},
    {"remove", "weir delete NAME"},
    {"rm", "weir delete NAME"},
    {"compare", "weir runs compare RUN RUN"},
    {"download", "weir model get NAME"},
    {"upload", "weir dataset put NAME DIR"},
};

/* The second words of commands whose first word this is, and the one near to `word`. */
static void see_seconds(const char *first, const char *word, struct weir_names *names,
                        struct weir_nearest *nearest)
{
    size_t len = strlen(first);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (cli_is_of_group(name, first)) {
            weir_names_add(names, name + len + 1, strlen(name + len + 1));
            if (word != NULL) {
                weir_nearest_see(nearest, word, strlen(word), name + len + 1);
            }
        }
    }
}

static weir_status unknown_second(const char *first, const char *second, struct weir_error *err)
{
    struct weir_names names = {0};
    struct weir_nearest nearest = {0};
    see_seconds(first, second, &names, &nearest);
    const char *space = second != NULL ? " " : "", *given = second != NULL ? second : "";
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "weir %s%s%.40s: expected %s; did you mean %s?", first, space, given,
                              names.text, nearest.name);
    }
    const struct cli_noun *noun = cli_noun_find(first);
    return weir_error_set(err, WEIR_ERR_INVALID, "weir %s%s%.40s: expected %s%s%s%s", first, space,
                          given, names.text, noun != NULL ? "; `weir describe " : "",
                          noun != NULL ? noun->singular : "",
                          noun != NULL ? " NAME` shows one" : "");
}

weir_status cli_unknown_command(int argc, char **argv, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    const char *word = argv[0];
    if (cli_is_group(word)) {
        return unknown_second(word, argc > 1 ? argv[1] : NULL, err);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(synonyms); i++) {
        if (strcmp(synonyms[i].word, word) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "there is no command \"%s\": say `%s`",
                                  word, synonyms[i].command);
        }
    }
    const struct cli_noun *noun = cli_noun_find(word);
    if (noun != NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "there is no command \"%s\": `weir get %s` lists them, `weir describe "
            "%s NAME` shows one",
            word, noun->plural, noun->singular);
    }
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (strchr(name, ' ') == NULL) {
            weir_nearest_see(&nearest, word, strlen(word), name);
        }
    }
    return nearest.name != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID,
                                "there is no command \"%.40s\"; did you mean weir %s?", word,
                                nearest.name)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "there is no command \"%.40s\"; `weir help` lists them", word);
}
