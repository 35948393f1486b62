/** weir role: define roles of projects. And the matrix of all roles, for weir explain roles. */
#include "cli/admin/role.h"
#include "cli/core/verb.h"

#include <string.h>

#define ROLE_BODY "-description -like rights=-right -without"

struct role_options {
    struct cli_common common;
    char *rights, *without, *like, *description;
};

static const struct weir_option role_options[] = {
    CLI_COMMON_OPTIONS(role_options),
    CLI_LIST(role_options, rights, "right", 0, "RIGHT",
             "It allows this: \"read models\" (weir explain roles lists all); may be repeated"),
    CLI_TEXT(role_options, like, "like", 0, "ROLE",
             "It allows in projects what this role does, and what --right names"),
    CLI_LIST(role_options, without, "without", 0, "RIGHT",
             "It does not allow this; may be repeated"),
    CLI_TEXT(role_options, description, "description", 0, "TEXT", "Whom it is for"),
};

static bool says_nothing(const struct role_options *options)
{
    return options->rights == NULL && options->without == NULL && options->like == NULL &&
           options->description == NULL;
}

static weir_status check_set(struct cli_call *call, json_t *body, struct weir_error *err)
{
    (void)body;
    return !says_nothing(call->options)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "weir role set %s: say what of it: --right, --like, --without or "
                                "--description",
                                call->words[1]);
}

static weir_status check_delete(struct cli_call *call, json_t *body, struct weir_error *err)
{
    (void)body;
    return says_nothing(call->options) ? WEIR_OK
                                       : weir_error_set(err, WEIR_ERR_INVALID, "usage: weir %s %s",
                                                        call->command->name, call->command->usage);
}

static void print_role(struct cli_call *call, const json_t *answer)
{
    size_t n = json_array_size(json_object_get(answer, "project_rights"));
    printf("role/%s allows %zu things in a project; `weir get role %s` lists them\n",
           call->words[1], n, call->words[1]);
}

const struct cli_command cli_role = {
    .name = "role",
    .usage = "create NAME [--right RIGHT …] [--like ROLE] [--without RIGHT …] [--description "
             "TEXT] | set NAME [--right RIGHT …] [--like ROLE] [--without RIGHT …] "
             "[--description TEXT] | delete NAME",
    .summary = "Define roles of projects, as sets of rights",
    .help = "weir explain roles shows every right and every role. --right and --like together are "
            "all that the\nrole allows; role set without both keeps what it has, less --without. "
            "weir project grant gives it.",
    .flags = CLI_YAML,
    CLI_WORDS(2, 2),
    CLI_OPTIONS(role_options, role_options),
    // clang-format off: a table
    CLI_VERBS(
        {"create", 2, 2, .call = "POST /api/v1/roles", .body = "name=1 " ROLE_BODY,
         .print = print_role},
        {"set", 2, 2, check_set, .call = "PUT /api/v1/roles/{1}", .body = ROLE_BODY,
         .print = print_role},
        {"delete", 2, 2, check_delete, .call = "DELETE /api/v1/roles/{1}", CLI_DONE(1, "deleted")}),
    // clang-format on
};

/* ---- the matrix ------------------------------------------------------------------------------ */

/* One right: what each role has of it, by the role's name. */
static json_t *row_of(const json_t *roles, const char *right)
{
    json_t *row = json_pack("{s:s}", "right", right);
    for (size_t i = 0; i < json_array_size(roles); i++) {
        const json_t *role = json_array_get(roles, i);
        bool everywhere = cli_has_text(json_object_get(role, "rights"), right);
        bool in_project = cli_has_text(json_object_get(role, "project_rights"), right);
        json_object_set_new(row, json_string_value(json_object_get(role, "name")),
                            json_string(in_project ? "yes" : (everywhere ? "platform" : "-")));
    }
    return row;
}

weir_status role_explain_all(struct cli_call *call, struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/roles", NULL, &answer, err));
    const json_t *roles = json_object_get(answer, "items"), *all = NULL;
    size_t n = json_array_size(roles);
    struct cli_column *columns = WEIR_ARENA_ARRAY(call->arena, n + 1, struct cli_column);
    columns[0] = (struct cli_column){"right", "RIGHT"};
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(roles, i), "name"));
        columns[i + 1] = (struct cli_column){name, name};
        if (strcmp(name, "admin") == 0) { /* has every right */
            all = json_object_get(json_array_get(roles, i), "rights");
        }
    }
    json_t *rows = json_array();
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_array_append_new(rows, row_of(roles, json_string_value(json_array_get(all, i))));
    }
    if (!cli_is_json(call)) {
        printf("yes: in the project where it is had, or in all if it is had on the platform; "
               "platform: only if\nit is had there. `weir role create` defines roles of "
               "projects.\n\n");
    }
    json_t *table = json_pack("{s:o}", "items", rows);
    cli_print_table(call, table, columns, n + 1);
    json_decref(table);
    json_decref(answer);
    return WEIR_OK;
}
