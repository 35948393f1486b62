/**
 * Sandbox: what separates the tasks of one job on this node from all others.
 *
 * All tasks of a job on a node are one *user*: no other job and no account has its number, so
 * that they share files, shared memory and signals, and other jobs' are out of reach. Each task has
 * a mount namespace of its own, in which
 *
 *   - the state folder of the server and the agent's folder are empty but for what the task needs:
 *     its working directory, its job's folders (rendezvous, checkpoints, a replica's own), the
 *     datasets that the server has looked up for it (read only), the demo's folder likewise, and
 *     Weir's programs;
 *   - /tmp, /var/tmp and /dev/shm are the job's own, and vanish with it;
 *   - /proc shows only processes of the job.
 *
 * The user has no account on the machine; in the sandbox /etc/passwd has a line for it, "weir-task",
 * because some programs end if they find no name.
 *
 * On disk those folders stay root's: an id-mapped mount shows root's files to the task as its own,
 * and what the task writes is root's. Where a file system has no such mounts, a folder that the
 * job alone uses is given to its user, and one that others use too to a group of all tasks, which
 * may read it, or write in it (the demo's) with set-group-ID folders.
 *
 * From the rest of the machine the task sees programs, libraries and their settings (/usr, /etc, /opt
 * and the like), and the paths that its specification names, all as that user, under ordinary
 * permissions; every other folder of the root (/home, /srv, /var, /run, …) is empty. A folder that
 * the operator shares (weir agent --share DIR[:rw]) is mapped likewise: what belongs to the
 * folder's owner is the task's.
 *
 * The server says in "paths" what a task needs; this side decides what of it is let through
 * (sandbox_place): nothing of the state folder but the above, by whatever link (reach.h). Process numbers, System V objects and
 * message queues, and if it wants so the network, are the job's own (namespaces.h); system calls
 * are filtered (syscall_filter.h). Not separated: the processors' caches, what every user of the
 * machine may read, the kernel.
 *
 * Where the agent is not root, a sandbox is built in a user namespace, if the kernel lets users make
 * them: everything above but the user, which is the agent's for all jobs.
 */
#ifndef WEIR_AGENT_SANDBOX_H
#define WEIR_AGENT_SANDBOX_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SANDBOX_PATHS_MAX 257 /* shares: those of the operator, and the library's folder */

struct sandbox_path {
    const char *path; /**< Absolute. */
    bool is_writable;
    bool is_dir; /**< Found out by sandbox_enter, as root. */
};

/** The sandbox of one task; text lies in the arena it was read into. */
struct sandbox {
    uid_t user;            /**< Also its group; 0: there is no sandbox. */
    gid_t readers;         /**< Group of the tasks of all jobs. */
    bool is_alone;         /**< Namespaces of the job's own: namespaces.h. */
    const char *agent_dir; /**< Absolute, without links. */
    const char *job_dir;   /**< agent_dir/jobs/JOB: tmp/ lies there. */
    const char *shm_dir;   /**< What the job has as /dev/shm. */
    const char *ca_file;   /**< The agent's; NULL: none. */
    const char *service;   /**< The service that has this folder (job/service.h); NULL: none. */
    const char *state_dir; /**< The server's state folder, as the server calls it; NULL: unknown. */
    /** A folder of its project's caches that it may write into, where it lies; NULL: none. Set
     *  by the supervisor (code_cache.h). */
    const char *cache_dir;
    struct sandbox_path *shares;
    size_t n_shares;
    struct sandbox_path *paths; /**< What the server says that the task needs. */
    size_t n_paths;
    const char **folders; /**< "datasets/NAME": what of the state folder it may see that is not its
                               job's own, as the server says. */
    size_t n_folders;
    /** Folders in the state folder's replicas/, of jobs that are over: it takes them over. */
    const char **left;
    size_t n_left;
};

/** Read a task's "cell" (written by the agent), "state" and "paths" (by the server). A task
 *  without "cell" has none: user 0. INVALID names the key. */
weir_status sandbox_from_json(const json_t *task, struct weir_arena *arena, struct sandbox *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Where a path that a task needs lies. */
enum sandbox_place {
    SANDBOX_OUTSIDE, /**< Not in the state folder: ordinary permissions. */
    SANDBOX_OWN,     /**< A folder of the state folder that this job alone uses. */
    SANDBOX_COMMON,  /**< One that others use too. */
    SANDBOX_REFUSED, /**< Anything else in the state folder, or no absolute path without "..". */
};

/**
 * What is `path` to rank `rank` of job `job`? The sandbox's state folder, service and folders count.
 * Pure.
 * @param out_folder  For SANDBOX_OWN and SANDBOX_COMMON: the folder below the state folder that is to be
 *                    mapped ("checkpoints/JOB"), which may be a parent of `path`.
 */
enum sandbox_place sandbox_place(const struct sandbox *sandbox, const char *job, int64_t rank,
                                 const struct sandbox_path *path, struct weir_arena *arena,
                                 const char **out_folder);

/** Is `path` the folder `dir` or below it? Text alone. */
bool sandbox_is_below(const char *path, const char *dir);

/** What the agent gives its tasks of Weir's own files, in the sandbox: agent_dir/given/NAME. */
char *sandbox_given(const struct sandbox *sandbox, const char *name, struct weir_arena *arena);

#endif
