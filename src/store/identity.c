#include "store/identity.h"

#include "base/rng.h"
#include "store/role.h"
#include "store/stmt.h"
#include "store/table.h"
#include "store/tenant.h"

#include <string.h>

// clang-format off
static const struct weir_field project_fields[] = {
    WEIR_FIELD(weir_project, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Unique name"),
    WEIR_FIELD(weir_project, description, TEXT, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "What it is for"),
    WEIR_FIELD(weir_project, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
};
static const struct weir_field user_fields[] = {
    WEIR_FIELD(weir_user, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Unique name"),
    WEIR_FIELD(weir_user, kind,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "person or service"),
    WEIR_FIELD(weir_user, role,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "On the platform: member, viewer, approver, operator, data-scientist, ml-engineer, admin or agent"),
    WEIR_FIELD(weir_user, is_disabled, BOOL, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "May not log in"),
    WEIR_FIELD(weir_user, password_hash, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "Argon2id of the password"),
    WEIR_FIELD(weir_user, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
};
static const struct weir_field token_fields[] = {
    WEIR_FIELD(weir_token, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_token, user,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Whose it is"),
    WEIR_FIELD(weir_token, name,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "What it is for"),
    WEIR_FIELD(weir_token, role,        TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "At most this role, which may be a custom one"),
    WEIR_FIELD(weir_token, node,        TEXT, WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Of role agent: the node it speaks for"),
    WEIR_FIELD(weir_token, project,     TEXT, WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "The only project it is for; absent = all of its user's"),
    WEIR_FIELD(weir_token, origin,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What it was made with: password (it ends when that is changed); absent: an admin made it"),
    WEIR_FIELD(weir_token, secret_hash, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "SHA-256 of the secret"),
    WEIR_FIELD(weir_token, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_token, expires_ms,  TIME, WEIR_FIELD_COLUMN, "ms", "When it ends; absent = never"),
    WEIR_FIELD(weir_token, used_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was shown last, by the hour"),
};
static const struct weir_field session_fields[] = {
    WEIR_FIELD(weir_session, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_session, user,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who is logged in"),
    WEIR_FIELD(weir_session, role,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Role that it began with"),
    WEIR_FIELD(weir_session, limited_to,  TEXT, WEIR_FIELD_READ_ONLY, "", "At most this role; absent = all that its user may"),
    WEIR_FIELD(weir_session, proof,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What it was begun with: link, password"),
    WEIR_FIELD(weir_session, token,       TEXT, WEIR_FIELD_READ_ONLY, "", "Token that its login link was made with; it ends with it"),
    WEIR_FIELD(weir_session, address,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "From where it was opened"),
    WEIR_FIELD(weir_session, secret_hash, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "SHA-256 of the cookie"),
    WEIR_FIELD(weir_session, csrf,        TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "What changing requests must repeat in a header"),
    WEIR_FIELD(weir_session, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it began"),
    WEIR_FIELD(weir_session, expires_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it ends"),
};
static const struct weir_field login_link_fields[] = {
    WEIR_FIELD(weir_login_link, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_login_link, user,        TEXT, WEIR_FIELD_READ_ONLY, "", "Whom it logs in"),
    WEIR_FIELD(weir_login_link, role,        TEXT, WEIR_FIELD_READ_ONLY, "", "At most with this role"),
    WEIR_FIELD(weir_login_link, token,       TEXT, WEIR_FIELD_READ_ONLY, "", "Token that it was made with"),
    WEIR_FIELD(weir_login_link, secret_hash, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "SHA-256 of the secret"),
    WEIR_FIELD(weir_login_link, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
    WEIR_FIELD(weir_login_link, expires_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it ends"),
    WEIR_FIELD(weir_login_link, used_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was used"),
};
// clang-format on

const struct weir_resource weir_project_resource =
    WEIR_RESOURCE("project", "projects", weir_project, project_fields);
const struct weir_resource weir_user_resource =
    WEIR_RESOURCE("user", "users", weir_user, user_fields);
const struct weir_resource weir_token_resource =
    WEIR_RESOURCE("token", "tokens", weir_token, token_fields);
const struct weir_resource weir_session_resource =
    WEIR_RESOURCE("session", "sessions", weir_session, session_fields);
const struct weir_resource weir_login_link_resource =
    WEIR_RESOURCE("login link", "login_links", weir_login_link, login_link_fields);

void weir_secret_make(char out[WEIR_SECRET_BYTES])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char prefix[] = "weir_";
    unsigned char random[WEIR_SECRET_BYTES - sizeof(prefix)];
    weir_random_bytes(random, sizeof(random));
    memcpy(out, prefix, sizeof(prefix) - 1);
    for (size_t i = 0; i < sizeof(random); i++) {
        out[sizeof(prefix) - 1 + i] = alphabet[random[i] & 63];
    }
    out[WEIR_SECRET_BYTES - 1] = '\0';
}

void weir_secret_hash(const char *secret, char out[WEIR_SHA256_TEXT_BYTES])
{
    weir_sha256(secret, strlen(secret), out);
}

/** The user behind a secret, if they may still log in, with all that they may. */
static weir_status load_user(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                             struct weir_identity *out, struct weir_error *err)
{
    weir_status status = weir_txn_get(txn, &weir_user_resource, name, arena, &out->user, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "there is no user \"%.63s\"", name);
    }
    WEIR_TRY(status);
    if (out->user.is_disabled) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "user \"%s\" is disabled", name);
    }
    WEIR_TRY(weir_role_from_text(out->user.role, &out->role, err));
    out->role_name = weir_role_text(out->role);
    out->rights = out->limit = weir_role_rights(out->role);
    return weir_grants_load(txn, name, arena, &out->grants, &out->n_grants, err);
}

/** The record (token, session, login link) that a secret opens; UNAUTH if there is none. */
static weir_status find_by_secret(struct weir_txn *txn, const struct weir_resource *resource,
                                  const char *secret, struct weir_arena *arena, void *out,
                                  struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_hash(secret, hash);
    weir_status status = weir_txn_get_by(txn, resource, "secret_hash", hash, arena, out, err);
    return status != WEIR_ERR_NOT_FOUND
               ? status
               : weir_error_set(err, WEIR_ERR_UNAUTH, "this %s is not valid", resource->name);
}

/** Lower the rights to those of a role; UNAUTH if nothing is left (agent and viewer), or the role is
 *  gone. A custom role is none of the platform: there it leaves what members have. */
static weir_status limit_role(struct weir_txn *txn, struct weir_identity *identity,
                              const char *limit_text, struct weir_arena *arena,
                              struct weir_error *err)
{
    struct weir_role_found limit;
    weir_status status = weir_role_find(txn, limit_text, arena, &limit, err);
    if (status == WEIR_ERR_INVALID) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this is for the role \"%.80s\", which is gone: it gives no rights",
                              limit_text);
    }
    WEIR_TRY(status);
    weir_rights rights = limit.rights | (limit.is_custom ? weir_role_rights(WEIR_ROLE_MEMBER) : 0);
    bool is_of_people = limit.is_of_projects && identity->role == WEIR_ROLE_MEMBER;
    bool is_members = limit.role == WEIR_ROLE_MEMBER && !limit.is_custom;
    if ((identity->rights & rights & ~WEIR_RIGHTS_OF(WEIR_RIGHT_SELF)) == 0 && !is_of_people &&
        strcmp(limit.name, identity->role_name) != 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this is for the role %s, which the user \"%s\" does not have",
                              limit_text, identity->user.name);
    }
    if ((rights & ~identity->limit) == 0) {
        identity->role = limit.role;
        identity->role_name = limit.name;
        identity->limit = rights;
    }
    identity->rights &= rights;
    for (size_t i = 0; !is_members && i < identity->n_grants; i++) {
        identity->grants[i].rights &= rights;
    }
    return WEIR_OK;
}

/** Lower the rights to those in one project, and on the platform to what its members have. */
static void limit_project(struct weir_identity *identity, char *project, struct weir_arena *arena)
{
    weir_rights rights = 0, of_projects = weir_rights_of_projects();
    char *gone_role = NULL;
    if (project == NULL) {
        return;
    }
    for (size_t i = 0; i < identity->n_grants; i++) {
        if (strcmp(identity->grants[i].project, project) == 0) {
            rights |= identity->grants[i].rights;
            gone_role = identity->grants[i].gone_role;
        }
    }
    rights |= identity->rights & of_projects;
    identity->rights &= ~of_projects & weir_role_rights(WEIR_ROLE_MEMBER);
    identity->grants = WEIR_ARENA_NEW(arena, struct weir_grant);
    *identity->grants = (struct weir_grant){project, rights, gone_role};
    identity->n_grants = 1;
}

static weir_status identify_token(struct weir_txn *txn, const struct weir_token *token,
                                  int64_t now_ms, struct weir_arena *arena,
                                  struct weir_identity *out, struct weir_error *err)
{
    if (token->expires_ms != 0 && token->expires_ms <= now_ms) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "token \"%s\" has expired", token->name);
    }
    struct weir_identity identity = {
        .token = token->id, .node = token->node, .limited_to = token->role, .proof = token->origin};
    WEIR_TRY(load_user(txn, token->user, arena, &identity, err));
    WEIR_TRY(limit_role(txn, &identity, token->role, arena, err));
    limit_project(&identity, token->project, arena);
    *out = identity;
    return WEIR_OK;
}

weir_status weir_token_identify(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                struct weir_arena *arena, struct weir_identity *out,
                                struct weir_error *err)
{
    struct weir_token token;
    WEIR_TRY(find_by_secret(txn, &weir_token_resource, secret, arena, &token, err));
    return identify_token(txn, &token, now_ms, arena, out, err);
}

weir_status weir_user_identify_as(struct weir_txn *txn, const char *name, const char *limited_to,
                                  struct weir_arena *arena, struct weir_identity *out,
                                  struct weir_error *err)
{
    struct weir_identity identity = {0};
    WEIR_TRY(load_user(txn, name, arena, &identity, err));
    if (limited_to != NULL) {
        identity.limited_to = weir_arena_strdup(arena, limited_to);
        WEIR_TRY(limit_role(txn, &identity, limited_to, arena, err));
    }
    *out = identity;
    return WEIR_OK;
}

weir_status weir_user_identify(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                               struct weir_identity *out, struct weir_error *err)
{
    return weir_user_identify_as(txn, name, NULL, arena, out, err);
}

weir_status weir_token_bind(struct weir_txn *txn, const char *token, const char *node,
                            struct weir_error *err)
{
    int64_t n;
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("node", EQ, node), WEIR_FILTER_TEXT("id", NE, token))};
    const struct weir_token bound = {.id = (char *)token, .node = (char *)node};
    WEIR_TRY(weir_txn_count(txn, &weir_token_resource, &query, &n, err));
    if (n > 0) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "another token is bound to node \"%s\": this agent needs a name and a "
            "token of its own",
            node);
    }
    return weir_txn_update(txn, &weir_token_resource, &bound, WEIR_FIELDS("node"), err);
}

/** A session or a link may no more than the token it was made with, and ends with it. */
static weir_status limit_by_token(struct weir_txn *txn, const char *id, int64_t now_ms,
                                  struct weir_arena *arena, struct weir_identity *identity,
                                  struct weir_error *err)
{
    struct weir_token token;
    struct weir_identity maker;
    if (id == NULL || weir_txn_get(txn, &weir_token_resource, id, arena, &token, NULL) != WEIR_OK ||
        identify_token(txn, &token, now_ms, arena, &maker, NULL) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the token this was made with has ended: log in again");
    }
    identity->token = token.id;
    identity->limited_to = token.role;
    identity->proof = maker.proof;
    WEIR_TRY(limit_role(txn, identity, token.role, arena, err));
    limit_project(identity, token.project, arena);
    return WEIR_OK;
}

static weir_status identify_session(struct weir_txn *txn, const struct weir_session *session,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_identity *out, struct weir_error *err)
{
    if (session->expires_ms <= now_ms) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "the session has expired: log in again");
    }
    struct weir_identity identity = {
        .csrf = session->csrf, .session = session->id, .proof = session->proof};
    WEIR_TRY(load_user(txn, session->user, arena, &identity, err));
    if (session->limited_to != NULL) {
        WEIR_TRY(limit_role(txn, &identity, session->limited_to, arena, err));
    }
    if (session->token != NULL) {
        WEIR_TRY(limit_by_token(txn, session->token, now_ms, arena, &identity, err));
    }
    *out = identity;
    return WEIR_OK;
}

weir_status weir_session_identify(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                  struct weir_arena *arena, struct weir_identity *out,
                                  struct weir_error *err)
{
    struct weir_session session;
    WEIR_TRY(find_by_secret(txn, &weir_session_resource, secret, arena, &session, err));
    return identify_session(txn, &session, now_ms, arena, out, err);
}

bool weir_identity_may(const struct weir_identity *identity, enum weir_right right,
                       const char *project)
{
    weir_rights wanted = WEIR_RIGHTS_OF(right);
    bool may = (identity->rights & wanted) != 0;
    for (size_t i = 0; project != NULL && i < identity->n_grants && !may; i++) {
        may = strcmp(identity->grants[i].project, project) == 0 &&
              (identity->grants[i].rights & wanted) != 0;
    }
    return may;
}

static bool has_same_rights(const struct weir_identity *a, const struct weir_identity *b)
{
    bool is_same = a->rights == b->rights && a->n_grants == b->n_grants;
    for (size_t i = 0; is_same && i < a->n_grants; i++) {
        is_same = a->grants[i].rights == b->grants[i].rights &&
                  strcmp(a->grants[i].project, b->grants[i].project) == 0;
    }
    return is_same;
}

weir_status weir_identity_by_id(struct weir_txn *txn, const char *session, const char *token,
                                int64_t now_ms, struct weir_arena *arena, struct weir_identity *out,
                                struct weir_error *err)
{
    struct weir_session of_session;
    struct weir_token of_token;
    weir_status status = WEIR_ERR_UNAUTH;
    if (session != NULL) {
        status = weir_txn_get(txn, &weir_session_resource, session, arena, &of_session, err);
        status = status == WEIR_OK ? identify_session(txn, &of_session, now_ms, arena, out, err)
                                   : WEIR_ERR_UNAUTH;
    } else if (token != NULL) {
        status = weir_txn_get(txn, &weir_token_resource, token, arena, &of_token, err);
        status = status == WEIR_OK ? identify_token(txn, &of_token, now_ms, arena, out, err)
                                   : WEIR_ERR_UNAUTH;
    }
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAUTH, "what proved who you are has ended");
}

