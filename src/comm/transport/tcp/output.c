#include "comm/transport/tcp/tcp_private.h"

#include "base/clock.h"

#include <endian.h>
#include <errno.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { ACKNOWLEDGED_MS = 1 /**< Between looks whether what was sent has arrived. */ };

/* A notice without a waiting thread: it has its own memory, freed when it is sent. */
struct aside {
    struct message_request request;
    struct message_notice notice;
};

static void enqueue(struct tcp_peer *peer, struct message_request *request)
{
    request->behind = NULL;
    *peer->sends_end = request;
    peer->sends_end = &request->behind;
}

static void dequeue(struct tcp_peer *peer)
{
    struct message_request *first = peer->sends;
    peer->sends = first->behind;
    if (peer->sends == NULL) {
        peer->sends_end = &peer->sends;
    }
    peer->n_sent = 0;
    first->outcome = MESSAGE_DONE;
    if (first->rank == MESSAGE_ANYBODY) {
        free(first); /* an aside */
    }
}

void tcp_drop_output(struct tcp_peer *peer)
{
    while (peer->sends != NULL) {
        struct message_request *first = peer->sends;
        bool is_aside = first->rank == MESSAGE_ANYBODY;
        dequeue(peer);
        if (!is_aside) {
            first->outcome = MESSAGE_LOST;
        }
    }
}

/* Sending failed. What the other side sent before it went may tell why. */
static void become_mute(struct message_state *state, struct tcp_peer *peer)
{
    peer->is_mute = true;
    tcp_drop_output(peer);
    while (peer->fd >= 0 && tcp_read(state, peer)) {
    }
    message_peer_broke(state, peer->rank);
}

/* The rest of the first in the queue. False if the socket is full or broken. */
static bool write_first(struct message_state *state, struct tcp_peer *peer)
{
    const struct message_request *first = peer->sends;
    uint64_t header[2] = {htole64(first->tag), htole64((uint64_t)first->bytes)};
    struct iovec parts[2];
    struct msghdr message = {.msg_iov = parts};
    if (peer->n_sent < TCP_HEADER_BYTES) {
        parts[message.msg_iovlen++] = (struct iovec){.iov_base = (uint8_t *)header + peer->n_sent,
                                                     .iov_len = TCP_HEADER_BYTES - peer->n_sent};
    }
    size_t done = peer->n_sent < TCP_HEADER_BYTES ? 0 : peer->n_sent - TCP_HEADER_BYTES;
    if (done < first->bytes) {
        /* sendmsg does not write to it. */
        parts[message.msg_iovlen++] = (struct iovec){
            .iov_base = (void *)(uintptr_t)(first->from + done), .iov_len = first->bytes - done};
    }
    ssize_t n = sendmsg(peer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
            become_mute(state, peer);
        }
        return false;
    }
    peer->n_sent += (size_t)n;
    if (peer->n_sent < TCP_HEADER_BYTES + first->bytes) {
        return true;
    }
    dequeue(peer);
    return true;
}

bool tcp_write(struct message_state *state, struct tcp_peer *peer)
{
    bool has_written = false;
    while (peer->fd >= 0 && peer->sends != NULL && write_first(state, peer)) {
        has_written = true;
    }
    if (peer->fd >= 0) {
        uint32_t others = peer->events & ~(uint32_t)EPOLLOUT;
        tcp_watch(state, peer, peer->sends != NULL ? others | EPOLLOUT : others);
    }
    return has_written;
}

enum message_outcome tcp_send(struct message_state *state, const void *buf, uint64_t tag,
                              struct message_request *request)
{
    struct tcp_peer *peer = &tcp_of(state)->peers[request->rank];
    if (peer->fd < 0 || peer->is_mute) {
        return MESSAGE_LOST;
    }
    bool is_first = peer->sends == NULL;
    request->tag = tag;
    request->from = buf;
    request->outcome = MESSAGE_PENDING;
    enqueue(peer, request);
    if (is_first) {
        (void)tcp_write(state, peer);
    }
    if (request->outcome == MESSAGE_PENDING) {
        request->handle = request;
    }
    return request->outcome;
}

void tcp_send_aside(struct message_state *state, int rank, const struct message_notice *notice,
                    uint64_t tag)
{
    struct tcp_peer *peer = &tcp_of(state)->peers[rank];
    struct aside *aside = peer->fd < 0 || peer->is_mute ? NULL : calloc(1, sizeof *aside);
    if (aside == NULL) {
        return;
    }
    aside->notice = *notice;
    aside->request = (struct message_request){.rank = MESSAGE_ANYBODY,
                                              .bytes = sizeof aside->notice,
                                              .tag = tag,
                                              .from = (const uint8_t *)&aside->notice};
    bool is_first = peer->sends == NULL;
    enqueue(peer, &aside->request);
    if (is_first) {
        (void)tcp_write(state, peer);
    }
}

/* A socket that is closed with something unread drops what it has not sent. */
static bool has_unsent(const struct tcp_peer *peer)
{
    int n_bytes = 0;
    return peer->fd >= 0 &&
           (peer->sends != NULL || (ioctl(peer->fd, SIOCOUTQ, &n_bytes) == 0 && n_bytes > 0));
}

void tcp_broadcast(struct message_state *state, const struct message_notice *notice, uint64_t tag,
                   int except, uint64_t deadline_ns)
{
    struct tcp *tcp = tcp_of(state);
    unsigned n_idle = 0;
    for (int r = 0; r < tcp->n_peers; r++) {
        if (r != except && state->peers[r].is_connected && !state->peers[r].is_broken) {
            tcp_send_aside(state, r, notice, tag);
        }
    }
    for (int r = 0; r < tcp->n_peers; r++) {
        while (r != except && has_unsent(&tcp->peers[r]) && weir_mono_ns() < deadline_ns) {
            uint64_t soon_ns = weir_mono_ns() + ACKNOWLEDGED_MS * UINT64_C(1000000);
            message_progress_or_sleep(state, WEIR_MIN(soon_ns, deadline_ns), &n_idle);
        }
    }
}
