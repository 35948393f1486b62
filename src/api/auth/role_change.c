/** Roles that admins define: made, changed, deleted. */
#include "api/auth/audit.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/role.h"

#include "base/names.h"
#include "ion/ion.h"
#include "store/table.h"

#include <string.h>

#define RIGHTS_MAX 256 /* in one list of a body: more than there are */

/** What a body says of a role. */
struct wish {
    const char *description, *like;
    weir_rights rights, without;
    bool has_description, has_rights;
};

/* A list of rights with nouns of projects; absent is none. */
static weir_status read_rights(const struct api_call *call, const char *name, weir_rights *out,
                               struct weir_error *err)
{
    size_t i;
    json_t *item, *list = json_object_get(call->body, name);
    weir_rights rights = 0;
    if (list != NULL && !json_is_null(list) &&
        (!json_is_array(list) || json_array_size(list) > RIGHTS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of rights", name);
    }
    json_array_foreach(list, i, item)
    {
        enum weir_right right;
        struct weir_error cause = {0};
        if (!json_is_string(item)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s[%zu]: expected text", name, i);
        }
        weir_status status = weir_right_from_text(json_string_value(item), &right, &cause);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.%s[%zu]: %s", name, i, cause.message);
        }
        if (weir_right_scope(right) != WEIR_RIGHT_IS_OF_PROJECT) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.%s[%zu]: \"%s %s\" is no right of projects: a role that is "
                                  "defined gives rights in projects only",
                                  name, i, weir_right_verb(right), weir_right_noun(right));
        }
        rights |= WEIR_RIGHTS_OF(right);
    }
    *out = rights;
    return WEIR_OK;
}

static weir_status read_wish(struct api_call *call, struct wish *out, struct weir_error *err)
{
    static const char *const known[] = {"name", "description", "like", "rights", "without", NULL};
    struct wish wish = {
        .has_description = json_object_get(call->body, "description") != NULL,
        .has_rights = json_is_array(json_object_get(call->body, "rights")),
    };
    WEIR_TRY(api_body_only(call, known, err));
    WEIR_TRY(api_body_text(call, "description", &wish.description, err));
    WEIR_TRY(api_body_text(call, "like", &wish.like, err));
    WEIR_TRY(read_rights(call, "rights", &wish.rights, err));
    WEIR_TRY(read_rights(call, "without", &wish.without, err));
    *out = wish;
    return WEIR_OK;
}

/* Of the role that it is like, and of the lists; looking at what is read comes with reading. */
static weir_status find_rights(struct api_call *call, struct weir_txn *txn, const struct wish *wish,
                               weir_rights before, weir_rights *out, struct weir_error *err)
{
    weir_rights rights = wish->like != NULL || wish->has_rights ? wish->rights : before;
    if (wish->like != NULL) {
        struct weir_role_found like;
        if (weir_role_find(txn, wish->like, call->arena, &like, err) != WEIR_OK) {
            return weir_error_prefix(err, "$.like: ");
        }
        rights |= like.is_of_projects ? like.rights & weir_rights_of_projects() : 0;
    }
    rights = weir_rights_close(rights & ~wish->without);
    if (rights == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.rights: a role without rights would allow nothing: name some "
                              "(--right \"read models\"), or a role that it is like (--like "
                              "viewer)");
    }
    weir_rights kept = rights & wish->without;
    if (kept != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.without: \"%s\" goes with reading the same: take that away too",
                              weir_rights_text(kept, ", ", call->arena));
    }
    *out = rights;
    return WEIR_OK;
}

static char *sentence(const struct api_call *call, const char *rights)
{
    return weir_rights_text(weir_rights_read(rights), ", ", call->arena);
}

static weir_status act_on_role(struct api_call *call, struct weir_txn *txn, const char *kind,
                               const char *name, char *message, struct weir_error *err)
{
    return audit_act(call, txn, kind, weir_arena_printf(call->arena, "role/%s", name), message,
                     err);
}

weir_status api_role_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct wish wish;
    weir_rights rights;
    const char *name;
    int64_t n;
    WEIR_TRY(read_wish(call, &wish, err));
    WEIR_TRY(api_body_text(call, "name", &name, err));
    if (weir_custom_role_check_name(name != NULL ? name : "", err) != WEIR_OK) {
        return weir_error_prefix(err, "$.name: ");
    }
    WEIR_TRY(find_rights(call, txn, &wish, 0, &rights, err));
    WEIR_TRY(api_check_giver(call, NULL, rights,
                             weir_arena_printf(call->arena, "the role \"%s\"", name), err));
    WEIR_TRY(weir_txn_count(txn, &weir_custom_role_resource, NULL, &n, err));
    if (n >= WEIR_CUSTOM_ROLES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "there are %d roles that were defined, and may be no more: delete "
                              "one that nobody has",
                              WEIR_CUSTOM_ROLES_MAX);
    }
    const struct weir_custom_role role = {.name = weir_arena_strdup(call->arena, name),
                                          .description =
                                              weir_arena_strdup(call->arena, wish.description),
                                          .rights = weir_rights_text(rights, ",", call->arena),
                                          .created_by = (char *)call->actor,
                                          .created_ms = call->now_ms,
                                          .changed_by = (char *)call->actor,
                                          .changed_ms = call->now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_custom_role_resource, &role, err));
    api_role_answer(call, &role);
    return act_on_role(call, txn, "role_created", role.name,
                       weir_arena_printf(call->arena, "Role %s was defined: it allows %s",
                                         role.name, sentence(call, role.rights)),
                       err);
}

