#include "http/server_private.h"

#include "base/log.h"
#include "http/range.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

void response_init(struct weir_http_response *response)
{
    *response = (struct weir_http_response){.kind = ANSWER_NONE};
}

static void free_headers(struct weir_http_response *response)
{
    while (response->headers != NULL) {
        struct http_pair *pair = response->headers;
        response->headers = pair->next;
        free((char *)pair->name);
        free((char *)pair->value);
        free(pair);
    }
}

/* A stream's state is freed here also when a later answer replaced the stream. */
static void drop_answer(struct weir_http_response *response)
{
    if (response->mhd != NULL) {
        MHD_destroy_response(response->mhd);
        response->mhd = NULL;
    }
    stream_drop_answer(response);
    response->is_foreign = false;
    response->is_kept_plain = false;
    response->body = NULL;
    response->body_len = 0;
    if (response->kind == ANSWER_EVENTS && response->free_fn != NULL) {
        response->free_fn(response->stream_state);
    }
    response->kind = ANSWER_NONE;
}

void response_fini(struct weir_http_response *response)
{
    drop_answer(response);
    free_headers(response);
}

void response_set(struct weir_http_response *response, int http_status, const char *content_type,
                  struct MHD_Response *mhd)
{
    drop_answer(response);
    if (mhd == NULL) {
        fprintf(stderr, "weir: out of memory in an HTTP answer\n");
        abort();
    }
    response->kind = ANSWER_READY;
    response->http_status = http_status;
    response->mhd = mhd;
    if (content_type != NULL) {
        weir_http_response_header(response, "Content-Type", content_type);
    }
}

static void set_bytes(struct weir_http_response *response, int http_status,
                      const char *content_type, void *bytes, size_t len,
                      enum MHD_ResponseMemoryMode mode)
{
    response_set(response, http_status, content_type,
                 bytes == NULL ? NULL : MHD_create_response_from_buffer(len, bytes, mode));
    response->body = bytes;
    response->body_len = len;
}

void response_replace_body(struct weir_http_response *response, char *bytes, size_t len)
{
    struct MHD_Response *mhd = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
    if (mhd == NULL) {
        free(bytes);
        return;
    }
    MHD_destroy_response(response->mhd);
    response->mhd = mhd;
    response->body = bytes;
    response->body_len = len;
    weir_http_response_header(response, "Content-Encoding", "gzip");
}

void weir_http_response_bytes(struct weir_http_response *response, int http_status,
                              const char *content_type, const void *bytes, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy != NULL && len > 0) {
        memcpy(copy, bytes, len);
    }
    set_bytes(response, http_status, content_type, copy, len, MHD_RESPMEM_MUST_FREE);
}

void weir_http_response_text(struct weir_http_response *response, int http_status,
                             const char *content_type, const char *text)
{
    weir_http_response_bytes(response, http_status, content_type, text, strlen(text));
}

void weir_http_response_buf(struct weir_http_response *response, int http_status,
                            const char *content_type, struct weir_buf *buf)
{
    if (buf->status != WEIR_OK) {
        weir_http_response_errorf(response, buf->status, "the answer is too long (over %zu bytes)",
                                  buf->max_bytes);
        weir_buf_fini(buf);
        return;
    }
    size_t len = 0;
    char *data = weir_buf_detach(buf, &len);
    set_bytes(response, http_status, content_type, data, len, MHD_RESPMEM_MUST_FREE);
}

void weir_http_response_static(struct weir_http_response *response, int http_status,
                               const char *content_type, const void *bytes, size_t len)
{
    set_bytes(response, http_status, content_type, (void *)bytes, len, MHD_RESPMEM_PERSISTENT);
}

/* A regular file, and its size; -1 once the request is answered with why not. */
static int open_file(struct weir_http_response *response, const char *path, uint64_t *out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        *out_bytes = (uint64_t)info.st_size;
        return fd;
    }
    int errno_value = fd < 0 ? errno : ENOENT;
    if (fd >= 0) {
        close(fd);
    }
    /* The path is the server's business, not the client's. */
    if (errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ELOOP) {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "there is no such file");
    } else {
        weir_log(WEIR_LOG_ERROR, "http_file_unreadable", WEIR_KV_STR("path", path),
                 WEIR_KV_INT("errno", errno_value));
        weir_http_response_errorf(response, WEIR_ERR_IO, "the file cannot be read");
    }
    return -1;
}

void weir_http_response_fd(struct weir_http_response *response, int http_status,
                           const char *content_type, int fd)
{
    struct stat info;
    uint64_t n_bytes = fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    response_set(response, http_status, content_type,
                 MHD_create_response_from_fd_at_offset64(n_bytes, fd, 0));
}

