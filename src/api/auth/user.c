/** Users, their tokens and sessions, and projects: made, changed, ended. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "api/role.h"

#include "base/uuid.h"
#include "ion/ion.h"
#include "job/job.h"
#include "track/experiment.h"
#include "track/track.h"

#include <string.h>

weir_status api_project_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_project project = {0};
    WEIR_TRY(weir_record_from_json(&weir_project_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &project, err));
    project.created_ms = call->now_ms;
    int64_t experiment;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &project, err));
    WEIR_TRY(weir_experiment_ensure(txn, project.name, WEIR_EXPERIMENT_DEFAULT, call->actor,
                                    call->now_ms, &experiment, err));
    WEIR_TRY(audit_act(call, txn, "project_created",
                       weir_arena_printf(call->arena, "project/%s", project.name),
                       weir_arena_printf(call->arena, "Project %s was made", project.name), err));
    api_answer_record(call, &weir_project_resource, &project);
    return WEIR_OK;
}

/* ---- users ----------------------------------------------------------------------------------- */

/* A custom role is none of the platform. */
static weir_status check_is_of_platform(struct api_call *call, struct weir_txn *txn,
                                        const char *name, struct weir_error *err)
{
    struct weir_role_found role;
    WEIR_TRY(weir_role_find(txn, name, call->arena, &role, err));
    return !role.is_custom
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.role: \"%s\" is a role of projects: give it in one with "
                                "`weir project grant PROJECT NAME --role %s`",
                                name, name);
}

/* Tasks get a token for each attempt: nobody else has their role. An old word is made the new one. */
static weir_status check_role_of_user(struct api_call *call, struct weir_txn *txn, char **text,
                                      struct weir_error *err)
{
    enum weir_role role;
    WEIR_TRY(check_is_of_platform(call, txn, *text, err));
    WEIR_TRY(weir_role_from_text(*text, &role, err));
    *text = (char *)weir_role_text(role);
    return role != WEIR_ROLE_WORKER
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.role: worker is the role of tasks, which get their own tokens");
}

/* "User bob (viewer) was disabled, by …" */
static weir_status act_on_user(struct api_call *call, struct weir_txn *txn, const char *kind,
                               const struct weir_user *user, const char *what,
                               struct weir_error *err)
{
    return audit_act(
        call, txn, kind, weir_arena_printf(call->arena, "user/%s", user->name),
        weir_arena_printf(call->arena, "User %s (%s) was %s", user->name, user->role, what), err);
}

weir_status api_user_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_user user = {.kind = "person"};
    WEIR_TRY(weir_record_from_json(&weir_user_resource, call->body, WEIR_RECORD_CREATE, call->arena,
                                   &user, err));
    WEIR_TRY(check_role_of_user(call, txn, &user.role, err));
    user.created_ms = call->now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_user_resource, &user, err));
    WEIR_TRY(act_on_user(call, txn, "user_created", &user, "made", err));
    api_answer_record(call, &weir_user_resource, &user);
    return WEIR_OK;
}

static bool is_active_admin(const struct weir_user *user)
{
    return !user->is_disabled && strcmp(user->role, weir_role_text(WEIR_ROLE_ADMIN)) == 0;
}

weir_status api_user_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_user user;
    WEIR_TRY(weir_txn_get(txn, &weir_user_resource, call->params[0], call->arena, &user, err));
    const struct weir_user before = user;
    WEIR_TRY(weir_record_from_json(&weir_user_resource, call->body, WEIR_RECORD_UPDATE, call->arena,
                                   &user, err));
    WEIR_TRY(check_role_of_user(call, txn, &user.role, err));
    if (is_active_admin(&before) && !is_active_admin(&user)) {
        WEIR_TRY(weir_user_check_other_admin(txn, user.name, err));
    }
    if (user.is_disabled) {
        WEIR_TRY(weir_user_end_sessions(txn, user.name, err));
    }
    WEIR_TRY(
        weir_txn_update(txn, &weir_user_resource, &user, WEIR_FIELDS("role", "is_disabled"), err));
    if (strcmp(user.role, before.role) != 0) {
        WEIR_TRY(act_on_user(
            call, txn, "user_changed", &user,
            weir_arena_printf(call->arena, "given this role instead of %s", before.role), err));
    }
    if (user.is_disabled != before.is_disabled) {
        WEIR_TRY(act_on_user(call, txn, "user_changed", &user,
                             user.is_disabled ? "disabled" : "enabled", err));
    }
    api_answer_record(call, &weir_user_resource, &user);
    return WEIR_OK;
}

