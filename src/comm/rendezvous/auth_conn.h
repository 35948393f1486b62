/**
 * Authenticated connection: one TCP connection of the rendezvous, with frames in both directions,
 * never past a deadline.
 *
 * Before the handshake frames are bare (is_authenticated is false). After auth_conn_authenticate
 * every frame carries a MAC, which is checked before its content is used. It belongs to one thread.
 */
#ifndef WEIR_COMM_AUTH_CONN_H
#define WEIR_COMM_AUTH_CONN_H

#include "base/buf.h"
#include "comm/rendezvous/mac.h"

struct auth_conn {
    int fd; /**< Non-blocking; -1: closed. */
    struct weir_buf received;
    size_t n_parsed; /**< Bytes of `received` that the last frame used; dropped at the next call. */
    struct mac_key key;
    uint64_t n_sent, n_received;
    bool is_authenticated, is_server;
};

/** Take over a connected descriptor and make it non-blocking; -1 gives a closed connection. */
void auth_conn_init(struct auth_conn *conn, int fd);
void auth_conn_close(struct auth_conn *conn);

/** From now on every frame carries a MAC with this connection's key. */
void auth_conn_authenticate(struct auth_conn *conn, const struct mac_key *connection_key,
                            bool is_server);

/** Send a frame. @return TIMEOUT, PEER (connection lost), LIMIT (payload too long). */
weir_status auth_conn_send(struct auth_conn *conn, enum wire_type type, const void *body,
                           size_t len, uint64_t deadline_ns) WEIR_MUST_CHECK;

/**
 * Take what has arrived. out's payload (without its MAC) stays valid until the next call.
 * @return WEIR_ERR_END if no frame is complete yet; PEER if the connection is lost; UNAUTH if the
 *         MAC is wrong; CORRUPT; LIMIT.
 */
weir_status auth_conn_try_receive(struct auth_conn *conn, struct wire_frame *out) WEIR_MUST_CHECK;

/** Wait for a frame. @return as auth_conn_try_receive, with TIMEOUT in place of END. */
weir_status auth_conn_receive(struct auth_conn *conn, uint64_t deadline_ns,
                              struct wire_frame *out) WEIR_MUST_CHECK;

/** What poll(2) takes: milliseconds until the deadline, rounded up, at most `most_ms`. */
int auth_conn_poll_ms(uint64_t deadline_ns, int most_ms);

#endif
