/** The proxy's questions about visitors of services, and the console's side of their login. */
#include "api/auth/login.h"
#include "api/core/dispatch.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/job/service.h"
#include "store/table.h"

#include "base/log.h"
#include "http/stream.h"
#include "job/job.h"
#include "job/service.h"
#include "store/live.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define NONCE_LEN (WEIR_SHA256_TEXT_BYTES - 1)

void weir_api_attach_services(struct weir_api *api, const char *domain, int port)
{
    free((char *)api->services_domain);
    api->services_domain = domain != NULL ? weir_xstrdup(domain) : NULL;
    api->services_port = port;
}

/* ---- the proxy asks ---------------------------------------------------------------------------------- */

struct visit {
    struct api_call *call;
    const char *id, *login, *ticket, *nonce;
    struct weir_service_look look;
    const char *cut_off; /**< Why its node is not asked; NULL: it is. */
    char secret[WEIR_SECRET_BYTES];
};

static weir_status not_there(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such service");
}

static const char sql_node[] = "SELECT n.name, " WEIR_LIVE_NODE_OF(
    "n", "last_seen_ms") ", n.left_ms FROM tasks t"
                         " JOIN nodes n ON n.name = t.node WHERE t.job = :job AND t.rank = 0";

/* Nobody waits for a machine of which the server has not heard either. */
static weir_status look_at_node(struct weir_txn *txn, struct visit *visit, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct api_call *call = visit->call;
    bool has_row;
    if (visit->look.service.job == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_stmt_open(txn, sql_node,
                            WEIR_BINDS(WEIR_BIND_TEXT("job", visit->look.service.job)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    const struct weir_node node = {.name = has_row ? weir_stmt_text(row, 0, call->arena) : NULL,
                                   .last_seen_ms = has_row ? weir_stmt_int(row, 1) : 0,
                                   .left_ms = has_row ? weir_stmt_int(row, 2) : 0};
    if (has_row &&
        strcmp(weir_node_state(&node, call->now_ms, call->api->since_ms), WEIR_NODE_READY) != 0) {
        visit->cut_off =
            weir_arena_printf(call->arena,
                              "%s \"%s\" is on node %s, which is not heard of: its machine, or the "
                              "network to it, may be "
                              "gone. When the node counts as lost, it starts on another",
                              visit->look.service.kind, visit->look.service.name, node.name);
    }
    return WEIR_OK;
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct visit *visit = context;
    struct api_call *call = visit->call;
    if (visit->login != NULL) {
        WEIR_TRY(weir_service_login_identify(txn, visit->id, visit->login, call->now_ms,
                                             call->arena, &call->identity, err));
        call->actor = call->identity.user.name;
    }
    weir_status status = weir_service_look(txn, visit->id, call->arena, &visit->look, err);
    bool is_open = status == WEIR_OK && service_is_open_to(&visit->look.service, &call->identity);
    return status == WEIR_OK && is_open                        ? look_at_node(txn, visit, err)
           : status == WEIR_OK || status == WEIR_ERR_NOT_FOUND ? not_there(err)
                                                               : status;
}

static const char *why_absent(const struct weir_service_look *look, struct weir_arena *arena)
{
    const struct weir_service *service = &look->service;
    bool is_starting = strcmp(look->state, WEIR_SERVICE_STARTING) == 0 ||
                       strcmp(look->state, WEIR_SERVICE_RUNNING) == 0;
    return weir_arena_printf(arena, "%s \"%s\" %s%s%s%s", service->kind, service->name,
                             is_starting                                       ? "is starting"
                             : strcmp(look->state, WEIR_SERVICE_FAILED) == 0   ? "has failed"
                             : strcmp(look->state, WEIR_SERVICE_STOPPING) == 0 ? "is stopping"
                                                                               : "does not run",
                             look->why != NULL ? ": " : "", look->why != NULL ? look->why : "",
                             is_starting ? "" : "; start it again in Weir's console");
}

static weir_status find(void *context, const char *id, const struct weir_proxy_shown *shown,
                        struct weir_arena *arena, struct weir_proxy_service *out,
                        struct weir_error *err)
{
    struct weir_api *api = context;
    struct weir_http_request as = {.method = "GET", .path = "/services", .remote = ""};
    struct api_call call = {.api = api,
                            .request = &as,
                            .arena = arena,
                            .actor = "nobody",
                            .now_ms = weir_clock_now_ms(api->clock)};
    struct visit visit = {.call = &call, .id = id, .login = shown->login};
    weir_status status = WEIR_OK;
    if (shown->token != NULL) {
        visit.login = NULL;
        status = api_identify_by(&call, shown->token, NULL, err);
        api_note_for_audit(&call, status, err);
    } else if (shown->login == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "no login of this service");
    }
    if (status == WEIR_OK) {
        status = weir_store_read(api->store, look_in, &visit, err);
    }
    WEIR_TRY(status);
    const struct weir_service *service = &visit.look.service;
    bool is_ended = strcmp(visit.look.state, WEIR_SERVICE_STOPPED) == 0 ||
                    strcmp(visit.look.state, WEIR_SERVICE_FAILED) == 0;
    *out = (struct weir_proxy_service){
        .id = service->id,
        .project = service->project,
        .user = call.identity.user.name,
        .address = visit.cut_off != NULL ? NULL : service->address,
        .secret = service->secret,
        .credential = service->credential,
        .keeps_path = service->keeps_path,
        .is_ended = is_ended,
        .message = visit.cut_off != NULL ? visit.cut_off : why_absent(&visit.look, arena)};
    return WEIR_OK;
}

static weir_status keeps_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct visit *visit = context;
    return weir_txn_get(txn, &weir_service_resource, visit->id, visit->call->arena,
                        &visit->look.service, err);
}

static bool keeps(void *context, const char *id)
{
    struct weir_api *api = context;
    struct weir_arena arena;
    struct weir_error ignored;
    weir_arena_init(&arena, 0);
    struct api_call call = {.api = api, .arena = &arena};
    struct visit visit = {.call = &call, .id = id};
    bool does = weir_store_read(api->store, keeps_in, &visit, &ignored) == WEIR_OK &&
                visit.look.service.keeps_path;
    weir_arena_fini(&arena);
    return does;
}

static weir_status enter_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct visit *visit = context;
    return weir_service_ticket_take(txn, visit->id, visit->ticket, visit->nonce,
                                    visit->call->now_ms, visit->secret, err);
}

