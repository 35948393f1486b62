/** weir secret: values that jobs are given and nobody is shown. */
#include "cli/admin/project_find.h"
#include "cli/core/input.h"
#include "cli/core/verb.h"

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
    CLI_TEXT(secret_options, project, "project", 0, "NAME",
             "Whose it is (else your only project's, or default's)"),
    CLI_TEXT(secret_options, file, "file", 0, "FILE",
             "Read the value there (else from standard input; a terminal asks for it)"),
    CLI_FLAG(secret_options, is_forced, "force", 0,
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

/* Whose the secret is: said, or found; and that --force stands with delete alone. */
static weir_status find_project(struct cli_call *call, json_t *body, struct weir_error *err)
{
    struct secret_options *options = call->options;
    const char *project;
    (void)body;
    if (options->is_forced && strcmp(call->words[0], "delete") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--force goes with delete");
    }
    WEIR_TRY(cli_project_find(call, options->project, "change secrets", &project, err));
    options->project = weir_arena_strdup(call->arena, project);
    return WEIR_OK;
}

static weir_status take_value(struct cli_call *call, json_t *body, struct weir_error *err)
{
    char *value;
    WEIR_TRY(find_project(call, body, err));
    WEIR_TRY(read_value(call, &value, err));
    return json_object_set_new(body, "value", json_string(value)) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the value is no UTF-8 text");
}

#define SECRETS "/api/v1/projects/{-project}/secrets"

const struct cli_command cli_secret = {
    .name = "secret",
    .usage = "set NAME [--file FILE] | list | delete NAME [--force]",
    .summary = "Keep passwords and tokens for the jobs of a project",
    .help =
        "A value is stored encrypted, given to the jobs that name it (weir job run --secret), and\n"
        "shown to nobody. It is read from standard input, a file or the terminal.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(secret_options, secret_options),
    // clang-format off: a table
    CLI_VERBS(
        {"set", 2, 2, take_value, .call = "PUT " SECRETS "/{1}", .body = "",
         .say = "{1}: set; jobs of project {-project} get it with --secret {1}"},
        {"list", 1, 1, find_project, .call = "GET " SECRETS,
         CLI_COLUMNS({"name", "NAME"}, {"created_by", "CREATED BY"}, {"updated_ms", "UPDATED"})},
        {"delete", 2, 2, find_project, .call = "DELETE " SECRETS "/{1}", .query = "-force",
         CLI_DONE(1, "deleted")}),
    // clang-format on
};
