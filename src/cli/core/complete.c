/** weir completion, weir complete: what may stand next on the command line, for bash and zsh. */
#include "cli/core/help.h"
#include "cli/core/hint.h"
#include "cli/core/noun.h"

#include <ctype.h>
#include <string.h>

#define SERVER_PATIENCE_MS 1000 /* a person waits at their keyboard */
#define NAMES_MAX          "200"

/* ---- the scripts ------------------------------------------------------------------------------ */

static const char bash_script[] =
    "# bash completion for weir: source this, or install it as weir in bash-completion's folder\n"
    "_weir() {\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(weir complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null))\n"
    "}\n"
    "complete -o default -o bashdefault -F _weir weir\n";

static const char zsh_script[] =
    "#compdef weir\n"
    "# zsh completion for weir: put it as _weir into a folder of $fpath\n"
    "_weir() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(weir complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
    "    (( ${#found} )) && compadd -- $found || _files\n"
    "}\n"
    "compdef _weir weir\n";

struct completion_options {
    struct cli_common common;
};

static const struct weir_option completion_options[] = {CLI_HELP_OPTION(completion_options)};

static weir_status run_completion(struct cli_call *call, struct weir_error *err)
{
    bool is_bash = strcmp(call->words[0], "bash") == 0;
    if (!is_bash && strcmp(call->words[0], "zsh") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "weir completion %.40s: there is one for bash and one for zsh",
                              call->words[0]);
    }
    printf("%s", is_bash ? bash_script : zsh_script);
    return WEIR_OK;
}

const struct cli_command cli_completion = {
    .name = "completion",
    .usage = "bash|zsh",
    .summary = "Print a script that lets the shell complete commands, options and names",
    .help =
        "bash: source <(weir completion bash), or `make install`, which puts it where "
        "bash-completion "
        "finds\nit. zsh: weir completion zsh >_weir, in a folder of $fpath. Names are asked of the "
        "server, for a second\nat most.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(completion_options, completion_options),
    .run = run_completion,
};

/* ---- what may stand next ----------------------------------------------------------------------- */

/** The words so far; the last is begun, and may be empty. */
struct typed {
    struct cli_call *call;
    char **words;
    int n;
    const char *last;
};

static void offer(const struct typed *typed, const char *word, size_t len)
{
    size_t n = strlen(typed->last);
    if (len >= n && strncmp(word, typed->last, n) == 0) {
        printf("%.*s\n", (int)len, word);
    }
}

/* Commands: their first words, or the second ones of a first. */
static void offer_commands(const struct typed *typed, const char *first)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        size_t len = strcspn(name, " ");
        if (first != NULL && cli_is_of_group(name, first)) {
            offer(typed, name + len + 1, strlen(name + len + 1));
        } else if (first == NULL && cli_help_is_first(i)) {
            offer(typed, name, len);
        }
    }
}

static void offer_options(const struct typed *typed, const struct cli_command *command)
{
    for (size_t i = 0; i < command->n_options; i++) {
        char *word = weir_arena_printf(typed->call->arena, "--%s", command->options[i].name);
        offer(typed, word, strlen(word));
    }
}

/* "json|yaml": the words that something may be. */
static void offer_choice(const struct typed *typed, const char *text, size_t len)
{
    while (len > 0) {
        const char *bar = memchr(text, '|', len);
        size_t n = bar != NULL ? (size_t)(bar - text) : len;
        offer(typed, text, n);
        text += n + (bar != NULL);
        len -= n + (bar != NULL);
    }
}

/* Is it a choice of plain words: lower case letters, "-" and at least one "|"? */
static bool is_choice(const char *text, size_t len)
{
    return memchr(text, '|', len) != NULL && strspn(text, "abcdefghijklmnopqrstuvwxyz-|") >= len;
}

static void offer_nouns(const struct typed *typed)
{
    for (size_t i = 0; i < cli_n_nouns; i++) {
        offer(typed, cli_nouns[i].plural, strlen(cli_nouns[i].plural));
    }
}

