/* libmicrohttpd's side of an exchange: its callbacks, all on I/O threads. */
#include "http/server_private.h"

#include "base/clock.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct sockaddr *address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info != NULL ? info->client_addr : NULL;
}

void connection_notify(void *context, struct MHD_Connection *connection, void **slot,
                       enum MHD_ConnectionNotificationCode code)
{
    struct weir_http_server *server = context;
    struct http_watch *watch = *slot;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        watch = weir_xalloc(sizeof *watch);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *watch = (struct http_watch){.fd = info != NULL ? info->connect_fd : -1,
                                     .is_reading = true,
                                     .pace = {.since_ms = weir_mono_ms()},
                                     .next = server->watches};
        if (server->watches != NULL) {
            server->watches->previous = watch;
        }
        server->watches = watch;
        peer_add_watch(server, address_of(connection), watch);
        *slot = watch;
        server->acceptor.n_begun++;
        pthread_cond_broadcast(&server->idle);
    } else if (watch != NULL) {
        if (watch->previous != NULL) {
            watch->previous->next = watch->next;
        } else {
            server->watches = watch->next;
        }
        if (watch->next != NULL) {
            watch->next->previous = watch->previous;
        }
        peer_remove_watch(watch);
        free(watch);
        *slot = NULL;
    }
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        peer_leave(server, address_of(connection));
    }
    pthread_mutex_unlock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        acceptor_leave(server);
    }
}

void watch_expect(struct http_exchange *x, bool is_reading, bool is_in_body)
{
    if (x->watch != NULL) {
        pthread_mutex_lock(&x->server->lock);
        x->watch->is_reading = is_reading;
        x->watch->is_in_body = is_in_body;
        x->watch->is_sending = false;
        x->watch->pace = (struct weir_pace){.since_ms = weir_mono_ms()};
        pthread_mutex_unlock(&x->server->lock);
    }
}

void watch_body(struct http_exchange *x)
{
    if (x->watch != NULL && !x->watch->is_in_body) { /* only this thread changes it */
        watch_expect(x, true, true);
    }
}

void watch_count(struct http_exchange *x, size_t n_bytes)
{
    if (x->watch != NULL) {
        pthread_mutex_lock(&x->server->lock);
        x->watch->pace.n_bytes += n_bytes;
        pthread_mutex_unlock(&x->server->lock);
    }
}

void watch_send(struct http_exchange *x, size_t n_bytes)
{
    if (x->watch != NULL) {
        pthread_mutex_lock(&x->server->lock);
        if (!x->watch->is_sending) {
            x->watch->is_sending = true;
            x->watch->pace = (struct weir_pace){.since_ms = weir_mono_ms()};
        }
        x->watch->pace.n_bytes += n_bytes;
        pthread_mutex_unlock(&x->server->lock);
    }
}

/* libmicrohttpd (0.9.75) reads the query next and keeps each argument in the connection's memory; if that is
 * used up it closes without an answer. The query is request.c's to read: make one argument of it. The text is
 * in memory of the connection that libmicrohttpd writes to itself, and nothing else of it is looked at. */
static void join_arguments(const char *uri)
{
    for (char *mark = strchr((char *)uri, '&'); mark != NULL; mark = strchr(mark, '&')) {
        *mark = '-';
    }
}

/* The request line is there: make the exchange. libmicrohttpd keeps the pointer for us. */
void *exchange_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct http_exchange *x = weir_xalloc(sizeof *x);
    memset(x, 0, sizeof *x);
    x->server = context;
    x->connection = connection;
    weir_arena_init(&x->arena, REQUEST_ARENA_MAX_BYTES);
    weir_buf_init(&x->body, 0);
    weir_buf_init(&x->pending, WEIR_HTTP_EVENTS_MAX_BYTES);
    response_init(&x->response);
    x->upload_fd = -1;
    x->target = weir_arena_strdup(&x->arena, uri);
    join_arguments(uri);
    x->request.arena = &x->arena;
    x->request.body = "";
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->watch = info != NULL ? info->socket_context : NULL;
    return x;
}

void exchange_drop_upload(struct http_exchange *x)
{
    if (x->upload_fd >= 0) {
        close(x->upload_fd);
        x->upload_fd = -1;
    }
    if (x->upload_path != NULL) {
        (void)unlink(x->upload_path); /* gone already if the handler renamed it */
        x->upload_path = NULL;
    }
}

