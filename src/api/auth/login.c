/** Logging in: the steps of a browser's way to a session. */
#include "api/auth/login.h"

#include "api/auth/audit.h"
#include "api/core/functions.h"
#include "api/core/query.h"

struct weir_identity_ask login_ask(struct api_call *call, const struct weir_identity_way *way)
{
    return (struct weir_identity_ask){.identities = call->api->identities,
                                      .way = way,
                                      .request = call->request,
                                      .response = call->response,
                                      .arena = call->arena,
                                      .now_ms = call->now_ms,
                                      .note = &call->guessed};
}

/* ", as 17 of https://idp.example" */
static const char *known_elsewhere(const struct api_call *call,
                                   const struct weir_identity_proven *proven)
{
    return proven->issuer != NULL
               ? weir_arena_printf(call->arena, ", as %.80s of %.80s",
                                   proven->subject != NULL ? proven->subject : proven->user,
                                   proven->issuer)
               : "";
}

weir_status login_begin_session(struct api_call *call, struct weir_txn *txn,
                                struct weir_identity_ask *ask,
                                const struct weir_identity_proven *proven,
                                char secret[WEIR_SECRET_BYTES], struct weir_error *err)
{
    struct weir_session session;
    const struct weir_identity_ops *ops = ask->way->ops;
    if (ops->callback != NULL) {
        WEIR_TRY(ops->callback(txn, ask, proven, err));
    }
    WEIR_TRY(weir_identity_begin_session(txn, proven, ask, secret, &session, err));
    call->actor = session.user;
    return audit_act(
        call, txn, "session_begun", weir_arena_printf(call->arena, "session/%s", session.id),
        weir_arena_printf(call->arena, "A session of %s (%s) was begun with %s%s", session.user,
                          session.role, ops->words, known_elsewhere(call, proven)),
        err);
}

void login_set_cookie(struct api_call *call, const char *secret)
{
    weir_http_response_header(
        call->response, "Set-Cookie",
        weir_arena_printf(
            call->arena, "weir_session=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s",
            secret, (long long)(WEIR_SESSION_MS / 1000), call->request->is_tls ? "; Secure" : ""));
}

/* ---- the first step ---------------------------------------------------------------------------- */

static weir_status begin(struct api_call *call, const struct weir_identity_way *way,
                         const char *given, struct weir_error *err)
{
    struct weir_identity_ask ask = login_ask(call, way);
    struct weir_identity_step step = {0};
    ask.given[0] = given;
    weir_status status = way->ops->begin(&ask, &step, err);
    if (status == WEIR_ERR_UNAUTH) {
        login_page_refuse(call, way, way->ops->refusal);
        return WEIR_OK;
    }
    WEIR_TRY(status);
    if (step.location != NULL) {
        weir_http_response_redirect(call->response, step.location);
    } else {
        login_page_show(call, step.html);
    }
    if (step.cookie != NULL) {
        weir_http_response_header(call->response, "Set-Cookie", step.cookie);
    }
    return WEIR_OK;
}

/* What a link to the page brings of a kind's field. */
static const char *brought(const struct api_call *call, const struct weir_identity_way *way)
{
    return way->ops->fields != NULL && way->ops->begin != NULL
               ? weir_http_request_query(call->request, way->ops->fields[0])
               : NULL;
}

weir_status api_login_page(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    size_t n;
    const struct weir_identity_way *ways = weir_identities_list(call->api->identities, &n);
    (void)txn;
    call->login_next = api_query_text(call, "next");
    for (size_t i = 0; i < n; i++) {
        const char *given = brought(call, &ways[i]);
        if (given != NULL) {
            WEIR_TRY(weir_identity_check_on(&ways[i], err));
            return begin(call, &ways[i], given, err);
        }
    }
    login_page_ask(call, login_page_lead(call, NULL));
    return WEIR_OK;
}

