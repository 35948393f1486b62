/**
 * Door: where the members of an elastic group meet again, and newcomers wait (elastic.h).
 *
 * The leader keeps it from the group's creation to its end. The address is published in a file
 * beside the rendezvous' own ("….door"); the lock "….door.lock" is held as long as the door is
 * open, and falls with the process. A rendezvous by address has neither: who listens there leads.
 * When the group's work is done the file says so, for those who come too late.
 */
#ifndef WEIR_COMM_JOIN_LISTENER_H
#define WEIR_COMM_JOIN_LISTENER_H

#include "comm/comm.h"
#include "comm/rendezvous/handshake_listener.h"

/** One who has proved itself and waits. */
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
    struct joiner joiners[WEIR_COMM_MAX_RANKS]; /**< By member number. */
};

/** The door's place, from the rendezvous' own. */
weir_status join_listener_address(const struct address_rendezvous *where,
                                  struct address_rendezvous *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Lock, listen, publish.
 * @param place  As join_listener_address gives it.
 * @return CONFLICT if another process has it open; IO, NOMEM.
 */
weir_status join_listener_open(const struct address_rendezvous *place, const struct mac_key *key,
                               const char *job_id, int attempt, struct join_listener **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Take in who has come, drop who has gone. Does not wait. */
void join_listener_poll(struct join_listener *listener);

/** Does this member wait at the door? */
bool join_listener_has(const struct join_listener *listener, int member);

/** Sleep until something happens at the door, or to one of these. */
void join_listener_wait(struct join_listener *listener, const int fds[], int n_fds,
                        uint64_t deadline_ns);

/** Send everybody away; is_over: because the work is done, which the file will say. NULL: nothing.
 */
void join_listener_close(struct join_listener *listener, bool is_over);

#endif
