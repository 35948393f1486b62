#include "proxy/rules.h"

#include "proxy/proxy.h"

#include "base/macros.h"

#include <string.h>
#include <strings.h>

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

bool rules_has_token(const char *list, const char *token)
{
    size_t len = strlen(token);
    while (list != NULL && *list != '\0') {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, " \t,");
        if (n == len && strncasecmp(list, token, len) == 0) {
            return true;
        }
        list += n;
    }
    return false;
}

/* ---- where it is ------------------------------------------------------------------------------- */

bool weir_proxy_is_host(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    const char *at = text;
    if (*at == '[') {
        at++;
        at += strspn(at, "0123456789abcdefABCDEF:.");
        if (*at++ != ']') {
            return false;
        }
    } else {
        at += strspn(at, letters);
    }
    if (at == text || at - text > 255) {
        return false;
    }
    size_t n_digits = *at == ':' ? strspn(at + 1, "0123456789") : 0;
    return *at == '\0' || (n_digits > 0 && n_digits <= 5 && at[1 + n_digits] == '\0');
}

static bool is_visible(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c <= 0x20 || *c >= 0x7f) {
            return false;
        }
    }
    return true;
}

char *rules_target(const struct proxy_place *place, const char *target, struct weir_arena *arena)
{
    size_t len = strlen(place->path);
    if (strncmp(target, place->path, len) != 0 || !is_visible(target) ||
        strchr(target, '#') != NULL) {
        return NULL;
    }
    return weir_arena_printf(arena, "%s%s", place->inner, target + len);
}

bool rules_is_next(const struct proxy_place *place, const char *next)
{
    return strncmp(next, place->path, strlen(place->path)) == 0 && is_visible(next) &&
           next[1] != '/' && strchr(next, '\\') == NULL;
}

/* ---- who asks ---------------------------------------------------------------------------------- */

static bool is_own_origin(const struct proxy_place *place, const char *origin)
{
    const char *scheme = place->is_tls ? "https://" : "http://";
    return begins_with(origin, scheme) && strcasecmp(origin + strlen(scheme), place->host) == 0;
}

static bool is_text(const char *text, const char *expected)
{
    return text != NULL && strcmp(text, expected) == 0;
}

weir_status rules_check_source(const struct proxy_place *place, const struct rules_source *source,
                               struct weir_error *err)
{
    bool is_get = is_text(source->method, "GET");
    bool is_safe = (is_get || is_text(source->method, "HEAD")) && !source->is_upgrade;
    bool is_link = is_get && !source->is_upgrade && is_text(source->mode, "navigate") &&
                   is_text(source->dest, "document");
    bool is_own_site = source->site == NULL || is_text(source->site, "same-origin") ||
                       is_text(source->site, "none");
    if (source->origin != NULL && !is_own_origin(place, source->origin)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "this request was sent by the page of another site");
    }
    if (!is_own_site && !is_link) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "another site's page may link to this, and do nothing else with it");
    }
    if (source->has_cookie && !is_safe && source->origin == NULL &&
        (source->site == NULL || source->is_upgrade)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "a change that comes with a cookie must say which page sends it "
                              "(Origin); programs show a token instead");
    }
    return WEIR_OK;
}

bool rules_is_websocket_key(const char *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return key != NULL && strlen(key) == 24 && strspn(key, digits) == 22 &&
           strcmp(key + 22, "==") == 0;
}

/* ---- headers of requests ----------------------------------------------------------------------- */

/* RFC 9110, 7.6.1: of this connection only. */
static const char *const hop_by_hop[] = {
    "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
    "TE",         "Trailer",    "Upgrade",          "Content-Length"};

bool rules_request_header(const char *name, const char *named)
{
    /* Made again (Host, Cookie, Forwarded and its like), or Weir's own (Authorization), or not passed
     * on (Expect: the body is on its way already). */
    static const char *const refused[] = {
        "Host", "Cookie",         "Authorization", "Forwarded", "Expect",        "X-Real-IP",
        "Via",  "HTTP2-Settings", "Alt-Used",      "Cookie2",   "X-Original-URL"};
    static const char *const families[] = {"X-Forwarded", "X-Weir-",    "Proxy-",
                                           "Weir-",       "X-Rewrite-", "Sec-WebSocket-"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(families); i++) {
        if (begins_with(name, families[i])) {
            return false;
        }
    }
    /* A program that reads "X_Forwarded_For" as "X-Forwarded-For", as CGI does, is not to be fooled. */
    return strchr(name, '_') == NULL && !is_among(name, refused, WEIR_ARRAY_LEN(refused)) &&
           !is_among(name, hop_by_hop, WEIR_ARRAY_LEN(hop_by_hop)) && !rules_has_token(named, name);
}

/* ---- headers of answers ------------------------------------------------------------------------ */

