#include "agent/isolation.h"

#include "agent/process.h"
#include "agent/sandbox/isolation_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PARENT_NAME    "weir"       /* folder of all groups, inside the agent's own group */
#define LEAF_NAME      "weir-agent" /* where weir_isolation_prepare puts the agent */
#define TEXT_MAX_BYTES 65536
#define NO_BOUND_BYTES ((int64_t)1 << 60) /* version 1 says a huge number */
#define FAMILY_MAX     256
#define GROUP_OLD_S    60 /* a group is given its first process within seconds */

int isolation_write(const char *dir, const char *name, const char *text)
{
    char path[WEIR_GROUP_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    ssize_t n = write(fd, text, strlen(text));
    int errno_value = n < 0 ? errno : 0;
    close(fd);
    return errno_value;
}

char *isolation_read_path(const char *path, char *out, size_t size)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n + 1 < size) {
        ssize_t got = read(fd, out + n, size - 1 - n);
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
    }
    if (fd >= 0) {
        close(fd);
    }
    out[n] = '\0';
    return out;
}

char *isolation_read(const char *dir, const char *name, char *out, size_t size)
{
    char path[WEIR_GROUP_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return isolation_read_path(path, out, size);
}

/* Is `word` in the list that `separators` divide? */
static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t word_len = strlen(word);
    while (*list != '\0') {
        list += strspn(list, separators);
        size_t len = strcspn(list, separators);
        if (len == word_len && strncmp(list, word, len) == 0) {
            return true;
        }
        list += len;
    }
    return false;
}

/* One line of /proc/self/mounts: is it the hierarchy, and where is it mounted? */
static bool mount_of_line(const char *line, const char *controller, char *out, size_t size)
{
    char where[256];
    char type[32];
    char options[256];
    if (sscanf(line, "%*s %255s %31s %255s", where, type, options) != 3) {
        return false;
    }
    bool is_match = *controller == '\0'
                        ? strcmp(type, "cgroup2") == 0
                        : strcmp(type, "cgroup") == 0 && has_word(options, controller, ",");
    if (is_match) {
        (void)snprintf(out, size, "%s", where);
    }
    return is_match;
}

/* One line "N:controllers:/path" of /proc/self/cgroup; version 2 has no controllers. */
static bool path_of_line(const char *line, const char *controller, char *out, size_t size)
{
    const char *list = strchr(line, ':');
    const char *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL) {
        return false;
    }
    char names[256];
    (void)snprintf(names, sizeof names, "%.*s", (int)(path - list - 1), list + 1);
    bool is_match = *controller == '\0' ? names[0] == '\0' : has_word(names, controller, ",");
    if (is_match) {
        path++;
        (void)snprintf(out, size, "%.*s", (int)strcspn(path, "\n"), path);
    }
    return is_match;
}

typedef bool (*line_fn)(const char *line, const char *controller, char *out, size_t size);