static void exchange_destroy(struct http_exchange *x)
{
    body_release(x);
    exchange_drop_upload(x);
    stream_drop_body(x);
    response_fini(&x->response);
    if (x->request.end_fn != NULL) {
        x->request.end_fn(x->request.state);
    }
    unpack_close(x->unpack);
    weir_buf_fini(&x->body);
    weir_buf_fini(&x->pending);
    weir_arena_fini(&x->arena);
    free(x);
}

void exchange_reap(struct weir_http_server *server)
{
    struct http_exchange *x = atomic_exchange(&server->ended, NULL);
    while (x != NULL) {
        struct http_exchange *next = x->next;
        exchange_destroy(x);
        x = next;
    }
}

void exchange_completed(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_RequestTerminationCode why)
{
    (void)connection;
    (void)why;
    struct weir_http_server *server = context;
    struct http_exchange *x = *slot;
    if (x == NULL) {
        return;
    }
    *slot = NULL;
    if (x->is_upgraded) {
        /* libmicrohttpd holds a lock of its own here, which is taken under ours elsewhere: nothing may
         * be waited for. What there was to count, weir_http_upgraded_close has. */
        struct http_exchange *first = atomic_load(&server->ended);
        do {
            x->next = first;
        } while (!atomic_compare_exchange_weak(&server->ended, &first, x));
        return;
    }
    watch_expect(x, true, false);
    pthread_mutex_lock(&server->lock);
    if (x->response.kind == ANSWER_EVENTS) {
        server->n_streams--;
    }
    if (x->is_accepted && --server->n_inflight == 0) {
        pthread_cond_broadcast(&server->idle);
    }
    pthread_mutex_unlock(&server->lock);
    exchange_destroy(x);
}

/* An error after which the connection cannot go on: what follows may be no request. */
static enum MHD_Result answer_error_and_close(struct http_exchange *x,
                                              const struct weir_error *error)
{
    weir_http_response_error(&x->response, error);
    weir_http_response_header(&x->response, "Connection", "close");
    return response_queue(x);
}

static enum MHD_Result answer_error(struct http_exchange *x, const struct weir_error *error)
{
    weir_http_response_error(&x->response, error);
    return response_queue(x);
}

/* Take no byte of the body: it is read and dropped so that the client gets to see the answer. */
static void refuse_body(struct http_exchange *x, weir_status status, uint64_t limit)
{
    weir_error_set(&x->body_error, status,
                   "the body of %s %s is longer than its limit of %" PRIu64 " bytes",
                   x->request.method, x->request.path, limit);
    weir_buf_fini(&x->body);
}

static void say_no_room(const struct http_exchange *x, struct weir_error *err)
{
    (void)weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                         "the server holds as many bytes of requests as it may (%" PRIu64
                         " MiB, half of it for one address); try again",
                         x->server->config.max_bodies_bytes >> 20);
}

static weir_status open_upload(struct http_exchange *x, struct weir_error *err)
{
    const char *dir = x->server->config.upload_dir;
    if (dir == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "this server has no folder for uploads");
    }
    char *path = weir_arena_printf(&x->arena, "%s/upload-XXXXXX", dir);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot store an upload in %s", dir);
    }
    x->upload_fd = fd;
    x->upload_path = path;
    weir_sha256_begin(&x->upload_hash);
    assert(x->rule.check == NULL || (x->rule.check_bytes > 0 && x->rule.check_bytes <= 4096));
    if (x->rule.check != NULL) {
        x->head = weir_arena_alloc(&x->arena, x->rule.check_bytes);
    }
    x->request.body_file = path;
    return WEIR_OK;
}

