/** Groups, members of projects, passwords: who may do what. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/role.h"
#include "store/table.h"

#include "store/password.h"
#include "store/tenant.h"

#include <string.h>

/* ---- groups ---------------------------------------------------------------------------------- */

weir_status api_group_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_group group = {0};
    WEIR_TRY(weir_record_from_json(&weir_group_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &group, err));
    group.created_ms = call->now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_group_resource, &group, err));
    WEIR_TRY(audit_act(call, txn, "group_created",
                       weir_arena_printf(call->arena, "group/%s", group.name),
                       weir_arena_printf(call->arena, "Group %s was made", group.name), err));
    api_answer_record(call, &weir_group_resource, &group);
    return WEIR_OK;
}

weir_status api_group_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *name = call->params[0];
    WEIR_TRY(weir_txn_delete(txn, &weir_group_resource, name, err));
    weir_http_response_empty(call->response);
    return audit_act(
        call, txn, "group_deleted", weir_arena_printf(call->arena, "group/%s", name),
        weir_arena_printf(call->arena, "Group %s was deleted, and what it gave its members", name),
        err);
}

weir_status api_group_members(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_group group;
    WEIR_TRY(weir_txn_get(txn, &weir_group_resource, call->params[0], call->arena, &group, err));
    return api_list_of_path(call, txn, "group", err);
}

weir_status api_group_add(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_group group;
    struct weir_user user;
    WEIR_TRY(weir_txn_get(txn, &weir_group_resource, call->params[0], call->arena, &group, err));
    WEIR_TRY(weir_txn_get(txn, &weir_user_resource, call->params[1], call->arena, &user, err));
    const struct weir_group_member member = {
        .name = weir_arena_printf(call->arena, "%s/%s", group.name, user.name),
        .group = group.name,
        .user = user.name,
        .created_ms = call->now_ms};
    WEIR_TRY(weir_txn_upsert(txn, &weir_group_member_resource, &member, err));
    api_answer_record(call, &weir_group_member_resource, &member);
    return audit_act(
        call, txn, "group_joined", weir_arena_printf(call->arena, "user/%s", user.name),
        weir_arena_printf(call->arena, "User %s was put into group %s", user.name, group.name),
        err);
}

weir_status api_group_remove(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char *name = weir_arena_printf(call->arena, "%s/%s", call->params[0], call->params[1]);
    WEIR_TRY(weir_txn_delete(txn, &weir_group_member_resource, name, err));
    weir_http_response_empty(call->response);
    return audit_act(call, txn, "group_left",
                     weir_arena_printf(call->arena, "user/%s", call->params[1]),
                     weir_arena_printf(call->arena, "User %s was taken out of group %s",
                                       call->params[1], call->params[0]),
                     err);
}

/* ---- members of projects --------------------------------------------------------------------- */

/* With why its role gives nothing, if it is gone. */
static weir_status view_of_member(struct api_call *call, struct weir_txn *txn,
                                  const struct weir_project_member *member,
                                  struct api_project_member *out, struct weir_error *err)
{
    struct weir_role_found role;
    struct weir_error missing;
    weir_status status = weir_role_find(txn, member->role, call->arena, &role, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_INVALID) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    *out = (struct api_project_member){.row = member};
    if (status != WEIR_OK) {
        out->problem =
            weir_arena_printf(call->arena, "the role %s is gone: it gives no rights", member->role);
    }
    return WEIR_OK;
}

