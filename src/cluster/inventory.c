#include "cluster/cluster.h"

#include "base/file.h"
#include "base/record.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_SLOTS_MIN    2
#define ACCELERATORS_MAX 64

/* First line of a small file, or "". */
static const char *read_line(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file != NULL) {
        (void)!fgets(out, (int)size, file);
        (void)fclose(file);
    }
    out[strcspn(out, "\n")] = '\0';
    return out;
}

/* The value of a line "key : value" of a file, or "". */
static const char *read_key(const char *path, const char *key, char *out, size_t size)
{
    char line[512];
    size_t key_len = strlen(key);
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, key_len) == 0 && colon != NULL) {
            const char *value = colon + 1 + strspn(colon + 1, " \t");
            (void)snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return out;
}

int weir_cluster_quota_processors(const char *quota, const char *period)
{
    char *end;
    long long quota_us = strtoll(quota, &end, 10);
    long long period_us = strtoll(period != NULL ? period : end, NULL, 10);
    if (end == quota || quota_us <= 0 || period_us <= 0) {
        return 0; /* "max", "-1" or no such file */
    }
    return (int)((quota_us + period_us - 1) / period_us);
}

/* In a container the quota is that of the root of what it sees; elsewhere there is none. */
static int quota_processors(void)
{
    char quota[64];
    char period[64];
    read_line("/sys/fs/cgroup/cpu.max", quota, sizeof quota);
    if (quota[0] != '\0') {
        return weir_cluster_quota_processors(quota, NULL);
    }
    read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota);
    read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period);
    return weir_cluster_quota_processors(quota, period);
}

static int usable_processors(void)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : get_nprocs();
    int quota = quota_processors();
    return quota > 0 ? WEIR_MIN(n, quota) : n;
}

static int64_t usable_memory(void)
{
    struct sysinfo info = {0};
    char text[64];
    (void)sysinfo(&info);
    int64_t total = (int64_t)((uint64_t)info.totalram * info.mem_unit);
    if (read_line("/sys/fs/cgroup/memory.max", text, sizeof text)[0] == '\0') {
        read_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", text, sizeof text);
    }
    int64_t limit = strtoll(text, NULL, 10); /* "max" is 0; version 1 says a huge number */
    return limit > 0 ? WEIR_MIN(total, limit) : total;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

json_t *weir_cluster_accelerators(const char *folder)
{
    char *names[ACCELERATORS_MAX];
    size_t n = 0;
    json_t *list = json_array();
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && n < ACCELERATORS_MAX; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            names[n++] = weir_xstrdup(entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(names, n, sizeof names[0], by_name); /* PCI addresses: the order never changes */
    for (size_t i = 0; i < n; i++) {
        char path[1024];
        char model[128];
        char uuid[128];
        (void)snprintf(path, sizeof path, "%s/%s/information", folder, names[i]);
        json_array_append_new(list, json_pack("{s:i,s:s,s:s}", "index", (int)i, "model",
                                              read_key(path, "Model", model, sizeof model), "uuid",
                                              read_key(path, "GPU UUID", uuid, sizeof uuid)));
        free(names[i]);
    }
    return list;
}

json_t *weir_cluster_inventory(int64_t cpu_slots)
{
    struct utsname kernel = {0};
    char model[128];
    int n = usable_processors();
    (void)uname(&kernel);
    const char *cgroup = weir_path_exists("/sys/fs/cgroup/cgroup.controllers") ? "v2"
                         : weir_path_is_dir("/sys/fs/cgroup/cpu")              ? "v1"
                                                                               : "none";
    int64_t slots = cpu_slots > 0 ? cpu_slots : WEIR_MAX(n, CPU_SLOTS_MIN);
    json_t *accelerators = weir_cluster_accelerators("/proc/driver/nvidia/gpus");
    json_int_t n_accelerators = (json_int_t)json_array_size(accelerators);
    return json_pack("{s:I,s:I,s:I,s:{s:s,s:s,s:i,s:s,s:s,s:o}}", "cpu_slots", (json_int_t)slots,
                     "memory_bytes", (json_int_t)usable_memory(), "n_accelerators", n_accelerators,
                     "inventory", "hostname", kernel.nodename, "kernel", kernel.release,
                     "processors", n, "cpu_model",
                     read_key("/proc/cpuinfo", "model name", model, sizeof model), "cgroup", cgroup,
                     "accelerators", accelerators);
}

char *weir_cluster_node_name(struct weir_arena *arena)
{
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    for (char *p = host; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", *p) == NULL) {
            *p = '-';
        }
    }
    return weir_arena_strdup(arena, weir_name_is_valid(host) ? host : "node");
}
