/* How a browser gets the cookie of a place.
 *
 *   browser ─▸ place              no cookie: it gets a nonce, and is sent to the console
 *   browser ─▸ console's origin   /services/enter?service&nonce&next: who it is, the session's cookie says
 *   browser ◂─ console            303 to the place's .weir/enter?ticket&next
 *   browser ─▸ place              the ticket, used up, for the cookie; the nonce's cookie must fit
 *
 * The nonce ties a ticket to the browser that asked for it: nobody is logged in by somebody else's link.
 * A ticket of the command line has none. */
#include "proxy/private.h"

#include "base/rng.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define NONCE_BYTES 16

/* A host's own cookies cannot be set from elsewhere if their name begins so; it needs TLS and the root
 * path (RFC 6265bis, 4.1.3.2). */
static const char *login_cookie_name(const struct visit *visit)
{
    struct weir_arena *arena = visit->request->arena;
    const struct proxy_place *place = &visit->place;
    if (visit->proxy->domain_host != NULL) {
        return place->is_tls ? "__Host-weir_service" : "weir_service";
    }
    return weir_arena_printf(arena, "weir_service_%s", place->id);
}

static const char *login_cookie_path(const struct visit *visit)
{
    return visit->proxy->domain_host != NULL ? "/" : visit->place.path;
}

static const char *nonce_cookie_name(const struct visit *visit)
{
    return weir_arena_printf(visit->request->arena, "weir_enter_%s", visit->place.id);
}

void visit_read_shown(struct visit *visit)
{
    static const char bearer[] = "Bearer ";
    const char *header = weir_http_request_header(visit->request, "Authorization");
    visit->shown.login = weir_http_request_cookie(visit->request, login_cookie_name(visit));
    if (header != NULL && strncmp(header, bearer, sizeof bearer - 1) == 0) {
        visit->shown.token = header + sizeof bearer - 1;
    }
}

static char *digest(struct weir_arena *arena, const char *text)
{
    char out[WEIR_SHA256_TEXT_BYTES];
    struct weir_sha256_stream hash;
    weir_sha256_begin(&hash);
    weir_sha256_add(&hash, text, strlen(text));
    weir_sha256_end(&hash, out);
    return weir_arena_strdup(arena, out);
}

static void set_cookie(struct visit *visit, const char *name, const char *value, const char *path,
                       int64_t max_age_s)
{
    weir_http_response_header(visit->response, "Set-Cookie",
                              weir_arena_printf(visit->request->arena,
                                                "%s=%s; Path=%s; Max-Age=%lld; HttpOnly; "
                                                "SameSite=Lax%s",
                                                name, value, path, (long long)max_age_s,
                                                visit->place.is_tls ? "; Secure" : ""));
}

/* Where people log in. */
static char *console_url(const struct visit *visit)
{
    const struct weir_proxy_config *config = &visit->proxy->config;
    struct weir_arena *arena = visit->request->arena;
    const char *host = visit->place.host;
    if (config->console_url != NULL) {
        return weir_arena_strdup(arena, config->console_url);
    }
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    return weir_arena_printf(arena, "%s://%.*s:%d", visit->place.is_tls ? "https" : "http",
                             (int)len, host, config->console_port);
}

void visit_ask_login(struct visit *visit)
{
    unsigned char bytes[NONCE_BYTES];
    char nonce[2 * NONCE_BYTES + 1];
    struct weir_arena *arena = visit->request->arena;
    if (!visit->wants_page || visit->shown.token != NULL) {
        weir_http_response_errorf(visit->response, WEIR_ERR_UNAUTH,
                                  "no login of this service: open it from Weir's console, or send "
                                  "\"Authorization: Bearer weir_…\"");
        return;
    }
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    }
    weir_http_response_redirect(
        visit->response,
        weir_arena_printf(arena, "%s/services/enter?service=%s&nonce=%s&next=%s",
                          console_url(visit), visit->place.id, digest(arena, nonce),
                          weir_http_percent_encode(arena, visit->target)));
    set_cookie(visit, nonce_cookie_name(visit), nonce, visit->place.path, 600);
}

static void enter(struct visit *visit)
{
    const struct weir_proxy_config *config = &visit->proxy->config;
    struct weir_arena *arena = visit->request->arena;
    const char *ticket = weir_http_request_query(visit->request, "ticket");
    const char *next = weir_http_request_query(visit->request, "next");
    const char *nonce = weir_http_request_cookie(visit->request, nonce_cookie_name(visit));
    const char *login = NULL;
    struct weir_error error = {0};
    if (strcmp(visit->request->method, "GET") != 0 || ticket == NULL) {
        visit_answer_error(visit, WEIR_ERR_INVALID, "a ticket is expected");
        return;
    }
    weir_status status =
        config->ops->enter(config->context, visit->place.id, ticket,
                           nonce != NULL ? digest(arena, nonce) : "", arena, &login, &error);
    if (status != WEIR_OK) {
        visit_answer_error(visit, status, error.message);
        return;
    }
    bool is_good = next != NULL && rules_is_next(&visit->place, next);
    weir_http_response_redirect(visit->response, is_good ? next : visit->place.path);
    set_cookie(visit, login_cookie_name(visit), login, login_cookie_path(visit), 12 * 3600);
    set_cookie(visit, nonce_cookie_name(visit), "", visit->place.path, 0);
}

void visit_answer_reserved(struct visit *visit, const char *rest)
{
    if (strncmp(rest, "enter", 5) == 0 && strcspn(rest, "?") == 5) {
        enter(visit);
    } else {
        visit_answer_error(visit, WEIR_ERR_NOT_FOUND, "there is no such service");
    }
}
