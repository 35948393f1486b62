/** Who calls: what programs show, sessions, tokens of tasks. */
#include "api/attempt_token.h"
#include "api/auth/audit.h"
#include "api/auth/login.h"
#include "api/core/answer.h"
#include "api/core/dispatch.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/role.h"
#include "store/table.h"

#include "job/former.h"

#include <stdio.h>
#include <string.h>

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
static weir_status former_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct identify *who = context;
    struct api_call *call = who->call;
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_attempt *attempt = WEIR_ARENA_ARRAY(call->arena, 1, struct weir_attempt);
    weir_secret_hash(who->token, hash);
    WEIR_TRY(weir_former_attempt(txn, hash, NULL, call->arena, attempt, err));
    be_attempt(call, attempt);
    call->former = weir_arena_strdup(call->arena, hash);
    return WEIR_OK;
}

static weir_status identify_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct identify *who = context;
    struct api_call *call = who->call;
    return who->task != NULL ? identify_attempt(txn, who, err)
                             : weir_session_identify(txn, who->session, call->now_ms, call->arena,
                                                     &call->identity, err);
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

static weir_status no_proof(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAUTH,
                          "no token and no session: send \"Authorization: Bearer weir_…\", or log "
                          "in with the link that `weir login` prints");
}

/* Of a task, or else of somebody. */
static weir_status identify_token(struct api_call *call, const char *token, struct weir_error *err)
{
    struct identify who = {.call = call, .token = token};
    struct weir_identity_proven proven;
    if (attempt_token_is(token)) {
        WEIR_TRY(attempt_token_open(call->api->task_key, token, call->arena, &who.task,
                                    &who.attempt, err));
        return weir_store_read(call->api->store, identify_in, &who, err);
    }
    struct weir_identity_ask ask =
        login_ask(call, weir_identities_of(call->api->identities, &weir_identity_token));
    ask.given[0] = token;
    weir_status status = weir_identity_prove(&ask, &proven, &call->identity, err);
    bool may_be_former = status == WEIR_ERR_UNAUTH && call->route != NULL &&
                         (call->route->flags & ROUTE_FORMER) != 0;
    return may_be_former && weir_store_read(call->api->store, former_in, &who, NULL) == WEIR_OK
               ? WEIR_OK
               : status;
}

static void note_caller(struct api_call *call)
{
    call->actor = call->attempt != NULL
                      ? weir_arena_printf(call->arena, "task/%s", call->attempt->task)
                      : call->identity.user.name;
}

weir_status api_identify_by(struct api_call *call, const char *token, const char *session,
                            struct weir_error *err)
{
    struct identify who = {.call = call, .session = session};
    if (token == NULL && session == NULL) {
        return no_proof(err);
    }
    WEIR_TRY(token != NULL ? identify_token(call, token, err)
                           : weir_store_read(call->api->store, identify_in, &who, err));
    note_caller(call);
    return token == NULL ? check_csrf(call, err) : WEIR_OK;
}

/* By what the request shows of the ask's kind. */
static weir_status identify_shown(struct api_call *call, struct weir_identity_ask *ask,
                                  struct weir_error *err)
{
    struct weir_identity_proven proven;
    struct weir_error off;
    if (weir_identity_check_on(ask->way, &off) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "%s", off.message);
    }
    if (ask->token != NULL) {
        return api_identify_by(call, ask->token, NULL, err);
    }
    WEIR_TRY(weir_identity_prove(ask, &proven, &call->identity, err));
    note_caller(call);
    return WEIR_OK;
}

weir_status api_identify(struct api_call *call, enum weir_identity_reach reach,
                         struct weir_error *err)
{
    size_t n;
    const struct weir_identity_way *ways = weir_identities_list(call->api->identities, &n);
    for (size_t i = 0; i < n; i++) {
        struct weir_identity_ask ask = login_ask(call, &ways[i]);
        if (ways[i].ops->shown != NULL && ways[i].ops->reach <= reach && ways[i].ops->shown(&ask)) {
            return identify_shown(call, &ask, err);
        }
    }
    return api_identify_by(call, NULL, weir_http_request_cookie(call->request, "weir_session"),
                           err);
}

weir_status api_session_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    size_t n_ways;
    const struct weir_identity_way *ways = weir_identities_list(call->api->identities, &n_ways);
    size_t n_grants = call->identity.n_grants, n_proofs = 0, n_gone = 0;
    struct api_gone_role *gone = WEIR_ARENA_ARRAY(call->arena, n_grants, struct api_gone_role);
    char **proofs = WEIR_ARENA_ARRAY(call->arena, n_ways, char *);
    json_t *projects = json_object();
    for (size_t i = 0; i < n_ways && ways[i].is_on; i++) {
        proofs[n_proofs++] = (char *)ways[i].kind->name;
    }
    for (size_t i = 0; i < n_grants; i++) {
        const struct weir_grant *grant = &call->identity.grants[i];
        json_object_set_new(projects, grant->project, api_rights_list(grant->rights));
        if (grant->gone_role != NULL) {
            gone[n_gone++] =
                (struct api_gone_role){.project = grant->project, .role = grant->gone_role};
        }
    }
    API_ANSWER(call, api_caller, .user = call->actor, .role = call->identity.role_name,
               .csrf = call->identity.csrf, .version = WEIR_VERSION,
               .rights = api_rights_list(call->identity.rights), .projects = projects,
               .gone_roles = gone, .n_gone_roles = n_gone, .proofs = proofs, .n_proofs = n_proofs);
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
    char secret[WEIR_SECRET_BYTES];
    int64_t good_ms;
    WEIR_TRY(weir_identity_make_link(txn, call->api->identities, &call->identity, call->now_ms,
                                     secret, &good_ms, err));
    WEIR_TRY(audit_act(call, txn, "login_link_made",
                       weir_arena_printf(call->arena, "user/%s", call->actor),
                       weir_arena_printf(call->arena, "A login link of %s (%s) was made",
                                         call->actor, call->identity.role_name),
                       err));
    char *url = weir_arena_printf(call->arena, "%s/login?link=%s", call->api->server_url, secret);
    API_ANSWER(call, api_login_link, .url = url, .expires_s = good_ms / 1000);
    return WEIR_OK;
}
