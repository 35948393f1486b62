#include "comm/rendezvous/link.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

int link_poll_ms(uint64_t deadline_ns, int most_ms)
{
    uint64_t now = weir_mono_ns();
    if (now >= deadline_ns) {
        return 0;
    }
    uint64_t ms = (deadline_ns - now + 999999) / 1000000;
    return ms > (uint64_t)most_ms ? most_ms : (int)ms;
}

void link_init(struct link *link, int fd)
{
    *link = (struct link){.fd = fd};
    weir_buf_init(&link->received, WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

void link_close(struct link *link)
{
    if (link->fd >= 0) {
        (void)close(link->fd);
    }
    weir_buf_fini(&link->received);
    *link = (struct link){.fd = -1};
}

void link_prove(struct link *link, const struct proof_key *connection_key, bool is_server)
{
    link->key = *connection_key;
    link->is_server = is_server;
    link->is_proved = true;
}

static weir_status send_all(struct link *link, const uint8_t *data, size_t len,
                            uint64_t deadline_ns)
{
    while (len > 0) {
        ssize_t n = send(link->fd, data, len, MSG_NOSIGNAL);
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
        struct pollfd poll_fd = {.fd = link->fd, .events = POLLOUT};
        if (weir_mono_ns() >= deadline_ns) {
            return WEIR_ERR_TIMEOUT;
        }
        (void)poll(&poll_fd, 1, link_poll_ms(deadline_ns, INT_MAX));
    }
    return WEIR_OK;
}

weir_status link_send(struct link *link, enum wire_type type, const void *body, size_t len,
                      uint64_t deadline_ns)
{
    uint8_t head[WIRE_HEADER_BYTES + WIRE_MAC_BYTES];
    size_t n_head = WIRE_HEADER_BYTES + (link->is_proved ? WIRE_MAC_BYTES : 0);
    if (len > WIRE_MAX_PAYLOAD - WIRE_MAC_BYTES) {
        return WEIR_ERR_LIMIT;
    }
    wire_frame_header(type, len + n_head - WIRE_HEADER_BYTES, head);
    if (link->is_proved) {
        proof_of_frame(&link->key, link->is_server, link->n_sent++, type, body, len,
                       head + WIRE_HEADER_BYTES);
    }
    WEIR_TRY(send_all(link, head, n_head, deadline_ns));
    return send_all(link, body, len, deadline_ns);
}

/* Read until nothing is there; *out_is_closed when the other side is gone. */
static weir_status read_available(struct link *link, bool *out_is_closed)
{
    char chunk[16384];
    *out_is_closed = false;
    for (;;) {
        ssize_t n = recv(link->fd, chunk, sizeof chunk, 0);
        if (n > 0) {
            WEIR_TRY(weir_buf_append(&link->received, chunk, (size_t)n));
            /* A stranger may not make us keep more than one hello. */
            if (!link->is_proved && link->received.len > WIRE_HEADER_BYTES + WIRE_MAX_HELLO) {
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

static weir_status check_proof(struct link *link, struct wire_frame *frame)
{
    if (frame->len < WIRE_MAC_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    uint8_t expected[WIRE_MAC_BYTES];
    const uint8_t *mac = frame->payload;
    frame->payload += WIRE_MAC_BYTES;
    frame->len -= WIRE_MAC_BYTES;
    proof_of_frame(&link->key, !link->is_server, link->n_received++, frame->type, frame->payload,
                   frame->len, expected);
    return proof_is_equal(mac, expected) ? WEIR_OK : WEIR_ERR_UNAUTH;
}

weir_status link_try_receive(struct link *link, struct wire_frame *out)
{
    if (link->fd < 0) {
        return WEIR_ERR_PEER;
    }
    weir_buf_consume(&link->received, link->n_parsed);
    link->n_parsed = 0;
    bool is_closed = false;
    WEIR_TRY(read_available(link, &is_closed));
    size_t limit = link->is_proved ? (size_t)WIRE_MAX_PAYLOAD : (size_t)WIRE_MAX_HELLO;
    struct wire_frame frame;
    weir_status status = wire_frame_parse((const uint8_t *)link->received.data, link->received.len,
                                          limit, &frame, &link->n_parsed);
    if (status == WEIR_OK && link->is_proved) {
        status = check_proof(link, &frame);
    }
    if (status == WEIR_OK) {
        *out = frame;
    } else if (status == WEIR_ERR_END && is_closed) {
        status = WEIR_ERR_PEER;
    }
    return status;
}

weir_status link_receive(struct link *link, uint64_t deadline_ns, struct wire_frame *out)
{
    for (;;) {
        weir_status status = link_try_receive(link, out);
        if (status != WEIR_ERR_END) {
            return status;
        }
        if (weir_mono_ns() >= deadline_ns) {
            return WEIR_ERR_TIMEOUT;
        }
        struct pollfd poll_fd = {.fd = link->fd, .events = POLLIN};
        (void)poll(&poll_fd, 1, link_poll_ms(deadline_ns, INT_MAX));
    }
}
