/* Groups: one per attempt, a folder in each hierarchy that its limits need. */
#include "agent/isolation.h"

#include "agent/sandbox/isolation_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000

bool weir_isolation_disk_of(const char *path, unsigned *out_major, unsigned *out_minor)
{
    struct stat info;
    char link[64], text[64];
    if (stat(path, &info) != 0 || major(info.st_dev) == 0) {
        return false; /* not on a disk: a network file system, memory */
    }
    *out_major = major(info.st_dev);
    *out_minor = minor(info.st_dev);
    /* The kernel counts a partition's bytes with its disk's. */
    (void)snprintf(link, sizeof link, "/sys/dev/block/%u:%u/partition", *out_major, *out_minor);
    if (access(link, F_OK) == 0) {
        (void)snprintf(link, sizeof link, "/sys/dev/block/%u:%u/../dev", *out_major, *out_minor);
        return sscanf(isolation_read_path(link, text, sizeof text), "%u:%u", out_major,
                      out_minor) == 2;
    }
    return true;
}

/* Add the folder parent/name to the group; NULL if it cannot be made. */
static const char *add_dir(struct weir_group *group, const char *parent, const char *name)
{
    if (parent[0] == '\0' || group->n_dirs == WEIR_GROUP_DIRS_MAX) {
        return NULL;
    }
    char *dir = group->dirs[group->n_dirs];
    if (snprintf(dir, WEIR_GROUP_PATH_BYTES, "%.300s/%s", parent, name) >= WEIR_GROUP_PATH_BYTES ||
        (mkdir(dir, 0755) != 0 && errno != EEXIST)) {
        return NULL;
    }
    group->n_dirs++;
    return dir;
}

static bool set_text(const char *dir, const char *file, const char *text)
{
    return dir != NULL && isolation_write(dir, file, text) == 0;
}

static bool set_number(const char *dir, const char *file, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return set_text(dir, file, text);
}

/* Time of all processors together: 1500 is one and a half. */
static bool set_quota(const char *v2, const char *v1, int64_t cpu_milli)
{
    char text[64];
    int64_t quota_us = cpu_milli * (CPU_PERIOD_US / 1000);
    (void)snprintf(text, sizeof text, "%lld %d", (long long)quota_us, CPU_PERIOD_US);
    return v2 != NULL ? set_text(v2, "cpu.max", text)
                      : set_number(v1, "cpu.cfs_period_us", CPU_PERIOD_US) &&
                            set_number(v1, "cpu.cfs_quota_us", quota_us);
}

/* A folder of version 1 takes no process before it has both. */
static bool set_cpus(const char *v2, const char *v1, const char *parent, const char *cpus)
{
    char memories[1024];
    if (v2 != NULL) {
        return set_text(v2, "cpuset.cpus", cpus);
    }
    isolation_read(parent, "cpuset.mems", memories, sizeof memories);
    return set_text(v1, "cpuset.mems", memories) && set_text(v1, "cpuset.cpus", cpus);
}

/* Reads and writes each, of the disk that `path` lies on. */
static bool set_io(const char *v2, const char *v1, const char *path, int64_t bytes_s)
{
    unsigned major_number, minor_number;
    char text[96];
    if (!weir_isolation_disk_of(path, &major_number, &minor_number)) {
        return false;
    }
    if (v2 != NULL) {
        (void)snprintf(text, sizeof text, "%u:%u rbps=%lld wbps=%lld", major_number, minor_number,
                       (long long)bytes_s, (long long)bytes_s);
        return set_text(v2, "io.max", text);
    }
    (void)snprintf(text, sizeof text, "%u:%u %lld", major_number, minor_number, (long long)bytes_s);
    return set_text(v1, "blkio.throttle.read_bps_device", text) &&
           set_text(v1, "blkio.throttle.write_bps_device", text);
}

/* Version 1 alone: what every program needs, network adapters, and `n` more. Version 2 has no file
 * for it: there the task's own /dev keeps it from them (sandbox_dev.h). */
static bool set_devices(const char *v1, const char *const devices[], size_t n)
{
    static const char *const always[] = {"c 1:3 rwm",   "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",
                                         "c 1:9 rwm",   "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm",
                                         "c 231:* rwm", "c 10:* r"};
    struct stat info;
    char text[64];
    bool is_set = set_text(v1, "devices.deny", "a");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(always) && is_set; i++) {
        is_set = set_text(v1, "devices.allow", always[i]);
    }
    for (size_t i = 0; i < n && is_set; i++) {
        if (stat(devices[i], &info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
            (void)snprintf(text, sizeof text, "%c %u:%u rw", S_ISBLK(info.st_mode) ? 'b' : 'c',
                           major(info.st_rdev), minor(info.st_rdev));
            is_set = set_text(v1, "devices.allow", text);
        }
    }
    return is_set;
}

