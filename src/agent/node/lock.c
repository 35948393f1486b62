#include "agent/lock.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/macros.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS    50   /* a process that is just being started passes a lock on */
#define UNSEEN_MS        2000 /* held by nobody who can be seen: then it is somebody else's */
#define KILL_PATIENCE_MS 5000

/* Does the descriptor hold the lock, or is the file only open? Descriptors say so themselves. */
static bool has_lock(const char *process, const char *descriptor)
{
    char path[300], line[256];
    (void)snprintf(path, sizeof path, "/proc/%s/fdinfo/%s", process, descriptor);
    FILE *file = fopen(path, "re");
    bool is_held = false;
    while (file != NULL && !is_held && fgets(line, sizeof line, file) != NULL) {
        is_held = strncmp(line, "lock:", 5) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_held;
}

/* A child that was forked with the lock holds it too, and ends with its parent. */
static bool is_elder(const struct process_id *id, const struct process_id *known)
{
    return known->pid == 0 || id->start_time < known->start_time ||
           (id->start_time == known->start_time && id->pid < known->pid);
}

/* Compare what one process has open with the wanted files. */
static void look_at(const char *process, const struct stat *wanted, size_t n,
                    struct process_id *out)
{
    char folder[64], path[600];
    struct process_id id;
    (void)snprintf(folder, sizeof folder, "/proc/%.20s/fd", process);
    /* Identified before its descriptors are read: what is found belongs to it or a later one, and a
     * later one is not signalled as this one. */
    DIR *dir = process_identify((pid_t)strtol(process, NULL, 10), &id) ? opendir(folder) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        struct stat st;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!isdigit((unsigned char)entry->d_name[0]) || stat(path, &st) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            if (wanted[i].st_ino == st.st_ino && wanted[i].st_dev == st.st_dev &&
                is_elder(&id, &out[i]) && has_lock(process, entry->d_name)) {
                out[i] = id;
            }
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

void weir_lock_holders(const char *const *paths, size_t n, struct process_id *out)
{
    struct stat *wanted = weir_xalloc((n + 1) * sizeof *wanted);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct process_id){0};
        if (stat(paths[i], &wanted[i]) != 0) {
            wanted[i] = (struct stat){0}; /* inode 0 is nobody's */
        }
    }
    DIR *dir = opendir("/proc");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            look_at(entry->d_name, wanted, n, out);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    free(wanted);
}

weir_status weir_lock_take_over(const char *path, int64_t patience_ms, int *out_fd,
                                enum weir_lock_end *out_how, struct weir_error *err)
{
    struct process_id holder, told = {0};
    enum weir_lock_end how = WEIR_LOCK_WAS_FREE;
    int64_t begin_ms = weir_mono_ms(), seen_ms = begin_ms;
    for (;;) {
        weir_status status = weir_file_lock(path, out_fd, err);
        if (status != WEIR_ERR_CONFLICT) {
            *out_how = status == WEIR_OK ? how : *out_how;
            return status;
        }
        int64_t now_ms = weir_mono_ms();
        bool is_killing = now_ms - begin_ms >= patience_ms;
        if (now_ms - begin_ms >= patience_ms + KILL_PATIENCE_MS) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "process %d keeps the lock %s",
                                  (int)told.pid, path);
        }
        weir_lock_holders(&path, 1, &holder);
        if (holder.pid != 0) {
            bool is_new = holder.pid != told.pid || holder.start_time != told.start_time;
            if ((is_new || is_killing) && process_signal(&holder, is_killing ? SIGKILL : SIGTERM)) {
                told = holder;
                how = is_killing ? WEIR_LOCK_KILLED : WEIR_LOCK_ENDED;
            }
            seen_ms = told.pid != 0 ? now_ms : seen_ms;
        }
        if (now_ms - seen_ms >= UNSEEN_MS) {
            return weir_error_set(err, WEIR_ERR_DENIED,
                                  "%s is locked by a process that you may not end: try again as "
                                  "its user or as root",
                                  path);
        }
        int64_t left_ms = begin_ms + patience_ms - weir_mono_ms();
        process_wait(told.pid != 0 ? &told : &holder,
                     is_killing ? LOOK_AGAIN_MS : WEIR_MAX(left_ms, (int64_t)LOOK_AGAIN_MS));
    }
}
