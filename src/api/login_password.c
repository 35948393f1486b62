/** Logging in with a password: a browser's session, or a program's token. */
#include "api/answer.h"
#include "api/args.h"
#include "api/audit.h"
#include "api/functions.h"
#include "api/guard.h"
#include "api/login.h"
#include "api/login_page.h"
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
    const char *user, *password;
    const char *token_name, *role, *project; /* of a token; token_name NULL: a session */
    int64_t days;
    bool is_form;           /* a browser is led to the console */
    struct weir_user found; /* password_hash NULL: nobody, or without a password */
};

static weir_status read_body(struct password_login *login, struct weir_error *err)
{
    static const char *const known[] = {"user",    "password",     "token", "role",
                                        "project", "expires_days", NULL};
    struct api_call *call = login->call;
    WEIR_TRY(api_body_only(call, known, err));
    WEIR_TRY(api_body_text(call, "user", &login->user, err));
    WEIR_TRY(api_body_text(call, "password", &login->password, err));
    WEIR_TRY(api_body_text(call, "token", &login->token_name, err));
    WEIR_TRY(api_body_text(call, "role", &login->role, err));
    WEIR_TRY(api_body_text(call, "project", &login->project, err));
    WEIR_TRY(api_body_int(call, "expires_days", TOKEN_DAYS_DEFAULT, &login->days, err));
    if (login->user == NULL || login->password == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected $.user and $.password");
    }
    if (login->days < 1 || login->days > TOKEN_DAYS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.expires_days: expected 1 to %d",
                              TOKEN_DAYS_MAX);
    }
    return WEIR_OK;
}

/* Somebody who is not there, or may not log in, is as one who has no password. */
static weir_status find_user(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct password_login *login = context;
    weir_status status =
        weir_txn_get(txn, &weir_user_resource, login->user, login->call->arena, &login->found, err);
    if (status == WEIR_ERR_NOT_FOUND || (status == WEIR_OK && login->found.is_disabled)) {
        login->found = (struct weir_user){0};
        status = WEIR_OK;
    }
    return status;
}

static weir_status make_token(struct weir_txn *txn, struct password_login *login,
                              struct weir_error *err)
{
    struct api_call *call = login->call;
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    struct weir_role_found role;
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    WEIR_TRY(weir_role_find(txn,
                            login->role != NULL ? login->role
                            : strcmp(login->found.role, "member") == 0
                                ? weir_role_text(WEIR_ROLE_ML_ENGINEER)
                                : login->found.role,
                            call->arena, &role, err));
    if (!role.is_of_projects) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.role: a person's token has a person's role");
    }
    const struct weir_token token = {.id = id,
                                     .user = login->found.name,
                                     .name = weir_arena_strdup(call->arena, login->token_name),
                                     .role = (char *)role.name,
                                     .project = weir_arena_strdup(call->arena, login->project),
                                     .origin = "password",
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
    call->actor = login->found.name;
    if (login->token_name != NULL) {
        return make_token(txn, login, err);
    }
    WEIR_TRY(login_begin_session(
        call, txn, &(struct weir_login_link){.user = login->found.name, .role = login->found.role},
        "a password", secret, err));
    if (login->is_form) {
        weir_http_response_redirect(call->response,
                                    call->login_next != NULL ? call->login_next : "/");
    } else {
        api_answer(call, json_pack("{s:s}", "user", login->found.name));
    }
    login_set_cookie(call, secret);
    return WEIR_OK;
}

weir_status api_login_password(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct password_login login = {.call = call};
    (void)txn;
    WEIR_TRY(login_check_origin(call, err));
    WEIR_TRY(read_body(&login, err));
    WEIR_TRY(api_read(call, find_user, &login, err));
    WEIR_TRY(guard_check(call, login.user, login.password, login.found.password_hash, err));
    return api_write(call, log_in, &login, err);
}

weir_status api_login_form(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct password_login login = {.call = call, .is_form = true};
    (void)txn;
    WEIR_TRY(login_page_read_field(call, "user", &login.user, err));
    WEIR_TRY(login_page_read_field(call, "password", &login.password, err));
    const char *next = NULL;
    if (login_page_read_field(call, "next", &next, NULL) == WEIR_OK && login_is_next(next)) {
        call->login_next = next;
    }
    WEIR_TRY(api_read(call, find_user, &login, err));
    weir_status status =
        guard_check(call, login.user, login.password, login.found.password_hash, err);
    if (status == WEIR_ERR_UNAUTH) {
        login_page_refuse(call, "Name and password do not fit.");
        return WEIR_OK;
    }
    if (call->retry_after_s > 0) {
        login_page_refuse(call, weir_arena_printf(call->arena,
                                                  "Too many wrong passwords came for this name, or "
                                                  "from here: try again in %d s.",
                                                  (int)call->retry_after_s));
        return WEIR_OK;
    }
    return status == WEIR_OK ? api_write(call, log_in, &login, err) : status;
}
