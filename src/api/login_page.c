#include "api/login_page.h"

#include "api/dispatch.h"
#include "api/login.h"

#include <string.h>

#define PAGE_HEAD                                                                                  \
    "<!doctype html><html lang=en><meta charset=utf-8>"                                            \
    "<meta name=viewport content=\"width=device-width\">"                                          \
    "<meta name=color-scheme content=\"light dark\"><title>Weir: log in</title>"                   \
    "<body style=\"font:16px system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem\">"         \
    "<h1>Log in to Weir</h1>"

#define FIELD_STYLE                                                                                \
    "style=\"font:inherit;display:block;box-sizing:border-box;width:100%%;padding:.5rem;margin:."  \
    "2rem 0 1rem\""
#define PASSWORD_FORM                                                                              \
    "<form method=post action=\"/login/password\">%s<label>Name<input name=user required "         \
    "autocomplete=username " FIELD_STYLE "></label><label>Password<input name=password "           \
    "type=password required autocomplete=current-password " FIELD_STYLE                            \
    "></label><button id=log-in-with-password style=\"font:inherit;padding:.6rem 1.2rem\">"        \
    "Log in</button></form>"

static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                             "frame-ancestors 'none'; base-uri 'none'";

static void answer_page(struct api_call *call, int http_status, const char *page)
{
    weir_http_response_text(call->response, http_status, "text/html; charset=utf-8", page);
    weir_http_response_keep_plain(
        call->response); /* the link's secret, beside what an address says */
    weir_http_response_header(call->response, "Content-Security-Policy", policy);
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

void login_page_refuse(struct api_call *call, const char *why)
{
    call->is_link_refused =
        weir_http_request_query(call->request, "link") != NULL || call->request->body_len > 0;
    answer_page(call, 401,
                weir_arena_printf(call->arena,
                                  PAGE_HEAD "<p>%s</p>" PASSWORD_FORM
                                            "<p>Or get a one-time link on the server's machine "
                                            "with</p><pre>weir login</pre>",
                                  why, next_field(call)));
}

/* Secrets and names of users hold no character that means something in HTML; others are left out.
 */
static char *plain(struct weir_arena *arena, const char *text)
{
    char *copy = weir_arena_alloc(arena, strlen(text) + 1), *to = copy;
    for (; *text != '\0'; text++) {
        if (strchr("<>&\"'", *text) == NULL) {
            *to++ = *text;
        }
    }
    return copy;
}

void login_page_offer(struct api_call *call, const char *secret, const char *user)
{
    answer_page(call, 200,
                weir_arena_printf(
                    call->arena,
                    PAGE_HEAD "<form method=post action=\"/login\">"
                              "<input type=hidden name=link value=\"%s\"><p>This link is good once."
                              "</p><button id=log-in autofocus style=\"font:inherit;padding:.6rem "
                              "1.2rem\">Log in as %s</button></form>",
                    plain(call->arena, secret), plain(call->arena, user)));
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
    WEIR_TRY(login_check_origin(call, err));
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
