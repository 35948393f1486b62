/** Logging in with a password that a program sends: a session, or a token. */
#include "api/auth/audit.h"
#include "api/auth/login.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "store/role.h"
#include "store/table.h"

#include "base/uuid.h"
#include "track/track.h"

#include <string.h>

#define DAY_MS             ((int64_t)24 * 3600 * 1000)
#define TOKEN_DAYS_DEFAULT 30
#define TOKEN_DAYS_MAX     366

/** What was given, and what is made of it. */
struct password_login {
    struct api_call *call;
    const char *token_name, *role, *project; /* of a token; token_name NULL: a session */
    int64_t days;
    struct weir_identity_ask ask;
    struct weir_identity_proven proven;
};

static weir_status read_body(struct password_login *login, struct weir_error *err)
{
    static const char *const known[] = {"user",    "password",     "token", "role",
                                        "project", "expires_days", NULL};
    struct api_call *call = login->call;
    WEIR_TRY(api_body_only(call, known, err));
    WEIR_TRY(api_body_text(call, "user", &login->ask.given[0], err));
    WEIR_TRY(api_body_text(call, "password", &login->ask.given[1], err));
    WEIR_TRY(api_body_text(call, "token", &login->token_name, err));
    WEIR_TRY(api_body_text(call, "role", &login->role, err));
    WEIR_TRY(api_body_text(call, "project", &login->project, err));
    WEIR_TRY(api_body_int(call, "expires_days", TOKEN_DAYS_DEFAULT, &login->days, err));
    if (login->ask.given[0] == NULL || login->ask.given[1] == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected $.user and $.password");
    }
    if (login->days < 1 || login->days > TOKEN_DAYS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.expires_days: expected 1 to %d",
                              TOKEN_DAYS_MAX);
    }
    return WEIR_OK;
}

static weir_status make_token(struct weir_txn *txn, struct password_login *login,
                              struct weir_error *err)
{
    struct api_call *call = login->call;
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    struct weir_role_found role;
    struct weir_user user;
    WEIR_TRY(weir_txn_get(txn, &weir_user_resource, login->proven.user, call->arena, &user, err));
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    WEIR_TRY(weir_role_find(txn,
                            login->role != NULL ? login->role
                            : strcmp(user.role, "member") == 0
                                ? weir_role_text(WEIR_ROLE_ML_ENGINEER)
                                : user.role,
                            call->arena, &role, err));
    if (!role.is_of_projects) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.role: a person's token has a person's role");
    }
    const struct weir_token token = {.id = id,
                                     .user = user.name,
                                     .name = weir_arena_strdup(call->arena, login->token_name),
                                     .role = (char *)role.name,
                                     .project = weir_arena_strdup(call->arena, login->project),
                                     .origin = (char *)login->proven.by,
                                     .secret_hash = hash,
                                     .created_ms = call->now_ms,
                                     .expires_ms = call->now_ms + login->days * DAY_MS};
    WEIR_TRY(weir_txn_insert(txn, &weir_token_resource, &token, err));
    json_t *answer = weir_record_to_json(&weir_token_resource, &token);
    json_object_set_new(answer, "secret", json_string(secret));
    api_answer(call, answer);
    return audit_act(call, txn, "token_created", weir_arena_printf(call->arena, "token/%s", id),
                     weir_arena_printf(call->arena, "Token %s of %s (%s) was made with a password",
                                       token.name, token.user, token.role),
                     err);
}

static weir_status log_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct password_login *login = context;
    struct api_call *call = login->call;
    char secret[WEIR_SECRET_BYTES];
    call->actor = login->proven.user;
    if (login->token_name != NULL) {
        WEIR_TRY(login->ask.way->ops->callback(txn, &login->ask, &login->proven, err));
        return make_token(txn, login, err);
    }
    WEIR_TRY(login_begin_session(call, txn, &login->ask, &login->proven, secret, err));
    API_ANSWER(call, api_logged_in, .user = login->proven.user);
    login_set_cookie(call, secret);
    return WEIR_OK;
}

weir_status api_login_password(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_identity_way *way =
        weir_identities_of(call->api->identities, &weir_identity_password);
    struct password_login login = {.call = call, .ask = login_ask(call, way)};
    (void)txn;
    WEIR_TRY(weir_identity_check_on(way, err));
    WEIR_TRY(login_check_origin(call, err));
    WEIR_TRY(read_body(&login, err));
    WEIR_TRY(weir_identity_prove(&login.ask, &login.proven, NULL, err));
    return api_write(call, log_in, &login, err);
}
