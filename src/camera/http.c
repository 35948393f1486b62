#include "http.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD_MAX   ((size_t)16 << 10)
#define READ_BYTES ((size_t)64 << 10)
#define OTHERS_MAX 1000 /* parts without a picture among them */
#define JPEG_SCAN  0xda
#define JPEG_END   0xd9

void camera_http_init(struct camera_http *http, const char *host, const char *path,
                      const char *user, const char *password)
{
    *http = (struct camera_http){
        .fd = -1, .host = host, .path = path, .user = user, .password = password};
    weir_buf_init(&http->in, CAMERA_HTTP_PICTURE_MAX + 2 * READ_BYTES);
}

void camera_http_fini(struct camera_http *http)
{
    weir_buf_fini(&http->in);
}

void camera_http_begin(struct camera_http *http, int fd)
{
    weir_buf_reset(&http->in);
    http->fd = fd;
    http->is_asked = http->is_answered = http->is_last = http->is_chunked = false;
    http->is_to_end = false;
    http->boundary[0] = '\0';
    http->n_used = http->n_searched = http->n_others = 0;
}

/* ---- the connection -------------------------------------------------------------------------- */

static weir_status wait_for(const struct camera_http *http, short events, int64_t deadline_ms)
{
    struct pollfd poll_fd = {.fd = http->fd, .events = events};
    int64_t left_ms = deadline_ms - weir_mono_ms();
    int n = poll(&poll_fd, 1, (int)WEIR_MAX(left_ms, 0));
    return n > 0 ? WEIR_OK : WEIR_ERR_TIMEOUT;
}

static weir_status send_all(struct camera_http *http, const char *bytes, size_t n,
                            int64_t deadline_ms)
{
    for (size_t at = 0; at < n;) {
        ssize_t n_sent = send(http->fd, bytes + at, n - at, MSG_NOSIGNAL);
        if (n_sent >= 0) {
            at += (size_t)n_sent;
        } else if (errno == EAGAIN) {
            WEIR_TRY(wait_for(http, POLLOUT, deadline_ms));
        } else {
            return WEIR_ERR_PEER;
        }
    }
    return WEIR_OK;
}

static weir_status ask(struct camera_http *http, int64_t deadline_ms, struct weir_error *err)
{
    struct weir_buf text;
    weir_buf_init(&text, HEAD_MAX);
    (void)weir_buf_printf(&text, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: weir\r\n", http->path,
                          http->host);
    rtsp_auth_put(&http->auth, http->user, http->password, "GET", http->path, &text);
    weir_status status = weir_buf_puts(&text, "\r\n");
    status = status != WEIR_OK ? status : send_all(http, text.data, text.len, deadline_ms);
    weir_buf_fini(&text);
    http->is_asked = status == WEIR_OK;
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, WEIR_ERR_PEER, "the camera takes no request");
}

/* What has come of a body, as it comes. */
static weir_status take_in(struct camera_http *http, const char *bytes, size_t n,
                           struct weir_error *err)
{
    weir_status status =
        http->is_answered && http->is_chunked
            ? camera_chunks_take(&http->chunks, bytes, n, CAMERA_HTTP_PICTURE_MAX, &http->in)
            : weir_buf_append(&http->in, bytes, n);
    if (status == WEIR_ERR_CORRUPT) {
        return weir_error_set(err, status, "its answer says that it comes in chunks, and does not");
    }
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, WEIR_ERR_LIMIT, "a picture of more than %zu MiB",
                                              CAMERA_HTTP_PICTURE_MAX >> 20);
}

/* More of what the camera sends. */
static weir_status fill(struct camera_http *http, int64_t deadline_ms, struct weir_error *err)
{
    char bytes[READ_BYTES];
    WEIR_TRY(wait_for(http, POLLIN, deadline_ms));
    ssize_t n = recv(http->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return WEIR_OK;
    }
    if (n == 0 && http->is_answered && http->is_to_end && http->in.len > 0) {
        http->body_left = (int64_t)http->in.len;
        return WEIR_OK;
    }
    if (n <= 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "the camera has ended the connection");
    }
    return take_in(http, bytes, (size_t)n, err);
}

