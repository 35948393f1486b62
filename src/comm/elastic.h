/**
 * elastic: groups that go on when a rank is lost, and accept new ranks while they run.
 *
 * A communicator that failed stays failed (comm.h). The ranks that are left make a new one:
 *
 *     struct weir_comm *comm;
 *     weir_comm_create(&config_with_is_elastic, &comm, err);
 *     for each step:
 *         all-reduce a few numbers, with rank 0's weir_comm_n_waiting among them
 *         if that is > 0: weir_comm_regroup(&comm, err), and go on
 *         compute, all-reduce
 *         on WEIR_ERR_PEER or _TIMEOUT: weir_comm_regroup(&comm, err), and repeat the step
 *
 *     and in a process that is started later:
 *     weir_comm_join(&config, &comm, err);
 *
 * Three nouns. A *member* is a process with a number that it keeps: its rank in the group that was
 * created, or the number that a joiner asks for. The *leader* is rank 0. It owns the *join
 * listener*: an address, published beside the rendezvous' file, where joiners wait and members meet
 * again. In a regroup every member connects to the join listener, and those that came are the new
 * group. The leader stays rank 0; the others follow in the order of their numbers, so that a group
 * that lost a member and accepted another with its number has its old order. A regroup takes some
 * ms.
 *
 * When the leader is lost, the surviving member with the lowest number opens a join listener; a
 * lock beside the file ensures that there are never two. That works with a rendezvous in a folder
 * ("file://"), on one host or on a file system with working locks. An address ("tcp://") belongs to
 * the first leader: without it there is no regroup. A leader that is frozen, not dead, keeps the
 * lock: the others' regroup ends with TIMEOUT.
 *
 * Which members are waited for: in shared memory those whose processes live. Between hosts all are
 * waited for up to the timeout, except the rank that was found to be at fault.
 *
 * The texts of the configuration are borrowed until the group's end (weir_comm_destroy).
 *
 * Not done here: the state of the members. Which step each had reached when the failure came, and
 * which know nothing yet, is for the caller to agree on over the new communicator. Parameter
 * servers (n_servers) are not supported in such groups.
 */
#ifndef WEIR_COMM_ELASTIC_H
#define WEIR_COMM_ELASTIC_H

#include "comm/comm.h"

/**
 * Join an elastic group that runs. It returns after the group's next regroup.
 *
 * @param config  As the group's, except: rank is the number to have (0 <= rank <
 *                WEIR_COMM_MAX_RANKS), which no living member may have; size is ignored. The
 *                deadline is join_timeout_ms.
 * @return END if the group has done its work and is gone; TIMEOUT if no group was found or it
 *         accepted nobody in time; else as weir_comm_create.
 */
weir_status weir_comm_join(const struct weir_comm_config *config, struct weir_comm **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Number of joiners at the join listener; 0 on other ranks than the leader. Call it once a step:
 * handshakes of joiners proceed here. Cost: a system call; some ms when a joiner has come.
 */
int weir_comm_n_waiting(struct weir_comm *comm);

/**
 * Give up *comm, failed or not, and meet the other members and the joiners in a new group.
 * Collective among all members that are left. The old communicator's memory is gone, and its queued
 * operations are cancelled. No other call may be running. The deadline is config.timeout_ms.
 *
 * @param comm  In/out. NULL on error.
 * @return INVALID if the group is not elastic; PEER if the leader is lost and no other member can
 *         take its place; TIMEOUT; otherwise as weir_comm_create.
 */
weir_status weir_comm_regroup(struct weir_comm **comm, struct weir_error *err) WEIR_MUST_CHECK;

/** Number of the member that has this rank; the rank itself if the group is not elastic. */
int weir_comm_member(const struct weir_comm *comm, int rank);

#endif