weir_status api_login_begin(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_identity_way *way;
    (void)txn;
    WEIR_TRY(weir_identities_find(call->api->identities, call->params[0], &way, err));
    call->login_next = api_query_text(call, "next");
    const char *given = brought(call, way), *html = login_page_draw(call, way, false);
    if (way->ops->begin != NULL && (given != NULL || way->ops->fields == NULL)) {
        return begin(call, way, given, err);
    }
    if (html == NULL) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND,
            "nobody logs in by \"%s\" on a page: programs show it with each request",
            way->kind->name);
    }
    login_page_show(call, html);
    return WEIR_OK;
}

/* ---- the second -------------------------------------------------------------------------------- */

struct login {
    struct api_call *call;
    struct weir_identity_ask ask;
    struct weir_identity_proven proven;
    char secret[WEIR_SECRET_BYTES];
};

static weir_status begin_session_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct login *login = context;
    return login_begin_session(login->call, txn, &login->ask, &login->proven, login->secret, err);
}

/* Told on the page, if it is for a person to mend. */
static weir_status refuse(struct login *login, weir_status status)
{
    struct api_call *call = login->call;
    const struct weir_identity_way *way = login->ask.way;
    if (call->guessed.retry_after_s > 0) {
        login_page_refuse(
            call, way,
            weir_arena_printf(call->arena,
                              "Too many wrong passwords came for this name, or from here: "
                              "try again in %d s.",
                              (int)call->guessed.retry_after_s));
        return WEIR_OK;
    }
    if (status == WEIR_ERR_UNAUTH) {
        login_page_refuse(call, way, way->ops->refusal);
        return WEIR_OK;
    }
    return status;
}

static weir_status log_in(struct login *login, struct weir_error *err)
{
    struct api_call *call = login->call;
    weir_status status = weir_identity_prove(&login->ask, &login->proven, NULL, err);
    if (status == WEIR_OK && login->ask.is_put_off) {
        call->is_act = false; /* yet */
        return WEIR_OK;
    }
    if (status == WEIR_OK) {
        status = api_write(call, begin_session_in, login, err);
    }
    if (status != WEIR_OK) {
        return refuse(login, status);
    }
    const char *next = call->login_next != NULL ? call->login_next : "/";
    if (login->ask.way->ops->comes_back) {
        login_page_lead_on(call, next);
    } else {
        weir_http_response_redirect(call->response, next);
    }
    login_set_cookie(call, login->secret);
    return WEIR_OK;
}

static weir_status take_form(struct api_call *call, const struct weir_identity_way *way,
                             struct weir_error *err)
{
    struct login login = {.call = call, .ask = login_ask(call, way)};
    const char *next = NULL;
    WEIR_TRY(login_check_origin(call, err));
    for (size_t i = 0; way->ops->fields[i] != NULL; i++) {
        WEIR_TRY(login_page_read_field(call, way->ops->fields[i], &login.ask.given[i], err));
    }
    if (login_page_read_field(call, "next", &next, NULL) == WEIR_OK && login_is_next(next)) {
        call->login_next = next;
    }
    return log_in(&login, err);
}

/* Neither a form of the page's nor an address of a provider's is for a kind that has none. */
static weir_status no_step(const struct weir_identity_way *way, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "a login by \"%s\" has no such step: open /login", way->kind->name);
}

weir_status api_login(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_identity_way *way =
        weir_identities_of(call->api->identities, &weir_identity_link);
    (void)txn;
    WEIR_TRY(weir_identity_check_on(way, err));
    return take_form(call, way, err);
}

weir_status api_login_form(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_identity_way *way;
    (void)txn;
    WEIR_TRY(weir_identities_find(call->api->identities, call->params[0], &way, err));
    return way->ops->draw != NULL && way->ops->fields != NULL ? take_form(call, way, err)
                                                              : no_step(way, err);
}

weir_status api_login_back(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct login login = {.call = call};
    const struct weir_identity_way *way;
    (void)txn;
    WEIR_TRY(weir_identities_find(call->api->identities, call->params[0], &way, err));
    login.ask = login_ask(call, way);
    return way->ops->comes_back ? log_in(&login, err) : no_step(way, err);
}