/* The names of a noun's records that the server has, the newest first. */
static void offer_names(const struct typed *typed, const struct cli_noun *noun)
{
    struct cli_call *call = typed->call;
    struct weir_error ignored;
    json_t *list, *item;
    size_t i;
    const char *kept = noun->key != NULL && strcmp(noun->key, "id") == 0 ? "name" : noun->key;
    if (noun->of != NULL || kept == NULL || cli_connect(call, &ignored) != WEIR_OK) {
        return;
    }
    weir_client_set_timeout(call->client, SERVER_PATIENCE_MS);
    char *path =
        weir_arena_printf(call->arena, "%s?%s%slimit=" NAMES_MAX, noun->list,
                          noun->query != NULL ? noun->query : "", noun->query != NULL ? "&" : "");
    path = noun->page == 0 ? weir_arena_strdup(call->arena, noun->list) : path;
    if (cli_rest(call, "GET", path, NULL, &list, &ignored) != WEIR_OK) {
        return;
    }
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, kept));
        name = name != NULL ? name : json_string_value(json_object_get(item, noun->key));
        if (name != NULL) {
            offer(typed, name, strlen(name));
        }
    }
    json_decref(list);
}

/* What a usage calls a word: "JOB", "ION/PIPELINE", "NAME[@v3]" of `weir model …`; NULL: no noun. */
static const struct cli_noun *noun_of(const struct typed *typed, const struct cli_command *command,
                                      const char *text, size_t len)
{
    char *word = weir_arena_memdup(typed->call->arena, text, len);
    word[strcspn(word, "/[@….")] = '\0';
    for (char *c = word; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    if (strcmp(word, "name") == 0) {
        word = weir_arena_memdup(typed->call->arena, command->name, strcspn(command->name, " "));
    }
    word = strcmp(word, "notebook") == 0 ? weir_arena_strdup(typed->call->arena, "service") : word;
    return cli_noun_find(word);
}

/* The i-th word of a usage that is no option: its place and length; NULL: it has none. */
static const char *place_of(const char *usage, size_t i_wanted, size_t *out_len)
{
    size_t i = 0;
    while (*usage != '\0') {
        size_t len = strcspn(usage, " ");
        bool is_option = usage[0] == '-' || strncmp(usage, "[-", 2) == 0;
        if (is_option) {
            const char *end = usage[0] == '[' ? strchr(usage, ']') : NULL;
            len = end != NULL ? (size_t)(end - usage) + 1 : len;
        } else if (strcmp(usage, "|") != 0 && strncmp(usage, "| ", 2) != 0 && i++ == i_wanted) {
            bool is_optional = usage[0] == '[';
            *out_len = strcspn(usage + is_optional, " ]");
            return usage + is_optional;
        }
        usage += len;
        usage += strspn(usage, " ");
    }
    return NULL;
}

/* "create NAME | revoke ID": the first word of each form. */
static void offer_verbs(const struct typed *typed, const char *usage)
{
    for (const char *form = usage; form != NULL;) {
        size_t len = strcspn(form, " ");
        if (len > 0 && strspn(form, "abcdefghijklmnopqrstuvwxyz-") >= len) {
            offer(typed, form, len);
        }
        form = strstr(form, " | ");
        form = form != NULL ? form + 3 : NULL;
    }
}

static void offer_word(const struct typed *typed, const struct cli_command *command, size_t i_word,
                       const char *before)
{
    static const char *const takers[] = {"get", "describe", "explain", "delete", "wait", NULL};
    size_t len;
    for (size_t i = 0; takers[i] != NULL; i++) {
        if (strcmp(command->name, takers[i]) == 0) {
            const struct cli_noun *noun = before != NULL ? cli_noun_find(before) : NULL;
            if (noun != NULL) {
                offer_names(typed, noun->of != NULL ? cli_noun_find(noun->of) : noun);
            } else if (i_word == 0) {
                offer_nouns(typed);
            }
            return;
        }
    }
    const char *place = place_of(command->usage, i_word, &len);
    if (place != NULL && is_choice(place, len)) {
        offer_choice(typed, place, len);
        return;
    }
    if (i_word == 0) {
        offer_verbs(typed, command->usage);
    }
    const struct cli_noun *noun = place != NULL ? noun_of(typed, command, place, len) : NULL;
    if (noun != NULL) {
        offer_names(typed, noun);
    }
}

/* The option that this word is, and whether its value stands behind it; NULL: none. */
static const struct weir_option *option_of(const struct cli_command *command, const char *word)
{
    if (strncmp(word, "--", 2) == 0 && strchr(word, '=') == NULL) {
        const struct weir_option *option =
            weir_options_find(command->options, command->n_options, word + 2);
        return option != NULL && option->type != WEIR_OPTION_BOOL ? option : NULL;
    }
    for (size_t i = 0; i < command->n_options && word[0] == '-' && word[1] != '\0'; i++) {
        if (command->options[i].short_name == word[1] && word[2] == '\0' &&
            command->options[i].type != WEIR_OPTION_BOOL) {
            return &command->options[i];
        }
    }
    return NULL;
}

static void offer_value(const struct typed *typed, const struct cli_command *command,
                        const struct weir_option *option)
{
    const char *arg = option->arg != NULL ? option->arg : "";
    const struct cli_noun *noun =
        strcmp(option->name, "project") == 0 ? cli_noun_find("project") : NULL;
    if (strcmp(option->name, "output") == 0) {
        offer_choice(typed, "text|json", strlen("text|json"));
        offer_choice(typed, "yaml", (command->flags & CLI_YAML) != 0 ? strlen("yaml") : 0);
        offer_choice(typed, "wide", (command->flags & CLI_WIDE) != 0 ? strlen("wide") : 0);
        offer_choice(typed, "name", (command->flags & CLI_NAME) != 0 ? strlen("name") : 0);
    } else if (is_choice(arg, strlen(arg))) {
        offer_choice(typed, arg, strlen(arg));
    } else if (noun != NULL || noun_of(typed, command, arg, strlen(arg)) != NULL) {
        offer_names(typed, noun != NULL ? noun : noun_of(typed, command, arg, strlen(arg)));
    }
}

static void complete(const struct typed *typed)
{
    int n_words;
    const struct cli_command *command = cli_command_match(typed->n - 1, typed->words, &n_words);
    if (typed->n == 1) {
        offer_commands(typed, NULL);
        offer(typed, "help", strlen("help"));
        return;
    }
    if (typed->n == 2 && cli_is_group(typed->words[0])) {
        offer_commands(typed, typed->words[0]);
    }
    if (command == NULL) {
        return;
    }
    size_t n_plain = 0;
    const char *before = NULL;
    const struct weir_option *pending = NULL;
    for (int i = n_words; i < typed->n - 1; i++) {
        bool is_value = pending != NULL;
        pending = is_value ? NULL : option_of(command, typed->words[i]);
        if (!is_value && typed->words[i][0] != '-') {
            before = typed->words[i];
            n_plain++;
        }
    }
    if (pending != NULL) {
        offer_value(typed, command, pending);
    } else if (typed->last[0] == '-') {
        offer_options(typed, command);
    } else {
        offer_word(typed, command, n_plain, before);
    }
}

struct complete_options {
    struct cli_common common;
};

static const struct weir_option complete_options[] = {CLI_COMMON_OPTIONS(complete_options)};

/* Never says anything but what may stand next: the shell shows it while a person types. */
static weir_status run_complete(struct cli_call *call, struct weir_error *err)
{
    struct complete_options options = {0};
    struct typed typed = {.call = call, .words = call->argv, .n = call->argc};
    char **words;
    size_t n_words;
    if (call->argc == 0) {
        return WEIR_OK;
    }
    /* The server as the environment names it: the options that are typed may be half there. */
    WEIR_TRY(weir_options_parse(complete_options, WEIR_ARRAY_LEN(complete_options), 0, NULL,
                                call->arena, &options, &words, &n_words, err));
    call->common = &options.common;
    typed.last = call->argv[call->argc - 1];
    complete(&typed);
    weir_client_close(call->client);
    return WEIR_OK;
}

const struct cli_command cli_complete = {
    .name = "complete",
    .usage = "WORD …",
    .summary =
        "Print what may stand in place of the last word, for the scripts of `weir completion`",
    .flags = CLI_RAW | CLI_HIDDEN,
    .run = run_complete,
};
