#include "proxy/private.h"

#include "base/macros.h"
#include "base/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char *copy_or_null(const char *text)
{
    return text != NULL ? weir_xstrdup(text) : NULL;
}

weir_status weir_proxy_create(const struct weir_proxy_config *config, struct weir_proxy **out,
                              struct weir_error *err)
{
    if (config->domain != NULL && !weir_proxy_is_host(config->domain)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--services-domain %.100s: expected a name of a host, as "
                              "services.example or services.example:443",
                              config->domain);
    }
    struct weir_proxy *proxy = weir_xalloc(sizeof *proxy);
    *proxy = (struct weir_proxy){.config = *config};
    proxy->config.domain = copy_or_null(config->domain);
    proxy->config.console_url = copy_or_null(config->console_url);
    proxy->domain_host = copy_or_null(config->domain);
    if (proxy->domain_host != NULL) {
        proxy->domain_host[strcspn(proxy->domain_host, ":")] = '\0';
    }
    pthread_mutex_init(&proxy->lock, NULL);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(forwarder_start(&proxy->forwarder, err), status, destroy);
    WEIR_TRY_GOTO(websockets_start(proxy, &proxy->websockets, err), status, destroy);
    *out = proxy;
    return WEIR_OK;
destroy:
    weir_proxy_destroy(proxy);
    return status;
}

void weir_proxy_stop(struct weir_proxy *proxy)
{
    if (proxy != NULL) {
        forwarder_stop(proxy->forwarder);
        websockets_stop(proxy->websockets);
    }
}

void weir_proxy_destroy(struct weir_proxy *proxy)
{
    if (proxy == NULL) {
        return;
    }
    weir_proxy_stop(proxy);
    forwarder_destroy(proxy->forwarder);
    websockets_destroy(proxy->websockets);
    while (proxy->uses != NULL) {
        struct use *use = proxy->uses;
        proxy->uses = use->next;
        free(use->id);
        free(use->project);
        free(use);
    }
    pthread_mutex_destroy(&proxy->lock);
    free((char *)proxy->config.domain);
    free((char *)proxy->config.console_url);
    free(proxy->domain_host);
    free(proxy);
}

/* ---- the request that the program gets ---------------------------------------------------------- */

static void add(struct exchange *x, const char *name, const char *value)
{
    x->headers[x->n_headers++] = (struct rules_header){weir_arena_strdup(&x->arena, name),
                                                       weir_arena_strdup(&x->arena, value)};
}

static size_t count_headers(const struct weir_http_request *request)
{
    const char *name, *value;
    size_t n = 0;
    while (weir_http_request_header_at(request, n, &name, &value)) {
        n++;
    }
    return n;
}

/* All values of the Connection headers, which name others of this connection only. */
static char *connection_names(const struct visit *visit)
{
    const char *name, *value, *names = "";
    for (size_t i = 0; weir_http_request_header_at(visit->request, i, &name, &value); i++) {
        if (strcasecmp(name, "Connection") == 0) {
            names = weir_arena_printf(visit->request->arena, "%s,%s", names, value);
        }
    }
    return (char *)names;
}

static void add_own_headers(struct exchange *x, const struct visit *visit)
{
    char secret[65];
    add(x, "Host", visit->place.host);
    add(x, "X-Forwarded-Host", visit->place.host);
    add(x, "X-Forwarded-Proto", visit->place.is_tls ? "https" : "http");
    add(x, "X-Forwarded-For", visit->request->remote);
    if (!x->service.keeps_path && strcmp(visit->place.path, "/") != 0) {
        char *prefix = weir_arena_strdup(&x->arena, visit->place.path);
        prefix[strlen(prefix) - 1] = '\0';
        add(x, "X-Forwarded-Prefix", prefix);
    }
    add(x, "X-Weir-User", x->service.user);
    weir_secret_of_visits(x->service.secret, secret);
    add(x, "X-Weir-Secret", weir_arena_strdup(&x->arena, secret));
    if (x->service.credential != NULL) {
        add(x, "Authorization", x->service.credential);
    }
}