weir_status weir_identity_check(struct weir_txn *txn, const struct weir_identity *identity,
                                int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_identity now;
    weir_status status =
        weir_identity_by_id(txn, identity->session, identity->token, now_ms, arena, &now, err);
    if (status != WEIR_OK || !has_same_rights(&now, identity)) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "what proved who you are has ended or changed");
    }
    return WEIR_OK;
}

weir_status weir_login_link_look(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                 struct weir_arena *arena, struct weir_login_link *out,
                                 struct weir_error *err)
{
    struct weir_login_link link;
    WEIR_TRY(find_by_secret(txn, &weir_login_link_resource, secret, arena, &link, err));
    if (link.used_ms != 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the login link was used already: make a new one");
    }
    if (link.expires_ms <= now_ms) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "the login link has expired: make a new one");
    }
    struct weir_identity identity = {0};
    WEIR_TRY(load_user(txn, link.user, arena, &identity, err));
    WEIR_TRY(limit_by_token(txn, link.token, now_ms, arena, &identity, err));
    *out = link;
    return WEIR_OK;
}

weir_status weir_login_link_take(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                 struct weir_arena *arena, struct weir_login_link *out,
                                 struct weir_error *err)
{
    struct weir_login_link link;
    WEIR_TRY(weir_login_link_look(txn, secret, now_ms, arena, &link, err));
    link.used_ms = now_ms;
    WEIR_TRY(weir_txn_update(txn, &weir_login_link_resource, &link, WEIR_FIELDS("used_ms"), err));
    *out = link;
    return WEIR_OK;
}

