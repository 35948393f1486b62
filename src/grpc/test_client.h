/** A client of gRPC for tests: nghttp2's other side, over a blocking socket, one call at a time. */
#ifndef WEIR_GRPC_TEST_CLIENT_H
#define WEIR_GRPC_TEST_CLIENT_H

#include "base/buf.h"
#include "base/test_main.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct test_client {
    int fd;
    nghttp2_session *session;
    struct weir_buf body; /**< Of the last answer, with its prefix. */
    int code;             /**< grpc-status; -1: none. */
    char text[512];       /**< grpc-message */
    bool is_closed;
    const char *send;
    size_t send_len, n_sent;
    bool stays_open; /**< Its calls do not end of themselves. */
    bool paced;      /**< It sends may_send bytes, and waits for nghttp2_session_resume_data. */
    size_t may_send;
};

static int client_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                            const uint8_t *name, size_t name_len, const uint8_t *value,
                            size_t value_len, uint8_t flags, void *context)
{
    struct test_client *client = context;
    (void)session;
    (void)frame;
    (void)flags;
    if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0) {
        client->code = (int)strtol((const char *)value, NULL, 10);
    } else if (name_len == 12 && memcmp(name, "grpc-message", 12) == 0) {
        size_t n = value_len < sizeof client->text - 1 ? value_len : sizeof client->text - 1;
        memcpy(client->text, value, n);
        client->text[n] = '\0';
    }
    return 0;
}

static int client_on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                          const uint8_t *bytes, size_t len, void *context)
{
    (void)session;
    (void)flags;
    (void)stream_id;
    (void)weir_buf_append(&((struct test_client *)context)->body, bytes, len);
    return 0;
}

static int client_on_close(nghttp2_session *session, int32_t stream_id, uint32_t error,
                           void *context)
{
    (void)session;
    (void)stream_id;
    (void)error;
    ((struct test_client *)context)->is_closed = true;
    return 0;
}

static inline void client_flush(struct test_client *client)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(client->session, &bytes)) > 0) {
        for (ssize_t at = 0; at < n;) {
            ssize_t sent = send(client->fd, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (sent <= 0) {
                return;
            }
            at += sent;
        }
    }
}

/** Speak over a socket that is connected, and the client's from now on. */
static inline void client_of(struct test_client *client, int fd)
{
    nghttp2_session_callbacks *callbacks;
    memset(client, 0, sizeof *client);
    client->fd = fd;
    weir_buf_init(&client->body, (size_t)256 << 20);
    ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_on_close);
    ck_assert_int_eq(nghttp2_session_client_new(&client->session, callbacks, client), 0);
    nghttp2_session_callbacks_del(callbacks);
    ck_assert_int_eq(nghttp2_submit_settings(client->session, 0, NULL, 0), 0);
    client_flush(client);
}

static inline void client_open(struct test_client *client, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    client_of(client, fd);
}

static inline void client_close(struct test_client *client)
{
    nghttp2_session_del(client->session);
    weir_buf_fini(&client->body);
    close(client->fd);
}

static ssize_t client_read(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t len,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct test_client *client = context;
    size_t n = client->send_len - client->n_sent;
    (void)session;
    (void)stream_id;
    (void)source;
    n = n < len ? n : len;
    n = client->paced && n > client->may_send ? client->may_send : n;
    if (n == 0 && (client->paced || client->stays_open)) {
        return NGHTTP2_ERR_DEFERRED;
    }
    client->may_send -= client->paced ? n : 0;
    memcpy(buf, client->send + client->n_sent, n);
    client->n_sent += n;
    *flags |=
        client->n_sent == client->send_len && !client->stays_open ? NGHTTP2_DATA_FLAG_EOF : 0u;
    return (ssize_t)n;
}

/** Begin a call: `bytes` are sent as they are, prefix and all. headers: pairs, NULL at the end. */
static inline void client_begin(struct test_client *client, const char *path,
                                const char *const *headers, const char *bytes, size_t len)
{
    nghttp2_nv nv[16];
    size_t n = 0;
    const char *const usual[] = {
        ":method", "POST",         ":scheme",          "http", ":path",    path, ":authority",
        "x",       "content-type", "application/grpc", "te",   "trailers", NULL};
    const char *const *lists[] = {usual, headers};
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; lists[i] != NULL && lists[i][k] != NULL; k += 2) {
            nv[n++] = (nghttp2_nv){(uint8_t *)lists[i][k], (uint8_t *)lists[i][k + 1],
                                   strlen(lists[i][k]), strlen(lists[i][k + 1]), 0};
        }
    }
    nghttp2_data_provider provider = {.read_callback = client_read};
    client->send = bytes;
    client->send_len = len;
    client->n_sent = 0;
    client->code = -1;
    client->text[0] = '\0';
    client->is_closed = false;
    weir_buf_reset(&client->body);
    ck_assert_int_gt(nghttp2_submit_request(client->session, NULL, nv, n, &provider, NULL), 0);
    client_flush(client);
}

/** Its grpc-status; -1: the connection ended, or the stream without one. */
static inline int client_finish(struct test_client *client)
{
    uint8_t bytes[16384];
    while (!client->is_closed) {
        ssize_t got = recv(client->fd, bytes, sizeof bytes, 0);
        if (got <= 0 || nghttp2_session_mem_recv(client->session, bytes, (size_t)got) < 0) {
            return client->code;
        }
        client_flush(client);
    }
    return client->code;
}

/** A whole call with one message. */
static inline int client_call(struct test_client *client, const char *path,
                              const char *const *headers, const void *message, size_t len)
{
    char *bytes = malloc(len + 5);
    const unsigned char prefix[] = {0, (unsigned char)(len >> 24), (unsigned char)(len >> 16),
                                    (unsigned char)(len >> 8), (unsigned char)len};
    memcpy(bytes, prefix, 5);
    if (len > 0) {
        memcpy(bytes + 5, message, len);
    }
    client_begin(client, path, headers, bytes, len + 5);
    int code = client_finish(client);
    free(bytes);
    return code;
}

#endif
