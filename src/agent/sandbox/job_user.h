/**
 * Users of jobs: numbers that no account has, given to jobs of this machine one each.
 *
 * A range begins at `base`: that number is the group of all tasks, the JOB_USER_COUNT - 1 behind it
 * are users. REGISTRY/NUMBER names the job that has one: the path of the job's folder, which holds the
 * file "user" with the number as long as the job has tasks here; so agents of one machine do not
 * give one number to two jobs, and a record that a killed agent left means nothing. A search begins
 * where the job's name says: on all nodes at the same number, so that a file system which they
 * share, and which knows no id-mapped mounts, shows the job's tasks the same owner (unless another
 * job has the number on one of them).
 */
#ifndef WEIR_AGENT_JOB_USER_H
#define WEIR_AGENT_JOB_USER_H

#include "base/status.h"

#include <sys/types.h>

#define JOB_USER_BASE     70000 /* free on Debian: below are systemd's, above subordinate ids */
#define JOB_USER_COUNT    4096
#define JOB_USER_REGISTRY "/run/weir-users"

/**
 * The job's user: the one it has, else a free one, noted in job_dir/user.
 * @param job_dir  A folder that is there.
 * @return LIMIT when all are taken; errors of the files.
 */
weir_status job_user_claim(const char *registry, uid_t base, const char *job_dir, uid_t *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** What a job of this user has as /dev/shm. */
void job_user_shm_dir(uid_t user, char out[64]);

/** Forget it, with its shared memory, System V objects and message queues: the job has no process
 *  here any more. */
void job_user_release(const char *registry, uid_t user);

/** The same for every user in the registry if its job is gone: an agent and its folder ended
 *  together. */
void job_user_sweep(const char *registry);

/** The number in job_dir/user; 0: none. */
uid_t job_user_of(const char *job_dir);

#endif
