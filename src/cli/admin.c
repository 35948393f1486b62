/** weir project, user, group, token, session, whoami: who may do what. */
#include "cli/command.h"

#include "base/clock.h"
#include "cli/find.h"
#include "cli/hint.h"
#include "cli/project.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

struct plain_options {
    struct cli_common common;
};

static const struct weir_option plain_options[] = {CLI_COMMON_OPTIONS(plain_options)};

/* Send a body (its reference is taken), and say what came of it: `line`, or the answer; NULL: the answer. */
static weir_status send_and_say(struct cli_call *call, const char *method, const char *path,
                                json_t *body, const char *line, struct weir_error *err)
{
    json_t *answer;
    weir_status status = cli_rest(call, method, path, body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (line != NULL) {
        cli_print_said(call, answer, line);
    } else {
        cli_print_object(call, answer);
    }
    json_decref(answer);
    return WEIR_OK;
}

/* DELETE this path, and say what became of `name`. */
static weir_status delete_and_say(struct cli_call *call, const char *path, const char *name,
                                  const char *what, struct weir_error *err)
{
    WEIR_TRY(cli_rest(call, "DELETE", path, NULL, NULL, err));
    if (cli_is_json(call)) {
        json_t *answer = json_pack("{s:s,s:b}", "name", name, what, true);
        cli_print_json(answer);
        json_decref(answer);
    } else {
        printf("%s: %s\n", name, what);
    }
    return WEIR_OK;
}

/** A command's first word: how many words belong to it, itself included, and what it does. */
struct verb {
    const char *name;
    size_t n_words;
    cli_fn run;
};

static weir_status run_verb(struct cli_call *call, const struct verb *verbs, size_t n_verbs,
                            struct weir_error *err)
{
    for (size_t i = 0; i < n_verbs; i++) {
        if (strcmp(verbs[i].name, call->words[0]) == 0 && verbs[i].n_words == call->n_words) {
            return verbs[i].run(call, err);
        }
    }
    const char *say = cli_hint_second(call->command->name, call->words[0]);
    return say != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID, "there is no command \"%s %.40s\": say %s",
                                call->command->name, call->words[0], say)
               : weir_error_set(err, WEIR_ERR_INVALID, "usage: weir %s %s", call->command->name,
                                call->command->usage);
}

static const struct weir_option project_options[] = {
    CLI_COMMON_OPTIONS(cli_project_options),
    WEIR_OPT(cli_project_options, role, "role", 0, TEXT, "viewer", 0, 0, "ROLE",
             "viewer, approver, operator, data-scientist, ml-engineer or admin of this project, or "
             "one that was defined (weir role)"),
    WEIR_OPT(cli_project_options, is_group, "group", 0, BOOL, NULL, 0, 0, "",
             "NAME is a group: all in it get the role"),
    WEIR_OPT(cli_project_options, description, "description", 0, TEXT, NULL, 0, 0, "TEXT",
             "What it is for"),
    WEIR_OPT(cli_project_options, retention, "retention", 0, LIST, NULL, 0, 0, "KIND=AGE",
             "Keep what is the project's so long: 30d, 12h, forever, default; may be repeated"),
    WEIR_OPT(cli_project_options, is_dry_run, "dry-run", 0, BOOL, NULL, 0, 0, "",
             "Only say what would go"),
};

static weir_status create_project(struct cli_call *call, struct weir_error *err)
{
    const struct cli_project_options *options = call->options;
    return send_and_say(
        call, "POST", "/api/v1/projects",
        json_pack("{s:s,s:s?}", "name", call->words[1], "description", options->description),
        weir_arena_printf(
            call->arena,
            "project/%s created; `weir project grant %s USER --role ROLE` lets people in",
            call->words[1], call->words[1]),
        err);
}

/* …/members/user/NAME, or group/NAME with --group. */
static const char *member_path(struct cli_call *call)
{
    const struct cli_project_options *options = call->options;
    return cli_path3(call, "/api/v1/projects/{}/members/{}/{}", call->words[1],
                     options->is_group ? "group" : "user", call->words[2]);
}

static weir_status grant(struct cli_call *call, struct weir_error *err)
{
    const struct cli_project_options *options = call->options;
    return send_and_say(call, "PUT", member_path(call), json_pack("{s:s}", "role", options->role),
                        weir_arena_printf(call->arena, "%s %s has the role %s in project %s",
                                          options->is_group ? "group" : "user", call->words[2],
                                          options->role, call->words[1]),
                        err);
}

static weir_status revoke(struct cli_call *call, struct weir_error *err)
{
    return delete_and_say(call, member_path(call), call->words[2], "revoked", err);
}

