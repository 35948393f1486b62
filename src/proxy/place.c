/* Which service a request is for, by its path or its host. */
#include "proxy/private.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FOLDER "/services/"

bool place_is_id(const char *text, size_t len)
{
    return len == PROXY_ID_LEN && strspn(text, "abcdefghijklmnopqrstuvwxyz234567") >= len;
}

/* Text of ours in HTML. */
static char *escape(struct weir_arena *arena, const char *text)
{
    char *out = weir_arena_alloc(arena, strlen(text) + 1), *to = out;
    for (; *text != '\0'; text++) {
        if (strchr("<>&\"'", *text) == NULL) {
            *to++ = *text;
        }
    }
    *to = '\0';
    return out;
}

void visit_answer_error(struct visit *visit, weir_status status, const char *message)
{
    struct weir_http_response *response = visit->response;
    weir_http_response_errorf(response, status, "%s", message);
    if (!visit->wants_page) {
        return;
    }
    struct weir_arena *arena = visit->request->arena;
    weir_http_response_text(
        response, weir_status_http(status), "text/html; charset=utf-8",
        weir_arena_printf(
            arena,
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme "
            "content=\"light dark\"><title>Weir</title><body style=\"font:16px "
            "system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem\">"
            "<p>%s</p>",
            escape(arena, message)));
    weir_http_response_header(response, "Content-Security-Policy",
                              "default-src 'none'; style-src 'unsafe-inline'; "
                              "frame-ancestors 'none'");
}

/* The id before the services' domain in the host; NULL: another host. */
static char *id_of_host(const struct visit *visit, const char *host)
{
    const char *domain = visit->proxy->domain_host;
    size_t len = strcspn(host, ":"), domain_len = strlen(domain);
    bool is_below = len == PROXY_ID_LEN + 1 + domain_len && host[PROXY_ID_LEN] == '.' &&
                    strncasecmp(host + PROXY_ID_LEN + 1, domain, domain_len) == 0;
    return is_below && place_is_id(host, PROXY_ID_LEN)
               ? weir_arena_memdup(visit->request->arena, host, PROXY_ID_LEN)
               : NULL;
}

static char *id_of_path(const struct visit *visit)
{
    static const char folder[] = FOLDER;
    const char *id = visit->target + sizeof folder - 1;
    size_t len = strncmp(visit->target, folder, sizeof folder - 1) == 0 ? strcspn(id, "/?#") : 0;
    return place_is_id(id, len) && len > 0 ? weir_arena_memdup(visit->request->arena, id, len)
                                           : NULL;
}

static void redirect(struct visit *visit, const char *to)
{
    weir_http_response_redirect(visit->response, to);
}

/* "/services/ID" without the last slash, or "/" of a host whose service knows a longer path. */
static bool is_moved(struct visit *visit)
{
    const char *target = visit->target, *path = visit->place.path;
    size_t len = strlen(path) - 1, n = strcspn(target, "?");
    bool is_bare = n == len && strncmp(target, path, len) == 0 && len > 0;
    bool is_root = visit->proxy->domain_host != NULL && n == 1 && len > 0;
    if (!is_bare && !is_root) {
        return false;
    }
    redirect(visit, weir_arena_printf(visit->request->arena, "%s%s", path, target + n));
    return true;
}

bool visit_find_place(struct visit *visit)
{
    struct weir_arena *arena = visit->request->arena;
    const char *host = weir_http_request_header(visit->request, "Host");
    bool has_domain = visit->proxy->domain_host != NULL;
    if (host == NULL || !weir_proxy_is_host(host)) {
        visit_answer_error(visit, WEIR_ERR_INVALID, "the request has no Host, or one that is none");
        return false;
    }
    const char *id = has_domain ? id_of_host(visit, host) : id_of_path(visit);
    if (id == NULL) {
        visit_answer_error(visit, WEIR_ERR_NOT_FOUND, "there is no such service");
        return false;
    }
    const struct weir_proxy_config *config = &visit->proxy->config;
    bool keeps = config->ops->keeps(config->context, id);
    const char *path = has_domain && !keeps ? "/" : weir_arena_printf(arena, FOLDER "%s/", id);
    visit->place = (struct proxy_place){.id = id,
                                        .host = host,
                                        .path = path,
                                        .inner = keeps ? path : "/",
                                        .is_tls = visit->request->is_tls};
    if (is_moved(visit)) {
        return false;
    }
    if (strncmp(visit->target, path, strlen(path)) != 0) {
        visit_answer_error(visit, WEIR_ERR_NOT_FOUND, "there is no such service");
        return false;
    }
    return true;
}

char *weir_proxy_url(const char *domain, bool is_tls, const char *host, int port, const char *id,
                     bool keeps_path, struct weir_arena *arena)
{
    const char *scheme = is_tls ? "https" : "http";
    if (domain != NULL) {
        const char *colon = strchr(domain, ':');
        const char *own_port = colon != NULL ? "" : weir_arena_printf(arena, ":%d", port);
        const char *path = keeps_path ? weir_arena_printf(arena, FOLDER "%s/", id) : "/";
        return weir_arena_printf(arena, "%s://%s.%s%s%s", scheme, id, domain, own_port, path);
    }
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    return weir_arena_printf(arena, "%s://%.*s:%d" FOLDER "%s/", scheme, (int)len, host, port, id);
}