static void copy_headers(struct exchange *x, const struct visit *visit)
{
    const char *name, *value, *named = connection_names(visit);
    x->headers =
        WEIR_ARENA_ARRAY(&x->arena, count_headers(visit->request) + 16, struct rules_header);
    for (size_t i = 0; weir_http_request_header_at(visit->request, i, &name, &value); i++) {
        bool is_websocket = x->is_websocket && (strcasecmp(name, "Sec-WebSocket-Key") == 0 ||
                                                strcasecmp(name, "Sec-WebSocket-Version") == 0 ||
                                                strcasecmp(name, "Sec-WebSocket-Protocol") == 0 ||
                                                strcasecmp(name, "Sec-WebSocket-Extensions") == 0);
        if (strcasecmp(name, "Cookie") == 0) {
            char *cookies = rules_cookies_inward(&visit->place, value, &x->arena);
            if (cookies != NULL) {
                add(x, "Cookie", cookies);
            }
        } else if (is_websocket || rules_request_header(name, named)) {
            add(x, name, value);
        }
    }
    add_own_headers(x, visit);
}

static void copy_place(struct exchange *x, const struct proxy_place *place)
{
    x->place = (struct proxy_place){.id = weir_arena_strdup(&x->arena, place->id),
                                    .host = weir_arena_strdup(&x->arena, place->host),
                                    .path = weir_arena_strdup(&x->arena, place->path),
                                    .inner = weir_arena_strdup(&x->arena, place->inner),
                                    .is_tls = place->is_tls};
}

static void copy_service(struct exchange *x, const struct weir_proxy_service *service)
{
    x->service = (struct weir_proxy_service){
        .id = x->place.id,
        .project = weir_arena_strdup(&x->arena, service->project),
        .user = weir_arena_strdup(&x->arena, service->user),
        .address = weir_arena_strdup(&x->arena, service->address),
        .secret = weir_arena_strdup(&x->arena, service->secret),
        .credential =
            service->credential != NULL ? weir_arena_strdup(&x->arena, service->credential) : NULL,
        .keeps_path = service->keeps_path};
}

/* ---- the answer that the browser gets ------------------------------------------------------------ */

static void end_exchange(void *state)
{
    struct exchange *x = state;
    x->is_abandoned = true;
    if (x->is_websocket) {
        websockets_wake(x->proxy->websockets);
    } else {
        forwarder_wake(x->proxy->forwarder);
    }
    exchange_unref(x);
}

static void on_upgrade(void *context, struct weir_http_upgraded *upgraded, int fd,
                       const void *extra, size_t extra_len)
{
    struct exchange *x = context;
    if (!websockets_join(x->proxy->websockets, x, upgraded, fd, extra, extra_len)) {
        weir_http_upgraded_close(upgraded);
    }
}

static bool has_header(const struct exchange *x, const char *name)
{
    return rules_head_value(&x->head, name) != NULL;
}

static void add_default(const struct exchange *x, struct weir_http_response *response,
                        const char *name, const char *value)
{
    if (!has_header(x, name)) {
        (void)weir_http_response_foreign_header(response, name, value);
    }
}

static void copy_answer_headers(const struct exchange *x, struct weir_arena *arena,
                                struct weir_http_response *response)
{
    const char *named = rules_head_value(&x->head, "Connection");
    int n_cookies = 0;
    for (size_t i = 0; i < x->head.n_headers; i++) {
        const struct rules_header *header = &x->head.headers[i];
        const char *value = header->value;
        if (strcasecmp(header->name, "Set-Cookie") == 0) {
            value = n_cookies++ < RULES_COOKIES_MAX
                        ? rules_cookie_outward(&x->place, header->value, arena)
                        : NULL;
        } else if (strcasecmp(header->name, "Location") == 0) {
            value = rules_location_outward(&x->place, header->value, arena);
        } else if (!rules_response_header(header->name, named)) {
            value = NULL;
        }
        if (value != NULL) {
            (void)weir_http_response_foreign_header(response, header->name, value);
        }
    }
    /* Beside the program's own policy, not in its place: browsers apply both. */
    (void)weir_http_response_foreign_header(response, "Content-Security-Policy",
                                            "frame-ancestors 'self'");
    add_default(x, response, "Referrer-Policy", "same-origin"); /* an address names the service */
    add_default(x, response, "Cross-Origin-Resource-Policy", "same-origin");
}

