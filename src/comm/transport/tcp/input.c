#include "comm/transport/tcp/tcp_private.h"

#include <endian.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

static bool is_notice(uint64_t tag)
{
    return (tag >> 24 & 0xff) == MESSAGE_NOTICE;
}

static void append_kept(struct tcp_kept *kept, struct tcp_kept ***end)
{
    kept->next = NULL;
    **end = kept;
    *end = &kept->next;
}

/* The first with this tag is taken out of the list; NULL. */
static struct tcp_kept *take_kept(struct tcp_kept **list, struct tcp_kept ***end, uint64_t tag,
                                  uint64_t mask)
{
    for (struct tcp_kept **at = list; *at != NULL; at = &(*at)->next) {
        struct tcp_kept *kept = *at;
        if ((kept->tag & mask) == (tag & mask)) {
            *at = kept->next;
            if (kept->next == NULL) {
                *end = at;
            }
            return kept;
        }
    }
    return NULL;
}

static struct message_request *take_receive(struct tcp_peer *peer, uint64_t tag)
{
    for (struct message_request **at = &peer->receives; *at != NULL; at = &(*at)->behind) {
        struct message_request *request = *at;
        if (request->tag == tag) {
            *at = request->behind;
            if (request->behind == NULL) {
                peer->receives_end = at;
            }
            return request;
        }
    }
    return NULL;
}

static void free_list(struct tcp_kept *kept)
{
    while (kept != NULL) {
        struct tcp_kept *next = kept->next;
        free(kept);
        kept = next;
    }
}

void tcp_drop_input(struct tcp *tcp, struct tcp_peer *peer)
{
    free_list(peer->kept);
    peer->kept = peer->keeping = NULL;
    peer->kept_end = &peer->kept;
    peer->receives = NULL;
    peer->receives_end = &peer->receives;
    peer->receive = NULL;
    peer->into = NULL;
    if (peer->rank + 1 == tcp->n_peers) {
        free_list(tcp->notices);
        tcp->notices = NULL;
        tcp->notices_end = &tcp->notices;
    }
}

/* ---- a message begins and ends -------------------------------------------------------------- */

static bool keep(struct tcp_peer *peer)
{
    struct tcp_kept *kept =
        peer->bytes <= SIZE_MAX - sizeof *kept ? malloc(sizeof *kept + peer->bytes) : NULL;
    if (kept == NULL) {
        /* A receive for what is behind would wait in vain. */
        for (struct message_request *i = peer->receives; i != NULL; i = i->behind) {
            i->outcome = MESSAGE_NOMEM;
        }
        peer->receives = NULL;
        peer->receives_end = &peer->receives;
        return false;
    }
    kept->tag = peer->tag;
    kept->bytes = peer->bytes;
    append_kept(kept, &peer->kept_end);
    peer->kept_bytes += peer->bytes;
    peer->keeping = kept;
    peer->into = kept->data;
    return true;
}

/* The header is here: where to with the payload? */
static void begin_message(struct tcp_peer *peer)
{
    peer->n_come = 0;
    peer->receive = NULL;
    peer->keeping = NULL;
    peer->into = NULL;
    peer->phase = TCP_IN_PAYLOAD;
    if (is_notice(peer->tag)) {
        peer->into = peer->bytes == sizeof peer->notice ? (uint8_t *)&peer->notice : NULL;
        return;
    }
    peer->receive = take_receive(peer, peer->tag);
    if (peer->receive != NULL) {
        if (peer->receive->bytes == peer->bytes) {
            peer->into = peer->receive->into;
        } else {
            peer->receive->outcome = MESSAGE_TRUNCATED;
            peer->receive = NULL;
        }
        return;
    }
    bool is_too_much =
        peer->bytes > TCP_KEPT_BYTES - WEIR_MIN(peer->kept_bytes, (size_t)TCP_KEPT_BYTES);
    if ((is_too_much && peer->receives == NULL) || !keep(peer)) {
        peer->phase = TCP_STALLED;
    }
}

static void take_notice(struct tcp *tcp, struct tcp_peer *peer)
{
    if (peer->into == NULL) {
        return;
    }
    if (tcp->notice_receive != NULL) {
        memcpy(tcp->notice_receive->into, &peer->notice, sizeof peer->notice);
        tcp->notice_receive->outcome = MESSAGE_DONE;
        tcp->notice_receive = NULL;
        return;
    }
    struct tcp_kept *kept = malloc(sizeof *kept + sizeof peer->notice);
    if (kept == NULL) {
        return; /* the end of the connection will have to do */
    }
    kept->tag = peer->tag;
    kept->bytes = sizeof peer->notice;
    memcpy(kept->data, &peer->notice, sizeof peer->notice);
    append_kept(kept, &tcp->notices_end);
}

