/** Who calls: tokens, sessions, one-time login links. */
#include "api/answer.h"
#include "api/attempt_token.h"
#include "api/audit.h"
#include "api/dispatch.h"
#include "api/functions.h"
#include "api/login.h"
#include "api/login_page.h"
#include "api/query.h"
#include "api/role.h"
#include "store/table.h"

#include "base/uuid.h"
#include "job/former.h"

#include <stdio.h>
#include <string.h>

#define SESSION_MS    ((int64_t)12 * 3600 * 1000)
#define LOGIN_LINK_MS ((int64_t)15 * 60 * 1000)

struct identify {
    struct api_call *call;
    const char *token, *session;
    char *task; /**< Of an attempt's token, with its number. */
    int64_t attempt;
};

static void be_attempt(struct api_call *call, const struct weir_attempt *attempt)
{
    static char name[] = "worker", kind[] = "service";
    call->attempt = attempt;
    call->identity = (struct weir_identity){
        .role = WEIR_ROLE_WORKER,
        .role_name = weir_role_text(WEIR_ROLE_WORKER),
        .rights = weir_role_rights(WEIR_ROLE_WORKER),
        .limit = weir_role_rights(WEIR_ROLE_WORKER),
        .user = {.name = name, .kind = kind, .role = (char *)weir_role_text(WEIR_ROLE_WORKER)}};
}

/* The attempt must live: its token ends with it. */
static weir_status identify_attempt(struct weir_txn *txn, struct identify *who,
                                    struct weir_error *err)
{
    struct api_call *call = who->call;
    struct weir_attempt *attempt = WEIR_ARENA_ARRAY(call->arena, 1, struct weir_attempt);
    weir_status status = weir_attempt_load(txn, who->task, who->attempt, call->arena, attempt, err);
    if (status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this task's token has ended: attempt %lld of task %s is over",
                              (long long)who->attempt, who->task);
    }
    WEIR_TRY(status);
    be_attempt(call, attempt);
    return WEIR_OK;
}

/* What the token of nobody else may be: that of tasks of before, on the routes that take it. */
static bool is_former(struct weir_txn *txn, struct api_call *call, const char *token)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_attempt *attempt = WEIR_ARENA_ARRAY(call->arena, 1, struct weir_attempt);
    if (call->route == NULL || (call->route->flags & ROUTE_FORMER) == 0) {
        return false;
    }
    weir_secret_hash(token, hash);
    if (weir_former_attempt(txn, hash, NULL, call->arena, attempt, NULL) != WEIR_OK) {
        return false;
    }
    be_attempt(call, attempt);
    call->former = weir_arena_strdup(call->arena, hash);
    return true;
}

static weir_status identify_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct identify *who = context;
    struct api_call *call = who->call;
    if (who->task != NULL) {
        return identify_attempt(txn, who, err);
    }
    if (who->token != NULL) {
        weir_status status =
            weir_token_identify(txn, who->token, call->now_ms, call->arena, &call->identity, err);
        return status == WEIR_ERR_UNAUTH && is_former(txn, call, who->token) ? WEIR_OK : status;
    }
    return weir_session_identify(txn, who->session, call->now_ms, call->arena, &call->identity,
                                 err);
}

/* A change that comes with a cookie must also show the session's CSRF value, which another site's
 * page cannot read. */
static weir_status check_csrf(const struct api_call *call, struct weir_error *err)
{
    const char *method = call->request->method;
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
        return WEIR_OK;
    }
    const char *given = weir_http_request_header(call->request, "X-Weir-Csrf");
    if (given == NULL || call->identity.csrf == NULL || strcmp(given, call->identity.csrf) != 0) {
        return weir_error_set(
            err, WEIR_ERR_DENIED,
            "a change from a browser session needs the header X-Weir-Csrf with the "
            "value of GET /api/v1/session");
    }
    return WEIR_OK;
}

const char *api_bearer(const struct weir_http_request *request)
{
    static const char bearer[] = "Bearer ";
    const char *header = weir_http_request_header(request, "Authorization");
    return header != NULL && strncmp(header, bearer, strlen(bearer)) == 0 ? header + strlen(bearer)
                                                                          : NULL;
}

weir_status api_identify(struct api_call *call, struct weir_error *err)
{
    const char *token = api_bearer(call->request);
    return api_identify_by(call, token, weir_http_request_cookie(call->request, "weir_session"),
                           err);
}

weir_status api_identify_by(struct api_call *call, const char *token, const char *session,
                            struct weir_error *err)
{
    struct identify who = {.call = call, .token = token, .session = session};
    if (who.token == NULL && who.session == NULL) {
        return weir_error_set(
            err, WEIR_ERR_UNAUTH,
            "no token and no session: send \"Authorization: Bearer weir_…\", or log "
            "in with the link that `weir login` prints");
    }
    if (who.token != NULL && attempt_token_is(who.token)) {
        WEIR_TRY(attempt_token_open(call->api->task_key, who.token, call->arena, &who.task,
                                    &who.attempt, err));
    }
    WEIR_TRY(weir_store_read(call->api->store, identify_in, &who, err));
    call->actor = call->attempt != NULL
                      ? weir_arena_printf(call->arena, "task/%s", call->attempt->task)
                      : call->identity.user.name;
    return who.token == NULL ? check_csrf(call, err) : WEIR_OK;
}