static void answer_websocket(struct exchange *x, struct weir_http_request *request,
                             struct weir_http_response *response)
{
    static const char *const passed[] = {"Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                         "Sec-WebSocket-Extensions"};
    if (x->head.http_status != 101) {
        weir_http_response_text(response, x->head.http_status, "text/plain",
                                weir_arena_printf(request->arena,
                                                  "the service refused the WebSocket (%d)\n",
                                                  x->head.http_status));
        return;
    }
    weir_http_response_upgrade(response, "websocket", on_upgrade, x);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        const char *value = rules_head_value(&x->head, passed[i]);
        if (value != NULL) {
            (void)weir_http_response_foreign_header(response, passed[i], value);
        }
    }
}

static bool wants_page(const struct weir_http_request *request)
{
    const char *accept = weir_http_request_header(request, "Accept");
    const char *mode = weir_http_request_header(request, "Sec-Fetch-Mode");
    return strcmp(request->method, "GET") == 0 &&
           (mode != NULL ? strcmp(mode, "navigate") == 0
                         : accept != NULL && strstr(accept, "text/html") != NULL);
}

/* What is starting will be there in a moment: a person need not do anything. */
static void ask_again(struct visit *visit, weir_status status)
{
    if (status == WEIR_ERR_UNAVAILABLE && visit->wants_page) {
        weir_http_response_header(visit->response, "Refresh", "2");
    }
}

/* Now, or when the head is there. */
static void answer(struct exchange *x, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    pthread_mutex_lock(&x->lock);
    if (!x->is_ready) {
        x->later = weir_http_response_later(response);
        pthread_mutex_unlock(&x->lock);
        return;
    }
    pthread_mutex_unlock(&x->lock);
    if (x->status != WEIR_OK) {
        struct visit visit = {
            .request = request, .response = response, .wants_page = wants_page(request)};
        visit_answer_error(&visit, x->status, x->message);
        ask_again(&visit, x->status);
        return;
    }
    if (x->is_websocket) {
        answer_websocket(x, request, response);
        return;
    }
    weir_http_response_stream(response, x->head.http_status, x->answer_bytes, x->out);
    weir_http_response_foreign(response);
    copy_answer_headers(x, request->arena, response);
}

/* ---- beginnings ----------------------------------------------------------------------------------- */

static weir_status check_method(const struct weir_http_request *request, struct weir_error *err)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST",     "PUT",   "PATCH",
                                          "DELETE", "OPTIONS", "PROPFIND", "REPORT"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(methods); i++) {
        if (strcmp(request->method, methods[i]) == 0) {
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "method %.20s is not forwarded", request->method);
}

/* Does it ask for a WebSocket (out), and rightly so? */
static weir_status check_upgrade(const struct visit *visit, bool *out, struct weir_error *err)
{
    const struct weir_http_request *request = visit->request;
    const char *version = weir_http_request_header(request, "Sec-WebSocket-Version");
    *out = rules_has_token(weir_http_request_header(request, "Upgrade"), "websocket") &&
           rules_has_token(connection_names(visit), "upgrade");
    if (!*out) {
        return WEIR_OK; /* other upgrades are not passed on */
    }
    bool is_good = strcmp(request->method, "GET") == 0 && request->body_pipe == NULL &&
                   request->body_len == 0 && version != NULL && strcmp(version, "13") == 0 &&
                   rules_is_websocket_key(weir_http_request_header(request, "Sec-WebSocket-Key"));
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "the request for a WebSocket is malformed (RFC 6455, 4.1)");
}

static weir_status check_source(const struct visit *visit, bool is_upgrade, struct weir_error *err)
{
    const struct weir_http_request *request = visit->request;
    struct rules_source source = {.method = request->method,
                                  .origin = weir_http_request_header(request, "Origin"),
                                  .site = weir_http_request_header(request, "Sec-Fetch-Site"),
                                  .mode = weir_http_request_header(request, "Sec-Fetch-Mode"),
                                  .dest = weir_http_request_header(request, "Sec-Fetch-Dest"),
                                  .is_upgrade = is_upgrade,
                                  .has_cookie = visit->shown.token == NULL};
    return rules_check_source(&visit->place, &source, err);
}

static int64_t body_bytes(const struct weir_http_request *request)
{
    const char *length = weir_http_request_header(request, "Content-Length");
    if (request->body_pipe == NULL) {
        return 0;
    }
    return length != NULL ? strtoll(length, NULL, 10) : -1;
}

