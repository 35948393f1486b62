/**
 * Door: where the members of an elastic group meet again, and newcomers wait (elastic.h).
 *
 * The leader keeps it from the group's creation to its end. The address is published in a file
 * beside the rendezvous' own ("….door"); the lock "….door.lock" is held as long as the door is
 * open, and falls with the process. A rendezvous by address has neither: who listens there leads.
 * When the group's work is done the file says so, for those who come too late.
 */
#ifndef WEIR_COMM_DOOR_H
#define WEIR_COMM_DOOR_H

#include "comm/comm.h"
#include "comm/rendezvous/reception.h"

/** One who has proved itself and waits. */
struct door_guest {
    int member;
    struct link link;
};

struct door {
    struct reception reception;
    struct address_rendezvous where;
    struct proof_key key;
    char job_id[WIRE_JOB_ID_BYTES];
    int lock_fd; /**< -1: none. */
    int n_guests;
    struct door_guest guests[WEIR_COMM_MAX_RANKS]; /**< By member number. */
};

/** The door's place, from the rendezvous' own. */
weir_status door_place(const struct address_rendezvous *where, struct address_rendezvous *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Lock, listen, publish.
 * @param place  As door_place gives it.
 * @return CONFLICT if another process has it open; IO, NOMEM.
 */
weir_status door_open(const struct address_rendezvous *place, const struct proof_key *key,
                      const char *job_id, int attempt, struct door **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Take in who has come, drop who has gone. Does not wait. */
void door_look(struct door *door);

/** Does this member wait at the door? */
bool door_has(const struct door *door, int member);

/** Sleep until something happens at the door, or to one of these. */
void door_wait(struct door *door, const int fds[], int n_fds, uint64_t deadline_ns);

/** Send everybody away; is_over: because the work is done, which the file will say. NULL: nothing.
 */
void door_close(struct door *door, bool is_over);

#endif
