#include "comm/rendezvous/auth_conn.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

int auth_conn_poll_ms(uint64_t deadline_ns, int most_ms)
{
    uint64_t now = weir_mono_ns();
    if (now >= deadline_ns) {
        return 0;
    }
    uint64_t ms = (deadline_ns - now + 999999) / 1000000;
    return ms > (uint64_t)most_ms ? most_ms : (int)ms;
}

void auth_conn_init(struct auth_conn *conn, int fd)
{
    *conn = (struct auth_conn){.fd = fd};
    weir_buf_init(&conn->received, WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

void auth_conn_close(struct auth_conn *conn)
{
    if (conn->fd >= 0) {
        (void)close(conn->fd);
    }
    weir_buf_fini(&conn->received);
    *conn = (struct auth_conn){.fd = -1};
}

void auth_conn_authenticate(struct auth_conn *conn, const struct mac_key *connection_key,
                            bool is_server)
{
    conn->key = *connection_key;
    conn->is_server = is_server;
    conn->is_authenticated = true;
}

static weir_status send_all(struct auth_conn *conn, const uint8_t *data, size_t len,
                            uint64_t deadline_ns)
{
    while (len > 0) {
        ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
            continue;
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            return WEIR_ERR_PEER;
        }
        struct pollfd poll_fd = {.fd = conn->fd, .events = POLLOUT};
        if (weir_mono_ns() >= deadline_ns) {
            return WEIR_ERR_TIMEOUT;
        }
        (void)poll(&poll_fd, 1, auth_conn_poll_ms(deadline_ns, INT_MAX));
    }
    return WEIR_OK;
}

weir_status auth_conn_send(struct auth_conn *conn, enum wire_type type, const void *body,
                           size_t len, uint64_t deadline_ns)
{
    uint8_t head[WIRE_HEADER_BYTES + WIRE_MAC_BYTES];
    size_t n_head = WIRE_HEADER_BYTES + (conn->is_authenticated ? WIRE_MAC_BYTES : 0);
    if (len > WIRE_MAX_PAYLOAD - WIRE_MAC_BYTES) {
        return WEIR_ERR_LIMIT;
    }
    wire_frame_header(type, len + n_head - WIRE_HEADER_BYTES, head);
    if (conn->is_authenticated) {
        mac_of_frame(&conn->key, conn->is_server, conn->n_sent++, type, body, len,
                     head + WIRE_HEADER_BYTES);
    }
    WEIR_TRY(send_all(conn, head, n_head, deadline_ns));
    return send_all(conn, body, len, deadline_ns);
}

/* Read until nothing is there; *out_is_closed when the other side is gone. */
static weir_status read_available(struct auth_conn *conn, bool *out_is_closed)
{
    char chunk[16384];
    *out_is_closed = false;
    for (;;) {
        ssize_t n = recv(conn->fd, chunk, sizeof chunk, 0);
        if (n > 0) {
            WEIR_TRY(weir_buf_append(&conn->received, chunk, (size_t)n));
            /* A peer that has not authenticated itself gets room for one hello. */
            if (!conn->is_authenticated &&
                conn->received.len > WIRE_HEADER_BYTES + WIRE_MAX_HELLO) {
                return WEIR_OK;
            }
            continue;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        *out_is_closed = n == 0 || errno != EAGAIN;
        return WEIR_OK;
    }
}

static weir_status check_mac(struct auth_conn *conn, struct wire_frame *frame)
{
    if (frame->len < WIRE_MAC_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    uint8_t expected[WIRE_MAC_BYTES];
    const uint8_t *mac = frame->payload;
    frame->payload += WIRE_MAC_BYTES;
    frame->len -= WIRE_MAC_BYTES;
    mac_of_frame(&conn->key, !conn->is_server, conn->n_received++, frame->type, frame->payload,
                 frame->len, expected);
    return mac_is_equal(mac, expected) ? WEIR_OK : WEIR_ERR_UNAUTH;
}

weir_status auth_conn_try_receive(struct auth_conn *conn, struct wire_frame *out)
{
    if (conn->fd < 0) {
        return WEIR_ERR_PEER;
    }
    weir_buf_consume(&conn->received, conn->n_parsed);
    conn->n_parsed = 0;
    bool is_closed = false;
    WEIR_TRY(read_available(conn, &is_closed));
    size_t limit = conn->is_authenticated ? (size_t)WIRE_MAX_PAYLOAD : (size_t)WIRE_MAX_HELLO;
    struct wire_frame frame;
    weir_status status = wire_frame_parse((const uint8_t *)conn->received.data, conn->received.len,
                                          limit, &frame, &conn->n_parsed);
    if (status == WEIR_ERR_END && is_closed) {
        return WEIR_ERR_PEER;
    }
    WEIR_TRY(status);
    if (conn->is_authenticated) {
        WEIR_TRY(check_mac(conn, &frame));
    }
    *out = frame;
    return WEIR_OK;
}

weir_status auth_conn_receive(struct auth_conn *conn, uint64_t deadline_ns, struct wire_frame *out)
{
    for (;;) {
        weir_status status = auth_conn_try_receive(conn, out);
        if (status != WEIR_ERR_END) {
            return status;
        }
        if (weir_mono_ns() >= deadline_ns) {
            return WEIR_ERR_TIMEOUT;
        }
        struct pollfd poll_fd = {.fd = conn->fd, .events = POLLIN};
        (void)poll(&poll_fd, 1, auth_conn_poll_ms(deadline_ns, INT_MAX));
    }
}
