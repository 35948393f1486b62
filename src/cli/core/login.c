/** weir login, logout: a browser's link, a token for a password, servers that are kept. */
#include "cli/core/context.h"
#include "cli/core/verb.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 128

struct login_options {
    struct cli_common common;
    char *user, *password_file, *name, *role, *project;
    int64_t expires_days;
    bool wants_env;
};

static const struct weir_option login_options[] = {
    CLI_COMMON_OPTIONS(login_options),
    CLI_TEXT(login_options, user, "user", 0, "USER",
             "Log in as this user with a password: with URL keep the new token, else print it"),
    CLI_FLAG(
        login_options, wants_env, "env", 0,
        "Print what curl and MLflow's client need, for the shell: eval \"$(weir login --env)\""),
    CLI_TEXT(login_options, password_file, "password-file", 0, "FILE",
             "Read the password's line there, not from the terminal"),
    WEIR_OPT(login_options, name, "name", 0, TEXT, "login", 0, 0, "NAME", "Of the token"),
    CLI_TEXT(login_options, role, "role", 0, "ROLE", "Give the token at most this role"),
    CLI_TEXT(login_options, project, "project", 0, "PROJECT",
             "Give the token this project only; with --env: MLflow's runs are its"),
    WEIR_OPT(login_options, expires_days, "expires-days", 0, INT, "30", 1, 366, "N",
             "When the token ends"),
};

/* A new token for a password. A new reference. */
static weir_status ask_token(struct cli_call *call, const char *user, json_t **out,
                             struct weir_error *err)
{
    const struct login_options *options = call->options;
    char *password;
    WEIR_TRY(cli_read_password(call, "Password: ", options->password_file, &password, err));
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:s,s:s,s:s*,s:s*,s:I}", "user", user, "password", password,
                             "token", options->name, "role", options->role, "project",
                             options->project, "expires_days", (json_int_t)options->expires_days);
    return cli_rest(call, "POST", "/api/v1/password-login", body, out, err);
}

static weir_status log_in_with_password(struct cli_call *call, struct weir_error *err)
{
    const struct login_options *options = call->options;
    json_t *answer;
    WEIR_TRY(ask_token(call, options->user, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("export WEIR_TOKEN=%s\n", cli_text(call, answer, "secret"));
        (void)fprintf(stderr, "This token is shown once. `weir token revoke %s` ends it.\n",
                      cli_text(call, answer, "id"));
    }
    json_decref(answer);
    return WEIR_OK;
}

/* ---- for other programs ------------------------------------------------------------------------ */

/* One word to a shell, whatever is in it. */
static char *quoted(struct cli_call *call, const char *text)
{
    char *out = weir_arena_strdup(call->arena, "'");
    for (; *text != '\0'; text++) {
        out = weir_arena_printf(call->arena, *text == '\'' ? "%s'\\''" : "%s%c", out, *text);
    }
    return weir_arena_printf(call->arena, "%s'", out);
}

static weir_status print_env(struct cli_call *call, struct weir_error *err)
{
    const struct login_options *options = call->options;
    struct cli_context context;
    WEIR_TRY(cli_context_find(call, &context, err));
    WEIR_TRY(cli_connect(call, err));
    const char *server = weir_client_server(call->client), *token = weir_client_token(call->client);
    const char *ca_file = call->common->ca_file != NULL ? call->common->ca_file : context.ca_file;
    const char *tracking = options->project != NULL
                               ? weir_arena_printf(call->arena, "%s%s", server,
                                                   cli_path1(call, "/p/{}", options->project))
                               : server;
    if (token == NULL) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "you show no token to %s: log in with `weir login %s`", server,
                              server);
    }
    json_t *env =
        json_pack("{s:s,s:s,s:s,s:s,s:s*,s:s*,s:s*}", "WEIR_SERVER", server, "WEIR_TOKEN", token,
                  "MLFLOW_TRACKING_URI", tracking, "MLFLOW_TRACKING_TOKEN", token, "WEIR_CA_FILE",
                  ca_file, "CURL_CA_BUNDLE", ca_file, "REQUESTS_CA_BUNDLE", ca_file);
    const char *name;
    json_t *value;
    if (cli_is_json(call)) {
        cli_print_json(env);
    } else {
        json_object_foreach(env, name, value)
        {
            printf("export %s=%s\n", name, quoted(call, json_string_value(value)));
        }
    }
    json_decref(env);
    return WEIR_OK;
}

/* ---- a server that is kept ---------------------------------------------------------------------- */

/* "lab" of https://lab:8470/, in the arena. */
static char *name_of_server(struct cli_call *call, const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    return weir_arena_memdup(call->arena, host, strcspn(host, ":/"));
}