static void begin_exchange(struct visit *visit, const struct weir_proxy_service *service,
                           const char *target, bool is_websocket)
{
    struct weir_proxy *proxy = visit->proxy;
    struct weir_error error = {0};
    struct exchange *x = exchange_create(proxy);
    copy_place(x, &visit->place);
    copy_service(x, service);
    x->is_websocket = is_websocket;
    x->method = weir_arena_strdup(&x->arena, visit->request->method);
    x->target = weir_arena_strdup(&x->arena, target);
    x->body_bytes = body_bytes(visit->request);
    x->out = weir_http_pipe_create(WEIR_HTTP_PIPE_BYTES);
    x->in =
        visit->request->body_pipe != NULL ? weir_http_pipe_ref(visit->request->body_pipe) : NULL;
    copy_headers(x, visit);
    if (use_begin(proxy, x->service.id, x->service.project, &x->use, &error) != WEIR_OK) {
        visit_answer_error(visit, error.status, error.message);
        exchange_unref(x);
        return;
    }
    bool is_begun = is_websocket ? websockets_begin(proxy->websockets, x)
                                 : forwarder_begin(proxy->forwarder, x);
    if (!is_begun) {
        visit_answer_error(visit, WEIR_ERR_UNAVAILABLE, "the server is stopping");
        exchange_unref(x);
        return;
    }
    visit->request->state = x;
    visit->request->end_fn = end_exchange;
}

/* It has no address yet, or any more. */
static void answer_absent(struct visit *visit, const struct weir_proxy_service *service)
{
    weir_status status = service->is_ended ? WEIR_ERR_CONFLICT : WEIR_ERR_UNAVAILABLE;
    visit_answer_error(visit, status, service->message);
    ask_again(visit, status);
}

static void visit_service(struct visit *visit, bool is_websocket)
{
    const struct weir_proxy_config *config = &visit->proxy->config;
    struct weir_proxy_service service = {0};
    struct weir_error error = {0};
    weir_status status = config->ops->find(config->context, visit->place.id, &visit->shown,
                                           visit->request->arena, &service, &error);
    if (status == WEIR_ERR_UNAUTH) {
        visit_ask_login(visit);
        return;
    }
    if (status != WEIR_OK) {
        visit_answer_error(visit, status, error.message);
        return;
    }
    char *target = rules_target(&visit->place, visit->target, visit->request->arena);
    if (target == NULL) {
        visit_answer_error(visit, WEIR_ERR_INVALID, "malformed path in the request");
    } else if (service.address == NULL) {
        answer_absent(visit, &service);
    } else {
        begin_exchange(visit, &service, target, is_websocket);
    }
}

/* Begin with a request: afterwards it has a state, or an answer. */
static void begin(struct weir_proxy *proxy, struct weir_http_request *request,
                  struct weir_http_response *response)
{
    bool is_websocket = false;
    struct weir_error error = {0};
    struct visit visit = {.proxy = proxy,
                          .request = request,
                          .response = response,
                          .target = weir_http_request_target(request),
                          .wants_page = wants_page(request)};
    if (!visit_find_place(&visit)) {
        return;
    }
    const char *rest = visit.target + strlen(visit.place.path);
    if (strncmp(rest, RULES_RESERVED, sizeof RULES_RESERVED - 1) == 0) {
        visit_answer_reserved(&visit, rest + sizeof RULES_RESERVED - 1);
        return;
    }
    visit_read_shown(&visit);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(check_method(request, &error), status, refuse);
    WEIR_TRY_GOTO(check_upgrade(&visit, &is_websocket, &error), status, refuse);
    WEIR_TRY_GOTO(check_source(&visit, is_websocket, &error), status, refuse);
    visit_service(&visit, is_websocket);
    return;
refuse:
    visit_answer_error(&visit, status, error.message);
}

void weir_proxy_handle(void *context, struct weir_http_request *request,
                       struct weir_http_response *response)
{
    if (request->state == NULL) {
        begin(context, request, response);
    }
    if (request->state != NULL) {
        answer(request->state, request, response);
    }
}

void weir_proxy_admit(void *context, struct weir_http_request *request,
                      struct weir_http_response *response)
{
    begin(context, request, response);
}

void weir_proxy_body_rule(void *context, const struct weir_http_request *request,
                          struct weir_http_body_rule *rule)
{
    (void)context;
    (void)request;
    rule->to_pipe = true;
}
