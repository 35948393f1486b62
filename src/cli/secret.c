/** weir secret: values that jobs are given and nobody is shown. */
#include "cli/input.h"
#include "cli/project_find.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX_BYTES ((size_t)64 << 10)

struct secret_options {
    struct cli_common common;
    char *project, *file;
    bool is_forced;
};

static const struct weir_option secret_options[] = {
    CLI_COMMON_OPTIONS(secret_options),
    WEIR_OPT(secret_options, project, "project", 0, TEXT, NULL, 0, 0, "NAME",
             "Whose it is (else your only project's, or default's)"),
    WEIR_OPT(secret_options, file, "file", 0, TEXT, NULL, 0, 0, "FILE",
             "Read the value there (else from standard input; a terminal asks for it)"),
    WEIR_OPT(secret_options, is_forced, "force", 0, BOOL, NULL, 0, 0, NULL,
             "With delete: also if an ION, a sweep or a job that is not over names it"),
};

/* Never from the command line: what stands there is seen by all who list processes. */
static weir_status read_value(struct cli_call *call, char **out, struct weir_error *err)
{
    const struct secret_options *options = call->options;
    char *text;
    size_t len;
    if (options->file == NULL && isatty(STDIN_FILENO) == 1) {
        return cli_read_password(call, "Value: ", NULL, out, err);
    }
    WEIR_TRY(cli_input_read(options->file != NULL ? options->file : "-", VALUE_MAX_BYTES + 1,
                            call->arena, &text, &len, err));
    if (strlen(text) != len || len > VALUE_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a secret is text of at most %zu bytes, without NUL",
                              VALUE_MAX_BYTES);
    }
    if (len > 0 && text[len - 1] == '\n') { /* echo's */
        text[len - 1] = '\0';
    }
    *out = text;
    return WEIR_OK;
}

static weir_status set(struct cli_call *call, struct weir_error *err)
{
    const struct secret_options *options = call->options;
    char *value;
    json_t *answer;
    WEIR_TRY(read_value(call, &value, err));
    json_t *body = json_pack("{s:s}", "value", value);
    if (body == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the value is no UTF-8 text");
    }
    weir_status status = cli_rest(
        call, "PUT",
        cli_path2(call, "/api/v1/projects/{}/secrets/{}", options->project, call->words[1]), body,
        &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("%s: set; jobs of project %s get it with --secret %s\n", call->words[1],
               options->project, call->words[1]);
    }
    json_decref(answer);
    return WEIR_OK;
}

static weir_status list(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"name", "NAME"}, {"created_by", "CREATED BY"}, {"updated_ms", "UPDATED"}};
    const struct secret_options *options = call->options;
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/projects/{}/secrets", options->project),
                      NULL, &answer, err));
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    return WEIR_OK;
}

static weir_status delete (struct cli_call *call, struct weir_error *err)
{
    const struct secret_options *options = call->options;
    const char *name = call->words[1];
    WEIR_TRY(cli_rest(call, "DELETE",
                      cli_path2(call,
                                options->is_forced ? "/api/v1/projects/{}/secrets/{}?force=1"
                                                   : "/api/v1/projects/{}/secrets/{}",
                                options->project, name),
                      NULL, NULL, err));
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:b}", "name", name, "deleted", 1));
    } else {
        printf("%s: deleted\n", name);
    }
    return WEIR_OK;
}

static weir_status run_secret(struct cli_call *call, struct weir_error *err)
{
    static const struct {
        const char *name;
        size_t n_words;
        cli_fn run;
        const char *right;
    } verbs[] = {{"set", 2, set, "change secrets"},
                 {"list", 1, list, "change secrets"},
                 {"delete", 2, delete, "change secrets"}};

    struct secret_options *options = call->options;
    if (options->is_forced && strcmp(call->words[0], "delete") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--force goes with delete");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, call->words[0]) == 0 && verbs[i].n_words == call->n_words) {
            const char *project;
            WEIR_TRY(cli_project_find(call, options->project, verbs[i].right, &project, err));
            options->project = weir_arena_strdup(call->arena, project);
            return verbs[i].run(call, err);
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir secret %s", call->command->usage);
}

const struct cli_command cli_secret = {
    .name = "secret",
    .usage = "set NAME [--file FILE] | list | delete NAME [--force]",
    .summary = "Keep passwords and tokens for the jobs of a project",
    .help =
        "A value is stored encrypted, given to the jobs that name it (weir job run --secret), and\n"
        "shown to nobody. It is read from standard input, a file or the terminal.",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(secret_options, secret_options),
    .run = run_secret,
};
