#include "agent/code/kept.h"

#include "agent/supervise/carry_lock.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* The descriptor stays open: the lock is this process's. */
weir_status kept_use(const char *folder, struct weir_error *err)
{
    int fd = carry_lock(folder, CARRY_USED, LOCK_SH);
    return fd >= 0 && futimens(fd, NULL) == 0
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot lock %s", folder);
}

/* When something in it was last written, down to its folders' files. */
static time_t last_write(const char *folder, int depth)
{
    struct stat info;
    bool is_there = lstat(folder, &info) == 0;
    time_t last = is_there ? info.st_mtime : 0;
    DIR *dir = is_there && depth > 0 && S_ISDIR(info.st_mode) ? opendir(folder) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char path[PATH_BYTES];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path) {
            time_t inside = last_write(path, depth - 1);
            last = inside > last ? inside : last;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return last;
}

/* Nobody has used it for a while: a use may have been long, and wrote to its end. */
static void remove_unused(const char *folder, int64_t unused_s)
{
    static const char *const beside[] = {"", ".part", ".json", CARRY_USED, CARRY_LOCK};
    struct stat info;
    char path[PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s" CARRY_USED, folder);
    if (stat(path, &info) != 0 || time(NULL) - info.st_mtime < unused_s ||
        time(NULL) - last_write(folder, 2) < unused_s) {
        return;
    }
    int lock_fd = carry_lock(folder, CARRY_LOCK, LOCK_EX | LOCK_NB);
    int used_fd = lock_fd >= 0 ? carry_lock(folder, CARRY_USED, LOCK_EX | LOCK_NB) : -1;
    for (size_t i = 0; used_fd >= 0 && i < WEIR_ARRAY_LEN(beside); i++) {
        struct weir_error err;
        (void)snprintf(path, sizeof path, "%s%s", folder, beside[i]);
        if (weir_dir_remove(path, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "unused_not_removed", WEIR_KV_STR("error", err.message));
        }
    }
    if (used_fd >= 0) {
        close(used_fd);
    }
    if (lock_fd >= 0) {
        close(lock_fd);
    }
}

void kept_sweep(const char *parent, int64_t unused_s)
{
    static const char used[] = CARRY_USED;
    DIR *dir = opendir(parent);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char folder[PATH_BYTES];
        size_t len = strlen(entry->d_name), n_end = sizeof used - 1;
        if (len > n_end && strcmp(entry->d_name + len - n_end, used) == 0 &&
            snprintf(folder, sizeof folder, "%s/%.*s", parent, (int)(len - n_end), entry->d_name) <
                (int)sizeof folder) {
            remove_unused(folder, unused_s);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}
