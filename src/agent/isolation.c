#include "agent/isolation.h"

#include "agent/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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
#define GROUP_OLD_S    60 /* a group is given its first process within seconds */

/* Write a whole small file of a control group; errno on failure, else 0. */
static int write_file(const char *dir, const char *name, const char *text)
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

/* Read a small file; "" if it cannot be read. */
static char *read_file(const char *path, char *out, size_t size)
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

static char *read_group_file(const char *dir, const char *name, char *out, size_t size)
{
    char path[WEIR_GROUP_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return read_file(path, out, size);
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
    read_file("/proc/self/mounts", mounts, sizeof mounts);
    read_file("/proc/self/cgroup", cgroups, sizeof cgroups);
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
    static const char *const wanted[] = {"cpu", "memory", "pids"};
    bool *has[] = {&out->v2_cpu, &out->v2_memory, &out->v2_pids};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wanted); i++) {
        char enable[16];
        (void)snprintf(enable, sizeof enable, "+%s", wanted[i]);
        (void)write_file(own, "cgroup.subtree_control", enable);
        (void)write_file(out->v2, "cgroup.subtree_control", enable);
        read_group_file(out->v2, "cgroup.subtree_control", text, sizeof text);
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

static void probe_v1(const char *controller, char *out)
{
    char own[WEIR_GROUP_PATH_BYTES];
    if (find_own_dir(controller, own, sizeof own)) {
        (void)try_parent(own, out);
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

/* Groups of probes whose process was killed before it could remove them, and of attempts that
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

static void clean_up(void)
{
    struct weir_isolation isolation;
    weir_isolation_probe(&isolation);
    remove_old_groups(isolation.v2);
    remove_old_groups(isolation.v1_cpu);
    remove_old_groups(isolation.v1_memory);
    remove_old_groups(isolation.v1_pids);
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
    read_group_file(own, "cgroup.controllers", available, sizeof available);
    read_group_file(own, "cgroup.subtree_control", enabled, sizeof enabled);
    bool is_needed =
        (has_word(available, "cpu", " \n") && !has_word(enabled, "cpu", " \n")) ||
        (has_word(available, "memory", " \n") && !has_word(enabled, "memory", " \n")) ||
        (has_word(available, "pids", " \n") && !has_word(enabled, "pids", " \n"));
    /* The root group may have processes and children; any other must be emptied first. */
    if (!is_needed || write_file(own, "cgroup.subtree_control", "+cpu +memory +pids") != EBUSY) {
        return;
    }
    (void)snprintf(leaf, sizeof leaf, "%s/" LEAF_NAME, own);
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST) {
        return;
    }
    (void)write_file(leaf, "cgroup.procs", "0");
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

static bool set_number(const char *dir, const char *file, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return dir != NULL && write_file(dir, file, text) == 0;
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
}

weir_status weir_group_add(const struct weir_group *group, pid_t pid, struct weir_error *err)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    for (size_t i = 0; i < group->n_dirs; i++) {
        int errno_value = write_file(group->dirs[i], "cgroup.procs", text);
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
        (void)write_file(group->dirs[i], "cgroup.kill", "1"); /* only version 2 has the file */
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
    read_group_file(dir, file, text, sizeof text);
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

void weir_isolation_limit_self(const struct weir_limits *limits)
{
    if (limits->cpu_weight > 0) {
        (void)setpriority(PRIO_PROCESS, 0, weir_isolation_nice(limits->cpu_weight));
    }
    limit_self(RLIMIT_DATA, limits->memory_max_bytes);
    limit_self(RLIMIT_NPROC, limits->pids_max);
}