/* The head has been used. What came behind it is not yet what a body in chunks says. */
static weir_status begin_body(struct camera_http *http, size_t n_head, struct weir_error *err)
{
    http->is_answered = true;
    weir_buf_consume(&http->in, n_head);
    if (!http->is_chunked) {
        return WEIR_OK;
    }
    struct weir_buf raw = http->in;
    weir_buf_init(&http->in, CAMERA_HTTP_PICTURE_MAX + 2 * READ_BYTES);
    http->chunks = (struct camera_chunks){0};
    weir_status status = take_in(http, raw.data, raw.len, err);
    weir_buf_fini(&raw);
    return status;
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* Headers up to an empty line, from `at`; some cameras' lines end with a line feed alone. @return TIMEOUT: they are not whole. */
static weir_status take_head(const struct camera_http *http, size_t at, struct rtsp_text *out,
                             struct weir_error *err)
{
    const char *begin = http->in.data + at;
    size_t n = http->in.len - at;
    const char *end = n > 0 ? memmem(begin, n, "\r\n\r\n", 4) : NULL;
    const char *bare =
        n > 0 ? memmem(begin, end != NULL ? (size_t)(end - begin) : n, "\n\n", 2) : NULL;
    if (end == NULL && bare == NULL) {
        return n < HEAD_MAX ? WEIR_ERR_TIMEOUT
                            : weir_error_set(err, WEIR_ERR_LIMIT, "its answer's head is too long");
    }
    *out = (struct rtsp_text){begin, bare != NULL ? (size_t)(bare - begin) + 2
                                                  : (size_t)(end - begin) + 4};
    return WEIR_OK;
}

static bool header(struct rtsp_text head, const char *name, struct rtsp_text *out)
{
    const struct rtsp_message message = {.headers = head};
    return rtsp_message_header(&message, name, 0, out);
}

static weir_status refuse(struct camera_http *http, int64_t code, struct rtsp_text head,
                          struct weir_error *err)
{
    const struct rtsp_message refusal = {.code = (int)code, .headers = head};
    bool is_first = http->auth.scheme == RTSP_AUTH_NONE;
    if (code == 401 && is_first && http->password != NULL) {
        return rtsp_auth_challenge(&http->auth, &refusal) == WEIR_OK
                   ? WEIR_ERR_CONFLICT
                   : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                    "the camera asks for a proof that is neither Basic nor Digest");
    }
    if (code == 401 || code == 403) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              http->password == NULL
                                  ? "the camera wants a user and a password"
                                  : "the camera does not accept user and password");
    }
    if (code == 404) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the camera has nothing at this path");
    }
    if (code >= 300 && code < 400) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera points to another address (%lld): give that one",
                              (long long)code);
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "the camera answers %lld", (long long)code);
}

/* May a body of this type be a picture? */
static bool is_picture(struct rtsp_text type)
{
    return rtsp_text_begins(type, "image/") || rtsp_text_begins(type, "application/octet-stream");
}

/* Content-Type: image/…, or multipart/x-mixed-replace; boundary=… */
static weir_status take_type(struct camera_http *http, struct rtsp_text type,
                             struct weir_error *err)
{
    struct rtsp_text boundary;
    if (!rtsp_text_begins(type, "multipart/")) {
        http->is_to_end = is_picture(type);
        return http->is_to_end ? WEIR_OK
                               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                                "the address gives %.*s, which is no picture",
                                                (int)WEIR_MIN(type.n, 40), type.at);
    }
    if (!rtsp_text_find(type, ';', "boundary", &boundary) ||
        rtsp_text_copy(boundary, http->boundary + 2, sizeof http->boundary - 2) != WEIR_OK ||
        boundary.n == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "its stream has no boundary");
    }
    http->boundary[0] = http->boundary[1] = '-';
    if (strncmp(http->boundary + 2, "--", 2) == 0) { /* some name it with its dashes */
        memmove(http->boundary, http->boundary + 2, strlen(http->boundary + 2) + 1);
    }
    return WEIR_OK;
}

