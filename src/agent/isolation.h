/**
 * Isolation: control groups, version 2 and version 1, behind one small interface.
 *
 * A *group* holds the processes of one task attempt: they share the processors by weight, have a
 * memory limit and a limit on their number, and can be killed together. Version 2 is used for what
 * its controllers offer, and version 1 hierarchies for the rest; where neither can be written, a
 * task gets a nice value, RLIMIT_DATA and RLIMIT_NPROC instead (weir_isolation_limit_self), and its
 * processes are found by descent.
 *
 *   weight w (1…10000, 100 = normal)   v2 cpu.weight = w · v1 cpu.shares = w·1024/100 · nice by w
 *   memory limit                       v2 memory.max · v1 memory.limit_in_bytes · RLIMIT_DATA
 *   processes and threads              v2 pids.max · v1 pids.max · RLIMIT_NPROC
 *   time of the processors             v2 cpu.max · v1 cpu.cfs_quota_us · none
 *   which processors                   v2 cpuset.cpus · v1 cpuset.cpus · their affinity
 *   bytes from and to the disk         v2 io.max · v1 blkio.throttle.* · none
 *   device nodes                       v1 devices.allow · else the task's own /dev (sandbox_dev.h)
 */
#ifndef WEIR_AGENT_ISOLATION_H
#define WEIR_AGENT_ISOLATION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WEIR_GROUP_PATH_BYTES 512

/** Where groups can be made here. A folder is "" where there is none that can be used. */
struct weir_isolation {
    char v2[WEIR_GROUP_PATH_BYTES];           /**< Parent folder for groups of version 2. */
    bool v2_cpu, v2_memory, v2_pids, v2_kill; /**< What such a group can do. */
    bool v2_cpuset, v2_io;
    char v1_cpu[WEIR_GROUP_PATH_BYTES]; /**< Parent folders in the version 1 hierarchies. */
    char v1_memory[WEIR_GROUP_PATH_BYTES];
    char v1_pids[WEIR_GROUP_PATH_BYTES];
    char v1_cpuset[WEIR_GROUP_PATH_BYTES];
    char v1_blkio[WEIR_GROUP_PATH_BYTES];
    char v1_devices[WEIR_GROUP_PATH_BYTES];
};

/** Limits of a task; 0 or NULL sets none. Text is borrowed. */
struct weir_limits {
    int64_t cpu_weight, memory_max_bytes, pids_max;
    int64_t cpu_max_milli;  /**< Thousandths of a processor, over any 100 ms. */
    int64_t io_max_bytes_s; /**< Read, and as much written, on the disk of io_path. */
    const char *cpuset;     /**< "0-3,8". */
    const char *io_path;
    const char *const *devices; /**< Paths of device nodes, beside what all have (sandbox_dev.h). */
    size_t n_devices;
};

/**
 * Find out, by making and removing a group in each place. Any process; cost: about a millisecond.
 */
void weir_isolation_probe(struct weir_isolation *out);

/** What the group of this process, and those above it, leave it of the memory together with all below it; 0: no bound is
 *  seen. */
int64_t weir_isolation_own_memory_max(void);

/** "processor weight: cgroup v1 · memory limit: … · processes: … · kill: …": for `weir doctor`. */
void weir_isolation_describe(const struct weir_isolation *isolation, char *out, size_t size);

/**
 * Move this process into a leaf of its own, so that its version 2 group may have children with
 * controllers ("no internal processes"). Does nothing where that is not needed or not allowed.
 * Also removes what killed probes left behind, and groups without a process that are older than a
 * minute: their supervisor and their agent died together, and the agent's folder is gone.
 */
void weir_isolation_prepare(void);

/** Remove the folders that groups were made in, where none is left and nobody else is in this process's own group: no
 *  agent comes back here. */
void weir_isolation_remove(const struct weir_isolation *isolation);

#define WEIR_GROUP_DIRS_MAX 8

/** One group: up to one folder per hierarchy. n_dirs 0: no control groups here. */
struct weir_group {
    char dirs[WEIR_GROUP_DIRS_MAX][WEIR_GROUP_PATH_BYTES];
    size_t n_dirs;
    bool has_cpu_limit, has_memory_limit, has_pids_limit;
    bool has_cpu_quota, has_cpuset, has_io_limit, has_devices;
};

/** Make the group `name` and set its limits. Folders that cannot be made are left out. */
void weir_group_create(const struct weir_isolation *isolation, const char *name,
                       const struct weir_limits *limits, struct weir_group *out);

/** Put a process into all folders of the group. */
weir_status weir_group_add(const struct weir_group *group, pid_t pid,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** The processes in it, each once; at most `max` (> 0) of them. Returns how many went to pids. */
size_t weir_group_members(const struct weir_group *group, pid_t *pids, size_t max);

/** Is the process in it? */
bool weir_group_has(const struct weir_group *group, pid_t pid);

/** Kill every process in it, also ones that are being forked (cgroup.kill where there is one). */
void weir_group_kill(const struct weir_group *group);

/** How many processes the kernel killed because of the memory limit. */
int64_t weir_group_oom_kills(const struct weir_group *group);

/** How often a process or thread was refused because of the limit on their number. */
int64_t weir_group_pids_refused(const struct weir_group *group);

/** Remove the (empty) folders. */
void weir_group_remove(const struct weir_group *group);

/** The disk (not the partition) that `path` lies on; false: on none that can be limited. */
bool weir_isolation_disk_of(const char *path, unsigned *out_major, unsigned *out_minor);

/** Without control groups: nice value, affinity, RLIMIT_DATA and RLIMIT_NPROC of this process and
 *  its children. The kernel counts RLIMIT_NPROC over all processes of the user. */
void weir_isolation_limit_self(const struct weir_limits *limits);

/** The nice value for a weight: 0 for 100, 19 for 1; weights over 100 need privileges: down to -20.
 */
int weir_isolation_nice(int64_t cpu_weight);

/**
 * Where is this process in the hierarchies? Pure. `mounts` is /proc/self/mounts, `cgroups` is
 * /proc/self/cgroup; `controller` is "cpu", "memory", … for version 1 or "" for version 2.
 * @return false if that hierarchy is not mounted; else the folder of the process's own group.
 */
bool weir_isolation_own_dir(const char *mounts, const char *cgroups, const char *controller,
                            char *out, size_t size);

#endif
