#include "cli/command.h"

#include "base/file.h"
#include "cli/core/context.h"
#include "cli/core/document.h"
#include "cli/core/hint.h"
#include "cli/core/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct weir_option cli_plain_options[CLI_N_PLAIN_OPTIONS] = {CLI_COMMON_OPTIONS(cli_plain)};

/* --output takes what this command can print. */
static void print_options(const struct cli_command *command)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct weir_option *options = WEIR_ARENA_ARRAY(&arena, command->n_options, struct weir_option);
    memcpy(options, command->options, command->n_options * sizeof *options);
    for (size_t i = 0; i < command->n_options; i++) {
        if (strcmp(options[i].name, "output") == 0 && strcmp(options[i].arg, "text|json") == 0) {
            options[i].arg = weir_arena_printf(&arena, "text%s%s|json%s",
                                               (command->flags & CLI_NAME) != 0 ? "|name" : "",
                                               (command->flags & CLI_WIDE) != 0 ? "|wide" : "",
                                               (command->flags & CLI_YAML) != 0 ? "|yaml" : "");
        }
    }
    weir_options_print(options, command->n_options, stdout);
    weir_arena_fini(&arena);
}

void cli_print_help(const struct cli_command *command)
{
    printf("%s\n\nUsage: weir %s %s\n", command->summary, command->name, command->usage);
    if (command->help != NULL) {
        putchar('\n');
        cli_document_write(stdout, command->help);
        putchar('\n');
    }
    if (command->n_options > 0) {
        printf("\nOptions:\n");
        print_options(command);
    }
}

static weir_status check_words(const struct cli_call *call, struct weir_error *err)
{
    const struct cli_command *command = call->command;
    if (call->n_words < command->min_words || call->n_words > command->max_words) {
        const char *say = call->n_words > 0 ? cli_hint_second(command->name, call->words[0]) : NULL;
        return say != NULL ? weir_error_set(err, WEIR_ERR_INVALID,
                                            "there is no command \"%s %.40s\": say %s",
                                            command->name, call->words[0], say)
                           : weir_error_set(err, WEIR_ERR_INVALID, "usage: weir %s %s",
                                            command->name, command->usage);
    }
    const char *output = call->common->output;
    bool is_known = output == NULL || strcmp(output, "text") == 0 || strcmp(output, "json") == 0 ||
                    (strcmp(output, "wide") == 0 && (command->flags & CLI_WIDE) != 0) ||
                    (strcmp(output, "yaml") == 0 && (command->flags & CLI_YAML) != 0) ||
                    (strcmp(output, "name") == 0 && (command->flags & CLI_NAME) != 0);
    if (!is_known) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--output: expected text%s%s%s json, got \"%.40s\"",
                              (command->flags & CLI_NAME) != 0 ? ", name" : "",
                              (command->flags & CLI_WIDE) != 0 ? ", wide" : "",
                              (command->flags & CLI_YAML) != 0 ? ", yaml or" : " or", output);
    }
    return WEIR_OK;
}

/* An option of another program is called otherwise here; all other errors are as they are. */
static weir_status name_unknown_option(const struct cli_call *call, weir_status status,
                                       struct weir_error *err)
{
    const char *say = strstr(err->message, "unknown option") != NULL
                          ? cli_hint_option(call->command->name, call->argc, call->argv)
                          : NULL;
    size_t len = strcspn(err->message, ";");
    return say == NULL ? status
                       : weir_error_set(err, status, "%.*s; here it is %s", (int)len,
                                        weir_arena_strdup(call->arena, err->message), say);
}

bool cli_has_flag(const struct cli_call *call, const char *flag)
{
    size_t len = strlen(flag);
    for (int i = 0; i < call->argc && strcmp(call->argv[i], "--") != 0; i++) {
        if (strncmp(call->argv[i], flag, len) == 0 &&
            (call->argv[i][len] == '\0' || call->argv[i][len] == '=')) {
            return true;
        }
    }
    return false;
}

/* A context that is given as a flag goes before a server of the environment, and its token with it: that server's
 * token is for no other. */
static void prefer_flags(const struct cli_call *call)
{
    if (cli_has_flag(call, "--context") && !cli_has_flag(call, "--server")) {
        call->common->server = NULL;
        call->common->token = cli_has_flag(call, "--token") ? call->common->token : NULL;
    }
}

weir_status cli_call_run(struct cli_call *call, struct weir_error *err)
{
    const struct cli_command *command = call->command;
    if (command->flags & CLI_RAW) {
        return command->run(call, err);
    }
    call->options = weir_arena_alloc(call->arena, command->options_size);
    call->common = call->options;
    weir_status parsed =
        weir_options_parse(command->options, command->n_options, call->argc, call->argv,
                           call->arena, call->options, &call->words, &call->n_words, err);
    if (parsed != WEIR_OK) {
        return name_unknown_option(call, parsed, err);
    }
    if (call->common->is_help) {
        cli_print_help(command);
        return WEIR_OK;
    }
    WEIR_TRY(check_words(call, err));
    prefer_flags(call);
    weir_status status = command->run != NULL ? command->run(call, err) : cli_verbs_run(call, err);
    weir_client_close(call->client);
    return status;
}