/* Who: --user, or asked for at the terminal. */
static weir_status ask_user(struct cli_call *call, char **out, struct weir_error *err)
{
    const struct login_options *options = call->options;
    char *line = weir_arena_alloc(call->arena, NAME_MAX_BYTES);
    if (options->user != NULL) {
        *out = options->user;
        return WEIR_OK;
    }
    if (isatty(STDIN_FILENO) != 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "as whom? weir login URL --user USER, or with a token that you have: "
                              "weir login URL --token TOKEN");
    }
    (void)fprintf(stderr, "User: ");
    if (fgets(line, NAME_MAX_BYTES, stdin) == NULL || line[strcspn(line, "\n")] == '\0') {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "no user was given");
    }
    line[strcspn(line, "\n")] = '\0';
    *out = line;
    return WEIR_OK;
}

static weir_status keep_server(struct cli_call *call, struct weir_error *err)
{
    const struct login_options *options = call->options;
    struct cli_common *common = call->common;
    json_t *answer = NULL, *session = NULL;
    char *user = NULL, *name = common->context;
    common->server = call->words[0];
    common->context = NULL;
    struct cli_context context = {.server = common->server, .token = common->token};
    context.ca_file = common->ca_file != NULL ? realpath(common->ca_file, NULL) : NULL;
    if (common->token == NULL || options->user != NULL) {
        common->token = NULL;
        WEIR_TRY(ask_user(call, &user, err));
        WEIR_TRY(ask_token(call, user, &answer, err));
        context.token = cli_text(call, answer, "secret");
        context.token_id = cli_text(call, answer, "id");
        json_decref(answer);
        weir_client_close(call->client); /* the next call shows the token */
        call->client = NULL;
        common->token = weir_arena_strdup(call->arena, context.token);
    }
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/session", NULL, &session, err));
    context.server = weir_arena_strdup(call->arena, weir_client_server(call->client));
    context.name = name != NULL ? name : name_of_server(call, context.server);
    weir_status status = cli_context_keep(call, &context, err);
    if (status == WEIR_OK && cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:s,s:O}", "context", context.name, "server",
                                   context.server, "user", json_object_get(session, "user")));
    } else if (status == WEIR_OK) {
        bool has_state = common->state != NULL && common->state[0] != '\0';
        printf(
            "%s: you are %s at %s; commands go there from now on%s (see `weir context` and `weir "
            "logout`)\n",
            context.name, cli_text(call, session, "user"), context.server,
            has_state ? ", where neither WEIR_STATE nor --state is given" : "");
    }
    json_decref(session);
    free((char *)context.ca_file);
    return status;
}

static weir_status run_login(struct cli_call *call, struct weir_error *err)
{
    const struct login_options *options = call->options;
    static const struct cli_verb link = {
        .call = "POST /api/v1/session/link",
        .say = "{url}",
        .aside = "Open it in a browser; it works once, for 15 minutes."};
    if (options->wants_env) {
        return print_env(call, err);
    }
    if (call->n_words > 0) {
        return keep_server(call, err);
    }
    if (options->user != NULL) {
        return log_in_with_password(call, err);
    }
    return cli_verb_run(call, &link, err);
}

const struct cli_command cli_login = {
    .name = "login",
    .usage = "| URL [--user USER] [--context NAME] | --user USER | --env [--project PROJECT]",
    .summary = "Print a link that logs a browser in; with URL, log in to that server and keep it",
    .help =
        "Without a word: a one-time link for a browser. With URL: a token for a password (or the "
        "one of\n--token) is kept as a context, which later commands use; see weir context. With "
        "--user alone: the\ntoken is printed. With --env: WEIR_SERVER, WEIR_TOKEN, "
        "MLFLOW_TRACKING_URI and\nMLFLOW_TRACKING_TOKEN, as they are for you now.",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(login_options, login_options),
    .run = run_login,
};

/* ---- logout --------------------------------------------------------------------------------------- */

static weir_status run_logout(struct cli_call *call, struct weir_error *err)
{
    struct cli_context context;
    if (call->n_words > 0) { /* that one, whatever the environment says */
        call->common->context = call->words[0];
        call->common->server = call->common->token = NULL;
    }
    WEIR_TRY(cli_context_find(call, &context, err));
    if (context.name == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "you are logged in to no server: `weir context` lists those that are "
                              "kept; `weir get sessions` lists browsers");
    }
    weir_status revoked = WEIR_OK;
    if (context.token_id != NULL) {
        revoked = cli_rest(call, "DELETE", cli_path1(call, "/api/v1/tokens/{}", context.token_id),
                           NULL, NULL, err);
    }
    if (revoked != WEIR_OK) {
        (void)fprintf(stderr, "weir: warning: the token could not be revoked: %s\n", err->message);
    }
    WEIR_TRY(cli_context_forget(call, context.name, err));
    cli_print_done(call, context.name, "logged out");
    return WEIR_OK;
}

const struct cli_command cli_logout = {
    .name = "logout",
    .usage = "[CONTEXT]",
    .summary = "Revoke the token of a context, and forget it",
    CLI_WORDS(0, 1),
    CLI_PLAIN,
    .run = run_logout,
};
