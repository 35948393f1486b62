/**
 * Join listener: where the members of an elastic group meet again, and joiners wait (elastic.h).
 *
 * The leader owns it from the group's creation to its end. Its address is published in a file
 * beside the rendezvous' own ("….join"). The lock "….join.lock" is held while the listener is open,
 * and is released when the process ends. A rendezvous by address has neither: the process that
 * listens there leads. When the group's work is done the file says so, for joiners that come too
 * late. One thread.
 */
#ifndef WEIR_COMM_JOIN_LISTENER_H
#define WEIR_COMM_JOIN_LISTENER_H

#include "comm/comm.h"
#include "comm/rendezvous/handshake_listener.h"

/** A joiner, or a member that is back, with an authenticated connection. */
struct joiner {
    int member;
    struct auth_conn conn;
};

struct join_listener {
    struct handshake_listener handshakes;
    struct address_rendezvous where;
    struct mac_key key;
    char job_id[WIRE_JOB_ID_BYTES];
    int lock_fd; /**< -1: none. */
    int n_joiners;
    struct joiner joiners[WEIR_COMM_MAX_RANKS]; /**< In the order of member numbers. */
};

/** The listener's address or file, from the rendezvous' own. @return INVALID if the path is too
 *  long. */
weir_status join_listener_address(const struct address_rendezvous *where,
                                  struct address_rendezvous *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Lock, listen, publish.
 *
 * @param place  From join_listener_address; copied, as the key and the job's id.
 * @return CONFLICT if another process has it open; IO; NOMEM.
 */
weir_status join_listener_open(const struct address_rendezvous *place, const struct mac_key *key,
                               const char *job_id, int attempt, struct join_listener **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Accept new joiners, drop those whose connection is gone. It does not wait. */
void join_listener_poll(struct join_listener *listener);

/** Does this member wait at the listener? */
bool join_listener_has(const struct join_listener *listener, int member);

/** Sleep until something happens at the listener or on one of these descriptors. */
void join_listener_wait(struct join_listener *listener, const int fds[], int n_fds,
                        uint64_t deadline_ns);

/** Close all connections and free it. is_over: the group's work is done, which waiting joiners and
 *  the file are told. NULL is accepted. */
void join_listener_close(struct join_listener *listener, bool is_over);

#endif
