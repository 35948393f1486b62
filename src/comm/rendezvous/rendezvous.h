/**
 * Rendezvous: the ranks of a job find rank 0, prove that they know the secret, and exchange what
 * they need to build a transport. A star of TCP connections around rank 0 that lives for some
 * milliseconds; after it the transports watch over each other themselves.
 *
 * Rank 0 refuses whoever cannot prove the secret, says why, and goes on waiting for the real rank.
 * The published file names the instance of rank 0 that wrote it: a file left by one that is gone is
 * recognised (nobody answers there, or somebody else does) and read again until the new one
 * appears.
 */
#ifndef WEIR_COMM_RENDEZVOUS_H
#define WEIR_COMM_RENDEZVOUS_H

#include "comm/comm.h"

struct rendezvous;

/** Bytes of one rank; they stay valid until the next exchange. */
struct rendezvous_blob {
    const uint8_t *data;
    size_t len;
};

/**
 * Meet all ranks (config is checked by the caller; size > 1).
 * @return TIMEOUT (who is missing), UNAUTH, INVALID (ranks disagree on job, size, servers), PEER,
 * IO, NOMEM.
 */
weir_status rendezvous_join(const struct weir_comm_config *config, uint64_t deadline_ns,
                            struct rendezvous **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Every rank gives its bytes and gets everybody's, out[0 .. size-1]. Collective.
 * @return PEER naming the rank that died, TIMEOUT, or what another rank aborted with.
 */
weir_status rendezvous_exchange(struct rendezvous *rdv, const void *bytes, size_t len,
                                struct rendezvous_blob out[],
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * From the next exchange on give out[0 .. n-1], the bytes of these ranks only, to the caller. Still
 * all ranks take part in each exchange.
 * @param ranks  Borrowed until narrowed anew; n = 0: all ranks again.
 */
void rendezvous_narrow(struct rendezvous *rdv, const int *ranks, int n);

/** Close; NULL is accepted. Ranks still exchanging see it as this rank's loss. */
void rendezvous_close(struct rendezvous *rdv);

#endif