/* Folders of version 1 are made for the limits that are asked for; the others cost nothing then. */
static void set_more(const struct weir_isolation *isolation, const char *name, const char *v2,
                     const struct weir_limits *limits, struct weir_group *out)
{
    if (limits->cpuset != NULL) {
        bool is_v2 = isolation->v2_cpuset;
        out->has_cpuset =
            set_cpus(is_v2 ? v2 : NULL, is_v2 ? NULL : add_dir(out, isolation->v1_cpuset, name),
                     isolation->v1_cpuset, limits->cpuset);
        if (!out->has_cpuset && !is_v2 && isolation->v1_cpuset[0] != '\0') {
            (void)rmdir(out->dirs[--out->n_dirs]); /* it would take no process */
        }
    }
    if (limits->io_max_bytes_s > 0) {
        bool is_v2 = isolation->v2_io;
        out->has_io_limit =
            set_io(is_v2 ? v2 : NULL, is_v2 ? NULL : add_dir(out, isolation->v1_blkio, name),
                   limits->io_path, limits->io_max_bytes_s);
    }
    if (limits->devices != NULL) {
        out->has_devices = set_devices(add_dir(out, isolation->v1_devices, name), limits->devices,
                                       limits->n_devices);
    }
}

void weir_group_create(const struct weir_isolation *isolation, const char *name,
                       const struct weir_limits *limits, struct weir_group *out)
{
    memset(out, 0, sizeof *out);
    const char *v2 = add_dir(out, isolation->v2, name);
    const char *v1_cpu = add_dir(out, isolation->v1_cpu, name);
    const char *v1_memory = add_dir(out, isolation->v1_memory, name);
    const char *v1_pids = add_dir(out, isolation->v1_pids, name);
    if (limits->cpu_weight > 0) {
        out->has_cpu_limit =
            isolation->v2_cpu ? set_number(v2, "cpu.weight", limits->cpu_weight)
                              : set_number(v1_cpu, "cpu.shares",
                                           WEIR_MAX((int64_t)2, limits->cpu_weight * 1024 / 100));
    }
    if (limits->cpu_max_milli > 0) {
        out->has_cpu_quota =
            set_quota(isolation->v2_cpu ? v2 : NULL, v1_cpu, limits->cpu_max_milli);
    }
    if (limits->memory_max_bytes > 0) {
        out->has_memory_limit =
            isolation->v2_memory
                ? set_number(v2, "memory.max", limits->memory_max_bytes)
                : set_number(v1_memory, "memory.limit_in_bytes", limits->memory_max_bytes);
    }
    if (limits->pids_max > 0) {
        out->has_pids_limit =
            set_number(isolation->v2_pids ? v2 : v1_pids, "pids.max", limits->pids_max);
    }
    set_more(isolation, name, v2, limits, out);
}

weir_status weir_group_add(const struct weir_group *group, pid_t pid, struct weir_error *err)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    for (size_t i = 0; i < group->n_dirs; i++) {
        int errno_value = isolation_write(group->dirs[i], "cgroup.procs", text);
        if (errno_value != 0) {
            return weir_error_set_errno(err, errno_value, "cannot join the control group %s",
                                        group->dirs[i]);
        }
    }
    return WEIR_OK;
}

size_t weir_group_members(const struct weir_group *group, pid_t *pids, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < group->n_dirs; i++) {
        char path[WEIR_GROUP_PATH_BYTES + 32];
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", group->dirs[i]);
        FILE *file = fopen(path, "re");
        int pid;
        while (file != NULL && fscanf(file, "%d", &pid) == 1) {
            bool is_new = true;
            for (size_t j = 0; j < n; j++) {
                is_new = is_new && pids[j] != (pid_t)pid;
            }
            if (is_new && n < max) {
                pids[n++] = (pid_t)pid;
            }
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    return n;
}

bool weir_group_has(const struct weir_group *group, pid_t pid)
{
    pid_t pids[1024];
    size_t n = weir_group_members(group, pids, WEIR_ARRAY_LEN(pids));
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

void weir_group_kill(const struct weir_group *group)
{
    for (size_t i = 0; i < group->n_dirs; i++) {
        (void)isolation_write(group->dirs[i], "cgroup.kill", "1"); /* only version 2 has the file */
    }
    pid_t pids[1024];
    size_t n = weir_group_members(group, pids, WEIR_ARRAY_LEN(pids));
    for (size_t i = 0; i < n; i++) {
        int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);
        /* Membership is asked again now that the descriptor holds on to one process. */
        if (fd >= 0 && weir_group_has(group, pids[i])) {
            (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
}

/* The number after `key` in a file of lines "key number". */
static int64_t read_count(const char *dir, const char *file, const char *key)
{
    char text[4096];
    isolation_read(dir, file, text, sizeof text);
    size_t key_len = strlen(key);
    for (const char *line = text; *line != '\0';) {
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ') {
            return strtoll(line + key_len + 1, NULL, 10);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return 0;
}

int64_t weir_group_oom_kills(const struct weir_group *group)
{
    int64_t n = 0;
    for (size_t i = 0; i < group->n_dirs; i++) {
        n += read_count(group->dirs[i], "memory.events", "oom_kill");
        n += read_count(group->dirs[i], "memory.oom_control", "oom_kill");
    }
    return n;
}

int64_t weir_group_pids_refused(const struct weir_group *group)
{
    int64_t n = 0;
    for (size_t i = 0; i < group->n_dirs; i++) {
        n += read_count(group->dirs[i], "pids.events", "max");
    }
    return n;
}

void weir_group_remove(const struct weir_group *group)
{
    for (size_t i = 0; i < group->n_dirs; i++) {
        (void)rmdir(group->dirs[i]);
    }
}
