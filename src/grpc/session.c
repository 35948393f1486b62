/* What nghttp2 says of a connection: streams begin, headers and bytes come, streams end. */
#include "grpc/server_private.h"

#include <stdio.h>
#include <string.h>

#define STREAM_WINDOW_BYTES     (1 << 20)
#define STRANGE_WINDOW_BYTES    65535 /* HTTP/2's own, with which clients begin */
#define CONNECTION_WINDOW_BYTES (16 << 20)

static bool is_text(const uint8_t *value, size_t len)
{
    return memchr(value, '\0', len) == NULL;
}

/* ---- streams -------------------------------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct connection *connection = context;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    struct weir_grpc_call *call = weir_xalloc(sizeof *call);
    memset(call, 0, sizeof *call);
    atomic_init(&call->n_refs, 1);
    call->server = connection->server;
    call->connection = connection;
    call->stream_id = frame->hd.stream_id;
    call->peer = connection->peer;
    call->peer->peer.n_uses++;
    call->pace.since_ms = connection->server->now_ms;
    weir_arena_init(&call->arena, 0);
    weir_buf_init(&call->body, connection->server->config.max_message_bytes + MESSAGE_PREFIX_BYTES);
    weir_buf_init(&call->reply, 0);
    call->next = connection->calls;
    if (call->next != NULL) {
        call->next->previous = call;
    }
    connection->calls = call;
    connection->n_calls++;
    (void)nghttp2_session_set_stream_user_data(session, call->stream_id, call);
    return 0;
}

static struct weir_grpc_call *call_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static void keep_header(struct weir_grpc_call *call, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t offset;
    } known[] = {{":path", offsetof(struct weir_grpc_call, request.path)},
                 {":method", offsetof(struct weir_grpc_call, method)},
                 {"content-type", offsetof(struct weir_grpc_call, content_type)},
                 {"grpc-timeout", offsetof(struct weir_grpc_call, timeout)},
                 {"authorization", offsetof(struct weir_grpc_call, request.authorization)}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *(const char **)((char *)call + known[i].offset) = value;
        }
    }
    if (call->n_metadata < METADATA_MAX) {
        call->metadata[call->n_metadata++] = (struct metadata){name, value};
    }
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *context)
{
    struct weir_grpc_call *call = call_of(session, frame->hd.stream_id);
    (void)flags;
    (void)context;
    if (call == NULL || frame->hd.type != NGHTTP2_HEADERS || call->is_handled) {
        return 0;
    }
    call->headers_bytes += name_len + value_len;
    if (call->headers_bytes > HEADERS_MAX_BYTES || !is_text(name, name_len) ||
        !is_text(value, value_len)) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
    }
    keep_header(call, weir_arena_memdup(&call->arena, name, name_len),
                weir_arena_memdup(&call->arena, value, value_len));
    return 0;
}

static bool is_grpc(const char *content_type)
{
    static const char prefix[] = "application/grpc";
    size_t n = sizeof prefix - 1;
    return content_type != NULL && strncmp(content_type, prefix, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == '+' || content_type[n] == ';');
}

/* The headers are whole: is it a call at all? */
static void on_headers(struct weir_grpc_call *call)
{
    int64_t timeout_ms;
    if (call->method == NULL || strcmp(call->method, "POST") != 0 || !is_grpc(call->content_type) ||
        call->request.path == NULL) {
        grpc_call_refuse(call, WEIR_GRPC_UNIMPLEMENTED,
                         "this port answers calls of gRPC and no other");
        return;
    }
    if (call->timeout != NULL && grpc_message_read_timeout(call->timeout, &timeout_ms) != WEIR_OK) {
        grpc_call_refuse(call, WEIR_GRPC_INVALID_ARGUMENT, "grpc-timeout is no time");
        return;
    }
    if (call->timeout != NULL) {
        call->request.deadline_ms = call->server->now_ms + WEIR_MAX(timeout_ms, (int64_t)1);
        call->server->next_due_ms = WEIR_MIN(call->server->next_due_ms, call->request.deadline_ms);
    }
    grpc_call_ask(call);
}

