/**
 * Rendezvous: the ranks of a job find rank 0, prove that they know the secret, and exchange what
 * they need to build a transport. It is a star of TCP connections around rank 0 that lives for some
 * milliseconds; later the transports themselves watch the ranks.
 *
 * Rank 0 refuses a peer that cannot prove the secret, with the reason, and goes on waiting for the
 * real rank. The published file names the instance of rank 0 that wrote it. A file that a previous
 * one left is recognised (nobody replies there, or another instance does), and is read again until
 * the new one appears.
 */
#ifndef WEIR_COMM_RENDEZVOUS_H
#define WEIR_COMM_RENDEZVOUS_H

#include "comm/comm.h"

struct rendezvous;

/** One rank's bytes; valid until the next exchange. */
struct rendezvous_blob {
    const uint8_t *data;
    size_t len;
};

/**
 * Meet all ranks. size > 1, and the caller has checked config.
 *
 * @return TIMEOUT naming the ranks that are missing; UNAUTH; INVALID (ranks disagree on job, size
 *         or servers); PEER; IO; NOMEM.
 */
weir_status rendezvous_join(const struct weir_comm_config *config, uint64_t deadline_ns,
                            struct rendezvous **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Give this rank's bytes and get all ranks', out[0 .. size-1]. Collective.
 *
 * @return PEER naming the rank that died; TIMEOUT; or what another rank aborted with.
 */
weir_status rendezvous_exchange(struct rendezvous *rdv, const void *bytes, size_t len,
                                struct rendezvous_blob out[],
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * From the next exchange on give the caller out[0 .. n-1], the bytes of these ranks only. All ranks
 * still take part in each exchange.
 *
 * @param ranks  Borrowed until the next call; n = 0: all ranks again.
 */
void rendezvous_narrow(struct rendezvous *rdv, const int *ranks, int n);

/** Close and free; NULL is accepted. Ranks that still exchange see the loss of this rank. */
void rendezvous_close(struct rendezvous *rdv);

#endif