/* Content-Length, or 0 when there is none (chunked). libmicrohttpd has refused malformed ones. */
static uint64_t declared_length(const struct http_exchange *x)
{
    const char *text = weir_http_request_header(&x->request, "Content-Length");
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* The body may come: make the file or the room for it. */
static enum MHD_Result begin_body(struct http_exchange *x)
{
    struct weir_error error;
    x->phase = PHASE_BODY;
    watch_expect(x, true, true);
    if (x->rule.to_pipe) {
        return MHD_YES;
    }
    if (x->rule.to_file) {
        return open_upload(x, &error) == WEIR_OK ? MHD_YES : answer_error(x, &error);
    }
    x->unpack = x->is_packed
                    ? unpack_open(weir_http_request_header(&x->request, "Content-Encoding"))
                    : NULL;
    if (!body_reserve(x, declared_length(x)) || (x->is_packed && x->unpack == NULL)) {
        say_no_room(x, &error);
        return answer_error(x, &error);
    }
    return MHD_YES;
}

/* First call: the headers are whole. */
static enum MHD_Result on_headers(struct http_exchange *x, const char *method)
{
    struct weir_http_server *server = x->server;
    struct weir_error error;
    if (request_fill(x, method, &error) != WEIR_OK) {
        return answer_error_and_close(x, &error);
    }
    x->rule = (struct weir_http_body_rule){.max_bytes = server->config.max_body_bytes};
    if (server->config.body_rule != NULL) {
        server->config.body_rule(server->context, &x->request, &x->rule);
        assert(x->rule.of_class >= 0 && x->rule.of_class < server->config.n_classes);
    }
    x->rule.is_unpacked = x->rule.is_unpacked && !x->rule.to_file && !x->rule.to_pipe;
    x->is_packed = x->rule.is_unpacked &&
                   unpack_knows(weir_http_request_header(&x->request, "Content-Encoding"));
    weir_buf_init(&x->body, x->rule.to_file || x->rule.to_pipe ? 0 : (size_t)x->rule.max_bytes);
    x->phase = PHASE_BODY;
    watch_expect(x, true, true);
    uint64_t length = declared_length(x);
    if (length > x->rule.max_bytes && !x->rule.to_pipe) {
        refuse_body(x, WEIR_ERR_LIMIT, x->rule.max_bytes);
        if (length > x->rule.max_bytes + DISCARD_MAX_BYTES ||
            weir_http_request_header(&x->request, "Expect") != NULL) {
            return answer_error(x, &x->body_error);
        }
        return MHD_YES;
    }
    bool has_body =
        length > 0 || weir_http_request_header(&x->request, "Transfer-Encoding") != NULL;
    if (!has_body) {
        return MHD_YES;
    }
    bool is_small = length > 0 && length <= ADMIT_FREE_BYTES && !x->rule.to_file &&
                    !x->rule.to_pipe && !x->is_packed; /* who knows how much that is */
    if (x->rule.to_pipe) {
        assert(server->config.admit != NULL);
        stream_begin_body(x);
    }
    if (server->config.admit == NULL || is_small) {
        return begin_body(x);
    }
    watch_expect(x, false, false);
    return pool_submit(x, JOB_ADMIT) ? MHD_YES : response_queue(x);
}

/* The disk writes while the rest comes: else all of a large file would be synced at its end, and its
 * sender would wait that long without a word. */
static void push_upload(struct http_exchange *x)
{
    uint64_t n_bytes = x->request.body_file_bytes - x->n_upload_pushed_bytes;
    if (n_bytes >= UPLOAD_PUSH_BYTES) {
        (void)sync_file_range(x->upload_fd, (off_t)x->n_upload_pushed_bytes, (off_t)n_bytes,
                              SYNC_FILE_RANGE_WRITE);
        x->n_upload_pushed_bytes += n_bytes;
    }
}

/* Looks at the first bytes, once they are all there: then `head` goes. */
static void check_head(struct http_exchange *x, uint64_t total_bytes)
{
    if (x->rule.check(&x->request, x->head, x->n_head, total_bytes, &x->body_error) != WEIR_OK) {
        x->is_head_refused = true;
    }
    x->head = NULL;
}

static void add_to_upload(struct http_exchange *x, const char *bytes, size_t len)
{
    if (x->head != NULL) {
        size_t n = WEIR_MIN(len, x->rule.check_bytes - x->n_head);
        memcpy(x->head + x->n_head, bytes, n);
        x->n_head += n;
        if (x->n_head == x->rule.check_bytes) {
            check_head(x, declared_length(x));
        }
    }
    if (x->is_head_refused ||
        weir_fd_write_all(x->upload_fd, bytes, len, &x->body_error) != WEIR_OK) {
        return;
    }
    if (x->rule.wants_sha256) {
        weir_sha256_add(&x->upload_hash, bytes, len);
    }
    x->request.body_file_bytes += len;
    push_upload(x);
}

/* To the body in memory, unless that would be too much: then body_error says so. */
static bool add_to_body(void *context, const char *bytes, size_t len)
{
    struct http_exchange *x = context;
    uint64_t n_after = x->body.len + len;
    if (x->body_error.status != WEIR_OK) {
        return false;
    }
    if (n_after > x->rule.max_bytes) {
        refuse_body(x, WEIR_ERR_LIMIT, x->rule.max_bytes);
    } else if (n_after > x->n_reserved_bytes && !body_reserve(x, n_after - x->n_reserved_bytes)) {
        say_no_room(x, &x->body_error);
        weir_buf_fini(&x->body);
        body_release(x);
    } else if (weir_buf_append(&x->body, bytes, len) != WEIR_OK) {
        weir_error_set(&x->body_error, x->body.status, "no memory for the request's body");
    }
    return x->body_error.status == WEIR_OK;
}

/* What nothing comes out of (empty members, empty blocks) has a bound, too. Noise grows a little. */
static void add_packed(struct http_exchange *x, const char *bytes, size_t len)
{
    x->n_packed_bytes += len;
    if (x->n_packed_bytes > x->rule.max_bytes + x->rule.max_bytes / 64 + PACKED_MORE_BYTES) {
        refuse_body(x, WEIR_ERR_LIMIT, x->rule.max_bytes);
    } else {
        (void)unpack_add(x->unpack, bytes, len, add_to_body, x, &x->body_error);
    }
}

static enum MHD_Result on_body(struct http_exchange *x, const char *bytes, size_t len)
{
    watch_count(x, len);
    if (x->rule.to_file && x->body_error.status == WEIR_OK &&
        len > x->rule.max_bytes - x->request.body_file_bytes) {
        refuse_body(x, WEIR_ERR_LIMIT, x->rule.max_bytes);
    }
    if (x->body_error.status != WEIR_OK) {
        x->n_discarded_bytes += len;
        /* What was taken to come and is of no use may come: whoever sends it reads why. */
        uint64_t most = x->is_head_refused ? x->rule.max_bytes : 2 * DISCARD_MAX_BYTES;
        return x->n_discarded_bytes > most ? MHD_NO : MHD_YES;
    }
    if (x->unpack != NULL) {
        add_packed(x, bytes, len);
    } else if (!x->rule.to_file) {
        (void)add_to_body(x, bytes, len);
    } else if (x->upload_fd >= 0) {
        add_to_upload(x, bytes, len);
    }
    return MHD_YES;
}

static enum MHD_Result on_whole(struct http_exchange *x)
{
    watch_expect(x, false, false);
    stream_end_body(x, WEIR_OK);
    if (x->head != NULL && x->body_error.status == WEIR_OK) {
        check_head(x, x->request.body_file_bytes);
    }
    if (x->unpack != NULL && x->body_error.status == WEIR_OK) {
        (void)unpack_end(x->unpack, &x->body_error);
    }
    if (x->body_error.status != WEIR_OK) {
        return answer_error(x, &x->body_error);
    }
    if (x->upload_fd >= 0) {
        int rc = close(x->upload_fd);
        x->upload_fd = -1;
        if (rc != 0) {
            struct weir_error error;
            weir_error_set_errno(&error, errno, "storing an upload");
            return answer_error(x, &error);
        }
        if (x->rule.wants_sha256) {
            weir_sha256_end(&x->upload_hash, x->upload_sha256);
            x->request.body_file_sha256 = x->upload_sha256;
        }
    }
    x->request.body = x->body.data;
    x->request.body_len = x->body.len;
    return pool_submit(x, JOB_HANDLE) ? MHD_YES : response_queue(x);
}

enum MHD_Result exchange_access(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_len, void **slot)
{
    (void)server;
    (void)connection;
    (void)url;
    (void)version;
    struct http_exchange *x = *slot;
    if (x->phase == PHASE_HEADERS) {
        return on_headers(x, method);
    }
    if (x->phase == PHASE_ANSWERED) {
        return response_queue(x);
    }
    if (x->phase == PHASE_ADMITTED) {
        return begin_body(x);
    }
    if (*upload_len > 0 && x->request.body_pipe != NULL) {
        return stream_take_body(x, upload, upload_len);
    }
    if (*upload_len > 0) {
        size_t len = *upload_len;
        *upload_len = 0;
        return on_body(x, upload, len);
    }
    return on_whole(x);
}
