#include "agent/supervise/use.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX  4096
#define STAT_MAX_BYTES 8192
#define US_PER_S       1000000

/* A file of a control group or of /proc; false: it is not there. */
static bool read_small(const char *dir, const char *name, char out[STAT_MAX_BYTES])
{
    char path[WEIR_GROUP_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t n = fread(out, 1, STAT_MAX_BYTES - 1, file);
    (void)fclose(file);
    out[n] = '\0';
    return n > 0;
}

/* The number behind a word that begins a line: "usage_usec 1234". */
static bool read_number(const char *text, const char *word, int64_t *out)
{
    size_t len = strlen(word);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, len) == 0 && line[len] == ' ') {
            *out = strtoll(line + len + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

static bool read_cpu(const char *dir, int64_t *out_us)
{
    char text[STAT_MAX_BYTES];
    if (read_small(dir, "cpu.stat", text) && read_number(text, "usage_usec", out_us)) {
        return true;
    }
    if (read_small(dir, "cpuacct.usage", text)) {
        *out_us = strtoll(text, NULL, 10) / 1000;
        return true;
    }
    return false;
}

static bool read_memory(const char *dir, int64_t *out_bytes)
{
    char now[STAT_MAX_BYTES], text[STAT_MAX_BYTES];
    int64_t forgettable = 0;
    bool is_v2 = read_small(dir, "memory.current", now);
    if (!is_v2 && !read_small(dir, "memory.usage_in_bytes", now)) {
        return false;
    }
    if (read_small(dir, "memory.stat", text)) {
        (void)read_number(text, is_v2 ? "inactive_file" : "total_inactive_file", &forgettable);
    }
    int64_t bytes = strtoll(now, NULL, 10);
    *out_bytes = bytes > forgettable ? bytes - forgettable : 0;
    return true;
}

/* Add what /proc/PID/stat says (proc(5)): its own time and that of children it has waited for. */
static void add_process(pid_t pid, struct use *sum)
{
    char dir[64], text[STAT_MAX_BYTES];
    unsigned long user = 0, kernel = 0;
    long waited_user = 0, waited_system = 0, pages = 0;
    (void)snprintf(dir, sizeof dir, "/proc/%d", (int)pid);
    const char *after = read_small(dir, "stat", text) ? strrchr(text, ')') : NULL;
    if (after == NULL ||
        sscanf(after + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d %*u "
               "%*u %ld",
               &user, &kernel, &waited_user, &waited_system, &pages) != 5) {
        return;
    }
    int64_t ticks = (int64_t)user + (int64_t)kernel + waited_user + waited_system;
    sum->cpu_us += ticks * US_PER_S / sysconf(_SC_CLK_TCK);
    sum->memory_bytes += (int64_t)pages * sysconf(_SC_PAGESIZE);
}

bool use_read(const struct task_run *run, struct use *out)
{
    static struct process_id ids[PROCESSES_MAX];
    bool has_cpu = false, has_memory = false;
    struct use group = {0}, sum = {0};
    if (!process_is_alive(&run->process)) {
        return false;
    }
    for (size_t i = 0; i < run->group.n_dirs; i++) {
        has_cpu = has_cpu || read_cpu(run->group.dirs[i], &group.cpu_us);
        has_memory = has_memory || read_memory(run->group.dirs[i], &group.memory_bytes);
    }
    if (!has_cpu || !has_memory) {
        add_process(run->process.pid, &sum);
        size_t n = process_descendants(run->process.pid, ids, PROCESSES_MAX);
        for (size_t i = 0; i < n; i++) {
            add_process(ids[i].pid, &sum);
        }
    }
    *out = (struct use){.cpu_us = has_cpu ? group.cpu_us : sum.cpu_us,
                        .memory_bytes = has_memory ? group.memory_bytes : sum.memory_bytes};
    return true;
}

double use_cores(const struct use *before, const struct use *now, int64_t elapsed_ms)
{
    int64_t busy_us = now->cpu_us - before->cpu_us;
    return elapsed_ms > 0 && busy_us > 0 ? (double)busy_us / 1000.0 / (double)elapsed_ms : 0;
}
