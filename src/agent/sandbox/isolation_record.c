#include "agent/image/image_run.h"
#include "agent/sandbox_enter.h"
#include "base/syscall_filter.h"

static const char *best(bool is_v2, const char *v1_dir)
{
    return is_v2 ? "v2" : v1_dir[0] != '\0' ? "v1" : "none";
}

static void miss(json_t *list, bool is_missing, const char *text)
{
    if (is_missing) {
        json_array_append_new(list, json_string(text));
    }
}

json_t *weir_isolation_record(bool is_isolating, const struct weir_isolation *groups,
                              const struct sandbox_probe *probe)
{
    bool has_user = is_isolating && probe->is_root && probe->has_mounts;
    bool has_mounts =
        is_isolating && probe->has_mounts && (probe->is_root || probe->has_namespaces);
    bool has_filter = is_isolating && weir_syscall_filter_is_here();
    const char *cpu = best(groups->v2_cpu, groups->v1_cpu),
               *memory = best(groups->v2_memory, groups->v1_memory),
               *pids = best(groups->v2_pids, groups->v1_pids);
    const char *cpus = best(groups->v2_cpuset, groups->v1_cpuset),
               *io = best(groups->v2_io, groups->v1_blkio);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    bool has_images = has_mounts && probe->has_namespaces && image_run_program(&arena) != NULL;
    weir_arena_fini(&arena);
    int64_t own_memory = weir_isolation_own_memory_max();
    json_t *missing = json_array();
    miss(missing, !is_isolating,
         "everything but no_new_privs: the agent runs with --isolation none");
    miss(missing, is_isolating && !probe->is_root && has_mounts,
         "a user per job: the agent is not root, so its tasks read and write what its user may, "
         "except Weir's own folders, /tmp and /dev/shm");
    miss(
        missing, is_isolating && !probe->is_root && !has_mounts,
        "a user per job, hidden folders, private /tmp: the agent is not root and user namespaces "
        "are not allowed here (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone), "
        "so its tasks may do what its user may, and jobs reach each other");
    miss(missing, has_mounts && !probe->has_namespaces,
         "PID, IPC and network namespaces: /proc cannot be mounted here (a container that hides "
         "parts of its own?), so jobs see that others' processes are there");
    miss(missing, is_isolating && !has_filter,
         "a filter of system calls: this kernel has no seccomp filters");
    miss(missing, is_isolating && probe->is_root && !probe->has_mounts,
         "a user per job, hidden folders, private /tmp: no mount namespaces here (a container "
         "without CAP_SYS_ADMIN?), so tasks are root without capabilities and reach Weir's files");
    miss(missing, has_user && !probe->has_idmap,
         "id-mapped mounts on the agent's file system: a job's folders are given to its user "
         "instead, datasets to a group of all tasks, and --share leaves owners as they are");
    miss(missing, is_isolating && (cpu[0] == 'n' || memory[0] == 'n' || pids[0] == 'n'),
         "control groups for all limits: nice values and rlimits stand in");
    miss(missing, is_isolating && memory[0] == 'n' && own_memory > 0,
         "a bound of memory for each task: the control group that the agent was started in bounds "
         "all of them together (own_memory_bytes)");
    miss(missing, is_isolating && cpus[0] == 'n',
         "control group cpuset: a task that is given processors may use others");
    miss(missing, is_isolating && io[0] == 'n',
         "control group io (v2) or blkio (v1): bytes from and to the disk are not bounded");
    return json_pack(
        "{s:b, s:b, s:b, s:b, s:b, s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "user",
        has_user, "mounts", has_mounts, "idmap", has_user && probe->has_idmap, "namespaces",
        has_mounts && probe->has_namespaces, "seccomp", has_filter, "no_new_privs", 1,
        "capabilities", is_isolating || !probe->is_root ? "none" : "the agent's", "cgroup_cpu", cpu,
        "cgroup_memory", memory, "cgroup_pids", pids, "cgroup_cpuset", cpus, "cgroup_io", io,
        "images", has_images ? "crun" : "none", "disk",
        probe->has_disk_quota ? "quota" : "measured", "own_memory_bytes",
        own_memory > 0 ? json_integer(own_memory) : json_null(), "missing", missing);
}