static weir_status take_answer(struct camera_http *http, struct weir_error *err)
{
    struct rtsp_text head, line, value, rest;
    WEIR_TRY(take_head(http, 0, &head, err));
    rest = head;
    int64_t code = -1;
    if (rtsp_text_line(&rest, &line) && rtsp_text_begins(line, "HTTP/1.")) {
        (void)rtsp_text_cut(&line, ' ');
        code = rtsp_text_number(rtsp_text_trim(line), 999);
    }
    if (code < 100) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "it does not answer in HTTP/1");
    }
    if (code != 200) {
        return refuse(http, code, rest, err);
    }
    http->is_chunked =
        header(rest, "Transfer-Encoding", &value) && !rtsp_text_is(value, "identity");
    if (http->is_chunked && !rtsp_text_is(value, "chunked")) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "its answer is packed");
    }
    http->is_last = header(rest, "Connection", &value) && rtsp_text_is(value, "close");
    http->body_left = header(rest, "Content-Length", &value)
                          ? rtsp_text_number(value, (int64_t)CAMERA_HTTP_PICTURE_MAX)
                          : -1;
    if (header(rest, "Content-Type", &value)) {
        WEIR_TRY(take_type(http, value, err));
    }
    http->is_to_end = http->is_to_end && !http->is_chunked && http->body_left < 0;
    http->is_last = http->is_last || http->is_to_end;
    if (http->is_chunked) {
        http->body_left = -1;
    } else if (http->body_left < 0 && http->boundary[0] == '\0' && !http->is_to_end) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "its answer is no stream of pictures, and has no length");
    }
    return begin_body(http, head.n, err);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Where the boundary stands; some cameras name it without the dashes, and send it so. NULL: it has not come. */
static const char *find_boundary(struct camera_http *http)
{
    const char *data = http->in.data, *name = http->boundary + 2;
    size_t n = http->in.len, n_boundary = strlen(http->boundary), at = 0;
    const char *found = n > 0 ? memmem(data, n, http->boundary, n_boundary) : NULL;
    while (at < n && (data[at] == '\r' || data[at] == '\n')) {
        at++;
    }
    if (found == NULL && n_boundary > 2 && strncmp(http->boundary, "--", 2) == 0 &&
        n - at >= n_boundary - 2 && memcmp(data + at, name, n_boundary - 2) == 0) {
        memmove(http->boundary, name, n_boundary - 1);
        found = data + at;
    }
    return found;
}