static weir_status run_project(struct cli_call *call, struct weir_error *err)
{
    static const struct verb verbs[] = {{"create", 2, create_project},
                                        {"grant", 3, grant},
                                        {"revoke", 3, revoke},
                                        {"set", 2, cli_project_set},
                                        {"retention", 2, cli_project_retention}};
    return run_verb(call, verbs, WEIR_ARRAY_LEN(verbs), err);
}

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
    .min_words = 2,
    .max_words = 3,
    CLI_OPTIONS(cli_project_options, project_options),
    .run = run_project,
};

/* One word for roles was changed; the old one is taken for one version. */
static const char *role_word(const char *role)
{
    if (strcmp(role, "scientist") == 0) { /* old word */
        (void)fprintf(stderr,
                      "warning: role \"scientist\" is called \"ml-engineer\" now\n"); /* old word */
        return "ml-engineer";
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
    WEIR_OPT(user_options, password_file, "password-file", 0, TEXT, NULL, 0, 0, "FILE",
             "Read the password's line there, not from the terminal"),
};

static weir_status set_password(struct cli_call *call, struct weir_error *err)
{
    const struct user_options *options = call->options;
    char *password;
    WEIR_TRY(cli_read_password(call, "New password: ", options->password_file, &password, err));
    json_t *body = json_pack("{s:s}", "password", password);
    weir_status status = cli_rest(
        call, "PUT", cli_path1(call, "/api/v1/users/{}/password", call->words[1]), body, NULL, err);
    json_decref(body);
    WEIR_TRY(status);
    cli_print_done(call, call->words[1], "set");
    return WEIR_OK;
}

static weir_status create_user(struct cli_call *call, struct weir_error *err)
{
    const struct user_options *options = call->options;
    const char *role = role_word(options->role), *name = call->words[1];
    bool is_person = strcmp(options->kind, "person") == 0;
    return send_and_say(
        call, "POST", "/api/v1/users",
        json_pack("{s:s,s:s,s:s}", "name", name, "role", role, "kind", options->kind),
        weir_arena_printf(call->arena, "user/%s created, as %s; `weir %s %s%s", name, role,
                          is_person ? "user password" : "token create NAME --user", name,
                          is_person ? "` gives them a password" : "` makes them a token"),
        err);
}

static weir_status change_user(struct cli_call *call, json_t *change, const char *what,
                               struct weir_error *err)
{
    return send_and_say(call, "PATCH", cli_path1(call, "/api/v1/users/{}", call->words[1]), change,
                        weir_arena_printf(call->arena, "user/%s: %s", call->words[1], what), err);
}

static weir_status disable_user(struct cli_call *call, struct weir_error *err)
{
    return change_user(call, json_pack("{s:b}", "is_disabled", true), "disabled", err);
}

static weir_status enable_user(struct cli_call *call, struct weir_error *err)
{
    return change_user(call, json_pack("{s:b}", "is_disabled", false), "enabled", err);
}

static weir_status set_role(struct cli_call *call, struct weir_error *err)
{
    const char *role = role_word(call->words[2]);
    return change_user(call, json_pack("{s:s}", "role", role),
                       weir_arena_printf(call->arena, "role %s", role), err);
}

static weir_status delete_user(struct cli_call *call, struct weir_error *err)
{
    return delete_and_say(call, cli_path1(call, "/api/v1/users/{}", call->words[1]), call->words[1],
                          "deleted", err);
}

static const struct verb user_verbs[] = {
    {"create", 2, create_user}, {"role", 3, set_role},      {"disable", 2, disable_user},
    {"enable", 2, enable_user}, {"delete", 2, delete_user}, {"password", 2, set_password},
};

static weir_status run_user(struct cli_call *call, struct weir_error *err)
{
    return run_verb(call, user_verbs, WEIR_ARRAY_LEN(user_verbs), err);
}

const struct cli_command cli_user = {
    .name = "user",
    .usage = "create NAME [--role ROLE] [--kind person|service] | role NAME ROLE | disable NAME | "
             "enable NAME | delete NAME | password NAME [--password-file FILE]",
    .summary = "Create, change, disable or delete a user; set their password",
    .flags = CLI_YAML,
    .min_words = 2,
    .max_words = 3,
    CLI_OPTIONS(user_options, user_options),
    .run = run_user,
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
    WEIR_OPT(token_options, user, "user", 0, TEXT, NULL, 0, 0, "USER", "Whose it is (else yours)"),
    WEIR_OPT(token_options, node, "node", 0, TEXT, NULL, 0, 0, "NAME",
             "Of role agent: the node it is for"),
    WEIR_OPT(token_options, project, "project", 0, TEXT, NULL, 0, 0, "PROJECT",
             "The only project it is for"),
    WEIR_OPT(token_options, expires_days, "expires-days", 0, INT, "0", 0, 36500, "N",
             "When it ends; 0: never"),
};

static weir_status create_token(struct cli_call *call, struct weir_error *err)
{
    const struct token_options *options = call->options;
    int64_t expires_ms =
        options->expires_days > 0 ? weir_time_ms() + options->expires_days * DAY_MS : 0;
    return send_and_say(call, "POST", "/api/v1/tokens",
                        json_pack("{s:s,s:s,s:s*,s:s*,s:s*,s:I}", "name", call->words[1], "role",
                                  role_word(options->role), "user", options->user, "node",
                                  options->node, "project", options->project, "expires_ms",
                                  (json_int_t)expires_ms),
                        NULL, err); /* its secret is in it */
}

static weir_status revoke_token(struct cli_call *call, struct weir_error *err)
{
    char *id;
    WEIR_TRY(cli_find(call, &find_token, call->words[1], &id, err));
    return delete_and_say(call, cli_path1(call, "/api/v1/tokens/{}", id), id, "revoked", err);
}

static const struct verb token_verbs[] = {{"create", 2, create_token}, {"revoke", 2, revoke_token}};

static weir_status run_token(struct cli_call *call, struct weir_error *err)
{
    return run_verb(call, token_verbs, WEIR_ARRAY_LEN(token_verbs), err);
}

const struct cli_command cli_token = {
    .name = "token",
    .usage = "create NAME [--role ROLE] [--user USER] [--node NODE] [--project PROJECT] "
             "[--expires-days N] | revoke ID",
    .summary = "Create a token for a program, its secret is shown once; or revoke one",
    .flags = CLI_YAML,
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(token_options, token_options),
    .run = run_token,
};

static weir_status end_session(struct cli_call *call, struct weir_error *err)
{
    char *id;
    WEIR_TRY(cli_find(call, &find_session, call->words[1], &id, err));
    return delete_and_say(call, cli_path1(call, "/api/v1/sessions/{}", id), id, "ended", err);
}

static weir_status run_session(struct cli_call *call, struct weir_error *err)
{
    static const struct verb verbs[] = {{"end", 2, end_session}};
    return run_verb(call, verbs, WEIR_ARRAY_LEN(verbs), err);
}

const struct cli_command cli_session = {
    .name = "session",
    .usage = "end ID",
    .summary = "End a browser session (weir get sessions lists them)",
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_session,
};

/* ---- groups ---------------------------------------------------------------------------------- */

struct group_options {
    struct cli_common common;
    char *description;
};

static const struct weir_option group_options[] = {
    CLI_COMMON_OPTIONS(group_options),
    WEIR_OPT(group_options, description, "description", 0, TEXT, NULL, 0, 0, "TEXT",
             "Who they are"),
};

static weir_status create_group(struct cli_call *call, struct weir_error *err)
{
    const struct group_options *options = call->options;
    return send_and_say(
        call, "POST", "/api/v1/groups",
        json_pack("{s:s,s:s?}", "name", call->words[1], "description", options->description),
        weir_arena_printf(call->arena,
                          "group/%s created; `weir group add %s USER` puts people into it",
                          call->words[1], call->words[1]),
        err);
}

static weir_status delete_group(struct cli_call *call, struct weir_error *err)
{
    return delete_and_say(call, cli_path1(call, "/api/v1/groups/{}", call->words[1]),
                          call->words[1], "deleted", err);
}

static const char *group_path(struct cli_call *call)
{
    return cli_path2(call, "/api/v1/groups/{}/members/{}", call->words[1], call->words[2]);
}

static weir_status add_to_group(struct cli_call *call, struct weir_error *err)
{
    return send_and_say(
        call, "PUT", group_path(call), json_object(),
        weir_arena_printf(call->arena, "user %s is in group %s", call->words[2], call->words[1]),
        err);
}

static weir_status remove_from_group(struct cli_call *call, struct weir_error *err)
{
    return delete_and_say(call, group_path(call), call->words[2], "removed", err);
}

static weir_status run_group(struct cli_call *call, struct weir_error *err)
{
    static const struct verb verbs[] = {{"create", 2, create_group},
                                        {"delete", 2, delete_group},
                                        {"add", 3, add_to_group},
                                        {"remove", 3, remove_from_group}};
    return run_verb(call, verbs, WEIR_ARRAY_LEN(verbs), err);
}

const struct cli_command cli_group = {
    .name = "group",
    .usage = "create NAME [--description TEXT] | delete NAME | add GROUP USER | remove GROUP USER",
    .summary = "Create groups of users, and say who is in them",
    .flags = CLI_YAML,
    .min_words = 2,
    .max_words = 3,
    CLI_OPTIONS(group_options, group_options),
    .run = run_group,
};

/* ---- who am I -------------------------------------------------------------------------------- */

static weir_status run_whoami(struct cli_call *call, struct weir_error *err)
{
    json_t *answer, *rights, *gone;
    const char *project;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/session", NULL, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
        json_decref(answer);
        return WEIR_OK;
    }
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
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_whoami = {
    .name = "whoami",
    .usage = "[-o json]",
    .summary = "Say who you are, and what you may in which project",
    .min_words = 0,
    .max_words = 0,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_whoami,
};
