#include "store/tenant.h"

#include "base/grow.h"
#include "store/role.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field group_fields[] = {
    WEIR_FIELD(weir_group, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Unique name"),
    WEIR_FIELD(weir_group, description, TEXT, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "Who they are"),
    WEIR_FIELD(weir_group, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
};
static const struct weir_field group_member_fields[] = {
    WEIR_FIELD(weir_group_member, name,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "GROUP/USER"),
    WEIR_FIELD(weir_group_member, group,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Group"),
    WEIR_FIELD(weir_group_member, user,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who is in it"),
    WEIR_FIELD(weir_group_member, issuer,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who says so with each login; absent: an admin put the user in"),
    WEIR_FIELD(weir_group_member, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "Since when"),
};
static const struct weir_field project_member_fields[] = {
    WEIR_FIELD(weir_project_member, name,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "PROJECT/user/NAME or PROJECT/group/NAME"),
    WEIR_FIELD(weir_project_member, project,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Project"),
    WEIR_FIELD(weir_project_member, user,       TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_NAME, "", "Who may; or a group"),
    WEIR_FIELD(weir_project_member, group,      TEXT, WEIR_FIELD_COLUMN | WEIR_FIELD_NAME, "", "A group whose members may"),
    WEIR_FIELD(weir_project_member, role,       TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "viewer, approver, operator, data-scientist, ml-engineer or admin of this project, or a custom role"),
    WEIR_FIELD(weir_project_member, created_by, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who gave the role"),
    WEIR_FIELD(weir_project_member, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "Since when"),
};
// clang-format on

const struct weir_resource weir_group_resource =
    WEIR_RESOURCE("group", "groups", weir_group, group_fields);
const struct weir_resource weir_group_member_resource =
    WEIR_RESOURCE("group member", "group_members", weir_group_member, group_member_fields);
const struct weir_resource weir_project_member_resource =
    WEIR_RESOURCE("project member", "project_members", weir_project_member, project_member_fields);

static const char sql_leave[] =
    "DELETE FROM group_members WHERE \"user\" = :user AND issuer = :issuer";

static weir_status join(struct weir_txn *txn, const struct weir_group_member *member,
                        struct weir_arena *arena, struct weir_error *err)
{
    struct weir_group group;
    struct weir_group_member before;
    weir_status status = weir_txn_get(txn, &weir_group_resource, member->group, arena, &group, err);
    if (status == WEIR_OK) {
        status = weir_txn_get(txn, &weir_group_member_resource, member->name, arena, &before, err);
        return status == WEIR_ERR_NOT_FOUND
                   ? weir_txn_insert(txn, &weir_group_member_resource, member, err)
                   : status;
    }
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

weir_status weir_groups_take(struct weir_txn *txn, const char *user, const char *issuer,
                             const char *const *groups, size_t n_groups, int64_t now_ms,
                             struct weir_arena *arena, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(
        txn, sql_leave, WEIR_BINDS(WEIR_BIND_TEXT("user", user), WEIR_BIND_TEXT("issuer", issuer)),
        NULL, err));
    for (size_t i = 0; i < n_groups; i++) {
        const struct weir_group_member member = {
            .name = weir_arena_printf(arena, "%s/%s", groups[i], user),
            .group = (char *)groups[i],
            .user = (char *)user,
            .issuer = (char *)issuer,
            .created_ms = now_ms};
        WEIR_TRY(join(txn, &member, arena, err));
    }
    return WEIR_OK;
}

static const char sql_grants[] =
    "SELECT m.project, m.role, r.rights FROM project_members m LEFT JOIN custom_roles r"
    " ON r.name = m.role WHERE m.\"user\" = :user OR m.\"group\" IN"
    " (SELECT \"group\" FROM group_members WHERE \"user\" = :user) ORDER BY m.project";

static const char sql_roles[] =
    "SELECT DISTINCT role FROM project_members WHERE project = :project AND (\"user\" = :user OR"
    " \"group\" IN (SELECT \"group\" FROM group_members WHERE \"user\" = :user)) ORDER BY role";

weir_status weir_project_roles_of(struct weir_txn *txn, const char *project, const char *user,
                                  struct weir_arena *arena, char ***out, size_t *out_n,
                                  struct weir_error *err)
{
    return weir_txn_query_texts(
        txn, sql_roles,
        WEIR_BINDS(WEIR_BIND_TEXT("project", project), WEIR_BIND_TEXT("user", user)), arena, out,
        out_n, err);
}

weir_status weir_grants_load(struct weir_txn *txn, const char *user, struct weir_arena *arena,
                             struct weir_grant **out, size_t *out_n, struct weir_error *err)
{
    struct weir_grant *grants = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_grants, WEIR_BINDS(WEIR_BIND_TEXT("user", user)), &stmt, err));
    for (;;) {
        weir_rights rights;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        char *project = weir_stmt_text(stmt, 0, arena);
        const char *role = weir_stmt_peek(stmt, 1, NULL);
        bool is_there = weir_role_grants(role, weir_stmt_peek(stmt, 2, NULL), &rights);
        if (n == 0 || strcmp(grants[n - 1].project, project) != 0) {
            weir_arena_grow(arena, &grants, sizeof *grants, n, &cap);
            grants[n++] = (struct weir_grant){.project = project};
        }
        grants[n - 1].rights |= rights;
        if (!is_there) {
            grants[n - 1].gone_role = weir_stmt_text(stmt, 1, arena);
        }
    }
    *out = grants;
    *out_n = n;
    return weir_arena_check(arena, "the user's projects", err);
}
