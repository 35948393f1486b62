/**
 * Handshake listener: a listening socket at which peers authenticate themselves.
 *
 * A peer that connects gets a challenge and replies with a JOIN (wire.h). A peer that does not
 * prove that it knows the secret, or that comes from another job or attempt, is refused with the
 * reason. The owner's callbacks check and accept the others. Rank 0 uses it while the ranks meet
 * (rendezvous_server.c), and the leader of an elastic group as long as the group lives
 * (elastic/join_listener.c). One thread; nothing here waits.
 */
#ifndef WEIR_COMM_HANDSHAKE_LISTENER_H
#define WEIR_COMM_HANDSHAKE_LISTENER_H

#include "comm/rendezvous/address.h"
#include "comm/rendezvous/auth_conn.h"

#include <poll.h>

enum {
    HANDSHAKE_MAX_PENDING = 64, /**< Unauthenticated; beyond it the oldest is dropped. */
    HANDSHAKE_MAX_FDS = 1 + HANDSHAKE_MAX_PENDING,
};

/** A connection whose peer has not authenticated itself yet. */
struct handshake_pending {
    struct auth_conn conn;
    uint64_t deadline_ns;
    uint8_t nonce[WIRE_NONCE_BYTES];
};

struct handshake_listener {
    /* Set by the owner before open, all borrowed. */
    const struct address_rendezvous *where;
    const struct mac_key *key;
    const char *job_id;
    int attempt;
    void *context;
    /** May this authenticated peer of the job come in? If not, *err is the reason that it gets. */
    weir_status (*check)(void *context, const struct wire_join *join, struct weir_error *err);
    /** It is in: the authenticated connection is the callee's now. */
    void (*accept)(void *context, const struct wire_join *join, struct auth_conn *conn);

    int listen_fd;
    bool is_published;
    uint8_t instance[WIRE_NONCE_BYTES];
    int n_refused, n_pending;
    struct handshake_pending pending[HANDSHAKE_MAX_PENDING];
};

/** Listen, and publish the address if the rendezvous is a folder. Call close in any case. */
weir_status handshake_listener_open(struct handshake_listener *listener,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Accept new connections, read what peers have sent, drop those that are late. */
void handshake_listener_serve(struct handshake_listener *listener);

/** What poll(2) should watch until the next serve. */
nfds_t handshake_listener_poll_fds(const struct handshake_listener *listener,
                                   struct pollfd out[HANDSHAKE_MAX_FDS]);

/** Remove the published address and close everything. */
void handshake_listener_close(struct handshake_listener *listener);

#endif
