/** Build the sandbox (sandbox.h) of a task around the process that will be the task. */
#ifndef WEIR_AGENT_SANDBOX_ENTER_H
#define WEIR_AGENT_SANDBOX_ENTER_H

#include "agent/task.h"

/** What can be built on this machine, and by this process. */
struct sandbox_probe {
    bool is_root;
    bool has_mounts;     /**< Mount namespaces: folders hidden; as root: a user of its own. Not as
                              root they are in a user namespace. */
    bool has_idmap;      /**< Id-mapped mounts of `dir`'s file system. */
    bool has_disk_quota; /**< `dir`'s file system has them (disk_quota.h). */
    bool has_namespaces; /**< PID, IPC and network namespaces, with a /proc of their own. */
};

/** Try it, in a child. Any process; a few milliseconds. `dir`: any folder that is there. */
void sandbox_probe(const char *dir, struct sandbox_probe *out);

/** Mount a /proc of this process's PID namespace in its mount namespace, which shows a user's own
 *  processes alone. */
bool sandbox_mount_proc(void) WEIR_MUST_CHECK;

/**
 * What separates tasks here, for the node's record and `weir doctor`: {"user", "mounts", "idmap",
 * "namespaces": of PID, IPC and network, "seccomp", "no_new_privs", "capabilities": "none"|"the agent's", "cgroup_cpu", "cgroup_memory",
 * "cgroup_pids", "cgroup_cpuset", "cgroup_io": "v2"|"v1"|"none", "images": "crun"|"none", "disk": "quota"|"measured",
 * "own_memory_bytes": what all tasks may have together by the agent's own group|null, "missing": [text]}. A new reference. `is_isolating`: --isolation
 * is not "none".
 */
json_t *weir_isolation_record(bool is_isolating, const struct weir_isolation *groups,
                              const struct sandbox_probe *probe);

#define SANDBOX_KEPT_MAX 4

/** What is seen in a sandbox. */
struct sandbox_view {
    const char *kept[SANDBOX_KEPT_MAX]; /**< Folders to keep as they are, to be written by root. */
    size_t n_kept;
    /** Out: what else is mounted for the task, beside /dev, /proc and the job's /tmp. In the
     *  arena. */
    struct sandbox_path *shown;
    size_t n_shown;
};

/**
 * In the child, between fork and exec, as root: enter the task's sandbox, all but the user. The
 * process is in a mount namespace of its own afterwards, with `dir`/work as its working directory.
 * @param dir   The attempt's folder.
 * @param view  NULL: nothing is kept, and nobody asks.
 * @return what could not be built, and what the task's user cannot reach though its job names it,
 *         with what to do. The process must not go on then.
 */
weir_status sandbox_enter(const char *dir, const struct task *task, struct sandbox_view *view,
                          struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

#endif