void weir_http_response_file(struct weir_http_response *response, int http_status,
                             const char *content_type, const char *path)
{
    uint64_t n_bytes;
    int fd = open_file(response, path, &n_bytes);
    if (fd >= 0) {
        weir_http_response_fd(response, http_status, content_type, fd);
    }
}

/* If-Range: the part is wanted only of these very bytes; else all of the file. A date is none of ours. */
static bool may_be_part(const struct weir_http_request *request, const char *etag)
{
    const char *wanted = weir_http_request_header(request, "If-Range");
    return wanted == NULL || strcmp(wanted, etag) == 0;
}

static void set_range(struct weir_http_response *response, uint64_t offset, uint64_t len,
                      uint64_t n_bytes)
{
    char text[80];
    (void)(len > 0 ? snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset,
                              offset + len - 1, n_bytes)
                   : snprintf(text, sizeof text, "bytes */%" PRIu64, n_bytes));
    weir_http_response_header(response, "Content-Range", text);
}

void weir_http_response_file_part(struct weir_http_response *response,
                                  const struct weir_http_request *request, const char *content_type,
                                  const char *path, const char *etag)
{
    uint64_t n_bytes, offset = 0, len = 0;
    const char *known = weir_http_request_header(request, "If-None-Match");
    int fd = open_file(response, path, &n_bytes);
    if (fd < 0) {
        return;
    }
    enum http_range range =
        may_be_part(request, etag)
            ? http_range_parse(weir_http_request_header(request, "Range"), n_bytes, &offset, &len)
            : HTTP_RANGE_NONE;
    if (known != NULL && http_etag_is_listed(known, etag)) {
        close(fd);
        set_bytes(response, 304, NULL, "", 0, MHD_RESPMEM_PERSISTENT);
    } else if (range == HTTP_RANGE_BAD) {
        close(fd);
        weir_http_response_errorf(response, WEIR_ERR_INVALID,
                                  "Range: the file has %" PRIu64 " bytes", n_bytes);
        response->http_status = 416;
        set_range(response, 0, 0, n_bytes);
    } else {
        bool is_part = range == HTTP_RANGE_PART;
        response_set(response, is_part ? 206 : 200, content_type,
                     MHD_create_response_from_fd_at_offset64(is_part ? len : n_bytes, fd, offset));
        if (is_part) {
            set_range(response, offset, len, n_bytes);
        }
    }
    weir_http_response_header(response, "ETag", etag);
    weir_http_response_header(response, "Accept-Ranges", "bytes");
}

void weir_http_response_json(struct weir_http_response *response, int http_status, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
    if (text == NULL) { /* NULL: what json_pack makes of text that is not UTF-8 */
        weir_http_response_errorf(response, WEIR_ERR_INTERNAL, "the answer is no JSON");
        return;
    }
    set_bytes(response, http_status, "application/json", text, strlen(text), MHD_RESPMEM_MUST_FREE);
}

void weir_http_response_error(struct weir_http_response *response, const struct weir_error *error)
{
    const char *name = weir_status_name(error->status);
    json_t *body = json_pack("{s:{s:s, s:s}}", "error", "status", name, "message", error->message);
    if (body == NULL) { /* the message is not UTF-8 */
        body = json_pack("{s:{s:s, s:s}}", "error", "status", name, "message",
                         weir_status_text(error->status));
    }
    weir_http_response_json(response, weir_status_http(error->status), body);
    if (response->http_status == 503) {
        weir_http_response_header(response, "Retry-After", "1");
    } else if (response->http_status == 401) {
        weir_http_response_header(response, "WWW-Authenticate", "Bearer");
    }
}

void weir_http_response_errorf(struct weir_http_response *response, weir_status status,
                               const char *fmt, ...)
{
    struct weir_error error = {.status = status};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(error.message, sizeof error.message, fmt, args);
    va_end(args);
    weir_http_response_error(response, &error);
}

void weir_http_response_as_answer(struct weir_http_response *response)
{
    char status[16];
    (void)snprintf(status, sizeof status, "%d", response->http_status);
    response->http_status = 200;
    weir_http_response_header(response, "X-Weir-Status", status);
}

void weir_http_response_keep_plain(struct weir_http_response *response)
{
    response->is_kept_plain = true;
}

void weir_http_response_not_plain(struct weir_http_response *response)
{
    const struct http_exchange *x = WEIR_CONTAINER_OF(response, struct http_exchange, response);
    response->http_status = 415;
    weir_http_response_header(response, "Accept-Encoding",
                              x->rule.is_unpacked ? UNPACK_NAMES ", identity" : "identity");
}

