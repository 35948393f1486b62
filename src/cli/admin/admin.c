/** weir project, user, group, token, session, whoami: who may do what. */
#include "cli/admin/project.h"

#include "base/clock.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static const struct weir_option project_options[] = {
    CLI_COMMON_OPTIONS(cli_project_options),
    WEIR_OPT(cli_project_options, role, "role", 0, TEXT, "viewer", 0, 0, "ROLE",
             "viewer, approver, operator, data-scientist, ml-engineer or admin of this project, or "
             "one that was defined (weir role)"),
    WEIR_OPT(cli_project_options, is_group, "group", 0, BOOL, NULL, 0, 0, "",
             "NAME is a group: all in it get the role"),
    CLI_TEXT(cli_project_options, description, "description", 0, "TEXT", "What it is for"),
    CLI_LIST(cli_project_options, retention, "retention", 0, "KIND=AGE",
             "Keep what is the project's so long: 30d, 12h, forever, default; may be repeated"),
    WEIR_OPT(cli_project_options, is_dry_run, "dry-run", 0, BOOL, NULL, 0, 0, "",
             "Only say what would go"),
};

const struct cli_command cli_project = {
    .name = "project",
    .usage = "create NAME [--description TEXT] | grant PROJECT NAME [--group] [--role ROLE] | "
             "revoke PROJECT NAME [--group] | retention NAME | set NAME --retention KIND=AGE … "
             "[--dry-run]",
    .summary = "Create a project; give and take roles in it; change how long it keeps things",
    .help = "retention lists how long the project keeps what is its own, and what it may set; set "
            "--retention\n"
            "changes that with the next sweep, and with --dry-run says what would go.",
    .flags = CLI_YAML,
    CLI_WORDS(2, 3),
    CLI_OPTIONS(cli_project_options, project_options),
    // clang-format off: a table
    CLI_VERBS(
        {"create", 2, 2, .call = "POST /api/v1/projects", .body = "name=1 -description?",
         .say = "project/{1} created; `weir project grant {1} USER --role ROLE` lets people in"},
        {"grant", 3, 3, .call = "PUT /api/v1/projects/{1}/members/{-group?group|user}/{2}",
         .body = "-role", .say = "{-group?group|user} {2} has the role {-role} in project {1}"},
        {"revoke", 3, 3, .call = "DELETE /api/v1/projects/{1}/members/{-group?group|user}/{2}",
         CLI_DONE(2, "revoked")},
        {"set", 2, 2, .run = cli_project_set},
        {"retention", 2, 2, .call = "GET " CLI_PROJECT_RETENTION, .print = cli_print_retention}),
    // clang-format on
};

/* One word for roles was changed; the old one is taken for one version. */
static char *role_word(char *role)
{
    if (strcmp(role, "scientist") == 0) { /* old word */
        (void)fprintf(stderr,
                      "warning: role \"scientist\" is called \"ml-engineer\" now\n"); /* old word */
        static char now[] = "ml-engineer";
        return now;
    }
    return role;
}

struct user_options {
    struct cli_common common;
    char *role, *kind, *password_file;
};

static const struct weir_option user_options[] = {
    CLI_COMMON_OPTIONS(user_options),
    WEIR_OPT(user_options, role, "role", 0, TEXT, "viewer", 0, 0, "ROLE",
             "member, viewer, approver, operator, data-scientist, ml-engineer or admin"),
    WEIR_OPT(user_options, kind, "kind", 0, TEXT, "person", 0, 0, "person|service",
             "Who stands behind it"),
    CLI_TEXT(user_options, password_file, "password-file", 0, "FILE",
             "Read the password's line there, not from the terminal"),
};

static weir_status ask_password(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct user_options *options = call->options;
    char *password;
    WEIR_TRY(cli_read_password(call, "New password: ", options->password_file, &password, err));
    json_object_set_new(body, "password", json_string(password));
    return WEIR_OK;
}

/* Of the option and of `user role NAME ROLE`. */
static weir_status take_role(struct cli_call *call, json_t *body, struct weir_error *err)
{
    struct user_options *options = call->options;
    char **role = call->n_words > 2 ? &call->words[2] : &options->role;
    (void)body, (void)err;
    *role = role_word(*role);
    return WEIR_OK;
}

const struct cli_command cli_user = {
    .name = "user",
    .usage = "create NAME [--role ROLE] [--kind person|service] | role NAME ROLE | disable NAME | "
             "enable NAME | delete NAME | password NAME [--password-file FILE]",
    .summary = "Create, change, disable or delete a user; set their password",
    .flags = CLI_YAML,
    CLI_WORDS(2, 3),
    CLI_OPTIONS(user_options, user_options),
    // clang-format off: a table
    CLI_VERBS({"create", 2, 2, take_role, .call = "POST /api/v1/users",
               .body = "name=1 -role -kind",
               .say = "user/{1} created, as {-role}; `weir {-kind=person?user password|token "
                      "create NAME --user} {1}` "
                      "{-kind=person?gives them a password|makes them a token}"},
              {"role", 3, 3, take_role, .call = "PATCH /api/v1/users/{1}", .body = "role=2",
               .say = "user/{1}: role {2}"},
              {"disable", 2, 2, .call = "PATCH /api/v1/users/{1}", .body = "is_disabled=true",
               .say = "user/{1}: disabled"},
              {"enable", 2, 2, .call = "PATCH /api/v1/users/{1}", .body = "is_disabled=false",
               .say = "user/{1}: enabled"},
              {"delete", 2, 2, .call = "DELETE /api/v1/users/{1}", CLI_DONE(1, "deleted")},
              {"password", 2, 2, ask_password, .call = "PUT /api/v1/users/{1}/password", .body = "",
               CLI_DONE(1, "set")}),
    // clang-format on
};

