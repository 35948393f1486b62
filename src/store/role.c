#include "store/role.h"

#include "store/stmt.h"
#include "store/table.h"

// clang-format off
static const struct weir_field custom_role_fields[] = {
    WEIR_FIELD(weir_custom_role, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "Unique name"),
    WEIR_FIELD(weir_custom_role, description, TEXT, WEIR_FIELD_MUTABLE, "", "Whom it is for"),
    WEIR_FIELD(weir_custom_role, rights,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_MUTABLE, "", "What it allows"),
    WEIR_FIELD(weir_custom_role, created_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "Who defined it"),
    WEIR_FIELD(weir_custom_role, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(weir_custom_role, changed_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "Who changed it last"),
    WEIR_FIELD(weir_custom_role, changed_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_custom_role_resource =
    WEIR_RESOURCE("role", "custom_roles", weir_custom_role, custom_role_fields);

static const char sql_holders[] =
    "SELECT CASE WHEN \"user\" IS NULL THEN 'group ' || \"group\" ELSE 'user ' || \"user\" END"
    " || ' in project ' || project AS holder FROM project_members WHERE role = :role"
    " UNION ALL SELECT 'token ' || name || ' of ' || \"user\" FROM tokens WHERE role = :role"
    " ORDER BY holder";

bool weir_role_grants(const char *name, const char *custom_rights, weir_rights *out)
{
    enum weir_role role;
    bool is_own = weir_role_from_text(name, &role, NULL) == WEIR_OK;
    if (is_own) {
        *out = weir_role_rights(role);
    } else {
        *out =
            custom_rights != NULL ? weir_rights_read(custom_rights) & weir_rights_of_projects() : 0;
    }
    return is_own || custom_rights != NULL;
}

weir_status weir_role_find(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_role_found *out, struct weir_error *err)
{
    struct weir_custom_role custom;
    struct weir_error missing;
    enum weir_role role;
    weir_status unknown = weir_role_from_text(name, &role, err);
    if (unknown == WEIR_OK) {
        *out = (struct weir_role_found){.name = weir_role_text(role),
                                        .role = role,
                                        .rights = weir_role_rights(role),
                                        .is_of_projects = weir_role_is_of_projects(role)};
        return WEIR_OK;
    }
    weir_status status =
        name != NULL ? weir_txn_get(txn, &weir_custom_role_resource, name, arena, &custom, &missing)
                     : WEIR_ERR_NOT_FOUND;
    if (status != WEIR_OK) {
        return status == WEIR_ERR_NOT_FOUND ? unknown
                                            : weir_error_set(err, status, "%s", missing.message);
    }
    *out = (struct weir_role_found){
        .name = custom.name, .role = WEIR_ROLE_MEMBER, .is_custom = true, .is_of_projects = true};
    (void)weir_role_grants(custom.name, custom.rights, &out->rights);
    return WEIR_OK;
}

weir_status weir_custom_role_check_name(const char *name, struct weir_error *err)
{
    enum weir_role role;
    if (!weir_name_is_valid(name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\" is no name for a role: expected lower case letters, "
                              "digits, \".\", \"_\", \"-\", at most 63",
                              name);
    }
    return weir_role_from_text(name, &role, NULL) != WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%s\" is a role of Weir itself, which nobody changes: take "
                                "another name, and begin like it with --like %s",
                                name, weir_role_text(role));
}

weir_status weir_role_holders(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                              char ***out, size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_holders, WEIR_BINDS(WEIR_BIND_TEXT("role", name)), arena,
                                out, out_n, err);
}