static bool find_line(const char *text, line_fn fn, const char *controller, char *out, size_t size)
{
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (fn(line, controller, out, size)) {
            return true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

bool weir_isolation_own_dir(const char *mounts, const char *cgroups, const char *controller,
                            char *out, size_t size)
{
    char mount[256];
    char path[256];
    if (!find_line(mounts, mount_of_line, controller, mount, sizeof mount) ||
        !find_line(cgroups, path_of_line, controller, path, sizeof path)) {
        return false;
    }
    (void)snprintf(out, size, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    return true;
}

/* The agent's group; seen from its leaf, or from a supervisor started in that leaf, its parent. */
static bool find_own_dir(const char *controller, char *out, size_t size)
{
    char mounts[TEXT_MAX_BYTES];
    char cgroups[TEXT_MAX_BYTES];
    isolation_read_path("/proc/self/mounts", mounts, sizeof mounts);
    isolation_read_path("/proc/self/cgroup", cgroups, sizeof cgroups);
    if (!weir_isolation_own_dir(mounts, cgroups, controller, out, size)) {
        return false;
    }
    char *leaf = strrchr(out, '/');
    if (leaf != NULL && strcmp(leaf + 1, LEAF_NAME) == 0) {
        *leaf = '\0';
    }
    return true;
}

/* Make own/weir and see whether a group can be made in it; true puts the parent into `out`. */
static bool try_parent(const char *own, char *out)
{
    char parent[WEIR_GROUP_PATH_BYTES];
    char probe[WEIR_GROUP_PATH_BYTES + 32];
    if (snprintf(parent, sizeof parent, "%.400s/" PARENT_NAME, own) >= (int)sizeof parent) {
        return false;
    }
    (void)snprintf(probe, sizeof probe, "%s/probe-%d", parent, (int)getpid());
    if (mkdir(parent, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    if (mkdir(probe, 0755) != 0) {
        return false;
    }
    (void)rmdir(probe);
    (void)snprintf(out, WEIR_GROUP_PATH_BYTES, "%s", parent);
    return true;
}

static void probe_v2(struct weir_isolation *out)
{
    char own[WEIR_GROUP_PATH_BYTES];
    char text[1024];
    if (!find_own_dir("", own, sizeof own) || !try_parent(own, out->v2)) {
        return;
    }
    /* A child has a controller if its parent hands it down; from the top to the groups. */
    static const char *const wanted[] = {"cpu", "memory", "pids", "cpuset", "io"};
    bool *has[] = {&out->v2_cpu, &out->v2_memory, &out->v2_pids, &out->v2_cpuset, &out->v2_io};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wanted); i++) {
        char enable[16];
        (void)snprintf(enable, sizeof enable, "+%s", wanted[i]);
        (void)isolation_write(own, "cgroup.subtree_control", enable);
        (void)isolation_write(out->v2, "cgroup.subtree_control", enable);
        isolation_read(out->v2, "cgroup.subtree_control", text, sizeof text);
        *has[i] = has_word(text, wanted[i], " \n");
    }
    char probe[WEIR_GROUP_PATH_BYTES + 32];
    char kill_file[WEIR_GROUP_PATH_BYTES + 64];
    (void)snprintf(probe, sizeof probe, "%s/probe-%d", out->v2, (int)getpid());
    (void)snprintf(kill_file, sizeof kill_file, "%s/cgroup.kill", probe);
    if (mkdir(probe, 0755) == 0) {
        out->v2_kill = access(kill_file, W_OK) == 0; /* since Linux 5.14 */
        (void)rmdir(probe);
    }
}

/* The tighter of two bounds in texts: "max" and huge numbers are none. */
static int64_t tighter(int64_t bound, const char *text)
{
    int64_t bytes = strtoll(text, NULL, 10);
    return bytes <= 0 || bytes > NO_BOUND_BYTES ? bound
           : bound > 0                          ? WEIR_MIN(bound, bytes)
                                                : bytes;
}

int64_t weir_isolation_own_memory_max(void)
{
    static const char key[] = "hierarchical_memory_limit ";
    char own[WEIR_GROUP_PATH_BYTES], text[4096];
    int64_t bound = 0;
    if (find_own_dir("memory", own, sizeof own)) {
        isolation_read(own, "memory.stat", text, sizeof text);
        const char *line = strstr(text, key);
        bound = tighter(bound, line != NULL ? line + strlen(key) : "");
    }
    bool has_dir = find_own_dir("", own, sizeof own);
    while (has_dir && isolation_read(own, "cgroup.controllers", text, sizeof text)[0] != '\0') {
        bound = tighter(bound, isolation_read(own, "memory.max", text, sizeof text));
        char *slash = strrchr(own, '/');
        has_dir = slash != NULL && slash != own;
        *(has_dir ? slash : own) = '\0';
    }
    return bound;
}

static void probe_v1(const char *controller, char *out)
{
    char own[WEIR_GROUP_PATH_BYTES];
    if (find_own_dir(controller, own, sizeof own)) {
        (void)try_parent(own, out);
    }
}

/* A folder of the cpuset hierarchy begins without processors, and so would those in it. */
static void probe_v1_cpuset(char *out)
{
    static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
    char own[WEIR_GROUP_PATH_BYTES], text[1024];
    probe_v1("cpuset", out);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files) && out[0] != '\0'; i++) {
        if (isolation_read(out, files[i], text, sizeof text)[0] <= '\n' &&
            (!find_own_dir("cpuset", own, sizeof own) ||
             isolation_write(out, files[i], isolation_read(own, files[i], text, sizeof text)) !=
                 0)) {
            out[0] = '\0';
        }
    }
}

void weir_isolation_probe(struct weir_isolation *out)
{
    memset(out, 0, sizeof *out);
    probe_v2(out);
    if (!out->v2_cpu) {
        probe_v1("cpu", out->v1_cpu);
    }
    if (!out->v2_memory) {
        probe_v1("memory", out->v1_memory);
    }
    if (!out->v2_pids) {
        probe_v1("pids", out->v1_pids);
    }
    if (!out->v2_cpuset) {
        probe_v1_cpuset(out->v1_cpuset);
    }
    if (!out->v2_io) {
        probe_v1("blkio", out->v1_blkio);
    }
    probe_v1("devices", out->v1_devices);
}

void weir_isolation_describe(const struct weir_isolation *isolation, char *out, size_t size)
{
    (void)snprintf(out, size, "processor weight: %s · memory limit: %s · processes: %s · kill: %s",
                   isolation->v2_cpu              ? "cgroup v2"
                   : isolation->v1_cpu[0] != '\0' ? "cgroup v1"
                                                  : "nice value",
                   isolation->v2_memory              ? "cgroup v2"
                   : isolation->v1_memory[0] != '\0' ? "cgroup v1"
                                                     : "RLIMIT_DATA",
                   isolation->v2_pids              ? "cgroup v2"
                   : isolation->v1_pids[0] != '\0' ? "cgroup v1"
                                                   : "RLIMIT_NPROC",
                   isolation->v2_kill ? "cgroup v2" : "process by process");
}

/* A group's name is "<task>.<attempt>@<agent>" (task_mark). */
static bool is_old_group(int parent_fd, const char *name)
{
    struct stat info;
    return strchr(name, '@') != NULL && fstatat(parent_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           time(NULL) - info.st_mtim.tv_sec > GROUP_OLD_S;
}

/* Groups of probes that were killed before they could remove them, and of attempts that
 * nobody watches any more. One with processes cannot be removed: the kernel refuses. */
static void remove_old_groups(const char *parent)
{
    DIR *dir = parent[0] != '\0' ? opendir(parent) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        long pid =
            strncmp(entry->d_name, "probe-", 6) == 0 ? strtol(entry->d_name + 6, NULL, 10) : 0;
        if ((pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) ||
            is_old_group(dirfd(dir), entry->d_name)) {
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static bool is_ancestor(pid_t pid)
{
    struct process_id found[FAMILY_MAX];
    size_t n = process_descendants(pid, found, FAMILY_MAX), i = 0;
    while (i < n && found[i].pid != getpid()) {
        i++;
    }
    return i < n;
}

/* Is nobody in the group that `parent` lies in but this process and those that started it? Others may have their groups
 * there too. */
static bool is_alone(const char *parent)
{
    char own[WEIR_GROUP_PATH_BYTES], text[4096];
    (void)snprintf(own, sizeof own, "%.*s", (int)(strrchr(parent, '/') - parent), parent);
    char *at = isolation_read(own, "cgroup.procs", text, sizeof text), *end;
    for (;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at || (pid != getpid() && !is_ancestor(pid))) {
            return end == at && text[0] != '\0';
        }
    }
}

void weir_isolation_remove(const struct weir_isolation *isolation)
{
    const char *const dirs[] = {isolation->v2,        isolation->v1_cpu,    isolation->v1_memory,
                                isolation->v1_pids,   isolation->v1_cpuset, isolation->v1_blkio,
                                isolation->v1_devices};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(dirs); i++) {
        if (dirs[i][0] != '\0' && is_alone(dirs[i])) {
            (void)rmdir(dirs[i]);
        }
    }
}

static void clean_up(void)
{
    struct weir_isolation isolation;
    weir_isolation_probe(&isolation);
    remove_old_groups(isolation.v2);
    remove_old_groups(isolation.v1_cpu);
    remove_old_groups(isolation.v1_memory);
    remove_old_groups(isolation.v1_pids);
    remove_old_groups(isolation.v1_cpuset);
    remove_old_groups(isolation.v1_blkio);
    remove_old_groups(isolation.v1_devices);
}

void weir_isolation_prepare(void)
{
    clean_up();
    char own[WEIR_GROUP_PATH_BYTES];
    char leaf[WEIR_GROUP_PATH_BYTES + 16];
    char available[1024];
    char enabled[1024];
    if (!find_own_dir("", own, sizeof own)) {
        return;
    }
    isolation_read(own, "cgroup.controllers", available, sizeof available);
    isolation_read(own, "cgroup.subtree_control", enabled, sizeof enabled);
    bool is_needed =
        (has_word(available, "cpu", " \n") && !has_word(enabled, "cpu", " \n")) ||
        (has_word(available, "memory", " \n") && !has_word(enabled, "memory", " \n")) ||
        (has_word(available, "pids", " \n") && !has_word(enabled, "pids", " \n"));
    /* The root group may have processes and children; any other must be emptied first. */
    if (!is_needed ||
        isolation_write(own, "cgroup.subtree_control", "+cpu +memory +pids") != EBUSY) {
        return;
    }
    (void)snprintf(leaf, sizeof leaf, "%s/" LEAF_NAME, own);
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST) {
        return;
    }
    (void)isolation_write(leaf, "cgroup.procs", "0");
}

int weir_isolation_nice(int64_t cpu_weight)
{
    /* The kernel's nice levels are factors of 1.25 of processor share. */
    double levels = -log((double)WEIR_MAX(cpu_weight, (int64_t)1) / 100.0) / log(1.25);
    return (int)WEIR_MAX(-20.0, WEIR_MIN(19.0, round(levels)));
}

static void limit_self(int resource, int64_t value)
{
    struct rlimit limit = {(rlim_t)value, (rlim_t)value};
    if (value > 0) {
        (void)setrlimit((__rlimit_resource_t)resource, &limit);
    }
}

/* "0-3,8": a task may widen it again, which a control group would not let it. */
static void set_affinity(const char *cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const char *at = cpus; *at != '\0';) {
        unsigned first, last;
        int n = sscanf(at, "%u-%u", &first, &last);
        last = n == 1 ? first : last;
        for (unsigned cpu = first; n > 0 && cpu <= last && cpu < CPU_SETSIZE; cpu++) {
            CPU_SET(cpu, &set);
        }
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (CPU_COUNT(&set) > 0) {
        (void)sched_setaffinity(0, sizeof set, &set);
    }
}

void weir_isolation_limit_self(const struct weir_limits *limits)
{
    if (limits->cpu_weight > 0) {
        (void)setpriority(PRIO_PROCESS, 0, weir_isolation_nice(limits->cpu_weight));
    }
    if (limits->cpuset != NULL) {
        set_affinity(limits->cpuset);
    }
    limit_self(RLIMIT_DATA, limits->memory_max_bytes);
    limit_self(RLIMIT_NPROC, limits->pids_max);
}