struct token_options {
    struct cli_common common;
    char *role, *user, *node, *project;
    int64_t expires_days;
};

static const struct weir_option token_options[] = {
    CLI_COMMON_OPTIONS(token_options),
    WEIR_OPT(token_options, role, "role", 0, TEXT, "viewer", 0, 0, "ROLE",
             "viewer, approver, operator, data-scientist, ml-engineer, admin, agent, or one that "
             "was defined (weir role)"),
    CLI_TEXT(token_options, user, "user", 0, "USER", "Whose it is (else yours)"),
    CLI_TEXT(token_options, node, "node", 0, "NAME", "Of role agent: the node it is for"),
    CLI_TEXT(token_options, project, "project", 0, "PROJECT", "The only project it is for"),
    WEIR_OPT(token_options, expires_days, "expires-days", 0, INT, "0", 0, 36500, "N",
             "When it ends; 0: never"),
};

static weir_status take_expiry(struct cli_call *call, json_t *body, struct weir_error *err)
{
    struct token_options *options = call->options;
    int64_t days = options->expires_days;
    (void)err;
    options->role = role_word(options->role);
    json_object_set_new(body, "expires_ms",
                        json_integer(days > 0 ? weir_time_ms() + days * DAY_MS : 0));
    return WEIR_OK;
}

const struct cli_command cli_token = {
    .name = "token",
    .usage = "create NAME [--role ROLE] [--user USER] [--node NODE] [--project PROJECT] "
             "[--expires-days N] | revoke ID",
    .summary = "Create a token for a program, its secret is shown once; or revoke one",
    .flags = CLI_YAML,
    CLI_WORDS(2, 2),
    CLI_OPTIONS(token_options, token_options),
    // clang-format off: a table
    CLI_VERBS({"create", 2, 2, take_expiry, .call = "POST /api/v1/tokens",
               .body = "name=1 -role -user -node -project"},
              {"revoke", 2, 2, .of = "token", .call = "DELETE /api/v1/tokens/{@}",
               .say = "{@}: revoked", .gives = "name=@ revoked=true"}),
    // clang-format on
};

const struct cli_command cli_session = {
    .name = "session",
    .usage = "end ID",
    .summary = "End a browser session (weir get sessions lists them)",
    CLI_WORDS(2, 2),
    CLI_PLAIN,
    CLI_VERBS({"end", 2, 2, .of = "session", .call = "DELETE /api/v1/sessions/{@}",
               .say = "{@}: ended", .gives = "name=@ ended=true"}),
};

/* ---- groups ---------------------------------------------------------------------------------- */

struct group_options {
    struct cli_common common;
    char *description;
};

static const struct weir_option group_options[] = {
    CLI_COMMON_OPTIONS(group_options),
    CLI_TEXT(group_options, description, "description", 0, "TEXT", "Who they are"),
};

const struct cli_command cli_group = {
    .name = "group",
    .usage = "create NAME [--description TEXT] | delete NAME | add GROUP USER | remove GROUP USER",
    .summary = "Create groups of users, and say who is in them",
    .flags = CLI_YAML,
    CLI_WORDS(2, 3),
    CLI_OPTIONS(group_options, group_options),
    // clang-format off: a table
    CLI_VERBS(
        {"create", 2, 2, .call = "POST /api/v1/groups", .body = "name=1 -description?",
         .say = "group/{1} created; `weir group add {1} USER` puts people into it"},
        {"delete", 2, 2, .call = "DELETE /api/v1/groups/{1}", CLI_DONE(1, "deleted")},
        {"add", 3, 3, .call = "PUT /api/v1/groups/{1}/members/{2}", .body = "",
         .say = "user {2} is in group {1}"},
        {"remove", 3, 3, .call = "DELETE /api/v1/groups/{1}/members/{2}", CLI_DONE(2, "removed")}),
    // clang-format on
};

/* ---- who am I -------------------------------------------------------------------------------- */

static void print_whoami(struct cli_call *call, const json_t *answer)
{
    json_t *rights, *gone;
    const char *project;
    size_t i;
    printf("%s: %s on the platform\n", cli_text(call, answer, "user"),
           cli_text(call, answer, "role"));
    json_object_foreach(json_object_get(answer, "projects"), project, rights)
    {
        printf("in project %s you may", project);
        for (size_t k = 0; k < json_array_size(rights); k++) {
            printf("%s %s", k == 0 ? "" : ",", json_string_value(json_array_get(rights, k)));
        }
        printf("\n");
    }
    json_array_foreach(json_object_get(answer, "gone_roles"), i, gone)
    {
        printf("in project %s your role %s is gone: it gives no rights\n",
               cli_text(call, gone, "project"), cli_text(call, gone, "role"));
    }
}

const struct cli_command cli_whoami = {
    .name = "whoami",
    .usage = "[-o json]",
    .summary = "Say who you are, and what you may in which project",
    CLI_PLAIN,
    CLI_VERBS({.call = "GET /api/v1/session", .print = print_whoami}),
};