bool rules_response_header(const char *name, const char *named)
{
    /* What speaks for the whole host or origin, which are not this service's alone; what asks for a
     * password in Weir's name; what is made again. */
    static const char *const refused[] = {"Set-Cookie",
                                          "Set-Cookie2",
                                          "Location",
                                          "Date",
                                          "Strict-Transport-Security",
                                          "Public-Key-Pins",
                                          "Public-Key-Pins-Report-Only",
                                          "Expect-CT",
                                          "Clear-Site-Data",
                                          "Alt-Svc",
                                          "Service-Worker-Allowed",
                                          "WWW-Authenticate",
                                          "Authentication-Info",
                                          "NEL",
                                          "Report-To",
                                          "Reporting-Endpoints",
                                          "Accept-CH",
                                          "Critical-CH",
                                          "Origin-Agent-Cluster",
                                          "SourceMap",
                                          "X-Accel-Redirect",
                                          "X-Sendfile",
                                          "HTTP2-Settings",
                                          "Content-Location",
                                          "Via"};
    static const char *const families[] = {"Access-Control-", "Proxy-",         "X-Weir-",
                                           "Weir-",           "Sec-WebSocket-", "X-Accel-"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(families); i++) {
        if (begins_with(name, families[i])) {
            return false;
        }
    }
    return !is_among(name, refused, WEIR_ARRAY_LEN(refused)) &&
           !is_among(name, hop_by_hop, WEIR_ARRAY_LEN(hop_by_hop)) && !rules_has_token(named, name);
}

char *rules_location_outward(const struct proxy_place *place, const char *value,
                             struct weir_arena *arena)
{
    if (!is_visible(value) || strchr(value, '\\') != NULL) {
        return NULL;
    }
    const char *path = value;
    size_t scheme = begins_with(value, "http://") ? 7 : begins_with(value, "https://") ? 8 : 0;
    if (scheme > 0) {
        size_t host = strlen(place->host);
        const char *rest = value + scheme + host;
        bool is_own =
            strncasecmp(value + scheme, place->host, host) == 0 && (*rest == '/' || *rest == '\0');
        if (!is_own) {
            return weir_arena_strdup(arena, value); /* somewhere else, as any link */
        }
        path = *rest == '/' ? rest : "/";
    }
    size_t inner = strlen(place->inner);
    bool is_there = strncmp(path, place->path, strlen(place->path)) == 0;
    if (path[0] != '/' || is_there || strncmp(path, place->inner, inner) != 0) {
        return weir_arena_strdup(arena, path);
    }
    if (path[1] == '/') {
        return scheme == 0 ? weir_arena_strdup(arena, value) : NULL;
    }
    return weir_arena_printf(arena, "%s%s", place->path, path + inner);
}

/* ---- heads ------------------------------------------------------------------------------------- */

static bool is_token_byte(unsigned char c)
{
    return c > ' ' && c < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

bool rules_read_header(const char *line, size_t len, struct weir_arena *arena,
                       struct rules_header *out)
{
    size_t name = 0;
    while (name < len && is_token_byte((unsigned char)line[name])) {
        name++;
    }
    if (name == 0 || name == len || line[name] != ':') {
        return false;
    }
    size_t begin = name + 1, end = len;
    while (begin < end && (line[begin] == ' ' || line[begin] == '\t')) {
        begin++;
    }
    while (end > begin && (line[end - 1] == ' ' || line[end - 1] == '\t')) {
        end--;
    }
    for (size_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    out->name = weir_arena_memdup(arena, line, name);
    out->value = weir_arena_memdup(arena, line + begin, end - begin);
    return true;
}

/* "HTTP/1.1 101 Switching Protocols"; 0: it is none. */
static int read_status_line(const char *line, size_t len)
{
    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
        line[8] != ' ' || (len > 12 && line[12] != ' ')) {
        return 0;
    }
    int status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return 0;
        }
        status = 10 * status + (line[i] - '0');
    }
    return status >= 100 && status <= 599 ? status : 0;
}

static const char *end_of_head(const char *bytes, size_t len)
{
    return memmem(bytes, len, "\r\n\r\n", 4);
}

weir_status rules_read_head(const char *bytes, size_t len, struct weir_arena *arena,
                            struct rules_head *out, size_t *out_len)
{
    const char *end = end_of_head(bytes, WEIR_MIN(len, RULES_HEAD_MAX_BYTES));
    if (end == NULL) {
        return len >= RULES_HEAD_MAX_BYTES ? WEIR_ERR_LIMIT : WEIR_ERR_END;
    }
    struct rules_head head = {.headers =
                                  WEIR_ARENA_ARRAY(arena, RULES_HEADERS_MAX, struct rules_header)};
    const char *line = bytes;
    while (line <= end) {
        const char *next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t n = (size_t)(next - line);
        if (line == bytes) {
            head.http_status = read_status_line(line, n);
        } else if (head.n_headers == RULES_HEADERS_MAX) {
            return WEIR_ERR_LIMIT;
        } else if (!rules_read_header(line, n, arena, &head.headers[head.n_headers++])) {
            return WEIR_ERR_CORRUPT;
        }
        line = next + 2;
    }
    if (head.http_status == 0) {
        return WEIR_ERR_CORRUPT;
    }
    *out = head;
    *out_len = (size_t)(end + 4 - bytes);
    return WEIR_OK;
}

const char *rules_head_value(const struct rules_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0) {
            return head->headers[i].value;
        }
    }
    return NULL;
}