weir_status api_session_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    json_t *projects = json_object(), *gone = json_array();
    for (size_t i = 0; i < call->identity.n_grants; i++) {
        const struct weir_grant *grant = &call->identity.grants[i];
        json_object_set_new(projects, grant->project, api_rights_list(grant->rights));
        if (grant->gone_role != NULL) {
            json_array_append_new(
                gone, json_pack("{s:s,s:s}", "project", grant->project, "role", grant->gone_role));
        }
    }
    api_answer(call, json_pack("{s:s,s:s,s:s?,s:s,s:o,s:o,s:o}", "user", call->actor, "role",
                               call->identity.role_name, "csrf", call->identity.csrf, "version",
                               WEIR_VERSION, "rights", api_rights_list(call->identity.rights),
                               "projects", projects, "gone_roles", gone));
    weir_http_response_keep_plain(call->response);
    return WEIR_OK;
}

weir_status api_session_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *secret = weir_http_request_cookie(call->request, "weir_session");
    if (secret != NULL) {
        char hash[WEIR_SHA256_TEXT_BYTES];
        struct weir_session session;
        weir_secret_hash(secret, hash);
        WEIR_TRY(weir_txn_get_by(txn, &weir_session_resource, "secret_hash", hash, call->arena,
                                 &session, err));
        WEIR_TRY(weir_txn_delete(txn, &weir_session_resource, session.id, err));
        WEIR_TRY(audit_act(call, txn, "session_ended",
                           weir_arena_printf(call->arena, "session/%s", session.id),
                           "A session was ended by logging out", err));
    }
    weir_http_response_empty(call->response);
    weir_http_response_header(call->response, "Set-Cookie",
                              "weir_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    return WEIR_OK;
}

weir_status api_session_link(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    struct weir_login_link link = {.id = id,
                                   .user = call->identity.user.name,
                                   .role = (char *)call->identity.role_name,
                                   .token = call->identity.token,
                                   .secret_hash = hash,
                                   .created_ms = call->now_ms,
                                   .expires_ms = call->now_ms + LOGIN_LINK_MS};
    WEIR_TRY(weir_txn_insert(txn, &weir_login_link_resource, &link, err));
    WEIR_TRY(audit_act(
        call, txn, "login_link_made", weir_arena_printf(call->arena, "user/%s", call->actor),
        weir_arena_printf(call->arena, "A login link of %s (%s) was made", call->actor, link.role),
        err));
    char *url = weir_arena_printf(call->arena, "%s/login?link=%s", call->api->server_url, secret);
    api_answer(call, json_pack("{s:s,s:i}", "url", url, "expires_s", (int)(LOGIN_LINK_MS / 1000)));
    return WEIR_OK;
}

weir_status login_begin_session(struct api_call *call, struct weir_txn *txn,
                                const struct weir_login_link *link, const char *by,
                                char secret[WEIR_SECRET_BYTES], struct weir_error *err)
{
    char csrf[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_secret_make(secret);
    weir_secret_make(csrf);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    struct weir_session session = {.id = id,
                                   .user = link->user,
                                   .role = link->role,
                                   .token = link->token,
                                   .address = (char *)call->request->remote,
                                   .secret_hash = hash,
                                   .csrf = csrf,
                                   .created_ms = call->now_ms,
                                   .expires_ms = call->now_ms + SESSION_MS};
    WEIR_TRY(weir_txn_insert(txn, &weir_session_resource, &session, err));
    call->actor = link->user;
    return audit_act(call, txn, "session_begun", weir_arena_printf(call->arena, "session/%s", id),
                     weir_arena_printf(call->arena, "A session of %s (%s) was begun with %s",
                                       link->user, link->role, by),
                     err);
}

void login_set_cookie(struct api_call *call, const char *secret)
{
    weir_http_response_header(
        call->response, "Set-Cookie",
        weir_arena_printf(
            call->arena, "weir_session=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s",
            secret, (long long)(SESSION_MS / 1000), call->request->is_tls ? "; Secure" : ""));
}

weir_status api_login_page(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *secret = api_query_text(call, "link");
    struct weir_login_link link;
    (void)err;
    call->login_next = api_query_text(call, "next");
    if (secret == NULL) {
        login_page_refuse(call, "With your name and password:");
    } else if (weir_login_link_look(txn, secret, call->now_ms, call->arena, &link, NULL) !=
               WEIR_OK) {
        login_page_refuse(call, "This link was used before or is too old.");
    } else {
        login_page_offer(call, secret, link.user);
    }
    return WEIR_OK;
}

weir_status api_login(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char session_secret[WEIR_SECRET_BYTES];
    struct weir_login_link link;
    const char *secret;
    WEIR_TRY(login_page_read_field(call, "link", &secret, err));
    if (weir_login_link_take(txn, secret, call->now_ms, call->arena, &link, NULL) != WEIR_OK) {
        login_page_refuse(call, "This link was used before or is too old.");
        return WEIR_OK;
    }
    WEIR_TRY(login_begin_session(call, txn, &link, "a link", session_secret, err));
    weir_http_response_redirect(call->response, "/");
    login_set_cookie(call, session_secret);
    return WEIR_OK;
}