void weir_http_response_not_allowed(struct weir_http_response *response, const char *allow)
{
    response->http_status = 405;
    weir_http_response_header(response, "Allow", allow);
}

void weir_http_response_empty(struct weir_http_response *response)
{
    set_bytes(response, 204, NULL, "", 0, MHD_RESPMEM_PERSISTENT);
}

void weir_http_response_redirect(struct weir_http_response *response, const char *location)
{
    weir_http_response_text(response, 303, "text/plain", "");
    weir_http_response_header(response, "Location", location);
}

const char *response_header(const struct weir_http_response *response, const char *name)
{
    for (const struct http_pair *pair = response->headers; pair != NULL; pair = pair->next) {
        if (strcasecmp(pair->name, name) == 0) {
            return pair->value;
        }
    }
    return NULL;
}

static void remove_header(struct weir_http_response *response, const char *name)
{
    struct http_pair **link = &response->headers;
    while (*link != NULL) {
        struct http_pair *pair = *link;
        if (strcasecmp(pair->name, name) == 0) {
            *link = pair->next;
            free((char *)pair->name);
            free((char *)pair->value);
            free(pair);
        } else {
            link = &pair->next;
        }
    }
}

void weir_http_response_header(struct weir_http_response *response, const char *name,
                               const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            response->has_bad_header = true; /* a newline would start a header of its own */
            return;
        }
    }
    if (strcasecmp(name, "Set-Cookie") != 0) {
        remove_header(response, name);
    }
    struct http_pair *pair = weir_xalloc(sizeof *pair);
    *pair = (struct http_pair){
        .name = weir_xstrdup(name), .value = weir_xstrdup(value), .next = response->headers};
    response->headers = pair;
}

bool weir_http_response_waits(const struct weir_http_response *response)
{
    return response->kind == ANSWER_WAIT;
}

void weir_http_response_wait(struct weir_http_response *response, uint64_t topics,
                             int64_t timeout_ms)
{
    drop_answer(response);
    response->kind = ANSWER_WAIT;
    response->topics = topics;
    response->wait_ms = timeout_ms;
}

struct weir_http_later *weir_http_response_later(struct weir_http_response *response)
{
    struct http_exchange *x = WEIR_CONTAINER_OF(response, struct http_exchange, response);
    drop_answer(response);
    response->kind = ANSWER_LATER;
    pool_begin_later(x);
    return (struct weir_http_later *)x;
}

void weir_http_response_events(struct weir_http_response *response, uint64_t topics,
                               weir_http_next_fn next_fn, void (*free_fn)(void *state), void *state)
{
    drop_answer(response);
    response->kind = ANSWER_EVENTS;
    response->http_status = 200;
    response->topics = topics;
    response->next_fn = next_fn;
    response->free_fn = free_fn;
    response->stream_state = state;
}

enum MHD_Result response_queue(struct http_exchange *x)
{
    struct weir_http_response *response = &x->response;
    exchange_drop_upload(x);
    if (response->has_bad_header) {
        response->has_bad_header = false;
        free_headers(response);
        weir_http_response_errorf(response, WEIR_ERR_INTERNAL,
                                  "a header of the answer holds a control character");
    }
    const struct weir_http_config *config = &x->server->config;
    const struct http_pair common[] = {
        {"X-Content-Type-Options", "nosniff", NULL},
        {"X-Frame-Options", "DENY", NULL},
        {"Referrer-Policy", "no-referrer", NULL},
        {"Content-Security-Policy", config->content_security_policy, NULL},
        {"Cache-Control", "no-store", NULL},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(common) && !response->is_foreign; i++) {
        if (response_header(response, common[i].name) == NULL) {
            MHD_add_response_header(response->mhd, common[i].name, common[i].value);
        }
    }
    if (config->tls_cert_file != NULL && !response->is_foreign) {
        MHD_add_response_header(response->mhd, "Strict-Transport-Security", "max-age=2592000");
    }
    for (const struct http_pair *pair = response->headers; pair != NULL; pair = pair->next) {
        MHD_add_response_header(response->mhd, pair->name, pair->value);
    }
    x->phase = PHASE_ANSWERED;
    enum MHD_Result rc =
        MHD_queue_response(x->connection, (unsigned)response->http_status, response->mhd);
    MHD_destroy_response(response->mhd); /* libmicrohttpd holds its own reference */
    response->mhd = NULL;
    return rc;
}
