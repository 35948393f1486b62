/**
 * Reception: a listening socket at which strangers prove that they belong to the job.
 *
 * Whoever connects gets a challenge and answers it with a JOIN (wire.h). Who cannot prove the
 * secret, or comes from another job or attempt, is refused with the reason; the others are judged
 * and let in by the owner's functions. Used by rank 0 while the ranks meet (rendezvous_server.c),
 * and by the leader of an elastic group as long as the group lives (door.c). One thread; nothing
 * here waits.
 */
#ifndef WEIR_COMM_HANDSHAKE_LISTENER_H
#define WEIR_COMM_HANDSHAKE_LISTENER_H

#include "comm/rendezvous/address.h"
#include "comm/rendezvous/auth_conn.h"

#include <poll.h>

enum {
    HANDSHAKE_MAX_PENDING =
        64, /**< Connections that have not proved themselves; the oldest goes. */
    HANDSHAKE_MAX_FDS = 1 + HANDSHAKE_MAX_PENDING,
};

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
    /** May this one, who has proved the secret and the job, come in? The error is what it hears. */
    weir_status (*check)(void *context, const struct wire_join *join, struct weir_error *err);
    /** It is in: the link, proved, is the callee's now. */
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

/** Take in who has come, hear who has said something. */
void handshake_listener_serve(struct handshake_listener *listener);

/** What poll(2) should watch until the next serve. */
nfds_t handshake_listener_poll_fds(const struct handshake_listener *listener,
                                   struct pollfd out[HANDSHAKE_MAX_FDS]);

/** Take the published address away and close everything. */
void handshake_listener_close(struct handshake_listener *listener);

#endif
