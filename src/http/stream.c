/* Bodies into pipes, answers out of pipes, and connections that become somebody else's. */
#include "http/pipe.h"
#include "http/server_private.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define READER_BLOCK_BYTES 16384

/* ---- holding a connection ---------------------------------------------------------------------- */

/* With the pipe's lock held, all three. */
static void hold(void *context)
{
    struct http_exchange *x = context;
    x->is_held = true;
    MHD_suspend_connection(x->connection);
}

static void let_go(void *context)
{
    struct http_exchange *x = context;
    if (x->is_held) {
        x->is_held = false;
        MHD_resume_connection(x->connection);
    }
}

/* ---- the body ---------------------------------------------------------------------------------- */

void stream_begin_body(struct http_exchange *x)
{
    x->request.body_pipe = weir_http_pipe_create(WEIR_HTTP_PIPE_BYTES);
    weir_http_pipe_watch_room(x->request.body_pipe, let_go, x);
}

enum MHD_Result stream_take_body(struct http_exchange *x, const char *bytes, size_t *len)
{
    struct weir_http_pipe *pipe = x->request.body_pipe;
    watch_body(x);
    size_t n = weir_http_pipe_write(pipe, bytes, *len);
    watch_count(x, n);
    *len -= n;
    if (weir_http_pipe_is_closed(pipe)) { /* it is read to its end, so that the answer arrives */
        x->n_discarded_bytes += n + *len;
        *len = 0;
        return x->n_discarded_bytes > DISCARD_MAX_BYTES ? MHD_NO : MHD_YES;
    }
    if (*len > 0) {
        watch_expect(x, false, false); /* it is not the client who is slow */
        (void)pipe_if_full(pipe, hold, x);
    }
    return MHD_YES;
}

void stream_end_body(struct http_exchange *x, weir_status status)
{
    struct weir_http_pipe *pipe = x->request.body_pipe;
    if (pipe != NULL) {
        weir_http_pipe_watch_room(pipe, NULL, NULL);
        weir_http_pipe_end(pipe, status);
    }
}

void stream_drop_body(struct http_exchange *x)
{
    stream_end_body(x, WEIR_ERR_PEER);
    weir_http_pipe_unref(x->request.body_pipe);
    x->request.body_pipe = NULL;
}

/* ---- the answer -------------------------------------------------------------------------------- */

/* libmicrohttpd asks for bytes to send. */
static ssize_t read_pipe(void *context, uint64_t position, char *out, size_t size)
{
    (void)position;
    struct http_exchange *x = context;
    struct weir_http_pipe *pipe = x->response.pipe;
    weir_status status = WEIR_OK;
    size_t n = weir_http_pipe_read(pipe, out, size);
    if (n > 0) {
        watch_send(x, n);
        return (ssize_t)n;
    }
    if (weir_http_pipe_is_over(pipe, &status)) {
        return status == WEIR_OK ? MHD_CONTENT_READER_END_OF_STREAM
                                 : MHD_CONTENT_READER_END_WITH_ERROR;
    }
    watch_expect(x, false, false); /* it is not the client who is slow */
    (void)pipe_if_empty(pipe, hold, x);
    return 0;
}

/* Behind an answer without a body libmicrohttpd (0.9.75) sends the last chunk of those whose length it does
 * not know, which would be taken for the beginning of the next answer. */
void weir_http_response_stream(struct weir_http_response *response, int http_status,
                               int64_t n_bytes, struct weir_http_pipe *pipe)
{
    struct http_exchange *x = WEIR_CONTAINER_OF(response, struct http_exchange, response);
    uint64_t size = n_bytes < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)n_bytes;
    bool has_body = http_status != 204 && http_status != 304;
    response_set(
        response, http_status, NULL,
        has_body ? MHD_create_response_from_callback(size, READER_BLOCK_BYTES, read_pipe, x, NULL)
                 : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
    if (has_body && n_bytes < 0 && strcmp(x->request.method, "HEAD") == 0) {
        weir_http_response_header(response, "Connection", "close"); /* there is no next one */
    }
    response->pipe = weir_http_pipe_ref(pipe);
    weir_http_pipe_watch_bytes(pipe, let_go, x);
}

