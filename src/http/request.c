#include "http/server_private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

char *weir_http_percent_decode(struct weir_arena *arena, const char *text, size_t len,
                               bool plus_is_space)
{
    char *out = weir_arena_alloc(arena, len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            out[n++] = plus_is_space && text[i] == '+' ? ' ' : text[i];
            continue;
        }
        if (len - i < 3) {
            return NULL;
        }
        int high = hex_value(text[i + 1]);
        int low = hex_value(text[i + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            return NULL;
        }
        out[n++] = (char)(high << 4 | low);
        i += 2;
    }
    out[n] = '\0';
    return out;
}

char *weir_http_percent_encode(struct weir_arena *arena, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = weir_arena_alloc(arena, strlen(text) * 3 + 1);
    size_t n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x80 && (isalnum(*c) || strchr("-._~", *c) != NULL)) {
            out[n++] = (char)*c;
        } else {
            out[n++] = '%';
            out[n++] = digits[*c >> 4];
            out[n++] = digits[*c & 15];
        }
    }
    out[n] = '\0';
    return out;
}

/* The first pair of a name wins, so new ones go to the end. */
static void pair_add(struct weir_arena *arena, struct http_pairs *list, const char *name,
                     const char *value)
{
    struct http_pair *pair = WEIR_ARENA_NEW(arena, struct http_pair);
    pair->name = name;
    pair->value = value;
    if (list->tail != NULL) {
        list->tail->next = pair;
    } else {
        list->head = pair;
    }
    list->tail = pair;
}

static weir_status fill_segments(struct http_exchange *x, struct weir_error *err)
{
    struct weir_http_request *request = &x->request;
    size_t n_max = 0;
    for (const char *c = request->path; *c != '\0'; c++) {
        n_max += *c == '/';
    }
    request->segments = WEIR_ARENA_ARRAY(&x->arena, n_max + 1, char *);
    const char *begin = request->path;
    while (*begin != '\0') {
        begin += strspn(begin, "/");
        size_t len = strcspn(begin, "/");
        if (len == 0) {
            break;
        }
        char *segment = weir_http_percent_decode(&x->arena, begin, len, false);
        if (segment == NULL || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0 ||
            !weir_text_is_utf8(segment)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "malformed path in the request");
        }
        request->segments[request->n_segments++] = segment;
        begin += len;
    }
    return WEIR_OK;
}

static weir_status fill_query(struct http_exchange *x, const char *query, struct weir_error *err)
{
    while (*query != '\0') {
        size_t len = strcspn(query, "&");
        size_t name_len = WEIR_MIN(strcspn(query, "="), len);
        size_t value_at = WEIR_MIN(name_len + 1, len);
        if (len > 0) {
            char *name = weir_http_percent_decode(&x->arena, query, name_len, true);
            char *value =
                weir_http_percent_decode(&x->arena, query + value_at, len - value_at, true);
            if (name == NULL || value == NULL || !weir_text_is_utf8(value)) {
                return weir_error_set(err, WEIR_ERR_INVALID, "malformed query in the request");
            }
            pair_add(&x->arena, &x->query, name, value);
        }
        query += len + (query[len] == '&');
    }
    return WEIR_OK;
}

void request_add_header(struct http_exchange *x, const char *name, const char *value)
{
    pair_add(&x->arena, &x->headers, weir_arena_strdup(&x->arena, name),
             weir_arena_strdup(&x->arena, value != NULL ? value : ""));
}

static enum MHD_Result copy_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    request_add_header(context, name, value);
    return MHD_YES;
}

static const char *remote_address(struct http_exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char text[INET6_ADDRSTRLEN] = "";
    if (info != NULL && info->client_addr != NULL) {
        const struct sockaddr *address = info->client_addr;
        const void *bytes = address->sa_family == AF_INET6
                                ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                                : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
        (void)inet_ntop(address->sa_family, bytes, text, sizeof text);
    }
    return weir_arena_strdup(&x->arena, text);
}

weir_status request_read_target(struct http_exchange *x, struct weir_error *err)
{
    const char *target = x->target;
    const char *scheme = strstr(target, "://"); /* absolute form: "http://host/path" */
    if (target[0] != '/' && scheme != NULL) {
        target = strchr(scheme + 3, '/');
        target = target != NULL ? target : "/";
    }
    size_t path_len = strcspn(target, "?#");
    x->request.path = weir_arena_memdup(&x->arena, target, path_len);
    WEIR_TRY(fill_segments(x, err));
    return target[path_len] == '?' ? fill_query(x, target + path_len + 1, err) : WEIR_OK;
}

/* A name of RFC 9110: visible characters but delimiters. "Transfer-Encoding " is none. */
bool request_is_token(const char *name)
{
    static const char delimiters[] = "\"(),/:;<=>?@[\\]{}";
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        if (*c <= ' ' || *c >= 0x7f || strchr(delimiters, *c) != NULL) {
            return false;
        }
    }
    return name[0] != '\0';
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* What this server and a proxy before it could understand differently is refused (RFC 9112, 6.3).
 */