static void end_message(struct tcp *tcp, struct tcp_peer *peer)
{
    if (peer->receive != NULL) {
        peer->receive->outcome = MESSAGE_DONE;
    }
    if (is_notice(peer->tag)) {
        take_notice(tcp, peer);
    }
    peer->receive = NULL;
    peer->keeping = NULL;
    peer->phase = TCP_IN_HEADER;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static size_t left_in(const struct tcp_peer *peer)
{
    return peer->input_end - peer->input_first;
}

static bool read_header(struct tcp_peer *peer)
{
    uint64_t header[2];
    if (left_in(peer) < TCP_HEADER_BYTES) {
        memmove(peer->input, peer->input + peer->input_first, left_in(peer));
        peer->input_end = left_in(peer);
        peer->input_first = 0;
        return false;
    }
    memcpy(header, peer->input + peer->input_first, sizeof header);
    peer->input_first += TCP_HEADER_BYTES;
    peer->tag = le64toh(header[0]);
    peer->bytes = (size_t)le64toh(header[1]);
    begin_message(peer);
    return true;
}

/* Deal with what was read. */
static void digest(struct tcp *tcp, struct tcp_peer *peer)
{
    for (;;) {
        if (peer->phase == TCP_IN_HEADER && !read_header(peer)) {
            return;
        }
        if (peer->phase == TCP_STALLED) {
            return;
        }
        size_t n = WEIR_MIN(left_in(peer), peer->bytes - peer->n_come);
        if (peer->into != NULL && n > 0) {
            memcpy(peer->into + peer->n_come, peer->input + peer->input_first, n);
        }
        peer->input_first += n;
        peer->n_come += n;
        if (peer->n_come < peer->bytes) {
            return;
        }
        end_message(tcp, peer);
    }
}

/* A payload is read to its place, and what follows it into `input`, by one call. */
static ssize_t read_into_place(struct tcp_peer *peer, size_t *out_direct)
{
    struct iovec parts[2];
    int n_parts = 0;
    *out_direct = 0;
    if (peer->phase == TCP_IN_PAYLOAD && peer->into != NULL) {
        *out_direct = peer->bytes - peer->n_come;
        parts[n_parts++] =
            (struct iovec){.iov_base = peer->into + peer->n_come, .iov_len = *out_direct};
    }
    if (left_in(peer) == 0) {
        peer->input_first = peer->input_end = 0;
    }
    parts[n_parts++] = (struct iovec){.iov_base = peer->input + peer->input_end,
                                      .iov_len = sizeof peer->input - peer->input_end};
    return readv(peer->fd, parts, n_parts);
}

bool tcp_read(struct message_state *state, struct tcp_peer *peer)
{
    size_t direct = 0;
    if (peer->phase == TCP_STALLED) {
        tcp_watch(state, peer, peer->events & ~(uint32_t)EPOLLIN);
        return false;
    }
    ssize_t n = read_into_place(peer, &direct);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            tcp_peer_broke(state, peer);
        }
        return n == 0;
    }
    size_t n_direct = WEIR_MIN((size_t)n, direct);
    peer->n_come += n_direct;
    peer->input_end += (size_t)n - n_direct;
    digest(tcp_of(state), peer);
    return true;
}

/* ---- receives ------------------------------------------------------------------------------- */

static enum message_outcome receive_notice(struct tcp *tcp, struct message_request *request)
{
    struct tcp_kept *kept = take_kept(&tcp->notices, &tcp->notices_end, 0, 0);
    if (kept == NULL) {
        tcp->notice_receive = request;
    } else {
        memcpy(request->into, kept->data, kept->bytes);
        free(kept);
        request->outcome = MESSAGE_DONE;
    }
    request->handle = request; /* tested, even if it is over */
    return MESSAGE_PENDING;
}

/* What came before its receive: all of it, or the beginning. */
static void hand_over(struct tcp_peer *peer, struct tcp_kept *kept, struct message_request *request)
{
    bool is_coming = kept == peer->keeping;
    size_t n = is_coming ? peer->n_come : kept->bytes;
    bool fits = kept->bytes == request->bytes;
    if (fits && n > 0) {
        memcpy(request->into, kept->data, n);
    }
    if (is_coming) {
        peer->keeping = NULL;
        peer->into = fits ? request->into : NULL;
        peer->receive = fits ? request : NULL;
    }
    request->outcome = !fits ? MESSAGE_TRUNCATED : is_coming ? MESSAGE_PENDING : MESSAGE_DONE;
    peer->kept_bytes -= kept->bytes;
    free(kept);
}

enum message_outcome tcp_receive(struct message_state *state, void *buf, uint64_t tag,
                                 uint64_t mask, struct message_request *request)
{
    struct tcp *tcp = tcp_of(state);
    request->tag = tag;
    request->into = buf;
    request->outcome = MESSAGE_PENDING;
    if (request->rank == MESSAGE_ANYBODY) {
        return receive_notice(tcp, request);
    }
    struct tcp_peer *peer = &tcp->peers[request->rank];
    struct tcp_kept *kept = take_kept(&peer->kept, &peer->kept_end, tag, mask);
    if (kept != NULL) {
        hand_over(peer, kept, request);
    } else {
        request->behind = NULL;
        *peer->receives_end = request;
        peer->receives_end = &request->behind;
    }
    if (peer->phase == TCP_STALLED && peer->fd >= 0) {
        begin_message(peer);
        digest(tcp, peer);
        if (peer->phase != TCP_STALLED) {
            tcp_watch(state, peer, peer->events | EPOLLIN);
        }
    }
    if (request->outcome == MESSAGE_PENDING) {
        request->handle = request;
    }
    return request->outcome;
}

void tcp_cancel(struct message_state *state, struct message_request *request)
{
    struct tcp *tcp = tcp_of(state);
    if (request->outcome != MESSAGE_PENDING) {
        return;
    }
    if (request == tcp->notice_receive) {
        tcp->notice_receive = NULL;
    } else if (request->rank != MESSAGE_ANYBODY) {
        struct tcp_peer *peer = &tcp->peers[request->rank];
        if (peer->receive == request) {
            peer->receive = NULL;
            peer->into = NULL;
        } else {
            (void)take_receive(peer, request->tag);
        }
    }
    request->outcome = MESSAGE_LOST;
}