weir_status api_project_members(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_project project;
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("project", EQ, call->params[0])),
                                  .limit = 1000};
    struct api_rows rows;
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err));
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    const struct weir_project_member *members = rows.items;
    struct api_project_member *views =
        WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_project_member);
    for (size_t i = 0; i < rows.n; i++) {
        WEIR_TRY(view_of_member(call, txn, &members[i], &views[i], err));
    }
    api_answer_views(call, api_project_member_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

/* PROJECT, "user" or "group", and its name, from the path. */
static weir_status read_member(struct api_call *call, struct weir_txn *txn,
                               struct weir_project_member *out, struct weir_error *err)
{
    struct weir_project project;
    const char *kind = call->params[1], *who = call->params[2];
    bool is_user = strcmp(kind, "user") == 0;
    if (!is_user && strcmp(kind, "group") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected …/members/user/NAME or group/NAME");
    }
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err));
    *out = (struct weir_project_member){
        .name = weir_arena_printf(call->arena, "%s/%s/%s", project.name, kind, who),
        .project = project.name,
        .user = is_user ? weir_arena_strdup(call->arena, who) : NULL,
        .group = is_user ? NULL : weir_arena_strdup(call->arena, who),
        .created_by = weir_arena_strdup(call->arena, call->actor),
        .created_ms = call->now_ms};
    return WEIR_OK;
}

static weir_status act_on_member(struct api_call *call, struct weir_txn *txn,
                                 const struct weir_project_member *member, const char *kind,
                                 const char *what, struct weir_error *err)
{
    return audit_act(call, txn, kind, weir_arena_printf(call->arena, "project/%s", member->project),
                     weir_arena_printf(call->arena, "%s %s was %s in project %s",
                                       member->user != NULL ? "User" : "Group",
                                       member->user != NULL ? member->user : member->group, what,
                                       member->project),
                     err);
}

/* Who may give roles here gives, and takes, no more than what they may themselves. A role that is gone
 * gives nothing, and is for all of them to take. */
static weir_status check_taken(struct api_call *call, struct weir_txn *txn,
                               const struct weir_project_member *before, struct weir_error *err)
{
    struct weir_role_found role;
    struct weir_error gone;
    weir_status status = weir_role_find(txn, before->role, call->arena, &role, &gone);
    if (status != WEIR_OK) {
        return status == WEIR_ERR_INVALID ? WEIR_OK
                                          : weir_error_set(err, status, "%s", gone.message);
    }
    return api_check_giver(call, before->project, role.rights,
                           weir_arena_printf(call->arena, "the role \"%s\" that %s has",
                                             before->role,
                                             before->user != NULL ? before->user : before->group),
                           err);
}

/* Whoever gets the role must be there. */
static weir_status check_who(struct api_call *call, struct weir_txn *txn,
                             const struct weir_project_member *member, struct weir_error *err)
{
    bool is_user = member->user != NULL;
    const char *noun = is_user ? "user" : "group", *who = is_user ? member->user : member->group;
    struct weir_user user;
    struct weir_group group;
    weir_status status =
        is_user ? weir_txn_get(txn, &weir_user_resource, who, call->arena, &user, NULL)
                : weir_txn_get(txn, &weir_group_resource, who, call->arena, &group, NULL);
    return status != WEIR_ERR_NOT_FOUND
               ? WEIR_OK
               : weir_error_set(
                     err, status,
                     "there is no %s \"%.63s\": `weir get %ss` lists them, `weir %s create "
                     "%.63s` makes one",
                     noun, who, noun, noun, who);
}

weir_status api_project_grant(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const known[] = {"role", NULL};
    struct weir_project_member member;
    struct weir_role_found role;
    struct api_project_member view;
    const char *text;
    WEIR_TRY(api_body_only(call, known, err));
    WEIR_TRY(read_member(call, txn, &member, err));
    WEIR_TRY(api_body_text(call, "role", &text, err));
    WEIR_TRY(check_who(call, txn, &member, err));
    WEIR_TRY(api_role_of_projects(call, txn, text, &role, err));
    WEIR_TRY(api_check_giver(call, member.project, role.rights,
                             weir_arena_printf(call->arena, "the role \"%s\"", role.name), err));
    struct weir_project_member before;
    bool is_new = weir_txn_get(txn, &weir_project_member_resource, member.name, call->arena,
                               &before, NULL) != WEIR_OK;
    if (!is_new) {
        WEIR_TRY(check_taken(call, txn, &before, err));
    }
    member.role = weir_arena_strdup(call->arena, role.name);
    WEIR_TRY(weir_txn_upsert(txn, &weir_project_member_resource, &member, err));
    WEIR_TRY(view_of_member(call, txn, &member, &view, err));
    api_answer(call, weir_view_to_json(api_project_member_view(), &view));
    return act_on_member(call, txn, &member, "role_granted",
                         is_new ? weir_arena_printf(call->arena, "given the role %s", member.role)
                                : weir_arena_printf(call->arena, "given the role %s instead of %s",
                                                    member.role, before.role),
                         err);
}

