#include "agent/process.h"

#include "base/grow.h"
#include "base/macros.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENVIRONMENT_MAX_BYTES (256 * 1024)
#define UNSEEN_WAIT_MS        50

struct stat_line {
    char state;
    pid_t parent;
    uint64_t start_time;
};

/* Read a small file of /proc whole; the length, or -1. */
static ssize_t read_proc(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t n = 0;
    ssize_t got = 1;
    while (n + 1 < size && got > 0) {
        got = read(fd, out + n, size - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    out[n] = '\0';
    return got < 0 ? -1 : (ssize_t)n;
}

/* The command name (field 2) may hold anything, also ") R 1": fields count from the last ")". */
static bool read_stat(pid_t pid, struct stat_line *out)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_proc(path, text, sizeof text) <= 0) {
        return false;
    }
    const char *after = strrchr(text, ')');
    int parent;
    unsigned long long start_time;
    if (after == NULL || sscanf(after + 1,
                                " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                "%*d %*d %*d %llu",
                                &out->state, &parent, &start_time) != 3) {
        return false;
    }
    out->parent = (pid_t)parent;
    out->start_time = start_time;
    return true;
}

bool process_identify(pid_t pid, struct process_id *out)
{
    struct stat_line line;
    if (pid <= 0 || !read_stat(pid, &line)) {
        return false;
    }
    *out = (struct process_id){.pid = pid, .start_time = line.start_time};
    return true;
}

bool process_describe(const struct process_id *id, char out[PROCESS_TEXT_BYTES])
{
    char path[64], name[32];
    struct stat_line line;
    struct timespec up;
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)id->pid);
    if (read_proc(path, name, sizeof name) <= 0 || !read_stat(id->pid, &line) ||
        line.start_time != id->start_time) {
        return false;
    }
    name[strcspn(name, "\n")] = '\0';
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    long long age_s = (long long)up.tv_sec - (long long)id->start_time / sysconf(_SC_CLK_TCK);
    (void)snprintf(out, PROCESS_TEXT_BYTES, "process %d (%s), state %c, begun %lld s ago",
                   (int)id->pid, name, line.state, age_s);
    return true;
}

bool process_is_alive(const struct process_id *id)
{
    struct stat_line line;
    return id->pid > 0 && read_stat(id->pid, &line) && line.start_time == id->start_time &&
           line.state != 'Z' && line.state != 'X';
}

bool process_signal(const struct process_id *id, int signal_number)
{
    int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);
    if (fd < 0) {
        return false;
    }
    /* The descriptor holds on to one process; that it is ours is checked after it was opened. */
    bool is_sent =
        process_is_alive(id) && syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0) == 0;
    close(fd);
    return is_sent;
}

bool process_wait(const struct process_id *id, int64_t timeout_ms)
{
    int fd = id->pid > 0 ? (int)syscall(SYS_pidfd_open, id->pid, 0) : -1;
    if (fd < 0) {
        (void)poll(NULL, 0, (int)WEIR_MIN(timeout_ms, (int64_t)UNSEEN_WAIT_MS));
        return !process_is_alive(id);
    }
    struct pollfd end = {.fd = fd, .events = POLLIN};
    bool is_over = !process_is_alive(id) || poll(&end, 1, (int)timeout_ms) > 0;
    close(fd);
    return is_over;
}

void process_boot_id(char out[PROCESS_BOOT_ID_BYTES])
{
    out[0] = '\0';
    (void)read_proc("/proc/sys/kernel/random/boot_id", out, PROCESS_BOOT_ID_BYTES);
    out[strcspn(out, "\n")] = '\0';
}

struct known {
    pid_t pid, parent;
    uint64_t start_time;
};

/* All processes; the caller frees. */
static struct known *list_all(size_t *out_n)
{
    DIR *dir = opendir("/proc");
    struct known *all = NULL;
    size_t n = 0;
    size_t cap = 0;
    *out_n = 0;
    if (dir == NULL) {
        return NULL;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat_line line;
        pid_t pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid <= 0 || !read_stat(pid, &line)) {
            continue;
        }
        if (weir_grow(&all, sizeof *all, n, &cap) != WEIR_OK) {
            break;
        }
        all[n++] = (struct known){pid, line.parent, line.start_time};
    }
    closedir(dir);
    *out_n = n;
    return all;
}

size_t process_descendants(pid_t root, struct process_id *out, size_t max)
{
    size_t n_all;
    struct known *all = list_all(&n_all);
    size_t n = 0;
    /* Breadth first: out[0..n) are known descendants, out[i_next..n) have not been asked yet. */
    size_t i_next = 0;
    pid_t parent = root;
    for (;;) {
        for (size_t i = 0; i < n_all && n < max; i++) {
            if (all[i].parent == parent) {
                out[n++] = (struct process_id){all[i].pid, all[i].start_time};
            }
        }
        if (i_next == n) {
            break;
        }
        parent = out[i_next++].pid;
    }
    free(all);
    return n;
}

/* Is `entry` one of the NUL-separated lines? */
static bool has_line(const char *text, size_t len, const char *entry)
{
    size_t entry_len = strlen(entry);
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (strncmp(text + at, entry, entry_len + 1) == 0) {
            return true;
        }
    }
    return false;
}

size_t process_with_environment(const char *entry, struct process_id *out, size_t max)
{
    size_t n_all;
    struct known *all = list_all(&n_all);
    char *text = malloc(ENVIRONMENT_MAX_BYTES);
    size_t n = 0;
    for (size_t i = 0; text != NULL && i < n_all && n < max; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)all[i].pid);
        ssize_t len = read_proc(path, text, ENVIRONMENT_MAX_BYTES);
        if (len > 0 && has_line(text, (size_t)len, entry)) {
            out[n++] = (struct process_id){all[i].pid, all[i].start_time};
        }
    }
    free(text);
    free(all);
    return n;
}