/* Does what has come end a JPEG? Its last marker may stand in a smaller picture within its head, too. */
static bool is_whole_jpeg(const uint8_t *bytes, size_t n)
{
    size_t at = 2;
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r')) {
        n--;
    }
    if (n < 2 || bytes[n - 2] != 0xff || bytes[n - 1] != JPEG_END) {
        return false;
    }
    while (at + 4 <= n && bytes[at] == 0xff && bytes[at + 1] != JPEG_SCAN) {
        at += 2 + (size_t)(bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return at + 4 <= n && bytes[at] == 0xff;
}

/* How long a part without a length is. What was searched before is not again. @return -1: its end has not come. */
static int64_t find_end(struct camera_http *http, size_t at)
{
    const char *begin = http->in.data + at;
    size_t n = http->in.len - at, from = WEIR_MIN(http->n_searched, n);
    size_t n_boundary = strlen(http->boundary);
    const char *end = n > from ? memmem(begin + from, n - from, http->boundary, n_boundary) : NULL;
    bool is_whole = end == NULL && is_whole_jpeg((const uint8_t *)begin, n);
    http->n_searched = end == NULL && !is_whole && n > n_boundary ? n - n_boundary : 0;
    return end != NULL ? end - begin : is_whole ? (int64_t)n : -1;
}

/* A part of a stream: its boundary, its headers, and as many bytes as they say, or up to where the picture or the part ends. */
static weir_status take_part(struct camera_http *http, const uint8_t **out, size_t *out_n,
                             struct weir_error *err)
{
    const char *begin = find_boundary(http);
    struct rtsp_text head, value;
    if (begin == NULL) {
        return http->in.len < HEAD_MAX
                   ? WEIR_ERR_TIMEOUT
                   : weir_error_set(err, WEIR_ERR_CORRUPT, "its stream loses its boundary");
    }
    size_t at = (size_t)(begin - http->in.data) + strlen(http->boundary);
    WEIR_TRY(take_head(http, at, &head, err));
    at += head.n;
    int64_t n = header(head, "Content-Length", &value)
                    ? rtsp_text_number(value, (int64_t)CAMERA_HTTP_PICTURE_MAX)
                    : -1;
    n = n < 0 ? find_end(http, at) : n;
    if (n < 0 || http->in.len - at < (size_t)n) {
        return WEIR_ERR_TIMEOUT;
    }
    if (header(head, "Content-Type", &value) && !is_picture(value)) {
        weir_status status =
            ++http->n_others < OTHERS_MAX
                ? WEIR_OK
                : weir_error_set(err, WEIR_ERR_CORRUPT,
                                 "its stream has parts of %.*s, and no picture among them",
                                 (int)WEIR_MIN(value.n, 40), value.at);
        weir_buf_consume(&http->in, at + (size_t)n);
        return status; /* and no picture: what else cameras send between them is passed over */
    }
    http->n_others = 0;
    *out = (const uint8_t *)http->in.data + at;
    *out_n = (size_t)n;
    http->n_used = at + (size_t)n;
    return WEIR_OK;
}

static weir_status take_picture(struct camera_http *http, const uint8_t **out, size_t *out_n,
                                struct weir_error *err)
{
    if (http->boundary[0] != '\0') {
        return take_part(http, out, out_n, err);
    }
    if (http->is_chunked && http->chunks.is_over) {
        http->body_left = (int64_t)http->in.len;
    }
    if (http->body_left < 0 || http->in.len < (size_t)http->body_left) {
        return WEIR_ERR_TIMEOUT;
    }
    *out = (const uint8_t *)http->in.data;
    *out_n = http->n_used = (size_t)http->body_left;
    if (http->body_left == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "its picture is empty");
    }
    http->is_asked = http->is_answered = false;
    return WEIR_OK;
}

weir_status camera_http_next(struct camera_http *http, int64_t deadline_ms, const uint8_t **out,
                             size_t *out_n, struct weir_error *err)
{
    bool has_filled = false; /* a camera that never pauses holds nobody beyond the deadline */
    weir_buf_consume(&http->in, http->n_used);
    http->n_used = *out_n = 0;
    if (!http->is_asked) {
        WEIR_TRY(ask(http, deadline_ms, err));
    }
    for (;;) {
        weir_status status =
            http->is_answered ? take_picture(http, out, out_n, err) : take_answer(http, err);
        bool is_over = http->is_answered && http->is_chunked && http->chunks.is_over;
        if (status == WEIR_ERR_TIMEOUT && is_over) {
            return weir_error_set(err, WEIR_ERR_PEER, "the camera has ended the stream");
        }
        if (status == WEIR_ERR_TIMEOUT) {
            WEIR_TRY(has_filled && weir_mono_ms() >= deadline_ms ? status : WEIR_OK);
            WEIR_TRY(fill(http, deadline_ms, err));
            has_filled = true;
        } else if (status != WEIR_OK || http->n_used > 0) {
            return status;
        }
    }
}
