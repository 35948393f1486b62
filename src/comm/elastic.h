/**
 * elastic: groups that go on when a rank is lost, and take in others while they run.
 *
 * A communicator that failed stays failed (comm.h). Those who are left make a new one:
 *
 *     struct weir_comm *comm;      weir_comm_create(&config_with_is_elastic, &comm, err);
 *     for each step:
 *         all-reduce a few numbers, rank 0's weir_comm_n_waiting among them
 *         if that is > 0:                                weir_comm_regroup(&comm, err);  continue
 *         compute, all-reduce;  on WEIR_ERR_PEER or _TIMEOUT: weir_comm_regroup(&comm, err);  again
 *
 *     and in a process started later:  weir_comm_join(&config, &comm, err);
 *
 * Three nouns. A *member* is a process with a number that it keeps: its rank in the group that was
 * created, or the rank that a newcomer asks for. The *leader* is rank 0. It keeps the *door*: an
 * address, published beside the rendezvous' file, where newcomers wait and where members meet
 * again. A regroup costs some ms: everybody comes to the door, and those who came are the new
 * group. The leader stays rank 0, the others follow in the order of their numbers, so a group that
 * lost a member and took in another with its number has its old order.
 *
 * When the leader is lost, the surviving member with the lowest number opens a door; a lock beside
 * the file sees to it that there are never two. That is so with a rendezvous in a folder
 * ("file://") on one host or a file system with working locks. An address ("tcp://") belongs to the
 * first leader: without it there is no regroup. A leader that is frozen, not dead, keeps the lock:
 * the others' regroup ends with TIMEOUT.
 *
 * Who is waited for: shared memory knows which processes live, and waits for these alone; between
 * hosts everybody is waited for, up to the timeout, but the rank that was found to be at fault.
 *
 * The texts of the configuration are borrowed until the group's end (weir_comm_destroy).
 *
 * What this does not do: say what the members know. Who was where when the failure came, and who
 * knows nothing yet, is for the caller to agree on over the new communicator. Parameter servers
 * (n_servers) are not supported in such groups.
 */
#ifndef WEIR_COMM_ELASTIC_H
#define WEIR_COMM_ELASTIC_H

#include "comm/comm.h"

/**
 * Become a member of an elastic group that runs. Returns after the group's next regroup.
 * @param config  As the group's; rank is the number to have (0 <= rank < WEIR_COMM_MAX_RANKS),
 * which no living member may have; size is not looked at. Deadline: join_timeout_ms.
 * @return END if the group has done its work and is no more; TIMEOUT if none was found or it took
 *         nobody in; else as weir_comm_create.
 */
weir_status weir_comm_join(const struct weir_comm_config *config, struct weir_comm **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Leader: newcomers at the door. Others: 0. Call it once a step: newcomers prove themselves here.
 * Cost: a system call; some ms when somebody has come.
 */
int weir_comm_n_waiting(struct weir_comm *comm);

/**
 * Give up *comm, failed or not, and meet the other members and the newcomers in a new group.
 * Collective among all members that are left. The old communicator's memory is gone; posted
 * operations are cancelled. No other call may be running.
 * @param comm  In/out. NULL on error.
 * @return INVALID if the group is not elastic; PEER if the leader is lost and nobody can take its
 *         place; TIMEOUT; otherwise as weir_comm_create. Deadline: config.timeout_ms.
 */
weir_status weir_comm_regroup(struct weir_comm **comm, struct weir_error *err) WEIR_MUST_CHECK;

/** Number of the member that has this rank; the rank itself if the group is not elastic. */
int weir_comm_member(const struct weir_comm *comm, int rank);

#endif
