/** GET /roles: what each role may, from the matrix (store/rights.h) and as admins defined it. */
#include "api/role.h"

#include "api/core/answer.h"
#include "api/core/functions.h"

#include "store/role.h"
#include "store/table.h"

#include <string.h>

struct role_record {
    char *name, *description, *rights, *project_rights;
    bool is_of_projects, is_custom;
    char *created_by, *changed_by;
    int64_t created_ms, changed_ms;
};

// clang-format off
static const struct weir_field role_fields[] = {
    WEIR_FIELD(role_record, name,           TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(role_record, description,    TEXT, WEIR_FIELD_READ_ONLY, "", "Whom it is for"),
    WEIR_FIELD(role_record, is_of_projects, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "It can be given in a project"),
    WEIR_FIELD(role_record, is_custom,      BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "An admin defined it: it can be given in projects only"),
    WEIR_FIELD(role_record, rights,         JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What whoever has it on the platform may, or of a custom one in a project: [\"cancel jobs\"]"),
    WEIR_FIELD(role_record, project_rights, JSON, WEIR_FIELD_READ_ONLY, "", "What of it whoever has it in a project may there"),
    WEIR_FIELD(role_record, created_by,     TEXT, WEIR_FIELD_READ_ONLY, "", "Who defined it"),
    WEIR_FIELD(role_record, created_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(role_record, changed_by,     TEXT, WEIR_FIELD_READ_ONLY, "", "Who changed it last"),
    WEIR_FIELD(role_record, changed_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_role_resource =
    WEIR_RESOURCE("role", "roles", role_record, role_fields);

json_t *api_rights_list(weir_rights rights)
{
    json_t *list = json_array();
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        if (rights & WEIR_RIGHTS_OF(i)) {
            json_array_append_new(list, json_sprintf("%s %s", weir_right_verb((enum weir_right)i),
                                                     weir_right_noun((enum weir_right)i)));
        }
    }
    return list;
}

static char *list_text(struct api_call *call, weir_rights rights)
{
    json_t *list = api_rights_list(rights);
    char *text = weir_json_text(list, call->arena);
    json_decref(list);
    return text;
}

/* Those that people have: agents and tasks get theirs by themselves. */
static bool is_of_people(enum weir_role role)
{
    return role != WEIR_ROLE_AGENT && role != WEIR_ROLE_WORKER;
}

static struct role_record record_of_own(struct api_call *call, enum weir_role role)
{
    weir_rights rights = weir_role_rights(role);
    bool is_of_projects = weir_role_is_of_projects(role);
    return (struct role_record){
        .name = weir_arena_strdup(call->arena, weir_role_text(role)),
        .is_of_projects = is_of_projects,
        .rights = list_text(call, rights),
        .project_rights = list_text(call, is_of_projects ? rights & weir_rights_of_projects() : 0),
    };
}

static struct role_record record_of_custom(struct api_call *call,
                                           const struct weir_custom_role *role)
{
    weir_rights rights = weir_rights_read(role->rights) & weir_rights_of_projects();
    char *text = list_text(call, rights);
    return (struct role_record){
        .name = role->name,
        .description = role->description,
        .is_of_projects = true,
        .is_custom = true,
        .rights = text,
        .project_rights = text,
        .created_by = role->created_by,
        .created_ms = role->created_ms,
        .changed_by = role->changed_by,
        .changed_ms = role->changed_ms,
    };
}

void api_role_answer(struct api_call *call, const struct weir_custom_role *role)
{
    struct role_record record = record_of_custom(call, role);
    api_answer_record(call, &weir_role_resource, &record);
}

weir_status api_role_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_query all = {.limit = WEIR_CUSTOM_ROLES_MAX};
    size_t n = 0, n_custom;
    void *custom;
    WEIR_TRY(weir_txn_list(txn, &weir_custom_role_resource, &all, call->arena, &custom, &n_custom,
                           NULL, err));
    struct role_record *items =
        WEIR_ARENA_ARRAY(call->arena, WEIR_ROLE_COUNT + n_custom, struct role_record);
    for (int i = 0; i < WEIR_ROLE_COUNT; i++) {
        if (is_of_people((enum weir_role)i)) {
            items[n++] = record_of_own(call, (enum weir_role)i);
        }
    }
    for (size_t i = 0; i < n_custom; i++) {
        items[n++] = record_of_custom(call, (struct weir_custom_role *)custom + i);
    }
    api_answer_list(call, &weir_role_resource, items, n, NULL);
    return WEIR_OK;
}

weir_status api_role_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    enum weir_role own;
    struct weir_custom_role role;
    if (weir_role_from_text(call->params[0], &own, NULL) == WEIR_OK && is_of_people(own)) {
        struct role_record record = record_of_own(call, own);
        api_answer_record(call, &weir_role_resource, &record);
        return WEIR_OK;
    }
    WEIR_TRY(
        weir_txn_get(txn, &weir_custom_role_resource, call->params[0], call->arena, &role, err));
    api_role_answer(call, &role);
    return WEIR_OK;
}

weir_status api_check_giver(const struct api_call *call, const char *project, weir_rights rights,
                            const char *what, struct weir_error *err)
{
    weir_rights own = call->identity.rights;
    for (size_t i = 0; project != NULL && i < call->identity.n_grants; i++) {
        const struct weir_grant *grant = &call->identity.grants[i];
        own |= strcmp(grant->project, project) == 0 ? grant->rights : 0;
    }
    weir_rights missing = rights & weir_rights_of_projects() & ~own;
    return missing == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "%s allows what you may not %s%s yourself: %s; nobody gives or "
                                "takes rights that they do not have",
                                what, project != NULL ? "in project " : "in all projects",
                                project != NULL ? project : "",
                                weir_rights_text(missing, ", ", call->arena));
}

weir_status api_role_of_projects(struct api_call *call, struct weir_txn *txn, const char *name,
                                 struct weir_role_found *out, struct weir_error *err)
{
    struct weir_role_found found;
    weir_status status = weir_role_find(txn, name, call->arena, &found, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "$.role: ");
    }
    if (!found.is_of_projects) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.role: %s is no role in a project: viewer, approver, operator, "
                              "data-scientist, ml-engineer, admin, or a custom one (weir get "
                              "roles)",
                              name);
    }
    *out = found;
    return WEIR_OK;
}