weir_status api_project_revoke(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_project_member member, before;
    WEIR_TRY(read_member(call, txn, &member, err));
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_member_resource, member.name, call->arena, &before, err));
    WEIR_TRY(check_taken(call, txn, &before, err));
    WEIR_TRY(weir_txn_delete(txn, &weir_project_member_resource, member.name, err));
    weir_http_response_empty(call->response);
    return act_on_member(call, txn, &member, "role_revoked", "denied what the role gave", err);
}

/* ---- passwords ------------------------------------------------------------------------------- */

struct password_change {
    struct api_call *call;
    struct weir_user user;
};

static weir_status load_user(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct password_change *change = context;
    struct api_call *call = change->call;
    return weir_txn_get(txn, &weir_user_resource, call->params[0], call->arena, &change->user, err);
}

static weir_status store_password(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct password_change *change = context;
    struct api_call *call = change->call;
    WEIR_TRY(weir_txn_update(txn, &weir_user_resource, &change->user, WEIR_FIELDS("password_hash"),
                             err));
    WEIR_TRY(weir_user_end_sessions(txn, change->user.name, err));
    WEIR_TRY(weir_user_end_password_tokens(txn, change->user.name, err));
    return audit_act(
        call, txn, "password_set", weir_arena_printf(call->arena, "user/%s", change->user.name),
        weir_arena_printf(call->arena,
                          "The password of %s was set: their sessions ended, and the tokens that "
                          "were made with the one before",
                          change->user.name),
        err);
}

/* One's own with the old one; another's as who may change users. */
static weir_status check_may_set(struct api_call *call, const struct weir_user *user,
                                 struct weir_error *err)
{
    const char *current;
    bool is_own = strcmp(user->name, call->actor) == 0;
    WEIR_TRY(api_body_text(call, "current", &current, err));
    if (call->identity.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_USERS_CHANGE)) {
        return WEIR_OK;
    }
    if (!is_own) {
        return weir_error_set(err, WEIR_ERR_DENIED, "you may set your own password only");
    }
    if (user->password_hash == NULL || current == NULL) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              user->password_hash == NULL
                                  ? "you have no password yet: an admin sets the first"
                                  : "$.current: expected the password you have");
    }
    const struct weir_guard_try given = {.user = user->name,
                                         .password = current,
                                         .hash = user->password_hash,
                                         .address = call->request->remote,
                                         .now_ms = call->now_ms,
                                         .arena = call->arena};
    return weir_guard_check(weir_identities_guard(call->api->identities), &given, &call->guessed,
                            err);
}

weir_status api_user_password(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const known[] = {"password", "current", NULL};
    struct password_change change = {.call = call};
    const char *password;
    (void)txn;
    WEIR_TRY(api_body_only(call, known, err));
    WEIR_TRY(api_body_text(call, "password", &password, err));
    if (password == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.password: expected text");
    }
    WEIR_TRY(api_read(call, load_user, &change, err));
    WEIR_TRY(check_may_set(call, &change.user, err));
    WEIR_TRY(weir_password_hash(password, call->arena, &change.user.password_hash, err));
    WEIR_TRY(api_write(call, store_password, &change, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