/* The stream's window opens as its bytes come, once it is admitted. The connection's is all streams', and
 * always does. */
static void give_window(nghttp2_session *session, struct weir_grpc_call *call, int32_t stream_id,
                        size_t len)
{
    (void)nghttp2_session_consume_connection(session, len);
    if (call != NULL && !call->is_admitted && !call->is_answered) {
        call->n_kept_back += len;
    } else {
        (void)nghttp2_session_consume_stream(session, stream_id, len);
    }
}

void grpc_session_open_window(struct weir_grpc_call *call)
{
    nghttp2_session *session = call->connection->session;
    (void)nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, call->stream_id,
                                                STREAM_WINDOW_BYTES);
    (void)nghttp2_session_consume_stream(session, call->stream_id, call->n_kept_back);
    call->n_kept_back = 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes,
                   size_t len, void *context)
{
    struct connection *connection = context;
    struct weir_grpc_server *server = connection->server;
    struct weir_grpc_call *call = call_of(session, stream_id);
    struct weir_error err = {0};
    (void)flags;
    give_window(session, call, stream_id, len);
    if (call == NULL || call->is_answered || call->is_handled) {
        return 0;
    }
    connection->since_ms = server->now_ms;
    call->pace.n_bytes += len;
    if (!grpc_call_hold(call, len)) {
        grpc_call_refuse(call, WEIR_GRPC_RESOURCE_EXHAUSTED,
                         "the server holds as many bytes as it may, for all or for one address");
        return 0;
    }
    weir_status status = weir_buf_append(&call->body, bytes, len);
    if (status == WEIR_OK) {
        status = grpc_message_check_prefix((const uint8_t *)call->body.data, call->body.len,
                                           server->config.max_message_bytes, &err);
    } else {
        (void)weir_error_set(&err, status, "the message is longer than it may be");
    }
    if (status != WEIR_OK) {
        grpc_call_refuse(call, weir_grpc_code_of(status), err.message);
    }
    return 0;
}

void grpc_session_credit(struct connection *connection, int n_frames)
{
    connection->n_frames = WEIR_MAX(connection->n_frames - n_frames, 0);
}

static bool is_flood(struct connection *connection, const nghttp2_frame *frame)
{
    int64_t now_ms = connection->server->now_ms;
    if (now_ms - connection->flood_since_ms > FLOOD_WINDOW_MS) {
        connection->flood_since_ms = now_ms;
        connection->n_frames = connection->n_resets = 0;
    }
    bool is_reset = frame->hd.type == NGHTTP2_RST_STREAM;
    bool is_work = frame->hd.type == NGHTTP2_HEADERS ||
                   (frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0);
    connection->n_resets += is_reset;
    connection->n_frames += !is_work;
    grpc_session_credit(connection, is_work ? 2 : 0);
    return connection->n_resets > FLOOD_RESETS_MAX || connection->n_frames > FLOOD_FRAMES_MAX;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct connection *connection = context;
    if (is_flood(connection, frame)) {
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* the connection is closed */
    }
    struct weir_grpc_call *call = call_of(session, frame->hd.stream_id);
    if (call == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)) {
        return 0;
    }
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        connection->since_ms = connection->server->now_ms;
        on_headers(call);
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        call->has_ended = true;
        if (!call->is_answered) {
            grpc_call_handle(call);
        }
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *context)
{
    struct weir_grpc_call *call = call_of(session, stream_id);
    (void)error_code;
    (void)context;
    if (call != NULL) {
        (void)nghttp2_session_set_stream_user_data(session, stream_id, NULL);
        grpc_call_detach(call);
    }
    return 0;
}

/* ---- the answer ------------------------------------------------------------------------------------- */

#define HEADER(name_, value_)                                                                      \
    {                                                                                              \
        (uint8_t *)(name_), (uint8_t *)(value_), strlen(name_), strlen(value_),                    \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }

