/** The page that people log in on: a frame about what the kinds of proof draw. */
#include "api/auth/login.h"

#include "api/core/dispatch.h"

#include <string.h>

#define PAGE_HEAD                                                                                  \
    "<!doctype html><html lang=en><meta charset=utf-8>"                                            \
    "<meta name=viewport content=\"width=device-width\">"                                          \
    "<meta name=color-scheme content=\"light dark\"><title>Weir: log in</title>"                   \
    "<body style=\"font:16px system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem\">"         \
    "<h1>Log in to Weir</h1>"

static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                             "frame-ancestors 'none'; base-uri 'none'";

static void answer_page(struct api_call *call, int http_status, const char *page)
{
    weir_http_response_text(call->response, http_status, "text/html; charset=utf-8", page);
    weir_http_response_keep_plain(
        call->response); /* the link's secret, beside what an address says */
    weir_http_response_header(call->response, "Content-Security-Policy", policy);
    /* With "no-referrer" a browser says of its form's origin "null", which is anybody's. */
    weir_http_response_header(call->response, "Referrer-Policy", "same-origin");
}

/* Of our own making but for what somebody's address had in it. */
static const char *next_field(const struct api_call *call)
{
    struct weir_arena *arena = call->arena;
    const char *next = call->login_next;
    if (next == NULL || !login_is_next(next)) {
        return "";
    }
    char *out = weir_arena_alloc(arena, 5 * strlen(next) + 1), *to = out;
    for (; *next != '\0'; next++) {
        if (*next == '&') {
            to = stpcpy(to, "&amp;");
        } else {
            *to++ = *next;
        }
    }
    *to = '\0';
    return weir_arena_printf(arena, "<input type=hidden name=next value=\"%s\">", out);
}

bool login_is_next(const char *next)
{
    static const char prefix[] = "/services/enter?";
    for (const unsigned char *c = (const unsigned char *)next; *c != '\0'; c++) {
        if (*c <= ' ' || *c >= 0x7f || strchr("<>\"'\\", *c) != NULL) {
            return false;
        }
    }
    return strncmp(next, prefix, sizeof prefix - 1) == 0 || api_page_is_console(next);
}

const char *login_page_draw(struct api_call *call, const struct weir_identity_way *way,
                            bool has_more)
{
    struct weir_identity_ask ask = login_ask(call, way);
    ask.has_more = has_more;
    return way->ops->draw != NULL ? way->ops->draw(&ask, next_field(call)) : NULL;
}

const char *login_page_lead(const struct api_call *call, const char *beginning)
{
    size_t n;
    const struct weir_identity_way *ways = weir_identities_list(call->api->identities, &n);
    for (size_t i = 0; i < n; i++) {
        if (ways[i].is_on && ways[i].ops->draw != NULL) {
            return beginning != NULL
                       ? weir_arena_printf(call->arena, "%s %s:", beginning, ways[i].ops->lead)
                       : weir_arena_printf(call->arena, "W%s:", ways[i].ops->lead + 1);
        }
    }
    return "Nobody logs in on this server's page: programs show a token with each request.";
}

void login_page_ask(struct api_call *call, const char *why)
{
    size_t n;
    const struct weir_identity_way *ways = weir_identities_list(call->api->identities, &n);
    const char *pieces = "";
    for (size_t i = 0; i < n; i++) {
        const char *piece = ways[i].is_on ? login_page_draw(call, &ways[i], *pieces != '\0') : NULL;
        pieces = piece != NULL ? weir_arena_printf(call->arena, "%s%s", pieces, piece) : pieces;
    }
    answer_page(call, 401, weir_arena_printf(call->arena, PAGE_HEAD "<p>%s</p>%s", why, pieces));
}

void login_page_refuse(struct api_call *call, const struct weir_identity_way *way, const char *why)
{
    call->login_refused = way->ops->refused;
    login_page_ask(call, why);
}

void login_page_show(struct api_call *call, const char *html)
{
    answer_page(call, 200, weir_arena_printf(call->arena, PAGE_HEAD "%s", html));
}

void login_page_lead_on(struct api_call *call, const char *next)
{
    answer_page(call, 200,
                weir_arena_printf(call->arena,
                                  PAGE_HEAD "<meta http-equiv=refresh content=\"0;url=%s\"><p><a "
                                            "id=go-on href=\"%s\">Go on to Weir</a></p>",
                                  next, next));
}

/* Browsers name the site whose page sends a POST; what is no browser has no session to be given. */
static bool is_from_here(const struct weir_http_request *request)
{
    const char *site = weir_http_request_header(request, "Sec-Fetch-Site");
    const char *origin = weir_http_request_header(request, "Origin");
    const char *host = weir_http_request_header(request, "Host");
    if (site != NULL && strcmp(site, "same-origin") != 0) {
        return false;
    }
    if (site != NULL || origin == NULL) {
        return true;
    }
    const char *origin_host = strstr(origin, "://");
    return origin_host != NULL && host != NULL && strcmp(origin_host + 3, host) == 0;
}

weir_status login_check_origin(const struct api_call *call, struct weir_error *err)
{
    return is_from_here(call->request)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "this login was sent by another site's page: open Weir's own");
}

weir_status login_page_read_field(struct api_call *call, const char *name, const char **out,
                                  struct weir_error *err)
{
    const char *at = call->request->body;
    size_t len = strlen(name);
    while (at != NULL && (strncmp(at, name, len) != 0 || at[len] != '=')) {
        at = strchr(at, '&');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected a form with the field \"%s\"", name);
    }
    at += len + 1;
    *out = weir_http_percent_decode(call->arena, at, strcspn(at, "&"), true);
    return *out != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the field \"%s\" is malformed", name);
}