/* Where records name a user. One who is named stays: a new user of that name would be taken for
 * who did it. */
static const struct reference {
    const struct weir_resource *resource;
    const char *field, *what;
} references[] = {
    {&weir_token_resource, "user", "tokens"},
    {&weir_job_resource, "created_by", "jobs"},
    {&weir_run_resource, "created_by", "runs"},
    {&weir_experiment_resource, "created_by", "experiments"},
    {&weir_dataset_resource, "created_by", "datasets"},
    {&weir_model_version_resource, "created_by", "model versions"},
    {&weir_ion_resource, "created_by", "IONs"},
    {&weir_policy_decision_resource, "actor", "reviews"},
    {&weir_ion_member_resource, "actor", "entries of allow and deny lists"},
};

weir_status api_user_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_user user;
    WEIR_TRY(weir_txn_get(txn, &weir_user_resource, call->params[0], call->arena, &user, err));
    if (is_active_admin(&user)) {
        WEIR_TRY(weir_user_check_other_admin(txn, user.name, err));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(references); i++) {
        int64_t n;
        const struct weir_query query = {
            WEIR_FILTERS(WEIR_FILTER_TEXT(references[i].field, EQ, user.name))};
        WEIR_TRY(weir_txn_count(txn, references[i].resource, &query, &n, err));
        if (n > 0) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "\"%s\" is named by %s (%lld): disable it instead with "
                                  "`weir user disable %s`%s",
                                  user.name, references[i].what, (long long)n, user.name,
                                  i == 0 ? ", or revoke them first" : "");
        }
    }
    WEIR_TRY(weir_user_end_sessions(txn, user.name, err));
    WEIR_TRY(weir_txn_delete(txn, &weir_user_resource, user.name, err));
    WEIR_TRY(act_on_user(call, txn, "user_deleted", &user, "deleted", err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Of the platform, or a custom one: at most that in its user's projects. */
static weir_status check_role_of_token(struct api_call *call, struct weir_txn *txn, char **name,
                                       struct weir_error *err)
{
    struct weir_role_found role;
    WEIR_TRY(weir_role_find(txn, *name, call->arena, &role, err));
    *name = weir_arena_strdup(call->arena, role.name);
    return role.is_custom ? WEIR_OK : check_role_of_user(call, txn, name, err);
}

static weir_status act_on_token(struct api_call *call, struct weir_txn *txn, const char *kind,
                                const struct weir_token *token, const char *what,
                                struct weir_error *err)
{
    const char *node = token->node != NULL ? token->node : "";
    return audit_act(call, txn, kind, weir_arena_printf(call->arena, "token/%s", token->id),
                     weir_arena_printf(call->arena, "Token %s of %s (%s%s%s) was %s", token->name,
                                       token->user, token->role,
                                       node[0] != '\0' ? " for node " : "", node, what),
                     err);
}

weir_status api_token_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_token token = {0};
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    if (json_object_get(call->body, "user") == NULL) { /* one's own, unless another's is wanted */
        json_object_set_new(call->body, "user", json_string(call->actor));
    }
    if (json_object_get(call->body, "role") == NULL) {
        json_object_set_new(call->body, "role", json_string(weir_role_text(WEIR_ROLE_VIEWER)));
    }
    WEIR_TRY(weir_record_from_json(&weir_token_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &token, err));
    WEIR_TRY(check_role_of_token(call, txn, &token.role, err));
    bool is_agents = strcmp(token.role, weir_role_text(WEIR_ROLE_AGENT)) == 0;
    if (is_agents != (token.node != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              is_agents ? "$.node: an agent's token names the node it is for "
                                          "(--node NAME)"
                                        : "$.node: only a token of role agent has a node");
    }
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    token.id = id;
    token.secret_hash = hash;
    token.created_ms = call->now_ms;
    bool is_own = strcmp(token.user, call->actor) == 0;
    token.origin = is_own ? call->identity.proof : NULL; /* a password's ends with it */
    WEIR_TRY(weir_txn_insert(txn, &weir_token_resource, &token, err));
    WEIR_TRY(act_on_token(call, txn, "token_created", &token, "made", err));
    json_t *answer = weir_record_to_json(&weir_token_resource, &token);
    json_object_set_new(answer, "secret", json_string(secret));
    api_answer(call, answer);
    return WEIR_OK;
}

/* Tokens or sessions: one's own; who may change all sees all. */
weir_status api_list_own(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    bool sees_all = (call->identity.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_TOKENS_ALL)) != 0;
    const struct weir_filter own = WEIR_FILTER_TEXT("user", EQ, call->actor);
    return api_list_of(call, txn,
                       &(struct weir_query){.filters = &own, .n_filters = sees_all ? 0 : 1}, err);
}

