/**
 * Reception: a listening socket at which strangers prove that they belong to the job.
 *
 * Whoever connects gets a challenge and answers it with a JOIN (wire.h). Who cannot prove the
 * secret, or comes from another job or attempt, is refused with the reason; the others are judged
 * and let in by the owner's functions. Used by rank 0 while the ranks meet (rendezvous_server.c),
 * and by the leader of an elastic group as long as the group lives (door.c). One thread; nothing
 * here waits.
 */
#ifndef WEIR_COMM_RECEPTION_H
#define WEIR_COMM_RECEPTION_H

#include "comm/rendezvous/address.h"
#include "comm/rendezvous/link.h"

#include <poll.h>

enum {
    RECEPTION_MAX_PENDING =
        64, /**< Connections that have not proved themselves; the oldest goes. */
    RECEPTION_MAX_FDS = 1 + RECEPTION_MAX_PENDING,
};

struct reception_pending {
    struct link link;
    uint64_t deadline_ns;
    uint8_t nonce[WIRE_NONCE_BYTES];
};

struct reception {
    /* Set by the owner before open, all borrowed. */
    const struct address_rendezvous *where;
    const struct proof_key *key;
    const char *job_id;
    int attempt;
    void *context;
    /** May this one, who has proved the secret and the job, come in? The error is what it hears. */
    weir_status (*judge)(void *context, const struct wire_join *join, struct weir_error *err);
    /** It is in: the link, proved, is the callee's now. */
    void (*admit)(void *context, const struct wire_join *join, struct link *link);

    int listen_fd;
    bool is_published;
    uint8_t instance[WIRE_NONCE_BYTES];
    int n_refused, n_pending;
    struct reception_pending pending[RECEPTION_MAX_PENDING];
};

/** Listen, and publish the address if the rendezvous is a folder. Call close in any case. */
weir_status reception_open(struct reception *reception, struct weir_error *err) WEIR_MUST_CHECK;

/** Take in who has come, hear who has said something. */
void reception_serve(struct reception *reception);

/** What poll(2) should watch until the next serve. */
nfds_t reception_poll_fds(const struct reception *reception, struct pollfd out[RECEPTION_MAX_FDS]);

/** Take the published address away and close everything. */
void reception_close(struct reception *reception);

#endif