static size_t put_status(const struct weir_grpc_call *call, char code[8], char *text, size_t size,
                         nghttp2_nv out[2])
{
    (void)snprintf(code, 8, "%d", (int)call->code);
    grpc_message_encode_text(call->text, text, size);
    out[0] = (nghttp2_nv)HEADER("grpc-status", code);
    out[1] = (nghttp2_nv)HEADER("grpc-message", text);
    return text[0] != '\0' ? 2 : 1;
}

static ssize_t read_reply(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t len,
                          uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct weir_grpc_call *call = source->ptr;
    size_t total = sizeof call->prefix + call->reply.len, n = 0;
    (void)context;
    while (n < len && call->n_sent < total) {
        bool is_prefix = call->n_sent < sizeof call->prefix;
        const void *from = is_prefix ? (const void *)(call->prefix + call->n_sent)
                                     : call->reply.data + (call->n_sent - sizeof call->prefix);
        size_t left = (is_prefix ? sizeof call->prefix : total) - call->n_sent;
        size_t take = WEIR_MIN(len - n, left);
        memcpy(buf + n, from, take);
        n += take;
        call->n_sent += take;
    }
    if (call->n_sent == total) {
        char code[8], text[3 * MESSAGE_TEXT_MAX];
        nghttp2_nv trailer[2];
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        size_t n_trailer = put_status(call, code, text, sizeof text, trailer);
        if (nghttp2_submit_trailer(session, stream_id, trailer, n_trailer) != 0) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

void grpc_session_submit(struct weir_grpc_call *call)
{
    char code[8], text[3 * MESSAGE_TEXT_MAX];
    nghttp2_session *session = call->connection->session;
    nghttp2_nv headers[5] = {HEADER(":status", "200"), HEADER("content-type", "application/grpc"),
                             HEADER("grpc-accept-encoding", "identity")};
    call->is_answered = true;
    if (call->has_reply) {
        nghttp2_data_provider provider = {.source = {.ptr = call}, .read_callback = read_reply};
        grpc_message_prefix(call->reply.len, call->prefix);
        (void)nghttp2_submit_response(session, call->stream_id, headers, 3, &provider);
        return;
    }
    size_t n = put_status(call, code, text, sizeof text, &headers[3]);
    (void)nghttp2_submit_response(session, call->stream_id, headers, 3 + n, NULL);
}

/* A call that was refused is over: what is left of its message is of no use (RFC 9113, 8.1). Not before
 * its answer has been sent: a reset takes back what has not. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct weir_grpc_call *call = call_of(session, frame->hd.stream_id);
    (void)context;
    if (call != NULL && frame->hd.type == NGHTTP2_HEADERS && !call->has_ended &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, call->stream_id,
                                        NGHTTP2_NO_ERROR);
    }
    return 0;
}

/* ---- the session --------------------------------------------------------------------------------------- */

weir_status grpc_session_make_callbacks(struct weir_grpc_server *server)
{
    if (nghttp2_session_callbacks_new(&server->callbacks) != 0 ||
        nghttp2_option_new(&server->options) != 0) {
        return WEIR_ERR_NOMEM;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(server->callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(server->callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(server->callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(server->callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(server->callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(server->callbacks, on_frame_sent);
    nghttp2_option_set_no_closed_streams(server->options, 1);
    nghttp2_option_set_no_auto_window_update(server->options, 1);
    return WEIR_OK;
}

bool grpc_session_begin(struct connection *connection)
{
    const struct weir_grpc_config *config = &connection->server->config;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)config->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STRANGE_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX_BYTES}};
    return nghttp2_session_server_new2(&connection->session, connection->server->callbacks,
                                       connection, connection->server->options) == 0 &&
           nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                   WEIR_ARRAY_LEN(settings)) == 0 &&
           nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW_BYTES) == 0;
}

bool grpc_session_take(struct connection *connection, const uint8_t *bytes, size_t len)
{
    return nghttp2_session_mem_recv(connection->session, bytes, len) >= 0;
}