static const char sql_end_sessions[] = "DELETE FROM sessions WHERE \"user\" = :user";
static const char sql_end_tokens[] =
    "DELETE FROM tokens WHERE \"user\" = :user AND origin = 'password'";
static const char sql_end_links[] = "DELETE FROM login_links WHERE \"user\" = :user";

weir_status weir_user_end_sessions(struct weir_txn *txn, const char *user, struct weir_error *err)
{
    WEIR_TRY(
        weir_txn_exec(txn, sql_end_sessions, WEIR_BINDS(WEIR_BIND_TEXT("user", user)), NULL, err));
    return weir_txn_exec(txn, sql_end_links, WEIR_BINDS(WEIR_BIND_TEXT("user", user)), NULL, err);
}

weir_status weir_user_end_password_tokens(struct weir_txn *txn, const char *user,
                                          struct weir_error *err)
{
    return weir_txn_exec(txn, sql_end_tokens, WEIR_BINDS(WEIR_BIND_TEXT("user", user)), NULL, err);
}

weir_status weir_user_check_other_admin(struct weir_txn *txn, const char *user,
                                        struct weir_error *err)
{
    int64_t n;
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("role", EQ, "admin"),
                                                  WEIR_FILTER_INT("is_disabled", EQ, 0),
                                                  WEIR_FILTER_TEXT("name", NE, user))};
    WEIR_TRY(weir_txn_count(txn, &weir_user_resource, &query, &n, err));
    return n > 0 ? WEIR_OK
                 : weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "\"%s\" is the last admin: make another one first", user);
}

static const char sql_expire_sessions[] = "DELETE FROM sessions WHERE expires_ms <= :now";
static const char sql_expire_links[] = "DELETE FROM login_links WHERE expires_ms <= :now";

weir_status weir_identity_expire(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_expire_sessions, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), NULL,
                           err));
    return weir_txn_exec(txn, sql_expire_links, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), NULL,
                         err);
}