static weir_status enter(void *context, const char *id, const char *ticket, const char *nonce,
                         struct weir_arena *arena, const char **out_login, struct weir_error *err)
{
    struct weir_api *api = context;
    struct api_call call = {.api = api, .arena = arena, .now_ms = weir_clock_now_ms(api->clock)};
    struct visit visit = {.call = &call, .id = id, .ticket = ticket, .nonce = nonce};
    WEIR_TRY(weir_store_write(api->store, enter_in, &visit, err));
    *out_login = weir_arena_strdup(arena, visit.secret);
    return WEIR_OK;
}

static weir_status used_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct visit *visit = context;
    return weir_service_note_use(txn, visit->id, visit->call->now_ms, err);
}

static void used(void *context, const char *id)
{
    struct weir_api *api = context;
    struct weir_error error = {0};
    struct api_call call = {.api = api, .now_ms = weir_clock_now_ms(api->clock)};
    struct visit visit = {.call = &call, .id = id};
    if (weir_store_write(api->store, used_in, &visit, &error) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "service_use_not_noted", WEIR_KV_STR("service", id),
                 WEIR_KV_STR("error", error.message));
    }
}

const struct weir_proxy_ops weir_api_proxy_ops = {find, keeps, enter, used};

/* ---- the console's side --------------------------------------------------------------------------------- */

static weir_status ticket_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct visit *visit = context;
    WEIR_TRY(look_in(txn, visit, err));
    return weir_service_ticket_make(txn, visit->id, &visit->call->identity, visit->nonce,
                                    visit->call->now_ms, visit->secret, err);
}

static bool is_nonce(const char *nonce)
{
    return nonce != NULL && strlen(nonce) == NONCE_LEN &&
           strspn(nonce, "0123456789abcdef") == NONCE_LEN;
}

/* A browser that comes from another site brings no cookie that is Strict; once it asks from here, it does. */
static void ask_again(struct api_call *call)
{
    weir_http_response_text(
        call->response, 200, "text/html; charset=utf-8",
        "<!doctype html><html lang=en><meta charset=utf-8><title>Weir</title><p>One moment …</p>");
    weir_http_response_header(call->response, "Refresh",
                              weir_arena_printf(call->arena, "0;url=%s&again=1",
                                                weir_http_request_target(call->request)));
}

static void send_on(struct api_call *call, const struct visit *visit)
{
    const char *next = api_query_text(call, "next");
    const char *host = weir_http_request_header(call->request, "Host");
    const struct weir_service *service = &visit->look.service;
    if (host == NULL || !weir_proxy_is_host(host)) {
        weir_http_response_errorf(call->response, WEIR_ERR_INVALID,
                                  "the request has no Host, or one that is none");
        return;
    }
    char *url =
        weir_proxy_url(call->api->services_domain, call->request->is_tls, host,
                       call->api->services_port, service->id, service->keeps_path, call->arena);
    weir_http_response_redirect(
        call->response,
        weir_arena_printf(call->arena, "%s.weir/enter?ticket=%s&next=%s", url, visit->secret,
                          weir_http_percent_encode(call->arena, next != NULL ? next : "")));
}

/* Only a session's cookie counts, and a browser has it: no person comes here with a token. */
weir_status api_service_enter(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_error refused = {0};
    struct visit visit = {.call = call,
                          .id = api_query_text(call, "service"),
                          .nonce = api_query_text(call, "nonce")};
    (void)txn;
    if (call->api->services_port == 0 || visit.id == NULL || !weir_service_id_is_valid(visit.id) ||
        !is_nonce(visit.nonce)) {
        return not_there(err);
    }
    const char *session = weir_http_request_cookie(call->request, "weir_session");
    if (session == NULL || api_identify_by(call, NULL, session, &refused) != WEIR_OK) {
        if (api_query_text(call, "again") == NULL) {
            ask_again(call);
        } else {
            call->login_next = weir_http_request_target(call->request);
            login_page_ask(call, login_page_lead(call, "To open this service, log in"));
        }
        return WEIR_OK;
    }
    WEIR_TRY(weir_store_write(call->api->store, ticket_in, &visit, err));
    send_on(call, &visit);
    return WEIR_OK;
}
