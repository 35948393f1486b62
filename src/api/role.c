/** GET /roles: what each role may, from the matrix (store/rights.h). */
#include "api/role.h"

#include "api/answer.h"
#include "api/functions.h"

#include "store/rights.h"

struct role_record {
    char *name, *rights, *project_rights;
    bool is_of_projects;
};

// clang-format off
static const struct weir_field role_fields[] = {
    WEIR_FIELD(role_record, name,           TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(role_record, is_of_projects, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "It can be given in a project too"),
    WEIR_FIELD(role_record, rights,         JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What whoever has it on the platform may: [\"cancel jobs\"]"),
    WEIR_FIELD(role_record, project_rights, JSON, WEIR_FIELD_READ_ONLY, "", "What of it whoever has it in a project may there"),
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

weir_status api_role_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct role_record *items = WEIR_ARENA_ARRAY(call->arena, WEIR_ROLE_COUNT, struct role_record);
    weir_rights of_projects = 0;
    size_t n = 0;
    (void)txn;
    (void)err;
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        bool is_of_project = weir_right_scope((enum weir_right)i) == WEIR_RIGHT_IS_OF_PROJECT;
        of_projects |= is_of_project ? WEIR_RIGHTS_OF(i) : 0;
    }
    for (int i = 0; i < WEIR_ROLE_COUNT; i++) {
        enum weir_role role = (enum weir_role)i;
        if (!is_of_people(role)) {
            continue;
        }
        weir_rights rights = weir_role_rights(role);
        bool is_of_projects = weir_role_is_of_projects(role);
        items[n++] = (struct role_record){
            .name = weir_arena_strdup(call->arena, weir_role_text(role)),
            .is_of_projects = is_of_projects,
            .rights = list_text(call, rights),
            .project_rights = list_text(call, is_of_projects ? rights & of_projects : 0),
        };
    }
    api_answer_list(call, &weir_role_resource, items, n, NULL);
    return WEIR_OK;
}