/* May the caller all that this role allows? One that is gone allows nothing. */
static weir_status covers(struct api_call *call, struct weir_txn *txn, const char *name, bool *out,
                          struct weir_error *err)
{
    struct weir_role_found role = {0};
    struct weir_error gone;
    weir_status status = weir_role_find(txn, name, call->arena, &role, &gone);
    if (status != WEIR_OK && status != WEIR_ERR_INVALID) {
        return weir_error_set(err, status, "%s", gone.message);
    }
    *out = (role.rights & ~call->identity.limit) == 0;
    return WEIR_OK;
}

weir_status api_token_revoke(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_token token;
    WEIR_TRY(weir_txn_get(txn, &weir_token_resource, call->params[0], call->arena, &token, err));
    bool is_covered = false;
    WEIR_TRY(covers(call, txn, token.role, &is_covered, err));
    /* One that may more than the caller is not there: a viewer's token ends no other of its owner. */
    bool is_own = strcmp(token.user, call->actor) == 0 && is_covered;
    if (!is_own && !(call->identity.rights & WEIR_RIGHTS_OF(WEIR_RIGHT_TOKENS_ALL))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no token \"%s\"", call->params[0]);
    }
    WEIR_TRY(weir_txn_delete(txn, &weir_token_resource, token.id, err));
    WEIR_TRY(act_on_token(call, txn, "token_revoked", &token, "revoked", err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* A session that may more than its caller is not there for it: a viewer's token does not throw its
 * owner out. */
weir_status api_session_end(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_session session;
    struct weir_identity now = {0}; /* of one that has ended nothing is left that is more */
    WEIR_TRY(
        weir_txn_get(txn, &weir_session_resource, call->params[0], call->arena, &session, err));
    weir_status status =
        weir_identity_by_id(txn, session.id, NULL, call->now_ms, call->arena, &now, err);
    if (status != WEIR_OK && status != WEIR_ERR_UNAUTH) {
        return status;
    }
    bool is_covered = (now.limit & ~call->identity.limit) == 0;
    bool is_own = strcmp(session.user, call->actor) == 0;
    if ((!is_own && call->identity.role != WEIR_ROLE_ADMIN) || !is_covered) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "session \"%s\" not found", call->params[0]);
    }
    WEIR_TRY(weir_txn_delete(txn, &weir_session_resource, session.id, err));
    WEIR_TRY(audit_act(call, txn, "session_ended",
                       weir_arena_printf(call->arena, "session/%s", session.id),
                       weir_arena_printf(call->arena, "A session of %s (%s) was ended",
                                         session.user, session.role),
                       err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