int cli_call_end(struct cli_call *call, weir_status status, struct weir_error *err)
{
    if (fflush(stdout) != 0 && status == WEIR_OK) {
        status = weir_error_set(err, WEIR_ERR_IO, "cannot write to standard output");
    }
    if (status != WEIR_OK) {
        (void)fputs("weir: ", stderr);
        cli_document_write(stderr,
                           err->message[0] != '\0' ? err->message : weir_status_text(status));
        (void)fputc('\n', stderr);
    }
    weir_arena_fini(call->arena);
    return status == WEIR_OK ? call->exit_status : weir_status_exit(status);
}

char *cli_state_dir(struct weir_arena *arena, const char *given)
{
    const char *home = getenv("HOME");
    if (given != NULL && given[0] != '\0') { /* WEIR_STATE= is nothing given */
        return weir_arena_strdup(arena, given);
    }
    if (geteuid() == 0 || home == NULL) {
        return weir_arena_strdup(arena, "/var/lib/weir");
    }
    return weir_arena_printf(arena, "%s/.local/share/weir", home);
}

/* Who names authorities wants the server's certificate looked at: that nobody does is said. */
static weir_status check_authorities(const struct cli_common *common, struct weir_error *err)
{
    if (common->ca_file == NULL) {
        return WEIR_OK;
    }
    if (access(common->ca_file, R_OK) != 0) {
        return weir_error_set_errno(err, errno, "--ca-file %s cannot be read", common->ca_file);
    }
    if (common->server != NULL && strncmp(common->server, "http://", 7) == 0) {
        (void)fprintf(
            stderr,
            "weir: --ca-file changes nothing with %s: it is not encrypted, and who answers "
            "there proves nothing\n",
            common->server);
    }
    return WEIR_OK;
}

weir_status cli_connect(struct cli_call *call, struct weir_error *err)
{
    const struct cli_common *common = call->common;
    struct cli_context context;
    if (call->client != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_context_find(call, &context, err));
    WEIR_TRY(check_authorities(common, err));
    struct weir_client_config config = {
        .server = common->server != NULL ? common->server : context.server,
        .token = common->token != NULL ? common->token : context.token,
        .ca_file = common->ca_file != NULL ? common->ca_file : context.ca_file,
        .state_dir = cli_state_dir(call->arena, common->state)};
    return weir_client_open(&config, &call->client, err);
}

weir_status cli_rest(struct cli_call *call, const char *method, const char *path,
                     const json_t *body, json_t **out, struct weir_error *err)
{
    WEIR_TRY(cli_connect(call, err));
    return weir_client_call(call->client, method, path, body, out, err);
}

char *cli_path1(struct cli_call *call, const char *pattern, const char *a)
{
    return weir_client_path(call->arena, pattern, (const char *[]){a}, 1);
}

char *cli_path2(struct cli_call *call, const char *pattern, const char *a, const char *b)
{
    return weir_client_path(call->arena, pattern, (const char *[]){a, b}, 2);
}

char *cli_path3(struct cli_call *call, const char *pattern, const char *a, const char *b,
                const char *c)
{
    return weir_client_path(call->arena, pattern, (const char *[]){a, b, c}, 3);
}

char *cli_next_word(const struct cli_call *call, const char **list)
{
    if (*list == NULL) {
        return NULL;
    }
    const char *word = *list;
    size_t len = strcspn(word, "\n");
    *list = word[len] != '\0' ? word + len + 1 : NULL;
    return weir_arena_memdup(call->arena, word, len);
}

json_t *cli_list_of(const char *names)
{
    json_t *list = json_array();
    for (size_t len; *names != '\0'; names += len + (names[len] == ',')) {
        len = strcspn(names, ",");
        if (len > 0) {
            json_array_append_new(list, json_stringn(names, len));
        }
    }
    return list;
}

bool cli_has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

weir_status cli_may_write(const char *file, bool is_forced, struct weir_error *err)
{
    return !weir_path_exists(file) || is_forced
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_EXISTS,
                                "%s is there already: --force overwrites it, --file names another",
                                file);
}

weir_status cli_exec_beside(const char *program, char *const *argv, struct weir_error *err)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len > 0) {
        path[len] = '\0';
        char *slash = strrchr(path, '/');
        size_t room = slash != NULL ? sizeof path - (size_t)(slash + 1 - path) : 0;
        if (slash != NULL && strlen(program) < room) {
            memcpy(slash + 1, program, strlen(program) + 1);
            (void)execv(path, argv);
        }
    }
    (void)execvp(program, argv);
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND,
        "%s is neither beside this program nor in PATH: install it, or build it with "
        "`make`",
        program);
}