weir_status request_check_framing(const struct http_exchange *x, struct weir_error *err)
{
    int n_lengths = 0, n_codings = 0, n_hosts = 0;
    bool is_good = true;
    for (const struct http_pair *pair = x->headers.head; pair != NULL; pair = pair->next) {
        if (!request_is_token(pair->name)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "malformed name of a header");
        }
        if (strcasecmp(pair->name, "Content-Length") == 0) {
            n_lengths++;
            is_good = is_good && is_number(pair->value);
        } else if (strcasecmp(pair->name, "Transfer-Encoding") == 0) {
            n_codings++;
            is_good = is_good && strcasecmp(pair->value, "chunked") == 0;
        } else if (strcasecmp(pair->name, "Host") == 0) {
            n_hosts++;
        }
    }
    if (!is_good || n_lengths + n_codings > 1 || n_hosts > 1) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "the request's Content-Length, Transfer-Encoding or Host is malformed, "
            "or there is more than one");
    }
    return WEIR_OK;
}

weir_status request_fill(struct http_exchange *x, const char *method, struct weir_error *err)
{
    struct weir_http_request *request = &x->request;
    request->method = weir_arena_strdup(&x->arena, method);
    request->remote = remote_address(x);
    request->is_tls = x->server->config.tls_cert_file != NULL;
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, copy_header, x);
    WEIR_TRY(request_check_framing(x, err));
    return request_read_target(x, err);
}

static const char *pair_find(const struct http_pairs *list, const char *name, bool any_case)
{
    for (const struct http_pair *pair = list->head; pair != NULL; pair = pair->next) {
        if ((any_case ? strcasecmp(pair->name, name) : strcmp(pair->name, name)) == 0) {
            return pair->value;
        }
    }
    return NULL;
}

static const struct http_exchange *exchange_of(const struct weir_http_request *request)
{
    return (const struct http_exchange *)((const char *)request -
                                          offsetof(struct http_exchange, request));
}

const char *weir_http_request_query(const struct weir_http_request *request, const char *name)
{
    return pair_find(&exchange_of(request)->query, name, false);
}

const char *weir_http_request_query_at(const struct weir_http_request *request, const char *name,
                                       size_t i)
{
    for (const struct http_pair *pair = exchange_of(request)->query.head; pair != NULL;
         pair = pair->next) {
        if (strcmp(pair->name, name) == 0 && i-- == 0) {
            return pair->value;
        }
    }
    return NULL;
}

const char *weir_http_request_query_name(const struct weir_http_request *request, size_t i)
{
    const struct http_pair *pair = exchange_of(request)->query.head;
    while (pair != NULL && i-- > 0) {
        pair = pair->next;
    }
    return pair != NULL ? pair->name : NULL;
}

const char *weir_http_request_header(const struct weir_http_request *request, const char *name)
{
    return pair_find(&exchange_of(request)->headers, name, true);
}

weir_status weir_http_request_check_plain(const struct weir_http_request *request,
                                          struct weir_error *err)
{
    const char *encoding = weir_http_request_header(request, "Content-Encoding");
    const struct http_exchange *x = exchange_of(request);
    if (encoding == NULL || *encoding == '\0' || strcasecmp(encoding, "identity") == 0 ||
        x->is_packed) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "Content-Encoding %.20s is not supported: send the body as it is%s",
                          encoding, x->rule.is_unpacked ? ", or as one of " UNPACK_NAMES : "");
}

const char *weir_http_request_cookie(const struct weir_http_request *request, const char *name)
{
    size_t name_len = strlen(name), value_len = 0;
    const char *value = NULL;
    for (const struct http_pair *pair = exchange_of(request)->headers.head; pair != NULL;
         pair = pair->next) {
        const char *part = strcasecmp(pair->name, "Cookie") == 0 ? pair->value : "";
        while (*part != '\0') {
            part += strspn(part, "; \t");
            size_t len = strcspn(part, ";");
            if (len > name_len && strncmp(part, name, name_len) == 0 && part[name_len] == '=') {
                const char *found = part + name_len + 1;
                size_t found_len = len - name_len - 1;
                if (value != NULL &&
                    (found_len != value_len || memcmp(found, value, value_len) != 0)) {
                    return NULL;
                }
                value = found;
                value_len = found_len;
            }
            part += len;
        }
    }
    return value != NULL ? weir_arena_memdup(request->arena, value, value_len) : NULL;
}

bool weir_http_request_header_at(const struct weir_http_request *request, size_t i,
                                 const char **out_name, const char **out_value)
{
    const struct http_pair *pair = exchange_of(request)->headers.head;
    while (pair != NULL && i-- > 0) {
        pair = pair->next;
    }
    if (pair != NULL) {
        *out_name = pair->name;
        *out_value = pair->value;
    }
    return pair != NULL;
}

const char *weir_http_request_target(const struct weir_http_request *request)
{
    const char *target = exchange_of(request)->target;
    const char *scheme = strstr(target, "://");
    if (target[0] != '/' && scheme != NULL) {
        target = strchr(scheme + 3, '/');
    }
    return target != NULL && target[0] == '/' ? target : "/";
}
