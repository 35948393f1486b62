/**
 * What rendezvous.c (exchange), rendezvous_server.c (rank 0), rendezvous_client.c and elastic
 * groups, whose members meet at a join listener instead (elastic.c), share.
 */
#ifndef WEIR_COMM_RENDEZVOUS_PRIVATE_H
#define WEIR_COMM_RENDEZVOUS_PRIVATE_H

#include "comm/rendezvous/address.h"
#include "comm/rendezvous/auth_conn.h"
#include "comm/rendezvous/rendezvous.h"

struct rendezvous {
    int rank, size, n_servers, attempt;
    const char *job_id; /**< Borrowed for rendezvous_join only. */
    const char *url;    /**< Ditto. */
    struct address_rendezvous where;
    struct mac_key key;
    uint64_t deadline_ns;
    const int *wanted; /**< rendezvous_narrow */
    int n_wanted;
    struct weir_buf table;                       /**< What the last exchange gave. */
    struct auth_conn conns[WEIR_COMM_MAX_RANKS]; /**< Rank 0: one per other rank; others: [0]. */
};

/** A rendezvous that has no connections yet. @return INVALID, NOMEM, UNAVAILABLE. */
weir_status rendezvous_make(const struct weir_comm_config *config, uint64_t deadline_ns,
                            struct rendezvous **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Rank 0: listen, publish, accept size - 1 ranks, remove the published file. */
weir_status rendezvous_serve(struct rendezvous *rdv, struct weir_error *err) WEIR_MUST_CHECK;

/** Other ranks: find rank 0 and be accepted. */
weir_status rendezvous_connect(struct rendezvous *rdv, struct weir_error *err) WEIR_MUST_CHECK;

/** Try that once. *out_is_final: another try cannot help (it is never set back to false). */
weir_status rendezvous_try(struct rendezvous *rdv, bool *out_is_final,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Rank 0: send every rank that has joined the reason of the failure. Best effort. */
void rendezvous_abort(struct rendezvous *rdv, weir_status status, int rank, const char *text);

#endif
