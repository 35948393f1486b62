/**
 * Namespaces of a job on this node: process numbers, System V and POSIX message queues and, if the
 * job wants none of the machine's, a network of its own.
 *
 * All tasks of a job on a node share them, because ranks of one host watch each other by process
 * number and map each other's descriptors; other jobs are out of sight. Process 1 of a job is an
 * *init* of ours, a copy of the supervisor that was first: it adopts and reaps orphans, cannot be
 * signalled by the job, and ends when no supervisor of the job is left. With it the kernel kills
 * whatever the job still has. The parent of a task is its supervisor all the same, so that exits
 * are seen and identities are those of the machine (agent.h).
 *
 * In JOB_DIR: init.lock, held while supervisors join and while the init decides to end; init.fifo,
 * which every supervisor keeps open to write and the init to read: its end is seen by both; init,
 * the init's number and start time.
 *
 * An agent that is not root makes a user namespace around them, in which its user is the same user
 * and may mount: for the sandbox (sandbox_enter.h).
 */
#ifndef WEIR_AGENT_NAMESPACES_H
#define WEIR_AGENT_NAMESPACES_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/** Descriptors of a job's namespaces; -1: none of this kind. */
struct namespaces {
    int user_fd, pid_fd, ipc_fd, net_fd;
    int hold_fd; /**< Keeps the init. */
    int inner_user_fd,
        mount_fd; /**< One task has these beside those of its job: namespaces_open_sandbox. */
};

/** No namespaces: a task is started in its supervisor's. */
#define NAMESPACES_NONE ((struct namespaces){-1, -1, -1, -1, -1, -1, -1})

/**
 * Join the job's namespaces, made if this is the first of its supervisors. Call it before the
 * process becomes a subreaper, which would make it the init's parent, and from one thread.
 * @param has_network  false: the job has a network of its own, without a way out (loopback alone).
 * @return IO with the step that failed.
 */
weir_status namespaces_join(const char *job_dir, bool has_network, struct namespaces *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Close all; the last supervisor's ends the init. */
void namespaces_leave(struct namespaces *ns);

/** Open those of process `pid` in which it is, and neither this process nor the job's others: its mounts, and
 *  the users of its own that an image may have. They are kept by it after the process has ended. False: errno. */
bool namespaces_open_sandbox(struct namespaces *ns, pid_t pid);

/** The same by descriptors of them (-1: not known), which are its own from here on. */
void namespaces_take_sandbox(struct namespaces *ns, int user_fd, int mount_fd);

/** Those of this very process. False: errno. */
bool namespaces_open_own(int *out_user_fd, int *out_mount_fd);

/**
 * Fork into them. The child is this process's own child, whatever namespaces it is in.
 * @return 0 in the child; its number here, or -1 and errno.
 */
pid_t namespaces_fork(const struct namespaces *ns);

/** Put this process into a new user namespace in which its user is itself, with all rights there.
 *  false, and errno: the kernel or its owner does not let users do so. */
bool namespaces_enter_user(void);

/** The same, with the user's name in it root's: for a program that asks for root. */
bool namespaces_enter_user_as_root(void);

#endif