/* The path's, which must be one that was defined. */
static weir_status load(struct api_call *call, struct weir_txn *txn, struct weir_custom_role *out,
                        struct weir_error *err)
{
    WEIR_TRY(weir_custom_role_check_name(call->params[0], err));
    weir_status status =
        weir_txn_get(txn, &weir_custom_role_resource, call->params[0], call->arena, out, err);
    return status != WEIR_ERR_NOT_FOUND
               ? status
               : weir_error_set(err, status,
                                "there is no role \"%s\" that was defined: `weir role create "
                                "%s` makes it",
                                call->params[0], call->params[0]);
}

weir_status api_role_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct wish wish;
    struct weir_custom_role role;
    weir_rights rights;
    WEIR_TRY(read_wish(call, &wish, err));
    WEIR_TRY(load(call, txn, &role, err));
    const weir_rights had = weir_rights_read(role.rights) & weir_rights_of_projects();
    const char *name = json_string_value(json_object_get(call->body, "name"));
    if (name != NULL && strcmp(name, role.name) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.name: a role keeps its name, by which people have it");
    }
    WEIR_TRY(find_rights(call, txn, &wish, had, &rights, err));
    WEIR_TRY(api_check_giver(call, NULL, rights | had,
                             weir_arena_printf(call->arena, "the role \"%s\"", role.name), err));
    role.rights = weir_rights_text(rights, ",", call->arena);
    role.changed_by = (char *)call->actor;
    role.changed_ms = call->now_ms;
    if (wish.has_description) {
        role.description = weir_arena_strdup(call->arena, wish.description);
    }
    WEIR_TRY(weir_txn_update(txn, &weir_custom_role_resource, &role,
                             WEIR_FIELDS("description", "rights", "changed_by", "changed_ms"),
                             err));
    api_role_answer(call, &role);
    return act_on_role(
        call, txn, "role_changed", role.name,
        rights == had
            ? weir_arena_printf(call->arena, "Role %s was described anew: it allows %s as before",
                                role.name, sentence(call, role.rights))
            : weir_arena_printf(
                  call->arena, "Role %s was changed: it allows %s; before it allowed %s", role.name,
                  sentence(call, role.rights), weir_rights_text(had, ", ", call->arena)),
        err);
}

/* ---- deleting -------------------------------------------------------------------------------- */

static weir_status check_nobody_has(struct api_call *call, struct weir_txn *txn, const char *name,
                                    struct weir_error *err)
{
    struct weir_names names = {0};
    char **holders;
    size_t n;
    WEIR_TRY(weir_role_holders(txn, name, call->arena, &holders, &n, err));
    for (size_t i = 0; i < n; i++) {
        weir_names_add(&names, holders[i], strlen(holders[i]));
    }
    return n == 0 ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_CONFLICT,
                                   "%zu %s the role \"%s\": %s; take it from them first, or give "
                                   "them another",
                                   n, n == 1 ? "has" : "have", name, names.text);
}

static bool is_named_by(const struct weir_policy *policy, const char *role)
{
    json_t *options = policy->text != NULL ? json_loads(policy->text, 0, NULL) : NULL, *item;
    size_t i;
    bool is_named = false;
    json_array_foreach(json_object_get(options, "roles"), i, item)
    {
        const char *name = json_string_value(item);
        is_named = is_named || (name != NULL && strcmp(name, role) == 0);
    }
    json_decref(options);
    return is_named;
}

static bool names_role(const struct weir_ion_doc *doc, const char *role)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        for (size_t k = 0; k < doc->links[i].policies.n; k++) {
            if (is_named_by(&doc->links[i].policies.items[k], role)) {
                return true;
            }
        }
    }
    return false;
}

/* A policy that waits for the role would wait for ever. */
static weir_status check_no_policy_names(struct api_call *call, struct weir_txn *txn,
                                         const char *name, struct weir_error *err)
{
    char *cursor = NULL;
    do {
        struct weir_query query = {.cursor = cursor, .limit = 100};
        void *items;
        size_t n;
        WEIR_TRY(
            weir_txn_list(txn, &weir_ion_resource, &query, call->arena, &items, &n, &cursor, err));
        for (size_t i = 0; i < n; i++) {
            const struct weir_ion *ion = (const struct weir_ion *)items + i;
            struct weir_ion ignored;
            struct weir_ion_doc doc;
            /* A document that this version cannot read, or of an ION that is deleted, asks nobody. */
            bool asks =
                strcmp(ion->state, "DELETED") != 0 &&
                weir_ion_load_doc(txn, ion->name, call->arena, &ignored, &doc, NULL) == WEIR_OK;
            if (asks && names_role(&doc, name)) {
                return weir_error_set(err, WEIR_ERR_CONFLICT,
                                      "a policy of ION \"%s\" counts approvals of the role \"%s\": "
                                      "apply it without first",
                                      ion->name, name);
            }
        }
    } while (cursor != NULL);
    return WEIR_OK;
}

weir_status api_role_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_custom_role role;
    WEIR_TRY(load(call, txn, &role, err));
    WEIR_TRY(check_nobody_has(call, txn, role.name, err));
    WEIR_TRY(check_no_policy_names(call, txn, role.name, err));
    WEIR_TRY(weir_txn_delete(txn, &weir_custom_role_resource, role.name, err));
    weir_http_response_empty(call->response);
    return act_on_role(call, txn, "role_deleted", role.name,
                       weir_arena_printf(call->arena, "Role %s was deleted: it allowed %s",
                                         role.name, sentence(call, role.rights)),
                       err);
}
