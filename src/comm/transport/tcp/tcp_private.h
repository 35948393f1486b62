/**
 * The fabric of sockets: one TCP connection per pair of ranks, for hosts without RDMA.
 *
 *     message = tag (8 bytes), length (8 bytes), payload; little-endian
 *
 * Payload goes from the sender's memory to the socket, and from the socket to the receiver's
 * memory, without a copy in between. For that, receives are posted ahead. A message that comes
 * before its receive is kept, up to TCP_KEPT_BYTES per rank. Beyond that the connection is not read
 * until a receive from that rank is posted, and TCP makes the sender wait. While a receive is
 * posted more is kept: the awaited message may be behind.
 *
 * Nothing is read between calls. Messages then wait in the kernel: waking a thread to keep them
 * would cost more than it gains.
 *
 * Both ranks of a connection have authenticated each other with the job's secret (connect.c); after
 * that bytes are sent as they are.
 */
#ifndef WEIR_COMM_TCP_PRIVATE_H
#define WEIR_COMM_TCP_PRIVATE_H

#include "comm/transport/message/message_private.h"

enum {
    TCP_KEPT_BYTES = 8 << 20,
    TCP_INPUT_BYTES = 8 << 10, /**< Read along with a payload: the next headers, small messages. */
    TCP_HEADER_BYTES = 16,
};

/** A message that came before its receive, or is coming. */
struct tcp_kept {
    struct tcp_kept *next;
    uint64_t tag;
    size_t bytes;
    uint8_t data[];
};

/** The part of a message to which the incoming bytes belong. */
enum tcp_phase {
    TCP_IN_HEADER,
    TCP_IN_PAYLOAD,
    TCP_STALLED, /**< The header is read; no receive for the payload yet, and enough is kept. */
};

struct tcp_peer {
    int fd; /**< -1: own rank, or closed. */
    int rank;
    uint32_t events; /**< Watched for. */
    bool is_mute;    /**< Sending failed: what it sent before is still to be read. */

    struct message_request *sends,
        **sends_end; /**< Not in the socket yet; the first perhaps partly. */
    size_t n_sent;   /**< Of the first, its header included. */

    struct message_request *receives, **receives_end; /**< Receives that wait for their message. */
    struct tcp_kept *kept, **kept_end;                /**< Complete, but the last while it comes. */
    size_t kept_bytes;

    enum tcp_phase phase;
    uint64_t tag;
    size_t bytes, n_come;            /**< Of the payload. */
    uint8_t *into;                   /**< NULL: discarded. */
    struct message_request *receive; /**< Its receive; or */
    struct tcp_kept *keeping;        /**< kept. */
    struct message_notice notice;    /**< Notices are small and come in between. */
    size_t input_first, input_end;
    uint8_t input[TCP_INPUT_BYTES];
};

struct tcp {
    int epoll_fd, wake_fd;
    struct message_request *notice_receive;  /**< NULL: none is posted. */
    struct tcp_kept *notices, **notices_end; /**< Not received yet. */
    int n_peers;
    struct tcp_peer peers[];
};

static inline struct tcp *tcp_of(const struct message_state *state)
{
    return state->fabric_state;
}

/** connect.c: connect all ranks; the descriptors are non-blocking and watched. */
weir_status tcp_connect(struct message_state *state, struct rendezvous *rdv,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Watch a peer's descriptor for these events (EPOLLIN, EPOLLOUT); 0: for none. */
void tcp_watch(struct message_state *state, struct tcp_peer *peer, uint32_t events);

/** The connection is gone: pending messages are lost. */
void tcp_peer_broke(struct message_state *state, struct tcp_peer *peer);

/* ---- input.c, output.c ---------------------------------------------------------------------- */

/** Read what has arrived, at most about one message. @return Whether anything happened. */
bool tcp_read(struct message_state *state, struct tcp_peer *peer);

/** message_fabric.receive, .cancel */
enum message_outcome tcp_receive(struct message_state *state, void *buf, uint64_t tag,
                                 uint64_t mask, struct message_request *request);
void tcp_cancel(struct message_state *state, struct message_request *request);

/** Free kept messages. */
void tcp_drop_input(struct tcp *tcp, struct tcp_peer *peer);

/** Write what the socket takes. @return Whether anything happened. */
bool tcp_write(struct message_state *state, struct tcp_peer *peer);

/** message_fabric.send, .send_aside, .broadcast */
enum message_outcome tcp_send(struct message_state *state, const void *buf, uint64_t tag,
                              struct message_request *request);
void tcp_send_aside(struct message_state *state, int rank, const struct message_notice *notice,
                    uint64_t tag);
void tcp_broadcast(struct message_state *state, const struct message_notice *notice, uint64_t tag,
                   int except, uint64_t deadline_ns);

/** Remove queued messages. */
void tcp_drop_output(struct tcp_peer *peer);

#endif