void stream_drop_answer(struct weir_http_response *response)
{
    if (response->pipe != NULL) {
        weir_http_pipe_watch_bytes(response->pipe, NULL, NULL);
        weir_http_pipe_close(response->pipe);
        weir_http_pipe_unref(response->pipe);
        response->pipe = NULL;
    }
}

void weir_http_response_foreign(struct weir_http_response *response)
{
    response->is_foreign = true;
}

weir_status weir_http_response_foreign_header(struct weir_http_response *response, const char *name,
                                              const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if ((*c < 0x20 && *c != '\t') || *c == 0x7f) {
            return WEIR_ERR_INVALID;
        }
    }
    if (!request_is_token(name)) {
        return WEIR_ERR_INVALID;
    }
    struct http_pair *pair = weir_xalloc(sizeof *pair);
    *pair = (struct http_pair){
        .name = weir_xstrdup(name), .value = weir_xstrdup(value), .next = response->headers};
    response->headers = pair;
    return WEIR_OK;
}

/* ---- upgrades ---------------------------------------------------------------------------------- */

struct weir_http_upgraded {
    struct http_exchange *x; /* until it is closed */
    struct weir_http_server *server;
    struct MHD_UpgradeResponseHandle *handle;
};

/* On an I/O thread; a connection over TLS has a socket pair of libmicrohttpd's in place of its own. */
static void on_upgrade(void *context, struct MHD_Connection *connection, void *exchange,
                       const char *extra, size_t extra_len, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *handle)
{
    (void)connection;
    (void)exchange;
    struct http_exchange *x = context;
    struct weir_http_upgraded *upgraded = weir_xalloc(sizeof *upgraded);
    *upgraded = (struct weir_http_upgraded){x, x->server, handle};
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    pthread_mutex_lock(&x->server->lock);
    x->server->n_upgraded++;
    x->is_upgraded = true;
    x->watch = NULL; /* it goes with the connection, which is not ours any more */
    pthread_mutex_unlock(&x->server->lock);
    x->response.upgrade_fn(x->response.stream_state, upgraded, fd, extra, extra_len);
}

void weir_http_response_upgrade(struct weir_http_response *response, const char *protocol,
                                weir_http_upgrade_fn fn, void *context)
{
    struct http_exchange *x = WEIR_CONTAINER_OF(response, struct http_exchange, response);
    response_set(response, 101, NULL, MHD_create_response_for_upgrade(on_upgrade, x));
    response->is_foreign = true;
    response->upgrade_fn = fn;
    response->stream_state = context;
    weir_http_response_header(response, "Upgrade", protocol);
}

void weir_http_upgraded_close(struct weir_http_upgraded *upgraded)
{
    struct weir_http_server *server = upgraded->server;
    struct http_exchange *x = upgraded->x;
    void (*end_fn)(void *state) = x->request.end_fn;
    void *state = x->request.state;
    x->request.end_fn = NULL;
    pthread_mutex_lock(&server->lock);
    server->n_inflight -= x->is_accepted;
    x->is_accepted = false;
    pthread_mutex_unlock(&server->lock);
    /* From here on the exchange may be freed: exchange_completed. */
    (void)MHD_upgrade_action(upgraded->handle, MHD_UPGRADE_ACTION_CLOSE);
    free(upgraded);
    if (end_fn != NULL) {
        end_fn(state);
    }
    pthread_mutex_lock(&server->lock);
    server->n_upgraded--;
    if (server->n_upgraded == 0 || server->n_inflight == 0) {
        pthread_cond_broadcast(&server->idle);
    }
    pthread_mutex_unlock(&server->lock);
}
